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

// 2 x 3 x 1 blocks of 8 threads, 272 bytes of shared memory
extern "C" __global__ void __launch_bounds__(8)
Y(
    const int* __restrict__ ids,
    const float* __restrict__ table,
    float* Y)
{
    __shared__ int ids_shared[4] __attribute__((aligned(64)));
    __shared__ float table_shared[64] __attribute__((aligned(64)));
    const int block_x = (int)blockIdx.x;
    const int block_y = (int)blockIdx.y;
    const int thread = (int)threadIdx.x;
    float Y_state_0 = 0.0f;
    float Y_state_1 = 0.0f;
    float Y_state_2 = 0.0f;
    float Y_state_3 = 0.0f;
    for (int t = 0; t < 2; ++t) {
        if (thread / 2 < 2) {
            ids_shared[thread] = block_y * 2 + thread / 2 < 5 && t * 2 + thread % 2 < 3 ? ids[block_y * 6 + thread / 2 * 3 + t * 2 + thread % 2] : 0;
        }
        __syncthreads();  // write of ids_shared[thread // 2, thread % 2] at examples/12_embedding_bag.py:45, then read of ids_shared[b_round, thread // 4] at examples/12_embedding_bag.py:46
        for (int b_round = 0; b_round < 2; ++b_round) {
            *(float4*)(table_shared + b_round * 32 + thread * 4) = block_y * 2 + b_round < 5 && t * 2 + thread / 4 < 3 ? load_first_global_float4_u(table + ids_shared[b_round * 2 + thread / 4] * 19 + block_x * 16 + thread % 4 * 4, 19 - block_x * 16 - thread % 4 * 4, float4(0.0f)) : float4(0.0f);
        }
        __syncthreads();  // write of table_shared[b_round, thread // 4, thread % 4 * 4 + lane] at examples/12_embedding_bag.py:46, then read of table_shared[thread // 4, t_1, thread % 4 * 4 + e] at examples/12_embedding_bag.py:48
        for (int t_1 = 0; t_1 < 2; ++t_1) {
            Y_state_0 = Y_state_0 + table_shared[thread / 4 * 32 + t_1 * 16 + thread % 4 * 4];
            Y_state_1 = Y_state_1 + table_shared[thread / 4 * 32 + t_1 * 16 + thread % 4 * 4 + 1];
            Y_state_2 = Y_state_2 + table_shared[thread / 4 * 32 + t_1 * 16 + thread % 4 * 4 + 2];
            Y_state_3 = Y_state_3 + table_shared[thread / 4 * 32 + t_1 * 16 + thread % 4 * 4 + 3];
        }
    }
    if (block_y * 2 + thread / 4 < 5 && block_x * 16 + thread % 4 * 4 < 19) {
        Y[block_y * 38 + thread / 4 * 19 + block_x * 16 + thread % 4 * 4] = Y_state_0;
    }
    if (block_y * 2 + thread / 4 < 5 && block_x * 16 + thread % 4 * 4 < 18) {
        Y[block_y * 38 + thread / 4 * 19 + block_x * 16 + thread % 4 * 4 + 1] = Y_state_1;
    }
    if (block_y * 2 + thread / 4 < 5 && block_x * 16 + thread % 4 * 4 < 17) {
        Y[block_y * 38 + thread / 4 * 19 + block_x * 16 + thread % 4 * 4 + 2] = Y_state_2;
    }
    if (block_y * 2 + thread / 4 < 5 && block_x * 16 + thread % 4 * 4 < 16) {
        Y[block_y * 38 + thread / 4 * 19 + block_x * 16 + thread % 4 * 4 + 3] = Y_state_3;
    }
}
