// Asynchronous copies, barriers in shared memory that count bytes, and tensor copies by a map.
#pragma once
#include "races.h"

#pragma clang attribute push(__attribute__((no_sanitize("thread"))), apply_to = function)

namespace emulated {

struct Copy : Operation {
    uint8_t* target;
    const uint8_t* source;
    uint32_t bytes, source_bytes;
    void land() override {
        touched(source, source_bytes, false);
        touched(target, bytes, true);
        for (uint32_t i = 0; i < bytes; ++i)
            target[i] = i < source_bytes ? source[i] : 0;
    }
};

// `bytes` from global to shared memory, zeros after the first `source_bytes`; what was there is lost at once.
inline void copy(void* target, const void* source, uint32_t bytes, uint32_t source_bytes) {
    if (reinterpret_cast<uintptr_t>(target) % bytes || reinterpret_cast<uintptr_t>(source) % bytes)
        fault("an asynchronous copy of %u bytes from or to an address that is not a multiple of it", bytes);
    shared_address(target);
    Copy* made = new Copy;
    made->target = static_cast<uint8_t*>(target);
    made->source = static_cast<const uint8_t*>(source);
    made->bytes = bytes;
    made->source_bytes = source_bytes;
    if (lands_now()) {
        made->land();
        delete made;
        return;
    }
    touched(target, bytes, true);
    memset(target, POISON, bytes);
    current->copies.add(made);
}

// ---------------------------------------------------------------- barriers in shared memory

struct Mbarrier {  // the eight bytes of one: arrivals still to come, arrivals of a phase, the phase's parity, bytes still to come
    uint16_t pending, count : 15, phase : 1;
    int32_t bytes;
};

inline void settle(Mbarrier& barrier) {
    if (barrier.pending || barrier.bytes)
        return;
    barrier.phase ^= 1;
    barrier.pending = barrier.count;
    ++steps_done;
}

inline Mbarrier& mbarrier(void* place, uint32_t of_block = here) {
    Mbarrier& found = *reinterpret_cast<Mbarrier*>(in_block(place, of_block));
    if (reinterpret_cast<uintptr_t>(place) % 8)
        fault("a barrier in shared memory whose address is not a multiple of 8");
    if (found.count == 0x7fff)  // poison
        fault("a barrier in shared memory is used before it is made");
    return found;
}

struct Known {  // what those who arrived at a barrier knew; fenced: copies know that the barrier was made
    void* place;
    uint32_t of_block;
    Clock clock;
    bool fenced;
};

inline Known known_at[256];
inline uint32_t known_at_count, known_at_block;

inline Known& known_of(void* place, uint32_t of_block = here) {
    if (known_at_block != block_count)
        known_at_block = block_count, known_at_count = 0;
    for (uint32_t i = 0; i < known_at_count; ++i)
        if (known_at[i].place == place && known_at[i].of_block == of_block)
            return known_at[i];
    if (known_at_count == 256)
        fault("more than 256 barriers in shared memory");
    known_at[known_at_count] = {place, of_block, {}, false};
    return known_at[known_at_count++];
}

inline Clock& clock_of(void* place, uint32_t of_block = here) { return known_of(place, of_block).clock; }

inline void mbarrier_fence() {
    for (uint32_t i = 0; i < known_at_count; ++i)
        known_at[i].fenced = known_at[i].fenced || known_at[i].of_block == here;
}

inline void mbarrier_make(void* place, uint32_t count) {
    shared_address(place);
    known_of(place) = {place, here, {}, false};
    *static_cast<Mbarrier*>(place) = {uint16_t(count), uint16_t(count), 0, 0};
    mbarrier(place);
}

inline void mbarrier_arrive_at(void* place, uint32_t bytes, uint32_t of_block = here) {
    Mbarrier& barrier = mbarrier(place, of_block);
    if (!barrier.pending)
        fault("more arrivals at a barrier in shared memory than the %u of a phase", barrier.count);
    barrier.bytes += int32_t(bytes);
    --barrier.pending;
    clock_of(place, of_block).learn(handed_on());
    settle(barrier);
}

inline void mbarrier_complete(void* place, uint32_t bytes, uint32_t of_block) {
    Mbarrier& barrier = mbarrier(place, of_block);
    barrier.bytes -= int32_t(bytes);
    settle(barrier);
}

inline void mbarrier_wait_for(void* place, uint32_t parity) {
    wait_until("a phase of a barrier in shared memory", [=] { return mbarrier(place).phase != (parity & 1); });
    learn(clock_of(place));
}

// ---------------------------------------------------------------- tensor copies

struct Map {  // what a tensor map says; innermost dimension first
    uint8_t* address;
    uint32_t rank, element_bytes, swizzle_bytes, reserved;
    uint32_t extent[5], box[5];
    uint64_t stride_bytes[5];  // of the first dimension: element_bytes

    uint32_t box_bytes() const {
        uint32_t bytes = element_bytes;
        for (uint32_t d = 0; d < rank; ++d)
            bytes *= box[d];
        return bytes;
    }
};

// Swizzles exchange 16-byte chunks by the address in shared memory: bits 4 and on with bits 7 and on, as many as the width has.
inline uint32_t swizzled(uint32_t address, uint32_t width_bytes) { return address ^ (address >> 3 & (width_bytes - 16) & 0x70); }

template <class F>
void each_element(const Map& map, const int32_t* start, uint32_t target, F found) {
    uint32_t index[5] = {};
    for (uint32_t n = 0, count = map.box_bytes() / map.element_bytes; n < count; ++n) {
        bool inside = true;
        uint64_t offset = 0;
        for (uint32_t d = 0; d < map.rank; ++d) {
            const int64_t at = int64_t(start[d]) + index[d];
            inside = inside && at >= 0 && at < map.extent[d];
            offset += uint64_t(at) * map.stride_bytes[d];
        }
        const uint32_t place = target + n * map.element_bytes;
        found(shared_pointer(map.swizzle_bytes ? swizzled(place, map.swizzle_bytes) : place, map.element_bytes),
              inside ? map.address + offset : nullptr);
        for (uint32_t d = 0; d < map.rank && ++index[d] == map.box[d]; ++d)
            index[d] = 0;
    }
}

struct TensorCopy : Operation {
    Map map;
    int32_t start[5];
    uint32_t address;
    void* barrier;  // of a load; a store has none
    Clock known;    // at the issue of a load: what it was ordered behind
    uint32_t to;    // of a load: the block that it brings the box to
    void land() override {
        const uint32_t bytes = map.element_bytes;
        each_element(map, start, address, [=, this](uint8_t* inner, uint8_t* outer) {
            if (barrier && outer)
                memcpy(in_block(inner, to), outer, bytes);
            else if (barrier)
                memset(in_block(inner, to), 0, bytes);
            else if (outer) {
                touched(inner, bytes, false, true);
                touched(outer, bytes, true);
                memcpy(outer, inner, bytes);
            }
        });
        if (barrier) {
            clock_of(barrier, to).learn(known);
            mbarrier_complete(barrier, map.box_bytes(), to);
        }
    }
};

inline TensorCopy* tensor_copy(const void* map, void* place, void* barrier, const int32_t* start) {
    TensorCopy* made = new TensorCopy;
    made->map = *static_cast<const Map*>(map);
    made->address = shared_address(place);
    made->barrier = barrier;
    if (made->map.rank < 1 || made->map.rank > 5)
        fault("a tensor copy by what is no tensor map");
    if (made->address % 128)
        fault("a tensor copy from or to an address in shared memory that is not a multiple of 128");
    for (uint32_t d = 0; d < made->map.rank; ++d)
        made->start[d] = start[d];
    return made;
}

// To a block of the cluster.
inline void tensor_load(void* target, const void* map, void* barrier, const int32_t* start, uint32_t to) {
    TensorCopy* made = tensor_copy(map, target, barrier, start);
    mbarrier(barrier, made->to = to);
    if (!known_of(barrier, to).fenced)
        fault("a tensor copy to a barrier in shared memory with no fence since it was made");
    each_element(made->map, start, made->address, [&](uint8_t* inner, uint8_t* outer) {
        touched(inner, made->map.element_bytes, true, true, to);
        memset(in_block(inner, to), POISON, made->map.element_bytes);
        if (outer)
            touched(outer, made->map.element_bytes, false);
    });
    made->known = handed_on();
    issue(made);
}

inline void tensor_store(const void* map, const void* source, const int32_t* start) {
    TensorCopy* made = tensor_copy(map, const_cast<void*>(source), nullptr, start);
    if (lands_now()) {
        made->land();
        delete made;
        return;
    }
    current->stores.add(made);
}

}  // namespace emulated

#pragma clang attribute pop
