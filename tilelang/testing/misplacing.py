"""How many faults in who writes or reads what the second reading finds: mutants of random schedules, a fixed draw for each seed."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections import Counter

from tilelang.errors import TileLangError
from tilelang.testing.case import arrays, draw_case
from tilelang.testing.checking import lowered
from tilelang.testing.choice import Seeded
from tilelang.testing.mutants import KINDS, PLACES, Mutant, misplaced, mutants
from tilelang.testing.planner import tiny_profile
from tilelang.testing.roles import draw_roles, roles_profile
from tilelang.testing.tracing import Reading, reading, traced


@dataclasses.dataclass
class Table:
    """Mutants by kind and by what became of them. missed: what nobody noticed though the trace differs."""

    counts: Counter[tuple[str, str]] = dataclasses.field(default_factory=Counter)
    missed: list[str] = dataclasses.field(default_factory=list)

    def total(self, *verdicts: str) -> int:
        return sum(n for (_, verdict), n in self.counts.items() if verdict in verdicts)

    def __str__(self) -> str:
        lines = [f"{'kind':10} {'found':>7} {'simulator':>10} {'equivalent':>11} {'missed':>7}"]
        for kind in (*PLACES, *KINDS):
            found = [self.counts[kind, v] for v in ("found", "reported", "equivalent", "missed")]
            lines += [f"{kind:10} {found[0]:7} {found[1]:10} {found[2]:11} {found[3]:7}"] if any(found) else []
        return "\n".join([*lines, *(f"missed: {m}" for m in self.missed)])


def misplacements(count: int, seed: int) -> Table:
    """The verdicts on `count` mutants, each of another random schedule, the kinds in turn.

    found: the second reading finds it. reported: it does not, and the simulator reports an access that is wrong in any program.
    equivalent: the same threads find and leave the same values at the same elements. missed: anything else.
    """
    table, kinds = Table(), itertools.cycle((*PLACES, *KINDS))
    numbers = itertools.count(seed)
    while sum(table.counts.values()) < count:
        kind, generator = next(kinds), random.Random(sum(table.counts.values()) + seed)
        for number in itertools.islice(numbers, 200):
            source, profile = Seeded(number), roles_profile() if kind == "role" else tiny_profile()
            try:
                made = draw_case(source).schedule
                made = draw_roles(source, made) if kind == "role" else made
                program = lowered(made, profile)
            except TileLangError:
                continue
            every = [m for m in (misplaced if kind in PLACES else mutants)(program) if m.kind == kind]
            read = reading(made, profile, arrays(made.computation)) if every else None
            if read is not None:
                mutant = generator.choice(every)
                verdict = judged(read, program, mutant)
                table.counts[kind, verdict] += 1
                table.missed += [f"seed {number}: {mutant}"] if verdict == "missed" else []
                break
    return table


def judged(read: Reading, program: object, mutant: Mutant) -> str:
    """What becomes of a mutant of a program that agrees with its reading."""
    right, wrong = traced(program, read.given), traced(mutant.program, read.given)
    if read.faults(wrong):
        return "found"
    if wrong.reported:
        return "reported"
    return "equivalent" if wrong.same(right) else "missed"
