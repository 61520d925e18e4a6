"""Selects the schedule of a kernel: the given one with its holes filled; else an autotuned one; else a generated one, which is cached.

The generator, the database and autotuning are imported on first use. If the device accepts no generated schedule, a plain one is used.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import itertools
import logging
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from tilelang.computations.computation import Computation, Tensor, as_computation
from tilelang.errors import Refusal, TileLangError, brief
from tilelang.lowering.compilers.interface import REPORTING
from tilelang.options import Options
from tilelang.profiles.profile import Profile
from tilelang.runtime import launch_plan
from tilelang.runtime.launch_plan import LaunchPlan
from tilelang.runtime.targets import Target
from tilelang.schedules.check import main_task
from tilelang.schedules.schedule import Builder, PendingTile, Schedule
from tilelang.schedules.steps import Place, Split, Step, has_holes

if TYPE_CHECKING:
    from tilelang.autoschedule.tune.entries import StoredSchedule
    from tilelang.autoschedule.tune.measure import Progress
    from tilelang.autoschedule.tune.worker import Program
    from tilelang.lowering import ir
    from tilelang.runtime.likely_kernel import LikelyKernel

# By a target's origin: a message about its device and profile.
UNMEASURED = {
    "shipped": "schedules for %s are chosen by the shipped profile `%s`; `tilelang profile` measures the device",
    "partly measured": "schedules for %s are chosen by what was measured of it and, for the rest, by the shipped profile `%s`; "
    "`tilelang profile` measures the device to the end",
}
REFUSED = "%s: all generated schedules were refused for `%s`, so a simple one is used; the last refusal: %s"
MOST_TRIED = 16  # generated schedules that are lowered, at least, until one is accepted
_LOGGING = threading.Lock()  # held while a message is logged that must appear only once


def requested(what: Computation | Tensor | Schedule, schedule: Builder | None) -> Schedule | Computation:
    """What to compile: a schedule, or a computation without one."""
    for part in (what, schedule):
        if isinstance(part, PendingTile):
            raise part.refusal()
    if schedule is not None and not isinstance(schedule, Builder):
        help = "pass a Schedule, or a tl.move() with steps"
        raise Refusal("bad-steps", f"schedule={brief(schedule)} is not a schedule", help=help)
    if isinstance(what, Schedule):
        if schedule is not None:
            raise Refusal(
                "bad-steps",
                "the first argument is already a schedule, and schedule= gives another one",
                help="pass only one of them",
            )
        return what
    wanted = as_computation(what)
    if schedule is None:
        return wanted
    plan = schedule if isinstance(schedule, Schedule) else Schedule(wanted, schedule.steps)
    if plan.computation.hash != wanted.hash:
        message = f"the schedule is for {plan.computation.name}, not for this computation"
        raise Refusal("schedule-of-another", message, help="pass a schedule for the computation that is compiled")
    return plan


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Pauses Python's cyclic garbage collector in the `with` block: a compiler makes many objects and next to no cycles, and repeated
    collections over all objects of the process would take a tenth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class SelectedSchedule(NamedTuple):
    """The schedule of a kernel, and either its program, or the launch plan that an earlier process kept. new: it was just generated.
    source: the program's text, if it is already being compiled."""

    schedule: Schedule | StoredSchedule
    program: ir.Program | None = None
    new: bool = False
    source: str | None = None
    launch_plan: LaunchPlan | None = None


def select(
    given: Schedule | Computation, target: Target, trials: int, options: Options, progress: Progress | None = None
) -> SelectedSchedule:
    """The schedule to use, and its program.

    trials: how many candidates are timed on the device; with 0, an earlier autotuning result is used, else the candidate with the
    best prediction. progress: called with the state of the trials. Raises Refusal for a schedule that is invalid or cannot be
    filled, DeviceError if trials are requested but impossible.
    """
    with contextlib.nullcontext() if trials else no_collection():  # autotuning takes minutes
        return _select(given, target, trials, options, progress)


def _select(
    given: Schedule | Computation, target: Target, trials: int, options: Options, progress: Progress | None
) -> SelectedSchedule:
    here = _for_dialect(target)
    if isinstance(given, Schedule) and not has_holes(given.steps):
        kept = launch_plan.recall(given, target, options)
        return SelectedSchedule(given, None if kept is not None else lowered(given, target, options), launch_plan=kept)
    if options.without_rules:
        options = options.replace(database="")  # neither uses nor stores results, because other rules produced them
    if target.origin in UNMEASURED:
        _log_once(UNMEASURED[target.origin], str(target.device), target.profile.name)
    if any(name.startswith("matrix_") for name, _ in here.rates):
        from tilelang.autoschedule.common.matrix_units import missing  # late: compiling a given schedule does not need it

        for message in missing(_parts(given)[0], here):
            _log_once("%s", message)
    known: Schedule | None
    if trials:
        known, near = _timed(given, target, here, trials, options, progress), None
    else:
        stored, near = _remembered(given, target, options)
        if stored is not None and near is None and (kept := launch_plan.recall(stored, target, options)) is not None:
            return SelectedSchedule(stored, launch_plan=kept)
        known = _parsed(stored)
    from tilelang.runtime.likely_kernel import LikelyKernel  # late: a process that recalls a plan needs no lowering

    likely = LikelyKernel(_parts(given)[0], target, here, options)
    guess = likely.guess if likely.helps else None
    plans = itertools.chain((known,) if known is not None else (), constructed(given, here, options, likely=guess))
    taken = acceptable(plans, here, options, isinstance(given, Schedule), target.needs, likely)
    compiled = known is None and target.device is not None and target.dialect in REPORTING
    plan, program = _by_report(taken, target, options) if compiled else next(taken)
    if target.device is not None and plan is not known:
        _remember(plan, given, target, options)
    if near is not None:
        plan, program = _or_neighbour(near, plan, program, target, options)
    return SelectedSchedule(plan, program, known is None, likely.source_of(program))


def _for_dialect(target: Target) -> Profile:
    """The target's profile with its dialect only, so that every instruction chosen has a text in it."""
    return dataclasses.replace(target.profile, dialects=(target.dialect,))


def lowered(schedule: Schedule, target: Target, options: Options) -> ir.Program:
    """The program of a schedule without holes. Raises Refusal."""
    from tilelang.lowering.pipeline import lower  # late: a process that recalls a plan needs no lowering

    return lower(schedule.computation, schedule.steps, _for_dialect(target), options, target.needs)


def check(given: Schedule, profile: Profile) -> None:
    """Lowers a schedule, with its holes filled, to raise any Refusal."""
    plans = constructed(given, profile, Options()) if has_holes(given.steps) else iter((given,))
    accepted(plans, profile, Options(), Target(profile.dialects[0], profile).needs)


def accepted(
    plans: Iterator[Schedule], profile: Profile, options: Options, needs: tuple[str, ...] = ()
) -> tuple[Schedule, ir.Program]:
    """The first of some completions of a schedule that can be lowered, with its program. Raises Refusal if none can."""
    return next(acceptable(plans, profile, options, filling=True, needs=needs))


def acceptable(
    plans: Iterator[Schedule],
    profile: Profile,
    options: Options,
    filling: bool,
    needs: tuple[str, ...] = (),
    likely: LikelyKernel | None = None,
) -> Iterator[tuple[Schedule, ir.Program]]:
    """The schedules that can be lowered, each with its program. filling: they are completions of one schedule with holes. likely: a
    schedule that may already be lowered.

    Raises Refusal if none can: that of the last, which is the plainest.
    """
    from tilelang.lowering.pipeline import lower  # late: a process that recalls a plan needs no lowering

    refused, any_taken = list[Refusal](), False

    def program_of(plan: Schedule) -> ir.Program | None:
        try:
            known = likely.program_of(plan) if likely is not None else None
            return known or lower(plan.computation, plan.steps, profile, options, needs)
        except Refusal as refusal:
            refused.append(refusal)
            return None

    for plan in plans:
        program = program_of(plan)
        if program is None and not filling and refused[-1].code == "unrolled-too-long":
            plan = Schedule(plan.computation, _as_loops(plan.steps))
            program = program_of(plan)
        if program is None:
            continue
        if not (any_taken or filling) and refused:
            _log_fallback(plan, profile, refused[-1].message)
        any_taken = True
        yield plan, program
    if not any_taken:
        raise _cannot_be_filled(refused) if filling else refused[-1]


def _as_loops(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps with unrolled and peeled loops as plain loops, because a body of thousands of operations gains nothing by unrolling."""
    found: list[Step] = []
    for s in steps:
        if isinstance(s, Split):
            s = dataclasses.replace(s, unroll=False, peel=False)
        elif isinstance(s, Place) and s.steps:
            s = dataclasses.replace(s, steps=_as_loops(s.steps))
        found.append(s)
    return tuple(found)


def _by_report(taken: Iterator[tuple[Schedule, ir.Program]], target: Target, options: Options) -> tuple[Schedule, ir.Program]:
    """The best predicted schedule whose kernels fit the registers by the compiler's report; its binary is then in the cache."""
    from tilelang.autoschedule.tune.programs import chosen, text_of  # late: compiling a given schedule does not need it

    tried: list[tuple[Schedule, ir.Program]] = []

    def programs() -> Iterator[Program | TileLangError]:
        for plan, program in taken:
            tried.append((plan, program))
            try:
                yield text_of(program, target)
            except TileLangError as error:
                yield error

    return tried[chosen(programs(), target, options)]


def _parsed(stored: Schedule | StoredSchedule | None) -> Schedule | None:
    """A stored schedule with its steps; None if this version does not accept its text."""
    if stored is None or isinstance(stored, Schedule):
        return stored
    with contextlib.suppress(TileLangError):
        return stored.schedule
    return None


def _remembered(
    given: Schedule | Computation, target: Target, options: Options
) -> tuple[Schedule | StoredSchedule | None, Schedule | None]:
    """The autotuned or else a previously generated schedule, and one autotuned for a similar shape; None if missing."""
    if target.device is None:
        return None, None
    from tilelang.autoschedule.tune.recall import (  # late: compiling a given schedule does not need it
        NEAR,
        recall,
        recall_constructed,
    )

    computation, steps = _parts(given)
    found = recall(computation, target, steps, options, within=NEAR)
    if found is not None and found.distance == 0:
        return found.schedule, None
    return recall_constructed(computation, target, steps, options), found.schedule if found is not None else None


def _or_neighbour(
    near: Schedule, plan: Schedule, program: ir.Program, target: Target, options: Options
) -> tuple[Schedule, ir.Program]:
    """The schedule autotuned for a similar shape, unless the model predicts it to be clearly slower than the generated one."""
    from tilelang.autoschedule.tune.best import nearly_as_fast  # late: compiling a given schedule does not need it

    if nearly_as_fast(near, plan, _for_dialect(target)):
        with contextlib.suppress(Refusal):
            return near, lowered(near, target, options)
    return plan, program


def _remember(plan: Schedule, given: Schedule | Computation, target: Target, options: Options) -> None:
    from tilelang.autoschedule.tune.best import remember_constructed  # late: compiling a given schedule does not need it

    remember_constructed(plan, target, _parts(given)[1], options)


def _timed(
    given: Schedule | Computation, target: Target, profile: Profile, trials: int, options: Options, progress: Progress | None
) -> Schedule:
    """The fastest of the first candidates and of earlier autotuning results. Raises DeviceError if none can be timed."""
    from tilelang.autoschedule.tune.best import best  # late: compiling a given schedule does not need it

    computation, steps = _parts(given)
    candidates = constructed(given, profile, options, trials)
    found = best(computation, candidates, target, trials, given=steps, options=options, progress=progress)
    others = [t for t in found.measured.trials if t.schedule is not found.schedule] if found.measured is not None else []
    if others and all(t.code for t in others) and not isinstance(given, Schedule):
        _log_fallback(found.schedule, profile, others[-1].why)
    return found.schedule


def _parts(given: Schedule | Computation) -> tuple[Computation, tuple[Step, ...]]:
    return (given.computation, given.steps) if isinstance(given, Schedule) else (given, ())


def constructed(
    given: Schedule | Computation,
    profile: Profile,
    options: Options,
    trials: int = 0,
    likely: Callable[[tuple[Step, ...]], None] | None = None,
) -> Iterator[Schedule]:
    """The first generated schedules, followed by a plain one; or the completions of the given schedule.

    trials: begin with this many schedules that differ from each other, to be timed. likely: called with the steps that will probably
    be the first.
    """
    from tilelang.autoschedule.common import complete  # late: compiling a given schedule does not need it
    from tilelang.autoschedule.common.prune import Pruning  # late: compiling a given schedule does not need it
    from tilelang.autoschedule.tune.diverse import diverse  # late: compiling a given schedule does not need it

    pruning = Pruning.without(options.without_rules)
    if isinstance(given, Schedule):
        yield from complete.fill(given, profile, pruning)
        return
    found = complete.in_order(given, profile, pruning, likely)
    if trials:
        every = complete.candidates(given, profile, pruning)
        found = (every[n] for n in diverse([(c.steps, c.estimate.seconds) for c in every], trials))
    for candidate in itertools.islice(found, max(MOST_TRIED, 2 * trials)):
        with contextlib.suppress(Refusal):  # as for schedules that the lowering refuses: try the next
            yield candidate.schedule
    yield Schedule(given, _plain(given, profile))


def _plain(computation: Computation, profile: Profile) -> tuple[Step, ...]:
    """The steps of the fallback for devices that accept no generated schedule."""
    from tilelang.lowering.build.default_schedules import default_steps  # late: a process that recalls a plan needs no lowering

    return default_steps(main_task(computation, ()), profile)


def _log_fallback(taken: Schedule, profile: Profile, why: str) -> None:
    """Logs that the plain fallback is used, if it is. why: the reason why the last of the others was refused."""
    if taken.steps == _plain(taken.computation, profile):
        _log_once(REFUSED, taken.computation.name, profile.name, why)


def _cannot_be_filled(refused: list[Refusal]) -> Refusal:
    """The error if no completion is accepted: the reason for the completion that needs the least of the device."""
    last = refused[-1]
    if len(refused) == 1:
        return last
    note = f"{len(refused)} ways to fill the schedule were tried; this error is from the one that needs the fewest resources"
    return Refusal(last.code, last.message, span=last.span, counterexample=last.counterexample, help=last.help,
                   proven=last.proven, notes=(*last.notes, note))  # fmt: skip


def _log_once(message: str, *facts: str) -> None:
    """Logs a message once, from whatever thread."""
    with _LOGGING:
        _log(message, *facts)


@functools.cache
def _log(message: str, *facts: str) -> None:
    logging.getLogger("tilelang").warning(message, *facts)
