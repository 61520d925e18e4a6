"""Results of a simulated run: findings, and counts of memory transactions and bank conflicts.

A finding is one fault at one element, with the threads that cause it. Every finding is counted but only the first few are kept
(twenty in all, at most four of one kind per statement). Two runs of one program give the same findings. Counts are per access:
one load, store or copy of one statement.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from tilelang.errors import Span

Array = npt.NDArray[Any]

KINDS = (
    "out-of-bounds", "uninitialised-read", "data-race", "divergent-barrier", "divergent-instruction", "instruction-operand",
    "read-before-wait", "write-before-wait", "source-overwritten", "copy-never-awaited", "unwritten-output",
    "deadlock", "missing-fence", "block-has-ended", "wrong-value",
)  # fmt: skip

KEPT, KEPT_PER_SITE = 20, 4


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """One fault of `threads` of `block` at `element` of `buffer` ("" and () if no element is concerned)."""

    kind: str
    buffer: str
    element: tuple[int, ...]
    threads: tuple[int, ...]
    block: tuple[int, int, int]
    span: Span | None
    message: str

    def __str__(self) -> str:
        place = f"{self.span}: " if self.span is not None else ""
        return f"{place}{self.kind}: {self.message}"


@dataclasses.dataclass(frozen=True, slots=True)
class Site:
    """One access of one statement. `access` is load, store or copy. make_text: called for the text, which few runs need."""

    number: int
    kernel: str
    buffer: str
    access: str
    make_text: Callable[[], str] = dataclasses.field(compare=False, repr=False)
    span: Span | None
    statement: Any = dataclasses.field(default=None, compare=False, repr=False)

    @property
    def text(self) -> str:
        """The readable form of the statement or load."""
        return self.make_text()

    def __str__(self) -> str:
        return f"`{self.text}`" + (f" at {self.span}" if self.span is not None else "")


@dataclasses.dataclass(frozen=True, slots=True)
class AccessCount:
    """The cost of one access. requests: warps that issued it. total: global transactions, or bank-conflict replays in shared memory."""

    kernel: str
    buffer: str
    access: str
    text: str
    span: Span | None
    requests: int
    total: int


class Findings:
    """Collects findings. `counts` counts all by kind; `kept` has the first few."""

    def __init__(self) -> None:
        self.kept: list[Finding] = []
        self.counts: dict[str, int] = {}
        self._per_site: dict[tuple[str, int], int] = {}

    def room(self, kind: str, site: int, number: int) -> int:
        """Counts `number` faults of one kind at one site; returns how many of them the caller should describe with `add`."""
        self.counts[kind] = self.counts.get(kind, 0) + number
        described = self._per_site.get((kind, site), 0)
        free = max(0, min(number, KEPT_PER_SITE - described, KEPT - len(self.kept)))
        self._per_site[kind, site] = described + free
        return free

    def add(self, finding: Finding) -> None:
        """Keeps a finding that `room` allowed."""
        self.kept.append(finding)


class Counter:
    """Sums of requests and of a cost per site."""

    def __init__(self) -> None:
        self._sums: dict[int, list[int]] = {}
        self._sites: dict[int, Site] = {}

    def add(self, site: Site, requests: int, total: int) -> None:
        sums = self._sums.setdefault(site.number, [0, 0])
        self._sites[site.number] = site
        sums[0] += requests
        sums[1] += total

    def result(self) -> tuple[AccessCount, ...]:
        """One count per access, in order of first execution."""
        return tuple(
            AccessCount(s.kernel, s.buffer, s.access, s.text, s.span, *self._sums[number]) for number, s in self._sites.items()
        )


class Recorder:
    """Collects the findings, counts and sites of a run. watch: called for each access. costs: count transactions and bank conflicts.
    tick: called for each iteration of a loop."""

    def __init__(
        self,
        watch: Callable[[Any], None] | None = None,
        costs: bool = True,
        tick: Callable[[], None] | None = None,
    ) -> None:
        self.watch, self.costs, self.tick = watch, costs, tick
        self.observes = costs or watch is not None  # accesses to memory, besides checking them
        self.findings = Findings()
        self.transactions = Counter()
        self.conflicts = Counter()
        self.sites: list[Site] = []
        self.patterns: dict[tuple[Any, ...], tuple[int, int]] = {}  # costs of access patterns already seen in this launch

    def site(
        self, kernel: str, buffer: str, access: str, make_text: Callable[[], str], span: Span | None, statement: Any = None
    ) -> Site:
        """A new site."""
        self.sites.append(Site(len(self.sites), kernel, buffer, access, make_text, span, statement))
        return self.sites[-1]


def _distinct(keys: Array) -> Array:
    keys = np.sort(keys)
    fresh = np.ones(keys.shape, bool)
    fresh[1:] = keys[1:] != keys[:-1]
    return keys[fresh]


def count_transactions(byte_addresses: Array, warps: Array, transaction_bytes: int) -> tuple[int, int]:
    """(warps that take part, aligned segments of `transaction_bytes` that they touch, counted per warp)."""
    if byte_addresses.size == 0:
        return 0, 0
    pieces = byte_addresses // transaction_bytes
    width = int(pieces.max()) + 1
    return _distinct(warps).size, _distinct(warps * width + pieces).size


def count_conflicts(words: Array, groups: Array, banks: int, ideal: int) -> int:
    """Bank-conflict replays: per group of threads served together, the most words requested from one bank, less `ideal`."""
    if words.size == 0:
        return 0
    width = int(words.max()) + 1
    keys = _distinct(groups * width + words)
    group, bank = keys // width, keys % width % banks
    number = np.cumsum(np.concatenate(([0], group[1:] != group[:-1])))
    phases = np.bincount(number * banks + bank, minlength=(int(number[-1]) + 1) * banks).reshape(-1, banks).max(axis=1)
    return int(np.maximum(phases - ideal, 0).sum())


def summary(counts: dict[str, int], kept: Iterable[Finding]) -> str:
    """The findings as text, one per line, and the number of each kind."""
    lines = [str(finding) for finding in kept]
    lines += [f"{number} x {kind}" for kind, number in sorted(counts.items())]
    return "\n".join(lines) if lines else "no faults found"
