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

// 2 x 1 x 1 blocks of 1 thread, 2560 bytes of shared memory
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void C(
    __global const float* restrict A,
    __global const float* restrict B,
    __global float* restrict C)
{
    __local float B_shared[512] __attribute__((aligned(64)));
    __local float A_shared[128] __attribute__((aligned(64)));
    const int block_x = (int)get_group_id(0);
    for (int k = 0; k < 2; ++k) {
        for (int n = 0; n < 2; ++n) {
            for (int k_1 = 0; k_1 < 8; ++k_1) {
                for (int n_1 = 0; n_1 < 2; ++n_1) {
                    *(__local float16*)(B_shared + n * 256 + k_1 * 32 + n_1 * 16) = k * 8 + k_1 < 11 ? load_first_global_float16(B + k * 296 + k_1 * 37 + n * 32 + n_1 * 16, 37 - n * 32 - n_1 * 16, (float16)(0.0f)) : (float16)(0.0f);
                }
            }
        }
        for (int m = 0; m < 4; ++m) {
            const int k_end_1 = min(8, 11 - k * 8);
            const int m_end_1 = max(min(4, 17 - block_x * 16 - m * 4), 0);
            for (int k_6 = 0; k_6 < 2; ++k_6) {
                if (k_6 * 4 + 3 < k_end_1 && 3 < m_end_1) {
                    float4 A_rows_0 = *(__global const float4_u*)(A + block_x * 176 + m * 44 + k * 8 + k_6 * 4);
                    float4 A_rows_1 = *(__global const float4_u*)(A + block_x * 176 + m * 44 + k * 8 + k_6 * 4 + 11);
                    float4 A_rows_2 = *(__global const float4_u*)(A + block_x * 176 + m * 44 + k * 8 + k_6 * 4 + 22);
                    float4 A_rows_3 = *(__global const float4_u*)(A + block_x * 176 + m * 44 + k * 8 + k_6 * 4 + 33);
                    float4 A_step_0 = (float4)(A_rows_0.s0, A_rows_1.s0, A_rows_0.s2, A_rows_1.s2);
                    float4 A_step_1 = (float4)(A_rows_0.s1, A_rows_1.s1, A_rows_0.s3, A_rows_1.s3);
                    float4 A_step_2 = (float4)(A_rows_2.s0, A_rows_3.s0, A_rows_2.s2, A_rows_3.s2);
                    float4 A_step_3 = (float4)(A_rows_2.s1, A_rows_3.s1, A_rows_2.s3, A_rows_3.s3);
                    float4 A_turned_0 = (float4)(A_step_0.s0, A_step_0.s1, A_step_2.s0, A_step_2.s1);
                    float4 A_turned_1 = (float4)(A_step_1.s0, A_step_1.s1, A_step_3.s0, A_step_3.s1);
                    float4 A_turned_2 = (float4)(A_step_0.s2, A_step_0.s3, A_step_2.s2, A_step_2.s3);
                    float4 A_turned_3 = (float4)(A_step_1.s2, A_step_1.s3, A_step_3.s2, A_step_3.s3);
                    *(__local float4*)(A_shared + m * 32 + k_6 * 16) = A_turned_0;
                    *(__local float4*)(A_shared + m * 32 + k_6 * 16 + 4) = A_turned_1;
                    *(__local float4*)(A_shared + m * 32 + k_6 * 16 + 8) = A_turned_2;
                    *(__local float4*)(A_shared + m * 32 + k_6 * 16 + 12) = A_turned_3;
                } else {
                    float4 A_rows_1_1_0 = 0 < m_end_1 ? load_first_global_float4(A + block_x * 176 + m * 44 + k * 8 + k_6 * 4, k_end_1 - k_6 * 4, (float4)(0.0f)) : (float4)(0.0f);
                    float4 A_rows_1_1_1 = 1 < m_end_1 ? load_first_global_float4(A + block_x * 176 + m * 44 + k * 8 + k_6 * 4 + 11, k_end_1 - k_6 * 4, (float4)(0.0f)) : (float4)(0.0f);
                    float4 A_rows_1_1_2 = 2 < m_end_1 ? load_first_global_float4(A + block_x * 176 + m * 44 + k * 8 + k_6 * 4 + 22, k_end_1 - k_6 * 4, (float4)(0.0f)) : (float4)(0.0f);
                    float4 A_rows_1_1_3 = 3 < m_end_1 ? load_first_global_float4(A + block_x * 176 + m * 44 + k * 8 + k_6 * 4 + 33, k_end_1 - k_6 * 4, (float4)(0.0f)) : (float4)(0.0f);
                    float4 A_rows_1_step_0 = (float4)(A_rows_1_1_0.s0, A_rows_1_1_1.s0, A_rows_1_1_0.s2, A_rows_1_1_1.s2);
                    float4 A_rows_1_step_1 = (float4)(A_rows_1_1_0.s1, A_rows_1_1_1.s1, A_rows_1_1_0.s3, A_rows_1_1_1.s3);
                    float4 A_rows_1_step_2 = (float4)(A_rows_1_1_2.s0, A_rows_1_1_3.s0, A_rows_1_1_2.s2, A_rows_1_1_3.s2);
                    float4 A_rows_1_step_3 = (float4)(A_rows_1_1_2.s1, A_rows_1_1_3.s1, A_rows_1_1_2.s3, A_rows_1_1_3.s3);
                    float4 A_rows_1_turned_0 = (float4)(A_rows_1_step_0.s0, A_rows_1_step_0.s1, A_rows_1_step_2.s0, A_rows_1_step_2.s1);
                    float4 A_rows_1_turned_1 = (float4)(A_rows_1_step_1.s0, A_rows_1_step_1.s1, A_rows_1_step_3.s0, A_rows_1_step_3.s1);
                    float4 A_rows_1_turned_2 = (float4)(A_rows_1_step_0.s2, A_rows_1_step_0.s3, A_rows_1_step_2.s2, A_rows_1_step_2.s3);
                    float4 A_rows_1_turned_3 = (float4)(A_rows_1_step_1.s2, A_rows_1_step_1.s3, A_rows_1_step_3.s2, A_rows_1_step_3.s3);
                    *(__local float4*)(A_shared + m * 32 + k_6 * 16) = A_rows_1_turned_0;
                    *(__local float4*)(A_shared + m * 32 + k_6 * 16 + 4) = A_rows_1_turned_1;
                    *(__local float4*)(A_shared + m * 32 + k_6 * 16 + 8) = A_rows_1_turned_2;
                    *(__local float4*)(A_shared + m * 32 + k_6 * 16 + 12) = A_rows_1_turned_3;
                }
            }
        }
        for (int n_2 = 0; n_2 < 2; ++n_2) {
            for (int m_4 = 0; m_4 < min(4, 5 - block_x * 4); ++m_4) {
                float16 C_state_0_0 = (float16)(0.0f);
                float16 C_state_0_1 = (float16)(0.0f);
                float16 C_state_1_0 = (float16)(0.0f);
                float16 C_state_1_1 = (float16)(0.0f);
                float16 C_state_2_0 = (float16)(0.0f);
                float16 C_state_2_1 = (float16)(0.0f);
                float16 C_state_3_0 = (float16)(0.0f);
                float16 C_state_3_1 = (float16)(0.0f);
                for (int k_4 = 0; k_4 < 2; ++k_4) {
                    float16 B_register_0 = *(__local const float16*)(B_shared + n_2 * 256 + k_4 * 128);
                    float16 B_register_1 = *(__local const float16*)(B_shared + n_2 * 256 + k_4 * 128 + 16);
                    C_state_0_0 = C_state_0_0 + *(A_shared + m_4 * 32 + k_4 * 16) * B_register_0;
                    C_state_0_1 = C_state_0_1 + *(A_shared + m_4 * 32 + k_4 * 16) * B_register_1;
                    C_state_1_0 = C_state_1_0 + *(A_shared + m_4 * 32 + k_4 * 16 + 1) * B_register_0;
                    C_state_1_1 = C_state_1_1 + *(A_shared + m_4 * 32 + k_4 * 16 + 1) * B_register_1;
                    C_state_2_0 = C_state_2_0 + *(A_shared + m_4 * 32 + k_4 * 16 + 2) * B_register_0;
                    C_state_2_1 = C_state_2_1 + *(A_shared + m_4 * 32 + k_4 * 16 + 2) * B_register_1;
                    C_state_3_0 = C_state_3_0 + *(A_shared + m_4 * 32 + k_4 * 16 + 3) * B_register_0;
                    C_state_3_1 = C_state_3_1 + *(A_shared + m_4 * 32 + k_4 * 16 + 3) * B_register_1;
                    B_register_0 = *(__local const float16*)(B_shared + n_2 * 256 + k_4 * 128 + 32);
                    B_register_1 = *(__local const float16*)(B_shared + n_2 * 256 + k_4 * 128 + 48);
                    C_state_0_0 = C_state_0_0 + *(A_shared + m_4 * 32 + k_4 * 16 + 4) * B_register_0;
                    C_state_0_1 = C_state_0_1 + *(A_shared + m_4 * 32 + k_4 * 16 + 4) * B_register_1;
                    C_state_1_0 = C_state_1_0 + *(A_shared + m_4 * 32 + k_4 * 16 + 5) * B_register_0;
                    C_state_1_1 = C_state_1_1 + *(A_shared + m_4 * 32 + k_4 * 16 + 5) * B_register_1;
                    C_state_2_0 = C_state_2_0 + *(A_shared + m_4 * 32 + k_4 * 16 + 6) * B_register_0;
                    C_state_2_1 = C_state_2_1 + *(A_shared + m_4 * 32 + k_4 * 16 + 6) * B_register_1;
                    C_state_3_0 = C_state_3_0 + *(A_shared + m_4 * 32 + k_4 * 16 + 7) * B_register_0;
                    C_state_3_1 = C_state_3_1 + *(A_shared + m_4 * 32 + k_4 * 16 + 7) * B_register_1;
                    B_register_0 = *(__local const float16*)(B_shared + n_2 * 256 + k_4 * 128 + 64);
                    B_register_1 = *(__local const float16*)(B_shared + n_2 * 256 + k_4 * 128 + 80);
                    C_state_0_0 = C_state_0_0 + *(A_shared + m_4 * 32 + k_4 * 16 + 8) * B_register_0;
                    C_state_0_1 = C_state_0_1 + *(A_shared + m_4 * 32 + k_4 * 16 + 8) * B_register_1;
                    C_state_1_0 = C_state_1_0 + *(A_shared + m_4 * 32 + k_4 * 16 + 9) * B_register_0;
                    C_state_1_1 = C_state_1_1 + *(A_shared + m_4 * 32 + k_4 * 16 + 9) * B_register_1;
                    C_state_2_0 = C_state_2_0 + *(A_shared + m_4 * 32 + k_4 * 16 + 10) * B_register_0;
                    C_state_2_1 = C_state_2_1 + *(A_shared + m_4 * 32 + k_4 * 16 + 10) * B_register_1;
                    C_state_3_0 = C_state_3_0 + *(A_shared + m_4 * 32 + k_4 * 16 + 11) * B_register_0;
                    C_state_3_1 = C_state_3_1 + *(A_shared + m_4 * 32 + k_4 * 16 + 11) * B_register_1;
                    B_register_0 = *(__local const float16*)(B_shared + n_2 * 256 + k_4 * 128 + 96);
                    B_register_1 = *(__local const float16*)(B_shared + n_2 * 256 + k_4 * 128 + 112);
                    C_state_0_0 = C_state_0_0 + *(A_shared + m_4 * 32 + k_4 * 16 + 12) * B_register_0;
                    C_state_0_1 = C_state_0_1 + *(A_shared + m_4 * 32 + k_4 * 16 + 12) * B_register_1;
                    C_state_1_0 = C_state_1_0 + *(A_shared + m_4 * 32 + k_4 * 16 + 13) * B_register_0;
                    C_state_1_1 = C_state_1_1 + *(A_shared + m_4 * 32 + k_4 * 16 + 13) * B_register_1;
                    C_state_2_0 = C_state_2_0 + *(A_shared + m_4 * 32 + k_4 * 16 + 14) * B_register_0;
                    C_state_2_1 = C_state_2_1 + *(A_shared + m_4 * 32 + k_4 * 16 + 14) * B_register_1;
                    C_state_3_0 = C_state_3_0 + *(A_shared + m_4 * 32 + k_4 * 16 + 15) * B_register_0;
                    C_state_3_1 = C_state_3_1 + *(A_shared + m_4 * 32 + k_4 * 16 + 15) * B_register_1;
                }
                if (k == 0) {
                    if (block_x * 16 + m_4 * 4 < 14 && n_2 * 32 < 6) {
                        *(__global float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32) = C_state_0_0;
                        *(__global float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 16) = C_state_0_1;
                        *(__global float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 37) = C_state_1_0;
                        *(__global float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 53) = C_state_1_1;
                        *(__global float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 74) = C_state_2_0;
                        *(__global float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 90) = C_state_2_1;
                        *(__global float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 111) = C_state_3_0;
                        *(__global float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 127) = C_state_3_1;
                    } else {
                        if (block_x * 16 + m_4 * 4 < 17) {
                            if (n_2 * 32 < 22) {
                                *(__global float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32) = C_state_0_0;
                            } else {
                                store_first_global_float16(C + block_x * 592 + m_4 * 148 + n_2 * 32, C_state_0_0, 37 - n_2 * 32);
                            }
                            if (n_2 * 32 < 6) {
                                *(__global float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 16) = C_state_0_1;
                            } else {
                                if (n_2 * 32 < 21) {
                                    store_first_global_float16(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 16, C_state_0_1, 21 - n_2 * 32);
                                }
                            }
                        }
                        if (block_x * 16 + m_4 * 4 < 16) {
                            if (n_2 * 32 < 22) {
                                *(__global float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 37) = C_state_1_0;
                            } else {
                                store_first_global_float16(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 37, C_state_1_0, 37 - n_2 * 32);
                            }
                            if (n_2 * 32 < 6) {
                                *(__global float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 53) = C_state_1_1;
                            } else {
                                if (n_2 * 32 < 21) {
                                    store_first_global_float16(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 53, C_state_1_1, 21 - n_2 * 32);
                                }
                            }
                        }
                        if (block_x * 16 + m_4 * 4 < 15) {
                            if (n_2 * 32 < 22) {
                                *(__global float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 74) = C_state_2_0;
                            } else {
                                store_first_global_float16(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 74, C_state_2_0, 37 - n_2 * 32);
                            }
                            if (n_2 * 32 < 6) {
                                *(__global float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 90) = C_state_2_1;
                            } else {
                                if (n_2 * 32 < 21) {
                                    store_first_global_float16(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 90, C_state_2_1, 21 - n_2 * 32);
                                }
                            }
                        }
                        if (block_x * 16 + m_4 * 4 < 14) {
                            if (n_2 * 32 < 22) {
                                *(__global float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 111) = C_state_3_0;
                            } else {
                                store_first_global_float16(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 111, C_state_3_0, 37 - n_2 * 32);
                            }
                            if (n_2 * 32 < 6) {
                                *(__global float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 127) = C_state_3_1;
                            } else {
                                if (n_2 * 32 < 21) {
                                    store_first_global_float16(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 127, C_state_3_1, 21 - n_2 * 32);
                                }
                            }
                        }
                    }
                } else {
                    if (block_x * 16 + m_4 * 4 < 14 && n_2 * 32 < 6) {
                        *(__global float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32) = *(__global const float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32) + C_state_0_0;
                        *(__global float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 16) = *(__global const float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 16) + C_state_0_1;
                        *(__global float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 37) = *(__global const float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 37) + C_state_1_0;
                        *(__global float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 53) = *(__global const float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 53) + C_state_1_1;
                        *(__global float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 74) = *(__global const float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 74) + C_state_2_0;
                        *(__global float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 90) = *(__global const float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 90) + C_state_2_1;
                        *(__global float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 111) = *(__global const float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 111) + C_state_3_0;
                        *(__global float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 127) = *(__global const float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 127) + C_state_3_1;
                    } else {
                        if (block_x * 16 + m_4 * 4 < 17) {
                            if (n_2 * 32 < 22) {
                                *(__global float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32) = *(__global const float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32) + C_state_0_0;
                            } else {
                                store_first_global_float16(C + block_x * 592 + m_4 * 148 + n_2 * 32, load_first_global_float16(C + block_x * 592 + m_4 * 148 + n_2 * 32, 37 - n_2 * 32, (float16)(0.0f)) + C_state_0_0, 37 - n_2 * 32);
                            }
                            if (n_2 * 32 < 6) {
                                *(__global float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 16) = *(__global const float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 16) + C_state_0_1;
                            } else {
                                if (n_2 * 32 < 21) {
                                    store_first_global_float16(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 16, load_first_global_float16(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 16, 21 - n_2 * 32, (float16)(0.0f)) + C_state_0_1, 21 - n_2 * 32);
                                }
                            }
                        }
                        if (block_x * 16 + m_4 * 4 < 16) {
                            if (n_2 * 32 < 22) {
                                *(__global float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 37) = *(__global const float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 37) + C_state_1_0;
                            } else {
                                store_first_global_float16(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 37, load_first_global_float16(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 37, 37 - n_2 * 32, (float16)(0.0f)) + C_state_1_0, 37 - n_2 * 32);
                            }
                            if (n_2 * 32 < 6) {
                                *(__global float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 53) = *(__global const float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 53) + C_state_1_1;
                            } else {
                                if (n_2 * 32 < 21) {
                                    store_first_global_float16(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 53, load_first_global_float16(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 53, 21 - n_2 * 32, (float16)(0.0f)) + C_state_1_1, 21 - n_2 * 32);
                                }
                            }
                        }
                        if (block_x * 16 + m_4 * 4 < 15) {
                            if (n_2 * 32 < 22) {
                                *(__global float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 74) = *(__global const float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 74) + C_state_2_0;
                            } else {
                                store_first_global_float16(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 74, load_first_global_float16(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 74, 37 - n_2 * 32, (float16)(0.0f)) + C_state_2_0, 37 - n_2 * 32);
                            }
                            if (n_2 * 32 < 6) {
                                *(__global float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 90) = *(__global const float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 90) + C_state_2_1;
                            } else {
                                if (n_2 * 32 < 21) {
                                    store_first_global_float16(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 90, load_first_global_float16(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 90, 21 - n_2 * 32, (float16)(0.0f)) + C_state_2_1, 21 - n_2 * 32);
                                }
                            }
                        }
                        if (block_x * 16 + m_4 * 4 < 14) {
                            if (n_2 * 32 < 22) {
                                *(__global float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 111) = *(__global const float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 111) + C_state_3_0;
                            } else {
                                store_first_global_float16(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 111, load_first_global_float16(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 111, 37 - n_2 * 32, (float16)(0.0f)) + C_state_3_0, 37 - n_2 * 32);
                            }
                            if (n_2 * 32 < 6) {
                                *(__global float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 127) = *(__global const float16_u*)(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 127) + C_state_3_1;
                            } else {
                                if (n_2 * 32 < 21) {
                                    store_first_global_float16(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 127, load_first_global_float16(C + block_x * 592 + m_4 * 148 + n_2 * 32 + 127, 21 - n_2 * 32, (float16)(0.0f)) + C_state_3_1, 21 - n_2 * 32);
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
