"""Specs: cuts keep the bounds of every cut above them, axes are relabelled without loss, and what is left unsaid is written out."""

import itertools

import pytest

import tilelang as tl
from tests.errors._computations import copy, linear, matmul, row_sum, softmax
from tilelang.computations.computation import as_computation
from tilelang.core.expr import INDEX, Var, index
from tilelang.core.layout import evaluate
from tilelang.schedules.check import main_task
from tilelang.schedules.spec import Bound, Spec, complete, point, root_spec
from tilelang.schedules.steps import Place, Split, Step, Tile, Vectorize


def root(tensor: tl.Tensor) -> Spec:
    return root_spec(main_task(as_computation(tensor), ()))


def completed(schedule: tl.Schedule) -> list[str]:
    task = main_task(schedule.computation, schedule.steps)
    return [str(s) for s in complete(root_spec(task), schedule.steps, bool(task.states))]


def test_root() -> None:
    spec = root(matmul(8, 9, 10))
    assert [(a.name, a.extent, a.reduction) for a in spec.axes] == [("m", 8, False), ("n", 9, False), ("k", 10, True)]
    assert str(spec) == "C  m:8 n:9 | k:10  on kernel"
    with pytest.raises(KeyError):
        spec.axis("q")


@pytest.mark.parametrize(("extent", "outer", "inner"), [(10, 4, 3), (7, 7, 2), (5, 8, 3), (12, 4, 2), (1, 1, 1)])
def test_two_cuts_reach_every_point_once(extent: int, outer: int, inner: int) -> None:
    """Every cut keeps its own bound: a point beyond its piece does not exist, even where it is within the axis."""
    counts = -(-extent // outer), -(-outer // inner)
    i, j = Var("i", INDEX, 0, counts[0] - 1), Var("j", INDEX, 0, counts[1] - 1)
    axis = root(copy(extent, 1)).cut({"i": outer}, {"i": i}).cut({"i": inner}, {"i": j}).axis("i")
    reached = []
    for a, b, q in itertools.product(range(counts[0]), range(counts[1]), range(inner)):
        values = {i: a, j: b}
        if all(evaluate(bound.offset, values) + q < bound.limit for bound in axis.bounds):
            reached.append(evaluate(axis.base, values) + q)
    assert sorted(reached) == list(range(extent))


def test_cuts_that_divide_leave_no_bounds() -> None:
    i = Var("i", INDEX, 0, 3)
    assert root(copy(16, 1)).cut({"i": 4}, {"i": i}).axis("i").bounds == ()
    assert len(root(copy(15, 1)).cut({"i": 4}, {"i": i}).axis("i").bounds) == 1


def test_a_trimmed_loop_keeps_its_bound() -> None:
    i = Var("i", INDEX, 0, 4)
    spec = root(copy(5, 1))
    assert spec.cut({"i": 1}, {"i": i}).axis("i").bounds == ()
    wide = Var("i", INDEX, 0, 9)
    assert len(spec.cut({"i": 1}, {"i": wide}).axis("i").bounds) == 1
    (kept,) = spec.cut({"i": 1}, {"i": wide}, ["i<5@0"]).axis("i").bounds
    assert kept.known and kept.limit == 5  # nothing is left to test, and stages in the loop may rely on it


def test_bounds() -> None:
    i = Var("i", INDEX, 0, 3)
    assert Bound("x", i * 4, 16).is_certain(4)
    assert not Bound("x", i * 4, 15).is_certain(4)
    assert Bound("x", i * 4, 0, lower=True).is_certain(4)
    assert not Bound("x", i - 1, 0, lower=True).is_certain(4)
    assert evaluate(Bound("x", i, 5).holds(index(2)), {i: 2})
    assert not evaluate(Bound("x", i, 5).holds(index(2)), {i: 3})


@pytest.mark.parametrize("extents", [(3, 4), (1, 5), (4, 1)])
def test_a_fused_axis_runs_over_all_its_parts(extents: tuple[int, int]) -> None:
    fused = root(copy(*extents)).fuse("f", ("i", "j"))
    assert fused.names == ("f",)
    assert fused.axis("f").extent == extents[0] * extents[1]
    named = dict(fused.coordinates)
    reached = [tuple(evaluate(named[a], {point("f"): n}) for a in "ij") for n in range(fused.axis("f").extent)]
    assert reached == list(itertools.product(range(extents[0]), range(extents[1])))


def test_a_fused_axis_of_nothing_is_empty() -> None:
    assert root(copy(0, 4)).fuse("f", ("i", "j")).axis("f").extent == 0


def test_an_unfused_axis_is_row_major() -> None:
    parts = root(copy(12, 1)).unfuse("i", (("a", 3), ("b", 4)))
    assert parts.names == ("a", "b", "j")
    value = dict(parts.coordinates)["i"]
    assert [evaluate(value, {point("a"): a, point("b"): b}) for a in range(3) for b in range(4)] == list(range(12))


def test_specs_follow_the_steps() -> None:
    schedule = (
        tl.schedule(matmul(100, 96, 50))
        .tile(m=32, n=32).to(tl.block).accumulate(tl.register).split(k=8).load("A", tl.shared).tile(m=4).to(tl.thread)
    )  # fmt: skip
    assert [s.level for s in schedule.specs] == ["kernel", "block", "block", "block", "block", "thread"]
    last = schedule.specs[-1]
    assert [(a.name, a.extent) for a in last.axes] == [("m", 4), ("n", 32), ("k", 8)]
    assert last.residences == ("C:register", "A:shared")
    assert [a.name for a in last.axes if a.bounds] == ["m", "k"]


def test_an_accumulator_is_implied_above_the_first_cut_of_a_reduction() -> None:
    plain = tl.schedule(matmul()).tile(m=16, n=16).to(tl.block)
    implied = "accumulate in register"
    assert completed(plain.split(k=8))[:3] == ["tile m=16 n=16 -> block", implied, "split k=8"]
    assert completed(plain)[1:4] == ["split m=1", "split n=1", implied]
    assert completed(plain.split(k=8).split(m=4).accumulate(tl.register)).count(implied) == 1
    assert completed(plain.accumulate(tl.shared).split(k=8)).count(implied) == 0


def test_walks_around_the_leaf_are_implied() -> None:
    start = tl.schedule(copy(8, 64)).tile(i=4).to(tl.block)
    assert completed(start) == ["tile i=4 -> block", "split i=1", "split j=1"]
    assert completed(start.vectorize(j=16)) == ["tile i=4 -> block", "split i=1", "split j=16", "vectorize j=16"]
    assert completed(tl.schedule(row_sum(1, 1))) == ["accumulate in register"]


def test_a_pointwise_schedule_has_no_accumulator() -> None:
    assert "accumulate in register" not in completed(tl.schedule(copy()))


def test_completion_keeps_what_was_written() -> None:
    schedule = tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).split(k=8).vectorize(n=4)
    task = main_task(schedule.computation, schedule.steps)
    done = complete(root_spec(task), schedule.steps, True)
    assert [s for s in done if not getattr(s, "implied", False)] == list(schedule.steps)
    assert isinstance(done[-1], Vectorize)


def test_a_move_walks_in_storage_order() -> None:
    spec = root(copy(8, 96))
    steps: tuple[Step, ...] = ()
    order = [("j", 48), ("i", 1), ("j", 1)]
    assert [str(s) for s in complete(spec, steps, False, order)] == ["split j=48", "split i=1", "split j=1"]


def test_the_main_task() -> None:
    computation = as_computation(softmax())
    assert main_task(computation, ()).name == "Y"
    assert [s.tensors[0].name for s in main_task(as_computation(linear()), ()).states] == ["C_sum"]


def test_steps_that_are_not_written() -> None:
    assert str(Place("accumulate", None, "register", implied=True)) == "accumulate in register"
    assert str(Split((("k", 8),), implied=True)) == "split k=8"
    assert str(Tile((("m", 4),), "thread")) == "tile m=4 -> thread"
