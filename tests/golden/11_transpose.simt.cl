// 3 x 5 x 1 blocks of 32 threads, 288 bytes of shared memory
__kernel __attribute__((reqd_work_group_size(32, 1, 1)))
void Y(
    __global const float* restrict X,
    __global float* restrict Y)
{
    __local float X_shared[72] __attribute__((aligned(64)));
    const int block_x = (int)get_group_id(0);
    const int block_y = (int)get_group_id(1);
    const int thread = (int)get_local_id(0);
    for (int i = 0; i < 2; ++i) {
        X_shared[thread / 8 * 18 + i * 9 + thread % 8] = block_x * 8 + thread / 8 * 2 + i < 17 && block_y * 8 + thread % 8 < 37 ? X[block_x * 296 + thread / 8 * 74 + i * 37 + block_y * 8 + thread % 8] : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);  // write of X_shared[thread // 8 * 2 + i, thread % 8] at examples/11_transpose.py:39, then read of X_shared[thread % 8, thread // 8 * 2 + j] at examples/11_transpose.py:40
    for (int j = 0; j < 2; ++j) {
        if (block_y * 8 + thread / 8 * 2 + j < 37 && block_x * 8 + thread % 8 < 17) {
            Y[block_y * 136 + thread / 8 * 34 + j * 17 + block_x * 8 + thread % 8] = X_shared[thread % 8 * 9 + thread / 8 * 2 + j];
        }
    }
}
