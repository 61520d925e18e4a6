// A wave of 32 walks over k: two 16 x 16 x 16 products a round.
typedef float float8v __attribute__((ext_vector_type(8)));
typedef _Float16 half16v __attribute__((ext_vector_type(16)));
extern "C" __global__ void __launch_bounds__(32) wmma(const half16v* a, const half16v* b, float8v* c, int size) {
  const int lane = threadIdx.x;
  float8v sum[2] = {};
#pragma unroll 1
  for (int k = 0; k < size; ++k) {
    const half16v left = a[k * 32 + lane];
#pragma unroll
    for (int j = 0; j < 2; ++j) sum[j] = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(left, b[(k * 2 + j) * 32 + lane], sum[j]);
  }
#pragma unroll
  for (int j = 0; j < 2; ++j) c[j * 32 + lane] = sum[j];
}
