"""Launch plans: a second process runs a kernel without lowering its schedule, and never one of another schedule or version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tilelang.instructions.instruction import updates
from tilelang.instructions.operand import operand
from tilelang.lowering import pipeline
from tilelang.lowering.drivers.cache import BinaryCache
from tilelang.runtime import launch_plan, schedule_selection

PRODUCT = """
computation C(M = 20, N = 24, K = 12) {{
  input A: float32[m: M, k: K]
  input B: float32[k: K, n: N]
  {stage}
  output C[m, n] = sum[k] {a}[m, k] * B[k, n]
}}
schedule for C {{
  {steps}
}}
"""
PLAIN = PRODUCT.format(stage="", a="A", steps="tile m={m} n=8 -> block; accumulate in register; split k=4; vectorize n=8")
STAGED = PRODUCT.format(
    stage="T[m, k] = exp(A[m, k])", a="T", steps="compute T in global { tile m={m} -> block }; tile m={m} n=8 -> block"
)


def options(folder: Path, **more: Any) -> tl.Options:
    return tl.Options(cache_dir=str(folder), database="", **more)


def schedule(text: str, m: int = 4) -> tl.Schedule:
    return tl.parse(text.replace("{m}", str(m))).schedule()


@pytest.fixture
def lowered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The computations that are lowered from here on."""
    found: list[str] = []
    lower = pipeline.lower

    def noting(computation: Any, *rest: Any, **named: Any) -> Any:
        found.append(computation.name)
        return lower(computation, *rest, **named)

    monkeypatch.setattr(pipeline, "lower", noting)
    return found


def arrays() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(3)
    return rng.random((20, 12), np.float32), rng.random((12, 24), np.float32)


@pytest.mark.parametrize("text", [PLAIN, STAGED])
def test_a_kernel_that_ran_is_not_lowered_again(text: str, tmp_path: Path, lowered: list[str]) -> None:
    a, b = arrays()
    first = tl.compile(schedule(text), "cpu", options=options(tmp_path))
    expected = first(a, b)
    assert lowered == ["C"]
    again = tl.compile(schedule(text), "cpu", options=options(tmp_path))
    np.testing.assert_array_equal(again(a, b), expected)
    assert again.source == first.source and again.check() and lowered == ["C"]
    assert again.program == first.program and lowered == ["C", "C"]  # the kernel IR, once it is asked for
    assert again.explain() == first.explain()


def test_one_that_was_only_compiled_to_source_is(tmp_path: Path, lowered: list[str]) -> None:
    for _ in range(2):
        assert "EXPORT" in tl.compile(schedule(PLAIN), "cpu", options=options(tmp_path)).source
    assert lowered == ["C", "C"]


def changed_steps(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    return {"m": 5}


def other_profile(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    name = "avx512" if tl.target("cpu").profile.name == "avx2" else "avx2"
    return {"target": tl.target("cpu", profile=name, device=tl.target("cpu").device)}


def other_version(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(launch_plan, "source_stamp", lambda *packages: "another")
    return {}


def verified(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    return {"verify": True}


@pytest.mark.parametrize("change", [changed_steps, other_profile, other_version, verified])
def test_another_schedule_profile_or_version_is_lowered(
    change: Callable[[pytest.MonkeyPatch], dict[str, Any]], tmp_path: Path, lowered: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = arrays()
    tl.compile(schedule(PLAIN), "cpu", options=options(tmp_path))(a, b)
    changed = change(monkeypatch)
    again = tl.compile(
        schedule(PLAIN, changed.get("m", 4)),
        changed.get("target", "cpu"),
        options=options(tmp_path, verify=changed.get("verify", False)),
    )
    np.testing.assert_allclose(again(a, b), a @ b, rtol=1e-5)
    assert lowered == ["C", "C"]


def test_an_instruction_of_the_same_name_with_another_text_is_lowered(tmp_path: Path, lowered: list[str]) -> None:
    n = tl.axes(n=8)
    a, b, c = (operand(x, tl.float32, "register", *axes) for x, axes in (("A", ()), ("B", (n,)), ("C", (n,))))
    for text in ("{C} = {A} * {B} + {C};", "{C} = {B} * {A} + {C};"):
        tl.instruction("own_of_plans", means=updates(c[n], a[()] * b[n]), operands=(a, b, c), level="thread",
                       template={"cpu": text}, replace=True)  # fmt: skip
        steps = "tile m=4 n=8 -> block; split m=1; accumulate in register; split k=1; load A in register; load B in register"
        given = tl.parse(PRODUCT.format(stage="", a="A", steps=steps + "; do own_of_plans")).schedule()
        left, right = arrays()
        kernel = tl.compile(given, "cpu", options=options(tmp_path))
        np.testing.assert_allclose(kernel(left, right), left @ right, rtol=1e-5)
    assert lowered == ["C", "C"]


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'{"source": "", "launches": [{}], "workspace": []}', b"\xff"])
def test_a_plan_that_cannot_be_read_is_made_again(body: bytes, tmp_path: Path, lowered: list[str]) -> None:
    a, b = arrays()
    expected = tl.compile(schedule(PLAIN), "cpu", options=options(tmp_path))(a, b)
    cache = BinaryCache(str(tmp_path))
    assert cache.put(launch_plan._name(schedule(PLAIN), tl.target("cpu")), body)
    np.testing.assert_array_equal(tl.compile(schedule(PLAIN), "cpu", options=options(tmp_path))(a, b), expected)
    assert lowered == ["C", "C"]


PROCESS = """
import json, sys
import numpy as np
import tilelang as tl
m, n, k = tl.axes(m=20, n=24, k=12)
A, B = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n)
C = tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n)
kernel = tl.compile({what}, "cpu")
found = kernel(np.ones((20, 12), np.float32), np.ones((12, 24), np.float32))
print(json.dumps([float(found.sum()), sorted(name for name in sys.modules if name.startswith("tilelang."))]))
"""


@pytest.mark.parametrize("what", ["tl.schedule(C).tile(m=4, n=8).to(tl.block).vectorize(n=8)", "C"], ids=["given", "generated"])
def test_a_second_process_imports_neither_the_lowering_nor_the_parser(what: str, tmp_path: Path) -> None:
    environment = os.environ | {"TILELANG_CACHE_DIR": str(tmp_path), "TILELANG_TARGET": "cpu"}
    environment.pop("TILELANG_DATABASE", None)
    for imported in (True, False):
        ran = subprocess.run(
            [sys.executable, "-c", PROCESS.format(what=what)], env=environment, capture_output=True, text=True, check=True
        )
        total, modules = json.loads(ran.stdout)
        assert total == 20 * 24 * 12
        assert any(name.startswith("tilelang.lowering.build") for name in modules) == imported
        assert ("tilelang.autoschedule.common.construct" in modules) == (imported and what == "C")
        assert imported or not any(name.startswith("tilelang.grammar") for name in modules)


def test_a_stored_schedule_is_read_when_it_is_asked_for(tmp_path: Path, lowered: list[str]) -> None:
    a, b = arrays()
    kept = options(tmp_path).replace(database=str(tmp_path / "schedules.sqlite"))
    first = tl.compile(schedule(PLAIN).computation, "cpu", options=kept)
    expected = first(a, b)
    lowered.clear()
    second = tl.compile(schedule(PLAIN).computation, "cpu", options=kept)
    np.testing.assert_array_equal(second(a, b), expected)
    assert not lowered and second.schedule.text == first.schedule.text and second.program.kernels


def test_instructions_of_ones_own_that_no_step_names_are_in_the_key() -> None:
    """Sums over threads are lowered to instructions by their meaning."""
    n = tl.axes(n=3)
    a, c = (operand(x, tl.float32, "register", n) for x in ("A", "C"))
    names = []
    for text in ("{C} = {A};", "{C} = {A} + 0;"):
        tl.instruction(
            "own_unnamed", means=updates(c[n], a[n]), operands=(a, c), level="thread", template={"cpu": text}, replace=True
        )
        names.append(launch_plan._name(schedule(PLAIN), tl.target("cpu")))
    assert names[0] != names[1]


def test_a_schedule_tuned_for_a_similar_shape_is_preferred_to_a_plan(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whether or not the generated schedule has run before."""
    wanted = tl.schedule(schedule(PLAIN).computation)
    known, near = schedule(PLAIN, 4), schedule(PLAIN, 5)
    kept = options(tmp_path)
    tl.compile(known, "cpu", options=kept)(*arrays())
    monkeypatch.setattr(schedule_selection, "_remembered", lambda *_: (known, near))
    monkeypatch.setattr(schedule_selection, "_or_neighbour", lambda near, plan, program, *_: (near, program))
    assert tl.compile(wanted.computation, "cpu", options=kept).schedule is near
