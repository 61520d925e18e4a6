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

static inline float16 load_first_shared_float16(const __local float* p, long count, float16 others) {  // touches the first `count` elements only
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
    return as_float16(__builtin_ia32_loadups512_mask((const void*)(size_t)p, as_float16(others), (ushort)((1u << (count < 0 ? 0 : count > 16 ? 16 : (int)count)) - 1u)));
#else
    if (count >= 16) return *(const __local float16_u*)p;
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

// 3 x 1 x 1 blocks of 1 thread, 3584 bytes of shared memory
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void C(
    __global const float* restrict X,
    __global const float* restrict W,
    __global float* restrict C)
{
    __local float C_state_shared[512] __attribute__((aligned(64)));
    __local float W_shared[256] __attribute__((aligned(64)));
    __local float X_shared[128] __attribute__((aligned(64)));
    const int block_x = (int)get_group_id(0);
    for (int n = 0; n < 2; ++n) {
        for (int k = 0; k < 8; ++k) {
            *(__local float16*)(W_shared + n * 128 + k * 16) = k < 7 ? load_first_global_float16(W + block_x * 133 + k * 19 + n * 16, 19 - n * 16, (float16)(0.0f)) : (float16)(0.0f);
        }
    }
    for (int m = 0; m < 4; ++m) {
        const int m_end_1 = max(min(4, 11 - m * 4), 0);
        for (int k_4 = 0; k_4 < 2; ++k_4) {
            if (3 < m_end_1) {
                float4 X_rows_0 = *(__global const float4_u*)(X + block_x * 77 + m * 28 + min(k_4 * 4, 3));
                float4 X_rows_1 = *(__global const float4_u*)(X + block_x * 77 + m * 28 + min(k_4 * 4, 3) + 7);
                float4 X_rows_2 = *(__global const float4_u*)(X + block_x * 77 + m * 28 + min(k_4 * 4, 3) + 14);
                float4 X_rows_3 = *(__global const float4_u*)(X + block_x * 77 + m * 28 + min(k_4 * 4, 3) + 21);
                float4 X_step_0 = (float4)(X_rows_0.s0, X_rows_1.s0, X_rows_0.s2, X_rows_1.s2);
                float4 X_step_1 = (float4)(X_rows_0.s1, X_rows_1.s1, X_rows_0.s3, X_rows_1.s3);
                float4 X_step_2 = (float4)(X_rows_2.s0, X_rows_3.s0, X_rows_2.s2, X_rows_3.s2);
                float4 X_step_3 = (float4)(X_rows_2.s1, X_rows_3.s1, X_rows_2.s3, X_rows_3.s3);
                float4 X_turned_0 = (float4)(X_step_0.s0, X_step_0.s1, X_step_2.s0, X_step_2.s1);
                float4 X_turned_1 = (float4)(X_step_1.s0, X_step_1.s1, X_step_3.s0, X_step_3.s1);
                float4 X_turned_2 = (float4)(X_step_0.s2, X_step_0.s3, X_step_2.s2, X_step_2.s3);
                float4 X_turned_3 = (float4)(X_step_1.s2, X_step_1.s3, X_step_3.s2, X_step_3.s3);
                *(__local float4*)(X_shared + m * 32 + min(k_4 * 4, 3) * 4) = X_turned_0;
                *(__local float4*)(X_shared + m * 32 + min(k_4 * 4, 3) * 4 + 4) = X_turned_1;
                *(__local float4*)(X_shared + m * 32 + min(k_4 * 4, 3) * 4 + 8) = X_turned_2;
                *(__local float4*)(X_shared + m * 32 + min(k_4 * 4, 3) * 4 + 12) = X_turned_3;
            } else {
                float4 X_rows_1_1_0 = 0 < m_end_1 ? *(__global const float4_u*)(X + block_x * 77 + m * 28 + min(k_4 * 4, 3)) : (float4)(0.0f);
                float4 X_rows_1_1_1 = 1 < m_end_1 ? *(__global const float4_u*)(X + block_x * 77 + m * 28 + min(k_4 * 4, 3) + 7) : (float4)(0.0f);
                float4 X_rows_1_1_2 = 2 < m_end_1 ? *(__global const float4_u*)(X + block_x * 77 + m * 28 + min(k_4 * 4, 3) + 14) : (float4)(0.0f);
                float4 X_rows_1_1_3 = 3 < m_end_1 ? *(__global const float4_u*)(X + block_x * 77 + m * 28 + min(k_4 * 4, 3) + 21) : (float4)(0.0f);
                float4 X_rows_1_step_0 = (float4)(X_rows_1_1_0.s0, X_rows_1_1_1.s0, X_rows_1_1_0.s2, X_rows_1_1_1.s2);
                float4 X_rows_1_step_1 = (float4)(X_rows_1_1_0.s1, X_rows_1_1_1.s1, X_rows_1_1_0.s3, X_rows_1_1_1.s3);
                float4 X_rows_1_step_2 = (float4)(X_rows_1_1_2.s0, X_rows_1_1_3.s0, X_rows_1_1_2.s2, X_rows_1_1_3.s2);
                float4 X_rows_1_step_3 = (float4)(X_rows_1_1_2.s1, X_rows_1_1_3.s1, X_rows_1_1_2.s3, X_rows_1_1_3.s3);
                float4 X_rows_1_turned_0 = (float4)(X_rows_1_step_0.s0, X_rows_1_step_0.s1, X_rows_1_step_2.s0, X_rows_1_step_2.s1);
                float4 X_rows_1_turned_1 = (float4)(X_rows_1_step_1.s0, X_rows_1_step_1.s1, X_rows_1_step_3.s0, X_rows_1_step_3.s1);
                float4 X_rows_1_turned_2 = (float4)(X_rows_1_step_0.s2, X_rows_1_step_0.s3, X_rows_1_step_2.s2, X_rows_1_step_2.s3);
                float4 X_rows_1_turned_3 = (float4)(X_rows_1_step_1.s2, X_rows_1_step_1.s3, X_rows_1_step_3.s2, X_rows_1_step_3.s3);
                *(__local float4*)(X_shared + m * 32 + min(k_4 * 4, 3) * 4) = X_rows_1_turned_0;
                *(__local float4*)(X_shared + m * 32 + min(k_4 * 4, 3) * 4 + 4) = X_rows_1_turned_1;
                *(__local float4*)(X_shared + m * 32 + min(k_4 * 4, 3) * 4 + 8) = X_rows_1_turned_2;
                *(__local float4*)(X_shared + m * 32 + min(k_4 * 4, 3) * 4 + 12) = X_rows_1_turned_3;
            }
        }
        *(__local float4*)(X_shared + m * 32 + 28) = (float4)(0.0f);
    }
    for (int n_1 = 0; n_1 < 2; ++n_1) {
        for (int m_2 = 0; m_2 < 3; ++m_2) {
            float16 C_state_0 = (float16)(0.0f);
            float16 C_state_1 = (float16)(0.0f);
            float16 C_state_2 = (float16)(0.0f);
            float16 C_state_3 = (float16)(0.0f);
            for (int k_2 = 0; k_2 < 2; ++k_2) {
                float16 W_register = *(__local const float16*)(W_shared + n_1 * 128 + k_2 * 64);
                C_state_0 = C_state_0 + *(X_shared + m_2 * 32 + k_2 * 16) * W_register;
                C_state_1 = C_state_1 + *(X_shared + m_2 * 32 + k_2 * 16 + 1) * W_register;
                C_state_2 = C_state_2 + *(X_shared + m_2 * 32 + k_2 * 16 + 2) * W_register;
                C_state_3 = C_state_3 + *(X_shared + m_2 * 32 + k_2 * 16 + 3) * W_register;
                W_register = *(__local const float16*)(W_shared + n_1 * 128 + k_2 * 64 + 16);
                C_state_0 = C_state_0 + *(X_shared + m_2 * 32 + k_2 * 16 + 4) * W_register;
                C_state_1 = C_state_1 + *(X_shared + m_2 * 32 + k_2 * 16 + 5) * W_register;
                C_state_2 = C_state_2 + *(X_shared + m_2 * 32 + k_2 * 16 + 6) * W_register;
                C_state_3 = C_state_3 + *(X_shared + m_2 * 32 + k_2 * 16 + 7) * W_register;
                W_register = *(__local const float16*)(W_shared + n_1 * 128 + k_2 * 64 + 32);
                C_state_0 = C_state_0 + *(X_shared + m_2 * 32 + k_2 * 16 + 8) * W_register;
                C_state_1 = C_state_1 + *(X_shared + m_2 * 32 + k_2 * 16 + 9) * W_register;
                C_state_2 = C_state_2 + *(X_shared + m_2 * 32 + k_2 * 16 + 10) * W_register;
                C_state_3 = C_state_3 + *(X_shared + m_2 * 32 + k_2 * 16 + 11) * W_register;
                W_register = *(__local const float16*)(W_shared + n_1 * 128 + k_2 * 64 + 48);
                C_state_0 = C_state_0 + *(X_shared + m_2 * 32 + k_2 * 16 + 12) * W_register;
                C_state_1 = C_state_1 + *(X_shared + m_2 * 32 + k_2 * 16 + 13) * W_register;
                C_state_2 = C_state_2 + *(X_shared + m_2 * 32 + k_2 * 16 + 14) * W_register;
                C_state_3 = C_state_3 + *(X_shared + m_2 * 32 + k_2 * 16 + 15) * W_register;
            }
            *(__local float16*)(C_state_shared + m_2 * 128 + n_1 * 16) = C_state_0;
            *(__local float16*)(C_state_shared + m_2 * 128 + n_1 * 16 + 32) = C_state_1;
            *(__local float16*)(C_state_shared + m_2 * 128 + n_1 * 16 + 64) = C_state_2;
            *(__local float16*)(C_state_shared + m_2 * 128 + n_1 * 16 + 96) = C_state_3;
        }
    }
    for (int m_5 = 0; m_5 < 11; ++m_5) {
        for (int n_2 = 0; n_2 < 2; ++n_2) {
            if (n_2 * 16 < 4) {
                *(__global float16_u*)(C + block_x * 209 + m_5 * 19 + n_2 * 16) = *(__local const float16*)(C_state_shared + m_5 * 32 + n_2 * 16);
            } else {
                store_first_global_float16(C + block_x * 209 + m_5 * 19 + n_2 * 16, load_first_shared_float16(C_state_shared + m_5 * 32 + n_2 * 16, 19 - n_2 * 16, (float16)(0.0f)), 19 - n_2 * 16);
            }
        }
    }
}
