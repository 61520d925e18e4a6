"""Counts the faults that the naive interpretation finds, in mutants of random schedules that write or read wrong elements."""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
from collections import Counter

from tilelang.errors import TileLangError
from tilelang.lowering import ir
from tilelang.testing.case import arrays, draw_case
from tilelang.testing.checking import Expected, lowered
from tilelang.testing.choice import Seeded
from tilelang.testing.mutants import KINDS, PLACES, Mutant, misplaced, mutants
from tilelang.testing.planner import tiny_profile
from tilelang.testing.roles import draw_roles, roles_profile
from tilelang.testing.tracing import Reading, reading, traced

MOST_STATEMENTS = 60
VERDICTS = ("found", "reported", "equivalent", "workspace", "missed")


@dataclasses.dataclass
class Table:
    """The numbers of mutants by kind and outcome. missed: undetected although the trace differs."""

    counts: Counter[tuple[str, str]] = dataclasses.field(default_factory=Counter)
    missed: list[str] = dataclasses.field(default_factory=list)

    def total(self, *verdicts: str) -> int:
        return sum(n for (_, verdict), n in self.counts.items() if verdict in verdicts)

    def __str__(self) -> str:
        lines = ["kind      " + "".join(f"{v:>12}" for v in VERDICTS)]
        for kind in (*PLACES, *KINDS, "all"):
            found = [self.total(v) if kind == "all" else self.counts[kind, v] for v in VERDICTS]
            lines += [f"{kind:10}" + "".join(f"{n:12}" for n in found)] if any(found) else []
        return "\n".join([*lines, *(f"missed: {m}" for m in self.missed)])


def misplacements(count: int, seed: int) -> Table:
    """The verdicts on `count` mutants of different random schedules, always of the kind with the fewest so far.

    found: the naive interpretation detects it. reported: it does not, but the simulator does, or the results are wrong. equivalent: the
    same threads read and write the same values at the same elements. workspace: the same, except at elements that the compiler adds to
    combine partial results, and the results are right. missed: anything else.
    """
    table, drawn = Table(), Counter[str]()
    for number in itertools.count(seed):
        if drawn.total() == count:
            return table
        source, roles = Seeded(number), number % 3 == 0
        profile = roles_profile() if roles else tiny_profile()
        try:
            made = draw_case(source).schedule
            made = draw_roles(source, made) if roles else made
            program = lowered(made, profile)
        except TileLangError:
            continue
        if sum(1 for k in program.kernels for _ in ir.statements(k.body)) > MOST_STATEMENTS:
            continue
        if not all(math.prod(t.shape) for t in made.computation.outputs):
            continue  # the steps do not describe the accesses of such a kernel
        every = [*misplaced(program), *mutants(program)]
        read = reading(made, profile, arrays(made.computation)) if every else None
        if read is None:
            continue
        kind = min((k for k in (*PLACES, *KINDS) if any(m.kind == k for m in every)), key=drawn.__getitem__)
        mutant = random.Random(number).choice([m for m in every if m.kind == kind])
        verdict = outcome_of(read, program, mutant)
        drawn[kind] += 1
        table.counts[kind, verdict] += 1
        table.missed += [f"seed {number}: {mutant}"] if verdict == "missed" else []
    raise AssertionError("there are always more numbers")


def outcome_of(read: Reading, program: ir.Program, mutant: Mutant) -> str:
    """The outcome of a mutant of a program that agrees with its reading."""
    right, wrong = traced(program, read.given), traced(mutant.program, read.given)
    if read.faults(wrong):
        return "found"
    if wrong.reported or Expected(read.computation, read.given).faults(wrong.outputs, "mutant"):
        return "reported"
    places = {t.name for t in read.values}
    return "equivalent" if wrong.same(right) else "workspace" if wrong.same(right, places) else "missed"
