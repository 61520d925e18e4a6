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

static inline float16 maximum_float16(float16 a, float16 b) {  // NaN if either is NaN, as in NumPy
#if defined(__AVX512F__) && defined(__AVX512VL__)
    const float16 r = __builtin_ia32_maxps512(a, b, 4), s = __builtin_ia32_maxps512(b, a, 4);
    return as_float16(as_int16(r) | (as_int16(s) & 0x7fffffff));
#else
    const float16 r = a > b ? a : b;
    return a == a ? r : a;
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

static inline float exp_float(float x) {  // 2^n * e^r with n whole and |r| <= log(2) / 2
    float y = x > 89.0f ? (float)(89.0f) : x;
    y = y < -104.0f ? (float)(-104.0f) : y;
    const float shifted = y * 1.44269504f + 12582912.0f;  // the sum's low bits are n
    const float n = shifted - 12582912.0f;
    const int whole = as_int(shifted) - 0x4b400000;
    const float r = (y - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = r * 1.38144649e-3f + 8.36878084e-3f;
    p = p * r + 4.16683927e-2f;
    p = p * r + 1.66665196e-1f;
    p = p * r + 4.99999940e-1f;
    p = p * (r * r) + r;
    const int half_of_n = whole >> 1;  // as two factors, so that results can be infinite or denormal
    return (p + 1.0f) * as_float((half_of_n + 127) << 23) * as_float((whole - half_of_n + 127) << 23);
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

// 2 x 1 x 1 blocks of 1 thread, 11264 bytes of shared memory
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void O(
    __global const float* restrict Q,
    __global const float* restrict K,
    __global const float* restrict V,
    __global float* restrict O)
{
    __local float peak_shared[16] __attribute__((aligned(64)));
    __local float peak_before[16] __attribute__((aligned(64)));
    __local float peak_change[16] __attribute__((aligned(64)));
    __local float total_shared[16] __attribute__((aligned(64)));
    __local float K_shared[704] __attribute__((aligned(64)));
    __local float S_shared[1024] __attribute__((aligned(64)));
    __local float P_shared[1024] __attribute__((aligned(64)));
    const int block_x = (int)get_group_id(0);
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
        float16 K_rows_1_step_0 = (float16)(K_rows_1_16_0.s0, K_rows_1_16_1.s0, K_rows_1_16_0.s2, K_rows_1_16_1.s2, K_rows_1_16_0.s4, K_rows_1_16_1.s4, K_rows_1_16_0.s6, K_rows_1_16_1.s6, K_rows_1_16_0.s8, K_rows_1_16_1.s8, K_rows_1_16_0.sa, K_rows_1_16_1.sa, K_rows_1_16_0.sc, K_rows_1_16_1.sc, K_rows_1_16_0.se, K_rows_1_16_1.se);
        float16 K_rows_1_step_1 = (float16)(K_rows_1_16_0.s1, K_rows_1_16_1.s1, K_rows_1_16_0.s3, K_rows_1_16_1.s3, K_rows_1_16_0.s5, K_rows_1_16_1.s5, K_rows_1_16_0.s7, K_rows_1_16_1.s7, K_rows_1_16_0.s9, K_rows_1_16_1.s9, K_rows_1_16_0.sb, K_rows_1_16_1.sb, K_rows_1_16_0.sd, K_rows_1_16_1.sd, K_rows_1_16_0.sf, K_rows_1_16_1.sf);
        float16 K_rows_1_step_2 = (float16)(K_rows_1_16_2.s0, K_rows_1_16_3.s0, K_rows_1_16_2.s2, K_rows_1_16_3.s2, K_rows_1_16_2.s4, K_rows_1_16_3.s4, K_rows_1_16_2.s6, K_rows_1_16_3.s6, K_rows_1_16_2.s8, K_rows_1_16_3.s8, K_rows_1_16_2.sa, K_rows_1_16_3.sa, K_rows_1_16_2.sc, K_rows_1_16_3.sc, K_rows_1_16_2.se, K_rows_1_16_3.se);
        float16 K_rows_1_step_3 = (float16)(K_rows_1_16_2.s1, K_rows_1_16_3.s1, K_rows_1_16_2.s3, K_rows_1_16_3.s3, K_rows_1_16_2.s5, K_rows_1_16_3.s5, K_rows_1_16_2.s7, K_rows_1_16_3.s7, K_rows_1_16_2.s9, K_rows_1_16_3.s9, K_rows_1_16_2.sb, K_rows_1_16_3.sb, K_rows_1_16_2.sd, K_rows_1_16_3.sd, K_rows_1_16_2.sf, K_rows_1_16_3.sf);
        float16 K_rows_1_step_4 = (float16)(K_rows_1_16_4.s0, K_rows_1_16_5.s0, K_rows_1_16_4.s2, K_rows_1_16_5.s2, K_rows_1_16_4.s4, K_rows_1_16_5.s4, K_rows_1_16_4.s6, K_rows_1_16_5.s6, K_rows_1_16_4.s8, K_rows_1_16_5.s8, K_rows_1_16_4.sa, K_rows_1_16_5.sa, K_rows_1_16_4.sc, K_rows_1_16_5.sc, K_rows_1_16_4.se, K_rows_1_16_5.se);
        float16 K_rows_1_step_5 = (float16)(K_rows_1_16_4.s1, K_rows_1_16_5.s1, K_rows_1_16_4.s3, K_rows_1_16_5.s3, K_rows_1_16_4.s5, K_rows_1_16_5.s5, K_rows_1_16_4.s7, K_rows_1_16_5.s7, K_rows_1_16_4.s9, K_rows_1_16_5.s9, K_rows_1_16_4.sb, K_rows_1_16_5.sb, K_rows_1_16_4.sd, K_rows_1_16_5.sd, K_rows_1_16_4.sf, K_rows_1_16_5.sf);
        float16 K_rows_1_step_6 = (float16)(K_rows_1_16_6.s0, K_rows_1_16_7.s0, K_rows_1_16_6.s2, K_rows_1_16_7.s2, K_rows_1_16_6.s4, K_rows_1_16_7.s4, K_rows_1_16_6.s6, K_rows_1_16_7.s6, K_rows_1_16_6.s8, K_rows_1_16_7.s8, K_rows_1_16_6.sa, K_rows_1_16_7.sa, K_rows_1_16_6.sc, K_rows_1_16_7.sc, K_rows_1_16_6.se, K_rows_1_16_7.se);
        float16 K_rows_1_step_7 = (float16)(K_rows_1_16_6.s1, K_rows_1_16_7.s1, K_rows_1_16_6.s3, K_rows_1_16_7.s3, K_rows_1_16_6.s5, K_rows_1_16_7.s5, K_rows_1_16_6.s7, K_rows_1_16_7.s7, K_rows_1_16_6.s9, K_rows_1_16_7.s9, K_rows_1_16_6.sb, K_rows_1_16_7.sb, K_rows_1_16_6.sd, K_rows_1_16_7.sd, K_rows_1_16_6.sf, K_rows_1_16_7.sf);
        float16 K_rows_1_step_8 = (float16)(K_rows_1_16_8.s0, K_rows_1_16_9.s0, K_rows_1_16_8.s2, K_rows_1_16_9.s2, K_rows_1_16_8.s4, K_rows_1_16_9.s4, K_rows_1_16_8.s6, K_rows_1_16_9.s6, K_rows_1_16_8.s8, K_rows_1_16_9.s8, K_rows_1_16_8.sa, K_rows_1_16_9.sa, K_rows_1_16_8.sc, K_rows_1_16_9.sc, K_rows_1_16_8.se, K_rows_1_16_9.se);
        float16 K_rows_1_step_9 = (float16)(K_rows_1_16_8.s1, K_rows_1_16_9.s1, K_rows_1_16_8.s3, K_rows_1_16_9.s3, K_rows_1_16_8.s5, K_rows_1_16_9.s5, K_rows_1_16_8.s7, K_rows_1_16_9.s7, K_rows_1_16_8.s9, K_rows_1_16_9.s9, K_rows_1_16_8.sb, K_rows_1_16_9.sb, K_rows_1_16_8.sd, K_rows_1_16_9.sd, K_rows_1_16_8.sf, K_rows_1_16_9.sf);
        float16 K_rows_1_step_10 = (float16)(K_rows_1_16_10.s0, K_rows_1_16_11.s0, K_rows_1_16_10.s2, K_rows_1_16_11.s2, K_rows_1_16_10.s4, K_rows_1_16_11.s4, K_rows_1_16_10.s6, K_rows_1_16_11.s6, K_rows_1_16_10.s8, K_rows_1_16_11.s8, K_rows_1_16_10.sa, K_rows_1_16_11.sa, K_rows_1_16_10.sc, K_rows_1_16_11.sc, K_rows_1_16_10.se, K_rows_1_16_11.se);
        float16 K_rows_1_step_11 = (float16)(K_rows_1_16_10.s1, K_rows_1_16_11.s1, K_rows_1_16_10.s3, K_rows_1_16_11.s3, K_rows_1_16_10.s5, K_rows_1_16_11.s5, K_rows_1_16_10.s7, K_rows_1_16_11.s7, K_rows_1_16_10.s9, K_rows_1_16_11.s9, K_rows_1_16_10.sb, K_rows_1_16_11.sb, K_rows_1_16_10.sd, K_rows_1_16_11.sd, K_rows_1_16_10.sf, K_rows_1_16_11.sf);
        float16 K_rows_1_step_12 = (float16)(K_rows_1_16_12.s0, K_rows_1_16_13.s0, K_rows_1_16_12.s2, K_rows_1_16_13.s2, K_rows_1_16_12.s4, K_rows_1_16_13.s4, K_rows_1_16_12.s6, K_rows_1_16_13.s6, K_rows_1_16_12.s8, K_rows_1_16_13.s8, K_rows_1_16_12.sa, K_rows_1_16_13.sa, K_rows_1_16_12.sc, K_rows_1_16_13.sc, K_rows_1_16_12.se, K_rows_1_16_13.se);
        float16 K_rows_1_step_13 = (float16)(K_rows_1_16_12.s1, K_rows_1_16_13.s1, K_rows_1_16_12.s3, K_rows_1_16_13.s3, K_rows_1_16_12.s5, K_rows_1_16_13.s5, K_rows_1_16_12.s7, K_rows_1_16_13.s7, K_rows_1_16_12.s9, K_rows_1_16_13.s9, K_rows_1_16_12.sb, K_rows_1_16_13.sb, K_rows_1_16_12.sd, K_rows_1_16_13.sd, K_rows_1_16_12.sf, K_rows_1_16_13.sf);
        float16 K_rows_1_step_14 = (float16)(K_rows_1_16_14.s0, K_rows_1_16_15.s0, K_rows_1_16_14.s2, K_rows_1_16_15.s2, K_rows_1_16_14.s4, K_rows_1_16_15.s4, K_rows_1_16_14.s6, K_rows_1_16_15.s6, K_rows_1_16_14.s8, K_rows_1_16_15.s8, K_rows_1_16_14.sa, K_rows_1_16_15.sa, K_rows_1_16_14.sc, K_rows_1_16_15.sc, K_rows_1_16_14.se, K_rows_1_16_15.se);
        float16 K_rows_1_step_15 = (float16)(K_rows_1_16_14.s1, K_rows_1_16_15.s1, K_rows_1_16_14.s3, K_rows_1_16_15.s3, K_rows_1_16_14.s5, K_rows_1_16_15.s5, K_rows_1_16_14.s7, K_rows_1_16_15.s7, K_rows_1_16_14.s9, K_rows_1_16_15.s9, K_rows_1_16_14.sb, K_rows_1_16_15.sb, K_rows_1_16_14.sd, K_rows_1_16_15.sd, K_rows_1_16_14.sf, K_rows_1_16_15.sf);
        float16 K_rows_1_step_1_1_0 = (float16)(K_rows_1_step_0.s0, K_rows_1_step_0.s1, K_rows_1_step_2.s0, K_rows_1_step_2.s1, K_rows_1_step_0.s4, K_rows_1_step_0.s5, K_rows_1_step_2.s4, K_rows_1_step_2.s5, K_rows_1_step_0.s8, K_rows_1_step_0.s9, K_rows_1_step_2.s8, K_rows_1_step_2.s9, K_rows_1_step_0.sc, K_rows_1_step_0.sd, K_rows_1_step_2.sc, K_rows_1_step_2.sd);
        float16 K_rows_1_step_1_1_1 = (float16)(K_rows_1_step_1.s0, K_rows_1_step_1.s1, K_rows_1_step_3.s0, K_rows_1_step_3.s1, K_rows_1_step_1.s4, K_rows_1_step_1.s5, K_rows_1_step_3.s4, K_rows_1_step_3.s5, K_rows_1_step_1.s8, K_rows_1_step_1.s9, K_rows_1_step_3.s8, K_rows_1_step_3.s9, K_rows_1_step_1.sc, K_rows_1_step_1.sd, K_rows_1_step_3.sc, K_rows_1_step_3.sd);
        float16 K_rows_1_step_1_1_2 = (float16)(K_rows_1_step_0.s2, K_rows_1_step_0.s3, K_rows_1_step_2.s2, K_rows_1_step_2.s3, K_rows_1_step_0.s6, K_rows_1_step_0.s7, K_rows_1_step_2.s6, K_rows_1_step_2.s7, K_rows_1_step_0.sa, K_rows_1_step_0.sb, K_rows_1_step_2.sa, K_rows_1_step_2.sb, K_rows_1_step_0.se, K_rows_1_step_0.sf, K_rows_1_step_2.se, K_rows_1_step_2.sf);
        float16 K_rows_1_step_1_1_3 = (float16)(K_rows_1_step_1.s2, K_rows_1_step_1.s3, K_rows_1_step_3.s2, K_rows_1_step_3.s3, K_rows_1_step_1.s6, K_rows_1_step_1.s7, K_rows_1_step_3.s6, K_rows_1_step_3.s7, K_rows_1_step_1.sa, K_rows_1_step_1.sb, K_rows_1_step_3.sa, K_rows_1_step_3.sb, K_rows_1_step_1.se, K_rows_1_step_1.sf, K_rows_1_step_3.se, K_rows_1_step_3.sf);
        float16 K_rows_1_step_1_1_4 = (float16)(K_rows_1_step_4.s0, K_rows_1_step_4.s1, K_rows_1_step_6.s0, K_rows_1_step_6.s1, K_rows_1_step_4.s4, K_rows_1_step_4.s5, K_rows_1_step_6.s4, K_rows_1_step_6.s5, K_rows_1_step_4.s8, K_rows_1_step_4.s9, K_rows_1_step_6.s8, K_rows_1_step_6.s9, K_rows_1_step_4.sc, K_rows_1_step_4.sd, K_rows_1_step_6.sc, K_rows_1_step_6.sd);
        float16 K_rows_1_step_1_1_5 = (float16)(K_rows_1_step_5.s0, K_rows_1_step_5.s1, K_rows_1_step_7.s0, K_rows_1_step_7.s1, K_rows_1_step_5.s4, K_rows_1_step_5.s5, K_rows_1_step_7.s4, K_rows_1_step_7.s5, K_rows_1_step_5.s8, K_rows_1_step_5.s9, K_rows_1_step_7.s8, K_rows_1_step_7.s9, K_rows_1_step_5.sc, K_rows_1_step_5.sd, K_rows_1_step_7.sc, K_rows_1_step_7.sd);
        float16 K_rows_1_step_1_1_6 = (float16)(K_rows_1_step_4.s2, K_rows_1_step_4.s3, K_rows_1_step_6.s2, K_rows_1_step_6.s3, K_rows_1_step_4.s6, K_rows_1_step_4.s7, K_rows_1_step_6.s6, K_rows_1_step_6.s7, K_rows_1_step_4.sa, K_rows_1_step_4.sb, K_rows_1_step_6.sa, K_rows_1_step_6.sb, K_rows_1_step_4.se, K_rows_1_step_4.sf, K_rows_1_step_6.se, K_rows_1_step_6.sf);
        float16 K_rows_1_step_1_1_7 = (float16)(K_rows_1_step_5.s2, K_rows_1_step_5.s3, K_rows_1_step_7.s2, K_rows_1_step_7.s3, K_rows_1_step_5.s6, K_rows_1_step_5.s7, K_rows_1_step_7.s6, K_rows_1_step_7.s7, K_rows_1_step_5.sa, K_rows_1_step_5.sb, K_rows_1_step_7.sa, K_rows_1_step_7.sb, K_rows_1_step_5.se, K_rows_1_step_5.sf, K_rows_1_step_7.se, K_rows_1_step_7.sf);
        float16 K_rows_1_step_1_1_8 = (float16)(K_rows_1_step_8.s0, K_rows_1_step_8.s1, K_rows_1_step_10.s0, K_rows_1_step_10.s1, K_rows_1_step_8.s4, K_rows_1_step_8.s5, K_rows_1_step_10.s4, K_rows_1_step_10.s5, K_rows_1_step_8.s8, K_rows_1_step_8.s9, K_rows_1_step_10.s8, K_rows_1_step_10.s9, K_rows_1_step_8.sc, K_rows_1_step_8.sd, K_rows_1_step_10.sc, K_rows_1_step_10.sd);
        float16 K_rows_1_step_1_1_9 = (float16)(K_rows_1_step_9.s0, K_rows_1_step_9.s1, K_rows_1_step_11.s0, K_rows_1_step_11.s1, K_rows_1_step_9.s4, K_rows_1_step_9.s5, K_rows_1_step_11.s4, K_rows_1_step_11.s5, K_rows_1_step_9.s8, K_rows_1_step_9.s9, K_rows_1_step_11.s8, K_rows_1_step_11.s9, K_rows_1_step_9.sc, K_rows_1_step_9.sd, K_rows_1_step_11.sc, K_rows_1_step_11.sd);
        float16 K_rows_1_step_1_1_10 = (float16)(K_rows_1_step_8.s2, K_rows_1_step_8.s3, K_rows_1_step_10.s2, K_rows_1_step_10.s3, K_rows_1_step_8.s6, K_rows_1_step_8.s7, K_rows_1_step_10.s6, K_rows_1_step_10.s7, K_rows_1_step_8.sa, K_rows_1_step_8.sb, K_rows_1_step_10.sa, K_rows_1_step_10.sb, K_rows_1_step_8.se, K_rows_1_step_8.sf, K_rows_1_step_10.se, K_rows_1_step_10.sf);
        float16 K_rows_1_step_1_1_11 = (float16)(K_rows_1_step_9.s2, K_rows_1_step_9.s3, K_rows_1_step_11.s2, K_rows_1_step_11.s3, K_rows_1_step_9.s6, K_rows_1_step_9.s7, K_rows_1_step_11.s6, K_rows_1_step_11.s7, K_rows_1_step_9.sa, K_rows_1_step_9.sb, K_rows_1_step_11.sa, K_rows_1_step_11.sb, K_rows_1_step_9.se, K_rows_1_step_9.sf, K_rows_1_step_11.se, K_rows_1_step_11.sf);
        float16 K_rows_1_step_1_1_12 = (float16)(K_rows_1_step_12.s0, K_rows_1_step_12.s1, K_rows_1_step_14.s0, K_rows_1_step_14.s1, K_rows_1_step_12.s4, K_rows_1_step_12.s5, K_rows_1_step_14.s4, K_rows_1_step_14.s5, K_rows_1_step_12.s8, K_rows_1_step_12.s9, K_rows_1_step_14.s8, K_rows_1_step_14.s9, K_rows_1_step_12.sc, K_rows_1_step_12.sd, K_rows_1_step_14.sc, K_rows_1_step_14.sd);
        float16 K_rows_1_step_1_1_13 = (float16)(K_rows_1_step_13.s0, K_rows_1_step_13.s1, K_rows_1_step_15.s0, K_rows_1_step_15.s1, K_rows_1_step_13.s4, K_rows_1_step_13.s5, K_rows_1_step_15.s4, K_rows_1_step_15.s5, K_rows_1_step_13.s8, K_rows_1_step_13.s9, K_rows_1_step_15.s8, K_rows_1_step_15.s9, K_rows_1_step_13.sc, K_rows_1_step_13.sd, K_rows_1_step_15.sc, K_rows_1_step_15.sd);
        float16 K_rows_1_step_1_1_14 = (float16)(K_rows_1_step_12.s2, K_rows_1_step_12.s3, K_rows_1_step_14.s2, K_rows_1_step_14.s3, K_rows_1_step_12.s6, K_rows_1_step_12.s7, K_rows_1_step_14.s6, K_rows_1_step_14.s7, K_rows_1_step_12.sa, K_rows_1_step_12.sb, K_rows_1_step_14.sa, K_rows_1_step_14.sb, K_rows_1_step_12.se, K_rows_1_step_12.sf, K_rows_1_step_14.se, K_rows_1_step_14.sf);
        float16 K_rows_1_step_1_1_15 = (float16)(K_rows_1_step_13.s2, K_rows_1_step_13.s3, K_rows_1_step_15.s2, K_rows_1_step_15.s3, K_rows_1_step_13.s6, K_rows_1_step_13.s7, K_rows_1_step_15.s6, K_rows_1_step_15.s7, K_rows_1_step_13.sa, K_rows_1_step_13.sb, K_rows_1_step_15.sa, K_rows_1_step_15.sb, K_rows_1_step_13.se, K_rows_1_step_13.sf, K_rows_1_step_15.se, K_rows_1_step_15.sf);
        float16 K_rows_1_step_2_1_0 = (float16)(K_rows_1_step_1_1_0.s0, K_rows_1_step_1_1_0.s1, K_rows_1_step_1_1_0.s2, K_rows_1_step_1_1_0.s3, K_rows_1_step_1_1_4.s0, K_rows_1_step_1_1_4.s1, K_rows_1_step_1_1_4.s2, K_rows_1_step_1_1_4.s3, K_rows_1_step_1_1_0.s8, K_rows_1_step_1_1_0.s9, K_rows_1_step_1_1_0.sa, K_rows_1_step_1_1_0.sb, K_rows_1_step_1_1_4.s8, K_rows_1_step_1_1_4.s9, K_rows_1_step_1_1_4.sa, K_rows_1_step_1_1_4.sb);
        float16 K_rows_1_step_2_1_1 = (float16)(K_rows_1_step_1_1_1.s0, K_rows_1_step_1_1_1.s1, K_rows_1_step_1_1_1.s2, K_rows_1_step_1_1_1.s3, K_rows_1_step_1_1_5.s0, K_rows_1_step_1_1_5.s1, K_rows_1_step_1_1_5.s2, K_rows_1_step_1_1_5.s3, K_rows_1_step_1_1_1.s8, K_rows_1_step_1_1_1.s9, K_rows_1_step_1_1_1.sa, K_rows_1_step_1_1_1.sb, K_rows_1_step_1_1_5.s8, K_rows_1_step_1_1_5.s9, K_rows_1_step_1_1_5.sa, K_rows_1_step_1_1_5.sb);
        float16 K_rows_1_step_2_1_2 = (float16)(K_rows_1_step_1_1_2.s0, K_rows_1_step_1_1_2.s1, K_rows_1_step_1_1_2.s2, K_rows_1_step_1_1_2.s3, K_rows_1_step_1_1_6.s0, K_rows_1_step_1_1_6.s1, K_rows_1_step_1_1_6.s2, K_rows_1_step_1_1_6.s3, K_rows_1_step_1_1_2.s8, K_rows_1_step_1_1_2.s9, K_rows_1_step_1_1_2.sa, K_rows_1_step_1_1_2.sb, K_rows_1_step_1_1_6.s8, K_rows_1_step_1_1_6.s9, K_rows_1_step_1_1_6.sa, K_rows_1_step_1_1_6.sb);
        float16 K_rows_1_step_2_1_3 = (float16)(K_rows_1_step_1_1_3.s0, K_rows_1_step_1_1_3.s1, K_rows_1_step_1_1_3.s2, K_rows_1_step_1_1_3.s3, K_rows_1_step_1_1_7.s0, K_rows_1_step_1_1_7.s1, K_rows_1_step_1_1_7.s2, K_rows_1_step_1_1_7.s3, K_rows_1_step_1_1_3.s8, K_rows_1_step_1_1_3.s9, K_rows_1_step_1_1_3.sa, K_rows_1_step_1_1_3.sb, K_rows_1_step_1_1_7.s8, K_rows_1_step_1_1_7.s9, K_rows_1_step_1_1_7.sa, K_rows_1_step_1_1_7.sb);
        float16 K_rows_1_step_2_1_4 = (float16)(K_rows_1_step_1_1_0.s4, K_rows_1_step_1_1_0.s5, K_rows_1_step_1_1_0.s6, K_rows_1_step_1_1_0.s7, K_rows_1_step_1_1_4.s4, K_rows_1_step_1_1_4.s5, K_rows_1_step_1_1_4.s6, K_rows_1_step_1_1_4.s7, K_rows_1_step_1_1_0.sc, K_rows_1_step_1_1_0.sd, K_rows_1_step_1_1_0.se, K_rows_1_step_1_1_0.sf, K_rows_1_step_1_1_4.sc, K_rows_1_step_1_1_4.sd, K_rows_1_step_1_1_4.se, K_rows_1_step_1_1_4.sf);
        float16 K_rows_1_step_2_1_5 = (float16)(K_rows_1_step_1_1_1.s4, K_rows_1_step_1_1_1.s5, K_rows_1_step_1_1_1.s6, K_rows_1_step_1_1_1.s7, K_rows_1_step_1_1_5.s4, K_rows_1_step_1_1_5.s5, K_rows_1_step_1_1_5.s6, K_rows_1_step_1_1_5.s7, K_rows_1_step_1_1_1.sc, K_rows_1_step_1_1_1.sd, K_rows_1_step_1_1_1.se, K_rows_1_step_1_1_1.sf, K_rows_1_step_1_1_5.sc, K_rows_1_step_1_1_5.sd, K_rows_1_step_1_1_5.se, K_rows_1_step_1_1_5.sf);
        float16 K_rows_1_step_2_1_6 = (float16)(K_rows_1_step_1_1_2.s4, K_rows_1_step_1_1_2.s5, K_rows_1_step_1_1_2.s6, K_rows_1_step_1_1_2.s7, K_rows_1_step_1_1_6.s4, K_rows_1_step_1_1_6.s5, K_rows_1_step_1_1_6.s6, K_rows_1_step_1_1_6.s7, K_rows_1_step_1_1_2.sc, K_rows_1_step_1_1_2.sd, K_rows_1_step_1_1_2.se, K_rows_1_step_1_1_2.sf, K_rows_1_step_1_1_6.sc, K_rows_1_step_1_1_6.sd, K_rows_1_step_1_1_6.se, K_rows_1_step_1_1_6.sf);
        float16 K_rows_1_step_2_1_7 = (float16)(K_rows_1_step_1_1_3.s4, K_rows_1_step_1_1_3.s5, K_rows_1_step_1_1_3.s6, K_rows_1_step_1_1_3.s7, K_rows_1_step_1_1_7.s4, K_rows_1_step_1_1_7.s5, K_rows_1_step_1_1_7.s6, K_rows_1_step_1_1_7.s7, K_rows_1_step_1_1_3.sc, K_rows_1_step_1_1_3.sd, K_rows_1_step_1_1_3.se, K_rows_1_step_1_1_3.sf, K_rows_1_step_1_1_7.sc, K_rows_1_step_1_1_7.sd, K_rows_1_step_1_1_7.se, K_rows_1_step_1_1_7.sf);
        float16 K_rows_1_step_2_1_8 = (float16)(K_rows_1_step_1_1_8.s0, K_rows_1_step_1_1_8.s1, K_rows_1_step_1_1_8.s2, K_rows_1_step_1_1_8.s3, K_rows_1_step_1_1_12.s0, K_rows_1_step_1_1_12.s1, K_rows_1_step_1_1_12.s2, K_rows_1_step_1_1_12.s3, K_rows_1_step_1_1_8.s8, K_rows_1_step_1_1_8.s9, K_rows_1_step_1_1_8.sa, K_rows_1_step_1_1_8.sb, K_rows_1_step_1_1_12.s8, K_rows_1_step_1_1_12.s9, K_rows_1_step_1_1_12.sa, K_rows_1_step_1_1_12.sb);
        float16 K_rows_1_step_2_1_9 = (float16)(K_rows_1_step_1_1_9.s0, K_rows_1_step_1_1_9.s1, K_rows_1_step_1_1_9.s2, K_rows_1_step_1_1_9.s3, K_rows_1_step_1_1_13.s0, K_rows_1_step_1_1_13.s1, K_rows_1_step_1_1_13.s2, K_rows_1_step_1_1_13.s3, K_rows_1_step_1_1_9.s8, K_rows_1_step_1_1_9.s9, K_rows_1_step_1_1_9.sa, K_rows_1_step_1_1_9.sb, K_rows_1_step_1_1_13.s8, K_rows_1_step_1_1_13.s9, K_rows_1_step_1_1_13.sa, K_rows_1_step_1_1_13.sb);
        float16 K_rows_1_step_2_1_10 = (float16)(K_rows_1_step_1_1_10.s0, K_rows_1_step_1_1_10.s1, K_rows_1_step_1_1_10.s2, K_rows_1_step_1_1_10.s3, K_rows_1_step_1_1_14.s0, K_rows_1_step_1_1_14.s1, K_rows_1_step_1_1_14.s2, K_rows_1_step_1_1_14.s3, K_rows_1_step_1_1_10.s8, K_rows_1_step_1_1_10.s9, K_rows_1_step_1_1_10.sa, K_rows_1_step_1_1_10.sb, K_rows_1_step_1_1_14.s8, K_rows_1_step_1_1_14.s9, K_rows_1_step_1_1_14.sa, K_rows_1_step_1_1_14.sb);
        float16 K_rows_1_step_2_1_11 = (float16)(K_rows_1_step_1_1_11.s0, K_rows_1_step_1_1_11.s1, K_rows_1_step_1_1_11.s2, K_rows_1_step_1_1_11.s3, K_rows_1_step_1_1_15.s0, K_rows_1_step_1_1_15.s1, K_rows_1_step_1_1_15.s2, K_rows_1_step_1_1_15.s3, K_rows_1_step_1_1_11.s8, K_rows_1_step_1_1_11.s9, K_rows_1_step_1_1_11.sa, K_rows_1_step_1_1_11.sb, K_rows_1_step_1_1_15.s8, K_rows_1_step_1_1_15.s9, K_rows_1_step_1_1_15.sa, K_rows_1_step_1_1_15.sb);
        float16 K_rows_1_step_2_1_12 = (float16)(K_rows_1_step_1_1_8.s4, K_rows_1_step_1_1_8.s5, K_rows_1_step_1_1_8.s6, K_rows_1_step_1_1_8.s7, K_rows_1_step_1_1_12.s4, K_rows_1_step_1_1_12.s5, K_rows_1_step_1_1_12.s6, K_rows_1_step_1_1_12.s7, K_rows_1_step_1_1_8.sc, K_rows_1_step_1_1_8.sd, K_rows_1_step_1_1_8.se, K_rows_1_step_1_1_8.sf, K_rows_1_step_1_1_12.sc, K_rows_1_step_1_1_12.sd, K_rows_1_step_1_1_12.se, K_rows_1_step_1_1_12.sf);
        float16 K_rows_1_step_2_1_13 = (float16)(K_rows_1_step_1_1_9.s4, K_rows_1_step_1_1_9.s5, K_rows_1_step_1_1_9.s6, K_rows_1_step_1_1_9.s7, K_rows_1_step_1_1_13.s4, K_rows_1_step_1_1_13.s5, K_rows_1_step_1_1_13.s6, K_rows_1_step_1_1_13.s7, K_rows_1_step_1_1_9.sc, K_rows_1_step_1_1_9.sd, K_rows_1_step_1_1_9.se, K_rows_1_step_1_1_9.sf, K_rows_1_step_1_1_13.sc, K_rows_1_step_1_1_13.sd, K_rows_1_step_1_1_13.se, K_rows_1_step_1_1_13.sf);
        float16 K_rows_1_step_2_1_14 = (float16)(K_rows_1_step_1_1_10.s4, K_rows_1_step_1_1_10.s5, K_rows_1_step_1_1_10.s6, K_rows_1_step_1_1_10.s7, K_rows_1_step_1_1_14.s4, K_rows_1_step_1_1_14.s5, K_rows_1_step_1_1_14.s6, K_rows_1_step_1_1_14.s7, K_rows_1_step_1_1_10.sc, K_rows_1_step_1_1_10.sd, K_rows_1_step_1_1_10.se, K_rows_1_step_1_1_10.sf, K_rows_1_step_1_1_14.sc, K_rows_1_step_1_1_14.sd, K_rows_1_step_1_1_14.se, K_rows_1_step_1_1_14.sf);
        float16 K_rows_1_step_2_1_15 = (float16)(K_rows_1_step_1_1_11.s4, K_rows_1_step_1_1_11.s5, K_rows_1_step_1_1_11.s6, K_rows_1_step_1_1_11.s7, K_rows_1_step_1_1_15.s4, K_rows_1_step_1_1_15.s5, K_rows_1_step_1_1_15.s6, K_rows_1_step_1_1_15.s7, K_rows_1_step_1_1_11.sc, K_rows_1_step_1_1_11.sd, K_rows_1_step_1_1_11.se, K_rows_1_step_1_1_11.sf, K_rows_1_step_1_1_15.sc, K_rows_1_step_1_1_15.sd, K_rows_1_step_1_1_15.se, K_rows_1_step_1_1_15.sf);
        float16 K_rows_1_turned_0 = (float16)(K_rows_1_step_2_1_0.s0, K_rows_1_step_2_1_0.s1, K_rows_1_step_2_1_0.s2, K_rows_1_step_2_1_0.s3, K_rows_1_step_2_1_0.s4, K_rows_1_step_2_1_0.s5, K_rows_1_step_2_1_0.s6, K_rows_1_step_2_1_0.s7, K_rows_1_step_2_1_8.s0, K_rows_1_step_2_1_8.s1, K_rows_1_step_2_1_8.s2, K_rows_1_step_2_1_8.s3, K_rows_1_step_2_1_8.s4, K_rows_1_step_2_1_8.s5, K_rows_1_step_2_1_8.s6, K_rows_1_step_2_1_8.s7);
        float16 K_rows_1_turned_1 = (float16)(K_rows_1_step_2_1_1.s0, K_rows_1_step_2_1_1.s1, K_rows_1_step_2_1_1.s2, K_rows_1_step_2_1_1.s3, K_rows_1_step_2_1_1.s4, K_rows_1_step_2_1_1.s5, K_rows_1_step_2_1_1.s6, K_rows_1_step_2_1_1.s7, K_rows_1_step_2_1_9.s0, K_rows_1_step_2_1_9.s1, K_rows_1_step_2_1_9.s2, K_rows_1_step_2_1_9.s3, K_rows_1_step_2_1_9.s4, K_rows_1_step_2_1_9.s5, K_rows_1_step_2_1_9.s6, K_rows_1_step_2_1_9.s7);
        float16 K_rows_1_turned_2 = (float16)(K_rows_1_step_2_1_2.s0, K_rows_1_step_2_1_2.s1, K_rows_1_step_2_1_2.s2, K_rows_1_step_2_1_2.s3, K_rows_1_step_2_1_2.s4, K_rows_1_step_2_1_2.s5, K_rows_1_step_2_1_2.s6, K_rows_1_step_2_1_2.s7, K_rows_1_step_2_1_10.s0, K_rows_1_step_2_1_10.s1, K_rows_1_step_2_1_10.s2, K_rows_1_step_2_1_10.s3, K_rows_1_step_2_1_10.s4, K_rows_1_step_2_1_10.s5, K_rows_1_step_2_1_10.s6, K_rows_1_step_2_1_10.s7);
        float16 K_rows_1_turned_3 = (float16)(K_rows_1_step_2_1_3.s0, K_rows_1_step_2_1_3.s1, K_rows_1_step_2_1_3.s2, K_rows_1_step_2_1_3.s3, K_rows_1_step_2_1_3.s4, K_rows_1_step_2_1_3.s5, K_rows_1_step_2_1_3.s6, K_rows_1_step_2_1_3.s7, K_rows_1_step_2_1_11.s0, K_rows_1_step_2_1_11.s1, K_rows_1_step_2_1_11.s2, K_rows_1_step_2_1_11.s3, K_rows_1_step_2_1_11.s4, K_rows_1_step_2_1_11.s5, K_rows_1_step_2_1_11.s6, K_rows_1_step_2_1_11.s7);
        float16 K_rows_1_turned_4 = (float16)(K_rows_1_step_2_1_4.s0, K_rows_1_step_2_1_4.s1, K_rows_1_step_2_1_4.s2, K_rows_1_step_2_1_4.s3, K_rows_1_step_2_1_4.s4, K_rows_1_step_2_1_4.s5, K_rows_1_step_2_1_4.s6, K_rows_1_step_2_1_4.s7, K_rows_1_step_2_1_12.s0, K_rows_1_step_2_1_12.s1, K_rows_1_step_2_1_12.s2, K_rows_1_step_2_1_12.s3, K_rows_1_step_2_1_12.s4, K_rows_1_step_2_1_12.s5, K_rows_1_step_2_1_12.s6, K_rows_1_step_2_1_12.s7);
        float16 K_rows_1_turned_5 = (float16)(K_rows_1_step_2_1_5.s0, K_rows_1_step_2_1_5.s1, K_rows_1_step_2_1_5.s2, K_rows_1_step_2_1_5.s3, K_rows_1_step_2_1_5.s4, K_rows_1_step_2_1_5.s5, K_rows_1_step_2_1_5.s6, K_rows_1_step_2_1_5.s7, K_rows_1_step_2_1_13.s0, K_rows_1_step_2_1_13.s1, K_rows_1_step_2_1_13.s2, K_rows_1_step_2_1_13.s3, K_rows_1_step_2_1_13.s4, K_rows_1_step_2_1_13.s5, K_rows_1_step_2_1_13.s6, K_rows_1_step_2_1_13.s7);
        float16 K_rows_1_turned_6 = (float16)(K_rows_1_step_2_1_6.s0, K_rows_1_step_2_1_6.s1, K_rows_1_step_2_1_6.s2, K_rows_1_step_2_1_6.s3, K_rows_1_step_2_1_6.s4, K_rows_1_step_2_1_6.s5, K_rows_1_step_2_1_6.s6, K_rows_1_step_2_1_6.s7, K_rows_1_step_2_1_14.s0, K_rows_1_step_2_1_14.s1, K_rows_1_step_2_1_14.s2, K_rows_1_step_2_1_14.s3, K_rows_1_step_2_1_14.s4, K_rows_1_step_2_1_14.s5, K_rows_1_step_2_1_14.s6, K_rows_1_step_2_1_14.s7);
        float16 K_rows_1_turned_7 = (float16)(K_rows_1_step_2_1_7.s0, K_rows_1_step_2_1_7.s1, K_rows_1_step_2_1_7.s2, K_rows_1_step_2_1_7.s3, K_rows_1_step_2_1_7.s4, K_rows_1_step_2_1_7.s5, K_rows_1_step_2_1_7.s6, K_rows_1_step_2_1_7.s7, K_rows_1_step_2_1_15.s0, K_rows_1_step_2_1_15.s1, K_rows_1_step_2_1_15.s2, K_rows_1_step_2_1_15.s3, K_rows_1_step_2_1_15.s4, K_rows_1_step_2_1_15.s5, K_rows_1_step_2_1_15.s6, K_rows_1_step_2_1_15.s7);
        float16 K_rows_1_turned_8 = (float16)(K_rows_1_step_2_1_0.s8, K_rows_1_step_2_1_0.s9, K_rows_1_step_2_1_0.sa, K_rows_1_step_2_1_0.sb, K_rows_1_step_2_1_0.sc, K_rows_1_step_2_1_0.sd, K_rows_1_step_2_1_0.se, K_rows_1_step_2_1_0.sf, K_rows_1_step_2_1_8.s8, K_rows_1_step_2_1_8.s9, K_rows_1_step_2_1_8.sa, K_rows_1_step_2_1_8.sb, K_rows_1_step_2_1_8.sc, K_rows_1_step_2_1_8.sd, K_rows_1_step_2_1_8.se, K_rows_1_step_2_1_8.sf);
        float16 K_rows_1_turned_9 = (float16)(K_rows_1_step_2_1_1.s8, K_rows_1_step_2_1_1.s9, K_rows_1_step_2_1_1.sa, K_rows_1_step_2_1_1.sb, K_rows_1_step_2_1_1.sc, K_rows_1_step_2_1_1.sd, K_rows_1_step_2_1_1.se, K_rows_1_step_2_1_1.sf, K_rows_1_step_2_1_9.s8, K_rows_1_step_2_1_9.s9, K_rows_1_step_2_1_9.sa, K_rows_1_step_2_1_9.sb, K_rows_1_step_2_1_9.sc, K_rows_1_step_2_1_9.sd, K_rows_1_step_2_1_9.se, K_rows_1_step_2_1_9.sf);
        float16 K_rows_1_turned_10 = (float16)(K_rows_1_step_2_1_2.s8, K_rows_1_step_2_1_2.s9, K_rows_1_step_2_1_2.sa, K_rows_1_step_2_1_2.sb, K_rows_1_step_2_1_2.sc, K_rows_1_step_2_1_2.sd, K_rows_1_step_2_1_2.se, K_rows_1_step_2_1_2.sf, K_rows_1_step_2_1_10.s8, K_rows_1_step_2_1_10.s9, K_rows_1_step_2_1_10.sa, K_rows_1_step_2_1_10.sb, K_rows_1_step_2_1_10.sc, K_rows_1_step_2_1_10.sd, K_rows_1_step_2_1_10.se, K_rows_1_step_2_1_10.sf);
        float16 K_rows_1_turned_11 = (float16)(K_rows_1_step_2_1_3.s8, K_rows_1_step_2_1_3.s9, K_rows_1_step_2_1_3.sa, K_rows_1_step_2_1_3.sb, K_rows_1_step_2_1_3.sc, K_rows_1_step_2_1_3.sd, K_rows_1_step_2_1_3.se, K_rows_1_step_2_1_3.sf, K_rows_1_step_2_1_11.s8, K_rows_1_step_2_1_11.s9, K_rows_1_step_2_1_11.sa, K_rows_1_step_2_1_11.sb, K_rows_1_step_2_1_11.sc, K_rows_1_step_2_1_11.sd, K_rows_1_step_2_1_11.se, K_rows_1_step_2_1_11.sf);
        float16 K_rows_1_turned_12 = (float16)(K_rows_1_step_2_1_4.s8, K_rows_1_step_2_1_4.s9, K_rows_1_step_2_1_4.sa, K_rows_1_step_2_1_4.sb, K_rows_1_step_2_1_4.sc, K_rows_1_step_2_1_4.sd, K_rows_1_step_2_1_4.se, K_rows_1_step_2_1_4.sf, K_rows_1_step_2_1_12.s8, K_rows_1_step_2_1_12.s9, K_rows_1_step_2_1_12.sa, K_rows_1_step_2_1_12.sb, K_rows_1_step_2_1_12.sc, K_rows_1_step_2_1_12.sd, K_rows_1_step_2_1_12.se, K_rows_1_step_2_1_12.sf);
        float16 K_rows_1_turned_13 = (float16)(K_rows_1_step_2_1_5.s8, K_rows_1_step_2_1_5.s9, K_rows_1_step_2_1_5.sa, K_rows_1_step_2_1_5.sb, K_rows_1_step_2_1_5.sc, K_rows_1_step_2_1_5.sd, K_rows_1_step_2_1_5.se, K_rows_1_step_2_1_5.sf, K_rows_1_step_2_1_13.s8, K_rows_1_step_2_1_13.s9, K_rows_1_step_2_1_13.sa, K_rows_1_step_2_1_13.sb, K_rows_1_step_2_1_13.sc, K_rows_1_step_2_1_13.sd, K_rows_1_step_2_1_13.se, K_rows_1_step_2_1_13.sf);
        float16 K_rows_1_turned_14 = (float16)(K_rows_1_step_2_1_6.s8, K_rows_1_step_2_1_6.s9, K_rows_1_step_2_1_6.sa, K_rows_1_step_2_1_6.sb, K_rows_1_step_2_1_6.sc, K_rows_1_step_2_1_6.sd, K_rows_1_step_2_1_6.se, K_rows_1_step_2_1_6.sf, K_rows_1_step_2_1_14.s8, K_rows_1_step_2_1_14.s9, K_rows_1_step_2_1_14.sa, K_rows_1_step_2_1_14.sb, K_rows_1_step_2_1_14.sc, K_rows_1_step_2_1_14.sd, K_rows_1_step_2_1_14.se, K_rows_1_step_2_1_14.sf);
        float16 K_rows_1_turned_15 = (float16)(K_rows_1_step_2_1_7.s8, K_rows_1_step_2_1_7.s9, K_rows_1_step_2_1_7.sa, K_rows_1_step_2_1_7.sb, K_rows_1_step_2_1_7.sc, K_rows_1_step_2_1_7.sd, K_rows_1_step_2_1_7.se, K_rows_1_step_2_1_7.sf, K_rows_1_step_2_1_15.s8, K_rows_1_step_2_1_15.s9, K_rows_1_step_2_1_15.sa, K_rows_1_step_2_1_15.sb, K_rows_1_step_2_1_15.sc, K_rows_1_step_2_1_15.sd, K_rows_1_step_2_1_15.se, K_rows_1_step_2_1_15.sf);
        *(__local float16_u*)(K_shared + min(j_11 * 16, 21)) = K_rows_1_turned_0;
        *(__local float16_u*)(K_shared + min(j_11 * 16, 21) + 64) = K_rows_1_turned_1;
        *(__local float16_u*)(K_shared + min(j_11 * 16, 21) + 128) = K_rows_1_turned_2;
        *(__local float16_u*)(K_shared + min(j_11 * 16, 21) + 192) = K_rows_1_turned_3;
        *(__local float16_u*)(K_shared + min(j_11 * 16, 21) + 256) = K_rows_1_turned_4;
        *(__local float16_u*)(K_shared + min(j_11 * 16, 21) + 320) = K_rows_1_turned_5;
        *(__local float16_u*)(K_shared + min(j_11 * 16, 21) + 384) = K_rows_1_turned_6;
        *(__local float16_u*)(K_shared + min(j_11 * 16, 21) + 448) = K_rows_1_turned_7;
        *(__local float16_u*)(K_shared + min(j_11 * 16, 21) + 512) = K_rows_1_turned_8;
        *(__local float16_u*)(K_shared + min(j_11 * 16, 21) + 576) = K_rows_1_turned_9;
        *(__local float16_u*)(K_shared + min(j_11 * 16, 21) + 640) = K_rows_1_turned_10;
    }
    for (int d_5 = 0; d_5 < 11; ++d_5) {
        *(__local float16_u*)(K_shared + d_5 * 64 + 37) = (float16)(0.0f);
        *(__local float16*)(K_shared + d_5 * 64 + 48) = (float16)(0.0f);
    }
    for (int j_1 = 0; j_1 < 2; ++j_1) {
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
                    S_state_0_0 = S_state_0_0 + *(Q + block_x * 176 + i * 88 + d_1) * *(__local const float16*)(K_shared + d_1 * 64 + j_1 * 32);
                    S_state_0_1 = S_state_0_1 + *(Q + block_x * 176 + i * 88 + d_1) * *(__local const float16*)(K_shared + d_1 * 64 + j_1 * 32 + 16);
                    S_state_1_0 = S_state_1_0 + *(Q + block_x * 176 + i * 88 + d_1 + 11) * *(__local const float16*)(K_shared + d_1 * 64 + j_1 * 32);
                    S_state_1_1 = S_state_1_1 + *(Q + block_x * 176 + i * 88 + d_1 + 11) * *(__local const float16*)(K_shared + d_1 * 64 + j_1 * 32 + 16);
                    S_state_2_0 = S_state_2_0 + *(Q + block_x * 176 + i * 88 + d_1 + 22) * *(__local const float16*)(K_shared + d_1 * 64 + j_1 * 32);
                    S_state_2_1 = S_state_2_1 + *(Q + block_x * 176 + i * 88 + d_1 + 22) * *(__local const float16*)(K_shared + d_1 * 64 + j_1 * 32 + 16);
                    S_state_3_0 = S_state_3_0 + *(Q + block_x * 176 + i * 88 + d_1 + 33) * *(__local const float16*)(K_shared + d_1 * 64 + j_1 * 32);
                    S_state_3_1 = S_state_3_1 + *(Q + block_x * 176 + i * 88 + d_1 + 33) * *(__local const float16*)(K_shared + d_1 * 64 + j_1 * 32 + 16);
                    S_state_4_0 = S_state_4_0 + *(Q + block_x * 176 + i * 88 + d_1 + 44) * *(__local const float16*)(K_shared + d_1 * 64 + j_1 * 32);
                    S_state_4_1 = S_state_4_1 + *(Q + block_x * 176 + i * 88 + d_1 + 44) * *(__local const float16*)(K_shared + d_1 * 64 + j_1 * 32 + 16);
                    S_state_5_0 = S_state_5_0 + *(Q + block_x * 176 + i * 88 + d_1 + 55) * *(__local const float16*)(K_shared + d_1 * 64 + j_1 * 32);
                    S_state_5_1 = S_state_5_1 + *(Q + block_x * 176 + i * 88 + d_1 + 55) * *(__local const float16*)(K_shared + d_1 * 64 + j_1 * 32 + 16);
                    S_state_6_0 = S_state_6_0 + *(Q + block_x * 176 + i * 88 + d_1 + 66) * *(__local const float16*)(K_shared + d_1 * 64 + j_1 * 32);
                    S_state_6_1 = S_state_6_1 + *(Q + block_x * 176 + i * 88 + d_1 + 66) * *(__local const float16*)(K_shared + d_1 * 64 + j_1 * 32 + 16);
                    S_state_7_0 = S_state_7_0 + *(Q + block_x * 176 + i * 88 + d_1 + 77) * *(__local const float16*)(K_shared + d_1 * 64 + j_1 * 32);
                    S_state_7_1 = S_state_7_1 + *(Q + block_x * 176 + i * 88 + d_1 + 77) * *(__local const float16*)(K_shared + d_1 * 64 + j_1 * 32 + 16);
                }
                if (j_1 * 32 < 6) {
                    *(__local float16*)(S_shared + i * 512 + j_1 * 32) = S_state_0_0;
                    *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 16) = S_state_0_1;
                    *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 64) = S_state_1_0;
                    *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 80) = S_state_1_1;
                    *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 128) = S_state_2_0;
                    *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 144) = S_state_2_1;
                    *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 192) = S_state_3_0;
                    *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 208) = S_state_3_1;
                    *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 256) = S_state_4_0;
                    *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 272) = S_state_4_1;
                    *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 320) = S_state_5_0;
                    *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 336) = S_state_5_1;
                    *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 384) = S_state_6_0;
                    *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 400) = S_state_6_1;
                    *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 448) = S_state_7_0;
                    *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 464) = S_state_7_1;
                } else {
                    if (j_1 * 32 < 22) {
                        *(__local float16*)(S_shared + i * 512 + j_1 * 32) = S_state_0_0;
                    } else {
                        store_first_shared_float16(S_shared + i * 512 + j_1 * 32, S_state_0_0, 37 - j_1 * 32);
                    }
                    if (j_1 * 32 < 6) {
                        *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 16) = S_state_0_1;
                    } else {
                        if (j_1 * 32 < 21) {
                            store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 16, S_state_0_1, 21 - j_1 * 32);
                        }
                    }
                    if (j_1 * 32 < 22) {
                        *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 64) = S_state_1_0;
                    } else {
                        store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 64, S_state_1_0, 37 - j_1 * 32);
                    }
                    if (j_1 * 32 < 6) {
                        *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 80) = S_state_1_1;
                    } else {
                        if (j_1 * 32 < 21) {
                            store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 80, S_state_1_1, 21 - j_1 * 32);
                        }
                    }
                    if (j_1 * 32 < 22) {
                        *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 128) = S_state_2_0;
                    } else {
                        store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 128, S_state_2_0, 37 - j_1 * 32);
                    }
                    if (j_1 * 32 < 6) {
                        *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 144) = S_state_2_1;
                    } else {
                        if (j_1 * 32 < 21) {
                            store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 144, S_state_2_1, 21 - j_1 * 32);
                        }
                    }
                    if (j_1 * 32 < 22) {
                        *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 192) = S_state_3_0;
                    } else {
                        store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 192, S_state_3_0, 37 - j_1 * 32);
                    }
                    if (j_1 * 32 < 6) {
                        *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 208) = S_state_3_1;
                    } else {
                        if (j_1 * 32 < 21) {
                            store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 208, S_state_3_1, 21 - j_1 * 32);
                        }
                    }
                    if (j_1 * 32 < 22) {
                        *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 256) = S_state_4_0;
                    } else {
                        store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 256, S_state_4_0, 37 - j_1 * 32);
                    }
                    if (j_1 * 32 < 6) {
                        *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 272) = S_state_4_1;
                    } else {
                        if (j_1 * 32 < 21) {
                            store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 272, S_state_4_1, 21 - j_1 * 32);
                        }
                    }
                    if (j_1 * 32 < 22) {
                        *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 320) = S_state_5_0;
                    } else {
                        store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 320, S_state_5_0, 37 - j_1 * 32);
                    }
                    if (j_1 * 32 < 6) {
                        *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 336) = S_state_5_1;
                    } else {
                        if (j_1 * 32 < 21) {
                            store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 336, S_state_5_1, 21 - j_1 * 32);
                        }
                    }
                    if (j_1 * 32 < 22) {
                        *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 384) = S_state_6_0;
                    } else {
                        store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 384, S_state_6_0, 37 - j_1 * 32);
                    }
                    if (j_1 * 32 < 6) {
                        *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 400) = S_state_6_1;
                    } else {
                        if (j_1 * 32 < 21) {
                            store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 400, S_state_6_1, 21 - j_1 * 32);
                        }
                    }
                    if (j_1 * 32 < 22) {
                        *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 448) = S_state_7_0;
                    } else {
                        store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 448, S_state_7_0, 37 - j_1 * 32);
                    }
                    if (j_1 * 32 < 6) {
                        *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 464) = S_state_7_1;
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
                        S_state_1_0_0 = S_state_1_0_0 + *(Q + block_x * 176 + i * 88 + d_2) * *(__local const float16*)(K_shared + d_2 * 64 + j_1 * 32);
                        S_state_1_0_1 = S_state_1_0_1 + *(Q + block_x * 176 + i * 88 + d_2) * *(__local const float16*)(K_shared + d_2 * 64 + j_1 * 32 + 16);
                    }
                    if (block_x * 16 + i * 8 < 16) {
                        S_state_1_1_0 = S_state_1_1_0 + *(Q + block_x * 176 + i * 88 + d_2 + 11) * *(__local const float16*)(K_shared + d_2 * 64 + j_1 * 32);
                        S_state_1_1_1 = S_state_1_1_1 + *(Q + block_x * 176 + i * 88 + d_2 + 11) * *(__local const float16*)(K_shared + d_2 * 64 + j_1 * 32 + 16);
                    }
                    if (block_x * 16 + i * 8 < 15) {
                        S_state_1_2_0 = S_state_1_2_0 + *(Q + block_x * 176 + i * 88 + d_2 + 22) * *(__local const float16*)(K_shared + d_2 * 64 + j_1 * 32);
                        S_state_1_2_1 = S_state_1_2_1 + *(Q + block_x * 176 + i * 88 + d_2 + 22) * *(__local const float16*)(K_shared + d_2 * 64 + j_1 * 32 + 16);
                    }
                    if (block_x * 16 + i * 8 < 14) {
                        S_state_1_3_0 = S_state_1_3_0 + *(Q + block_x * 176 + i * 88 + d_2 + 33) * *(__local const float16*)(K_shared + d_2 * 64 + j_1 * 32);
                        S_state_1_3_1 = S_state_1_3_1 + *(Q + block_x * 176 + i * 88 + d_2 + 33) * *(__local const float16*)(K_shared + d_2 * 64 + j_1 * 32 + 16);
                    }
                    if (block_x * 16 + i * 8 < 13) {
                        S_state_1_4_0 = S_state_1_4_0 + *(Q + block_x * 176 + i * 88 + d_2 + 44) * *(__local const float16*)(K_shared + d_2 * 64 + j_1 * 32);
                        S_state_1_4_1 = S_state_1_4_1 + *(Q + block_x * 176 + i * 88 + d_2 + 44) * *(__local const float16*)(K_shared + d_2 * 64 + j_1 * 32 + 16);
                    }
                    if (block_x * 16 + i * 8 < 12) {
                        S_state_1_5_0 = S_state_1_5_0 + *(Q + block_x * 176 + i * 88 + d_2 + 55) * *(__local const float16*)(K_shared + d_2 * 64 + j_1 * 32);
                        S_state_1_5_1 = S_state_1_5_1 + *(Q + block_x * 176 + i * 88 + d_2 + 55) * *(__local const float16*)(K_shared + d_2 * 64 + j_1 * 32 + 16);
                    }
                    if (block_x * 16 + i * 8 < 11) {
                        S_state_1_6_0 = S_state_1_6_0 + *(Q + block_x * 176 + i * 88 + d_2 + 66) * *(__local const float16*)(K_shared + d_2 * 64 + j_1 * 32);
                        S_state_1_6_1 = S_state_1_6_1 + *(Q + block_x * 176 + i * 88 + d_2 + 66) * *(__local const float16*)(K_shared + d_2 * 64 + j_1 * 32 + 16);
                    }
                    if (block_x * 16 + i * 8 < 10) {
                        S_state_1_7_0 = S_state_1_7_0 + *(Q + block_x * 176 + i * 88 + d_2 + 77) * *(__local const float16*)(K_shared + d_2 * 64 + j_1 * 32);
                        S_state_1_7_1 = S_state_1_7_1 + *(Q + block_x * 176 + i * 88 + d_2 + 77) * *(__local const float16*)(K_shared + d_2 * 64 + j_1 * 32 + 16);
                    }
                }
                if (block_x * 16 + i * 8 < 17) {
                    if (j_1 * 32 < 22) {
                        *(__local float16*)(S_shared + i * 512 + j_1 * 32) = S_state_1_0_0;
                    } else {
                        store_first_shared_float16(S_shared + i * 512 + j_1 * 32, S_state_1_0_0, 37 - j_1 * 32);
                    }
                    if (j_1 * 32 < 6) {
                        *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 16) = S_state_1_0_1;
                    } else {
                        if (j_1 * 32 < 21) {
                            store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 16, S_state_1_0_1, 21 - j_1 * 32);
                        }
                    }
                }
                if (block_x * 16 + i * 8 < 16) {
                    if (j_1 * 32 < 22) {
                        *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 64) = S_state_1_1_0;
                    } else {
                        store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 64, S_state_1_1_0, 37 - j_1 * 32);
                    }
                    if (j_1 * 32 < 6) {
                        *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 80) = S_state_1_1_1;
                    } else {
                        if (j_1 * 32 < 21) {
                            store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 80, S_state_1_1_1, 21 - j_1 * 32);
                        }
                    }
                }
                if (block_x * 16 + i * 8 < 15) {
                    if (j_1 * 32 < 22) {
                        *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 128) = S_state_1_2_0;
                    } else {
                        store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 128, S_state_1_2_0, 37 - j_1 * 32);
                    }
                    if (j_1 * 32 < 6) {
                        *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 144) = S_state_1_2_1;
                    } else {
                        if (j_1 * 32 < 21) {
                            store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 144, S_state_1_2_1, 21 - j_1 * 32);
                        }
                    }
                }
                if (block_x * 16 + i * 8 < 14) {
                    if (j_1 * 32 < 22) {
                        *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 192) = S_state_1_3_0;
                    } else {
                        store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 192, S_state_1_3_0, 37 - j_1 * 32);
                    }
                    if (j_1 * 32 < 6) {
                        *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 208) = S_state_1_3_1;
                    } else {
                        if (j_1 * 32 < 21) {
                            store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 208, S_state_1_3_1, 21 - j_1 * 32);
                        }
                    }
                }
                if (block_x * 16 + i * 8 < 13) {
                    if (j_1 * 32 < 22) {
                        *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 256) = S_state_1_4_0;
                    } else {
                        store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 256, S_state_1_4_0, 37 - j_1 * 32);
                    }
                    if (j_1 * 32 < 6) {
                        *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 272) = S_state_1_4_1;
                    } else {
                        if (j_1 * 32 < 21) {
                            store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 272, S_state_1_4_1, 21 - j_1 * 32);
                        }
                    }
                }
                if (block_x * 16 + i * 8 < 12) {
                    if (j_1 * 32 < 22) {
                        *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 320) = S_state_1_5_0;
                    } else {
                        store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 320, S_state_1_5_0, 37 - j_1 * 32);
                    }
                    if (j_1 * 32 < 6) {
                        *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 336) = S_state_1_5_1;
                    } else {
                        if (j_1 * 32 < 21) {
                            store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 336, S_state_1_5_1, 21 - j_1 * 32);
                        }
                    }
                }
                if (block_x * 16 + i * 8 < 11) {
                    if (j_1 * 32 < 22) {
                        *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 384) = S_state_1_6_0;
                    } else {
                        store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 384, S_state_1_6_0, 37 - j_1 * 32);
                    }
                    if (j_1 * 32 < 6) {
                        *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 400) = S_state_1_6_1;
                    } else {
                        if (j_1 * 32 < 21) {
                            store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 400, S_state_1_6_1, 21 - j_1 * 32);
                        }
                    }
                }
                if (block_x * 16 + i * 8 < 10) {
                    if (j_1 * 32 < 22) {
                        *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 448) = S_state_1_7_0;
                    } else {
                        store_first_shared_float16(S_shared + i * 512 + j_1 * 32 + 448, S_state_1_7_0, 37 - j_1 * 32);
                    }
                    if (j_1 * 32 < 6) {
                        *(__local float16*)(S_shared + i * 512 + j_1 * 32 + 464) = S_state_1_7_1;
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
                peak_chunk_state = maximum_float16(peak_chunk_state, *(__local const float16*)(S_shared + i_6 * 64 + j_7 * 16));
            } else {
                if (j_7 * 16 < 37) {
                    peak_chunk_state = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)(37 - j_7 * 16) ? maximum_float16(peak_chunk_state, load_first_shared_float16(S_shared + i_6 * 64 + j_7 * 16, 37 - j_7 * 16, (float16)(0.0f))) : peak_chunk_state;
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
            *(__local float16_u*)(P_shared + i_6 * 64 + first_1) = exp_float16(*(__local const float16_u*)(S_shared + i_6 * 64 + first_1) - peak_shared[i_6]);
        }
        float16 total_chunk_state = (float16)(0.0f);
        for (int j_9 = 0; j_9 < 3; ++j_9) {
            if (j_9 * 16 < 22) {
                total_chunk_state = total_chunk_state + *(__local const float16*)(P_shared + i_6 * 64 + j_9 * 16);
            } else {
                if (j_9 * 16 < 37) {
                    total_chunk_state = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)(37 - j_9 * 16) ? total_chunk_state + load_first_shared_float16(P_shared + i_6 * 64 + j_9 * 16, 37 - j_9 * 16, (float16)(0.0f)) : total_chunk_state;
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
        mix_state_0_0 = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)(11) ? mix_state_0_0 + P_shared[j_10] * load_first_global_float16(V + j_10 * 11, 11, (float16)(0.0f)) : mix_state_0_0;
        if (block_x * 16 < 16) {
            mix_state_0_1 = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)(11) ? mix_state_0_1 + P_shared[j_10 + 64] * load_first_global_float16(V + j_10 * 11, 11, (float16)(0.0f)) : mix_state_0_1;
        }
        if (block_x * 16 < 15) {
            mix_state_0_2 = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)(11) ? mix_state_0_2 + P_shared[j_10 + 128] * load_first_global_float16(V + j_10 * 11, 11, (float16)(0.0f)) : mix_state_0_2;
        }
        if (block_x * 16 < 14) {
            mix_state_0_3 = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)(11) ? mix_state_0_3 + P_shared[j_10 + 192] * load_first_global_float16(V + j_10 * 11, 11, (float16)(0.0f)) : mix_state_0_3;
        }
        if (block_x * 16 < 13) {
            mix_state_0_4 = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)(11) ? mix_state_0_4 + P_shared[j_10 + 256] * load_first_global_float16(V + j_10 * 11, 11, (float16)(0.0f)) : mix_state_0_4;
        }
        if (block_x * 16 < 12) {
            mix_state_0_5 = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)(11) ? mix_state_0_5 + P_shared[j_10 + 320] * load_first_global_float16(V + j_10 * 11, 11, (float16)(0.0f)) : mix_state_0_5;
        }
        if (block_x * 16 < 11) {
            mix_state_0_6 = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)(11) ? mix_state_0_6 + P_shared[j_10 + 384] * load_first_global_float16(V + j_10 * 11, 11, (float16)(0.0f)) : mix_state_0_6;
        }
        if (block_x * 16 < 10) {
            mix_state_0_7 = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)(11) ? mix_state_0_7 + P_shared[j_10 + 448] * load_first_global_float16(V + j_10 * 11, 11, (float16)(0.0f)) : mix_state_0_7;
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
            mix_state_1_0 = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)(11) ? mix_state_1_0 + P_shared[j_10 + 512] * load_first_global_float16(V + j_10 * 11, 11, (float16)(0.0f)) : mix_state_1_0;
        }
        if (block_x * 16 < 8) {
            mix_state_1_1 = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)(11) ? mix_state_1_1 + P_shared[j_10 + 576] * load_first_global_float16(V + j_10 * 11, 11, (float16)(0.0f)) : mix_state_1_1;
        }
        if (block_x * 16 < 7) {
            mix_state_1_2 = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)(11) ? mix_state_1_2 + P_shared[j_10 + 640] * load_first_global_float16(V + j_10 * 11, 11, (float16)(0.0f)) : mix_state_1_2;
        }
        if (block_x * 16 < 6) {
            mix_state_1_3 = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)(11) ? mix_state_1_3 + P_shared[j_10 + 704] * load_first_global_float16(V + j_10 * 11, 11, (float16)(0.0f)) : mix_state_1_3;
        }
        if (block_x * 16 < 5) {
            mix_state_1_4 = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)(11) ? mix_state_1_4 + P_shared[j_10 + 768] * load_first_global_float16(V + j_10 * 11, 11, (float16)(0.0f)) : mix_state_1_4;
        }
        if (block_x * 16 < 4) {
            mix_state_1_5 = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)(11) ? mix_state_1_5 + P_shared[j_10 + 832] * load_first_global_float16(V + j_10 * 11, 11, (float16)(0.0f)) : mix_state_1_5;
        }
        if (block_x * 16 < 3) {
            mix_state_1_6 = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)(11) ? mix_state_1_6 + P_shared[j_10 + 896] * load_first_global_float16(V + j_10 * 11, 11, (float16)(0.0f)) : mix_state_1_6;
        }
        if (block_x * 16 < 2) {
            mix_state_1_7 = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)(11) ? mix_state_1_7 + P_shared[j_10 + 960] * load_first_global_float16(V + j_10 * 11, 11, (float16)(0.0f)) : mix_state_1_7;
        }
    }
    if (block_x * 16 < 2) {
        store_first_global_float16(O + block_x * 176, mix_state_0_0 / total_shared[0], 11);
        store_first_global_float16(O + block_x * 176 + 11, mix_state_0_1 / total_shared[1], 11);
        store_first_global_float16(O + block_x * 176 + 22, mix_state_0_2 / total_shared[2], 11);
        store_first_global_float16(O + block_x * 176 + 33, mix_state_0_3 / total_shared[3], 11);
        store_first_global_float16(O + block_x * 176 + 44, mix_state_0_4 / total_shared[4], 11);
        store_first_global_float16(O + block_x * 176 + 55, mix_state_0_5 / total_shared[5], 11);
        store_first_global_float16(O + block_x * 176 + 66, mix_state_0_6 / total_shared[6], 11);
        store_first_global_float16(O + block_x * 176 + 77, mix_state_0_7 / total_shared[7], 11);
        store_first_global_float16(O + block_x * 176 + 88, mix_state_1_0 / total_shared[8], 11);
        store_first_global_float16(O + block_x * 176 + 99, mix_state_1_1 / total_shared[9], 11);
        store_first_global_float16(O + block_x * 176 + 110, mix_state_1_2 / total_shared[10], 11);
        store_first_global_float16(O + block_x * 176 + 121, mix_state_1_3 / total_shared[11], 11);
        store_first_global_float16(O + block_x * 176 + 132, mix_state_1_4 / total_shared[12], 11);
        store_first_global_float16(O + block_x * 176 + 143, mix_state_1_5 / total_shared[13], 11);
        store_first_global_float16(O + block_x * 176 + 154, mix_state_1_6 / total_shared[14], 11);
        store_first_global_float16(O + block_x * 176 + 165, mix_state_1_7 / total_shared[15], 11);
    } else {
        store_first_global_float16(O + block_x * 176, mix_state_0_0 / total_shared[0], 11);
        if (block_x * 16 < 16) {
            store_first_global_float16(O + block_x * 176 + 11, mix_state_0_1 / total_shared[1], 11);
        }
        if (block_x * 16 < 15) {
            store_first_global_float16(O + block_x * 176 + 22, mix_state_0_2 / total_shared[2], 11);
        }
        if (block_x * 16 < 14) {
            store_first_global_float16(O + block_x * 176 + 33, mix_state_0_3 / total_shared[3], 11);
        }
        if (block_x * 16 < 13) {
            store_first_global_float16(O + block_x * 176 + 44, mix_state_0_4 / total_shared[4], 11);
        }
        if (block_x * 16 < 12) {
            store_first_global_float16(O + block_x * 176 + 55, mix_state_0_5 / total_shared[5], 11);
        }
        if (block_x * 16 < 11) {
            store_first_global_float16(O + block_x * 176 + 66, mix_state_0_6 / total_shared[6], 11);
        }
        if (block_x * 16 < 10) {
            store_first_global_float16(O + block_x * 176 + 77, mix_state_0_7 / total_shared[7], 11);
        }
        if (block_x * 16 < 9) {
            store_first_global_float16(O + block_x * 176 + 88, mix_state_1_0 / total_shared[8], 11);
        }
        if (block_x * 16 < 8) {
            store_first_global_float16(O + block_x * 176 + 99, mix_state_1_1 / total_shared[9], 11);
        }
        if (block_x * 16 < 7) {
            store_first_global_float16(O + block_x * 176 + 110, mix_state_1_2 / total_shared[10], 11);
        }
        if (block_x * 16 < 6) {
            store_first_global_float16(O + block_x * 176 + 121, mix_state_1_3 / total_shared[11], 11);
        }
        if (block_x * 16 < 5) {
            store_first_global_float16(O + block_x * 176 + 132, mix_state_1_4 / total_shared[12], 11);
        }
        if (block_x * 16 < 4) {
            store_first_global_float16(O + block_x * 176 + 143, mix_state_1_5 / total_shared[13], 11);
        }
        if (block_x * 16 < 3) {
            store_first_global_float16(O + block_x * 176 + 154, mix_state_1_6 / total_shared[14], 11);
        }
        if (block_x * 16 < 2) {
            store_first_global_float16(O + block_x * 176 + 165, mix_state_1_7 / total_shared[15], 11);
        }
    }
}
