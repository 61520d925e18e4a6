"""The spec after each step: which points are left, on which level, and where values live.

A Spec keeps, per axis, where this piece begins (`base`), its nominal extent, and the bounds that points must keep: a point q of the
piece exists if `offset + q < limit` for every bound. `Spec.cut` is the only way an axis gets smaller; the printer, the checks and the
lowering all use it. `complete` writes out what a schedule leaves unsaid (implied accumulators, the walks around the leaf).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tilelang.computation import Computation
from tilelang.errors import Refusal
from tilelang.expr import INDEX, Expr, Var, free, index, to_text
from tilelang.node import Node, node
from tilelang.schedule import (
    Do,
    Fuse,
    Hole,
    Inline,
    Open,
    Place,
    Split,
    Step,
    Tile,
    Unfuse,
    Units,
    Vectorize,
    When,
)
from tilelang.simplify import interval, simplify
from tilelang.task import Task, placed_names, plan
from tilelang.tensor import check_order, evaluate

if TYPE_CHECKING:
    from tilelang.schedule import Schedule

LEVELS = ("kernel", "cluster", "block", "warpgroup", "warp", "thread")


def point(axis: str) -> Var:
    """The placeholder of an axis' coordinate in a spec's expressions."""
    return Var("@" + axis, INDEX)


@node
class Bound(Node):
    """A point q exists if offset + q < limit (lower: if offset + q >= limit). `key` says where the bound was made."""

    key: str
    offset: Expr
    limit: int
    lower: bool = False

    def holds(self, q: Expr) -> Expr:
        """The condition for point q."""
        return index(self.limit) <= self.offset + q if self.lower else self.offset + q < self.limit

    def is_certain(self, extent: int) -> bool:
        """Whether it holds for every point of a piece of this extent."""
        low, high = interval(self.offset)
        if self.lower:
            return low is not None and low >= self.limit
        return high is not None and high + max(0, extent - 1) < self.limit


@node
class AxisState(Node):
    """What is left of an axis in a spec."""

    name: str
    base: Expr
    extent: int
    bounds: tuple[Bound, ...] = ()
    reduction: bool = False


@node
class Spec(Node):
    """A set of points to compute: axes with what is left of them, the level that executes, where tensors live.

    coordinates: for each axis of the definitions, its value as an expression over `point(axis)` of the axes here.
    units: how many threads execute this spec; lane: the thread's number among them.
    """

    title: str
    axes: tuple[AxisState, ...]
    coordinates: tuple[tuple[str, Expr], ...]
    level: str = "kernel"
    units: int | None = None
    lane: Expr = index(0)
    residences: tuple[str, ...] = ()

    def axis(self, name: str) -> AxisState:
        for a in self.axes:
            if a.name == name:
                return a
        raise KeyError(name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.axes)

    def cut(self, sizes: Mapping[str, int], indices: Mapping[str, Expr], kept_by_loop: Iterable[str] = ()) -> Spec:
        """The piece with the given number along each cut axis. kept_by_loop: keys of bounds that the surrounding loop already keeps."""
        axes = []
        for a in self.axes:
            t = sizes.get(a.name)
            if t is None:
                axes.append(a)
                continue
            step = simplify(indices[a.name] * t)
            bounds = [b.replace(offset=simplify(b.offset + step)) for b in a.bounds]
            bounds.append(Bound(f"{a.name}<{a.extent}@{len(a.bounds)}", step, a.extent))
            kept = tuple(b for b in bounds if not b.is_certain(t) and not (t == 1 and b.key in kept_by_loop))
            axes.append(AxisState(a.name, simplify(a.base + step), t, kept, a.reduction))
        return self.replace(axes=tuple(axes))

    def fuse(self, name: str, parts: tuple[str, ...]) -> Spec:
        """One axis instead of several: of exactly their product, so that only its last tile has a tail."""
        total = 1
        mapping: dict[Expr, Expr] = {}
        for part in reversed(parts):
            a = self.axis(part)
            quotient = point(name) // total
            mapping[point(part)] = simplify(quotient % max(1, a.extent) if part != parts[0] else quotient) + a.base
            total *= max(1, a.extent)
        first = self.axis(parts[0])
        fused = AxisState(name, index(0), total if all(self.axis(p).extent for p in parts) else 0, (), first.reduction)
        axes = tuple(fused if a.name == parts[0] else a for a in self.axes if a.name == parts[0] or a.name not in parts)
        return self._renamed(axes, mapping)

    def unfuse(self, axis: str, parts: tuple[tuple[str, int], ...]) -> Spec:
        """Several axes instead of one, row-major; where the product is larger, the rest does not exist."""
        old = self.axis(axis)
        value: Expr = index(0)
        for name, extent in parts:
            value = value * extent + point(name)
        made = tuple(AxisState(n, index(0), e, (), old.reduction) for n, e in parts)
        axes = tuple(x for a in self.axes for x in (made if a.name == axis else (a,)))
        return self._renamed(axes, {point(axis): simplify(value + old.base)})

    def _renamed(self, axes: tuple[AxisState, ...], mapping: Mapping[Expr, Expr]) -> Spec:
        from tilelang.expr import substitute

        coordinates = tuple((n, simplify(substitute(e, mapping))) for n, e in self.coordinates)
        return self.replace(axes=axes, coordinates=coordinates)

    def __str__(self) -> str:
        spatial = " ".join(f"{a.name}:{a.extent}" for a in self.axes if not a.reduction)
        reduced = " ".join(f"{a.name}:{a.extent}" for a in self.axes if a.reduction)
        head = f"{self.title}  {spatial}" + (f" | {reduced}" if reduced else "") + f"  on {self.level}"
        bounds = [f"{to_text(b.offset)} + {a.name} < {b.limit}" for a in self.axes for b in a.bounds if not b.lower]
        tail = [f"in {', '.join(self.residences)}"] if self.residences else []
        tail += [f"if {' and '.join(bounds)}"] if bounds else []
        return "  ".join([head, *tail])


def root_spec(task: Task) -> Spec:
    """The whole task, on the kernel level."""
    names = [*task.axes, *task.reduction_axes]
    axes = tuple(AxisState(a.name, index(0), a.extent, (), a in task.reduction_axes) for a in names)
    return Spec(task.name, axes, tuple((a.name, point(a.name)) for a in names))


# ---------------------------------------------------------------- what a schedule leaves unsaid


def axis_extents(computation: Computation) -> dict[str, int]:
    """The extent of every axis that a `when` may ask for; where definitions share a name, the output's axis has it."""
    found: dict[str, int] = {}
    for d in computation.definitions:
        reduced = d.reduction.axes if d.reduction is not None else ()
        found.update({a.name: a.extent for a in (*d.axes, *reduced)})
    return found


def resolve_when(steps: tuple[Step, ...], extents: Mapping[str, int]) -> tuple[Step, ...]:
    """The steps with every `when` decided by the extents."""
    out: list[Step] = []
    for step in steps:
        if isinstance(step, When):
            for v in step.condition.walk():
                if isinstance(v, Var) and v.name not in extents:
                    raise _unknown_axis(step, v.name, tuple(extents))
            chosen = evaluate(step.condition, {Var(n, INDEX): e for n, e in extents.items()})
            out += resolve_when(step.then if chosen else step.otherwise, extents)
        elif isinstance(step, Place) and step.steps is not None:
            out.append(step.replace(steps=resolve_when(step.steps, extents)))
        else:
            out.append(step)
    return tuple(out)


class _Completion:
    """Walks over steps with the sizes left, and writes the implied ones."""

    def __init__(self, spec: Spec, states: bool, order: list[tuple[str, int]] | None) -> None:
        self.sizes = {a.name: a.extent for a in spec.axes}
        self.reduced = {a.name for a in spec.axes if a.reduction}
        self.states, self.order = states, order
        self.last_accumulator: str | None = None
        self.written = 0  # accumulators that the user wrote further down
        self.out: list[Step] = []

    def add(self, step: Step) -> None:
        match step:
            case Tile(sizes=sizes, level=level) if self.states and self.reduced & {a for a, _ in sizes} and level != "block":
                if self.last_accumulator != "register":
                    self.accumulate()
            case Split(sizes=sizes) if self.states and self.reduced & {a for a, _ in sizes} and self.last_accumulator is None:
                if not self.written:
                    self.accumulate()
            case Place(verb="accumulate", memory=memory):
                self.written -= 1
                if memory == "register" and self.last_accumulator == "register":
                    self._merge(step)
                    return
                self.last_accumulator = memory
            case Fuse(name, axes):
                total = 1
                for a in axes:
                    total *= self.sizes.pop(a)
                self.sizes[name] = total
                if axes[0] in self.reduced:
                    self.reduced = self.reduced - set(axes) | {name}
            case Unfuse(axis, parts):
                del self.sizes[axis]
                self.sizes.update(parts)
                if axis in self.reduced:
                    self.reduced = self.reduced - {axis} | {n for n, _ in parts}
            case _:
                pass
        if isinstance(step, (Tile, Split)):
            for axis, size in step.sizes:
                if isinstance(size, int):
                    self.sizes[axis] = size
        self.out.append(step)

    def accumulate(self) -> None:
        self.out.append(Place("accumulate", None, "register", implied=True))
        self.last_accumulator = "register"

    def _merge(self, step: Place) -> None:
        """A written accumulator below an implied one: there is one state, where the implied one stands, with the written braces."""
        k = max(k for k, s in enumerate(self.out) if isinstance(s, Place) and s.verb == "accumulate")
        if not self.out[k].implied:  # type: ignore[attr-defined]
            raise _refuse(step, "accumulate-twice", f"`{step}` stands inside an accumulator in register",
                          "one accumulator in register is enough: keep the outer one")  # fmt: skip
        self.out[k] = step

    def walk(self, axis: str, piece: int) -> None:
        if self.sizes[axis] != piece:
            self.out.append(Split(((axis, piece),), implied=True))
            self.sizes[axis] = piece

    def finish(self, leaf: dict[str, int]) -> None:
        """The walks around the leaf: reductions outermost where a state stands above, else innermost."""
        reduced = [a for a in self.sizes if a in self.reduced]
        spatial = [a for a in self.sizes if a not in self.reduced]
        if self.states and any(a in leaf for a in reduced) and self.last_accumulator == "shared":
            self.accumulate()
        if self.states and self.last_accumulator is None:
            for a in spatial:
                self.walk(a, leaf.get(a, 1))
            self.accumulate()
        for a in reduced:
            self.walk(a, leaf.get(a, 1))
        for a, piece in self.order or [(a, 1) for a in spatial]:
            if a in self.sizes and a not in self.reduced and piece < self.sizes[a]:
                self.walk(a, max(piece, leaf.get(a, 1)))


def complete(spec: Spec, steps: tuple[Step, ...], states: bool, order: list[tuple[str, int]] | None = None,
             leaf_shape: Mapping[str, int] | None = None) -> tuple[Step, ...]:  # fmt: skip
    """The steps with everything implied written out; the last one is the leaf (Vectorize, Do) where there is one.

    order: how a move walks its dims. leaf_shape: what a `do` takes of each axis.
    """
    work = _Completion(spec, states, order)
    work.written = sum(isinstance(s, Place) and s.verb == "accumulate" for s in steps)
    leaf: Vectorize | Do | None = None
    for step in steps:
        if isinstance(step, (Vectorize, Do)):
            leaf = step
        else:
            work.add(step)
    taken: dict[str, int] = dict(leaf_shape or {})
    if isinstance(leaf, Vectorize) and isinstance(leaf.lanes, int):
        taken[leaf.axis] = leaf.lanes
    work.finish(taken)
    return (*work.out, *((leaf,) if leaf is not None else ()))


# ---------------------------------------------------------------- one step, as far as it can be checked alone


def advance(spec: Spec, step: Step, task: Task, inputs: Mapping[str, str]) -> Spec:
    """The spec after a step. inputs: "input" or "definition" per tensor name.

    Raises Refusal where the step contradicts the spec it meets.
    """
    match step:
        case Tile(sizes=sizes, level=level):
            _check_axes(spec, step, sizes)
            _check_level(spec, step, level)
            _check_order(spec, step)
            for axis, _ in sizes:
                if spec.axis(axis).reduction and level == "cluster":
                    raise _refuse(
                        step, "reduction-over-clusters", f"`{step}`", "spread a reduction over blocks, warps or threads"
                    )
            if level == "block" and any(r.startswith(f"{spec.title}:") for r in spec.residences):
                raise _refuse(step, "not-lowered-yet", f"`{step}` below an accumulator: a state that blocks share is accepted by the"
                              " language, not lowered yet for this target", "accumulate below the blocks")  # fmt: skip
            if level == "cluster":
                later(step, "a cluster of blocks")
            return _cut(spec, sizes).replace(level=level)
        case Split(sizes=sizes):
            _check_axes(spec, step, sizes)
            if step.of:
                later(step, "a walk shared by several reductions")
            return _cut(spec, sizes)
        case Fuse(name, axes):
            _check_axes(spec, step, tuple((a, 1) for a in axes))
            if name in spec.names:
                raise _refuse(step, "axis-exists", f"there is an axis `{name}` already", "take another name for the fused axis")
            if len({spec.axis(a).reduction for a in axes}) > 1:
                raise _refuse(step, "fuse-mixed", f"`{step}` fuses a reduction's axis with an output's", "fuse axes of one kind")
            for a in axes:
                if spec.axis(a).base is not index(0) or spec.axis(a).bounds:
                    raise _refuse(step, "fuse-after-cut", f"`{a}` was cut before `{step}`", "fuse before any cut of these axes")
            return spec.fuse(name, axes)
        case Unfuse(axis, parts):
            _check_axes(spec, step, ((axis, 1),))
            product = 1
            for _, extent in parts:
                product *= extent
            if product != spec.axis(axis).extent:
                raise _refuse(step, "unfuse-product", f"`{step}` gives {product} points, {axis} has {spec.axis(axis).extent}",
                              "extents whose product is the axis' extent")  # fmt: skip
            return spec.unfuse(axis, parts)
        case Place():
            return _place(spec, step, task, inputs)
        case Vectorize(axis, lanes):
            _check_axes(spec, step, ((axis, lanes),))
            if isinstance(lanes, int) and lanes & (lanes - 1):
                raise _refuse(step, "vector-width", f"`{step}`: {lanes} lanes", "a power of two")
            return spec
        case Units(level=level):
            if level not in LEVELS:
                raise _refuse(step, "unknown-level", f"`{step}`: no level `{level}`", "one of " + ", ".join(LEVELS))
            return spec
        case Inline(tensor):
            if inputs.get(tensor) != "definition":
                raise _refuse(step, "inline-unknown", f"`{tensor}` is not a definition", "name a pointwise definition")
            return spec
        case Do() | Open() | When():
            return spec
        case _:
            raise AssertionError(step)


def later(step: Step, what: str) -> None:
    """Refuses what the data model has and no target lowers yet."""
    raise _refuse(step, "not-lowered-yet", f"`{step}`: {what} is accepted by the language, not lowered yet for this target",
                  "write the schedule without it for now")  # fmt: skip


def _refuse(step: Step, code: str, message: str, mend: str, counterexample: str | None = None) -> Refusal:
    return Refusal(code, message, span=getattr(step, "span", None), mend=mend, counterexample=counterexample)


def _unknown_axis(step: Step, axis: str, known: tuple[str, ...]) -> Refusal:
    import difflib

    near = difflib.get_close_matches(axis, known, 1)
    return _refuse(step, "unknown-axis", f"`{step}`: there is no axis `{axis}` in this spec ({', '.join(known)})",
                   f"did you mean `{near[0]}`?" if near else "name one of the spec's axes")  # fmt: skip


def _check_axes(spec: Spec, step: Step, sizes: Iterable[tuple[str, object]]) -> None:
    seen: set[str] = set()
    for axis, _ in sizes:
        if axis not in spec.names:
            raise _unknown_axis(step, axis, spec.names)
        if axis in seen:
            raise _refuse(step, "axis-twice", f"`{step}` cuts `{axis}` twice", "one size for each axis")
        seen.add(axis)


def _check_level(spec: Spec, step: Step, level: str) -> None:
    if level not in LEVELS:
        return  # the profile may know it; the lowering asks
    if level == "kernel" or LEVELS.index(level) < LEVELS.index(spec.level):
        raise _refuse(step, "level-goes-up", f"`{step}`: this spec is executed by a {spec.level}, a {level} is above it",
                      "levels go down: block, warpgroup, warp, thread; any may be skipped")  # fmt: skip
    if level == spec.level == "thread":
        raise _refuse(
            step, "level-goes-up", f"`{step}`: this spec is executed by one thread already", "walk with split, or vectorize"
        )


def _check_order(spec: Spec, step: Tile) -> None:
    """An order must number the tiles so that each has a unit of its own; below the block it is not lowered yet."""
    if step.order is None:
        return
    if step.level != "block":
        raise _refuse(step, "not-lowered-yet", f"`{step}`: an order of {step.level}s is accepted by the language, not lowered yet"
                      " for this target", "write the axes in the wanted order: neighbouring units differ in the last one")  # fmt: skip
    sizes = {a: n for a, n in step.sizes if isinstance(n, int)}
    if len(sizes) < len(step.sizes):
        return  # a hole: checked when it is filled
    try:
        check_order(step.order, {a: -(-spec.axis(a).extent // n) for a, n in sizes.items()})
    except Refusal as refusal:
        raise _refuse(step, refusal.code, refusal.message, refusal.mend or "", refusal.counterexample) from None


def _cut(spec: Spec, sizes: Iterable[tuple[str, int | Hole]]) -> Spec:
    numbers = {a: n for a, n in sizes if isinstance(n, int)}
    indices = {}
    for a, n in numbers.items():
        rounds = max(1, -(-spec.axis(a).extent // n))
        number = 1 + sum(isinstance(v, Var) for v in free(spec.axis(a).base))
        indices[a] = Var(f"{a}_{number}", INDEX, 0, rounds - 1) if rounds > 1 else index(0)
    return spec.cut(numbers, indices)


def _place(spec: Spec, step: Place, task: Task, kinds: Mapping[str, str]) -> Spec:
    import difflib

    if step.memory == "image":
        later(step, "image memory")
    if step.verb == "accumulate":
        if not task.states:
            raise _refuse(step, "nothing-to-accumulate", f"`{step}`: {spec.title} has no reduction",
                          "leave it out; for a pointwise result use via or compute")  # fmt: skip
        return spec.replace(residences=(*spec.residences, f"{spec.title}:{step.memory}"))
    if step.verb == "via":
        return spec
    name = step.tensor_name
    if name not in kinds:
        near = difflib.get_close_matches(name, list(kinds), 1)
        raise _refuse(step, "unknown-tensor", f"`{step}`: there is no tensor `{name}`",
                      f"did you mean `{near[0]}`?" if near else "one of " + ", ".join(kinds))  # fmt: skip
    if step.verb == "compute" and kinds[name] == "input":
        raise _refuse(step, "compute-of-input", f"`{step}`: {name} is an input", f"load {name} in {step.memory}")
    if spec.level == "kernel" and step.memory in ("register", "shared"):
        raise _refuse(step, "memory-above-block", f"`{step}` stands above the first block, where nobody owns {step.memory} memory",
                      "first give tiles to blocks: .tile(...).to(tl.block)")  # fmt: skip
    return spec.replace(residences=(*spec.residences, f"{name}:{step.memory}"))


def tensor_kinds(computation: Computation) -> dict[str, str]:
    """ "input" or "definition" for every tensor, by name."""
    kinds = {t.name: "input" for t in computation.inputs}
    kinds.update({t.name: "definition" for d in computation.definitions for t in d.tensors})
    return kinds


def main_task(computation: Computation, steps: tuple[Step, ...]) -> Task:
    """The task that a schedule's steps refine."""
    return plan(computation, placed_names(computation, steps))[-1]


def advance_all(computation: Computation, steps: tuple[Step, ...]) -> tuple[Spec, ...]:
    """The spec before the first step and after each one. Raises the Refusal of the first step that contradicts its spec."""
    task = main_task(computation, steps)
    spec = root_spec(task)
    kinds = tensor_kinds(computation)
    specs = [spec]
    seen_other, leaf = False, None
    for step in resolve_when(steps, axis_extents(computation)):
        if leaf is not None:
            raise _refuse(step, "step-after-leaf", f"`{step}` stands after `{leaf}`, which takes the innermost piece",
                          "vectorize and do come last")  # fmt: skip
        if isinstance(step, Inline) and seen_other:
            raise _refuse(
                step, "inline-late", f"`{step}` stands below steps that were made against another body", "inline at the head"
            )
        seen_other |= not isinstance(step, (Inline, Units))
        leaf = step if isinstance(step, (Vectorize, Do)) else None
        if isinstance(step, Place) and step.steps:
            _check_braces(computation, spec, step)
        spec = advance(spec, step, task, kinds)
        specs.append(spec)
    return tuple(specs)


def _check_braces(computation: Computation, spec: Spec, step: Place) -> None:
    """The axes and levels of the steps in a place's braces; what depends on the sizes left there is known when it is lowered."""
    tensors = {t.name: t for t in computation.inputs} | {t.name: t for d in computation.definitions for t in d.tensors}
    tensor = tensors.get(step.tensor_name)
    axes: list[tuple[str, int]] = []
    if step.verb in ("accumulate", "via"):
        axes = [(a.name, a.extent) for a in spec.axes if not a.reduction]
    elif tensor is not None and step.verb == "load":  # by region: the tensor's dimensions; by access: the axes of the read
        axes = [(d.name, d.extent) for d in tensor.dims] + [(a.name, a.extent) for a in spec.axes]
    elif tensor is not None and tensor.definition is not None:
        reduction = tensor.definition.reduction
        axes = [(a.name, a.extent) for a in (*tensor.definition.axes, *(reduction.axes if reduction is not None else ()))]
    inner = spec.replace(title=step.tensor_name, axes=tuple(AxisState(n, index(0), e) for n, e in dict(axes).items()), residences=())
    for s in step.steps or ():
        if isinstance(s, (Fuse, Unfuse)) or not axes:
            return
        if isinstance(s, (Tile, Split, Vectorize)):
            inner = advance(inner, s, _NO_TASK, {})


_NO_TASK = Task("", (), (), ())


def explain(schedule: Schedule) -> str:
    """The spec after each step, a line each; what the schedule leaves unsaid stands in parentheses where it takes effect."""
    computation, task = schedule.computation, main_task(schedule.computation, schedule.steps)
    placed = placed_names(computation, schedule.steps)
    tasks = plan(computation, placed)
    own = [t.name for other in tasks[:-1] for t in other.outputs]
    lines = [f"(a kernel of its own, before: {name})" for name in own]
    lines += [
        f"(inline {t.name})"
        for d in computation.definitions
        for t in d.tensors
        if d.reduction is None and t.name not in placed and t.name not in own and t not in computation.outputs
    ]
    spec = root_spec(task)
    lines.append(f"{'':40}  {spec}")
    steps = resolve_when(schedule.steps, {a.name: a.extent for a in spec.axes})
    kinds = tensor_kinds(computation)
    for step in complete(spec, steps, bool(task.states), None, _leaf_sizes(steps, schedule.specs[-1])):
        spec = advance(spec, step, task, kinds)
        text = f"({step})" if getattr(step, "implied", False) else str(step)
        lines.append(f"{text:40}  {spec}")
    return "\n".join(lines)


def _leaf_sizes(steps: tuple[Step, ...], last: Spec) -> dict[str, int]:
    """What a `do` takes of each axis, by the names it binds; all that is left where it binds none. Empty without a `do`."""
    leaf = steps[-1] if steps else None
    if not isinstance(leaf, Do):
        return {}
    from tilelang.instruction import use

    shape = use(leaf.instruction).shape
    bound = {axis: shape[own] for own, axis in leaf.binding if own in shape}
    return {a.name: bound.get(a.name, a.extent) for a in last.axes}
