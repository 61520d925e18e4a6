"""The parts of the page with pictures: units, moves, shared memory."""

from __future__ import annotations

import math
from typing import Any

from tilelang.cli.page import figures, loops, registers
from tilelang.cli.page.contents import Contents
from tilelang.cli.page.divisions import Division
from tilelang.cli.page.html import Html, figure, join, table, tag
from tilelang.cli.page.record import Move
from tilelang.lowering import ir, printer
from tilelang.schedules.steps import Tile


def move_title(c: Contents, move: Move) -> str:
    """A short description of a move."""
    others = " and ".join(move.partners)
    if move.writes:
        return f"write {move.buffer.name}" + (f" from {others}" if others else "")
    return f"read {move.buffer.name}" + (f" into {others}" if others else "")


def moves_section(c: Contents) -> Html:
    """A picture of every move of each kernel's first block, in order of first access."""
    parts: list[Any] = []
    for number, kernel in enumerate(c.kernel.program.kernels):
        own = [(i, m) for i, m in enumerate(c.record.moves) if m.kernel == number]
        drawn = [_move(c, i, m, kernel) for i, m in own]
        parts.append(tag("h3", f"kernel {kernel.name}") if len(c.kernel.program.kernels) > 1 else None)
        parts.append(tag("div", *drawn, class_="pictures"))
    cut = (
        tag("p", "The block makes too many accesses: only the first ones are shown and counted.", class_="lead")
        if c.record.cut
        else None
    )
    lead = (
        "The accesses of the first block's threads to global and shared memory, recorded by the simulator. The colour of a cell is "
        "that of the first thread that accesses it. Point at a cell, or move with the arrow keys, to see which thread that is. Press "
        "Enter or click to see the whole request of its warp."
    )
    return tag("section", tag("h2", "Moves"), tag("p", lead, class_="lead"), cut, *parts, id="moves")


def _move(c: Contents, place: int, move: Move, kernel: ir.Kernel) -> Html:
    script = _move_script(c, place, kernel)
    identity = f"move-{place}"
    c.figure_of[place] = identity
    step = c.step_of(move.span)
    origin = step if step is not None else (f"from {c.place(move.span)}" if move.span is not None else "")
    first = f"k{move.kernel}-s{_row_number(kernel, move.statements[0])}"
    title = join(
        tag("b", move_title(c, move)),
        tag("span", origin, class_="quiet origin"),
        tag("a", "in the loops", href=f"#{first}", class_="see"),
    )
    return figure(identity, title, move_title(c, move), _colours(c, kernel), move_facts(c, move, kernel), script)


def _move_script(c: Contents, place: int, kernel: ir.Kernel) -> str:
    """The data of a move's picture, which several figures may show."""
    if place not in c.script_of:
        c.script_of[place] = c.script(figures.move_figure(c.record.moves[place], kernel.threads, c.levels(kernel), c.record))
    return c.script_of[place]


def _colours(c: Contents, kernel: ir.Kernel) -> list[str]:
    """The criteria for colouring cells; thread and warp only if there are several."""
    return [*reversed(c.levels(kernel)), "time", "touches"]


def _row_number(kernel: ir.Kernel, number: int) -> int:
    """The first statement of the row that contains a statement."""
    todo = list(loops.rows(kernel))
    while todo:
        row = todo.pop(0)
        if number in row.numbers:
            return row.numbers[0]
        todo = [r for _, inner in row.inside for r in inner] + todo
    raise AssertionError(f"no row has statement {number}")


def move_facts(c: Contents, move: Move, kernel: ir.Kernel) -> list[tuple[str, Any]]:
    """The simulator's counts for a move."""
    size, r = move.buffer.dtype.bytes, c.record
    element, _, _ = move.touched
    facts: list[tuple[str, Any]] = [
        ("active threads", f"{move.active:,} of {kernel.threads:,}"),
        ("requests by warps", move.count),
        ("threads in a request", f"{move.lanes / move.count:.3g} of {min(r.warp, kernel.threads)}"),
        ("elements", f"{len(set(element.tolist())):,}, touched {element.size:,} times ({size} bytes each)"),
    ]
    if move.buffer.memory == "global":
        moved = move.cost * r.transaction_bytes
        facts.append((f"transactions of {r.transaction_bytes} bytes", f"{move.cost:,}, at best {move.least:,}"))
        facts.append(("requested share of the bytes moved", f"{move.asked:,} of {moved:,} ({move.asked / moved:.0%})"))
    else:
        facts.append(("extra phases by bank conflicts", f"{move.cost:,} in {move.count:,} requests"))
    return facts


# ---------------------------------------------------------------- units


def units_section(c: Contents) -> Html:
    """The parallel mappings of the main chain, each with a picture of the outputs by the unit that stores them."""
    parts: list[Any] = []
    drawn = 0
    for r, depth in c.steps:
        step = r.step
        if depth or not isinstance(step, Tile):
            continue
        pictures = _spread(c, step, drawn)
        drawn += len(pictures)
        parts += [tag("h3", tag("code", str(step))), tag("div", *pictures, class_="pictures") if pictures else None]
        if not pictures:
            parts.append(tag("p", _no_spread(c, step), class_="lead"))
    if not parts:
        parts.append(
            tag("p", "The schedule maps nothing to parallel units: one thread of one block does all the work.", class_="lead")
        )
    return tag("section", tag("h2", "Units"), *parts, id="units")


def _no_spread(c: Contents, step: Tile) -> str:
    if step.level != "block":
        return "The first block stores no output."
    if all(0 in k.grid for k in c.kernel.program.kernels):
        return "There are no blocks, because there is nothing to compute."
    if all(math.prod(k.grid) == 1 for k in c.kernel.program.kernels):
        return "There is only one block, which computes everything."
    return "The launch is too large, or its accesses depend too much on its data, for its blocks to be shown."


def _spread(c: Contents, step: Tile, drawn: int) -> list[Html]:
    out: list[Html] = []
    if step.level == "block":
        for division in c.record.divisions:
            out.append(_division(c, division, f"unit-{drawn + len(out)}"))
        return out
    for held in registers.results(c):
        title = _tile_title(f"{held.tensor} by {step.level}", "the registers", registers.identity(c, held))
        out.append(registers.picture(c, held, f"unit-{drawn + len(out)}", title, step.level))
    return out or _stored(c, step, drawn)


def _tile_title(what: str, link: str, to: str) -> Html:
    about = tag("span", "the tile of the first block", class_="quiet origin")
    return join(tag("b", what), about, tag("a", link, href=f"#{to}", class_="see"))


def _stored(c: Contents, step: Tile, drawn: int) -> list[Html]:
    """The outputs by the units that store them."""
    out: list[Html] = []
    for place, move in enumerate(c.record.moves):
        if move.writes and move.buffer.role == "output":
            title = _tile_title(f"{move.buffer.name} by {step.level}", "the move", f"move-{place}")
            kernel = c.kernel.program.kernels[move.kernel]
            facts = [("threads that store", f"{move.active:,} of {kernel.threads:,}")]
            colours = sorted(_colours(c, kernel), key=lambda word: word != step.level)
            about = f"{move.buffer.name} by {step.level}"
            out.append(figure(f"unit-{drawn + len(out)}", title, about, colours, facts, _move_script(c, place, kernel)))
    return out


def _division(c: Contents, division: Division, identity: str) -> Html:
    kernel = c.kernel.program.kernels[division.kernel]
    grid = " x ".join(str(n) for n in kernel.grid if n != 1)
    verb = "written" if division.writes else "read"
    title = join(
        tag("b", f"{division.buffer.name} {verb} by blocks"),
        tag("span", f"the whole launch, {grid} blocks", class_="quiet origin"),
    )
    touched = division.blocks[division.blocks > 0]
    low, high = int(touched.min()), int(touched.max())
    each = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    facts = [
        ("blocks", math.prod(kernel.grid)),
        ("elements touched", f"{touched.size:,} of {division.buffer.elements:,}"),
        ("blocks that touch one element", each),
    ]
    script = c.script(figures.division_figure(division, kernel, c.record))
    return figure(identity, title, f"{division.buffer.name} {verb} by blocks", ["block", "blocks"], facts, script, {})


# ---------------------------------------------------------------- shared memory


def shared_section(c: Contents) -> Html:
    """Each shared buffer: its location, the bank of each input element, and its moves."""
    parts = [
        part for k, kernel in enumerate(c.kernel.program.kernels) for b in kernel.shared for part in _shared(c, k, kernel, b)
    ]
    banks = f"A row is {c.record.banks} banks of {c.record.bank_bytes} bytes."
    profile = c.kernel.target.profile
    if not profile.memory("shared").banks:
        banks += f" The profile {profile.name} does not describe banks; these are the simulator's default."
    lead = tag("p", banks if parts else "No kernel uses shared memory.", class_="lead")
    return tag("section", tag("h2", "Shared memory"), lead, *parts, id="shared")


def _shared(c: Contents, number: int, kernel: ir.Kernel, buffer: ir.Buffer) -> list[Any]:
    """One buffer of shared memory."""
    own = [(i, m) for i, m in enumerate(c.record.moves) if m.kernel == number and m.buffer.name == buffer.name]
    parts: list[Any] = [tag("h3", buffer.name, tag("span", printer.buffer_text(buffer), class_="quiet origin"))]
    parts.append(tag("p", _place(kernel, buffer), class_="lead"))
    if own:
        rows = [[tag("a", move_title(c, m), href=f"#move-{i}"), m.count, m.cost, m.cost / m.count] for i, m in own]
        parts.append(table(["access", "requests", "extra phases", "in a request"], rows))
    held = next((h for h in c.record.held if h.kernel == number and h.buffer == buffer), None)
    if held is not None:
        script = c.script(figures.layout_figure(held, own[0][1].base, c.record))
        about = tag("span", f"contents when it is {held.moment} read", class_="quiet origin")
        title = join(tag("b", f"{buffer.name} by banks"), about)
        facts = [(f"elements that hold one of {held.tensor}", f"{held.place.size:,} of {buffer.elements:,}")]
        identity = f"shared-{number}-{kernel.shared.index(buffer)}"
        picture = figure(identity, title, f"{buffer.name} by banks", ["content"], facts, script, {})
        return [*parts, tag("div", picture, class_="pictures")]
    if any(not m.writes for _, m in own):
        return [*parts, tag("p", "It holds no elements of a tensor, only partial results.", class_="lead")]
    return [*parts, tag("p", "It was not read.", class_="lead")]


def _place(kernel: ir.Kernel, buffer: ir.Buffer) -> str:
    """The location of a shared buffer, and the buffers that it overlaps."""
    if buffer.offset is None:
        return f"{buffer.bytes:,} bytes."
    first, end = buffer.offset, buffer.offset + buffer.bytes
    others = [
        o.name for o in kernel.shared if o != buffer and o.offset is not None and o.offset < end and first < o.offset + o.bytes
    ]
    shares = f", which it shares with {' and '.join(others)}" if others else ""
    return f"{buffer.bytes:,} bytes, from {first:,} to {end - 1:,}{shares}."
