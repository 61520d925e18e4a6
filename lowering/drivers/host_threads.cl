// The threads of host_threads.py, which says what they do and puts the numbers before this text: where what is in their memory.

#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#define PAUSE() __builtin_ia32_pause()
#define CLOSED 0x7fffffffL // a share of which nothing may be taken
#define ROUNDED 0x1f80     // to the nearest number, the smallest ones too, without traps
#define SHARE(thread) pool[LINES + OF_SHARE + LINE * (thread)]
#define NUMBER(thread) pool[LINES + OF_NUMBER + LINE * (thread)]
#define CORE(thread) pool[LINES + OF_CORE + LINE * (thread)]
#define STACK(thread) pool[LINES + OF_STACK + LINE * (thread)]
typedef volatile __global long* longs;

static long cycles_now(void) {
  uint low, high;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  return (long)high << 32 | low;
}
static long core_here(void) {
  uint low, high, core;
  __asm__ volatile("rdtscp" : "=a"(low), "=d"(high), "=c"(core));
  return core & 0xfff;
}
static long of_system(long number, long a, long b, long c) {
  __asm__ volatile("xor %%r10d, %%r10d\n syscall" : "+a"(number) : "D"(a), "S"(b), "d"(c) : "rcx", "r10", "r11", "memory");
  return number;
}
static long thread_number(void) { return of_system(186, 0, 0, 0); }                                      // gettid
static void give_way(void) { of_system(24, 0, 0, 0); }                                                   // sched_yield
static void sleep_while(longs word, long value) { of_system(202, (long)word, 128, value & 0xffffffff); } // futex
static void wake(longs word, long threads) { of_system(202, (long)word, 129, threads); }                 // futex

// Has a thread run on another one of its cores than this one.
static void send_away(longs pool, long thread, long core) {
  ulong cores[MOST_CORES / 64], any = 0;
  const long bytes = of_system(204, NUMBER(thread), sizeof cores, (long)cores); // sched_getaffinity
  for (int n = 0; n < bytes / 8; n++) any |= cores[n] &= ~(n == core / 64 ? 1UL << core % 64 : 0);
  if (any) of_system(203, NUMBER(thread), bytes, (long)cores); // sched_setaffinity
  CORE(thread) = -1;
}

// The state of floating-point arithmetic: what it was, and is again.
static uint arithmetic(uint state) {
  uint before;
  __asm__ volatile("stmxcsr %0" : "=m"(before));
  __asm__ volatile("ldmxcsr %0" : : "m"(state));
  return before;
}

// The language has no calls through addresses. What blocks share, and what has no register, is on a stack of ours.
static void call(long function, longs arguments, const ulong* block, long stack) {
  __asm__ volatile("mov %%rsp, %%rbx\n mov %%rcx, %%rsp\n call *%%rax\n mov %%rbx, %%rsp"
    : "+a"(function), "+D"(arguments), "+S"(block), "+c"(stack) : : "rbx", "rdx", "r8", "r9", "r10", "r11", "memory", "cc",
      "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
      "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

// A thread's part in a launch: how many blocks it did. Of a launch nothing is read before one of its blocks was taken: until that one
// is done nobody writes the next.
static long take_part(longs pool, long me, long epoch) {
  const long threads = pool[THREADS];
  long done = 0, since = 0;
  for (long other = 0; other < threads; other++) {
    const long owner = (me + other) % threads;
    for (;;) {
      const long next = SHARE(owner), begin = pool[BLOCKS] * owner / threads, end = pool[BLOCKS] * (owner + 1) / threads;
      const int first = (int)(next & CLOSED), count = (int)(end - first + PARTS - 1) / PARTS;
      if (next >> 32 != epoch || count <= 0) break;
      if (other && first > begin) {
        if (!since) since = cycles_now();
        if (cycles_now() - since < pool[SPARE]) {
          PAUSE();
          continue;
        }
      }
      if (atom_cmpxchg(&SHARE(owner), next, next + count) != next) continue;
      const int x = (int)pool[GRID], y = (int)pool[GRID + 1];
      for (int taken = first; taken < first + count; taken++) {
        const int number = epoch & 1 ? (int)(begin + end - 1 - taken) : taken, row = number / x;
        const ulong block[3] = {number - row * x, row % y, row / y};
        call(pool[FUNCTION], pool + ARGUMENTS, block, STACK(me));
      }
      done += count;
    }
  }
  if (done) atom_add(&pool[DONE], done);
  return done;
}

// What each thread but the caller's does, for ever.
__attribute__((noinline, used)) void host_worker(longs pool, long me) {
  NUMBER(me) = thread_number();
  arithmetic(ROUNDED);
  for (long seen = 0; seen >= 0;) { // always: PoCL cannot compile what never returns
    const long start = cycles_now();
    while (pool[EPOCH] == seen) {
      if (cycles_now() - start < pool[PATIENCE]) {
        for (int round = 0; round < 16 && pool[EPOCH] == seen; round++) PAUSE();
        give_way();
      } else {
        atom_inc(&pool[ASLEEP]);
        sleep_while(&pool[EPOCH], seen);
        atom_dec(&pool[ASLEEP]);
      }
    }
    seen = pool[EPOCH];
    CORE(me) = core_here();
    take_part(pool, me, seen);
  }
}

// One launch, to its end.
__attribute__((noinline, used)) void host_launch(longs given, const longs arguments) {
  const longs pool = (longs)given[GIVEN_POOL];
  const long start = cycles_now(), threads = pool[THREADS], blocks = given[GIVEN_BLOCKS];
  const long epoch = (pool[EPOCH] + 1) & CLOSED;
  for (long thread = 0; thread < threads; thread++) SHARE(thread) = epoch << 32 | CLOSED;
  pool[FUNCTION] = given[GIVEN_FUNCTION];
  pool[BLOCKS] = blocks;
  pool[GRID] = given[GIVEN_GRID];
  pool[GRID + 1] = given[GIVEN_GRID + 1];
  for (long n = 0; n < given[GIVEN_COUNT]; n++) pool[ARGUMENTS + n] = arguments[n];
  pool[DONE] = 0;
  for (long thread = 0; thread < threads; thread++) SHARE(thread) = epoch << 32 | blocks * thread / threads;
  atom_xchg(&pool[EPOCH], epoch);
  const long core = core_here();
  for (long thread = 1; thread < threads; thread++)
    if (CORE(thread) == core && NUMBER(thread)) send_away(pool, thread, core);
  const long work = given[GIVEN_WORK], little = pool[LITTLE];
  if (pool[ASLEEP] && blocks > 1 && (!work || work > little || start - pool[LAST] < little))
    wake(&pool[EPOCH], work > little ? min(blocks - 1, work / little) : blocks - 1);
  const uint before = arithmetic(ROUNDED);
  const long mine = take_part(pool, 0, epoch), end = cycles_now();
  arithmetic(before);
  given[GIVEN_WORK] = (end - start) * blocks / max(mine, 1L);
  for (long round = 0; pool[DONE] != blocks; round++) {
    PAUSE();
    if (round > 2000) give_way();
  }
  pool[LAST] = cycles_now();
}

__attribute__((noinline, used)) long host_cycles(void) { return cycles_now(); }
