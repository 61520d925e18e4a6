"""Rule 7: tiles beyond the units that there are make rounds, units beyond the tiles are idle, on every level and along every axis."""

import dataclasses

import pytest

import tilelang as tl
from tests.lowering.test_shares import faults
from tilelang import testing
from tilelang.errors import Refusal
from tilelang.lowering import ir, printer
from tilelang.profiles.profile import Profile
from tilelang.testing import families


def product(m: int, n: int, k: int) -> tl.Schedule:
    i, j, r = tl.axes(m=m, n=n, k=k)
    A, B = tl.input("A", tl.float32, i, r), tl.input("B", tl.float32, r, j)
    return tl.schedule(tl.define("C", tl.sum(A[i, r] * B[r, j], over=r), i, j))


def matrix_vector(m: int, k: int) -> tl.Schedule:
    i, j = tl.axes(m=m, k=k)
    A, x = tl.input("A", tl.float32, i, j), tl.input("x", tl.float32, j)
    return tl.schedule(tl.define("y", tl.sum(A[i, j] * x[j], over=j), i))


def test_a_warp_takes_more_tiles_of_a_reduction_than_it_has_lanes() -> None:
    made = matrix_vector(m=35, k=600).units(block=tl.warps(2)).tile(m=16).to("block").tile(m=2).to("warp")
    made = made.accumulate("register").split(k=512).tile(k=8).to("thread")
    assert not faults(made)


@pytest.mark.parametrize(
    "sizes", [{"m": 1, "n": 1}, {"m": 2, "n": 3}, {"n": 1}, {"m": 3, "k": 2}, {"k": 1, "n": 2}, {"m": 5, "k": 1, "n": 1}]
)
@pytest.mark.parametrize("warps", [False, True])
def test_a_product_in_rounds_of_units(sizes: dict[str, int], warps: bool) -> None:
    made = product(m=9, n=11, k=7).units(block=tl.warps(2) if warps else tl.threads(12)).tile(m=8, n=8).to("block")
    made = made.accumulate("register")
    if warps:
        made = made.tile(m=3).to("warp")
    assert not faults(made.tile(**sizes).to("thread"))


@pytest.mark.parametrize("sizes, count", [({"m": 1, "k": 1}, 12), ({"k": 2, "n": 1}, 10), ({"m": 1, "k": 4, "n": 4}, 5)])
def test_idle_units_take_no_part_where_partial_states_meet(sizes: dict[str, int], count: int) -> None:
    made = product(m=4, n=5, k=12).units(block=tl.threads(16)).tile(m=4, n=5).to("block").accumulate("register")
    assert not faults(made.tile(**sizes).to("thread", count))


def test_the_loop_of_an_axis_keeps_units_that_share_a_reduction_abreast() -> None:
    """8 of the 12 tiles of k at once, whose partial states meet; one of the 4 of m, in registers of its own."""
    made = product(m=8, n=4, k=24).units(block=tl.threads(8)).tile(m=8, n=4).to("block").accumulate("register")
    made = made.tile(m=2, k=2).to("thread")
    assert not faults(made)
    (kernel,) = testing.lowered(made).kernels
    assert "k_round" in {s.var.name for s in ir.statements(kernel.body) if isinstance(s, ir.For)}
    assert sum(b.elements for b in kernel.registers if b.name.startswith("C_state")) == 32


def test_stages_and_moves_in_rounds() -> None:
    c = families.softmax(rows=5, columns=40, dtype="float32")
    spread = tl.move().tile(i=1, j=1).to("thread")
    made = tl.schedule(c).units(block=tl.threads(36)).tile(i=5).to("block").load("X", "shared", steps=spread)
    made = made.compute("shifted", "shared", steps=spread).compute("total", "shared", steps=spread).tile(i=1, j=1).to("thread")
    assert not faults(made)


ORDERS = {
    "turned": tl.layout("n", "m"),
    "panels": tl.layout(lambda m, n: (n // 3, m, n % 3)),
    "crossed": tl.layout(lambda m, n: (m, n ^ (m % 2))),
    "backwards": tl.layout(lambda m, n: (3 - m, n)),
}


@pytest.mark.parametrize("sizes", [(37, 50, 11), (32, 32, 8), (5, 3, 2)])
@pytest.mark.parametrize("order", list(ORDERS))
def test_an_order_numbers_threads(order: str, sizes: tuple[int, int, int]) -> None:
    made = product(*sizes).tile(m=16, n=16).to("block").accumulate("register").split(k=4).load("A", "shared", ahead=1)
    assert not faults(made.load("B", "register").tile(m=4, n=4).to("thread", order=ORDERS[order]))


@pytest.mark.parametrize("count", [3, 7, 64])
def test_an_order_goes_on_over_rounds_of_units(count: int) -> None:
    """Units beyond the last tile find none, also where an order counts down."""
    made = product(m=19, n=21, k=5).units(block=tl.threads(64)).tile(m=16, n=16).to("block").accumulate("register")
    for order in ORDERS.values():
        assert not faults(made.tile(m=4, n=4).to("thread", count, order))


def test_an_order_numbers_warps() -> None:
    made = product(m=19, n=21, k=5).tile(m=16, n=16).to("block").tile(m=8, n=4).to("warp", order=tl.layout("n", "m"))
    assert not faults(made.tile(m=2, n=2).to("thread", order=tl.layout("n", "m")))
    (kernel,) = testing.lowered(made).kernels
    assert "thread // 8 % 2 * 8" in printer.to_text(kernel)  # neighbouring warps differ in m


def test_an_order_numbers_the_threads_of_a_move() -> None:
    turned = tl.move().tile(m=1, k=2).to("thread", order=tl.layout("k", "m")).vectorize(k=2)
    made = product(m=9, n=11, k=7).tile(m=8, n=8).to("block").accumulate("register").split(k=4)
    assert not faults(made.load("A", "shared", steps=turned).tile(m=1, n=2).to("thread"))


# ---------------------------------------------------------------- blocks that are not made of whole warps; a warp has 8 threads here

OVER = [1, 3, 4, 8, 12, 20]


def of_threads(made: tl.Schedule, count: int) -> tl.Schedule:
    """The schedule, on blocks of so many threads."""
    return tl.Schedule(made.computation, (*tl.schedule(made.computation).units(block=tl.threads(count)).steps, *made.steps))


@pytest.mark.parametrize("threads", OVER)
@pytest.mark.parametrize(
    "sizes, inside", [({"n": 8}, {"n": 1}), ({"m": 2, "n": 3}, {"m": 1, "n": 1}), ({"n": 4, "k": 4}, {"k": 1})]
)
def test_a_block_that_is_not_made_of_whole_warps(sizes: dict[str, int], inside: dict[str, int], threads: int) -> None:
    made = product(m=4, n=13, k=18).tile(m=4, n=13).to("block").accumulate("register").tile(**sizes).to("warp")
    assert not faults(of_threads(made.tile(**inside).to("thread"), threads))


@pytest.mark.parametrize("threads", OVER)
def test_threads_over_have_no_buffer_of_their_own_and_update_no_state(threads: int) -> None:
    made = product(m=4, n=8, k=16).tile(m=4, n=8).to("block").accumulate("shared").split(k=4).tile(m=2, n=3).to("warp")
    assert not faults(of_threads(made, threads))
    made = product(m=4, n=8, k=16).tile(m=4, n=8).to("block").tile(n=4).to("warp").accumulate("shared").split(k=4)
    made = made.load("B", "shared", ahead=1).load("A", "shared").tile(m=1).to("thread")
    assert not faults(of_threads(made, threads))


@pytest.mark.parametrize("columns", [8, 16])
@pytest.mark.parametrize("threads", [*OVER, 32])
def test_units_without_a_tile_of_a_reduction_are_told_its_result(threads: int, columns: int) -> None:
    """One tile of `peak` for all warps, in registers; every thread of the block then reads it."""
    c = families.softmax(rows=3, columns=columns, dtype="float32")
    spread = tl.move().tile(j=16).to("warp").tile(j=1).to("thread")
    made = tl.schedule(c).tile(i=1).to("block").compute("peak", "register", steps=spread)
    made = made.compute("total", "register", steps=tl.move().tile(j=8).to("warp").tile(j=1).to("thread")).tile(j=1).to("thread")
    assert not faults(of_threads(made, threads))


def test_idle_units_beside_one_tile_of_a_reduction_store_nothing() -> None:
    """Three threads, two tiles along n, one along k: the third thread has the first tile of n and nothing of k."""
    made = product(m=1, n=2, k=4).tile(m=1, n=2).to("block").accumulate("register").tile(k=4, n=1).to("thread")
    assert not faults(of_threads(made, 3))
    assert testing.lowered(of_threads(made, 3)).kernels[0].shared == (), "nobody tells them the result"


STENCIL_ORDERS = {
    "a quotient of what there is": tl.layout(lambda p: (p % 4, p // 4)),
    "pairs turned": tl.layout(lambda p: (p % 3, p // 3)),
    "backwards": tl.layout(lambda p: (2 - p,)),
}


@pytest.mark.parametrize("order", list(STENCIL_ORDERS))
def test_an_order_fits_the_tiles_of_a_moves_region_not_those_of_its_tensor(order: str) -> None:
    """18 elements in tiles of 8, of a tensor of 65."""
    x, d = tl.axes(x=65, d=3)
    X, w = tl.input("X", tl.float32, p=65), tl.input("w", tl.float32, d)
    steps = tl.move().tile(p=8).to("thread", order=STENCIL_ORDERS[order])
    made = tl.schedule(tl.define("Y", tl.sum(tl.pad(X[x + d - 1], 0) * w[d], over=d), x)).tile(x=16).to("block")
    assert not faults(made.load("X", "shared", steps=steps))


@pytest.mark.parametrize("memory", ["register", "shared"])
def test_an_order_fits_the_tiles_of_a_stage(memory: str) -> None:
    c = families.staged(rows=3, columns=11, dtype="float32", first=(), second=(), kind="sum")
    steps = tl.move().tile(j=2).to("thread", order=tl.layout(lambda j: (j % 4, j // 4)))
    assert not faults(tl.schedule(c).tile(i=2).to("block").split(j=3).compute("P", memory, steps=steps))


@pytest.mark.parametrize("threads", [1, 12, 64])
def test_one_thread_moves_what_has_no_dimensions(threads: int) -> None:
    k = tl.axes(k=34)
    x, factor = tl.input("X", tl.float32, k), tl.input("F", tl.float32)
    total = tl.schedule(tl.define("S", tl.sum(x[k] * factor[()], over=k))).units(block=tl.threads(threads))
    total = total.tile(k=16).to("block").accumulate("shared").load("F", "shared").load("X", "shared")
    assert not faults(total) and not faults(total.tile(k=4).to("thread").accumulate("register"))


def narrow(grid: tuple[int, int, int], threads: int | None = None) -> Profile:
    """A device of small grids."""
    return dataclasses.replace(tl.load_profile("simulated"), grid_max=grid, grid_threads_max=threads)


@pytest.mark.parametrize(("most", "grid"), [((12, 3, 1), (4, 3, 1)), ((12, 2, 1), (12, 1, 1)), ((12, 1, 1), (12, 1, 1))])
def test_blocks_beyond_what_a_dimension_takes_are_numbered_in_one(most: tuple[int, int, int], grid: tuple[int, ...]) -> None:
    made = product(m=9, n=13, k=4).tile(m=3, n=4).to("block")
    kernel = tl.compile(made, target=tl.target(profile=narrow(most)))
    assert kernel.resources[0].grid == grid
    assert kernel.computation.check(lambda arrays: tl.simulate(kernel, **arrays).outputs)


@pytest.mark.parametrize("profile", [narrow((11, 1, 1)), narrow((12, 1, 1), threads=12 * 8 - 1)], ids=["blocks", "threads"])
def test_more_blocks_than_a_grid_has_are_refused(profile: Profile) -> None:
    made = product(m=9, n=13, k=4).units(block=tl.threads(8)).tile(m=3, n=4)
    with pytest.raises(Refusal) as caught:
        tl.compile(made.to("block"), target=tl.target(profile=profile))
    assert caught.value.code == "too-many-blocks"
    assert tl.compile(made.to("block", 11), target=tl.target(profile=profile)).resources[0].grid == (11, 1, 1)


def test_a_move_that_spreads_nothing_gives_its_vectors_to_the_threads() -> None:
    made = product(m=16, n=16, k=16).tile(m=8, n=8).to("block").accumulate("register").split(k=8)
    made = made.load("A", "shared", steps=tl.move().split(m=2).vectorize(k=4)).tile(m=4, n=4).to("thread")
    assert not faults(made)
    (line,) = [x for x in printer.to_text(testing.lowered(made).kernels[0]).splitlines() if "A_shared[" in x.partition("=")[0]]
    assert line.strip().startswith("A_shared[m * 2 + thread // 2, thread % 2 * 4:4] = A[")


@pytest.mark.parametrize("units, line", [("units block = 64 warp", 2), ("", 4)])
def test_too_many_threads_are_refused_at_the_step_that_makes_them(units: str, line: int) -> None:
    steps = f"{units}\ntile m=4096 -> block\ntile m=1 -> thread"
    made = tl.parse(f"computation f {{ input X: float32[m: 4096] output Y[m] = X[m] + 1.0 }} schedule for f {{\n{steps}\n}}")
    with pytest.raises(Refusal) as caught:
        made.schedule().check(tl.load_profile("ampere"))
    assert caught.value.code == "too-many-threads"
    assert caught.value.span is not None and caught.value.span.line == line


@pytest.mark.parametrize("steps", ["tile i=2 -> thread 3; fuse ij=(i, j)", "tile i=2 -> thread 3; unfuse i=(p: 2, q: 1)",
                                   "tile j=6 -> thread 32; load X in shared; fuse ij=(j, i)", "tile i=2 j=6 -> warp 2; fuse ij=(i, j)",
                                   "tile i=2 -> thread 5; fuse ij=(i, j); unfuse ij=(p: 4, q: 3)"])  # fmt: skip
def test_threads_without_a_tile_stay_idle_when_its_axes_are_fused(steps: str) -> None:
    """A tile as large as its axis leaves a single piece, which the step below may divide: only one unit has it."""
    i, j = tl.axes(i=2, j=6)
    X = tl.input("X", tl.float32, i, j)
    twice = tl.computation("twice", tl.define("Y", 2 * X[i, j], i, j))
    assert not faults(tl.parse(f"{twice.text}schedule s for twice {{ {steps} }}").schedule("s"))
