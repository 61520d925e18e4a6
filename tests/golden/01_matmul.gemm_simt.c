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
typedef float float2 __attribute__((ext_vector_type(2)));
typedef float float4 __attribute__((ext_vector_type(4)));
typedef int int4 __attribute__((ext_vector_type(4)));
#define as_float4(...) __builtin_bit_cast(float4, (__VA_ARGS__))
#define as_int4(...) __builtin_bit_cast(int4, (__VA_ARGS__))
#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
typedef float float4_u __attribute__((ext_vector_type(4), aligned(4)));
typedef float float2_u __attribute__((ext_vector_type(2), aligned(4)));

static inline float4 load_first_global_float4(const float* p, long count, float4 others) {  // touches the first `count` elements only
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
    if (count >= 4) return *(const float4_u*)p;
    const int some = count < 0 ? 0 : (int)count;
    const float2 v2 = (float2)(some & 1 ? p[some & -2] : (float)0);
    float4 v4;
    v4.s01 = v4.s23 = v2;
    if (some & 2) v4.s01 = *(const float2_u*)(p + (some & -4));
    return (int4){0, 1, 2, 3} < (int4)(some) ? v4 : others;
#endif
}

static inline float4 load_first_shared_float4(const float* p, long count, float4 others) {  // touches the first `count` elements only
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
    if (count >= 4) return *(const float4_u*)p;
    const int some = count < 0 ? 0 : (int)count;
    const float2 v2 = (float2)(some & 1 ? p[some & -2] : (float)0);
    float4 v4;
    v4.s01 = v4.s23 = v2;
    if (some & 2) v4.s01 = *(const float2_u*)(p + (some & -4));
    return (int4){0, 1, 2, 3} < (int4)(some) ? v4 : others;
#endif
}

static inline void store_first_global_float4(float* p, float4 v, long count) {  // touches the first `count` elements only
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
    __builtin_ia32_storeups128_mask((void*)(size_t)p, as_float4(v), (uchar)((1u << (count < 0 ? 0 : count > 4 ? 4 : (int)count)) - 1u));
    return;
#else
    if (count >= 4) {
        *(float4_u*)p = v;
        return;
    }
    const int some = count < 0 ? 0 : (int)count;
    if (some & 2) *(float2_u*)(p + (some & -4)) = v.s01;
    const float2 v2 = some & 2 ? v.s23 : v.s01;
    if (some & 1) p[some & -2] = v2.s0;
#endif
}

// 2 x 1 x 1 blocks of 1 thread, 17664 bytes of shared memory
static inline __attribute__((always_inline)) void C_block(
    const float* restrict A,
    const float* restrict B,
    float* restrict C,
    float* restrict A_shared,
    float* restrict B_shared,
    float* restrict C_state_by_thread,
    float* restrict A_staged_by_thread,
    float* restrict B_staged_by_thread,
    const long* restrict block)
{
    const int block_x = (int)block[0];
    #pragma nounroll
    for (int tid = 0; tid < 32; ++tid) {
        C_state_by_thread[tid * 64] = 0.0f;
        C_state_by_thread[tid * 64 + 1] = 0.0f;
        C_state_by_thread[tid * 64 + 2] = 0.0f;
        C_state_by_thread[tid * 64 + 3] = 0.0f;
        C_state_by_thread[tid * 64 + 4] = 0.0f;
        C_state_by_thread[tid * 64 + 5] = 0.0f;
        C_state_by_thread[tid * 64 + 6] = 0.0f;
        C_state_by_thread[tid * 64 + 7] = 0.0f;
        C_state_by_thread[tid * 64 + 8] = 0.0f;
        C_state_by_thread[tid * 64 + 9] = 0.0f;
        C_state_by_thread[tid * 64 + 10] = 0.0f;
        C_state_by_thread[tid * 64 + 11] = 0.0f;
        C_state_by_thread[tid * 64 + 12] = 0.0f;
        C_state_by_thread[tid * 64 + 13] = 0.0f;
        C_state_by_thread[tid * 64 + 14] = 0.0f;
        C_state_by_thread[tid * 64 + 15] = 0.0f;
        C_state_by_thread[tid * 64 + 16] = 0.0f;
        C_state_by_thread[tid * 64 + 17] = 0.0f;
        C_state_by_thread[tid * 64 + 18] = 0.0f;
        C_state_by_thread[tid * 64 + 19] = 0.0f;
        C_state_by_thread[tid * 64 + 20] = 0.0f;
        C_state_by_thread[tid * 64 + 21] = 0.0f;
        C_state_by_thread[tid * 64 + 22] = 0.0f;
        C_state_by_thread[tid * 64 + 23] = 0.0f;
        C_state_by_thread[tid * 64 + 24] = 0.0f;
        C_state_by_thread[tid * 64 + 25] = 0.0f;
        C_state_by_thread[tid * 64 + 26] = 0.0f;
        C_state_by_thread[tid * 64 + 27] = 0.0f;
        C_state_by_thread[tid * 64 + 28] = 0.0f;
        C_state_by_thread[tid * 64 + 29] = 0.0f;
        C_state_by_thread[tid * 64 + 30] = 0.0f;
        C_state_by_thread[tid * 64 + 31] = 0.0f;
        C_state_by_thread[tid * 64 + 32] = 0.0f;
        C_state_by_thread[tid * 64 + 33] = 0.0f;
        C_state_by_thread[tid * 64 + 34] = 0.0f;
        C_state_by_thread[tid * 64 + 35] = 0.0f;
        C_state_by_thread[tid * 64 + 36] = 0.0f;
        C_state_by_thread[tid * 64 + 37] = 0.0f;
        C_state_by_thread[tid * 64 + 38] = 0.0f;
        C_state_by_thread[tid * 64 + 39] = 0.0f;
        C_state_by_thread[tid * 64 + 40] = 0.0f;
        C_state_by_thread[tid * 64 + 41] = 0.0f;
        C_state_by_thread[tid * 64 + 42] = 0.0f;
        C_state_by_thread[tid * 64 + 43] = 0.0f;
        C_state_by_thread[tid * 64 + 44] = 0.0f;
        C_state_by_thread[tid * 64 + 45] = 0.0f;
        C_state_by_thread[tid * 64 + 46] = 0.0f;
        C_state_by_thread[tid * 64 + 47] = 0.0f;
        C_state_by_thread[tid * 64 + 48] = 0.0f;
        C_state_by_thread[tid * 64 + 49] = 0.0f;
        C_state_by_thread[tid * 64 + 50] = 0.0f;
        C_state_by_thread[tid * 64 + 51] = 0.0f;
        C_state_by_thread[tid * 64 + 52] = 0.0f;
        C_state_by_thread[tid * 64 + 53] = 0.0f;
        C_state_by_thread[tid * 64 + 54] = 0.0f;
        C_state_by_thread[tid * 64 + 55] = 0.0f;
        C_state_by_thread[tid * 64 + 56] = 0.0f;
        C_state_by_thread[tid * 64 + 57] = 0.0f;
        C_state_by_thread[tid * 64 + 58] = 0.0f;
        C_state_by_thread[tid * 64 + 59] = 0.0f;
        C_state_by_thread[tid * 64 + 60] = 0.0f;
        C_state_by_thread[tid * 64 + 61] = 0.0f;
        C_state_by_thread[tid * 64 + 62] = 0.0f;
        C_state_by_thread[tid * 64 + 63] = 0.0f;
        for (int m_round = 0; m_round < 4; ++m_round) {
            float4 A_shared_lanes = m_round * 16 + tid / 2 < 17 ? *(const float4_u*)(A + m_round * 176 + tid / 2 * 11 + tid % 2 * 4) : (float4)(0.0f);
            *(A_shared + tid % 2 * 272 + m_round * 16 + tid / 2) = A_shared_lanes.s0;
            *(A_shared + tid % 2 * 272 + m_round * 16 + tid / 2 + 68) = A_shared_lanes.s1;
            *(A_shared + tid % 2 * 272 + m_round * 16 + tid / 2 + 136) = A_shared_lanes.s2;
            *(A_shared + tid % 2 * 272 + m_round * 16 + tid / 2 + 204) = A_shared_lanes.s3;
        }
        for (int k_round = 0; k_round < 2; ++k_round) {
            *(float4*)(B_shared + k_round * 128 + tid * 4) = load_first_global_float4(B + k_round * 148 + tid / 8 * 37 + block_x * 32 + tid % 8 * 4, 37 - block_x * 32 - tid % 8 * 4, (float4)(0.0f));
        }
    }
    #pragma nounroll
    for (int k = 0; k < 2; ++k) {
        for (int tid = 0; tid < 32; ++tid) {
            if (k < 1) {
                const int k_next = k + 1;
                for (int m_round_1 = 0; m_round_1 < 4; ++m_round_1) {
                    *(float4*)(A_staged_by_thread + tid * 16 + m_round_1 * 4) = m_round_1 * 16 + tid / 2 < 17 ? load_first_global_float4(A + m_round_1 * 176 + tid / 2 * 11 + k_next * 8 + tid % 2 * 4, 11 - k_next * 8 - tid % 2 * 4, (float4)(0.0f)) : (float4)(0.0f);
                }
                const int k_next_1 = k + 1;
                for (int k_round_1 = 0; k_round_1 < 2; ++k_round_1) {
                    *(float4*)(B_staged_by_thread + tid * 8 + k_round_1 * 4) = k_next_1 * 8 + k_round_1 * 4 + tid / 8 < 11 ? load_first_global_float4(B + k_next_1 * 296 + k_round_1 * 148 + tid / 8 * 37 + block_x * 32 + tid % 8 * 4, 37 - block_x * 32 - tid % 8 * 4, (float4)(0.0f)) : (float4)(0.0f);
                }
            }
        }
        #pragma nounroll
        for (int tid = 0; tid < 32; ++tid) {
            float4 C_state_0_0_0 = *(const float4*)(C_state_by_thread + tid * 64);
            float4 C_state_0_0_1 = *(const float4*)(C_state_by_thread + tid * 64 + 4);
            float4 C_state_0_0_2 = *(const float4*)(C_state_by_thread + tid * 64 + 8);
            float4 C_state_0_0_3 = *(const float4*)(C_state_by_thread + tid * 64 + 12);
            float4 C_state_0_1_0 = *(const float4*)(C_state_by_thread + tid * 64 + 16);
            float4 C_state_0_1_1 = *(const float4*)(C_state_by_thread + tid * 64 + 20);
            float4 C_state_0_1_2 = *(const float4*)(C_state_by_thread + tid * 64 + 24);
            float4 C_state_0_1_3 = *(const float4*)(C_state_by_thread + tid * 64 + 28);
            float4 C_state_1_0_0 = *(const float4*)(C_state_by_thread + tid * 64 + 32);
            float4 C_state_1_0_1 = *(const float4*)(C_state_by_thread + tid * 64 + 36);
            float4 C_state_1_0_2 = *(const float4*)(C_state_by_thread + tid * 64 + 40);
            float4 C_state_1_0_3 = *(const float4*)(C_state_by_thread + tid * 64 + 44);
            float4 C_state_1_1_0 = *(const float4*)(C_state_by_thread + tid * 64 + 48);
            float4 C_state_1_1_1 = *(const float4*)(C_state_by_thread + tid * 64 + 52);
            float4 C_state_1_1_2 = *(const float4*)(C_state_by_thread + tid * 64 + 56);
            float4 C_state_1_1_3 = *(const float4*)(C_state_by_thread + tid * 64 + 60);
            #pragma nounroll
            for (int k_1 = 0; k_1 < 8; ++k_1) {
                float4 A_register_0 = *(const float4*)(A_shared + k * 544 + k_1 * 68 + tid / 4 * 4);
                float4 A_register_1 = *(const float4*)(A_shared + k * 544 + k_1 * 68 + tid / 4 * 4 + 32);
                float4 B_register_0 = *(const float4*)(B_shared + k * 256 + k_1 * 32 + tid % 4 * 4);
                float4 B_register_1 = *(const float4*)(B_shared + k * 256 + k_1 * 32 + tid % 4 * 4 + 16);
                C_state_0_0_0.s0 = C_state_0_0_0.s0 + A_register_0.s0 * B_register_0.s0;
                C_state_0_0_0.s1 = C_state_0_0_0.s1 + A_register_0.s0 * B_register_0.s1;
                C_state_0_0_0.s2 = C_state_0_0_0.s2 + A_register_0.s0 * B_register_0.s2;
                C_state_0_0_0.s3 = C_state_0_0_0.s3 + A_register_0.s0 * B_register_0.s3;
                C_state_0_0_1.s0 = C_state_0_0_1.s0 + A_register_0.s1 * B_register_0.s0;
                C_state_0_0_1.s1 = C_state_0_0_1.s1 + A_register_0.s1 * B_register_0.s1;
                C_state_0_0_1.s2 = C_state_0_0_1.s2 + A_register_0.s1 * B_register_0.s2;
                C_state_0_0_1.s3 = C_state_0_0_1.s3 + A_register_0.s1 * B_register_0.s3;
                C_state_0_0_2.s0 = C_state_0_0_2.s0 + A_register_0.s2 * B_register_0.s0;
                C_state_0_0_2.s1 = C_state_0_0_2.s1 + A_register_0.s2 * B_register_0.s1;
                C_state_0_0_2.s2 = C_state_0_0_2.s2 + A_register_0.s2 * B_register_0.s2;
                C_state_0_0_2.s3 = C_state_0_0_2.s3 + A_register_0.s2 * B_register_0.s3;
                C_state_0_0_3.s0 = C_state_0_0_3.s0 + A_register_0.s3 * B_register_0.s0;
                C_state_0_0_3.s1 = C_state_0_0_3.s1 + A_register_0.s3 * B_register_0.s1;
                C_state_0_0_3.s2 = C_state_0_0_3.s2 + A_register_0.s3 * B_register_0.s2;
                C_state_0_0_3.s3 = C_state_0_0_3.s3 + A_register_0.s3 * B_register_0.s3;
                C_state_0_1_0.s0 = C_state_0_1_0.s0 + A_register_0.s0 * B_register_1.s0;
                C_state_0_1_0.s1 = C_state_0_1_0.s1 + A_register_0.s0 * B_register_1.s1;
                C_state_0_1_0.s2 = C_state_0_1_0.s2 + A_register_0.s0 * B_register_1.s2;
                C_state_0_1_0.s3 = C_state_0_1_0.s3 + A_register_0.s0 * B_register_1.s3;
                C_state_0_1_1.s0 = C_state_0_1_1.s0 + A_register_0.s1 * B_register_1.s0;
                C_state_0_1_1.s1 = C_state_0_1_1.s1 + A_register_0.s1 * B_register_1.s1;
                C_state_0_1_1.s2 = C_state_0_1_1.s2 + A_register_0.s1 * B_register_1.s2;
                C_state_0_1_1.s3 = C_state_0_1_1.s3 + A_register_0.s1 * B_register_1.s3;
                C_state_0_1_2.s0 = C_state_0_1_2.s0 + A_register_0.s2 * B_register_1.s0;
                C_state_0_1_2.s1 = C_state_0_1_2.s1 + A_register_0.s2 * B_register_1.s1;
                C_state_0_1_2.s2 = C_state_0_1_2.s2 + A_register_0.s2 * B_register_1.s2;
                C_state_0_1_2.s3 = C_state_0_1_2.s3 + A_register_0.s2 * B_register_1.s3;
                C_state_0_1_3.s0 = C_state_0_1_3.s0 + A_register_0.s3 * B_register_1.s0;
                C_state_0_1_3.s1 = C_state_0_1_3.s1 + A_register_0.s3 * B_register_1.s1;
                C_state_0_1_3.s2 = C_state_0_1_3.s2 + A_register_0.s3 * B_register_1.s2;
                C_state_0_1_3.s3 = C_state_0_1_3.s3 + A_register_0.s3 * B_register_1.s3;
                C_state_1_0_0.s0 = C_state_1_0_0.s0 + A_register_1.s0 * B_register_0.s0;
                C_state_1_0_0.s1 = C_state_1_0_0.s1 + A_register_1.s0 * B_register_0.s1;
                C_state_1_0_0.s2 = C_state_1_0_0.s2 + A_register_1.s0 * B_register_0.s2;
                C_state_1_0_0.s3 = C_state_1_0_0.s3 + A_register_1.s0 * B_register_0.s3;
                C_state_1_0_1.s0 = C_state_1_0_1.s0 + A_register_1.s1 * B_register_0.s0;
                C_state_1_0_1.s1 = C_state_1_0_1.s1 + A_register_1.s1 * B_register_0.s1;
                C_state_1_0_1.s2 = C_state_1_0_1.s2 + A_register_1.s1 * B_register_0.s2;
                C_state_1_0_1.s3 = C_state_1_0_1.s3 + A_register_1.s1 * B_register_0.s3;
                C_state_1_0_2.s0 = C_state_1_0_2.s0 + A_register_1.s2 * B_register_0.s0;
                C_state_1_0_2.s1 = C_state_1_0_2.s1 + A_register_1.s2 * B_register_0.s1;
                C_state_1_0_2.s2 = C_state_1_0_2.s2 + A_register_1.s2 * B_register_0.s2;
                C_state_1_0_2.s3 = C_state_1_0_2.s3 + A_register_1.s2 * B_register_0.s3;
                C_state_1_0_3.s0 = C_state_1_0_3.s0 + A_register_1.s3 * B_register_0.s0;
                C_state_1_0_3.s1 = C_state_1_0_3.s1 + A_register_1.s3 * B_register_0.s1;
                C_state_1_0_3.s2 = C_state_1_0_3.s2 + A_register_1.s3 * B_register_0.s2;
                C_state_1_0_3.s3 = C_state_1_0_3.s3 + A_register_1.s3 * B_register_0.s3;
                C_state_1_1_0.s0 = C_state_1_1_0.s0 + A_register_1.s0 * B_register_1.s0;
                C_state_1_1_0.s1 = C_state_1_1_0.s1 + A_register_1.s0 * B_register_1.s1;
                C_state_1_1_0.s2 = C_state_1_1_0.s2 + A_register_1.s0 * B_register_1.s2;
                C_state_1_1_0.s3 = C_state_1_1_0.s3 + A_register_1.s0 * B_register_1.s3;
                C_state_1_1_1.s0 = C_state_1_1_1.s0 + A_register_1.s1 * B_register_1.s0;
                C_state_1_1_1.s1 = C_state_1_1_1.s1 + A_register_1.s1 * B_register_1.s1;
                C_state_1_1_1.s2 = C_state_1_1_1.s2 + A_register_1.s1 * B_register_1.s2;
                C_state_1_1_1.s3 = C_state_1_1_1.s3 + A_register_1.s1 * B_register_1.s3;
                C_state_1_1_2.s0 = C_state_1_1_2.s0 + A_register_1.s2 * B_register_1.s0;
                C_state_1_1_2.s1 = C_state_1_1_2.s1 + A_register_1.s2 * B_register_1.s1;
                C_state_1_1_2.s2 = C_state_1_1_2.s2 + A_register_1.s2 * B_register_1.s2;
                C_state_1_1_2.s3 = C_state_1_1_2.s3 + A_register_1.s2 * B_register_1.s3;
                C_state_1_1_3.s0 = C_state_1_1_3.s0 + A_register_1.s3 * B_register_1.s0;
                C_state_1_1_3.s1 = C_state_1_1_3.s1 + A_register_1.s3 * B_register_1.s1;
                C_state_1_1_3.s2 = C_state_1_1_3.s2 + A_register_1.s3 * B_register_1.s2;
                C_state_1_1_3.s3 = C_state_1_1_3.s3 + A_register_1.s3 * B_register_1.s3;
            }
            if (k < 1) {
                const int k_next = k + 1;
                for (int m_round_2 = 0; m_round_2 < 4; ++m_round_2) {
                    float4 A_shared_lanes_1 = *(const float4*)(A_staged_by_thread + tid * 16 + m_round_2 * 4);
                    *(A_shared + (k + 1) % 2 * 544 + tid % 2 * 272 + m_round_2 * 16 + tid / 2) = A_shared_lanes_1.s0;
                    *(A_shared + (k + 1) % 2 * 544 + tid % 2 * 272 + m_round_2 * 16 + tid / 2 + 68) = A_shared_lanes_1.s1;
                    *(A_shared + (k + 1) % 2 * 544 + tid % 2 * 272 + m_round_2 * 16 + tid / 2 + 136) = A_shared_lanes_1.s2;
                    *(A_shared + (k + 1) % 2 * 544 + tid % 2 * 272 + m_round_2 * 16 + tid / 2 + 204) = A_shared_lanes_1.s3;
                }
                const int k_next_1 = k + 1;
                for (int k_round_2 = 0; k_round_2 < 2; ++k_round_2) {
                    *(float4*)(B_shared + (k + 1) % 2 * 256 + k_round_2 * 128 + tid * 4) = *(const float4*)(B_staged_by_thread + tid * 8 + k_round_2 * 4);
                }
            }
            *(float4*)(C_state_by_thread + tid * 64) = C_state_0_0_0;
            *(float4*)(C_state_by_thread + tid * 64 + 4) = C_state_0_0_1;
            *(float4*)(C_state_by_thread + tid * 64 + 8) = C_state_0_0_2;
            *(float4*)(C_state_by_thread + tid * 64 + 12) = C_state_0_0_3;
            *(float4*)(C_state_by_thread + tid * 64 + 16) = C_state_0_1_0;
            *(float4*)(C_state_by_thread + tid * 64 + 20) = C_state_0_1_1;
            *(float4*)(C_state_by_thread + tid * 64 + 24) = C_state_0_1_2;
            *(float4*)(C_state_by_thread + tid * 64 + 28) = C_state_0_1_3;
            *(float4*)(C_state_by_thread + tid * 64 + 32) = C_state_1_0_0;
            *(float4*)(C_state_by_thread + tid * 64 + 36) = C_state_1_0_1;
            *(float4*)(C_state_by_thread + tid * 64 + 40) = C_state_1_0_2;
            *(float4*)(C_state_by_thread + tid * 64 + 44) = C_state_1_0_3;
            *(float4*)(C_state_by_thread + tid * 64 + 48) = C_state_1_1_0;
            *(float4*)(C_state_by_thread + tid * 64 + 52) = C_state_1_1_1;
            *(float4*)(C_state_by_thread + tid * 64 + 56) = C_state_1_1_2;
            *(float4*)(C_state_by_thread + tid * 64 + 60) = C_state_1_1_3;
        }
    }
    for (int tid = 0; tid < 32; ++tid) {
        for (int m_2 = 0; m_2 < 2; ++m_2) {
            for (int n_2 = 0; n_2 < 2; ++n_2) {
                for (int m_3 = 0; m_3 < 4; ++m_3) {
                    if (m_2 * 32 + tid / 4 * 4 + m_3 < 17) {
                        if (block_x * 32 + n_2 * 16 + tid % 4 * 4 < 34) {
                            *(float4_u*)(C + m_2 * 1184 + tid / 4 * 148 + m_3 * 37 + block_x * 32 + n_2 * 16 + tid % 4 * 4) = *(const float4*)(C_state_by_thread + tid * 64 + m_2 * 32 + n_2 * 16 + m_3 * 4);
                        } else {
                            if (block_x * 32 + n_2 * 16 + tid % 4 * 4 < 37) {
                                store_first_global_float4(C + m_2 * 1184 + tid / 4 * 148 + m_3 * 37 + block_x * 32 + n_2 * 16 + tid % 4 * 4, load_first_shared_float4(C_state_by_thread + tid * 64 + m_2 * 32 + n_2 * 16 + m_3 * 4, 37 - block_x * 32 - n_2 * 16 - tid % 4 * 4, (float4)(0.0f)), 37 - block_x * 32 - n_2 * 16 - tid % 4 * 4);
                            }
                        }
                    }
                }
            }
        }
    }
}

EXPORT void C(void* const* arguments, char* scratch, long first, long last)
{
#pragma nounroll
    for (long number = first; number < last; ++number) {
        const long block[3] = {number % 2, number / 2 % 1, number / 2};
        C_block(arguments[0], arguments[1], arguments[2], (void*)(scratch + 0), (void*)(scratch + 4352), (void*)(scratch + 6400), (void*)(scratch + 14592), (void*)(scratch + 16640), block);
    }
}
