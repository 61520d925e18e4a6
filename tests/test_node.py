"""Nodes: frozen values with derived children; interned ones exist once."""

import copy
import dataclasses
import math
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import tilelang as tl
from tilelang.core import dtype as dt
from tilelang.core.expr import INDEX, Axis, Binary, Const, Var
from tilelang.core.lazy import Caching, cached_property
from tilelang.core.node import Node, node, record
from tilelang.errors import Span


@node
class Leaf(Node):
    value: int
    span: Span | None = None


@node
class Pair(Node):
    left: Node
    right: Node
    name: str = ""


@node
class Many(Node):
    items: tuple[Node | int, ...]


@record
class Between(Caching):
    low: int
    high: int = 9

    @cached_property
    def size(self) -> int:
        return self.high - self.low


def test_children_come_from_the_fields() -> None:
    a, b = Leaf(1), Leaf(2)
    assert list(Pair(a, b, "x").children()) == [a, b]
    assert list(Many((a, 7, b)).children()) == [a, b]
    assert list(a.children()) == []


def test_walk_is_parents_first() -> None:
    a, b, c = Leaf(1), Leaf(2), Leaf(3)
    tree = Pair(Many((a, b)), c)
    assert list(tree.walk()) == [tree, Many((a, b)), a, b, c]


def test_walk_visits_what_is_shared_once() -> None:
    a, b = Leaf(1), Leaf(2)
    shared = Many((a, b))
    assert list(Pair(shared, Pair(a, shared)).walk()) == [Pair(shared, Pair(a, shared)), shared, a, b, Pair(a, shared)]


def test_map_children_keeps_what_does_not_change() -> None:
    a, b = Leaf(1), Leaf(2)
    tree = Pair(a, b, "x")
    assert tree.map_children(lambda n: n) is tree
    changed = tree.map_children(lambda n: Leaf(9) if n is b else n)
    assert changed == Pair(Leaf(1), Leaf(9), "x") and changed.left is a
    many = Many((a, 7))
    assert many.map_children(lambda n: n) is many
    assert many.map_children(lambda n: b) == Many((b, 7))


def test_spans_take_no_part_in_equality() -> None:
    assert Leaf(1, Span("a", 1)) == Leaf(1, Span("b", 2))
    assert hash(Leaf(1, Span("a", 1))) == hash(Leaf(1))
    assert "Span" not in repr(Leaf(1, Span("a", 1)))
    assert Leaf(1).replace(span=Span("c", 3)).span == Span("c", 3)


def test_nodes_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Leaf(1).value = 2  # type: ignore[misc]


@pytest.mark.parametrize(("given", "named"), [((), {}), ((1, None, 2), {}), ((1,), {"color": 2}), ((1,), {"value": 2})])
def test_calls_that_do_not_fit_the_fields(given: tuple[Any, ...], named: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="Leaf"):
        Leaf(*given, **named)


def test_interned_classes_take_fields_by_name_and_by_default() -> None:
    assert Var("x", type=INDEX) is Var("x", INDEX, None, None) is not Var("x", INDEX, 0)
    with pytest.raises(TypeError, match="Axis"):
        Axis("i")  # type: ignore[call-arg]


def test_equal_expressions_are_one_object() -> None:
    i = Axis("i", 4)
    assert Axis("i", 4) is i and Axis("i", 5) is not i
    assert Binary("+", i, Const(1, INDEX)) is (i + 1)
    assert Var(name="x", type=INDEX) is Var("x", INDEX, None, None)


def test_constants_differ_by_bits_and_type() -> None:
    assert Const(0.0, dt.float32) is not Const(-0.0, dt.float32)
    assert Const(math.nan, dt.float32) is Const(float("nan"), dt.float32)
    assert Const(1.0, dt.float32) is not Const(1.0, dt.float64)
    assert Const(1, dt.int64) is not Const(True, dt.bool_)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
def test_what_does_not_change_is_copied_whole(again: Callable[[Any], Any]) -> None:
    m, k = tl.axes(m=4, k=5)
    A = tl.input("A", tl.float32, m, k)
    made = tl.schedule(tl.define("Y", tl.sum(A[m, k], over=k), m)).tile(m=2).to(tl.block)
    unchanging: tuple[Any, ...] = (A, made, made.computation, made.computation.definitions[0])
    for whole in unchanging:
        with pytest.raises(AttributeError, match="does not change once it is made"):
            whole.name = "other"
        assert str(again(whole)) == str(whole) and type(again(whole)) is type(whole)
    assert again(A).shape == (4, 5) and again(A).span == A.span


def test_records_are_frozen_compared_by_identity_and_may_cache() -> None:
    one = Between(2)
    assert one == one and one != Between(2) and len({one, Between(2), one}) == 2
    assert one.size == 7 and one.__dict__ == {"size": 7}
    assert dataclasses.replace(one, low=4).size == 5
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.low = 3  # type: ignore[misc]
    with pytest.raises(TypeError):
        Between()  # type: ignore[call-arg]
