"""The probes, by aspect: each measures one property of a device and records the result.

A higher version makes the aspect be measured again for existing files. needs: the aspects whose rates it uses.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from tilelang.autoschedule.profile.aspects import (
    access,
    arithmetic,
    bandwidth,
    exchange,
    images,
    latency,
    launches,
    local,
    model,
    moves,
    residence,
    threads,
    types,
    units,
)
from tilelang.autoschedule.profile.bench import Bench
from tilelang.autoschedule.profile.findings import Findings


@dataclasses.dataclass(frozen=True)
class Aspect:
    """One property of a device, and the probe that measures it."""

    about: str
    ask: Callable[[Bench, Findings], None]
    version: int = 1
    needs: tuple[str, ...] = ()


ASPECTS = {
    "clock": Aspect("the time of a cycle", arithmetic.clock),
    "launch": Aspect("the cost of a launch, of a block, of a barrier", launches.launches),
    "footprint": Aspect("bandwidth against footprint: reads, writes, copies", bandwidth.footprints, needs=("clock",)),
    "width": Aspect("read bandwidth against the width of an access", bandwidth.widths),
    "blocks": Aspect("read bandwidth against blocks in flight", bandwidth.blocks),
    "latency": Aspect("latency against footprint, by pointer chase", latency.footprints, needs=("clock",)),
    "ways": Aspect(
        "lines that one set of a cache holds, and pages that can be found at once", latency.conflicts, needs=("clock",)
    ),
    "multiply-add": Aspect("multiply-add rate against register tile", arithmetic.multiply_adds, needs=("clock",)),
    "sustained": Aspect("multiply-adds for some seconds: the clock under load", arithmetic.sustained),
    "functions": Aspect("cycles of functions, divisions, conversions, integers", arithmetic.functions, needs=("clock",)),
    "moves": Aspect("cycles of moves into shared memory", moves.moves, needs=("clock",)),
    "lanes": Aspect("lanes that run together, and from how many threads on one more costs time", threads.together),
    "threads": Aspect("multiply-adds against threads, and against the lanes of a vector", threads.busy),
    "residents": Aspect("blocks, threads and shared memory that a core has at once", residence.residents),
    "registers": Aspect("values that a thread keeps, and whether threads share a pool of registers", residence.registers),
    "local": Aspect("local memory: reads of it beside reads of a buffer, widths, banks", local.local),
    "contiguity": Aspect("read bandwidth against bytes side by side", access.contiguity),
    "rows": Aspect("rows that the hardware prefetcher follows at once", access.rows),
    "near": Aspect("what one core takes from the cache of all", access.near, needs=("clock", "footprint")),
    "atomics": Aspect("additions that must not be lost, in memory and in local memory", exchange.atomics),
    "shuffles": Aspect("values from lane to lane", exchange.shuffles, needs=("clock",)),
    "types": Aspect("multiply-adds of other types, and of the unit for special functions", types.types),
    "matrix": Aspect("matrix instructions, by shape, type and where operands come from", units.matrix),
    "copies": Aspect("asynchronous copies to shared memory, beside loads by threads", units.copies),
    "images": Aspect("image bandwidth, the direction of lines, and what a read outside gives", images.images),
    "model": Aspect(
        "how much longer than the model counts a dozen schedules take",
        model.model,
        needs=("clock", "launch", "footprint", "latency", "multiply-add", "functions", "moves"),
    ),
}
