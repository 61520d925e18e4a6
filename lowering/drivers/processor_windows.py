"""Reads the CPU's description on Windows: the registry, IsProcessorFeaturePresent and GetLogicalProcessorInformationEx."""

from __future__ import annotations

import ctypes
import os
import re
import struct
import sys
from collections.abc import Mapping

from tilelang.lowering.drivers.processor import Cache, Processor

_KEY = r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"
_RELATION_CACHE = 2
_KINDS = {0: "unified", 1: "instruction", 2: "data"}

# PF_..._AVAILABLE in winnt.h, by Linux's names of the features.
FEATURES = {
    10: "sse2", 13: "sse3", 36: "ssse3", 37: "sse4_1", 38: "sse4_2", 39: "avx", 40: "avx2", 41: "avx512f",
    43: "asimddp", 34: "atomics", 66: "i8mm", 67: "asimdhp", 68: "bf16",
}  # fmt: skip
_WITH_AVX512F = ("avx512bw", "avx512dq", "avx512vl")  # not reported separately: every CPU that Windows runs on has all or none


def read(machine: str) -> Processor:
    """The CPU of this machine."""
    if sys.platform != "win32":
        raise OSError("this is not Windows")
    import winreg  # late: exists on some systems only

    registry = {}
    with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, _KEY) as key:
        for name in ("ProcessorNameString", "Identifier", "VendorIdentifier"):
            try:
                registry[name] = str(winreg.QueryValueEx(key, name)[0])
            except OSError:
                continue
    kernel = ctypes.windll.kernel32
    size = ctypes.c_uint32(0)
    kernel.GetLogicalProcessorInformationEx(_RELATION_CACHE, None, ctypes.byref(size))
    records = ctypes.create_string_buffer(size.value)
    told = kernel.GetLogicalProcessorInformationEx(_RELATION_CACHE, records, ctypes.byref(size))
    present = frozenset(number for number in FEATURES if kernel.IsProcessorFeaturePresent(number))
    kilobytes = ctypes.c_uint64(0)
    kernel.GetPhysicallyInstalledSystemMemory(ctypes.byref(kilobytes))
    return parse(
        machine, registry, records.raw[: size.value] if told else b"", present, os.cpu_count() or 1, kilobytes.value << 10
    )


def parse(
    machine: str, registry: Mapping[str, str], records: bytes, present: frozenset[int], logical: int, memory_bytes: int
) -> Processor:
    """A CPU from its registry values, the records of its caches, and the numbers of the features present."""
    found = re.search(r"Family (\w+) Model (\w+) (?:Stepping|Revision) +(\w+)", registry.get("Identifier", ""))
    family, model, stepping = (int(n, 16 if re.search("[A-F]", n) else 10) for n in found.groups()) if found else (0, 0, 0)
    features = {FEATURES[number] for number in present}
    if "avx512f" in features:
        features.update(_WITH_AVX512F)
    name = " ".join(registry.get("ProcessorNameString", "").split()) or f"{machine} processor"
    vendor = registry.get("VendorIdentifier", "")
    return Processor(
        machine, "Windows", vendor, name, family, model, stepping, frozenset(features), logical, caches(records), memory_bytes
    )


def caches(records: bytes) -> tuple[Cache, ...]:
    """The caches of the first core, from SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX records. Each begins with relationship and size; then
    level, associativity (0xff: full), line size, size, kind, and at byte 32 of the cache part the number of groups and the masks of
    their processors."""
    found, begin = dict[tuple[int, str], Cache](), 0
    while begin + 8 <= len(records):
        relation, size = struct.unpack_from("<II", records, begin)
        if size < 8:
            break
        if relation == _RELATION_CACHE and begin + 48 <= len(records):
            level, ways, line, total, kind = struct.unpack_from("<BBHII", records, begin + 8)
            groups = max(1, struct.unpack_from("<H", records, begin + 8 + 30)[0])
            masks = [
                struct.unpack_from("<Q", records, begin + 40 + 16 * n)[0]
                for n in range(groups)
                if begin + 56 + 16 * n <= len(records)
            ]
            if kind in _KINDS:
                shared = sum(mask.bit_count() for mask in masks)
                full = total // line if line else 0
                found.setdefault(
                    (level, _KINDS[kind]), Cache(level, _KINDS[kind], total, full if ways == 0xFF else ways, line, shared)
                )
        begin += size
    return tuple(sorted(found.values()))
