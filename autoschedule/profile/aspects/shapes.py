"""What the probes' schedules have in common: one axis over lanes, as a device has them."""

from __future__ import annotations

from typing import Any

from tilelang.autoschedule.profile.bench import Bench
from tilelang.machine import block, thread
from tilelang.schedule import Schedule

QUAD = 4  # elements of a thread's access where threads run together


def lanes_of(bench: Bench, vectors: int) -> int:
    """Elements that the lanes of a block have together, with `vectors` each."""
    return bench.threads * QUAD * vectors if bench.lockstep else bench.lanes * vectors


def across(bench: Bench, schedule: Schedule, axis: str, vectors: int = 1) -> Schedule:
    """An axis of `lanes_of(bench, vectors)` elements over threads with vectors of four, or over the lanes of vectors of one thread."""
    if not bench.lockstep:
        return schedule.vectorize(**{axis: bench.lanes * vectors})
    quads: dict[str, Any] = {axis: QUAD}
    owned = schedule.tile(**{axis: QUAD * vectors}).to(thread)
    return (owned if vectors == 1 else owned.split(**quads, unroll=True)).vectorize(**quads)


def in_blocks(schedule: Schedule, **tile: int) -> Schedule:
    """A tile of one element of each axis for a block."""
    return schedule.tile(**tile).to(block)
