"""The share of each thread of a block in the loops of a schedule: the number of threads, their tiles, the first lane of a warp."""

from __future__ import annotations

import dataclasses
import math

from tilelang.autoschedule.common.loop_summary import WALK, Loop, Loops
from tilelang.autoschedule.common.task_accesses import Tile
from tilelang.core.lazy import cached_property
from tilelang.instructions.instruction import Instruction, use
from tilelang.profiles.profile import Profile

BLOCK_LEVELS = ("kernel", "cluster", "block")


@dataclasses.dataclass(frozen=True)
class Threads:
    """The threads of a block of a schedule's kernel.

    count: of them, those that only load with them. units: of the narrowest level that the schedule spreads over, which
    are warps where an instruction ends it, of `width` threads each. block_depth: loops down to and with those over blocks. spread: of
    a warp's lanes, `all` of the block's units.
    """

    loops: Loops
    profile: Profile
    count: int
    units: int
    width: int
    block_depth: int
    spread: tuple[tuple[str, int, int], ...]
    all: tuple[tuple[str, int, int], ...]

    def share(self, depth: int) -> dict[str, int]:
        """The extent along every axis of what one unit has inside the first `depth` loops, in all its rounds."""
        found = dict(self.loops.tiles[-1])
        for d in range(max(depth, self.block_depth), len(self.loops.loops)):
            loop = self.loops.loops[d]
            if loop.level == WALK:
                for a, n in loop.rounds:
                    found[a] = found[a] * n
            elif loop.units < loop.total:
                a = loop.rounds[-1][0]
                found[a] = found[a] * -(-loop.total // loop.units)
        return found

    @cached_property
    def points(self) -> int:
        """Points of the nest that one unit of one block computes, those outside its bounds included."""
        return math.prod(self.share(0).values()) * self.passes

    @cached_property
    def passes(self) -> int:
        """Rounds of blocks that are given several tiles each."""
        return math.prod(-(-loop.total // loop.units) for loop in self.loops.loops[: self.block_depth] if loop.level != WALK)

    def walked(self, depth: int) -> int:
        """How often one unit comes to what stands inside the first `depth` loops."""
        found = 1
        for d in range(self.block_depth, depth):
            loop = self.loops.loops[d]
            found *= loop.total if loop.level == WALK else -(-loop.total // loop.units)
        return found * self.passes

    @cached_property
    def unrolled(self) -> int:
        """Rounds of unrolled walks."""
        return math.prod(loop.total for loop in self.loops.loops[self.block_depth :] if loop.level == WALK and loop.unroll)

    def union(self, depth: int) -> dict[str, int]:
        """The extents of what all units of a block have together inside the first `depth` loops."""
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
        """Whether no units have been told apart within a block yet."""
        return all(loop.level == WALK for loop in self.loops.loops[self.block_depth : depth])

    @cached_property
    def reading_depth(self) -> int:
        """Inside which loops a unit reads what it does not keep: the innermost walk over a reduction, else the leaf's."""
        reduced = self.loops.nest.reduced_extents
        depth = self.block_depth
        for d, loop in enumerate(self.loops.loops):
            if loop.level != WALK or any(a in reduced for a, _ in loop.rounds):
                depth = max(depth, d + 1)
        return depth


def threads_of_level(level: str, profile: Profile) -> int:
    return (profile.level(level).threads if profile.has_level(level) else profile.warp_size * 4) or 1


def threads_at(loops: Loops, depth: int, profile: Profile) -> int | None:
    """The threads of the unit that comes to what stands inside the first `depth` loops; None where that is a block."""
    inner = [loop.level for loop in loops.loops[:depth] if loop.level not in (WALK, *BLOCK_LEVELS)]
    return threads_of_level(inner[-1], profile) if inner else None


def _at_once(loop: Loop) -> list[tuple[str, int]]:
    """How many units of a loop lie along each axis in one round of theirs; a walk is one."""
    found, left = [], loop.units
    for a, n in reversed(loop.rounds):
        here = min(n, left)
        left = -(-left // max(1, here))
        found.append((a, here))
    return found[::-1]


def threads_of(loops: Loops, profile: Profile) -> Threads:
    """The threads of a block of a schedule."""
    block_depth = max((d + 1 for d, loop in enumerate(loops.loops) if loop.level in BLOCK_LEVELS), default=0)
    inner = [(d, loop) for d, loop in enumerate(loops.loops) if d >= block_depth and loop.level != WALK]
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
    """The threads of a block where no step says how many: the product of the spreads below it, where those within a unit fill it."""
    total, inside = 1, 1
    for loop in loops.loops:
        if loop.level != WALK and loop.level not in BLOCK_LEVELS:
            here = threads_of_level(loop.level, profile)
            total *= 1 if inside > 1 else (loop.count or loop.total) * here
            inside = here
    return total


def described(loops: Loops) -> Instruction | None:
    """The instruction that ends a schedule, where it takes its operands from shared memory by itself."""
    made = use(loops.instruction) if loops.instruction is not None else None
    if made is None or made.kind != "update" or any(made.operand(n).memory != "shared" for n in made.reads if n != made.writes):
        return None
    return made
