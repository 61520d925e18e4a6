"""Several tasks in one kernel on CPUs, one or two rows at a time, with their values in caches."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator

from tilelang.autoschedule.common.axes import shared_out
from tilelang.autoschedule.common.device_model import Steps
from tilelang.autoschedule.common.kernel_part import Part
from tilelang.autoschedule.common.row_fusion import Rows, rows_of
from tilelang.autoschedule.common.task_accesses import Nest
from tilelang.autoschedule.cpu.constants import CPU
from tilelang.autoschedule.cpu.device import CpuDevice
from tilelang.core.expr import Read
from tilelang.schedules.steps import Place, Split, Step, Tile, Vectorize


def by_rows(part: Part, device: CpuDevice) -> Iterator[tuple[Rows, Steps]]:
    """All tasks of a part in one kernel, row by row; nothing if they have no axis in common."""
    fused = rows_of(part, keeps_few=False, swept=True)
    if fused is None:
        return
    rows, last, stages = fused.axes, fused.last, list(zip(fused.first, fused.stages, strict=True))
    count = math.prod(last.extents[a] for a in rows)
    stored = {t.name for t in part.stored}
    width = sum(stage.outputs // count * t.dtype.bytes for t, stage in stages if t.name not in stored)
    width += last.outputs * last.state_bytes if fused.swept else 0
    if device.pruning.drops("shared", width > min(device.cache_bytes // 2, device.shared_bytes)):
        return
    fetched = _last_reader(last, fused.stages, rows, {t.name for t in part.read} if device.fetches else set())
    for together in (1,) if fetched is None else (2, 1):  # rows: computing two hides the latency of horizontal sums
        far = fetched is not None and (together * width + _read_bytes(fetched.nest, rows, 2 * together) > device.caches[0].bytes)
        if together > 1 and far:
            continue
        fetch = fetched and dataclasses.replace(fetched, memory="l2" if far else "l1", rows=2 if far else together)
        lanes = CPU.row_vectors * device.lanes // together
        kept = [
            ("global" if t.name in stored else _memory(stage, rows), _row_steps(stage, rows, lanes, fetch)) for t, stage in stages
        ]
        delayed = any(memory == "shared" for memory, _ in kept)
        heads = _sweeps(last, rows, device, together) if fused.swept else _heads(last, rows, device, delayed, together)
        for head in heads:
            device.pruning.keeps()
            yield fused, fused.steps(head, kept, _last_steps(last, rows, lanes, fetch))


def _heads(last: Nest, rows: list[str], device: CpuDevice, delayed: bool, together: int) -> Iterator[Steps]:
    """The steps before the stages of rows: the block tile, the split into `together` rows per iteration, and streaming stores.

    delayed: whether the store of a row may overlap with the next row, because it reads staged values instead of inputs.
    """
    for share, stream in itertools.product(CPU.rows_of_a_core, (True, False) if not last.reduced else (False,)):
        sizes = tuple(shared_out([a for a in last.spatial if a.name in rows], device.cores * share, {}).items())
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


def _sweeps(last: Nest, rows: list[str], device: CpuDevice, together: int) -> Iterator[Steps]:
    """The steps before the stages of rows that the last task reduces: each block reduces some of them, `together` in an iteration."""
    wide = [a.name for a in last.spatial if a.extent > 1]
    if wide and any(a.name not in rows for a in last.reduced):
        return
    for share in CPU.rows_of_a_core:
        sizes = tuple(shared_out([a for a in last.reduced if a.name in rows], device.cores * share, {}).items())
        axis, most = sizes[-1]
        short = most < CPU.least_rounds * together and share > CPU.rows_of_a_core[0]
        if short or most % together or last.extents[axis] % together:
            continue
        sums = Place("accumulate", None, "shared" if wide else "register")
        yield (Tile(sizes, "block"), sums, Split((*((a, 1) for a, _ in sizes[:-1]), (axis, together))))


def _memory(stage: Nest, rows: list[str]) -> str:
    return "register" if all(a.name in rows or a.extent == 1 for a in stage.spatial) else "shared"


@dataclasses.dataclass(frozen=True, eq=False)
class Fetched:
    """A prefetch of rows of an input. nest: the loops that issue it; what: the input, or one read of it if there are several; memory:
    the target of the prefetch; rows: how many rows ahead."""

    nest: Nest
    what: str | Read
    memory: str = "l1"
    rows: int = 1


def _last_reader(last: Nest, stages: list[Nest], rows: list[str], inputs: set[str]) -> Fetched | None:
    """The last nest that reads an input over all its axes, more than those of the rows; it prefetches that input's next row."""
    for nest in (last, *reversed(stages)):
        for access in nest.reads:
            whole = {a.name for a in nest.axes if a.extent > 1}
            if access.name in inputs and not access.gathered and access.axes >= whole and not whole <= set(rows):
                several = sum(a.name == access.name for a in nest.reads) > 1
                return Fetched(nest, Read(access.tensor, access.written) if several else access.name)
    return None


def _read_bytes(nest: Nest, rows: list[str], count: int) -> int:
    """The bytes that `count` rows of a nest read from all tensors."""
    extents = {**nest.extents, **dict.fromkeys(rows, 1), rows[-1]: min(count, nest.extents[rows[-1]])}
    return sum(a.footprint_bytes(extents) for a in nest.reads)


def _row_steps(stage: Nest, rows: list[str], lanes: int, fetched: Fetched | None) -> tuple[Step, ...] | None:
    """The vectors of a stage: along its reduction, or along the rest of its row."""
    inner = stage.reduced or tuple(a for a in stage.spatial if a.name not in rows)
    return _vectors(stage, [a.name for a in inner], lanes, fetched) or None


def _vectors(nest: Nest, names: list[str], lanes: int, fetched: Fetched | None) -> tuple[Step, ...]:
    for name in reversed(names):
        extent = nest.extents[name]
        if extent > 1 and any(a.stride(name) == 1 for a in nest.accesses):
            width = min(lanes, 1 << (extent.bit_length() - 1))
            sizes = tuple((a, width if a == name else 1) for a in names if nest.extents[a] > 1)  # in the order of memory
            rounds = math.prod(-(-nest.extents[a] // n) for a, n in sizes)
            if fetched is None or fetched.nest is not nest or rounds == 1:
                return (Vectorize(name, width),)
            fetch = Place("load", fetched.what, fetched.memory, ahead=fetched.rows * rounds)
            return (Split(sizes), fetch, Vectorize(name, width))
    return ()


def _last_steps(last: Nest, rows: list[str], lanes: int, fetched: Fetched | None) -> tuple[Step, ...]:
    inner, summed = [a.name for a in last.reduced if a.name not in rows], rows[0] in last.reduced_extents
    names = inner or [a.name for a in last.spatial if a.name not in rows]
    head: tuple[Step, ...] = (Place("accumulate", None, "register"),) if inner and not summed else ()
    return (*head, *_vectors(last, names, lanes, fetched))
