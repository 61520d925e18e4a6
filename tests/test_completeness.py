"""What exists is complete: the fixed names are there, and nothing is added without its case everywhere it needs one."""

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tests.instructions import kernels
from tilelang.core import dtype as dt
from tilelang.core import expr, numeric
from tilelang.lowering import ir, printer
from tilelang.lowering.build.lower_steps import VERBS
from tilelang.lowering.drivers import extensions
from tilelang.lowering.simulator import values
from tilelang.lowering.simulator.role_threads import RoleThreads
from tilelang.lowering.targets import opencl
from tilelang.lowering.targets.c import emitter, expressions
from tilelang.profiles import files
from tilelang.schedules.schedule import Builder
from tilelang.schedules.steps import Open, Place, Step, When
from tilelang.semantics import error_bound

ROOT = Path(__file__).resolve().parent.parent
TESTS = "\n".join(p.read_text(encoding="utf-8") for p in ROOT.glob("tests/**/*.py") if p != Path(__file__).resolve())
ERROR_TEXTS = "\n".join(p.read_text(encoding="utf-8") for p in ROOT.glob("tests/errors/**/*.txt"))
EXAMPLES = "\n".join(p.read_text(encoding="utf-8") for p in ROOT.glob("examples/*.py"))

NAMES = """
axes input define computation sum max min prod argmax argmin reduce where cast pad exp log sqrt tanh erf sigmoid abs floor
float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool float8_e4m3 float8_e5m2 int4 uint4
schedule move layout hole warps block warp thread register shared compile target devices simulate instruction kernel
TileLangError Refusal ParseError ComputationError DeviceError Tensor Computation Schedule Kernel
""".split()

BUILDER = "units fuse unfuse tile split load compute accumulate inline vectorize do when"
MEMBERS = {
    "Computation": "inputs outputs definitions evaluate bound text hash",
    "Schedule": BUILDER + " steps specs prefix check explain text hash",
    "Move": BUILDER + " via",
    "Layout": "pad swizzle",
    "Kernel": "__call__ check benchmark source schedule compiled resources assembly estimate launch",
}

PARAMETERS = {
    "compile": "target schedule trials options",
    "Kernel.__call__": "out queue",
    "Kernel.check": "seed",
    "Schedule.split": "unroll peel",
    "Schedule.check": "profile",
    "target": "profile",
}

METHODS = {
    "Units": "units", "Fuse": "fuse", "Unfuse": "unfuse", "Tile": "tile", "Split": "split", "Place": "load", "Inline": "inline",
    "Vectorize": "vectorize", "Do": "do", "Open": "rest", "When": "when",
}  # fmt: skip

# Errors that no test can provoke: every walk's variable has bounds, so the slot of an element is always known.
UNTESTED = {"register-slot"}


def subclasses(base: type[Any]) -> list[type[Any]]:
    """The classes below one that no one derives from, by name.

    A dataclass with slots is made anew: its first version lingers among the subclasses, and is left out.
    """
    found: dict[str, type[Any]] = {}
    children: list[type[Any]] = base.__subclasses__()
    for child in children:
        if getattr(sys.modules[child.__module__], child.__name__, None) is child:
            found |= {c.__name__: c for c in subclasses(child) or [child]}
    return [found[name] for name in sorted(found)]


def name_of(cls: type[Any]) -> str:
    return str(cls.__name__)


def members(cls: type[Any]) -> set[str]:
    """What instances have: what the class has, and what its methods set."""
    assigned = set(re.findall(r"self\.(\w+)(?=[^=\n(]*=[^=])", inspect.getsource(cls)))
    return set(dir(cls)) | assigned | {name for base in cls.__mro__ for name in getattr(base, "__annotations__", {})}


def mentions(module: ModuleType, name: str) -> bool:
    return re.search(rf"\b{name}\b", inspect.getsource(module)) is not None


@pytest.mark.parametrize("name", NAMES)
def test_fixed_names_exist(name: str) -> None:
    assert getattr(tl, name) is not None
    assert name in tl.__all__


def test_everything_public_is_there() -> None:
    assert [name for name in tl.__all__ if not hasattr(tl, name)] == []
    assert len(set(tl.__all__)) == len(tl.__all__)


def test_dir_lists_what_is_public() -> None:
    assert set(dir(tl)) == {*tl.__all__, "__version__", "testing"}


def test_every_keyword_of_a_verb_is_named_and_typed() -> None:
    """So that an IDE completes it: no verb takes `**anything: Any`, but for names of axes, levels and operands."""
    for cls in (tl.Schedule, tl.Move):
        for name, verb in inspect.getmembers(cls, inspect.isfunction):
            parameters = inspect.signature(verb).parameters.values()
            assert all(p.annotation != "Any" for p in parameters if p.kind == p.VAR_KEYWORD), (cls, name)


OWN_NAMES = {"arrays", "named", "changes"}  # of inputs, of fields


def test_every_keyword_of_a_public_function_is_named_and_typed() -> None:
    """What takes any name takes names of the caller's: axes, inputs; or the fields of a value, to change them."""
    for name in tl.__all__:
        public = getattr(tl, name)
        methods = [m for m in vars(public) if not m.startswith("_") or m == "__call__"] if inspect.isclass(public) else []
        for function in [getattr(public, m) for m in methods] or [public]:
            if not inspect.isfunction(function):
                continue
            for p in [*inspect.signature(function).parameters.values()]:
                assert p.name in ("self", "cls") or p.annotation is not p.empty, (name, p)
                assert p.kind != p.VAR_KEYWORD or p.name in OWN_NAMES or p.annotation != "Any", (name, p)


def test_python_suggests_the_nearest_verb() -> None:
    """In a traceback: the message itself is Python's."""
    code = "import tilelang as tl; tl.move().acumulate(tl.register)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stderr
    assert "Did you mean: 'accumulate'?" in told


@pytest.mark.parametrize(("misspelled", "meant"), [("defin", "define"), ("compil", "compile"), ("imput", "input")])
def test_python_suggests_the_nearest_public_name(misspelled: str, meant: str) -> None:
    code = f"import tilelang as tl; tl.{misspelled}"  # a fresh process: what loads on first use is not loaded yet
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stderr
    assert f"Did you mean: '{meant}'?" in told


@pytest.mark.parametrize("name", MEMBERS)
def test_fixed_members_exist(name: str) -> None:
    assert set(MEMBERS[name].split()) - members(getattr(tl, name)) == set()


@pytest.mark.parametrize("path", PARAMETERS)
def test_fixed_parameters_exist(path: str) -> None:
    found: Any = tl
    for part in path.split("."):
        found = getattr(found, part)
    assert set(PARAMETERS[path].split()) - set(inspect.signature(found).parameters) == set()


def test_places_take_what_the_language_says() -> None:
    m, k = tl.axes(m=8, k=8)
    a = tl.input("A", tl.float32, m, k)
    start = tl.schedule(tl.define("C", tl.sum(a[m, k], over=k), m)).tile(m=4).to(tl.block, count=2, order=tl.layout("m"))
    done = start.load("A", tl.shared, layout=tl.layout("k", "m").pad(4), ahead=1, steps=tl.move().tile(m=1).to(tl.thread))
    assert len(done.steps) == 2
    assert len(done.prefix(1).steps) == 1


def test_every_step_has_a_method_and_a_test() -> None:
    assert {name_of(cls) for cls in subclasses(Step)} == set(METHODS)
    for method in METHODS.values():
        assert hasattr(Builder, method)
        assert f".{method}(" in TESTS or f".{method}(" in EXAMPLES, f"no test writes .{method}(...)"


def test_every_step_that_is_left_in_a_schedule_is_lowered() -> None:
    assert set(subclasses(Step)) - set(VERBS) == {Place, Open, When}  # conditions are decided before, holes refused
    assert {verb for verb in VERBS if isinstance(verb, str)} == {"load", "compute", "accumulate", "via"}  # a place's


KERNEL_EXPRESSIONS = [c for c in subclasses(expr.Expr) if c not in (expr.Axis, expr.Read, expr.Pad, expr.Reduce)]


@pytest.mark.parametrize("cls", [c for c in subclasses(ir.Stmt) if c.__module__ == ir.__name__], ids=name_of)
def test_every_statement_is_simulated_printed_and_emitted(cls: type[Any]) -> None:
    assert cls in RoleThreads.statements
    assert mentions(printer, cls.__name__)
    assert mentions(emitter, cls.__name__)


@pytest.mark.parametrize("cls", KERNEL_EXPRESSIONS, ids=name_of)
def test_every_expression_is_simulated_and_emitted(cls: type[Any]) -> None:
    assert cls in values.EVALUATE
    assert mentions(expressions, cls.__name__)


def spelling(function: Callable[[expr.Expr], expr.Expr]) -> str:
    """The OpenCL C of a kernel that applies a function to one element."""
    x, y = (ir.Buffer(n, dt.float32, (1,), "global", role) for n, role in (("X", "input"), ("Y", "output")))
    body = ir.Store(y, (expr.index(0),), expr.cast(function(ir.Load(x, (expr.index(0),))), dt.float32))
    return emitter.emit(ir.Program((ir.Kernel("one", (1, 1, 1), 1, (x, y), body),), (x, y)), opencl.DIALECT)


@pytest.mark.parametrize("name", [*expr.FLOAT_FUNCTIONS, *expr.ANY_FUNCTIONS, *expr.PREDICATES])
def test_every_function_has_a_name_a_meaning_a_bound_and_a_spelling(name: str) -> None:
    assert callable(getattr(tl, name))
    assert np.asarray(numeric.call(name, np.array([0.5], np.float32))).shape == (1,)
    assert name in error_bound.ULPS or name in expr.PREDICATES
    assert spelling(lambda x: expr.Call(name, (x,))) != spelling(lambda x: x)


def every_call(folders: Iterable[str]) -> Iterator[tuple[Path, ast.Call]]:
    """Every call in the sources of some folders."""
    for path in sorted(p for folder in folders for p in (ROOT / folder).rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call):
                yield path, call


def calls(folders: Iterable[str]) -> Iterator[tuple[Path, ast.Call, str, str]]:
    """Every call of a plain name whose first argument is a text: the file, the call, the name, the text."""
    for path, call in every_call(folders):
        if isinstance(call.func, ast.Name) and call.args and isinstance(call.args[0], ast.Constant):
            yield path, call, call.func.id, str(call.args[0].value)


def test_every_shipped_instruction_says_where_it_is() -> None:
    """Its machine code is looked at on the lowest architecture that has it, its lanes in the tests over all shipped instructions."""
    for made in kernels.SHIPPED:
        assert made.source, made.name
        for dialect, families in (("cuda", kernels.NVIDIA), ("hip", kernels.AMD), ("cpu", kernels.PROCESSORS)):
            if dialect in made.dialects and (made.needs or dialect != "cpu"):
                assert made.definitions_in(dialect) and set(made.needs) <= set(families), made.name
        assert made.template or made.name.startswith("simulated"), made.name
    offered = {c for name in files.shipped_profiles() for c in files.load_profile(name).capabilities}
    offered |= {capability for _, capability in extensions.CAPABILITIES}
    assert {need for made in kernels.SHIPPED for need in made.needs} <= offered


def test_every_profile_has_a_test() -> None:
    assert {name for name in files.shipped_profiles() if f'"{name}"' not in TESTS} == set()


@pytest.mark.slow
def test_every_error_is_provoked_by_a_test() -> None:
    kinds = {"Refusal", "ComputationError", "DeviceError", "ParseError", "TileLangError"}
    places = {
        code: f"{path.relative_to(ROOT)}:{call.lineno}: {code}"
        for path, call, name, code in calls(["tilelang", "grammar", "lowering", "autoschedule"])
        if name in kinds
    }
    # `refuse(step, "code", ...)` and its like make most refusals
    for path, call in every_call(["tilelang", "grammar", "lowering", "autoschedule"]):
        if isinstance(call.func, ast.Name) and call.func.id in ("refuse", "_refuse") and len(call.args) > 1:
            code = call.args[1]
            if isinstance(code, ast.Constant) and isinstance(code.value, str) and " " not in code.value:
                places[code.value] = f"{path.relative_to(ROOT)}:{call.lineno}: {code.value}"
    silent = {c for c in places if f'"{c}"' not in TESTS and f"[{c}]" not in TESTS and f"error[{c}]" not in ERROR_TEXTS}
    assert sorted(places[code] for code in silent - UNTESTED) == []
    assert sorted(UNTESTED - silent) == [], "these have their test by now"
