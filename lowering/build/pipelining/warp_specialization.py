"""Warp specialization: all roles run the same loops; some load data for the block, the main role computes."""

from __future__ import annotations

import dataclasses
import difflib

from tilelang.core.expr import Expr
from tilelang.lowering import ir
from tilelang.lowering.build.frame import Build, Frame, Key
from tilelang.lowering.build.refusals import refuse
from tilelang.profiles.profile import Profile
from tilelang.schedules.steps import Do, Place, Step, Team, Tile, Units, Vectorize
from tilelang.schedules.task import Task


@dataclasses.dataclass(frozen=True)
class Role:
    """A contiguous range of a block's threads with a task of its own."""

    name: str
    level: str
    first: int
    threads: int
    registers: int | None


@dataclasses.dataclass(frozen=True)
class Plan:
    """The roles of a block as `units` defines them, the main role, and the schedule's steps with the main role's name replaced
    by its level."""

    step: Units
    main: Role
    others: tuple[Role, ...]
    steps: tuple[Step, ...]

    @property
    def threads(self) -> int:
        return sum(role.threads for role in (self.main, *self.others))


def plan_roles(steps: tuple[Step, ...], profile: Profile) -> Plan | None:
    """The roles of a schedule; None if it has none. Raises Refusal."""
    said = next((s for s in steps if isinstance(s, Units) and s.level == "block"), None)
    if said is None or not any(team.role for team in said.teams):
        return None
    roles, first = dict[str, Role](), 0
    sizes = {team: _unit_threads(said, team, profile) for team in said.teams}
    for team in sorted(said.teams, key=lambda team: -sizes[team]):  # each unit starts at a multiple of its size
        if team.role is None or team.role in roles or profile.has_level(team.role):
            raise refuse(
                said, "role-name", f"`{said}`: {team} needs a name of its own", "give it one, as in `2 warp as consumer`"
            )
        threads = team.count * sizes[team]
        roles[team.role] = Role(team.role, team.level, first, threads, team.registers)
        first += threads
    main = _main_role(said, steps, roles)
    plan = Plan(said, main, tuple(r for r in roles.values() if r is not main), _with_levels(steps, main))
    _check_loads(plan, steps, roles)
    _check_work(plan, steps)
    _check_registers(plan, roles, profile)
    return plan


def _unit_threads(step: Units, team: Team, profile: Profile) -> int:
    found = profile.level(team.level).threads if profile.has_level(team.level) else None
    if found is None:
        raise refuse(step, "role-level", f"`{step}`: the profile `{profile.name}` does not say how many threads a {team.level} has",
                     "use units of one of " + ", ".join(f.name for f in profile.levels if f.threads))  # fmt: skip
    return found


def _main_role(said: Units, steps: tuple[Step, ...], roles: dict[str, Role]) -> Role:
    """The role that a tile names; if none does, the largest one without a load, and the last of several equally large ones."""
    named = {s.level for s in steps if isinstance(s, Tile)} & set(roles)
    if len(named) > 1:
        raise refuse(said, "main-role", f"`{said}`: only one role can compute, but tiles are mapped to {' and '.join(sorted(named))}",
                     "map tiles to only one of them; the others then load")  # fmt: skip
    loading = {s.on for s in steps if isinstance(s, Place)}
    free = [roles[name] for name in roles if name in named] or [r for r in roles.values() if r.name not in loading]
    if not free:
        raise refuse(
            said, "main-role", f"`{said}`: every role has loads, so there is no role left to compute", "add a role without loads"
        )
    return max(reversed(free), key=lambda role: role.threads)


def _with_levels(steps: tuple[Step, ...], main: Role) -> tuple[Step, ...]:
    return tuple(s.replace(level=main.level) if isinstance(s, Tile) and s.level == main.name else s for s in steps)


def _check_loads(plan: Plan, steps: tuple[Step, ...], roles: dict[str, Role]) -> None:
    """Refuses a step on a role unless it is a load of the main chain, above the tiles that are mapped to the main role's units."""
    spread: Tile | None = None
    for step in steps:
        if isinstance(step, Tile) and step.level not in ("cluster", "block"):
            spread = spread or step
        if not isinstance(step, Place):
            continue
        for inner in (step, *(s for s in step.steps or () if isinstance(s, Place))):
            if inner.on is not None and inner.on not in roles:
                near = difflib.get_close_matches(inner.on, roles, 1)
                raise refuse(inner, "unknown-role", f"`{inner}`: there is no role `{inner.on}`",
                             f"did you mean `{near[0]}`?" if near else "use one of " + ", ".join(roles))  # fmt: skip
            if inner.on in (None, plan.main.name):
                continue
            what = None
            if inner is not step or step.verb != "load" or step.memory != "shared":
                what = "a step on a role that is not a load in shared"
            elif spread is not None:
                what = f"a load on a role below `{spread}`"
            elif step.stream or any(isinstance(s, Place) for s in step.steps or ()):
                what = "a load on a role with a `via` or `stream`"
            if what is not None:
                raise refuse(inner, "not-lowered-yet", f"`{inner}`: {what} is valid, but not supported yet for this"
                             " target", f"use a load in shared, above the tiles that are mapped to {plan.main.name}")  # fmt: skip


def _check_work(plan: Plan, steps: tuple[Step, ...]) -> None:
    """Refuses a role without work, as soon as no later step can give it a load."""
    last = next(
        (s for s in steps if isinstance(s, (Vectorize, Do)) or isinstance(s, Tile) and s.level not in ("cluster", "block")), None
    )
    loading = {s.on for s in steps if isinstance(s, Place)}
    idle = [role.name for role in plan.others if role.name not in loading]
    if last is not None and idle:
        raise refuse(plan.step, "role-without-work", f"`{plan.step}`: the {idle[0]} has no work: the {plan.main.name} computes, and"
                     f" there is no load on the {idle[0]} above `{last}`",
                     f"add a load in shared on {idle[0]} above `{last}`, or remove the role")  # fmt: skip


def _check_registers(plan: Plan, roles: dict[str, Role], profile: Profile) -> None:
    """Refuses register budgets that the device cannot provide."""
    budgets = {name: role.registers for name, role in roles.items() if role.registers is not None}
    if not budgets:
        return
    if not profile.role_registers:
        raise refuse(plan.step, "register-budget", f"`{plan.step}`: on `{profile.name}` all threads of a block have the same number of"
                     " registers",
                     "remove the budgets")  # fmt: skip
    least, most, multiple = profile.role_registers
    together = max(f.threads or 1 for f in profile.levels)
    for name, registers in budgets.items():
        if not least <= registers <= most or registers % multiple:
            nearest = max(least, min(most, registers // multiple * multiple))
            raise refuse(plan.step, "register-budget", f"`{plan.step}`: a thread of the {name} can have {least} to {most} registers, in"
                         f" multiples of {multiple}", f"use {nearest} registers")  # fmt: skip
        if roles[name].threads % together:
            raise refuse(plan.step, "register-budget", f"`{plan.step}`: registers are allocated to {together} threads at a time, but"
                         f" the {name} has {roles[name].threads}", f"use units of {together} threads")  # fmt: skip
    total = sum(role.threads * (role.registers or 0) for role in roles.values())
    if profile.block_registers is not None and total > profile.block_registers:
        summed = " + ".join(f"{role.threads} x {role.registers or 0}" for role in roles.values())
        raise refuse(plan.step, "register-budget", f"`{plan.step}`: the budgets need more than the {profile.block_registers} registers"
                     " of a block", "use smaller budgets",
                     f"{summed} = {total}")  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Signals:
    """The `full` and `empty` barriers of a multistage buffer, one of each per slot, and the loops that count their uses: the same
    in every role.

    in_cluster: every block of the cluster fills a part of the slots of all blocks.
    """

    full: ir.Buffer
    empty: ir.Buffer
    slots: int
    full_arrivals: int
    empty_arrivals: int
    in_cluster: bool
    counted: tuple[tuple[int, Expr], ...]


@dataclasses.dataclass
class Roles:
    """The roles of a kernel, which is built once for each. task: the kernel's task; role: the one being built.

    signals: the barriers made so far, by the first of the loads that share them.
    """

    plan: Plan
    task: Task
    role: Role
    signals: dict[Key, Signals] = dataclasses.field(default_factory=dict)

    @property
    def only_loads(self) -> bool:
        """Whether the role being built only loads."""
        return self.role is not self.plan.main

    def is_mine(self, step: Step) -> bool:
        """Whether a step is a load on the role being built."""
        return isinstance(step, Place) and step.on == self.role.name


def by_role(build: Build, step: Place) -> bool:
    """Whether a load is executed by another role than the main one, or the role being built only loads."""
    roles = build.roles
    return roles is not None and (roles.only_loads or step.on not in (None, roles.plan.main.name))


def on_roles(build: Build, steps: tuple[Step, ...]) -> bool:
    """Whether some of these steps load on another role than the main one; all roles must then run the same loops around them."""
    main = None if build.roles is None else build.roles.plan.main.name
    return main is not None and any(isinstance(s, Place) and s.on not in (None, main) for s in steps)


def only_loads(build: Build) -> bool:
    """Whether the role being built only loads."""
    return build.roles is not None and build.roles.only_loads


def has_done(build: Build, frame: Frame, i: int) -> bool:
    """Whether a role that only loads has nothing left to do from step i on."""
    roles = build.roles
    return roles is not None and roles.only_loads and frame.task is roles.task and not any(map(roles.is_mine, frame.steps[i:]))
