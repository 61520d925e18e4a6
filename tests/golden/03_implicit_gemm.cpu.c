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
#define as_float16(...) __builtin_bit_cast(float16, (__VA_ARGS__))
#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
typedef float float16_u __attribute__((ext_vector_type(16), aligned(4)));

static inline float16 load_first_global_float16(const float* p, long count, float16 others) {  // touches the first `count` elements only
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
    return as_float16(__builtin_ia32_loadups512_mask((const void*)(size_t)p, as_float16(others), (ushort)((1u << (count < 0 ? 0 : count > 16 ? 16 : (int)count)) - 1u)));
#else
    if (count >= 16) return *(const float16_u*)p;
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

static inline void store_first_global_float16(float* p, float16 v, long count) {  // touches the first `count` elements only
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
    __builtin_ia32_storeups512_mask((void*)(size_t)p, as_float16(v), (ushort)((1u << (count < 0 ? 0 : count > 16 ? 16 : (int)count)) - 1u));
    return;
#else
    if (count >= 16) {
        *(float16_u*)p = v;
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

// 4 x 1 x 1 blocks of 1 thread, 640 bytes of shared memory
static inline __attribute__((always_inline)) void Z_block(
    const float* restrict X,
    const float* restrict W,
    float* restrict Z,
    float* restrict W_shared,
    float* restrict X_shared,
    const long* restrict block)
{
    const int block_x = (int)block[0];
    for (int r = 0; r < 3; ++r) {
        for (int s = 0; s < 3; ++s) {
            for (int f = 0; f < 2; ++f) {
                for (int c = 0; c < 4; ++c) {
                    *(float16*)(W_shared + f * 64 + c * 16) = c < 3 ? load_first_global_float16(W + r * 45 + f * 16 + s * 15 + c * 5, 5 - f * 16, (float16)(0.0f)) : (float16)(0.0f);
                }
            }
            for (int npq = 0; npq < 2; ++npq) {
                for (int c_1 = 0; c_1 < 4; ++c_1) {
                    for (int npq_1 = 0; npq_1 < 4; ++npq_1) {
                        *(X_shared + npq * 16 + c_1 * 4 + npq_1) = c_1 < 3 && 1 <= block_x % 2 * 4 + npq * 2 + r && block_x % 2 * 4 + npq * 2 + r < 8 && 1 <= npq_1 * 2 + s && npq_1 * 2 + s < 8 ? *(X + (block_x / 2 * 147 + block_x % 2 * 84 + npq * 42 + r * 21 + npq_1 * 6 + s * 3 + c_1 - 24)) : 0.0f;
                    }
                }
            }
            for (int npq_2 = 0; npq_2 < 2; ++npq_2) {
                float16 Z_state_0 = (float16)(0.0f);
                float16 Z_state_1 = (float16)(0.0f);
                float16 Z_state_2 = (float16)(0.0f);
                float16 Z_state_3 = (float16)(0.0f);
                for (int c_2 = 0; c_2 < 4; ++c_2) {
                    float16 W_register = *(const float16*)(W_shared + c_2 * 16);
                    Z_state_0 = Z_state_0 + *(X_shared + npq_2 * 16 + c_2 * 4) * W_register;
                    Z_state_1 = Z_state_1 + *(X_shared + npq_2 * 16 + c_2 * 4 + 1) * W_register;
                    Z_state_2 = Z_state_2 + *(X_shared + npq_2 * 16 + c_2 * 4 + 2) * W_register;
                    Z_state_3 = Z_state_3 + *(X_shared + npq_2 * 16 + c_2 * 4 + 3) * W_register;
                }
                if (r == 0 && s == 0) {
                    store_first_global_float16(Z + block_x * 40 + npq_2 * 20, Z_state_0, 5);
                    store_first_global_float16(Z + block_x * 40 + npq_2 * 20 + 5, Z_state_1, 5);
                    store_first_global_float16(Z + block_x * 40 + npq_2 * 20 + 10, Z_state_2, 5);
                    store_first_global_float16(Z + block_x * 40 + npq_2 * 20 + 15, Z_state_3, 5);
                } else {
                    store_first_global_float16(Z + block_x * 40 + npq_2 * 20, load_first_global_float16(Z + block_x * 40 + npq_2 * 20, 5, (float16)(0.0f)) + Z_state_0, 5);
                    store_first_global_float16(Z + block_x * 40 + npq_2 * 20 + 5, load_first_global_float16(Z + block_x * 40 + npq_2 * 20 + 5, 5, (float16)(0.0f)) + Z_state_1, 5);
                    store_first_global_float16(Z + block_x * 40 + npq_2 * 20 + 10, load_first_global_float16(Z + block_x * 40 + npq_2 * 20 + 10, 5, (float16)(0.0f)) + Z_state_2, 5);
                    store_first_global_float16(Z + block_x * 40 + npq_2 * 20 + 15, load_first_global_float16(Z + block_x * 40 + npq_2 * 20 + 15, 5, (float16)(0.0f)) + Z_state_3, 5);
                }
            }
        }
    }
}

EXPORT void Z(void* const* arguments, char* scratch, long first, long last)
{
#pragma nounroll
    for (long number = first; number < last; ++number) {
        const long block[3] = {number % 4, number / 4 % 1, number / 4};
        Z_block(arguments[0], arguments[1], arguments[2], (void*)(scratch + 0), (void*)(scratch + 512), block);
    }
}
