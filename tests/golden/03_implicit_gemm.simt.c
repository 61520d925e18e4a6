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
// 4 x 1 x 1 blocks of 1 thread, 448 bytes of shared memory
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
    for (int tid = 0; tid < 16; ++tid) {
        Z_state_by_thread[tid * 4] = 0.0f;
        Z_state_by_thread[tid * 4 + 1] = 0.0f;
        Z_state_by_thread[tid * 4 + 2] = 0.0f;
        Z_state_by_thread[tid * 4 + 3] = 0.0f;
    }
    for (int r = 0; r < 3; ++r) {
        for (int s = 0; s < 3; ++s) {
            for (int c = 0; c < 2; ++c) {
                for (int tid = 0; tid < 16; ++tid) {
                    *(X_shared + tid / 2 * 3 + tid % 2) = 1 <= block_x % 2 * 4 + tid / 8 * 2 + r && block_x % 2 * 4 + tid / 8 * 2 + r < 8 && 1 <= tid / 2 % 4 * 2 + s && tid / 2 % 4 * 2 + s < 8 && c * 2 + tid % 2 < 3 ? *(X + (block_x / 2 * 147 + block_x % 2 * 84 + tid / 8 * 42 + r * 21 + tid / 2 % 4 * 6 + s * 3 + c * 2 + tid % 2 - 24)) : 0.0f;
                    W_shared[tid] = c * 2 + tid / 8 < 3 && tid % 8 < 5 ? *(W + r * 45 + s * 15 + c * 10 + tid / 8 * 5 + tid % 8) : 0.0f;
                }
                for (int tid = 0; tid < 16; ++tid) {
                    float Z_state_0_0 = Z_state_by_thread[tid * 4];
                    float Z_state_0_1 = Z_state_by_thread[tid * 4 + 1];
                    float Z_state_1_0 = Z_state_by_thread[tid * 4 + 2];
                    float Z_state_1_1 = Z_state_by_thread[tid * 4 + 3];
                    for (int c_1 = 0; c_1 < 2; ++c_1) {
                        Z_state_0_0 = Z_state_0_0 + *(X_shared + tid / 4 * 6 + c_1) * *(W_shared + c_1 * 8 + tid % 4 * 2);
                        Z_state_0_1 = Z_state_0_1 + *(X_shared + tid / 4 * 6 + c_1 + 3) * *(W_shared + c_1 * 8 + tid % 4 * 2);
                        Z_state_1_0 = Z_state_1_0 + *(X_shared + tid / 4 * 6 + c_1) * *(W_shared + c_1 * 8 + tid % 4 * 2 + 1);
                        Z_state_1_1 = Z_state_1_1 + *(X_shared + tid / 4 * 6 + c_1 + 3) * *(W_shared + c_1 * 8 + tid % 4 * 2 + 1);
                    }
                    Z_state_by_thread[tid * 4] = Z_state_0_0;
                    Z_state_by_thread[tid * 4 + 1] = Z_state_0_1;
                    Z_state_by_thread[tid * 4 + 2] = Z_state_1_0;
                    Z_state_by_thread[tid * 4 + 3] = Z_state_1_1;
                }
            }
        }
    }
    for (int tid = 0; tid < 16; ++tid) {
        for (int f_1 = 0; f_1 < 2; ++f_1) {
            for (int npq_1 = 0; npq_1 < 2; ++npq_1) {
                if (tid % 4 * 2 + f_1 < 5) {
                    *(Z + block_x * 40 + tid / 4 * 10 + npq_1 * 5 + tid % 4 * 2 + f_1) = *(Z_state_by_thread + tid * 4 + f_1 * 2 + npq_1);
                }
            }
        }
    }
}

EXPORT void Z(void* const* arguments, char* scratch, long first, long last)
{
#pragma nounroll
    for (long number = first; number < last; ++number) {
        const long block[3] = {number % 4, number / 4 % 1, number / 4};
        Z_block(arguments[0], arguments[1], arguments[2], (void*)(scratch + 0), (void*)(scratch + 128), (void*)(scratch + 192), block);
    }
}
