"""The spec after each step: the points that remain, their level, and the memories of tensors.

A Spec keeps, per axis, the start of the current tile (`base`), its nominal extent, and the bounds of points that exist: a point q of
the tile exists if `offset + q < limit` for every bound. `Spec.cut` is the only way to reduce an axis; the printer, the checks and the
lowering all use it. `complete` writes out the implied steps (accumulators, the loops around the innermost statement).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tilelang.core.expr import INDEX, Expr, Var, free, index, substitute, to_text
from tilelang.core.node import Node, node
from tilelang.core.simplify import TRUE, interval, simplify
from tilelang.errors import Refusal
from tilelang.schedules.steps import Do, Place, Split, Step, Tile, Vectorize
from tilelang.schedules.task import Task
from tilelang.schedules.walk import Extents, refine

LEVELS = ("kernel", "cluster", "block", "warpgroup", "warp", "thread")


def point(axis: str) -> Var:
    """The placeholder of an axis' coordinate in a spec's expressions.

    >>> print(point("m") + 1)
    @m + 1
    """
    return Var("@" + axis, INDEX)


@node
class Bound(Node):
    """A point q exists if offset + q < limit (lower: if offset + q >= limit). `key` identifies the cut that made the bound.

    known: a condition around the piece has already tested it for every point that remains after later cuts; it is kept because it
    implies bounds on the tensors.
    """

    key: str
    offset: Expr
    limit: int
    lower: bool = False
    known: bool = False

    def holds(self, q: Expr) -> Expr:
        """The condition for point q."""
        if self.known:
            return TRUE
        return index(self.limit) <= self.offset + q if self.lower else self.offset + q < self.limit

    def follows_from(self, other: Bound) -> bool:
        """Whether it holds wherever another bound does."""
        alike = self.lower == other.lower and self.offset is other.offset
        return alike and (self.limit <= other.limit if self.lower else self.limit >= other.limit)

    def is_certain(self, extent: int) -> bool:
        """Whether it holds for every point of a piece of this extent."""
        if self.known:
            return True
        low, high = interval(self.offset)
        if self.lower:
            return low is not None and low >= self.limit
        return high is not None and high + max(0, extent - 1) < self.limit


@node
class AxisState(Node):
    """The remaining part of an axis in a spec."""

    name: str
    base: Expr
    extent: int
    bounds: tuple[Bound, ...] = ()
    reduction: bool = False

    @property
    def cut_key(self) -> str:
        """The key of the bound that the next cut will make."""
        return f"{self.name}<{self.extent}@{len(self.bounds)}"

    @property
    def empty(self) -> bool:
        """Whether none of its points exists."""
        lows = [(interval(b.offset)[0], b.limit) for b in self.bounds if not b.lower]
        return self.extent == 0 or any(low is not None and low >= limit for low, limit in lows)


@node
class Spec(Node):
    """A set of points to compute: the remaining axes, the level that executes them, the memories of tensors.

    coordinates: for each axis of the definitions, its value as an expression over `point(axis)` of the axes here.
    units: the number of threads that execute this spec; lane: the thread's number among them; present: the conditions under which a
    thread is one of them, if a block has threads beyond its last whole unit.
    """

    title: str
    axes: tuple[AxisState, ...]
    coordinates: tuple[tuple[str, Expr], ...]
    level: str = "kernel"
    units: int | None = None
    lane: Expr = index(0)
    present: tuple[Expr, ...] = ()
    residences: tuple[str, ...] = ()

    def axis(self, name: str) -> AxisState:
        for a in self.axes:
            if a.name == name:
                return a
        raise KeyError(name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.axes)

    @property
    def extents(self) -> Extents:
        """The remaining extent of each axis, as numbers."""
        return Extents({a.name: a.extent for a in self.axes}, frozenset(a.name for a in self.axes if a.reduction))

    def after(self, step: Step) -> Spec:
        """The spec after a step, without checks; `tilelang.schedules.check.advance` checks."""
        found = refine(self, step)
        if isinstance(step, Tile):
            return found.replace(level=step.level)
        if isinstance(step, Place) and step.verb != "via":
            name = self.title if step.verb == "accumulate" else step.tensor_name
            return found.replace(residences=(*self.residences, f"{name}:{step.memory}"))
        return found

    def cut(self, sizes: Mapping[str, int], indices: Mapping[str, Expr] | None = None, kept_by_loop: Iterable[str] = ()) -> Spec:
        """The piece with the given number along each cut axis. indices: the numbers; by default a variable for each axis with several
        pieces, `m_1` for the first cut of `m`. kept_by_loop: keys of bounds that the surrounding loop already enforces."""
        indices = self._numbers(sizes) if indices is None else indices
        kept, axes = frozenset(kept_by_loop), []
        for a in self.axes:
            t = sizes.get(a.name)
            if t is None:
                axes.append(a)
                continue
            step = simplify(indices[a.name] * t)
            bounds = [b.replace(offset=simplify(b.offset + step)) for b in a.bounds]
            bounds.append(Bound(a.cut_key, step, a.extent))
            if t == 1:
                bounds = [b.replace(known=True) if b.key in kept else b for b in bounds]
            left = tuple(b for b in bounds if b.known or not b.is_certain(t))
            axes.append(AxisState(a.name, simplify(a.base + step), t, left, a.reduction))
        return self.replace(axes=tuple(axes))

    def _numbers(self, sizes: Mapping[str, int]) -> dict[str, Expr]:
        """A variable for the number of the piece along each axis that is cut."""
        found: dict[str, Expr] = {}
        for a in (a for a in self.axes if a.name in sizes):
            pieces, cuts = -(-a.extent // sizes[a.name]), sum(isinstance(v, Var) for v in free(a.base))
            found[a.name] = Var(f"{a.name}_{cuts + 1}", INDEX, 0, pieces - 1) if pieces > 1 else index(0)
        return found

    def fuse(self, name: str, parts: tuple[str, ...]) -> Spec:
        """One axis instead of several. Its extent is exactly their product, so only its last tile has a tail."""
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
        return self._renamed(axes, mapping, parts)

    def unfuse(self, axis: str, parts: tuple[tuple[str, int], ...]) -> Spec:
        """Several axes instead of one, row-major; the product of their extents is its extent."""
        old = self.axis(axis)
        value: Expr = index(0)
        for name, extent in parts:
            value = value * extent + point(name)
        made = tuple(AxisState(n, index(0), e, (), old.reduction) for n, e in parts)
        axes = tuple(x for a in self.axes for x in (made if a.name == axis else (a,)))
        return self._renamed(axes, {point(axis): simplify(value + old.base)}, (axis,))

    def _renamed(self, axes: tuple[AxisState, ...], mapping: Mapping[Expr, Expr], replaced: Iterable[str]) -> Spec:
        """The spec with new axes in place of others. Bounds of the old axes are those of tiles as large as the axis, because idle
        threads have a tile past the last one: either all of its points exist, or none, so they become conditions on the thread."""
        coordinates = tuple((n, simplify(substitute(e, mapping))) for n, e in self.coordinates)
        bounds = [b for name in replaced for b in self.axis(name).bounds if not b.known]
        present = (*self.present, *(simplify(b.holds(index(0))) for b in bounds))
        return self.replace(axes=axes, coordinates=coordinates, present=present)

    def __str__(self) -> str:
        spatial = " ".join(f"{a.name}:{a.extent}" for a in self.axes if not a.reduction)
        reduced = " ".join(f"{a.name}:{a.extent}" for a in self.axes if a.reduction)
        head = f"{self.title}  {spatial}" + (f" | {reduced}" if reduced else "") + f"  on {self.level}"
        bounds = [f"{to_text(b.offset)} + {a.name} < {b.limit}" for a in self.axes for b in a.bounds if not b.lower]
        tail = [f"in {', '.join(self.residences)}"] if self.residences else []
        tail += [f"if {' and '.join(bounds)}"] if bounds else []
        return "  ".join([head, *tail])


def root_spec(task: Task) -> Spec:
    """The whole task, on the kernel level.

    >>> from tilelang import axes, define, float32, input, sum
    >>> from tilelang.schedules.task import make_task
    >>> m, k = axes(m=4, k=8)
    >>> print(root_spec(make_task((define("Y", sum(input("A", float32, m, k)[m, k], over=k), m),), lambda t: False)))
    Y  m:4 | k:8  on kernel
    """
    names = [*task.axes, *task.reduction_axes]
    reduced = frozenset(task.reduction_axes)
    axes = tuple(AxisState(a.name, index(0), a.extent, (), a in reduced) for a in names)
    return Spec(task.name, axes, tuple((a.name, point(a.name)) for a in names))


# ---------------------------------------------------------------- implied steps


def refuse_step(step: Step, code: str, message: str, help: str, counterexample: str | None = None) -> Refusal:
    """The refusal of a step, at its location.

    >>> print(refuse_step(Split((("m", 2),)), "some-code", "no such loop", "another loop").code)
    some-code
    """
    return Refusal(code, message, span=getattr(step, "span", None), help=help, counterexample=counterexample)


class _Completion:
    """Traverses steps with the remaining extents, and adds the implied steps."""

    def __init__(self, spec: Spec, states: bool, order: list[tuple[str, int]] | None) -> None:
        self.left = spec.extents
        self.states, self.order = states, order
        self.last_accumulator: str | None = None
        self.written = 0  # explicit accumulators further down
        self.out: list[Step] = []

    def add(self, step: Step) -> None:
        if self.states and isinstance(step, (Tile, Split)) and any(a in self.left.reduced for a, _ in step.sizes):
            if isinstance(step, Split):
                needed = self.last_accumulator is None and not self.written
            else:
                needed = step.level != "block" and self.last_accumulator != "register"
            if needed:
                self.accumulate()
        elif isinstance(step, Place) and step.verb == "accumulate":
            self.written -= 1
            if step.memory == "register" and self.last_accumulator == "register":
                self._merge(step)
                return
            self.last_accumulator = step.memory
        self._write(step)

    def _write(self, step: Step) -> None:
        self.out.append(step)
        self.left = refine(self.left, step)

    def accumulate(self) -> None:
        self.out.append(Place("accumulate", None, "register", implied=True))
        self.last_accumulator = "register"

    def _merge(self, step: Place) -> None:
        """Replaces an implied accumulator by the explicit one below it."""
        k, outer = [(k, s) for k, s in enumerate(self.out) if isinstance(s, Place) and s.verb == "accumulate"][-1]
        if not outer.implied:
            raise refuse_step(step, "accumulate-twice", f"`{step}` is inside another accumulator in register",
                          "keep only the outer one: one accumulator in register is enough")  # fmt: skip
        self.out[k] = step

    def loop(self, axis: str, piece: int) -> None:
        if self.left.sizes[axis] != piece:
            self._write(Split(((axis, piece),), implied=True))

    def finish(self, leaf: dict[str, int], vector: bool) -> None:
        """The loops around the innermost body: reductions outermost if there is an accumulator above, else innermost.

        vector: the body is a vector; along a reduction, each lane has its own accumulator. An instruction defines its own.
        """
        reduced = [a for a in self.left.sizes if a in self.left.reduced]
        spatial = [a for a in self.left.sizes if a not in self.left.reduced]
        if self.states and vector and any(a in leaf for a in reduced) and self.last_accumulator == "shared":
            self.accumulate()
        if self.states and self.last_accumulator is None:
            for a in spatial:
                self.loop(a, leaf.get(a, 1))
            self.accumulate()
        for a in reduced:
            self.loop(a, leaf.get(a, 1))
        for a, piece in (*(self.order or ()), *((a, 1) for a in spatial)):  # the order does not include axes that steps made
            if a in spatial and piece < self.left.sizes[a]:
                self.loop(a, max(piece, leaf.get(a, 1)))


def complete(spec: Spec, steps: tuple[Step, ...], states: bool, order: list[tuple[str, int]] | None = None,
             leaf_shape: Mapping[str, int] | None = None) -> tuple[Step, ...]:  # fmt: skip
    """The steps including all implied ones. The last one is the innermost body (Vectorize, Do), if there is one.

    order: the loops of a move over its dimensions. leaf_shape: the extents that a `do` takes.

    >>> from tilelang import axes, define, float32, input, sum
    >>> from tilelang.schedules.task import make_task
    >>> m, k = axes(m=4, k=8)
    >>> task = make_task((define("Y", sum(input("A", float32, m, k)[m, k], over=k), m),), lambda t: False)
    >>> print(*complete(root_spec(task), (Split((("m", 2),)),), True), sep="; ")
    split m=2; split m=1; accumulate in register; split k=1
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
    work.finish(taken, isinstance(leaf, Vectorize))
    return (*work.out, *((leaf,) if leaf is not None else ()))
