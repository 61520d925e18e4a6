"""What systems say of some processors, in their own forms, shortened to what tells processors apart.

Linux: the first entries of /proc/cpuinfo, and for each cache its level, type, size, ways, line size and sharing cores, as in the files
below /sys/devices/system/cpu/cpu0/cache. macOS: names and values of sysctl.
"""

from __future__ import annotations

import struct

SAPPHIRE_RAPIDS = """\
processor	: 0
vendor_id	: GenuineIntel
cpu family	: 6
model		: 143
model name	: Intel(R) Xeon(R) Platinum 8488C
stepping	: 8
microcode	: 0x2b000603
cpu MHz		: 2400.000
cache size	: 107520 KB
physical id	: 0
siblings	: 8
core id		: 0
cpu cores	: 4
flags		: fpu sse sse2 ssse3 fma sse4_1 sse4_2 avx f16c avx2 bmi2 avx512f avx512dq avx512ifma avx512cd avx512bw avx512vl \
avx512vbmi avx512_vnni avx512_bf16 avx_vnni avx512_fp16 amx_bf16 amx_tile amx_int8
bugs		: spectre_v1 spectre_v2
clflush size	: 64

processor	: 1
vendor_id	: GenuineIntel
model name	: another entry, which is not read
flags		: fpu
"""
SAPPHIRE_RAPIDS_CACHES = [
    ("1", "Data", "48K", "12", "64", "0,4"),
    ("1", "Instruction", "32K", "8", "64", "0,4"),
    ("2", "Unified", "2048K", "16", "64", "0,4"),
    ("3", "Unified", "107520K", "15", "64", "0-7"),
]

ZEN4 = """\
processor	: 0
vendor_id	: AuthenticAMD
cpu family	: 25
model		: 17
model name	: AMD EPYC
stepping	: 1
cache size	: 1024 KB
flags		: fpu sse sse2 ssse3 fma sse4_1 sse4_2 avx f16c avx2 bmi2 avx512f avx512dq avx512ifma avx512cd avx512bw avx512vl \
avx512_bf16 avx512vbmi avx512_vbmi2 avx512_vnni avx512_bitalg avx512_vpopcntdq
power management:

"""
ZEN4_CACHES = [
    ("1", "Data", "32K", "8", "64", "0"),
    ("1", "Instruction", "32K", "8", "64", "0"),
    ("2", "Unified", "1024K", "8", "64", "0"),
    ("3", "Unified", "32768K", "16", "64", "0-1"),
]

ZEN5 = """\
processor	: 0
vendor_id	: AuthenticAMD
cpu family	: 26
model		: 2
model name	: AMD EPYC 9R45
stepping	: 1
cache size	: 1024 KB
flags		: fpu sse sse2 ssse3 fma sse4_1 sse4_2 avx f16c avx2 bmi2 avx512f avx512dq avx512ifma avx512cd avx512bw avx512vl avx_vnni \
avx512_bf16 avx512vbmi avx512_vbmi2 avx512_vnni movdiri avx512_vp2intersect
"""
ZEN5_CACHES = [
    ("1", "Data", "48K", "12", "64", "0"),
    ("1", "Instruction", "32K", "8", "64", "0"),
    ("2", "Unified", "1024K", "16", "64", "0"),
    ("3", "Unified", "32M", "16", "64", "0-7"),
]

HASWELL_FLAGS = "fpu sse sse2 ssse3 fma sse4_1 sse4_2 avx f16c avx2 bmi1 bmi2"

NEOVERSE_V1 = """\
processor	: 0
BogoMIPS	: 2100.00
Features	: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm jscvt fcma lrcpc dcpop sha3 asimddp \
sha512 sve asimdfhm dit uscat ilrcpc flagm ssbs paca pacg dcpodp svei8mm svebf16 i8mm bf16 dgh rng
CPU implementer	: 0x41
CPU architecture: 8
CPU variant	: 0x1
CPU part	: 0xd40
CPU revision	: 1

processor	: 1
BogoMIPS	: 2100.00
"""
NEOVERSE_V1_CACHES = [
    ("1", "Data", "64K", "4", "64", "0"),
    ("1", "Instruction", "64K", "4", "64", "0"),
    ("2", "Unified", "1024K", "8", "64", "0"),
    ("3", "Unified", "32768K", "16", "64", "0-3"),
]


def _number(value: int, size: int = 4) -> bytes:
    return value.to_bytes(size, "little")


APPLE_M1 = {
    "machdep.cpu.brand_string": b"Apple M1\0",
    "hw.cpufamily": _number(0x1B588BB3),
    "hw.cpusubfamily": _number(2),
    "hw.logicalcpu": _number(8),
    "hw.physicalcpu": _number(8),
    "hw.memsize": _number(16 << 30, 8),
    "hw.cachelinesize": _number(128, 8),
    "hw.perflevel0.l1dcachesize": _number(131072),
    "hw.perflevel0.l1icachesize": _number(196608),
    "hw.perflevel0.l2cachesize": _number(12582912),
    "hw.perflevel0.cpusperl2": _number(4),
    "hw.l1dcachesize": _number(65536, 8),  # of the slow cores
    "hw.l2cachesize": _number(4194304, 8),
    "hw.optional.arm.FEAT_FP16": _number(1),
    "hw.optional.arm.FEAT_DotProd": _number(1),
    "hw.optional.arm.FEAT_BF16": _number(0),
}

MAC_OF_INTEL = {
    "machdep.cpu.brand_string": b"Intel(R) Core(TM) i7-8850H CPU @ 2.60GHz\0",
    "machdep.cpu.vendor": b"GenuineIntel\0",
    "machdep.cpu.family": _number(6),
    "machdep.cpu.model": _number(158),
    "machdep.cpu.stepping": _number(10),
    "machdep.cpu.features": b"FPU SSE SSE2 SSE3 FMA SSE4.1 SSE4.2 AVX1.0 F16C\0",
    "machdep.cpu.leaf7_features": b"BMI1 AVX2 BMI2\0",
    "hw.logicalcpu": _number(12),
    "hw.physicalcpu": _number(6),
    "hw.memsize": _number(32 << 30, 8),
    "hw.cachelinesize": _number(64, 8),
    "hw.l1dcachesize": _number(32768, 8),
    "hw.l1icachesize": _number(32768, 8),
    "hw.l2cachesize": _number(262144, 8),
    "hw.l3cachesize": _number(9437184, 8),
    "machdep.cpu.cache.L2_associativity": _number(4),
}

WINDOWS_REGISTRY = {
    "ProcessorNameString": "AMD Ryzen 9 7950X 16-Core Processor            ",
    "Identifier": "AMD64 Family 25 Model 97 Stepping 2",
    "VendorIdentifier": "AuthenticAMD",
}
WINDOWS_ARM_REGISTRY = {
    "ProcessorNameString": "Snapdragon(R) X Elite - X1E80100 - Qualcomm(R) Oryon(TM) CPU",
    "Identifier": "ARMv8 (64-bit) Family 8 Model 1 Revision 201",
    "VendorIdentifier": "Qualcomm Technologies Inc",
}


def windows_cache(level: int, ways: int, line: int, size: int, kind: int, mask: int) -> bytes:
    """A record of GetLogicalProcessorInformationEx for a cache."""
    body = struct.pack("<BBHII18sHQHHHH", level, ways, line, size, kind, b"", 1, mask, 0, 0, 0, 0)
    return struct.pack("<II", 2, 8 + len(body)) + body


WINDOWS_CACHES = b"".join(
    [
        windows_cache(1, 8, 64, 32 << 10, 2, 0b11),
        windows_cache(1, 8, 64, 32 << 10, 1, 0b11),
        windows_cache(2, 8, 64, 1 << 20, 0, 0b11),
        windows_cache(3, 16, 64, 32 << 20, 0, 0xFFFF),
        windows_cache(1, 8, 64, 32 << 10, 2, 0b1100),  # of the next core
    ]
)
