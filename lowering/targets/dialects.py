"""The dialects that kernels are emitted in, by name, and the passes that a target needs beside those of every target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilelang.lowering.targets import cpu, cuda, hip, opencl

if TYPE_CHECKING:
    from tilelang.lowering.drivers.interface import Device

DIALECTS = {dialect.name: dialect for dialect in (cpu.DIALECT, cuda.DIALECT, hip.DIALECT, opencl.DIALECT)}


def needs(dialect: str, device: Device | None) -> tuple[str, ...]:
    """The passes that kernels of a dialect need, and those that work around faults of a device's compiler."""
    return (*DIALECTS[dialect].passes, *(() if device is None else device.workarounds))
