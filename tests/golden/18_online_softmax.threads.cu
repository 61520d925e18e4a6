
template <int DISTANCE>
static __device__ __forceinline__ int shuffle_xor_word(int x) {
    int y;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(y) : "r"(x), "n"(DISTANCE));
    return y;
}

template <int DISTANCE, class T>
static __device__ __forceinline__ T shuffle_xor(T x) {  // what lane `lane ^ DISTANCE` has
    struct Words {
        int of[sizeof(T) / 4];
    };
    Words words = __builtin_bit_cast(Words, x);
    for (int i = 0; i < (int)sizeof(T) / 4; ++i) words.of[i] = shuffle_xor_word<DISTANCE>(words.of[i]);
    return __builtin_bit_cast(T, words);
}

// 2 x 1 x 1 blocks of 128 threads, 7808 bytes of shared memory
extern "C" __global__ void __launch_bounds__(128)
O(
    const float* __restrict__ Q,
    const float* __restrict__ K,
    const float* __restrict__ V,
    float* O)
{
    __shared__ float Q_shared[176] __attribute__((aligned(64)));
    __shared__ float peak_shared[16] __attribute__((aligned(64)));
    __shared__ float peak_before[16] __attribute__((aligned(64)));
    __shared__ float total_shared[16] __attribute__((aligned(64)));
    __shared__ float K_shared[352] __attribute__((aligned(64)));
    __shared__ float V_shared[352] __attribute__((aligned(64)));
    __shared__ float S_shared[512] __attribute__((aligned(64)));
    __shared__ float P_shared[512] __attribute__((aligned(64)));
    const int block_x = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    float peak_chunk_state_other, total_chunk_state_other;
    for (int i_round = 0; i_round < 2; ++i_round) {
        if ((i_round * 128 + thread) / 11 < 16) {
            Q_shared[i_round * 128 + thread] = block_x * 16 + (i_round * 128 + thread) / 11 < 17 ? Q[block_x * 176 + i_round * 128 + thread] : 0.0f;
        }
    }
    float mix_state_0 = 0.0f;
    float mix_state_1 = 0.0f;
    float mix_state_2 = 0.0f;
    float mix_state_3 = 0.0f;
    float mix_state_4 = 0.0f;
    float mix_state_5 = 0.0f;
    float mix_state_6 = 0.0f;
    float mix_state_7 = 0.0f;
    if (thread < 16) {
        peak_shared[thread] = -INFINITY;
        peak_before[thread] = -INFINITY;
        total_shared[thread] = 0.0f;
    }
    for (int j = 0; j < 2; ++j) {
        for (int j_round = 0; j_round < 3; ++j_round) {
            if ((j_round * 128 + thread) / 11 < 32) {
                K_shared[j_round * 128 + thread] = j * 32 + (j_round * 128 + thread) / 11 < 37 ? K[j * 352 + j_round * 128 + thread] : 0.0f;
            }
        }
        __syncthreads();  // read of V_shared[j_5, thread % 2 * 8 + e_1] at examples/18_online_softmax.py:66, one iteration of `j` earlier, then write of V_shared[(j_round_1 * 128 + thread) // 11, (j_round_1 * 128 + thread) % 11] at examples/18_online_softmax.py:61
        for (int j_round_1 = 0; j_round_1 < 3; ++j_round_1) {
            if ((j_round_1 * 128 + thread) / 11 < 32) {
                V_shared[j_round_1 * 128 + thread] = j * 32 + (j_round_1 * 128 + thread) / 11 < 37 ? V[j * 352 + j_round_1 * 128 + thread] : 0.0f;
            }
        }
        for (int j_1 = 0; j_1 < 4; ++j_1) {
            float S_state = 0.0f;
            for (int d = 0; d < 11; ++d) {
                S_state = S_state + Q_shared[thread / 8 * 11 + d] * K_shared[thread % 8 * 44 + j_1 * 11 + d];
            }
            if (block_x * 16 + thread / 8 < 17 && j * 32 + thread % 8 * 4 + j_1 < 37) {
                S_shared[thread * 4 + j_1] = S_state;
            }
        }
        float peak_chunk_state = -INFINITY;
        for (int j_2 = 0; j_2 < 4; ++j_2) {
            if (block_x * 16 + thread / 8 < 17 && j * 32 + thread % 8 * 4 + j_2 < 37) {
                peak_chunk_state = maximum(peak_chunk_state, S_shared[thread * 4 + j_2]);
            }
        }
        peak_chunk_state_other = shuffle_xor<1>(peak_chunk_state);
        peak_chunk_state = maximum(peak_chunk_state, peak_chunk_state_other);
        peak_chunk_state_other = shuffle_xor<2>(peak_chunk_state);
        peak_chunk_state = maximum(peak_chunk_state, peak_chunk_state_other);
        peak_chunk_state_other = shuffle_xor<4>(peak_chunk_state);
        peak_chunk_state = maximum(peak_chunk_state, peak_chunk_state_other);
        if (block_x * 16 + thread / 8 < 17 && thread % 8 == 0) {
            peak_before[thread / 8] = peak_shared[thread / 8];
            peak_shared[thread / 8] = maximum(peak_shared[thread / 8], peak_chunk_state);
        }
        __syncthreads();  // write of peak_shared[thread // 8] at examples/18_online_softmax.py:63, then read of peak_shared[thread // 8] at examples/18_online_softmax.py:64
        for (int j_3 = 0; j_3 < 4; ++j_3) {
            if (block_x * 16 + thread / 8 < 17 && j * 32 + thread % 8 * 4 + j_3 < 37) {
                P_shared[thread * 4 + j_3] = exp(S_shared[thread * 4 + j_3] - peak_shared[thread / 8]);
            }
        }
        float total_chunk_state = 0.0f;
        for (int j_4 = 0; j_4 < 4; ++j_4) {
            if (block_x * 16 + thread / 8 < 17 && j * 32 + thread % 8 * 4 + j_4 < 37) {
                total_chunk_state = total_chunk_state + P_shared[thread * 4 + j_4];
            }
        }
        total_chunk_state_other = shuffle_xor<1>(total_chunk_state);
        total_chunk_state = total_chunk_state + total_chunk_state_other;
        total_chunk_state_other = shuffle_xor<2>(total_chunk_state);
        total_chunk_state = total_chunk_state + total_chunk_state_other;
        total_chunk_state_other = shuffle_xor<4>(total_chunk_state);
        total_chunk_state = total_chunk_state + total_chunk_state_other;
        if (block_x * 16 + thread / 8 < 17 && thread % 8 == 0) {
            total_shared[thread / 8] = (peak_before[thread / 8] == peak_shared[thread / 8] ? total_shared[thread / 8] : peak_before[thread / 8] == -INFINITY ? 0.0f : total_shared[thread / 8] * exp(peak_before[thread / 8] - peak_shared[thread / 8])) + total_chunk_state;
        }
        if (block_x * 16 + thread / 2 < 17 && thread / 2 < 16) {
            mix_state_0 = peak_before[thread / 2] == peak_shared[thread / 2] ? mix_state_0 : peak_before[thread / 2] == -INFINITY ? 0.0f : mix_state_0 * exp(peak_before[thread / 2] - peak_shared[thread / 2]);
            mix_state_1 = peak_before[thread / 2] == peak_shared[thread / 2] ? mix_state_1 : peak_before[thread / 2] == -INFINITY ? 0.0f : mix_state_1 * exp(peak_before[thread / 2] - peak_shared[thread / 2]);
            mix_state_2 = peak_before[thread / 2] == peak_shared[thread / 2] ? mix_state_2 : peak_before[thread / 2] == -INFINITY ? 0.0f : mix_state_2 * exp(peak_before[thread / 2] - peak_shared[thread / 2]);
            mix_state_3 = peak_before[thread / 2] == peak_shared[thread / 2] ? mix_state_3 : peak_before[thread / 2] == -INFINITY ? 0.0f : mix_state_3 * exp(peak_before[thread / 2] - peak_shared[thread / 2]);
            mix_state_4 = peak_before[thread / 2] == peak_shared[thread / 2] ? mix_state_4 : peak_before[thread / 2] == -INFINITY ? 0.0f : mix_state_4 * exp(peak_before[thread / 2] - peak_shared[thread / 2]);
            mix_state_5 = peak_before[thread / 2] == peak_shared[thread / 2] ? mix_state_5 : peak_before[thread / 2] == -INFINITY ? 0.0f : mix_state_5 * exp(peak_before[thread / 2] - peak_shared[thread / 2]);
            mix_state_6 = peak_before[thread / 2] == peak_shared[thread / 2] ? mix_state_6 : peak_before[thread / 2] == -INFINITY ? 0.0f : mix_state_6 * exp(peak_before[thread / 2] - peak_shared[thread / 2]);
            mix_state_7 = peak_before[thread / 2] == peak_shared[thread / 2] ? mix_state_7 : peak_before[thread / 2] == -INFINITY ? 0.0f : mix_state_7 * exp(peak_before[thread / 2] - peak_shared[thread / 2]);
        }
        __syncthreads();  // write of P_shared[thread // 8, thread % 8 * 4 + j_3] at examples/18_online_softmax.py:64, then read of P_shared[thread // 2, j_5] at examples/18_online_softmax.py:66
        for (int j_5 = 0; j_5 < min(32, 37 - j * 32); ++j_5) {
            if (block_x * 16 + thread / 2 < 17 && thread / 2 < 16) {
                mix_state_0 = mix_state_0 + P_shared[thread / 2 * 32 + j_5] * V_shared[j_5 * 11 + thread % 2 * 8];
                mix_state_1 = mix_state_1 + P_shared[thread / 2 * 32 + j_5] * V_shared[j_5 * 11 + thread % 2 * 8 + 1];
                mix_state_2 = mix_state_2 + P_shared[thread / 2 * 32 + j_5] * V_shared[j_5 * 11 + thread % 2 * 8 + 2];
            }
            if (block_x * 16 + thread / 2 < 17 && thread / 2 < 16 && thread % 2 * 8 < 8) {
                mix_state_3 = mix_state_3 + P_shared[thread / 2 * 32 + j_5] * V_shared[j_5 * 11 + thread % 2 * 8 + 3];
            }
            if (block_x * 16 + thread / 2 < 17 && thread / 2 < 16 && thread % 2 * 8 < 7) {
                mix_state_4 = mix_state_4 + P_shared[thread / 2 * 32 + j_5] * V_shared[j_5 * 11 + thread % 2 * 8 + 4];
            }
            if (block_x * 16 + thread / 2 < 17 && thread / 2 < 16 && thread % 2 * 8 < 6) {
                mix_state_5 = mix_state_5 + P_shared[thread / 2 * 32 + j_5] * V_shared[j_5 * 11 + thread % 2 * 8 + 5];
            }
            if (block_x * 16 + thread / 2 < 17 && thread / 2 < 16 && thread % 2 * 8 < 5) {
                mix_state_6 = mix_state_6 + P_shared[thread / 2 * 32 + j_5] * V_shared[j_5 * 11 + thread % 2 * 8 + 6];
            }
            if (block_x * 16 + thread / 2 < 17 && thread / 2 < 16 && thread % 2 * 8 < 4) {
                mix_state_7 = mix_state_7 + P_shared[thread / 2 * 32 + j_5] * V_shared[j_5 * 11 + thread % 2 * 8 + 7];
            }
        }
    }
    if (block_x * 16 + thread / 2 < 17 && thread / 2 < 16) {
        O[block_x * 176 + thread / 2 * 11 + thread % 2 * 8] = mix_state_0 / total_shared[thread / 2];
        O[block_x * 176 + thread / 2 * 11 + thread % 2 * 8 + 1] = mix_state_1 / total_shared[thread / 2];
        O[block_x * 176 + thread / 2 * 11 + thread % 2 * 8 + 2] = mix_state_2 / total_shared[thread / 2];
    }
    if (block_x * 16 + thread / 2 < 17 && thread / 2 < 16 && thread % 2 * 8 < 8) {
        O[block_x * 176 + thread / 2 * 11 + thread % 2 * 8 + 3] = mix_state_3 / total_shared[thread / 2];
    }
    if (block_x * 16 + thread / 2 < 17 && thread / 2 < 16 && thread % 2 * 8 < 7) {
        O[block_x * 176 + thread / 2 * 11 + thread % 2 * 8 + 4] = mix_state_4 / total_shared[thread / 2];
    }
    if (block_x * 16 + thread / 2 < 17 && thread / 2 < 16 && thread % 2 * 8 < 6) {
        O[block_x * 176 + thread / 2 * 11 + thread % 2 * 8 + 5] = mix_state_5 / total_shared[thread / 2];
    }
    if (block_x * 16 + thread / 2 < 17 && thread / 2 < 16 && thread % 2 * 8 < 5) {
        O[block_x * 176 + thread / 2 * 11 + thread % 2 * 8 + 6] = mix_state_6 / total_shared[thread / 2];
    }
    if (block_x * 16 + thread / 2 < 17 && thread / 2 < 16 && thread % 2 * 8 < 4) {
        O[block_x * 176 + thread / 2 * 11 + thread % 2 * 8 + 7] = mix_state_7 / total_shared[thread / 2];
    }
}
