"""Values of a wrong kind, in each argument of the public functions: an error of ours that can be shown, never one of Python's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang as tl

i, j = tl.axes(i=8, j=16)
X = tl.input("X", tl.float32, i, j)
Y = tl.define("Y", X[i, j] * 2, i, j)
S = tl.schedule(Y)

WRONG = [
    None,
    True,
    int,
    [],
    [1],
    b"x",
    np.zeros(3),
    np.zeros(0),
    np.array(3),
    np.bool_(True),
    slice(None),
    1j,
    tl,
    object(),
    10**30,
]


def _thing(value: Any) -> Any:
    """A value where None would mean the default."""
    return object() if value is None else value


TAKING: dict[str, Callable[[Any], Any]] = {
    "extent": lambda v: tl.axes(z=v),
    "range": lambda v: tl.input("Z", tl.int8, i, range=(0, v)),
    "allow": lambda v: tl.define("Z", X[i, j], i, j, allow=(v,)),
    "size": lambda v: S.tile(i=v),
    "inline": lambda v: S.inline(v),
    "role": lambda v: str(tl.threads(2).as_role(v)),
    "swizzle": lambda v: tl.layout("i").swizzle(v),
    "instruction": lambda v: tl.use(_thing(v)),
    "operand memory": lambda v: tl.operand("A", tl.float32, v),
    "operand axis": lambda v: tl.operand("A", tl.float32, tl.register, v),
    "parse": lambda v: tl.parse(v),
    "read": lambda v: tl.read(v),
    "option": lambda v: tl.Options(check=_thing(v)),
    "dialect": lambda v: tl.compile(S, _thing(v)),
    "profile": lambda v: S.check(_thing(v)),
}


@pytest.mark.parametrize("value", WRONG, ids=range(len(WRONG)))
@pytest.mark.parametrize("argument", TAKING)
def test_a_wrong_value_is_refused(argument: str, value: Any) -> None:
    if argument == "extent" and isinstance(value, np.ndarray) and value.shape == ():
        value = np.array(3.5)  # of whole numbers it is an extent
    if argument in ("size", "range") and isinstance(value, (int, np.ndarray)) and not isinstance(value, bool):
        value = np.array(3.5)
    with pytest.raises(tl.TileLangError) as found:
        TAKING[argument](value)
    assert str(found.value).startswith("error[")


def test_whole_numbers_of_numpy_are_sizes() -> None:
    z = tl.axes(z=np.array(3))
    assert z.extent == 3 and type(z.extent) is int
    size: Any = np.int64(4)
    assert S.tile(i=size).to(tl.block).text == S.tile(i=4).to(tl.block).text


def test_when_copies_land_is_a_word_or_a_seed() -> None:
    kernel = tl.compile(S)
    with pytest.raises(tl.ComputationError, match=r"error\[order\]"):
        tl.simulate(kernel, order=np.zeros(3))  # type: ignore[arg-type]


def test_a_function_without_parameters_to_see_is_no_layout() -> None:
    with pytest.raises(tl.Refusal, match=r"error\[layout-term\]"):
        tl.layout(int)


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_what_is_no_path_of_the_system_is_refused(text: str) -> None:
    for refused in (lambda: tl.read(text), lambda: tl.load_profile(f"{text}/x.toml"), lambda: tl.compile(S, "cpu").export(text)):
        with pytest.raises(tl.TileLangError, match=r"is not a (path|folder)"):
            refused()
    for option in ("cache_dir", "database", "dump"):
        knobs: dict[str, Any] = {option: text}
        with pytest.raises(tl.TileLangError, match=r"error\[option-value\]"):
            tl.Options(**knobs)


def test_a_step_of_any_size_is_refused_at_once() -> None:
    r = tl.axes(r=3)
    w = tl.input("W", tl.float32, r, j)
    summed = tl.define("Z", tl.sum(X[i, j] * w[r, j], over=r), i, j)
    steps = tl.schedule(summed).tile(i=1).to(tl.block).accumulate(tl.register).split(r=2**31).load("W", tl.register)
    with pytest.raises(tl.Refusal, match=r"error\[registers-too-many\]"):
        steps.check("simulated")


def test_a_tensor_that_no_memory_addresses_is_refused_where_it_is_defined() -> None:
    m, n = tl.axes(m=2**31, n=2**31)
    with pytest.raises(tl.ComputationError) as found:
        tl.input("Z", tl.float32, m, n)
    assert found.value.code == "too-many-bytes"


def test_what_is_neither_a_memory_nor_a_level_is_refused() -> None:
    with pytest.raises(tl.ComputationError) as found:
        tl.operand("A", tl.float32, 3)
    assert found.value.code == "not-a-memory"
