
static inline float maximum_float(float a, float b) {  // NaN if either is NaN, as in NumPy
    const float r = a > b ? a : b;
    return a == a ? r : a;
}

static inline float exp_float(float x) {  // 2^n * e^r with n whole and |r| <= log(2) / 2
    float y = x > 89.0f ? (float)(89.0f) : x;
    y = y < -104.0f ? (float)(-104.0f) : y;
    const float shifted = y * 1.44269504f + 12582912.0f;  // the sum's low bits are n
    const float n = shifted - 12582912.0f;
    const int whole = as_int(shifted) - 0x4b400000;
    const float r = (y - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = r * 1.38144649e-3f + 8.36878084e-3f;
    p = p * r + 4.16683927e-2f;
    p = p * r + 1.66665196e-1f;
    p = p * r + 4.99999940e-1f;
    p = p * (r * r) + r;
    const int half_of_n = whole >> 1;  // as two factors, so that results can be infinite or denormal
    return (p + 1.0f) * as_float((half_of_n + 127) << 23) * as_float((whole - half_of_n + 127) << 23);
}

// 2 x 1 x 1 blocks of 128 threads, 8832 bytes of shared memory
__kernel __attribute__((reqd_work_group_size(128, 1, 1)))
void O(
    __global const float* restrict Q,
    __global const float* restrict K,
    __global const float* restrict V,
    __global float* restrict O)
{
    __local float Q_shared[176] __attribute__((aligned(64)));
    __local float peak_shared[16] __attribute__((aligned(64)));
    __local float peak_before[16] __attribute__((aligned(64)));
    __local float total_shared[16] __attribute__((aligned(64)));
    __local float K_shared[352] __attribute__((aligned(64)));
    __local float V_shared[352] __attribute__((aligned(64)));
    __local float S_shared[512] __attribute__((aligned(64)));
    __local float peak_chunk_state_meet[128] __attribute__((aligned(64)));
    __local float P_shared[512] __attribute__((aligned(64)));
    __local float total_chunk_state_meet[128] __attribute__((aligned(64)));
    const int block_x = (int)get_group_id(0);
    const int thread = (int)get_local_id(0);
    for (int i_round = 0; i_round < 2; ++i_round) {
        if ((i_round * 128 + thread) / 11 < 16) {
            Q_shared[i_round * 128 + thread] = block_x * 16 + (i_round * 128 + thread) / 11 < 17 ? Q[block_x * 176 + i_round * 128 + thread] : 0.0f;
        }
    }
    float mix_state_0 = 0.0f;
    float mix_state_1 = 0.0f;
    float mix_state_2 = 0.0f;
    float mix_state_3 = 0.0f;
    float mix_state_4 = 0.0f;
    float mix_state_5 = 0.0f;
    float mix_state_6 = 0.0f;
    float mix_state_7 = 0.0f;
    if (thread < 16) {
        peak_shared[thread] = -INFINITY;
        peak_before[thread] = -INFINITY;
        total_shared[thread] = 0.0f;
    }
    for (int j = 0; j < 2; ++j) {
        for (int j_round = 0; j_round < 3; ++j_round) {
            if ((j_round * 128 + thread) / 11 < 32) {
                K_shared[j_round * 128 + thread] = j * 32 + (j_round * 128 + thread) / 11 < 37 ? K[j * 352 + j_round * 128 + thread] : 0.0f;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);  // read of V_shared[j_5, thread % 2 * 8 + e_1] at examples/18_online_softmax.py:66, one iteration of `j` earlier, then write of V_shared[(j_round_1 * 128 + thread) // 11, (j_round_1 * 128 + thread) % 11] at examples/18_online_softmax.py:61
        for (int j_round_1 = 0; j_round_1 < 3; ++j_round_1) {
            if ((j_round_1 * 128 + thread) / 11 < 32) {
                V_shared[j_round_1 * 128 + thread] = j * 32 + (j_round_1 * 128 + thread) / 11 < 37 ? V[j * 352 + j_round_1 * 128 + thread] : 0.0f;
            }
        }
        for (int j_1 = 0; j_1 < 4; ++j_1) {
            float S_state = 0.0f;
            for (int d = 0; d < 11; ++d) {
                S_state = S_state + Q_shared[thread / 8 * 11 + d] * K_shared[thread % 8 * 44 + j_1 * 11 + d];
            }
            if (block_x * 16 + thread / 8 < 17 && j * 32 + thread % 8 * 4 + j_1 < 37) {
                S_shared[thread * 4 + j_1] = S_state;
            }
        }
        float peak_chunk_state = -INFINITY;
        for (int j_2 = 0; j_2 < 4; ++j_2) {
            if (block_x * 16 + thread / 8 < 17 && j * 32 + thread % 8 * 4 + j_2 < 37) {
                peak_chunk_state = maximum_float(peak_chunk_state, S_shared[thread * 4 + j_2]);
            }
        }
        peak_chunk_state_meet[thread] = peak_chunk_state;
        barrier(CLK_LOCAL_MEM_FENCE);  // write of peak_chunk_state_meet[0, thread] at examples/18_online_softmax.py:63, then read of peak_chunk_state_meet[0, thread + 4] at examples/18_online_softmax.py:63
        if (thread % 8 < 4) {
            peak_chunk_state_meet[thread] = maximum_float(peak_chunk_state_meet[thread], peak_chunk_state_meet[thread + 4]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);  // write of peak_chunk_state_meet[0, thread] at examples/18_online_softmax.py:63, then read of peak_chunk_state_meet[0, thread + 2] at examples/18_online_softmax.py:63
        if (thread % 8 < 2) {
            peak_chunk_state_meet[thread] = maximum_float(peak_chunk_state_meet[thread], peak_chunk_state_meet[thread + 2]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);  // write of peak_chunk_state_meet[0, thread] at examples/18_online_softmax.py:63, then read of peak_chunk_state_meet[0, thread + 1] at examples/18_online_softmax.py:63
        if (thread % 8 < 1) {
            peak_chunk_state_meet[thread] = maximum_float(peak_chunk_state_meet[thread], peak_chunk_state_meet[thread + 1]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);  // write of peak_chunk_state_meet[0, thread] at examples/18_online_softmax.py:63, then read of peak_chunk_state_meet[0, thread - thread % 8] at examples/18_online_softmax.py:63
        peak_chunk_state = peak_chunk_state_meet[thread - thread % 8];
        if (block_x * 16 + thread / 8 < 17 && thread % 8 == 0) {
            peak_before[thread / 8] = peak_shared[thread / 8];
            peak_shared[thread / 8] = maximum_float(peak_shared[thread / 8], peak_chunk_state);
        }
        barrier(CLK_LOCAL_MEM_FENCE);  // write of peak_shared[thread // 8] at examples/18_online_softmax.py:63, then read of peak_shared[thread // 8] at examples/18_online_softmax.py:64
        for (int j_3 = 0; j_3 < 4; ++j_3) {
            if (block_x * 16 + thread / 8 < 17 && j * 32 + thread % 8 * 4 + j_3 < 37) {
                P_shared[thread * 4 + j_3] = exp_float(S_shared[thread * 4 + j_3] - peak_shared[thread / 8]);
            }
        }
        float total_chunk_state = 0.0f;
        for (int j_4 = 0; j_4 < 4; ++j_4) {
            if (block_x * 16 + thread / 8 < 17 && j * 32 + thread % 8 * 4 + j_4 < 37) {
                total_chunk_state = total_chunk_state + P_shared[thread * 4 + j_4];
            }
        }
        total_chunk_state_meet[thread] = total_chunk_state;
        barrier(CLK_LOCAL_MEM_FENCE);  // write of total_chunk_state_meet[0, thread] at examples/18_online_softmax.py:65, then read of total_chunk_state_meet[0, thread + 4] at examples/18_online_softmax.py:65
        if (thread % 8 < 4) {
            total_chunk_state_meet[thread] = total_chunk_state_meet[thread] + total_chunk_state_meet[thread + 4];
        }
        barrier(CLK_LOCAL_MEM_FENCE);  // write of total_chunk_state_meet[0, thread] at examples/18_online_softmax.py:65, then read of total_chunk_state_meet[0, thread + 2] at examples/18_online_softmax.py:65
        if (thread % 8 < 2) {
            total_chunk_state_meet[thread] = total_chunk_state_meet[thread] + total_chunk_state_meet[thread + 2];
        }
        barrier(CLK_LOCAL_MEM_FENCE);  // write of total_chunk_state_meet[0, thread] at examples/18_online_softmax.py:65, then read of total_chunk_state_meet[0, thread + 1] at examples/18_online_softmax.py:65
        if (thread % 8 < 1) {
            total_chunk_state_meet[thread] = total_chunk_state_meet[thread] + total_chunk_state_meet[thread + 1];
        }
        barrier(CLK_LOCAL_MEM_FENCE);  // write of total_chunk_state_meet[0, thread] at examples/18_online_softmax.py:65, then read of total_chunk_state_meet[0, thread - thread % 8] at examples/18_online_softmax.py:65
        total_chunk_state = total_chunk_state_meet[thread - thread % 8];
        if (block_x * 16 + thread / 8 < 17 && thread % 8 == 0) {
            total_shared[thread / 8] = (peak_before[thread / 8] == peak_shared[thread / 8] ? total_shared[thread / 8] : peak_before[thread / 8] == -INFINITY ? 0.0f : total_shared[thread / 8] * exp_float(peak_before[thread / 8] - peak_shared[thread / 8])) + total_chunk_state;
        }
        if (block_x * 16 + thread / 2 < 17 && thread / 2 < 16) {
            mix_state_0 = peak_before[thread / 2] == peak_shared[thread / 2] ? mix_state_0 : peak_before[thread / 2] == -INFINITY ? 0.0f : mix_state_0 * exp_float(peak_before[thread / 2] - peak_shared[thread / 2]);
            mix_state_1 = peak_before[thread / 2] == peak_shared[thread / 2] ? mix_state_1 : peak_before[thread / 2] == -INFINITY ? 0.0f : mix_state_1 * exp_float(peak_before[thread / 2] - peak_shared[thread / 2]);
            mix_state_2 = peak_before[thread / 2] == peak_shared[thread / 2] ? mix_state_2 : peak_before[thread / 2] == -INFINITY ? 0.0f : mix_state_2 * exp_float(peak_before[thread / 2] - peak_shared[thread / 2]);
            mix_state_3 = peak_before[thread / 2] == peak_shared[thread / 2] ? mix_state_3 : peak_before[thread / 2] == -INFINITY ? 0.0f : mix_state_3 * exp_float(peak_before[thread / 2] - peak_shared[thread / 2]);
            mix_state_4 = peak_before[thread / 2] == peak_shared[thread / 2] ? mix_state_4 : peak_before[thread / 2] == -INFINITY ? 0.0f : mix_state_4 * exp_float(peak_before[thread / 2] - peak_shared[thread / 2]);
            mix_state_5 = peak_before[thread / 2] == peak_shared[thread / 2] ? mix_state_5 : peak_before[thread / 2] == -INFINITY ? 0.0f : mix_state_5 * exp_float(peak_before[thread / 2] - peak_shared[thread / 2]);
            mix_state_6 = peak_before[thread / 2] == peak_shared[thread / 2] ? mix_state_6 : peak_before[thread / 2] == -INFINITY ? 0.0f : mix_state_6 * exp_float(peak_before[thread / 2] - peak_shared[thread / 2]);
            mix_state_7 = peak_before[thread / 2] == peak_shared[thread / 2] ? mix_state_7 : peak_before[thread / 2] == -INFINITY ? 0.0f : mix_state_7 * exp_float(peak_before[thread / 2] - peak_shared[thread / 2]);
        }
        for (int j_5 = 0; j_5 < min(32, 37 - j * 32); ++j_5) {
            if (block_x * 16 + thread / 2 < 17 && thread / 2 < 16) {
                mix_state_0 = mix_state_0 + P_shared[thread / 2 * 32 + j_5] * V_shared[j_5 * 11 + thread % 2 * 8];
                mix_state_1 = mix_state_1 + P_shared[thread / 2 * 32 + j_5] * V_shared[j_5 * 11 + thread % 2 * 8 + 1];
                mix_state_2 = mix_state_2 + P_shared[thread / 2 * 32 + j_5] * V_shared[j_5 * 11 + thread % 2 * 8 + 2];
            }
            if (block_x * 16 + thread / 2 < 17 && thread / 2 < 16 && thread % 2 * 8 < 8) {
                mix_state_3 = mix_state_3 + P_shared[thread / 2 * 32 + j_5] * V_shared[j_5 * 11 + thread % 2 * 8 + 3];
            }
            if (block_x * 16 + thread / 2 < 17 && thread / 2 < 16 && thread % 2 * 8 < 7) {
                mix_state_4 = mix_state_4 + P_shared[thread / 2 * 32 + j_5] * V_shared[j_5 * 11 + thread % 2 * 8 + 4];
            }
            if (block_x * 16 + thread / 2 < 17 && thread / 2 < 16 && thread % 2 * 8 < 6) {
                mix_state_5 = mix_state_5 + P_shared[thread / 2 * 32 + j_5] * V_shared[j_5 * 11 + thread % 2 * 8 + 5];
            }
            if (block_x * 16 + thread / 2 < 17 && thread / 2 < 16 && thread % 2 * 8 < 5) {
                mix_state_6 = mix_state_6 + P_shared[thread / 2 * 32 + j_5] * V_shared[j_5 * 11 + thread % 2 * 8 + 6];
            }
            if (block_x * 16 + thread / 2 < 17 && thread / 2 < 16 && thread % 2 * 8 < 4) {
                mix_state_7 = mix_state_7 + P_shared[thread / 2 * 32 + j_5] * V_shared[j_5 * 11 + thread % 2 * 8 + 7];
            }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);  // write of total_shared[thread // 8] at examples/18_online_softmax.py:65, then read of total_shared[thread // 2] at examples/18_online_softmax.py:66
    if (block_x * 16 + thread / 2 < 17 && thread / 2 < 16) {
        O[block_x * 176 + thread / 2 * 11 + thread % 2 * 8] = mix_state_0 / total_shared[thread / 2];
        O[block_x * 176 + thread / 2 * 11 + thread % 2 * 8 + 1] = mix_state_1 / total_shared[thread / 2];
        O[block_x * 176 + thread / 2 * 11 + thread % 2 * 8 + 2] = mix_state_2 / total_shared[thread / 2];
    }
    if (block_x * 16 + thread / 2 < 17 && thread / 2 < 16 && thread % 2 * 8 < 8) {
        O[block_x * 176 + thread / 2 * 11 + thread % 2 * 8 + 3] = mix_state_3 / total_shared[thread / 2];
    }
    if (block_x * 16 + thread / 2 < 17 && thread / 2 < 16 && thread % 2 * 8 < 7) {
        O[block_x * 176 + thread / 2 * 11 + thread % 2 * 8 + 4] = mix_state_4 / total_shared[thread / 2];
    }
    if (block_x * 16 + thread / 2 < 17 && thread / 2 < 16 && thread % 2 * 8 < 6) {
        O[block_x * 176 + thread / 2 * 11 + thread % 2 * 8 + 5] = mix_state_5 / total_shared[thread / 2];
    }
    if (block_x * 16 + thread / 2 < 17 && thread / 2 < 16 && thread % 2 * 8 < 5) {
        O[block_x * 176 + thread / 2 * 11 + thread % 2 * 8 + 6] = mix_state_6 / total_shared[thread / 2];
    }
    if (block_x * 16 + thread / 2 < 17 && thread / 2 < 16 && thread % 2 * 8 < 4) {
        O[block_x * 176 + thread / 2 * 11 + thread % 2 * 8 + 7] = mix_state_7 / total_shared[thread / 2];
    }
}
