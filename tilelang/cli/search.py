"""The output of `tilelang explain --search`: the candidates dropped by each rule, then the candidates in the model's order."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from tilelang.autoschedule.common.prune import RULES, Pruning
from tilelang.cli.common import NO_DEVICE_CODES, PROFILES, Asked
from tilelang.cli.output import emit, is_json, show, table, working
from tilelang.errors import DeviceError, TileLangError
from tilelang.options import Options

if TYPE_CHECKING:
    from tilelang.autoschedule.common.cost import Estimate
    from tilelang.runtime.targets import Target
    from tilelang.schedules.schedule import Schedule


@dataclasses.dataclass(frozen=True)
class Shown:
    """A candidate. dropped: the rule that drops it after all, or the code of its refusal; empty if it can be used."""

    schedule: Schedule
    estimate: Estimate
    dropped: str


def show_search(asked: Asked, dialect: str | None, without: tuple[str, ...]) -> None:
    """Shows the search for a schedule with holes, or for a computation without a schedule."""
    from tilelang.autoschedule.common.complete import search  # late: a command imports what it needs itself

    aim = searched_for(asked, dialect)
    pruning = Pruning.without(without)
    with working("searching"):
        searched = search(asked.given(aim.profile), aim.profile, pruning)
        found = judged(searched.schedules, aim, pruning)
    taken = next((k for k, one in enumerate(found) if not one.dropped), None)
    if is_json():
        emit({**facts(found, taken, aim, pruning), "notes": searched.notes})
        return
    heading = f"{pruning.generated} candidates for {described(aim)}: {pruning.dropped.total()} dropped"
    parts = [table(("rule", "dropped", "share", "what it drops"), rule_rows(pruning), heading), "", candidate_table(found), ""]
    parts += [*(f"note: {note}" for note in searched.notes), ""] if searched.notes else []
    if taken is not None:
        parts += [f"candidate {taken + 1} is chosen:", str(found[taken].schedule), found[taken].estimate.breakdown]
    show("\n".join(parts).rstrip())


def searched_for(asked: Asked, dialect: str | None) -> Target:
    """The target of the search: the requested profile, else this machine's device as in `tl.compile`; if there is no such device, the
    dialect's default profile."""
    from tilelang.runtime.targets import target  # late: a command imports what it needs itself

    dialect = dialect or Options.from_environment().target
    if asked.profile is None:
        try:
            return target(dialect)
        except DeviceError as error:
            if error.code not in NO_DEVICE_CODES:
                raise
    return target(dialect, profile=asked.profile or PROFILES.get(dialect or "cpu"))


def described(aim: Target) -> str:
    """A target in words: the device, if there is one, and its profile."""
    name = aim.profile.name
    return f"the profile {name}" if aim.device is None else f"{aim.device}, profile {name} ({aim.origin})"


def judged(schedules: tuple[Schedule, ...], aim: Target, pruning: Pruning) -> list[Shown]:
    """The candidates with their outcomes: lowered, and compiled if a compiler that reports resources is installed."""
    from tilelang.autoschedule.models import estimate_schedule  # late: a command imports what it needs itself
    from tilelang.autoschedule.tune.programs import program_of, pruned  # late: a command imports what it needs itself

    options = Options.from_environment()
    made = [program_of(s, aim, options) for s in schedules]
    programs = [p for p in made if not isinstance(p, TileLangError)]
    rules = pruned(programs, aim, options, Pruning(pruning.off))
    found = []
    for schedule, program in zip(schedules, made, strict=True):
        why = program.code if isinstance(program, TileLangError) else rules[program.source]
        if why:
            pruning.gives_up(why)
        found.append(Shown(schedule, estimate_schedule(schedule, aim.profile), why))
    return found


def rule_rows(pruning: Pruning) -> list[tuple[str, int, str, str]]:
    """Each rule, the one that drops most first, with what it dropped; refusals by code."""
    rows = [(rule, pruning.dropped[rule], f"{share:.1%}", RULES.get(rule, "refused by the compiler with this error code"))
            for rule, share in pruning.shares.items()]  # fmt: skip
    rest = [rule for rule in RULES if rule not in pruning.dropped]
    return [*rows, *((rule, 0, "off" if rule in pruning.off else "", RULES[rule]) for rule in rest)]


def candidate_table(found: list[Shown]) -> str:
    """The candidates with their estimates."""
    rows = [
        (k, f"{one.estimate.seconds * 1e6:.1f}", f"{one.estimate.seconds / one.estimate.bound:.2f}" if one.estimate.bound else "",
         one.estimate.bottleneck if one.estimate.parts else "", one.dropped, "; ".join(map(str, one.schedule.steps)))
        for k, one in enumerate(found, 1)
    ]  # fmt: skip
    return table(("", "us", "of the bound", "bottleneck", "dropped", "steps"), rows)


def facts(found: list[Shown], taken: int | None, aim: Target, pruning: Pruning) -> dict[str, Any]:
    """The search as JSON."""
    candidates = [
        {"schedule": c.schedule.text, "seconds": c.estimate.seconds, "parts": dict(c.estimate.parts), "bound": c.estimate.bound,
         "dropped": c.dropped or None}
        for c in found
    ]  # fmt: skip
    rules = [{"rule": rule, "dropped": pruning.dropped[rule], "share": pruning.shares.get(rule, 0.0), "on": rule not in pruning.off}
             for rule, *_ in rule_rows(pruning)]  # fmt: skip
    return {
        "profile": aim.profile.name, "origin": aim.origin, "generated": pruning.generated, "dropped": pruning.dropped.total(),
        "rules": rules, "taken": taken, "candidates": candidates,
    }  # fmt: skip
