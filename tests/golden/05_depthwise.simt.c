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
// 60 x 1 x 1 blocks of 1 thread, 1088 bytes of shared memory
static inline __attribute__((always_inline)) void Z_block(
    const float* restrict X,
    const float* restrict W,
    float* restrict Z,
    float* restrict X_shared,
    float* restrict W_register_by_thread,
    float* restrict Z_state_by_thread,
    const long* restrict block)
{
    const int block_x = (int)block[0];
    for (int tid = 0; tid < 16; ++tid) {
        for (int n_round = 0; n_round < 6; ++n_round) {
            *(X_shared + n_round * 16 + tid) = block_x / 10 % 3 * 2 + (n_round * 16 + tid) / 24 < 6 && 1 <= block_x / 10 % 3 * 2 + (n_round * 16 + tid) / 24 && block_x / 5 % 2 * 4 + (n_round * 4 + tid / 4) % 6 < 6 && 1 <= block_x / 5 % 2 * 4 + (n_round * 4 + tid / 4) % 6 && block_x % 5 * 4 + tid % 4 < 19 ? *(X + (block_x / 30 * 475 + block_x / 10 % 3 * 190 + (n_round * 16 + tid) / 24 * 95 + block_x / 5 % 2 * 76 + (n_round * 4 + tid / 4) % 6 * 19 + block_x % 5 * 4 + tid % 4 - 114)) : 0.0f;
        }
        for (int W_r_1 = 0; W_r_1 < 3; ++W_r_1) {
            for (int W_r = 0; W_r < 3; ++W_r) {
                *(W_register_by_thread + tid * 9 + W_r * 3 + W_r_1) = block_x % 5 * 4 + tid % 4 < 19 ? *(W + W_r * 57 + W_r_1 * 19 + block_x % 5 * 4 + tid % 4) : 0.0f;
            }
        }
        Z_state_by_thread[tid * 2] = 0.0f;
        Z_state_by_thread[tid * 2 + 1] = 0.0f;
    }
    #pragma nounroll
    for (int tid = 0; tid < 16; ++tid) {
        float W_register_0_0 = W_register_by_thread[tid * 9];
        float W_register_0_1 = W_register_by_thread[tid * 9 + 1];
        float W_register_0_2 = W_register_by_thread[tid * 9 + 2];
        float W_register_1_0 = W_register_by_thread[tid * 9 + 3];
        float W_register_1_1 = W_register_by_thread[tid * 9 + 4];
        float W_register_1_2 = W_register_by_thread[tid * 9 + 5];
        float W_register_2_0 = W_register_by_thread[tid * 9 + 6];
        float W_register_2_1 = W_register_by_thread[tid * 9 + 7];
        float W_register_2_2 = W_register_by_thread[tid * 9 + 8];
        float Z_state_0 = Z_state_by_thread[tid * 2];
        float Z_state_1 = Z_state_by_thread[tid * 2 + 1];
        Z_state_0 = Z_state_0 + X_shared[tid] * W_register_0_0;
        Z_state_1 = Z_state_1 + X_shared[tid + 24] * W_register_0_0;
        Z_state_0 = Z_state_0 + X_shared[tid + 4] * W_register_0_1;
        Z_state_1 = Z_state_1 + X_shared[tid + 28] * W_register_0_1;
        Z_state_0 = Z_state_0 + X_shared[tid + 8] * W_register_0_2;
        Z_state_1 = Z_state_1 + X_shared[tid + 32] * W_register_0_2;
        Z_state_0 = Z_state_0 + X_shared[tid + 24] * W_register_1_0;
        Z_state_1 = Z_state_1 + X_shared[tid + 48] * W_register_1_0;
        Z_state_0 = Z_state_0 + X_shared[tid + 28] * W_register_1_1;
        Z_state_1 = Z_state_1 + X_shared[tid + 52] * W_register_1_1;
        Z_state_0 = Z_state_0 + X_shared[tid + 32] * W_register_1_2;
        Z_state_1 = Z_state_1 + X_shared[tid + 56] * W_register_1_2;
        Z_state_0 = Z_state_0 + X_shared[tid + 48] * W_register_2_0;
        Z_state_1 = Z_state_1 + X_shared[tid + 72] * W_register_2_0;
        Z_state_0 = Z_state_0 + X_shared[tid + 52] * W_register_2_1;
        Z_state_1 = Z_state_1 + X_shared[tid + 76] * W_register_2_1;
        Z_state_0 = Z_state_0 + X_shared[tid + 56] * W_register_2_2;
        Z_state_1 = Z_state_1 + X_shared[tid + 80] * W_register_2_2;
        if (block_x / 5 % 2 * 4 + tid / 4 < 5 && block_x % 5 * 4 + tid % 4 < 19) {
            *(Z + block_x / 30 * 475 + block_x / 10 % 3 * 190 + block_x / 5 % 2 * 76 + tid / 4 * 19 + block_x % 5 * 4 + tid % 4) = Z_state_0;
        }
        if (block_x / 10 % 3 * 2 < 4 && block_x / 5 % 2 * 4 + tid / 4 < 5 && block_x % 5 * 4 + tid % 4 < 19) {
            *(Z + block_x / 30 * 475 + block_x / 10 % 3 * 190 + block_x / 5 % 2 * 76 + tid / 4 * 19 + block_x % 5 * 4 + tid % 4 + 95) = Z_state_1;
        }
    }
}

EXPORT void Z(void* const* arguments, char* scratch, long first, long last)
{
#pragma nounroll
    for (long number = first; number < last; ++number) {
        const long block[3] = {number % 60, number / 60 % 1, number / 60};
        Z_block(arguments[0], arguments[1], arguments[2], (void*)(scratch + 0), (void*)(scratch + 384), (void*)(scratch + 960), block);
    }
}
