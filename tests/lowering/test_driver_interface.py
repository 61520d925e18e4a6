"""What every driver has, and what the runtime does with any of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tests.errors._computations import copy, matmul
from tilelang.errors import ComputationError, DeviceError
from tilelang.lowering.drivers import interface, opencl
from tilelang.lowering.drivers.interface import Connection, Device, DeviceArray, Driver, fitting

_: tuple[Driver, ...] = (opencl,)  # for the type checker


def a_device(name: str) -> Device:
    return Device("opencl", name, "Platform", "gpu", "1", "1", 4, 256, 1 << 15, 1 << 30, False)


def test_every_driver_is_loaded_by_its_name() -> None:
    for name in interface.DRIVERS:
        driver = interface.load(name)
        assert not driver.is_device_array(np.ones(3)) and not driver.is_device_array(None)
    assert interface.of_array(np.ones(3)) is None


def test_devices_are_chosen_by_a_part_of_their_names() -> None:
    found = (a_device("First"), a_device("Second"))
    assert fitting(found, "any", None, None) is found[0] and fitting(found, "any", "plat", "SEC") is found[1]
    assert fitting((), "any", "nonesuch", None) is None
    with pytest.raises(DeviceError, match="no any device fits platform 'plat' and device 'third'") as caught:
        fitting(found, "any", "plat", "third")
    assert caught.value.code == "no-such-device"


def test_arrays_overlap_by_their_bytes_in_one_memory() -> None:
    def at(begin: int, base: str = "memory") -> DeviceArray:
        return DeviceArray((4,), np.dtype(np.int8), True, True, None, base, begin, 4)

    assert at(0).overlaps(at(3)) and at(3).overlaps(at(0)) and not at(0).overlaps(at(4)) and not at(4).overlaps(at(0))
    assert not at(0).overlaps(at(0, "another"))


def test_a_device_of_another_driver_is_refused() -> None:
    import dataclasses

    with pytest.raises(DeviceError, match="runs no opencl") as caught:
        tl.target("opencl", device=dataclasses.replace(a_device("First"), driver="another"))
    assert caught.value.code == "no-such-device"


@pytest.mark.skipif(not tl.devices(), reason="no OpenCL device here")
def test_a_call_waits_where_an_array_of_the_host_might_be_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a device array the call does not wait, unless a kernel still reads memory of the host."""
    import pyopencl.array

    kernel = tl.compile(matmul(5, 6, 7))
    a, b = np.ones((5, 7), np.float32), np.ones((7, 6), np.float32)
    on_device = [pyopencl.array.to_device(kernel.queue, x) for x in (a, b)]
    kernel(*on_device)
    waits: list[Any] = []
    connection: Connection = kernel._connection
    monkeypatch.setattr(connection, "finish", lambda queue=None: waits.append(queue))
    kernel(*on_device)
    assert waits == []
    kernel(a, on_device[1])
    assert waits == [kernel.queue]


@pytest.mark.skipif(not tl.devices(), reason="no OpenCL device here")
def test_an_output_that_shares_memory_with_a_tensor_of_another_library() -> None:
    torch = pytest.importorskip("torch")
    shared = torch.ones((4, 8))
    with pytest.raises(ComputationError, match="shares memory with the input X"):
        tl.compile(copy(4, 8))(shared, out=shared.numpy())
