"""Each step as far as it can be checked when it is written: axes, levels, orders, names; what the language has and no target lowers.

`advance` gives the spec after one step or raises the Refusal of a step that contradicts the spec it meets; `CheckedSteps` holds a
whole schedule, and goes on from there. What depends on a device, or on everything below a step, is known when it is lowered.
"""

from __future__ import annotations

import collections
import copy
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from tilelang.computations.computation import Computation
from tilelang.core import dtype as dt
from tilelang.core.expr import INDEX, Expr, Read, Var, index
from tilelang.errors import Refusal, TileLangError, at_step, collected, meant, nearest, not_too_deep, together
from tilelang.profiles.profile import Profile
from tilelang.schedules.shared_loops import loop_of, reads_any
from tilelang.schedules.spec import LEVELS, AxisState, Spec, refuse_step, root_spec
from tilelang.schedules.steps import Do, Fuse, Inline, Open, Place, Split, Step, Tile, Unfuse, Units, Vectorize, When
from tilelang.schedules.task import Task, Unplaced, placed_names, prefix_of, task_of, tasks_of
from tilelang.schedules.unit_numbering import check_order, check_order_form, order_extents
from tilelang.schedules.walk import count_pieces, piece_of

MAX_LANES = 4096  # far beyond any device; more would only make a compilation long
MOST_CUTS = 32  # of one axis in a chain: each is a loop


def axis_extents(computation: Computation) -> dict[str, int]:
    """The extent of every axis that a `when` may ask for; where definitions share a name, the output's axis has it."""
    found: dict[str, int] = {}
    for d in computation.definitions:
        reduced = d.reduction.axes if d.reduction is not None else ()
        found.update({a.name: a.extent for a in (*d.axes, *reduced)})
    return found


def resolve_when(steps: tuple[Step, ...], extents: Mapping[str, int], profile: Profile | None = None) -> tuple[Step, ...]:
    """The steps with every `when` decided by the extents, and by what the profile's device can do; without one, by what any can."""
    out: list[Step] = []
    for step in steps:
        if isinstance(step, When):
            values: dict[Expr, Any] = {Var(n, INDEX): e for n, e in extents.items()}
            for v in step.condition.walk():
                if isinstance(v, Var) and v.dtype is dt.bool_:
                    values[v] = profile is not None and profile.can(v.name.removeprefix("can(").removesuffix(")"))
                elif isinstance(v, Var) and v.name not in extents:
                    raise _unknown_axis(step, v.name, tuple(extents))
            import numpy as np  # late: NumPy takes long to import

            from tilelang.core.numeric import evaluate  # late: imports NumPy

            chosen = bool(evaluate(step.condition, {v: np.asarray(x) for v, x in values.items()}))
            out += resolve_when(step.then if chosen else step.otherwise, extents, profile)
        elif isinstance(step, Place) and step.steps is not None:
            inner = resolve_when(step.steps, extents, profile)
            out.append(step if inner == step.steps else step.replace(steps=inner))  # a step is itself wherever it stays
        else:
            out.append(step)
    return tuple(out)


# ---------------------------------------------------------------- one step, as far as it can be checked alone


def advance(spec: Spec, step: Step, task: Task, inputs: Mapping[str, str]) -> Spec:
    """The spec after a step. inputs: "input" or "definition" per tensor name.

    Raises Refusal where the step contradicts the spec it meets.
    """
    match step:
        case Tile():
            _check_tile(spec, step)
        case Split(sizes=sizes):
            _check_axes(spec, step, sizes)
            if step.of and task is _NO_TASK:
                later(step, "a loop shared by several reductions, in braces,")
            if step.of:
                _check_shared(spec, step)
        case Fuse():
            _check_fuse(spec, step)
        case Unfuse():
            _check_unfuse(spec, step)
        case Place():
            _check_place(spec, step, task, inputs)
        case Vectorize(axis, lanes):
            _check_axes(spec, step, ((axis, lanes),))
            if isinstance(lanes, int) and (lanes & (lanes - 1) or lanes > MAX_LANES):
                message = f"`{step}`: {lanes} is not a valid number of lanes"
                raise refuse_step(step, "vector-width", message, f"use a power of two, at most {MAX_LANES}")
        case Units(level=level) if level not in LEVELS:
            raise refuse_step(step, "unknown-level", f"`{step}`: there is no level `{level}`", "use one of " + ", ".join(LEVELS))
        case Inline(tensor) if inputs.get(tensor) != "definition":
            known = [n for n, kind in inputs.items() if kind == "definition"]
            help = "use the name of a pointwise definition" if tensor in inputs else meant(tensor, known)
            raise refuse_step(step, "inline-unknown", f"`{tensor}` is not a definition", help)
        case Units() | Inline() | Do() | Open() | When():
            pass
        case _:
            raise AssertionError(step)
    return spec.after(step)


def renamed(spec: Spec, steps: Iterable[Step]) -> Spec:
    """The spec with its axes as the `fuse` and `unfuse` of a chain make them, and not cut. Raises Refusal.

    >>> from tilelang import axes, define, float32, input
    >>> from tilelang.schedules.task import make_task
    >>> i, j = axes(i=4, j=6)
    >>> task = make_task((define("Y", input("X", float32, i, j)[i, j] * 2, i, j),), lambda t: False)
    >>> print(renamed(root_spec(task), (Fuse("ij", ("i", "j")), Split((("ij", 8),)))))
    Y  ij:24  on kernel
    """
    for step in steps:
        if isinstance(step, (Fuse, Unfuse)):
            spec = advance(spec, step, _NO_TASK, {})
    return spec


def _check_tile(spec: Spec, step: Tile) -> None:
    """Its axes, level and order, and whether the target lowers what it asks for."""
    level, left = step.level, spec.extents
    _check_axes(spec, step, step.sizes)
    _check_level(spec, step, level)
    check_step_order(step, left.sizes, left.reduced)
    if level == "cluster" and any(a in left.reduced for a, _ in step.sizes):
        message = f"`{step}` maps a reduction to clusters"
        raise refuse_step(step, "reduction-over-clusters", message, "map the reduction to blocks, warps or threads")
    if spec.level == "kernel" and level in ("cluster", "block"):
        if any(r.startswith(f"{spec.title}:") for r in spec.residences):
            raise refuse_step(step, "not-lowered-yet", f"`{step}` below an accumulator: an accumulator that blocks share is valid,"
                              " but not supported yet for this target", "write the accumulator below the blocks")  # fmt: skip
        _check_above_blocks(spec, step)


def _check_shared(spec: Spec, step: Split) -> None:
    """The axis of a shared loop is that of its reductions, and whole."""
    for name, _ in step.sizes if len(step.sizes) == 1 else ():
        axis = spec.axis(name)
        if not axis.reduction:
            raise refuse_step(step, "shared-axes", f"`{step}`: {name} is not a reduction axis of {spec.title}",
                          "name in `of` a reduction whose results are read element by element")  # fmt: skip
        if axis.base is not index(0) or axis.bounds:
            later(step, f"a loop shared by several reductions below a step that divides {name}")


def _check_fuse(spec: Spec, step: Fuse) -> None:
    """Only axes of one kind, none of them cut, can be one."""
    name, axes = step.name, step.axes
    _check_axes(spec, step, tuple((a, 1) for a in axes))
    if name in spec.names:
        raise refuse_step(step, "axis-exists", f"there is an axis `{name}` already", "use another name for the fused axis")
    if len({spec.axis(a).reduction for a in axes}) > 1:
        raise refuse_step(step, "fuse-mixed", f"`{step}` fuses a reduction axis with an output axis", "fuse axes of one kind")
    _check_uncut(spec, step, axes)


def _check_unfuse(spec: Spec, step: Unfuse) -> None:
    """Only an axis that was not cut can be several, with as many points."""
    axis, parts = step.axis, step.parts
    _check_axes(spec, step, ((axis, 1),))
    taken = next((n for n, _ in parts if n in spec.names and n != axis), None)
    if taken is not None:
        raise refuse_step(step, "axis-exists", f"there is an axis `{taken}` already", "use another name for the part")
    _check_uncut(spec, step, (axis,))
    product = math.prod(extent for _, extent in parts)
    if product != spec.axis(axis).extent:
        raise refuse_step(step, "unfuse-product", f"`{step}` gives {product} points, but {axis} has {spec.axis(axis).extent}",
                      "use extents whose product is the extent of the axis")  # fmt: skip


def _check_uncut(spec: Spec, step: Fuse | Unfuse, axes: Iterable[str]) -> None:
    """The bounds of a cut are those of one axis: nothing could keep them on several, or on parts."""
    for a in axes:
        if spec.axis(a).base is not index(0) or spec.axis(a).bounds:
            verb = "fuse" if isinstance(step, Fuse) else "unfuse"
            raise refuse_step(
                step,
                f"{verb}-after-cut",
                f"`{step}` must be above the steps that divide `{a}`",
                f"{verb} these axes before you tile or split them",
            )


def _check_above_blocks(spec: Spec, step: Step) -> None:
    """A walk over a reduction around the blocks would keep its state from one block to the next."""
    for axis in spec.axes:
        if axis.reduction and axis.base is not index(0):
            later(
                step,
                f"a loop over the reduction axis {axis.name} around the blocks, with an accumulator that is kept between them,",
            )


def later(step: Step, what: str) -> None:
    """Refuses what the data model has and no target lowers yet."""
    raise refuse_step(step, "not-lowered-yet", f"`{step}`: {what} is valid, but not supported yet for this target",
                  "remove it from the schedule for now")  # fmt: skip


def _unknown_axis(step: Step, axis: str, known: tuple[str, ...]) -> Refusal:
    near = nearest(axis, known)
    names = f"its axes are {', '.join(known)}" if known else "it has no axes"
    return refuse_step(step, "unknown-axis", f"`{step}`: there is no axis `{axis}` at this step ({names})",
                       f"did you mean `{near}`?" if near else "use one of the axes at this step")  # fmt: skip


def _check_axes(spec: Spec, step: Step, sizes: Iterable[tuple[str, object]]) -> None:
    seen: set[str] = set()
    for axis, _ in sizes:
        if axis not in spec.names:
            raise _unknown_axis(step, axis, spec.names)
        if axis in seen:
            raise refuse_step(step, "axis-twice", f"`{step}` names `{axis}` twice", "name each axis once")
        seen.add(axis)


def _check_level(spec: Spec, step: Step, level: str) -> None:
    if level not in LEVELS or spec.level not in LEVELS:
        return  # the profile may know them; the lowering asks
    if level == "kernel" or LEVELS.index(level) < LEVELS.index(spec.level):
        raise refuse_step(step, "level-goes-up", f"`{step}`: this step is executed by a {spec.level}, and a {level} is a higher level",
                      "map tiles to levels in the order block, warpgroup, warp, thread; any of them can be skipped")  # fmt: skip
    if level == spec.level == "thread":
        raise refuse_step(
            step, "level-goes-up", f"`{step}`: this step is already executed by one thread", "use split for a loop, or vectorize"
        )


def check_step_order(step: Tile, extents: Mapping[str, int], reduced: Collection[str]) -> None:
    """An order must number the tiles so that each has a unit of its own; units that share a reduction meet by their axes' order.

    extents: what is left of the axes; reduced: those of a reduction. Raises Refusal.
    """
    if step.order is None:
        return
    shared = next((a for a, _ in step.sizes if a in reduced), None)
    if shared is not None and step.level != "block":
        raise refuse_step(step, "not-lowered-yet", f"`{step}`: an order of units that share the reduction along {shared} is valid, but"
                      " not supported yet for this target",
                      "write the axes of the tile in the order you need: neighbouring units differ in the last one")  # fmt: skip
    piece = piece_of(step)
    if len(piece) < len(step.sizes):
        return  # a hole: checked when it is filled
    tiles = count_pieces(piece, extents)
    try:
        check_order(step.order, {a: 0 if extents[a] == 0 else n for a, n in tiles.items()})
    except Refusal as refusal:
        raise refuse_step(step, refusal.code, refusal.message, refusal.help or "", refusal.counterexample) from None
    if shared is not None and (numbers := math.prod(order_extents(step.order, tiles))) > math.prod(tiles.values()):
        raise refuse_step(step, "order-term", f"`{step}`: some numbers of the order have no tile, but every block that shares the"
                      f" reduction along {shared} must have a partial result", "use divisors in the terms that divide the number of"
                          " tiles",
                      f"there are {numbers} numbers and {math.prod(tiles.values())} tiles")  # fmt: skip


def _check_form(step: Tile) -> None:
    """What is wrong with an order however many tiles there are."""
    assert step.order is not None
    try:
        check_order_form(step.order, [a for a, _ in step.sizes])
    except Refusal as refusal:
        raise refuse_step(step, refusal.code, refusal.message, refusal.help or "") from None


def _check_place(spec: Spec, step: Place, task: Task, kinds: Mapping[str, str]) -> None:
    """Its tensor and its memory."""
    if step.memory == "image":
        later(step, "image memory")
    if step.verb == "accumulate" and not task.states:
        raise refuse_step(step, "nothing-to-accumulate", f"`{step}`: {spec.title} has no reduction",
                          "remove it; for a pointwise result use via or compute")  # fmt: skip
    if step.verb in ("load", "compute"):
        _check_named(step, kinds)
    of_block = {"accumulate": (), "via": ("shared",)}.get(step.verb, ("register", "shared"))
    if spec.level == "kernel" and step.memory in of_block:
        raise _above_blocks(step)


def _check_named(step: Place, kinds: Mapping[str, str]) -> None:
    """There is the tensor that a place names, and what is computed is not an input."""
    name = step.tensor_name
    if name not in kinds:
        raise refuse_step(step, "unknown-tensor", f"`{step}`: there is no tensor `{name}`",
                      meant(name, kinds))  # fmt: skip
    if step.verb == "compute" and kinds[name] == "input":
        raise refuse_step(step, "compute-of-input", f"`{step}`: {name} is an input", f"load {name} in {step.memory}")


def _faults_of_stages(step: Place, kinds: Mapping[str, str]) -> Iterator[TileLangError]:
    """What is wrong with the stages in a place's braces, at any depth: only what is computed reads any."""
    for inner in (s for s in step.steps or () if isinstance(s, Place)):
        if inner.verb == "compute":
            faults: list[TileLangError] = []
            with collected(faults):
                _check_named(inner, kinds)
                if step.verb != "compute":
                    raise refuse_step(inner, "stage-unread", f"`{inner}`: nothing reads {inner.tensor_name} in the braces of"
                                      f" `{step.replace(steps=None)}`, which only describe its"
                                      " copy", "write it above that step")  # fmt: skip
                if step.memory != "global":
                    raise refuse_step(inner, "not-lowered-yet", f"`{inner}` in the braces of `{step.replace(steps=None)}` is valid, but"
                                      " not supported yet", "write it above that step")  # fmt: skip
            yield from (at_step(e, inner) for e in faults)
        yield from _faults_of_stages(inner, kinds)


def _above_blocks(step: Place) -> Refusal:
    message = f"`{step}` is above the first `tile ... -> block`, but {step.memory} memory belongs to a block"
    return refuse_step(step, "memory-above-block", message, "map tiles to blocks first: .tile(...).to(tl.block)")


def tensor_kinds(computation: Computation) -> dict[str, str]:
    """ "input" or "definition" for every tensor, by name."""
    kinds = {t.name: "input" for t in computation.inputs}
    kinds.update({t.name: "definition" for d in computation.definitions for t in d.tensors})
    return kinds


def main_task(computation: Computation, steps: tuple[Step, ...], profile: Profile | None = None) -> Task:
    """The task that a schedule's steps refine, those that each `when` chooses. profile: as of `resolve_when`."""
    return tasks_of(computation, resolve_when(steps, axis_extents(computation), profile), unfinished=True)[-1]


class CheckedSteps:
    """The steps of a schedule, checked as they are written: the spec before the first one and after each, and what is wrong with them.

    specs: as far as they are known. refused: the refusals of all steps but those of axes that refused steps cut or make, and those
    below steps that are left open: what can stand there is known once these are filled. It never changes: `then` gives another one.
    """

    @not_too_deep
    def __init__(self, computation: Computation, steps: tuple[Step, ...], unsure: Collection[str] = ()) -> None:
        """unsure: axes that steps cut or make that could not be read."""
        resolved = resolve_when(steps, axis_extents(computation))
        self._computation, self._resolved = computation, resolved[:0]
        self._task, self._placed = _refined_task(computation, resolved)
        kernels = prefix_of(resolved)
        self._in_memory = placed_names(computation, tuple(s.replace(steps=None) for s in kernels))
        self._in_last = placed_names(computation, tuple(s for s in resolved if s not in kernels))
        self._chain = _Chain(root_spec(self._task), self._task, tensor_kinds(computation), computation)
        self.specs: tuple[Spec, ...] = (self._chain.spec,)
        self.refused: tuple[TileLangError, ...] = ()
        self._left_open, self._cuts = frozenset(unsure), collections.Counter[str]()
        self._add(resolved)

    @not_too_deep
    def then(self, step: Step) -> CheckedSteps:
        """The same with one step more. Only that step is checked, unless it places what others took for substituted."""
        more = resolve_when((step,), axis_extents(self._computation)) if isinstance(step, When) else (step,)
        if placed_names(self._computation, more):
            whole = (*self._resolved, *more)
            if _refined_task(self._computation, whole) != (self._task, self._placed):
                return CheckedSteps(self._computation, whole)
        made = copy.copy(self)
        made._chain, made._cuts = copy.copy(self._chain), self._cuts.copy()
        made._add(more)
        return made

    def _placed_for(self, step: Place) -> set[str]:
        """What the stage or the kernel of a place finds made: in memory, or by the stages of its kernel."""
        own = step.memory not in ("register", "shared")
        return self._in_memory | (placed_names(self._computation, step.steps or ()) if own else self._in_last)

    def raise_refused(self) -> None:
        """Raises what is wrong with the steps: the Refusal of one, or all as Findings."""
        if self.refused:
            raise together(self.refused)

    def _add(self, steps: tuple[Step, ...]) -> None:
        check_cuts(steps, self._cuts)
        for step in steps:
            chain, before, filled = self._chain, self._chain.spec, not self._chain.open
            braces = _faults_in_braces(self._computation, before, step, self._placed_for(step)) if isinstance(step, Place) else ()
            if found := chain.add(step, braces):
                axes = _axes_of(step)
                if filled and not self._left_open & axes:
                    self.refused += tuple(at_step(e, step) for e in found)
                self._left_open |= axes & set(before.names) if isinstance(step, (Tile, Split)) else axes
                if isinstance(step, Tile) and before.level in LEVELS and step.level in LEVELS[LEVELS.index(before.level) :]:
                    chain.spec = chain.spec.replace(level=step.level)
            self._resolved += (step,)
            self.specs += (chain.spec,)


def _refined_task(computation: Computation, steps: tuple[Step, ...]) -> tuple[Task, set[str]]:
    """The task that steps refine, of which others may follow, and the tensors that they place."""
    return tasks_of(computation, steps, unfinished=True)[-1], placed_names(computation, steps)


class _Chain:
    """A chain of steps as it is read: the spec after those so far, and what the order of steps asks of them."""

    def __init__(self, spec: Spec, task: Task, kinds: Mapping[str, str], computation: Computation | None = None) -> None:
        self.spec, self._task, self._kinds, self._computation = spec, task, kinds, computation
        self._shared: Split | None = None
        self._leaf: Step | None = None  # nothing follows it
        self._body: Step | None = None  # the first that is neither `inline` nor `units`
        self._units: tuple[Units, ...] = ()
        self.open = False  # whether some of the steps are left open

    def add(self, step: Step, braces: Iterable[TileLangError] = ()) -> list[TileLangError]:
        """Goes on by a step; what is wrong with it. braces: what is wrong with the steps in its braces."""
        found: list[TileLangError] = []
        with collected(found):
            self._check_place_among(step)
        if isinstance(step, Split) and step.of:
            with collected(found):
                self._check_members(step)
        found += braces
        with collected(found):
            self.spec = advance(self.spec, step, self._task, self._kinds)
        if isinstance(step, Units):
            self._units += (step,)
        elif not isinstance(step, Inline):
            self._body = self._body or step
        self._leaf = step if isinstance(step, (Vectorize, Do)) else self._leaf
        self.open |= isinstance(step, Open)
        return found

    def _check_members(self, step: Split) -> None:
        """The reductions of a shared loop, and those that would read a value of it before it is final."""
        if self._computation is None:
            later(step, "a loop shared by several reductions, in braces,")
        if self._shared is not None:
            later(step, f"a second loop shared by several reductions, beside `{self._shared}`,")
        self._shared = step
        assert self._computation is not None
        own = {t for m in loop_of(self._computation, step).members for t in m.definition.tensors}
        made = [t for s in self._task.states for t in s.tensors]
        read = {
            r.tensor for state in self._task.states for value in state.reduce.values for r in value.walk() if isinstance(r, Read)
        }
        final = next((t for t in made if t not in own), None)
        if final is not None and reads_any(read, own):
            raise refuse_step(step, "shared-left-out", f"`{step}`: {final.name} reads a value that is final only after the loop",
                          f"name {final.name} in `of`, too")  # fmt: skip

    def _check_place_among(self, step: Step) -> None:
        """The order of steps: a leaf comes last, `inline` and `units` first."""
        if self._leaf is not None:
            raise refuse_step(step, "step-after-leaf", f"`{step}` is after `{self._leaf}`, which must be the last step",
                              "write `vectorize` and `do` last")  # fmt: skip
        if isinstance(step, Inline) and self._body is not None:
            message = f"`{step}` would change the computation that the steps above it schedule"
            raise refuse_step(step, "inline-late", message, "write inline at the head of the schedule")
        if isinstance(step, Units):  # all that is spread runs on them: they stand above everything but `inline`, once for a level
            if self._body is not None:
                raise refuse_step(step, "units-late", f"`{step}` is below `{self._body}`, but the units of a {step.level} must be"
                                  " declared before tiles are mapped to it", "write it at the head of the schedule")  # fmt: skip
            said = next((s for s in self._units if s.level == step.level), None)
            if said is not None:
                raise refuse_step(step, "units-twice", f"`{step}`: the units of a {step.level} were already declared: `{said}`",
                                  "declare all of them in one step")  # fmt: skip


def check_steps(spec: Spec, steps: tuple[Step, ...], task: Task, kinds: Mapping[str, str]) -> None:
    """Refuses the first of a chain's steps that contradicts the spec it meets: of a kernel, a stage or a move, whose axes and extents
    are known when it is lowered. kinds: as of `tensor_kinds`."""
    chain = _Chain(spec, task, kinds)
    for step in steps:
        for error in chain.add(step):
            raise at_step(error, step)


def check_cuts(steps: tuple[Step, ...], counts: collections.Counter[str]) -> None:
    """Refuses chains that cut an axis very often: every cut is a loop whose bounds follow from those of all loops around it.

    counts: the cuts of each axis above these steps; theirs are added.
    """
    for step in steps:
        if isinstance(step, Place) and step.steps:
            check_cuts(step.steps, collections.Counter())
        if isinstance(step, (Tile, Split)):
            counts.update(a for a, _ in step.sizes)
            most, n = counts.most_common(1)[0]
            if n > MOST_CUTS:
                message = f"`{step}` is division {n} of `{most}`; an axis can be divided at most {MOST_CUTS} times"
                raise at_step(Refusal("too-many-cuts", message, help="use fewer splits and tiles of one axis"), step)


def _axes_of(step: Step) -> set[str]:
    """The axes that a step cuts or makes."""
    match step:
        case Tile(sizes=sizes) | Split(sizes=sizes):
            return {a for a, _ in sizes}
        case Fuse(name, axes):
            return {name, *axes}
        case Unfuse(axis, parts):
            return {axis, *(n for n, _ in parts)}
        case Vectorize(axis):
            return {axis}
        case _:
            return set()


def _faults_in_braces(computation: Computation, spec: Spec, step: Place, placed: set[str]) -> list[TileLangError]:
    """What is wrong with the axes and levels of the steps in a place's braces; what depends on the sizes left there is known when it
    is lowered."""
    if not step.steps:
        return []
    own_kernel = step.verb == "compute" and step.memory not in ("register", "shared")
    found: list[TileLangError] = [
        refuse_step(s, "units-late", f"`{s}` is in the braces of `{step.replace(steps=None)}`, whose steps run on the units that are"
                    " already declared", "write it at the head of the schedule")
        for s in step.steps if isinstance(s, Units) and not own_kernel
    ]  # fmt: skip
    found += _faults_of_stages(step, tensor_kinds(computation))
    tensors = {t.name: t for t in computation.inputs} | {t.name: t for d in computation.definitions for t in d.tensors}
    tensor = tensors.get(step.tensor_name)
    axes: list[tuple[str, int]] | None = None  # none are known
    if step.verb in ("accumulate", "via"):
        axes = [(a.name, a.extent) for a in spec.axes if not a.reduction]
    elif tensor is not None and step.verb == "load":  # by region: the tensor's dimensions; by access: the axes of the read
        axes = [(d.name, d.extent) for d in tensor.dims] + [(a.name, a.extent) for a in spec.axes]
    elif tensor is not None and tensor.definition is not None:
        try:
            stage = task_of(tensor, lambda t: t.name in placed)
        except Unplaced:  # it reads what a kernel of its own makes: known when the whole schedule is
            return found
        axes = [(a.name, a.extent) for a in (*stage.axes, *stage.reduction_axes)]
    if axes is None:
        return found
    inner = whole = spec.replace(
        title=step.tensor_name, axes=tuple(AxisState(n, index(0), e) for n, e in dict(axes).items()), residences=()
    )
    for s in step.steps:
        if isinstance(s, (Fuse, Unfuse)):
            break
        if isinstance(s, (Tile, Split, Vectorize)):
            if isinstance(s, Tile) and s.order is not None and step.verb in ("load", "compute"):
                _check_form(s)  # how many tiles a region has is known when it is lowered
                s = s.replace(order=None)
            faults: list[TileLangError] = []
            with collected(faults):
                inner = advance(inner, s, _NO_TASK, {})
            found += [at_step(e, s) for e in faults]
        elif isinstance(s, Place) and s.verb == "via" and s.memory != "register":
            inner = whole  # a move of its own begins there
    return found


_NO_TASK = Task("", (), (), ())
