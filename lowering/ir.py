"""Kernel IR: what every pass reads and writes, what the simulator runs and the emitters print.

A program is a list of kernels over shared global buffers. A kernel is a tree of statements run by every thread of every block.
Scalars and index arithmetic are tilelang.core.expr nodes; this module adds what touches memory, and vectors.

Memory. Every buffer is dense and row-major over `shape`; an index tuple has one expression per dimension. Layouts (order, padding,
swizzle, rings) are already in the shape and the indices. `global` buffers are arguments or workspace; `shared` ones exist once per
block; `register` ones once per thread.

Buffers and the expressions that touch them are in ir_values.py. Before the pass `vectorize`, vectors appear only as
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
    """A statement. `span` is the schedule step it comes from (None: implied)."""

    __slots__ = ()


@node
class Seq(Stmt):
    """Statements in order."""

    body: tuple[Stmt, ...]
    span: Span | None = None


@node
class For(Stmt):
    """`body` for var = 0 .. extent-1. kind: serial, do, unroll, vector, threads.

    An unroll, vector or threads loop has a constant extent; a do loop has one round at least, and its test stands behind the round. The
    rounds of a threads loop, each for one thread of what was a block, touch nothing that another one writes but registers, which
    each writes before it reads them.
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
    """A constant scalar name, visible in the rest of the Seq it stands in. alike: the same in all threads that run in lockstep."""

    var: Var
    value: Expr
    span: Span | None = None
    alike: bool = False


@node
class Store(Stmt):
    """buffer[indices .. +lanes] = value. `streaming`: not read again soon. `count`: only the first lanes exist. `across`: lanes that
    do not fit a row go on in the next one. `behind`: until the pass of that name, how many rounds later it may run."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    count: Expr | None = None
    streaming: bool = False
    span: Span | None = None
    across: bool = False
    behind: int = 0

    @property
    def kept_from(self) -> Expr | None:
        """The lane from which on what stands there is kept; None: no lane, or nobody reads them, as of a temporary register."""
        return None if self.buffer.role == "temporary" else self.count


@node
class Barrier(Stmt):
    """All threads of the block meet; shared memory (and global, where `memory` says so) written before is seen after.

    `reasons` holds, for each conflict that needs it, a text naming the two accesses. In a role, its threads meet, and no others.
    """

    memory: tuple[str, ...]
    reasons: tuple[str, ...] = ()
    span: Span | None = None


@node
class Prefetch(Stmt):
    """Bring the cache line of an element of a global buffer nearer; no effect on values. Indices may lie outside."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    span: Span | None = None


@node
class Copy(Stmt):
    """An asynchronous copy of `lanes` elements by one thread, in the current group; lands no later than the group's Wait.

    `count`: only the first lanes exist in the source; the others are written as zero. `by`: the instruction that makes it, where a
    schedule names one. `across`: lanes past the end of a row continue in the next row, in source and target.
    """

    target: Buffer
    target_indices: tuple[Expr, ...]
    source: Buffer
    source_indices: tuple[Expr, ...]
    lanes: int
    count: Expr | None = None
    span: Span | None = None
    by: Any = None
    across: bool = False


def at_once(copy: Copy) -> Store:
    """An asynchronous copy as a store, which lands as early as it may; elements that do not exist become 0, as in the copy."""
    type = copy.source.dtype
    if copy.count is None or copy.lanes > 1:
        fill = None if copy.count is None else const(0, type)
        value: Expr = Load(copy.source, copy.source_indices, copy.lanes, copy.count, fill, across=copy.across)
    else:
        value = Select(Binary("<", index(0), copy.count), Load(copy.source, copy.source_indices), const(0, type))
    return Store(copy.target, copy.target_indices, value, span=copy.span, across=copy.across)


@node
class Commit(Stmt):
    """Closes the current group of what this thread has begun in a queue: of its copies, or of a family of instructions."""

    span: Span | None = None
    queue: str = ""


@node
class Wait(Stmt):
    """Until at most `pending` of this thread's latest groups of a queue are unfinished."""

    pending: int
    span: Span | None = None
    queue: str = ""


@node
class Fence(Stmt):
    """What this thread wrote to a memory before is seen by what is begun in a queue after: by itself, if the memory is register."""

    queue: str
    memory: str
    span: Span | None = None


@node
class Region(Node):
    """Of an operand that no lanes hold: the variables that run over its dimensions in its indices.

    swizzle_bytes: how wide the rows are whose chunks are exchanged, as a descriptor says it (0: none are).
    """

    operand: str
    variables: tuple[Var, ...]
    swizzle_bytes: int = 0


@node
class Instruction(Stmt):
    """One hardware (or user-defined) instruction issued together by `width` consecutive threads (1: by each thread alone).

    `semantics` is the instruction (instructions/instruction.py); `operands` pairs its operand names with (buffer, indices of the first
    element) as each thread sees them. regions: of operands that no lanes hold; without one, the coordinates count from the last indices
    on. signal: the barrier with phases that gets the bytes of
    what the instruction brings, where it completes by them. in_cluster: it brings the same to this place in every block of the cluster,
    and signals the barrier there.
    """

    semantics: Any
    operands: tuple[tuple[str, Buffer, tuple[Expr, ...]], ...]
    width: int = 1
    span: Span | None = None
    regions: tuple[Region, ...] = ()
    signal: tuple[Buffer, Expr] | None = None
    in_cluster: bool = False

    def region(self, operand: str) -> Region | None:
        """The region of an operand; None where it has none."""
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
    """What some threads of a block do: threads first .. first+threads-1 run `body`, in which `thread` counts them from 0.

    registers: how many of 32 bits each of them has from here on; None: as many as the kernel was given.
    """

    name: str
    first: int
    threads: int
    body: Stmt
    registers: int | None = None
    span: Span | None = None


@node
class Roles(Stmt):
    """All roles of a block, which run beside each other; the last statement of a kernel."""

    body: tuple[Role, ...]
    span: Span | None = None


@node
class InitPhases(Stmt):
    """Every barrier of `phases` begins its first phase, of parity 0; each phase ends after `arrivals` arrivals, and the bytes that
    were announced with them. By one thread; the others see it after the next Barrier."""

    phases: Buffer
    arrivals: int
    span: Span | None = None


@node
class Arrive(Stmt):
    """One arrival at a barrier in its current phase, by each `together` neighbouring threads when all of them are here.

    bytes: how many more, brought by instructions that signal this barrier, the phase waits for. What these threads did before is seen
    by who awaits the phase. in_cluster: at this barrier of every block of the cluster.
    """

    phases: Buffer
    index: Expr
    together: int = 1
    bytes: int = 0
    span: Span | None = None
    in_cluster: bool = False


@node
class Await(Stmt):
    """Until the phase of this parity of a barrier has ended; before its first phase ends, that of parity 1 counts as ended."""

    phases: Buffer
    index: Expr
    parity: Expr
    span: Span | None = None


@node
class ClusterBarrier(Stmt):
    """All threads of all blocks of a cluster meet, whatever roles they have; what any of them did before is seen after."""

    span: Span | None = None


# ---------------------------------------------------------------- kernels

BLOCK = tuple(Var(f"block_{d}", dt.int64, 0, None) for d in "xyz")  # the block's number along each grid dimension, x fastest
THREAD = Var("thread", dt.int64, 0, None)  # the thread's number in its block; kernels use a Var of this name with its range


@node
class Kernel(Node):
    """One launch: `grid` blocks (x fastest) of `threads` threads running `body`.

    grid[d] is the extent of Var `block_x|y|z`; thread numbers are the Var named `thread`. `buffers` lists every buffer used, in a
    fixed order, arguments first. index_bits: width of index arithmetic (32 or 64). fast_math: functions for which the licence to be
    less exact is given (`exp` by fast_exp). notes: what the schedule left to the device, and
    what came of it. cluster: how many neighbours along x make a cluster of blocks; the grid has whole ones.
    """

    name: str
    grid: tuple[int, int, int]
    threads: int
    buffers: tuple[Buffer, ...]
    body: Stmt
    index_bits: int = 32
    contract: bool = True  # a*b+c may be one rounding
    fast_math: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    cluster: int = 1

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
        """The roles of its threads; none where all do the same."""
        last = self.body.body[-1] if isinstance(self.body, Seq) and self.body.body else self.body
        return last.body if isinstance(last, Roles) else ()

    @property
    def alone(self) -> tuple[Kernel, ...]:
        """Each role as a kernel of its own, whose threads are the role's."""
        return tuple(self.replace(threads=role.threads, body=role.body) for role in self.roles)

    def with_roles(self, bodies: Iterable[Stmt]) -> Kernel:
        """The kernel with other bodies for its roles."""
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
    """Statements in order as one, flattened."""
    flat = flattened(*stmts)
    return flat[0] if len(flat) == 1 else Seq(flat)


def joined(*stmts: Stmt | None) -> Stmt:
    """As `seq`, with neighbours under the same condition under one; of conditions that no statement can change.

    Lets at the end, which nothing follows, are dropped: alone they would be names of the sequence around.
    """
    out: list[Stmt] = []
    for s in flattened(*stmts):
        match out[-1] if out else None, s:
            case If(condition, a, b) as last, If(again, c, d) if (
                again is condition and (b is None) == (d is None) and not loads(again)
            ):
                out[-1] = last.replace(then=joined(a, c), otherwise=None if b is None else joined(b, d))
            case _:
                out.append(s)
    while out and isinstance(out[-1], Let):
        out.pop()
    return out[0] if len(out) == 1 else Seq(tuple(out))


def flattened(*stmts: Stmt | None) -> tuple[Stmt, ...]:
    """Statements in order, nested sequences opened (a sequence with a Let stays whole), Nones dropped."""
    flat: list[Stmt] = []
    for s in stmts:
        if isinstance(s, Seq) and not any(isinstance(x, Let) for x in s.body):
            flat.extend(s.body)
        elif s is not None:
            flat.append(s)
    return tuple(flat)


def opened(stmt: Stmt) -> Stmt:
    """The statement with nested sequences flattened, also those with a Let.

    The names of Lets must be unique: each is visible until the end of the sequence around it.
    """
    inside = stmt.map_children(lambda child: opened(child) if isinstance(child, Stmt) else child)
    if not isinstance(inside, Seq):
        return inside
    return inside.replace(body=tuple(s for child in inside.body for s in (child.body if isinstance(child, Seq) else (child,))))


def parts(stmt: Stmt) -> tuple[Stmt, ...]:
    """The statements directly inside one, in order."""
    match stmt:
        case Store():  # of which there are the most
            return ()
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
    """This statement and every one inside it, in order."""
    stack = [stmt]
    while stack:
        current = stack.pop()
        yield current
        inside = parts(current)
        if inside:
            stack += reversed(inside)


def expressions(stmt: Stmt) -> list[Expr]:
    """The expressions that stand directly in one statement."""
    return [child for child in stmt.children() if isinstance(child, Expr)]


def touched(stmt: Stmt) -> Iterator[tuple[Buffer, bool]]:
    """The buffers that one statement (not those inside it) touches, reads before writes, with whether it writes."""
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
    """The statement tree with `function` applied to every expression that stands directly in a statement.

    A vector that becomes a scalar (0 times anything is 0) is still stored in all its lanes.
    """
    made = stmt.map_children(
        lambda c: function(c) if isinstance(c, Expr) else map_expressions(c, function) if isinstance(c, Stmt) else c
    )
    if isinstance(made, Store) and isinstance(stmt, Store) and (lost := lanes(stmt.value)) > lanes(made.value):
        return made.replace(value=Pack((made.value,) * lost))
    return made
