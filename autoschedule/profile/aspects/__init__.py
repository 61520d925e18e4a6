"""The probes, by aspect: each asks a device one thing and notes what it finds.

A version that rises makes files that were measured before ask again. needs: the aspects whose rates it asks for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from tilelang.autoschedule.profile.aspects import arithmetic, bandwidth, latency, launches, model, moves
from tilelang.autoschedule.profile.bench import Bench
from tilelang.autoschedule.profile.findings import Findings


@dataclasses.dataclass(frozen=True)
class Aspect:
    """One question to a device."""

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
    "model": Aspect(
        "how much longer than the model counts a dozen schedules take",
        model.model,
        needs=("clock", "launch", "footprint", "latency", "multiply-add", "functions", "moves"),
    ),
}
