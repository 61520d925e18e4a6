"""The table of what schedules become: a line for each matrix product, spills and conflicts in it."""

from typing import Any

import pytest

from benchmarks import machine_code
from tests.gate.machine_code import compile_for_architecture
from tilelang.errors import DeviceError


def test_every_case_has_a_name_of_its_own() -> None:
    names = [case[0] for case in machine_code.cases()]
    assert len(names) == len(set(names)) > 15


@pytest.mark.parametrize("name", ["gemm_ampere float16", "gemm_mi300"])
def test_a_line_of_the_table(name: str) -> None:
    (case,) = [c for c in machine_code.cases() if c[0] == name]
    compile_for_architecture("sm_80" if case[1] == "cuda" else "gfx942")  # skips without a compiler
    try:
        line: Any = machine_code.row(case, 512)
    except DeviceError as error:
        pytest.skip(str(error))
    assert line[3] == "0" and line[6] == "0" and "SCALAR" not in line[5] and line[5].split()[0] in ("64", "32")
