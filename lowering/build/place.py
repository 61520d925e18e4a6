"""Making tensors resident: loads by region and by access, in shared memory and in registers, and computed stages.

A load is a task with one pointwise output, so it is lowered by the same walk over steps as everything else. What lies outside is filled
with one constant per buffer; the residence remembers which bounds that covers.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Collection, Sequence

from tilelang.computation import Tensor
from tilelang.errors import Span
from tilelang.expr import INDEX, Const, Expr, Var, free, index
from tilelang.lowering import ir
from tilelang.lowering.build.base import Part, laid_out, refuse
from tilelang.lowering.build.cover import Region, nobody_reads, sources
from tilelang.lowering.build.frame import (
    Box,
    Fetch,
    Frame,
    Move,
    Residence,
    Ring,
    Share,
    Staging,
    Target,
)
from tilelang.lowering.build.lookahead import ahead_in, leaf_points, slots_below
from tilelang.lowering.build.regions import hull, uses_below
from tilelang.lowering.build.share import declared_shares
from tilelang.lowering.build.stops import by_registers, without_stops
from tilelang.lowering.needs import Range, conditions
from tilelang.simplify import conjunction, simplify, weighted_sum
from tilelang.spec import AxisState, Bound, Spec, names_below, point
from tilelang.steps import Place, Split, Step, Tile, Vectorize
from tilelang.task import Task
from tilelang.tensor import walk_order

STAGED_ELEMENTS = 64  # a move that runs ahead waits in registers where a thread holds at most this many elements


class Places(Part):
    """load and compute."""

    # ------------------------------------------------------------ loads

    def load(self, frame: Frame, i: int, step: Place) -> ir.Stmt:
        """The move, then the rest with the tensor resident."""
        if step.memory not in ("shared", "register"):
            return self.prefetch(frame, i, step)
        move, residence = self.make_resident(frame, i, step, None)
        return ir.seq(move, self.chain(frame.but(residences=(*frame.residences, residence)), i + 1))

    def is_cache(self, step: Place) -> bool:
        """Whether a load is into a memory without addresses, and so a prefetch."""
        return self.build.profile.memory(step.memory).cache

    def prefetch(self, frame: Frame, i: int, step: Place) -> ir.Stmt:
        """A load into a cache: every line of the region, `ahead` rounds of the innermost walk from here; nothing waits for it."""
        facts = self.build.profile.memory(step.memory)
        if not facts.cache:
            raise refuse(step, "not-lowered-yet", f"`{step}`: a load in {step.memory} inside a block is valid, but not supported yet"
                         " for this target", "load in shared or register")  # fmt: skip
        axes = frame.spec.axes
        if step.ahead and frame.last_walk is not None:
            axis, size = frame.last_walk
            far = simplify(frame.spec.axis(axis).base + size * step.ahead)
            axes = tuple(a.replace(base=far) if a.name == axis else a for a in axes)
        unbounded = frame.spec.replace(axes=tuple(a.replace(bounds=()) for a in axes))
        region, _ = self.region(frame.but(spec=unbounded), i, step)
        if region.points:
            raise refuse(step, "prefetch-scattered", f"`{step}`: the elements are scattered, so there are no cache lines to prefetch",
                         "remove the prefetch")  # fmt: skip
        if region.source.buffer.memory != "global":
            raise refuse(step, "prefetch-resident", f"`{step}`: the data is already in {region.source.buffer.memory}",
                         "remove the prefetch, or write it above the step that loads the tensor")  # fmt: skip
        tensor = region.task.outputs[0]
        line = max(1, (facts.line_bytes or 64) // tensor.dtype.bytes)
        along = _consecutive(region)
        each = [line if k == along else 1 for k in range(len(region.spec.axes))]
        counts = tuple(-(-a.extent // n) for a, n in zip(region.spec.axes, each, strict=True))

        def at(numbers: Sequence[Expr]) -> ir.Stmt:
            indices = tuple(simplify(a.base + v * n) for a, v, n in zip(region.spec.axes, numbers, each, strict=True))
            return ir.Prefetch(region.source.buffer, region.source.at(indices), step.span)

        loop = self._loop_below(frame, i) if step.ahead else None
        if loop is not None:
            last = next((w for w in reversed(frame.rounds) if frame.last_walk and w.axis == frame.last_walk[0]), None)
            exists = simplify(last.var + step.ahead < last.rounds) if last is not None else None
            fetch = Fetch(loop, len(frame.rounds), counts, at, exists)
            return self.chain(frame.but(fetches=(*frame.fetches, fetch)), i + 1)
        variables = [self.build.variable(f"{tensor.name}_line", n) if n > 1 else index(0) for n in counts]
        return ir.seq(_looped(at(variables), variables, step.span), self.chain(frame, i + 1))

    def _loop_below(self, frame: Frame, i: int) -> Split | None:
        """The innermost loop below a prefetch, and above what is unrolled, in whose iterations one thread can bring some lines each."""
        if self.build.threads > 1:
            return None
        below = itertools.takewhile(lambda s: not (isinstance(s, Split) and s.unroll), frame.steps[i + 1 :])
        return next((s for s in reversed([*below]) if isinstance(s, Split)), None)

    def fetched(self, frame: Frame, fetch: Fetch) -> ir.Stmt:
        """The lines that one iteration of the loops below a prefetch brings: they follow each other from one iteration to the next."""
        number: Expr = index(0)
        iterations = 1
        for w in frame.rounds[fetch.depth :]:
            number, iterations = simplify(number * w.rounds + w.var), iterations * w.rounds
        total, span = math.prod(fetch.lines), fetch.within.span
        each = -(-total // iterations)
        more = self.build.variable("line", each) if each > 1 else index(0)
        number = simplify(number * each + more)
        exists = conjunction([e for e in (number < total if each * iterations > total else None, fetch.exists) if e is not None])
        numbers, inside = list[Expr](), total
        for n in fetch.lines:
            inside //= n
            numbers.append(simplify(number // inside % n) if inside * n < total else simplify(number // inside))
        body = fetch.line(numbers)
        return _looped(body if exists is None else ir.If(exists, body, None, span), [more], span)

    def make_resident(self, frame: Frame, i: int, step: Place, slot: Expr | None) -> tuple[ir.Stmt, Residence]:
        """The move of a load, and where its readers find it. slot: which buffer of a ring it fills."""
        region, uses = self.region(frame, i, step)
        points = [p.name[1:] for p in region.source.points]
        if points and not region.points:
            raise refuse(step, "layout-dimension", f"`{step}` loads a region of {step.tensor_name}, which is staged as one element per"
                         f" point of {', '.join(points)}", "use these axes in the layout, or remove the layout",
                         f"{uses[0].read} is one of those elements; its neighbours in the tensor are not staged")  # fmt: skip
        unread = nobody_reads(frame, uses)
        if step.memory == "register":
            move, share = self.register_load(frame, i, step, region, uses)
            return (ir.seq() if unread else move), share
        ring = self.build.ring(frame.key(i))
        box = self.box_for(frame, step, region, ring, slot)
        if unread:
            return ir.seq(), box
        return self.move(frame, step, region, Target((box,), step.stream), Move(ring)), box

    def box_for(self, frame: Frame, step: Place, region: Region, known: Ring, slot: Expr | None) -> Box:
        tensor = region.task.outputs[0]
        dims = {a.name: a.extent for a in region.spec.axes}
        named = set(step.layout.dims) if region.points and step.layout is not None and step.layout.terms else set(dims)
        placement = laid_out(step, {d: n for d, n in dims.items() if d in named}, tensor.dtype.bytes)
        parts = dict(zip(placement.dims, placement.variables, strict=True))  # what a layout leaves out has one point
        placement = placement.replace(dims=tuple(dims), variables=tuple(parts.get(d, Var(d, INDEX, 0, 0)) for d in dims))
        ring = step.ahead + 1 if slot is not None else 0  # without a walk around it there is nothing to run ahead of
        count, unit = frame.own_copy(self.build.threads)
        shape = (*((ring,) if ring else ()), *count, *placement.shape)
        buffer = self.shared_buffer(known, tensor, shape, step, ring)
        return Box(tensor, region.read, buffer, region.fill, region.outside, points=region.points, moved=region.ends,
                   low=region.low, placement=placement, slot=slot, unit=unit)  # fmt: skip

    def shared_buffer(self, known: Ring, tensor: Tensor, shape: tuple[int, ...], step: Place, ring: int) -> ir.Buffer:
        """The buffer of a load or a stage; of a ring of so many buffers the one that its earlier moves fill."""
        found = known.buffers.get(tensor.name) if ring and (step.ahead or step.on) else None
        if found is None:
            made = self.build.buffer(f"{tensor.name}_{step.memory}", tensor.dtype, shape, "shared", ring=ring)
            found = known.buffers[tensor.name] = [made]
        return found[0]

    def move(self, frame: Frame, step: Place, region: Region, target: Target, of: Move) -> ir.Stmt:
        """The move; on blocks of one thread in two versions, so that whole regions move without a condition in their loops."""
        guard, whole = self.whole(region.spec)
        guarded = self._moved(frame, step, region, target, of)
        if guard is None:
            return guarded
        plain = self._moved(frame, step, dataclasses.replace(region, spec=whole), target, of)
        return ir.If(guard, plain, guarded, step.span)

    def _moved(self, frame: Frame, step: Place, region: Region, target: Target, of: Move) -> ir.Stmt:
        inner = self.move_frame(frame, step, region, target).but(move=of)
        return ir.seq(*self._through_registers(inner)) if by_registers(step) else self.chain(inner, 0)

    def _through_registers(self, move: Frame) -> tuple[ir.Stmt, ir.Stmt]:
        """The fetch of a thread's share of a move into registers, and its store."""
        shape, axis, lanes = slots_below(move, 0, self.build.profile)
        (tensor,) = move.task.outputs
        held = (*shape, lanes) if axis else (shape or (1,))
        buffer = self.build.buffer(f"{tensor.name}_staged", tensor.dtype, held, "register")
        fetch = self.chain(move.but(target=Target((Staging(tensor, None, buffer),)), staged=buffer), 0)
        return fetch, self.chain(move.but(staged=buffer), 0)

    def whole(self, spec: Spec, axes: Collection[str] | None = None) -> tuple[Expr | None, Spec]:
        """The condition under which all points of a spec exist (along the named axes), and the spec with those bounds known to hold.

        None where nothing can be gained: no bounds, none that hold everywhere, or threads, which each test for themselves anyway.
        """
        if self.build.threads > 1:
            return None, spec
        chosen = {a.name for a in spec.axes if not a.reduction and (axes is None or a.name in axes)}
        ends = [b.holds(index(0 if b.lower else a.extent - 1)) for a in spec.axes if a.name in chosen for b in a.bounds]
        known = (a.replace(bounds=tuple(b.replace(known=True) for b in a.bounds)) if a.name in chosen else a for a in spec.axes)
        guard = conjunction(ends)
        return None if isinstance(guard, Const) else guard, spec.replace(axes=tuple(known))

    def move_frame(self, frame: Frame, step: Place, region: Region, target: Target) -> Frame:
        keys = frozenset(b.key for a in region.spec.axes for b in a.bounds)
        inner = Frame(region.task, (), region.spec, target, sources(frame, region), fill=region.fill, fill_keys=keys,
                      origin=step.span, cuts=frame.cuts)  # fmt: skip
        dims = tuple(a.name for a in region.spec.axes)
        steps = self.default_steps(inner, without_stops(step.steps))
        self.check_chain(region.spec, steps, region.task, step)
        return self.written_out(inner, steps, step.memory, walk_order(step.layout, dims))

    def default_steps(self, frame: Frame, steps: tuple[Step, ...] | None) -> tuple[Step, ...]:
        """The steps of a move: as written, or single elements. Where they spread nothing, its pieces go to the frame's units.

        A tensor without dimensions is one piece, which one of the units moves.
        """
        given = steps or ()
        units = frame.spec.units or 1
        if units == 1 or not frame.spec.axes or any(isinstance(s, Tile) for s in given):
            return given
        leaf = given[-1] if given and isinstance(given[-1], Vectorize) else None
        sizes = dict.fromkeys(names_below(frame.spec.names, given), 1)
        if isinstance(leaf, Vectorize) and isinstance(leaf.lanes, int):
            sizes[leaf.axis] = leaf.lanes
        spread = Tile(tuple(sizes.items()), "thread")
        return (*given[:-1], spread, leaf) if leaf is not None else (*given, spread)

    # ------------------------------------------------------------ rings

    def staged_move(self, frame: Frame, i: int, step: Place, slot: Expr) -> tuple[ir.Stmt, ir.Stmt | None]:
        """A move that runs ahead: its fetch, and the store that waits in registers for the end of the round."""
        region, uses = self.region(frame, i, step)
        ring = self.build.ring(frame.key(i))
        box = self.box_for(frame, step, region, ring, slot)
        if nobody_reads(frame, uses):
            return ir.seq(), None
        whole = self.move_frame(frame, step, region, Target((box,)))
        shape, _, lanes = slots_below(whole, 0, self.build.profile)
        held = math.prod(shape) * lanes
        insists = by_registers(step)
        alone, many = (frame.spec.units or 1) == 1 and not insists, held > STAGED_ELEMENTS and not insists
        how = "one thread stores it at once" if alone else "waits in registers"
        if many and not alone:
            how = f"stored at once, for a thread's share of {held} elements is more than {STAGED_ELEMENTS}"
        self.build.note(f"`{step}`: {how}; {ring.refused or ''}")
        if alone or many:
            return self.move(frame, step, region, Target((box,)), Move(ring)), None
        return self._through_registers(whole)

    def ring_body(self, frame: Frame, i: int, slots: dict[Place, Expr], moves: dict[Place, ir.Stmt]) -> ir.Stmt:
        """A walk's body in which some loads are moved ahead: their readers use `slots`."""
        out: list[ir.Stmt] = []
        here = ahead_in(frame.steps, i)
        mine = [(k, s) for k, s in enumerate(frame.steps) if isinstance(s, Place) and any(s is p for p in here) and s in slots]
        for k, step in mine:
            out.append(moves[step])
            if step.verb == "compute":
                frame = frame.but(residences=(*frame.residences, *self._stage_places(frame, k, step, slots[step])))
                continue
            region, uses = self.region(frame, k, step)
            ring = self.build.ring(frame.key(k))
            if step.memory == "register":
                share = self.share_of(frame, k, step, region, uses)
                residence: Residence = dataclasses.replace(share, buffer=ring.buffers[step.tensor_name][0])
            else:
                residence = self.box_for(frame, step, region, ring, slots[step])
            frame = frame.but(residences=(*frame.residences, residence))
        done = {k for k, _ in mine}  # other loads may stand between those that run ahead
        rest = tuple(s for k, s in enumerate(frame.steps) if k not in done)
        return ir.seq(ir.joined(*out), self.chain(frame.but(steps=rest), i))

    # ------------------------------------------------------------ stages

    def stage_frame(self, frame: Frame, i: int, k: int, step: Place) -> Frame:
        """The spec of the stage of step k as it will stand, seen from the frame before step i."""
        task = self.build.task_of(step.tensor_name)
        uses = [u for u in uses_below(self.build, frame, k + 1) if u.read.tensor in task.outputs]
        if not uses:
            raise refuse(step, "stage-unread", f"`{step}`: no step below reads {step.tensor_name}", "remove the `compute`")
        ranges: list[Range] = hull(uses, step)
        tested = {(b.offset, b.limit, b.lower, x.extent) for x in frame.spec.axes for b in x.bounds if b.known}
        axes = []
        for a, (low, extent), wanted in zip(task.axes, ranges, conditions(uses, ranges), strict=True):
            bounds = [Bound(f"{task.name}.{a.name}<", low, a.extent), Bound(f"{task.name}.{a.name}>", low, 0, True)]
            bounds = [b.replace(known=(b.offset, b.limit, b.lower, extent) in tested) for b in bounds if not b.is_certain(extent)]
            for b in wanted:
                if not b.is_certain(extent) and not any(b.follows_from(other) for other in bounds if not other.known):
                    bounds.append(b.replace(key=f"{task.name}.{a.name}:{len(bounds)}"))
            axes.append(AxisState(a.name, low, extent, tuple(bounds)))
        axes += [AxisState(a.name, index(0), a.extent, (), True) for a in task.reduction_axes]
        names = [*task.axes, *task.reduction_axes]
        spec = Spec(task.name, tuple(axes), tuple((a.name, point(a.name)) for a in names), frame.spec.level, frame.spec.units,
                    frame.spec.lane, frame.spec.present)  # fmt: skip
        between = tuple(s for s in frame.steps[i:k] if isinstance(s, Place))
        given = self.stage_steps(frame, spec, task, step)
        self.check_chain(spec, given, task, step)
        stage = Frame(task, (), spec, Target(()), frame.residences, origin=step.span, cuts=frame.cuts, of=frame.key(k))
        return self.written_out(stage, given, "" if task.states else step.memory, between=between)

    def stage_steps(self, frame: Frame, spec: Spec, task: Task, step: Place) -> tuple[Step, ...]:
        """A stage's steps; silent ones follow the owners of an operand in registers."""
        given = step.steps or ()
        if not any(isinstance(s, Tile) for s in given):
            for residence in reversed(frame.residences):
                names = {n for s in residence.steps if isinstance(s, Tile) for n, _ in s.sizes}
                if residence.steps and names <= set(spec.names) and any(residence.tensor is r.tensor for r in task.reads()):
                    given = (*residence.steps, *given)
                    break
            else:
                if step.memory != "register" and not task.states:
                    given = self.default_steps(Frame(task, (), spec, Target(()), ()), given)
        return given

    def compute(self, frame: Frame, i: int, step: Place) -> ir.Stmt:
        """A stage: a tensor made here for this spec and later stages."""
        made, residences = self.make_stage(frame, i, step, None)
        return ir.seq(made, self.chain(frame.but(residences=(*frame.residences, *residences)), i + 1))

    def make_stage(self, frame: Frame, i: int, step: Place, slot: Expr | None) -> tuple[ir.Stmt, tuple[Residence, ...]]:
        """The statements of a stage, and where its readers find its tensors. slot: which buffers of a ring it fills."""
        if step.memory not in ("shared", "register"):
            raise refuse(
                step,
                "stage-memory",
                f"`{step}` is inside a block, where tensors are computed in shared or register",
                "compute it in shared or register, or in global at the head of the schedule",
            )
        task = self.build.task_of(step.tensor_name)
        for read in task.reads():
            own = task.state_member(read.tensor) is not None
            if not own and not any(r.tensor is read.tensor for r in frame.residences):
                raise refuse(step, "stage-order", f"`{step}`: it reads {read.tensor.name}, which a later step computes",
                             f"compute {read.tensor.name} first", f"{read} has no value yet")  # fmt: skip
        stage = self.stage_frame(frame, i, i, step)
        residences = tuple(self._stage_place(frame, stage, step, t, slot) for t in stage.task.outputs)
        empty = any(a.extent == 0 and not a.reduction for a in stage.spec.axes)
        return ir.seq() if empty else self.chain(stage.but(target=Target(residences, step.stream)), 0), residences

    def _stage_places(self, frame: Frame, i: int, step: Place, slot: Expr) -> tuple[Residence, ...]:
        """Where the readers of a stage that runs ahead find its tensors: in registers always in the first buffers of its ring."""
        stage, slot = self.stage_frame(frame, i, i, step), index(0) if step.memory == "register" else slot
        return tuple(self._stage_place(frame, stage, step, t, slot) for t in stage.task.outputs)

    def stage_share(self, stage: Frame, step: Place, tensor: Tensor, slot: Expr | None) -> Share:
        """What every thread makes of a stage in registers. slot: which buffers of a ring it fills."""
        spatial = [a for a in stage.spec.axes if not a.reduction]
        leaf = leaf_points(stage, self.build.profile)
        dims = declared_shares(spatial, leaf, step, stage.steps)
        buffer = self.stage_register(stage, tensor, tuple(d.size for d in dims if d.size > 1), slot)
        names = {a.name for a in spatial}
        spreads = tuple(s for s in stage.steps if isinstance(s, Tile) and names.issuperset(n for n, _ in s.sizes))
        return Share(tensor, None, buffer, steps=spreads, ends=tuple(a.bounds for a in spatial), low=tuple(a.base for a in spatial),
                     dims=dims, owners=self.owners_of(stage, leaf, [a.name for a in spatial]))  # fmt: skip

    def stage_register(self, stage: Frame, tensor: Tensor, shape: tuple[int, ...], slot: Expr | None) -> ir.Buffer:
        """The registers of a stage. slot: which buffer of a ring they are."""
        if slot is None:
            return self.build.buffer(f"{tensor.name}_register", tensor.dtype, shape, "register")
        assert isinstance(slot, Const), "the buffers of a ring in registers have numbers"
        return self.ring_register(self.build.ring(stage.of), tensor, shape, int(slot.value))

    def _stage_place(self, frame: Frame, stage: Frame, step: Place, tensor: Tensor, slot: Expr | None) -> Residence:
        spatial = [a for a in stage.spec.axes if not a.reduction]
        low, ends = tuple(a.base for a in spatial), tuple(a.bounds for a in spatial)
        if step.memory == "register":
            return self.stage_share(stage, step, tensor, slot)
        placement = laid_out(step, {a.name: a.extent for a in spatial}, tensor.dtype.bytes)
        count, unit = frame.own_copy(self.build.threads)
        ring = step.ahead + 1 if slot is not None else 0
        shape = (*((ring,) if ring else ()), *count, *placement.shape)
        buffer = self.shared_buffer(self.build.ring(stage.of), tensor, shape, step, ring)
        return Box(tensor, None, buffer, ends=ends, low=low, placement=placement, slot=slot, unit=unit)


def _looped(body: ir.Stmt, variables: Sequence[Expr], span: Span | None) -> ir.Stmt:
    """A statement in a loop over each variable, the first one outermost."""
    for v in reversed(variables):
        if isinstance(v, Var) and v.upper is not None:
            count = v.upper + 1
            body = ir.For(v, index(count), body, "unroll" if count <= 8 else "serial", span)
    return body


def _consecutive(region: Region) -> int | None:
    """The axis of a region along which its elements follow each other in memory, as they stand where the tensor is read from."""
    points = [Var(f"{a.name} in lines", INDEX, 0, a.extent - 1) for a in region.spec.axes]  # no axis has such a name
    at = region.source.at(tuple(simplify(a.base + p) for a, p in zip(region.spec.axes, points, strict=True)))
    terms = dict(weighted_sum(at, region.source.buffer.strides)[0])
    inside = {v for e in terms if not isinstance(e, Var) for v in free(e)}
    return next((k for k, p in reversed([*enumerate(points)]) if terms.get(p) == 1 and p not in inside), None)
