"""Sums under a condition: which axes are vectorized and fused in them."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang as tl
from tilelang.autoschedule.common.axes import fused
from tilelang.autoschedule.common.conditions import divided_share
from tilelang.autoschedule.common.task_accesses import Nest, nest_of
from tilelang.schedules.steps import Vectorize
from tilelang.schedules.task import make_task


def convolution(n: int, c: int, f: int, size: int, window: int = 3) -> tl.Tensor:
    """A convolution of images to images of the same size, which skips what lies outside."""
    N, C, F, P, Q, H, W, R, S = tl.axes(n=n, c=c, f=f, p=size, q=size, h=size, w=size, r=window, s=window)
    X, K = tl.input("X", tl.float32, N, C, H, W), tl.input("K", tl.float32, F, C, R, S)
    y, x = P + R - window // 2, Q + S - window // 2
    inside = (y >= 0) & (y < size) & (x >= 0) & (x < size)
    return tl.define("O", tl.sum(X[N, C, y, x] * K[F, C, R, S], over=(C, R, S), where=inside), N, F, P, Q)


def nest(output: tl.Tensor) -> Nest:
    return nest_of(make_task((output,), lambda t: False))


def test_vectors_that_a_condition_divides() -> None:
    of = nest(convolution(2, 8, 16, 32))
    assert divided_share(of, "f", 8) == 0 and divided_share(of, "q", 8) == divided_share(of, "p", 8) == 0.5
    assert divided_share(of.fuse("p_q", ("p", "q")), "p_q", 8) == 1  # the condition divides by the extent of q

    i, j = tl.axes(i=64, j=64)
    X, n = tl.input("X", tl.float32, i, j), tl.input("n", tl.int32, i, range=(0, 64))
    triangle = nest(tl.define("T", tl.sum(X[i, j], over=j, where=j <= i), i))
    ragged = nest(tl.define("L", tl.sum(X[i, j], over=j, where=j < n[i]), i))
    assert divided_share(triangle, "i", 8) == divided_share(triangle, "j", 8) == 0.125
    assert divided_share(ragged, "j", 8) == 0.125 and divided_share(ragged, "i", 8) == 1  # any lane may be at its end
    assert divided_share(nest(tl.define("S", tl.sum(X[i, j], over=j), i)), "i", 8) == 0


def test_axes_of_a_condition_are_not_fused_for_free() -> None:
    plain, *_ = fused(nest(convolution(2, 8, 16, 32, window=1)))
    assert "p_q" not in plain[1].extents


@pytest.mark.parametrize("profile", ["zen3", "avx2", "sapphire_rapids", "neon"])
def test_a_convolution_without_padding_is_vectorized_along_its_filters(profile: str) -> None:
    """Along a row of pixels, the first and the last vector of each would be updated lane by lane."""
    kernel = tl.compile(convolution(2, 16, 64, 28), tl.target("cpu", profile=profile))
    assert [s.axis for s in kernel.schedule.steps if isinstance(s, Vectorize)] == ["f"]


@pytest.mark.parametrize(
    ("n", "c", "f", "size", "window"), [(1, 3, 5, 9, 3), (2, 4, 33, 13, 5), (1, 1, 1, 8, 3), (1, 2, 16, 4, 7)]
)
def test_such_convolutions_are_right(n: int, c: int, f: int, size: int, window: int) -> None:
    """Infinite weights meet no padding: what lies outside is skipped, not multiplied by zero."""
    kernel = tl.compile(convolution(n, c, f, size, window), "cpu")
    assert kernel.check()
    random = np.random.default_rng(0)
    x, k = random.random((n, c, size, size), np.float32), np.ones((f, c, window, window), np.float32)
    k[:, :, 0, 0] = np.inf
    result, half = kernel(x, k), window // 2
    assert np.isposinf(result[:, :, half:, half:]).all() and np.isfinite(result[:, :, :half]).all()
