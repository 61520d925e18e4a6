"""Writes a profile as TOML, with the source of every number."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Any

from tilelang.profiles.files import SCHEMA
from tilelang.profiles.profile import Curve, Profile

_TABLES = ("levels", "memories", "rates", "curves", "sources")


def profile_text(profile: Profile, heading: str = "") -> str:
    """TOML that `parse_profile` reads as the same profile.

    >>> from tilelang.profiles.files import load_profile, parse_profile
    >>> parse_profile(profile_text(load_profile("hopper"))) == load_profile("hopper")
    True
    """
    sources = dict(profile.sources)
    lines = [f"# {line}" for line in heading.splitlines()] + [f"schema = {SCHEMA}"]
    lines += _fields(profile, "", sources, without=_TABLES)
    for table, facts in (("levels", profile.levels), ("memories", profile.memories)):
        for found in facts:
            lines += ["", f"[[{table}]]", *_fields(found, f"{table}.{found.name}.", sources)]
    if profile.rates:
        lines += ["", "[rates]", *(f"{name} = {_sourced(value, sources.get(f'rates.{name}'))}" for name, value in profile.rates)]
    for curve in profile.curves:
        lines += ["", "[[curves]]", *_curve(curve, sources.get(f"curves.{curve.name}.points"))]
    return "\n".join(lines) + "\n"


def _fields(facts: Any, path: str, sources: dict[str, str], without: tuple[str, ...] = ()) -> Iterator[str]:
    """The fields of a record that differ from their defaults or have a source, one per line."""
    for field in dataclasses.fields(facts):
        value = getattr(facts, field.name)
        if field.name not in without and (value != field.default or path + field.name in sources):
            yield f"{field.name} = {_sourced(value, sources.get(path + field.name))}"


def _curve(curve: Curve, source: str | None) -> Iterator[str]:
    yield from (f"{name} = {_value(getattr(curve, name))}" for name in ("name", "x", "y"))
    yield f"points = {_sourced(curve.points, source)}"


def _sourced(value: Any, source: str | None) -> str:
    return _value(value) if source is None else f"{{ value = {_value(value)}, source = {_value(source)} }}"


def _value(value: Any) -> str:
    """A value in TOML; JSON strings are valid TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value) if isinstance(value, str) else repr(int(value) if value == int(value) else value)
