"""Places every shared buffer in the block's shared memory; buffers whose lifetimes do not overlap share bytes.

Needs: no offsets yet; runs before `barriers`, which treats buffers that share bytes as one memory. Guarantees: every shared buffer
has an offset that is a multiple of ALIGNMENT, buffers alive at one time are disjoint, and all end within the capacity. One line
before and after:

    shared As: float32[8, 128]; shared Out: float32[128, 4]
    shared As: float32[8, 128] at 0; shared Out: float32[128, 4] at 0

A lifetime runs from the first to the last statement that accesses the buffer. It covers a whole loop if a value may be carried from one
iteration to the next: if the body reads the buffer before it writes it, or if the buffer is also used outside the loop. The target of
an asynchronous copy lives until no copy is in flight; after the last copies, all are awaited if other buffers are used later.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from tilelang.core.expr import Expr, free
from tilelang.core.simplify import interval
from tilelang.errors import Refusal, Span
from tilelang.lowering import ir
from tilelang.lowering.descriptors import ALIGNMENT_BYTES, described

ALIGNMENT = 64  # bytes: a cache line, the widest vector
FEW = 32  # buffers that together fit in 1/FEW of the memory do not share bytes, since sharing may need a barrier


@dataclasses.dataclass(slots=True)
class Life:
    """The lifetime of a buffer: the numbers of its first and last statement in program order."""

    first: int
    last: int

    def overlaps(self, other: Life) -> bool:
        return self.first <= other.last and other.first <= self.last


def allocate_shared(kernel: ir.Kernel, capacity_bytes: int, most_bytes: int | None = None) -> ir.Kernel:
    """The kernel with an offset for each shared buffer.

    most_bytes: the hard limit per block if the capacity is only that of a cache; a kernel that exceeds the cache gets a note.
    Raises Refusal `memory-over-capacity`, with the table of buffers, if they do not fit.
    """
    shared = kernel.shared
    if not shared:
        return kernel
    if not kernel.roles:
        kernel = kernel.replace(body=_drained(kernel.body))
    lives = _lives(kernel.body)
    if kernel.roles or sum(b.bytes for b in shared) <= capacity_bytes // FEW:  # roles run concurrently
        lives = {name: Life(0, 1) for name in lives}
    offsets = _best_fit([b for b in shared if b.name in lives], lives, described(kernel.body))
    placed = {b.name: b.replace(offset=offsets.get(b.name, 0)) for b in shared}
    used = max(offsets.get(b.name, 0) + b.bytes for b in shared)
    if used > (most := max(capacity_bytes, most_bytes or 0)):
        raise over_capacity(kernel, offsets, used, most)
    if used > capacity_bytes:
        note = f"shared memory: {used} bytes per block, more than the {capacity_bytes} bytes of the cache that should hold it"
        kernel = kernel.replace(notes=(*kernel.notes, note))
    return with_buffers(kernel, placed)


def with_buffers(kernel: ir.Kernel, changed: dict[str, ir.Buffer]) -> ir.Kernel:
    """The kernel with some buffers replaced, by name, in all its statements."""
    changed = {b.name: changed[b.name] for b in kernel.buffers if changed.get(b.name, b) is not b}
    if not changed:
        return kernel
    memo: dict[Expr, Expr] = {}

    def go(item: Any) -> Any:
        if isinstance(item, Expr):
            found = memo.get(item)
            if found is None:
                concerned = any(load.buffer.name in changed for load in ir.loads(item))
                found = memo[item] = item.map_children(go) if concerned else item
            return found
        if isinstance(item, ir.Buffer):
            return changed.get(item.name, item)
        return item.map_children(go) if isinstance(item, ir.Stmt) else item

    body: ir.Stmt = go(kernel.body)
    return kernel.replace(body=body, buffers=tuple(changed.get(b.name, b) for b in kernel.buffers))


def _best_fit(buffers: list[ir.Buffer], lives: dict[str, Life], named: set[str]) -> dict[str, int]:
    """Offsets: largest buffer first, each in the lowest gap between the buffers that are alive at the same time."""
    offsets: dict[str, int] = {}
    placed: list[ir.Buffer] = []
    for buffer in sorted(buffers, key=lambda b: (-b.bytes, lives[b.name].first, b.name)):
        taken = sorted((offsets[b.name], offsets[b.name] + b.bytes) for b in placed if lives[b.name].overlaps(lives[buffer.name]))
        at, alignment = 0, ALIGNMENT_BYTES if buffer.name in named else ALIGNMENT
        for start, end in taken:
            if at + buffer.bytes <= start:
                break
            at = max(at, -(-end // alignment) * alignment)
        offsets[buffer.name] = at
        placed.append(buffer)
    return offsets


# ---------------------------------------------------------------- lifetimes


def _lives(body: ir.Stmt) -> dict[str, Life]:
    """The lifetime of every shared buffer in the body."""
    lives: dict[str, Life] = {}
    counter = [0]

    def touch(name: str, at: int) -> None:
        life = lives.setdefault(name, Life(at, at))
        life.first, life.last = min(life.first, at), max(life.last, at)

    def visit(stmt: ir.Stmt) -> None:
        start = counter[0] = counter[0] + 1
        for buffer, _ in _shared(stmt):
            touch(buffer.name, start)
        if isinstance(stmt, ir.Copy):
            arriving.add(stmt.target.name)
        if isinstance(stmt, ir.Wait):  # an asynchronous copy may complete as late as this
            for name in arriving:
                touch(name, start)
            if stmt.pending == 0 and not stmt.queue:
                arriving.clear()
        for part in ir.parts(stmt):
            visit(part)
        if isinstance(stmt, ir.For):
            end = counter[0] = counter[0] + 1
            used = {name for name, life in lives.items() if life.last >= start}
            loops.append((start, end, used, _carried(stmt) if used else set()))

    arriving: set[str] = set()
    loops: list[tuple[int, int, set[str], set[str]]] = []  # inner before outer: start, end, buffers used, carried
    visit(body)
    for name in arriving:
        touch(name, counter[0])
    for start, end, used, carried in loops:  # only now is it known which buffers are used after a loop too
        for name in used:
            if name in carried or lives[name].first < start or lives[name].last > end:
                touch(name, start)
                touch(name, end)
    return lives


def _drained(body: ir.Stmt) -> ir.Stmt:
    """The body with a wait for all copies after the last part that starts any, if shared memory is used later."""
    if not isinstance(body, ir.Seq):
        return body
    copying = [k for k, part in enumerate(body.body) if any(isinstance(s, ir.Copy) for s in ir.statements(part))]
    if not copying:
        return body
    begun, rest = body.body[: copying[-1] + 1], body.body[copying[-1] + 1 :]
    if not any(access for part in rest for s in ir.statements(part) for access in _shared(s)):
        return ir.seq(*begun[:-1], _drained(begun[-1]), *rest)
    return ir.seq(*begun, ir.Wait(0), *rest)


def _shared(stmt: ir.Stmt) -> Iterator[tuple[ir.Buffer, bool]]:
    """The shared buffers that one statement touches, with whether it writes."""
    return (access for access in ir.touched(stmt) if access[0].memory == "shared")


def _carried(loop: ir.For) -> set[str]:
    """The buffers whose value may come from the previous iteration.

    These are read before any certain write of the iteration, written by asynchronous copies, or kept in a multistage buffer. A
    write is certain if it happens in every iteration alike: under a condition on the loop's variable (`k == 0`), it may have
    happened in an earlier iteration only.
    """
    carried: set[str] = set()
    varying = {loop.var}

    def varies(e: Expr) -> bool:
        return not varying.isdisjoint(free(e))

    def scan(stmt: ir.Stmt, written: set[str]) -> set[str]:
        """The buffers certainly written after a statement, given those before it."""
        for buffer, writes in _shared(stmt):
            if buffer.ring or not (writes or buffer.name in written):
                carried.add(buffer.name)
            if writes:
                written = written | {buffer.name}
        match stmt:
            case ir.Let(var=var, value=value) if varies(value):
                varying.add(var)
            case ir.Copy(target=target):
                carried.add(target.name)
            case ir.Seq(body=body):
                for child in body:
                    written = scan(child, written)
            case ir.For(extent=extent, body=body):
                inside = scan(body, written)
                low, _ = interval(extent)
                return inside if (low is not None and low > 0) or not varies(extent) else written
            case ir.If(condition=condition, then=then, otherwise=otherwise):
                first = scan(then, written)
                if otherwise is not None:
                    return first & scan(otherwise, written)
                return written if varies(condition) else first
        return written

    scan(loop.body, set())
    return carried


# ---------------------------------------------------------------- refusal


def over_capacity(kernel: ir.Kernel, offsets: dict[str, int], used: int, capacity_bytes: int) -> Refusal:
    """The refusal of a kernel whose shared buffers do not fit, with a table of them."""
    rows = [("buffer", "shape", "type", "bytes", "at")]
    for b in kernel.shared:
        rows.append((b.name, " x ".join(map(str, b.shape)), b.dtype.name, str(b.bytes), str(offsets.get(b.name, 0))))
    widths = [max(len(row[c]) for row in rows) for c in range(5)]
    aligned = [
        "  ".join(cell.rjust(w) if c > 2 else cell.ljust(w) for c, (cell, w) in enumerate(zip(r, widths, strict=True)))
        for r in rows
    ]
    largest = max(kernel.shared, key=lambda b: b.bytes)
    return Refusal(
        "memory-over-capacity",
        f"the kernel `{kernel.name}` needs {used} bytes of shared memory for a block, but the device has {capacity_bytes}",
        span=_first_use(kernel.body, largest),
        counterexample="\n    " + "\n    ".join(row.rstrip() for row in aligned),
        help=f"make the tile that fills `{largest.name}` smaller" + (", or its `ahead`" if largest.ring > 1 else ""),
    )


def _first_use(body: ir.Stmt, buffer: ir.Buffer) -> Span | None:
    for stmt in ir.statements(body):
        span: Span | None = getattr(stmt, "span", None)
        if span is not None and any(b is buffer for b, _ in ir.touched(stmt)):
            return span
    return None
