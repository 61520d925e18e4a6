// 3 x 2 x 3 blocks of 16 threads, 320 bytes of shared memory
extern "C" __global__ void __launch_bounds__(16)
Y(
    const float* __restrict__ X,
    const float* __restrict__ W,
    const float* __restrict__ bias,
    float* Y)
{
    __shared__ float X_shared[36] __attribute__((aligned(64)));
    __shared__ float W_shared[32] __attribute__((aligned(64)));
    const int block_x = (int)blockIdx.x;
    const int block_y = (int)blockIdx.y;
    const int block_z = (int)blockIdx.z;
    const int thread = (int)threadIdx.x;
    float Y_sum_state_0_0 = 0.0f;
    float Y_sum_state_0_1 = 0.0f;
    float Y_sum_state_1_0 = 0.0f;
    float Y_sum_state_1_1 = 0.0f;
    for (int k = 0; k < 2; ++k) {
        __syncthreads();  // read of X_shared[0, k_1, thread // 4 * 2 + X_r] at examples/02_batched_gelu.py:59, one iteration of `k` earlier, then write of X_shared[0, thread % 4, b_round * 4 + thread // 4] at examples/02_batched_gelu.py:55
        for (int b_round = 0; b_round < 2; ++b_round) {
            X_shared[thread % 4 * 9 + b_round * 4 + thread / 4] = block_y * 8 + b_round * 4 + thread / 4 < 11 && k * 4 + thread % 4 < 7 ? X[block_z * 77 + block_y * 56 + b_round * 28 + thread / 4 * 7 + k * 4 + thread % 4] : 0.0f;
        }
        for (int b_round_1 = 0; b_round_1 < 2; ++b_round_1) {
            W_shared[b_round_1 * 16 + thread] = k * 4 + b_round_1 * 2 + thread / 8 < 7 && block_x * 8 + thread % 8 < 19 ? W[block_z * 133 + k * 76 + b_round_1 * 38 + thread / 8 * 19 + block_x * 8 + thread % 8] : 0.0f;
        }
        __syncthreads();  // write of X_shared[0, thread % 4, b_round * 4 + thread // 4] at examples/02_batched_gelu.py:55, then read of X_shared[0, k_1, thread // 4 * 2 + X_r] at examples/02_batched_gelu.py:59
        for (int k_1 = 0; k_1 < 4; ++k_1) {
            float X_register_0 = X_shared[k_1 * 9 + thread / 4 * 2];
            float X_register_1 = X_shared[k_1 * 9 + thread / 4 * 2 + 1];
            float W_register_0 = W_shared[k_1 * 8 + thread % 4 * 2];
            float W_register_1 = W_shared[k_1 * 8 + thread % 4 * 2 + 1];
            Y_sum_state_0_0 = Y_sum_state_0_0 + X_register_0 * W_register_0;
            Y_sum_state_0_1 = Y_sum_state_0_1 + X_register_0 * W_register_1;
            Y_sum_state_1_0 = Y_sum_state_1_0 + X_register_1 * W_register_0;
            Y_sum_state_1_1 = Y_sum_state_1_1 + X_register_1 * W_register_1;
        }
    }
    if (block_y * 8 + thread / 4 * 2 < 11 && block_x * 8 + thread % 4 * 2 < 19) {
        Y[block_z * 209 + block_y * 152 + thread / 4 * 38 + block_x * 8 + thread % 4 * 2] = (Y_sum_state_0_0 + bias[block_x * 8 + thread % 4 * 2]) * (0.0f <= (Y_sum_state_0_0 + bias[block_x * 8 + thread % 4 * 2]) * ((Y_sum_state_0_0 + bias[block_x * 8 + thread % 4 * 2]) * (Y_sum_state_0_0 + bias[block_x * 8 + thread % 4 * 2]) * 0.071354814f + 1.5957692f) ? 1.0f / (1.0f + exp(-fabs((Y_sum_state_0_0 + bias[block_x * 8 + thread % 4 * 2]) * ((Y_sum_state_0_0 + bias[block_x * 8 + thread % 4 * 2]) * (Y_sum_state_0_0 + bias[block_x * 8 + thread % 4 * 2]) * 0.071354814f + 1.5957692f)))) : exp(-fabs((Y_sum_state_0_0 + bias[block_x * 8 + thread % 4 * 2]) * ((Y_sum_state_0_0 + bias[block_x * 8 + thread % 4 * 2]) * (Y_sum_state_0_0 + bias[block_x * 8 + thread % 4 * 2]) * 0.071354814f + 1.5957692f))) * (1.0f / (1.0f + exp(-fabs((Y_sum_state_0_0 + bias[block_x * 8 + thread % 4 * 2]) * ((Y_sum_state_0_0 + bias[block_x * 8 + thread % 4 * 2]) * (Y_sum_state_0_0 + bias[block_x * 8 + thread % 4 * 2]) * 0.071354814f + 1.5957692f))))));
    }
    if (block_y * 8 + thread / 4 * 2 < 11 && block_x * 8 + thread % 4 * 2 < 18) {
        Y[block_z * 209 + block_y * 152 + thread / 4 * 38 + block_x * 8 + thread % 4 * 2 + 1] = (Y_sum_state_0_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * (0.0f <= (Y_sum_state_0_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * ((Y_sum_state_0_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * (Y_sum_state_0_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * 0.071354814f + 1.5957692f) ? 1.0f / (1.0f + exp(-fabs((Y_sum_state_0_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * ((Y_sum_state_0_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * (Y_sum_state_0_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * 0.071354814f + 1.5957692f)))) : exp(-fabs((Y_sum_state_0_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * ((Y_sum_state_0_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * (Y_sum_state_0_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * 0.071354814f + 1.5957692f))) * (1.0f / (1.0f + exp(-fabs((Y_sum_state_0_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * ((Y_sum_state_0_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * (Y_sum_state_0_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * 0.071354814f + 1.5957692f))))));
    }
    if (block_y * 8 + thread / 4 * 2 < 10 && block_x * 8 + thread % 4 * 2 < 19) {
        Y[block_z * 209 + block_y * 152 + thread / 4 * 38 + block_x * 8 + thread % 4 * 2 + 19] = (Y_sum_state_1_0 + bias[block_x * 8 + thread % 4 * 2]) * (0.0f <= (Y_sum_state_1_0 + bias[block_x * 8 + thread % 4 * 2]) * ((Y_sum_state_1_0 + bias[block_x * 8 + thread % 4 * 2]) * (Y_sum_state_1_0 + bias[block_x * 8 + thread % 4 * 2]) * 0.071354814f + 1.5957692f) ? 1.0f / (1.0f + exp(-fabs((Y_sum_state_1_0 + bias[block_x * 8 + thread % 4 * 2]) * ((Y_sum_state_1_0 + bias[block_x * 8 + thread % 4 * 2]) * (Y_sum_state_1_0 + bias[block_x * 8 + thread % 4 * 2]) * 0.071354814f + 1.5957692f)))) : exp(-fabs((Y_sum_state_1_0 + bias[block_x * 8 + thread % 4 * 2]) * ((Y_sum_state_1_0 + bias[block_x * 8 + thread % 4 * 2]) * (Y_sum_state_1_0 + bias[block_x * 8 + thread % 4 * 2]) * 0.071354814f + 1.5957692f))) * (1.0f / (1.0f + exp(-fabs((Y_sum_state_1_0 + bias[block_x * 8 + thread % 4 * 2]) * ((Y_sum_state_1_0 + bias[block_x * 8 + thread % 4 * 2]) * (Y_sum_state_1_0 + bias[block_x * 8 + thread % 4 * 2]) * 0.071354814f + 1.5957692f))))));
    }
    if (block_y * 8 + thread / 4 * 2 < 10 && block_x * 8 + thread % 4 * 2 < 18) {
        Y[block_z * 209 + block_y * 152 + thread / 4 * 38 + block_x * 8 + thread % 4 * 2 + 20] = (Y_sum_state_1_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * (0.0f <= (Y_sum_state_1_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * ((Y_sum_state_1_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * (Y_sum_state_1_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * 0.071354814f + 1.5957692f) ? 1.0f / (1.0f + exp(-fabs((Y_sum_state_1_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * ((Y_sum_state_1_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * (Y_sum_state_1_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * 0.071354814f + 1.5957692f)))) : exp(-fabs((Y_sum_state_1_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * ((Y_sum_state_1_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * (Y_sum_state_1_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * 0.071354814f + 1.5957692f))) * (1.0f / (1.0f + exp(-fabs((Y_sum_state_1_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * ((Y_sum_state_1_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * (Y_sum_state_1_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * 0.071354814f + 1.5957692f))))));
    }
}
