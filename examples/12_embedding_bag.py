"""Embedding bag: rows of a table, chosen by an integer tensor, added up.

The range of the indices is stated with the input, so every read is proven to lie inside the table.

Run: `python examples/12_embedding_bag.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tilelang as tl


def embedding_bag(V: int, E: int, B: int, T: int) -> tl.Tensor:
    """Y[b, e] = sum over t of table[ids[b, t], e]."""
    b, t, e = tl.axes(b=B, t=T, e=E)
    ids = tl.input("ids", tl.int32, b, t, range=(0, V))
    table = tl.input("table", tl.float32, v=V, e=E)
    return tl.define("Y", tl.sum(table[ids[b, t], e], over=t), b, e)


def cpu(y: tl.Tensor, e: int = 64) -> tl.Schedule:
    """A bag a core: e sums in vector registers, read straight from the table's rows."""
    return (
        tl.schedule(y)
        .tile(b=1).to(tl.block)
        .split(e=e)
        .accumulate(tl.register)
        .split(t=1)
        .split(e=16, unroll=True)
        .vectorize(e=16)
    )  # fmt: skip


def simt(y: tl.Tensor, b: int = 4, e: int = 64, t: int = 8) -> tl.Schedule:
    """Threads: gathered rows staged by access, one element per (bag, position, column)."""
    return (
        tl.schedule(y)
        .tile(b=b, e=e).to(tl.block)
        .accumulate(tl.register)
        .split(t=t)
        .load("ids", tl.shared)
        .load("table", tl.shared, layout=tl.layout("b", "t", "e"), steps=tl.move().tile(b=1, t=1, e=4).to(tl.thread).vectorize(e=4))
        .tile(b=1, e=4).to(tl.thread)
        .split(t=1)
    )  # fmt: skip


def schedules(V: int = 1000, E: int = 100, B: int = 257, T: int = 30, small: bool = False) -> dict[str, tl.Schedule]:
    """The schedules by name; small: with tiles for tiny sizes under a simulator."""
    y = embedding_bag(V, E, B, T)
    return {"cpu": cpu(y, 32), "simt": simt(y, 2, 16, 2)} if small else {"cpu": cpu(y), "simt": simt(y)}


def expected(ids: Any, table: Any) -> Any:
    """The same by NumPy, in float64."""
    return table.astype(np.float64)[ids].sum(axis=1)


def main(V: int = 1000, E: int = 100, B: int = 257, T: int = 30, small: bool = False) -> None:
    """Every schedule: checked by the library, compared with NumPy within the derived bound, timed."""
    generator = np.random.default_rng(0)
    ids, table = generator.integers(0, V, (B, T), np.int32), generator.standard_normal((V, E), np.float32)
    for name, schedule in schedules(V, E, B, T, small).items():
        kernel = tl.compile(schedule)
        error = np.abs(kernel(ids, table) - expected(ids, table))
        if not kernel.check() or np.any(error > kernel.computation.bound(ids=ids, table=table)):
            raise SystemExit(f"{name} is wrong: {kernel.check()}")
        print(f"{name}: right, {kernel.benchmark(repeats=3) * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
