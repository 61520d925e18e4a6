// Wrappers: Products of a warp and matrix moves. Each takes the place of the definition of its name in a source.

static inline unsigned rounded_to_tf32(float x) { return emulated::Tf32::rounded(x); }

template <class S, class... T>
static inline void mma_m16n8k8(S& c0, S& c1, S& c2, S& c3, T... slots) {
    EMULATED_PRODUCT(Half, Half, FloatSum, 8);
}

template <class S, class... T>
static inline void mma_m16n8k16(S& c0, S& c1, S& c2, S& c3, T... slots) {
    EMULATED_PRODUCT(Half, Half, FloatSum, 16);
}

template <class S, class... T>
static inline void mma_m16n8k8_bfloat16(S& c0, S& c1, S& c2, S& c3, T... slots) {
    EMULATED_PRODUCT(Brain, Brain, FloatSum, 8);
}

template <class S, class... T>
static inline void mma_m16n8k16_bfloat16(S& c0, S& c1, S& c2, S& c3, T... slots) {
    EMULATED_PRODUCT(Brain, Brain, FloatSum, 16);
}

template <class S, class... T>
static inline void mma_m16n8k8_float16_sum(S& c0, S& c1, S& c2, S& c3, T... slots) {
    EMULATED_PRODUCT(Half, Half, HalfSum, 8);
}

template <class S, class... T>
static inline void mma_m16n8k16_float16_sum(S& c0, S& c1, S& c2, S& c3, T... slots) {
    EMULATED_PRODUCT(Half, Half, HalfSum, 16);
}

template <class S, class... T>
static inline void mma_m16n8k4_tf32(S& c0, S& c1, S& c2, S& c3, T... slots) {
    EMULATED_PRODUCT(Tf32, Tf32, FloatSum, 4);
}

template <class S, class... T>
static inline void mma_m16n8k8_tf32(S& c0, S& c1, S& c2, S& c3, T... slots) {
    EMULATED_PRODUCT(Tf32, Tf32, FloatSum, 8);
}

template <class S, class... T>
static inline void mma_m16n8k16_int8(S& c0, S& c1, S& c2, S& c3, T... slots) {
    EMULATED_PRODUCT(Int8, Int8, IntSum, 16);
}

template <class S, class... T>
static inline void mma_m16n8k32_int8(S& c0, S& c1, S& c2, S& c3, T... slots) {
    EMULATED_PRODUCT(Int8, Int8, IntSum, 32);
}

template <class S, class... T>
static inline void mma_m16n8k16_uint8(S& c0, S& c1, S& c2, S& c3, T... slots) {
    EMULATED_PRODUCT(Uint8, Uint8, IntSum, 16);
}

template <class S, class... T>
static inline void mma_m16n8k32_uint8(S& c0, S& c1, S& c2, S& c3, T... slots) {
    EMULATED_PRODUCT(Uint8, Uint8, IntSum, 32);
}

template <class S, class... T>
static inline void mma_m16n8k32_float8_e4m3(S& c0, S& c1, S& c2, S& c3, T... slots) {
    EMULATED_PRODUCT(E4m3, E4m3, FloatSum, 32);
}

template <class S, class... T>
static inline void mma_m16n8k32_float8_e5m2(S& c0, S& c1, S& c2, S& c3, T... slots) {
    EMULATED_PRODUCT(E5m2, E5m2, FloatSum, 32);
}

template <class T, class... R>
static inline void ldmatrix_x1(T& first, R&&... rest) {
    emulated::load_matrices<1, false>(__func__, first, rest...);
}

template <class T, class... R>
static inline void ldmatrix_x1_trans(T& first, R&&... rest) {
    emulated::load_matrices<1, true>(__func__, first, rest...);
}

template <class T, class... R>
static inline void ldmatrix_x2(T& first, R&&... rest) {
    emulated::load_matrices<2, false>(__func__, first, rest...);
}

template <class T, class... R>
static inline void ldmatrix_x2_trans(T& first, R&&... rest) {
    emulated::load_matrices<2, true>(__func__, first, rest...);
}

template <class T, class... R>
static inline void ldmatrix_x4(T& first, R&&... rest) {
    emulated::load_matrices<4, false>(__func__, first, rest...);
}

template <class T, class... R>
static inline void ldmatrix_x4_of_32_bits(T& first, R&&... rest) {
    emulated::load_matrices<4, false>(__func__, first, rest...);
}

template <class T, class... R>
static inline void ldmatrix_x4_of_8_bits(T& first, R&&... rest) {
    emulated::load_matrices<4, false>(__func__, first, rest...);
}

template <class T, class... R>
static inline void ldmatrix_x4_trans(T& first, R&&... rest) {
    emulated::load_matrices<4, true>(__func__, first, rest...);
}

template <class... T>
static inline void stmatrix_x4(void* address, T... slots) {
    emulated::store_matrices<4, false>(__func__, address, slots...);
}

template <class... T>
static inline void stmatrix_x4_trans(void* address, T... slots) {
    emulated::store_matrices<4, true>(__func__, address, slots...);
}
