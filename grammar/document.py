"""A file of the language: its computations and schedules, bound to numbers when they are asked for.

document = parse(text, "gemm.tile")
plan = document.schedule("fast", M=1024, N=1024, K=1024)
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from tilelang.computations.computation import Computation
from tilelang.computations.inlining import kept_in_memory
from tilelang.core.dtype import DType
from tilelang.errors import MOST_FINDINGS, ParseError, Span, TileLangError, brief, collected, is_path, meant, together
from tilelang.grammar.definitions import Parameters, build_computation, parameters, parameters_of
from tilelang.grammar.parser import Syntax, parse_parts, remember, uncollected
from tilelang.grammar.scan import MOST_BYTES, check_size
from tilelang.grammar.steps import Steps
from tilelang.grammar.values import Scope, Values, in_text, name_of
from tilelang.profiles.profile import Profile
from tilelang.schedules.checked_steps import CheckedSteps
from tilelang.schedules.schedule import Schedule
from tilelang.schedules.steps import Place, Step

_PIECE = 1 << 20  # read at once, in bytes


@dataclasses.dataclass(frozen=True)
class Entry:
    """A computation or a schedule in the text. of: for a schedule, its computation. under: the enclosing conditions, each with the
    required truth value."""

    name: str
    tree: Syntax
    of: str = ""
    under: tuple[tuple[Syntax, bool], ...] = ()


class Document:
    """A parsed file. Its names are known; numbers are given when a computation or a schedule is requested.

    faults: errors in its text; if there are any, nothing can be requested. broken: the texts of items that could not be parsed.
    """

    def __init__(self, tree: Syntax, file: str, faults: Iterable[TileLangError] = (), broken: Iterable[str] = ()) -> None:
        self.tree, self.file, self.faults = tree, file, [*faults]
        self.computations: dict[str, list[Entry]] = {}  # all of each name, under different conditions
        self.schedules: list[Entry] = []
        self._alike: dict[tuple[str, str], list[Entry]] = {}  # schedules by name, those without one by computation
        self._unread = frozenset(word for text in broken for word in re.findall(r"\w+", text))
        self._scope = Scope(file, {})
        self._chosen: dict[Any, Entry | None] = {}  # by request
        for item, under in _items(tree):
            with collected(self.faults):
                self._enter(item, under)
            if len(self.faults) > MOST_FINDINGS:
                break

    def _enter(self, item: Any, under: Any) -> None:
        if item.data == "use":
            self._use(item)
        elif item.data == "computation":
            name = name_of(item.children[0])
            made = Entry(name, item, under=under)
            self._check_apart(made, self.computations.get(name, []))
            self.computations.setdefault(name, []).append(made)
        else:
            names = [name_of(t) for t in item.children if t.data == "name"]
            made = Entry(names[0] if len(names) > 1 else "", item, names[-1], under)
            alike = self._alike.setdefault((made.name, "" if made.name else made.of), [])
            self._check_apart(made, alike)
            alike.append(made)
            self.schedules.append(made)

    def _check_apart(self, made: Entry, others: list[Entry]) -> None:
        """Refuses two entries of the same name, or without one, under the same conditions."""
        if any(e.under == made.under for e in others):
            message = f"two {'schedules' if made.of else 'computations'} are named {made.name}"
            help = "give them different names, or separate them with `when`"
            if not made.name:
                message, help = f"two schedules for {made.of} have no name", f"name them, as in `schedule fast for {made.of}`"
            raise ParseError("name-twice", message, span=self.place_of(made), help=help)

    def _use(self, item: Any) -> None:
        from tilelang.instructions.instruction import use  # late: few schedules name an instruction

        try:
            use(name_of(item.children[0]))
        except TileLangError as error:
            raise in_text(error, self._scope.span(item.children[0])) from None

    # ------------------------------------------------------------ what is asked for

    def computation(self, name: str | None = None, /, profile: Profile | None = None, **sizes: int | DType) -> Computation:
        """A computation, with values for its parameters. name: optional if there is only one.

        profile: decides `when` around computations. Raises ParseError for an unknown name or parameter; ParseError, or Findings, if the
        text is invalid.
        """
        self._check_whole()
        entry = self._computation(name, sizes, profile)
        self._check_sizes(entry, sizes)
        return self._built(entry, sizes)

    def schedule(self, name: str | None = None, /, profile: Profile | None = None, **sizes: int | DType) -> Schedule:
        """A schedule, with values for its parameters and its computation's. name: optional if there is only one.

        profile: decides `when` around schedules. A computation without a schedule in the file gets an empty one. Raises the errors of
        `computation`, and Refusal for invalid steps.
        """
        return Schedule(*self.steps(name, profile=profile, **sizes))

    def has_schedule(self, name: str | None = None, /, profile: Profile | None = None, **sizes: int | DType) -> bool:
        """Whether a schedule of that name applies, or any if no name is given. Raises as `schedule` does."""
        self._check_whole()
        return self._schedule(name, sizes, profile) is not None

    def steps(
        self, name: str | None = None, /, profile: Profile | None = None, **sizes: int | DType
    ) -> tuple[Computation, tuple[Step, ...]]:
        """The computation and the steps of `schedule`, before the steps are checked together."""
        self._check_whole()
        entry = self._schedule(name, sizes, profile)
        if entry is None:
            return self.computation(None, profile=profile, **sizes), ()
        self._check_sizes(self._computation_of(entry, sizes, profile), sizes, entry)
        return self.built(entry, sizes, profile)

    @uncollected()
    def built(self, entry: Entry, sizes: Parameters, profile: Profile | None = None) -> tuple[Computation, tuple[Step, ...]]:
        """The steps of an entry, with those of the sizes that are its parameters or its computation's. Raises as `schedule`."""
        of = self._computation_of(entry, sizes, profile)
        computation = self._built(of, sizes)
        return computation, self.steps_on(computation, entry, sizes, parameters_of(of.tree, self.file, sizes, of.name))

    def steps_on(self, computation: Computation, entry: Entry, sizes: Parameters, values: Parameters) -> tuple[Step, ...]:
        """The steps of an entry for a computation whose own parameters have these values. Raises as `schedule`."""
        self._check_names(entry, computation)
        values = parameters_of(entry.tree, self.file, sizes, entry.name or "the schedule", dict(values))
        reader = Steps(Scope(self.file, values), computation)
        steps = reader.steps(entry.tree.children[-1])
        if reader.errors:
            with collected(reader.errors):
                reader.errors += CheckedSteps(computation, steps, reader.unsure).refused
            raise together(reader.errors)
        return steps

    @uncollected()
    def findings(self, sizes: Parameters, profile: Profile) -> list[TileLangError]:
        """All errors: in the text, and in the items that apply at these sizes, lowered for this device."""
        found = [*self.faults]
        if not self.entries() and not found:
            with collected(found):
                self._computation(None, sizes, profile)  # raises the error for an empty file
        known = {n: None for e in self.entries() for n in self.parameters(e)}
        found += [self._no_parameter("nothing in it", n, known) for n in sizes if n not in known]
        sizes = {n: v for n, v in sizes.items() if n in known}
        with collected(found):
            self.holding(sizes, profile)
            for entry in self.entries():
                if self._needs_a_check(entry, sizes, profile):
                    inside: list[TileLangError] = []
                    with collected(inside):
                        if entry.of:
                            made = self.built(entry, sizes, profile)
                        else:
                            alone = self._built(entry, sizes)
                            made = alone, tuple(Place("compute", name, "global") for name in kept_in_memory(alone))
                        Schedule(*made).check(profile)
                    for error in inside:
                        error.span = error.span or self.place_of(entry)
                    found += inside
        return found

    def _needs_a_check(self, entry: Entry, sizes: Parameters, profile: Profile) -> bool:
        """Whether an entry applies and is not already checked through a schedule that applies."""
        if entry.of:
            return self.holds(entry, sizes, profile) and (entry.of in self.computations or entry.of not in self._unread)
        return self.holds(entry, sizes, profile) and not self.schedules_of(entry.name, sizes, profile)

    def place(self, name: str | None = None, /, profile: Profile | None = None, **sizes: int | DType) -> Span:
        """The place of the name of the schedule that `steps` selects, or of the computation without one. Raises as `steps` does."""
        return self.place_of(self._schedule(name, sizes, profile) or self._computation(None, sizes, profile))

    def place_of(self, entry: Entry) -> Span:
        """The place of an entry's name; for a schedule without a name, of its computation's."""
        return self._scope.span(next(t for t in entry.tree.children if t.data == "name"))

    def entries(self) -> list[Entry]:
        """Every schedule and every computation, including those of the same name under different conditions."""
        return [*(e for each in self.computations.values() for e in each), *self.schedules]

    def parameters(self, entry: Entry) -> tuple[str, ...]:
        """The names of an entry's parameters."""
        return tuple(name_of(p.children[0]) for p in parameters(entry.tree))

    def check(self, sizes: Parameters) -> None:
        """Raises ParseError, or Findings, for an invalid text, and for a value of a parameter that does not exist."""
        self._check_whole()
        known = {n: None for e in self.entries() for n in self.parameters(e)}
        for n in sizes:
            if n not in known:
                raise self._no_parameter("nothing in it", n, known)

    def values(self, entry: Entry, sizes: Parameters) -> dict[str, int | DType]:
        """The values of an entry's parameters, and of its computation's: as given, else their defaults. Raises ParseError."""
        of = self._computation_of(entry, sizes, None) if entry.of else entry
        values = parameters_of(of.tree, self.file, sizes, of.name)
        return values if of is entry else parameters_of(entry.tree, self.file, sizes, entry.name or "the schedule", values)

    def without_value(self, entry: Entry) -> tuple[str, ...]:
        """The names of an entry's parameters, and of its computation's, without a default."""
        of = (self._computation_of(entry, {}, None),) if entry.of else ()
        return tuple(name_of(p.children[0]) for e in (*of, entry) for p in parameters(e.tree) if len(p.children) == 1)

    def schedules_of(self, computation: str, sizes: Parameters, profile: Profile | None = None) -> list[Entry]:
        """The schedules for a computation whose conditions hold."""
        return [e for e in self.schedules if e.of == computation and self.holds(e, sizes, profile)]

    def holding(self, sizes: Parameters, profile: Profile | None = None, name: str | None = None) -> list[Entry]:
        """The schedules, or those of a name, whose conditions hold. Refuses two of the same name."""
        found = [e for e in self.schedules if name in (None, e.name) and self.holds(e, sizes, profile)]
        seen: set[str] = set()
        for e in found:
            if e.name in seen:
                raise self._both_hold(e, "schedules")
            if e.name:
                seen.add(e.name)
        return found

    # ------------------------------------------------------------ inside

    def _check_names(self, entry: Entry, computation: Computation) -> None:
        """Refuses a schedule's parameter with the name of an axis: a layout or a condition could mean either."""
        axes = {a.name for a in computation.axes}
        steps = entry.tree.children[-1]
        axes |= {name_of(t.children[0]) for t in steps.named("fuse")}
        axes |= {name_of(part.children[0]) for t in steps.named("unfuse") for part in t.children[1:]}
        for p in parameters(entry.tree):
            name = name_of(p.children[0])
            if name in axes:
                message = f"`{name}` is an axis of the computation, so it cannot be a parameter of the schedule"
                raise self._scope.fail(p, "parameter-is-axis", message, "use another name, as BM in `tile m=BM -> block`")

    def _built(self, entry: Entry, sizes: Parameters) -> Computation:
        own = self.parameters(entry)
        return build_computation(entry.tree, self.file, {n: v for n, v in sizes.items() if n in own})

    def _computation(self, name: str | None, sizes: Parameters, profile: Profile | None) -> Entry:
        asked = self.computations if name is None else [n for n in self.computations if n == name]
        found = {n: e for n in asked if (e := self.chosen(n, sizes, profile)) is not None}
        if name is None and len(found) != 1:
            none = "the conditions around its computations do not hold" if self.computations else "there is no computation in it"
            wanted = "it has several computations" if found else none
            help = meant("", found, "write one")
            raise ParseError("which-computation", f"{self.file}: {wanted}", span=Span(self.file, 0), help=help)
        if not found:
            raise self._unknown("computation", name or "", {n: of_one[0] for n, of_one in self.computations.items()})
        return next(iter(found.values()))

    def chosen(self, name: str, sizes: Parameters, profile: Profile | None = None) -> Entry | None:
        """The computation of a name whose conditions hold; if there are several, raises ParseError, because the text is ambiguous."""
        asked = (name, frozenset(sizes.items()), profile)
        if asked not in self._chosen:
            found = [e for e in self.computations.get(name, ()) if self.holds(e, sizes, profile)]
            if len(found) > 1:
                raise self._both_hold(found[1], "computations")
            self._chosen[asked] = found[0] if found else None
        return self._chosen[asked]

    def _both_hold(self, second: Entry, what: str) -> ParseError:
        """The error for two entries of the same name whose conditions both hold."""
        message = f"the conditions of two {what} named {second.name} hold"
        return ParseError(
            "name-twice", message, span=self.place_of(second), help="use conditions of which only one holds, as with `else`"
        )

    def _computation_of(self, entry: Entry, sizes: Parameters, profile: Profile | None) -> Entry:
        if entry.of in self.computations:
            return self.chosen(entry.of, sizes, profile) or self.computations[entry.of][0]
        help = meant(entry.of, self.computations, "write one")
        tree = [t for t in entry.tree.children if t.data == "name"][-1]
        raise self._scope.fail(tree, "unknown-computation", f"there is no computation `{entry.of}`", help)

    def _schedule(self, name: str | None, sizes: Parameters, profile: Profile | None) -> Entry | None:
        found = self.holding(sizes, profile, name)
        if name is not None and not found:
            raise self._unknown("schedule", name, {e.name: e for e in self.schedules if e.name})
        if len(found) > 1:
            names = [e.name for e in found if e.name]
            help = meant("", names) if len(names) == len(found) else "give all of them names, and select one"
            raise ParseError("which-schedule", f"{self.file} has several schedules", span=Span(self.file, 0), help=help)
        return found[0] if found else None

    def holds(self, entry: Entry, sizes: Parameters, profile: Profile | None) -> bool:
        """Whether the conditions around an entry hold, and those around a schedule's computation."""
        of = self.chosen(entry.of, sizes, profile) if entry.of else entry
        if of is None and entry.of in self.computations:
            return False
        if not entry.under:
            return True
        values = parameters_of(of.tree, self.file, sizes, of.name) if of is not None else {}
        scope = Scope(self.file, values, can=lambda n: profile is not None and profile.can(n))
        for tree, wanted in entry.under:
            found = Values(scope, whole=True).value(tree)
            if not isinstance(found, bool):
                raise scope.fail(
                    tree, "not-a-condition", f"`{scope.said(tree)}` is not a condition", "compare parameters, as in M <= 64"
                )
            if found is not wanted:
                return False
        return True

    def _check_whole(self) -> None:
        if self.faults:
            raise together(self.faults)

    def _check_sizes(self, entry: Entry, sizes: Parameters, also: Entry | None = None) -> None:
        known = (*self.parameters(entry), *(self.parameters(also) if also is not None else ()))
        for name in sizes:
            if name not in known:
                raise self._no_parameter(entry.name, name, known)

    def _no_parameter(self, what: str, name: str, known: Iterable[str]) -> ParseError:
        message = f"{what} has no parameter `{name}`"
        return ParseError("unknown-parameter", message, span=Span(self.file, 0), help=meant(name, known, "leave it out"))

    def _unknown(self, what: str, name: str, known: Mapping[str, Entry]) -> ParseError:
        if name in known:
            message = f"the conditions around the {what} `{name}` do not hold"
            help = "use other sizes, or another --profile"
            return self._scope.fail(known[name].tree, f"unknown-{what}", message, help)
        message, help = f"{self.file} has no {what} `{name}`", meant(name, known, "write one")
        return ParseError(f"unknown-{what}", message, span=Span(self.file, 0), help=help)


def _items(tree: Any, under: Any = ()) -> Iterator[tuple[Any, Any]]:
    """Every item, with its enclosing conditions."""
    for item in tree.children:
        if item.data == "version":
            continue
        if item.data != "choice":
            yield item, under
            continue
        condition, *items = item.children
        for branch in items:
            yield from _items(branch, (*under, (condition, branch.data == "then")))


def parse(text: str, file: str = "<text>", *, limit_bytes: int = MOST_BYTES, faulty: bool = False) -> Document:
    """The computations and schedules of a text. file: its name in errors. limit_bytes: the maximum size.

    faulty: also return a document for a text with errors, which then holds them. Raises ParseError, or Findings for errors in several
    parts.

    >>> doc = parse("computation twice(N) { input X: float32[i: N] output Y[i] = X[i] * 2.0 }")
    >>> print(doc.computation(N=8).text, end="")
    computation twice {
      input X: float32[i: 8]
      output Y[i] = X[i] * 2.0
    }
    """
    if not isinstance(text, str):
        raise ParseError("not-text", f"{brief(text)} is not text", help="pass a str, or read a file with tl.read(path)")
    tree, faults, broken = parse_parts(text, file, limit_bytes)
    document = Document(tree, file, faults, broken)
    if document.faults and not faulty:
        raise together(document.faults)
    return document


def read(path: str | Path, *, limit_bytes: int = MOST_BYTES, faulty: bool = False) -> Document:
    """The computations and schedules of a file, as from `parse`. Raises ParseError if it cannot be read or is not valid."""
    if not is_path(path):  # `open` accepts numbers as file descriptors, and would close them
        raise ParseError("file", f"{brief(path)} is not a path", help="pass the path of a file")
    return parse(read_text(path, limit_bytes), str(path), limit_bytes=limit_bytes, faulty=faulty)


def read_text(path: str | Path, limit_bytes: int, stream: BinaryIO | None = None) -> str:
    """The text of a file, or of a stream that errors refer to by the path; reads no more than the limit. Raises ParseError."""
    name = str(path)
    try:
        with open(path, "rb") if stream is None else contextlib.nullcontext(stream) as file:
            raw = b""
            while len(raw) <= limit_bytes and (piece := file.read(min(_PIECE, limit_bytes + 1 - len(raw)))):
                raw += piece
        remember("", name)  # errors must not read the file again: a pipe would block
        check_size(len(raw), name, limit_bytes)
        return raw.decode("utf-8-sig")
    except OSError as error:
        raise ParseError(
            "file", f"{name} cannot be read: {error.strerror}", span=Span(name, 0), help="the path of a file"
        ) from None
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ParseError("not-text", f"{name} is not UTF-8 text", span=Span(name, line), help="save it in UTF-8") from None
