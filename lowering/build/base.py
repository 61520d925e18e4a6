"""The methods that the builder's parts call on each other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from tilelang.check import check_steps
from tilelang.errors import Refusal
from tilelang.expr import Expr, Pad, Read
from tilelang.lowering import ir
from tilelang.lowering.build.frame import Box, Build, Fetch, Frame, Move, Owners, Residence, Ring, Share, Target
from tilelang.spec import Spec, complete
from tilelang.steps import Do, Place, Step, Vectorize
from tilelang.tensor import Layout, Placement

if TYPE_CHECKING:
    from tilelang.computation import Tensor
    from tilelang.lowering.build.cover import Region
    from tilelang.lowering.build.matches import Matched
    from tilelang.lowering.build.regions import Use
    from tilelang.task import Task


class Part:
    """One part of the builder. `build` is the kernel under construction."""

    build: Build

    def chain(self, frame: Frame, i: int) -> ir.Stmt:
        """The statements of steps i, i+1, ... and of the leaf."""
        raise NotImplementedError

    def load(self, frame: Frame, i: int, step: Place) -> ir.Stmt:
        raise NotImplementedError

    def compute(self, frame: Frame, i: int, step: Place) -> ir.Stmt:
        raise NotImplementedError

    def accumulate(self, frame: Frame, i: int, step: Place) -> ir.Stmt:
        raise NotImplementedError

    def via(self, frame: Frame, i: int, step: Place) -> ir.Stmt:
        raise NotImplementedError

    def is_cache(self, step: Place) -> bool:
        """Whether a load is into a memory without addresses, and so a prefetch."""
        raise NotImplementedError

    def leaf(self, frame: Frame, step: Vectorize | Do | None) -> ir.Stmt:
        raise NotImplementedError

    def by_role(self, step: Place) -> bool:
        """Whether a load is not moved by the threads of this role, or in another way than others."""
        raise NotImplementedError

    def on_roles(self, steps: tuple[Step, ...]) -> bool:
        """Whether some of these steps load on another role than the main one: all roles must walk over them alike."""
        raise NotImplementedError

    def make_resident(self, frame: Frame, i: int, step: Place, slot: Expr | None) -> tuple[ir.Stmt, Residence]:
        """The move of a load, and where its readers find it. slot: which buffer of a ring it fills."""
        raise NotImplementedError

    def region(self, frame: Frame, i: int, step: Place) -> tuple[Region, list[Use]]:
        """What a load covers, and the reads that want it."""
        raise NotImplementedError

    def register_load(self, frame: Frame, i: int, step: Place, region: Region, uses: list[Use]) -> tuple[ir.Stmt, Residence]:
        """A load in registers: its statements and its shares."""
        raise NotImplementedError

    def share_of(self, frame: Frame, i: int, step: Place, region: Region, uses: list[Use]) -> Share:
        """What every thread reads below of a tensor that a silent load brings."""
        raise NotImplementedError

    def owners_of(self, frame: Frame, leaf: Spec, names: Sequence[str]) -> Owners:
        """Who makes which element by the steps of a frame, whose leaf is given. names: the axes of the tensor's dimensions."""
        raise NotImplementedError

    def box_for(self, frame: Frame, step: Place, region: Region, known: Ring, slot: Expr | None) -> Box:
        """Where a load's region is in shared memory. slot: which buffer of a ring it is."""
        raise NotImplementedError

    def move(self, frame: Frame, step: Place, region: Region, target: Target, of: Move) -> ir.Stmt:
        """The move of a load to where it goes."""
        raise NotImplementedError

    def move_frame(self, frame: Frame, step: Place, region: Region, target: Target) -> Frame:
        """The frame of a load's move."""
        raise NotImplementedError

    def stage_frame(self, frame: Frame, i: int, k: int, step: Place) -> Frame:
        """The spec of the stage of step k as it will stand, seen from the frame before step i."""
        raise NotImplementedError

    def make_stage(self, frame: Frame, i: int, step: Place, slot: Expr | None) -> tuple[ir.Stmt, tuple[Residence, ...]]:
        """The statements of a stage, and where its readers find its tensors. slot: which buffers of a ring it fills."""
        raise NotImplementedError

    def whole(self, spec: Spec, axes: Collection[str] | None = None) -> tuple[Expr | None, Spec]:
        """The condition under which all points of a spec exist (along the named axes), and the spec with those bounds known."""
        raise NotImplementedError

    def staged_move(self, frame: Frame, i: int, step: Place, slot: Expr) -> tuple[ir.Stmt, ir.Stmt | None]:
        """A move that runs ahead: its fetch, and the store that waits in registers for the end of the round."""
        raise NotImplementedError

    def choose_copies(self, frame: Frame, i: int, step: Place, slot: Expr) -> None:
        """Decides, once, whether a load that runs ahead is copied by the device; frame: as its move will see it in a later round."""
        raise NotImplementedError

    def completes_later(self, ring: Ring, step: Place) -> bool:
        """Whether a load is copied asynchronously: as the device can, or by an instruction that completes with an in-order group."""
        raise NotImplementedError

    def fetched(self, frame: Frame, fetch: Fetch) -> ir.Stmt:
        """The lines that one iteration of the loops below a prefetch brings."""
        raise NotImplementedError

    def awaits_itself(self, rings: list[Ring], body: ir.Stmt) -> bool:
        """Whether whatever reads the rings of these loads in a round has waited for them in the round before."""
        raise NotImplementedError

    def register_ring(self, frame: Frame, i: int, step: Place, number: int) -> ir.Stmt:
        """The fetch of a load that runs ahead in registers, into buffer `number` of its ring."""
        raise NotImplementedError

    def ring_register(self, known: Ring, tensor: Tensor, shape: tuple[int, ...], number: int) -> ir.Buffer:
        """Buffer `number` of a ring in registers."""
        raise NotImplementedError

    def clear_ring(self, ring: Ring, step: Place) -> ir.Stmt:
        """0 in every element of a register ring."""
        raise NotImplementedError

    def rotate_ring(self, ring: Ring, step: Place, exists: Callable[[int], Expr | None]) -> ir.Stmt:
        """After a round: every buffer of a register ring takes the next one's values; readers always use the first.

        exists: the condition under which there is a round so many later.
        """
        raise NotImplementedError

    def ring_body(self, frame: Frame, i: int, slots: dict[Place, Expr], moves: dict[Place, ir.Stmt]) -> ir.Stmt:
        """A walk's body in which some loads are moved ahead: their readers use `slots`."""
        raise NotImplementedError

    def leaf_match(
        self, task: Task, spec: Spec, steps: tuple[Step, ...], residences: tuple[Residence, ...], into: str = ""
    ) -> Matched | None:
        """How the instruction at the end of `steps` matches; None where there is none."""
        raise NotImplementedError

    def written_out(self, frame: Frame, steps: tuple[Step, ...], into: str, order: list[tuple[str, int]] | None = None,
                    between: tuple[Step, ...] = ()) -> Frame:  # fmt: skip
        """A frame with its steps written out, and with how the instruction at their end matches.

        into: the memory that a move writes. order: how it walks its dims; between: what will be placed before the steps.
        """
        matched = self.leaf_match(frame.task, frame.spec, (*between, *steps), frame.residences, into)
        taken = {} if matched is None else matched.taken
        return frame.but(steps=complete(frame.spec, steps, bool(frame.task.states), order, taken), matched=matched)

    def folds(self, frame: Frame, axis: str) -> bool:
        """Whether points beyond the bounds of a reduction axis contribute the identity, by what their operands are filled with."""
        raise NotImplementedError

    def residence_here(self, frame: Frame, whole: Read | Pad) -> Residence | None:
        """Where a read finds its tensor, if it is resident already: a step below may still place it."""
        raise NotImplementedError

    def residence_of(self, frame: Frame, whole: Read | Pad) -> Residence:
        """Where a read finds its tensor."""
        raise NotImplementedError

    def value(self, frame: Frame, e: Expr, points: dict[str, Expr]) -> Expr:
        """An expression of the task at a point, its reads resolved."""
        raise NotImplementedError

    def check_chain(self, spec: Spec, steps: tuple[Step, ...], task: Task, place: Place | None) -> None:
        """Refuses steps of a stage or a move that contradict what they refine. place: whose they are, for steps without a place."""
        kinds = {n: "input" if t.definition is None else "definition" for n, t in self.build.tensors.items()}
        try:
            check_steps(spec, steps, task, kinds)
        except Refusal as error:
            error.span = error.span or getattr(place, "span", None)
            raise

    def default_steps(self, frame: Frame, steps: tuple[Step, ...] | None) -> tuple[Step, ...]:
        """The steps of a move: as written, or the default; spread over the frame's units where they say nothing."""
        raise NotImplementedError


def refuse(step: Step | None, code: str, message: str, mend: str, counterexample: str | None = None) -> Refusal:
    """A Refusal at a step."""
    return Refusal(code, message, span=getattr(step, "span", None), mend=mend, counterexample=counterexample)


def laid_out(step: Place, dims: Mapping[str, int], element_bytes: int) -> Placement:
    """Where a place's layout puts each element of a region. Raises Refusal at the step."""
    try:
        return (step.layout or Layout()).place(dims, element_bytes)
    except Refusal as error:
        raise refuse(step, error.code, f"`{step}`: {error.message}", error.mend or "", error.counterexample) from None
