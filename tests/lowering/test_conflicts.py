"""Proofs that accesses do not meet: what can be enumerated, and what cannot."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from tilelang.core import dtype as dt
from tilelang.core.expr import INDEX, Binary, Cast, Const, Expr, Select, Unary, Var, call, index
from tilelang.core.simplify import simplify
from tilelang.lowering import ir
from tilelang.lowering.passes.dependence_test import Access, Digit, Opaque, Prover, _digit, evaluate, is_opaque, overlap, step

T, X = Var("thread", INDEX, 0, 3), Var("x", dt.float32, None, None)
LOADED = ir.Load(ir.Buffer("T", dt.int32, (4,), "global", "input"), (T,))
SMALL = Binary("<", T, index(2))

KNOWN = {
    "a sum": (T + 1, [1, 2, 3, 4]),
    "a negation": (Unary("not", SMALL), [False, False, True, True]),
}
UNKNOWN = {
    "a negative": Unary("-", T),
    "a cast to integers": Cast(T + 1, dt.int64),
    "a choice of what is known": Select(SMALL, T, index(7)),
    "an element": LOADED,
    "an element behind a cast": Cast(LOADED, INDEX),
    "a cast to floats": Cast(T, dt.float32),
    "a float": Const(1.5, dt.float32),
    "a quotient of floats": Binary("/", T, T),
    "a function": call("exp", X),
    "the right of a sum": T + Cast(LOADED, INDEX),
    "the left of a sum": Cast(LOADED, INDEX) + T,
    "a condition": Select(Binary("<", LOADED, index(2)), T, T),
    "a choice": Select(SMALL, Cast(LOADED, INDEX), T),
    "the other choice": Select(SMALL, T, Cast(LOADED, INDEX)),
}


@pytest.mark.parametrize("name", KNOWN)
def test_what_can_be_enumerated_is_not_opaque(name: str) -> None:
    e, values = KNOWN[name]
    assert not is_opaque(e)
    assert np.asarray(evaluate(e, {T: np.arange(4)})).tolist() == values


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_cannot_is(name: str) -> None:
    e: Expr = UNKNOWN[name]
    assert is_opaque(e)
    with pytest.raises(Opaque):
        evaluate(e, {T: np.arange(4)})


V, W = Var("v", INDEX, 0, 63), Var("w", INDEX, 0, 6)
STEPPING = {
    "a sum": 3 * V + W,
    "a difference": W - V // 2,
    "a remainder": (V * 3 + 1) % 8,
    "a quotient": (V * 6 + 1) // 4,
    "of a quotient": V // 2 % 3 + V % 4,
    "the less of two": Binary("min", V % 4, W),
    "without it": W * 2 + 1,
}


@pytest.mark.parametrize("name", STEPPING)
def test_a_step_changes_an_index_by_the_same_everywhere(name: str) -> None:
    e: Expr = STEPPING[name]
    found = step(e, V)
    assert found is not None
    rounds, change = found
    v, w = np.meshgrid(np.arange(64), np.arange(7), indexing="ij")
    here, later = (np.broadcast_to(evaluate(e, {V: at, W: w}), v.shape) for at in (v, v + rounds))
    assert rounds > 0 and (later - here == change).all()


@pytest.mark.parametrize("e", [V * V, Binary("min", V, W), Select(Binary("<", V, index(2)), V, W), V // W])
def test_no_step_where_there_is_none(e: Expr) -> None:
    assert step(e, V) is None


# --- digits ---

Y = Var("y", INDEX, 0, 3)


@pytest.mark.parametrize(
    ("e", "count"),
    [
        (V % 5 * 4 + Y, 20),
        (V % 5 * 4 + Y - 1, None),
        (V % 5 * 4 + Y + 1, None),
        (V % 5 * 3 + Y, None),
        (V // 3 % 5, 5),
        (V // 3, None),
        ((V + 2) // 3 + 4, None),
        (V % 7, 7),
    ],
    ids=str,
)
def test_an_index_is_the_digit_of_a_number(e: Expr, count: int | None) -> None:
    digit = _digit(simplify(e))
    v, y = np.meshgrid(np.arange(64), np.arange(4))
    found = np.asarray(evaluate(digit.number, {V: v, Y: y})) // digit.place
    assert digit.count == count
    assert ((found if count is None else found % count) == evaluate(e, {V: v, Y: y})).all()


def test_a_digit_is_that_of_a_longer_number_whatever_comes_below() -> None:
    """v // place of v * more + rest, if the rest, less some periods, stays below `more`."""
    for place, more, period, shift, n in itertools.product((1, 2, 3), (1, 2, 4), (4, 8), range(-9, 10), (1, 2, 4)):
        rest, v = Var("rest", INDEX, 0, n - 1), np.arange(64)[:, None]
        other = simplify(V * more + shift + (rest if n > 1 else 0))
        found = Digit(V, place, None).of(other, place * more, period)
        assert (found is not None) == (shift % period + n - 1 < more)
        if found is not None:
            numbers, others = (np.asarray(evaluate(e, {V: v, rest: np.arange(n)})) for e in (found, other))
            assert (numbers // (place * more) == v // place).all() and ((others - numbers) % period == 0).all()
    assert Digit(V, 2, None).of(V, 3, 4) is None


# --- pairs of accesses ---


@pytest.mark.parametrize(("rounds", "conflict"), [(1 << 11, False), (1 << 14, False), (1 << 15, True)])
def test_a_million_points_are_looked_at(rounds: int, conflict: bool) -> None:
    """64 threads write even elements and read odd ones, in so many rounds; beyond a million points none is looked at."""
    thread, buffer = Var(ir.THREAD.name, INDEX, 0, 63), ir.Buffer("S", dt.float32, (1 << 22,), "shared")
    j, k = (Var(name, INDEX, 0, rounds - 1) for name in "jk")
    wrote = Access(buffer, ((thread + j * 64) * 2,), 1, True, bound=frozenset({j}))
    reads = Access(buffer, ((thread + k * 64) * 2 + 1,), 1, False, bound=frozenset({k}))
    assert Prover(64).conflict(wrote, reads) is conflict


def test_only_placed_buffers_of_shared_memory_share_bytes() -> None:
    buffers = {
        "first": ir.Buffer("a", dt.float32, (16,), "shared", offset=0),
        "second": ir.Buffer("b", dt.float32, (16,), "shared", offset=60),
        "third": ir.Buffer("c", dt.float32, (16,), "shared", offset=64),
        "without a place": ir.Buffer("d", dt.float32, (16,), "shared"),
        "register": ir.Buffer("e", dt.float32, (16,), "register"),
    }
    pairs = {(m, n) for (m, a), (n, b) in itertools.combinations(buffers.items(), 2) if overlap(a, b) or overlap(b, a)}
    assert pairs == {("first", "second"), ("second", "third")}


def test_guards_that_exclude_all_points_of_a_sparse_table() -> None:
    """Neighbouring threads are a million elements apart, and no thread is there at all."""
    far = ir.Buffer("F", dt.float32, (1 << 25,), "global", "output")
    never = (Binary("<", T, index(0)),)
    a, b = (Access(far, (T * (1 << 22) + n,), 1, True, never) for n in (0, 1 << 22))
    assert not Prover(4).conflict(a, b)
    assert Prover(4).conflict(dataclasses.replace(a, guards=()), dataclasses.replace(b, guards=()))


def test_the_digits_of_a_number_are_compared_as_the_number() -> None:
    """One by one, the digits repeat after a million rounds, too many to look at; of the number, the rounds' part is the same."""
    buffer, i = ir.Buffer("F", dt.float32, (64, 1021, 1031), "global", "output"), Var("i", INDEX, 0, (1 << 20) - 1)
    a, b = (Access(buffer, (x // (1021 * 1031), x // 1031 % 1021, x % 1031), 1, True) for x in (i * 64 + T, i * 64 + T + 1))
    assert not Prover(64).conflict(a, a)
    assert Prover(64).conflict(a, b)


def test_a_finished_loop_is_looked_at_until_it_repeats() -> None:
    buffer, k = ir.Buffer("F", dt.float32, (128,), "shared"), Var("k", INDEX, 0, 1 << 21)
    a, b = (Access(buffer, (k % 2 * 64 + (T + n) % 64,), 1, True, bound=frozenset({k})) for n in (0, 1))
    assert not Prover(64).conflict(a, a)
    assert Prover(64).conflict(a, b)
