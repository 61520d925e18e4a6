"""What the programs of the corpus and the examples cost and say, beside what they did when somebody last looked.

The corpus reaches every branch of the lowering, and other tests say that the values are right. A wrong estimate of what pays, a guard
that need not be there, a copy or vector that is missed, one barrier too many change no value: they change what a thread executes. So
`costs.json` in tests/corpus has a line for each kernel (how often a thread executes what at most, which memory it takes) and its notes,
or the message with which a program is refused. `pytest tests/lowering/test_costs.py --update-golden` writes them anew: look at the
difference.
"""

from __future__ import annotations

import collections
import json
from collections.abc import Callable
from functools import partial

import pytest

import tilelang as tl
from benchmarks.foreign import corpus
from benchmarks.foreign.devices import DEVICES, Device
from tests.test_examples import NAMES, SIZES, schedules_for
from tilelang.core.expr import Select
from tilelang.core.simplify import interval
from tilelang.lowering import ir
from tilelang.lowering.pipeline import lower
from tilelang.schedules.schedule import Schedule

PATH = corpus.FOLDER / "costs.json"
PARTS = 32


ENTRIES = {entry.name: entry for entry in corpus.entries()}
EXAMPLES = {f"{name} @ {device[1]}": (name, device) for name in NAMES for device in DEVICES}
PROGRAMS = sorted([*ENTRIES, *EXAMPLES])


def costs(kernel: ir.Kernel) -> str:
    """How often a thread executes each kind of statement, access and choice at most: twice, in a loop of two rounds. What else an
    expression consists of, numbers and variables included, counts as an operation."""
    counts = collections.Counter[str]()

    def visit(stmt: ir.Stmt, times: int) -> None:
        if not isinstance(stmt, ir.Seq | ir.Store):
            counts[f"{stmt.kind} For" if isinstance(stmt, ir.For) else type(stmt).__name__] += times
        if isinstance(stmt, ir.Store):
            counts[f"store {stmt.buffer.memory} x{ir.lanes(stmt.value)}"] += times
        if isinstance(stmt, ir.For):
            most = interval(stmt.extent)[1]
            times *= 1 if most is None else max(0, most)
        for expression in ir.expressions(stmt):
            for e in expression.walk():
                match e:
                    case ir.Load():
                        counts[f"load {e.buffer.memory} x{e.lanes}"] += times
                    case Select():
                        counts["Select"] += times
                    case _:
                        counts["operation"] += times
        for part in ir.parts(stmt):
            visit(part, times)

    visit(kernel.body, 1)
    registers = sum(b.bytes for b in kernel.registers)
    takes = f"grid {kernel.grid}, {kernel.threads} threads, {kernel.shared_bytes} B shared, {registers} B registers"
    return f"{takes}: {', '.join(f'{n} {what}' for what, n in sorted(counts.items()))}"


def said(make: Callable[[], Schedule], device: Device) -> list[str]:
    """The costs and notes of a schedule's kernels, or why it is refused and what to do."""
    try:
        schedule, target = make(), corpus.target_of(device)
        program = lower(schedule.computation, schedule.steps, target.profile, needs=target.needs)
    except tl.TileLangError as error:
        return [f"{error.code}: {error.message}", f"help: {error.help}"]
    return [line for kernel in program.kernels for line in (costs(kernel), *kernel.notes)]


def recorded_of(program: str) -> list[str]:
    """The lines of an entry of the corpus, or of all schedules of an example for a device."""
    if program in ENTRIES:
        return said(partial(corpus.schedule_of, ENTRIES[program]), ENTRIES[program].device)
    name, device = EXAMPLES[program]
    schedules = schedules_for(name, SIZES[name][1], corpus.target_of(device).profile)
    return [f"{title}: {line}" for title in schedules for line in said(partial(schedules.__getitem__, title), device)]


@pytest.mark.parametrize("part", range(PARTS))
def test_what_a_program_costs(part: int, only_shipped_instructions: Callable[[], None], request: pytest.FixtureRequest) -> None:
    found = dict[str, list[str]]()
    for program in PROGRAMS[part::PARTS]:
        only_shipped_instructions()
        found[program] = recorded_of(program)
    recorded = json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}
    if request.config.getoption("--update-golden"):
        recorded = {program: lines for program, lines in {**recorded, **found}.items() if program in PROGRAMS}
        PATH.write_text(json.dumps(recorded, indent=0, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
    assert found == {program: recorded.get(program, ["not recorded"]) for program in found}, "--update-golden accepts it"


def test_nothing_else_is_recorded() -> None:
    assert set(json.loads(PATH.read_text(encoding="utf-8"))) == set(PROGRAMS)
