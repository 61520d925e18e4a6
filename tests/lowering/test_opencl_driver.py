"""The OpenCL driver on the device here, and the cache of binaries."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tests.errors._computations import copy
from tilelang.errors import DeviceError
from tilelang.lowering.drivers import cache as cache_module
from tilelang.lowering.drivers import opencl as driver
from tilelang.lowering.drivers.cache import BinaryCache, key
from tilelang.lowering.drivers.interface import Device

ADD = """
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void add(__global const float* restrict a, __global const float* restrict b, __global float* restrict c) {
    const int i = get_group_id(0);
    c[i] = a[i] + b[i];
}
"""


@pytest.fixture(scope="module")
def connection(opencl_device: Device) -> driver.Connection:
    return driver.connect(opencl_device)


def add(connection: driver.Connection, *arrays: np.ndarray[Any, Any]) -> None:
    """arrays[2] = arrays[0] + arrays[1], on the device."""
    function = connection.build(ADD).function("add", (len(arrays[0]),), 1, 0)
    held = [driver.HostArray(connection, x, x is arrays[2]) for x in arrays]
    function([h.buffer for h in held])
    for h in held:
        h.land()


# ---------------------------------------------------------------- devices


@pytest.mark.needs_opencl
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
    with pytest.raises(DeviceError, match=r"pip install 'tilelang-rtile\[pocl\]'") as caught:
        driver.choose()
    assert caught.value.code == "no-device"


def stub_platform(monkeypatch: pytest.MonkeyPatch, *faults: str | None) -> None:
    """A platform of devices, each of which compiles, or whose compiler says so."""
    import pyopencl as cl

    def handle(number: int, fault: str | None) -> Any:
        return SimpleNamespace(name=f"Device {number}", fault=fault)

    def described(handle: Any) -> Device:
        return Device("opencl", handle.name, "Stub", "cpu", "1", "1", 4, 64, 1 << 15, 1 << 30, True, handle=handle)

    def compiled(context: Any, handle: Any, source: str, options: object) -> None:
        assert source == driver.EMPTY_KERNEL
        if handle.fault is not None:
            raise DeviceError("compile-failed", f"{handle.name} does not compile the kernel\n{handle.fault}")

    handles = [handle(number, fault) for number, fault in enumerate(faults)]
    monkeypatch.setattr(cl, "get_platforms", lambda: [SimpleNamespace(get_devices=lambda: handles)])
    monkeypatch.setattr(cl, "Context", list)
    monkeypatch.setattr(driver, "_describe", described)
    monkeypatch.setattr(driver, "compile_program", compiled)
    monkeypatch.setattr(driver, "_probed", driver._probed.__wrapped__)


UNKNOWN = "\nerror: unknown target CPU 'generic'\nnote: valid names are\n\nx86-64\nand many more"


def test_a_device_that_compiles_nothing_is_left_out_with_its_compiler_s_words(monkeypatch: pytest.MonkeyPatch) -> None:
    stub_platform(monkeypatch, UNKNOWN, None)
    why = "error: unknown target CPU 'generic'; note: valid names are; x86-64"
    assert [device.name for device in driver.devices()] == ["Device 1"]
    assert [(device.name, said) for device, said in driver.unusable_devices()] == [("Device 0", why)]
    assert driver.choose().name == "Device 1"
    with pytest.raises(DeviceError, match=f"Device 0 .*cannot compile an empty kernel: {why}") as caught:
        driver.choose(device="device 0")
    assert caught.value.code == "no-device"
    with pytest.raises(DeviceError, match="no OpenCL device fits device 'other'"):
        driver.choose(device="other")


def test_where_no_device_compiles_that_is_the_reason_for_having_none(monkeypatch: pytest.MonkeyPatch) -> None:
    stub_platform(monkeypatch, UNKNOWN, "it crashed")
    for ask in (driver.devices, driver.choose):
        with pytest.raises(DeviceError, match="unknown target CPU 'generic'.*; Device 1 .*: it crashed") as caught:
            ask()
        assert caught.value.code == "no-device" and caught.value.help


def test_a_long_reason_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    stub_platform(monkeypatch, "word " * 1000)
    ((_, why),) = driver.unusable_devices()
    assert len(why) <= 300 and why.endswith("word ...")


ASK = """
import tilelang as tl
from tilelang.lowering.drivers import opencl
assert tl.devices() == tuple(d for d in tl.devices() if d.driver != "opencl")
try:
    tl.target("opencl")
except tl.DeviceError as error:
    print(error.code, error.message, len(opencl.unusable_devices()))
"""


def ask(tmp_path: Path, *command: str, **environment: str) -> str:
    """What a process prints, errors too, with these variables of the environment."""
    root = Path(__file__).parents[2]
    given = {**os.environ, "PYTHONPATH": str(root), "XDG_CACHE_HOME": str(tmp_path), **environment}
    for name in ("TILELANG_TARGET", "PYOPENCL_NO_CACHE"):
        given.pop(name, None)
    done = subprocess.run([sys.executable, *command], env=given, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout + done.stderr


def test_a_machine_without_an_opencl_platform(tmp_path: Path) -> None:
    none = {"OCL_ICD_VENDORS": str(tmp_path / "none"), "OCL_ICD_FILENAMES": ""}
    assert ask(tmp_path, "-c", ASK, **none).startswith("no-device no OpenCL device was found 0")
    assert "opencl: no device was found" in ask(tmp_path, "-m", "tilelang", "devices", **none)


@pytest.mark.needs_opencl
def test_a_machine_whose_compiler_finds_not_even_its_own_headers(tmp_path: Path, opencl_device: Device) -> None:
    """PoCL with POCL_BUILDING looks for them where it was built; no device of another platform is in question."""
    if {device.platform for device in driver.devices()} != {driver.POCL}:
        pytest.skip("there are other OpenCL platforms than PoCL")
    broken = {"POCL_BUILDING": "1", "POCL_CACHE_DIR": str(tmp_path)}
    said = ask(tmp_path, "-c", ASK, **broken)
    assert said.startswith(f"no-device no OpenCL device can be used: {opencl_device} cannot compile an empty kernel: error: ")
    assert "file not found" in said and " 1\n" in said
    example = str(Path(__file__).parents[2] / "examples" / "06_row_sum.tile")
    for command in (("devices",), ("run", example, "-s", "cpu", "--target", "opencl")):
        assert "cannot compile an empty kernel: error: " in ask(tmp_path, "-m", "tilelang", *command, **broken)


def test_without_pyopencl_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    driver._cl.cache_clear()
    with pytest.raises(DeviceError) as caught:
        driver._cl()
    assert caught.value.code == "no-driver" and "pip install" in str(caught.value)


def test_importing_the_driver_does_not_import_pyopencl() -> None:
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


def test_a_build_option_that_is_refused_is_not_said_of_the_text(
    connection: driver.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYOPENCL_BUILD_OPTIONS", "--nonsense")
    with pytest.raises(DeviceError, match="--nonsense") as caught:
        connection.build("// refused\n" + ADD)
    assert caught.value.code == "build-options"


def stub_program(monkeypatch: pytest.MonkeyPatch, connection: driver.Connection, error: Exception | None, names: str) -> None:
    """Programs whose build fails, or ends with kernels of these names."""

    def build(*_: object) -> None:
        if error is not None:
            raise error

    stub = SimpleNamespace(build=build, get_info=lambda _: names)
    monkeypatch.setattr(driver._cl(), "Program", lambda *_: stub)


def test_what_goes_wrong_in_a_build_is_told_as_what_it_is(connection: driver.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyopencl as cl

    with pytest.raises(cl.Error) as of_opencl:
        cl.Program(connection.context, [connection.device.handle], [b"no binary"]).build()
    for error in (KeyError("PYOPENCL_CACHE_FAILURE_FATAL"), TypeError("within"), KeyboardInterrupt(), MemoryError()):
        stub_program(monkeypatch, connection, error, "")  # type: ignore[arg-type]
        kernel = tl.compile(copy(3, 5), tl.target("opencl", device=connection.device))
        with pytest.raises(type(error)) as caught:
            kernel(np.zeros((3, 5), np.float32))
        assert caught.value is error
    stub_program(monkeypatch, connection, of_opencl.value, "")
    with pytest.raises(DeviceError, match="cannot build the kernel\nclCreateProgramWithBinary failed") as refused:
        connection.build(ADD + "// by its status")
    assert refused.value.code == "build-failed"


def test_a_program_without_its_kernels_is_an_error_of_the_build(
    connection: driver.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub_program(monkeypatch, connection, None, "")
    with pytest.raises(DeviceError, match="a program without kernels") as caught:
        connection.build(ADD + "// without")
    assert caught.value.code == "build-failed"


CALL = """
import numpy as np, tilelang as tl
i = tl.axes(i=4)
print(tl.compile(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i), "opencl")(np.ones(4, np.float32)).sum())
"""
USED_BEFORE = """
import pyopencl.cache, pyopencl.characterize
pyopencl.characterize.has_src_build_cache = lambda _: False
pyopencl.cache.create_built_program_from_source_cached = None
"""


@pytest.mark.needs_opencl
def test_pyopencl_keeps_nothing_on_disk(tmp_path: Path) -> None:
    """Its caches hold pickles, which run code when they are read."""
    assert "8.0" in ask(tmp_path, "-c", CALL)
    assert not [path for path in tmp_path.rglob("*pyopencl*") if path.is_file()]


@pytest.mark.needs_opencl
def test_a_program_goes_past_the_cache_of_a_pyopencl_that_was_imported_before(tmp_path: Path) -> None:
    assert "8.0" in ask(tmp_path, "-c", USED_BEFORE + CALL)


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


def test_a_launch_in_the_middle_of_a_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    """As from a signal's handler: each has its own arguments, and neither waits for the other."""
    launched: list[tuple[str, ...]] = []

    class Kernel:
        def __init__(self, *_: Any) -> None:
            self.given: tuple[str, ...] = ()

        def set_args(self, *given: str) -> None:
            self.given = given
            if given == ("outer",):
                launch(["inner"])

    def enqueue(queue: Any, kernel: Kernel, *_: Any) -> None:
        launched.append(kernel.given)

    library = SimpleNamespace(Kernel=Kernel, enqueue_nd_range_kernel=enqueue, Error=RuntimeError)
    monkeypatch.setattr(driver, "_cl", lambda: library)
    module = SimpleNamespace(connection=SimpleNamespace(queue=None), program=None)
    launch = driver.Function(module, "add", (1,), 1)  # type: ignore[arg-type]
    launch(["outer"])
    assert launched == [("inner",), ("outer",)]


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


@pytest.mark.needs_opencl
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
        assert caught.value.code == "kernel-failed" and caught.value.help
