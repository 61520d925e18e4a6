"""What was promised of `benchmarks/operators.py` beside what was measured; where it falls short, the breakdown of the estimates."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from benchmarks import operators_cases
from benchmarks.harness import table
from benchmarks.operators_results import Row
from benchmarks.operators_table import OLD_PEERS, complete, geometric_mean, kendall, parts, ranked, ratio

HOW = ("row_us", "alone_us")
SHORT = 5  # operators that a target which is not met names


@dataclasses.dataclass(frozen=True)
class Promise:
    """Something promised. wanted: None where it need only be told; found: measured, of calls in a row and of calls by themselves where
    that makes a difference; rows: of what; reached: how far an operator reaches, where it is one of many; whole: how many there are to
    measure, where that is known."""

    name: str
    wanted: float | None
    found: tuple[float, ...]
    rows: Sequence[Row] = ()
    reached: Callable[[Row], float] = lambda row: ratio(row, "row_us")
    at_least: bool = True
    whole: int | None = None

    @property
    def met(self) -> str:
        """yes, no, or what of it; empty where nothing was wanted."""
        if not self.found:
            return "not measured"
        if self.wanted is None:
            return ""
        kept = [(value >= self.wanted) if self.at_least else (value <= self.wanted) for value in self.found]
        return "yes" if all(kept) else "in a row" if kept[0] else "no"

    @property
    def cells(self) -> tuple[str, ...]:
        """Its line of the table."""
        wanted = "" if self.wanted is None else f"{'>=' if self.at_least else '<='} {self.wanted:g}"
        values = [f"{value:.2f}" for value in self.found] + ["", ""]
        count = f"{len(self.rows)} of {self.whole}" if self.whole is not None else str(len(self.rows))
        return self.name, wanted, values[0], values[1], count, self.met


def show(rows: Sequence[Row]) -> str:
    """A line a promise; then, of each that is not met, the operators that fall the shortest, with the breakdown of their estimates."""
    found = list(promises(rows))
    header = ("promised", "wanted", "in a row", "alone", "operators", "met")
    out = [table([header, *(p.cells for p in found)])]
    for promise in found:
        if promise.met in ("no", "in a row"):
            out += ["", f"{promise.name}: wanted {promise.cells[1]}, measured {promise.cells[2]}", *reasons(promise)]
    return "\n".join(out)


def reasons(promise: Promise) -> Iterator[str]:
    """The operators that fall the shortest of a promise."""
    worst = sorted(promise.rows, key=promise.reached, reverse=not promise.at_least)[:SHORT]
    for row in worst:
        why = f": {parts(row)}" if "parts_us" in row else ""
        yield f"  {row['operator']} {promise.reached(row):.2f}{why}"


def of(rows: Sequence[Row], what: str) -> list[Row]:
    """The rows of a measurement that are whole."""
    if what in ("ranking", "sweep"):
        return [row for row in rows if row["what"] == what and len(row.get("ranked_us", {})) > 1]
    return [row for row in rows if row["what"] == what and complete(row)]


def promises(rows: Sequence[Row]) -> Iterator[Promise]:
    """All that was promised."""
    timed, groups = of(rows, "times"), Counter(o.group for o in operators_cases.read() if not o.duplicate_of)
    yield means("all, no trials: x best of four old peers", 1.4, timed, groups.total(), OLD_PEERS)
    yield means("all, no trials: x best peer", 1.2, timed, groups.total())
    for name in groups:
        yield means(f"{name}: x best peer", 1.0, [r for r in timed if r["class"] == name], groups[name])
    by_hand = [r for r in timed if r["class"] == "product" and "hand" in r["row_us"]]
    found = tuple(geometric_mean(r[how]["hand"] / r[how]["ours"] for r in by_hand) for how in HOW) if by_hand else ()
    yield Promise("products: x hand-written schedule", 0.97, found, by_hand, lambda r: r["row_us"]["hand"] / r["row_us"]["ours"])
    yield lowest("1024^3 to 3072^3: x best peer, the least", 1.0, of(rows, "squares"))
    yield lowest("M1 and M2: x best peer, the least", 0.95, [r for r in timed if r["operator"] in ("M1", "M2")])
    yield means("all, 8 trials: x best peer", 1.0, of(rows, "trials"), groups.total())
    yield from durations(timed)
    order = of(rows, "ranking")
    first = (geometric_mean(map(top_1, order)),) if order else ()
    yield Promise("top 1 / best of 16, geometric mean", 1.1, first, order, top_1, at_least=False, whole=groups.total())
    tau = (statistics.mean(map(kendall, order)),) if order else ()
    yield Promise("Kendall's tau of the first 16, mean", None, tau, order, whole=groups.total())
    swept = of(rows, "sweep")
    worst = (max(map(top_8, swept)),) if swept else ()
    yield Promise("best of the first 8 / best of a sweep, the worst", 1.05, worst, swept, top_8, at_least=False)


def top_8(row: Row) -> float:
    """The time of the best of the model's first eight over that of the best."""
    found = ranked(row)
    return min(found[:8]) / min(found)


def top_1(row: Row) -> float:
    """The time of the model's first schedule over that of the best."""
    found = ranked(row)
    return found[0] / min(found)


def means(name: str, wanted: float, rows: Sequence[Row], whole: int, among: Sequence[str] | None = None) -> Promise:
    """The geometric mean against the best peer of each operator, of all peers or of some."""
    rows = [r for r in rows if not math.isnan(ratio(r, "row_us", among))]
    found = tuple(geometric_mean(ratio(r, how, among) for r in rows) for how in HOW) if rows else ()
    return Promise(name, wanted, found, rows, lambda row: ratio(row, "row_us", among), whole=whole)


def lowest(name: str, wanted: float, rows: Sequence[Row]) -> Promise:
    """The operator that reaches least."""
    return Promise(name, wanted, tuple(min(ratio(r, how) for r in rows) for how in HOW) if rows else (), rows)


def durations(rows: Sequence[Row]) -> Iterator[Promise]:
    """Milliseconds of the host's."""
    for name, key, wanted, together in (
        ("ms to a schedule, median", "schedule_ms", 100, statistics.median),
        ("ms to a schedule, worst", "schedule_ms", 1000, max),
        ("ms to a running kernel, median", "kernel_ms", 150, statistics.median),
        ("ms to a running kernel, worst", "kernel_ms", 1000, max),
    ):
        times = [float(row[key]) for row in rows]

        def reached(row: Row, key: str = key) -> float:
            return float(row[key])

        yield Promise(name, wanted, (float(together(times)),) if times else (), rows, reached, at_least=False)
