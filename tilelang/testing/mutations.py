"""The mutation run: which checks detect that a kernel lacks a barrier, guard, fill or wait that the compiler inserted.

A mutant that no check finds is either a gap in the checks or something that the compiler need not have inserted. Every kernel is
mutated twice: after `barriers` (`decided`), when everything occurs once, and as it is emitted, after `vectorize` has turned conditions
into counts and masks and `unroll` has made copies.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tilelang.computations.computation import Computation
from tilelang.lowering import ir
from tilelang.lowering.build.program import build_program
from tilelang.lowering.pipeline import passes
from tilelang.lowering.simulator import simulate
from tilelang.profiles.profile import Profile
from tilelang.schedules.schedule import Schedule
from tilelang.testing.case import arrays
from tilelang.testing.checking import Expected, lowered, stored
from tilelang.testing.mutants import KINDS, Mutant, mutants
from tilelang.testing.planner import tiny_profile

UNSEEN, DOUBLED, IDLE, MISSED = "unseen", "doubled", "idle", "missed"
WHY = {
    UNSEEN: "with garbage for all that it held back, the same bits come out in silence: it saves work, or fills what nobody reads",
    DOUBLED: "without another survivor too, it is noticed: one of both is enough",
    IDLE: "garbage would show, but the same bits come out in silence on all kinds of data: what it does more leaves all as it was",
    MISSED: "nothing noticed it, and nothing shows that it is not needed",
}
DATA = ("random", "low", "high", "lowest", "infinite", "special", "integers")
SEEN = ("random", "low", "high")  # data on which garbage shows


def decided(schedule: Schedule, profile: Profile | None = None) -> ir.Program:
    """The kernel IR of a schedule with barriers, guards, fills and waits, before vectors and unrolling. Raises Refusal."""
    chosen = profile or tiny_profile()
    program = build_program(schedule.computation, schedule.steps, chosen)
    for name, run in passes(chosen):
        program = program.replace(kernels=tuple(run(k) for k in program.kernels))
        if name == "barriers":
            break
    return program


STAGES = {"decided": decided, "emitted": lowered}


def data(computation: Computation, kind: str, seed: int) -> dict[str, Any]:
    """Inputs by name: those of `testing.arrays`; or random ones far below or above 0, so that a 0 would win a max or a min; or all at
    the lowest value, at which a max starts."""
    shift = {"low": -200, "high": 200, "lowest": -np.inf}.get(kind)
    if shift is None:
        return arrays(computation, kind, seed)
    found = arrays(computation, "random", seed)
    return {
        t.name: found[t.name] + found[t.name].dtype.type(shift) if t.dtype.is_float else found[t.name] for t in computation.inputs
    }


class Judge:
    """Detects mutants of one program, on inputs of all kinds of DATA."""

    def __init__(self, program: ir.Program, computation: Computation) -> None:
        self.program = program
        self.expected = {kind: Expected(computation, data(computation, kind, seed)) for seed, kind in enumerate(DATA)}
        self._known: dict[str, list[dict[str, bytes]]] = {}

    def found(self, program: ir.Program) -> str | None:
        """The first kind of finding, or "result"; None if nothing is detected."""
        return self._judged(program, DATA)[0]

    def _judged(self, program: ir.Program, kinds: Sequence[str]) -> tuple[str | None, bool]:
        """What detects a program on these kinds of data; and, if nothing does, whether its results are bitwise equal to the
        original's."""
        same = True
        for kind in kinds:
            expected = self.expected[kind]
            for (order, report), right in zip(_runs(program, expected.arrays), self._bits(kind), strict=False):
                if report.counts:
                    return next(iter(report.counts)), False
                if bits(report) != right:
                    same = False
                    if expected.faults(report.outputs, str(order)):
                        return "result", False
        return None, same

    def _bits(self, kind: str) -> list[dict[str, bytes]]:
        """The outputs of the original program by copy order, computed once and checked."""
        if kind not in self._known:
            expected = self.expected[kind]
            reports = [report for _, report in _runs(self.program, expected.arrays)]
            assert not any(report.counts or expected.faults(report.outputs, kind) for report in reports), (
                "faulty without a mutation"
            )
            self._known[kind] = [bits(report) for report in reports]
        return self._known[kind]

    def verdicts(self) -> Iterator[Verdict]:
        """Every mutant and its outcome."""
        left, survivors = list[tuple[Mutant, bool]](), list[Mutant]()
        for mutant in mutants(self.program):
            how, same = self._judged(mutant.program, DATA)
            if how is not None:
                yield Verdict(mutant, how)
                continue
            survivors.append(mutant)
            if same and mutant.garbage is not None and self._judged(mutant.garbage, SEEN) == (None, True):
                yield Verdict(mutant, UNSEEN)
            else:
                left.append((mutant, same))
        for mutant, same in left:
            yield Verdict(mutant, DOUBLED if self._doubled(mutant, survivors) else IDLE if same else MISSED)

    def _doubled(self, mutant: Mutant, survivors: list[Mutant]) -> bool:
        """Whether a mutant is detected after a second removal that was not detected by itself either."""
        texts, places = {m.text for m in survivors}, {m.place for m in survivors}
        both = (m for m in mutants(mutant.program) if m.text in texts or m.place[:-2] == mutant.place[:-2] and m.place in places)
        return any(self.found(second.program) is not None for second in both)


@dataclasses.dataclass(frozen=True)
class Verdict:
    """A mutant, and what detected it, or else one of WHY."""

    mutant: Mutant
    how: str

    @property
    def found(self) -> bool:
        return self.how not in WHY


def bits(report: simulate.Report) -> dict[str, bytes]:
    """The bits of the outputs."""
    return {name: array.tobytes() for name, array in report.outputs.items()}


def _runs(program: ir.Program, inputs: Mapping[str, Any]) -> Iterator[tuple[str, simulate.Report]]:
    """The simulations of a program in each order that can differ."""
    given = {b.name: stored(inputs[b.name], b) for b in program.buffers if b.role == "input"}
    for order in simulate.orders(program):
        yield order, simulate.run(program, given, order=order, costs=False)


@dataclasses.dataclass
class Tally:
    """The numbers of mutants of each kind, and of those detected; and the survivors."""

    total: Counter[str] = dataclasses.field(default_factory=Counter)
    noticed: Counter[str] = dataclasses.field(default_factory=Counter)
    survivors: list[Verdict] = dataclasses.field(default_factory=list)

    def add(self, verdicts: Sequence[Verdict]) -> None:
        """Counts verdicts."""
        for v in verdicts:
            self.total[v.mutant.kind] += 1
            if v.found:
                self.noticed[v.mutant.kind] += 1
            else:
                self.survivors.append(v)

    def run(self, program: ir.Program, computation: Computation) -> None:
        """Tries every mutant of a program."""
        self.add(list(Judge(program, computation).verdicts()))

    def of(self, how: str) -> list[Verdict]:
        """The survivors for one reason."""
        return [v for v in self.survivors if v.how == how]

    @property
    def missed(self) -> list[Verdict]:
        """The survivors that indicate a fault: of the checks, or redundant protection by the compiler."""
        return self.of(MISSED) + self.of(DOUBLED)

    @property
    def share(self) -> float:
        """The share of the mutants that were detected."""
        number = self.total.total()
        return self.noticed.total() / number if number else 1.0

    def __str__(self) -> str:
        rows = [f"{kind:8} {self.noticed[kind]:5} of {self.total[kind]:5} found" for kind in KINDS]
        rows += [f"{'all':8} {self.share:.1%}, " + ", ".join(f"{len(self.of(how))} {how}" for how in WHY)]
        return "\n".join(rows + [f"  {v.how}: {v.mutant}" for v in self.survivors])
