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
#define as_float(...) __builtin_bit_cast(float, (__VA_ARGS__))
#define as_int(...) __builtin_bit_cast(int, (__VA_ARGS__))
#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

static inline float sigmoid_float(float x) {  // 2^w / (2^w + e^r), where x = w log(2) - r; the denominator with extra precision
    float y = x > 25.0f ? (float)(25.0f) : x;
    y = y < -104.0f ? (float)(-104.0f) : y;
    const float power = 1.0f;
    const float shifted = y * 1.44269504f + 12583063.0f;
    const float w = shifted - 12583063.0f;
    const float r = (w * 0.693359375f - y) - w * 2.12194440e-4f;
    float p = r * 1.38189388e-3f + 8.36870354e-3f;
    p = p * r + 4.16682884e-2f;
    p = p * r + 1.66665211e-1f;
    p = p * r + 4.99999940e-1f;
    p = p * (r * r) + r;
    const float scale = as_float(as_int(shifted) << 23);  // 2^(w + 24), which is never denormal
    const float unit = scale * 0x1p-24f;
    const float large = unit > power ? unit : power;
    const float small = (unit > power ? power : unit) + p;
    const float sum = large + small;
    const float rest = small - (sum - large);
    const float first = 1.0f / sum;
    return (first - (first * first) * rest) * scale * 0x1p-24f;
}

// 3 x 2 x 3 blocks of 1 thread, 576 bytes of shared memory
static inline __attribute__((always_inline)) void Y_block(
    const float* restrict X,
    const float* restrict W,
    const float* restrict bias,
    float* restrict Y,
    float* restrict X_shared,
    float* restrict W_shared,
    float* restrict Y_sum_state_by_thread,
    const long* restrict block)
{
    const int block_x = (int)block[0];
    const int block_y = (int)block[1];
    const int block_z = (int)block[2];
    for (int tid = 0; tid < 16; ++tid) {
        Y_sum_state_by_thread[tid * 4] = 0.0f;
        Y_sum_state_by_thread[tid * 4 + 1] = 0.0f;
        Y_sum_state_by_thread[tid * 4 + 2] = 0.0f;
        Y_sum_state_by_thread[tid * 4 + 3] = 0.0f;
    }
    for (int k = 0; k < 2; ++k) {
        for (int tid = 0; tid < 16; ++tid) {
            for (int b_round = 0; b_round < 2; ++b_round) {
                *(X_shared + tid % 4 * 9 + b_round * 4 + tid / 4) = block_y * 8 + b_round * 4 + tid / 4 < 11 && k * 4 + tid % 4 < 7 ? *(X + block_z * 77 + block_y * 56 + b_round * 28 + tid / 4 * 7 + k * 4 + tid % 4) : 0.0f;
            }
            for (int b_round_1 = 0; b_round_1 < 2; ++b_round_1) {
                *(W_shared + b_round_1 * 16 + tid) = k * 4 + b_round_1 * 2 + tid / 8 < 7 && block_x * 8 + tid % 8 < 19 ? *(W + block_z * 133 + k * 76 + b_round_1 * 38 + tid / 8 * 19 + block_x * 8 + tid % 8) : 0.0f;
            }
        }
        for (int tid = 0; tid < 16; ++tid) {
            float Y_sum_state_0_0 = Y_sum_state_by_thread[tid * 4];
            float Y_sum_state_0_1 = Y_sum_state_by_thread[tid * 4 + 1];
            float Y_sum_state_1_0 = Y_sum_state_by_thread[tid * 4 + 2];
            float Y_sum_state_1_1 = Y_sum_state_by_thread[tid * 4 + 3];
            for (int k_1 = 0; k_1 < 4; ++k_1) {
                float X_register_0 = *(X_shared + k_1 * 9 + tid / 4 * 2);
                float X_register_1 = *(X_shared + k_1 * 9 + tid / 4 * 2 + 1);
                float W_register_0 = *(W_shared + k_1 * 8 + tid % 4 * 2);
                float W_register_1 = *(W_shared + k_1 * 8 + tid % 4 * 2 + 1);
                Y_sum_state_0_0 = Y_sum_state_0_0 + X_register_0 * W_register_0;
                Y_sum_state_0_1 = Y_sum_state_0_1 + X_register_0 * W_register_1;
                Y_sum_state_1_0 = Y_sum_state_1_0 + X_register_1 * W_register_0;
                Y_sum_state_1_1 = Y_sum_state_1_1 + X_register_1 * W_register_1;
            }
            Y_sum_state_by_thread[tid * 4] = Y_sum_state_0_0;
            Y_sum_state_by_thread[tid * 4 + 1] = Y_sum_state_0_1;
            Y_sum_state_by_thread[tid * 4 + 2] = Y_sum_state_1_0;
            Y_sum_state_by_thread[tid * 4 + 3] = Y_sum_state_1_1;
        }
    }
    for (int tid = 0; tid < 16; ++tid) {
        for (int m_1 = 0; m_1 < 2; ++m_1) {
            for (int n_1 = 0; n_1 < 2; ++n_1) {
                if (block_y * 8 + tid / 4 * 2 + m_1 < 11 && block_x * 8 + tid % 4 * 2 + n_1 < 19) {
                    *(Y + block_z * 209 + block_y * 152 + tid / 4 * 38 + m_1 * 19 + block_x * 8 + tid % 4 * 2 + n_1) = (*(Y_sum_state_by_thread + tid * 4 + m_1 * 2 + n_1) + *(bias + block_x * 8 + tid % 4 * 2 + n_1)) * sigmoid_float((*(Y_sum_state_by_thread + tid * 4 + m_1 * 2 + n_1) + *(bias + block_x * 8 + tid % 4 * 2 + n_1)) * ((*(Y_sum_state_by_thread + tid * 4 + m_1 * 2 + n_1) + *(bias + block_x * 8 + tid % 4 * 2 + n_1)) * (*(Y_sum_state_by_thread + tid * 4 + m_1 * 2 + n_1) + *(bias + block_x * 8 + tid % 4 * 2 + n_1)) * 0.071354814f + 1.5957692f));
                }
            }
        }
    }
}

EXPORT void Y(void* const* arguments, char* scratch, long first, long last)
{
#pragma nounroll
    for (long number = first; number < last; ++number) {
        const long block[3] = {number % 3, number / 3 % 2, number / 6};
        Y_block(arguments[0], arguments[1], arguments[2], arguments[3], (void*)(scratch + 0), (void*)(scratch + 192), (void*)(scratch + 320), block);
    }
}
