// 4 x 1 x 1 blocks of 16 threads, 192 bytes of shared memory
__kernel __attribute__((reqd_work_group_size(16, 1, 1)))
void Z(
    __global const float* restrict X,
    __global const float* restrict W,
    __global float* restrict Z)
{
    __local float X_shared[24] __attribute__((aligned(64)));
    __local float W_shared[16] __attribute__((aligned(64)));
    const int block_x = (int)get_group_id(0);
    const int thread = (int)get_local_id(0);
    float Z_state_0_0 = 0.0f;
    float Z_state_0_1 = 0.0f;
    float Z_state_1_0 = 0.0f;
    float Z_state_1_1 = 0.0f;
    for (int r = 0; r < 3; ++r) {
        for (int s = 0; s < 3; ++s) {
            for (int c = 0; c < 2; ++c) {
                barrier(CLK_LOCAL_MEM_FENCE);  // read of X_shared[thread // 4 * 2 + npq, c_1] at examples/03_implicit_gemm.py:58, one iteration of `c` earlier, then write of X_shared[thread // 2, thread % 2] at examples/03_implicit_gemm.py:55
                X_shared[thread / 2 * 3 + thread % 2] = 1 <= block_x % 2 * 4 + thread / 8 * 2 + r && block_x % 2 * 4 + thread / 8 * 2 + r < 8 && 1 <= thread / 2 % 4 * 2 + s && thread / 2 % 4 * 2 + s < 8 && c * 2 + thread % 2 < 3 ? X[block_x / 2 * 147 + block_x % 2 * 84 + thread / 8 * 42 + r * 21 + thread / 2 % 4 * 6 + s * 3 + c * 2 + thread % 2 - 24] : 0.0f;
                W_shared[thread] = c * 2 + thread / 8 < 3 && thread % 8 < 5 ? W[r * 45 + s * 15 + c * 10 + thread / 8 * 5 + thread % 8] : 0.0f;
                barrier(CLK_LOCAL_MEM_FENCE);  // write of X_shared[thread // 2, thread % 2] at examples/03_implicit_gemm.py:55, then read of X_shared[thread // 4 * 2 + npq, c_1] at examples/03_implicit_gemm.py:58
                for (int c_1 = 0; c_1 < 2; ++c_1) {
                    Z_state_0_0 = Z_state_0_0 + X_shared[thread / 4 * 6 + c_1] * W_shared[c_1 * 8 + thread % 4 * 2];
                    Z_state_0_1 = Z_state_0_1 + X_shared[thread / 4 * 6 + c_1 + 3] * W_shared[c_1 * 8 + thread % 4 * 2];
                    Z_state_1_0 = Z_state_1_0 + X_shared[thread / 4 * 6 + c_1] * W_shared[c_1 * 8 + thread % 4 * 2 + 1];
                    Z_state_1_1 = Z_state_1_1 + X_shared[thread / 4 * 6 + c_1 + 3] * W_shared[c_1 * 8 + thread % 4 * 2 + 1];
                }
            }
        }
    }
    if (thread % 4 * 2 < 5) {
        Z[block_x * 40 + thread / 4 * 10 + thread % 4 * 2] = Z_state_0_0;
        Z[block_x * 40 + thread / 4 * 10 + thread % 4 * 2 + 5] = Z_state_0_1;
    }
    if (thread % 4 * 2 < 4) {
        Z[block_x * 40 + thread / 4 * 10 + thread % 4 * 2 + 1] = Z_state_1_0;
        Z[block_x * 40 + thread / 4 * 10 + thread % 4 * 2 + 6] = Z_state_1_1;
    }
}
