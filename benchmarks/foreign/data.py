"""Arrays for the inputs of a program."""

from typing import Any

import numpy as np

from benchmarks.foreign.naive import DTYPES, RANK, Array


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
                odd = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30 if RANK[i["dtype"]] > 16 else 60000.0, 1e-30])
                values = np.where(generator.random(shape) < 0.15, odd[generator.integers(0, len(odd), shape)], values)
        elif kind == "exact":
            values = generator.integers(0 if i["dtype"][0] == "u" else -5, 6, shape)
        else:
            limits = np.iinfo(dtype)
            values = generator.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
        with np.errstate(all="ignore"):
            found[i["name"]] = np.asarray(values).astype(dtype)
    return found
