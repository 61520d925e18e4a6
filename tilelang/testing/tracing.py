"""Holds a simulated kernel against the naive reading of its schedule: who wrote each element, and who read what it needs, no more."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from tilelang.arguments import inputs
from tilelang.computation import Tensor
from tilelang.evaluator import Evaluator
from tilelang.lowering import ir, simulate
from tilelang.lowering.memory_model import Watched
from tilelang.machine import Profile
from tilelang.schedule import Schedule
from tilelang.steps import Place, Step
from tilelang.testing.case import arrays
from tilelang.testing.naive import Owners, owners, owners_before, resolved
from tilelang.testing.reach import NotRead

THREAD_LEVELS = ("warpgroup", "warp", "thread")
Array = Any


def _levels(profile: Profile) -> dict[str, int]:
    return {f.name: f.threads or 1 for f in profile.levels if f.name in THREAD_LEVELS}


def read_owners(schedule: Schedule, profile: Profile) -> Owners:
    """The naive reading of a schedule for a device. Raises NotRead."""
    return owners(schedule.computation, schedule.steps, _levels(profile))


def check_owners(program: ir.Program, schedule: Schedule, known: Owners) -> list[str]:
    """Where a simulated program writes an element of the output that the schedule gives to other units, or leaves one unwritten."""
    trace, given = Trace(), arrays(schedule.computation)
    held = {b.name: np.asarray(given[b.name], b.dtype.numpy).reshape(b.shape) for b in program.buffers if b.role == "input"}
    simulate.run(program, held, watch=trace)
    return compared(known, trace.writes(known.tensor.name))


class Trace:
    """A watcher of `simulate.run` that keeps who wrote and read each element of global memory."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str, bool], list[Array]] = defaultdict(list)

    def __call__(self, seen: Watched) -> None:
        if seen.buffer.memory == "global":
            batch, thread = seen.memory.batch, seen.touch.thread
            code = np.stack([seen.touch.element, batch.block[thread], batch.thread[thread]])
            self._seen[batch.kernel.name, seen.buffer.name, seen.writes].append(code)

    def same(self, other: Trace) -> bool:
        """Whether both saw the same threads touch the same elements."""
        keys = self._seen.keys() | other._seen.keys()
        return all(np.array_equal(self._columns([self._seen.get(k, [])]), self._columns([other._seen.get(k, [])])) for k in keys)

    def kernel(self, buffers: Collection[str]) -> str | None:
        """The kernel that writes one of these buffers."""
        return next((k for k, b, writes in self._seen if b in buffers and writes), None)

    def writes(self, buffer: str) -> Array:
        """(element, block, thread) of all writes, each once, in columns."""
        return self._columns([c for (_, b, writes), c in self._seen.items() if b == buffer and writes])

    def reads(self, kernel: str, buffer: str) -> Array:
        """The same of what a kernel reads."""
        return self._columns([self._seen.get((kernel, buffer, False), [])])

    @staticmethod
    def _columns(found: list[list[Array]]) -> Array:
        columns = [c for one in found for c in one]
        return np.unique(np.concatenate(columns, axis=1), axis=1) if columns else np.zeros((3, 0), np.int64)


class Reading:
    """The naive reading of every kernel of a schedule that has steps. Raises NotRead."""

    def __init__(self, schedule: Schedule, profile: Profile, given: Mapping[str, Any]) -> None:
        computation, levels = schedule.computation, _levels(profile)
        steps = resolved(computation, schedule.steps)
        self.known = [owners(computation, steps, levels), *owners_before(computation, steps, levels)]
        self.computation, self.given = computation, given
        self._values: dict[Tensor, Array] | None = None
        # What is fetched for all units of a block is not fetched by the one that needs it.
        self.by_unit = not any(s.verb in ("load", "compute") and s.memory not in ("l1", "l2") for s in _places(steps))
        self.repacked = {s.tensor_name for s in _places(steps) if s.verb == "load" and s.memory == "global"}

    def faults(self, trace: Trace) -> list[str]:
        """Where a simulated program did not do what the steps say."""
        found = []
        for known in self.known:
            found += compared(known, trace.writes(known.tensor.name))
            kernel = trace.kernel({f"{t.name}_partial" for t in known.states} if known.over_blocks else {known.tensor.name})
            try:
                found += self._reads(known, kernel, trace) if kernel is not None else []
            except NotRead as unknown:
                tally[f"who reads: {unknown}"] += 1
        mine = {k.tensor.name for k in self.known}
        for t in self.computation.outputs:
            if t.name not in mine and np.unique(trace.writes(t.name)[0]).size < np.prod(t.shape):
                found.append(f"elements of {t.name} are not written")
        return found

    def _reads(self, known: Owners, kernel: str, trace: Trace) -> Iterator[str]:
        values = self._evaluated()
        needed, allowed = (known.reach(values, self.by_unit, sure) for sure in (True, False))
        for tensor in self.computation.inputs:
            if tensor.name in self.repacked:
                continue
            element, block, thread = trace.reads(kernel, tensor.name)
            unit = block
            if self.by_unit:
                starts = np.unique(known.unit)
                first = starts[np.searchsorted(starts, thread, side="right") - 1] if starts.size else thread
                unit, element = ((block * 65536 + first)[thread < first + known.parts], element[thread < first + known.parts])
            size = math.prod(tensor.shape)
            did, must = np.unique(unit * size + element), _numbered(needed, tensor)
            more = np.setdiff1d(did, _numbered(allowed, tensor))
            if more.size and known.loose:
                more = more[:0]
            elif more.size and known.placed:
                # A region has all between the least and the greatest, and units without points help to fetch it.
                region = _numbered(known.reach(values, self.by_unit, False, True), tensor)
                more = np.setdiff1d(more, region)
                more = more[np.isin(more // size, region // size)]
            for wrong, what in ((np.setdiff1d(must, did), "does not read"), (more, "reads without need")):
                if wrong.size:
                    unit_, at = divmod(int(wrong[0]), size)
                    who = f"thread {unit_ % 65536} of block {unit_ // 65536}" if self.by_unit else f"block {unit_}"
                    where = [int(i) for i in np.unravel_index(at, tensor.shape)] if tensor.shape else []
                    yield f"{kernel}: {who} {what} {tensor.name}{where}; {wrong.size} such elements"

    def _evaluated(self) -> dict[Tensor, Array]:
        if self._values is None:
            evaluator = Evaluator(self.computation, inputs(self.computation, (), self.given), errors=False)
            self._values = {t: np.asarray(a.value) for t, a in evaluator.run().items()}
        return self._values


def _numbered(reach: Mapping[Tensor, Array], tensor: Tensor) -> Array:
    """(unit, element) pairs as one number each."""
    pairs = reach.get(tensor, np.zeros((2, 0), np.int64))
    return np.unique(pairs[0] * math.prod(tensor.shape) + pairs[1])


tally: Counter[str] = Counter()


def reading(schedule: Schedule, profile: Profile, given: Mapping[str, Any]) -> Reading | None:
    """The naive reading; None where it does not know a step. `tally` counts both."""
    try:
        made = Reading(schedule, profile, given)
    except NotRead as unknown:
        tally[f"not read: {unknown}"] += 1
        return None
    tally["read"] += 1
    return made


def _places(steps: tuple[Step, ...]) -> Iterator[Place]:
    for s in steps:
        if isinstance(s, Place):
            yield s
            yield from _places(s.steps or ())


def compared(known: Owners, found: Array) -> list[str]:
    """Where writes, (element, block, thread) in columns, are by others than the owners. Units of one width never overlap in part."""
    wrong: list[list[int]] = []
    if not known.over_blocks:
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
    missing = np.setdiff1d(known.element, found[0])
    if missing.size:
        faults.append(f"{missing.size} elements of {name} are not written")
    return faults
