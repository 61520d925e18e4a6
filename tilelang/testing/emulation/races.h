// Accesses of the kernel's own text, one by one: beyond an array, and races between threads.
//
// The compiler calls a function before each access (`-fsanitize=thread` puts the calls there; its library is not used). For each byte
// of shared memory and of the arguments it is known who wrote and who read it last. Two accesses by different threads, of which one
// writes, race unless something orders them: a barrier of the block, a meeting of the lanes of a warp, arrivals at a barrier in shared
// memory that the other waits for; nothing orders blocks. Order is kept warp by warp, so that what one lane gives or awaits counts for
// its whole warp, and of several readers only the last one exactly: a race may be missed, none is made up.
#pragma once
#include "host.h"

#pragma clang attribute push(__attribute__((no_sanitize("thread"))), apply_to = function)

namespace emulated {

struct Touch {
    uint32_t block, tick, warp_meetings;  // block: counted through all launches from 1, 0: never
    uint16_t thread;
    bool by_lanes;      // by other threads of the warp, too, since its last meeting
    bool asynchronous;  // by a copy or a product that runs beside the threads
};

struct History {
    Touch written, read;
    uint64_t readers;  // warps that have read since the last write
    uint32_t first_read;  // and when that began
};

inline History* shared_history[MOST_BLOCKS];  // of each block of a cluster
inline History* region_history[MOST_REGIONS];

inline uint32_t warp_of(uint32_t thread) { return thread / warp_size; }

// Whether the lanes of a warp have not met since an access by one of them.
inline bool of_this_meeting(const Touch& touch, uint32_t warp) {
    return touch.warp_meetings == warp_meetings[warp] && touch.tick > rejoined[warp];
}

// Whether an earlier access is not ordered before one that the thread makes now; of_all: of memory that all blocks have.
inline bool races_with(const Touch& touch, bool of_all) {
    const uint32_t me = current->number, warp = warp_of(me), other = warp_of(touch.thread);
    if (!touch.block || touch.block != block_count)
        return of_all && touch.block >= first_block_of_launch;
    if (other != warp)
        return touch.tick > clocks[warp].of[other];
    return (touch.thread != me || touch.by_lanes) && of_this_meeting(touch, warp);
}

inline bool races_with_a_reader(const History& known, bool of_all) {
    if (races_with(known.read, of_all))
        return true;
    const uint32_t warp = warp_of(current->number), last = warp_of(known.read.thread);
    for (uint32_t other = 0; other < MOST_WARPS && known.read.block == block_count; ++other)
        if (known.readers >> other & 1 && other != warp && other != last && known.first_read > clocks[warp].of[other])
            return true;
    return false;
}

inline void note(Touch& touch, bool asynchronous) {
    const uint32_t me = current->number, warp = warp_of(me);
    const bool again = touch.block == block_count && warp_of(touch.thread) == warp && of_this_meeting(touch, warp);
    touch = {block_count, tick, warp_meetings[warp], uint16_t(me), again && (touch.by_lanes || touch.thread != me),
             asynchronous};
}

// Whether a write by a thread is not known to what runs beside the threads.
inline bool unfenced(const Touch& written) {
    return written.block == block_count && !written.asynchronous && written.tick > fenced[warp_of(written.thread)];
}

inline void fence() { fenced[warp_of(current->number)] = tick++; }

[[noreturn]] inline void tell_race(size_t byte, const char* name, const char* now, const char* before, const Touch& other) {
    if (other.block != block_count)
        fault("a race: byte %llu of %s is %s, and thread %u of another block %s it", (unsigned long long)byte, name, now, other.thread,
              before);
    if (other.thread == current->number)
        fault("a race: byte %llu of %s is %s, and another thread of its warp %s it with no barrier between", (unsigned long long)byte,
              name, now, before);
    fault("a race: byte %llu of %s is %s, and thread %u %s it with no barrier between", (unsigned long long)byte, name, now,
          other.thread, before);
}

inline void touch_bytes(History* history, size_t first, uint32_t bytes, bool write, bool asynchronous, const char* name, bool of_all) {
    for (size_t i = first; i < first + bytes; ++i) {
        History& known = history[i];
        if (races_with(known.written, of_all))
            tell_race(i, name, write ? "written" : "read", "wrote", known.written);
        if (write && races_with_a_reader(known, of_all))
            tell_race(i, name, "written", "read", known.read);
        if (write) {
            known.readers = 0;
            note(known.written, asynchronous);
            continue;
        }
        if (asynchronous && unfenced(known.written))
            fault("byte %llu of %s is read asynchronously, and thread %u wrote it with no fence behind", (unsigned long long)i, name,
                  known.written.thread);
        if (known.read.block != block_count || !known.readers)
            known.readers = 0, known.first_read = tick;
        known.readers |= uint64_t(1) << warp_of(current->number);
        note(known.read, asynchronous);
    }
}

inline History* history_of(size_t bytes) { return reinterpret_cast<History*>(reserve(bytes * sizeof(History))); }

inline History* history_in(uint32_t of_block) {
    if (!shared_history[of_block])
        shared_history[of_block] = history_of(shared.bytes());
    return shared_history[of_block];
}

// An access of the thread whose turn it is; to shared memory, in a block of its cluster.
inline void touched(const void* pointer, uint32_t bytes, bool write, bool asynchronous = false, uint32_t of_block = here) {
    const uint8_t* place = static_cast<const uint8_t*>(pointer);
    if (!current || !bytes)
        return;
    if (place >= shared.start() && place < shared.start() + shared.bytes()) {
        touch_bytes(history_in(of_block), size_t(place - shared.start()), bytes, write, asynchronous, "shared memory", false);
        return;
    }
    for (uint32_t i = 0; i < region_count; ++i) {
        const Region& region = regions[i];
        if (place < region.pages || place >= region.pages + region.page_bytes)
            continue;
        if (place < region.start || place + bytes > region.start + region.bytes)
            fault("out of bounds: bytes %lld to %lld of %s, which has %llu", (long long)(place - region.start),
                  (long long)(place - region.start) + bytes - 1, region.name, (unsigned long long)region.bytes);
        if (!region_history[i])
            region_history[i] = history_of(region.bytes);
        touch_bytes(region_history[i], size_t(place - region.start), bytes, write, false, region.name, true);
        return;
    }
}

}  // namespace emulated

extern "C" {
#define EMULATED_ACCESS(bytes)                                                                                                       \
    inline __attribute__((used)) void __tsan_read##bytes(void* p) { emulated::touched(p, bytes, false); }                            \
    inline __attribute__((used)) void __tsan_write##bytes(void* p) { emulated::touched(p, bytes, true); }                            \
    inline __attribute__((used)) void __tsan_unaligned_read##bytes(void* p) { emulated::touched(p, bytes, false); }                  \
    inline __attribute__((used)) void __tsan_unaligned_write##bytes(void* p) { emulated::touched(p, bytes, true); }
EMULATED_ACCESS(1)
EMULATED_ACCESS(2)
EMULATED_ACCESS(4)
EMULATED_ACCESS(8)
EMULATED_ACCESS(16)
#undef EMULATED_ACCESS
inline __attribute__((used)) void __tsan_init() {}
inline __attribute__((used)) void __tsan_func_entry(void*) {}
inline __attribute__((used)) void __tsan_func_exit() {}
inline __attribute__((used)) void __tsan_vptr_update(void**, void*) {}
inline __attribute__((used)) void __tsan_vptr_read(void**) {}
inline __attribute__((used)) void* __tsan_memcpy(void* to, const void* from, size_t bytes) {
    emulated::touched(from, uint32_t(bytes), false);
    emulated::touched(to, uint32_t(bytes), true);
    return memcpy(to, from, bytes);
}
inline __attribute__((used)) void* __tsan_memset(void* to, int value, size_t bytes) {
    emulated::touched(to, uint32_t(bytes), true);
    return memset(to, value, bytes);
}
}

#pragma clang attribute pop
