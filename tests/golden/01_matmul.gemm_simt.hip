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
typedef vec<float, 4, 8> float4_u8;

__device__ __forceinline__ void store_first_global_float4(float* p, float4 v, long count) {  // touches the first `count` elements only
    if (count >= 4) {
        *(float4*)p = v;
        return;
    }
    if (count > 0) p[0] = v[0];
    if (count > 1) p[1] = v[1];
    if (count > 2) p[2] = v[2];
    if (count > 3) p[3] = v[3];
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

__device__ __forceinline__ void store_first_global_float4_u8(float* p, float4 v, long count) {  // touches the first `count` elements only
    if (count >= 4) {
        *(float4_u8*)p = v;
        return;
    }
    if (count > 0) p[0] = v[0];
    if (count > 1) p[1] = v[1];
    if (count > 2) p[2] = v[2];
    if (count > 3) p[3] = v[3];
}

// 1 x 1 x 1 blocks of 64 threads, 8448 bytes of shared memory
extern "C" __global__ void __launch_bounds__(64)
C(
    const float* __restrict__ A,
    const float* __restrict__ B,
    float* __restrict__ C)
{
    __shared__ float A_shared[1088] __attribute__((aligned(64)));
    __shared__ float B_shared[1024] __attribute__((aligned(64)));
    const int thread = (int)threadIdx.x;
    float4 C_state_0_0_0, C_state_0_0_1, C_state_0_0_2, C_state_0_0_3, C_state_0_1_0, C_state_0_1_1, C_state_0_1_2, C_state_0_1_3;
    float4 C_state_1_0_0, C_state_1_0_1, C_state_1_0_2, C_state_1_0_3, C_state_1_1_0, C_state_1_1_1, C_state_1_1_2, C_state_1_1_3;
    float4 A_staged_0, A_staged_1, B_staged_0, B_staged_1;
    C_state_0_0_0[0] = 0.0f;
    C_state_0_0_0[1] = 0.0f;
    C_state_0_0_0[2] = 0.0f;
    C_state_0_0_0[3] = 0.0f;
    C_state_0_0_1[0] = 0.0f;
    C_state_0_0_1[1] = 0.0f;
    C_state_0_0_1[2] = 0.0f;
    C_state_0_0_1[3] = 0.0f;
    C_state_0_0_2[0] = 0.0f;
    C_state_0_0_2[1] = 0.0f;
    C_state_0_0_2[2] = 0.0f;
    C_state_0_0_2[3] = 0.0f;
    C_state_0_0_3[0] = 0.0f;
    C_state_0_0_3[1] = 0.0f;
    C_state_0_0_3[2] = 0.0f;
    C_state_0_0_3[3] = 0.0f;
    C_state_0_1_0[0] = 0.0f;
    C_state_0_1_0[1] = 0.0f;
    C_state_0_1_0[2] = 0.0f;
    C_state_0_1_0[3] = 0.0f;
    C_state_0_1_1[0] = 0.0f;
    C_state_0_1_1[1] = 0.0f;
    C_state_0_1_1[2] = 0.0f;
    C_state_0_1_1[3] = 0.0f;
    C_state_0_1_2[0] = 0.0f;
    C_state_0_1_2[1] = 0.0f;
    C_state_0_1_2[2] = 0.0f;
    C_state_0_1_2[3] = 0.0f;
    C_state_0_1_3[0] = 0.0f;
    C_state_0_1_3[1] = 0.0f;
    C_state_0_1_3[2] = 0.0f;
    C_state_0_1_3[3] = 0.0f;
    C_state_1_0_0[0] = 0.0f;
    C_state_1_0_0[1] = 0.0f;
    C_state_1_0_0[2] = 0.0f;
    C_state_1_0_0[3] = 0.0f;
    C_state_1_0_1[0] = 0.0f;
    C_state_1_0_1[1] = 0.0f;
    C_state_1_0_1[2] = 0.0f;
    C_state_1_0_1[3] = 0.0f;
    C_state_1_0_2[0] = 0.0f;
    C_state_1_0_2[1] = 0.0f;
    C_state_1_0_2[2] = 0.0f;
    C_state_1_0_2[3] = 0.0f;
    C_state_1_0_3[0] = 0.0f;
    C_state_1_0_3[1] = 0.0f;
    C_state_1_0_3[2] = 0.0f;
    C_state_1_0_3[3] = 0.0f;
    C_state_1_1_0[0] = 0.0f;
    C_state_1_1_0[1] = 0.0f;
    C_state_1_1_0[2] = 0.0f;
    C_state_1_1_0[3] = 0.0f;
    C_state_1_1_1[0] = 0.0f;
    C_state_1_1_1[1] = 0.0f;
    C_state_1_1_1[2] = 0.0f;
    C_state_1_1_1[3] = 0.0f;
    C_state_1_1_2[0] = 0.0f;
    C_state_1_1_2[1] = 0.0f;
    C_state_1_1_2[2] = 0.0f;
    C_state_1_1_2[3] = 0.0f;
    C_state_1_1_3[0] = 0.0f;
    C_state_1_1_3[1] = 0.0f;
    C_state_1_1_3[2] = 0.0f;
    C_state_1_1_3[3] = 0.0f;
    for (int m_round = 0; m_round < 2; ++m_round) {
        float4 A_shared_lanes = m_round * 32 + thread / 2 < 17 ? *(const float4_u*)(A + m_round * 352 + thread / 2 * 11 + thread % 2 * 4) : float4(0.0f);
        A_shared[thread % 2 * 272 + m_round * 32 + thread / 2] = A_shared_lanes[0];
        A_shared[thread % 2 * 272 + m_round * 32 + thread / 2 + 68] = A_shared_lanes[1];
        A_shared[thread % 2 * 272 + m_round * 32 + thread / 2 + 136] = A_shared_lanes[2];
        A_shared[thread % 2 * 272 + m_round * 32 + thread / 2 + 204] = A_shared_lanes[3];
    }
    for (int k_round = 0; k_round < 2; ++k_round) {
        *(float4*)(B_shared + k_round * 256 + thread * 4) = load_first_global_float4_u(B + k_round * 148 + thread / 16 * 37 + thread % 16 * 4, 37 - thread % 16 * 4, float4(0.0f));
    }
    #pragma nounroll
    for (int k = 0; k < 2; ++k) {
        if (k < 1) {
            const int k_next = k + 1;
            A_staged_0 = thread / 2 < 17 ? load_first_global_float4_u(A + thread / 2 * 11 + k_next * 8 + thread % 2 * 4, 11 - k_next * 8 - thread % 2 * 4, float4(0.0f)) : float4(0.0f);
            A_staged_1 = float4(0.0f);
            const int k_next_1 = k + 1;
            B_staged_0 = k_next_1 * 8 + thread / 16 < 11 ? load_first_global_float4_u(B + k_next_1 * 296 + thread / 16 * 37 + thread % 16 * 4, 37 - thread % 16 * 4, float4(0.0f)) : float4(0.0f);
            B_staged_1 = float4(0.0f);
        }
        shared_barrier();  // write of A_shared[k, thread % 2 * 4 + lane_3, m_round_2 * 32 + thread // 2] at examples/01_matmul.py:66, one iteration of `k` earlier, then read of A_shared[k, k_1, A_r * 32 + thread // 8 * 4 + lane_6] at examples/01_matmul.py:70
        for (int k_1 = 0; k_1 < 8; ++k_1) {
            float4 A_register_0 = *(const float4*)(A_shared + k * 544 + k_1 * 68 + thread / 8 * 4);
            float4 A_register_1 = *(const float4*)(A_shared + k * 544 + k_1 * 68 + thread / 8 * 4 + 32);
            float4 B_register_0 = *(const float4*)(B_shared + k * 512 + k_1 * 64 + thread % 8 * 4);
            float4 B_register_1 = *(const float4*)(B_shared + k * 512 + k_1 * 64 + thread % 8 * 4 + 32);
            C_state_0_0_0[0] = C_state_0_0_0[0] + A_register_0[0] * B_register_0[0];
            C_state_0_0_0[1] = C_state_0_0_0[1] + A_register_0[0] * B_register_0[1];
            C_state_0_0_0[2] = C_state_0_0_0[2] + A_register_0[0] * B_register_0[2];
            C_state_0_0_0[3] = C_state_0_0_0[3] + A_register_0[0] * B_register_0[3];
            C_state_0_0_1[0] = C_state_0_0_1[0] + A_register_0[1] * B_register_0[0];
            C_state_0_0_1[1] = C_state_0_0_1[1] + A_register_0[1] * B_register_0[1];
            C_state_0_0_1[2] = C_state_0_0_1[2] + A_register_0[1] * B_register_0[2];
            C_state_0_0_1[3] = C_state_0_0_1[3] + A_register_0[1] * B_register_0[3];
            C_state_0_0_2[0] = C_state_0_0_2[0] + A_register_0[2] * B_register_0[0];
            C_state_0_0_2[1] = C_state_0_0_2[1] + A_register_0[2] * B_register_0[1];
            C_state_0_0_2[2] = C_state_0_0_2[2] + A_register_0[2] * B_register_0[2];
            C_state_0_0_2[3] = C_state_0_0_2[3] + A_register_0[2] * B_register_0[3];
            C_state_0_0_3[0] = C_state_0_0_3[0] + A_register_0[3] * B_register_0[0];
            C_state_0_0_3[1] = C_state_0_0_3[1] + A_register_0[3] * B_register_0[1];
            C_state_0_0_3[2] = C_state_0_0_3[2] + A_register_0[3] * B_register_0[2];
            C_state_0_0_3[3] = C_state_0_0_3[3] + A_register_0[3] * B_register_0[3];
            C_state_0_1_0[0] = C_state_0_1_0[0] + A_register_0[0] * B_register_1[0];
            C_state_0_1_0[1] = C_state_0_1_0[1] + A_register_0[0] * B_register_1[1];
            C_state_0_1_0[2] = C_state_0_1_0[2] + A_register_0[0] * B_register_1[2];
            C_state_0_1_0[3] = C_state_0_1_0[3] + A_register_0[0] * B_register_1[3];
            C_state_0_1_1[0] = C_state_0_1_1[0] + A_register_0[1] * B_register_1[0];
            C_state_0_1_1[1] = C_state_0_1_1[1] + A_register_0[1] * B_register_1[1];
            C_state_0_1_1[2] = C_state_0_1_1[2] + A_register_0[1] * B_register_1[2];
            C_state_0_1_1[3] = C_state_0_1_1[3] + A_register_0[1] * B_register_1[3];
            C_state_0_1_2[0] = C_state_0_1_2[0] + A_register_0[2] * B_register_1[0];
            C_state_0_1_2[1] = C_state_0_1_2[1] + A_register_0[2] * B_register_1[1];
            C_state_0_1_2[2] = C_state_0_1_2[2] + A_register_0[2] * B_register_1[2];
            C_state_0_1_2[3] = C_state_0_1_2[3] + A_register_0[2] * B_register_1[3];
            C_state_0_1_3[0] = C_state_0_1_3[0] + A_register_0[3] * B_register_1[0];
            C_state_0_1_3[1] = C_state_0_1_3[1] + A_register_0[3] * B_register_1[1];
            C_state_0_1_3[2] = C_state_0_1_3[2] + A_register_0[3] * B_register_1[2];
            C_state_0_1_3[3] = C_state_0_1_3[3] + A_register_0[3] * B_register_1[3];
            C_state_1_0_0[0] = C_state_1_0_0[0] + A_register_1[0] * B_register_0[0];
            C_state_1_0_0[1] = C_state_1_0_0[1] + A_register_1[0] * B_register_0[1];
            C_state_1_0_0[2] = C_state_1_0_0[2] + A_register_1[0] * B_register_0[2];
            C_state_1_0_0[3] = C_state_1_0_0[3] + A_register_1[0] * B_register_0[3];
            C_state_1_0_1[0] = C_state_1_0_1[0] + A_register_1[1] * B_register_0[0];
            C_state_1_0_1[1] = C_state_1_0_1[1] + A_register_1[1] * B_register_0[1];
            C_state_1_0_1[2] = C_state_1_0_1[2] + A_register_1[1] * B_register_0[2];
            C_state_1_0_1[3] = C_state_1_0_1[3] + A_register_1[1] * B_register_0[3];
            C_state_1_0_2[0] = C_state_1_0_2[0] + A_register_1[2] * B_register_0[0];
            C_state_1_0_2[1] = C_state_1_0_2[1] + A_register_1[2] * B_register_0[1];
            C_state_1_0_2[2] = C_state_1_0_2[2] + A_register_1[2] * B_register_0[2];
            C_state_1_0_2[3] = C_state_1_0_2[3] + A_register_1[2] * B_register_0[3];
            C_state_1_0_3[0] = C_state_1_0_3[0] + A_register_1[3] * B_register_0[0];
            C_state_1_0_3[1] = C_state_1_0_3[1] + A_register_1[3] * B_register_0[1];
            C_state_1_0_3[2] = C_state_1_0_3[2] + A_register_1[3] * B_register_0[2];
            C_state_1_0_3[3] = C_state_1_0_3[3] + A_register_1[3] * B_register_0[3];
            C_state_1_1_0[0] = C_state_1_1_0[0] + A_register_1[0] * B_register_1[0];
            C_state_1_1_0[1] = C_state_1_1_0[1] + A_register_1[0] * B_register_1[1];
            C_state_1_1_0[2] = C_state_1_1_0[2] + A_register_1[0] * B_register_1[2];
            C_state_1_1_0[3] = C_state_1_1_0[3] + A_register_1[0] * B_register_1[3];
            C_state_1_1_1[0] = C_state_1_1_1[0] + A_register_1[1] * B_register_1[0];
            C_state_1_1_1[1] = C_state_1_1_1[1] + A_register_1[1] * B_register_1[1];
            C_state_1_1_1[2] = C_state_1_1_1[2] + A_register_1[1] * B_register_1[2];
            C_state_1_1_1[3] = C_state_1_1_1[3] + A_register_1[1] * B_register_1[3];
            C_state_1_1_2[0] = C_state_1_1_2[0] + A_register_1[2] * B_register_1[0];
            C_state_1_1_2[1] = C_state_1_1_2[1] + A_register_1[2] * B_register_1[1];
            C_state_1_1_2[2] = C_state_1_1_2[2] + A_register_1[2] * B_register_1[2];
            C_state_1_1_2[3] = C_state_1_1_2[3] + A_register_1[2] * B_register_1[3];
            C_state_1_1_3[0] = C_state_1_1_3[0] + A_register_1[3] * B_register_1[0];
            C_state_1_1_3[1] = C_state_1_1_3[1] + A_register_1[3] * B_register_1[1];
            C_state_1_1_3[2] = C_state_1_1_3[2] + A_register_1[3] * B_register_1[2];
            C_state_1_1_3[3] = C_state_1_1_3[3] + A_register_1[3] * B_register_1[3];
        }
        if (k < 1) {
            const int k_next = k + 1;
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2] = A_staged_0[0];
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 68] = A_staged_0[1];
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 136] = A_staged_0[2];
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 204] = A_staged_0[3];
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 32] = A_staged_1[0];
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 100] = A_staged_1[1];
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 168] = A_staged_1[2];
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 236] = A_staged_1[3];
            const int k_next_1 = k + 1;
            *(float4*)(B_shared + (k + 1) % 2 * 512 + thread * 4) = B_staged_0;
            *(float4*)(B_shared + (k + 1) % 2 * 512 + thread * 4 + 256) = B_staged_1;
        }
    }
    if (thread / 8 * 4 < 17) {
        *(float4*)(C + thread / 8 * 148 + thread % 8 * 4) = C_state_0_0_0;
    }
    if (thread / 8 * 4 < 16) {
        *(float4_u*)(C + thread / 8 * 148 + thread % 8 * 4 + 37) = C_state_0_0_1;
    }
    if (thread / 8 * 4 < 15) {
        *(float4_u8*)(C + thread / 8 * 148 + thread % 8 * 4 + 74) = C_state_0_0_2;
    }
    if (thread / 8 * 4 < 14) {
        *(float4_u*)(C + thread / 8 * 148 + thread % 8 * 4 + 111) = C_state_0_0_3;
    }
    if (thread / 8 * 4 < 17) {
        if (thread % 8 * 4 < 2) {
            *(float4*)(C + thread / 8 * 148 + thread % 8 * 4 + 32) = C_state_0_1_0;
        } else {
            if (thread % 8 * 4 < 5) {
                store_first_global_float4(C + thread / 8 * 148 + thread % 8 * 4 + 32, C_state_0_1_0, 5 - thread % 8 * 4);
            }
        }
    }
    if (thread / 8 * 4 < 16) {
        if (thread % 8 * 4 < 2) {
            *(float4_u*)(C + thread / 8 * 148 + thread % 8 * 4 + 69) = C_state_0_1_1;
        } else {
            if (thread % 8 * 4 < 5) {
                store_first_global_float4_u(C + thread / 8 * 148 + thread % 8 * 4 + 69, C_state_0_1_1, 5 - thread % 8 * 4);
            }
        }
    }
    if (thread / 8 * 4 < 15) {
        if (thread % 8 * 4 < 2) {
            *(float4_u8*)(C + thread / 8 * 148 + thread % 8 * 4 + 106) = C_state_0_1_2;
        } else {
            if (thread % 8 * 4 < 5) {
                store_first_global_float4_u8(C + thread / 8 * 148 + thread % 8 * 4 + 106, C_state_0_1_2, 5 - thread % 8 * 4);
            }
        }
    }
    if (thread / 8 * 4 < 14) {
        if (thread % 8 * 4 < 2) {
            *(float4_u*)(C + thread / 8 * 148 + thread % 8 * 4 + 143) = C_state_0_1_3;
        } else {
            if (thread % 8 * 4 < 5) {
                store_first_global_float4_u(C + thread / 8 * 148 + thread % 8 * 4 + 143, C_state_0_1_3, 5 - thread % 8 * 4);
            }
        }
    }
}
