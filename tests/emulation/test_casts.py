"""Casts of floats to integers beyond the type end at its ends in the text of CUDA and HIP, too."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang as tl
from tests.test_casts import EDGES, ended
from tilelang.testing import emulation, lowered

pytestmark = pytest.mark.skipif(emulation.absent() is not None, reason=str(emulation.absent()))


@pytest.mark.parametrize("dialect", ["cuda", "hip"])
@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
def test_casts_end(source: str, dialect: str) -> None:
    i = tl.axes(i=48)
    X = tl.input("X", getattr(tl, source), i)
    targets = ("int8", "uint16", "int32", "uint64")
    outputs = tuple(tl.define(f"Y_{t}", tl.cast(X[i], getattr(tl, t)), i) for t in targets)
    with np.errstate(over="ignore"):
        x = np.resize(EDGES, 48).astype(X.dtype.numpy)
    for made in (tl.schedule(tl.computation("c", outputs)), tl.schedule(tl.computation("c", outputs)).vectorize(i=4)):
        found = emulation.run_program(lowered(made), dialect, {"X": x}, turns=1)
        for t in targets:
            assert np.array_equal(found[f"Y_{t}"], np.array([ended(float(v), t) for v in x], t)), t
