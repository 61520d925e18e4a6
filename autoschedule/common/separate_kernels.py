"""Computations of several tasks: each a kernel of its own, or all of them row by row in one kernel, their values kept on chip.

Which rows there are follows from the definitions: the axes that every reduction has in common and is read at. A kernel for each task
is always possible; one kernel is tried where such axes exist, and comes first where its one pass over the data is the faster.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Iterator
from typing import TypeAlias

from tilelang.autoschedule.common.cost import Estimate
from tilelang.autoschedule.common.task_accesses import Nest, nest_of
from tilelang.autoschedule.cpu.constants import CPU
from tilelang.autoschedule.cpu.device import Cores
from tilelang.autoschedule.cpu.growth import in_parts
from tilelang.computations.computation import Computation, Tensor
from tilelang.computations.inlining import kept_in_memory
from tilelang.core.expr import Axis, Call
from tilelang.schedules.steps import Place, Split, Step, Tile, Vectorize
from tilelang.schedules.task import Task, plan, task_of

Steps: TypeAlias = tuple[Step, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Made:
    """The steps of one task, and their estimate."""

    steps: Steps
    estimate: Estimate


def apart(earlier: list[tuple[Task, Made]], last: list[Made]) -> list[Steps]:
    """A kernel for each task: the steps of the earlier ones in the braces that place their results."""
    head = tuple(Place("compute", task.outputs[0].name, "global", steps=made.steps or None) for task, made in earlier)
    return [(*head, *made.steps) for made in last]


def by_rows(computation: Computation, device: Cores) -> list[Steps]:
    """All tasks in one kernel, row by row; none where no axis is common to all."""
    placed = on_chip(computation)
    names = {t.name for t in placed}
    stages = {t.name: nest_of(task_of(t, lambda r: r.name in names)) for t in placed if t.member == 0}
    last = nest_of(plan(computation, names)[-1])
    rows = common_axes(placed, [*stages.values(), last])
    if not rows or last.points == 0:
        return []
    order = [t for t in placed if t.name in stages]
    width = sum(
        stages[t.name].outputs // math.prod(a.extent for a in last.spatial if a.name in rows) * t.dtype.bytes for t in order
    )
    if device.pruning.drops("shared", width > min(device.cache_bytes // 2, device.shared_bytes)):
        return []
    inputs = {t.name for t in computation.inputs} if device.fetches else set()
    fetched = _last_reader(last, [stages[t.name] for t in order], inputs)
    found = []
    for together in (1,) if fetched is None else (2, 1):  # rows: the second hides the latency of the first one's horizontal sum
        far = fetched is not None and (together * width + _read_bytes(fetched.nest, rows, 2 * together) > device.caches[0].bytes)
        if together > 1 and far:
            continue
        fetch = fetched and dataclasses.replace(fetched, memory="l2" if far else "l1", rows=2 if far else together)
        lanes = CPU.row_vectors * device.lanes // together
        steps = [_row_steps(stages[t.name], rows, lanes, fetch) for t in order]
        kept = tuple(Place("compute", t.name, _memory(stages[t.name], rows), steps=s) for t, s in zip(order, steps, strict=True))
        for head in _heads(last, rows, device, kept, together):
            device.pruning.keeps()
            found.append((*head, *kept, *_last_steps(last, rows, lanes, fetch)))
    return found


def _heads(last: Nest, rows: list[str], device: Cores, kept: Steps, together: int) -> Iterator[Steps]:
    """What precedes the stages of rows: the block tile, the split into `together` rows per iteration, and whether results stream."""
    # A row that is stored while the next one is computed is read from what was kept of it, else its inputs must stay near.
    delayed = any(isinstance(step, Place) and step.memory == "shared" for step in kept)
    for share, stream in itertools.product(CPU.rows_of_a_core, (True, False) if not last.reduced else (False,)):
        sizes = _rows_of_a_block(last, rows, device.cores * share)
        several = any(n > 1 for _, n in sizes)
        axis, most = sizes[-1]
        short = most < CPU.least_rounds * together and share > CPU.rows_of_a_core[0]
        if short or most % together or last.extents[axis] % together:
            continue
        head: list[Step] = [Tile(sizes, "block")]
        if several:
            head.append(Split((*((a, 1) for a, _ in sizes[:-1]), (axis, together))))
        if stream:
            head.append(Place("via", None, "register", stream=True, behind=int(several and delayed)))
        yield tuple(head)


def on_chip(computation: Computation) -> list[Tensor]:
    """What a kernel of all tasks keeps for a row: the results of reductions, and pointwise values with a function that several read."""
    apart_names = {t.name for task in plan(computation, set(), kept_in_memory(computation))[:-1] for t in task.outputs}
    found, readers = [], Counter(t for d in computation.definitions for t in d.reads)
    for definition in computation.definitions:
        for tensor in definition.tensors:
            if tensor.name in apart_names:
                found.append(tensor)
            elif definition.reduction is None and tensor not in computation.outputs:
                dear = any(isinstance(e, Call) for v in definition.values for e in v.walk())
                if readers[tensor] > 1 and dear:
                    found.append(tensor)
    return found


def common_axes(placed: list[Tensor], nests: list[Nest]) -> list[str]:
    """Axes that every placed tensor has, and at which it is always read."""
    common: dict[str, int] | None = None
    for tensor in placed:
        assert tensor.definition is not None
        mine = {a.name: a.extent for a in tensor.definition.axes}
        common = mine if common is None else {n: e for n, e in common.items() if mine.get(n) == e}
    names = {t.name: t for t in placed}
    for nest in nests:
        extents = {a.name: a.extent for a in nest.spatial}
        common = {n: e for n, e in (common or {}).items() if extents.get(n) == e}
        for access in nest.reads:
            if access.name in names:
                definition = names[access.name].definition
                assert definition is not None
                at = {a.name: i for a, i in zip(definition.axes, access.written, strict=True)}
                common = {n: e for n, e in common.items() if isinstance(i := at[n], Axis) and i.name == n}
    return [a.name for a in nests[-1].spatial if a.name in (common or {})]


def _rows_of_a_block(last: Nest, rows: list[str], blocks: int) -> tuple[tuple[str, int], ...]:
    sizes, made = [], 1
    for a in last.spatial:
        if a.name in rows:
            parts = min(a.extent, -(-blocks // made))
            sizes.append((a.name, in_parts(a.extent, parts, 1)))
            made *= -(-a.extent // sizes[-1][1])
    return tuple(sizes)


def _memory(stage: Nest, rows: list[str]) -> str:
    return "register" if all(a.name in rows or a.extent == 1 for a in stage.spatial) else "shared"


@dataclasses.dataclass(frozen=True, eq=False)
class Fetched:
    """Rows of an input that are brought near before they are read. nest: the loops that do it; memory: where the rows go; rows: how
    many rows before."""

    nest: Nest
    name: str
    memory: str = "l1"
    rows: int = 1


def _last_reader(last: Nest, stages: list[Nest], inputs: set[str]) -> Fetched | None:
    """The last of the stages, or what follows them, that reads an input over all its axes: the next row of it is fetched there."""
    for nest in (last, *reversed(stages)):
        for access in nest.reads:
            if access.name in inputs and not access.gathered and access.axes >= {a.name for a in nest.axes if a.extent > 1}:
                return Fetched(nest, access.name)
    return None


def _read_bytes(nest: Nest, rows: list[str], count: int) -> int:
    """Bytes that this many rows of a nest read, of all tensors."""
    extents = {**nest.extents, **dict.fromkeys(rows, 1), rows[-1]: min(count, nest.extents[rows[-1]])}
    return sum(a.footprint_bytes(extents) for a in nest.reads)


def _row_steps(stage: Nest, rows: list[str], lanes: int, fetched: Fetched | None) -> tuple[Step, ...] | None:
    """The vectors of a stage: along what it reduces, or along the rest of its row."""
    inner = stage.reduced or tuple(a for a in stage.spatial if a.name not in rows)
    return _vectors(stage, [a.name for a in inner], lanes, fetched) or None


def _vectors(nest: Nest, names: list[str], lanes: int, fetched: Fetched | None) -> tuple[Step, ...]:
    for name in reversed(names):
        extent = nest.extents[name]
        if extent > 1 and any(a.stride(name) == 1 for a in nest.accesses):
            width = min(lanes, 1 << (extent.bit_length() - 1))
            if fetched is None or fetched.nest is not nest or extent <= width:
                return (Vectorize(name, width),)
            fetch = Place("load", fetched.name, fetched.memory, ahead=fetched.rows * -(-extent // width))
            return (Split(((name, width),)), fetch, Vectorize(name, width))
    return ()


def _last_steps(last: Nest, rows: list[str], lanes: int, fetched: Fetched | None) -> tuple[Step, ...]:
    names = [a.name for a in (last.reduced or last.spatial) if a.name not in rows]
    head: tuple[Step, ...] = (Place("accumulate", None, "register"),) if last.reduced else ()
    return (*head, *_vectors(last, names, lanes, fetched))
