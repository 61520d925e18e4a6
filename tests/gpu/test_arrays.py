"""Arrays of PyTorch, CuPy and JAX on the GPU: taken where they lie, in the order of their streams."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tests.errors._computations import copy, matmul
from tilelang.errors import ComputationError


@pytest.fixture(autouse=True)
def on_a_device(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--emulated"):
        pytest.skip("an emulated device has no arrays of other libraries")


@pytest.fixture
def torch() -> Any:
    found = pytest.importorskip("torch")
    if not found.cuda.is_available():
        pytest.skip("PyTorch sees no GPU")
    return found


def doubled(count: int) -> tl.Tensor:
    i = tl.axes(i=count)
    return tl.define("Y", tl.input("X", tl.float32, i)[i] * 2.0, i)


def test_tensors_of_pytorch(torch: Any) -> None:
    kernel = tl.compile(matmul(50, 60, 70))
    a, b = torch.randint(-4, 5, (50, 70), device="cuda").float(), torch.randint(-4, 5, (70, 60), device="cuda").float()
    result = kernel(a, b)
    assert result.is_cuda and torch.equal(result, a @ b)
    out = torch.empty(50, 60, device="cuda")
    assert kernel(a, b, out=out) is out and torch.equal(out, a @ b)
    host = np.empty((50, 60), np.float32)
    assert kernel(a, b.cpu(), out=host) is host
    np.testing.assert_array_equal(host, (a @ b).cpu().numpy())


@pytest.mark.parametrize("type", ["float16", "bfloat16", "float64", "int8", "int64", "bool"])
def test_types_of_pytorch(torch: Any, type: str) -> None:
    x = torch.randint(0, 2, (4, 8), device="cuda").to(getattr(torch, type))
    result = tl.compile(copy(4, 8, getattr(tl, type)))(x)
    assert result.dtype == x.dtype and torch.equal(result, x)


@pytest.mark.parametrize(("type", "of_torch"), [(tl.float8_e4m3, "float8_e4m3fn"), (tl.float8_e5m2, "float8_e5m2")], ids=str)
def test_floats_of_8_bits_of_pytorch(torch: Any, type: tl.DType, of_torch: str) -> None:
    x = torch.randint(0, 8, (4, 8), device="cuda").to(getattr(torch, of_torch))
    result = tl.compile(copy(4, 8, type))(x)
    assert result.dtype == x.dtype and torch.equal(result.float(), x.float())


def test_parts_of_tensors(torch: Any) -> None:
    kernel, whole = tl.compile(copy(4, 8)), torch.rand(12, 8, device="cuda")
    assert torch.equal(kernel(whole[4:8]), whole[4:8])
    with pytest.raises(ComputationError, match="contiguous"):
        kernel(torch.rand(8, 4, device="cuda").T)
    with pytest.raises(ComputationError, match="shares memory"):
        kernel(whole[4:8], out=whole[6:10])
    with pytest.raises(ComputationError, match="has type"):
        kernel(whole[:4].double())


def test_a_tensor_that_requires_a_gradient_is_refused(torch: Any) -> None:
    with pytest.raises(ComputationError, match="cannot be shared"):
        tl.compile(copy(4, 8))(torch.rand(4, 8, device="cuda", requires_grad=True))


@pytest.mark.parametrize("own_stream", [False, True])
def test_calls_come_after_what_fills_their_inputs_and_before_what_reads_their_results(torch: Any, own_stream: bool) -> None:
    """The stream is kept busy for milliseconds before an input is filled, and the input is overwritten right after the call."""
    kernel = tl.compile(doubled(1 << 20))
    kernel(torch.zeros(1 << 20, device="cuda"))
    with torch.cuda.stream(torch.cuda.Stream() if own_stream else torch.cuda.current_stream()):
        for round in range(5):
            x = torch.zeros(1 << 20, device="cuda")
            torch.cuda._sleep(10_000_000)
            x.fill_(round + 1.0)
            y = kernel(x)
            x.fill_(-1.0)
            total = y + 0
            assert bool((total == 2.0 * (round + 1)).all())


def test_streams_of_pytorch(torch: Any) -> None:
    kernel, stream = tl.compile(doubled(1 << 20)), torch.cuda.Stream()
    x = torch.ones(1 << 20, device="cuda")
    assert bool((kernel(x, queue=stream) == 2).all())
    host = np.ones(1 << 20, np.float32)
    assert (kernel(host, queue=stream) == 2).all()


def test_arrays_of_cupy() -> None:
    cupy = pytest.importorskip("cupy")
    kernel, x = tl.compile(doubled(1000)), cupy.arange(1000, dtype=cupy.float32)
    result = kernel(x)
    assert isinstance(result, cupy.ndarray)
    np.testing.assert_array_equal(result.get(), 2 * np.arange(1000, dtype=np.float32))
    with cupy.cuda.Stream(non_blocking=True):
        np.testing.assert_array_equal(kernel(cupy.full(1000, 3.0, cupy.float32)).get(), np.full(1000, 6.0))


def test_arrays_of_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX sees no GPU")
    x = jax.numpy.arange(1000, dtype=jax.numpy.float32)
    result = tl.compile(doubled(1000))(x)
    np.testing.assert_array_equal(np.asarray(result), 2 * np.arange(1000, dtype=np.float32))
    with pytest.raises(ComputationError, match="cannot be written"):
        tl.compile(doubled(1000))(x, out=jax.numpy.zeros(1000, jax.numpy.float32))


def test_a_kernel_from_a_function_of_tensors(torch: Any) -> None:
    @tl.kernel
    def scaled(x: Any, w: Any) -> Any:
        i, j = x.dims
        return tl.define("Y", x[i, j] * w[j], i, j)

    x, w = torch.rand(3, 4, device="cuda"), torch.rand(4, device="cuda")
    result = scaled(x, w)
    assert result.is_cuda and torch.equal(result, x * w)
