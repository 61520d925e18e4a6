"""Builds a program from a computation and its steps: its kernels, their buffers and their order.

Kernels without steps of their own (nested reductions, the second kernels of split reductions) get a plain default schedule.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

from tilelang.computations.computation import Computation, Tensor
from tilelang.core import dtype as dt
from tilelang.core.expr import Call, Expr, Read, index
from tilelang.core.simplify import FALSE, interval
from tilelang.errors import Refusal, at_step
from tilelang.lowering import ir
from tilelang.lowering.build.clusters import plan_clusters
from tilelang.lowering.build.default_schedules import combining_steps, default_steps
from tilelang.lowering.build.distribution.parallel_mapping import check_level, following_owners, units_numbered
from tilelang.lowering.build.frame import Build, Frame, Parted, Target
from tilelang.lowering.build.instruction.checks import check_lowered
from tilelang.lowering.build.instruction.match import written_out
from tilelang.lowering.build.lower_steps import chain
from tilelang.lowering.build.movement.staging import with_stops
from tilelang.lowering.build.movement.storage import Box, Partial, Residence, Scalar, Whole
from tilelang.lowering.build.pipelining.producer_loads import all_roles
from tilelang.lowering.build.pipelining.warp_specialization import Plan, plan_roles
from tilelang.lowering.build.reductions.over_blocks import over_blocks
from tilelang.lowering.build.refusals import laid_out, refuse
from tilelang.lowering.passes.allocate_shared import with_buffers
from tilelang.profiles.profile import Profile
from tilelang.schedules.check import axis_extents, resolve_when, tensor_kinds
from tilelang.schedules.checked_steps import CheckedSteps, check_steps
from tilelang.schedules.explain import Chain
from tilelang.schedules.shared_loops import loop_of, with_stages
from tilelang.schedules.spec import complete, root_spec
from tilelang.schedules.steps import Inline, Place, Split, Step, Tile, Units, every_step
from tilelang.schedules.task import (
    Task,
    Unplaced,
    is_stored,
    made_with,
    make_task,
    placed_names,
    prefix_of,
    stored_names,
    task_of,
    tasks_of,
)
from tilelang.schedules.walk import Extents, walk_steps
from tilelang.semantics.loop_members import SharedLoop


def build_program(
    computation: Computation, steps: tuple[Step, ...], profile: Profile, told: dict[str, None] | None = None
) -> ir.Program:
    """Kernel IR for a computation and a schedule's steps. told: collects texts that say why guards are kept or dropped. Raises
    Refusal."""
    return _Assembly(computation, steps, profile, told).program()


class _Assembly:
    def __init__(self, computation: Computation, steps: tuple[Step, ...], profile: Profile, told: dict[str, None] | None) -> None:
        self.computation, self.profile, self.told = computation, profile, told
        chosen = resolve_when(steps, axis_extents(computation), profile)
        if chosen != resolve_when(steps, axis_extents(computation)):  # steps for this device, which were not checked before
            CheckedSteps(computation, chosen).raise_refused()
        steps = with_stages(computation, with_stops(chosen))
        head = prefix_of(steps)
        for own in (*(s.steps or () for s in head), tuple(s.replace(steps=None) if s in head else s for s in steps)):
            check_lowered(own, profile)  # each kernel has its own roles
        self.repacked = [s for s in head if s.verb == "load"]
        for s in head:
            if s.verb not in ("compute", "load") or s.memory != "global":
                raise refuse(s, "not-lowered-yet", f"`{s}` is valid, but not supported yet for this target",
                             "remove it, and read the tensor where it is")  # fmt: skip
            if s.verb == "compute" and s.layout is not None:
                raise refuse(s, "not-lowered-yet", f"`{s}`: a layout for a tensor that is computed in global memory is valid, but not"
                             " supported yet", "remove the layout")  # fmt: skip
        self.given, self.steps = steps, tuple(s for s in steps if s not in head)
        self.tensors = {t.name: t for t in computation.inputs}
        self.tensors.update({t.name: t for d in computation.definitions for t in d.tensors})
        self.heads = {made_with(self.tensors[s.tensor_name])[0].name: s for s in head if s.verb == "compute"}  # by a task's name
        self.buffers: dict[str, ir.Buffer] = {}
        self.places: dict[Tensor, Residence] = {}
        self.made: set[Tensor] = set()  # made by the kernels so far; other outputs have buffers, but no values yet
        self._placed = frozenset(placed_names(computation, self.steps))  # placed in the kernel being built
        self._tasks: dict[tuple[str, int, frozenset[str]], Task] = {}  # by name, number of tensors made, and placed names
        self._combining: Mapping[str, Task] = {}  # of the kernel that combines partial results: its stages, by each tensor's name
        self.kernels: list[ir.Kernel] = []
        self.chains: list[Chain] = []
        self.elsewhere: dict[str, str] = {}  # by tensor, a reader of it that is a separate kernel
        self.fast_math = _licensed(computation)
        self._check_inline()

    def _check_inline(self) -> None:
        for s in self.steps:
            if isinstance(s, Inline) and (d := self.tensors[s.tensor].definition) is not None and d.reduction is not None:
                raise refuse(
                    s,
                    "inline-reduction",
                    f"`{s}`: {s.tensor} is a reduction, which cannot be inlined",
                    f"compute {s.tensor} in shared or global",
                )

    def program(self) -> ir.Program:
        _check_types(self.computation)
        for t in self.computation.inputs:
            self._global(t, "input")
        for t in self.computation.outputs:
            self._global(t, "output")
        for step in self.repacked:
            self._repack(step)
        tasks = tasks_of(self.computation, self.given)
        self.elsewhere = {r.tensor.name: t.name for t in reversed(tasks[:-1]) for r in t.reads()}
        for task in tasks[:-1]:
            head = self.heads.get(task.name)
            own, self._placed = (
                self._placed,
                frozenset(placed_names(self.computation, (head.steps if head is not None else None) or ())),
            )
            self._kernel_before(task, head.steps if head is not None else None)
            self._placed = own
        clusters = plan_clusters(tasks[-1], self.steps, self.profile)
        self._kernels(tasks[-1], clusters.steps, clusters.blocks)
        return ir.Program(tuple(self.kernels), tuple(self.buffers.values()), tuple(self.chains))

    def _global(self, t: Tensor, role: str) -> None:

        stored = dt.uint8 if t.dtype.kind == "bool" else t.dtype
        buffer = ir.Buffer(t.name, stored, tuple(t.shape) or (1,), "global", role)
        self.buffers[t.name] = buffer
        self.places[t] = Scalar(t, None, buffer) if not t.shape else Whole(t, None, buffer)

    def _repack(self, step: Place) -> None:
        """A kernel that copies an input into a workspace with another layout, from which all later kernels read it."""
        tensor = self.tensors.get(step.tensor_name)
        if tensor is None or tensor.definition is not None:
            raise refuse(step, "load-of-definition", f"`{step}` above the first block: {step.tensor_name} is not an input",
                         f"compute {step.tensor_name} in global")  # fmt: skip
        placement = laid_out(step, {d.name: d.extent for d in tensor.dims}, tensor.dtype.bytes)
        before = sum(b.name.startswith(f"{tensor.name}_packed") for b in self.buffers.values())
        name = f"{tensor.name}_packed" + (f"_{before + 1}" if before else "")
        buffer = ir.Buffer(name, self.buffers[tensor.name].dtype, placement.shape, "global", "workspace")
        zero = tuple(index(0) for _ in tensor.dims)
        task = Task(f"{tensor.name}_pack", (tensor,), tensor.dims, (Read(tensor, tensor.dims),))
        if step.steps is not None:
            check_steps(root_spec(task), step.steps, task, tensor_kinds(self.computation))
        self.buffers[buffer.name] = buffer
        box = Box(tensor, None, buffer, low=zero, placement=placement)
        self._kernel(task, step.steps if step.steps is not None else default_steps(task, self.profile), Target((box,)))
        self.places[tensor] = box

    def _loop_of(self, step: Split) -> SharedLoop:
        return loop_of(self.computation, step)

    def _task_of(self, name: str) -> Task:
        if name in self._combining:
            return self._combining[name]
        key = name, len(self.made), self._placed  # the number of made tensors only grows
        if key not in self._tasks:
            self._tasks[key] = task_of(self.tensors[name], lambda t: t.name in self._placed or t in self.made)
        return self._tasks[key]

    # ------------------------------------------------------------ kernels

    def _kernel_before(self, task: Task, steps: tuple[Step, ...] | None = None) -> None:
        """Kernels that make tensors in global memory for later kernels. steps: None for the plain schedule."""
        for t in task.outputs:
            if t not in self.places:
                self._global(t, "workspace")
        if steps is not None:
            check_steps(root_spec(task), steps, task, tensor_kinds(self.computation))
            read = self._names_read(task, steps)
            for s in (s for s in every_step(steps) if isinstance(s, Place) and s.verb == "compute"):
                if not is_stored(s) and not read & placed_names(self.computation, (s.replace(steps=None),)):
                    raise refuse(s, "stage-unread", f"`{s}`: nothing in the kernel of {task.name} reads {s.tensor_name}",
                                 "remove the `compute`")  # fmt: skip
        clusters = plan_clusters(task, default_steps(task, self.profile) if steps is None else steps, self.profile)
        self._kernels(task, clusters.steps, clusters.blocks)
        self.made.update(task.outputs, self._stored(steps or ()))

    def _stored(self, steps: tuple[Step, ...]) -> list[Tensor]:
        """The outputs that the stages of a kernel store."""
        return [self.tensors[name] for name in stored_names(self.computation, steps)]

    def _kernels(self, task: Task, steps: tuple[Step, ...], cluster: int = 1) -> None:
        """One kernel, or two if a reduction is split over blocks. cluster: the number of blocks per cluster."""
        parts = _parts(task, steps)
        if not parts:
            self._kernel(task, steps, Target(tuple(self.places[t] for t in task.outputs)), cluster)
            return
        self._split_kernels(task, steps, parts)

    def _split_kernels(self, task: Task, steps: tuple[Step, ...], grid: Mapping[str, tuple[int, int]]) -> None:
        """A kernel that stores each block's partial results in a workspace, and a second one that combines them. grid: as from
        `_parts`."""
        loop = next((self._loop_of(s) for s in steps if isinstance(s, Split) and s.of), None)
        made = over_blocks(task, loop, grid)
        for partial in made.partial.values():
            self._global(partial, "workspace")
        pieces = tuple((name, size) for name, (size, _) in grid.items())
        slots = {t: Partial(t, None, self.buffers[p.name], grid=pieces) for t, p in made.partial.items()}
        held = tuple(t for state in task.states for t in state.tensors)
        staged, looped = [t for t in slots if t not in held], loop.tensors if loop is not None else ()
        first = Task(task.name, held, task.axes, tuple(Read(t, task.axes) for t in held), task.states)
        whole, idle = self._from_memory(task, [*self._stored(steps), *staged]), self._unread_stages(first, steps, looped)
        notes = [f"`{s}`: no effect, because only the kernel that combines partial results reads {s.tensor_name}" for s in idle]
        parted = Parted(first, {t: slots[t] for t in staged}, whole) if staged else None
        kept = tuple(s for s in steps if s not in idle)
        self._kernel(first, kept, Target(tuple(slots[t] for t in held)), notes=notes, parted=parted)
        second = Task(f"{task.name}_combine", task.outputs, task.axes, whole.values, made.states)
        self._combining = made.stages
        target = Target(tuple(self.places[t] for t in task.outputs))
        self._kernel(second, combining_steps(second, self.profile, tuple(made.stages)), target)
        self._combining = {}

    def _unread_stages(self, task: Task, steps: tuple[Step, ...], kept: Sequence[Tensor]) -> list[Place]:
        """The stages of a schedule that neither the task nor its other stages read, and that make none of some tensors."""
        stages = {s: self._task_of(s.tensor_name) for s in steps if isinstance(s, Place) and s.verb == "compute"}
        idle: list[Place] = []
        while True:
            readers = [task, *(t for s, t in stages.items() if s not in idle)]
            read = {r.tensor for t in readers for r in t.reads() if t.state_member(r.tensor) is None}
            read |= set(kept)
            found = [s for s, made in stages.items() if s not in idle and not is_stored(s) and not read & set(made.outputs)]
            if not found:
                return idle
            idle += found

    def _from_memory(self, task: Task, stored: Sequence[Tensor]) -> Task:
        """A task for a kernel without stages: what it read from stages of another kernel is substituted, or made by kernels
        before it, unless that kernel stored it."""
        own = {t for state in task.states for t in state.tensors}
        read = {e.tensor for v in task.values for e in v.walk() if isinstance(e, Read) and e.tensor.definition is not None}
        if read <= {*own, *self.made, *stored}:
            return task

        def make() -> Task:
            made = make_task(task.outputs, lambda t: t in self.made or t in stored)
            for state in made.states:
                if not own.issuperset(state.tensors):  # a stage that could be an accumulator of the task
                    raise Unplaced(state.tensors[0])
            return made

        return self._with_made_before(make)

    def _with_made_before(self, make: Callable[[], Task]) -> Task:
        """A task, after kernels that make the reductions it needs, and the reductions that those need."""
        while True:
            try:
                return make()
            except Unplaced as missing:
                needed = functools.partial(task_of, missing.tensor, lambda t: t in self.made)
                self._kernel_before(self._with_made_before(needed))

    def _kernel(
        self, task: Task, steps: tuple[Step, ...], target: Target, cluster: int = 1, notes: Sequence[str] = (),
        parted: Parted | None = None,
    ) -> None:  # fmt: skip
        spec = root_spec(task)
        done = complete(spec, steps, bool(task.states))
        roles = plan_roles(steps, self.profile)
        threads = self._threads(done, spec.extents, roles)
        steps = roles.steps if roles is not None else steps
        mine = threads if roles is None else roles.main.threads
        build = Build(
            chain,
            self.profile,
            mine,
            self._task_of,
            self.tensors,
            cluster,
            self.told,
            self._loop_of,
            {t: self.places[t] for t in self.computation.outputs},
            parted,
        )
        for note in notes:
            build.note(note)
        steps = self._read_here(build, task, steps)
        if threads > 1:
            steps = self._followed(build, task, spec.extents, steps)
        # Inputs, partial results, and what earlier kernels made: other outputs have no values yet.
        filled = tuple(p for t, p in self.places.items() if t.definition is None or t in self.made)
        build.counters.update(dict.fromkeys((*self.buffers, *(v.name for v in (*ir.BLOCK, ir.THREAD))), 1))
        if not any(isinstance(s, Tile) and s.level == "block" for s in done):
            spec = spec.replace(units=build.threads, lane=build.thread)
        frame = written_out(build, Frame(task, (), spec, target, filled), steps, _stored_in(task, steps))
        body = chain(build, frame, 0) if roles is None else all_roles(build, roles, frame)
        self.chains += build.chains
        if any(a.extent == 0 for a in task.axes):
            build.grid = [0]
        grid = tuple([*build.grid, 1, 1, 1][:3]) if build.grid else (1, 1, 1)
        if any(a.extent == 0 for a in (*task.axes, *task.reduction_axes)):
            body = ir.Seq(()) if 0 in grid else _reached(body)
        used = {b.name for s in ir.statements(body) for b, _ in ir.touched(s)}
        held = [b for n, b in self.buffers.items() if n in used] + [b for n, b in build.buffers.items() if n in used]
        loops = (s.var.upper or interval(s.extent)[1] or 0 for s in ir.statements(body) if isinstance(s, ir.For))
        largest = max((*(b.elements for b in self.buffers.values()), *loops), default=1)
        name = identifier(task.name if not self.kernels else f"{task.name}_{len(self.kernels)}")
        width = 64 if largest >= 2**30 else 32
        kernel = ir.Kernel(name, grid, threads, tuple(held), body, width, fast_math=self.fast_math, notes=tuple(build.notes),  # type: ignore[arg-type]
                           cluster=cluster)  # fmt: skip
        self._check_registers(kernel)
        for run in build.runs:
            run.check(build.room.get(run.buffer.name, run.buffer))
        self.kernels.append(with_buffers(kernel, build.room) if build.room else kernel)

    def _check_registers(self, kernel: ir.Kernel) -> None:
        """Refuses instructions that need more registers than a thread can have in a block of this size."""
        most = self.profile.most_registers(kernel.threads)
        for s in ir.statements(kernel.body):
            if isinstance(s, ir.Instruction) and (needed := s.semantics.registers) > most:
                per, block = s.semantics.lanes, self.profile.max_block_threads
                fewer = max((n for n in range(per, block + 1, per) if self.profile.most_registers(n) >= needed), default=0)
                help = "an instruction with a smaller accumulator"
                help = f"use blocks of at most {fewer} threads, or {help}" if fewer else f"use {help}"
                message = (
                    f"`do {s.semantics.name}` needs {needed} registers per thread, but in a block of {kernel.threads} threads"
                    f" each has at most {most}"
                )
                raise Refusal("registers-too-many", message, span=s.span, help=help)

    def _read_here(self, build: Build, task: Task, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        """The steps without loads that nothing reads in this kernel yet: in a prefix of a schedule, the reader may be a
        separate kernel."""
        read = self._names_read(task, steps)
        waiting = [s for s in steps if isinstance(s, Place) and s.verb == "load" and s.tensor_name not in read]
        waiting = [s for s in waiting if s.tensor_name in self.elsewhere]
        for s in waiting:
            reader = self.elsewhere[s.tensor_name]
            build.note(f"`{s}`: no effect, because {s.tensor_name} is read by {reader}, which is a separate kernel")
        return tuple(s for s in steps if not any(s is w for w in waiting))

    def _names_read(self, task: Task, steps: tuple[Step, ...]) -> set[str]:
        """The tensors that a task reads, including those that its stages read."""
        placed, read, found = placed_names(self.computation, steps), set[str](), [task]
        while found:
            new = {r.tensor.name for r in found.pop().reads()} - read
            found += [self._task_of(name) for name in sorted(new & placed)]
            read |= new
        return read

    @staticmethod
    def _followed(build: Build, task: Task, left: Extents, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        """The steps; if they map nothing to units, with the tiles of a register operand's owners added (`explain` shows them)."""
        found = following_owners(task, left, steps)
        if found != steps:
            spread = "; ".join(str(s) for s in found if s not in steps)
            build.note(f"({spread}): implied, so that each thread uses the operands in its own registers")
        return found

    def _threads(self, steps: tuple[Step, ...], left: Extents, roles: Plan | None) -> int:
        """The threads of a block: as `units` says, else the product of the tiles below the block."""
        said = next((s for s in steps if isinstance(s, Units) and s.level == "block"), None)
        for s in steps:
            if isinstance(s, Tile) and s.level not in ("cluster", "block") and (roles is None or s.level != roles.main.name):
                check_level(self.profile, s)
        if roles is not None:
            count = roles.threads
            why = " and ".join(f"{r.threads} of the {r.name}" for r in (roles.main, *roles.others))
        elif said is None:
            count = self._derived(steps, left)
            why = f"the steps `tile ... ->` below the block multiply to {count} threads"
        else:
            count = said.teams[0].count * self._unit_threads(said)
            why = f"{said.teams[0].count} {said.teams[0].level}s of {count // said.teams[0].count} threads each"
        most = self.profile.max_block_threads
        if count > most:
            worst = said or next((s for s in reversed(steps) if isinstance(s, Tile) and s.level != "block"), None)
            raise refuse(worst, "too-many-threads", f"a block needs {count} threads, but the profile `{self.profile.name}` allows at"
                         f" most {most}",
                         "use larger tiles per thread, or limit the number of threads: -> thread N", why)  # fmt: skip
        return max(1, count)

    def _unit_threads(self, step: Units) -> int:
        """The threads of each unit that `units` names."""
        try:
            return self.profile.level(step.teams[0].level).threads or 1
        except Refusal as error:
            raise at_step(error, step) from None

    def _derived(self, steps: tuple[Step, ...], left: Extents) -> int:
        total, inside = 1, 1  # inside: the threads of the unit that the last tile was mapped to
        for w in walk_steps(left, steps):
            s, rounds = w.step, w.rounds
            if isinstance(s, Tile) and s.level not in ("cluster", "block"):
                tiles = units_numbered(s.order, rounds) if len(rounds) == len(s.sizes) else 1
                per = self.profile.level(s.level).threads or 1
                units = s.count if isinstance(s.count, int) else tiles
                if inside > 1:  # the tiles mapped to a warp's threads must fill the warp
                    if units * per != inside:
                        raise refuse(s, "warp-not-filled", f"`{s}` maps tiles to {units} {s.level}s, but the enclosing unit has"
                                     f" {inside // per}",
                                     f"choose tiles so that there are {inside // per}; or write `units`, and each {s.level} processes"
                                     " several tiles",
                                     f"{s.level} {min(units, inside // per)} of {inside // per} has no tile"
                                     if units * per < inside else f"tile {inside // per} of {units} has no {s.level}")  # fmt: skip
                    inside = per
                else:
                    total *= units * per
                    inside = per
        return total


def _reached(stmt: ir.Stmt) -> ir.Stmt:
    """A statement without unreachable parts, such as the body of a reduction over no points, so that they need no memory."""
    if isinstance(stmt, ir.If) and stmt.condition is FALSE:
        return ir.Seq(()) if stmt.otherwise is None else _reached(stmt.otherwise)
    made: ir.Stmt = stmt.map_children(lambda child: _reached(child) if isinstance(child, ir.Stmt) else child)
    return made.body if isinstance(made, ir.For) and isinstance(made.body, ir.Seq) and not made.body.body else made


def _check_types(computation: Computation) -> None:
    """Refuses types that are not lowered yet, of tensors and of subexpressions of definitions."""
    written = [(t, e) for d in computation.definitions for t, e in zip(d.tensors, d.written or (), strict=False)]
    held = [(t, f"{t.name} is", t.dtype) for t in (*computation.inputs, *(t for t, _ in written))]
    held += [(t, f"a part of {t.name} is", e.dtype) for t, value in written for e in value.walk() if isinstance(e, Expr)]
    for t, what, dtype in held:
        if dtype.later:
            raise Refusal("not-lowered-yet", f"{what} {dtype}, which is valid, but not supported yet", span=t.span,
                          help="use a float type, an integer type of 8 bits or more, or bool")  # fmt: skip


def _licensed(computation: Computation) -> tuple[str, ...]:
    """The functions that may be computed less accurately: all definitions that call them must allow it."""
    calls = [
        d for d in computation.definitions if any(isinstance(e, Call) and e.name == "exp" for v in d.values for e in v.walk())
    ]
    return ("exp",) if calls and all("fast_exp" in d.allow for d in calls) else ()


def _parts(task: Task, steps: tuple[Step, ...]) -> dict[str, tuple[int, int]]:
    """For every reduced axis that is split over blocks, after `fuse` and `unfuse`: the tile size and the number of tiles."""
    for w in walk_steps(root_spec(task).extents, steps):
        if isinstance(w.step, Tile) and w.step.level == "block":
            return {a: (w.piece[a], n) for a, n in w.rounds.items() if a in w.before.reduced}
    return {}


def _stored_in(task: Task, steps: tuple[Step, ...]) -> str:
    """The memory that the innermost statement of a chain without reductions stores to; empty if there are reductions."""
    stops = [s.memory for s in steps if isinstance(s, Place) and s.verb == "via" and s.memory != "register"]
    return "" if task.states else (stops or ["global"])[-1]


def identifier(name: str) -> str:
    """A name as a kernel's identifier; long names are cut, because drivers make file names from them."""
    return "".join(c if c.isalnum() or c == "_" else "_" for c in name)[:64]
