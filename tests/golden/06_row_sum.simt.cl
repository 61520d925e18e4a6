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

// 5 x 1 x 1 blocks of 4 threads, 16 bytes of shared memory
__kernel __attribute__((reqd_work_group_size(4, 1, 1)))
void Y(
    __global const float* restrict X,
    __global float* restrict Y)
{
    __local float Y_fold_1_meet[4] __attribute__((aligned(64)));
    const int block_x = (int)get_group_id(0);
    const int thread = (int)get_local_id(0);
    float4 Y_state = (float4)(0.0f);
    for (int j_round = 0; j_round < 3; ++j_round) {
        if (j_round * 16 + thread * 4 < 34) {
            Y_state = Y_state + *(__global const float4_u*)(X + block_x * 37 + j_round * 16 + thread * 4);
        } else {
            if (j_round * 16 + thread * 4 < 37) {
                Y_state = (int4)(0, 1, 2, 3) < (int4)(37 - j_round * 16 - thread * 4) ? Y_state + load_first_global_float4(X + block_x * 37 + j_round * 16 + thread * 4, 37 - j_round * 16 - thread * 4, (float4)(0.0f)) : Y_state;
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
        Y[block_x] = Y_fold_1;
    }
}
