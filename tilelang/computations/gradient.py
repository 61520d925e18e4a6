"""Gradients of computations, as definitions.

`grad` walks through the definitions from the outputs to the inputs. For each tensor it adds up what the readers pass on: the adjoint of
each read (adjoints.py), summed over the points that read the same element (inverse_reads.py). The results are plain definitions over
the inputs' axes: they print, are scheduled and compile like any other, and have gradients themselves.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import Any, overload

from tilelang.computations import functions as F
from tilelang.computations.adjoints import Adjoint, guarded, read_adjoints, times
from tilelang.computations.bounds_check import inside_everywhere
from tilelang.computations.computation import Computation, Definition, Tensor
from tilelang.computations.define import define
from tilelang.computations.elaborate import factors_written_out
from tilelang.computations.inverse_reads import solve
from tilelang.computations.padding import without_conditions
from tilelang.computations.shifts import only_shifts
from tilelang.core import dtype as dt
from tilelang.core.expr import (
    Axis,
    Binary,
    Call,
    Const,
    Expr,
    Pad,
    Read,
    Reduce,
    Select,
    cast,
    const,
    rewrite,
    several_of,
    substitute,
)
from tilelang.core.simplify import conjunction, conjuncts, simplify
from tilelang.errors import ComputationError, brief, counted, not_too_deep

Tensors = Tensor | Iterable[Tensor]


@overload
def grad(output: Tensors | Computation, inputs: Tensor, seed: Any = None, *, constants: Tensors = ()) -> Tensor: ...


@overload
def grad(
    output: Tensors | Computation, inputs: Iterable[Tensor], seed: Any = None, *, constants: Tensors = ()
) -> tuple[Tensor, ...]: ...


@not_too_deep
def grad(output: Any, inputs: Any, seed: Any = None, *, constants: Tensors = ()) -> Any:
    """The gradient of `output` with respect to `inputs`, by reverse-mode differentiation: a definition for each input, of its shape and
    type, or a tuple of them if `inputs` is one.

    output: a defined tensor of floats, several, or a computation. inputs: the tensor or tensors to differentiate by: inputs of the
    computation, or definitions on the way. seed: the derivative of a final scalar by the output, as a tensor of the output's shape or a
    number, a tuple of them for several outputs; None stands for 1 everywhere, so the result is the gradient of the sum of all elements.
    constants: tensors that are not differentiated through.

    Steps (`floor`, `ceil`, `round`, `//`, comparisons, conversions to integers, `argmax`) are flat, so their gradient is 0. Of equal
    values, `tl.max` and `tl.min` pass the gradient to the first; `maximum` and `minimum` pass half to each, but if one is a constant,
    nothing to the other. `abs` has slope 0 at 0. Licences of a definition hold for its gradient, too.

    Raises ComputationError for tensors that are not floats, inputs that the output does not depend on, and reductions with a combiner
    of one's own.

    >>> from tilelang.computations.computation import axes, input
    >>> m, n, k = axes(m=4, n=3, k=2)
    >>> A, B, seed = input("A", "float32", m, k), input("B", "float32", k, n), input("seed", "float32", m, n)
    >>> C = define("C", F.sum(A[m, k] * B[k, n], over=k), m, n)
    >>> for d in grad(C, (A, B), seed):
    ...     print(d.definition)
    <dC_dA[m, k] = sum[n](seed[m, n] * B[k, n])>
    <dC_dB[k, n] = sum[m](seed[m, n] * A[m, k])>
    """
    outputs = output.outputs if isinstance(output, Computation) else _tensors("output", output)
    wanted = _tensors("inputs", inputs)
    whole = Computation(outputs[0].name if outputs else "gradient", outputs)
    found = _Gradient(whole, wanted, _tensors("constants", constants)).run(_seeds(outputs, seed))
    return found if not isinstance(inputs, Tensor) else found[0]


def _tensors(role: str, given: Any) -> tuple[Tensor, ...]:
    several = (given,) if isinstance(given, Tensor) else several_of(given)
    for t in several:
        if not isinstance(t, Tensor):
            raise ComputationError(
                "grad-tensors", f"{brief(t)} in `{role}` of tl.grad is not a tensor", help="pass tensors: tl.grad(y, X)"
            )
    return several


def _seeds(outputs: tuple[Tensor, ...], seed: Any) -> list[Any]:
    """A tensor or a number for each output."""
    given = tuple(seed) if isinstance(seed, (tuple, list)) else (seed,) * (len(outputs) if seed is None else 1)
    if len(given) != len(outputs):
        message = f"{counted(len(given), 'seed')} for {counted(len(outputs), 'output')}"
        raise ComputationError("grad-seed", message, help="pass a tuple with one seed for each output")
    made: list[Any] = []
    for t, s in zip(outputs, given, strict=True):
        if isinstance(s, Tensor):
            if s.shape != t.shape or not s.dtype.is_float:
                raise ComputationError("grad-seed", f"the seed {s!r} does not fit {t!r}", help="use floats of the same shape")
            made.append(s)
        elif s is None or isinstance(s, (int, float)) and not isinstance(s, bool):
            made.append(1.0 if s is None else float(s))
        else:
            help = "use a tensor of the output's shape, a number, or None"
            raise ComputationError("grad-seed", f"{brief(s)} is not a valid seed", help=help)
    return made


class _Gradient:
    """The state of one call of `grad`: the contributions to the adjoint of each tensor, and the names in use."""

    def __init__(self, whole: Computation, wanted: tuple[Tensor, ...], constants: tuple[Tensor, ...]) -> None:
        self.whole, self.wanted, self.constants = whole, wanted, constants
        every = [*whole.inputs, *(t for d in whole.definitions for t in d.tensors)]
        self._check(every)
        self.active: set[Tensor] = set()
        self._carries: dict[Expr, bool] = {}
        for t in every:  # in order of creation, so after the tensors that it reads
            fixed = t in constants or not t.dtype.is_float
            read = t.definition is not None and self.carries(t.definition.values[t.member])
            if not fixed and (t in wanted or read and not self.cancels(t)):
                self.active.add(t)
        self.prefix = "d" + "_".join(t.name for t in whole.outputs) + "_d"
        self.names = {t.name for t in every}
        self.latest = max(t.serial for t in every)
        self.extents = {a.name: a.extent for a in whole.axes}
        # the contributions to each tensor: (value over its dimensions and the axes, axes, condition), and the licences
        self.received: dict[Tensor, dict[tuple[tuple[Axis, ...], Expr | None], Expr]] = {}
        self.licences: dict[Tensor, set[str]] = {}
        self.totals: dict[Tensor, Tensor | Const] = {}
        self.copies: dict[Tensor, Tensor] = {}
        self._dims: dict[Tensor, tuple[Axis, ...]] = {}

    def _check(self, every: list[Tensor]) -> None:
        for role, tensors in (("of", self.whole.outputs), ("by", self.wanted)):
            for t in tensors:
                if not t.dtype.is_float:
                    message = (
                        f"{t!r} has no gradient: it does not hold floats" if role == "of" else f"there is no derivative by {t!r}"
                    )
                    raise ComputationError("grad-type", message, help="differentiate floats by floats")
        for t in self.wanted:
            if t not in every:
                names = ", ".join(o.name for o in self.whole.outputs)
                raise ComputationError("grad-independent", f"{names} does not depend on {t!r}", help="leave it out of `inputs`")
        if len(set(self.wanted)) != len(self.wanted):
            raise ComputationError("grad-tensors", "`inputs` of tl.grad has a tensor twice", help="list each input once")

    def cancels(self, t: Tensor) -> bool:
        """Whether a tensor is the peak of a softmax: a maximum whose gradient is 0."""
        reduction = t.definition.reduction if t.definition is not None else None
        return reduction is not None and reduction.combiner.name in ("max", "min") and only_shifts(self.whole, t, self.constants)

    def carries(self, e: Expr) -> bool:
        """Whether a value depends differentiably on a tensor that the gradient is taken with respect to."""
        for part in e.upwards(leaves=(Read, Pad)):
            if isinstance(part, Expr) and part not in self._carries:
                self._carries[part] = part.dtype.is_float and any(map(self._operand_carries, _operands(part)))
        return self._carries[e]

    def _operand_carries(self, e: Expr | Tensor) -> bool:
        return e in self.active if isinstance(e, Tensor) else self._carries[e]

    # ------------------------------------------------------------ the walk

    def run(self, seeds: list[Tensor | float]) -> tuple[Tensor, ...]:
        for seed in seeds:
            self._know(seed)
        for t, s in zip(self.whole.outputs, seeds, strict=True):
            if t in self.active:
                dims = self.dims(t)
                self.receive(t, cast(Read(s, dims), t.dtype) if isinstance(s, Tensor) else const(s, t.dtype), (), None, ())
        for definition in reversed(self.whole.definitions):
            for t in definition.tensors:
                if t in self.active and t in self.received:
                    self.pass_on(definition, t)
        return tuple(self.defined(t) for t in self.wanted)

    def _know(self, seed: Tensor | float) -> None:
        """Reserves the names of a seed and of all that it depends on."""
        if isinstance(seed, Tensor):
            self.names.add(seed.name)
            self.latest = max(self.latest, seed.serial)
            if seed.definition is not None:
                whole = Computation(seed.name, (seed,))
                self.names |= {t.name for t in (*whole.inputs, *(t for d in whole.definitions for t in d.tensors))}
                self.extents |= {a.name: a.extent for a in whole.axes}

    def pass_on(self, definition: Definition, t: Tensor) -> None:
        """Passes the adjoint of a tensor on to what its definition reads."""
        value = factors_written_out(definition.values[t.member])
        total = self.total(t)
        adjoint: Expr = total if isinstance(total, Const) else Read(total, definition.axes)
        if not isinstance(value, Reduce):
            parts = read_adjoints(value, Adjoint((), adjoint), self.carries)
            # reads the value from its tensor instead of computing it again
            stored = {value: Read(t, definition.axes)} if isinstance(value, (Binary, Call, Select)) else {}
            for read, a in parts:
                self.distribute(
                    definition, read, Adjoint(substitute_all(a.guards, stored), substitute(a.value, stored)), (), None
                )
            return
        summand, condition = value.values[value.member], value.condition
        match value.combiner.name:
            case "sum":
                start = Adjoint((), adjoint)
            case "prod":
                start = Adjoint((), times(adjoint, self.others(definition, t, value)))
            case "max" | "min" as name:
                place = self.place(definition, t, name, value)
                start = Adjoint((place,), adjoint)
            case name:
                message = f"{t.name} is a reduction by `{name}`, a combiner of your own, which has no gradient"
                raise ComputationError(
                    "grad-combiner", message, help="write it with tl.sum, tl.prod, tl.max or tl.min, or pass it in `constants`"
                )
        for read, a in read_adjoints(summand, start, self.carries):
            self.distribute(definition, read, a, value.axes, condition)

    def others(self, definition: Definition, t: Tensor, product: Reduce) -> Expr:
        """The product of all factors but one, even if some of them are 0.

        If exactly one other factor is 0, the product is 0, but its derivative with respect to that factor is not. So the result is
        written as a multiple of the sum of the zero factors, which has the right derivative (needed for second derivatives).
        """
        factor, zero = product.values[0], const(0, t.dtype)
        is_zero = Binary("==", factor, zero)
        one = const(1, t.dtype)

        def extra(name: str, value: Expr) -> Expr:
            made = self.define(f"{t.name}_{name}", value, definition.axes, definition.allow)
            return Read(made, definition.axes)

        zeros = extra("zeros", F.sum(is_zero, product.axes, product.condition))
        rest = extra("nonzero", F.prod(Select(is_zero, one, factor), product.axes, product.condition))
        nought = extra("zero", F.sum(Select(is_zero, factor, zero), product.axes, product.condition))
        none, alone, two = (Binary("==", zeros, const(n, zeros.dtype)) for n in range(3))

        def no_multiple(value: Expr, of: Expr) -> Expr:  # `of` is 0 but has a derivative; 0 also if the value overflows
            return Select(Binary("<", F.abs(value), const(math.inf, t.dtype)), value * of, zero)

        beside_zeros = Select(
            none, Binary("/", Read(t, definition.axes), factor), Select(alone, no_multiple(rest / factor, nought), zero)
        )
        return Select(is_zero, Select(alone, rest, Select(two, no_multiple(rest, nought - factor), zero)), beside_zeros)

    def place(self, definition: Definition, t: Tensor, name: str, extreme: Reduce) -> Expr:
        """The condition that a point is the first one at which the maximum or minimum is attained."""
        index = (F.argmax if name == "max" else F.argmin)(extreme.values[0], extreme.axes, extreme.condition)
        made = self.define(f"{t.name}_place", index, definition.axes, definition.allow)
        number: Expr = extreme.axes[0]
        for axis in extreme.axes[1:]:
            number = number * axis.extent + axis
        return Binary("==", cast(Read(made, definition.axes), dt.int64), number)

    def distribute(
        self, definition: Definition, read: Read | Pad, a: Adjoint, over: tuple[Axis, ...], where: Expr | None
    ) -> None:
        """Adds the adjoint of a read, summed over the points of a definition, to the adjoint of the tensor that is read."""
        t = (read.read if isinstance(read, Pad) else read).tensor
        own = {x: Axis(x.name, x.extent, -1) for x in (*definition.axes, *over)}  # different from the dimensions of t
        read = substitute(read, own)
        indices = (read.read if isinstance(read, Pad) else read).indices
        dims = self.dims(t)
        found = solve(indices, dims, tuple(own.values()))
        if not found.possible:
            return
        axes = self.named(found.axes, dims)
        points = {x: substitute(e, axes) for x, e in found.points}
        changed: dict[Any, Any] = {**points, read: Read(t, dims)}
        conditions = [substitute(c, axes) for c in found.conditions]
        if where is not None:
            conditions.append(simplify(substitute(substitute(where, own), changed)))
        conditions += [simplify(substitute(substitute(c, own), changed)) for c in a.guards]
        parts = [part for c in conditions for part in conjuncts(c)]
        on_data = [part for part in parts if any(isinstance(e, Read) for e in part.walk())]
        value = simplify(substitute(substitute(a.value, own), changed))
        left = [part for part in parts if part not in on_data]
        if all(map(inside_everywhere, on_data)):
            value, left = without_conditions(value, left)
        on_axes = conjunction(left)
        if on_axes is not None and isinstance(on_axes, Const):
            return  # the condition never holds
        self.receive(t, guarded(value, tuple(on_data)), tuple(axes.values()), on_axes, definition.allow)

    def receive(self, t: Tensor, value: Expr, over: tuple[Axis, ...], where: Expr | None, licences: tuple[str, ...]) -> None:
        parts = self.received.setdefault(t, {})
        known = parts.get((over, where))
        parts[over, where] = value if known is None else Binary("+", known, value)
        self.licences.setdefault(t, set()).update(licences)

    # ------------------------------------------------------------ the adjoint of a tensor

    def total(self, t: Tensor) -> Tensor | Const:
        """The adjoint of a tensor: a tensor over its dimensions, or a constant."""
        if t not in self.totals:
            simple = self._simple(t)
            self.totals[t] = self.defined(t) if simple is None else simple
        return self.totals[t]

    def _simple(self, t: Tensor) -> Tensor | Const | None:
        """The adjoint if it is a constant, or equal to another tensor."""
        if len(self.received[t]) != 1 or t in self.wanted:
            return None
        ((over, where), value), *_ = self.received[t].items()
        if over or where is not None:
            return None
        if isinstance(value, Read) and value.indices == self.dims(t) and not value.tensor.hidden:
            tensor: Tensor = value.tensor
            return tensor
        return value if isinstance(value, Const) else None

    def defined(self, t: Tensor) -> Tensor:
        """The definition of the adjoint of a tensor."""
        known = self.totals.get(t)
        if isinstance(known, Tensor):
            return known
        value: Expr | None = None
        for (over, where), part in self.received.get(t, {}).items():
            part = cast(part, t.dtype)
            part = F.sum(part, over, where) if over else part if where is None else guarded(part, (where,))
            value = part if value is None else value + part
        value = const(0, t.dtype) if value is None else value
        made = self.define(self.prefix + t.name, value, self.dims(t), self.licences.get(t, ()))
        self.totals[t] = made
        return made

    def shown(self, value: Expr) -> Expr:
        """A value that reads copies of hidden tensors, since the text of a definition can name only those that are not hidden."""

        def rule(e: Any) -> Any:
            return Read(self.copy(e.tensor), e.indices) if isinstance(e, Read) and e.tensor.hidden else e

        found: Expr = rewrite(factors_written_out(value), rule)
        return found

    def copy(self, t: Tensor) -> Tensor:
        if t not in self.copies:
            assert t.definition is not None
            value = t.definition.values[t.member]
            self.copies[t] = self.define(f"{t.name}_again", value, t.definition.axes, t.definition.allow)
        return self.copies[t]

    # ------------------------------------------------------------ names

    def define(self, name: str, value: Expr, axes: tuple[Axis, ...], allow: Iterable[str]) -> Tensor:
        """A definition with this name. A number is appended if the name, or that of a hidden tensor of the definition, is taken."""
        value = self.shown(value)
        for number in itertools.count(1):
            called = name if number == 1 else f"{name}_{number}"
            if called not in self.names:
                made = define(called, value, *axes, allow=allow)
                new = _made_since(made, self.latest)
                self.latest = made.serial
                if self.names.isdisjoint(t.name for t in new):
                    self.names |= {t.name for t in new}
                    return made
        raise AssertionError

    def axis(self, name: str, extent: int, owner: str, taken: set[str]) -> Axis:
        """An axis with a name that no other axis or dimension has with another extent. An input's dimension may have an axis' name."""
        tried = itertools.chain((name, f"{owner}_{name}"), (f"{owner}_{name}_{number}" for number in itertools.count(2)))
        name = next(n for n in tried if n not in taken and self.extents.get(n, extent) == extent)
        self.extents[name] = extent
        taken.add(name)
        return Axis(name, extent)

    def dims(self, t: Tensor) -> tuple[Axis, ...]:
        """The axes of the adjoint of a tensor: its dimensions."""
        if t not in self._dims:
            taken: set[str] = set()
            self._dims[t] = tuple(self.axis(d.name, d.extent, t.name, taken) for d in t.dims)
        return self._dims[t]

    def named(self, axes: tuple[Axis, ...], dims: tuple[Axis, ...]) -> dict[Axis, Axis]:
        """New names for the axes over which an adjoint is summed, different from those of the dimensions."""
        taken = {d.name for d in dims}
        return {a: self.axis(a.name, a.extent, "sum", taken) for a in axes}


def _made_since(t: Tensor, serial: int) -> dict[Tensor, None]:
    """A tensor, and the tensors that it depends on that were made after the one with this serial number."""
    found = {t: None}
    assert t.definition is not None
    for read in t.definition.reads:
        if read.serial > serial:
            found |= _made_since(read, serial)
    return found


def _operands(e: Expr) -> list[Any]:
    """The parts of a value that a gradient may pass through: expressions, or the tensor that is read."""
    match e:
        case Read(tensor):
            return [tensor]
        case Pad(read):
            return [read.tensor]
        case Select(_, then, otherwise):
            return [then, otherwise]
        case Reduce(_, values, _, _, member):
            return [values[member]] if e.combiner.name in ("sum", "prod", "max", "min") else list(values)
        case Call("floor" | "ceil" | "round") | Binary("//"):
            return []
        case _:
            return [c for c in e.children() if isinstance(c, Expr)]


def substitute_all(guards: tuple[Expr, ...], mapping: dict[Any, Any]) -> tuple[Expr, ...]:
    return tuple(substitute(c, mapping) for c in guards)


__all__ = ["grad"]
