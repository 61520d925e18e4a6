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
#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
// 3 x 2 x 3 blocks of 1 thread, 576 bytes of shared memory
static inline __attribute__((always_inline)) void C_block(
    const float* restrict X,
    const float* restrict W,
    float* restrict C,
    float* restrict X_shared,
    float* restrict W_shared,
    float* restrict C_state_by_thread,
    const long* restrict block)
{
    const int block_x = (int)block[0];
    const int block_y = (int)block[1];
    const int block_z = (int)block[2];
    for (int tid = 0; tid < 16; ++tid) {
        C_state_by_thread[tid * 4] = 0.0f;
        C_state_by_thread[tid * 4 + 1] = 0.0f;
        C_state_by_thread[tid * 4 + 2] = 0.0f;
        C_state_by_thread[tid * 4 + 3] = 0.0f;
    }
    for (int k = 0; k < 2; ++k) {
        for (int tid = 0; tid < 16; ++tid) {
            for (int b_round = 0; b_round < 2; ++b_round) {
                *(X_shared + tid % 4 * 9 + b_round * 4 + tid / 4) = block_y * 8 + b_round * 4 + tid / 4 < 11 && k * 4 + tid % 4 < 7 ? *(X + block_z * 77 + block_y * 56 + b_round * 28 + tid / 4 * 7 + k * 4 + tid % 4) : 0.0f;
            }
            for (int b_round_1 = 0; b_round_1 < 2; ++b_round_1) {
                *(W_shared + b_round_1 * 16 + tid) = k * 4 + b_round_1 * 2 + tid / 8 < 7 && block_x * 8 + tid % 8 < 19 ? *(W + block_z * 133 + k * 76 + b_round_1 * 38 + tid / 8 * 19 + block_x * 8 + tid % 8) : 0.0f;
            }
        }
        for (int tid = 0; tid < 16; ++tid) {
            float C_state_0_0 = C_state_by_thread[tid * 4];
            float C_state_0_1 = C_state_by_thread[tid * 4 + 1];
            float C_state_1_0 = C_state_by_thread[tid * 4 + 2];
            float C_state_1_1 = C_state_by_thread[tid * 4 + 3];
            for (int k_1 = 0; k_1 < 4; ++k_1) {
                float X_register_0 = *(X_shared + k_1 * 9 + tid / 4 * 2);
                float X_register_1 = *(X_shared + k_1 * 9 + tid / 4 * 2 + 1);
                float W_register_0 = *(W_shared + k_1 * 8 + tid % 4 * 2);
                float W_register_1 = *(W_shared + k_1 * 8 + tid % 4 * 2 + 1);
                C_state_0_0 = C_state_0_0 + X_register_0 * W_register_0;
                C_state_0_1 = C_state_0_1 + X_register_0 * W_register_1;
                C_state_1_0 = C_state_1_0 + X_register_1 * W_register_0;
                C_state_1_1 = C_state_1_1 + X_register_1 * W_register_1;
            }
            C_state_by_thread[tid * 4] = C_state_0_0;
            C_state_by_thread[tid * 4 + 1] = C_state_0_1;
            C_state_by_thread[tid * 4 + 2] = C_state_1_0;
            C_state_by_thread[tid * 4 + 3] = C_state_1_1;
        }
    }
    for (int tid = 0; tid < 16; ++tid) {
        for (int m_1 = 0; m_1 < 2; ++m_1) {
            for (int n_1 = 0; n_1 < 2; ++n_1) {
                if (block_y * 8 + tid / 4 * 2 + m_1 < 11 && block_x * 8 + tid % 4 * 2 + n_1 < 19) {
                    *(C + block_z * 209 + block_y * 152 + tid / 4 * 38 + m_1 * 19 + block_x * 8 + tid % 4 * 2 + n_1) = *(C_state_by_thread + tid * 4 + m_1 * 2 + n_1);
                }
            }
        }
    }
}

EXPORT void C(void* const* arguments, char* scratch, long first, long last)
{
#pragma nounroll
    for (long number = first; number < last; ++number) {
        const long block[3] = {number % 3, number / 3 % 2, number / 6};
        C_block(arguments[0], arguments[1], arguments[2], (void*)(scratch + 0), (void*)(scratch + 192), (void*)(scratch + 320), block);
    }
}
