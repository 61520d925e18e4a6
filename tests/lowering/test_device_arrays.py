"""Arrays of other libraries: where they lie, what they hold, and how work on them is ordered."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest

from tests.lowering.device_array_stubs import Exported, Interfaced, JaxArray, TorchStream, TorchTensor, torch_stub
from tilelang.errors import ComputationError, DeviceError
from tilelang.lowering.drivers import device_arrays
from tilelang.lowering.drivers.device_arrays import CUDA, CUDA_MANAGED, ROCM, find

KINDS = (CUDA, CUDA_MANAGED)


def test_who_is_on_a_device() -> None:
    array = np.zeros(3, np.float32)
    assert device_arrays.on_device(Exported(array), KINDS) and device_arrays.on_device(Interfaced(array), KINDS)
    assert not device_arrays.on_device(Exported(array, (ROCM, 0)), KINDS) and device_arrays.on_device(
        Exported(array, (ROCM, 0)), (ROCM,)
    )
    assert not device_arrays.on_device(Interfaced(array), (ROCM,))
    own = types.SimpleNamespace(__cuda_array_interface__=Interfaced(array).__cuda_array_interface__)
    assert device_arrays.on_device(own, KINDS) and find("X", own, 1).address == array.ctypes.data
    for other in (array, [1.0], None, 3.0, Exported(array, (1, 0))):
        assert not device_arrays.on_device(other, KINDS)


def test_tensors_of_the_host_are_not_on_a_device() -> None:
    torch = pytest.importorskip("torch")
    assert not device_arrays.on_device(torch.zeros(3), (*KINDS, ROCM))


@pytest.mark.parametrize("type", [np.float32, np.float16, np.int8, np.int64, np.uint16, np.bool_, np.float64])
def test_what_an_array_holds(type: Any) -> None:
    array = np.zeros((2, 3), type)
    for given in (Exported(array), Interfaced(array)):
        found = find("X", given, 1)
        assert (found.address, found.shape, found.dtype) == (array.ctypes.data, (2, 3), np.dtype(type))
        assert found.contiguous and found.writeable


def test_bfloat16_by_dlpack() -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.zeros((2, 5), dtype=torch.bfloat16)
    capsule: Any = tensor.__dlpack__()
    found = device_arrays._by_dlpack(capsule, type(tensor))
    assert found.dtype.name == "bfloat16" and found.address == tensor.data_ptr() and found.shape == (2, 5)


@pytest.mark.parametrize(("of_torch", "name"), [("float8_e4m3fn", "float8_e4m3fn"), ("float8_e5m2", "float8_e5m2")])
def test_floats_of_8_bits_by_dlpack(of_torch: str, name: str) -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.zeros((2, 5), dtype=getattr(torch, of_torch))
    assert device_arrays._by_dlpack(tensor.__dlpack__(), type(tensor)).dtype.name == name


@pytest.mark.parametrize("kind", [Exported, Interfaced])
def test_only_rows_one_after_the_other_are_contiguous(kind: Any) -> None:
    array = np.zeros((4, 6), np.float32)
    begins = find("X", kind(array[2:]), 1)
    assert begins.contiguous and begins.address == array.ctypes.data + 48
    assert not find("X", kind(array.T), 1).contiguous and not find("X", kind(array[:, :3]), 1).contiguous
    assert find("X", kind(array[1:2, :3]), 1).contiguous  # one row
    assert find("X", kind(array[:0, :3]), 1).contiguous  # none
    assert find("X", kind(np.zeros((), np.float32)), 1).shape == ()


def test_dlpack_is_told_our_stream_and_the_interface_tells_its_own() -> None:
    array = np.zeros(3, np.float32)
    exported = Exported(array)
    assert find("X", exported, 77).stream is None and exported.streams == [77]
    assert find("X", Interfaced(array, stream=5), 77).stream == 5 and find("X", Interfaced(array), 77).stream is None


def test_what_cannot_be_written() -> None:
    array = np.zeros(3, np.float32)
    assert not find("X", Interfaced(array, read_only=True), 1).writeable and not find("X", JaxArray(array), 1).writeable


def test_what_a_library_does_not_give_away() -> None:
    class Graded(Exported):
        def __dlpack__(self, stream: int | None = None) -> Any:
            raise BufferError("it requires a gradient")

    with pytest.raises(ComputationError, match="the array for X cannot be shared by its library: it requires a gradient"):
        find("X", Graded(np.zeros(3)), 1)
    with pytest.raises(ComputationError, match="DLPack's 5 of 64 bits"):
        find("X", Exported(np.zeros(3, np.complex64)), 1)


@pytest.mark.parametrize(("current", "handle", "waited"), [(0, 0, []), (9, 9, []), (9, 0, [0]), (0, 7, [7])])
def test_pytorch_waits_for_what_was_launched(
    monkeypatch: pytest.MonkeyPatch, current: int, handle: int, waited: list[int]
) -> None:
    stream = TorchStream(current)
    monkeypatch.setitem(sys.modules, "torch", torch_stub(stream))
    tensor = TorchTensor(np.zeros(3))
    assert device_arrays.current_stream(tensor) == current
    assert device_arrays.wait_for(tensor, handle) and stream.waited == waited


@pytest.mark.parametrize(("handle", "waited"), [(9, []), (0, ["null"]), (7, [7])])
def test_cupy_waits_for_what_was_launched(monkeypatch: pytest.MonkeyPatch, handle: int, waited: list[Any]) -> None:
    found: list[Any] = []

    def stream(handle: Any) -> Any:
        return types.SimpleNamespace(ptr=handle, record=lambda: handle, wait_event=found.append)

    class Array(Exported):
        __module__ = "cupy"

    current = stream(9)
    cuda = types.SimpleNamespace(
        get_current_stream=lambda: current, ExternalStream=stream, Stream=types.SimpleNamespace(null=stream("null"))
    )
    stub: Any = types.ModuleType("cupy")
    stub.cuda = cuda
    monkeypatch.setitem(sys.modules, "cupy", stub)
    assert device_arrays.wait_for(Array(np.zeros(3)), handle) and found == waited


def test_libraries_that_tell_no_stream_need_a_wait_on_the_host() -> None:
    assert not device_arrays.wait_for(JaxArray(np.zeros(3)), 0) and not device_arrays.wait_for(Interfaced(np.zeros(3)), 0)


def test_new_arrays_are_of_the_library_of_the_given_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", torch_stub(TorchStream(0)))
    made = device_arrays.empty((2, 3), np.dtype(np.float32), TorchTensor(np.zeros(3)))
    assert isinstance(made, TorchTensor) and made.array.shape == (2, 3)
    with pytest.raises(DeviceError, match="torch cannot allocate an array of complex64") as caught:
        device_arrays.empty((2, 3), np.dtype(np.complex64), TorchTensor(np.zeros(3)))
    assert caught.value.code == "no-array" and caught.value.help == "pass out="
    with pytest.raises(DeviceError, match="pass out="):
        device_arrays.empty((2, 3), np.dtype(np.float32), Interfaced(np.zeros(3)))
