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
from tilelang.autoschedule.tune.entries import Key, Recalled, StoredSchedule
from tilelang.computations.computation import Computation
from tilelang.core.version import VERSION, source_digest
from tilelang.lowering.compilers import interface as compilers
from tilelang.lowering.drivers.interface import Device
from tilelang.options import Options
from tilelang.profiles.profile import Profile
from tilelang.schedules.steps import Step

# The greatest distance, in doublings of extents, of a shape whose fastest schedule is preferred to a generated one (`best.BEHIND`).
NEAR = 1.0


class OnDevice(Protocol):
    """What candidates are generated and measured for, such as `tilelang.runtime.targets.Target`: a dialect's name, a profile,
    a device."""

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
    """The best remembered schedule for a computation on the target's device that can still be lowered for it; None if there is
    none.

    given: the steps that the schedule had to contain. within: the greatest distance, in doublings of extents, at which a schedule
    for another shape of the computation is returned as a candidate; `distance` tells how far it is. Problems with the database
    are not errors.
    """
    database = Database.of(options or Options.from_environment())
    if database is None or target.device is None:
        return None
    return database.recall(key_of(computation, target, given), computation, target.profile, within)


def recall_constructed(
    computation: Computation, target: OnDevice, given: Sequence[Step] = (), options: Options | None = None
) -> StoredSchedule | None:
    """The schedule that this version of the scheduler generated before; None if none is remembered."""
    database = Database.of(options or Options.from_environment(), patient=False)
    return None if database is None else database.constructed(key_constructed(computation, target, given), computation)


def key_of(computation: Computation, target: OnDevice, given: Sequence[Step] = ()) -> Key:
    """The key under which times of schedules for a computation on the target's device are remembered."""
    return Key(computation.text, "\n".join(map(str, given)), *place_of(target))


def key_constructed(computation: Computation, target: OnDevice, given: Sequence[Step]) -> Key:
    """The key under which a generated schedule is remembered."""
    key = key_of(computation, target, given)
    return dataclasses.replace(key, compiler=constructed_by(key.compiler))


def constructed_by(compiler: str) -> str:
    """The compiler field of a generated schedule's key: the compilers, and this version of the scheduler."""
    return f"{compiler}, scheduler {_scheduler_version()}"


def place_of(target: OnDevice) -> tuple[str, str, str]:
    """The parts of a key that depend on the target: the device, its profile, the compilers."""
    device = target.device
    assert device is not None
    return (
        device.fingerprint,
        profile_version(target.profile),
        f"{target.dialect}, {compiler_of(target)}, {device.platform_version}, tilelang {VERSION}",
    )


@functools.lru_cache(maxsize=64)
def profile_version(profile: Profile) -> str:
    """A profile's name and a digest of its contents: a new measurement is a new version."""
    return f"{profile.name} {hashlib.sha256(repr(profile).encode()).hexdigest()[:12]}"


def _scheduler_version() -> str:
    """A digest of this package's source: a changed source may generate other schedules."""
    return source_digest("tilelang.autoschedule", without=("profile",))


def compiler_of(target: OnDevice) -> str:
    """The compiler of a target's kernels, with its version: the driver, or clang for the CPU."""
    assert target.device is not None
    return compilers.load("cpu").version() if target.dialect == "cpu" else target.device.driver_version
