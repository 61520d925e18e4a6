"""Checks of single steps as they are written: axes, levels, orders, names, and whether any target supports the step.

`advance` returns the spec after a step, or raises the Refusal of a step that contradicts the spec that it meets. `CheckedSteps` (in
checked_steps.py) checks a whole schedule in this way. What depends on a device, or on the steps below, is checked by the lowering.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from tilelang.computations.computation import Computation
from tilelang.core import dtype as dt
from tilelang.core.expr import INDEX, Expr, Var, index
from tilelang.errors import Refusal, meant, nearest
from tilelang.profiles.profile import Profile
from tilelang.schedules.spec import LEVELS, Spec, refuse_step
from tilelang.schedules.steps import Do, Fuse, Inline, Open, Place, Split, Step, Tile, Unfuse, Units, Vectorize, When
from tilelang.schedules.task import Task, tasks_of
from tilelang.schedules.unit_numbering import check_order, check_order_form, order_extents
from tilelang.schedules.walk import count_pieces, piece_of

MAX_LANES = 4096  # far beyond any device; more would only slow down compilation
NO_TASK = Task("", (), (), ())  # for steps that only cut and rename axes


def axis_extents(computation: Computation) -> dict[str, int]:
    """The extent of every axis that a `when` may name. If definitions share an axis name, the output's axis counts."""
    found: dict[str, int] = {}
    for d in computation.definitions:
        reduced = d.reduction.axes if d.reduction is not None else ()
        found.update({a.name: a.extent for a in (*d.axes, *reduced)})
    return found


def resolve_when(steps: tuple[Step, ...], extents: Mapping[str, int], profile: Profile | None = None) -> tuple[Step, ...]:
    """The steps with every `when` decided by the extents and by the capabilities of the profile's device; without a profile,
    capabilities are absent."""
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
            out.append(step if inner == step.steps else step.replace(steps=inner))  # an unchanged step stays the same object
        else:
            out.append(step)
    return tuple(out)


# ---------------------------------------------------------------- checks of a single step


def advance(spec: Spec, step: Step, task: Task, inputs: Mapping[str, str]) -> Spec:
    """The spec after a step. inputs: "input" or "definition" per tensor name.

    Raises Refusal if the step contradicts the spec before it.
    """
    match step:
        case Tile():
            _check_tile(spec, step)
        case Split(sizes=sizes):
            if step.of and task is NO_TASK:
                later(step, "a loop shared by several reductions, in braces,")
            if step.of:
                _check_shared(spec, step)
            _check_axes(spec, step, sizes)
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
    """The spec with its axes renamed by the `fuse` and `unfuse` steps of a chain, without its cuts. Raises Refusal.

    >>> from tilelang import axes, define, float32, input
    >>> from tilelang.schedules.spec import root_spec
    >>> from tilelang.schedules.task import make_task
    >>> i, j = axes(i=4, j=6)
    >>> task = make_task((define("Y", input("X", float32, i, j)[i, j] * 2, i, j),), lambda t: False)
    >>> print(renamed(root_spec(task), (Fuse("ij", ("i", "j")), Split((("ij", 8),)))))
    Y  ij:24  on kernel
    """
    for step in steps:
        if isinstance(step, (Fuse, Unfuse)):
            spec = advance(spec, step, NO_TASK, {})
    return spec


def _check_tile(spec: Spec, step: Tile) -> None:
    """Checks a tile's axes, level and order, and whether a target supports it."""
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
    """Checks that the axis of a shared loop is one that the kernel reduces."""
    for name, _ in step.sizes if len(step.sizes) == 1 else ():
        if name not in spec.names:
            message = (
                f"`{step}`: {spec.title} has no accumulator over {name} left: every reduction over {name} has a place of its own"
            )
            help = f"remove the `compute` of the reduction that {spec.title} reads element by element: it is the kernel's accumulator"
            raise refuse_step(step, "shared-axes", message, help)
        if not spec.axis(name).reduction:
            raise refuse_step(step, "shared-axes", f"`{step}`: {name} is not a reduction axis of {spec.title}",
                          "name in `of` a reduction whose results are read element by element")  # fmt: skip


def _check_fuse(spec: Spec, step: Fuse) -> None:
    """Refuses to fuse axes of different kinds, or axes that were cut."""
    name, axes = step.name, step.axes
    _check_axes(spec, step, tuple((a, 1) for a in axes))
    if name in spec.names:
        raise refuse_step(step, "axis-exists", f"there is an axis `{name}` already", "use another name for the fused axis")
    if len({spec.axis(a).reduction for a in axes}) > 1:
        raise refuse_step(
            step,
            "fuse-mixed",
            f"`{step}` fuses a reduction axis with an output axis",
            "fuse only output axes, or only reduction axes",
        )
    _check_uncut(spec, step, axes)


def _check_unfuse(spec: Spec, step: Unfuse) -> None:
    """Refuses to unfuse an axis that was cut, or into parts whose product is not its extent."""
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
    """Refuses to rename axes that were cut: the bounds of a cut cannot be kept on several axes, or on parts of one."""
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
    """Refuses a loop over a reduction around the blocks, which would have to keep its accumulators between blocks."""
    for axis in spec.axes:
        if axis.reduction and axis.base is not index(0):
            later(
                step,
                f"a loop over the reduction axis `{axis.name}` around the blocks, whose accumulator would outlive each block,",
            )


def later(step: Step, what: str) -> None:
    """Refuses steps that the language has, but no target supports yet."""
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
        return  # the profile may define them, which the lowering checks
    if level == "kernel" or LEVELS.index(level) < LEVELS.index(spec.level):
        raise refuse_step(step, "level-goes-up", f"`{step}`: this step is executed by a {spec.level}, and a {level} is a higher level",
                      "map tiles to levels in the order block, warpgroup, warp, thread; any of them can be skipped")  # fmt: skip
    if level == spec.level == "thread":
        raise refuse_step(
            step, "level-goes-up", f"`{step}`: this step is already executed by one thread", "use split for a loop, or vectorize"
        )


def check_step_order(step: Tile, extents: Mapping[str, int], reduced: Collection[str]) -> None:
    """Refuses an order that does not number the tiles uniquely, or that renumbers units which share a reduction.

    extents: the remaining extents; reduced: the reduction axes. Raises Refusal.
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


def check_form(step: Tile) -> None:
    """Refuses an order that is invalid for any number of tiles."""
    assert step.order is not None
    try:
        check_order_form(step.order, [a for a, _ in step.sizes])
    except Refusal as refusal:
        raise refuse_step(step, refusal.code, refusal.message, refusal.help or "") from None


def _check_place(spec: Spec, step: Place, task: Task, kinds: Mapping[str, str]) -> None:
    """Checks the tensor and the memory of a place."""
    if step.memory == "image":
        later(step, "image memory")
    if step.verb == "accumulate" and not task.states:
        raise refuse_step(step, "nothing-to-accumulate", f"`{step}`: {spec.title} has no reduction",
                          "remove it; for a pointwise result use via or compute")  # fmt: skip
    if step.verb in ("load", "compute"):
        check_named(step, kinds)
    of_block = {"accumulate": (), "via": ("shared",)}.get(step.verb, ("register", "shared"))
    if spec.level == "kernel" and step.memory in of_block:
        raise _above_blocks(step)


def check_named(step: Place, kinds: Mapping[str, str]) -> None:
    """Refuses a place whose tensor does not exist, and a `compute` of an input."""
    name = step.tensor_name
    if name not in kinds:
        raise refuse_step(step, "unknown-tensor", f"`{step}`: there is no tensor `{name}`",
                      meant(name, kinds))  # fmt: skip
    if step.verb == "compute" and kinds[name] == "input":
        raise refuse_step(step, "compute-of-input", f"`{step}`: {name} is an input", f"load {name} in {step.memory}")


def _above_blocks(step: Place) -> Refusal:
    message = f"`{step}` is above the first `tile ... -> block`, but {step.memory} memory belongs to a block"
    return refuse_step(step, "memory-above-block", message, "map tiles to blocks first: .tile(...).to(tl.block)")


def tensor_kinds(computation: Computation) -> dict[str, str]:
    """Whether every tensor, by name, is an "input" or a "definition"."""
    kinds = {t.name: "input" for t in computation.inputs}
    kinds.update({t.name: "definition" for d in computation.definitions for t in d.tensors})
    return kinds


def main_task(computation: Computation, steps: tuple[Step, ...], profile: Profile | None = None) -> Task:
    """The task that a schedule's steps refine, including those chosen by each `when`. profile: as for `resolve_when`."""
    return tasks_of(computation, resolve_when(steps, axis_extents(computation), profile), unfinished=True)[-1]
