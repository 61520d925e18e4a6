"""A few programs drawn from the documentation alone, of each kind: nothing about them is wrong."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tilelang as tl
from benchmarks.foreign import __main__ as foreign
from benchmarks.foreign import data, python, worker
from benchmarks.foreign.draw import Drawer
from benchmarks.foreign.program import program_text
from benchmarks.foreign.shrink import shrunk
from benchmarks.foreign.worker import case


@pytest.mark.parametrize(("kind", "seeds"), [("cpu", (1, 2, 3)), ("simulated", (1, 2, 3)), ("constructed", (1, 2, 20153, 21407))])
def test_drawn_programs_are_right(kind: str, seeds: tuple[int, ...]) -> None:
    found = [case(kind, seed) for seed in seeds]
    assert [r["faults"] for r in found] == [[]] * len(seeds)
    assert sum(r.get("ran", False) for r in found) >= 2


def test_a_case_that_does_not_end_is_a_fault_and_the_next_one_begins() -> None:
    found = list(foreign.reports("cpu", 1, 2, 60, 0.001))  # no process starts that fast
    assert [(r["seed"], r["faults"]) for r in found] == [(1, ["no end within 0.001 s"]), (2, ["no end within 0.001 s"])]
    assert foreign.summary(found) == "2 cases, 0 ran, 0 programs refused, 2 with faults"


def test_a_case_that_blocks_is_a_fault_too() -> None:
    blocked = [sys.executable, "-c", "import time; time.sleep(1000)"]
    with subprocess.Popen(blocked, stdout=subprocess.PIPE, text=True, process_group=None if os.name == "nt" else 0) as child:
        found = list(foreign._of_child(child, "cpu", 7, 0.2))
    assert [(r["seed"], r["faults"]) for r in found] == [(7, ["no end within 0.2 s"])]


def test_only_steered_cases_need_coverage() -> None:
    program = "import sys, benchmarks.foreign.__main__, benchmarks.foreign.worker; sys.exit('coverage' in sys.modules)"
    settings = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    root = Path(foreign.__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", program], cwd=root, env=settings).returncode == 0


def test_the_command_counts_what_was_drawn(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["foreign", "--kind", "simulated", "--first", "1", "--count", "2"])
    assert foreign.main() == 0
    text = capsys.readouterr().out
    assert text.startswith("2 cases,") and "type: " in text and "index: " in text


@pytest.mark.parametrize("seed", range(30))
def test_a_program_is_the_same_as_text_and_in_python(seed: int) -> None:
    program = Drawer(seed, 300).program()
    text, built = tl.parse(program_text(program)).computation(), python.computation(program, random.Random(seed))
    arrays = data.arrays(program, seed, "special")
    for made in (text, built):
        assert [t.name for t in made.outputs] == [
            n for d in program["definitions"] for n in d["names"] if n in program["outputs"]
        ]
    values = [made.evaluate(**{t.name: arrays[t.name] for t in made.inputs}) for made in (text, built)]
    for one, other in zip(*(v.values() if isinstance(v, dict) else (v,) for v in values), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(np.asarray(one, np.float64), np.asarray(other, np.float64))


@pytest.mark.parametrize("seed", range(20))
def test_an_array_laid_out_otherwise_holds_the_same(seed: int) -> None:
    array = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    np.testing.assert_array_equal(data.laid_out(array, random.Random(seed)), array)


def test_a_case_is_made_small() -> None:
    """Here a case fails where the program has a `prod` and the schedule walks."""
    drawn = (Drawer(seed, 600).program() for seed in range(200))
    program = next(p for p in drawn if "prod" in program_text(p) and len(p["definitions"]) > 2)

    def fails(case: tuple[dict[str, object], list[object] | None]) -> bool:
        text = program_text(case[0])
        try:
            tl.parse(text).computation()
        except tl.TileLangError:
            return False
        return "prod" in text and any("split" in str(s) for s in case[1] or ())

    small, steps = shrunk((program, ["tile i=4 -> block", ["load A0 in shared pad 3", ["split i=4 j=8 peel"]]]), fails)
    assert len(small["definitions"]) == 1 and program_text(small).count("\n") <= 8
    assert steps == [["load A0 in shared", ["split i=1"]]] or steps == [["load A0 in shared", ["split j=1"]]]


def test_faults_are_told_apart_by_where_they_arise() -> None:
    trace = 'run: Traceback\n  File "a.py", line 3, in f\n    x\n  File "b.py", line 4, in g\n    y\nKeyError: \'q\''
    assert worker.sort_of(trace) == "('b.py', 'g') KeyError"
    assert (
        worker.sort_of("exact: kernel: C0[3, 4] is 1")
        == worker.sort_of("random: kernel: C0[0, 0] is 2")
        != worker.sort_of("naive: C0")
    )
