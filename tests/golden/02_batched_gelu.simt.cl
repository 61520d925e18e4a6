// 3 x 2 x 3 blocks of 16 threads, 320 bytes of shared memory
__kernel __attribute__((reqd_work_group_size(16, 1, 1)))
void C(
    __global const float* restrict X,
    __global const float* restrict W,
    __global float* restrict C)
{
    __local float X_shared[36] __attribute__((aligned(64)));
    __local float W_shared[32] __attribute__((aligned(64)));
    const int block_x = (int)get_group_id(0);
    const int block_y = (int)get_group_id(1);
    const int block_z = (int)get_group_id(2);
    const int thread = (int)get_local_id(0);
    float C_state_0_0 = 0.0f;
    float C_state_0_1 = 0.0f;
    float C_state_1_0 = 0.0f;
    float C_state_1_1 = 0.0f;
    for (int k = 0; k < 2; ++k) {
        barrier(CLK_LOCAL_MEM_FENCE);  // read of X_shared[0, k_1, thread // 4 * 2 + X_r] at examples/02_batched_gelu.py:59, one iteration of `k` earlier, then write of X_shared[0, thread % 4, b_round * 4 + thread // 4] at examples/02_batched_gelu.py:55
        for (int b_round = 0; b_round < 2; ++b_round) {
            X_shared[thread % 4 * 9 + b_round * 4 + thread / 4] = block_y * 8 + b_round * 4 + thread / 4 < 11 && k * 4 + thread % 4 < 7 ? X[block_z * 77 + block_y * 56 + b_round * 28 + thread / 4 * 7 + k * 4 + thread % 4] : 0.0f;
        }
        for (int b_round_1 = 0; b_round_1 < 2; ++b_round_1) {
            W_shared[b_round_1 * 16 + thread] = k * 4 + b_round_1 * 2 + thread / 8 < 7 && block_x * 8 + thread % 8 < 19 ? W[block_z * 133 + k * 76 + b_round_1 * 38 + thread / 8 * 19 + block_x * 8 + thread % 8] : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);  // write of X_shared[0, thread % 4, b_round * 4 + thread // 4] at examples/02_batched_gelu.py:55, then read of X_shared[0, k_1, thread // 4 * 2 + X_r] at examples/02_batched_gelu.py:59
        for (int k_1 = 0; k_1 < 4; ++k_1) {
            float X_register_0 = X_shared[k_1 * 9 + thread / 4 * 2];
            float X_register_1 = X_shared[k_1 * 9 + thread / 4 * 2 + 1];
            float W_register_0 = W_shared[k_1 * 8 + thread % 4 * 2];
            float W_register_1 = W_shared[k_1 * 8 + thread % 4 * 2 + 1];
            C_state_0_0 = C_state_0_0 + X_register_0 * W_register_0;
            C_state_0_1 = C_state_0_1 + X_register_0 * W_register_1;
            C_state_1_0 = C_state_1_0 + X_register_1 * W_register_0;
            C_state_1_1 = C_state_1_1 + X_register_1 * W_register_1;
        }
    }
    if (block_y * 8 + thread / 4 * 2 < 11 && block_x * 8 + thread % 4 * 2 < 19) {
        C[block_z * 209 + block_y * 152 + thread / 4 * 38 + block_x * 8 + thread % 4 * 2] = C_state_0_0;
    }
    if (block_y * 8 + thread / 4 * 2 < 11 && block_x * 8 + thread % 4 * 2 < 18) {
        C[block_z * 209 + block_y * 152 + thread / 4 * 38 + block_x * 8 + thread % 4 * 2 + 1] = C_state_0_1;
    }
    if (block_y * 8 + thread / 4 * 2 < 10 && block_x * 8 + thread % 4 * 2 < 19) {
        C[block_z * 209 + block_y * 152 + thread / 4 * 38 + block_x * 8 + thread % 4 * 2 + 19] = C_state_1_0;
    }
    if (block_y * 8 + thread / 4 * 2 < 10 && block_x * 8 + thread % 4 * 2 < 18) {
        C[block_z * 209 + block_y * 152 + thread / 4 * 38 + block_x * 8 + thread % 4 * 2 + 20] = C_state_1_1;
    }
}
