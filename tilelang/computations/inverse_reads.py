"""Solves a read for the axes of its reader: which points (i, ...) read the element X[t, ...]?

In the gradient of X the element t of each dimension is given, and the adjoint sums over all points of the reader that read it. Every
index is an equation, index = t. Wherever it is linear in an axis, the axis is eliminated: a product's adjoint is again a product, and
that of a convolution sums over the window only. With strides, X[2 p + u], the window is walked in steps of the stride, starting at the
offset that t requires, so that no point is visited in vain. Quotients and remainders, X[i // 4], split the axis into both parts. What
cannot be solved, such as an index from a tensor, stays a condition: the sum runs over all points and takes those that fulfil it.
"""

from __future__ import annotations

from math import gcd
from typing import Any

from tilelang.core.expr import Axis, Binary, Const, Expr, free, index, substitute
from tilelang.core.node import Node, node
from tilelang.core.simplify import FALSE, TRUE, Linear, conjuncts, from_linear, interval_of, linear, simplify


@node
class Solution(Node):
    """The points of a reader that read a given element: those of `axes` for which the conditions hold.

    points: each axis of the reader as an expression of the element's indices and of `axes`. A condition is never a constant, and there
    is no solution at all if `possible` is False.
    """

    axes: tuple[Axis, ...]
    points: tuple[tuple[Axis, Expr], ...]
    conditions: tuple[Expr, ...]
    possible: bool


def solve(indices: tuple[Expr, ...], element: tuple[Expr, ...], axes: tuple[Axis, ...]) -> Solution:
    """The points of `axes` at which `indices` are `element`, whose expressions use none of these axes.

    >>> from tilelang.core.expr import Axis
    >>> p, u, h = Axis("p", 8), Axis("u", 3), Axis("h", 17)
    >>> found = solve((p * 2 + u,), (h,), (p, u))
    >>> [str(a) for a in found.axes], [f"{a} = {e}" for a, e in found.points]
    (['u_by_2'], ['p = h // 2 - u_by_2', 'u = u_by_2 * 2 + h % 2'])
    """
    return _System(indices, element, axes).solved()


class _System:
    def __init__(self, indices: tuple[Expr, ...], element: tuple[Expr, ...], axes: tuple[Axis, ...]) -> None:
        self.axes = axes
        self.left: list[Axis] = list(axes)  # axes that are not eliminated
        self.points: dict[Axis, Expr] = {a: a for a in axes}  # every axis, also of those that a split introduced
        self.indices, self.element = list(indices), element
        self.bounded = list(axes)  # axes whose bounds must be tested: those of a quotient follow from its remainder's
        self.divisible: list[Expr] = []  # conditions that a division has no remainder

    def solved(self) -> Solution:
        while self._split_quotient():
            pass
        open_equations = list(range(len(self.indices)))
        while open_equations:
            choices = [(gain, -n, step) for n in open_equations for gain, step in self._eliminations(self._equation(n))]
            if not choices:
                break
            _, n, step = max(choices, key=lambda c: c[:2])
            open_equations.remove(-n)
            self._eliminate(*step)
        equations = zip(self.indices, self.element, strict=True)
        conditions = [Binary("==", t, i) for n, (i, t) in enumerate(equations) if n in open_equations]
        for axis in self.bounded:
            if (value := self.points[axis]) is not axis:
                conditions += [Binary("<=", index(0), value), Binary("<", value, index(axis.extent))]
        kept = tuple(
            dict.fromkeys(part for c in (*self.divisible, *conditions) for part in conjuncts(simplify(c)) if part is not TRUE)
        )
        points = tuple((a, self.points[a]) for a in self.axes)
        return Solution(tuple(self.left), points, kept, FALSE not in kept)

    # ------------------------------------------------------------ quotients

    def _split_quotient(self) -> bool:
        """Splits an axis whose quotient or remainder is an index into both; whether there was one."""
        for e in self.indices:
            for atom, _ in linear(e)[0]:
                match atom:
                    case Binary("//" | "%", inner, Const(value=divisor)) if divisor > 1:
                        if self._split(linear(inner), int(divisor)):
                            return True
        return False

    def _split(self, inner: Linear, divisor: int) -> bool:
        """Replaces an axis x in inner = +-x + rest by a quotient and a remainder of `inner`."""
        candidates = [(a, c) for a, c in self._plain(inner) if abs(c) == 1]
        low, high = interval_of(inner)
        if not candidates or low is None or high is None:
            return False
        x, sign = max(candidates, key=lambda c: c[0].extent)
        first = low // divisor
        whole = Axis(f"{x.name}_by_{divisor}", high // divisor - first + 1, x.made)
        part = Axis(f"{x.name}_in_{divisor}", divisor, x.made)
        if whole in self.points or part in self.points:
            return False
        value = (whole + first) * divisor + part  # what `inner` is
        rest = tuple((a, c) for a, c in inner[0] if a is not x), inner[1]
        self.bounded.append(part)
        self._replace(x, simplify((value - from_linear(rest)) * sign), (whole, part))
        return True

    # ------------------------------------------------------------ linear equations

    def _equation(self, n: int) -> Linear:
        """index - element, which is to be 0."""
        return linear(Binary("-", self.indices[n], self.element[n]))

    def _plain(self, form: Linear) -> list[tuple[Axis, int]]:
        """The axes in a linear form with their factors: those that no other term depends on."""
        return [
            (a, c)
            for a, c in form[0]
            if isinstance(a, Axis) and a in self.left and not any(a in free(b) for b, _ in form[0] if b is not a)
        ]

    def _eliminations(self, form: Linear) -> list[tuple[float, tuple[Any, ...]]]:
        """The ways to eliminate an axis by an equation, each with the factor by which the points become fewer."""
        found: list[tuple[float, tuple[Any, ...]]] = []
        plain = self._plain(form)
        for x, c in plain:
            others = [(u, d) for u, d in plain if u is not x and gcd(c, d) == 1 and u.extent > 1]
            if abs(c) == 1:
                found.append((x.extent, (form, x, c, None, 0)))
                continue
            for u, d in others:
                steps = -(-u.extent // abs(c))
                found.append((x.extent * u.extent / steps, (form, x, c, u, d)))
            if not others:
                # the equation holds at the points where the factor divides the rest
                found.append((x.extent, (form, x, c, None, 0)))
        return found

    def _eliminate(self, form: Linear, x: Axis, c: int, u: Axis | None, d: int) -> None:
        """Solves c x + d u + rest = 0 for x, in steps of c for u."""
        if c < 0:
            form, c, d = (tuple((a, -k) for a, k in form[0]), -form[1]), -c, -d
        rest = from_linear((tuple((a, -k) for a, k in form[0] if a is not x and a is not u), -form[1]))  # c x + d u = rest
        if u is None:
            if c > 1:
                self.divisible.append(Binary("==", rest % c, index(0)))
            self._replace(x, simplify(rest // c), ())
            return
        offset = simplify(rest * pow(d, -1, c) % c)  # u is this, modulo c
        steps = Axis(f"{u.name}_by_{c}", -(-u.extent // c), u.made)
        start: Expr = index(0) if steps.extent == 1 else steps
        if d == 1:
            first = rest // c
        elif d == -1:
            first = -(-rest // c)
        else:
            first = (rest - offset * d) // c
        self._replace(u, simplify(start * c + offset), (steps,) if steps.extent > 1 else ())
        self._replace(x, simplify(first - start * d), ())

    def _replace(self, x: Axis, value: Expr, made: tuple[Axis, ...]) -> None:
        """Expresses an axis by others."""
        at = self.left.index(x)
        self.left[at : at + 1] = made
        mapping = {x: value}
        self.points = {a: simplify(substitute(e, mapping)) for a, e in self.points.items()} | {a: a for a in made}
        self.indices = [simplify(substitute(e, mapping)) for e in self.indices]
        self.divisible = [substitute(e, mapping) for e in self.divisible]


__all__ = ["Solution", "solve"]
