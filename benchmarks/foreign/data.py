"""Arrays for the inputs of a program."""

import random
from typing import Any

import numpy as np

from benchmarks.foreign.naive import DTYPES, RANK, Array

# Less than the least normal float32, the ends of the integer types, halves.
ODD = (
    1e-30,
    1e-40,
    -1e-40,
    127.5,
    -128.5,
    255.9,
    -0.5,
    0.5,
    1.5,
    2.5,
    32768.0,
    65536.5,
    2.0**31,
    -(2.0**31) - 300,
    2.0**32,
    2.0**63,
)


def arrays(program: dict[str, Any], seed: int, kind: str) -> dict[str, Array]:
    """`kind`: small whole numbers (`exact`), normal ones (`random`), or with NaN, infinities, zeros of both signs (`special`)."""
    generator = np.random.default_rng(seed)
    found = {}
    for i in program["inputs"]:
        shape, dtype = tuple(e for _, e in i["dims"]), DTYPES[i["dtype"]]
        if i.get("range"):
            values: Array = generator.integers(i["range"][0], i["range"][1], shape)
        elif i["dtype"] == "bool":
            values = generator.integers(0, 2, shape)
        elif i["dtype"] in RANK:
            values = generator.standard_normal(shape) if kind != "exact" else generator.integers(-3, 4, shape)
            if kind == "special" and values.size:
                odd = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30 if RANK[i["dtype"]] > 16 else 60000.0, *ODD])
                values = np.where(generator.random(shape) < 0.15, odd[generator.integers(0, len(odd), shape)], values)
        elif kind == "exact":
            values = generator.integers(0 if i["dtype"][0] == "u" else -5, 6, shape)
        else:
            limits = np.iinfo(dtype)
            values = generator.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
        with np.errstate(all="ignore"):
            found[i["name"]] = np.asarray(values).astype(dtype)
    return found


def laid_out(array: Array, r: random.Random) -> Array:
    """The same values as they may lie in a program that is written by others: strided, turned, reversed, read only, unaligned."""
    chance = r.random()
    if chance < 0.4:
        return array
    if chance < 0.5:
        return np.asfortranarray(array)
    if chance < 0.65 and array.ndim:
        return np.ascontiguousarray(array[tuple(slice(None, None, -1) for _ in array.shape)])[
            tuple(slice(None, None, -1) for _ in array.shape)
        ]
    if chance < 0.8:
        room = np.zeros(tuple(2 * n + 1 for n in array.shape), array.dtype)
        part = room[tuple(slice(1, None, 2) for _ in array.shape)] if array.ndim else room[()]
        if array.ndim:
            part[...] = array
            return part
        return array
    if chance < 0.9:
        copy = array.copy()
        copy.flags.writeable = False
        return copy
    raw = np.zeros(array.nbytes + 1, np.uint8)[1:]
    unaligned = raw[: array.nbytes].view(array.dtype).reshape(array.shape)
    unaligned[...] = array
    return unaligned
