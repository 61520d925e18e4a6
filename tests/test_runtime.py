"""Kernels: what they take and give, what they refuse before the launch, and that calls do not disturb each other."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilelang as tl
from tests.errors._computations import copy, linear, matmul, row_sum, softmax
from tilelang.errors import ComputationError, DeviceError, Refusal
from tilelang.lowering.drivers import opencl as driver
from tilelang.lowering.drivers.cache import BinaryCache, key

ROOT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.skipif(not tl.devices(), reason="no OpenCL device here")


@pytest.fixture(scope="module")
def product() -> tl.Kernel:
    return tl.compile(matmul(5, 6, 7))


def small(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


# ---------------------------------------------------------------- arguments


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


def test_strides_are_honoured(product: tl.Kernel) -> None:
    a, b = small(5, 7), small(7, 6)
    np.testing.assert_array_equal(product(np.asfortranarray(a), b), a @ b)
    np.testing.assert_array_equal(product(a[::-1], b[:, ::-1]), a[::-1] @ b[:, ::-1])
    np.testing.assert_array_equal(product(np.broadcast_to(a[:1], (5, 7)), b), np.broadcast_to(a[:1], (5, 7)) @ b)


def test_inputs_may_be_read_only_and_lists_of_arrays(product: tl.Kernel) -> None:
    a, b = small(5, 7), small(7, 6)
    a.flags.writeable = False
    np.testing.assert_array_equal(product(a, b), a @ b)


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
        ((small(5, 7), small(7, 6)), {"out": (small(5, 6), small(5, 6))}, "out= gives 2 arrays for 1 outputs"),
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
        (small(7, 5), None, "has shape (7, 5), the input is (5, 7)"),
        (small(5, 7, 1), None, "has shape (5, 7, 1)"),
        (small(5, 7, dtype=np.float64), None, "has type float64, the input is float32"),
        (small(5, 7, dtype=np.int32), None, "has type int32"),
        (small(5, 7), small(6, 5), "has shape (6, 5), the output is (5, 6)"),
        (small(5, 7), small(5, 6, dtype=np.float64), "has type float64, the output is float32"),
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


@pytest.mark.parametrize("dtype", [tl.float16, tl.bfloat16, tl.float64, tl.int8, tl.uint32, tl.int64, tl.bool])
def test_types(dtype: tl.DType) -> None:
    x = small(4, 8).astype(dtype.numpy)
    result = tl.compile(copy(4, 8, dtype))(x)
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(result, x)
    if dtype is tl.bfloat16:
        assert result.dtype == ml_dtypes.bfloat16


# ---------------------------------------------------------------- arrays on the device


@pytest.fixture
def queue() -> Any:
    return driver.connect(tl.devices()[0]).queue


def on_device(queue: Any, array: Any) -> Any:
    import pyopencl.array

    return pyopencl.array.to_device(queue, array)


def test_device_arrays_in_and_out(product: tl.Kernel, queue: Any) -> None:
    a, b = small(5, 7), small(7, 6)
    result = product(on_device(queue, a), on_device(queue, b))
    assert driver.is_device_array(result)
    np.testing.assert_array_equal(result.get(), a @ b)


def test_device_out_and_host_inputs(product: tl.Kernel, queue: Any) -> None:
    a, b = small(5, 7), small(7, 6)
    out = on_device(queue, np.zeros((5, 6), np.float32))
    assert product(a, b, out=out) is out
    np.testing.assert_array_equal(out.get(), a @ b)
    host = np.empty((5, 6), np.float32)
    assert product(on_device(queue, a), b, out=host) is host
    np.testing.assert_array_equal(host, a @ b)


def test_device_arrays_are_checked_too(product: tl.Kernel, queue: Any) -> None:
    a, b = small(5, 7), small(7, 6)
    with pytest.raises(ComputationError, match="has shape"):
        product(on_device(queue, b), b)
    with pytest.raises(ComputationError, match="has type"):
        product(on_device(queue, a.astype(np.int32)), b)
    with pytest.raises(ComputationError, match="contiguous"):
        product(on_device(queue, small(7, 5)).T, b)
    with pytest.raises(ComputationError, match="contiguous"):
        product(a, b, out=on_device(queue, np.zeros((6, 5), np.float32)).T)


def test_a_device_output_may_not_be_an_input(queue: Any) -> None:
    x = on_device(queue, small(4, 8))
    with pytest.raises(ComputationError, match="shares memory with the input X"):
        tl.compile(copy(4, 8))(x, out=x)


# ---------------------------------------------------------------- kernels


def test_what_a_kernel_says_of_itself(product: tl.Kernel) -> None:
    assert "__kernel" in product.source or "kernel void" in product.source
    assert product.schedule.computation.hash == tl.schedule(matmul(5, 6, 7)).computation.hash
    (used,) = product.resources
    assert used.grid[1:] == (1, 1) and used.threads == 1
    assert "kernel C" in product.explain()
    assert "C" in repr(product)


def test_check_and_benchmark(product: tl.Kernel) -> None:
    assert product.check().ok
    assert product.benchmark(repeats=2) > 0


def test_sources_are_the_same_each_time() -> None:
    assert tl.compile(softmax(5, 9)).source == tl.compile(softmax(5, 9)).source


def test_a_schedule_of_another_computation() -> None:
    with pytest.raises(Refusal, match="schedule-of-another"):
        tl.compile(copy(4, 4), schedule=tl.schedule(copy(4, 8)))
    chosen = tl.schedule(copy(4, 4)).tile(i=2).to(tl.block)
    assert tl.compile(copy(4, 4), schedule=chosen).schedule is chosen


def test_the_simulator_agrees(product: tl.Kernel) -> None:
    a, b = small(5, 7), small(7, 6)
    report = tl.simulate(product, A=a, B=b)
    assert list(report.findings) == []
    np.testing.assert_array_equal(report.outputs["C"], a @ b)


def test_a_profile_without_a_device_compiles_and_does_not_run() -> None:
    kernel = tl.compile(copy(4, 4), target=tl.target(profile="simulated"))
    assert "kernel" in kernel.source
    with pytest.raises(DeviceError, match="no-device"):
        kernel(small(4, 4))


def test_devices_are_chosen_by_a_part_of_their_names() -> None:
    device = tl.devices()[0]
    assert driver.choose(device.platform[:5].upper(), device.name[-5:].lower()) == device
    with pytest.raises(DeviceError) as caught:
        driver.choose(platform="no such platform")
    assert caught.value.code == "no-such-device"
    assert str(device) in str(caught.value.mend)


def test_more_memory_than_there_is() -> None:
    with pytest.raises(DeviceError) as caught:
        driver.connect(tl.devices()[0]).allocate(1 << 60)
    assert caught.value.code == "out-of-memory"


def test_kernels_from_functions() -> None:
    made: list[tuple[int, ...]] = []

    @tl.kernel
    def scaled(x: Any, w: Any) -> Any:
        made.append(x.shape)
        i, j = x.dims
        return tl.define("Y", x[i, j] * w[j], i, j)

    for shape in ((3, 4), (5, 4), (3, 4)):
        x, w = small(*shape), small(shape[1])
        np.testing.assert_array_equal(scaled(x, w), x * w)
    assert made == [(3, 4), (5, 4)]
    out = np.empty((3, 4), np.float32)
    assert scaled(small(3, 4), small(4), out=out) is out
    assert scaled.__name__ == "scaled"
    with pytest.raises(ComputationError, match="scaled takes x, w"):
        scaled(small(3, 4))


def test_a_function_may_give_a_schedule_or_several_outputs() -> None:
    @tl.kernel
    def doubled(x: Any) -> Any:
        i = x.dims[0]
        return tl.schedule(tl.define("Y", x[i] * 2.0, i)).tile(x_0=4).to(tl.block)

    @tl.kernel
    def both(x: Any) -> Any:
        i = x.dims[0]
        return tl.define("twice", x[i] * 2.0, i), tl.define("next", x[i] + 1.0, i)

    x = small(10)
    np.testing.assert_array_equal(doubled(x), 2 * x)
    result = both(x)
    np.testing.assert_array_equal(result.twice, 2 * x)
    np.testing.assert_array_equal(result.next, x + 1)


# ---------------------------------------------------------------- at the same time


def test_one_kernel_called_by_many_threads() -> None:
    """With a workspace of its own (the peak and the total are kernels before the last), which two calls must not mix."""
    kernel = tl.compile(softmax(16, 64))
    inputs = [small(16, 64, seed=s) / 4 for s in range(16)]

    def run(x: Any) -> Any:
        for _ in range(5):
            result = kernel(x)
        return result

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(run, inputs))
    for x, y in zip(inputs, results, strict=True):
        e = np.exp(x - x.max(axis=1, keepdims=True))
        np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-4)


def test_many_threads_compile_at_the_same_time() -> None:
    def run(n: int) -> bool:
        x = small(4, n)
        return bool((tl.compile(row_sum(4, n))(x) == x.sum(axis=1)).all())

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, [7, 8, 9, 7, 8, 9, 7, 8]))


USE_CACHE = """
import sys
import types
from tilelang.lowering.drivers.cache import BinaryCache, key
cache = BinaryCache(sys.argv[1])
names = [key([str(n)]) for n in range(40)]
for _ in range(5):
    for n, name in enumerate(names):
        assert cache.put(name, str(n).encode() * 5000)
        found = cache.get(name)
        assert found is None or found == str(n).encode() * 5000
print(sum(cache.get(name) == str(n).encode() * 5000 for n, name in enumerate(names)))
"""


def test_processes_share_a_cache(tmp_path: Path) -> None:
    """They write the same entries at the same time; a reader sees a whole one or none."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = [
        subprocess.Popen([sys.executable, "-c", USE_CACHE, str(tmp_path)], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    told = [process.communicate(timeout=120)[0].strip() for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert told == ["40", "40"]
    assert not list(tmp_path.rglob(".new-*"))


def unusable_directory(kind: str, folder: Path) -> str:
    """A place where nothing can be kept."""
    if kind == "a file":
        (folder / "cache").write_text("not a directory")
        return str(folder / "cache")
    if kind == "full":
        return "/dev/full"
    (folder / "below").write_text("")
    return str(folder / "below" / "cache")


@pytest.mark.parametrize("kind", ["a file", "full", "below a file"])
def test_a_cache_that_cannot_be_written_is_no_cache(kind: str, tmp_path: Path) -> None:
    directory = unusable_directory(kind, tmp_path)
    cache = BinaryCache(directory)
    assert cache.put(key(["x"]), b"binary") is False
    assert cache.get(key(["x"])) is None
    x = small(4, 5)
    kernel = tl.compile(row_sum(4, 5), options=tl.Options(cache_dir=directory))
    np.testing.assert_array_equal(kernel(x), x.sum(axis=1))


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    cache = BinaryCache(str(tmp_path))
    assert cache.put(key(["x"]), b"binary") is False
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_a_damaged_entry_is_as_good_as_none(tmp_path: Path) -> None:
    cache, name = BinaryCache(str(tmp_path)), key(["x"])
    for damage in (lambda data: data[:-1], lambda data: data + b"!", lambda data: b"", lambda data: data[:20]):
        assert cache.put(name, b"binary" * 100)
        (path,) = [p for p in tmp_path.rglob("*") if p.is_file()]
        path.write_bytes(damage(path.read_bytes()))
        assert cache.get(name) is None
    assert cache.put(name, b"binary") and cache.get(name) == b"binary"


def test_no_cache() -> None:
    cache = BinaryCache("")
    assert cache.put(key(["x"]), b"binary") is False
    assert cache.get(key(["x"])) is None


def test_an_epilogue_runs() -> None:
    a, b, bias = small(5, 7), small(7, 6), small(6)
    np.testing.assert_array_equal(tl.compile(linear(5, 6, 7))(a, b, bias), np.maximum(a @ b + bias, 0))


def test_a_kernel_is_finished_before_an_interrupt_leaves_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C between the launch and the wait: the arrays may be freed as soon as the caller has the exception."""

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    kernel = tl.compile(matmul(300, 300, 300))
    a, b, out = small(300, 300), small(300, 300), np.full((300, 300), np.nan, np.float32)
    kernel(a, b)  # compiled
    monkeypatch.setattr(driver.HostArray, "land", interrupted)
    with pytest.raises(KeyboardInterrupt):
        kernel(a, b, out=out)
    np.testing.assert_array_equal(out, a @ b)


def test_arrays_made_with_the_kernel_s_queue_are_taken(product: tl.Kernel) -> None:
    import pyopencl as cl
    import pyopencl.array as device_array

    a, b = small(5, 7), small(7, 6)
    found = product(device_array.to_device(product.queue, a), device_array.to_device(product.queue, b), queue=product.queue)
    np.testing.assert_array_equal(found.get(), a @ b)
    other = cl.CommandQueue(cl.Context([product.target.device.handle]))  # type: ignore[union-attr]
    with pytest.raises(DeviceError, match="kernel.queue") as caught:
        product(device_array.to_device(other, a), b)
    assert caught.value.code == "other-context"
    with pytest.raises(DeviceError) as caught:
        product(a, b, queue=other)
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
