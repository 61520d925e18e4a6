// A block of threads on one CPU core: each thread is a fiber with a stack of its own, blocks run one after another, those of a cluster
// beside each other. Of these, one is `here`: shared memory is where the text has it, that of the others is kept elsewhere meanwhile.
//
// A fiber runs until it must wait (a barrier, the other lanes of its warp, a barrier in shared memory) and then gives way; the order
// of the turns is the run's. What is asynchronous lands when it is issued, as late as a wait allows, or by a coin. When no fiber can
// go on and nothing is under way, the block is deadlocked, and what each thread waits for is told. Nothing here is a library's: the
// few functions of the C library that are used are declared below, and found in the process that loads this.
#pragma once

#pragma clang attribute push(__attribute__((no_sanitize("thread"))), apply_to = function)

typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef __SIZE_TYPE__ size_t;
typedef __UINTPTR_TYPE__ uintptr_t;

extern "C" {
int _setjmp(void*) __attribute__((returns_twice));
[[noreturn]] void _longjmp(void*, int);
int getcontext(void*);
void makecontext(void*, void (*)(), int, ...);
int swapcontext(void*, const void*);
void* mmap(void*, size_t, int, int, int, long);
void* malloc(size_t);
void free(void*);
int dprintf(int, const char*, ...);
[[noreturn]] void _exit(int);
void* memset(void*, int, size_t);
void* memcpy(void*, const void*, size_t);
extern unsigned char __start_emulated_shared[], __stop_emulated_shared[];  // the linker's: where `__shared__` variables are
}

namespace emulated {

struct Dim {
    uint32_t x, y, z;
};

enum When { EARLY, LATE, BY_COIN };
constexpr uint32_t MOST_THREADS = 2048, MOST_WARPS = 64, MOST_BLOCKS = 16, STACK_BYTES = 128 << 10, WIDEST_UNIT = 128, EXIT_FAULT = 13;
constexpr uint8_t POISON = 0xff;  // of memory that nobody has written: not a number in every floating-point type

// ---------------------------------------------------------------- threads

struct Operation {  // something asynchronous: `land` does it
    virtual void land() {}
    virtual ~Operation() {}
    static void* operator new(size_t bytes) { return malloc(bytes); }
    static void operator delete(void* pointer) { free(pointer); }
    Operation* next = nullptr;
    uint32_t group = 0;
};

struct Groups {  // operations of one thread that are committed in groups and waited for in order
    Operation *first = nullptr, *last = nullptr;
    uint32_t group = 0;

    void add(Operation* operation) {
        operation->group = group;
        (last ? last->next : first) = operation;
        last = operation;
    }
    void land_before(uint32_t end) {
        while (first && first->group < end) {
            Operation* done = first;
            first = done->next;
            last = first ? last : nullptr;
            done->land();
            delete done;
        }
    }
    void commit() { ++group; }
    void wait(uint32_t pending) { land_before(group > pending ? group - pending : 0); }
};

struct Context {  // ucontext_t: these members come first on every Linux
    unsigned long flags;
    Context* link;
    void* stack;
    int stack_flags;
    size_t stack_bytes;
    char rest[4096];
};

struct Fiber {
    alignas(16) char registers[512];  // jmp_buf
    Dim thread;
    uint32_t number;  // through the cluster: every block begins at a multiple of `pitch`
    uint32_t of_block;
    bool started, done;
    const char* waits_for;
    Groups copies, products, stores;
};

struct Unit {  // lanes that issue one instruction together
    uint32_t arrived, generation;
    const char* instruction;
    void* operands[WIDEST_UNIT];
};

struct Clock {  // by warp: up to which tick its accesses are known to be over
    uint32_t of[MOST_WARPS];
    void learn(const Clock& other) {
        for (uint32_t w = 0; w < MOST_WARPS; ++w)
            of[w] = of[w] < other.of[w] ? other.of[w] : of[w];
    }
};

struct Barrier {
    uint32_t arrived, generation, threads;
    Clock brought, known;  // by those who have come, by those who have passed
};

inline Fiber* fibers = nullptr;
inline Fiber* current = nullptr;
inline Dim block, blocks, threads;
inline uint32_t thread_count, warp_size = 32, steps_done;  // threads of one block
inline uint32_t cluster_blocks = 1, pitch, here;
inline uint32_t ended[MOST_BLOCKS];  // how many threads of each block of the cluster have
void enter(uint32_t);  // another block of the cluster
inline void (*body)(void**);
inline void** arguments;
inline Unit units[2 * MOST_THREADS];  // of warps, then of warpgroups
inline Barrier all_barriers[MOST_BLOCKS][16], *barriers = all_barriers[0], cluster_barrier;

inline uint32_t tick, warp_meetings[MOST_WARPS], block_count, first_block_of_launch;
inline Clock clocks[MOST_WARPS];  // what each warp knows
inline uint32_t rejoined[MOST_WARPS];  // up to which tick the accesses of a warp's lanes are known to its other lanes
inline uint32_t fenced[MOST_WARPS];  // up to which tick a warp's accesses are known to asynchronous copies and products
inline Operation *under_way, *under_way_last;  // what barriers in shared memory wait for
inline When landing;
inline uint64_t random_state;
inline Context home, start_context;
inline char home_registers[512] __attribute__((aligned(16)));

inline uint32_t coin() {  // splitmix64
    uint64_t z = (random_state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return uint32_t((z ^ (z >> 31)) >> 32);
}

inline bool lands_now() { return landing == EARLY || (landing == BY_COIN && coin() % 2); }

template <class... A>
[[noreturn]] __attribute__((noinline)) void fault(const char* format, A... values) {
    if (current)
        dprintf(2, "block (%u, %u, %u), thread %u: ", block.x, block.y, block.z, current->number);
    dprintf(2, format, values...);
    dprintf(2, "\n");
    _exit(EXIT_FAULT);
}

__attribute__((noinline)) inline void give_way() {
    if (!_setjmp(current->registers))
        _longjmp(home_registers, 1);
}

template <class C>
void wait_until(const char* what, C condition) {
    while (!condition()) {
        current->waits_for = what;
        give_way();
    }
    current->waits_for = nullptr;
    ++steps_done;
}

inline Clock& my_clock() { return clocks[current->number / warp_size]; }

// What the thread's warp knows, its own accesses so far included: what it hands on to whoever learns of this.
inline const Clock& handed_on() {
    my_clock().of[current->number / warp_size] = tick++;
    return my_clock();
}

inline void learn(const Clock& known) {
    const uint32_t warp = current->number / warp_size;
    clocks[warp].learn(known);
    rejoined[warp] = rejoined[warp] < known.of[warp] ? known.of[warp] : rejoined[warp];
}

// The threads of a block, or of a part of it, meet at one of its barriers.
inline void meet(Barrier& barrier, uint32_t count, const char* what) {
    if (barrier.arrived && barrier.threads != count)
        fault("%s of %u threads, at which others wait for %u", what, count, barrier.threads);
    const uint32_t generation = barrier.generation;
    barrier.threads = count;
    barrier.brought.learn(handed_on());
    if (++barrier.arrived == count) {
        barrier.arrived = 0;
        barrier.known = barrier.brought;
        ++barrier.generation;
    }
    wait_until(what, [&] { return barrier.generation != generation; });
    learn(barrier.known);
}

inline uint32_t unit_width(uint32_t width) {  // of the thread's unit: the last of a block may be smaller
    const uint32_t mine = current->number - current->of_block * pitch, first = mine / width * width;
    return thread_count - first < width ? thread_count - first : width;
}

// All `width` lanes of a unit bring an operand; the last to come does `all(operands)` for every lane.
template <class T, class F>
void together(const char* instruction, uint32_t width, uint32_t expected, T& mine, F all) {
    Unit& unit = units[(width > 64 ? MOST_THREADS : 0) + current->number / width];
    if (unit.arrived && unit.instruction != instruction)
        fault("%s, while other lanes of its unit are at %s", instruction, unit.instruction);
    if (!unit.arrived)
        for (uint32_t i = 0; i < WIDEST_UNIT; ++i)
            unit.operands[i] = nullptr;
    unit.instruction = instruction;
    unit.operands[current->number % width] = &mine;
    const uint32_t generation = unit.generation;
    if (++unit.arrived == expected) {
        all(reinterpret_cast<T**>(unit.operands));
        unit.arrived = 0;
        ++unit.generation;
        for (uint32_t first = current->number / width * width, i = first; i < first + width; i += warp_size)
            ++warp_meetings[i / warp_size];
    }
    wait_until(instruction, [&] { return unit.generation != generation; });
}

// ---------------------------------------------------------------- turns

inline void begin() {
    body(arguments);
    current->copies.land_before(~0u);
    current->products.land_before(~0u);
    if (current->stores.first)
        fault("ends before its copies from shared memory have been waited for");
    current->done = true;
    ++ended[current->of_block];
    ++steps_done;
    _longjmp(home_registers, 1);
}

inline uint8_t* stacks = nullptr;

inline void turn(Fiber& fiber) {
    current = &fiber;
    enter(fiber.of_block);
    if (!_setjmp(home_registers)) {
        if (fiber.started)
            _longjmp(fiber.registers, 1);
        fiber.started = true;
        ++steps_done;
        getcontext(&start_context);
        start_context.link = nullptr;
        start_context.stack = stacks + size_t(&fiber - fibers) * STACK_BYTES;
        start_context.stack_bytes = STACK_BYTES;
        makecontext(&start_context, begin, 0);
        swapcontext(&home, &start_context);
    }
    current = nullptr;
}

inline bool land_one() {  // of what is under way, the first; or, by a coin, any
    if (!under_way)
        return false;
    Operation **place = &under_way, *before = nullptr;
    while (landing == BY_COIN && (*place)->next && coin() % 2) {
        before = *place;
        place = &(*place)->next;
    }
    Operation* done = *place;
    *place = done->next;
    if (done == under_way_last)
        under_way_last = before;
    done->land();
    delete done;
    ++steps_done;
    return true;
}

inline void issue(Operation* operation) {
    if (landing == EARLY) {
        operation->land();
        delete operation;
        return;
    }
    (under_way ? under_way_last->next : under_way) = operation;
    under_way_last = operation;
}

[[noreturn]] inline void deadlock() {
    dprintf(2, "block (%u, %u, %u): no thread can go on:", block.x, block.y, block.z);
    for (uint32_t first = 0, end, count = cluster_blocks * thread_count; first < count; first = end) {
        const char* what = fibers[first].done ? "the end" : fibers[first].waits_for;
        for (end = first + 1; end < count && (fibers[end].done ? "the end" : fibers[end].waits_for) == what; ++end)
            ;
        dprintf(2, " threads %u to %u %s %s;", first, end - 1, fibers[first].done ? "are at" : "wait for", what);
    }
    dprintf(2, "\n");
    _exit(EXIT_FAULT);
}

enum Turns { ASCENDING, DESCENDING, SHUFFLED };

inline void shuffle(uint32_t* numbers) {
    for (uint32_t i = thread_count; i > 1; --i) {
        const uint32_t j = coin() % i, kept = numbers[i - 1];
        numbers[i - 1] = numbers[j];
        numbers[j] = kept;
    }
}

// Every thread of a cluster's blocks to its end. Shuffled, in each block, a quarter of the warps sits out each round, so that warps
// drift apart.
inline void run_blocks(Turns order, uint32_t* numbers) {
    bool moving = true;
    const uint32_t count = cluster_blocks * thread_count;
    for (uint32_t done = 0; done < count;) {
        const uint32_t before = steps_done, held = order == SHUFFLED && moving ? coin() & coin() : 0;
        for (uint32_t first = 0; order == SHUFFLED && first < count; first += thread_count)
            shuffle(numbers + first);
        done = 0;
        for (uint32_t i = 0; i < count; ++i) {
            Fiber& fiber = fibers[numbers[order == DESCENDING ? count - 1 - i : i]];
            if (!fiber.done && !(held >> (fiber.number / warp_size % 32) & 1))
                turn(fiber);
            done += fiber.done;
        }
        if (landing == BY_COIN && coin() % 2)
            land_one();
        moving = steps_done != before;
        if (done < count && !moving && !held && !land_one())
            deadlock();
    }
    while (land_one())
        ;
}

}  // namespace emulated

#pragma clang attribute pop
