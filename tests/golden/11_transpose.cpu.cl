#ifndef __has_builtin
#define __has_builtin(x) 0
#endif
typedef float float16_u __attribute__((ext_vector_type(16), aligned(4)));

static inline float16 load_first_global_float16(const __global float* p, long count, float16 others) {  // touches the first `count` elements only
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
    return as_float16(__builtin_ia32_loadups512_mask((const void*)(size_t)p, as_float16(others), (ushort)((1u << (count < 0 ? 0 : count > 16 ? 16 : (int)count)) - 1u)));
#else
    if (count >= 16) return *(const __global float16_u*)p;
    float16 v = others;
    v.s0 = count > 0 ? p[0] : others.s0;
    v.s1 = count > 1 ? p[1] : others.s1;
    v.s2 = count > 2 ? p[2] : others.s2;
    v.s3 = count > 3 ? p[3] : others.s3;
    v.s4 = count > 4 ? p[4] : others.s4;
    v.s5 = count > 5 ? p[5] : others.s5;
    v.s6 = count > 6 ? p[6] : others.s6;
    v.s7 = count > 7 ? p[7] : others.s7;
    v.s8 = count > 8 ? p[8] : others.s8;
    v.s9 = count > 9 ? p[9] : others.s9;
    v.sa = count > 10 ? p[10] : others.sa;
    v.sb = count > 11 ? p[11] : others.sb;
    v.sc = count > 12 ? p[12] : others.sc;
    v.sd = count > 13 ? p[13] : others.sd;
    v.se = count > 14 ? p[14] : others.se;
    v.sf = count > 15 ? p[15] : others.sf;
    return v;
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
