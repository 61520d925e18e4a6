"""Profile files: the shipped ones, looked up by name or for a device, and any other TOML file, parsed and validated."""

from __future__ import annotations

import dataclasses
import functools
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilelang.errors import DeviceError, TileLangError, brief, is_path
from tilelang.profiles.profile import LEVEL_ORDER, Curve, LevelFacts, MemoryFacts, Profile
from tilelang.profiles.toml_schema import near, record, records, unwrap

MOST_CHARACTERS = 1 << 20  # of a profile's file
SCHEMA = 1
_FOLDER = Path(__file__).parent  # of the shipped profiles
RENAMED = {"pocl": "sapphire_rapids"}  # former names of profiles


def shipped_profiles() -> tuple[str, ...]:
    """The names of the shipped profiles."""
    return tuple(sorted(name.removesuffix(".toml") for name in os.listdir(_FOLDER) if name.endswith(".toml")))


@dataclasses.dataclass(frozen=True)
class Head:
    """The first lines of a shipped profile, above its tables: the facts that it is chosen by, without the time to read the rest."""

    name: str
    dialects: tuple[str, ...]
    vector_bytes: tuple[int, ...]
    architecture: str | None = None
    processors: tuple[str, ...] = ()

    @property
    def rates(self) -> tuple[tuple[str, float], ...]:
        """The measured numbers; the whole profile is read for them."""
        return load_profile(self.name).rates


@functools.cache
def heads_for(dialect: str) -> tuple[Head, ...]:
    """The heads of the shipped profiles for a dialect.

    >>> [head.name for head in heads_for("cpu")][:2]
    ['avx2', 'avx512']
    """
    import tomllib  # late: slow to import, seldom needed

    found = []
    for name in shipped_profiles():
        above = _text(name).partition("\n[")[0]
        if f'"{dialect}"' in above:  # otherwise parsing it would be a waste of time
            facts = unwrap(tomllib.loads(above), "", {})
            found.append(Head(**{f.name: facts[f.name] for f in dataclasses.fields(Head) if f.name in facts}))
    return tuple(head for head in found if dialect in head.dialects)


def profiles_for(dialect: str) -> tuple[Profile, ...]:
    """The shipped profiles for a dialect.

    >>> [p.name for p in profiles_for("cpu")][:2]
    ['avx2', 'avx512']
    """
    return tuple(load_profile(head.name) for head in heads_for(dialect))


def _text(name: str) -> str:
    """The file of a shipped profile."""
    return _FOLDER.joinpath(f"{name}.toml").read_text(encoding="utf-8")


def load_profile(name_or_path: str | Path) -> Profile:
    """A profile by its shipped name, or from a TOML file (a path, or text that ends in `.toml` or contains a `/`).

    A profile's former name still works, with a FutureWarning. Raises DeviceError: `profile-not-found`, `profile-syntax`,
    `profile-schema`, `profile-key`, `profile-value`.

    >>> load_profile("sapphire_rapids").warp_size
    32
    """
    name = str(name_or_path)
    if name in RENAMED:
        warnings.warn(f"the profile `{name}` is now called `{RENAMED[name]}`", FutureWarning, stacklevel=2)
    return _load(RENAMED.get(name, name))


@functools.cache
def _load(name: str) -> Profile:
    if "/" in name or name.endswith(".toml"):
        return read_profile(name)
    if name not in shipped_profiles():
        raise DeviceError(
            "profile-not-found", f"there is no profile `{name}`", help=near(name, shipped_profiles()) + " Or pass a path."
        )
    return parse_profile(_text(name), f"profiles/{name}.toml")


def read_profile(path: str | Path) -> Profile:
    """A profile from the current contents of a file. Raises as `load_profile`."""
    if not is_path(path):
        raise DeviceError("profile-not-found", f"{brief(path)} is not a path", help="check the path")
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(MOST_CHARACTERS + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", "it is not text")
        raise DeviceError("profile-not-found", f"cannot read the profile {path}: {reason}", help="check the path") from None
    if len(text) > MOST_CHARACTERS:
        message = f"{path} has more than {MOST_CHARACTERS:,} characters"
        raise DeviceError("profile-syntax", message, help="pass the path of a profile")
    return parse_profile(text, str(path))


def profile_for(architecture: str, device: str = "") -> Profile:
    """The shipped profile for a device's architecture: for CUDA the newest that is not newer than it, for others the same architecture.
    If several match, the one whose description shares the most words with the device's name, else the last by name.

    Raises DeviceError `profile-not-found` if there is none.

    >>> profile_for("sm_86").name
    'ampere'
    """
    words = set(device.casefold().split())
    every = sorted(map(load_profile, shipped_profiles()), key=lambda p: len(words & set(p.description.casefold().split())))
    known = {p.architecture: p for p in every if p.architecture is not None}  # the last one of each architecture
    numbers = {int(name.strip("sm_af")): name for name in known if name.startswith("sm_")}
    if architecture in known:
        return known[architecture]
    if architecture.startswith("sm_"):
        older = [number for number in numbers if number <= int(architecture.strip("sm_af"))]
        if older:
            return known[numbers[max(older)]]
    described = ", ".join(sorted(known))
    message = f"no shipped profile describes {architecture}; there are {described}"
    raise DeviceError(
        "profile-not-found", message, help='use tl.target("...", profile="my.toml", device=...) with a profile of your own'
    )


def parse_profile(text: str, origin: str = "profile") -> Profile:
    """A profile from TOML text. `origin` names the file in errors. Raises as `load_profile`."""
    import tomllib  # late: slow to import, seldom needed

    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DeviceError("profile-syntax", f"{origin} is not TOML: {error}", help="correct the line that it names") from None
    except RecursionError:
        raise DeviceError(
            "profile-syntax", f"{origin} is nested too deeply", help="use lists and tables as in a shipped profile"
        ) from None
    if raw.get("schema") != SCHEMA:
        said = f"schema = {raw['schema']!r}" if "schema" in raw else "no `schema`"
        raise DeviceError(
            "profile-schema", f"{origin} has {said}; this version reads schema = {SCHEMA}", help=f"schema = {SCHEMA}"
        )
    del raw["schema"]
    sources: dict[str, str] = {}
    facts = unwrap(raw, "", sources)
    facts["levels"] = records(LevelFacts, facts.get("levels", ()), f"{origin}: [[levels]]")
    facts["memories"] = records(MemoryFacts, facts.get("memories", ()), f"{origin}: [[memories]]")
    facts["rates"] = _rates(facts.get("rates", {}), origin)
    facts["curves"] = _curves(facts.get("curves", ()), origin)
    if "sources" in facts:
        raise DeviceError("profile-key", f"{origin}: `sources`", help='write { value = ..., source = "..." } beside the number')
    profile: Profile = record(Profile, {**facts, "sources": tuple(sorted(sources.items()))}, origin)
    _validate(profile, origin)
    return profile


def _rates(raw: Any, origin: str) -> tuple[tuple[str, float], ...]:
    """The table of measured numbers, by name."""
    help = "write a table of numbers with the unit in each name; speeds and the resources of a core are above 0"
    if not isinstance(raw, Mapping):
        raise DeviceError("profile-value", f"{origin}: [rates] is {raw!r}", help=help)
    for name, value in raw.items():
        if not _is_measured(value, name):
            raise DeviceError("profile-value", f"{origin}: the rate `{name}` is {value!r}", help=help)
    return tuple(sorted((str(k), float(v)) for k, v in raw.items()))


_DIVISORS = ("_per_", "gflop", "ghz", "core_")  # parts of the names of numbers used as divisors: speeds, and properties of a core


def _is_measured(value: Any, name: str) -> bool:
    """Whether a value is plausible for its name: finite and non-negative, and positive if it is a divisor."""
    if type(value) not in (int, float) or not 0 <= value < 1e300:
        return False
    return value > 0 or not any(part in name for part in _DIVISORS)


def _curves(raw: Any, origin: str) -> tuple[Curve, ...]:
    """The list of measured curves, each with a unique name."""
    curves = records(Curve, raw, f"{origin}: [[curves]]")
    for curve in curves:
        pairs = all(
            isinstance(p, tuple) and len(p) == 2 and _is_measured(p[0], curve.x) and _is_measured(p[1], curve.y)
            for p in curve.points
        )
        xs = [p[0] for p in curve.points] if pairs else []
        if not xs or not 0 < xs[0] or any(a >= b for a, b in zip(xs, xs[1:], strict=False)):
            message = f"{origin}: the points of the curve `{curve.name}` are not pairs of x, above 0 and ascending, and y"
            raise DeviceError("profile-value", message, help="points = [[1024, 95.5], [2048, 90]]")
    if len({curve.name for curve in curves}) != len(curves):
        raise DeviceError("profile-value", f"{origin}: two curves have the same name", help="give them different names")
    return tuple(dataclasses.replace(c, points=tuple((float(x), float(y)) for x, y in c.points)) for c in curves)


def _validate(profile: Profile, origin: str) -> None:
    """Raises DeviceError `profile-value` if a profile contradicts itself."""

    def refuse(message: str, help: str) -> TileLangError:
        return DeviceError("profile-value", f"{origin}: {message}", help=help)

    names = profile.level_names
    for required in ("kernel", "block", "thread"):
        if required not in names:
            raise refuse(f"there is no level `{required}`", f'add [[levels]] name = "{required}"')
    known = [LEVEL_ORDER.index(n) for n in names if n in LEVEL_ORDER]
    if known != sorted(known) or len(set(names)) != len(names):
        raise refuse(
            f"the levels {', '.join(names)} are not in order",
            "write them from the widest to the narrowest, each once",
        )
    for required in ("register", "shared", "global"):
        if required not in profile.memory_names:
            raise refuse(f"there is no memory `{required}`", f'add [[memories]] name = "{required}"')
    for memory in profile.memories:
        if memory.owner not in names:
            raise refuse(
                f"the memory `{memory.name}` belongs to `{memory.owner}`, which is not one of its levels",
                near(memory.owner, names),
            )
        if not memory.bank_bytes:
            raise refuse(f"the banks of the memory `{memory.name}` are 0 bytes wide", "leave an unknown number out")
        if sorted(memory.wide_read_lanes) != list(range(len(memory.wide_read_lanes))):
            raise refuse(
                f"wide_read_lanes of the memory `{memory.name}` does not list each lane once", "list the numbers from 0 on"
            )
    if not profile.level("block").max_threads:
        raise refuse(
            "the level `block` has no `max_threads`", "add the largest number of threads that can synchronize at a barrier"
        )
    sizes = [f.threads for f in profile.levels if f.threads is not None]
    if 0 in sizes or any(a % b for a, b in zip(sizes, sizes[1:], strict=False)):
        raise refuse(
            f"level sizes {sizes} do not divide each other", "each level's `threads` is a multiple of the next narrower one's"
        )
    for text in profile.processors:
        *vendor, family, model = ["", "", *text.split()][-3:]
        if not any(vendor) or not (family.isdecimal() or family == "*") or not model.isdecimal():
            raise refuse(f"`{text}` does not name a processor", 'write vendor, family and model, as in "AuthenticAMD 25 17"')
    if len(profile.grid_max) != 3:
        raise refuse(f"grid_max is {list(profile.grid_max)}", "list the largest number of blocks along each of three dimensions")
    if list(profile.vector_bytes) != sorted(set(profile.vector_bytes)) or not profile.vector_bytes:
        raise refuse(f"vector_bytes is {list(profile.vector_bytes)}", "list the widths once each, ascending")
    for width in (profile.max_vector_lanes, *profile.vector_bytes):
        if width < 1 or width & (width - 1):
            raise refuse(f"{width} is not a valid vector width", "use powers of two for max_vector_lanes and vector_bytes")
