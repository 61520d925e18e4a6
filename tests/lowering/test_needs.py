"""What readers reach against enumeration of their points, with isl and without it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilelang as tl
from tilelang.core.expr import INDEX, Binary, Expr, Var, free, index, substitute
from tilelang.core.layout import evaluate
from tilelang.core.simplify import linear
from tilelang.lowering import sets
from tilelang.lowering.needs import Apart, NotABox, Range, Reading, box, conditions
from tilelang.schedules.spec import Bound

BLOCK, ROUND = Var("block", INDEX, 0, 3), Var("round", INDEX, 0, 2)
ROW, COLUMN = Var("@row", INDEX), Var("@column", INDEX)
AROUND, OWN = (BLOCK, ROUND), (ROW, COLUMN)

sums = st.builds(
    lambda row, column, constant: ROW * row + COLUMN * column + constant,
    st.sampled_from((1, 1, 2, -1, 0)), st.sampled_from((0, 0, 1, 3)), st.integers(-3, 5),
)  # fmt: skip
divisors = st.integers(2, 9) | st.integers(-4, -1)
quotients = st.builds(lambda e, c, k: e // c + k, sums, divisors, st.integers(-2, 2))
clamps = st.builds(lambda op, e, c: Binary(op, e, index(c)), st.sampled_from(("min", "max")), st.one_of(sums, quotients),
                   st.integers(-2, 14))  # fmt: skip
remainders = st.builds(lambda e, c: e % c, sums, divisors)
one = st.builds(lambda row, constant: ROW * row + constant, st.sampled_from((1, 2, -1)), st.integers(-3, 5))
quotients_of_one = st.builds(lambda e, c: e // c, one, st.integers(2, 7))
clamps_of_one = st.builds(lambda op, e, c: Binary(op, e, index(c)), st.sampled_from(("min", "max")), one, st.integers(-2, 14))
indices = st.one_of(sums, quotients, clamps, remainders)


@st.composite
def readings(draw: st.DrawFn, index_of: st.SearchStrategy[Expr] = indices) -> Reading:
    """A reading of one dimension: pieces of two axes, in a walk within a block's tile, neither of which need divide."""
    ranges, bounds = dict[Expr, Range](), dict[Expr, tuple[Bound, ...]]()
    for v in OWN:
        tile, piece, extent = draw(st.integers(1, 6)), draw(st.integers(1, 4)), draw(st.integers(1, 20))
        base = BLOCK * tile + ROUND * piece
        ranges[v] = base, piece
        found = [Bound("", base, extent), Bound("", ROUND * piece, tile), Bound("", base, draw(st.integers(-1, 2)), True)]
        bounds[v] = tuple(b for b in found if not b.is_certain(piece))
    return Reading((draw(index_of),), ranges, bounds)


def points(reading: Reading, exist: bool) -> Iterator[tuple[dict[Var, Any], np.ndarray[Any, Any]]]:
    """(variables around, the indices there) of a reading, of all points of its piece or of those that exist."""
    for block in range(4):
        for round in range(3):
            around: dict[Var, Any] = {BLOCK: np.asarray(block), ROUND: np.asarray(round)}
            inside = np.meshgrid(*(np.arange(n) for _, n in reading.ranges.values()), indexing="ij")
            own = {v: evaluate(begin, around) + q for (v, (begin, _)), q in zip(reading.ranges.items(), inside, strict=True)}
            there = np.ones(inside[0].shape, bool)
            for v, q in zip(reading.ranges, inside, strict=True):
                for b in reading.bounds.get(v, ()) if exist else ():
                    at = evaluate(b.offset, around) + q
                    there &= at >= b.limit if b.lower else at < b.limit
            found = np.broadcast_to(np.asarray(evaluate(reading.indices[0], {**around, **own})), there.shape)
            yield around, found[there]


def check_box(reading: Reading) -> list[int]:
    """Where the reached elements lie in the box, after it was found that they do."""
    ((low, extent),) = reading.box
    assert free(low) <= set(AROUND)
    found = [int(x) - int(evaluate(low, around)) for around, reached in points(reading, True) for x in reached]
    assert all(0 <= x < extent for x in found), (str(reading.indices[0]), str(low), extent)
    return found


def check_conditions(group: list[Reading]) -> None:
    """That no reading reaches an element which the conditions leave out."""
    try:
        region = box(group, (40,))
    except Apart:
        return
    (bounds,) = conditions(group, region)
    for reading in group:
        for around, reached in points(reading, True):
            offsets = reached - int(evaluate(region[0][0], around))
            for b in bounds:
                at = offsets + int(evaluate(b.offset, around))
                assert np.all(at >= b.limit if b.lower else at < b.limit), (str(reading.indices[0]), str(b))


@contextlib.contextmanager
def without_the_library() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sets, "_library", lambda: None)
        sets._extremes.cache_clear()
        yield
    sets._extremes.cache_clear()


@given(readings())
def test_a_box_has_every_element_that_is_reached(reading: Reading) -> None:
    check_box(reading)


@given(st.lists(readings(), min_size=2, max_size=3), st.integers(-3, 3))
def test_a_box_of_several_readings_has_what_each_of_them_reaches(group: list[Reading], by: int) -> None:
    group = [*group, Reading((group[0].indices[0] + by,), group[0].ranges, group[0].bounds)]
    for some in (group, group[1:], [group[0], group[-1]]):
        with contextlib.suppress(Apart):
            ((low, extent),) = box(some, (40,))
            for reading in some:
                for around, reached in points(reading, True):
                    offsets = reached - int(evaluate(low, around))
                    assert np.all((offsets >= 0) & (offsets < extent)), (str(reading.indices[0]), str(low), extent)


@given(readings(sums))
def test_the_box_of_a_sum_is_what_the_points_of_a_piece_reach(reading: Reading) -> None:
    ((low, extent),) = reading.box
    for around, reached in points(reading, False):
        assert (reached.min(), np.ptp(reached) + 1) == (evaluate(low, around), extent)


@pytest.mark.skipif(not sets.available(), reason="intervals alone")
@given(readings(), st.one_of(quotients_of_one, clamps_of_one))
def test_the_box_through_a_quotient_or_a_clamp_is_the_least_that_begins_there(drawn: Reading, e: Expr) -> None:
    reading = Reading((e,), {ROW: drawn.ranges[ROW]}, {ROW: drawn.bounds[ROW]})
    begin, n = reading.ranges[ROW]
    inside = Var("inside", INDEX, 0, n - 1)
    terms, _ = linear(substitute(e, {ROW: begin + inside}))
    mixed = any(inside in free(atom) for atom, _ in terms if atom is not inside)  # else it is a sum, of all points
    found = check_box(reading)
    least = (min(found), max(found)) == (0, reading.box[0][1] - 1) if found else True
    assert least or not mixed or min(found) == max(found)  # where one element is read, the box of the intervals is kept


@given(readings(st.one_of(sums, quotients, remainders)))
def test_without_the_library_a_box_has_more_elements(reading: Reading) -> None:
    exact = reading.box[0][1]
    with without_the_library():
        wide = Reading(reading.indices, reading.ranges, reading.bounds)
        check_box(wide)
        check_conditions([wide])
    assert wide.box[0][1] >= exact


@given(readings(clamps))
def test_without_the_library_a_clamp_has_a_box(reading: Reading) -> None:
    with without_the_library():
        check_box(reading)


@given(readings(), st.lists(st.integers(-3, 3), max_size=2))
def test_conditions_leave_out_nothing_that_is_reached(reading: Reading, beside: list[int]) -> None:
    check_conditions([reading, *(Reading((reading.indices[0] + by,), reading.ranges, reading.bounds) for by in beside)])


@given(st.lists(readings(), min_size=1, max_size=3))
def test_conditions_hold_for_readings_that_have_nothing_in_common(group: list[Reading]) -> None:
    check_conditions(group)


def test_products_of_axes_and_values_of_tensors_are_not_a_box() -> None:
    ranges: dict[Expr, Range] = {ROW: (index(0), 4), COLUMN: (index(0), 4)}
    table = tl.input("T", tl.int32, tl.axes(i=4), range=(0, 9))
    for e in (ROW * COLUMN, table[(ROW,)]):
        with pytest.raises(NotABox):
            print(Reading((e,), ranges, {}).box)


@pytest.mark.parametrize("divisor", [2, 3, 4, 7])
def test_a_remainder_ends_before_the_divisor(divisor: int) -> None:
    reading = Reading((ROW % divisor,), {ROW: (ROUND * 5, 9)}, {})
    assert [str(e) for e in reading.ends(0, True)] == [str(divisor - 1)]
    assert [str(e) for e in reading.ends(0, False)] == ["0"]
    assert reading.within(0, index(0), divisor) and not reading.within(0, index(0), divisor - 1)


@pytest.mark.parametrize("factor", [-1, -2, 3])
@pytest.mark.parametrize("by", [2, 3, 5])
def test_the_box_of_a_multiple_of_a_quotient(factor: int, by: int) -> None:
    """Also of a negative one, with and without the library: pieces of 4 rows begin anywhere."""
    reading = Reading(((ROW + 1) // by * factor,), {ROW: (BLOCK * 5 + ROUND * 4, 4), COLUMN: (index(0), 1)}, {})
    check_box(reading)
    with without_the_library():
        check_box(Reading(reading.indices, reading.ranges, reading.bounds))


def test_a_single_point_that_surely_exists_is_told_exactly() -> None:
    """Beside one that may not exist: the row is 3 * block, whatever the clamp."""
    row, column = Bound("", BLOCK * 3, 10, known=True), Bound("", ROUND, 2)
    reading = Reading(
        (Binary("min", ROW, index(7)) + COLUMN,), {ROW: (BLOCK * 3, 1), COLUMN: (ROUND, 1)}, {ROW: (row,), COLUMN: (column,)}
    )
    assert [str(e) for e in reading.ends(0, True)] == ["min(block * 3, 7) + round", "min(block * 3, 7) + 1"]
    assert [str(e) for e in reading.ends(0, False)] == ["min(block * 3, 7) + round"]


@pytest.mark.parametrize("memory", [tl.shared, tl.register])
@pytest.mark.parametrize(
    ("axis", "tensor", "tile", "offsets"), [(12, 12, 8, (-6, 6)), (12, 6, 4, (-3, 1)), (34, 32, 16, (-3, 3))]
)
def test_clamped_readings_have_a_common_box(
    axis: int, tensor: int, tile: int, offsets: tuple[int, int], memory: tl.Memory
) -> None:
    """Also where one alone would begin at its clamped start, and the other one would not."""
    i = tl.axes(i=axis)
    X = tl.input("X", tl.float32, x=tensor)
    left, right = (X[tl.minimum(tl.maximum(i + n, 0), tensor - 1)] for n in offsets)
    kernel = tl.compile(tl.schedule(tl.define("Y", left + right, i)).tile(i=tile).to(tl.block).load("X", memory), "cpu")
    assert kernel.check()
