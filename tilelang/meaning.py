"""What an instruction means: one assignment over the axes of its shape, executable in NumPy.

Three kinds. A move copies elements; a pointwise body computes them; an update combines a chunk of a reduction into its accumulator:
axes that occur in the value and not in the target are reduced. Arithmetic is done in the real types (16-bit floats in float32,
rounded where stored or cast), the accumulator first and then the chunk in order, so that a result here is one that a device may give.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tilelang import dtype as dt
from tilelang.errors import ComputationError
from tilelang.expr import Axis, Binary, Call, Cast, Const, Expr, Pad, Read, Reduce, Select, Unary, as_expr, to_text, unique
from tilelang.node import Node, node

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
        kept = self.target_axes
        return tuple(dict.fromkeys(a for a in unique(self.value) if isinstance(a, Axis) and a not in kept))

    @property
    def reads(self) -> tuple[Read, ...]:
        """Every distinct read of the value."""
        return tuple(e for e in unique(self.value) if isinstance(e, Read))

    def __str__(self) -> str:
        if self.kind != UPDATE:
            return f"{to_text(self.target)} = {to_text(self.value)}"
        over = f"{self.combiner}[{', '.join(a.name for a in self.reduced)}] " if self.reduced else ""
        sign = {"sum": "+=", "prod": "*="}.get(self.combiner, f"{self.combiner}=")
        return f"{to_text(self.target)} {sign} {over}{to_text(self.value)}"


def _target(target: Any) -> Read:
    if not isinstance(target, Read) or len(set(target.indices)) != len(target.indices):
        raise ComputationError("means-target", f"`{target}` cannot be assigned to", mend="an operand at distinct axes: C[m, n]")
    if not all(isinstance(i, Axis) for i in target.indices):
        raise ComputationError("means-target", f"`{target}` is not read at plain axes", mend="write C[m, n] with m, n axes")
    return target


def moves(target: Any, source: Any) -> Means:
    """The meaning of a move: every element of `target` is that of `source`, both operands at axes: `moves(D[m, k], S[m, k])`."""
    target = _target(target)
    if not isinstance(source, (Read, Pad)):
        raise ComputationError("means-move", f"a move copies; `{source}` computes", mend="use computes(target, value)")
    found = Means(MOVE, target, source)
    _no_reduction(found)
    return found


def computes(target: Any, value: Any) -> Means:
    """The meaning of a pointwise instruction: `computes(D[n], cast(A[n], float32) * scale[()])`."""
    target = _target(target)
    found = Means(POINTWISE, target, as_expr(value, target.dtype))
    _no_reduction(found)
    return found


def updates(target: Any, value: Any, combiner: str = "sum") -> Means:
    """The meaning of a chunk of a reduction into its accumulator: `updates(C[m, n], A[m, k] * B[k, n])` is C += A B.

    value: the terms; a reduction such as `tl.sum(..., over=k)` is accepted and names the combiner itself.
    combiner: sum, prod, max or min.
    """
    target = _target(target)
    if isinstance(value, Reduce):
        if len(value.values) != 1 or value.condition is not None:
            raise ComputationError(
                "means-update", "an update reduces one value without a condition", mend="a plain sum, prod, max or min"
            )
        found = Means(UPDATE, target, value.values[0], value.combiner.name)
        if set(found.reduced) != set(value.axes):
            names = ", ".join(a.name for a in found.reduced)
            raise ComputationError("means-update", "the reduction's axes are not those the target lacks", mend=f"over ({names})")
    else:
        found = Means(UPDATE, target, as_expr(value, target.dtype), combiner)
    if found.combiner not in COMBINERS:
        raise ComputationError("means-combiner", f"no update by `{found.combiner}`", mend="one of " + ", ".join(COMBINERS))
    if any(isinstance(e, Reduce) for e in unique(found.value)):
        raise ComputationError("means-update", "a reduction inside a reduction", mend="one update is one reduction")
    return found


def _no_reduction(means: Means) -> None:
    if means.reduced or any(isinstance(e, Reduce) for e in unique(means.value)):
        names = ", ".join(a.name for a in means.reduced)
        raise ComputationError(
            "means-free-axis", f"`{means}` has axes that its target lacks: {names}", mend="use updates(...) for a reduction"
        )


# ---------------------------------------------------------------- evaluation


def check_bounds(means: Means) -> None:
    """Refuses a read outside its operand, unless it stands in a branch of a `where` or under `pad`."""
    import numpy as np

    guarded = {r for e in unique(means.value) if isinstance(e, (Select, Pad)) for r in unique(e) if isinstance(r, Read)}
    grid = _grid(means.axes)
    for read in (means.target, *means.reads):
        dims = read.tensor.dims
        if len(read.indices) != len(dims):
            raise ComputationError(
                "means-rank", f"`{to_text(read)}`: {read.tensor.name} has {len(dims)} dimensions", mend="one index per dimension"
            )
        if read in guarded:
            continue
        for index, dim in zip(read.indices, dims, strict=True):
            places = np.asarray(_Evaluation(grid, {}).value(index))
            wrong = (places < 0) | (places >= dim.extent)
            if wrong.any():
                point = np.argwhere(np.broadcast_to(wrong, tuple(a.extent for a in means.axes)))[0]
                at = ", ".join(f"{a.name} = {p}" for a, p in zip(means.axes, point, strict=True))
                raise ComputationError(
                    "means-outside",
                    f"`{to_text(read)}` reads outside {read.tensor.name}, of extent {dim.extent} along {dim.name}",
                    counterexample=f"at {at} the index is {places[wrong].ravel()[0]}",
                    mend="make the operand as large as the shape asks",
                )


def evaluate(means: Means, arrays: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    """The target after the instruction, from dense operands (..., *dims) by name; leading dimensions are instances.

    An update needs the target's value before as well. A move hands on whatever type it is given.
    """
    import numpy as np

    with np.errstate(all="ignore"):
        axes = means.axes
        if means.kind == MOVE:
            found: np.ndarray[Any, Any] = _Evaluation(_grid(axes), arrays, carry=True).value(means.value)
            return found
        extents = tuple(a.extent for a in axes)
        batch = np.broadcast_shapes(*(np.shape(arrays[r.tensor.name])[: -len(r.indices) or None] for r in means.reads))
        work = dt.compute_type(means.target.dtype)
        terms = _Evaluation(_grid(axes), arrays).value(means.value)
        terms = np.broadcast_to(_cast(terms, means.value.dtype, work), (*batch, *extents))
        if means.kind == UPDATE:
            state = np.asarray(arrays[means.target.tensor.name]).astype(work.numpy)
            chunk = terms.reshape(*batch, *(a.extent for a in means.target_axes), -1)
            for number in range(chunk.shape[-1]):
                state = _COMBINE[means.combiner](state, chunk[..., number])
            terms = state
        return np.asarray(terms).astype(means.target.dtype.numpy)


def _grid(axes: tuple[Axis, ...]) -> dict[Expr, Any]:
    """Each axis' values, shaped to broadcast over all of them."""
    import numpy as np

    return {a: np.arange(a.extent).reshape([-1 if b is a else 1 for b in axes]) for a in axes}


class _Evaluation:
    """One evaluation of an expression over a grid; each distinct node is computed once."""

    def __init__(self, grid: dict[Expr, Any], arrays: Mapping[str, Any], carry: bool = False) -> None:
        self.done, self.arrays, self.rank, self.carry = dict(grid), arrays, len(grid), carry

    def value(self, e: Expr) -> Any:
        found = self.done.get(e)
        if found is None:
            found = self.done[e] = self._compute(e)
        return found

    def _compute(self, e: Expr) -> Any:
        import numpy as np

        match e:
            case Const(value, type):
                return np.array(value).astype(dt.compute_type(type).numpy)
            case Binary(op, left, right):
                return _BINARY[op](self.value(left), self.value(right))
            case Unary(op, operand):
                return _UNARY[op](self.value(operand))
            case Call(name, args):
                x = self.value(args[0])
                result = np.asarray(_CALLS[name](x))
                return result if result.dtype == bool else result.astype(x.dtype)
            case Select(condition, then, otherwise):
                return np.where(self.value(condition), self.value(then), self.value(otherwise))
            case Cast(operand, type):
                return _cast(self.value(operand), operand.dtype, type)
            case Pad(read, value):
                inside, places = self._places(read)
                there = self._at(read, places)
                return np.where(inside, there, self.value(value).astype(there.dtype))
            case Read():
                return self._at(e, self._places(e)[1])
            case _:
                raise ComputationError("means-expression", f"`{to_text(e)}` cannot stand in an instruction's meaning")

    def _places(self, read: Read) -> tuple[Any, list[Any]]:
        """Whether each index lies inside, and the indices brought inside (a branch not taken reads some other element)."""
        import numpy as np

        inside: Any = np.True_
        places = []
        for index, dim in zip(read.indices, read.tensor.dims, strict=True):
            place = np.asarray(self.value(index))
            inside = inside & (place >= 0) & (place < dim.extent)
            places.append(np.clip(place, 0, dim.extent - 1))
        return inside, places

    def _at(self, read: Read, places: list[Any]) -> Any:
        import numpy as np

        array = np.asarray(self.arrays[read.tensor.name])
        ones = [1] * self.rank
        if places:
            shaped = np.broadcast_arrays(*(np.reshape(p, ones) if np.ndim(p) == 0 else p for p in places))
            found = array[(..., *shaped)]
        else:
            found = array.reshape(*array.shape, *ones)  # the one element, beside every point of the grid
        return found if self.carry else found.astype(dt.compute_type(read.dtype).numpy)


def _cast(values: Any, source: dt.DType, target: dt.DType) -> Any:
    import numpy as np

    if source == target:
        return values
    if target.kind == "bool":
        return values != 0
    if source.is_float and target.is_integer:
        values = np.trunc(values).astype(np.uint64 if target.name == "uint64" else np.int64)
    return np.asarray(values).astype(target.numpy).astype(dt.compute_type(target).numpy)


def _numpy(name: str) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        import numpy as np

        return getattr(np, name)(*args)

    return call


def _erf(x: Any) -> Any:
    import numpy as np

    return np.vectorize(math.erf, otypes=[np.float64])(x)


_BINARY: dict[str, Callable[..., Any]] = {
    "+": _numpy("add"), "-": _numpy("subtract"), "*": _numpy("multiply"), "/": _numpy("divide"), "//": _numpy("floor_divide"),
    "%": _numpy("mod"), "min": _numpy("minimum"), "max": _numpy("maximum"), "pow": _numpy("power"), "&": _numpy("bitwise_and"),
    "|": _numpy("bitwise_or"), "^": _numpy("bitwise_xor"), "<<": _numpy("left_shift"), ">>": _numpy("right_shift"),
    "==": _numpy("equal"), "!=": _numpy("not_equal"), "<": _numpy("less"), "<=": _numpy("less_equal"),
    "and": _numpy("logical_and"), "or": _numpy("logical_or"),
}  # fmt: skip
_UNARY: dict[str, Callable[..., Any]] = {"-": _numpy("negative"), "not": _numpy("logical_not"), "~": _numpy("invert")}
_CALLS: dict[str, Callable[..., Any]] = {
    **{name: _numpy(name) for name in ("exp", "exp2", "log", "log2", "log1p", "expm1", "sqrt", "sin", "cos", "tanh")},
    **{name: _numpy(name) for name in ("floor", "ceil", "abs", "isnan")},
    "round": _numpy("rint"),
    "rsqrt": lambda x: 1 / _numpy("sqrt")(x),
    "sigmoid": lambda x: 1 / (1 + _numpy("exp")(-x)),
    "erf": _erf,
}
_COMBINE = {"sum": _BINARY["+"], "prod": _BINARY["*"], "max": _BINARY["max"], "min": _BINARY["min"]}
