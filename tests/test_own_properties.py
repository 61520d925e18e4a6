"""What `tilelang.testing` gives for property tests of one's own kernels: accepted schedules, sizes, inputs, instructions; refusals set
aside; planted faults found and shrunk."""

from __future__ import annotations

import dataclasses
import functools
import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable

import tilelang as tl
from tests.planted import leave_out_barriers
from tilelang import testing
from tilelang.errors import ComputationError, Refusal
from tilelang.instructions.instruction import Instruction, use
from tilelang.testing import accepted, kernel_checks, strategies
from tilelang.testing.instruction_schedules import Schedules

FEW = settings(max_examples=max(10, settings().max_examples // 5))
SEARCH = settings(max_examples=400, deadline=None, database=None, suppress_health_check=list(HealthCheck))
CPU, GPU = tl.target("cpu", profile="avx2"), tl.target("cuda", profile="ampere")


def product(dtype: Any = tl.float32, m: int = 20, n: int = 12, k: int = 10) -> tl.Computation:
    i, j, r = tl.axes(m=m, n=n, k=k)
    A, B = tl.input("A", dtype, i, r), tl.input("B", dtype, r, j)
    return tl.computation("product", tl.define("C", tl.sum(A[i, r] * B[r, j], over=r), i, j))


def softmax() -> tl.Computation:
    i, j = tl.axes(i=7, j=9)
    X = tl.input("X", tl.float32, i, j)
    most = tl.define("most", tl.max(X[i, j], over=j), i)
    total = tl.define("total", tl.sum(tl.exp(X[i, j] - most[i]), over=j), i)
    return tl.computation("softmax", tl.define("Y", tl.exp(X[i, j] - most[i]) / total[i], i, j))


def without_axes() -> tl.Computation:
    k = tl.axes(k=5)
    return tl.computation("total", tl.define("S", tl.sum(tl.input("X", tl.bfloat16, k)[k], over=k)))


def several() -> tl.Computation:
    i, j = tl.axes(i=6, j=0)
    X, flags = tl.input("X", tl.uint8, i), tl.input("flags", tl.bool, i)
    a = tl.define("A", tl.where(flags[i], X[i], X[i] * 2), i)
    return tl.computation("several", (a, tl.define("B", X[i] < 3, i), tl.define("N", X[i] + 1, i, j)))


COMPUTATIONS = [product, softmax, without_axes, several]


def first(strategy: Any, holds: Callable[[Any], bool] = lambda _: True, seed: int = 0) -> Any:
    """The smallest value that Hypothesis finds."""
    return hypothesis.find(strategy, holds, settings=SEARCH, random=random.Random(seed))


def verbs(schedule: tl.Schedule) -> list[str]:
    return [str(s).split()[0] for s in schedule.steps]


# ---------------------------------------------------------------- schedules


@pytest.mark.parametrize("make", COMPUTATIONS)
@pytest.mark.parametrize("target", [CPU, GPU], ids=str)
def test_every_schedule_is_accepted(make: Callable[[], tl.Computation], target: tl.Target) -> None:
    @given(testing.schedules(make(), target))
    @settings(FEW, max_examples=FEW.max_examples // 2)
    def check_accepted(schedule: tl.Schedule) -> None:
        assert tl.compile(schedule, target).program.kernels

    check_accepted()


def test_schedules_have_every_verb() -> None:
    seen: set[str] = set()
    for seed in range(40):
        seen |= set(verbs(accepted.draw_schedule(testing.Seeded(seed), (product, softmax)[seed % 2](), GPU)))
    assert seen >= {"tile", "split", "load", "accumulate", "vectorize", "compute", "fuse", "unfuse", "units", "when"}


def test_a_refused_step_is_left_out_and_the_others_stay() -> None:
    made = product()
    steps = tl.schedule(made).tile(m=8).to(tl.block).tile(n=4).to("warpgroup").split(k=5).steps
    with pytest.raises(Refusal):
        tl.compile(tl.Schedule(made, steps), CPU)
    assert accepted.keep_accepted(made, steps, CPU).steps == (steps[0], steps[2])


def test_every_schedule_is_right_here() -> None:
    @testing.kernel_test
    @given(testing.schedules(softmax()), st.data())
    @settings(FEW, max_examples=FEW.max_examples // 2)
    def holds(schedule: tl.Schedule, data: st.DataObject) -> None:
        assert not testing.check_kernel(schedule, data.draw(testing.inputs(schedule)))

    holds()


# ---------------------------------------------------------------- sizes and inputs


@pytest.mark.parametrize("make", COMPUTATIONS)
@given(data=st.data())
@FEW
def test_a_computation_exists_at_every_size(make: Callable[[], tl.Computation], data: st.DataObject) -> None:
    made = make()
    chosen = data.draw(testing.sizes(made))
    again = testing.resized(made, chosen)
    assert {a.name: a.extent for a in again.axes} == {a.name: a.extent for a in made.axes} | chosen
    assert not again.check(lambda arrays: again_by_name(again, arrays)).runs[0].wrong


def again_by_name(made: tl.Computation, arrays: Any) -> dict[str, Any]:
    found = made.evaluate(**arrays)
    return (
        {made.outputs[0].name: found} if len(made.outputs) == 1 else found._asdict() if hasattr(found, "_asdict") else dict(found)
    )


def test_sizes_are_empty_single_and_around_the_tiles_of_a_schedule() -> None:
    plan = tl.schedule(product()).tile(m=6).to(tl.block)
    seen = {testing.draw_sizes(testing.Seeded(seed), plan)["m"] for seed in range(100)}
    assert seen >= {0, 1, 5, 6, 7, 13}
    smallest = first(testing.sizes(plan, CPU), lambda sizes: sizes["m"] > 6)
    assert smallest == {"m": 7, "n": 1, "k": 1}


def test_a_schedule_is_accepted_at_every_size() -> None:
    plan = tl.schedule(product(m=16)).unfuse(m={"a": 4, "b": 4}).tile(a=2).to(tl.block)
    seen = {tuple(testing.draw_sizes(testing.Seeded(seed), plan, CPU).items()) for seed in range(12)}
    assert len(seen) > 5 and all(dict(sizes).get("m", 16) == 16 for sizes in seen)  # other extents of m are refused
    for sizes in seen:
        tl.compile(testing.resized(plan, dict(sizes)), CPU)


@pytest.mark.parametrize(
    ("tensor", "values"),
    [
        (tl.input("X", tl.float32, i=4), [np.nan, np.inf, -np.inf, -0.0, 2.0**-149, 2.0**-126, float(np.finfo(np.float32).max)]),
        (tl.input("X", tl.float16, i=4), [np.nan, np.inf, 2.0**-24, 65504.0]),
        (tl.input("X", tl.bfloat16, i=4), [np.nan, np.inf, 2.0**-133]),
        (tl.input("X", tl.float8_e4m3, i=4), [np.nan, 448.0, 2.0**-9]),
        (tl.input("X", tl.int64, i=4), [2**63 - 1, -(2**63)]),
        (tl.input("X", tl.uint8, i=4), [0, 255]),
        (tl.input("X", tl.bool, i=4), [True, False]),
        (tl.input("X", tl.int32, i=4, range=(3, 9)), [3, 8]),
    ],
    ids=lambda x: str(x.dtype) if isinstance(x, tl.Tensor) else "",
)
def test_special_values_of_each_type(tensor: tl.Tensor, values: list[Any]) -> None:
    found = np.array(testing.special_values(tensor)).astype(tensor.dtype.numpy)
    for value in values:
        wanted = np.array(value).astype(tensor.dtype.numpy)
        assert any(a.tobytes() == wanted.tobytes() for a in found) or (np.isnan(wanted) and np.isnan(found.astype(float)).any())
    i = tl.axes(i=4)
    made = tl.computation("same", tl.define("Y", tensor[i], i))
    array = first(testing.inputs(made), lambda arrays: values[0] in arrays["X"] or np.isnan(arrays["X"].astype(float)).any())["X"]
    assert array.dtype == tensor.dtype.numpy and array.shape == (4,)


def test_special_values_shrink_to_one_place() -> None:
    found = first(testing.inputs(product()), lambda arrays: any(np.isinf(a).any() for a in arrays.values()))
    assert sum(int(np.count_nonzero(a)) for a in found.values()) == 1


def test_a_combiner_of_ones_own_gets_no_infinities() -> None:
    i, j = tl.axes(i=3, j=4)
    X = tl.input("X", tl.float32, i, j)
    (_, mean) = tl.define(
        ("n", "mean"),
        tl.reduce(lambda p, q: (p[0] + q[0], p[1] + q[1]), (0.0, 0.0), (tl.cast(1, tl.float32), X[i, j]), over=j),
        i,
    )
    made = tl.computation("mean", mean)
    for seed in range(40):
        (array,) = testing.draw_inputs(testing.Seeded(seed), made).values()
        assert not np.isinf(array).any() and not (np.abs(array) > 1e30).any()


def test_without_special_values_inputs_are_finite() -> None:
    for seed in range(20):
        assert all(np.isfinite(a).all() for a in testing.draw_inputs(testing.Seeded(seed), product(), special=False).values())


# ---------------------------------------------------------------- refusals and shrinking


def test_refusals_are_set_aside_and_other_errors_are_not() -> None:
    ran: list[int] = []

    @testing.kernel_test
    @given(st.integers(0, 9))
    def refuses_some(n: int) -> None:
        if n % 2:
            raise Refusal("some-code", "odd")
        ran.append(n)

    refuses_some()
    assert ran

    for error in (ComputationError("axis", "no"), ZeroDivisionError(), Refusal("simulated-wrong", "it is wrong")):

        @testing.kernel_test
        @given(st.integers(0, 9))
        def fails(n: int) -> None:
            raise error  # noqa: B023

        with pytest.raises(type(error)):
            fails()


def test_a_test_in_which_everything_is_refused_fails() -> None:
    @testing.kernel_test
    @given(st.integers())
    @settings(suppress_health_check=list(HealthCheck))
    def refuses(n: int) -> None:
        raise Refusal("some-code", "always")

    with pytest.raises(Unsatisfiable):
        refuses()


def test_refusals_are_set_aside_inside_a_test() -> None:
    @given(st.integers(1, 4))
    def cut(size: int) -> None:
        with testing.refusals_set_aside():
            tl.schedule(product()).vectorize(n=size)
        assert size != 3

    cut()


def test_shrinking_ends_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    clock: Iterator[int] = iter(range(100000))
    monkeypatch.setattr(strategies.time, "monotonic", lambda: next(clock))  # type: ignore[attr-defined]
    ran: list[int] = []

    @testing.kernel_test(shrink_seconds=20)  # type: ignore[untyped-decorator]
    @given(st.lists(st.integers(0, 1000), min_size=12, max_size=20))
    @settings(database=None)
    def fails(numbers: list[int]) -> None:
        ran.append(sum(numbers))
        assert sum(numbers) < 600

    with pytest.raises(AssertionError):
        fails()
    late = [n for n in ran if n >= 600]
    assert 2 <= len(late) < 60 and min(late) == late[-1]
    with pytest.raises(TypeError):
        testing.kernel_test(7)


# ---------------------------------------------------------------- instructions


def multiply_add(name: str, text: str = "{C} += {A} * {B};", lanes: int = 8) -> Instruction:
    n = tl.axes(n=lanes)
    operands = (tl.operand("A", tl.float32, tl.register), tl.operand("B", tl.float32, tl.register, n),
                tl.operand("C", tl.float32, tl.register, n))  # fmt: skip
    A, B, C = operands
    return tl.instruction(name, means=tl.updates(C[n], A[()] * B[n]), operands=operands, level=tl.thread, template={"cpu": text})


def simulated(kernel: tl.Kernel, arrays: dict[str, Any]) -> Any:
    return tl.simulate(kernel, **arrays).outputs


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("opencl_mad4", tl.target("opencl", profile="opencl_gpu")),
        ("dp4a", tl.target("cuda", profile="ampere")),
        ("mma_m16n8k16", tl.target("cuda", profile="ampere")),
        ("cp_async_16", tl.target("cuda", profile="ampere")),
        ("load_global_16_of_4_bytes", tl.target("cuda", profile="ampere")),
        ("wmma_16x16x16", tl.target("hip", profile="rdna3")),
        ("x86_vpdpbusd", tl.target("cpu", profile=dataclasses.replace(tl.load_profile("zen4"), capabilities=("avx512_vnni",)))),
    ],
    ids=str,
)
def test_schedules_of_shipped_instructions_are_accepted_and_right(name: str, target: tl.Target) -> None:
    of = Schedules(use(name), target)
    for plan in (of.simplest(), of.draw(testing.Seeded(1))):
        assert f"do {name}" in plan.text
        kernel = tl.compile(plan, target)
        assert plan.computation.check(functools.partial(simulated, kernel)).ok


def test_an_instruction_of_ones_own_is_right() -> None:
    @testing.kernel_test
    @given(testing.instructions(multiply_add("own_right")), st.data())
    @settings(max_examples=5)
    def holds(schedule: tl.Schedule, data: st.DataObject) -> None:
        assert not testing.check_kernel(schedule, data.draw(testing.inputs(schedule, special=False)))

    holds()


def test_a_wrong_text_of_an_instruction_is_found_and_shrunk() -> None:
    failed: list[tl.Schedule] = []

    @testing.kernel_test
    @given(testing.instructions(multiply_add("own_wrong", "{C} = {A} * {B};")))
    @settings(max_examples=20, database=None)
    def holds(schedule: tl.Schedule) -> None:
        if faults := testing.check_kernel(schedule):
            failed.append(schedule)
        assert not faults, faults

    with pytest.raises(AssertionError, match="given data: 8 of 8 elements wrong"):
        holds()
    assert [a.extent for a in failed[-1].computation.axes] == [8, 2]  # one point of the reduction does not show it


def test_an_instruction_that_no_schedule_here_can_use_is_refused_at_once() -> None:
    with pytest.raises(Refusal, match="mma_m16n8k16") as caught:
        testing.instructions("mma_m16n8k16", CPU)
    assert caught.value.code == "instruction-without-schedule" and "instruction-not-here" in caught.value.message


# ---------------------------------------------------------------- planted faults


def test_a_planted_fault_of_the_compiler_is_found_and_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    leave_out_barriers(monkeypatch, kernel_checks, "as_threads")
    failed: list[tl.Schedule] = []
    target = tl.target("opencl", profile="simulated")

    @testing.kernel_test
    @given(testing.schedules(product(m=2, n=3, k=4), target))
    @settings(max_examples=60, database=None, derandomize=True)
    def holds(schedule: tl.Schedule) -> None:
        if faults := testing.check_kernel(schedule, target=target):
            failed.append(schedule)
        assert not faults, faults

    with pytest.raises(AssertionError, match="data-race"):
        holds()
    assert len(failed[-1].steps) <= 2  # as `tile k=2 -> thread`: threads that share a reduction


def test_a_kernel_that_nothing_can_run_here_is_not_called_right() -> None:
    large = product(m=500, n=500, k=500)
    with pytest.raises(ComputationError, match="too-much-to-simulate"):
        testing.check_kernel(tl.schedule(large), target=tl.target("opencl", profile="simulated"))


def test_what_does_not_fit_is_told() -> None:
    made = product()
    for arrays in (
        {},
        {"A": np.ones((20, 10), np.float32)},
        {**testing.arrays(made), "Z": 1},
        {**testing.arrays(made), "A": np.ones(3)},
    ):
        with pytest.raises(ComputationError):
            testing.check_kernel(made, arrays)
    for sizes, code in (({"q": 3}, "unknown-axis"), ({"m": -1}, "bad-size"), ({"m": 2.5}, "bad-size"), ({"m": True}, "bad-size")):
        with pytest.raises(ComputationError) as caught:
            testing.resized(made, sizes)  # type: ignore[arg-type]
        assert caught.value.code == code
    assert testing.resized(made.outputs[0], {"m": 3}).axes[0].extent == 3


def test_a_schedule_with_holes_is_filled_at_each_size() -> None:
    plan = tl.schedule(product()).tile(m=tl.hole).to(tl.block)
    assert {testing.draw_sizes(testing.Seeded(seed), plan, CPU)["m"] for seed in range(20)} > {2, 3}
    assert not testing.check_kernel(testing.resized(plan, {"m": 5, "n": 3, "k": 2}))


def test_a_write_beyond_an_output_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = tl.compile(tl.schedule(product()))
    call = type(kernel).__call__

    def beyond(self: tl.Kernel, **named: Any) -> Any:
        result = call(self, **named)
        np.lib.stride_tricks.as_strided(result, (math.prod(result.shape) + 1,), (4,))[-1] = 0
        return result

    monkeypatch.setattr(type(kernel), "__call__", beyond)
    assert "cpu: wrote outside C" in testing.check_kernel(kernel)
