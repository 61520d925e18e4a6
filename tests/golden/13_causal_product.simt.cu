// 3 x 2 x 1 blocks of 16 threads, 256 bytes of shared memory
extern "C" __global__ void __launch_bounds__(16)
O(
    const float* __restrict__ P,
    const float* __restrict__ V,
    float* O)
{
    __shared__ float P_shared[32] __attribute__((aligned(64)));
    __shared__ float V_shared[32] __attribute__((aligned(64)));
    const int block_x = (int)blockIdx.x;
    const int block_y = (int)blockIdx.y;
    const int thread = (int)threadIdx.x;
    float O_state_0_0 = 0.0f;
    float O_state_0_1 = 0.0f;
    float O_state_1_0 = 0.0f;
    float O_state_1_1 = 0.0f;
    for (int j = 0; j < block_y * 2 + 2; ++j) {
        __syncthreads();  // read of P_shared[thread // 4 * 2 + i, j_1] at examples/13_causal_product.py:54, one iteration of `j` earlier, then write of P_shared[i_round * 4 + thread // 4, thread % 4] at examples/13_causal_product.py:51
        for (int i_round = 0; i_round < 2; ++i_round) {
            P_shared[i_round * 16 + thread] = block_y * 8 + i_round * 4 + thread / 4 < 13 && j * 4 + thread % 4 < 13 ? P[block_y * 104 + i_round * 52 + thread / 4 * 13 + j * 4 + thread % 4] : 0.0f;
        }
        for (int j_round = 0; j_round < 2; ++j_round) {
            V_shared[j_round * 16 + thread] = j * 4 + j_round * 2 + thread / 8 < 13 && block_x * 8 + thread % 8 < 19 ? V[j * 76 + j_round * 38 + thread / 8 * 19 + block_x * 8 + thread % 8] : 0.0f;
        }
        __syncthreads();  // write of P_shared[i_round * 4 + thread // 4, thread % 4] at examples/13_causal_product.py:51, then read of P_shared[thread // 4 * 2 + i, j_1] at examples/13_causal_product.py:54
        if (j * 4 + 3 <= block_y * 8) {
            for (int j_1 = 0; j_1 < 4; ++j_1) {
                O_state_0_0 = O_state_0_0 + P_shared[thread / 4 * 8 + j_1] * V_shared[j_1 * 8 + thread % 4 * 2];
                O_state_0_1 = O_state_0_1 + P_shared[thread / 4 * 8 + j_1] * V_shared[j_1 * 8 + thread % 4 * 2 + 1];
                O_state_1_0 = O_state_1_0 + P_shared[thread / 4 * 8 + j_1 + 4] * V_shared[j_1 * 8 + thread % 4 * 2];
                O_state_1_1 = O_state_1_1 + P_shared[thread / 4 * 8 + j_1 + 4] * V_shared[j_1 * 8 + thread % 4 * 2 + 1];
            }
        } else {
            for (int j_2 = 0; j_2 < min(min(4, 13 - j * 4), block_y * 8 - j * 4 + 8); ++j_2) {
                if (j * 4 + j_2 <= block_y * 8 + thread / 4 * 2) {
                    O_state_0_0 = O_state_0_0 + P_shared[thread / 4 * 8 + j_2] * V_shared[j_2 * 8 + thread % 4 * 2];
                    O_state_0_1 = O_state_0_1 + P_shared[thread / 4 * 8 + j_2] * V_shared[j_2 * 8 + thread % 4 * 2 + 1];
                }
                if (j * 4 + j_2 <= block_y * 8 + thread / 4 * 2 + 1) {
                    O_state_1_0 = O_state_1_0 + P_shared[thread / 4 * 8 + j_2 + 4] * V_shared[j_2 * 8 + thread % 4 * 2];
                    O_state_1_1 = O_state_1_1 + P_shared[thread / 4 * 8 + j_2 + 4] * V_shared[j_2 * 8 + thread % 4 * 2 + 1];
                }
            }
        }
    }
    if (block_y * 8 + thread / 4 * 2 < 13 && block_x * 8 + thread % 4 * 2 < 19) {
        O[block_y * 152 + thread / 4 * 38 + block_x * 8 + thread % 4 * 2] = O_state_0_0;
    }
    if (block_y * 8 + thread / 4 * 2 < 13 && block_x * 8 + thread % 4 * 2 < 18) {
        O[block_y * 152 + thread / 4 * 38 + block_x * 8 + thread % 4 * 2 + 1] = O_state_0_1;
    }
    if (block_y * 8 + thread / 4 * 2 < 12 && block_x * 8 + thread % 4 * 2 < 19) {
        O[block_y * 152 + thread / 4 * 38 + block_x * 8 + thread % 4 * 2 + 19] = O_state_1_0;
    }
    if (block_y * 8 + thread / 4 * 2 < 12 && block_x * 8 + thread % 4 * 2 < 18) {
        O[block_y * 152 + thread / 4 * 38 + block_x * 8 + thread % 4 * 2 + 20] = O_state_1_1;
    }
}
