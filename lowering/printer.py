"""Prints kernel IR as text for dumps, golden files and messages. The text is for people and is never parsed.

It depends on the tree alone, so equal programs print equally on every machine. The source of a statement (`# file:line`) and the
reasons of a barrier are printed only on request, because they contain file names.

    for k in 0..8:
      acc[0:4] = acc[0:4] + As[k] * Bs[k, 0:4]
    barrier shared
"""

from __future__ import annotations

from collections.abc import Iterator

from tilelang.core.expr import Const, Expr
from tilelang.core.expr import to_text as expression_text
from tilelang.lowering import ir

INDENT = "  "


def to_text(what: ir.Program | ir.Kernel | ir.Stmt, *, spans: bool = False) -> str:
    """The text of a program, a kernel or a statement, ending in a line break.

    spans: also print source locations and the reasons of barriers.

    >>> print(to_text(ir.Barrier(("shared",))), end="")
    barrier shared
    """
    match what:
        case ir.Program():
            lines = _program(what, spans)
        case ir.Kernel():
            lines = _kernel(what, spans)
        case _:
            lines = _statement(what, spans)
    return "\n".join(lines) + "\n"


def headline(stmt: ir.Stmt) -> str:
    """The first line of a statement's text, which is the whole text unless the statement has children."""
    return next(_statement(stmt, False), "pass")


def _program(program: ir.Program, spans: bool) -> Iterator[str]:
    yield "program"
    for buffer in program.buffers:
        yield INDENT + buffer_text(buffer)
    for kernel in program.kernels:
        yield ""
        yield from _kernel(kernel, spans)


def _kernel(kernel: ir.Kernel, spans: bool) -> Iterator[str]:
    grid = " x ".join(str(n) for n in kernel.grid)
    options = [f"index {kernel.index_bits} bits"]
    if not kernel.contract:
        options.append("no contraction")
    if kernel.fast_math:
        options.append("fast " + " ".join(kernel.fast_math))
    grid += f" blocks in clusters of {kernel.cluster}, each" if kernel.cluster > 1 else " blocks"
    yield f"kernel {kernel.name}: {grid} of {kernel.threads} threads, {', '.join(options)}"
    for buffer in kernel.buffers:
        yield INDENT + buffer_text(buffer)
    yield from _nested(kernel.body, spans)


def buffer_text(buffer: ir.Buffer) -> str:
    """One buffer's declaration: `shared As: float32[8, 132] offset 0`."""
    text = f"{buffer.memory} {buffer.name}: {buffer.dtype}[{', '.join(str(n) for n in buffer.shape)}]"
    if buffer.role:
        text += f" {buffer.role}"
    if buffer.vector:
        text += f" vector {buffer.vector}"
    if buffer.ring:
        text += f" ring {buffer.ring}"
    if buffer.offset is not None:
        text += f" offset {buffer.offset}"
    return text


def _nested(stmt: ir.Stmt, spans: bool) -> Iterator[str]:
    empty = True
    for line in _statement(stmt, spans):
        empty = False
        yield INDENT + line
    if empty:
        yield INDENT + "pass"


def element_text(
    buffer: ir.Buffer, indices: tuple[Expr, ...], lanes: int = 1, count: Expr | None = None, across: bool = False
) -> str:
    """`A[i, j:4 across first n]`: four lanes from A[i, j] on, continuing in the next row, the first n of which exist."""
    tail = f":{lanes}{' across' if across else ''}" if lanes > 1 else ""
    tail += f" first {expression_text(count)}" if count is not None else ""
    return f"{buffer.name}[{', '.join(expression_text(i) for i in indices)}{tail}]"


def _place(stmt: ir.Stmt, spans: bool) -> str:
    span = getattr(stmt, "span", None)
    return f"  # {span}" if spans and span is not None else ""


def _statement(stmt: ir.Stmt, spans: bool) -> Iterator[str]:
    place = _place(stmt, spans)
    match stmt:
        case ir.Seq(body):
            for child in body:
                yield from _statement(child, spans)
        case ir.For(var, extent, body, kind):
            word = "for" if kind == "serial" else kind
            yield f"{word} {var.name} in 0..{expression_text(extent)}:{place}"
            yield from _nested(body, spans)
        case ir.If(condition, then, otherwise):
            yield f"if {expression_text(condition)}:{place}"
            yield from _nested(then, spans)
            if otherwise is not None:
                yield "else:"
                yield from _nested(otherwise, spans)
        case ir.Roles(body):
            for role in body:
                yield from _statement(role, spans)
        case ir.Role(name, first, threads, body, registers):
            budget = f" with {registers} registers each" if registers is not None else ""
            yield f"role {name}, threads {first}..{first + threads}{budget}:{place}"
            yield from _nested(body, spans)
        case ir.Barrier(memory, reasons):
            yield f"barrier {' '.join(memory)}{place}"
            if spans:
                yield from (f"{INDENT}# {reason}" for reason in reasons)
        case _:
            yield _simple(stmt) + place


def _simple(stmt: ir.Stmt) -> str:
    """A statement without children."""
    match stmt:
        case ir.Let(var, value, alike=alike):
            return f"let {'alike ' * alike}{var.name}: {var.type} = {expression_text(value)}"
        case ir.Store(buffer, indices, value, count, streaming, behind=behind):
            word = "stream " * streaming + f"behind {behind} " * (behind > 0)
            text = _typed(value) if isinstance(value, Const) else expression_text(value)
            return f"{word}{element_text(buffer, indices, ir.lanes(value), count, stmt.across)} = {text}"
        case ir.Prefetch(buffer, indices):
            return f"prefetch {element_text(buffer, indices)}"
        case ir.Copy(target, target_indices, source, source_indices, lanes, count):
            to = element_text(target, target_indices, lanes, None, stmt.across)
            return f"copy {to} from {element_text(source, source_indices, lanes, count, stmt.across)}"
        case ir.Commit(queue=queue):
            return f"commit {queue}".rstrip()
        case ir.Wait(pending, queue=queue):
            return f"wait {pending} {queue}".rstrip()
        case ir.Fence(queue, memory):
            return f"fence {memory} for {queue}"
        case ir.Instruction(semantics, operands, width, signal=signal):
            named = ", ".join(f"{name}={element_text(buffer, indices)}" for name, buffer, indices in operands)
            by = f" by {width} threads" if width > 1 else ""
            by += f" to {element_text(signal[0], (signal[1],))}" if signal is not None else ""
            by += " in the cluster" * stmt.in_cluster
            return f"do {getattr(semantics, 'name', semantics)}({named}){by}"
        case ir.InitPhases(phases, arrivals):
            return f"phases {phases.name} of {arrivals} arrival{'s' * (arrivals != 1)}"
        case ir.Arrive(phases, number, together, bytes):
            by = " in the cluster" * stmt.in_cluster + (f" by {together} threads" if together > 1 else "")
            return f"arrive {element_text(phases, (number,))}{by}" + (f" and await {bytes} bytes" if bytes else "")
        case ir.ClusterBarrier():
            return "barrier of the cluster"
        case ir.Await(phases, number, parity):
            return f"await {element_text(phases, (number,))} phase {expression_text(parity)}"
        case _:
            raise AssertionError(f"no text for {type(stmt).__name__}")


def _typed(value: Const) -> str:
    """A literal, with its type if the context does not determine it."""
    return f"{expression_text(value)}: {value.type}"
