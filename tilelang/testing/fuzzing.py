"""Fuzzes the schedules of a file, and random ones, at random sizes and on random data, until a fault is found or time is up.

A failing case is shrunk: fewer steps, smaller sizes, plainer data, as long as it fails in the same way. Each case runs as the text that
is printed, in a separate process, so a kernel that crashes the process is a fault like any other.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pickle
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from tilelang.computations.combiners import SHIPPED
from tilelang.computations.computation import Computation, computation
from tilelang.errors import DeviceError, Refusal, TileLangError
from tilelang.options import Options
from tilelang.runtime import schedule_selection
from tilelang.runtime.targets import Target
from tilelang.schedules.schedule import Schedule
from tilelang.schedules.steps import Split, Step, Tile, Vectorize, has_holes
from tilelang.testing import processes
from tilelang.testing.accepted import draw_steps
from tilelang.testing.choice import Seeded, Source
from tilelang.testing.extents import MOST_POINTS, draw_sizes, points, resized
from tilelang.testing.fuzz_worker import CRASHED, DIED, HUNG, REFUSED, RIGHT, RUNNING, SET_ASIDE, Outcome, Trial
from tilelang.testing.shrinking import fewer_steps, smallest

DATA = ("random", "integers", "special", "infinite", "denormal", "extreme", "zero")
PLAIN = ("random", "integers")
FINITE = ("random", "integers", "denormal", "zero")
CASE_SECONDS = 20.0  # of one trial, after which its process is ended
SHRINK_SECONDS = 60.0
START_SECONDS = 120.0  # time limit for starting the process in which trials run
MOST_OWN_POINTS = 200_000  # of a definition, up to which a file is tried at its own extents
MOST_SIMULATED_POINTS = 4000  # of a definition, if only the simulator can run it
R = TypeVar("R")


@dataclasses.dataclass(frozen=True)
class Case:
    """A schedule at some sizes, and the contents of the inputs."""

    schedule: Schedule
    data: str
    seed: int

    @property
    def text(self) -> str:
        """The computation and the schedule as a file."""
        return f"{self.schedule.computation.text}\n{self.schedule.text}\n"

    @property
    def trial(self) -> Trial:
        return Trial(self.text, self.data, self.seed)


@dataclasses.dataclass(frozen=True)
class Subject:
    """A schedule, whole or with holes, or a computation without one. draw: returns it for other values of its parameters."""

    name: str
    own: Schedule | Computation
    draw: Callable[[Source], Schedule | Computation] | None = None


@dataclasses.dataclass
class Found:
    """The result of fuzzing: the numbers of cases, correct ones, and those refused or skipped, by code; and the fault, if there is
    one."""

    cases: int = 0
    right: int = 0
    refused: Counter[str] = dataclasses.field(default_factory=Counter)
    set_aside: Counter[str] = dataclasses.field(default_factory=Counter)
    seconds: float = 0.0
    case: Case | None = None
    outcome: Outcome | None = None
    interrupted: bool = False
    shrunk: bool = True

    def count(self, outcome: Outcome) -> None:
        """Counts a case."""
        self.cases += 1
        if outcome.kind == RIGHT:
            self.right += 1
        elif outcome.kind == REFUSED:
            self.refused[outcome.code] += 1
        elif outcome.kind == SET_ASIDE:
            self.set_aside[outcome.code] += 1


def fuzz(
    subjects: Sequence[Subject],
    target: Target,
    seconds: float,
    seed: int = 0,
    kinds: Sequence[str] = DATA,
    tell: Callable[[str], None] = lambda _: None,
    shrink_seconds: float = SHRINK_SECONDS,
) -> Found:
    """Tries cases of the subjects in turn until one is faulty, which is then shrunk, or time is up.

    seed: of all random choices. The first cases are the unchanged subjects, with each kind of data drawn by this seed. kinds: of data,
    see `testing.arrays`. tell: called with messages about the progress. An interrupt (Ctrl-C) ends the run like the time limit.
    """
    found, begun = Found(), time.monotonic()
    trials = Trials(target)
    try:
        for case in cases(subjects, target, seed, kinds):
            outcome = trials.outcome(case) if isinstance(case, Case) else case
            found.count(outcome)
            tell(f"{found.cases} cases, {found.right} right, {found.refused.total()} refused")
            if isinstance(case, Case) and outcome.is_fault:
                found.case, found.outcome = case, outcome
                tell("a fault: making it small")
                _shrink(found, trials, shrink_seconds, tell)
            if found.case is not None or time.monotonic() - begun > seconds:
                break
    except KeyboardInterrupt:
        found.interrupted, found.shrunk = True, found.case is None
    finally:
        trials.end()
        found.seconds = time.monotonic() - begun
    return found


# ---------------------------------------------------------------- cases


def cases(subjects: Sequence[Subject], target: Target, seed: int, kinds: Sequence[str]) -> Iterator[Case | Outcome]:
    """The unchanged subjects with each kind of data; then an endless sequence of random cases. A refusal is an outcome."""
    for subject in subjects:
        plan = _made(lambda subject=subject: _whole(subject.own, target))  # type: ignore[misc]
        if isinstance(plan, Outcome):
            yield plan
        elif points(plan.computation) <= MOST_OWN_POINTS:
            yield from (Case(plan, kind, seed) for kind in _fitting(kinds, plan.computation))
    number = 0
    while subjects:
        for subject in subjects:
            number += 1
            source = Seeded(seed * 1_000_003 + number)
            yield _made(lambda source=source, subject=subject: _drawn(source, subject, target, kinds))  # type: ignore[misc]


def _made(make: Callable[[], R]) -> R | Outcome:
    try:
        return make()
    except TileLangError as error:
        return Outcome(REFUSED if isinstance(error, Refusal) else SET_ASIDE, error.code)


def _drawn(source: Source, subject: Subject, target: Target, kinds: Sequence[str]) -> Case:
    """A random case: other sizes, by parameters or axes; the given schedule, a generated one, or one with random steps."""
    start = subject.draw(source) if subject.draw is not None and source.chance(50) else subject.own
    if start is subject.own or source.chance(50) or _points(start) > MOST_OWN_POINTS:
        start = resized(
            start, draw_sizes(source, start, points=MOST_POINTS if target.device is not None else MOST_SIMULATED_POINTS)
        )
    computed = start.computation if isinstance(start, Schedule) else start
    if source.chance(50):
        plan = draw_steps(source, computed, target)
    else:
        plan = _whole(computed if source.chance(20) else start, target)
    return Case(plan, source.pick(_fitting(kinds, computed)), source.integer(0, 999))


def _points(what: Schedule | Computation) -> int:
    return points(what.computation if isinstance(what, Schedule) else what)


def _whole(what: Schedule | Computation, target: Target) -> Schedule:
    """A schedule with its holes filled; for a computation, the generated schedule. Raises Refusal if there is none."""
    if isinstance(what, Schedule) and not has_holes(what.steps):
        return what
    here = dataclasses.replace(target.profile, dialects=(target.dialect,))
    plans = schedule_selection.constructed(what, here, Options())
    return schedule_selection.accepted(plans, here, Options(), target.needs)[0]


def _fitting(kinds: Sequence[str], whole: Computation) -> list[str]:
    """The kinds of data that are valid: user-defined combiners need only be valid on finite accumulators."""
    own = any(d.reduction is not None and d.reduction.combiner.name not in SHIPPED for d in whole.definitions)
    return [k for k in kinds if k in FINITE or not own] or list(kinds)


# ---------------------------------------------------------------- making a fault small


def _shrink(found: Found, trials: Trials, seconds: float, tell: Callable[[str], None]) -> None:
    """Replaces the case by the smallest one found in the given time that fails in the same way."""
    assert found.case is not None and found.outcome is not None
    end, sort = time.monotonic() + seconds, found.outcome.sort
    seen = {found.case.trial}

    def unseen(case: Case) -> Iterator[Case]:
        return (smaller for smaller in simpler(case) if smaller.trial not in seen)

    def in_time() -> bool:
        found.shrunk = time.monotonic() <= end
        return found.shrunk

    def fails(case: Case) -> bool:
        seen.add(case.trial)
        outcome = trials.outcome(case)
        tell(f"a fault: making it small, {len(seen) - 1} attempts, {len(case.schedule.steps)} steps")
        if outcome.sort == sort:
            found.case, found.outcome = case, outcome  # recorded immediately, because an interrupt may end the search
        return outcome.sort == sort

    smallest(found.case, unseen, fails, in_time)


def simpler(case: Case) -> Iterator[Case]:
    """All cases that are one change simpler: plainer data, fewer outputs, fewer steps, smaller sizes, smaller pieces."""
    plainer = ("integers", "random") if case.data not in PLAIN else ("integers",) if case.data == "random" else ()
    for kind in plainer:
        yield dataclasses.replace(case, data=kind, seed=0)
    if case.seed:
        yield dataclasses.replace(case, seed=0)
    for plan in _simpler_schedules(case.schedule):
        yield dataclasses.replace(case, schedule=plan)


def _simpler_schedules(plan: Schedule) -> Iterator[Schedule]:
    whole = plan.computation
    if len(whole.outputs) > 1:
        for t in whole.outputs:
            yield from _built(lambda t=t: Schedule(computation(whole.name, (t,)), plan.steps))  # type: ignore[misc]
    for steps in fewer_steps(plan.steps):
        yield from _built(lambda steps=steps: Schedule(whole, steps))  # type: ignore[misc]
    for axis in dict.fromkeys(a.name for d in whole.definitions for a in _axes_of(d)):
        n = next(a.extent for d in whole.definitions for a in _axes_of(d) if a.name == axis)
        for smaller in _smaller(n):
            yield from _built(lambda axis=axis, smaller=smaller: resized(plan, {axis: smaller}))  # type: ignore[misc]
    for k, step in enumerate(plan.steps):
        for other in _smaller_pieces(step):
            yield from _built(lambda k=k, other=other: Schedule(whole, (*plan.steps[:k], other, *plan.steps[k + 1 :])))  # type: ignore[misc]


def _axes_of(definition: Any) -> Iterator[Any]:
    yield from definition.axes
    if definition.reduction is not None:
        yield from definition.reduction.axes


def _smaller(n: int) -> list[int]:
    return [m for m in dict.fromkeys((1, 2, 3, n // 2, n - 1)) if 0 < m < n]


def _smaller_pieces(step: Step) -> Iterator[Step]:
    if isinstance(step, (Tile, Split)):
        for i, (axis, n) in enumerate(step.sizes):
            for m in _smaller(n) if isinstance(n, int) else ():
                yield step.replace(sizes=(*step.sizes[:i], (axis, m), *step.sizes[i + 1 :]))
    elif isinstance(step, Vectorize) and isinstance(step.lanes, int) and step.lanes > 2:
        yield step.replace(lanes=step.lanes // 2)


def _built(make: Callable[[], Schedule]) -> Iterator[Schedule]:
    """The schedule, if it can be written; else None."""
    with contextlib.suppress(TileLangError, KeyError, IndexError):
        yield make()


# ---------------------------------------------------------------- the process in which they run


class Trials:
    """Runs cases in a separate process, restarted after a crash. Raises DeviceError if it cannot start."""

    def __init__(self, target: Target, seconds: float = CASE_SECONDS) -> None:
        self.target, self.seconds = target, seconds
        self._child: subprocess.Popen[bytes] | None = None
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._said: Any = None

    def outcome(self, case: Case) -> Outcome:
        """The outcome of a case."""
        if self._child is None:
            self._start()
        stage = ""
        if self._send(case.trial):
            while True:
                line = self._next(self.seconds)
                if line is None:
                    self.end()
                    took = f"it did not end within {self.seconds:g} s"
                    return (
                        Outcome(HUNG, said=(f"running the kernel: {took}",))
                        if stage == RUNNING
                        else Outcome(SET_ASIDE, "took-too-long")
                    )
                if not line.endswith(b"\n"):
                    break
                answer = json.loads(line)
                if isinstance(answer, dict):
                    return Outcome(answer["kind"], answer["code"], tuple(answer["said"]))
                stage = answer
        return self._death(stage)

    def _start(self) -> None:
        start = f"import sys; sys.path[:] = {sys.path!r}; from tilelang.testing.fuzz_worker import main; main()"
        self._said = tempfile.TemporaryFile()
        self._lines = queue.Queue()
        self._child = subprocess.Popen(
            [sys.executable, "-c", start], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said,
            start_new_session=True,  # Ctrl-C is the parent's to act upon
        )  # fmt: skip
        threading.Thread(target=_read, args=(self._child.stdout, self._lines), daemon=True).start()
        if not self._send(self.target) or not (self._next(START_SECONDS) or b"").endswith(b"\n"):
            why = self._last_words()
            self.end()
            raise DeviceError("no-fuzzing", f"the process that tries cases does not start{why}", help="report it")

    def _send(self, what: Any) -> bool:
        assert self._child is not None and self._child.stdin is not None
        try:
            pickle.dump(what, self._child.stdin)
            self._child.stdin.flush()
        except OSError:
            return False
        return True

    def _next(self, seconds: float) -> bytes | None:
        """The next line; without a line end if the process has ended; None after the time limit."""
        try:
            return self._lines.get(timeout=seconds)
        except queue.Empty:
            return None

    def _death(self, stage: str) -> Outcome:
        """The outcome of a case that ended its process."""
        assert self._child is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(5)
        code, words = self._child.poll(), self._last_words()
        self.end()
        what = "running the kernel" if stage == RUNNING else "compiling or simulating it"
        how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        return Outcome(DIED if stage == RUNNING else CRASHED, how, (f"{what} ended the process with {how}{words}",))

    def _last_words(self) -> str:
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        return f": {lines[-1]}" if lines else ""

    def end(self) -> None:
        """Ends the process, if there is one."""
        child, self._child = self._child, None
        if child is not None:
            processes.kill(child)
            for pipe in (child.stdin, child.stdout):
                with contextlib.suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]
            self._said.close()


def _read(lines: Any, into: queue.Queue[bytes]) -> None:
    """Passes lines on; an empty one at the end."""
    with contextlib.suppress(ValueError, OSError):
        for line in lines:
            into.put(line)
    into.put(b"")
