"""Tracks undefined values: how operations propagate them, and which access they came from.

Almost all values in a simulation are defined; those are plain NumPy arrays. A value read from memory that was never written is a
`Partly`. It carries a mark per element: 0 if the element is defined, otherwise a number that encodes the access and the element read.
Operations propagate marks elementwise: a result is undefined if any operand is, even when multiplied by 0. A selection takes the marks
of the chosen side only, so an undefined lane that is not selected is harmless. A mark becomes a finding when it reaches a store to
global memory, a condition, an index or a count (`Memory.report_undefined`).
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
    """A value with undefined elements. `marks` has the rank of `value` and broadcasts with it."""

    __slots__ = ("marks", "value")

    def __init__(self, value: Any, marks: Marks) -> None:
        self.value, self.marks = value, marks


Known = Any  # a scalar_semantics.Value, or a Partly


def plain(value: Known) -> Any:
    """A value without its marks."""
    return value.value if type(value) is Partly else value


def marks(value: Known) -> Any:
    """The marks of a value; 0 if all of it is defined."""
    return value.marks if type(value) is Partly else np.int64(0)


def partly(value: Any, marks: Any) -> Known:
    """Attaches marks to a value, if any of them is set."""
    return Partly(value, marks) if np.any(marks) else value


def binary(op: str, left: Known, right: Known) -> Known:
    """`scalar_semantics.binary`; undefined if either operand is."""
    if type(left) is Partly or type(right) is Partly:
        return _lifted(functools.partial(scalar.binary, op), left, right)
    return scalar.binary(op, left, right)


def unary(op: str, operand: Known) -> Known:
    """`scalar_semantics.unary`; undefined if the operand is."""
    return _lifted(functools.partial(scalar.unary, op), operand) if type(operand) is Partly else scalar.unary(op, operand)


def call(name: str, argument: Known) -> Known:
    """`scalar_semantics.call`; undefined if the argument is."""
    return _lifted(functools.partial(scalar.call, name), argument) if type(argument) is Partly else scalar.call(name, argument)


def cast(values: Known, source: DType, target: DType) -> Known:
    """`scalar_semantics.cast`; undefined if the values are."""
    if type(values) is Partly:
        return _lifted(lambda plain: scalar.cast(plain, source, target), values)
    return scalar.cast(values, source, target)


def _lifted(operation: Callable[..., Any], *values: Known) -> Known:
    result = operation(*map(plain, values))
    return partly(result, functools.reduce(np.maximum, scalar.align(*map(marks, values), result)[:-1]))


def select(condition: Known, then: Known, otherwise: Known) -> Known:
    """`then` where the condition holds, else `otherwise`; undefined if the condition or the chosen side is."""
    chosen = scalar.select(plain(condition), plain(then), plain(otherwise))
    if type(then) is not Partly and type(otherwise) is not Partly and type(condition) is not Partly:
        return chosen
    sides = scalar.select(plain(condition), marks(then), marks(otherwise))
    return partly(chosen, np.maximum(*scalar.align(sides, marks(condition), chosen)[:-1]))


def rearranged(values: Sequence[Known], arrange: Callable[[Sequence[Any]], Any]) -> Known:
    """Applies `arrange` to values and to their marks alike."""
    if not any(type(v) is Partly for v in values):
        return arrange(values)
    data = [plain(v) for v in values]
    return partly(arrange(data), arrange([np.broadcast_to(marks(v), d.shape) for v, d in zip(values, data, strict=True)]))


def read(site: int, elements: Array) -> Marks:
    """Marks for elements that an access reads before anything defined was written to them."""
    found: Marks = (np.int64(site) << ELEMENT_BITS) + elements + 1
    return found


def origin(mark: int) -> tuple[int, int]:
    """The access and the element that a mark encodes."""
    return mark >> ELEMENT_BITS, (mark & ((1 << ELEMENT_BITS) - 1)) - 1
