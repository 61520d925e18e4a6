"""Checks whole schedules as they are written: `CheckedSteps` holds the spec after each step, and all errors."""

from __future__ import annotations

import collections
import copy
from collections.abc import Collection, Iterable, Iterator, Mapping

from tilelang.computations.computation import Computation
from tilelang.core.expr import Read, index
from tilelang.errors import Refusal, TileLangError, at_step, collected, not_too_deep, together
from tilelang.schedules.check import (
    NO_TASK,
    advance,
    axis_extents,
    check_form,
    check_named,
    later,
    resolve_when,
    tensor_kinds,
)
from tilelang.schedules.spec import LEVELS, AxisState, Spec, refuse_step, root_spec
from tilelang.schedules.steps import Do, Fuse, Inline, Open, Place, Split, Step, Tile, Unfuse, Units, Vectorize, When
from tilelang.schedules.task import Task, Unplaced, placed_names, prefix_of, task_of, tasks_of

MOST_CUTS = 32  # of one axis in a chain


class CheckedSteps:
    """The steps of a schedule, checked as they are written: the spec before the first one and after each, and their errors.

    specs: as far as they are known. refused: the refusals of all steps, except for axes that refused steps cut or make, and below
    holes, where errors are found once these are filled. Immutable: `then` returns a new one.
    """

    @not_too_deep
    def __init__(self, computation: Computation, steps: tuple[Step, ...], unsure: Collection[str] = ()) -> None:
        """unsure: axes that are cut or made by steps that could not be parsed."""
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
        """The same with one more step. Only that step is checked, unless it places a tensor that others treated as inlined."""
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
        """The tensors that the stage or kernel of a place reads from memory or from other stages of its kernel."""
        own = step.memory not in ("register", "shared")
        return self._in_memory | (placed_names(self._computation, step.steps or ()) if own else self._in_last)

    def raise_refused(self) -> None:
        """Raises the errors of the steps: a single Refusal, or Findings."""
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
    """The task that the steps refine, which may be one of several, and the tensors that they place."""
    return tasks_of(computation, steps, unfinished=True)[-1], placed_names(computation, steps)


class _Chain:
    """A chain of steps while it is read: the spec so far, and the rules about the order of steps."""

    def __init__(self, spec: Spec, task: Task, kinds: Mapping[str, str], computation: Computation | None = None) -> None:
        self.spec, self._task, self._kinds, self._computation = spec, task, kinds, computation
        self._shared: Split | None = None
        self._cuts: tuple[Step, ...] = ()  # those that divide axes
        self._innermost: Step | None = None  # no step may follow it
        self._body: Step | None = None  # the first that is neither `inline` nor `units`
        self._units: tuple[Units, ...] = ()
        self.open = False  # whether it has holes for steps

    def add(self, step: Step, braces: Iterable[TileLangError] = ()) -> list[TileLangError]:
        """Continues with a step, and records its errors. braces: the errors of the steps in its braces."""
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
        self._cuts += (step,) if isinstance(step, (Tile, Split)) else ()
        self._innermost = step if isinstance(step, (Vectorize, Do)) else self._innermost
        self.open |= isinstance(step, Open)
        return found

    def _check_members(self, step: Split) -> None:
        """Checks the reductions of a shared loop, and refuses others that would read a running value before it is final."""
        from tilelang.schedules.shared_loops import loop_of, reads_any  # late: slow to import, and few schedules have such a loop

        if self._computation is None:
            later(step, "a loop shared by several reductions, in braces,")
        if self._shared is not None:
            later(step, f"a second loop shared by several reductions, beside `{self._shared}`,")
        self._shared = step
        for cut in self._cuts:
            apart = isinstance(cut, Tile) and cut.level == "block"  # blocks combine their values in a second kernel
            for name in {a for a, _ in step.sizes if not apart} & {a for a, _ in cut.sizes}:  # type: ignore[attr-defined]
                later(step, f"a loop shared by several reductions below a step that divides {name}")
        assert self._computation is not None
        own = {t for m in loop_of(self._computation, step).members for t in m.definition.tensors}
        made = [t for s in self._task.states for t in s.tensors]
        read = {
            r.tensor for state in self._task.states for value in state.reduce.values for r in value.walk() if isinstance(r, Read)
        }
        final = next((t for t in made if t not in own), None)
        if final is not None and reads_any(read, own):
            raise refuse_step(step, "shared-left-out", f"`{step}`: `{final.name}` reads a value that is final only after the loop",
                          f"add `{final.name}` to `of`")  # fmt: skip

    def _check_place_among(self, step: Step) -> None:
        """Checks the order of steps: the innermost body comes last, `inline` and `units` come first."""
        if self._innermost is not None:
            raise refuse_step(step, "step-after-leaf", f"`{step}` is after `{self._innermost}`, which must be the last step",
                              "write `vectorize` and `do` last")  # fmt: skip
        if isinstance(step, Inline) and self._body is not None:
            message = f"`{step}` would change the computation that the steps above it schedule"
            raise refuse_step(step, "inline-late", message, "write inline at the head of the schedule")
        if isinstance(step, Units):  # declared before anything but `inline`, once for each level
            if self._body is not None:
                raise refuse_step(step, "units-late", f"`{step}` is below `{self._body}`, but the units of a {step.level} must be"
                                  " declared before tiles are mapped to it", "write it at the head of the schedule")  # fmt: skip
            said = next((s for s in self._units if s.level == step.level), None)
            if said is not None:
                raise refuse_step(step, "units-twice", f"`{step}`: the units of a {step.level} were already declared: `{said}`",
                                  "declare all of them in one step")  # fmt: skip


def check_steps(spec: Spec, steps: tuple[Step, ...], task: Task, kinds: Mapping[str, str]) -> None:
    """Refuses the first step that contradicts its spec, in a chain of a kernel, stage or move whose axes and extents are known only
    when it is lowered. kinds: as for `tensor_kinds`."""
    chain = _Chain(spec, task, kinds)
    for step in steps:
        for error in chain.add(step):
            raise at_step(error, step)


def check_cuts(steps: tuple[Step, ...], counts: collections.Counter[str]) -> None:
    """Refuses chains that cut an axis very often, because the bounds of each loop depend on all loops around it.

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
    """The errors in the axes and levels of the steps in a place's braces. Errors that depend on the remaining sizes are found when the
    step is lowered."""
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
        except Unplaced:  # it reads the result of another kernel, which is only known for the whole schedule
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
                check_form(s)  # the number of tiles of a region is only known when it is lowered
                s = s.replace(order=None)
            faults: list[TileLangError] = []
            with collected(faults):
                inner = advance(inner, s, NO_TASK, {})
            found += [at_step(e, s) for e in faults]
        elif isinstance(s, Place) and s.verb == "via" and s.memory != "register":
            inner = whole  # a separate copy begins there
    return found


def _faults_of_stages(step: Place, kinds: Mapping[str, str]) -> Iterator[TileLangError]:
    """The errors in stages in a place's braces, at any depth. Only `compute` may have stages there."""
    for inner in (s for s in step.steps or () if isinstance(s, Place)):
        if inner.verb == "compute":
            faults: list[TileLangError] = []
            with collected(faults):
                check_named(inner, kinds)
                if step.verb != "compute":
                    raise refuse_step(inner, "stage-unread", f"`{inner}`: nothing reads {inner.tensor_name} in the braces of"
                                      f" `{step.replace(steps=None)}`, which only describe its"
                                      " copy", "write it above that step")  # fmt: skip
                if step.memory != "global":
                    raise refuse_step(inner, "not-lowered-yet", f"`{inner}` in the braces of `{step.replace(steps=None)}` is valid, but"
                                      " not supported yet", "write it above that step")  # fmt: skip
            yield from (at_step(e, inner) for e in faults)
        yield from _faults_of_stages(inner, kinds)
