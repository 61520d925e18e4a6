"""The pictures as data: the cells, their contents, and the requests that can be shown one by one.

A picture consists of lines of consecutive elements of one buffer: rows of the tensor, or rows of banks. The page's script draws it.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tilelang.cli.page.divisions import Division
from tilelang.cli.page.held import Held
from tilelang.cli.page.record import Array, Move, Record
from tilelang.core.distribution import Table
from tilelang.lowering import ir

LINES, COLUMNS = 128, 256  # the maximum lines and columns of a picture
HELD_RUNS = 16_384  # maximum runs of registers and elements that can be shown per thread
WIDE, FEW, WRAPPED = 128, 4, 64  # at most FEW rows wider than WIDE are wrapped into lines of WRAPPED elements


@dataclasses.dataclass(frozen=True)
class _Lines:
    """The lines of a picture: the first element and the length of each. banked: a line is a row of banks."""

    starts: list[int]
    lengths: list[int]
    banked: bool = False

    def inside(self, cells: Array) -> Array:
        """Which of the elements are on a line."""
        starts = np.array(self.starts, np.int64)
        at = np.searchsorted(starts, cells, side="right") - 1
        inside: Array = (at >= 0) & (cells - starts[np.maximum(at, 0)] < np.array(self.lengths)[np.maximum(at, 0)])
        return inside


def move_figure(move: Move, threads_of_block: int, levels: Mapping[str, int], record: Record) -> dict[str, Any]:
    """The picture of a move. levels: the threads per unit of each level."""
    buffer = move.buffer
    element, thread, time = move.touched
    cells, first, touches = np.unique(element, return_index=True, return_counts=True)
    threads = Table((thread,), (element,)).copies()
    lines = _bank_lines(buffer, move.base, record) if buffer.memory == "shared" else _rows(buffer.shape, cells)
    kept = lines.inside(cells)
    return {
        **_common(buffer, lines, record, cut=int((~kept).sum())),
        "base": move.base,
        "cells": _runs(cells[kept]),
        "thread": _short(thread[first][kept]),
        "time": _short(time[first][kept]),
        "touches": _short(touches[kept]),
        "threads": _short(threads[kept]),
        "count": move.count,
        "block_threads": threads_of_block,
        "levels": dict(levels),
        "writes": move.writes,
        "worst": move.worst,
        "requests": [
            {
                "number": r.number, "warp": r.warp, "runs": [n for one in r.runs for n in one], "cost": r.cost, "least": r.least,
                "elements": r.elements, "statement": r.statement, "crowded": list(r.crowded),
            }
            for r in move.requests
        ],
    }  # fmt: skip


def division_figure(division: Division, kernel: ir.Kernel, record: Record) -> dict[str, Any]:
    """The picture of a tensor divided among blocks; if it is large, a cell shows the first of several elements."""
    scale = _scale(division.buffer.shape)
    each = tuple(slice(None, None, n) for n in scale)
    first, blocks = (a.reshape(division.buffer.shape)[each] for a in (division.first, division.blocks))
    cells = np.flatnonzero(blocks)
    lines = _rows(blocks.shape, cells, LINES)
    kept = lines.inside(cells)
    return {
        **_common(division.buffer, lines, record, cut=int((~kept).sum())),
        "shape": list(blocks.shape),
        "scale": list(scale),
        "cells": _runs(cells[kept]),
        "block": _short(first.reshape(-1)[cells][kept]),
        "blocks": _short(blocks.reshape(-1)[cells][kept]),
        "grid": list(kernel.grid),
        "writes": division.writes,
    }


def _scale(shape: tuple[int, ...]) -> tuple[int, ...]:
    """How many elements a cell represents along each dimension, so that rows and columns fit: powers of two, like most tiles."""
    if math.prod(shape[:-1]) <= FEW:
        return (1,) * len(shape)
    wanted = (max(1, -(-n // LINES)) for n in shape[-2:])
    return (*(1 for _ in shape[:-2]), *(1 << (n - 1).bit_length() for n in wanted))


def layout_figure(held: Held, base: int, record: Record) -> dict[str, Any]:
    """The picture of a shared buffer: the location of each tensor element."""
    lines = _bank_lines(held.buffer, base, record)
    order = np.argsort(held.place)
    cells, elements = held.place[order], held.element[order]
    kept = lines.inside(cells)
    return {
        **_common(held.buffer, lines, record, cut=int((~kept).sum())),
        "base": base,
        "cells": _runs(cells[kept]),
        "held": _short(elements[kept]),
        "tensor": {"name": held.tensor, "shape": list(held.shape)},
        "moment": held.moment,
    }


def register_figure(held: Held, threads: int, levels: Mapping[str, int], record: Record) -> dict[str, Any]:
    """The picture of a tensor by the threads that hold its elements in registers. levels: as for a move."""
    cells, first = np.unique(held.element, return_index=True)
    lines = _rows(held.shape, cells)
    kept = lines.inside(cells)
    order = np.lexsort((held.place, held.thread))
    thread, place, element = held.thread[order], held.place[order], held.element[order]
    breaks = np.flatnonzero((np.diff(thread) != 0) | (np.diff(place) != 1) | (np.diff(element) != 1)) + 1
    begins = np.concatenate(([0], breaks))
    counts = np.diff(np.concatenate((begins, [thread.size])))
    shown = begins[:HELD_RUNS]
    return {
        **_common(held.buffer, lines, record, cut=int((~kept).sum())),
        "name": held.tensor,
        "shape": list(held.shape),
        "cells": _runs(cells[kept]),
        "thread": _short(held.thread[first][kept]),
        "register": _short(held.place[first][kept]),
        "copies": _short(held.table.copies()[kept]),
        "runs": [int(n) for one in zip(thread[shown], place[shown], element[shown], counts, strict=False) for n in one],
        "runs_cut": int(begins.size - shown.size),
        "registers": {"name": held.buffer.name, "shape": list(held.buffer.shape)},
        "levels": dict(levels),
        "block_threads": threads,
    }


def _common(buffer: ir.Buffer, lines: _Lines, record: Record, cut: int) -> dict[str, Any]:
    return {
        "name": buffer.name, "shape": list(buffer.shape), "bytes": buffer.dtype.bytes, "memory": buffer.memory,
        "starts": lines.starts, "lengths": _short(np.array(lines.lengths)), "columns": max(lines.lengths), "banked": lines.banked,
        "cut": cut, "warp": record.warp, "banks": record.banks, "bankBytes": record.bank_bytes,
        "transaction": record.transaction_bytes,
    }  # fmt: skip


def _rows(shape: tuple[int, ...], cells: Array, columns: int = COLUMNS) -> _Lines:
    """The rows of the smallest box around the touched elements."""
    if not shape or not cells.size:
        return _Lines([0], [1])
    index = np.unravel_index(cells, shape)
    low, high = [int(i.min()) for i in index], [int(i.max()) for i in index]
    width = high[-1] - low[-1] + 1
    outer = [range(a, b + 1) for a, b in zip(low[:-1], high[:-1], strict=True)]
    places = itertools.islice(itertools.product(*outer), LINES)
    starts = [int(np.ravel_multi_index((*place, low[-1]), shape)) for place in places]
    if width > WIDE and math.prod(len(r) for r in outer) <= FEW:
        pieces = [(start + at, min(WRAPPED, width - at)) for start in starts for at in range(0, width, WRAPPED)][:LINES]
        return _Lines([start for start, _ in pieces], [length for _, length in pieces])
    return _Lines(starts, [min(width, columns)] * len(starts))


def _bank_lines(buffer: ir.Buffer, base: int, record: Record) -> _Lines:
    """Rows of banks; the first may begin before the buffer does."""
    row = record.banks * record.bank_bytes
    columns = max(1, row // buffer.dtype.bytes)
    before = base % row // buffer.dtype.bytes
    lines = min(-(-(before + buffer.elements) // columns), LINES)
    return _Lines([line * columns - before for line in range(lines)], [columns] * lines, True)


def _runs(cells: Array) -> list[int]:
    """Ascending numbers as flattened (first, count) runs."""
    if not cells.size:
        return []
    breaks = np.flatnonzero(np.diff(cells) != 1) + 1
    firsts = np.concatenate(([0], breaks))
    counts = np.diff(np.concatenate((firsts, [cells.size])))
    return [int(n) for pair in zip(cells[firsts], counts, strict=True) for n in pair]


def _short(values: Array) -> Any:
    """A list, or a single number if all are equal."""
    if values.size and (values == values[0]).all():
        return int(values[0])
    return [int(v) for v in values]
