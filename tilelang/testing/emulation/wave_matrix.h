// Matrix products of AMD's waves, and dot products of bytes, by name of the wrapper.
//
// mfma (64 lanes, M = 32 or 16): lane = M part + line; it holds row `line` of A and column `line` of B at k = 4 part + slot, and of
// the sums column `line`, rows 4 (64 / M) (slot / 4) + 4 part + slot % 4. wmma (32 lanes): row and column lane % 16 whole, twice; of
// the sums column lane % 16, rows 2 slot + lane / 16.
#pragma once
#include "warp_matrix.h"

#pragma clang attribute push(__attribute__((no_sanitize("thread"))), apply_to = function)

namespace emulated {

template <uint32_t SLOTS, uint32_t SUMS>
struct WaveOperands {
    float* c[SUMS];
    uint16_t a[SLOTS], b[SLOTS];
    uint32_t sums = 0, slots = 0;
    void take(float& slot) { c[sums++] = &slot; }
    void take(const uint16_t& slot) {
        (slots < SLOTS ? a : b)[slots % SLOTS] = slot;
        ++slots;
    }
};

// C += A B of M x M x K elements by a wave; row(lane, slot) and k(lane, slot) say where an element stands.
template <class E, uint32_t LANES, uint32_t M, uint32_t K, uint32_t SLOTS, uint32_t SUMS, class Where, class... T>
void wave_product(const char* name, Where where, T&&... given) {
    static_assert(sizeof...(given) == SUMS + 2 * SLOTS);
    using Operands = WaveOperands<SLOTS, SUMS>;
    Operands mine;
    (mine.take(given), ...);
    together(name, LANES, LANES, mine, [=](Operands** lanes) {
        uint16_t a[M][K], b[K][M];
        bool known[M][K] = {};
        for (uint32_t lane = 0; lane < LANES; ++lane)
            for (uint32_t slot = 0; slot < SLOTS; ++slot) {
                const uint32_t line = lane % M, k = where.k(lane, slot);
                const uint16_t left = lanes[lane]->a[slot], right = lanes[lane]->b[slot];
                if (known[line][k] && (a[line][k] != left || b[k][line] != right))
                    fault("%s: lane %u has other elements than the lane that has the same row and column", name, lane);
                a[line][k] = left, b[k][line] = right, known[line][k] = true;
            }
        for (uint32_t lane = 0; lane < LANES; ++lane)
            for (uint32_t slot = 0; slot < SUMS; ++slot) {
                double sum = double(*lanes[lane]->c[slot]);
                for (uint32_t k = 0; k < K; ++k)
                    sum += E::of(a[where.row(lane, slot)][k]) * E::of(b[k][lane % M]);
                *lanes[lane]->c[slot] = float(sum);
            }
    });
}

template <uint32_t M>
struct MfmaPlaces {
    static uint32_t k(uint32_t lane, uint32_t slot) { return 4 * (lane / M) + slot; }
    static uint32_t row(uint32_t lane, uint32_t slot) { return 4 * (64 / M) * (slot / 4) + 4 * (lane / M) + slot % 4; }
};
struct WmmaPlaces {
    static uint32_t k(uint32_t, uint32_t slot) { return slot; }
    static uint32_t row(uint32_t lane, uint32_t slot) { return 2 * slot + lane / 16; }
};

}  // namespace emulated

#pragma clang attribute pop
