// Wrappers: Exchanges of registers within a warp. Each takes the place of the definition of its name in a source.

template <int DISTANCE>
static inline int shuffle_xor_word(int x) {
    return emulated::of_other_lane<DISTANCE>(__func__, x);
}

static inline int shuffle_from_word(int x, int lane) {
    return emulated::of_named_lane(__func__, x, lane);
}

static inline void redux_add(int& d, int s) {
    d = emulated::of_all_lanes(__func__, d, s, [](int x, int y) { return int(unsigned(x) + unsigned(y)); });
}

static inline void redux_add_uint32(unsigned& d, unsigned s) {
    d = emulated::of_all_lanes(__func__, d, s, [](unsigned x, unsigned y) { return x + y; });
}

static inline void redux_min(int& d, int s) {
    d = emulated::of_all_lanes(__func__, d, s, [](int x, int y) { return y < x ? y : x; });
}

static inline void redux_min_uint32(unsigned& d, unsigned s) {
    d = emulated::of_all_lanes(__func__, d, s, [](unsigned x, unsigned y) { return y < x ? y : x; });
}

static inline void redux_max(int& d, int s) {
    d = emulated::of_all_lanes(__func__, d, s, [](int x, int y) { return x < y ? y : x; });
}

static inline void redux_max_uint32(unsigned& d, unsigned s) {
    d = emulated::of_all_lanes(__func__, d, s, [](unsigned x, unsigned y) { return x < y ? y : x; });
}
