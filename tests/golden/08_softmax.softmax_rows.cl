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

static inline float exp_float(float x) {  // 2^n * e^r with n whole and |r| <= log(2) / 2
    float y = x > 89.0f ? (float)(89.0f) : x;
    y = y < -104.0f ? (float)(-104.0f) : y;
    const float shifted = y * 1.44269504f + 12582912.0f;  // the sum's low bits are n
    const float n = shifted - 12582912.0f;
    const int whole = as_int(shifted) - 0x4b400000;
    const float r = (y - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = r * 1.38144649e-3f + 8.36878084e-3f;
    p = p * r + 4.16683927e-2f;
    p = p * r + 1.66665196e-1f;
    p = p * r + 4.99999940e-1f;
    p = p * (r * r) + r;
    const int half_of_n = whole >> 1;  // as two factors, so that results can be infinite or denormal
    return (p + 1.0f) * as_float((half_of_n + 127) << 23) * as_float((whole - half_of_n + 127) << 23);
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

// 3 x 1 x 1 blocks of 8 threads, 96 bytes of shared memory
__kernel __attribute__((reqd_work_group_size(8, 1, 1)))
void Y(
    __global const float* restrict X,
    __global float* restrict Y)
{
    __local float peak_state_meet[8] __attribute__((aligned(64)));
    __local float total_state_meet[8] __attribute__((aligned(64)));
    const int block_x = (int)get_group_id(0);
    const int thread = (int)get_local_id(0);
    float4 shifted_register_0, shifted_register_1;
    float4 X_register_0 = load_first_global_float4(X + block_x * 37 + thread * 4, 37 - thread * 4, (float4)(0.0f));
    float4 X_register_1 = load_first_global_float4(X + block_x * 37 + thread * 4 + 32, 5 - thread * 4, (float4)(0.0f));
    float peak_state = -INFINITY;
    peak_state = maximum_float(peak_state, X_register_0.s0);
    peak_state = maximum_float(peak_state, X_register_0.s1);
    peak_state = maximum_float(peak_state, X_register_0.s2);
    peak_state = maximum_float(peak_state, X_register_0.s3);
    if (thread * 4 < 5) {
        peak_state = maximum_float(peak_state, X_register_1.s0);
    }
    if (thread * 4 < 4) {
        peak_state = maximum_float(peak_state, X_register_1.s1);
    }
    if (thread * 4 < 3) {
        peak_state = maximum_float(peak_state, X_register_1.s2);
    }
    if (thread * 4 < 2) {
        peak_state = maximum_float(peak_state, X_register_1.s3);
    }
    peak_state_meet[thread] = peak_state;
    barrier(CLK_LOCAL_MEM_FENCE);  // write of peak_state_meet[0, thread] at examples/08_softmax.py:50, then read of peak_state_meet[0, thread + 4] at examples/08_softmax.py:50
    if (thread < 4) {
        peak_state_meet[thread] = maximum_float(peak_state_meet[thread], peak_state_meet[thread + 4]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);  // write of peak_state_meet[0, thread] at examples/08_softmax.py:50, then read of peak_state_meet[0, thread + 2] at examples/08_softmax.py:50
    if (thread < 2) {
        peak_state_meet[thread] = maximum_float(peak_state_meet[thread], peak_state_meet[thread + 2]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);  // write of peak_state_meet[0, thread] at examples/08_softmax.py:50, then read of peak_state_meet[0, thread + 1] at examples/08_softmax.py:50
    if (thread < 1) {
        peak_state_meet[thread] = maximum_float(peak_state_meet[thread], peak_state_meet[thread + 1]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);  // write of peak_state_meet[0, thread] at examples/08_softmax.py:50, then read of peak_state_meet[0, 0] at examples/08_softmax.py:50
    peak_state = peak_state_meet[0];
    float peak_register = peak_state;
    shifted_register_0.s0 = exp_float(X_register_0.s0 - peak_register);
    shifted_register_0.s1 = exp_float(X_register_0.s1 - peak_register);
    shifted_register_0.s2 = exp_float(X_register_0.s2 - peak_register);
    shifted_register_0.s3 = exp_float(X_register_0.s3 - peak_register);
    shifted_register_1.s0 = exp_float(X_register_1.s0 - peak_register);
    shifted_register_1.s1 = exp_float(X_register_1.s1 - peak_register);
    shifted_register_1.s2 = exp_float(X_register_1.s2 - peak_register);
    shifted_register_1.s3 = exp_float(X_register_1.s3 - peak_register);
    float total_state = 0.0f;
    total_state = total_state + shifted_register_0.s0;
    total_state = total_state + shifted_register_0.s1;
    total_state = total_state + shifted_register_0.s2;
    total_state = total_state + shifted_register_0.s3;
    if (thread * 4 < 5) {
        total_state = total_state + shifted_register_1.s0;
    }
    if (thread * 4 < 4) {
        total_state = total_state + shifted_register_1.s1;
    }
    if (thread * 4 < 3) {
        total_state = total_state + shifted_register_1.s2;
    }
    if (thread * 4 < 2) {
        total_state = total_state + shifted_register_1.s3;
    }
    total_state_meet[thread] = total_state;
    barrier(CLK_LOCAL_MEM_FENCE);  // write of total_state_meet[0, thread] at examples/08_softmax.py:52, then read of total_state_meet[0, thread + 4] at examples/08_softmax.py:52
    if (thread < 4) {
        total_state_meet[thread] = total_state_meet[thread] + total_state_meet[thread + 4];
    }
    barrier(CLK_LOCAL_MEM_FENCE);  // write of total_state_meet[0, thread] at examples/08_softmax.py:52, then read of total_state_meet[0, thread + 2] at examples/08_softmax.py:52
    if (thread < 2) {
        total_state_meet[thread] = total_state_meet[thread] + total_state_meet[thread + 2];
    }
    barrier(CLK_LOCAL_MEM_FENCE);  // write of total_state_meet[0, thread] at examples/08_softmax.py:52, then read of total_state_meet[0, thread + 1] at examples/08_softmax.py:52
    if (thread < 1) {
        total_state_meet[thread] = total_state_meet[thread] + total_state_meet[thread + 1];
    }
    barrier(CLK_LOCAL_MEM_FENCE);  // write of total_state_meet[0, thread] at examples/08_softmax.py:52, then read of total_state_meet[0, 0] at examples/08_softmax.py:52
    total_state = total_state_meet[0];
    float total_register = total_state;
    *(__global float4_u*)(Y + block_x * 37 + thread * 4) = shifted_register_0 / total_register;
    if (thread * 4 < 2) {
        *(__global float4_u*)(Y + block_x * 37 + thread * 4 + 32) = shifted_register_1 / total_register;
    } else {
        if (thread * 4 < 5) {
            store_first_global_float4(Y + block_x * 37 + thread * 4 + 32, shifted_register_1 / total_register, 5 - thread * 4);
        }
    }
}
