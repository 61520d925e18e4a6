"""What construction leaves on the table: hundreds of schedules of six operators, drawn from all of a grid, against its first eight.

    python benchmarks/ranking_sweep.py [OPERATOR ...] [--schedules 150] [--limit-s 35]   time what is not timed yet, then report
    python benchmarks/ranking_sweep.py --again                                           report what is timed

The grid has every block of one to eight equal parts along each axis, every register tile that fills a quarter of the registers or
more, walks of the whole reduction or of one of its divisors near two lengths, every choice of operands to stage. As many are drawn,
with the same seed every time; what the checks refuse has no time.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `python benchmarks/ranking_sweep.py` from anywhere

import tilelang as tl
from benchmarks import operators_cases
from benchmarks.harness import record, table
from benchmarks.operators_cases import Operator
from benchmarks.operators_ours import candidates
from benchmarks.ranking_candidates import Times, read, text_of, timed
from tilelang.autoschedule.common.axes import Fusions, fused, in_parts
from tilelang.autoschedule.common.task_accesses import Nest, nest_of
from tilelang.autoschedule.cpu.device import CpuDevice, cpu_device
from tilelang.autoschedule.cpu.growth import must_be_staged, staging_form, vectors
from tilelang.autoschedule.cpu.tile import CpuTile, shared_bytes, steps
from tilelang.computations.computation import as_computation
from tilelang.schedules.schedule import Schedule
from tilelang.schedules.task import plan

RESULTS = Path(__file__).parent / "results" / "ranking_sweep.jsonl"
SIX = ("M2", "C21", "C23", "D8", "P11", "R2")  # a product, 1 x 1 and 3 x 3 convolutions, depthwise, pooling, sums of rows
PARTS, ROWS, COLUMNS, LENGTHS, FIRST = (1, 2, 4, 8), (1, 2, 4, 6, 8, 12), (1, 2, 3, 4), (128, 384), 8


def grid(nest: Nest, fusions: Fusions, device: CpuDevice) -> Iterator[CpuTile]:
    """All tiles of a nest whose vectors go along an axis that `vectors` names."""
    reduced = {a.name: a.extent for a in nest.reduced}
    for axis, lanes in vectors(nest, device):
        kinds = {r.operand: kind for r in nest.reads if (kind := staging_form(nest, r)) is not None} if reduced else {}
        must = {r.operand for r in nest.reads if r.operand in kinds and must_be_staged(nest, r, axis)}
        subsets = [
            {n: kinds[n] for n in kept} for count in range(len(kinds) + 1) for kept in itertools.combinations(kinds, count)
        ]
        for piece in pieces(nest, device, axis, lanes):
            blocks = [sorted({in_parts(a.extent, n, piece[a.name]) for n in PARTS if n <= a.extent}) for a in nest.spatial]
            for sizes, chunk, staged in itertools.product(itertools.product(*blocks), chunks(nest, axis), subsets):
                if must <= staged.keys():
                    block = {a.name: n for a, n in zip(nest.spatial, sizes, strict=True)}
                    yield CpuTile(fusions, block, chunk, piece, (axis, lanes), staged)


def pieces(nest: Nest, device: CpuDevice, axis: str, lanes: int) -> Iterator[dict[str, int]]:
    """Register tiles: vectors along one axis, rows along each of the two innermost others."""
    others = [a for a in nest.spatial if a.name != axis][-2:]
    columns = COLUMNS if axis in {a.name for a in nest.spatial} else (1,)
    least = device.registers // 4 if len(columns) > 1 else 1
    for wide, *rows in itertools.product(columns, *(ROWS for _ in others)):
        sizes = {a.name: n for a, n in zip(others, rows, strict=True)}
        filled = wide * math.prod(rows)
        if least <= filled < device.registers and all(n <= nest.extents[a] for a, n in sizes.items()):
            along = {a.name: min(wide * lanes, in_parts(a.extent, 1, lanes)) for a in nest.spatial if a.name == axis}
            yield {a.name: 1 for a in nest.spatial} | sizes | along


def chunks(nest: Nest, axis: str) -> list[dict[str, int]]:
    """The whole reduction, or a divisor of its longest axis."""
    whole = {a.name: a.extent for a in nest.reduced}
    if not whole or axis in whole:
        return [whole]
    longest = max(nest.reduced, key=lambda a: a.extent)
    divisors = [n for n in range(1, longest.extent + 1) if longest.extent % n == 0]
    sizes = {min(divisors, key=lambda n: abs(math.log(n / length))) for length in (*LENGTHS, longest.extent)}
    return [whole | {longest.name: n} for n in sorted(sizes)]


def drawn(operator: Operator, device: CpuDevice, count: int) -> list[str]:
    """So many schedules of the grid whose shared memory a block has, as text."""
    computation = as_computation(operator.computation())
    root = nest_of(plan(computation, set())[-1])
    every = [(nest, tile) for fusions, nest in fused(root) for tile in grid(nest, fusions, device)]
    random.Random(operator.id).shuffle(every)
    fitting = ((nest, tile) for nest, tile in every if shared_bytes(nest, tile) <= device.shared_bytes)
    return [text_of(Schedule(computation, steps(nest, tile))) for nest, tile in itertools.islice(fitting, count)]


def report(operators: list[Operator], times: Times, profile: tl.Profile) -> str:
    """For each operator the best of the sweep, and construction's first and best of the first eight over it."""
    rows = [("operator", "timed", "best, us", "first", "first eight", "slower than the first")]
    first_of, eight_of = [], []
    for operator in operators:
        known = {t: us for t, us in times.get(operator.id, {}).items() if math.isfinite(us)}
        own = [known[t] for c in candidates(operator, profile)[0][:FIRST] if (t := text_of(c.schedule)) in known]
        if not own:
            continue
        best = min(known.values())
        first_of.append(own[0] / best)
        eight_of.append(min(own) / best)
        slower = sum(us > own[0] for us in known.values()) / len(known)
        rows.append((operator.id, str(len(known)), f"{best:.0f}", f"{first_of[-1]:.2f}", f"{eight_of[-1]:.2f}", f"{slower:.0%}"))
    if first_of:
        means = [math.exp(math.fsum(map(math.log, found)) / len(found)) for found in (first_of, eight_of)]
        rows.append(("mean", "", "", f"{means[0]:.2f}", f"{means[1]:.2f}", ""))
    return table(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("operators", nargs="*", metavar="OPERATOR", default=SIX)
    parser.add_argument("--schedules", type=int, default=150)
    parser.add_argument("--limit-s", type=float, default=35)
    parser.add_argument("--again", action="store_true", help="time nothing")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    target = tl.target("cpu")
    chosen = [o for o in operators_cases.read() if o.id in given.operators]
    end = time.monotonic() + given.limit_s
    for operator in () if given.again else chosen:
        known = read(given.results).get(operator.id, {})
        first = [text_of(c.schedule) for c in candidates(operator, target.profile)[0][:FIRST]]
        texts = [t for t in first if t not in known]
        if len(known) < given.schedules:
            texts += [t for t in drawn(operator, cpu_device(target.profile), given.schedules) if t not in known]
        rows = timed(operator, texts, end)
        record(given.results, rows, str(target.device))
        print(operator.id, len(rows), "timed", len(texts) - len(rows), "left", flush=True)
        if time.monotonic() > end:
            break
    print(report(chosen, read(given.results), target.profile))


if __name__ == "__main__":
    main()
