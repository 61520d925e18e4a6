"""PoCL's threads wait for the next launch: in which cases, and that nothing of it is seen in results."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tilelang.lowering.drivers import opencl as driver
from tilelang.lowering.drivers import pocl_waiting
from tilelang.lowering.drivers.pocl_waiting import ARRIVED, COUNTERS, LEFT, LOST, RELEASED, Waiting, cores

STEP = """
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void advance(__global int* x) { x[get_group_id(0)] = 3 * x[get_group_id(0)] + 1; }
"""


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> driver.Connection:
    """A connection of its own whose threads wait after every launch but the first, however slow the machine is."""
    import pyopencl as cl

    monkeypatch.setattr(pocl_waiting, "OFTEN_S", float("inf"))
    monkeypatch.setattr(pocl_waiting, "REST_S", -1.0)
    made = driver.Connection(driver.choose())
    made.waiting = Waiting(made, cl.enqueue_nd_range_kernel)
    return made


def advance(connection: driver.Connection, x: np.ndarray[Any, Any]) -> tuple[driver.Function, list[Any]]:
    held = driver.HostArray(connection, x, True)
    return connection.build(STEP).function("advance", (len(x),), 1, 0), [held.buffer]


def advanced(steps: int) -> int:
    """Where a number that began as 0 is after some steps, in 32 bits."""
    x = 0
    for _ in range(steps):
        x = (3 * x + 1) & 0xFFFFFFFF
    return x


def test_every_thread_comes_once_for_each_launch(connection: driver.Connection) -> None:
    x = np.zeros(4, np.uint32)
    function, buffers = advance(connection, x)
    for _ in range(5):
        function(buffers)
    connection.finish()
    waiting = connection.waiting
    assert waiting is not None and waiting.begun == 4
    waiting.queue.finish()  # the last one ends by itself
    assert waiting.counters[ARRIVED] == waiting.counters[LEFT] == 4 * waiting.threads
    assert waiting.counters[RELEASED] == 3  # by the last launch: all but the one behind it
    assert x.tolist() == [advanced(5)] * 4


def test_launches_of_several_threads_stay_in_order(connection: driver.Connection) -> None:
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


def test_threads_are_released_but_do_not_wait_after_launches_on_other_queues(connection: driver.Connection) -> None:
    import pyopencl as cl

    x = np.zeros(2, np.uint32)
    function, buffers = advance(connection, x)
    for _ in range(3):
        function(buffers)
    connection.finish()
    other, waiting = cl.CommandQueue(connection.context), connection.waiting
    function(buffers, other)
    other.finish()
    assert waiting is not None and waiting.begun == waiting.counters[RELEASED] == 2
    assert x.tolist() == [advanced(4)] * 2


def test_launches_far_between_let_the_threads_sleep(connection: driver.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pocl_waiting, "OFTEN_S", 0.0)
    function, buffers = advance(connection, np.zeros(2, np.uint32))
    for _ in range(3):
        function(buffers)
    connection.finish()
    assert connection.waiting is not None and connection.waiting.begun == 0
    assert connection.waiting.counters is None


def test_there_is_no_waiting_for_a_while_after_a_thread_lost_its_core(
    connection: driver.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pocl_waiting, "REST_S", float("inf"))
    function, buffers = advance(connection, np.zeros(2, np.uint32))
    for _ in range(2):
        function(buffers)
    waiting = connection.waiting
    assert waiting is not None
    waiting.queue.finish()
    waiting.counters[LOST] += 1
    before = waiting.begun
    for _ in range(3):
        function(buffers)
    connection.finish()
    assert waiting.begun == before and waiting.counters[RELEASED] == before


@pytest.mark.parametrize(
    ("left", "again", "order"),
    [(5, True, ["wait", "launch"]), (6, True, ["launch", "wait"]), (5, False, ["launch"]), (6, False, ["launch"])],
)
def test_the_next_wait_is_enqueued_while_threads_wait(left: int, again: bool, order: list[str]) -> None:
    """Where nobody waits any more it comes after the launch: threads would take it first."""
    made = []

    def enqueue() -> Any:
        assert waiting.counters[RELEASED] == 0  # nobody leaves before there is something to do
        made.append("launch")
        return SimpleNamespace(command_execution_status=0)

    waiting = Waiting(SimpleNamespace(device=SimpleNamespace(compute_units=2)), enqueue)
    waiting.begun, waiting.counters = 3, np.zeros(COUNTERS, np.int64)
    waiting.counters[ARRIVED], waiting.counters[LEFT] = 6, left
    waiting._wait = lambda: made.append("wait")  # type: ignore[method-assign]
    waiting._between(again)
    assert made == order and waiting.counters[RELEASED] == 3


def test_who_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    device = dataclasses.replace(driver.choose(), platform=driver.POCL, compute_units=4)
    monkeypatch.setattr(pocl_waiting, "cores", lambda: 4)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    assert driver.may_wait(device)
    assert not driver.may_wait(dataclasses.replace(device, platform="another"))
    assert not driver.may_wait(dataclasses.replace(device, compute_units=1))
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("platform.machine", lambda: "aarch64")
        assert not driver.may_wait(device)
    monkeypatch.setenv("TILELANG_ACTIVE_WAIT", "0")
    assert not driver.may_wait(device)
    monkeypatch.delenv("TILELANG_ACTIVE_WAIT")
    monkeypatch.setattr(pocl_waiting, "cores", lambda: 3.5)  # threads would wait in one another's way
    assert not driver.may_wait(device)


def test_cores_of_a_control_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 2, 3}, raising=False)
    quota = tmp_path / "cpu.max"
    assert cores(quota) == 3
    for text, expected in (("max 100000\n", 3), ("150000 100000\n", 1.5), ("800000 100000\n", 3), ("", 3)):
        quota.write_text(text)
        assert cores(quota) == expected
