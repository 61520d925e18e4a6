#ifndef __has_builtin
#define __has_builtin(x) 0
#endif
#if __has_builtin(__builtin_prefetch) && !defined(__SPIR__) && !defined(__SPIRV__)
#define PREFETCH(pointer) __builtin_prefetch((__global const void*)(pointer))
#else
#define PREFETCH(pointer) prefetch(pointer, 1)
#endif
typedef float float16_u __attribute__((ext_vector_type(16), aligned(4)));

static inline float16 maximum_float16(float16 a, float16 b) {  // NaN if either is NaN, as in NumPy
#if defined(__AVX512F__) && defined(__AVX512VL__)
    const float16 r = __builtin_ia32_maxps512(a, b, 4), s = __builtin_ia32_maxps512(b, a, 4);
    return as_float16(as_int16(r) | (as_int16(s) & 0x7fffffff));
#else
    const float16 r = a > b ? a : b;
    return a == a ? r : a;
#endif
}
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

// 3 x 1 x 1 blocks of 1 thread, 0 bytes of shared memory
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void Y(
    __global const float* restrict X,
    __global const float* restrict gamma,
    __global const float* restrict beta,
    __global float* restrict Y)
{
    const int block_x = (int)get_group_id(0);
    float16 count_state_0 = (float16)(0.0f);
    float16 count_state_1 = (float16)(0.0f);
    float16 count_state_2 = (float16)(0.0f);
    float16 count_state_3 = (float16)(0.0f);
    float16 mean_state_0 = (float16)(0.0f);
    float16 mean_state_1 = (float16)(0.0f);
    float16 mean_state_2 = (float16)(0.0f);
    float16 mean_state_3 = (float16)(0.0f);
    float16 squares_state_0 = (float16)(0.0f);
    float16 squares_state_1 = (float16)(0.0f);
    float16 squares_state_2 = (float16)(0.0f);
    float16 squares_state_3 = (float16)(0.0f);
    float16 count_state_common_0 = count_state_0 + 1.0f;
    float16 count_state_common_1_1_0 = *(__global const float16_u*)(X + block_x * 37) - mean_state_0;
    float16 count_state_common_2_1_0 = (float16)(0.0f) < count_state_common_0 ? 1.0f / maximum_float16(count_state_common_0, (float16)(1.0f)) : (float16)(0.0f);
    float16 count_state_next_0 = count_state_common_0;
    mean_state_0 = mean_state_0 + count_state_common_1_1_0 * count_state_common_2_1_0;
    squares_state_0 = squares_state_0 + 0.0f + count_state_common_1_1_0 * count_state_common_1_1_0 * count_state_0 * count_state_common_2_1_0;
    count_state_0 = count_state_next_0;
    float16 count_state_common_1 = count_state_1 + 1.0f;
    float16 count_state_common_1_1_1 = *(__global const float16_u*)(X + block_x * 37 + 16) - mean_state_1;
    float16 count_state_common_2_1_1 = (float16)(0.0f) < count_state_common_1 ? 1.0f / maximum_float16(count_state_common_1, (float16)(1.0f)) : (float16)(0.0f);
    float16 count_state_next_1 = count_state_common_1;
    mean_state_1 = mean_state_1 + count_state_common_1_1_1 * count_state_common_2_1_1;
    squares_state_1 = squares_state_1 + 0.0f + count_state_common_1_1_1 * count_state_common_1_1_1 * count_state_1 * count_state_common_2_1_1;
    count_state_1 = count_state_next_1;
    float16 count_state_common_2 = count_state_2 + 1.0f;
    float16 count_state_common_1_1_2 = load_first_global_float16(X + block_x * 37 + 32, 5, (float16)(0.0f)) - mean_state_2;
    float16 count_state_common_2_1_2 = (float16)(0.0f) < count_state_common_2 ? 1.0f / maximum_float16(count_state_common_2, (float16)(1.0f)) : (float16)(0.0f);
    float16 count_state_next_2 = count_state_common_2;
    mean_state_2 = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)(5) ? mean_state_2 + count_state_common_1_1_2 * count_state_common_2_1_2 : mean_state_2;
    squares_state_2 = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)(5) ? squares_state_2 + 0.0f + count_state_common_1_1_2 * count_state_common_1_1_2 * count_state_2 * count_state_common_2_1_2 : squares_state_2;
    count_state_2 = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)(5) ? count_state_next_2 : count_state_2;
    float16 count_fold_common_0 = count_state_0 + count_state_2;
    float16 count_fold_common_1_1_0 = mean_state_2 - mean_state_0;
    float16 count_fold_common_2_0 = (float16)(0.0f) < count_fold_common_0 ? count_state_2 / maximum_float16(count_fold_common_0, (float16)(1.0f)) : (float16)(0.0f);
    float16 count_fold_0 = count_fold_common_0;
    float16 mean_fold_0 = mean_state_0 + count_fold_common_1_1_0 * count_fold_common_2_0;
    float16 squares_fold_0 = squares_state_0 + squares_state_2 + count_fold_common_1_1_0 * count_fold_common_1_1_0 * count_state_0 * count_fold_common_2_0;
    float16 count_fold_common_1 = count_state_1 + count_state_3;
    float16 count_fold_common_1_1_1 = mean_state_3 - mean_state_1;
    float16 count_fold_common_2_1 = (float16)(0.0f) < count_fold_common_1 ? count_state_3 / maximum_float16(count_fold_common_1, (float16)(1.0f)) : (float16)(0.0f);
    float16 count_fold_1 = count_fold_common_1;
    float16 mean_fold_1 = mean_state_1 + count_fold_common_1_1_1 * count_fold_common_2_1;
    float16 squares_fold_1 = squares_state_1 + squares_state_3 + count_fold_common_1_1_1 * count_fold_common_1_1_1 * count_state_1 * count_fold_common_2_1;
    float16 count_fold_1_common = count_fold_0 + count_fold_1;
    float16 count_fold_1_common_1 = mean_fold_1 - mean_fold_0;
    float16 count_fold_1_common_2 = (float16)(0.0f) < count_fold_1_common ? count_fold_1 / maximum_float16(count_fold_1_common, (float16)(1.0f)) : (float16)(0.0f);
    float16 count_fold_1_1 = count_fold_1_common;
    float16 mean_fold_1_1 = mean_fold_0 + count_fold_1_common_1 * count_fold_1_common_2;
    float16 squares_fold_1_1 = squares_fold_0 + squares_fold_1 + count_fold_1_common_1 * count_fold_1_common_1 * count_fold_0 * count_fold_1_common_2;
    float8 count_fold_2_common = count_fold_1_1.s01234567 + count_fold_1_1.s89abcdef;
    float8 count_fold_2_common_1 = mean_fold_1_1.s89abcdef - mean_fold_1_1.s01234567;
    float8 count_fold_2_common_2 = (float8)(0.0f) < count_fold_2_common ? count_fold_1_1.s89abcdef / maximum_float8(count_fold_2_common, (float8)(1.0f)) : (float8)(0.0f);
    float8 count_fold_2 = count_fold_2_common;
    float8 mean_fold_2 = mean_fold_1_1.s01234567 + count_fold_2_common_1 * count_fold_2_common_2;
    float8 squares_fold_2 = squares_fold_1_1.s01234567 + squares_fold_1_1.s89abcdef + count_fold_2_common_1 * count_fold_2_common_1 * count_fold_1_1.s01234567 * count_fold_2_common_2;
    float4 count_fold_3_common = count_fold_2.s0123 + count_fold_2.s4567;
    float4 count_fold_3_common_1 = mean_fold_2.s4567 - mean_fold_2.s0123;
    float4 count_fold_3_common_2 = (float4)(0.0f) < count_fold_3_common ? count_fold_2.s4567 / maximum_float4(count_fold_3_common, (float4)(1.0f)) : (float4)(0.0f);
    float4 count_fold_3 = count_fold_3_common;
    float4 mean_fold_3 = mean_fold_2.s0123 + count_fold_3_common_1 * count_fold_3_common_2;
    float4 squares_fold_3 = squares_fold_2.s0123 + squares_fold_2.s4567 + count_fold_3_common_1 * count_fold_3_common_1 * count_fold_2.s0123 * count_fold_3_common_2;
    float2 count_fold_4_common = count_fold_3.s01 + count_fold_3.s23;
    float2 count_fold_4_common_1 = mean_fold_3.s23 - mean_fold_3.s01;
    float2 count_fold_4_common_2 = (float2)(0.0f) < count_fold_4_common ? count_fold_3.s23 / maximum_float2(count_fold_4_common, (float2)(1.0f)) : (float2)(0.0f);
    float2 count_fold_4 = count_fold_4_common;
    float2 mean_fold_4 = mean_fold_3.s01 + count_fold_4_common_1 * count_fold_4_common_2;
    float2 squares_fold_4 = squares_fold_3.s01 + squares_fold_3.s23 + count_fold_4_common_1 * count_fold_4_common_1 * count_fold_3.s01 * count_fold_4_common_2;
    float count_fold_5_common = count_fold_4.s0 + count_fold_4.s1;
    float count_fold_5_common_1 = mean_fold_4.s1 - mean_fold_4.s0;
    float count_fold_5_common_2 = 0.0f < count_fold_5_common ? count_fold_4.s1 / maximum_float(count_fold_5_common, 1.0f) : 0.0f;
    float count_fold_5 = count_fold_5_common;
    float mean_fold_5 = mean_fold_4.s0 + count_fold_5_common_1 * count_fold_5_common_2;
    float squares_fold_5 = squares_fold_4.s0 + squares_fold_4.s1 + count_fold_5_common_1 * count_fold_5_common_1 * count_fold_4.s0 * count_fold_5_common_2;
    float count_register = count_fold_5;
    float mean_register = mean_fold_5;
    float squares_register = squares_fold_5;
    float scale_register = rsqrt(squares_register / 37.0f + 1e-05f);
    PREFETCH(X + block_x * 37);
    PREFETCH(X + block_x * 37 + 16);
    PREFETCH(X + block_x * 37 + 32);
    PREFETCH(X + block_x * 37 + 48);
    store_streaming_float16(Y + block_x * 37, (*(__global const float16_u*)(X + block_x * 37) - mean_register) * scale_register * *(__global const float16_u*)(gamma) + *(__global const float16_u*)(beta));
    store_streaming_float16(Y + block_x * 37 + 16, (*(__global const float16_u*)(X + block_x * 37 + 16) - mean_register) * scale_register * *(__global const float16_u*)(gamma + 16) + *(__global const float16_u*)(beta + 16));
    store_first_global_float16(Y + block_x * 37 + 32, (load_first_global_float16(X + block_x * 37 + 32, 5, (float16)(0.0f)) - mean_register) * scale_register * load_first_global_float16(gamma + 32, 5, (float16)(0.0f)) + load_first_global_float16(beta + 32, 5, (float16)(0.0f)), 5);
}
