typedef float float16_u __attribute__((ext_vector_type(16), aligned(4)));

static inline float16 load_first_global_float16(const __global float* p, long count, float16 others) {  // touches the first `count` elements only
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
    return as_float16(__builtin_ia32_loadups512_mask((const float16*)(size_t)p, as_float16(others), (ushort)((1u << (count < 0 ? 0 : count > 16 ? 16 : (int)count)) - 1u)));
#else
    if (count >= 16) return *(const __global float16_u*)p;
    float16 v = others;
    if (count > 0) v.s0 = p[0];
    if (count > 1) v.s1 = p[1];
    if (count > 2) v.s2 = p[2];
    if (count > 3) v.s3 = p[3];
    if (count > 4) v.s4 = p[4];
    if (count > 5) v.s5 = p[5];
    if (count > 6) v.s6 = p[6];
    if (count > 7) v.s7 = p[7];
    if (count > 8) v.s8 = p[8];
    if (count > 9) v.s9 = p[9];
    if (count > 10) v.sa = p[10];
    if (count > 11) v.sb = p[11];
    if (count > 12) v.sc = p[12];
    if (count > 13) v.sd = p[13];
    if (count > 14) v.se = p[14];
    if (count > 15) v.sf = p[15];
    return v;
#endif
}

// 3 x 1 x 1 blocks of 1 thread, 0 bytes of shared memory
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void Y(
    __global const float* restrict X,
    __global float* restrict Y)
{
    const int block_x = (int)get_group_id(0);
    if (block_x * 2 < 4) {
        float16 Y_state_1_1_0 = (float16)(0.0f);
        float16 Y_state_1_1_1 = (float16)(0.0f);
        for (int j_1 = 0; j_1 < 3; ++j_1) {
            if (j_1 * 16 < 22) {
                Y_state_1_1_0 = Y_state_1_1_0 + *(__global const float16_u*)(X + block_x * 74 + j_1 * 16);
            } else {
                Y_state_1_1_0 = (int16)(j_1 * 16, j_1 * 16 + 1, j_1 * 16 + 2, j_1 * 16 + 3, j_1 * 16 + 4, j_1 * 16 + 5, j_1 * 16 + 6, j_1 * 16 + 7, j_1 * 16 + 8, j_1 * 16 + 9, j_1 * 16 + 10, j_1 * 16 + 11, j_1 * 16 + 12, j_1 * 16 + 13, j_1 * 16 + 14, j_1 * 16 + 15) < (int16)(37) ? Y_state_1_1_0 + load_first_global_float16(X + block_x * 74 + j_1 * 16, -j_1 * 16 + 37, (float16)(0.0f)) : Y_state_1_1_0;
            }
            if (j_1 * 16 < 22) {
                Y_state_1_1_1 = Y_state_1_1_1 + *(__global const float16_u*)(X + block_x * 74 + j_1 * 16 + 37);
            } else {
                Y_state_1_1_1 = (int16)(j_1 * 16, j_1 * 16 + 1, j_1 * 16 + 2, j_1 * 16 + 3, j_1 * 16 + 4, j_1 * 16 + 5, j_1 * 16 + 6, j_1 * 16 + 7, j_1 * 16 + 8, j_1 * 16 + 9, j_1 * 16 + 10, j_1 * 16 + 11, j_1 * 16 + 12, j_1 * 16 + 13, j_1 * 16 + 14, j_1 * 16 + 15) < (int16)(37) ? Y_state_1_1_1 + load_first_global_float16(X + block_x * 74 + j_1 * 16 + 37, -j_1 * 16 + 37, (float16)(0.0f)) : Y_state_1_1_1;
            }
        }
        float8 Y_fold_4_0 = Y_state_1_1_0.s01234567 + Y_state_1_1_0.s89abcdef;
        float8 Y_fold_4_1 = Y_state_1_1_1.s01234567 + Y_state_1_1_1.s89abcdef;
        float4 Y_fold_5_0 = Y_fold_4_0.s0123 + Y_fold_4_0.s4567;
        float4 Y_fold_5_1 = Y_fold_4_1.s0123 + Y_fold_4_1.s4567;
        float2 Y_fold_6_0 = Y_fold_5_0.s01 + Y_fold_5_0.s23;
        float2 Y_fold_6_1 = Y_fold_5_1.s01 + Y_fold_5_1.s23;
        float Y_fold_7_0 = Y_fold_6_0.s0 + Y_fold_6_0.s1;
        float Y_fold_7_1 = Y_fold_6_1.s0 + Y_fold_6_1.s1;
        Y[block_x * 2] = Y_fold_7_0;
        Y[block_x * 2 + 1] = Y_fold_7_1;
    } else {
        float16 Y_state_0 = (float16)(0.0f);
        float16 Y_state_1 = (float16)(0.0f);
        for (int j = 0; j < 3; ++j) {
            if (j * 16 < 22) {
                Y_state_0 = Y_state_0 + *(__global const float16_u*)(X + block_x * 74 + j * 16);
            } else {
                Y_state_0 = (int16)(j * 16, j * 16 + 1, j * 16 + 2, j * 16 + 3, j * 16 + 4, j * 16 + 5, j * 16 + 6, j * 16 + 7, j * 16 + 8, j * 16 + 9, j * 16 + 10, j * 16 + 11, j * 16 + 12, j * 16 + 13, j * 16 + 14, j * 16 + 15) < (int16)(37) ? Y_state_0 + load_first_global_float16(X + block_x * 74 + j * 16, -j * 16 + 37, (float16)(0.0f)) : Y_state_0;
            }
            if (block_x * 2 < 4) {
                if (j * 16 < 22) {
                    Y_state_1 = Y_state_1 + *(__global const float16_u*)(X + block_x * 74 + j * 16 + 37);
                } else {
                    Y_state_1 = (int16)(j * 16, j * 16 + 1, j * 16 + 2, j * 16 + 3, j * 16 + 4, j * 16 + 5, j * 16 + 6, j * 16 + 7, j * 16 + 8, j * 16 + 9, j * 16 + 10, j * 16 + 11, j * 16 + 12, j * 16 + 13, j * 16 + 14, j * 16 + 15) < (int16)(37) ? Y_state_1 + load_first_global_float16(X + block_x * 74 + j * 16 + 37, -j * 16 + 37, (float16)(0.0f)) : Y_state_1;
                }
            }
        }
        float8 Y_fold_0 = Y_state_0.s01234567 + Y_state_0.s89abcdef;
        float8 Y_fold_1 = Y_state_1.s01234567 + Y_state_1.s89abcdef;
        float4 Y_fold_1_1_0 = Y_fold_0.s0123 + Y_fold_0.s4567;
        float4 Y_fold_1_1_1 = Y_fold_1.s0123 + Y_fold_1.s4567;
        float2 Y_fold_2_0 = Y_fold_1_1_0.s01 + Y_fold_1_1_0.s23;
        float2 Y_fold_2_1 = Y_fold_1_1_1.s01 + Y_fold_1_1_1.s23;
        float Y_fold_3_0 = Y_fold_2_0.s0 + Y_fold_2_0.s1;
        float Y_fold_3_1 = Y_fold_2_1.s0 + Y_fold_2_1.s1;
        Y[block_x * 2] = Y_fold_3_0;
        if (block_x * 2 < 4) {
            Y[block_x * 2 + 1] = Y_fold_3_1;
        }
    }
}
