"""Schedules written by hand for the operators of `benchmarks/operators.py`, where there is one: what construction must reach.

They are the forms that measured best on two cores with vectors of 16 floats: packed panels and an 8 x 48 register tile for products and
for convolutions without gaps, whole planes in shared memory for windows, long vectors and streaming stores for what only moves.
"""

from __future__ import annotations

import tilelang as tl
from benchmarks.cpu_schedules import even, matmul_schedule
from benchmarks.operators_cases import Operator


def by_hand(operator: Operator) -> tl.Schedule | None:
    """The schedule of an operator; None where nobody wrote one."""
    match operator.kind:
        case "matmul":
            m, n, k = operator.extents
            return product(operator) if k >= 64 and n >= 48 else None
        case "convolution":
            return convolution(operator)
        case "row_sum":
            return row_sum(operator)
        case "relu":
            return relu(operator)
    return plane(operator)


def product(operator: Operator) -> tl.Schedule:
    m, n, k = operator.extents
    return matmul_schedule(m, n, k)


def convolution(operator: Operator) -> tl.Schedule | None:
    """The panels of a product; images and filters are packed, pixels that follow each other are one axis."""
    _, stride, _, side = operator.facts
    if stride != 1:
        return None
    pixels, filters, wide = side * side, operator.extents[3], tl.move().vectorize(pq=16)
    columns, rows = min(((48, 8), (64, 6), (32, 12)), key=lambda shape: -(-pixels // shape[0]) * shape[0])
    return (
        tl.schedule(operator.computation())
        .fuse(pq=("p", "q"))
        .fuse(k=("c", "r", "s"))
        .tile(n=1, f=even(filters, 336, rows), pq=even(pixels, 480, columns)).to(tl.block)
        .accumulate(tl.shared, steps=wide)
        .split(k=even(operator.terms, 128))
        .load("X", tl.shared, layout=tl.layout(lambda pq, k: (pq // columns, k, pq % columns)))
        .load("W", tl.shared, layout=tl.layout(lambda f, k: (f // rows, k, f % rows)))
        .split(pq=columns, f=rows)
        .accumulate(tl.register)
        .split(k=4, peel=True).split(k=1, unroll=True)
        .load("X", tl.register, steps=wide)
        .split(f=1, unroll=True)
        .vectorize(pq=16)
    )  # fmt: skip


def plane(operator: Operator) -> tl.Schedule | None:
    """Windows over a plane in shared memory, three rows of 16 pixels at a time."""
    r, stride, padding, _ = operator.facts
    if stride != 1 or not padding:
        return None
    return (
        tl.schedule(operator.computation())
        .tile(n=1, c=1).to(tl.block)
        .load("X", tl.shared)
        .split(p=3).split(q=16)
        .accumulate(tl.register)
        .split(r=1, unroll=True).split(s=1, unroll=True)
        .split(p=1, unroll=True)
        .vectorize(q=16)
    )  # fmt: skip


def row_sum(operator: Operator) -> tl.Schedule:
    """Long rows in vectors; short ones each in one vector of partial sums."""
    wide = 64 if operator.extents[1] >= 64 else 16
    made = tl.schedule(operator.computation()).tile(i=16).to(tl.block).split(i=1).accumulate(tl.register).split(j=wide)
    return (made.load("X", tl.l1, ahead=16) if operator.extents[1] >= 1024 else made).vectorize(j=wide)


def relu(operator: Operator) -> tl.Schedule:
    """A stream past the caches where the result is larger than they are."""
    made = tl.schedule(operator.computation()).tile(i=min(65536, operator.extents[0])).to(tl.block)
    if operator.bytes > 1 << 24:
        made = made.via(tl.register, stream=True)
    return made.split(i=64).load("X", tl.l1, ahead=16).vectorize(i=64)
