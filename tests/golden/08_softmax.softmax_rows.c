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
#define as_float(...) __builtin_bit_cast(float, (__VA_ARGS__))
#define as_float4(...) __builtin_bit_cast(float4, (__VA_ARGS__))
#define as_int(...) __builtin_bit_cast(int, (__VA_ARGS__))
#define as_int4(...) __builtin_bit_cast(int4, (__VA_ARGS__))
#define INFINITY __builtin_inff()
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

static inline float exp_float(float x) {  // 2^n e^r with n whole and |r| <= log(2) / 2
    float y = x > 89.0f ? (float)(89.0f) : x;
    y = y < -104.0f ? (float)(-104.0f) : y;
    const float shifted = y * 1.44269504f + 12583166.0f;
    const float n = shifted - 12583166.0f;
    const float r = (y - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = r * 1.38189388e-3f + 8.36870354e-3f;
    p = p * r + 4.16682884e-2f;
    p = p * r + 1.66665211e-1f;
    p = p * r + 4.99999940e-1f;
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    p = p * r + 1.0f;
    p = p * r + 1.0f;
#else
    p = (p * (r * r) + r) + 1.0f;
#endif
    const int first = as_int(shifted) >> 1;
    return p * as_float(first << 23) * as_float((as_int(shifted) - first) << 23);
}

static inline float4 quotients_float4(float4 x, float d) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    if (d >= 0x1p-126f && d <= 0x1p126f) {
        const float inverse = 1 / d;
        const float4 product = x * inverse;
        const float4 below = product > 0x1.fffffep127f ? (float4)(0x1.fffffep127f) : product;
        const float4 first = below < -0x1.fffffep127f ? (float4)(-0x1.fffffep127f) : below;
        const float4 excess = first * d - x;
        return first - excess * inverse;
    }
#endif
    return x / d;
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

// 3 x 1 x 1 blocks of 1 thread, 640 bytes of shared memory
static inline __attribute__((always_inline)) void Y_block(
    const float* restrict X,
    float* restrict Y,
    float* restrict peak_state_meet,
    float* restrict total_state_meet,
    float* restrict X_register_by_thread,
    float* restrict shifted_register_by_thread,
    const long* restrict block)
{
    const int block_x = (int)block[0];
    float peak_state, total_state;
    float4 shifted_register_0, shifted_register_1;
    for (int tid = 0; tid < 8; ++tid) {
        float4 X_register_0 = load_first_global_float4(X + block_x * 37 + tid * 4, 37 - tid * 4, (float4)(0.0f));
        float4 X_register_1 = load_first_global_float4(X + block_x * 37 + tid * 4 + 32, 5 - tid * 4, (float4)(0.0f));
        peak_state = -INFINITY;
        peak_state = maximum_float(peak_state, X_register_0.s0);
        peak_state = maximum_float(peak_state, X_register_0.s1);
        peak_state = maximum_float(peak_state, X_register_0.s2);
        peak_state = maximum_float(peak_state, X_register_0.s3);
        if (tid * 4 < 5) {
            peak_state = maximum_float(peak_state, X_register_1.s0);
        }
        if (tid * 4 < 4) {
            peak_state = maximum_float(peak_state, X_register_1.s1);
        }
        if (tid * 4 < 3) {
            peak_state = maximum_float(peak_state, X_register_1.s2);
        }
        if (tid * 4 < 2) {
            peak_state = maximum_float(peak_state, X_register_1.s3);
        }
        peak_state_meet[tid] = peak_state;
        *(float4*)(X_register_by_thread + tid * 8) = X_register_0;
        *(float4*)(X_register_by_thread + tid * 8 + 4) = X_register_1;
    }
    for (int tid = 0; tid < 4; ++tid) {
        peak_state_meet[tid] = maximum_float(peak_state_meet[tid], peak_state_meet[tid + 4]);
    }
    for (int tid = 0; tid < 2; ++tid) {
        peak_state_meet[tid] = maximum_float(peak_state_meet[tid], peak_state_meet[tid + 2]);
    }
    peak_state_meet[0] = maximum_float(peak_state_meet[0], peak_state_meet[1]);
    #pragma nounroll
    for (int tid = 0; tid < 8; ++tid) {
        peak_state = peak_state_meet[0];
        float peak_register = peak_state;
        shifted_register_0.s0 = exp_float(X_register_by_thread[tid * 8] - peak_register);
        shifted_register_0.s1 = exp_float(X_register_by_thread[tid * 8 + 1] - peak_register);
        shifted_register_0.s2 = exp_float(X_register_by_thread[tid * 8 + 2] - peak_register);
        shifted_register_0.s3 = exp_float(X_register_by_thread[tid * 8 + 3] - peak_register);
        shifted_register_1.s0 = exp_float(X_register_by_thread[tid * 8 + 4] - peak_register);
        shifted_register_1.s1 = exp_float(X_register_by_thread[tid * 8 + 5] - peak_register);
        shifted_register_1.s2 = exp_float(X_register_by_thread[tid * 8 + 6] - peak_register);
        shifted_register_1.s3 = exp_float(X_register_by_thread[tid * 8 + 7] - peak_register);
        total_state = 0.0f;
        total_state = total_state + shifted_register_0.s0;
        total_state = total_state + shifted_register_0.s1;
        total_state = total_state + shifted_register_0.s2;
        total_state = total_state + shifted_register_0.s3;
        if (tid * 4 < 5) {
            total_state = total_state + shifted_register_1.s0;
        }
        if (tid * 4 < 4) {
            total_state = total_state + shifted_register_1.s1;
        }
        if (tid * 4 < 3) {
            total_state = total_state + shifted_register_1.s2;
        }
        if (tid * 4 < 2) {
            total_state = total_state + shifted_register_1.s3;
        }
        total_state_meet[tid] = total_state;
        *(float4*)(shifted_register_by_thread + tid * 8) = shifted_register_0;
        *(float4*)(shifted_register_by_thread + tid * 8 + 4) = shifted_register_1;
    }
    for (int tid = 0; tid < 4; ++tid) {
        total_state_meet[tid] = total_state_meet[tid] + total_state_meet[tid + 4];
    }
    for (int tid = 0; tid < 2; ++tid) {
        total_state_meet[tid] = total_state_meet[tid] + total_state_meet[tid + 2];
    }
    total_state_meet[0] = total_state_meet[0] + total_state_meet[1];
    for (int tid = 0; tid < 8; ++tid) {
        total_state = total_state_meet[0];
        float total_register = total_state;
        for (int j_round_3 = 0; j_round_3 < 2; ++j_round_3) {
            if (j_round_3 * 32 + tid * 4 < 34) {
                *(float4_u*)(Y + block_x * 37 + j_round_3 * 32 + tid * 4) = quotients_float4(*(const float4*)(shifted_register_by_thread + tid * 8 + j_round_3 * 4), total_register);
            } else {
                if (j_round_3 * 32 + tid * 4 < 37) {
                    store_first_global_float4(Y + block_x * 37 + j_round_3 * 32 + tid * 4, quotients_float4(load_first_shared_float4(shifted_register_by_thread + tid * 8 + j_round_3 * 4, 37 - j_round_3 * 32 - tid * 4, (float4)(0.0f)), total_register), 37 - j_round_3 * 32 - tid * 4);
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
        Y_block(arguments[0], arguments[1], (void*)(scratch + 0), (void*)(scratch + 64), (void*)(scratch + 128), (void*)(scratch + 384), block);
    }
}
