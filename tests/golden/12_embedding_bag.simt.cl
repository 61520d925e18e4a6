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

// 2 x 3 x 1 blocks of 8 threads, 272 bytes of shared memory
__kernel __attribute__((reqd_work_group_size(8, 1, 1)))
void Y(
    __global const int* restrict ids,
    __global const float* restrict table,
    __global float* restrict Y)
{
    __local int ids_shared[4] __attribute__((aligned(64)));
    __local float table_shared[64] __attribute__((aligned(64)));
    const int block_x = (int)get_group_id(0);
    const int block_y = (int)get_group_id(1);
    const int thread = (int)get_local_id(0);
    float Y_state_0 = 0.0f;
    float Y_state_1 = 0.0f;
    float Y_state_2 = 0.0f;
    float Y_state_3 = 0.0f;
    for (int t = 0; t < 2; ++t) {
        if (thread / 2 < 2) {
            ids_shared[thread] = block_y * 2 + thread / 2 < 5 && t * 2 + thread % 2 < 3 ? ids[block_y * 6 + thread / 2 * 3 + t * 2 + thread % 2] : 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);  // write of ids_shared[thread // 2, thread % 2] at examples/12_embedding_bag.py:45, then read of ids_shared[b_round, thread // 4] at examples/12_embedding_bag.py:46
        for (int b_round = 0; b_round < 2; ++b_round) {
            *(__local float4*)(table_shared + b_round * 32 + thread * 4) = block_y * 2 + b_round < 5 && t * 2 + thread / 4 < 3 ? load_first_global_float4(table + ids_shared[b_round * 2 + thread / 4] * 19 + block_x * 16 + thread % 4 * 4, 19 - block_x * 16 - thread % 4 * 4, (float4)(0.0f)) : (float4)(0.0f);
        }
        barrier(CLK_LOCAL_MEM_FENCE);  // write of table_shared[b_round, thread // 4, thread % 4 * 4 + lane] at examples/12_embedding_bag.py:46, then read of table_shared[thread // 4, t_1, thread % 4 * 4 + e] at examples/12_embedding_bag.py:48
        for (int t_1 = 0; t_1 < 2; ++t_1) {
            Y_state_0 = Y_state_0 + table_shared[thread / 4 * 32 + t_1 * 16 + thread % 4 * 4];
            Y_state_1 = Y_state_1 + table_shared[thread / 4 * 32 + t_1 * 16 + thread % 4 * 4 + 1];
            Y_state_2 = Y_state_2 + table_shared[thread / 4 * 32 + t_1 * 16 + thread % 4 * 4 + 2];
            Y_state_3 = Y_state_3 + table_shared[thread / 4 * 32 + t_1 * 16 + thread % 4 * 4 + 3];
        }
    }
    if (block_y * 2 + thread / 4 < 5 && block_x * 16 + thread % 4 * 4 < 19) {
        Y[block_y * 38 + thread / 4 * 19 + block_x * 16 + thread % 4 * 4] = Y_state_0;
    }
    if (block_y * 2 + thread / 4 < 5 && block_x * 16 + thread % 4 * 4 < 18) {
        Y[block_y * 38 + thread / 4 * 19 + block_x * 16 + thread % 4 * 4 + 1] = Y_state_1;
    }
    if (block_y * 2 + thread / 4 < 5 && block_x * 16 + thread % 4 * 4 < 17) {
        Y[block_y * 38 + thread / 4 * 19 + block_x * 16 + thread % 4 * 4 + 2] = Y_state_2;
    }
    if (block_y * 2 + thread / 4 < 5 && block_x * 16 + thread % 4 * 4 < 16) {
        Y[block_y * 38 + thread / 4 * 19 + block_x * 16 + thread % 4 * 4 + 3] = Y_state_3;
    }
}
