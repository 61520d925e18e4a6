// Wrappers: What the headers of a dialect define by assembly. Each takes the place of the definition of its name in a source.

static inline float float16_to_float(unsigned short bits) { return float(__builtin_bit_cast(_Float16, bits)); }
static inline unsigned short float_to_float16(float x) { return __builtin_bit_cast(unsigned short, _Float16(x)); }
static inline unsigned pair_to_float16(float low, float high) { return float_to_float16(low) | unsigned(float_to_float16(high)) << 16; }
static inline unsigned short float_to_bfloat16(float x) {  // to nearest, ties to even
    const unsigned bits = __float_as_uint(x);
    return (unsigned short)(x != x ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
static inline unsigned pair_to_bfloat16(float low, float high) {
    return float_to_bfloat16(low) | unsigned(float_to_bfloat16(high)) << 16;
}
static inline unsigned short saturated_float8_e4m3(float low, float high) {
    return emulated::saturated<3, -6>(low, 448, 0x7f) | emulated::saturated<3, -6>(high, 448, 0x7f) << 8;
}
static inline unsigned short saturated_float8_e5m2(float low, float high) {
    return emulated::saturated<2, -14>(low, 57344, 0x7f) | emulated::saturated<2, -14>(high, 57344, 0x7f) << 8;
}
static inline unsigned halves_of_float8_e4m3(unsigned short pair) {
    return float_to_float16(emulated::E4m3::of(pair & 255)) | unsigned(float_to_float16(emulated::E4m3::of(pair >> 8))) << 16;
}
static inline unsigned halves_of_float8_e5m2(unsigned short pair) { return (pair & 255u) << 8 | (pair >> 8) << 24; }
static inline float maximum(float a, float b) { return a != a || b != b ? __builtin_nanf("") : a < b ? b : a; }
static inline float minimum(float a, float b) { return a != a || b != b ? __builtin_nanf("") : b < a ? b : a; }
template <class P, class V>
static inline void store_streaming(P* place, const V& vector) {
    if (reinterpret_cast<uintptr_t>(place) % 16)
        emulated::fault("a store of 16 bytes to an address that is not a multiple of it");
    memcpy(place, &vector, sizeof(vector));
}
static inline void prefetch_l2(const void*) {}
static inline void shared_barrier() { __syncthreads(); }
static inline void prefetch_tensor_map(const void*) {}
static inline int alike_in_warp(int x) { return x; }
