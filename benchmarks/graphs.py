"""Graphs beside the same graphs with their parts compiled apart: `graph size: whole us, apart us, ratio`.

    python benchmarks/graphs.py [--only mlp,attention] [--rounds 7]

Each graph has three sizes: within the L2 caches, within the last cache, and beyond. Its parts are what one would compile apart: up to
an activation, a normalization, the weights of attention. All results are checked against the reference first; whole and apart take
turns.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `python benchmarks/graphs.py` from anywhere

import numpy as np

import tilelang as tl
from benchmarks import machine
from benchmarks.harness import Contestant, compare
from tilelang.semantics import reference

Parts = list[tl.Tensor]  # each of inputs that have the names of the parts before it; a whole graph is a single one
SIZES = {
    "mlp": ((128, 128, 256, 128), (512, 512, 1024, 512), (2048, 2048, 4096, 2048)),
    "two_products": ((128, 128, 256, 128), (512, 512, 1024, 512), (2048, 2048, 4096, 2048)),
    "normalized_product": ((128, 256, 128), (1024, 1024, 512), (4096, 4096, 2048)),
    "attention": ((2, 128, 128, 64), (8, 512, 512, 64), (32, 1024, 1024, 64)),
}


def mlp(apart: bool, m: int, k: int, h: int, n: int, function: Callable[..., tl.Expr] | None = tl.gelu) -> Parts:
    """gelu(X W1 + b) W2."""
    i, c, j, o = tl.axes(i=m, c=k, j=h, o=n)
    X, W1, b, W2 = (tl.input(t, tl.float32, *d) for t, d in (("X", (i, c)), ("W1", (c, j)), ("b", (j,)), ("W2", (j, o))))
    total = tl.sum(X[i, c] * W1[c, j], over=c)
    first = tl.define("H", function(total + b[j]) if function is not None else total, i, j)
    H = tl.input("H", tl.float32, i, j) if apart else first
    return [first] * apart + [tl.define("Y", tl.sum(H[i, j] * W2[j, o], over=j), i, o)]


def two_products(apart: bool, m: int, k: int, h: int, n: int) -> Parts:
    """(X W1) W2."""
    return mlp(apart, m, k, h, n, None)


def normalized_product(apart: bool, m: int, k: int, n: int) -> Parts:
    """Rows of mean 0 and variance 1, times W."""
    i, c, o = tl.axes(i=m, c=k, o=n)
    X, W = tl.input("X", tl.float32, i, c), tl.input("W", tl.float32, c, o)
    mean = tl.define("mean", tl.sum(X[i, c], over=c) / float(k), i)
    variance = tl.define("variance", tl.sum((X[i, c] - mean[i]) * (X[i, c] - mean[i]), over=c) / float(k), i)
    first = tl.define("N", (X[i, c] - mean[i]) * tl.rsqrt(variance[i] + 1e-5), i, c)
    N = tl.input("N", tl.float32, i, c) if apart else first
    return [first] * apart + [tl.define("Y", tl.sum(N[i, c] * W[c, o], over=c), i, o)]


def attention(apart: bool, heads: int, queries: int, keys: int, width: int) -> Parts:
    """softmax(Q K^T / sqrt(d)) V."""
    b, s, t, d, e = tl.axes(b=heads, s=queries, t=keys, d=width, e=width)
    Q, K, V = (tl.input(n, tl.float32, *dims) for n, dims in (("Q", (b, s, d)), ("K", (b, t, d)), ("V", (b, t, e))))
    scores = tl.define("P", tl.sum(Q[b, s, d] * K[b, t, d], over=d) * width**-0.5, b, s, t)
    P = tl.input("P", tl.float32, b, s, t) if apart else scores
    peak = tl.define("peak", tl.max(P[b, s, t], over=t), b, s)
    ex = tl.define("ex", tl.exp(P[b, s, t] - peak[b, s]), b, s, t)
    total = tl.define("total", tl.sum(ex[b, s, t], over=t), b, s)
    weights = tl.define("A", ex[b, s, t] / total[b, s], b, s, t)
    A = tl.input("A", tl.float32, b, s, t) if apart else weights
    return [scores, weights] * apart + [tl.define("O", tl.sum(A[b, s, t] * V[b, t, e], over=t), b, s, e)]


def ready(parts: Parts, given: dict[str, np.ndarray]) -> Callable[[], object]:
    """A call of kernels one after another, each checked. SystemExit: one is wrong."""
    calls, known = [], dict(given)
    for part in parts:
        kernel = tl.compile(part, "cpu")
        arrays = [known[t.name] for t in kernel.computation.inputs]
        out = known[part.name] = np.empty(part.shape, np.float32)
        kernel(*arrays, out=out)
        report = reference.compare(
            kernel.computation, {t.name: known[t.name] for t in kernel.computation.inputs}, {part.name: out}
        )
        if not report:
            raise SystemExit(f"{part.name} is wrong: {report}")
        calls.append((kernel, arrays, out))
    return lambda: [kernel(*arrays, out=out) for kernel, arrays, out in calls]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints a line for each graph and size."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default=",".join(SIZES), help="graphs, with commas between")
    parser.add_argument("--sizes", type=int, default=3, help="of each graph the first so many sizes")
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args(arguments)
    print(machine.machine(), flush=True)
    graphs: dict[str, Callable[..., Parts]] = {
        "mlp": mlp, "two_products": two_products, "normalized_product": normalized_product, "attention": attention,
    }  # fmt: skip
    for name in given.only.split(","):
        for size in SIZES[name][: given.sizes]:
            whole = graphs[name](False, *size)
            arrays = reference.random_arrays(tl.computation(name, whole[0]), 0)
            sides = {"whole": ready(whole, arrays), "apart": ready(graphs[name](True, *size), arrays)}
            found = compare([Contestant(who, "ours", call) for who, call in sides.items()], given.rounds)
            times = ", ".join(f"{who} {found.median_ms(who) * 1e3:.0f} us" for who in sides)
            print(f"{name} {'x'.join(map(str, size))}: {times}, {found.ratio('whole', 'apart'):.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
