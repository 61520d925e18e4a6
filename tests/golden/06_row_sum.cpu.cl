#ifndef __has_builtin
#define __has_builtin(x) 0
#endif
#if __has_builtin(__builtin_prefetch) && !defined(__SPIR__) && !defined(__SPIRV__)
#define PREFETCH(pointer) __builtin_prefetch((__global const void*)(pointer))
#else
#define PREFETCH(pointer) prefetch(pointer, 1)
#endif
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

// 5 x 1 x 1 blocks of 1 thread, 0 bytes of shared memory
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void Y(
    __global const float* restrict X,
    __global float* restrict Y)
{
    const int block_x = (int)get_group_id(0);
    float16 Y_state_0 = (float16)(0.0f);
    float16 Y_state_1 = (float16)(0.0f);
    float16 Y_state_2 = (float16)(0.0f);
    float16 Y_state_3 = (float16)(0.0f);
    PREFETCH(X + block_x * 37);
    PREFETCH(X + block_x * 37 + 16);
    PREFETCH(X + block_x * 37 + 32);
    PREFETCH(X + block_x * 37 + 48);
    Y_state_0 = Y_state_0 + *(__global const float16_u*)(X + block_x * 37);
    Y_state_1 = Y_state_1 + *(__global const float16_u*)(X + block_x * 37 + 16);
    Y_state_2 = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)(5) ? Y_state_2 + load_first_global_float16(X + block_x * 37 + 32, 5, (float16)(0.0f)) : Y_state_2;
    float16 Y_fold_0 = Y_state_0 + Y_state_2;
    float16 Y_fold_1 = Y_state_1 + Y_state_3;
    float16 Y_fold_1_1 = Y_fold_0 + Y_fold_1;
    float8 Y_fold_2 = Y_fold_1_1.s01234567 + Y_fold_1_1.s89abcdef;
    float4 Y_fold_3 = Y_fold_2.s0123 + Y_fold_2.s4567;
    float2 Y_fold_4 = Y_fold_3.s01 + Y_fold_3.s23;
    float Y_fold_5 = Y_fold_4.s0 + Y_fold_4.s1;
    Y[block_x] = Y_fold_5;
}
