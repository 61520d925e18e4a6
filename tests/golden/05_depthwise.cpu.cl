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

// 2 x 5 x 2 blocks of 1 thread, 1344 bytes of shared memory
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void Z(
    __global const float* restrict X,
    __global const float* restrict W,
    __global float* restrict Z)
{
    __local float X_shared[336] __attribute__((aligned(64)));
    const int block_x = (int)get_group_id(0);
    const int block_y = (int)get_group_id(1);
    const int block_z = (int)get_group_id(2);
    for (int h = 0; h < 3; ++h) {
        for (int w = 0; w < 7; ++w) {
            *(__local float16*)(X_shared + h * 112 + w * 16) = block_y + h < 6 && 1 <= block_y + h && w < 6 && 1 <= w ? load_first_global_float16(X + (block_z * 475 + block_y * 95 + h * 95 + w * 19 + block_x * 16 - 114), 19 - block_x * 16, (float16)(0.0f)) : (float16)(0.0f);
        }
    }
    float16 W_register_0_0 = load_first_global_float16(W + block_x * 16, 19 - block_x * 16, (float16)(0.0f));
    float16 W_register_1_0 = load_first_global_float16(W + block_x * 16 + 57, 19 - block_x * 16, (float16)(0.0f));
    float16 W_register_2_0 = load_first_global_float16(W + block_x * 16 + 114, 19 - block_x * 16, (float16)(0.0f));
    float16 W_register_0_1 = load_first_global_float16(W + block_x * 16 + 19, 19 - block_x * 16, (float16)(0.0f));
    float16 W_register_1_1 = load_first_global_float16(W + block_x * 16 + 76, 19 - block_x * 16, (float16)(0.0f));
    float16 W_register_2_1 = load_first_global_float16(W + block_x * 16 + 133, 19 - block_x * 16, (float16)(0.0f));
    float16 W_register_0_2 = load_first_global_float16(W + block_x * 16 + 38, 19 - block_x * 16, (float16)(0.0f));
    float16 W_register_1_2 = load_first_global_float16(W + block_x * 16 + 95, 19 - block_x * 16, (float16)(0.0f));
    float16 W_register_2_2 = load_first_global_float16(W + block_x * 16 + 152, 19 - block_x * 16, (float16)(0.0f));
    for (int q = 0; q < 3; ++q) {
        float16 Z_state_0 = (float16)(0.0f);
        float16 Z_state_1 = (float16)(0.0f);
        Z_state_0 = Z_state_0 + *(__local const float16*)(X_shared + q * 32) * W_register_0_0;
        if (q * 2 < 4) {
            Z_state_1 = Z_state_1 + *(__local const float16*)(X_shared + q * 32 + 16) * W_register_0_0;
        }
        Z_state_0 = Z_state_0 + *(__local const float16*)(X_shared + q * 32 + 16) * W_register_0_1;
        if (q * 2 < 4) {
            Z_state_1 = Z_state_1 + *(__local const float16*)(X_shared + q * 32 + 32) * W_register_0_1;
        }
        Z_state_0 = Z_state_0 + *(__local const float16*)(X_shared + q * 32 + 32) * W_register_0_2;
        if (q * 2 < 4) {
            Z_state_1 = Z_state_1 + *(__local const float16*)(X_shared + q * 32 + 48) * W_register_0_2;
        }
        Z_state_0 = Z_state_0 + *(__local const float16*)(X_shared + q * 32 + 112) * W_register_1_0;
        if (q * 2 < 4) {
            Z_state_1 = Z_state_1 + *(__local const float16*)(X_shared + q * 32 + 128) * W_register_1_0;
        }
        Z_state_0 = Z_state_0 + *(__local const float16*)(X_shared + q * 32 + 128) * W_register_1_1;
        if (q * 2 < 4) {
            Z_state_1 = Z_state_1 + *(__local const float16*)(X_shared + q * 32 + 144) * W_register_1_1;
        }
        Z_state_0 = Z_state_0 + *(__local const float16*)(X_shared + q * 32 + 144) * W_register_1_2;
        if (q * 2 < 4) {
            Z_state_1 = Z_state_1 + *(__local const float16*)(X_shared + q * 32 + 160) * W_register_1_2;
        }
        Z_state_0 = Z_state_0 + *(__local const float16*)(X_shared + q * 32 + 224) * W_register_2_0;
        if (q * 2 < 4) {
            Z_state_1 = Z_state_1 + *(__local const float16*)(X_shared + q * 32 + 240) * W_register_2_0;
        }
        Z_state_0 = Z_state_0 + *(__local const float16*)(X_shared + q * 32 + 240) * W_register_2_1;
        if (q * 2 < 4) {
            Z_state_1 = Z_state_1 + *(__local const float16*)(X_shared + q * 32 + 256) * W_register_2_1;
        }
        Z_state_0 = Z_state_0 + *(__local const float16*)(X_shared + q * 32 + 256) * W_register_2_2;
        if (q * 2 < 4) {
            Z_state_1 = Z_state_1 + *(__local const float16*)(X_shared + q * 32 + 272) * W_register_2_2;
        }
        if (q * 2 < 4 && block_x * 16 < 4) {
            *(__global float16_u*)(Z + block_z * 475 + block_y * 95 + q * 38 + block_x * 16) = Z_state_0;
            *(__global float16_u*)(Z + block_z * 475 + block_y * 95 + q * 38 + block_x * 16 + 19) = Z_state_1;
        } else {
            if (block_x * 16 < 4) {
                *(__global float16_u*)(Z + block_z * 475 + block_y * 95 + q * 38 + block_x * 16) = Z_state_0;
            } else {
                store_first_global_float16(Z + block_z * 475 + block_y * 95 + q * 38 + block_x * 16, Z_state_0, 19 - block_x * 16);
            }
            if (q * 2 < 4) {
                if (block_x * 16 < 4) {
                    *(__global float16_u*)(Z + block_z * 475 + block_y * 95 + q * 38 + block_x * 16 + 19) = Z_state_1;
                } else {
                    store_first_global_float16(Z + block_z * 475 + block_y * 95 + q * 38 + block_x * 16 + 19, Z_state_1, 19 - block_x * 16);
                }
            }
        }
    }
}
