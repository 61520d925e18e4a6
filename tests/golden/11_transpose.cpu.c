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
typedef float float2 __attribute__((ext_vector_type(2)));
typedef float float4 __attribute__((ext_vector_type(4)));
typedef float float8 __attribute__((ext_vector_type(8)));
typedef int int16 __attribute__((ext_vector_type(16)));
#define as_float16(...) __builtin_bit_cast(float16, (__VA_ARGS__))
#define as_int16(...) __builtin_bit_cast(int16, (__VA_ARGS__))
#define min(...) __builtin_elementwise_min(__VA_ARGS__)
#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
typedef float float16_u __attribute__((ext_vector_type(16), aligned(4)));
typedef float float2_u __attribute__((ext_vector_type(2), aligned(4)));
typedef float float4_u __attribute__((ext_vector_type(4), aligned(4)));
typedef float float8_u __attribute__((ext_vector_type(8), aligned(4)));

static inline float16 load_first_global_float16(const float* p, long count, float16 others) {  // touches the first `count` elements only
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
    if (count >= 16) return *(const float16_u*)p;
    const int some = count < 0 ? 0 : (int)count;
    const float2 v2 = (float2)(some & 1 ? p[some & -2] : (float)0);
    float4 v4;
    v4.s01 = v4.s23 = v2;
    if (some & 2) v4.s01 = *(const float2_u*)(p + (some & -4));
    float8 v8;
    v8.s0123 = v8.s4567 = v4;
    if (some & 4) v8.s0123 = *(const float4_u*)(p + (some & -8));
    float16 v16;
    v16.s01234567 = v16.s89abcdef = v8;
    if (some & 8) v16.s01234567 = *(const float8_u*)(p + (some & -16));
    return (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(some) ? v16 : others;
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
