"""Computes the region of a tensor that its readers access, which a stage or a load must hold.

A reading takes one element at each of its points, which exist within bounds. The elements that all readings of a tensor access
lie in a box: for each dimension a start, an expression of the enclosing variables, and a constant extent. `conditions` excludes
the elements of the box that no reading accesses.

A dimension whose index is a sum of the readings' own variables, with known ranges, is computed exactly by interval arithmetic.
The rest (unaligned quotients, clamps) is decided by `sets`; if it has no answer, the larger box from the intervals is used. These
are pure functions, independent of the builder.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence

from tilelang.core.expr import INDEX, Binary, Const, Expr, Read, Var, free, index, substitute
from tilelang.core.lazy import cached_property
from tilelang.core.simplify import Linear, from_linear, interval, linear, simplify
from tilelang.lowering.sets import extremes
from tilelang.schedules.spec import Bound

Range = tuple[Expr, int]  # start, extent


class NotABox(Exception):
    """An index whose values are scattered."""


class Apart(Exception):
    """Readings without a common box: the distance between their starts is not a constant."""


@dataclasses.dataclass(frozen=True)
class Reading:
    """One read: its index in each dimension, over the variables of `ranges`."""

    indices: tuple[Expr, ...]
    ranges: Mapping[Expr, Range]  # per variable, the start and length of its piece (the subrange that is read)
    bounds: Mapping[Expr, tuple[Bound, ...]]  # per variable, the bounds within which points of the piece exist

    @cached_property
    def box(self) -> tuple[Range, ...]:
        """The smallest box that covers all points of the piece, existing or not; through quotients and clamps, only those that
        exist.

        Raises NotABox.

        >>> i, t = Var("i", INDEX), Var("t", INDEX, 0, 4)
        >>> ((low, extent),) = Reading(((i + 1) % 20,), {i: (t * 4 - 1, 4)}, {}).box
        >>> print(low, extent)
        t * 4 4
        """
        return tuple(self._range(*form, True) for form in self._forms)

    @cached_property
    def box_in_memory(self) -> tuple[Range, ...]:
        """`box` for a memory that any index reaches; in registers, the reader of a single element must know that it is this one."""
        return tuple(self._range(*form, False) for form in self._forms)

    def unclamped(self, d: int, in_memory: bool) -> Range:
        """The range of a dimension of `box`, or of `box_in_memory`, from the start without clamps. Raises NotABox."""
        return self._range_from(*self._forms[d], not in_memory, False)

    @cached_property
    def _inner(self) -> dict[Expr, Expr]:
        """Each variable, relative to the start of its piece."""
        return {v: Var(f"{v} inside", INDEX, 0, max(0, n - 1)) for v, (_, n) in self.ranges.items()}

    @cached_property
    def _sizes(self) -> dict[Expr, int]:
        return {self._inner[v]: n for v, (_, n) in self.ranges.items()}

    def _sums(self, named: Collection[Expr]) -> tuple[Linear, ...]:
        """The indices as sums of enclosing variables, variables relative to the start of their piece, and atoms that mix both."""
        points = {v: begin + (self._inner[v] if v in named else 0) for v, (begin, _) in self.ranges.items()}
        return tuple(linear(substitute(i, points)) for i in self.indices)

    @cached_property
    def _forms(self) -> tuple[Linear, ...]:
        return self._sums([v for v, (_, n) in self.ranges.items() if n != 1])

    @cached_property
    def _bounded(self) -> tuple[Linear, ...]:
        """The indices, with a variable also for each piece of a single point that may not exist."""
        alone = [v for v, (_, n) in self.ranges.items() if n == 1 and any(not b.known for b in self.bounds.get(v, ()))]
        return self._sums([*alone, *(v for v, (_, n) in self.ranges.items() if n != 1)]) if alone else self._forms

    @cached_property
    def _bounds(self) -> dict[Expr, tuple[Bound, ...]]:
        return {self._inner[v]: found for v, found in self.bounds.items() if v in self._inner}

    def _exists(self, atoms: Iterable[Expr]) -> list[Expr]:
        """The conditions under which points exist, restricted to the variables of some atoms."""
        own = sorted({v for atom in atoms for v in free(atom) if v in self._sizes}, key=str)
        return [b.replace(known=False).holds(v) for v in own for b in self._bounds.get(v, ())]

    def _mixes(self, atom: Expr) -> bool:
        """Whether an atom depends on the piece's own variables."""
        return not free(atom).isdisjoint(self._sizes)

    # ------------------------------------------------------------ the box

    def _range(self, terms: tuple[tuple[Expr, int], ...], constant: int, known: bool) -> Range:
        """The range of a sum, from the origin that gives the shortest one; clamped only where that is shorter, as sums then differ by
        constants less often. known: a range of one element must be so by the index itself."""
        found = self._range_from(terms, constant, known, False)
        clamps = (e for atom, _ in terms if self._mixes(atom) for e in atom.walk() if isinstance(e, Binary))
        if found[1] > 1 and any(e.op in ("min", "max") for e in clamps):
            return min(found, self._range_from(terms, constant, known, True), key=lambda r: r[1])
        return found

    def _range_from(self, terms: tuple[tuple[Expr, int], ...], constant: int, known: bool, clamped: bool) -> Range:
        mixed = [(atom, c) for atom, c in terms if atom not in self._sizes and self._mixes(atom)]
        shared = frozenset(v for atom, _ in mixed for v in free(atom))
        begin: Expr = index(constant)
        extent, asked = 1, list(mixed)
        for atom, c in terms:
            n = self._sizes.get(atom)
            if n is None and any(isinstance(e, Read) for e in atom.walk()):
                raise NotABox  # its start is known only when the element is read
            if n is None:
                begin = begin + (self._begin(atom, clamped) if self._mixes(atom) else atom) * c
            elif atom in shared:
                asked.append((atom, c))
            else:
                begin, extent = begin + (min(0, c) * (n - 1)), extent + abs(c) * (n - 1)
        if asked:
            origin = from_linear(_sum((self._begin(atom, clamped), c) for atom, c in mixed))
            low, high = self._reach(asked, origin, clamped, known)
            begin, extent = begin + low, extent + high - low
        return simplify(begin), extent

    def _reach(self, asked: Sequence[tuple[Expr, int]], begin: Expr, clamped: bool, known: bool) -> tuple[int, int]:
        """The least and greatest value of a sum over the points that exist, relative to `begin`."""
        slack = [self._slack(atom, c, clamped) for atom, c in asked]
        low, high = sum(a for a, _ in slack), sum(b for _, b in slack)
        if len(asked) == 1 and isinstance(atom := asked[0][0], Binary) and atom.op == "%":
            return low, high  # the values of a remainder may depend on which points exist; readers want all of them
        exact = extremes(from_linear(_sum(asked)) - begin, self._exists(a for a, _ in asked))
        least, most = low if exact[0] is None else max(low, exact[0]), high if exact[1] is None else min(high, exact[1])
        # With several registers a reader may index them; with a single one, the compiler must know which it is.
        return (least, most) if least != most or not known else (low, high)

    def _begin(self, atom: Expr, clamped: bool = False) -> Expr:
        """The origin of an atom: its value at the start of the piece, without its clamps unless `clamped`; 0 for a remainder."""
        match atom:
            case Binary("//", inner, Const(value=c)):
                return simplify(self._begin_of(inner, clamped) // int(c))
            case Binary("%", _, Const()):
                return index(0)
            case Binary("min" | "max" as op, inner, Const() as end):
                begin = self._begin_of(inner, clamped)
                return simplify(Binary(op, begin, end)) if clamped else begin
        raise NotABox

    def _begin_of(self, e: Expr, clamped: bool = False) -> Expr:
        terms, constant = linear(e)
        parts = ((self._begin(a, clamped) if self._mixes(a) else a, c) for a, c in terms if a not in self._sizes)
        return from_linear(_add(_sum(parts), constant))

    def _slack(self, atom: Expr, factor: int, clamped: bool) -> tuple[int, int]:
        """The range of a multiple of an atom relative to its origin, by intervals."""
        low, high = self._slack_of(atom, clamped)
        return (low * factor, high * factor) if factor > 0 else (high * factor, low * factor)

    def _slack_of(self, atom: Expr, clamped: bool) -> tuple[int, int]:
        if atom in self._sizes:
            return 0, self._sizes[atom] - 1
        match atom:
            case Binary("%", _, Const(value=c)):
                return 0, int(c) - 1
            case Binary("//", inner, Const(value=c)):
                low, high = self._slack_in(inner, clamped)
                return low // int(c), -(-high // int(c))
            case Binary("min" | "max" as op, inner, Const(value=c)):
                low, high = self._slack_in(inner, clamped)
                if clamped:  # it is no farther from its origin than what is clamped
                    return min(0, low), max(0, high)
                least, greatest = interval(inner)
                beyond = None if greatest is None or least is None else greatest - int(c) if op == "min" else int(c) - least
                if beyond is None:
                    raise NotABox
                return (low - max(0, beyond), high) if op == "min" else (low, high + max(0, beyond))
        raise NotABox

    def _slack_in(self, e: Expr, clamped: bool = False) -> tuple[int, int]:
        found = [self._slack(a, c, clamped) for a, c in linear(e)[0] if self._mixes(a)]
        return sum(a for a, _ in found), sum(b for _, b in found)

    # ------------------------------------------------------------ limits

    def ends(self, d: int, greatest: bool) -> list[Expr]:
        """Upper (`greatest`) or lower limits of the index in a dimension over points that exist, one for each choice of bounds.

        Raises NotABox.
        """
        return self._ends(self._bounded[d], greatest)

    @cached_property
    def some(self) -> dict[tuple[Expr, int], None]:
        """(e, limit) for each condition e < limit on enclosing variables that all points need and that no limit of `ends` expresses."""
        told = {v for terms, _ in self._bounded for atom, _ in terms for v in free(atom)}
        bounds = ((b, self._sizes[v]) for v, found in self._bounds.items() if v not in told for b in found if not b.known)
        forms = (linear(index(0) - b.offset - (n - 1) if b.lower else b.offset) + (b,) for b, n in bounds)
        return {(from_linear((t, 0)), (1 - b.limit if b.lower else b.limit) - c): None for t, c, b in forms}

    def beyond(self, d: int, end: Expr, own: Sequence[Expr], greatest: bool, ask: bool) -> int | None:
        """How far the index exceeds a limit, derived from one of its own limits or, with `ask`, by isl. None: unknown."""
        gaps = [int(gap.value) for e in own if isinstance(gap := simplify(e - end), Const)]
        if gaps or not ask:
            return (min if greatest else max)(gaps, default=None)
        form = self._forms[d]
        return extremes(from_linear(form) - end, self._exists(atom for atom, _ in form[0]))[greatest]

    def within(self, d: int, low: Expr, extent: int) -> bool:
        """Whether all indices in a dimension provably lie in a range with a constant start."""
        ends = [[interval(x - low)[greatest] for x in self.ends(d, greatest)] for greatest in (False, True)]
        return any(x is not None and x >= 0 for x in ends[0]) and any(x is not None and x < extent for x in ends[1])

    def _ends(self, form: Linear, greatest: bool) -> list[Expr]:
        terms, constant = form
        choices = [[x * c for x in self._last(atom, greatest == (c > 0))] for atom, c in terms]
        return [simplify(sum(chosen, index(constant))) for chosen in itertools.product(*choices)]

    def _last(self, atom: Expr, greatest: bool) -> list[Expr]:
        n = self._sizes.get(atom)
        if n is not None:
            bounds = [b for b in self._bounds.get(atom, ()) if not b.known and b.lower != greatest]
            return [index(n - 1 if greatest else 0), *(index(b.limit - int(greatest)) - b.offset for b in bounds)]
        if not self._mixes(atom):
            return [atom]
        match atom:
            case Binary("//", inner, Const(value=c)):
                return [x // int(c) for x in self._ends(linear(inner), greatest)]
            case Binary("%", inner, Const(value=c)):
                begin = self._begin_of(inner)
                if self._carries(inner, begin, int(c)):
                    return [index(int(c) - 1 if greatest else 0)]
                return [begin % int(c) + x - begin for x in self._ends(linear(inner), greatest)]
            case Binary("min" | "max" as op, inner, Const() as clamp):
                ends = self._ends(linear(inner), greatest)
                if greatest == (op == "min"):  # both are limits
                    return [*ends, clamp]
                exist = self._exists((atom,))
                return [x if extremes(atom - x, exist)[greatest] == 0 else Binary(op, x, clamp) for x in ends]
        single = {v: index(0) for v in free(atom) if self._sizes.get(v) == 1}
        if not single:
            raise NotABox
        return self._ends(linear(substitute(atom, single)), greatest)

    def _carries(self, inner: Expr, begin: Expr, divisor: int) -> bool:
        """Whether a quotient may change between existing points of the piece, because the piece may straddle a multiple."""
        exist = self._exists((inner,))
        low, high = self._slack_in(inner)
        if high - low >= divisor and not exist:
            return True
        return extremes(inner // divisor - begin // divisor, exist) != (0, 0)


def box(readings: Sequence[Reading], shape: Sequence[int], in_memory: bool = False) -> list[Range]:
    """The smallest box that covers all readings of a tensor of a shape. Raises NotABox, and Apart if they have no common box.

    in_memory: not in registers, so that readers may index a single element, too.
    """
    boxes = [r.box_in_memory if in_memory else r.box for r in readings]
    return [_dimension(readings, [b[d] for b in boxes], d, n, in_memory) for d, n in enumerate(shape)]


def _dimension(readings: Sequence[Reading], boxes: Sequence[Range], d: int, whole: int, in_memory: bool) -> Range:
    """One dimension of the box of all readings: around their own boxes, or around those from the starts without clamps, whose distances
    are constants more often; whichever is smaller."""
    unclamped = [r.unclamped(d, in_memory) for r in readings] if len(readings) > 1 else boxes
    found = list[Range]()
    for each in [boxes] if list(boxes) == unclamped else [boxes, unclamped]:
        with contextlib.suppress(Apart):
            found.append(_around(readings, each, d, whole))
    if not found:
        raise Apart
    return min(found, key=lambda r: r[1])


def _around(readings: Sequence[Reading], boxes: Sequence[Range], d: int, whole: int) -> Range:
    """One dimension of the box of all readings. It exists if the readings have constant distances, if one with a constant start
    contains all others, or if their distances are so small that together they cover less than the whole dimension."""
    low, extent = boxes[0]
    for other, n in boxes[1:]:
        first, last = _distance(low, other)
        if first is None or last is None or first < last:
            wide = (b for b in boxes if isinstance(b[0], Const))
            if (found := next((w for w in wide if all(r.within(d, *w) for r in readings)), None)) is not None:
                return found
        if first is None or last is None:
            raise Apart
        begin, end = min(0, first), max(extent, last + n)
        if first < last and end - begin > whole:
            raise Apart
        low, extent = simplify(low + begin), end - begin
    return low, extent


def _distance(low: Expr, other: Expr) -> tuple[int | None, int | None]:
    """The least and greatest distance from one start to another."""
    gap = simplify(other - low)
    return (int(gap.value), int(gap.value)) if isinstance(gap, Const) else extremes(gap, ())


def conditions(readings: Sequence[Reading], region: Sequence[Range]) -> list[tuple[Bound, ...]]:
    """Bounds that exclude elements of a region which no point reads, per dimension, relative to the region's start.

    A bound must hold for all readings, so only limits that are equal for all of them up to a constant become bounds. They have no
    key yet.
    """
    out = list[list[Bound]]()
    for d, (low, extent) in enumerate(region):
        bounds: list[Bound] = []
        for greatest in (True, False):
            for end in _common(readings, d, greatest):
                _, constant = linear(low - end)
                limit = 1 - constant if greatest else -constant
                bounds.append(Bound("", simplify(low - end - constant), limit, not greatest))
        out.append([b for b in bounds if not b.is_certain(extent)])
    if region:
        d = min(range(len(region)), key=lambda d: region[d][1])
        extent = region[d][1]  # either no element of a row is needed, or all are
        some = [x for x in readings[0].some if all(x in r.some for r in readings)]
        rows = (Bound("", simplify((e - limit) * extent), 0) for e, limit in some)
        out[d] += [b for b in rows if not b.is_certain(extent)]
    return [tuple(bounds) for bounds in out]


def _common(readings: Sequence[Reading], d: int, greatest: bool) -> Iterable[Expr]:
    """The limits common to all readings, each widened to the reading that exceeds it most."""
    try:
        ends = [r.ends(d, greatest) for r in readings]
    except NotABox:  # of a remainder nothing is known but that it is less than the divisor
        return
    apart = any(not isinstance(simplify(r.box[d][0] - readings[0].box[d][0]), Const) for r in readings)
    for end in dict.fromkeys(e for own in ends for e in own) if apart else ends[0]:
        found = [r.beyond(d, end, own, greatest, apart) for r, own in zip(readings, ends, strict=True)]
        shifts = [x for x in found if x is not None]
        if len(shifts) == len(found):
            yield simplify(end + (max if greatest else min)(shifts))


def _sum(terms: Iterable[tuple[Expr, int]]) -> Linear:
    total: Expr = index(0)
    for atom, c in terms:
        total = total + atom * c
    return linear(total)


def _add(form: Linear, constant: int) -> Linear:
    return form[0], form[1] + constant
