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
#define as_float16(...) __builtin_bit_cast(float16, (__VA_ARGS__))
#define as_float4(...) __builtin_bit_cast(float4, (__VA_ARGS__))
#define as_float8(...) __builtin_bit_cast(float8, (__VA_ARGS__))
#define as_int16(...) __builtin_bit_cast(int16, (__VA_ARGS__))
#define as_int4(...) __builtin_bit_cast(int4, (__VA_ARGS__))
#define as_int8(...) __builtin_bit_cast(int8, (__VA_ARGS__))
#define INFINITY __builtin_inff()
#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

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

static inline void store_streaming_float16(float* p, float16 v) {  // non-temporal if the address is aligned
#if __has_builtin(__builtin_nontemporal_store)
    if (((size_t)p & 63) == 0) {
        __builtin_nontemporal_store(v, (float16*)p);
        return;
    }
    if (((size_t)p & 15) == 0) {
        __builtin_nontemporal_store(v.s0123, (float4*)(p + 0));
        __builtin_nontemporal_store(v.s4567, (float4*)(p + 4));
        __builtin_nontemporal_store(v.s89ab, (float4*)(p + 8));
        __builtin_nontemporal_store(v.scdef, (float4*)(p + 12));
        return;
    }
#endif
    *(float16_u*)p = v;
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

// 1 x 1 x 1 blocks of 1 thread, 148 bytes of shared memory
static inline __attribute__((always_inline)) void Y_block(
    const float* restrict X,
    float* restrict Y,
    float* restrict shifted_shared,
    const long* restrict block)
{
    for (int i = 0; i < 3; ++i) {
        float16 peak_state_0 = (float16)(-INFINITY);
        float16 peak_state_1 = (float16)(-INFINITY);
        float16 peak_state_2 = (float16)(-INFINITY);
        float16 peak_state_3 = (float16)(-INFINITY);
        peak_state_0 = maximum_float16(peak_state_0, *(const float16_u*)(X + i * 37));
        peak_state_1 = maximum_float16(peak_state_1, *(const float16_u*)(X + i * 37 + 16));
        peak_state_2 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(5) ? maximum_float16(peak_state_2, load_first_global_float16(X + i * 37 + 32, 5, (float16)(0.0f))) : peak_state_2;
        float16 peak_fold_0 = maximum_float16(peak_state_0, peak_state_2);
        float16 peak_fold_1 = maximum_float16(peak_state_1, peak_state_3);
        float16 peak_fold_1_1 = maximum_float16(peak_fold_0, peak_fold_1);
        float8 peak_fold_2 = maximum_float8(peak_fold_1_1.s01234567, peak_fold_1_1.s89abcdef);
        float4 peak_fold_3 = maximum_float4(peak_fold_2.s0123, peak_fold_2.s4567);
        float2 peak_fold_4 = maximum_float2(peak_fold_3.s01, peak_fold_3.s23);
        float peak_fold_5 = maximum_float(peak_fold_4.s0, peak_fold_4.s1);
        float peak_register = peak_fold_5;
        __builtin_prefetch(X + i * 37);
        __builtin_prefetch(X + i * 37 + 16);
        __builtin_prefetch(X + i * 37 + 32);
        __builtin_prefetch(X + i * 37 + 48);
        *(float16*)(shifted_shared) = exp_float16(*(const float16_u*)(X + i * 37) - peak_register);
        *(float16*)(shifted_shared + 16) = exp_float16(*(const float16_u*)(X + i * 37 + 16) - peak_register);
        store_first_shared_float16(shifted_shared + 32, exp_float16(load_first_global_float16(X + i * 37 + 32, 5, (float16)(0.0f)) - peak_register), 5);
        float16 total_state_0 = (float16)(0.0f);
        float16 total_state_1 = (float16)(0.0f);
        float16 total_state_2 = (float16)(0.0f);
        float16 total_state_3 = (float16)(0.0f);
        total_state_0 = total_state_0 + *(const float16*)(shifted_shared);
        total_state_1 = total_state_1 + *(const float16*)(shifted_shared + 16);
        total_state_2 = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(5) ? total_state_2 + load_first_shared_float16(shifted_shared + 32, 5, (float16)(0.0f)) : total_state_2;
        float16 total_fold_0 = total_state_0 + total_state_2;
        float16 total_fold_1 = total_state_1 + total_state_3;
        float16 total_fold_1_1 = total_fold_0 + total_fold_1;
        float8 total_fold_2 = total_fold_1_1.s01234567 + total_fold_1_1.s89abcdef;
        float4 total_fold_3 = total_fold_2.s0123 + total_fold_2.s4567;
        float2 total_fold_4 = total_fold_3.s01 + total_fold_3.s23;
        float total_fold_5 = total_fold_4.s0 + total_fold_4.s1;
        float total_register = total_fold_5;
        store_streaming_float16(Y + i * 37, quotients_float16(*(const float16*)(shifted_shared), total_register));
        store_streaming_float16(Y + i * 37 + 16, quotients_float16(*(const float16*)(shifted_shared + 16), total_register));
        store_first_global_float16(Y + i * 37 + 32, quotients_float16(load_first_shared_float16(shifted_shared + 32, 5, (float16)(0.0f)), total_register), 5);
    }
}

EXPORT void Y(void* const* arguments, char* scratch, long first, long last)
{
#pragma nounroll
    for (long number = first; number < last; ++number) {
        const long block[3] = {number % 1, number / 1 % 1, number / 1};
        Y_block(arguments[0], arguments[1], (void*)(scratch + 0), block);
    }
}
