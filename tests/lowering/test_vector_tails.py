"""The last vector of a row stores the elements that it has, and nothing beside them."""

import numpy as np
import pytest

import tilelang as tl


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "float16", "bfloat16", "int32", "float32", "int64", "float64"])
@pytest.mark.parametrize("lanes", [8, 16])
def test_what_follows_a_row_stays_as_it_was(lanes: int, name: str) -> None:
    for beyond in range(1, lanes):
        columns = lanes + beyond
        j, i, s = tl.axes(j=7, i=columns, s=2)
        X = tl.input("X", getattr(tl, name), y=7, x=columns + 1)
        Y = tl.define("Y", tl.max(X[j, i + s], over=s), j, i)
        made = tl.schedule(Y).tile(j=2, i=2 * lanes).to(tl.block).split(j=1).accumulate(tl.register)
        kernel = tl.compile(made.split(s=1, unroll=True).vectorize(i=lanes), tl.target("cpu"))
        x = np.random.default_rng(beyond).integers(0, 5, (7, columns + 1)).astype(X.dtype.numpy)
        for _ in range(3):  # from alternate ends
            out = np.zeros((7, columns), Y.dtype.numpy)
            assert np.array_equal(kernel(x, out=out), np.maximum(x[:, :-1], x[:, 1:]))
