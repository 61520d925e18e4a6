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

// 5 x 1 x 1 blocks of 4 threads, 16 bytes of shared memory
extern "C" __global__ void __launch_bounds__(4)
Y(
    const float* __restrict__ X,
    float* Y)
{
    __shared__ float Y_fold_1_meet[4] __attribute__((aligned(64)));
    const int block_x = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    float4 Y_state = float4(0.0f);
    for (int j_round = 0; j_round < 3; ++j_round) {
        if (j_round * 16 + thread * 4 < 34) {
            Y_state = Y_state + *(const float4_u*)(X + block_x * 37 + j_round * 16 + thread * 4);
        } else {
            if (j_round * 16 + thread * 4 < 37) {
                Y_state = choose(int4(0, 1, 2, 3) < int4(37 - j_round * 16 - thread * 4), Y_state + load_first_global_float4_u(X + block_x * 37 + j_round * 16 + thread * 4, 37 - j_round * 16 - thread * 4, float4(0.0f)), Y_state);
            }
        }
    }
    float2 Y_fold = part<0, 2>(Y_state) + part<2, 2>(Y_state);
    float Y_fold_1 = Y_fold[0] + Y_fold[1];
    Y_fold_1_meet[thread] = Y_fold_1;
    __syncthreads();  // write of Y_fold_1_meet[0, thread], then read of Y_fold_1_meet[0, thread + 2]
    if (thread < 2) {
        Y_fold_1_meet[thread] = Y_fold_1_meet[thread] + Y_fold_1_meet[thread + 2];
    }
    __syncthreads();  // write of Y_fold_1_meet[0, thread], then read of Y_fold_1_meet[0, thread + 1]
    if (thread < 1) {
        Y_fold_1_meet[thread] = Y_fold_1_meet[thread] + Y_fold_1_meet[thread + 1];
    }
    __syncthreads();  // write of Y_fold_1_meet[0, thread], then read of Y_fold_1_meet[0, 0]
    Y_fold_1 = Y_fold_1_meet[0];
    if (thread == 0) {
        Y[block_x] = Y_fold_1;
    }
}
