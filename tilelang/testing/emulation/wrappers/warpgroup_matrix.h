// Wrappers: Products of a warpgroup. Each takes the place of the definition of its name in a source.

static inline void wgmma_fence() {}
static inline void wgmma_shared_fence() { emulated::fence(); }
static inline void wgmma_commit() { emulated::current->products.commit(); }
template <int PENDING>
static inline void wgmma_wait() {
    emulated::current->products.wait(PENDING);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n64k16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Brain);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n64k16_float16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Half);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n72k16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Brain);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n72k16_float16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Half);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n80k16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Brain);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n80k16_float16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Half);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n88k16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Brain);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n88k16_float16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Half);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n96k16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Brain);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n96k16_float16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Half);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n104k16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Brain);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n104k16_float16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Half);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n112k16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Brain);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n112k16_float16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Half);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n120k16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Brain);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n120k16_float16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Half);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n128k16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Brain);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n128k16_float16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Half);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n136k16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Brain);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n136k16_float16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Half);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n144k16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Brain);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n144k16_float16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Half);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n152k16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Brain);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n152k16_float16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Half);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n160k16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Brain);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n160k16_float16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Half);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n168k16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Brain);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n168k16_float16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Half);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n176k16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Brain);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n176k16_float16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Half);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n184k16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Brain);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n184k16_float16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Half);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n192k16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Brain);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n192k16_float16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Half);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n200k16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Brain);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n200k16_float16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Half);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n208k16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Brain);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n208k16_float16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Half);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n216k16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Brain);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n216k16_float16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Half);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n224k16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Brain);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n224k16_float16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Half);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n232k16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Brain);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n232k16_float16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Half);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n240k16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Brain);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n240k16_float16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Half);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n248k16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Brain);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n248k16_float16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Half);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n256k16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Brain);
}

template <int SWIZZLE_A, int SWIZZLE_B, class... T>
static inline void wgmma_m64n256k16_float16(T&&... given) {
    EMULATED_WARPGROUP_PRODUCT(Half);
}
