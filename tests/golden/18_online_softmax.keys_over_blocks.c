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
typedef int int4 __attribute__((ext_vector_type(4)));
typedef int int8 __attribute__((ext_vector_type(8)));
#define as_float(...) __builtin_bit_cast(float, (__VA_ARGS__))
#define as_float16(...) __builtin_bit_cast(float16, (__VA_ARGS__))
#define as_float4(...) __builtin_bit_cast(float4, (__VA_ARGS__))
#define as_float8(...) __builtin_bit_cast(float8, (__VA_ARGS__))
#define as_int(...) __builtin_bit_cast(int, (__VA_ARGS__))
#define as_int16(...) __builtin_bit_cast(int16, (__VA_ARGS__))
#define as_int4(...) __builtin_bit_cast(int4, (__VA_ARGS__))
#define as_int8(...) __builtin_bit_cast(int8, (__VA_ARGS__))
#define min(...) __builtin_elementwise_min(__VA_ARGS__)
#define INFINITY __builtin_inff()
#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
typedef float float8_u __attribute__((ext_vector_type(8), aligned(4)));
typedef float float2_u __attribute__((ext_vector_type(2), aligned(4)));
typedef float float4_u __attribute__((ext_vector_type(4), aligned(4)));

static inline float8 load_first_global_float8(const float* p, long count, float8 others) {  // touches the first `count` elements only
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
    return as_float8(__builtin_ia32_loadups256_mask((const void*)(size_t)p, as_float8(others), (uchar)((1u << (count < 0 ? 0 : count > 8 ? 8 : (int)count)) - 1u)));
#elif defined(__AVX2__)
    int some = count < 0 ? 0 : count > 8 ? 8 : (int)count;
    if (!__builtin_constant_p(some)) __asm__ volatile("" : "+r"(some));
    const int8 exists = as_int8((int8){0, 1, 2, 3, 4, 5, 6, 7} < (int8)(some));
    float8 v;
    v = __builtin_ia32_maskloadps256((const void*)(size_t)(p + 0), exists);
    return exists ? as_float8(v) : others;
#else
    if (count >= 8) return *(const float8_u*)p;
    const int some = count < 0 ? 0 : (int)count;
    const float2 v2 = (float2)(some & 1 ? p[some & -2] : (float)0);
    float4 v4;
    v4.s01 = v4.s23 = v2;
    if (some & 2) v4.s01 = *(const float2_u*)(p + (some & -4));
    float8 v8;
    v8.s0123 = v8.s4567 = v4;
    if (some & 4) v8.s0123 = *(const float4_u*)(p + (some & -8));
    return (int8){0, 1, 2, 3, 4, 5, 6, 7} < (int8)(some) ? v8 : others;
#endif
}

static inline float16 maximum_float16(float16 a, float16 b) {  // NaN if either is NaN, as in NumPy
#if defined(__AVX512F__) && defined(__AVX512VL__)
    const float16 r = __builtin_ia32_maxps512(a, b, 4), s = __builtin_ia32_maxps512(b, a, 4);
    return as_float16(as_int16(r) | (as_int16(s) & 0x7fffffff));
#else
    const float16 r = a > b ? a : b;
    return a == a ? r : a;
#endif
}
typedef float float16_u __attribute__((ext_vector_type(16), aligned(4)));

static inline float16 load_first_shared_float16(const float* p, long count, float16 others) {  // touches the first `count` elements only
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

static inline float8 maximum_float8(float8 a, float8 b) {  // NaN if either is NaN, as in NumPy
#if defined(__AVX512F__) && defined(__AVX512VL__)
    const float8 r = __builtin_ia32_maxps256(a, b), s = __builtin_ia32_maxps256(b, a);
    return as_float8(as_int8(r) | (as_int8(s) & 0x7fffffff));
#else
    const float8 r = a > b ? a : b;
    return a == a ? r : a;
#endif
}

static inline float4 maximum_float4(float4 a, float4 b) {  // NaN if either is NaN, as in NumPy
#if defined(__AVX512F__) && defined(__AVX512VL__)
    const float4 r = __builtin_ia32_maxps(a, b), s = __builtin_ia32_maxps(b, a);
    return as_float4(as_int4(r) | (as_int4(s) & 0x7fffffff));
#else
    const float4 r = a > b ? a : b;
    return a == a ? r : a;
#endif
}

static inline float2 maximum_float2(float2 a, float2 b) {  // NaN if either is NaN, as in NumPy
    const float2 r = a > b ? a : b;
    return a == a ? r : a;
}

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

static inline float16 exp_float16(float16 x) {  // 2^n e^r with n whole and |r| <= log(2) / 2
#if defined(__AVX512DQ__)  // n in sixteenths, whose fraction selects a root of 2, and |r| <= log(2) / 32
    const float16 shifted = x * 1.44269504f + 786432.0f;
    const float16 n = shifted - 786432.0f;
    const float16 rest = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    const float16 most = 0.0218f;  // where n has no sixteenths, 2^n is 0 or inf and `rest` is anything; NaN is in n
    const float16 r = as_float16(__builtin_ia32_rangeps512_mask(rest, most, 2, rest, (ushort)0xffff, 4));
    float16 q = r * 1.68532133e-01f + 5.05788088e-01f;
    q = q * r + 1.01153457e+00f;
    q = q * r + 1.15345465e-02f;
    const float16 root = __builtin_ia32_permvarsf512((float16){9.88596976e-01f, 1.03236592e+00f, 1.07807267e+00f, 1.12580299e+00f, 1.17564654e+00f, 1.22769690e+00f, 1.28205168e+00f, 1.33881295e+00f, 1.39808726e+00f, 1.45998585e+00f, 1.52462494e+00f, 1.59212589e+00f, 1.66261530e+00f, 1.73622561e+00f, 1.81309485e+00f, 1.89336741e+00f}, as_int16(shifted));
    const float16 p = root * q + root;
    return as_float16(__builtin_ia32_scalefps512_mask(p, n, p, (ushort)0xffff, 4));  // times 2^n, with n rounded down
#else
    float16 y = x > 89.0f ? (float16)(89.0f) : x;
    y = y < -104.0f ? (float16)(-104.0f) : y;
    const float16 shifted = y * 1.44269504f + 12583166.0f;
    const float16 n = shifted - 12583166.0f;
    const float16 r = (y - n * 0.693359375f) + n * 2.12194440e-4f;
    float16 p = r * 1.38189388e-3f + 8.36870354e-3f;
    p = p * r + 4.16682884e-2f;
    p = p * r + 1.66665211e-1f;
    p = p * r + 4.99999940e-1f;
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    p = p * r + 1.0f;
    p = p * r + 1.0f;
#else
    p = (p * (r * r) + r) + 1.0f;
#endif
#if defined(__AVX512DQ__)
    return as_float16(__builtin_ia32_scalefps512_mask(p, n, p, (ushort)0xffff, 4));
#else
    const int16 first = as_int16(shifted) >> 1;
    return p * as_float16(first << 23) * as_float16((as_int16(shifted) - first) << 23);
#endif
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

// 2 x 1 x 1 blocks of 1 thread, 8448 bytes of shared memory
static inline __attribute__((always_inline)) void O_block(
    const float* restrict Q,
    const float* restrict K,
    const float* restrict V,
    float* restrict mix_partial,
    float* restrict peak_partial,
    float* restrict total_partial,
    float* restrict peak_shared,
    float* restrict peak_before,
    float* restrict peak_change,
    float* restrict total_shared,
    float* restrict S_shared,
    float* restrict P_shared,
    const long* restrict block)
{
    const int block_x = (int)block[0];
    float16 mix_state_0_0 = (float16)(0.0f);
    float16 mix_state_0_1 = (float16)(0.0f);
    float16 mix_state_0_2 = (float16)(0.0f);
    float16 mix_state_0_3 = (float16)(0.0f);
    float16 mix_state_0_4 = (float16)(0.0f);
    float16 mix_state_0_5 = (float16)(0.0f);
    float16 mix_state_0_6 = (float16)(0.0f);
    float16 mix_state_0_7 = (float16)(0.0f);
    float16 mix_state_1_0 = (float16)(0.0f);
    float16 mix_state_1_1 = (float16)(0.0f);
    float16 mix_state_1_2 = (float16)(0.0f);
    float16 mix_state_1_3 = (float16)(0.0f);
    float16 mix_state_1_4 = (float16)(0.0f);
    float16 mix_state_1_5 = (float16)(0.0f);
    float16 mix_state_1_6 = (float16)(0.0f);
    float16 mix_state_1_7 = (float16)(0.0f);
    for (int clear = 0; clear < 16; ++clear) {
        peak_shared[clear] = -INFINITY;
    }
    for (int clear_1 = 0; clear_1 < 16; ++clear_1) {
        peak_before[clear_1] = -INFINITY;
    }
    for (int clear_2 = 0; clear_2 < 16; ++clear_2) {
        peak_change[clear_2] = -INFINITY;
    }
    for (int clear_3 = 0; clear_3 < 16; ++clear_3) {
        total_shared[clear_3] = 0.0f;
    }
    #pragma nounroll
    for (int i = 0; i < min(16, 17 - block_x * 16); ++i) {
        #pragma nounroll
        for (int j_1 = 0; j_1 < 10; ++j_1) {
            if (j_1 * 4 < 34) {
                float8 S_state_0 = (float8)(0.0f);
                float8 S_state_1 = (float8)(0.0f);
                float8 S_state_2 = (float8)(0.0f);
                float8 S_state_3 = (float8)(0.0f);
                for (int d = 0; d < 2; ++d) {
                    if (d * 8 < 4) {
                        S_state_0 = S_state_0 + *(const float8_u*)(Q + block_x * 176 + i * 11 + d * 8) * *(const float8_u*)(K + j_1 * 44 + d * 8);
                        S_state_1 = S_state_1 + *(const float8_u*)(Q + block_x * 176 + i * 11 + d * 8) * *(const float8_u*)(K + j_1 * 44 + d * 8 + 11);
                        S_state_2 = S_state_2 + *(const float8_u*)(Q + block_x * 176 + i * 11 + d * 8) * *(const float8_u*)(K + j_1 * 44 + d * 8 + 22);
                        S_state_3 = S_state_3 + *(const float8_u*)(Q + block_x * 176 + i * 11 + d * 8) * *(const float8_u*)(K + j_1 * 44 + d * 8 + 33);
                    } else {
                        S_state_0 = (int8){0, 1, 2, 3, 4, 5, 6, 7} < (int8)(11 - d * 8) ? S_state_0 + load_first_global_float8(Q + block_x * 176 + i * 11 + d * 8, 11 - d * 8, (float8)(0.0f)) * load_first_global_float8(K + j_1 * 44 + d * 8, 11 - d * 8, (float8)(0.0f)) : S_state_0;
                        S_state_1 = (int8){0, 1, 2, 3, 4, 5, 6, 7} < (int8)(11 - d * 8) ? S_state_1 + load_first_global_float8(Q + block_x * 176 + i * 11 + d * 8, 11 - d * 8, (float8)(0.0f)) * load_first_global_float8(K + j_1 * 44 + d * 8 + 11, 11 - d * 8, (float8)(0.0f)) : S_state_1;
                        S_state_2 = (int8){0, 1, 2, 3, 4, 5, 6, 7} < (int8)(11 - d * 8) ? S_state_2 + load_first_global_float8(Q + block_x * 176 + i * 11 + d * 8, 11 - d * 8, (float8)(0.0f)) * load_first_global_float8(K + j_1 * 44 + d * 8 + 22, 11 - d * 8, (float8)(0.0f)) : S_state_2;
                        S_state_3 = (int8){0, 1, 2, 3, 4, 5, 6, 7} < (int8)(11 - d * 8) ? S_state_3 + load_first_global_float8(Q + block_x * 176 + i * 11 + d * 8, 11 - d * 8, (float8)(0.0f)) * load_first_global_float8(K + j_1 * 44 + d * 8 + 33, 11 - d * 8, (float8)(0.0f)) : S_state_3;
                    }
                }
                float4 S_fold_0 = S_state_0.s0123 + S_state_0.s4567;
                float4 S_fold_1 = S_state_1.s0123 + S_state_1.s4567;
                float4 S_fold_2 = S_state_2.s0123 + S_state_2.s4567;
                float4 S_fold_3 = S_state_3.s0123 + S_state_3.s4567;
                float2 S_fold_1_1_0 = S_fold_0.s01 + S_fold_0.s23;
                float2 S_fold_1_1_1 = S_fold_1.s01 + S_fold_1.s23;
                float2 S_fold_1_1_2 = S_fold_2.s01 + S_fold_2.s23;
                float2 S_fold_1_1_3 = S_fold_3.s01 + S_fold_3.s23;
                float S_fold_2_1_0 = S_fold_1_1_0.s0 + S_fold_1_1_0.s1;
                float S_fold_2_1_1 = S_fold_1_1_1.s0 + S_fold_1_1_1.s1;
                float S_fold_2_1_2 = S_fold_1_1_2.s0 + S_fold_1_1_2.s1;
                float S_fold_2_1_3 = S_fold_1_1_3.s0 + S_fold_1_1_3.s1;
                *(S_shared + i * 64 + j_1 * 4) = S_fold_2_1_0;
                *(S_shared + i * 64 + j_1 * 4 + 1) = S_fold_2_1_1;
                *(S_shared + i * 64 + j_1 * 4 + 2) = S_fold_2_1_2;
                *(S_shared + i * 64 + j_1 * 4 + 3) = S_fold_2_1_3;
            } else {
                float8 S_state_1_1_0 = (float8)(0.0f);
                float8 S_state_1_1_1 = (float8)(0.0f);
                float8 S_state_1_1_2 = (float8)(0.0f);
                float8 S_state_1_1_3 = (float8)(0.0f);
                for (int d_1 = 0; d_1 < 2; ++d_1) {
                    if (j_1 * 4 < 37) {
                        if (d_1 * 8 < 4) {
                            S_state_1_1_0 = S_state_1_1_0 + *(const float8_u*)(Q + block_x * 176 + i * 11 + d_1 * 8) * *(const float8_u*)(K + j_1 * 44 + d_1 * 8);
                        } else {
                            S_state_1_1_0 = (int8){0, 1, 2, 3, 4, 5, 6, 7} < (int8)(11 - d_1 * 8) ? S_state_1_1_0 + load_first_global_float8(Q + block_x * 176 + i * 11 + d_1 * 8, 11 - d_1 * 8, (float8)(0.0f)) * load_first_global_float8(K + j_1 * 44 + d_1 * 8, 11 - d_1 * 8, (float8)(0.0f)) : S_state_1_1_0;
                        }
                    }
                    if (j_1 * 4 < 36) {
                        if (d_1 * 8 < 4) {
                            S_state_1_1_1 = S_state_1_1_1 + *(const float8_u*)(Q + block_x * 176 + i * 11 + d_1 * 8) * *(const float8_u*)(K + j_1 * 44 + d_1 * 8 + 11);
                        } else {
                            S_state_1_1_1 = (int8){0, 1, 2, 3, 4, 5, 6, 7} < (int8)(11 - d_1 * 8) ? S_state_1_1_1 + load_first_global_float8(Q + block_x * 176 + i * 11 + d_1 * 8, 11 - d_1 * 8, (float8)(0.0f)) * load_first_global_float8(K + j_1 * 44 + d_1 * 8 + 11, 11 - d_1 * 8, (float8)(0.0f)) : S_state_1_1_1;
                        }
                    }
                    if (j_1 * 4 < 35) {
                        if (d_1 * 8 < 4) {
                            S_state_1_1_2 = S_state_1_1_2 + *(const float8_u*)(Q + block_x * 176 + i * 11 + d_1 * 8) * *(const float8_u*)(K + j_1 * 44 + d_1 * 8 + 22);
                        } else {
                            S_state_1_1_2 = (int8){0, 1, 2, 3, 4, 5, 6, 7} < (int8)(11 - d_1 * 8) ? S_state_1_1_2 + load_first_global_float8(Q + block_x * 176 + i * 11 + d_1 * 8, 11 - d_1 * 8, (float8)(0.0f)) * load_first_global_float8(K + j_1 * 44 + d_1 * 8 + 22, 11 - d_1 * 8, (float8)(0.0f)) : S_state_1_1_2;
                        }
                    }
                    if (j_1 * 4 < 34) {
                        if (d_1 * 8 < 4) {
                            S_state_1_1_3 = S_state_1_1_3 + *(const float8_u*)(Q + block_x * 176 + i * 11 + d_1 * 8) * *(const float8_u*)(K + j_1 * 44 + d_1 * 8 + 33);
                        } else {
                            S_state_1_1_3 = (int8){0, 1, 2, 3, 4, 5, 6, 7} < (int8)(11 - d_1 * 8) ? S_state_1_1_3 + load_first_global_float8(Q + block_x * 176 + i * 11 + d_1 * 8, 11 - d_1 * 8, (float8)(0.0f)) * load_first_global_float8(K + j_1 * 44 + d_1 * 8 + 33, 11 - d_1 * 8, (float8)(0.0f)) : S_state_1_1_3;
                        }
                    }
                }
                float4 S_fold_3_1_0 = S_state_1_1_0.s0123 + S_state_1_1_0.s4567;
                float4 S_fold_3_1_1 = S_state_1_1_1.s0123 + S_state_1_1_1.s4567;
                float4 S_fold_3_1_2 = S_state_1_1_2.s0123 + S_state_1_1_2.s4567;
                float4 S_fold_3_1_3 = S_state_1_1_3.s0123 + S_state_1_1_3.s4567;
                float2 S_fold_4_0 = S_fold_3_1_0.s01 + S_fold_3_1_0.s23;
                float2 S_fold_4_1 = S_fold_3_1_1.s01 + S_fold_3_1_1.s23;
                float2 S_fold_4_2 = S_fold_3_1_2.s01 + S_fold_3_1_2.s23;
                float2 S_fold_4_3 = S_fold_3_1_3.s01 + S_fold_3_1_3.s23;
                float S_fold_5_0 = S_fold_4_0.s0 + S_fold_4_0.s1;
                float S_fold_5_1 = S_fold_4_1.s0 + S_fold_4_1.s1;
                float S_fold_5_2 = S_fold_4_2.s0 + S_fold_4_2.s1;
                float S_fold_5_3 = S_fold_4_3.s0 + S_fold_4_3.s1;
                if (j_1 * 4 < 37) {
                    *(S_shared + i * 64 + j_1 * 4) = S_fold_5_0;
                }
                if (j_1 * 4 < 36) {
                    *(S_shared + i * 64 + j_1 * 4 + 1) = S_fold_5_1;
                }
                if (j_1 * 4 < 35) {
                    *(S_shared + i * 64 + j_1 * 4 + 2) = S_fold_5_2;
                }
                if (j_1 * 4 < 34) {
                    *(S_shared + i * 64 + j_1 * 4 + 3) = S_fold_5_3;
                }
            }
        }
    }
    for (int i_1 = 0; i_1 < min(16, 17 - block_x * 16); ++i_1) {
        float16 peak_chunk_state_0 = (float16)(-INFINITY);
        float16 peak_chunk_state_1 = (float16)(-INFINITY);
        float16 peak_chunk_state_2 = (float16)(-INFINITY);
        float16 peak_chunk_state_3 = (float16)(-INFINITY);
        peak_chunk_state_0 = maximum_float16(peak_chunk_state_0, *(const float16*)(S_shared + i_1 * 64));
        peak_chunk_state_1 = maximum_float16(peak_chunk_state_1, *(const float16*)(S_shared + i_1 * 64 + 16));
        peak_chunk_state_2 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(5) ? maximum_float16(peak_chunk_state_2, load_first_shared_float16(S_shared + i_1 * 64 + 32, 5, (float16)(0.0f))) : peak_chunk_state_2;
        float16 peak_chunk_fold_0 = maximum_float16(peak_chunk_state_0, peak_chunk_state_2);
        float16 peak_chunk_fold_1 = maximum_float16(peak_chunk_state_1, peak_chunk_state_3);
        float16 peak_chunk_fold_1_1 = maximum_float16(peak_chunk_fold_0, peak_chunk_fold_1);
        float8 peak_chunk_fold_2 = maximum_float8(peak_chunk_fold_1_1.s01234567, peak_chunk_fold_1_1.s89abcdef);
        float4 peak_chunk_fold_3 = maximum_float4(peak_chunk_fold_2.s0123, peak_chunk_fold_2.s4567);
        float2 peak_chunk_fold_4 = maximum_float2(peak_chunk_fold_3.s01, peak_chunk_fold_3.s23);
        float peak_chunk_fold_5 = maximum_float(peak_chunk_fold_4.s0, peak_chunk_fold_4.s1);
        peak_before[i_1] = peak_shared[i_1];
        peak_shared[i_1] = maximum_float(peak_shared[i_1], peak_chunk_fold_5);
        peak_change[i_1] = exp_float(peak_before[i_1] - peak_shared[i_1]);
    }
    for (int i_2 = 0; i_2 < min(16, 17 - block_x * 16); ++i_2) {
        for (int j_6 = 0; j_6 < 3; ++j_6) {
            if (j_6 * 16 < 22) {
                *(float16*)(P_shared + i_2 * 64 + j_6 * 16) = exp_float16(*(const float16*)(S_shared + i_2 * 64 + j_6 * 16) - peak_shared[i_2]);
            } else {
                if (j_6 * 16 < 37) {
                    store_first_shared_float16(P_shared + i_2 * 64 + j_6 * 16, exp_float16(load_first_shared_float16(S_shared + i_2 * 64 + j_6 * 16, 37 - j_6 * 16, (float16)(0.0f)) - peak_shared[i_2]), 37 - j_6 * 16);
                }
            }
        }
    }
    for (int i_3 = 0; i_3 < min(16, 17 - block_x * 16); ++i_3) {
        float16 total_chunk_state_0 = (float16)(0.0f);
        float16 total_chunk_state_1 = (float16)(0.0f);
        float16 total_chunk_state_2 = (float16)(0.0f);
        float16 total_chunk_state_3 = (float16)(0.0f);
        total_chunk_state_0 = total_chunk_state_0 + *(const float16*)(P_shared + i_3 * 64);
        total_chunk_state_1 = total_chunk_state_1 + *(const float16*)(P_shared + i_3 * 64 + 16);
        total_chunk_state_2 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(5) ? total_chunk_state_2 + load_first_shared_float16(P_shared + i_3 * 64 + 32, 5, (float16)(0.0f)) : total_chunk_state_2;
        float16 total_chunk_fold_0 = total_chunk_state_0 + total_chunk_state_2;
        float16 total_chunk_fold_1 = total_chunk_state_1 + total_chunk_state_3;
        float16 total_chunk_fold_1_1 = total_chunk_fold_0 + total_chunk_fold_1;
        float8 total_chunk_fold_2 = total_chunk_fold_1_1.s01234567 + total_chunk_fold_1_1.s89abcdef;
        float4 total_chunk_fold_3 = total_chunk_fold_2.s0123 + total_chunk_fold_2.s4567;
        float2 total_chunk_fold_4 = total_chunk_fold_3.s01 + total_chunk_fold_3.s23;
        float total_chunk_fold_5 = total_chunk_fold_4.s0 + total_chunk_fold_4.s1;
        total_shared[i_3] = (peak_before[i_3] == peak_shared[i_3] ? total_shared[i_3] : peak_before[i_3] == -INFINITY ? 0.0f : total_shared[i_3] * peak_change[i_3]) + total_chunk_fold_5;
    }
    mix_state_0_0 = peak_before[0] == peak_shared[0] ? mix_state_0_0 : peak_before[0] == -INFINITY ? (float16)(0.0f) : mix_state_0_0 * peak_change[0];
    if (block_x * 16 < 16) {
        mix_state_0_1 = peak_before[1] == peak_shared[1] ? mix_state_0_1 : peak_before[1] == -INFINITY ? (float16)(0.0f) : mix_state_0_1 * peak_change[1];
    }
    if (block_x * 16 < 15) {
        mix_state_0_2 = peak_before[2] == peak_shared[2] ? mix_state_0_2 : peak_before[2] == -INFINITY ? (float16)(0.0f) : mix_state_0_2 * peak_change[2];
    }
    if (block_x * 16 < 14) {
        mix_state_0_3 = peak_before[3] == peak_shared[3] ? mix_state_0_3 : peak_before[3] == -INFINITY ? (float16)(0.0f) : mix_state_0_3 * peak_change[3];
    }
    if (block_x * 16 < 13) {
        mix_state_0_4 = peak_before[4] == peak_shared[4] ? mix_state_0_4 : peak_before[4] == -INFINITY ? (float16)(0.0f) : mix_state_0_4 * peak_change[4];
    }
    if (block_x * 16 < 12) {
        mix_state_0_5 = peak_before[5] == peak_shared[5] ? mix_state_0_5 : peak_before[5] == -INFINITY ? (float16)(0.0f) : mix_state_0_5 * peak_change[5];
    }
    if (block_x * 16 < 11) {
        mix_state_0_6 = peak_before[6] == peak_shared[6] ? mix_state_0_6 : peak_before[6] == -INFINITY ? (float16)(0.0f) : mix_state_0_6 * peak_change[6];
    }
    if (block_x * 16 < 10) {
        mix_state_0_7 = peak_before[7] == peak_shared[7] ? mix_state_0_7 : peak_before[7] == -INFINITY ? (float16)(0.0f) : mix_state_0_7 * peak_change[7];
    }
    for (int j_7 = 0; j_7 < 37; ++j_7) {
        mix_state_0_0 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(11) ? mix_state_0_0 + P_shared[j_7] * load_first_global_float16(V + j_7 * 11, 11, (float16)(0.0f)) : mix_state_0_0;
        if (block_x * 16 < 16) {
            mix_state_0_1 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(11) ? mix_state_0_1 + P_shared[j_7 + 64] * load_first_global_float16(V + j_7 * 11, 11, (float16)(0.0f)) : mix_state_0_1;
        }
        if (block_x * 16 < 15) {
            mix_state_0_2 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(11) ? mix_state_0_2 + P_shared[j_7 + 128] * load_first_global_float16(V + j_7 * 11, 11, (float16)(0.0f)) : mix_state_0_2;
        }
        if (block_x * 16 < 14) {
            mix_state_0_3 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(11) ? mix_state_0_3 + P_shared[j_7 + 192] * load_first_global_float16(V + j_7 * 11, 11, (float16)(0.0f)) : mix_state_0_3;
        }
        if (block_x * 16 < 13) {
            mix_state_0_4 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(11) ? mix_state_0_4 + P_shared[j_7 + 256] * load_first_global_float16(V + j_7 * 11, 11, (float16)(0.0f)) : mix_state_0_4;
        }
        if (block_x * 16 < 12) {
            mix_state_0_5 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(11) ? mix_state_0_5 + P_shared[j_7 + 320] * load_first_global_float16(V + j_7 * 11, 11, (float16)(0.0f)) : mix_state_0_5;
        }
        if (block_x * 16 < 11) {
            mix_state_0_6 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(11) ? mix_state_0_6 + P_shared[j_7 + 384] * load_first_global_float16(V + j_7 * 11, 11, (float16)(0.0f)) : mix_state_0_6;
        }
        if (block_x * 16 < 10) {
            mix_state_0_7 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(11) ? mix_state_0_7 + P_shared[j_7 + 448] * load_first_global_float16(V + j_7 * 11, 11, (float16)(0.0f)) : mix_state_0_7;
        }
    }
    if (block_x * 16 < 9) {
        mix_state_1_0 = peak_before[8] == peak_shared[8] ? mix_state_1_0 : peak_before[8] == -INFINITY ? (float16)(0.0f) : mix_state_1_0 * peak_change[8];
    }
    if (block_x * 16 < 8) {
        mix_state_1_1 = peak_before[9] == peak_shared[9] ? mix_state_1_1 : peak_before[9] == -INFINITY ? (float16)(0.0f) : mix_state_1_1 * peak_change[9];
    }
    if (block_x * 16 < 7) {
        mix_state_1_2 = peak_before[10] == peak_shared[10] ? mix_state_1_2 : peak_before[10] == -INFINITY ? (float16)(0.0f) : mix_state_1_2 * peak_change[10];
    }
    if (block_x * 16 < 6) {
        mix_state_1_3 = peak_before[11] == peak_shared[11] ? mix_state_1_3 : peak_before[11] == -INFINITY ? (float16)(0.0f) : mix_state_1_3 * peak_change[11];
    }
    if (block_x * 16 < 5) {
        mix_state_1_4 = peak_before[12] == peak_shared[12] ? mix_state_1_4 : peak_before[12] == -INFINITY ? (float16)(0.0f) : mix_state_1_4 * peak_change[12];
    }
    if (block_x * 16 < 4) {
        mix_state_1_5 = peak_before[13] == peak_shared[13] ? mix_state_1_5 : peak_before[13] == -INFINITY ? (float16)(0.0f) : mix_state_1_5 * peak_change[13];
    }
    if (block_x * 16 < 3) {
        mix_state_1_6 = peak_before[14] == peak_shared[14] ? mix_state_1_6 : peak_before[14] == -INFINITY ? (float16)(0.0f) : mix_state_1_6 * peak_change[14];
    }
    if (block_x * 16 < 2) {
        mix_state_1_7 = peak_before[15] == peak_shared[15] ? mix_state_1_7 : peak_before[15] == -INFINITY ? (float16)(0.0f) : mix_state_1_7 * peak_change[15];
    }
    for (int j_7 = 0; j_7 < 37; ++j_7) {
        if (block_x * 16 < 9) {
            mix_state_1_0 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(11) ? mix_state_1_0 + P_shared[j_7 + 512] * load_first_global_float16(V + j_7 * 11, 11, (float16)(0.0f)) : mix_state_1_0;
        }
        if (block_x * 16 < 8) {
            mix_state_1_1 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(11) ? mix_state_1_1 + P_shared[j_7 + 576] * load_first_global_float16(V + j_7 * 11, 11, (float16)(0.0f)) : mix_state_1_1;
        }
        if (block_x * 16 < 7) {
            mix_state_1_2 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(11) ? mix_state_1_2 + P_shared[j_7 + 640] * load_first_global_float16(V + j_7 * 11, 11, (float16)(0.0f)) : mix_state_1_2;
        }
        if (block_x * 16 < 6) {
            mix_state_1_3 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(11) ? mix_state_1_3 + P_shared[j_7 + 704] * load_first_global_float16(V + j_7 * 11, 11, (float16)(0.0f)) : mix_state_1_3;
        }
        if (block_x * 16 < 5) {
            mix_state_1_4 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(11) ? mix_state_1_4 + P_shared[j_7 + 768] * load_first_global_float16(V + j_7 * 11, 11, (float16)(0.0f)) : mix_state_1_4;
        }
        if (block_x * 16 < 4) {
            mix_state_1_5 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(11) ? mix_state_1_5 + P_shared[j_7 + 832] * load_first_global_float16(V + j_7 * 11, 11, (float16)(0.0f)) : mix_state_1_5;
        }
        if (block_x * 16 < 3) {
            mix_state_1_6 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(11) ? mix_state_1_6 + P_shared[j_7 + 896] * load_first_global_float16(V + j_7 * 11, 11, (float16)(0.0f)) : mix_state_1_6;
        }
        if (block_x * 16 < 2) {
            mix_state_1_7 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(11) ? mix_state_1_7 + P_shared[j_7 + 960] * load_first_global_float16(V + j_7 * 11, 11, (float16)(0.0f)) : mix_state_1_7;
        }
    }
    {
        const int i_end_1 = min(16, 17 - block_x * 16);
        for (int i_15 = 0; i_15 < i_end_1 / 16; ++i_15) {
            *(float16_u*)(peak_partial + block_x * 16 + i_15 * 16) = *(const float16*)(peak_shared + i_15 * 16);
        }
        if (0 < i_end_1 % 16) {
            store_first_global_float16(peak_partial + block_x * 16 + i_end_1 / 16 * 16, load_first_shared_float16(peak_shared + i_end_1 / 16 * 16, i_end_1 % 16, (float16)(0.0f)), i_end_1 % 16);
        }
    }
    {
        const int i_end_2 = min(16, 17 - block_x * 16);
        for (int i_17 = 0; i_17 < i_end_2 / 16; ++i_17) {
            *(float16_u*)(total_partial + block_x * 16 + i_17 * 16) = *(const float16*)(total_shared + i_17 * 16);
        }
        if (0 < i_end_2 % 16) {
            store_first_global_float16(total_partial + block_x * 16 + i_end_2 / 16 * 16, load_first_shared_float16(total_shared + i_end_2 / 16 * 16, i_end_2 % 16, (float16)(0.0f)), i_end_2 % 16);
        }
    }
    if (block_x * 16 < 2) {
        store_first_global_float16(mix_partial + block_x * 176, mix_state_0_0, 11);
        store_first_global_float16(mix_partial + block_x * 176 + 11, mix_state_0_1, 11);
        store_first_global_float16(mix_partial + block_x * 176 + 22, mix_state_0_2, 11);
        store_first_global_float16(mix_partial + block_x * 176 + 33, mix_state_0_3, 11);
        store_first_global_float16(mix_partial + block_x * 176 + 44, mix_state_0_4, 11);
        store_first_global_float16(mix_partial + block_x * 176 + 55, mix_state_0_5, 11);
        store_first_global_float16(mix_partial + block_x * 176 + 66, mix_state_0_6, 11);
        store_first_global_float16(mix_partial + block_x * 176 + 77, mix_state_0_7, 11);
        store_first_global_float16(mix_partial + block_x * 176 + 88, mix_state_1_0, 11);
        store_first_global_float16(mix_partial + block_x * 176 + 99, mix_state_1_1, 11);
        store_first_global_float16(mix_partial + block_x * 176 + 110, mix_state_1_2, 11);
        store_first_global_float16(mix_partial + block_x * 176 + 121, mix_state_1_3, 11);
        store_first_global_float16(mix_partial + block_x * 176 + 132, mix_state_1_4, 11);
        store_first_global_float16(mix_partial + block_x * 176 + 143, mix_state_1_5, 11);
        store_first_global_float16(mix_partial + block_x * 176 + 154, mix_state_1_6, 11);
        store_first_global_float16(mix_partial + block_x * 176 + 165, mix_state_1_7, 11);
    } else {
        store_first_global_float16(mix_partial + block_x * 176, mix_state_0_0, 11);
        if (block_x * 16 < 16) {
            store_first_global_float16(mix_partial + block_x * 176 + 11, mix_state_0_1, 11);
        }
        if (block_x * 16 < 15) {
            store_first_global_float16(mix_partial + block_x * 176 + 22, mix_state_0_2, 11);
        }
        if (block_x * 16 < 14) {
            store_first_global_float16(mix_partial + block_x * 176 + 33, mix_state_0_3, 11);
        }
        if (block_x * 16 < 13) {
            store_first_global_float16(mix_partial + block_x * 176 + 44, mix_state_0_4, 11);
        }
        if (block_x * 16 < 12) {
            store_first_global_float16(mix_partial + block_x * 176 + 55, mix_state_0_5, 11);
        }
        if (block_x * 16 < 11) {
            store_first_global_float16(mix_partial + block_x * 176 + 66, mix_state_0_6, 11);
        }
        if (block_x * 16 < 10) {
            store_first_global_float16(mix_partial + block_x * 176 + 77, mix_state_0_7, 11);
        }
        if (block_x * 16 < 9) {
            store_first_global_float16(mix_partial + block_x * 176 + 88, mix_state_1_0, 11);
        }
        if (block_x * 16 < 8) {
            store_first_global_float16(mix_partial + block_x * 176 + 99, mix_state_1_1, 11);
        }
        if (block_x * 16 < 7) {
            store_first_global_float16(mix_partial + block_x * 176 + 110, mix_state_1_2, 11);
        }
        if (block_x * 16 < 6) {
            store_first_global_float16(mix_partial + block_x * 176 + 121, mix_state_1_3, 11);
        }
        if (block_x * 16 < 5) {
            store_first_global_float16(mix_partial + block_x * 176 + 132, mix_state_1_4, 11);
        }
        if (block_x * 16 < 4) {
            store_first_global_float16(mix_partial + block_x * 176 + 143, mix_state_1_5, 11);
        }
        if (block_x * 16 < 3) {
            store_first_global_float16(mix_partial + block_x * 176 + 154, mix_state_1_6, 11);
        }
        if (block_x * 16 < 2) {
            store_first_global_float16(mix_partial + block_x * 176 + 165, mix_state_1_7, 11);
        }
    }
}

EXPORT void O(void* const* arguments, char* scratch, long first, long last)
{
#pragma nounroll
    for (long number = first; number < last; ++number) {
        const long block[3] = {number % 2, number / 2 % 1, number / 2};
        O_block(arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5], (void*)(scratch + 8320), (void*)(scratch + 8192), (void*)(scratch + 8256), (void*)(scratch + 8384), (void*)(scratch + 4096), (void*)(scratch + 0), block);
    }
}

// 17 x 1 x 1 blocks of 1 thread, 68 bytes of shared memory
static inline __attribute__((always_inline)) void O_combine_1_block(
    float* restrict O,
    const float* restrict mix_partial,
    const float* restrict peak_partial,
    const float* restrict total_partial,
    float* restrict peak_shared,
    float* restrict total_shared,
    const long* restrict block)
{
    const int block_x = (int)block[0];
    float peak_state = -INFINITY;
    peak_state = maximum_float(peak_state, peak_partial[block_x]);
    peak_shared[0] = peak_state;
    float total_state = 0.0f;
    total_state = total_state + (peak_partial[block_x] == peak_shared[0] ? total_partial[block_x] : peak_partial[block_x] == -INFINITY ? 0.0f : total_partial[block_x] * exp_float(peak_partial[block_x] - peak_shared[0]));
    total_shared[0] = total_state;
    for (int e = 0; e < 11; ++e) {
        float mix_state = 0.0f;
        mix_state = mix_state + (peak_partial[block_x] == peak_shared[0] ? *(mix_partial + block_x * 11 + e) : peak_partial[block_x] == -INFINITY ? 0.0f : *(mix_partial + block_x * 11 + e) * exp_float(peak_partial[block_x] - peak_shared[0]));
        *(O + block_x * 11 + e) = mix_state / total_shared[0];
    }
}

EXPORT void O_combine_1(void* const* arguments, char* scratch, long first, long last)
{
#pragma nounroll
    for (long number = first; number < last; ++number) {
        const long block[3] = {number % 17, number / 17 % 1, number / 17};
        O_combine_1_block(arguments[0], arguments[1], arguments[2], arguments[3], (void*)(scratch + 0), (void*)(scratch + 64), block);
    }
}
