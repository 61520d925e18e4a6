#if defined(__CHAR_UNSIGNED__)
#error "compile with -fsigned-char"
#endif
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long long ulong;
typedef __SIZE_TYPE__ size_t;
#define char signed char
#define long long long
#define INFINITY __builtin_inff()
#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
// 3 x 1 x 1 blocks of 1 thread, 80 bytes of shared memory
static inline __attribute__((always_inline)) void Y_block(
    const float* restrict X,
    int* restrict Y,
    float* restrict Y_argmax_0_state_meet,
    int* restrict Y_argmax_1_state_meet,
    const long* restrict block)
{
    const int block_x = (int)block[0];
    float Y_argmax_0_state;
    int Y_argmax_1_state;
    for (int tid = 0; tid < 4; ++tid) {
        Y_argmax_0_state = -INFINITY;
        Y_argmax_1_state = 2147483647;
        for (int j_round = 0; j_round < 10; ++j_round) {
            if (j_round * 4 + tid < 37) {
                float Y_argmax_0_state_value = *(X + block_x * 37 + j_round * 4 + tid);
                uchar Y_argmax_0_state_common = (uchar)((Y_argmax_0_state < Y_argmax_0_state_value || (Y_argmax_0_state_value != Y_argmax_0_state_value && !(Y_argmax_0_state != Y_argmax_0_state))) || ((Y_argmax_0_state == Y_argmax_0_state_value || (Y_argmax_0_state != Y_argmax_0_state && Y_argmax_0_state_value != Y_argmax_0_state_value)) && (int)(j_round * 4 + tid) < Y_argmax_1_state));
                Y_argmax_0_state = Y_argmax_0_state_common != 0 ? Y_argmax_0_state_value : Y_argmax_0_state;
                Y_argmax_1_state = Y_argmax_0_state_common != 0 ? (int)(j_round * 4 + tid) : Y_argmax_1_state;
            }
        }
        Y_argmax_0_state_meet[tid] = Y_argmax_0_state;
        Y_argmax_1_state_meet[tid] = Y_argmax_1_state;
    }
    for (int tid = 0; tid < 2; ++tid) {
        float Y_argmax_0_state_meet_value = Y_argmax_0_state_meet[tid];
        int Y_argmax_0_state_meet_value_1 = Y_argmax_1_state_meet[tid];
        float Y_argmax_0_state_meet_value_2 = Y_argmax_0_state_meet[tid + 2];
        int Y_argmax_0_state_meet_value_3 = Y_argmax_1_state_meet[tid + 2];
        uchar Y_argmax_0_state_meet_common = (uchar)((Y_argmax_0_state_meet_value < Y_argmax_0_state_meet_value_2 || (Y_argmax_0_state_meet_value_2 != Y_argmax_0_state_meet_value_2 && !(Y_argmax_0_state_meet_value != Y_argmax_0_state_meet_value))) || ((Y_argmax_0_state_meet_value == Y_argmax_0_state_meet_value_2 || (Y_argmax_0_state_meet_value != Y_argmax_0_state_meet_value && Y_argmax_0_state_meet_value_2 != Y_argmax_0_state_meet_value_2)) && Y_argmax_0_state_meet_value_3 < Y_argmax_0_state_meet_value_1));
        Y_argmax_0_state_meet[tid] = Y_argmax_0_state_meet_common != 0 ? Y_argmax_0_state_meet_value_2 : Y_argmax_0_state_meet_value;
        Y_argmax_1_state_meet[tid] = Y_argmax_0_state_meet_common != 0 ? Y_argmax_0_state_meet_value_3 : Y_argmax_0_state_meet_value_1;
    }
    float Y_argmax_0_state_meet_value_4 = Y_argmax_0_state_meet[0];
    int Y_argmax_0_state_meet_value_5 = Y_argmax_1_state_meet[0];
    float Y_argmax_0_state_meet_value_6 = Y_argmax_0_state_meet[1];
    int Y_argmax_0_state_meet_value_7 = Y_argmax_1_state_meet[1];
    uchar Y_argmax_0_state_meet_common_1 = (uchar)((Y_argmax_0_state_meet_value_4 < Y_argmax_0_state_meet_value_6 || (Y_argmax_0_state_meet_value_6 != Y_argmax_0_state_meet_value_6 && !(Y_argmax_0_state_meet_value_4 != Y_argmax_0_state_meet_value_4))) || ((Y_argmax_0_state_meet_value_4 == Y_argmax_0_state_meet_value_6 || (Y_argmax_0_state_meet_value_4 != Y_argmax_0_state_meet_value_4 && Y_argmax_0_state_meet_value_6 != Y_argmax_0_state_meet_value_6)) && Y_argmax_0_state_meet_value_7 < Y_argmax_0_state_meet_value_5));
    Y_argmax_0_state_meet[0] = Y_argmax_0_state_meet_common_1 != 0 ? Y_argmax_0_state_meet_value_6 : Y_argmax_0_state_meet_value_4;
    Y_argmax_1_state_meet[0] = Y_argmax_0_state_meet_common_1 != 0 ? Y_argmax_0_state_meet_value_7 : Y_argmax_0_state_meet_value_5;
    Y_argmax_0_state = Y_argmax_0_state_meet[0];
    Y_argmax_1_state = Y_argmax_1_state_meet[0];
    Y[block_x] = Y_argmax_1_state;
}

EXPORT void Y(void* const* arguments, char* scratch, long first, long last)
{
#pragma nounroll
    for (long number = first; number < last; ++number) {
        const long block[3] = {number % 3, number / 3 % 1, number / 3};
        Y_block(arguments[0], arguments[1], (void*)(scratch + 0), (void*)(scratch + 64), block);
    }
}
