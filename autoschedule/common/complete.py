"""Generates a schedule, or completes a partial one: candidates for any device, the best first.

A whole schedule is generated. In a schedule with holes, sizes are chosen among aligned extents and steps among generated ones, one hole
after another, and again until the estimate stops improving. The given steps are never changed.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping

from tilelang.autoschedule.common import holes
from tilelang.autoschedule.common.axes import in_parts
from tilelang.autoschedule.common.construct import Candidate, construct, ranked
from tilelang.autoschedule.common.continuations import continuations
from tilelang.autoschedule.common.device_model import Likely
from tilelang.autoschedule.common.holes import COUNT, LANES, MOVE, SIZE, STEPS, Slot, Value
from tilelang.autoschedule.common.limits import fills_units, limits
from tilelang.autoschedule.common.loop_summary import Loops, loops_of
from tilelang.autoschedule.common.lower_bound import has_empty_axis
from tilelang.autoschedule.common.prune import Pruning
from tilelang.autoschedule.common.search_notes import notes
from tilelang.autoschedule.common.threads import BLOCK_LEVELS
from tilelang.autoschedule.models import model_of
from tilelang.computations.computation import Computation
from tilelang.core import dtype as dt
from tilelang.core.expr import Read
from tilelang.core.lazy import cached_property
from tilelang.errors import TileLangError, collected
from tilelang.profiles.profile import Profile
from tilelang.schedules.schedule import Schedule
from tilelang.schedules.spec import root_spec
from tilelang.schedules.steps import Open, Split, Step, Tile, Vectorize

MOST_SIZES = 16  # tried for one hole
VISITS = 1500  # estimates for one schedule
STARTS = (0.4, 0.7, 1.0)  # the starting points, as positions in the sizes of each hole
KEPT = 16  # candidates that are returned
FILLED = 64  # fillings that are returned: with the given steps, many may be refused


def candidates(computation: Computation, profile: Profile, pruning: Pruning | None = None) -> list[Candidate]:
    """Schedules of a computation for a device, the best first; none if there is nothing to compute. pruning: the rules that drop
    candidates.

    >>> import tilelang as tl
    >>> i = tl.axes(i=1 << 20)
    >>> Y = tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)
    >>> candidates(tl.schedule(Y).computation, tl.load_profile("sapphire_rapids"))[0].schedule.steps[0].level
    'block'
    """
    if has_empty_axis(computation):
        return []
    return construct(computation, profile, pruning)


def in_order(
    computation: Computation, profile: Profile, pruning: Pruning | None = None, likely: Likely | None = None
) -> Iterator[Candidate]:
    """`candidates` as an iterator: the first takes less time to find than all. likely: called with the steps that will probably be the
    first."""
    if not has_empty_axis(computation):
        yield from ranked(computation, profile, pruning, likely)


@dataclasses.dataclass(frozen=True)
class Search:
    """The result of a search: the schedules, the best first; the candidates that were dropped; and notes on what the search lacked."""

    schedules: tuple[Schedule, ...]
    pruning: Pruning
    notes: tuple[str, ...] = ()


def search(given: Schedule | Computation, profile: Profile, pruning: Pruning | None = None) -> Search:
    """Schedules for a computation, or for a schedule with holes. pruning: the rules that are off."""
    pruning = pruning or Pruning()
    if isinstance(given, Schedule):
        return Search(tuple(fill(given, profile, pruning)), pruning, notes(given.computation, profile, model_of(profile)))
    found = tuple(c.schedule for c in candidates(given, profile, pruning)[:KEPT])
    return Search(found, pruning, notes(given, profile, model_of(profile)))


def fill(schedule: Schedule, profile: Profile, pruning: Pruning | None = None) -> list[Schedule]:
    """A schedule with its holes filled, the best first. The last one has the smallest sizes, and needs the least of the device.

    >>> import tilelang as tl
    >>> i, j = tl.axes(i=640, j=1000)
    >>> Y = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i, j)[i, j] * 2, i, j))
    >>> print(fill(Y.tile(i=64, j=1000).to(tl.block).split(i=1).vectorize(j=tl.hole), tl.load_profile("sapphire_rapids"))[-1].steps[-1])
    vectorize j=1
    """
    return _Filling(schedule, profile, pruning or Pruning()).run()


class _Filling:
    """Searches for values of a schedule's holes."""

    def __init__(self, schedule: Schedule, profile: Profile, pruning: Pruning) -> None:
        self.computation, self.steps, self.profile = schedule.computation, schedule.steps, profile
        self.pruning, self.model = pruning, model_of(profile, pruning)
        self.lanes = max(profile.vector_lanes(dt.float32))
        self.slots = holes.slots(self.computation, self.steps, profile)
        self.found: dict[tuple[Step, ...], dict[int, Value]] = {}
        self.beyond = False  # whether tiles may exceed the extents; only if nothing else is legal
        self._seconds: dict[tuple[Step, ...], float] = {}
        self._options: dict[tuple[int, tuple[Step, ...]], list[Value]] = {}

    @cached_property
    def _constructed(self) -> list[tuple[Step, ...]]:
        """The steps of generated schedules of the whole computation, the best first."""
        return [c.steps for c in candidates(self.computation, self.profile, self.pruning)]

    def run(self) -> list[Schedule]:
        """The filled schedules. Raises Refusal if there are none."""
        best: list[dict[int, Value]] = []
        for self.beyond in (False, True):
            self._options.clear()
            self._look()
            if best := list(itertools.islice(self._best(), FILLED)):
                break
        least: dict[int, Value] = {}
        for slot in self.slots:
            least[slot.number] = () if slot.kind in (STEPS, MOVE) else self.options(slot, least)[0]
        return self._whole(dict.fromkeys(self._filled(values) for values in (*best, least)))

    def _look(self) -> None:
        """Searches from several starting points."""
        values: dict[int, Value] = {}
        for start in STARTS:
            values = {}
            for slot in self.slots:
                values[slot.number] = self._start(slot, values, start)
            values = self._descend(values)
        if next(self._best(), None) is None and (both := self._together(values)) is not None:
            self._descend(both)

    def _best(self) -> Iterator[dict[int, Value]]:
        """The values of legal fillings in their simplest form, the best first."""
        fitting = sorted((s for s in self.found if self._seconds[s] < math.inf), key=lambda s: self._seconds[s])
        for made in fitting:
            plain = self._plain(self.found[made])
            if self.seconds(plain) < math.inf:
                yield plain

    def _whole(self, found: Iterable[tuple[Step, ...]]) -> list[Schedule]:
        """The schedules of the fillings that are legal. Raises the last Refusal if none is."""
        made, refused = list[Schedule](), list[TileLangError]()
        for filled in found:
            with collected(refused):
                made.append(Schedule(self.computation, filled))
        if not made:
            raise refused[-1]
        return made

    def _start(self, slot: Slot, values: Mapping[int, Value], start: float) -> Value:
        found = self.options(slot, values)
        if slot.kind in (STEPS, MOVE):
            return min(found, key=lambda v: self.seconds({**values, slot.number: v}))
        return found[round(start * (len(found) - 1))]

    def _descend(self, values: dict[int, Value]) -> dict[int, Value]:
        """Coordinate descent: sets one hole at a time to its best value, until nothing improves."""
        best = self.seconds(values)
        while len(self._seconds) < VISITS:
            begun = best
            for slot in self.slots:
                for value in self.options(slot, values):
                    changed = self._with(values, slot, value)
                    if (seconds := self.seconds(changed)) < best * 0.999:
                        best, values = seconds, changed
            if best >= begun * 0.999:
                break
        return values

    def _together(self, values: dict[int, Value]) -> dict[int, Value] | None:
        """The first legal values found by changing two holes at once; None if there are none."""
        for slot, other in itertools.combinations(self.slots, 2):
            for value in self.options(slot, values):
                one = self._with(values, slot, value)
                for also in self.options(other, one):
                    both = self._with(one, other, also)
                    if self.seconds(both) < math.inf:
                        return both
                    if len(self._seconds) >= VISITS:
                        return None
        return None

    def _with(self, values: Mapping[int, Value], slot: Slot, value: Value) -> dict[int, Value]:
        """The values with another one for a hole. If that is illegal, open steps and tile sizes below the hole are chosen again."""
        changed = {**values, slot.number: value}
        for later in self.slots:
            if later.number > slot.number and self.seconds(changed) == math.inf:
                if later.kind == STEPS:
                    changed[later.number] = self._start(later, changed, 0.0)
                elif later.kind == SIZE and isinstance(later.step, Tile) and later.step.level not in BLOCK_LEVELS:
                    changed = min([{**changed, later.number: v} for v in self.options(later, changed)], key=self.seconds)
        return changed

    def _plain(self, values: Mapping[int, Value]) -> dict[int, Value]:
        """The same values, with numbers reduced to the extents that remain at their holes."""
        made: dict[int, Value] = {}
        for slot in self.slots:
            value = values[slot.number]
            if isinstance(value, int):
                value = min(value, max(n for n in self.options(slot, made) if isinstance(n, int)))
            made[slot.number] = value
        return made

    def _filled(self, values: Mapping[int, Value]) -> tuple[Step, ...]:
        return holes.filled(self.computation, self.steps, values, self.profile)

    def seconds(self, values: Mapping[int, Value]) -> float:
        """The estimate of a filling, infinite if it is illegal. Holes without a value are left out."""
        made = self._filled(values)
        seconds = self._seconds.get(made)
        if seconds is None:
            seconds = self._seconds[made] = self._estimate(made)
        if len(values) == len(self.slots):
            self.found.setdefault(made, dict(values))
        return seconds

    def _estimate(self, made: tuple[Step, ...]) -> float:
        try:
            loops = loops_of(Schedule(self.computation, tuple(s for s in made if not isinstance(s, Open))), self.profile)
        except TileLangError as error:
            self.pruning.dropped[error.code] += 1
            return math.inf
        if not fills_units(made, root_spec(loops[-1].nest.task).extents, self.profile):
            self.pruning.dropped["warp-not-filled"] += 1
            return math.inf
        if any(self.pruning.drops(rule, broken) for one in loops for rule, broken in limits(one, self.profile)):
            return math.inf
        self.pruning.keeps()
        return self.model.estimate(loops).seconds

    # ------------------------------------------------------------ the values of a hole

    def options(self, slot: Slot, values: Mapping[int, Value]) -> list[Value]:
        """The values to try for a hole, given those above it; numbers ascend."""
        above = holes.before(self.computation, self.steps, values, slot.number, self.profile)
        key = (slot.number, above)
        if key not in self._options:
            try:
                found = self._found(slot, Schedule(self.computation, above))
            except TileLangError:  # the steps above are illegal: they will be chosen again
                found = [()] if slot.kind in (STEPS, MOVE) else [1]
            self._options[key] = found or [1]
        return self._options[key]

    def _found(self, slot: Slot, above: Schedule) -> list[Value]:
        if slot.kind == STEPS and not slot.of:
            return list(continuations(above, slot.after, self.profile, self.model, self._constructed))
        loops = loops_of(above, self.profile)[-1]
        left = _extents(loops, slot)
        if slot.kind in (MOVE, STEPS):
            return [*self._vectors(left), ()]
        if slot.kind == COUNT:
            return [(self.profile.compute_units or 1) * n for n in (1, 2, 4, 8, 16)]
        extent = left.get(slot.axis, 1)
        if slot.kind == LANES:
            return [n for n in (1, 2, 4, 8, 16, 32, 64) if n <= min(max(1, extent), 4 * self.lanes)]
        granule = _granule(slot, self.lanes, extent)
        return sorted({*sizes(extent, granule), *self._of_all_threads(slot, granule)})

    def _of_all_threads(self, slot: Slot, granule: int) -> Iterator[int]:
        """Tile sizes for units of several threads: large enough for each thread to have a part, even beyond the extent."""
        if self.beyond and isinstance(slot.step, Tile) and self.profile.has_level(slot.step.level):
            threads = self.profile.level(slot.step.level).threads or 1
            yield from (granule << k for k in range(1, threads.bit_length()))

    def _vectors(self, left: Mapping[str, int]) -> Iterator[tuple[Step, ...]]:
        """Vectorized moves along each axis or dimension, those along the last one first."""
        for axis in reversed([*left]):
            lanes = min(self.lanes, 1 << (left[axis].bit_length() - 1)) if left[axis] > 1 else 1
            if lanes > 1:
                yield (Vectorize(axis, lanes),)


def _extents(loops: Loops, slot: Slot) -> dict[str, int]:
    """The remaining extent of each axis at a hole; in braces, of each dimension of the region that is moved."""
    tile = {a.name: min(a.extent, loops.tiles[-1][a.name]) for a in loops.nest.axes}
    if not slot.of:
        return tile
    place = slot.of[-1]
    if place.verb in ("accumulate", "via"):
        return {a.name: tile[a.name] for a in loops.nest.spatial}
    access = next((a for a in loops.nest.reads if place.what in (a.name, Read(a.tensor, a.written))), None)
    if access is None:
        return {}
    if place.layout is not None and set(place.layout.dims) - {d.name for d in access.tensor.dims}:
        return {d: tile.get(d, 1) for d in place.layout.dims}
    return {d.name: n for d, n in zip(access.tensor.dims, access.region(tile), strict=True)}


def _granule(slot: Slot, lanes: int, extent: int) -> int:
    """The number that a size should be a multiple of: the size given below it for the same axis, or the lanes of vectors along it."""
    for step in slot.after:
        match step:
            case Tile(sizes=given) | Split(sizes=given):
                number = dict(given).get(slot.axis)
                if isinstance(number, int):
                    return number
            case Vectorize(axis, number) if axis == slot.axis:
                return number if isinstance(number, int) else min(lanes, max(1, extent))
            case _:
                pass
    return 1


def sizes(extent: int, granule: int = 1) -> list[int]:
    """Candidates for a size up to an extent, ascending: equal parts of the extent, and round numbers; all are multiples of `granule`.

    >>> sizes(100, 16)
    [16, 32, 48, 64, 96, 112]
    >>> sizes(7)
    [1, 2, 3, 4, 6, 7]
    """
    granule = min(granule, max(1, extent))
    whole = in_parts(max(1, extent), 1, granule)
    found = {in_parts(extent, parts, granule) for parts in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)} if extent else {granule}
    size = granule
    while size < whole:
        found |= {size, *([size * 3 // 2] if size % 2 == 0 and size * 3 // 2 % granule == 0 else [])}
        size *= 2
    every = sorted(n for n in found if n <= whole)
    if len(every) <= MOST_SIZES:
        return every
    step = (len(every) - 1) / (MOST_SIZES - 1)
    return [every[round(k * step)] for k in range(MOST_SIZES)]
