"""Loops that several reductions share, with repairs of those that read the running value of another one.

The running value of a stage of the loop (`compute peak in register`) is in a buffer that outlives the loop. Each iteration first
repairs it, if it depends on other running values, and then combines the terms of the chunk into it. The old value is kept beside
the new one while a repair needs both. The kernel's own accumulators are repaired when the iteration has made all stages: in
registers at once, in shared memory when the accumulators of a chunk are added to them. After the loop, the same buffers hold the
final values.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tilelang.computations.computation import Tensor
from tilelang.core.expr import Binary, Call, Const, Expr, Read, index, substitute
from tilelang.core.simplify import conjunction, simplify
from tilelang.lowering import ir
from tilelang.lowering.build.accesses import settled
from tilelang.lowering.build.distribution.parallel_mapping import digits
from tilelang.lowering.build.frame import Build, Frame, StatePlace, Target
from tilelang.lowering.build.reads import state_indices, value_at
from tilelang.lowering.build.reductions.combine import as_logical, stored
from tilelang.lowering.build.reductions.cross_thread import each
from tilelang.lowering.build.reductions.results import stored_pointwise
from tilelang.lowering.build.refusals import refuse
from tilelang.lowering.guards import Effect
from tilelang.schedules.check import later
from tilelang.schedules.spec import Bound
from tilelang.schedules.steps import Place, Split, Step, Tile, every_step
from tilelang.schedules.task import State, Task, is_stored
from tilelang.semantics.loop_members import Member, SharedLoop
from tilelang.semantics.repair import Repair, before, now

if TYPE_CHECKING:
    from tilelang.lowering.build.movement.storage import Residence


@dataclasses.dataclass(frozen=True)
class Shared:
    """The state of a shared loop while its body is lowered.

    stages: the step that makes each of its tensors, by name. old: for each tensor whose previous value a repair reads, the tensor
    that holds it. changes: for repairs that follow a single stage, by stage and change, the tensor that holds the change, which is
    computed once for each element of the stage. made: the stages that this iteration has already made.
    """

    loop: SharedLoop
    stages: Mapping[str, Place]
    old: Mapping[Tensor, Tensor] = dataclasses.field(default_factory=dict)
    changes: Mapping[tuple[Tensor, Expr], Tensor] = dataclasses.field(default_factory=dict)
    made: frozenset[Place] = frozenset()

    def member(self, name: str) -> Member | None:
        """The member that makes the tensor with this name, if it is a stage."""
        if name not in self.stages:
            return None
        return next(m for m in self.loop.members if any(t.name == name for t in m.definition.tensors))

    def is_pending(self, tensor: Tensor) -> bool:
        """Whether a tensor still has its value of the previous iteration."""
        return tensor.name in self.stages and self.stages[tensor.name] not in self.made

    def after(self, step: Place) -> Shared:
        return dataclasses.replace(self, made=self.made | {step})

    @property
    def complete(self) -> bool:
        """Whether this iteration has made all stages."""
        return self.made >= set(self.stages.values())


# ---------------------------------------------------------------- around the loop


def begin(build: Build, frame: Frame, i: int, step: Split) -> tuple[ir.Stmt, Frame]:
    """The statements before a shared loop, which initialize the running values, and the frame inside it, which has their buffers."""
    from tilelang.lowering.build.movement.materialize import stage_places  # late: each imports the other
    from tilelang.lowering.build.movement.stages import check_stored  # late: each imports the other

    loop = build.loop_of(step)
    stages = _stages(build, frame, i, step, loop)
    _check_states(frame, i, step, loop)
    read = {r.tensor for m in loop.members if m.repair is not None for r in m.repair.reads}
    own = [t for t in loop.tensors if t.name in stages]
    old = {t: Tensor(f"{t.name}_before", t.dtype, t.dims) for t in own if t in read}
    changes = _changes(loop)
    if build.threads > 1:  # one in shared memory would cost the other threads as much as its computation
        changes = {key: change for key, change in changes.items() if stages[key[0].name].memory == "register"}
    shared = Shared(loop, stages, old, changes)
    inside = frame.replace(spec=frame.spec.cut(dict(_sizes(step)), {loop.axis: index(0)}), shared=shared)
    out: list[ir.Stmt] = []
    found: list[Residence] = []
    for place in dict.fromkeys(stages.values()):
        member = shared.member(place.tensor_name)
        assert member is not None
        k = next(k for k, s in enumerate(frame.steps) if s is place)
        if is_stored(place):
            check_stored(build, frame, place, build.task_of(place.tensor_name))
            if any(t in old or any(t is of for of, _ in changes) for t in member.definition.tensors):
                later(place, f"an output whose running value a repair of `{step}` reads")
        for tensor, at in zip(member.definition.tensors, stage_places(build, inside, k, place), strict=True):
            identity = member.reduce.combiner.identity[tensor.member]
            if is_stored(place):
                found.append(at)
                out.append(_begun(build, inside, k, place, at, identity))
                inside = inside.replace(residences=(*inside.residences, at))
                continue
            copies = [at]
            if tensor in old:
                copies.append(_beside(build, at, old[tensor]))
            copies += [_beside(build, at, change) for (of, _), change in shared.changes.items() if of is tensor]
            found += copies
            out += [_filled(build, frame, c.buffer, identity, step) for c in copies]
            inside = inside.replace(residences=(*inside.residences, *copies))
    frame = frame.replace(residences=(*frame.residences, *found), shared=shared)
    build.running[frame.key(i)] = tuple(found)
    return ir.seq(*out), frame


def _begun(build: Build, frame: Frame, k: int, step: Place, at: Residence, identity: Const) -> ir.Stmt:
    """Sets the elements that a loop adds up in an output itself to the identity. frame: inside the loop; k: of the step."""
    from tilelang.lowering.build.movement.stages import stage_frame  # late: each imports the other

    stage = stage_frame(build, frame, k, k, step)
    task = Task(stage.task.name, (at.tensor,), stage.task.axes, (identity,))
    return stored_pointwise(build, stage.replace(shared=None), task, Target((at,)), (), None)


def in_loading_role(build: Build, frame: Frame, i: int, step: Split) -> Frame:
    """The frame of a shared loop in a role that only loads: it loads the regions of a chunk; the running values are in the
    main role."""
    loop = build.loop_of(step)
    return frame.replace(shared=Shared(loop, _stages(build, frame, i, step, loop)))


def _sizes(step: Split) -> list[tuple[str, int]]:
    return [(a, n) for a, n in step.sizes if isinstance(n, int)]


def finished(build: Build, frame: Frame, i: int) -> Frame:
    """The frame after a shared loop, in which the buffers of its stages have their final values."""
    return frame.replace(residences=(*frame.residences, *build.running.get(frame.key(i), ())))


def _stages(build: Build, frame: Frame, i: int, step: Split, loop: SharedLoop) -> dict[str, Place]:
    """The `compute` steps of a loop's stages, which must be directly below it."""
    states = {t.name for s in frame.task.states for t in s.tensors}
    body = list(itertools.takewhile(lambda s: isinstance(s, Place) and s.verb != "accumulate", frame.steps[i + 1 :]))
    placed = {s.tensor_name: s for s in reversed(body) if isinstance(s, Place) and s.verb == "compute"}
    found: dict[str, Place] = {}
    for member in loop.members:
        names = [t.name for t in member.definition.tensors]
        at = next((placed[n] for n in names if n in placed), None)
        if at is None and states.issuperset(names):
            continue
        if at is None:
            written = next((s for s in frame.steps if isinstance(s, Place) and s.tensor_name in names), None)
            help = f"write `compute {names[0]} in register`" if written is None else f"move `{written}`"
            raise refuse(written or step, "shared-stage-place", f"`{step}` needs a `compute {names[0]}` directly below it, before any"
                         " step that divides the chunk", f"{help} directly below `{step}`")  # fmt: skip
        if at.ahead:
            later(at, f"`ahead` for a value of `{step}`, which every iteration changes,")
        for again in every_step(frame.steps[i + 1 :]):
            if isinstance(again, Place) and again.verb == "compute" and again.tensor_name in names and again is not at:
                later(again, f"a second place of `{again.tensor_name}`, which every iteration of `{step}` changes once,")
        found.update(dict.fromkeys(names, at))
    for other in body:
        if (
            isinstance(other, Place)
            and other.verb == "compute"
            and other.ahead
            and not found.keys().isdisjoint(_read(build, other))
        ):
            later(other, f"`ahead` for a stage that reads a value of `{step}`, which every iteration changes,")
    return found


def _read(build: Build, stage: Place) -> set[str]:
    return {r.tensor.name for r in build.task_of(stage.tensor_name).reads()}


def _check_states(frame: Frame, i: int, step: Split, loop: SharedLoop) -> None:
    """Refuses accumulators that the loop cannot repair: they must outlive the loop, and each is repaired once per iteration.

    A thread repairs those that it holds in registers, or those in shared memory that it combines its own into.
    """
    for member in loop.members:
        if member.repair is None:
            continue
        name = member.definition.tensors[0].name
        if member.repair.how == "power":
            later(step, f"the repair of the product `{name}`, which depends on the number of its terms,")
        if len(member.definition.tensors) > 1:
            later(step, f"the repair of `{name}`, a member of a reduction of tuples,")
    own = {t for s in frame.task.states for t in s.tensors}
    if not any(m.repair is not None and own.intersection(m.definition.tensors) for m in loop.members):
        return
    below = frame.steps[i + 1 :]
    inner = next((k for k, s in enumerate(below) if isinstance(s, Place) and s.verb == "accumulate"), None)
    if frame.state is None or frame.outer is not None or frame.state.memory == "shared" and inner is None:
        where = "inside the loop of the accumulator" if frame.state is None or frame.outer is not None else (
            "with an accumulator in shared to which elements are added one by one"
        )  # fmt: skip
        raise refuse(step, "not-lowered-yet", f"`{step}` {where} is valid, but not supported yet",
                     "write `accumulate in register` above it, or `accumulate in shared` above it and `accumulate in register`"
                     " below")  # fmt: skip
    if frame.state.memory == "shared":
        reduced = frame.spec.extents.reduced
        for cut in below[:inner]:
            if isinstance(cut, (Split, Tile)) and any(a in reduced for a, _ in cut.sizes):
                later(cut, f"a part of the chunk of `{step}` above the accumulator in register")


def _beside(build: Build, at: Residence, old: Tensor) -> Residence:
    """A second buffer of the same shape, for another tensor."""
    b = at.buffer
    return dataclasses.replace(at, tensor=old, buffer=build.buffer(old.name, old.dtype, b.shape, b.memory))


def _changes(loop: SharedLoop) -> dict[tuple[Tensor, Expr], Tensor]:
    """Tensors for the changes of repairs that are costly to compute (a function call) and follow a single stage."""
    found: dict[tuple[Tensor, Expr], Tensor] = {}
    for repair in (m.repair for m in loop.members if m.repair is not None):
        tensors = {r.tensor for r in repair.reads}
        if len(repair.reads) == len(tensors) == 1 and any(isinstance(e, Call) for e in repair.change.walk()):
            (tensor,) = tensors
            key = tensor, repair.change
            found.setdefault(key, Tensor(f"{tensor.name}_change", repair.change.dtype, tensor.dims))
    return found


def _filled(build: Build, frame: Frame, b: ir.Buffer, value: Const, step: Step) -> ir.Stmt:
    """Stores one value in every element of a buffer; each owner fills its part."""
    span = getattr(step, "span", None)
    if b.memory == "register":
        return each(build, b, lambda at: ir.Store(b, at, stored(value, b), None, False, span), vector=False)
    _, unit = frame.own_copy(build.threads)
    shape, units = b.shape[len(unit) :], frame.spec.units or 1
    elements = 1
    for n in shape:
        elements *= n
    turn = build.variable("clear", -(-elements // units))
    number = simplify(turn * units + frame.spec.lane)
    found = digits(number, {str(d): n for d, n in enumerate(shape)})
    store: ir.Stmt = ir.Store(b, (*unit, *found.values()), stored(value, b), None, False, span)
    some = conjunction([*frame.spec.present, *([number < elements] if elements % units else [])])
    store = store if some is None else ir.If(some, store, None, span)
    return ir.For(turn, index(-(-elements // units)), store, "serial", span)


def parts_stored(build: Build, frame: Frame, i: int, step: Split) -> ir.Stmt:
    """If blocks share the loop, stores the final values that each block has of its stages; another kernel combines them. Each
    element is stored by an owner, as in a task of its own."""
    from tilelang.lowering.build.movement.access_regions import hull, own_elements, uses_below  # late: each imports the other
    from tilelang.lowering.build.movement.stages import stage_frame  # late: each imports the other

    if build.parted is None or frame.shared is None:
        return ir.seq()
    loop, out = frame.shared.loop, list[ir.Stmt]()
    inside = frame.replace(spec=frame.spec.cut(dict(_sizes(step)), {loop.axis: index(0)}))
    for place in dict.fromkeys(frame.shared.stages.values()):
        member = frame.shared.member(place.tensor_name)
        assert member is not None
        tensors = member.definition.tensors
        if tensors[0] not in build.parted.places:  # also an accumulator of the kernel
            continue
        k = next(k for k, s in enumerate(frame.steps) if s is place)
        stage = stage_frame(build, inside, k, k, place)
        if hull([u for u in uses_below(build, inside, k + 1) if u.read.tensor in tensors], place) != own_elements(
            build, inside, place
        ):
            later(place, f"a loop that blocks share, of which results need more of {tensors[0].name} than is made with them,")
        own = {a.name: a for a in stage.task.axes}
        task = Task(
            stage.task.name,
            tensors,
            stage.task.axes,
            tuple(Read(t, tuple(own[d.name] for d in t.dims)) for t in tensors),
            stage.task.states,
        )
        held = tuple(r.buffer for t in tensors for r in frame.residences if r.tensor is t)
        state = StatePlace((held,), "register") if place.memory == "register" else None
        every = tuple(a if a.reduction else a.replace(bounds=_bounds_here(inside, a.name)) for a in stage.spec.axes)
        alone = stage.spec.replace(axes=every, present=(*stage.spec.present, *_once(inside, place, set(own))))
        steps = build.stages.get(stage.of, stage).steps
        target = Target(tuple(build.parted.places[t] for t in tensors))
        out.append(
            build.chain(
                stage.replace(task=task, steps=steps, spec=alone, target=target, residences=frame.residences, state=state,
                          finishing=True, shared=None), 0)
        )  # fmt: skip
    return ir.seq(*out)


def _bounds_here(frame: Frame, axis: str) -> tuple[Bound, ...]:
    """The bounds of an axis of a spec; none if the spec does not have it. A stage of its own has those of what its readers need."""
    return frame.spec.axis(axis).bounds if axis in frame.spec.names else ()


def _once(frame: Frame, place: Place, own: set[str]) -> list[Expr]:
    """The conditions under which one of several units, or iterations, stores the same elements of a stage."""
    found, named = list[Expr](), {a.name for a in frame.task.axes}
    for a in frame.spec.axes:
        if a.reduction or a.name in own or a.base is index(0):
            continue
        if a.name not in named:
            later(place, f"a loop that blocks share below a step that divides the fused axis {a.name}")
        found.append(Binary("==", a.base, index(0)))
    return found


# ---------------------------------------------------------------- one iteration


def chunk_task(task: Task, member: Member, shared: Shared) -> Task:
    """A stage's task in one iteration: it reduces the chunk's terms and combines them into the repaired running value."""
    reduce = task.states[0].reduce
    terms = tuple(Tensor(f"{t.name}_chunk", v.dtype, t.dims) for t, v in zip(task.outputs, reduce.combiner.left, strict=True))
    axes = {a.name: a for a in task.axes}

    def element(t: Tensor) -> Read:
        return Read(t, tuple(axes[d.name] for d in t.dims))

    so_far = [repaired(member.repair, element(t), shared) if t.member == 0 else element(t) for t in task.outputs]
    held = [as_logical(e.dtype, v.dtype, e) for e, v in zip(so_far, reduce.combiner.left, strict=True)]
    added = [Read(t, task.axes) for t in terms]
    known = dict(zip((*reduce.combiner.left, *reduce.combiner.right), (*held, *added), strict=True))
    values = tuple(substitute(r, known) for r in reduce.combiner.result)
    kept = [t for t in task.outputs if t in shared.old]
    state = State(terms, reduce)
    followed = {key: change for key, change in shared.changes.items() if key[0] in task.outputs}
    changes = [_over(element(t), shared.old[t], change) for t, change in followed]
    outputs = (*(shared.old[t] for t in kept), *task.outputs, *followed.values())
    return Task(task.name, outputs, task.axes, (*map(element, kept), *values, *changes), (state,))


def _over(read: Read, old: Tensor, change: Expr) -> Expr:
    """The change of a repair, with reads of the current and the previous value at the same point."""
    found: Expr = substitute(change, {now(read): read, before(read): Read(old, read.indices)})
    return found


def repaired(repair: Repair | None, accumulator: Expr, shared: Shared) -> Expr:
    """An accumulator after the changes of an iteration, in terms of current values, previous values, and changes."""
    if repair is None:
        return accumulator
    known: dict[Expr, Expr] = {now(r): r for r in repair.reads}
    known |= {before(r): Read(shared.old[r.tensor], r.indices) for r in repair.reads}
    first = repair.reads[0]
    change = shared.changes.get((first.tensor, repair.change))
    if change is not None:
        repair = dataclasses.replace(repair, change=Read(change, first.indices))
    found: Expr = substitute(repair.apply(accumulator), known)
    return found


def repairs_of(frame: Frame) -> dict[int, Repair]:
    """The repairs of the kernel's own accumulators in an iteration of the enclosing shared loop, by number."""
    found: dict[int, Repair] = {}
    for member in frame.shared.loop.members if frame.shared is not None else ():
        state = frame.task.state_member(member.definition.tensors[0])
        if state is not None and member.repair is not None:
            found[state[0]] = member.repair
    return found


def states_repaired(build: Build, frame: Frame, i: int) -> ir.Stmt:
    """Repairs the kernel's accumulators after an iteration's changes: each owner visits the elements that it holds, as when
    storing results."""
    repairs = repairs_of(frame)
    if not repairs or frame.state is None or frame.state.memory != "register":
        return ir.seq()
    return build.chain(frame.replace(finishing=True, repairs=repairs, nest=(), store_lanes=None), i)


def repairs_at(build: Build, frame: Frame, points: dict[str, Expr], lane: Expr | None, step: Step | None) -> ir.Stmt:
    """The statements of `states_repaired` at a point. If each lane has its own accumulator, all of them are repaired."""
    assert frame.state is not None and frame.shared is not None
    span = getattr(step, "span", None) or frame.origin
    own = build.variable("lane", frame.state.lanes) if frame.state.lanes else None
    out: list[ir.Stmt] = []
    for s, repair in frame.repairs.items():
        (buffer,), (variable,) = frame.state.buffers[s], frame.task.states[s].reduce.combiner.left
        at = state_indices(frame, lane if own is None else own, points)
        held = as_logical(buffer.dtype, variable.dtype, ir.Load(buffer, at))
        value = value_at(build, frame, repaired(repair, held, frame.shared), points)
        out.append(ir.Store(buffer, at, stored(value, buffer), None, False, span))
    body = ir.seq(*out) if own is None else ir.For(own, index(frame.state.lanes), ir.seq(*out), "vector", span)
    asked = {b.holds(index(0)): a for a in frame.spec.axes for b in a.bounds if not a.reduction}
    read = [
        e for repair in frame.repairs.values() for r in repair.reads for e in (r, Read(frame.shared.old[r.tensor], r.indices))
    ]
    kept = settled(
        build, frame, asked, (), points, tuple(read), Effect(tuple(asked))
    )  # beyond a tile, the element may not exist at all
    present = conjunction([*frame.spec.present, *(c for c in asked if c in kept)])
    return body if present is None else ir.If(present, body, None, span)
