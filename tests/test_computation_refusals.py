"""What definitions refuse, each with its code."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tests.test_computation import definition_of
from tilelang.computations.computation import as_computation, axes, computation
from tilelang.computations.define import define
from tilelang.core import dtype as dt
from tilelang.core.expr import Cast, Read
from tilelang.errors import ComputationError


def _x() -> tuple[Any, Any, tl.Tensor]:
    i, j = axes(i=4, j=8)
    return i, j, tl.input("X", dt.float32, i, j)


def _outside() -> Any:
    i, j, x = _x()
    return define("y", x[i + 1, j], i, j)


def _outside_guarded() -> Any:
    i, j, x = _x()
    return define("y", tl.where(i > 1, x[i + 1, j], 0.0), i, j)


def _outside_negative() -> Any:
    i, j, x = _x()
    return define("y", x[i, 2 - j], i, j)


def _outside_reduction() -> Any:
    i, j, x = _x()
    return define("y", tl.sum(x[i, j + i], over=j), i)


def _outside_through_integers() -> Any:
    i, j, x = _x()
    ids = tl.input("ids", dt.int32, i, range=(0, 5))
    return define("y", x[ids[i], j], i, j)


def _range_unknown() -> Any:
    i, j, x = _x()
    ids = tl.input("ids", dt.int32, i)
    return define("y", x[ids[i], j], i, j)


def _rank() -> Any:
    i, _, x = _x()
    return x[i]


def _slice() -> Any:
    i, _, x = _x()
    return x[i, :]


def _float_index() -> Any:
    i, _, x = _x()
    return x[i, x[i, 0]]


def _unknown_axis() -> Any:
    i, j, x = _x()
    return define("y", x[i, j], i)


def _axis_of_other_extent() -> Any:
    i, _, x = _x()
    return define("y", x[i, 0], axes(i=3))


def _twice() -> Any:
    i = axes(i=4)
    return tl.input("X", dt.float32, i, i)


def _symbol() -> Any:
    return axes(m=tl.symbol("M", multiple_of=8))


def _symbol_of_nothing() -> Any:
    return tl.symbol("M", multiple_of=0)


def _extent() -> Any:
    return axes(m=-1)


def _licence() -> Any:
    i, j, x = _x()
    return define("y", x[i, j], i, j, allow=("fast",))


def _difference() -> Any:
    i, j, x = _x()
    return tl.reduce(lambda a, b: a - b, 0, x[i, j], over=j, name="minus")


def _not_associative() -> Any:
    i, j, x = _x()
    return tl.reduce(lambda a, b: (a + b) / 2, 0, x[i, j], over=j, name="mean")


def _infinite_identity() -> Any:
    i, j, x = _x()
    return tl.reduce(tl.minimum, float("-inf"), x[i, j], over=j)


def _wrong_identity() -> Any:
    i, j, x = _x()
    return tl.reduce(lambda a, b: a * b, 0, x[i, j], over=j, name="times")


def _index_that_wraps() -> Any:
    i = axes(i=4)
    ids, table = tl.input("ids", dt.int32, i, range=(0, 100_000)), tl.input("table", dt.float32, v=1000)
    return define("y", table[ids[i] * ids[i] // 10_000_000], i)


def _index_of_a_masked_argmax() -> Any:
    i, j, x = _x()
    best = define("best", tl.argmax(x[i, j], over=j, where=x[i, j] > 0), i)
    return define("y", x[i, best[i]], i)


def _padded_index() -> Any:
    i, j, x = _x()
    ids = tl.input("ids", dt.int32, i, range=(0, 4))
    return define("y", x[tl.pad(ids[i - 1], -1), j], i, j)


def _combiner_of_a_tensor() -> Any:
    i, j, x = _x()
    return tl.reduce(lambda a, b: a + x[i, 0], 0.0, x[i, j], over=j)


def _pad_of_sum() -> Any:
    i, j, x = _x()
    return tl.pad(x[i, j] + 1, 0)


def _name_twice() -> Any:
    i, j, x = _x()
    return as_computation(define("X", x[i, j], i, j))


def _axis_twice() -> Any:
    i, j, x = _x()
    y = define("y", x[i, j], i, j)
    short = axes(j=4)
    return as_computation(define("z", y[0, short], short))


def _condition_needed() -> Any:
    i, j, x = _x()
    return tl.where(x[i, j], 1.0, 0.0)


def _input_as_output() -> Any:
    return computation("y", (_x()[2],))


@pytest.mark.parametrize(
    ("cause", "code", "counterexample"),
    [
        (_outside, "read-outside", "at i = 3: i + 1 = 4, `i + 1` must lie in 0 .. 3 for dimension `i`"),
        (_outside_guarded, "read-outside", "at i = 3: i + 1 = 4, `i + 1` must lie in 0 .. 3 for dimension `i`"),
        (_outside_negative, "read-outside", "at j = 3: 2 - j = -1, `2 - j` must lie in 0 .. 7 for dimension `j`"),
        (_outside_reduction, "read-outside", "at i = 1, j = 7: j + i = 8, `j + i` must lie in 0 .. 7 for dimension `j`"),
        (_outside_through_integers, "read-outside", "at ids[i] = 4"),
        (_range_unknown, "index-range-unknown", None),
        (_index_that_wraps, "read-outside", "= -"),
        (_index_of_a_masked_argmax, "read-outside", "at best[i] ="),
        (_padded_index, "read-outside", "at pad(ids[i - 1], -1) = -1"),
        (_rank, "rank", None),
        (_slice, "index-type", None),
        (_float_index, "index-type", None),
        (_unknown_axis, "unknown-axis", None),
        (_axis_of_other_extent, "unknown-axis", None),
        (_twice, "dimension-twice", None),
        (_symbol, "not-lowered-yet", None),
        (_symbol_of_nothing, "symbol", None),
        (_extent, "extent", None),
        (_licence, "licence", None),
        (_difference, "combiner-refuted", "a = 1: combine(identity, a) = -1, a = 1"),
        (_not_associative, "combiner-refuted", "combine(identity, a) = 0.5"),
        (_infinite_identity, "combiner-refuted", "a = 1: combine(identity, a) = -inf, a = 1"),
        (_wrong_identity, "combiner-refuted", "combine(identity, a) = 0, a = 1"),
        (_combiner_of_a_tensor, "combiner-reads", None),
        (_pad_of_sum, "pad-of-what", None),
        (_name_twice, "name-twice", None),
        (_axis_twice, "axis-twice", None),
        (_condition_needed, "not-a-condition", None),
        (_input_as_output, "output", None),
    ],
)
def test_refusals(cause: Callable[[], Any], code: str, counterexample: str | None) -> None:
    with pytest.raises(ComputationError) as caught:
        cause()
    assert caught.value.code == code and caught.value.help
    if counterexample is not None:
        assert caught.value.counterexample is not None and counterexample in caught.value.counterexample


def test_a_non_commutative_combiner_is_refuted_by_its_own_law() -> None:
    i, j, x = _x()
    with pytest.raises(ComputationError, match="not commutative"):
        tl.reduce(lambda a, b: tl.where(tl.equal(b, 0), a, tl.where(tl.equal(a, 0), b, a)), 0, x[i, j], over=j, name="first")


@pytest.mark.parametrize("dtype", [dt.int8, dt.int32, dt.int64, dt.uint8, dt.uint64])
def test_a_bounded_value_of_any_kind_is_an_index(dtype: tl.DType) -> None:
    i = axes(i=5)
    values, table = tl.input("values", dtype, i), tl.input("table", dt.float32, v=4)
    x = np.array([dtype.lowest, 0, 3, 4, dtype.highest], dtype.numpy)
    bounded = {
        "clamp": (tl.minimum(tl.maximum(values[i], 0), 3), np.clip(x, 0, 3)),
        "remainder": (values[i] % 4, x % 4),
        "bits": (values[i] & 3, x & 3),
        "pad": (tl.pad((define("low", values[i] & 3, i))[i - 1], 2), [2, *(x & 3)[:-1]]),
    }
    rows = np.arange(4, dtype=np.float32)
    for name, (index, expected) in bounded.items():
        kernel = tl.compile(define("y", table[index], i), tl.target("cpu"))
        found = kernel(values=x, table=rows)
        assert found.tolist() == rows[np.asarray(expected, np.int64)].tolist(), name


def test_every_value_of_a_byte_indexes_a_table_of_256() -> None:
    i = axes(i=3)
    looked_up = define("y", tl.input("table", dt.uint8, v=256)[tl.input("x", dt.uint8, i)[i]], i)
    assert computation("c", looked_up).evaluate(
        x=np.array([0, 9, 255], np.uint8), table=np.arange(256, dtype=np.uint8)
    ).tolist() == [0, 9, 255]


def test_the_whole_text_of_a_refusal() -> None:
    with pytest.raises(ComputationError) as caught:
        _outside()
    assert caught.value.span is not None and caught.value.span.file == __file__
    caught.value.span = None
    assert str(caught.value) == (
        "error[read-outside]: `X[i + 1, j]` in y reads outside X: float32[i: 4, j: 8]\n"
        "  = counterexample: at i = 3: i + 1 = 4, `i + 1` must lie in 0 .. 3 for dimension `i`\n"
        "  = help: use tl.pad(..., value) for the value outside, or put the read under tl.where, or choose other extents"
    )


def test_reads_that_stay_inside_are_accepted() -> None:
    i, j, x = _x()
    assert define("a", tl.pad(x[i - 1, j * 2], 0), i, j).shape == (4, 8)
    assert define("b", tl.where((i > 0) & (j < 7), x[i - 1, j + 1], 0.0), i, j).shape == (4, 8)
    assert define("c", x[(i + 3) % 4, 7 - j], i, j).shape == (4, 8)
    assert define("d", x[(i * 8 + j) // 8, (i * 8 + j) % 8], i, j).shape == (4, 8)
    assert define("e", tl.sum(x[i, i + j], over=j, where=i + j < 8), i).shape == (4,)
    flat = axes(f=32)
    assert define("g", x[flat // 8, flat % 8], flat).shape == (32,)


def test_zero_extents_read_nothing() -> None:
    i, j = axes(i=0, j=3)
    x = tl.input("X", dt.float32, i, j)
    assert define("y", x[i + 5, j], i, j).shape == (0, 3)
    assert define("z", tl.sum(x[i, j], over=i), j).shape == (3,)


def test_a_tensor_without_dimensions() -> None:
    i = axes(i=4)
    x = tl.input("X", dt.float32, i)
    total = define("total", tl.sum(x[i], over=i))
    assert total.shape == () and isinstance(total[()], Read)
    assert definition_of(define("y", x[i] / total[()], i)).reads == (x, total)


def test_an_explicit_cast_is_kept() -> None:
    i = axes(i=4)
    x = tl.input("X", dt.float64, i)
    made = define("y", tl.cast(x[i], dt.float32) * 2, i)
    assert any(isinstance(e, Cast) for e in definition_of(made).values[0].walk()) and made.dtype == dt.float32


def test_conditions_that_state_the_bounds_prove_them_for_any_number_of_points() -> None:
    p, u, h = axes(p=(1 << 20) - 8, u=9, h=1 << 20)
    x = tl.input("X", dt.float32, p)
    for kept in ((u <= h) & (h - u < p.extent), (h - u + 1 > 0) & (h < u + p.extent - 3)):
        assert define("y", tl.sum(x[h - u], over=u, where=kept), h).shape == (h.extent,)
    for wide in ((u <= h) & (h - u <= p.extent), (u <= h + 1) & (h - u < p.extent), h - u < p.extent, u <= h):
        with pytest.raises(ComputationError) as caught:
            define("y", tl.sum(x[h - u], over=u, where=wide), h)
        assert caught.value.code == "read-outside"
