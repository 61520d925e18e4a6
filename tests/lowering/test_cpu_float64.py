"""The native CPU target's functions of 64-bit floats: within the ulps that are stated, special values NumPy's, no library called."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import cpu_functions_float64 as cf
from tilelang.core.expr import FLOAT_FUNCTIONS
from tilelang.lowering.targets.cpu_functions.float64 import FUNCTIONS
from tilelang.lowering.targets.cpu_functions.float64_exact import polynomial
from tilelang.semantics import error_bound

pytest.importorskip("ziglang", reason="the compiler of the package ziglang builds the functions")
needs_reference = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="the reference is x86's long double of 80 bits, on Linux"
)
MACHINES = [("native", 1), ("native", 2), ("native", 4), ("native", 8), ("native", 16), ("x86-64", 1), ("x86-64", 8)]


@pytest.fixture(scope="module", params=MACHINES, ids=lambda p: f"{p[0]}-x{p[1]}")
def form(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """All functions compiled for a machine and a width: the library, the width."""
    machine, lanes = request.param
    return cf.build(cf.source(cf.NAMES, lanes), tmp_path_factory.mktemp("functions"), machine), lanes


def check(name: str, form: tuple[Path, int], arguments: tuple[cf.Array, ...]) -> float:
    found = cf.caller(form[0], name, form[1])(*arguments)
    off = cf.errors(name, arguments, found)
    worst, limit = int(off.argmax()), FUNCTIONS[name].ulps
    at = ", ".join(repr(float(x[worst])) for x in arguments)
    assert off[worst] <= limit, f"{name}({at}) is {found[worst]!r}: {off[worst]} ulps; stated {limit}"
    return float(off[worst])


def test_every_function_of_the_language_is_there() -> None:
    builtin = {"sqrt", "floor", "ceil", "round", "abs"}
    assert set(cf.NAMES) == {*FLOAT_FUNCTIONS, *cf.TWO_ARGUMENTS} - builtin == set(cf.EXACT)
    assert all(FUNCTIONS[name].ulps <= min(2.0, error_bound.ULPS.get(name, 0.0)) for name in cf.NAMES)


@needs_reference
@pytest.mark.parametrize("name", cf.NAMES)
def test_a_function_keeps_its_stated_error(name: str, form: tuple[Path, int]) -> None:
    worst = check(name, form, cf.samples(name, 1 << 14, form[1]))
    assert worst >= FUNCTIONS[name].ulps / 3, "the stated error is far too great"


@needs_reference
@pytest.mark.parametrize("name", cf.NAMES)
def test_special_values_are_numpys(name: str, form: tuple[Path, int]) -> None:
    check(name, form, cf.special_values(name))


@needs_reference
@pytest.mark.parametrize("name", ["sin", "cos", "pow", "fmod", "exp2"])
def test_error_without_contraction(name: str, tmp_path: Path) -> None:
    library = cf.build(cf.source((name,), 8), tmp_path, "native", "-ffp-contract=off")
    check(name, (library, 8), cf.samples(name, 1 << 14, 1))


@needs_reference
def test_a_wrong_result_is_found() -> None:
    x = cf.aligned(np.linspace(-3, 3, 16))
    right = np.exp(x)
    assert cf.errors("exp", (x,), right).max() < 1.0
    right[5] = np.nextafter(np.nextafter(np.nextafter(right[5], 9), 9), 9)
    assert cf.errors("exp", (x,), right).argmax() == 5 and cf.errors("exp", (x,), right).max() > 2.0
    assert cf.errors("sin", (cf.aligned(np.array([-0.0])),), np.array([0.0]))[0] == np.inf, "the sign of zero counts"


@pytest.mark.parametrize("machine", ["x86-64", "x86-64-v3", "x86-64-v4"])
def test_no_symbol_is_undefined(machine: str, tmp_path: Path) -> None:
    if sys.platform != "linux" or platform.machine() != "x86_64":
        pytest.skip("links ELF files of x86-64")
    for lanes in cf.WIDTHS:
        cf.build(cf.source(cf.NAMES, lanes), tmp_path, machine)
    with pytest.raises(subprocess.CalledProcessError) as refused:
        cf.build("double sin(double); double wave(double x) { return sin(x); }", tmp_path, machine)
    assert "undefined symbol: sin" in refused.value.stderr


def test_a_polynomial_has_its_terms_in_either_form() -> None:
    for ways in (1, 2):
        text = polynomial("p", "x", (1.0, -2.0, 3.0, 4.0, 5.0), ways).replace("const ", "").replace("$T ", "").replace(";", "")
        names = {"x": 3.0}
        exec("\n".join(line.strip() for line in text.splitlines()), names)
        assert names["p"] == 1 - 2 * 3 + 3 * 9 + 4 * 27 + 5 * 81
