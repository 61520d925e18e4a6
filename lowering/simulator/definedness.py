"""Values with undefined elements: what operations make of them, and where undefined data came from.

Almost all values in a simulation are defined, and those are plain NumPy arrays. A value that was read from memory before anything was
written there is a `Partly`. It carries a mark for each element: 0 where the element is defined, else a number that tells which access
read which element. Operations propagate marks element by element: a result is undefined where any operand is, even if it is multiplied
by 0, and a selection takes the marks of the side that it chooses, so a lane that is selected away does no harm. Marks become a finding
where they reach a store to global memory, a condition, an index or a count (`Memory.report_undefined`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tilelang.core.dtype import DType
from tilelang.lowering.simulator import scalar_semantics as scalar

Array = npt.NDArray[Any]
Marks = npt.NDArray[np.int64]

ELEMENT_BITS = 32


class Partly:
    """A value with undefined elements. `marks` has as many dimensions as `value`, and broadcasts with it."""

    __slots__ = ("marks", "value")

    def __init__(self, value: Any, marks: Marks) -> None:
        self.value, self.marks = value, marks


Known = Any  # a scalar_semantics.Value, or a Partly


def plain(value: Known) -> Any:
    """A value without its marks."""
    return value.value if type(value) is Partly else value


def marks(value: Known) -> Any:
    """The marks of a value; a 0 where all of it is defined."""
    return value.marks if type(value) is Partly else np.int64(0)


def partly(value: Any, marks: Any) -> Known:
    """A value with marks, if any of them is set."""
    return Partly(value, marks) if np.any(marks) else value


def binary(op: str, left: Known, right: Known) -> Known:
    """`scalar_semantics.binary`; undefined where either operand is."""
    if type(left) is Partly or type(right) is Partly:
        return _lifted(functools.partial(scalar.binary, op), left, right)
    return scalar.binary(op, left, right)


def unary(op: str, operand: Known) -> Known:
    """`scalar_semantics.unary`; undefined where the operand is."""
    return _lifted(functools.partial(scalar.unary, op), operand) if type(operand) is Partly else scalar.unary(op, operand)


def call(name: str, argument: Known) -> Known:
    """`scalar_semantics.call`; undefined where the argument is."""
    return _lifted(functools.partial(scalar.call, name), argument) if type(argument) is Partly else scalar.call(name, argument)


def cast(values: Known, source: DType, target: DType) -> Known:
    """`scalar_semantics.cast`; undefined where the values are."""
    if type(values) is Partly:
        return _lifted(lambda plain: scalar.cast(plain, source, target), values)
    return scalar.cast(values, source, target)


def _lifted(operation: Callable[..., Any], *values: Known) -> Known:
    result = operation(*map(plain, values))
    return partly(result, functools.reduce(np.maximum, scalar.align(*map(marks, values), result)[:-1]))


def select(condition: Known, then: Known, otherwise: Known) -> Known:
    """`then` where the condition holds, else `otherwise`; undefined where the condition or the chosen side is."""
    chosen = scalar.select(plain(condition), plain(then), plain(otherwise))
    if type(then) is not Partly and type(otherwise) is not Partly and type(condition) is not Partly:
        return chosen
    sides = scalar.select(plain(condition), marks(then), marks(otherwise))
    return partly(chosen, np.maximum(*scalar.align(sides, marks(condition), chosen)[:-1]))


def rearranged(values: Sequence[Known], arrange: Callable[[Sequence[Any]], Any]) -> Known:
    """What `arrange` makes of the elements of some values, with their marks."""
    if not any(type(v) is Partly for v in values):
        return arrange(values)
    data = [plain(v) for v in values]
    return partly(arrange(data), arrange([np.broadcast_to(marks(v), d.shape) for v, d in zip(values, data, strict=True)]))


def read(site: int, elements: Array) -> Marks:
    """Marks of elements that an access reads though nothing defined is there."""
    found: Marks = (np.int64(site) << ELEMENT_BITS) + elements + 1
    return found


def origin(mark: int) -> tuple[int, int]:
    """The number of the access that read an undefined element, and the element."""
    return mark >> ELEMENT_BITS, (mark & ((1 << ELEMENT_BITS) - 1)) - 1
