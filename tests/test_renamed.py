"""Names of modules and passes that have moved: the old ones still work, and nothing of ours uses them."""

import ast
import importlib
import sys
from pathlib import Path

import pytest

import tilelang as tl
from tests.test_layers import ROOT, modules
from tilelang.renamed import MODULES, PASSES

SOURCES = [
    *(path for path, _ in modules()),
    *(p for part in ("tests", "examples", "benchmarks") for p in (ROOT / part).rglob("*.py")),
]


@pytest.mark.parametrize("old", ["tilelang.machine", "tilelang.lowering.build.nest", "tilelang.instructions.ptx"])
def test_an_old_name_is_the_same_module(old: str) -> None:
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match=f"{old} has moved: import {MODULES[old]}"):
        found = importlib.import_module(old)
    assert found is importlib.import_module(MODULES[old])


def test_every_new_name_exists_and_no_old_one() -> None:
    names = {f"tilelang.{name}" for _, name in modules()}
    assert set(MODULES.values()) <= names and not set(MODULES) & names


def test_an_old_name_leaves_public_functions_alone() -> None:
    """The function `tl.schedule` stays, although a module `tilelang.schedule` once existed, too."""
    before = {name: getattr(tl, name) for name in ("schedule", "computation", "instruction", "operand")}
    for name in before:
        sys.modules.pop(f"tilelang.{name}", None)
        with pytest.warns(DeprecationWarning):
            importlib.import_module(f"tilelang.{name}")
    assert {name: getattr(tl, name) for name in before} == before


def test_an_old_module_is_an_attribute() -> None:
    sys.modules.pop("tilelang.planning", None)
    with pytest.warns(DeprecationWarning):
        assert tl.planning is importlib.import_module("tilelang.runtime.schedule_selection")


def test_an_old_name_of_a_pass_still_works(capsys: pytest.CaptureFixture[str]) -> None:
    i, k = tl.axes(i=8, k=8)
    total = tl.schedule(tl.define("Y", tl.sum(tl.input("X", tl.float32, i, k)[i, k], over=k), i))
    with pytest.warns(DeprecationWarning, match="the pass promote is now called scalar_replacement"):
        tl.compile(total, tl.target("cpu"), options=tl.Options(debug="pass:promote"))
    assert PASSES["promote"] in capsys.readouterr().err


def imported(path: Path) -> set[str]:
    names = set()
    for item in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(item, ast.ImportFrom):
            names |= {item.module or "", *(f"{item.module}.{alias.name}" for alias in item.names)}
        elif isinstance(item, ast.Import):
            names |= {alias.name for alias in item.names}
    return names


def test_nothing_of_ours_imports_an_old_name() -> None:
    public = {f"tilelang.{name}" for name in tl.__all__}
    used = {
        str(path.relative_to(ROOT)): sorted(found) for path in SOURCES if (found := imported(path) & (MODULES.keys() - public))
    }
    assert not used
