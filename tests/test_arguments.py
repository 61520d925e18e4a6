"""Arguments of kernels: what they take and give, and what they refuse before the launch."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilelang as tl
from tests.errors._computations import copy, matmul
from tests.lowering.device_array_stubs import Exported, Interfaced
from tilelang.errors import ComputationError, DeviceError
from tilelang.lowering.drivers import opencl as driver
from tilelang.lowering.drivers.device_arrays import ROCM
from tilelang.lowering.drivers.interface import Device

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def product() -> tl.Kernel:
    return tl.compile(matmul(5, 6, 7))


def small(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def test_by_position_by_name_and_mixed(product: tl.Kernel) -> None:
    a, b = small(5, 7), small(7, 6)
    for c in (product(a, b), product(A=a, B=b), product(B=b, A=a), product(a, B=b)):
        np.testing.assert_array_equal(c, a @ b)


def test_out_is_written_and_returned(product: tl.Kernel) -> None:
    a, b = small(5, 7), small(7, 6)
    for out in (np.empty((5, 6), np.float32), np.empty((6, 5), np.float32).T, np.empty((5, 12), np.float32)[:, ::2]):
        assert product(a, b, out=out) is out
        np.testing.assert_array_equal(out, a @ b)
    single = np.empty((5, 6), np.float32)
    assert product(a, b, out=(single,)) is single
    assert product(a, b, out={"C": single}) is single


def test_large_results_begin_at_a_line_of_the_caches() -> None:
    i, j = tl.axes(i=700, j=500)
    for type in (tl.float32, tl.float64, tl.bfloat16):
        X = tl.input("X", type, i, j)
        found = tl.compile(tl.define("Y", X[i, j] + 1, i, j), "cpu")(x := np.ones((700, 500), type.numpy))
        assert found.nbytes < 1 << 20 or found.ctypes.data % 64 == 0
        assert found.flags.writeable and found.flags.c_contiguous and found.dtype == type.numpy
        np.testing.assert_array_equal(found, x + 1)


def test_strides_are_honoured(product: tl.Kernel) -> None:
    a, b = small(5, 7), small(7, 6)
    np.testing.assert_array_equal(product(np.asfortranarray(a), b), a @ b)
    np.testing.assert_array_equal(product(a[::-1], b[:, ::-1]), a[::-1] @ b[:, ::-1])
    np.testing.assert_array_equal(product(np.broadcast_to(a[:1], (5, 7)), b), np.broadcast_to(a[:1], (5, 7)) @ b)


def test_inputs_may_be_read_only_and_lists_of_arrays(product: tl.Kernel) -> None:
    a, b = small(5, 7), small(7, 6)
    a.flags.writeable = False
    np.testing.assert_array_equal(product(a, b), a @ b)


@pytest.mark.parametrize(
    ("type", "given", "expected"),
    [
        (tl.float32, [0.1, 2, True], np.array([0.1, 2, 1], np.float32)),
        (tl.float32, (2**24 + 1, 2**70, 1e38), np.array([2**24, 2.0**70, 1e38], np.float32)),
        (tl.float16, [1.5, -0.0, float("inf")], np.array([1.5, -0.0, np.inf], np.float16)),
        (tl.bfloat16, [1, 2.5, -3], np.array([1, 2.5, -3], ml_dtypes.bfloat16)),
        (tl.int32, range(3), np.array([0, 1, 2], np.int32)),
        (tl.uint64, [2**64 - 1, 0, 5], np.array([2**64 - 1, 0, 5], np.uint64)),
        (tl.bool, [True, False, True], np.array([True, False, True])),
    ],
)
def test_lists_of_numbers_take_the_type_of_the_input(type: tl.DType, given: Any, expected: Any) -> None:
    i = tl.axes(i=3)
    Y = tl.define("Y", tl.input("X", type, i)[i], i)
    for found in (tl.compile(Y, "cpu")(given), tl.computation("c", Y).evaluate(X=given)):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("type", "given"),
    [
        (tl.float16, [1, 65520]), (tl.float8_e4m3, [0.0, float("inf")]), (tl.float32, [0, 10**400]), (tl.uint8, [0, -1]),
        (tl.int32, [1, 2.0]), (tl.bool, [True, 0]), (tl.float32, ["a", 1]), (tl.float32, [[1], [1, 2]]), (tl.float32, [None, 1]),
    ],
)  # fmt: skip
def test_lists_whose_numbers_do_not_fit_are_refused(type: tl.DType, given: Any) -> None:
    i = tl.axes(i=2)
    kernel = tl.compile(tl.define("Y", tl.input("X", type, i)[i], i), "cpu")
    with pytest.raises(ComputationError) as caught:
        kernel(given)
    assert caught.value.code == "argument"


def test_unaligned_memory(product: tl.Kernel) -> None:
    a, b = small(5, 7), small(7, 6)
    raw = np.empty(a.nbytes + 4, np.uint8)
    shifted = raw[4:].view(np.float32).reshape(5, 7)
    shifted[...] = a
    np.testing.assert_array_equal(product(shifted, b), a @ b)


class HostTensor:
    """What this package asks of a PyTorch tensor on the host, so that nothing here needs PyTorch."""

    def __init__(self, array: Any, dtype: str = "torch.float32") -> None:
        self.array, self.dtype = array, dtype

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if self.dtype == "torch.bfloat16":
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self.array

    def detach(self) -> HostTensor:
        return self

    def view(self, dtype: Any) -> HostTensor:
        return HostTensor(self.array.view(dtype), str(dtype))

    def numpy(self) -> Any:
        return self.array


def test_tensors_of_another_library_on_the_host(product: tl.Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = small(5, 7), small(7, 6)
    np.testing.assert_array_equal(product(HostTensor(a), HostTensor(b)), a @ b)
    i = tl.axes(i=9)
    X = tl.input("X", tl.bfloat16, i)
    double = tl.compile(tl.define("Y", X[i] * 2, i))
    x = np.arange(9).astype(tl.bfloat16.numpy)
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(int16=np.int16))
    np.testing.assert_array_equal(double(HostTensor(x, "torch.bfloat16")), x * 2)


@pytest.mark.slow
def test_tensors_of_torch_on_the_host(product: tl.Kernel) -> None:
    """The stand-in above against the real ones, where they are."""
    torch = pytest.importorskip("torch")
    a, b = small(5, 7), small(7, 6)
    np.testing.assert_array_equal(product(torch.from_numpy(a), torch.from_numpy(b)), a @ b)
    i = tl.axes(i=9)
    X = tl.input("X", tl.bfloat16, i)
    x = np.arange(9).astype(tl.bfloat16.numpy)
    doubled = tl.compile(tl.define("Y", X[i] * 2, i))(torch.arange(9).to(torch.bfloat16))
    np.testing.assert_array_equal(doubled, x * 2)


@pytest.mark.parametrize(
    ("arrays", "named", "said"),
    [
        ((), {}, "needs A, B too"),
        ((small(5, 7),), {}, "needs B too"),
        ((small(5, 7), small(7, 6), small(5, 6)), {}, "takes 2 inputs (A, B), got 3"),
        ((small(5, 7),), {"A": small(5, 7), "B": small(7, 6)}, "A was given twice"),
        ((small(5, 7),), {"D": small(7, 6)}, "has no input D"),
        ((small(5, 7), small(7, 6)), {"out": (small(5, 6), small(5, 6))}, "out= has 2 arrays for 1 output"),
        ((small(5, 7), small(7, 6)), {"out": {"D": small(5, 6)}}, "out= names D"),
    ],
)
def test_arguments_that_do_not_fit(product: tl.Kernel, arrays: Any, named: Any, said: str) -> None:
    with pytest.raises(ComputationError) as caught:
        product(*arrays, **named)
    assert caught.value.code == "arguments"
    assert said in caught.value.message


@pytest.mark.parametrize(
    ("a", "out", "said"),
    [
        (small(7, 5), None, "has shape (7, 5), but the input has (5, 7)"),
        (small(5, 7, 1), None, "has shape (5, 7, 1)"),
        (small(5, 7, dtype=np.float64), None, "has type float64, but the input has float32"),
        (small(5, 7, dtype=np.int32), None, "has type int32"),
        (None, None, "is not an array: it is a NoneType"),
        (Exported(small(5, 7)), None, "is on a device of cuda, but the kernel's is cpu"),
        (Interfaced(small(5, 7)), None, "is on a device of cuda, but the kernel's is cpu"),
        (Exported(small(5, 7), (ROCM, 0)), None, "is on a device of hip, but the kernel's is cpu"),
        (small(5, 7), Exported(small(5, 6)), "is on a device of cuda, but the kernel's is cpu"),
        (small(5, 7), small(6, 5), "has shape (6, 5), but the output has (5, 6)"),
        (small(5, 7), small(5, 6, dtype=np.float64), "has type float64, but the output has float32"),
        (small(5, 7), np.broadcast_to(np.float32(0), (5, 6)), "cannot be written"),
    ],
)
def test_arrays_that_do_not_fit(product: tl.Kernel, a: Any, out: Any, said: str) -> None:
    before = None if out is None else np.array(out)
    with pytest.raises(ComputationError) as caught:
        product(a, small(7, 6), out=out)
    assert caught.value.code == "argument"
    assert said in caught.value.message
    if before is not None:
        np.testing.assert_array_equal(out, before)


class Nowhere:
    """An array of a library whose device DLPack has no kind for, as PyTorch's `meta`."""

    def __dlpack__(self, **_: Any) -> Any:
        raise BufferError("it has no memory")

    def __dlpack_device__(self) -> tuple[int, int]:
        raise ValueError("unknown device")


def test_arrays_on_a_device_that_dlpack_does_not_know(product: tl.Kernel) -> None:
    a, b = small(5, 7), small(7, 6)
    for arrays, out in (((Nowhere(), b), None), ((a, b), Nowhere())):
        with pytest.raises(ComputationError, match=r"error\[argument\]: the array for [AC] is not an array"):
            product(*arrays, out=out)


def test_an_output_may_not_share_memory_with_an_input() -> None:
    same = tl.compile(copy(4, 8))
    memory = small(8, 8)
    x, overlapping, beside = memory[:4], memory[2:6], memory[4:]
    for out in (x, overlapping):
        with pytest.raises(ComputationError, match="shares memory with the input X"):
            same(x, out=out)
    np.testing.assert_array_equal(same(x, out=beside), x)
    interleaved = small(4, 16)
    np.testing.assert_array_equal(same(interleaved[:, ::2], out=interleaved[:, 1::2]), interleaved[:, ::2])


def test_elements_of_an_output_may_not_share_memory() -> None:
    """Rows on each other, or half on each other; rows that lie between each other are as good as any."""
    kernel, x, strided = tl.compile(copy(4, 8)), small(4, 8), np.lib.stride_tricks.as_strided
    for strides in ((0, 4), (16, 4), (4, 4), (4, 0)):
        with pytest.raises(ComputationError, match="elements that share memory with each other"):
            kernel(x, out=strided(np.empty(64, np.float32), (4, 8), strides))
    for strides in ((4, 16), (64, 8), (12, 16)):
        out = strided(np.empty(128, np.float32), (4, 8), strides)
        np.testing.assert_array_equal(kernel(x, out=out), x)


def test_several_outputs_are_a_named_tuple() -> None:
    i, j = tl.axes(i=4, j=8)
    X = tl.input("X", tl.float32, i, j)
    total, peak = tl.define("total", tl.sum(X[i, j], over=j), i), tl.define("peak", tl.max(X[i, j], over=j), i)
    both = tl.compile(tl.computation("both", outputs=(total, peak)))
    x = small(4, 8)
    result = both(x)
    assert result._fields == ("total", "peak")
    np.testing.assert_array_equal(result.total, x.sum(axis=1))
    np.testing.assert_array_equal(result.peak, x.max(axis=1))
    out = np.empty(4, np.float32)
    mixed = both(x, out={"peak": out})
    assert mixed.peak is out
    np.testing.assert_array_equal(mixed.total, x.sum(axis=1))
    outs = (np.empty(4, np.float32), np.empty(4, np.float32))
    assert all(given is got for given, got in zip(outs, both(x, out=outs), strict=True))


def test_outputs_may_not_share_memory() -> None:
    i = tl.axes(i=8)
    X = tl.input("X", tl.float32, i)
    outputs = tl.define("twice", X[i] * 2.0, i), tl.define("next", X[i] + 1.0, i)
    both, memory = tl.compile(tl.computation("both", outputs=outputs)), np.empty(16, np.float32)
    with pytest.raises(ComputationError, match="twice and next share memory"):
        both(small(8), out=(memory[:8], memory[4:12]))
    result = both(small(8), out=(memory[:8], memory[8:]))
    np.testing.assert_array_equal(result.next, small(8) + 1)
    np.testing.assert_array_equal(memory[:8], 2 * small(8))


@pytest.mark.parametrize(("m", "n", "k"), [(0, 6, 7), (5, 0, 7), (5, 6, 0), (0, 0, 0), (1, 1, 1)])
def test_sizes_of_zero_and_one(m: int, n: int, k: int) -> None:
    kernel = tl.compile(matmul(m, n, k))
    a, b = small(m, k), small(k, n)
    result = kernel(a, b)
    assert result.shape == (m, n)
    np.testing.assert_array_equal(result, a @ b)
    out = np.full((m, n), 7, np.float32)
    np.testing.assert_array_equal(kernel(a, b, out=out), a @ b)


def test_a_scalar_output() -> None:
    i = tl.axes(i=9)
    X = tl.input("X", tl.float32, i)
    x = small(9)
    result = tl.compile(tl.define("total", tl.sum(X[i], over=i)))(x)
    assert result.shape == ()
    assert result == x.sum()


@pytest.mark.parametrize(
    "dtype", [tl.float16, tl.bfloat16, tl.float8_e4m3, tl.float8_e5m2, tl.float64, tl.int8, tl.uint32, tl.int64, tl.bool]
)
def test_types(dtype: tl.DType) -> None:
    x = small(4, 8).astype(dtype.numpy)
    result = tl.compile(copy(4, 8, dtype))(x)
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(result, x)
    if dtype is tl.bfloat16:
        assert result.dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize("name", ["float8_e4m3", "float8_e5m2"])
def test_floats_of_8_bits_of_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    i = tl.axes(i=9)
    of_torch = {"float8_e4m3": torch.float8_e4m3fn, "float8_e5m2": torch.float8_e5m2}[name]
    doubled = tl.compile(tl.define("Y", tl.input("X", getattr(tl, name), i)[i] * 2, i))(torch.arange(9).to(of_torch))
    np.testing.assert_array_equal(doubled.astype(np.float32), np.arange(9, dtype=np.float32) * 2)


def test_bytes_are_no_floats_of_8_bits() -> None:
    with pytest.raises(ComputationError, match="has type uint8, but the input has float8_e4m3"):
        tl.compile(copy(4, 8, tl.float8_e4m3))(np.zeros((4, 8), np.uint8))


# ---------------------------------------------------------------- arrays on the device


@pytest.fixture
def queue(opencl_device: Device) -> Any:
    return driver.connect(opencl_device).queue


@pytest.fixture(scope="module")
def opencl_product(opencl_device: Device) -> tl.Kernel:
    return tl.compile(matmul(5, 6, 7), tl.target("opencl", device=opencl_device))


def on_device(queue: Any, array: Any) -> Any:
    import pyopencl.array

    return pyopencl.array.to_device(queue, array)


def test_device_arrays_in_and_out(opencl_product: tl.Kernel, queue: Any) -> None:
    a, b = small(5, 7), small(7, 6)
    result = opencl_product(on_device(queue, a), on_device(queue, b))
    assert driver.is_device_array(result)
    np.testing.assert_array_equal(result.get(), a @ b)


def test_device_out_and_host_inputs(opencl_product: tl.Kernel, queue: Any) -> None:
    a, b = small(5, 7), small(7, 6)
    out = on_device(queue, np.zeros((5, 6), np.float32))
    assert opencl_product(a, b, out=out) is out
    np.testing.assert_array_equal(out.get(), a @ b)
    host = np.empty((5, 6), np.float32)
    assert opencl_product(on_device(queue, a), b, out=host) is host
    np.testing.assert_array_equal(host, a @ b)


def test_device_arrays_are_checked_too(opencl_product: tl.Kernel, queue: Any) -> None:
    a, b = small(5, 7), small(7, 6)
    with pytest.raises(ComputationError, match="has shape"):
        opencl_product(on_device(queue, b), b)
    with pytest.raises(ComputationError, match="has type"):
        opencl_product(on_device(queue, a.astype(np.int32)), b)
    with pytest.raises(ComputationError, match="contiguous"):
        opencl_product(on_device(queue, small(7, 5)).T, b)
    with pytest.raises(ComputationError, match="contiguous"):
        opencl_product(a, b, out=on_device(queue, np.zeros((6, 5), np.float32)).T)


def test_a_device_output_may_not_be_an_input(queue: Any) -> None:
    x = on_device(queue, small(4, 8))
    with pytest.raises(ComputationError, match="shares memory with the input X"):
        tl.compile(copy(4, 8), "cpu")(x, out=x)


def test_arrays_made_with_the_kernel_s_queue_are_taken(opencl_product: tl.Kernel) -> None:
    import pyopencl as cl
    import pyopencl.array as device_array

    a, b = small(5, 7), small(7, 6)
    found = opencl_product(
        device_array.to_device(opencl_product.queue, a),
        device_array.to_device(opencl_product.queue, b),
        queue=opencl_product.queue,
    )
    np.testing.assert_array_equal(found.get(), a @ b)
    other = cl.CommandQueue(cl.Context([opencl_product.target.device.handle]))  # type: ignore[union-attr]
    with pytest.raises(DeviceError, match="kernel.queue") as caught:
        opencl_product(device_array.to_device(other, a), b)
    assert caught.value.code == "other-context"
    with pytest.raises(DeviceError) as caught:
        opencl_product(a, b, queue=other)
    assert caught.value.code == "launch-failed"


def test_ranges_are_checked_unless_that_is_switched_off() -> None:
    i = tl.axes(i=4)
    ids, table = tl.input("ids", tl.int32, i, range=(0, 4)), tl.input("T", tl.float32, r=8)
    rows = tl.define("Y", table[ids[i]], i)
    beyond, values = np.array([0, 1, 2, 5], np.int32), np.arange(8, dtype=np.float32)
    with pytest.raises(ComputationError, match="outside its range") as caught:
        tl.compile(rows)(ids=beyond, T=values)
    assert caught.value.counterexample == "ids[3] = 5"
    unchecked = tl.compile(rows, options=tl.Options(check_ranges=False))
    np.testing.assert_array_equal(unchecked(ids=beyond, T=values), [0, 1, 2, 5])


# ---------------------------------------------------------------- memory


def test_what_takes_more_than_all_memory_is_refused_before_it_is_made() -> None:
    n = tl.axes(n=2**44)
    kernel = tl.compile(tl.schedule(tl.define("Y", tl.input("X", tl.float32, n)[n] * 2, n)))
    x = np.broadcast_to(np.float32(1), (2**44,))
    for used in (lambda: kernel(x), kernel.check, kernel.benchmark, lambda: tl.simulate(kernel, limit_statements=float("inf"))):
        with pytest.raises(ComputationError, match=r"error\[too-large-to-run\]: .* 70,368,744,177,664|140,737,488,355,328"):
            used()


def test_a_call_that_finds_no_memory_for_its_output_says_so(monkeypatch: pytest.MonkeyPatch, product: tl.Kernel) -> None:
    a, b = small(5, 7), small(7, 6)
    product(a, b)

    def none(*_: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(product._direct, "_empty", none)
    monkeypatch.setattr(np, "empty", none)
    with pytest.raises(ComputationError, match=r"error\[too-large-to-run\]: the array for C takes 120 bytes"):
        product(a, b)


def test_tensors_whose_bytes_have_no_numbers_are_refused() -> None:
    i, j = tl.axes(i=2**31, j=2**31)
    tl.input("X", tl.int8, i, j)
    with pytest.raises(ComputationError, match=r"error\[too-many-bytes\]"):
        tl.input("X", tl.float32, i, j)
    with pytest.raises(ComputationError, match=r"error\[too-many-bytes\]"):
        tl.define("Y", tl.input("Z", tl.float64, i)[i], i, j)
