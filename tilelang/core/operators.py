"""Operator overloading: the methods of `Expr` behind Python's operators and NumPy's functions.

An operator builds an expression, in either order of its operands; so do NumPy functions of the same meaning (`np.exp(X[i])`,
`np.float32(2) * X[i]`). Anything that would need a concrete value is refused. expr.py defines the operations and their types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, Self

from tilelang.core.node import Node
from tilelang.errors import ComputationError

if TYPE_CHECKING:
    from tilelang.core.expr import Expr

# NumPy functions by name, and the operations of expr.py; those of the last line swap their operands.
_UFUNCS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "floor_divide": "//", "remainder": "%", "power": "pow",
    "minimum": "min", "maximum": "max", "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "left_shift": "<<",
    "right_shift": ">>", "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "logical_and": "and",
    "logical_or": "or", "negative": "-", "invert": "~", "logical_not": "not", "rint": "round", "absolute": "abs", "fabs": "abs",
    **{name: name for name in ("exp exp2 expm1 log log2 log1p sqrt sin cos tanh floor ceil isnan").split()},
    "greater": "<", "greater_equal": "<=",
}  # fmt: skip


def _operator(op: str, swapped: bool = False) -> Callable[[Any, Any], Expr]:
    """The method of an operator. swapped: the reflected one, which Python calls on the right operand."""

    def apply(self: Operators, other: Any) -> Expr:
        return self.operation(op, other, self) if swapped else self.operation(op, self, other)

    return apply


def _function(op: str) -> Callable[[Any], Expr]:
    def apply(self: Operators) -> Expr:
        return self.operation(op, self)

    return apply


def _refusal(asked: str) -> Callable[[Any], Any]:
    """A method that raises an error when Python asks an expression for a concrete number or for elements."""

    def refuse(self: Operators) -> NoReturn:
        raise ComputationError(
            "expression-as-number",
            f"`{self}` is not known until the kernel runs: {asked}",
            help="use the functions of tl, as in tl.exp(x), and tl.cast(x, tl.int32) for conversions; only numbers and extents, as in"
            " axis.extent, are known now",
        )

    return refuse


def _numpy_refusal(name: str) -> ComputationError:
    return ComputationError(
        "numpy-function",
        f"np.{name} computes immediately, but an expression is not known until the kernel runs",
        help="use the functions of tl, as in tl.where(c, a, b) and tl.sum(x, over=k), and declare an existing array as an input",
    )


class Operators(Node):
    """The base of expressions."""

    __slots__ = ()

    def operation(self, op: str, *operands: Any) -> Expr:
        """Builds the expression of an operator or a function of expr.py."""
        raise NotImplementedError

    def equality(self, op: str, other: Any) -> Any:
        """Builds the expression of `==` or `!=`; NotImplemented if `other` cannot be an operand."""
        raise NotImplementedError

    def __bool__(self) -> bool:
        raise ComputationError(
            "expression-as-bool",
            f"`{self}` is not known until the kernel runs",
            help="choose with tl.where(condition, a, b), tl.maximum or tl.minimum, and combine conditions with & | ~; to compare"
            " expressions themselves, use `a is b` or a set",
        )

    # Dictionaries and sets hardly ever call `==`: they test identity first, and different expressions have different hashes.
    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        found: Expr = self.equality("==", other)
        return found

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        found: Expr = self.equality("!=", other)
        return found

    __hash__ = object.__hash__

    __lt__, __gt__ = _operator("<"), _operator("<", swapped=True)
    __le__, __ge__ = _operator("<="), _operator("<=", swapped=True)
    __add__, __radd__ = _operator("+"), _operator("+", swapped=True)
    __sub__, __rsub__ = _operator("-"), _operator("-", swapped=True)
    __mul__, __rmul__ = _operator("*"), _operator("*", swapped=True)
    __truediv__, __rtruediv__ = _operator("/"), _operator("/", swapped=True)
    __floordiv__, __rfloordiv__ = _operator("//"), _operator("//", swapped=True)
    __mod__, __rmod__ = _operator("%"), _operator("%", swapped=True)
    __pow__, __rpow__ = _operator("pow"), _operator("pow", swapped=True)
    __and__, __rand__ = _operator("&"), _operator("&", swapped=True)
    __or__, __ror__ = _operator("|"), _operator("|", swapped=True)
    __xor__, __rxor__ = _operator("^"), _operator("^", swapped=True)
    __lshift__, __rlshift__ = _operator("<<"), _operator("<<", swapped=True)
    __rshift__, __rrshift__ = _operator(">>"), _operator(">>", swapped=True)
    __neg__, __invert__, __abs__ = _function("-"), _function("~"), _function("abs")
    __floor__, __ceil__ = _function("floor"), _function("ceil")

    def __pos__(self) -> Self:
        return self

    def __round__(self, digits: int | None = None) -> Expr:
        if not digits:
            return self.operation("round", self)
        power = 10 ** min(abs(digits), 38)  # the greatest power of ten in float32
        raise ComputationError(
            "operand-type",
            f"`round({self}, {digits})`: only rounding to whole numbers is supported",
            help=f"write round(x * {power}) / {power}" if digits > 0 else f"write round(x / {power}) * {power}",
        )

    def __divmod__(self, other: Any) -> tuple[Expr, Expr]:
        return self.operation("//", self, other), self.operation("%", self, other)

    def __rdivmod__(self, other: Any) -> tuple[Expr, Expr]:
        return self.operation("//", other, self), self.operation("%", other, self)

    def __matmul__(self, other: Any) -> NoReturn:
        raise ComputationError(
            "operand-type",
            f"`@` does not apply to `{self}`, which is one element",
            help="write tl.sum(A[m, k] * B[k, n], over=k)",
        )

    __rmatmul__ = __matmul__

    __float__ = _refusal("float() and the functions of `math` take numbers")
    __int__ = __index__ = _refusal("int(), range() and positions in a list take numbers")
    __trunc__ = _refusal("math.trunc() takes numbers")
    __len__ = _refusal("it is one element, and has no length")
    __iter__ = _refusal("it is one element, and contains no others")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Expr:
        name = ufunc.__name__
        if method != "__call__" or options or name not in _UFUNCS:
            raise _numpy_refusal(name if method == "__call__" else f"{name}.{method}")
        return self.operation(_UFUNCS[name], *(reversed(inputs) if name.startswith("greater") else inputs))

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Expr:
        from tilelang.computations.functions import where  # late: that module imports this one

        match function.__name__, args:
            case "where", (condition, then, otherwise) if not options:
                return where(condition, then, otherwise)
            case (("round" | "around"), (Operators() as rounded, *digits)) if not options and len(digits) <= 1:
                return rounded.__round__(*digits)
        raise _numpy_refusal(function.__name__)
