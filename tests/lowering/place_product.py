"""Every kind of place of a definition, by every kind of reader and read, in tiles of every kind, for one and several outputs.

The product is enumerated, so that a combination that nobody thought of is in it; `benchmarks/places.py` goes through all of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import tilelang as tl
from tilelang.semantics import reference

TARGET = tl.target("cuda", profile="ampere")
TILE = 4
READERS = ("pointwise", "reduction", "restricted", "stage", "epilogue")
READS = ("plain", "pad", "where", "length", "window", "clamp", "gather", "shifted gather", "quotient", "wrapped", "reversed")
EXTENTS = {"whole": (8, 4), "partial": (7, 5), "one tile": (3, 4), "empty": (0, 5)}


class Case(NamedTuple):
    """A definition P, where it is, who reads it and how, what is an output, and the orders of the axes of P and of what reads it."""

    made: str
    place: str
    reader: str
    read: str
    extents: str
    outputs: str
    orders: str


def cases() -> Iterator[Case]:
    """The whole product, but for outputs that are none."""
    every = itertools.product(
        ("pointwise", "reduction"), ("inline", "register", "shared", "global", "output"),
        READERS, READS, EXTENTS,
        ("reader", "reader, place", "place, reader"), ("ij ij", "ji ij", "ij ji"),
    )  # fmt: skip
    return (c for c in map(Case._make, every) if c.place != "output" or c.outputs != "reader")


def computation(case: Case) -> tl.Computation:
    """P, and Y that reads it."""
    n, m = EXTENTS[case.extents]
    i, j, k, r = tl.axes(i=n, j=m, k=m, r=3)
    own, outer = ([{"i": i, "j": j}[a] for a in order] for order in case.orders.split())
    X, A, J = (
        tl.input("X", tl.float32, x=n, y=m),
        tl.input("A", tl.float32, a=m, r=3),
        tl.input("J", tl.int32, i, range=(0, max(n, 1))),
    )
    made = X[i, j] * 2 + 1 if case.made == "pointwise" else tl.sum(X[i, j] * A[j, r], over=r)
    P = tl.define("P", made, *own)

    def at(row: Any) -> Any:
        return P[tuple(row if a is i else a for a in own)]

    reads: dict[str, Callable[[], Any]] = {
        "plain": lambda: at(i),
        "pad": lambda: tl.pad(at(i - 1), 1),
        "where": lambda: tl.where(i > 0, at(i - 1), 3.0),
        "length": lambda: tl.where(j < J[i], at(i), 3.0),
        "window": lambda: tl.pad(at(i - 1), 0) + at(i) + tl.pad(at(i + 1), 2),
        "clamp": lambda: at(tl.minimum(i + 1, n - 1)),
        "gather": lambda: at(J[i]),
        "shifted gather": lambda: tl.pad(at(J[i] - 1), 1),
        "quotient": lambda: at(i // 2),
        "wrapped": lambda: at((i + 1) % max(n, 1)),
        "reversed": lambda: at(n - 1 - i),
    }
    value = reads[case.read]()
    if case.reader == "pointwise":
        Y = tl.define("Y", value * 3 - 1, *outer)
    elif case.reader in ("reduction", "restricted"):
        outer = [k if a is j else a for a in outer]
        U = tl.input("U", tl.float32, u=m, v=m)
        Y = tl.define("Y", tl.sum(value * U[k, j], over=j, where=j < J[i] if case.reader == "restricted" else None), *outer)
    elif case.reader == "stage":
        T = tl.define("T", value + 1, *own)
        left = T[tuple(a - 1 if a is j else a for a in own)]
        Y = tl.define("Y", T[tuple(own)] + tl.pad(left, 0), *outer)
    else:
        Y = tl.define("Y", tl.sum(X[i, k] * tl.input("U", tl.float32, u=m, v=m)[k, j], over=k) + value, *outer)
    return tl.computation("c", {"reader": (Y,), "reader, place": (Y, P), "place, reader": (P, Y)}[case.outputs])


def schedule(case: Case) -> tl.Schedule:
    """Blocks of a tile, of whose elements each thread takes two, with P and what reads it where the case says."""
    whole = computation(case)
    names = [d.name for d in whole.outputs[0].dims]
    made = tl.schedule(whole)
    if case.place == "global":
        made = made.compute("P", tl.global_)
    made = made.tile(**dict.fromkeys(names, TILE)).to(tl.block)
    if case.place in ("register", "shared"):
        made = made.compute("P", tl.register if case.place == "register" else tl.shared)
    if case.reader == "stage":
        made = made.compute("T", tl.shared)
    return made.tile(**{names[0]: 1, names[1]: 2}).to(tl.thread)


def outcome(case: Case) -> str:
    """ "right", the code of a refusal, or what is wrong."""
    try:
        kernel = tl.compile(schedule(case), TARGET)
    except tl.Refusal as refused:
        return refused.code
    rng = np.random.default_rng(1)
    arrays: dict[str, Any] = {
        t.name: rng.integers(*(t.range or (-3, 4)), t.shape).astype(t.dtype.numpy) for t in kernel.computation.inputs
    }
    report = tl.simulate(kernel, **arrays)
    if report.findings:
        return f"found: {report.findings[0]}"
    compared = reference.compare(kernel.computation, arrays, report.outputs, exactly=True)
    return "right" if compared else f"wrong: {compared}"
