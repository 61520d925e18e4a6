typedef vec<float, 4, 4> float4_u;

__device__ __forceinline__ float4 load_first_global_float4_u(const float* p, long count, float4 others) {  // touches the first `count` elements only
    if (count >= 4) return *(const float4_u*)p;
    float4 v = others;
    if (count > 0) v[0] = p[0];
    if (count > 1) v[1] = p[1];
    if (count > 2) v[2] = p[2];
    if (count > 3) v[3] = p[3];
    return v;
}

__device__ __forceinline__ float4 load_first_global_float4(const float* p, long count, float4 others) {  // touches the first `count` elements only
    if (count >= 4) return *(const float4*)p;
    float4 v = others;
    if (count > 0) v[0] = p[0];
    if (count > 1) v[1] = p[1];
    if (count > 2) v[2] = p[2];
    if (count > 3) v[3] = p[3];
    return v;
}

__device__ __forceinline__ void store_first_global_float4_u(float* p, float4 v, long count) {  // touches the first `count` elements only
    if (count >= 4) {
        *(float4_u*)p = v;
        return;
    }
    if (count > 0) p[0] = v[0];
    if (count > 1) p[1] = v[1];
    if (count > 2) p[2] = v[2];
    if (count > 3) p[3] = v[3];
}

// 3 x 1 x 1 blocks of 8 threads, 160 bytes of shared memory
extern "C" __global__ void __launch_bounds__(8)
Y(
    const float* __restrict__ X,
    const float* __restrict__ gamma,
    const float* __restrict__ beta,
    float* Y)
{
    __shared__ float count_state_meet[8] __attribute__((aligned(64)));
    __shared__ float mean_state_meet[8] __attribute__((aligned(64)));
    __shared__ float squares_state_meet[8] __attribute__((aligned(64)));
    const int block_x = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    float4 X_register_0 = load_first_global_float4_u(X + block_x * 37 + thread * 4, 37 - thread * 4, float4(0.0f));
    float4 X_register_1 = load_first_global_float4_u(X + block_x * 37 + thread * 4 + 32, 5 - thread * 4, float4(0.0f));
    float count_state = 0.0f;
    float mean_state = 0.0f;
    float squares_state = 0.0f;
    float count_state_common = count_state + 1.0f;
    float count_state_common_1 = X_register_0[0] - mean_state;
    float count_state_common_2 = 0.0f < count_state_common ? 1.0f / maximum(count_state_common, 1.0f) : 0.0f;
    float count_state_next = count_state_common;
    mean_state = mean_state + count_state_common_1 * count_state_common_2;
    squares_state = squares_state + 0.0f + count_state_common_1 * count_state_common_1 * count_state * count_state_common_2;
    count_state = count_state_next;
    count_state_common = count_state + 1.0f;
    count_state_common_1 = X_register_0[1] - mean_state;
    count_state_common_2 = 0.0f < count_state_common ? 1.0f / maximum(count_state_common, 1.0f) : 0.0f;
    count_state_next = count_state_common;
    mean_state = mean_state + count_state_common_1 * count_state_common_2;
    squares_state = squares_state + 0.0f + count_state_common_1 * count_state_common_1 * count_state * count_state_common_2;
    count_state = count_state_next;
    count_state_common = count_state + 1.0f;
    count_state_common_1 = X_register_0[2] - mean_state;
    count_state_common_2 = 0.0f < count_state_common ? 1.0f / maximum(count_state_common, 1.0f) : 0.0f;
    count_state_next = count_state_common;
    mean_state = mean_state + count_state_common_1 * count_state_common_2;
    squares_state = squares_state + 0.0f + count_state_common_1 * count_state_common_1 * count_state * count_state_common_2;
    count_state = count_state_next;
    count_state_common = count_state + 1.0f;
    count_state_common_1 = X_register_0[3] - mean_state;
    count_state_common_2 = 0.0f < count_state_common ? 1.0f / maximum(count_state_common, 1.0f) : 0.0f;
    count_state_next = count_state_common;
    mean_state = mean_state + count_state_common_1 * count_state_common_2;
    squares_state = squares_state + 0.0f + count_state_common_1 * count_state_common_1 * count_state * count_state_common_2;
    count_state = count_state_next;
    if (thread * 4 < 5) {
        count_state_common = count_state + 1.0f;
        count_state_common_1 = X_register_1[0] - mean_state;
        count_state_common_2 = 0.0f < count_state_common ? 1.0f / maximum(count_state_common, 1.0f) : 0.0f;
        count_state_next = count_state_common;
        mean_state = mean_state + count_state_common_1 * count_state_common_2;
        squares_state = squares_state + 0.0f + count_state_common_1 * count_state_common_1 * count_state * count_state_common_2;
        count_state = count_state_next;
    }
    if (thread * 4 < 4) {
        count_state_common = count_state + 1.0f;
        count_state_common_1 = X_register_1[1] - mean_state;
        count_state_common_2 = 0.0f < count_state_common ? 1.0f / maximum(count_state_common, 1.0f) : 0.0f;
        count_state_next = count_state_common;
        mean_state = mean_state + count_state_common_1 * count_state_common_2;
        squares_state = squares_state + 0.0f + count_state_common_1 * count_state_common_1 * count_state * count_state_common_2;
        count_state = count_state_next;
    }
    if (thread * 4 < 3) {
        count_state_common = count_state + 1.0f;
        count_state_common_1 = X_register_1[2] - mean_state;
        count_state_common_2 = 0.0f < count_state_common ? 1.0f / maximum(count_state_common, 1.0f) : 0.0f;
        count_state_next = count_state_common;
        mean_state = mean_state + count_state_common_1 * count_state_common_2;
        squares_state = squares_state + 0.0f + count_state_common_1 * count_state_common_1 * count_state * count_state_common_2;
        count_state = count_state_next;
    }
    if (thread * 4 < 2) {
        count_state_common = count_state + 1.0f;
        count_state_common_1 = X_register_1[3] - mean_state;
        count_state_common_2 = 0.0f < count_state_common ? 1.0f / maximum(count_state_common, 1.0f) : 0.0f;
        count_state_next = count_state_common;
        mean_state = mean_state + count_state_common_1 * count_state_common_2;
        squares_state = squares_state + 0.0f + count_state_common_1 * count_state_common_1 * count_state * count_state_common_2;
        count_state = count_state_next;
    }
    count_state_meet[thread] = count_state;
    mean_state_meet[thread] = mean_state;
    squares_state_meet[thread] = squares_state;
    __syncthreads();  // write of count_state_meet[0, thread] at examples/09_layer_norm.py:60, then read of count_state_meet[0, thread + 4] at examples/09_layer_norm.py:60
    if (thread < 4) {
        float count_state_meet_value = count_state_meet[thread];
        float count_state_meet_value_1 = mean_state_meet[thread];
        float count_state_meet_value_2 = count_state_meet[thread + 4];
        float count_state_meet_common = count_state_meet_value + count_state_meet_value_2;
        float count_state_meet_common_1 = mean_state_meet[thread + 4] - count_state_meet_value_1;
        float count_state_meet_common_2 = 0.0f < count_state_meet_common ? count_state_meet_value_2 / maximum(count_state_meet_common, 1.0f) : 0.0f;
        count_state_meet[thread] = count_state_meet_common;
        mean_state_meet[thread] = count_state_meet_value_1 + count_state_meet_common_1 * count_state_meet_common_2;
        squares_state_meet[thread] = squares_state_meet[thread] + squares_state_meet[thread + 4] + count_state_meet_common_1 * count_state_meet_common_1 * count_state_meet_value * count_state_meet_common_2;
    }
    __syncthreads();  // write of count_state_meet[0, thread] at examples/09_layer_norm.py:60, then read of count_state_meet[0, thread + 2] at examples/09_layer_norm.py:60
    if (thread < 2) {
        float count_state_meet_value_3 = count_state_meet[thread];
        float count_state_meet_value_4 = mean_state_meet[thread];
        float count_state_meet_value_5 = count_state_meet[thread + 2];
        float count_state_meet_common_3 = count_state_meet_value_3 + count_state_meet_value_5;
        float count_state_meet_common_4 = mean_state_meet[thread + 2] - count_state_meet_value_4;
        float count_state_meet_common_5 = 0.0f < count_state_meet_common_3 ? count_state_meet_value_5 / maximum(count_state_meet_common_3, 1.0f) : 0.0f;
        count_state_meet[thread] = count_state_meet_common_3;
        mean_state_meet[thread] = count_state_meet_value_4 + count_state_meet_common_4 * count_state_meet_common_5;
        squares_state_meet[thread] = squares_state_meet[thread] + squares_state_meet[thread + 2] + count_state_meet_common_4 * count_state_meet_common_4 * count_state_meet_value_3 * count_state_meet_common_5;
    }
    __syncthreads();  // write of count_state_meet[0, thread] at examples/09_layer_norm.py:60, then read of count_state_meet[0, thread + 1] at examples/09_layer_norm.py:60
    if (thread < 1) {
        float count_state_meet_value_6 = count_state_meet[thread];
        float count_state_meet_value_7 = mean_state_meet[thread];
        float count_state_meet_value_8 = count_state_meet[thread + 1];
        float count_state_meet_common_6 = count_state_meet_value_6 + count_state_meet_value_8;
        float count_state_meet_common_7 = mean_state_meet[thread + 1] - count_state_meet_value_7;
        float count_state_meet_common_8 = 0.0f < count_state_meet_common_6 ? count_state_meet_value_8 / maximum(count_state_meet_common_6, 1.0f) : 0.0f;
        count_state_meet[thread] = count_state_meet_common_6;
        mean_state_meet[thread] = count_state_meet_value_7 + count_state_meet_common_7 * count_state_meet_common_8;
        squares_state_meet[thread] = squares_state_meet[thread] + squares_state_meet[thread + 1] + count_state_meet_common_7 * count_state_meet_common_7 * count_state_meet_value_6 * count_state_meet_common_8;
    }
    __syncthreads();  // write of count_state_meet[0, thread] at examples/09_layer_norm.py:60, then read of count_state_meet[0, 0] at examples/09_layer_norm.py:60
    count_state = count_state_meet[0];
    mean_state = mean_state_meet[0];
    squares_state = squares_state_meet[0];
    float count_register = count_state;
    float mean_register = mean_state;
    float squares_register = squares_state;
    float scale_register = rsqrt(squares_register / 37.0f + 1e-05f);
    *(float4_u*)(Y + block_x * 37 + thread * 4) = (X_register_0 - mean_register) * scale_register * *(const float4*)(gamma + thread * 4) + *(const float4*)(beta + thread * 4);
    if (thread * 4 < 2) {
        *(float4_u*)(Y + block_x * 37 + thread * 4 + 32) = (X_register_1 - mean_register) * scale_register * *(const float4*)(gamma + thread * 4 + 32) + *(const float4*)(beta + thread * 4 + 32);
    } else {
        if (thread * 4 < 5) {
            store_first_global_float4_u(Y + block_x * 37 + thread * 4 + 32, (X_register_1 - mean_register) * scale_register * load_first_global_float4(gamma + thread * 4 + 32, 5 - thread * 4, float4(0.0f)) + load_first_global_float4(beta + thread * 4 + 32, 5 - thread * 4, float4(0.0f)), 5 - thread * 4);
        }
    }
}
