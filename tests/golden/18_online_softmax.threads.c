#if defined(__CHAR_UNSIGNED__)
#error "compile with -fsigned-char"
#endif
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long long ulong;
typedef __SIZE_TYPE__ size_t;
#define char signed char
#define long long long
#define as_float(...) __builtin_bit_cast(float, (__VA_ARGS__))
#define as_int(...) __builtin_bit_cast(int, (__VA_ARGS__))
#define min(...) __builtin_elementwise_min(__VA_ARGS__)
#define INFINITY __builtin_inff()
#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

static inline float maximum_float(float a, float b) {  // NaN if either is NaN, as in NumPy
    const float r = a > b ? a : b;
    return a == a ? r : a;
}

static inline float exp_float(float x) {  // 2^n e^r with n whole and |r| <= log(2) / 2
    float y = x > 89.0f ? (float)(89.0f) : x;
    y = y < -104.0f ? (float)(-104.0f) : y;
    const float shifted = y * 1.44269504f + 12583166.0f;
    const float n = shifted - 12583166.0f;
    const float r = (y - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = r * 1.38189388e-3f + 8.36870354e-3f;
    p = p * r + 4.16682884e-2f;
    p = p * r + 1.66665211e-1f;
    p = p * r + 4.99999940e-1f;
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    p = p * r + 1.0f;
    p = p * r + 1.0f;
#else
    p = (p * (r * r) + r) + 1.0f;
#endif
    const int first = as_int(shifted) >> 1;
    return p * as_float(first << 23) * as_float((as_int(shifted) - first) << 23);
}

// 2 x 1 x 1 blocks of 1 thread, 12928 bytes of shared memory
static inline __attribute__((always_inline)) void O_block(
    const float* restrict Q,
    const float* restrict K,
    const float* restrict V,
    float* restrict O,
    float* restrict Q_shared,
    float* restrict peak_shared,
    float* restrict peak_before,
    float* restrict total_shared,
    float* restrict K_shared,
    float* restrict V_shared,
    float* restrict S_shared,
    float* restrict peak_chunk_state_meet,
    float* restrict P_shared,
    float* restrict total_chunk_state_meet,
    float* restrict mix_state_by_thread,
    const long* restrict block)
{
    const int block_x = (int)block[0];
    float peak_chunk_state, total_chunk_state;
    for (int tid = 0; tid < 128; ++tid) {
        for (int i_round = 0; i_round < 2; ++i_round) {
            if ((i_round * 128 + tid) / 11 < 16) {
                *(Q_shared + i_round * 128 + tid) = block_x * 16 + (i_round * 128 + tid) / 11 < 17 ? *(Q + block_x * 176 + i_round * 128 + tid) : 0.0f;
            }
        }
        mix_state_by_thread[tid * 8] = 0.0f;
        mix_state_by_thread[tid * 8 + 1] = 0.0f;
        mix_state_by_thread[tid * 8 + 2] = 0.0f;
        mix_state_by_thread[tid * 8 + 3] = 0.0f;
        mix_state_by_thread[tid * 8 + 4] = 0.0f;
        mix_state_by_thread[tid * 8 + 5] = 0.0f;
        mix_state_by_thread[tid * 8 + 6] = 0.0f;
        mix_state_by_thread[tid * 8 + 7] = 0.0f;
        if (tid < 16) {
            peak_shared[tid] = -INFINITY;
            peak_before[tid] = -INFINITY;
            total_shared[tid] = 0.0f;
        }
    }
    #pragma nounroll
    for (int j = 0; j < 2; ++j) {
        for (int tid = 0; tid < 128; ++tid) {
            for (int j_round = 0; j_round < 3; ++j_round) {
                if ((j_round * 128 + tid) / 11 < 32) {
                    *(K_shared + j_round * 128 + tid) = j * 32 + (j_round * 128 + tid) / 11 < 37 ? *(K + j * 352 + j_round * 128 + tid) : 0.0f;
                }
            }
        }
        for (int tid = 0; tid < 128; ++tid) {
            for (int j_round_1 = 0; j_round_1 < 3; ++j_round_1) {
                if ((j_round_1 * 128 + tid) / 11 < 32) {
                    *(V_shared + j_round_1 * 128 + tid) = j * 32 + (j_round_1 * 128 + tid) / 11 < 37 ? *(V + j * 352 + j_round_1 * 128 + tid) : 0.0f;
                }
            }
            for (int j_1 = 0; j_1 < 4; ++j_1) {
                float S_state = 0.0f;
                for (int d = 0; d < 11; ++d) {
                    S_state = S_state + *(Q_shared + tid / 8 * 11 + d) * *(K_shared + tid % 8 * 44 + j_1 * 11 + d);
                }
                if (block_x * 16 + tid / 8 < 17 && j * 32 + tid % 8 * 4 + j_1 < 37) {
                    *(S_shared + tid * 4 + j_1) = S_state;
                }
            }
            peak_chunk_state = -INFINITY;
            for (int j_2 = 0; j_2 < 4; ++j_2) {
                if (block_x * 16 + tid / 8 < 17 && j * 32 + tid % 8 * 4 + j_2 < 37) {
                    peak_chunk_state = maximum_float(peak_chunk_state, *(S_shared + tid * 4 + j_2));
                }
            }
            peak_chunk_state_meet[tid] = peak_chunk_state;
        }
        for (int tid = 0; tid < 124; ++tid) {
            if (tid % 8 < 4) {
                peak_chunk_state_meet[tid] = maximum_float(peak_chunk_state_meet[tid], peak_chunk_state_meet[tid + 4]);
            }
        }
        for (int tid = 0; tid < 122; ++tid) {
            if (tid % 8 < 2) {
                peak_chunk_state_meet[tid] = maximum_float(peak_chunk_state_meet[tid], peak_chunk_state_meet[tid + 2]);
            }
        }
        for (int tid = 0; tid < 121; ++tid) {
            if (tid % 8 < 1) {
                peak_chunk_state_meet[tid] = maximum_float(peak_chunk_state_meet[tid], peak_chunk_state_meet[tid + 1]);
            }
        }
        for (int tid = 0; tid < 121; ++tid) {
            peak_chunk_state = *(peak_chunk_state_meet + (tid - tid % 8));
            if (block_x * 16 + tid / 8 < 17 && tid % 8 == 0) {
                peak_before[tid / 8] = peak_shared[tid / 8];
                peak_shared[tid / 8] = maximum_float(peak_shared[tid / 8], peak_chunk_state);
            }
        }
        for (int tid = 0; tid < 128; ++tid) {
            for (int j_3 = 0; j_3 < 4; ++j_3) {
                if (block_x * 16 + tid / 8 < 17 && j * 32 + tid % 8 * 4 + j_3 < 37) {
                    *(P_shared + tid * 4 + j_3) = exp_float(*(S_shared + tid * 4 + j_3) - peak_shared[tid / 8]);
                }
            }
            total_chunk_state = 0.0f;
            for (int j_4 = 0; j_4 < 4; ++j_4) {
                if (block_x * 16 + tid / 8 < 17 && j * 32 + tid % 8 * 4 + j_4 < 37) {
                    total_chunk_state = total_chunk_state + *(P_shared + tid * 4 + j_4);
                }
            }
            total_chunk_state_meet[tid] = total_chunk_state;
        }
        for (int tid = 0; tid < 124; ++tid) {
            if (tid % 8 < 4) {
                total_chunk_state_meet[tid] = total_chunk_state_meet[tid] + total_chunk_state_meet[tid + 4];
            }
        }
        for (int tid = 0; tid < 122; ++tid) {
            if (tid % 8 < 2) {
                total_chunk_state_meet[tid] = total_chunk_state_meet[tid] + total_chunk_state_meet[tid + 2];
            }
        }
        for (int tid = 0; tid < 121; ++tid) {
            if (tid % 8 < 1) {
                total_chunk_state_meet[tid] = total_chunk_state_meet[tid] + total_chunk_state_meet[tid + 1];
            }
        }
        #pragma nounroll
        for (int tid = 0; tid < 121; ++tid) {
            float mix_state_0 = mix_state_by_thread[tid * 8];
            float mix_state_1 = mix_state_by_thread[tid * 8 + 1];
            float mix_state_2 = mix_state_by_thread[tid * 8 + 2];
            float mix_state_3 = mix_state_by_thread[tid * 8 + 3];
            float mix_state_4 = mix_state_by_thread[tid * 8 + 4];
            float mix_state_5 = mix_state_by_thread[tid * 8 + 5];
            float mix_state_6 = mix_state_by_thread[tid * 8 + 6];
            float mix_state_7 = mix_state_by_thread[tid * 8 + 7];
            total_chunk_state = *(total_chunk_state_meet + (tid - tid % 8));
            if (block_x * 16 + tid / 8 < 17 && tid % 8 == 0) {
                total_shared[tid / 8] = (peak_before[tid / 8] == peak_shared[tid / 8] ? total_shared[tid / 8] : peak_before[tid / 8] == -INFINITY ? 0.0f : total_shared[tid / 8] * exp_float(peak_before[tid / 8] - peak_shared[tid / 8])) + total_chunk_state;
            }
            if (block_x * 16 + tid / 2 < 17 && tid / 2 < 16) {
                mix_state_0 = peak_before[tid / 2] == peak_shared[tid / 2] ? mix_state_0 : peak_before[tid / 2] == -INFINITY ? 0.0f : mix_state_0 * exp_float(peak_before[tid / 2] - peak_shared[tid / 2]);
                mix_state_1 = peak_before[tid / 2] == peak_shared[tid / 2] ? mix_state_1 : peak_before[tid / 2] == -INFINITY ? 0.0f : mix_state_1 * exp_float(peak_before[tid / 2] - peak_shared[tid / 2]);
                mix_state_2 = peak_before[tid / 2] == peak_shared[tid / 2] ? mix_state_2 : peak_before[tid / 2] == -INFINITY ? 0.0f : mix_state_2 * exp_float(peak_before[tid / 2] - peak_shared[tid / 2]);
                mix_state_3 = peak_before[tid / 2] == peak_shared[tid / 2] ? mix_state_3 : peak_before[tid / 2] == -INFINITY ? 0.0f : mix_state_3 * exp_float(peak_before[tid / 2] - peak_shared[tid / 2]);
                mix_state_4 = peak_before[tid / 2] == peak_shared[tid / 2] ? mix_state_4 : peak_before[tid / 2] == -INFINITY ? 0.0f : mix_state_4 * exp_float(peak_before[tid / 2] - peak_shared[tid / 2]);
                mix_state_5 = peak_before[tid / 2] == peak_shared[tid / 2] ? mix_state_5 : peak_before[tid / 2] == -INFINITY ? 0.0f : mix_state_5 * exp_float(peak_before[tid / 2] - peak_shared[tid / 2]);
                mix_state_6 = peak_before[tid / 2] == peak_shared[tid / 2] ? mix_state_6 : peak_before[tid / 2] == -INFINITY ? 0.0f : mix_state_6 * exp_float(peak_before[tid / 2] - peak_shared[tid / 2]);
                mix_state_7 = peak_before[tid / 2] == peak_shared[tid / 2] ? mix_state_7 : peak_before[tid / 2] == -INFINITY ? 0.0f : mix_state_7 * exp_float(peak_before[tid / 2] - peak_shared[tid / 2]);
            }
            for (int j_5 = 0; j_5 < min(32, 37 - j * 32); ++j_5) {
                if (block_x * 16 + tid / 2 < 17 && tid / 2 < 16) {
                    mix_state_0 = mix_state_0 + *(P_shared + tid / 2 * 32 + j_5) * *(V_shared + j_5 * 11 + tid % 2 * 8);
                    mix_state_1 = mix_state_1 + *(P_shared + tid / 2 * 32 + j_5) * *(V_shared + j_5 * 11 + tid % 2 * 8 + 1);
                    mix_state_2 = mix_state_2 + *(P_shared + tid / 2 * 32 + j_5) * *(V_shared + j_5 * 11 + tid % 2 * 8 + 2);
                }
                if (block_x * 16 + tid / 2 < 17 && tid / 2 < 16 && tid % 2 * 8 < 8) {
                    mix_state_3 = mix_state_3 + *(P_shared + tid / 2 * 32 + j_5) * *(V_shared + j_5 * 11 + tid % 2 * 8 + 3);
                }
                if (block_x * 16 + tid / 2 < 17 && tid / 2 < 16 && tid % 2 * 8 < 7) {
                    mix_state_4 = mix_state_4 + *(P_shared + tid / 2 * 32 + j_5) * *(V_shared + j_5 * 11 + tid % 2 * 8 + 4);
                }
                if (block_x * 16 + tid / 2 < 17 && tid / 2 < 16 && tid % 2 * 8 < 6) {
                    mix_state_5 = mix_state_5 + *(P_shared + tid / 2 * 32 + j_5) * *(V_shared + j_5 * 11 + tid % 2 * 8 + 5);
                }
                if (block_x * 16 + tid / 2 < 17 && tid / 2 < 16 && tid % 2 * 8 < 5) {
                    mix_state_6 = mix_state_6 + *(P_shared + tid / 2 * 32 + j_5) * *(V_shared + j_5 * 11 + tid % 2 * 8 + 6);
                }
                if (block_x * 16 + tid / 2 < 17 && tid / 2 < 16 && tid % 2 * 8 < 4) {
                    mix_state_7 = mix_state_7 + *(P_shared + tid / 2 * 32 + j_5) * *(V_shared + j_5 * 11 + tid % 2 * 8 + 7);
                }
            }
            mix_state_by_thread[tid * 8] = mix_state_0;
            mix_state_by_thread[tid * 8 + 1] = mix_state_1;
            mix_state_by_thread[tid * 8 + 2] = mix_state_2;
            mix_state_by_thread[tid * 8 + 3] = mix_state_3;
            mix_state_by_thread[tid * 8 + 4] = mix_state_4;
            mix_state_by_thread[tid * 8 + 5] = mix_state_5;
            mix_state_by_thread[tid * 8 + 6] = mix_state_6;
            mix_state_by_thread[tid * 8 + 7] = mix_state_7;
        }
    }
    for (int tid = 0; tid < 32; ++tid) {
        for (int e_2 = 0; e_2 < 8; ++e_2) {
            if (block_x * 16 + tid / 2 < 17 && tid % 2 * 8 + e_2 < 11) {
                *(O + block_x * 176 + tid / 2 * 11 + tid % 2 * 8 + e_2) = *(mix_state_by_thread + tid * 8 + e_2) / total_shared[tid / 2];
            }
        }
    }
}

EXPORT void O(void* const* arguments, char* scratch, long first, long last)
{
#pragma nounroll
    for (long number = first; number < last; ++number) {
        const long block[3] = {number % 2, number / 2 % 1, number / 2};
        O_block(arguments[0], arguments[1], arguments[2], arguments[3], (void*)(scratch + 6912), (void*)(scratch + 8704), (void*)(scratch + 8640), (void*)(scratch + 8768), (void*)(scratch + 4096), (void*)(scratch + 5504), (void*)(scratch + 2048), (void*)(scratch + 7616), (void*)(scratch + 0), (void*)(scratch + 8128), (void*)(scratch + 8832), block);
    }
}
