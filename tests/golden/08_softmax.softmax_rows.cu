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

// 3 x 1 x 1 blocks of 8 threads, 96 bytes of shared memory
extern "C" __global__ void __launch_bounds__(8)
Y(
    const float* __restrict__ X,
    float* Y)
{
    __shared__ float peak_state_meet[8] __attribute__((aligned(64)));
    __shared__ float total_state_meet[8] __attribute__((aligned(64)));
    const int block_x = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    float4 shifted_register_0, shifted_register_1;
    float4 X_register_0 = load_first_global_float4_u(X + block_x * 37 + thread * 4, 37 - thread * 4, float4(0.0f));
    float4 X_register_1 = load_first_global_float4_u(X + block_x * 37 + thread * 4 + 32, 5 - thread * 4, float4(0.0f));
    float peak_state = -INFINITY;
    peak_state = maximum(peak_state, X_register_0[0]);
    peak_state = maximum(peak_state, X_register_0[1]);
    peak_state = maximum(peak_state, X_register_0[2]);
    peak_state = maximum(peak_state, X_register_0[3]);
    if (thread * 4 < 5) {
        peak_state = maximum(peak_state, X_register_1[0]);
    }
    if (thread * 4 < 4) {
        peak_state = maximum(peak_state, X_register_1[1]);
    }
    if (thread * 4 < 3) {
        peak_state = maximum(peak_state, X_register_1[2]);
    }
    if (thread * 4 < 2) {
        peak_state = maximum(peak_state, X_register_1[3]);
    }
    peak_state_meet[thread] = peak_state;
    __syncthreads();  // write of peak_state_meet[0, thread] at examples/08_softmax.py:50, then read of peak_state_meet[0, thread + 4] at examples/08_softmax.py:50
    if (thread < 4) {
        peak_state_meet[thread] = maximum(peak_state_meet[thread], peak_state_meet[thread + 4]);
    }
    __syncthreads();  // write of peak_state_meet[0, thread] at examples/08_softmax.py:50, then read of peak_state_meet[0, thread + 2] at examples/08_softmax.py:50
    if (thread < 2) {
        peak_state_meet[thread] = maximum(peak_state_meet[thread], peak_state_meet[thread + 2]);
    }
    __syncthreads();  // write of peak_state_meet[0, thread] at examples/08_softmax.py:50, then read of peak_state_meet[0, thread + 1] at examples/08_softmax.py:50
    if (thread < 1) {
        peak_state_meet[thread] = maximum(peak_state_meet[thread], peak_state_meet[thread + 1]);
    }
    __syncthreads();  // write of peak_state_meet[0, thread] at examples/08_softmax.py:50, then read of peak_state_meet[0, 0] at examples/08_softmax.py:50
    peak_state = peak_state_meet[0];
    float peak_register = peak_state;
    shifted_register_0[0] = exp(X_register_0[0] - peak_register);
    shifted_register_0[1] = exp(X_register_0[1] - peak_register);
    shifted_register_0[2] = exp(X_register_0[2] - peak_register);
    shifted_register_0[3] = exp(X_register_0[3] - peak_register);
    shifted_register_1[0] = exp(X_register_1[0] - peak_register);
    shifted_register_1[1] = exp(X_register_1[1] - peak_register);
    shifted_register_1[2] = exp(X_register_1[2] - peak_register);
    shifted_register_1[3] = exp(X_register_1[3] - peak_register);
    float total_state = 0.0f;
    total_state = total_state + shifted_register_0[0];
    total_state = total_state + shifted_register_0[1];
    total_state = total_state + shifted_register_0[2];
    total_state = total_state + shifted_register_0[3];
    if (thread * 4 < 5) {
        total_state = total_state + shifted_register_1[0];
    }
    if (thread * 4 < 4) {
        total_state = total_state + shifted_register_1[1];
    }
    if (thread * 4 < 3) {
        total_state = total_state + shifted_register_1[2];
    }
    if (thread * 4 < 2) {
        total_state = total_state + shifted_register_1[3];
    }
    total_state_meet[thread] = total_state;
    __syncthreads();  // write of total_state_meet[0, thread] at examples/08_softmax.py:52, then read of total_state_meet[0, thread + 4] at examples/08_softmax.py:52
    if (thread < 4) {
        total_state_meet[thread] = total_state_meet[thread] + total_state_meet[thread + 4];
    }
    __syncthreads();  // write of total_state_meet[0, thread] at examples/08_softmax.py:52, then read of total_state_meet[0, thread + 2] at examples/08_softmax.py:52
    if (thread < 2) {
        total_state_meet[thread] = total_state_meet[thread] + total_state_meet[thread + 2];
    }
    __syncthreads();  // write of total_state_meet[0, thread] at examples/08_softmax.py:52, then read of total_state_meet[0, thread + 1] at examples/08_softmax.py:52
    if (thread < 1) {
        total_state_meet[thread] = total_state_meet[thread] + total_state_meet[thread + 1];
    }
    __syncthreads();  // write of total_state_meet[0, thread] at examples/08_softmax.py:52, then read of total_state_meet[0, 0] at examples/08_softmax.py:52
    total_state = total_state_meet[0];
    float total_register = total_state;
    *(float4_u*)(Y + block_x * 37 + thread * 4) = shifted_register_0 / total_register;
    if (thread * 4 < 2) {
        *(float4_u*)(Y + block_x * 37 + thread * 4 + 32) = shifted_register_1 / total_register;
    } else {
        if (thread * 4 < 5) {
            store_first_global_float4_u(Y + block_x * 37 + thread * 4 + 32, shifted_register_1 / total_register, 5 - thread * 4);
        }
    }
}
