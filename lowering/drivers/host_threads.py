"""Threads of this process that share the blocks of a launch, the caller among them, as those of OpenMP's runtimes do.

A launch writes what there is to do where the other threads look, takes part in it, and waits for what others began: two writes and two
reads of lines that cores share, where the others are awake. They look for the next launch for a short while and then sleep; waking
them takes an interrupt between cores, 10 us of the caller and 20 until they run on a virtual machine, so who launches little work
once does it by itself. Blocks are dealt in equal shares, one after the other, always the same to a thread, and one launch goes over a
share from its beginning, the next one from its end: what a launch read or wrote last is still in the core's cache, and is what the next
one needs first, where both are over the same data. A thread takes an eighth of what is left of its share at once, and who is done
takes of others', so that a thread without a core holds up no more than that; of a share that its thread works on, only after 2 us, for
what is taken away is fetched from another core this time and the next.

The loops are OpenCL C, which PoCL compiles: there need be no other compiler.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

WAIT_S = 100e-6  # how long threads look for the next launch: about what sleeping and waking cost
LITTLE_S = 20e-6  # a launch of less work, all threads' together, wakes nobody, unless another one was just before
SPARE_S = 2e-6  # who is done with its share leaves one that its own thread works on alone for so long
STACK_BYTES, GUARD_BYTES = 16 << 20, 16 << 20
MOST_ARGUMENTS = 64
_PARTS = 8  # as such a part of what is left of a share a thread takes blocks

# Where what is in the threads' memory, in numbers of 8 bytes; in lines of caches of their own what different threads write.
_EPOCH, _ASLEEP, _DONE = 0, 8, 16
_FUNCTION, _BLOCKS, _GRID, _LAST = 24, 25, 26, 28  # of a launch; when the last one ended
_THREADS, _PATIENCE, _LITTLE, _SPARE = 32, 33, 34, 35  # how many; cycles
_ARGUMENTS, _LINE = 40, 8
_MOST_CORES = 4096
# A line of each thread: the numbers of a launch and of the next block of its share; the thread's number, its core's; its stack's end.
_SHARES = _ARGUMENTS + MOST_ARGUMENTS
_SHARE, _NUMBER, _CORE, _STACK = 0, 1, 2, 3
# What a launch is given beside arguments: the threads' memory, and of the kernel the work that it was, in cycles (0: not known), where
# its function is, its blocks in all, those along x and y, how many arguments it has.
_GIVEN_POOL, _GIVEN_WORK, _GIVEN_FUNCTION, _GIVEN_BLOCKS, _GIVEN_GRID, _GIVEN_COUNT = 0, 1, 2, 3, 4, 6

SOURCE = f"""\
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#define PAUSE() __builtin_ia32_pause()
#define SHARE(thread) pool[{_SHARES + _SHARE} + {_LINE} * (thread)]
#define CLOSED 0x7fffffffL
#define ROUNDED 0x1f80 // to the nearest number, the smallest ones too, without traps
#define NUMBER(thread) pool[{_SHARES + _NUMBER} + {_LINE} * (thread)]
#define CORE(thread) pool[{_SHARES + _CORE} + {_LINE} * (thread)]
#define STACK(thread) pool[{_SHARES + _STACK} + {_LINE} * (thread)]
typedef volatile __global long* longs;

static long cycles_now(void) {{
  uint low, high;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  return (long)high << 32 | low;
}}
static long core_here(void) {{
  uint low, high, core;
  __asm__ volatile("rdtscp" : "=a"(low), "=d"(high), "=c"(core));
  return core & 0xfff;
}}
static long of_system(long number, long a, long b, long c) {{
  __asm__ volatile("xor %%r10d, %%r10d\\n syscall" : "+a"(number) : "D"(a), "S"(b), "d"(c) : "rcx", "r10", "r11", "memory");
  return number;
}}
static long thread_number(void) {{ return of_system(186, 0, 0, 0); }}                                      // gettid
static void give_way(void) {{ of_system(24, 0, 0, 0); }}                                                   // sched_yield
static void sleep_while(longs word, long value) {{ of_system(202, (long)word, 128, value & 0xffffffff); }} // futex
static void wake(longs word, long threads) {{ of_system(202, (long)word, 129, threads); }}                 // futex

// Has a thread run on another one of its cores than this one.
static void send_away(longs pool, long thread, long core) {{
  ulong cores[{_MOST_CORES // 64}], any = 0;
  const long bytes = of_system(204, NUMBER(thread), sizeof cores, (long)cores); // sched_getaffinity
  for (int n = 0; n < bytes / 8; n++) any |= cores[n] &= ~(n == core / 64 ? 1UL << core % 64 : 0);
  if (any) of_system(203, NUMBER(thread), bytes, (long)cores); // sched_setaffinity
  CORE(thread) = -1;
}}
// The state of floating-point arithmetic: what it was, and is again.
static uint arithmetic(uint state) {{
  uint before;
  __asm__ volatile("stmxcsr %0" : "=m"(before));
  __asm__ volatile("ldmxcsr %0" : : "m"(state));
  return before;
}}

// The language has no calls through addresses. What blocks share, and what has no register, is on a stack of ours.
static void call(long function, longs arguments, const ulong* block, long stack) {{
  __asm__ volatile("mov %%rsp, %%rbx\\n mov %%rcx, %%rsp\\n call *%%rax\\n mov %%rbx, %%rsp"
    : "+a"(function), "+D"(arguments), "+S"(block), "+c"(stack) : : "rbx", "rdx", "r8", "r9", "r10", "r11", "memory", "cc",
      "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
      "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}}

// A thread's part in a launch: how many blocks it did. Of a launch nothing is read before one of its blocks was taken: until that one
// is done nobody writes the next.
static long take_part(longs pool, long me, long epoch) {{
  const long threads = pool[{_THREADS}];
  long done = 0, since = 0;
  for (long other = 0; other < threads; other++) {{
    const long owner = (me + other) % threads;
    for (;;) {{
      const long next = SHARE(owner), begin = pool[{_BLOCKS}] * owner / threads, end = pool[{_BLOCKS}] * (owner + 1) / threads;
      const int first = (int)(next & CLOSED), count = (int)(end - first + {_PARTS - 1}) / {_PARTS};
      if (next >> 32 != epoch || count <= 0) break;
      if (other && first > begin) {{
        if (!since) since = cycles_now();
        if (cycles_now() - since < pool[{_SPARE}]) {{
          PAUSE();
          continue;
        }}
      }}
      if (atom_cmpxchg(&SHARE(owner), next, next + count) != next) continue;
      const int x = (int)pool[{_GRID}], y = (int)pool[{_GRID + 1}];
      for (int taken = first; taken < first + count; taken++) {{
        const int number = epoch & 1 ? (int)(begin + end - 1 - taken) : taken, row = number / x;
        const ulong block[3] = {{number - row * x, row % y, row / y}};
        call(pool[{_FUNCTION}], pool + {_ARGUMENTS}, block, STACK(me));
      }}
      done += count;
    }}
  }}
  if (done) atom_add(&pool[{_DONE}], done);
  return done;
}}

// What each thread but the caller's does, for ever.
__attribute__((noinline, used)) void host_worker(longs pool, long me) {{
  NUMBER(me) = thread_number();
  arithmetic(ROUNDED);
  for (long seen = 0; seen >= 0;) {{ // always: PoCL cannot compile what never returns
    const long start = cycles_now();
    while (pool[{_EPOCH}] == seen) {{
      if (cycles_now() - start < pool[{_PATIENCE}]) {{
        for (int round = 0; round < 16 && pool[{_EPOCH}] == seen; round++) PAUSE();
        give_way();
      }} else {{
        atom_inc(&pool[{_ASLEEP}]);
        sleep_while(&pool[{_EPOCH}], seen);
        atom_dec(&pool[{_ASLEEP}]);
      }}
    }}
    seen = pool[{_EPOCH}];
    CORE(me) = core_here();
    take_part(pool, me, seen);
  }}
}}

// One launch, to its end.
__attribute__((noinline, used)) void host_launch(longs given, const longs arguments) {{
  const longs pool = (longs)given[{_GIVEN_POOL}];
  const long start = cycles_now(), threads = pool[{_THREADS}], blocks = given[{_GIVEN_BLOCKS}];
  const long epoch = (pool[{_EPOCH}] + 1) & CLOSED;
  for (long thread = 0; thread < threads; thread++) SHARE(thread) = epoch << 32 | CLOSED;
  pool[{_FUNCTION}] = given[{_GIVEN_FUNCTION}];
  pool[{_BLOCKS}] = blocks;
  pool[{_GRID}] = given[{_GIVEN_GRID}];
  pool[{_GRID + 1}] = given[{_GIVEN_GRID + 1}];
  for (long n = 0; n < given[{_GIVEN_COUNT}]; n++) pool[{_ARGUMENTS} + n] = arguments[n];
  pool[{_DONE}] = 0;
  for (long thread = 0; thread < threads; thread++) SHARE(thread) = epoch << 32 | blocks * thread / threads;
  atom_xchg(&pool[{_EPOCH}], epoch);
  const long core = core_here();
  for (long thread = 1; thread < threads; thread++)
    if (CORE(thread) == core && NUMBER(thread)) send_away(pool, thread, core);
  const long work = given[{_GIVEN_WORK}], little = pool[{_LITTLE}];
  if (pool[{_ASLEEP}] && blocks > 1 && (!work || work > little || start - pool[{_LAST}] < little))
    wake(&pool[{_EPOCH}], work > little ? min(blocks - 1, work / little) : blocks - 1);
  const uint before = arithmetic(ROUNDED);
  const long mine = take_part(pool, 0, epoch), end = cycles_now();
  arithmetic(before);
  given[{_GIVEN_WORK}] = (end - start) * blocks / max(mine, 1L);
  for (long round = 0; pool[{_DONE}] != blocks; round++) {{
    PAUSE();
    if (round > 2000) give_way();
  }}
  pool[{_LAST}] = cycles_now();
}}

__attribute__((noinline, used)) long host_cycles(void) {{ return cycles_now(); }}
"""
CALLS = {
    "host_worker": "host_worker((longs)addresses, 1)",
    "host_launch": "host_launch((longs)addresses, (longs)addresses)",
    "host_cycles": "host_cycles()",
}


class HostThreads:
    """The threads of one device. addresses: where the functions of CALLS are; count: of threads, the caller's among them; wait_s: how
    long they look for the next launch."""

    def __init__(self, addresses: Sequence[int], count: int, wait_s: float = WAIT_S) -> None:
        worker, launch, cycles = addresses
        self.count, self.wait_s = count, wait_s
        self._launch = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(launch)
        self._worker = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_long)(worker)
        self._pool = (ctypes.c_int64 * (_SHARES + (count + 1) * _LINE))()
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._pool))  # the threads look there while the interpreter ends
        self._address = -(-ctypes.addressof(self._pool) // 64) * 64
        begin = (self._address - ctypes.addressof(self._pool)) // 8
        rate = _cycles_per_second(ctypes.CFUNCTYPE(ctypes.c_int64)(cycles))
        self._pool[begin + _THREADS] = count
        for place, seconds in ((_PATIENCE, wait_s), (_LITTLE, LITTLE_S), (_SPARE, SPARE_S)):
            self._pool[begin + place] = int(seconds * rate)
        self._stacks = [_stack() for _ in range(count)]
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._stacks))
        for thread, stack in enumerate(self._stacks):
            at = begin + _SHARES + thread * _LINE
            self._pool[at + _CORE], self._pool[at + _STACK] = -1, ctypes.addressof(ctypes.c_char.from_buffer(stack)) + len(stack)
        self._lock, self._started = threading.RLock(), 0  # who handles a signal may launch

    def function(self, address: int, arguments: int, grid: Sequence[int]) -> HostFunction:
        """A function of so many arguments and of a block's number, ready to be launched for all blocks of a grid."""
        with self._lock:
            while self._started < self.count - 1:
                self._started += 1  # first: a number is given once, whatever interrupts this
                thread = threading.Thread(target=self._worker, args=(self._address, self._started), daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # the system has no more threads: those that there are do its blocks
                    break
        x, y, z = (*grid, 1, 1)[:3]
        given = (ctypes.c_int64 * (_GIVEN_COUNT + 1))(self._address, 0, address, x * y * z, x, y, arguments)
        return HostFunction(self._launch, self._lock, given)


class HostFunction:
    """A function with its launch shape. Calling it with the addresses of its arguments runs all blocks; one launch at a time."""

    __slots__ = ("_address", "_arguments", "_given", "_launch", "_lock")

    def __init__(self, launch: Callable[[int, Any], None], lock: AbstractContextManager[Any], given: Any) -> None:
        self._launch, self._lock, self._given, self._address = launch, lock, given, ctypes.addressof(given)
        self._arguments = ctypes.c_int64 * given[_GIVEN_COUNT]

    def __call__(self, arguments: Sequence[int]) -> None:
        taken = self._arguments(*arguments)
        with self._lock:
            self._launch(self._address, ctypes.addressof(taken))


def _stack() -> mmap.mmap:
    """Memory for a stack, which grows downwards, to where nothing can be written. What was touched is taken up, in large pages."""
    stack = mmap.mmap(-1, GUARD_BYTES + STACK_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(OSError):  # a kernel without large pages
        stack.madvise(mmap.MADV_HUGEPAGE)
    begin = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(stack)))
    ctypes.CDLL(None).mprotect(begin, ctypes.c_size_t(GUARD_BYTES), 0)
    return stack


def _cycles_per_second(cycles: Any) -> float:
    """How fast the processor's counter counts, by a millisecond of it."""
    start, first = time.perf_counter(), cycles()
    while (now := time.perf_counter()) < start + 1e-3:
        pass
    return float(cycles() - first) / (now - start)


def cores(quota: Path = Path("/sys/fs/cgroup/cpu.max")) -> float:
    """How many cores this process may use: by its affinity, and by the quota of its control group where there is one."""
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        granted, period = quota.read_text().split()
    except (OSError, ValueError):
        return own
    return own if granted == "max" else min(own, int(granted) / int(period))
