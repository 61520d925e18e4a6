// Matrix products of a warpgroup of 128: both factors in shared memory, decoded from their descriptors.
//
// They run later: the products of a group read shared memory, and change the accumulators, at the wait. Each lane makes its own part
// of the accumulator, rows 16 warp + group and 8 below, as the instruction set's manual gives them. The fence of
// registers does nothing here: that it is missing does not show.
#pragma once
#include "copies.h"
#include "warp_matrix.h"

#pragma clang attribute push(__attribute__((no_sanitize("thread"))), apply_to = function)

namespace emulated {

struct Matrix {  // a descriptor of rows along k
    uint32_t start, eight_rows, width;

    explicit Matrix(uint64_t bits)
        : start(uint32_t(bits & 0x3fff) << 4), eight_rows(uint32_t(bits >> 32 & 0x3fff) << 4), width(bits >> 62 ? 256u >> (bits >> 62) : 0) {
        if (bits >> 49 & 7)
            fault("a matrix descriptor with a base offset");
        if (!width)
            fault("a matrix descriptor without swizzle");
    }
    // Eight neighbours along k, from k = 8 half on; noted: by one of the lanes that read them, which is enough.
    const uint16_t* eight(uint32_t row, uint32_t half, bool noted) const {
        const uint32_t place = start + row / 8 * eight_rows + row % 8 * width + 16 * half;
        uint8_t* found = shared_pointer(swizzled(place, width), 16);
        if (noted)
            touched(found, 16, false, true);
        return reinterpret_cast<uint16_t*>(found);
    }
};

template <class E, uint32_t SLOTS>
struct WarpgroupProduct : Operation {
    float *c[SLOTS], before[SLOTS];  // before: when this product begins to change them, which is known when the one before it has landed
    uint64_t a, b;
    uint32_t lane;

    void land() override {
        WarpgroupProduct* following = of_the_same(next, c[0]);
        const Matrix left(a), right(b);
        const uint32_t group = lane % 32 / 4, place = lane % 4;
        double rows[2][16], column[16];
        for (uint32_t k = 0; k < 16; ++k)
            for (uint32_t down = 0; down < 2; ++down)
                rows[down][k] = E::of(left.eight(lane / 32 * 16 + group + 8 * down, k / 8, k % 8 == 0 && place == k / 8)[k % 8]);
        for (uint32_t n = 0; n < SLOTS / 2; ++n) {
            const uint32_t number = 8 * (n / 2) + 2 * place + n % 2;
            for (uint32_t k = 0; k < 16; ++k)
                column[k] = E::of(right.eight(number, k / 8, k % 8 == 0 && group == (n / 2 + k / 8) % 8)[k % 8]);
            for (uint32_t down = 0; down < 2; ++down) {
                const uint32_t i = 4 * (n / 2) + 2 * down + n % 2;
                double sum = double(before[i]);
                for (uint32_t k = 0; k < 16; ++k)
                    sum += rows[down][k] * column[k];
                (following ? following->before[i] : *c[i]) = float(sum);
            }
        }
    }
    // The next product under way, from `operation` on, that changes these accumulators.
    static WarpgroupProduct* of_the_same(Operation* operation, const float* accumulator) {
        while (operation && static_cast<WarpgroupProduct*>(operation)->c[0] != accumulator)
            operation = operation->next;
        return static_cast<WarpgroupProduct*>(operation);
    }
};

template <class E, uint32_t SLOTS>
void warpgroup_product(const char* name, float** c, uint64_t a, uint64_t b) {
    uint64_t descriptors[2] = {a, b};
    together(name, 128, 128, descriptors, [=](uint64_t(**lanes)[2]) {
        for (uint32_t lane = 0; lane < 128; ++lane)
            if ((*lanes[lane])[0] != a || (*lanes[lane])[1] != b)
                fault("%s: its lanes have different descriptors", name);
    });
    using Product = WarpgroupProduct<E, SLOTS>;
    Product* made = new Product;
    made->a = a, made->b = b, made->lane = current->number % 128;
    for (uint32_t i = 0; i < SLOTS; ++i) {
        made->c[i] = c[i];
        made->before[i] = *c[i];
    }
    if (lands_now() && !current->products.first) {
        made->land();
        delete made;
        return;
    }
    for (uint32_t i = 0; i < SLOTS; ++i)
        *c[i] = __builtin_nanf("");
    current->products.add(made);
}

template <uint32_t SLOTS>
struct ProductArguments {
    float* c[SLOTS];
    const void* factors[2];
    int before[2];
    uint32_t count = 0, given = 0;
    void take(float& slot) { c[count++] = &slot; }
    void take(const void* factor) { factors[given] = factor; }
    void take(int chunks) { before[given++] = chunks; }
};

// The arguments of a wrapper: the accumulators, then the factors' buffers and what lies before them there; `describe` makes descriptors.
template <class E, class A, class B, class... T>
void warpgroup_product_of(const char* name, A describe_a, B describe_b, T&&... given) {
    constexpr uint32_t SLOTS = sizeof...(given) - 4;
    ProductArguments<SLOTS> arguments;
    (arguments.take(given), ...);
    warpgroup_product<E, SLOTS>(name, arguments.c, describe_a(arguments.factors[0], arguments.before[0]),
                                describe_b(arguments.factors[1], arguments.before[1]));
}

}  // namespace emulated

#define EMULATED_WARPGROUP_PRODUCT(E) \
    emulated::warpgroup_product_of<emulated::E>(__func__, matrix_descriptor<SWIZZLE_A>, matrix_descriptor<SWIZZLE_B>, given...)

#pragma clang attribute pop
