"""Gradients as kernels: compiled for the CPU and compared with the reference, and simulated for GPUs."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tilelang as tl
from tests.test_gradient import drawn
from tilelang import testing

I, J = tl.axes(i=12, j=40)
Made = tl.Tensor | tuple[tl.Tensor, ...]


def inputs(dtype: tl.DType = tl.float32, **shapes: tuple[Any, ...]) -> list[tl.Tensor]:
    return [tl.input(name, dtype, *axes) for name, axes in shapes.items()]


def softmax() -> Made:
    X, S = inputs(X=(I, J), S=(I, J))
    return tl.grad(tl.define("y", tl.softmax(X[I, J], over=J), I, J), X, S)


def layer_norm() -> Made:
    X, scale, S = inputs(X=(I, J), scale=(J,), S=(I, J))
    return tl.grad(tl.define("y", tl.layer_norm(X[I, J], over=J) * scale[J], I, J), (X, scale), S)


def product(dtype: tl.DType = tl.float32) -> Made:
    m, n, k = tl.axes(m=32, n=48, k=32)
    A, B, S = inputs(dtype, A=(m, k), B=(k, n), S=(m, n))
    return tl.grad(tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n), (A, B), S)


def convolution() -> Made:
    p, u, c, o = tl.axes(p=15, u=3, c=4, o=4)
    X, W, S = tl.input("X", tl.float32, c, h=30), *inputs(W=(o, c, u), S=(o, p))
    y = tl.define("y", tl.sum(tl.pad(X[c, 2 * p + u - 1], 0) * W[o, c, u], over=(c, u)), o, p)
    return tl.grad(y, (X, W), S)


def pooling() -> Made:
    p, w = tl.axes(p=14, w=3)
    X, S = tl.input("X", tl.float32, I, h=30), tl.input("S", tl.float32, I, p)
    return tl.grad(tl.define("y", tl.max(X[I, 2 * p + w], over=w), I, p), X, S)


def embedding() -> Made:
    t, e = tl.axes(t=9, e=16)
    ids, table = tl.input("ids", tl.int32, t, range=(0, 7)), tl.input("table", tl.float32, v=7, e=16)
    return tl.grad(tl.define("y", tl.tanh(table[ids[t], e]), t, e), table, tl.input("S", tl.float32, t, e))


MADE: dict[str, Callable[[], Made]] = {
    "softmax": softmax, "layer norm": layer_norm, "product": product, "product of float16": lambda: product(tl.float16),
    "convolution": convolution, "pooling": pooling, "embedding": embedding,
}  # fmt: skip


@pytest.mark.parametrize("profile", ["ampere", "cdna3"])
@pytest.mark.parametrize("name", MADE)
def test_simulated_on_gpus(name: str, profile: str) -> None:
    target = tl.target("hip" if profile == "cdna3" else "cuda", profile=profile)
    kernel = tl.compile(tl.computation("g", MADE[name]()), target=target)
    assert str(tl.simulate(kernel)) == "no faults found"
    if (name, profile) == ("product of float16", "ampere"):
        assert "mma" in kernel.source  # it is a plain product, so instructions match


@pytest.mark.parametrize("name", MADE)
def test_on_the_cpu(name: str) -> None:
    assert tl.compile(tl.computation("g", MADE[name]())).check().ok


@testing.kernel_test
@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_gradients(data: st.DataObject) -> None:
    outputs, wanted = drawn(data, tl.float32)
    seeds = tuple(tl.input(f"seed_{t.name}", tl.float32, *t.dims) for t in outputs)
    whole = tl.computation("g", tl.grad(outputs, wanted, seeds))
    report = tl.compile(whole).check()
    assert report.ok, f"{report}\n{whole.text}"


def test_the_bounds_of_a_long_row_are_proven_without_trying_every_point() -> None:
    p, u, h = tl.axes(p=(1 << 20) - 8, u=9, h=1 << 20)
    V, W = tl.input("V", tl.float32, h), tl.input("W", tl.float32, u)
    y = tl.define("y", tl.sum(V[p + u] * tl.exp(W[u]), over=u), p)
    gradient = tl.grad(y, V, tl.input("S", tl.float32, p))
    assert str(gradient.definition) == "<dy_dV[h] = sum[u: u <= h and h < u + 1048568](S[h - u] * dy_dV_factor[u])>"
