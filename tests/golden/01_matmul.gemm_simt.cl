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

static inline void store_first_global_float4(__global float* p, float4 v, long count) {  // touches the first `count` elements only
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
    __builtin_ia32_storeups128_mask((void*)(size_t)p, as_float4(v), (uchar)((1u << (count < 0 ? 0 : count > 4 ? 4 : (int)count)) - 1u));
    return;
#else
    if (count >= 4) {
        *(__global float4_u*)p = v;
        return;
    }
    const int some = count < 0 ? 0 : (int)count;
    if (some & 2) *(__global float2_u*)(p + (some & -4)) = v.s01;
    const float2 v2 = some & 2 ? v.s23 : v.s01;
    if (some & 1) p[some & -2] = v2.s0;
#endif
}

// 2 x 1 x 1 blocks of 32 threads, 6400 bytes of shared memory
__kernel __attribute__((reqd_work_group_size(32, 1, 1)))
void C(
    __global const float* restrict A,
    __global const float* restrict B,
    __global float* restrict C)
{
    __local float A_shared[1088] __attribute__((aligned(64)));
    __local float B_shared[512] __attribute__((aligned(64)));
    const int block_x = (int)get_group_id(0);
    const int thread = (int)get_local_id(0);
    float4 C_state_0_0_0, C_state_0_0_1, C_state_0_0_2, C_state_0_0_3, C_state_0_1_0, C_state_0_1_1, C_state_0_1_2, C_state_0_1_3;
    float4 C_state_1_0_0, C_state_1_0_1, C_state_1_0_2, C_state_1_0_3, C_state_1_1_0, C_state_1_1_1, C_state_1_1_2, C_state_1_1_3;
    float4 A_staged_0, A_staged_1, A_staged_2, A_staged_3, B_staged_0, B_staged_1;
    C_state_0_0_0.s0 = 0.0f;
    C_state_0_0_0.s1 = 0.0f;
    C_state_0_0_0.s2 = 0.0f;
    C_state_0_0_0.s3 = 0.0f;
    C_state_0_0_1.s0 = 0.0f;
    C_state_0_0_1.s1 = 0.0f;
    C_state_0_0_1.s2 = 0.0f;
    C_state_0_0_1.s3 = 0.0f;
    C_state_0_0_2.s0 = 0.0f;
    C_state_0_0_2.s1 = 0.0f;
    C_state_0_0_2.s2 = 0.0f;
    C_state_0_0_2.s3 = 0.0f;
    C_state_0_0_3.s0 = 0.0f;
    C_state_0_0_3.s1 = 0.0f;
    C_state_0_0_3.s2 = 0.0f;
    C_state_0_0_3.s3 = 0.0f;
    C_state_0_1_0.s0 = 0.0f;
    C_state_0_1_0.s1 = 0.0f;
    C_state_0_1_0.s2 = 0.0f;
    C_state_0_1_0.s3 = 0.0f;
    C_state_0_1_1.s0 = 0.0f;
    C_state_0_1_1.s1 = 0.0f;
    C_state_0_1_1.s2 = 0.0f;
    C_state_0_1_1.s3 = 0.0f;
    C_state_0_1_2.s0 = 0.0f;
    C_state_0_1_2.s1 = 0.0f;
    C_state_0_1_2.s2 = 0.0f;
    C_state_0_1_2.s3 = 0.0f;
    C_state_0_1_3.s0 = 0.0f;
    C_state_0_1_3.s1 = 0.0f;
    C_state_0_1_3.s2 = 0.0f;
    C_state_0_1_3.s3 = 0.0f;
    C_state_1_0_0.s0 = 0.0f;
    C_state_1_0_0.s1 = 0.0f;
    C_state_1_0_0.s2 = 0.0f;
    C_state_1_0_0.s3 = 0.0f;
    C_state_1_0_1.s0 = 0.0f;
    C_state_1_0_1.s1 = 0.0f;
    C_state_1_0_1.s2 = 0.0f;
    C_state_1_0_1.s3 = 0.0f;
    C_state_1_0_2.s0 = 0.0f;
    C_state_1_0_2.s1 = 0.0f;
    C_state_1_0_2.s2 = 0.0f;
    C_state_1_0_2.s3 = 0.0f;
    C_state_1_0_3.s0 = 0.0f;
    C_state_1_0_3.s1 = 0.0f;
    C_state_1_0_3.s2 = 0.0f;
    C_state_1_0_3.s3 = 0.0f;
    C_state_1_1_0.s0 = 0.0f;
    C_state_1_1_0.s1 = 0.0f;
    C_state_1_1_0.s2 = 0.0f;
    C_state_1_1_0.s3 = 0.0f;
    C_state_1_1_1.s0 = 0.0f;
    C_state_1_1_1.s1 = 0.0f;
    C_state_1_1_1.s2 = 0.0f;
    C_state_1_1_1.s3 = 0.0f;
    C_state_1_1_2.s0 = 0.0f;
    C_state_1_1_2.s1 = 0.0f;
    C_state_1_1_2.s2 = 0.0f;
    C_state_1_1_2.s3 = 0.0f;
    C_state_1_1_3.s0 = 0.0f;
    C_state_1_1_3.s1 = 0.0f;
    C_state_1_1_3.s2 = 0.0f;
    C_state_1_1_3.s3 = 0.0f;
    for (int m_round = 0; m_round < 4; ++m_round) {
        float4 A_shared_lanes = m_round * 16 + thread / 2 < 17 ? *(__global const float4_u*)(A + m_round * 176 + thread / 2 * 11 + thread % 2 * 4) : (float4)(0.0f);
        A_shared[thread % 2 * 272 + m_round * 16 + thread / 2] = A_shared_lanes.s0;
        A_shared[thread % 2 * 272 + m_round * 16 + thread / 2 + 68] = A_shared_lanes.s1;
        A_shared[thread % 2 * 272 + m_round * 16 + thread / 2 + 136] = A_shared_lanes.s2;
        A_shared[thread % 2 * 272 + m_round * 16 + thread / 2 + 204] = A_shared_lanes.s3;
    }
    for (int k_round = 0; k_round < 2; ++k_round) {
        *(__local float4*)(B_shared + k_round * 128 + thread * 4) = load_first_global_float4(B + k_round * 148 + thread / 8 * 37 + block_x * 32 + thread % 8 * 4, 37 - block_x * 32 - thread % 8 * 4, (float4)(0.0f));
    }
    for (int k = 0; k < 2; ++k) {
        if (k < 1) {
            const int k_next = k + 1;
            A_staged_0 = load_first_global_float4(A + thread / 2 * 11 + k_next * 8 + thread % 2 * 4, 11 - k_next * 8 - thread % 2 * 4, (float4)(0.0f));
            A_staged_1 = thread / 2 < 1 ? load_first_global_float4(A + thread / 2 * 11 + k_next * 8 + thread % 2 * 4 + 176, 11 - k_next * 8 - thread % 2 * 4, (float4)(0.0f)) : (float4)(0.0f);
            A_staged_2 = (float4)(0.0f);
            A_staged_3 = (float4)(0.0f);
            const int k_next_1 = k + 1;
            B_staged_0 = k_next_1 * 8 + thread / 8 < 11 ? load_first_global_float4(B + k_next_1 * 296 + thread / 8 * 37 + block_x * 32 + thread % 8 * 4, 37 - block_x * 32 - thread % 8 * 4, (float4)(0.0f)) : (float4)(0.0f);
            B_staged_1 = (float4)(0.0f);
        }
        barrier(CLK_LOCAL_MEM_FENCE);  // write of A_shared[k, thread % 2 * 4 + lane_3, m_round_2 * 16 + thread // 2] at examples/01_matmul.py:66, one iteration of `k` earlier, then read of A_shared[k, k_1, A_r * 32 + thread // 4 * 4 + lane_6] at examples/01_matmul.py:70
        for (int k_1 = 0; k_1 < 8; ++k_1) {
            float4 A_register_0 = *(__local const float4*)(A_shared + k * 544 + k_1 * 68 + thread / 4 * 4);
            float4 A_register_1 = *(__local const float4*)(A_shared + k * 544 + k_1 * 68 + thread / 4 * 4 + 32);
            float4 B_register_0 = *(__local const float4*)(B_shared + k * 256 + k_1 * 32 + thread % 4 * 4);
            float4 B_register_1 = *(__local const float4*)(B_shared + k * 256 + k_1 * 32 + thread % 4 * 4 + 16);
            C_state_0_0_0.s0 = C_state_0_0_0.s0 + A_register_0.s0 * B_register_0.s0;
            C_state_0_0_0.s1 = C_state_0_0_0.s1 + A_register_0.s0 * B_register_0.s1;
            C_state_0_0_0.s2 = C_state_0_0_0.s2 + A_register_0.s0 * B_register_0.s2;
            C_state_0_0_0.s3 = C_state_0_0_0.s3 + A_register_0.s0 * B_register_0.s3;
            C_state_0_0_1.s0 = C_state_0_0_1.s0 + A_register_0.s1 * B_register_0.s0;
            C_state_0_0_1.s1 = C_state_0_0_1.s1 + A_register_0.s1 * B_register_0.s1;
            C_state_0_0_1.s2 = C_state_0_0_1.s2 + A_register_0.s1 * B_register_0.s2;
            C_state_0_0_1.s3 = C_state_0_0_1.s3 + A_register_0.s1 * B_register_0.s3;
            C_state_0_0_2.s0 = C_state_0_0_2.s0 + A_register_0.s2 * B_register_0.s0;
            C_state_0_0_2.s1 = C_state_0_0_2.s1 + A_register_0.s2 * B_register_0.s1;
            C_state_0_0_2.s2 = C_state_0_0_2.s2 + A_register_0.s2 * B_register_0.s2;
            C_state_0_0_2.s3 = C_state_0_0_2.s3 + A_register_0.s2 * B_register_0.s3;
            C_state_0_0_3.s0 = C_state_0_0_3.s0 + A_register_0.s3 * B_register_0.s0;
            C_state_0_0_3.s1 = C_state_0_0_3.s1 + A_register_0.s3 * B_register_0.s1;
            C_state_0_0_3.s2 = C_state_0_0_3.s2 + A_register_0.s3 * B_register_0.s2;
            C_state_0_0_3.s3 = C_state_0_0_3.s3 + A_register_0.s3 * B_register_0.s3;
            C_state_0_1_0.s0 = C_state_0_1_0.s0 + A_register_0.s0 * B_register_1.s0;
            C_state_0_1_0.s1 = C_state_0_1_0.s1 + A_register_0.s0 * B_register_1.s1;
            C_state_0_1_0.s2 = C_state_0_1_0.s2 + A_register_0.s0 * B_register_1.s2;
            C_state_0_1_0.s3 = C_state_0_1_0.s3 + A_register_0.s0 * B_register_1.s3;
            C_state_0_1_1.s0 = C_state_0_1_1.s0 + A_register_0.s1 * B_register_1.s0;
            C_state_0_1_1.s1 = C_state_0_1_1.s1 + A_register_0.s1 * B_register_1.s1;
            C_state_0_1_1.s2 = C_state_0_1_1.s2 + A_register_0.s1 * B_register_1.s2;
            C_state_0_1_1.s3 = C_state_0_1_1.s3 + A_register_0.s1 * B_register_1.s3;
            C_state_0_1_2.s0 = C_state_0_1_2.s0 + A_register_0.s2 * B_register_1.s0;
            C_state_0_1_2.s1 = C_state_0_1_2.s1 + A_register_0.s2 * B_register_1.s1;
            C_state_0_1_2.s2 = C_state_0_1_2.s2 + A_register_0.s2 * B_register_1.s2;
            C_state_0_1_2.s3 = C_state_0_1_2.s3 + A_register_0.s2 * B_register_1.s3;
            C_state_0_1_3.s0 = C_state_0_1_3.s0 + A_register_0.s3 * B_register_1.s0;
            C_state_0_1_3.s1 = C_state_0_1_3.s1 + A_register_0.s3 * B_register_1.s1;
            C_state_0_1_3.s2 = C_state_0_1_3.s2 + A_register_0.s3 * B_register_1.s2;
            C_state_0_1_3.s3 = C_state_0_1_3.s3 + A_register_0.s3 * B_register_1.s3;
            C_state_1_0_0.s0 = C_state_1_0_0.s0 + A_register_1.s0 * B_register_0.s0;
            C_state_1_0_0.s1 = C_state_1_0_0.s1 + A_register_1.s0 * B_register_0.s1;
            C_state_1_0_0.s2 = C_state_1_0_0.s2 + A_register_1.s0 * B_register_0.s2;
            C_state_1_0_0.s3 = C_state_1_0_0.s3 + A_register_1.s0 * B_register_0.s3;
            C_state_1_0_1.s0 = C_state_1_0_1.s0 + A_register_1.s1 * B_register_0.s0;
            C_state_1_0_1.s1 = C_state_1_0_1.s1 + A_register_1.s1 * B_register_0.s1;
            C_state_1_0_1.s2 = C_state_1_0_1.s2 + A_register_1.s1 * B_register_0.s2;
            C_state_1_0_1.s3 = C_state_1_0_1.s3 + A_register_1.s1 * B_register_0.s3;
            C_state_1_0_2.s0 = C_state_1_0_2.s0 + A_register_1.s2 * B_register_0.s0;
            C_state_1_0_2.s1 = C_state_1_0_2.s1 + A_register_1.s2 * B_register_0.s1;
            C_state_1_0_2.s2 = C_state_1_0_2.s2 + A_register_1.s2 * B_register_0.s2;
            C_state_1_0_2.s3 = C_state_1_0_2.s3 + A_register_1.s2 * B_register_0.s3;
            C_state_1_0_3.s0 = C_state_1_0_3.s0 + A_register_1.s3 * B_register_0.s0;
            C_state_1_0_3.s1 = C_state_1_0_3.s1 + A_register_1.s3 * B_register_0.s1;
            C_state_1_0_3.s2 = C_state_1_0_3.s2 + A_register_1.s3 * B_register_0.s2;
            C_state_1_0_3.s3 = C_state_1_0_3.s3 + A_register_1.s3 * B_register_0.s3;
            C_state_1_1_0.s0 = C_state_1_1_0.s0 + A_register_1.s0 * B_register_1.s0;
            C_state_1_1_0.s1 = C_state_1_1_0.s1 + A_register_1.s0 * B_register_1.s1;
            C_state_1_1_0.s2 = C_state_1_1_0.s2 + A_register_1.s0 * B_register_1.s2;
            C_state_1_1_0.s3 = C_state_1_1_0.s3 + A_register_1.s0 * B_register_1.s3;
            C_state_1_1_1.s0 = C_state_1_1_1.s0 + A_register_1.s1 * B_register_1.s0;
            C_state_1_1_1.s1 = C_state_1_1_1.s1 + A_register_1.s1 * B_register_1.s1;
            C_state_1_1_1.s2 = C_state_1_1_1.s2 + A_register_1.s1 * B_register_1.s2;
            C_state_1_1_1.s3 = C_state_1_1_1.s3 + A_register_1.s1 * B_register_1.s3;
            C_state_1_1_2.s0 = C_state_1_1_2.s0 + A_register_1.s2 * B_register_1.s0;
            C_state_1_1_2.s1 = C_state_1_1_2.s1 + A_register_1.s2 * B_register_1.s1;
            C_state_1_1_2.s2 = C_state_1_1_2.s2 + A_register_1.s2 * B_register_1.s2;
            C_state_1_1_2.s3 = C_state_1_1_2.s3 + A_register_1.s2 * B_register_1.s3;
            C_state_1_1_3.s0 = C_state_1_1_3.s0 + A_register_1.s3 * B_register_1.s0;
            C_state_1_1_3.s1 = C_state_1_1_3.s1 + A_register_1.s3 * B_register_1.s1;
            C_state_1_1_3.s2 = C_state_1_1_3.s2 + A_register_1.s3 * B_register_1.s2;
            C_state_1_1_3.s3 = C_state_1_1_3.s3 + A_register_1.s3 * B_register_1.s3;
        }
        if (k < 1) {
            const int k_next = k + 1;
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2] = A_staged_0.s0;
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 68] = A_staged_0.s1;
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 136] = A_staged_0.s2;
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 204] = A_staged_0.s3;
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 16] = A_staged_1.s0;
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 84] = A_staged_1.s1;
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 152] = A_staged_1.s2;
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 220] = A_staged_1.s3;
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 32] = A_staged_2.s0;
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 100] = A_staged_2.s1;
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 168] = A_staged_2.s2;
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 236] = A_staged_2.s3;
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 48] = A_staged_3.s0;
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 116] = A_staged_3.s1;
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 184] = A_staged_3.s2;
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 252] = A_staged_3.s3;
            const int k_next_1 = k + 1;
            *(__local float4*)(B_shared + (k + 1) % 2 * 256 + thread * 4) = B_staged_0;
            *(__local float4*)(B_shared + (k + 1) % 2 * 256 + thread * 4 + 128) = B_staged_1;
        }
    }
    if (thread / 4 * 4 < 17) {
        if (block_x * 32 + thread % 4 * 4 < 34) {
            *(__global float4_u*)(C + thread / 4 * 148 + block_x * 32 + thread % 4 * 4) = C_state_0_0_0;
        } else {
            if (block_x * 32 + thread % 4 * 4 < 37) {
                store_first_global_float4(C + thread / 4 * 148 + block_x * 32 + thread % 4 * 4, C_state_0_0_0, 37 - block_x * 32 - thread % 4 * 4);
            }
        }
    }
    if (thread / 4 * 4 < 16) {
        if (block_x * 32 + thread % 4 * 4 < 34) {
            *(__global float4_u*)(C + thread / 4 * 148 + block_x * 32 + thread % 4 * 4 + 37) = C_state_0_0_1;
        } else {
            if (block_x * 32 + thread % 4 * 4 < 37) {
                store_first_global_float4(C + thread / 4 * 148 + block_x * 32 + thread % 4 * 4 + 37, C_state_0_0_1, 37 - block_x * 32 - thread % 4 * 4);
            }
        }
    }
    if (thread / 4 * 4 < 15) {
        if (block_x * 32 + thread % 4 * 4 < 34) {
            *(__global float4_u*)(C + thread / 4 * 148 + block_x * 32 + thread % 4 * 4 + 74) = C_state_0_0_2;
        } else {
            if (block_x * 32 + thread % 4 * 4 < 37) {
                store_first_global_float4(C + thread / 4 * 148 + block_x * 32 + thread % 4 * 4 + 74, C_state_0_0_2, 37 - block_x * 32 - thread % 4 * 4);
            }
        }
    }
    if (thread / 4 * 4 < 14) {
        if (block_x * 32 + thread % 4 * 4 < 34) {
            *(__global float4_u*)(C + thread / 4 * 148 + block_x * 32 + thread % 4 * 4 + 111) = C_state_0_0_3;
        } else {
            if (block_x * 32 + thread % 4 * 4 < 37) {
                store_first_global_float4(C + thread / 4 * 148 + block_x * 32 + thread % 4 * 4 + 111, C_state_0_0_3, 37 - block_x * 32 - thread % 4 * 4);
            }
        }
    }
    if (thread / 4 * 4 < 17) {
        if (block_x * 32 + thread % 4 * 4 < 18) {
            *(__global float4_u*)(C + thread / 4 * 148 + block_x * 32 + thread % 4 * 4 + 16) = C_state_0_1_0;
        } else {
            if (block_x * 32 + thread % 4 * 4 < 21) {
                store_first_global_float4(C + thread / 4 * 148 + block_x * 32 + thread % 4 * 4 + 16, C_state_0_1_0, 21 - block_x * 32 - thread % 4 * 4);
            }
        }
    }
    if (thread / 4 * 4 < 16) {
        if (block_x * 32 + thread % 4 * 4 < 18) {
            *(__global float4_u*)(C + thread / 4 * 148 + block_x * 32 + thread % 4 * 4 + 53) = C_state_0_1_1;
        } else {
            if (block_x * 32 + thread % 4 * 4 < 21) {
                store_first_global_float4(C + thread / 4 * 148 + block_x * 32 + thread % 4 * 4 + 53, C_state_0_1_1, 21 - block_x * 32 - thread % 4 * 4);
            }
        }
    }
    if (thread / 4 * 4 < 15) {
        if (block_x * 32 + thread % 4 * 4 < 18) {
            *(__global float4_u*)(C + thread / 4 * 148 + block_x * 32 + thread % 4 * 4 + 90) = C_state_0_1_2;
        } else {
            if (block_x * 32 + thread % 4 * 4 < 21) {
                store_first_global_float4(C + thread / 4 * 148 + block_x * 32 + thread % 4 * 4 + 90, C_state_0_1_2, 21 - block_x * 32 - thread % 4 * 4);
            }
        }
    }
    if (thread / 4 * 4 < 14) {
        if (block_x * 32 + thread % 4 * 4 < 18) {
            *(__global float4_u*)(C + thread / 4 * 148 + block_x * 32 + thread % 4 * 4 + 127) = C_state_0_1_3;
        } else {
            if (block_x * 32 + thread % 4 * 4 < 21) {
                store_first_global_float4(C + thread / 4 * 148 + block_x * 32 + thread % 4 * 4 + 127, C_state_0_1_3, 21 - block_x * 32 - thread % 4 * 4);
            }
        }
    }
}
