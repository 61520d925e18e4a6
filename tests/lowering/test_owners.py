"""Which points of a spec want what stands in another thread's registers."""

from __future__ import annotations

import pytest

import tilelang as tl
from tilelang.core.distribution import MOST_POINTS
from tilelang.core.expr import INDEX, Binary, Expr, Var, index
from tilelang.core.simplify import simplify
from tilelang.lowering import ir
from tilelang.lowering.build.distribution.owners import _registers, existing_beyond, of_threads, stored_by_another
from tilelang.lowering.build.distribution.register_slices import dim_share
from tilelang.lowering.build.movement.storage import DimShare, _all_among
from tilelang.schedules.spec import root_spec
from tilelang.schedules.steps import Place
from tilelang.schedules.task import make_task

T, W, BLOCK = Var("thread", INDEX, 0, 7), Var("w", INDEX, 0, 3), Var("block_x", INDEX, 0, 7)


@pytest.mark.parametrize(
    ("wanted", "conditions", "dim"),
    [
        (T % 4, (), None),
        (T, (), 5),
        (T, (T < 4,), None),
        (T, (T < 5,), 5),
        (T + W, (T < 2,), 5),
        (T + W, (T < 2, W < 3), None),
        (T, (BLOCK * 8 + T < 4,), 5),  # other blocks are not asked
        (T + BLOCK, (), 5),
        (W, (index(1) < 0,), None),  # nothing exists
    ],
)
def test_a_point_that_exists_wants_what_its_thread_has_not(wanted: Expr, conditions: tuple[Expr, ...], dim: int | None) -> None:
    assert existing_beyond([(5, wanted, range(4))], list(conditions), 8) == dim


def test_the_dimension_is_the_first_in_which_it_does() -> None:
    assert existing_beyond([(0, T % 4, range(4)), (1, T, range(4)), (2, W + 3, range(4))], [], 8) == 1


def test_what_is_too_much_to_enumerate_may_exist() -> None:
    walk = Var("w", INDEX, 0, MOST_POINTS // 512 - 1)
    few, many = Var("thread", INDEX, 0, 511), Var("thread", INDEX, 0, 1023)
    assert existing_beyond([(0, (few + walk) % 4, range(4))], [], 512) is None
    assert existing_beyond([(0, (many + walk) % 4, range(4))], [], 1024) == 0


def test_coordinates_are_of_every_thread_and_round() -> None:
    found = of_threads([T * 2, W, index(3)], 8).table()
    assert found is not None
    points = set(zip(found.holder.tolist(), *(x.tolist() for x in found.coordinates), strict=True))
    assert points == {(t, 2 * t, w, 3) for t in range(8) for w in range(4)}


@pytest.mark.parametrize(
    ("first", "last", "values", "all_of_them"),
    [
        (0, 3, range(4), True),
        (0, 4, range(4), False),
        (-1, 2, range(4), False),
        (0, 4, range(0, 8, 2), False),
        (4, 4, range(0, 8, 2), True),
        (1, 1, range(0, 8, 2), False),
        (2, 4, (4, 2, 3), True),
        (2, 4, (2, 4, 6), False),
    ],
)
def test_whole_numbers_among_values(first: int, last: int, values: range | tuple[int, ...], all_of_them: bool) -> None:
    assert _all_among(first, last, values) == all_of_them


@pytest.mark.parametrize(
    ("owners", "said"),
    [
        ([], "no thread's registers"),
        ([2], "the registers of thread 2"),
        ([0, 3], "the registers of threads 0, 3"),
        ([0, 1, 2, 3], "the registers of threads 0, 1, 2, 3"),
        ([1, 2, 3, 4, 5], "the registers of threads 1, 2, 3, 4, ..."),
    ],
)
def test_the_first_four_threads_that_hold_an_element_are_told(owners: list[int], said: str) -> None:
    assert _registers(owners) == said


def test_an_element_stored_by_another_thread_is_told() -> None:
    """Three threads hold two neighbours each; they store every third."""
    i = tl.axes(i=6)
    task = make_task((tl.define("Y", tl.input("X", tl.float32, i)[i], i),), lambda t: False)
    thread = Var(ir.THREAD.name, INDEX, 0, 2)
    whole = root_spec(task)
    twos, thirds = whole.cut({"i": 2}, {"i": thread}), whole.cut({"i": 1}, {"i": thread})
    element = Var("element", INDEX, 0, 1)
    held = twos.cut({"i": 1}, {"i": element})
    assert stored_by_another("Y", whole, held, held, 3) is None
    wrong = stored_by_another("Y", whole, held, thirds, 3)
    assert wrong is not None
    assert wrong.startswith("the element of Y at i = 1,") and wrong.endswith(
        "stored by thread 1 but is in the registers of thread 0"
    )


def test_tiles_of_the_largest_blocks_are_enumerated() -> None:
    """4,096 threads with 300 elements each; the last tile of each warp ends after its first element."""
    thread, walk = Var("thread", INDEX, 0, 4095), Var("k", INDEX, 0, 299)
    x = thread % 32 * 300 + walk
    assert existing_beyond([(0, x, range(9301))], [Binary("<", x, index(9301))], 4096) is None
    assert existing_beyond([(0, x, range(9301))], [Binary("<", x, index(9302))], 4096) == 0


@pytest.mark.parametrize("order", [1, -1])
def test_a_share_holds_the_longer_of_the_walks_that_read_it(order: int) -> None:
    """Both begin where the thread's part does; in whichever order they stand, eight elements are read."""
    thread = Var(ir.THREAD.name, INDEX, 0, 3)
    offsets = [thread * 8 + Var("few", INDEX, 0, 3), thread * 8 + Var("all", INDEX, 0, 7)][::order]
    assert dim_share(offsets, Place("load", "X", "register"), "X") == DimShare(simplify(thread * 8), 0, 8, None)


def test_a_share_of_pieces_apart_has_a_slot_for_each_offset_and_tests_for_others() -> None:
    """Three pieces of two neighbours, 8 apart, from offset 4 on."""
    piece, lane = Var("piece", INDEX, 0, 4), Var("lane", INDEX, 0, 2)
    share = DimShare(index(0), 4, 6, ((8, 3, 2), (1, 2, 1)))
    slot = share.slot([(piece, 8), (lane, 1)], 4)
    assert slot is not None and str(slot) == "piece * 2 + lane"
    assert [str(share.offset(index(n))) for n in range(6)] == ["4", "5", "12", "13", "20", "21"]
    assert [(str(x), list(values)) for x, values in share.tests([(piece, 8), (lane, 1)], 4)] == [
        ("piece", [0, 1, 2]),
        ("lane", [0, 1]),
    ]
    assert share.slot([(piece, 4)], 4) is None and share.slot([(piece, 8)], 0) is None
