"""`tilelang diff A B`: compares two schedules side by side."""

from __future__ import annotations

import difflib
import sys
from typing import Any

import click

from tilelang.cli.common import LIMIT, PROFILE, RIGHT, SIZES, WRONG, Asked, reporting, text_of
from tilelang.cli.output import emit, is_json, show, table
from tilelang.cli.source import without_a_device
from tilelang.grammar import parse
from tilelang.profiles.files import load_profile
from tilelang.profiles.profile import Profile


@click.command("diff")
@click.argument("first", metavar="FILE[:SCHEDULE]")
@click.argument("second", metavar="FILE[:SCHEDULE]")
@SIZES
@PROFILE
@LIMIT
@reporting
def command(first: str, second: str, sizes: Any, profile: str | None, limit_bytes: int) -> None:
    """Compare two schedules: their aligned steps, and the bytes per memory, registers and threads that differ.

    Exits with 0 if they are the same, else with 1.
    """
    facts = load_profile(profile) if profile is not None else None
    asked = [_asked(name, dict(sizes), facts, limit_bytes) for name in (first, second)]
    if lost := [n for n in dict(sizes) if not any(n in a.sizes for a in asked)]:
        raise click.UsageError(f"neither {first} nor {second} has a parameter `{lost[0]}`")
    kernels = [without_a_device(a) for a in asked]
    steps = [[str(s) for s in k.schedule.steps] for k in kernels]
    used = [usage(k) for k in kernels]
    computations = [k.computation.text for k in kernels]
    same = steps[0] == steps[1] and computations[0] == computations[1]
    rows = [(name, used[0].get(name, 0), used[1].get(name, 0)) for name in dict.fromkeys((*used[0], *used[1]))]
    if is_json():
        emit({"same": same, "steps": list(difflib.ndiff(steps[0], steps[1])), "first": used[0], "second": used[1]})
    else:
        lines = [] if computations[0] == computations[1] else ["the computations differ:"]
        before, after = (c.splitlines() for c in computations)
        lines += list(difflib.unified_diff(before, after, lineterm="", n=1))[2:]
        lines += [line for line in difflib.ndiff(steps[0], steps[1]) if not line.startswith("?")]
        lines += ["", table(("", first, second, "difference"), [(n, a, b, b - a) for n, a, b in rows])]
        show("\n".join(lines))
    sys.exit(RIGHT if same else WRONG)


def _asked(name: str, sizes: dict[str, Any], profile: Profile | None, limit_bytes: int) -> Asked:
    """FILE:SCHEDULE, with the sizes that the schedule has as parameters."""
    path, _, schedule = name.rpartition(":") if ":" in name and not name.endswith(".tile") else (name, "", "")
    document = parse(text_of(path, limit_bytes), path, limit_bytes=limit_bytes)
    known = {n for e in document.entries() for n in document.parameters(e)}
    return Asked(path, document, schedule or None, {n: v for n, v in sizes.items() if n in known}, profile)


def usage(kernel: Any) -> dict[str, int]:
    """The resources of a program's kernels, by name."""
    found: dict[str, int] = {"kernels": len(kernel.program.kernels)}
    for k, r in zip(kernel.program.kernels, kernel.resources, strict=True):
        found["threads of a block"] = max(found.get("threads of a block", 0), r.threads)
        blocks = r.grid[0] * r.grid[1] * r.grid[2]
        found["blocks"] = found.get("blocks", 0) + blocks
        found["shared bytes"] = max(found.get("shared bytes", 0), r.shared_bytes)
        found["register elements of a thread"] = max(found.get("register elements of a thread", 0), r.register_elements)
        registers = sum(b.elements * b.dtype.bytes for b in k.registers)
        found["register bytes of a thread"] = max(found.get("register bytes of a thread", 0), registers)
    found["global bytes"] = sum(b.bytes for b in kernel.program.buffers)
    found["workspace bytes"] = sum(b.bytes for b in kernel.program.buffers if b.role == "workspace")
    return found
