"""`tilelang explain FILE`: what a schedule does."""

from __future__ import annotations

import sys
from typing import Any

import click

from tilelang.cli.common import Asked, emit, is_json, of_a_file, show, table, working, write_whole
from tilelang.cli.run import check_memory, tensor_bytes
from tilelang.cli.simulate import access_tables, accesses
from tilelang.cli.source import without_a_device
from tilelang.lowering import ir

# What is simulated for the counts: threads, and bytes of tensors.
MOST_THREADS, MOST_BYTES = 1 << 18, 1 << 30


@click.command("explain")
@click.option("--barriers", is_flag=True, help="Each inferred barrier with the two accesses that need it.")
@click.option("--until", type=click.IntRange(0), metavar="STEP", help="Only the first steps of the schedule.")
@click.option("--target", default="opencl", show_default=True, metavar="DIALECT", help="The language it is compiled from.")
@click.option("--html", type=click.Path(dir_okay=False), metavar="PAGE", help="Write a page with pictures instead.")
@of_a_file
def command(asked: Asked, barriers: bool, until: int | None, target: str, html: str | None) -> None:
    """Explain a schedule of FILE: the spec after each step, buffers against the device's limits, threads, memory transactions.

    Transactions and bank conflicts are counted by the simulator, at the sizes given; where there are too many threads, rounds or
    elements they are left out. No device is needed. Where a compiler is installed for the target, it says how many registers it
    needs and whether they fit. The page shows who touches which element in each move, shared memory by banks, and
    the loops beside the source.
    """
    kernel = without_a_device(asked, target, until)
    if html is not None:
        _write_page(kernel, html)
        return
    with working("simulating"):
        report = _counted(kernel)
    if is_json():
        emit(_facts(kernel, report))
        return
    parts = [kernel.schedule.explain(), "", buffer_table(kernel), "", thread_table(kernel), ""]
    parts += [f"{k.name}: {note}" for k in kernel.program.kernels for note in k.notes]
    parts += role_lines(kernel)
    if barriers:
        parts += [*barrier_lines(kernel), *phase_lines(kernel), ""]
    if report is None:
        parts.append("too many threads, rounds or elements: smaller sizes are simulated for transactions and bank conflicts")
    else:
        parts += access_tables(report)
    show("\n".join(parts).rstrip())
    sys.exit(0)


def _write_page(kernel: Any, path: str) -> None:
    """Writes the page of a kernel, whole or not at all."""
    from tilelang.cli.page import page

    check_memory(kernel.computation)
    with working("simulating"):
        content = page(kernel).encode(errors="replace")
    write_whole(path, lambda file: file.write(content))
    if is_json():
        emit({"page": path, "bytes": len(content)})
    else:
        show(f"{path}: {len(content):,} bytes")


def _counted(kernel: Any) -> Any:
    """The simulator's report; None where there are too many threads, too long walks or too large tensors."""
    from tilelang.lowering.simulate import MOST_EXECUTIONS, executions
    from tilelang.runtime import simulate

    threads = sum(r.grid[0] * r.grid[1] * r.grid[2] * r.threads for r in kernel.resources)
    small = threads <= MOST_THREADS and tensor_bytes(kernel.computation) <= MOST_BYTES
    return simulate(kernel) if small and executions(kernel.program) <= MOST_EXECUTIONS else None


def buffer_table(kernel: Any) -> str:
    """Every buffer with its bytes, and the sums against what the device has."""
    facts, rows = kernel.target.profile, list[tuple[Any, ...]]()
    for b in kernel.program.buffers:
        rows.append(("global", b.name, b.role, str(b.dtype), _shape(b), b.bytes))
    for k in kernel.program.kernels:
        for b in (*k.shared, *k.registers):
            rows.append((b.memory, b.name, k.name, str(b.dtype), _shape(b), b.bytes))
    lines = [table(("memory", "buffer", "of", "type", "shape", "bytes"), rows), ""]
    for k in kernel.program.kernels:
        shared, limit = k.shared_bytes, facts.memory("shared").capacity_bytes if facts.has_memory("shared") else None
        lines.append(f"{k.name}: shared {shared} bytes{f' of {limit} ({shared / limit:.0%})' if limit else ''} a block")
        registers, most = (
            sum(b.bytes for b in k.registers),
            facts.memory("register").capacity_bytes if facts.has_memory("register") else None,
        )
        lines.append(f"{k.name}: registers {registers} bytes{f' of {most} ({registers / most:.0%})' if most else ''} a thread")
    lines += [f"{r.kernel}: compiled for {facts.architecture}: {r}" for r in kernel.resources if str(r)]
    return "\n".join(lines)


def _shape(b: ir.Buffer) -> str:
    return " x ".join(map(str, b.shape)) or "1"


def thread_table(kernel: Any) -> str:
    """The grid and the threads of each kernel."""
    most = kernel.target.profile.max_block_threads
    rows = [(r.kernel, " x ".join(map(str, r.grid)), r.threads, most) for r in kernel.resources]
    return table(("kernel", "blocks", "threads", "at most"), rows)


def barrier_lines(kernel: Any) -> list[str]:
    """Every barrier, and the two accesses that need it."""
    lines = []
    for k in kernel.program.kernels:
        found = [s for s in ir.statements(k.body) if isinstance(s, ir.Barrier)]
        lines.append(f"{k.name}: {len(found)} barriers")
        for number, barrier in enumerate(found, 1):
            lines += [f"  {number}. {' and '.join(barrier.memory)}", *(f"       {reason}" for reason in barrier.reasons)]
    return lines


def role_lines(kernel: Any) -> list[str]:
    """The roles of each kernel: their threads and budgets."""
    rows = [
        (k.name, r.name, f"{r.first}..{r.first + r.threads}", r.registers if r.registers is not None else "")
        for k in kernel.program.kernels
        for r in k.roles
    ]
    return [table(("kernel", "role", "threads", "registers"), rows), ""] if rows else []


def phase_lines(kernel: Any) -> list[str]:
    """Every ring's barriers between roles: who arrives, who awaits, and what they order."""
    lines = []
    for k in kernel.program.kernels:
        for made in (s for s in ir.statements(k.body) if isinstance(s, ir.InitPhases)):
            arriving = [r for r in k.roles if any(_arrives(s, made.phases) for s in ir.statements(r.body))]
            waiting = [
                r for r in k.roles if any(isinstance(s, ir.Await) and s.phases is made.phases for s in ir.statements(r.body))
            ]
            who = f"{' and '.join(r.name for r in arriving)} arrives, {' and '.join(r.name for r in waiting)} awaits"
            lines.append(f"{k.name}: {made.phases.name}, {made.phases.elements} slots: {who}")
            lines += [f"       {text}" for a in arriving for b in waiting for text in _shared_between(a, b)]
    return lines


def _arrives(stmt: ir.Stmt, phases: ir.Buffer) -> bool:
    return isinstance(stmt, ir.Arrive) and stmt.phases is phases


def _shared_between(first: ir.Role, second: ir.Role) -> list[str]:
    """What one role does to shared memory before another one does something to it that must come after."""
    did, does = (
        {(b.name, writes) for s in ir.statements(r.body) for b, writes in ir.touched(s) if b.memory == "shared" and not b.role}
        for r in (first, second)
    )
    words = {True: "write", False: "read"}
    return [
        f"{words[a]} of {name} by the {first.name}, then {words[not a]} by the {second.name}"
        for name, a in sorted(did)
        if (name, not a) in does
    ]


def _facts(kernel: Any, report: Any) -> dict[str, Any]:
    """The same as JSON."""
    buffers = [b for k in kernel.program.kernels for b in (*k.shared, *k.registers)]
    return {
        "computation": kernel.computation.text,
        "schedule": kernel.schedule.text,
        "specs": [str(s) for s in kernel.schedule.specs],
        "buffers": [
            {"name": b.name, "memory": b.memory, "type": str(b.dtype), "shape": list(b.shape), "bytes": b.bytes}
            for b in (*kernel.program.buffers, *buffers)
        ],
        "kernels": [
            {"name": r.kernel, "grid": list(r.grid), "threads": r.threads, "shared_bytes": r.shared_bytes,
             "registers": r.registers, "spill_store_bytes": r.spill_store_bytes, "spill_load_bytes": r.spill_load_bytes,
             "roles": [{"name": o.name, "first": o.first, "threads": o.threads, "registers": o.registers} for o in k.roles],
             "barriers": [list(s.reasons) for s in ir.statements(k.body) if isinstance(s, ir.Barrier)]}
            for k, r in zip(kernel.program.kernels, kernel.resources, strict=True)
        ],
        "transactions": accesses(report.transactions) if report is not None else None,
        "conflicts": accesses(report.conflicts) if report is not None else None,
    }  # fmt: skip
