// 3 x 5 x 1 blocks of 32 threads, 288 bytes of shared memory
extern "C" __global__ void __launch_bounds__(32)
Y(
    const float* __restrict__ X,
    float* Y)
{
    __shared__ float X_shared[72] __attribute__((aligned(64)));
    const int block_x = (int)blockIdx.x;
    const int block_y = (int)blockIdx.y;
    const int thread = (int)threadIdx.x;
    for (int i = 0; i < 2; ++i) {
        X_shared[thread / 8 * 18 + i * 9 + thread % 8] = block_x * 8 + thread / 8 * 2 + i < 17 && block_y * 8 + thread % 8 < 37 ? X[block_x * 296 + thread / 8 * 74 + i * 37 + block_y * 8 + thread % 8] : 0.0f;
    }
    __syncthreads();  // write of X_shared[thread // 8 * 2 + i, thread % 8] at examples/11_transpose.py:39, then read of X_shared[thread % 8, thread // 8 * 2 + j] at examples/11_transpose.py:40
    for (int j = 0; j < 2; ++j) {
        if (block_y * 8 + thread / 8 * 2 + j < 37 && block_x * 8 + thread % 8 < 17) {
            Y[block_y * 136 + thread / 8 * 34 + j * 17 + block_x * 8 + thread % 8] = X_shared[thread % 8 * 9 + thread / 8 * 2 + j];
        }
    }
}
