"""The large run of random cases: thousands of (computation, schedule, shape) on the device here, the simulator and the reference.

    python benchmarks/fuzz.py --examples 2100 --json benchmarks/results/fuzz.json

Cases are drawn by Hypothesis, lowered with verification after every pass, simulated, and compiled for the device many at a time. What
fails is made smaller and printed as a script. At the end stands a table of what was exercised, and the share that was accepted.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import os
import pickle
import re
import signal
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tilelang import testing
from tilelang.errors import Refusal
from tilelang.lowering import ir
from tilelang.testing.features import features
from tilelang.testing.shrinking import shrink

SECONDS = 120  # for one batch on the device
LEAST = 50  # of every verb, reduction, tail and memory
GROUPS = ("verb", "memory", "reduction", "tail", "form", "move", "index", "shape", "type")


@dataclasses.dataclass
class Failure:
    """A case that failed: where, and the first words of how."""

    stage: str
    text: str
    case: testing.Case

    @property
    def signature(self) -> tuple[str, str]:
        """What two failures of one cause share, as far as their texts tell."""
        kind = re.search(
            r"data-race|out-of-bounds|uninitialised-read|unwritten-output|divergent-\w+"
            r"|WRONG|refused|differ|died|fail: \w+",
            self.text,
        )
        return self.stage, kind.group(0) if kind else self.text.split("\n")[0][:60]


@dataclasses.dataclass
class Run:
    """What a run has seen so far."""

    device: bool = True
    prefixes: int = 0
    batch: int = 16
    drawn: int = 0
    accepted: int = 0
    refusals: Counter[str] = dataclasses.field(default_factory=Counter)
    counts: Counter[tuple[str, str]] = dataclasses.field(default_factory=Counter)
    failures: list[Failure] = dataclasses.field(default_factory=list)
    waiting: list[tuple[testing.Case, ir.Program, testing.Expected]] = dataclasses.field(default_factory=list)
    on_device: int = 0

    def add(self, number: int) -> None:
        """Draws the case of this number and checks it; the device's turn comes when the batch is full."""
        self.drawn += 1
        try:
            case = testing.draw_case(testing.Seeded(number))
        except Refusal as refused:
            self.refusals[refused.code] += 1
            return
        try:
            program = testing.lowered(case.schedule)
        except Refusal as refused:
            self.refusals[refused.code] += 1
            return
        except Exception as error:
            self.failures.append(Failure("lowering", _words(error), case))
            return
        self.accepted += 1
        self.counts.update(features(case.schedule))
        self.examine(case, program)

    def examine(self, case: testing.Case, program: ir.Program) -> None:
        expected = testing.Expected(case.computation, case.arrays(), case.exact)
        faults = testing.check_simulated(program, expected)
        self.note("simulator", faults, case)
        if self.drawn % 10 == 0:
            self.note("determinism", testing.check_determinism(case.schedule), case)
        if self.prefixes and self.accepted % self.prefixes == 0:
            self.note("prefix", testing.check_prefixes(case.schedule, case.arrays()), case)
        if self.device and not faults:
            self.waiting.append((case, testing.lowered_here(case.schedule), expected))
            if len(self.waiting) >= self.batch:
                self.flush()

    def flush(self) -> None:
        """Runs what waits on the device: together, or one by one where that fails."""
        waiting, self.waiting = self.waiting, []
        found = apart([(program, expected) for _, program, expected in waiting]) if waiting else []
        if isinstance(found, str):
            if len(waiting) == 1:
                self.failures.append(Failure("device", found, waiting[0][0]))
                return
            for one in waiting:
                self.waiting = [one]
                self.flush()
            return
        self.on_device += len(found)
        for (case, _, _), faults in zip(waiting, found, strict=True):
            self.note("device", faults, case)

    def note(self, stage: str, faults: list[str], case: testing.Case) -> None:
        if faults:
            self.failures.append(Failure(stage, "\n".join(faults), case))


def apart(items: list[tuple[ir.Program, testing.Expected]]) -> list[list[str]] | str:
    """`check_device` in a process of its own, which a driver may take with it: the faults, or what went wrong with all of it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        signal.alarm(SECONDS)
        try:
            found: object = testing.check_device(items)
        except Exception as error:
            found = _words(error)
        with os.fdopen(writer, "wb") as stream:
            pickle.dump(found, stream)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        answer = stream.read()
    _, status = os.waitpid(child, 0)
    if not answer:
        return f"the process died of signal {os.waitstatus_to_exitcode(status)}"
    result: list[list[str]] | str = pickle.loads(answer)
    return result


def _words(error: Exception) -> str:
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(where.filename).name}:{where.name}: {error}"


def draw(run: Run, examples: int, first: int) -> None:
    """Cases by Hypothesis: each a number, from which everything else follows, so that one case can be drawn again alone."""

    @seed(first)
    @settings(
        max_examples=examples, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(st.integers(0, 2**48))
    def collect(number: int) -> None:
        run.add(number)

    collect()


def again(failure: Failure, case: testing.Case) -> bool:
    """Whether a smaller case fails as the first one did."""
    run = Run(device=failure.stage == "device", prefixes=int(failure.stage == "prefix"), batch=1)
    run.drawn = 9 if failure.stage == "determinism" else 0
    try:
        program = testing.lowered(case.schedule)
        run.accepted, run.drawn = 1, run.drawn + 1
        run.examine(case, program)
    except Refusal:
        return False
    except Exception as error:
        run.failures.append(Failure("lowering", _words(error), case))
    return any(f.signature == failure.signature for f in run.failures)


def report(run: Run, seconds: float, most: int) -> bool:
    """Prints the table and the failures, a smaller one for each cause; True where all is well."""
    print(
        f"{run.drawn} cases drawn, {run.accepted} accepted ({run.accepted / max(1, run.drawn):.0%}), {run.on_device} run on the device"
    )
    print(f"{len(run.failures)} failures, {seconds:.0f} s")
    for group in GROUPS:
        rows = sorted((n, name) for (g, name), n in run.counts.items() if g == group)
        print(f"\n{group}")
        for n, name in reversed(rows):
            print(f"  {n:6} {name}" + ("  < " + str(LEAST) if n < LEAST else ""))
    print("\nrefused")
    for code, n in run.refusals.most_common():
        print(f"  {n:6} {code}")
    causes: dict[tuple[str, str], Failure] = {}
    for failure in run.failures:
        causes.setdefault(failure.signature, failure)
    for signature, failure in list(causes.items())[:most]:
        number = sum(f.signature == signature for f in run.failures)
        small = shrink(failure.case, functools.partial(again, failure), 200)
        print(f"\n# {number} x {' '.join(signature)}\n{small.script()}\n# {failure.text[:600]}")
    return not run.failures


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="another one gives other cases")
    parser.add_argument("--batch", type=int, default=16, help="programs that are compiled together")
    parser.add_argument("--no-device", action="store_true", help="the simulator alone")
    parser.add_argument("--prefixes", type=int, default=20, metavar="N", help="run every prefix of each Nth schedule; 0: of none")
    parser.add_argument("--shrink", type=int, default=12, metavar="N", help="how many kinds of failures to make smaller")
    parser.add_argument("--json", type=Path, help="write counts here")
    asked = parser.parse_args(arguments)
    run = Run(device=not asked.no_device, prefixes=asked.prefixes, batch=asked.batch)
    start = time.perf_counter()
    draw(run, asked.examples, asked.seed)
    run.flush()
    seconds = time.perf_counter() - start
    fine = report(run, seconds, asked.shrink)
    if asked.json:
        counts = {g: {name: n for (h, name), n in sorted(run.counts.items()) if h == g} for g in GROUPS}
        result = {
            "schema": 2, "seed": asked.seed, "prefixes_of_each": asked.prefixes, "drawn": run.drawn, "accepted": run.accepted,
            "on_device": run.on_device, "failures": len(run.failures), "seconds": round(seconds, 1), "counts": counts,
            "refusals": dict(run.refusals),
        }  # fmt: skip
        asked.json.parent.mkdir(parents=True, exist_ok=True)
        asked.json.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
