"""`tilelang devices`: lists the devices, and what is missing for other kinds and how to install it."""

from __future__ import annotations

import dataclasses
import importlib.util
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tilelang.cli.common import NO_DEVICE, RIGHT, reporting
from tilelang.cli.output import emit, is_json, show, table
from tilelang.errors import DeviceError
from tilelang.profiles.files import read_profile, shipped_profiles

if TYPE_CHECKING:
    from tilelang.lowering.drivers.interface import Device

# For each dialect: the Python module that drives its devices, and a program that comes with their driver.
PARTS = {"opencl": ("pyopencl", "clinfo"), "cuda": ("cuda.bindings", "nvidia-smi"), "hip": ("pyhip", "rocminfo")}


@click.command("devices")
@reporting
def command() -> None:
    """List the devices that kernels can run on, best first, and what is missing for other kinds. Exits with 3 if there is none."""
    from tilelang.lowering.compilers.interface import tools  # late: a command imports what it needs itself
    from tilelang.runtime.kernel import devices  # late: a command imports what it needs itself
    from tilelang.runtime.targets import devices_of, measured_path  # late: a command imports what it needs itself

    found, unusable = devices(), _unusable()
    unused = _of_other_devices(found)
    missing = [_missing(d, *devices_of(d)) for d in PARTS if d not in {device.driver for device in found}]
    code = RIGHT if found else NO_DEVICE
    if is_json():
        emit(
            {
                "devices": [
                    {"dialect": d.driver, "name": d.name, "platform": d.platform, "kind": d.kind, "architecture": d.architecture,
                     "driver_version": d.driver_version, "compute_units": d.compute_units, "max_threads": d.max_threads,
                     "shared_bytes": d.shared_bytes, "global_bytes": d.global_bytes, "measured": measured_path(d).exists()}
                    for d in found
                ],
                "missing": missing,
                "unusable": [{"dialect": "opencl", "name": d.name, "platform": d.platform, "why": why} for d, why in unusable],
                "compilers": [dataclasses.asdict(tool) for tool in tools()],
                "profiles": list(shipped_profiles()),
                "unused_profiles": [str(path) for path in unused],
            }
        )  # fmt: skip
        sys.exit(code)
    rows = [
        (d.name, d.driver, d.platform, d.kind, d.architecture, d.compute_units, d.max_threads, d.shared_bytes >> 10,
         round(d.global_bytes / 2**30, 1))
        for d in found
    ]  # fmt: skip
    header = ("device", "target", "platform", "kind", "architecture", "units", "threads a block", "shared KiB", "memory GiB")
    lines = [table(header, rows) if rows else "no device", ""]
    lines += [f"{d.name}: {_profile(d)}" for d in found]
    lines += [
        f"{path}: not used, because its device is not in this machine (or was measured by an earlier release, through PoCL)"
        for path in unused
    ]
    lines += [f"{d} is left out, because it cannot compile an empty kernel: {why}" for d, why in unusable if found]
    lines += [f"{m['dialect']}: {m['why']}; installed: {_installed(m)}; needed: {m['get']}" for m in missing]
    lines.append("")
    lines += [f"{t.use}: {t.found or f'nothing installed; needed: {t.get}'}" for t in tools()]
    profiles = ", ".join(shipped_profiles())
    lines.append(f"profiles for --profile NAME: {profiles}")
    show("\n".join(lines))
    sys.exit(code)


def _unusable() -> tuple[tuple[Device, str], ...]:
    """The OpenCL devices that cannot compile, each with the reason."""
    from tilelang.lowering.drivers import opencl  # late: a command imports what it needs itself

    try:
        return opencl.unusable_devices()
    except DeviceError:  # pyopencl is missing, which is reported separately
        return ()


def _of_other_devices(found: Sequence[Device]) -> list[Path]:
    """The profiles stored by `tilelang profile` of devices that are not here."""
    from tilelang.runtime.targets import measured_folder, measured_path  # late: a command imports what it needs itself

    return sorted({*measured_folder().glob("*.toml")} - {measured_path(d) for d in found})


def _profile(device: Device) -> str:
    """The default profile for a device's kernels."""
    from tilelang.runtime.targets import measured_path, shipped_target  # late: a command imports what it needs itself

    path = measured_path(device)
    try:
        if path.exists():
            return f"the profile that was {'partly ' if read_profile(path).unmeasured else ''}measured: {path}"
        return f"the shipped profile {shipped_target(device).profile.name}; `tilelang profile` measures the device"
    except DeviceError as error:
        return error.message


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # a parent package is missing
        return False


def _missing(dialect: str, found: tuple[Any, ...], error: DeviceError | None) -> dict[str, Any]:
    """Why a driver has no devices, which of its parts are installed, and how to install the rest."""
    from tilelang.runtime.targets import DIALECTS  # late: a command imports what it needs itself

    module, program = PARTS[dialect]
    return {
        "dialect": dialect,
        "lowered": dialect in DIALECTS,
        "module": _is_installed(module),
        "driver": shutil.which(program) is not None,
        "why": error.message if error is not None else "no device was found",
        "get": (error.help if error is not None else None) or _get(dialect),
    }


def _get(dialect: str) -> str:
    from tilelang.lowering.drivers import cuda, hip, opencl  # late: a command imports what it needs itself

    return {"cuda": cuda.GET, "hip": hip.GET, "opencl": opencl.GET}[dialect]


def _installed(missing: dict[str, Any]) -> str:
    parts = (("the Python module", missing["module"]), ("the driver", missing["driver"]))
    return " and ".join(what for what, there in parts if there) or "nothing"
