"""The steps that may stand where a schedule leaves them open: what construction would do with what the steps above have left.

Where a whole constructed schedule begins as the one that is given, it goes on as that does. Besides, the loops above are read as the
model reads them; what is left of each axis is a nest of its own, for which tiles are grown as for a whole one. Of the steps of such a
tile those are dropped which the schedule has already: the blocks, an accumulator, what is loaded.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence

from tilelang.autoschedule.common.cost import device_of
from tilelang.autoschedule.common.loop_summary import Loops, loops_of
from tilelang.autoschedule.common.task_accesses import Nest, NestAxis
from tilelang.autoschedule.cpu.device import Cores
from tilelang.autoschedule.cpu.growth import fused, seeds
from tilelang.autoschedule.cpu.tile import Fusions, RTile, steps
from tilelang.autoschedule.gpu import construct, streams
from tilelang.autoschedule.gpu import tile as gpu_tile
from tilelang.autoschedule.gpu.model import Lanes
from tilelang.autoschedule.gpu.tile import LaneTile
from tilelang.autoschedule.tune.prune import Pruning
from tilelang.profiles.profile import Profile
from tilelang.schedules.schedule import Schedule
from tilelang.schedules.steps import Do, Fuse, Inline, Place, Split, Step, Tile, Unfuse, Units, Vectorize

MOST_BEGUN = 16  # whole schedules that begin as the given one does, and are looked at
MOST_WALKED = 8  # tiles that a block walks over, the largest
MOST_PADDED = 2  # times as large as a block that is given may be what a tile makes of it


def tails(
    above: Schedule, after: tuple[Step, ...], profile: Profile, pruning: Pruning, constructed: Sequence[tuple[Step, ...]]
) -> list[tuple[Step, ...]]:
    """Steps that may stand below a schedule, each once; none of them comes first. after: the steps that are given below
    them; pruning: what drops some of the tiles that they are of; constructed: whole schedules of the computation, the best first."""
    found: dict[tuple[Step, ...], None] = {(): None}
    length = len(above.steps)
    begun = (whole[length:] for whole in constructed if whole[:length] == above.steps)
    for made in (*itertools.islice(begun, MOST_BEGUN), *_whole(above, profile, pruning)):
        for end in range(len(made)) if after else [len(made)]:
            found[tuple(s for s in made[:end] if not any(_alike(s, given) for given in after))] = None
    return list(found)


def _alike(step: Step, given: Step) -> bool:
    """Whether a given step does what a constructed one would: it cuts, or places, the same."""
    match step, given:
        case Tile(), Tile():
            return step.level == given.level
        case Split(sizes=sizes), Split(sizes=others):
            return dict(sizes).keys() == dict(others).keys()
        case Place(), Place():
            return (step.verb, step.what, step.memory) == (given.verb, given.what, given.memory)
        case Vectorize(axis), Vectorize(other):
            return axis == other
        case Vectorize(), Do():
            return True
        case _:
            return False


def _whole(above: Schedule, profile: Profile, pruning: Pruning) -> Iterator[tuple[Step, ...]]:
    """The steps down to the leaf, of tiles for what the schedule leaves."""
    if not above.steps:
        return
    device = device_of(profile, pruning)
    loops = loops_of(above, profile)[-1]
    if loops.nest.points == 0 or any(isinstance(s, (Vectorize, Do)) for s in above.steps):
        return
    uncut = all(isinstance(s, (Units, Inline, Fuse, Unfuse)) for s in above.steps)
    for fusions, nest in fused(loops.nest) if uncut else [((), left(loops))]:
        every = _of_cores(nest, fusions, loops, device) if isinstance(device, Cores) else _of_lanes(nest, fusions, loops, device)
        for made in every:
            yield _without(made, loops, above)


def _of_cores(nest: Nest, fusions: Fusions, loops: Loops, device: Cores) -> Iterator[tuple[Step, ...]]:
    for tile in seeds(nest, fusions, device):
        yield steps(nest, _within(tile, loops, nest))


def _of_lanes(nest: Nest, fusions: Fusions, loops: Loops, device: Lanes) -> Iterator[tuple[Step, ...]]:
    """The steps of tiles; where there is a block already, of those whose block is all of the nest, or of those that it walks over."""
    tiles = [*construct.shared_tiles(nest, fusions, device), *streams.tiles(nest, fusions, device)]
    if not _spread(loops):
        yield from map(gpu_tile.steps, tiles)
        return
    whole = [t for t in tiles if all(n >= nest.extents[a] for a, n in t.block)]
    spatial = {a.name: a.extent for a in nest.spatial}  # blocks of a part of a reduction cannot come one after another
    inside = sorted((t for t in tiles if all(n <= spatial.get(a, 0) for a, n in t.block)), key=_size, reverse=True)
    padded = math.prod(spatial.values()) * MOST_PADDED
    yield from map(gpu_tile.steps, [t for t in whole if _size(t) <= padded] or ([] if inside else whole))
    yield from (tuple(map(_walked, gpu_tile.steps(t))) for t in inside[:MOST_WALKED])


def _size(tile: LaneTile) -> int:
    """The results of a block."""
    return math.prod(n for _, n in tile.block)


def _walked(step: Step) -> Step:
    """A step; a walk in place of blocks."""
    return Split(step.sizes) if isinstance(step, Tile) and step.level == "block" else step


def _spread(loops: Loops) -> bool:
    return any(loop.level == "block" for loop in loops.loops)


def left(loops: Loops) -> Nest:
    """What the loops leave of a nest for one round of them all."""
    axes = tuple(NestAxis(a.name, min(a.extent, loops.tiles[-1][a.name]), a.reduction) for a in loops.nest.axes)
    return dataclasses.replace(loops.nest, axes=axes)


def _within(tile: RTile, loops: Loops, nest: Nest) -> RTile:
    """The tile without the levels above the loops' innermost: one block, and one piece where the state is in registers."""
    spatial, reduced = ({a.name: a.extent for a in axes} for axes in (nest.spatial, nest.reduced))
    states = {p.memory for p in loops.places if p.verb == "accumulate"}
    if _spread(loops):
        tile = dataclasses.replace(tile, block=spatial | reduced, chunk={a: min(n, reduced[a]) for a, n in tile.chunk.items()})
    if "register" in states:
        tile = dataclasses.replace(tile, piece=spatial)
    return tile


def _without(made: tuple[Step, ...], loops: Loops, above: Schedule) -> tuple[Step, ...]:
    """The steps but for those of which the schedule above has one."""
    placed = {(p.access.name, p.memory) for p in loops.places if p.access is not None}
    states = {p.memory for p in loops.places if p.verb == "accumulate"}
    vias = any(isinstance(s, Place) and s.verb == "via" for s in above.steps)

    def is_there(step: Step) -> bool:
        match step:
            case Tile(level="block"):
                return _spread(loops)
            case Place(verb="accumulate", memory=memory):
                return memory in states or "register" in states
            case Place(verb="via"):
                return vias
            case Place(verb="load", memory=memory):
                return {(step.tensor_name, memory), (step.tensor_name, "register")} & placed != set()
            case _:
                return False

    return tuple(s for s in made if not is_there(s))
