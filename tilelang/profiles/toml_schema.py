"""Parses tables of a TOML file into frozen dataclasses. Keys, types and sources are checked; errors name the location and the fix."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from tilelang.errors import DeviceError


def near(name: str, known: Iterable[str]) -> str:
    """The help for an unknown name: the one it is probably a typo of, else all known ones.

    >>> near("regster", ("register", "shared"))
    'did you mean `register`?'
    """
    import difflib  # late: only for the text of an error

    known = list(known)
    found = difflib.get_close_matches(name, known, 1, cutoff=0.65)  # `nope` is not a typo of `hopper`
    return f"did you mean `{found[0]}`?" if found else "use one of " + ", ".join(f"`{k}`" for k in known)


def unwrap(raw: Any, path: str, sources: dict[str, str]) -> Any:
    """The value with every `{ value = x, source = s }` replaced by x, and lists by tuples; records the sources by path."""
    if isinstance(raw, Mapping):
        if set(raw) == {"value", "source"}:
            sources[path] = str(raw["source"])
            return unwrap(raw["value"], path, sources)
        return {key: unwrap(value, f"{path}.{key}" if path else key, sources) for key, value in raw.items()}
    if isinstance(raw, list):
        return tuple(
            unwrap(item, f"{path}.{item['name']}" if isinstance(item, Mapping) and "name" in item else path, sources)
            for item in raw
        )
    return raw


_KINDS: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "int | None": (int,), "str | None": (str,), "bool": (bool,)}
_ITEMS: dict[str, type] = {"tuple[str, ...]": str, "tuple[int, ...]": int, "tuple[int, int, int]": int}


def records(cls: Any, raw: Any, where: str) -> tuple[Any, ...]:
    """Applies `record` to each table of a list."""
    if not isinstance(raw, tuple):
        raise DeviceError(
            "profile-value", f"{where} must be tables, got {raw!r}", help="write each as [[...]] with named numbers"
        )
    return tuple(record(cls, f, where) for f in raw)


def record(cls: Any, raw: Any, where: str) -> Any:
    """`cls(**raw)`, after checking the keys and the types of values."""
    if not isinstance(raw, Mapping):
        raise DeviceError("profile-value", f"{where} must be a table, got {raw!r}", help="write it as [[...]] with named numbers")
    fields = {f.name: f for f in dataclasses.fields(cls)}
    for key, value in raw.items():
        if key not in fields:
            raise DeviceError(
                "profile-key", f"{where}: unknown key `{key}`", help=near(key, (f for f in fields if f != "sources"))
            )
        kinds, item = _KINDS.get(str(fields[key].type), (tuple,)), _ITEMS.get(str(fields[key].type))
        wrong = item is not None and isinstance(value, tuple) and any(type(v) is not item for v in value)
        if wrong or not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise DeviceError(
                "profile-value",
                f"{where}: `{key}` is {value!r}, expected {fields[key].type}",
                help='write a plain value, or { value = ..., source = "..." }',
            )
        numbers = value if isinstance(value, tuple) else (value,)
        if any(isinstance(v, int) and not 0 <= v < 1 << 62 for v in numbers):
            raise DeviceError("profile-value", f"{where}: `{key}` is {value}", help="remove a number that is unknown")
    missing = [
        n
        for n, f in fields.items()
        if n not in raw and f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise DeviceError("profile-key", f"{where}: `{missing[0]}` is missing", help=f"add {missing[0]} = ...")
    return cls(**raw)
