"""What became slower: the last run in a file of results beside the run before it on such a machine.

    python benchmarks/history.py [--results bench.jsonl] [--threshold 0.1]

`make bench` appends to that file, one line a figure with its machine and commit; `make bench-compare` calls this. Such a machine is one
of the same processor model and number of threads. Compared are quotients to the best peer, which other work on the machine hardly
changes, and where a figure has no peer its time. A run is what was measured at one commit on one machine; exit status 1: something
became slower by more than the threshold.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `python benchmarks/history.py` from anywhere

from benchmarks.harness import table
from benchmarks.operators_table import complete, geometric_mean, ratio

RESULTS = Path("bench.jsonl")
THRESHOLD = 0.1


@dataclasses.dataclass(frozen=True)
class Figure:
    """A figure of a run. value: larger is better: how many times faster than the best peer, or one by a time."""

    run: str
    machine: tuple[str, int]
    what: str
    value: float


@dataclasses.dataclass(frozen=True)
class Change:
    """A figure in two runs. quotient: the later value by the earlier; below 1 it became slower."""

    what: str
    before: float
    after: float

    @property
    def quotient(self) -> float:
        return self.after / self.before


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Two runs on such a machine: before (empty: there is none), after, and every figure that both have."""

    before: str
    after: str
    changes: tuple[Change, ...]

    def slower(self, threshold: float) -> list[Change]:
        """What lost more than a part, the worst first."""
        return sorted((c for c in self.changes if c.quotient < 1 - threshold), key=lambda c: c.quotient)


def figures(rows: Iterable[Mapping[str, Any]]) -> list[Figure]:
    """The figures in rows of `benchmarks/operators.py` and `benchmarks/processor.py`; other rows have none."""
    found = []
    for row in rows:
        about = row.get("machine", {})
        commit = about.get("commit") or row.get("revision", "unknown")
        machine = (about.get("model") or row.get("processor", ""), about.get("cores") or row.get("processors", 0))
        if row.get("what") == "times" and complete(row):  # type: ignore[arg-type]
            found.append(Figure(commit, machine, f"{row['operator']} x best peer", ratio(dict(row), "row_us")))
        elif about and "ours" in row:
            quotient = row.get("ratio")
            time = row["ours"] if quotient is None else quotient
            better = row.get("at_least", True) and not (quotient is None and row.get("unit"))
            if time:
                found.append(Figure(commit, machine, row["what"], time if better else 1 / time))
    return found


def compared(found: Sequence[Figure]) -> Comparison | None:
    """The last run beside the latest run before it on such a machine that has a figure in common; None of no figures."""
    if not found:
        return None
    last = found[-1]
    alike = [f for f in found if f.machine == last.machine]
    after = {f.what: f.value for f in alike if f.run == last.run}
    for run in dict.fromkeys(f.run for f in reversed(alike) if f.run != last.run):
        before = {f.what: f.value for f in alike if f.run == run}
        changes = tuple(Change(what, before[what], after[what]) for what in after if what in before)
        if changes:
            return Comparison(run, last.run, changes)
    return Comparison("", last.run, ())


def summary(found: Comparison | None, threshold: float = THRESHOLD) -> str:
    """What became slower in a table, and the whole in a line."""
    if found is None:
        return "no figures: `make bench` measures some"
    if not found.before:
        return f"{found.after} is the first run on such a machine: there is nothing to compare with"
    slower = found.slower(threshold)
    mean = geometric_mean(c.quotient for c in found.changes)
    said = f"{found.after} beside {found.before}: {len(found.changes)} figures, {mean:.3f} times as good in the geometric mean"
    lines = [f"{said}; {len(slower)} became slower by more than {threshold:.0%}"]
    if slower:
        cells = [(c.what, f"{c.before:.3g}", f"{c.after:.3g}", f"{c.quotient:.2f}") for c in slower]
        lines.append(table([("slower", "before", "after", "after / before"), *cells]))
    return "\n".join(lines)


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a file; a damaged line costs itself."""
    rows = []
    for text in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else ():
        try:
            row = json.loads(text)
        except ValueError:
            continue
        rows += [row] if isinstance(row, dict) else []
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the summary. 1: something became slower by more than the threshold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--threshold", type=float, default=THRESHOLD, help="a part, 0.1 for a tenth")
    given = parser.parse_args(arguments)
    found = compared(figures(read(given.results)))
    print(summary(found, given.threshold))
    return 1 if found is not None and found.slower(given.threshold) else 0


if __name__ == "__main__":
    sys.exit(main())
