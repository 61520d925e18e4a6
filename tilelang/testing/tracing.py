"""Compares a simulated kernel with the naive reading of its schedule: which thread wrote and read which element.

For every kernel whose steps are interpreted, it checks:

- Every element of an output, and of a workspace (for `compute ... in global` and partial sums), is written by its owner. Another thread
  may write it only as a lane of a vector that was shifted to fit; if the owner writes it, too, both values must be equal.
- A thread reads from global memory only what the steps allow: the region of a load by the threads that copy it, everything else by the
  threads that compute the points. Points past the end of a tile count if they are inside the tensor, although they are not stored.
- A block reads what its points need, unless the value has no effect on what the block writes.
- A thread finds in shared memory the values that its points, or its part of a copy, read there, and no stage writes other values there.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tilelang.computations.arguments import inputs
from tilelang.computations.computation import Tensor
from tilelang.core.expr import Const, Expr, Read, Reduce, Select
from tilelang.errors import TileLangError
from tilelang.lowering.simulator import simulate
from tilelang.lowering.simulator.memory_model import Watched
from tilelang.profiles.profile import Profile
from tilelang.schedules.schedule import Schedule
from tilelang.semantics.evaluator import Evaluator
from tilelang.testing import naive
from tilelang.testing.kernels import Claim, Kernel
from tilelang.testing.reach import NotRead

THREAD_LEVELS = ("warpgroup", "warp", "thread")
Array = Any
tally: Counter[str] = Counter()


class Trace:
    """A watcher of `simulate.run` that records which threads wrote and read each element of global and shared memory, and its value."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str, str, bool], list[Array]] = defaultdict(list)
        self._written: tuple[Any, Any, list[Array], Array] | None = None
        self.reported = ""  # what the simulator reports
        self.outputs: Mapping[str, Array] = {}

    def __call__(self, seen: Watched) -> None:
        self._land()
        batch, thread = seen.memory.batch, seen.touch.thread
        found = self._seen[batch.kernel.name, seen.buffer.memory, seen.buffer.name, seen.writes]
        code = np.concatenate((seen.touch.element, batch.block[thread], batch.thread[thread])).reshape(3, -1)
        storage = seen.memory.storage[seen.buffer.name]
        if seen.writes:
            self._written = storage, seen.touch.address.copy(), found, code
        else:
            found.append((code, storage.data[seen.touch.address]))

    def _land(self) -> None:
        """Processes the previous write, because writes are announced before they happen."""
        if self._written is not None:
            storage, address, found, code = self._written
            found.append((code, storage.data[address]))
            self._written = None

    def kernel(self, buffers: Sequence[str], but: Collection[str] = ()) -> str | None:
        """The last kernel that writes one of these global buffers. but: except these."""
        mine = (k for k, memory, b, writes in reversed(self._seen) if b in buffers and memory == "global" and writes)
        return next((k for k in mine if k not in but), None)

    def written(self, kernel: str) -> set[str]:
        """The global buffers that a kernel writes."""
        return {b for k, memory, b, writes in self._seen if k == kernel and memory == "global" and writes}

    def touched(self, kernel: str, memory: str, name: str, writes: bool) -> tuple[Array, Array]:
        """(element, block, thread) in columns, and the values, each once. name: of a tensor, for shared memory."""
        self._land()
        found = []
        for (k, m, b, w), seen in self._seen.items():
            if (k, m, w) == (kernel, memory, writes) and (b == name if memory == "global" else _holds(b, name)):
                found += seen
        if not found:
            return np.zeros((3, 0), np.int64), np.zeros(0)
        code, values = np.concatenate([c for c, _ in found], axis=1), np.concatenate([v for _, v in found])
        return code, values

    def same(self, other: Trace, places: Collection[str] | None = None) -> bool:
        """Whether in both traces the same threads touch the same elements, and read or write the same values. places: only global
        memory, and shared memory with tensors of these names."""
        return self._all(places) == other._all(places)

    def _all(self, places: Collection[str] | None) -> dict[Any, Counter[bytes]]:
        self._land()
        found = {}
        for key, seen in self._seen.items():
            if places is None or key[1] == "global" or any(_holds(key[2], name) for name in places):
                code, values = np.concatenate([c for c, _ in seen], axis=1), np.concatenate([v for _, v in seen])
                bits = np.ascontiguousarray(values).view(np.uint8).reshape(values.size, -1)
                rows = np.concatenate([np.ascontiguousarray(code.T.astype(np.int64)).view(np.uint8), bits], axis=1)
                found[key] = Counter(map(bytes, np.unique(rows, axis=0)))
        return found


def traced(program: Any, given: Mapping[str, Any]) -> Trace:
    """The trace of a program. given: inputs by name."""
    trace = Trace()
    held = {
        b.name: np.ascontiguousarray(given[b.name], b.dtype.numpy).reshape(b.shape) for b in program.buffers if b.role == "input"
    }
    try:
        report = simulate.run(program, held, watch=trace, costs=False)
        trace.reported, trace.outputs = str(report) if report.counts else "", report.outputs
    except TileLangError as fault:
        trace.reported = str(fault)
    return trace


def _holds(buffer: str, name: str) -> bool:
    """Whether a shared buffer holds a tensor, by its name, which may have a number."""
    return buffer == f"{name}_shared" or buffer.startswith(f"{name}_shared_") and buffer.removeprefix(f"{name}_shared_").isdigit()


class Reading:
    """The naive reading of a schedule with data. Raises NotRead."""

    def __init__(self, schedule: Schedule, profile: Profile, given: Mapping[str, Any]) -> None:
        self.computation, self.given = schedule.computation, given
        self.evaluated = self._evaluate(given)
        self.values = {t: np.asarray(a.value) for t, a in self.evaluated.items()}
        every = [e for d in self.computation.definitions for v in d.values for e in v.walk()]
        self.fills = np.array(
            [0, 1, *(float(np.asarray(e.value, e.dtype.numpy)) for e in every if isinstance(e, Const))]
        )  # the value that a move writes outside its region
        levels = {f.name: f.threads or 1 for f in profile.levels if f.name in THREAD_LEVELS}
        self.kernels = naive.read(schedule.computation, schedule.steps, levels, self.values)

    def _evaluate(self, given: Mapping[str, Any], made: Mapping[Tensor, Array] | None = None) -> dict[Tensor, Any]:
        """The value of every tensor. made: tensors that are not evaluated."""
        return dict(Evaluator(self.computation, {**inputs(self.computation, (), given), **(made or {})}, errors=True).run())

    def faults(self, trace: Trace) -> list[str]:
        """Where a simulated program contradicts the steps."""
        found, done = list[str](), set[str]()
        for known in reversed(self.kernels):  # a later kernel may overwrite the results of an earlier one
            name = trace.kernel([buffer for memory, buffer in known.writes if memory == "global"], but=done)
            if name is None:
                found += [] if all(not math.prod(t.shape) for t in known.makes) else [f"nobody writes {known.makes[0].name}"]
                continue
            done.add(name)
            found += [f"{name}: {f}" for f in (*self._writes(known, name, trace), *self._reads(known, name, trace),
                                              *self._needs(known, name, trace), *self._contents(known, name, trace))]  # fmt: skip
        mine = {t.name for known in self.kernels if not known.parts for t in known.makes}
        for t in self.computation.outputs:
            writer = trace.kernel([t.name])
            if (
                t.name not in mine
                and writer
                and np.unique(trace.touched(writer, "global", t.name, True)[0][0]).size < math.prod(t.shape)
            ):
                found.append(f"elements of {t.name} are not written")
        return found

    def _writes(self, known: Kernel, name: str, trace: Trace) -> Iterator[str]:
        for buffer in trace.written(name) - {b for m, b in known.writes if m == "global"}:
            yield f"writes {buffer}, which no step says"
        for (memory, buffer), claims in known.writes.items():
            if memory != "global":
                continue
            code, values = trace.touched(name, memory, buffer, True)
            own = covered(claims, code)
            other = np.flatnonzero(~own)
            again = covered(known.again.get((memory, buffer), []), code[:, other])
            yield from access_text("is written by", buffer, code[:, other[~again]])
            bits = {int(e): v.tobytes() for e, v in zip(code[0][own], values[own], strict=True)}
            wrong = [p for p in other[again] if bits.get(int(code[0][p]), values[p].tobytes()) != values[p].tobytes()]
            yield from access_text("is not written as its owner writes it by", buffer, code[:, wrong])
            missing = np.setdiff1d(np.concatenate([c.element for c in claims]), code[0])
            if missing.size:
                yield f"{missing.size} elements of {buffer} are not written"

    def _reads(self, known: Kernel, name: str, trace: Trace) -> Iterator[str]:
        names = {n for m, n in known.reads if m == "unread"}
        for t in self._tensors():
            if t.name not in names:
                code, _ = trace.touched(name, "global", t.name, False)
                own = [*known.reads.get(("global", t.name), []), *known.writes.get(("global", t.name), [])]
                if t in self._restricting():  # all threads of a block read the end of their common loop
                    own += [Claim(c.element, c.block, c.first * 0, 1 << 16) for c in own]
                yield from access_text("is read without need by", t.name, code[:, ~covered(own, code) & _works(known, code)])

    def _tensors(self) -> list[Tensor]:
        return [*self.computation.inputs, *(t for d in self.computation.definitions for t in d.tensors)]

    def _needs(self, known: Kernel, name: str, trace: Trace) -> Iterator[str]:
        for t in self.computation.inputs:
            claims = known.needs.get(("global", t.name), [])
            if not claims or ("unread", t.name) in known.reads or known.parts and t in self._restricting():
                continue  # the reference does not show whether a condition on data restricts a block's part of a reduction
            code, _ = trace.touched(name, "global", t.name, False)
            size = math.prod(t.shape)
            need = np.unique(np.concatenate([c.block * size + c.element for c in claims]))
            did = code[1] * size + code[0]
            # If a vector was shifted, the previous block reads elements of the next one.
            missing = need[~np.isin(need, did)] if not known.again else need[~np.isin(need % size, did % size)]
            missing = self._with_effect(known, t, missing // max(1, size), missing % max(1, size))
            if missing.size:
                yield f"{missing.size} elements of {t.name} are not read by the blocks that need them"

    def _expressions(self) -> list[Expr]:
        """All expressions in the definitions' values, including nested ones."""
        return [e for d in self.computation.definitions for v in d.values for e in v.walk()]

    def _restricting(self) -> set[Tensor]:
        """The tensors whose values restrict the points of a reduction, or select what is reduced."""
        conditions = [e.condition for e in self._expressions() if isinstance(e, (Reduce, Select)) and e.condition is not None]
        return {e.tensor for c in conditions for e in c.walk() if isinstance(e, Read)}

    def _with_effect(self, known: Kernel, tensor: Tensor, block: Array, element: Array) -> Array:
        """The elements whose values affect what their block writes, found by trying other values."""
        found = [element[:0]]
        for b in np.unique(block):
            mine = element[block == b]
            found += [mine] if any(self._differs(known, tensor, mine, b, data) for data in self._data()) else []
        return np.concatenate(found)

    def _differs(self, known: Kernel, tensor: Tensor, mine: Array, block: int, data: Mapping[str, Array]) -> bool:
        """Whether other values of some elements (greater, less, zero) change what a block writes. Other kernels read the old values."""
        before = self.evaluated if data is self.given else self._evaluate(data)
        made = {t: np.asarray(a.value) for t, a in before.items() if t.name in known.given and t.definition is not None}
        for sign in (1, -1, 0):
            other = {n: np.array(a) for n, a in data.items()}
            flat = other[tensor.name].reshape(-1)
            flat[mine] = _another(tensor, flat[mine], sign)
            now = self._evaluate(other, made)
            for t in known.makes:
                x, y = (np.asarray(values[t].value).reshape(-1) for values in (now, before))
                changed = (x != y) & ((x == x) | (y == y))
                elements = [c.element[c.block == block] for c in known.writes.get(("global", t.name), [])]
                if changed[np.concatenate(elements)].any() if elements else changed.any():
                    return True
        return False

    def _data(self) -> Iterator[Mapping[str, Array]]:
        """The inputs; also ones and zeros in their place, unless they determine reads."""
        yield self.given
        every = self._expressions()
        decide = [e.condition for e in every if isinstance(e, Reduce) and e.condition is not None]
        decide += [e.condition for e in every if isinstance(e, Select) and any(_reads(b) for b in (e.then, e.otherwise))]
        decide += [i for e in every if isinstance(e, Read) for i in e.indices]
        if not any(_reads(e) for e in decide):
            for alike in (np.ones_like, np.zeros_like):
                yield {t.name: self.given[t.name] if t.range else alike(self.given[t.name]) for t in self.computation.inputs}

    def _contents(self, known: Kernel, name: str, trace: Trace) -> Iterator[str]:
        """Whether threads find the right values in shared memory."""
        for kind, claims, writes in (("finds", known.reads, False), ("writes", known.writes, True)):
            for (memory, n), mine in claims.items():
                if memory != "shared" or n in known.partial:
                    continue
                tensor = self.computation.tensor(n)
                code, values = trace.touched(name, "shared", n, writes)
                wrong = ~self._held(mine, tensor, code, values) & _works(known, code)
                yield from access_text(f"{kind} in shared memory what is not its own", n, code[:, wrong])
        for tensor in self.computation.inputs:
            for c in known.needs.get(("shared", tensor.name), []):
                missing = self._unfound(c, tensor, *trace.touched(name, "shared", tensor.name, False))
                if self._with_effect(known, tensor, c.block[missing], c.element[missing]).size:
                    yield f"units do not find {missing.size} elements of {tensor.name} in shared memory that they need"

    def _unfound(self, claim: Claim, tensor: Tensor, code: Array, values: Array) -> Array:
        """The elements that units need, but whose value none of their threads has found."""
        unit, has = unit_of(claim, code)
        value = self.values[tensor].reshape(-1).astype(np.float64)
        every = np.unique(value[np.isfinite(value)])

        def pairs(unit: Array, value: Array) -> tuple[Array, Array]:
            """A unit and a value as one number, and whether it is the value of any element."""
            at = np.searchsorted(every, value)
            return unit * (every.size + 1) + at, np.isin(value, every)

        found, known = pairs(unit, np.asarray(values, np.float64))
        need, finite = pairs(claim.block * 65536 + claim.first, value[claim.element])
        return np.flatnonzero(finite & ~np.isin(need, found[has & known]))

    def _held(self, claims: Sequence[Claim], tensor: Tensor, code: Array, values: Array) -> Array:
        """The values that are those of an element that the thread may touch, within the error bounds."""
        held = self.evaluated[tensor]
        value = np.asarray(held.value, np.float64).reshape(-1)
        error = np.zeros(value.size) if held.error is None else np.broadcast_to(held.error, held.value.shape).reshape(-1)
        found = np.asarray(values, np.float64)
        ok = ~np.isfinite(found) | np.isin(found, self.fills)
        every = np.unique(value)
        for c in claims:
            unit, has = unit_of(c, code)
            left = np.flatnonzero(has & ~ok & np.isin(unit, c.block * 65536 + c.first))
            if not left.size:
                continue
            mine = c.block * 65536 + c.first
            pairs = mine * every.size + np.searchsorted(every, value[c.element])  # a unit, and one of its values
            order = np.argsort(pairs)
            pairs, element = pairs[order], c.element[order]
            units, starts = np.unique(mine[order], return_index=True)
            widest = np.fmax.reduceat(np.nan_to_num(error[element], posinf=np.inf), starts)
            wild = np.logical_or.reduceat(~np.isfinite(value[element]), starts)
            u = np.searchsorted(units, unit[left])
            ok[left] |= wild[u]
            behind = np.searchsorted(pairs, unit[left] * every.size + np.searchsorted(every, found[left]))
            for at in (np.maximum(behind - 1, 0), np.minimum(behind, pairs.size - 1)):
                own = pairs[at] // every.size == unit[left]
                ok[left] |= own & (np.abs(every[pairs[at] % every.size] - found[left]) <= widest[u])
        return ok


def _reads(e: Expr) -> bool:
    return any(isinstance(n, Read) for n in e.walk())


def _another(tensor: Tensor, old: Array, sign: int) -> Array:
    """Values that differ from the old ones: greater, less, or zero."""
    if tensor.range is not None:
        low, high = tensor.range
        return low + (old - low + (1 if sign > 0 else high - low - 1)) % (high - low)
    if old.dtype.kind == "b":
        return ~old if sign else np.zeros_like(old)
    more = np.asarray(sign * (3 if old.dtype.kind in "iu" else 1000)).astype(old.dtype)
    return (old + more).astype(old.dtype) if sign else np.zeros_like(old)


def unit_of(claim: Claim, code: Array) -> tuple[Array, Array]:
    """The unit of a claim to which each (element, block, thread) belongs, as one number, and whether there is one."""
    starts = np.unique(claim.first)
    if not starts.size:
        return np.zeros(code.shape[1], np.int64), np.zeros(code.shape[1], bool)
    at = np.searchsorted(starts, code[2], side="right") - 1
    first = starts[np.maximum(at, 0)]
    return code[1] * 65536 + first, (at >= 0) & (code[2] < first + claim.width)


def _works(known: Kernel, code: Array) -> Array:
    """Whether the block of each (element, block, thread) has a tile. Blocks that only complete a cluster may read and move anything."""
    found = [c.block for claims in (*known.writes.values(), *known.reads.values()) for c in claims]
    return np.isin(code[1], np.concatenate([np.zeros(0, np.int64), *found]))


def covered(claims: Sequence[Claim], code: Array) -> Array:
    """Which of (element, block, thread) are claimed. Units of the same width never overlap partially."""
    found = np.zeros(code.shape[1], bool)
    for c in claims:
        unit, has = unit_of(c, code)
        size = int(max(c.element.max(initial=0), code[0].max(initial=0))) + 1
        found |= has & np.isin(unit * size + code[0], (c.block * 65536 + c.first) * size + c.element)
    return found


def access_text(what: str, name: str, code: Array) -> Iterator[str]:
    if code.shape[1]:
        e, b, t = (int(n) for n in code[:, 0])
        yield f"element {e} of {name} {what} thread {t} of block {b}; {code.shape[1]} such accesses"


def reading(schedule: Schedule, profile: Profile, given: Mapping[str, Any]) -> Reading | None:
    """The naive reading; None if it does not cover a step. `tally` counts both."""
    try:
        made = Reading(schedule, profile, given)
    except NotRead as unknown:
        tally[f"not read: {unknown}"] += 1
        return None
    tally["read"] += 1
    tally.update(f"not read: {what}" for k in made.kernels for what in k.unread)
    return made
