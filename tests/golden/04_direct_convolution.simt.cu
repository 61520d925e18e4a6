// 24 x 1 x 1 blocks of 8 threads, 512 bytes of shared memory
extern "C" __global__ void __launch_bounds__(8)
Z(
    const float* __restrict__ X,
    const float* __restrict__ W,
    float* Z)
{
    __shared__ float X_shared[48] __attribute__((aligned(64)));
    __shared__ float W_shared[72] __attribute__((aligned(64)));
    const int block_x = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    float Z_state_0_0 = 0.0f;
    float Z_state_0_1 = 0.0f;
    float Z_state_1_0 = 0.0f;
    float Z_state_1_1 = 0.0f;
    for (int c = 0; c < 2; ++c) {
        __syncthreads();  // read of X_shared[0, thread // 4 + r, thread // 2 % 2 * 2 + q + s, c_1] at examples/04_direct_convolution.py:53, one iteration of `c` earlier, then write of X_shared[0, (n_round * 8 + thread) // 12, (n_round * 4 + thread // 2) % 6, thread % 2] at examples/04_direct_convolution.py:50
        for (int n_round = 0; n_round < 6; ++n_round) {
            X_shared[n_round * 8 + thread] = block_x / 4 % 3 * 2 + (n_round * 8 + thread) / 12 < 6 && 1 <= block_x / 4 % 3 * 2 + (n_round * 8 + thread) / 12 && block_x / 2 % 2 * 4 + (n_round * 4 + thread / 2) % 6 < 6 && 1 <= block_x / 2 % 2 * 4 + (n_round * 4 + thread / 2) % 6 && c * 2 + thread % 2 < 3 ? X[block_x / 12 * 75 + block_x / 4 % 3 * 30 + (n_round * 8 + thread) / 12 * 15 + block_x / 2 % 2 * 12 + (n_round * 4 + thread / 2) % 6 * 3 + c * 2 + thread % 2 - 18] : 0.0f;
        }
        for (int r_round = 0; r_round < 9; ++r_round) {
            W_shared[r_round * 8 + thread] = c * 2 + thread / 4 < 3 && block_x % 2 * 4 + thread % 4 < 7 ? W[r_round * 21 + c * 14 + thread / 4 * 7 + block_x % 2 * 4 + thread % 4] : 0.0f;
        }
        __syncthreads();  // write of X_shared[0, (n_round * 8 + thread) // 12, (n_round * 4 + thread // 2) % 6, thread % 2] at examples/04_direct_convolution.py:50, then read of X_shared[0, thread // 4 + r, thread // 2 % 2 * 2 + q + s, c_1] at examples/04_direct_convolution.py:53
        for (int r = 0; r < 3; ++r) {
            for (int s = 0; s < 3; ++s) {
                for (int c_1 = 0; c_1 < 2; ++c_1) {
                    Z_state_0_0 = Z_state_0_0 + X_shared[thread / 4 * 12 + r * 12 + thread / 2 % 2 * 4 + s * 2 + c_1] * W_shared[r * 24 + s * 8 + c_1 * 4 + thread % 2 * 2];
                    Z_state_0_1 = Z_state_0_1 + X_shared[thread / 4 * 12 + r * 12 + thread / 2 % 2 * 4 + s * 2 + c_1] * W_shared[r * 24 + s * 8 + c_1 * 4 + thread % 2 * 2 + 1];
                    Z_state_1_0 = Z_state_1_0 + X_shared[thread / 4 * 12 + r * 12 + thread / 2 % 2 * 4 + s * 2 + c_1 + 2] * W_shared[r * 24 + s * 8 + c_1 * 4 + thread % 2 * 2];
                    Z_state_1_1 = Z_state_1_1 + X_shared[thread / 4 * 12 + r * 12 + thread / 2 % 2 * 4 + s * 2 + c_1 + 2] * W_shared[r * 24 + s * 8 + c_1 * 4 + thread % 2 * 2 + 1];
                }
            }
        }
    }
    if (block_x / 4 % 3 * 2 + thread / 4 < 5 && block_x / 2 % 2 * 4 + thread / 2 % 2 * 2 < 5) {
        Z[block_x / 12 * 175 + block_x / 4 % 3 * 70 + thread / 4 * 35 + block_x / 2 % 2 * 28 + thread / 2 % 2 * 14 + block_x % 2 * 4 + thread % 2 * 2] = Z_state_0_0;
    }
    if (block_x / 4 % 3 * 2 + thread / 4 < 5 && block_x / 2 % 2 * 4 + thread / 2 % 2 * 2 < 5 && block_x % 2 * 4 + thread % 2 * 2 < 6) {
        Z[block_x / 12 * 175 + block_x / 4 % 3 * 70 + thread / 4 * 35 + block_x / 2 % 2 * 28 + thread / 2 % 2 * 14 + block_x % 2 * 4 + thread % 2 * 2 + 1] = Z_state_0_1;
    }
    if (block_x / 4 % 3 * 2 + thread / 4 < 5 && block_x / 2 % 2 * 4 + thread / 2 % 2 * 2 < 4) {
        Z[block_x / 12 * 175 + block_x / 4 % 3 * 70 + thread / 4 * 35 + block_x / 2 % 2 * 28 + thread / 2 % 2 * 14 + block_x % 2 * 4 + thread % 2 * 2 + 7] = Z_state_1_0;
    }
    if (block_x / 4 % 3 * 2 + thread / 4 < 5 && block_x / 2 % 2 * 4 + thread / 2 % 2 * 2 < 4 && block_x % 2 * 4 + thread % 2 * 2 < 6) {
        Z[block_x / 12 * 175 + block_x / 4 % 3 * 70 + thread / 4 * 35 + block_x / 2 % 2 * 28 + thread / 2 % 2 * 14 + block_x % 2 * 4 + thread % 2 * 2 + 8] = Z_state_1_1;
    }
}
