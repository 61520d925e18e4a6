"""Determines which tensor element each element of shared memory and each register of a thread holds.

A block is run twice, on different data: a location whose value equals that of exactly one element in both runs holds that element.
Buffers that only receive copies of inputs hold elements of the inputs that the block reads, at their first fill or read. The others
hold elements of computed tensors, at the end: of outputs as the block itself stored them, of intermediate tensors as in the reference.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tilelang.computations.arguments import inputs
from tilelang.computations.computation import Computation
from tilelang.core.distribution import Table
from tilelang.core.expr import Cast, Const, Expr, Select
from tilelang.instructions.semantics import MOVE
from tilelang.lowering import ir
from tilelang.lowering.simulator.memory_model import Memory, Watched
from tilelang.semantics.evaluator import Evaluator

Array = npt.NDArray[Any]

SNAPSHOTS = 2000  # number of accesses after which registers that are still empty are ignored
ALIKE = 32  # maximum candidates of nearly the same value to search
POINTS = 1 << 26  # of all definitions, up to which the reference is evaluated
ROUNDING = 64  # maximum difference of a computed value from the reference, in units of the type's precision


@dataclasses.dataclass(frozen=True, eq=False)
class Held:
    """The contents of one buffer: the threads' (0: the block's) elements `place` of the buffer hold the flat `element` of a tensor.

    moment: "first" or "last", when they do. shape: the tensor's.
    """

    kernel: int
    buffer: ir.Buffer
    tensor: str
    shape: tuple[int, ...]
    moment: str
    thread: Array
    place: Array
    element: Array

    @property
    def table(self) -> Table:
        """The element by thread and place."""
        return Table((self.thread, self.place), (self.element,))


class Values:
    """The first and the last value of each location in shared memory and registers, collected in one run."""

    def __init__(self) -> None:
        self.first: dict[tuple[int, str], Array] = {}
        self.last: dict[tuple[int, str], Array] = {}
        self.stored: dict[str, tuple[Array, Array]] = {}  # for outputs: the elements that were written, and their values
        self._memories: dict[int, Memory] = {}
        self._empty: dict[int, list[ir.Buffer]] = {}
        self._snapshots = 0

    def see(self, kernel: int, seen: Watched) -> None:
        """Records one access: the values that it reads in shared memory, and registers filled since the previous access."""
        if kernel not in self._memories:
            self._memories[kernel] = seen.memory
            self._empty[kernel] = list(seen.memory.batch.kernel.registers)
        if self._snapshots < SNAPSHOTS:
            self._snapshots += 1
            self._look(kernel)
        if seen.buffer.memory == "shared" and not seen.writes:
            self._read(kernel, seen)

    def end(self) -> None:
        """The run is over: the current contents of registers and outputs are the last ones."""
        for kernel, memory in self._memories.items():
            self._look(kernel)
            for b in memory.batch.kernel.registers:
                self.last[kernel, b.name] = _wide(memory.storage[b.name].data)
            for b in memory.batch.kernel.arguments:
                if b.role == "output":
                    storage = memory.storage[b.name]
                    written = np.flatnonzero(storage.shadow.owner == storage.number)
                    self.stored[b.name] = written, storage.data[written]

    def _look(self, kernel: int) -> None:
        memory, left = self._memories[kernel], []
        for b in self._empty[kernel]:
            storage = memory.storage[b.name]
            first = _values(self.first, (kernel, b.name), storage.data.size)
            fresh = np.isnan(first) & (storage.shadow.owner == storage.number)
            first[fresh] = storage.data[fresh]
            if np.isnan(first).any():
                left.append(b)
        self._empty[kernel] = left

    def _read(self, kernel: int, seen: Watched) -> None:
        key, size = (kernel, seen.buffer.name), seen.buffer.elements
        first = _values(self.first, key, size)
        values, element = _wide(seen.memory.storage[seen.buffer.name].data[seen.touch.address]), seen.touch.element
        fresh = np.isnan(first[element])
        first[element[fresh]] = values[fresh]
        _values(self.last, key, size)[element] = values


def _values(of: dict[tuple[int, str], Array], key: tuple[int, str], size: int) -> Array:
    """The values of a buffer; NaN at first."""
    found = of.get(key)
    if found is None:
        found = of[key] = np.full(size, np.nan)
    return found


def held(
    program: ir.Program,
    computation: Computation,
    runs: tuple[Values, Values],
    arrays: tuple[Any, Any],
    touched: Mapping[str, Array],
) -> tuple[Held, ...]:
    """The contents of the buffers, in the order of the kernels' buffers.

    arrays: the inputs of the two runs, by name. touched: their elements that the blocks read.
    """
    brought = _brought(program)
    read = [_part(name, [a[name] for a in arrays], element) for name, element in touched.items()]
    inside = _Elements(read, 0.0)
    computed = _computed(computation, runs, arrays)
    found = []
    for number, kernel in enumerate(program.kernels):
        for b in (*kernel.shared, *kernel.registers):
            if b.role == "temporary":
                continue
            known, moment = (inside, "first") if b.name in brought else (computed, "last")
            values = [getattr(run, moment).get((number, b.name)) for run in runs]
            if values[0] is not None and values[1] is not None:
                which, element = known.find(*values)
                if (which >= 0).any():
                    found.append(_held(number, b, kernel.threads, which, element, known, moment))
    return tuple(found)


def _held(number: int, buffer: ir.Buffer, threads: int, which: Array, element: Array, known: _Elements, moment: str) -> Held:
    """The contents of a buffer, for the tensor with the most elements found in it."""
    best = int(np.bincount(which[which >= 0]).argmax())
    where = np.flatnonzero(which == best)
    thread, place = (where % threads, where // threads) if buffer.memory == "register" else (np.zeros_like(where), where)
    return Held(number, buffer, known.names[best], known.shapes[best], moment, thread, place, element[where])


def _brought(program: ir.Program) -> frozenset[str]:
    """The buffers that only ever receive unchanged elements of inputs, and constants."""
    stores = [s for k in program.kernels for s in ir.statements(k.body)]
    found = {b.name for k in program.kernels for b in k.buffers if b.role != "output"}
    while True:
        lost = {name for s in stores for name, whole in _puts(s, found) if not whole} & found
        if not lost:
            return frozenset(found)
        found -= lost


def _puts(stmt: ir.Stmt, brought: set[str]) -> Iterable[tuple[str, bool]]:
    """The buffer that a statement writes, and whether it copies unchanged from inputs or such buffers."""
    match stmt:
        case ir.Store(buffer=buffer, value=value):
            yield buffer.name, _unchanged(value, brought)
        case ir.Copy(target=target, source=source):
            yield target.name, source.name in brought
        case ir.Instruction(semantics, operands):
            sources = [b.name for name, b, _ in operands if name in semantics.reads]
            yield from (
                (b.name, semantics.kind == MOVE and brought.issuperset(sources))
                for name, b, _ in operands
                if name == semantics.writes
            )


def _unchanged(value: Expr, brought: set[str]) -> bool:
    match value:
        case Const():
            return True
        case ir.Load(buffer=buffer):
            return buffer.name in brought
        case Cast(operand, _):
            return _unchanged(operand, brought)
        case Select(_, then, otherwise):
            return _unchanged(then, brought) and _unchanged(otherwise, brought)
        case ir.Pack(items):
            return all(_unchanged(item, brought) for item in items)
        case ir.Shuffle(first, second, _):
            return _unchanged(first, brought) and _unchanged(second, brought)
        case _:
            return False


def _computed(computation: Computation, runs: tuple[Values, Values], arrays: tuple[Any, Any]) -> _Elements:
    """The elements of the outputs that the block stored, and of the intermediate tensors if there are few."""
    parts: list[_Part] = []
    outputs = {t.name: t for t in computation.outputs}
    precision = max(
        (2.0**-t.dtype.mantissa_bits for d in computation.definitions for t in d.tensors if t.dtype.is_float), default=0.0
    )
    for name, t in outputs.items():
        if all(name in run.stored for run in runs):
            (element, one), (again, other) = (run.stored[name] for run in runs)
            both, at, where = np.intersect1d(element, again, assume_unique=True, return_indices=True)
            parts.append(_Part(name, t.shape, both, _wide(one[at]), _wide(other[where])))
    between = [t for d in computation.definitions for t in d.tensors if t.name not in outputs]
    if between and sum(_points(d) for d in computation.definitions) <= POINTS:
        values = [Evaluator(computation, inputs(computation, (), a), errors=False).run() for a in arrays]
        parts += [_part(t.name, [v[t].value for v in values], np.arange(math.prod(t.shape))) for t in between]
    return _Elements(parts, ROUNDING * precision)


def _points(definition: Any) -> int:
    reduced = definition.reduction.axes if definition.reduction is not None else ()
    return math.prod(a.extent for a in (*definition.axes, *reduced))


@dataclasses.dataclass(frozen=True)
class _Part:
    """Elements of one tensor with their values in the two runs."""

    name: str
    shape: tuple[int, ...]
    element: Array
    one: Array
    other: Array


def _part(name: str, arrays: list[Array], element: Array) -> _Part:
    one, other = (_wide(a.reshape(-1)[element]) for a in arrays)
    return _Part(name, tuple(arrays[0].shape), element, one, other)


class _Elements:
    """Elements of tensors, searchable by their values in two runs. tolerance: relative error allowed for a value.

    A sum with cancellation has a larger relative error, so the tolerance is relative to at least the median magnitude of the tensor.
    """

    def __init__(self, parts: list[_Part], tolerance: float) -> None:
        self.names, self.shapes, self._tolerance = [p.name for p in parts], [p.shape for p in parts], tolerance
        self._sorted = [(p.one[order], p.other[order], p.element[order]) for p in parts for order in (np.argsort(p.one),)]
        self._least = [tolerance * max((_usual(p.one), _usual(p.other))) for p in parts]

    def find(self, one: Array, other: Array) -> tuple[Array, Array]:
        """For each pair of values, the tensor's number and its matching element; -1 if none or several match."""
        which, element, count = np.full(one.shape, -1), np.full(one.shape, -1), np.zeros(one.shape, np.int64)
        with np.errstate(invalid="ignore"):  # infinities match nothing
            for number, (sorted_values, least) in enumerate(zip(self._sorted, self._least, strict=True)):
                if sorted_values[0].size:
                    off = [np.maximum(self._tolerance * np.abs(v), least) for v in (one, other)]
                    found, times = _find(sorted_values, one, other, off)
                    which, element, count = (
                        np.where(found >= 0, number, which),
                        np.where(found >= 0, found, element),
                        count + times,
                    )
        return np.where(count == 1, which, -1), element


def _find(known: tuple[Array, Array, Array], one: Array, other: Array, off: list[Array]) -> tuple[Array, Array]:
    """For each pair of values, the matching element, or -1, and the number of matches; more than ALIKE count as none, as does NaN."""
    first, second, element = known
    low, high = np.searchsorted(first, one - off[0]), np.searchsorted(first, one + off[0], side="right")
    high = np.where(np.isnan(one) | np.isnan(other) | (high - low > ALIKE), low, high)
    at, count = np.full(one.shape, -1), np.zeros(one.shape, np.int64)
    for k in range(int((high - low).max(initial=0))):
        here = np.minimum(low + k, first.size - 1)
        fits = (low + k < high) & (np.abs(second[here] - other) <= off[1])
        at, count = np.where(fits, element[here], at), count + fits
    return at, count


def _usual(values: Array) -> float:
    """The median magnitude of some values."""
    finite = np.abs(values[np.isfinite(values)])
    return float(np.median(finite)) if finite.size else 0.0


def _wide(values: Array) -> Array:
    wide: Array = np.asarray(values).astype(np.float64)
    return wide
