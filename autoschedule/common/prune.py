"""The rules that drop candidates: before compilation by the limits of the device, and after it by the compiler's report.

Generators of candidates call `drops` with the rule that a candidate breaks, and `keeps` for a candidate that breaks none. So each rule
is counted, and can be disabled by name: `TILELANG_WITHOUT_RULES`, `Options(without_rules=...)`, `--without`.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections import Counter
from collections.abc import Iterable
from typing import Self

from tilelang.errors import TileLangError

RULES = {
    "registers": "candidates that need more registers than a thread, or a CPU core, has",
    "shared": "candidates whose blocks need more shared memory than there is, or, on CPUs, than fits the core's cache",
    "threads": "candidates whose blocks have more threads than the device allows, or than a core holds",
    "grid": "candidates with more blocks or threads than a grid allows; persistent blocks with several tiles each are tried instead",
    "slow-shared": "copies to shared memory on devices where it is no faster than global memory",
    "tails": "loops that would divide a fused index in every iteration",
    "reported-registers": "kernels that need more registers than a core has, by the compiler's report",
    "reported-spills": "kernels that spill more than an eighth of a thread's registers, by the compiler's report, if others spill less",
}


@dataclasses.dataclass
class Pruning:
    """The rules in effect and their counts. off: rules that drop nothing. kept: the number of candidates that remain; dropped: the
    number dropped by each rule, or refused with each code."""

    off: frozenset[str] = frozenset()
    kept: int = 0
    dropped: Counter[str] = dataclasses.field(default_factory=Counter)

    @classmethod
    def without(cls, names: Iterable[str] | str | None) -> Self:
        """All rules except some; a text separates their names by commas. Raises TileLangError for an unknown name.

        >>> Pruning.without("registers, tails").off == {"registers", "tails"}
        True
        """
        given = names.split(",") if isinstance(names, str) else names or ()
        off = frozenset(name.strip() for name in given) - {""}
        for name in sorted(off - RULES.keys()):
            near = difflib.get_close_matches(name, RULES, 1)
            help = f"did you mean {near[0]}?" if near else "use one of " + ", ".join(RULES)
            raise TileLangError("unknown-rule", f"no candidate is dropped by a rule {name!r}", help=help)
        return cls(off)

    def drops(self, rule: str, broken: bool) -> bool:
        """Whether a candidate is dropped because it breaks a rule. It is counted."""
        assert rule in RULES
        if not broken or rule in self.off:
            return False
        self.dropped[rule] += 1
        return True

    def keeps(self) -> None:
        """Counts a candidate that breaks no rule."""
        self.kept += 1

    def gives_up(self, why: str) -> None:
        """Counts a candidate that was kept, but is dropped afterwards, by a rule or because it is refused."""
        self.kept -= 1
        self.dropped[why] += 1

    @property
    def generated(self) -> int:
        """The number of all candidates, including dropped ones."""
        return self.kept + self.dropped.total()

    @property
    def shares(self) -> dict[str, float]:
        """The share of all candidates that each rule dropped, largest first."""
        return {rule: count / self.generated for rule, count in self.dropped.most_common()}
