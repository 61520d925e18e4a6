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

// 2 x 3 x 1 blocks of 1 thread, 448 bytes of shared memory
static inline __attribute__((always_inline)) void Y_block(
    const int* restrict ids,
    const float* restrict table,
    float* restrict Y,
    int* restrict ids_shared,
    float* restrict table_shared,
    float* restrict Y_state_by_thread,
    const long* restrict block)
{
    const int block_x = (int)block[0];
    const int block_y = (int)block[1];
    for (int tid = 0; tid < 8; ++tid) {
        Y_state_by_thread[tid * 4] = 0.0f;
        Y_state_by_thread[tid * 4 + 1] = 0.0f;
        Y_state_by_thread[tid * 4 + 2] = 0.0f;
        Y_state_by_thread[tid * 4 + 3] = 0.0f;
    }
    for (int t = 0; t < 2; ++t) {
        for (int tid = 0; tid < 4; ++tid) {
            ids_shared[tid] = block_y * 2 + tid / 2 < 5 && t * 2 + tid % 2 < 3 ? *(ids + block_y * 6 + tid / 2 * 3 + t * 2 + tid % 2) : 0;
        }
        for (int tid = 0; tid < 8; ++tid) {
            for (int b_round = 0; b_round < 2; ++b_round) {
                *(float4*)(table_shared + b_round * 32 + tid * 4) = block_y * 2 + b_round < 5 && t * 2 + tid / 4 < 3 ? load_first_global_float4(table + *(ids_shared + b_round * 2 + tid / 4) * 19 + block_x * 16 + tid % 4 * 4, 19 - block_x * 16 - tid % 4 * 4, (float4)(0.0f)) : (float4)(0.0f);
            }
        }
        for (int tid = 0; tid < 8; ++tid) {
            float Y_state_0 = Y_state_by_thread[tid * 4];
            float Y_state_1 = Y_state_by_thread[tid * 4 + 1];
            float Y_state_2 = Y_state_by_thread[tid * 4 + 2];
            float Y_state_3 = Y_state_by_thread[tid * 4 + 3];
            for (int t_1 = 0; t_1 < 2; ++t_1) {
                Y_state_0 = Y_state_0 + *(table_shared + tid / 4 * 32 + t_1 * 16 + tid % 4 * 4);
                Y_state_1 = Y_state_1 + *(table_shared + tid / 4 * 32 + t_1 * 16 + tid % 4 * 4 + 1);
                Y_state_2 = Y_state_2 + *(table_shared + tid / 4 * 32 + t_1 * 16 + tid % 4 * 4 + 2);
                Y_state_3 = Y_state_3 + *(table_shared + tid / 4 * 32 + t_1 * 16 + tid % 4 * 4 + 3);
            }
            Y_state_by_thread[tid * 4] = Y_state_0;
            Y_state_by_thread[tid * 4 + 1] = Y_state_1;
            Y_state_by_thread[tid * 4 + 2] = Y_state_2;
            Y_state_by_thread[tid * 4 + 3] = Y_state_3;
        }
    }
    for (int tid = 0; tid < 8; ++tid) {
        for (int e_1 = 0; e_1 < 4; ++e_1) {
            if (block_y * 2 + tid / 4 < 5 && block_x * 16 + tid % 4 * 4 + e_1 < 19) {
                *(Y + block_y * 38 + tid / 4 * 19 + block_x * 16 + tid % 4 * 4 + e_1) = *(Y_state_by_thread + tid * 4 + e_1);
            }
        }
    }
}

EXPORT void Y(void* const* arguments, char* scratch, long first, long last)
{
#pragma nounroll
    for (long number = first; number < last; ++number) {
        const long block[3] = {number % 2, number / 2 % 3, number / 6};
        Y_block(arguments[0], arguments[1], arguments[2], (void*)(scratch + 256), (void*)(scratch + 0), (void*)(scratch + 320), block);
    }
}
