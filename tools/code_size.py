"""Counts the code by package: files, lines of code and tokens, without blank lines, comments and docstrings.

    python tools/code_size.py                      # this checkout
    python tools/code_size.py --against HEAD~20    # beside a revision of git
    python tools/code_size.py --product            # the files that the compilation of a product of five steps passes through

Lines and tokens are Python's: a statement over three lines has three, a string is one token however long it is. Code in other
languages, package data and generated files are not counted. Below the table stand the files of more than 500 lines, blank ones and
comments included, and the functions of more than 60.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import io
import subprocess
import sys
import tokenize
import types
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOP = ("tilelang", "grammar", "lowering", "autoschedule", "examples", "tests", "benchmarks", "tools")
OUTSIDE = ("examples", "tests", "benchmarks", "tools")  # not part of what is installed
MOST_LINES, MOST_OF_FUNCTION = 500, 60
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.ENCODING,
}
Definition = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclasses.dataclass(frozen=True)
class Size:
    """Files, lines of code and tokens, which add up."""

    files: int = 0
    lines: int = 0
    tokens: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(self.files + other.files, self.lines + other.lines, self.tokens + other.tokens)


def size(text: str) -> Size:
    """The size of one file.

    >>> size('\"\"\"What it does.\"\"\"\\n\\nx = 1  # one\\n')
    Size(files=1, lines=1, tokens=3)
    """
    documented = {n for node in ast.walk(ast.parse(text)) if isinstance(node, Definition) for n in _docstring(node)}
    lines, tokens = set[int](), 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        covered = range(token.start[0], token.end[0] + 1)
        if token.type not in LAYOUT and not documented.issuperset(covered):
            lines.update(covered)
            tokens += 1
    return Size(1, len(lines), tokens)


def _docstring(node: Definition) -> range:
    """The lines of a docstring."""
    if ast.get_docstring(node, clean=False) is None:
        return range(0)
    return range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)


def long_functions(text: str) -> Iterator[tuple[str, int]]:
    """The functions with too many lines."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or 0) - node.lineno + 1
            if lines > MOST_OF_FUNCTION:
                yield node.name, lines


def package(file: str) -> str:
    """What a file is counted under: its folder, at most two deep; a test's or a benchmark's top folder."""
    parts = file.split("/")[:-1]
    return "/".join(parts[:1] if parts[0] in OUTSIDE else parts[:2])


def sources(revision: str | None) -> dict[str, str]:
    """The text of each file of Python that git knows, here or in a revision."""
    listed = _git("ls-files", *TOP) if revision is None else _git("ls-tree", "-r", "--name-only", revision, "--", *TOP)
    names = [name for name in listed.splitlines() if name.endswith(".py")]
    if revision is None:
        return {name: (ROOT / name).read_text(encoding="utf-8") for name in names if (ROOT / name).is_file()}
    return {name: _git("show", f"{revision}:{name}") for name in names}


def _git(*command: str) -> str:
    return subprocess.run(["git", *command], cwd=ROOT, check=True, capture_output=True, text=True, encoding="utf-8").stdout


def by_package(texts: Mapping[str, str]) -> dict[str, Size]:
    """The size of each package, with the sums that are asked for."""
    found: defaultdict[str, Size] = defaultdict(Size)
    for name, text in sorted(texts.items()):
        of = size(text)
        found[package(name)] += of
        if name.split("/")[0] not in OUTSIDE:
            found["all that is installed"] += of
        if name.startswith(("lowering/build/", "lowering/passes/")):
            found["build and passes"] += of
        if name.startswith("autoschedule/") and not name.startswith("autoschedule/profile/"):
            found["autoschedule without profile"] += of
    return dict(found)


def table(rows: Iterable[tuple[str, ...]]) -> str:
    listed = list(rows)
    widths = [max(map(len, column)) for column in zip(*listed, strict=True)]
    return "\n".join("  ".join([r[0].ljust(widths[0]), *map(str.rjust, r[1:], widths[1:])]) for r in listed)


def report(now: Mapping[str, str], before: Mapping[str, str] | None) -> str:
    """The table, and what is too long."""
    sizes, old = by_package(now), by_package(before) if before is not None else {}
    rows: list[tuple[str, ...]] = [
        ("", "files", "lines", "tokens", *(("lines before", "tokens before") if before is not None else ()))
    ]
    for name in sorted(sizes.keys() | old.keys(), key=lambda name: (" " in name, name)):
        here, there = sizes.get(name, Size()), old.get(name, Size())
        rows.append((name, str(here.files), str(here.lines), str(here.tokens)))
        if before is not None:
            rows[-1] += (f"{there.lines} ({here.lines - there.lines:+})", f"{there.tokens} ({here.tokens - there.tokens:+})")
    lines = [table(rows), ""]
    lines += [f"{name}: {n} lines" for name, text in now.items() if (n := text.count("\n")) > MOST_LINES]
    lines += [f"{name}: `{function}` has {n} lines" for name, text in now.items() for function, n in long_functions(text)]
    return "\n".join(lines)


def passed_by_a_product() -> list[str]:
    """The files whose functions run while a product with a schedule of five steps is compiled for a processor."""
    sys.path.insert(0, str(ROOT))
    import tilelang as tl

    i, j, k = tl.axes(i=256, j=256, k=256)
    a, b = tl.input("A", tl.float32, i, k), tl.input("B", tl.float32, k, j)
    product = tl.define("C", tl.sum(a[i, k] * b[k, j], over=k), i, j)
    target = tl.target("cpu", profile="avx512")
    seen = set[str]()

    def called(frame: types.FrameType, event: str, argument: object) -> None:
        seen.add(frame.f_code.co_filename)

    schedule = tl.schedule(product).tile(i=64, j=64).to(tl.block).accumulate(tl.register).tile(i=4, j=32).to(tl.thread)
    schedule = schedule.split(k=64).vectorize(j=16)
    sys.setprofile(called)
    try:
        assert tl.compile(schedule, target).source
    finally:
        sys.setprofile(None)
    folders = {(ROOT / name).resolve(): name for name in TOP if name not in OUTSIDE}
    found = set[str]()
    for file in seen:
        path = Path(file).resolve()
        found |= {
            f"{name}/{path.relative_to(folder).as_posix()}" for folder, name in folders.items() if path.is_relative_to(folder)
        }
    return sorted(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--against", metavar="REVISION", help="a revision of git to compare with")
    parser.add_argument("--product", action="store_true", help="list the files that the compilation of a product passes through")
    given = parser.parse_args()
    if given.product:
        files = passed_by_a_product()
        print("\n".join([*files, f"{len(files)} files"]))
        return 0
    print(report(sources(None), sources(given.against) if given.against else None))
    return 0


if __name__ == "__main__":
    sys.exit(main())
