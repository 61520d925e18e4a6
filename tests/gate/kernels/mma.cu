// A warp walks over k: two asynchronous copies, ldmatrix for both operands, four m16n8k16 products a round.
extern "C" __global__ void __launch_bounds__(32) mma(const unsigned short* a, const unsigned short* b, float* c, int size) {
  __shared__ __align__(16) unsigned short left[16 * 16], right[32 * 16];
  const int lane = threadIdx.x;
  const unsigned at_left = __cvta_generic_to_shared(left), at_right = __cvta_generic_to_shared(right);
  float sum[4][4] = {};
#pragma unroll 1
  for (int k = 0; k < size; k += 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at_left + lane * 16), "l"(a + lane / 2 * size + k + lane % 2 * 8));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at_right + lane * 16), "l"(b + lane * size + k));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at_right + 512 + lane * 16), "l"(b + lane * size + k + 8));
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 0;");
    __syncwarp();
    unsigned x[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(at_left + lane % 16 * 32 + lane / 16 * 16));
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      unsigned y[2];
      asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                   : "=r"(y[0]), "=r"(y[1])
                   : "r"(at_right + lane / 8 % 2 * 512 + (j * 8 + lane % 8) * 16));
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                   : "+f"(sum[j][0]), "+f"(sum[j][1]), "+f"(sum[j][2]), "+f"(sum[j][3])
                   : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    }
    __syncwarp();
  }
#pragma unroll
  for (int j = 0; j < 4; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i) c[(lane / 4 + i / 2 * 8) * 32 + j * 8 + lane % 4 * 2 + i % 2] = sum[j][i];
}
