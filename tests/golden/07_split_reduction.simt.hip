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

// 11 x 3 x 1 blocks of 4 threads, 16 bytes of shared memory
extern "C" __global__ void __launch_bounds__(4)
Y(
    const float* __restrict__ X,
    float* __restrict__ Y_partial)
{
    __shared__ float Y_fold_1_meet[4] __attribute__((aligned(64)));
    const int block_x = (int)blockIdx.x;
    const int block_y = (int)blockIdx.y;
    const int thread = (int)threadIdx.x;
    float4 Y_state = float4(0.0f);
    for (int j_round = 0; j_round < 2; ++j_round) {
        if (block_x * 32 + j_round * 16 + thread * 4 < 330) {
            Y_state = Y_state + *(const float4_u*)(X + block_y * 333 + block_x * 32 + j_round * 16 + thread * 4) * *(const float4_u*)(X + block_y * 333 + block_x * 32 + j_round * 16 + thread * 4);
        } else {
            if (block_x * 32 + j_round * 16 + thread * 4 < 333) {
                Y_state = choose(int4(0, 1, 2, 3) < int4(333 - block_x * 32 - j_round * 16 - thread * 4), Y_state + load_first_global_float4_u(X + block_y * 333 + block_x * 32 + j_round * 16 + thread * 4, 333 - block_x * 32 - j_round * 16 - thread * 4, float4(0.0f)) * load_first_global_float4_u(X + block_y * 333 + block_x * 32 + j_round * 16 + thread * 4, 333 - block_x * 32 - j_round * 16 - thread * 4, float4(0.0f)), Y_state);
            }
        }
    }
    float2 Y_fold = part<0, 2>(Y_state) + part<2, 2>(Y_state);
    float Y_fold_1 = Y_fold[0] + Y_fold[1];
    Y_fold_1_meet[thread] = Y_fold_1;
    shared_barrier();  // write of Y_fold_1_meet[0, thread], then read of Y_fold_1_meet[0, thread + 2]
    if (thread < 2) {
        Y_fold_1_meet[thread] = Y_fold_1_meet[thread] + Y_fold_1_meet[thread + 2];
    }
    shared_barrier();  // write of Y_fold_1_meet[0, thread], then read of Y_fold_1_meet[0, thread + 1]
    if (thread < 1) {
        Y_fold_1_meet[thread] = Y_fold_1_meet[thread] + Y_fold_1_meet[thread + 1];
    }
    shared_barrier();  // write of Y_fold_1_meet[0, thread], then read of Y_fold_1_meet[0, 0]
    Y_fold_1 = Y_fold_1_meet[0];
    if (thread == 0) {
        Y_partial[block_x * 3 + block_y] = Y_fold_1;
    }
}

// 1 x 1 x 1 blocks of 3 threads, 0 bytes of shared memory
extern "C" __global__ void __launch_bounds__(3)
Y_combine_1(
    float* __restrict__ Y,
    const float* __restrict__ Y_partial)
{
    const int thread = (int)threadIdx.x;
    float Y_state = 0.0f;
    for (int j_part = 0; j_part < 11; ++j_part) {
        Y_state = Y_state + Y_partial[j_part * 3 + thread];
    }
    Y[thread] = Y_state;
}
