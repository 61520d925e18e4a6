"""Reads the CPU's description on macOS, from sysctl.

On Apple's CPUs the numbers are those of the performance cores (perflevel0), on which the system runs compute threads.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from tilelang.lowering.drivers.processor import X86_64, Cache, Processor

Said = Callable[[str], bytes | None]  # the value of a sysctl name; None if unknown

_FEATURES = (
    "FEAT_FP16", "FEAT_DotProd", "FEAT_FHM", "FEAT_BF16", "FEAT_I8MM", "FEAT_LSE", "FEAT_SME", "FEAT_SME2", "FEAT_RDM", "FEAT_FCMA",
)  # fmt: skip


def read(machine: str) -> Processor:
    """The CPU of this machine."""
    sysctl = ctypes.CDLL(None).sysctlbyname

    def said(name: str) -> bytes | None:
        size = ctypes.c_size_t()
        if sysctl(name.encode(), None, ctypes.byref(size), None, ctypes.c_size_t(0)):
            return None
        value = ctypes.create_string_buffer(size.value)
        if sysctl(name.encode(), value, ctypes.byref(size), None, ctypes.c_size_t(0)):
            return None
        return value.raw[: size.value]

    return parse(machine, said)


def parse(machine: str, said: Said) -> Processor:
    """A CPU from sysctl values."""

    def number(*names: str) -> int:
        for name in names:
            value = said(name)
            if value is not None:
                return int.from_bytes(value, "little")
        return 0

    def text(name: str) -> str:
        return (said(name) or b"").rstrip(b"\0").decode(errors="replace")

    if machine == X86_64:
        features = " ".join(text(f"machdep.cpu.{name}") for name in ("features", "leaf7_features", "extfeatures")).lower().split()
        features = [_LINUX_NAMES.get(f, f) for f in features]
        vendor = text("machdep.cpu.vendor")
        family, model, stepping = (number(f"machdep.cpu.{n}") for n in ("family", "model", "stepping"))
    else:
        features = [name for name in _FEATURES if number(f"hw.optional.arm.{name}")]
        vendor, family, model, stepping = "Apple", number("hw.cpufamily"), number("hw.cpusubfamily"), 0
    name = text("machdep.cpu.brand_string") or f"{machine} processor"
    logical = number("hw.logicalcpu", "hw.ncpu") or 1
    return Processor(
        machine,
        "macOS",
        vendor,
        name,
        family,
        model,
        stepping,
        frozenset(features),
        logical,
        _caches(number),
        number("hw.memsize"),
    )


_LINUX_NAMES = {"avx1.0": "avx", "sse4.1": "sse4_1", "sse4.2": "sse4_2"}  # only where they differ


def _caches(number: Callable[..., Any]) -> tuple[Cache, ...]:
    line = number("hw.cachelinesize")
    threads = max(1, number("hw.logicalcpu", "hw.ncpu") // max(1, number("hw.physicalcpu")))
    every = number("hw.logicalcpu", "hw.ncpu")
    sizes = [
        (1, "data", number("hw.perflevel0.l1dcachesize", "hw.l1dcachesize"), threads),
        (1, "instruction", number("hw.perflevel0.l1icachesize", "hw.l1icachesize"), threads),
        (2, "unified", number("hw.perflevel0.l2cachesize", "hw.l2cachesize"), number("hw.perflevel0.cpusperl2") or threads),
        (3, "unified", number("hw.perflevel0.l3cachesize", "hw.l3cachesize"), number("hw.perflevel0.cpusperl3") or every),
    ]
    ways = {2: number("machdep.cpu.cache.L2_associativity")}
    return tuple(sorted(Cache(level, kind, size, ways.get(level, 0), line, by) for level, kind, size, by in sizes if size))
