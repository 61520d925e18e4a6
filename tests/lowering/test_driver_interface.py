"""What every driver has, and what the runtime does with any of them."""

from __future__ import annotations

import dataclasses
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tests.errors._computations import copy, matmul
from tilelang.errors import ComputationError, DeviceError
from tilelang.lowering.drivers import host, interface, opencl
from tilelang.lowering.drivers.interface import Connection, Device, DeviceArray, Driver, fitting
from tilelang.lowering.drivers.process_lock import OnceForEach
from tilelang.runtime import targets

_: tuple[Driver, ...] = (host, opencl)  # for the type checker


def a_device(name: str) -> Device:
    return Device("opencl", name, "Platform", "gpu", "1", "1", 4, 256, 1 << 15, 1 << 30, False)


def test_every_driver_is_loaded_by_its_name() -> None:
    for name in interface.DRIVERS:
        driver = interface.load(name)
        assert not driver.is_device_array(np.ones(3)) and not driver.is_device_array(None)
    assert interface.of_array(np.ones(3)) is None


def test_devices_are_chosen_by_a_part_of_their_names() -> None:
    found = (a_device("First"), a_device("Second"))
    assert fitting(found, "any device", None, None) is found[0] and fitting(found, "any device", "plat", "SEC") is found[1]
    with pytest.raises(DeviceError, match=r"no any device was found[\s\S]*install it") as caught:
        fitting((), "any device", "nonesuch", None, help="install it")
    assert caught.value.code == "no-device"
    with pytest.raises(DeviceError, match="no any device fits platform 'plat' and device 'third'") as caught:
        fitting(found, "any device", "plat", "third")
    assert caught.value.code == "no-such-device"


def test_arrays_overlap_by_their_bytes_in_one_memory() -> None:
    def at(begin: int, base: str = "memory") -> DeviceArray:
        return DeviceArray((4,), np.dtype(np.int8), True, True, None, base, begin, 4)

    assert at(0).overlaps(at(3)) and at(3).overlaps(at(0)) and not at(0).overlaps(at(4)) and not at(4).overlaps(at(0))
    assert not at(0).overlaps(at(0, "another"))


def test_a_device_of_another_driver_is_refused() -> None:
    with pytest.raises(DeviceError, match="runs no opencl") as caught:
        tl.target("opencl", device=dataclasses.replace(a_device("First"), driver="another"))
    assert caught.value.code == "no-such-device"


class Few:
    """A driver of the devices given; without any it is missing."""

    def __init__(self, *found: Device) -> None:
        self.found = found

    def devices(self) -> tuple[Device, ...]:
        if not self.found:
            raise DeviceError("no-driver", "its library is missing", help="install it")
        return self.found


def test_devices_of_all_drivers_the_best_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(driver: str, kind: str) -> Device:
        return dataclasses.replace(a_device(f"{kind} of {driver}"), driver=driver, kind=kind)

    processor, slow, fast = made("opencl", "cpu"), made("opencl", "gpu"), made("cuda", "gpu")
    every = {"opencl": Few(processor, slow), "cuda": Few(fast), "hip": Few(), "cpu": Few()}
    monkeypatch.setattr(interface, "load", every.__getitem__)
    targets.devices_of.cache_clear()
    try:
        assert tl.devices() == (fast, slow, processor)
        assert targets.devices_of("hip")[1] is not None
    finally:
        targets.devices_of.cache_clear()


def test_a_target_is_for_the_best_device_that_is_lowered_to(monkeypatch: pytest.MonkeyPatch) -> None:
    here = {"opencl": (a_device("Second"), a_device("Third")), "cpu": (dataclasses.replace(a_device("First"), driver="cpu"),)}
    monkeypatch.setattr(targets, "devices_of", lambda name: (here.get(name, ()), None))
    assert tl.target().device == here["cpu"][0] and tl.target().dialect == "cpu", "OpenCL is not asked"
    monkeypatch.setenv("TILELANG_DEVICE", "thi")
    assert tl.target().device == a_device("Third") and tl.target().dialect == "opencl"
    monkeypatch.setenv("TILELANG_TARGET", "metal")
    with pytest.raises(DeviceError, match="the target `metal` does not exist"):
        tl.target()


def test_a_device_with_an_architecture_has_its_profile_with_what_was_queried() -> None:
    device = dataclasses.replace(a_device("GPU"), architecture="sm_86", shared_bytes=101376, compute_units=84)
    profile = tl.target("opencl", device=device).profile
    assert profile.name == "ampere" and profile.memory("shared").capacity_bytes == 101376 and profile.compute_units == 84
    assert profile.source("compute_units") == "queried from the device"
    assert tl.target(device=device, profile="volta").profile.name == "volta"


@pytest.mark.needs_opencl
def test_a_call_waits_where_an_array_of_the_host_might_be_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a device array the call does not wait, unless a kernel still reads memory of the host."""
    import pyopencl.array

    kernel = tl.compile(matmul(5, 6, 7), "cpu")
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


def test_an_output_that_shares_memory_with_a_tensor_of_another_library() -> None:
    torch = pytest.importorskip("torch")
    shared = torch.ones((4, 8))
    with pytest.raises(ComputationError, match="shares memory with the input X"):
        tl.compile(copy(4, 8))(shared, out=shared.numpy())


def test_a_driver_with_threads_of_its_own_is_refused_in_a_forked_child(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = interface.OpenedBy("CUDA")
    opened.check()
    opened.here()
    opened.check()
    monkeypatch.setattr("os.getpid", lambda: -1)
    with pytest.raises(DeviceError, match="CUDA") as refused:
        opened.check()
    assert refused.value.code == "forked" and "spawn" in (refused.value.help or "")


def test_threads_that_ask_at_the_same_time_get_one_connection() -> None:
    together, made = threading.Barrier(4), list[str]()

    @OnceForEach
    def connect(device: str) -> object:
        made.append(device)
        time.sleep(0.01)  # the others ask meanwhile
        return object()

    def ask(_: int) -> object:
        together.wait()
        return connect("one")

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, range(4)))
    assert made == ["one"] and len(set(map(id, found))) == 1
    assert connect("another") is not found[0] and made == ["one", "another"]


@pytest.mark.parametrize("driver", interface.DRIVERS)
def test_a_driver_connects_to_a_device_once(driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = interface.load(driver)
    monkeypatch.setattr(module, "Connection", lambda device: object())
    device = a_device(f"the only one of {driver}")
    assert module.connect(device) is module.connect(device)
