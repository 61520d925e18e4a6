"""The OpenCL driver on the device here, and the cache of binaries."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilelang.errors import DeviceError
from tilelang.lowering.drivers import cache as cache_module
from tilelang.lowering.drivers import opencl as driver
from tilelang.lowering.drivers.cache import BinaryCache, key

ADD = """
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void add(__global const float* restrict a, __global const float* restrict b, __global float* restrict c) {
    const int i = get_group_id(0);
    c[i] = a[i] + b[i];
}
"""


@pytest.fixture(scope="module")
def connection() -> driver.Connection:
    return driver.connect(driver.choose())


def add(connection: driver.Connection, *arrays: np.ndarray[Any, Any]) -> None:
    """arrays[2] = arrays[0] + arrays[1], on the device."""
    function = connection.build(ADD).function("add", (len(arrays[0]),), 1, 0)
    held = [driver.HostArray(connection, x, x is arrays[2]) for x in arrays]
    function([h.buffer for h in held])
    for h in held:
        h.land()


# ---------------------------------------------------------------- devices


def test_devices_and_choice() -> None:
    found = driver.devices()
    assert found and driver.choose() is found[0]
    best = found[0]
    assert (
        best.max_threads >= 1 and best.shared_bytes > 0 and best.compute_units >= 1 and best.kind in ("cpu", "gpu", "accelerator")
    )
    assert driver.choose(platform=best.platform[:5].upper(), device=best.name[-6:]) is best
    with pytest.raises(DeviceError, match="no OpenCL device fits platform 'nonesuch'") as caught:
        driver.choose(platform="nonesuch")
    assert best.name in str(caught.value)


def test_without_a_device_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "devices", tuple)
    with pytest.raises(DeviceError, match=r"pip install 'pyopencl\[pocl\]'") as caught:
        driver.choose()
    assert caught.value.code == "no-device"


def test_without_pyopencl_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pyopencl", None)
    driver._cl.cache_clear()
    with pytest.raises(DeviceError) as caught:
        driver._cl()
    assert caught.value.code == "no-driver" and "pip install" in str(caught.value)


def test_importing_the_driver_does_not_import_pyopencl() -> None:
    import subprocess
    import sys

    code = "import sys, tilelang.lowering.drivers.opencl; sys.exit('pyopencl' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2]).returncode == 0


# ---------------------------------------------------------------- arrays


def test_numpy_arrays_are_used_in_place(connection: driver.Connection) -> None:
    a, b, c = (np.random.default_rng(i).random(1000, np.float32) for i in range(3))
    add(connection, a, b, c)
    np.testing.assert_array_equal(c, a + b)


@pytest.mark.parametrize("offset", [1, 4, 17])
def test_unaligned_arrays(connection: driver.Connection, offset: int) -> None:
    a, b, c = (np.random.default_rng(i).random(1000 + offset, np.float32)[offset:] for i in range(3))
    expected = a + b
    add(connection, a, b, c)
    np.testing.assert_array_equal(c, expected)


def test_results_in_numpy_arrays_enqueue_nothing_more_on_pocl(
    connection: driver.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its threads sleep, and a command of any kind wakes them: a launch that lands is one command."""
    if connection.device.platform != driver.POCL:
        pytest.skip("a device that may keep a copy")
    monkeypatch.setattr(driver._cl(), "enqueue_map_buffer", None)
    a, b, c = (np.random.default_rng(i).random(1000, np.float32) for i in range(3))
    add(connection, a, b, c)
    np.testing.assert_array_equal(c, a + b)


def test_the_same_memory_again_with_other_contents(connection: driver.Connection) -> None:
    """Nothing is remembered by address: values changed between launches are seen, and so are other arrays in the same place."""
    storage = np.zeros(3000, np.float32)
    for size in (1000, 500, 1000):
        a, b, c = storage[:size], storage[size : 2 * size], storage[2 * size : 3 * size]
        a[:], b[:] = np.arange(size), size
        add(connection, a, b, c)
        np.testing.assert_array_equal(c, np.arange(size, dtype=np.float32) + size)


def test_read_only_and_empty_arrays(connection: driver.Connection) -> None:
    a = np.arange(8, dtype=np.float32)
    a.flags.writeable = False
    c = np.empty(8, np.float32)
    add(connection, a, a, c)
    np.testing.assert_array_equal(c, 2 * a)
    nothing = np.empty(0, np.float32)
    add(connection, nothing, nothing, nothing)


def test_device_arrays_as_they_are(connection: driver.Connection) -> None:
    import pyopencl.array as cla

    a, b = (np.random.default_rng(i).random(64, np.float32) for i in range(2))
    on_device = [cla.to_device(connection.queue, x) for x in (a, b, a)]
    assert all(driver.is_device_array(x) for x in on_device) and not driver.is_device_array(a)
    function = connection.build(ADD).function("add", (64,), 1, 0)
    function([connection.take("X", x, None).buffer for x in on_device])
    np.testing.assert_array_equal(on_device[2].get(), a + b)


def test_device_arrays_that_begin_inside_their_buffer(connection: driver.Connection) -> None:
    import pyopencl.array as cla

    step = connection.device.handle.mem_base_addr_align // 8 // 4
    whole = cla.to_device(connection.queue, np.arange(4 * step, dtype=np.float32))
    out = cla.zeros(connection.queue, step, np.float32)
    function = connection.build(ADD).function("add", (step,), 1, 0)
    function([connection.take("X", x, None).buffer for x in (whole[step : 2 * step], whole[2 * step : 3 * step], out)])
    np.testing.assert_array_equal(out.get(), np.arange(step, 2 * step, dtype=np.float32) + np.arange(2 * step, 3 * step))
    with pytest.raises(DeviceError) as caught:
        connection.take("X", whole[1 : 1 + step], None)
    assert caught.value.code == "unaligned-array"


def test_arrays_of_another_context_are_refused(connection: driver.Connection) -> None:
    import pyopencl as cl
    import pyopencl.array as cla

    other = cl.CommandQueue(cl.Context([connection.device.handle]))
    with pytest.raises(DeviceError) as caught:
        connection.take("X", cla.zeros(other, 8, np.float32), None)
    assert caught.value.code == "other-context"


# ---------------------------------------------------------------- builds and launches


def test_a_source_is_built_once(connection: driver.Connection) -> None:
    assert connection.build(ADD) is connection.build(ADD)
    assert connection.build(ADD) is not connection.build(ADD + "\n")


def test_what_does_not_compile_is_reported(connection: driver.Connection) -> None:
    with pytest.raises(DeviceError, match="nonsense") as caught:
        connection.build("__kernel void broken(__global float* a) { a[0] = nonsense; }")
    assert caught.value.code == "compile-failed"


def test_limits_are_checked_before_the_launch(connection: driver.Connection) -> None:
    module, device = connection.build(ADD), connection.device
    with pytest.raises(DeviceError) as caught:
        module.function("add", (1,), 1, device.shared_bytes + 1)
    assert caught.value.code == "shared-memory" and str(device.shared_bytes) in str(caught.value)
    with pytest.raises(DeviceError) as caught:
        module.function("add", (1,), device.max_threads + 1, 0)
    assert caught.value.code == "too-many-threads"


def test_events_give_times(connection: driver.Connection) -> None:
    a = np.zeros(1 << 16, np.float32)
    held = driver.HostArray(connection, a, True)
    event = connection.build(ADD).function("add", (1 << 16,), 1, 0)([held.buffer] * 3)
    assert 0 < driver.seconds(event) < 5


def test_launches_from_several_threads(connection: driver.Connection) -> None:
    function = connection.build(ADD).function("add", (256,), 1, 0)
    wrong: list[int] = []

    def work(number: int) -> None:
        for round in range(50):
            a, b, c = np.full(256, number, np.float32), np.full(256, round, np.float32), np.zeros(256, np.float32)
            held = [driver.HostArray(connection, x, x is c) for x in (a, b, c)]
            function([h.buffer for h in held])
            held[2].land()
            if (c != number + round).any():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


# ---------------------------------------------------------------- cache


def test_cache_keeps_and_forgets(tmp_path: Path) -> None:
    kept = BinaryCache(str(tmp_path))
    name = key(["a", "b"])
    assert key(["ab", ""]) != name != key(["a", "b", ""])
    assert kept.get(name) is None
    assert kept.put(name, b"binary") and kept.get(name) == b"binary"
    assert BinaryCache(str(tmp_path)).get(name) == b"binary"
    kept.drop(name)
    assert kept.get(name) is None
    assert not BinaryCache("").put(name, b"binary") and BinaryCache("").get(name) is None


@pytest.mark.parametrize("damage", [b"", b"garbage", b"tilelang binary 1\n" + bytes(32) + b"binary"])
def test_a_damaged_entry_is_none(tmp_path: Path, damage: bytes) -> None:
    kept, name = BinaryCache(str(tmp_path)), key(["x"])
    kept.put(name, b"binary")
    (path,) = (p for p in tmp_path.rglob("*") if p.is_file())
    path.write_bytes(damage)
    assert kept.get(name) is None and not path.exists()


def test_a_directory_that_cannot_be_used_is_no_cache(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    kept = BinaryCache(str(blocked))
    assert not kept.put(key(["x"]), b"binary") and kept.get(key(["x"])) is None


def test_the_oldest_entries_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "_MOST_ENTRIES", 7)
    kept, names = BinaryCache(str(tmp_path)), [key([str(i)]) for i in range(8)]
    for age, name in enumerate(names):
        kept.put(name, b"x")
        if age < 7:
            os.utime(tmp_path / name[:2] / name, (age, age))
    assert [kept.get(n) is not None for n in names] == [False] * 4 + [True] * 4


def test_binaries_are_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a platform that keeps nothing itself (PoCL does: here it is told otherwise) a second process loads the binary."""
    monkeypatch.setattr(driver, "POCL", "another")
    kept = BinaryCache(str(tmp_path))
    driver.Connection(driver.choose()).build(ADD, cache=kept)
    (path,) = (p for p in tmp_path.rglob("*") if p.is_file())
    second = driver.Connection(driver.choose())
    monkeypatch.setattr(second, "_from_source", lambda *a: pytest.fail("compiled again"))
    a = np.arange(4, dtype=np.float32)
    c = np.empty(4, np.float32)
    function = second.build(ADD, cache=kept).function("add", (4,), 1, 0)
    held = [driver.HostArray(second, x, x is c) for x in (a, a, c)]
    function([h.buffer for h in held])
    held[2].land()
    np.testing.assert_array_equal(c, 2 * a)
    kept.put(path.name, b"whole, but no binary of any device")
    third = driver.Connection(driver.choose())
    third.build(ADD, cache=kept)
    assert kept.get(path.name) not in (None, b"whole, but no binary of any device")


def test_a_kernel_that_fails_is_an_error_of_ours_wherever_it_is_waited_for(connection: driver.Connection) -> None:
    """A driver tells of it only then: kernels that run out of a device's resources, say."""
    import pyopencl as cl

    class Failed:
        def wait(self) -> None:
            raise cl.RuntimeError("clWaitForEvents failed: OUT_OF_RESOURCES")

        finish = wait

    for waiting in (lambda: driver.seconds(Failed()), lambda: connection.finish(Failed())):
        with pytest.raises(DeviceError, match="OUT_OF_RESOURCES") as caught:
            waiting()
        assert caught.value.code == "kernel-failed" and caught.value.mend
