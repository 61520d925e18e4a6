"""What probes have in common: one axis over lanes, as a device has them, and the cycle that they count in."""

from __future__ import annotations

from typing import Any

from tilelang.autoschedule.profile.bench import Bench
from tilelang.autoschedule.profile.findings import Findings, NotApplicable
from tilelang.profiles.profile import block, thread
from tilelang.schedules.schedule import Schedule

OTHER = 0.1  # of a count, by which another one differs
QUAD = 4  # elements of a thread's access where threads run together


def lanes_of(bench: Bench, vectors: int) -> int:
    """Elements that the lanes of a block have together, with `vectors` each."""
    return bench.threads * QUAD * vectors if bench.lockstep else bench.lanes * vectors


def cycle_ns(bench: Bench, found: Findings) -> float | None:
    """The time of a cycle: as it was measured, else by the clock that documents or the driver tell; None where nobody says."""
    clock = found.known.get("clock_ghz")
    by_documents = 1 / clock if clock and not (found.so_far or bench.profile).assumed("rates.clock_ghz") else None
    return found.known.get("cycle_ns", by_documents)


def several_threads(bench: Bench) -> None:
    """Raises NotApplicable where the blocks of texts have one thread, a core's: on a processor others would be rounds of a loop."""
    if not bench.meets:
        raise NotApplicable("a block is one thread of a core: threads of a block are rounds of its loops")


def count(bench: Bench, found: Findings, path: str, value: int | float, how: str) -> None:
    """Notes what documents tell exactly, by its path in a profile, where none does; where one does, a remark if it is another."""
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
    """An axis of `lanes_of(bench, vectors)` elements over threads with vectors of four, or over the lanes of vectors of one thread."""
    if not bench.lockstep:
        return schedule.vectorize(**{axis: bench.lanes * vectors})
    quads: dict[str, Any] = {axis: QUAD}
    owned = schedule.tile(**{axis: QUAD * vectors}).to(thread)
    return (owned if vectors == 1 else owned.split(**quads, unroll=True)).vectorize(**quads)


def in_blocks(schedule: Schedule, **tile: int) -> Schedule:
    """A tile of one element of each axis for a block."""
    return schedule.tile(**tile).to(block)
