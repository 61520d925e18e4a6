"""Checks a schedule by simulating it at small sizes, for `tilelang check --simulate` and `Options(check="simulate")`.

Two instances are simulated: one with the remainders of the schedule's own extents, and one in which the last tile along every axis is
partial. If an instance is refused (matrix instructions refuse partial tiles) or takes too long, other extents are tried, then smaller
tiles with the same structure. Anything that could not be simulated is reported, never silently skipped.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from tilelang.computations.computation import Computation
from tilelang.errors import ComputationError, Refusal, Span
from tilelang.lowering import ir
from tilelang.lowering.pipeline import lower
from tilelang.lowering.simulator import simulate
from tilelang.lowering.simulator.batch import blocks_together
from tilelang.lowering.simulator.findings import Finding
from tilelang.lowering.simulator.simulate import Report
from tilelang.lowering.targets.c.emitter import error_bounds
from tilelang.options import Options
from tilelang.runtime.targets import DIALECTS, Target
from tilelang.schedules.check import axis_extents
from tilelang.schedules.resize import resize_schedule, small_extents, with_short_loops
from tilelang.schedules.schedule import Schedule
from tilelang.semantics import reference
from tilelang.semantics.special_values import special_arrays

MOST_STATEMENTS = 150_000  # statements per run if one thread runs at a time: about fifteen seconds
TOO_MUCH = "too-much-to-simulate"
THREADS_AS_DEAR = 4000  # additional threads in a batch that double the cost of a statement


class OutOfTime(Exception):
    """A simulation exceeded its time limit."""


@dataclasses.dataclass(frozen=True)
class Instance:
    """The result of simulating one size. extents: of the axes that differ from the schedule's own. faults: empty if all is right.

    shorter: purely repetitive loops ran fewer iterations than in the schedule, because the simulation would have taken too long.
    """

    extents: Mapping[str, int]
    faults: tuple[str, ...]
    shorter: bool = False

    def __str__(self) -> str:
        how = " with shorter loops" if self.shorter else ""
        return f"simulated{how} at {_words(self.extents)}: " + ("; ".join(self.faults) or "no faults found")


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The instances of a schedule that were simulated, and the reasons why others were not."""

    instances: tuple[Instance, ...]
    skipped: tuple[str, ...] = ()

    @property
    def faulty(self) -> Instance | None:
        """The first instance with a fault."""
        return next((i for i in self.instances if i.faults), None)

    def __str__(self) -> str:
        return "\n".join([*map(str, self.instances), *(f"not simulated: {why}" for why in self.skipped)])


def not_as_defined(name: str, found: Instance, span: Span | None = None) -> Refusal:
    """The error for a schedule whose simulation has a fault: lowered, it would not compute its definition."""
    message = f"the kernel of {name} does not compute what is defined, as its simulation at {_words(found.extents)} shows"
    help = "use another schedule, and report this one: the fault is in the compiler"
    return Refusal("simulated-wrong", message, span=span, counterexample=found.faults[0], help=help)


def check_simulated(schedule: Schedule, target: Target, seconds: float | None = None, seed: int = 0) -> Verdict:
    """Simulates a schedule at small sizes and compares with the reference.

    The simulator must find no fault, however late asynchronous copies complete, and the results must match the reference: on random
    data and special values (NaN, infinities, extremes of types) within the derived bound, and on small integers exactly if that
    applies. seconds: time limit for all of it, None for no limit.

    >>> import tilelang as tl
    >>> i = tl.axes(i=1000)
    >>> y = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)).tile(i=8).to(tl.block)
    >>> print(check_simulated(y, tl.target("cpu", profile="avx2")))
    simulated at i=16: no faults found
    simulated at i=9: no faults found
    """
    end = None if seconds is None else time.monotonic() + seconds
    search = _Search(schedule, target, end, seed)
    try:
        search.whole_and_partial()
    except OutOfTime:
        search.skipped.append(f"the {seconds:g} s that it may take are over")
    return Verdict(tuple(search.instances), tuple(dict.fromkeys(search.skipped)))


def refuse_faulty(schedule: Schedule, target: Target, seconds: float | None = None) -> None:
    """Refuses a schedule whose simulation at small sizes finds a fault; logs what could not be simulated."""
    verdict = check_simulated(schedule, target, seconds)
    for why in verdict.skipped:
        logging.getLogger("tilelang").warning("%s: not simulated: %s", schedule.computation.name, why)
    if verdict.faulty is not None:
        raise not_as_defined(schedule.computation.name, verdict.faulty)


def results(report: Report, computation: Computation) -> dict[str, Any]:
    """The outputs of a simulation in their tensors' form: a scalar is stored as one element, a condition as a byte."""
    return {t.name: report.outputs[t.name].reshape(t.shape).astype(t.dtype.numpy) for t in computation.outputs}


def with_wrong_values(report: Report, schedule: Schedule, target: Target, given: Mapping[str, Any]) -> Report:
    """Adds a finding to a simulation's report for each output that differs from the reference by more than the bound.

    Its outputs have the shapes and types of their tensors.
    """
    computation, ulps = schedule.computation, error_bounds(DIALECTS[target.dialect])
    report = dataclasses.replace(report, outputs=results(report, computation))
    (run,) = reference.compare(
        computation, given, report.outputs, error_ulps=schedule.error_ulps, ulps=ulps, loops=schedule.shared_loops
    ).runs
    if run.first is None:
        return report
    finding = Finding("wrong-value", run.first.tensor, run.first.index, (), (0, 0, 0), None, str(run.first))
    counts = {**report.counts, finding.kind: run.wrong}
    return dataclasses.replace(report, findings=(*report.findings, finding), counts=counts)


class _Search:
    """The instances of a schedule that have been simulated, and the reasons why others were not."""

    def __init__(self, schedule: Schedule, target: Target, end: float | None, seed: int) -> None:
        self.target, self.end, self.seed = target, end, seed
        self.schedules = [schedule]  # the original, and one with shorter loops
        with contextlib.suppress(Refusal):
            self.schedules.append(with_short_loops(schedule, target.profile))
        self.instances, self.skipped = list[Instance](), list[str]()

    def whole_and_partial(self) -> None:
        """Simulates the remainders of the schedule's own extents, then partial tiles at every end: for all axes in one instance, or
        else for one axis at a time, if the others must be whole."""
        self.skipped += self._one(ragged=False)[:1]
        reasons = self._one(ragged=True)
        if reasons:
            before = len(self.instances)
            more = self._each_axis()
            # A schedule that refuses partial tiles has none to simulate; one that takes too long would have some.
            self.skipped += [r for r in (*reasons, *more) if TOO_MUCH in r][:1] or reasons[: len(self.instances) == before]

    def _one(self, ragged: bool) -> list[str]:
        """Simulates the first possible instance; returns the reasons if there is none."""
        reasons = []
        for schedule in self.schedules:
            for uncut in (True, False):
                why = self._try(schedule, small_extents(schedule, self.target.profile, ragged, uncut))
                if why is None:
                    return []
                reasons.append(why)
        return reasons

    def _each_axis(self) -> list[str]:
        """Simulates an instance for each axis that can have partial tiles; returns the reasons for the others."""
        reasons, done = dict[str, str](), set[str]()
        for schedule in self.schedules:
            whole = small_extents(schedule, self.target.profile, ragged=False, uncut=False)
            own = axis_extents(schedule.computation)
            for axis, n in small_extents(schedule, self.target.profile, uncut=False).items():
                if axis not in done and n != whole.get(axis, own[axis]):
                    why = self._try(schedule, {**whole, axis: n})
                    if why is None:
                        done.add(axis)
                        reasons.pop(axis, None)
                    else:
                        reasons.setdefault(axis, why)
        return list(reasons.values())

    def _try(self, schedule: Schedule, extents: Mapping[str, int]) -> str | None:
        """Simulates an instance; returns the reason if that is impossible."""
        try:
            faults = _simulated(schedule, self.target, extents, self.end, self.seed)
        except (Refusal, ComputationError) as error:
            return f"at {_words(extents)}: {error.code}: {error.message}"
        found = Instance(extents, faults, schedule is not self.schedules[0])
        self.instances += [found] if found not in self.instances else []
        return None


def _words(extents: Mapping[str, int]) -> str:
    return " ".join(f"{axis}={n}" for axis, n in extents.items()) or "its own sizes"


def _simulated(schedule: Schedule, target: Target, extents: Mapping[str, int], end: float | None, seed: int) -> tuple[str, ...]:
    """The faults found in one instance. Raises Refusal or ComputationError if it cannot be simulated, and OutOfTime."""
    if end is not None and time.monotonic() > end:
        raise OutOfTime
    small = resize_schedule(schedule, extents, target.profile)
    program = _program(small, target)
    tick = _deadline(end)
    faults: list[str] = []

    numbers = simulate.device_numbers(target.profile)
    orders = list(simulate.orders(program))
    one_run = not reference.exact(small.computation)  # no second run on small integers

    def run(arrays: Mapping[str, Any], both: bool = one_run) -> Mapping[str, Any]:
        """Copies complete early in the first run and late in the second, on other data; or both ways in one run."""
        outputs: Mapping[str, Any] = {}
        for order in tuple(orders) if both else orders[:1]:
            report = simulate.run(program, arrays, order=order, tick=tick, costs=False, **numbers)
            faults.extend([f"copies that land {order}: {report}"] if report.counts else [])
            outputs = results(report, small.computation)
        orders.reverse()
        return outputs

    ulps = error_bounds(DIALECTS[target.dialect])
    found = reference.check(small.computation, run, seed, small.error_ulps, ulps, small.shared_loops).runs
    special = special_arrays(small.computation, seed)
    got = run(special, both=False)
    found += reference.compare(
        small.computation, special, got, data="special values", error_ulps=small.error_ulps, ulps=ulps, loops=small.shared_loops
    ).runs
    faults += [str(r) for r in found if r.wrong]
    return tuple(dict.fromkeys(faults))


def _program(small: Schedule, target: Target) -> ir.Program:
    """The target's program; if it turns a block's threads into loops that take too long to simulate, the program with threads."""
    here = dataclasses.replace(target.profile, dialects=(target.dialect,))
    for needs in dict.fromkeys((target.needs, ())):
        program = lower(small.computation, small.steps, here, Options(), needs)
        try:
            simulate.check_work(program, _most_statements(program), help="smaller tiles")
        except ComputationError as error:
            refused = error
        else:
            return program
    raise refused


def _most_statements(program: ir.Program) -> int:
    """The maximum number of statements to simulate: fewer if each runs for many threads."""
    threads = max(min(math.prod(k.grid), blocks_together(k)) * k.threads for k in program.kernels)
    return MOST_STATEMENTS * THREADS_AS_DEAR // (THREADS_AS_DEAR + threads)


def _deadline(end: float | None) -> Callable[[], None] | None:
    """Ends a simulation that exceeds its time limit."""
    if end is None:
        return None

    def tick() -> None:
        if time.monotonic() > end:
            raise OutOfTime

    return tick
