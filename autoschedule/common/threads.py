"""The part of a schedule's loops that each thread of a block executes: the number of threads, their tiles, the first lane of a warp."""

from __future__ import annotations

import dataclasses
import math

from tilelang.autoschedule.common.accesses import Tile
from tilelang.autoschedule.common.loop_summary import SEQUENTIAL, Loop, Loops
from tilelang.core.lazy import cached_property
from tilelang.instructions.instruction import Instruction, use
from tilelang.profiles.profile import Profile

BLOCK_LEVELS = ("kernel", "cluster", "block")


@dataclasses.dataclass(frozen=True)
class Threads:
    """The threads of a block of a schedule's kernel.

    spread, all: (axis, number of units along it, extent inside) for each loop that is mapped to units.
    """

    loops: Loops
    profile: Profile
    count: int  # including threads that only load
    units: int  # of the narrowest level that a loop is mapped to; warps, if the schedule ends in an instruction
    width: int  # threads of a unit
    block_depth: int  # the number of loops down to the last one that is mapped to blocks
    spread: tuple[tuple[str, int, int], ...]  # of the threads of a warp
    all: tuple[tuple[str, int, int], ...]  # of all units in a block

    def share(self, depth: int) -> dict[str, int]:
        """The extent along each axis that one unit covers inside the first `depth` loops, in all its iterations."""
        found = dict(self.loops.tiles[-1])
        for d in range(max(depth, self.block_depth), len(self.loops.loops)):
            loop = self.loops.loops[d]
            if loop.level == SEQUENTIAL:
                for a, n in loop.rounds:
                    found[a] = found[a] * n
            elif loop.units < loop.total:
                a = loop.rounds[-1][0]
                found[a] = found[a] * -(-loop.total // loop.units)
        return found

    @cached_property
    def points(self) -> int:
        """The points that one unit of one block computes, including those out of bounds."""
        return math.prod(self.share(0).values()) * self.passes

    @cached_property
    def passes(self) -> int:
        """The number of tiles that a persistent block processes, one after another."""
        return math.prod(
            -(-loop.total // loop.units) for loop in self.loops.loops[: self.block_depth] if loop.level != SEQUENTIAL
        )

    def executions(self, depth: int) -> int:
        """How often one unit executes the body of the first `depth` loops."""
        found = 1
        for d in range(self.block_depth, depth):
            loop = self.loops.loops[d]
            found *= loop.total if loop.level == SEQUENTIAL else -(-loop.total // loop.units)
        return found * self.passes

    @cached_property
    def unrolled(self) -> int:
        """The number of unrolled iterations."""
        return math.prod(loop.total for loop in self.loops.loops[self.block_depth :] if loop.level == SEQUENTIAL and loop.unroll)

    def union(self, depth: int) -> dict[str, int]:
        """The extents that all units of a block cover together inside the first `depth` loops."""
        found = dict(self.loops.tiles[-1])
        for d in range(self.block_depth, len(self.loops.loops)):
            loop = self.loops.loops[d]
            for a, n in loop.rounds if d >= depth else _at_once(loop):
                found[a] = found[a] * n
        return {a: min(n, self.loops.nest.extents[a]) for a, n in found.items()}

    @cached_property
    def block_tile(self) -> Tile:
        return self.loops.tiles[self.block_depth]

    def whole_block(self, depth: int) -> bool:
        """Whether none of the first `depth` loops is mapped to units within a block."""
        return all(loop.level == SEQUENTIAL for loop in self.loops.loops[self.block_depth : depth])

    @cached_property
    def reading_depth(self) -> int:
        """The number of loops around the reads of a unit that it does not keep: down to the innermost loop over a reduction, or mapped
        to units."""
        reduced = self.loops.nest.reduced_extents
        depth = self.block_depth
        for d, loop in enumerate(self.loops.loops):
            if loop.level != SEQUENTIAL or any(a in reduced for a, _ in loop.rounds):
                depth = max(depth, d + 1)
        return depth


def threads_of_level(level: str, profile: Profile) -> int:
    return (profile.level(level).threads if profile.has_level(level) else profile.warp_size * 4) or 1


def threads_at(loops: Loops, depth: int, profile: Profile) -> int | None:
    """The threads of the unit that executes the body of the first `depth` loops; None if that is the block."""
    inner = [loop.level for loop in loops.loops[:depth] if loop.level not in (SEQUENTIAL, *BLOCK_LEVELS)]
    return threads_of_level(inner[-1], profile) if inner else None


def _at_once(loop: Loop) -> list[tuple[str, int]]:
    """The number of units along each axis that run at the same time; 1 for a sequential loop."""
    found, left = [], loop.units
    for a, n in reversed(loop.rounds):
        here = min(n, left)
        left = -(-left // max(1, here))
        found.append((a, here))
    return found[::-1]


def threads_of(loops: Loops, profile: Profile) -> Threads:
    """The threads of a block of a schedule's kernel."""
    block_depth = max((d + 1 for d, loop in enumerate(loops.loops) if loop.level in BLOCK_LEVELS), default=0)
    inner = [(d, loop) for d, loop in enumerate(loops.loops) if d >= block_depth and loop.level != SEQUENTIAL]
    units = math.prod(loop.units for _, loop in inner)
    narrowest = inner[-1][1].level if inner else "thread"
    role = next((team for team in loops.teams if team.role == narrowest), None)
    width = threads_of_level(role.level if role is not None else narrowest, profile)
    count = sum(team.count * threads_of_level(team.level, profile) for team in loops.teams) or _spread_threads(loops, profile)
    every: list[tuple[str, int, int]] = []
    lanes: list[tuple[str, int, int]] = []
    for d, loop in inner:
        taken = [(a, n, loops.tiles[d + 1][a]) for a, n in _at_once(loop)]
        every += taken
        if loop.level == "thread":
            lanes += taken
    return Threads(loops, profile, count, units, width, block_depth, tuple(lanes), tuple(every))


def _spread_threads(loops: Loops, profile: Profile) -> int:
    """The threads of a block without `units`: the product of the parallel loops, where those within a unit fill it."""
    total, inside = 1, 1
    for loop in loops.loops:
        if loop.level != SEQUENTIAL and loop.level not in BLOCK_LEVELS:
            here = threads_of_level(loop.level, profile)
            total *= 1 if inside > 1 else (loop.count or loop.total) * here
            inside = here
    return total


def described(loops: Loops) -> Instruction | None:
    """The instruction at the end of a schedule, if it reads its operands from shared memory."""
    made = use(loops.instruction) if loops.instruction is not None else None
    if made is None or made.kind != "update" or any(made.operand(n).memory != "shared" for n in made.reads if n != made.writes):
        return None
    return made
