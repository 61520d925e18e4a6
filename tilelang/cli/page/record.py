"""Records the memory accesses of a kernel's threads in the simulator, grouped into moves.

A move comprises all accesses of one step to one buffer in one direction. Moves are recorded for the first block of each kernel, run
alone; the division of the tensors among blocks is recorded for the whole launch, if it is small enough to run. Every number is the
simulator's.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tilelang.cli.page.divisions import Division, Enough, distinct, divisions, numbers
from tilelang.cli.page.held import Held, Values, held
from tilelang.errors import Span
from tilelang.lowering import ir
from tilelang.lowering.simulator.batch import Touch
from tilelang.lowering.simulator.memory_model import Watched
from tilelang.lowering.simulator.simulate import Report, check_work, device_numbers, run
from tilelang.runtime.kernel import Kernel
from tilelang.semantics.reference import random_arrays

Array = npt.NDArray[Any]

KEPT_REQUESTS = 48  # per move: those that the page can show one by one
ACCESSES = 20_000  # per block; then the run ends
TOUCHES = 3_000_000  # elements touched per run, counted per access


@dataclasses.dataclass(frozen=True)
class Request:
    """One access by one warp. runs: (thread, first element, elements) of its threads. crowded: elements in banks with more requests
    than they serve at once."""

    number: int
    warp: int
    runs: tuple[tuple[int, int, int], ...]
    cost: int
    least: int
    elements: int
    statement: int
    crowded: tuple[int, ...]


@dataclasses.dataclass
class Move:
    """The accesses of one step to one buffer in one direction, in the first block.

    cost: transactions (global) or bank-conflict replays (shared). least: the minimum transactions for the requested bytes. worst: the
    number of the most expensive request.
    """

    kernel: int
    buffer: ir.Buffer
    writes: bool
    span: Span | None
    partners: list[str] = dataclasses.field(default_factory=list)
    statements: list[int] = dataclasses.field(default_factory=list)
    texts: list[str] = dataclasses.field(default_factory=list)
    base: int = 0
    count: int = 0
    cost: int = 0
    least: int = 0
    asked: int = 0
    lanes: int = 0
    worst: int = 0
    requests: list[Request] = dataclasses.field(default_factory=list)
    _touches: list[tuple[Array, Array, Array]] = dataclasses.field(default_factory=list)
    _worst_cost: float = 0.0

    @property
    def touched(self) -> tuple[Array, Array, Array]:
        """(element, thread, time) of every access, in order; time is the number of the request."""
        element, thread, time = (np.concatenate(part) for part in zip(*self._touches, strict=True))
        return element, thread, time

    @property
    def active(self) -> int:
        """The number of threads of the block that take part."""
        return int(distinct(self.touched[1]).size)


@dataclasses.dataclass(frozen=True)
class Record:
    """Everything observed. report: of the whole launch, None if it is too large to run. cut: the block was not run to its end.

    held: the tensor elements that buffers in shared memory and registers hold, as far as identified.
    """

    moves: tuple[Move, ...]
    divisions: tuple[Division, ...]
    held: tuple[Held, ...]
    report: Report | None
    cut: bool
    warp: int
    banks: int
    bank_bytes: int
    transaction_bytes: int
    wide_read_lanes: tuple[int, ...]


def record(kernel: Kernel) -> Record:
    """Simulates a kernel's first blocks and, if it is small, all of it."""
    device = device_numbers(kernel.target.profile)
    first = tuple(k if 0 in k.grid else k.replace(grid=(1, 1, 1)) for k in kernel.program.kernels)
    alone = kernel.program.replace(kernels=first)
    check_work(alone, watched=ACCESSES)
    arrays = random_arrays(kernel.computation)
    watch = _Moves(alone, device["warp"], device["transaction_bytes"])
    cut = _watched(watch, alone, arrays, device)
    other = random_arrays(kernel.computation, 1)
    other |= {name: a for name, a in arrays.items() if np.issubdtype(a.dtype, np.integer)}  # they may be indices
    again = _Accesses(alone)
    _watched(again, alone, other, device, costs=False)
    found = held(alone, kernel.computation, (watch.values, again.values), (arrays, other), watch.elements_read())
    moves = tuple(watch.moves.values())
    touches = [
        (m.writes, m.touched[0].size * math.prod(kernel.program.kernels[m.kernel].grid))
        for m in moves
        if m.buffer.memory == "global"
    ]
    writes = sum(n for writes, n in touches if writes)
    divided, report = divisions(kernel.program, arrays, device, sum(n for _, n in touches), writes)
    return Record(moves, divided, found, report, cut, **device)


def _watched(watch: _Accesses, program: ir.Program, arrays: dict[str, Array], device: dict[str, Any], costs: bool = True) -> bool:
    """Runs a program for a watcher; returns whether the run was ended early."""
    cut = False
    try:
        run(program, arrays, watch=watch, costs=costs, **device)
    except Enough:
        cut = True
    watch.values.end()
    return cut


def _partners(stmt: ir.Stmt, buffer: ir.Buffer, writes: bool) -> list[str]:
    """The buffers at the other end of a move."""
    names = [b.name for b, other in ir.touched(stmt) if other != writes and b != buffer]
    return list(dict.fromkeys(names))


class _Accesses:
    """Collects the values of the accesses of one block of each kernel, and ends the run when it has seen enough of them."""

    def __init__(self, program: ir.Program) -> None:
        self.values = Values()
        self._numbers = numbers(program)
        self._accesses = self._touches = 0

    def __call__(self, seen: Watched) -> None:
        kernel, number = self._numbers[id(seen.site.statement)]
        self.values.see(kernel, seen)
        self._see(kernel, number, seen)
        self._accesses += 1
        self._touches += seen.touch.element.size
        if self._accesses >= ACCESSES or self._touches >= TOUCHES:
            raise Enough

    def _see(self, kernel: int, number: int, seen: Watched) -> None:
        """What else is recorded of an access by a statement of a kernel."""


class _Moves(_Accesses):
    """Collects the moves, too."""

    def __init__(self, program: ir.Program, warp: int, transaction_bytes: int) -> None:
        super().__init__(program)
        self.moves: dict[Any, Move] = {}
        self._warp, self._transaction_bytes = warp, transaction_bytes

    def _see(self, kernel: int, number: int, seen: Watched) -> None:
        stmt, buffer, span = seen.site.statement, seen.buffer, seen.site.span
        partners = _partners(stmt, buffer, seen.writes)
        key = (kernel, span, buffer.name, seen.writes, tuple(partners) if span is None else ())
        move = self.moves.setdefault(key, Move(kernel, buffer, seen.writes, span))
        move.partners += [p for p in partners if p not in move.partners]
        if number not in move.statements:
            move.statements.append(number)
            move.texts.append(seen.site.text)
        self._add(move, seen, number)

    def elements_read(self) -> dict[str, Array]:
        """The elements of each input that were read, ascending."""
        found: dict[str, list[Array]] = {}
        for move in self.moves.values():
            if move.buffer.role == "input" and not move.writes:
                found.setdefault(move.buffer.name, []).append(move.touched[0])
        return {name: distinct(np.concatenate(parts)) for name, parts in found.items()}

    def _add(self, move: Move, seen: Watched, number: int) -> None:
        touch, buffer = seen.touch, seen.buffer
        size = buffer.dtype.bytes
        warps, of = _numbered(touch.thread // self._warp)
        of_warp = distinct(of * (buffer.elements + 1) + touch.element) // (buffer.elements + 1)
        asked = np.bincount(of_warp, minlength=warps) * size
        least = -(-asked // self._transaction_bytes)
        move.base = int(touch.address[0] - touch.element[0]) * size
        move._touches.append((touch.element, touch.thread, move.count + of))
        worse = seen.cost / warps > move._worst_cost
        if worse:
            move._worst_cost = seen.cost / warps
        if len(move.requests) < KEPT_REQUESTS or worse:
            costs = []
            for w in range(warps):
                request = self._request(move, seen, number, of == w, int(least[w]), move.count + w)
                costs.append(request.cost)
                if len(move.requests) < KEPT_REQUESTS or (worse and request.cost == max(costs)):
                    move.requests.append(request)
            if worse:
                move.worst = move.count + costs.index(max(costs))
        move.count += warps
        move.cost += seen.cost
        move.least += int(least.sum())
        move.asked += int(asked.sum())
        move.lanes += int(distinct(touch.thread).size)

    def _request(self, move: Move, seen: Watched, number: int, of: Array, least: int, at: int) -> Request:
        touch, size = seen.touch, seen.buffer.dtype.bytes
        part = Touch(touch.thread[of], touch.lane[of], touch.element[of], touch.address[of], False)
        _, cost = seen.memory.cost(seen.buffer, part, writes=seen.writes)
        runs: list[list[int]] = []
        for thread, element in zip(part.thread.tolist(), part.element.tolist(), strict=True):
            if runs and runs[-1][0] == thread and runs[-1][1] + runs[-1][2] == element:
                runs[-1][2] += 1
            else:
                runs.append([thread, element, 1])
        crowded: tuple[int, ...] = ()
        if seen.buffer.memory == "shared" and cost:
            word, group, ideal = seen.memory.words(seen.buffer, part, part.address * size, writes=seen.writes)
            crowded = _crowded(
                word, group, seen.memory.device.banks, ideal, np.repeat(part.element, word.size // part.element.size)
            )
        warp = int(part.thread[0]) // self._warp
        elements = int(distinct(part.element).size)
        return Request(at, warp, tuple((t, e, n) for t, e, n in runs), cost, least, elements, number, crowded)


def _numbered(warp: Array) -> tuple[int, Array]:
    """How many different warps there are, and the number of each among them, in ascending order."""
    step = warp[1:] != warp[:-1]
    if (warp[1:] >= warp[:-1]).all():  # sorted, as most accesses are
        number = np.concatenate(([0], np.cumsum(step)))
        return int(number[-1]) + 1, number
    different, number = np.unique(warp, return_inverse=True)
    return different.size, number.reshape(-1)


def _crowded(word: Array, group: Array, banks: int, ideal: int, element: Array) -> tuple[int, ...]:
    """The elements in banks from which one group of threads requests more words than it gets at once."""
    width = int(word.max()) + 1
    wanted = np.unique(group * width + word)
    bank = wanted // width * banks + wanted % width % banks
    number, counts = np.unique(bank, return_counts=True)
    full = number[counts > ideal]
    found = np.unique(element[np.isin(group * banks + word % banks, full)])
    return tuple(int(e) for e in found)
