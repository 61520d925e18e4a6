#if defined(__CHAR_UNSIGNED__)
#error "compile with -fsigned-char"
#endif
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long long ulong;
typedef __SIZE_TYPE__ size_t;
#define char signed char
#define long long long
typedef float float16 __attribute__((ext_vector_type(16)));
typedef float float4 __attribute__((ext_vector_type(4)));
#define as_float16(...) __builtin_bit_cast(float16, (__VA_ARGS__))
#define min(...) __builtin_elementwise_min(__VA_ARGS__)
#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
typedef float float16_u __attribute__((ext_vector_type(16), aligned(4)));

static inline float16 load_first_global_float16(const float* p, long count, float16 others) {  // touches the first `count` elements only
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
    return as_float16(__builtin_ia32_loadups512_mask((const void*)(size_t)p, as_float16(others), (ushort)((1u << (count < 0 ? 0 : count > 16 ? 16 : (int)count)) - 1u)));
#else
    if (count >= 16) return *(const float16_u*)p;
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

static inline void store_streaming_float16(float* p, float16 v) {  // non-temporal if the address is aligned
#if __has_builtin(__builtin_nontemporal_store)
    if (((size_t)p & 63) == 0) {
        __builtin_nontemporal_store(v, (float16*)p);
        return;
    }
    if (((size_t)p & 15) == 0) {
        __builtin_nontemporal_store(v.s0123, (float4*)(p + 0));
        __builtin_nontemporal_store(v.s4567, (float4*)(p + 4));
        __builtin_nontemporal_store(v.s89ab, (float4*)(p + 8));
        __builtin_nontemporal_store(v.scdef, (float4*)(p + 12));
        return;
    }
#endif
    *(float16_u*)p = v;
}

// 2 x 3 x 1 blocks of 1 thread, 1024 bytes of shared memory
static inline __attribute__((always_inline)) void Y_block(
    const float* restrict X,
    float* restrict Y,
    float* restrict X_shared,
    const long* restrict block)
{
    const int block_x = (int)block[0];
    const int block_y = (int)block[1];
    if (block_x * 16 < 2 && block_y * 16 < 22) {
        for (int i_1 = 0; i_1 < 16; ++i_1) {
            *(float16*)(X_shared + i_1 * 16) = *(const float16_u*)(X + block_x * 592 + i_1 * 37 + block_y * 16);
        }
    } else {
        for (int i = 0; i < 16; ++i) {
            *(float16*)(X_shared + i * 16) = block_x * 16 + i < 17 ? load_first_global_float16(X + block_x * 592 + i * 37 + block_y * 16, 37 - block_y * 16, (float16)(0.0f)) : (float16)(0.0f);
        }
    }
    for (int j = 0; j < min(16, 37 - block_y * 16); ++j) {
        if (block_x * 16 < 2) {
            store_streaming_float16(Y + block_y * 272 + j * 17 + block_x * 16, (float16){X_shared[j], X_shared[j + 16], X_shared[j + 32], X_shared[j + 48], X_shared[j + 64], X_shared[j + 80], X_shared[j + 96], X_shared[j + 112], X_shared[j + 128], X_shared[j + 144], X_shared[j + 160], X_shared[j + 176], X_shared[j + 192], X_shared[j + 208], X_shared[j + 224], X_shared[j + 240]});
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

EXPORT void Y(void* const* arguments, char* scratch, long first, long last)
{
#pragma nounroll
    for (long number = first; number < last; ++number) {
        const long block[3] = {number % 2, number / 2 % 3, number / 6};
        Y_block(arguments[0], arguments[1], (void*)(scratch + 0), block);
    }
}
