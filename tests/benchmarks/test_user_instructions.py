"""Programs with instructions of a user's own, and that steps are drawn as the grammar writes them."""

from __future__ import annotations

import random

import pytest

import tilelang as tl
from benchmarks.foreign import corpus, instructions
from benchmarks.foreign.corpus import Entry
from benchmarks.foreign.mutate import joined
from benchmarks.foreign.plans import Planner
from benchmarks.foreign.program import step_text
from benchmarks.foreign.steer import issued
from benchmarks.foreign.steps import StepDrawer

AMPERE = ("cuda", "ampere")
PROGRAM = {
    "axes": {"i": 8, "k": 8},
    "inputs": [{"name": "X", "dtype": "float32", "dims": [["i", 8], ["k", 8]]}],
    "definitions": [{"names": ["Y"], "axes": ["i"], "values": [["reduce", "sum", ["k"], None, [["number", 1]]]]}],
}


def test_a_name_says_what_an_instruction_is() -> None:
    instructions.define("do user_axpy_8_float32_rr_1; do user_scale_64_int32_sg_32; do user_nothing_1_int32_rr_1")
    assert str(tl.use("user_axpy_8_float32_rr_1")) == "user_axpy_8_float32_rr_1: D[n] += S[] * X[n] (n=8) by a thread"
    scale = tl.use("user_scale_64_int32_sg_32")
    assert (scale.lanes, scale.operand("X").memory, scale.operand("D").memory) == (32, "shared", "global")
    with pytest.raises(tl.Refusal):
        tl.use("user_nothing_1_int32_rr_1")


def test_programs_for_instructions_are_often_accepted_and_right() -> None:
    r, accepted = random.Random(1), 0
    for _ in range(30):
        entry = Entry(AMPERE, joined(*instructions.Programs(r, "ampere").draw()))
        try:
            schedule, program = corpus.lowered(entry, verify=False)
        except tl.TileLangError:
            continue
        accepted += 1
        if accepted <= 5:
            assert not corpus.faults(schedule, program, AMPERE)
    assert accepted > 10


def test_a_shipped_instruction_gets_a_schedule() -> None:
    assert "do " in issued(random.Random(2), AMPERE).text


@pytest.mark.parametrize("units", ["", "roles"])
def test_units_are_drawn_as_the_grammar_writes_them(units: str) -> None:
    hopper = tl.load_profile("hopper")
    drawn = [StepDrawer(PROGRAM, random.Random(seed), units).step() for seed in range(600)]
    drawn += [
        s
        for seed in range(60)
        for s in Planner(StepDrawer(PROGRAM, random.Random(seed), units), random.Random(seed), "hopper").steps()
    ]
    found = {step_text(s) for s in drawn if step_text(s).startswith("units")}
    assert len(found) > 3
    for text in found:
        try:
            tl.parse(
                f"computation c {{ input X: float32[i: 8] output Y[i] = X[i] }} schedule for c {{ {text} }}"
            ).schedule().check(hopper)
        except tl.Refusal as refusal:
            assert refusal.code not in ("unknown-level", "units-not-below"), refusal
