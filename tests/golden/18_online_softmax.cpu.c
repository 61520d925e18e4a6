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

static inline float16 maximum_float16(float16 a, float16 b) {  // NaN if either is NaN, as in NumPy
#if defined(__AVX512F__) && defined(__AVX512VL__)
    const float16 r = __builtin_ia32_maxps512(a, b, 4), s = __builtin_ia32_maxps512(b, a, 4);
    return as_float16(as_int16(r) | (as_int16(s) & 0x7fffffff));
#else
    const float16 r = a > b ? a : b;
    return a == a ? r : a;
#endif
}

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

static inline float16 quotients_float16(float16 x, float d) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    if (d >= 0x1p-126f && d <= 0x1p126f) {
        const float inverse = 1 / d;
        const float16 product = x * inverse;
        const float16 below = product > 0x1.fffffep127f ? (float16)(0x1.fffffep127f) : product;
        const float16 first = below < -0x1.fffffep127f ? (float16)(-0x1.fffffep127f) : below;
        const float16 excess = first * d - x;
        return first - excess * inverse;
    }
#endif
    return x / d;
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

// 2 x 1 x 1 blocks of 1 thread, 11264 bytes of shared memory
static inline __attribute__((always_inline)) void O_block(
    const float* restrict Q,
    const float* restrict K,
    const float* restrict V,
    float* restrict O,
    float* restrict peak_shared,
    float* restrict peak_before,
    float* restrict peak_change,
    float* restrict total_shared,
    float* restrict K_shared,
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
    for (int j_11 = 0; j_11 < 3; ++j_11) {
        float16 K_rows_1_16_0 = load_first_global_float16(K + min(j_11 * 16, 21) * 11, 11, (float16)(0.0f));
        float16 K_rows_1_16_1 = load_first_global_float16(K + min(j_11 * 16, 21) * 11 + 11, 11, (float16)(0.0f));
        float16 K_rows_1_16_2 = load_first_global_float16(K + min(j_11 * 16, 21) * 11 + 22, 11, (float16)(0.0f));
        float16 K_rows_1_16_3 = load_first_global_float16(K + min(j_11 * 16, 21) * 11 + 33, 11, (float16)(0.0f));
        float16 K_rows_1_16_4 = load_first_global_float16(K + min(j_11 * 16, 21) * 11 + 44, 11, (float16)(0.0f));
        float16 K_rows_1_16_5 = load_first_global_float16(K + min(j_11 * 16, 21) * 11 + 55, 11, (float16)(0.0f));
        float16 K_rows_1_16_6 = load_first_global_float16(K + min(j_11 * 16, 21) * 11 + 66, 11, (float16)(0.0f));
        float16 K_rows_1_16_7 = load_first_global_float16(K + min(j_11 * 16, 21) * 11 + 77, 11, (float16)(0.0f));
        float16 K_rows_1_16_8 = load_first_global_float16(K + min(j_11 * 16, 21) * 11 + 88, 11, (float16)(0.0f));
        float16 K_rows_1_16_9 = load_first_global_float16(K + min(j_11 * 16, 21) * 11 + 99, 11, (float16)(0.0f));
        float16 K_rows_1_16_10 = load_first_global_float16(K + min(j_11 * 16, 21) * 11 + 110, 11, (float16)(0.0f));
        float16 K_rows_1_16_11 = load_first_global_float16(K + min(j_11 * 16, 21) * 11 + 121, 11, (float16)(0.0f));
        float16 K_rows_1_16_12 = load_first_global_float16(K + min(j_11 * 16, 21) * 11 + 132, 11, (float16)(0.0f));
        float16 K_rows_1_16_13 = load_first_global_float16(K + min(j_11 * 16, 21) * 11 + 143, 11, (float16)(0.0f));
        float16 K_rows_1_16_14 = load_first_global_float16(K + min(j_11 * 16, 21) * 11 + 154, 11, (float16)(0.0f));
        float16 K_rows_1_16_15 = load_first_global_float16(K + min(j_11 * 16, 21) * 11 + 165, 11, (float16)(0.0f));
        float16 K_rows_1_step_0 = __builtin_shufflevector(K_rows_1_16_0, K_rows_1_16_1, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
        float16 K_rows_1_step_1 = __builtin_shufflevector(K_rows_1_16_0, K_rows_1_16_1, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
        float16 K_rows_1_step_2 = __builtin_shufflevector(K_rows_1_16_2, K_rows_1_16_3, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
        float16 K_rows_1_step_3 = __builtin_shufflevector(K_rows_1_16_2, K_rows_1_16_3, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
        float16 K_rows_1_step_4 = __builtin_shufflevector(K_rows_1_16_4, K_rows_1_16_5, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
        float16 K_rows_1_step_5 = __builtin_shufflevector(K_rows_1_16_4, K_rows_1_16_5, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
        float16 K_rows_1_step_6 = __builtin_shufflevector(K_rows_1_16_6, K_rows_1_16_7, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
        float16 K_rows_1_step_7 = __builtin_shufflevector(K_rows_1_16_6, K_rows_1_16_7, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
        float16 K_rows_1_step_8 = __builtin_shufflevector(K_rows_1_16_8, K_rows_1_16_9, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
        float16 K_rows_1_step_9 = __builtin_shufflevector(K_rows_1_16_8, K_rows_1_16_9, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
        float16 K_rows_1_step_10 = __builtin_shufflevector(K_rows_1_16_10, K_rows_1_16_11, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
        float16 K_rows_1_step_11 = __builtin_shufflevector(K_rows_1_16_10, K_rows_1_16_11, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
        float16 K_rows_1_step_12 = __builtin_shufflevector(K_rows_1_16_12, K_rows_1_16_13, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
        float16 K_rows_1_step_13 = __builtin_shufflevector(K_rows_1_16_12, K_rows_1_16_13, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
        float16 K_rows_1_step_14 = __builtin_shufflevector(K_rows_1_16_14, K_rows_1_16_15, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
        float16 K_rows_1_step_15 = __builtin_shufflevector(K_rows_1_16_14, K_rows_1_16_15, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
        float16 K_rows_1_step_1_1_0 = __builtin_shufflevector(K_rows_1_step_0, K_rows_1_step_2, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
        float16 K_rows_1_step_1_1_1 = __builtin_shufflevector(K_rows_1_step_1, K_rows_1_step_3, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
        float16 K_rows_1_step_1_1_2 = __builtin_shufflevector(K_rows_1_step_0, K_rows_1_step_2, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
        float16 K_rows_1_step_1_1_3 = __builtin_shufflevector(K_rows_1_step_1, K_rows_1_step_3, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
        float16 K_rows_1_step_1_1_4 = __builtin_shufflevector(K_rows_1_step_4, K_rows_1_step_6, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
        float16 K_rows_1_step_1_1_5 = __builtin_shufflevector(K_rows_1_step_5, K_rows_1_step_7, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
        float16 K_rows_1_step_1_1_6 = __builtin_shufflevector(K_rows_1_step_4, K_rows_1_step_6, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
        float16 K_rows_1_step_1_1_7 = __builtin_shufflevector(K_rows_1_step_5, K_rows_1_step_7, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
        float16 K_rows_1_step_1_1_8 = __builtin_shufflevector(K_rows_1_step_8, K_rows_1_step_10, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
        float16 K_rows_1_step_1_1_9 = __builtin_shufflevector(K_rows_1_step_9, K_rows_1_step_11, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
        float16 K_rows_1_step_1_1_10 = __builtin_shufflevector(K_rows_1_step_8, K_rows_1_step_10, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
        float16 K_rows_1_step_1_1_11 = __builtin_shufflevector(K_rows_1_step_9, K_rows_1_step_11, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
        float16 K_rows_1_step_1_1_12 = __builtin_shufflevector(K_rows_1_step_12, K_rows_1_step_14, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
        float16 K_rows_1_step_1_1_13 = __builtin_shufflevector(K_rows_1_step_13, K_rows_1_step_15, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
        float16 K_rows_1_step_1_1_14 = __builtin_shufflevector(K_rows_1_step_12, K_rows_1_step_14, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
        float16 K_rows_1_step_1_1_15 = __builtin_shufflevector(K_rows_1_step_13, K_rows_1_step_15, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
        float16 K_rows_1_step_2_1_0 = __builtin_shufflevector(K_rows_1_step_1_1_0, K_rows_1_step_1_1_4, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
        float16 K_rows_1_step_2_1_1 = __builtin_shufflevector(K_rows_1_step_1_1_1, K_rows_1_step_1_1_5, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
        float16 K_rows_1_step_2_1_2 = __builtin_shufflevector(K_rows_1_step_1_1_2, K_rows_1_step_1_1_6, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
        float16 K_rows_1_step_2_1_3 = __builtin_shufflevector(K_rows_1_step_1_1_3, K_rows_1_step_1_1_7, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
        float16 K_rows_1_step_2_1_4 = __builtin_shufflevector(K_rows_1_step_1_1_0, K_rows_1_step_1_1_4, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
        float16 K_rows_1_step_2_1_5 = __builtin_shufflevector(K_rows_1_step_1_1_1, K_rows_1_step_1_1_5, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
        float16 K_rows_1_step_2_1_6 = __builtin_shufflevector(K_rows_1_step_1_1_2, K_rows_1_step_1_1_6, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
        float16 K_rows_1_step_2_1_7 = __builtin_shufflevector(K_rows_1_step_1_1_3, K_rows_1_step_1_1_7, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
        float16 K_rows_1_step_2_1_8 = __builtin_shufflevector(K_rows_1_step_1_1_8, K_rows_1_step_1_1_12, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
        float16 K_rows_1_step_2_1_9 = __builtin_shufflevector(K_rows_1_step_1_1_9, K_rows_1_step_1_1_13, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
        float16 K_rows_1_step_2_1_10 = __builtin_shufflevector(K_rows_1_step_1_1_10, K_rows_1_step_1_1_14, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
        float16 K_rows_1_step_2_1_11 = __builtin_shufflevector(K_rows_1_step_1_1_11, K_rows_1_step_1_1_15, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
        float16 K_rows_1_step_2_1_12 = __builtin_shufflevector(K_rows_1_step_1_1_8, K_rows_1_step_1_1_12, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
        float16 K_rows_1_step_2_1_13 = __builtin_shufflevector(K_rows_1_step_1_1_9, K_rows_1_step_1_1_13, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
        float16 K_rows_1_step_2_1_14 = __builtin_shufflevector(K_rows_1_step_1_1_10, K_rows_1_step_1_1_14, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
        float16 K_rows_1_step_2_1_15 = __builtin_shufflevector(K_rows_1_step_1_1_11, K_rows_1_step_1_1_15, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
        float16 K_rows_1_turned_0 = __builtin_shufflevector(K_rows_1_step_2_1_0, K_rows_1_step_2_1_8, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
        float16 K_rows_1_turned_1 = __builtin_shufflevector(K_rows_1_step_2_1_1, K_rows_1_step_2_1_9, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
        float16 K_rows_1_turned_2 = __builtin_shufflevector(K_rows_1_step_2_1_2, K_rows_1_step_2_1_10, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
        float16 K_rows_1_turned_3 = __builtin_shufflevector(K_rows_1_step_2_1_3, K_rows_1_step_2_1_11, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
        float16 K_rows_1_turned_4 = __builtin_shufflevector(K_rows_1_step_2_1_4, K_rows_1_step_2_1_12, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
        float16 K_rows_1_turned_5 = __builtin_shufflevector(K_rows_1_step_2_1_5, K_rows_1_step_2_1_13, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
        float16 K_rows_1_turned_6 = __builtin_shufflevector(K_rows_1_step_2_1_6, K_rows_1_step_2_1_14, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
        float16 K_rows_1_turned_7 = __builtin_shufflevector(K_rows_1_step_2_1_7, K_rows_1_step_2_1_15, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
        float16 K_rows_1_turned_8 = __builtin_shufflevector(K_rows_1_step_2_1_0, K_rows_1_step_2_1_8, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
        float16 K_rows_1_turned_9 = __builtin_shufflevector(K_rows_1_step_2_1_1, K_rows_1_step_2_1_9, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
        float16 K_rows_1_turned_10 = __builtin_shufflevector(K_rows_1_step_2_1_2, K_rows_1_step_2_1_10, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
        float16 K_rows_1_turned_11 = __builtin_shufflevector(K_rows_1_step_2_1_3, K_rows_1_step_2_1_11, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
        float16 K_rows_1_turned_12 = __builtin_shufflevector(K_rows_1_step_2_1_4, K_rows_1_step_2_1_12, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
        float16 K_rows_1_turned_13 = __builtin_shufflevector(K_rows_1_step_2_1_5, K_rows_1_step_2_1_13, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
        float16 K_rows_1_turned_14 = __builtin_shufflevector(K_rows_1_step_2_1_6, K_rows_1_step_2_1_14, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
        float16 K_rows_1_turned_15 = __builtin_shufflevector(K_rows_1_step_2_1_7, K_rows_1_step_2_1_15, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
        *(float16_u*)(K_shared + min(j_11 * 16, 21)) = K_rows_1_turned_0;
        *(float16_u*)(K_shared + min(j_11 * 16, 21) + 64) = K_rows_1_turned_1;
        *(float16_u*)(K_shared + min(j_11 * 16, 21) + 128) = K_rows_1_turned_2;
        *(float16_u*)(K_shared + min(j_11 * 16, 21) + 192) = K_rows_1_turned_3;
        *(float16_u*)(K_shared + min(j_11 * 16, 21) + 256) = K_rows_1_turned_4;
        *(float16_u*)(K_shared + min(j_11 * 16, 21) + 320) = K_rows_1_turned_5;
        *(float16_u*)(K_shared + min(j_11 * 16, 21) + 384) = K_rows_1_turned_6;
        *(float16_u*)(K_shared + min(j_11 * 16, 21) + 448) = K_rows_1_turned_7;
        *(float16_u*)(K_shared + min(j_11 * 16, 21) + 512) = K_rows_1_turned_8;
        *(float16_u*)(K_shared + min(j_11 * 16, 21) + 576) = K_rows_1_turned_9;
        *(float16_u*)(K_shared + min(j_11 * 16, 21) + 640) = K_rows_1_turned_10;
    }
    for (int d_5 = 0; d_5 < 11; ++d_5) {
        *(float16_u*)(K_shared + d_5 * 64 + 37) = (float16)(0.0f);
        *(float16*)(K_shared + d_5 * 64 + 48) = (float16)(0.0f);
    }
    #pragma nounroll
    for (int j_1 = 0; j_1 < 2; ++j_1) {
        #pragma nounroll
        for (int i = 0; i < min(2, 3 - block_x * 2); ++i) {
            if (block_x * 16 + i * 8 < 10) {
                float16 S_state_0_0 = (float16)(0.0f);
                float16 S_state_0_1 = (float16)(0.0f);
                float16 S_state_1_0 = (float16)(0.0f);
                float16 S_state_1_1 = (float16)(0.0f);
                float16 S_state_2_0 = (float16)(0.0f);
                float16 S_state_2_1 = (float16)(0.0f);
                float16 S_state_3_0 = (float16)(0.0f);
                float16 S_state_3_1 = (float16)(0.0f);
                float16 S_state_4_0 = (float16)(0.0f);
                float16 S_state_4_1 = (float16)(0.0f);
                float16 S_state_5_0 = (float16)(0.0f);
                float16 S_state_5_1 = (float16)(0.0f);
                float16 S_state_6_0 = (float16)(0.0f);
                float16 S_state_6_1 = (float16)(0.0f);
                float16 S_state_7_0 = (float16)(0.0f);
                float16 S_state_7_1 = (float16)(0.0f);
                for (int d_1 = 0; d_1 < 11; ++d_1) {
                    S_state_0_0 = S_state_0_0 + *(Q + block_x * 176 + i * 88 + d_1) * *(const float16*)(K_shared + d_1 * 64 + j_1 * 32);
                    S_state_0_1 = S_state_0_1 + *(Q + block_x * 176 + i * 88 + d_1) * *(const float16*)(K_shared + d_1 * 64 + j_1 * 32 + 16);
                    S_state_1_0 = S_state_1_0 + *(Q + block_x * 176 + i * 88 + d_1 + 11) * *(const float16*)(K_shared + d_1 * 64 + j_1 * 32);
                    S_state_1_1 = S_state_1_1 + *(Q + block_x * 176 + i * 88 + d_1 + 11) * *(const float16*)(K_shared + d_1 * 64 + j_1 * 32 + 16);
                    S_state_2_0 = S_state_2_0 + *(Q + block_x * 176 + i * 88 + d_1 + 22) * *(const float16*)(K_shared + d_1 * 64 + j_1 * 32);
                    S_state_2_1 = S_state_2_1 + *(Q + block_x * 176 + i * 88 + d_1 + 22) * *(const float16*)(K_shared + d_1 * 64 + j_1 * 32 + 16);
                    S_state_3_0 = S_state_3_0 + *(Q + block_x * 176 + i * 88 + d_1 + 33) * *(const float16*)(K_shared + d_1 * 64 + j_1 * 32);
                    S_state_3_1 = S_state_3_1 + *(Q + block_x * 176 + i * 88 + d_1 + 33) * *(const float16*)(K_shared + d_1 * 64 + j_1 * 32 + 16);
                    S_state_4_0 = S_state_4_0 + *(Q + block_x * 176 + i * 88 + d_1 + 44) * *(const float16*)(K_shared + d_1 * 64 + j_1 * 32);
                    S_state_4_1 = S_state_4_1 + *(Q + block_x * 176 + i * 88 + d_1 + 44) * *(const float16*)(K_shared + d_1 * 64 + j_1 * 32 + 16);
                    S_state_5_0 = S_state_5_0 + *(Q + block_x * 176 + i * 88 + d_1 + 55) * *(const float16*)(K_shared + d_1 * 64 + j_1 * 32);
                    S_state_5_1 = S_state_5_1 + *(Q + block_x * 176 + i * 88 + d_1 + 55) * *(const float16*)(K_shared + d_1 * 64 + j_1 * 32 + 16);
                    S_state_6_0 = S_state_6_0 + *(Q + block_x * 176 + i * 88 + d_1 + 66) * *(const float16*)(K_shared + d_1 * 64 + j_1 * 32);
                    S_state_6_1 = S_state_6_1 + *(Q + block_x * 176 + i * 88 + d_1 + 66) * *(const float16*)(K_shared + d_1 * 64 + j_1 * 32 + 16);
                    S_state_7_0 = S_state_7_0 + *(Q + block_x * 176 + i * 88 + d_1 + 77) * *(const float16*)(K_shared + d_1 * 64 + j_1 * 32);
                    S_state_7_1 = S_state_7_1 + *(Q + block_x * 176 + i * 88 + d_1 + 77) * *(const float16*)(K_shared + d_1 * 64 + j_1 * 32 + 16);
                }
                if (j_1 * 32 < 6) {
                    *(float16*)(S_shared + i * 512 + j_1 * 32) = S_state_0_0;
                    *(float16*)(S_shared + i * 512 + j_1 * 32 + 16) = S_state_0_1;
                    *(float16*)(S_shared + i * 512 + j_1 * 32 + 64) = S_state_1_0;
                    *(float16*)(S_shared + i * 512 + j_1 * 32 + 80) = S_state_1_1;
                    *(float16*)(S_shared + i * 512 + j_1 * 32 + 128) = S_state_2_0;
                    *(float16*)(S_shared + i * 512 + j_1 * 32 + 144) = S_state_2_1;
                    *(float16*)(S_shared + i * 512 + j_1 * 32 + 192) = S_state_3_0;
                    *(float16*)(S_shared + i * 512 + j_1 * 32 + 208) = S_state_3_1;
                    *(float16*)(S_shared + i * 512 + j_1 * 32 + 256) = S_state_4_0;
                    *(float16*)(S_shared + i * 512 + j_1 * 32 + 272) = S_state_4_1;
                    *(float16*)(S_shared + i * 512 + j_1 * 32 + 320) = S_state_5_0;
                    *(float16*)(S_shared + i * 512 + j_1 * 32 + 336) = S_state_5_1;
                    *(float16*)(S_shared + i * 512 + j_1 * 32 + 384) = S_state_6_0;
                    *(float16*)(S_shared + i * 512 + j_1 * 32 + 400) = S_state_6_1;
                    *(float16*)(S_shared + i * 512 + j_1 * 32 + 448) = S_state_7_0;
                    *(float16*)(S_shared + i * 512 + j_1 * 32 + 464) = S_state_7_1;
                } else {
                    if (j_1 * 32 < 22) {
                        *(float16*)(S_shared + i * 512 + j_1 * 32) = S_state_0_0;
                    } else {
                        store_first_shared_float16(S_shared + i * 512 + j_1 * 32, S_state_0_0, 37 - j_1 * 32);
                    }
                    if (j_1 * 32 < 6) {
                        *(float16*)(S_shared + i * 512 + j_1 * 32 + 16) = S_state_0_1;
                    } else {
                        if (j_1 * 32 < 21) {
                            store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 16, S_state_0_1, 21 - j_1 * 32);
                        }
                    }
                    if (j_1 * 32 < 22) {
                        *(float16*)(S_shared + i * 512 + j_1 * 32 + 64) = S_state_1_0;
                    } else {
                        store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 64, S_state_1_0, 37 - j_1 * 32);
                    }
                    if (j_1 * 32 < 6) {
                        *(float16*)(S_shared + i * 512 + j_1 * 32 + 80) = S_state_1_1;
                    } else {
                        if (j_1 * 32 < 21) {
                            store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 80, S_state_1_1, 21 - j_1 * 32);
                        }
                    }
                    if (j_1 * 32 < 22) {
                        *(float16*)(S_shared + i * 512 + j_1 * 32 + 128) = S_state_2_0;
                    } else {
                        store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 128, S_state_2_0, 37 - j_1 * 32);
                    }
                    if (j_1 * 32 < 6) {
                        *(float16*)(S_shared + i * 512 + j_1 * 32 + 144) = S_state_2_1;
                    } else {
                        if (j_1 * 32 < 21) {
                            store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 144, S_state_2_1, 21 - j_1 * 32);
                        }
                    }
                    if (j_1 * 32 < 22) {
                        *(float16*)(S_shared + i * 512 + j_1 * 32 + 192) = S_state_3_0;
                    } else {
                        store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 192, S_state_3_0, 37 - j_1 * 32);
                    }
                    if (j_1 * 32 < 6) {
                        *(float16*)(S_shared + i * 512 + j_1 * 32 + 208) = S_state_3_1;
                    } else {
                        if (j_1 * 32 < 21) {
                            store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 208, S_state_3_1, 21 - j_1 * 32);
                        }
                    }
                    if (j_1 * 32 < 22) {
                        *(float16*)(S_shared + i * 512 + j_1 * 32 + 256) = S_state_4_0;
                    } else {
                        store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 256, S_state_4_0, 37 - j_1 * 32);
                    }
                    if (j_1 * 32 < 6) {
                        *(float16*)(S_shared + i * 512 + j_1 * 32 + 272) = S_state_4_1;
                    } else {
                        if (j_1 * 32 < 21) {
                            store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 272, S_state_4_1, 21 - j_1 * 32);
                        }
                    }
                    if (j_1 * 32 < 22) {
                        *(float16*)(S_shared + i * 512 + j_1 * 32 + 320) = S_state_5_0;
                    } else {
                        store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 320, S_state_5_0, 37 - j_1 * 32);
                    }
                    if (j_1 * 32 < 6) {
                        *(float16*)(S_shared + i * 512 + j_1 * 32 + 336) = S_state_5_1;
                    } else {
                        if (j_1 * 32 < 21) {
                            store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 336, S_state_5_1, 21 - j_1 * 32);
                        }
                    }
                    if (j_1 * 32 < 22) {
                        *(float16*)(S_shared + i * 512 + j_1 * 32 + 384) = S_state_6_0;
                    } else {
                        store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 384, S_state_6_0, 37 - j_1 * 32);
                    }
                    if (j_1 * 32 < 6) {
                        *(float16*)(S_shared + i * 512 + j_1 * 32 + 400) = S_state_6_1;
                    } else {
                        if (j_1 * 32 < 21) {
                            store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 400, S_state_6_1, 21 - j_1 * 32);
                        }
                    }
                    if (j_1 * 32 < 22) {
                        *(float16*)(S_shared + i * 512 + j_1 * 32 + 448) = S_state_7_0;
                    } else {
                        store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 448, S_state_7_0, 37 - j_1 * 32);
                    }
                    if (j_1 * 32 < 6) {
                        *(float16*)(S_shared + i * 512 + j_1 * 32 + 464) = S_state_7_1;
                    } else {
                        if (j_1 * 32 < 21) {
                            store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 464, S_state_7_1, 21 - j_1 * 32);
                        }
                    }
                }
            } else {
                float16 S_state_1_0_0 = (float16)(0.0f);
                float16 S_state_1_0_1 = (float16)(0.0f);
                float16 S_state_1_1_0 = (float16)(0.0f);
                float16 S_state_1_1_1 = (float16)(0.0f);
                float16 S_state_1_2_0 = (float16)(0.0f);
                float16 S_state_1_2_1 = (float16)(0.0f);
                float16 S_state_1_3_0 = (float16)(0.0f);
                float16 S_state_1_3_1 = (float16)(0.0f);
                float16 S_state_1_4_0 = (float16)(0.0f);
                float16 S_state_1_4_1 = (float16)(0.0f);
                float16 S_state_1_5_0 = (float16)(0.0f);
                float16 S_state_1_5_1 = (float16)(0.0f);
                float16 S_state_1_6_0 = (float16)(0.0f);
                float16 S_state_1_6_1 = (float16)(0.0f);
                float16 S_state_1_7_0 = (float16)(0.0f);
                float16 S_state_1_7_1 = (float16)(0.0f);
                for (int d_2 = 0; d_2 < 11; ++d_2) {
                    if (block_x * 16 + i * 8 < 17) {
                        S_state_1_0_0 = S_state_1_0_0 + *(Q + block_x * 176 + i * 88 + d_2) * *(const float16*)(K_shared + d_2 * 64 + j_1 * 32);
                        S_state_1_0_1 = S_state_1_0_1 + *(Q + block_x * 176 + i * 88 + d_2) * *(const float16*)(K_shared + d_2 * 64 + j_1 * 32 + 16);
                    }
                    if (block_x * 16 + i * 8 < 16) {
                        S_state_1_1_0 = S_state_1_1_0 + *(Q + block_x * 176 + i * 88 + d_2 + 11) * *(const float16*)(K_shared + d_2 * 64 + j_1 * 32);
                        S_state_1_1_1 = S_state_1_1_1 + *(Q + block_x * 176 + i * 88 + d_2 + 11) * *(const float16*)(K_shared + d_2 * 64 + j_1 * 32 + 16);
                    }
                    if (block_x * 16 + i * 8 < 15) {
                        S_state_1_2_0 = S_state_1_2_0 + *(Q + block_x * 176 + i * 88 + d_2 + 22) * *(const float16*)(K_shared + d_2 * 64 + j_1 * 32);
                        S_state_1_2_1 = S_state_1_2_1 + *(Q + block_x * 176 + i * 88 + d_2 + 22) * *(const float16*)(K_shared + d_2 * 64 + j_1 * 32 + 16);
                    }
                    if (block_x * 16 + i * 8 < 14) {
                        S_state_1_3_0 = S_state_1_3_0 + *(Q + block_x * 176 + i * 88 + d_2 + 33) * *(const float16*)(K_shared + d_2 * 64 + j_1 * 32);
                        S_state_1_3_1 = S_state_1_3_1 + *(Q + block_x * 176 + i * 88 + d_2 + 33) * *(const float16*)(K_shared + d_2 * 64 + j_1 * 32 + 16);
                    }
                    if (block_x * 16 + i * 8 < 13) {
                        S_state_1_4_0 = S_state_1_4_0 + *(Q + block_x * 176 + i * 88 + d_2 + 44) * *(const float16*)(K_shared + d_2 * 64 + j_1 * 32);
                        S_state_1_4_1 = S_state_1_4_1 + *(Q + block_x * 176 + i * 88 + d_2 + 44) * *(const float16*)(K_shared + d_2 * 64 + j_1 * 32 + 16);
                    }
                    if (block_x * 16 + i * 8 < 12) {
                        S_state_1_5_0 = S_state_1_5_0 + *(Q + block_x * 176 + i * 88 + d_2 + 55) * *(const float16*)(K_shared + d_2 * 64 + j_1 * 32);
                        S_state_1_5_1 = S_state_1_5_1 + *(Q + block_x * 176 + i * 88 + d_2 + 55) * *(const float16*)(K_shared + d_2 * 64 + j_1 * 32 + 16);
                    }
                    if (block_x * 16 + i * 8 < 11) {
                        S_state_1_6_0 = S_state_1_6_0 + *(Q + block_x * 176 + i * 88 + d_2 + 66) * *(const float16*)(K_shared + d_2 * 64 + j_1 * 32);
                        S_state_1_6_1 = S_state_1_6_1 + *(Q + block_x * 176 + i * 88 + d_2 + 66) * *(const float16*)(K_shared + d_2 * 64 + j_1 * 32 + 16);
                    }
                    if (block_x * 16 + i * 8 < 10) {
                        S_state_1_7_0 = S_state_1_7_0 + *(Q + block_x * 176 + i * 88 + d_2 + 77) * *(const float16*)(K_shared + d_2 * 64 + j_1 * 32);
                        S_state_1_7_1 = S_state_1_7_1 + *(Q + block_x * 176 + i * 88 + d_2 + 77) * *(const float16*)(K_shared + d_2 * 64 + j_1 * 32 + 16);
                    }
                }
                if (block_x * 16 + i * 8 < 17) {
                    if (j_1 * 32 < 22) {
                        *(float16*)(S_shared + i * 512 + j_1 * 32) = S_state_1_0_0;
                    } else {
                        store_first_shared_float16(S_shared + i * 512 + j_1 * 32, S_state_1_0_0, 37 - j_1 * 32);
                    }
                    if (j_1 * 32 < 6) {
                        *(float16*)(S_shared + i * 512 + j_1 * 32 + 16) = S_state_1_0_1;
                    } else {
                        if (j_1 * 32 < 21) {
                            store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 16, S_state_1_0_1, 21 - j_1 * 32);
                        }
                    }
                }
                if (block_x * 16 + i * 8 < 16) {
                    if (j_1 * 32 < 22) {
                        *(float16*)(S_shared + i * 512 + j_1 * 32 + 64) = S_state_1_1_0;
                    } else {
                        store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 64, S_state_1_1_0, 37 - j_1 * 32);
                    }
                    if (j_1 * 32 < 6) {
                        *(float16*)(S_shared + i * 512 + j_1 * 32 + 80) = S_state_1_1_1;
                    } else {
                        if (j_1 * 32 < 21) {
                            store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 80, S_state_1_1_1, 21 - j_1 * 32);
                        }
                    }
                }
                if (block_x * 16 + i * 8 < 15) {
                    if (j_1 * 32 < 22) {
                        *(float16*)(S_shared + i * 512 + j_1 * 32 + 128) = S_state_1_2_0;
                    } else {
                        store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 128, S_state_1_2_0, 37 - j_1 * 32);
                    }
                    if (j_1 * 32 < 6) {
                        *(float16*)(S_shared + i * 512 + j_1 * 32 + 144) = S_state_1_2_1;
                    } else {
                        if (j_1 * 32 < 21) {
                            store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 144, S_state_1_2_1, 21 - j_1 * 32);
                        }
                    }
                }
                if (block_x * 16 + i * 8 < 14) {
                    if (j_1 * 32 < 22) {
                        *(float16*)(S_shared + i * 512 + j_1 * 32 + 192) = S_state_1_3_0;
                    } else {
                        store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 192, S_state_1_3_0, 37 - j_1 * 32);
                    }
                    if (j_1 * 32 < 6) {
                        *(float16*)(S_shared + i * 512 + j_1 * 32 + 208) = S_state_1_3_1;
                    } else {
                        if (j_1 * 32 < 21) {
                            store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 208, S_state_1_3_1, 21 - j_1 * 32);
                        }
                    }
                }
                if (block_x * 16 + i * 8 < 13) {
                    if (j_1 * 32 < 22) {
                        *(float16*)(S_shared + i * 512 + j_1 * 32 + 256) = S_state_1_4_0;
                    } else {
                        store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 256, S_state_1_4_0, 37 - j_1 * 32);
                    }
                    if (j_1 * 32 < 6) {
                        *(float16*)(S_shared + i * 512 + j_1 * 32 + 272) = S_state_1_4_1;
                    } else {
                        if (j_1 * 32 < 21) {
                            store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 272, S_state_1_4_1, 21 - j_1 * 32);
                        }
                    }
                }
                if (block_x * 16 + i * 8 < 12) {
                    if (j_1 * 32 < 22) {
                        *(float16*)(S_shared + i * 512 + j_1 * 32 + 320) = S_state_1_5_0;
                    } else {
                        store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 320, S_state_1_5_0, 37 - j_1 * 32);
                    }
                    if (j_1 * 32 < 6) {
                        *(float16*)(S_shared + i * 512 + j_1 * 32 + 336) = S_state_1_5_1;
                    } else {
                        if (j_1 * 32 < 21) {
                            store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 336, S_state_1_5_1, 21 - j_1 * 32);
                        }
                    }
                }
                if (block_x * 16 + i * 8 < 11) {
                    if (j_1 * 32 < 22) {
                        *(float16*)(S_shared + i * 512 + j_1 * 32 + 384) = S_state_1_6_0;
                    } else {
                        store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 384, S_state_1_6_0, 37 - j_1 * 32);
                    }
                    if (j_1 * 32 < 6) {
                        *(float16*)(S_shared + i * 512 + j_1 * 32 + 400) = S_state_1_6_1;
                    } else {
                        if (j_1 * 32 < 21) {
                            store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 400, S_state_1_6_1, 21 - j_1 * 32);
                        }
                    }
                }
                if (block_x * 16 + i * 8 < 10) {
                    if (j_1 * 32 < 22) {
                        *(float16*)(S_shared + i * 512 + j_1 * 32 + 448) = S_state_1_7_0;
                    } else {
                        store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 448, S_state_1_7_0, 37 - j_1 * 32);
                    }
                    if (j_1 * 32 < 6) {
                        *(float16*)(S_shared + i * 512 + j_1 * 32 + 464) = S_state_1_7_1;
                    } else {
                        if (j_1 * 32 < 21) {
                            store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 464, S_state_1_7_1, 21 - j_1 * 32);
                        }
                    }
                }
            }
        }
    }
    for (int i_6 = 0; i_6 < min(16, 17 - block_x * 16); ++i_6) {
        float16 peak_chunk_state = (float16)(-INFINITY);
        for (int j_7 = 0; j_7 < 3; ++j_7) {
            if (j_7 * 16 < 22) {
                peak_chunk_state = maximum_float16(peak_chunk_state, *(const float16*)(S_shared + i_6 * 64 + j_7 * 16));
            } else {
                if (j_7 * 16 < 37) {
                    peak_chunk_state = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(37 - j_7 * 16) ? maximum_float16(peak_chunk_state, load_first_shared_float16(S_shared + i_6 * 64 + j_7 * 16, 37 - j_7 * 16, (float16)(0.0f))) : peak_chunk_state;
                }
            }
        }
        float8 peak_chunk_fold = maximum_float8(peak_chunk_state.s01234567, peak_chunk_state.s89abcdef);
        float4 peak_chunk_fold_1 = maximum_float4(peak_chunk_fold.s0123, peak_chunk_fold.s4567);
        float2 peak_chunk_fold_2 = maximum_float2(peak_chunk_fold_1.s01, peak_chunk_fold_1.s23);
        float peak_chunk_fold_3 = maximum_float(peak_chunk_fold_2.s0, peak_chunk_fold_2.s1);
        peak_before[i_6] = peak_shared[i_6];
        peak_shared[i_6] = maximum_float(peak_shared[i_6], peak_chunk_fold_3);
        peak_change[i_6] = exp_float(peak_before[i_6] - peak_shared[i_6]);
        for (int j_8 = 0; j_8 < 3; ++j_8) {
            const int first_1 = min(j_8 * 16, 21);
            *(float16_u*)(P_shared + i_6 * 64 + first_1) = exp_float16(*(const float16_u*)(S_shared + i_6 * 64 + first_1) - peak_shared[i_6]);
        }
        float16 total_chunk_state = (float16)(0.0f);
        for (int j_9 = 0; j_9 < 3; ++j_9) {
            if (j_9 * 16 < 22) {
                total_chunk_state = total_chunk_state + *(const float16*)(P_shared + i_6 * 64 + j_9 * 16);
            } else {
                if (j_9 * 16 < 37) {
                    total_chunk_state = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(37 - j_9 * 16) ? total_chunk_state + load_first_shared_float16(P_shared + i_6 * 64 + j_9 * 16, 37 - j_9 * 16, (float16)(0.0f)) : total_chunk_state;
                }
            }
        }
        float8 total_chunk_fold = total_chunk_state.s01234567 + total_chunk_state.s89abcdef;
        float4 total_chunk_fold_1 = total_chunk_fold.s0123 + total_chunk_fold.s4567;
        float2 total_chunk_fold_2 = total_chunk_fold_1.s01 + total_chunk_fold_1.s23;
        float total_chunk_fold_3 = total_chunk_fold_2.s0 + total_chunk_fold_2.s1;
        total_shared[i_6] = (peak_before[i_6] == peak_shared[i_6] ? total_shared[i_6] : peak_before[i_6] == -INFINITY ? 0.0f : total_shared[i_6] * peak_change[i_6]) + total_chunk_fold_3;
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
    for (int j_10 = 0; j_10 < 37; ++j_10) {
        mix_state_0_0 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(11) ? mix_state_0_0 + P_shared[j_10] * load_first_global_float16(V + j_10 * 11, 11, (float16)(0.0f)) : mix_state_0_0;
        if (block_x * 16 < 16) {
            mix_state_0_1 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(11) ? mix_state_0_1 + P_shared[j_10 + 64] * load_first_global_float16(V + j_10 * 11, 11, (float16)(0.0f)) : mix_state_0_1;
        }
        if (block_x * 16 < 15) {
            mix_state_0_2 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(11) ? mix_state_0_2 + P_shared[j_10 + 128] * load_first_global_float16(V + j_10 * 11, 11, (float16)(0.0f)) : mix_state_0_2;
        }
        if (block_x * 16 < 14) {
            mix_state_0_3 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(11) ? mix_state_0_3 + P_shared[j_10 + 192] * load_first_global_float16(V + j_10 * 11, 11, (float16)(0.0f)) : mix_state_0_3;
        }
        if (block_x * 16 < 13) {
            mix_state_0_4 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(11) ? mix_state_0_4 + P_shared[j_10 + 256] * load_first_global_float16(V + j_10 * 11, 11, (float16)(0.0f)) : mix_state_0_4;
        }
        if (block_x * 16 < 12) {
            mix_state_0_5 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(11) ? mix_state_0_5 + P_shared[j_10 + 320] * load_first_global_float16(V + j_10 * 11, 11, (float16)(0.0f)) : mix_state_0_5;
        }
        if (block_x * 16 < 11) {
            mix_state_0_6 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(11) ? mix_state_0_6 + P_shared[j_10 + 384] * load_first_global_float16(V + j_10 * 11, 11, (float16)(0.0f)) : mix_state_0_6;
        }
        if (block_x * 16 < 10) {
            mix_state_0_7 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(11) ? mix_state_0_7 + P_shared[j_10 + 448] * load_first_global_float16(V + j_10 * 11, 11, (float16)(0.0f)) : mix_state_0_7;
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
    for (int j_10 = 0; j_10 < 37; ++j_10) {
        if (block_x * 16 < 9) {
            mix_state_1_0 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(11) ? mix_state_1_0 + P_shared[j_10 + 512] * load_first_global_float16(V + j_10 * 11, 11, (float16)(0.0f)) : mix_state_1_0;
        }
        if (block_x * 16 < 8) {
            mix_state_1_1 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(11) ? mix_state_1_1 + P_shared[j_10 + 576] * load_first_global_float16(V + j_10 * 11, 11, (float16)(0.0f)) : mix_state_1_1;
        }
        if (block_x * 16 < 7) {
            mix_state_1_2 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(11) ? mix_state_1_2 + P_shared[j_10 + 640] * load_first_global_float16(V + j_10 * 11, 11, (float16)(0.0f)) : mix_state_1_2;
        }
        if (block_x * 16 < 6) {
            mix_state_1_3 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(11) ? mix_state_1_3 + P_shared[j_10 + 704] * load_first_global_float16(V + j_10 * 11, 11, (float16)(0.0f)) : mix_state_1_3;
        }
        if (block_x * 16 < 5) {
            mix_state_1_4 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(11) ? mix_state_1_4 + P_shared[j_10 + 768] * load_first_global_float16(V + j_10 * 11, 11, (float16)(0.0f)) : mix_state_1_4;
        }
        if (block_x * 16 < 4) {
            mix_state_1_5 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(11) ? mix_state_1_5 + P_shared[j_10 + 832] * load_first_global_float16(V + j_10 * 11, 11, (float16)(0.0f)) : mix_state_1_5;
        }
        if (block_x * 16 < 3) {
            mix_state_1_6 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(11) ? mix_state_1_6 + P_shared[j_10 + 896] * load_first_global_float16(V + j_10 * 11, 11, (float16)(0.0f)) : mix_state_1_6;
        }
        if (block_x * 16 < 2) {
            mix_state_1_7 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(11) ? mix_state_1_7 + P_shared[j_10 + 960] * load_first_global_float16(V + j_10 * 11, 11, (float16)(0.0f)) : mix_state_1_7;
        }
    }
    if (block_x * 16 < 2) {
        store_first_global_float16(O + block_x * 176, quotients_float16(mix_state_0_0, total_shared[0]), 11);
        store_first_global_float16(O + block_x * 176 + 11, quotients_float16(mix_state_0_1, total_shared[1]), 11);
        store_first_global_float16(O + block_x * 176 + 22, quotients_float16(mix_state_0_2, total_shared[2]), 11);
        store_first_global_float16(O + block_x * 176 + 33, quotients_float16(mix_state_0_3, total_shared[3]), 11);
        store_first_global_float16(O + block_x * 176 + 44, quotients_float16(mix_state_0_4, total_shared[4]), 11);
        store_first_global_float16(O + block_x * 176 + 55, quotients_float16(mix_state_0_5, total_shared[5]), 11);
        store_first_global_float16(O + block_x * 176 + 66, quotients_float16(mix_state_0_6, total_shared[6]), 11);
        store_first_global_float16(O + block_x * 176 + 77, quotients_float16(mix_state_0_7, total_shared[7]), 11);
        store_first_global_float16(O + block_x * 176 + 88, quotients_float16(mix_state_1_0, total_shared[8]), 11);
        store_first_global_float16(O + block_x * 176 + 99, quotients_float16(mix_state_1_1, total_shared[9]), 11);
        store_first_global_float16(O + block_x * 176 + 110, quotients_float16(mix_state_1_2, total_shared[10]), 11);
        store_first_global_float16(O + block_x * 176 + 121, quotients_float16(mix_state_1_3, total_shared[11]), 11);
        store_first_global_float16(O + block_x * 176 + 132, quotients_float16(mix_state_1_4, total_shared[12]), 11);
        store_first_global_float16(O + block_x * 176 + 143, quotients_float16(mix_state_1_5, total_shared[13]), 11);
        store_first_global_float16(O + block_x * 176 + 154, quotients_float16(mix_state_1_6, total_shared[14]), 11);
        store_first_global_float16(O + block_x * 176 + 165, quotients_float16(mix_state_1_7, total_shared[15]), 11);
    } else {
        store_first_global_float16(O + block_x * 176, quotients_float16(mix_state_0_0, total_shared[0]), 11);
        if (block_x * 16 < 16) {
            store_first_global_float16(O + block_x * 176 + 11, quotients_float16(mix_state_0_1, total_shared[1]), 11);
        }
        if (block_x * 16 < 15) {
            store_first_global_float16(O + block_x * 176 + 22, quotients_float16(mix_state_0_2, total_shared[2]), 11);
        }
        if (block_x * 16 < 14) {
            store_first_global_float16(O + block_x * 176 + 33, quotients_float16(mix_state_0_3, total_shared[3]), 11);
        }
        if (block_x * 16 < 13) {
            store_first_global_float16(O + block_x * 176 + 44, quotients_float16(mix_state_0_4, total_shared[4]), 11);
        }
        if (block_x * 16 < 12) {
            store_first_global_float16(O + block_x * 176 + 55, quotients_float16(mix_state_0_5, total_shared[5]), 11);
        }
        if (block_x * 16 < 11) {
            store_first_global_float16(O + block_x * 176 + 66, quotients_float16(mix_state_0_6, total_shared[6]), 11);
        }
        if (block_x * 16 < 10) {
            store_first_global_float16(O + block_x * 176 + 77, quotients_float16(mix_state_0_7, total_shared[7]), 11);
        }
        if (block_x * 16 < 9) {
            store_first_global_float16(O + block_x * 176 + 88, quotients_float16(mix_state_1_0, total_shared[8]), 11);
        }
        if (block_x * 16 < 8) {
            store_first_global_float16(O + block_x * 176 + 99, quotients_float16(mix_state_1_1, total_shared[9]), 11);
        }
        if (block_x * 16 < 7) {
            store_first_global_float16(O + block_x * 176 + 110, quotients_float16(mix_state_1_2, total_shared[10]), 11);
        }
        if (block_x * 16 < 6) {
            store_first_global_float16(O + block_x * 176 + 121, quotients_float16(mix_state_1_3, total_shared[11]), 11);
        }
        if (block_x * 16 < 5) {
            store_first_global_float16(O + block_x * 176 + 132, quotients_float16(mix_state_1_4, total_shared[12]), 11);
        }
        if (block_x * 16 < 4) {
            store_first_global_float16(O + block_x * 176 + 143, quotients_float16(mix_state_1_5, total_shared[13]), 11);
        }
        if (block_x * 16 < 3) {
            store_first_global_float16(O + block_x * 176 + 154, quotients_float16(mix_state_1_6, total_shared[14]), 11);
        }
        if (block_x * 16 < 2) {
            store_first_global_float16(O + block_x * 176 + 165, quotients_float16(mix_state_1_7, total_shared[15]), 11);
        }
    }
}

EXPORT void O(void* const* arguments, char* scratch, long first, long last)
{
#pragma nounroll
    for (long number = first; number < last; ++number) {
        const long block[3] = {number % 2, number / 2 % 1, number / 2};
        O_block(arguments[0], arguments[1], arguments[2], arguments[3], (void*)(scratch + 11136), (void*)(scratch + 11008), (void*)(scratch + 11072), (void*)(scratch + 11200), (void*)(scratch + 8192), (void*)(scratch + 4096), (void*)(scratch + 0), block);
    }
}
