"""The examples in docstrings are right, and the public functions have one."""

import doctest
import importlib
import inspect
import pkgutil
from types import ModuleType

import pytest

import tilelang as tl
from tilelang.schedules.schedule import Builder

MODULES = ["tilelang"] + sorted(
    m.name for m in pkgutil.walk_packages(tl.__path__, "tilelang.") if not m.name.endswith((".__main__", ".demo"))
)
NEEDS = {"tilelang.torch": "torch"}  # modules that need a library which need not be installed
EXEMPLARY = [
    "schedules.schedule",
    "core.layout",
    "runtime.kernel",
    "schedules.spec",
    "schedules.explain",
    "schedules.task",
]  # every public function of these modules shows an example


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name: str) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    for example in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        report: list[str] = []
        runner.run(example, out=report.append)
        assert runner.failures == 0, "".join(report)


def functions(module: ModuleType) -> list[str]:
    """The public functions that a module defines."""
    return [n for n, f in inspect.getmembers(module, inspect.isfunction) if f.__module__ == module.__name__ and n[0] != "_"]


@pytest.mark.parametrize("name", EXEMPLARY)
def test_public_functions_show_an_example(name: str) -> None:
    module = importlib.import_module(f"tilelang.{name}")
    assert [n for n in functions(module) if ">>>" not in (getattr(module, n).__doc__ or "")] == []


def test_every_verb_says_what_it_does() -> None:
    verbs = [f for n, f in inspect.getmembers(Builder, inspect.isfunction) if not n.startswith("_")]
    assert [f.__name__ for f in verbs if not f.__doc__] == []
