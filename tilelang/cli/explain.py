"""`tilelang explain FILE`: explains what a schedule does."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from tilelang.autoschedule.common.prune import RULES
from tilelang.cli.common import UNTIL, Asked, completed, of_a_file, target_option
from tilelang.cli.output import emit, is_json, show, table, working, write_whole
from tilelang.cli.run import check_memory, tensor_bytes
from tilelang.cli.search import show_search
from tilelang.cli.simulate import access_tables, accesses
from tilelang.cli.source import without_a_device
from tilelang.errors import counted
from tilelang.lowering import ir
from tilelang.runtime.explained import plan_lines, values_between
from tilelang.schedules.explain import Refinement, explain, notes

if TYPE_CHECKING:
    from tilelang.profiles.profile import Profile
    from tilelang.runtime.resources import Resources

# Limits of the simulation for counts: threads, and bytes of tensors.
MOST_THREADS, MOST_BYTES = 1 << 18, 1 << 30


@click.command("explain")
@click.option("--barriers", is_flag=True, help="Show each inferred barrier with the two accesses that need it.")
@UNTIL
@target_option(None, "The dialect of the kernel's source. Default: opencl if the profile supports it.")
@click.option(
    "--search", "searched", is_flag=True, help="Show the candidates from which the schedule or its missing parts are chosen."
)
@click.option(
    "--without",
    "without",
    metavar="RULE",
    multiple=True,
    shell_complete=completed(lambda ctx: RULES),
    help="With --search: turn off this rule. Repeatable.",
)
@click.option("--html", type=click.Path(dir_okay=False), metavar="PAGE", help="Write an HTML page with pictures instead.")
@of_a_file
def command(
    asked: Asked, barriers: bool, until: int | None, dialect: str | None, searched: bool, without: tuple[str, ...], html: str | None
) -> None:  # fmt: skip
    """Explain a schedule of FILE: the spec after each step, the places of values between definitions and what the next choices would
    have cost, buffers and device limits, threads, memory transactions.

    No device is needed. The simulator counts transactions and bank conflicts at the given sizes; if the kernel is too large to
    simulate, they are left out. If a compiler for the target is installed, the output includes the registers that the kernel needs. The
    HTML page shows which thread accesses which element in each move, the banks of shared memory, and the loops beside the source.
    --search lists the candidates with their predicted times, and how many candidates each rule dropped.
    """
    if without and not searched:
        raise click.UsageError("--without RULE is only possible with --search")
    if searched:
        show_search(asked, dialect, without)
        return
    kernel = without_a_device(asked, dialect, until)
    if html is not None:
        _write_page(kernel, html)
        return
    with working("simulating"):
        report = _counted(kernel)
    found, values = facts(kernel, report), values_between(kernel)
    if is_json():
        emit({**found, "plan": [*map(dataclasses.asdict, values)]})
        return
    parts = [
        explain(kernel.schedule, kernel.refinements, kernel.target.profile),
        "",
        *([*plan_lines(kernel, values), ""] if values else []),
        buffer_table(found),
        "",
        thread_table(found),
        "",
    ]
    parts += [f"{k['name']}: {note}" for k in found["kernels"] for note in k["notes"]]
    parts += role_lines(found)
    if barriers:
        parts += [*barrier_lines(found), *phase_lines(found), ""]
    if report is None:
        parts.append(
            "transactions and bank conflicts are left out, because the kernel is too large to simulate: try smaller sizes"
        )
    else:
        parts += access_tables(found["transactions"], found["conflicts"])
    show("\n".join(parts).rstrip())


def _write_page(kernel: Any, path: str) -> None:
    """Writes the HTML page of a kernel atomically."""
    from tilelang.cli.page import page  # late: a command imports what it needs itself

    check_memory(kernel.computation)
    with working("simulating"):
        content = page(kernel).encode(errors="replace")
    write_whole(path, lambda file: file.write(content))
    if is_json():
        emit({"page": path, "bytes": len(content)})
    else:
        show(f"{path}: {len(content):,} bytes")


def _counted(kernel: Any) -> Any:
    """The simulator's report; None if there are too many threads, too long loops or too large tensors."""
    from tilelang.lowering.simulator.simulate import MOST_EXECUTIONS, executions  # late: a command imports what it needs itself
    from tilelang.runtime.kernel import simulate  # late: a command imports what it needs itself

    threads = sum(r.grid[0] * r.grid[1] * r.grid[2] * r.threads for r in kernel.resources)
    small = threads <= MOST_THREADS and tensor_bytes(kernel.computation) <= MOST_BYTES
    return simulate(kernel) if small and executions(kernel.program) <= MOST_EXECUTIONS else None


def facts(kernel: Any, report: Any) -> dict[str, Any]:
    """All facts about a kernel, as JSON. report: the simulator's, or None."""
    profile, program = kernel.target.profile, kernel.program
    return {
        "computation": kernel.computation.text,
        "schedule": kernel.schedule.text,
        "steps": [_refinement(r) for r in kernel.refinements],
        "notes": notes(kernel.schedule, kernel.refinements, profile),
        "architecture": profile.architecture,
        "buffers": [
            *(_buffer(b, b.role) for b in program.buffers),
            *(_buffer(b, k.name) for k in program.kernels for b in (*k.shared, *k.registers)),
        ],
        "kernels": [_kernel(k, r, profile) for k, r in zip(program.kernels, kernel.resources, strict=True)],
        "transactions": accesses(report.transactions) if report is not None else None,
        "conflicts": accesses(report.conflicts) if report is not None else None,
    }


def _refinement(r: Refinement) -> dict[str, Any]:
    """A step with the resulting spec, and the steps in its braces."""
    span = getattr(r.step, "span", None)
    return {
        "step": r.head or None, "implied": r.implied, "line": span.line if span else None, "spec": str(r.spec), "level": r.spec.level,
        "axes": {a.name: a.extent for a in r.spec.axes}, "residences": list(r.spec.residences), "inside": [*map(_refinement, r.inside)],
    }  # fmt: skip


def _buffer(b: ir.Buffer, of: str) -> dict[str, Any]:
    """A buffer. of: its role in the program, or the kernel that owns it."""
    return {"name": b.name, "memory": b.memory, "of": of, "type": str(b.dtype), "shape": list(b.shape), "bytes": b.bytes}


def _kernel(k: ir.Kernel, used: Resources, profile: Profile) -> dict[str, Any]:
    """A kernel's resources and their limits: None if unknown to the profile or the compiler."""
    limits = {name: profile.memory(name).capacity_bytes if profile.has_memory(name) else None for name in ("shared", "register")}
    return {
        "name": k.name, "grid": list(used.grid), "threads": used.threads, "threads_limit": profile.max_block_threads,
        "shared_bytes": k.shared_bytes, "shared_bytes_limit": limits["shared"],
        "register_bytes": sum(b.bytes for b in k.registers), "register_bytes_limit": limits["register"],
        "registers": used.registers, "spill_store_bytes": used.spill_store_bytes, "spill_load_bytes": used.spill_load_bytes,
        "compiled": str(used) or None, "notes": list(k.notes),
        "roles": [{"name": o.name, "first": o.first, "threads": o.threads, "registers": o.registers} for o in k.roles],
        "barriers": [
            {"memory": list(s.memory), "reasons": list(s.reasons)} for s in ir.statements(k.body) if isinstance(s, ir.Barrier)
        ],
        "phases": [_phases(k, s.phases) for s in ir.statements(k.body) if isinstance(s, ir.InitPhases)],
    }  # fmt: skip


def _phases(k: ir.Kernel, phases: ir.Buffer) -> dict[str, Any]:
    """The barriers of a circular buffer between roles: who arrives, who waits, and what they order."""
    arrives, awaits = (
        [r for r in k.roles if any(isinstance(s, kind) and s.phases is phases for s in ir.statements(r.body))]
        for kind in (ir.Arrive, ir.Await)
    )
    return {
        "name": phases.name, "slots": phases.elements, "arrives": [r.name for r in arrives], "awaits": [r.name for r in awaits],
        "orders": [text for a in arrives for b in awaits for text in _shared_between(a, b)],
    }  # fmt: skip


def _shared_between(first: ir.Role, second: ir.Role) -> list[str]:
    """One role's accesses to shared memory that must precede another role's accesses."""
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


def buffer_table(found: dict[str, Any]) -> str:
    """Every buffer with its size, and the sums against the device's limits."""
    rows = [(b["memory"], b["name"], b["of"], b["type"], " x ".join(map(str, b["shape"])) or "1", b["bytes"])
            for b in found["buffers"]]  # fmt: skip
    lines = [table(("memory", "buffer", "of", "type", "shape", "bytes"), rows), ""]
    for k in found["kernels"]:
        for what, key, each in (("shared", "shared_bytes", "block"), ("registers", "register_bytes", "thread")):
            used, limit = k[key], k[f"{key}_limit"]
            lines.append(f"{k['name']}: {what} {used} bytes{f' of {limit} ({used / limit:.0%})' if limit else ''} a {each}")
    lines += [f"{k['name']}: compiled for {found['architecture']}: {k['compiled']}" for k in found["kernels"] if k["compiled"]]
    return "\n".join(lines)


def thread_table(found: dict[str, Any]) -> str:
    """The grid and the threads of each kernel."""
    rows = [(k["name"], " x ".join(map(str, k["grid"])), k["threads"], k["threads_limit"]) for k in found["kernels"]]
    return table(("kernel", "blocks", "threads", "at most"), rows)


def barrier_lines(found: dict[str, Any]) -> list[str]:
    """Every barrier, and the two accesses that need it."""
    lines = []
    for k in found["kernels"]:
        lines.append(f"{k['name']}: {counted(len(k['barriers']), 'barrier')}")
        for number, barrier in enumerate(k["barriers"], 1):
            lines += [f"  {number}. {' and '.join(barrier['memory'])}", *(f"       {reason}" for reason in barrier["reasons"])]
    return lines


def role_lines(found: dict[str, Any]) -> list[str]:
    """The roles of each kernel: their threads and register budgets."""
    rows = [
        (k["name"], r["name"], f"{r['first']}..{r['first'] + r['threads']}", r["registers"] if r["registers"] is not None else "")
        for k in found["kernels"]
        for r in k["roles"]
    ]
    return [table(("kernel", "role", "threads", "registers"), rows), ""] if rows else []


def phase_lines(found: dict[str, Any]) -> list[str]:
    """The barriers between roles of every circular buffer."""
    lines = []
    for k in found["kernels"]:
        for p in k["phases"]:
            who = f"{' and '.join(p['arrives'])} arrives, {' and '.join(p['awaits'])} awaits"
            lines += [f"{k['name']}: {p['name']}, {p['slots']} slots: {who}", *(f"       {text}" for text in p["orders"])]
    return lines
