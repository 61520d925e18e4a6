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

// 11 x 3 x 1 blocks of 1 thread, 16 bytes of shared memory
static inline __attribute__((always_inline)) void Y_block(
    const float* restrict X,
    float* restrict Y_partial,
    float* restrict Y_fold_1_meet,
    const long* restrict block)
{
    const int block_x = (int)block[0];
    const int block_y = (int)block[1];
    float Y_fold_1;
    for (int tid = 0; tid < 4; ++tid) {
        float4 Y_state = (float4)(0.0f);
        for (int j_round = 0; j_round < 2; ++j_round) {
            if (block_x * 32 + j_round * 16 + tid * 4 < 330) {
                Y_state = Y_state + *(const float4_u*)(X + block_y * 333 + block_x * 32 + j_round * 16 + tid * 4) * *(const float4_u*)(X + block_y * 333 + block_x * 32 + j_round * 16 + tid * 4);
            } else {
                if (block_x * 32 + j_round * 16 + tid * 4 < 333) {
                    Y_state = (int4){0, 1, 2, 3} < (int4)(333 - block_x * 32 - j_round * 16 - tid * 4) ? Y_state + load_first_global_float4(X + block_y * 333 + block_x * 32 + j_round * 16 + tid * 4, 333 - block_x * 32 - j_round * 16 - tid * 4, (float4)(0.0f)) * load_first_global_float4(X + block_y * 333 + block_x * 32 + j_round * 16 + tid * 4, 333 - block_x * 32 - j_round * 16 - tid * 4, (float4)(0.0f)) : Y_state;
                }
            }
        }
        float2 Y_fold = Y_state.s01 + Y_state.s23;
        Y_fold_1 = Y_fold.s0 + Y_fold.s1;
        Y_fold_1_meet[tid] = Y_fold_1;
    }
    for (int tid = 0; tid < 2; ++tid) {
        Y_fold_1_meet[tid] = Y_fold_1_meet[tid] + Y_fold_1_meet[tid + 2];
    }
    Y_fold_1_meet[0] = Y_fold_1_meet[0] + Y_fold_1_meet[1];
    Y_fold_1 = Y_fold_1_meet[0];
    *(Y_partial + block_x * 3 + block_y) = Y_fold_1;
}

EXPORT void Y(void* const* arguments, char* scratch, long first, long last)
{
#pragma nounroll
    for (long number = first; number < last; ++number) {
        const long block[3] = {number % 11, number / 11 % 3, number / 33};
        Y_block(arguments[0], arguments[1], (void*)(scratch + 0), block);
    }
}

// 1 x 1 x 1 blocks of 1 thread, 0 bytes of shared memory
static inline __attribute__((always_inline)) void Y_combine_1_block(
    float* restrict Y,
    const float* restrict Y_partial,
    const long* restrict block)
{
    for (int i = 0; i < 3; ++i) {
        float Y_state = 0.0f;
        for (int j_part = 0; j_part < 11; ++j_part) {
            Y_state = Y_state + *(Y_partial + j_part * 3 + i);
        }
        Y[i] = Y_state;
    }
}

EXPORT void Y_combine_1(void* const* arguments, char* scratch, long first, long last)
{
#pragma nounroll
    for (long number = first; number < last; ++number) {
        const long block[3] = {number % 1, number / 1 % 1, number / 1};
        Y_combine_1_block(arguments[0], arguments[1], block);
    }
}
