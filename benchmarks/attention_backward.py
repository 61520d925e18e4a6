"""The backward pass of attention beside PyTorch's: `heads x keys x width: share of the product's rate, times PyTorch`.

    TILELANG_THREADS=1 python benchmarks/attention_backward.py [--heads 4] [--keys 512,1024] [--widths 64,128] [--causal] [--rounds 7]

The share is over the five products of the backward pass, at the rate of our own product of three matrices of 1024 rows in the same run;
in a causal one, over the half of them that is not masked. PyTorch's flash backward has the output and the sums of the forward pass;
ours computes what it needs of them again. `both` is forward and backward together. Results are compared with those of eager PyTorch.
With one thread, times are of the processor, which others' load disturbs less than the clock's; else they are the clock's.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `python benchmarks/attention_backward.py` from anywhere

import numpy as np
import torch
from torch.nn import functional

import tilelang as tl
from benchmarks import machine
from benchmarks.harness import Comparison, Contestant, compare

THREADS = int(os.environ.get("TILELANG_THREADS", os.cpu_count() or 1))
SIDE = 1024  # of the product whose rate counts
APART = 1e-4  # the greatest difference from PyTorch, over the greatest result


def attention(heads: int, keys: int, width: int, causal: bool = False) -> tuple[tl.Tensor, tuple[tl.Tensor, ...]]:
    """softmax(Q K^T / sqrt(d)) V of as many queries as keys, and its gradients by Q, K and V for a seed dO."""
    b, s, t, d, e = tl.axes(b=heads, s=keys, t=keys, d=width, e=width)
    Q, K, V = (tl.input(n, tl.float32, *dims) for n, dims in (("Q", (b, s, d)), ("K", (b, t, d)), ("V", (b, t, e))))
    score = tl.sum(Q[b, s, d] * K[b, t, d], over=d) * width**-0.5
    P = tl.define("P", tl.where(t <= s, score, float("-inf")) if causal else score, b, s, t)
    peak = tl.define("peak", tl.max(P[b, s, t], over=t), b, s)
    ex = tl.define("ex", tl.exp(P[b, s, t] - peak[b, s]), b, s, t)
    total = tl.define("total", tl.sum(ex[b, s, t], over=t), b, s)
    A = tl.define("A", ex[b, s, t] / total[b, s], b, s, t)
    output = tl.define("O", tl.sum(A[b, s, t] * V[b, t, e], over=t), b, s, e)
    return output, tl.grad(output, (Q, K, V), tl.input("dO", tl.float32, b, s, e))


def product() -> tl.Tensor:
    """The product whose rate counts."""
    m, n, k = tl.axes(m=SIDE, n=SIDE, k=SIDE)
    return tl.define("C", tl.sum(tl.input("A", tl.float32, m, k)[m, k] * tl.input("B", tl.float32, k, n)[k, n], over=k), m, n)


def eager(q: Any, k: Any, v: Any, causal: bool) -> Any:
    """Attention of single operations."""
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), float("-inf"))
    return torch.softmax(scores, -1) @ v


def peers(arrays: dict[str, Any], causal: bool) -> dict[str, Callable[[], Any]]:
    """PyTorch's ways: the backward pass alone, and with the forward pass before it."""
    q, k, v = (torch.from_numpy(arrays[n])[None].requires_grad_() for n in ("Q", "K", "V"))
    seed = torch.from_numpy(arrays["dO"])[None]

    def both(forward: Callable[..., Any]) -> Any:
        return torch.autograd.grad(forward(q, k, v), (q, k, v), seed)

    flash = functools.partial(functional.scaled_dot_product_attention, is_causal=causal)
    plain = functools.partial(eager, causal=causal)
    made = {name: forward(q, k, v) for name, forward in (("flash", flash), ("eager", plain))}

    def backward(name: str) -> Any:
        return torch.autograd.grad(made[name], (q, k, v), seed, retain_graph=True)

    return {
        **{f"{name} backward": functools.partial(backward, name) for name in made},
        "flash both": functools.partial(both, flash),
        "eager both": functools.partial(both, plain),
    }


def ours(heads: int, keys: int, width: int, causal: bool) -> tuple[dict[str, Callable[[], Any]], dict[str, Any]]:
    """Our kernels over random arrays, and these."""
    output, gradients = attention(heads, keys, width, causal)
    backward = tl.compile(tl.computation("backward", gradients), "cpu", options=tl.Options(database=""))
    both = tl.compile(tl.computation("both", (output, *gradients)), "cpu", options=tl.Options(database=""))
    random = np.random.default_rng(0)
    arrays = {t.name: random.standard_normal(t.shape, np.float32) for t in both.computation.inputs}
    out = {t.name: np.empty(t.shape, np.float32) for t in both.computation.outputs}
    calls: dict[str, Callable[[], Any]] = {
        "backward": functools.partial(backward, **arrays, out={t.name: out[t.name] for t in gradients}),
        "both": functools.partial(both, **arrays, out=out),
    }
    for name, call in calls.items():
        call()
        plain = peers(arrays, causal)["eager backward"]()
        for tensor, expected in zip(gradients, plain, strict=True):
            most = float(np.abs(out[tensor.name] - expected[0].numpy()).max() / expected.abs().max())
            if not most <= APART:
                raise SystemExit(f"{name}: {tensor.name} is {most:.1e} from PyTorch's")
        print(f"{name}: {len(backward.resources if name == 'backward' else both.resources)} kernels", flush=True)
    return calls, arrays


def milliseconds(found: Comparison, name: str) -> float:
    """The least time of a contestant: of the processor if there is one thread."""
    return min(found.processor_seconds[name] if THREADS == 1 else found.seconds[name]) * 1e3


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints a line for each size."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--keys", default="512,1024,2048,4096")
    parser.add_argument("--widths", default="64,128")
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args(arguments)
    torch.set_num_threads(THREADS)
    print(f"{machine.machine()}; {THREADS} threads, PyTorch {torch.__version__}", flush=True)
    square = tl.compile(product(), "cpu", options=tl.Options(database=""))
    rows = np.random.default_rng(1).standard_normal((2, SIDE, SIDE), np.float32)
    reference = Contestant("product", "ours", functools.partial(square, *rows, out=np.empty((SIDE, SIDE), np.float32)))
    for width in map(int, given.widths.split(",")):
        for keys in map(int, given.keys.split(",")):
            calls, arrays = ours(given.heads, keys, width, given.causal)
            others = peers(arrays, given.causal)
            found = compare([reference, *(Contestant(n, "ours", c) for n, c in calls.items()),
                             *(Contestant(n, "torch", c) for n, c in others.items())], given.rounds)  # fmt: skip
            times = {name: milliseconds(found, name) for name in ("product", *calls, *others)}
            useful = 5 * 2 * given.heads * keys * keys * width / (2 if given.causal else 1)
            ideal = times["product"] * useful / (2 * SIDE**3)
            best = {kind: min(t for n, t in times.items() if n.endswith(f" {kind}")) for kind in calls}
            told = ", ".join(f"{name} {t:.1f} ms" for name, t in times.items())
            ratios = ", ".join(f"{kind} {best[kind] / times[kind]:.2f} x the best of PyTorch" for kind in calls)
            print(f"{given.heads} x {keys} x {width}: share {ideal / times['backward']:.2f}; {ratios}; {told}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
