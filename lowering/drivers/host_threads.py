"""Threads of this process that share the blocks of a launch, the caller among them, as those of OpenMP's runtimes do.

A launch writes what there is to do where the other threads look, takes part in it, and waits for what others began: two writes and two
reads of lines that cores share, where the others are awake. They look for the next launch for a short while and then sleep; waking
them takes an interrupt between cores, 10 us of the caller and 20 until they run on a virtual machine, so who launches little work
once does it by itself. Blocks are dealt in equal shares, one after the other, always the same to a thread, and one launch goes over a
share from its beginning, the next one from its end: what a launch read or wrote last is still in the core's cache, and is what the next
one needs first, where both are over the same data. A thread takes an eighth of what is left of its share at once, and who is done
takes of others', so that a thread without a core holds up no more than that; of a share that its thread works on, only after 2 us, for
what is taken away is fetched from another core this time and the next.

The loops are OpenCL C (host_threads.cl), which PoCL compiles: there need be no other compiler.
"""

from __future__ import annotations

import contextlib
import ctypes
import enum
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
SOURCE_FILE = Path(__file__).with_suffix(".cl")


class _At(enum.IntEnum):
    """Where what is in the threads' memory, in numbers of 8 bytes; in lines of caches of their own what different threads write."""

    EPOCH = 0  # of launches
    ASLEEP = 8  # threads
    DONE = 16  # blocks
    FUNCTION = 24
    BLOCKS = 25
    GRID = 26  # along x and y
    LAST = 28  # when it ended, in cycles
    THREADS = 32
    PATIENCE = 33  # WAIT_S, LITTLE_S and SPARE_S in cycles
    LITTLE = 34
    SPARE = 35
    ARGUMENTS = 40
    LINES = ARGUMENTS + MOST_ARGUMENTS  # one of each thread
    LINE = 8  # as long
    OF_SHARE = 0  # in it: the numbers of a launch and of the next block of the thread's share
    OF_NUMBER = 1  # the system's
    OF_CORE = 2
    OF_STACK = 3  # its end


class _Given(enum.IntEnum):
    """What a launch is given beside its arguments, likewise."""

    GIVEN_POOL = 0  # the threads' memory
    GIVEN_WORK = 1  # what it was the last time, of all threads, in cycles; 0: not known
    GIVEN_FUNCTION = 2
    GIVEN_BLOCKS = 3  # in all
    GIVEN_GRID = 4  # along x and y
    GIVEN_COUNT = 6  # of its arguments


# A thread takes such a part of what is left of a share at once.
_NUMBERS = {**_At.__members__, **_Given.__members__, "PARTS": 8, "MOST_CORES": 4096}
CALLS = {
    "host_worker": "host_worker((longs)addresses, 1)",
    "host_launch": "host_launch((longs)addresses, (longs)addresses)",
    "host_cycles": "host_cycles()",
}


def source() -> str:
    """What PoCL compiles of the threads."""
    numbers = "".join(f"#define {name} {int(value)}\n" for name, value in _NUMBERS.items())
    return numbers + SOURCE_FILE.read_text(encoding="utf-8")


class HostThreads:
    """The threads of one device. addresses: where the functions of CALLS are; count: of threads, the caller's among them; wait_s: how
    long they look for the next launch."""

    def __init__(self, addresses: Sequence[int], count: int, wait_s: float = WAIT_S) -> None:
        worker, launch, cycles = addresses
        self.count, self.wait_s = count, wait_s
        self._launch = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(launch)
        self._worker = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_long)(worker)
        self._pool = (ctypes.c_int64 * (_At.LINES + (count + 1) * _At.LINE))()
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._pool))  # the threads look there while the interpreter ends
        self._address = -(-ctypes.addressof(self._pool) // 64) * 64
        begin = (self._address - ctypes.addressof(self._pool)) // 8
        rate = _cycles_per_second(ctypes.CFUNCTYPE(ctypes.c_int64)(cycles))
        self._pool[begin + _At.THREADS] = count
        for place, seconds in ((_At.PATIENCE, wait_s), (_At.LITTLE, LITTLE_S), (_At.SPARE, SPARE_S)):
            self._pool[begin + place] = int(seconds * rate)
        self._stacks = [_stack() for _ in range(count)]
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._stacks))
        for thread, stack in enumerate(self._stacks):
            at = begin + _At.LINES + thread * _At.LINE
            self._pool[at + _At.OF_CORE] = -1
            self._pool[at + _At.OF_STACK] = ctypes.addressof(ctypes.c_char.from_buffer(stack)) + len(stack)
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
        given = (ctypes.c_int64 * (_Given.GIVEN_COUNT + 1))(self._address, 0, address, x * y * z, x, y, arguments)
        return HostFunction(self._launch, self._lock, given)


class HostFunction:
    """A function with its launch shape. Calling it with the addresses of its arguments runs all blocks; one launch at a time."""

    __slots__ = ("_address", "_arguments", "_given", "_launch", "_lock")

    def __init__(self, launch: Callable[[int, Any], None], lock: AbstractContextManager[Any], given: Any) -> None:
        self._launch, self._lock, self._given, self._address = launch, lock, given, ctypes.addressof(given)
        self._arguments = ctypes.c_int64 * given[_Given.GIVEN_COUNT]

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
