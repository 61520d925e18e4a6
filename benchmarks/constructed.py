"""The operators of roller.csv on every shipped device: the first schedules of each are lowered, and fit. Needs no device.

`python benchmarks/constructed.py [--devices NAME ...] [--top 8] [--operators NAME ...] [--record]` says of each device how many
schedules were accepted, how many have more shared memory or threads than it has, the median and the worst of the processor's seconds
that construction took for an operator, and of each refusal what it says; `--record` keeps that in results/constructed.jsonl, `--table`
prints what is kept. All of them take half an hour; the tests look at each operator on one device, in turns.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `python benchmarks/constructed.py` from anywhere

import tilelang as tl
from benchmarks import gpu_cases
from benchmarks.harness import record, recorded, table
from benchmarks.machine import revision
from tilelang.autoschedule.common.construct import Candidate, construct
from tilelang.computations.computation import Computation, as_computation
from tilelang.errors import Refusal
from tilelang.lowering.pipeline import lower
from tilelang.profiles.profile import Profile

RESULTS = Path(__file__).parent / "results" / "constructed.jsonl"
WRONG = ("refused", "too large", "too fast")
HEADING = ("profile", "operators", "schedules", *WRONG, "median_processor_s", "worst_processor_s")


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


def faults(computation: Computation, profile: Profile, found: Sequence[Candidate]) -> Iterator[tuple[str, str]]:
    """Of each schedule what is wrong with it: ("", "") where nothing is; else a word, and the schedule. Too fast is an estimate below
    the bound."""
    for candidate in found:
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
    counts, seconds = dict.fromkeys(WRONG, 0) | {"": 0}, []
    for name, kind, extents in operators:
        computation = operator(kind, extents)
        begun = time.process_time()
        found = construct(computation, profile)
        seconds.append(time.process_time() - begun)
        for what, text in faults(computation, profile, found[:top]):
            counts[what] += 1
            if what:
                print(f"{profile.name} {name}, {what}: {text}", flush=True)
    head = {"profile": profile.name, "operators": len(operators), "schedules": sum(counts.values())}
    took = {"median_processor_s": round(statistics.median(seconds), 4), "worst_processor_s": round(max(seconds), 4)}
    return {**head, **{what: counts[what] for what in WRONG}, **took}


def show(rows: Sequence[Mapping[str, object]]) -> str:
    """A line a device; a cell is empty where its row, of before, has nothing to say."""
    return table([HEADING, *(tuple(str(row.get(name, "")) for name in HEADING) for row in rows)])


def kept(path: Path) -> list[dict[str, object]]:
    """The last row of each device."""
    return list({row["profile"]: row for row in recorded(path)}.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--devices", nargs="*", default=tl.profiles.files.shipped_profiles(), help="profiles (default: all that are shipped)"
    )
    parser.add_argument("--operators", nargs="*", help="names in roller.csv (default: all)")
    parser.add_argument("--top", type=int, default=8, help="schedules of each operator (default %(default)s)")
    parser.add_argument("--record", nargs="?", const=RESULTS, type=Path, help="a file that gets a line for each device")
    parser.add_argument("--table", nargs="?", const=RESULTS, type=Path, help="construct nothing, print what such a file has")
    asked = parser.parse_args()
    if asked.table:
        print(show(kept(asked.table)))
        return
    operators = [o for o in gpu_cases.roller() if not asked.operators or o[0] in asked.operators]
    rows = []
    for name in asked.devices:
        rows.append(row(tl.load_profile(name), operators, asked.top))
        print(rows[-1], file=sys.stderr, flush=True)
        if asked.record:
            record(asked.record, [{**rows[-1], "top": asked.top, "revision": revision()}], "none")
    print(show(rows))


if __name__ == "__main__":
    main()
