"""What kernels are compiled for: the devices here, and targets, which are a dialect, a profile, and perhaps a device.

`tl.devices` and `tl.target` are these functions. A driver's library is imported when its devices are asked for.
"""

from __future__ import annotations

import dataclasses
import functools

from tilelang.errors import DeviceError
from tilelang.lowering.drivers import interface as drivers
from tilelang.lowering.drivers.interface import Device
from tilelang.lowering.targets import opencl
from tilelang.machine import Profile, load_profile, shipped_profiles
from tilelang.options import Options

DIALECTS = {"opencl": opencl.DIALECT}


@dataclasses.dataclass(frozen=True)
class Target:
    """What kernels are compiled for: a code dialect, a device profile, and the device (None: compile only)."""

    dialect: str
    profile: Profile
    device: Device | None = None

    def __str__(self) -> str:
        return f"{self.dialect} for {self.device or self.profile.name}"


def devices() -> tuple[Device, ...]:
    """The devices here, the best first. Empty where there is none.

    >>> all(device.compute_units > 0 for device in devices())
    True
    """
    return drivers.load("opencl").devices()


def target(dialect: str = "opencl", profile: str | Profile | None = None, device: Device | None = None) -> Target:
    """A target. Without a profile: the best device here (or the one given), with the profile that fits it and its queried limits.
    With a profile alone: kernels can be compiled to source, simulated and read, not run.

    Raises DeviceError where there is no device, or no such profile.

    >>> print(target("opencl", profile="simulated"))
    opencl for simulated
    """
    if dialect not in DIALECTS:
        mend = (
            f'tl.target("opencl", profile="{dialect}")'
            if dialect in shipped_profiles()
            else "one of " + ", ".join(sorted(DIALECTS))
        )
        raise DeviceError("unknown-dialect", f"`{dialect}` is not lowered to yet", mend=mend)
    if device is not None and not isinstance(device, Device):
        raise DeviceError("no-such-device", f"device={device!r} is no device", mend="one of tl.devices()")
    if device is not None and device.driver != dialect:
        raise DeviceError("no-such-device", f"{device} runs no {dialect}", mend=f'tl.target("{device.driver}", device=...)')
    options = Options.from_environment()
    if profile is None and options.profile is not None:
        profile = options.profile
    if profile is not None:
        found = profile if isinstance(profile, Profile) else load_profile(profile)
        return Target(dialect, found, device)
    return _local_target(dialect, device or drivers.load(dialect).choose(options.platform, options.device))


@functools.cache
def _local_target(dialect: str, device: Device) -> Target:
    profile = load_profile("pocl").with_queried(
        max_block_threads=device.max_threads,
        shared_bytes=device.shared_bytes,
        global_bytes=device.global_bytes,
        compute_units=device.compute_units,
        zero_copy_host=device.host_memory,
        source="queried from the device",
    )
    return Target(dialect, profile, device)
