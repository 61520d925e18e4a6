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

// 3 x 3 x 1 blocks of 1 thread, 0 bytes of shared memory
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void Y(
    __global const float* restrict X,
    __global float* restrict Y_partial)
{
    const int block_x = (int)get_group_id(0);
    const int block_y = (int)get_group_id(1);
    float16 Y_state = (float16)(0.0f);
    for (int j = 0; j < min(2, -block_x * 2 + 5); ++j) {
        if (block_x * 32 + j * 16 < 62) {
            Y_state = Y_state + *(__global const float16_u*)(X + block_y * 77 + block_x * 32 + j * 16) * *(__global const float16_u*)(X + block_y * 77 + block_x * 32 + j * 16);
        } else {
            if (block_x * 32 + j * 16 < 77) {
                Y_state = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)(-block_x * 32 - j * 16 + 77) ? Y_state + load_first_global_float16(X + block_y * 77 + block_x * 32 + j * 16, -block_x * 32 - j * 16 + 77, (float16)(0.0f)) * load_first_global_float16(X + block_y * 77 + block_x * 32 + j * 16, -block_x * 32 - j * 16 + 77, (float16)(0.0f)) : Y_state;
            }
        }
    }
    float8 Y_fold = Y_state.s01234567 + Y_state.s89abcdef;
    float4 Y_fold_1 = Y_fold.s0123 + Y_fold.s4567;
    float2 Y_fold_2 = Y_fold_1.s01 + Y_fold_1.s23;
    float Y_fold_3 = Y_fold_2.s0 + Y_fold_2.s1;
    Y_partial[block_x * 3 + block_y] = Y_fold_3;
}

// 1 x 1 x 1 blocks of 1 thread, 0 bytes of shared memory
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void Y_combine_1(
    __global float* restrict Y,
    __global const float* restrict Y_partial)
{
    for (int i = 0; i < 3; ++i) {
        float Y_state = 0.0f;
        for (int j_part = 0; j_part < 3; ++j_part) {
            Y_state = Y_state + Y_partial[j_part * 3 + i];
        }
        Y[i] = Y_state;
    }
}
