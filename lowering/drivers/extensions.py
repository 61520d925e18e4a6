"""What instructions a processor has beyond those that every one of its kind has: names of a system to names that a profile lists.

The names on the left are what Linux calls them in /proc/cpuinfo, `flags` on x86 and `Features` on Arm; whoever asks the processor
itself, or another system, spells them so. AMX's tiles are big, and Linux saves them only for processes that asked for them: before
that, the first tile instruction ends the process. `allow_tiles` asks, and tells whether they may be used.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Iterable

# What must all be there, and the capability that instructions need then (tilelang/instructions/x86_*.py, arm_products.py). The vectors
# of 256 and 128 bits want avx512vl, which every processor with one of the two has.
CAPABILITIES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("avx512_bf16", "avx512vl"), "avx512_bf16"),
    (("avx512_vnni", "avx512vl"), "avx512_vnni"),
    (("amx_tile", "amx_bf16"), "amx_bf16"),
    (("amx_tile", "amx_int8"), "amx_int8"),
    (("bf16",), "arm_bf16"),
    (("asimddp",), "arm_dotprod"),
)
TILES = "amx_"  # how the names of capabilities begin that need the permission

_ARCH_PRCTL, _REQUEST, _TILE_DATA = 158, 0x1023, 18  # Linux, x86-64: arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)


def capabilities(flags: Iterable[str], tiles: bool = False) -> tuple[str, ...]:
    """The capabilities of a processor with these flags, sorted; tiles: whether this process may use AMX's.

    >>> capabilities(["avx512vl", "avx512_bf16", "amx_tile", "amx_bf16"])
    ('avx512_bf16',)
    """
    there = set(flags)
    found = (name for needed, name in CAPABILITIES if there.issuperset(needed))
    return tuple(sorted(name for name in found if tiles or not name.startswith(TILES)))


def allow_tiles() -> bool:
    """Asks the system to let this process and its later threads use AMX's tiles. False: it has none, or does not give leave."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    answer: int = ctypes.CDLL(None).syscall(*map(ctypes.c_long, (_ARCH_PRCTL, _REQUEST, _TILE_DATA)))
    return answer == 0
