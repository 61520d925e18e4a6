"""A profile that `tilelang profile` measured, as one that is shipped: each number says which machine it is of.

    tilelang profile -o measured.toml
    python benchmarks/ship_profile.py measured.toml zen4 "AMD EPYC (Zen 4)" znver4 "2 cores of an AMD EPYC 9004 under KVM" > zen4.toml

What was measured or queried is of that machine. What the file has from the profile that was shipped before is of another one: documents
on the instruction set hold, and rates, which were fitted or looked up for the other processor, are assumed. Where that profile has the
same name (`--before zen4`), the processor was measured again, and what was not measured stays as it was.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from tilelang.autoschedule.profile.text import profile_text
from tilelang.lowering.drivers.processor import processor
from tilelang.profiles.files import parse_profile, read_profile
from tilelang.profiles.profile import QUERIED, SHIPPED, Profile

HEADING = """{description}: measured by `tilelang profile` on {machine}.
The limits and caches that the system reports replace these when the device is opened."""


def shipped(measured: Profile, name: str, description: str, architecture: str, model: str, machine: str, before: str) -> Profile:
    """The profile under a name of its own. model: vendor, family and model, as in `Profile.processors`; before: the name of the profile
    that its other numbers come from."""

    def source(path: str, how: str) -> str:
        if how.startswith(QUERIED):
            return f"queried: reported by the system on {machine}"
        if how.startswith("measured"):
            return f"{how}; {machine}"
        own = how.removeprefix(SHIPPED)
        if before == name or not path.startswith(("rates.", "curves.")) or own.startswith("assumed"):
            return own
        return f"assumed: as for another CPU, {before}.toml: {own}"

    sources = {path: source(path, how) for path, how in measured.sources}
    sources |= {"processors": f"queried: the numbers of {machine}", "architecture": "derived: LLVM's name of it"}
    return dataclasses.replace(
        measured, name=name, description=description, architecture=architecture, processors=(model,), unmeasured=(),
        capabilities=(),  # each processor says its own
        sources=tuple(sorted(sources.items())),
    )  # fmt: skip


def text_of(profile: Profile, machine: str) -> str:
    """Its file, which reads as the same profile."""
    text = profile_text(profile, HEADING.format(description=profile.description, machine=machine))
    assert parse_profile(text) == profile
    return text


def main() -> None:
    """Prints the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("measured", "name", "description", "architecture", "machine"):
        parser.add_argument(name)
    parser.add_argument("--before", default="sapphire_rapids", help="the shipped profile that the other numbers come from")
    given = parser.parse_args()
    here = processor()
    made = shipped(
        read_profile(Path(given.measured)), given.name, given.description, given.architecture,
        here.numbers, given.machine, given.before,
    )  # fmt: skip
    print(text_of(made, given.machine), end="")


if __name__ == "__main__":
    main()
