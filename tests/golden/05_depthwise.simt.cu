// 60 x 1 x 1 blocks of 16 threads, 384 bytes of shared memory
extern "C" __global__ void __launch_bounds__(16)
Z(
    const float* __restrict__ X,
    const float* __restrict__ W,
    float* Z)
{
    __shared__ float X_shared[96] __attribute__((aligned(64)));
    const int block_x = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    for (int n_round = 0; n_round < 6; ++n_round) {
        X_shared[n_round * 16 + thread] = block_x / 10 % 3 * 2 + (n_round * 16 + thread) / 24 < 6 && 1 <= block_x / 10 % 3 * 2 + (n_round * 16 + thread) / 24 && block_x / 5 % 2 * 4 + (n_round * 4 + thread / 4) % 6 < 6 && 1 <= block_x / 5 % 2 * 4 + (n_round * 4 + thread / 4) % 6 && block_x % 5 * 4 + thread % 4 < 19 ? X[block_x / 30 * 475 + block_x / 10 % 3 * 190 + (n_round * 16 + thread) / 24 * 95 + block_x / 5 % 2 * 76 + (n_round * 4 + thread / 4) % 6 * 19 + block_x % 5 * 4 + thread % 4 - 114] : 0.0f;
    }
    float W_register_0_0 = block_x % 5 * 4 + thread % 4 < 19 ? W[block_x % 5 * 4 + thread % 4] : 0.0f;
    float W_register_1_0 = block_x % 5 * 4 + thread % 4 < 19 ? W[block_x % 5 * 4 + thread % 4 + 57] : 0.0f;
    float W_register_2_0 = block_x % 5 * 4 + thread % 4 < 19 ? W[block_x % 5 * 4 + thread % 4 + 114] : 0.0f;
    float W_register_0_1 = block_x % 5 * 4 + thread % 4 < 19 ? W[block_x % 5 * 4 + thread % 4 + 19] : 0.0f;
    float W_register_1_1 = block_x % 5 * 4 + thread % 4 < 19 ? W[block_x % 5 * 4 + thread % 4 + 76] : 0.0f;
    float W_register_2_1 = block_x % 5 * 4 + thread % 4 < 19 ? W[block_x % 5 * 4 + thread % 4 + 133] : 0.0f;
    float W_register_0_2 = block_x % 5 * 4 + thread % 4 < 19 ? W[block_x % 5 * 4 + thread % 4 + 38] : 0.0f;
    float W_register_1_2 = block_x % 5 * 4 + thread % 4 < 19 ? W[block_x % 5 * 4 + thread % 4 + 95] : 0.0f;
    float W_register_2_2 = block_x % 5 * 4 + thread % 4 < 19 ? W[block_x % 5 * 4 + thread % 4 + 152] : 0.0f;
    float Z_state_0 = 0.0f;
    float Z_state_1 = 0.0f;
    __syncthreads();  // write of X_shared[0, (n_round * 16 + thread) // 24, (n_round * 4 + thread // 4) % 6, thread % 4] at examples/05_depthwise.py:45, then read of X_shared[0, p + r, thread // 4 + s, thread % 4] at examples/05_depthwise.py:49
    Z_state_0 = Z_state_0 + X_shared[thread] * W_register_0_0;
    Z_state_1 = Z_state_1 + X_shared[thread + 24] * W_register_0_0;
    Z_state_0 = Z_state_0 + X_shared[thread + 4] * W_register_0_1;
    Z_state_1 = Z_state_1 + X_shared[thread + 28] * W_register_0_1;
    Z_state_0 = Z_state_0 + X_shared[thread + 8] * W_register_0_2;
    Z_state_1 = Z_state_1 + X_shared[thread + 32] * W_register_0_2;
    Z_state_0 = Z_state_0 + X_shared[thread + 24] * W_register_1_0;
    Z_state_1 = Z_state_1 + X_shared[thread + 48] * W_register_1_0;
    Z_state_0 = Z_state_0 + X_shared[thread + 28] * W_register_1_1;
    Z_state_1 = Z_state_1 + X_shared[thread + 52] * W_register_1_1;
    Z_state_0 = Z_state_0 + X_shared[thread + 32] * W_register_1_2;
    Z_state_1 = Z_state_1 + X_shared[thread + 56] * W_register_1_2;
    Z_state_0 = Z_state_0 + X_shared[thread + 48] * W_register_2_0;
    Z_state_1 = Z_state_1 + X_shared[thread + 72] * W_register_2_0;
    Z_state_0 = Z_state_0 + X_shared[thread + 52] * W_register_2_1;
    Z_state_1 = Z_state_1 + X_shared[thread + 76] * W_register_2_1;
    Z_state_0 = Z_state_0 + X_shared[thread + 56] * W_register_2_2;
    Z_state_1 = Z_state_1 + X_shared[thread + 80] * W_register_2_2;
    if (block_x / 5 % 2 * 4 + thread / 4 < 5 && block_x % 5 * 4 + thread % 4 < 19) {
        Z[block_x / 30 * 475 + block_x / 10 % 3 * 190 + block_x / 5 % 2 * 76 + thread / 4 * 19 + block_x % 5 * 4 + thread % 4] = Z_state_0;
    }
    if (block_x / 10 % 3 * 2 < 4 && block_x / 5 % 2 * 4 + thread / 4 < 5 && block_x % 5 * 4 + thread % 4 < 19) {
        Z[block_x / 30 * 475 + block_x / 10 % 3 * 190 + block_x / 5 % 2 * 76 + thread / 4 * 19 + block_x % 5 * 4 + thread % 4 + 95] = Z_state_1;
    }
}
