// A wave of 64 walks over k: four 16 x 16 products a round, both operands straight from global memory.
typedef float float4v __attribute__((ext_vector_type(4)));
typedef _Float16 half4v __attribute__((ext_vector_type(4)));
extern "C" __global__ void __launch_bounds__(64) mfma(const half4v* a, const half4v* b, float4v* c, int size) {
  const int lane = threadIdx.x;
  float4v sum[4] = {};
#pragma unroll 1
  for (int k = 0; k < size; ++k) {
    const half4v left = a[k * 64 + lane];
#pragma unroll
    for (int j = 0; j < 4; ++j)
      sum[j] = __builtin_amdgcn_mfma_f32_16x16x16f16(left, b[(k * 4 + j) * 64 + lane], sum[j], 0, 0, 0);
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) c[j * 64 + lane] = sum[j];
}
