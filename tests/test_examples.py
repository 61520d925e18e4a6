"""Every example: its own main, odd sizes against its NumPy formula, the simulator at tiny sizes, and its source as it was.

The golden sources are of the tiny schedules. `pytest tests/test_examples.py --update-golden` rewrites them; one that no example has
any more fails the run.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib.util
import inspect
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tilelang.lowering.targets.c.emitter import emit
from tilelang.profiles.profile import Profile
from tilelang.runtime.targets import DIALECTS
from tilelang.schedules.steps import Tile
from tilelang.semantics.reference import compare, evaluate_and_bound, random_arrays

ROOT = Path(__file__).parent.parent
GOLDEN = ROOT / "tests" / "golden"
WITHOUT_SCHEDULE = ("17_no_schedule",)  # whose schedules are the model's
WHOLE_MODELS = ("19_transformer",)  # tested by themselves: test_transformer.py
NAMES = sorted({path.stem for path in (ROOT / "examples").glob("[0-9]*.py")} - {*WITHOUT_SCHEDULE, *WHOLE_MODELS})

# Sizes at which every example runs, in the order of its parameters: one that divides its tiny tiles, odd ones, ones below a tile.
SIZES: dict[str, list[tuple[int, ...]]] = {
    "01_matmul": [(64, 64, 16), (17, 37, 11), (3, 1, 2), (5, 4, 0)],
    "02_batched_gelu": [(2, 16, 32, 8), (3, 11, 19, 7), (1, 1, 3, 2)],
    "03_implicit_gemm": [(1, 8, 4, 32, 3, 1, 1), (2, 7, 3, 5, 3, 2, 1), (1, 6, 2, 17, 2, 1, 0)],
    "04_direct_convolution": [(1, 4, 4, 16), (2, 5, 3, 7), (1, 3, 1, 1, 1)],
    "05_depthwise": [(1, 8, 16), (2, 5, 19), (1, 3, 1, 1)],
    "06_row_sum": [(4, 64), (5, 37), (1, 3), (3, 0)],
    "07_split_reduction": [(2, 256), (3, 333), (1, 5)],
    "08_softmax": [(4, 64), (3, 37), (1, 1)],
    "09_layer_norm": [(4, 64), (3, 37), (1, 1)],
    "10_argmax": [(4, 64), (3, 37), (1, 1)],
    "11_transpose": [(32, 32), (17, 37), (1, 3)],
    "12_embedding_bag": [(8, 16, 4, 4), (11, 19, 5, 3), (1, 1, 1, 1)],
    "13_causal_product": [(16, 32), (13, 19), (1, 2)],
    "14_own_instruction": [(16, 64, 8), (17, 37, 11), (3, 1, 2)],
    "15_matrix_units": [(16, 16, 32), (17, 37, 11)],
    "16_matrix_types": [(16, 16, 32), (17, 37, 11)],
    "18_online_softmax": [(16, 64, 8), (17, 37, 11), (1, 3, 1)],
}


def load(name: str) -> ModuleType:
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", ROOT / "examples" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cases() -> list[Any]:
    return [pytest.param(name, sizes, id=f"{name}-{'x'.join(map(str, sizes))}") for name in NAMES for sizes in SIZES[name]]


def formula(example: ModuleType, name: str, sizes: tuple[int, ...], arrays: dict[str, Any]) -> Any:
    """What the example's NumPy formula gives; a strided convolution's takes its stride and padding too."""
    return (
        example.expected(**arrays, stride=sizes[5], padding=sizes[6])
        if name == "03_implicit_gemm"
        else example.expected(**arrays)
    )


def test_every_example_has_sizes() -> None:
    assert sorted(SIZES) == NAMES


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_main(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    load(name).main(*SIZES[name][1], small=True)
    assert capsys.readouterr().out.count(": right") == len(load(name).schedules(*SIZES[name][1], small=True))


@pytest.mark.parametrize(("name", "sizes"), cases())
def test_formula_simulator_and_device_agree(name: str, sizes: tuple[int, ...]) -> None:
    example = load(name)
    for schedule in example.schedules(*sizes, small=True).values():
        kernel = tl.compile(schedule)
        computation = kernel.computation
        arrays = random_arrays(computation, seed=1)
        (output,) = computation.outputs
        _, bounds = evaluate_and_bound(computation, arrays)
        result = kernel(**arrays)
        assert np.all(np.abs(result - formula(example, name, sizes, arrays)) <= bounds[output.name])
        assert kernel.check()
        report = tl.simulate(kernel, **arrays)
        assert report.findings == ()
        assert compare(computation, arrays, report.outputs)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_simulator_finds_nothing_when_copies_land_late(name: str) -> None:
    for schedule in load(name).schedules(*SIZES[name][1], small=True).values():
        assert tl.simulate(tl.compile(schedule), order="late").findings == ()


def portable(text: str) -> str:
    """A text without the place of the checkout."""
    return text.replace(f"{ROOT}/", "")


def schedules_for(name: str, sizes: tuple[int, ...], profile: Profile, small: bool = True) -> dict[str, tl.Schedule]:
    """The schedules of an example for a device, tiny ones unless said: with tiles for its warps, where the example asks for that."""
    make = load(name).schedules
    facts = {"warp": profile.warp_size, "lanes": max(profile.vector_bytes) // 4}
    asked = {name: fact for name, fact in facts.items() if name in inspect.signature(make).parameters}
    found: dict[str, tl.Schedule] = make(*sizes, small=small, **asked)
    return found


def for_threads(schedule: tl.Schedule) -> bool:
    """Whether a schedule is one for the threads of a GPU, not for a CPU's cores."""
    return any(isinstance(step, Tile) and step.level == "thread" for step in schedule.steps)


def golden_texts() -> dict[str, str]:
    """What each golden file should hold: sources, those in C++ without their headers and of schedules for threads only."""
    target = tl.target(profile="sapphire_rapids")
    texts = {}
    for dialect, profile_name, ending in (("cuda", "ampere", "cu"), ("hip", "cdna2", "hip")):
        device = tl.target(dialect, profile=profile_name)
        bare = dataclasses.replace(DIALECTS[dialect], headers=(), closing="")
        for name in NAMES:
            for schedule_name, schedule in schedules_for(name, SIZES[name][1], device.profile).items():
                if for_threads(schedule):
                    program = tl.compile(schedule, target=device).program
                    texts[f"{name}.{schedule_name}.{ending}"] = portable(emit(program, bare))
    for name in NAMES:
        for schedule_name, schedule in load(name).schedules(*SIZES[name][1], small=True).items():
            for dialect, ending in (("cpu", "c"), ("opencl", "cl")):
                kernel = tl.compile(schedule, tl.target(dialect, profile=target.profile))
                texts[f"{name}.{schedule_name}.{ending}"] = portable(kernel.source)
    for schedule_name, text in load("01_matmul").refusals(target).items():
        texts[f"01_matmul.{schedule_name}.txt"] = portable(text) + "\n"
    return texts


@pytest.mark.slow
@pytest.mark.usefixtures("only_shipped_instructions")
def test_golden_sources(request: pytest.FixtureRequest) -> None:
    texts = golden_texts()
    if request.config.getoption("--update-golden"):
        GOLDEN.mkdir(exist_ok=True)
        for path in GOLDEN.iterdir():
            path.unlink()
        for name, text in texts.items():
            (GOLDEN / name).write_text(text)
    found = {path.name: path.read_text() for path in GOLDEN.iterdir()}
    assert sorted(found) == sorted(texts), "golden files without an example, or examples without one: --update-golden"
    for name, text in texts.items():
        changed = "\n".join(difflib.unified_diff(found[name].splitlines(), text.splitlines(), "golden", "now", lineterm="", n=1))
        assert not changed, f"{name} changed (--update-golden accepts it):\n{changed}"


def test_gpu_schedules_are_refused_with_a_reason() -> None:
    texts = load("01_matmul").refusals()
    assert sorted(texts) == ["gemm_ampere", "gemm_hopper"]
    for text in texts.values():
        assert text.startswith("error[") and "= help:" in text


@pytest.mark.parametrize("name", WITHOUT_SCHEDULE)
def test_examples_without_a_schedule_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    example = load(name)
    example.main()
    assert "schedule for" in capsys.readouterr().out
