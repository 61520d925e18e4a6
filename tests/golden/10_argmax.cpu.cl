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

// 3 x 1 x 1 blocks of 1 thread, 0 bytes of shared memory
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void Y(
    __global const float* restrict X,
    __global int* restrict Y)
{
    const int block_x = (int)get_group_id(0);
    float16 Y_argmax_0_state_value_1;
    uchar16 Y_argmax_0_state_common_1;
    float16 Y_argmax_0_state = (float16)(-INFINITY);
    int16 Y_argmax_1_state = (int16)(2147483647);
    for (int j = 0; j < 2; ++j) {
        float16 Y_argmax_0_state_value = *(__global const float16_u*)(X + block_x * 37 + j * 16);
        uchar16 Y_argmax_0_state_common = convert_uchar16(-convert_char16(((Y_argmax_0_state < Y_argmax_0_state_value) | ((Y_argmax_0_state_value != Y_argmax_0_state_value) & ~(Y_argmax_0_state != Y_argmax_0_state))) | (((Y_argmax_0_state == Y_argmax_0_state_value) | ((Y_argmax_0_state != Y_argmax_0_state) & (Y_argmax_0_state_value != Y_argmax_0_state_value))) & ((int16)(j * 16) + (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < Y_argmax_1_state))));
        Y_argmax_0_state = convert_int16(Y_argmax_0_state_common != (uchar16)((uchar)0)) ? Y_argmax_0_state_value : Y_argmax_0_state;
        Y_argmax_1_state = convert_int16(Y_argmax_0_state_common != (uchar16)((uchar)0)) ? (int16)(j * 16) + (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) : Y_argmax_1_state;
    }
    {
        const int j_1 = 2;
        if (j_1 * 16 < 22) {
            Y_argmax_0_state_value_1 = *(__global const float16_u*)(X + block_x * 37 + j_1 * 16);
            Y_argmax_0_state_common_1 = convert_uchar16(-convert_char16(((Y_argmax_0_state < Y_argmax_0_state_value_1) | ((Y_argmax_0_state_value_1 != Y_argmax_0_state_value_1) & ~(Y_argmax_0_state != Y_argmax_0_state))) | (((Y_argmax_0_state == Y_argmax_0_state_value_1) | ((Y_argmax_0_state != Y_argmax_0_state) & (Y_argmax_0_state_value_1 != Y_argmax_0_state_value_1))) & ((int16)(j_1 * 16) + (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < Y_argmax_1_state))));
            Y_argmax_0_state = convert_int16(Y_argmax_0_state_common_1 != (uchar16)((uchar)0)) ? Y_argmax_0_state_value_1 : Y_argmax_0_state;
            Y_argmax_1_state = convert_int16(Y_argmax_0_state_common_1 != (uchar16)((uchar)0)) ? (int16)(j_1 * 16) + (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) : Y_argmax_1_state;
        } else {
            Y_argmax_0_state_value_1 = load_first_global_float16(X + block_x * 37 + j_1 * 16, 37 - j_1 * 16, (float16)(0.0f));
            Y_argmax_0_state_common_1 = convert_uchar16(-convert_char16(((Y_argmax_0_state < Y_argmax_0_state_value_1) | ((Y_argmax_0_state_value_1 != Y_argmax_0_state_value_1) & ~(Y_argmax_0_state != Y_argmax_0_state))) | (((Y_argmax_0_state == Y_argmax_0_state_value_1) | ((Y_argmax_0_state != Y_argmax_0_state) & (Y_argmax_0_state_value_1 != Y_argmax_0_state_value_1))) & ((int16)(j_1 * 16) + (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < Y_argmax_1_state))));
            Y_argmax_0_state = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)(37 - j_1 * 16) ? (convert_int16(Y_argmax_0_state_common_1 != (uchar16)((uchar)0)) ? Y_argmax_0_state_value_1 : Y_argmax_0_state) : Y_argmax_0_state;
            Y_argmax_1_state = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)(37 - j_1 * 16) ? (convert_int16(Y_argmax_0_state_common_1 != (uchar16)((uchar)0)) ? (int16)(j_1 * 16) + (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) : Y_argmax_1_state) : Y_argmax_1_state;
        }
    }
    uchar8 Y_argmax_0_fold_common = convert_uchar8(-convert_char8(((Y_argmax_0_state.s01234567 < Y_argmax_0_state.s89abcdef) | ((Y_argmax_0_state.s89abcdef != Y_argmax_0_state.s89abcdef) & ~(Y_argmax_0_state.s01234567 != Y_argmax_0_state.s01234567))) | (((Y_argmax_0_state.s01234567 == Y_argmax_0_state.s89abcdef) | ((Y_argmax_0_state.s01234567 != Y_argmax_0_state.s01234567) & (Y_argmax_0_state.s89abcdef != Y_argmax_0_state.s89abcdef))) & (Y_argmax_1_state.s89abcdef < Y_argmax_1_state.s01234567))));
    float8 Y_argmax_0_fold = convert_int8(Y_argmax_0_fold_common != (uchar8)((uchar)0)) ? Y_argmax_0_state.s89abcdef : Y_argmax_0_state.s01234567;
    int8 Y_argmax_1_fold = convert_int8(Y_argmax_0_fold_common != (uchar8)((uchar)0)) ? Y_argmax_1_state.s89abcdef : Y_argmax_1_state.s01234567;
    uchar4 Y_argmax_0_fold_1_common = convert_uchar4(-convert_char4(((Y_argmax_0_fold.s0123 < Y_argmax_0_fold.s4567) | ((Y_argmax_0_fold.s4567 != Y_argmax_0_fold.s4567) & ~(Y_argmax_0_fold.s0123 != Y_argmax_0_fold.s0123))) | (((Y_argmax_0_fold.s0123 == Y_argmax_0_fold.s4567) | ((Y_argmax_0_fold.s0123 != Y_argmax_0_fold.s0123) & (Y_argmax_0_fold.s4567 != Y_argmax_0_fold.s4567))) & (Y_argmax_1_fold.s4567 < Y_argmax_1_fold.s0123))));
    float4 Y_argmax_0_fold_1 = convert_int4(Y_argmax_0_fold_1_common != (uchar4)((uchar)0)) ? Y_argmax_0_fold.s4567 : Y_argmax_0_fold.s0123;
    int4 Y_argmax_1_fold_1 = convert_int4(Y_argmax_0_fold_1_common != (uchar4)((uchar)0)) ? Y_argmax_1_fold.s4567 : Y_argmax_1_fold.s0123;
    uchar2 Y_argmax_0_fold_2_common = convert_uchar2(-convert_char2(((Y_argmax_0_fold_1.s01 < Y_argmax_0_fold_1.s23) | ((Y_argmax_0_fold_1.s23 != Y_argmax_0_fold_1.s23) & ~(Y_argmax_0_fold_1.s01 != Y_argmax_0_fold_1.s01))) | (((Y_argmax_0_fold_1.s01 == Y_argmax_0_fold_1.s23) | ((Y_argmax_0_fold_1.s01 != Y_argmax_0_fold_1.s01) & (Y_argmax_0_fold_1.s23 != Y_argmax_0_fold_1.s23))) & (Y_argmax_1_fold_1.s23 < Y_argmax_1_fold_1.s01))));
    float2 Y_argmax_0_fold_2 = convert_int2(Y_argmax_0_fold_2_common != (uchar2)((uchar)0)) ? Y_argmax_0_fold_1.s23 : Y_argmax_0_fold_1.s01;
    int2 Y_argmax_1_fold_2 = convert_int2(Y_argmax_0_fold_2_common != (uchar2)((uchar)0)) ? Y_argmax_1_fold_1.s23 : Y_argmax_1_fold_1.s01;
    uchar Y_argmax_0_fold_3_common = (uchar)((Y_argmax_0_fold_2.s0 < Y_argmax_0_fold_2.s1 || (Y_argmax_0_fold_2.s1 != Y_argmax_0_fold_2.s1 && !(Y_argmax_0_fold_2.s0 != Y_argmax_0_fold_2.s0))) || ((Y_argmax_0_fold_2.s0 == Y_argmax_0_fold_2.s1 || (Y_argmax_0_fold_2.s0 != Y_argmax_0_fold_2.s0 && Y_argmax_0_fold_2.s1 != Y_argmax_0_fold_2.s1)) && Y_argmax_1_fold_2.s1 < Y_argmax_1_fold_2.s0));
    float Y_argmax_0_fold_3 = Y_argmax_0_fold_3_common != 0 ? Y_argmax_0_fold_2.s1 : Y_argmax_0_fold_2.s0;
    int Y_argmax_1_fold_3 = Y_argmax_0_fold_3_common != 0 ? Y_argmax_1_fold_2.s1 : Y_argmax_1_fold_2.s0;
    Y[block_x] = Y_argmax_1_fold_3;
}
