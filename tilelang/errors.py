"""What goes wrong, as values: a code, a message, the place, the smallest counterexample, and the mend.

Everything that a person can cause derives from `TileLangError`. An error is rendered late, by `render`, in one form:

    error[tile-without-level]: `tile` needs a level
      --> gemm.py:12
      = note: ...
      = help: ...
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import linecache
import operator
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FrameType
from typing import Any, ParamSpec, TypeVar


@dataclasses.dataclass(frozen=True)
class Span:
    """A place in a file: lines and columns count from 1; line 0 means the whole file, column 0 the whole line.

    around: of a statement's place, the places of the steps that divided the work which it does, the first one first.
    """

    file: str
    line: int
    column: int = 0
    end_column: int = 0
    around: tuple[Span, ...] = dataclasses.field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        return self.file + (f":{self.line}" if self.line else "") + (f":{self.column}" if self.column else "")


LONGEST = 200  # characters of a line that are shown
MOST_FINDINGS = 20  # faults of one part of a text that are shown; more are seldom read
MOST_NAMES = 12  # that a mend lists

_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_INSIDE = tuple(
    os.path.realpath(p) + os.sep
    for p in (_PACKAGE, *(os.path.join(_PACKAGE, n) for n in ("grammar", "lowering", "autoschedule")))
)


def caller_span() -> Span | None:
    """The nearest line outside this package that is being executed: where a schedule built in Python comes from.

    None under the command line, whose caller wrote no Python.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith("<frozen importlib"):  # what the package says of itself while it is imported has no caller
            return None
        module = str(frame.f_globals.get("__name__", ""))
        if module == "tilelang.cli" or module.startswith("tilelang.cli."):
            return None
        made_here = module.startswith("tilelang.")  # what dataclasses write has no file
        if not made_here and not name.startswith((_PACKAGE + os.sep, *_INSIDE, functools.__file__, contextlib.__file__)):
            return Span(name, frame.f_lineno)
        frame = frame.f_back
    return None


def at_step(error: TileLangError, step: Any) -> TileLangError:
    """An error at the place of a step, unless it has one in the same file already."""
    span = getattr(step, "span", None)
    if span is not None and (error.span is None or error.span.file != span.file):
        error.span = span
    return error


def brief(value: Any) -> str:
    """A value on one line, cut where it is long; texts in quotes."""
    text = " ".join((repr(value) if isinstance(value, str) else str(value)).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def counted(count: int, noun: str, plural: str = "") -> str:
    """A count with its noun. plural: of the noun; empty where it ends in -s.

    >>> counted(1, "step"), counted(2, "step"), counted(0, "axis", "axes")
    ('1 step', '2 steps', '0 axes')
    """
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def whole_number(value: Any) -> int | None:
    """The int that a whole number of Python's or NumPy's is; None for everything else, True and False among it.

    >>> whole_number(3), whole_number(True), whole_number(int)
    (3, None, None)
    """
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except Exception:  # whatever kind of object it is: its own refusal to be an index
        return None


def is_path(value: Any) -> bool:
    """Whether the operating system can be given a value as a path: a text or a path of Python's, without what no name can hold.

    >>> is_path("schedules/gemm.tile"), is_path("gemm\\0.tile"), is_path(1)
    (True, False, False)
    """
    try:
        return isinstance(value, (str, os.PathLike)) and b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:  # half of a pair of surrogates
        return False


def called_from_inside() -> bool:
    """Whether the function that calls this one was called from this package: by the compiler, not from a person's definition."""
    # By the module's name and not the file's: the methods of the standard library's dataclasses have no file.
    name = str(sys._getframe(2).f_globals.get("__name__"))
    return name == "tilelang" or name.startswith("tilelang.")


class TileLangError(Exception):
    """Something a person can mend.

    code: short and stable, `words-with-dashes`. span: where it was caused, the caller's line where none is given.
    counterexample: the smallest concrete case that shows it. mend: what to do. proven: True where the fault is certain, False where
    it could not be shown to be absent.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        span: Span | None = None,
        counterexample: str | None = None,
        mend: str | None = None,
        proven: bool = True,
        notes: tuple[str, ...] = (),
    ) -> None:
        super().__init__(code, message)
        self.code, self.message, self.span = code, message, span or caller_span()
        self.counterexample, self.mend, self.proven, self.notes = counterexample, mend, proven, notes

    def __str__(self) -> str:
        return self.render()

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.__getstate__())

    def __getstate__(self) -> dict[str, Any]:
        return {k: getattr(self, k) for k in ("code", "message", "span", "counterexample", "mend", "proven", "notes")}

    def words(self) -> tuple[str, str | None]:
        """The message and the mend, in the words of a file's text where the error is in one."""
        if self.span is None or not self.span.column:
            return self.message, self.mend
        return in_words_of_text(self.message), in_words_of_text(self.mend) if self.mend else self.mend

    def render(self) -> str:
        """The error as text, several lines, without colour."""
        message, mend = self.words()
        lines = [f"error[{self.code}]: {message}"]
        if self.span is not None:
            lines.append(f"  --> {self.span}")
            text = linecache.getline(self.span.file, self.span.line).rstrip() if self.span.line else ""
            text = re.sub(r"[\s\x00-\x1f\x7f]", " ", text)  # one column each, whatever a terminal makes of them
            if text:
                gutter = str(self.span.line)
                if self.span.column:
                    shown, column = _window(text, self.span.column)
                    width = min(max(1, self.span.end_column - self.span.column), max(1, len(shown) - column + 1))
                    lines += [f"{gutter} | {shown}", f"{' ' * len(gutter)} | {' ' * (column - 1)}{'^' * width}"]
                else:
                    lines.append(f"{gutter} | {text.strip()}")
        lines += [f"  = note: {note}" for note in self.notes]
        if self.counterexample:
            head = f"  = {'counterexample' if self.proven else 'not proven'}:"
            lines.append(head + ("" if self.counterexample.startswith("\n") else " ") + self.counterexample)
        if mend:
            lines.append(f"  = help: {mend}")
        return "\n".join(lines)


def _window(text: str, column: int) -> tuple[str, int]:
    """What is shown of a line, and where the column is in it: of a long line, what stands around the column."""
    if len(text) <= LONGEST:
        return text, column
    first = max(0, min(column - LONGEST // 2, len(text) - LONGEST))
    before, after = "..." * (first > 0), "..." * (first + LONGEST < len(text))
    return f"{before}{text[first : first + LONGEST]}{after}", column - first + len(before)


def nearest(word: str, words: Iterable[str]) -> str | None:
    """The word that was probably meant."""
    import difflib

    folded = {w.casefold(): w for w in words}
    near = difflib.get_close_matches(word.casefold(), folded, 1, 0.6)
    return folded[near[0]] if near else None


def meant(word: str, known: Iterable[str], none: str = "there are none") -> str:
    """The mend of a name that is not there: the one that was probably meant, else those that are known; none: where there are none.

    >>> print(meant("lod", ["load", "split"]), meant("q", ["m", "n"]))
    did you mean `load`? use one of m, n
    """
    names = list(dict.fromkeys(known))
    near = nearest(word, names)
    listed = ", ".join(names[:MOST_NAMES]) + (f", ... ({len(names)} in all)" if len(names) > MOST_NAMES else "")
    return f"did you mean `{near}`?" if near else f"use one of {listed}" if names else none


P = ParamSpec("P")
R = TypeVar("R")


def not_too_deep(function: Callable[P, R]) -> Callable[P, R]:
    """The function, with what is nested deeper than Python's stack as an error of ours."""

    @functools.wraps(function)
    def wrapped(*arguments: P.args, **named: P.kwargs) -> R:
        try:
            return function(*arguments, **named)
        except RecursionError:
            mend = (
                "nest fewer operations: compute some of the definitions in global, so that they are not substituted; or nest fewer"
                " steps"
            )
            raise ComputationError("too-deep", "operations are nested too deeply", mend=mend) from None

    return wrapped


# What Python's forms are called in a file's text; the first come first.
_OF_TEXT = [
    (r"\.?tile\(\.\.\.\)\.to\(tl\.(\w+)\)", r"tile ... -> \1"),
    (r"\.to\(tl\.(\w+)\)", r"-> \1"),
    (r"-> (\w+) count=(-?\d+)", r"-> \1 \2"),
    (r'tl\.input\("(\w+)", \.\.\., range=\((\S+), (\S+)\)\)', r"input \1: ... in \2 .. \3"),
    (r"\brange=\((\S+), (\S+)\)", r"in \1 .. \2"),
    (r"the range \((-?\d+), (-?\d+)\)", r"the range \1 .. \2"),
    (r"over=k, or over=\(k, l\)", "as in sum[k], or sum[k, l]"),
    (r"outputs=\(([^()]*)\)", r"outputs \1"),
    (r"as in lambda [^:]*: \(", "as in layout ("),
    (r"the function's parameters", "the dimensions' names"),
    (r"of the parameters and whole numbers", "of the dimensions' names and whole numbers"),
    (r"\bor (?:tl\.)?hole$", "or `?`"),
    (r"\btl\.(\w)", r"\1"),
]


def in_words_of_text(text: str) -> str:
    """What is said of a file's text, which has a column: `tl.where(x)` is written `where(x)` there.

    >>> in_words_of_text("give tiles to blocks: .tile(...).to(tl.block), not tl.shared")
    'give tiles to blocks: tile ... -> block, not shared'
    """
    for form, said in _OF_TEXT:
        text = re.sub(form, said, text)
    return text


def _rebuild(cls: type[TileLangError], state: dict[str, Any]) -> TileLangError:
    error = cls(state.pop("code"), state.pop("message"), **state)
    error.span = state["span"]  # None stays None
    return error


class Refusal(TileLangError):
    """A schedule, or one step of it, that is refused."""


class ParseError(TileLangError):
    """Text that is not a program."""


class Findings(ParseError, Refusal):
    """Several errors of one text, in its order. errors: all of them; code, message, span and mend are the first one's."""

    def __init__(self, errors: Iterable[TileLangError]) -> None:
        self.errors = tuple(sorted(errors, key=_in_text))
        first = self.errors[0]
        super().__init__(
            first.code, first.message, span=first.span, counterexample=first.counterexample, mend=first.mend, notes=first.notes
        )

    def render(self) -> str:
        return "\n\n".join(e.render() for e in self.errors)

    def __reduce__(self) -> tuple[Any, ...]:
        return Findings, (self.errors,)


def _in_text(error: TileLangError) -> tuple[int, int]:
    return (error.span.line, error.span.column) if error.span is not None else (0, 0)


def together(errors: Sequence[TileLangError]) -> TileLangError:
    """One error for the faults of a text: the only one itself, else Findings; of more than MOST_FINDINGS the first, which say so."""
    shown = sorted(errors, key=_in_text)[:MOST_FINDINGS]
    if len(errors) > MOST_FINDINGS:
        shown[-1].notes += (f"only the first {MOST_FINDINGS} faults are shown, there are more",)
    return shown[0] if len(shown) == 1 else Findings(shown)


def each(error: TileLangError) -> tuple[TileLangError, ...]:
    """The errors in one, which may be Findings."""
    return error.errors if isinstance(error, Findings) else (error,)


@contextlib.contextmanager
def collected(errors: list[TileLangError]) -> Iterator[None]:
    """Adds what is raised inside to a list."""
    try:
        yield
    except TileLangError as error:
        errors.extend(each(error))


class ComputationError(TileLangError):
    """A definition, or arguments to it, that do not fit."""


class DeviceError(TileLangError):
    """No device, no driver, or a device that cannot do what was asked."""
