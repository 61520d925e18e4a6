"""Computations and schedules at other extents, so that a schedule can be simulated at a small size.

`resize` makes the same computation with other extents. Inputs, and tensors that other definitions read, keep their margins: if the
largest index along a dimension falls by 100, so does the extent of that dimension, so that a `pad` still pads. `small_extents` chooses
extents at which each tile of a schedule occurs whole and partial, and each loop has two more iterations than the longest prefetch
distance. `with_short_loops` also reduces tile sizes, where loops only repeat the same work.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

from tilelang.computations.computation import Computation, Tensor, computation, input
from tilelang.computations.define import define
from tilelang.core.expr import Axis, Expr, Pad, Read, rewrite
from tilelang.core.simplify import interval
from tilelang.profiles.profile import Profile
from tilelang.schedules.check import axis_extents, resolve_when
from tilelang.schedules.schedule import Schedule
from tilelang.schedules.steps import Do, Fuse, Place, Split, Step, Tile, Unfuse, Vectorize, every_step
from tilelang.schedules.walk import piece_of

LEAST_ITERATIONS = 2  # minimum iterations of every loop, in addition to its prefetch distance
MANY_ITERATIONS = 5  # loops with at least this many iterations are shortened
LARGE_PIECE, SMALL_PIECE = 16, 5  # innermost tiles above the first size shrink to the second, unless an instruction needs them
UNCUT = 13  # the maximum extent of an axis that no step cuts
MOST_ADJUSTED = 16  # maximum number of passes that raise the extents of definitions to those that their readers need


# ---------------------------------------------------------------- the same, at other extents


def resize(whole: Computation, extents: Mapping[str, int]) -> Computation:
    """The same computation with other extents for some of its axes, by name.

    The extents of inputs follow from their readers. If a definition would read another one out of bounds, the axes of the other one are
    longer than requested. Raises ComputationError if there is no such computation: for example, because a condition that contains an
    extent as a number no longer keeps a read in bounds.

    >>> import tilelang as tl
    >>> i, r = tl.axes(i=1000, r=3)
    >>> mean = tl.define("Y", tl.sum(tl.pad(tl.input("X", tl.float32, n=1000)[i + r - 1]), over=r) / 3, i)
    >>> print(*resize(tl.computation("mean", mean), {"i": 10}).inputs)
    X: float32[n: 10]
    """
    return _Resized(whole, extents).computation()


def resize_schedule(schedule: Schedule, extents: Mapping[str, int], profile: Profile | None = None) -> Schedule:
    """The same steps for the computation at other extents. Conditions keep the value that they have for the schedule. Raises as
    `resize`, and Refusal if a step is illegal at these extents."""
    resized = _Resized(schedule.computation, extents)
    made = resized.computation()
    steps = resolve_when(schedule.steps, axis_extents(schedule.computation), profile)
    return Schedule(made, tuple(map(resized.step, steps)))


class _Resized:
    """The new axes and tensors of a computation."""

    def __init__(self, whole: Computation, extents: Mapping[str, int]) -> None:
        self.whole = whole
        self.axes = {a.name: a.extent for a in whole.axes} | {a.name: extents[a.name] for a in whole.axes if a.name in extents}
        self.tensors: dict[Tensor, Tensor] = {}
        self._reads = dict[Tensor, dict[tuple[int, Expr, bool], None]]()  # (dimension, index, whether it may lie outside)
        for written in (w for d in whole.definitions for w in d.written or ()):
            padded = {e.read for e in written.walk() if isinstance(e, Pad)}
            for e in written.walk():
                if isinstance(e, Read):
                    self._reads.setdefault(e.tensor, {}).update(((d, i, e in padded), None) for d, i in enumerate(e.indices))

    def computation(self) -> Computation:
        self._raise_to_readers()
        for t in self.whole.inputs:
            dims = (Axis(a.name, self._wanted(t, d)) for d, a in enumerate(t.dims))
            self.tensors[t] = input(t.name, t.dtype, *dims, range=t.range)
        for definition in self.whole.definitions:
            if definition.written is not None:
                names = tuple(t.name for t in definition.tensors)
                written, axes = map(self.expression, definition.written), map(self._axis, definition.axes)
                made = define(names, tuple(written), *axes, allow=definition.allow)
                self.tensors.update(zip(definition.tensors, made, strict=True))
        return computation(self.whole.name, tuple(self.tensors[t] for t in self.whole.outputs))

    def expression(self, expr: Any) -> Any:
        """The expression over the new axes and tensors."""
        return rewrite(expr, self._renewed)

    def step(self, step: Step) -> Step:
        """The step with its reads of the new tensors."""
        if not isinstance(step, Place):
            return step
        what = self.expression(step.what) if isinstance(step.what, Read) else step.what
        inside = None if step.steps is None else tuple(map(self.step, step.steps))
        return step.replace(what=what, steps=inside)

    def _renewed(self, e: Any) -> Any:
        if isinstance(e, Axis):
            return self._axis(e)
        return Read(self.tensors[e.tensor], e.indices) if isinstance(e, Read) else e

    def _axis(self, axis: Axis) -> Axis:
        return Axis(axis.name, self.axes.get(axis.name, axis.extent))

    def _raise_to_readers(self) -> None:
        """Lengthens the axes of definitions until all reads of them are in bounds."""
        before = {a.name: a.extent for a in self.whole.axes}
        defined = [t for d in self.whole.definitions for t in d.tensors if t in self._reads]
        for number in range(MOST_ADJUSTED + 1):
            wanted = {(a.name, self._wanted(t, d)) for t in defined for d, a in enumerate(t.dims)}
            short = {name: extent for name, extent in sorted(wanted) if extent > self.axes[name]}
            if not short:
                return
            self.axes.update(short if number < MOST_ADJUSTED else {name: before[name] for name in short})

    def _wanted(self, t: Tensor, dimension: int) -> int:
        """The extent of a dimension that preserves its distance from the greatest index of each reader."""
        old = t.shape[dimension]
        wanted = [self._distance_kept(old, i, outside) for d, i, outside in self._reads.get(t, {}) if d == dimension]
        return max(wanted, default=old)

    def _distance_kept(self, old: int, index: Expr, outside: bool) -> int:
        high, now = interval(index)[1], interval(rewrite(index, lambda e: self._axis(e) if isinstance(e, Axis) else e))[1]
        if high is None or now is None or old == 0:
            return old
        kept = max(0, old - (high - now))
        return (
            kept if outside else max(kept, min(old, now + 1))
        )  # the condition that guards the read does not change with the extents


# ---------------------------------------------------------------- extents that show every kind of tile


def small_extents(schedule: Schedule, profile: Profile | None = None, ragged: bool = True, uncut: bool = True) -> dict[str, int]:
    """Small extents for the axes of a schedule's computation, by name.

    ragged: every tile is partial at the end, down to one element of the smallest; else the remainder is that of the schedule's own
    extents. uncut: axes that no step cuts are short, too.

    >>> import tilelang as tl
    >>> m, n = tl.axes(m=4096, n=4096)
    >>> twice = tl.schedule(tl.define("Y", 2 * tl.input("X", tl.float32, m, n)[m, n], m, n))
    >>> small_extents(twice.tile(m=8, n=32).to(tl.block).tile(n=4).to(tl.thread))
    {'m': 9, 'n': 37}
    """
    extents = axis_extents(schedule.computation)
    steps = tuple(every_step(resolve_when(schedule.steps, extents, profile)))
    fixed = {s.axis for s in steps if isinstance(s, Unfuse)}
    fused = {s.name: s.axes for s in steps if isinstance(s, Fuse)}
    ahead = _ahead(steps)
    sizes = _sizes(steps)
    found: dict[str, int] = {}
    for axis, extent in extents.items():
        if axis in fixed or extent <= 1:
            continue
        if axis in sizes:
            iterations = LEAST_ITERATIONS + ahead if sizes[axis][0] in _walked(steps, axis) else 1
            found[axis] = _extent(extent, sizes[axis], iterations, ragged)
        elif uncut and not any(axis in parts for parts in fused.values()):
            found[axis] = _extent(extent, [UNCUT], 1, ragged) if extent > 2 * UNCUT else extent
    for name, parts in fused.items():
        if name in sizes and not fixed & {name, *parts}:
            found |= _fused(parts, extents, sizes[name], LEAST_ITERATIONS + ahead)
    return {axis: n for axis, n in found.items() if n != extents[axis]}


def with_short_loops(schedule: Schedule, profile: Profile | None = None) -> Schedule:
    """The schedule with smaller tiles where a loop has many iterations: only as many remain as its stages look ahead, plus two.
    Unrolled loops, parallel tiles and small innermost pieces are kept. Raises Refusal if that is impossible.

    >>> import tilelang as tl
    >>> m = tl.axes(m=100000)
    >>> twice = tl.schedule(tl.define("Y", 2 * tl.input("X", tl.float32, m)[m], m))
    >>> print(with_short_loops(twice.tile(m=4096).to(tl.block).split(m=8)))
    schedule for Y {
      tile m=16 -> block
      split m=8
    }
    """
    steps = resolve_when(schedule.steps, axis_extents(schedule.computation), profile)
    iterations = LEAST_ITERATIONS + _ahead(steps)
    # For each axis, the next cut below: its old and its new size, and whether it is a loop.
    inner: dict[str, tuple[int, int, bool]] = {}
    shorter: list[Step] = []
    largest = math.inf if any(isinstance(s, Do) for s in steps) else LARGE_PIECE
    for step in reversed(steps):
        if isinstance(step, Vectorize) and isinstance(step.lanes, int):
            inner[step.axis] = step.lanes, step.lanes, False
        if not isinstance(step, (Tile, Split)):
            shorter.append(step)
            continue
        sizes = tuple((a, _shorter(n, inner.get(a), iterations, largest) if isinstance(n, int) else n) for a, n in step.sizes)
        looped = isinstance(step, Split) and not step.unroll
        inner |= {
            a: (n, now, looped)
            for (a, n), (_, now) in zip(step.sizes, sizes, strict=True)
            if isinstance(n, int) and isinstance(now, int)
        }
        shorter.append(step.replace(sizes=sizes))
    return Schedule(schedule.computation, tuple(reversed(shorter)))


def _shorter(size: int, inner: tuple[int, int, bool] | None, iterations: int, largest: float) -> int:
    """The size of a tile whose pieces became smaller, or whose loop has fewer iterations. largest: of innermost pieces that are
    kept."""
    if inner is None:
        return SMALL_PIECE if size > largest else size
    before, now, looped = inner
    count, rest = divmod(size, before)
    if looped and count >= max(MANY_ITERATIONS, iterations + 1):
        count = iterations
    return count * now + min(rest, now - 1 if now > 1 else 0)


def _ahead(steps: tuple[Step, ...]) -> int:
    """The greatest `ahead` of any stage."""
    return max((s.ahead for s in every_step(steps) if isinstance(s, Place)), default=0)


def _sizes(steps: tuple[Step, ...]) -> dict[str, list[int]]:
    """The sizes of the pieces of each axis, the largest first, including those of all units of a tile together."""
    found: dict[str, set[int]] = {}
    for s in steps:
        if isinstance(s, (Tile, Split)):
            count = s.count if isinstance(s, Tile) and isinstance(s.count, int) else 1
            for axis, n in piece_of(s).items():
                found.setdefault(axis, set()).update((n, n * count if len(s.sizes) == 1 else n))
        elif isinstance(s, Vectorize) and isinstance(s.lanes, int):
            found.setdefault(s.axis, set()).add(s.lanes)
    return {axis: sorted(sizes, reverse=True) for axis, sizes in found.items()}


def _walked(steps: tuple[Step, ...], axis: str) -> set[int]:
    """The sizes of the chunks of an axis in sequential loops."""
    return {n for s in steps if isinstance(s, Split) for a, n in piece_of(s).items() if a == axis}


def _extent(extent: int, sizes: list[int], iterations: int, ragged: bool) -> int:
    """A number of whole pieces of the largest size, plus a remainder: one piece of every smaller size and one element, or else the next
    remainder for which pieces of every size occur both whole and partial."""
    most, *smaller = sizes
    if not ragged:
        return min(extent, most * max(iterations, 1 if extent % most else LEAST_ITERATIONS) + extent % most)
    rest = functools.reduce(lambda rest, n: rest + n if rest + n < most else rest, (*smaller, 1), 0)
    rests = (rest, *range(rest + 1, most), *range(1, rest))
    return most * iterations + next((r for r in rests if _whole_and_partial(most * iterations + r, sizes)), rest)


def _whole_and_partial(extent: int, sizes: list[int]) -> bool:
    """Whether nested pieces of each size occur both whole and partial."""
    pieces = {extent}
    for n in sizes:
        if max(pieces) < n or (n > 1 and all(piece % n == 0 for piece in pieces)):
            return False
        pieces = {min(n, piece) for piece in pieces} | {piece % n for piece in pieces if piece % n}
    return True


def _fused(parts: tuple[str, ...], extents: Mapping[str, int], sizes: list[int], iterations: int) -> dict[str, int]:
    """Extents of fused axes whose product has this many pieces: short inner axes, and an outermost one as long as needed."""
    inner = {a: min(extents[a], 7) for a in parts[1:]}
    product = functools.reduce(lambda n, e: n * max(1, e), inner.values(), 1)
    return {parts[0]: min(extents[parts[0]], -(-_extent(1 << 40, sizes, iterations, ragged=True) // product)), **inner}
