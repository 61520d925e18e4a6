"""Which schedule a kernel is made from: the one that is given, its holes filled; else one that was timed; else a constructed one, which
is remembered.

Construction, the database and timing are imported when they are asked for. Where construction has no schedule that the device takes,
a plain one stands in.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import itertools
import logging
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tilelang.computations.computation import Computation, Tensor, as_computation
from tilelang.errors import Refusal, TileLangError, brief
from tilelang.lowering import ir
from tilelang.lowering.build.program import default_steps
from tilelang.lowering.compilers.interface import REPORTING
from tilelang.lowering.pipeline import lower
from tilelang.options import Options
from tilelang.profiles.profile import Profile
from tilelang.runtime.targets import Target
from tilelang.schedules.check import main_task
from tilelang.schedules.schedule import Builder, PendingTile, Schedule
from tilelang.schedules.steps import Step, has_holes

if TYPE_CHECKING:
    from tilelang.autoschedule.tune.measure import Progress
    from tilelang.autoschedule.tune.worker import Program

# Of a target's origin: what is said of its device and its profile.
UNMEASURED = {
    "shipped": "schedules for %s are chosen by the shipped profile `%s`; `tilelang profile` measures the device",
    "partly measured": "schedules for %s are chosen by what was measured of it and, for the rest, by the shipped profile `%s`; "
    "`tilelang profile` measures the device to the end",
}
REFUSED = "%s: all generated schedules were refused for `%s`, so a simple one is used; the last refusal: %s"
MOST_TRIED = 16  # constructed schedules that are lowered until one is accepted, at least
_SAYING = threading.Lock()  # what is said once is said by one thread


def asked(what: Computation | Tensor | Schedule, schedule: Builder | None) -> Schedule | Computation:
    """What is to be compiled: a schedule, or a computation that has none."""
    for part in (what, schedule):
        if isinstance(part, PendingTile):
            raise part.refusal()
    if schedule is not None and not isinstance(schedule, Builder):
        mend = "pass a Schedule, or a tl.move() with steps"
        raise Refusal("bad-steps", f"schedule={brief(schedule)} is not a schedule", mend=mend)
    if isinstance(what, Schedule):
        if schedule is not None:
            raise Refusal(
                "bad-steps",
                "the first argument is already a schedule, and schedule= gives another one",
                mend="pass only one of them",
            )
        return what
    wanted = as_computation(what)
    if schedule is None:
        return wanted
    plan = schedule if isinstance(schedule, Schedule) else Schedule(wanted, schedule.steps)
    if plan.computation.hash != wanted.hash:
        message = f"the schedule is for {plan.computation.name}, not for this computation"
        raise Refusal("schedule-of-another", message, mend="pass a schedule for the computation that is compiled")
    return plan


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Python's collector of cyclic garbage pauses in the `with`: a compiler makes many objects and next to no cycles, and the collector
    would go over all objects of the process again and again, for a tenth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def planned(
    given: Schedule | Computation, target: Target, trials: int, options: Options, progress: Progress | None = None
) -> tuple[Schedule, ir.Program, bool]:
    """The schedule for what is given, its program, and whether it was constructed now.

    trials: how many candidates are timed on the device; 0: what was timed before, else the likeliest. progress: is told how far
    that is. Raises Refusal for a schedule that cannot be, or that cannot be filled, DeviceError where trials are asked for and none can
    be made.
    """
    with contextlib.nullcontext() if trials else no_collection():  # timing takes minutes
        return _planned(given, target, trials, options, progress)


def _planned(
    given: Schedule | Computation, target: Target, trials: int, options: Options, progress: Progress | None
) -> tuple[Schedule, ir.Program, bool]:
    here = dataclasses.replace(target.profile, dialects=(target.dialect,))  # so that every instruction taken has a text in it
    if isinstance(given, Schedule) and not has_holes(given.steps):
        return given, lower(given.computation, given.steps, here, options, target.needs), False
    if options.without_rules:
        options = options.replace(database="")  # nothing that was found by all rules, and nothing that others would find
    if target.origin in UNMEASURED:
        _say(UNMEASURED[target.origin], str(target.device), target.profile.name)
    if any(name.startswith("matrix_") for name, _ in here.rates):
        from tilelang.autoschedule.common.matrix_units import missing

        for message in missing(_parts(given)[0], here):
            _say("%s", message)
    known: Schedule | None
    if trials:
        known, near = _timed(given, target, here, trials, options, progress), None
    else:
        known, near = _remembered(given, target, options)
    plans = itertools.chain((known,) if known is not None else (), constructed(given, here, options))
    taken = acceptable(plans, here, options, isinstance(given, Schedule), target.needs)
    compiled = known is None and target.device is not None and target.dialect in REPORTING
    plan, program = _by_report(taken, target, options) if compiled else next(taken)
    if target.device is not None and plan is not known:
        _remember(plan, given, target, options)
    if near is not None:
        plan, program = _or_neighbour(near, plan, program, here, options, target.needs)
    return plan, program, known is None


def check(given: Schedule, profile: Profile) -> None:
    """Lowers a schedule, its holes filled, for the refusal that it may give."""
    plans = constructed(given, profile, Options()) if has_holes(given.steps) else iter((given,))
    accepted(plans, profile, Options(), Target(profile.dialects[0], profile).needs)


def accepted(
    plans: Iterator[Schedule], profile: Profile, options: Options, needs: tuple[str, ...] = ()
) -> tuple[Schedule, ir.Program]:
    """The first of some fillings of a schedule that can be lowered, with its program. Raises Refusal where none can."""
    return next(acceptable(plans, profile, options, filling=True, needs=needs))


def acceptable(
    plans: Iterator[Schedule], profile: Profile, options: Options, filling: bool, needs: tuple[str, ...] = ()
) -> Iterator[tuple[Schedule, ir.Program]]:
    """Those of several schedules that can be lowered, each with its program. filling: they are one whose holes were filled.

    Raises Refusal where none can: of the last, the plainest.
    """
    refused, any_taken = list[Refusal](), False
    for plan in plans:
        try:
            program = lower(plan.computation, plan.steps, profile, options, needs)
        except Refusal as refusal:
            refused.append(refusal)
            continue
        if not (any_taken or filling) and refused:
            _say_that_it_is_plain(plan, profile, refused[-1].message)
        any_taken = True
        yield plan, program
    if not any_taken:
        raise _cannot_be_filled(refused) if filling else refused[-1]


def _by_report(taken: Iterator[tuple[Schedule, ir.Program]], target: Target, options: Options) -> tuple[Schedule, ir.Program]:
    """The likeliest of some schedules whose kernels fit the registers, as the compiler reports; whoever loads it finds it compiled."""
    from tilelang.autoschedule.tune.programs import chosen, text_of

    tried: list[tuple[Schedule, ir.Program]] = []

    def programs() -> Iterator[Program | TileLangError]:
        for plan, program in taken:
            tried.append((plan, program))
            try:
                yield text_of(program, target)
            except TileLangError as error:
                yield error

    return tried[chosen(programs(), target, options)]


def _remembered(given: Schedule | Computation, target: Target, options: Options) -> tuple[Schedule | None, Schedule | None]:
    """The schedule that was found by timing; else the one that was constructed before, and the one that was found by timing for a
    near shape. None where there is none."""
    if target.device is None:
        return None, None
    from tilelang.autoschedule.tune.best import NEAR, recall, recall_constructed

    computation, steps = _parts(given)
    found = recall(computation, target, steps, options, within=NEAR)
    if found is not None and found.distance == 0:
        return found.schedule, None
    return recall_constructed(computation, target, steps, options), found.schedule if found is not None else None


def _or_neighbour(
    near: Schedule, plan: Schedule, program: ir.Program, profile: Profile, options: Options, needs: tuple[str, ...]
) -> tuple[Schedule, ir.Program]:
    """The schedule that was the fastest for a near shape, unless the model has it clearly behind the one that was constructed."""
    from tilelang.autoschedule.tune.best import nearly_as_fast

    if nearly_as_fast(near, plan, profile):
        with contextlib.suppress(Refusal):
            return near, lower(near.computation, near.steps, profile, options, needs)
    return plan, program


def _remember(plan: Schedule, given: Schedule | Computation, target: Target, options: Options) -> None:
    from tilelang.autoschedule.tune.best import remember_constructed

    remember_constructed(plan, target, _parts(given)[1], options)


def _timed(
    given: Schedule | Computation, target: Target, profile: Profile, trials: int, options: Options, progress: Progress | None
) -> Schedule:
    """The fastest of the first candidates, or of what was timed before. Raises DeviceError where none can be timed."""
    from tilelang.autoschedule.tune.best import best

    computation, steps = _parts(given)
    candidates = constructed(given, profile, options, trials)
    found = best(computation, candidates, target, trials, given=steps, options=options, progress=progress)
    others = [t for t in found.measured.trials if t.schedule is not found.schedule] if found.measured is not None else []
    if others and all(t.code for t in others) and not isinstance(given, Schedule):
        _say_that_it_is_plain(found.schedule, profile, others[-1].why)
    return found.schedule


def _parts(given: Schedule | Computation) -> tuple[Computation, tuple[Step, ...]]:
    return (given.computation, given.steps) if isinstance(given, Schedule) else (given, ())


def constructed(given: Schedule | Computation, profile: Profile, options: Options, trials: int = 0) -> Iterator[Schedule]:
    """The first of the schedules that construction gives: whole ones, and last a plain one; or what is given, filled.

    trials: so many, at first, that differ from each other, as they are to be timed.
    """
    from tilelang.autoschedule.common import complete
    from tilelang.autoschedule.tune.diverse import diverse
    from tilelang.autoschedule.tune.prune import Pruning

    pruning = Pruning.without(options.without_rules)
    if isinstance(given, Schedule):
        yield from complete.fill(given, profile, pruning)
        return
    found = complete.in_order(given, profile, pruning)
    if trials:
        every = complete.candidates(given, profile, pruning)
        found = (every[n] for n in diverse([(c.steps, c.estimate.seconds) for c in every], trials))
    for candidate in itertools.islice(found, max(MOST_TRIED, 2 * trials)):
        with contextlib.suppress(Refusal):  # as where the lowering refuses one: the next
            yield candidate.schedule
    yield Schedule(given, _plain(given, profile))


def _plain(computation: Computation, profile: Profile) -> tuple[Step, ...]:
    """The steps that stand in where construction has none that the device takes."""
    return default_steps(main_task(computation, ()), profile)


def _say_that_it_is_plain(taken: Schedule, profile: Profile, why: str) -> None:
    """Says that a plain schedule stands in, where what was taken is one. why: the last of the others was not."""
    if taken.steps == _plain(taken.computation, profile):
        _say(REFUSED, taken.computation.name, profile.name, why)


def _cannot_be_filled(refused: list[Refusal]) -> Refusal:
    """The error where no filling is accepted: what stands in the way of the one that asks least of the device."""
    last = refused[-1]
    if len(refused) == 1:
        return last
    note = f"{len(refused)} ways to fill the schedule were tried; this error is from the one that needs the fewest resources"
    return Refusal(last.code, last.message, span=last.span, counterexample=last.counterexample, mend=last.mend,
                   proven=last.proven, notes=(*last.notes, note))  # fmt: skip


def _say(message: str, *facts: str) -> None:
    """Says something in the log, once, whatever threads say it together."""
    with _SAYING:
        _said(message, *facts)


@functools.cache
def _said(message: str, *facts: str) -> None:
    logging.getLogger("tilelang").warning(message, *facts)
