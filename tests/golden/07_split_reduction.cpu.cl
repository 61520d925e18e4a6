#ifndef __has_builtin
#define __has_builtin(x) 0
#endif
#if __has_builtin(__builtin_prefetch) && !defined(__SPIR__) && !defined(__SPIRV__)
#define PREFETCH(pointer) __builtin_prefetch((__global const void*)(pointer))
#else
#define PREFETCH(pointer) prefetch(pointer, 1)
#endif
typedef float float16_u __attribute__((ext_vector_type(16), aligned(4)));

static inline float16 load_first_global_float16(const __global float* p, long count, float16 others) {  // touches the first `count` elements only
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
    return as_float16(__builtin_ia32_loadups512_mask((const void*)(size_t)p, as_float16(others), (ushort)((1u << (count < 0 ? 0 : count > 16 ? 16 : (int)count)) - 1u)));
#else
    if (count >= 16) return *(const __global float16_u*)p;
    float16 v = others;
    v.s0 = count > 0 ? p[0] : others.s0;
    v.s1 = count > 1 ? p[1] : others.s1;
    v.s2 = count > 2 ? p[2] : others.s2;
    v.s3 = count > 3 ? p[3] : others.s3;
    v.s4 = count > 4 ? p[4] : others.s4;
    v.s5 = count > 5 ? p[5] : others.s5;
    v.s6 = count > 6 ? p[6] : others.s6;
    v.s7 = count > 7 ? p[7] : others.s7;
    v.s8 = count > 8 ? p[8] : others.s8;
    v.s9 = count > 9 ? p[9] : others.s9;
    v.sa = count > 10 ? p[10] : others.sa;
    v.sb = count > 11 ? p[11] : others.sb;
    v.sc = count > 12 ? p[12] : others.sc;
    v.sd = count > 13 ? p[13] : others.sd;
    v.se = count > 14 ? p[14] : others.se;
    v.sf = count > 15 ? p[15] : others.sf;
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
    float16 Y_state_0 = (float16)(0.0f);
    float16 Y_state_1 = (float16)(0.0f);
    float16 Y_state_2 = (float16)(0.0f);
    float16 Y_state_3 = (float16)(0.0f);
    for (int j = 0; j < 2; ++j) {
        PREFETCH(X + block_y * 333 + block_x * 128 + j * 64 + 1024);
        PREFETCH(X + block_y * 333 + block_x * 128 + j * 64 + 1040);
        PREFETCH(X + block_y * 333 + block_x * 128 + j * 64 + 1056);
        PREFETCH(X + block_y * 333 + block_x * 128 + j * 64 + 1072);
        if (block_x * 128 + j * 64 < 318) {
            Y_state_0 = Y_state_0 + *(__global const float16_u*)(X + block_y * 333 + block_x * 128 + j * 64) * *(__global const float16_u*)(X + block_y * 333 + block_x * 128 + j * 64);
        } else {
            Y_state_0 = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)(333 - block_x * 128 - j * 64) ? Y_state_0 + load_first_global_float16(X + block_y * 333 + block_x * 128 + j * 64, 333 - block_x * 128 - j * 64, (float16)(0.0f)) * load_first_global_float16(X + block_y * 333 + block_x * 128 + j * 64, 333 - block_x * 128 - j * 64, (float16)(0.0f)) : Y_state_0;
        }
        if (block_x * 128 + j * 64 < 317) {
            Y_state_1 = Y_state_1 + *(__global const float16_u*)(X + block_y * 333 + block_x * 128 + j * 64 + 16) * *(__global const float16_u*)(X + block_y * 333 + block_x * 128 + j * 64 + 16);
        }
        if (block_x * 128 + j * 64 < 301) {
            Y_state_2 = Y_state_2 + *(__global const float16_u*)(X + block_y * 333 + block_x * 128 + j * 64 + 32) * *(__global const float16_u*)(X + block_y * 333 + block_x * 128 + j * 64 + 32);
        }
        if (block_x * 128 + j * 64 < 285) {
            Y_state_3 = Y_state_3 + *(__global const float16_u*)(X + block_y * 333 + block_x * 128 + j * 64 + 48) * *(__global const float16_u*)(X + block_y * 333 + block_x * 128 + j * 64 + 48);
        }
    }
    float16 Y_fold_0 = Y_state_0 + Y_state_2;
    float16 Y_fold_1 = Y_state_1 + Y_state_3;
    float16 Y_fold_1_1 = Y_fold_0 + Y_fold_1;
    float8 Y_fold_2 = Y_fold_1_1.s01234567 + Y_fold_1_1.s89abcdef;
    float4 Y_fold_3 = Y_fold_2.s0123 + Y_fold_2.s4567;
    float2 Y_fold_4 = Y_fold_3.s01 + Y_fold_3.s23;
    float Y_fold_5 = Y_fold_4.s0 + Y_fold_4.s1;
    *(Y_partial + block_x * 3 + block_y) = Y_fold_5;
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
            Y_state = Y_state + *(Y_partial + j_part * 3 + i);
        }
        Y[i] = Y_state;
    }
}
