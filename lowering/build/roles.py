"""Roles of units: every role runs the same walks, some load for all, the main one computes; what they share is ordered by phases.

The kernel is built once for each role. In the main role, what stands below a load on another role reads the load's ring between an
Await of the slot's `full` barrier and an arrival at its `empty` one; in the load's role there is only the move, between an Await of
`empty` and an arrival at `full`. Both count the rounds of all walks around the load, a block's walk over its tiles included: round r is
in slot r % n, and a phase of a slot's barriers is one use of it. So a ring never drains, and has one order of filling and emptying.
tests/lowering/ring_model.py goes through every interleaving of this protocol.
"""

from __future__ import annotations

import dataclasses
import difflib
import math

from tilelang import dtype as dt
from tilelang.expr import INDEX, Const, Expr, Var, index
from tilelang.instruction import BARRIER_BY_BYTES, use
from tilelang.lowering import ir
from tilelang.lowering.build.base import Part, refuse
from tilelang.lowering.build.clusters import divided, is_multicast, shares
from tilelang.lowering.build.cover import nobody_reads
from tilelang.lowering.build.frame import Build, Frame, Key, Move, Residence, StatePlace, Target
from tilelang.machine import Profile
from tilelang.simplify import simplify
from tilelang.steps import Do, Place, Step, Team, Tile, Units, Vectorize
from tilelang.task import Task


@dataclasses.dataclass(frozen=True)
class Role:
    """Some threads of a block."""

    name: str
    level: str
    first: int
    threads: int
    registers: int | None


@dataclasses.dataclass(frozen=True)
class Plan:
    """The roles of a block as `units` says, the main one, and the schedule's steps with its level in place of its name."""

    step: Units
    main: Role
    others: tuple[Role, ...]
    steps: tuple[Step, ...]

    @property
    def threads(self) -> int:
        return sum(role.threads for role in (self.main, *self.others))


def plan_roles(steps: tuple[Step, ...], profile: Profile) -> Plan | None:
    """The roles of a schedule; None where a block's threads have none. Raises Refusal."""
    said = next((s for s in steps if isinstance(s, Units) and s.level == "block"), None)
    if said is None or not any(team.role for team in said.teams):
        return None
    roles, first = dict[str, Role](), 0
    sizes = {team: _unit_threads(said, team, profile) for team in said.teams}
    for team in sorted(said.teams, key=lambda team: -sizes[team]):  # units begin at multiples of their size
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
    """The role that a tile names; without one, the largest on which no load stands, the last of several."""
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
    """Refuses what stands on a role and is not a load of the main chain, above what gives tiles to the main role's units."""
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
    """Refuses a role that does nothing, as soon as no step that follows can give it a load."""
    last = next(
        (s for s in steps if isinstance(s, (Vectorize, Do)) or isinstance(s, Tile) and s.level not in ("cluster", "block")), None
    )
    loading = {s.on for s in steps if isinstance(s, Place)}
    idle = [role.name for role in plan.others if role.name not in loading]
    if last is not None and idle:
        raise refuse(plan.step, "role-without-work", f"`{plan.step}`: the {plan.main.name} computes, no load is on the {idle[0]}, and"
                     f" none can follow below `{last}`", f"add a load in shared on {idle[0]}, or remove the role")  # fmt: skip


def _check_registers(plan: Plan, roles: dict[str, Role], profile: Profile) -> None:
    """Refuses budgets that the device cannot give."""
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
    """The barriers of a ring, one of each for a slot, and how often they were used before: the same in every role.

    in_cluster: every block of the cluster fills a part of the slots of all of them.
    """

    full: ir.Buffer
    empty: ir.Buffer
    slots: int
    full_arrivals: int
    empty_arrivals: int
    in_cluster: bool
    counted: tuple[tuple[int, Expr], ...]


class RoleLoads(Part):
    """Loads on another role than the one that computes."""

    _plan: Plan | None
    _role: Role | None  # the one that is being built
    _main_task: Task
    _signals: dict[Key, Signals]  # by the first of the loads that share a ring

    def all_roles(self, plan: Plan, frame: Frame) -> ir.Stmt:
        """The body of a kernel: barriers are made, then every role goes its way."""
        self._plan, self._main_task, self._signals = plan, frame.task, {}
        made, grid = [], list[int]()
        for role in (plan.main, *plan.others):
            self._role = role
            self._count_threads(role)
            self.build.grid = []
            spec = frame.spec if frame.spec.units is None else frame.spec.replace(units=role.threads, lane=self.build.thread)
            body = self.chain(frame.but(spec=spec), 0)
            if any(s.in_cluster for s in self._signals.values()):  # others may still fill this block's slots, or give theirs back
                body = ir.seq(body, ir.ClusterBarrier(plan.step.span))
            grid = grid or self.build.grid
            assert self.build.grid in ([], grid), "roles that have different grids"  # none where nothing is left to do
            made.append(ir.Role(role.name, role.first, role.threads, body, role.registers, plan.step.span))
        self._plan = self._role = None
        self.build.grid = grid
        init = [
            ir.InitPhases(buffer, arrivals, plan.step.span)
            for s in self._signals.values()
            for buffer, arrivals in ((s.full, s.full_arrivals), (s.empty, s.empty_arrivals))
        ]
        one = ir.If(Var("thread", INDEX, 0, plan.threads - 1) < 1, ir.seq(*init), None, plan.step.span)
        reason = "the barriers of rings have their first phase before any role awaits it"
        meet: ir.Stmt = ir.Barrier(("shared",), (reason,), plan.step.span)
        if any(s.in_cluster for s in self._signals.values()):
            meet = ir.ClusterBarrier(plan.step.span)
        order = sorted(made, key=lambda role: role.first)
        return ir.seq(*((one, meet) if init else ()), ir.Roles(tuple(order), plan.step.span))

    def _count_threads(self, role: Role) -> None:
        """Threads are counted in the role."""
        self.build.threads = role.threads
        self.build.thread = Build.thread_of(role.threads)

    # ------------------------------------------------------------ walking over the steps

    @property
    def _aside(self) -> bool:
        """Whether a role is built that only loads."""
        return self._plan is not None and self._role is not self._plan.main

    def by_role(self, step: Place) -> bool:
        """Whether a load is not moved by the threads of this role, or in another way than others."""
        if self._plan is None:
            return False
        return self._aside or step.on not in (None, self._plan.main.name)

    def on_roles(self, steps: tuple[Step, ...]) -> bool:
        """Whether some of these steps load on another role than the main one: all roles must walk over them alike."""
        return self._plan is not None and any(isinstance(s, Place) and s.on not in (None, self._plan.main.name) for s in steps)

    def chain(self, frame: Frame, i: int) -> ir.Stmt:
        """The statements of steps i, i+1, ...; of a role that only loads, none below its last load."""
        if self._aside and frame.task is self._main_task and not any(self._is_mine(s) for s in frame.steps[i:]):
            return ir.seq()
        return super().chain(frame, i)

    def _is_mine(self, step: Step) -> bool:
        return self._role is not None and isinstance(step, Place) and step.on == self._role.name

    def accumulate(self, frame: Frame, i: int, step: Place) -> ir.Stmt:
        """The scope of an accumulator; a role that only loads walks through it."""
        if not self._aside or frame.task is not self._main_task:
            return super().accumulate(frame, i, step)
        walked = frame.but(state=StatePlace(((),), step.memory), outer=frame.state, slots=(), walks=(), idle=())
        return self.chain(walked, i + 1)

    def compute(self, frame: Frame, i: int, step: Place) -> ir.Stmt:
        """A stage; a role that only loads leaves it to the main one."""
        return self.chain(frame, i + 1) if self._aside else super().compute(frame, i, step)

    def via(self, frame: Frame, i: int, step: Place) -> ir.Stmt:
        """A stop of results; a role that only loads has none."""
        return self.chain(frame, i + 1) if self._aside else super().via(frame, i, step)

    def load(self, frame: Frame, i: int, step: Place) -> ir.Stmt:
        """A load; on another role than the one that is built it is awaited there."""
        if not self.by_role(step):
            return super().load(frame, i, step)
        if self._aside and not self._is_mine(step):
            return self.chain(frame, i + 1)
        beside = [step]  # loads that stand beside each other share the barriers of their slots
        for other in frame.steps[i + 1 :]:
            if not (isinstance(other, Place) and other.verb == "load" and (other.on, other.ahead) == (step.on, step.ahead)):
                break
            beside.append(other)
        return self._filled_ring(frame, i, beside) if self._aside else self._emptied_ring(frame, i, beside)

    # ------------------------------------------------------------ both ends of a ring

    def _emptied_ring(self, frame: Frame, i: int, loads: list[Place]) -> ir.Stmt:
        """In the main role: what stands below the loads reads a slot while it is full."""
        assert self._plan is not None
        signals, together = self._signals_of(frame, i, loads), self._together(self._plan.main)
        slot, use = _place(frame, signals)
        boxes = tuple(self._slot_of(frame, k, step, slot)[0] for k, step in enumerate(loads, i))
        body = self.chain(frame.but(residences=(*frame.residences, *boxes)), i + len(loads))
        span = loads[0].span
        left = ir.Arrive(signals.empty, slot, together, 0, span, signals.in_cluster)
        return ir.seq(ir.Await(signals.full, slot, use, span), body, left)

    def _filled_ring(self, frame: Frame, i: int, loads: list[Place]) -> ir.Stmt:
        """In a role that only loads: the moves into a slot that is empty."""
        assert self._role is not None
        signals, span = self._signals_of(frame, i, loads), loads[0].span
        slot, use = _place(frame, signals)
        moves, bytes, boxes = list[ir.Stmt](), 0, list[Residence]()
        for k, step in enumerate(loads, i):
            box, move, elements = self._slot_of(frame, k, step, slot, signals)
            boxes.append(box)
            if _by_bytes(step):
                bytes += elements * box.buffer.dtype.bytes
            moves.append(
                ir.seq(move, ir.Commit(step.span), ir.Wait(0, step.span))
                if self.completes_later(self.build.ring(frame.key(k)), step)
                else move
            )
        rest = self.chain(frame.but(residences=(*frame.residences, *boxes)), i + len(loads))
        emptied = ir.Await(signals.empty, slot, simplify(1 - use), span)
        announced = ir.Arrive(signals.full, slot, 1, bytes, span) if bytes else None
        one = self.build.thread < 1
        if all(map(_by_bytes, loads)):
            return ir.joined(ir.If(one, ir.seq(emptied, announced), None, span), *moves, rest)
        by_hand = ir.Arrive(signals.full, slot, self._together(self._role), 0, span)
        return ir.seq(emptied, announced and ir.If(one, announced, None, span), *moves, by_hand, rest)

    def _slot_of(self, frame: Frame, k: int, step: Place, slot: Expr, signals: Signals | None = None
                 ) -> tuple[Residence, ir.Stmt, int]:  # fmt: skip
        """Where the readers of a load find it, the move that fills it, and how many elements that brings.

        signals: of the ring that it fills; None where another role does.
        """
        region, uses = self.region(frame, k, step)
        ring = self.build.ring(frame.key(k))
        box = self.box_for(frame, step, region, ring, slot)
        mine, move = divided(self.build, step, region.spec), ir.seq()
        if signals is not None and not nobody_reads(frame, uses):
            of = Move(ring, (signals.full, slot), shares(mine) is not None)
            move = self.move(frame, mine, region, Target((box,), step.stream), of)
        return box, move, math.prod(a.extent for a in region.spec.axes)

    def _signals_of(self, frame: Frame, i: int, loads: list[Place]) -> Signals:
        """The barriers of the ring that some loads share: made by the main role, found again by theirs."""
        assert self._plan is not None
        counted = _counted(frame, loads[0])
        known = self._signals.get(frame.key(i))
        if known is not None:
            if known.counted != counted:
                raise refuse(loads[0], "not-lowered-yet", f"`{loads[0]}`: loops in which one role has fewer iterations are valid, but"
                             " not supported yet for this target", "remove the role from the load")  # fmt: skip
            return known
        slots, stem = loads[0].ahead + 1, "_".join(dict.fromkeys(s.tensor_name for s in loads))
        full, empty = (self.build.buffer(f"{stem}_{what}", dt.uint64, (slots,), "shared", "phases") for what in ("full", "empty"))
        theirs = next(r for r in self._plan.others if r.name == loads[0].on)
        by_bytes, by_hand = any(map(_by_bytes, loads)), not all(map(_by_bytes, loads))
        arrivals = int(by_bytes) + by_hand * theirs.threads // self._together(theirs)
        main = self._plan.main.threads // self._together(self._plan.main)
        in_cluster = any(map(is_multicast, loads))
        if in_cluster:
            _check_alike(frame, loads[0])
            main *= self.build.cluster
        self._signals[frame.key(i)] = found = Signals(full, empty, slots, arrivals, main, in_cluster, counted)
        return found

    def _together(self, role: Role) -> int:
        """How many threads of a role arrive as one: those that run in lockstep."""
        profile = self.build.profile
        sizes = [f.threads for f in profile.levels if f.lockstep and f.threads and role.threads % f.threads == 0]
        return max(sizes, default=1)


def _by_bytes(step: Place) -> bool:
    last = step.steps[-1] if step.steps else None
    return isinstance(last, Do) and use(last.instruction).completes == BARRIER_BY_BYTES


def _counted(frame: Frame, step: Place) -> tuple[tuple[int, Expr], ...]:
    """The walks around a load: their rounds, and where the outermost one ends. Every round inside it must be there."""
    for depth, walk in enumerate(frame.rounds):
        if not (walk.whole if depth else isinstance(walk.first, Const) and walk.first.value == 0):
            raise refuse(step, "not-lowered-yet", f"`{step}`: its loop over {walk.axis} has fewer iterations in some iterations of an"
                         " enclosing loop, which is valid for a load on a role, but not supported yet for this target",
                         "use tile sizes that divide the extent, or remove the role from the load")  # fmt: skip
    return tuple((walk.rounds, walk.end if depth == 0 else index(walk.rounds)) for depth, walk in enumerate(frame.rounds))


def _check_alike(frame: Frame, step: Place) -> None:
    """All blocks of a cluster fill a ring together in every round, so they must all have it."""
    for walk in frame.rounds:
        if not (walk.whole or walk.axis == "block"):
            raise refuse(step, "not-lowered-yet", f"`{step}`: a loop over {walk.axis} that may end sooner in some blocks of a cluster"
                         " is valid for data that they load together, but not supported yet for this target",
                         "use tile sizes that divide the extent, or a separate load for each block")  # fmt: skip


def _place(frame: Frame, signals: Signals) -> tuple[Expr, Expr]:
    """The slot of the current round, and the parity of its barriers' current phase."""
    number: Expr = index(0)
    for walk in frame.rounds:
        number = number * walk.rounds + walk.var
    number = simplify(number)
    return simplify(number % signals.slots), simplify(number // signals.slots % 2)
