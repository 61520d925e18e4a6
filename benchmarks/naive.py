"""Compares which threads write and read each element in random schedules and the examples with a second reading of their steps.

    python benchmarks/naive.py --cases 300 --first 0 --mutants 200

Draws cases for the profiles `tiny`, `ampere` and `hopper`, and takes every schedule of every example at small sizes, simulates them and
compares what the threads wrote and read with `tilelang.testing.naive`. Prints how many were read and agreed, why the others were not
read, and the schedules that disagree. --mutants: then breaks programs that agree, so that another unit writes or reads, and prints how
many of the faults that change the trace are found. Exit status 1 where something disagrees.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tilelang as tl
from tests.test_examples import NAMES, SIZES, load
from tilelang import testing
from tilelang.errors import TileLangError
from tilelang.expr import Const, Expr, Var, index, substitute
from tilelang.lowering import ir, simulate
from tilelang.machine import Profile
from tilelang.schedule import Schedule
from tilelang.testing import tracing
from tilelang.testing.checking import stored

Item = tuple[str, Schedule, Profile]


def drawn(count: int, first: int) -> Iterator[Item]:
    """Random schedules, each for one of the profiles."""
    profiles = {"tiny": testing.tiny_profile(), "ampere": tl.load_profile("ampere"), "hopper": tl.load_profile("hopper")}
    for seed, (name, profile) in zip(range(first, first + count), itertools.cycle(profiles.items()), strict=False):
        try:
            yield f"seed {seed} for {name}", testing.draw_case(testing.Seeded(seed), profile=profile).schedule, profile
        except TileLangError:
            continue


def examples() -> Iterator[Item]:
    """Every schedule of every example, with tiny tiles, at whole sizes and at odd ones."""
    for name in NAMES:
        for sizes in SIZES[name][:2]:
            for label, schedule in load(name).schedules(*sizes, small=True).items():
                yield f"{name} {label} {sizes}", schedule, tl.load_profile("sapphire_rapids")


def trace(program: ir.Program, schedule: Schedule) -> tracing.Trace:
    """What a program writes and reads."""
    given = testing.arrays(schedule.computation)
    found = tracing.Trace()
    simulate.run(program, {b.name: stored(given[b.name], b) for b in program.buffers if b.role == "input"}, watch=found)
    return found


def mutants(program: ir.Program) -> Iterator[ir.Program]:
    """Each kernel with its blocks, its threads, or the rounds of a loop numbered another way."""
    for k, kernel in enumerate(program.kernels):
        for v in sorted({e for e in kernel.body.walk() if isinstance(e, Var) and e.upper}, key=str):
            assert v.upper is not None
            others: tuple[Expr, ...] = (index(v.upper) - v, (v + 1) % (v.upper + 1), Const(0, v.dtype))
            for other in others:
                changed = kernel.replace(body=_put(kernel.body, v, other))
                yield program.replace(kernels=(*program.kernels[:k], changed, *program.kernels[k + 1 :]))


def _put(stmt: ir.Stmt, var: Var, other: Expr) -> ir.Stmt:
    """A statement with another number in place of a variable's; what counts the rounds of a loop stays."""
    changed: ir.Stmt = stmt.map_children(
        lambda c: _put(c, var, other) if isinstance(c, ir.Stmt) else c if c is var and isinstance(stmt, (ir.For, ir.Let))
        else substitute(c, {var: other}) if isinstance(c, Expr) else c
    )  # fmt: skip
    return changed


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--mutants", type=int, default=0)
    parser.add_argument("--no-examples", action="store_true")
    options = parser.parse_args(arguments)
    counts, why, faulty = Counter[str](), Counter[str](), Counter[str]()
    for label, schedule, profile in itertools.chain(
        drawn(options.cases, options.first), [] if options.no_examples else examples()
    ):
        try:
            program = testing.lowered(schedule, profile)
            simulate.check_work(program, 20_000)
        except TileLangError as refused:
            counts[f"refused, or too large ({refused.code})" if refused.code == "too-much-to-simulate" else "refused"] += 1
            continue
        before = Counter(tracing.tally)
        read = tracing.reading(schedule, profile, testing.arrays(schedule.computation))
        if read is not None:
            own = trace(program, schedule)
            faults = read.faults(own)
            counts["disagreed" if faults else "agreed"] += 1
            if faults:
                print(f"{label}: {faults[0]}", schedule.computation.text, schedule, sep="\n")
            elif faulty["tried"] < options.mutants:
                for wrong in itertools.islice(mutants(program), 12):
                    now = trace(wrong, schedule)
                    if not now.same(own):
                        faulty.update(tried=1, found=bool(read.faults(now)))
        why.update({re.sub(r"\d+", "#", k)[:70]: n for k, n in (Counter(tracing.tally) - before).items()})
    print(*(f"{n:5} {what}" for what, n in [*counts.most_common(), *why.most_common()]), sep="\n")
    if faulty:
        print(f"{faulty['found']} of {faulty['tried']} faults that change who writes or reads an element are found")
    return int(counts["disagreed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
