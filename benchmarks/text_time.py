"""How long the text form takes: `python benchmarks/text_time.py [--record benchmarks/results/text_time.jsonl]`.

Parsing, and parsing with both schedules bound and checked, of a file of 49 lines (limit 20 ms after the import); the largest inputs
that are read, per MB (limits 5 s and 300 MB); `tilelang --help` in a process of its own (limit 300 ms). Medians and least times.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.harness import record, table
from tilelang.errors import TileLangError
from tilelang.grammar import parse
from tilelang.grammar.parser import lark
from tilelang.grammar.scan import MOST_BYTES

FILE = """tilelang 1
use opencl_mad4
# A matrix product with bias, two schedules.
computation linear(M = 256, N = 256, K = 128, type = float32) {
  input A: type[m: M, k: K]
  input B: type[k: K, n: N]
  input bias: float32[n: N]
  acc[m, n] = sum[k] A[m, k] * B[k, n]
  output C[m, n] = cast(gelu(acc[m, n] + bias[n]), type)
}

schedule simt(BM = 64, BN = 64) for linear {
  tile m=BM n=BN -> block
  accumulate in register
  split k=8
  load A in shared layout (k, m) pad 4 ahead 1 {
    tile m=1 k=4 -> thread
    vectorize k=4
  }
  load B in shared ahead 1 {
    tile k=1 n=4 -> thread
    vectorize n=4
  }
  tile m=32 n=16 -> warp
  split k=1
  load A in register {
    vectorize m=4
  }
  load B in register {
    vectorize n=4
  }
  split m=16 n=16
  tile m=2 n=4 -> thread
}

schedule cpu for linear {
  tile m=64 n=96 -> block
  split k=64
  load B in shared layout (n / 48, k, n % 48) {
    vectorize n=16
  }
  split m=8
  split n=48
  accumulate in register
  split k=1 unroll
  load B in register { vectorize n=16 }
  split m=1 unroll
  vectorize n=16
}
"""


def times_ms(call: Callable[[], object], rounds: int = 21) -> tuple[float, float]:
    """Median and least milliseconds."""
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        found.append((time.perf_counter() - start) * 1e3)
    return statistics.median(found), min(found)


def bound() -> None:
    document = parse(FILE)
    document.schedule("simt")
    document.schedule("cpu")


def largest(most: int) -> dict[str, str]:
    """Inputs just below a limit of bytes, of several kinds."""
    definitions, steps = "  a{}[i] = X[i] + {}.0\n", "  split m=4\n"
    head = "computation f {\n  input X: float32[i: 4]\n"
    many = "".join(definitions.format(n, n) for n in range(most // 27))
    return {
        "definitions": f"{head}{many}  output Y[i] = X[i]\n}}\n",
        "steps": "computation f { output Y[] = 1.0 }\nschedule s for f {\n" + steps * ((most - 60) // len(steps)) + "}\n",
        "faults": f"{head}{'  output Y[i] = Z[i]' * ((most - 60) // 20)} }}",
        "comments": "# nothing\n" * (most // 10),
    }


def whole(text: str) -> float:
    """Reads a text and binds all that is in it; the seconds of the first part."""
    start, parsed = time.perf_counter(), 0.0
    try:
        document = parse(text)
        parsed = time.perf_counter() - start
        for name in document.computations:
            document.computation(name)
        for entry in document.schedules:
            document.schedule(entry.name)
    except TileLangError as error:
        str(error)
    return parsed or time.perf_counter() - start


def main(arguments: list[str] | None = None) -> None:
    """Measures and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, help="a file of JSON lines to append to")
    parser.add_argument("--bytes", type=int, default=MOST_BYTES, help="of the largest inputs")
    options = parser.parse_args(arguments)
    lark()
    rows: list[tuple[str, ...]] = [("what", "median ms", "least ms", "limit ms")]
    lines = len(FILE.splitlines())
    for name, call, limit in ((f"parse {lines} lines", lambda: parse(FILE), ""), ("parse, bind and check", bound, "20")):
        rows.append((name, *(f"{t:.1f}" for t in times_ms(call)), limit))
    help_ms = times_ms(lambda: subprocess.run([sys.executable, "-m", "tilelang", "--help"], capture_output=True, check=True), 7)
    rows.append(("tilelang --help", *(f"{t:.0f}" for t in help_ms), "300"))
    print(table(rows))
    large: list[tuple[str, ...]] = [("largest input", "bytes", "seconds", "s per MB", "of it parsing", "MB of memory per MB")]
    for name, text in largest(options.bytes).items():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.perf_counter()
        parsed = whole(text)
        seconds, per_mb = time.perf_counter() - start, 1e6 / len(text)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        figures = (f"{seconds:.2f}", f"{seconds * per_mb:.1f}", f"{parsed * per_mb:.1f}", f"{grown * per_mb:.0f}")
        large.append((name, str(len(text)), *figures))
    print(table(large))
    if options.record:
        record(options.record, [dict(zip(t[0], row, strict=True)) for t in (rows, large) for row in t[1:]], "the processor")


if __name__ == "__main__":
    main()
