"""Recalls schedules from the database: the fastest that were timed, and those that this version of the autoscheduler generated.

It imports neither the lowering nor the generator, so that a process that only recalls starts quickly.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import math
from collections.abc import Sequence
from typing import Protocol

from tilelang.autoschedule.tune.database import Database
from tilelang.autoschedule.tune.entries import Key, Recalled
from tilelang.computations.computation import Computation
from tilelang.core.version import source_digest
from tilelang.lowering.compilers import interface as compilers
from tilelang.lowering.drivers.interface import Device
from tilelang.options import Options
from tilelang.profiles.profile import Profile
from tilelang.schedules.schedule import Schedule
from tilelang.schedules.steps import Step

NEAR = 1.0  # doublings of extents to another shape whose fastest schedule is preferred to a generated one (see best.BEHIND)


class OnDevice(Protocol):
    """What candidates are made and measured for, as `tilelang.runtime.targets.Target` is: a dialect's name, a profile, a device."""

    @property
    def dialect(self) -> str: ...
    @property
    def profile(self) -> Profile: ...
    @property
    def device(self) -> Device | None: ...


def recall(
    computation: Computation,
    target: OnDevice,
    given: Sequence[Step] = (),
    options: Options | None = None,
    within: float = math.inf,
) -> Recalled | None:
    """The best schedule remembered for a computation on the target's device, which can be lowered for it; None where there is none.

    given: the steps that the schedule was asked to have. within: the distance up to which one of another shape of the computation will
    do, a candidate like any other, in doublings of extents; `distance` says how far it was. Nothing that is wrong with the database is
    an error.
    """
    database = Database.of(options or Options.from_environment())
    if database is None or target.device is None:
        return None
    return database.recall(key_of(computation, target, given), computation, target.profile, within)


def recall_constructed(
    computation: Computation, target: OnDevice, given: Sequence[Step] = (), options: Options | None = None
) -> Schedule | None:
    """The schedule that this version of the scheduler constructed before; None where none is remembered."""
    database = Database.of(options or Options.from_environment(), patient=False)
    return None if database is None else database.constructed(key_constructed(computation, target, given), computation)


def key_of(computation: Computation, target: OnDevice, given: Sequence[Step] = ()) -> Key:
    """What times of schedules for a computation on the target's device are remembered by."""
    return Key(computation.text, "\n".join(map(str, given)), *place_of(target))


def key_constructed(computation: Computation, target: OnDevice, given: Sequence[Step]) -> Key:
    """What a constructed schedule is remembered by."""
    key = key_of(computation, target, given)
    return dataclasses.replace(key, compiler=constructed_by(key.compiler))


def constructed_by(compiler: str) -> str:
    """The compilers of a constructed schedule's key: this version of the scheduler with them."""
    return f"{compiler}, scheduler {_scheduler_version()}"


def place_of(target: OnDevice) -> tuple[str, str, str]:
    """What of a key the target gives: the device, its profile, the compilers."""
    device = target.device
    assert device is not None
    return (
        device.fingerprint,
        profile_version(target.profile),
        f"{target.dialect}, {compiler_of(target)}, {device.platform_version}, tilelang {_version()}",
    )


@functools.lru_cache(maxsize=64)
def profile_version(profile: Profile) -> str:
    """A profile's name and a digest of all that it says: another measurement is another version."""
    return f"{profile.name} {hashlib.sha256(repr(profile).encode()).hexdigest()[:12]}"


def _scheduler_version() -> str:
    """A digest of this package's source: another text may construct another schedule."""
    return source_digest("tilelang.autoschedule", without=("profile",))


@functools.cache
def _version() -> str:
    import importlib.metadata  # late: slow to import, seldom needed

    try:
        return importlib.metadata.version("tilelang-rtile")
    except importlib.metadata.PackageNotFoundError:  # used where it lies
        return "unknown"


def compiler_of(target: OnDevice) -> str:
    """What compiles a target's kernels, with its version: the driver, or clang for the processor."""
    assert target.device is not None
    return compilers.load("cpu").version() if target.dialect == "cpu" else target.device.driver_version
