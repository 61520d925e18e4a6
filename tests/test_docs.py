"""The guide and the README do what they say: every Python block runs, and prints what is shown after it.

The blocks of a file run in order in one namespace, as a reader would type them. A `text` block directly after a `python` block is what
that block prints, `...` standing for anything. Errors and sources name places as `example.py:LINE`, counted from the block's first
line.
`pytest --update-golden` writes the outputs anew, except those with `...`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import doctest
import io
import linecache
import re
from pathlib import Path
from typing import Any

import pytest

import tilelang as tl

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]
NAME = "example.py"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclasses.dataclass(frozen=True)
class Block:
    """A Python block: its text, the line of the page on which it begins, and where its output stands in the page (None: not shown)."""

    code: str
    line: int
    output: tuple[int, int] | None


def blocks(page: str) -> list[Block]:
    """The Python blocks of a page, in order."""
    fences = list(FENCE.finditer(page))
    found = []
    for k, fence in enumerate(fences):
        if fence[1] != "python":
            continue
        after = fences[k + 1] if k + 1 < len(fences) else None
        shown = after is not None and after[1] == "text" and not page[fence.end() : after.start()].strip()
        line = page.count("\n", 0, fence.start(2)) + 1
        found.append(Block(fence[2], line, after.span(2) if after is not None and shown else None))
    return found


def run(block: Block, namespace: dict[str, Any]) -> str:
    """What a block prints."""
    linecache.cache[NAME] = (len(block.code), None, block.code.splitlines(keepends=True), NAME)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block.code, NAME, "exec"), namespace)
    return printed.getvalue()


def matches(expected: str, printed: str) -> bool:
    """Whether an output is as shown; trailing spaces and `...` do not count."""
    want, got = ("\n".join(line.rstrip() for line in text.splitlines()) + "\n" for text in (expected, printed))
    return doctest.OutputChecker().check_output(want, got, doctest.ELLIPSIS)


@pytest.mark.usefixtures("only_shipped_instructions")
@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.stem)
def test_blocks_run_and_print_what_is_shown(path: Path, request: pytest.FixtureRequest) -> None:
    page = path.read_text(encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": "example"}
    changed: list[tuple[tuple[int, int], str]] = []
    for block in blocks(page):
        try:
            printed = run(block, namespace)
        except Exception as error:
            pytest.fail(f"{path.name}:{block.line}: {type(error).__name__}: {error}")
        if block.output is None:
            assert not printed, f"{path.name}:{block.line} prints, and the page does not show it:\n{printed}"
            continue
        assert printed, f"{path.name}:{block.line} prints nothing, and the page shows an output"
        expected = page[slice(*block.output)]
        if not matches(expected, printed):
            update = request.config.getoption("--update-golden", default=False) and "..." not in expected
            assert update, f"{path.name}:{block.line} shows\n{expected}\nand prints\n{printed}"
            changed.append((block.output, "\n".join(line.rstrip() for line in printed.splitlines()) + "\n"))
    for (start, end), printed in reversed(changed):
        page = page[:start] + printed + page[end:]
    if changed:
        path.write_text(page, encoding="utf-8")


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.stem)
def test_links_lead_somewhere(path: Path) -> None:
    page = FENCE.sub("", path.read_text(encoding="utf-8"))
    targets = [t for t in re.findall(r"\]\(([^)\s]+)\)", page) if not t.startswith(("http:", "https:"))]
    for target in targets:
        name, _, anchor = target.partition("#")
        file = path.parent / name if name else path
        assert file.exists(), f"{path.name} links to {target}"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", FENCE.sub("", file.read_text(encoding="utf-8")), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}, f"{path.name}: {target}"


def test_every_term_of_the_glossary_is_linked_to_its_chapter() -> None:
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    entries = [" ".join(entry.split()) for entry in page.split("\n- ")[1:]]
    terms = [entry.split("**")[1] for entry in entries]
    assert [entry for entry in entries if not re.search(r"\(\[[^]]+\]\([\w#.-]+\)\)$", entry)] == []
    assert terms == sorted(set(terms))


def test_the_guide_has_a_page_for_every_link_of_its_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert {p.name for p in PAGES if p.parent == ROOT / "docs"} - {"index.md"} <= set(re.findall(r"\]\((\w+\.md)\)", index))


def test_every_public_name_is_in_the_guide() -> None:
    text = "\n".join(p.read_text(encoding="utf-8") for p in PAGES)
    assert [n for n in tl.__all__ if not re.search(rf"\btl\.{n}\b", text)] == []


def test_every_method_is_in_the_guide() -> None:
    text = "\n".join(p.read_text(encoding="utf-8") for p in PAGES)
    methods = [n for c in (tl.Schedule, tl.Kernel, tl.Computation) for n in dir(c) if not n.startswith("_")]
    methods += ["pad", "swizzle", "place"]
    assert [n for n in methods if not re.search(rf"\.{n}\b", text)] == []


def test_the_changelog_has_the_version() -> None:
    assert f"## {tl.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
