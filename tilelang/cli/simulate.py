"""`tilelang simulate FILE`: simulates every thread of every block in NumPy."""

from __future__ import annotations

import sys
from typing import Any

import click

from tilelang.cli.common import RIGHT, SEED, UNTIL, WRONG, Asked, of_a_file
from tilelang.cli.output import emit, is_json, show, table, working
from tilelang.cli.run import check_memory
from tilelang.cli.source import without_a_device


@click.command("simulate")
@UNTIL
@click.option(
    "--late", is_flag=True, help="Let asynchronous copies complete as late as possible instead of as early as possible."
)
@SEED
@of_a_file
def command(asked: Asked, until: int | None, late: bool, seed: int) -> None:
    """Simulate a schedule of FILE on random inputs and report faults, wrong results, transactions and bank conflicts.

    The simulator executes every thread, so choose small sizes with --size. Exits with 1 if it finds a fault.
    """
    from tilelang.lowering.simulator.simulate import check_work  # late: a command imports what it needs itself
    from tilelang.runtime.kernel import simulate  # late: a command imports what it needs itself
    from tilelang.semantics import reference  # late: a command imports what it needs itself

    kernel = without_a_device(asked, until=until)
    check_work(kernel.program)
    check_memory(kernel.computation)
    given = reference.random_arrays(kernel.computation, seed)
    with working("simulating"):
        report = simulate(kernel, order="late" if late else "early", **given)
        made = kernel.schedule
        right = reference.compare(made.computation, given, report.outputs, error_ulps=made.error_ulps, loops=made.shared_loops)
    transactions, conflicts = accesses(report.transactions), accesses(report.conflicts)
    if is_json():
        emit(
            {
                "target": str(kernel.target), "right": bool(right), "findings": [str(f) for f in report.findings],
                "counts": report.counts, "transactions": transactions, "conflicts": conflicts,
            }
        )  # fmt: skip
    else:
        show("\n".join([str(report), str(right), "", *access_tables(transactions, conflicts)]))
    sys.exit(RIGHT if right and not report.counts else WRONG)


def accesses(counts: Any) -> list[dict[str, Any]]:
    """Counts of accesses, as JSON."""
    return [
        {
            "kernel": c.kernel, "buffer": c.buffer, "access": c.access, "text": c.text, "line": c.span.line if c.span else None,
            "requests": c.requests, "total": c.total,
        }
        for c in counts
    ]  # fmt: skip


def access_tables(transactions: list[dict[str, Any]], conflicts: list[dict[str, Any]]) -> list[str]:
    """Transactions in global memory and bank conflicts in shared memory, summed over the accesses of one step to one buffer."""
    parts = []
    for title, counts in (
        ("global memory: transactions", transactions),
        ("shared memory: extra phases by bank conflicts", conflicts),
    ):
        sums: dict[tuple[str, str, str], list[int]] = {}
        for c in counts:
            found = sums.setdefault((c["buffer"], c["access"], str(c["line"] or "implied")), [0, 0])
            found[0], found[1] = found[0] + c["requests"], found[1] + c["total"]
        rows = [(*key, n, total, round(total / max(1, n), 2)) for key, (n, total) in sums.items()]
        if rows:
            parts.append(table(("buffer", "access", "line", "requests", "total", "each"), rows, title) + "\n")
    return parts
