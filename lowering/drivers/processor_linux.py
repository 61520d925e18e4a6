"""Reads the CPU's description on Linux: the first entry of /proc/cpuinfo, and the folders in /sys that describe a core's caches.

Only the first entry is read, because the kernel generates each core's text on demand, and there may be hundreds.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tilelang.lowering.drivers.processor import ARM64, Cache, Processor

CPUINFO, CORES = Path("/proc/cpuinfo"), Path("/sys/devices/system/cpu")
_FIRST_BYTES = 8192
_KINDS = {"Data": "data", "Instruction": "instruction", "Unified": "unified"}

# glibc's sysconf numbers for size and associativity of caches, and the size of their lines; glibc asks the CPU itself.
_SYSCONF = {(1, "instruction"): 185, (1, "data"): 188, (2, "unified"): 191, (3, "unified"): 194}

# Vendors by their numbers in the register MIDR.
_IMPLEMENTERS = {0x41: "ARM", 0x46: "Fujitsu", 0x48: "HiSilicon", 0x4E: "NVIDIA", 0x51: "Qualcomm", 0x61: "Apple", 0xC0: "Ampere"}
_ARM_CORES = {
    0xD03: "Cortex-A53", 0xD07: "Cortex-A57", 0xD08: "Cortex-A72", 0xD0B: "Cortex-A76", 0xD0C: "Neoverse N1", 0xD40: "Neoverse V1",
    0xD41: "Cortex-A78", 0xD49: "Neoverse N2", 0xD4F: "Neoverse V2", 0xD84: "Neoverse V3", 0xD8E: "Neoverse N3",
}  # fmt: skip


def read(machine: str) -> Processor:
    """The CPU of this machine."""
    try:
        with CPUINFO.open("rb", buffering=0) as file:
            text = file.read(_FIRST_BYTES).decode(errors="replace")
    except OSError:
        text = ""
    core = min(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    return parse(machine, text, CORES / f"cpu{core}", _sysconf(), os.cpu_count() or 1, _memory_bytes())


def parse(machine: str, cpuinfo: str, core: Path, sysconf: Mapping[int, int], logical: int, memory_bytes: int) -> Processor:
    """A CPU, from the beginning of /proc/cpuinfo and the folder of a core in /sys/devices/system/cpu.

    sysconf: glibc's values for the caches, used if that folder is missing, as in some containers.
    """
    facts = {}
    for line in cpuinfo.strip().partition("\n\n")[0].splitlines():
        name, _, value = line.partition(":")
        facts[name.strip()] = value.strip()
    caches = _caches(core / "cache") or _by_sysconf(sysconf)
    if machine == ARM64:
        implementer, part = _number(facts.get("CPU implementer")), _number(facts.get("CPU part"))
        vendor = _IMPLEMENTERS.get(implementer, hex(implementer)) if "CPU implementer" in facts else ""
        name = facts.get("model name") or (_ARM_CORES.get(part) if vendor == "ARM" else None) or f"{vendor} {part:#x}".strip()
        numbers, features = (
            (_number(facts.get("CPU variant")), part, _number(facts.get("CPU revision"))),
            facts.get("Features", ""),
        )
    else:
        vendor, name, features = facts.get("vendor_id", ""), facts.get("model name", ""), facts.get("flags", "")
        numbers = (_number(facts.get("cpu family")), _number(facts.get("model")), _number(facts.get("stepping")))
    name = " ".join(name.split()) or f"{machine} processor"
    return Processor(machine, "Linux", vendor, name, *numbers, frozenset(features.split()), logical, caches, memory_bytes)


def _number(text: str | None) -> int:
    try:
        return int(text or "0", 0)
    except ValueError:
        return 0


def _caches(folder: Path) -> tuple[Cache, ...]:
    """The caches of a core from its folder `cache`; empty if it is missing."""
    found = []
    for index in sorted(folder.glob("index*")):

        def said(name: str, index: Path = index) -> str:
            try:
                return (index / name).read_text().strip()
            except OSError:
                return ""

        level, kind, size = _number(said("level")), _KINDS.get(said("type")), _size(said("size"))
        if level and kind and size:
            ways, line = _number(said("ways_of_associativity")), _number(said("coherency_line_size"))
            found.append(Cache(level, kind, size, ways, line, count_of(said("shared_cpu_list"))))
    return tuple(sorted(found))


def _size(text: str) -> int:
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return _number(text[:-1]) * units[text[-1]] if text[-1:] in units else _number(text)


def count_of(cores: str) -> int:
    """The number of entries in a list in the kernel's format.

    >>> count_of("0-3,8,10-11"), count_of("")
    (7, 0)
    """
    count = 0
    for part in filter(None, cores.split(",")):
        first, _, last = part.partition("-")
        count += _number(last or first) - _number(first) + 1
    return count


def _sysconf() -> dict[int, int]:
    """The C library's values for the caches; empty for libraries other than glibc."""
    found = {}
    for first in _SYSCONF.values():
        for number in range(first, first + 3):
            try:
                found[number] = os.sysconf(number)
            except (OSError, ValueError):
                return {}
    return found


def _by_sysconf(values: Mapping[int, int]) -> tuple[Cache, ...]:
    found = []
    for (level, kind), first in _SYSCONF.items():
        size, ways, line = (max(0, values.get(first + n, 0)) for n in range(3))
        if size:
            found.append(Cache(level, kind, size, ways, line))
    return tuple(sorted(found))


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return 0
