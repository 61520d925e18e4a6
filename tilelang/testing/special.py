"""Inputs with special values: NaN, infinities, numbers below the least normal one, both zeros, the ends of every type.

An input is plain (zeros, small integers, random numbers) but for a few places, which hold a special value each; so a failing one
shrinks to one special value in one place, or to none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelang import reference
from tilelang.bound import rounding
from tilelang.combiners import SHIPPED
from tilelang.computation import Computation, Tensor
from tilelang.testing.choice import Source

PLAIN = ("zero", "integers", "random")
MOST_SPECIAL = 5  # places of all inputs together


def special_values(tensor: Tensor, finite: bool = False) -> list[Any]:
    """The values of a tensor's type that most likely show a fault, within its range where it has one; the plainest come first.

    finite: without infinities and numbers that become one when two of them are added.

    >>> import tilelang as tl
    >>> special_values(tl.input("X", tl.int8, i=4))
    [1, -1, 127, -128]
    >>> special_values(tl.input("ids", tl.int32, i=4, range=(0, 10)))
    [0, 9]
    """
    t = tensor.dtype
    if tensor.range is not None:
        low, high = tensor.range
        return sorted({low, high - 1}) if low < high else []
    if t.kind == "bool":
        return [True, False]
    if t.is_integer:
        return sorted(
            {1, -1, int(t.highest), int(t.lowest)} if t.kind == "int" else {0, 1, int(t.highest)}, key=lambda n: (abs(n), -n)
        )
    r = rounding(t)
    found = [1.0, -1.0, 0.0, -0.0, 1 + 2 * r.unit, r.normal, -r.normal, r.normal - r.tiny, r.tiny, -r.tiny, float("nan")]
    if not finite:
        found += [r.largest, -r.largest] + [float(t.highest), float(t.lowest)] * (t.highest != r.largest)
    return found


def draw_inputs(source: Source, computation: Computation, special: bool = True) -> dict[str, Any]:
    """Arrays for the inputs by name: plain ones and, where `special`, special values in a few places.

    Infinities are left out where a reduction has a combiner of the user's own, which need only be one on finite states.
    """
    plain = source.pick(PLAIN)
    seed = source.integer(0, 999) if plain != "zero" and computation.inputs else 0
    found = reference.random_arrays(computation, seed) if plain == "random" else reference.integer_arrays(computation, seed)
    for t in computation.inputs:
        if plain == "zero" and t.range is None:
            found[t.name][...] = 0
    filled = [t for t in computation.inputs if 0 not in t.shape and special_values(t)]
    finite = any(d.reduction is not None and d.reduction.combiner.name not in SHIPPED for d in computation.definitions)
    for _ in range(source.integer(0, MOST_SPECIAL) if special and filled else 0):
        t = source.pick(filled)
        values = special_values(t, finite)
        array = found[t.name].reshape(-1)
        at = source.integer(0, array.size - 1)
        with np.errstate(all="ignore"):
            array[at] = source.pick(values)
        found[t.name] = array.reshape(t.shape)
    return found
