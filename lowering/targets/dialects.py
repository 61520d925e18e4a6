"""The dialects that kernels are emitted in, by name, and the additional passes that a target needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilelang.lowering.targets import cpu, cuda, hip, opencl

if TYPE_CHECKING:
    from tilelang.lowering.drivers.interface import Device

DIALECTS = {dialect.name: dialect for dialect in (cpu.DIALECT, cuda.DIALECT, hip.DIALECT, opencl.DIALECT)}


def needs(dialect: str, device: Device | None) -> tuple[str, ...]:
    """The passes that kernels of a dialect need, and those that work around bugs of a device's compiler."""
    return (*DIALECTS[dialect].passes, *(() if device is None else device.workarounds))
