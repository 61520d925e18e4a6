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
#define max(...) __builtin_elementwise_max(__VA_ARGS__)
#define min(...) __builtin_elementwise_min(__VA_ARGS__)
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

static inline void store_first_shared_float16(float* p, float16 v, long count) {  // touches the first `count` elements only
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
    __builtin_ia32_storeups512_mask((void*)(size_t)p, as_float16(v), (ushort)((1u << (count < 0 ? 0 : count > 16 ? 16 : (int)count)) - 1u));
    return;
#else
    if (count >= 16) {
        *(float16_u*)p = v;
        return;
    }
    const int some = count < 0 ? 0 : (int)count;
    if (some & 8) *(float8_u*)(p + (some & -16)) = v.s01234567;
    const float8 v8 = some & 8 ? v.s89abcdef : v.s01234567;
    if (some & 4) *(float4_u*)(p + (some & -8)) = v8.s0123;
    const float4 v4 = some & 4 ? v8.s4567 : v8.s0123;
    if (some & 2) *(float2_u*)(p + (some & -4)) = v4.s01;
    const float2 v2 = some & 2 ? v4.s23 : v4.s01;
    if (some & 1) p[some & -2] = v2.s0;
#endif
}

static inline void store_first_global_float16(float* p, float16 v, long count) {  // touches the first `count` elements only
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
    __builtin_ia32_storeups512_mask((void*)(size_t)p, as_float16(v), (ushort)((1u << (count < 0 ? 0 : count > 16 ? 16 : (int)count)) - 1u));
    return;
#else
    if (count >= 16) {
        *(float16_u*)p = v;
        return;
    }
    const int some = count < 0 ? 0 : (int)count;
    if (some & 8) *(float8_u*)(p + (some & -16)) = v.s01234567;
    const float8 v8 = some & 8 ? v.s89abcdef : v.s01234567;
    if (some & 4) *(float4_u*)(p + (some & -8)) = v8.s0123;
    const float4 v4 = some & 4 ? v8.s4567 : v8.s0123;
    if (some & 2) *(float2_u*)(p + (some & -4)) = v4.s01;
    const float2 v2 = some & 2 ? v4.s23 : v4.s01;
    if (some & 1) p[some & -2] = v2.s0;
#endif
}

// 5 x 2 x 1 blocks of 1 thread, 252 bytes of shared memory
static inline __attribute__((always_inline)) void Z_block(
    const float* restrict X,
    const float* restrict W,
    float* restrict Z,
    float* restrict X_shared,
    const long* restrict block)
{
    const int block_x = (int)block[0];
    const int block_y = (int)block[1];
    for (int h = 0; h < 3; ++h) {
        if (max(0, 1 - block_x) <= h && h < min(3, 6 - block_x)) {
            for (int w_2 = 0; w_2 < 3; ++w_2) {
                *(X_shared + h * 21 + w_2) = 0.0f;
            }
            store_first_shared_float16(X_shared + h * 21 + 3, load_first_global_float16(X + (block_y * 75 + block_x * 15 + h * 15 - 15), 15, (float16)(0.0f)), 15);
            for (int w_4 = 0; w_4 < 3; ++w_4) {
                *(X_shared + h * 21 + w_4 + 18) = 0.0f;
            }
        } else {
            *(float16_u*)(X_shared + h * 21) = (float16)(0.0f);
            *(float16_u*)(X_shared + h * 21 + 5) = (float16)(0.0f);
        }
    }
    for (int q = 0; q < 3; ++q) {
        float16 Z_state_0 = (float16)(0.0f);
        float16 Z_state_1 = (float16)(0.0f);
        for (int r = 0; r < 3; ++r) {
            for (int s = 0; s < 3; ++s) {
                for (int c_1 = 0; c_1 < 3; ++c_1) {
                    float16 W_register = load_first_global_float16(W + r * 63 + s * 21 + c_1 * 7, 7, (float16)(0.0f));
                    Z_state_0 = Z_state_0 + *(X_shared + r * 21 + q * 6 + s * 3 + c_1) * W_register;
                    if (q * 2 < 4) {
                        Z_state_1 = Z_state_1 + *(X_shared + r * 21 + q * 6 + s * 3 + c_1 + 3) * W_register;
                    }
                }
            }
        }
        store_first_global_float16(Z + block_y * 175 + block_x * 35 + q * 14, Z_state_0, 7);
        if (q * 2 < 4) {
            store_first_global_float16(Z + block_y * 175 + block_x * 35 + q * 14 + 7, Z_state_1, 7);
        }
    }
}

EXPORT void Z(void* const* arguments, char* scratch, long first, long last)
{
#pragma nounroll
    for (long number = first; number < last; ++number) {
        const long block[3] = {number % 5, number / 5 % 2, number / 10};
        Z_block(arguments[0], arguments[1], arguments[2], (void*)(scratch + 0), block);
    }
}
