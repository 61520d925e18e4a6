"""Random devices: shipped profiles with some numbers changed or removed.

A device is drawn as a `DeviceRecipe`, the name of a shipped profile and the changes to it, which prints as the Python line that
reproduces it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from tilelang.profiles.files import load_profile, shipped_profiles
from tilelang.profiles.profile import Profile
from tilelang.testing.choice import Source, subset


@dataclasses.dataclass(frozen=True)
class DeviceRecipe:
    """The name of a shipped profile, and the arguments of `changed` for it."""

    base: str
    arguments: tuple[tuple[str, Any], ...] = ()

    def build(self) -> Profile:
        return changed(self.base, **dict(self.arguments))

    def __str__(self) -> str:
        return f"devices.changed({', '.join([repr(self.base), *(f'{name}={value!r}' for name, value in self.arguments)])})"


def changed(
    base: str,
    *,
    levels: tuple[str, ...] | None = None,
    warp_threads: int | None = None,
    lockstep: bool | None = None,
    memories: dict[str, dict[str, Any]] | None = None,
    unknown: tuple[str, ...] = (),
    scaled: dict[str, float] | None = None,
    **facts: Any,
) -> Profile:
    """A shipped profile with other facts.

    levels: the levels that are kept. warp_threads: the threads of a warp; a warpgroup has four warps. memories: changed fields by
    memory; memories that are not named keep theirs. unknown: rates and curves that are removed. scaled: factors by rate. facts: fields
    of the profile, and `max_threads` of a block.
    """
    found = load_profile(base)
    kept = [level for level in found.levels if levels is None or level.name in levels]
    if warp_threads is not None:
        sizes = {"warp": warp_threads, "warpgroup": 4 * warp_threads}
        kept = [dataclasses.replace(x, threads=sizes.get(x.name, x.threads)) for x in kept]
    if lockstep is not None:
        kept = [dataclasses.replace(x, lockstep=lockstep) if x.name == "warp" else x for x in kept]
    if "max_threads" in facts:
        most = facts.pop("max_threads")
        kept = [dataclasses.replace(x, max_threads=most) if x.name == "block" else x for x in kept]
    known = tuple(dataclasses.replace(m, **(memories or {}).get(m.name, {})) for m in found.memories)
    rates = tuple((name, n * (scaled or {}).get(name, 1.0)) for name, n in found.rates if name not in unknown)
    curves = tuple(c for c in found.curves if c.name not in unknown)
    return dataclasses.replace(found, levels=tuple(kept), memories=known, rates=rates, curves=curves, **facts)


def draw_device(source: Source, names: tuple[str, ...] = ()) -> DeviceRecipe:
    """A random device. names: the shipped profiles to start from, none for all."""
    base = source.pick(names or shipped_profiles())
    found = load_profile(base)
    arguments: dict[str, Any] = {}
    for name, draw in _CHANGES.items():
        if source.chance(25):
            value = draw(source, found)
            if value is not None:
                arguments[name] = value
    return DeviceRecipe(base, tuple(arguments.items()))


def _levels(source: Source, found: Profile) -> tuple[str, ...]:
    needed = ("kernel", "block", "thread")
    return tuple(name for name in found.level_names if name in needed or source.chance(60))


def _memories(source: Source, found: Profile) -> dict[str, dict[str, Any]]:
    """Other memory sizes, or unknown ones."""
    made: dict[str, dict[str, Any]] = {}
    for facts in found.memories:
        changes: dict[str, Any] = {}
        if source.chance(50):
            sizes = (1 << 10, 1 << 14, 0, 100, 1 << 17, None) if facts.name == "shared" else (1020, 256, 64, 1 << 16, None)
            changes["capacity_bytes"] = source.pick(sizes)
        if source.chance(30):
            changes["banks"] = source.pick((0, 16, 32))
        if source.chance(30):
            changes["line_bytes"], changes["transaction_bytes"] = source.pick(((64, 64), (0, 0), (128, 32), (32, 32)))
        if source.chance(30):
            changes["ways"] = source.pick((None, 1, 8))
        if changes:
            made[facts.name] = changes
    return made


def _unknown(source: Source, found: Profile) -> tuple[str, ...]:
    """All measured numbers, one of them, or some."""
    names = (*(name for name, _ in found.rates), *(curve.name for curve in found.curves))
    match source.pick(("one", "all", "some")):
        case "all":
            return names
        case "some":
            return tuple(subset(source, names))
        case _:
            return (source.pick(names),) if names else ()


def _scaled(source: Source, found: Profile) -> dict[str, float]:
    return {name: source.pick((0.5, 2.0, 0.01, 100.0)) for name, _ in found.rates if source.chance(20)}


def _instructions(source: Source, found: Profile) -> tuple[str, ...]:
    return tuple(subset(source, found.capabilities)) if source.chance(70) else ()


_CHANGES: dict[str, Callable[[Source, Profile], Any]] = {
    "levels": _levels,
    "warp_threads": lambda source, _: source.pick((8, 16, 32, 64, 4, 2, 1)),
    "lockstep": lambda source, found: source.chance(50) if found.has_level("warp") else None,
    "max_threads": lambda source, _: source.pick((64, 256, 1, 32, 7, 1000, 1024)),
    "memories": _memories,
    "unknown": _unknown,
    "scaled": _scaled,
    "capabilities": _instructions,
    "vector_bytes": lambda source, _: source.pick(((1, 2, 4, 8, 16), (4,), (1, 2, 4), (16,), (1, 2, 4, 8, 16, 32, 64, 128))),
    "max_vector_lanes": lambda source, _: source.pick((4, 1, 2, 8, 16)),
    "registers_per_thread": lambda source, _: source.pick((32, 255, 16, 4, 1024)),
    "unrolled_register_elements": lambda source, _: source.pick((64, 255, 8, 1, 4096)),
    "compute_units": lambda source, _: source.pick((2, 1, 3, 132, None)),
    "async_copy_bytes": lambda source, _: source.pick(((), (4,), (4, 8, 16))),
    "zero_copy_host": lambda source, _: source.chance(50),
    "grid_max": lambda source, _: source.pick(((65535, 65535, 65535), (2**31 - 1, 1, 1))),
}
