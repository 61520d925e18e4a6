// Exchanges of registers between the lanes of a warp, by name of the wrapper.
#pragma once
#include "races.h"

#pragma clang attribute push(__attribute__((no_sanitize("thread"))), apply_to = function)

namespace emulated {

template <class T>
struct Register {
    T given, got;
};

template <int DISTANCE, class T>
T of_other_lane(const char* name, T x) {
    Register<T> mine = {x, x};
    const uint32_t width = warp_size;
    together(name, width, width, mine, [width](Register<T>** lanes) {
        for (uint32_t lane = 0; lane < width; ++lane)
            lanes[lane]->got = lanes[lane ^ DISTANCE]->given;
    });
    return mine.got;
}

struct Named {
    int given, lane, got;
};

inline int of_named_lane(const char* name, int x, int lane) {
    Named mine = {x, lane, x};
    const uint32_t width = warp_size;
    together(name, width, width, mine, [width](Named** lanes) {
        for (uint32_t lane = 0; lane < width; ++lane)
            lanes[lane]->got = lanes[uint32_t(lanes[lane]->lane) % width]->given;
    });
    return mine.got;
}

template <class T, class F>
T of_all_lanes(const char* name, T start, T x, F combined) {
    Register<T> mine = {x, x};
    const uint32_t width = warp_size;
    together(name, width, width, mine, [width, combined](Register<T>** lanes) {
        T all = lanes[0]->given;
        for (uint32_t lane = 1; lane < width; ++lane)
            all = combined(all, lanes[lane]->given);
        for (uint32_t lane = 0; lane < width; ++lane)
            lanes[lane]->got = all;
    });
    return combined(start, mine.got);
}

}  // namespace emulated

#pragma clang attribute pop
