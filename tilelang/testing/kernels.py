"""The kernels of a schedule in the naive interpretation: those that have steps, and the reductions of each."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tilelang.computations.computation import Computation, Definition, Tensor
from tilelang.core.expr import Axis, Expr, Pad, Read, Var, substitute
from tilelang.schedules.steps import Fuse, Place, Split, Step, Tile, Unfuse, When
from tilelang.testing.points import value
from tilelang.testing.reach import NotRead

Array = Any


@dataclasses.dataclass(frozen=True)
class Claim:
    """An element (its row-major number), and the threads that may access it, or that all do: `width` threads of a block, from
    `first`."""

    element: Array
    block: Array
    first: Array
    width: int


@dataclasses.dataclass
class Kernel:
    """The accesses of a kernel, by memory ("global" or "shared") and tensor.

    makes: the tensors that it computes for other kernels. writes, reads: the elements that its threads may access. again: elements that
    they may also store, if the owner stores the same value or nothing: lanes of vectors that were shifted to fit. needs: the elements
    that each unit must read, unless they have no effect. partial: tensors that are placed here one part of a reduction at a time.
    parts: whether its blocks compute parts of a reduction, which another kernel combines. given: the names of the tensors that other
    kernels computed for it. unread: steps that are not interpreted, and why.
    """

    makes: tuple[Tensor, ...]
    parts: bool = False
    given: frozenset[str] = frozenset()
    writes: dict[tuple[str, str], list[Claim]] = dataclasses.field(default_factory=dict)
    again: dict[tuple[str, str], list[Claim]] = dataclasses.field(default_factory=dict)
    reads: dict[tuple[str, str], list[Claim]] = dataclasses.field(default_factory=dict)
    needs: dict[tuple[str, str], list[Claim]] = dataclasses.field(default_factory=dict)
    unread: list[str] = dataclasses.field(default_factory=list)
    partial: set[str] = dataclasses.field(default_factory=set)


@dataclasses.dataclass(frozen=True)
class World:
    """The data that all kernels of a schedule share. made: the names of the tensors that kernels compute for others."""

    computation: Computation
    values: Mapping[Tensor, Array]
    levels: Mapping[str, int]
    made: frozenset[str]


Indices = tuple[Expr, ...]
Places = dict[tuple[str, str], Indices]


def made(
    computation: Computation, names: set[str], stages: Collection[str] = (), places: Places | None = None, others: bool = True
) -> frozenset[str]:
    """The tensors that kernels compute for others: these, and the reductions that they read as a whole. stages: not looked into.

    places: for each tensor of a reduction, the axes of a kernel at which its accumulator is. others: also the reductions over other
    axes than the first accumulator's. Which reduction is the first is only known after excluding those that the kernel reads as a
    whole.
    """
    found = {m.name for name in names for m in together_with(computation.tensor(name))}
    places = {} if places is None else places
    waiting = sorted(found)
    while waiting:
        tensor = computation.tensor(waiting.pop())
        kernel = "" if tensor.name in names else tensor.name
        for held in (_all_states, states_of)[: 1 + others]:
            mine = {t.name for t in held((tensor,), {*found, *stages} - {tensor.name})}
            for t in _read_whole(tensor, mine, {*found, *stages}, places, kernel):
                found |= {m.name for m in definition_of(t).tensors}
                waiting.append(t.name)
    return frozenset(found)


def _read_whole(tensor: Tensor, held: Collection[str], placed: set[str], places: Places, kernel: str) -> list[Tensor]:
    """The reductions that a tensor's kernel reads but that cannot be its accumulators. held: the names of those that may be."""
    axes, found = definition_of(tensor).axes, list[Tensor]()
    inner: list[tuple[Tensor, Indices | None]] = [(tensor, axes)]
    seen = set(inner)
    while inner:
        reader, at = inner.pop()  # at: its axes as axes of the kernel; None inside a reduction
        for e, to in reads_of(reader, at):
            t = e.tensor
            if t.name in placed or (t, to) in seen:
                continue
            first, each = definition_of(t).tensors[0].name, t.name in held and to is not None and joins(reader, e, to, axes)
            if definition_of(t).reduction is None or each and to is not None and places.setdefault((kernel, first), to) == to:
                seen.add((t, to))
                inner.append((t, to))
            else:
                placed |= {m.name for m in definition_of(t).tensors}
                found.append(t)
    return found


def reads_of(reader: Tensor, at: Indices | None) -> Iterator[tuple[Read, Indices | None]]:
    """The reads of a definition with its axes at `at`; None in a reduction."""
    definition = definition_of(reader)
    for e in (e for v in definition.values for e in v.walk() if isinstance(e, Read) and e.tensor.definition is not None):
        if at is None or definition.reduction is not None:
            yield e, None
        else:
            yield e, tuple(substitute(i, dict(zip(definition.axes, at, strict=True))) for i in e.indices)


def joins(reader: Tensor, read: Read, at: Indices, axes: tuple[Axis, ...]) -> bool:
    """Whether a read is at the axes of a kernel, element by element, and within its tensor."""
    padded = any(isinstance(e, Pad) and e.read == read for v in definition_of(reader).values for e in v.walk())
    inside = all(isinstance(i, Axis) and i.extent <= n for i, n in zip(at, read.tensor.shape, strict=True))
    return len(at) == len(axes) and set(at) == set(axes) and inside and not padded


def together_with(tensor: Tensor) -> tuple[Tensor, ...]:
    """A tensor and the others of its reduction."""
    return definition_of(tensor).tensors if definition_of(tensor).reduction is not None else (tensor,)


def blocks_at(steps: Sequence[Step]) -> int:
    """The number of the step that maps tiles to blocks or clusters; of all steps, if there is none."""
    return next((k for k, s in enumerate(steps) if isinstance(s, Tile) and s.level in ("cluster", "block")), len(steps))


def stages(steps: Sequence[Step]) -> Iterator[str]:
    """The tensors that are computed inside a kernel with these steps, not inside the kernels before it (`compute in global` above the
    blocks)."""
    blocks = blocks_at(steps)
    for k, s in enumerate(steps):
        if isinstance(s, Place) and (k > blocks or (s.verb, s.memory) != ("compute", "global")):
            yield from [s.tensor_name] if s.verb == "compute" else []
            yield from stages(s.steps or ())


def stored_tensors(computation: Computation, steps: Sequence[Step]) -> set[str]:
    """The outputs that the stages of a kernel with these steps store."""
    below = [s for s in steps[blocks_at(steps) :] if isinstance(s, Place) and (s.verb, s.memory) == ("compute", "global")]
    return {t.name for s in below for t in together_with(computation.tensor(s.tensor_name))}


def staged_tensors(computation: Computation, steps: Sequence[Step]) -> set[str]:
    """The tensors of the reductions and definitions that are stages of a kernel with these steps."""
    return {t.name for name in stages(steps) for t in together_with(computation.tensor(name))}


def over_blocks(states: Sequence[Tensor], steps: Sequence[Step]) -> bool:
    """Whether the steps divide a reduction among blocks."""
    reduction = definition_of(states[0]).reduction if states else None
    reduced = {a.name for a in reduction.axes} if reduction is not None else set()
    for s in steps:
        if isinstance(s, Fuse) and reduced & set(s.axes):
            reduced.add(s.name)
        elif isinstance(s, Unfuse) and s.axis in reduced:
            reduced |= {n for n, _ in s.parts}
        elif isinstance(s, Tile) and s.level == "block" and reduced & {a for a, _ in s.sizes}:
            return True
    return False


def together(computation: Computation, stored: Collection[str] = ()) -> tuple[Tensor, ...]:
    """The outputs that the steps refine: the first one that no stage stores, and others over the same axes, if their reductions are
    over the same axes, too."""
    outputs = [t for t in computation.outputs if t.name not in stored] or computation.outputs
    first, reductions, found = outputs[0], set(), []
    for t in outputs:
        if _axes(t) == _axes(first):
            reduction = definition_of(t).reduction
            reductions |= {reduction.axes} if reduction is not None else set()
            found += [t] if reduction is None or len(reductions) == 1 else []
    return tuple(found)


def definition_of(tensor: Tensor) -> Definition:
    assert tensor.definition is not None
    return tensor.definition


def _axes(tensor: Tensor) -> frozenset[Axis]:
    return frozenset(definition_of(tensor).axes)


def resolved(computation: Computation, steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps with every `when` resolved. Raises NotRead for a condition on a device."""
    extents = {a.name: np.int64(a.extent) for a in computation.axes}
    found: list[Step] = []
    for s in steps:
        if not isinstance(s, When):
            found.append(s)
            continue
        if any(isinstance(e, Var) and e.name not in extents for e in s.condition.walk()):
            raise NotRead(f"when {s.condition}")
        found += resolved(computation, s.then if value(s.condition, extents) else s.otherwise)
    return tuple(found)


def with_stages(computation: Computation, steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps with the stages that a shared loop implies: in registers, those of its reductions that others of them read, or that a
    result does not hold element by element."""
    at = next((k for k, s in enumerate(steps) if isinstance(s, Split) and s.of), None)
    if at is None:
        return tuple(steps)
    loop, written = steps[at], staged_tensors(computation, steps)
    members = [d for d in computation.definitions if isinstance(loop, Split) and any(t.name in loop.of for t in d.tensors)]
    below = list(steps[at + 1 :])
    while True:
        read = {n for d in members for n in sources(computation, d, written)}
        read |= {n for name in written for n in sources(computation, definition_of(computation.tensor(name)), written)}
        states = {t.name for t in states_of(together(computation), written | read)}
        names = [{t.name for t in d.tensors} for d in members]
        missing = next((n for n in names if not n & written and (n & read or not n & states)), None)
        if missing is None:
            return (*steps[: at + 1], *below)
        end = next((k for k, s in enumerate(below) if not (isinstance(s, Place) and s.verb in ("load", "compute"))), len(below))
        first = next((k for k, s in enumerate(below[:end]) if _computes_from(computation, s, missing, written)), end)
        below.insert(first, Place("compute", min(missing), "register"))
        written |= missing


def sources(computation: Computation, definition: Definition, placed: Collection[str]) -> set[str]:
    """The tensors that a definition reads, directly or through inlined definitions."""
    found, waiting = set[str](), [*definition.reads]
    while waiting:
        t = waiting.pop()
        if t.definition is None or t.name in found:
            continue
        found.add(t.name)
        waiting += t.definition.reads if t.definition.reduction is None and t.name not in placed else ()
    return found


def ancestors(definition: Definition) -> set[str]:
    """The tensors that a definition is computed from."""
    found, waiting = set[str](), [*definition.reads]
    while waiting:
        t = waiting.pop()
        if t.name not in found:
            found.add(t.name)
            waiting += () if t.definition is None else t.definition.reads
    return found


def computed(world: World, steps: Sequence[Step], begin: int = 0, end: int | None = None) -> set[str]:
    """The tensors that the steps from `begin` to `end` compute here, with all members of a reduction."""
    blocks, found = blocks_at(steps), set[str]()
    for k, s in enumerate(steps[:end]):
        if k >= begin and isinstance(s, Place) and s.verb == "compute" and (k > blocks or s.memory != "global"):
            found |= {t.name for t in together_with(world.computation.tensor(s.tensor_name))}
    return found


def parts_of(steps: Sequence[Step]) -> dict[str, int]:
    """The size of what each block has along an axis, for the axes that the steps divide among blocks."""
    cuts = (s.sizes for s in steps if isinstance(s, Tile) and s.level == "block")
    return {axis: n for sizes in cuts for axis, n in sizes if isinstance(n, int)}


def _computes_from(computation: Computation, step: Step, names: set[str], placed: Collection[str]) -> bool:
    if not isinstance(step, Place) or step.verb != "compute":
        return False
    return bool(names & sources(computation, definition_of(computation.tensor(step.tensor_name)), placed))


def reads_outside(tensors: Sequence[Tensor], stages: Collection[str]) -> bool:
    """Whether these tensors, or pointwise values that they are computed from, read a stage outside of any reduction."""
    waiting, seen = [*tensors], set(tensors)
    while waiting:
        definition = definition_of(waiting.pop())
        if definition.reduction is None:
            read = {t for t in definition.reads if t.definition is not None} - seen
            if any(t.name in stages for t in read):
                return True
            seen |= read
            waiting += read
    return False


def states_of(tensors: Sequence[Tensor], placed: Collection[str]) -> tuple[Tensor, ...]:
    """The reductions over the same axes that these tensors are, or that they read element by element and that have no place."""
    found = _all_states(tensors, placed)
    return tuple(t for t in found if _over(t) == _over(found[0]))


def unlike(tensors: Sequence[Tensor], placed: Collection[str]) -> Tensor | None:
    """The first such reduction with other axes than those before it, which gets a separate kernel."""
    found = _all_states(tensors, placed)
    return next((t for t in found if _over(t) != _over(found[0])), None)


def _all_states(tensors: Sequence[Tensor], placed: Collection[str]) -> list[Tensor]:
    found: dict[Tensor, None] = {}
    seen = set[tuple[Tensor, Indices | None]]()

    def look(tensor: Tensor, at: Indices, axes: tuple[Axis, ...]) -> None:
        if definition_of(tensor).reduction is not None:
            found.update(dict.fromkeys(definition_of(tensor).tensors))
            return
        for e, to in reads_of(tensor, at):
            if to is None or e.tensor.name in placed or (e.tensor, to) in seen:
                continue
            seen.add((e.tensor, to))
            if definition_of(e.tensor).reduction is None or joins(tensor, e, to, axes):
                look(e.tensor, to, axes)

    for tensor in (t for t in tensors if t.definition is not None):
        look(tensor, definition_of(tensor).axes, definition_of(tensor).axes)
    return list(found)


def _over(tensor: Tensor) -> tuple[Axis, ...]:
    reduction = definition_of(tensor).reduction
    assert reduction is not None
    return reduction.axes
