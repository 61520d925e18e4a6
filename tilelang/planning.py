"""Which schedule a kernel is made from: the one that is given, or the first of the constructed ones that the device takes.

Construction is imported when it is asked for. Where it has no schedule, a plain one stands in; it never fails.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections.abc import Iterator

from tilelang.check import main_task
from tilelang.computation import Computation, Tensor, as_computation
from tilelang.errors import Refusal, brief
from tilelang.lowering import ir
from tilelang.lowering.build.program import default_steps
from tilelang.lowering.pipeline import lower
from tilelang.machine import Profile
from tilelang.options import Options
from tilelang.schedule import Builder, Schedule
from tilelang.targets import Target

MOST_TRIED = 8  # constructed schedules that are lowered until one is accepted


def asked(what: Computation | Tensor | Schedule, schedule: Builder | None) -> Schedule | Computation:
    """What is to be compiled: a schedule, or a computation that has none."""
    if schedule is not None and not isinstance(schedule, Builder):
        mend = "a Schedule, or a tl.move() with steps"
        raise Refusal("bad-steps", f"schedule={brief(schedule)} is no schedule", mend=mend)
    if isinstance(what, Schedule):
        if schedule is not None:
            raise Refusal("bad-steps", "a schedule is compiled, and schedule= gives another one", mend="give one of them")
        return what
    wanted = as_computation(what)
    if schedule is None:
        return wanted
    plan = schedule if isinstance(schedule, Schedule) else Schedule(wanted, schedule.steps)
    if plan.computation.hash != wanted.hash:
        message = f"the schedule is for {plan.computation.name}, not for this computation"
        raise Refusal("schedule-of-another", message, mend="schedule the computation that is compiled")
    return plan


def planned(given: Schedule | Computation, target: Target, options: Options) -> tuple[Schedule, ir.Program]:
    """The schedule for what is given, and its program. Raises Refusal for a schedule that cannot be."""
    here = dataclasses.replace(target.profile, dialects=(target.dialect,))  # so that every instruction taken has a text in it
    if isinstance(given, Schedule):
        return given, lower(given.computation, given.steps, here, options)
    if target.device is not None:
        _say_what_is_not_measured(str(target.device), target.profile)
    for plan in constructed(given, here):
        try:
            return plan, lower(given, plan.steps, here, options)
        except Refusal:
            continue
    plain = Schedule(given, default_steps(main_task(given, ()), here))
    return plain, lower(given, plain.steps, here, options)


def constructed(computation: Computation, profile: Profile) -> Iterator[Schedule]:
    """The first of the schedules that construction gives."""
    from tilelang.autoschedule.fill import candidates

    return (candidate.schedule for candidate in candidates(computation, profile)[:MOST_TRIED])


@functools.cache
def _say_what_is_not_measured(device: str, profile: Profile) -> None:
    """Says, once, that schedules are chosen by a profile that was not measured on the device."""
    if not any(source.startswith("measured") for _, source in profile.sources):
        message = "schedules for %s are chosen by the shipped profile `%s`; `tilelang profile` measures the device"
        logging.getLogger("tilelang").warning(message, device, profile.name)
