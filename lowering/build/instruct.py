"""Leaves that are one instruction: which one it is, what it leaves of each axis, its operands, and why it may not stand there.

A `do` is matched once, when its chain is completed, by meaning, shape, level, memory and type; layouts are compared where the leaf is
written, because only then the buffers exist. An instruction cannot be guarded: a point that does not exist must contribute nothing by
what its operands were filled with, or the whole piece must stand under a condition that all issuing threads share.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from tilelang import matching
from tilelang.dtype import DType
from tilelang.errors import Refusal, at_step, counted
from tilelang.expr import Axis, Binary, Const, Expr, Pad, Read, Unary, Var, index, substitute
from tilelang.fragment import Fragment
from tilelang.instruction import AT_ONCE, IN_ORDER_GROUP, ONE_LANE, Instruction, known, use
from tilelang.lowering import ir
from tilelang.lowering.build.accesses import depends
from tilelang.lowering.build.base import refuse
from tilelang.lowering.build.clusters import no_clusters
from tilelang.lowering.build.conditions import inside_piece
from tilelang.lowering.build.fragments import FragmentShare, held_as, open_bounds, unguardable
from tilelang.lowering.build.frame import Box, Frame, NotOwner, Residence, Share
from tilelang.lowering.build.instruct_pointwise import PointwiseInstructions, too_late
from tilelang.lowering.build.leaf import guarded
from tilelang.lowering.build.matches import Matched, Resident, Seen, described, global_read, left, promised, resident, seen
from tilelang.lowering.build.state import kept_beyond
from tilelang.lowering.guards import Effect, fills, fold
from tilelang.machine import Profile
from tilelang.matching import Leaf as MatchedLeaf
from tilelang.meaning import POINTWISE, UPDATE
from tilelang.records import near
from tilelang.simplify import linear, simplify
from tilelang.spec import AxisState, Bound, Spec, complete
from tilelang.steps import Do, Hole, Open, Place, Split, Step, Tile, Units, Vectorize, every_step
from tilelang.task import Task, reads
from tilelang.tensor import evaluate


def check_lowered(steps: tuple[Step, ...], profile: Profile) -> None:
    """Refuses, in the order of the steps, what the language accepts and no target lowers yet, and instructions not on this device."""
    roles = any(team.role for s in steps if isinstance(s, Units) for team in s.teams)
    for step in every_step(steps):
        match step:
            case Units():
                _check_units(step, profile)
            case Place(open=True):
                raise _hole(step, "write the steps out, or remove the braces to use the default steps")
            case Place(on=str()) if not roles:
                raise refuse(step, "unknown-role", f"`{step}`: `units` has no role {step.on}",
                             f"write `units block = 1 warp as {step.on} + 4 warp as consumer`, or remove `on`")  # fmt: skip
            case Place(memory=memory) if not profile.has_memory(memory):
                raise refuse(step, "unknown-memory", f"`{step}`: the profile `{profile.name}` has no memory `{memory}`",
                             near(str(memory), profile.memory_names))  # fmt: skip
            case Place():
                for flag, what in (
                    (step.behind > 1, "`behind` by more than one iteration"),
                    (step.once, "`once`"),
                ):
                    if flag:
                        raise refuse(step, "not-lowered-yet", f"`{step}`: {what} is valid, but not supported yet for this"
                                     " target", "remove it from the schedule for now")  # fmt: skip
            case Tile(sizes=sizes) | Split(sizes=sizes) if any(isinstance(n, Hole) for _, n in sizes):
                raise _hole(step, "write a number for `?`")
            case Tile(count=Hole()) | Vectorize(lanes=Hole()):
                raise _hole(step, "write a number for `?`")
            case Open():
                raise _hole(step, "write the steps out")
            case Do():
                missing = _record(step).unavailable(profile)
                if missing is not None:
                    raise refuse(step, "instruction-not-here", f"`{step}`: {missing}", _instead(step, profile))
                _check_fragments(step, _record(step))
            case _:
                pass


def _check_units(step: Units, profile: Profile) -> None:
    """Refuses what a block is made of where the device, or no target, can tell its threads apart like that."""
    if step.level == "cluster":
        _check_cluster(step, profile)
        return
    named = any(team.role for team in step.teams)
    plain = len(step.teams) == 1 and step.teams[0].role is None and step.teams[0].registers is None
    if step.level != "block" or not plain and not (named and profile.can("phased_barriers")):
        what = "roles and register budgets" if step.level == "block" else f"`units` for a {step.level}"
        verb = "are" if step.level == "block" else "is"
        raise refuse(step, "not-lowered-yet", f"`{step}`: {what} {verb} valid, but not supported yet for this target",
                     "units block = N warp")  # fmt: skip


def _check_cluster(step: Units, profile: Profile) -> None:
    if not profile.has_level("cluster"):
        raise no_clusters(step, profile)
    if [(team.level, team.role, team.registers) for team in step.teams] != [("block", None, None)]:
        raise refuse(step, "not-lowered-yet", f"`{step}`: a cluster of roles, or of other units than blocks, is valid, but not"
                     " supported yet for this target", "units cluster = N block")  # fmt: skip


def _hole(step: Step, mend: str) -> Refusal:
    return refuse(step, "hole", f"`{step}` has a hole that is not filled", f"compile the schedule, which fills it; or {mend}")


def _record(step: Do) -> Instruction:
    try:
        return use(step.instruction)
    except Refusal as error:
        error.span = step.span or error.span
        raise


def _check_fragments(step: Do, semantics: Instruction) -> None:
    """Refuses an operand in memory that has neither a fragment nor a descriptor to say where its elements are."""
    for operand in semantics.operands:
        name, memory = operand.name, operand.memory
        region = semantics.kind == UPDATE and memory == "shared"
        if semantics.fragment(name) is None and semantics.host is None and not region:
            raise refuse(step, "instruction-definition", f"`{step}`: operand {name} has several elements in {memory}, but no fragment"
                         " says where they are", f"add fragment= to tl.operand({name!r}, ...)")  # fmt: skip


def _check_licences(step: Do, semantics: Instruction, task: Task) -> None:
    """Refuses an instruction that computes less exactly than the definition gives leave to."""
    made = task.states[0].tensors[0] if task.states else task.outputs[0]
    given = made.definition.allow if made.definition is not None else ()
    for licence in semantics.licences:
        if licence not in given:
            message = f"`{step}` is less accurate than the definition of {made.name} requires; it needs the licence {licence}"
            raise refuse(step, "licence", message, f'write tl.define(..., allow=("{licence}",)), or use another instruction')


def _instead(step: Do, profile: Profile) -> str:
    kind = _record(step).kind
    offered = [i for i in known() if i.kind == kind and i.unavailable(profile) is None]
    here = [i.name for i in offered if i.needs or set(i.dialects) & set(profile.dialects)]
    what = {"move": "moves", "update": "reductions"}.get(kind, "values")
    choice = f"for {what} use one of {', '.join(here)}; or " if here else ""
    return f"{choice}remove the `do` to use plain loops"


class Instructions(PointwiseInstructions):
    """do."""

    # ------------------------------------------------------------ matching

    def leaf_match(
        self, task: Task, spec: Spec, steps: tuple[Step, ...], residences: tuple[Residence, ...], into: str = ""
    ) -> Matched | None:
        """How the instruction at the end of `steps` matches; None where there is none.

        residences: what the steps find resident; into: the memory that a move writes. Raises Refusal where the instruction does not
        fit, as far as that is known before anything is placed.
        """
        step = steps[-1] if steps else None
        if not isinstance(step, Do):
            return None
        semantics = _record(step)
        _check_licences(step, semantics, task)
        written = complete(spec, steps, bool(task.states))
        spec, extents, cut = left(spec, steps, task)
        asked = self._asked(task, spec, steps, residences, into, step)
        name = asked.means.target.tensor.name
        accumulators = [s.memory for s in written if isinstance(s, Place) and s.verb == "accumulate"]
        memory = into or (accumulators[-1] if accumulators else "register")
        sizes = extents.items() if asked.means.kind != POINTWISE else ((d.name, d.extent) for d in asked.means.target.tensor.dims)
        target = matching.Residence(name, memory, asked.means.target.dtype, tuple(sizes))
        leaf = MatchedLeaf(asked.means, tuple(extents.items()), self._level(spec, steps),
                           (*(described(r, asked.residents[r]) for r in asked.reads), target))  # fmt: skip
        binding = dict(step.binding)
        try:
            found = matching.match(semantics, leaf, binding)
        except Refusal as error:
            raise at_step(error, step) from None
        whole = set() if into else set(extents) - cut  # a tail of a whole axis is filled, a piece that was cut must fit
        wrong = [
            m
            for m in found.mismatches
            if m.field not in ("layout", "alignment") and not (m.field == "shape" and m.where in whole)
        ]
        if wrong:
            near = [m for m in matching.nearest(self._here(semantics), leaf, 2, binding) if m.instruction.name != semantics.name]
            raise matching.refuse(str(step), [found.replace(mismatches=tuple(wrong)), *near], span=step.span)
        return Matched(found, asked.reads)

    def _here(self, semantics: Instruction) -> list[Instruction]:
        return [i for i in known() if i.kind == semantics.kind and i.unavailable(self.build.profile) is None]

    def _asked(
        self, task: Task, spec: Spec, steps: tuple[Step, ...], residences: tuple[Residence, ...], into: str, step: Do
    ) -> Seen:
        loads: dict[str, list[Place]] = {}
        for s in steps:
            if isinstance(s, Place) and s.verb in ("load", "compute"):
                loads.setdefault(s.tensor_name, []).append(s)

        def find(whole: Read | Pad) -> Resident:
            read = whole.read if isinstance(whole, Pad) else whole
            mine = [s for s in loads.get(read.tensor.name, ()) if not isinstance(s.what, Read) or s.what is read]
            if mine:
                return promised(whole, mine)
            for residence in reversed(residences):
                if residence.serves(read, whole):
                    return resident(whole, residence)
            return global_read(whole)

        return self._seen(task, spec, find, into, step)

    @staticmethod
    def _seen(
        task: Task, spec: Spec, find: Callable[[Read | Pad], Resident], into: str, step: Do, box: Box | None = None
    ) -> Seen:
        """box: where a state outside registers is."""
        made, computed = task.outputs[0], not isinstance(task.values[0], (Read, Pad))
        target: tuple[str, DType] = (made.name if computed else f"{task.name} in {into}", made.dtype)
        if task.states:
            state = task.states[0]
            target = (f"the accumulator of {state.tensors[0].name}", held_as(step, state.reduce.combiner.left[0].dtype))
        dims = made.dims if not task.states and (computed or into == "global") else None
        if box is not None:
            dims = tuple(Axis(p.name[1:], spec.axis(p.name[1:]).extent) for p in box.points) or task.axes
        found = seen(task, spec, find, target, dims)
        if found is None:
            raise refuse(step, "instruction-mismatch", f"`{step}` does not match the innermost body",
                         "remove the `do`: an instruction updates one reduction of one value without a condition, copies a tensor or"
                         " computes one",
                         _not_one(task))  # fmt: skip
        return found

    def _level(self, spec: Spec, steps: tuple[Step, ...]) -> str:
        """The level that executes the leaf: named by the last spread, or known by how many threads a block has."""
        tiles = [s for s in steps if isinstance(s, Tile) and s.level not in ("cluster", "block")]
        last = steps[-1] if steps else None
        if isinstance(last, Do) and _record(last).issue == ONE_LANE and not tiles:
            return _record(last).level  # one lane of whatever threads there are
        level = tiles[-1].level if tiles else spec.level
        if level not in ("kernel", "block"):
            return level
        alike = [f.name for f in self.build.profile.levels if f.threads == self.build.threads]
        return alike[0] if alike else level

    # ------------------------------------------------------------ the leaf

    def instruction(self, frame: Frame, step: Do) -> ir.Stmt:
        """The leaf as one instruction; finishing: the way back of what it left in registers."""
        semantics = frame.match.instruction
        self._check_whole_units(step, semantics)
        if not frame.task.states and semantics.host is not None:
            return (self.box_store if frame.fill is None else self.box_move)(frame, step, semantics)
        if not frame.task.states:
            return (self.stored_instruction if frame.fill is None else self.move_instruction)(frame, step)
        if frame.finishing:
            return self.fragments_back(frame, step)
        assert frame.state is not None
        read = self.checked(frame, step, "")
        if any(a.empty for a in frame.spec.axes):
            return ir.seq()
        guards = self.conditions(frame, step, semantics.width)
        awaited = semantics.completes == IN_ORDER_GROUP and semantics.family and frame.state.memory == "register"
        if semantics.completes != AT_ONCE and not awaited:
            raise too_late(step, semantics, f" updates an accumulator in {frame.state.memory} and")
        at, region = self.state_updated(frame, step, frame.state)
        operands = [(semantics.writes, frame.state.buffers[0][0], at)]
        regions = [] if region is None else [region]
        for name, whole in read:
            if semantics.fragment(name) is not None:
                operands.append((name, *self.operand_at(frame, step, name, whole)))
                continue
            buffer, at, region = self.region_at(frame, step, name, whole)
            operands.append((name, buffer, at))
            regions.append(region)
        made = ir.Instruction(semantics, tuple(operands), semantics.width, step.span, tuple(regions))
        return guarded(made, guards, step.span)

    def _check_whole_units(self, step: Do, semantics: Instruction) -> None:
        """Threads that issue an instruction together must all be there."""
        over = self.build.threads % semantics.width
        if over:
            raise refuse(step, "not-whole-units", f"`{step}` is issued by {semantics.width} threads together, but a block of"
                         f" {self.build.threads} is not made of whole {semantics.level}s",
                         f"units block = {-(-self.build.threads // semantics.width)} {semantics.level}",
                         f"the last {semantics.level} would have {over} of {semantics.width} threads")  # fmt: skip

    def checked(self, frame: Frame, step: Do, into: str) -> tuple[tuple[str, Read | Pad], ...]:
        """What each operand of the leaf as it stands reads, after comparing layouts and alignment. Raises Refusal."""
        box = frame.state.box if frame.state is not None else None
        asked = self._seen(
            frame.task, frame.spec, lambda whole: resident(whole, self.residence_of(frame, whole)), into, step, box
        )
        found = frame.match
        place = frame.state.buffers[0][0] if frame.state is not None else frame.target.places[0].buffer
        target = matching.Residence(asked.means.target.tensor.name, place.memory, place.dtype, self._target_dims(frame, into))
        residences = [described(r, asked.residents[r]) for r in asked.reads]
        if into or box is not None:
            read = Read(asked.means.target.tensor, asked.means.target.indices)
            laid = described(read, resident(read, box or frame.target.places[0]))
            target = target.replace(dims=laid.dims, layout=laid.layout)
        extents = tuple((a.name, a.extent) for a in frame.spec.axes)
        leaf = MatchedLeaf(asked.means, extents, found.instruction.level, (*residences, target))
        again = matching.match(found.instruction, leaf, dict(found.binding))
        if not again.fits:
            raise matching.refuse(str(step), [again], span=step.span)
        return tuple((name, asked.reads[r]) for name, r in again.operands if name != again.instruction.writes)

    @staticmethod
    def _target_dims(frame: Frame, into: str) -> tuple[tuple[str, int], ...]:
        return tuple((a.name, a.extent) for a in frame.spec.axes if into or not a.reduction)

    def operand_at(self, frame: Frame, step: Do, name: str, whole: Read | Pad) -> tuple[ir.Buffer, tuple[Expr, ...]]:
        """Where an operand's first element is, as the thread sees it."""
        found = frame.match
        held = found.instruction.fragment(name)
        assert held is not None
        residence = self.residence_of(frame, whole)
        read = whole.read if isinstance(whole, Pad) else whole
        points = self.first_points(frame, step, name) if found.instruction.operand(name).memory != "register" else _bases(frame)
        indices = tuple(self.index_value(frame, i, points) for i in read.indices)
        indices = residence.element(indices, frame.coordinates(points))
        try:
            if isinstance(residence, FragmentShare):
                self._check_map(step, name, held, residence)
                return residence.buffer, residence.first(indices, step)
            if isinstance(residence, Share) and held.lanes * held.slots > 1:

                def there(points: dict[str, Expr]) -> tuple[Expr, ...]:
                    element = tuple(self.index_value(frame, i, points) for i in read.indices)
                    return residence.at(residence.element(element, frame.coordinates(points)))

                return residence.buffer, self.run_of(frame, step, name, residence, there)
            return residence.buffer, residence.at(indices)
        except NotOwner as error:
            from tilelang.lowering.build.owners import not_owner  # enumerates in NumPy: only where there is something to show

            raise not_owner(error, step, self.build.threads) from None

    @staticmethod
    def _check_map(step: Do, name: str, held: Fragment, residence: FragmentShare) -> None:
        if residence.map != held:
            raise refuse(step, "reader-is-not-owner", f"`{step}`: {residence.tensor.name} is in registers in the fragment layout of"
                         f" operand {residence.operand}, but operand {name} has"
                         " another", "load it again for this operand, or load it in shared",
                         f"{residence.map} is not {held}")  # fmt: skip

    # ------------------------------------------------------------ tails

    def conditions(self, frame: Frame, step: Do, width: int) -> list[Expr]:
        """The conditions around the instruction that all its threads share. Raises Refusal where points inside it need one."""
        bounds = {b.holds(inside_piece(a.name, a.extent)): (a, b) for a in frame.spec.axes for b in open_bounds(a)
                  if b.key not in frame.fill_keys}  # fmt: skip
        kept = self._unsettled(frame, {c: a for c, (a, _) in bounds.items()}) if frame.task.states else bounds.keys()
        roomless = _roomless(frame)
        found = [*frame.spec.present]
        for condition, (a, b) in bounds.items():
            if condition in kept or b.key in roomless:
                if not (_whole_pieces(a, b) and self._shared_by(b.offset, width)):
                    raise self._unguardable(frame, step, a, b, b.key in roomless)
                found.append(b.holds(index(0)))
        in_shared = frame.state is not None and frame.state.box is not None
        if in_shared and width == 1 and frame.spec.units is not None and frame.spec.units > 1:
            found.append(Binary("==", frame.spec.lane, index(0)))  # one thread updates what all of them see
        return found

    def _unsettled(self, frame: Frame, bounds: dict[Expr, AxisState]) -> Collection[Expr]:
        """The conditions on points of the whole instruction without which it would change a state."""
        points = {a.name: simplify(a.base + inside_piece(a.name, a.extent)) for a in frame.spec.axes}
        exists = tuple(b.holds(inside_piece(a.name, a.extent)) for a in frame.spec.axes if not a.reduction for b in a.bounds)
        reduce = frame.task.states[0].reduce
        effect = Effect(exists, reduce.values[0], reduce.combiner.identity[0])
        return self.settled(frame, bounds, (), points, reduce.values, effect)

    def _shared_by(self, e: Expr, width: int) -> bool:
        """Whether an index is the same for all threads that issue one instruction together."""
        values = {v: 0 for v in e.walk() if isinstance(v, Var)}
        at = [int(evaluate(e, {**values, self.build.thread: t})) for t in range(self.build.threads if width > 1 else 0)]
        return all(at[t] == at[t // width * width] for t in range(len(at)))

    def _unguardable(self, frame: Frame, step: Do, a: AxisState, b: Bound, roomless: bool) -> Refusal:
        if not frame.task.states:
            return unguardable(step, f"`{step}` cannot be guarded, but its last tile along {a.name} extends past the end:"
                               f" it would store {frame.task.name} there", f"use whole tiles of {a.extent} along {a.name}, or remove"
                               " the `do` to use plain loops", a, b)  # fmt: skip
        if roomless:
            return unguardable(step, f"`{step}` cannot be guarded, but its last tile along {a.name} extends past the end:"
                               " the accumulator in shared has no elements there",
                               f"use tile sizes that are multiples of {a.extent} along {a.name} above the accumulator, or remove the"
                               " `do` to use plain loops", a, b)  # fmt: skip
        points = {x.name: simplify(x.base + inside_piece(x.name, x.extent)) for x in frame.spec.axes}
        value = _value(frame.task)
        accesses = self.accesses(frame, [value], points)
        mapping = fills(accesses, [*self.facts(frame, points), Unary("not", b.holds(inside_piece(a.name, a.extent)))])
        bare = [
            (w.read if isinstance(w, Pad) else w).tensor.name for w in reads(value) if w not in mapping and depends(frame, w, a)
        ]
        what = fold(substitute(value, mapping))
        reason = f"nothing fills {', '.join(dict.fromkeys(bare))} there"
        if not bare:
            fill = what.value if isinstance(what, Const) else what
            identity = frame.task.states[0].reduce.combiner.identity[0].value
            reason = f"its operands give {fill} there, not the identity {identity}"
        return unguardable(step, f"`{step}` cannot be guarded, but its last tile along {a.name} extends past the end:"
                           f" {reason}", "load the operands, so that their padding contributes the identity, or remove the `do` to use"
                           " plain loops", a, b)  # fmt: skip


def _value(task: Task) -> Expr:
    """What the leaf combines or stores."""
    return task.states[0].reduce.values[0] if task.states else task.values[0]


def _roomless(frame: Frame) -> Collection[str]:
    """The keys of the bounds beyond which a state that threads share has no elements."""
    if frame.state is None or frame.state.box is None:
        return ()
    roomy = kept_beyond(frame, frame.state).spec
    return {b.key for a in roomy.axes if not a.reduction for b in open_bounds(a) if not b.known}


def _whole_pieces(a: AxisState, b: Bound) -> bool:
    """Whether a bound holds for all points of a piece or for none, wherever the piece begins."""
    terms, constant = linear(b.offset)
    return all(n % max(1, a.extent) == 0 for n in (*(c for _, c in terms), constant - b.limit))


def _bases(frame: Frame) -> dict[str, Expr]:
    return {a.name: a.base for a in frame.spec.axes}


def _not_one(task: Task) -> str:
    if len(task.states) > 1:
        return f"{task.name} has {len(task.states)} reductions that share a loop"
    if task.states and task.states[0].reduce.condition is not None:
        return f"the reduction {task.states[0].tensors[0].name} has a condition"
    if task.states:
        return f"the reduction {task.states[0].tensors[0].name} has {counted(len(task.states[0].reduce.values), 'member')}"
    return f"{task.name} has {len(task.values)} outputs"
