"""Layouts: every named form is an expression, gives each coordinate one place, and prints as it was written."""

import itertools

import pytest

import tilelang as tl
from tilelang.core.expr import INDEX, Var, index
from tilelang.core.layout import Layout, Placement, evaluate, split_terms, walk_order
from tilelang.errors import Refusal


def places(placement: Placement, *extents: int) -> dict[tuple[int, ...], tuple[int, ...]]:
    """The storage place of every coordinate."""
    return {
        at: tuple(int(evaluate(t, dict(zip(placement.variables, at, strict=True)))) for t in placement.terms)
        for at in itertools.product(*map(range, extents))
    }


def test_without_a_layout_a_region_is_row_major() -> None:
    found = Layout().place({"m": 3, "k": 4}, 4)
    assert found.shape == (3, 4)
    assert places(found, 3, 4) == {at: at for at in itertools.product(range(3), range(4))}


def test_order_and_padding() -> None:
    found = tl.layout("k", "m").pad(4).place({"m": 8, "k": 3}, 4)
    assert found.shape == (3, 12)
    assert places(found, 8, 3)[5, 2] == (2, 5)


def test_a_function_of_the_dimensions() -> None:
    found = tl.layout(lambda m, k: (m // 8, k, m % 8)).place({"m": 20, "k": 3}, 4)
    assert found.shape == (3, 3, 8)
    assert places(found, 20, 3)[13, 2] == (1, 2, 5)


def test_one_term() -> None:
    assert tl.layout(lambda i: i).place({"i": 5}, 4).shape == (5,)


def test_the_128_byte_swizzle_is_the_formula() -> None:
    extents = {"m": 16, "k": 64}
    named = tl.layout("m", "k").swizzle(128).place(extents, 2)
    written = tl.layout(lambda m, k: (m, (k // 8) ^ (m % 8), k % 8)).place(extents, 2)
    assert named.shape == written.shape == (16, 8, 8)
    assert places(named, 16, 64) == places(written, 16, 64)


def test_the_64_byte_swizzle_permutes_four_chunks_every_two_lines() -> None:
    extents = {"m": 16, "k": 32}
    named = tl.layout("m", "k").swizzle(64).place(extents, 2)
    written = tl.layout(lambda m, k: (m, (k // 8) ^ ((m // 2) % 4), k % 8)).place(extents, 2)
    assert named.shape == written.shape == (16, 4, 8)
    assert places(named, 16, 32) == places(written, 16, 32)


@pytest.mark.parametrize(("width", "element_bytes"), [(32, 2), (64, 4), (128, 1), (128, 4)])
def test_swizzles_of_longer_rows_take_every_place_once(width: int, element_bytes: int) -> None:
    run = width // element_bytes
    found = tl.layout("m", "k").swizzle(width).place({"m": 16, "k": 2 * run}, element_bytes)
    taken = places(found, 16, 2 * run)
    assert len(set(taken.values())) == 16 * 2 * run
    assert all(all(0 <= p < n for p, n in zip(place, found.shape, strict=True)) for place in taken.values())


def test_a_column_of_a_swizzled_tile_meets_all_banks() -> None:
    """Eight lines of 128 bytes: a column of 16-byte chunks lies in eight different chunk columns; unswizzled in one."""
    found = places(tl.layout("m", "k").swizzle(128).place({"m": 8, "k": 64}, 2), 8, 64)
    assert {found[m, 0][1] for m in range(8)} == set(range(8))


def test_layouts_print_as_they_were_written() -> None:
    assert str(tl.layout("k", "m").pad(4)) == "layout (k, m) pad 4"
    assert str(tl.layout().swizzle(128)) == "swizzle 128"
    assert str(tl.layout(lambda m, k: (m, (k // 8) ^ (m % 8), k % 8))) == "layout (m, k / 8 ^ m % 8, k % 8)"
    assert tl.layout("k", "m").dims == ("k", "m")


def test_layouts_are_values() -> None:
    base = tl.layout("k", "m")
    assert base.pad(4) != base
    assert base.pad(4) == tl.layout("k", "m").pad(4)
    assert base.padding == 0


def test_two_elements_in_one_place_are_shown() -> None:
    with pytest.raises(Refusal) as caught:
        tl.layout(lambda m, k: (m // 2, k)).place({"m": 4, "k": 2}, 4)
    assert caught.value.code == "layout-not-injective"
    assert caught.value.counterexample == "(m, k) = (0, 0) and (1, 0)"


def test_placing_coordinates() -> None:
    m, k = Var("x", INDEX, 0, 7), Var("y", INDEX, 0, 3)
    found = tl.layout(lambda m, k: (m // 4, k, m % 4)).place({"m": 8, "k": 4}, 4)
    at = found.at((m, k))
    assert [evaluate(t, {m: 6, k: 1}) for t in at] == [1, 1, 2]


def test_walk_order() -> None:
    found = tl.layout(lambda n, k: (n // 48, k, n % 48))
    assert walk_order(found, ("k", "n")) == [("n", 48), ("k", 1), ("n", 1)]
    assert walk_order(None, ("k", "n")) == [("k", 1), ("n", 1)]
    assert walk_order(tl.layout(lambda m, k: (m, (k // 8) ^ (m % 8), k % 8)), ("m", "k")) == [("m", 1), ("k", 1)]


def test_split_terms() -> None:
    thread, i = Var("thread", INDEX, 0, 31), Var("i", INDEX, 0, 3)
    unit, rest, constant = split_terms(thread * 4 + i * 2 + 3, lambda atom: atom is thread)
    assert unit is thread * 4
    assert rest == [(i, 2)]
    assert constant == 3
    assert split_terms(index(7), lambda atom: atom is thread) == (index(0), [], 7)
