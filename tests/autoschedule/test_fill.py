"""Holes are filled beside what was given, which stays as it is; what comes out is a schedule that runs and is right."""

import math
import random
import re

import hypothesis
import numpy as np
import pytest
from hypothesis import given

import tilelang as tl
from tests.errors._computations import linear, matmul, softmax
from tests.test_examples import NAMES, SIZES
from tests.test_tile_examples import SMALL, path, small
from tilelang import testing
from tilelang.autoschedule.common.complete import fill, search, sizes
from tilelang.autoschedule.common.construct import construct
from tilelang.autoschedule.models import estimate_schedule
from tilelang.errors import Refusal
from tilelang.lowering.pipeline import lower
from tilelang.schedules.schedule import Schedule
from tilelang.schedules.steps import Open, Place, Split, Step, Tile, Vectorize, has_holes, hole
from tilelang.testing import Source

POCL = tl.load_profile("sapphire_rapids")
PANELS = tl.layout(lambda k, n: (n // 16, k, n % 16))
START = tl.schedule(matmul(70, 90, 50))
CASES = {
    "everything": START.rest(),
    "below a block": START.tile(m=24, n=32).to(tl.block).rest(),
    "sizes and the rest": START.tile(m=tl.hole, n=tl.hole).to(tl.block).rest(),
    "sizes": START.tile(m=tl.hole, n=tl.hole)
    .to(tl.block)
    .split(n=tl.hole, m=tl.hole)
    .accumulate(tl.register)
    .split(k=1)
    .load("B", tl.register, steps=...)
    .split(m=1, unroll=True)
    .vectorize(n=tl.hole),
    "the middle": START.tile(m=16, n=64).to(tl.block).rest().vectorize(n=16),
    "below an accumulator": START.tile(m=4, n=32).to(tl.block).accumulate(tl.register).rest(),
    "below a pack": START.tile(m=tl.hole, n=64)
    .to(tl.block)
    .accumulate(tl.shared, steps=...)
    .split(k=tl.hole)
    .load("B", tl.shared, layout=PANELS, steps=...)
    .split(n=16, m=4)
    .rest(),
    "blocks in rounds": START.tile(m=8, n=16).to(tl.block, tl.hole).rest(),
    "above a load": START.rest().load("B", tl.shared, layout=PANELS).rest(),
    "around a walk": START.rest().split(k=10).rest().split(k=1).rest(),
    "an epilogue": tl.schedule(linear(33, 40, 20)).tile(m=tl.hole).to(tl.block).rest(),
    "several reductions": tl.schedule(softmax(20, 70)).rest(),
    "a condition": START.when(
        tl.extent("m") > 64, tl.move().tile(m=tl.hole).to(tl.block), tl.move().tile(n=tl.hole).to(tl.block)
    ),
}


def text_of(steps: tuple[Step, ...]) -> str:
    return "; ".join(str(s) for s in steps)


def is_filling(made: Schedule, given: Schedule) -> bool:
    """Whether one text is the other with something in place of its holes, and nothing else changed."""
    pattern = re.escape(text_of(given.steps)).replace(r"\ \{\ \.\.\.\ \}", r"(\ \{.*?\ \})?")
    pattern = (
        pattern.replace(r"\.\.\.;\ ", ".*?").replace(r";\ \.\.\.", ".*").replace(r"\.\.\.", ".*").replace(r"\?", r"(\d+|\?)")
    )
    return re.fullmatch(pattern, text_of(made.steps)) is not None


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_holes_are_filled_and_nothing_else_is_changed(name: str) -> None:
    kernel = tl.compile(CASES[name])
    assert is_filling(kernel.schedule, CASES[name]), kernel.schedule
    assert name == "a condition" or not has_holes(kernel.schedule.steps)
    assert kernel.check().ok, kernel.schedule
    found = fill(CASES[name], POCL)
    assert all(is_filling(s, CASES[name]) for s in found) and len({s.text for s in found}) == len(found)


def test_only_the_branch_that_holds_is_filled() -> None:
    filled = tl.compile(CASES["a condition"]).schedule.steps[0]
    assert str(filled).count("?") == 1 and "else { tile n=? -> block }" in str(filled)


def test_sizes_are_whole_pieces_of_what_is_given_below_them() -> None:
    kernel = tl.compile(START.tile(n=tl.hole).to(tl.block).split(n=tl.hole).split(n=12).rest())
    block, piece = (dict(s.sizes)["n"] for s in kernel.schedule.steps[:2] if isinstance(s, (Tile, Split)))
    assert isinstance(block, int) and isinstance(piece, int) and block % 12 == 0 and piece % 12 == 0 and piece <= block


@pytest.mark.parametrize(("extent", "granule"), [(0, 1), (1, 16), (7, 1), (100, 16), (4096, 48), (1 << 20, 1)])
def test_sizes_ascend_to_the_whole(extent: int, granule: int) -> None:
    found = sizes(extent, granule)
    assert found == sorted(set(found)) and 1 <= len(found) <= 16
    assert found[-1] >= extent and all(n % min(granule, max(1, extent)) == 0 for n in found)


def test_lowering_refuses_a_hole() -> None:
    for case in CASES.values():
        with pytest.raises(Refusal, match="hole"):
            lower(case.computation, case.steps, POCL)


def punched(source: Source, steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps with some sizes left open, and sometimes the steps from somewhere on."""
    out: list[Step] = []
    for step in steps:
        if source.integer(0, 9) == 0:
            return (*out, Open())
        match step:
            case Tile(sizes=given) | Split(sizes=given):
                out.append(step.replace(sizes=tuple((a, hole if source.integer(0, 2) == 0 else n) for a, n in given)))
            case Vectorize() if source.integer(0, 2) == 0:
                out.append(step.replace(lanes=hole))
            case Place(verb="load") if source.integer(0, 2) == 0:
                out.append(step.replace(steps=None, open=True))
            case _:
                out.append(step)
    return tuple(out)


@pytest.mark.slow
@given(testing.cases(), hypothesis.strategies.integers(0, 1 << 30))
def test_whatever_is_left_open_of_a_schedule_is_filled(case: testing.Case, seed: int) -> None:
    steps = punched(testing.Seeded(seed), case.schedule.steps)
    left_open = Schedule(case.computation, steps)
    try:
        kernel = tl.compile(left_open)
    except Refusal:
        hypothesis.assume(False)
    assert kernel.check().ok, kernel.schedule


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in NAMES if any("cpu" in s for s in SMALL[n])])
@pytest.mark.parametrize("seed", range(2))
def test_an_example_without_some_of_its_steps_is_filled(name: str, seed: int) -> None:
    document, choice = tl.read(path(name)), random.Random(f"{name} {seed}")
    chosen = choice.choice([s for s in SMALL[name] if "cpu" in s])
    computation, steps = document.steps(chosen, profile=POCL, **small(name, chosen, SIZES[name][0]))
    kept = [choice.random() < 0.5 for _ in steps]
    given = tuple(s for s, stays in zip(steps, kept, strict=True) if stays)
    holes = tuple(s if stays else Open() for s, stays in zip(steps, kept, strict=True))
    left_open = tuple(s for k, s in enumerate(holes) if not (isinstance(s, Open) and k and isinstance(holes[k - 1], Open)))
    try:
        kernel = tl.compile(Schedule(computation, left_open))
    except Refusal as refusal:  # what is given cannot stand beside anything that construction knows
        assert refusal.code in ("unknown-axis", "accumulate-order", "stage-order", "load-unread") and refusal.span is not None
        return
    made = iter(kernel.schedule.steps)
    assert all(step in made for step in given), f"{kernel.schedule}\n{left_open}"
    assert kernel.check().ok, kernel.schedule


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in CASES if n != "several reductions"])
def test_devices_with_warps_get_their_holes_filled_too(name: str) -> None:
    kernel = tl.compile(CASES[name], tl.target("opencl", profile="simulated"))
    assert is_filling(kernel.schedule, CASES[name]), kernel.schedule
    assert not tl.simulate(kernel, limit_statements=math.inf).findings


@pytest.mark.parametrize(
    "above",
    [
        START.units(block=tl.warps(2)).tile(m=32, n=32).to(tl.block),
        START.tile(m=32, n=32).to(tl.block).tile(m=8, n=16).to(tl.warp),
    ],
)
def test_threads_of_a_block_are_counted_as_they_are(above: Schedule) -> None:
    found = search(above.split(k=tl.hole).tile(m=1, n=4).to(tl.thread), tl.load_profile("simulated"))
    assert len(found.schedules) > 1 and not found.pruning.dropped


@pytest.mark.parametrize("sizes_", [(1, 1, 1), (1, 127, 1), (257, 1, 13), (5, 7, 0), (0, 5, 7)], ids=str)
def test_warps_are_filled_however_little_there_is(sizes_: tuple[int, int, int]) -> None:
    """Where the extents are not enough for all threads of a warp, tiles reach beyond them; threads of nothing are none."""
    open_, target = {"m": tl.hole, "n": tl.hole}, tl.target("opencl", profile="simulated")
    given = tl.schedule(matmul(*sizes_)).tile(**open_).to(tl.block).tile(**open_).to(tl.warp).tile(**open_).to(tl.thread)
    kernel = tl.compile(given, target)
    assert is_filling(kernel.schedule, given) and not tl.simulate(kernel).findings
    pieces = tl.compile(tl.schedule(matmul(*sizes_)).tile(**open_).to(tl.block).tile(m=2, n=3).to(tl.thread).rest(), target)
    assert not tl.simulate(pieces).findings


@pytest.mark.slow
@pytest.mark.parametrize("device", ["ampere", "h200", "cdna3", "rdna3"])
def test_what_is_wholly_left_open_is_constructed_with_matrix_instructions_too(device: str) -> None:
    """Whose threads share what a warp holds in registers."""
    i, j, k = tl.axes(i=512, j=256, k=512)
    A, B = tl.input("A", tl.float16, i, k), tl.input("B", tl.float16, k, j)
    product, profile = tl.define("C", tl.sum(A[i, k] * B[k, j], over=k), i, j), tl.load_profile(device)
    given = tl.schedule(product)
    best = construct(given.computation, profile)[0]
    assert fill(given.rest(), profile)[0].text == best.schedule.text and " do " in best.schedule.text


@pytest.mark.slow
@pytest.mark.parametrize("device", ["volta", "ampere", "h200", "cdna3", "opencl_gpu", "sapphire_rapids"])
@pytest.mark.parametrize("block", [(64, 64), (128, 128)])
def test_what_is_open_below_a_block_is_near_what_is_constructed(device: str, block: tuple[int, int]) -> None:
    """With the same instructions; blocks that are larger than a tile can be walk over tiles."""
    profile, whole = tl.load_profile(device), tl.schedule(matmul(1024, 1024, 1024, tl.float16))
    filled = fill(whole.tile(m=block[0], n=block[1]).to(tl.block).rest(), profile)[0]
    best = construct(whole.computation, profile)[0]
    assert estimate_schedule(filled, profile).seconds < 2.5 * best.estimate.seconds
    lower(filled.computation, filled.steps, profile)


def test_tiles_reach_beyond_what_there_is_only_where_nothing_else_can_be() -> None:
    whole = tl.schedule(matmul(257, 1, 131)).tile(m=tl.hole, n=tl.hole).to(tl.block).tile(m=tl.hole, n=tl.hole).to(tl.warp)
    (_, warp, _) = fill(whole.tile(m=1, n=1).to(tl.thread), tl.load_profile("ampere"))[0].steps
    assert isinstance(warp, Tile) and dict(warp.sizes) == {"m": 32, "n": 1}


def test_a_stage_may_read_what_a_kernel_of_its_own_makes() -> None:
    given = tl.schedule(softmax(3, 40)).tile(i=1, j=8).to(tl.block).compute("total", tl.register).vectorize(j=tl.hole)
    assert tl.compile(given).check().ok


def test_lanes_and_sizes_of_nothing_are_filled() -> None:
    i, j = tl.axes(i=0, j=4)
    empty = tl.define("Y", tl.sum(tl.input("X", tl.float32, i, j)[i, j], over=j), i)
    kernel = tl.compile(tl.schedule(empty).tile(i=tl.hole).to(tl.block).vectorize(i=tl.hole))
    assert kernel(np.zeros((0, 4), np.float32)).shape == (0,)


def test_the_time_of_an_instruction_whose_result_is_a_row_is_estimated() -> None:
    name, profile = "14_own_instruction", tl.load_profile("simulated")
    computation, steps = tl.read(path(name)).steps("simt", profile=profile, **small(name, "simt", SIZES[name][0]))
    kernel = tl.compile(Schedule(computation, steps), tl.target("opencl", profile=profile))
    assert kernel.estimate.seconds == pytest.approx(sum(seconds for _, seconds in kernel.estimate.parts))
