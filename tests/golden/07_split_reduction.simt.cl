typedef float float4_u __attribute__((ext_vector_type(4), aligned(4)));
typedef float float2_u __attribute__((ext_vector_type(2), aligned(4)));

static inline float4 load_first_global_float4(const __global float* p, long count, float4 others) {  // touches the first `count` elements only
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
    return as_float4(__builtin_ia32_loadups128_mask((const void*)(size_t)p, as_float4(others), (uchar)((1u << (count < 0 ? 0 : count > 4 ? 4 : (int)count)) - 1u)));
#elif defined(__AVX2__)
    int some = count < 0 ? 0 : count > 4 ? 4 : (int)count;
    if (!__builtin_constant_p(some)) __asm__ volatile("" : "+r"(some));
    const int4 exists = as_int4((int4){0, 1, 2, 3} < (int4)(some));
    float4 v;
    v = __builtin_ia32_maskloadps((const void*)(size_t)(p + 0), exists);
    return exists ? as_float4(v) : others;
#else
    if (count >= 4) return *(const __global float4_u*)p;
    const int some = count < 0 ? 0 : (int)count;
    const float2 v2 = (float2)(some & 1 ? p[some & -2] : (float)0);
    float4 v4;
    v4.s01 = v4.s23 = v2;
    if (some & 2) v4.s01 = *(const __global float2_u*)(p + (some & -4));
    return (int4){0, 1, 2, 3} < (int4)(some) ? v4 : others;
#endif
}

// 11 x 3 x 1 blocks of 4 threads, 16 bytes of shared memory
__kernel __attribute__((reqd_work_group_size(4, 1, 1)))
void Y(
    __global const float* restrict X,
    __global float* restrict Y_partial)
{
    __local float Y_fold_1_meet[4] __attribute__((aligned(64)));
    const int block_x = (int)get_group_id(0);
    const int block_y = (int)get_group_id(1);
    const int thread = (int)get_local_id(0);
    float4 Y_state = (float4)(0.0f);
    for (int j_round = 0; j_round < 2; ++j_round) {
        if (block_x * 32 + j_round * 16 + thread * 4 < 330) {
            Y_state = Y_state + *(__global const float4_u*)(X + block_y * 333 + block_x * 32 + j_round * 16 + thread * 4) * *(__global const float4_u*)(X + block_y * 333 + block_x * 32 + j_round * 16 + thread * 4);
        } else {
            if (block_x * 32 + j_round * 16 + thread * 4 < 333) {
                Y_state = (int4)(0, 1, 2, 3) < (int4)(333 - block_x * 32 - j_round * 16 - thread * 4) ? Y_state + load_first_global_float4(X + block_y * 333 + block_x * 32 + j_round * 16 + thread * 4, 333 - block_x * 32 - j_round * 16 - thread * 4, (float4)(0.0f)) * load_first_global_float4(X + block_y * 333 + block_x * 32 + j_round * 16 + thread * 4, 333 - block_x * 32 - j_round * 16 - thread * 4, (float4)(0.0f)) : Y_state;
            }
        }
    }
    float2 Y_fold = Y_state.s01 + Y_state.s23;
    float Y_fold_1 = Y_fold.s0 + Y_fold.s1;
    Y_fold_1_meet[thread] = Y_fold_1;
    barrier(CLK_LOCAL_MEM_FENCE);  // write of Y_fold_1_meet[0, thread], then read of Y_fold_1_meet[0, thread + 2]
    if (thread < 2) {
        Y_fold_1_meet[thread] = Y_fold_1_meet[thread] + Y_fold_1_meet[thread + 2];
    }
    barrier(CLK_LOCAL_MEM_FENCE);  // write of Y_fold_1_meet[0, thread], then read of Y_fold_1_meet[0, thread + 1]
    if (thread < 1) {
        Y_fold_1_meet[thread] = Y_fold_1_meet[thread] + Y_fold_1_meet[thread + 1];
    }
    barrier(CLK_LOCAL_MEM_FENCE);  // write of Y_fold_1_meet[0, thread], then read of Y_fold_1_meet[0, 0]
    Y_fold_1 = Y_fold_1_meet[0];
    if (thread == 0) {
        Y_partial[block_x * 3 + block_y] = Y_fold_1;
    }
}

// 1 x 1 x 1 blocks of 1 thread, 0 bytes of shared memory
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void Y_combine_1(
    __global float* restrict Y,
    __global const float* restrict Y_partial)
{
    for (int i = 0; i < 3; ++i) {
        float Y_state = 0.0f;
        for (int j_part = 0; j_part < 11; ++j_part) {
            Y_state = Y_state + *(Y_partial + j_part * 3 + i);
        }
        Y[i] = Y_state;
    }
}
