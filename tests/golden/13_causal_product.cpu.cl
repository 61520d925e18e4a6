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

// 2 x 1 x 1 blocks of 1 thread, 512 bytes of shared memory
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void O(
    __global const float* restrict P,
    __global const float* restrict V,
    __global float* restrict O)
{
    __local float V_shared[128] __attribute__((aligned(64)));
    const int block_x = (int)get_group_id(0);
    for (int j = 0; j < block_x * 2 + 2; ++j) {
        for (int d = 0; d < 2; ++d) {
            for (int j_1 = 0; j_1 < 4; ++j_1) {
                *(__local float16*)(V_shared + d * 64 + j_1 * 16) = j * 4 + j_1 < 13 ? load_first_global_float16(V + j * 76 + j_1 * 19 + d * 16, 19 - d * 16, (float16)(0.0f)) : (float16)(0.0f);
            }
        }
        for (int i = 0; i < 2; ++i) {
            for (int d_1 = 0; d_1 < 2; ++d_1) {
                if (j == 0 || j * 4 <= block_x * 8 + i * 4 + 3) {
                    if (block_x * 8 + i * 4 < 10) {
                        float16 O_state_0 = (float16)(0.0f);
                        float16 O_state_1 = (float16)(0.0f);
                        float16 O_state_2 = (float16)(0.0f);
                        float16 O_state_3 = (float16)(0.0f);
                        if (j * 4 + 3 <= block_x * 8 + i * 4) {
                            for (int j_2 = 0; j_2 < min(4, 13 - j * 4); ++j_2) {
                                float16 V_register = *(__local const float16*)(V_shared + d_1 * 64 + j_2 * 16);
                                O_state_0 = O_state_0 + *(P + block_x * 104 + i * 52 + j * 4 + j_2) * V_register;
                                O_state_1 = O_state_1 + *(P + block_x * 104 + i * 52 + j * 4 + j_2 + 13) * V_register;
                                O_state_2 = O_state_2 + *(P + block_x * 104 + i * 52 + j * 4 + j_2 + 26) * V_register;
                                O_state_3 = O_state_3 + *(P + block_x * 104 + i * 52 + j * 4 + j_2 + 39) * V_register;
                            }
                        } else {
                            for (int j_3 = 0; j_3 < min(4, 13 - j * 4); ++j_3) {
                                float16 V_register_1 = *(__local const float16*)(V_shared + d_1 * 64 + j_3 * 16);
                                if (j * 4 + j_3 <= block_x * 8 + i * 4) {
                                    O_state_0 = O_state_0 + *(P + block_x * 104 + i * 52 + j * 4 + j_3) * V_register_1;
                                }
                                if (j * 4 + j_3 <= block_x * 8 + i * 4 + 1) {
                                    O_state_1 = O_state_1 + *(P + block_x * 104 + i * 52 + j * 4 + j_3 + 13) * V_register_1;
                                }
                                if (j * 4 + j_3 <= block_x * 8 + i * 4 + 2) {
                                    O_state_2 = O_state_2 + *(P + block_x * 104 + i * 52 + j * 4 + j_3 + 26) * V_register_1;
                                }
                                if (j * 4 + j_3 <= block_x * 8 + i * 4 + 3) {
                                    O_state_3 = O_state_3 + *(P + block_x * 104 + i * 52 + j * 4 + j_3 + 39) * V_register_1;
                                }
                            }
                        }
                        if (j == 0) {
                            if (d_1 * 16 < 4) {
                                *(__global float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16) = O_state_0;
                                *(__global float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16 + 19) = O_state_1;
                                *(__global float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16 + 38) = O_state_2;
                                *(__global float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16 + 57) = O_state_3;
                            } else {
                                if (d_1 * 16 < 4) {
                                    *(__global float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16) = O_state_0;
                                    *(__global float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16 + 19) = O_state_1;
                                    *(__global float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16 + 38) = O_state_2;
                                    *(__global float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16 + 57) = O_state_3;
                                } else {
                                    store_first_global_float16(O + block_x * 152 + i * 76 + d_1 * 16, O_state_0, 19 - d_1 * 16);
                                    store_first_global_float16(O + block_x * 152 + i * 76 + d_1 * 16 + 19, O_state_1, 19 - d_1 * 16);
                                    store_first_global_float16(O + block_x * 152 + i * 76 + d_1 * 16 + 38, O_state_2, 19 - d_1 * 16);
                                    store_first_global_float16(O + block_x * 152 + i * 76 + d_1 * 16 + 57, O_state_3, 19 - d_1 * 16);
                                }
                            }
                        } else {
                            if (d_1 * 16 < 4) {
                                *(__global float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16) = *(__global const float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16) + O_state_0;
                                *(__global float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16 + 19) = *(__global const float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16 + 19) + O_state_1;
                                *(__global float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16 + 38) = *(__global const float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16 + 38) + O_state_2;
                                *(__global float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16 + 57) = *(__global const float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16 + 57) + O_state_3;
                            } else {
                                if (d_1 * 16 < 4) {
                                    *(__global float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16) = *(__global const float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16) + O_state_0;
                                    *(__global float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16 + 19) = *(__global const float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16 + 19) + O_state_1;
                                    *(__global float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16 + 38) = *(__global const float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16 + 38) + O_state_2;
                                    *(__global float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16 + 57) = *(__global const float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16 + 57) + O_state_3;
                                } else {
                                    store_first_global_float16(O + block_x * 152 + i * 76 + d_1 * 16, load_first_global_float16(O + block_x * 152 + i * 76 + d_1 * 16, 19 - d_1 * 16, (float16)(0.0f)) + O_state_0, 19 - d_1 * 16);
                                    store_first_global_float16(O + block_x * 152 + i * 76 + d_1 * 16 + 19, load_first_global_float16(O + block_x * 152 + i * 76 + d_1 * 16 + 19, 19 - d_1 * 16, (float16)(0.0f)) + O_state_1, 19 - d_1 * 16);
                                    store_first_global_float16(O + block_x * 152 + i * 76 + d_1 * 16 + 38, load_first_global_float16(O + block_x * 152 + i * 76 + d_1 * 16 + 38, 19 - d_1 * 16, (float16)(0.0f)) + O_state_2, 19 - d_1 * 16);
                                    store_first_global_float16(O + block_x * 152 + i * 76 + d_1 * 16 + 57, load_first_global_float16(O + block_x * 152 + i * 76 + d_1 * 16 + 57, 19 - d_1 * 16, (float16)(0.0f)) + O_state_3, 19 - d_1 * 16);
                                }
                            }
                        }
                    } else {
                        float16 O_state_1_1_0 = (float16)(0.0f);
                        float16 O_state_1_1_1 = (float16)(0.0f);
                        float16 O_state_1_1_2 = (float16)(0.0f);
                        float16 O_state_1_1_3 = (float16)(0.0f);
                        for (int j_4 = 0; j_4 < min(4, 13 - j * 4); ++j_4) {
                            float16 V_register_2 = *(__local const float16*)(V_shared + d_1 * 64 + j_4 * 16);
                            if (j * 4 + j_4 <= block_x * 8 + i * 4) {
                                O_state_1_1_0 = O_state_1_1_0 + *(P + block_x * 104 + i * 52 + j * 4 + j_4) * V_register_2;
                            }
                            if (block_x * 8 + i * 4 < 12 && j * 4 + j_4 <= block_x * 8 + i * 4 + 1) {
                                O_state_1_1_1 = O_state_1_1_1 + *(P + block_x * 104 + i * 52 + j * 4 + j_4 + 13) * V_register_2;
                            }
                            if (block_x * 8 + i * 4 < 11 && j * 4 + j_4 <= block_x * 8 + i * 4 + 2) {
                                O_state_1_1_2 = O_state_1_1_2 + *(P + block_x * 104 + i * 52 + j * 4 + j_4 + 26) * V_register_2;
                            }
                            if (block_x * 8 + i * 4 < 10 && j * 4 + j_4 <= block_x * 8 + i * 4 + 3) {
                                O_state_1_1_3 = O_state_1_1_3 + *(P + block_x * 104 + i * 52 + j * 4 + j_4 + 39) * V_register_2;
                            }
                        }
                        if (j == 0) {
                            if (d_1 * 16 < 4) {
                                *(__global float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16) = O_state_1_1_0;
                            } else {
                                store_first_global_float16(O + block_x * 152 + i * 76 + d_1 * 16, O_state_1_1_0, 19 - d_1 * 16);
                            }
                            if (block_x * 8 + i * 4 < 12) {
                                if (d_1 * 16 < 4) {
                                    *(__global float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16 + 19) = O_state_1_1_1;
                                } else {
                                    store_first_global_float16(O + block_x * 152 + i * 76 + d_1 * 16 + 19, O_state_1_1_1, 19 - d_1 * 16);
                                }
                            }
                            if (block_x * 8 + i * 4 < 11) {
                                if (d_1 * 16 < 4) {
                                    *(__global float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16 + 38) = O_state_1_1_2;
                                } else {
                                    store_first_global_float16(O + block_x * 152 + i * 76 + d_1 * 16 + 38, O_state_1_1_2, 19 - d_1 * 16);
                                }
                            }
                            if (block_x * 8 + i * 4 < 10) {
                                if (d_1 * 16 < 4) {
                                    *(__global float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16 + 57) = O_state_1_1_3;
                                } else {
                                    store_first_global_float16(O + block_x * 152 + i * 76 + d_1 * 16 + 57, O_state_1_1_3, 19 - d_1 * 16);
                                }
                            }
                        } else {
                            if (d_1 * 16 < 4) {
                                *(__global float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16) = *(__global const float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16) + O_state_1_1_0;
                            } else {
                                store_first_global_float16(O + block_x * 152 + i * 76 + d_1 * 16, load_first_global_float16(O + block_x * 152 + i * 76 + d_1 * 16, 19 - d_1 * 16, (float16)(0.0f)) + O_state_1_1_0, 19 - d_1 * 16);
                            }
                            if (block_x * 8 + i * 4 < 12) {
                                if (d_1 * 16 < 4) {
                                    *(__global float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16 + 19) = *(__global const float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16 + 19) + O_state_1_1_1;
                                } else {
                                    store_first_global_float16(O + block_x * 152 + i * 76 + d_1 * 16 + 19, load_first_global_float16(O + block_x * 152 + i * 76 + d_1 * 16 + 19, 19 - d_1 * 16, (float16)(0.0f)) + O_state_1_1_1, 19 - d_1 * 16);
                                }
                            }
                            if (block_x * 8 + i * 4 < 11) {
                                if (d_1 * 16 < 4) {
                                    *(__global float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16 + 38) = *(__global const float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16 + 38) + O_state_1_1_2;
                                } else {
                                    store_first_global_float16(O + block_x * 152 + i * 76 + d_1 * 16 + 38, load_first_global_float16(O + block_x * 152 + i * 76 + d_1 * 16 + 38, 19 - d_1 * 16, (float16)(0.0f)) + O_state_1_1_2, 19 - d_1 * 16);
                                }
                            }
                            if (block_x * 8 + i * 4 < 10) {
                                if (d_1 * 16 < 4) {
                                    *(__global float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16 + 57) = *(__global const float16_u*)(O + block_x * 152 + i * 76 + d_1 * 16 + 57) + O_state_1_1_3;
                                } else {
                                    store_first_global_float16(O + block_x * 152 + i * 76 + d_1 * 16 + 57, load_first_global_float16(O + block_x * 152 + i * 76 + d_1 * 16 + 57, 19 - d_1 * 16, (float16)(0.0f)) + O_state_1_1_3, 19 - d_1 * 16);
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
