"""Walks whose last piece is peeled, below walks that are written out and tiles that go beyond them."""

import pytest

import tilelang as tl
from tests.lowering.test_shares import faults
from tilelang import testing
from tilelang.lowering import ir


def doubled(rows: int, columns: int) -> tl.Schedule:
    """Y = 2 X, a row per block of two warps."""
    i, j = tl.axes(i=rows, j=columns)
    x = tl.input("X", tl.float32, i, j)
    return tl.schedule(tl.define("Y", x[i, j] * 2, i, j)).units(block=tl.warps(2)).tile(i=1).to("block")


@pytest.mark.parametrize("rows", [0, 2])
@pytest.mark.parametrize("columns", [5, 11])
def test_a_peeled_walk_in_a_tile_as_long_as_the_whole_axis(rows: int, columns: int) -> None:
    """The bounds of the tile and of the axis have one limit, and the peeled walk takes the place of the first alone."""
    made = doubled(rows, columns).split(j=4, unroll=True).tile(j=columns).to("warp").split(j=4, peel=True)
    assert not faults(made.tile(j=1).to("thread", count=8))


@pytest.mark.parametrize("ahead", [0, 1])
def test_a_peeled_walk_stores_what_no_point_contributes_to(ahead: int) -> None:
    """The only whole piece of the last rows lies before the first that their window needs."""
    i, j = tl.axes(i=13, j=4)
    x = tl.input("X", tl.float32, i, j)
    made = tl.schedule(tl.define("Y", tl.prod(x[i, j], over=j, where=(i - 2 <= j) & (j <= i + 1)), i)).tile(i=4, j=6).to("block")
    made = made.split(j=4, peel=True).accumulate("register").load("X", "register", ahead=ahead)
    assert not faults(made)


def test_the_whole_pieces_of_a_peeled_walk_read_without_conditions() -> None:
    """They lie inside what shared memory holds, whose rows are not a whole number of pieces."""
    m, n, k = tl.axes(m=8, n=16, k=20)
    a, b = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n)
    made = tl.schedule(tl.define("C", tl.sum(a[m, k] * b[k, n], over=k), m, n)).tile(m=8).to("block").split(k=10)
    made = made.load("B", "shared").split(m=2).accumulate("register").split(k=4, peel=True).split(k=1, unroll=True)
    made = made.load("B", "register", steps=tl.move().vectorize(n=16)).split(m=1, unroll=True).vectorize(n=16)
    assert not faults(made)
    source = tl.compile(made, tl.target("opencl", profile="sapphire_rapids")).source
    whole, partial = source.split("< 2; ++k_", 1)[1].split("float16 B_register_1", 1)
    assert "float16 B_register" in whole and "?" not in whole and "?" in partial


def test_a_walk_is_not_written_out_as_thousands_of_statements() -> None:
    n, p, i = tl.axes(n=16, p=32, i=2)
    X = tl.input("X", tl.float32, n, p, i)
    Y = tl.define("Y", tl.max(X[n, p, i] * 2.0 + X[n, 31 - p, i], over=(p, i)), n)

    def made(unroll: bool) -> tl.Schedule:
        start = tl.schedule(Y).split(p=4, unroll=unroll).split(i=2, p=2, peel=True).split(n=2, i=5, p=8)
        start = start.split(n=4, i=2, peel=True).split(p=16, i=16, n=16).tile(p=8).to(tl.thread)
        return start.split(i=16, n=1, peel=True).compute("Y", tl.global_)

    with pytest.raises(tl.Refusal, match="the loop over p is unrolled 8 times, .* more than 2,048 statements") as refused:
        tl.compile(made(True), tl.target("cpu", profile="sapphire_rapids"))
    assert refused.value.code == "unrolled-too-long" and "remove `unroll`" in str(refused.value)
    assert len(tl.compile(made(False), tl.target("cpu", profile="sapphire_rapids")).source) < 100_000


def test_a_walk_that_nobody_asked_to_unroll_says_why_it_is_written_out() -> None:
    n, p = tl.axes(n=700, p=4)
    X = tl.input("X", tl.float32, n, p)
    plan = tl.schedule(tl.define("Y", tl.argmax(X[n, p], over=p), n)).tile(n=700).to(tl.block).accumulate(tl.register)
    plan = plan.split(n=350).split(p=1).split(n=1)
    with pytest.raises(tl.Refusal, match="the loop over n indexes registers and is unrolled 2 times") as refused:
        plan.check("sapphire_rapids")
    assert refused.value.code == "unrolled-too-long" and "keep fewer values in registers" in str(refused.value)


@pytest.mark.parametrize("walks", [2, 5, 20])
def test_walks_that_are_all_peeled_are_not_written_out_thousands_of_times(walks: int) -> None:
    """Each of them doubles what stands below; what is refused is so before all of it is made."""
    i, j = tl.axes(i=50, j=50)
    made = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i, j)[i, j] * 2.0, i, j)).tile(i=45).to(tl.block)
    for n in range(walks):
        made = made.split(i=39 - n, peel=True).split(j=39 - n, peel=True)
    if walks < 5:
        assert not faults(made.split(i=1))
        return
    with pytest.raises(tl.Refusal, match="generates its body twice") as refused:
        testing.lowered(made)
    assert refused.value.code == "unrolled-too-long" and "remove `peel`" in str(refused.value)


def test_loops_over_registers_stay_loops_where_those_inside_do() -> None:
    """Registers that a loop addresses are an array: writing the loops around it out would only repeat it."""
    n, p, q, f, c = tl.axes(n=16, p=17, q=17, f=4, c=3)
    X = tl.input("X", tl.float32, n, p, q, c, f)
    made = tl.schedule(tl.define("Z", tl.sum(X[n, p, q, c, f], over=c), n, p, q, f)).split(c=1)
    assert len(tl.compile(made, tl.target("cpu")).source) < 30_000


def test_a_kernel_that_keeps_much_in_registers_is_not_written_out_without_end() -> None:
    """No loop of it is long, but there are many: what addresses registers is written out whether `unroll` is said or not."""
    i, j = tl.axes(i=32, j=32)
    inputs = [tl.input(f"X{n}", tl.float32, j, i) for n in range(9)]
    made = tl.schedule(tl.define("Y", sum((x[j, i] for x in inputs[1:]), inputs[0][j, i]), i, j)).tile(i=32).to(tl.block)
    for x in inputs:
        made = made.load(x, tl.register)
    profile = tl.target("cpu", profile="zen5").profile
    with pytest.raises(tl.Refusal, match="longer than 8,192 statements") as refused:
        made.check(profile)
    assert refused.value.code == "unrolled-too-long" and "keep fewer values in registers" in str(refused.value)
    made.prefix(4).check(profile)


@pytest.mark.parametrize("rows, tile, piece", [(1, 2, 1), (1, 8, 1), (5, 8, 3), (9, 8, 3), (37, 16, 3)])
def test_a_peeled_move_fills_all_that_lies_outside(rows: int, tile: int, piece: int) -> None:
    """Rows beyond the last one hold the fill: threads that have none reduce them without a guard, and branch on what they find."""
    made = tl.parse(f"""computation f {{
      input A: float32[m: {rows}, k: 2]
      output Y[m] = argmax[k] pad(A[m, k + 1], 3.0)
    }}
    schedule s for f {{ tile m={tile} -> block; load A in shared {{ split m={piece} peel }}; tile m=1 -> thread }}
    """).schedule()
    simulated = tl.load_profile("simulated")
    assert not testing.check_schedule(made, testing.arrays(made.computation), profile=simulated)
    (kernel,) = testing.lowered(made, simulated).kernels
    assert {s.var.lower for s in ir.statements(kernel.body) if isinstance(s, ir.For)} == {0}, "loops count from 0"


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_a_peeled_move_stays_inside_the_stage_that_all_threads_of_a_unit_fill(rows: int) -> None:
    """The cut that gives each thread one element comes after bounds of the same extent that the whole pieces keep anyway."""
    made = tl.parse(f"""computation f {{
      input A: float32[k: {rows}]
      output Y[k] = A[k] + 1
    }}
    schedule s for f {{ tile k=1 -> warp 2; split k=3; load A in register {{ split k=1 peel; via shared }} }}
    """).schedule()
    assert not testing.check_schedule(made, testing.arrays(made.computation), profile=tl.load_profile("simulated"))


def test_all_threads_have_as_many_whole_pieces() -> None:
    """The last thread's tile goes beyond the row: its pieces have guards, but no loop is shorter for it."""
    i, j = tl.axes(i=2, j=21)
    x = tl.input("X", tl.float32, i, j)
    made = tl.schedule(tl.define("Y", x[i, j] * 2, i, j)).tile(i=1).to("block").tile(j=8).to("thread").split(j=3, peel=True)
    assert not faults(made)
    (kernel,) = testing.lowered(made).kernels
    extents = {str(s.extent) for s in ir.statements(kernel.body) if isinstance(s, ir.For)}
    assert extents and not any("thread" in extent for extent in extents)


@pytest.mark.parametrize("wide", [2, 3])
@pytest.mark.parametrize("peel", [True, False])
def test_a_tile_wider_than_what_a_thread_has_leaves_its_neighbour_alone(wide: int, peel: bool) -> None:
    """The accumulator outside has room for the elements beyond a thread's own, but they are those of other threads."""
    i, j = tl.axes(i=8, j=2)
    X = tl.input("X", tl.float32, i, j)
    plan = tl.schedule(tl.define("Y", tl.sum(X[i, j], over=j), i)).accumulate(tl.shared).split(i=7, peel=peel)
    plan = plan.tile(i=1).to(tl.thread).split(i=wide).accumulate(tl.register)
    for profile in ("ampere", "zen4"):
        target = tl.target(tl.load_profile(profile).dialects[0], profile=profile)
        assert not tl.simulate(tl.compile(plan, target)).counts
