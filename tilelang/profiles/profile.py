"""Levels, memories, and the limits and capabilities of a device: the profile (files.py reads it from TOML).

`Level` and `Memory` are names that a schedule uses, from an open set: only a profile says which of them a device has, how large they
are and what owns them. No code depends on a device's vendor; it consults the profile. A profile is frozen; `with_queried` returns a new
one that includes what a driver reports at run time. `sources` records the origin of each number.
"""

from __future__ import annotations

import bisect
import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from tilelang.core.dtype import DType
from tilelang.core.lazy import cached_property
from tilelang.core.node import Node, node
from tilelang.errors import Refusal
from tilelang.profiles.toml_schema import near
from tilelang.renamed import moved

SHIPPED = "shipped: "  # prefix of the source of a number that a measured profile takes from a shipped one
QUERIED = "queried from the device"


@node
class Level(Node):
    """A level of the machine that specs run on: `tl.block`, `tl.warp`, ... Compared by name."""

    name: str

    def __repr__(self) -> str:
        return self.name


@node
class Memory(Node):
    """A memory that can hold a tensor: `tl.shared`, `tl.register`, ... Compared by name."""

    name: str

    def __repr__(self) -> str:
        return self.name


kernel_level, cluster, block = Level("kernel"), Level("cluster"), Level("block")
warpgroup, warp, thread = Level("warpgroup"), Level("warp"), Level("thread")
register, shared, global_, image = Memory("register"), Memory("shared"), Memory("global"), Memory("image")
l1, l2 = Memory("l1"), Memory("l2")  # caches: a load into one is a prefetch

# From the widest to the narrowest. A profile may define others between them, but keeps this order.
LEVEL_ORDER = tuple(level.name for level in (kernel_level, cluster, block, warpgroup, warp, thread))


@dataclasses.dataclass(frozen=True)
class LevelFacts:
    """One level of a device."""

    name: str
    threads: int | None = None  # threads of one unit (None: chosen by the schedule, up to `max_threads`)
    max_threads: int | None = None
    max_count: int | None = None  # units of this level in one unit of the next wider level (None: no known limit)
    # The threads of a unit run together in hardware, so an instruction may need all of them; False if units are only a numbering.
    # Lockstep implies no order: a value written by one thread of a unit is readable by another only after a barrier, since the threads
    # of a warp may diverge (NVIDIA, since Volta).
    lockstep: bool = False


@dataclasses.dataclass(frozen=True)
class MemoryFacts:
    """One memory of a device."""

    name: str
    owner: str  # the level whose units each have their own
    capacity_bytes: int | None = None  # per unit of `owner` (None: unknown)
    banks: int = 0  # number of banks (0: none); they serve as many lanes at once as their accesses fill
    bank_bytes: int = 4
    # the order in which the lanes of a 16-byte read are served, repeating (empty: in lane order)
    wide_read_lanes: tuple[int, ...] = ()
    line_bytes: int = 0  # the size that one access caches
    transaction_bytes: int = 0  # the smallest transfer
    cache: bool = False  # a memory without addresses; a load into it is a prefetch
    ways: int | None = None  # associativity of a cache (None: unknown)


@dataclasses.dataclass(frozen=True)
class Curve:
    """A measured relation: `points` of x, ascending, and y. x, y: their meanings, with units in the names."""

    name: str
    x: str
    y: str
    points: tuple[tuple[float, float], ...]

    def at(self, x: float) -> float:
        """The value at x: interpolated in the logarithm of x between points, constant beyond the ends.

        >>> Curve("reads", "footprint_bytes", "gb_per_s", ((1024.0, 100.0), (4096.0, 50.0))).at(2048)
        75.0
        """
        after = bisect.bisect_left(self.points, (x, -math.inf))
        if after == 0 or after == len(self.points):
            return self.points[min(after, len(self.points) - 1)][1]
        (x0, y0), (x1, y1) = self.points[after - 1], self.points[after]
        return y0 + (y1 - y0) * math.log(x / x0) / math.log(x1 / x0)


@dataclasses.dataclass(frozen=True)
class Profile:
    """The limits and capabilities of a device."""

    name: str
    description: str
    dialects: tuple[str, ...]
    levels: tuple[LevelFacts, ...]  # from the widest to the narrowest
    memories: tuple[MemoryFacts, ...]
    vector_bytes: tuple[int, ...]  # the widths of one vector access, ascending
    max_vector_lanes: int  # maximum lanes of a vector in the code dialect
    registers_per_thread: int  # of 32 bits each
    # elements per thread that may be kept in named registers; a loop over more is refused
    unrolled_register_elements: int
    architecture: str | None = None  # the compilers' name for it, "sm_80" or "gfx90a" (None: its driver compiles)
    compute_units: int | None = None
    # sizes of asynchronous copies from global to shared memory (empty: not supported)
    async_copy_bytes: tuple[int, ...] = ()
    zero_copy_host: bool = False  # the device works in the host's memory
    # minimum, maximum and step of a role thread's registers (empty: all threads have the same number)
    role_registers: tuple[int, ...] = ()
    block_registers: int | None = None  # registers of all threads of a block together
    grid_max: tuple[int, int, int] = (2**31 - 1, 65535, 65535)  # maximum blocks along each grid dimension
    grid_threads_max: int | None = None  # maximum threads of all blocks along one dimension (None: only blocks are limited)
    capabilities: tuple[str, ...] = ()
    instructions: tuple[str, ...] = ()
    processors: tuple[str, ...] = ()  # the CPUs with these numbers, each as vendor, family (`*`: any) and model
    rates: tuple[tuple[str, float], ...] = ()  # measured numbers, with units in the names
    curves: tuple[Curve, ...] = ()
    unmeasured: tuple[str, ...] = ()  # aspects that `tilelang profile` has not measured yet, in a file that it writes
    # the origins of numbers, by their paths in the file
    sources: tuple[tuple[str, str], ...] = dataclasses.field(default=(), compare=False, repr=False)

    @cached_property
    def level_names(self) -> tuple[str, ...]:
        return tuple(found.name for found in self.levels)

    @cached_property
    def memory_names(self) -> tuple[str, ...]:
        return tuple(found.name for found in self.memories)

    @property
    def lockstep(self) -> bool:
        """Whether threads of some level run together in hardware; otherwise a block is a task for a core with vectors."""
        return any(level.lockstep for level in self.levels)

    def has_level(self, level: Level | str) -> bool:
        return _name(level) in self.level_names

    def has_memory(self, memory: Memory | str) -> bool:
        return _name(memory) in self.memory_names

    def level(self, level: Level | str) -> LevelFacts:
        """The facts of a level. Raises Refusal `unknown-level` if the device does not have it."""
        name = _name(level)
        found = next((facts for facts in self.levels if facts.name == name), None)
        return found or _unknown(self, "level", _name(level), self.level_names)

    def memory(self, memory: Memory | str) -> MemoryFacts:
        """The facts of a memory. Raises Refusal `unknown-memory` if the device does not have it."""
        name = _name(memory)
        found = next((facts for facts in self.memories if facts.name == name), None)
        return found or _unknown(self, "memory", _name(memory), self.memory_names)

    @property
    def warp_size(self) -> int:
        """Threads of a warp; 1 if the device has none."""
        return (self.level("warp").threads or 1) if self.has_level("warp") else 1

    @property
    def max_block_threads(self) -> int:
        return self.level("block").max_threads or 1

    @property
    def async_copy(self) -> bool:
        """Whether the device supports asynchronous copies from global to shared memory."""
        return bool(self.async_copy_bytes)

    def most_blocks(self, threads: int) -> int:
        """The maximum number of blocks of `threads` threads along the first dimension of a grid."""
        threads = max(1, threads)
        return min(self.grid_max[0], (self.grid_threads_max or self.grid_max[0] * threads) // threads)

    def most_registers(self, threads: int) -> int:
        """The maximum registers per thread in a block of `threads` threads. Whole units of the widest level share them equally."""
        if self.block_registers is None:
            return self.registers_per_thread
        together, step = max(f.threads or 1 for f in self.levels), self.role_registers[2] if self.role_registers else 1
        return min(self.registers_per_thread, self.block_registers // (-(-max(1, threads) // together) * together) // step * step)

    def tells_apart(self, rounds: Sequence[int]) -> bool:
        """Whether blocks along several axes get a grid dimension for each axis, the last axis first; otherwise they are linearised in
        the first dimension. rounds: the blocks along each axis."""
        return len(rounds) <= 3 and all(n <= most for n, most in zip(rounds[-2::-1], self.grid_max[1:], strict=False))

    def vector_lanes(self, type: DType) -> tuple[int, ...]:
        """The lane counts of one vector access of elements of this type, ascending; always includes 1."""
        wide = {w // type.bytes for w in self.vector_bytes if w % type.bytes == 0 and w // type.bytes <= self.max_vector_lanes}
        return tuple(sorted(wide | {1}))

    def can(self, capability: str) -> bool:
        """Whether a capability or an instruction of that name is listed; `async_copy` follows from the copy sizes."""
        return self.async_copy if capability == "async_copy" else capability in (*self.capabilities, *self.instructions)

    def rate(self, name: str) -> float | None:
        """A measured number; None if unknown."""
        return self._rate_of.get(name)

    def curve(self, name: str) -> Curve | None:
        """A measured curve; None if unknown."""
        return next((curve for curve in self.curves if curve.name == name), None)

    def source(self, path: str) -> str | None:
        """The origin of a number, by its path: `memories.shared.capacity_bytes`."""
        return self._source_of.get(path)

    @cached_property
    def _rate_of(self) -> Mapping[str, float]:
        return dict(self.rates)

    @cached_property
    def _source_of(self) -> Mapping[str, str]:
        return dict(self.sources)

    def assumed(self, path: str) -> bool:
        """Whether a number, by its path, has only the right order of magnitude: for comparing schedules, not for predicting times."""
        return (self.source(path) or "").removeprefix(SHIPPED).startswith("assumed")

    @cached_property
    def sure_rates(self) -> Mapping[str, float]:
        """The rates that somebody measured or documented."""
        return {name: rate for name, rate in self.rates if not self.assumed(f"rates.{name}")}

    def with_queried(
        self,
        *,
        name: str | None = None,
        max_block_threads: int | None = None,
        shared_bytes: int | None = None,
        global_bytes: int | None = None,
        line_bytes: int | None = None,
        compute_units: int | None = None,
        zero_copy_host: bool | None = None,
        architecture: str | None = None,
        memories: Mapping[str, Mapping[str, int]] | None = None,
        rates: Mapping[str, float] | None = None,
        source: str = "queried",
        same_model: bool = False,
    ) -> Profile:
        """The profile with what the driver reports in place of the file's values; None keeps a value. Rates of all compute units
        together are scaled with the number of units. memories: fields of memories, by name. rates: replace the profile's. same_model:
        the profile was measured on such a device, whatever the name of its architecture."""
        changed: list[str] = []

        def put(path: str, facts: Any, **values: Any) -> Any:
            known = {k: v for k, v in values.items() if v is not None}
            changed.extend(f"{path}{k}" for k in known)
            return dataclasses.replace(facts, **known)

        levels = tuple(put("levels.block.", f, max_threads=max_block_threads) if f.name == "block" else f for f in self.levels)
        wanted: dict[str, dict[str, int | None]] = {
            "shared": {"capacity_bytes": shared_bytes},
            "global": {"capacity_bytes": global_bytes, "line_bytes": line_bytes},
        }
        for memory, fields in (memories or {}).items():
            wanted.setdefault(memory, {}).update(fields)
        held = tuple(put(f"memories.{f.name}.", f, **wanted.get(f.name, {})) for f in self.memories)
        changed.extend(f"rates.{rate}" for rate in rates or {})
        top: Profile = put(
            "", self, name=name, compute_units=compute_units, zero_copy_host=zero_copy_host, architecture=architecture
        )
        sources = tuple(sorted({**dict(self.sources), **dict.fromkeys(changed, source)}.items()))
        merged: Profile = dataclasses.replace(
            top,
            levels=levels,
            memories=held,
            sources=sources,
            rates=tuple(sorted((dict(self.rates) | dict(rates or {})).items())),
        )
        newer = not same_model and self.architecture not in (None, merged.architecture)
        same = merged.compute_units == self.compute_units and not newer
        return merged if same else merged._of_another(self, newer)

    def _of_another(self, like: Profile, newer: bool) -> Profile:
        """The profile with the total rates of another device, scaled to the number of units here. newer: that device is of another
        kind. The compute rates of units of one kind follow from their number; the memory rates are unknown and therefore marked as
        assumed."""
        factor = (self.compute_units or 1) / (like.compute_units or self.compute_units or 1)
        certain = like.compute_units is not None and not newer
        units = {f"rates.{name}": name for name, _ in self.rates} | {f"curves.{c.name}.points": c.y for c in self.curves}
        together = {
            path: unit for path, unit in units.items() if "gflop" in unit or "gb_per_s" in unit or unit == "near_global_bytes"
        }
        sources = dict(self.sources)
        for path, unit in together.items():
            how = "derived" if certain and "gflop" in unit else "assumed"
            sources[path] = f"{how}: {factor:g} times that of {like.description}: {sources.get(path, 'no source given')}"
        rates = tuple((name, y * factor if f"rates.{name}" in together else y) for name, y in self.rates)
        curves = tuple(
            dataclasses.replace(c, points=tuple((x, y * factor) for x, y in c.points))
            if f"curves.{c.name}.points" in together
            else c
            for c in self.curves
        )
        return dataclasses.replace(self, rates=rates, curves=curves, sources=tuple(sorted(sources.items())))


def _name(value: Level | Memory | str) -> str:
    return value if isinstance(value, str) else value.name


def _unknown(profile: Profile, what: str, name: str, known: Sequence[str]) -> NoReturn:
    raise Refusal(f"unknown-{what}", f"the profile `{profile.name}` has no {what} `{name}`", help=near(name, known))


_PROFILE_FILES = ("load_profile", "parse_profile", "profile_for", "profiles_for", "read_profile", "shipped_profiles")
__getattr__ = moved(__name__, dict.fromkeys(_PROFILE_FILES, "tilelang.profiles.files"))
