"""Which branches of the compiler a call takes, and which of them can only end in a refusal.

A branch is an arc from a line that has several successors, as coverage.py counts them. It *refuses* where whatever follows it in its
function raises: it can be taken by no program that is accepted.
"""

import ast
import functools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from coverage import Coverage
from coverage.parser import PythonParser

import tilelang

ROOT = Path(os.path.realpath(str(tilelang.__file__))).parent.parent
FOLDERS = ("lowering/build", "lowering/passes")
MEASURED = (
    *FOLDERS,
    "tilelang/schedules/check.py",
    "tilelang/schedules/checked_steps.py",
    "lowering/guards.py",
    "lowering/sets.py",
)


class Branch(NamedTuple):
    """From a line of a file to another one, or, negative, out of the function that begins there."""

    file: str
    line: int
    to: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line} -> {self.to if self.to > 0 else 'exit'}"


UNREACHED = ROOT / "benchmarks" / "results" / "unreached_branches.json"
REFUSALS = ("refuse", "refuse_step", "Refusal")
BITS = 28  # of a line in the numbers of coverage's tracer: two lines, and whether each is negative


class Meter:
    """Measures calls: `run` gives what a call gave, and which branches it took.

    The arcs are taken from the collector itself: to write them to coverage's database takes longer than to lower a small schedule.
    """

    def __init__(self) -> None:
        patterns = [str(ROOT / m) + ("" if m.endswith(".py") else "/*") for m in MEASURED]
        self.coverage = Coverage(data_file=None, branch=True, include=patterns, config_file=False)
        self.names: dict[str, str] = {}  # files, by the paths that the tracer gives
        self.known: dict[tuple[str, Any], frozenset[Branch]] = {}  # what an arc is, as the tracer gives it

    def run(self, call: Callable[[], Any], traced: bool = True) -> tuple[Any, set[Branch]]:
        """The call's result, or the exception that it raised, and its branches; none where not traced, which takes half of the time."""
        if traced:
            self.coverage.start()
        try:
            result: Any = call()
        except Exception as error:
            result = error
        finally:
            if traced:
                self.coverage.stop()
        found: set[Branch] = set()
        collector = self.coverage._collector
        if not traced or collector is None:
            return result, found
        for path, arcs in collector.data.items():
            for arc in arcs:
                if (path, arc) not in self.known:
                    self.known[path, arc] = self._branches(path, arc)
                found |= self.known[path, arc]
            arcs.clear()
        return result, found

    def _branches(self, path: str, arc: Any) -> frozenset[Branch]:
        """The branch that an arc is, if it is one."""
        name = self.names.setdefault(path, os.path.relpath(os.path.realpath(path), ROOT))
        if isinstance(arc, int):
            lines = (arc & ((1 << BITS) - 1), arc >> BITS & ((1 << BITS) - 1))
            arc = tuple(-n if arc >> (2 * BITS + i) & 1 else n for i, n in enumerate(lines))
        here = source(name)
        return frozenset(here.branches & {Branch(name, *a) for a in here.translated((arc,))})


def unreachable() -> dict[Branch, str]:
    """The branches that no accepted program takes, each with its proof: a committed list, which names lines by their text.

    Raises ValueError for an entry that names no branch.
    """
    found: dict[Branch, str] = {}
    for entry in json.loads(UNREACHED.read_text(encoding="utf-8")):
        lines = [text.strip() for text in (ROOT / entry["file"]).read_text(encoding="utf-8").splitlines()]
        here = source(entry["file"])
        named = {b for b in here.branches if lines[b.line - 1] == entry["line"] and b.to > 0 and lines[b.to - 1] in entry["to"]}
        if len({lines[b.to - 1] for b in named}) != len(entry["to"]):
            raise ValueError(f"{UNREACHED.name}: no such branch: {entry['file']}: {entry['line']}")
        found |= dict.fromkeys(named, entry["why"])
    return found


class Source:
    """The branches of a file. refusing: those after which nothing but a refusal comes."""

    def __init__(self, name: str):
        text = (ROOT / name).read_text(encoding="utf-8")
        self.parser = PythonParser(text=text, filename=name, exclude=r"^if TYPE_CHECKING:")  # no call takes them
        self.parser.parse_source()
        exits = self.parser.exit_counts()
        self.branches = {Branch(name, a, b) for a, b in self.parser.arcs() if a > 0 and exits.get(a, 0) > 1}
        tree = ast.parse(text)
        self._after = {line: (rest, function) for line, rest, function in _suites(tree)}
        self._telling = _telling(tree)
        self.refusing = {b for b in self.branches if self._refuses(b)}

    def translated(self, arcs: tuple[tuple[int, int], ...]) -> set[tuple[int, int]]:
        return set(self.parser.translate_arcs(arcs))

    def _refuses(self, branch: Branch) -> bool:
        rest, function = self._after.get(branch.to, ([], None))
        own = self._after.get(branch.line)
        return _ends(rest) or function in self._telling or own is not None and own[1] in self._telling


@functools.cache
def source(name: str) -> Source:
    return Source(name)


def every_source() -> Iterator[Source]:
    for name in MEASURED:
        path = ROOT / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            yield source(str(file.relative_to(ROOT)))


Suite = list[ast.stmt]


def _suites(
    tree: ast.AST, function: ast.AST | None = None, after: Suite | None = None
) -> Iterator[tuple[int, Suite, ast.AST | None]]:
    """For each statement: its line, the statements that run from it on, and the function that it is in. after: behind the tree."""
    inside = tree if isinstance(tree, ast.FunctionDef) else function
    goes_on = after if isinstance(tree, ast.If | ast.With | ast.Match | ast.match_case) and after else []
    for field in ("body", "orelse", "finalbody"):
        suite = getattr(tree, field, None)
        if isinstance(suite, list):
            for n, statement in enumerate(suite):
                yield statement.lineno, suite[n:] + goes_on, inside
                yield from _suites(statement, inside, suite[n + 1 :] + goes_on)
    for part in (*getattr(tree, "handlers", ()), *getattr(tree, "cases", ())):
        yield from _suites(part, inside, goes_on)


def _telling(tree: ast.AST) -> set[ast.AST]:
    """The functions of a module that run only where something is refused: they give the refusal, or a word of it.

    A private function is one of them if all that mentions it is such a function, or an argument of a call that makes a refusal.
    """
    functions = [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef)]
    found: set[ast.AST] = {f for f in functions if _makes_refusal(f)}
    inside = {id(x): f for f in functions for x in ast.walk(f)}  # of the innermost function: those inside others come later
    made = {
        id(x)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in REFUSALS
        for argument in (*call.args, *call.keywords)
        for x in ast.walk(argument)
    }
    uses = [x for x in ast.walk(tree) if isinstance(x, ast.Name | ast.Attribute)]
    while True:
        more = {
            f
            for f in functions
            if f not in found
            and f.name.startswith("_")
            and not f.name.endswith("__")
            and (mine := [x for x in uses if (x.id if isinstance(x, ast.Name) else x.attr) == f.name])
            and all(id(x) in made or inside.get(id(x)) in found | {f} for x in mine)
        }
        if not more:
            return found
        found |= more


def _ends(suite: list[ast.stmt]) -> bool:
    """Whether a suite always raises, or hands on to what does: a plain look, that no condition is followed in."""
    for statement in suite:
        match statement:
            case ast.Raise(exc=ast.Name(id=name) | ast.Call(func=ast.Name(id=name))) if name.lstrip("_")[0].isupper():
                return name in (
                    "Refusal",
                    "Findings",
                    "AssertionError",
                    "InternalError",
                )  # others are caught by the lowering itself
            case ast.Raise():
                return True
            case ast.Expr(value=ast.Call(func=ast.Name(id="later"))):
                return True
            case ast.Return(value=ast.Call(func=ast.Name(id=name))) if name in REFUSALS:
                return True
            case ast.Return() | ast.Continue() | ast.Break():
                return False
            case ast.If(body=body, orelse=orelse) if orelse and _ends(body) and _ends(orelse):
                return True
            case ast.If() | ast.For() | ast.While() | ast.With() | ast.Try() | ast.Match():
                if any(isinstance(x, ast.Return | ast.Continue | ast.Break) for x in ast.walk(statement)):
                    return False
    return False


def _makes_refusal(function: ast.AST | None) -> bool:
    """Whether a function gives a refusal, or nothing: it is called where one is raised."""
    returns = getattr(function, "returns", None)
    return isinstance(returns, ast.Name) and returns.id in ("Refusal", "NoReturn")
