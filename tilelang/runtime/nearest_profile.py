"""Chooses the shipped profile for a CPU that was not measured, and replaces its cache sizes by those that the system reports.

These are pure functions: `SystemCpu` is what lowering/drivers/processor.py reports, so that tests can pass in recordings from other
machines. A number unknown to the system is 0, and keeps the profile's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from tilelang.profiles.profile import QUERIED, Profile

_ARM = "@aarch64"  # suffix of the architecture of a profile for arm64
_SHARED_LEVEL = 3  # the level of the cache shared by all cores, which a profile has as a rate


class SystemCache(Protocol):
    """A cache as one core sees it. shared_by: number of logical processors that use it."""

    @property
    def level(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def bytes(self) -> int: ...
    @property
    def ways(self) -> int: ...
    @property
    def line_bytes(self) -> int: ...
    @property
    def shared_by(self) -> int: ...


class SystemCpu(Protocol):
    """A CPU as its system describes it. family, model: the vendor's numbers."""

    @property
    def machine(self) -> str: ...
    @property
    def vendor(self) -> str: ...
    @property
    def family(self) -> int: ...
    @property
    def model(self) -> int: ...
    @property
    def vector_bytes(self) -> int: ...
    @property
    def caches(self) -> Sequence[SystemCache]: ...


class Described(Protocol):
    """A profile, or the head of one."""

    @property
    def architecture(self) -> str | None: ...
    @property
    def vector_bytes(self) -> tuple[int, ...]: ...
    @property
    def processors(self) -> tuple[str, ...]: ...
    @property
    def rates(self) -> tuple[tuple[str, float], ...]: ...


P = TypeVar("P", bound=Described)


def nearest_to(seen: SystemCpu, profiles: Sequence[P]) -> P:
    """The profile for a CPU: of its model; else of the same vendor and vector width with the nearest model; else of the same vector
    width with the most rates; else with the nearest width. Profiles for another architecture come last."""

    def apart(profile: P) -> tuple[float, ...]:
        foreign = (_ARM in (profile.architecture or "")) != (seen.machine == "arm64")
        widths = abs(math.log2((seen.vector_bytes or 16) / max(profile.vector_bytes)))
        models = [_model(text) for text in profile.processors]
        of_vendor = [(family, model) for vendor, family, model in models if vendor == seen.vendor]
        if any(family in (seen.family, None) and model == seen.model for family, model in of_vendor):
            return foreign, 0
        if widths == 0 and of_vendor:
            steps = min((abs(seen.family - (family or seen.family)), abs(seen.model - model)) for family, model in of_vendor)
            return foreign, 1, *steps
        return foreign, 2, widths

    return _nearest(profiles, apart)


def by_width(vector_bytes: int, profiles: Sequence[P]) -> P:
    """The profile for a CPU of which only the vector width is known (0: not even that): the nearest width, with the most rates."""
    width = vector_bytes or 16  # minimum of all 64-bit CPUs
    return _nearest(profiles, lambda p: (abs(math.log2(width / max(p.vector_bytes))),))


def _nearest(profiles: Sequence[P], apart: Callable[[P], tuple[float, ...]]) -> P:
    """The profile that is the least apart; of several, the one with the most rates, which are read only then."""
    least = min(map(apart, profiles))
    found = [p for p in profiles if apart(p) == least]
    return found[0] if len(found) == 1 else max(found, key=lambda p: len(p.rates))


def _model(text: str) -> tuple[str, int | None, int]:
    """Vendor, family (None: any) and model of an entry of `Profile.processors`."""
    vendor, family, model = text.rsplit(maxsplit=2)
    return vendor, None if family == "*" else int(family), int(model)


def with_caches(profile: Profile, seen: SystemCpu) -> Profile:
    """The profile with the caches that the system reports: size, ways and line size of a core's own caches, and the size of the cache
    between them and memory, for all cores together.

    If several cores share a cache, a core's share counts.
    """
    of_data = {cache.level: cache for cache in seen.caches if cache.kind != "instruction"}
    threads = max(1, of_data[1].shared_by if 1 in of_data else 1)  # hardware threads per core
    memories = dict[str, dict[str, int]]()
    for name in (m.name for m in profile.memories if m.cache and m.owner == "block"):
        cache = next((c for level, c in of_data.items() if name == f"l{level}"), None)
        if cache is not None:
            share = cache.bytes // max(1, cache.shared_by // threads)
            facts = {"capacity_bytes": share, "ways": cache.ways, "line_bytes": cache.line_bytes}
            memories[name] = {field: value for field, value in facts.items() if value > 0}
    rates, last = dict[str, float](), of_data.get(_SHARED_LEVEL)
    if last is not None and last.bytes:
        cores = max(1, last.shared_by // threads)
        rates["l3_bytes"] = float(last.bytes * -(-(profile.compute_units or 1) // cores))
    return profile.with_queried(memories=memories, rates=rates, source=QUERIED)
