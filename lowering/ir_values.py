"""Buffers, and the expressions that access them: the leaves of the kernel IR, re-exported by ir.py.

Vectors. A value may have several lanes (`lanes(expr)`); a scalar operand is broadcast. `Load`/`Store` of n lanes access n
consecutive elements of the last dimension (`stride` 1) or, with `across`, of the whole buffer: they continue in the next row.
`count`, if given, is the number of leading lanes that exist: the others are not accessed, and a load yields `fill` for them.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

from tilelang.core.dtype import DType
from tilelang.core.expr import INDEX, Binary, Call, Cast, Const, Expr, Select, Unary, index
from tilelang.core.node import Node, interned
from tilelang.core.simplify import simplify

# ---------------------------------------------------------------- buffers


@interned
class Buffer(Node):
    """A dense array in memory. Interned: equal buffers are one object. Names are unique in a program."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    memory: str  # "global", "shared" or "register"
    # Global: "input", "output" or "workspace". Registers: "temporary", if written and read under the same guards. Shared: "phases", for
    # barriers with phases, one per element, which only InitPhases, Arrive and Await touch.
    role: str = ""
    vector: int = (
        0  # registers: `scalar_replacement` keeps the last dimension in vectors of this many lanes; 0: a plain private array
    )
    offset: int | None = None  # shared: bytes from the start of the block's shared memory, set by `allocate_shared`
    ring: int = 0  # slots of the circular buffer along the first dimension; 0: not circular

    @property
    def elements(self) -> int:
        total = 1
        for n in self.shape:
            total *= n
        return total

    @property
    def bytes(self) -> int:
        return self.elements * self.dtype.bytes

    @property
    def strides(self) -> tuple[int, ...]:
        """Distance in elements between neighbours along each dimension."""
        return _strides(self.shape)

    @property
    def groups(self) -> tuple[int, ...]:
        """The vectors along each dimension of registers that are kept in vectors."""
        return _groups(self.shape, self.vector)


@functools.cache
def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    out, step = [], 1
    for n in reversed(shape):
        out.append(step)
        step *= n
    return tuple(reversed(out))


@functools.cache
def _groups(shape: tuple[int, ...], vector: int) -> tuple[int, ...]:
    return (*shape[:-1], -(-shape[-1] // vector)) if shape else (1,)


# ---------------------------------------------------------------- expressions


@interned
class Load(Expr):
    """`lanes` elements of a buffer from `indices` on along the last dimension; `across`: continuing in the next row."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    lanes: int = 1
    count: Expr | None = None
    fill: Const | None = None
    across: bool = False

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype

    def text(self, go: Any) -> str:
        tail = f":{self.lanes}{' across' if self.across else ''}" if self.lanes > 1 else ""
        if self.count is not None:
            tail += f" first {go(self.count, 0)} else {go(self.fill, 0)}"
        return f"{self.buffer.name}[{', '.join(go(i, 0) for i in self.indices)}{tail}]"


@interned
class Ramp(Expr):
    """The vector base, base+1, ... of `lanes` lanes."""

    base: Expr
    lanes: int

    @property
    def dtype(self) -> DType:
        return self.base.dtype

    def text(self, go: Any) -> str:
        return f"ramp({go(self.base, 0)}, {self.lanes})"


@interned
class BeforeLine(Expr):
    """The number of elements of a global buffer before its first address that is a multiple of `line_bytes`."""

    buffer: Buffer
    line_bytes: int

    @property
    def dtype(self) -> DType:
        return INDEX

    def text(self, go: Any) -> str:
        return f"before_line({self.buffer.name}, {self.line_bytes})"


@interned
class Pack(Expr):
    """A vector built from scalars."""

    items: tuple[Expr, ...]

    @property
    def dtype(self) -> DType:
        return self.items[0].dtype

    def text(self, go: Any) -> str:
        return f"pack({', '.join(go(i, 0) for i in self.items)})"


@interned
class Shuffle(Expr):
    """Selects lanes from two vectors of n lanes: numbers below n select from the first, the others from the second."""

    first: Expr
    second: Expr
    numbers: tuple[int, ...]

    @property
    def dtype(self) -> DType:
        return self.first.dtype

    def text(self, go: Any) -> str:
        return f"shuffle({go(self.first, 0)}, {go(self.second, 0)}, {' '.join(map(str, self.numbers))})"


_LANES: dict[Expr, int] = {}


def lanes(expr: Expr) -> int:
    """The number of lanes of a value; 1 is a scalar."""
    found = _LANES.get(expr)
    if found is None:
        match expr:
            case Load(lanes=n) | Ramp(lanes=n):
                found = n
            case Pack(items):
                found = len(items)
            case Shuffle(numbers=numbers):
                found = len(numbers)
            case Binary(_, a, b):
                found = max(lanes(a), lanes(b))
            case Unary(_, a) | Cast(a, _):
                found = lanes(a)
            case Call(_, args):
                found = max(lanes(a) for a in args)
            case Select(c, a, b):
                found = max(lanes(c), lanes(a), lanes(b))
            case _:
                found = 1
        _LANES[expr] = found
    return found


def flat(buffer: Buffer, indices: tuple[Expr, ...]) -> Expr:
    """The row-major index of an element in its buffer."""
    total: Expr = index(0)
    for i, stride in zip(indices, buffer.strides, strict=True):
        total = total + i * stride
    return simplify(total)


_LOADS: dict[Expr, tuple[Load, ...]] = {}


def loads(expr: Expr) -> tuple[Load, ...]:
    """Every distinct load in an expression, outer ones first."""
    found = _LOADS.get(expr)
    if found is None:
        inner = [part for child in expr.children() if isinstance(child, Expr) and (part := loads(child))]
        if isinstance(expr, Load):
            inner.insert(0, (expr,))
        found = inner[0] if len(inner) == 1 else tuple(dict.fromkeys(itertools.chain.from_iterable(inner)))
        _LOADS[expr] = found
    return found
