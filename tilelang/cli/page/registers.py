"""The part of the page about registers: the thread or unit of each level that holds each element of an accumulator or register tile."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelang.cli.page import figures
from tilelang.cli.page.contents import Contents
from tilelang.cli.page.held import Held
from tilelang.cli.page.html import Html, figure, join, tag
from tilelang.lowering import ir, printer
from tilelang.schedules.check import main_task

ONE_UNIT = {
    "previous": ("◀", "the unit before"),
    "next": ("▶", "the next unit"),
    "all": ("all", "all units"),
}


def registers_section(c: Contents) -> Html:
    """A picture of every register buffer in which tensor elements were identified; the others by name."""
    parts: list[Any] = []
    for number, kernel in enumerate(c.kernel.program.kernels):
        own = [h for h in c.record.held if h.kernel == number and h.buffer.memory == "register"]
        parts.append(tag("h3", f"kernel {kernel.name}") if len(c.kernel.program.kernels) > 1 and kernel.registers else None)
        parts.append(tag("div", *(picture(c, h, identity(c, h), _title(h), None) for h in own), class_="pictures"))
        others = [b for b in kernel.registers if b.role != "temporary" and b not in [h.buffer for h in own]]
        if others:
            names = [join(", " * (n > 0), tag("code", printer.buffer_text(b))) for n, b in enumerate(others)]
            parts.append(
                tag(
                    "p",
                    "These buffers hold no elements of a tensor, only partial or temporary results: ",
                    *names,
                    ".",
                    class_="lead",
                )
            )
    lead = (
        "The elements that each thread of the first block holds: of an input when its registers are first filled, of a computed tensor "
        "at the end. Click on a cell, or press Enter, to show only the elements of its thread (or of its warp, if colours are by warp)."
        if any(k.registers for k in c.kernel.program.kernels)
        else "No kernel has buffers in registers."
    )
    return tag("section", tag("h2", "Registers"), tag("p", lead, class_="lead"), *parts, id="registers")


def _title(held: Held) -> Html:
    return join(
        tag("b", f"{held.tensor} in {held.buffer.name}"), tag("span", printer.buffer_text(held.buffer), class_="quiet origin")
    )


def identity(c: Contents, held: Held) -> str:
    """The id of the picture of a buffer's contents."""
    return f"registers-{c.record.held.index(held)}"


def results(c: Contents) -> list[Held]:
    """The registers that hold tensors computed by the schedule's own steps: its outputs, and accumulators of their reductions."""
    task = main_task(c.kernel.computation, c.kernel.schedule.steps, c.kernel.target.profile)
    names = {t.name for t in (*task.outputs, *(t for s in task.states for t in s.tensors))}
    return [h for h in c.record.held if h.buffer.memory == "register" and h.tensor in names]


def picture(c: Contents, held: Held, identity: str, title: Html, level: str | None) -> Html:
    """A picture of a tensor by the units that hold it. level: the initial colouring; None: by the narrowest level."""
    kernel = c.kernel.program.kernels[held.kernel]
    levels = c.levels(kernel)
    colours = ["register"] * (held.buffer.elements > 1) + ["copies"] * bool((held.table.copies() > 1).any())
    colours = sorted([*reversed(levels), *colours], key=lambda word: word != level) or ["register"]
    script = _script(c, held, kernel, levels)
    about = f"{held.tensor} in {held.buffer.name}, by {colours[0]}"
    return figure(identity, title, about, colours, _facts(held, kernel), script, ONE_UNIT if levels else {})


def _script(c: Contents, held: Held, kernel: ir.Kernel, levels: dict[str, int]) -> str:
    """The data of a picture, which several figures may show."""
    place = c.record.held.index(held)
    if place not in c.held_script_of:
        c.held_script_of[place] = c.script(figures.register_figure(held, kernel.threads, levels, c.record))
    return c.held_script_of[place]


def _facts(held: Held, kernel: ir.Kernel) -> list[tuple[str, Any]]:
    holders = held.table.copies()
    low, high = int(holders.min()), int(holders.max())
    return [
        ("threads that hold elements", f"{np.unique(held.thread).size:,} of {kernel.threads:,}"),
        ("different elements", int(holders.size)),
        ("threads that hold one element", f"{low:,}" if low == high else f"{low:,} to {high:,}"),
        ("registers in use", f"{np.unique(held.place).size:,} of {held.buffer.elements:,} in a thread, {held.place.size:,} of"
         f" {held.buffer.elements * kernel.threads:,} in the block"),
    ]  # fmt: skip
