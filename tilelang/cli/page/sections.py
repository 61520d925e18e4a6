"""The textual parts of the page: steps, remarks, loops beside the source, buffers against the device's limits."""

from __future__ import annotations

import functools
from typing import Any

from tilelang.cli.page import loops
from tilelang.cli.page.contents import Contents, shortened, spans
from tilelang.cli.page.divisions import distinct
from tilelang.cli.page.html import Html, table, tag
from tilelang.cli.page.pictures import move_title
from tilelang.errors import DeviceError
from tilelang.lowering import ir
from tilelang.lowering.targets.c.emitter import emit_placed
from tilelang.runtime.kernel import DIALECTS
from tilelang.schedules.explain import notes

OWNERS = {"global": "launch", "shared": "block", "register": "thread"}  # the unit that has its own copy of a buffer


def steps_section(c: Contents) -> Html:
    """The steps with the spec after each: the remaining extent of each axis, the level, and where data is stored."""
    specs = [r.spec for r, _ in c.steps]
    axes = list(dict.fromkeys(a.name for spec in specs for a in spec.axes))
    reduced = {a.name for r, depth in c.steps if not depth for a in r.spec.axes if a.reduction}
    rows = []
    before: dict[int, dict[str, int]] = {}  # the remaining extent of each axis, by nesting depth of the steps
    for number, (r, depth) in enumerate(c.steps):
        left = {a.name: a.extent for a in r.spec.axes}
        whole = f"all of {r.spec.title}" if depth else "the whole computation"
        rows_lit = " ".join(_rows_of(c, number))
        lit: dict[str, Any] = {"type": "button", "data_rows": rows_lit} if rows_lit else {}
        indented = f"margin-left:{1.2 * depth:.1f}rem" if depth else None
        head = tag("button" if rows_lit else "code", r.head or whole, class_="step", id=f"step-{number}", style=indented, **lit)
        known = before.get(depth, {}) if r.step is not None else {}
        cells = [_extent_cell(left.get(a), known.get(a)) for a in axes]
        note = "implied" if r.implied else c.place(getattr(r.step, "span", None))
        rows.append([head, tag("span", note, class_="quiet"), r.spec.level, *cells, ", ".join(r.spec.residences)])
        before[depth] = left
    heads = ["step", "written at", "level", *(f"{a} (reduced)" if a in reduced else a for a in axes), "lives in"]
    means = tag("pre", tag("code", c.kernel.computation.text.rstrip("\n")))
    lead = (
        "The remaining extent of each axis after each step, for one unit of the level. Steps in braces are below their step, with the "
        "remaining extents of the region that it copies or computes. Selecting a step highlights its loops, and the lines of code that "
        "it divides among units."
    )
    return tag(
        "section", tag("h2", "Steps"), means, tag("p", lead, class_="lead"), table(heads, rows, class_="steps"), id="steps"
    )


def _extent_cell(now: int | None, before: int | None) -> Any:
    if now is None:
        return ""
    return tag("b", f"{now:,}") if before is not None and now != before else tag("span", f"{now:,}", class_="quiet")


def _rows_of(c: Contents, at: int) -> list[str]:
    """The tree rows whose statements come from a step or the steps in its braces, or do work that it divided."""
    step, place = c.steps[at][0].step, c.places[at]
    written = spans(step) if step is not None else set()
    found = []
    for number, kernel in enumerate(c.kernel.program.kernels):
        todo = list(loops.rows(kernel))
        while todo:
            row = todo.pop(0)
            if row.span in written or place in row.around:
                found.append(f"k{number}-s{row.numbers[0]}")
            else:
                todo = [r for _, inner in row.inside for r in inner] + todo
    return found


def _steps_of(c: Contents, row: loops.Row) -> dict[str, str | None]:
    """The steps that a row comes from, and others that divided its work, as attributes of the row."""
    own = [f"step-{n}" for n, (r, _) in enumerate(c.steps) if r.step is not None and row.span in spans(r.step)]
    around = [f"step-{n}" for n, place in enumerate(c.places) if place in row.around and f"step-{n}" not in own]
    return {"data_steps": " ".join(own) or None, "data_around": " ".join(around) or None}


# ---------------------------------------------------------------- remarks


def remarks(c: Contents) -> Html:
    """What to look at first: notes on the steps; moves that fetch too much, have bank conflicts, or leave threads idle."""
    items = [tag("li", f"{sentence}.") for sentence in notes(c.kernel.schedule, c.kernel.refinements, c.kernel.target.profile)]
    for place, move in enumerate(c.record.moves):
        kernel = c.kernel.program.kernels[move.kernel]
        r, said = c.record, []
        if move.buffer.memory == "global" and move.cost > move.least:
            said.append(f"{move.cost:,} transactions, although {move.least:,} would be enough for the requested bytes")
        if move.buffer.memory == "shared" and move.cost:
            said.append(f"{move.cost:,} extra phases by bank conflicts in {move.count:,} requests")
        element = move.touched[0]
        if move.buffer.memory == "global" and not move.writes and element.size >= 2 * (different := distinct(element).size):
            said.append(f"the block reads each element {element.size / different:.3g} times on average")
        if move.active < kernel.threads:
            said.append(f"{kernel.threads - move.active:,} of {kernel.threads:,} threads are idle")
        elif move.lanes < move.count * min(r.warp, kernel.threads):
            said.append(f"a request has {move.lanes / move.count:.3g} of {min(r.warp, kernel.threads)} threads on average")
        if said:
            items.append(tag("li", tag("a", move_title(c, move), href=f"#move-{place}"), ": ", "; ".join(said), "."))
    report = c.record.report
    if report is None:
        items.append(tag("li", "The whole launch is too large to simulate, so it was not checked for faults."))
    else:
        found = "The simulator ran the whole launch and found no faults." if not report.counts else str(report)
        items.append(tag("li", shortened(found, c.names), class_="fault" if report.counts else None))
    return tag("section", tag("h2", "What stands out"), tag("ul", *items, class_="remarks"), id="remarks")


# ---------------------------------------------------------------- loops and source


def loops_section(c: Contents) -> Html:
    """The statement tree of each kernel beside its source."""
    try:
        source, places = emit_placed(c.kernel.program, DIALECTS[c.kernel.target.dialect])
        lead = "Selecting a row of the tree highlights its source lines; selecting a line, its row. Both highlight their steps."
    except DeviceError as error:
        source, places = None, tuple(() for _ in c.kernel.program.kernels)
        lead = f"There is no source to show: {error.message}."
    parts: list[Any] = []
    for number, kernel in enumerate(c.kernel.program.kernels):
        pictures = {s: c.figure_of[i] for i, m in enumerate(c.record.moves) if m.kernel == number for s in m.statements}
        grid = " x ".join(str(n) for n in kernel.grid if n != 1) or "1"
        about = f"{grid} {'block' if grid == '1' else 'blocks'} of {kernel.threads:,} {'thread' if kernel.threads == 1 else 'threads'}"
        barriers = sum(isinstance(s, ir.Barrier) for s in ir.statements(kernel.body))
        about += f", {barriers} {'barrier' if barriers == 1 else 'barriers'}"
        parts.append(tag("h3", f"kernel {kernel.name}", tag("span", about, class_="quiet origin")))
        parts += [tag("p", shortened(note, c.names), class_="lead") for note in kernel.notes]
        shown = loops.Shown(pictures, c.names, functools.partial(_steps_of, c))
        parts.append(loops.section(number, kernel, source, places[number], shown))
    return tag("section", tag("h2", "Loops and source"), tag("p", lead, class_="lead"), *parts, id="loops")


# ---------------------------------------------------------------- buffers


def buffers_section(c: Contents) -> Html:
    """Every buffer with its size, and the sums against the device's limits."""
    profile, parts = c.kernel.target.profile, list[Any]()
    for kernel in c.kernel.program.kernels:
        rows = []
        for b in kernel.buffers:
            role = b.role or (f"ring of {b.ring}" if b.ring else "")
            elements = tag("code", f"{b.dtype}[{', '.join(map(str, b.shape))}]")
            rows.append([tag("code", b.name), b.memory, role, elements, b.bytes, OWNERS[b.memory]])
        if len(c.kernel.program.kernels) > 1:
            parts.append(tag("h3", f"kernel {kernel.name}"))
        parts.append(table(["buffer", "memory", "role", "elements", "bytes", "for each"], rows, class_="buffers"))
        words = sum(-(-b.bytes // 4) for b in kernel.registers)
        limits = [
            ("threads of a block", kernel.threads, profile.max_block_threads),
            ("bytes of shared memory of a block", kernel.shared_bytes, profile.memory("shared").capacity_bytes),
            ("registers of 32 bits of a thread, before the device's compiler", words, profile.registers_per_thread),
            ("bytes of global memory", sum(b.bytes for b in kernel.arguments), profile.memory("global").capacity_bytes),
        ]
        parts.append(table(["limit", "used", "of", ""], [_limit(*one) for one in limits], class_="limits"))
    lead = f"Limits of the profile {profile.name} ({profile.description})."
    return tag("section", tag("h2", "Buffers and limits"), tag("p", lead, class_="lead"), *parts, id="buffers")


def _limit(name: str, used: int, of: int | None) -> list[Any]:
    if of is None:
        return [name, used, "unknown", ""]
    return [
        name,
        used,
        of,
        tag(
            "span",
            tag("span", class_="bar", style=f"width:{min(100, 100 * used / of):.1f}%"),
            class_="meter",
            title=f"{used / of:.1%}",
        ),
    ]
