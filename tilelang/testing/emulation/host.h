// What surrounds the threads: the arrays that kernels are given, shared memory, what the compiler's checks call, and what Python calls.
#pragma once
#include "machine.h"

#pragma clang attribute push(__attribute__((no_sanitize("thread"))), apply_to = function)

namespace emulated {

// ---------------------------------------------------------------- memory

struct Region {  // an array that kernels are given: it ends where a page begins that nobody may touch, and another lies before it
    uint8_t *start, *pages;
    size_t bytes, page_bytes;
    const char* name;
};

constexpr size_t PAGE = 65536, ALIGNMENT = 16;
constexpr uint32_t MOST_REGIONS = 256;
inline Region regions[MOST_REGIONS];
inline uint32_t region_count;

inline uint8_t* reserve(size_t bytes) {
    void* found = mmap(nullptr, bytes, 3, 0x4022, -1, 0);  // read and write; private, anonymous, no reserve
    if (found == reinterpret_cast<void*>(-1))
        fault("no memory for %llu bytes", (unsigned long long)bytes);
    return static_cast<uint8_t*>(found);
}

inline void segment_fault(int, void* information, void*) {
    const uint8_t* address = *reinterpret_cast<uint8_t**>(static_cast<uint8_t*>(information) + 16);
    for (uint32_t i = 0; i < region_count; ++i)
        if (regions[i].pages <= address && address < regions[i].pages + regions[i].page_bytes)
            fault("out of bounds: byte %lld of %s, which has %llu", (long long)(address - regions[i].start), regions[i].name,
                  (unsigned long long)regions[i].bytes);
    if (!address)  // what x86 tells of a misaligned vector
        fault("a vector is read or written at an address that is not a multiple of its size, or a null pointer");
    fault("an access to memory that is no argument of the kernel");
}

struct Action {  // struct sigaction of 64-bit Linux
    void (*handler)(int, void*, void*);
    unsigned long mask[16];
    int flags;
    void (*restorer)();
};

struct Shared {
    uint8_t* start() const { return __start_emulated_shared; }
    size_t bytes() const { return size_t(__stop_emulated_shared - __start_emulated_shared); }
};

inline Shared shared;
inline uint8_t* elsewhere[MOST_BLOCKS];  // the shared memory of the blocks of a cluster that are not here
inline uint32_t first_block;  // of the cluster

inline void enter(uint32_t number) {
    if (number == here)
        return;
    memcpy(elsewhere[here], shared.start(), shared.bytes());
    memcpy(shared.start(), elsewhere[number], shared.bytes());
    here = number;
    barriers = all_barriers[number];
    block.x = first_block + number;
}

// The same place in the shared memory of a block of the cluster.
inline uint8_t* in_block(void* place, uint32_t number) {
    if (number >= cluster_blocks)
        fault("block %u of a cluster that has %u", number, cluster_blocks);
    if (ended[number] == thread_count)
        fault("the shared memory of block %u of the cluster is used, which has ended", number);
    uint8_t* here_too = static_cast<uint8_t*>(place);
    return number == here ? here_too : elsewhere[number] + (here_too - shared.start());
}
constexpr uint32_t RESERVED_SHARED_BYTES = 1024;  // the address of a block's first variable is not 0

inline uint32_t shared_address(const void* pointer) {
    const uint8_t* place = static_cast<const uint8_t*>(pointer);
    if (place < shared.start() || place > shared.start() + shared.bytes())
        fault("an address that is not in shared memory is used as one");
    return uint32_t(place - shared.start()) + RESERVED_SHARED_BYTES;
}

inline uint8_t* shared_pointer(uint32_t address, uint32_t bytes) {
    const uint32_t offset = address - RESERVED_SHARED_BYTES;
    if (address < RESERVED_SHARED_BYTES || offset + bytes > shared.bytes())
        fault("shared memory has no bytes %u to %u", offset, offset + bytes - 1);
    return shared.start() + offset;
}

}  // namespace emulated

// ---------------------------------------------------------------- what the compiler's checks call

namespace emulated {
struct Place {  // in the source; what the compiler hands to a check begins with it
    const char* file;
    uint32_t line, column;
};
}  // namespace emulated

extern "C" {
inline __attribute__((used)) void __ubsan_handle_type_mismatch_v1(const emulated::Place* place, uintptr_t address) {
    emulated::fault("line %u: an access at an address that is not a multiple of what it must be, ...%03x", place->line,
                    unsigned(address & 0xfff));
}
inline __attribute__((used)) void __ubsan_handle_out_of_bounds(const emulated::Place* place, uintptr_t index) {
    emulated::fault("line %u: index %lld is beyond its array", place->line, (long long)index);
}
inline __attribute__((used)) void __ubsan_handle_divrem_overflow(const emulated::Place* place, uintptr_t, uintptr_t) {
    emulated::fault("line %u: a division by zero", place->line);
}
}

// ---------------------------------------------------------------- what Python calls

extern "C" {

int sigaction(int, const emulated::Action*, emulated::Action*);
int mprotect(void*, size_t, int);

// An array's place in this process, with its bytes copied in.
inline __attribute__((used)) void* emulated_array(const char* name, const void* from, size_t bytes) {
    using namespace emulated;
    if (region_count == MOST_REGIONS)
        fault("more than %u arrays", MOST_REGIONS);
    const size_t inner = (bytes + PAGE - 1) / PAGE * PAGE;
    Region& region = regions[region_count++];
    region.page_bytes = inner + 2 * PAGE;
    region.pages = reserve(region.page_bytes);
    region.bytes = bytes;
    region.name = name;
    region.start = region.pages + PAGE + (inner - bytes) / ALIGNMENT * ALIGNMENT;
    memset(region.pages + PAGE, 0x5a, inner);
    memcpy(region.start, from, bytes);
    mprotect(region.pages, PAGE, 0);
    mprotect(region.pages + PAGE + inner, PAGE, 0);
    return region.start;
}

// Copies an array back; bytes beside it that have changed were written out of bounds.
inline __attribute__((used)) void emulated_result(uint32_t number, void* to) {
    using namespace emulated;
    const Region& region = regions[number];
    const uint8_t *first = region.pages + PAGE, *last = region.pages + region.page_bytes - PAGE;
    for (const uint8_t* p = first; p < last; ++p)
        if ((p < region.start || p >= region.start + region.bytes) && *p != 0x5a)
            fault("out of bounds: byte %lld of %s, which has %llu, was written", (long long)(p - region.start), region.name,
                  (unsigned long long)region.bytes);
    memcpy(to, region.start, region.bytes);
}

inline __attribute__((used)) void emulated_launch(void (*kernel)(void**), void** values, const uint32_t* grid, uint32_t count,
                                                  uint32_t cluster, uint32_t warp, uint32_t turns, uint32_t when, uint64_t seed) {
    using namespace emulated;
    const Action action = {segment_fault, {}, 0x40000004, nullptr};  // SA_SIGINFO, SA_NODEFER
    sigaction(11, &action, nullptr);
    sigaction(7, &action, nullptr);
    if (!stacks)
        stacks = reserve(size_t(MOST_THREADS) * STACK_BYTES);
    const uint32_t all = count * cluster;
    pitch = cluster > 1 ? (count + WIDEST_UNIT - 1) / WIDEST_UNIT * WIDEST_UNIT : count;
    if (all > MOST_THREADS || cluster > MOST_BLOCKS || pitch * cluster > MOST_WARPS * warp || grid[0] % cluster)
        fault("a launch of %u blocks of %u threads in clusters of %u", grid[0], count, cluster);
    fibers = static_cast<Fiber*>(malloc(sizeof(Fiber) * all));
    uint32_t* numbers = static_cast<uint32_t*>(malloc(4 * all));
    body = kernel, arguments = values, thread_count = count, warp_size = warp, landing = When(when), random_state = seed;
    cluster_blocks = cluster;
    for (uint32_t i = 0; i < cluster && cluster > 1; ++i)
        elsewhere[i] = elsewhere[i] ? elsewhere[i] : reserve(shared.bytes());
    first_block_of_launch = block_count + 1;
    blocks = {grid[0], grid[1], grid[2]}, threads = {count, 1, 1};
    for (block.z = 0; block.z < blocks.z; ++block.z)
        for (block.y = 0; block.y < blocks.y; ++block.y)
            for (first_block = 0; first_block < blocks.x; first_block += cluster) {
                ++block_count;
                ++tick;
                here = 0, block.x = first_block, barriers = all_barriers[0];
                memset(shared.start(), POISON, shared.bytes());
                for (uint32_t i = 1; i < cluster; ++i)
                    memset(elsewhere[i], POISON, shared.bytes());
                memset(fibers, 0, sizeof(Fiber) * all);
                memset(units, 0, sizeof(units));
                memset(all_barriers, 0, sizeof(all_barriers));
                memset(&cluster_barrier, 0, sizeof(cluster_barrier));
                memset(ended, 0, sizeof(ended));
                for (uint32_t i = 0; i < all; ++i) {
                    numbers[i] = i;
                    fibers[i].of_block = i / count;
                    fibers[i].number = i / count * pitch + i % count;
                    fibers[i].thread = {i % count, 0, 0};
                }
                run_blocks(Turns(turns), numbers);
            }
    free(numbers);
    free(fibers);
}
}

#pragma clang attribute pop
