"""The contents of the database of schedules: keys, entries, and schedules as text."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Self

from tilelang.computations.computation import Computation
from tilelang.core.lazy import cached_property
from tilelang.errors import TileLangError
from tilelang.profiles.profile import Profile
from tilelang.schedules.schedule import Schedule

MOST = 1e30  # the greatest number in an entry


@dataclasses.dataclass(frozen=True)
class Key:
    """What a time depends on: the computation's text, the given steps as text, the device, its profile, and the compilers."""

    computation: str
    given: str
    device: str
    profile: str
    compiler: str

    @cached_property
    def hash(self) -> str:
        """SHA-256 of all fields."""
        return _digest(dataclasses.astuple(self))

    @cached_property
    def family(self) -> str:
        """SHA-256 of all fields without extents: the same for all shapes of the computation."""
        return _digest((_shape(self.computation)[0], self.given, self.device, self.profile, self.compiler))

    @property
    def name(self) -> str:
        """The computation's name."""
        return self.computation.partition("{")[0].removeprefix("computation ").strip()

    @property
    def sizes(self) -> dict[str, int]:
        """The extents by the names of dimensions and axes; if several have the same name, the first."""
        lines = [line for line in self.computation.splitlines() if line.startswith(_WITH_EXTENTS)]
        found = [pair for line in lines for pair in _SIZE.findall(line)]
        return {name: int(extent) for name, extent in [*found, *reversed(found)]}  # in the text's order

    def distance(self, other: Key) -> float:
        """The distance to the extents of another shape: the sum of |log2| of their ratios."""
        pairs = zip(_shape(self.computation)[1], _shape(other.computation)[1], strict=True)
        return sum(abs(math.log2(max(1, a) / max(1, b))) for a, b in pairs)


@dataclasses.dataclass(frozen=True)
class Entry:
    """A schedule, measured or generated, as text.

    error_ratio: its error as a share of what the reference allows. bound_ratio: its time over the lower bound (None: there was
    none). trials: the number of candidates it was chosen from; 0: it was generated, and its time is the model's. date: in UTC, to
    the second.
    """

    key: Key
    schedule: str
    median_s: float
    iqr_s: float
    error_ratio: float
    bound_ratio: float | None
    trials: int
    date: str

    @property
    def constructed(self) -> bool:
        """Whether it was never timed."""
        return self.trials == 0

    def as_json(self) -> dict[str, Any]:
        """The entry as `export` writes it."""
        return {**dataclasses.asdict(self.key), **{name: getattr(self, name) for name in VALUE_FIELDS}}

    @classmethod
    def from_json(cls, found: Any) -> Self:
        """An entry from the result of `as_json`. Raises TileLangError if a field is missing or has the wrong type."""
        if not isinstance(found, Mapping):
            raise _no_entry("it is not an object")
        for name in (*KEY_FIELDS, "schedule", "date"):
            if not isinstance(found.get(name), str) or not _is_text(found[name]):
                raise _no_entry(f"`{name}` is not text")
        for name in ("median_s", "iqr_s", "error_ratio", "bound_ratio"):
            value = found.get(name)
            if value is None and name == "bound_ratio":
                continue
            if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value <= MOST:
                raise _no_entry(f"`{name}` is not a number")
        if type(found.get("trials")) is not int or not 0 <= found["trials"] < 2**31:
            raise _no_entry("`trials` is not a valid number of candidates")
        return cls(Key(**{name: found[name] for name in KEY_FIELDS}), **{name: found[name] for name in VALUE_FIELDS})


KEY_FIELDS = tuple(f.name for f in dataclasses.fields(Key))
VALUE_FIELDS = tuple(f.name for f in dataclasses.fields(Entry) if f.name != "key")


@dataclasses.dataclass(frozen=True)
class Recalled:
    """A schedule for a computation, read from an entry.

    distance: of the entry's extents from the computation's, 0 if they are equal. trials: the most candidates that were tried for
    the entry's extents.
    """

    schedule: Schedule
    entry: Entry
    distance: float
    trials: int


def now() -> str:
    """The date of a new entry."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _no_entry(why: str) -> TileLangError:
    return TileLangError(
        "database-entry", f"no entry of a database of schedules: {why}", help="use a file that `tilelang db export` wrote"
    )


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return True


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256(json.dumps(list(parts)).encode()).hexdigest()


_WITH_EXTENTS = ("  input ", "  axis ")  # lines of a computation's text with extents: of dimensions, of axes
_EXTENT = re.compile(r"(?<=: )\d{1,18}(?=[,\]]|$)")
_SIZE = re.compile(r"(\w+)`?: (\d{1,18})(?=[,\]]|$)")


@functools.lru_cache(maxsize=256)
def _shape(computation: str) -> tuple[str, tuple[int, ...]]:
    """The text of a computation without its extents, and these extents: of the inputs' dimensions, and of axes with lines of
    their own.

    Numbers in formulas stay, since another number makes another computation.

    >>> _shape("computation y {\\n  input A: float32[m: 4, k: 8]\\n  output y[m] = sum[k] A[m, k] * 2.0\\n}\\n")[1]
    (4, 8)
    """
    lines, extents = [], list[int]()
    for line in computation.splitlines():
        if line.startswith(_WITH_EXTENTS):
            extents += map(int, _EXTENT.findall(line))
            line = _EXTENT.sub("_", line)
        lines.append(line)
    return "\n".join(lines), tuple(extents)


@dataclasses.dataclass(frozen=True)
class StoredSchedule:
    """A schedule as the database keeps it: a text that is parsed when its steps are needed. A process that finds its kernel compiled
    does not need them.
    """

    computation: Computation
    text: str

    @cached_property
    def schedule(self) -> Schedule:
        """The schedule itself. Raises TileLangError if this version does not accept it."""
        return read_schedule(self.text, self.computation)


def read_schedule(text: str, computation: Computation, profile: Profile | None = None) -> Schedule:
    """A schedule for a computation from an entry's text. profile: check also that it can be lowered for it. Raises
    TileLangError if not."""
    from tilelang.grammar import parse  # late: only where a text is read

    document = parse(computation.text + text, "the database")
    if len(document.entries()) != 2:
        raise _no_entry("its schedule is not one schedule")
    made = Schedule(computation, document.schedule().steps)
    if profile is not None:
        made.check(profile)
    return made


def check_entry(entry: Entry) -> None:
    """Raises TileLangError if an entry's computation or schedule is invalid."""
    from tilelang.grammar import parse  # late: only where a text is read

    computation = parse(entry.key.computation, "the database").computation()
    if computation.text != entry.key.computation:
        raise _no_entry(f"the text of {computation.name} is not its canonical one")
    read_schedule(entry.schedule, computation)
