"""Expressions of computations and of kernels, indices and scalars alike: one family of interned nodes.

Equal expressions are the same object: test equality with `is`, or with `in` and `==` of tuples that hold them (`Binary.__bool__`). `==`
and `!=` build comparisons, as for NumPy arrays. `//` and `%` round towards minus infinity. Nothing is simplified here: see simplify.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from tilelang.core import dtype as dt
from tilelang.core.dtype import DType
from tilelang.core.identifiers import spelled
from tilelang.core.node import Node, interned
from tilelang.core.operators import Operators
from tilelang.errors import ComputationError, brief, called_from_inside

INDEX = dt.int64  # the type of axes and index arithmetic until the lowering chooses a width

ARITHMETIC = ("+", "-", "*", "/", "//", "%", "min", "max", "pow")
BITWISE = ("&", "|", "^", "<<", ">>")
COMPARISONS, LOGICAL = ("==", "!=", "<", "<="), ("and", "or")
CONDITIONS = frozenset(COMPARISONS + LOGICAL)  # the operators whose results are conditions
_OF_ANY_INDICES = frozenset(("+", "-", "*", "min", "max", *COMPARISONS))  # the operators that no two indices are refused for
UNARY = ("-", "~", "not")
_OF_CONDITIONS = {"&": "and", "|": "or", "min": "and", "max": "or"}

# Functions of floats. Each has a NumPy meaning (reference.py), an error in ulps (error_bound.py) and a spelling per target.
FLOAT_FUNCTIONS = (
    "exp", "exp2", "log", "log2", "log1p", "expm1", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf", "sigmoid", "floor", "ceil", "round",
)  # fmt: skip
ANY_FUNCTIONS, PREDICATES = ("abs",), ("isnan",)


class Expr(Operators):
    """A typed value. `.dtype` is its element type."""

    __slots__ = ()

    @property
    def dtype(self) -> DType:
        raise NotImplementedError

    def __str__(self) -> str:
        return to_text(self)

    def operation(self, op: str, *operands: Any) -> Expr:
        match operands:
            case (left, right):
                return binary(op, left, right)
            case (operand,):
                return unary(op, operand) if op in UNARY else call(op, operand)
        raise TypeError(f"{op} of {len(operands)} operands")

    def equality(self, op: str, other: Any) -> Any:
        return _compared(op, self, other)


@interned
class Const(Expr):
    """A literal: a Python bool, int or float of type `type`."""

    value: bool | int | float
    type: DType

    @property
    def dtype(self) -> DType:
        return self.type


@interned
class Var(Expr):
    """A variable; for integers with its inclusive range (None: unbounded)."""

    name: str
    type: DType
    lower: int | None = None
    upper: int | None = None

    @property
    def dtype(self) -> DType:
        return self.type


@interned
class Axis(Expr):
    """A named axis of a computation: an index with values 0 .. extent-1."""

    name: str
    extent: int
    # the call of `tl.axes` that made it, while a definition is being built; 0 afterwards, when axes are identified by name
    made: int = 0

    @property
    def dtype(self) -> DType:
        return INDEX


_TYPES: dict[Expr, DType] = {}


class _Operation(Expr):
    """A node with the type of its first operand, or a condition."""

    __slots__ = ()

    @property
    def first(self) -> Expr | None:
        """The operand that determines the type; None for a condition."""
        raise NotImplementedError

    @property
    def dtype(self) -> DType:
        found = _TYPES.get(self)
        if found is None:
            e: Expr | None = self
            while (
                isinstance(e, _Operation) and e not in _TYPES
            ):  # no recursion: operations may be nested deeper than Python's stack
                e = e.first
            found = _TYPES[self] = dt.bool_ if e is None else _TYPES[e] if isinstance(e, _Operation) else e.dtype
        return found


@interned
class Binary(_Operation):
    """`left op right`; both operands have one type, unless op is a shift or `pow`."""

    op: str
    left: Expr
    right: Expr

    @property
    def first(self) -> Expr | None:
        return None if self.op in CONDITIONS else self.left

    def __bool__(self) -> bool:
        # Inside the compiler, `in` and the equality of tuples and steps call this, to find out whether two expressions are the same
        # one. In a definition, `if X[i] == 0` would get that answer, too, but its author means to compare values.
        if self.op in ("==", "!=") and called_from_inside():
            return (self.left is self.right) is (self.op == "==")
        return Operators.__bool__(self)


@interned
class Unary(_Operation):
    """`-x`, `not x`, `~x`."""

    op: str
    operand: Expr

    @property
    def first(self) -> Expr:
        return self.operand


@interned
class Call(_Operation):
    """A function from FLOAT_FUNCTIONS, ANY_FUNCTIONS or PREDICATES."""

    name: str
    args: tuple[Expr, ...]

    @property
    def first(self) -> Expr | None:
        return None if self.name in PREDICATES else self.args[0]


@interned
class Select(_Operation):
    """`then` where `condition` holds, else `otherwise`; the branch not taken is never loaded."""

    condition: Expr
    then: Expr
    otherwise: Expr

    @property
    def first(self) -> Expr:
        return self.then


@interned
class Cast(Expr):
    """Conversion like NumPy's astype: floats to integers truncate, anything to bool is `!= 0`."""

    operand: Expr
    type: DType

    @property
    def dtype(self) -> DType:
        return self.type


@interned
class Read(Expr):
    """One element of a tensor of the computation. `tensor` is a tilelang.computations.computation.Tensor."""

    tensor: Any
    indices: tuple[Expr, ...]

    @property
    def dtype(self) -> DType:
        found: DType = self.tensor.dtype
        return found


@interned
class Pad(Expr):
    """`read` where its indices are inside the tensor, else the constant `value`."""

    read: Read
    value: Const

    @property
    def dtype(self) -> DType:
        return self.read.dtype


@interned
class Combiner(Node):
    """How a reduction combines its accumulator with a value: associative, commutative, with an identity.

    `left` and `right` are variables, one per member of the accumulator; `result` and `identity` have one expression per member.
    `name` is sum, max, min, prod, argmax, argmin, or the user's own.
    """

    name: str
    left: tuple[Var, ...]
    right: tuple[Var, ...]
    result: tuple[Expr, ...]
    identity: tuple[Const, ...]


@interned
class Reduce(Expr):
    """Member `member` of the reduction of `values` over `axes`, restricted to points where `condition` holds."""

    combiner: Combiner
    values: tuple[Expr, ...]
    axes: tuple[Axis, ...]
    condition: Expr | None
    member: int

    @property
    def dtype(self) -> DType:
        return self.combiner.left[self.member].dtype


def as_expr(value: Any, like: DType | None = None) -> Expr:
    """A Python number as a literal of type `like` (or of its own: int64, float32, bool); expressions as they are.

    Raises ComputationError for anything else, and for a number that the type cannot hold.
    """
    return value if isinstance(value, Expr) else _number(value, like, None)


def _number(value: Any, like: DType | None, held_in: DType | None) -> Const:
    if getattr(value, "ndim", 0):
        message = f"an array of shape {tuple(value.shape)} cannot be used in an expression"
        help = 'declare A = tl.input("A", ...), read A[i, j], and pass the array to the kernel'
        raise ComputationError("not-an-expression", message, help=help)
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool):
        return Const(value, dt.bool_) if like is None or like.kind == "bool" else const(value, like)
    if isinstance(value, int):
        return literal(value, like if like is not None and like.kind != "bool" else INDEX, held_in)
    if isinstance(value, float):
        return literal(value, like if like is not None and like.is_float else dt.float32, held_in)
    raise ComputationError(
        "not-an-expression", f"{brief(value)} cannot be used in an expression", help="use a number, an axis, or A[i, j]"
    )


def several_of(value: Any) -> tuple[Any, ...]:
    """The tuple of one or several values; a string counts as one value."""
    several = isinstance(value, (Collection, Iterator)) and not isinstance(value, str)
    return tuple(value) if several and getattr(value, "shape", None) != () else (value,)  # an array of rank 0 is one value


def literal(value: bool | int | float, type: DType, held_in: DType | None = None) -> Const:
    """A user's number as a literal of a type. held_in: the wider type in which operators compute with it, if any.

    Raises ComputationError if the type cannot represent the number, apart from the rounding of floats.
    """
    holder = held_in or type
    if holder.holds(value):
        return const(value, type)
    shown = f"a number of {value.bit_length()} bits" if isinstance(value, int) and value.bit_length() > 128 else str(value)
    if holder.is_float:
        beyond = "infinity" if holder.highest == float("inf") else "NaN"
        message = f"{shown} would become {beyond if abs(value) > 1 else '0'} in {holder}"
    else:
        message = f"{shown} does not fit {holder}, which holds the whole numbers {holder.lowest} to {holder.highest}"
    wider = [t for t in dt.ALL.values() if t.kind == type.kind or type.kind == "uint" and t.kind == "int"]
    wider = [t for t in wider if dt.promote(type, t) is t and t.holds(value)]
    cast_it = "cast the other operand, as in tl.cast(x, tl.{}): a number takes the type of that operand"
    help = cast_it.format(wider[0]) if wider else f"use a number that {holder} can hold"
    raise ComputationError("number-out-of-range", message, help=help)


def const(value: bool | int | float, type: DType) -> Const:
    """A literal of the given type, its value converted to the matching Python type."""
    if type.is_float:
        return Const(float(value), type)
    return Const(bool(value), type) if type.kind == "bool" else Const(int(value), type)


@functools.cache
def index(value: int) -> Const:
    """A literal index."""
    return Const(int(value), INDEX)


def cast(value: Any, type: Any) -> Expr:
    """Conversion of an expression (a number becomes a literal) to an element type."""
    target = dt.dtype(type)
    value = as_expr(value, target)
    return value if value.dtype == target else Cast(value, target)


def binary(op: str, left: Any, right: Any) -> Expr:
    """`left op right`. Numbers become literals of the other side's type, and mixed types are promoted by dtype.promote.

    Raises ComputationError if the operator does not apply to the types.
    """
    left, right = _operand(left, right), _operand(right, left)
    a, b = left.dtype, right.dtype
    if a is INDEX and b is INDEX and op in _OF_ANY_INDICES:  # the compiler makes most
        return Binary(op, left, right)
    if a != b:
        common = dt.promote(a, b)
        left, right = cast(left, common), cast(right, common)
        a = common
    if a.kind == "bool":
        op = _OF_CONDITIONS.get(op, op)
    if op in LOGICAL and a.kind != "bool":
        raise ComputationError(
            "operand-type", f"`{op}` needs conditions, got {a}", help="compare first, as in tl.where(x > 0, ...)"
        )
    if op in BITWISE and a.is_float:
        raise ComputationError("operand-type", f"`{op}` needs integers, got {a}", help="cast to an integer type")
    if op == "/" and not a.is_float:
        raise ComputationError("operand-type", f"`/` does not apply to {a}", help="use // for whole numbers, or cast to a float")
    if a.kind == "bool" and op in ("+", "-", "*", "//", "%", "pow", "<<", ">>"):
        raise ComputationError("operand-type", f"`{op}` does not apply to conditions", help="cast to a number first")
    if op in ("<<", ">>") and isinstance(right, Const) and not 0 <= right.value < max(32, a.bits):
        message = f"`{left} {op} {right}`: {a} can only be shifted by 0 to {max(32, a.bits) - 1} bits"
        raise ComputationError("number-out-of-range", message, help="cast to a wider type first")
    if op in ("//", "%") and isinstance(right, Const) and right.value == 0 and not a.is_float:
        raise ComputationError("division-by-zero", f"`{left} {op} 0`", help="divide by a constant that is not zero")
    return Binary(op, left, right)


def _operand(value: Any, other: Any) -> Expr:
    if isinstance(value, Expr):
        return value
    like = other.dtype if isinstance(other, Expr) else None
    if like is INDEX and type(value) is int and INDEX.lowest <= value <= INDEX.highest:
        return index(value)
    # Operators on small floats compute in float32 and use the number unrounded; integers wrap to their own type at the end.
    return _number(value, like, dt.compute_type(like) if like is not None and like.is_float else None)


def _compared(op: str, left: Expr, right: Any) -> Any:
    if not isinstance(right, (Expr, bool, int, float)) and not hasattr(right, "ndim"):
        return NotImplemented  # a string, None, a tensor (which raises): nothing that an expression could equal
    found = binary(op, left, right)
    if isinstance(found, Binary) and found.left is found.right and right is not left and isinstance(right, Expr):
        # One operand is the other one converted: the same value but not the same expression, which `bool` must distinguish.
        return Binary(op, Cast(found.left, found.left.dtype), found.right)
    return found


def unary(op: str, operand: Any) -> Expr:
    """`-x`, `not x` or `~x`. Raises ComputationError if the operator does not apply to the type."""
    value = as_expr(operand)
    if value.dtype.kind == "bool" and op == "~":
        op = "not"
    kinds = {"-": ("float", "int", "uint"), "~": ("int", "uint"), "not": ("bool",)}[op]
    if value.dtype.kind not in kinds:
        help = "compare first, as in x > 0" if op == "not" else "cast to an integer type"
        raise ComputationError("operand-type", f"`{op}` does not apply to `{value}`, which is {value.dtype}", help=help)
    return Unary(op, value)


def call(name: str, argument: Any) -> Expr:
    """A function of the language. Integers are their own floor, ceil and round; other float functions refuse them."""
    value = as_expr(argument)
    if value.dtype.is_float or (name in ANY_FUNCTIONS and value.dtype.kind == "int"):
        return Call(name, (value,))
    if name in PREDICATES:
        return Const(False, dt.bool_)
    if name in ("floor", "ceil", "round", "abs") and value.dtype.is_integer:
        return value
    message = f"tl.{name} does not apply to `{value}`, which is {value.dtype}"
    raise ComputationError("operand-type", message, help=f"cast it first, as in tl.{name}(tl.cast(..., tl.float32))")


def substitute(expr: Any, mapping: Mapping[Any, Any]) -> Any:
    """Replaces every node that is a key of `mapping`; replacements are not searched again."""
    return _Replaced(mapping)[expr] if mapping else expr


_NAMED = frozenset((Var, Axis))


class _Replaced(dict[Any, Any]):
    """The replacement of every node visited. A recursive function would be a reference cycle for the garbage collector."""

    def __init__(self, mapping: Mapping[Any, Any]) -> None:
        super().__init__(mapping)
        self.names = frozenset(mapping) if _NAMED.issuperset(map(type, mapping)) else None

    def __missing__(self, e: Any) -> Any:
        unchanged = self.names is not None and self.names.isdisjoint(free(e))
        found = self[e] = e if unchanged else e.map_children(self.__getitem__)
        return found


def by_names(expr: Any) -> Any:
    """The expression with axes identified by name and extent, whichever calls of `tl.axes` made them.

    >>> by_names(Axis("i", 4, 7)) is Axis("i", 4)
    True
    """
    return substitute(expr, {a: Axis(a.name, a.extent) for a in set(expr.walk()) if isinstance(a, Axis) and a.made})


def rewrite(expr: Any, rule: Callable[[Any], Any]) -> Any:
    """Rewrites bottom-up: `rule(node)` is called after its children were rewritten and returns the node or its replacement."""
    memo: dict[Any, Any] = {}

    def go(e: Any) -> Any:
        found = memo.get(e)
        if found is None:
            found = memo[e] = rule(e.map_children(go))
        return found

    return go(expr)


_FREE: dict[Expr, frozenset[Any]] = {}


def free(expr: Node) -> frozenset[Any]:
    """The Vars and Axes in an expression, including those that a Reduce runs over."""
    if not isinstance(expr, Expr):
        return frozenset().union(*map(free, expr.children()))
    found = _FREE.get(expr)
    if found is None:
        below = (expr,) if isinstance(expr, (Var, Axis)) else frozenset().union(*map(free, expr.children()))
        found = _FREE[expr] = frozenset(below)
    return found


PRECEDENCE = {"or": 1, "and": 2, "==": 3, "!=": 3, "<": 3, "<=": 3, "|": 4, "^": 5, "&": 6, "<<": 7, ">>": 7, "+": 8, "-": 8,
               "*": 9, "/": 9, "//": 9, "%": 9}  # fmt: skip


def to_text(expr: Node) -> str:
    """The readable form of an expression, with `//` for index division."""

    def go(e: Any, outer: int) -> str:
        match e:
            case Const(value, type):
                return str(value).lower() if type.kind == "bool" else str(value)
            case Var(name=name) | Axis(name=name):
                return spelled(name)
            case Binary(op, left, right) if op in PRECEDENCE:
                p = PRECEDENCE[op]
                text = f"{go(left, p)} {op} {go(right, p + 1)}"
                return f"({text})" if p < outer else text
            case Binary(op, left, right):
                return f"{op}({go(left, 0)}, {go(right, 0)})"
            case Unary("not", operand):
                return f"not {go(operand, 10)}"
            case Unary(op, operand):
                return f"{op}{go(operand, 10)}"
            case Call(name, args):
                return f"{name}({', '.join(go(a, 0) for a in args)})"
            case Select(condition, then, otherwise):
                return f"where({go(condition, 0)}, {go(then, 0)}, {go(otherwise, 0)})"
            case Cast(operand, type):
                return f"cast({go(operand, 0)}, {type})"
            case Read(tensor, indices):
                return f"{spelled(tensor.name)}[{', '.join(go(i, 0) for i in indices)}]"
            case Pad(read, value):
                return f"pad({go(read, 0)}, {go(value, 0)})"
            case Reduce(combiner, values, axes, condition, member):
                where = f": {go(condition, 0)}" if condition is not None else ""
                inner = ", ".join(go(v, 0) for v in values)
                tail = f".{member}" if len(values) > 1 else ""
                return f"{combiner.name}[{', '.join(a.name for a in axes)}{where}]({inner}){tail}"
            case _:
                return e.text(go) if hasattr(e, "text") else repr(e)

    return go(expr, 0)
