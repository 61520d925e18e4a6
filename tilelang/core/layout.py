"""Layouts: the storage location of each coordinate of a region.

A layout is a tuple of expressions over a region's dimensions, outermost first; each coordinate (local to the region) gets exactly one
location. Order, padding, swizzles and packing are all of this one form; `pad` and `swizzle` are shorthands that are kept as written.
`Layout.place` makes it concrete for a region of known extents, and checks by enumeration that it is injective.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Mapping
from typing import Any

from tilelang.core.expr import INDEX, Axis, Binary, Const, Expr, Unary, Var, as_expr, free, index, substitute, to_text
from tilelang.core.node import Node, node
from tilelang.core.simplify import interval, linear, simplify
from tilelang.errors import Refusal, brief, caller_span, whole_number

MOST_CHECKED = 1 << 18  # coordinates of a region that are enumerated to check that a layout is injective


@functools.lru_cache(maxsize=1 << 10)
def variable_names(terms: tuple[Expr, ...]) -> tuple[str, ...]:
    """The names of the variables in some expressions, in order of first appearance.

    >>> x, y = Var("x", INDEX), Var("y", INDEX)
    >>> variable_names((y // 4, x, y % 4))
    ('y', 'x')
    """
    return tuple(dict.fromkeys(e.name for term in terms for e in term.walk() if isinstance(e, Var)))


@node
class Layout(Node):
    """A storage order over named dimensions."""

    # one expression per storage dimension, over Vars named like the dimensions
    terms: tuple[Expr, ...] = ()
    # elements added to the innermost storage dimension
    padding: int = 0
    # 0, 32, 64 or 128: XORs the 16-byte chunks of each line with the line's number, to avoid bank conflicts in a column of chunks
    swizzle_bytes: int = 0

    def pad(self, elements: int) -> Layout:
        """The same order with the innermost dimension enlarged by `elements`."""
        if not isinstance(elements, int) or isinstance(elements, bool) or elements < 0:
            message = f"`pad {elements}` is not a valid number of elements to add"
            raise Refusal("negative-padding", message, span=caller_span(), help="use a whole number of elements, 0 or more")
        return self.replace(padding=elements)

    def swizzle(self, width_bytes: int) -> Layout:
        """The same order with the 32-, 64- or 128-byte swizzle."""
        if whole_number(width_bytes) not in (32, 64, 128):
            raise Refusal(
                "unknown-swizzle", f"there is no `swizzle {width_bytes}`", span=caller_span(), help="use 32, 64 or 128 bytes"
            )
        return self.replace(swizzle_bytes=width_bytes)

    @property
    def dims(self) -> tuple[str, ...]:
        """The dimensions in the terms, in order of first appearance."""
        return variable_names(self.terms)

    def __str__(self) -> str:
        parts = [f"layout ({', '.join(to_text(t).replace('//', '/') for t in self.terms)})"] if self.terms else []
        parts += [f"pad {self.padding}"] if self.padding else []
        parts += [f"swizzle {self.swizzle_bytes}"] if self.swizzle_bytes else []
        return " ".join(parts)

    def place(self, extents: Mapping[str, int], element_bytes: int) -> Placement:
        """The concrete layout of a region of these extents.

        Raises Refusal if a dimension is missing or unknown, or if two coordinates share a location (naming both).
        """
        variables = {name: Var(name, INDEX, 0, max(0, n - 1)) for name, n in extents.items()}
        terms = self.terms or tuple(Var(name, INDEX) for name in extents) or (index(0),)  # a scalar has one location
        for name in Layout(terms).dims:
            if name not in extents:
                raise Refusal(
                    "layout-dimension",
                    f"the layout names `{name}`, but the region has {', '.join(extents)}",
                    help="use the region's own dimensions",
                )
        bound = [simplify(substitute(t, {Var(name, INDEX): v for name, v in variables.items()})) for t in terms]
        if self.swizzle_bytes:
            bound = _swizzled(bound, self.swizzle_bytes, element_bytes)
        shape = []
        for term, written in zip(bound, terms if len(bound) == len(terms) else bound, strict=True):
            _, high = interval(term)
            if high is None or not all(isinstance(e, (Var, Const, Binary)) for e in term.walk()):
                raise Refusal(
                    "layout-unbounded",
                    f"`{written}` in a layout has no known bound",
                    help="use only sums, products, quotients, remainders, min and max of dimensions",
                )
            shape.append(high + 1)
        shape[-1] += self.padding
        placement = Placement(tuple(extents), tuple(variables.values()), tuple(bound), tuple(shape))
        placement.check(extents)
        return placement


@node
class Placement(Node):
    """A concrete layout: `terms` over `variables` (one per dim, with ranges) inside `shape`."""

    dims: tuple[str, ...]
    variables: tuple[Var, ...]
    terms: tuple[Expr, ...]
    shape: tuple[int, ...]

    def at(self, coordinates: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The storage indices of local coordinates."""
        mapping = dict(zip(self.variables, coordinates, strict=True))
        return tuple(simplify(substitute(t, mapping)) for t in self.terms)

    def check(self, extents: Mapping[str, int]) -> None:
        """Refuses a layout that maps two coordinates to one location. Small regions are enumerated, large ones checked at corners."""
        if _gives_back(self.terms, self.variables):
            return
        from tilelang.core.distribution import Distribution  # late: imports NumPy

        parts = tuple(zip(self.variables, extents.values(), strict=True))
        points = Distribution(parts, self.terms).shortened(MOST_CHECKED, kept=0).table()
        assert points is not None, "only the coordinates decide a place"
        for term, place in zip(self.terms, points.coordinates, strict=True):
            below = (place < 0).nonzero()[0]
            if below.size:
                raise Refusal(
                    "layout-negative",
                    f"`{to_text(term)}` in a layout is negative for some element",
                    counterexample=f"({', '.join(self.dims)}) = {tuple(int(p[below[0]]) for p in points.parts)}",
                    help="use terms that begin at 0",
                )
        same = points.shared()
        if same is not None:
            raise Refusal(
                "layout-not-injective",
                f"the layout ({', '.join(to_text(t) for t in self.terms)}) puts two elements in the same place",
                counterexample=f"({', '.join(self.dims)}) = {same[0]} and {same[1]}",
                help="use every dimension completely: as itself, or as both its quotient and its remainder",
            )


def _gives_back(terms: tuple[Expr, ...], variables: tuple[Var, ...]) -> bool:
    """Whether the terms provably determine every variable, by two rules: e // c and e % c determine e; b and a ^ b determine a. False
    if these rules do not suffice."""
    known: set[Expr] = {*terms, *(v for v in variables if v.lower == v.upper)}
    while True:
        found: set[Expr] = set()
        for term in known:
            match term:
                case Binary("%", inner, Const()) if simplify(Binary("//", inner, term.right)) in known:
                    found.add(inner)
                case Binary("^", a, b):
                    found |= {one for one, other in ((a, b), (b, a)) if free(other) <= known}
        if found <= known:
            return known.issuperset(variables)
        known |= found


def evaluate(expr: Expr, values: Mapping[Any, Any]) -> Any:
    """The value of an index expression for given arrays (or ints) as its variables.

    >>> n = Var("n", INDEX)
    >>> evaluate(n // 4 * 8 + n % 4, {n: 6})
    10
    """
    found = values.get(expr)
    if found is not None:
        return found
    match expr:
        case Const(value=value):
            return value
        case Binary(op, left, right):
            a, b = evaluate(left, values), evaluate(right, values)
            return _OPERATIONS[op](a, b)
        case Unary("-", operand):
            return -evaluate(operand, values)
        case _:
            raise KeyError(to_text(expr))


def _minimum(a: Any, b: Any) -> Any:
    import numpy as np  # late: NumPy takes long to import

    return np.minimum(a, b)


def _maximum(a: Any, b: Any) -> Any:
    import numpy as np  # late: NumPy takes long to import

    return np.maximum(a, b)


_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "^": lambda a, b: a ^ b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "min": _minimum,
    "max": _maximum,
}


_ARITHMETIC = ("+", "-", "*", "//", "%", "^", "&", "|", "min", "max")  # the operators allowed in a layout's terms


def _swizzled(terms: list[Expr], width_bytes: int, element_bytes: int) -> list[Expr]:
    """Splits the innermost dimension into runs of `width_bytes`; inside a run the 16-byte chunk is XORed with the line's number."""
    run, chunk = width_bytes // element_bytes, max(1, 16 // element_bytes)
    inner = terms[-1]
    high = interval(inner)[1]
    if high is None or (high + 1) % run:
        raise Refusal(
            "swizzle-run",
            f"`swizzle {width_bytes}` needs innermost runs of {run} elements, but the region has {(high or 0) + 1}",
            help=f"make the innermost extent a multiple of {run}, or use a smaller swizzle",
        )
    outer = terms[:-1]
    line = outer[-1] if outer else index(0)
    lines_per_period = max(1, 128 // width_bytes)
    number = simplify((line // lines_per_period) % (width_bytes // 16))
    swizzled = simplify(((inner % run) // chunk) ^ number)
    runs = simplify(inner // run)
    head = [runs] if interval(runs) != (0, 0) else []
    return [*head, *outer, swizzled, simplify(inner % chunk)]


def layout(*terms: Any) -> Layout:
    """A layout from dimension names, or from one function of them.

    `tl.layout("k", "m").pad(4)`; `tl.layout(lambda m, k: (m, (k // 8) ^ (m % 8), k % 8))`; `tl.layout().swizzle(128)`.

    >>> str(layout("k", "m").pad(4))
    'layout (k, m) pad 4'
    """
    if len(terms) == 1 and callable(terms[0]):
        try:
            names = list(inspect.signature(terms[0]).parameters)
        except ValueError:  # functions written in C may not expose their parameters
            message, help = (
                f"{brief(terms[0])} does not say what its parameters are",
                "pass a function, as in lambda m, k: (k, m)",
            )
            raise Refusal("layout-term", message, span=caller_span(), help=help) from None
        made = terms[0](*[Var(n, INDEX) for n in names])
        return Layout(tuple(map(_term, made if isinstance(made, (tuple, list)) else (made,))))
    for term in terms:
        if not isinstance(term, str) or not term.isidentifier():
            raise Refusal(
                "layout-term",
                f"{term!r} is not the name of a dimension",
                span=caller_span(),
                help='pass names, as in tl.layout("k", "m"), or one function, as in tl.layout(lambda m, k: (m, k // 8, k % 8))',
            )
    return Layout(tuple(Var(t, INDEX) for t in terms))


def _term(value: Any) -> Expr:
    """A term returned by a layout's function. Raises Refusal unless it is integer arithmetic on its parameters."""
    number = value.dtype.is_integer if isinstance(value, Expr) else isinstance(value, int) and not isinstance(value, bool)
    fault = None if number else f"`{value}` is not a whole number"
    for part in value.walk() if fault is None and isinstance(value, Expr) else ():
        if isinstance(part, Axis):
            fault = f"`{value}` names the axis `{part}` of a computation, which is not a parameter of the function"
        elif not isinstance(part, (Var, Const)) and getattr(part, "op", None) not in _ARITHMETIC:
            fault = f"`{part}` is not whole-number arithmetic"
        elif isinstance(part, Binary) and part.op in ("//", "%") and not (isinstance(part.right, Const) and part.right.value > 0):
            fault = f"`{part}` does not divide by a number above 0"
    if fault is not None:
        raise Refusal(
            "layout-term",
            f"a layout's terms must be whole numbers computed from the function's parameters: {fault}",
            span=caller_span(),
            help=f"use {' '.join(_ARITHMETIC)} of the parameters and whole numbers, as in lambda m, k: (m, k // 8, k % 8)",
        )
    return as_expr(value)


def walk_order(found: Layout | None, dims: tuple[str, ...]) -> list[tuple[str, int]]:
    """How a traversal in storage order splits the dims: (dim, piece) pairs, outermost first; the last piece of every dim is 1.

    `(n/48, k, n%48)` gives n by 48, k by 1, n by 1. A term that is neither d, d/c nor d%c puts its dims at the end, in order.

    >>> walk_order(layout(lambda k, n: (n // 48, k, n % 48)), ("k", "n"))
    [('n', 48), ('k', 1), ('n', 1)]
    """
    order: list[tuple[str, int]] = []
    for term in found.terms if found else ():
        match term:
            case Var(name=name):
                order.append((name, 1))
            case Binary("//", Var(name=name), Const(value=c)):
                order.append((name, int(c)))
            case Binary("%", Var(name=name), Const()):
                order.append((name, 1))
            case _:
                pass
    done = {d for d, piece in order if piece == 1}
    kept = [(d, piece) for d, piece in order if d in dims]
    return kept + [(d, 1) for d in dims if d not in done]


def split_terms(expr: Expr, is_unit: Callable[[Expr], bool]) -> tuple[Expr, list[tuple[Expr, int]], int]:
    """An index as (sum of the terms for which is_unit(atom), the other terms, constant).

    >>> n, m = Var("n", INDEX), Var("m", INDEX)
    >>> unit, rest, constant = split_terms(n * 4 + m * 3 + 5, lambda atom: atom is n)
    >>> print(unit, *rest[0], constant)
    n * 4 m 3 5
    """
    terms, constant = linear(expr)
    unit: Expr = index(0)
    rest: list[tuple[Expr, int]] = []
    for atom, c in terms:
        if is_unit(atom):
            unit = simplify(unit + atom * c)
        else:
            rest.append((atom, c))
    return unit, rest, constant


def cartesian(extents: tuple[int, ...]) -> Any:
    """All coordinates of a small box, last dimension fastest.

    >>> list(cartesian((2, 2)))
    [(0, 0), (0, 1), (1, 0), (1, 1)]
    """
    return itertools.product(*[range(n) for n in extents])
