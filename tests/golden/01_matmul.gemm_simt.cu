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
typedef vec<float, 4, 8> float4_u8;

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

// 2 x 1 x 1 blocks of 32 threads, 6400 bytes of shared memory
extern "C" __global__ void __launch_bounds__(32)
C(
    const float* __restrict__ A,
    const float* __restrict__ B,
    float* C)
{
    __shared__ float A_shared[1088] __attribute__((aligned(64)));
    __shared__ float B_shared[512] __attribute__((aligned(64)));
    const int block_x = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    float4 C_state_0_0_0, C_state_0_0_1, C_state_0_0_2, C_state_0_0_3, C_state_0_1_0, C_state_0_1_1, C_state_0_1_2, C_state_0_1_3;
    float4 C_state_1_0_0, C_state_1_0_1, C_state_1_0_2, C_state_1_0_3, C_state_1_1_0, C_state_1_1_1, C_state_1_1_2, C_state_1_1_3;
    float4 A_staged_0, A_staged_1, A_staged_2, A_staged_3;
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
    for (int m_round = 0; m_round < 4; ++m_round) {
        float4 A_shared_lanes = m_round * 16 + thread / 2 < 17 ? *(const float4_u*)(A + m_round * 176 + thread / 2 * 11 + thread % 2 * 4) : float4(0.0f);
        A_shared[thread % 2 * 272 + m_round * 16 + thread / 2] = A_shared_lanes[0];
        A_shared[thread % 2 * 272 + m_round * 16 + thread / 2 + 68] = A_shared_lanes[1];
        A_shared[thread % 2 * 272 + m_round * 16 + thread / 2 + 136] = A_shared_lanes[2];
        A_shared[thread % 2 * 272 + m_round * 16 + thread / 2 + 204] = A_shared_lanes[3];
    }
    for (int k_round = 0; k_round < 2; ++k_round) {
        async_copy_first_4(B_shared + k_round * 128 + thread * 4, B + k_round * 148 + thread / 8 * 37 + block_x * 32 + thread % 8 * 4, max(min(1, 37 - block_x * 32 - thread % 8 * 4), 0) * 4);
        async_copy_first_4(B_shared + k_round * 128 + thread * 4 + 1, B + k_round * 148 + thread / 8 * 37 + block_x * 32 + thread % 8 * 4 + 1, max(min(1, 36 - block_x * 32 - thread % 8 * 4), 0) * 4);
        async_copy_first_4(B_shared + k_round * 128 + thread * 4 + 2, B + k_round * 148 + thread / 8 * 37 + block_x * 32 + thread % 8 * 4 + 2, max(min(1, 35 - block_x * 32 - thread % 8 * 4), 0) * 4);
        async_copy_first_4(B_shared + k_round * 128 + thread * 4 + 3, B + k_round * 148 + thread / 8 * 37 + block_x * 32 + thread % 8 * 4 + 3, max(min(1, 34 - block_x * 32 - thread % 8 * 4), 0) * 4);
    }
    async_commit();
    for (int k = 0; k < 2; ++k) {
        async_wait<0>();
        if (k < 1) {
            const int k_next = k + 1;
            A_staged_0 = load_first_global_float4_u(A + thread / 2 * 11 + k_next * 8 + thread % 2 * 4, 11 - k_next * 8 - thread % 2 * 4, float4(0.0f));
            A_staged_1 = thread / 2 < 1 ? load_first_global_float4_u(A + thread / 2 * 11 + k_next * 8 + thread % 2 * 4 + 176, 11 - k_next * 8 - thread % 2 * 4, float4(0.0f)) : float4(0.0f);
            A_staged_2 = float4(0.0f);
            A_staged_3 = float4(0.0f);
            const int k_next_1 = k + 1;
            for (int k_round_1 = 0; k_round_1 < 2; ++k_round_1) {
                async_copy_first_4(B_shared + (k + 1) % 2 * 256 + k_round_1 * 128 + thread * 4, B + k_next_1 * 296 + k_round_1 * 148 + thread / 8 * 37 + block_x * 32 + thread % 8 * 4, (k_next_1 * 8 + k_round_1 * 4 + thread / 8 < 11 ? max(min(1, 37 - block_x * 32 - thread % 8 * 4), 0) : 0) * 4);
                async_copy_first_4(B_shared + (k + 1) % 2 * 256 + k_round_1 * 128 + thread * 4 + 1, B + k_next_1 * 296 + k_round_1 * 148 + thread / 8 * 37 + block_x * 32 + thread % 8 * 4 + 1, (k_next_1 * 8 + k_round_1 * 4 + thread / 8 < 11 ? max(min(1, 36 - block_x * 32 - thread % 8 * 4), 0) : 0) * 4);
                async_copy_first_4(B_shared + (k + 1) % 2 * 256 + k_round_1 * 128 + thread * 4 + 2, B + k_next_1 * 296 + k_round_1 * 148 + thread / 8 * 37 + block_x * 32 + thread % 8 * 4 + 2, (k_next_1 * 8 + k_round_1 * 4 + thread / 8 < 11 ? max(min(1, 35 - block_x * 32 - thread % 8 * 4), 0) : 0) * 4);
                async_copy_first_4(B_shared + (k + 1) % 2 * 256 + k_round_1 * 128 + thread * 4 + 3, B + k_next_1 * 296 + k_round_1 * 148 + thread / 8 * 37 + block_x * 32 + thread % 8 * 4 + 3, (k_next_1 * 8 + k_round_1 * 4 + thread / 8 < 11 ? max(min(1, 34 - block_x * 32 - thread % 8 * 4), 0) : 0) * 4);
            }
        }
        async_commit();
        __syncthreads();  // write of B_shared[0, k_round * 4 + thread // 8, thread % 8 * 4 + piece_1] at examples/01_matmul.py:67, then read of B_shared[k, k_1, B_r * 16 + thread % 4 * 4 + lane_4] at examples/01_matmul.py:71
        for (int k_1 = 0; k_1 < 8; ++k_1) {
            float4 A_register_0 = *(const float4*)(A_shared + k * 544 + k_1 * 68 + thread / 4 * 4);
            float4 A_register_1 = *(const float4*)(A_shared + k * 544 + k_1 * 68 + thread / 4 * 4 + 32);
            float4 B_register_0 = *(const float4*)(B_shared + k * 256 + k_1 * 32 + thread % 4 * 4);
            float4 B_register_1 = *(const float4*)(B_shared + k * 256 + k_1 * 32 + thread % 4 * 4 + 16);
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
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 16] = A_staged_1[0];
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 84] = A_staged_1[1];
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 152] = A_staged_1[2];
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 220] = A_staged_1[3];
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 32] = A_staged_2[0];
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 100] = A_staged_2[1];
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 168] = A_staged_2[2];
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 236] = A_staged_2[3];
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 48] = A_staged_3[0];
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 116] = A_staged_3[1];
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 184] = A_staged_3[2];
            A_shared[(k + 1) % 2 * 544 + thread % 2 * 272 + thread / 2 + 252] = A_staged_3[3];
        }
    }
    if (thread / 4 * 4 < 17) {
        if (block_x * 32 + thread % 4 * 4 < 34) {
            *(float4*)(C + thread / 4 * 148 + block_x * 32 + thread % 4 * 4) = C_state_0_0_0;
        } else {
            if (block_x * 32 + thread % 4 * 4 < 37) {
                store_first_global_float4(C + thread / 4 * 148 + block_x * 32 + thread % 4 * 4, C_state_0_0_0, 37 - block_x * 32 - thread % 4 * 4);
            }
        }
    }
    if (thread / 4 * 4 < 16) {
        if (block_x * 32 + thread % 4 * 4 < 34) {
            *(float4_u*)(C + thread / 4 * 148 + block_x * 32 + thread % 4 * 4 + 37) = C_state_0_0_1;
        } else {
            if (block_x * 32 + thread % 4 * 4 < 37) {
                store_first_global_float4_u(C + thread / 4 * 148 + block_x * 32 + thread % 4 * 4 + 37, C_state_0_0_1, 37 - block_x * 32 - thread % 4 * 4);
            }
        }
    }
    if (thread / 4 * 4 < 15) {
        if (block_x * 32 + thread % 4 * 4 < 34) {
            *(float4_u8*)(C + thread / 4 * 148 + block_x * 32 + thread % 4 * 4 + 74) = C_state_0_0_2;
        } else {
            if (block_x * 32 + thread % 4 * 4 < 37) {
                store_first_global_float4_u8(C + thread / 4 * 148 + block_x * 32 + thread % 4 * 4 + 74, C_state_0_0_2, 37 - block_x * 32 - thread % 4 * 4);
            }
        }
    }
    if (thread / 4 * 4 < 14) {
        if (block_x * 32 + thread % 4 * 4 < 34) {
            *(float4_u*)(C + thread / 4 * 148 + block_x * 32 + thread % 4 * 4 + 111) = C_state_0_0_3;
        } else {
            if (block_x * 32 + thread % 4 * 4 < 37) {
                store_first_global_float4_u(C + thread / 4 * 148 + block_x * 32 + thread % 4 * 4 + 111, C_state_0_0_3, 37 - block_x * 32 - thread % 4 * 4);
            }
        }
    }
    if (thread / 4 * 4 < 17) {
        if (block_x * 32 + thread % 4 * 4 < 18) {
            *(float4*)(C + thread / 4 * 148 + block_x * 32 + thread % 4 * 4 + 16) = C_state_0_1_0;
        } else {
            if (block_x * 32 + thread % 4 * 4 < 21) {
                store_first_global_float4(C + thread / 4 * 148 + block_x * 32 + thread % 4 * 4 + 16, C_state_0_1_0, 21 - block_x * 32 - thread % 4 * 4);
            }
        }
    }
    if (thread / 4 * 4 < 16) {
        if (block_x * 32 + thread % 4 * 4 < 18) {
            *(float4_u*)(C + thread / 4 * 148 + block_x * 32 + thread % 4 * 4 + 53) = C_state_0_1_1;
        } else {
            if (block_x * 32 + thread % 4 * 4 < 21) {
                store_first_global_float4_u(C + thread / 4 * 148 + block_x * 32 + thread % 4 * 4 + 53, C_state_0_1_1, 21 - block_x * 32 - thread % 4 * 4);
            }
        }
    }
    if (thread / 4 * 4 < 15) {
        if (block_x * 32 + thread % 4 * 4 < 18) {
            *(float4_u8*)(C + thread / 4 * 148 + block_x * 32 + thread % 4 * 4 + 90) = C_state_0_1_2;
        } else {
            if (block_x * 32 + thread % 4 * 4 < 21) {
                store_first_global_float4_u8(C + thread / 4 * 148 + block_x * 32 + thread % 4 * 4 + 90, C_state_0_1_2, 21 - block_x * 32 - thread % 4 * 4);
            }
        }
    }
    if (thread / 4 * 4 < 14) {
        if (block_x * 32 + thread % 4 * 4 < 18) {
            *(float4_u*)(C + thread / 4 * 148 + block_x * 32 + thread % 4 * 4 + 127) = C_state_0_1_3;
        } else {
            if (block_x * 32 + thread % 4 * 4 < 21) {
                store_first_global_float4_u(C + thread / 4 * 148 + block_x * 32 + thread % 4 * 4 + 127, C_state_0_1_3, 21 - block_x * 32 - thread % 4 * 4);
            }
        }
    }
}
