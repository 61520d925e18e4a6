// A replacement for HIP's own header, written with clang's builtins: kernels compile without ROCm's headers and device libraries.
// It contains only functions that the back end can expand without a device library.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __HIP_LAUNCH_BOUNDS_1(n) __attribute__((amdgpu_flat_work_group_size(1, n)))
#define __HIP_LAUNCH_BOUNDS_2(n, waves) __attribute__((amdgpu_flat_work_group_size(1, n), amdgpu_waves_per_eu(waves)))
#define __HIP_LAUNCH_BOUNDS(one, two, chosen, ...) chosen
#define __launch_bounds__(...) __HIP_LAUNCH_BOUNDS(__VA_ARGS__, __HIP_LAUNCH_BOUNDS_2, __HIP_LAUNCH_BOUNDS_1)(__VA_ARGS__)

typedef __SIZE_TYPE__ size_t;
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __UINTPTR_TYPE__ uintptr_t;

// The indices of a thread and its block.
#define __HIP_NUMBER(name, builtin)                                      \
  struct __hip_##name {                                                  \
    __declspec(property(get = __x)) unsigned x;                          \
    __declspec(property(get = __y)) unsigned y;                          \
    __declspec(property(get = __z)) unsigned z;                          \
    __device__ __forceinline__ unsigned __x() const { return builtin##_x(); } \
    __device__ __forceinline__ unsigned __y() const { return builtin##_y(); } \
    __device__ __forceinline__ unsigned __z() const { return builtin##_z(); } \
  };                                                                     \
  extern const __device__ __attribute__((weak)) __hip_##name name;
__HIP_NUMBER(threadIdx, __builtin_amdgcn_workitem_id)
__HIP_NUMBER(blockIdx, __builtin_amdgcn_workgroup_id)
__HIP_NUMBER(blockDim, __builtin_amdgcn_workgroup_size)
#undef __HIP_NUMBER

__device__ __forceinline__ void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
__device__ __forceinline__ void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
__device__ __forceinline__ void __threadfence_block() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }
__device__ __forceinline__ unsigned __lane_id() {
  return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
}

#define __HIP_ONE(type, name, builtin) __device__ __forceinline__ type name(type x) { return builtin(x); }
#define __HIP_TWO(type, name, builtin) __device__ __forceinline__ type name(type x, type y) { return builtin(x, y); }
#define __HIP_BOTH(name) __HIP_ONE(float, name##f, __builtin_##name##f) __HIP_ONE(double, name, __builtin_##name)
__HIP_BOTH(sqrt) __HIP_BOTH(fabs) __HIP_BOTH(floor) __HIP_BOTH(ceil) __HIP_BOTH(trunc) __HIP_BOTH(rint)
__HIP_ONE(float, expf, __builtin_expf) __HIP_ONE(float, exp2f, __builtin_exp2f)
__HIP_ONE(float, logf, __builtin_logf) __HIP_ONE(float, log2f, __builtin_log2f) __HIP_ONE(float, log10f, __builtin_log10f)
__HIP_ONE(float, rsqrtf, __builtin_amdgcn_rsqf)
__HIP_TWO(float, fminf, __builtin_fminf) __HIP_TWO(float, fmaxf, __builtin_fmaxf)
__HIP_TWO(double, fmin, __builtin_fmin) __HIP_TWO(double, fmax, __builtin_fmax)
__HIP_TWO(float, copysignf, __builtin_copysignf) __HIP_TWO(double, copysign, __builtin_copysign)
#undef __HIP_BOTH
#undef __HIP_TWO
#undef __HIP_ONE
__device__ __forceinline__ float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
__device__ __forceinline__ double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
__device__ __forceinline__ float ldexpf(float x, int n) { return __builtin_amdgcn_ldexpf(x, n); }
__device__ __forceinline__ int atomicAdd(int* place, int value) {
  return __hip_atomic_fetch_add(place, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
__device__ __forceinline__ int min(int x, int y) { return x < y ? x : y; }
__device__ __forceinline__ int max(int x, int y) { return x > y ? x : y; }

__device__ __forceinline__ float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
__device__ __forceinline__ float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
__device__ __forceinline__ int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
__device__ __forceinline__ unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
__device__ __forceinline__ long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
__device__ __forceinline__ double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }

// Shuffles between the lanes of a wave, by ds_bpermute.
__device__ __forceinline__ int __shfl(int value, int lane, int width = __builtin_amdgcn_wavefrontsize()) {
  int self = __lane_id();
  return __builtin_amdgcn_ds_bpermute(((lane & (width - 1)) + (self & ~(width - 1))) << 2, value);
}
__device__ __forceinline__ int __shfl_xor(int value, int mask, int width = __builtin_amdgcn_wavefrontsize()) {
  int self = __lane_id(), other = self ^ mask;
  return __builtin_amdgcn_ds_bpermute((other >= ((self + width) & ~(width - 1)) ? self : other) << 2, value);
}
__device__ __forceinline__ int __shfl_down(int value, unsigned by, int width = __builtin_amdgcn_wavefrontsize()) {
  int self = __lane_id();
  return __builtin_amdgcn_ds_bpermute(((self & (width - 1)) + (int)by >= width ? self : self + (int)by) << 2, value);
}
__device__ __forceinline__ int __shfl_up(int value, unsigned by, int width = __builtin_amdgcn_wavefrontsize()) {
  int self = __lane_id();
  return __builtin_amdgcn_ds_bpermute(((self & (width - 1)) < (int)by ? self : self - (int)by) << 2, value);
}
#define __HIP_SHUFFLE(name, by)                                                                         \
  __device__ __forceinline__ float name(float value, by n, int width = __builtin_amdgcn_wavefrontsize()) { \
    return __int_as_float(name(__float_as_int(value), n, width));                                       \
  }                                                                                                     \
  __device__ __forceinline__ unsigned name(unsigned value, by n, int width = __builtin_amdgcn_wavefrontsize()) { \
    return (unsigned)name((int)value, n, width);                                                        \
  }
__HIP_SHUFFLE(__shfl, int)
__HIP_SHUFFLE(__shfl_xor, int)
__HIP_SHUFFLE(__shfl_down, unsigned)
__HIP_SHUFFLE(__shfl_up, unsigned)
#undef __HIP_SHUFFLE
