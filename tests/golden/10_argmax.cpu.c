// clang: -fno-slp-vectorize
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
typedef char char16 __attribute__((ext_vector_type(16)));
typedef char char2 __attribute__((ext_vector_type(2)));
typedef char char4 __attribute__((ext_vector_type(4)));
typedef char char8 __attribute__((ext_vector_type(8)));
typedef float float16 __attribute__((ext_vector_type(16)));
typedef float float2 __attribute__((ext_vector_type(2)));
typedef float float4 __attribute__((ext_vector_type(4)));
typedef float float8 __attribute__((ext_vector_type(8)));
typedef int int16 __attribute__((ext_vector_type(16)));
typedef int int2 __attribute__((ext_vector_type(2)));
typedef int int4 __attribute__((ext_vector_type(4)));
typedef int int8 __attribute__((ext_vector_type(8)));
typedef uchar uchar16 __attribute__((ext_vector_type(16)));
typedef uchar uchar2 __attribute__((ext_vector_type(2)));
typedef uchar uchar4 __attribute__((ext_vector_type(4)));
typedef uchar uchar8 __attribute__((ext_vector_type(8)));
#define as_float16(...) __builtin_bit_cast(float16, (__VA_ARGS__))
#define as_int16(...) __builtin_bit_cast(int16, (__VA_ARGS__))
#define convert_char16(...) __builtin_convertvector((__VA_ARGS__), char16)
#define convert_char2(...) __builtin_convertvector((__VA_ARGS__), char2)
#define convert_char4(...) __builtin_convertvector((__VA_ARGS__), char4)
#define convert_char8(...) __builtin_convertvector((__VA_ARGS__), char8)
#define convert_int16(...) __builtin_convertvector((__VA_ARGS__), int16)
#define convert_int2(...) __builtin_convertvector((__VA_ARGS__), int2)
#define convert_int4(...) __builtin_convertvector((__VA_ARGS__), int4)
#define convert_int8(...) __builtin_convertvector((__VA_ARGS__), int8)
#define convert_uchar16(...) __builtin_convertvector((__VA_ARGS__), uchar16)
#define convert_uchar2(...) __builtin_convertvector((__VA_ARGS__), uchar2)
#define convert_uchar4(...) __builtin_convertvector((__VA_ARGS__), uchar4)
#define convert_uchar8(...) __builtin_convertvector((__VA_ARGS__), uchar8)
#define INFINITY __builtin_inff()
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

// 3 x 1 x 1 blocks of 1 thread, 0 bytes of shared memory
static inline __attribute__((always_inline)) void Y_block(
    const float* restrict X,
    int* restrict Y,
    const long* restrict block)
{
    const int block_x = (int)block[0];
    float16 Y_argmax_0_state_value_1;
    uchar16 Y_argmax_0_state_common_1;
    float16 Y_argmax_0_state = (float16)(-INFINITY);
    int16 Y_argmax_1_state = (int16)(2147483647);
    for (int j = 0; j < 2; ++j) {
        float16 Y_argmax_0_state_value = *(const float16_u*)(X + block_x * 37 + j * 16);
        uchar16 Y_argmax_0_state_common = convert_uchar16(-convert_char16(((Y_argmax_0_state < Y_argmax_0_state_value) | ((Y_argmax_0_state_value != Y_argmax_0_state_value) & ~(Y_argmax_0_state != Y_argmax_0_state))) | (((Y_argmax_0_state == Y_argmax_0_state_value) | ((Y_argmax_0_state != Y_argmax_0_state) & (Y_argmax_0_state_value != Y_argmax_0_state_value))) & ((int16)(j * 16) + (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < Y_argmax_1_state))));
        Y_argmax_0_state = convert_int16(Y_argmax_0_state_common != (uchar16)((uchar)0)) ? Y_argmax_0_state_value : Y_argmax_0_state;
        Y_argmax_1_state = convert_int16(Y_argmax_0_state_common != (uchar16)((uchar)0)) ? (int16)(j * 16) + (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} : Y_argmax_1_state;
    }
    {
        const int j_1 = 2;
        if (j_1 * 16 < 22) {
            Y_argmax_0_state_value_1 = *(const float16_u*)(X + block_x * 37 + j_1 * 16);
            Y_argmax_0_state_common_1 = convert_uchar16(-convert_char16(((Y_argmax_0_state < Y_argmax_0_state_value_1) | ((Y_argmax_0_state_value_1 != Y_argmax_0_state_value_1) & ~(Y_argmax_0_state != Y_argmax_0_state))) | (((Y_argmax_0_state == Y_argmax_0_state_value_1) | ((Y_argmax_0_state != Y_argmax_0_state) & (Y_argmax_0_state_value_1 != Y_argmax_0_state_value_1))) & ((int16)(j_1 * 16) + (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < Y_argmax_1_state))));
            Y_argmax_0_state = convert_int16(Y_argmax_0_state_common_1 != (uchar16)((uchar)0)) ? Y_argmax_0_state_value_1 : Y_argmax_0_state;
            Y_argmax_1_state = convert_int16(Y_argmax_0_state_common_1 != (uchar16)((uchar)0)) ? (int16)(j_1 * 16) + (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} : Y_argmax_1_state;
        } else {
            Y_argmax_0_state_value_1 = load_first_global_float16(X + block_x * 37 + j_1 * 16, 37 - j_1 * 16, (float16)(0.0f));
            Y_argmax_0_state_common_1 = convert_uchar16(-convert_char16(((Y_argmax_0_state < Y_argmax_0_state_value_1) | ((Y_argmax_0_state_value_1 != Y_argmax_0_state_value_1) & ~(Y_argmax_0_state != Y_argmax_0_state))) | (((Y_argmax_0_state == Y_argmax_0_state_value_1) | ((Y_argmax_0_state != Y_argmax_0_state) & (Y_argmax_0_state_value_1 != Y_argmax_0_state_value_1))) & ((int16)(j_1 * 16) + (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < Y_argmax_1_state))));
            Y_argmax_0_state = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(37 - j_1 * 16) ? (convert_int16(Y_argmax_0_state_common_1 != (uchar16)((uchar)0)) ? Y_argmax_0_state_value_1 : Y_argmax_0_state) : Y_argmax_0_state;
            Y_argmax_1_state = (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int16)(37 - j_1 * 16) ? (convert_int16(Y_argmax_0_state_common_1 != (uchar16)((uchar)0)) ? (int16)(j_1 * 16) + (int16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} : Y_argmax_1_state) : Y_argmax_1_state;
        }
    }
    uchar8 Y_argmax_0_fold_common = convert_uchar8(-convert_char8(((Y_argmax_0_state.s01234567 < Y_argmax_0_state.s89abcdef) | ((Y_argmax_0_state.s89abcdef != Y_argmax_0_state.s89abcdef) & ~(Y_argmax_0_state.s01234567 != Y_argmax_0_state.s01234567))) | (((Y_argmax_0_state.s01234567 == Y_argmax_0_state.s89abcdef) | ((Y_argmax_0_state.s01234567 != Y_argmax_0_state.s01234567) & (Y_argmax_0_state.s89abcdef != Y_argmax_0_state.s89abcdef))) & (Y_argmax_1_state.s89abcdef < Y_argmax_1_state.s01234567))));
    float8 Y_argmax_0_fold = convert_int8(Y_argmax_0_fold_common != (uchar8)((uchar)0)) ? Y_argmax_0_state.s89abcdef : Y_argmax_0_state.s01234567;
    int8 Y_argmax_1_fold = convert_int8(Y_argmax_0_fold_common != (uchar8)((uchar)0)) ? Y_argmax_1_state.s89abcdef : Y_argmax_1_state.s01234567;
    uchar4 Y_argmax_0_fold_1_common = convert_uchar4(-convert_char4(((Y_argmax_0_fold.s0123 < Y_argmax_0_fold.s4567) | ((Y_argmax_0_fold.s4567 != Y_argmax_0_fold.s4567) & ~(Y_argmax_0_fold.s0123 != Y_argmax_0_fold.s0123))) | (((Y_argmax_0_fold.s0123 == Y_argmax_0_fold.s4567) | ((Y_argmax_0_fold.s0123 != Y_argmax_0_fold.s0123) & (Y_argmax_0_fold.s4567 != Y_argmax_0_fold.s4567))) & (Y_argmax_1_fold.s4567 < Y_argmax_1_fold.s0123))));
    float4 Y_argmax_0_fold_1 = convert_int4(Y_argmax_0_fold_1_common != (uchar4)((uchar)0)) ? Y_argmax_0_fold.s4567 : Y_argmax_0_fold.s0123;
    int4 Y_argmax_1_fold_1 = convert_int4(Y_argmax_0_fold_1_common != (uchar4)((uchar)0)) ? Y_argmax_1_fold.s4567 : Y_argmax_1_fold.s0123;
    uchar2 Y_argmax_0_fold_2_common = convert_uchar2(-convert_char2(((Y_argmax_0_fold_1.s01 < Y_argmax_0_fold_1.s23) | ((Y_argmax_0_fold_1.s23 != Y_argmax_0_fold_1.s23) & ~(Y_argmax_0_fold_1.s01 != Y_argmax_0_fold_1.s01))) | (((Y_argmax_0_fold_1.s01 == Y_argmax_0_fold_1.s23) | ((Y_argmax_0_fold_1.s01 != Y_argmax_0_fold_1.s01) & (Y_argmax_0_fold_1.s23 != Y_argmax_0_fold_1.s23))) & (Y_argmax_1_fold_1.s23 < Y_argmax_1_fold_1.s01))));
    float2 Y_argmax_0_fold_2 = convert_int2(Y_argmax_0_fold_2_common != (uchar2)((uchar)0)) ? Y_argmax_0_fold_1.s23 : Y_argmax_0_fold_1.s01;
    int2 Y_argmax_1_fold_2 = convert_int2(Y_argmax_0_fold_2_common != (uchar2)((uchar)0)) ? Y_argmax_1_fold_1.s23 : Y_argmax_1_fold_1.s01;
    uchar Y_argmax_0_fold_3_common = (uchar)((Y_argmax_0_fold_2.s0 < Y_argmax_0_fold_2.s1 || (Y_argmax_0_fold_2.s1 != Y_argmax_0_fold_2.s1 && !(Y_argmax_0_fold_2.s0 != Y_argmax_0_fold_2.s0))) || ((Y_argmax_0_fold_2.s0 == Y_argmax_0_fold_2.s1 || (Y_argmax_0_fold_2.s0 != Y_argmax_0_fold_2.s0 && Y_argmax_0_fold_2.s1 != Y_argmax_0_fold_2.s1)) && Y_argmax_1_fold_2.s1 < Y_argmax_1_fold_2.s0));
    float Y_argmax_0_fold_3 = Y_argmax_0_fold_3_common != 0 ? Y_argmax_0_fold_2.s1 : Y_argmax_0_fold_2.s0;
    int Y_argmax_1_fold_3 = Y_argmax_0_fold_3_common != 0 ? Y_argmax_1_fold_2.s1 : Y_argmax_1_fold_2.s0;
    Y[block_x] = Y_argmax_1_fold_3;
}

EXPORT void Y(void* const* arguments, char* scratch, long first, long last)
{
#pragma nounroll
    for (long number = first; number < last; ++number) {
        const long block[3] = {number % 3, number / 3 % 1, number / 3};
        Y_block(arguments[0], arguments[1], block);
    }
}
