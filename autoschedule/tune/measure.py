"""Times candidates on the device, in a separate process that a candidate may crash.

Each candidate is checked against the reference before it is timed. Samples are interleaved, each at least a millisecond long, so
that a slow phase of the machine affects all candidates alike. If a candidate crashes, hangs, aborts or is wrong, the reason is
recorded, and the process (`worker.py`) is restarted for the next one. Arrays stay on the device; small ones stay in its caches.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import math
import os
import pickle
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np

from tilelang.autoschedule.common.prune import RULES, Pruning
from tilelang.autoschedule.tune.programs import program_of, pruned
from tilelang.autoschedule.tune.recall import OnDevice
from tilelang.autoschedule.tune.worker import Program, Setting
from tilelang.computations.arguments import array_type
from tilelang.computations.computation import Computation
from tilelang.errors import DeviceError, TileLangError
from tilelang.options import Options
from tilelang.schedules.schedule import Schedule
from tilelang.semantics import reference

SAMPLES, FIRST_SAMPLES, LEAST_SAMPLES = 11, 3, 5
SAMPLE_S = 1e-3
LIMIT_S = 20.0  # for each request about a candidate: to build it, to run it once, to take one sample
START_S, GRACE_S = 120.0, 5.0  # for the process to start, and to end by itself after a time limit
NEAR_BOUND = 1.05  # times the lower bound: the search stops
OUTCLASSED = 1.5  # times the best: no more samples are taken
Progress = Callable[[str, int, int], object]


@dataclasses.dataclass(frozen=True)
class Trial:
    """The outcome of a candidate.

    seconds: its samples, of one call each (empty: it was not timed). error_ratio: its greatest difference from the reference, as
    a share of the allowed error. code: why it was given up: `wrong`, `timeout`, `crashed`, `failed`, `not-tried`, a rule of
    prune.py, or the code of the error that building or launching it raised; "" if it was not given up. why: the same in words.
    """

    schedule: Schedule
    seconds: tuple[float, ...] = ()
    error_ratio: float | None = None
    code: str = ""
    why: str = ""

    @property
    def median_s(self) -> float:
        """The median of the samples; infinite if there are none."""
        return statistics.median(self.seconds) if self.seconds else math.inf

    @property
    def iqr_s(self) -> float:
        """The interquartile range of the samples; 0 for fewer than two."""
        if len(self.seconds) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return high - low

    def __str__(self) -> str:
        if self.code:
            return f"{self.code}: {self.why}"
        return f"{self.median_s * 1e3:.4g} ms, quartiles {self.iqr_s * 1e3:.2g} ms apart, {len(self.seconds)} samples"


@dataclasses.dataclass(frozen=True)
class Measured:
    """The trials, in the candidates' order. bound_s: the given lower bound, 0 if there is none.

    pruning: what the rules about compiler reports dropped, among the candidates that have a program.
    """

    trials: tuple[Trial, ...]
    bound_s: float = 0.0
    pruning: Pruning = dataclasses.field(default_factory=Pruning)

    @property
    def given_up(self) -> Mapping[str, int]:
        """How many trials were given up, by code."""
        return Counter(t.code for t in self.trials if t.code)

    @property
    def best(self) -> Trial | None:
        """The fastest correct trial; None if there is none."""
        return min((t for t in self.trials if not t.code), key=lambda t: t.median_s, default=None)


def measure(
    computation: Computation,
    candidates: Iterable[Schedule],
    target: OnDevice,
    *,
    most: int | None = None,
    bound_s: float = 0.0,
    samples: int = SAMPLES,
    limit_s: float = LIMIT_S,
    seed: int = 0,
    options: Options | None = None,
    progress: Progress | None = None,
) -> Measured:
    """Checks and times candidates for a computation on the target's device.

    candidates: generated and lowered until the target accepts `most` of them (None: all). bound_s: a lower bound of the time; the
    search ends with a candidate within 5 % of it. limit_s: for each request about a candidate: to build it, to run it once, to
    take one sample. seed: of the inputs. options: including `without_rules`. progress: called with a stage ("check", "time"), the
    number of candidates or rounds done, and their total. Raises DeviceError if there is no device, or no process that can use it.
    """
    if target.device is None:
        raise DeviceError(
            "no-device", f"the target {target} has no device to run on", help="use the target of a device on this machine"
        )
    options, tell = options or Options.from_environment(), progress or (lambda stage, done, of: None)
    pruning = Pruning.without(options.without_rules)
    made = list(_lowered(candidates, most, target, options))
    rules = pruned([p for _, p in made if isinstance(p, Program)], target, options, pruning)
    trials = [
        Trial(s, code=p.code, why=p.message) if isinstance(p, TileLangError) else _unpruned(s, rules[p.source]) for s, p in made
    ]
    try:
        with tempfile.TemporaryDirectory(prefix="tilelang-measure-") as folder:
            checks = _Checks(computation, Path(folder), seed, {s.error_ulps for s, _ in made})
            setting = Setting(target.device, options.cache_dir, checks.inputs, checks.outputs)
            with contextlib.closing(_Bench(setting, [p for _, p in made], limit_s)) as bench:
                _first(trials, bench, checks, bound_s, tell)
                _rounds(trials, bench, samples, tell)
    except OSError as error:  # no disk space for the inputs, or no new process
        raise DeviceError(
            "no-measurement",
            f"nothing can be measured: {error}",
            help="make room for files in TMPDIR, or use trials=0, which measures nothing",
        ) from None
    return Measured(tuple(trials), bound_s, pruning)


def _lowered(
    candidates: Iterable[Schedule], most: int | None, target: OnDevice, options: Options
) -> Iterator[tuple[Schedule, Program | TileLangError]]:
    """Candidates with their programs, or with the reason why they have none, until there are `most` programs."""
    taken = 0
    for schedule in candidates:
        program = program_of(schedule, target, options)
        yield schedule, program
        taken += isinstance(program, Program)
        if taken == most:
            return


def _unpruned(schedule: Schedule, rule: str) -> Trial:
    return Trial(schedule, code=rule, why=RULES[rule]) if rule else Trial(schedule)


# ---------------------------------------------------------------- rounds


def _first(trials: list[Trial], bench: _Bench, checks: _Checks, bound_s: float, tell: Progress) -> None:
    """Checks each candidate and takes its first samples, until one is near the bound."""
    for number, trial in enumerate(trials):
        tell("check", number, len(trials))
        if trial.code:
            continue
        try:
            ratio = bench.attempt(number, functools.partial(checks.error_ratio, bench, number, trial.schedule.error_ulps))
            seconds = tuple(bench.sample_s(number) for _ in range(FIRST_SAMPLES))
            trials[number] = dataclasses.replace(trial, error_ratio=ratio, seconds=seconds)
        except _Fault as fault:
            trials[number] = dataclasses.replace(trial, code=fault.code, why=fault.why)
        if trials[number].median_s <= NEAR_BOUND * bound_s:
            why = f"candidate {number + 1} is within {NEAR_BOUND - 1:.0%} of the lower bound"
            rest = trials[number + 1 :]
            trials[number + 1 :] = [t if t.code else dataclasses.replace(t, code="not-tried", why=why) for t in rest]
            break
    tell("check", len(trials), len(trials))


def _rounds(trials: list[Trial], bench: _Bench, samples: int, tell: Progress) -> None:
    """Takes the remaining samples, in turns, of candidates that are not outclassed."""
    for done in range(FIRST_SAMPLES, samples):
        tell("time", done, samples)
        best_s = min((t.median_s for t in trials if not t.code), default=math.inf)
        for number, trial in enumerate(trials):
            if trial.code or (len(trial.seconds) >= LEAST_SAMPLES and min(trial.seconds) > OUTCLASSED * best_s):
                continue
            try:
                trials[number] = dataclasses.replace(trial, seconds=(*trial.seconds, bench.sample_s(number)))
            except _Fault as fault:
                trials[number] = dataclasses.replace(trial, code=fault.code, why=fault.why)
    tell("time", samples, samples)


# ---------------------------------------------------------------- correctness


class _Checks:
    """The inputs of the candidates, in files, and the expected outputs: for random data, and for small integers if they are
    exact.

    The reference is evaluated before anything is timed, because the threads of NumPy's libraries keep spinning for a while after
    their work.
    """

    def __init__(self, computation: Computation, folder: Path, seed: int, error_ulps: Set[float]) -> None:
        self.computation, self.folder = computation, folder
        self.arrays = [("random data", reference.random_arrays(computation, seed))]
        if reference.exact(computation):
            self.arrays.append(("small integers", reference.integer_arrays(computation, seed)))
        self.inputs = tuple(self._written(data) for data in range(len(self.arrays)))
        self.outputs = {t.name: math.prod(t.shape) * np.dtype(array_type(t)).itemsize for t in computation.outputs}
        self.known = {
            (data, ulps): reference.evaluate_and_bound(computation, arrays, ulps)
            for data, (_, arrays) in enumerate(self.arrays)
            for ulps in error_ulps
        }

    def _written(self, data: int) -> dict[str, Path]:
        found = {}
        for k, (name, array) in enumerate(self.arrays[data][1].items()):
            found[name] = self.folder / f"input.{data}.{k}"
            array.tofile(found[name])
        return found

    def error_ratio(self, bench: _Bench, number: int, error_ulps: float) -> float:
        """Runs a candidate on all inputs; its greatest difference from the reference, as a share of the allowed error.

        Raises _Fault if a result is wrong.
        """
        worst = 0.0
        for data, (kind, _) in enumerate(self.arrays):
            files = {t.name: self.folder / f"output.{k}" for k, t in enumerate(self.computation.outputs)}
            bench.ask(number, "run", data, files)
            results = {t.name: np.fromfile(files[t.name], array_type(t)).reshape(t.shape) for t in self.computation.outputs}
            (run,) = reference.compared(self.computation, self.known[data, error_ulps], results, data > 0, kind).runs
            if run.wrong:
                raise _Fault("wrong", str(run))
            worst = max(worst, run.worst)
        return worst


# ---------------------------------------------------------------- the process


class _Fault(Exception):
    """The reason why a candidate is given up."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(code, why)
        self.code, self.why = code, why


class _Bench:
    """Sends requests about candidates to the process, loading them there when needed; starts a new process after a fault."""

    def __init__(self, setting: Setting, programs: Sequence[Program | TileLangError], limit_s: float) -> None:
        self.setting, self.programs, self.limit_s = setting, programs, limit_s
        self._process: _Process | None = None
        self._loaded: set[int] = set()

    def attempt(self, number: int, work: Callable[[], float]) -> float:
        """Does some work with a candidate; if it fails in a process that has run other candidates, tries once more in a fresh one."""
        alone = self._loaded <= {number}
        try:
            return work()
        except _Fault as fault:
            self.close()
            if alone or fault.code == "timeout":
                raise
            return work()

    def sample_s(self, number: int) -> float:
        """Seconds of one call of a candidate."""
        return self.attempt(number, lambda: float(self.ask(number, "sample", SAMPLE_S)["seconds"]))

    def ask(self, number: int, what: str, *arguments: Any) -> dict[str, Any]:
        """The answer of the process. Raises _Fault if there is none, or if the answer is a fault."""
        if self._process is None:
            self._process, self._loaded = _Process(self.setting), set()
        if number not in self._loaded:
            self._loaded.add(number)
            self._process.ask("load", self.limit_s, number, self.programs[number])
        return self._process.ask(what, self.limit_s, number, *arguments)

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.end()
        self._process = None


class _Process:
    """A measuring process. Raises DeviceError if it cannot start."""

    def __init__(self, setting: Setting) -> None:
        start = f"import sys; sys.path[:] = {sys.path!r}; from tilelang.autoschedule.tune.worker import main; main()"
        self._said = tempfile.TemporaryFile()
        self._child = subprocess.Popen(
            [sys.executable, "-c", start],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            start_new_session=True,  # the parent handles Ctrl-C
        )
        try:
            self.ask("", START_S, setting)
        except _Fault as fault:
            self.end()
            message = f"the process that measures cannot use {setting.device}: {fault.why}"
            raise DeviceError("no-measurement", message, help="use trials=0, which measures nothing") from None
        except BaseException:  # such as Ctrl-C
            self.end()
            raise

    def ask(self, what: str, limit_s: float, *arguments: Any) -> dict[str, Any]:
        """The answer to a request. Raises _Fault."""
        assert self._child.stdin is not None
        try:
            pickle.dump((what, limit_s, arguments), self._child.stdin)
            self._child.stdin.flush()
            answer = json.loads(self._line(limit_s + GRACE_S))
        except (OSError, ValueError):  # the process has ended, or is corrupted
            raise self._end_of(limit_s) from None
        if "code" in answer:
            raise _Fault(str(answer["code"]), str(answer["why"]))
        return dict(answer)

    def _line(self, limit_s: float) -> bytes:
        """The next line from the process; incomplete if the process or the time has ended."""
        assert self._child.stdout is not None
        end, found = time.monotonic() + limit_s, b""
        while not found.endswith(b"\n"):
            ready, _, _ = select.select([self._child.stdout], [], [], max(0.0, end - time.monotonic()))
            piece = os.read(self._child.stdout.fileno(), 1 << 16) if ready else b""
            if not piece:
                break
            found += piece
        return found

    def _end_of(self, limit_s: float) -> _Fault:
        """How the process ended; it is terminated if it is still running."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(GRACE_S)
        code = self._child.poll()
        if code is None or code == -signal.SIGALRM:
            return _Fault("timeout", f"it took longer than {limit_s:g} s")
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return _Fault("crashed", f"the process ended with {how}{self._last_words()}")

    def _last_words(self) -> str:
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        return f": {lines[-1]}" if lines else ""

    def end(self) -> None:
        """Kills the process."""
        self._child.kill()
        self._child.wait()
        for stream in filter(None, (self._child.stdin, self._child.stdout, self._said)):
            with contextlib.suppress(OSError):  # unsent data for a dead process
                stream.close()
