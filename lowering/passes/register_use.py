"""Which elements of register buffers a part of a kernel reads and writes: the analysis behind the pass `fission`.

A traversal in program order keeps the elements that one thread has certainly written, and the conditions under which it wrote them. A
read that these do not cover is exposed: it may see the value from before the part. Every answer is conservative: `exposed` may name a
read that is covered, and `whole` names only buffers that are completely written.

    if c { x[0] = A[t] }; if c { y[0] = x[0] }     x is written, in part; nothing is exposed; y is written, in part
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from math import prod

import numpy as np
import numpy.typing as npt

from tilelang.core.expr import Const, Expr, Var, free
from tilelang.core.simplify import interval
from tilelang.lowering import ir
from tilelang.lowering.passes.dependence_test import Opaque, evaluate

POINTS = 1 << 14  # the most values of variables enumerated for one access; above it, nothing is known about the access
ROUNDS = 16  # assumed iterations of a loop of unknown length, for counting accesses

Elements = npt.NDArray[np.bool_]
Guards = frozenset[Expr]
Masks = Mapping[tuple[ir.Buffer, Guards], Elements]


@dataclasses.dataclass(slots=True)
class Use:
    """How a part of a kernel uses one buffer.

    exposed: it may read a value from before the part. whole: it certainly writes every element. accesses: the approximate number
    of elements accessed. pinned: an instruction uses it, so it must be in registers.
    """

    exposed: bool = False
    written: bool = False
    whole: bool = False
    pinned: bool = False
    accesses: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class _Access:
    """An access to `lanes` elements from `indices` on."""

    buffer: ir.Buffer
    indices: tuple[Expr, ...]
    lanes: int


@dataclasses.dataclass(frozen=True, slots=True)
class _Written:
    """A write whose indices contain variables. bound: (variable, n): it was done for the variable's first n values."""

    access: _Access
    guards: Guards
    bound: tuple[tuple[Var, int], ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class _State:
    """The elements certainly written at a point."""

    masks: Masks
    places: frozenset[_Written]


@dataclasses.dataclass(frozen=True, slots=True)
class _Scope:
    """The context of a statement: its conditions, its loops, and how many iterations these make together."""

    guards: Guards = frozenset()
    loops: tuple[Var, ...] = ()
    rounds: int = 1


def register_uses(stmt: ir.Stmt) -> dict[ir.Buffer, Use]:
    """How a statement, run by one thread, uses each register buffer."""
    walk = _Walk()
    end = walk.statement(stmt, _State({}, frozenset()), _Scope())
    for (buffer, guards), mask in end.masks.items():
        if not guards and mask.all():
            walk.uses[buffer].whole = True
    return walk.uses


class _Walk:
    def __init__(self) -> None:
        self.uses: dict[ir.Buffer, Use] = {}

    def statement(self, stmt: ir.Stmt, state: _State, scope: _Scope) -> _State:
        """The state after a statement, given the state before it."""
        for access in _loads(ir.expressions(stmt)):
            self.read(access, state, scope)
        match stmt:
            case ir.Seq(body):
                for child in body:
                    state = self.statement(child, state, scope)
                return _without(state, {s.var for s in body if isinstance(s, ir.Let)})
            case ir.For():
                return self.loop(stmt, state, scope)
            case ir.If():
                return self.condition(stmt, state, scope)
            case ir.Store(buffer, indices, value) if buffer.memory == "register":
                assert stmt.count is None, "before `vectorize`"
                return self.write(_Access(buffer, indices, ir.lanes(value)), state, scope)
            case ir.Instruction():
                return self.instruction(stmt, state, scope)
        return state

    def read(self, access: _Access, state: _State, scope: _Scope) -> None:
        use = self.uses.setdefault(access.buffer, Use())
        use.accesses += access.lanes * scope.rounds
        if access.buffer.role == "temporary" and use.written:  # a temporary is written under the same conditions as this read
            return
        have = np.zeros(access.buffer.elements, bool)
        for (buffer, guards), mask in state.masks.items():
            if buffer is access.buffer and guards <= scope.guards:
                have |= mask
        need = _elements(access, _ranges(access))
        use.exposed |= not (have.all() if need is None else have[need].all())

    def write(self, access: _Access, state: _State, scope: _Scope) -> _State:
        use = self.uses.setdefault(access.buffer, Use())
        use.accesses += access.lanes * scope.rounds
        use.written = True
        names = _names(access)
        mask = _elements(access, {}) if not names else None
        if mask is not None:
            return _marking(state, access.buffer, scope.guards, mask)
        return dataclasses.replace(state, places=state.places | {_Written(access, scope.guards)})

    def instruction(self, stmt: ir.Instruction, state: _State, scope: _Scope) -> _State:
        """An instruction of one thread; the elements of an operand in registers are consecutive."""
        touched = [(name, b, at) for name, b, at in stmt.operands if b.memory == "register"]
        places = []
        for name, buffer, indices in touched:
            held = stmt.semantics.fragment(name)
            assert held is not None, "registers are always held by a map"
            places.append((name, _Access(buffer, indices, held.slots)))
            self.uses.setdefault(buffer, Use()).pinned = True
        for name, access in places:
            if name in stmt.semantics.reads:
                self.read(access, state, scope)
        for name, access in places:
            if name == stmt.semantics.writes:
                state = self.write(access, state, scope)
        return state

    def loop(self, loop: ir.For, state: _State, scope: _Scope) -> _State:
        low, high = interval(loop.extent)
        rounds = max(1, high if high is not None and isinstance(loop.extent, Const) else min(high or ROUNDS, ROUNDS))
        inside = _Scope(scope.guards, (*scope.loops, loop.var), scope.rounds * rounds)
        after = self.statement(loop.body, state, inside)
        if low is None or low < 1:  # perhaps no iteration
            return state
        places, masks = set[_Written](), _without(after, {loop.var}).masks
        for w in after.places:
            if any(loop.var in free(g) for g in w.guards):
                continue
            if loop.var in _names(w.access) and all(v is not loop.var for v, _ in w.bound):
                w = dataclasses.replace(w, bound=(*w.bound, (loop.var, low)))  # the least number of iterations
            bound = {v: (0, n) for v, n in w.bound}
            mask = _elements(w.access, bound) if _names(w.access) <= bound.keys() else None
            if mask is None:
                places.add(w)
            else:
                masks = _marking(_State(masks, frozenset()), w.access.buffer, w.guards, mask).masks
        return _State(masks, frozenset(places))

    def condition(self, stmt: ir.If, state: _State, scope: _Scope) -> _State:
        """Both branches: writes of one branch count under its condition, writes of both branches count unconditionally."""
        yes, no = stmt.condition, ~stmt.condition
        after = self.statement(stmt.then, state, dataclasses.replace(scope, guards=scope.guards | {yes}))
        if stmt.otherwise is not None:
            other = self.statement(stmt.otherwise, state, dataclasses.replace(scope, guards=scope.guards | {no}))
            after = _State(_united(after.masks, other.masks), after.places | other.places)
            for (buffer, guards), mask in list(after.masks.items()):
                twin = after.masks.get((buffer, guards - {yes} | {no}))
                if yes in guards and twin is not None:
                    after = _marking(after, buffer, guards - {yes}, mask & twin)
        if not ir.loads(stmt.condition):
            return after
        masks = {key: mask for key, mask in after.masks.items() if not key[1] & {yes, no} or key in state.masks}
        return _State(masks, frozenset(w for w in after.places if not w.guards & {yes, no} or w in state.places))


# ---------------------------------------------------------------- the elements written


def _marking(state: _State, buffer: ir.Buffer, guards: Guards, mask: Elements) -> _State:
    """The state with more elements marked as written."""
    key = buffer, guards
    known = state.masks.get(key)
    return _State({**state.masks, key: mask if known is None else known | mask}, state.places)


def _united(first: Masks, second: Masks) -> Masks:
    return {**first, **{key: mask | first[key] if key in first else mask for key, mask in second.items()}}


def _without(state: _State, names: set[Var]) -> _State:
    """The state after some names go out of scope: everything stated in terms of them is forgotten."""
    if not names:
        return state

    def stays(guards: Guards) -> bool:
        return not any(free(g) & names for g in guards)

    places = (w for w in state.places if stays(w.guards) and not _names(w.access) & names)
    return _State({key: mask for key, mask in state.masks.items() if stays(key[1])}, frozenset(places))


# ---------------------------------------------------------------- accesses


def _loads(expressions: Iterable[Expr]) -> Iterator[_Access]:
    for e in expressions:
        for load in ir.loads(e):
            if load.buffer.memory == "register":
                yield _Access(load.buffer, load.indices, load.lanes)


def _names(access: _Access) -> frozenset[Var]:
    return frozenset().union(*map(free, access.indices))


def _ranges(access: _Access) -> dict[Var, tuple[int, int]]:
    """The first value and the number of values of every variable in an access: loop variables and the thread."""
    found = {}
    for v in _names(access):
        assert v.lower is not None and v.upper is not None, f"{v.name} has ends"
        found[v] = v.lower, v.upper - v.lower + 1
    return found


def _elements(access: _Access, ranges: Mapping[Var, tuple[int, int]]) -> Elements | None:
    """The elements accessed over all values of the variables; None if unknown."""
    if prod(n for _, n in ranges.values()) > POINTS:
        return None
    axes = np.meshgrid(*(np.arange(low, low + n) for low, n in ranges.values()), indexing="ij", sparse=True)
    values: dict[Expr, npt.NDArray[np.int64]] = dict(zip(ranges, axes, strict=True))
    mask = np.zeros(access.buffer.elements, bool)
    flat = np.zeros((), np.int64)
    try:
        for i, extent, stride in zip(access.indices, access.buffer.shape, access.buffer.strides, strict=True):
            at = evaluate(i, values)
            if at.size and (int(at.min()) < 0 or int(at.max()) >= extent):
                return None
            flat = flat + at * stride
    except Opaque:
        return None
    places = np.unique(flat)[:, None] + np.arange(access.lanes)
    mask[places[places < access.buffer.elements]] = True
    return mask
