"""The picture of what `benchmarks/operators.py` measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.operators_results import Row
from benchmarks.operators_table import complete, ratio


def plot(rows: Sequence[Row], path: Path) -> None:
    """A bar an operator, its ratio to the best peer, in the order of the set; says so where matplotlib is not installed."""
    try:
        from matplotlib import pyplot
    except ImportError:
        print("no picture: matplotlib is not installed")
        return
    timed = [row for row in rows if row["what"] == "times" and complete(row)]
    figure, axes = pyplot.subplots(figsize=(18, 5))
    names = list(dict.fromkeys(row["class"] for row in timed))
    for number, name in enumerate(names):
        at = [i for i, row in enumerate(timed) if row["class"] == name]
        axes.bar(at, [ratio(timed[i], "row_us") - 1 for i in at], bottom=1, color=f"C{number}", label=name)
    axes.axhline(1, color="black", linewidth=1)
    axes.set_xticks(range(len(timed)), [row["operator"] for row in timed], rotation=90, fontsize=6)
    axes.set_yscale("log", base=2)
    axes.set_xlim(-1, len(timed))
    axes.grid(axis="y", alpha=0.4)
    axes.set_ylabel("times as fast as the best peer, calls in a row")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)
