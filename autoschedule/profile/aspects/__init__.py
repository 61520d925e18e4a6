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
    "sustained": Aspect("multiply-adds for several seconds: the clock under load", arithmetic.sustained),
    "functions": Aspect("cycles of functions, divisions, conversions, integers", arithmetic.functions, needs=("clock",)),
    "moves": Aspect("cycles of copies into shared memory", moves.moves, needs=("clock",)),
    "lanes": Aspect("lanes in lockstep, and the granularity of threads", threads.together),
    "threads": Aspect("multiply-adds against threads, and against the lanes of a vector", threads.busy),
    "residents": Aspect("occupancy: blocks, threads and shared memory of a core", residence.residents),
    "registers": Aspect("registers of a thread, and whether threads share a pool of them", residence.registers),
    "local": Aspect("local memory: bandwidth compared with a buffer, access widths, banks", local.local),
    "contiguity": Aspect("read bandwidth against the length of contiguous runs", access.contiguity),
    "rows": Aspect("rows that the hardware prefetcher follows at once", access.rows),
    "near": Aspect("bandwidth of one core from the shared cache", access.near, needs=("clock", "footprint")),
    "atomics": Aspect("atomic additions, in global and in local memory", exchange.atomics),
    "shuffles": Aspect("warp shuffles", exchange.shuffles, needs=("clock",)),
    "types": Aspect("multiply-adds of other types, and special functions", types.types),
    "matrix": Aspect("matrix instructions, by shape, type and memory of the operands", units.matrix),
    "copies": Aspect("asynchronous copies to shared memory, compared with loads by threads", units.copies),
    "images": Aspect("image bandwidth, the direction of cache lines, and the value of reads outside", images.images),
    "model": Aspect(
        "scale factors of the cost model, from the times of a dozen schedules",
        model.model,
        needs=("clock", "launch", "footprint", "latency", "multiply-add", "functions", "moves"),
    ),
}
