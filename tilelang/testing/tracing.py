"""Holds a simulated kernel against the naive reading of its schedule: who wrote each element of the output."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelang.lowering import ir, simulate
from tilelang.lowering.memory_model import Watched
from tilelang.machine import Profile
from tilelang.schedule import Schedule
from tilelang.testing.case import arrays
from tilelang.testing.naive import Owners, owners

THREAD_LEVELS = ("warpgroup", "warp", "thread")


def read_owners(schedule: Schedule, profile: Profile) -> Owners:
    """The naive reading of a schedule for a device. Raises NotRead."""
    levels = {f.name: f.threads or 1 for f in profile.levels if f.name in THREAD_LEVELS}
    return owners(schedule.computation, schedule.steps, levels)


def check_owners(program: ir.Program, schedule: Schedule, known: Owners) -> list[str]:
    """Where a simulated program writes an element of the output that the schedule gives to other units, or leaves one unwritten."""
    return compared(known, written(program, schedule, known))


def written(program: ir.Program, schedule: Schedule, known: Owners) -> Any:
    """Who writes what of the output when a program is simulated: each (element, block, thread) once, in columns."""
    writes: list[Any] = []

    def watch(seen: Watched) -> None:
        if seen.writes and seen.buffer.name == known.tensor.name:
            batch, thread = seen.memory.batch, seen.touch.thread
            writes.append(np.stack([seen.touch.element, batch.block[thread], batch.thread[thread]]))

    given = arrays(schedule.computation)
    inputs = {b.name: np.asarray(given[b.name], b.dtype.numpy).reshape(b.shape) for b in program.buffers if b.role == "input"}
    simulate.run(program, inputs, watch=watch)
    return np.unique(np.concatenate(writes, axis=1), axis=1) if writes else np.zeros((3, 0), np.int64)


def compared(known: Owners, found: Any) -> list[str]:
    """Where writes, (element, block, thread) in columns, are by others than the owners. Units of one width never overlap in part."""
    owned = np.unique(np.stack([known.element, known.block, known.first]), axis=1)
    starts = np.unique(known.first)
    at = np.searchsorted(starts, found[2], side="right") - 1
    first = starts[np.maximum(at, 0)] if starts.size else found[2]
    inside = (at >= 0) & (found[2] < first + known.width)
    have = {tuple(c) for c in owned.T.tolist()}
    wrong = [c for c, f, ok in zip(found.T.tolist(), first.tolist(), inside.tolist(), strict=True)
             if not ok or (c[0], c[1], f) not in have]  # fmt: skip
    name, shape = known.tensor.name, known.tensor.shape
    faults = []
    if wrong:
        e, b, t = wrong[0]
        where = [int(i) for i in np.unravel_index(e, shape)] if shape else []
        faults.append(f"{len(wrong)} writes by others than the owners: thread {t} of block {b} wrote {name}{where}")
    missing = np.setdiff1d(owned[0], found[0])
    if missing.size:
        faults.append(f"{missing.size} elements of {name} are not written")
    return faults
