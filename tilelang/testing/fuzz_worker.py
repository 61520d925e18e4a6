"""The process that runs the cases of fuzzing: reads a text and input data, writes the outcome.

A case is the text of a computation and a schedule, so what runs is what is printed. `fuzzing.py` starts this process, and restarts it
when a kernel crashes it. Requests are pickled on standard input, from the parent alone; answers are lines of JSON.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import sys
import traceback
from collections.abc import Callable
from typing import Any

from tilelang.errors import ComputationError, DeviceError, Refusal, TileLangError, each
from tilelang.grammar import parse
from tilelang.options import Options
from tilelang.runtime import kernel as runtime_kernel
from tilelang.runtime.kernel import Kernel
from tilelang.runtime.targets import Target
from tilelang.semantics import reference
from tilelang.testing import kernel_checks
from tilelang.testing.case import arrays
from tilelang.testing.checking import Expected

RIGHT, REFUSED, SET_ASIDE = "right", "refused", "set aside"
WRONG, CRASHED, DIED, HUNG = "wrong", "crashed", "died", "hung"
FAULTS = (WRONG, CRASHED, DIED, HUNG)
OURS = (
    "compile-failed",
    "build-failed",
    "cannot-load",
    "launch-failed",
    "kernel-failed",
)  # device errors that a kernel can cause
RUNNING = "running"


@dataclasses.dataclass(frozen=True)
class Trial:
    """A text with one computation and one schedule, the kind of data in its inputs (see `testing.arrays`), and a seed."""

    text: str
    data: str
    seed: int


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The outcome of a trial. kind: one of the words above. code: of a refusal or another error. said: the faults, as text."""

    kind: str
    code: str = ""
    said: tuple[str, ...] = ()

    @property
    def is_fault(self) -> bool:
        return self.kind in FAULTS

    @property
    def sort(self) -> tuple[str, str]:
        """A key that is equal for outcomes of the same fault."""
        return self.kind, self.code or (self.said[0].partition(":")[0] if self.said else "")


def tried(trial: Trial, target: Target, tell: Callable[[str], None] = lambda _: None) -> Outcome:
    """Compiles, simulates and runs a trial, and compares it with the reference. tell: called before the kernel itself runs."""
    try:
        plan = parse(trial.text, "case.tile").schedule()
        options = dataclasses.replace(Options.from_environment(), cache_dir="", check=None)  # no case is compiled twice
        kernel = runtime_kernel.compile(plan, target, options=options)
        return _checked(kernel, trial, tell)
    except TileLangError as error:
        found = each(error)
        if all(isinstance(e, Refusal) for e in found):
            return Outcome(REFUSED, found[0].code)
        if isinstance(error, DeviceError) and error.code in OURS:
            return Outcome(WRONG, error.code, (error.render(),))
        if isinstance(error, (ComputationError, DeviceError)):
            return Outcome(SET_ASIDE, error.code)
        return Outcome(CRASHED, error.code, (f"the text cannot be read: {error.render()}",))
    except MemoryError:
        return Outcome(SET_ASIDE, "memory")
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        said = f"{type(error).__name__}: {error}\nin {where.name}, {os.path.basename(where.filename)}:{where.lineno}"
        return Outcome(CRASHED, type(error).__name__, (said,))


def _checked(kernel: Kernel, trial: Trial, tell: Callable[[str], None]) -> Outcome:
    computation = kernel.computation
    exactly = trial.data == "integers" and reference.exact(computation)
    expected = Expected(
        computation,
        arrays(computation, trial.data, trial.seed),
        exactly,
        kernel.schedule.error_ulps,
        kernel.schedule.shared_loops,
    )
    faults = kernel_checks.faults_of(kernel, expected, before_run=lambda: tell(RUNNING))
    return Outcome(WRONG, said=tuple(faults)) if faults else Outcome(RIGHT)


def main() -> None:
    """Answers requests: first the target, then trials."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of libraries must not be taken for an answer

    def tell(answer: Any) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    target = _next(requests)
    tell("ready")
    while (trial := _next(requests)) is not None:
        tell(dataclasses.asdict(tried(trial, target, tell)))


def _next(requests: Any) -> Any:
    try:
        return pickle.load(requests)
    except EOFError:
        return None
