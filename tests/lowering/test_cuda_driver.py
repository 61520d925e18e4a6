"""The CUDA driver against a recorder of cuda-bindings' calls: their order, types and sizes, and what becomes of arrays."""

from __future__ import annotations

import ctypes
import sys
import threading
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tests.errors._computations import copy
from tests.lowering import stub_cuda
from tests.lowering.device_array_stubs import Exported, Interfaced, JaxArray, TorchStream, TorchTensor, torch_stub
from tilelang.errors import ComputationError, DeviceError
from tilelang.lowering.compilers import nvrtc
from tilelang.lowering.compilers.compiled import Compiled
from tilelang.lowering.drivers import cuda, streams, tensor_maps
from tilelang.lowering.drivers.interface import Driver
from tilelang.lowering.drivers.tensor_maps import TensorMap
from tilelang.lowering.targets import cuda as cuda_target
from tilelang.lowering.targets import hip as hip_target

_: Driver = cuda  # for the type checker


def forget() -> None:
    """Drops what was learnt of a driver that is not the real one."""
    for known in (cuda._cuda, cuda.devices, cuda.connect):
        known.cache_clear()


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[stub_cuda.Recorder]:
    made = stub_cuda.Recorder()
    package, bindings = types.ModuleType("cuda"), types.ModuleType("cuda.bindings")
    driver = made.module()
    setattr(package, "bindings", bindings)
    setattr(bindings, "driver", driver)
    for module in (package, bindings, driver):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(nvrtc, "compile_source", lambda source, architecture, *_: Compiled(architecture, "none", b"\x7fELF", ()))
    forget()
    yield made
    forget()


@pytest.fixture
def connection(recorder: stub_cuda.Recorder) -> cuda.Connection:
    return cuda.connect(cuda.choose())


def copying(count: int) -> Any:
    """A kernel that copies bytes from its first argument to its second."""
    return lambda source, target: ctypes.memmove(target, source, count)


def lost(name: str) -> Any:
    """A function of the driver after the context was lost."""

    def call(*_: Any) -> tuple[int, None]:
        return stub_cuda.ILLEGAL_ADDRESS, None

    call.__name__ = name
    return call


# ---------------------------------------------------------------- devices


def test_devices_say_what_they_can_hold(recorder: stub_cuda.Recorder) -> None:
    recorder.devices = (("Old", (7, 0)), ("New", (9, 0)), ("Middle", (8, 6)))
    found = cuda.devices()
    assert [(d.name, d.architecture, d.handle) for d in found] == [
        ("New", "sm_90a", 1),
        ("Middle", "sm_86", 2),
        ("Old", "sm_70", 0),
    ]
    assert found[0].shared_bytes == 232448 and found[0].compute_units == 132 and found[0].max_threads == 1024
    assert (found[0].driver_version, found[0].platform_version) == ("13.0", "12.9")
    assert cuda.choose(device="mid").name == "Middle"
    with pytest.raises(DeviceError, match="no CUDA device fits device 'nonesuch'"):
        cuda.choose(device="nonesuch")


def test_no_package_no_driver_no_device(recorder: stub_cuda.Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder.devices = ()
    assert cuda.devices() == ()
    with pytest.raises(DeviceError, match="pip install") as caught:
        cuda.choose()
    assert caught.value.code == "no-device"
    forget()

    def refuse() -> None:
        raise RuntimeError('"cuda" is an NVIDIA driver library and can only be found via system search.\nand more')

    monkeypatch.setattr(sys.modules["cuda.bindings.driver"], "cuDriverGetVersion", refuse)
    with pytest.raises(DeviceError, match=r"finds no CUDA driver: .* system search\.\n[\s\S]*NVIDIA's driver") as caught:
        cuda.devices()
    assert caught.value.code == "no-driver"
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", None)
    with pytest.raises(DeviceError, match=r"cuda-bindings cannot be imported[\s\S]*pip install 'tilelang-rtile\[cuda") as caught:
        cuda.devices()
    assert caught.value.code == "no-driver"


def test_a_driver_without_hardware_has_no_devices(recorder: stub_cuda.Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(flags: int) -> tuple[int]:
        return (stub_cuda.NO_DEVICE,)

    monkeypatch.setattr(sys.modules["cuda.bindings.driver"], "cuInit", refuse)
    assert cuda.devices() == ()


def test_the_module_alone_imports_nothing() -> None:
    import subprocess

    modules = "tilelang.lowering.drivers.cuda, tilelang.lowering.drivers.hip"
    code = f"import sys, {modules}; sys.exit(bool({{'pyhip', 'numpy', 'cuda'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


# ---------------------------------------------------------------- modules and launches


def test_a_text_is_built_once_for_the_device_s_architecture(connection: cuda.Connection, recorder: stub_cuda.Recorder) -> None:
    assert connection.build("text") is connection.build("text")
    assert recorder.named("cuModuleLoadData") == [("cuModuleLoadData", b"\x7fELF")]
    assert connection.build("another") is not connection.build("text")


def test_a_launch_has_addresses_grid_and_threads(connection: cuda.Connection, recorder: stub_cuda.Recorder) -> None:
    memory = [connection.allocate(1000) for _ in range(3)]
    function = connection.build("text").function("kernel", (5, 7), 96, 1024)
    seen: list[tuple[int, ...]] = []
    recorder.kernels["kernel"] = lambda a, b, c: seen.append((a, b, c))
    function(memory)
    assert recorder.named("cuLaunchKernel") == [("cuLaunchKernel", "kernel", (5, 7, 1), (96, 1, 1), 1024, 0)]
    assert seen == [tuple(m.__index__() for m in memory)]
    connection.build("text").function("kernel", (5, 0), 96, 0)(memory)
    assert len(recorder.named("cuLaunchKernel")) == 1  # a grid of no blocks is not launched


@pytest.mark.parametrize(
    ("static", "wanted", "dynamic", "asked"),
    [(4096, 4096, 0, None), (0, 4096, 4096, None), (0, 100_000, 100_000, 100_000), (1024, 200_000, 198_976, 198_976)],
)
def test_shared_memory_beyond_48_kib_is_asked_for(
    connection: cuda.Connection, recorder: stub_cuda.Recorder, static: int, wanted: int, dynamic: int, asked: int | None
) -> None:
    recorder.static_bytes["kernel"] = static
    connection.build("text").function("kernel", (1,), 32, wanted)([])
    assert recorder.named("cuLaunchKernel")[0][4] == dynamic
    expected = [] if asked is None else [("cuFuncSetAttribute", "kernel", "MAX_DYNAMIC_SHARED_SIZE_BYTES", asked)]
    assert recorder.named("cuFuncSetAttribute") == expected


def test_limits_are_checked_before_the_launch(connection: cuda.Connection) -> None:
    wrong = (((1,), 1025, 0, "too-many-threads"), ((1,), 32, 232449, "shared-memory"), ((1, 65536, 1), 32, 0, "too-many-blocks"))
    for grid, threads, shared, code in wrong:
        with pytest.raises(DeviceError) as caught:
            connection.build("text").function("kernel", grid, threads, shared)
        assert caught.value.code == code


def test_events_stand_around_a_timed_launch_and_are_used_again(connection: cuda.Connection, recorder: stub_cuda.Recorder) -> None:
    function = connection.build("text").function("kernel", (1,), 32, 0)
    stream = 4096
    event = function.timed([], stream)
    order = [c[0] for c in recorder.calls if c[0] in ("cuEventRecord", "cuLaunchKernel")]
    assert order == ["cuEventRecord", "cuLaunchKernel", "cuEventRecord"] and {
        c[-1] for c in recorder.named("cuEventRecord", "cuLaunchKernel")
    } == {stream}
    assert event is not None and cuda.seconds(event) == pytest.approx(1e-3)
    del event
    again = function.timed([])
    assert again is not None and len(recorder.named("cuEventCreate")) == 2
    assert connection.build("text").function("kernel", (0,), 32, 0).timed([]) is None


def test_any_thread_may_launch(connection: cuda.Connection, recorder: stub_cuda.Recorder) -> None:
    function = connection.build("text").function("kernel", (1,), 32, 0)
    failed: list[BaseException] = []

    def work() -> None:
        try:
            function([connection.allocate(8)])
            connection.finish()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not failed and len(recorder.named("cuLaunchKernel")) == 1


def test_what_the_driver_refuses_is_told(connection: cuda.Connection, recorder: stub_cuda.Recorder) -> None:
    def fault(*_: Any) -> None:
        raise stub_cuda.Failed(stub_cuda.ILLEGAL_ADDRESS)

    recorder.kernels["kernel"] = fault
    with pytest.raises(DeviceError, match="Stub .*: cuLaunchKernel failed: an illegal memory access was encountered\n") as caught:
        connection.build("text").function("kernel", (1,), 32, 0)([])
    assert caught.value.code == "launch-failed" and not recorder.stack


def test_every_call_may_tell_of_a_lost_context(
    connection: cuda.Connection, recorder: stub_cuda.Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = connection.build("text").function("kernel", (1,), 32, 0)
    for name in ("cuCtxPushCurrent", "cuCtxPopCurrent"):
        with monkeypatch.context() as patched, pytest.raises(DeviceError, match=f"{name} failed: an illegal memory") as caught:
            patched.setattr(connection.cuda, name, lost(name))
            function([])
        assert caught.value.code == "launch-failed"
        recorder.stack.clear()
    monkeypatch.setattr(connection.cuda, "cuCtxPushCurrent", lost("cuCtxPushCurrent"))
    connection.close()


# ---------------------------------------------------------------- memory


def test_memory_is_used_again(connection: cuda.Connection, recorder: stub_cuda.Recorder) -> None:
    first = connection.allocate(1000)
    address = first.__index__()
    del first
    assert connection.allocate(1001).__index__() == address  # 1024 bytes each
    assert recorder.named("cuMemAlloc") == [("cuMemAlloc", 1024)] and recorder.named("cuMemFree") == []


def test_unused_memory_is_freed_before_there_is_none(connection: cuda.Connection, recorder: stub_cuda.Recorder) -> None:
    half, more = recorder.total_bytes // 2, recorder.total_bytes * 3 // 4
    del half
    first = connection.allocate(more)
    with pytest.raises(DeviceError, match=f"{more} bytes on Stub") as caught:
        connection.allocate(more)
    assert caught.value.code == "out-of-memory"
    del first
    assert connection.allocate(more - more // 4) is not None and len(recorder.named("cuMemFree")) == 1


def test_arrays_of_the_host_go_there_and_back(connection: cuda.Connection, recorder: stub_cuda.Recorder) -> None:
    x, y = np.arange(6, dtype=np.float32), np.zeros(6, np.float32)
    recorder.kernels["kernel"] = copying(24)
    given = [connection.host_array(x, "input", None), connection.host_array(y, "output", None)]
    connection.build("text").function("kernel", (1,), 32, 0)([g.buffer for g in given])
    for g in given:
        g.land()
    np.testing.assert_array_equal(y, x)
    copies = [c for c in recorder.calls if c[0].startswith("cuMemcpy") or c[0] == "cuLaunchKernel"]
    assert [(c[0], *([c[1]] if c[0] != "cuLaunchKernel" else [])) for c in copies] == [
        ("cuMemcpyHtoD", 24),
        ("cuLaunchKernel",),
        ("cuMemcpyDtoH", 24),
    ]


def test_an_array_that_is_read_and_written_is_copied_both_ways(connection: cuda.Connection, recorder: stub_cuda.Recorder) -> None:
    y = np.arange(6, dtype=np.float32)
    both = connection.host_array(y, "both", None)
    y[...] = 0
    both.land()
    np.testing.assert_array_equal(y, np.arange(6))
    assert [c[0] for c in recorder.calls if c[0].startswith("cuMemcpy")] == ["cuMemcpyHtoD", "cuMemcpyDtoH"]


def test_copies_are_enqueued_on_the_stream_of_the_launch(connection: cuda.Connection, recorder: stub_cuda.Recorder) -> None:
    stream = 4096
    y = np.zeros(6, np.float32)
    connection.host_array(np.ones(6, np.float32), "input", stream)
    connection.host_array(y, "output", stream).land(stream)
    found = [c[0] for c in recorder.calls if c[-1] == stream]
    waits = "cuStreamSynchronize"  # until then a copy may read or write the array
    assert found == ["cuMemcpyHtoDAsync", waits, "cuMemcpyDtoHAsync", waits]


def test_empty_arrays_are_not_copied(connection: cuda.Connection, recorder: stub_cuda.Recorder) -> None:
    connection.host_array(np.zeros(0, np.float32), "input", None)
    connection.host_array(np.zeros(0, np.float32), "output", None).land()
    assert not [c for c in recorder.calls if c[0].startswith("cuMemcpy")]


# ---------------------------------------------------------------- arrays of other libraries


def test_arrays_are_ordered_with_the_stream_of_the_launch(connection: cuda.Connection) -> None:
    array, stream = Exported(np.zeros((2, 3), np.float32)), 4096
    taken = connection.take("X", array, None)
    connection.take("X", array, stream)
    assert array.streams == [1, stream]  # 1 is DLPack's number of the default stream
    assert taken.buffer == array.array.ctypes.data and taken.nbytes == 24 and taken.shape == (2, 3)


def test_a_stream_that_cannot_be_waited_for_is_waited_for_on_the_host(
    connection: cuda.Connection, recorder: stub_cuda.Recorder
) -> None:
    for stream, waits in ((None, 0), (1, 0), (12345, 1)):
        before = len(recorder.named("cuCtxSynchronize"))
        connection.take("X", Interfaced(np.zeros(3), stream), None)
        assert len(recorder.named("cuCtxSynchronize")) - before == waits


def test_arrays_that_begin_between_16_bytes_are_refused(connection: cuda.Connection) -> None:
    every = np.zeros(64, np.float32)
    first = -every.ctypes.data % 16 // 4
    assert connection.take("X", Interfaced(every[first : first + 8], None), None).begin % 16 == 0
    with pytest.raises(ComputationError, match="begins at 0x.*, which is not a multiple of 16"):
        connection.take("X", Interfaced(every[first + 1 : first + 9], None), None)
    connection.take("X", Interfaced(every[first + 1 : first + 1], None), None)  # nothing is loaded from it
    assert {cuda_target.DIALECT.argument_alignment, hip_target.DIALECT.argument_alignment} == {streams.ARGUMENT_ALIGNMENT}


def test_arrays_of_another_device_are_refused(connection: cuda.Connection) -> None:
    with pytest.raises(DeviceError, match="is on another device") as caught:
        connection.take("X", Exported(np.zeros(3), (2, 1)), None)
    assert caught.value.code == "other-context"


def test_libraries_wait_for_the_launch_or_the_host_does(
    connection: cuda.Connection, recorder: stub_cuda.Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = TorchStream(55)
    monkeypatch.setitem(sys.modules, "torch", torch_stub(own))
    connection.hand_back([TorchTensor(np.zeros(3))], None)
    assert own.waited == [0] and recorder.named("cuCtxSynchronize") == []
    connection.hand_back([TorchTensor(np.zeros(3)), JaxArray(np.zeros(3))], None)
    assert own.waited == [0, 0] and len(recorder.named("cuCtxSynchronize")) == 1


def test_calls_with_tensors_launch_on_their_memory(recorder: stub_cuda.Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the runtime: nothing is copied, the result is a tensor, and the call does not wait."""
    monkeypatch.setitem(sys.modules, "torch", torch_stub(TorchStream(0)))
    kernel = tl.compile(copy(4, 8), tl.target("cuda"))
    recorder.kernels["Y"] = copying(4 * 8 * 4)
    x = TorchTensor(np.arange(32, dtype=np.float32).reshape(4, 8))
    y = kernel(x)
    assert isinstance(y, TorchTensor) and x.streams == y.streams == [1]
    np.testing.assert_array_equal(y.array, x.array)
    out = TorchTensor(np.zeros((4, 8), np.float32))
    assert kernel(x, out=out) is out
    np.testing.assert_array_equal(out.array, x.array)
    assert not recorder.named("cuMemcpyHtoD", "cuMemcpyDtoH", "cuMemAlloc", "cuCtxSynchronize")
    with pytest.raises(ComputationError, match="shares memory with the input X"):
        kernel(x, out=TorchTensor(x.array))
    with pytest.raises(ComputationError, match="has type float64"):
        kernel(TorchTensor(np.zeros((4, 8))))
    host = np.zeros((4, 8), np.float32)
    assert kernel(x, out=host) is host  # one of each: the call waits
    np.testing.assert_array_equal(host, x.array)


def test_results_for_arrays_that_cannot_be_written_are_new(recorder: stub_cuda.Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX's arrays: one that nobody else has is filled, and the host waits, as JAX has no stream to be told of."""
    stub: Any = types.ModuleType("jax")
    stub.numpy = types.SimpleNamespace(empty=lambda shape, dtype, device: JaxArray(np.zeros(shape, dtype)))
    monkeypatch.setitem(sys.modules, "jax", stub)
    kernel = tl.compile(copy(4, 8), tl.target("cuda"))
    recorder.kernels["Y"] = copying(4 * 8 * 4)
    x = JaxArray(np.arange(32, dtype=np.float32).reshape(4, 8))
    y = kernel(x)
    np.testing.assert_array_equal(y.array, x.array)
    assert len(recorder.named("cuCtxSynchronize")) == 1
    with pytest.raises(ComputationError, match="cannot be written"):
        kernel(x, out=JaxArray(np.zeros((4, 8), np.float32)))


def test_a_kernel_from_a_function_of_tensors_is_for_their_driver(
    recorder: stub_cuda.Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", torch_stub(TorchStream(0)))

    @tl.kernel
    def same(x: Any) -> Any:
        i, j = x.dims
        return tl.define("Y", x[i, j], i, j)

    recorder.kernels["Y"] = copying(4 * 8 * 4)
    x = TorchTensor(np.arange(32, dtype=np.float32).reshape(4, 8))
    np.testing.assert_array_equal(same(x).array, x.array)
    assert len(recorder.named("cuLaunchKernel")) == 1


@pytest.mark.parametrize(
    ("queue", "handle"),
    [
        (7, 7), (0, None), (types.SimpleNamespace(cuda_stream=7), 7), (types.SimpleNamespace(ptr=7), 7),
        (types.SimpleNamespace(handle=7), 7), (types.SimpleNamespace(__cuda_stream__=lambda: (0, 7), handle=None), 7),
        (stub_cuda.CUstream(7), 7), (TorchStream(0), None),
    ],
    ids=["number", "default", "torch", "cupy", "pycuda", "cuda.core", "cuda.bindings", "torch's default"],
)  # fmt: skip
def test_queues_are_streams_of_any_library(recorder: stub_cuda.Recorder, queue: Any, handle: int | None) -> None:
    kernel = tl.compile(copy(4, 8), tl.target("cuda"))
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    recorder.kernels["Y"] = copying(4 * 8 * 4)
    np.testing.assert_array_equal(kernel(x, queue=queue), x)
    assert cuda.as_queue(queue) == handle and recorder.named("cuLaunchKernel")[0][-1] == (handle or 0)


@pytest.mark.parametrize("queue", ["fast", 7.0, True, -1, types.SimpleNamespace(handle="7")], ids=repr)
def test_what_is_not_a_stream_is_refused(connection: cuda.Connection, queue: Any) -> None:
    with pytest.raises(DeviceError, match="is not a stream\n[\\s\\S]*__cuda_stream__") as caught:
        cuda.as_queue(queue)
    assert caught.value.code == "bad-queue"


def test_arrays_of_another_stream_are_waited_for(connection: cuda.Connection, recorder: stub_cuda.Recorder) -> None:
    """A stream of another library need not be ordered with the default one."""
    for stream, queue, waits in ((1, 7, 1), (0, 7, 1), (7, 7, 0), (8, 7, 1), (None, 7, 0)):
        before = len(recorder.named("cuCtxSynchronize"))
        connection.take("X", Interfaced(np.zeros(3), stream), queue)
        assert len(recorder.named("cuCtxSynchronize")) - before == waits


# ---------------------------------------------------------------- tensor maps


def test_each_argument_is_launched_by_a_pointer(connection: cuda.Connection, recorder: stub_cuda.Recorder) -> None:
    """Addresses, memory and maps, in any order; the stub checks that a map lies at a multiple of 64."""
    seen: list[Any] = []

    def kernel(a: int, first: bytes, b: int, second: bytes, third: bytes, c: int) -> None:
        seen.append((a, first, b, second, third, c))

    recorder.kernels["kernel"] = kernel
    maps = [bytes([n]) * 128 for n in (7, 8, 9)]
    memory = connection.allocate(8)
    given = [1, maps[0], memory, maps[1], maps[2], 2**64 - 1]
    function = connection.build("text").function("kernel", (1,), 32, 0)
    for _ in range(20):  # each launch has memory of its own
        function(given)
    assert seen == [(1, maps[0], memory.__index__(), maps[1], maps[2], 2**64 - 1)] * 20


@pytest.mark.parametrize(
    ("shape", "strides", "box", "swizzle", "why"),
    [
        ((64, 60), (120, 2), (64, 60), 0, "120 bytes apart"), ((64, 64), (128, 4), (64, 64), 0, "not contiguous"),
        ((512, 64), (128, 2), (512, 64), 0, "512 x 64"), ((64, 64), (128, 2), (64, 4), 0, "8 bytes in a row"),
        ((64, 64), (128, 2), (64, 64), 64, "its swizzle of 64"), ((8,) * 6, (2,) * 6, (8,) * 6, 0, "6 dimensions"),
        ((1, 1 << 33), (1 << 34, 2), (1, 64), 0, "a tensor of 1 x 8589934592"),
    ],
)  # fmt: skip
def test_tensor_maps_that_the_copies_do_not_take(shape: Any, strides: Any, box: Any, swizzle: int, why: str) -> None:
    with pytest.raises(DeviceError, match=why) as caught:
        TensorMap(tl.float16, shape, strides, box, swizzle)
    assert caught.value.code == "tensor-map"


def test_a_tensor_map_is_encoded_innermost_dimension_first() -> None:
    seen: list[Any] = []
    kept = (ctypes.c_uint8 * 128)(*range(128))

    class Names:
        def __getattr__(self, name: str) -> str:
            return name

    def encode(*given: Any) -> Any:
        seen.extend(given)
        return 0, types.SimpleNamespace(getPtr=lambda: ctypes.addressof(kept))

    stub = types.ModuleType("cuda.bindings.driver")
    members = dict(
        cuTensorMapEncodeTiled=encode, cuuint64_t=int, cuuint32_t=int,
        **{f"CUtensorMap{k}": Names() for k in ("DataType", "Interleave", "Swizzle", "L2promotion", "FloatOOBfill")},
    )  # fmt: skip
    vars(stub).update(members)
    map = TensorMap(tl.bfloat16, (100, 256), (512, 2), (64, 64), 128)
    assert tensor_maps.encode(stub, map, 4096) == bytes(range(128))
    assert seen[:7] == ["CU_TENSOR_MAP_DATA_TYPE_BFLOAT16", 2, 4096, [256, 100], [512], [64, 64], [1, 1]]
    assert seen[8] == "CU_TENSOR_MAP_SWIZZLE_128B"
    with pytest.raises(DeviceError, match="not a multiple of 16"):
        tensor_maps.encode(stub, map, 4104)


def test_the_map_of_a_tensor_without_elements_is_that_of_a_zero(
    connection: cuda.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that its boxes read is zero, too."""
    seen: list[tuple[TensorMap, int]] = []

    def encode(driver: Any, map: TensorMap, address: int) -> bytes:
        seen.append((map, address))
        return b""

    monkeypatch.setattr(cuda, "encode", encode)
    connection.tensor_map(TensorMap(tl.bfloat16, (256, 0), (0, 2), (128, 64), 128), 0)
    assert [map for map, _ in seen] == [TensorMap(tl.bfloat16, (1, 1), (16, 2), (128, 64), 128)]
    assert ctypes.string_at(seen[0][1], 16) == bytes(16)
