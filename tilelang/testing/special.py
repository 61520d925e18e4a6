"""Inputs with special values: NaN, infinities, denormals, signed zeros, and the extremes of each type.

An input is plain (zeros, small integers, random numbers) except in a few places, each with a special value; so a failing one shrinks to
a single special value, or to none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelang.computations.computation import Computation
from tilelang.semantics import reference
from tilelang.semantics.special_values import only_finite
from tilelang.semantics.special_values import special_values as special_values
from tilelang.testing.choice import Source

PLAIN = ("zero", "integers", "random")
MOST_SPECIAL = 5  # places of all inputs together


def draw_inputs(source: Source, computation: Computation, special: bool = True) -> dict[str, Any]:
    """Arrays for the inputs by name: plain ones and, if `special`, special values in a few places.

    NaN and infinities are left out if a reduction has a user-defined combiner, which only has to be valid on finite accumulators.
    """
    plain = source.pick(PLAIN)
    seed = source.integer(0, 999) if plain != "zero" and computation.inputs else 0
    found = reference.random_arrays(computation, seed) if plain == "random" else reference.integer_arrays(computation, seed)
    for t in computation.inputs:
        if plain == "zero" and t.range is None:
            found[t.name][...] = 0
    filled = [t for t in computation.inputs if 0 not in t.shape and special_values(t)]
    finite = only_finite(computation)
    for _ in range(source.integer(0, MOST_SPECIAL) if special and filled else 0):
        t = source.pick(filled)
        values = special_values(t, finite)
        array = found[t.name].reshape(-1)
        at = source.integer(0, array.size - 1)
        with np.errstate(all="ignore"):
            array[at] = source.pick(values)
        found[t.name] = array.reshape(t.shape)
    return found
