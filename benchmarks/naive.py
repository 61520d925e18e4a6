"""Compares who writes and reads each element, in random schedules and the examples, with a second reading of their steps.

    python benchmarks/naive.py --cases 300 --first 0 --mutants 200

Draws cases for the profiles `tiny`, `ampere` and `hopper` and cases with roles, takes every schedule of every example at small sizes
and the programs in benchmarks/replay/drawn/, simulates them and compares what the threads wrote and read with `tilelang.testing.naive`.
Prints how many agree, what was not read, and the schedules that disagree. --mutants: then plants as many faults, drawn by the seed
--first, in random schedules that agree, and prints how many of each kind change nothing, are found, and are missed. Exit status 1 where
something disagrees.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tilelang as tl
from benchmarks.replay import TEXTS, texts
from tests.test_examples import NAMES, SIZES, load
from tilelang import testing
from tilelang.errors import TileLangError
from tilelang.lowering.simulator import simulate
from tilelang.profiles.profile import Profile
from tilelang.schedules.schedule import Schedule
from tilelang.testing import tracing
from tilelang.testing.misplacing import misplacements

Item = tuple[str, Schedule, Profile]
MOST = 20_000  # statements that are simulated


def drawn(count: int, first: int) -> Iterator[Item]:
    """Random schedules, each for one of the profiles."""
    profiles = {"tiny": testing.tiny_profile(), "ampere": tl.load_profile("ampere"), "hopper": tl.load_profile("hopper")}
    for seed, (name, profile) in zip(range(first, first + count), itertools.cycle(profiles.items()), strict=False):
        try:
            yield f"seed {seed} for {name}", testing.draw_case(testing.Seeded(seed), profile=profile).schedule, profile
        except TileLangError:
            continue


def with_roles(count: int, first: int) -> Iterator[Item]:
    """Random schedules whose loads are on roles."""
    for seed in range(first, first + count):
        source = testing.Seeded(seed)
        try:
            made = testing.draw_roles(source, testing.draw_case(source).schedule)
        except TileLangError:
            continue
        if any(getattr(s, "on", None) for s in made.steps):
            yield f"seed {seed} with roles", made, testing.roles_profile()


def examples() -> Iterator[Item]:
    """Every schedule of every example, with tiny tiles, at whole sizes and at odd ones."""
    for name in NAMES:
        for sizes in SIZES[name][:2]:
            for label, schedule in load(name).schedules(*sizes, small=True).items():
                yield f"{name} {label} {sizes}", schedule, tl.load_profile("sapphire_rapids")


def kept() -> Iterator[Item]:
    """The programs in benchmarks/replay/drawn/."""
    for path in sorted((TEXTS / "drawn").glob("*.tile")):
        for title, text in texts(path).items():
            try:
                yield f"{path.stem} {title}", tl.parse(text, path.name).schedule(), tl.load_profile(path.stem)
            except TileLangError:
                continue


def compared(item: Item, counts: Counter[str], why: Counter[str]) -> None:
    """Counts whether a schedule agrees with its trace, and prints it if not."""
    label, schedule, profile = item
    try:
        program = testing.lowered(schedule, profile)
        simulate.check_work(program, MOST)
    except TileLangError as refused:
        counts[f"too large ({refused.code})" if refused.code == "too-much-to-simulate" else "refused"] += 1
        return
    before = Counter(tracing.tally)
    read = tracing.reading(schedule, profile, testing.arrays(schedule.computation))
    why.update({re.sub(r"\d+", "#", k)[:70]: n for k, n in (Counter(tracing.tally) - before).items() if k != "read"})
    if read is None:
        counts["not read"] += 1
        return
    faults = read.faults(tracing.traced(program, read.given))
    counts["disagreed" if faults else "agreed"] += 1
    if faults:
        print(f"{label}: {faults[0]}", schedule.computation.text, schedule, sep="\n")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--mutants", type=int, default=0)
    parser.add_argument("--no-examples", action="store_true")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop comparing after this time")
    options = parser.parse_args(arguments)
    counts, why, begin = Counter[str](), Counter[str](), time.monotonic()
    fixed = [] if options.no_examples else itertools.chain(examples(), kept())
    for item in itertools.chain(drawn(options.cases, options.first), with_roles(options.cases // 3, options.first), fixed):
        if time.monotonic() > begin + options.seconds:
            break
        compared(item, counts, why)
    print(*(f"{n:5} {what}" for what, n in [*counts.most_common(), *why.most_common()]), sep="\n")
    if options.mutants:
        print(misplacements(options.mutants, options.first))
    return int(counts["disagreed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
