"""Names in a source text. A program's own names are kept, unless C, the dialect or the emitter's helpers already use them.

Buffers and kernels get their names once; a variable gets one when it is bound, unless an enclosing scope uses the name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tilelang.lowering.targets.c.dialect import C_KEYWORDS, Dialect

# Names of the emitter or OpenCL: helpers and conversions end in a type or a rounding mode, types are a scalar with its lanes.
# None of these ends in "_", so an appended underscore makes a name unique.
_SCALARS = "u?char|u?short|u?int|u?long|float|double|half|size_t|bool"
_OWN = rf"(.*_)?({_SCALARS})(2|3|4|8|16)?(_u|_sat|_sat_rt[enpz]|_rt[enpz])?"
# Names that compilers and headers define as macros or reserve: FLT_MAX, M_PI, cl_khr_fp64.
_MACROS = (
    r"([A-Z][A-Z0-9]+(_[A-Z0-9]+)+|M_[A-Z12]\w*|CLK_\w*|_?cl(es)?_\w*)(?<!_)"
    r"|INFINITY|NAN|NULL|MAXFLOAT|INTTYPE|ALIGN[48]|asm|typeof|linux|unix"
)
_TAKEN = re.compile(f"{_OWN}|{_MACROS}")


class Names:
    """The names in use in one text."""

    def __init__(self, dialect: Dialect) -> None:
        self._reserved = C_KEYWORDS | dialect.reserved
        self.taken: set[str] = set()
        self._order: list[str] = []  # those taken, the latest last

    def fresh(self, wanted: str) -> str:
        """An unused name, as close as possible to the wanted one."""
        base = re.sub(r"\W", "_", wanted, flags=re.ASCII)
        base = (base.lstrip("_") if re.match("_[_A-Z]", base) else base) or "x"  # such names are reserved for the compiler
        base = f"_{base}" if base[0].isdigit() else base
        if base in self._reserved or _TAKEN.fullmatch(base):
            base += "_"
        name, number = base, 1
        while name in self.taken or name in self._reserved or _TAKEN.fullmatch(name):
            name, number = f"{base}_{number}", number + 1
        self.claim((name,))
        return name

    def claim(self, names: Iterable[str]) -> bool:
        """Reserves all of the names, or none if one of them is in use."""
        wanted = set(names)
        if wanted & self.taken:
            return False
        self.taken |= wanted
        self._order += wanted
        return True

    @property
    def mark(self) -> int:
        """This moment, for `release_since`."""
        return len(self._order)

    def release_since(self, mark: int) -> None:
        """Ends the scope of the names taken since a moment."""
        self.release(self._order[mark:])
        del self._order[mark:]

    def release(self, names: Iterable[str]) -> None:
        """Ends the scope of the names."""
        self.taken.difference_update(list(names))
