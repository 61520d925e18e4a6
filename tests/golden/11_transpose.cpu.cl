#ifndef __has_builtin
#define __has_builtin(x) 0
#endif
typedef float float16_u __attribute__((ext_vector_type(16), aligned(4)));
typedef float float2_u __attribute__((ext_vector_type(2), aligned(4)));
typedef float float4_u __attribute__((ext_vector_type(4), aligned(4)));
typedef float float8_u __attribute__((ext_vector_type(8), aligned(4)));

static inline float16 load_first_global_float16(const __global float* p, long count, float16 others) {  // touches the first `count` elements only
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
    return as_float16(__builtin_ia32_loadups512_mask((const void*)(size_t)p, as_float16(others), (ushort)((1u << (count < 0 ? 0 : count > 16 ? 16 : (int)count)) - 1u)));
#elif defined(__AVX2__)
    int some = count < 0 ? 0 : count > 16 ? 16 : (int)count;
    if (!__builtin_constant_p(some)) __asm__ volatile("" : "+r"(some));
    const int16 exists = as_int16((int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(some));
    float16 v;
    v.s01234567 = __builtin_ia32_maskloadps256((const void*)(size_t)(p + 0), exists.s01234567);
    v.s89abcdef = __builtin_ia32_maskloadps256((const void*)(size_t)(p + 8), exists.s89abcdef);
    return exists ? as_float16(v) : others;
#else
    if (count >= 16) return *(const __global float16_u*)p;
    const int some = count < 0 ? 0 : (int)count;
    const float2 v2 = (float2)(some & 1 ? p[some & -2] : (float)0);
    float4 v4;
    v4.s01 = v4.s23 = v2;
    if (some & 2) v4.s01 = *(const __global float2_u*)(p + (some & -4));
    float8 v8;
    v8.s0123 = v8.s4567 = v4;
    if (some & 4) v8.s0123 = *(const __global float4_u*)(p + (some & -8));
    float16 v16;
    v16.s01234567 = v16.s89abcdef = v8;
    if (some & 8) v16.s01234567 = *(const __global float8_u*)(p + (some & -16));
    return (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(some) ? v16 : others;
#endif
}

static inline void store_streaming_float16(__global float* p, float16 v) {  // non-temporal if the address is aligned
#if __has_builtin(__builtin_nontemporal_store)
    if (((size_t)p & 63) == 0) {
        __builtin_nontemporal_store(v, (__global float16*)p);
        return;
    }
    if (((size_t)p & 15) == 0) {
        __builtin_nontemporal_store(v.s0123, (__global float4*)(p + 0));
        __builtin_nontemporal_store(v.s4567, (__global float4*)(p + 4));
        __builtin_nontemporal_store(v.s89ab, (__global float4*)(p + 8));
        __builtin_nontemporal_store(v.scdef, (__global float4*)(p + 12));
        return;
    }
#endif
    *(__global float16_u*)p = v;
}

// 2 x 3 x 1 blocks of 1 thread, 1024 bytes of shared memory
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void Y(
    __global const float* restrict X,
    __global float* restrict Y)
{
    __local float X_shared[256] __attribute__((aligned(64)));
    const int block_x = (int)get_group_id(0);
    const int block_y = (int)get_group_id(1);
    if (block_x * 16 < 2 && block_y * 16 < 22) {
        for (int i_1 = 0; i_1 < 16; ++i_1) {
            *(__local float16*)(X_shared + i_1 * 16) = *(__global const float16_u*)(X + block_x * 592 + i_1 * 37 + block_y * 16);
        }
    } else {
        for (int i = 0; i < 16; ++i) {
            *(__local float16*)(X_shared + i * 16) = block_x * 16 + i < 17 ? load_first_global_float16(X + block_x * 592 + i * 37 + block_y * 16, 37 - block_y * 16, (float16)(0.0f)) : (float16)(0.0f);
        }
    }
    for (int j = 0; j < min(16, 37 - block_y * 16); ++j) {
        if (block_x * 16 < 2) {
            store_streaming_float16(Y + block_y * 272 + j * 17 + block_x * 16, (float16)(X_shared[j], X_shared[j + 16], X_shared[j + 32], X_shared[j + 48], X_shared[j + 64], X_shared[j + 80], X_shared[j + 96], X_shared[j + 112], X_shared[j + 128], X_shared[j + 144], X_shared[j + 160], X_shared[j + 176], X_shared[j + 192], X_shared[j + 208], X_shared[j + 224], X_shared[j + 240]));
        } else {
            *(Y + block_y * 272 + j * 17 + block_x * 16) = X_shared[j];
            if (block_x * 16 < 16) {
                *(Y + block_y * 272 + j * 17 + block_x * 16 + 1) = X_shared[j + 16];
            }
            if (block_x * 16 < 15) {
                *(Y + block_y * 272 + j * 17 + block_x * 16 + 2) = X_shared[j + 32];
            }
            if (block_x * 16 < 14) {
                *(Y + block_y * 272 + j * 17 + block_x * 16 + 3) = X_shared[j + 48];
            }
            if (block_x * 16 < 13) {
                *(Y + block_y * 272 + j * 17 + block_x * 16 + 4) = X_shared[j + 64];
            }
            if (block_x * 16 < 12) {
                *(Y + block_y * 272 + j * 17 + block_x * 16 + 5) = X_shared[j + 80];
            }
            if (block_x * 16 < 11) {
                *(Y + block_y * 272 + j * 17 + block_x * 16 + 6) = X_shared[j + 96];
            }
            if (block_x * 16 < 10) {
                *(Y + block_y * 272 + j * 17 + block_x * 16 + 7) = X_shared[j + 112];
            }
            if (block_x * 16 < 9) {
                *(Y + block_y * 272 + j * 17 + block_x * 16 + 8) = X_shared[j + 128];
            }
            if (block_x * 16 < 8) {
                *(Y + block_y * 272 + j * 17 + block_x * 16 + 9) = X_shared[j + 144];
            }
            if (block_x * 16 < 7) {
                *(Y + block_y * 272 + j * 17 + block_x * 16 + 10) = X_shared[j + 160];
            }
            if (block_x * 16 < 6) {
                *(Y + block_y * 272 + j * 17 + block_x * 16 + 11) = X_shared[j + 176];
            }
            if (block_x * 16 < 5) {
                *(Y + block_y * 272 + j * 17 + block_x * 16 + 12) = X_shared[j + 192];
            }
            if (block_x * 16 < 4) {
                *(Y + block_y * 272 + j * 17 + block_x * 16 + 13) = X_shared[j + 208];
            }
            if (block_x * 16 < 3) {
                *(Y + block_y * 272 + j * 17 + block_x * 16 + 14) = X_shared[j + 224];
            }
            if (block_x * 16 < 2) {
                *(Y + block_y * 272 + j * 17 + block_x * 16 + 15) = X_shared[j + 240];
            }
        }
    }
}
