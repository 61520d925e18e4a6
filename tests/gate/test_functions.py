"""Functions of 64-bit floats as AMD's back end compiles them: nothing is left for a library, nothing is spilled."""

from __future__ import annotations

import pytest

import tilelang as tl
from tests.gate.machine_code import AMD, compile_for_architecture
from tilelang.core.expr import Binary, Call

PROFILES = {"gfx90a": "cdna2", "gfx942": "cdna3", "gfx1100": "rdna3"}


@pytest.mark.parametrize("name", ["sin", "cos", "erf", "pow"])
@pytest.mark.parametrize("architecture", AMD)
def test_functions_of_doubles(name: str, architecture: str) -> None:
    i = tl.axes(i=1024)
    X = tl.input("X", tl.float64, i)
    value = Binary("pow", X[i], X[i] + 1.0) if name == "pow" else Call(name, (X[i],))
    schedule = tl.schedule(tl.define("Y", value, i)).tile(i=256).to(tl.block).tile(i=1).to(tl.thread)
    kernel = tl.compile(schedule, target=tl.target("hip", profile=PROFILES[architecture]))
    assert not compile_for_architecture(architecture)(kernel.source).uses.spills
