// The words of CUDA C++ and HIP C++ for a compiler that knows neither: qualifiers, thread numbers, barriers, functions.
#pragma once
#include "races.h"

#pragma clang attribute push(__attribute__((no_sanitize("thread"))), apply_to = function)

#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __shared__ static __attribute__((section("emulated_shared")))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__

#define threadIdx (emulated::current->thread)
#define blockIdx (emulated::block)
#define blockDim (emulated::threads)
#define gridDim (emulated::blocks)
#define warpSize (int(emulated::warp_size))
#define __CUDA_ARCH__ 900

static inline void __syncthreads() { emulated::meet(emulated::barriers[0], emulated::thread_count, "__syncthreads()"); }

static inline void __syncwarp(unsigned mask = ~0u) {
    int nothing = 0;
    emulated::together("__syncwarp()", emulated::warp_size, emulated::unit_width(emulated::warp_size), nothing, [](int**) {});
}

static inline void __threadfence() {}
static inline void __threadfence_block() {}
static inline size_t __cvta_generic_to_shared(const void* pointer) { return emulated::shared_address(pointer); }

extern "C" {
float expf(float), exp2f(float), logf(float), log2f(float), log1pf(float), expm1f(float), sinf(float), cosf(float), tanhf(float);
float erff(float), powf(float, float), sqrtf(float), floorf(float), ceilf(float), rintf(float), roundf(float), truncf(float);
float fabsf(float), fmaf(float, float, float), fmaxf(float, float), fminf(float, float), fmodf(float, float), copysignf(float, float);
float ldexpf(float, int), nearbyintf(float), exp10f(float);
double exp(double), exp2(double), log(double), log2(double), log1p(double), expm1(double), sin(double), cos(double), tanh(double);
double erf(double), pow(double, double), sqrt(double), floor(double), ceil(double), rint(double), round(double), trunc(double);
double fabs(double), fma(double, double, double), fmax(double, double), fmin(double, double), fmod(double, double);
double copysign(double, double), ldexp(double, int);
}
#define EMULATED_OVERLOAD(name) \
    static inline float name(float x) { return name##f(x); }
EMULATED_OVERLOAD(exp) EMULATED_OVERLOAD(exp2) EMULATED_OVERLOAD(log) EMULATED_OVERLOAD(log2) EMULATED_OVERLOAD(log1p)
EMULATED_OVERLOAD(expm1) EMULATED_OVERLOAD(sin) EMULATED_OVERLOAD(cos) EMULATED_OVERLOAD(tanh) EMULATED_OVERLOAD(erf)
EMULATED_OVERLOAD(sqrt) EMULATED_OVERLOAD(floor) EMULATED_OVERLOAD(ceil) EMULATED_OVERLOAD(rint) EMULATED_OVERLOAD(round)
EMULATED_OVERLOAD(trunc) EMULATED_OVERLOAD(fabs)
#undef EMULATED_OVERLOAD
static inline float pow(float x, float y) { return powf(x, y); }
static inline float fmod(float x, float y) { return fmodf(x, y); }
static inline float copysign(float x, float y) { return copysignf(x, y); }
static inline float ldexp(float x, int n) { return ldexpf(x, n); }
static inline float fma(float x, float y, float z) { return fmaf(x, y, z); }
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline float rsqrt(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline double __dmul_rn(double x, double y) {
#pragma clang fp contract(off)
    return x * y;
}
static inline float __expf(float x) { return expf(x); }
static inline float __exp10f(float x) { return exp10f(x); }
static inline float __logf(float x) { return logf(x); }
static inline float __log2f(float x) { return log2f(x); }
static inline float __sinf(float x) { return sinf(x); }
static inline float __cosf(float x) { return cosf(x); }
static inline float __powf(float x, float y) { return powf(x, y); }
static inline float __fdividef(float x, float y) { return x / y; }
static inline float __frcp_rn(float x) { return 1.0f / x; }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline float __fdiv_rn(float x, float y) { return x / y; }
static inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
static inline float __fmul_rn(float x, float y) {
#pragma clang fp contract(off)
    return x * y;
}
static inline float __fadd_rn(float x, float y) {
#pragma clang fp contract(off)
    return x + y;
}
static inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
static inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
static inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
static inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
template <class T>
static inline T __ldg(const T* pointer) {
    return *pointer;
}

static inline int atomicAdd(int* place, int value) {  // threads take turns, so that nothing comes between; it races with none of its kind
    const int before = *place;
    *place = before + value;
    return before;
}

namespace emulated {
// The nearest float of 8 bits, ties to even; the greatest number for all that is beyond. MANTISSA: its bits; LEAST: the exponent of the
// smallest normal number.
template <int MANTISSA, int LEAST>
unsigned char saturated(float x, double greatest, unsigned char not_a_number) {
    if (x != x) return not_a_number;
    double size = fabs(double(x));
    if (size > greatest) size = greatest;  // nothing between it and the next is nearer to something smaller
    int exponent = LEAST;
    while (size >= ldexp(1.0, exponent + 1)) ++exponent;
    const int whole = int(rint(ldexp(size, MANTISSA - exponent)));  // with the hidden bit, which carries into the exponent
    return (unsigned char)((whole + ((exponent - LEAST) << MANTISSA)) | (__float_as_uint(x) >> 31) << 7);
}

template <class T, T... I>
struct Numbers {};

template <class... A, unsigned... I>
void call(void (*kernel)(A...), void** values, Numbers<unsigned, I...>) {
    kernel(*static_cast<A*>(values[I])...);
}

template <class... A>
void call(void (*kernel)(A...), void** values) {  // a kernel, with each argument behind a pointer
    call(kernel, values, __make_integer_seq<Numbers, unsigned, sizeof...(A)>());
}
}  // namespace emulated

#pragma clang attribute pop
