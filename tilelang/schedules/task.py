"""Tasks: which definitions are computed together, and the order of kernels.

A task is a set of definitions on shared axes: outputs, and the reductions that they read element by element (its states, which are
accumulators). Pointwise definitions without a place are inlined into their readers. Reductions without a place that no output reads
element by element become separate tasks, and kernels. A move is a task, too: one pointwise output whose value is a read.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from typing import Any

from tilelang.computations.computation import Computation, Definition, Tensor
from tilelang.computations.inlining import check_written_out, kept_in_memory
from tilelang.core.expr import Axis, Const, Expr, Pad, Read, Reduce, Select, const, index, substitute
from tilelang.core.node import Node, node
from tilelang.core.simplify import conjunction, conjuncts
from tilelang.profiles.profile import global_, l1, l2
from tilelang.schedules.steps import Place, Split, Step, Tile, every_step

OF_BLOCKS = ("register", "shared", l1.name, l2.name)  # filled within a kernel; a load into the last two is a prefetch


@node
class State(Node):
    """The accumulators of one reduction: `tensors` (one per member), over the task's axes, and the Reduce that they accumulate."""

    tensors: tuple[Tensor, ...]
    reduce: Reduce


def update_conditions(state: State) -> list[Expr]:
    """The conditions under which a point updates an accumulator: those of the reduction, and those of a value that otherwise is the
    combiner's identity.

    >>> import tilelang as tl
    >>> i, j = tl.axes(i=4, j=8)
    >>> X = tl.input("X", tl.float32, i, j)
    >>> Y = tl.define("Y", tl.sum(tl.where(j <= i, X[i, j], 0), over=j), i)
    >>> print(*update_conditions(make_task((Y,), lambda t: False).states[0]))
    j <= i
    """
    condition, values = state.reduce.condition, state.reduce.values
    found = [] if condition is None else conjuncts(condition)
    match values:
        case (Select(chosen, _, Const(value)),) if value == state.reduce.combiner.identity[0].value:
            found += conjuncts(chosen)
    return found


@node
class Task(Node):
    """Outputs over `axes`, with one value each. Values read accumulators through their tensors, at the task's own axes."""

    name: str
    outputs: tuple[Tensor, ...]
    axes: tuple[Axis, ...]
    values: tuple[Expr, ...]
    states: tuple[State, ...] = ()

    @property
    def reduction_axes(self) -> tuple[Axis, ...]:
        """The axes that it reduces."""
        return self.states[0].reduce.axes if self.states else ()

    def state_member(self, tensor: Tensor) -> tuple[int, int] | None:
        """The number of the state and of the member that a tensor is, or None."""
        for s, state in enumerate(self.states):
            for m, t in enumerate(state.tensors):
                if t is tensor:
                    return s, m
        return None

    def expressions(self) -> tuple[Expr, ...]:
        """Every expression that the task evaluates."""
        inner = [v for s in self.states for v in s.reduce.values]
        conditions = [s.reduce.condition for s in self.states if s.reduce.condition is not None]
        return (*self.values, *inner, *conditions)

    def reads(self) -> list[Read]:
        """All reads in these expressions, each once per expression."""
        return [e for x in self.expressions() for e in x.walk() if isinstance(e, Read)]


def reads(expr: Expr) -> list[Read | Pad]:
    """The reads in an expression, including those in indices. A padded read counts as its Pad; it also counts by itself if it occurs
    without padding.

    >>> from tilelang import axes, float32, input
    >>> i = axes(i=4)
    >>> X = input("X", float32, i)
    >>> print(*reads(X[i] * X[3 - i]))
    X[i] X[3 - i]
    """
    found: list[Read | Pad] = []
    seen: set[Node] = set()
    waiting: list[Node] = [expr]
    while waiting:
        e = waiting.pop()
        if e in seen:
            continue
        seen.add(e)
        if isinstance(e, Read | Pad):
            found.append(e)
        below = e.read.indices if isinstance(e, Pad) else tuple(e.children())
        waiting += reversed(below)
    return found


def placed_names(computation: Computation, steps: tuple[Step, ...]) -> set[str]:
    """The tensors that `compute` steps place, at any depth, and the stages of shared loops. The members of a reduction are computed
    together: if one is placed, all are.

    >>> import tilelang as tl
    >>> i = tl.axes(i=4)
    >>> X = tl.input("X", tl.float32, i)
    >>> twice = tl.define("twice", X[i] * 2, i)
    >>> made = tl.schedule(tl.define("Y", twice[i] + 1, i)).tile(i=2).to(tl.block).compute(twice, tl.shared)
    >>> placed_names(made.computation, made.steps)
    {'twice'}
    """
    named = _together(computation, _computed(steps))
    shared = frozenset(name for s in every_step(steps) if isinstance(s, Split) for name in s.of)
    if not shared:
        return named
    return named | _stages(computation, named, _together(computation, shared), stored_names(computation, steps))


def _together(computation: Computation, named: Collection[str]) -> set[str]:
    """Tensors by name, with the other members of their reductions."""
    together = [d for d in computation.definitions if d.reduction is not None and any(t.name in named for t in d.tensors)]
    return {*named, *(t.name for d in together for t in d.tensors)}


def _stages(computation: Computation, placed: Collection[str], shared: Collection[str], stored: Collection[str]) -> set[str]:
    """The members of a shared loop that cannot be accumulators of the kernel: another one reads them, or a result does not read them
    element by element."""
    main, found, made = _main_outputs(computation, stored), set[str](), set[Tensor]()
    tensors = [t for d in computation.definitions for t in d.tensors]

    def staged(t: Tensor) -> bool:
        return t.name in placed or t.name in found

    def beside(t: Tensor) -> bool:
        return staged(t) or (t in made and t not in roots)

    while True:
        roots = tuple(t for t in main if t not in made) or main[:1]  # as in `_planned`
        try:
            make_task(roots, beside)
            for tensor in filter(staged, tensors):
                task_of(tensor, lambda t: staged(t) or t in made)
            return found
        except Unplaced as missing:
            if missing.tensor.name in shared and missing.tensor.name not in found:
                found |= _together(computation, {missing.tensor.name})
            else:
                made.update(made_with(missing.tensor))


def prefix_of(steps: tuple[Step, ...]) -> tuple[Place, ...]:
    """The places in a schedule that become separate kernels, which run before its last one: those in global memory, above its blocks.

    >>> import tilelang as tl
    >>> i = tl.axes(i=4)
    >>> T = tl.define("T", tl.input("X", tl.float32, i)[i] * 2, i)
    >>> made = tl.schedule(tl.define("Y", T[i] + 1, i)).compute("T", tl.global_).tile(i=2).to(tl.block)
    >>> print(*prefix_of(made.steps))
    compute T in global
    """
    blocks = next((k for k, s in enumerate(steps) if isinstance(s, Tile) and s.level in ("cluster", "block")), len(steps))
    return tuple(s for s in steps[:blocks] if isinstance(s, Place) and s.memory not in OF_BLOCKS)


def stored_names(computation: Computation, steps: tuple[Step, ...]) -> set[str]:
    """The tensors that the stages of a kernel store: those that `compute` puts in global memory below its blocks.

    >>> import tilelang as tl
    >>> i, j = tl.axes(i=4, j=8)
    >>> X = tl.input("X", tl.float32, i, j)
    >>> total = tl.define("total", tl.sum(X[i, j], over=j), i)
    >>> both = tl.computation("both", (tl.define("Y", X[i, j] / total[i], i, j), total))
    >>> made = tl.schedule(both).tile(i=1).to(tl.block).compute("total", tl.global_)
    >>> stored_names(both, made.steps)
    {'total'}
    """
    prefix = prefix_of(steps)
    return _together(computation, {s.tensor_name for s in steps if isinstance(s, Place) and is_stored(s) and s not in prefix})


def is_stored(step: Step) -> bool:
    """Whether a step, below the blocks, is a stage that stores an output.

    >>> is_stored(Place("compute", "mean", "global")), is_stored(Place("compute", "mean", "register"))
    (True, False)
    """
    return isinstance(step, Place) and (step.verb, step.memory) == ("compute", global_.name)


def tasks_of(computation: Computation, steps: tuple[Step, ...], unfinished: bool = False) -> list[Task]:
    """The tasks of a schedule in launch order, each a kernel. The steps after its prefix refine the last one.

    unfinished: more steps may follow; a value that is too long to be inlined counts as computed in memory, which one of them may do.

    >>> import tilelang as tl
    >>> i = tl.axes(i=4)
    >>> T = tl.define("T", tl.input("X", tl.float32, i)[i] * 2, i)
    >>> made = tl.schedule(tl.define("Y", T[i] + 1, i)).compute("T", tl.global_)
    >>> [t.name for t in tasks_of(made.computation, made.steps)]
    ['T', 'Y']
    """
    prefix = prefix_of(steps)
    placed = placed_names(computation, tuple(s for s in steps if s not in prefix))
    made = {s.tensor_name: placed_names(computation, s.steps or ()) for s in prefix if s.verb == "compute"}
    stored = set[str]().union(*(stored_names(computation, own) for own in (steps, *(s.steps or () for s in prefix))))
    others = dict.fromkeys(kept_in_memory(computation) if unfinished else (), frozenset[str]())
    return plan(computation, placed, {**others, **made} if others.keys() - made.keys() else made, stored)


def _computed(steps: tuple[Step, ...] | None) -> set[str]:
    names: set[str] = set()
    for step in steps or ():
        if isinstance(step, Place):
            if step.verb == "compute":
                names.add(step.tensor_name)
            names |= _computed(step.steps)
    return names


def task_of(tensor: Tensor, keep: Callable[[Tensor], bool]) -> Task:
    """The task that computes a definition's tensor, together with the others of its reduction. keep: as for `make_task`, for all
    others.

    >>> import tilelang as tl
    >>> i = tl.axes(i=4)
    >>> print(*task_of(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i), lambda t: False).values)
    X[i] * 2.0
    """
    group = made_with(tensor)
    return make_task(group, lambda t: t not in group and keep(t))


def make_task(roots: tuple[Tensor, ...], keep: Callable[[Tensor], bool]) -> Task:
    """The task that computes `roots`, which are defined over the same axes. keep(tensor): it is placed, or in global memory.

    Every other pointwise definition is inlined; every other reduction must be read element by element, and becomes a state.

    >>> import tilelang as tl
    >>> i = tl.axes(i=4)
    >>> twice = tl.define("twice", tl.input("X", tl.float32, i)[i] * 2, i)
    >>> print(*make_task((tl.define("Y", twice[i] + 1, i),), lambda t: False).values)
    X[i] * 2.0 + 1.0
    """
    first = roots[0].definition
    assert first is not None
    inlined = _Inlined(first.axes, keep)
    values = tuple(inlined.value_of(root) for root in roots)
    inlined.check()
    return Task(roots[0].name, roots, first.axes, values, tuple(inlined.states.values()))


class _Inlined:
    """The values of one task with inlined definitions, and the reductions that became its accumulators.

    keep(tensor): it is placed, or in global memory, so it is read.
    """

    def __init__(self, axes: tuple[Axis, ...], keep: Callable[[Tensor], bool]) -> None:
        self.axes, self._keep = axes, keep
        self.states: dict[Definition, State] = {}
        self._held_at: dict[Definition, tuple[Expr, ...]] = {}  # the indices at which a state holds its definition

    def value_of(self, root: Tensor) -> Expr:
        """The value of a tensor that the task computes. Raises Unplaced if it reads a tensor that is neither kept nor can be
        inlined."""
        definition = root.definition
        assert definition is not None
        own = dict(zip(definition.axes, by_name(definition.axes, self.axes), strict=True))
        if definition.reduction is not None:
            self._add_state(definition, tuple(own.values()))
            return Read(root, self.axes)
        return self._resolve(substitute(definition.values[root.member], own), inside=False)

    def _resolve(self, expr: Expr, inside: bool) -> Expr:
        """An expression that reads only kept tensors and accumulators. inside: it is in a reduction."""
        mapping: dict[Expr, Expr] = {}
        for whole in reads(expr):
            read = whole.read if isinstance(whole, Pad) else whole
            definition = read.tensor.definition
            if definition is None or self._keep(read.tensor):
                continue
            indices = tuple(self._resolve(i, inside) for i in read.indices)
            if definition.reduction is None:
                value = definition.values[read.tensor.member]
                named = substitute(value, dict(zip(definition.axes, indices, strict=True)))
                value = self._resolve(named, inside)
                mapping[whole] = _padded(value, whole.value, indices, read.tensor) if isinstance(whole, Pad) else value
            elif not inside and whole is read and joins(indices, self.axes) and _within(indices, read.tensor):
                mapping[read] = Read(read.tensor, self.axes)
                self._add_state(definition, indices)
            else:
                raise Unplaced(read.tensor)
        return substitute(expr, mapping) if mapping else expr

    def _add_state(self, definition: Definition, indices: tuple[Expr, ...]) -> None:
        if self._held_at.setdefault(definition, indices) != indices:
            raise Unplaced(
                definition.tensors[0]
            )  # an accumulator holds one element, so a second read such as C[j, i] is from memory
        if definition in self.states:
            return
        reduction = definition.reduction
        assert reduction is not None
        renamed = substitute(reduction, dict(zip(definition.axes, indices, strict=True)))
        values = tuple(self._resolve(v, inside=True) for v in renamed.values)
        condition = None if renamed.condition is None else self._resolve(renamed.condition, inside=True)
        self.states[definition] = State(definition.tensors, Reduce(renamed.combiner, values, renamed.axes, condition, 0))

    def check(self) -> None:
        """Raises Unplaced for the first reduction that cannot share the loops of those before it.

        This is checked last, because a reduction that another one reads as a whole is computed by an earlier kernel, and is then not an
        accumulator here.
        """
        states = list(self.states.values())
        for state in states:
            axes = state.reduce.axes  # steps refer to axes by name, so a task axis and a reduction axis must not share one
            if {a.name for a in self.axes} & {a.name for a in axes} or axes != states[0].reduce.axes:
                raise Unplaced(state.tensors[0])


class Unplaced(Exception):
    """A definition that must be computed to memory, because its reader can neither inline it nor keep it in accumulators."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


def joins(indices: tuple[Expr, ...], axes: tuple[Axis, ...]) -> bool:
    """Whether a read touches every element of its tensor exactly once: its indices are the axes, in any order.

    >>> from tilelang import axes
    >>> i, j = axes(i=2, j=3)
    >>> joins((j, i), (i, j)), joins((i,), (i, j))
    (True, False)
    """
    return len(indices) == len(axes) and set(indices) == set(axes)


def _within(indices: tuple[Expr, ...], tensor: Tensor) -> bool:
    """Whether the axes stay inside the tensor. A conditional read may be out of bounds, but an accumulator has no guard of its own."""
    return all(isinstance(i, Axis) and i.extent <= d.extent for i, d in zip(indices, tensor.dims, strict=True))


def by_name(own: tuple[Axis, ...], axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """A definition's own axes, with each one replaced by the axis of the same name in `axes`, if any.

    >>> from tilelang import axes
    >>> i, other = axes(i=2), axes(i=2)
    >>> by_name((other,), (i,)) == (i,)
    True
    """
    named = {a.name: a for a in axes}
    return tuple(named.get(a.name, a) for a in own)


def _padded(value: Expr, outside: Const, indices: tuple[Expr, ...], tensor: Tensor) -> Expr:
    """The value of an inlined definition if the read is in bounds, else the padding."""
    conditions = [c for i, d in zip(indices, tensor.dims, strict=True) for c in (index(0) <= i, i < index(d.extent))]
    inside = conjunction(conditions)
    return value if inside is None else Select(inside, value, const(outside.value, value.dtype))


def plan(
    computation: Computation,
    placed: Collection[str],
    materialised: Collection[str] | Mapping[str, Collection[str]] = (),
    stored: Collection[str] = (),
) -> list[Task]:
    """The tasks of a computation in launch order; the schedule's steps refine the last one.

    placed: the tensors that `compute` steps place inside the main kernel. materialised: the tensors that have kernels of their own,
    each with the tensors that steps place inside that kernel. stored: the tensors of both kinds that their kernel writes to memory.

    >>> import tilelang as tl
    >>> i, j = tl.axes(i=2, j=3)
    >>> X = tl.input("X", tl.float32, i, j)
    >>> total = tl.define("total", tl.sum(X[i, j], over=j), i)
    >>> [t.name for t in plan(tl.computation("c", tl.define("Y", X[i, j] / total[i], i, j)), set())]
    ['total', 'Y']
    """
    known: dict[Any, tuple[Task, ...]] = computation.__dict__.setdefault("plans", {})  # the autoscheduler asks many times
    inside = materialised if isinstance(materialised, Mapping) else dict.fromkeys(materialised, frozenset[str]())
    key = frozenset(placed), tuple((name, frozenset(stages)) for name, stages in inside.items()), frozenset(stored)
    if key not in known:
        known[key] = tuple(_planned(computation, placed, inside, stored))
    return list(known[key])


def _planned(
    computation: Computation, placed: Collection[str], materialised: Mapping[str, Collection[str]], stored: Collection[str]
) -> list[Task]:
    here = {name for name in stored if name in placed}
    main = _main_outputs(computation, here)
    check_written_out(computation, {*placed, *materialised, *(t.name for t in computation.outputs if t not in main)})
    done: dict[Tensor, None] = {}
    tasks: list[Task] = []

    def own(tensor: Tensor) -> None:
        """Adds a task for a tensor that others read from global memory, together with all members of its definition."""
        stages = {name for t in made_with(tensor) for name in materialised.get(t.name, ())}
        task = with_stages(lambda: task_of(tensor, lambda t: t.name in stages or t in done), stages)
        tasks.append(task)
        done.update(dict.fromkeys((*task.outputs, *(computation.tensor(name) for name in stages if name in stored))))

    def attempt(made: Callable[[], Task]) -> Task:
        while True:
            try:
                return made()
            except Unplaced as missing:
                own(missing.tensor)

    def with_stages(made: Callable[[], Task], stages: Collection[str]) -> Task:
        """A task, preceded by the tasks of the unplaced tensors that its kernel's stages need as a whole."""
        task, before = attempt(made), len(done)
        for tensor in (t for d in computation.definitions for t in d.tensors if t.name in stages):
            attempt(functools.partial(make_task, (tensor,), lambda t: t.name in stages or t in done))
        # Tensors that a stage needs as a whole were made by kernels of their own. This kernel reads them from memory, too.
        return task if len(done) == before else attempt(made)

    def refined() -> Task:
        """The task of the main outputs, except those that were already made because others need them as a whole. If all were made, the
        task of the first one."""
        roots = tuple(t for t in main if t not in done) or main[:1]
        return make_task(roots, lambda t: t.name in placed or (t in done and t not in roots))

    for definition in computation.definitions:
        for tensor in definition.tensors:
            if tensor.name in materialised and tensor not in done:
                own(tensor)
    for tensor in computation.outputs:
        if tensor not in main and tensor not in done and tensor.name not in here:
            own(tensor)
    last = with_stages(refined, placed)
    return [*tasks, last]


def made_with(tensor: Tensor) -> tuple[Tensor, ...]:
    """The tensors of one reduction, which are computed together; a pointwise tensor by itself.

    >>> from tilelang import axes, define, float32, input
    >>> i = axes(i=4)
    >>> print(*made_with(define("Y", input("X", float32, i)[i], i)))
    Y: float32[i: 4]
    """
    assert tensor.definition is not None
    return tensor.definition.tensors if tensor.definition.reduction is not None else (tensor,)


def _main_outputs(computation: Computation, stored: Collection[str] = ()) -> tuple[Tensor, ...]:
    """The outputs that the schedule refines: the first one that no stage stores, and those defined over the same axes.

    If one of them needs another one as a whole, this is discovered only when their task is made (`refined` in `_planned`).
    """
    outputs = tuple(t for t in computation.outputs if t.name not in stored) or computation.outputs

    def axes(t: Tensor) -> frozenset[Axis]:
        assert t.definition is not None
        return frozenset(t.definition.axes)

    first = outputs[0]
    chosen: list[Tensor] = []
    reductions: set[tuple[Axis, ...]] = set()
    for t in outputs:
        definition = t.definition
        same = axes(t) == axes(first)
        if same and definition is not None and definition.reduction is not None:
            reductions.add(definition.reduction.axes)
            same = len(reductions) == 1
        if same:
            chosen.append(t)
    return tuple(chosen)
