"""Where the time goes from a formula to a kernel that has run: each stage for the operators of operators_cpu.csv, in milliseconds.

    python benchmarks/formula_to_run.py [--every 5] [--only C5,M1] [--passes]

A warm process with an empty cache of kernels compiles and runs one operator after another, as `benchmarks/operators.py` does for its
`kernel_ms`. `construct` is choosing a schedule, `build` and `passes` are the lowering, `emit` writes C, `clang` and `lld` are the
compiler's processes, clang's from when the text is there, `load` takes the library into the process, `run` is the first launch, `other`
the rest: reading the formula, caches, looking up what was timed before. --every N: take every Nth operator; --passes: print the time of
each pass.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `python benchmarks/formula_to_run.py` from anywhere

import numpy as np

import tilelang as tl
from benchmarks import operators_cases
from benchmarks.harness import launcher, table
from benchmarks.operators import warm_up
from benchmarks.operators_peers import random_arrays
from tilelang.autoschedule.common import complete
from tilelang.lowering import pipeline
from tilelang.lowering.compilers import native
from tilelang.lowering.drivers import host
from tilelang.lowering.targets.c import emitter
from tilelang.runtime import likely_kernel

STAGES = ("construct", "build", "passes", "emit", "clang", "lld", "load", "run", "other")


class Watch:
    """Milliseconds of each stage, those of a stage within another counted once."""

    def __init__(self) -> None:
        self.ms: defaultdict[str, float] = defaultdict(float)
        self._inside = [0.0]

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """What runs in the `with` is of this stage."""
        start = time.perf_counter()
        self._inside.append(0.0)
        try:
            yield
        finally:
            seconds = time.perf_counter() - start
            self.ms[name] += 1e3 * (seconds - self._inside.pop())
            self._inside[-1] += seconds

    def within(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """The function, its calls counted as a stage."""

        def watched(*given: Any, **named: Any) -> Any:
            with self.stage(name):
                made = work(*given, **named)
            return self._each(name, made) if isinstance(made, Iterator) else made

        return watched

    def _each(self, name: str, made: Iterator[Any]) -> Iterator[Any]:
        """What is made one after another, each as it is asked for."""
        while True:
            with self.stage(name):
                try:
                    found = next(made)
                except StopIteration:
                    return
            yield found


@contextlib.contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Has the functions where stages begin report to a watch."""
    step = pipeline._Watch.step

    def pass_by_name(self: Any, name: str, *given: Any) -> Any:
        with watch.stage(f"pass {name}"):
            return step(self, name, *given)

    with contextlib.ExitStack() as stack:
        for where, name, stage in (
            (complete, "in_order", "construct"), (emitter, "emit", "emit"), (likely_kernel, "emit", "emit"),
            (native, "object_code", "clang"),
            (native.Linker, "link", "lld"), (host, "load_library", "load"),
        ):  # fmt: skip
            stack.enter_context(mock.patch.object(where, name, watch.within(stage, getattr(where, name))))
        stack.enter_context(mock.patch.object(pipeline._Watch, "step", pass_by_name))
        yield


def measured(operator: operators_cases.Operator, target: tl.Target) -> defaultdict[str, float]:
    """Milliseconds of each stage and pass for one operator, and `all` of them."""
    arrays, name = random_arrays(operator), list(operator.shapes)[-1]
    arrays[name] = np.full(operator.shapes[name], np.nan, np.float32)
    watch = Watch()
    with watched(watch), watch.stage("other"):
        kernel = tl.compile(operator.computation(), target)
        begin, finish = launcher(kernel, arrays, (name,))
        with watch.stage("run"):
            begin()
            finish()
    found = watch.ms
    found["all"] = sum(found.values())
    found["build"] = found["pass build"]
    found["passes"] = sum(ms for what, ms in found.items() if what.startswith("pass ")) - found["build"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--every", type=int, default=1, help="take every Nth operator")
    parser.add_argument("--only", default="", help="names of operators, with commas between")
    parser.add_argument("--passes", action="store_true", help="print each pass by itself")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(TILELANG_CACHE_DIR=folder, TILELANG_DATABASE="")
        target = tl.target("cpu")
        warm_up(target)
        operators = [o for o in operators_cases.read() if not o.duplicate_of][:: given.every]
        if given.only:
            operators = [o for o in operators_cases.read() if o.id in given.only.split(",")]
        found = {o.id: measured(o, target) for o in operators}
    stages: tuple[str, ...] = ("all", *STAGES)
    if given.passes:
        stages += tuple(sorted({what for ms in found.values() for what in ms if what.startswith("pass ")}))
    rows = [[name, *(f"{ms[what]:.1f}" for what in stages)] for name, ms in found.items()]
    for what, of in (("median", statistics.median), ("mean", statistics.fmean), ("worst", max)):
        rows.append([what, *(f"{of([ms[stage] for ms in found.values()]):.1f}" for stage in stages)])
    print(table([["ms", *(what.removeprefix("pass ") for what in stages)], *rows]))


if __name__ == "__main__":
    main()
