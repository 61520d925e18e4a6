"""Sums of products of two arrays, as (batched) matrix products."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def contract(a: Any, b: Any, outer: int) -> Any:
    """The sum of a * b over the dimensions from `outer` on; extents of 1 are broadcast. One (batched) matrix product."""
    ndim = a.ndim
    shape = tuple(max(p, q) if p and q else 0 for p, q in zip(a.shape, b.shape, strict=True))
    a_only = [d for d in range(ndim) if a.shape[d] != 1 and b.shape[d] == 1]
    b_only = [d for d in range(ndim) if b.shape[d] != 1 and a.shape[d] == 1]
    both = [d for d in range(ndim) if d not in a_only and d not in b_only]
    a = a.sum(axis=tuple(d for d in a_only if d >= outer), keepdims=True)
    b = b.sum(axis=tuple(d for d in b_only if d >= outer), keepdims=True)
    rows, columns = [d for d in a_only if d < outer], [d for d in b_only if d < outer]
    batch, depth = [d for d in both if d < outer], [d for d in both if d >= outer]
    free = [d for d in range(ndim) if d not in (*rows, *columns, *batch, *depth)]

    def matrix(x: Any, order: list[int], first: list[int], second: list[int]) -> Any:
        moved = np.transpose(x, (*order, *first, *second, *(d for d in range(ndim) if d not in (*order, *first, *second))))
        sizes = [math.prod(x.shape[d] for d in group) for group in (first, second)]
        return moved.reshape(*(x.shape[d] for d in order), *sizes)

    found = matrix(a, batch, rows, depth) @ matrix(b, batch, depth, columns)
    order = [*batch, *rows, *columns]
    found = found.reshape(tuple(shape[d] for d in order))
    assert all(d >= outer for d in free), "an output dimension belongs to a batch, to rows or to columns"
    return np.transpose(found, [order.index(d) for d in range(outer)])
