// Matrix products of a warp and the moves between its registers and shared memory, by name of the wrapper.
//
// The lane maps stand here once more, as the instruction set's manual gives them: lane = 4 group + place; a register of 32 bits holds
// 32 / BITS neighbours along k. Left operand: register r of a lane is row group + 8 (r % 2), right: column group; both begin at
// 32 / BITS (place + 4 r'), where r' counts the registers along k. Accumulator: rows group and group + 8, columns 2 place and 2 place + 1.
#pragma once
#include "races.h"

#pragma clang attribute push(__attribute__((no_sanitize("thread"))), apply_to = function)

namespace emulated {

struct Half {
    using Bits = uint16_t;
    static double of(Bits x) { return double(float(__builtin_bit_cast(_Float16, x))); }
};
struct Brain {
    using Bits = uint16_t;
    static double of(Bits x) { return double(__builtin_bit_cast(float, uint32_t(x) << 16)); }
};
struct Tf32 {  // rounded to 10 bits of mantissa, ties away from zero
    using Bits = float;
    static double of(Bits x) { return double(__builtin_bit_cast(float, rounded(x))); }
    static uint32_t rounded(Bits x) { return (__builtin_bit_cast(uint32_t, x) + 0x1000u) & ~0x1fffu; }
};
struct Int8 {
    using Bits = int8_t;
    static int64_t of(Bits x) { return x; }
};
struct Uint8 {
    using Bits = uint8_t;
    static int64_t of(Bits x) { return x; }
};
struct E4m3 {  // no infinities; all ones is not a number
    using Bits = uint8_t;
    static double of(Bits x) {
        const int exponent = x >> 3 & 15, mantissa = x & 7;
        const double size = exponent ? (8 + mantissa) * double(1u << exponent) / 1024 : mantissa / 512.0;
        return (x & 0x7f) == 0x7f ? __builtin_nan("") : x >> 7 ? -size : size;
    }
};
struct E5m2 {  // the upper half of a float16
    using Bits = uint8_t;
    static double of(Bits x) { return Half::of(uint16_t(x << 8)); }
};

struct FloatSum {
    using Bits = float;
    static double wide(Bits x) { return double(x); }
    static Bits narrow(double x) { return float(x); }
};
struct HalfSum {
    using Bits = uint16_t;
    static double wide(Bits x) { return Half::of(x); }
    static Bits narrow(double x) { return __builtin_bit_cast(uint16_t, _Float16(float(x))); }
};
struct IntSum {
    using Bits = int32_t;
    static int64_t wide(Bits x) { return x; }
    static Bits narrow(int64_t x) { return int32_t(uint32_t(uint64_t(x))); }
};

// C += A B, 16 x K and K x 8, with A and B given slot by slot, or by the registers that their slots fill, one after the other.
template <class A, class B, class Sum, class S, class... T>
void warp_product(const char* name, uint32_t k_extent, S& c0, S& c1, S& c2, S& c3, T... slots) {
    constexpr uint32_t PER = 4 / sizeof(typename A::Bits), LANES = 32;
    constexpr uint32_t WIDTH = sizeof(typename A::Bits), SLOTS = (sizeof(slots) + ...) / WIDTH;
    struct Given {
        uint8_t bytes[SLOTS * WIDTH];
        S* c[4];
    } mine = {{}, {&c0, &c1, &c2, &c3}};
    static_assert(sizeof(S) == sizeof(typename Sum::Bits) && sizeof(typename B::Bits) == WIDTH);
    uint32_t end = 0;
    ((memcpy(mine.bytes + end, &slots, sizeof(slots)), end += sizeof(slots)), ...);
    const uint32_t left = 16 * k_extent / LANES;
    if (left + 8 * k_extent / LANES != SLOTS)
        fault("%s: %u slots for k = %u", name, SLOTS, k_extent);
    together(name, LANES, LANES, mine, [=](Given** lanes) {
        decltype(A::of({})) a[16][32], b[32][8];
        for (uint32_t lane = 0; lane < LANES; ++lane) {
            const uint32_t group = lane / 4, place = lane % 4;
            for (uint32_t slot = 0; slot < SLOTS; ++slot) {
                const bool is_left = slot < left;
                const uint32_t at = is_left ? slot : slot - left, r = at / PER;
                const uint32_t k = PER * (place + 4 * (is_left ? r / 2 : r)) + at % PER;
                typename A::Bits left_bits;
                typename B::Bits right_bits;
                memcpy(&left_bits, lanes[lane]->bytes + slot * WIDTH, WIDTH);
                memcpy(&right_bits, lanes[lane]->bytes + slot * WIDTH, WIDTH);
                if (is_left)
                    a[group + 8 * (r % 2)][k] = A::of(left_bits);
                else
                    b[k][group] = B::of(right_bits);
            }
        }
        for (uint32_t lane = 0; lane < LANES; ++lane)
            for (uint32_t i = 0; i < 4; ++i) {
                typename Sum::Bits bits;
                memcpy(&bits, lanes[lane]->c[i], sizeof(bits));
                auto sum = Sum::wide(bits);
                for (uint32_t k = 0; k < k_extent; ++k)
                    sum += a[lane / 4 + 8 * (i / 2)][k] * b[k][lane % 4 * 2 + i % 2];
                bits = Sum::narrow(sum);
                memcpy(lanes[lane]->c[i], &bits, sizeof(bits));
            }
    });
}

// ---------------------------------------------------------------- moves of 8 x 8 matrices

struct Row {  // what a lane brings: the row that it names, and its own 32 bits of each matrix
    uint8_t* address;
    uint32_t registers[4];
};

template <uint32_t MATRICES, bool TRANSPOSED, bool STORE>
void move_matrices(const char* name, Row& mine) {
    const uint32_t lane = current->number % 32;
    if (lane < 8 * MATRICES) {
        if (reinterpret_cast<uintptr_t>(mine.address) % 16)
            fault("%s: a row whose address is not a multiple of 16", name);
        touched(shared_pointer(shared_address(mine.address), 16), 16, STORE);
    }
    together(name, 32, 32, mine, [](Row** lanes) {
        for (uint32_t matrix = 0; matrix < MATRICES; ++matrix)
            for (uint32_t lane = 0; lane < 32; ++lane)
                for (uint32_t half = 0; half < 2; ++half) {
                    const uint32_t row = TRANSPOSED ? 2 * (lane % 4) + half : lane / 4, column = TRANSPOSED ? lane / 4 : 2 * (lane % 4) + half;
                    uint8_t *there = lanes[8 * matrix + row]->address + 2 * column,
                            *here = reinterpret_cast<uint8_t*>(&lanes[lane]->registers[matrix]) + 2 * half;
                    memcpy(STORE ? there : here, STORE ? here : there, 2);
                }
    });
}

template <class T>
struct LoadedSlots {  // the arguments of a load: places for the slots, then the address
    T* place[16];
    uint32_t count = 0;
    const void* address = nullptr;
    void take(T& slot) { place[count++] = &slot; }
    void take(const void* given) { address = given; }
};

template <uint32_t MATRICES, bool TRANSPOSED, class T, class... R>
void load_matrices(const char* name, T& first, R&&... rest) {
    LoadedSlots<T> given;
    given.take(first);
    (given.take(rest), ...);
    Row mine = {static_cast<uint8_t*>(const_cast<void*>(given.address)), {}};
    move_matrices<MATRICES, TRANSPOSED, false>(name, mine);
    for (uint32_t i = 0; i < given.count; ++i)
        memcpy(given.place[i], reinterpret_cast<uint8_t*>(mine.registers) + i * sizeof(T), sizeof(T));
}

template <uint32_t MATRICES, bool TRANSPOSED, class... T>
void store_matrices(const char* name, void* address, T... slots) {
    Row mine = {static_cast<uint8_t*>(address), {}};
    uint32_t at = 0;
    ((memcpy(reinterpret_cast<uint8_t*>(mine.registers) + at, &slots, sizeof(T)), at += sizeof(T)), ...);
    move_matrices<MATRICES, TRANSPOSED, true>(name, mine);
}

}  // namespace emulated

#define EMULATED_PRODUCT(A, B, SUM, K) emulated::warp_product<emulated::A, emulated::B, emulated::SUM>(__func__, K, c0, c1, c2, c3, slots...)

#pragma clang attribute pop
