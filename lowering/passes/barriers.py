"""Inserts every barrier that a kernel needs, and no other.

Needs: nothing; the builder need not place any barrier, and shared buffers may have offsets (`allocate_shared`) or none. Guarantees:
between two accesses of one element by different threads of a block, one of them a write, there is a barrier that all threads reach;
without any one of the inserted barriers, such a pair would exist. Each barrier names the pairs that need it. One line before and after:

    for k { As[thread] = A[...]; ... = As[255 - thread] }
    for k { barrier; As[thread] = A[...]; barrier; ... = As[255 - thread] }

How: a traversal of the tree in program order keeps the pending accesses, those that no barrier has followed yet. If a statement
conflicts with one of them, a barrier goes before it, outside loops that do not need one per iteration. Along the back-edge of a loop,
accesses of the previous iteration (its variable less one) are pending, or of any earlier iteration if no barrier intervenes. A
statement whose control depends on the thread is treated as one; if it needed a barrier inside, `divergence` refuses it. Finally, each
barrier is removed if the traversal finds no conflict without it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tilelang.core.expr import INDEX, Const, Expr, Var, substitute
from tilelang.core.simplify import interval, simplify
from tilelang.errors import Span
from tilelang.instructions.instruction import AT_ONCE
from tilelang.lowering import ir
from tilelang.lowering.passes.dependence_test import Access, Prover
from tilelang.lowering.passes.divergence import Path, check_uniform, diverges, unique
from tilelang.lowering.passes.outstanding_accesses import (
    State,
    any_iteration_back,
    crossing,
    finished,
    one_iteration_back,
    ordered,
    outliving,
    survivor,
)

ROUNDS = 12  # rounds of the fixpoint over one loop, apart from those in which copies age until a wait; each may add a barrier
MOST_TOLD = 32  # rounds that track the iteration of each copy; later rounds treat copies as of any earlier iteration


class Unsafe(Exception):
    """The traversal found a conflict that no barrier separates."""


@dataclasses.dataclass(frozen=True, slots=True)
class Scope:
    """The context of a statement: the values of names, the enclosing conditions, the variables not shared with other accesses,
    the current step."""

    names: Mapping[Var, Expr]
    guards: tuple[Expr, ...] = ()
    bound: frozenset[Var] = frozenset()
    span: Span | None = None

    def value(self, e: Expr) -> Expr:
        found: Expr = substitute(e, self.names) if self.names else e
        return found

    def at(self, stmt: ir.Stmt) -> Scope:
        span = getattr(stmt, "span", None)
        return Scope(self.names, self.guards, self.bound, span) if span is not None else self

    def naming(self, var: Var, value: Expr) -> Scope:
        return Scope({**self.names, var: value}, self.guards, self.bound, self.span)


def insert_barriers(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with the barriers it needs.

    Raises Refusal `barrier-in-divergent-control` if threads would have to synchronize inside control flow that not all of them
    reach.
    """
    if kernel.roles:  # roles do not synchronize with barriers: phases order the data they share
        return kernel.with_roles(insert_barriers(alone).body for alone in kernel.alone)
    if kernel.threads == 1:
        return kernel

    # Nested sequences are opened, so that their statements share barriers and conditions with what follows them.
    kernel = kernel.replace(body=ir.opened(kernel.body))
    prover, watched = Prover(kernel.threads), _watched(kernel)

    def needs(stmt: ir.Stmt, names: Mapping[Var, Expr], path: Path) -> bool:
        """Whether a statement, if all threads executed it, would need a barrier inside."""
        alone = Walk(kernel, prover, watched, uniform=True)
        alone.stmt(stmt, path, Scope(names), State())  # with the names of the enclosing traversal
        return bool(alone.sites)

    check_uniform(kernel.body, needs, {})
    walk = Walk(kernel, prover, watched)
    walk.run()
    parts = _rebuilt(walk.kernel.body, (), walk.sites)
    return walk.kernel.replace(body=ir.seq(*parts))


def missing_barrier(kernel: ir.Kernel) -> bool:
    """Whether two conflicting accesses of a kernel are still unordered despite its barriers; checks the result of `insert_barriers`."""
    if kernel.roles:
        return any(map(missing_barrier, kernel.alone))
    if kernel.threads == 1:
        return False
    walk = Walk(kernel, Prover(kernel.threads), _watched(kernel))
    walk.frozen = True
    try:
        walk.stmt(kernel.body, (), Scope({}), State())
    except Unsafe:
        return True
    return False


@dataclasses.dataclass(slots=True)
class Site:
    """A barrier before the statement at a path: the memories that it orders, and the reasons."""

    memory: dict[str, None] = dataclasses.field(default_factory=dict)
    reasons: dict[str, None] = dataclasses.field(default_factory=dict)


class Walk:
    """A traversal that tracks the pending accesses at each point, and collects the barriers that are needed.

    sites only grows during a traversal; if `frozen`, a missing barrier raises Unsafe instead. uniform: treat divergent control
    flow as if every thread executed it, to see which barriers it would need.
    """

    def __init__(self, kernel: ir.Kernel, prover: Prover, watched: frozenset[str], uniform: bool = False) -> None:
        self.kernel, self.prover, self.watched, self.uniform, self.frozen = kernel, prover, watched, uniform, False
        self.sites: dict[Path, Site] = {}
        waits = (s.pending for s in ir.statements(kernel.body) if isinstance(s, ir.Wait) and not s.queue)
        self.oldest = 1 + max(waits, default=0)  # no wait distinguishes older groups
        self._known: dict[Any, list[tuple[bool, Access]]] = {}
        self._quiet: dict[Any, bool] = {}

    def run(self) -> None:
        """Collects the sites, then removes those that the others make unnecessary, the innermost first."""
        self.stmt(self.kernel.body, (), Scope({}), State())
        self.frozen = True
        for path in sorted(self.sites, key=lambda p: (-len(p), tuple(-x for x in p))):
            kept = self.sites.pop(path)
            try:
                self.stmt(self.kernel.body, (), Scope({}), State())
            except Unsafe:
                self.sites[path] = kept

    # -------------------------------------------------- the traversal

    def stmt(self, stmt: ir.Stmt, path: Path, scope: Scope, state: State) -> State:
        """The state after a statement; may add barriers before it or inside."""
        scope = scope.at(stmt)
        match stmt:
            case ir.Seq(body=body):
                for i, child in enumerate(body):
                    state = self.stmt(child, (*path, i), scope, state)
                    if isinstance(child, ir.Let):
                        scope = scope.naming(child.var, scope.value(child.value))
                return state
            case ir.Barrier(memory=memory):
                return ordered(state, memory)
            case ir.For() if not self._whole(stmt, path, scope):
                return self._loop(stmt, path, scope, state)
            case ir.If() if not self._whole(stmt, path, scope):
                reads = list(self._reads(stmt.condition, scope))
                state = self._arrive(path, state, reads).adding(reads)
                condition = scope.value(stmt.condition)
                # A barrier in one branch would not order what follows, so it goes before the statement, as for a loop.
                _, pairs = self._probe(stmt.then, (*path, 0), _guarded(scope, condition), state)
                if stmt.otherwise is not None:
                    pairs += self._probe(stmt.otherwise, (*path, 1), _guarded(scope, ~condition), state)[1]
                state = self._barrier(path, state, pairs)
                then = self.stmt(stmt.then, (*path, 0), _guarded(scope, condition), state)
                if stmt.otherwise is None:
                    return then.parted(condition, state)
                # Threads in different branches do not synchronize: for one branch, the other's accesses are pending.
                start = state.union(then) if diverges(condition) else state
                return then.parted(condition, self.stmt(stmt.otherwise, (*path, 1), _guarded(scope, ~condition), start))
            case _:
                accesses = self._all(stmt, path, scope)
                state = self._arrive(path, state, [a for _, a in accesses])
                return self._performed(stmt, accesses, state)

    def _whole(self, stmt: ir.For | ir.If, path: Path, scope: Scope) -> bool:
        """Whether a statement is treated as one access: no barrier may be inside it, or none is needed there."""
        if self._is_quiet(stmt, path, scope):
            return True
        if isinstance(stmt, ir.For):
            return not self.uniform and (stmt.kind == "vector" or diverges(scope.value(stmt.extent)))
        return not self.uniform and diverges(scope.value(stmt.condition))

    def _is_quiet(self, stmt: ir.Stmt, path: Path, scope: Scope) -> bool:
        """Whether no two accesses inside a statement conflict, in whatever order they run."""
        key = (path, scope.guards, tuple(scope.names.items()))
        found = self._quiet.get(key)
        if found is None:
            ordering = (ir.Barrier, ir.Copy, ir.Commit, ir.Wait)
            accesses = [a for _, a in self._all(stmt, path, scope)]
            found = not any(isinstance(s, ordering) for s in ir.statements(stmt)) and not any(
                self.prover.conflict(a, b) for i, a in enumerate(accesses) for b in accesses[i:]
            )
            self._quiet[key] = found
        return found

    def _all(self, stmt: ir.Stmt, path: Path, scope: Scope) -> list[tuple[bool, Access]]:
        """The cached result of `_accesses`."""
        key = (path, scope.guards, scope.bound, tuple(scope.names.items()))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = list(self._accesses(stmt, scope, path))
        return found

    def _performed(self, stmt: ir.Stmt, accesses: list[tuple[bool, Access]], state: State) -> State:
        """The state after a statement's accesses, its commits and its waits."""
        state = state.adding(a for asynchronous, a in accesses if not asynchronous)
        inflight = {**state.inflight, **{a: 0 for asynchronous, a in accesses if asynchronous}}
        pending = dict(state.pending)
        for inner in ir.statements(stmt):
            match inner:
                case ir.Commit(queue=""):
                    inflight = {a: min(age + 1, self.oldest) for a, age in inflight.items()}
                case ir.Wait(pending=count, queue=""):
                    # Any copy in flight may have completed; those older than `count` groups certainly have.
                    pending.update(dict.fromkeys(inflight))
                    inflight = {a: age for a, age in inflight.items() if age <= count}
        return State(pending, inflight)

    def _arrive(self, path: Path, state: State, newer: list[Access]) -> State:
        """The state before a statement starts: after a barrier, if its accesses conflict with pending ones."""
        if path in self.sites:
            state = ordered(state, self.sites[path].memory)
        return self._barrier(path, state, self._met(newer, state))

    def _barrier(self, path: Path, state: State, pairs: list[tuple[Access, Access]]) -> State:
        if not pairs:
            return state
        if self.frozen:
            raise Unsafe
        site = self.sites.setdefault(path, Site())
        for older, newer in pairs:
            site.memory.update(dict.fromkeys((older.buffer.memory, newer.buffer.memory)))
            site.reasons[f"{older}, then {newer}"] = None
        return ordered(state, site.memory)

    # -------------------------------------------------- loops

    def _loop(self, loop: ir.For, path: Path, scope: Scope, state: State) -> State:
        """A loop that all threads run together: first the conflicts among its iterations, then those with earlier accesses."""
        low, high = interval(scope.value(loop.extent))
        reads = list(self._reads(loop.extent, scope))
        state = self._arrive(path, state, reads).adding(reads)
        var = Var(unique(loop.var, path), INDEX, 0, None if high is None else high - 1)
        inside = dataclasses.replace(scope.naming(loop.var, var), span=scope.span)
        after = self._rounds(loop, path, inside, var, state)
        left, pairs = self._probe(loop.body, (*path, 0), inside, state)
        if pairs and high is not None:
            # If a barrier in the body orders all earlier accesses, only the first iteration can conflict with them.
            first, fewer = self._probe(loop.body, (*path, 0), scope.naming(loop.var, Const(0, INDEX)), state)
            if not fewer and not first.pending:
                left, pairs = first, []
        state = self._barrier(path, state, pairs)
        if pairs:
            left, _ = self._probe(loop.body, (*path, 0), inside, state)
        left = outliving(left, var, low == high)
        done = finished(after, state, var, low == high, _waits(loop))
        if low is None or low <= 0:
            return done.union(state)
        return State({**left.pending, **done.pending}, done.inflight)

    def _rounds(self, loop: ir.For, path: Path, inside: Scope, var: Var, before: State) -> State:
        """The state after one iteration that any number of iterations may precede, with nothing pending from before the loop."""
        incoming = State({}, before.inflight)
        if var.upper == 0:  # one iteration: no back-edge
            return self.stmt(loop.body, (*path, 0), inside, incoming)
        waits, told = _waits(loop), ROUNDS // 2 + min(self.oldest, MOST_TOLD)
        for attempt in range(told + ROUNDS // 2 + self.oldest):
            after = self.stmt(loop.body, (*path, 0), inside, incoming)
            earlier: dict[Access, None] = {}
            alive = (survivor(a, var, crossing(var)) for a in after.pending)
            for a in (a for a in alive if a is not None):  # pending after a whole iteration: of any earlier one
                moved = (
                    one_iteration_back(a, var, loop) if a.round == 0 else any_iteration_back(a, var, loop) if a.round == 1 else a
                )
                earlier[moved] = None
            inflight = dict(before.inflight)
            for a, age in after.inflight.items() if waits else ():
                back = one_iteration_back if attempt < told else any_iteration_back
                moved = a if a in before.inflight or a.round == 2 else back(a, var, loop)
                inflight[moved] = min(age, inflight.get(moved, age))
            following = State(earlier, inflight)
            if following == incoming:
                return after
            incoming = following
        raise AssertionError(f"the accesses of the loop over `{loop.var.name}` do not settle")

    def _probe(self, stmt: ir.Stmt, path: Path, scope: Scope, state: State) -> tuple[State, list[tuple[Access, Access]]]:
        """The accesses still pending after a statement with its known barriers, and the conflicts of pending accesses with
        those inside it."""
        scope = scope.at(stmt)
        pairs: list[tuple[Access, Access]] = []
        if path in self.sites and not isinstance(stmt, ir.Seq):
            state = ordered(state, self.sites[path].memory)
        if not state.pending:
            return state, pairs
        match stmt:
            case ir.Seq(body=body):
                for i, child in enumerate(body):
                    state, found = self._probe(child, (*path, i), scope, state)
                    pairs += found
                    if isinstance(child, ir.Let):
                        scope = scope.naming(child.var, scope.value(child.value))
                return state, pairs
            case ir.Barrier(memory=memory):
                return ordered(state, memory), pairs
            case ir.For(var=var, extent=extent, body=body) if not self._whole(stmt, path, scope):
                pairs += self._met(self._reads(extent, scope), state)
                low, high = interval(scope.value(extent))
                if high is not None and high <= 0:
                    return state, pairs
                own = Var(unique(var, path), INDEX, 0, None if high is None else high - 1)
                inner = dataclasses.replace(scope.naming(var, own), bound=scope.bound | {own})
                after, found = self._probe(body, (*path, 0), inner, state)
                return (outliving(after, own, low == high) if low is not None and low > 0 else state), pairs + found
            case ir.If(condition=condition, then=then, otherwise=otherwise) if not self._whole(stmt, path, scope):
                pairs += self._met(self._reads(condition, scope), state)
                after = other = state
                held = simplify(scope.value(condition))
                if not (isinstance(held, Const) and not held.value):
                    after, found = self._probe(then, (*path, 0), _guarded(scope, held), state)
                    pairs += found
                if otherwise is not None and not (isinstance(held, Const) and held.value):
                    other, found = self._probe(otherwise, (*path, 1), _guarded(scope, ~held), state)
                    pairs += found
                if isinstance(held, Const):
                    return (after if held.value else other), pairs
                return after.parted(held, other), pairs
            case _:
                return state, self._met((a for _, a in self._all(stmt, path, scope)), state)

    def _met(self, newer: Iterable[Access], state: State) -> list[tuple[Access, Access]]:
        """The pairs of a pending and a newer access that conflict."""
        return [(a, b) for b in newer for a in state.pending if self.prover.conflict(a, b)]

    # -------------------------------------------------- accesses

    def _accesses(self, stmt: ir.Stmt, scope: Scope, path: Path) -> Iterator[tuple[bool, Access]]:
        """Every watched access of a statement, in order, with whether it is an asynchronous write."""
        scope = scope.at(stmt)
        for e in ir.expressions(stmt):
            yield from ((False, a) for a in self._reads(e, scope))
        match stmt:
            case ir.Seq(body=body):
                for i, child in enumerate(body):
                    yield from self._accesses(child, scope, (*path, i))
                    if isinstance(child, ir.Let):
                        scope = scope.naming(child.var, scope.value(child.value))
            case ir.For(var=var, extent=extent, body=body):
                _, high = interval(scope.value(extent))
                if high is not None and high <= 0:
                    return
                own = Var(unique(var, path), INDEX, 0, None if high is None else high - 1)
                inner = dataclasses.replace(scope.naming(var, own), bound=scope.bound | {own})
                yield from self._accesses(body, inner, (*path, 0))
            case ir.If(condition=condition, then=then, otherwise=otherwise):
                held = scope.value(condition)
                yield from self._accesses(then, _guarded(scope, held), (*path, 0))
                if otherwise is not None:
                    yield from self._accesses(otherwise, _guarded(scope, ~held), (*path, 1))
            case ir.Store(buffer=buffer, indices=indices, value=value):
                yield from ((False, a) for a in self._access(buffer, indices, ir.lanes(value), True, scope))
            case ir.Copy():
                read = self._access(stmt.source, stmt.source_indices, stmt.lanes, False, scope, stmt.across)
                written = self._access(stmt.target, stmt.target_indices, stmt.lanes, True, scope, stmt.across)
                yield from ((False, a) for a in read)
                yield from ((True, a) for a in written)
            case ir.Instruction():
                yield from self._operands(stmt, scope)

    def _access(
        self, buffer: ir.Buffer, indices: tuple[Expr, ...], lanes: int, writes: bool, scope: Scope, across: bool = False
    ) -> Iterator[Access]:
        """The access to `lanes` elements, if its buffer is watched. across: the elements may continue in the next row."""
        if buffer.name not in self.watched:
            return
        at, bound = tuple(scope.value(i) for i in indices), scope.bound
        if across and lanes > 1:
            slot = Var("slot", INDEX, 0, lanes - 1)
            at, lanes, bound = _after(buffer, at, slot), 1, bound | {slot}
        yield Access(buffer, at, lanes, writes, scope.guards, bound, span=scope.span)

    def _reads(self, e: Expr, scope: Scope) -> Iterator[Access]:
        for load in ir.loads(e):
            yield from self._access(load.buffer, load.indices, load.lanes, False, scope)

    def _operands(self, stmt: ir.Instruction, scope: Scope) -> Iterator[tuple[bool, Access]]:
        """The operands of an instruction: for each lane, the elements from its address on (across rows too), or the region of a
        descriptor.

        A write that completes later counts as asynchronous.
        """
        later = stmt.semantics.completes != AT_ONCE
        for name, buffer, indices in stmt.operands:
            held = stmt.semantics.fragment(name)
            lanes, inner, across = (held.slots if held is not None else 1), scope, False
            if (region := stmt.region(name)) is not None:
                inner = dataclasses.replace(scope, bound=scope.bound | set(region.variables))
            else:
                assert held is not None, f"lanes address {name}"
                across = lanes > 1 and not _in_a_row(buffer, scope.value(indices[-1]), lanes)
            if name in stmt.semantics.reads:
                yield from ((False, a) for a in self._access(buffer, indices, lanes, False, inner, across))
            if name == stmt.semantics.writes:
                yield from ((later, a) for a in self._access(buffer, indices, lanes, True, inner, across))


# ---------------------------------------------------------------- helpers


def _watched(kernel: ir.Kernel) -> frozenset[str]:
    """The buffers whose accesses can conflict within a block: shared ones, and global ones that the kernel writes."""
    written = set()
    for s in ir.statements(kernel.body):
        match s:
            case ir.Store(buffer=buffer) | ir.Copy(target=buffer):
                written.add(buffer.name)
            case ir.Instruction(semantics=semantics, operands=operands):
                written |= {buffer.name for name, buffer, _ in operands if name == semantics.writes}
    return frozenset(
        b.name for b in kernel.buffers if b.name in written and b.memory in ("shared", "global") and b.role != "input"
    )


def _in_a_row(buffer: ir.Buffer, last: Expr, lanes: int) -> bool:
    """Whether elements from a last index on certainly stay in one row."""
    high = interval(simplify(last))[1]
    return len(buffer.shape) == 1 or (high is not None and high + lanes <= buffer.shape[-1])


def _after(buffer: ir.Buffer, indices: tuple[Expr, ...], count: Expr) -> tuple[Expr, ...]:
    """The indices of the element `count` places after another one in row-major order."""
    flat = sum((i * stride for i, stride in zip(indices, buffer.strides, strict=True)), count)
    first, *others = zip(buffer.shape, buffer.strides, strict=True)
    return flat // first[1], *(flat // stride % extent for extent, stride in others)


def _waits(loop: ir.For) -> bool:
    return any(isinstance(s, ir.Wait) for s in ir.statements(loop.body))


def _guarded(scope: Scope, condition: Expr) -> Scope:
    return dataclasses.replace(scope, guards=(*scope.guards, condition))


def _rebuilt(stmt: ir.Stmt, path: Path, sites: Mapping[Path, Site]) -> tuple[ir.Stmt, ...]:
    """A statement with the barriers inside it, preceded by its own barrier if it has one."""

    def one(child: ir.Stmt, at: Path) -> ir.Stmt:
        parts = _rebuilt(child, at, sites)
        return parts[0] if len(parts) == 1 else ir.Seq(parts)

    new: ir.Stmt
    match stmt:
        case ir.Seq(body=body):
            new = stmt.replace(body=tuple(p for i, s in enumerate(body) for p in _rebuilt(s, (*path, i), sites)))
        case ir.For(body=body):
            new = stmt.replace(body=one(body, (*path, 0)))
        case ir.If(then=then, otherwise=otherwise):
            other = None if otherwise is None else one(otherwise, (*path, 1))
            new = stmt.replace(then=one(then, (*path, 0)), otherwise=other)
        case _:
            new = stmt
    site = sites.get(path)
    if site is None:
        return (new,)
    return ir.Barrier(tuple(sorted(site.memory)), tuple(site.reasons), getattr(stmt, "span", None)), new
