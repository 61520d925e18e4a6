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

static inline float16 exp_float16(float16 x) {  // 2^n * e^r with n whole and |r| <= log(2) / 2
    float16 y = x > 89.0f ? (float16)(89.0f) : x;
    y = y < -104.0f ? (float16)(-104.0f) : y;
    const float16 shifted = y * 1.44269504f + 12582912.0f;  // the sum's low bits are n
    const float16 n = shifted - 12582912.0f;
    const int16 whole = as_int16(shifted) - 0x4b400000;
    const float16 r = (y - n * 0.693359375f) + n * 2.12194440e-4f;
    float16 p = r * 1.38144649e-3f + 8.36878084e-3f;
    p = p * r + 4.16683927e-2f;
    p = p * r + 1.66665196e-1f;
    p = p * r + 4.99999940e-1f;
    p = p * (r * r) + r;
#if defined(__AVX512F__)
    return as_float16(__builtin_ia32_scalefps512_mask(as_float16(p + 1.0f), as_float16(n), as_float16(p), (ushort)0xffff, 4));
#else
    const int16 half_of_n = whole >> 1;  // as two factors, so that results can be infinite or denormal
    return (p + 1.0f) * as_float16((half_of_n + 127) << 23) * as_float16((whole - half_of_n + 127) << 23);
#endif
}

static inline float16 sigmoid_float16(float16 x) {  // exp(x) / (1 + exp(x)) on the left, so that small results keep their precision
    const float16 e = exp_float16(as_float16(as_int16(x) | ~0x7fffffff));
    const float16 r = 1.0f / (1.0f + e);
    return x >= 0.0f ? r : e * r;
}

static inline float16 load_first_shared_float16(const __local float* p, long count, float16 others) {  // touches the first `count` elements only
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
    if (count >= 16) return *(const __local float16_u*)p;
    const int some = count < 0 ? 0 : (int)count;
    const float2 v2 = (float2)(some & 1 ? p[some & -2] : (float)0);
    float4 v4;
    v4.s01 = v4.s23 = v2;
    if (some & 2) v4.s01 = *(const __local float2_u*)(p + (some & -4));
    float8 v8;
    v8.s0123 = v8.s4567 = v4;
    if (some & 4) v8.s0123 = *(const __local float4_u*)(p + (some & -8));
    float16 v16;
    v16.s01234567 = v16.s89abcdef = v8;
    if (some & 8) v16.s01234567 = *(const __local float8_u*)(p + (some & -16));
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

// 3 x 1 x 1 blocks of 1 thread, 3584 bytes of shared memory
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void Y(
    __global const float* restrict X,
    __global const float* restrict W,
    __global const float* restrict bias,
    __global float* restrict Y)
{
    __local float Y_sum_state_shared[512] __attribute__((aligned(64)));
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
            float16 Y_sum_state_0 = (float16)(0.0f);
            float16 Y_sum_state_1 = (float16)(0.0f);
            float16 Y_sum_state_2 = (float16)(0.0f);
            float16 Y_sum_state_3 = (float16)(0.0f);
            for (int k_2 = 0; k_2 < 2; ++k_2) {
                float16 W_register = *(__local const float16*)(W_shared + n_1 * 128 + k_2 * 64);
                Y_sum_state_0 = Y_sum_state_0 + *(X_shared + m_2 * 32 + k_2 * 16) * W_register;
                Y_sum_state_1 = Y_sum_state_1 + *(X_shared + m_2 * 32 + k_2 * 16 + 1) * W_register;
                Y_sum_state_2 = Y_sum_state_2 + *(X_shared + m_2 * 32 + k_2 * 16 + 2) * W_register;
                Y_sum_state_3 = Y_sum_state_3 + *(X_shared + m_2 * 32 + k_2 * 16 + 3) * W_register;
                W_register = *(__local const float16*)(W_shared + n_1 * 128 + k_2 * 64 + 16);
                Y_sum_state_0 = Y_sum_state_0 + *(X_shared + m_2 * 32 + k_2 * 16 + 4) * W_register;
                Y_sum_state_1 = Y_sum_state_1 + *(X_shared + m_2 * 32 + k_2 * 16 + 5) * W_register;
                Y_sum_state_2 = Y_sum_state_2 + *(X_shared + m_2 * 32 + k_2 * 16 + 6) * W_register;
                Y_sum_state_3 = Y_sum_state_3 + *(X_shared + m_2 * 32 + k_2 * 16 + 7) * W_register;
                W_register = *(__local const float16*)(W_shared + n_1 * 128 + k_2 * 64 + 32);
                Y_sum_state_0 = Y_sum_state_0 + *(X_shared + m_2 * 32 + k_2 * 16 + 8) * W_register;
                Y_sum_state_1 = Y_sum_state_1 + *(X_shared + m_2 * 32 + k_2 * 16 + 9) * W_register;
                Y_sum_state_2 = Y_sum_state_2 + *(X_shared + m_2 * 32 + k_2 * 16 + 10) * W_register;
                Y_sum_state_3 = Y_sum_state_3 + *(X_shared + m_2 * 32 + k_2 * 16 + 11) * W_register;
                W_register = *(__local const float16*)(W_shared + n_1 * 128 + k_2 * 64 + 48);
                Y_sum_state_0 = Y_sum_state_0 + *(X_shared + m_2 * 32 + k_2 * 16 + 12) * W_register;
                Y_sum_state_1 = Y_sum_state_1 + *(X_shared + m_2 * 32 + k_2 * 16 + 13) * W_register;
                Y_sum_state_2 = Y_sum_state_2 + *(X_shared + m_2 * 32 + k_2 * 16 + 14) * W_register;
                Y_sum_state_3 = Y_sum_state_3 + *(X_shared + m_2 * 32 + k_2 * 16 + 15) * W_register;
            }
            *(__local float16*)(Y_sum_state_shared + m_2 * 128 + n_1 * 16) = Y_sum_state_0;
            *(__local float16*)(Y_sum_state_shared + m_2 * 128 + n_1 * 16 + 32) = Y_sum_state_1;
            *(__local float16*)(Y_sum_state_shared + m_2 * 128 + n_1 * 16 + 64) = Y_sum_state_2;
            *(__local float16*)(Y_sum_state_shared + m_2 * 128 + n_1 * 16 + 96) = Y_sum_state_3;
        }
    }
    for (int m_5 = 0; m_5 < 11; ++m_5) {
        for (int n_2 = 0; n_2 < 2; ++n_2) {
            if (n_2 * 16 < 4) {
                *(__global float16_u*)(Y + block_x * 209 + m_5 * 19 + n_2 * 16) = (*(__local const float16*)(Y_sum_state_shared + m_5 * 32 + n_2 * 16) + *(__global const float16_u*)(bias + n_2 * 16)) * sigmoid_float16((*(__local const float16*)(Y_sum_state_shared + m_5 * 32 + n_2 * 16) + *(__global const float16_u*)(bias + n_2 * 16)) * ((*(__local const float16*)(Y_sum_state_shared + m_5 * 32 + n_2 * 16) + *(__global const float16_u*)(bias + n_2 * 16)) * (*(__local const float16*)(Y_sum_state_shared + m_5 * 32 + n_2 * 16) + *(__global const float16_u*)(bias + n_2 * 16)) * 0.071354814f + 1.5957692f));
            } else {
                store_first_global_float16(Y + block_x * 209 + m_5 * 19 + n_2 * 16, (load_first_shared_float16(Y_sum_state_shared + m_5 * 32 + n_2 * 16, 19 - n_2 * 16, (float16)(0.0f)) + load_first_global_float16(bias + n_2 * 16, 19 - n_2 * 16, (float16)(0.0f))) * sigmoid_float16((load_first_shared_float16(Y_sum_state_shared + m_5 * 32 + n_2 * 16, 19 - n_2 * 16, (float16)(0.0f)) + load_first_global_float16(bias + n_2 * 16, 19 - n_2 * 16, (float16)(0.0f))) * ((load_first_shared_float16(Y_sum_state_shared + m_5 * 32 + n_2 * 16, 19 - n_2 * 16, (float16)(0.0f)) + load_first_global_float16(bias + n_2 * 16, 19 - n_2 * 16, (float16)(0.0f))) * (load_first_shared_float16(Y_sum_state_shared + m_5 * 32 + n_2 * 16, 19 - n_2 * 16, (float16)(0.0f)) + load_first_global_float16(bias + n_2 * 16, 19 - n_2 * 16, (float16)(0.0f))) * 0.071354814f + 1.5957692f)), 19 - n_2 * 16);
            }
        }
    }
}
