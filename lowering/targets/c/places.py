"""Indices and memory locations as C: the part of the expression printer for integers, offsets and named registers.

Index arithmetic is printed from its linear form, in the kernel's index type, so that constants are combined and the alignment of
vector accesses is visible. `//` and `%` become C's operators only if both operands are known to be non-negative.
"""

from __future__ import annotations

from math import gcd, inf
from typing import Any

from tilelang.core import dtype as dt
from tilelang.core.expr import Binary, Cast, Const, Expr, Select, Unary, Var, free, index
from tilelang.core.simplify import Linear, interval, linear, magnitude, weighted_sum
from tilelang.lowering import ir
from tilelang.lowering.ir import Buffer, Ramp, flat, lanes
from tilelang.lowering.targets.c.dialect import Dialect, memory_bytes, memory_type, value_type
from tilelang.lowering.targets.c.lanes import lane
from tilelang.lowering.targets.c.library import Library

# C's precedence, loosest first; a text of lower precedence needs parentheses in a context of higher precedence.
ANY, TERNARY, UNARY, POSTFIX = 0, 1, 12, 13
PRECEDENCE = {
    "or": 2, "and": 3, "|": 4, "^": 5, "&": 6, "==": 7, "!=": 7, "<": 8, "<=": 8, "<<": 9, ">>": 9, "+": 10, "-": 10,
    "*": 11, "/": 11, "//": 11, "%": 11,
}  # fmt: skip
SPELLED = {"or": "||", "and": "&&", "//": "/"}
COMPARISONS = ("==", "!=", "<", "<=")
# Unlike for sums and products, the low bits of the result need all bits of the operands, at least for some of the amounts.
_OF_WHOLE_VALUES = ("//", "%", "min", "max", "<<", ">>")


def bracket(text: str, own: int, wanted: int) -> str:
    return f"({text})" if own < wanted else text


def _whole(value: int) -> str:
    """A number in C; a 32-bit number is an int."""
    return f"{value}L" if abs(value) >= 2**31 else str(value)


class Places:
    """Prints the indices of one kernel. `names` holds the names of buffers and variables; the statement emitter fills it."""

    def __init__(self, kernel: ir.Kernel, dialect: Dialect, library: Library) -> None:
        self.dialect, self.library = dialect, library
        self.index_type = "int" if kernel.index_bits == 32 else "long"
        self.index_bits = kernel.index_bits
        self.offsets_apart = dialect.offsets_apart and kernel.threads == 1
        self.fast_math, self.contract = kernel.fast_math, kernel.contract
        self.names: dict[Any, str] = {}
        self.types: dict[Var, str] = {}  # C type of each variable in scope
        self.alignment: dict[Buffer, int] = {}  # known alignment in bytes of a buffer's first element
        self._pure: dict[Expr, bool] = {}
        self._wide: dict[Expr, bool] = {}
        self._pieces: dict[tuple[Buffer, tuple[Expr, ...], int], list[tuple[str, int, int]]] = {}
        self._texts: dict[Expr, str] = {}  # of loads, as long as no name changes

    def forget(self) -> None:
        """Must be called when a variable gets another name."""
        self._texts.clear()

    # ------------------------------------------------------------ names

    def variable(self, var: Var) -> str:
        """The name of a variable, which may have a narrower range than where it was bound."""
        name = self.names.get(var) or self.names.get(var.name)
        assert name is not None, f"variable {var.name} is used outside its scope"
        return name

    def _variable_type(self, var: Var) -> str:
        found = self.types.get(var)
        return found if found is not None else self.index_type if var.type.is_integer else value_type(var.type)

    # ------------------------------------------------------------ indices

    def index(self, e: Expr, level: int = ANY) -> str:
        """An integer in the kernel's index type."""
        form = linear(e)
        return self._sum(form, level) if self._holds(form) else self._index_atom(e, level)

    def amount(self, e: Expr, level: int = ANY) -> str:
        """A number of elements or iterations; solving a condition for it may give any 64-bit number."""
        return (self.value if self.exceeds(e) else self.index)(e, level)

    def _holds(self, form: Linear) -> bool:
        """Whether the index type can hold the numbers in a linear form."""
        terms, constant = form
        limit = 2 ** (self.index_bits - 1)
        return abs(constant) < limit and all(abs(c) < limit for _, c in terms)

    def _sum(self, form: Linear, level: int) -> str:
        terms, constant = form
        parts = sorted(terms, key=lambda t: (t[1] < 0, -abs(t[1])))
        if not parts:
            return bracket(_whole(constant), UNARY if constant < 0 else POSTFIX, level)
        if len(parts) == 1 and parts[0][1] == 1 and not constant:
            return self._index_atom(parts[0][0], level)
        texts = [_whole(constant)] if constant > 0 and parts[0][1] < 0 else []  # avoids a leading minus
        for atom, c in parts:
            text = self._index_atom(atom, 11)
            text = text if abs(c) == 1 else f"{text} * {_whole(abs(c))}"
            texts.append(f" {'-' if c < 0 else '+'} {text}" if texts else f"-{text}" if c < 0 else text)
        if constant and (constant < 0 or parts[0][1] > 0):
            texts.append(f" {'-' if constant < 0 else '+'} {_whole(abs(constant))}")
        own = 10 if len(texts) > 1 else UNARY if parts[0][1] == -1 else 11
        return bracket("".join(texts), own, level)

    def _index_atom(self, e: Expr, level: int) -> str:
        if self.is_wide(e) or isinstance(e, Binary) and e.op in _OF_WHOLE_VALUES and not self._operable(e):
            return bracket(f"({self.index_type}){self.value(e, UNARY)}", UNARY, level)
        match e:
            case Const(value=value):
                return bracket(_whole(int(value)), UNARY if value < 0 else POSTFIX, level)
            case Var():
                cast = "" if self._variable_type(e) == self.index_type else f"({self.index_type})"
                return bracket(f"{cast}{self.variable(e)}", UNARY if cast else POSTFIX, level)
            case Binary("//" | "%" as op, left, right):
                (low, _), (least, _) = interval(left), interval(right)
                if low is not None and low >= 0 and least is not None and least > 0:
                    return bracket(f"{self.index(left, 11)} {SPELLED.get(op, op)} {self.index(right, 12)}", 11, level)
                return f"{self.library.floored(op, self.index_type, 1)}({self.index(left)}, {self.index(right)})"
            case Binary("min" | "max" as op, left, right):
                cast = "(long)" if self.index_bits == 64 else ""
                level = UNARY if cast else ANY
                return f"{op}({cast}{self.index(left, level)}, {cast}{self.index(right, level)})"
            case Binary(op, left, right) if op in PRECEDENCE and op not in COMPARISONS:
                own = PRECEDENCE[op]
                return bracket(f"{self.index(left, own)} {op} {self.index(right, own + 1)}", own, level)
            case Unary("-" | "~" as op, operand):
                return bracket(f"{op}{self.index(operand, POSTFIX)}", UNARY, level)
            case Select(condition, then, otherwise):
                text = f"{self.condition(condition, 2)} ? {self.index(then, 2)} : {self.index(otherwise, TERNARY)}"
                if self.index_bits == 64:  # the type of both numbers would be int
                    return bracket(f"(long)({text})", UNARY, level)
                return bracket(text, TERNARY, level)
            case Cast(operand, _) if operand.dtype.is_integer:
                same = value_type(operand.dtype) == self.index_type
                return (
                    self.value(operand, level)
                    if same
                    else bracket(f"({self.index_type}){self.value(operand, UNARY)}", UNARY, level)
                )
            case _:
                return bracket(f"({self.index_type}){self.value(e, UNARY)}", UNARY, level)

    def pure(self, e: Expr) -> bool:
        """Whether an integer expression consists of indices and constants that, by their ranges, fit the index type, so that it
        may be computed in that type."""
        found = self._pure.get(e)
        if found is None:
            match e:
                case Const(type=t):
                    found = t is dt.int64 and self.small(e)
                case Var(type=t):
                    found = t is dt.int64 and self._variable_type(e) == self.index_type
                case Ramp(base, _):
                    found = self.pure(base)
                case Binary(op=op):
                    found = op != "pow" and self._operable(e) and not self.exceeds(e)
                case Unary("-", operand):
                    found = self.pure(operand)
                case Cast(operand, type):
                    found = (
                        type is dt.int64
                        and operand.dtype.is_integer
                        and operand.dtype.bits + (operand.dtype.kind == "uint") <= 32
                    )
                    found = found and lanes(operand) == 1
                case _:
                    found = False
            self._pure[e] = found = found and not self.is_wide(e)
        return found

    def _operable(self, e: Binary) -> bool:
        """Whether an operator can be applied in the index type."""
        shifts = e.op in ("<<", ">>")
        fits = not shifts or isinstance(e.right, Const) and 0 <= e.right.value < self.index_bits
        return fits and self.pure(e.left) and self.pure(e.right)

    def _computed(self, e: Expr) -> bool:
        """Whether the index of an element, which fits, may be computed in the index type, because its operands fit, too."""
        if isinstance(e, Select):
            return self._computed(e.then) and self._computed(e.otherwise)
        return self.index_bits == 64 or not isinstance(e, (Binary, Unary)) or self.pure(e)

    def is_wide(self, e: Expr) -> bool:
        """Whether an operand within an index that fits its type, such as i * i in (i * i) % 7, does not fit."""
        found = self._wide.get(e)
        if found is None:
            parts = [c for c in e.children() if isinstance(c, Expr) and c.dtype is dt.int64] if e.dtype is dt.int64 else []
            match e:
                case Binary("+" | "-") | Unary("-"):  # the wrap-around of sums cancels
                    found = False
                case Binary("*") if any(isinstance(c, Const) for c in parts):
                    found = False
                case _:
                    found = any(map(self.exceeds, parts))
            found = self._wide[e] = found or any(map(self.is_wide, parts))
        return found

    def exceeds(self, e: Expr) -> bool:
        """Whether an index provably exceeds the index type, or may do so by the ranges of its bounded variables."""
        if lanes(e) > 1:
            return self.exceeds(lane(e, 0)) or self.exceeds(lane(e, lanes(e) - 1))
        if not 2 ** (self.index_bits - 1) <= magnitude(e) < inf:
            return False
        return all(v.lower is not None and v.upper is not None for v in free(e))

    def index_compared(self, left: Expr, right: Expr) -> bool:
        """Whether a comparison is between indices, in the index type."""
        pure = left.dtype is dt.int64 and self.pure(left) and self.pure(right)
        return pure and not self.exceeds(left) and not self.exceeds(right)

    def small(self, e: Expr) -> bool:
        """Whether an index provably fits the index type."""
        low, high = interval(e)
        limit = 2 ** (self.index_bits - 1)
        return low is not None and high is not None and -limit <= low and high < limit

    def value(self, e: Expr, level: int = ANY) -> str:
        """An expression in its own type."""
        raise NotImplementedError

    def condition(self, e: Expr, level: int = ANY) -> str:
        """A scalar condition, 0 or 1."""
        raise NotImplementedError

    # ------------------------------------------------------------ memory

    def offset(self, buffer: Buffer, indices: tuple[Expr, ...], level: int = ANY) -> str:
        """The element's row-major index in its buffer."""
        indices = tuple(i if self._computed(i) else Cast(Cast(i, dt.int32), dt.int64) for i in indices)
        form = weighted_sum(indices, buffer.strides)
        if self._holds(form):
            return self._sum(form, level)
        total: Expr = index(0)
        for i, stride in zip(indices, buffer.strides, strict=True):
            total = Binary("+", total, Binary("*", i, index(stride)))
        return self._index_atom(total, level)

    def pointer(self, buffer: Buffer, indices: tuple[Expr, ...]) -> str:
        offset = self.offset(buffer, indices, 10)
        if " - " in offset:  # one step from the buffer's start, so that no intermediate pointer is out of bounds
            offset = f"({offset})"
        return self.names[buffer] if offset == "0" else f"{self.names[buffer]} + {offset}"

    def place_of_first(self, buffer: Buffer, indices: tuple[Expr, ...], count: Expr) -> str:
        """A pointer to the first `count` elements of a vector, which is inside the array even if count is 0.

        Compilers know the size of arrays declared in the kernel, and a pointer beyond their end is undefined even if it is never
        read through.
        """
        (low, high), (least, _) = interval(flat(buffer, indices)), interval(count)
        inside = low is not None and low >= 0 and high is not None and high <= buffer.elements
        if buffer.memory == "global" or inside or least is not None and least > 0:
            return self.pointer(buffer, indices)
        exists, offset = Binary("<", index(0), count), self.offset(buffer, indices, TERNARY)
        return f"{self.names[buffer]} + ({self.condition(exists, TERNARY + 1)} ? {offset} : 0)"

    def chunks(self, buffer: Buffer, indices: tuple[Expr, ...], chunk_bytes: int) -> str:
        """The offset of an element, at the start of a chunk, in chunks of `chunk_bytes` from the buffer's start."""
        size = memory_bytes(buffer.dtype)
        terms, constant = weighted_sum(indices, buffer.strides)
        if any(c * size % chunk_bytes for c in (constant, *(c for _, c in terms))):
            return f"({self.offset(buffer, indices)}) * {size} / {chunk_bytes}"
        return self._sum((tuple((e, c * size // chunk_bytes) for e, c in terms), constant * size // chunk_bytes), ANY)

    def element(self, buffer: Buffer, indices: tuple[Expr, ...]) -> str:
        """One element in memory as an lvalue."""
        terms, _ = weighted_sum(indices, buffer.strides)
        if self.offsets_apart and len(terms) > 1:
            return f"*({self.pointer(buffer, indices)})"
        return f"{self.names[buffer]}[{self.offset(buffer, indices)}]"

    def known_alignment(self, buffer: Buffer, indices: tuple[Expr, ...]) -> int:
        """A known divisor of an element's address, in bytes."""
        size = memory_bytes(buffer.dtype)
        terms, constant = weighted_sum(indices, buffer.strides)
        return gcd(self.alignment.get(buffer, size), constant * size, *(c * size for _, c in terms))

    def vector_place(self, buffer: Buffer, indices: tuple[Expr, ...], n: int, const: bool) -> str:
        """Several elements in memory as one vector lvalue: a plain vector if the alignment is known, else an unaligned one."""
        scalar, known = memory_type(buffer.dtype), self.known_alignment(buffer, indices)
        type = self.library.place(scalar, n, known)
        space = self.dialect.spaces[buffer.memory]
        words = " ".join(w for w in (space, "const" if const else "", type) if w)
        return f"*({words}*)({self.pointer(buffer, indices)})"

    def pieces(self, buffer: Buffer, indices: tuple[Expr, ...], n: int) -> list[tuple[str, int, int]]:
        """The named variables that hold n elements of a promoted register buffer: name, first lane, lanes."""
        found = self._pieces.get((buffer, indices, n))
        if found is None:
            found = self._pieces[buffer, indices, n] = self._pieces_of(buffer, indices, n)
        return found

    def _pieces_of(self, buffer: Buffer, indices: tuple[Expr, ...], n: int) -> list[tuple[str, int, int]]:
        width, numbers = buffer.vector, []
        for i in indices:
            terms, constant = linear(i)
            assert not terms, f"{buffer.name} is kept in named variables, so its indices must be constants; got {i}"
            numbers.append(constant)
        first = numbers.pop() if numbers else 0
        found = []
        while n > 0:
            lane = first % width
            taken = min(n, width - lane)
            found.append((self.register(buffer, (*numbers, first // width)), lane, taken))
            first, n = first + taken, n - taken
        return found

    def register(self, buffer: Buffer, group: tuple[int, ...]) -> str:
        """The name of one variable of a promoted buffer; dimensions with one group are omitted."""
        return "_".join([self.names[buffer], *[str(g) for g, count in zip(group, buffer.groups, strict=True) if count > 1]])

    def part(self, name: str, width: int, lane: int, n: int) -> str:
        """Lanes of a variable."""
        return self.dialect.part(name, width, lane, n)
