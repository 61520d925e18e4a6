"""An HTML page about a compiled kernel: its steps, thread accesses, shared memory by banks, loops beside the source, limits.

The page is one self-contained file. `record` runs the simulator, `figures` turns its observations into pictures as data, and
`pictures`, `loops` and `sections` write the parts; page.css, pictures.js and page.js are included unchanged. The same kernel gives the
same text.
"""

from __future__ import annotations

from importlib import resources

from tilelang.cli.page import pictures, registers, sections
from tilelang.cli.page.contents import contents
from tilelang.cli.page.html import Html, join, tag
from tilelang.cli.page.record import record
from tilelang.runtime.kernel import Kernel

PARTS = (
    ("steps", "Steps"), ("remarks", "What stands out"), ("units", "Units"), ("moves", "Moves"), ("shared", "Shared memory"),
    ("registers", "Registers"), ("loops", "Loops and source"), ("buffers", "Buffers and limits"),
)  # fmt: skip


def page(kernel: Kernel) -> str:
    """The page of a kernel, compiled for any target; needs no device.

    >>> import tilelang as tl
    >>> i = tl.axes(i=8)
    >>> twice = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)).tile(i=4).to(tl.block)
    >>> text = page(tl.compile(twice, tl.target("opencl", profile="simulated")))
    >>> text[:15], "tile i=4 -&gt; block" in text
    ('<!DOCTYPE html>', True)
    """
    c = contents(kernel, record(kernel))
    name = kernel.computation.name
    body = [
        sections.steps_section(c), sections.remarks(c), pictures.units_section(c), pictures.moves_section(c),
        pictures.shared_section(c), registers.registers_section(c), sections.loops_section(c), sections.buffers_section(c),
    ]  # fmt: skip
    links = [tag("a", title, href=f"#{identity}") for identity, title in PARTS]
    head = tag(
        "head", tag("meta", charset="utf-8"), tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{name}: {kernel.target}"), Html(f"<style>{_file('page.css')}</style>"),
    )  # fmt: skip
    top = tag(
        "header", tag("h1", name, tag("span", str(kernel.target), class_="quiet origin")), tag("nav", *links, aria_label="parts")
    )
    tip = tag("div", id="tip", role="status", hidden=True)
    scripts = (Html(f"<script>{_file(name)}</script>") for name in ("pictures.js", "page.js"))
    text = tag("html", head, tag("body", top, tag("main", *body), tip, *c.scripts, *scripts), lang="en")
    return join(Html("<!DOCTYPE html>\n"), text, "\n")


def _file(name: str) -> str:
    return resources.files("tilelang.cli.page").joinpath(name).read_text(encoding="utf-8")
