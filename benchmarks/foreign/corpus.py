"""The corpus: the smallest cases found that together reach every branch that any case reached, each a `.tile` text.

The first line of a text says for which device it is, and whether it is accepted or refused, and with which code:

    # cuda hopper: accepted
    # cuda ampere: refused, registers-too-many

The folder is all that is kept: a campaign begins with what stands there, and adds to it.
"""

import dataclasses
import functools
import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import tilelang as tl
from benchmarks.foreign import instructions
from benchmarks.foreign.branches import ROOT, Branch, source
from benchmarks.foreign.devices import Device
from tilelang.lowering.pipeline import lower
from tilelang.lowering.simulator import simulate
from tilelang.options import Options
from tilelang.runtime.kernel import Kernel
from tilelang.testing.checking import Expected, check_simulated
from tilelang.testing.kernel_checks import as_threads
from tilelang.testing.tracing import reading

FILE = "corpus.tile"  # how errors call a text
APART = re.compile(r"(computation .*?^)(schedule for .*)", re.DOTALL | re.MULTILINE)
FOLDER = ROOT / "tests" / "corpus"
MOST_STATEMENTS = 20_000  # of a simulation: some seconds


@dataclasses.dataclass(frozen=True)
class Entry:
    """A text for a device. refused: the code with which it is, or nothing."""

    device: Device
    text: str
    refused: str = ""

    @property
    def name(self) -> str:
        digest = hashlib.sha256(self.whole.encode()).hexdigest()[:10]
        return f"{self.device[1]}_{'refused' if self.refused else 'accepted'}_{digest}.tile"

    @property
    def whole(self) -> str:
        return f"# {' '.join(self.device)}: {f'refused, {self.refused}' if self.refused else 'accepted'}\n{self.text.strip()}\n"


def read(text: str) -> Entry:
    """The entry of a file's text."""
    head, _, rest = text.partition("\n")
    device, _, outcome = head.removeprefix("# ").partition(": ")
    dialect, profile = device.split()
    return Entry((dialect, profile), rest.strip(), outcome.removeprefix("refused, ") if outcome != "accepted" else "")


def entries(folder: Path = FOLDER) -> list[Entry]:
    return [read(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.tile"))]


@functools.cache
def target_of(device: Device) -> Any:
    return tl.target(device[0], profile=device[1])


def schedule_of(entry: Entry) -> Any:
    """The schedule of a text. Texts with one computation follow one another: what was made of it is kept."""
    instructions.define(entry.text)
    apart = APART.fullmatch(entry.text)
    if apart is None or apart[1].count("{") != apart[1].count("}"):
        return tl.parse(entry.text, FILE).schedule()
    document = tl.parse(apart[2], FILE)
    computation = computation_of(apart[1])
    if [e.of for e in document.schedules] != [computation.name]:
        return tl.parse(entry.text, FILE).schedule()
    return tl.Schedule(computation, document.steps_on(computation, document.schedules[0], {}, {}))


@functools.lru_cache(maxsize=16)
def computation_of(text: str) -> Any:
    return tl.parse(text, FILE).computation()


def lowered(entry: Entry, verify: bool = True) -> tuple[Any, Any]:
    """The schedule and its kernel IR. Raises the refusals of either. verify: after each pass, which takes as long as all of them."""
    schedule = schedule_of(entry)
    target = target_of(entry.device)
    here = dataclasses.replace(target.profile, dialects=(target.dialect,))  # as `tl.compile` does: instructions with a text in it
    return schedule, lower(schedule.computation, schedule.steps, here, Options(verify=verify), target.needs)


def faults(schedule: Any, program: Any, device: Device, seed: int = 0, most: int = MOST_STATEMENTS) -> list[str] | None:
    """What is wrong with an accepted entry: it is simulated, and held against the reference and the naive reading of its steps.

    None where more than `most` statements would be simulated.
    """
    try:
        simulate.check_work(program, most)
    except tl.TileLangError as error:
        if error.code != "too-much-to-simulate":
            raise
        return None
    arrays = tl.testing.arrays(schedule.computation, "integers" if seed % 2 else "random", seed)
    target, expected = target_of(device), Expected(schedule.computation, arrays, False, schedule.error_ulps)
    found: list[str] = []
    if target.needs:  # its threads may be loops: none is left that could own anything
        found += check_simulated(program, expected)
        program = as_threads(Kernel(schedule, target, program, Options()))
    found += check_simulated(program, expected, reading(schedule, target.profile, arrays))
    return found


def replayed(entry: Entry) -> list[str]:
    """What differs from what an entry says of itself."""
    try:
        schedule, program = lowered(entry)
    except tl.TileLangError as error:
        code = code_of(error)
        return [] if code == entry.refused else [f"{entry.name}: refused, {code}: {error}"]
    if entry.refused:
        return [f"{entry.name}: accepted, not refused with {entry.refused}"]
    return [f"{entry.name}: {fault}" for fault in faults(schedule, program, entry.device) or ()]


def code_of(error: BaseException) -> str:
    return str(getattr(error, "code", type(error).__name__))


def wanted(entry: Entry, branches: Iterable[Branch]) -> set[Branch]:
    """The branches for which an entry is kept: of a refused one those that refuse, and its code."""
    if not entry.refused:
        return set(branches)
    return {b for b in branches if b in source(b.file).refusing} | {Branch(f"code {entry.refused}", 0, 0)}


def cover(reached: Mapping[Entry, set[Branch]]) -> list[Entry]:
    """Entries that reach together what all do, the most new branches first, short ones before long ones."""
    left = {e: {(bool(e.refused), b) for b in found} for e, found in reached.items()}
    kept: list[Entry] = []
    while left:
        best = max(left, key=lambda e: (len(left[e]), -len(e.text), e.name))
        gained = left.pop(best)
        if not gained:
            break
        kept.append(best)
        left = {e: found - gained for e, found in left.items()}
    return kept
