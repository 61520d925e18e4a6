"""Common parts of probes: one axis mapped to lanes as the device has them, and the cycle in which they count."""

from __future__ import annotations

from typing import Any

from tilelang.autoschedule.profile.bench import Bench
from tilelang.autoschedule.profile.findings import Findings, NotApplicable
from tilelang.profiles.profile import block, thread
from tilelang.schedules.schedule import Schedule

OTHER = 0.1  # the share by which two counts must differ to be reported
QUAD = 4  # elements per access of a thread on a GPU


def lanes_of(bench: Bench, vectors: int) -> int:
    """The number of elements in `vectors` vectors of each lane of a block."""
    return bench.threads * QUAD * vectors if bench.lockstep else bench.lanes * vectors


def cycle_ns(bench: Bench, found: Findings) -> float | None:
    """The time of a cycle: measured, or from a clock that documents or the driver state; None if neither is known."""
    clock = found.known.get("clock_ghz")
    by_documents = 1 / clock if clock and not (found.so_far or bench.profile).assumed("rates.clock_ghz") else None
    return found.known.get("cycle_ns", by_documents)


def several_threads(bench: Bench) -> None:
    """Raises NotApplicable if blocks of source texts have a single thread: on a CPU, more threads would be iterations of a loop."""
    if not bench.meets:
        raise NotApplicable("a block is one thread of a core: threads of a block are rounds of its loops")


def count(bench: Bench, found: Findings, path: str, value: int | float, how: str) -> None:
    """Records a measured number under its path in a profile, unless documents state it; if they do and it differs, adds a remark."""
    table, *_, name = path.split(".")
    rates = dict(bench.profile.rates)
    told = rates.get(name) if table == "rates" else getattr(bench.profile.memory(path.split(".")[1]), name)
    if told and not bench.profile.assumed(path):
        if abs(value / told - 1) > OTHER:
            found.remarks.append(f"{name} seems to be {value:g}, documents say {told:g}")
    elif table == "rates":
        found.rate(name, value, how)
    else:
        found.fact(path.split(".")[1], name, int(value), how)


def across(bench: Bench, schedule: Schedule, axis: str, vectors: int = 1) -> Schedule:
    """An axis of `lanes_of(bench, vectors)` elements mapped to threads with vectors of four, or to the vector lanes of a
    single thread."""
    if not bench.lockstep:
        return schedule.vectorize(**{axis: bench.lanes * vectors})
    quads: dict[str, Any] = {axis: QUAD}
    owned = schedule.tile(**{axis: QUAD * vectors}).to(thread)
    return (owned if vectors == 1 else owned.split(**quads, unroll=True)).vectorize(**quads)


def in_blocks(schedule: Schedule, **tile: int) -> Schedule:
    """Maps tiles to blocks, such as one element of each axis."""
    return schedule.tile(**tile).to(block)
