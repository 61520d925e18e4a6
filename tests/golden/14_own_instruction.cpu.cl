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
typedef float float4_u __attribute__((ext_vector_type(4), aligned(4)));

static inline float4 load_first_global_float4(const __global float* p, long count, float4 others) {  // touches the first `count` elements only
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
    return as_float4(__builtin_ia32_loadups128_mask((const void*)(size_t)p, as_float4(others), (uchar)((1u << (count < 0 ? 0 : count > 4 ? 4 : (int)count)) - 1u)));
#else
    if (count >= 4) return *(const __global float4_u*)p;
    float4 v = others;
    v.s0 = count > 0 ? p[0] : others.s0;
    v.s1 = count > 1 ? p[1] : others.s1;
    v.s2 = count > 2 ? p[2] : others.s2;
    v.s3 = count > 3 ? p[3] : others.s3;
    return v;
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
    if (count > 0) p[0] = v.s0;
    if (count > 1) p[1] = v.s1;
    if (count > 2) p[2] = v.s2;
    if (count > 3) p[3] = v.s3;
    if (count > 4) p[4] = v.s4;
    if (count > 5) p[5] = v.s5;
    if (count > 6) p[6] = v.s6;
    if (count > 7) p[7] = v.s7;
    if (count > 8) p[8] = v.s8;
    if (count > 9) p[9] = v.s9;
    if (count > 10) p[10] = v.sa;
    if (count > 11) p[11] = v.sb;
    if (count > 12) p[12] = v.sc;
    if (count > 13) p[13] = v.sd;
    if (count > 14) p[14] = v.se;
    if (count > 15) p[15] = v.sf;
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
            for (int k_5 = 0; k_5 < 2; ++k_5) {
                if (k_5 * 4 + 3 < k_end_1 && 3 < m_end_1) {
                    float4 A_rows_0 = *(__global const float4_u*)(A + block_x * 176 + m * 44 + k * 8 + k_5 * 4);
                    float4 A_rows_1 = *(__global const float4_u*)(A + block_x * 176 + m * 44 + k * 8 + k_5 * 4 + 11);
                    float4 A_rows_2 = *(__global const float4_u*)(A + block_x * 176 + m * 44 + k * 8 + k_5 * 4 + 22);
                    float4 A_rows_3 = *(__global const float4_u*)(A + block_x * 176 + m * 44 + k * 8 + k_5 * 4 + 33);
                    float4 A_step_0 = (float4)(A_rows_0.s0, A_rows_1.s0, A_rows_0.s2, A_rows_1.s2);
                    float4 A_step_1 = (float4)(A_rows_0.s1, A_rows_1.s1, A_rows_0.s3, A_rows_1.s3);
                    float4 A_step_2 = (float4)(A_rows_2.s0, A_rows_3.s0, A_rows_2.s2, A_rows_3.s2);
                    float4 A_step_3 = (float4)(A_rows_2.s1, A_rows_3.s1, A_rows_2.s3, A_rows_3.s3);
                    float4 A_turned_0 = (float4)(A_step_0.s0, A_step_0.s1, A_step_2.s0, A_step_2.s1);
                    float4 A_turned_1 = (float4)(A_step_1.s0, A_step_1.s1, A_step_3.s0, A_step_3.s1);
                    float4 A_turned_2 = (float4)(A_step_0.s2, A_step_0.s3, A_step_2.s2, A_step_2.s3);
                    float4 A_turned_3 = (float4)(A_step_1.s2, A_step_1.s3, A_step_3.s2, A_step_3.s3);
                    *(__local float4*)(A_shared + m * 32 + k_5 * 16) = A_turned_0;
                    *(__local float4*)(A_shared + m * 32 + k_5 * 16 + 4) = A_turned_1;
                    *(__local float4*)(A_shared + m * 32 + k_5 * 16 + 8) = A_turned_2;
                    *(__local float4*)(A_shared + m * 32 + k_5 * 16 + 12) = A_turned_3;
                } else {
                    float4 A_rows_1_1_0 = 0 < m_end_1 ? load_first_global_float4(A + block_x * 176 + m * 44 + k * 8 + k_5 * 4, k_end_1 - k_5 * 4, (float4)(0.0f)) : (float4)(0.0f);
                    float4 A_rows_1_1_1 = 1 < m_end_1 ? load_first_global_float4(A + block_x * 176 + m * 44 + k * 8 + k_5 * 4 + 11, k_end_1 - k_5 * 4, (float4)(0.0f)) : (float4)(0.0f);
                    float4 A_rows_1_1_2 = 2 < m_end_1 ? load_first_global_float4(A + block_x * 176 + m * 44 + k * 8 + k_5 * 4 + 22, k_end_1 - k_5 * 4, (float4)(0.0f)) : (float4)(0.0f);
                    float4 A_rows_1_1_3 = 3 < m_end_1 ? load_first_global_float4(A + block_x * 176 + m * 44 + k * 8 + k_5 * 4 + 33, k_end_1 - k_5 * 4, (float4)(0.0f)) : (float4)(0.0f);
                    float4 A_rows_1_step_0 = (float4)(A_rows_1_1_0.s0, A_rows_1_1_1.s0, A_rows_1_1_0.s2, A_rows_1_1_1.s2);
                    float4 A_rows_1_step_1 = (float4)(A_rows_1_1_0.s1, A_rows_1_1_1.s1, A_rows_1_1_0.s3, A_rows_1_1_1.s3);
                    float4 A_rows_1_step_2 = (float4)(A_rows_1_1_2.s0, A_rows_1_1_3.s0, A_rows_1_1_2.s2, A_rows_1_1_3.s2);
                    float4 A_rows_1_step_3 = (float4)(A_rows_1_1_2.s1, A_rows_1_1_3.s1, A_rows_1_1_2.s3, A_rows_1_1_3.s3);
                    float4 A_rows_1_turned_0 = (float4)(A_rows_1_step_0.s0, A_rows_1_step_0.s1, A_rows_1_step_2.s0, A_rows_1_step_2.s1);
                    float4 A_rows_1_turned_1 = (float4)(A_rows_1_step_1.s0, A_rows_1_step_1.s1, A_rows_1_step_3.s0, A_rows_1_step_3.s1);
                    float4 A_rows_1_turned_2 = (float4)(A_rows_1_step_0.s2, A_rows_1_step_0.s3, A_rows_1_step_2.s2, A_rows_1_step_2.s3);
                    float4 A_rows_1_turned_3 = (float4)(A_rows_1_step_1.s2, A_rows_1_step_1.s3, A_rows_1_step_3.s2, A_rows_1_step_3.s3);
                    *(__local float4*)(A_shared + m * 32 + k_5 * 16) = A_rows_1_turned_0;
                    *(__local float4*)(A_shared + m * 32 + k_5 * 16 + 4) = A_rows_1_turned_1;
                    *(__local float4*)(A_shared + m * 32 + k_5 * 16 + 8) = A_rows_1_turned_2;
                    *(__local float4*)(A_shared + m * 32 + k_5 * 16 + 12) = A_rows_1_turned_3;
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
                for (int k_4 = 0; k_4 < 8; ++k_4) {
                    float A_register_0 = *(A_shared + m_4 * 32 + k_4 * 4);
                    float A_register_1 = *(A_shared + m_4 * 32 + k_4 * 4 + 1);
                    float A_register_2 = *(A_shared + m_4 * 32 + k_4 * 4 + 2);
                    float A_register_3 = *(A_shared + m_4 * 32 + k_4 * 4 + 3);
                    float16 B_register_0 = *(__local const float16*)(B_shared + n_2 * 256 + k_4 * 32);
                    float16 B_register_1 = *(__local const float16*)(B_shared + n_2 * 256 + k_4 * 32 + 16);
                    C_state_0_0 = A_register_0 * B_register_0 + C_state_0_0;
                    C_state_0_1 = A_register_0 * B_register_1 + C_state_0_1;
                    C_state_1_0 = A_register_1 * B_register_0 + C_state_1_0;
                    C_state_1_1 = A_register_1 * B_register_1 + C_state_1_1;
                    C_state_2_0 = A_register_2 * B_register_0 + C_state_2_0;
                    C_state_2_1 = A_register_2 * B_register_1 + C_state_2_1;
                    C_state_3_0 = A_register_3 * B_register_0 + C_state_3_0;
                    C_state_3_1 = A_register_3 * B_register_1 + C_state_3_1;
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
