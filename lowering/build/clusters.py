"""Clusters of blocks: how many blocks form one, and the schedule with the tile of the blocks directly below that of the clusters.

A cluster is n consecutive blocks along x: the cluster's number is block_x // n, and a block's rank in it is block_x % n. Steps
between `-> cluster` and `-> block` apply to all blocks of a cluster. If they cut other axes than the tile of the blocks, they
mean the same below that tile, where every block does its part.
"""

from __future__ import annotations

import dataclasses
import math

from tilelang.core.expr import INDEX, Expr, Var, index, substitute
from tilelang.core.simplify import simplify
from tilelang.errors import Refusal
from tilelang.instructions.instruction import known, use
from tilelang.lowering.build.distribution.parallel_mapping import numbers, units_numbered
from tilelang.lowering.build.frame import Build
from tilelang.lowering.build.refusals import refuse
from tilelang.profiles.profile import Profile
from tilelang.schedules.check import later
from tilelang.schedules.spec import Spec, root_spec
from tilelang.schedules.steps import Do, Place, Split, Step, Tile, Units
from tilelang.schedules.task import Task
from tilelang.schedules.walk import Extents, count_pieces, piece_of, refine, walk_steps


@dataclasses.dataclass(frozen=True)
class Clusters:
    """blocks: how many blocks form a cluster. steps: the schedule's steps, with the blocks' tile directly below the clusters' tile."""

    blocks: int
    steps: tuple[Step, ...]


def plan_clusters(task: Task, steps: tuple[Step, ...], profile: Profile) -> Clusters:
    """The clusters of a schedule; clusters of one block if the schedule has none. Raises Refusal."""
    said = next((s for s in steps if isinstance(s, Units) and s.level == "cluster"), None)
    tiles = [k for k, s in enumerate(steps) if isinstance(s, Tile) and s.level == "cluster"]
    steps = tuple(s for s in steps if s is not said)
    if not tiles:
        for step in steps:
            _check_braces(step)
        blocks = 1 if said is None else _given_count(said, profile)
        return Clusters(blocks if _has_blocks(task, steps, blocks) else 1, steps)
    first = tiles[0] - (said is not None)
    tile = steps[first]
    assert isinstance(tile, Tile)
    if not profile.has_level("cluster"):
        raise no_clusters(tile, profile)
    if len(tiles) > 1:
        second = steps[tiles[1] - (said is not None)]
        raise refuse(second, "clusters-twice", f"`{second}` is the second step that maps tiles to clusters",
                     "map all of them to clusters in one tile")  # fmt: skip
    inner, between, rest = _blocks_below(steps, first)
    for step in between:
        _check_between(step, inner)
    for step in rest:
        _check_braces(step)
    left = root_spec(task).extents.after(steps[:first])
    if any(a in left.reduced for a, _ in inner.sizes):
        later(inner, "a reduction mapped to the blocks of a cluster")
    blocks = _given_count(said, profile) if said is not None else _derived(left, tile, inner, profile)
    return Clusters(blocks, (*steps[: first + 1], inner, *between, *rest))


def no_clusters(step: Step, profile: Profile) -> Refusal:
    """The refusal for a device without clusters."""
    return refuse(step, "level-not-here", f"`{step}`: the profile `{profile.name}` has no level `cluster`",
                  "use one of the levels " + ", ".join(profile.level_names))  # fmt: skip


def _given_count(step: Units, profile: Profile) -> int:
    (team,) = step.teams
    _check_count(step, team.count, profile)
    return team.count


def _derived(left: Extents, tile: Tile, inner: Tile, profile: Profile) -> int:
    """The number of blocks per cluster: the number of the blocks' tiles in one tile of the clusters."""
    blocks = units_numbered(inner.order, count_pieces(piece_of(inner), refine(left, tile).sizes))
    _check_count(inner, blocks, profile)
    return blocks


def _check_count(step: Step, blocks: int, profile: Profile) -> None:
    most = profile.level("block").max_count or 1
    if blocks > most:
        raise refuse(step, "too-many-units", f"`{step}`: a cluster has {blocks} blocks, but the profile `{profile.name}` allows at most"
                     f" {most}",
                     f"use at most {most} blocks")  # fmt: skip


def _has_blocks(task: Task, steps: tuple[Step, ...], blocks: int) -> bool:
    """Whether a schedule without `-> cluster` maps tiles to blocks, which `units cluster` then groups.

    The number of blocks is rounded up to whole clusters, so a reduction must not be mapped to them: every block that shares a
    reduction must have a partial result.
    """
    for w in walk_steps(root_spec(task).extents, steps):
        if isinstance(w.step, Tile) and w.step.level == "block":
            if blocks > 1 and any(a in w.before.reduced for a in w.piece):
                later(w.step, "a reduction mapped to blocks that form clusters")
            return True
    return False


def _blocks_below(steps: tuple[Step, ...], first: int) -> tuple[Tile, tuple[Step, ...], tuple[Step, ...]]:
    """The blocks' tile inside a cluster, the steps above it, and the steps below it. Without such a tile, one block takes the
    cluster's whole tile."""
    for k in range(first + 1, len(steps)):
        step = steps[k]
        if isinstance(step, Tile) and step.level == "block":
            return step, steps[first + 1 : k], steps[k + 1 :]
        if isinstance(step, Tile):
            later(step, "mapping a cluster's tiles to units below its blocks, with no tile for the blocks between,")
    tile = steps[first]
    assert isinstance(tile, Tile)
    return Tile(tile.sizes, "block"), (), steps[first + 1 :]


def _check_between(step: Step, inner: Tile) -> None:
    """Refuses a step between the tiles that would change its meaning if it were moved below the blocks' tile."""
    if isinstance(step, Split):
        fits = not {a for a, _ in inner.sizes} & {a for a, _ in step.sizes}
    else:
        fits = (
            isinstance(step, Place)
            and (step.verb, step.memory) in (("load", "shared"), ("accumulate", "register"))
            and (shares(step) is None or step.verb == "load" and step.on is not None)
        )
    if not fits:
        later(step, f"work that all blocks of a cluster share above `{inner}`")


def _check_braces(step: Step) -> None:
    """Refuses tiles mapped to blocks or clusters inside braces: only steps above the blocks can divide a move among the blocks
    of a cluster."""
    for s in step.steps or () if isinstance(step, Place) else ():
        if isinstance(s, Tile) and s.level in ("block", "cluster"):
            raise _blocks_twice(s)


def _blocks_twice(tile: Tile) -> Refusal:
    return refuse(tile, "blocks-twice", f"`{tile}`: tiles were already mapped to blocks", "map all of them to blocks in one tile")


def shares(step: Place) -> Tile | None:
    """The tile that divides a load among the blocks of a cluster; None if every block loads all that it reads."""
    return next((s for s in step.steps or () if isinstance(s, Tile) and s.level == "block"), None)


def is_multicast(step: Place) -> bool:
    """Whether a load writes the same elements to all blocks of a cluster (multicast)."""
    last = step.steps[-1] if step.steps else None
    return isinstance(last, Do) and use(last.instruction).multicast


def divided(build: Build, step: Place, spec: Spec) -> Place:
    """A load as one block of a cluster executes it: data that all blocks read is divided among them, other data is loaded by each
    block.

    spec: the region that this block reads. Raises Refusal.
    """
    tile = shares(step)
    if tile is None and not is_multicast(step):
        return step
    if tile is None:
        raise refuse(step, "multicast", f"`{step}` copies the same data to all blocks of a cluster, but no tile says which part each"
                     " block copies", "divide the load above the blocks: { tile ... -> block; do ... }")  # fmt: skip
    for again in step.steps or ():
        if isinstance(again, Tile) and again.level == "block" and again is not tile:
            raise _blocks_twice(again)
    apart = {a.name: _apart(build, a.base) for a in spec.axes}
    differing = {name: found for name, found in apart.items() if any(e is not index(0) for e in found)}
    sizes, extents = numbers(tile), {a.name: a.extent for a in spec.axes}
    if not sizes.keys() <= extents.keys():
        raise refuse(tile, "unknown-axis", f"`{tile}` names an axis that {step.tensor_name} does not have; its dimensions are"
                     f" {', '.join(extents)}",
                     "use the tensor's own dimensions")  # fmt: skip
    if not differing:
        if not is_multicast(step):
            raise refuse(tile, "multicast", f"`{tile}`: all blocks of the cluster read all of {step.tensor_name}, so the part that one"
                         " block loads must be copied to the others", _multicasts(build))  # fmt: skip
        tiles = math.prod(extents[a] // t for a, t in sizes.items())
        if any(extents[a] % t for a, t in sizes.items()) or tiles % build.cluster:
            raise refuse(tile, "multicast", f"`{tile}` does not divide {step.tensor_name} into the same number of whole parts for each"
                         f" of {build.cluster} blocks", "use tile sizes that divide the"
                             " extents", f"{dict(extents)} in parts of {sizes}")  # fmt: skip
        return step
    own = {a: t for a, t in sizes.items() if t < extents[a] or a in differing}
    if is_multicast(step) or len(differing) > 1 or own != {a: extents[a] for a in differing} or not _in_order(differing, extents):
        later(tile, f"loading a part of {step.tensor_name} for only some blocks of the cluster")
    return step.replace(steps=tuple(s for s in step.steps or () if s is not tile))


def _apart(build: Build, begin: Expr) -> list[Expr]:
    """For each block of a cluster, how far its begin is from that of block 0."""
    number = next((v for v in begin.walk() if isinstance(v, Var) and v.name == "block_x"), None)
    if number is None:
        return [index(0)]
    cluster = Var("cluster", INDEX, 0, None)
    found = [simplify(substitute(begin, {number: cluster * build.cluster + rank})) for rank in range(build.cluster)]
    return [simplify(e - found[0]) for e in found]


def _in_order(differing: dict[str, list[Expr]], extents: dict[str, int]) -> bool:
    """Whether the parts that the blocks read follow each other in the order of the blocks."""
    return all(e is index(rank * extents[a]) for a, found in differing.items() for rank, e in enumerate(found))


def _multicasts(build: Build) -> str:
    names = [i.name for i in known() if i.multicast and i.unavailable(build.profile) is None]
    return f"do {' or '.join(names)}" if names else "remove the tile: this device has no copy to all blocks of a cluster"


def rank_of(build: Build) -> Expr:
    """The rank of a block in its cluster."""
    return simplify(Var("block_x", INDEX, 0, build.grid[0] - 1) % build.cluster)
