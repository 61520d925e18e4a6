"""Loops that several reductions share, by construction: found from the definitions, read by the model as lowering makes them, right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tilelang as tl
from tilelang import testing
from tilelang.autoschedule.common.construct import construct
from tilelang.autoschedule.common.kernel_part import Part
from tilelang.autoschedule.common.loop_summary import Loops
from tilelang.autoschedule.common.shared_loops import sharing_of
from tilelang.autoschedule.cpu.bodies import stage_share, stages_inside
from tilelang.autoschedule.models import model_of
from tilelang.schedules.shared_loops import loop_of
from tilelang.schedules.steps import Place, Split, Step, Tile

PROFILE = tl.load_profile("avx2")


def attention(rows: int, keys: int, type: Any = tl.float32, causal: bool = False, groups: int = 1) -> tl.Computation:
    h, i, j, d, e, g = tl.axes(h=2, i=rows, j=keys, d=8, e=12, g=2 // groups)
    q, k, v = tl.input("Q", type, h, i, d), tl.input("K", type, g, j, d), tl.input("V", type, g, j, e)
    wide: Callable[[Any], Any] = lambda x: tl.cast(x, tl.float32) if type != tl.float32 else x  # noqa: E731
    score = tl.sum(wide(q[h, i, d]) * wide(k[h // groups, j, d]), over=d) * 0.5
    s = tl.define("S", tl.where(j <= i, score, float("-inf")) if causal else score, h, i, j)
    peak = tl.define("peak", tl.max(s[h, i, j], over=j), h, i)
    p = tl.define("P", tl.exp(s[h, i, j] - peak[h, i]), h, i, j)
    total = tl.define("total", tl.sum(p[h, i, j], over=j), h, i)
    mix = tl.define("mix", tl.sum(p[h, i, j] * wide(v[h // groups, j, e]), over=j), h, i, e)
    out = mix[h, i, e] / total[h, i]
    return tl.computation("attention", tl.define("O", out if type == tl.float32 else tl.cast(out, type), h, i, e))


def shared(computation: tl.Computation) -> list[tuple[Loops, tl.Schedule]]:
    """The candidates with a shared loop, the best first."""
    model = model_of(PROFILE)
    found: list[tuple[float, int, Loops, tl.Schedule]] = []
    for rows, steps in model.fuse_rows(Part.whole(computation)):
        if any(isinstance(s, Split) and s.of for s in steps):
            loops = rows.loops(steps, PROFILE)
            found.append((model.estimate((loops,)).seconds, len(found), loops, tl.Schedule(computation, steps)))
    return [(loops, made) for _, _, loops, made in sorted(found, key=lambda f: f[:2])]


CASES: dict[str, dict[str, Any]] = {
    "odd sizes": {"rows": 37, "keys": 129},
    "fewer keys than a chunk": {"rows": 16, "keys": 5},
    "one query": {"rows": 1, "keys": 40},
    "causal": {"rows": 20, "keys": 40, "causal": True},
    "grouped": {"rows": 16, "keys": 40, "groups": 2},
    "bfloat16": {"rows": 16, "keys": 40, "type": tl.bfloat16},
    "float16": {"rows": 16, "keys": 40, "type": tl.float16},
}


@pytest.mark.parametrize("name", CASES)
def test_attention_in_one_loop(name: str) -> None:
    computation = attention(**CASES[name])
    made = shared(computation)[0][1]
    assert testing.check_schedule(made, dict(testing.arrays(computation)), profile=PROFILE) == []


def test_members_are_the_reductions_over_one_axis() -> None:
    found = sharing_of(Part.whole(attention(16, 40)))
    assert found is not None and found.axis == "j" and found.members == ("peak", "total", "mix")


def test_no_loop_where_a_repair_is_not_proven() -> None:
    i, j = tl.axes(i=16, j=40)
    x = tl.input("X", tl.float32, i, j)
    mean = tl.define("mean", tl.sum(x[i, j], over=j) / 40, i)
    spread = tl.define("spread", tl.sum((x[i, j] - mean[i]) * (x[i, j] - mean[i]), over=j), i)
    assert sharing_of(Part.whole(tl.computation("variance", spread))) is None


def test_the_rounds_of_a_stage_are_counted_once() -> None:
    for loops, _ in shared(attention(32, 64)):
        for place, stage in stages_inside(loops):
            assert stage_share(place, loops) == 1.0, place
            assert stage.nest.points


def test_attention_of_many_keys_is_one_kernel() -> None:
    computation = attention(256, 1024)
    steps = construct(computation, PROFILE)[0].steps
    assert any(isinstance(s, Split) and s.of == ("peak", "total", "mix") for s in steps)


@pytest.mark.parametrize("type", [tl.float16, tl.bfloat16, tl.float8_e4m3])
def test_a_running_value_of_a_narrow_type(type: tl.DType) -> None:
    """The repair rounds as the term does, so that both are compared without rounding."""
    i, j = tl.axes(i=8, j=32)
    X = tl.input("X", type, i, j)
    peak = tl.define("peak", tl.max(X[i, j], over=j), i)
    total = tl.computation("f", tl.define("total", tl.sum(tl.exp(X[i, j] - peak[i]), over=j), i))
    found = sharing_of(Part.whole(total))
    assert found is not None and len(found.members) == 2
    loop = loop_of(total, Split((("j", 8),), of=found.members))
    assert [m.repair is not None for m in loop.members] == [False, True]


@pytest.mark.parametrize("type", [tl.float16, tl.bfloat16, tl.float8_e4m3])
def test_terms_that_are_rounded_are_not_shared(type: tl.DType) -> None:
    i, j = tl.axes(i=8, j=32)
    X = tl.input("X", tl.float32, i, j)
    peak = tl.define("peak", tl.max(X[i, j], over=j), i)
    below = tl.define("below", tl.cast(X[i, j] - peak[i], type), i, j)
    total = tl.define("total", tl.sum(tl.exp(tl.cast(below[i, j], tl.float32)), over=j), i)
    assert not shared(tl.computation("f", total))
    plain = tl.define("total", tl.sum(tl.exp(X[i, j] - peak[i]), over=j), i)
    assert shared(tl.computation("f", plain))


@pytest.mark.parametrize("scale", [1.0, 2.0, -2.0])
@pytest.mark.parametrize("type", [tl.float16, tl.bfloat16, tl.float8_e4m3])
def test_rounded_weights_are_shared_if_they_are_at_most_1(type: tl.DType, scale: float) -> None:
    i, j = tl.axes(i=8, j=32)
    X = tl.input("X", tl.float32, i, j)
    peak = tl.define("peak", tl.max(X[i, j], over=j), i)
    weight = tl.define("weight", tl.cast(tl.exp((X[i, j] - peak[i]) * scale), type), i, j)
    total = tl.computation("f", tl.define("total", tl.sum(tl.cast(weight[i, j], tl.float32), over=j), i))
    found = shared(total)
    assert bool(found) == (scale > 0)
    for _, made in found[:1]:
        assert testing.check_schedule(made, dict(testing.arrays(total)), profile=PROFILE) == []


def decoding(heads: int, keys: int, width: int = 12) -> tl.Computation:
    """One query of each head, whose keys are its own."""
    b, j, d, e = tl.axes(b=heads, j=keys, d=width, e=width)
    q, k, v = tl.input("Q", tl.float32, b, d), tl.input("K", tl.float32, b, j, d), tl.input("V", tl.float32, b, j, e)
    s = tl.define("S", tl.sum(q[b, d] * k[b, j, d], over=d), b, j)
    peak = tl.define("peak", tl.max(s[b, j], over=j), b)
    p = tl.define("P", tl.exp(s[b, j] - peak[b]), b, j)
    total = tl.define("total", tl.sum(p[b, j], over=j), b)
    mix = tl.define("mix", tl.sum(p[b, j] * v[b, j, e], over=j), b, e)
    return tl.computation("decoding", tl.define("O", mix[b, e] / total[b], b, e))


def blocks(steps: tuple[Step, ...]) -> dict[str, int]:
    """The sizes of a block."""
    tile = next(s for s in steps if isinstance(s, Tile) and s.level == "block")
    return {axis: size for axis, size in tile.sizes if isinstance(size, int)}


def test_decoding_divides_the_keys_among_blocks() -> None:
    here = tl.load_profile("zen3")
    steps = construct(decoding(1, 1 << 18, 64), here)[0].steps
    assert any(isinstance(s, Split) and s.of == ("peak", "total", "mix") for s in steps)
    assert (1 << 18) // blocks(steps)["j"] >= (here.compute_units or 1) > 1
    assert not any(isinstance(s, Place) and s.verb == "load" for s in steps)  # keys are read once: they are not packed


def test_rows_enough_for_all_cores_are_not_divided() -> None:
    for _, made in shared(attention(256, 64)):
        assert "j" not in blocks(made.steps)


@pytest.mark.parametrize(("heads", "keys"), [(1, 97), (2, 64), (3, 130), (5, 33), (1, 1)])
def test_every_candidate_for_decoding_is_right(heads: int, keys: int) -> None:
    """Parts and chunks that do not divide the keys, and heads fewer than cores."""
    computation = decoding(heads, keys)
    made = {schedule.text: schedule for _, schedule in shared(computation)}
    assert any("j" in blocks(schedule.steps) for schedule in made.values()) == (keys > 32)
    for schedule in made.values():
        assert testing.check_schedule(schedule, dict(testing.arrays(computation)), profile=PROFILE) == [], schedule.text
