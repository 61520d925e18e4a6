"""The processor's driver: its device, builds, launches and the arrays that they take."""

from __future__ import annotations

import gc
import os
import pickle
import threading
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilelang as tl
from tests.lowering import host_kernels
from tests.lowering.host_kernels import SOURCE, connection
from tilelang.computations import arguments
from tilelang.errors import ComputationError, DeviceError, TileLangError
from tilelang.lowering import limits
from tilelang.lowering.drivers import host, interface
from tilelang.lowering.drivers.cache import BinaryCache
from tilelang.lowering.drivers.cores import usable_cores
from tilelang.lowering.drivers.interface import Connection, Driver
from tilelang.lowering.drivers.loader import Library
from tilelang.lowering.drivers.processor import ARM64, Cache, Processor
from tilelang.runtime.launch_arguments import Placing

_: Driver = host  # for the type checker
Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def made() -> host_kernels.Connection:
    return connection(2)


def run(made: Connection, name: str, blocks: int, *arrays: Array, outputs: int = 1) -> None:
    """One launch on NumPy arrays, the last of them outputs."""
    inputs = len(arrays) - outputs
    held = [made.host_array(a, "input" if n < inputs else "both", None) for n, a in enumerate(arrays)]
    made.build(SOURCE).function(name, (blocks,), 1, 0)([h.buffer for h in held])
    for h in held:
        h.land()


# ---------------------------------------------------------------- the device


def test_there_is_one_device_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    (device,) = host.devices()
    assert (device.driver, device.platform, device.kind, device.host_memory) == ("cpu", "native", "cpu", True)
    assert device.architecture == "native" and device.vector_bytes in (16, 32, 64) and device.max_threads == 4096
    assert device.shared_bytes >= 256 << 10 and device.global_bytes > 1 << 28 and device.compute_units >= 1
    assert interface.load("cpu") is host and host.choose() is device is host.choose("NATIVE", device.name[:3].upper())
    assert pickle.loads(pickle.dumps(device)) is device
    with pytest.raises(DeviceError, match="no processor fits device 'nonesuch'"):
        host.choose(None, "nonesuch")


def test_threads_are_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, threads in (("1", 1), ("7", 7), ("", usable_cores())):
        monkeypatch.setenv("TILELANG_THREADS", text)
        assert host.devices.__wrapped__()[0].compute_units == threads
    for text in ("0", "-1", "2.5", "many"):
        monkeypatch.setenv("TILELANG_THREADS", text)
        with pytest.raises(TileLangError, match=f"TILELANG_THREADS='{text}' is not a whole number from 1 to 2147483647"):
            host.devices.__wrapped__()
    for value in (0, True, 1.0, "2"):
        with pytest.raises(TileLangError):
            tl.Options(threads=value)  # type: ignore[arg-type]
    assert tl.Options(threads=3).threads == 3


def a_processor(**changes: Any) -> Processor:
    given = {
        "machine": ARM64, "system": "Linux", "vendor": "ARM", "name": "Neoverse V1", "family": 1, "model": 2, "stepping": 3,
        "features": frozenset({"asimd"}), "logical": 4, "caches": (), "memory_bytes": 1 << 33, **changes,
    }  # fmt: skip
    return Processor(**given)


def test_what_a_processor_is_as_a_device() -> None:
    device = host.describe_processor(a_processor(caches=(Cache(2, "unified", 1 << 21), Cache(3, "unified", 1 << 25))), 4)
    assert (device.name, device.shared_bytes, device.vector_bytes, device.compute_units) == ("Neoverse V1", 1 << 21, 16, 4)
    assert host.describe_processor(a_processor(), 1).shared_bytes == 256 << 10
    others = [a_processor(stepping=4), a_processor(features=frozenset({"sve"})), a_processor(caches=(Cache(1, "data", 1 << 15),))]
    fingerprints = {host.describe_processor(p, 4).fingerprint for p in (a_processor(), *others)}
    assert len(fingerprints) == 4 and "family 1 model 2 stepping 3" in host.describe_processor(a_processor(), 4).fingerprint


def test_a_processor_that_nothing_is_compiled_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "processor", lambda: a_processor(machine="riscv64"))
    with pytest.raises(DeviceError, match="run on x86-64 and arm64 processors, this one is riscv64"):
        host.devices.__wrapped__()


# ---------------------------------------------------------------- builds


def test_a_build_is_kept_in_the_process_and_in_the_cache(tmp_path: Path) -> None:
    cache, text = BinaryCache(str(tmp_path)), SOURCE + f"// {tmp_path}\n"
    first = connection(1)
    host_kernels.asked.clear()
    assert first.build(text, (), cache) is first.build(text, (), cache)
    assert len(host_kernels.asked) == 2  # the pool as well
    second, x = connection(1), np.zeros(5, np.int32)
    module = second.build(text, (), cache)
    assert len(host_kernels.asked) == 2
    module.function("advance", (5,), 1, 0)([second.host_array(x, "both", None).buffer])
    assert x.tolist() == [1] * 5


@pytest.mark.parametrize("damage", ["short", "changed", "empty"])
def test_a_damaged_entry_is_compiled_anew(tmp_path: Path, damage: str) -> None:
    cache, text = BinaryCache(str(tmp_path)), SOURCE + "// damaged\n"
    connection(1).build(text, (), cache)
    for path in [p for p in tmp_path.rglob("*") if p.is_file()]:
        data = path.read_bytes()
        middle = len(data) // 2
        path.write_bytes({"short": data[:middle], "empty": b"", "changed": data[:middle] + b"?" + data[middle + 1 :]}[damage])
    host_kernels.asked.clear()
    made, x = connection(1), np.zeros(5, np.int32)
    made.build(text, (), cache).function("advance", (5,), 1, 0)([made.host_array(x, "both", None).buffer])
    assert len(host_kernels.asked) == 2 and x.tolist() == [1] * 5


def test_a_folder_that_others_may_write_is_not_loaded_from(tmp_path: Path) -> None:
    cache, text = BinaryCache(str(tmp_path / "kept")), SOURCE + "// open to others\n"
    connection(1).build(text, (), cache)
    os.chmod(tmp_path / "kept", 0o777)
    host_kernels.asked.clear()
    connection(1).build(text, (), cache)
    assert len(host_kernels.asked) == (2 if os.name == "posix" else 0)


def test_a_text_that_does_not_compile_and_a_kernel_that_is_missing(made: host_kernels.Connection) -> None:
    with pytest.raises(DeviceError) as caught:
        made.build("int f(void) { return unknown; }")
    assert caught.value.code == "compile-failed"
    with pytest.raises(DeviceError, match="exports no nonesuch"):
        made.build(SOURCE).function("nonesuch", (1,), 1, 0)


def test_limits_of_a_block(made: host_kernels.Connection) -> None:
    module, device = made.build(SOURCE), made.device
    module.function("nothing", (1,), device.max_threads, device.shared_bytes)
    with pytest.raises(DeviceError, match="threads per block"):
        module.function("nothing", (1,), device.max_threads + 1, 0)
    with pytest.raises(DeviceError, match="bytes of shared memory per block"):
        module.function("nothing", (1,), 1, limits.MOST_SCRATCH_BYTES + 1)


def test_several_threads_build_at_once() -> None:
    made, found = connection(1), list[Any]()
    workers = [threading.Thread(target=lambda: found.append(made.build(SOURCE + "// at once\n"))) for _ in range(5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == 5 and len(set(map(id, found))) == 1


def test_libraries_that_nobody_uses_are_unloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "MOST_RECENT", 2)
    made, closed = connection(1), list[str]()
    made.build(SOURCE)
    monkeypatch.setattr(Library, "close", lambda self: closed.append(self.name))
    function = made.build(SOURCE + "// 0\n").function("advance", (1,), 1, 0)
    for n in range(1, 5):
        made.build(SOURCE + f"// {n}\n")
    gc.collect()
    assert len(closed) == 2
    x = np.zeros(1, np.int32)
    function([made.host_array(x, "both", None).buffer])
    assert x[0] == 1
    del function
    gc.collect()
    assert len(closed) == 3


# ---------------------------------------------------------------- launches


@pytest.mark.parametrize("grid", [(0,), (3, 0), (0, 0, 5)])
def test_a_grid_of_no_blocks(made: host_kernels.Connection, grid: tuple[int, ...]) -> None:
    function, x = made.build(SOURCE).function("advance", grid, 1, 0), np.zeros(3, np.int32)
    buffer = made.host_array(x, "both", None).buffer
    function([buffer])
    assert function.timed([buffer]) is None and not x.any()


@pytest.mark.parametrize("grid", [(6,), (2, 3), (3, 1, 2)])
def test_blocks_of_a_grid_are_numbered_through(made: host_kernels.Connection, grid: tuple[int, ...]) -> None:
    x = np.zeros(8, np.int32)
    made.build(SOURCE).function("advance", grid, 1, 0)([made.host_array(x, "both", None).buffer])
    assert x.tolist() == [1] * 6 + [0] * 2


def test_a_timed_launch_has_its_seconds(made: host_kernels.Connection) -> None:
    x, steps = np.zeros(4, np.int32), np.array([200_000], np.int32)
    function = made.build(SOURCE).function("slow", (4,), 1, 0)
    event = function.timed([made.host_array(a, "both", None).buffer for a in (x, steps)])
    assert event is not None and 1e-5 < host.seconds(event) < 60
    event.wait()
    made.finish()
    assert (x == 1).all()


def test_what_is_no_address_is_refused(made: host_kernels.Connection) -> None:
    function = made.build(SOURCE).function("advance", (3,), 1, 0)
    for wrong in ("text", None, np.zeros(3)):
        with pytest.raises(DeviceError, match="advance could not be launched"):
            function([wrong])  # type: ignore[list-item]
    memory = made.upload(np.zeros(3, np.int32))
    function([memory])
    assert memory.size_bytes == 12


def test_there_are_no_queues(made: host_kernels.Connection) -> None:
    assert made.queue is None
    function = made.build(SOURCE).function("nothing", (1,), 1, 0)
    with pytest.raises(DeviceError, match="a CPU has no queues") as caught:
        host.as_queue("stream")
    assert caught.value.code == "bad-queue"
    with pytest.raises(DeviceError, match="a CPU has no queues"):
        function([], "stream")
    with pytest.raises(DeviceError):
        made.tensor_map(None, 0)  # type: ignore[arg-type]


# ---------------------------------------------------------------- arrays


def test_arrays_are_used_where_they_lie(made: host_kernels.Connection) -> None:
    x, y = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    for a in (x, y):
        assert made.host_array(a, "input", None).buffer == a.ctypes.data
    run(made, "doubled", 100, x, y)
    assert (y == 2 * x).all()
    part = np.zeros(103, np.float32)[3:]  # begins 12 bytes after what an allocator gives
    assert made.host_array(part, "both", None).buffer == part.ctypes.data
    run(made, "doubled", 100, x, part)
    assert (part == 2 * x).all()


def test_read_only_inputs(made: host_kernels.Connection) -> None:
    x, y = np.arange(9, dtype=np.float32), np.zeros(9, np.float32)
    x.flags.writeable = False
    assert made.host_array(x, "input", None).buffer == x.ctypes.data
    run(made, "doubled", 9, x, y)
    assert (y == 2 * np.arange(9)).all()
    mapped = np.frombuffer(np.arange(9, dtype=np.float32).tobytes(), np.float32)
    run(made, "doubled", 9, mapped, y)


def unaligned(values: Array) -> Array:
    """The same values, one byte after where they would be aligned."""
    bytes_ = np.zeros(values.nbytes + 1, np.uint8)
    found = bytes_[1:].view(values.dtype)
    found[...] = values
    assert not found.flags.aligned
    return found


def test_elements_that_are_not_aligned(made: host_kernels.Connection) -> None:
    x, y = unaligned(np.arange(9, dtype=np.float32)), unaligned(np.zeros(9, np.float32))
    held = made.host_array(x, "input", None)
    assert held.buffer % 4 == 0 and held.buffer != x.ctypes.data
    run(made, "doubled", 9, x, y)
    assert (y == 2 * np.arange(9)).all()
    z = unaligned(np.arange(9, dtype=np.int32))
    run(made, "advance", 9, z)
    assert (z == 3 * np.arange(9) + 1).all()


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.bool_, np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
@pytest.mark.parametrize("shape", [(), (3,), (0,), (2, 0, 3), (2, 3)])
def test_arrays_of_every_type_and_of_no_elements(made: host_kernels.Connection, dtype: Any, shape: tuple[int, ...]) -> None:
    x = np.zeros(shape, dtype)
    held = made.host_array(x, "both", None)
    assert held.buffer == x.ctypes.data
    held.land()
    x.flags.writeable = False
    assert made.host_array(x, "input", None).buffer == x.ctypes.data
    assert int(made.upload(x)) > 0


def test_memory_of_ones_own(made: host_kernels.Connection) -> None:
    x = np.arange(1000, dtype=np.float32)
    memory, out = made.upload(x), np.zeros(1000, np.float32)
    x[:] = -1
    made.build(SOURCE).function("doubled", (1000,), 1, 0)([memory, made.host_array(out, "output", None).buffer])
    assert (out == 2 * np.arange(1000)).all() and made.allocate(1 << 22) % 4096 == 0
    with pytest.raises(DeviceError) as caught:
        made.allocate(1 << 62)
    assert caught.value.code == "out-of-memory"


def test_no_array_is_a_device_array(made: host_kernels.Connection) -> None:
    for value in (np.zeros(3), None, 3, [1], Shared(np.zeros(3))):
        assert not host.is_device_array(value)
    x = np.zeros((2, 3), np.float32)
    assert host.describe(x) == ((2, 3), np.float32)
    taken = made.take("X", x, None)
    assert taken.overlaps(made.take("X", x[1:], None)) and taken.contiguous and taken.writeable
    assert made.empty((2,), np.dtype(np.int8), None, x).shape == (2,)
    made.hand_back([x], None)


class Shared:
    """An array of a library that has nothing but DLPack."""

    def __init__(self, array: Array, device: int = 1, refuses: str = "", old: bool = False) -> None:
        self.array, self.device, self.refuses, self.old = array, device, refuses, old

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0

    def __dlpack__(self, **given: Any) -> Any:
        if self.refuses:
            raise BufferError(self.refuses)
        if self.old and given:
            raise TypeError("unexpected argument")
        return self.array.__dlpack__(**given)


@pytest.mark.parametrize("old", [False, True])
def test_tensors_by_dlpack_are_used_where_they_lie(made: host_kernels.Connection, old: bool) -> None:
    x, y = np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros((3, 4), np.float32)
    found = arguments.as_array("X", Shared(x, old=old))
    assert found.ctypes.data == x.ctypes.data and found.shape == (3, 4) and found.dtype == np.float32 and found.flags.writeable
    run(made, "doubled", 12, found, arguments.as_array("Y", Shared(y, old=old)))
    assert (y == 2 * x).all()
    turned = arguments.as_array("X", Shared(x.T))
    assert turned.strides == x.T.strides and (turned == x.T).all()
    assert arguments.as_array("X", Shared(np.zeros((0, 3), np.int8))).shape == (0, 3)
    assert arguments.as_array("X", Shared(np.array(5.0))) == 5.0
    del x
    gc.collect()
    assert (found == np.arange(12).reshape(3, 4)).all()  # its memory lives as long as it


def test_tensors_by_dlpack_that_are_refused() -> None:
    x = np.zeros(4, np.float32)
    for value, why in ((Shared(x, device=2), "lives on a device"), (Shared(x, refuses="needs a gradient"), "needs a gradient")):
        with pytest.raises(ComputationError, match=f"the array for X is not an array: .*{why}"):
            arguments.as_array("X", value)
    with pytest.raises(ComputationError, match="128 bits"):
        arguments.as_array("X", Shared(np.zeros(3, np.complex128)))


def test_a_read_only_tensor_stays_so() -> None:
    x = np.zeros(4, np.float32)
    x.flags.writeable = False
    assert not arguments.as_array("X", Shared(x)).flags.writeable


def test_a_call_takes_tensors_by_dlpack_as_inputs_and_outputs(made: host_kernels.Connection) -> None:
    i = tl.axes(i=6)
    x, y = tl.input("X", tl.float32, i), tl.input("Y", tl.float32, i)
    given, out = np.arange(6, dtype=np.float32), np.zeros(6, np.float32)
    placing = Placing(made, None, None, True)
    first = placing.input(x, np.dtype(np.float32), Shared(given))
    shared = Shared(out)
    last = placing.output(y, np.dtype(np.float32), shared, None, [first], 1)
    assert (first.buffer, last.buffer) == (given.ctypes.data, out.ctypes.data) and last.result is shared
    with pytest.raises(ComputationError, match="shares memory with the input X"):
        placing.output(y, np.dtype(np.float32), Shared(given), None, [first], 1)
    for other, why in ((given.astype(">f4"), "has type >f4"), (given[:3], "has shape")):
        with pytest.raises(ComputationError, match=why):
            placing.input(x, np.dtype(np.float32), other)
    with pytest.raises(ComputationError, match="memory can be written"):
        placing.output(y, np.dtype(np.float32), [0.0] * 6, None, [], 0)
