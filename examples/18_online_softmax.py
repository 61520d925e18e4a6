"""Attention in one loop over the keys: several reductions share it, and those that read the peak so far are repaired when it changes.

`split j=64 of peak total mix` is the shared loop of online softmax and flash attention. The repairs are derived from the definitions,
which stay those of plain attention; `schedule.explain()` prints them.
Run: `python examples/18_online_softmax.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tilelang as tl

SHARED = ("peak", "total", "mix")


def attention(M: int, N: int, D: int) -> tl.Tensor:
    """O[i, e] = sum over j of softmax over j of (Q K^T)[i, j] times V[j, e]."""
    i, j, d, e = tl.axes(i=M, j=N, d=D, e=D)
    Q, K, V = tl.input("Q", tl.float32, i, d), tl.input("K", tl.float32, j, d), tl.input("V", tl.float32, j, e)
    S = tl.define("S", tl.sum(Q[i, d] * K[j, d], over=d), i, j)
    peak = tl.define("peak", tl.max(S[i, j], over=j), i)
    P = tl.define("P", tl.exp(S[i, j] - peak[i]), i, j)
    total = tl.define("total", tl.sum(P[i, j], over=j), i)
    mix = tl.define("mix", tl.sum(P[i, j] * V[j, e], over=j), i, e)
    return tl.define("O", mix[i, e] / total[i], i, e)


def cpu(o: tl.Tensor) -> tl.Schedule:
    """A core takes 16 queries. Scores and weights of 64 keys at a time stay in its cache, both products in its registers."""
    rows, wide = tl.move().split(i=1).vectorize(j=16), tl.move().vectorize(j=16)
    scores = tl.move().split(j=32, i=8).accumulate(tl.register).split(d=1).vectorize(j=16)
    return (
        tl.schedule(o)
        .tile(i=16).to(tl.block)
        .accumulate(tl.register)
        .split(j=64, of=SHARED)
        .load("K", tl.shared, layout=tl.layout("d", "j"))
        .compute("S", tl.shared, steps=scores)
        .compute("peak", tl.shared, steps=rows)
        .compute("P", tl.shared, steps=wide)
        .compute("total", tl.shared, steps=rows)
        .split(i=8)
        .split(j=1)
        .vectorize(e=16)
    )  # fmt: skip


def threads(o: tl.Tensor) -> tl.Schedule:
    """A block of 128 threads takes 16 queries; 8 threads reduce a row of 32 keys."""
    spread = tl.move().tile(i=1, j=4).to(tl.thread)
    return (
        tl.schedule(o)
        .units(block=tl.threads(128))
        .tile(i=16).to(tl.block)
        .load("Q", tl.shared)
        .split(j=32, of=SHARED)
        .load("K", tl.shared)
        .load("V", tl.shared)
        .compute("S", tl.shared, steps=spread)
        .compute("peak", tl.shared, steps=spread)
        .compute("P", tl.shared, steps=spread)
        .compute("total", tl.shared, steps=spread)
        .tile(i=1, e=8).to(tl.thread)
    )  # fmt: skip


def keys_over_blocks(o: tl.Tensor) -> tl.Schedule:
    """Flash decoding: four blocks take a quarter of the keys each, with a peak, a total and a mix of their own, which a second kernel
    repairs and combines. It keeps all cores busy if there are few queries."""
    rows, scores = tl.move().split(i=1).vectorize(j=64), tl.move().split(i=1).split(j=4).accumulate(tl.register).split(d=8)
    return (
        tl.schedule(o)
        .tile(i=16, j=128).to(tl.block)
        .accumulate(tl.register)
        .split(j=64, of=SHARED)
        .compute("S", tl.shared, steps=scores.split(j=1).vectorize(d=8))
        .compute("peak", tl.shared, steps=rows)
        .compute("P", tl.shared, steps=tl.move().vectorize(j=16))
        .compute("total", tl.shared, steps=rows)
        .split(i=8)
        .split(j=1)
        .vectorize(e=16)
    )  # fmt: skip


def schedules(M: int = 256, N: int = 512, D: int = 64, small: bool = False) -> dict[str, tl.Schedule]:
    """The schedules by name; small: as they are, for tiny sizes under a simulator."""
    o = attention(M, N, D)
    return {"cpu": cpu(o), "threads": threads(o), "keys_over_blocks": keys_over_blocks(o)}


def expected(Q: Any, K: Any, V: Any) -> Any:
    """The same by NumPy, in float64, as it is defined."""
    scores = Q.astype(np.float64) @ K.astype(np.float64).T
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True) @ V.astype(np.float64)


def main(M: int = 256, N: int = 512, D: int = 64, small: bool = False) -> None:
    """Every schedule: checked by the library, within the bound of its loop."""
    for name, schedule in schedules(M, N, D, small).items():
        kernel = tl.compile(schedule)
        if not kernel.check():
            raise SystemExit(f"{name} is wrong: {kernel.check()}")
        print(f"{name}: right, kernels: {len(kernel.resources)}, {kernel.benchmark(repeats=3) * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
