"""Calls after a kernel's first, which take fewer steps over NumPy arrays: the same results, the same errors, nothing remembered."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tilelang.errors import ComputationError
from tilelang.runtime.launch_arguments import Direct

Floats = np.ndarray[Any, np.dtype[np.float32]]


@pytest.fixture(scope="module")
def kernel() -> tl.Kernel:
    i, j = tl.axes(i=6, j=8)
    x, y = (tl.input(name, tl.float32, i, j) for name in "XY")
    made = tl.compile(tl.define("Z", x[i, j] - 2 * y[i, j], i, j), "cpu")
    made(filled(), filled())  # from now on calls are direct
    return made


def filled(shape: tuple[int, ...] = (6, 8)) -> Floats:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


@pytest.fixture
def direct(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each call, whether it was direct."""
    told: list[bool] = []
    run = Direct.run

    def observed(self: Direct, arrays: Any, out: Any) -> Any:
        result = run(self, arrays, out)
        told.append(result is not None)
        return result

    monkeypatch.setattr(Direct, "run", observed)
    return told


def test_plain_arrays_are_taken_directly(kernel: tl.Kernel, direct: list[bool]) -> None:
    x, y, z = filled(), filled() ** 2, np.full((6, 8), np.nan, np.float32)
    assert kernel(x, y, out=z) is z and np.array_equal(z, x - 2 * y)
    made = kernel(x, y)
    assert np.array_equal(made, z) and not np.shares_memory(made, kernel(x, y))
    assert np.array_equal(kernel(x, x), -x)  # inputs may be one array
    assert direct == [True] * 4


def misaligned(array: Floats) -> Floats:
    moved = np.zeros(array.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(array.shape)
    moved[...] = array
    return moved


def read_only(array: Floats) -> Floats:
    array.flags.writeable = False
    return array


def strided(array: Floats) -> Floats:
    return np.repeat(array, 2, 1)[:, ::2]


def as_subclass(array: Floats) -> Floats:
    return array.view(np.memmap)


@pytest.mark.parametrize("form", [np.asfortranarray, misaligned, read_only, strided, as_subclass])
def test_arrays_that_need_a_copy_or_a_closer_look_give_the_same(
    kernel: tl.Kernel, direct: list[bool], form: Callable[[Floats], Floats]
) -> None:
    assert np.array_equal(kernel(form(filled()), filled()), -filled())
    assert direct == [False]


@pytest.mark.parametrize("form", [np.asfortranarray, misaligned, strided])
def test_outputs_that_need_a_copy_are_filled(kernel: tl.Kernel, direct: list[bool], form: Callable[[Floats], Floats]) -> None:
    out = form(filled())
    assert kernel(filled(), filled(), out=out) is out and np.array_equal(out, -filled())
    assert direct == [False]


WRONG: dict[str, tuple[Callable[[], tuple[Any, Any, Any]], str]] = {
    "shape": (lambda: (filled((8, 6)), filled(), None), "has shape"),
    "type": (lambda: (filled().astype(np.float64), filled(), None), "has type"),
    "byte order": (lambda: (filled().astype(">f4"), filled(), None), "has type"),
    "masks": (lambda: (np.ma.masked_array(filled()), filled(), None), "is masked"),
    "output's shape": (lambda: (filled(), filled(), filled((8, 6))), "has shape"),
    "read-only output": (lambda: (filled(), filled(), read_only(filled())), "cannot be written"),
}


@pytest.mark.parametrize("what", WRONG)
def test_errors_are_those_of_the_first_call(kernel: tl.Kernel, what: str) -> None:
    make, said = WRONG[what]
    x, y, out = make()
    with pytest.raises(tl.TileLangError, match=said):
        kernel(x, y, out=out)
    x, y, out = make()
    first = tl.compile(kernel.schedule, "cpu")
    with pytest.raises(tl.TileLangError, match=said):
        first(x, y, out=out)


def test_an_output_over_an_input_is_refused(kernel: tl.Kernel) -> None:
    memory = filled((13, 8))
    apart = kernel(filled(), memory[:6].copy(), out=memory[6:12])
    assert np.array_equal(apart, filled() - 2 * filled())
    for first in (0, 1, 5):
        with pytest.raises(tl.TileLangError, match="shares memory with the input Y"):
            kernel(filled(), memory[:6], out=memory[first : first + 6])


def test_a_missing_array_is_named(kernel: tl.Kernel) -> None:
    with pytest.raises(tl.TileLangError, match="needs Y too"):
        kernel(filled())


def test_ranges_are_looked_at_in_every_call() -> None:
    i = tl.axes(i=4)
    rows, table = tl.input("rows", tl.int32, i, range=(0, 8)), tl.input("table", tl.float32, v=8)
    made = tl.compile(tl.define("Y", table[rows[i]], i), "cpu")
    values = np.arange(8, dtype=np.float32)
    for _ in range(2):
        assert made(np.array([7, 0, 1, 2], np.int32), values).tolist() == [7, 0, 1, 2]
        with pytest.raises(tl.TileLangError, match="outside its range"):
            made(np.array([8, 0, 1, 2], np.int32), values)


def test_inputs_may_have_the_names_of_parameters() -> None:
    i = tl.axes(i=4)
    for name in ("out", "queue", "self"):
        c = tl.computation("c", tl.define("y", tl.input(name, tl.float32, i)[i] * 2, i))
        assert tl.compile(c).check()
        np.testing.assert_array_equal(c.evaluate(**{name: np.ones(4, np.float32)}), np.full(4, 2, np.float32))


def test_calls_on_two_queues_do_not_share_the_workspace(monkeypatch: pytest.MonkeyPatch) -> None:
    i, j = tl.axes(i=4, j=8)
    x = tl.input("X", tl.float32, i, j)
    total = tl.define("total", tl.sum(x[i, j], over=j), i)
    kernel = tl.compile(tl.schedule(tl.define("y", x[i, j] - total[i], i, j)).compute("total", tl.global_))
    assert kernel._workspace
    waited = list[Any]()
    monkeypatch.setattr(type(kernel._connection), "finish", lambda self, queue=None: waited.append(queue))
    for queue in (None, 7, 7, 9):  # handles of streams, which may be gone when the next call comes: all streams are waited for
        kernel._spare.append((kernel._take_workspace(queue), queue))
    assert waited == [None, None] and len(kernel._spare) == 1
    one, another = kernel._take_workspace(9), kernel._take_workspace(9)
    assert one["total"] is not another["total"]


def test_a_call_takes_the_workspace_that_its_queue_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the latest one, for whose queue it would wait."""
    i, j = tl.axes(i=4, j=8)
    x = tl.input("X", tl.float32, i, j)
    total = tl.define("total", tl.sum(x[i, j], over=j), i)
    kernel = tl.compile(tl.schedule(tl.define("y", x[i, j] - total[i], i, j)).compute("total", tl.global_))
    waited = list[Any]()
    monkeypatch.setattr(type(kernel._connection), "finish", lambda self, queue=None: waited.append(queue))
    of_seven, of_nine = kernel._take_workspace(7), kernel._take_workspace(9)
    kernel._spare[:] = [(of_seven, 7), (of_nine, 9)]
    assert kernel._take_workspace(7) is of_seven and not waited
    assert kernel._take_workspace(7) is of_nine and waited == [None]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer here")
def test_a_signals_handler_may_call_the_kernel_that_it_interrupts() -> None:
    i, j = tl.axes(i=64, j=64)
    x = tl.input("X", tl.float32, i, j)
    total = tl.define("total", tl.sum(x[i, j], over=j), i)
    kernel = tl.compile(tl.schedule(tl.define("y", x[i, j] - total[i], i, j)).compute("total", tl.global_), target="cpu")
    inner, outer, wrong = np.full((64, 64), 7, np.float32), np.full((64, 64), 3, np.float32), list[str]()
    running = [True]  # a handler that runs after the last call must not start the timer again, whose signal would end the process
    kernel(outer)

    def handler(*_: object) -> None:
        if not (kernel(X=inner) == 7 - 64 * 7).all():
            wrong.append("inner")
        if running:
            signal.setitimer(signal.ITIMER_REAL, 0.0005)

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0005)
        for _ in range(500):
            if not (kernel(X=outer) == 3 - 64 * 3).all():
                wrong.append("outer")
    finally:
        running.clear()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not wrong


def test_what_a_kernel_has_is_named_where_it_is_asked_of_a_kernel_function() -> None:
    @tl.kernel
    def doubled(x: Any) -> Any:
        i = tl.axes(i=x.shape[0])
        return tl.define("y", 2 * x[i], i)

    for name in ("source", "schedule", "explain", "refinements"):
        with pytest.raises(AttributeError) as caught:
            getattr(doubled, name)
        told = f"doubled has a kernel for each kind of arguments: doubled.compile(x).{name}, or doubled.kernels[0].{name}"
        assert str(caught.value) == told
        assert getattr(doubled.compile(np.arange(4, dtype=np.int32)), name)
    with pytest.raises(AttributeError, match="has no attribute 'sauce'"):
        _ = doubled.sauce


def test_a_parameter_that_is_not_read_is_named() -> None:
    @tl.kernel
    def doubled(x: Any, unused: Any) -> Any:
        i = tl.axes(i=x.shape[0])
        return tl.define("y", x[i] * 2, i)

    with pytest.raises(ComputationError) as caught:
        doubled(np.ones(3, np.float32), np.ones(3, np.float32))
    assert caught.value.code == "unread-parameter" and "doubled does not use its parameter unused" in str(caught.value)
