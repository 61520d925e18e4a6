"""The meaning of an instruction: one assignment over the axes of its shape, executable in NumPy.

There are three kinds. A move copies elements; a pointwise instruction computes them; an update combines a chunk of a reduction into its
accumulator: axes that occur in the value but not in the target are reduced. Arithmetic uses the real types (16-bit floats in float32,
rounded where they are stored or cast), the accumulator first and then the chunk in order, so the result is one that a device may give.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tilelang.core import dtype as dt
from tilelang.core.expr import Axis, Expr, Pad, Read, Reduce, Select, as_expr, by_names, to_text
from tilelang.core.node import Node, node
from tilelang.core.simplify import interval
from tilelang.errors import ComputationError, counted

if TYPE_CHECKING:
    import numpy as np

MOVE, UPDATE, POINTWISE = "move", "update", "pointwise"
COMBINERS = ("sum", "prod", "max", "min")


@node
class Means(Node):
    """`target = value` (move, pointwise), or `target combiner= value` over the axes that the target lacks (update)."""

    kind: str
    target: Read
    value: Expr
    combiner: str = ""

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The target's axes in order, then the reduced ones in order of first appearance."""
        return (*self.target_axes, *self.reduced)

    @property
    def target_axes(self) -> tuple[Axis, ...]:
        return tuple(i for i in self.target.indices if isinstance(i, Axis))

    @property
    def reduced(self) -> tuple[Axis, ...]:
        kept = frozenset(self.target_axes)
        return tuple(dict.fromkeys(a for a in self.value.walk() if isinstance(a, Axis) and a not in kept))

    @property
    def reads(self) -> tuple[Read, ...]:
        """Every distinct read of the value."""
        return tuple(e for e in self.value.walk() if isinstance(e, Read))

    def __str__(self) -> str:
        if self.kind != UPDATE:
            return f"{to_text(self.target)} = {to_text(self.value)}"
        over = f"{self.combiner}[{', '.join(a.name for a in self.reduced)}] " if self.reduced else ""
        sign = {"sum": "+=", "prod": "*="}.get(self.combiner, f"{self.combiner}=")
        return f"{to_text(self.target)} {sign} {over}{to_text(self.value)}"


def _target(target: Any) -> Read:
    if not isinstance(target, Read) or len(set(target.indices)) != len(target.indices):
        raise ComputationError(
            "means-target", f"`{target}` cannot be assigned to", help="assign to an operand at distinct axes: C[m, n]"
        )
    if not all(isinstance(i, Axis) for i in target.indices):
        raise ComputationError("means-target", f"`{target}` is not read at plain axes", help="write C[m, n] with m, n axes")
    named: Read = by_names(target)
    return named


def moves(target: Any, source: Any) -> Means:
    """The meaning of a move: every element of `target` is that of `source`, both operands at axes: `moves(D[m, k], S[m, k])`."""
    target = _target(target)
    if not isinstance(source, (Read, Pad)):
        raise ComputationError("means-move", f"a move copies; `{source}` computes", help="use computes(target, value)")
    found = Means(MOVE, target, by_names(source))
    _no_reduction(found)
    return found


def computes(target: Any, value: Any) -> Means:
    """The meaning of a pointwise instruction: `computes(D[n], cast(A[n], float32) * scale[()])`."""
    target = _target(target)
    found = Means(POINTWISE, target, by_names(as_expr(value, target.dtype)))
    _no_reduction(found)
    return found


def updates(target: Any, value: Any, combiner: str = "sum") -> Means:
    """The meaning of an update: `updates(C[m, n], A[m, k] * B[k, n])` is C += A B for a chunk of a reduction.

    value: the terms; a reduction such as `tl.sum(..., over=k)` is accepted and names the combiner itself.
    combiner: sum, prod, max or min.
    """
    target = _target(target)
    value = by_names(as_expr(value, target.dtype))
    if isinstance(value, Reduce):
        if len(value.values) != 1 or value.condition is not None:
            raise ComputationError(
                "means-update", "an update reduces one value without a condition", help="use a plain sum, prod, max or min"
            )
        found = Means(UPDATE, target, value.values[0], value.combiner.name)
        if set(found.reduced) != set(value.axes):
            names = ", ".join(a.name for a in found.reduced)
            raise ComputationError(
                "means-update", "the reduction's axes differ from the axes that the target lacks", help=f"reduce over ({names})"
            )
    else:
        found = Means(UPDATE, target, value, combiner)
    if found.combiner not in COMBINERS:
        raise ComputationError(
            "means-combiner", f"there is no update with `{found.combiner}`", help="use one of " + ", ".join(COMBINERS)
        )
    if any(isinstance(e, Reduce) for e in found.value.walk()):
        raise ComputationError("means-update", "a reduction inside a reduction", help="use one reduction in each update")
    return found


def _no_reduction(means: Means) -> None:
    if means.reduced or any(isinstance(e, Reduce) for e in means.value.walk()):
        names = ", ".join(a.name for a in means.reduced)
        raise ComputationError(
            "means-free-axis", f"`{means}` has axes that its target lacks: {names}", help="use updates(...) for a reduction"
        )


# ---------------------------------------------------------------- evaluation


def check_bounds(means: Means) -> None:
    """Refuses an out-of-bounds read of an operand, unless it is in a branch of a `where` or under `pad`."""
    import numpy as np  # late: NumPy takes long to import

    guarded = {r for e in means.value.walk() if isinstance(e, (Select, Pad)) for r in e.walk() if isinstance(r, Read)}
    grid = _Grid(means.axes, {}, np.float64)
    for read in (means.target, *means.reads):
        dims = read.tensor.dims
        if len(read.indices) != len(dims):
            raise ComputationError(
                "means-rank",
                f"`{to_text(read)}`: {read.tensor.name} has {counted(len(dims), 'dimension')}",
                help="give one index for each dimension",
            )
        if read in guarded:
            continue
        for index, dim in zip(read.indices, dims, strict=True):
            low, high = interval(index)
            if low is not None and high is not None and 0 <= low and high < dim.extent:
                continue
            places = np.broadcast_to(grid.value(index), grid.extents)
            wrong = np.argwhere((places < 0) | (places >= dim.extent))
            if wrong.size:
                at = ", ".join(f"{a.name} = {p}" for a, p in zip(means.axes, wrong[0], strict=True))
                raise ComputationError(
                    "means-outside",
                    f"`{to_text(read)}` reads outside {read.tensor.name}, of extent {dim.extent} along {dim.name}",
                    counterexample=f"at {at} the index is {places[tuple(wrong[0])]}",
                    help="make the operand as large as the shape needs",
                )


def evaluate(means: Means, arrays: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    """The target after the instruction, from dense operands (..., *dims) by name; leading dimensions are instances.

    An update needs the target's value before as well. A move keeps the type of its source.
    """
    import numpy as np  # late: NumPy takes long to import

    from tilelang.core import numeric  # late: imports NumPy

    doubles = any(isinstance(e, Expr) and e.dtype == dt.float64 for e in means.value.walk())
    wide = np.float64 if doubles or means.target.dtype == dt.float64 else np.float32
    grid = _Grid(means.axes, arrays, None if means.kind == MOVE else wide)
    value = grid.value(means.value)
    terms = np.broadcast_to(value, np.broadcast_shapes(np.shape(value), grid.extents))
    if means.kind == MOVE:
        return terms
    work = dt.compute_type(means.target.dtype)
    terms = numeric.cast(terms, means.value.dtype, work, wide)
    if means.kind == UPDATE:
        operator = {"sum": "+", "prod": "*"}.get(means.combiner, means.combiner)
        batch = terms.shape[: terms.ndim - len(grid.extents)]
        chunk = terms.reshape(*batch, *(a.extent for a in means.target_axes), -1)
        terms = np.asarray(arrays[means.target.tensor.name]).astype(work.numpy)
        with numeric.quiet():
            for number in range(chunk.shape[-1]):
                terms = numeric.binary(operator, terms, chunk[..., number])
    with numeric.quiet():
        return np.asarray(terms).astype(means.target.dtype.numpy)


def undefined(means: Means, arrays: Mapping[str, Any], marks: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    """Which elements of the target are undefined after the instruction: each gets the greatest mark of the elements that it depends on,
    0 if all are defined.

    arrays: as for `evaluate`. marks: in the same form, integers, 0 where an element is defined. Values that a `where` or `pad`
    does not choose are ignored; a value that is read at an undefined index is undefined.
    """
    import numpy as np  # late: NumPy takes long to import

    grid = _Grid(means.axes, arrays, None)
    grid.value(means.value)

    def mark(e: Any) -> Any:
        match e:
            case Read(tensor, indices):
                inside, places = grid.places(e)
                at = functools.reduce(np.maximum, map(mark, indices), np.int64(0))
                return np.maximum(at, grid.elements(np.asarray(marks[tensor.name]), places))
            case Pad(read):
                return np.where(grid.places(read)[0], mark(read), 0)
            case Select(condition, then, otherwise):
                return np.maximum(mark(condition), np.where(grid.value(condition), mark(then), mark(otherwise)))
            case _:
                return functools.reduce(np.maximum, (mark(c) for c in e.children() if isinstance(c, Expr)), np.int64(0))

    found = mark(means.value)
    found = np.broadcast_to(found, np.broadcast_shapes(np.shape(found), grid.extents))
    if means.kind == UPDATE:
        batch = found.shape[: found.ndim - len(grid.extents)]
        chunk = found.reshape(*batch, *(a.extent for a in means.target_axes), -1)
        found = np.maximum(chunk.max(axis=-1, initial=0), marks[means.target.tensor.name])
    return np.asarray(found)


@functools.lru_cache(maxsize=256)
def _places(read: Read, axes: tuple[Axis, ...]) -> tuple[Any, list[Any]]:
    """`_Grid.places` for indices that depend only on axes, cached because it is the same for every execution."""
    return _Grid(axes, {}, None).places(read)


class _Grid:
    """All points of some axes at once. Reads become arrays over instances and points. wide: the type to compute floats in; None:
    unchanged."""

    def __init__(self, axes: tuple[Axis, ...], arrays: Mapping[str, Any], wide: Any) -> None:
        import numpy as np  # late: NumPy takes long to import

        self.axes, self.extents, self.arrays, self.wide = axes, tuple(a.extent for a in axes), arrays, wide
        self.known: dict[Expr, Any] = {a: np.arange(a.extent).reshape([-1 if b is a else 1 for b in axes]) for a in axes}

    def value(self, e: Expr) -> Any:
        """An expression at every point."""
        from tilelang.core import numeric  # late: imports NumPy

        for found in e.walk():
            if isinstance(found, Read):
                self._read(found)
            elif isinstance(found, Pad):
                self._pad(found)
        return numeric.evaluate(e, self.known, self.wide)

    def places(self, read: Read) -> tuple[Any, list[Any]]:
        """Whether each element that is read is in bounds, and its position; others are clamped (both branches are computed)."""
        if self.arrays and not any(isinstance(e, Read) for i in read.indices for e in i.walk()):
            return _places(read, self.axes)
        import numpy as np  # late: NumPy takes long to import

        inside: Any = np.True_
        places = []
        for index, dim in zip(read.indices, read.tensor.dims, strict=True):
            place = self.value(index)
            place = np.asarray(place).reshape((1,) * (len(self.extents) - np.ndim(place)) + np.shape(place))
            inside = inside & (place >= 0) & (place < dim.extent)
            places.append(np.clip(place, 0, dim.extent - 1))
        return inside, places

    def elements(self, array: Any, places: list[Any]) -> Any:
        """The elements of an operand (..., *dims) at places inside it."""
        if any(place.ndim > len(self.extents) for place in places):
            return self._gathered(array, places)
        return array[(..., *places)] if places else array.reshape(*array.shape, *[1] * len(self.extents))

    def _read(self, read: Read) -> Any:
        """Reads elements into `known`; returns whether each is in bounds."""
        import numpy as np  # late: NumPy takes long to import

        inside, places = self.places(read)
        if read not in self.known:
            found = self.elements(np.asarray(self.arrays[read.tensor.name]), places)
            self.known[read] = found.astype(self.wide) if self.wide and read.dtype.is_float else found
        return inside

    def _gathered(self, array: Any, places: list[Any]) -> Any:
        """The elements at positions that differ between instances, because another operand determines them."""
        import numpy as np  # late: NumPy takes long to import

        rank = len(places)
        flat = np.ravel_multi_index(np.broadcast_arrays(*places), array.shape[array.ndim - rank :])
        instances = flat.shape[: flat.ndim - len(self.extents)]
        rows = np.broadcast_to(array, (*instances, *array.shape[array.ndim - rank :])).reshape(*instances, -1)
        return np.take_along_axis(rows, flat.reshape(*instances, -1), axis=-1).reshape(flat.shape)

    def _pad(self, pad: Pad) -> None:
        import numpy as np  # late: NumPy takes long to import

        inside = self._read(pad.read)
        there = self.known[pad.read]
        self.known[pad] = np.where(inside, there, np.asarray(pad.value.value).astype(there.dtype))
