"""Evaluates an expression of the text: a number if it consists of numbers, else an expression of the language.

Numbers take the type of the other operand, as in Python, because the same functions build the result. Where integers are required (an
extent, an index, a layout), `/` is floor division.
"""

from __future__ import annotations

import linecache
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from tilelang.computations import composed
from tilelang.computations import functions as F
from tilelang.computations.combiners import state_type
from tilelang.core import dtype as dt
from tilelang.core import expr
from tilelang.core.expr import Expr
from tilelang.errors import ParseError, Span, TileLangError, counted, meant
from tilelang.grammar.parser import Syntax

DEEPEST = 200  # maximum nesting of operations
MOST_BITS = 128  # of a number that a text computes
MOST_DIGITS = MOST_BITS // 3  # of a number written in a text

REDUCERS: dict[str, Callable[..., Any]] = {
    "sum": F.sum, "prod": F.prod, "max": F.max, "min": F.min, "argmax": F.argmax, "argmin": F.argmin, "any": F.any, "all": F.all,
}  # fmt: skip
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{n: getattr(F, n) for n in ("gelu", "gelu_tanh", "relu", "pad", "where", "abs", "isnan", *expr.FLOAT_FUNCTIONS)},
    **{n: getattr(composed, n) for n in ("clamp", "silu", "softplus")},
    "max": F.maximum, "min": F.minimum, "pow": lambda a, b: expr.binary("pow", a, b),
}  # fmt: skip
# Names of types in other languages.
_USUAL_TYPES = {"float": "float32", "double": "float64", "half": "float16", "int": "int32", "long": "int64"}
ARGUMENTS = {"pad": (1, 2), "clamp": (3, 3), "where": (3, 3), "max": (2, 2), "min": (2, 2), "pow": (2, 2)}
_NUMBERS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv, "%": operator.mod,
    "|": operator.or_, "^": operator.xor, "&": operator.and_, "<<": operator.lshift, ">>": operator.rshift, "==": operator.eq,
    "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "and": lambda a, b: a and b,
    "or": lambda a, b: a or b, "max": max, "min": min, "pow": pow,
}  # fmt: skip
# Precedence of binary operators; `not` binds more loosely than comparisons, prefix `-` and `~` most tightly.
RANKS = {**expr.PRECEDENCE, ">": expr.PRECEDENCE["<"], ">=": expr.PRECEDENCE["<"]}


class Scope:
    """The meanings of names in a text.

    values: parameters, axes and the variables of combiners. tensors: what can be read. combiners: user-defined ones.
    """

    def __init__(self, file: str, values: Mapping[str, Any], tensors: Mapping[str, Any] | None = None,
                 combiners: Mapping[str, Any] | None = None, can: Callable[[str], Any] | None = None) -> None:  # fmt: skip
        self.file, self.values, self.can = file, dict(values), can
        self.tensors, self.combiners = dict(tensors or {}), dict(combiners or {})

    def span(self, tree: Any) -> Span:
        """The place of a part of the text: a tree, or a token."""
        first, last = getattr(tree, "first", tree), getattr(tree, "last", tree)
        if first is None:  # a text without tokens
            return Span(self.file, 1, 1, 2)
        end = last.end_column if first.line == last.end_line else first.column + 1
        return Span(self.file, first.line, first.column, end)

    def said(self, tree: Any) -> str:
        """The source text of a part; if it spans several lines, the first one."""
        span = self.span(tree)
        last = getattr(tree, "last", tree)
        end = span.end_column if span.line == last.line else None
        return linecache.getline(self.file, span.line)[span.column - 1 : end and end - 1].rstrip()

    def fail(self, tree: Any, code: str, message: str, help: str) -> ParseError:
        """An error at a part of the text."""
        return ParseError(code, message, span=self.span(tree), help=help)


def name_of(tree: Any) -> str:
    """The name in a `name` node, or the token itself, without backquotes."""
    return str(tree.children[0] if hasattr(tree, "children") else tree).strip("`")


class Values:
    """Evaluates expressions in a scope. whole: `/` is floor division."""

    def __init__(self, scope: Scope, whole: bool = False) -> None:
        self.scope, self.whole, self.depth = scope, whole, 0

    def value(self, tree: Syntax) -> Any:
        """The number or expression that a tree denotes. Raises ParseError, or an error of the language, with its place."""
        self._deeper(tree)
        try:
            return getattr(self, f"_{tree.data}")(tree)
        except ParseError:
            raise
        except TileLangError as error:
            raise in_text(error, self.scope.span(tree)) from None
        finally:
            self.depth -= 1

    def number(self, tree: Syntax, what: str, least: int = 0) -> int:
        """A whole number that the text computes. what: for the message."""
        found = Values(self.scope, whole=True).value(tree)
        if isinstance(found, bool) or not isinstance(found, int):
            message = f"{what} is `{self.scope.said(tree)}`, not a whole number"
            raise self.scope.fail(tree, "not-a-number", message, "use numbers and parameters")
        if found < least:
            raise self.scope.fail(tree, "number-too-small", f"{what} is {found}", f"{least} or more")
        return found

    # ------------------------------------------------------------ leaves

    def _number(self, tree: Any) -> int | float:
        text = str(tree.children[0])
        if tree.children[0].type == "INT":
            if len(text) > MOST_DIGITS:
                raise self.scope.fail(tree, "number-out-of-range", f"a number of {len(text)} digits", "a smaller one")
            return int(text)
        if math.isinf(float(text)):
            raise self.scope.fail(
                tree, "number-out-of-range", f"`{text}` is larger than any number", "write `inf`, or use a smaller one"
            )
        return float(text)

    def _truth(self, tree: Any) -> bool:
        return str(tree.children[0]) == "true"

    def _special(self, tree: Any) -> float:
        return float(tree.children[0])

    def _group(self, tree: Any) -> Any:
        return self.value(tree.children[0])

    def _variable(self, tree: Any) -> Any:
        name = name_of(tree.children[0])
        if name in self.scope.values:
            return self.scope.values[name]
        if name in self.scope.tensors:
            dims = ", ".join(d.name for d in self.scope.tensors[name].dims)
            raise self.scope.fail(
                tree,
                "whole-tensor",
                f"{name} is a whole tensor, but an expression reads one element",
                f"read one element: {name}[{dims}]",
            )
        raise self._unknown(tree, name, "name", (*self.scope.values, *self.scope.tensors))

    def _unknown(self, tree: Any, name: str, what: str, known: Any) -> ParseError:
        help = meant(name, known, f"there is no {what}")
        return self.scope.fail(tree, f"unknown-{what}", f"there is no {what} `{name}`", help)

    def _read(self, tree: Any) -> Any:
        name = name_of(tree.children[0])
        if name not in self.scope.tensors:
            raise self._unknown(tree.children[0], name, "tensor", tuple(self.scope.tensors))
        inner = Values(self.scope, whole=True)
        indices = [inner.value(t) for t in tree.children[1].children] if len(tree.children) > 1 else []
        return self.scope.tensors[name][tuple(indices)]

    # ------------------------------------------------------------ operators

    def _binary(self, op: str, left: Any, right: Any, tree: Any) -> Any:
        if not isinstance(left, Expr) and not isinstance(right, Expr):
            return self._of_numbers(op, left, right, tree)
        if op in ("and", "or"):
            return expr.binary(op, left, right)
        op = "//" if op == "/" and self.whole else op
        return expr.binary("<" if op == ">" else "<=", right, left) if op in (">", ">=") else expr.binary(op, left, right)

    def _of_numbers(self, op: str, left: Any, right: Any, tree: Any) -> Any:
        op = "//" if op == "/" and self.whole else op
        try:
            if op == "<<" and right > MOST_BITS or op == "pow" and _too_large(left, right):
                raise OverflowError
            found = _NUMBERS[op](left, right)
            if isinstance(found, complex):
                raise ValueError("no real number")
        except (ArithmeticError, TypeError, ValueError) as error:
            said = "too large" if isinstance(error, OverflowError) else str(error)
            raise self.scope.fail(tree, "number", f"`{self.scope.said(tree)}`: {said}", "use other numbers") from None
        if isinstance(found, int) and found.bit_length() > MOST_BITS:
            raise self.scope.fail(tree, "number-out-of-range", f"a number of {found.bit_length()} bits", "a smaller one")
        return found

    def _operation(self, tree: Any) -> Any:
        """A sequence of operands and operators, combined by precedence."""
        return self._ranked(tree, list(reversed(tree.children)), 0)

    def _ranked(self, tree: Any, left: list[Any], least: int) -> Any:
        """The result of the next operators of at least this precedence. left: the remaining input, the next token last."""
        before = self.depth
        self._deeper(tree)
        found = self._prefixed(tree, left)
        compared = False
        while left and RANKS[str(left[-1])] >= least:
            op = left.pop()
            rank = RANKS[str(op)]
            if rank == RANKS["=="]:
                if compared:
                    raise self.scope.fail(op, "chained-comparison", "comparisons are not chained", "write `0 <= i and i < 4`")
                compared = True
            found = self._binary(str(op), found, self._ranked(tree, left, rank + 1), tree)
        self.depth = before
        return found

    def _prefixed(self, tree: Any, left: list[Any]) -> Any:
        """The next operand, with its prefix operators."""
        first = left.pop()
        if not hasattr(first, "type"):
            return self.value(first)
        self._deeper(first)
        if str(first) == "not":
            found = self._ranked(tree, left, RANKS["=="])
            return not found if isinstance(found, bool) else expr.unary("not", found)
        found = self._prefixed(tree, left)
        if str(first) == "-":
            return -found if not isinstance(found, Expr) else expr.unary("-", found)
        return ~found if isinstance(found, int) and not isinstance(found, bool) else expr.unary("~", found)

    def _deeper(self, tree: Any) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.scope.fail(
                tree,
                "too-deep",
                f"more than {DEEPEST} operations inside each other",
                "define parts of it as tensors of their own",
            )

    # ------------------------------------------------------------ functions and reductions

    def _call(self, tree: Any) -> Any:
        function, *given = tree.children
        inner = function.children[0]
        name = name_of(inner)
        arguments = given[0].children if given else []
        if name == "cast":
            return self._cast(tree, arguments)
        if name == "can" and self.scope.can is not None:
            return self._can(tree, arguments)
        if name in REDUCERS and name not in FUNCTIONS:
            help = f"a reduction names its axes: `{name}[k] A[m, k]`"
            raise self.scope.fail(function, "unknown-function", f"there is no function `{name}`", help)
        if name not in FUNCTIONS:
            raise self._unknown(function, name, "function", (*FUNCTIONS, "cast"))
        least, most = ARGUMENTS.get(name, (1, 1))
        if not least <= len(arguments) <= most:
            wants = f"{least}" if least == most else f"{least} or {most}"
            raise self.scope.fail(tree, "arguments", f"{name} takes {wants} values, not {len(arguments)}", _form(name))
        values = [self.value(a) for a in arguments]
        if self.whole and name in ("max", "min", "pow", "abs") and all(type(v) in (int, float) for v in values):
            return abs(values[0]) if name == "abs" else self._of_numbers(name, values[0], values[1], tree)
        return FUNCTIONS[name](*values)

    def _cast(self, tree: Any, arguments: Any) -> Any:
        if len(arguments) != 2 or arguments[1].data != "variable":
            raise self.scope.fail(tree, "arguments", "cast takes a value and a type", "cast(A[m, k], float32)")
        return F.cast(self.value(arguments[0]), type_named(self.scope, arguments[1].children[0]))

    def _can(self, tree: Any, arguments: Any) -> Any:
        assert self.scope.can is not None
        if len(arguments) != 1 or arguments[0].data != "variable":
            raise self.scope.fail(tree, "arguments", "can takes one name", "can(async_copy), or the name of an instruction")
        return self.scope.can(name_of(arguments[0].children[0]))

    def axes(self, tree: Any) -> list[Any]:
        """The axes of a list of names."""
        found = []
        for name in tree.children:
            axis = self.scope.values.get(name_of(name))
            if not isinstance(axis, expr.Axis):
                known = [n for n, v in self.scope.values.items() if isinstance(v, expr.Axis)]
                raise self._unknown(name, name_of(name), "axis", known)
            found.append(axis)
        return found

    def reduced(self, tree: Any) -> Any:
        """The expression of a reduction, or a tuple if it reduces several values."""
        reducer, domain, body = tree.children
        over = self.axes(domain.children[0])
        where = self.value(domain.children[1]) if len(domain.children) > 1 else None
        several = body.data == "values"
        values = (
            [self.value(body.children[0]), *(self.value(t) for t in body.children[1].children)] if several else [self.value(body)]
        )
        if reducer.data == "own_reducer":
            name = name_of(reducer.children[0])
            if name not in self.scope.combiners:
                raise self._unknown(reducer, name, "combiner", tuple(self.scope.combiners))
            combine, identity, types = self.scope.combiners[name]
            if len(identity) != len(values):
                message = f"`{name}` combines {counted(len(identity), 'value')}, not {len(values)}"
                raise self.scope.fail(tree, "reduce-members", message, "give one value for each member of its state")
            values = [expr.as_expr(v) for v in values]
            met = [state_type(v.dtype) for v in values]
            if met != types:
                message = f"the state of `{name}` has the types ({listed(types)}), but these values have ({listed(met)})"
                other = "or cast the values"
                if any(state_type(t) != t for t in types):
                    other = "as conditions and integers of 8 and 16 bits are combined in 32 bits"
                raise self.scope.fail(tree, "combiner-types", message, f"declare ({listed(met)}), {other}")
            if several:
                return F.reduce(combine, tuple(identity), tuple(values), over, where, name)
            return F.reduce(combine, identity[0], values[0], over, where, name)
        if several:
            message = f"`{reducer.children[0]}` reduces one value, not {len(values)}"
            raise self.scope.fail(tree, "reduce-members", message, "define a combiner: reduce NAME[axes] (a, b)")
        return REDUCERS[str(reducer.children[0])](values[0], over, where)

    def _reduction(self, tree: Any) -> Any:
        found = self.reduced(tree)
        if isinstance(found, tuple):
            help = "define them together: a[i], b[i] = ...; or take one, as in (reduce w[j] (x, y))[0]"
            raise self.scope.fail(tree, "reduce-members", f"this has {counted(len(found), 'value')} where one is needed", help)
        return found

    def _member_of(self, tree: Any) -> Any:
        inner, number = tree.children
        found = self.reduced(inner) if inner.data == "reduction" else (self.value(inner),)
        if not isinstance(found, tuple) or len(number) > MOST_DIGITS or int(number) >= len(found):
            raise self.scope.fail(
                tree, "reduce-members", f"there is no member {number}", "count the members of a reduction's state from 0"
            )
        return found[int(number)]


def _too_large(base: Any, power: Any) -> bool:
    """Whether an integer power has more bits than a text may compute."""
    return isinstance(base, int) and isinstance(power, int) and (abs(base).bit_length() - 1) * power > MOST_BITS


def listed(types: list[dt.DType]) -> str:
    """Types, separated by commas."""
    return ", ".join(str(t) for t in types)


def _form(name: str) -> str:
    return {
        "pad": "pad(X[i - 1], 0.0)", "where": "where(x > 0, x, 0.0)", "max": "max(a, b), or a reduction: max[k] A[m, k]",
        "min": "min(a, b), or a reduction: min[k] A[m, k]", "pow": "pow(x, 2.0)",
        "clamp": "clamp(x, 0.0, 1.0)",
    }.get(name, f"{name}(x)")  # fmt: skip


def type_named(scope: Scope, tree: Any) -> dt.DType:
    """The type that a name denotes: a parameter's value, or the type of that name."""
    name = name_of(tree)
    found = scope.values.get(name)
    if isinstance(found, dt.DType):
        return found
    if name in dt.ALL:
        return dt.ALL[name]
    known = (_USUAL_TYPES[name],) if name in _USUAL_TYPES else dt.ALL
    raise scope.fail(tree, "unknown-type", f"there is no type `{name}`", meant(name, known))


def in_text(error: TileLangError, span: Span) -> TileLangError:
    """An error of the language with its place in a text, unless it has one."""
    if error.span is None or error.span.file != span.file:
        error.span = span
    return error
