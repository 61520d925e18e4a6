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

static inline float16 load_first_shared_float16(const __local float* p, long count, float16 others) {  // touches the first `count` elements only
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
    return as_float16(__builtin_ia32_loadups512_mask((const float16*)(size_t)p, as_float16(others), (ushort)((1u << (count < 0 ? 0 : count > 16 ? 16 : (int)count)) - 1u)));
#else
    if (count >= 16) return *(const __local float16_u*)p;
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

static inline void store_first_global_float16(__global float* p, float16 v, long count) {  // touches the first `count` elements only
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
    __builtin_ia32_storeups512_mask((float16*)(size_t)p, as_float16(v), (ushort)((1u << (count < 0 ? 0 : count > 16 ? 16 : (int)count)) - 1u));
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

// 2 x 1 x 1 blocks of 1 thread, 640 bytes of shared memory
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void O(
    __global const float* restrict P,
    __global const float* restrict V,
    __global float* restrict O)
{
    __local float V_shared[128] __attribute__((aligned(64)));
    __local float P_shared[32] __attribute__((aligned(64)));
    const int block_x = (int)get_group_id(0);
    for (int j = 0; j < 4; ++j) {
        for (int d = 0; d < 2; ++d) {
            for (int j_1 = 0; j_1 < 4; ++j_1) {
                *(__local float16*)(V_shared + d * 64 + j_1 * 16) = j * 4 + j_1 < 13 ? load_first_global_float16(V + j * 76 + j_1 * 19 + d * 16, -d * 16 + 19, (float16)(0.0f)) : (float16)(0.0f);
            }
        }
        if (block_x * 8 < 6 && j * 4 < 10) {
            for (int i_2 = 0; i_2 < 2; ++i_2) {
                for (int j_4 = 0; j_4 < 4; ++j_4) {
                    for (int i_3 = 0; i_3 < 4; ++i_3) {
                        P_shared[i_2 * 16 + j_4 * 4 + i_3] = P[block_x * 104 + i_2 * 52 + i_3 * 13 + j * 4 + j_4];
                    }
                }
            }
        } else {
            for (int i = 0; i < 2; ++i) {
                for (int j_3 = 0; j_3 < 4; ++j_3) {
                    for (int i_1 = 0; i_1 < 4; ++i_1) {
                        P_shared[i * 16 + j_3 * 4 + i_1] = block_x * 8 + i * 4 + i_1 < 13 && j * 4 + j_3 < 13 ? P[block_x * 104 + i * 52 + i_1 * 13 + j * 4 + j_3] : 0.0f;
                    }
                }
            }
        }
        for (int d_2 = 0; d_2 < 2; ++d_2) {
            for (int i_4 = 0; i_4 < 2; ++i_4) {
                if (block_x * 8 + i_4 * 4 < 10 && d_2 * 16 < 4) {
                    float16 O_state_1_1_0 = (float16)(0.0f);
                    float16 O_state_1_1_1 = (float16)(0.0f);
                    float16 O_state_1_1_2 = (float16)(0.0f);
                    float16 O_state_1_1_3 = (float16)(0.0f);
                    for (int j_6 = 0; j_6 < min(4, -j * 4 + 13); ++j_6) {
                        float16 V_register_1 = j * 4 + j_6 < 13 ? load_first_shared_float16(V_shared + d_2 * 64 + j_6 * 16, -d_2 * 16 + 19, (float16)(0.0f)) : (float16)(0.0f);
                        if (j * 4 + j_6 <= block_x * 8 + i_4 * 4) {
                            O_state_1_1_0 = O_state_1_1_0 + P_shared[i_4 * 16 + j_6 * 4] * V_register_1;
                        }
                        if (j * 4 + j_6 <= block_x * 8 + i_4 * 4 + 1) {
                            O_state_1_1_1 = O_state_1_1_1 + P_shared[i_4 * 16 + j_6 * 4 + 1] * V_register_1;
                        }
                        if (j * 4 + j_6 <= block_x * 8 + i_4 * 4 + 2) {
                            O_state_1_1_2 = O_state_1_1_2 + P_shared[i_4 * 16 + j_6 * 4 + 2] * V_register_1;
                        }
                        if (j * 4 + j_6 <= block_x * 8 + i_4 * 4 + 3) {
                            O_state_1_1_3 = O_state_1_1_3 + P_shared[i_4 * 16 + j_6 * 4 + 3] * V_register_1;
                        }
                    }
                    if (j == 0) {
                        *(__global float16_u*)(O + block_x * 152 + i_4 * 76 + d_2 * 16) = O_state_1_1_0;
                        *(__global float16_u*)(O + block_x * 152 + i_4 * 76 + d_2 * 16 + 19) = O_state_1_1_1;
                        *(__global float16_u*)(O + block_x * 152 + i_4 * 76 + d_2 * 16 + 38) = O_state_1_1_2;
                        *(__global float16_u*)(O + block_x * 152 + i_4 * 76 + d_2 * 16 + 57) = O_state_1_1_3;
                    } else {
                        *(__global float16_u*)(O + block_x * 152 + i_4 * 76 + d_2 * 16) = *(__global const float16_u*)(O + block_x * 152 + i_4 * 76 + d_2 * 16) + O_state_1_1_0;
                        *(__global float16_u*)(O + block_x * 152 + i_4 * 76 + d_2 * 16 + 19) = *(__global const float16_u*)(O + block_x * 152 + i_4 * 76 + d_2 * 16 + 19) + O_state_1_1_1;
                        *(__global float16_u*)(O + block_x * 152 + i_4 * 76 + d_2 * 16 + 38) = *(__global const float16_u*)(O + block_x * 152 + i_4 * 76 + d_2 * 16 + 38) + O_state_1_1_2;
                        *(__global float16_u*)(O + block_x * 152 + i_4 * 76 + d_2 * 16 + 57) = *(__global const float16_u*)(O + block_x * 152 + i_4 * 76 + d_2 * 16 + 57) + O_state_1_1_3;
                    }
                } else {
                    float16 O_state_0 = (float16)(0.0f);
                    float16 O_state_1 = (float16)(0.0f);
                    float16 O_state_2 = (float16)(0.0f);
                    float16 O_state_3 = (float16)(0.0f);
                    for (int j_5 = 0; j_5 < min(4, -j * 4 + 13); ++j_5) {
                        float16 V_register = j * 4 + j_5 < 13 ? *(__local const float16*)(V_shared + d_2 * 64 + j_5 * 16) : (float16)(0.0f);
                        if (j * 4 + j_5 <= block_x * 8 + i_4 * 4) {
                            O_state_0 = O_state_0 + P_shared[i_4 * 16 + j_5 * 4] * V_register;
                        }
                        if (j * 4 + j_5 <= block_x * 8 + i_4 * 4 + 1) {
                            O_state_1 = O_state_1 + P_shared[i_4 * 16 + j_5 * 4 + 1] * V_register;
                        }
                        if (j * 4 + j_5 <= block_x * 8 + i_4 * 4 + 2) {
                            O_state_2 = O_state_2 + P_shared[i_4 * 16 + j_5 * 4 + 2] * V_register;
                        }
                        if (j * 4 + j_5 <= block_x * 8 + i_4 * 4 + 3) {
                            O_state_3 = O_state_3 + P_shared[i_4 * 16 + j_5 * 4 + 3] * V_register;
                        }
                    }
                    if (j == 0) {
                        if (d_2 * 16 < 4) {
                            *(__global float16_u*)(O + block_x * 152 + i_4 * 76 + d_2 * 16) = O_state_0;
                        } else {
                            store_first_global_float16(O + block_x * 152 + i_4 * 76 + d_2 * 16, O_state_0, -d_2 * 16 + 19);
                        }
                        if (block_x * 8 + i_4 * 4 < 12) {
                            if (d_2 * 16 < 4) {
                                *(__global float16_u*)(O + block_x * 152 + i_4 * 76 + d_2 * 16 + 19) = O_state_1;
                            } else {
                                store_first_global_float16(O + block_x * 152 + i_4 * 76 + d_2 * 16 + 19, O_state_1, -d_2 * 16 + 19);
                            }
                        }
                        if (block_x * 8 + i_4 * 4 < 11) {
                            if (d_2 * 16 < 4) {
                                *(__global float16_u*)(O + block_x * 152 + i_4 * 76 + d_2 * 16 + 38) = O_state_2;
                            } else {
                                store_first_global_float16(O + block_x * 152 + i_4 * 76 + d_2 * 16 + 38, O_state_2, -d_2 * 16 + 19);
                            }
                        }
                        if (block_x * 8 + i_4 * 4 < 10) {
                            if (d_2 * 16 < 4) {
                                *(__global float16_u*)(O + block_x * 152 + i_4 * 76 + d_2 * 16 + 57) = O_state_3;
                            } else {
                                store_first_global_float16(O + block_x * 152 + i_4 * 76 + d_2 * 16 + 57, O_state_3, -d_2 * 16 + 19);
                            }
                        }
                    } else {
                        if (d_2 * 16 < 4) {
                            *(__global float16_u*)(O + block_x * 152 + i_4 * 76 + d_2 * 16) = *(__global const float16_u*)(O + block_x * 152 + i_4 * 76 + d_2 * 16) + O_state_0;
                        } else {
                            store_first_global_float16(O + block_x * 152 + i_4 * 76 + d_2 * 16, load_first_global_float16(O + block_x * 152 + i_4 * 76 + d_2 * 16, -d_2 * 16 + 19, (float16)(0.0f)) + O_state_0, -d_2 * 16 + 19);
                        }
                        if (block_x * 8 + i_4 * 4 < 12) {
                            if (d_2 * 16 < 4) {
                                *(__global float16_u*)(O + block_x * 152 + i_4 * 76 + d_2 * 16 + 19) = *(__global const float16_u*)(O + block_x * 152 + i_4 * 76 + d_2 * 16 + 19) + O_state_1;
                            } else {
                                store_first_global_float16(O + block_x * 152 + i_4 * 76 + d_2 * 16 + 19, load_first_global_float16(O + block_x * 152 + i_4 * 76 + d_2 * 16 + 19, -d_2 * 16 + 19, (float16)(0.0f)) + O_state_1, -d_2 * 16 + 19);
                            }
                        }
                        if (block_x * 8 + i_4 * 4 < 11) {
                            if (d_2 * 16 < 4) {
                                *(__global float16_u*)(O + block_x * 152 + i_4 * 76 + d_2 * 16 + 38) = *(__global const float16_u*)(O + block_x * 152 + i_4 * 76 + d_2 * 16 + 38) + O_state_2;
                            } else {
                                store_first_global_float16(O + block_x * 152 + i_4 * 76 + d_2 * 16 + 38, load_first_global_float16(O + block_x * 152 + i_4 * 76 + d_2 * 16 + 38, -d_2 * 16 + 19, (float16)(0.0f)) + O_state_2, -d_2 * 16 + 19);
                            }
                        }
                        if (block_x * 8 + i_4 * 4 < 10) {
                            if (d_2 * 16 < 4) {
                                *(__global float16_u*)(O + block_x * 152 + i_4 * 76 + d_2 * 16 + 57) = *(__global const float16_u*)(O + block_x * 152 + i_4 * 76 + d_2 * 16 + 57) + O_state_3;
                            } else {
                                store_first_global_float16(O + block_x * 152 + i_4 * 76 + d_2 * 16 + 57, load_first_global_float16(O + block_x * 152 + i_4 * 76 + d_2 * 16 + 57, -d_2 * 16 + 19, (float16)(0.0f)) + O_state_3, -d_2 * 16 + 19);
                            }
                        }
                    }
                }
            }
        }
    }
}
