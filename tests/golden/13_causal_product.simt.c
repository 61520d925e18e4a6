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
#define min(...) __builtin_elementwise_min(__VA_ARGS__)
#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
// 3 x 2 x 1 blocks of 1 thread, 512 bytes of shared memory
static inline __attribute__((always_inline)) void O_block(
    const float* restrict P,
    const float* restrict V,
    float* restrict O,
    float* restrict P_shared,
    float* restrict V_shared,
    float* restrict O_state_by_thread,
    const long* restrict block)
{
    const int block_x = (int)block[0];
    const int block_y = (int)block[1];
    for (int tid = 0; tid < 16; ++tid) {
        O_state_by_thread[tid * 4] = 0.0f;
        O_state_by_thread[tid * 4 + 1] = 0.0f;
        O_state_by_thread[tid * 4 + 2] = 0.0f;
        O_state_by_thread[tid * 4 + 3] = 0.0f;
    }
    for (int j = 0; j < block_y * 2 + 2; ++j) {
        for (int tid = 0; tid < 16; ++tid) {
            for (int i_round = 0; i_round < 2; ++i_round) {
                *(P_shared + i_round * 16 + tid) = block_y * 8 + i_round * 4 + tid / 4 < 13 && j * 4 + tid % 4 < 13 ? *(P + block_y * 104 + i_round * 52 + tid / 4 * 13 + j * 4 + tid % 4) : 0.0f;
            }
            for (int j_round = 0; j_round < 2; ++j_round) {
                *(V_shared + j_round * 16 + tid) = j * 4 + j_round * 2 + tid / 8 < 13 && block_x * 8 + tid % 8 < 19 ? *(V + j * 76 + j_round * 38 + tid / 8 * 19 + block_x * 8 + tid % 8) : 0.0f;
            }
        }
        for (int tid = 0; tid < 16; ++tid) {
            float O_state_0_0 = O_state_by_thread[tid * 4];
            float O_state_0_1 = O_state_by_thread[tid * 4 + 1];
            float O_state_1_0 = O_state_by_thread[tid * 4 + 2];
            float O_state_1_1 = O_state_by_thread[tid * 4 + 3];
            if (j * 4 + 3 <= block_y * 8) {
                for (int j_1 = 0; j_1 < 4; ++j_1) {
                    O_state_0_0 = O_state_0_0 + *(P_shared + tid / 4 * 8 + j_1) * *(V_shared + j_1 * 8 + tid % 4 * 2);
                    O_state_0_1 = O_state_0_1 + *(P_shared + tid / 4 * 8 + j_1) * *(V_shared + j_1 * 8 + tid % 4 * 2 + 1);
                    O_state_1_0 = O_state_1_0 + *(P_shared + tid / 4 * 8 + j_1 + 4) * *(V_shared + j_1 * 8 + tid % 4 * 2);
                    O_state_1_1 = O_state_1_1 + *(P_shared + tid / 4 * 8 + j_1 + 4) * *(V_shared + j_1 * 8 + tid % 4 * 2 + 1);
                }
            } else {
                for (int j_2 = 0; j_2 < min(min(4, 13 - j * 4), block_y * 8 - j * 4 + 8); ++j_2) {
                    if (j * 4 + j_2 <= block_y * 8 + tid / 4 * 2) {
                        O_state_0_0 = O_state_0_0 + *(P_shared + tid / 4 * 8 + j_2) * *(V_shared + j_2 * 8 + tid % 4 * 2);
                        O_state_0_1 = O_state_0_1 + *(P_shared + tid / 4 * 8 + j_2) * *(V_shared + j_2 * 8 + tid % 4 * 2 + 1);
                    }
                    if (j * 4 + j_2 <= block_y * 8 + tid / 4 * 2 + 1) {
                        O_state_1_0 = O_state_1_0 + *(P_shared + tid / 4 * 8 + j_2 + 4) * *(V_shared + j_2 * 8 + tid % 4 * 2);
                        O_state_1_1 = O_state_1_1 + *(P_shared + tid / 4 * 8 + j_2 + 4) * *(V_shared + j_2 * 8 + tid % 4 * 2 + 1);
                    }
                }
            }
            O_state_by_thread[tid * 4] = O_state_0_0;
            O_state_by_thread[tid * 4 + 1] = O_state_0_1;
            O_state_by_thread[tid * 4 + 2] = O_state_1_0;
            O_state_by_thread[tid * 4 + 3] = O_state_1_1;
        }
    }
    for (int tid = 0; tid < 16; ++tid) {
        for (int i_2 = 0; i_2 < 2; ++i_2) {
            for (int d_2 = 0; d_2 < 2; ++d_2) {
                if (block_y * 8 + tid / 4 * 2 + i_2 < 13 && block_x * 8 + tid % 4 * 2 + d_2 < 19) {
                    *(O + block_y * 152 + tid / 4 * 38 + i_2 * 19 + block_x * 8 + tid % 4 * 2 + d_2) = *(O_state_by_thread + tid * 4 + i_2 * 2 + d_2);
                }
            }
        }
    }
}

EXPORT void O(void* const* arguments, char* scratch, long first, long last)
{
#pragma nounroll
    for (long number = first; number < last; ++number) {
        const long block[3] = {number % 3, number / 3 % 2, number / 6};
        O_block(arguments[0], arguments[1], arguments[2], (void*)(scratch + 0), (void*)(scratch + 128), (void*)(scratch + 256), block);
    }
}
