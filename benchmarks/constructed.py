"""The operators of roller.csv on every shipped device: the first schedules of each are lowered, and fit. Needs no device.

`python benchmarks/constructed.py [--devices NAME ...] [--top 8] [--operators NAME ...] [--record]` says of each device how many
schedules were accepted, how many have more shared memory or threads than it has, how long construction took, and of each refusal what
it says; `--record` keeps the counts in results/constructed.jsonl. All of them take half an hour; the tests look at each operator on
one device, in turns.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `python benchmarks/constructed.py` from anywhere

import tilelang as tl
from benchmarks import gpu_cases
from benchmarks.harness import record, table
from benchmarks.operators import revision
from tilelang.autoschedule.construct import construct
from tilelang.computation import Computation, as_computation
from tilelang.errors import Refusal
from tilelang.lowering.pipeline import lower
from tilelang.machine import Profile

RESULTS = Path(__file__).parent / "results" / "constructed.jsonl"
WRONG = ("refused", "too large", "too fast")


def operator(kind: str, extents: tuple[int, ...]) -> Computation:
    """An operator of roller.csv."""
    match kind:
        case "matmul":
            m, n, k = extents
            case = gpu_cases.product(m, n, k, tl.float32)
        case "relu":
            case = gpu_cases.pointwise("relu", extents[0])
        case "row_sum":
            case = gpu_cases.by_rows("row sum", "06_row_sum", "row_sum", extents[0], extents[1], "simt", (64,))
        case "convolution":
            case = gpu_cases.convolution(extents)
        case "depthwise":
            case = gpu_cases.depthwise(extents)
        case _:
            case = gpu_cases.pooling(extents)
    return as_computation(case.make(None))


def faults(computation: Computation, profile: Profile, top: int) -> Iterator[tuple[str, str]]:
    """Of each of the first schedules what is wrong with it: ("", "") where nothing is; else a word, and the schedule. Too fast is an
    estimate below the bound."""
    for candidate in construct(computation, profile)[:top]:
        try:
            program = lower(computation, candidate.schedule.steps, profile)
        except Refusal as refusal:
            yield "refused", f"{refusal}\n{candidate.schedule}"
            continue
        room = profile.memory("shared").capacity_bytes or 0
        large = [k for k in program.kernels if k.shared_bytes > room or k.threads > profile.max_block_threads]
        fast = candidate.estimate.seconds < candidate.estimate.bound
        what = "too large" if large else "too fast" if fast else ""
        yield what, str(candidate.schedule) if what else ""


def row(profile: Profile, operators: list[tuple[str, str, tuple[int, ...]]], top: int) -> dict[str, object]:
    """What is kept of a device; what is wrong is said at once."""
    counts, times = dict.fromkeys(WRONG, 0) | {"": 0}, []
    for name, kind, extents in operators:
        computation = operator(kind, extents)
        begun = time.process_time()
        construct(computation, profile)
        times.append(1e3 * (time.process_time() - begun))
        for what, text in faults(computation, profile, top):
            counts[what] += 1
            if what:
                print(f"{profile.name} {name}, {what}: {text}", flush=True)
    took = {"median_ms": round(statistics.median(times)), "most_ms": round(max(times))}
    wrong = {what: counts[what] for what in WRONG}
    return {"profile": profile.name, "operators": len(operators), "schedules": sum(counts.values()), **wrong, **took}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--devices", nargs="*", default=tl.machine.shipped_profiles(), help="profiles (default: all that are shipped)"
    )
    parser.add_argument("--operators", nargs="*", help="names in roller.csv (default: all)")
    parser.add_argument("--top", type=int, default=8, help="schedules of each operator (default %(default)s)")
    parser.add_argument("--record", nargs="?", const=RESULTS, type=Path, help="a file that gets a line for each device")
    asked = parser.parse_args()
    operators = [o for o in gpu_cases.roller() if not asked.operators or o[0] in asked.operators]
    rows = []
    for name in asked.devices:
        rows.append(row(tl.load_profile(name), operators, asked.top))
        print(rows[-1], file=sys.stderr, flush=True)
        if asked.record:
            counts = {
                what: n for what, n in rows[-1].items() if not what.endswith("_ms")
            }  # times are of a machine that others use
            record(asked.record, [{**counts, "top": asked.top, "revision": revision()}], "none")
    print(table([tuple(rows[0]), *(tuple(map(str, r.values())) for r in rows)]))


if __name__ == "__main__":
    main()
