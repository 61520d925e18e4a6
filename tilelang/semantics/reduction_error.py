"""The maximum error of a reduction with any combiner: a bound that holds for every order and every reduction tree.

Combining n points takes n - 1 combinations, whatever the tree, and each one rounds. The effect of a rounding in the combination that
yields the accumulator of a set S of points does not depend on the tree above S: by associativity all that follows is one combination of
S's accumulator with that of all other points, so the rounding d arrives, to first order, as |J| d, with J the derivative of that one
combination: its *effect*. A kernel's error is at most the sum of its combinations' effects. In any tree, at most n/m - 1 of them
join two sets of at least m points each, and the sizes of the sets they yield add up to at most n**2/(2m) + n/2 - m (both by induction
over the tree; a chain of blocks of m attains them). So with E[k] the greatest effect of a combination whose smaller side has about
2**k points, and P[k] the greatest such effect per point of the result, the sum is at most
    (a) the sum over k of (n/2**k - n/2**(k+1)) max(E[0..k]), and
    (b) the same with P and the sizes; the smaller is used. For a sum (J = 1, d = unit |sum of S|) that is about the classical bound for
    any order.

E and P are taken over the accumulators of actual sets: halvings of the points sorted by each member of the accumulator (they contain
the greatest sums, products and distances between means), each half with its neighbour, with a short piece of its neighbour, and with
its whole complement. The only assumption is that the *mean* effect of the combinations of a size in a kernel's tree is at most the
*greatest* effect of that size observed there. Kernels combine (accumulator so far, next value); the order is reversed only where a
partial accumulator is combined into the one above, which may cover fewer points and is the identity at first: once for each partial
accumulator of each level of the machine, so the greatest effect per point of the partial accumulator, times n, times `LEVELS`.

Higher orders enter by the growth of (1 + unit)**n, as in the bound of a sum. The points' own errors (from earlier definitions)
are propagated up a tree by the mean value theorem: by the maximum derivatives over the box that the errors span, or by the
errors through each node of the combiner if a selection inside is uncertain, whichever is smaller. That involves no approximation.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tilelang.core.expr import Binary, Combiner, Expr, Var
from tilelang.semantics.derivative import NotDifferentiable, choices, derivative
from tilelang.semantics.error_bound import Approx, Arithmetic, err, growth, rounding, unknown_if_nan

LEVELS = 8  # kernel, cluster, block, warpgroup, warp, thread, lane, and a loop's own accumulator

Members = list[Any]  # one array per member of the accumulator, points (or sets of them) along the last dimension


class Effects(NamedTuple):
    """The greatest effects of combinations, per member of the accumulator.

    greatest, per_point: of a combination, and per point, by the logarithm of the smaller side's size along the first dimension.
    shorter_first: per point, of a combination that begins with the smaller side.
    """

    greatest: Members
    per_point: Members
    shorter_first: Members


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """A combined set of points. moved: the members' errors due to the points' own errors. careful: errors from rounding node by node
    along one tree, used if an accumulator or the effects are not finite (else None)."""

    state: Members
    points: int
    moved: Members
    effects: Effects
    careful: Members | None = None


class Combining:
    """The reductions of some number of points with one combiner. full: the arithmetic with a kernel's roundings."""

    def __init__(self, combiner: Combiner, full: Arithmetic, points: int) -> None:
        self.combiner, self.full, self.points = combiner, full, points
        self.sizes = max(1, (points // 2).bit_length())  # sizes of the smaller side of a combination, by their logarithms
        self.plain = Arithmetic(full.wide, errors=False)
        self.boxes = Arithmetic(full.wide, errors=True, rounds=False)
        self.choices = tuple(dict.fromkeys(c for r in combiner.result for c in choices(r)))
        self.unit = max((rounding(r.dtype, full.slack).unit for r in combiner.result if r.dtype.is_float), default=0.0)
        self.counters: dict[int, Expr] = {}
        self.identity = [full.constant(c).value for c in combiner.identity]

    def part(self, points: list[Approx]) -> Part:
        """The points of a block, along the last dimension, combined. There must be at least one."""
        shape = points[0].value.shape
        states = [p.value for p in points]
        moved = [np.broadcast_to(np.asarray(err(p), np.float64), shape) for p in points]
        return self._whole(states, moved, None, np.ones(shape[-1]))

    def join(self, parts: list[Part]) -> Part:
        """The parts of several blocks, combined."""
        if len(parts) == 1:
            return parts[0]
        states, moved = (_stacked([getattr(p, name) for p in parts]) for name in ("state", "moved"))
        return self._whole(states, moved, parts, np.array([float(p.points) for p in parts]))

    def error(self, part: Part) -> Members:
        """The error of each member of the whole, in any order; infinite if nothing can be claimed."""
        n = self.points
        higher = growth(self.unit, n) / (n * self.unit) if self.unit else 1.0
        least = 2.0 ** np.arange(self.sizes)  # points of the smaller side
        many = _slots(np.maximum(0.0, n / least - 1)), _slots(np.maximum(0.0, n * n / (2 * least) + n / 2 - least))
        found = []
        for i, (moved, greatest, per_point, identity) in enumerate(zip(part.moved, *part.effects, strict=True)):
            sums = [np.tensordot(m, np.maximum.accumulate(e), 1) for m, e in zip(many, (greatest, per_point), strict=True)]
            error = moved + higher * (np.minimum(*sums) + LEVELS * n * identity)
            if part.careful is not None:
                longer = max(1.0, (n - 1) / max(1, math.ceil(math.log2(n))))
                error = np.where(
                    np.isfinite(error + part.state[i]), error, moved + longer * np.maximum(0.0, part.careful[i] - moved)
                )
            found.append(unknown_if_nan(error))
        return found

    def _whole(self, states: Members, moved: Members, parts: list[Part] | None, sizes: Any) -> Part:
        """Combines leaves: points, or parts with these accumulators."""
        self.counters = self._counters(states, moved) if self.full.errors else {}
        tree = self._tree(states)
        whole, points = [s[..., 0] for s in tree[-1]], int(sizes.sum())
        if not self.full.errors:
            return Part(whole, points, [], Effects([], [], []))
        inside = None if parts is None else Effects(*(_stacked(list(g)) for g in zip(*(p.effects for p in parts), strict=True)))
        trees = [tree] if parts is not None else [self._tree(arranged) for arranged in _orders(states)] or [tree]
        effects = [self._effects(t, sizes, inside) for t in trees]
        greatest = Effects(*(_greatest(list(group)) for group in zip(*effects, strict=True)))
        careful = None
        if not all(np.isfinite(m).all() for group in (whole, *greatest) for m in group):
            starts = moved if parts is None else _stacked([p.moved if p.careful is None else p.careful for p in parts])
            careful = self._followed(self.full, states, starts)
        unclear = self._unclear(states, whole)
        kept = [np.where(u, np.inf, m) for u, m in zip(unclear, self._followed(self.boxes, states, moved), strict=True)]
        return Part(whole, points, kept, greatest, careful)

    def _unclear(self, states: Members, whole: Members) -> list[Any]:
        """Per member: whether a leaf has a NaN that another order of the leaves might lose, as in a selection by a comparison."""
        nan = np.logical_or.reduce([np.isnan(np.asarray(s, np.float64)).any(axis=-1) for s in states])
        if not nan.any():
            return [nan] * len(whole)
        neutral = self._neutral(whole)
        both = zip(whole, self._values(whole, neutral), self._values(neutral, whole), strict=True)
        return [nan & ~np.logical_and.reduce([np.isnan(np.asarray(x, np.float64)) for x in group]) for group in both]

    # ------------------------------------------------------------ values

    def _counters(self, states: Members, moved: Members) -> dict[int, Expr]:
        """The members that count from 0 in whole numbers representable in their type: they never round."""
        c, found = self.combiner, {}
        for i, (x, y, result) in enumerate(zip(c.left, c.right, c.result, strict=True)):
            adds = result in (Binary("+", x, y), Binary("+", y, x)) and result.dtype.is_float
            if adds and not moved[i].any() and (states[i] >= 0).all() and (np.floor(states[i]) == states[i]).all():
                if (states[i].sum(axis=-1) <= 2.0**result.dtype.mantissa_bits).all():
                    found[i] = result
        return found

    def _combine(
        self, arithmetic: Arithmetic, left: list[Approx], right: list[Approx]
    ) -> tuple[list[Approx], dict[Expr, Approx]]:
        c = self.combiner
        known: dict[Expr, Approx] = dict(zip((*c.left, *c.right), (*left, *right), strict=True))
        known |= {r: Approx(left[i].value + right[i].value) for i, r in self.counters.items()}
        return [arithmetic.evaluate(r, known) for r in c.result], known

    def _values(self, left: Members, right: Members) -> Members:
        found, _ = self._combine(self.plain, [Approx(x) for x in left], [Approx(x) for x in right])
        return [np.broadcast_to(f.value, x.shape) for f, x in zip(found, left, strict=True)]

    def _tree(self, states: Members) -> list[Members]:
        """The accumulators of every level of a binary tree, leaves first."""
        levels = [states]
        while levels[-1][0].shape[-1] > 1:
            low, high, rest = _halves(levels[-1])
            levels.append(_joined(self._values(low, high), rest))
        return levels

    # ------------------------------------------------------------ effects of roundings

    def _effects(self, tree: list[Members], sizes: Any, inside: Effects | None) -> Effects:
        """The greatest effects over combinations of a tree's sets. sizes: the leaves' points. inside: effects within the leaves."""
        counts = [sizes]
        for _ in tree[1:]:
            low, high, rest = _halves([counts[-1]])
            counts.append(_joined([low[0] + high[0]], rest)[0])
        tally = Tally(self.sizes, [s.shape[:-1] for s in tree[0]])
        context = self._neutral(tree[-1])  # the accumulator of all points outside a set
        for level in reversed(range(len(tree))):
            states, count = tree[level], counts[level]
            slopes, neutral = self._slopes(states, context), self._neutral(states)
            for roundings in (self._roundings(neutral, states), self._roundings(states, neutral)):
                tally.add_shorter(_arriving(slopes, roundings), count)
            others = sizes.sum() - count
            tally.add(self._roundings(context, states), np.where(others >= count, count, 0), sizes.sum())
            tally.add(self._roundings(states, context), np.where(others <= count, others, 0), sizes.sum())
            tally.add_shorter(self._roundings(states, context), np.where(others >= count, others, np.inf))
            for piece, at, sides in self._neighbours(tree, counts, level):
                near = [[s if np.ndim(s) == 0 else s[..., at] for s in row] for row in slopes]
                own = _arriving(near, self._roundings([s[..., at] for s in states], piece))
                tally.add(own, np.minimum(count[at], sides), count[at] + sides)
            if level:
                low, high, _ = _halves(tree[level - 1])
                context = self._contexts(context, low, high)
            elif inside is not None:
                tally.add_inside(Effects(*(_arriving(slopes, group) for group in inside)))
        return tally.effects

    @staticmethod
    def _neighbours(tree: list[Members], counts: list[Any], level: int) -> Iterator[tuple[Members, Any, Any]]:
        """For sets of a level: the near end of the neighbour at every level not above, which sets have it, and its points."""
        whole = counts[level].shape[-1] // 2 * 2
        for below in range(level + 1):
            span = 2 ** (level - below)
            for at, nearest in (
                (slice(0, whole, 2), np.arange(1, whole, 2) * span),
                (slice(1, whole, 2), np.arange(1, whole, 2) * span - 1),
            ):
                yield [s[..., nearest] for s in tree[below]], at, counts[below][nearest]

    def _contexts(self, context: Members, low: Members, high: Members) -> Members:
        """The complements of a level's sets, from those of the level above."""
        half = low[0].shape[-1]
        above = [c[..., :half] for c in context]
        pairs = zip(self._values(above, high), self._values(above, low), strict=True)
        woven = [np.stack(pair, axis=-1).reshape(*pair[0].shape[:-1], -1) for pair in pairs]
        return _joined(woven, [c[..., half:] for c in context])

    def _neutral(self, like: Members) -> Members:
        return [np.broadcast_to(c, s.shape) for c, s in zip(self.identity, like, strict=True)]

    def _roundings(self, left: Members, right: Members) -> Members:
        """The maximum rounding error of one combination of exact accumulators."""
        found, _ = self._combine(self.full, [Approx(x) for x in left], [Approx(x) for x in right])
        return [np.broadcast_to(np.asarray(err(f), np.float64), x.shape) for f, x in zip(found, left, strict=True)]

    def _slopes(self, states: Members, context: Members) -> list[list[Any]]:
        """[member of the whole][member of the part]: the |derivative| of combining an accumulator with its complement."""
        _, known = self._combine(self.plain, [Approx(x) for x in states], [Approx(x) for x in context])
        return [[self._slope(self.plain, r, x, known) for x in self.combiner.left] for r in self.combiner.result]

    @staticmethod
    def _slope(arithmetic: Arithmetic, result: Expr, by: Var, known: dict[Expr, Approx]) -> Any:
        """The maximum magnitude of a derivative over the box of known values; infinite if unknown."""
        try:
            found = derivative(result, by)
        except NotDifferentiable:
            return np.inf
        if found is None:
            return 0.0
        slope = arithmetic.evaluate(found, known)
        return np.abs(np.asarray(slope.value, np.float64)) + err(slope)

    # ------------------------------------------------------------ errors of the points

    def _followed(self, arithmetic: Arithmetic, states: Members, errors: Members) -> Members:
        """Propagates errors of the leaves to the whole, along one tree; adds each combination's roundings if `arithmetic` rounds."""
        if not arithmetic.rounds and not any(e.any() for e in errors):
            return [np.zeros(e.shape[:-1]) for e in errors]
        while states[0].shape[-1] > 1:
            parts = zip(_halves(states), _halves(errors), strict=True)
            low, high, rest = ([Approx(s, e) for s, e in zip(*part, strict=True)] for part in parts)
            found, known = self._combine(arithmetic, low, high)
            moved = [np.broadcast_to(np.asarray(err(f), np.float64), x.value.shape) for f, x in zip(found, low, strict=True)]
            if not arithmetic.rounds:
                moved = [np.minimum(m, by_mean) for m, by_mean in zip(moved, self._by_mean_value(known), strict=True)]
            made = [np.broadcast_to(f.value, x.value.shape) for f, x in zip(found, low, strict=True)]
            states, errors = _joined(made, [r.value for r in rest]), _joined(moved, [r.error for r in rest])
        return [e[..., 0] for e in errors]

    def _by_mean_value(self, known: dict[Expr, Approx]) -> Members:
        """The maximum derivatives over the box of the errors, times the errors; infinite if a selection inside may jump."""
        c, jump = self.combiner, np.zeros(())
        for condition in self.choices:
            jump = np.maximum(jump, np.where(err(self.boxes.evaluate(condition, known)) == 0, 0.0, np.inf))
        moves = []
        for result in c.result:
            slopes = ((self._slope(self.boxes, result, x, known), err(known[x])) for x in (*c.left, *c.right))
            moved = sum(((np.where(e == 0, 0.0, slope * e)) for slope, e in slopes), start=jump)
            moves.append(unknown_if_nan(moved))
        return moves


class Tally:
    """The greatest effects seen. sizes: the number of sizes of the smaller side. shapes: those of the members, without the points."""

    def __init__(self, sizes: int, shapes: list[tuple[int, ...]]) -> None:
        self.effects = Effects(*([np.zeros((*first, *s)) for s in shapes] for first in ((sizes,), (sizes,), ())))

    def add(self, effects: Members, smaller: Any, made: Any) -> None:
        """Adds combinations whose smaller sides have `smaller` points and whose results have `made` points."""
        kinds = np.where(smaller < 1, -1, np.log2(np.maximum(smaller, 1))).astype(int)
        for kind in set(kinds.tolist()) - {-1}:
            of_kind = kinds == kind
            points = np.broadcast_to(made, kinds.shape)[of_kind]
            for member, e in enumerate(effects):
                chosen = e[..., of_kind]
                for group, found in ((self.effects.greatest, chosen), (self.effects.per_point, chosen / points)):
                    group[member][kind] = np.maximum(group[member][kind], found.max(axis=-1))

    def add_shorter(self, effects: Members, points: Any) -> None:
        """Adds combinations of the identity, or of a smaller accumulator, with partial accumulators of `points` points."""
        for member, e in zip(self.effects.shorter_first, effects, strict=True):
            np.maximum(member, (e / np.maximum(points, 1)).max(axis=-1), out=member)

    def add_inside(self, effects: Effects) -> None:
        """Adds the effects within the leaves, propagated to the whole, with leaves along the last dimension."""
        for group, more in zip(self.effects, effects, strict=True):
            for member, e in zip(group, more, strict=True):
                np.maximum(member, e.max(axis=-1), out=member)


def _slots(at_least: Any) -> Any:
    """From the numbers of combinations of at least each size, the numbers of exactly that size."""
    return at_least - np.append(at_least[1:], 0.0)


def _arriving(slopes: list[list[Any]], roundings: Members) -> Members:
    """Roundings of an accumulator's members, propagated to the members of the whole."""
    pairs = ([np.where(r == 0, 0.0, slope * r) for slope, r in zip(row, roundings, strict=True)] for row in slopes)
    return [unknown_if_nan(functools.reduce(np.add, terms)) for terms in pairs]


def _greatest(groups: list[Members]) -> Members:
    return [functools.reduce(np.maximum, member) for member in zip(*groups, strict=True)]


def _stacked(parts: list[Members]) -> Members:
    return [np.stack(member, axis=-1) for member in zip(*parts, strict=True)]


def _halves(states: Members) -> tuple[Members, Members, Members]:
    """Pairs of neighbours to combine, and the leftover."""
    even = states[0].shape[-1] // 2 * 2
    first, second, rest = ([s[..., cut] for s in states] for cut in (slice(0, even, 2), slice(1, even, 2), slice(even, None)))
    return first, second, rest


def _joined(a: Members, b: Members) -> Members:
    return [np.concatenate(pair, axis=-1) for pair in zip(a, b, strict=True)]


def _orders(states: Members) -> Iterator[Members]:
    """The points sorted by each member of the accumulator that differs between them."""
    for by in states:
        if by.shape[-1] > 2 and (by[..., 1:] != by[..., :1]).any():
            order = np.argsort(by.reshape(-1, by.shape[-1])).reshape(by.shape)  # argsort supports at most 32 dimensions
            yield [np.take_along_axis(s, order, axis=-1) for s in states]
