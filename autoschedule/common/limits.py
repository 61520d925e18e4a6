"""The resources that a kernel needs and those that a device has: threads, blocks of a grid, shared memory, registers.

Each limit is a rule that drops candidates (prune.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tilelang.autoschedule.common.accesses import Tile
from tilelang.autoschedule.common.loop_summary import Loops
from tilelang.autoschedule.common.threads import BLOCK_LEVELS, Threads, threads_at, threads_of, threads_of_level
from tilelang.instructions.instruction import known
from tilelang.profiles.profile import Profile
from tilelang.schedules.steps import Hole, Step, Units
from tilelang.schedules.steps import Tile as Spread
from tilelang.schedules.unit_numbering import order_extents
from tilelang.schedules.walk import Extents, walk_steps


def limits(loops: Loops, profile: Profile) -> Iterator[tuple[str, bool]]:
    """The rules about the device's resources, each with whether a kernel breaks it."""
    threads = threads_of(loops, profile)
    yield "threads", threads.count > profile.max_block_threads
    yield "grid", not takes_blocks(threads)
    shared, registers = (profile.memory(n).capacity_bytes if profile.has_memory(n) else None for n in ("shared", "register"))
    yield "shared", shared is not None and shared_bytes(threads) > shared
    sharing = threads.width if loops.instruction is not None else 1  # threads that share the registers
    yield "registers", registers is not None and loops.held_bytes("register") > registers * sharing


def takes_blocks(threads: Threads) -> bool:
    """Whether the device's grid can have as many blocks as a kernel launches."""
    loops, profile = threads.loops, threads.profile
    for loop in loops.loops:
        if loop.level == "block":
            rounds = dict(loop.rounds)
            wide = [n for n in rounds.values() if n > 1]
            if loop.count is None and loop.order is None and profile.tells_apart(wide):
                return profile.most_blocks(threads.count) >= max(wide[-1:], default=1)
            total = math.prod(order_extents(loop.order, rounds) if loop.order is not None else wide)
            return profile.most_blocks(threads.count) >= min(total, loop.count or total)
    return True


def fills_units(steps: Sequence[Step], extents: Extents, profile: Profile) -> bool:
    """Whether the tiles mapped to the parts of a unit, such as the threads of a warp, fill all of these parts. True if this is
    unknown."""
    inside = 1
    for w in walk_steps(extents, steps):
        step = w.step
        if isinstance(step, Units):
            return True  # a number of units is given, so each unit processes several tiles
        if not isinstance(step, Spread) or step.level in BLOCK_LEVELS:
            continue
        here = threads_of_level(step.level, profile)
        count = math.prod(w.rounds.values()) if step.count is None else step.count
        is_known = len(w.rounds) == len(step.sizes) and step.order is None
        if inside > 1 and is_known and not isinstance(count, Hole) and count * here != inside:
            return False
        inside = here
    return True


def shared_bytes(threads: Threads) -> int:
    """The shared memory of a block. Partial results reuse the memory of the operands, unless these are still needed."""
    loops, profile = threads.loops, threads.profile
    partial = _partial_result_bytes(loops, loops.nest.extents, threads.count, threads.count, profile)
    for p in loops.places:
        if p.stage is not None and not p.apart:
            inside = threads_at(loops, p.depth, profile) or threads.count
            partial = max(partial, _partial_result_bytes(p.stage, p.tile, inside, threads.count, profile))
    held = loops.held_bytes("shared")
    return held + partial if loops.operands_stay_live else max(held, partial)


def _partial_result_bytes(loops: Loops, tile: Tile, inside: int, count: int, profile: Profile) -> int:
    """The shared memory in which threads that share a reduction combine their partial results; 0 if they are lanes of one warp that use
    shuffles. tile: the extents that the loops cover; inside: the threads that execute them; count: the threads of the block."""
    threads = threads_of(loops, profile)
    reduced, reach, inner = loops.nest.reduced_extents, 1, threads.width
    for axis, units, _ in reversed(threads.all):
        inner *= units
        if axis in reduced and units > 1:
            reach = min(inner, inside)
    lanes = profile.warp_size
    if reach == 1 or (count % lanes == 0 and lanes % reach == 0 and _has_shuffles(profile)):
        return 0
    depth = next((p.depth for p in loops.places if p.verb == "accumulate"), 0)
    share = threads.share(depth)
    results = math.prod(min(share[a.name], tile.get(a.name, a.extent)) for a in loops.nest.spatial)
    return -(-results // threads.width) * count * loops.nest.state_bytes


def _has_shuffles(profile: Profile) -> bool:
    """Whether the device has warp shuffles in each of its dialects."""
    moves = (i for i in known() if i.kind == "move" and "shuffle" in i.needs and i.lanes == profile.warp_size)
    return any(i.unavailable(profile) is None and set(profile.dialects) <= set(i.dialects) for i in moves)
