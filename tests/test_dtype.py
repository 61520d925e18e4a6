"""Element types: the tables are the documentation, and follow NumPy where NumPy has an answer."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilelang.core import dtype as dt
from tilelang.errors import ComputationError

TYPES = st.sampled_from(list(dt.ALL.values()))
IN_NUMPY = [t for t in dt.ALL.values() if not t.later and (t.bits, t.kind) != (8, "float") and t != dt.bfloat16]


@pytest.mark.parametrize("name", list(dt.ALL))
def test_names_and_sizes_agree_with_numpy(name: str) -> None:
    t = dt.ALL[name]
    assert dt.dtype(name) is t and dt.dtype(t) is t and dt.dtype(t.numpy) == t and repr(t) == name
    assert t.numpy.itemsize == t.bytes
    assert sum((t.is_float, t.is_integer, t.kind == "bool")) == 1


@pytest.mark.parametrize("t", [t for t in dt.ALL.values() if t.is_integer], ids=repr)
def test_integer_ranges(t: dt.DType) -> None:
    info = ml_dtypes.iinfo(t.numpy)  # type: ignore[no-untyped-call]
    assert (t.lowest, t.highest) == (int(info.min), int(info.max))


@pytest.mark.parametrize("t", [t for t in dt.ALL.values() if t.is_float], ids=repr)
def test_float_precision(t: dt.DType) -> None:
    eps = float(ml_dtypes.finfo(t.numpy).eps)  # type: ignore[no-untyped-call]
    assert eps == 2.0 ** (1 - t.mantissa_bits)
    most = float(np.array(np.inf, np.float32).astype(t.numpy))
    assert (t.lowest, t.highest) == (-448, 448) if np.isnan(most) else (-most, most)


def test_python_names() -> None:
    assert (dt.dtype(float), dt.dtype(int), dt.dtype(bool), dt.dtype(np.float32)) == (dt.float64, dt.int64, dt.bool_, dt.float32)


def test_unknown_types_are_refused() -> None:
    with pytest.raises(ComputationError) as caught:
        dt.dtype("complex64")
    assert caught.value.code == "unknown-type" and "float32" in (caught.value.help or "")


@given(TYPES, TYPES)
def test_promotion_is_symmetric_and_absorbs(a: dt.DType, b: dt.DType) -> None:
    assert dt.promote(a, b) == dt.promote(b, a)
    assert dt.promote(a, a) == a
    assert dt.promote(dt.promote(a, b), b) == dt.promote(a, b)


@pytest.mark.parametrize("a", IN_NUMPY, ids=repr)
@pytest.mark.parametrize("b", IN_NUMPY, ids=repr)
def test_promotion_is_numpy_s_but_for_two_cases(a: dt.DType, b: dt.DType) -> None:
    """An integer with a float gives the float, and uint64 with a signed type stays an integer."""
    ours = dt.promote(a, b)
    if a.is_float != b.is_float and "bool" not in (a.kind, b.kind):
        assert ours == (a if a.is_float else b)
    elif {a.kind, b.kind} == {"int", "uint"} and dt.uint64 in (a, b):
        assert ours == dt.int64
    else:
        assert ours.numpy == np.promote_types(a.numpy, b.numpy)


def test_two_16_bit_floats_meet_in_float32() -> None:
    assert dt.promote(dt.float16, dt.bfloat16) == dt.float32


@pytest.mark.parametrize(
    ("t", "state"),
    [
        (dt.float16, dt.float32), (dt.bfloat16, dt.float32), (dt.float32, dt.float32), (dt.float64, dt.float64), (dt.int8, dt.int32),
        (dt.int16, dt.int32), (dt.float8_e4m3, dt.float32),
        (dt.float8_e5m2, dt.float32), (dt.int64, dt.int64), (dt.uint8, dt.uint32), (dt.uint64, dt.uint64), (dt.bool_, dt.int32),
    ],
)  # fmt: skip
def test_accumulation_types(t: dt.DType, state: dt.DType) -> None:
    assert dt.accumulator(t) == state


def test_pointwise_work_on_16_bits_is_done_in_float32() -> None:
    assert [dt.compute_type(t) for t in (dt.float16, dt.bfloat16, dt.float64, dt.int8)] == [
        dt.float32,
        dt.float32,
        dt.float64,
        dt.int8,
    ]
