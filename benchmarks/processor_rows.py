"""The rows of `benchmarks/processor.py`: a figure beside what is wanted of it, as a line, a table's cells, and a page's table."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

HEADING = ("what", "ours", "best peer", "ratio", "wanted", "met")


@dataclasses.dataclass(frozen=True)
class Asked:
    """What a section is to measure: rounds of turns, and a part of the rows' names."""

    rounds: int = 7
    case: str = ""


@dataclasses.dataclass(frozen=True)
class Row:
    """A figure. ours, best: in `unit`; ratio: how many times faster than the best peer, or None where `ours` itself is wanted.

    wanted: None where nothing is; others: every contestant's figure; note: what must be said with it.

    >>> Row("copy", 10.0, peer="NumPy", best=12.0, ratio=1.2, wanted=1.1).cells
    ('copy', '10 us', 'NumPy 12 us', '1.20', '>= 1.1', 'yes')
    """

    what: str
    ours: float
    unit: str = "us"
    peer: str = ""
    best: float | None = None
    ratio: float | None = None
    wanted: float | None = None
    at_least: bool = True
    others: tuple[tuple[str, float], ...] = ()
    note: str = ""

    @property
    def met(self) -> str:
        """yes or no; empty where nothing is wanted, or no peer was measured."""
        value = self.ratio if self.ratio is not None or self.peer else self.ours
        if self.wanted is None or value is None:
            return ""
        return "yes" if (value >= self.wanted if self.at_least else value <= self.wanted) else "no"

    @property
    def cells(self) -> tuple[str, ...]:
        """Its line of the table."""
        best = "" if self.best is None else f"{self.peer} {number(self.best)} {self.unit}".strip()
        wanted = "" if self.wanted is None else f"{'>=' if self.at_least else '<='} {self.wanted:g}"
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        return self.what, f"{number(self.ours)} {self.unit}".strip(), best, ratio, wanted, self.met


def number(value: float) -> str:
    """Three digits or more."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def line(row: Row) -> str:
    """A row for someone who waits for the table, with every contestant."""
    said = ", ".join(f"{who} {number(us)}" for who, us in row.others)
    return " | ".join([*row.cells, *([said] if said else []), *([row.note] if row.note else [])])


def markdown(rows: Sequence[Row]) -> str:
    """The table for a page."""
    lines = [HEADING, ("---",) * len(HEADING), *(row.cells for row in rows)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
