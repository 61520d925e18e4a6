"""The schedules of docs/tutorial.md, each timed in turns with NumPy's product.

    python benchmarks/tutorial.py [--rounds 9] [--size 1024] [--only 5 6] [--processor-time] [--write]

The schedules are those of the page: its Python blocks are executed, and define `step_1`, `step_2`, ... Every result is checked against
NumPy's before it is timed. Steps that take longer than half a second are timed in two rounds. `--write` puts the times into the page.
`--processor-time` is for a machine that has other work to do. It takes the least processor time of the rounds, with one thread on
each side, because waiting threads of OpenBLAS spin:

    OPENBLAS_NUM_THREADS=1 TILELANG_THREADS=1 python benchmarks/tutorial.py --processor-time
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import platform
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tilelang as tl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.harness import Contestant, compare, table

PAGE = Path(__file__).resolve().parent.parent / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINE = re.compile(r"^Step (\d+): .*$", re.MULTILINE)
SLOW_MS, SLOW_ROUNDS = 500.0, 2

Step = Callable[[tl.Tensor], tl.Schedule]


def steps(page: str) -> tuple[Callable[[int], tl.Tensor], dict[int, Step]]:
    """The product of a size, and its schedules by their numbers, as the page defines them."""
    namespace: dict[str, Any] = {"__name__": "tutorial"}
    with contextlib.redirect_stdout(io.StringIO()):
        for block in BLOCK.findall(page):
            exec(block, namespace)
    found = {int(name.removeprefix("step_")): made for name, made in namespace.items() if re.fullmatch(r"step_\d+", name)}
    return namespace["matmul"], found


def measured(what: tl.Schedule | tl.Tensor, size: int, rounds: int, processor_time: bool = False) -> tuple[float, float]:
    """The median time of a schedule in milliseconds, and its speed as a share of NumPy's; or both by the least processor time."""
    generator = np.random.default_rng(0)
    a, b = (generator.standard_normal((size, size), np.float32) for _ in "ab")
    ours, theirs = np.empty((size, size), np.float32), np.empty((size, size), np.float32)
    kernel = tl.compile(what)
    both = [
        Contestant("tilelang", "tilelang", lambda: kernel(a, b, out=ours)),
        Contestant("NumPy", "NumPy", lambda: np.matmul(a, b, out=theirs)),
    ]
    found = compare(both, rounds=1)
    if not np.allclose(ours, theirs, rtol=1e-3, atol=1e-3):
        raise SystemExit("a step gives another result than NumPy")
    found = compare(both, rounds=SLOW_ROUNDS if found.median_ms("tilelang") > SLOW_MS else rounds)
    if processor_time:
        least = {name: min(seconds) for name, seconds in found.processor_seconds.items()}
        return least["tilelang"] * 1e3, least["NumPy"] / least["tilelang"]
    return found.median_ms("tilelang"), found.ratio("tilelang", "NumPy")


def text(number: int, ms: float, share: float) -> str:
    """The line of a step in the page."""
    return f"Step {number}: {ms:.{0 if ms >= 100 else 1}f} ms, {share:.{2 if share >= 0.02 else 4}f} of NumPy's speed."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--only", type=int, nargs="*")
    parser.add_argument("--processor-time", action="store_true")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    product, made = steps(page)
    c = product(given.size)
    if any(name in os.environ for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")):
        print("NumPy's OpenBLAS does not run with its own settings: OPENBLAS_... is set")
    print(
        f"{tl.target('cpu').device}, {platform.system()}, NumPy {np.__version__}; {given.size} x {given.size} x {given.size}, float32"
    )
    rows, lines = [("", "ms", "share of NumPy")], {}
    for number in sorted(made):
        if not given.only or number in given.only:
            ms, share = measured(made[number](c), given.size, given.rounds, given.processor_time)
            rows.append((f"step {number}", f"{ms:.2f}", f"{share:.4f}"))
            lines[number] = text(number, ms, share)
            print(lines[number], flush=True)
    ms, share = measured(c, given.size, given.rounds, given.processor_time)
    rows.append(("without a schedule", f"{ms:.2f}", f"{share:.4f}"))
    print(table(rows))
    if given.write:
        PAGE.write_text(LINE.sub(lambda m: lines.get(int(m[1]), m[0]), page), encoding="utf-8")


if __name__ == "__main__":
    main()
