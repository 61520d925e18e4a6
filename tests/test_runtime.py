"""Kernels: what they say of themselves, how they are made and kept, and that calls do not disturb each other."""

from __future__ import annotations

import dataclasses
import functools
import math
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy as copy_of
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tests.errors._computations import copy, linear, matmul, row_sum, softmax
from tilelang.autoschedule.tune.database import Database
from tilelang.errors import ComputationError, DeviceError, Refusal
from tilelang.lowering.drivers import interface as drivers
from tilelang.lowering.drivers import opencl
from tilelang.lowering.drivers.cache import BinaryCache, key

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def product() -> tl.Kernel:
    return tl.compile(matmul(5, 6, 7))


def small(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


# ---------------------------------------------------------------- kernels


def test_what_a_kernel_says_of_itself(product: tl.Kernel) -> None:
    assert "EXPORT void C(" in product.source
    assert product.schedule.computation.hash == tl.schedule(matmul(5, 6, 7)).computation.hash
    (used,) = product.resources
    assert len(used.grid) == 3 and used.threads == 1
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


def test_what_would_be_simulated_for_minutes_is_refused() -> None:
    simulated = tl.target(profile="simulated")
    i = tl.axes(i=10**10)
    walk = tl.compile(tl.define("Y", tl.sum(tl.cast(i, tl.float32), over=i)), simulated)
    with pytest.raises(tl.ComputationError, match="too-much-to-simulate") as refused:
        tl.simulate(walk)
    assert "limit_statements" in str(refused.value.help)
    kernel = tl.compile(copy(4, 4), simulated)
    with pytest.raises(tl.ComputationError, match="statements would be simulated, .*at most 0 are allowed"):
        tl.simulate(kernel, limit_statements=0)
    assert not tl.simulate(kernel, limit_statements=math.inf).findings
    with pytest.raises(tl.ComputationError, match="is not a number") as wrong:
        tl.simulate(kernel, limit_statements="all")  # type: ignore[arg-type]
    assert wrong.value.code == "limit"


def test_a_profile_without_a_device_compiles_and_does_not_run() -> None:
    kernel = tl.compile(copy(4, 4), target=tl.target(profile="simulated"))
    assert "kernel" in kernel.source
    with pytest.raises(DeviceError, match="no-device"):
        kernel(small(4, 4))


def test_devices_are_chosen_by_a_part_of_their_names() -> None:
    device = tl.devices()[0]
    driver = drivers.load(device.driver)
    assert driver.choose(device.platform[:5].upper(), device.name[-5:].lower()) == device
    with pytest.raises(DeviceError) as caught:
        driver.choose(platform="no such platform")
    assert caught.value.code == "no-such-device"
    assert str(device) in str(caught.value.help)


def test_more_memory_than_there_is() -> None:
    with pytest.raises(DeviceError) as caught:
        drivers.load(tl.devices()[0].driver).connect(tl.devices()[0]).allocate(1 << 60)
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


def test_kernels_from_functions_can_be_inspected() -> None:
    """Before they run, and without running: source, schedule and explanation are those of the kernel that a call takes."""

    @tl.kernel
    def shifted(x: Any, by: int = 1) -> Any:
        i = x.dims[0]
        return tl.define("Y", x[i] + by, i)

    x = small(6)
    assert not shifted.kernels and repr(shifted).endswith("shifted(x: 'Any', by: 'int' = 1) -> 'Any': 0 kernels>")
    found = shifted.compile(x, by=2)
    assert list(shifted.kernels) == [found] and found.source and found.schedule.computation.inputs[0].shape == (6,)
    np.testing.assert_array_equal(shifted(x, by=2), x + 2)
    assert shifted.compile(x, by=2) is found and list(shifted.kernels) == [found]
    for by in (1, 3, 2):  # kernels that ran before, in turns with and without a constant
        np.testing.assert_array_equal(shifted(x), x + 1)
        np.testing.assert_array_equal(shifted(x, by=by), x + by)
        np.testing.assert_array_equal(shifted(x, by), x + by)
    assert len(shifted.kernels) == 3
    with pytest.raises(ComputationError, match="shifted takes x, by=1"):
        shifted.compile()


def test_positional_constants_decide_which_kernel_runs() -> None:
    """Also where a constant and the default of an array leave as many arrays as were passed."""

    tens = np.full(8, 10, np.float32)

    @tl.kernel
    def scaled(x: Any, n: int = 3, w: Any = tens) -> Any:
        i = x.dims[0]
        return tl.define("Y", x[i] * n + w[i], i)

    x, w = np.ones(8, np.float32), np.full(8, 2, np.float32)
    for n in (np.int64(4), np.int64(5), 4):
        np.testing.assert_array_equal(scaled(x, n), x * n + 10)
        np.testing.assert_array_equal(scaled(x, n, w), x * n + 2)
        np.testing.assert_array_equal(scaled(x), x * 3 + 10)


@tl.kernel
def halved(x: Any) -> Any:
    """A function of this module."""
    i = x.dims[0]
    return tl.define("Y", x[i] * 0.5, i)


def test_what_is_not_a_function_is_no_kernel() -> None:
    """An object without a name, and what `@tl.kernel` made already."""
    for given in (functools.partial(halved), halved):
        with pytest.raises(ComputationError, match="is not a function"):
            tl.kernel(given)


def test_a_kernel_from_a_function_is_pickled_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(halved)) is halved and halved.__doc__ == "A function of this module."


def test_parameters_with_defaults_are_constants_or_arrays() -> None:
    made: list[float] = []

    @tl.kernel
    def scaled(x: Any, factor: float = 2.0, *, bias: Any = None) -> Any:
        made.append(factor)
        i = x.dims[0]
        return tl.define("Y", x[i] * factor if bias is None else x[i] * factor + bias[i], i)

    x = small(8)
    for _ in range(2):
        np.testing.assert_array_equal(scaled(x), 2 * x)
        np.testing.assert_array_equal(scaled(x, 3.0), 3 * x)
        np.testing.assert_array_equal(scaled(x, np.float32(5)), 5 * x)
        np.testing.assert_array_equal(scaled(x, np.float32(7)), 7 * x)
        np.testing.assert_array_equal(scaled(x, factor=3.0, bias=x), 4 * x)
    assert made == [2, 3, 5, 7, 3]
    with pytest.raises(ComputationError, match="scaled takes x, factor=2.0, bias=None, got 0 arrays and factor") as caught:
        scaled(factor=1.0)
    assert caught.value.help == "pass one array for each parameter without a default"


def test_defaults_that_are_tuples_or_types_are_constants() -> None:
    @tl.kernel
    def every(x: Any, step: Any = (2, 1), to: Any = None) -> Any:
        i = tl.axes(i=4)
        read = x[i * step[0] + step[1]]
        return tl.define("Y", read if to is None else tl.cast(read, to), i)

    x = np.arange(100, 112, dtype=np.int8)
    for _ in range(2):
        np.testing.assert_array_equal(every(x), x[1:9:2])
        np.testing.assert_array_equal(every(x, (3, 0)), x[::3])
        np.testing.assert_array_equal(every(x, [1, 5]), x[5:9])
        assert every(x).dtype == np.int8 and every(x, to=tl.float16).dtype == np.float16

    @tl.kernel
    def moved(x: Any, by: Any = (3, 4)) -> Any:
        i = x.dims[0]
        return tl.define("Y", x[i] * by[0] + by[1], i)

    assert moved(x).dtype == np.int8  # as of a number, and not int64, as of an array


def test_candidates_of_a_kernel_from_a_function_are_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_DATABASE", str(tmp_path / "schedules.sqlite"))

    @tl.kernel(trials=2)
    def doubled(x: Any) -> Any:
        i = x.dims[0]
        return tl.define("Y", x[i] * 2.0, i)

    for x in (small(10), small(10), small(12)):
        np.testing.assert_array_equal(doubled(x), 2 * x)
    found = Database(tmp_path / "schedules.sqlite").entries()
    assert {(e.trials, *e.key.sizes.values()) for e in found} == {(2, 10), (2, 12)} and doubled.__name__ == "doubled"
    with pytest.raises(Refusal, match="trials=-1 is not a valid number of candidates"):
        tl.kernel(trials=-1)


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
    kernel = tl.compile(tl.schedule(softmax(16, 64)))
    inputs = [small(16, 64, seed=s) / 4 for s in range(16)]

    def run(x: Any) -> Any:
        for _ in range(5):
            result = kernel(x)
        return result

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(run, inputs))
    assert 1 <= len(kernel._spare) <= 8  # one for each call at the same time, at most
    for x, y in zip(inputs, results, strict=True):
        e = np.exp(x - x.max(axis=1, keepdims=True))
        np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-4)


def test_a_workspace_stays_with_its_queue_when_waiting_for_that_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Freed, it would be somebody else's memory while kernels on the other queue still write to it."""
    kernel = tl.compile(tl.schedule(softmax(16, 64)), "cpu")
    kernel(small(16, 64))
    ((workspace, _),) = kernel._spare
    kernel._spare[:] = [(workspace, "another queue")]

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(kernel._connection), "finish", interrupted)
        with pytest.raises(KeyboardInterrupt):
            kernel(small(16, 64))
    assert kernel._spare == [(workspace, "another queue")]
    np.testing.assert_allclose(kernel(small(16, 64)).sum(axis=1), 1, rtol=1e-5)
    assert kernel._spare == [(workspace, None)]


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


FILL_CACHE = """
import resource, signal, sys
from tilelang.lowering.drivers.cache import BinaryCache, key
cache = BinaryCache(sys.argv[1])
assert cache.put(key(["x"]), b"binary")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), -1))
print(cache.put(key(["y"]), b"z" * 100_000), cache.get(key(["y"])), cache.get(key(["x"])))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the sizes of files")
@pytest.mark.parametrize("limit", [0, 1000, 99_999])
def test_a_full_disk_leaves_no_entry_and_spoils_none(limit: int, tmp_path: Path) -> None:
    command = [sys.executable, "-c", FILL_CACHE, str(tmp_path), str(limit)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.split() == ["False", "None", "b'binary'"], done.stderr
    assert not list(tmp_path.rglob(".new-*"))


def unusable_directory(kind: str, folder: Path) -> str:
    """A place where nothing can be kept."""
    if kind == "a file":
        (folder / "cache").write_text("not a directory")
        return str(folder / "cache")
    (folder / "below").write_text("")
    return str(folder / "below" / "cache")


@pytest.mark.parametrize("kind", ["a file", "below a file"])
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


@pytest.mark.needs_opencl
def test_a_kernel_is_finished_before_an_interrupt_leaves_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C between the launch and the wait: the arrays may be freed as soon as the caller has the exception."""

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    kernel = tl.compile(matmul(300, 300, 300), "cpu")
    a, b, out = small(300, 300), small(300, 300), np.full((300, 300), np.nan, np.float32)
    kernel(a, b)  # compiled
    monkeypatch.setattr(opencl.HostArray, "land", interrupted)
    with pytest.raises(KeyboardInterrupt):
        kernel(a, b, out=out)
    np.testing.assert_array_equal(out, a @ b)


def test_arrays_in_order_or_by_any_name(product: tl.Kernel) -> None:
    a, b = small(5, 7), small(7, 6)
    np.testing.assert_array_equal(tl.simulate(product, a, b).outputs["C"], a @ b)
    np.testing.assert_array_equal(tl.simulate(product, a, B=b).outputs["C"], a @ b)
    i = tl.axes(i=4)
    doubled = tl.compile(tl.define("Y", 2 * tl.input("self", tl.float32, i)[i], i))
    np.testing.assert_array_equal(doubled(self=small(4)), 2 * small(4))
    shown = tl.simulate(tl.compile(tl.define("Y", 2 * tl.input("kernel", tl.float32, i)[i], i)), kernel=small(4))
    np.testing.assert_array_equal(shown.outputs["Y"], 2 * small(4))


def test_a_kernel_is_pickled_by_what_it_was_made_from(product: tl.Kernel) -> None:
    a, b = small(5, 7), small(7, 6)
    product(a, b)  # built: the driver's part stays here
    for again in (pickle.loads(pickle.dumps(product)), copy_of(product)):
        assert again.source == product.source and again.target == product.target
        np.testing.assert_array_equal(again(a, b), a @ b)
    elsewhere = tl.Target(
        product.target.dialect, product.target.profile, dataclasses.replace(tl.devices()[0], name="no such device")
    )
    with pytest.raises(DeviceError, match="no .* fits"):
        pickle.loads(pickle.dumps(tl.Kernel(product.schedule, elsewhere, product.program, product.options)))


def test_a_function_looks_up_its_kernel_by_what_the_arrays_say() -> None:
    made: list[tl.Tensor] = []

    @tl.kernel
    def tripled(x: tl.Tensor) -> tl.Tensor:
        made.append(x)
        i = tl.axes(i=x.shape[0])
        return tl.define("y", x[i] * 3, i)

    for dtype, size in ((np.float32, 4), (np.int32, 4), (np.float32, 7)):
        for _ in range(3):
            x = np.arange(size, dtype=dtype)
            assert tripled(x).dtype == dtype and (tripled(x) == 3 * x).all() and (tripled(x=x) == 3 * x).all()
    assert [(t.shape, str(t.dtype)) for t in made] == [((4,), "float32"), ((4,), "int32"), ((7,), "float32")]
    assert tripled([1, 2]).tolist() == [3, 6] and len(made) == 4
    with pytest.raises(ComputationError):
        tripled(x, x)
