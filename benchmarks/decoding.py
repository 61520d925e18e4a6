"""Decoding attention, one query of each head, beside a plain sum of the same bytes: `heads x keys x width: us, share of the bandwidth`.

    python benchmarks/decoding.py [--rounds 15]

The share is the time of the sum over that of attention, both over data beyond the caches and by schedules that are generated. Results
are checked against the reference first. `TILELANG_THREADS=1` and the processor times, which are printed too, help on a loaded machine.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `python benchmarks/decoding.py` from anywhere

import numpy as np

import tilelang as tl
from benchmarks import machine
from benchmarks.harness import Contestant, compare
from tilelang.semantics import reference

SIZES = ((1, 1 << 18, 64), (32, 4096, 128))


def attention(heads: int, keys: int, width: int) -> tl.Tensor:
    """softmax(q K^T / sqrt(d)) V for one query q of each head."""
    b, t, d, e = tl.axes(b=heads, t=keys, d=width, e=width)
    Q, K, V = (tl.input(n, tl.float32, *dims) for n, dims in (("Q", (b, d)), ("K", (b, t, d)), ("V", (b, t, e))))
    scores = tl.define("S", tl.sum(Q[b, d] * K[b, t, d], over=d) * width**-0.5, b, t)
    peak = tl.define("peak", tl.max(scores[b, t], over=t), b)
    weights = tl.define("P", tl.exp(scores[b, t] - peak[b]), b, t)
    total = tl.define("total", tl.sum(weights[b, t], over=t), b)
    mix = tl.define("mix", tl.sum(weights[b, t] * V[b, t, e], over=t), b, e)
    return tl.define("O", mix[b, e] / total[b], b, e)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints a line for each size."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args(arguments).rounds
    print(machine.machine(), flush=True)
    for heads, keys, width in SIZES:
        output = attention(heads, keys, width)
        kernel = tl.compile(output, "cpu", options=tl.Options(database=""))
        arrays = reference.random_arrays(kernel.computation, 0)
        out = kernel(**arrays)
        if not reference.compare(kernel.computation, arrays, {output.name: out}):
            raise SystemExit(f"{heads} x {keys} x {width} is wrong")
        i, j = tl.axes(i=2 * heads * keys, j=width)
        X = np.concatenate([arrays[n].reshape(-1, width) for n in ("K", "V")])
        read = tl.compile(tl.define("total", tl.sum(tl.input("X", tl.float32, i, j)[i, j], over=(i, j))), "cpu")
        sides = {"decoding": functools.partial(kernel, **arrays, out=out), "sum": functools.partial(read, X)}
        found = compare([Contestant(name, "ours", call) for name, call in sides.items()], rounds)
        times = ", ".join(f"{name} {found.median_ms(name) * 1e3:.0f} us" for name in sides)
        shares = (
            f"{found.ratio('decoding', 'sum'):.2f} by the clock, {found.processor_ratio('decoding', 'sum'):.2f} of processor time"
        )
        print(f"{heads} x {keys} x {width}: {times}; {shares}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
