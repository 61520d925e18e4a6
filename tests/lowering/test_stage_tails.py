"""Stages and registers below cuts that do not divide: what no point reads is neither made nor read, in whatever memory it would be."""

import numpy as np
import pytest

import tilelang as tl
from tests.lowering.test_shares import faults
from tilelang import testing
from tilelang.testing import families
from tilelang.testing.planner import tiny_profile


def product_of_a_stage(m: int, n: int, k: int) -> tl.Tensor:
    """C = S B, where S is made of A element by element."""
    rows, columns, inner = tl.axes(m=m, n=n, k=k)
    a, b = tl.input("A", tl.float32, rows, inner), tl.input("B", tl.float32, inner, columns)
    s = tl.define("S", a[rows, inner] * 2 + 1, rows, inner)
    return tl.define("C", tl.sum(s[rows, inner] * b[inner, columns], over=inner), rows, columns)


def neighbours(m: int, n: int) -> tl.Tensor:
    """A stage that is read where it stands, a column before and a row after."""
    rows, columns = tl.axes(m=m, n=n)
    a = tl.input("A", tl.float32, rows, columns)
    s = tl.define("S", a[rows, columns] * 2 + 1, rows, columns)
    beside = tl.pad(s[rows, columns - 1], 0) * 3 - tl.pad(s[rows + 1, columns], 0)
    return tl.define("C", s[rows, columns] + beside, rows, columns)


def sums_of_a_diagonal(m: int, n: int) -> tl.Tensor:
    """A stage that two axes of its reader index together."""
    rows, columns = tl.axes(m=m, n=n)
    a = tl.input("A", tl.float32, p=m + n)
    along = tl.axes(p=m + n)
    s = tl.define("S", a[along] * 2 + 1, along)
    return tl.define("C", s[rows + columns] + 1, rows, columns)


def test_stages_of_a_softmax_below_a_walk_that_does_not_divide() -> None:
    made = tl.schedule(families.softmax(rows=16, columns=6, dtype="float32")).tile(i=8).to("block").load("X", "shared")
    made = made.split(i=3).compute("peak", "register").compute("shifted", "shared").compute("total", "register")
    assert not faults(made.tile(j=4).to("thread"))


@pytest.mark.parametrize("ahead", [0, 1])
@pytest.mark.parametrize("memory", ["shared", "register"])
def test_a_stage_below_two_walks_of_a_reduction(memory: str, ahead: int) -> None:
    made = tl.schedule(product_of_a_stage(8, 4, 30)).tile(m=8).to("block").accumulate("register").split(k=16)
    assert not faults(made.load("A", "shared").split(k=6).compute("S", memory, ahead=ahead))


def test_a_stage_of_each_thread_whose_tile_does_not_divide() -> None:
    made = tl.schedule(product_of_a_stage(8, 4, 8)).tile(m=4).to("block").load("A", "shared").tile(m=3).to("thread")
    made = made.compute("S", "shared")
    assert not testing.check_schedule(made, testing.arrays(made.computation), profile=tiny_profile(), opencl=True)


def test_a_tile_that_is_wider_than_the_one_around_it() -> None:
    made = tl.schedule(product_of_a_stage(10, 4, 8)).tile(m=5).to("block").load("A", "shared").split(m=8)
    assert not faults(made.compute("S", "shared"))


def test_a_tile_wider_than_a_piece_that_was_tested_is_tested_again() -> None:
    rows, columns = tl.axes(i=1, j=2)
    x = tl.input("X", tl.float32, rows, columns)
    s = tl.define("S", tl.sum(x[rows, columns], over=columns), rows)
    above = tl.pad(x[rows - 1, columns], 0)
    made = tl.schedule(tl.define("Y", tl.sum(s[rows] + above, over=columns), rows)).tile(i=16).to("block").split(i=1)
    made = made.load("X", "shared").tile(i=2).to("thread").compute("S", "register")
    assert not testing.check_schedule(made, testing.arrays(made.computation), profile=tl.load_profile("simulated"))


@pytest.mark.parametrize("memory", ["shared", "register"])
def test_a_stage_that_neighbours_read_is_loaded_where_it_was_made(memory: str) -> None:
    for sizes in ({"m": 8}, {"m": 2}, {"m": 8, "n": 9}):
        made = tl.schedule(neighbours(10, 12)).tile(**sizes).to("block").load("A", "shared").split(m=3)
        assert not faults(made.compute("S", "shared").load("S", memory))


def test_a_stage_that_two_axes_index_together_ends_where_both_do() -> None:
    made = tl.schedule(sums_of_a_diagonal(8, 8)).tile(m=8, n=8).to("block").load("A", "shared").split(m=3, n=5)
    assert not faults(made.compute("S", "shared"))


def test_a_stage_through_a_quotient_reads_only_what_was_loaded() -> None:
    made = tl.schedule(neighbours(6, 20)).fuse(mn=("m", "n")).tile(mn=16).to("block").load("A", "shared").split(mn=3)
    assert not faults(made.compute("S", "shared"))


# ---------------------------------------------------------------- owners whose last piece is not whole


def test_registers_beyond_a_declared_region_are_not_read() -> None:
    c = families.softmax(rows=2, columns=10, dtype="float32")
    owners = tl.move().tile(j=3).to("thread")
    made = tl.schedule(c).tile(i=1).to("block").load("X", "register", steps=owners)
    assert not faults(made.compute("peak", "register").compute("shifted", "register").compute("total", "register"))


def test_a_stage_of_registers_with_a_tail_of_their_own() -> None:
    owners = tl.move().tile(m=3).to("thread")
    made = tl.schedule(product_of_a_stage(8, 4, 4)).tile(m=4).to("block").load("A", "register", steps=owners)
    made = made.compute("S", "register")
    assert not testing.check_schedule(made, testing.arrays(made.computation), profile=tiny_profile(), opencl=True)


def test_a_ring_of_registers_with_a_tail_moves_on_as_a_whole() -> None:
    i, j = tl.axes(i=4, j=6)
    rows, column = tl.input("A", tl.float32, i, j), tl.input("b", tl.float32, j)
    made = tl.schedule(tl.define("C", tl.sum(rows[i, j] * column[j], over=j), i)).tile(i=4).to("block").split(j=5)
    assert not faults(made.load("b", "register", ahead=1, steps=tl.move().tile(j=16).to("thread")))


# ---------------------------------------------------------------- loads before there is anything to load


@pytest.mark.parametrize("ahead", [0, 1])
@pytest.mark.parametrize("layout", [None, tl.layout("k", "m")], ids=str)
def test_a_load_before_the_stage_that_makes_its_tensor_is_refused(layout: tl.Layout | None, ahead: int) -> None:
    made = tl.schedule(product_of_a_stage(8, 4, 8)).tile(m=4).to("block").split(k=2)
    with pytest.raises(tl.Refusal) as refused:
        testing.lowered(made.load("S", "shared", layout=layout, ahead=ahead).compute("S", "shared"))
    assert refused.value.code == "stage-order"


def test_a_load_of_what_the_kernel_makes_is_refused() -> None:
    made = tl.schedule(product_of_a_stage(8, 4, 8)).tile(m=4).to("block").load("C", "shared")
    with pytest.raises(tl.Refusal) as refused:
        testing.lowered(made)
    assert refused.value.code == "load-unread"


@pytest.mark.parametrize(
    "read, elements", [("(j * 2) % 8", (0, 2, 4)), ("(j + 5) % 8", (5, 6, 7)), ("(j * 2 + 1) // 2 % 8", (0, 1, 2))]
)
@pytest.mark.parametrize(
    "around, cut", [(1, "tile j=5 -> thread"), (1, "split j=5"), (2, "tile j=9 -> thread"), (3, "split j=9")]
)
@pytest.mark.parametrize("memory", ["shared", "register"])
def test_remainders_below_a_cut_that_is_wider_than_the_piece(
    read: str, elements: tuple[int, ...], around: int, cut: str, memory: str
) -> None:
    """The points of the piece do not wrap, those beyond it would: only what the piece reads is made of what was loaded for it."""
    made = tl.parse(f"""computation f {{
      input A: float32[l: 8]
      axis j: 3
      S[l] = A[l] + 1.0
      output Y[j] = S[{read}]
    }}
    schedule s for f {{ tile j={around} -> block; load A in shared; {cut}; compute S in {memory} }}
    """).schedule()
    report = tl.simulate(tl.compile(made, tl.target("opencl", profile="simulated")), A=np.arange(8, dtype=np.float32))
    assert not report.findings
    np.testing.assert_array_equal(report.outputs["Y"], [expected + 1 for expected in elements])
