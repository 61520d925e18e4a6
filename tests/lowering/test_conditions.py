"""Conditions of reductions, on axes and on data: loops run where somebody needs them, whole pieces have no tests, all else is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tilelang.core.expr import INDEX, Binary, Var, index, substitute
from tilelang.core.simplify import simplify
from tilelang.lowering import ir
from tilelang.lowering.build.conditions import extreme
from tilelang.lowering.pipeline import lower
from tilelang.lowering.simulator import simulate
from tilelang.profiles.profile import Profile
from tilelang.schedules.schedule import Schedule
from tilelang.testing.case import arrays
from tilelang.testing.checking import check_schedule
from tilelang.testing.kernel_checks import check_kernel

SIMULATED, POCL = tl.load_profile("simulated"), tl.load_profile("sapphire_rapids")
CONDITIONS: dict[str, Callable[[Any, Any], Any]] = {
    "causal": lambda i, j: j <= i,
    "strict": lambda i, j: j < i,
    "after": lambda i, j: i <= j,
    "window": lambda i, j: (i - 5 <= j) & (j <= i + 1),
    "blocks": lambda i, j: tl.equal(i // 6, j // 6),
    "steep": lambda i, j: 2 * j <= 3 * i + 1,
    "late": lambda i, j: j >= 9,
    "falling": lambda i, j: (j <= i // -2 + 9) & (j // -3 + i // 4 >= -2),
    "never": lambda i, j: j < i - 100,
}


def product(condition: Callable[[Any, Any], Any], m: int, n: int) -> tl.Tensor:
    i, j, d = tl.axes(i=m, j=m, d=n)
    P, V = tl.input("P", tl.float32, i, j), tl.input("V", tl.float32, j, d)
    return tl.define("O", tl.sum(P[i, j] * V[j, d], over=j, where=condition(i, j)), i, d)


def blocked(o: tl.Tensor) -> Schedule:
    return tl.schedule(o).tile(i=8, d=8).to(tl.block)


def threads(o: tl.Tensor, ahead: int = 0) -> Schedule:
    return (
        blocked(o).accumulate(tl.register).split(j=4)
        .load("P", tl.shared, ahead=ahead).load("V", tl.shared, ahead=ahead).tile(i=2, d=2).to(tl.thread).split(j=1)
    )  # fmt: skip


def vectors(o: tl.Tensor, peel: bool = False, unroll: bool = False) -> Schedule:
    """A core as a block; the accumulator stands below a walk over the reduction, which combines into the output."""
    return (
        blocked(o).split(j=8).load("V", tl.shared).split(i=4).accumulate(tl.register)
        .split(j=3, peel=peel).split(j=1, unroll=unroll).load("V", tl.register).split(i=1, unroll=True).vectorize(d=8)
    )  # fmt: skip


def outer(o: tl.Tensor) -> Schedule:
    """States in shared memory above the walk, with a ring around an accumulator below."""
    return (
        blocked(o).accumulate(tl.shared).split(j=6).load("V", tl.shared, ahead=1)
        .accumulate(tl.register).split(j=2).tile(i=1, d=2).to(tl.thread)
    )  # fmt: skip


SCHEDULES: dict[str, Callable[[tl.Tensor], Schedule]] = {
    "default": tl.schedule,
    "threads": threads,
    "ring": lambda o: threads(o, 1),
    "long ring": lambda o: threads(o, 3),
    "register ring": lambda o: blocked(o).accumulate(tl.register).split(j=4).load("P", tl.register, ahead=1)
    .load("V", tl.register, ahead=2).tile(i=2, d=2).to(tl.thread).split(j=1),
    "nested rings": lambda o: blocked(o).accumulate(tl.register).split(j=8).split(j=2).load("P", tl.shared, ahead=2)
    .load("V", tl.shared, ahead=1).tile(i=1, d=4).to(tl.thread),
    "vectors": vectors,
    "peel": lambda o: vectors(o, peel=True),
    "unroll": lambda o: vectors(o, unroll=True),
    "peel alone": lambda o: blocked(o).split(j=3, peel=True).accumulate(tl.register).split(j=1),
    "states in shared": outer,
    "lanes": lambda o: tl.schedule(o).tile(i=2, d=1).to(tl.block).accumulate(tl.register).split(j=8).vectorize(j=4),
    "threads along it": lambda o: blocked(o).accumulate(tl.register).split(j=8).tile(j=2).to(tl.thread).split(j=1),
    "two axes": lambda o: tl.schedule(o).tile(i=8).to(tl.block).split(i=3, j=4).load("V", tl.shared).accumulate(tl.register),
    "blocks along it": lambda o: tl.schedule(o).tile(i=8, j=8).to(tl.block).accumulate(tl.register).split(j=3),
    "fused": lambda o: tl.schedule(o).fuse(x=("i", "d")).tile(x=16).to(tl.block).accumulate(tl.register).split(j=4).split(j=1),
}  # fmt: skip


def check(plan: Schedule, profile: Profile, opencl: bool = False) -> None:
    """It is right to the bit, and the simulator has nothing to say, with copies as early and as late as allowed."""
    assert check_schedule(plan, arrays(plan.computation, "integers"), profile=profile, opencl=opencl, exactly=True) == []


def kernel(plan: Schedule, profile: Profile = SIMULATED) -> ir.Kernel:
    return lower(plan.computation, plan.steps, profile).kernels[0]


def loops(plan: Schedule, axis: str = "j") -> list[str]:
    """The loops over an axis: what they begin at, and how many rounds they have."""
    body = kernel(plan).body
    firsts = {s.var: s.value for s in ir.statements(body) if isinstance(s, ir.Let)}
    found = []
    for s in ir.statements(body):
        if isinstance(s, ir.For) and s.var.name.split("_")[0] == axis and "round" not in s.var.name:
            let = s.body.body[0] if isinstance(s.body, ir.Seq) else None
            first = substitute(let.value, {s.var: index(0)}) if isinstance(let, ir.Let) else index(0)
            found.append(f"{simplify(substitute(first, firsts))}: {simplify(substitute(s.extent, firsts))}")
    return found


def loaded(plan: Schedule, name: str) -> int:
    """How often threads load an element of a tensor in global memory."""
    program = lower(plan.computation, plan.steps, SIMULATED)
    report = simulate.run(program, arrays(plan.computation, "integers"), warp=1)
    assert not report.counts
    return sum(a.requests for a in report.transactions if a.buffer == name and a.access == "load")


def conditions_of(plan: Schedule, profile: Profile = SIMULATED) -> list[str]:
    """The conditions that mention the walked axis, in what is computed."""
    found = [s for s in ir.statements(kernel(plan, profile).body) if isinstance(s, ir.If)]
    return [str(s.condition) for s in found if "j" in str(s.condition)]


# ---------------------------------------------------------------- right


@pytest.mark.parametrize("condition", ["strict", "after", "window", "blocks", "falling"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_what_is_left_is_right(schedule: str, condition: str) -> None:
    check(SCHEDULES[schedule](product(CONDITIONS[condition], 13, 19)), SIMULATED)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_on_the_device(schedule: str) -> None:
    names = list(CONDITIONS)
    condition = names[list(SCHEDULES).index(schedule) % len(names)]
    check(SCHEDULES[schedule](product(CONDITIONS[condition], 13, 19)), POCL, opencl=True)


@pytest.mark.parametrize("size", [(1, 1), (9, 0), (16, 8), (37, 5)], ids=str)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_on_other_sizes(condition: str, size: tuple[int, int]) -> None:
    check(outer(product(CONDITIONS[condition], *size)), SIMULATED)


def lengths(condition: Callable[[Any, Any, Any], Any], m: int = 13, n: int = 19) -> tl.Tensor:
    """A product whose points a tensor of integers restricts."""
    i, j, d = tl.axes(i=m, j=m, d=n)
    P, V = tl.input("P", tl.float32, i, j), tl.input("V", tl.float32, j, d)
    L = tl.input("L", tl.int32, i)
    return tl.define("O", tl.sum(P[i, j] * V[j, d], over=j, where=condition(j, L[i], i)), i, d)


LENGTHS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "shorter": lambda j, length, i: j < length,
    "reversed": lambda j, length, i: length > j,
    "halved": lambda j, length, i: 2 * j <= length // 2 + 3,
    "equal": lambda j, length, i: tl.equal(j, tl.cast(length, tl.int64)),
    "with another": lambda j, length, i: (j < length) & (j <= i),
    "twice": lambda j, length, i: j < tl.cast(length, tl.int64) * 2,
    "limited": lambda j, length, i: j < tl.minimum(length, 7),
    "begins": lambda j, length, i: j >= length,
}


@pytest.mark.parametrize("condition", LENGTHS)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_lengths_that_a_tensor_holds(schedule: str, condition: str) -> None:
    o = lengths(LENGTHS[condition])
    given = arrays(tl.computation("lengths", o)) | {"L": np.arange(-3, 23, 2, dtype=np.int32)}
    assert check_schedule(SCHEDULES[schedule](o), given, profile=SIMULATED) == []


@pytest.mark.parametrize("condition", LENGTHS)
def test_lengths_that_a_tensor_holds_without_a_schedule(condition: str) -> None:
    kernel = tl.compile(lengths(LENGTHS[condition]))
    given = arrays(kernel.computation) | {"L": np.arange(-3, 23, 2, dtype=np.int32)}
    assert check_kernel(kernel, given) == []


# ---------------------------------------------------------------- what is walked


def ragged(condition: Callable[[Any, Any], Any], type: Any = tl.int32, **range: Any) -> tl.Tensor:
    """Sums of rows of which a tensor says where they begin and end."""
    i, j = tl.axes(i=6, j=50)
    L, S = (tl.input(name, type, i, **range) for name in "LS")
    return tl.define("Y", tl.sum(tl.input("Z", tl.float32, i, j)[i, j], over=j, where=condition(j, (L[i], S[i]))), i)


def test_a_walk_ends_where_the_data_says() -> None:
    plan = tl.schedule(ragged(lambda j, ends: (j < ends[0]) & (ends[1] <= j))).tile(i=1).to(tl.block).split(j=1)
    first, end = "min(max(0, cast(S[block_x], int64)), 50)", "max(min(50, cast(L[block_x], int64)), 0)"
    assert loops(plan) == [f"{first}: {end} - {first}"]
    assert conditions_of(plan) == []
    given = arrays(plan.computation, "integers") | {"L": np.array([50, 7, 0, 3, 90, 9], np.int32), "S": np.zeros(6, np.int32)}
    report = simulate.run(lower(plan.computation, plan.steps, SIMULATED), given, warp=1)
    assert not report.counts
    assert sum(a.requests for a in report.transactions if a.buffer == "Z" and a.access == "load") == 50 + 7 + 0 + 3 + 50 + 9


def test_whole_pieces_of_a_peeled_loop_know_that_their_points_exist() -> None:
    """The lengths of a whole piece's points stand in the tensor, so that loops inside end there."""
    i, j, k = tl.axes(i=3, j=10, k=8)
    L, X = tl.input("L", tl.int32, j, range=(0, 9)), tl.input("X", tl.float32, i, j, k)
    made = tl.schedule(tl.define("Y", tl.sum(X[i, j, k], over=(j, k), where=k < L[j]), i)).tile(i=1).to(tl.block)
    made = made.split(j=8).split(j=4, peel=True).split(j=1).split(k=2)
    program = lower(made.computation, made.steps, POCL)
    walks = [s for s in ir.statements(program.kernels[0].body) if isinstance(s, ir.For) and s.var.name.startswith("k")]
    assert len(walks) == 4 and all(isinstance(w.extent, Var) for w in walks)
    assert check_schedule(made, arrays(made.computation), profile=POCL) == []


@pytest.mark.parametrize("type", [tl.int32, tl.uint32, tl.int64], ids=str)
@pytest.mark.parametrize("steps", ["split j=1", "accumulate in register; split j=8 peel; vectorize j=4",
                                   "split j=8; load Z in shared ahead 1; tile j=1 -> thread"])  # fmt: skip
def test_lengths_at_the_ends_of_their_type(type: Any, steps: str) -> None:
    """Neither the number of iterations nor what it is counted from wraps."""
    least, most = (0, 2**32 - 1) if type is tl.uint32 else (-(2**40), 2**40 - 1) if type is tl.int64 else (-(2**31), 2**31 - 1)
    named = {"range": (least, most + 1)} if type is tl.int64 else {}
    o = ragged(lambda j, ends: (j < ends[0]) & (ends[1] <= j), type, **named)
    plan = tl.parse(f"{tl.computation('Y', o).text}schedule s for Y {{ tile i=1 -> block; {steps} }}").schedule("s")
    given = arrays(plan.computation, "integers")
    ends = np.array([least, least, most, most, 10, 2**31 - 1]), np.array([most, least, least, most, 3, least])
    given |= {name: e.astype(given[name].dtype) for name, e in zip("LS", ends, strict=True)}
    assert check_schedule(plan, given, profile=SIMULATED) == []
    result = tl.compile(plan)(**given)
    expected = [given["Z"][i, max(0, int(s)) : max(0, int(e))].sum() for i, (e, s) in enumerate(zip(*ends, strict=True))]
    np.testing.assert_array_equal(result, np.array(expected, np.float32))


def test_a_length_that_could_wrap_is_tested_at_each_point() -> None:
    """Twice a 32-bit length is the product modulo 2^32."""
    plan = tl.schedule(ragged(lambda j, ends: j < ends[0] * 2)).tile(i=1).to(tl.block).split(j=1)
    assert loops(plan) == ["0: 50"]
    given = arrays(plan.computation) | {"L": np.array([2**30 + 3, -(2**30), 7, 0, -1, 25], np.int32)}
    assert check_schedule(plan, given, profile=SIMULATED) == []


def test_a_scatter_visits_only_the_place_of_each_point() -> None:
    """Points outside, places inside: of the loop over the places, an equality leaves one iteration."""
    i, v, d = tl.axes(i=40, v=9, d=8)
    ids, X = tl.input("ids", tl.int32, i), tl.input("X", tl.float32, i, d)
    bins = tl.define("bins", tl.sum(X[i, d], over=i, where=tl.equal(ids[i], v)), v, d)
    plan = tl.schedule(bins).tile(d=4).to(tl.block).accumulate(tl.shared).split(i=1).split(v=1).vectorize(d=4)
    given = arrays(plan.computation, "integers") | {"ids": np.arange(-4, 36, dtype=np.int32) % 11 - 1}
    report = simulate.run(lower(plan.computation, plan.steps, POCL), given, warp=1)
    hits = int(((given["ids"] >= 0) & (given["ids"] < 9)).sum())
    assert not report.counts and sum(a.requests for a in report.transactions if a.buffer == "X") == 2 * hits
    assert check_schedule(plan, given, profile=POCL, exactly=True) == []
    expected = np.zeros((9, 8), np.float32)
    for place, row in zip(given["ids"], given["X"], strict=True):
        if 0 <= place < 9:
            expected[place] += row
    np.testing.assert_array_equal(tl.compile(plan)(**given), expected)


@pytest.mark.parametrize("condition", ["ends", "begins", "one"])
def test_roles_do_not_count_iterations_by_data(condition: str) -> None:
    """Producer and consumer would have to count alike: such a schedule is accepted, and walks over everything."""
    i, j, d = tl.axes(i=16, j=16, d=16)
    P, V, L = tl.input("P", tl.float32, i, j), tl.input("V", tl.float32, j, d), tl.input("L", tl.int32)
    where = {"ends": j < L[()], "begins": j >= L[()], "one": tl.equal(L[()], j // 4)}[condition]
    roles = tl.warps(1).as_role("producer") + tl.warps(2).as_role("consumer")
    o = tl.define("O", tl.sum(P[i, j] * V[j, d], over=j, where=where), i, d)
    plan = tl.schedule(o).units(block=roles).tile(i=16, d=16).to(tl.block).accumulate(tl.register).split(j=4)
    plan = plan.load("V", tl.shared, on="producer", ahead=1).tile(i=8).to("consumer")
    for length in (-3, 0, 3, 40):
        given = arrays(plan.computation, "integers") | {"L": np.array(length, np.int32)}
        assert check_schedule(plan, given, profile=SIMULATED, exactly=True) == []


def test_a_walk_ends_where_no_thread_needs_more() -> None:
    first, *inner = loops(threads(product(CONDITIONS["causal"], 32, 8)))
    assert first == "0: block_x * 2 + 2"
    assert inner == ["0: 4", "0: min(4, block_x * 8 + 8 - j * 4)"]  # where it holds everywhere, and where it does not


def test_a_walk_begins_where_a_thread_needs_something() -> None:
    assert loops(threads(product(CONDITIONS["after"], 32, 8)))[0] == "block_x * 2: 8 - block_x * 2"
    assert loops(threads(product(lambda i, j: j >= 9, 32, 8)))[0] == "2: 6"
    assert loops(threads(product(CONDITIONS["never"], 32, 8))) == []


def test_quotients_are_solved_too() -> None:
    """Documents of eight positions each: with tiles of as many, no test is left."""
    plan = threads(product(lambda i, j: tl.equal(i // 8, j // 8), 32, 8))
    assert loops(plan)[0] == "block_x * 2: 2"
    assert conditions_of(plan) == []


def test_a_walk_of_single_points_needs_no_test() -> None:
    plan = tl.schedule(product(CONDITIONS["window"], 20, 3)).tile(i=1, d=1).to(tl.block)
    assert loops(plan) == ["max(0, block_y - 5): min(20, block_y + 2) - max(0, block_y - 5)"] and conditions_of(plan) == []


def test_a_walk_that_is_written_out_has_all_its_rounds() -> None:
    plan = blocked(product(CONDITIONS["causal"], 16, 8)).accumulate(tl.register)
    for unroll, walks in ((False, 1), (True, 0)):
        found = plan.split(j=4, unroll=unroll).tile(i=2, d=2).to(tl.thread).split(j=1)
        (kernel,) = lower(found.computation, found.steps, SIMULATED).kernels
        assert sum(isinstance(s, ir.For) and s.var.name == "j" for s in ir.statements(kernel.body)) == walks
        assert check_schedule(found, arrays(found.computation, "integers"), profile=SIMULATED, exactly=True) == []


def test_a_role_fills_its_ring_from_the_first_round_on() -> None:
    def on_roles(condition: str) -> Schedule:
        roles = tl.warps(1).as_role("producer") + tl.warps(2).as_role("consumer")
        plan = tl.schedule(product(CONDITIONS[condition], 16, 16)).units(block=roles).tile(i=16, d=16).to(tl.block)
        walk = plan.accumulate(tl.register).split(j=4).load("V", tl.shared, on="producer", ahead=1)
        return walk.tile(i=8).to("consumer")

    causal = on_roles("causal")
    assert check_schedule(causal, arrays(causal.computation, "integers"), profile=SIMULATED, exactly=True) == []
    with pytest.raises(tl.Refusal, match="its loop over j has fewer iterations") as caught:
        lower(on_roles("late").computation, on_roles("late").steps, SIMULATED)
    assert caught.value.code == "not-lowered-yet"


def test_conditions_that_never_hold_together_make_no_version() -> None:
    """A window narrower than a block's rows holds nowhere in full."""
    plan = threads(product(CONDITIONS["window"], 32, 8))
    assert len(loops(plan)) == 2
    wide = threads(product(lambda i, j: (i - 20 <= j) & (j <= i + 20), 64, 8))
    assert len(loops(wide)) == 3


def test_a_walk_around_an_accumulator_runs_at_least_once() -> None:
    """The sum of no points is stored by the first round there is."""
    plan = blocked(product(CONDITIONS["strict"], 13, 19)).split(j=4).accumulate(tl.register).tile(i=1, d=4).to(tl.thread)
    check(plan, SIMULATED)
    never = blocked(product(CONDITIONS["never"], 13, 19)).split(j=4).accumulate(tl.register).tile(i=1, d=4).to(tl.thread)
    check(never, SIMULATED)


def test_a_tile_with_nothing_to_add_is_left_alone() -> None:
    """The accumulator stands below the walk over the reduction: only its first round must store, whatever the condition."""
    (skipped,) = [c for c in conditions_of(vectors(product(CONDITIONS["causal"], 13, 8)), POCL) if " or " in c]
    assert skipped == "j == 0 or j * 8 <= block_x * 8 + i * 4 + 3"
    assert not [c for c in conditions_of(vectors(product(lambda i, j: j >= 0, 13, 8)), POCL) if " or " in c]


def test_about_half_of_a_triangle_is_loaded() -> None:
    whole, half, few = (threads(product(c, 64, 8)) for c in (lambda i, j: j >= 0, CONDITIONS["causal"], CONDITIONS["window"]))
    assert loaded(whole, "V") == 64 * 8 * 8
    assert loaded(half, "V") == sum(8 * b + 8 for b in range(8)) * 8
    assert loaded(half, "P") == sum(8 * b + 8 for b in range(8)) * 8
    assert loaded(few, "V") < loaded(whole, "V") / 3


# ---------------------------------------------------------------- conditions by other names


def test_a_choice_of_the_identity_is_a_condition() -> None:
    i, j = tl.axes(i=32, j=32)
    P = tl.input("P", tl.float32, i, j)
    peak = tl.define("peak", tl.max(tl.where(j <= i, P[i, j], -float("inf")), over=j), i)
    plan = (
        tl.schedule(peak).tile(i=8).to(tl.block).accumulate(tl.register).split(j=8).load("P", tl.shared).tile(i=1).to(tl.thread)
    )
    assert loops(plan)[0] == "0: block_x + 1"
    assert loaded(plan, "P") == sum(8 * (8 * b + 8) for b in range(4))
    check(plan, SIMULATED)
    check(plan, POCL, opencl=True)


def pooled(outside: float, size: int = 40) -> Schedule:
    """The greatest of 64 neighbours, by way of shared memory."""
    p, r = tl.axes(p=size, r=64)
    X = tl.input("X", tl.float32, h=size)
    z = tl.define("Z", tl.max(tl.pad(X[p + r - 32], outside), over=r), p)
    return tl.schedule(z).tile(p=8).to(tl.block).accumulate(tl.register).split(r=8).load("X", tl.shared).tile(p=1).to(tl.thread)


def test_padding_with_the_identity_is_not_walked() -> None:
    plan = pooled(-float("inf"))
    assert loops(plan, "r")[0] == "max(25 - block_x * 8, 0) // 8: min(8, 9 - block_x) - max(25 - block_x * 8, 0) // 8"
    check(plan, SIMULATED)
    check(plan, POCL, opencl=True)


def test_other_padding_is_walked() -> None:
    assert loops(pooled(0.0), "r")[0] == "0: 8"


def test_reductions_that_need_different_points_walk_over_all() -> None:
    i, j = tl.axes(i=16, j=16)
    P = tl.input("P", tl.float32, i, j)
    below, all_ = tl.define("below", tl.sum(P[i, j], over=j, where=j <= i), i), tl.define("all", tl.sum(P[i, j], over=j), i)
    plan = tl.schedule(tl.computation("both", [below, all_])).tile(i=4).to(tl.block).accumulate(tl.register).split(j=4)
    assert loops(plan)[0] == "0: 4"
    check(plan, SIMULATED)


def test_what_differs_is_taken_at_its_worst() -> None:
    block, thread, point = Var("block_x", INDEX, 0, 7), Var("thread", INDEX, 0, 31), Var("?i", INDEX, 0, 3)
    e = block * 16 + thread // 8 * 4 + point
    assert str(extreme(e, False)) == "block_x * 16" and str(extreme(e, True)) == "block_x * 16 + 15"
    assert str(extreme((block * 3 + thread) // 4, True)) == "(block_x * 3 + 3) // 4 + 7"
    assert extreme(block + Var("?n", INDEX, 0, None), True) is None
    for either in (Binary("min", thread, Var("?n", INDEX, 0, None)), Binary("max", Var("?n", INDEX, 0, None), thread)):
        assert extreme(either, True) is None and extreme(either, False) is index(0)


@pytest.mark.parametrize(("below", "versions"), [(8, 0), (9, 1)])
def test_pieces_are_made_without_tests_where_one_fits_between_the_conditions(below: int, versions: int) -> None:
    """A piece has 8 x 4 points, whose distances j - i differ by 10; from -below to 1 there are below + 2 of them."""
    body = kernel(threads(product(lambda i, j: (i - below <= j) & (j <= i + 1), 24, 8))).body
    assert sum(isinstance(s, ir.If) and s.otherwise is not None for s in ir.statements(body)) == versions


@pytest.mark.parametrize(("below", "chunk", "lanes"), [(3, 3, 2), (5, 5, 4), (7, 7, 2), (6, 3, 2)])
@pytest.mark.parametrize("written", ["condition", "choice"])
def test_lanes_beyond_a_chunk_that_a_condition_ends_do_not_count(below: int, chunk: int, lanes: int, written: str) -> None:
    """In the chunk the condition holds everywhere; the last vector ends in the next chunk, where it does not."""
    j = tl.axes(j=16)
    X = tl.input("X", tl.float32, j)
    chosen = tl.sum(X[j], over=j, where=j < below) if written == "condition" else tl.sum(tl.where(j < below, X[j], 0.0), over=j)
    plan = tl.schedule(tl.define("Y", chosen)).split(j=chunk).vectorize(j=lanes)
    for profile in (SIMULATED, tl.load_profile("zen4")):
        check(plan, profile)


STAGED_WINDOW = """computation conv {
  axis p: 56
  axis q: 56
  input X: float32[c: 8, h: 58, w: 58]
  input W: float32[f: 16, c: 8, r: 3, s: 3]
  output Z[f, p, q] = sum[c, r, s] X[c, p + r, q + s] * W[f, c, r, s]
}
schedule it for conv {
  tile f=16 p=14 q=56 -> block
  load X in shared layout (h, w, c)
  load W in shared layout (c, r, s, f)
  split f=16 p=1 q=6
  accumulate in register
  split r=1
  split s=1
  split c=1
  load W in register { vectorize f=8 }
  split q=1 unroll
  vectorize f=8
}
"""


def test_pieces_inside_a_staged_window_are_computed_without_guards() -> None:
    """56 columns in pieces of 6: the staged window ends with the last column, so the last piece alone tests its reads."""
    plan = tl.parse(STAGED_WINDOW).schedule("it")
    program = lower(plan.computation, plan.steps, tl.target("cpu", profile="avx2").profile)
    (tiles,) = [s for s in ir.statements(program.kernels[0].body) if isinstance(s, ir.For) and s.var.name == "q"]
    loops = [s for s in ir.statements(tiles.body) if isinstance(s, ir.For) and s.var.name.startswith("c")]
    tests = [sum(isinstance(s, ir.If) for s in ir.statements(loop.body)) for loop in loops]
    assert len(tests) == 2 and tests[0] == 0 < tests[1]
    assert not simulate.run(program, arrays(plan.computation, "integers"), warp=1).counts
