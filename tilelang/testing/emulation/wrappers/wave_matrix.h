// Wrappers: Products of AMD's waves, dot products. Each takes the place of the definition of its name in a source.

template <class... T>
static inline void mfma_32x32x8(T&&... given) {
    emulated::wave_product<emulated::Half, 64, 32, 8, 4, 16>(__func__, emulated::MfmaPlaces<32>(), given...);
}

template <class... T>
static inline void mfma_32x32x8_bfloat16(T&&... given) {
    emulated::wave_product<emulated::Brain, 64, 32, 8, 4, 16>(__func__, emulated::MfmaPlaces<32>(), given...);
}

template <class... T>
static inline void mfma_16x16x16(T&&... given) {
    emulated::wave_product<emulated::Half, 64, 16, 16, 4, 4>(__func__, emulated::MfmaPlaces<16>(), given...);
}

template <class... T>
static inline void mfma_16x16x16_bfloat16(T&&... given) {
    emulated::wave_product<emulated::Brain, 64, 16, 16, 4, 4>(__func__, emulated::MfmaPlaces<16>(), given...);
}

template <class... T>
static inline void wmma_16x16x16(T&&... given) {
    emulated::wave_product<emulated::Half, 32, 16, 16, 16, 8>(__func__, emulated::WmmaPlaces(), given...);
}

template <class... T>
static inline void wmma_16x16x16_bfloat16(T&&... given) {
    emulated::wave_product<emulated::Brain, 32, 16, 16, 16, 8>(__func__, emulated::WmmaPlaces(), given...);
}

// ---------------------------------------------------------------- dot products of bytes

static inline void dp4a(int& c, signed char a0, signed char a1, signed char a2, signed char a3, signed char b0, signed char b1,
                        signed char b2, signed char b3) {
    c = int(unsigned(c) + unsigned(a0 * b0 + a1 * b1 + a2 * b2 + a3 * b3));
}
static inline void dp4a_uint8(unsigned& c, unsigned char a0, unsigned char a1, unsigned char a2, unsigned char a3, unsigned char b0,
                              unsigned char b1, unsigned char b2, unsigned char b3) {
    c += unsigned(a0 * b0 + a1 * b1 + a2 * b2 + a3 * b3);
}
