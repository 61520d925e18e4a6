// A warpgroup walks over k: two tensor copies behind a barrier, and four m64n8k16 products a round, operands in shared memory.
struct alignas(64) TensorMap {
  unsigned long long words[16];
};
__device__ __forceinline__ unsigned long long descriptor(unsigned address) {
  return (unsigned long long)((address & 0x3FFFF) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}
extern "C" __global__ void __launch_bounds__(128)
    wgmma(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, float* c, int size) {
  __shared__ __align__(1024) unsigned short left[64 * 64], right[8 * 64];
  __shared__ __align__(8) unsigned long long arrived;
  const unsigned at_left = __cvta_generic_to_shared(left), at_right = __cvta_generic_to_shared(right);
  const unsigned at_barrier = __cvta_generic_to_shared(&arrived);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at_barrier));
    asm volatile("fence.mbarrier_init.release.cluster;");
  }
  __syncthreads();
  float sum[4] = {};
  int phase = 0;
#pragma unroll 1
  for (int k = 0; k < size; k += 64, phase ^= 1) {
    if (threadIdx.x == 0) {
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at_barrier), "r"(9216));
      asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
                       at_left), "l"(&a), "r"(at_barrier), "r"(k), "r"(0) : "memory");
      asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
                       at_right), "l"(&b), "r"(at_barrier), "r"(k), "r"(0) : "memory");
    }
    asm volatile(
        "{\n.reg .pred p;\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra DONE;\nbra WAIT;\nDONE:\n}" ::"r"(
            at_barrier), "r"(phase));
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int inner = 0; inner < 4; ++inner)
      asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
                   : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                   : "l"(descriptor(at_left + inner * 32)), "l"(descriptor(at_right + inner * 32)));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) c[threadIdx.x * 4 + i] = sum[i];
}
