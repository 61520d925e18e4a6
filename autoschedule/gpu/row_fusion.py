"""Several tasks in one kernel on GPUs: rows stay in the registers of the threads that share them.

Every stage maps its row to the same threads in the same way, so each thread finds its operands in its own registers. Values of a
whole row, such as a sum, reach all threads by the reduction. Rows that do not fit in registers get separate kernels.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from tilelang.autoschedule.common.device_model import Steps
from tilelang.autoschedule.common.kernel_part import Part
from tilelang.autoschedule.common.limits import shared_bytes, takes_blocks
from tilelang.autoschedule.common.row_fusion import Rows, rows_of
from tilelang.autoschedule.common.task_accesses import Nest
from tilelang.autoschedule.common.threads import threads_of
from tilelang.autoschedule.gpu.constants import GPU
from tilelang.autoschedule.gpu.device import GpuDevice
from tilelang.autoschedule.gpu.model import full_grid, registers
from tilelang.autoschedule.gpu.staging import vector_lanes
from tilelang.schedules.steps import Place, Split, Tile, Vectorize


def rows_by_lanes(part: Part, device: GpuDevice) -> Iterator[tuple[Rows, Steps]]:
    """All tasks of a part in one kernel, with rows mapped to warps and blocks; nothing if the stages share no rows, or if rows
    are too long."""
    fused = rows_of(part, keeps_few=True) if not part.stored else None
    if fused is None:
        return
    rows, last, nests = fused.axes, fused.last, fused.nests
    columns = [_column(nest, rows) for nest in nests]
    if last.reduced or columns[-1] is None or "" in columns:
        return
    extents = {nest.extents[c] for nest, c in zip(nests, columns, strict=True) if c is not None}
    if len(extents) > 1:
        return
    lanes = min(_lanes(nest, c, device) for nest, c in zip(nests, columns, strict=True) if c is not None)
    loaded = _loaded(fused, list(zip(nests, columns, strict=True)))
    kept = len(loaded) + sum(any(a.name not in rows and a.extent > 1 for a in stage.spatial) for stage in fused.stages)
    for head, threads in _shapes(last, rows, device, extents.pop(), lanes):
        held = kept * -(-last.extents[columns[-1]] // (threads * lanes)) * lanes
        if device.pruning.drops("registers", held > GPU.held):
            continue
        loads = [Place("load", name, "register", steps=_vector(dimension, lanes) or None) for name, dimension in loaded.items()]
        spread = [(Tile(((c, lanes),), "thread"),) if c is not None and threads > 1 else None for c in columns[:-1]]
        ways = Tile(((columns[-1], lanes),), "thread", threads) if threads > 1 else Split(((columns[-1], lanes),), unroll=True)
        stages = [("register", how) for how in spread]
        made = within(fused, fused.steps((*head, *loads), stages, (ways, *_vector(columns[-1], lanes))), device)
        if made is not None:
            device.pruning.keeps()
            yield fused, made


def _vector(axis: str, lanes: int) -> Steps:
    return (Vectorize(axis, lanes),) if lanes > 1 else ()


def within(fused: Rows, steps: Steps, device: GpuDevice) -> Steps | None:
    """The steps, with several rows per block if the grid is limited; None if they do not fit the device."""
    loops, drops = fused.loops(steps, device.profile), device.pruning.drops
    threads = threads_of(loops, device.profile)
    if drops("shared", shared_bytes(threads) > device.shared_bytes):
        return None
    if drops("registers", loops.shares and registers(threads) > device.profile.registers_per_thread):
        return None
    if drops("grid", not takes_blocks(threads)):
        (head, *rest), blocks = steps, full_grid(threads, device)
        assert isinstance(head, Tile)
        return (dataclasses.replace(head, count=blocks), *rest) if blocks else None
    return steps


def _column(nest: Nest, rows: list[str]) -> str | None:
    """The axis along a row; None if a stage has a single value per row, "" if it has several such axes."""
    found = [a.name for a in nest.axes if a.name not in rows and a.extent > 1]
    return None if not found else found[0] if len(found) == 1 else ""


def _lanes(nest: Nest, column: str, device: GpuDevice) -> int:
    """The widest vectors along a column that all accesses to it allow."""
    return min((min(4, vector_lanes(a, column, device)) for a in nest.accesses if column in a.axes), default=1)


def _loaded(fused: Rows, nests: list[tuple[Nest, str | None]]) -> dict[str, str]:
    """The tensors in global memory whose rows several stages read, each at one place, with the name of the dimension along the row."""
    inputs = {t.name for t in fused.part.read}
    readers: dict[str, list[str]] = {}
    for nest, column in nests:
        for access in nest.reads:
            if access.name in inputs and column is not None and access.stride(column) == 1 and len(access.axes) > 1:
                readers.setdefault(access.name, []).append(access.tensor.dims[-1].name)
    return {name: found[0] for name, found in readers.items() if len(found) > 1}


def _shapes(last: Nest, rows: list[str], device: GpuDevice, columns: int, lanes: int) -> Iterator[tuple[Steps, int]]:
    """How rows are mapped to blocks, warps or threads, and the number of threads that share a row."""
    inner = next(a for a in reversed(last.spatial) if a.name in rows)
    single = tuple((a.name, 1) for a in last.spatial if a.name in rows)
    most = device.profile.max_block_threads

    def of_block(count: int) -> tuple[tuple[str, int], ...]:
        return tuple((a, count if a == inner.name else n) for a, n in single)

    if columns <= GPU.alone:
        for count in (n for n in GPU.thread_rows if not device.pruning.drops("threads", n > most)):
            yield (Tile(of_block(count), "block"), Tile(single, "thread")), 1
    for warps in GPU.row_warps:
        threads = warps * device.warp
        if threads > most or (warps > 1 and threads * lanes >= 2 * columns):
            return
        several = warps == 1 and inner.extent >= GPU.block_rows
        if several and not device.pruning.drops("threads", GPU.block_rows * threads > most):
            yield (Tile(of_block(GPU.block_rows), "block"), Tile(single, "warp")), threads
        yield (Tile(single, "block"),), threads
