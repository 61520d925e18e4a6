"""Kernels as functions of this process: every block runs once, in order with other work, and what cannot be one is launched by PoCL."""

from __future__ import annotations

import gc
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tilelang.lowering.drivers import host_threads
from tilelang.lowering.drivers import opencl as driver
from tilelang.lowering.drivers.host_threads import HostThreads, cores
from tilelang.lowering.drivers.pocl_functions import as_functions, kernels_of

STEP = """
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void advance(__global int* x) { x[get_group_id(0)] = 3 * x[get_group_id(0)] + 1; }
"""
COUNTED = """
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void counted(__global int* times, __global int* place) {
    __local int shared[64] __attribute__((aligned(64)));
    const int x = get_group_id(0), y = get_group_id(1), z = get_group_id(2);
    for (int i = 0; i < 64; ++i) shared[i] = i;
    barrier(CLK_LOCAL_MEM_FENCE);
    *(__local int*)(shared + 1) += 1;
    times[x + 5 * (y + 3 * z)] += shared[1] - 1;
    place[x + 5 * (y + 3 * z)] = 10000 * z + 100 * y + x;
}
"""
ORDERED = """
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void ordered(__global int* done, __global int* order) { order[done[0]++] = 10 * get_group_id(1) + get_group_id(0); }
"""
MET = """
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void met(__global int* x) {
    __local int shared[2];
    shared[0] = 0;
    for (int i = 0; i < 3; ++i) atomic_add((volatile __local int*)shared, 2);
    x[get_group_id(0)] = shared[0];
}
"""


@pytest.fixture
def connection() -> driver.Connection:
    """A connection of its own, whose launches run here."""
    made = driver.Connection(driver.choose())
    assert made.hosting is not None
    return made


def advance(connection: driver.Connection, x: np.ndarray[Any, Any]) -> tuple[driver.Function, list[Any]]:
    return connection.build(STEP).function("advance", (len(x),), 1, 0), [connection.host_array(x, "both", None).buffer]


def advanced(steps: int) -> int:
    """Where a number that began as 0 is after some steps, in 32 bits."""
    x = 0
    for _ in range(steps):
        x = (3 * x + 1) & 0xFFFFFFFF
    return x


@pytest.mark.parametrize("grid", [(5, 3, 4), (5, 3, 1), (1, 3, 4), (5,), (1,), (4, 3)])
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_every_block_runs_once_whatever_the_number_of_threads(
    connection: driver.Connection, grid: tuple[int, ...], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert connection.hosting is not None
    monkeypatch.setattr(host_threads, "cores", lambda: count)
    monkeypatch.setattr(connection.hosting, "threads", of_threads(connection, count))
    function = connection.build(COUNTED).function("counted", grid, 1, 256)
    x, y, z = (*grid, 1, 1)[:3]
    times, place = np.zeros((4, 3, 5), np.int32), np.full((4, 3, 5), -1, np.int32)
    held = [connection.host_array(a, "both", None).buffer for a in (times, place)]
    for _ in range(20):
        function(held)
    inside = np.zeros((4, 3, 5), bool)
    inside[:z, :y, :x] = True
    assert (times == np.where(inside, 20, 0)).all()
    k, j, i = np.indices((4, 3, 5))
    assert (place == np.where(inside, 10000 * k + 100 * j + i, -1)).all()


def of_threads(connection: driver.Connection, count: int, wait_s: float = 1e-4) -> HostThreads:
    """Threads for a connection, so many, whatever cores there are."""
    hosting = connection.hosting
    assert hosting is not None
    return HostThreads(hosting.addresses_of_threads(), count, wait_s)


def test_a_launch_begins_with_the_blocks_that_the_one_before_ended_with(
    connection: driver.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert connection.hosting is not None
    monkeypatch.setattr(connection.hosting, "threads", of_threads(connection, 1))
    function = connection.build(ORDERED).function("ordered", (5, 3), 1, 0)
    done, order = np.zeros(1, np.int32), np.full(45, -1, np.int32)
    held = [connection.host_array(a, "both", None).buffer for a in (done, order)]
    for _ in range(3):
        function(held)
    first, second, third = order.reshape(3, 15).tolist()
    assert sorted(first) == [10 * y + x for y in range(3) for x in range(5)]
    assert first == second[::-1] == third


def test_threads_that_sleep_at_once_do_their_part(connection: driver.Connection) -> None:
    threads, x = of_threads(connection, 2, wait_s=0.0), np.zeros(1000, np.uint32)
    assert connection.hosting is not None
    address, arguments = connection.hosting.functions(STEP, ())["advance"]
    function = threads.function(address, arguments, (1000,))
    for _ in range(300):
        function([x.ctypes.data])
    assert x.tolist() == [advanced(300)] * 1000


def test_who_launches_does_what_no_other_thread_comes_for(connection: driver.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "start", lambda _: None)
    threads, x = of_threads(connection, 4), np.zeros(103, np.uint32)
    assert connection.hosting is not None
    threads.function(*connection.hosting.functions(STEP, ())["advance"], (103,))([x.ctypes.data])
    assert x.tolist() == [1] * 103


def test_launches_of_several_threads_stay_apart(connection: driver.Connection) -> None:
    x = np.zeros(3, np.uint32)
    function, buffers = advance(connection, x)

    def many() -> None:
        for n in range(50):
            function(buffers)
            if n % 7 == 0:
                connection.finish()

    threads = [threading.Thread(target=many) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    connection.finish()
    assert x.tolist() == [advanced(200)] * 3


def test_buffers_of_opencl_are_launched_on_their_queue_and_in_order(connection: driver.Connection) -> None:
    """Every second launch is PoCL's own; each finds what the one before left."""
    import pyopencl as cl

    x = np.zeros(4, np.uint32)
    function, buffers = advance(connection, x)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
    same = [cl.Buffer(connection.context, flags, hostbuf=x)]
    for queue in (None, cl.CommandQueue(connection.context)):
        for _ in range(10):
            assert isinstance(function(same, queue), cl.Event)
            function(buffers, queue)
    assert x.tolist() == [advanced(40)] * 4


def test_a_text_that_does_not_compile_as_functions_is_launched_by_pocl(connection: driver.Connection) -> None:
    """Atomic operations on a block's own memory have no form for a thread's."""
    import pyopencl as cl

    module = connection.build(MET)
    assert not module.functions
    x = np.zeros(5, np.int32)
    event = module.function("met", (5,), 1, 8)([connection.host_array(x, "both", None).buffer])
    assert isinstance(event, cl.Event)
    event.wait()
    assert x.tolist() == [6] * 5


def test_blocks_of_several_threads_or_with_much_to_share_are_launched_by_pocl(connection: driver.Connection) -> None:
    most = host_threads.STACK_BYTES // 4
    assert connection.hosting is not None
    can_run = connection.hosting.can_run
    assert can_run((4, 5), 1, most) and not can_run((4, 5), 1, most + 1)
    assert not can_run((4,), 2, 0) and not can_run((1 << 16, 1 << 15), 1, 0)


def test_a_block_has_its_own_stack_however_small_the_callers_is(connection: driver.Connection) -> None:
    """A megabyte of private memory, in a thread whose stack is a quarter of that."""
    text = """
    __kernel __attribute__((reqd_work_group_size(1, 1, 1)))
    void summed(__global int* x, __global const int* step) {
        int held[1 << 18];
        for (int i = 0; i < (1 << 18); ++i) held[i] = i * step[0];
        int sum = 0;
        for (int i = 0; i < (1 << 18); i += step[1]) sum += held[i];
        x[get_group_id(0)] = sum;
    }"""
    x, step = np.zeros(3, np.int32), np.array([1, 1 << 16], np.int32)
    held = [connection.host_array(x, "both", None).buffer, connection.host_array(step, "input", None).buffer]
    function = connection.build(text).function("summed", (3,), 1, 0)
    before = threading.stack_size(1 << 18)
    try:
        thread = threading.Thread(target=function, args=(held,))
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert x.tolist() == [6 << 16] * 3


def test_which_texts_can_be_functions() -> None:
    assert kernels_of(COUNTED + STEP) == {"counted": 2, "advance": 1}
    of_threads = STEP.replace("get_group_id(0)]", "get_local_id(0)]", 1)
    for text in (of_threads, STEP.replace("(1, 1, 1)", "(64, 1, 1)"), "void f(int x) {}", STEP.replace("__global int* x", "")):
        assert kernels_of(text) == {}
    made = as_functions(STEP, {"advance": 1})
    assert STEP in made and "void advance_function(const __global ulong* arguments, const ulong* block)" in made


def test_work_that_needs_the_waiting_option(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, waits in (("0", 0.0), ("1", host_threads.WAIT_S)):
        monkeypatch.setenv("TILELANG_ACTIVE_WAIT", value)
        made = driver.Connection(driver.choose())
        assert made.hosting is not None and made.hosting.threads.wait_s == waits
        x = np.zeros(9, np.uint32)
        function, buffers = advance(made, x)
        for _ in range(3):
            function(buffers)
        assert x.tolist() == [advanced(3)] * 9


def test_an_array_of_pyopencl_is_where_it_was_and_forgotten_with_it() -> None:
    import pyopencl.array as cla

    i = tl.axes(i=300)
    kernel = tl.compile(tl.define("Y", tl.input("X", tl.int32, i)[i] * 2, i), tl.target("opencl"))
    connection = driver.connect(driver.choose())
    before = connection.places.known
    x = cla.to_device(kernel.queue, np.arange(900, dtype=np.int32))
    out = cla.zeros(kernel.queue, 300, np.int32)
    for begin in (0, 256, 512):
        y = kernel(x[begin : begin + 300], out=out)
        assert y is out and (y.get() == 2 * np.arange(begin, begin + 300)).all()
    x += 1  # by pyopencl, on its queue
    assert (kernel(x[:300]).get() == 2 * np.arange(1, 301)).all()
    assert connection.places.known > before
    del x, y, out
    gc.collect()
    assert connection.places.known == before


def test_cores_of_a_control_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 2, 3}, raising=False)
    quota = tmp_path / "cpu.max"
    assert cores(quota) == 3
    for text, expected in (("max 100000\n", 3), ("150000 100000\n", 1.5), ("800000 100000\n", 3), ("", 3)):
        quota.write_text(text)
        assert cores(quota) == expected


def test_threads_are_started_once_whatever_interrupts_it(connection: driver.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    started, real = list[str](), threading.Thread.start

    def start(self: threading.Thread) -> None:
        if len(started) == 1:
            started.append("refused")
            raise RuntimeError("can't start new thread")
        started.append("began")
        real(self)

    monkeypatch.setattr(threading.Thread, "start", start)
    threads, x = of_threads(connection, 4), np.zeros(64, np.uint32)
    assert connection.hosting is not None
    of = connection.hosting.functions(STEP, ())["advance"]
    for _ in range(3):
        threads.function(*of, (64,))([x.ctypes.data])
    assert started == ["began", "refused", "began"] and x.tolist() == [advanced(3)] * 64


def test_arithmetic_is_the_same_in_every_block_whatever_the_callers_is(connection: driver.Connection) -> None:
    """Rounding upwards is the caller's, by the C library; blocks of all threads round to the nearest."""
    import ctypes

    text = STEP.replace("int* x", "float* x").replace("3 * x[get_group_id(0)] + 1", "x[get_group_id(0)] + 1e-9f")
    x = np.ones(64, np.float32)
    library = ctypes.CDLL(None)
    function, held = connection.build(text).function("advance", (64,), 1, 0), [connection.host_array(x, "both", None).buffer]
    upwards = 0x800
    assert library.fesetround(upwards) == 0
    try:
        for _ in range(20):
            function(held)
        assert library.fegetround() == upwards
    finally:
        library.fesetround(0)
    assert x.tolist() == [1.0] * 64


def test_memory_of_a_launch_by_a_queue_outlives_who_made_it(connection: driver.Connection) -> None:
    import pyopencl as cl

    x = np.zeros(1 << 16, np.uint32)
    function = connection.build(STEP).function("advance", (len(x),), 1, 0)
    memory = connection.upload(x)
    gate = cl.UserEvent(connection.context)
    cl.enqueue_barrier(connection.queue, wait_for=[gate])
    function([memory.opencl])
    del memory
    others = [np.full(len(x), 7, np.uint32) for _ in range(8)]
    gate.set_status(cl.command_execution_status.COMPLETE)
    connection.finish()
    assert all((other == 7).all() for other in others)


def test_a_signals_handler_may_launch(connection: driver.Connection) -> None:
    import signal

    x, y = np.zeros(8, np.uint32), np.zeros(8, np.uint32)
    function, held = advance(connection, x)
    inside, times = [connection.host_array(y, "both", None).buffer], []

    def handle(*_: object) -> None:
        times.append(1)
        function(inside)

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 1e-3, 1e-3)
    try:
        launches = 0
        while len(times) < 20:
            function(held)
            launches += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert x.tolist() == [advanced(launches)] * 8 and y.tolist() == [advanced(len(times))] * 8


def test_threads_keep_to_cores_that_are_taken_away_later(connection: driver.Connection) -> None:
    import os

    assert connection.hosting is not None
    before = set(threading.enumerate())
    threads, x = of_threads(connection, 2), np.zeros(64, np.uint32)
    function = threads.function(*connection.hosting.functions(STEP, ())["advance"], (64,))
    (worker,) = (t for t in threading.enumerate() if t not in before)
    every, one = os.sched_getaffinity(0), {min(os.sched_getaffinity(0))}
    try:
        for thread in (0, worker.native_id or 0):
            os.sched_setaffinity(thread, one)
        for _ in range(50):
            function([x.ctypes.data])
        assert os.sched_getaffinity(worker.native_id or 0) == one
    finally:
        for thread in (0, worker.native_id or 0):
            os.sched_setaffinity(thread, every)


def test_an_output_over_a_part_of_an_input_is_refused_wherever_they_are() -> None:
    import pyopencl as cl
    import pyopencl.array as cla

    i = tl.axes(i=256)
    kernel = tl.compile(tl.define("Y", tl.input("X", tl.int32, i)[i] * 2, i), tl.target("opencl"))
    whole: Any = cla.zeros(kernel.queue, 512, np.int32).base_data
    first, second = (
        cla.Array(kernel.queue, (256,), np.int32, data=whole.get_sub_region(begin, 1024, cl.mem_flags.READ_WRITE))
        for begin in (0, 512)
    )
    with pytest.raises(tl.ComputationError, match="shares memory"):
        kernel(first, out=second)
