"""Optional instruction set extensions of a CPU: maps the system's names for them to capabilities that a profile lists.

The names on the left are those of Linux in /proc/cpuinfo, `flags` on x86 and `Features` on Arm; code that asks the CPU itself or
another system uses the same names. AMX's tiles are large, and Linux saves them only for processes that requested them: without the
request, the first tile instruction kills the process. `allow_tiles` makes the request and returns whether they may be used.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Iterable

# The extensions required together, and the capability that instructions then need (tilelang/instructions/shipped/x86_*.py,
# arm_products.py). Vectors of 256 and 128 bits need avx512vl, which every CPU with one of the two has.
CAPABILITIES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("avx512_bf16", "avx512vl"), "avx512_bf16"),
    (("avx512_vnni", "avx512vl"), "avx512_vnni"),
    (("amx_tile", "amx_bf16"), "amx_bf16"),
    (("amx_tile", "amx_int8"), "amx_int8"),
    (("bf16",), "arm_bf16"),
    (("asimddp",), "arm_dotprod"),
)
TILES = "amx_"  # prefix of the capabilities that need the permission

_ARCH_PRCTL, _REQUEST, _TILE_DATA = 158, 0x1023, 18  # Linux, x86-64: arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)


def capabilities(flags: Iterable[str], tiles: bool = False) -> tuple[str, ...]:
    """The capabilities of a CPU with these flags, sorted. tiles: whether this process may use AMX's tiles.

    >>> capabilities(["avx512vl", "avx512_bf16", "amx_tile", "amx_bf16"])
    ('avx512_bf16',)
    """
    there = set(flags)
    found = (name for needed, name in CAPABILITIES if there.issuperset(needed))
    return tuple(sorted(name for name in found if tiles or not name.startswith(TILES)))


def allow_tiles() -> bool:
    """Asks the system to let this process and its later threads use AMX's tiles. False: not available, or refused."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    answer: int = ctypes.CDLL(None).syscall(*map(ctypes.c_long, (_ARCH_PRCTL, _REQUEST, _TILE_DATA)))
    return answer == 0
