"""Evaluates the definitions of a computation in NumPy as written, without simplification, with or without errors (error_bound.py).

A definition is evaluated block by block over its axes and those of its reduction, so that no temporary array exceeds a fixed size
beyond the definition's result. Within a block every axis has its own dimension, and an expression is an array with extent 1 along axes
that it does not depend on. A sum of products of two factors is one matrix product instead: equal up to the wide type's rounding.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tilelang.computations.bounds_check import inside_everywhere
from tilelang.computations.computation import Computation, Definition, Tensor
from tilelang.computations.elaborate import free_axes
from tilelang.core import dtype as dt
from tilelang.core import numeric
from tilelang.core.expr import Axis, Binary, Call, Cast, Const, Expr, Pad, Read, Reduce, Select, Unary
from tilelang.errors import ComputationError
from tilelang.semantics.contraction import contract
from tilelang.semantics.error_bound import (
    TF32_UNIT,
    ULPS,
    Approx,
    Arithmetic,
    Rounding,
    certain,
    err,
    product_error,
    rounding,
    sum_error,
    unknown_if_nan,
)
from tilelang.semantics.loop_members import SharedLoop
from tilelang.semantics.reduction_error import Combining, Part
from tilelang.semantics.shared_loop import with_errors

BLOCK = 1 << 17  # points of a block
FACTOR = 1 << 25  # maximum elements of a product's factor that is evaluated whole
PRODUCTS = 1 << 23  # elements of a product's result that are computed at once
SMALL = 1 << 14  # points below which a sum of products does not use a matrix product

Ranges = tuple[tuple[int, int], ...]


class Evaluator:
    """Evaluates all tensors of a computation from its inputs, except those of definitions whose values are in `arrays`.

    errors: also carry errors. wide: the type that holds floats. slack, ulps: the accuracy of operations and functions, as for
    `Arithmetic`. loops: those whose repairs add to the errors.
    """

    def __init__(
        self,
        computation: Computation,
        arrays: Mapping[Tensor, Any],
        errors: bool,
        wide: Any = None,
        slack: float = 1,
        ulps: Mapping[str, float] = ULPS,
        loops: Sequence[SharedLoop] = (),
    ) -> None:
        self.computation, self.errors, self.slack, self.ulps = computation, errors, slack, ulps
        self.loops = [loop for loop in loops if errors and loop.repaired]
        floats = {t.dtype for d in computation.definitions for t in d.tensors} | {t.dtype for t in computation.inputs}
        self.wide: Any = wide or (np.longdouble if any(t.name == "float64" for t in floats) else np.float64)
        with numeric.quiet():  # signalling NaNs
            self.values: dict[Tensor, Approx] = {
                t: Approx(a.astype(self.wide) if t.dtype.is_float else np.asarray(a)) for t, a in arrays.items()
            }

    def run(self, wanted: Collection[Tensor] | None = None) -> dict[Tensor, Approx]:
        """The value of every tensor, each rounded by its definition. wanted: only these; others are freed after their last read."""
        waiting, unread = [*self.loops], set[Tensor]()
        with numeric.quiet():
            for definition, last in zip(self.computation.definitions, last_read(self.computation), strict=True):
                if not self.values.keys() >= set(definition.tensors):
                    made = self.reduction(definition) if definition.reduction is not None else self.pointwise(definition)
                    self.values |= {t: self.stored(found, t) for t, found in zip(definition.tensors, made, strict=True)}
                for loop in (loop for loop in self.loops if loop.members[-1].definition is definition):
                    self.values |= with_errors(self, loop)
                    waiting.remove(loop)
                unread |= set() if wanted is None else set(last) - set(wanted)
                for tensor in () if waiting else unread:  # a shared loop may read the tensors of its first members again
                    del self.values[tensor]
                unread = unread if waiting else set()
        return self.values

    def stored(self, a: Approx, t: Tensor) -> Approx:
        shape = t.shape
        value = numeric.store(np.broadcast_to(a.value, shape), t.dtype, self.wide)
        if a.error is None:
            return Approx(value)
        error = np.broadcast_to(np.asarray(a.error, np.float64), shape)
        if not t.dtype.is_float or t.dtype.bits < 32:
            return Approx(value, error)  # the cast at the root of a 16-bit definition counted both roundings
        # The kernel's last operation has already rounded; the reference rounds here.
        return Approx(value, unknown_if_nan(error + np.where(error > 0, rounding(t.dtype).unit * np.abs(value), 0.0)))

    def arithmetic(self, definition: Definition) -> Arithmetic:
        return Arithmetic(self.wide, self.errors, definition.allow, slack=self.slack, ulps=self.ulps)

    def pointwise(self, definition: Definition) -> tuple[Approx, ...]:
        tensor, shape = definition.tensors[0], tuple(a.extent for a in definition.axes)
        out = self.empty(tensor, shape)
        error: Any = None
        for ranges in blocks(shape, BLOCK):
            found = Block(self, definition, definition.axes, ranges).value(definition.values[0])
            where = tuple(slice(*r) for r in ranges)
            out[where] = found.value
            if found.error is not None:
                if error is None:
                    error = np.zeros(shape)
                error[where] = found.error
        return (Approx(out, error),)

    def empty(self, tensor: Tensor, shape: tuple[int, ...]) -> Any:
        return np.empty(shape, self.wide if tensor.dtype.is_float else tensor.dtype.numpy)

    def reduction(self, definition: Definition) -> tuple[Approx, ...]:
        reduce = definition.reduction
        assert reduce is not None
        matrix = self.matrix_product(definition, reduce)
        if matrix is not None:
            return (matrix,)
        outer = tuple(a.extent for a in definition.axes)
        inner = tuple(a.extent for a in reduce.axes)
        outs = [self.empty(t, outer) for t in definition.tensors]
        errors = [np.zeros(outer) for _ in outs] if self.errors else []
        inner_points = max(1, math.prod(inner))
        for ranges in blocks(outer, max(1, BLOCK // inner_points)):
            state = make_state(self, definition, reduce, tuple(b - a for a, b in ranges))
            for below in blocks(inner, BLOCK):
                block = Block(self, definition, (*definition.axes, *reduce.axes), (*ranges, *below))
                state.take(block)
            where = tuple(slice(*r) for r in ranges)
            for i, found in enumerate(state.result()):
                outs[i][where] = found.value
                if self.errors:
                    errors[i][where] = err(found)
        return tuple(Approx(o, errors[i] if self.errors else None) for i, o in enumerate(outs))

    # ------------------------------------------------------------ sums of products

    def matrix_product(self, definition: Definition, reduce: Reduce) -> Approx | None:
        """A sum of products of two factors; None for other reductions, and if it is too small or too large for a matrix product."""
        axes, (value, *_) = (*definition.axes, *reduce.axes), reduce.values
        if reduce.combiner.name != "sum" or not reduce.dtype.is_float or not isinstance(value, Binary) or value.op != "*":
            return None
        mask = frozenset() if reduce.condition is None else free_axes(reduce.condition)
        depends = [free_axes(value.left) | mask, free_axes(value.right)]
        points = math.prod(a.extent for a in axes)
        if points < SMALL or any(math.prod(a.extent for a in d) > FACTOR for d in depends):
            return None
        if any(a not in depends[0] | depends[1] for a in axes):
            return None
        shape, whole = tuple(a.extent for a in definition.axes), tuple((0, a.extent) for a in reduce.axes)
        out, error = self.empty(definition.tensors[0], shape), np.zeros(shape) if self.errors else None
        for ranges in blocks(shape, PRODUCTS):
            part = self.product(definition, reduce, Block(self, definition, axes, (*ranges, *whole)))
            if part is None:
                return None
            where = tuple(slice(*r) for r in ranges)
            out[where] = part.value
            if error is not None:
                error[where] = err(part)
        return Approx(out, error)

    def product(self, definition: Definition, reduce: Reduce, block: Block) -> Approx | None:
        """A block of a sum of products; None if points excluded by the condition are not finite."""
        (value, *_), axes = reduce.values, (*definition.axes, *reduce.axes)
        assert isinstance(value, Binary)
        guards = () if reduce.condition is None else (reduce.condition,)
        left, right = block.value(value.left, guards), block.value(value.right, guards)
        terms: Any = math.prod(a.extent for a in reduce.axes)
        if reduce.condition is not None:
            keep = block.value(reduce.condition).value
            below = range(len(definition.axes), len(axes))
            terms = np.sum(keep, axis=tuple(below)) * math.prod(axes[d].extent for d in below if keep.shape[d] == 1)
            if not np.all(np.isfinite(right.value)) or not np.all(np.isfinite(err(right))):
                return None
            left = Approx(np.where(keep, left.value, 0.0), None if left.error is None else np.where(keep, left.error, 0.0))
        return self.contracted(definition, reduce, (left, right), terms)

    def contracted(self, definition: Definition, reduce: Reduce, factors: tuple[Approx, Approx], terms: Any) -> Approx:
        count = len(definition.axes)
        (a, ea), (b, eb) = factors
        value = contract(a, b, count)
        if not self.errors:
            return Approx(value)
        r = state_rounding(definition, reduce, self.slack)
        work = rounding(reduce.values[0].dtype, self.slack)
        x, y = (np.where(np.isfinite(f), np.abs(f), 0.0).astype(np.float64) for f in (a, b))
        magnitude = contract(x, y, count)
        moved = np.zeros(value.shape)
        for p, q in ((x, eb), (ea, y), (ea, eb)):
            if p is not None and q is not None:
                shape_p, shape_q = (np.broadcast_to(np.asarray(f, np.float64), g.shape) for f, g in ((p, a), (q, b)))
                moved = moved + unknown_if_nan(contract(shape_p, shape_q, count))
        relaxed = 2.01 * TF32_UNIT if "tf32" in definition.allow else 0.0
        moved = moved + (work.unit + relaxed) * (magnitude + moved) + terms * work.tiny
        return Approx(value, sum_error(value, magnitude, moved, terms, r))


def last_read(computation: Computation) -> list[list[Tensor]]:
    """For each definition, the tensors (except outputs) that no later one reads."""
    found, later = list[list[Tensor]](), set(computation.outputs)
    for definition in reversed(computation.definitions):
        found.insert(0, [t for t in dict.fromkeys((*definition.tensors, *definition.reads)) if t not in later])
        later.update(found[0])
    return found


def peak_bytes(computation: Computation, errors: bool) -> int:
    """An upper bound on the bytes of tensors that an evaluation holds at once. errors: including their errors."""
    wide = 16 if any(t.dtype.name == "float64" for d in computation.definitions for t in (*d.tensors, *d.reads)) else 8

    def size(t: Tensor, made: bool) -> int:
        value = wide if t.dtype.is_float else t.dtype.bytes
        return math.prod(t.shape) * (value + 8 * (errors and made))

    now = most = sum(size(t, False) for t in computation.inputs)
    for definition, last in zip(computation.definitions, last_read(computation), strict=True):
        now += sum(size(t, True) for t in definition.tensors)
        most = max(most, now)
        now -= sum(size(t, t.definition is not None) for t in last)
    return most


def state_rounding(definition: Definition, reduce: Reduce, slack: float) -> Rounding:
    """The rounding of a reduction's accumulator: that of its type, or of float16 if the definition permits it."""
    return rounding(dt.float16 if "float16_accumulate" in definition.allow else reduce.dtype, slack)


def blocks(shape: tuple[int, ...], limit: int) -> Iterator[Ranges]:
    """The ranges of blocks of at most `limit` points that cover a shape; none for an empty shape, one () for a scalar."""
    if 0 in shape:  # otherwise `product` would enumerate the other dimensions
        return
    steps, room = [], limit
    for extent in reversed(shape):
        steps.append(max(1, min(extent, room)))
        room //= max(1, steps[-1])
    steps.reverse()
    starts = [range(0, extent, step) for extent, step in zip(shape, steps, strict=True)]
    for corner in itertools.product(*starts):
        yield tuple((c, min(c + step, extent)) for c, step, extent in zip(corner, steps, shape, strict=True))


# ---------------------------------------------------------------- the state of a reduction, block by block


class State:
    """Partial results over the reduction blocks of one output block."""

    def __init__(self, evaluator: Evaluator, definition: Definition, reduce: Reduce, shape: tuple[int, ...]) -> None:
        self.evaluator, self.definition, self.reduce, self.shape = evaluator, definition, reduce, shape
        self.axes = tuple(range(len(shape), len(shape) + len(reduce.axes)))
        self.points = 0

    def terms(self, block: Block) -> tuple[list[Approx], Any]:
        """The values at the block's points, the identity where the condition does not hold, and the number of points per output."""
        reduce = self.reduce
        full = block.shape
        inside = math.prod(full[d] for d in self.axes)
        self.points += inside
        if reduce.condition is None:
            return [_spread(block.value(v), full) for v in reduce.values], inside
        keep = np.broadcast_to(block.value(reduce.condition).value, full)
        found = []
        for v, neutral in zip(reduce.values, reduce.combiner.identity, strict=True):
            a = _spread(block.value(v, (reduce.condition,)), full)
            empty = numeric.constant(neutral.value, neutral.type, self.evaluator.wide)
            found.append(Approx(np.where(keep, a.value, empty), None if a.error is None else np.where(keep, a.error, 0.0)))
        return found, np.sum(keep, axis=self.axes)


class SimpleState(State):
    """sum, prod, max, min: uses NumPy's own reductions."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        identity = self.reduce.combiner.identity[0]
        self.value = np.broadcast_to(numeric.constant(identity.value, identity.type, self.evaluator.wide), self.shape)
        self.magnitude: Any = np.zeros(self.shape)
        self.moved: Any = np.zeros(self.shape)
        self.count: Any = 0
        self.errors: list[Any] = []

    def take(self, block: Block) -> None:
        (term,), count = self.terms(block)
        name = self.reduce.combiner.name
        kind = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[name]
        part = kind.reduce(term.value, axis=self.axes, dtype=term.value.dtype)
        self.count = self.count + count
        if self.evaluator.errors and self.reduce.dtype.is_float:
            self.take_error(term, part, count)
        elif self.evaluator.errors and term.error is not None:
            self.moved = np.maximum(self.moved, term.error.max(axis=self.axes)) if name in ("max", "min") else np.where(
                np.any(term.error != 0, axis=self.axes), np.inf, self.moved
            )  # fmt: skip
        self.value = kind(self.value, part)

    def take_error(self, term: Approx, part: Any, count: Any) -> None:
        error = np.broadcast_to(np.asarray(err(term), np.float64), term.value.shape)
        match self.reduce.combiner.name:
            case "sum":
                size = np.where(np.isfinite(term.value), np.abs(term.value), 0.0)
                if (
                    "tf32" in self.definition.allow
                    and isinstance(self.reduce.values[0], Binary)
                    and self.reduce.values[0].op == "*"
                ):
                    error = error + 2.01 * TF32_UNIT * size
                self.magnitude = self.magnitude + size.sum(axis=self.axes)
                self.moved = self.moved + error.sum(axis=self.axes)
            case "prod":
                # Two partial products combine like two terms with errors.
                r = state_rounding(self.definition, self.reduce, self.evaluator.slack)
                e = product_error(part, Approx(term.value, error), self.axes, count, r)
                whole = np.abs(self.value) * e + np.abs(part) * self.moved + e * self.moved
                joined = self.value * part
                self.moved = certain(joined, whole + r.unit * np.abs(joined) + r.tiny, (e == 0) & (self.moved == 0))
            case _:
                self.moved = np.maximum(self.moved, error.max(axis=self.axes, initial=0.0))

    def result(self) -> tuple[Approx, ...]:
        if not self.evaluator.errors:
            return (Approx(self.value),)
        if self.reduce.combiner.name == "sum" and self.reduce.dtype.is_float:
            r = state_rounding(self.definition, self.reduce, self.evaluator.slack)
            return (Approx(self.value, sum_error(self.value, self.magnitude, self.moved, self.count, r)),)
        if self.reduce.combiner.name in ("max", "min") and self.reduce.dtype.is_float:
            return (Approx(self.value, certain(self.value, self.moved, np.isfinite(self.moved))),)
        return (Approx(self.value, self.moved),)


class TupleState(State):
    """A user's combiner, argmax, argmin: see reduction_error.py."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        points = math.prod(a.extent for a in self.reduce.axes)
        self.combining = Combining(self.reduce.combiner, self.evaluator.arithmetic(self.definition), points)
        self.parts: list[Part] = []

    def take(self, block: Block) -> None:
        terms, _ = self.terms(block)
        flat = [_flatten(t, len(self.shape)) for t in terms]
        if flat[0].value.shape[-1]:
            self.parts.append(self.combining.part(flat))

    def result(self) -> tuple[Approx, ...]:
        if not self.parts:
            return tuple(_spread(self.combining.full.constant(c), self.shape) for c in self.reduce.combiner.identity)
        whole = self.combining.join(self.parts)
        if not self.evaluator.errors:
            return tuple(Approx(s) for s in whole.state)
        return tuple(Approx(s, e) for s, e in zip(whole.state, self.combining.error(whole), strict=True))


def make_state(evaluator: Evaluator, definition: Definition, reduce: Reduce, shape: tuple[int, ...]) -> SimpleState | TupleState:
    simple = reduce.combiner.name in ("sum", "prod", "max", "min") and len(reduce.values) == 1
    return (SimpleState if simple else TupleState)(evaluator, definition, reduce, shape)


def _spread(a: Approx, shape: tuple[int, ...]) -> Approx:
    return Approx(np.broadcast_to(a.value, shape), None if a.error is None else np.broadcast_to(a.error, shape))


def _flatten(a: Approx, outer: int) -> Approx:
    shape = (*a.value.shape[:outer], -1 if a.value.size else math.prod(a.value.shape[outer:]))
    return Approx(a.value.reshape(shape), None if a.error is None else a.error.reshape(shape))


# ---------------------------------------------------------------- expressions in a block


class Block:
    """Ranges of axes; every axis has the dimension of its position in `axes`."""

    def __init__(self, evaluator: Evaluator, definition: Definition, axes: tuple[Axis, ...], ranges: Ranges) -> None:
        self.evaluator, self.axes, self.ranges = evaluator, axes, ranges
        self.arithmetic = evaluator.arithmetic(definition)
        self.shape = tuple(b - a for a, b in ranges)
        self.place = {a: d for d, a in enumerate(axes)}
        self.known: dict[tuple[Expr, tuple[Expr, ...]], Approx] = {}

    def value(self, e: Expr, guards: tuple[Expr, ...] = ()) -> Approx:
        """The expression at every point, with extent 1 along axes it does not depend on. guards: the conditions of its use."""
        if guards and inside_everywhere(e):
            guards = ()
        found = self.known.get((e, guards))
        if found is None:
            found = self.known[e, guards] = self.compute(e, guards)
        return found

    def compute(self, e: Any, guards: tuple[Expr, ...]) -> Approx:
        op = self.arithmetic
        match e:
            case Const():
                found = op.constant(e)
                return Approx(found.value.reshape((1,) * len(self.axes)))
            case Axis():
                d = self.place[e]
                start, stop = self.ranges[d]
                return Approx(
                    np.arange(start, stop, dtype=np.int64).reshape([-1 if i == d else 1 for i in range(len(self.axes))])
                )
            case Binary(name, left, right):
                return op.binary(name, self.value(left, guards), self.value(right, guards), left.dtype)
            case Unary(name, operand):
                return op.unary(name, self.value(operand, guards))
            case Call(name, (argument,)):
                return op.call(name, self.value(argument, guards), argument.dtype)
            case Select(condition, then, otherwise):
                chosen = self.value(condition, guards)
                a = self.value(then, (*guards, condition))
                b = self.value(otherwise, (*guards, Unary("not", condition)))
                return op.select(chosen, a, b)
            case Cast(operand, target):
                return op.cast(self.value(operand, guards), operand.dtype, target)
            case Read():
                return self.read(e, guards, None)
            case Pad(read, outside):
                return self.read(read, guards, outside)
            case _:
                raise AssertionError(f"{type(e).__name__} in a definition")

    def read(self, e: Read, guards: tuple[Expr, ...], outside: Const | None) -> Approx:
        tensor = e.tensor
        stored: Approx = self.evaluator.values[tensor]
        plain = all(isinstance(i, Axis) and i.extent <= d.extent for i, d in zip(e.indices, tensor.dims, strict=True))
        if plain and len(set(e.indices)) == len(e.indices):
            return Approx(self.window(stored.value, e.indices), self.window(stored.error, e.indices))
        indices = [self.value(i, guards) for i in e.indices]
        inside: Any = True
        for i, dim in zip(indices, tensor.dims, strict=True):
            inside = inside & (i.value >= 0) & (i.value < dim.extent)
        if outside is None and not np.all(inside):
            self.refuse_outside(e, inside, guards)
        one = (1,) * len(self.axes)
        if 0 in tensor.shape:
            empty = numeric.constant(0 if outside is None else outside.value, tensor.dtype, self.evaluator.wide)
            return Approx(np.broadcast_to(empty, np.broadcast_shapes(one, *(i.value.shape for i in indices))))
        at = tuple(np.clip(i.value, 0, d.extent - 1) for i, d in zip(indices, tensor.dims, strict=True))
        value, error = (None if x is None else x[at].reshape(np.broadcast_shapes(one, *(i.shape for i in at)))
                        for x in (stored.value, stored.error))  # fmt: skip
        if any(i.error is not None for i in indices):
            uncertain = sum((err(i) for i in indices), start=np.zeros(one))
            error = np.where(uncertain > 0, np.inf, 0.0 if error is None else error)
        if outside is not None:
            value = np.where(inside, value, numeric.constant(outside.value, tensor.dtype, self.evaluator.wide))
            error = None if error is None else np.where(inside, error, np.where(np.isinf(error), error, 0.0))
        return Approx(value, error)

    def window(self, array: Any, indices: tuple[Any, ...]) -> Any:
        """The part of a tensor indexed by axes only, with its dimensions at those of the axes."""
        if array is None:
            return None
        places = [self.place[i] for i in indices]
        part = array[(*(slice(*self.ranges[p]) for p in places), ...)]
        part = np.transpose(part, np.argsort(places, kind="stable")) if places else part
        return part.reshape([n if d in places else 1 for d, n in enumerate(self.shape)])

    def refuse_outside(self, e: Read, inside: Any, guards: tuple[Expr, ...]) -> None:
        """Raises an error if a read that is used is out of bounds."""
        counted: Any = ~inside
        for i, guard in enumerate(guards):
            counted = counted & self.value(guard, guards[:i]).value
        if not np.any(counted):
            return
        point = np.argwhere(np.broadcast_to(counted, np.broadcast_shapes(counted.shape, (1,) * len(self.axes))))[0]
        depends = free_axes(e)
        shown = ", ".join(f"{a.name} = {point[d] + self.ranges[d][0]}" for a, d in self.place.items() if a in depends)
        raise ComputationError(
            "read-outside",
            f"`{e}` is read outside {e.tensor!r} under a condition that holds there",
            counterexample=f"at {shown}",
            help="narrow the condition around it, or use tl.pad",
        )
