"""Tasks: what is computed together, what is inlined, what becomes a kernel of its own."""

import itertools

import numpy as np
import pytest

import tilelang as tl
from tests.errors._computations import linear, matmul, softmax
from tilelang.computations.computation import as_computation
from tilelang.core.dtype import float16
from tilelang.core.expr import Cast, Pad, Read
from tilelang.schedules.check import main_task
from tilelang.schedules.task import joins, placed_names, plan, reads


def names(tensor: tl.Tensor, placed: tuple[str, ...] = (), materialised: tuple[str, ...] = ()) -> list[str]:
    return [t.name for t in plan(as_computation(tensor), placed, materialised)]


def test_a_reduction_is_one_task_with_a_state() -> None:
    (task,) = plan(as_computation(matmul()), ())
    assert [a.name for a in task.axes] == ["m", "n"]
    assert [a.name for a in task.reduction_axes] == ["k"]
    assert task.state_member(task.outputs[0]) == (0, 0)
    assert task.values[0] is Read(task.outputs[0], task.axes)


def test_an_epilogue_joins_its_reduction() -> None:
    (task,) = plan(as_computation(linear()), ())
    assert [s.tensors[0].name for s in task.states] == ["C_sum"]
    assert {r.tensor.name for r in reads(task.values[0]) if isinstance(r, Read)} == {"C_sum", "bias"}


def test_softmax_without_a_schedule_is_three_kernels() -> None:
    assert names(softmax()) == ["peak", "total", "Y"]


def test_placed_stages_stay_in_the_main_kernel() -> None:
    assert names(softmax(), ("peak", "total")) == ["Y"]
    assert names(softmax(), ("peak", "shifted", "total")) == ["Y"]
    assert names(softmax(), ("total",)) == ["peak", "Y"]


def test_materialised_stages_are_kernels() -> None:
    assert names(softmax(), (), ("shifted",)) == ["peak", "shifted", "total", "Y"]


def test_several_outputs_over_the_same_axes_are_one_task() -> None:
    i, j = tl.axes(i=4, j=8)
    X = tl.input("X", tl.float32, i, j)
    double, square = tl.define("double", X[i, j] * 2.0, i, j), tl.define("square", X[i, j] * X[i, j], j, i)
    total = tl.define("total", tl.sum(X[i, j], over=j), i)
    tasks = plan(tl.computation("three", outputs=(double, square, total)), ())
    assert [[t.name for t in task.outputs] for task in tasks] == [["total"], ["double", "square"]]


def test_reductions_of_one_domain_share_a_task() -> None:
    i, j = tl.axes(i=4, j=8)
    X = tl.input("X", tl.float32, i, j)
    spread = tl.define("spread", tl.max(X[i, j], over=j) - tl.min(X[i, j], over=j), i)
    (task,) = plan(as_computation(spread), ())
    assert len(task.states) == 2


def test_reductions_of_other_domains_become_kernels() -> None:
    i, j, k = tl.axes(i=4, j=8, k=8)
    X = tl.input("X", tl.float32, i, j)
    both = tl.define("both", tl.sum(X[i, j], over=j) + tl.max(X[i, k], over=k), i)
    tasks = plan(as_computation(both), ())
    assert len(tasks) == 2
    assert tasks[-1].name == "both"


def test_a_reduction_read_at_other_places_becomes_a_kernel() -> None:
    i, j = tl.axes(i=8, j=8)
    X = tl.input("X", tl.float32, i, j)
    total = tl.define("total", tl.sum(X[i, j], over=j), i)
    assert names(tl.define("reversed", total[7 - i], i)) == ["total", "reversed"]
    assert names(tl.define("same", total[i] + 1.0, i)) == ["same"]


@pytest.mark.parametrize("turned", [False, True])
def test_an_output_that_another_one_needs_whole_becomes_a_kernel(turned: bool) -> None:
    """Also where it is the first one, whose axes the others share."""
    i, j = tl.axes(i=8, j=8)
    X = tl.input("X", tl.float32, i, j)
    peak = tl.define("peak", tl.max(X[i, j], over=j), i)
    total = tl.define("total", tl.sum(tl.exp(X[i, j] - peak[i]), over=j), i)
    outputs = (total, peak) if turned else (peak, total)
    assert [t.name for t in plan(tl.computation("two", outputs), ())] == ["peak", "total"]


def test_a_reduction_over_other_axes_than_another_output_s_becomes_a_kernel() -> None:
    i, j, k = tl.axes(i=8, j=8, k=6)
    X, W = tl.input("X", tl.float32, i, j), tl.input("W", tl.float32, i, k)
    more = tl.define("more", tl.sum(W[i, k], over=k) + 1.0, i)
    total = tl.define("total", tl.sum(X[i, j], over=j), i)
    assert [t.name for t in plan(tl.computation("two", (more, total)), ())] == ["total", "more"]


@pytest.mark.parametrize("materialised", [(), ("peak",), ("total",), ("peak", "total")])
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_outputs_that_others_need_whole_are_planned_in_any_order(order: tuple[int, ...], materialised: tuple[str, ...]) -> None:
    """Also where an output over more axes, or a step, needs all those that the schedule refines before."""
    i, j = tl.axes(i=8, j=8)
    X = tl.input("X", tl.float32, i, j)
    peak = tl.define("peak", tl.max(X[i, j], over=j), i)
    total = tl.define("total", tl.sum(tl.exp(X[i, j] - peak[i]), over=j), i)
    share = tl.define("share", tl.exp(X[i, j] - peak[i]) / total[i], i, j)
    outputs = [(peak, total, share)[k] for k in order]
    tasks = plan(tl.computation("three", outputs), (), materialised)
    assert outputs[0] in tasks[-1].outputs
    made = [t.name for task in tasks for t in task.outputs]
    assert made.index("peak") < made.index("total") < made.index("share")


def test_a_main_output_that_is_made_before_is_made_once() -> None:
    i, j = tl.axes(i=8, j=8)
    X = tl.input("X", tl.float32, i, j)
    total = tl.define("total", tl.sum(X[i, j], over=j), i)
    more = tl.define("more", total[i] + 1.0, i)
    tasks = plan(tl.computation("two", (total, more)), (), ("total",))
    assert [[t.name for t in task.outputs] for task in tasks] == [["total"], ["more"]]


def test_inlined_definitions_keep_their_rounding() -> None:
    i = tl.axes(i=8)
    X = tl.input("X", tl.float16, i)
    half = tl.define("half", X[i] * 0.3, i)
    (task,) = plan(as_computation(tl.define("Y", half[i] + 1.0, i)), ())
    assert sum(isinstance(e, Cast) and e.dtype == float16 for e in task.values[0].walk()) == 2  # `half`, and Y itself


def test_reads_count_a_padded_read_once() -> None:
    i = tl.axes(i=8)
    X = tl.input("X", tl.float32, i)
    found = reads(tl.pad(X[i - 1], 0) + X[i])
    assert sorted(type(f).__name__ for f in found) == ["Pad", "Read"]
    assert [f.read for f in found if isinstance(f, Pad)] == [X[i - 1]]


def test_reads_see_indices() -> None:
    b, e = tl.axes(b=4, e=8)
    ids = tl.input("ids", tl.int32, b, range=(0, 10))
    table = tl.input("table", tl.float32, v=10, e=8)
    assert {f.tensor.name for f in reads(table[ids[b], e]) if isinstance(f, Read)} == {"ids", "table"}


def test_joins() -> None:
    i, j = tl.axes(i=4, j=4)
    assert joins((i, j), (i, j))
    assert joins((j, i), (i, j))
    assert not joins((i, i), (i, j))
    assert not joins((i,), (i, j))
    assert not joins((i + 0 * j + 1, j), (i, j))


def test_placed_names_look_into_braces() -> None:
    computation = as_computation(softmax())
    inner = tl.move().compute("shifted", tl.register)
    steps = tl.move().compute("total", tl.shared, steps=inner).load("X", tl.shared).steps
    assert placed_names(computation, steps) == {"total", "shifted"}
    assert placed_names(computation, ()) == set()


def test_the_main_task_is_the_first_output_s() -> None:
    i = tl.axes(i=8)
    X = tl.input("X", tl.float32, i)
    first = tl.define("first", tl.sum(X[i], over=i))
    second = tl.define("second", X[i] + 1.0, i)
    assert main_task(tl.computation("two", outputs=(first, second)), ()).name == "first"
    assert main_task(tl.computation("two", outputs=(second, first)), ()).name == "second"


@pytest.mark.parametrize("reader", ["pad(F[j], 0.0)", "where(j < 1, F[j], 0.0)", "where(j < 1, S[j], 0.0)"])
def test_a_reduction_read_beyond_its_tensor_is_no_state_of_its_reader(reader: str) -> None:
    """The condition keeps the read inside; nothing would keep the state's own reads there."""
    text = f"""
    computation f {{
      input T: int32[t: 1] in 0 .. 1
      input A: float32[n: 3]
      axis j: 6
      axis q: 1
      S[q] = sum[n] A[n] * A[T[q]]
      F[q] = 1.0 + S[q]
      output Y[j] = {reader}
    }}"""
    kernel = tl.compile(tl.schedule(tl.parse(text).computation()), tl.target("cuda", profile="ampere"))
    report = tl.simulate(kernel, T=np.zeros(1, np.int32), A=np.ones(3, np.float32))
    assert not report.findings
    assert report.outputs["Y"].tolist() == [3.0 if "S" in reader else 4.0, 0, 0, 0, 0, 0]


def test_a_reduction_that_a_stage_needs_whole_is_read_by_the_last_kernel_too() -> None:
    """It was reduced a second time there, element by element."""
    m, k = tl.axes(m=4, k=4)
    least = tl.define("least", tl.min(tl.input("B", tl.float32, k, m)[k, m], over=k), m)
    more = tl.define("more", least[k] + 1.0, m, k)
    Y = tl.define("Y", least[m] + more[m, m], m)
    (alone,) = plan(as_computation(Y), ())
    assert alone.states
    first, last = plan(as_computation(Y), {"more"})
    assert first.name == "least" and not last.states and {r.tensor.name for r in last.reads()} == {"least", "more"}
