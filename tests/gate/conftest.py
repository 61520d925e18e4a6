"""The compile gate: texts compiled to machine code for an architecture, without a device."""

import pytest

from tests.gate.machine_code import CompileFor, compile_for_architecture


@pytest.fixture
def compile_for() -> CompileFor:
    """`compile_for("sm_80")(source)` is the machine code with its listing; skips, and says why, where a compiler is absent."""
    return compile_for_architecture
