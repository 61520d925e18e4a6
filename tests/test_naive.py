"""The naive reading of schedules agrees with what is simulated, knows nothing of the lowering, and notices who writes what."""

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tilelang as tl
from tilelang import testing
from tilelang.errors import Refusal
from tilelang.expr import Const, Var, index, substitute
from tilelang.lowering import ir
from tilelang.schedule import Schedule
from tilelang.testing import naive
from tilelang.testing.naive import NotRead, Owners
from tilelang.testing.tracing import check_owners, compared, read_owners, written

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
    tree = ast.parse(Path(naive.__file__).read_text(encoding="utf-8"))
    found = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    found |= {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    ours = {"tilelang.computation", "tilelang.expr", "tilelang.steps"}
    assert found == ours | {"__future__", "collections.abc", "dataclasses", "math", "numpy", "typing"}


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
    made = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)).tile(i=4).to(tl.block).via(tl.register)
    with pytest.raises(NotRead, match="via register"):
        read_owners(made, PROFILE)


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
        right = written(program, made, read)
        for wrong in faults(program):
            now = written(wrong, made, read)
            if not np.array_equal(now, right):
                tried += 1
                missed += not compared(read, now)
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
