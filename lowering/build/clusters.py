"""Clusters of blocks: how many blocks make one, and the schedule with its blocks directly below its clusters.

A cluster is that many neighbours along the grid's first dimension: the number of the cluster is block_x // n, that of a block in it
block_x % n. What a schedule says between `-> cluster` and `-> block` is about all blocks of a cluster; cutting other axes than the
blocks' tile does, it means the same below that tile, where every block does its part.
"""

from __future__ import annotations

import dataclasses

from tilelang.check import advance, later
from tilelang.errors import Refusal
from tilelang.expr import INDEX, Expr, Var
from tilelang.lowering.build.base import refuse
from tilelang.lowering.build.frame import Build
from tilelang.lowering.build.spreads import numbers, units_numbered
from tilelang.machine import Profile
from tilelang.simplify import simplify
from tilelang.spec import Spec, root_spec
from tilelang.steps import Fuse, Place, Split, Step, Tile, Unfuse, Units
from tilelang.task import Task


@dataclasses.dataclass(frozen=True)
class Clusters:
    """blocks: of one cluster; steps: of the schedule, its blocks' tile directly below its clusters'."""

    blocks: int
    steps: tuple[Step, ...]


def plan_clusters(task: Task, steps: tuple[Step, ...], profile: Profile) -> Clusters:
    """The clusters of a schedule; of one block where it has none. Raises Refusal."""
    said = next((s for s in steps if isinstance(s, Units) and s.level == "cluster"), None)
    tiles = [k for k, s in enumerate(steps) if isinstance(s, Tile) and s.level == "cluster"]
    steps = tuple(s for s in steps if s is not said)
    if not tiles:
        blocks = 1 if said is None else _said(said, profile)
        return Clusters(blocks if _has_blocks(task, steps, blocks) else 1, steps)
    first = tiles[0] - (said is not None)
    tile = steps[first]
    assert isinstance(tile, Tile)
    if not profile.has_level("cluster"):
        raise no_clusters(tile, profile)
    if len(tiles) > 1:
        raise refuse(steps[tiles[1] - (said is not None)], "clusters-twice", f"`{tile}` has given tiles to clusters before",
                     "give all of them to clusters in one tile")  # fmt: skip
    inner, between, rest = _blocks_below(steps, first)
    for step in between:
        _check_between(step, inner)
    for step in rest:
        _check_braces(step)
    spec = _before(task, steps[:first])
    if any(spec.axis(a).reduction for a, _ in inner.sizes):
        later(inner, "a reduction spread over the blocks of a cluster")
    blocks = _said(said, profile) if said is not None else _derived(spec, tile, inner, profile)
    return Clusters(blocks, (*steps[: first + 1], inner, *between, *rest))


def no_clusters(step: Step, profile: Profile) -> Refusal:
    """That a device has no clusters."""
    return refuse(step, "level-not-here", f"`{step}`: the profile `{profile.name}` has no level `cluster`",
                  "Levels of this profile: " + ", ".join(profile.level_names))  # fmt: skip


def _said(step: Units, profile: Profile) -> int:
    (team,) = step.teams
    _check_count(step, team.count, profile)
    return team.count


def _derived(spec: Spec, tile: Tile, inner: Tile, profile: Profile) -> int:
    """As many blocks as the blocks' tile has tiles in a cluster's."""
    extents = {a.name: a.extent for a in spec.axes} | numbers(tile)
    blocks = units_numbered(inner.order, {a: max(1, -(-extents[a] // t)) for a, t in numbers(inner).items()})
    _check_count(inner, blocks, profile)
    return blocks


def _check_count(step: Step, blocks: int, profile: Profile) -> None:
    most = profile.level("block").max_count or 1
    if blocks > most:
        raise refuse(step, "too-many-units", f"`{step}`: a cluster of {blocks} blocks; the profile `{profile.name}` has at most {most}",
                     f"at most {most} blocks")  # fmt: skip


def _has_blocks(task: Task, steps: tuple[Step, ...], blocks: int) -> bool:
    """Whether a schedule without tiles for clusters gives some to blocks, which clusters may have more of than there are tiles.

    Every block that shares a reduction must have a partial result.
    """
    for k, tile in enumerate(steps):
        if isinstance(tile, Tile) and tile.level == "block":
            spec = _before(task, steps[:k])
            if blocks > 1 and any(spec.axis(a).reduction for a, _ in tile.sizes):
                later(tile, "a reduction spread over blocks that make clusters")
            return True
    return False


def _before(task: Task, steps: tuple[Step, ...]) -> Spec:
    """The spec behind some steps above the blocks."""
    spec = root_spec(task)
    for s in steps:
        if isinstance(s, (Fuse, Unfuse, Split)):
            spec = advance(spec, s, task, {})
    return spec


def _blocks_below(steps: tuple[Step, ...], first: int) -> tuple[Tile, tuple[Step, ...], tuple[Step, ...]]:
    """The tile of a cluster's blocks, what stands above it, and what below; one block has all where nothing else is said."""
    for k in range(first + 1, len(steps)):
        step = steps[k]
        if isinstance(step, Tile) and step.level == "block":
            return step, steps[first + 1 : k], steps[k + 1 :]
        if isinstance(step, Tile):
            later(step, "a tile of a cluster to units below its blocks, with none to the blocks between,")
    tile = steps[first]
    assert isinstance(tile, Tile)
    return Tile(tile.sizes, "block"), (), steps[first + 1 :]


def _check_between(step: Step, inner: Tile) -> None:
    """Refuses what does not mean the same below the blocks' tile."""
    cut = {a for a, _ in inner.sizes}
    if isinstance(step, Place):
        kept = step.verb == "accumulate" and step.memory == "register" or step.verb == "load" and step.memory == "shared"
        if kept and not any(isinstance(s, Tile) and s.level == "block" for s in step.steps or ()):
            return
    if isinstance(step, Split) and not cut & {a for a, _ in step.sizes}:
        return
    later(step, f"above `{inner}`, what all blocks of a cluster do together,")


def _check_braces(step: Step) -> None:
    """Only what stands above the blocks can be given to the blocks of a cluster."""
    for s in step.steps or () if isinstance(step, Place) else ():
        if isinstance(s, Tile) and s.level in ("block", "cluster"):
            raise refuse(s, "blocks-twice", f"`{s}`: tiles were given to blocks before", "give all of them to blocks in one tile")


def rank_of(build: Build) -> Expr:
    """The number of a block in its cluster."""
    return simplify(Var("block_x", INDEX, 0, max(1, build.grid[0]) - 1) % build.cluster)
