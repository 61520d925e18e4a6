// clang: -fno-slp-vectorize
#if defined(__CHAR_UNSIGNED__)
#error "compile with -fsigned-char"
#endif
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long long ulong;
typedef __SIZE_TYPE__ size_t;
#define char signed char
#define long long long
typedef float float16 __attribute__((ext_vector_type(16)));
typedef float float2 __attribute__((ext_vector_type(2)));
typedef float float4 __attribute__((ext_vector_type(4)));
typedef float float8 __attribute__((ext_vector_type(8)));
typedef int int16 __attribute__((ext_vector_type(16)));
#define as_float16(...) __builtin_bit_cast(float16, (__VA_ARGS__))
#define as_int16(...) __builtin_bit_cast(int16, (__VA_ARGS__))
#define max(...) __builtin_elementwise_max(__VA_ARGS__)
#define min(...) __builtin_elementwise_min(__VA_ARGS__)
#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
typedef float float16_u __attribute__((ext_vector_type(16), aligned(4)));
typedef float float2_u __attribute__((ext_vector_type(2), aligned(4)));
typedef float float4_u __attribute__((ext_vector_type(4), aligned(4)));
typedef float float8_u __attribute__((ext_vector_type(8), aligned(4)));

static inline float16 load_first_global_float16(const float* p, long count, float16 others) {  // touches the first `count` elements only
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
    if (count >= 16) return *(const float16_u*)p;
    const int some = count < 0 ? 0 : (int)count;
    const float2 v2 = (float2)(some & 1 ? p[some & -2] : (float)0);
    float4 v4;
    v4.s01 = v4.s23 = v2;
    if (some & 2) v4.s01 = *(const float2_u*)(p + (some & -4));
    float8 v8;
    v8.s0123 = v8.s4567 = v4;
    if (some & 4) v8.s0123 = *(const float4_u*)(p + (some & -8));
    float16 v16;
    v16.s01234567 = v16.s89abcdef = v8;
    if (some & 8) v16.s01234567 = *(const float8_u*)(p + (some & -16));
    return (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(some) ? v16 : others;
#endif
}

static inline float16 load_first_shared_float16(const float* p, long count, float16 others) {  // touches the first `count` elements only
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
    if (count >= 16) return *(const float16_u*)p;
    const int some = count < 0 ? 0 : (int)count;
    const float2 v2 = (float2)(some & 1 ? p[some & -2] : (float)0);
    float4 v4;
    v4.s01 = v4.s23 = v2;
    if (some & 2) v4.s01 = *(const float2_u*)(p + (some & -4));
    float8 v8;
    v8.s0123 = v8.s4567 = v4;
    if (some & 4) v8.s0123 = *(const float4_u*)(p + (some & -8));
    float16 v16;
    v16.s01234567 = v16.s89abcdef = v8;
    if (some & 8) v16.s01234567 = *(const float8_u*)(p + (some & -16));
    return (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(some) ? v16 : others;
#endif
}

static inline void store_first_global_float16(float* p, float16 v, long count) {  // touches the first `count` elements only
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
    __builtin_ia32_storeups512_mask((void*)(size_t)p, as_float16(v), (ushort)((1u << (count < 0 ? 0 : count > 16 ? 16 : (int)count)) - 1u));
    return;
#else
    if (count >= 16) {
        *(float16_u*)p = v;
        return;
    }
    const int some = count < 0 ? 0 : (int)count;
    if (some & 8) *(float8_u*)(p + (some & -16)) = v.s01234567;
    const float8 v8 = some & 8 ? v.s89abcdef : v.s01234567;
    if (some & 4) *(float4_u*)(p + (some & -8)) = v8.s0123;
    const float4 v4 = some & 4 ? v8.s4567 : v8.s0123;
    if (some & 2) *(float2_u*)(p + (some & -4)) = v4.s01;
    const float2 v2 = some & 2 ? v4.s23 : v4.s01;
    if (some & 1) p[some & -2] = v2.s0;
#endif
}

// 3 x 1 x 1 blocks of 1 thread, 3584 bytes of shared memory
static inline __attribute__((always_inline)) void C_block(
    const float* restrict X,
    const float* restrict W,
    float* restrict C,
    float* restrict C_state_shared,
    float* restrict W_shared,
    float* restrict X_shared,
    const long* restrict block)
{
    const int block_x = (int)block[0];
    for (int n = 0; n < 2; ++n) {
        for (int k = 0; k < 8; ++k) {
            *(float16*)(W_shared + n * 128 + k * 16) = k < 7 ? load_first_global_float16(W + block_x * 133 + k * 19 + n * 16, 19 - n * 16, (float16)(0.0f)) : (float16)(0.0f);
        }
    }
    #pragma nounroll
    for (int m = 0; m < 4; ++m) {
        const int m_end_1 = max(min(4, 11 - m * 4), 0);
        for (int k_4 = 0; k_4 < 2; ++k_4) {
            if (3 < m_end_1) {
                float4 X_rows_0 = *(const float4_u*)(X + block_x * 77 + m * 28 + min(k_4 * 4, 3));
                float4 X_rows_1 = *(const float4_u*)(X + block_x * 77 + m * 28 + min(k_4 * 4, 3) + 7);
                float4 X_rows_2 = *(const float4_u*)(X + block_x * 77 + m * 28 + min(k_4 * 4, 3) + 14);
                float4 X_rows_3 = *(const float4_u*)(X + block_x * 77 + m * 28 + min(k_4 * 4, 3) + 21);
                float4 X_step_0 = __builtin_shufflevector(X_rows_0, X_rows_1, 0, 4, 2, 6);
                float4 X_step_1 = __builtin_shufflevector(X_rows_0, X_rows_1, 1, 5, 3, 7);
                float4 X_step_2 = __builtin_shufflevector(X_rows_2, X_rows_3, 0, 4, 2, 6);
                float4 X_step_3 = __builtin_shufflevector(X_rows_2, X_rows_3, 1, 5, 3, 7);
                float4 X_turned_0 = __builtin_shufflevector(X_step_0, X_step_2, 0, 1, 4, 5);
                float4 X_turned_1 = __builtin_shufflevector(X_step_1, X_step_3, 0, 1, 4, 5);
                float4 X_turned_2 = __builtin_shufflevector(X_step_0, X_step_2, 2, 3, 6, 7);
                float4 X_turned_3 = __builtin_shufflevector(X_step_1, X_step_3, 2, 3, 6, 7);
                *(float4*)(X_shared + m * 32 + min(k_4 * 4, 3) * 4) = X_turned_0;
                *(float4*)(X_shared + m * 32 + min(k_4 * 4, 3) * 4 + 4) = X_turned_1;
                *(float4*)(X_shared + m * 32 + min(k_4 * 4, 3) * 4 + 8) = X_turned_2;
                *(float4*)(X_shared + m * 32 + min(k_4 * 4, 3) * 4 + 12) = X_turned_3;
            } else {
                float4 X_rows_1_1_0 = 0 < m_end_1 ? *(const float4_u*)(X + block_x * 77 + m * 28 + min(k_4 * 4, 3)) : (float4)(0.0f);
                float4 X_rows_1_1_1 = 1 < m_end_1 ? *(const float4_u*)(X + block_x * 77 + m * 28 + min(k_4 * 4, 3) + 7) : (float4)(0.0f);
                float4 X_rows_1_1_2 = 2 < m_end_1 ? *(const float4_u*)(X + block_x * 77 + m * 28 + min(k_4 * 4, 3) + 14) : (float4)(0.0f);
                float4 X_rows_1_1_3 = 3 < m_end_1 ? *(const float4_u*)(X + block_x * 77 + m * 28 + min(k_4 * 4, 3) + 21) : (float4)(0.0f);
                float4 X_rows_1_step_0 = __builtin_shufflevector(X_rows_1_1_0, X_rows_1_1_1, 0, 4, 2, 6);
                float4 X_rows_1_step_1 = __builtin_shufflevector(X_rows_1_1_0, X_rows_1_1_1, 1, 5, 3, 7);
                float4 X_rows_1_step_2 = __builtin_shufflevector(X_rows_1_1_2, X_rows_1_1_3, 0, 4, 2, 6);
                float4 X_rows_1_step_3 = __builtin_shufflevector(X_rows_1_1_2, X_rows_1_1_3, 1, 5, 3, 7);
                float4 X_rows_1_turned_0 = __builtin_shufflevector(X_rows_1_step_0, X_rows_1_step_2, 0, 1, 4, 5);
                float4 X_rows_1_turned_1 = __builtin_shufflevector(X_rows_1_step_1, X_rows_1_step_3, 0, 1, 4, 5);
                float4 X_rows_1_turned_2 = __builtin_shufflevector(X_rows_1_step_0, X_rows_1_step_2, 2, 3, 6, 7);
                float4 X_rows_1_turned_3 = __builtin_shufflevector(X_rows_1_step_1, X_rows_1_step_3, 2, 3, 6, 7);
                *(float4*)(X_shared + m * 32 + min(k_4 * 4, 3) * 4) = X_rows_1_turned_0;
                *(float4*)(X_shared + m * 32 + min(k_4 * 4, 3) * 4 + 4) = X_rows_1_turned_1;
                *(float4*)(X_shared + m * 32 + min(k_4 * 4, 3) * 4 + 8) = X_rows_1_turned_2;
                *(float4*)(X_shared + m * 32 + min(k_4 * 4, 3) * 4 + 12) = X_rows_1_turned_3;
            }
        }
        *(float4*)(X_shared + m * 32 + 28) = (float4)(0.0f);
    }
    #pragma nounroll
    for (int n_1 = 0; n_1 < 2; ++n_1) {
        #pragma nounroll
        for (int m_2 = 0; m_2 < 3; ++m_2) {
            float16 C_state_0 = (float16)(0.0f);
            float16 C_state_1 = (float16)(0.0f);
            float16 C_state_2 = (float16)(0.0f);
            float16 C_state_3 = (float16)(0.0f);
            for (int k_2 = 0; k_2 < 2; ++k_2) {
                float16 W_register = *(const float16*)(W_shared + n_1 * 128 + k_2 * 64);
                C_state_0 = C_state_0 + *(X_shared + m_2 * 32 + k_2 * 16) * W_register;
                C_state_1 = C_state_1 + *(X_shared + m_2 * 32 + k_2 * 16 + 1) * W_register;
                C_state_2 = C_state_2 + *(X_shared + m_2 * 32 + k_2 * 16 + 2) * W_register;
                C_state_3 = C_state_3 + *(X_shared + m_2 * 32 + k_2 * 16 + 3) * W_register;
                W_register = *(const float16*)(W_shared + n_1 * 128 + k_2 * 64 + 16);
                C_state_0 = C_state_0 + *(X_shared + m_2 * 32 + k_2 * 16 + 4) * W_register;
                C_state_1 = C_state_1 + *(X_shared + m_2 * 32 + k_2 * 16 + 5) * W_register;
                C_state_2 = C_state_2 + *(X_shared + m_2 * 32 + k_2 * 16 + 6) * W_register;
                C_state_3 = C_state_3 + *(X_shared + m_2 * 32 + k_2 * 16 + 7) * W_register;
                W_register = *(const float16*)(W_shared + n_1 * 128 + k_2 * 64 + 32);
                C_state_0 = C_state_0 + *(X_shared + m_2 * 32 + k_2 * 16 + 8) * W_register;
                C_state_1 = C_state_1 + *(X_shared + m_2 * 32 + k_2 * 16 + 9) * W_register;
                C_state_2 = C_state_2 + *(X_shared + m_2 * 32 + k_2 * 16 + 10) * W_register;
                C_state_3 = C_state_3 + *(X_shared + m_2 * 32 + k_2 * 16 + 11) * W_register;
                W_register = *(const float16*)(W_shared + n_1 * 128 + k_2 * 64 + 48);
                C_state_0 = C_state_0 + *(X_shared + m_2 * 32 + k_2 * 16 + 12) * W_register;
                C_state_1 = C_state_1 + *(X_shared + m_2 * 32 + k_2 * 16 + 13) * W_register;
                C_state_2 = C_state_2 + *(X_shared + m_2 * 32 + k_2 * 16 + 14) * W_register;
                C_state_3 = C_state_3 + *(X_shared + m_2 * 32 + k_2 * 16 + 15) * W_register;
            }
            *(float16*)(C_state_shared + m_2 * 128 + n_1 * 16) = C_state_0;
            *(float16*)(C_state_shared + m_2 * 128 + n_1 * 16 + 32) = C_state_1;
            *(float16*)(C_state_shared + m_2 * 128 + n_1 * 16 + 64) = C_state_2;
            *(float16*)(C_state_shared + m_2 * 128 + n_1 * 16 + 96) = C_state_3;
        }
    }
    for (int m_5 = 0; m_5 < 11; ++m_5) {
        for (int n_2 = 0; n_2 < 2; ++n_2) {
            if (n_2 * 16 < 4) {
                *(float16_u*)(C + block_x * 209 + m_5 * 19 + n_2 * 16) = *(const float16*)(C_state_shared + m_5 * 32 + n_2 * 16);
            } else {
                store_first_global_float16(C + block_x * 209 + m_5 * 19 + n_2 * 16, load_first_shared_float16(C_state_shared + m_5 * 32 + n_2 * 16, 19 - n_2 * 16, (float16)(0.0f)), 19 - n_2 * 16);
            }
        }
    }
}

EXPORT void C(void* const* arguments, char* scratch, long first, long last)
{
#pragma nounroll
    for (long number = first; number < last; ++number) {
        const long block[3] = {number % 3, number / 3 % 1, number / 3};
        C_block(arguments[0], arguments[1], arguments[2], (void*)(scratch + 0), (void*)(scratch + 2048), (void*)(scratch + 3072), block);
    }
}
