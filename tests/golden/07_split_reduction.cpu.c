// clang: -fno-slp-vectorize
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
typedef float float16 __attribute__((ext_vector_type(16)));
typedef float float2 __attribute__((ext_vector_type(2)));
typedef float float4 __attribute__((ext_vector_type(4)));
typedef float float8 __attribute__((ext_vector_type(8)));
typedef int int16 __attribute__((ext_vector_type(16)));
#define as_float16(...) __builtin_bit_cast(float16, (__VA_ARGS__))
#define as_int16(...) __builtin_bit_cast(int16, (__VA_ARGS__))
#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
typedef float float16_u __attribute__((ext_vector_type(16), aligned(4)));
typedef float float2_u __attribute__((ext_vector_type(2), aligned(4)));
typedef float float4_u __attribute__((ext_vector_type(4), aligned(4)));
typedef float float8_u __attribute__((ext_vector_type(8), aligned(4)));

static inline float16 load_first_global_float16(const float* p, long count, float16 others) {  // touches the first `count` elements only
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
    return as_float16(__builtin_ia32_loadups512_mask((const void*)(size_t)p, as_float16(others), (ushort)((1u << (count < 0 ? 0 : count > 16 ? 16 : (int)count)) - 1u)));
#elif defined(__AVX2__)
    int some = count < 0 ? 0 : count > 16 ? 16 : (int)count;
    if (!__builtin_constant_p(some)) __asm__ volatile("" : "+r"(some));
    const int16 exists = as_int16((int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(some));
    float16 v;
    v.s01234567 = __builtin_ia32_maskloadps256((const void*)(size_t)(p + 0), exists.s01234567);
    v.s89abcdef = __builtin_ia32_maskloadps256((const void*)(size_t)(p + 8), exists.s89abcdef);
    return exists ? as_float16(v) : others;
#else
    if (count >= 16) return *(const float16_u*)p;
    const int some = count < 0 ? 0 : (int)count;
    const float2 v2 = (float2)(some & 1 ? p[some & -2] : (float)0);
    float4 v4;
    v4.s01 = v4.s23 = v2;
    if (some & 2) v4.s01 = *(const float2_u*)(p + (some & -4));
    float8 v8;
    v8.s0123 = v8.s4567 = v4;
    if (some & 4) v8.s0123 = *(const float4_u*)(p + (some & -8));
    float16 v16;
    v16.s01234567 = v16.s89abcdef = v8;
    if (some & 8) v16.s01234567 = *(const float8_u*)(p + (some & -16));
    return (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(some) ? v16 : others;
#endif
}

// 3 x 3 x 1 blocks of 1 thread, 0 bytes of shared memory
static inline __attribute__((always_inline)) void Y_block(
    const float* restrict X,
    float* restrict Y_partial,
    const long* restrict block)
{
    const int block_x = (int)block[0];
    const int block_y = (int)block[1];
    float16 Y_state_0 = (float16)(0.0f);
    float16 Y_state_1 = (float16)(0.0f);
    float16 Y_state_2 = (float16)(0.0f);
    float16 Y_state_3 = (float16)(0.0f);
    for (int j = 0; j < 2; ++j) {
        __builtin_prefetch(X + block_y * 333 + block_x * 128 + j * 64 + 1024);
        __builtin_prefetch(X + block_y * 333 + block_x * 128 + j * 64 + 1040);
        __builtin_prefetch(X + block_y * 333 + block_x * 128 + j * 64 + 1056);
        __builtin_prefetch(X + block_y * 333 + block_x * 128 + j * 64 + 1072);
        if (block_x * 128 + j * 64 < 318) {
            Y_state_0 = Y_state_0 + *(const float16_u*)(X + block_y * 333 + block_x * 128 + j * 64) * *(const float16_u*)(X + block_y * 333 + block_x * 128 + j * 64);
        } else {
            Y_state_0 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(333 - block_x * 128 - j * 64) ? Y_state_0 + load_first_global_float16(X + block_y * 333 + block_x * 128 + j * 64, 333 - block_x * 128 - j * 64, (float16)(0.0f)) * load_first_global_float16(X + block_y * 333 + block_x * 128 + j * 64, 333 - block_x * 128 - j * 64, (float16)(0.0f)) : Y_state_0;
        }
        if (block_x * 128 + j * 64 < 317) {
            Y_state_1 = Y_state_1 + *(const float16_u*)(X + block_y * 333 + block_x * 128 + j * 64 + 16) * *(const float16_u*)(X + block_y * 333 + block_x * 128 + j * 64 + 16);
        }
        if (block_x * 128 + j * 64 < 301) {
            Y_state_2 = Y_state_2 + *(const float16_u*)(X + block_y * 333 + block_x * 128 + j * 64 + 32) * *(const float16_u*)(X + block_y * 333 + block_x * 128 + j * 64 + 32);
        }
        if (block_x * 128 + j * 64 < 285) {
            Y_state_3 = Y_state_3 + *(const float16_u*)(X + block_y * 333 + block_x * 128 + j * 64 + 48) * *(const float16_u*)(X + block_y * 333 + block_x * 128 + j * 64 + 48);
        }
    }
    float16 Y_fold_0 = Y_state_0 + Y_state_2;
    float16 Y_fold_1 = Y_state_1 + Y_state_3;
    float16 Y_fold_1_1 = Y_fold_0 + Y_fold_1;
    float8 Y_fold_2 = Y_fold_1_1.s01234567 + Y_fold_1_1.s89abcdef;
    float4 Y_fold_3 = Y_fold_2.s0123 + Y_fold_2.s4567;
    float2 Y_fold_4 = Y_fold_3.s01 + Y_fold_3.s23;
    float Y_fold_5 = Y_fold_4.s0 + Y_fold_4.s1;
    *(Y_partial + block_x * 3 + block_y) = Y_fold_5;
}

EXPORT void Y(void* const* arguments, char* scratch, long first, long last)
{
#pragma nounroll
    for (long number = first; number < last; ++number) {
        const long block[3] = {number % 3, number / 3 % 3, number / 9};
        Y_block(arguments[0], arguments[1], block);
    }
}

// 1 x 1 x 1 blocks of 1 thread, 0 bytes of shared memory
static inline __attribute__((always_inline)) void Y_combine_1_block(
    float* restrict Y,
    const float* restrict Y_partial,
    const long* restrict block)
{
    for (int i = 0; i < 3; ++i) {
        float Y_state = 0.0f;
        for (int j_part = 0; j_part < 3; ++j_part) {
            Y_state = Y_state + *(Y_partial + j_part * 3 + i);
        }
        Y[i] = Y_state;
    }
}

EXPORT void Y_combine_1(void* const* arguments, char* scratch, long first, long last)
{
#pragma nounroll
    for (long number = first; number < last; ++number) {
        const long block[3] = {number % 1, number / 1 % 1, number / 1};
        Y_combine_1_block(arguments[0], arguments[1], block);
    }
}
