"""Compilation targets: the devices of this machine, and targets, which combine a dialect, a profile, and optionally a device.

They are exported as `tl.devices` and `tl.target`. A driver's library is imported when its devices are requested.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import logging
import re
from pathlib import Path

from tilelang.errors import DeviceError
from tilelang.lowering.drivers import extensions
from tilelang.lowering.drivers import interface as drivers
from tilelang.lowering.drivers.interface import Device
from tilelang.lowering.drivers.processor import Processor, processor
from tilelang.lowering.targets.dialects import DIALECTS as DIALECTS
from tilelang.lowering.targets.dialects import needs
from tilelang.options import Options, user_directory
from tilelang.profiles.files import heads_for, load_profile, profile_for, profiles_for, read_profile, shipped_profiles
from tilelang.profiles.profile import QUERIED, Profile
from tilelang.runtime.nearest_profile import by_width, nearest_to, with_caches

# The drivers tried by default, in this order. OpenCL is not among them: its library loads slowly, and its devices may duplicate those
# of the others.
BY_DEFAULT = ("cuda", "hip", "cpu")


@dataclasses.dataclass(frozen=True)
class Target:
    """A compilation target: a code dialect, a device profile, and the device (None: compile only).

    origin: of the profile: "given"; "measured" on this device by `tilelang profile`; "partly measured", if aspects are missing; or
    "shipped" otherwise.
    """

    dialect: str
    profile: Profile
    device: Device | None = None
    origin: str = "given"

    def __str__(self) -> str:
        return f"{self.dialect} for {self.device or self.profile.name}"

    @property
    def needs(self) -> tuple[str, ...]:
        """The additional passes that this target needs: the dialect's, and workarounds for the device's compiler."""
        return needs(self.dialect, self.device)


def devices() -> tuple[Device, ...]:
    """The devices of all installed drivers: GPUs first, those of OpenCL after the others of their kind.

    Empty if there are none.

    >>> all(device.compute_units > 0 for device in devices())
    True
    """
    found = [device for name in drivers.DRIVERS for device in devices_of(name)[0]]
    return tuple(sorted(found, key=lambda d: (drivers.KINDS.index(d.kind), d.driver == "opencl")))


@functools.cache
def devices_of(name: str) -> tuple[tuple[Device, ...], DeviceError | None]:
    """The devices of a driver; without its library none, and the reason."""
    try:
        return drivers.load(name).devices(), None
    except DeviceError as error:
        return (), error


def no_device() -> DeviceError:
    """The error for a machine without a usable device, with the reason if a driver found one that it cannot use."""
    reasons = [error.message for _, error in map(devices_of, drivers.DRIVERS) if error is not None and error.code == "no-device"]
    message = "; ".join(["no device was found"] if not reasons else reasons)
    return DeviceError("no-device", message, help="run `tilelang devices` to see what is missing")


def target(
    dialect: str | None = None,
    profile: str | Profile | None = None,
    device: Device | None = None,
    options: Options | None = None,
) -> Target:
    """A target: "cpu", "cuda", "hip" or "opencl", for a profile, a device, or the best device here.

    The best device is a CUDA or HIP GPU, else the CPU. OpenCL is used only if the target, platform or device asks for it. Without a
    profile, the best matching one is used, with the limits that the device reports. With only a profile, kernels can be compiled to
    source, simulated and inspected, but not run. Without a dialect, it is the device's, else the profile's first. Arguments not given
    come from `options` (target, profile, platform, device), else from TILELANG_TARGET, TILELANG_PROFILE, TILELANG_PLATFORM and
    TILELANG_DEVICE. A platform or device named in `options` applies also if a profile is given.

    Raises DeviceError if there is no device, no such profile, or if the profile does not fit the dialect.

    >>> print(target("opencl", profile="simulated"))
    opencl for simulated
    """
    named = options is not None and (options.platform or options.device)
    options = _with_environment(options)
    dialect = options.target if dialect is None and device is None else dialect
    _check_dialect(dialect)
    if device is not None and not isinstance(device, Device):
        raise DeviceError("no-such-device", f"device={device!r} is not a device", help="pass one of tl.devices()")
    if device is not None and dialect not in (None, device.driver):
        raise DeviceError("no-such-device", f"{device} runs no {dialect}", help=f'tl.target("{device.driver}", device=...)')
    if profile is None and options.profile is not None:
        profile = options.profile
    if profile is not None:
        found = profile if isinstance(profile, Profile) else load_profile(profile)
        if device is None and named:
            device = _choose(dialect, options)
        known = device.driver if device is not None else dialect
        if known is not None and known not in found.dialects:
            fitting = [name for name in shipped_profiles() if known in load_profile(name).dialects]
            message = f"the profile {found.name} is for {' and '.join(found.dialects)}, not for {known}"
            raise DeviceError("profile-dialect", message, help=f"use one of the profiles for {known}: {', '.join(fitting)}")
        return Target(known or found.dialects[0], found, device)
    return _local_target(device or _choose(dialect, options))


def _with_environment(options: Options | None) -> Options:
    """The target, profile, platform and device from the environment, unless options given in Python set them."""
    found = Options.from_environment()
    if options is None:
        return found
    return found.replace(target=options.target, profile=options.profile, platform=options.platform, device=options.device)


def _check_dialect(dialect: str | None) -> None:
    if dialect is None or (isinstance(dialect, str) and dialect in DIALECTS):
        return
    if isinstance(dialect, str) and dialect in shipped_profiles():
        raise DeviceError("unknown-dialect", f"`{dialect}` is a profile, not a target", help=f'tl.target(profile="{dialect}")')
    help = "use one of " + ", ".join(sorted(DIALECTS))
    raise DeviceError("unknown-dialect", f"the target `{dialect}` does not exist", help=help)


def _choose(dialect: str | None, options: Options) -> Device:
    """The best device for a dialect, or for any supported one. Raises DeviceError if there is none."""
    if dialect is not None:
        return drivers.load(dialect).choose(options.platform, options.device)
    if options.platform or options.device:
        return drivers.fitting(devices(), "device", options.platform, options.device)
    for name in BY_DEFAULT:
        if found := devices_of(name)[0]:
            return found[0]
    return drivers.load("cpu").choose()  # its error has the reason


def local_target(profile: str | Profile | None = None, dialect: str | None = None) -> Target:
    """The target of the best device here, of the given dialect and with the given profile, if any.

    Raises DeviceError if there is no device.
    """
    options = Options.from_environment()
    dialect = dialect or options.target
    _check_dialect(dialect)
    return target(profile=profile, device=_choose(dialect, options))


@functools.cache
def _local_target(device: Device) -> Target:
    path = measured_path(device)
    try:
        if path.exists():
            found = read_profile(path)
            return _queried(found, device, "partly measured" if found.unmeasured else "measured")
    except DeviceError as damaged:
        message = "what was measured of %s is passed over: %s; `tilelang profile` measures it anew"
        logging.getLogger("tilelang").warning(message, device, damaged.message)
    return shipped_target(device)


def shipped_target(device: Device) -> Target:
    """A device with the best matching shipped profile and the limits that its driver reports."""
    by_name = device.architecture and device.kind != "cpu"
    found = profile_for(device.architecture, device.name) if by_name else _nearest(device)
    return _queried(found, device, "shipped")


def _nearest(device: Device) -> Profile:
    """The profile for a device of unknown architecture. For a CPU: that of the nearest model, or of the nearest vector width if nothing
    else is known. For others: the one whose description shares the most words with the device's name, else that of any other device."""
    if device.kind == "cpu":
        cores, seen = [head for head in heads_for(device.driver) if "cpu" in head.dialects], _system_cpu(device)
        return load_profile((by_width(device.vector_bytes, cores) if seen is None else nearest_to(seen, cores)).name)
    fitting = [p for p in profiles_for(device.driver) if p.name != "simulated" and p.architecture is None]
    words = _words(device.name)
    return max((load_profile("opencl_gpu"), *fitting), key=lambda p: len(words & _words(p.description)))


def _system_cpu(device: Device) -> Processor | None:
    """The system's description of a device's CPU; None if the device is not a CPU, or is on another machine."""
    if device.driver != "cpu":
        return None
    found = processor()
    return found if found.details == device.details else None


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


def measured_path(device: Device) -> Path:
    """The path at which `tilelang profile` stores measurements of a device."""
    name = re.sub(r"[^a-z0-9]+", "-", f"{device.driver} {device.name}".lower()).strip("-")
    digest = hashlib.sha256(device.fingerprint.encode()).hexdigest()[:8]
    return measured_folder() / f"{name}-{digest}.toml"


def measured_folder() -> Path:
    """The folder in which `tilelang profile` stores measurements."""
    return Path(user_directory("data")) / "profiles"


def _queried(profile: Profile, device: Device, origin: str) -> Target:
    """A device with a profile in which the driver's values replace the file's."""
    seen = _system_cpu(device)
    queried = profile.with_queried(
        max_block_threads=device.max_threads,
        shared_bytes=device.shared_bytes,
        global_bytes=device.global_bytes,
        compute_units=device.compute_units,
        zero_copy_host=device.host_memory,
        architecture=device.architecture or None,
        source=QUERIED,
        same_model=seen is not None and seen.numbers in profile.processors,
    )
    if seen is not None:
        found = extensions.capabilities(seen.features, "amx_tile" in seen.features and extensions.allow_tiles())
        named = tuple(sorted({*queried.capabilities, *found}))
        queried = dataclasses.replace(with_caches(queried, seen), capabilities=named)
    return Target(device.driver, queried, device, origin)
