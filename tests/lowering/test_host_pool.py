"""The pool of threads: every block runs once, whatever the number of threads, who launches, and what happens to the process."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import platform
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.lowering.host_kernels import SOURCE, Connection, connection
from tilelang.lowering.drivers import host_pool
from tilelang.lowering.drivers.cores import usable_cores
from tilelang.lowering.drivers.host_pool import Pool, aligned_memory

ROOT = Path(__file__).resolve().parents[2]
POSIX = pytest.mark.skipif(os.name != "posix", reason="signals and forks are POSIX's")
FORKS = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


def launches(made: Connection, name: str, blocks: int, *arrays: np.ndarray[Any, Any], scratch: int = 0) -> Callable[[], None]:
    """A kernel over arrays, as a function of nothing."""
    function = made.build(SOURCE).function(name, (blocks,), 1, scratch)
    held = [made.host_array(a, "both", None) for a in arrays]
    return lambda: function([h.buffer for h in held])


def advanced(steps: int) -> int:
    """Where a number that began as 0 is after some steps, in 32 bits."""
    x = 0
    for _ in range(steps):
        x = (3 * x + 1) & 0xFFFFFFFF
    return x


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("blocks", [1, 2, 3, 7, 8, 63, 1000])
def test_every_block_runs_once_whatever_the_number_of_threads(threads: int, blocks: int) -> None:
    x = np.zeros(blocks + 1, np.uint32)
    step = launches(connection(threads), "advance", blocks, x)
    for _ in range(50):
        step()
    assert x.tolist() == [advanced(50)] * blocks + [0]


def test_launches_of_different_grids_stay_apart() -> None:
    """A thread that comes late to one launch takes no block of the next."""
    made, sizes = connection(5), (1, 64, 3, 17, 2)
    arrays = [np.zeros(size, np.uint32) for size in sizes]
    steps = [launches(made, "advance", size, x) for size, x in zip(sizes, arrays, strict=True)]
    for _ in range(400):
        for step in steps:
            step()
    assert all((x == advanced(400)).all() for x in arrays)


def test_more_blocks_than_a_round_has() -> None:
    """The numbers of blocks beyond 2^30 arrive in a kernel, in rounds of at most so many."""
    text = """
    __attribute__((visibility("default"))) void seen(void *const *arguments, char *scratch, long long first, long long last) {
      __atomic_fetch_add((long long *)arguments[0], last - first, __ATOMIC_RELAXED);
      for (long long most = *(volatile long long *)arguments[1]; most < last;)
        if (__atomic_compare_exchange_n((long long *)arguments[1], &most, last, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) break;
    }"""
    made, blocks = connection(2), (1 << 31) + 5
    count, most = np.zeros(1, np.int64), np.zeros(1, np.int64)
    function = made.build(text).function("seen", (1 << 16, 1 << 15), 1, 0)
    function([made.host_array(a, "both", None).buffer for a in (count, most)])
    assert count[0] == most[0] == 1 << 31
    made.build(text).function("seen", (blocks,), 1, 0)([made.host_array(a, "both", None).buffer for a in (count, most)])
    assert count[0] == (1 << 31) + blocks and most[0] == blocks


def test_a_launch_begins_with_the_blocks_that_the_one_before_ended_with() -> None:
    done, order = np.zeros(1, np.int32), np.full(48, -1, np.int32)
    step = launches(connection(1), "ordered", 16, done, order)
    for _ in range(3):
        step()
    first, second, third = order.reshape(3, 16).tolist()
    assert sorted(first) == list(range(16)) and first == second[::-1] == third


def test_threads_share_the_work() -> None:
    """Blocks are long enough that every thread comes for one."""
    made, places = connection(4), np.zeros(64, np.uint64)
    text = """
    __attribute__((visibility("default"))) void met(void *const *arguments, char *scratch, long long first, long long last) {
      for (long long n = first; n < last; n++) {
        ((char **)arguments[0])[n] = scratch;
        // until all four have begun
        for (int mine = 1; mine; mine = 0)
          if (!__atomic_exchange_n((int *)scratch, 1, __ATOMIC_RELAXED)) __atomic_fetch_add((int *)arguments[1], 1, __ATOMIC_RELEASE);
        while (__atomic_load_n((int *)arguments[1], __ATOMIC_ACQUIRE) < 4);
      }
    }"""
    function = made.build(text).function("met", (64,), 1, 64)
    function([made.host_array(a, "both", None).buffer for a in (places, np.zeros(1, np.int32))])
    assert len(set(places.tolist())) == 4


@pytest.mark.parametrize("size", [1, 64, 4096, 100_000, 300_000, 1 << 20])
def test_every_thread_has_scratch_memory_of_its_own(size: int) -> None:
    made, good = connection(3), np.zeros(40, np.int32)
    step = launches(made, "filled", 40, good, np.array([size], np.int32), scratch=size)
    for _ in range(5):
        step()
    assert (good == 5).all()
    places = np.zeros(40, np.uint64)
    launches(made, "placed", 40, places, scratch=size)()
    assert all(p % 4096 == 0 for p in places.tolist())
    apart = sorted(set(places.tolist()))
    assert all(b - a >= size for a, b in zip(apart, apart[1:], strict=False))


def test_scratch_memory_grows_and_never_shrinks() -> None:
    made = connection(2)
    for size in (1000, 50_000, 10, 600_000, 300_000):
        good = np.zeros(8, np.int32)
        launches(made, "filled", 8, good, np.array([size], np.int32), scratch=size)()
        assert (good == 1).all()
    assert made.pool.scratch_bytes == 600_000
    first = launches(made, "filled", 8, good, np.array([600_000], np.int32))
    launches(made, "nothing", 1, good, scratch=1 << 20)()
    first()
    assert (good == 2).all()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="guards are tried with a fork")
@FORKS
def test_a_write_beyond_scratch_memory_ends_the_process_at_once() -> None:
    child = os.fork()
    if child == 0:
        import faulthandler
        import resource

        faulthandler.disable()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        made = connection(2)
        launches(made, "filled", 8, np.zeros(8, np.int32), np.array([4097], np.int32), scratch=4096)()
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGSEGV


@pytest.mark.parametrize("wait_s", [0.0, 1e-4])
def test_launches_of_several_python_threads_stay_apart(wait_s: float) -> None:
    made, x = connection(3), np.zeros(7, np.uint32)
    made.pool.wait_s = wait_s
    step, wrong = launches(made, "advance", 7, x), list[int]()

    def many() -> None:
        own = np.zeros(11, np.uint32)
        mine = launches(made, "advance", 11, own)
        for n in range(200):
            step()
            mine()
            if own.tolist() != [advanced(n + 1)] * 11:
                wrong.append(n)

    workers = [threading.Thread(target=many) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong and x.tolist() == [advanced(1200)] * 7


def test_threads_that_sleep_at_once_do_their_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_ACTIVE_WAIT", "0")
    made, x = connection(2), np.zeros(64, np.int32)
    assert made.pool.wait_s == 0.0
    step = launches(made, "slow", 64, x, np.array([20_000], np.int32))
    for _ in range(50):
        step()
    assert (x == 50).all()


def test_threads_wait_awake_only_where_each_has_a_core() -> None:
    cores = usable_cores()
    assert connection(cores).pool.wait_s == host_pool.WAIT_S and connection(cores + 1).pool.wait_s == 0.0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads Linux's times of a thread")
def test_nobody_computes_while_nothing_is_launched() -> None:
    """Threads that are idle for longer than they wait awake take no processor time."""
    made, x = connection(2), np.zeros(64, np.int32)
    step = launches(made, "slow", 64, x, np.array([1000], np.int32))
    for _ in range(20):
        step()
    time.sleep(0.05)
    before = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - before < 0.25


def test_the_caller_does_what_no_other_thread_comes_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def start(function: int, argument: int) -> bool:
        asked.append(argument)
        return len(asked) < 2 and real(function, argument)

    real = host_pool._start_thread
    monkeypatch.setattr(host_pool, "_start_thread", start)
    x = np.zeros(103, np.uint32)
    step = launches(connection(4), "advance", 103, x)
    step()
    step()
    assert len(asked) == 2 and x.tolist() == [advanced(2)] * 103


# ---------------------------------------------------------------- forks, signals, the process's end


def in_child(work: Callable[[], bool], limit_s: float = 60.0) -> bool:
    """What a forked child says of work; False where it does not end."""
    child = os.fork()
    if child == 0:
        signal.alarm(int(limit_s))
        os._exit(0 if work() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@POSIX
@FORKS
def test_a_forked_child_has_threads_of_its_own() -> None:
    made, x = connection(3), np.zeros(100, np.uint32)
    step, parent = launches(made, "advance", 100, x, scratch=1000), made.pool
    step()
    address = parent.address

    def child() -> bool:
        forgotten = parent.address == 0
        step()
        grandchild = in_child(lambda: (step(), bool((x == advanced(3)).all()))[1])
        return forgotten and grandchild and parent.address not in (0, address) and bool((x == advanced(2)).all())

    assert in_child(child)
    step()
    assert parent.address == address and (x == advanced(2)).all()


@POSIX
@FORKS
def test_a_fork_in_the_middle_of_launches_and_builds_hangs_nobody() -> None:
    made, stop = connection(2), threading.Event()

    def busy(number: int) -> None:
        x = np.zeros(64, np.int32)
        step = launches(made, "slow", 64, x, np.array([2000], np.int32))
        n = 0
        while not stop.is_set():
            step()
            made.build(SOURCE)
            made.pool.reserve(5000 * number + n)
            n += 1

    workers = [threading.Thread(target=busy, args=(n,)) for n in range(2)]
    for worker in workers:
        worker.start()

    def child() -> bool:
        x = np.zeros(33, np.uint32)
        step = launches(made, "advance", 33, x, scratch=3000)
        step()
        made.build(SOURCE.replace("nothing", "another"))
        return bool((x == 1).all())

    try:
        assert all(in_child(child) for _ in range(8))
    finally:
        stop.set()
        for worker in workers:
            worker.join()


def _in_pool(number: int) -> int:
    x = np.full(50, number, np.uint32)
    launches(connection(2), "advance", 50, x)()
    return int(x.sum())


@POSIX
@FORKS
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_of_multiprocessing(method: str) -> None:
    assert _in_pool(1) == 200
    with multiprocessing.get_context(method).Pool(2) as workers:
        assert workers.map(_in_pool, range(4)) == [50 * (3 * n + 1) for n in range(4)]


@POSIX
def test_a_signals_handler_may_launch_even_the_first_time() -> None:
    made = connection(2)
    x, y = np.zeros(8, np.uint32), np.zeros(9, np.uint32)
    step, inside, times = launches(made, "advance", 8, x), launches(made, "advance", 9, y), list[int]()

    def handle(*_: object) -> None:
        times.append(1)
        inside()

    before, count = signal.signal(signal.SIGALRM, handle), 0
    signal.setitimer(signal.ITIMER_REAL, 1e-3, 1e-3)
    try:
        while len(times) < 30:
            made.pool.address = 0 if count % 50 == 0 else made.pool.address  # as after a fork: threads are started again
            step()
            count += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert x.tolist() == [advanced(count)] * 8 and y.tolist() == [advanced(len(times))] * 9


@POSIX
def test_ctrl_c_in_a_launch_comes_after_it() -> None:
    made, x = connection(2), np.zeros(16, np.int32)
    step = launches(made, "slow", 16, x, np.array([3_000_000], np.int32))
    step()
    timer = threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    count = 1
    try:
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            while True:
                count += 1
                step()
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert set(x.tolist()) <= {count, count - 1} and len(set(x.tolist())) == 1
    step()
    assert x[0] in (count, count + 1)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_signals_are_not_the_threads_concern() -> None:
    """Their mask has every signal but those of crashes."""
    before = set(os.listdir("/proc/self/task"))
    made, x = connection(3), np.zeros(64, np.int32)
    step = launches(made, "slow", 64, x, np.array([100_000], np.int32))
    for _ in range(3):
        step()
    time.sleep(0.05)
    masks = []
    for task in sorted(set(os.listdir("/proc/self/task")) - before):
        status = Path(f"/proc/self/task/{task}/status").read_text()
        masks.append(int(status.partition("SigBlk:")[2].split()[0], 16))
    assert len(masks) == 2
    for mask in masks:
        blocked = {s for s in signal.valid_signals() if mask >> (s - 1) & 1}
        assert {signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGCHLD} <= blocked and signal.SIGSEGV not in blocked


def test_an_exception_while_threads_start_leaves_none_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    real, started = host_pool._start_thread, list[int]()

    def start(function: int, argument: int) -> bool:
        if len(started) == 1:
            started.append(0)
            raise KeyboardInterrupt
        started.append(argument)
        return real(function, argument)

    monkeypatch.setattr(host_pool, "_start_thread", start)
    made, x = connection(3), np.zeros(9, np.uint32)
    step = launches(made, "advance", 9, x)
    with pytest.raises(KeyboardInterrupt):
        step()
    assert made.pool.address == 0
    step()
    assert made.pool.address and x.tolist() == [1] * 9 and len(started) == 4


def test_a_process_ends_while_threads_wait_and_while_one_launches() -> None:
    code = """
import threading, numpy as np
from tests.lowering.test_host_pool import launches, connection
made, x = connection(3), np.zeros(64, np.int32)
step = launches(made, "slow", 64, x, np.array([100_000], np.int32), scratch=1000)
def forever():
    while True:
        step()
threading.Thread(target=forever, daemon=True).start()
step()
print("done", (x > 0).all())
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["done", "True"], "")


def test_two_processes_at_once() -> None:
    numbers = "[f(n) for n in range(20)] == [150 * n + 50 for n in range(20)]"
    code = f"from tests.lowering.test_host_pool import _in_pool as f; print({numbers})"
    running = [subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [one.communicate(timeout=120)[0].strip() for one in running] == ["True", "True"]


@pytest.mark.skipif(platform.machine() != "x86_64" or not sys.platform.startswith("linux"), reason="calls glibc's fesetround")
def test_arithmetic_is_the_same_in_every_block_whatever_the_callers_is() -> None:
    """Rounding upwards is the caller's; blocks of all threads round to the nearest."""
    x, library, upwards = np.ones(64, np.float32), ctypes.CDLL(None), 0x800
    step = launches(connection(2), "rounded", 64, x)
    assert library.fesetround(upwards) == 0
    try:
        for _ in range(20):
            step()
        assert library.fegetround() == upwards
    finally:
        library.fesetround(0)
    assert x.tolist() == [1.0] * 64


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity")
def test_threads_keep_to_cores_that_are_taken_away_later() -> None:
    before = {int(t) for t in os.listdir("/proc/self/task")}
    made, x = connection(2), np.zeros(64, np.int32)
    step = launches(made, "slow", 64, x, np.array([1000], np.int32))
    step()
    (worker,) = {int(t) for t in os.listdir("/proc/self/task")} - before
    every, one = os.sched_getaffinity(0), {min(os.sched_getaffinity(0))}
    try:
        for thread in (0, worker):
            os.sched_setaffinity(thread, one)
        for _ in range(50):
            step()
        assert os.sched_getaffinity(worker) == one and (x == 51).all()
    finally:
        for thread in (0, worker):
            os.sched_setaffinity(thread, every)


# ---------------------------------------------------------------- memory, and other systems


@pytest.mark.parametrize("size", [0, 1, 5000, 3 << 20])
def test_memory_is_aligned_zero_and_a_number(size: int) -> None:
    memory = aligned_memory(size)
    assert memory == memory.address and memory % (host_pool.HUGE_BYTES if size >= host_pool.HUGE_BYTES else 4096) == 0
    assert struct.pack("Q", memory) == struct.pack("Q", memory.address)
    assert not any(ctypes.string_at(memory.address, size))


def test_a_pool_before_its_first_launch_has_no_threads() -> None:
    pool = Pool(lambda: pytest.fail("was compiled"), 4)
    pool.reserve(100)
    assert pool.address == 0 and pool.scratch_bytes == 100
