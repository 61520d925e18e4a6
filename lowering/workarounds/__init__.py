"""Passes that avoid bugs of one compiler: a driver names those that its device needs in `Device.workarounds`.

Each is a pass like any other: a pure function of a kernel that preserves its meaning. Without a device that asks for it, none
runs. They are not part of a profile, which describes hardware. pipeline.py gives their order among the other passes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tilelang.lowering import ir
from tilelang.lowering.workarounds.barrier_at_loop_end import barrier_at_loop_end
from tilelang.lowering.workarounds.diverge_tail_conditions import diverge_tail_conditions
from tilelang.lowering.workarounds.unconditional_barriers import unconditional_barriers

WORKAROUNDS: Mapping[str, Callable[[ir.Kernel], ir.Kernel]] = MappingProxyType(
    {
        "unconditional_barriers": unconditional_barriers,
        "barrier_at_loop_end": barrier_at_loop_end,
        "diverge_tail_conditions": diverge_tail_conditions,
    }
)
