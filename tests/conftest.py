"""Settings of every test: how many random cases Hypothesis draws, chosen by HYPOTHESIS_PROFILE (dev, ci, large)."""

import functools
import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tilelang.errors import DeviceError
from tilelang.instructions.instruction import Instruction, known
from tilelang.lowering.compilers import clang, native, nvrtc
from tilelang.lowering.drivers import opencl
from tilelang.lowering.drivers.interface import Device
from tilelang.testing.emulation import launch

# Kernel builds take what they take on a shared machine: no deadline, and no complaint about slow drawing.
_COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
settings.register_profile("dev", _COMMON, max_examples=20)
settings.register_profile("ci", _COMMON, max_examples=100, derandomize=True, print_blob=True)
settings.register_profile("large", _COMMON, max_examples=2500, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


_TESTS = Path(__file__).resolve().parent

# Tests that the quick tier leaves out (make test-quick), by folder.
_TIERS = {
    **dict.fromkeys(("gate", "machines", "export"), "gate"),
    **dict.fromkeys(("emulation", "gpu"), "emulation"),
    "benchmarks": "tools",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write tests/golden and tests/errors anew from what is generated now"
    )
    parser.addoption(
        "--no-compiler", action="store_true", help="skip each test when it first asks for a compiler (make test-quick)"
    )
    parser.addoption(
        "--emulated", choices=["cuda", "hip"], help="run what runs on a device as text of that dialect, on this processor"
    )


def pytest_configure(config: pytest.Config) -> None:
    """No database of schedules; where it is asked for, no compiler, or an emulated device in a driver's place, which is then used."""
    os.environ["TILELANG_DATABASE"] = ""  # no schedule of a test is found, or changed, by what was timed before
    if config.getoption("--no-compiler"):
        for module, name in (
            (native, "compile_source"),
            (native, "invoke"),
            (nvrtc, "compile_source"),
            (clang, "compile_source"),
            (launch, "run"),
        ):
            setattr(module, name, lambda *_, **__: pytest.skip("needs a compiler"))
    dialect = config.getoption("--emulated")
    if dialect is not None:
        from tests.gpu.emulated import Driver
        from tilelang.lowering.drivers import interface

        made, real = Driver(dialect), interface.load
        setattr(interface, "load", lambda name: made if name == dialect else real(name))
        os.environ["TILELANG_TARGET"] = dialect


def pytest_itemcollected(item: pytest.Item) -> None:
    """Marks a test by its folder."""
    folder = item.path.relative_to(_TESTS).parts[0] if item.path.is_relative_to(_TESTS) else ""
    if folder in _TIERS:
        item.add_marker(_TIERS[folder])


gc.disable()  # until everything is collected, almost nothing is garbage


def pytest_collection_finish() -> None:
    """What was collected stays until the end: it is not searched for garbage again and again."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()


@functools.cache
def _opencl() -> Device | str:
    """The best OpenCL device here, or the driver's reason why there is none."""
    try:
        return opencl.choose()
    except DeviceError as error:
        return error.message


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("needs_opencl") is not None and isinstance(why := _opencl(), str):
        pytest.skip(why)


@pytest.fixture(scope="session")
def opencl_device() -> Device:
    """The best OpenCL device here; tests of OpenCL itself are skipped, with the driver's reason, where there is none."""
    found = _opencl()
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.fixture
def on_opencl(opencl_device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs on "the best device here" runs on that of OpenCL."""
    monkeypatch.setenv("TILELANG_TARGET", opencl_device.driver)


@pytest.fixture
def only_shipped_instructions(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """The instructions of the package alone, without those that other tests define: errors list what is known.

    Calling it makes it so again.
    """

    def forget() -> None:
        found = [one for one in known() if one.span is None]
        monkeypatch.setattr(sys.modules[Instruction.__module__], "_KNOWN", {one.name: one for one in found})

    forget()
    return forget
