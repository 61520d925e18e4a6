"""The naive reading of schedules agrees with what is simulated, knows nothing of the lowering, and finds planted faults."""

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tilelang as tl
from tilelang import testing
from tilelang.errors import Refusal
from tilelang.expr import Const, Expr, Var, index, rewrite, substitute
from tilelang.lowering import ir, simulate
from tilelang.schedule import Schedule
from tilelang.testing import naive, reach, tracing
from tilelang.testing.checking import stored
from tilelang.testing.naive import Owners
from tilelang.testing.reach import NotRead
from tilelang.testing.tracing import check_owners, read_owners

PROFILE = testing.tiny_profile()
Known = tuple[Schedule, ir.Program, Owners]


def known(seeds: range) -> Iterator[Known]:
    """Random schedules that are accepted and read."""
    for seed in seeds:
        try:
            made = testing.draw_case(testing.Seeded(seed)).schedule
            program = testing.lowered(made)
            yield made, program, read_owners(made, PROFILE)
        except (Refusal, NotRead):
            continue


def test_the_reading_knows_steps_and_computations_only() -> None:
    found = set()
    for module in (naive, reach):
        tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
        found |= {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
        found |= {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    ours = {"tilelang.computation", "tilelang.expr", "tilelang.steps", "tilelang.testing.reach"}
    assert found == ours | {"__future__", "collections.abc", "copy", "dataclasses", "math", "numpy", "typing"}


def test_random_schedules_are_written_by_their_owners() -> None:
    count = 0
    for made, program, read in known(range(720 - 120, 720)):
        assert not check_owners(program, made, read), made
        count += 1
    assert count > 40


def product() -> Schedule:
    m, n, k = tl.axes(m=10, n=12, k=6)
    A, B = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n)
    made = tl.schedule(tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n))
    turned = tl.layout("n", "m")
    return made.tile(m=4, n=8).to(tl.block).split(k=4).load("A", tl.shared).tile(m=2, n=2).to(tl.thread, order=turned)


def test_owners_are_those_that_the_steps_say() -> None:
    read = read_owners(product(), PROFILE)
    at = (read.element == 5 * 12 + 11).nonzero()[0]  # C[5, 11]: block (1, 1) of 3 x 2; rows 0 to 1, columns 2 to 3 of its tile
    assert set(read.block[at]) == {3} and set(read.first[at]) == {1 * 2 + 0} and read.width == 1
    assert not check_owners(testing.lowered(product()), product(), read)


def test_what_is_not_read_is_said() -> None:
    i = tl.axes(i=8)
    made = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)).when(tl.can("async_copy"), tl.move())
    with pytest.raises(NotRead, match="when can"):
        read_owners(made, PROFILE)
    before = tracing.tally.total()
    assert tracing.reading(made, PROFILE, {}) is None and tracing.tally.total() == before + 1


def traced(program: ir.Program, made: Schedule) -> list[str]:
    """What the naive reading of a schedule says of a program."""
    return tracing.Reading(made, PROFILE, testing.arrays(made.computation)).faults(trace_of(program, made))


def trace_of(program: ir.Program, made: Schedule) -> tracing.Trace:
    given, trace = testing.arrays(made.computation), tracing.Trace()
    simulate.run(program, {b.name: stored(given[b.name], b) for b in program.buffers if b.role == "input"}, watch=trace)
    return trace


def test_results_that_stop_in_shared_memory_are_stored_by_whom_the_move_says() -> None:
    i, j = tl.axes(i=8, j=8)
    out = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i, j)[i, j] * 2, i, j)).tile(i=4).to(tl.block)
    made = out.via(tl.shared, steps=tl.move().tile(i=1, j=4).to(tl.thread)).tile(i=1, j=1).to(tl.thread)
    read = read_owners(made, PROFILE)
    at = (read.element == 5 * 8 + 7).nonzero()[0]  # row 1 of block 1, columns 4 to 7: the move's thread 3
    assert list(read.first[at]) == [3] and list(read.unit[at]) == [15]
    assert not traced(testing.lowered(made), made)


def test_kernels_before_and_parts_of_a_reduction_are_read() -> None:
    i, j, k = tl.axes(i=4, j=8, k=4)
    X, W = tl.input("X", tl.float32, i, j), tl.input("W", tl.float32, i, k)
    P = tl.define("P", tl.sum(X[i, j], over=j), i)
    before = tl.move().tile(i=1).to(tl.block).tile(j=4).to(tl.thread)
    made = tl.schedule(tl.define("Y", P[i] * W[i, k], i, k)).compute("P", tl.global_, steps=before).tile(i=2).to(tl.block)
    assert len(tracing.Reading(made, PROFILE, {}).known) == 2 and not traced(testing.lowered(made), made)
    parts = tl.schedule(P).tile(j=2).to(tl.block)
    assert read_owners(parts, PROFILE).over_blocks and not traced(testing.lowered(parts), parts)


def test_a_block_that_reads_for_another_is_found() -> None:
    """Every block gives the right results where all rows are alike, whichever it reads."""
    i, j = tl.axes(i=4, j=8)
    made = tl.schedule(tl.define("Y", tl.sum(tl.input("X", tl.float32, i, j)[i, j], over=j), i)).tile(i=1).to(tl.block)
    program = testing.lowered(made)
    assert not traced(program, made)
    kernel = program.kernels[0]
    block = next(e for e in kernel.body.walk() if isinstance(e, Var) and e.name == "block_x")

    def other(e: Expr) -> Expr:
        return substitute(e, {block: index(3) - block}) if isinstance(e, ir.Load) and e.buffer.name == "X" else e

    wrong = program.replace(kernels=(kernel.replace(body=rewrite(kernel.body, other)),))
    assert any("does not read X" in f for f in traced(wrong, made))


def test_what_padding_and_conditions_leave_out_is_not_needed() -> None:
    i, j = tl.axes(i=6, j=4)
    X = tl.input("X", tl.float32, t=6)
    window = tl.define("Y", tl.sum(tl.pad(X[i + j - 2], 0), over=j, where=j <= i), i)
    read = read_owners(tl.schedule(window).tile(i=1).to(tl.block), PROFILE)
    reached = read.reach({}, by_unit=False, sure=True)[X]
    assert [reached[1][reached[0] == b].tolist() for b in range(3)] == [[], [0], [0, 1, 2]]


def faults(program: ir.Program) -> Iterator[ir.Program]:
    """The last kernel with its blocks, or its threads, numbered another way: most of these give the right result in silence."""
    *before, last = program.kernels
    for v in {e for e in last.body.walk() if isinstance(e, Var) and e.name in ("block_x", "block_y", "thread")}:
        if not v.upper:
            continue
        turned = index(v.upper) - v
        for other in (turned, (v + 1) % (v.upper + 1), (v + 2) % (v.upper + 1), Const(0, v.dtype)):
            yield program.replace(kernels=(*before, last.replace(body=substitute(last.body, {v: other}))))


def test_faults_in_who_writes_what_are_found() -> None:
    """What is missed writes from another of the owners: a thread of the same unit, or a unit that shares the reduction."""
    tried, missed = 0, 0
    for made, program, read in known(range(200, 420)):
        everything, right = tracing.Reading(made, PROFILE, testing.arrays(made.computation)), trace_of(program, made)
        for wrong in faults(program):
            now = trace_of(wrong, made)
            if not np.array_equal(now.writes(read.tensor.name), right.writes(read.tensor.name)):
                tried += 1
                missed += not everything.faults(now)
        if tried >= 200:
            break
    print(f"{tried - missed} of {tried} faults found")
    assert tried >= 200 and missed <= tried // 10


def test_tiles_of_an_axis_that_unfuse_made_have_threads() -> None:
    i, j = tl.axes(i=4, j=4)
    made = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i, j)[i, j] * 2, i, j)).unfuse(i={"a": 4, "b": 1})
    made = made.tile(j=2).to(tl.block).tile(a=1).to(tl.thread)
    program = testing.lowered(made)
    assert program.kernels[0].threads == 4 and not check_owners(program, made, read_owners(made, PROFILE))
