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
// 24 x 1 x 1 blocks of 1 thread, 640 bytes of shared memory
static inline __attribute__((always_inline)) void Z_block(
    const float* restrict X,
    const float* restrict W,
    float* restrict Z,
    float* restrict X_shared,
    float* restrict W_shared,
    float* restrict Z_state_by_thread,
    const long* restrict block)
{
    const int block_x = (int)block[0];
    for (int tid = 0; tid < 8; ++tid) {
        Z_state_by_thread[tid * 4] = 0.0f;
        Z_state_by_thread[tid * 4 + 1] = 0.0f;
        Z_state_by_thread[tid * 4 + 2] = 0.0f;
        Z_state_by_thread[tid * 4 + 3] = 0.0f;
    }
    for (int c = 0; c < 2; ++c) {
        for (int tid = 0; tid < 8; ++tid) {
            for (int n_round = 0; n_round < 6; ++n_round) {
                *(X_shared + n_round * 8 + tid) = block_x / 4 % 3 * 2 + (n_round * 8 + tid) / 12 < 6 && 1 <= block_x / 4 % 3 * 2 + (n_round * 8 + tid) / 12 && block_x / 2 % 2 * 4 + (n_round * 4 + tid / 2) % 6 < 6 && 1 <= block_x / 2 % 2 * 4 + (n_round * 4 + tid / 2) % 6 && c * 2 + tid % 2 < 3 ? *(X + (block_x / 12 * 75 + block_x / 4 % 3 * 30 + (n_round * 8 + tid) / 12 * 15 + block_x / 2 % 2 * 12 + (n_round * 4 + tid / 2) % 6 * 3 + c * 2 + tid % 2 - 18)) : 0.0f;
            }
            for (int r_round = 0; r_round < 9; ++r_round) {
                *(W_shared + r_round * 8 + tid) = c * 2 + tid / 4 < 3 && block_x % 2 * 4 + tid % 4 < 7 ? *(W + r_round * 21 + c * 14 + tid / 4 * 7 + block_x % 2 * 4 + tid % 4) : 0.0f;
            }
        }
        for (int tid = 0; tid < 8; ++tid) {
            float Z_state_0_0 = Z_state_by_thread[tid * 4];
            float Z_state_0_1 = Z_state_by_thread[tid * 4 + 1];
            float Z_state_1_0 = Z_state_by_thread[tid * 4 + 2];
            float Z_state_1_1 = Z_state_by_thread[tid * 4 + 3];
            for (int r = 0; r < 3; ++r) {
                for (int s = 0; s < 3; ++s) {
                    for (int c_1 = 0; c_1 < 2; ++c_1) {
                        Z_state_0_0 = Z_state_0_0 + *(X_shared + tid / 4 * 12 + r * 12 + tid / 2 % 2 * 4 + s * 2 + c_1) * *(W_shared + r * 24 + s * 8 + c_1 * 4 + tid % 2 * 2);
                        Z_state_0_1 = Z_state_0_1 + *(X_shared + tid / 4 * 12 + r * 12 + tid / 2 % 2 * 4 + s * 2 + c_1) * *(W_shared + r * 24 + s * 8 + c_1 * 4 + tid % 2 * 2 + 1);
                        Z_state_1_0 = Z_state_1_0 + *(X_shared + tid / 4 * 12 + r * 12 + tid / 2 % 2 * 4 + s * 2 + c_1 + 2) * *(W_shared + r * 24 + s * 8 + c_1 * 4 + tid % 2 * 2);
                        Z_state_1_1 = Z_state_1_1 + *(X_shared + tid / 4 * 12 + r * 12 + tid / 2 % 2 * 4 + s * 2 + c_1 + 2) * *(W_shared + r * 24 + s * 8 + c_1 * 4 + tid % 2 * 2 + 1);
                    }
                }
            }
            Z_state_by_thread[tid * 4] = Z_state_0_0;
            Z_state_by_thread[tid * 4 + 1] = Z_state_0_1;
            Z_state_by_thread[tid * 4 + 2] = Z_state_1_0;
            Z_state_by_thread[tid * 4 + 3] = Z_state_1_1;
        }
    }
    for (int tid = 0; tid < 8; ++tid) {
        for (int q_1 = 0; q_1 < 2; ++q_1) {
            for (int f_1 = 0; f_1 < 2; ++f_1) {
                if (block_x / 4 % 3 * 2 + tid / 4 < 5 && block_x / 2 % 2 * 4 + tid / 2 % 2 * 2 + q_1 < 5 && block_x % 2 * 4 + tid % 2 * 2 + f_1 < 7) {
                    *(Z + block_x / 12 * 175 + block_x / 4 % 3 * 70 + tid / 4 * 35 + block_x / 2 % 2 * 28 + tid / 2 % 2 * 14 + q_1 * 7 + block_x % 2 * 4 + tid % 2 * 2 + f_1) = *(Z_state_by_thread + tid * 4 + q_1 * 2 + f_1);
                }
            }
        }
    }
}

EXPORT void Z(void* const* arguments, char* scratch, long first, long last)
{
#pragma nounroll
    for (long number = first; number < last; ++number) {
        const long block[3] = {number % 24, number / 24 % 1, number / 24};
        Z_block(arguments[0], arguments[1], arguments[2], (void*)(scratch + 320), (void*)(scratch + 0), (void*)(scratch + 512), block);
    }
}
