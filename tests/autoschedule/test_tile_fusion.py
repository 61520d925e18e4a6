"""Definitions that read neighbours, tile by tile in one kernel: constructed, priced as they are lowered, right."""

from __future__ import annotations

import math

import pytest

import tilelang as tl
from tilelang import testing
from tilelang.autoschedule.common.construct import construct
from tilelang.autoschedule.common.kernel_part import Part
from tilelang.autoschedule.common.loop_summary import Loops
from tilelang.autoschedule.cpu.bodies import stage_share, stages_inside
from tilelang.autoschedule.cpu.device import cpu_device
from tilelang.autoschedule.cpu.tile_fusion import by_tiles
from tilelang.lowering.build.distribution.parallel_mapping import numbers
from tilelang.lowering.pipeline import lower
from tilelang.schedules.steps import Place, Tile

PROFILE = tl.load_profile("avx2")


def heat(rows: int, columns: int, steps: int = 3, apart: int = 1) -> tl.Computation:
    """Steps of a stencil whose neighbours are `apart`."""
    i, j = tl.axes(i=rows, j=columns)
    u = tl.input("U", tl.float32, i, j)
    for step in range(steps):
        around = (
            tl.pad(u[i - apart, j], 0.0) + tl.pad(u[i + apart, j], 0.0) + tl.pad(u[i, j - 1], 0.0) + tl.pad(u[i, j + apart], 0.0)
        )
        u = tl.define(f"U{step + 1}", u[i, j] * 0.6 + around * 0.1, i, j)
    return tl.computation("heat", u)


def by_tile(computation: tl.Computation) -> list[tuple[Loops, tl.Schedule]]:
    found = by_tiles(Part.whole(computation), cpu_device(PROFILE))
    return [(rows.loops(steps, PROFILE), tl.Schedule(computation, steps)) for rows, steps in found]


@pytest.mark.parametrize(("rows", "columns", "steps", "apart"), [(9, 14, 3, 1), (40, 70, 2, 3), (17, 70, 4, 1), (1, 40, 2, 1)])
def test_results_are_right(rows: int, columns: int, steps: int, apart: int) -> None:
    found = by_tile(heat(rows, columns, steps, apart))
    for _, schedule in found[:2]:
        assert not testing.check_kernel(schedule, target=tl.target("cpu", profile="avx2"))
    assert found


def test_the_model_counts_what_lies_around_a_tile_as_lowering_does() -> None:
    for loops, schedule in by_tile(heat(512, 640))[:6]:
        (kernel,) = lower(schedule.computation, schedule.steps, PROFILE).kernels
        held = {b.name: b.elements for b in kernel.shared}
        blocks = loops.units("block")
        for place, stage in stages_inside(loops):
            name = stage.nest.writes[0].name
            assert stage_share(place, loops) * 512 * 640 == pytest.approx(blocks * held[f"{name}_shared"])


def test_a_stencil_beyond_the_caches_is_one_kernel() -> None:
    best = construct(heat(4096, 4096, 4), PROFILE)[0].schedule.steps
    places = [s for s in best if isinstance(s, Place) and s.verb == "compute"]
    assert [p.memory for p in places] == ["shared"] * 3
    tile = next(numbers(s) for s in best if isinstance(s, Tile))
    assert math.prod(tile.values()) * 4 * 3 < PROFILE.memory("l2").capacity_bytes  # type: ignore[operator]


def test_definitions_that_are_read_at_one_place_are_inlined() -> None:
    i, j = tl.axes(i=64, j=64)
    x = tl.input("X", tl.float32, i, j)
    y = tl.define("Y", x[i, j] * 2.0, i, j)
    assert not by_tile(tl.computation("c", tl.define("Z", y[i, j] + 1.0, i, j)))
