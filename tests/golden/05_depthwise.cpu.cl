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
