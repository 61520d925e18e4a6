"""Stages that store outputs: `compute ... in global` below the blocks."""

import numpy as np
import pytest

import tilelang as tl
from tests.lowering.stored_outputs import backward, normalized, sums
from tilelang.schedules.task import tasks_of
from tilelang.semantics import reference
from tilelang.testing.tracing import Reading, traced

SIZES = [(7, 11), (1, 40), (33, 1), (16, 64), (37, 130)]
TARGETS = [tl.target("cpu"), tl.target("cuda", profile="ampere")]


def rows_with_sums(computation: tl.Computation, rows: int, lanes: int = 4) -> tl.Schedule:
    """The rows of the tile are summed up in registers, and stored, before they are added to the sums of columns."""
    made = tl.schedule(computation).tile(i=rows).to(tl.block).accumulate(tl.shared).split(i=1)
    return made.compute("rows", tl.global_, steps=tl.move().vectorize(j=lanes)).vectorize(j=lanes)


def rows_normalized(computation: tl.Computation, rows: int, lanes: int = 4) -> tl.Schedule:
    made = tl.schedule(computation).tile(i=rows).to(tl.block).split(i=1)
    for name in ("mean", "rstd"):
        made = made.compute(name, tl.global_, steps=tl.move().vectorize(j=lanes))
    return made.vectorize(j=lanes)


def rows_backward(computation: tl.Computation, rows: int, lanes: int = 4) -> tl.Schedule:
    wide = tl.move().vectorize(j=lanes)
    made = tl.schedule(computation).tile(i=rows).to(tl.block).accumulate(tl.shared).split(i=1)
    return made.compute("mean", tl.register, steps=wide).compute("dX", tl.global_, steps=wide).vectorize(j=lanes)


MADE = {"sums": (sums, rows_with_sums), "normalized": (normalized, rows_normalized), "backward": (backward, rows_backward)}


def checked(schedule: tl.Schedule, target: tl.Target) -> None:
    """Simulated, compared with the reference, and with the second reading of the steps."""
    kernel = tl.compile(schedule, target)
    arrays = reference.random_arrays(kernel.computation)
    report = tl.simulate(kernel, **arrays)
    assert not report.findings, str(report)
    assert reference.compare(kernel.computation, arrays, report.outputs)
    reading = Reading(schedule, target.profile, arrays)
    assert reading.faults(traced(kernel.program, arrays)) == []


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", MADE)
def test_each_element_is_stored_once(name: str, size: tuple[int, int], target: tl.Target) -> None:
    make, scheduled = MADE[name]
    for rows in (1, 3, 64):
        checked(scheduled(make(*size), rows), target)


@pytest.mark.parametrize("name", MADE)
def test_compiled_values(name: str) -> None:
    make, scheduled = MADE[name]
    for size in SIZES:
        assert tl.compile(scheduled(make(*size), 4, 8), "cpu").check()


def test_no_kernel_is_left_for_what_a_stage_stores() -> None:
    for make, scheduled in MADE.values():
        made = scheduled(make(16, 32), 4)
        assert len(tasks_of(made.computation, made.steps)) == 1
        assert "a kernel of its own" not in made.explain()


def test_every_prefix_runs() -> None:
    """Not those of `normalized`: while rstd is a kernel of its own, it needs the sum of the mean, so that the mean is no reduction."""
    for name in ("sums", "backward"):
        make, scheduled = MADE[name]
        made = scheduled(make(9, 16), 4)
        for n in range(len(made.steps) + 1):
            assert tl.compile(made.prefix(n), "cpu").check(), n


def test_text_reads_back() -> None:
    for make, scheduled in MADE.values():
        made = scheduled(make(9, 16), 4)
        assert tl.parse(made.computation.text + made.text).schedule().steps == made.steps


def test_a_stage_of_a_kernel_of_its_own_stores_too() -> None:
    i, j, k = tl.axes(i=9, j=20, k=5)
    X, W = tl.input("X", tl.float32, i, j), tl.input("W", tl.float32, j, k)
    mean = tl.define("mean", tl.sum(X[i, j], over=j) / 20.0, i)
    norm = tl.define("norm", X[i, j] - mean[i], i, j)
    whole = tl.computation("c", (tl.define("Y", tl.sum(norm[i, j] * W[j, k], over=j), i, k), mean))
    own = tl.move().tile(i=2).to(tl.block).compute("mean", tl.global_)
    made = tl.schedule(whole).compute("norm", tl.global_, steps=own).tile(i=4).to(tl.block)
    assert [t.name for t in tasks_of(whole, made.steps)] == ["norm", "Y"]
    for target in TARGETS:
        checked(made, target)


def test_later_kernels_read_what_was_stored() -> None:
    """The sums of blocks meet in a second kernel, which reads the mean from memory."""
    i, j = tl.axes(i=12, j=10)
    X = tl.input("X", tl.float32, i, j)
    mean = tl.define("mean", tl.sum(X[i, j], over=j) / 10.0, i)
    spread = tl.define("spread", tl.sum((X[i, j] - mean[i]) * (X[i, j] - mean[i]), over=i), j)
    made = tl.schedule(tl.computation("c", (spread, mean))).tile(i=5).to(tl.block).accumulate(tl.register).split(i=1)
    made = made.compute("mean", tl.global_)
    assert len(tl.compile(made, "cpu").program.kernels) == 2
    for target in TARGETS:
        checked(made, target)


def refused(schedule: tl.Schedule) -> str:
    with pytest.raises(tl.Refusal) as found:
        schedule.check("sapphire_rapids")
    return found.value.code


def test_what_would_be_stored_again_is_refused() -> None:
    whole = normalized(8, 16)
    blocks = tl.schedule(whole).tile(i=2, j=8).to(tl.block)
    assert refused(blocks.compute("mean", tl.global_)) == "stored-again"
    assert refused(tl.schedule(whole).tile(i=2).to(tl.block).split(j=8).compute("mean", tl.global_)) == "stored-again"
    i, d = tl.axes(i=16, d=3)
    T = tl.define("T", tl.input("X", tl.float32, i)[i] * 2, i)
    halo = tl.define("Y", tl.sum(tl.pad(T[i + d], 0.0), over=d), i)
    other = tl.schedule(tl.computation("c", (halo, T))).tile(i=4).to(tl.block)
    assert refused(other.compute("T", tl.global_)) == "stored-again"


def test_what_is_no_output_is_not_stored() -> None:
    made = tl.schedule(backward(8, 16)).tile(i=2).to(tl.block).accumulate(tl.shared).split(i=1).compute("mean", tl.global_)
    assert refused(made) == "stage-memory"


def test_empty_axes_and_threads_are_refused() -> None:
    assert refused(rows_with_sums(sums(4, 0), 2)) == "not-lowered-yet"
    threads = tl.schedule(normalized(8, 16)).tile(i=4).to(tl.block).tile(i=1).to(tl.thread)
    assert refused(threads.compute("mean", tl.global_)) == "not-lowered-yet"


@pytest.mark.parametrize("blocks", [True, False])
def test_rows_are_stored_where_a_condition_leaves_no_terms(blocks: bool) -> None:
    """Iterations without terms are skipped, but not those that store a row; a padding of -infinity changes no maximum, either."""
    i, j = tl.axes(i=70, j=8)
    X = tl.input("X", tl.float32, i, j)
    rows = tl.define("rows", tl.sum(X[i, j], over=j), i)
    below = tl.define("below", tl.sum(X[i, j], over=i, where=i >= 60 + j), j)
    shifted = tl.define("shifted", tl.max(tl.pad(X[i - 50, j], float("-inf")), over=i), j)
    for main in (below, shifted):
        made = tl.schedule(tl.computation("c", (main, rows))).tile(**({"i": 20} if blocks else {"j": 8})).to(tl.block)
        ways = [
            made.accumulate(tl.register).split(i=1).compute("rows", tl.global_),
            made.split(i=3).compute("rows", tl.global_).accumulate(tl.register),
            made.split(i=3).accumulate(tl.register).compute("rows", tl.global_),
            made.accumulate(tl.shared).split(i=7).compute("rows", tl.global_).accumulate(tl.register),
        ]
        for schedule in ways:
            for target in TARGETS:
                checked(schedule, target)


def drawn(seed: int) -> tuple[tl.Schedule, tl.Target]:
    """A random computation with outputs over rows, columns and points, and a schedule that stores some of them in stages."""
    random = np.random.default_rng(seed)
    m, n = (int(random.integers(1, 20)) for _ in range(2))
    i, j = tl.axes(i=m, j=n)
    X, V = tl.input("X", tl.float32, i, j), tl.input("V", tl.float32, i)
    peak = tl.define("peak", tl.max(X[i, j], over=j), i)
    total = tl.define("total", tl.sum(X[i, j] - peak[i], over=j), i)
    points = tl.define("points", (X[i, j] - peak[i]) * total[i] + V[i], i, j)
    columns = tl.define("columns", tl.sum(X[i, j] * V[i], over=i), j)
    main = columns if random.random() < 0.5 else points
    others = [t for t in (peak, total, *([points] if main is columns else [])) if random.random() < 0.7]
    made = tl.schedule(tl.computation("drawn", (main, *others))).tile(i=int(random.integers(1, m + 2))).to(tl.block)
    if main is columns:
        made = made.accumulate(tl.shared)
    if random.random() < 0.7:
        made = made.split(i=int(random.integers(1, 4)))
    stored, target = {t.name for t in others}, TARGETS[int(random.integers(0, 2))]
    read = main is points or points in others or total in others
    for t in (peak, total, points):
        needed = t is peak and read or t is total and (main is points or points in others)
        if t in others or needed:
            steps = tl.move().vectorize(j=int(random.choice((2, 4, 8)))) if random.random() < 0.6 else None
            made = made.compute(t, tl.global_ if t.name in stored else tl.shared, steps=steps)
    if random.random() < 0.5:
        made = made.vectorize(j=int(random.choice((2, 4))))
    return made, target


@pytest.mark.parametrize("seed", range(40))
def test_random_schedules_store_what_they_say(seed: int) -> None:
    checked(*drawn(seed))


@pytest.mark.parametrize("memory", [tl.register, tl.shared])
@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_what_a_stage_stores_is_loaded_for_its_readers(memory: tl.Memory, target: tl.Target) -> None:
    i, j = tl.axes(i=7, j=11)
    X = tl.input("X", tl.float32, i, j)
    total = tl.define("total", tl.sum(X[i, j], over=j), i)
    rest, twice = tl.define("Y", X[i, j] - total[i], i, j), tl.define("W", X[i, j] * 2, i, j)
    stored = tl.schedule(tl.computation("c", (rest, total))).tile(i=3).to(tl.block).compute("total", tl.global_)
    checked(stored.load("total", memory), target)
    unread = tl.schedule(tl.computation("c", (twice, total))).tile(i=3).to(tl.block).compute("total", tl.global_)
    with pytest.raises(tl.Refusal) as refused:
        tl.compile(unread.load("total", memory), target)
    assert refused.value.code == "load-unread"


def two_sums(b: int, s: int, t: int) -> tl.Computation:
    """Sums over rows, of different axes, and what is stored of each row."""
    n, i, j, k = tl.axes(n=b, i=s, j=t, k=5)
    X, G = tl.input("X", tl.float32, n, i, j), tl.input("G", tl.float32, n, i, k)
    rows = tl.define("rows", tl.sum(X[n, i, j], over=j), n, i)
    wide = tl.define("wide", tl.sum((X[n, i, j] - rows[n, i]) * G[n, i, k], over=i), n, j, k)
    columns = tl.define("columns", tl.sum(X[n, i, j] * rows[n, i], over=i), n, j)
    return tl.computation("sums", (wide, columns, rows))


def in_one_loop(computation: tl.Computation, rows: int, lanes: int = 4) -> tl.Schedule:
    vectors = tl.move().vectorize(j=lanes)
    made = tl.schedule(computation).tile(n=1).to(tl.block).split(i=rows, of=("wide", "columns"))
    made = made.compute("rows", tl.global_, steps=vectors).compute("columns", tl.global_, steps=vectors)
    return made.split(j=4, k=5).accumulate(tl.register)


@pytest.mark.parametrize("size", [(1, 7, 11), (2, 16, 5), (3, 1, 8), (2, 9, 1), (2, 0, 8), (0, 9, 8), (2, 9, 0)])
def test_reductions_of_a_shared_loop_are_kept_in_outputs(size: tuple[int, int, int]) -> None:
    for rows in (1, 4, 16):
        made = in_one_loop(two_sums(*size), rows)
        if 0 in size:
            with pytest.raises(tl.Refusal):
                made.check("sapphire_rapids")
            continue
        assert len(tasks_of(made.computation, made.steps)) == 1
        for target in TARGETS:
            checked(made, target)
        assert tl.compile(made, "cpu").check()


def test_a_running_value_in_memory_is_not_shared_or_repaired() -> None:
    shared = tl.schedule(two_sums(2, 16, 8)).tile(n=1, i=4).to(tl.block).split(i=2, of=("wide", "columns"))
    assert refused(shared.compute("rows", tl.global_).compute("columns", tl.global_)) == "stored-again"
    i, j = tl.axes(i=8, j=16)
    X = tl.input("X", tl.float32, i, j)
    peak = tl.define("peak", tl.max(X[i, j], over=j), i)
    total = tl.define("total", tl.sum(tl.exp(X[i, j] - peak[i]), over=j), i)
    loop = tl.schedule(tl.computation("c", (total, peak))).tile(i=2).to(tl.block).accumulate(tl.register)
    assert refused(loop.split(j=4, of=("peak", "total")).compute("peak", tl.global_)) == "not-lowered-yet"
