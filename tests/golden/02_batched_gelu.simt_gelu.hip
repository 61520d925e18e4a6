
__device__ __forceinline__ float exp_float(float x) {  // 2^n * e^r with n whole and |r| <= log(2) / 2
    float y = x > 89.0f ? (float)(89.0f) : x;
    y = y < -104.0f ? (float)(-104.0f) : y;
    const float shifted = y * 1.44269504f + 12582912.0f;  // the sum's low bits are n
    const float n = shifted - 12582912.0f;
    const int whole = as_int(shifted) - 0x4b400000;
    const float r = (y - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = r * 1.38144649e-3f + 8.36878084e-3f;
    p = p * r + 4.16683927e-2f;
    p = p * r + 1.66665196e-1f;
    p = p * r + 4.99999940e-1f;
    p = p * (r * r) + r;
    const int half_of_n = whole >> 1;  // as two factors, so that results can be infinite or denormal
    return (p + 1.0f) * as_float((half_of_n + 127) << 23) * as_float((whole - half_of_n + 127) << 23);
}

__device__ __forceinline__ float sigmoid_float(float x) {  // exp(x) / (1 + exp(x)) on the left, so that small results keep their precision
    const float e = exp_float(as_float(as_int(x) | ~0x7fffffff));
    const float r = 1.0f / (1.0f + e);
    return x >= 0.0f ? r : e * r;
}

// 3 x 2 x 3 blocks of 16 threads, 320 bytes of shared memory
extern "C" __global__ void __launch_bounds__(16)
Y(
    const float* __restrict__ X,
    const float* __restrict__ W,
    const float* __restrict__ bias,
    float* __restrict__ Y)
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
    #pragma nounroll
    for (int k = 0; k < 2; ++k) {
        shared_barrier();  // read of X_shared[0, k_1, thread // 4 * 2 + X_r] at examples/02_batched_gelu.py:59, one iteration of `k` earlier, then write of X_shared[0, thread % 4, b_round * 4 + thread // 4] at examples/02_batched_gelu.py:55
        for (int b_round = 0; b_round < 2; ++b_round) {
            X_shared[thread % 4 * 9 + b_round * 4 + thread / 4] = block_y * 8 + b_round * 4 + thread / 4 < 11 && k * 4 + thread % 4 < 7 ? X[block_z * 77 + block_y * 56 + b_round * 28 + thread / 4 * 7 + k * 4 + thread % 4] : 0.0f;
        }
        for (int b_round_1 = 0; b_round_1 < 2; ++b_round_1) {
            W_shared[b_round_1 * 16 + thread] = k * 4 + b_round_1 * 2 + thread / 8 < 7 && block_x * 8 + thread % 8 < 19 ? W[block_z * 133 + k * 76 + b_round_1 * 38 + thread / 8 * 19 + block_x * 8 + thread % 8] : 0.0f;
        }
        shared_barrier();  // write of X_shared[0, thread % 4, b_round * 4 + thread // 4] at examples/02_batched_gelu.py:55, then read of X_shared[0, k_1, thread // 4 * 2 + X_r] at examples/02_batched_gelu.py:59
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
        Y[block_z * 209 + block_y * 152 + thread / 4 * 38 + block_x * 8 + thread % 4 * 2] = (Y_sum_state_0_0 + bias[block_x * 8 + thread % 4 * 2]) * sigmoid_float((Y_sum_state_0_0 + bias[block_x * 8 + thread % 4 * 2]) * ((Y_sum_state_0_0 + bias[block_x * 8 + thread % 4 * 2]) * (Y_sum_state_0_0 + bias[block_x * 8 + thread % 4 * 2]) * 0.071354814f + 1.5957692f));
    }
    if (block_y * 8 + thread / 4 * 2 < 11 && block_x * 8 + thread % 4 * 2 < 18) {
        Y[block_z * 209 + block_y * 152 + thread / 4 * 38 + block_x * 8 + thread % 4 * 2 + 1] = (Y_sum_state_0_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * sigmoid_float((Y_sum_state_0_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * ((Y_sum_state_0_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * (Y_sum_state_0_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * 0.071354814f + 1.5957692f));
    }
    if (block_y * 8 + thread / 4 * 2 < 10 && block_x * 8 + thread % 4 * 2 < 19) {
        Y[block_z * 209 + block_y * 152 + thread / 4 * 38 + block_x * 8 + thread % 4 * 2 + 19] = (Y_sum_state_1_0 + bias[block_x * 8 + thread % 4 * 2]) * sigmoid_float((Y_sum_state_1_0 + bias[block_x * 8 + thread % 4 * 2]) * ((Y_sum_state_1_0 + bias[block_x * 8 + thread % 4 * 2]) * (Y_sum_state_1_0 + bias[block_x * 8 + thread % 4 * 2]) * 0.071354814f + 1.5957692f));
    }
    if (block_y * 8 + thread / 4 * 2 < 10 && block_x * 8 + thread % 4 * 2 < 18) {
        Y[block_z * 209 + block_y * 152 + thread / 4 * 38 + block_x * 8 + thread % 4 * 2 + 20] = (Y_sum_state_1_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * sigmoid_float((Y_sum_state_1_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * ((Y_sum_state_1_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * (Y_sum_state_1_1 + bias[block_x * 8 + thread % 4 * 2 + 1]) * 0.071354814f + 1.5957692f));
    }
}
