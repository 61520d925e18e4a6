#ifndef __has_builtin
#define __has_builtin(x) 0
#endif
#if __has_builtin(__builtin_prefetch) && !defined(__SPIR__) && !defined(__SPIRV__)
#define PREFETCH(pointer) __builtin_prefetch((__global const void*)(pointer))
#else
#define PREFETCH(pointer) prefetch(pointer, 1)
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

static inline float16 load_first_global_float16(const __global float* p, long count, float16 others) {  // touches the first `count` elements only
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
    if (count >= 16) return *(const __global float16_u*)p;
    const int some = count < 0 ? 0 : (int)count;
    const float2 v2 = (float2)(some & 1 ? p[some & -2] : (float)0);
    float4 v4;
    v4.s01 = v4.s23 = v2;
    if (some & 2) v4.s01 = *(const __global float2_u*)(p + (some & -4));
    float8 v8;
    v8.s0123 = v8.s4567 = v4;
    if (some & 4) v8.s0123 = *(const __global float4_u*)(p + (some & -8));
    float16 v16;
    v16.s01234567 = v16.s89abcdef = v8;
    if (some & 8) v16.s01234567 = *(const __global float8_u*)(p + (some & -16));
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

static inline float16 exp_float16(float16 x) {  // 2^n * e^r with n whole and |r| <= log(2) / 2
    float16 y = x > 89.0f ? (float16)(89.0f) : x;
    y = y < -104.0f ? (float16)(-104.0f) : y;
    const float16 shifted = y * 1.44269504f + 12582912.0f;  // the sum's low bits are n
    const float16 n = shifted - 12582912.0f;
    const int16 whole = as_int16(shifted) - 0x4b400000;
    const float16 r = (y - n * 0.693359375f) + n * 2.12194440e-4f;
    float16 p = r * 1.38144649e-3f + 8.36878084e-3f;
    p = p * r + 4.16683927e-2f;
    p = p * r + 1.66665196e-1f;
    p = p * r + 4.99999940e-1f;
    p = p * (r * r) + r;
#if defined(__AVX512F__)
    return as_float16(__builtin_ia32_scalefps512_mask(as_float16(p + 1.0f), as_float16(n), as_float16(p), (ushort)0xffff, 4));
#else
    const int16 half_of_n = whole >> 1;  // as two factors, so that results can be infinite or denormal
    return (p + 1.0f) * as_float16((half_of_n + 127) << 23) * as_float16((whole - half_of_n + 127) << 23);
#endif
}

static inline void store_first_shared_float16(__local float* p, float16 v, long count) {  // touches the first `count` elements only
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
    __builtin_ia32_storeups512_mask((void*)(size_t)p, as_float16(v), (ushort)((1u << (count < 0 ? 0 : count > 16 ? 16 : (int)count)) - 1u));
    return;
#else
    if (count >= 16) {
        *(__local float16_u*)p = v;
        return;
    }
    const int some = count < 0 ? 0 : (int)count;
    if (some & 8) *(__local float8_u*)(p + (some & -16)) = v.s01234567;
    const float8 v8 = some & 8 ? v.s89abcdef : v.s01234567;
    if (some & 4) *(__local float4_u*)(p + (some & -8)) = v8.s0123;
    const float4 v4 = some & 4 ? v8.s4567 : v8.s0123;
    if (some & 2) *(__local float2_u*)(p + (some & -4)) = v4.s01;
    const float2 v2 = some & 2 ? v4.s23 : v4.s01;
    if (some & 1) p[some & -2] = v2.s0;
#endif
}

static inline float16 load_first_shared_float16(const __local float* p, long count, float16 others) {  // touches the first `count` elements only
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
    if (count >= 16) return *(const __local float16_u*)p;
    const int some = count < 0 ? 0 : (int)count;
    const float2 v2 = (float2)(some & 1 ? p[some & -2] : (float)0);
    float4 v4;
    v4.s01 = v4.s23 = v2;
    if (some & 2) v4.s01 = *(const __local float2_u*)(p + (some & -4));
    float8 v8;
    v8.s0123 = v8.s4567 = v4;
    if (some & 4) v8.s0123 = *(const __local float4_u*)(p + (some & -8));
    float16 v16;
    v16.s01234567 = v16.s89abcdef = v8;
    if (some & 8) v16.s01234567 = *(const __local float8_u*)(p + (some & -16));
    return (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(some) ? v16 : others;
#endif
}

static inline void store_streaming_float16(__global float* p, float16 v) {  // non-temporal if the address is aligned
#if __has_builtin(__builtin_nontemporal_store)
    if (((size_t)p & 63) == 0) {
        __builtin_nontemporal_store(v, (__global float16*)p);
        return;
    }
    if (((size_t)p & 15) == 0) {
        __builtin_nontemporal_store(v.s0123, (__global float4*)(p + 0));
        __builtin_nontemporal_store(v.s4567, (__global float4*)(p + 4));
        __builtin_nontemporal_store(v.s89ab, (__global float4*)(p + 8));
        __builtin_nontemporal_store(v.scdef, (__global float4*)(p + 12));
        return;
    }
#endif
    *(__global float16_u*)p = v;
}

static inline void store_first_global_float16(__global float* p, float16 v, long count) {  // touches the first `count` elements only
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
    __builtin_ia32_storeups512_mask((void*)(size_t)p, as_float16(v), (ushort)((1u << (count < 0 ? 0 : count > 16 ? 16 : (int)count)) - 1u));
    return;
#else
    if (count >= 16) {
        *(__global float16_u*)p = v;
        return;
    }
    const int some = count < 0 ? 0 : (int)count;
    if (some & 8) *(__global float8_u*)(p + (some & -16)) = v.s01234567;
    const float8 v8 = some & 8 ? v.s89abcdef : v.s01234567;
    if (some & 4) *(__global float4_u*)(p + (some & -8)) = v8.s0123;
    const float4 v4 = some & 4 ? v8.s4567 : v8.s0123;
    if (some & 2) *(__global float2_u*)(p + (some & -4)) = v4.s01;
    const float2 v2 = some & 2 ? v4.s23 : v4.s01;
    if (some & 1) p[some & -2] = v2.s0;
#endif
}

// 1 x 1 x 1 blocks of 1 thread, 148 bytes of shared memory
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void Y(
    __global const float* restrict X,
    __global float* restrict Y)
{
    __local float shifted_shared[37] __attribute__((aligned(64)));
    for (int i = 0; i < 3; ++i) {
        float16 peak_state_0 = (float16)(-INFINITY);
        float16 peak_state_1 = (float16)(-INFINITY);
        float16 peak_state_2 = (float16)(-INFINITY);
        float16 peak_state_3 = (float16)(-INFINITY);
        peak_state_0 = maximum_float16(peak_state_0, *(__global const float16_u*)(X + i * 37));
        peak_state_1 = maximum_float16(peak_state_1, *(__global const float16_u*)(X + i * 37 + 16));
        peak_state_2 = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)(5) ? maximum_float16(peak_state_2, load_first_global_float16(X + i * 37 + 32, 5, (float16)(0.0f))) : peak_state_2;
        float16 peak_fold_0 = maximum_float16(peak_state_0, peak_state_2);
        float16 peak_fold_1 = maximum_float16(peak_state_1, peak_state_3);
        float16 peak_fold_1_1 = maximum_float16(peak_fold_0, peak_fold_1);
        float8 peak_fold_2 = maximum_float8(peak_fold_1_1.s01234567, peak_fold_1_1.s89abcdef);
        float4 peak_fold_3 = maximum_float4(peak_fold_2.s0123, peak_fold_2.s4567);
        float2 peak_fold_4 = maximum_float2(peak_fold_3.s01, peak_fold_3.s23);
        float peak_fold_5 = maximum_float(peak_fold_4.s0, peak_fold_4.s1);
        float peak_register = peak_fold_5;
        PREFETCH(X + i * 37);
        PREFETCH(X + i * 37 + 16);
        PREFETCH(X + i * 37 + 32);
        PREFETCH(X + i * 37 + 48);
        *(__local float16*)(shifted_shared) = exp_float16(*(__global const float16_u*)(X + i * 37) - peak_register);
        *(__local float16*)(shifted_shared + 16) = exp_float16(*(__global const float16_u*)(X + i * 37 + 16) - peak_register);
        store_first_shared_float16(shifted_shared + 32, exp_float16(load_first_global_float16(X + i * 37 + 32, 5, (float16)(0.0f)) - peak_register), 5);
        float16 total_state_0 = (float16)(0.0f);
        float16 total_state_1 = (float16)(0.0f);
        float16 total_state_2 = (float16)(0.0f);
        float16 total_state_3 = (float16)(0.0f);
        total_state_0 = total_state_0 + *(__local const float16*)(shifted_shared);
        total_state_1 = total_state_1 + *(__local const float16*)(shifted_shared + 16);
        total_state_2 = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)(5) ? total_state_2 + load_first_shared_float16(shifted_shared + 32, 5, (float16)(0.0f)) : total_state_2;
        float16 total_fold_0 = total_state_0 + total_state_2;
        float16 total_fold_1 = total_state_1 + total_state_3;
        float16 total_fold_1_1 = total_fold_0 + total_fold_1;
        float8 total_fold_2 = total_fold_1_1.s01234567 + total_fold_1_1.s89abcdef;
        float4 total_fold_3 = total_fold_2.s0123 + total_fold_2.s4567;
        float2 total_fold_4 = total_fold_3.s01 + total_fold_3.s23;
        float total_fold_5 = total_fold_4.s0 + total_fold_4.s1;
        float total_register = total_fold_5;
        store_streaming_float16(Y + i * 37, *(__local const float16*)(shifted_shared) / total_register);
        store_streaming_float16(Y + i * 37 + 16, *(__local const float16*)(shifted_shared + 16) / total_register);
        store_first_global_float16(Y + i * 37 + 32, load_first_shared_float16(shifted_shared + 32, 5, (float16)(0.0f)) / total_register, 5);
    }
}
