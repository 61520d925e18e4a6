"""Cases steered by branch coverage: what reaches a new branch of the compiler is made small, kept, and changed further.

A case begins with a text: mostly one that was kept, else a program drawn anew, one of the package's own generators, or a computation
with the schedule that is constructed for it. It is changed step by step; every text that is accepted is simulated, held against the
reference and against the naive reading of its steps.
"""

import argparse
import collections
import gc
import hashlib
import json
import math
import random
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import tilelang as tl
from benchmarks.foreign import corpus
from benchmarks.foreign.branches import ROOT, Branch, Meter
from benchmarks.foreign.corpus import Entry, wanted
from benchmarks.foreign.devices import DEVICES, Device
from benchmarks.foreign.draw import Drawer
from benchmarks.foreign.forms import used
from benchmarks.foreign.instructions import Programs
from benchmarks.foreign.log import LOG, running_file
from benchmarks.foreign.mutate import Mutator, joined
from benchmarks.foreign.names import canonical
from benchmarks.foreign.plans import Planner
from benchmarks.foreign.program import program_text
from benchmarks.foreign.record import Record
from benchmarks.foreign.smaller import simpler
from benchmarks.foreign.steps import StepDrawer
from benchmarks.gpu_watch import DEAD
from tilelang import testing
from tilelang.instructions.instruction import known, use
from tilelang.lowering.simulator import simulate
from tilelang.runtime.targets import local_target
from tilelang.schedules.check import axis_extents
from tilelang.schedules.schedule import instructions_of
from tilelang.testing.instruction_schedules import Schedules
from tilelang.testing.roles import draw_boxes
from tilelang.testing.shrinking import smallest

CHANGES = 10  # of one text
SHRINK_SECONDS = 2.0
POINTS = 500
MOST_STATEMENTS = 5_000  # of a simulation: a few seconds
USUAL_STATEMENTS, USUAL_POINTS = 800, 4_000  # the longest twentieth of the cases would take half of the time:
LONG = 4  # one in LONG of the cases that exceed these limits is simulated
NO_DATA = ("read-outside", "range")  # a condition on data lets a read leave its tensor; no index is in the range that is told
NATIVE = 48  # programs that are compiled together
TRACED = 8  # one in TRACED cases is traced, and every case that follows one which reached a new branch

Item = tuple[Any, testing.Expected]  # a lowered program, and what it must give


class Campaign:
    """Draws cases for some devices, with the corpus in a folder. log: where what is known of the corpus, and what runs, is noted.

    done: whether earlier campaigns simulated an accepted text of this digest, and ran it natively if it can be. Texts for the CPU
    run natively everywhere, those for CUDA or HIP where TILELANG_TARGET names a GPU of theirs.
    """

    def __init__(
        self,
        devices: tuple[Device, ...] = DEVICES,
        folder: Path = corpus.FOLDER,
        log: Path = LOG,
        beat: Callable[[], None] = lambda: None,
        done: Callable[[str, bool], bool] = lambda digest, native: False,
    ):
        self.devices, self.folder, self.log, self.beat, self.done = devices, folder, log, beat, done
        self.meter, self.traced = Meter(), True
        self.running = running_file(devices[0][1] if len(devices) == 1 else "", log)
        self.shrink_seconds = SHRINK_SECONDS
        self.kept: dict[Entry, set[Branch]] = {}
        self.reached: dict[bool, set[Branch]] = {False: set(), True: set()}  # by accepted cases, and by refused ones
        self.program: tuple[Any, Any] = (None, None)
        self.native: list[tuple[Entry, str, Any, Any]] = []
        self.seen: set[str] = set()  # digests of what was simulated
        folder.mkdir(parents=True, exist_ok=True)
        log.mkdir(parents=True, exist_ok=True)
        self.load()

    # ------------------------------------------------------------ the corpus

    def load(self) -> None:
        """Measures the branches that each text of the folder reaches; a file of the log caches them for these sources."""
        memory = self.log / "branches.json"
        known = json.loads(memory.read_text()) if memory.exists() else {}
        digest = _digest_of_sources()
        if known.get("sources") != digest:
            known = {"sources": digest}
        for entry in corpus.entries(self.folder):
            if entry.name not in known:
                self.beat()
                found, branches = self.measured(entry.device, entry.text, verify=True)
                known[entry.name] = sorted(wanted(found, branches)) if found.refused == entry.refused else None
                memory.write_text(json.dumps(known))
            if known[entry.name] is not None:
                self.keep(entry, {Branch(*b) for b in known[entry.name]}, store=False)

    def keep(self, entry: Entry, branches: set[Branch], store: bool = True) -> None:
        """Adds an entry. store: writes it, and takes out what it makes superfluous."""
        self.kept[entry] = branches
        self.reached[bool(entry.refused)] |= branches
        if not store:
            return
        (self.folder / entry.name).write_text(entry.whole, encoding="utf-8")
        for other in [e for e in self.kept if bool(e.refused) == bool(entry.refused) and self.kept[e] <= branches and e != entry]:
            self.drop(other)

    def drop(self, entry: Entry) -> None:
        del self.kept[entry]
        (self.folder / entry.name).unlink(missing_ok=True)

    def minimise(self) -> int:
        """Leaves a set cover in the folder; gives how many entries went."""
        chosen = set(corpus.cover(self.kept))
        gone = [e for e in self.kept if e not in chosen]
        for entry in gone:
            self.drop(entry)
        return len(gone)

    # ------------------------------------------------------------ one text

    def measured(self, device: Device, text: str, verify: bool = False, traced: bool = True) -> tuple[Entry, set[Branch]]:
        """The entry that a text is, and the branches it takes, if traced. Raises what is not a user error. verify: include the
        checks."""
        text = text.strip()
        result, branches = self.meter.run(lambda: corpus.lowered(Entry(device, text), verify), traced)
        if isinstance(result, tl.TileLangError):
            return Entry(device, text, corpus.code_of(result)), branches
        if isinstance(result, Exception):
            raise result
        self.program = result
        return Entry(device, text), branches

    def attempt(self, device: Device, text: str, report: dict[str, Any], only_new: bool = False) -> bool:
        """Tries a text; whether it is accepted. What is wrong, and what it was, goes into the report.

        only_new: what reaches no new branch is not simulated.
        """
        self.beat()
        report["tried"] += 1
        digest = canonical(device, text)
        if not only_new and (digest in self.seen or self.done(digest, runs_here(device))):
            report["again"] += 1
            return True
        self.running.write_text(Entry(device, text).whole, encoding="utf-8")
        try:
            traced = self.traced or only_new
            entry, branches = self.measured(device, text, traced=traced)
            if not traced and wanted(entry, branches) - self.reached[bool(entry.refused)]:  # a refusal that is new
                entry, branches = self.measured(device, text)
        except Exception:
            report["faults"].append("lowering: " + traceback.format_exc()[-2000:])
            report["text"] = Entry(device, text).whole
            return False
        reached = wanted(entry, branches)
        new = reached - self.reached[bool(entry.refused)]
        if only_new and not new:
            return not entry.refused
        if not entry.refused and not self.simulated(entry, digest, report):
            return False
        if entry.refused:
            report["refused"][entry.refused] += 1
        if new and len(text) < 4000:
            entry, reached = self.small(entry, new)
            self.keep(entry, reached)
            report["new"] += len(new)
        return not entry.refused

    def simulated(self, entry: Entry, digest: str, report: dict[str, Any]) -> bool:
        """Whether an accepted text could be simulated, and nothing was wrong."""
        schedule, program = self.program
        if digest in self.seen:
            return True
        if is_long(schedule.computation, program) and int(digest, 16) % LONG:
            report["too_long"] += 1
            return False
        try:
            found = corpus.faults(schedule, program, entry.device, report["seed"], MOST_STATEMENTS)
        except tl.TileLangError as error:
            if corpus.code_of(error) in NO_DATA:
                report["refused"][corpus.code_of(error)] += 1
                return False
            found = [f"simulator: {error}"]
        except Exception:
            found = ["simulator: " + traceback.format_exc()[-2000:]]
        if found is None:
            report["too_long"] += 1
            return False
        self.seen.add(digest)
        report["digests"].append(digest)
        report["verbs"].update(used(entry.text))
        if found:
            report["faults"] += found
            report.setdefault("text", entry.whole)
        if runs_here(entry.device) and not found:
            self.on_device(entry, digest, report)
        return not found

    def on_device(self, entry: Entry, digest: str, report: dict[str, Any]) -> None:
        """Runs accepted texts on the device here, many together."""
        self.native.append((entry, digest, *self.program))
        if len(self.native) >= NATIVE:
            self.run_together(report)

    def finish(self, report: dict[str, Any]) -> None:
        """Runs what `on_device` still holds, after the last case."""
        try:
            self.run_together(report)
        except Exception:
            report["faults"].append("on the device here: " + traceback.format_exc()[-2000:])

    def run_together(self, report: dict[str, Any]) -> None:
        """Runs what `on_device` holds."""
        held = [
            (entry, digest, item) for entry, digest, *made in self.native if (item := native(entry.device, *made)) is not None
        ]
        self.native.clear()
        self.beat()
        try:
            outcomes = together([item for *_, item in held])
        except tl.TileLangError as error:  # one of them took the device's context with it
            report |= {"lost": True, "text": "\n".join(entry.whole for entry, *_ in held)}
            report["faults"].append(f"on the device here: one of {len(held)} texts: {error}")
            return
        for (entry, digest, _), found in zip(held, outcomes, strict=True):
            if found is None:
                continue
            report["native"] += 1
            report.setdefault("native_digests", []).append(digest)
            if found:
                report["faults"] += found
                report["text"] = entry.whole

    def small(self, entry: Entry, new: set[Branch]) -> tuple[Entry, set[Branch]]:
        """The smallest text that takes the same new branches and is right."""
        end = time.monotonic() + self.shrink_seconds

        def same(text: str) -> bool:
            self.beat()
            try:
                found, branches = self.measured(entry.device, text)
                if found.refused != entry.refused or not new <= wanted(found, branches):
                    return False
                return (
                    bool(found.refused) or corpus.faults(*self.program, entry.device, most=MOST_STATEMENTS) == []
                )  # None: too long
            except Exception:
                return False  # a fault of its own, which a case may find

        text = smallest(entry.text, simpler, same, lambda: time.monotonic() <= end)
        found, branches = self.measured(entry.device, text)
        return found, wanted(found, branches)

    # ------------------------------------------------------------ cases

    def taken_over(self, texts: Iterator[str], seconds: float) -> dict[str, Any]:
        """Tries given texts for each device, also at smaller sizes, and keeps what reaches new branches."""
        report, end = self.report(0, None), time.monotonic() + seconds
        for text in texts:
            for whole in (*sized(text, (17, 64)), text):
                for device in self.devices if time.monotonic() < end else ():
                    self.attempt(device, whole, report, only_new=True)
        self.finish(report)
        return report

    @staticmethod
    def report(seed: int, device: Device | None) -> dict[str, Any]:
        """What a case starts with."""
        return {
            "seed": seed, "kind": "steered", "device": device, "faults": [], "digests": [],
            "tried": 0, "new": 0, "too_long": 0, "again": 0, "native": 0,
            "refused": collections.Counter(), "verbs": collections.Counter(),
        }  # fmt: skip

    def case(self, seed: int) -> dict[str, Any]:
        """A text, changed again and again."""
        r = random.Random(seed)
        device = r.choice(self.devices)
        report = self.report(seed, device)
        self.traced |= seed % TRACED == 0
        mutator = Mutator(r, [e.text for e in self.kept if not e.refused])
        text = ""
        for begun in self.begun(r, device, report):
            if self.attempt(device, begun, report):
                text = begun
        for _ in range(CHANGES if text else 0):
            changed = text
            for _ in range(r.choice((1, 1, 1, 2, 3))):
                changed = mutator.changed(changed)
            if changed != text and self.attempt(device, changed, report):
                text = changed
        self.traced = report["new"] > 0
        return report

    def begun(self, r: random.Random, device: Device, report: dict[str, Any]) -> Iterator[str]:
        """The texts with which a case begins; each counts where it is accepted."""
        kept = [e.text for e in self.kept if not e.refused]
        chance = r.random()
        if kept and chance < 0.55:
            yield r.choice(kept)
        elif chance < 0.75:
            yield from self.drawn(r, device)
        elif chance < 0.8:
            yield joined(*Programs(r, device[1]).draw())
        elif chance < 0.92:
            try:
                if chance < 0.84:
                    made = example(r)
                elif chance < 0.88:
                    made = issued(r, device)
                else:
                    made = draw_boxes(testing.Seeded(r.getrandbits(32))) if device[1] == "hopper" else self.planned(r)
            except tl.TileLangError:
                return  # these sizes, or these steps, are refused
            yield text_of(made)
        else:
            yield from self.constructed(r, device, report)

    def constructed(self, r: random.Random, device: Device, report: dict[str, Any]) -> Iterator[str]:
        """A random computation with the schedule that is constructed for it. That there is none is a fault."""
        program = program_text(Drawer(r.getrandbits(32), POINTS).program())
        try:
            computation = tl.parse(program).computation()
        except tl.TileLangError:
            return
        try:
            schedule = tl.compile(computation, corpus.target_of(device)).schedule
        except Exception:
            report["faults"].append("constructed: " + traceback.format_exc()[-2000:])
            report["text"] = Entry(device, program).whole
            return
        yield text_of(schedule)

    def planned(self, r: random.Random) -> Any:
        """A schedule of the package's own generator, with roles at times."""
        source = testing.Seeded(r.getrandbits(32))
        made = testing.draw_case(source).schedule
        return testing.draw_roles(source, made) if r.random() < 0.3 else made

    def drawn(self, r: random.Random, device: Device) -> Iterator[str]:
        """A random program, first without a schedule, then with all steps of a random plan that are accepted."""
        program = Drawer(r.getrandbits(32), POINTS).program()
        computation = program_text(program)
        steps: list[Any] = []
        yield joined(computation, steps)
        for step in Planner(StepDrawer(program, r, "roles"), r, device[1]).steps():
            text = joined(computation, [*steps, step])
            try:
                corpus.schedule_of(Entry(device, text)).check(corpus.target_of(device).profile)
            except tl.TileLangError:
                continue
            except Exception:
                yield text  # `attempt` finds the fault
                return
            steps.append(step)
        yield joined(computation, steps)


def runs_here(device: Device) -> bool:
    """Whether texts for a device run natively here."""
    return device[0] in ("cpu", local_target().dialect)


def is_long(computation: Any, program: Any) -> bool:
    """Whether it takes long to simulate a program, or to read its steps naively."""
    points = [(d.axes, d.reduction.axes if d.reduction is not None else ()) for d in computation.definitions]
    return (
        simulate.executions(program) > USUAL_STATEMENTS
        or max(math.prod(a.extent for a in (*own, *over)) for own, over in points) > USUAL_POINTS
        or sum(math.prod(t.shape) for t in computation.inputs) > USUAL_POINTS
    )


def native(device: Device, schedule: Any, program: Any) -> Item | None:
    """An accepted program as it runs here, with what it must give; None where it cannot run here.

    It is run as it was simulated, if this is a device of its dialect that has the instructions; else as lowered for the device here.
    """
    here = local_target()
    try:
        if here.dialect != device[0]:
            program = testing.lowered_here(schedule)
        elif any(use(name).unavailable(here.profile, here.dialect) for name in instructions_of(schedule.steps)):
            return None
    except tl.TileLangError:
        return None
    return program, testing.Expected(schedule.computation, testing.arrays(schedule.computation), False, schedule.error_ulps)


def together(items: list[Item]) -> list[list[str] | None]:
    """The faults of each program on the device here, all compiled together; None of one whose data or text are not for it.

    Raises the error after which a GPU does nothing more.
    """
    if not items:
        return []
    try:
        return list(testing.check_device(items))
    except tl.TileLangError as error:  # of one of them
        if corpus.code_of(error) in DEAD:
            raise
        if len(items) > 1:
            half = len(items) // 2
            return together(items[:half]) + together(items[half:])
        return [None if corpus.code_of(error) in (*NO_DATA, "no-template") else [f"on the device here: {error}"]]


def campaign(profile: str, beat: Callable[[], None], resumed: bool = False) -> Campaign:
    """The campaign of the shipped corpus for one profile, or for all. resumed: runs nothing that is recorded."""
    done = Record().done if resumed else lambda digest, native: False
    made = Campaign(tuple(d for d in DEVICES if profile in ("", d[1])), beat=beat, done=done)
    gc.freeze()  # the parsed sources and the corpus stay
    gc.set_threshold(20_000, 20, 100)  # expressions stay, too: to walk them again and again takes a twentieth of the time
    return made


def faults_of_text(text: str, seed: int) -> list[str]:
    """What is wrong with the text of a finding, with the data of its seed; nothing where it is refused."""
    entry = corpus.read(text)
    try:
        schedule, program = corpus.lowered(entry)
        found = corpus.faults(schedule, program, entry.device, seed)
    except tl.TileLangError as error:
        return [] if corpus.code_of(error) != "too-much-to-simulate" else [str(error)]
    except Exception:
        return [traceback.format_exc()[-2000:]]
    item = native(entry.device, schedule, program) if entry.device[0] == "cpu" else None
    if found is None:
        return ["it takes too long to simulate"]
    return found + ((together([item])[0] or []) if item is not None else [])


def example(r: random.Random) -> Any:
    """A schedule of the examples at smaller sizes. Raises the refusal of these sizes."""
    paths = sorted((ROOT / "examples").glob("*.tile"))
    documents = [tl.parse(path.read_text(encoding="utf-8"), path.name) for path in paths]
    document = r.choice([document for document in documents if document.schedules])
    schedule = document.schedule(r.choice([entry.name for entry in document.schedules]))
    most = r.choice((9, 17, 33, 64, 128))
    return testing.resized(schedule, {a: min(n, most) for a, n in axis_extents(schedule.computation).items()})


def issued(r: random.Random, device: Device) -> Any:
    """A schedule around one of the instructions that come with the package. Raises Refusal where none is found."""
    target = corpus.target_of(device)
    there = [i for i in known() if not i.name.startswith("user_") and i.unavailable(target.profile) is None]
    return Schedules(r.choice(there), target).draw(testing.Seeded(r.getrandbits(32)))


def sized(text: str, extents: tuple[int, ...]) -> Iterator[str]:
    """A text with no axis longer than each of these."""
    for most in extents:
        try:
            schedule = corpus.schedule_of(Entry(DEVICES[0], text))
            yield text_of(testing.resized(schedule, {a: min(n, most) for a, n in axis_extents(schedule.computation).items()}))
        except tl.TileLangError:
            continue


def text_of(schedule: Any) -> str:
    return f"{schedule.computation.text}\n{schedule.text}\n"


def _digest_of_sources() -> str:
    digest = hashlib.sha256()
    for folder in ("tilelang", "grammar", "lowering", "autoschedule"):  # all that decides which branches a text takes
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                digest.update(path.read_bytes())
    return digest.hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.foreign.steer", description="Takes texts over into the corpus.")
    parser.add_argument("files", nargs="*", type=Path, help="of a computation and one schedule")
    parser.add_argument("--seconds", type=float, default=100, help="no text is tried after that long")
    parser.add_argument("--minimise", action="store_true", help="leave a set cover only")
    chosen = parser.parse_args()
    made = Campaign()
    report = made.taken_over((f.read_text(encoding="utf-8") for f in chosen.files), chosen.seconds)
    print(f"{report['tried']} tried, {report['new']} branches new, {len(made.kept)} entries", *report["faults"], sep="\n")
    if chosen.minimise:
        print(f"{made.minimise()} entries taken out")
    return 1 if report["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
