"""The thread pool that runs kernels on the CPU: starting threads, scratch memory, and forks.

The scheduling is C (host_pool.c), compiled by the kernels' compiler. A pool runs one launch at a time; other Python threads that launch
wait for it in C, without the GIL. No Python code runs under that lock, so a signal handler, which Python runs between two calls, may
launch as well. A forked child has none of its parent's threads: it starts its own with its first launch.

Threads start with the first launch and run until the process ends. After a launch they spin for 0.1 ms, then sleep in the kernel.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import mmap
import os
import sys
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from tilelang.errors import DeviceError
from tilelang.lowering.drivers.loader import Library
from tilelang.lowering.drivers.process_lock import ProcessLock

SOURCE_FILE = Path(__file__).with_suffix(".c")
WAIT_S = 100e-6  # threads spin this long, about the cost of sleeping and waking
LITTLE_S = 20e-6  # with less total work than this, no thread is woken, unless another launch was just before
SPARE_S = 2e-6  # an idle thread waits this long before it steals from a share whose owner has begun
STACK_BYTES = 16 << 20
HUGE_BYTES = 2 << 20
LEAST_HUGE_BYTES = 256 << 10  # scratch memory of at least this size uses huge pages


class Memory(int):
    """Memory of this process, as its address; freed with this object."""

    _held: Any
    size_bytes: int

    @property
    def address(self) -> int:
        return int(self)


def aligned_memory(size_bytes: int) -> Memory:
    """Zeroed memory, aligned to a page or, if large, to a huge page. Raises DeviceError if there is not enough."""
    huge = size_bytes >= HUGE_BYTES
    try:
        held = _map(size_bytes + (HUGE_BYTES if huge else 0))
    except (OSError, OverflowError, ValueError) as error:
        raise DeviceError("out-of-memory", f"{size_bytes} bytes of memory: {error}", help="use smaller tensors") from None
    made = Memory(_up(_address(held), HUGE_BYTES) if huge else _address(held))
    made._held, made.size_bytes = held, size_bytes
    return made


def _map(size_bytes: int) -> mmap.mmap:
    if sys.platform == "win32":
        return mmap.mmap(-1, max(1, size_bytes))
    held = mmap.mmap(-1, max(1, size_bytes), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if size_bytes >= HUGE_BYTES and hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without huge pages
            held.madvise(mmap.MADV_HUGEPAGE)
    return held


def _address(memory: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def _up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


_kept: dict[int, Memory] = {}  # by address: memory that native threads may use


def _keep(memory: Memory) -> None:
    """Keeps memory until `_free`, even beyond the interpreter's end, when the pool's threads still run."""
    _kept[int(memory)] = memory
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))


def _free(address: int | None) -> None:
    memory = _kept.pop(address or 0, None)
    if memory is not None:
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(memory))


class Pool:
    """The thread pool of a process.

    code: returns the compiled pool. threads: number of threads, including the caller's. wait_s: how long they spin before sleeping.
    address: of the running pool, 0 before the first launch in this process. launch: calls host_pool_launch.
    """

    def __init__(self, code: Callable[[], Library], threads: int, wait_s: float = WAIT_S) -> None:
        self.threads, self.wait_s, self.address = threads, wait_s, 0
        self.scratch_bytes = 0  # minimum per thread
        self._code, self._lock = code, ProcessLock()
        _pools.add(self)

    def start(self) -> int:
        """The address of the running pool; starts it if this process has none.

        A signal handler may raise an exception at any point, or launch and thereby start a pool of its own: the pool that is ready
        first is used, and the threads of the other one end.
        """
        with self._lock.held():
            if self.address:
                return self.address
            memory, scratch_bytes = (
                aligned_memory(self._call("host_pool_bytes", ctypes.c_int64, self.threads)),
                self.scratch_bytes,
            )
            _keep(memory)
            begun = ready = False
            try:
                rate = self._cycles_per_second()
                times = (ctypes.c_int64 * 3)(*(int(seconds * rate) for seconds in (self.wait_s, LITTLE_S, SPARE_S)))
                self._call("host_pool_begin", None, int(memory), self.threads, ctypes.addressof(times), _system())
                self._grow(int(memory), scratch_bytes)
                begun = True
                for thread in range(1, self.threads):
                    if not _start_thread(self._library.address("host_pool_worker"), self._seat(int(memory), thread)):
                        break  # the system allows no more threads: the existing ones run its blocks
                if not self.address:
                    self.address, ready = int(memory), True
                    if self.scratch_bytes > scratch_bytes:  # a signal handler reserved more in the meantime
                        self._grow(int(memory), self.scratch_bytes)
            finally:
                if begun and not ready:
                    self._call("host_pool_stop", None, int(memory))
            return self.address

    def reserve(self, scratch_bytes: int) -> None:
        """Gives every thread at least this much scratch memory from the next launch on."""
        with self._lock.held():
            if scratch_bytes > self.scratch_bytes:
                if self.address:
                    self._grow(self.address, scratch_bytes)
                self.scratch_bytes = scratch_bytes

    def _grow(self, pool: int, scratch_bytes: int) -> None:
        huge = scratch_bytes >= LEAST_HUGE_BYTES
        unit = HUGE_BYTES if huge else mmap.PAGESIZE
        room = _up(scratch_bytes, unit)
        memory = aligned_memory(max(self.threads * (room + unit), HUGE_BYTES if huge else 0))
        for thread in range(self.threads):
            _guard(int(memory) + thread * (room + unit) + room)
        _keep(memory)
        _free(self._call("host_pool_scratch", ctypes.c_void_p, pool, int(memory), room + unit, scratch_bytes))

    @property
    def launch(self) -> Callable[[bytes], None]:
        """Runs a launch; takes the packed addresses of the pool, the launch and the arguments."""
        return cast(Callable[[bytes], None], self._function("host_pool_launch", None, ctypes.c_char_p))

    def _seat(self, pool: int, thread: int) -> int:
        return int(self._call("host_pool_seat", ctypes.c_void_p, pool, thread))

    @property
    def _library(self) -> Library:
        return self._code()

    def _cycles_per_second(self) -> float:
        """The frequency of the CPU's counter, measured for 0.2 ms."""
        cycles = self._function("host_pool_cycles", ctypes.c_int64)
        start, first = time.perf_counter(), cycles()
        while (now := time.perf_counter()) < start + 2e-4:
            pass
        return float(cycles() - first) / (now - start)

    def _function(self, name: str, result: Any, *arguments: Any) -> Any:
        return ctypes.CFUNCTYPE(result, *arguments)(self._library.address(name))

    def _call(self, name: str, result: Any, *arguments: int) -> Any:
        return self._function(name, result, *[ctypes.c_int64] * len(arguments))(*arguments)

    def forked(self) -> None:
        """Forgets the running pool in a forked child, where it has no threads and may be in the middle of a launch."""
        self.address = 0


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


def _after_fork() -> None:
    for pool in list(_pools):
        pool.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _guard(address: int) -> None:
    """Makes a page inaccessible if the system supports it, so that a write beyond scratch memory crashes at once."""
    if sys.platform != "win32":
        _libc().mprotect(ctypes.c_void_p(address), ctypes.c_size_t(mmap.PAGESIZE), 0)


@functools.cache
def _libc() -> Any:
    return ctypes.CDLL(None)


_tables: list[Any] = []


def _system() -> int:
    """The address of the table of system functions that the pool calls; null on Linux, where it makes system calls (`System` in C)."""
    if sys.platform.startswith("linux"):
        return 0
    if sys.platform == "win32":
        base = ctypes.windll.kernelbase
        found = [base.WaitOnAddress, base.WakeByAddressSingle, base.WakeByAddressAll, ctypes.windll.kernel32.SwitchToThread]
    else:
        libc = _libc()
        found = [libc.__ulock_wait, libc.__ulock_wake, libc.__ulock_wake, libc.sched_yield, libc.pthread_sigmask]
    addresses = [ctypes.cast(f, ctypes.c_void_p).value or 0 for f in found]
    _tables.append((ctypes.c_void_p * 5)(*addresses))
    return ctypes.addressof(_tables[-1])


def _start_thread(function: int, argument: int) -> bool:
    """Starts a native thread with its own stack, which runs no Python; returns whether that succeeded."""
    if sys.platform == "win32":
        create = ctypes.windll.kernel32.CreateThread
        create.restype = ctypes.c_void_p
        reserve = 0x10000  # STACK_SIZE_PARAM_IS_A_RESERVATION
        given = [ctypes.c_void_p(x) for x in (function, argument)]
        handle = create(None, ctypes.c_size_t(STACK_BYTES), *given, reserve, None)
        return bool(handle and ctypes.windll.kernel32.CloseHandle(ctypes.c_void_p(handle)))
    libc = _libc()
    attributes, thread = (ctypes.c_int64 * 16)(), ctypes.c_void_p()
    detached = 2 if sys.platform == "darwin" else 1
    libc.pthread_attr_init(attributes)
    libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(STACK_BYTES))
    libc.pthread_attr_setdetachstate(attributes, detached)
    error = libc.pthread_create(ctypes.byref(thread), attributes, ctypes.c_void_p(function), ctypes.c_void_p(argument))
    libc.pthread_attr_destroy(attributes)
    return bool(error == 0)
