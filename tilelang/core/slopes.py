"""The derivative of each function of one float, as an expression of its argument and its value."""

from __future__ import annotations

import math

from tilelang.core.expr import Binary, Call, Expr, Select, Unary, const


def slope(name: str, x: Expr, value: Expr) -> Expr | None:
    """The derivative of the function `name` at x, where it has the given value; None if it has steps (`floor`, `isnan`).

    At its kink, `abs` has the slope of its right side.

    >>> from tilelang.core import dtype as dt
    >>> from tilelang.core.expr import Var
    >>> x = Var("x", dt.float32)
    >>> print(slope("sqrt", x, Call("sqrt", (x,))))
    0.5 / sqrt(x)
    """

    def number(constant: float) -> Expr:
        return const(constant, x.dtype)

    match name:
        case "exp":
            return value
        case "exp2":
            return Binary("*", value, number(math.log(2)))
        case "expm1":
            return Call("exp", (x,))
        case "log":
            return Binary("/", number(1), x)
        case "log2":
            return Binary("/", number(1 / math.log(2)), x)
        case "log1p":
            return Binary("/", number(1), Binary("+", number(1), x))
        case "sqrt":
            return Binary("/", number(0.5), value)
        case "rsqrt":
            return Binary("/", Binary("*", number(-0.5), value), x)
        case "sin":
            return Call("cos", (x,))
        case "cos":
            return Unary("-", Call("sin", (x,)))
        case "tanh":
            return Binary("-", number(1), Binary("*", value, value))
        case "sigmoid":
            return Binary("*", value, Binary("-", number(1), value))
        case "erf":
            return Binary("*", number(2 / math.sqrt(math.pi)), Call("exp", (Unary("-", Binary("*", x, x)),)))
        case "abs":
            return Select(Binary("<", x, number(0)), number(-1), number(1))
    return None
