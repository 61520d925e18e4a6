"""Random schedules for one instruction: a computation derived from it, with the instruction as the innermost body.

A schedule needs operands in the memories, layouts and vectors that the instruction takes. `FORMS` lists the ways to copy them there;
the compiler's own matching decides which of them fits.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Any

from tilelang.computations import functions
from tilelang.computations.computation import Computation, Tensor, computation, input
from tilelang.computations.define import define
from tilelang.core.expr import Axis, Expr, Read, rewrite
from tilelang.errors import ComputationError, Refusal
from tilelang.instructions.instruction import Instruction
from tilelang.instructions.operand import Operand
from tilelang.instructions.semantics import MOVE, UPDATE
from tilelang.lowering.pipeline import lower
from tilelang.options import Options
from tilelang.runtime.targets import Target
from tilelang.schedules.schedule import Builder, Schedule, move
from tilelang.schedules.steps import Split
from tilelang.testing.choice import Source

MOST_FORMS = 3
VECTORS = (2, 4, 8, 16, 32, 64)
PIECES = (1, 2, 3)  # of the instruction, along each of its axes
ROUNDS, ROWS = ("r", "round"), ("i", "row")  # names of axes that the instruction lacks: of a reduction, and of the output


@dataclasses.dataclass(frozen=True)
class Form:
    """A way to stage operands. staged: also through shared memory. vectors: in whole vectors. units: pieces are mapped to units of the
    instruction's level inside a block. one_row: loops over all axes but the last."""

    staged: bool = False
    vectors: bool = True
    units: bool = False
    one_row: bool = False


FORMS = tuple(
    Form(staged, vectors, units, one_row)
    for units, one_row, staged, vectors in itertools.product((False, True), (False, True), (False, True), (True, False))
)


class Schedules:
    """The schedules with one instruction for one target, in up to `MOST_FORMS` forms that are accepted for one piece.

    If none is accepted, raises the Refusal of the form that comes nearest.
    """

    def __init__(self, made: Instruction, target: Target) -> None:
        self.made, self.target = made, target
        self.forms: list[Form] = []
        refused: list[Refusal] = []
        for form in FORMS:
            found = self._plan(form, made.shape, dict.fromkeys(made.shape, 1), 1)
            if isinstance(found, Schedule):
                self.forms.append(form)
                if len(self.forms) == MOST_FORMS:
                    return
            else:
                refused.append(found)
        if not self.forms:
            raise _no_schedule(made, target, min(refused, key=lambda r: len(r.notes)))

    def draw(self, source: Source) -> Schedule:
        """An accepted schedule with one or several pieces along each axis, sometimes with a tail."""
        shape = self.made.shape
        counts = {name: source.pick(PIECES) for name in shape}
        block = {name: source.integer(1, counts[name]) for name in shape}
        rests = {name: source.integer(0, extent - 1) if source.chance(20) else 0 for name, extent in shape.items()}
        rounds, form = source.integer(1, 4), source.pick(self.forms)
        whole = {name: n * counts[name] for name, n in shape.items()}
        ragged = {name: n + rests[name] for name, n in whole.items()}
        for extents in (ragged, whole) if ragged != whole else (whole,):
            found = self._plan(form, extents, block, rounds)
            if isinstance(found, Schedule):
                return found
        return self.simplest()

    def simplest(self) -> Schedule:
        """The schedule with one piece."""
        found = self._plan(self.forms[0], self.made.shape, dict.fromkeys(self.made.shape, 1), 1)
        assert isinstance(found, Schedule)
        return found

    def _plan(self, form: Form, extents: Mapping[str, int], block: Mapping[str, int], rounds: int) -> Schedule | Refusal:
        """The schedule of a form, or its refusal."""
        try:
            whole = _computation(self.made, extents, rounds)
            plan = (_move if self.made.kind == MOVE else _product)(self.made, whole, block, form)
        except Refusal as refusal:
            return refusal
        except ComputationError as error:
            return Refusal(error.code, error.message, span=error.span)
        return _refusal(plan, self.target) or plan


def _no_schedule(made: Instruction, target: Target, why: Refusal) -> Refusal:
    return Refusal(
        "instruction-without-schedule",
        f"no schedule with `{made.name}` was found for {target}; the nearest: {why.code}: {why.message}",
        span=made.span,
        counterexample=why.counterexample,
        help="a profile that has the instruction; else a schedule of your own, with testing.inputs and testing.check_kernel",
    )


def _refusal(plan: Schedule, target: Target) -> Refusal | None:
    here = dataclasses.replace(target.profile, dialects=(target.dialect,))
    try:
        lower(plan.computation, plan.steps, here, Options(), target.needs)
    except Refusal as refusal:
        return refusal
    return None


def _computation(made: Instruction, extents: Mapping[str, int], rounds: int) -> Computation:
    """The instruction's computation at other extents, and along the axes of `_further_axes`."""
    means = made.means
    axes = {a: Axis(a.name, extents[a.name]) for a in means.axes}
    over, rows = (tuple(Axis(name, rounds) for name in names) for names in _further_axes(made))
    further = (*rows, *over)
    tensors: dict[Operand, Tensor] = {}
    for operand in _read(made):
        dims = (Axis(d.name, extents.get(d.name, d.extent)) for d in operand.dims)
        tensors[operand] = input(operand.name, operand.dtype, *further, *dims)

    def renewed(e: Any) -> Any:
        if isinstance(e, Read):
            return Read(tensors[e.tensor], (*further, *e.indices))
        return axes.get(e, e) if isinstance(e, Axis) else e

    value: Expr = rewrite(means.value, renewed)
    if made.kind == UPDATE:
        value = getattr(functions, means.combiner)(value, over=tuple(axes[a] for a in means.reduced) or over)
    if value.dtype != means.target.tensor.dtype:
        value = functions.cast(value, means.target.tensor.dtype)
    result = define(made.writes, value, *rows, *(axes[a] for a in means.target_axes), allow=made.licences)
    return computation(f"{made.name}_pieces", (result,))


def _further_axes(made: Instruction) -> tuple[list[str], list[str]]:
    """The name of an axis to reduce, if an update takes one point of a reduction; and of an output axis, if it has none."""
    over = made.kind == UPDATE and not made.means.reduced
    names = ((ROUNDS, over), (ROWS, not made.means.target_axes))
    reduced, kept = ([next(n for n in some if n not in made.shape)] if wanted else [] for some, wanted in names)
    return reduced, kept


def _product(made: Instruction, whole: Computation, block: Mapping[str, int], form: Form) -> Schedule:
    """A schedule with an update or a pointwise instruction as the innermost body."""
    kept = {a.name: made.shape[a.name] for a in made.means.target_axes}
    reduced = {a.name: made.shape[a.name] for a in made.means.reduced}
    for known, names in zip((reduced, kept), _further_axes(made), strict=True):
        known.update(dict.fromkeys(names, 1))
    outer = {a: n * block.get(a, 1) for a, n in kept.items()}
    plan = Schedule(whole).tile(**outer).to("block")
    if made.kind == UPDATE:
        plan = plan.accumulate("register")
        staged_of = {a: n * block.get(a, 1) for a, n in reduced.items()}
        plan = plan._then(Split(tuple(staged_of.items()))) if reduced and form.staged else plan
    for o in _read(made):
        if o.memory == "shared" or (form.staged and o.memory == "register"):
            plan = plan.load(o.name, "shared", layout=o.layouts[0] if o.layouts else None)
    if form.units:
        plan = plan.tile(**kept).to(made.level)
    if reduced:
        plan = plan._then(Split(tuple(reduced.items())))
    plan = _registers(made, plan, form)
    if form.one_row and not form.units:
        plan = plan._then(Split(tuple(kept.items()), unroll=True))
    return plan.do(made.name, **{a: a for a in made.shape})


def _registers(made: Instruction, plan: Schedule, form: Form) -> Schedule:
    """The loads of the operands that the instruction has in registers."""
    for o in _read(made):
        if o.memory != "register":
            continue
        steps = None
        if form.vectors and made.lanes == 1 and o.dims and o.dims[-1].extent in VECTORS:
            steps = move().vectorize(**{o.dims[-1].name: o.dims[-1].extent})
        plan = plan.load(o.name, "register", steps=steps)
    return plan


def _read(made: Instruction) -> list[Operand]:
    names = {r.tensor.name for r in made.means.reads}
    return [o for o in made.operands if o.name in names]


def _move(made: Instruction, whole: Computation, block: Mapping[str, int], form: Form) -> Schedule:
    """A copy from one memory to another, as part of a longer copy."""
    source, target = _read(made)[0], made.operand(made.writes)
    outer = {a: n * block.get(a, 1) for a, n in made.shape.items()}
    plan = Schedule(whole).tile(**outer).to("block")

    def by(steps: Builder) -> Any:
        alone = made.level == "thread" and not form.units
        return (steps.tile(**made.shape).to("thread") if alone else steps).do(made.name)

    if target.memory == "global":
        return plan.via(source.memory, steps=by(move()))
    if source.memory == "shared":
        plan = plan.load(source.name, "shared")
    if form.units:
        plan = plan.tile(**made.shape).to(made.level)
    return plan.load(source.name, target.memory, steps=by(move()))
