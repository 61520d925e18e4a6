"""Builds the guide and the API reference as a site: `make site`."""

import re

from sphinx.application import Sphinx

project = "tilelang"
author = "the tilelang authors"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
html_theme = "furo"
html_title = "tilelang"
exclude_patterns = ["site"]
root_doc = "index"
default_role = "code"  # docstrings write code between single backticks
nitpicky = False
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline"]
autodoc_default_options = {"members": True, "member-order": "bysource", "show-inheritance": True}
autodoc_typehints = "description"
autodoc_preserve_defaults = True
suppress_warnings = ["myst.xref_ambiguous"]


def as_restructured_text(app: Sphinx, what: str, name: str, item: object, options: object, lines: list[str]) -> None:
    """Docstrings are plain text: an indented block is code, and needs a `::` before it."""
    made: list[str] = []
    for line, before in zip(lines, ["", *lines], strict=False):
        begins = line.startswith("    ") and not before.strip() and not line.lstrip().startswith(">>>")
        if begins and not any(m.startswith("    ") or m == "::" for m in made[-2:]):
            made += ["::", ""]
        made.append(line)
    lines[:] = [re.sub(r"(?<!`)\*", r"\\*", line) if not line.startswith(("    ", ">>>")) else line for line in made]


def for_the_site(app: Sphinx, page: str, content: list[str]) -> None:
    """The guide's pages in the order of its table; the README is not a page of the site."""
    content[0] = re.sub(r"\[(\w+)\]\(\.\./README\.md[^)]*\)", r"\1", content[0])
    if page == "index":
        pages = dict.fromkeys(re.findall(r"^\| \[[\w ]+\]\((\w+)\.md\)", content[0], re.MULTILINE))
        content[0] += "\n```{toctree}\n:hidden:\n\n" + "\n".join(pages) + "\n```\n"


def setup(app: Sphinx) -> None:
    app.connect("source-read", for_the_site)
    app.connect("autodoc-process-docstring", as_restructured_text)
