typedef float float4_u __attribute__((ext_vector_type(4), aligned(4)));
typedef float float2_u __attribute__((ext_vector_type(2), aligned(4)));

static inline float4 load_first_global_float4(const __global float* p, long count, float4 others) {  // touches the first `count` elements only
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
    if (count >= 4) return *(const __global float4_u*)p;
    const int some = count < 0 ? 0 : (int)count;
    const float2 v2 = (float2)(some & 1 ? p[some & -2] : (float)0);
    float4 v4;
    v4.s01 = v4.s23 = v2;
    if (some & 2) v4.s01 = *(const __global float2_u*)(p + (some & -4));
    return (int4){0, 1, 2, 3} < (int4)(some) ? v4 : others;
#endif
}

static inline float maximum_float(float a, float b) {  // NaN if either is NaN, as in NumPy
    const float r = a > b ? a : b;
    return a == a ? r : a;
}

static inline void store_first_global_float4(__global float* p, float4 v, long count) {  // touches the first `count` elements only
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
    __builtin_ia32_storeups128_mask((void*)(size_t)p, as_float4(v), (uchar)((1u << (count < 0 ? 0 : count > 4 ? 4 : (int)count)) - 1u));
    return;
#else
    if (count >= 4) {
        *(__global float4_u*)p = v;
        return;
    }
    const int some = count < 0 ? 0 : (int)count;
    if (some & 2) *(__global float2_u*)(p + (some & -4)) = v.s01;
    const float2 v2 = some & 2 ? v.s23 : v.s01;
    if (some & 1) p[some & -2] = v2.s0;
#endif
}

// 3 x 1 x 1 blocks of 8 threads, 160 bytes of shared memory
__kernel __attribute__((reqd_work_group_size(8, 1, 1)))
void Y(
    __global const float* restrict X,
    __global const float* restrict gamma,
    __global const float* restrict beta,
    __global float* restrict Y)
{
    __local float count_state_meet[8] __attribute__((aligned(64)));
    __local float mean_state_meet[8] __attribute__((aligned(64)));
    __local float squares_state_meet[8] __attribute__((aligned(64)));
    const int block_x = (int)get_group_id(0);
    const int thread = (int)get_local_id(0);
    float4 X_register_0 = load_first_global_float4(X + block_x * 37 + thread * 4, 37 - thread * 4, (float4)(0.0f));
    float4 X_register_1 = load_first_global_float4(X + block_x * 37 + thread * 4 + 32, 5 - thread * 4, (float4)(0.0f));
    float count_state = 0.0f;
    float mean_state = 0.0f;
    float squares_state = 0.0f;
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
    if (thread * 4 < 5) {
        count_state_common = count_state + 1.0f;
        count_state_common_1 = X_register_1.s0 - mean_state;
        count_state_common_2 = 0.0f < count_state_common ? 1.0f / maximum_float(count_state_common, 1.0f) : 0.0f;
        count_state_next = count_state_common;
        mean_state = mean_state + count_state_common_1 * count_state_common_2;
        squares_state = squares_state + 0.0f + count_state_common_1 * count_state_common_1 * count_state * count_state_common_2;
        count_state = count_state_next;
    }
    if (thread * 4 < 4) {
        count_state_common = count_state + 1.0f;
        count_state_common_1 = X_register_1.s1 - mean_state;
        count_state_common_2 = 0.0f < count_state_common ? 1.0f / maximum_float(count_state_common, 1.0f) : 0.0f;
        count_state_next = count_state_common;
        mean_state = mean_state + count_state_common_1 * count_state_common_2;
        squares_state = squares_state + 0.0f + count_state_common_1 * count_state_common_1 * count_state * count_state_common_2;
        count_state = count_state_next;
    }
    if (thread * 4 < 3) {
        count_state_common = count_state + 1.0f;
        count_state_common_1 = X_register_1.s2 - mean_state;
        count_state_common_2 = 0.0f < count_state_common ? 1.0f / maximum_float(count_state_common, 1.0f) : 0.0f;
        count_state_next = count_state_common;
        mean_state = mean_state + count_state_common_1 * count_state_common_2;
        squares_state = squares_state + 0.0f + count_state_common_1 * count_state_common_1 * count_state * count_state_common_2;
        count_state = count_state_next;
    }
    if (thread * 4 < 2) {
        count_state_common = count_state + 1.0f;
        count_state_common_1 = X_register_1.s3 - mean_state;
        count_state_common_2 = 0.0f < count_state_common ? 1.0f / maximum_float(count_state_common, 1.0f) : 0.0f;
        count_state_next = count_state_common;
        mean_state = mean_state + count_state_common_1 * count_state_common_2;
        squares_state = squares_state + 0.0f + count_state_common_1 * count_state_common_1 * count_state * count_state_common_2;
        count_state = count_state_next;
    }
    count_state_meet[thread] = count_state;
    mean_state_meet[thread] = mean_state;
    squares_state_meet[thread] = squares_state;
    barrier(CLK_LOCAL_MEM_FENCE);  // write of count_state_meet[0, thread] at examples/09_layer_norm.py:60, then read of count_state_meet[0, thread + 4] at examples/09_layer_norm.py:60
    if (thread < 4) {
        float count_state_meet_value = count_state_meet[thread];
        float count_state_meet_value_1 = mean_state_meet[thread];
        float count_state_meet_value_2 = count_state_meet[thread + 4];
        float count_state_meet_common = count_state_meet_value + count_state_meet_value_2;
        float count_state_meet_common_1 = mean_state_meet[thread + 4] - count_state_meet_value_1;
        float count_state_meet_common_2 = 0.0f < count_state_meet_common ? count_state_meet_value_2 / maximum_float(count_state_meet_common, 1.0f) : 0.0f;
        count_state_meet[thread] = count_state_meet_common;
        mean_state_meet[thread] = count_state_meet_value_1 + count_state_meet_common_1 * count_state_meet_common_2;
        squares_state_meet[thread] = squares_state_meet[thread] + squares_state_meet[thread + 4] + count_state_meet_common_1 * count_state_meet_common_1 * count_state_meet_value * count_state_meet_common_2;
    }
    barrier(CLK_LOCAL_MEM_FENCE);  // write of count_state_meet[0, thread] at examples/09_layer_norm.py:60, then read of count_state_meet[0, thread + 2] at examples/09_layer_norm.py:60
    if (thread < 2) {
        float count_state_meet_value_3 = count_state_meet[thread];
        float count_state_meet_value_4 = mean_state_meet[thread];
        float count_state_meet_value_5 = count_state_meet[thread + 2];
        float count_state_meet_common_3 = count_state_meet_value_3 + count_state_meet_value_5;
        float count_state_meet_common_4 = mean_state_meet[thread + 2] - count_state_meet_value_4;
        float count_state_meet_common_5 = 0.0f < count_state_meet_common_3 ? count_state_meet_value_5 / maximum_float(count_state_meet_common_3, 1.0f) : 0.0f;
        count_state_meet[thread] = count_state_meet_common_3;
        mean_state_meet[thread] = count_state_meet_value_4 + count_state_meet_common_4 * count_state_meet_common_5;
        squares_state_meet[thread] = squares_state_meet[thread] + squares_state_meet[thread + 2] + count_state_meet_common_4 * count_state_meet_common_4 * count_state_meet_value_3 * count_state_meet_common_5;
    }
    barrier(CLK_LOCAL_MEM_FENCE);  // write of count_state_meet[0, thread] at examples/09_layer_norm.py:60, then read of count_state_meet[0, thread + 1] at examples/09_layer_norm.py:60
    if (thread < 1) {
        float count_state_meet_value_6 = count_state_meet[thread];
        float count_state_meet_value_7 = mean_state_meet[thread];
        float count_state_meet_value_8 = count_state_meet[thread + 1];
        float count_state_meet_common_6 = count_state_meet_value_6 + count_state_meet_value_8;
        float count_state_meet_common_7 = mean_state_meet[thread + 1] - count_state_meet_value_7;
        float count_state_meet_common_8 = 0.0f < count_state_meet_common_6 ? count_state_meet_value_8 / maximum_float(count_state_meet_common_6, 1.0f) : 0.0f;
        count_state_meet[thread] = count_state_meet_common_6;
        mean_state_meet[thread] = count_state_meet_value_7 + count_state_meet_common_7 * count_state_meet_common_8;
        squares_state_meet[thread] = squares_state_meet[thread] + squares_state_meet[thread + 1] + count_state_meet_common_7 * count_state_meet_common_7 * count_state_meet_value_6 * count_state_meet_common_8;
    }
    barrier(CLK_LOCAL_MEM_FENCE);  // write of count_state_meet[0, thread] at examples/09_layer_norm.py:60, then read of count_state_meet[0, 0] at examples/09_layer_norm.py:60
    count_state = count_state_meet[0];
    mean_state = mean_state_meet[0];
    squares_state = squares_state_meet[0];
    float count_register = count_state;
    float mean_register = mean_state;
    float squares_register = squares_state;
    float scale_register = rsqrt(squares_register / 37.0f + 1e-05f);
    *(__global float4_u*)(Y + block_x * 37 + thread * 4) = (X_register_0 - mean_register) * scale_register * *(__global const float4_u*)(gamma + thread * 4) + *(__global const float4_u*)(beta + thread * 4);
    if (thread * 4 < 2) {
        *(__global float4_u*)(Y + block_x * 37 + thread * 4 + 32) = (X_register_1 - mean_register) * scale_register * *(__global const float4_u*)(gamma + thread * 4 + 32) + *(__global const float4_u*)(beta + thread * 4 + 32);
    } else {
        if (thread * 4 < 5) {
            store_first_global_float4(Y + block_x * 37 + thread * 4 + 32, (X_register_1 - mean_register) * scale_register * load_first_global_float4(gamma + thread * 4 + 32, 5 - thread * 4, (float4)(0.0f)) + load_first_global_float4(beta + thread * 4 + 32, 5 - thread * 4, (float4)(0.0f)), 5 - thread * 4);
        }
    }
}
