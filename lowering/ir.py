"""Kernel IR: the representation that passes transform, the simulator runs and emitters print.

A program is a list of kernels over shared global buffers. A kernel is a tree of statements run by every thread of every block.
Scalars and index arithmetic are tilelang.core.expr nodes; this module adds memory accesses and vectors.

Memory. Every buffer is dense and row-major over `shape`; an index tuple has one expression per dimension. Layouts (order,
padding, swizzle, circular buffers) are already part of the shape and the indices. `global` buffers are arguments or workspace;
`shared` ones exist once per block; `register` ones once per thread.

Buffers and the expressions that access them are in ir_values.py. Before the pass `vectorize`, vectors appear only as
`For(kind="vector")`; after it, only as lanes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from tilelang.core import dtype as dt
from tilelang.core.expr import Binary, Expr, Select, Var, const, index
from tilelang.core.node import Node, node
from tilelang.errors import Span
from tilelang.lowering.ir_values import BeforeLine as BeforeLine
from tilelang.lowering.ir_values import Buffer as Buffer
from tilelang.lowering.ir_values import Load as Load
from tilelang.lowering.ir_values import Pack as Pack
from tilelang.lowering.ir_values import Ramp as Ramp
from tilelang.lowering.ir_values import Shuffle as Shuffle
from tilelang.lowering.ir_values import flat as flat
from tilelang.lowering.ir_values import lanes as lanes
from tilelang.lowering.ir_values import loads as loads

if TYPE_CHECKING:
    from tilelang.schedules.explain import Chain

# ---------------------------------------------------------------- statements


class Stmt(Node):
    """A statement. `span` is the schedule step that it comes from (None: implied)."""

    __slots__ = ()


@node
class Seq(Stmt):
    """Statements in order."""

    body: tuple[Stmt, ...]
    span: Span | None = None


@node
class For(Stmt):
    """`body` for var = 0 .. extent-1. kind: serial, do, unroll, vector, threads.

    An unroll, vector or threads loop has a constant extent. A do loop tests its condition at the end, so it runs at least once. A
    threads loop runs each thread of a former block in one iteration: iterations share nothing that one of them writes, except
    registers, which each iteration writes before reading.
    """

    var: Var
    extent: Expr
    body: Stmt
    kind: str = "serial"
    span: Span | None = None


@node
class If(Stmt):
    """`then` where the scalar condition holds, else `otherwise`."""

    condition: Expr
    then: Stmt
    otherwise: Stmt | None = None
    span: Span | None = None


@node
class Let(Stmt):
    """A constant scalar name, visible in the rest of the enclosing Seq. alike: uniform across threads that run in lockstep."""

    var: Var
    value: Expr
    span: Span | None = None
    alike: bool = False


@node
class Store(Stmt):
    """buffer[indices .. +lanes] = value."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    count: Expr | None = None  # only this many leading lanes exist
    streaming: bool = False  # the elements are not read again soon
    span: Span | None = None
    across: bool = False  # lanes past the end of a row continue in the next row
    behind: int = 0  # until the pass `delay_stores`: by how many iterations the store may be delayed

    @property
    def kept_from(self) -> Expr | None:
        """The first lane whose old value is kept; None if there is none, or if it is never read, as in a temporary register."""
        return None if self.buffer.role == "temporary" else self.count


@node
class Barrier(Stmt):
    """Synchronizes all threads of the block, or inside a role the threads of that role.

    Earlier writes to shared memory (and to global memory if `memory` lists it) become visible. `reasons` names, for each conflict
    that needs the barrier, the two accesses.
    """

    memory: tuple[str, ...]
    reasons: tuple[str, ...] = ()
    span: Span | None = None


@node
class Prefetch(Stmt):
    """Prefetches the cache line of an element of a global buffer; no effect on values. Indices may be out of bounds."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    span: Span | None = None


@node
class Copy(Stmt):
    """An asynchronous copy of `lanes` elements by one thread, in its current commit group; complete at the group's Wait."""

    target: Buffer
    target_indices: tuple[Expr, ...]
    source: Buffer
    source_indices: tuple[Expr, ...]
    lanes: int
    count: Expr | None = None  # only this many leading lanes exist in the source; the others are written as zero
    span: Span | None = None
    by: Any = None  # the instruction that makes the copy, if the schedule names one
    across: bool = False  # lanes past the end of a row continue in the next row, in source and target


def at_once(copy: Copy) -> Store:
    """An asynchronous copy as a store, which is its earliest legal completion. Elements that do not exist become 0 in both."""
    type = copy.source.dtype
    if copy.count is None or copy.lanes > 1:
        fill = None if copy.count is None else const(0, type)
        value: Expr = Load(copy.source, copy.source_indices, copy.lanes, copy.count, fill, across=copy.across)
    else:
        value = Select(Binary("<", index(0), copy.count), Load(copy.source, copy.source_indices), const(0, type))
    return Store(copy.target, copy.target_indices, value, span=copy.span, across=copy.across)


@node
class Commit(Stmt):
    """Closes this thread's current commit group in a queue: of its copies, or of a family of instructions."""

    span: Span | None = None
    queue: str = ""


@node
class Wait(Stmt):
    """Waits until at most `pending` of this thread's latest commit groups in a queue are unfinished."""

    pending: int
    span: Span | None = None
    queue: str = ""


@node
class Fence(Stmt):
    """Makes this thread's earlier writes to a memory visible to later operations of a queue (for registers, only its own)."""

    queue: str
    memory: str
    span: Span | None = None


@node
class Region(Node):
    """The region that an operand outside the lanes covers: `variables` run over its dimensions in its indices."""

    operand: str
    variables: tuple[Var, ...]
    swizzle_bytes: int = 0  # width of the swizzled rows, as the descriptor states it (0: not swizzled)


@node
class Instruction(Stmt):
    """One hardware (or user-defined) instruction issued together by `width` consecutive threads (1: by each thread alone)."""

    semantics: Any  # the instruction (instructions/instruction.py)
    # (operand name, buffer, indices of the first element as each thread sees them)
    operands: tuple[tuple[str, Buffer, tuple[Expr, ...]], ...]
    width: int = 1
    span: Span | None = None
    # regions of operands outside the lanes; an operand without one adds its coordinates to the last indices
    regions: tuple[Region, ...] = ()
    signal: tuple[Buffer, Expr] | None = None  # for instructions that complete by bytes: the phase barrier that counts them
    in_cluster: bool = False  # the copy goes to this place in every block of the cluster, and signals the barrier there

    def region(self, operand: str) -> Region | None:
        """The region of an operand, or None."""
        return next((r for r in self.regions if r.operand == operand), None)

    def children(self) -> Iterator[Node]:
        for _, buffer, indices in self.operands:
            yield buffer
            yield from indices
        yield from self.signal or ()

    def map_children(self, function: Any) -> Any:
        operands = tuple((n, function(b), tuple(function(i) for i in ix)) for n, b, ix in self.operands)
        signal = None if self.signal is None else (function(self.signal[0]), function(self.signal[1]))
        alike = operands == self.operands and signal == self.signal
        return self if alike else self.replace(operands=operands, signal=signal)


# ---------------------------------------------------------------- roles


@node
class Role(Stmt):
    """A warp-specialized role: threads first .. first+threads-1 run `body`, in which `thread` counts them from 0."""

    name: str
    first: int
    threads: int
    body: Stmt
    # 32-bit registers per thread from here on; None: as many as the kernel was given
    registers: int | None = None
    span: Span | None = None


@node
class Roles(Stmt):
    """All roles of a block, which run concurrently; the last statement of a kernel."""

    body: tuple[Role, ...]
    span: Span | None = None


@node
class InitPhases(Stmt):
    """One thread starts the first phase, of parity 0, of every barrier of `phases`. Each phase ends after `arrivals` arrivals and
    the bytes announced with them. Other threads see the barriers after the next Barrier."""

    phases: Buffer
    arrivals: int
    span: Span | None = None


@node
class Arrive(Stmt):
    """One arrival at a barrier's current phase by each group of `together` neighbouring threads, once all of them are here.

    What these threads did before is visible to threads that wait for the phase.
    """

    phases: Buffer
    index: Expr
    together: int = 1
    bytes: int = 0  # bytes, brought by instructions that signal this barrier, that the phase additionally waits for
    span: Span | None = None
    in_cluster: bool = False  # arrive at this barrier of every block of the cluster


@node
class Await(Stmt):
    """Waits until a barrier's phase of this parity has ended. Before the first phase ends, that of parity 1 counts as ended."""

    phases: Buffer
    index: Expr
    parity: Expr
    span: Span | None = None


@node
class ClusterBarrier(Stmt):
    """Synchronizes all threads of all blocks of a cluster, in every role; makes their earlier writes visible."""

    span: Span | None = None


# ---------------------------------------------------------------- kernels

BLOCK = tuple(Var(f"block_{d}", dt.int64, 0, None) for d in "xyz")  # the block's index along each grid dimension, x fastest
THREAD = Var("thread", dt.int64, 0, None)  # the thread's index in its block; kernels use a Var of this name with its range


@node
class Kernel(Node):
    """One launch: `grid` blocks (x fastest) of `threads` threads running `body`.

    grid[d] is the extent of Var `block_x|y|z`; the thread index is the Var named `thread`. `buffers` lists every buffer used, in
    a fixed order, arguments first.
    """

    name: str
    grid: tuple[int, int, int]
    threads: int
    buffers: tuple[Buffer, ...]
    body: Stmt
    index_bits: int = 32  # width of index arithmetic (32 or 64)
    contract: bool = True  # a*b+c may be rounded once
    fast_math: tuple[str, ...] = ()  # functions that may be less exact (`exp` by the licence fast_exp)
    notes: tuple[str, ...] = ()  # hints that the schedule left to the device, and their outcome
    cluster: int = 1  # blocks along x that form a cluster; the grid is a multiple of it

    @property
    def arguments(self) -> tuple[Buffer, ...]:
        return tuple(b for b in self.buffers if b.memory == "global")

    @property
    def shared(self) -> tuple[Buffer, ...]:
        return tuple(b for b in self.buffers if b.memory == "shared")

    @property
    def registers(self) -> tuple[Buffer, ...]:
        return tuple(b for b in self.buffers if b.memory == "register")

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles of the block; empty if all threads do the same."""
        last = self.body.body[-1] if isinstance(self.body, Seq) and self.body.body else self.body
        return last.body if isinstance(last, Roles) else ()

    @property
    def alone(self) -> tuple[Kernel, ...]:
        """Each role as a kernel of its own with the role's threads; empty without roles."""
        return tuple(self.replace(threads=role.threads, body=role.body) for role in self.roles)

    def with_roles(self, bodies: Iterable[Stmt]) -> Kernel:
        """The kernel with new bodies for its roles."""
        roles = tuple(role.replace(body=body) for role, body in zip(self.roles, bodies, strict=True))
        *before, last = flattened(self.body)
        return self.replace(body=seq(*before, last.replace(body=roles)))

    @property
    def shared_bytes(self) -> int:
        return max((b.offset + b.bytes for b in self.shared if b.offset is not None), default=sum(b.bytes for b in self.shared))


@node
class Program(Node):
    """Kernels in launch order; `buffers` are the global ones: inputs and outputs in the computation's order, then workspace.

    chains: the steps that it was built from, with the specs between them, for `explain`; programs are compared without them.
    """

    kernels: tuple[Kernel, ...]
    buffers: tuple[Buffer, ...]
    chains: tuple[Chain, ...] = dataclasses.field(default=(), compare=False, repr=False)


def seq(*stmts: Stmt | None) -> Stmt:
    """The statements in order as one, flattened."""
    flat = flattened(*stmts)
    return flat[0] if len(flat) == 1 else Seq(flat)


def joined(*stmts: Stmt | None) -> Stmt:
    """Like `seq`, but merges neighbours under the same condition. No statement may change the conditions.

    Trailing Lets are dropped: alone they would become names of the enclosing sequence.
    """
    out: list[Stmt] = []
    for s in flattened(*stmts):
        last = out[-1] if out else None
        if (
            isinstance(s, If)
            and isinstance(last, If)
            and s.condition is last.condition
            and (s.otherwise is None) == (last.otherwise is None)
            and not loads(s.condition)
        ):
            otherwise = None if last.otherwise is None else joined(last.otherwise, s.otherwise)
            out[-1] = last.replace(then=joined(last.then, s.then), otherwise=otherwise)
        else:
            out.append(s)
    while out and isinstance(out[-1], Let):
        out.pop()
    return out[0] if len(out) == 1 else Seq(tuple(out))


def flattened(*stmts: Stmt | None) -> tuple[Stmt, ...]:
    """The statements in order, with nested sequences opened (except those with a Let) and Nones dropped."""
    flat: list[Stmt] = []
    for s in stmts:
        if isinstance(s, Seq) and not any(isinstance(x, Let) for x in s.body):
            flat.extend(s.body)
        elif s is not None:
            flat.append(s)
    return tuple(flat)


def opened(stmt: Stmt) -> Stmt:
    """The statement with nested sequences flattened, including those with a Let.

    The names of Lets must be unique, since each is visible until the end of the enclosing sequence.
    """
    inside = stmt.map_children(lambda child: opened(child) if isinstance(child, Stmt) else child)
    if not isinstance(inside, Seq):
        return inside
    return inside.replace(body=tuple(s for child in inside.body for s in (child.body if isinstance(child, Seq) else (child,))))


def parts(stmt: Stmt) -> tuple[Stmt, ...]:
    """The direct children of a statement, in order."""
    match stmt:
        case Seq(body):
            return body
        case For(body=body):
            return (body,)
        case If(then=then, otherwise=otherwise):
            return (then,) if otherwise is None else (then, otherwise)
        case Roles(body):
            return body
        case Role(body=body):
            return (body,)
        case _:
            return ()


def statements(stmt: Stmt) -> Iterator[Stmt]:
    """This statement and all inside it, in order."""
    stack = [stmt]
    while stack:
        current = stack.pop()
        yield current
        if type(current) is not Store:  # the most frequent kind
            stack += reversed(parts(current))


def expressions(stmt: Stmt) -> list[Expr]:
    """The expressions of one statement, without those of its children."""
    if type(stmt) is Store:  # the most frequent kind
        return [*stmt.indices, stmt.value] if stmt.count is None else [*stmt.indices, stmt.value, stmt.count]
    return [child for child in stmt.children() if isinstance(child, Expr)]


def touched(stmt: Stmt) -> Iterator[tuple[Buffer, bool]]:
    """The buffers that one statement (without its children) touches, reads before writes, with whether it writes."""
    for e in expressions(stmt):
        for load in loads(e):
            yield load.buffer, False
    match stmt:
        case Prefetch(buffer=buffer):
            yield buffer, False
        case Store(buffer=buffer):
            yield buffer, True
        case Copy(target=target, source=source):
            yield source, False
            yield target, True
        case Instruction(semantics, operands):
            yield from ((buffer, False) for name, buffer, _ in operands if name in semantics.reads)
            yield from ((buffer, True) for name, buffer, _ in operands if name == semantics.writes)
            yield from ((buffer, True) for buffer in (stmt.signal or ())[:1])
        case InitPhases(phases=buffer) | Arrive(phases=buffer):
            yield buffer, True
        case Await(phases=buffer):
            yield buffer, False


S = TypeVar("S", bound=Stmt)


def map_expressions(stmt: S, function: Callable[[Expr], Expr]) -> S:
    """Applies `function` to every expression of a statement tree.

    A vector that becomes a scalar (0 times anything is 0) is still stored to all its lanes.
    """
    made = stmt.map_children(
        lambda c: function(c) if isinstance(c, Expr) else map_expressions(c, function) if isinstance(c, Stmt) else c
    )
    if isinstance(made, Store) and isinstance(stmt, Store) and (lost := lanes(stmt.value)) > lanes(made.value):
        return made.replace(value=Pack((made.value,) * lost))
    return made
