"""The data shared by all parts of the page: the kernel, its recorded run, its steps, and the figures made so far."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

from tilelang.cli.page.html import Html, data
from tilelang.cli.page.record import Record
from tilelang.errors import Span
from tilelang.lowering import ir
from tilelang.runtime.kernel import Kernel
from tilelang.schedules.explain import Refinement, flat
from tilelang.schedules.steps import Split, Step


@dataclasses.dataclass
class Contents:
    """The data shared by all parts of the page."""

    kernel: Kernel
    record: Record
    steps: list[tuple[Refinement, int]]  # each with its nesting depth in braces
    places: list[Span | None]  # where each step is written; an implied loop has the place of the step above it
    names: dict[str, str]  # files by their last path component
    figure_of: dict[int, str] = dataclasses.field(default_factory=dict)  # a move's index -> its figure's id
    script_of: dict[int, str] = dataclasses.field(default_factory=dict)  # a move's index -> the id of its picture's data
    held_script_of: dict[int, str] = dataclasses.field(default_factory=dict)  # the index in `held` -> the id of its data
    scripts: list[Html] = dataclasses.field(default_factory=list)

    def script(self, value: dict[str, Any]) -> str:
        """Adds a figure's data to the page; returns the id of its element."""
        identity = f"d{len(self.scripts)}"
        self.scripts.append(data(identity, value))
        return identity

    def levels(self, kernel: ir.Kernel) -> dict[str, int]:
        """The levels that have several units in a block, widest first, with their threads."""
        known = [(facts.name, facts.threads) for facts in self.kernel.target.profile.levels if facts.threads]
        return {name: threads for name, threads in known if threads < kernel.threads}

    def step_of(self, span: Span | None) -> str | None:
        """The only step of the schedule written at a place, or with braces there; None if there are several, or none."""
        found = [r.step for r, depth in self.steps if not depth and r.step is not None and span in spans(r.step)]
        return str(found[0]) if len(found) == 1 else None

    def place(self, span: Span | None) -> str:
        return shortened(str(span), self.names) if span is not None else ""


def contents(kernel: Kernel, record: Record) -> Contents:
    """The contents of a page."""
    found: set[Span | None] = {span for step in kernel.schedule.steps for span in spans(step)}
    found |= {getattr(s, "span", None) for k in kernel.program.kernels for s in ir.statements(k.body)}
    files = sorted({s.file for s in found if s is not None}, key=lambda f: (-len(f), f))
    steps = list(flat(kernel.refinements))
    return Contents(kernel, record, steps, _places(kernel.refinements), {f: os.path.basename(f) or f for f in files})


def _places(refined: Sequence[Refinement], above: Span | None = None) -> list[Span | None]:
    found: list[Span | None] = []
    for r in refined:
        own: Span | None = getattr(r.step, "span", None)
        above = own or above
        found += [above if isinstance(r.step, Split) else own, *_places(r.inside, above)]
    return found


def spans(step: Step) -> set[Span]:
    """The places of a step and of the steps in its braces."""
    inner = getattr(step, "steps", None) or ()
    own: Span | None = getattr(step, "span", None)
    return ({own} if own is not None else set()).union(*(spans(s) for s in inner))


def shortened(text: str, names: Mapping[str, str]) -> str:
    """A text with file paths shortened to their last component."""
    for path, name in names.items():
        text = text.replace(path, name)
    return text
