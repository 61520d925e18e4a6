"""Where a plan keeps the values between definitions, their bytes, and what the next choice would have cost."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

import tilelang as tl
from tests.cli.commands import tilelang
from tilelang.autoschedule.common.next_choices import kept, next_choices
from tilelang.autoschedule.common.partition import AS_FAST
from tilelang.autoschedule.models import estimate_schedule
from tilelang.runtime.explained import values_between

PROFILE = tl.load_profile("avx2")
NONE = tl.Options(database="")


def two_products(size: int = 256) -> tl.Computation:
    i, j, o = tl.axes(i=size, j=size, o=size)
    X, V, W = (tl.input(t, tl.float32, *dims) for t, dims in (("X", (i, j)), ("V", (j, o)), ("W", (o, j))))
    H = tl.define("H", tl.gelu(tl.sum(X[i, j] * V[j, o], over=j)), i, o)
    return tl.computation("mlp", tl.define("Y", tl.sum(H[i, o] * W[o, j], over=o), i, j))


def softmax(rows: int = 64, width: int = 512) -> tl.Computation:
    i, j = tl.axes(i=rows, j=width)
    X = tl.input("X", tl.float32, i, j)
    peak = tl.define("peak", tl.max(X[i, j], over=j), i)
    e = tl.define("E", tl.exp(X[i, j] - peak[i]), i, j)
    total = tl.define("total", tl.sum(e[i, j], over=j), i)
    return tl.computation("softmax", tl.define("Y", e[i, j] / total[i], i, j))


def test_every_value_has_its_place() -> None:
    schedule = tl.schedule(softmax()).tile(i=4).to(tl.block).split(i=1)
    here = schedule.compute("peak", tl.register).compute("E", tl.shared).compute("total", tl.register)
    places = {"peak": "in registers", "E": "in shared memory", "total": "in registers"}
    assert kept(here.computation, here.steps) == {name: {"Y": place} for name, place in places.items()}
    plain = tl.schedule(softmax())
    assert kept(plain.computation, plain.steps) == {
        "peak": {"total": "in memory", "Y": "in memory"}, "E": {"total": "inlined", "Y": "inlined"}, "total": {"Y": "in memory"},
    }  # fmt: skip


def test_the_bytes_are_those_of_the_program() -> None:
    schedule = tl.schedule(softmax()).tile(i=4).to(tl.block).split(i=1).compute("peak", tl.register)
    kernel = tl.compile(schedule.compute("E", tl.shared).compute("total", tl.register), tl.target("cpu", profile="avx2"))
    sizes = {v.name: v.sizes for v in values_between(kernel)}
    twice = ("8 bytes a thread",)  # while it is summed, and as a stage
    assert sizes == {"peak": twice, "E": ("2048 bytes a block",), "total": twice}
    kernel = tl.compile(tl.schedule(softmax()), tl.target("cpu", profile="avx2"))
    sizes = {v.name: v.sizes for v in values_between(kernel)}
    assert sizes == {"peak": ("256 bytes",), "E": ("0 bytes",), "total": ("256 bytes",)}


def test_the_next_choice_of_a_slow_plan_is_the_generated_one() -> None:
    """The next choices of a plan with everything in memory are about as fast as the generated plan, which has nothing there."""
    computation = softmax()
    made = tl.schedule(computation).compute("peak", tl.global_).compute("E", tl.global_).compute("total", tl.global_)
    found = next_choices(made, PROFILE)
    assert set(found) == {"peak", "E", "total"}
    best = tl.compile(computation, tl.target("cpu", profile="avx2"), options=NONE)
    for name, choice in found.items():
        assert choice.seconds is not None and "in memory" not in choice.place, name
        assert choice.seconds >= estimate_schedule(best.schedule, PROFILE).seconds * AS_FAST
        assert choice.seconds <= estimate_schedule(made, PROFILE).seconds  # the search does no worse than this schedule


def test_what_was_not_compared_says_so() -> None:
    kernel = tl.compile(two_products(), tl.target("cpu", profile="avx2"), options=NONE)
    (line,) = (v for v in values_between(kernel) if v.name == "H")
    assert set(line.places.values()) == {"in memory"} and line.sizes == ("262144 bytes",)
    assert line.next_choice.startswith(("not compared (elsewhere takes at least ", "inlined, ", "in registers, "))
    assert f"  {line}" in kernel.explain().splitlines()


def test_many_definitions() -> None:
    """With more choices than are all compared, the changes of one definition count."""
    i = tl.axes(i=1 << 16)
    value = tl.input("X", tl.float32, i)
    for n in range(12):
        value = tl.define(f"T{n}", tl.exp(value[i]) * 0.5, i)
    computation = tl.computation("chain", value)
    made = tl.schedule(computation)
    found = next_choices(made, PROFILE)
    assert list(found) == [f"T{n}" for n in range(11)]


def test_a_profile_without_rates_compares_nothing() -> None:
    unmeasured = dataclasses.replace(PROFILE, rates=(), curves=())
    kernel = tl.compile(tl.schedule(softmax()), tl.target("cpu", profile=unmeasured))
    assert {v.next_choice for v in values_between(kernel)} == {""}
    assert "plan: 3 kernels" in kernel.explain().splitlines()


def test_one_definition_has_no_plan() -> None:
    i = tl.axes(i=8)
    kernel = tl.compile(tl.schedule(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)), tl.target("cpu", profile="avx2"))
    assert "plan:" not in kernel.explain()


@pytest.mark.parametrize("rows", [0, 3])
def test_empty_and_odd_sizes(rows: int) -> None:
    kernel = tl.compile(softmax(rows, 33), tl.target("cpu", profile="avx2"), options=NONE)
    assert {v.name for v in values_between(kernel)} == {"peak", "E", "total"}


def test_the_command_prints_the_plan(tmp_path: Path) -> None:
    path = tmp_path / "softmax.tile"
    path.write_text(softmax().text)
    shown = tilelang("explain", str(path), "-p", "avx2").stdout
    assert "plan: " in shown and "; next choice: " in shown
    found = json.loads(tilelang("explain", str(path), "-p", "avx2", "--json").stdout)["plan"]
    assert [v["name"] for v in found] == ["peak", "E", "total"] and all(v["next_choice"] for v in found)
