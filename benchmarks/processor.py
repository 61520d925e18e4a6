"""What this processor reaches beside the best of its peers, section by section: `what | ours | best peer | ratio | wanted | met`.

    python benchmarks/processor.py [--only products,rows] [--case softmax] [--rounds 7] [--record] [--markdown]

Sections: products, bfloat16, int8, operators (summed up from the results of `benchmarks/operators.py`, as is `compiling`), pointwise,
rows, transpose, calls, simt, cold. All contestants of a row take turns in one run, with 0.25 s at each change of sides; each gets the
same arrays, one number of threads and the same types, and is checked first. Ours are constructed schedules, launched over arrays that
were placed before, as peers' are; every result begins at a line of the caches. `hand` is a schedule written by hand. Times are medians
of calls in a row. A peer that is missing or fails is named and left out. --record appends the rows to results/processor.jsonl, with the
machine and the commit.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `python benchmarks/processor.py` from anywhere

from benchmarks import machine
from benchmarks.processor_rows import HEADING, Asked, Row, line, markdown

RESULTS = Path(__file__).parent / "results" / "processor.jsonl"
SECTIONS = ("products", "bfloat16", "int8", "operators", "compiling", "pointwise", "rows", "transpose", "calls", "simt", "cold")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints the table. 1: a figure that is wanted is not reached."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default=",".join(SECTIONS), help=f"sections, with commas between: {', '.join(SECTIONS)}")
    parser.add_argument("--case", default="", help="of these sections the rows whose names have this in them")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--record", nargs="?", const=RESULTS, type=Path, help="a file that the rows are appended to")
    parser.add_argument("--markdown", action="store_true", help="print the table for a page")
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.only.split(",") if name not in SECTIONS]:
        parser.error(f"--only: no sections {', '.join(unknown)}")
    from benchmarks import processor_cases, processor_sections
    from benchmarks.harness import record, table

    here = machine.machine()
    print(f"{here}\nload {os.getloadavg()[0]:.1f}; NumPy: {machine.openblas()}", flush=True)
    for who, why in processor_cases.absent().items():
        print(f"without {who}: {why}", flush=True)
    rows: list[Row] = []
    for name in given.only.split(","):
        for row in getattr(processor_sections, name)(Asked(given.rounds, given.case)):
            rows.append(row)
            print(line(row), flush=True)
    print("\n" + (markdown(rows) if given.markdown else table([HEADING, *(r.cells for r in rows)])))
    if given.record is not None:
        head = {"machine": dataclasses.asdict(here)}
        record(given.record, [{**head, **dataclasses.asdict(r), "met": r.met} for r in rows], here.model)
    return 1 if any(row.met == "no" for row in rows) else 0


if __name__ == "__main__":
    machine.for_best_products(sys.argv)
    sys.exit(main())
