"""The naive reading of schedules agrees with what is simulated, knows nothing of the lowering, and finds planted faults."""

import ast
from pathlib import Path

import numpy as np
import pytest

import tilelang as tl
from tests.naive_texts import CORRECT, CORRECT_ON_DEVICES
from tilelang import testing
from tilelang.core.expr import Var, index, rewrite, substitute
from tilelang.errors import Refusal
from tilelang.lowering import ir
from tilelang.schedules.schedule import Schedule
from tilelang.testing import (
    checking,
    counterexamples,
    kernel_checks,
    kernels,
    naive,
    points,
    reach,
    read_dimensions,
    specs,
    tracing,
)
from tilelang.testing.kernels import Claim, Kernel
from tilelang.testing.misplacing import misplacements
from tilelang.testing.reach import NotRead
from tilelang.testing.tracing import Reading, traced

PROFILE = testing.tiny_profile()


def faults(program: ir.Program, made: Schedule, profile: tl.Profile = PROFILE) -> list[str]:
    """What the naive reading of a schedule says of a program."""
    given = testing.arrays(made.computation)
    return Reading(made, profile, given).faults(traced(program, given))


def kernel(made: Schedule) -> Kernel:
    """What the reading says of the last kernel."""
    return Reading(made, PROFILE, testing.arrays(made.computation)).kernels[-1]


def who(claims: list[Claim], element: int) -> set[tuple[int, int, int]]:
    """(block, first thread, width) of those that claim an element."""
    return {
        (int(b), int(f), c.width) for c in claims for e, b, f in zip(c.element, c.block, c.first, strict=True) if e == element
    }


def test_the_reading_knows_steps_and_computations_only() -> None:
    found = set()
    for module in (kernels, naive, points, reach, read_dimensions, specs):
        tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
        found |= {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
        found |= {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    ours = {"tilelang.computations.computation", "tilelang.core.expr", "tilelang.schedules.steps", "tilelang.testing.kernels"}
    ours |= {f"tilelang.testing.{name}" for name in ("points", "reach", "read_dimensions", "specs")}
    assert found == ours | {"__future__", "collections.abc", "dataclasses", "math", "numpy", "typing"}
    tree = ast.parse(Path(str(counterexamples.__file__)).read_text(encoding="utf-8"))
    imported = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert {m for m in imported if m and m.startswith("tilelang")} <= ours | {"tilelang.testing"}


@pytest.mark.slow
def test_random_schedules_do_what_their_steps_say() -> None:
    count = 0
    for seed in range(600, 660):
        try:
            made = testing.draw_case(testing.Seeded(seed)).schedule
            assert not faults(testing.lowered(made), made), made
            count += 1
        except (Refusal, NotRead):
            continue
    assert count > 30


def product() -> Schedule:
    m, n, k = tl.axes(m=10, n=12, k=6)
    A, B = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n)
    made = tl.schedule(tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n))
    turned = tl.layout("n", "m")
    made = made.tile(m=4, n=8).to(tl.block).split(k=4)
    return made.load("A", tl.shared, steps=tl.move().tile(m=1).to(tl.thread)).tile(m=2, n=2).to(tl.thread, order=turned)


def test_who_has_what_is_what_the_steps_say() -> None:
    read = kernel(product())
    assert who(read.writes["global", "C"], 5 * 12 + 11) == {
        (3, 2, 1)
    }  # block (1, 1) of 3 x 2; rows 0 to 1, columns 2 to 3 of its tile
    assert who(read.reads["global", "A"], 5 * 6 + 3) == {(2, 1, 1), (3, 1, 1)}  # row 1 of the tiles of blocks 2 and 3
    assert (3, 2, 1) in who(read.reads["shared", "A"], 5 * 6 + 3) and not faults(testing.lowered(product()), product())


def test_what_is_not_read_is_said() -> None:
    i = tl.axes(i=8)
    made = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)).when(tl.can("async_copy"), tl.move())
    with pytest.raises(NotRead, match="when can"):
        kernel(made)
    before = tracing.tally.total()
    assert tracing.reading(made, PROFILE, testing.arrays(made.computation)) is None and tracing.tally.total() == before + 1


def test_results_that_stop_in_shared_memory_are_stored_by_whom_the_move_says() -> None:
    i, j = tl.axes(i=8, j=8)
    out = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i, j)[i, j] * 2, i, j)).tile(i=4).to(tl.block)
    made = out.via(tl.shared, steps=tl.move().tile(i=1, j=4).to(tl.thread)).tile(i=1, j=1).to(tl.thread)
    read = kernel(made)
    assert who(read.writes["global", "Y"], 5 * 8 + 7) == {(1, 3, 1)}  # row 1 of block 1, columns 4 to 7: the move's thread 3
    assert (1, 15, 1) in who(read.reads["global", "X"], 5 * 8 + 7) and not faults(testing.lowered(made), made)


def test_kernels_before_and_parts_of_a_reduction_are_read() -> None:
    i, j, k = tl.axes(i=4, j=8, k=4)
    X, W = tl.input("X", tl.float32, i, j), tl.input("W", tl.float32, i, k)
    P = tl.define("P", tl.sum(X[i, j], over=j), i)
    before = tl.move().tile(i=1).to(tl.block).tile(j=4).to(tl.thread)
    made = tl.schedule(tl.define("Y", P[i] * W[i, k], i, k)).compute("P", tl.global_, steps=before).tile(i=2).to(tl.block)
    assert len(Reading(made, PROFILE, testing.arrays(made.computation)).kernels) == 2 and not faults(testing.lowered(made), made)
    parts = tl.schedule(P).tile(j=2).to(tl.block)
    assert who(kernel(parts).writes["global", "P_partial"], 2 * 4 + 1) == {(2, 0, 1)}  # element 1 of the third part
    assert not faults(testing.lowered(parts), parts)


def test_a_block_that_reads_for_another_is_found() -> None:
    """Every block gives the right results where all rows are alike, whichever it reads."""
    i, j = tl.axes(i=4, j=8)
    made = tl.schedule(tl.define("Y", tl.sum(tl.input("X", tl.float32, i, j)[i, j], over=j), i)).tile(i=1).to(tl.block)
    program = testing.lowered(made)
    assert not faults(program, made)
    last = program.kernels[0]
    block = next(e for e in last.body.walk() if isinstance(e, Var) and e.name == "block_x")

    def other(e: tl.core.expr.Expr) -> tl.core.expr.Expr:
        return substitute(e, {block: index(3) - block}) if isinstance(e, ir.Load) and e.buffer.name == "X" else e

    wrong = program.replace(kernels=(last.replace(body=rewrite(last.body, other)),))
    found = faults(wrong, made)
    assert any("is read without need" in f for f in found) and any(
        "are not read by the blocks that need them" in f for f in found
    )


def test_a_slot_that_still_holds_the_round_before_is_found() -> None:
    """What a thread must find in shared memory and does not: each round reads the other slot of the ring."""
    i, j = tl.axes(i=4, j=8)
    made = tl.schedule(tl.define("Y", tl.sum(tl.input("X", tl.float32, i, j)[i, j], over=j), i)).tile(i=4).to(tl.block)
    made = made.accumulate(tl.register).split(j=4).load("X", tl.shared).tile(i=1).to(tl.thread)
    program = testing.lowered(made)
    assert not faults(program, made)
    last = program.kernels[0]

    def first(e: tl.core.expr.Expr) -> tl.core.expr.Expr:
        return e.replace(indices=(*e.indices[:-1], index(0))) if isinstance(e, ir.Load) and e.buffer.name == "X_shared" else e

    wrong = program.replace(kernels=(last.replace(body=rewrite(last.body, first)),))
    assert any("in shared memory" in f for f in faults(wrong, made))


def test_lanes_of_a_last_vector_may_be_stored_twice() -> None:
    """A last vector that is moved back stores elements of another block: only what that one stores."""
    i = tl.axes(i=10)
    made = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)).tile(i=8).to(tl.block).vectorize(i=4)
    read = kernel(made)
    assert (1, 0, 1) in who(read.again["global", "Y"], 7) and who(read.writes["global", "Y"], 7) == {(0, 0, 1)}
    both, values = np.array([[*range(10), 6, 7], [0] * 8 + [1] * 4, [0] * 12]), np.arange(12.0)
    values[10:] = values[6:8]
    known = Reading(made, PROFILE, testing.arrays(made.computation))

    class Fixed(tracing.Trace):
        def written(self, kernel: str) -> set[str]:
            return {"Y"}

        def touched(self, kernel: str, memory: str, name: str, writes: bool) -> tuple[object, object]:
            return both, values

    assert not list(known._writes(read, "Y", Fixed()))
    values[11] += 1
    assert any("as its owner writes it" in f for f in known._writes(read, "Y", Fixed()))


@pytest.mark.parametrize(
    "text",
    [
        "input X: int8[i: 67] axis k: 64 output Y[k] = cast(X[k], uint32) & 3 | tile k=32 -> block; vectorize k=2",
        "axis k: 12 output Y[k] = 5 | tile k=8 -> block; vectorize k=16",
        "input X: float16[j: 80] output Y[j] = X[j] * 2.0 | unfuse j = (a: 5, b: 16); tile a=2 -> block; vectorize b=4",
    ],
)
def test_vectors_may_begin_at_the_lines_of_caches(text: str) -> None:
    """A block then stores elements behind its own: up to a line, and none beyond that."""
    computation, steps = text.split(" | ")
    made = tl.parse(f"computation f {{ {computation} }}\nschedule for f {{ {steps} }}").schedule()
    given, profile = testing.arrays(made.computation), tl.load_profile("zen5")
    program = testing.lowered(made, profile)
    known, trace = Reading(made, profile, given), traced(program, given)
    code, _ = trace.touched("Y", "global", "Y", True)
    (read,) = known.kernels
    assert not tracing.covered(read.writes["global", "Y"], code).all() and not known.faults(trace)
    own = max(e for c in read.writes["global", "Y"] for e, b in zip(c.element, c.block, strict=True) if b == 0)
    last = max(e for c in read.again["global", "Y"] for e, b in zip(c.element, c.block, strict=True) if b == 0)
    assert last == min(own + 64 // made.computation.outputs[0].dtype.bytes, made.computation.outputs[0].shape[0]) - 1


def test_a_read_that_has_no_effect_may_be_left_out() -> None:
    i = tl.axes(i=8)
    X, Z = tl.input("X", tl.int32, i), tl.input("Z", tl.int32, i)
    made = tl.schedule(tl.define("Y", X[i] + Z[i] * 0, i)).tile(i=2).to(tl.block)
    assert not faults(testing.lowered(made), made)


def test_what_padding_and_conditions_leave_out_is_not_needed() -> None:
    i, j = tl.axes(i=6, j=4)
    X = tl.input("X", tl.float32, t=6)
    window = tl.define("Y", tl.sum(tl.pad(X[i + j - 2], 0), over=j, where=j <= i), i)
    (needs,) = kernel(tl.schedule(window).tile(i=1).to(tl.block)).needs["global", "X"]
    assert [sorted(needs.element[needs.block == b].tolist()) for b in range(3)] == [[], [0], [0, 1, 2]]


def test_threads_of_a_role_lie_behind_those_before() -> None:
    i = tl.axes(i=8)
    made = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i))
    made = made.units(block=tl.warps(1).as_role("fetch") + tl.warps(2).as_role("work")).tile(i=8).to(tl.block)
    made = made.load("X", tl.shared, on="fetch").tile(i=4).to("work").tile(i=1).to(tl.thread)
    read, warp = kernel(made), PROFILE.warp_size
    assert who(read.writes["global", "Y"], 6) == {(0, 2 * warp + 2, 1)} and who(read.reads["global", "X"], 6) == {(0, 0, warp)}


@pytest.mark.slow
def test_faults_in_who_does_what_are_found() -> None:
    table = misplacements(26, 0)
    print(table)
    assert table.total("found", "reported") >= 12 and table.total("missed") <= 2


def test_tiles_of_an_axis_that_unfuse_made_have_threads() -> None:
    i, j = tl.axes(i=4, j=4)
    made = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i, j)[i, j] * 2, i, j)).unfuse(i={"a": 4, "b": 1})
    made = made.tile(j=2).to(tl.block).tile(a=1).to(tl.thread)
    program = testing.lowered(made)
    assert program.kernels[0].threads == 4 and not faults(program, made)


@pytest.mark.parametrize("what", CORRECT | CORRECT_ON_DEVICES)
def test_correct_kernels_are_not_judged_wrong(what: str) -> None:
    profile, computation, steps = ("", *CORRECT[what].split(" | ")) if what in CORRECT else CORRECT_ON_DEVICES[what].split(" | ")
    made = tl.parse(f"computation f {{ {computation} }}\nschedule for f {{ {steps} }}").schedule()
    on = tl.load_profile(profile) if profile else PROFILE
    assert not faults(testing.lowered(made, on), made, on)


def test_indices_may_be_as_far_outside_as_data_can_be() -> None:
    i, a = tl.axes(i=4, a=5)
    ids, X = tl.input("ids", tl.int64, i), tl.input("X", tl.int32, a)
    made = tl.schedule(tl.define("Y", tl.pad(X[ids[i]], -1), i)).tile(i=2).to(tl.thread)
    given = {"ids": np.array([-(2**63), 4, 2**63 - 1, 2**32]), "X": np.arange(5, dtype=np.int32)}
    trace = traced(testing.lowered(made), given)
    assert not Reading(made, PROFILE, given).faults(trace)
    assert trace.outputs["Y"].tolist() == [-1, 4, -1, -1]


def test_blocks_that_take_tiles_in_rounds_are_whole_clusters() -> None:
    profile = tl.load_profile("hopper")
    made = tl.parse(
        "computation f { input X: float32[m: 32] output Y[m] = X[m] * 2.0 }"
        " schedule for f { units cluster = 6 block; tile m=4 -> block 3 }"
    ).schedule()
    given = testing.arrays(made.computation)
    read = Reading(made, profile, given)
    assert who(read.kernels[0].writes["global", "Y"], 31) == {(1, 0, 1)}
    assert not read.faults(traced(testing.lowered(made, profile), given))


def test_a_grid_of_two_axes_has_whole_clusters_along_the_first() -> None:
    """Three tiles of m are four blocks, and the next tile of n begins behind them."""
    profile = tl.load_profile("hopper")
    made = tl.parse(
        "computation f { input X: float32[n: 8, m: 6] output Y[n, m] = X[n, m] * 2.0 }"
        " schedule for f { units cluster = 2 block; tile n=4 m=2 -> block }"
    ).schedule()
    given = testing.arrays(made.computation)
    read = Reading(made, profile, given)
    assert {block for block, *_ in who(read.kernels[0].writes["global", "Y"], 24)} == {4}
    assert not read.faults(traced(testing.lowered(made, profile), given))


@pytest.mark.parametrize("place", ["register", "shared"])
def test_a_block_that_only_makes_a_cluster_whole_may_read_anything(place: str) -> None:
    """It loads what the first block does, and stores nothing."""
    profile = tl.load_profile("hopper")
    made = tl.parse(
        "computation f { input A: float32[d: 4] axis q: 2 axis j: 16 output F[j, q] = cos(A[j % 4]) }"
        f" schedule for f {{ units cluster = 4 block; tile q=8 -> block; load A in {place}; tile j=5 -> thread }}"
    ).schedule()
    given = testing.arrays(made.computation)
    assert not Reading(made, profile, given).faults(traced(testing.lowered(made, profile), given))


def test_blocks_have_the_order_of_their_step_where_a_reduction_is_empty() -> None:
    """The grid had its own order then: right results, by other blocks."""
    made = tl.parse(
        "computation f { input A: float32[i: 4, j: 0] input B: float32[k: 6, j: 0] output C[k, i] = sum[j] (A[i, j] + B[k, j]) }"
        " schedule for f { tile j=12 k=3 i=1 -> block order (i, k) }"
    ).schedule()
    # Element 1 is (k, i) = (0, 1): the two tiles of k go before it.
    assert {block for block, *_ in who(kernel(made).writes["global", "C_partial"], 1)} == {2}
    assert not faults(testing.lowered(made), made)


def test_a_cluster_has_as_many_blocks_as_tiles() -> None:
    """Also where fewer of them take the tiles."""
    i, profile = tl.axes(i=17), tl.load_profile("hopper")
    made = (
        tl.schedule(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i))
        .tile(i=8)
        .to(tl.cluster)
        .tile(i=1)
        .to(tl.block, count=2)
    )
    given = testing.arrays(made.computation)
    read = Reading(made, profile, given)
    assert who(read.kernels[0].writes["global", "Y"], 8 + 3) == {(8 + 3 % 2, 0, 1)}
    assert not read.faults(traced(testing.lowered(made, profile), given))


def test_what_only_other_data_shows_is_needed() -> None:
    """A least sign of many hardly ever depends on one element; where all are ones it does."""
    i, j = tl.axes(i=2, j=9)
    least = tl.define("Y", tl.min(tl.where(tl.input("X", tl.int32, i, j)[i, j] > 0, 1, 0), over=j), i)
    made = tl.schedule(least).tile(i=1).to(tl.block)
    program = testing.lowered(made)
    assert not faults(program, made)

    def again(e: tl.core.expr.Expr) -> tl.core.expr.Expr:
        """Element 0 in place of the last one."""
        if not (isinstance(e, ir.Load) and e.buffer.name == "X"):
            return e
        return e.replace(indices=(e.indices[0], e.indices[1] % 8))

    (only,) = program.kernels
    wrong = program.replace(kernels=(only.replace(body=rewrite(only.body, again)),))
    given = testing.arrays(made.computation)
    given["X"][...] = -1
    read = Reading(made, PROFILE, given)
    assert any("are not read by the blocks that need them" in f for f in read.faults(traced(wrong, given)))


def test_a_kernel_by_other_steps_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """It gives the right results, but its blocks have other rows."""
    i = tl.axes(i=16)
    whole = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i))
    made, other = (tl.compile(whole.tile(i=n).to(tl.block), tl.target("cuda", profile="ampere")) for n in (4, 8))
    given = testing.arrays(made.computation)
    assert not kernel_checks.against_steps(made, given)
    monkeypatch.setattr(kernel_checks, "as_threads", lambda kernel: other.program)
    assert any("is written by" in f for f in kernel_checks.against_steps(made, given))


def test_check_schedule_holds_a_schedule_against_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    i = tl.axes(i=16)
    whole = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i))
    made, other = whole.tile(i=4).to(tl.block), testing.lowered(whole.tile(i=8).to(tl.block))
    given = testing.arrays(made.computation)
    assert not testing.check_schedule(made, given)
    monkeypatch.setattr(checking, "lowered", lambda schedule, profile: other)
    (fault,) = [f for f in testing.check_schedule(made, given) if "is written by" in f]
    assert fault.startswith("steps: Y: element 8 of Y")


def test_a_fill_is_known_as_its_type_holds_it() -> None:
    """0.24 is another number in float32."""
    text = """computation Z {
  input X: float32[h: 5, w: 5]
  axis p: 5
  axis q: 5
  axis r: 3
  output Z[p, q] = sum[r] pad(X[p + r - 1, q], 0.24)
}
schedule for Z {
  tile p=4 q=4 -> block
  load X in shared
  tile p=1 q=1 -> thread
}
"""
    schedule = tl.parse(text).schedule()
    assert (
        testing.check_schedule(
            schedule, testing.arrays(schedule.computation), profile=tl.target("cuda", profile="ampere").profile
        )
        == []
    )


def test_an_empty_axis_beside_ones_too_long_for_an_array_has_no_points() -> None:
    text = """computation Y {
  input X: int8[m: 0]
  axis b: 65537
  axis c: 65537
  axis d: 131074
  output Y[b, c, d, m] = X[m]
}
schedule for Y {
  tile m=1 -> block
  split b=2
  tile b=1 c=65536 d=65536 -> thread
}"""
    schedule = tl.parse(text).schedule()
    assert not testing.check_schedule(schedule, {"X": np.zeros(0, np.int8)}, profile=tl.load_profile("hopper"))
