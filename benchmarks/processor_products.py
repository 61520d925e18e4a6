"""Products of 16-bit floats and of bytes by a processor's own instructions, beside those of float32, on the processor here.

    python benchmarks/processor_products.py [--sizes 1024 2048] [--repeats 9]

Each product is checked on its random inputs before it is timed. The calls of a size are interleaved, and the least time of each counts.
Instructions that the processor lacks are left out, and said so. The schedules are written by hand; `packed` and `tiled` are what a
schedule for such an instruction looks like: a layout that puts the parts of k which the instruction adds up side by side.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import time

import numpy as np

import tilelang as tl
from tilelang.instructions.instruction import use
from tilelang.semantics.reference import random_arrays

TYPES = {
    "x86_vdpbf16ps": (tl.bfloat16, tl.bfloat16, tl.float32),
    "x86_vpdpbusd": (tl.uint8, tl.int8, tl.int32),
    "x86_tdpbf16ps_m32n32k128": (tl.bfloat16, tl.bfloat16, tl.float32),
    "x86_tdpbf16ps": (tl.bfloat16, tl.bfloat16, tl.float32),
    "x86_tdpbssd_m32n32k256": (tl.int8, tl.int8, tl.int32),
    "x86_tdpbusd_m32n32k256": (tl.uint8, tl.int8, tl.int32),
    "x86_tdpbssd": (tl.int8, tl.int8, tl.int32),
    "x86_tdpbusd": (tl.uint8, tl.int8, tl.int32),
    "arm_bfmmla": (tl.bfloat16, tl.bfloat16, tl.float32),
    "arm_sdot": (tl.int8, tl.int8, tl.int32),
    "arm_udot": (tl.uint8, tl.uint8, tl.uint32),
}


def product(size: tuple[int, int, int], instruction: str) -> tl.Tensor:
    """C[m, n] = sum over k of A[m, k] B[k, n], in the types of an instruction; size: m, n and k."""
    left, right, sums = next(types for stem, types in TYPES.items() if instruction.startswith(stem))
    m, n, k = tl.axes(m=size[0], n=size[1], k=size[2])
    A, B = tl.input("A", left, m, k), tl.input("B", right, k, n)
    return tl.define("C", tl.sum(tl.cast(A[m, k], sums) * tl.cast(B[k, n], sums), over=k), m, n)


def plain(size: tuple[int, int, int]) -> tl.Schedule:
    """The same in float32, by multiply-adds of vectors: 8 rows of 48 columns in registers."""
    m, n, k = tl.axes(m=size[0], n=size[1], k=size[2])
    A, B = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n)
    return (
        tl.schedule(tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n))
        .tile(m=336, n=384).to(tl.block)
        .split(k=256)
        .load("B", tl.shared, layout=tl.layout(lambda k, n: (n // 48, k, n % 48)), steps=tl.move().vectorize(n=16))
        .load("A", tl.shared, layout=tl.layout(lambda m, k: (m // 8, k, m % 8)))
        .split(n=48, m=8)
        .accumulate(tl.register)
        .split(k=4)
        .split(k=1, unroll=True)
        .load("B", tl.register, steps=tl.move().vectorize(n=16))
        .split(m=1, unroll=True)
        .vectorize(n=16)
    )  # fmt: skip


def packed(c: tl.Tensor, name: str, n: int = 256, k: int = 1024, rows: int = 6, columns: int = 0) -> tl.Schedule:
    """By an instruction over vectors: rows x columns sums in registers, B packed once so that one vector is one load. A is read where
    it lies; where an instruction takes several of its rows, they are packed. columns, where it is 0: four vectors."""
    shape = use(name).shape
    depth, high, columns = shape["k"], shape.get("m", 1), columns or 4 * shape["n"]
    side_by_side = tl.layout(lambda k, n: (n // columns, k // depth, n % columns, k % depth))
    plan = (
        tl.schedule(c)
        .tile(m=c.shape[0], n=n).to(tl.block)
        .split(k=k)
        .load("B", tl.shared, layout=side_by_side,
              steps=tl.move().split(k=depth, n=min(16, columns)).split(k=1, unroll=True).vectorize(n=min(16, columns)))
    )  # fmt: skip
    if high > 1:
        together = tl.layout(lambda m, k: (m // rows, k // depth, m % rows, k % depth))
        plan = plan.split(m=40 * rows).load("A", tl.shared, layout=together, steps=tl.move().vectorize(k=depth))
    return (
        plan.split(m=rows)
        .split(n=columns)
        .accumulate(tl.register)
        .split(k=4 * depth)
        .split(k=depth, unroll=True)
        .load("B", tl.register, steps=tl.move().vectorize(n=16))
        .split(m=high, unroll=True)
        .load("A", tl.register, steps=tl.move().vectorize(k=depth))
        .do(name, n="n", k="k")
    )


def tiled(c: tl.Tensor, name: str, m: int = 512, n: int = 512, k: int = 1024) -> tl.Schedule:
    """By an instruction over tiles: A and B packed tile by tile in shared memory, sums in an array. What the instruction adds up of B
    comes from several of its rows, which the move interleaves."""
    shape = use(name).shape
    rows, depth, together = shape["m"], shape["k"], 32 // use(name).operand("A").dtype.bits
    step = 16 * together
    of_a = tl.layout(lambda m, k: (k // depth, m // rows, k % depth // step, m % rows // 16, m % 16, k % step))
    of_b = tl.layout(
        lambda k, n: (k // depth, n // rows, k % depth // step, n % rows // 16, k % step // together, n % 16, k % together)
    )
    return (
        tl.schedule(c)
        .tile(m=m, n=n).to(tl.block)
        .split(k=k)
        .load("A", tl.shared, layout=of_a, steps=tl.move().vectorize(k=step))
        .load("B", tl.shared, layout=of_b, steps=tl.move().split(k=together, n=16).split(k=1, unroll=True).vectorize(n=16))
        .split(n=rows, m=rows)
        .accumulate(tl.register)
        .do(name, m="m", n="n", k="k")
    )  # fmt: skip


def by_instruction(size: tuple[int, int, int], name: str) -> tl.Schedule:
    """The product by an instruction over tiles or over vectors."""
    return (tiled if name.startswith("x86_tdp") else packed)(product(size, name), name)


def with_instructions(target: tl.Target, *capabilities: str) -> tl.Target:
    """A target whose profile lists these, too."""
    listed = tuple(sorted({*target.profile.capabilities, *capabilities}))
    return dataclasses.replace(target, profile=dataclasses.replace(target.profile, capabilities=listed))


def here() -> tl.Target:
    """The processor, with the instructions that the system reports."""
    return tl.target("cpu")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1024, 2048])
    parser.add_argument("--repeats", type=int, default=9)
    given = parser.parse_args()
    target = here()
    there = [name for name in TYPES if use(name).unavailable(target.profile, "cpu") is None]
    print(f"{target.device}; without {', '.join(n for n in TYPES if n not in there) or 'none'}")
    for edge in given.sizes:
        size = (edge, edge, edge)
        plans = {"float32": plain(size)}
        plans |= {n: by_instruction(size, n) for n in there}
        kernels = {name: tl.compile(plan, target=target) for name, plan in plans.items()}
        arrays = {name: random_arrays(kernel.computation, seed=1) for name, kernel in kernels.items()}
        results = {name: kernel(**arrays[name]) for name, kernel in kernels.items()}
        best = dict.fromkeys(kernels, math.inf)
        for name, given_arrays in arrays.items():
            a, b = given_arrays["A"][:64].astype(np.float64), given_arrays["B"].astype(np.float64)
            if np.any(np.abs(results[name][:64] - a @ b) > 2.0**-23 * edge * (np.abs(a) @ np.abs(b))):
                raise SystemExit(f"{name} is wrong")
        for _ in range(given.repeats):
            for name, kernel in kernels.items():
                began = time.perf_counter()
                kernel(**arrays[name], out=results[name])
                best[name] = min(best[name], time.perf_counter() - began)
        for name, seconds in best.items():
            print(f"{edge}^3 {name:16} {seconds * 1e3:9.2f} ms {2e-9 * edge**3 / seconds:8.1f} G operations/s")


if __name__ == "__main__":
    main()
