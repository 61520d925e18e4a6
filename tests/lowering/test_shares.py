"""What loads and stages hold: a thread's elements in registers, walks that reach beyond them, regions that vary or are empty."""

import pytest

import tilelang as tl
from tilelang import testing
from tilelang.core.expr import Expr
from tilelang.errors import Refusal
from tilelang.lowering import ir
from tilelang.schedules.steps import Place
from tilelang.testing import families


def faults(made: tl.Schedule) -> list[str]:
    """What is wrong with a schedule in the simulator and on the device."""
    return testing.check_schedule(made, testing.arrays(made.computation), opencl=True)


def test_a_vector_wider_than_a_share_reads_registers_that_there_are() -> None:
    c = families.softmax(rows=3, columns=1, dtype="float32")
    shifted = tl.move().tile(j=2).to("thread")
    made = (
        tl.schedule(c).tile(i=2).to("block").compute("shifted", "register", steps=shifted).tile(j=2).to("thread").vectorize(j=8)
    )
    (register,) = [b for k in testing.lowered(made).kernels for b in k.registers if b.name == "shifted_register"]
    assert register.shape[-1] == 8
    assert not faults(made)


def test_a_share_through_a_quotient_is_fetched_within_its_region() -> None:
    c = families.softmax(rows=2, columns=3, dtype="float32")
    made = tl.schedule(c).fuse(ij=("i", "j")).tile(ij=4).to("block").load("total", "register")
    assert not faults(made)


@pytest.mark.parametrize("rows, columns, tile, sizes", [(1, 1, "j", (4, 1)), (1, 5, "i", (4, 2))])
def test_a_neighbour_in_another_threads_registers_is_refused(rows: int, columns: int, tile: str, sizes: tuple[int, int]) -> None:
    block, thread = sizes
    c = families.staged(rows=rows, columns=columns, dtype="float32", first=(), second=(), kind="none")
    made = tl.schedule(c).units(block=tl.warps(1)).tile(**{tile: block}).to("block")
    made = made.compute("P", "register", steps=tl.move().tile(j=thread).to("thread")).tile(j=thread).to("thread")
    with pytest.raises(tl.Refusal) as refused:
        testing.lowered(made)
    assert refused.value.code == "reader-is-not-owner"
    assert f"= (0, {thread})" in (refused.value.counterexample or "")


def test_a_walk_that_its_loop_trims_stays_within_a_share() -> None:
    c = families.softmax(rows=5, columns=8, dtype="float32")
    made = (
        tl.schedule(c)
        .tile(i=5)
        .to("block")
        .compute("shifted", "register")
        .compute("total", "register")
        .split(i=2, j=4, peel=True)
    )
    assert not faults(made)


def test_what_a_quotient_mixes_with_the_thread_every_thread_has() -> None:
    c = families.gather(rows=5, bag=4, width=11, table=11, dtype="uint32", kind="max")
    made = tl.schedule(c).fuse(be=("b", "e")).tile(be=8).to("block").tile(be=2).to("warp").load("ids", "register")
    assert not faults(made)


def test_what_is_left_follows_the_owners_in_registers() -> None:
    c = families.staged(rows=7, columns=13, dtype="float32", first=(), second=(), kind="sum")
    made = tl.schedule(c).units(block=tl.threads(4)).tile(i=1).to("block")
    made = made.compute("P", "register", steps=tl.move().tile(j=4).to("thread").vectorize(j=2))
    assert not faults(made)
    assert "tile j=4 -> thread" in "".join(testing.lowered(made).kernels[-1].notes)


def test_a_region_that_is_smaller_in_the_first_round_fits_its_ring() -> None:
    c = families.convolution(
        n=1, channels=1, size=2, filters=1, window=3, stride=1, dilation=1, pad=1, dtype="float32", depthwise=False
    )
    made = tl.schedule(c).fuse(rs=("r", "s")).tile(c=2).to("block").split(rs=8).load("X", "shared", ahead=1)
    assert not faults(made)


def test_nothing_is_moved_for_points_that_cannot_exist() -> None:
    c = families.gather(rows=1, bag=0, width=1, table=1, dtype="float32", kind="sum")
    made = tl.schedule(c).tile(t=1).to("block").load("table", "shared")
    assert not faults(made)


def test_a_part_of_what_is_staged_by_access_is_staged_again() -> None:
    c = families.gather(rows=2, bag=3, width=2, table=5, dtype="float32", kind="max")
    made = tl.schedule(c).tile(b=2).to("block").load("table", "shared").split(t=1).load("table", "shared")
    assert not faults(made)


@pytest.mark.parametrize("name", ["X", "squares"])
def test_a_load_that_a_stage_of_its_round_makes_or_reads_does_not_run_ahead(name: str) -> None:
    c = families.normalised(rows=2, columns=2, dtype="float32")
    made = tl.schedule(c).tile(j=1).to("block").split(i=1).compute("count", "shared")
    assert not faults(made.load(name, "shared"))
    with pytest.raises(tl.Refusal) as refused:
        testing.lowered(made.load(name, "shared", ahead=1))
    assert refused.value.code == "not-lowered-yet"


def test_a_vector_reads_beyond_what_declared_owners_were_given() -> None:
    m, n, k = tl.axes(m=3, n=7, k=4)
    A, B = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n)
    made = tl.schedule(tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n)).tile(m=3, n=7).to("block")
    made = made.load("B", "register", steps=tl.move().tile(n=8).to("thread")).vectorize(n=4)
    assert not faults(made)


@pytest.mark.parametrize("memory, ahead", [("register", 1), ("shared", 0), ("shared", 1), ("l1", 1)])
def test_a_load_that_waits_for_its_reader_moves_nothing_in_the_prefix_before(memory: str, ahead: int) -> None:
    """Only S reads A, in a kernel of its own until `compute S` stands below the load."""
    m, n, k, p = tl.axes(m=4, n=5, k=11, p=3)
    A, B, D = tl.input("A", tl.float32, m, p), tl.input("B", tl.float32, p, k), tl.input("D", tl.float32, k, n)
    S = tl.define("S", tl.sum(A[m, p] * B[p, k], over=p), m, k)
    c = tl.define("C", tl.sum(S[m, k] * D[k, n], over=k), m, n)
    made = tl.schedule(c).tile(m=2, n=3).to("block").split(k=3).load("A", memory, ahead=ahead).compute("S", "shared")
    assert not faults(made)
    assert not faults(made.prefix(3))
    (note,) = testing.lowered(made.prefix(3)).kernels[-1].notes
    assert note.endswith("no effect, because A is read by S, which is a separate kernel")


def test_what_is_read_here_too_is_moved_here() -> None:
    """T reads A in a kernel of its own, and Y does below the load."""
    m, k = tl.axes(m=6, k=8)
    A = tl.input("A", tl.float32, m, k)
    T = tl.define("T", tl.sum(A[m, k], over=k), m)
    made = tl.schedule(tl.define("Y", A[m, k] - T[m], m, k)).tile(m=2, k=4).to("block").load("A", "shared")
    assert not faults(made)
    (*_, kernel) = testing.lowered(made).kernels
    assert [b.name for b in kernel.shared] == ["A_shared"] and kernel.notes == ()


def test_what_a_load_and_an_accumulator_move_comes_from_their_lines() -> None:
    m, n, k = tl.axes(m=16, n=16, k=8)
    A, B = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n)
    plan = tl.schedule(tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n)).tile(m=16, n=16).to(tl.block)
    plan = plan.accumulate(tl.register)
    plan = plan.split(k=1)
    plan = plan.load("A", tl.register)
    kernel = tl.compile(plan.tile(m=2, n=2).to(tl.thread), target=tl.target("opencl", profile="simulated"))
    spans = {step.verb: getattr(step, "span", None) for step in plan.steps if isinstance(step, Place)}
    found = {
        (s.buffer.name, s.span) for s in ir.statements(kernel.program.kernels[0].body)
        if isinstance(s, ir.Store) and s.buffer.name in ("A_register", "C")
    }  # fmt: skip
    assert found == {("A_register", spans["load"]), ("C", spans["accumulate"])} and None not in spans.values()


@pytest.mark.parametrize("tile, lanes", [(2, 4), (6, 4), (6, 8)])
@pytest.mark.parametrize("stage", [False, True])
def test_a_vector_wider_than_a_tile_gives_a_thread_no_elements_of_its_neighbour(stage: bool, tile: int, lanes: int) -> None:
    """The registers of a thread have room for whole vectors, in which what lies beyond its tile is not there."""
    i, j = tl.axes(i=4, j=16)
    x = tl.input("X", tl.float32, i, j)
    p = tl.define("P", x[i, j] * 3, i, j) if stage else x
    alone, beside = p[i, j] * 2, p[i, j] + tl.pad(p[i, j - 1], 0)

    def read(value: Expr) -> tl.Schedule:
        made = tl.schedule(tl.define("Y", value, i, j)).units(block=tl.threads(2)).tile(i=2).to("block")
        steps = tl.move().tile(j=tile).to("thread").vectorize(j=lanes)
        made = made.compute("P", "register", steps=steps) if stage else made.load("X", "register", steps=steps)
        return made.tile(j=tile).to("thread")

    assert not faults(read(alone))
    with pytest.raises(Refusal, match="is in another thread's registers"):
        faults(read(beside))


def test_a_walk_in_whose_last_round_a_thread_has_no_registers() -> None:
    """The fill beyond the tensor's end stands in the other thread's registers: no point exists there, so nobody reads it."""
    c = families.divided(outer=1, inner=4, dtype="float32", form="join", summed=True)
    made = tl.schedule(c).tile(j=6).to("block").accumulate("register")
    made = made.load("X", "register", steps=tl.move().tile(j=3).to("thread"))
    assert not faults(made.split(j=5).tile(j=3).to("thread"))


def test_the_last_vector_of_a_comparison_compares_no_register_beyond_a_share() -> None:
    """The least square and where it stands: what both rest on waits in a register, which is as wide as the vector."""
    made = families.reduction("argmin", (), (13, 3), "int32", "square", "none", (), True)
    plan = tl.schedule(made).units(block=tl.threads(2)).tile(j=4).to("block").accumulate("register")
    assert not faults(plan.load("X", "register", steps=tl.move().tile(j=1).to("thread")).vectorize(k=2))


def rows(extent: int, tile: int, place: str, spread: str, again: bool, below: str, units: str = "") -> tl.Schedule:
    """Twice the sums of rows, which `place` puts in registers by its own tiles; again: they are given to their readers once more."""
    return tl.parse(f"""
        computation f {{
          input X: float32[j: {extent}, k: 3]
          sums[j] = sum[k] X[j, k]
          output Y[j] = sums[j] * 2.0
        }}
        schedule for f {{
          {units}
          tile j={tile} -> block
          compute sums in {"register" if place == "sums" else "shared"} {"{" + spread + "}" if place == "sums" else ""}
          {"load sums in register {" + spread + "}" if place == "load" else ""}
          {"load sums in register" if again else ""}
          {below}
        }}
    """).schedule()


@pytest.mark.parametrize("place", ["sums", "load"])
@pytest.mark.parametrize(("extent", "tile", "spread"), [(4, 4, "split j=2"), (8, 8, "split j=3"), (9, 5, "split j=2")])
def test_a_thread_without_a_tile_has_no_element(place: str, extent: int, tile: int, spread: str) -> None:
    """With more threads than tiles in a chunk, the numbers of idle threads go on in the next chunk's elements."""
    spread += "; tile j=1 -> thread"
    with pytest.raises(tl.Refusal) as refused:
        rows(extent, tile, place, spread, False, "tile j=1 -> thread").check("simulated")
    assert refused.value.code == "reader-is-not-owner" and refused.value.proven
    assert not faults(rows(extent, tile, place, spread, True, "tile j=1 -> thread"))


@pytest.mark.parametrize("spread", ["split j=2", "split j=3; vectorize j=2"])
def test_a_walk_alone_gives_each_thread_what_it_reads(spread: str) -> None:
    """A load in registers without tiles spreads nothing, and its walks say nothing of owners."""
    for below in ("tile j=1 -> thread", "tile j=2 -> thread", "split j=2; tile j=1 -> thread"):
        assert not faults(rows(8, 8, "load", spread, False, below))


def test_readers_with_the_tiles_of_the_owners_may_be_fewer_than_threads() -> None:
    spread = "split j=3; tile j=1 -> thread"
    assert not faults(rows(8, 8, "load", spread, False, spread, "units block = 5 thread"))


def test_a_walk_whose_condition_reads_what_is_placed_below_it() -> None:
    """Whether its last round needs a test is asked before E is anywhere."""
    computation = (
        "computation f { axis j: 7 input A: float32[k: 20] E[k] = A[k] * 2.0"
        " output Z[k] = sum[j] where(E[k] < 0.5, min(E[k], -1.0), 0.0) }"
    )
    for place in ("shared", "register"):
        steps = f"schedule for f {{ tile j=16 k=32 -> block; split k=2 j=4; compute E in {place} }}"
        assert not faults(tl.parse(computation + steps).schedule())


def test_a_walk_whose_index_reads_a_register_of_another_thread_is_refused() -> None:
    """Not where the last round is asked about: threads get other shares below."""
    computation = (
        "computation f { input table: float32[v: 11] input ids: int32[b: 13, t: 7] in 0 .. 11"
        " output Y[b] = max[t] table[cast(ids[b, t], int64)] }"
    )
    steps = "schedule for f { tile b=8 -> block; accumulate in register; split t=4; load ids in register { tile b=1 -> thread };"
    with pytest.raises(Refusal, match="is in another thread's registers"):
        faults(tl.parse(f"{computation} {steps} split t=2; tile b=2 -> thread; split t=1 }}").schedule())
