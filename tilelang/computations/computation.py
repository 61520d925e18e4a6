"""Computations: tensors, their definitions, and the DAG for which a kernel is compiled.

A definition (made by define.py) is either *pointwise*, one tensor without any Reduce in its value, or *a reduction*, whose values[i] is
exactly Reduce(..., member=i) with one shared combiner, values, axes and condition. Tensors are compared by identity.
"""

from __future__ import annotations

import itertools
import keyword
import math
import re
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex
from unicodedata import normalize

from tilelang.computations.text import computation_text
from tilelang.core import dtype as dt
from tilelang.core.dtype import DType
from tilelang.core.expr import INDEX, Axis, Expr, Read, Reduce, as_expr, by_names, cast, several_of
from tilelang.core.lazy import cached_property
from tilelang.core.node import Node, Unchanging, fill, node
from tilelang.errors import ComputationError, Span, brief, caller_span, counted, whole_number
from tilelang.renamed import moved

if TYPE_CHECKING:
    from collections.abc import Callable

    from tilelang.semantics.reference import Report

MOST_AXES = 64  # of a tensor, and of a definition with its reduction: NumPy's limit
LICENCES = ("tf32", "fast_exp", "float16_accumulate", "reorder")

_serial = itertools.count()  # a computation lists tensors in order of creation


class Tensor(Unchanging):
    """A named array: an input, or one member of a definition."""

    __slots__ = ("name", "dtype", "dims", "range", "definition", "member", "hidden", "serial", "span", "shape")

    name: str
    dtype: DType
    # the dimensions as axes, with names and extents
    dims: tuple[Axis, ...]
    # (low, high) with low <= value < high, for integers used as indices
    range: tuple[int, int] | None
    # None for an input
    definition: Definition | None
    # the index of this tensor in its definition
    member: int
    # made by `define` for a reduction inside an expression
    hidden: bool
    serial: int
    # where it was made, in a program or a text
    span: Span | None
    # the extents of `dims`
    shape: tuple[int, ...]

    def __init__(
        self,
        name: str,
        dtype: DType,
        dims: tuple[Axis, ...],
        range: tuple[int, int] | None = None,
        member: int = 0,
        hidden: bool = False,
        span: Span | None = None,
    ) -> None:
        fill(
            self, name=name, dtype=dtype, dims=dims, range=range, span=span, definition=None, member=member, hidden=hidden,
            serial=next(_serial), shape=tuple(d.extent for d in dims),
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(f'{d.name}: {d.extent}' for d in self.dims)}]"

    def __getitem__(self, indices: Any) -> Expr:
        """One element. Each index is a number, an axis, or integer arithmetic on them and on integer tensors.

        Raises ComputationError if the number or the types of the indices do not fit. `define` checks bounds.
        """
        given = indices if isinstance(indices, tuple) else (indices,)
        if len(given) != len(self.dims):
            raise ComputationError(
                "rank",
                f"{self!r} has {counted(len(self.dims), 'dimension')} and is read with {counted(len(given), 'index', 'indices')}",
                span=caller_span(),
                help=f"{self.name}[{', '.join(d.name for d in self.dims) or '()'}]",
            )
        return Read(self, tuple(self._index(i, d) for i, d in zip(given, self.dims, strict=True)))

    def _index(self, value: Any, dim: Axis) -> Expr:
        fault = None
        if isinstance(value, (slice, type(None), type(...))):
            fault = "a slice" if isinstance(value, slice) else "`...`" if value is ... else "None"
        else:
            found = as_expr(value, INDEX) if not isinstance(value, (bool, float)) else as_expr(value)
            if found.dtype.is_integer:
                return cast(found, INDEX)
            fault = f"`{found}`, which is {found.dtype}"
        raise ComputationError(
            "index-type",
            f"dimension `{dim.name}` of {self!r} is indexed by {fault}",
            span=caller_span(),
            help="index with axes and whole-number arithmetic on them; // divides whole numbers",
        )

    def __setitem__(self, indices: Any, value: Any) -> NoReturn:
        raise ComputationError(
            "tensor-assigned", f"{self!r} cannot be assigned to", help="use tl.define to make a tensor from an expression"
        )

    def __eq__(self, other: object) -> bool:
        """Whether both are the same tensor. Raises ComputationError for operands that only an element could equal."""
        if isinstance(other, (Expr, bool, int, float)) or hasattr(other, "ndim"):
            self._whole()
        return self is other

    __hash__ = object.__hash__

    def _whole(self, *_: Any, **__: Any) -> Any:
        """Raises the error for a tensor used where an element is meant."""
        help = f"read one element: {self.name}[{', '.join(d.name for d in self.dims) or '()'}]"
        raise ComputationError("whole-tensor", f"{self!r} is a whole tensor, but an expression reads one element", help=help)

    def __len__(self) -> NoReturn:
        help = f"use {self.name}.shape, or an axis's extent, as in i.extent"
        raise ComputationError("whole-tensor", f"{self!r} has no len()", help=help)

    __iter__ = __array__ = __array_ufunc__ = __array_function__ = __bool__ = __float__ = __int__ = __round__ = _whole
    __abs__ = __neg__ = __invert__ = __lt__ = __le__ = __gt__ = __ge__ = __xor__ = __rxor__ = __lshift__ = __rshift__ = _whole
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __pow__ = __rpow__ = _whole
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __and__ = __rand__ = __or__ = __ror__ = __matmul__ = __rmatmul__ = _whole


@node
class Definition(Node):
    """Tensors over `axes`, one per expression of `values`: pointwise (one tensor), or the members of one reduction."""

    tensors: tuple[Tensor, ...]
    axes: tuple[Axis, ...]
    values: tuple[Expr, ...]
    # the licences that the user gave
    allow: tuple[str, ...] = ()
    # what the user wrote, as `text` prints it (None for a hidden reduction)
    written: tuple[Expr, ...] | None = None

    def __repr__(self) -> str:
        values = ", ".join(str(v) for v in self.values)
        return f"<{', '.join(t.name for t in self.tensors)}[{', '.join(a.name for a in self.axes)}] = {values}>"

    @property
    def reduction(self) -> Reduce | None:
        """Member 0 of the reduction; None if the definition is pointwise."""
        first = self.values[0]
        return first if isinstance(first, Reduce) else None

    @property
    def reads(self) -> tuple[Tensor, ...]:
        """The tensors that are read, without duplicates, in order of first appearance."""
        return tuple(dict.fromkeys(e.tensor for v in self.values for e in v.walk() if isinstance(e, Read)))


# ---------------------------------------------------------------- making


@node
class Symbol(Node):
    """An extent bound at launch: its name and a known divisor."""

    name: str
    multiple_of: int = 1


def symbol(name: str, multiple_of: int = 1) -> Symbol:
    """An extent bound at launch. It is part of the language, but `axes` refuses it, since it is not lowered yet.

    multiple_of: a known divisor, a whole number of at least 1.
    """
    check_name(name)
    if not isinstance(multiple_of, int) or isinstance(multiple_of, bool) or multiple_of < 1:
        message = f"`{name}` cannot be a multiple of {brief(multiple_of)}"
        raise ComputationError("symbol", message, span=caller_span(), help="use a whole number, 1 or more")
    return Symbol(name, multiple_of)


_CALLS = itertools.count(1)  # of `axes`


def _axis(name: str, extent: Any, made: int = 0) -> Axis:
    check_name(name)
    if isinstance(extent, Symbol):
        message = f"the extent of `{name}` is the symbol `{extent.name}`, which is valid, but not supported yet for this target"
        raise ComputationError("not-lowered-yet", message, span=caller_span(), help="use a number")
    whole = whole_number(extent)
    if whole is None or not 0 <= whole <= INDEX.highest:
        message = f"{brief(extent)} is not a valid extent of `{name}`"
        raise ComputationError("extent", message, span=caller_span(), help="use a whole number from 0 to 2**63 - 1")
    return Axis(name, whole, made)


def check_name(name: Any) -> None:
    """Refuses invalid names of tensors or axes, in Python or in a text, whose names have no combining marks."""
    help = None
    if not isinstance(name, str) or not name.isidentifier() or not re.fullmatch(r"\w+", name):
        help = "use a letter, then letters, digits and _"
    elif keyword.iskeyword(name):
        help = "use another name: it is a keyword of Python"
    elif (normal := normalize("NFKC", name)) != name:  # Python identifies names that are equal after NFKC normalisation
        help = f"`{normal}`, its normal form, which Python takes for the same name"
    if help is not None:
        raise ComputationError("name", f"{name!r} cannot name a tensor or an axis", span=caller_span(), help=help)


def axes(**extents: SupportsIndex | Symbol) -> Any:
    """Axes by name and extent, in the order given; a single one is returned by itself.

    Tensors identify their axes by name and extent. In one definition, axes of the same name must be from the same call:
    `sum(X[a, b], over=b)` with two axes `i` is refused.

    >>> m, k = axes(m=4, k=8)
    >>> k.extent
    8
    """
    call = next(_CALLS)
    made = tuple(_axis(name, extent, call) for name, extent in extents.items())
    return made[0] if len(made) == 1 else made


def input(name: str, dtype: Any, *axes: Axis, range: tuple[int, int] | None = None, **dims: SupportsIndex | Symbol) -> Tensor:
    """An input. Its dimensions are axes, or are named with their extents, as in input("X", float32, n=16, c=64).

    range: for an integer tensor used as an index: its values v satisfy range[0] <= v < range[1].
    """
    check_name(name)
    element = dt.dtype(dtype)
    made = (*axes, *(_axis(n, e) for n, e in dims.items()))
    for a in made:
        if not isinstance(a, Axis):
            raise ComputationError(
                "not-an-axis", f"{a!r} is not a dimension for {name}", span=caller_span(), help="use an axis, as in tl.axes(m=16)"
            )
    made = tuple(map(by_names, made))
    check_distinct(name, made)
    check_rank(made, f"{name} has {counted(len(made), 'dimension')}", caller_span())
    low, high = map(whole_number, range) if isinstance(range, (tuple, list)) and len(range) == 2 else (None, None)
    held = element.is_integer and low is not None and high is not None and element.lowest <= low <= high <= element.highest + 1
    if range is not None and not held:
        message = f"{name} cannot have the range {brief(range)}"
        raise ComputationError(
            "range", message, span=caller_span(), help="write range=(low, high) with low <= value < high, within an integer type"
        )
    check_bytes(name, element, made, caller_span())
    return Tensor(name, element, made, None if low is None or high is None else (low, high), span=caller_span())


def check_distinct(name: str, dims: tuple[Axis, ...]) -> None:
    names = [d.name for d in dims]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        message = f"{name} has two dimensions named `{twice}`"
        raise ComputationError("dimension-twice", message, span=caller_span(), help="give them different names, as in i=16, j=16")


def check_rank(dims: tuple[Axis, ...], said: str, span: Span | None) -> None:
    """Refuses more axes than a NumPy array can have, because results are compared with NumPy's."""
    if len(dims) > MOST_AXES:
        raise ComputationError("too-many-axes", said, span=span, help=f"use at most {MOST_AXES} axes: combine several into one")


def check_bytes(name: str, dtype: DType, dims: tuple[Axis, ...], span: Span | None) -> None:
    """Refuses a tensor too large to address with 64-bit indices."""
    size = math.prod(d.extent for d in dims) * dtype.bytes
    if size > INDEX.highest:
        message = f"{name} has {size:.2g} bytes" if size < 10**300 else f"{name} has more bytes than there are numbers for"
        raise ComputationError("too-many-bytes", message, span=span, help=f"use smaller extents: at most {INDEX.highest:,} bytes")


# ---------------------------------------------------------------- the DAG


class Computation(Unchanging):
    """A name, outputs, and all that they depend on: inputs and definitions, in order of creation.

    Compared by identity; `hash` identifies what it computes.
    """

    __slots__ = ("name", "inputs", "outputs", "definitions", "__dict__")

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    definitions: tuple[Definition, ...]

    def __init__(self, name: str, outputs: tuple[Tensor, ...]) -> None:
        check_name(name)
        for t in outputs:
            if not isinstance(t, Tensor) or t.definition is None:
                message = f"{brief(t)} is not a defined tensor, so it cannot be an output of `{name}`"
                raise ComputationError("output", message, help="pass tensors that tl.define returned")
        if not outputs or len(set(outputs)) != len(outputs):
            raise ComputationError("output", f"{name} needs at least one output, and each of them once", help="outputs=(C, D)")
        found: dict[Tensor, None] = {}
        stack = list(outputs)
        while stack:
            tensor = stack.pop()
            if tensor not in found:
                found[tensor] = None
                if tensor.definition is not None:
                    stack += [*tensor.definition.tensors, *tensor.definition.reads]
        tensors = sorted(found, key=lambda t: t.serial)
        fill(
            self, name=name, outputs=outputs, inputs=tuple(t for t in tensors if t.definition is None),
            definitions=tuple(dict.fromkeys(t.definition for t in tensors if t.definition is not None)),
        )  # fmt: skip
        self._check(tensors)

    def _check(self, tensors: list[Tensor]) -> None:
        span = caller_span()
        names: dict[str, Tensor] = {}
        for t in sorted(tensors, key=lambda t: t.hidden):
            if t.name in names:
                second = f"{t!r}" + (", which is part of another definition and is named after it" if t.hidden else "")
                message = f"two tensors of {self.name} are named {t.name}: {names[t.name]!r} and {second}"
                raise ComputationError("name-twice", message, span=span, help="give one of them another name")
            names[t.name] = t
        extents: dict[str, int] = {}
        for a in self.axes:
            if extents.setdefault(a.name, a.extent) != a.extent:
                message = f"two axes of {self.name} are named `{a.name}`, of extents {extents[a.name]} and {a.extent}"
                raise ComputationError(
                    "axis-twice", message, span=span, help="give one of them another name: schedules go by names"
                )

    def __repr__(self) -> str:
        return f"<computation {self.name}: {', '.join(t.name for t in self.outputs)}>"

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Every axis that a definition ranges or reduces over, in order of first appearance."""
        found: dict[Axis, None] = {}
        for d in self.definitions:
            found.update(dict.fromkeys((*d.axes, *(d.reduction.axes if d.reduction is not None else ()))))
        return tuple(found)

    def tensor(self, name: str) -> Tensor:
        """The tensor of this name, input or defined. Raises KeyError if there is none."""
        every = (*self.inputs, *(t for d in self.definitions for t in d.tensors))
        return {t.name: t for t in every}[name]

    @cached_property
    def text(self) -> str:
        """The computation in the text format, with extents: equal computations have equal texts."""
        return computation_text(self)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of `text`, in hexadecimal."""
        import hashlib  # late: slow to import, seldom needed

        return hashlib.sha256(self.text.encode()).hexdigest()

    def evaluate(self, /, **arrays: Any) -> Any:
        """The outputs in NumPy, evaluated as written: an array for one output, a dict by name for several."""
        from tilelang.semantics.reference import evaluate  # late: that module imports this one

        found = evaluate(self, arrays)
        return found[self.outputs[0].name] if len(self.outputs) == 1 else found

    def bound(self, /, **arrays: Any) -> Any:
        """The maximum difference of a correct result from `evaluate`, per element; an array, or a dict by name."""
        from tilelang.semantics.reference import bound  # late: that module imports this one

        found = bound(self, arrays)
        return found[self.outputs[0].name] if len(self.outputs) == 1 else found

    def check(self, run: Callable[[dict[str, Any]], dict[str, Any]], seed: int = 0) -> Report:
        """Compares the results of `run` (input arrays by name -> output arrays by name) with the reference: on random data within the
        bound, and exactly on small integers if every node is exact on integers."""
        from tilelang.semantics.reference import check  # late: that module imports this one

        return check(self, run, seed)


def computation(name: str, outputs: Any) -> Computation:
    """A computation with one or several defined Tensors as outputs."""
    return Computation(name, several_of(outputs))


def as_computation(value: Any) -> Computation:
    """A computation unchanged; a Tensor as the computation with that single output."""
    if isinstance(value, Computation):
        return value
    if isinstance(value, Tensor):
        return computation(value.name, (value,))
    raise ComputationError(
        "not-a-computation",
        f"{brief(value)} is neither a computation nor a tensor",
        help="pass the result of tl.define or tl.computation",
    )


__getattr__ = moved(__name__, {"define": "tilelang.computations.define"})
