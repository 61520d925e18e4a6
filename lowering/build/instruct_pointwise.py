"""Instructions that store what a schedule makes without a reduction, and operands of one thread in registers that spreads give out.

What such an instruction computes or moves goes where the chain stores: to a tensor, to shared memory, or to the registers of a stage.
It cannot be guarded, so it stands only where a piece exists as a whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable

from tilelang.errors import Refusal
from tilelang.expr import INDEX, Expr, Pad, Var, index, substitute
from tilelang.instruction import AT_ONCE, Instruction
from tilelang.lowering import ir
from tilelang.lowering.build.base import refuse
from tilelang.lowering.build.fragment_moves import FragmentMoves
from tilelang.lowering.build.frame import Frame, NotOwner, Residence, Share
from tilelang.lowering.build.leaf import guarded
from tilelang.lowering.build.matches import resident
from tilelang.lowering.build.runs import Run
from tilelang.simplify import simplify
from tilelang.steps import Do


def too_late(step: Do, semantics: Instruction, where: str) -> Refusal:
    """The refusal of an instruction whose result completes later, where no step waits for it. where: what it writes, and where."""
    return refuse(step, "not-lowered-yet", f"`{step}`{where} completes by {semantics.completes}, which is valid, but not supported yet"
                  " for this target", "remove the `do` to use plain loops")  # fmt: skip


class PointwiseInstructions(FragmentMoves):
    """do, in chains and stages without reductions."""

    def stored_instruction(self, frame: Frame, step: Do) -> ir.Stmt:
        """The leaf of a task without reductions as one instruction; a move too, where it stores what the schedule makes."""
        semantics, place = frame.match.instruction, frame.target.places[0]
        read = self.checked(frame, step, place.buffer.memory)
        if semantics.completes != AT_ONCE:
            raise too_late(step, semantics, "")
        if frame.target.stream or frame.target.behind:
            said = "stream" if frame.target.stream else f"behind {frame.target.behind}"
            raise refuse(step, "instruction-stores", f"`{step}` performs the store itself, so `{said}` would have no effect",
                         f"remove `{said}`, or the `do`")  # fmt: skip
        for _, whole in read:
            if isinstance(whole, Pad) and not resident(whole, self.residence_of(frame, whole)).fills:
                name = whole.read.tensor.name
                raise refuse(step, "unguardable-do", f"`{step}` cannot be guarded, and nothing fills the elements outside {name}",
                             f"load {name}, so that its padding is filled, or remove the `do` to use plain loops",
                             f"it reads {whole}")  # fmt: skip
        guards = self.conditions(frame, step, semantics.width)
        written = (semantics.writes, place.buffer, self.written_at(frame, step, place))
        operands = (written, *((name, *self.operand_at(frame, step, name, whole)) for name, whole in read))
        return guarded(ir.Instruction(semantics, operands, semantics.width, step.span), guards, step.span)

    def written_at(self, frame: Frame, step: Do, place: Residence) -> tuple[Expr, ...]:
        """The first element that the thread writes."""
        name = frame.match.instruction.writes
        if not isinstance(place, Share):
            return self.stored_at(frame, 0, place, self.first_points(frame, step, name))
        try:
            return self.run_of(frame, step, name, place, lambda points: self.stored_at(frame, 0, place, points))
        except NotOwner as error:
            from tilelang.lowering.build.owners import not_owner  # enumerates in NumPy: only where there is something to show

            raise not_owner(error, step, self.build.threads) from None

    # ------------------------------------------------------------ registers that spreads give out

    def run_of(self, frame: Frame, step: Do, name: str, share: Share,
               at: Callable[[dict[str, Expr]], tuple[Expr, ...]]) -> tuple[Expr, ...]:  # fmt: skip
        """Where an operand's first element is in a thread's share; the others must follow it, register by register.

        at: where an element is, from its coordinates. Raises NotOwner, Refusal.
        """
        found = frame.match
        operand, binding, held = found.instruction.operand(name), dict(found.binding), found.instruction.fragment(name)
        if held is None or held.lanes > 1:
            raise refuse(step, "reader-is-not-owner", f"`{step}`: the steps of its load map {share.tensor.name} to threads, but operand"
                         f" {name} has a fragment layout of its own",
                         f"load {share.tensor.name} in register without `tile ... ->` steps: it then follows the fragment"
                         " layout", f"{held}")  # fmt: skip
        slot = Var("?slot", INDEX, 0, held.slots - 1)
        points = {a.name: a.base for a in frame.spec.axes}
        for d, element in zip(operand.dims, held.at(index(0), slot), strict=True):
            points[binding[d.name]] = simplify(points[binding[d.name]] + element)
        found_at = at(points)
        places = tuple(tuple(simplify(substitute(i, {slot: index(n)})) for i in found_at) for n in range(held.slots))
        run = Run(step, name, share.tensor.name, share.buffer, places)
        run.check(share.buffer)
        self.build.runs.append(run)
        return places[0]
