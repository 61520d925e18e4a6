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
#define sqrt(...) __builtin_elementwise_sqrt(__VA_ARGS__)
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

static inline float maximum_float(float a, float b) {  // NaN if either is NaN, as in NumPy
    const float r = a > b ? a : b;
    return a == a ? r : a;
}

static inline float rsqrt_float(float x) {
    return 1.0f / sqrt(x);
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

// 3 x 1 x 1 blocks of 1 thread, 448 bytes of shared memory
static inline __attribute__((always_inline)) void Y_block(
    const float* restrict X,
    const float* restrict gamma,
    const float* restrict beta,
    float* restrict Y,
    float* restrict count_state_meet,
    float* restrict mean_state_meet,
    float* restrict squares_state_meet,
    float* restrict X_register_by_thread,
    const long* restrict block)
{
    const int block_x = (int)block[0];
    float count_state, mean_state, squares_state;
    #pragma nounroll
    for (int tid = 0; tid < 8; ++tid) {
        float4 X_register_0 = load_first_global_float4(X + block_x * 37 + tid * 4, 37 - tid * 4, (float4)(0.0f));
        float4 X_register_1 = load_first_global_float4(X + block_x * 37 + tid * 4 + 32, 5 - tid * 4, (float4)(0.0f));
        count_state = 0.0f;
        mean_state = 0.0f;
        squares_state = 0.0f;
        float count_state_common = count_state + 1.0f;
        float count_state_common_1 = X_register_0.s0 - mean_state;
        float count_state_common_2 = 0.0f < count_state_common ? 1.0f / maximum_float(count_state_common, 1.0f) : 0.0f;
        float count_state_next = count_state_common;
        mean_state = mean_state + count_state_common_1 * count_state_common_2;
        squares_state = squares_state + 0.0f + count_state_common_1 * count_state_common_1 * count_state * count_state_common_2;
        count_state = count_state_next;
        count_state_common = count_state + 1.0f;
        count_state_common_1 = X_register_0.s1 - mean_state;
        count_state_common_2 = 0.0f < count_state_common ? 1.0f / maximum_float(count_state_common, 1.0f) : 0.0f;
        count_state_next = count_state_common;
        mean_state = mean_state + count_state_common_1 * count_state_common_2;
        squares_state = squares_state + 0.0f + count_state_common_1 * count_state_common_1 * count_state * count_state_common_2;
        count_state = count_state_next;
        count_state_common = count_state + 1.0f;
        count_state_common_1 = X_register_0.s2 - mean_state;
        count_state_common_2 = 0.0f < count_state_common ? 1.0f / maximum_float(count_state_common, 1.0f) : 0.0f;
        count_state_next = count_state_common;
        mean_state = mean_state + count_state_common_1 * count_state_common_2;
        squares_state = squares_state + 0.0f + count_state_common_1 * count_state_common_1 * count_state * count_state_common_2;
        count_state = count_state_next;
        count_state_common = count_state + 1.0f;
        count_state_common_1 = X_register_0.s3 - mean_state;
        count_state_common_2 = 0.0f < count_state_common ? 1.0f / maximum_float(count_state_common, 1.0f) : 0.0f;
        count_state_next = count_state_common;
        mean_state = mean_state + count_state_common_1 * count_state_common_2;
        squares_state = squares_state + 0.0f + count_state_common_1 * count_state_common_1 * count_state * count_state_common_2;
        count_state = count_state_next;
        if (tid * 4 < 5) {
            count_state_common = count_state + 1.0f;
            count_state_common_1 = X_register_1.s0 - mean_state;
            count_state_common_2 = 0.0f < count_state_common ? 1.0f / maximum_float(count_state_common, 1.0f) : 0.0f;
            count_state_next = count_state_common;
            mean_state = mean_state + count_state_common_1 * count_state_common_2;
            squares_state = squares_state + 0.0f + count_state_common_1 * count_state_common_1 * count_state * count_state_common_2;
            count_state = count_state_next;
        }
        if (tid * 4 < 4) {
            count_state_common = count_state + 1.0f;
            count_state_common_1 = X_register_1.s1 - mean_state;
            count_state_common_2 = 0.0f < count_state_common ? 1.0f / maximum_float(count_state_common, 1.0f) : 0.0f;
            count_state_next = count_state_common;
            mean_state = mean_state + count_state_common_1 * count_state_common_2;
            squares_state = squares_state + 0.0f + count_state_common_1 * count_state_common_1 * count_state * count_state_common_2;
            count_state = count_state_next;
        }
        if (tid * 4 < 3) {
            count_state_common = count_state + 1.0f;
            count_state_common_1 = X_register_1.s2 - mean_state;
            count_state_common_2 = 0.0f < count_state_common ? 1.0f / maximum_float(count_state_common, 1.0f) : 0.0f;
            count_state_next = count_state_common;
            mean_state = mean_state + count_state_common_1 * count_state_common_2;
            squares_state = squares_state + 0.0f + count_state_common_1 * count_state_common_1 * count_state * count_state_common_2;
            count_state = count_state_next;
        }
        if (tid * 4 < 2) {
            count_state_common = count_state + 1.0f;
            count_state_common_1 = X_register_1.s3 - mean_state;
            count_state_common_2 = 0.0f < count_state_common ? 1.0f / maximum_float(count_state_common, 1.0f) : 0.0f;
            count_state_next = count_state_common;
            mean_state = mean_state + count_state_common_1 * count_state_common_2;
            squares_state = squares_state + 0.0f + count_state_common_1 * count_state_common_1 * count_state * count_state_common_2;
            count_state = count_state_next;
        }
        count_state_meet[tid] = count_state;
        mean_state_meet[tid] = mean_state;
        squares_state_meet[tid] = squares_state;
        *(float4*)(X_register_by_thread + tid * 8) = X_register_0;
        *(float4*)(X_register_by_thread + tid * 8 + 4) = X_register_1;
    }
    for (int tid = 0; tid < 4; ++tid) {
        float count_state_meet_value = count_state_meet[tid];
        float count_state_meet_value_1 = mean_state_meet[tid];
        float count_state_meet_value_2 = count_state_meet[tid + 4];
        float count_state_meet_common = count_state_meet_value + count_state_meet_value_2;
        float count_state_meet_common_1 = mean_state_meet[tid + 4] - count_state_meet_value_1;
        float count_state_meet_common_2 = 0.0f < count_state_meet_common ? count_state_meet_value_2 / maximum_float(count_state_meet_common, 1.0f) : 0.0f;
        count_state_meet[tid] = count_state_meet_common;
        mean_state_meet[tid] = count_state_meet_value_1 + count_state_meet_common_1 * count_state_meet_common_2;
        squares_state_meet[tid] = squares_state_meet[tid] + squares_state_meet[tid + 4] + count_state_meet_common_1 * count_state_meet_common_1 * count_state_meet_value * count_state_meet_common_2;
    }
    for (int tid = 0; tid < 2; ++tid) {
        float count_state_meet_value_3 = count_state_meet[tid];
        float count_state_meet_value_4 = mean_state_meet[tid];
        float count_state_meet_value_5 = count_state_meet[tid + 2];
        float count_state_meet_common_3 = count_state_meet_value_3 + count_state_meet_value_5;
        float count_state_meet_common_4 = mean_state_meet[tid + 2] - count_state_meet_value_4;
        float count_state_meet_common_5 = 0.0f < count_state_meet_common_3 ? count_state_meet_value_5 / maximum_float(count_state_meet_common_3, 1.0f) : 0.0f;
        count_state_meet[tid] = count_state_meet_common_3;
        mean_state_meet[tid] = count_state_meet_value_4 + count_state_meet_common_4 * count_state_meet_common_5;
        squares_state_meet[tid] = squares_state_meet[tid] + squares_state_meet[tid + 2] + count_state_meet_common_4 * count_state_meet_common_4 * count_state_meet_value_3 * count_state_meet_common_5;
    }
    float count_state_meet_value_6 = count_state_meet[0];
    float count_state_meet_value_7 = mean_state_meet[0];
    float count_state_meet_value_8 = count_state_meet[1];
    float count_state_meet_common_6 = count_state_meet_value_6 + count_state_meet_value_8;
    float count_state_meet_common_7 = mean_state_meet[1] - count_state_meet_value_7;
    float count_state_meet_common_8 = 0.0f < count_state_meet_common_6 ? count_state_meet_value_8 / maximum_float(count_state_meet_common_6, 1.0f) : 0.0f;
    count_state_meet[0] = count_state_meet_common_6;
    mean_state_meet[0] = count_state_meet_value_7 + count_state_meet_common_7 * count_state_meet_common_8;
    squares_state_meet[0] = squares_state_meet[0] + squares_state_meet[1] + count_state_meet_common_7 * count_state_meet_common_7 * count_state_meet_value_6 * count_state_meet_common_8;
    for (int tid = 0; tid < 8; ++tid) {
        count_state = count_state_meet[0];
        mean_state = mean_state_meet[0];
        squares_state = squares_state_meet[0];
        float count_register = count_state;
        float mean_register = mean_state;
        float squares_register = squares_state;
        float scale_register = rsqrt_float(squares_register / 37.0f + 1e-05f);
        for (int j_round_1 = 0; j_round_1 < 2; ++j_round_1) {
            if (j_round_1 * 32 + tid * 4 < 34) {
                *(float4_u*)(Y + block_x * 37 + j_round_1 * 32 + tid * 4) = (*(const float4*)(X_register_by_thread + tid * 8 + j_round_1 * 4) - mean_register) * scale_register * *(const float4_u*)(gamma + j_round_1 * 32 + tid * 4) + *(const float4_u*)(beta + j_round_1 * 32 + tid * 4);
            } else {
                if (j_round_1 * 32 + tid * 4 < 37) {
                    store_first_global_float4(Y + block_x * 37 + j_round_1 * 32 + tid * 4, (load_first_shared_float4(X_register_by_thread + tid * 8 + j_round_1 * 4, 37 - j_round_1 * 32 - tid * 4, (float4)(0.0f)) - mean_register) * scale_register * load_first_global_float4(gamma + j_round_1 * 32 + tid * 4, 37 - j_round_1 * 32 - tid * 4, (float4)(0.0f)) + load_first_global_float4(beta + j_round_1 * 32 + tid * 4, 37 - j_round_1 * 32 - tid * 4, (float4)(0.0f)), 37 - j_round_1 * 32 - tid * 4);
                }
            }
        }
    }
}

EXPORT void Y(void* const* arguments, char* scratch, long first, long last)
{
#pragma nounroll
    for (long number = first; number < last; ++number) {
        const long block[3] = {number % 3, number / 3 % 1, number / 3};
        Y_block(arguments[0], arguments[1], arguments[2], arguments[3], (void*)(scratch + 0), (void*)(scratch + 64), (void*)(scratch + 128), (void*)(scratch + 192), block);
    }
}
