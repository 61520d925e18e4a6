// 3 x 1 x 1 blocks of 4 threads, 80 bytes of shared memory
extern "C" __global__ void __launch_bounds__(4)
Y(
    const float* __restrict__ X,
    int* Y)
{
    __shared__ float Y_argmax_0_state_meet[4] __attribute__((aligned(64)));
    __shared__ int Y_argmax_1_state_meet[4] __attribute__((aligned(64)));
    const int block_x = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    float Y_argmax_0_state = -INFINITY;
    int Y_argmax_1_state = 2147483647;
    for (int j_round = 0; j_round < 10; ++j_round) {
        if (j_round * 4 + thread < 37) {
            float Y_argmax_0_state_value = X[block_x * 37 + j_round * 4 + thread];
            uchar Y_argmax_0_state_common = (uchar)((Y_argmax_0_state < Y_argmax_0_state_value || (Y_argmax_0_state_value != Y_argmax_0_state_value && !(Y_argmax_0_state != Y_argmax_0_state))) || ((Y_argmax_0_state == Y_argmax_0_state_value || (Y_argmax_0_state != Y_argmax_0_state && Y_argmax_0_state_value != Y_argmax_0_state_value)) && (int)(j_round * 4 + thread) < Y_argmax_1_state));
            Y_argmax_0_state = Y_argmax_0_state_common != 0 ? (float)Y_argmax_0_state_value : Y_argmax_0_state;
            Y_argmax_1_state = Y_argmax_0_state_common != 0 ? (int)(j_round * 4 + thread) : Y_argmax_1_state;
        }
    }
    Y_argmax_0_state_meet[thread] = Y_argmax_0_state;
    Y_argmax_1_state_meet[thread] = Y_argmax_1_state;
    __syncthreads();  // write of Y_argmax_0_state_meet[0, thread], then read of Y_argmax_0_state_meet[0, thread + 2]
    if (thread < 2) {
        float Y_argmax_0_state_meet_value = Y_argmax_0_state_meet[thread];
        int Y_argmax_0_state_meet_value_1 = Y_argmax_1_state_meet[thread];
        float Y_argmax_0_state_meet_value_2 = Y_argmax_0_state_meet[thread + 2];
        int Y_argmax_0_state_meet_value_3 = Y_argmax_1_state_meet[thread + 2];
        uchar Y_argmax_0_state_meet_common = (uchar)((Y_argmax_0_state_meet_value < Y_argmax_0_state_meet_value_2 || (Y_argmax_0_state_meet_value_2 != Y_argmax_0_state_meet_value_2 && !(Y_argmax_0_state_meet_value != Y_argmax_0_state_meet_value))) || ((Y_argmax_0_state_meet_value == Y_argmax_0_state_meet_value_2 || (Y_argmax_0_state_meet_value != Y_argmax_0_state_meet_value && Y_argmax_0_state_meet_value_2 != Y_argmax_0_state_meet_value_2)) && Y_argmax_0_state_meet_value_3 < Y_argmax_0_state_meet_value_1));
        Y_argmax_0_state_meet[thread] = Y_argmax_0_state_meet_common != 0 ? (float)Y_argmax_0_state_meet_value_2 : Y_argmax_0_state_meet_value;
        Y_argmax_1_state_meet[thread] = Y_argmax_0_state_meet_common != 0 ? (int)Y_argmax_0_state_meet_value_3 : Y_argmax_0_state_meet_value_1;
    }
    __syncthreads();  // write of Y_argmax_0_state_meet[0, thread], then read of Y_argmax_0_state_meet[0, thread + 1]
    if (thread < 1) {
        float Y_argmax_0_state_meet_value_4 = Y_argmax_0_state_meet[thread];
        int Y_argmax_0_state_meet_value_5 = Y_argmax_1_state_meet[thread];
        float Y_argmax_0_state_meet_value_6 = Y_argmax_0_state_meet[thread + 1];
        int Y_argmax_0_state_meet_value_7 = Y_argmax_1_state_meet[thread + 1];
        uchar Y_argmax_0_state_meet_common_1 = (uchar)((Y_argmax_0_state_meet_value_4 < Y_argmax_0_state_meet_value_6 || (Y_argmax_0_state_meet_value_6 != Y_argmax_0_state_meet_value_6 && !(Y_argmax_0_state_meet_value_4 != Y_argmax_0_state_meet_value_4))) || ((Y_argmax_0_state_meet_value_4 == Y_argmax_0_state_meet_value_6 || (Y_argmax_0_state_meet_value_4 != Y_argmax_0_state_meet_value_4 && Y_argmax_0_state_meet_value_6 != Y_argmax_0_state_meet_value_6)) && Y_argmax_0_state_meet_value_7 < Y_argmax_0_state_meet_value_5));
        Y_argmax_0_state_meet[thread] = Y_argmax_0_state_meet_common_1 != 0 ? (float)Y_argmax_0_state_meet_value_6 : Y_argmax_0_state_meet_value_4;
        Y_argmax_1_state_meet[thread] = Y_argmax_0_state_meet_common_1 != 0 ? (int)Y_argmax_0_state_meet_value_7 : Y_argmax_0_state_meet_value_5;
    }
    __syncthreads();  // write of Y_argmax_0_state_meet[0, thread], then read of Y_argmax_0_state_meet[0, 0]
    Y_argmax_0_state = Y_argmax_0_state_meet[0];
    Y_argmax_1_state = Y_argmax_1_state_meet[0];
    if (thread == 0) {
        Y[block_x] = Y_argmax_1_state;
    }
}
