"""Moves whose leaf is an instruction: asynchronous copies of a thread, and loads that bring fragments into registers.

A move that completes with an in-order group becomes Copy, and its group is closed and awaited here: right after a load, or, where the
load runs ahead, at the beginning of the round that reads it. Elements that do not exist are what the instruction gives outside.
"""

from __future__ import annotations

from tilelang.expr import Expr, Pad, Read, index
from tilelang.fragment import row_major
from tilelang.instruction import AT_ONCE, IN_ORDER_GROUP, ONE_LANE, use
from tilelang.lowering import ir
from tilelang.lowering.build.base import refuse
from tilelang.lowering.build.copies import Copies, NotCopied
from tilelang.lowering.build.fragments import open_bounds, unguardable
from tilelang.lowering.build.frame import Frame, Residence, Ring
from tilelang.lowering.build.leaf import guarded
from tilelang.lowering.build.neighbours import check_neighbours
from tilelang.simplify import simplify
from tilelang.spec import names_below
from tilelang.steps import Do, Place, Step, Tile


class InstructionMoves(Copies):
    """do, in moves."""

    def checked(self, frame: Frame, step: Do, into: str) -> tuple[tuple[str, Read | Pad], ...]:
        """What each operand of the leaf as it stands reads, after comparing layouts and alignment. Raises Refusal."""
        raise NotImplementedError

    def conditions(self, frame: Frame, step: Do, width: int) -> list[Expr]:
        """The conditions around the instruction that all its threads share. Raises Refusal where points inside it need one."""
        raise NotImplementedError

    def written_at(self, frame: Frame, step: Do, place: Residence) -> tuple[Expr, ...]:
        """The first element that the thread writes. Raises Refusal."""
        raise NotImplementedError

    # ------------------------------------------------------------ completion

    def completes_later(self, ring: Ring, step: Place) -> bool:
        """Whether a load is copied asynchronously: as the device can, or by an instruction that completes with an in-order group."""
        last = step.steps[-1] if step.steps and step.verb == "load" else None
        return ring.copied or isinstance(last, Do) and use(last.instruction).completes == IN_ORDER_GROUP

    def make_resident(self, frame: Frame, i: int, step: Place, slot: Expr | None) -> tuple[ir.Stmt, Residence]:
        """As for other moves; outside a ring an asynchronous one is awaited at once."""
        move, residence = super().make_resident(frame, i, step, slot)
        if slot is None and self.completes_later(self.build.ring(frame.key(i)), step):
            move = ir.seq(move, ir.Commit(step.span), ir.Wait(0, step.span))
        return move, residence

    def staged_move(self, frame: Frame, i: int, step: Place, slot: Expr) -> tuple[ir.Stmt, ir.Stmt | None]:
        """An asynchronous move waits nowhere: the device stores it."""
        if self.completes_later(self.build.ring(frame.key(i)), step):
            return self.make_resident(frame, i, step, slot)[0], None
        return super().staged_move(frame, i, step, slot)

    def ring_body(self, frame: Frame, i: int, slots: dict[Place, Expr], moves: dict[Place, ir.Stmt]) -> ir.Stmt:
        """A round: asynchronous moves of earlier rounds are awaited as far as this round needs them, this round's make a group."""
        rings = {step: self.build.ring(frame.key(frame.steps.index(step, i))) for step in moves}
        mine = [step for step, ring in rings.items() if self.completes_later(ring, step)]
        if not mine:
            return super().ring_body(frame, i, slots, moves)
        last = mine[-1]
        closed = {**moves, last: ir.seq(moves[last], ir.Commit(last.span))}
        pending = min(step.ahead for step in mine) - 1
        body = super().ring_body(frame, i, slots, closed)
        return body if self.awaits_itself([rings[step] for step in mine], body) else ir.seq(ir.Wait(pending, last.span), body)

    def default_steps(self, frame: Frame, steps: tuple[Step, ...] | None) -> tuple[Step, ...]:
        """A `do` that spreads nothing gives its pieces to the threads, where one thread issues it."""
        last = steps[-1] if steps else None
        if isinstance(last, Do) and use(last.instruction).issue == ONE_LANE:
            return steps or ()
        if not isinstance(last, Do) or (frame.spec.units or 1) == 1 or any(isinstance(s, Tile) for s in steps or ()):
            return super().default_steps(frame, steps)
        spread = (*(steps or ())[:-1], Tile((), "thread"), last)
        matched = self.leaf_match(frame.task, frame.spec, spread, frame.residences, "shared")
        assert matched is not None
        sizes = tuple((a, matched.taken.get(a, 1)) for a in names_below(frame.spec.names, steps or ()))
        return (*(steps or ())[:-1], Tile(sizes, "thread"), last)

    # ------------------------------------------------------------ by one thread

    def move_instruction(self, frame: Frame, step: Do) -> ir.Stmt:
        """The leaf of a load as one instruction of a thread."""
        found = frame.match
        semantics = found.instruction
        self.checked(frame, step, frame.target.places[0].buffer.memory)
        source = next(name for name, _ in found.operands if name != semantics.writes)
        whole = frame.task.values[0]
        assert isinstance(whole, (Read, Pad))
        from_buffer, from_at = self.operand_at(frame, step, source, whole)
        place = frame.target.places[0]
        at = self.written_at(frame, step, place)
        held = semantics.fragment(semantics.writes)
        assert held is not None
        if semantics.completes == IN_ORDER_GROUP and held == row_major((held.slots,)) == semantics.fragment(source):
            guards = self.conditions(frame, step, semantics.width)
            count = self._count(frame, step, held.slots)
            written = semantics.operand(semantics.writes)
            if written.neighbours:
                check_neighbours(step, written, place.buffer, at, held.slots, guards, self.build.threads)
            copy = ir.Copy(place.buffer, at, from_buffer, from_at, held.slots, count, step.span, semantics, across=held.slots > 1)
            return guarded(copy, guards, step.span)
        if semantics.completes != AT_ONCE:
            raise refuse(step, "not-lowered-yet", f"`{step}` completes by {semantics.completes}, which is valid, but not supported yet"
                         " for this target", "remove the `do` to use plain loops")  # fmt: skip
        filled = ((a, b) for a in frame.spec.axes for b in open_bounds(a) if b.key in frame.fill_keys)
        for axis, bound in filled:
            raise unguardable(step, f"`{step}` cannot be guarded, but the elements outside must be filled",
                              "remove the `do` to use plain loops", axis, bound)  # fmt: skip
        operands = ((semantics.writes, place.buffer, at), (source, from_buffer, from_at))
        shared = self.conditions(frame, step, semantics.width)
        return guarded(ir.Instruction(semantics, operands, semantics.width, step.span), shared, step.span)

    def _count(self, frame: Frame, step: Do, lanes: int) -> Expr | None:
        """How many leading elements exist in the source; None: all."""
        found = frame.match
        (moving,) = (theirs for _, theirs in found.binding)
        try:
            count = self.existing(frame, moving, lanes, [])
        except NotCopied as reason:
            raise refuse(
                step, "unguardable-do", f"`{step}` cannot be guarded: {reason}", "remove the `do` to use plain loops"
            ) from None
        if count is None:
            return None
        outside = found.instruction.outside
        if frame.fill is None or outside is None or frame.fill.value != outside:
            gives, needs = (
                v if v is not None else "nothing" for v in (outside, frame.fill.value if frame.fill is not None else None)
            )
            raise refuse(step, "unguardable-do", f"`{step}` gives {gives} outside the tensor, but the reader needs {needs}",
                         "remove the `do` to use plain loops")  # fmt: skip
        return count

    # ------------------------------------------------------------ operands

    def first_points(self, frame: Frame, step: Do, name: str) -> dict[str, Expr]:
        """The coordinates of the first element that the thread names of an operand in an addressed memory."""
        found = frame.match
        held, operand, binding = found.instruction.fragment(name), found.instruction.operand(name), dict(found.binding)
        assert held is not None
        points: dict[str, Expr] = {a.name: a.base for a in frame.spec.axes}
        for dim, inside in zip(operand.dims, held.at(frame.spec.lane, index(0)), strict=True):
            points[binding[dim.name]] = simplify(points[binding[dim.name]] + inside)
        return points

    def operand_at(self, frame: Frame, step: Do, name: str, whole: Read | Pad) -> tuple[ir.Buffer, tuple[Expr, ...]]:
        """Where an operand's first element is, as the thread sees it."""
        raise NotImplementedError

    def index_value(self, frame: Frame, e: Expr, points: dict[str, Expr]) -> Expr:
        """An index of the task at a point."""
        return simplify(self.value(frame, e, points))
