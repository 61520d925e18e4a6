// A thread pool that runs the blocks of one launch at a time; see host_pool.py for its use.
//
// The calling thread takes part. Each thread has a fixed share of the blocks, the same in every launch, and takes an eighth of the rest
// of its share at a time. A thread that has finished its share steals blocks from others: immediately if the owner has not begun,
// otherwise after `spare_cycles`, because the data of stolen blocks moves to another core. Every second launch traverses a share
// backwards: the data used last in one launch is still in the core's cache, and the next launch needs it first if it uses the same
// data.
//
// No header is included and no symbol is left undefined. On Linux the pool makes system calls directly; on macOS and Windows the
// functions to wait, wake and yield are passed by address in `System`.
typedef long long int64;
typedef unsigned long long uint64;
typedef void (*Blocks)(void *const *arguments, char *scratch, int64 first, int64 last);

#define LINE_BYTES 128        // x86 prefetches pairs of 64-byte lines; Apple's lines have 128 bytes
#define PARTS 8               // a thread takes 1/PARTS of the rest of a share at a time
#define STEPS 64              // the maximum number of calls for the blocks taken, when going backwards
#define MOST_BLOCKS (1LL << 30) // per round: the indices of a block and of a round share 64 bits
#define CLOSED 0x7fffffffLL   // the position of a share that is closed
#define BEGUN (1LL << 31)     // flag of a share: its owner has begun
#define MOST_CORES 4096
#define LINE _Alignas(LINE_BYTES)

#if defined(_WIN32)
#define EXPORT __attribute__((dllexport))
#else
#define EXPORT __attribute__((visibility("default")))
#endif

typedef struct { // functions of the operating system; null on Linux
  void *wait, *wake_one, *wake_all, *yield, *mask;
} System;

typedef struct { // one per kernel and launch shape
  int64 work_cycles; // of the previous launch, summed over threads; 0: unknown
  Blocks function;
  int64 blocks;
} Launch;

typedef struct Pool Pool;

typedef struct { // one per thread; thread 0 is the caller
  LINE int64 share;  // round << 32 | (BEGUN or 0) | next block, relative to the start of the share
  int64 core;        // where the thread last ran, -1: unknown
  int64 thread;      // the system's thread id, 0: not started
  Pool *pool;
} Seat;

struct Pool {
  LINE int lock;    // 0: free, 1: a launch runs, 2: a launch runs and another thread sleeps until it ends
  LINE int round;   // the current round; idle threads wait for it to change
  LINE int asleep;  // number of idle threads that sleep in the kernel
  LINE int done;    // blocks of this round that are done
  int caller_waits; // whether the caller sleeps in the kernel until `done` changes
  LINE Blocks function;
  void *const *arguments;
  int64 base, blocks; // of this round: blocks base .. base + blocks - 1
  int64 shares;       // of this round: at most as many as blocks
  char *scratch;
  int64 scratch_stride, scratch_bytes;
  int64 threads, wait_cycles, little_cycles, spare_cycles, end;
  int stopped;
  System system;
  Seat seats[];
};

#define LOAD(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define ACQUIRE(x) __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define STORE(x, value) __atomic_store_n(&(x), value, __ATOMIC_RELAXED)
#define RELEASE(x, value) __atomic_store_n(&(x), value, __ATOMIC_RELEASE)
#define ORDERED __ATOMIC_SEQ_CST

// ---------------------------------------------------------------- the CPU

#if defined(__x86_64__)
static inline int64 cycles(void) { return (int64)__builtin_ia32_rdtsc(); }
static inline void relax(void) { __builtin_ia32_pause(); }
typedef unsigned int Arithmetic;
#define DEFAULT_ARITHMETIC 0x1f80 // rounds to nearest, keeps denormals, no traps
static inline Arithmetic arithmetic(void) { return __builtin_ia32_stmxcsr(); }
static inline void set_arithmetic(Arithmetic state) { __builtin_ia32_ldmxcsr(state); }
#define SAME_ARITHMETIC(a, b) (((a) & 0xffc0) == ((b) & 0xffc0)) // the other bits are sticky flags
#elif defined(__aarch64__)
static inline int64 cycles(void) {
  int64 now;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(now));
  return now;
}
static inline void relax(void) { __asm__ volatile("isb"); } // `yield` does nothing on most cores; isb takes about ten cycles
typedef uint64 Arithmetic;
#define DEFAULT_ARITHMETIC 0
static inline Arithmetic arithmetic(void) {
  uint64 state;
  __asm__ volatile("mrs %0, fpcr" : "=r"(state));
  return state;
}
static inline void set_arithmetic(Arithmetic state) { __asm__ volatile("msr fpcr, %0" : : "r"(state)); }
#define SAME_ARITHMETIC(a, b) ((a) == (b))
#else
#error "the pool is written for x86-64 and arm64"
#endif

// ---------------------------------------------------------------- the operating system

#if defined(__linux__) && defined(__x86_64__)
enum { FUTEX = 202, YIELD = 24, GETTID = 186, SET_AFFINITY = 203, GET_AFFINITY = 204, SIGNAL_MASK = 14 };
static int64 call(int64 number, int64 a, int64 b, int64 c, int64 d) {
  register int64 fourth __asm__("r10") = d;
  __asm__ volatile("syscall" : "+a"(number) : "D"(a), "S"(b), "d"(c), "r"(fourth) : "rcx", "r11", "memory");
  return number;
}
#elif defined(__linux__)
enum { FUTEX = 98, YIELD = 124, GETTID = 178, SET_AFFINITY = 122, GET_AFFINITY = 123, SIGNAL_MASK = 135 };
static int64 call(int64 number, int64 a, int64 b, int64 c, int64 d) {
  register int64 eighth __asm__("x8") = number;
  register int64 first __asm__("x0") = a, second __asm__("x1") = b, third __asm__("x2") = c, fourth __asm__("x3") = d;
  __asm__ volatile("svc 0" : "+r"(first) : "r"(eighth), "r"(second), "r"(third), "r"(fourth) : "memory");
  return first;
}
#endif

#if defined(__linux__)
static void sleep_while(Pool *pool, int *word, int value) { call(FUTEX, (int64)word, 128, value, 0); } // FUTEX_WAIT_PRIVATE
static void wake(Pool *pool, int *word, int64 threads) { call(FUTEX, (int64)word, 129, threads, 0); }
static void yield(Pool *pool) { call(YIELD, 0, 0, 0, 0); }
static int64 own_number(void) { return call(GETTID, 0, 0, 0, 0); }
static void block_signals(Pool *pool, uint64 *set) { call(SIGNAL_MASK, 0, (int64)set, 0, 8); } // SIG_BLOCK
#define SYNCHRONOUS_SIGNALS (1ULL << 3 | 1ULL << 4 | 1ULL << 5 | 1ULL << 6 | 1ULL << 7 | 1ULL << 10)
#elif defined(__APPLE__)
static void sleep_while(Pool *pool, int *word, int value) { // __ulock_wait, UL_COMPARE_AND_WAIT
  ((int (*)(unsigned, void *, uint64, unsigned))pool->system.wait)(1, word, (unsigned)value, 0);
}
static void wake(Pool *pool, int *word, int64 threads) { // __ulock_wake, ULF_WAKE_ALL
  ((int (*)(unsigned, void *, uint64))pool->system.wake_all)(threads > 1 ? 0x101 : 1, word, 0);
}
static void yield(Pool *pool) { ((int (*)(void))pool->system.yield)(); }
static int64 own_number(void) { return 1; }
static void block_signals(Pool *pool, uint64 *set) { // pthread_sigmask, SIG_BLOCK
  ((int (*)(int, const void *, void *))pool->system.mask)(1, set, 0);
}
#define SYNCHRONOUS_SIGNALS (1ULL << 3 | 1ULL << 4 | 1ULL << 5 | 1ULL << 7 | 1ULL << 9 | 1ULL << 10)
#else // Windows: WaitOnAddress, WakeByAddressSingle, WakeByAddressAll, SwitchToThread
static void sleep_while(Pool *pool, int *word, int value) {
  ((int (*)(volatile void *, void *, uint64, unsigned))pool->system.wait)(word, &value, sizeof value, 0xffffffffu);
}
static void wake(Pool *pool, int *word, int64 threads) {
  ((void (*)(void *))(threads > 1 ? pool->system.wake_all : pool->system.wake_one))(word);
}
static void yield(Pool *pool) { ((int (*)(void))pool->system.yield)(); }
static int64 own_number(void) { return 1; }
static void block_signals(Pool *pool, uint64 *set) {}
#define SYNCHRONOUS_SIGNALS 0
#endif

#if defined(__linux__) && defined(__x86_64__)
static int64 core_here(void) {
  unsigned core;
  __builtin_ia32_rdtscp(&core);
  return core & 0xfff;
}
// A thread that wakes on the caller's core would wait for the caller, so it is restricted to the caller's other cores, if there are
// any.
static void send_away(Seat *seat, int64 core) {
  uint64 cores[MOST_CORES / 64], any = 0;
  const int64 bytes = call(GET_AFFINITY, 0, sizeof cores, (int64)cores, 0);
  for (int64 n = 0; n < bytes / 8; n++) {
    if (n == core / 64) cores[n] &= ~(1ULL << core % 64);
    any |= cores[n];
  }
  if (any) call(SET_AFFINITY, LOAD(seat->thread), bytes, (int64)cores, 0);
  STORE(seat->core, -1);
}
#else
static int64 core_here(void) { return -1; }
static void send_away(Seat *seat, int64 core) {}
#endif

// Waits while a word has this value: spins for the pool's waiting time, then sleeps in the kernel. May return after a spurious wake-up,
// so callers must check again.
static void wait_while(Pool *pool, int *word, int value, int *sleepers) {
  const int64 start = cycles(), most = pool->wait_cycles;
  while (ACQUIRE(*word) == value) {
    if (cycles() - start < most) {
      for (int n = 0; n < 16 && LOAD(*word) == value; n++) relax();
      if (LOAD(*word) == value) yield(pool);
      continue;
    }
    if (sleepers) __atomic_fetch_add(sleepers, 1, ORDERED);
    sleep_while(pool, word, value);
    if (sleepers) __atomic_fetch_sub(sleepers, 1, ORDERED);
  }
}

// ---------------------------------------------------------------- one launch at a time

static void take_lock(Pool *pool) {
  int state = 0;
  if (__atomic_compare_exchange_n(&pool->lock, &state, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
  const int64 start = cycles();
  while (cycles() - start < pool->wait_cycles) {
    state = 0;
    if (LOAD(pool->lock) == 0 && __atomic_compare_exchange_n(&pool->lock, &state, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
    for (int n = 0; n < 16 && LOAD(pool->lock); n++) relax();
    yield(pool);
  }
  while (__atomic_exchange_n(&pool->lock, 2, __ATOMIC_ACQUIRE)) sleep_while(pool, &pool->lock, 2);
}

static void give_lock(Pool *pool) {
  if (__atomic_exchange_n(&pool->lock, 0, __ATOMIC_RELEASE) == 2) wake(pool, &pool->lock, 1);
}

// ---------------------------------------------------------------- taking part

static int after(int round) { return round == CLOSED ? 1 : round + 1; } // round 0 precedes the first one

static void run(const Pool *pool, char *scratch, int64 first, int64 last, int backwards) {
  const Blocks function = pool->function;
  void *const *arguments = pool->arguments;
  first += pool->base;
  last += pool->base;
  if (!backwards) {
    function(arguments, scratch, first, last);
    return;
  }
  const int64 step = (last - first + STEPS - 1) / STEPS;
  for (int64 end = last; end > first; end -= step) function(arguments, scratch, end - step > first ? end - step : first, end);
}

static void count_done(Pool *pool, int64 blocks) {
  if (!blocks) return;
  __atomic_fetch_add(&pool->done, (int)blocks, ORDERED);
  if (__atomic_load_n(&pool->caller_waits, ORDERED)) wake(pool, &pool->done, 1);
}

// Runs blocks of a round until none are left; returns how many this thread ran. The data of a round is read after taking one of its
// blocks, or validated by taking one: the next round is not written until that block is done.
static int64 take_part(Pool *pool, int64 me, int round) {
  const int64 shares = LOAD(pool->shares);
  char *scratch = 0;
  int64 all = 0, since = 0;
  for (int64 other = 0; other < shares; other++) {
    const int64 owner = (me + other) % shares;
    int64 *share = &pool->seats[owner].share, mine = 0;
    for (;;) {
      int64 next = ACQUIRE(*share);
      if (next >> 32 != round || shares != LOAD(pool->shares)) break;
      const int64 blocks = LOAD(pool->blocks), begin = blocks * owner / shares, size = blocks * (owner + 1) / shares - begin;
      const int64 first = next & CLOSED, count = (size - first + PARTS - 1) / PARTS;
      if (first >= size) break;
      if (other && next & BEGUN) {
        if (!since) since = cycles();
        if (cycles() - since < pool->spare_cycles) {
          relax();
          continue;
        }
      }
      const int64 taken = (next | (other ? 0 : BEGUN)) + count;
      if (!__atomic_compare_exchange_n(share, &next, taken, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) continue;
      if (!scratch) scratch = pool->scratch + me * pool->scratch_stride;
      if (round & 1) run(pool, scratch, begin + size - first - count, begin + size - first, 1);
      else run(pool, scratch, begin + first, begin + first + count, 0);
      mine += count;
    }
    count_done(pool, mine);
    all += mine;
  }
  return all;
}

// The main function of all threads except the caller's. seat: the thread's own.
EXPORT void *host_pool_worker(Seat *seat) {
  Pool *pool = seat->pool;
  const int64 me = seat - pool->seats;
  uint64 signals = ~(uint64)SYNCHRONOUS_SIGNALS; // signal handlers run on the program's threads; crashes are reported where they happen
  block_signals(pool, &signals);
  set_arithmetic(DEFAULT_ARITHMETIC);
  STORE(seat->thread, own_number());
  for (int seen = 0;;) {
    wait_while(pool, &pool->round, seen, &pool->asleep);
    seen = ACQUIRE(pool->round);
    if (LOAD(pool->stopped)) return 0;
    STORE(seat->core, core_here());
    take_part(pool, me, seen);
  }
}

// Runs one round of at most MOST_BLOCKS blocks, from `base` on. Returns how many the caller ran.
static int64 run_round(Pool *pool, const Launch *launch, void *const *arguments, int64 base, int64 blocks) {
  const int64 shares = pool->threads < blocks ? pool->threads : blocks, start = cycles();
  const int round = after(pool->round);
  for (int64 n = 0; n < pool->shares; n++) STORE(pool->seats[n].share, CLOSED); // the shares of the previous round
  __atomic_thread_fence(__ATOMIC_RELEASE);
  pool->function = launch->function;
  pool->arguments = arguments;
  pool->base = base;
  STORE(pool->blocks, blocks);
  STORE(pool->shares, shares);
  STORE(pool->done, 0);
  for (int64 n = 0; n < shares; n++) RELEASE(pool->seats[n].share, (int64)round << 32);
  __atomic_store_n(&pool->round, round, ORDERED);
  const int64 core = core_here();
  for (int64 n = 1; n < shares; n++)
    if (core >= 0 && LOAD(pool->seats[n].core) == core && LOAD(pool->seats[n].thread)) send_away(&pool->seats[n], core);
  const int64 work = launch->work_cycles, little = pool->little_cycles;
  const int burst = pool->wait_cycles && start - pool->end < little; // threads woken during a burst stay awake
  if (__atomic_load_n(&pool->asleep, ORDERED) && blocks > 1 && (!work || work > little || burst)) {
    const int64 useful = work > little && little ? work / little : blocks - 1;
    wake(pool, &pool->round, useful < blocks - 1 ? useful : blocks - 1);
  }
  return take_part(pool, 0, round);
}

static void wait_until_done(Pool *pool, int blocks) {
  const int64 start = cycles();
  for (int done; (done = ACQUIRE(pool->done)) != blocks;) {
    if (cycles() - start < pool->wait_cycles) {
      for (int n = 0; n < 64 && LOAD(pool->done) == done; n++) relax();
      if (cycles() - start > pool->spare_cycles) yield(pool);
      continue;
    }
    __atomic_store_n(&pool->caller_waits, 1, ORDERED);
    done = __atomic_load_n(&pool->done, ORDERED);
    if (done != blocks) sleep_while(pool, &pool->done, done);
    __atomic_store_n(&pool->caller_waits, 0, ORDERED);
  }
}

// Runs all blocks of a launch. request: the addresses of the pool, of the launch, then of the kernel's arguments.
EXPORT void host_pool_launch(const int64 *request) {
  Pool *pool = (Pool *)request[0];
  Launch *launch = (Launch *)request[1];
  take_lock(pool);
  const Arithmetic before = arithmetic();
  const int differs = !SAME_ARITHMETIC(before, DEFAULT_ARITHMETIC);
  if (differs) set_arithmetic(DEFAULT_ARITHMETIC);
  for (int64 base = 0; base < launch->blocks; base += MOST_BLOCKS) {
    const int64 left = launch->blocks - base, blocks = left < MOST_BLOCKS ? left : MOST_BLOCKS, start = cycles();
    const int64 mine = run_round(pool, launch, (void *const *)(request + 2), base, blocks), end = cycles();
    launch->work_cycles = (int64)((double)(end - start) * (double)blocks / (double)(mine ? mine : 1)) | 1;
    wait_until_done(pool, (int)blocks);
  }
  if (differs) set_arithmetic(before);
  pool->end = cycles();
  give_lock(pool);
}

// ---------------------------------------------------------------- beginning and end

// The size of a pool in bytes; its memory must be zeroed and aligned to LINE_BYTES.
EXPORT int64 host_pool_bytes(int64 threads) { return (int64)sizeof(Pool) + threads * (int64)sizeof(Seat); }

// times, in cycles: to spin; of work below which no thread is woken; before stealing from a share in progress. system: may be null.
EXPORT void host_pool_begin(Pool *pool, int64 threads, const int64 *times, const System *system) {
  pool->threads = threads;
  pool->wait_cycles = times[0];
  pool->little_cycles = times[1];
  pool->spare_cycles = times[2];
  if (system) pool->system = *system;
  for (int64 n = 0; n < threads; n++) {
    pool->seats[n].core = -1;
    pool->seats[n].pool = pool;
  }
}

// The seat of a thread, to pass to host_pool_worker.
EXPORT Seat *host_pool_seat(Pool *pool, int64 thread) { return &pool->seats[thread]; }

// Replaces the threads' scratch memory (`stride` bytes apart) by a larger one when no launch runs. Returns the memory to free: the
// former one, or the new one if it is not larger.
EXPORT void *host_pool_scratch(Pool *pool, char *scratch, int64 stride, int64 bytes) {
  take_lock(pool);
  char *free = scratch;
  if (bytes > pool->scratch_bytes) {
    free = pool->scratch;
    pool->scratch = scratch;
    pool->scratch_stride = stride;
    pool->scratch_bytes = bytes;
  }
  give_lock(pool);
  return free;
}

// Ends the threads. The pool's memory must stay valid, because they still read it.
EXPORT void host_pool_stop(Pool *pool) {
  take_lock(pool);
  STORE(pool->stopped, 1);
  __atomic_store_n(&pool->round, after(pool->round), ORDERED);
  wake(pool, &pool->round, CLOSED);
  give_lock(pool);
}

// The CPU's counter, which times all waiting.
EXPORT int64 host_pool_cycles(void) { return cycles(); }
