"""The whole mutation run: every barrier, guard, fill and wait of every example's kernels dropped, one at a time.

    python benchmarks/mutations.py [NAME ...]

Prints how many are noticed by the simulator or by a wrong result, and the survivors: not needed, as shown by the same bits in silence
on other data, or missed. Exit status 1 where one was missed.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tilelang as tl
from tests.lowering.test_mutations import awaited
from tests.test_examples import NAMES, SIZES, load
from tilelang.testing.mutations import Tally, decided


def main(chosen: list[str]) -> int:
    tally = Tally()
    for name in NAMES:
        if chosen and not any(part in name for part in chosen):
            continue
        for which, schedule in load(name).schedules(*SIZES[name][1], small=True).items():
            start, before = time.perf_counter(), tally.total.total()
            tally.run(decided(schedule, tl.load_profile("pocl")), schedule.computation)
            print(f"{name} {which}: {tally.total.total() - before} mutants, {time.perf_counter() - start:.1f} s", flush=True)
    if not chosen:
        schedule = awaited()
        tally.run(decided(schedule, tl.load_profile("ampere")), schedule.computation)
    print(tally)
    return 1 if tally.missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
