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
// 3 x 5 x 1 blocks of 1 thread, 288 bytes of shared memory
static inline __attribute__((always_inline)) void Y_block(
    const float* restrict X,
    float* restrict Y,
    float* restrict X_shared,
    const long* restrict block)
{
    const int block_x = (int)block[0];
    const int block_y = (int)block[1];
    for (int tid = 0; tid < 32; ++tid) {
        for (int i = 0; i < 2; ++i) {
            *(X_shared + tid / 8 * 18 + i * 9 + tid % 8) = block_x * 8 + tid / 8 * 2 + i < 17 && block_y * 8 + tid % 8 < 37 ? *(X + block_x * 296 + tid / 8 * 74 + i * 37 + block_y * 8 + tid % 8) : 0.0f;
        }
    }
    for (int tid = 0; tid < 32; ++tid) {
        for (int j = 0; j < 2; ++j) {
            if (block_y * 8 + tid / 8 * 2 + j < 37 && block_x * 8 + tid % 8 < 17) {
                *(Y + block_y * 136 + tid / 8 * 34 + j * 17 + block_x * 8 + tid % 8) = *(X_shared + tid % 8 * 9 + tid / 8 * 2 + j);
            }
        }
    }
}

EXPORT void Y(void* const* arguments, char* scratch, long first, long last)
{
#pragma nounroll
    for (long number = first; number < last; ++number) {
        const long block[3] = {number % 3, number / 3 % 5, number / 15};
        Y_block(arguments[0], arguments[1], (void*)(scratch + 0), block);
    }
}
