"""What a device takes bounds what is constructed: blocks of a grid, and the shared memory in which threads meet."""

import dataclasses

import pytest

import tilelang as tl
from tests.autoschedule.test_construct import COMPUTATIONS
from tilelang import testing
from tilelang.autoschedule.common.complete import fill
from tilelang.autoschedule.common.construct import construct
from tilelang.autoschedule.common.prune import Pruning
from tilelang.computations.computation import Computation
from tilelang.errors import Refusal
from tilelang.lowering.pipeline import lower
from tilelang.profiles.profile import Profile
from tilelang.runtime.schedule_selection import check

SOFTMAX = (
    "computation Y(M = 24, N = 700) { input X: float32[i: M, j: N] H[i] = max[j] X[i, j] S[i] = sum[j] exp(X[i, j] - H[i])"
    " output Y[i, j] = exp(X[i, j] - H[i]) / S[i] }"
)
EVERY = {**COMPUTATIONS, "softmax": SOFTMAX}


def parsed(text: str) -> Computation:
    return tl.parse(text).computation()


def little_shared(name: str, capacity_bytes: int) -> Profile:
    """A shipped device with less shared memory, whose code is in one dialect."""
    found = tl.load_profile(name)
    memories = tuple(dataclasses.replace(m, capacity_bytes=capacity_bytes) if m.name == "shared" else m for m in found.memories)
    return dataclasses.replace(found, memories=memories, dialects=found.dialects[:1])


@pytest.mark.slow
@pytest.mark.parametrize("grid", [{"grid_max": (3, 1, 1)}, {"grid_threads_max": 256}], ids=str)
@pytest.mark.parametrize("name", ["product", "depthwise", "row sum", "pointwise", "softmax"])
def test_blocks_are_no_more_than_a_grid_takes(name: str, grid: dict[str, int]) -> None:
    computation, profile = parsed(EVERY[name]), dataclasses.replace(tl.load_profile("simulated"), **grid)  # type: ignore[arg-type]
    pruning = Pruning()
    found = construct(computation, profile, pruning)
    for candidate in found:
        lower(computation, candidate.schedule.steps, profile)
    assert found and pruning.dropped["grid"] > 0
    assert not testing.check_schedule(found[0].schedule, testing.arrays(computation), profile=profile)


@pytest.mark.slow
@pytest.mark.parametrize("device", ["cdna3", "volta", "h200"])
def test_large_computations_get_grids_that_devices_take(device: str) -> None:
    profile, i = tl.load_profile(device), tl.axes(i=1 << 36)
    m, n, k = tl.axes(m=1 << 20, n=1 << 20, k=1 << 20)
    A, B = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n)
    product = tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n)
    pruning = Pruning()
    for made in (product, tl.define("Y", tl.input("X", tl.int8, i)[i] + 1, i)):
        for candidate in construct(tl.schedule(made).computation, profile, pruning):
            lower(candidate.computation, candidate.schedule.steps, profile)
    assert pruning.dropped["grid"] > 0


def test_a_filling_that_no_grid_takes_is_refused() -> None:
    i, j = tl.axes(i=1 << 16, j=1 << 16)
    Y = tl.define("Y", tl.input("X", tl.float32, i, j)[i, j] * 2, i, j)
    given = tl.schedule(Y).tile(i=1, j=1).to(tl.block).vectorize(j=tl.hole)
    with pytest.raises(Refusal, match="a grid of volta has at most") as caught:
        check(given, tl.load_profile("volta"))
    assert caught.value.code == "too-many-blocks"
    pruning = Pruning()
    fill(given, tl.load_profile("volta"), pruning)
    assert pruning.dropped["grid"] > 0 and not pruning.kept


@pytest.mark.parametrize("capacity_bytes", [0, 1000])
@pytest.mark.parametrize("device", ["simulated", "volta", "cdna3"])
@pytest.mark.parametrize("name", ["row sum", "product", "convolution", "softmax"])
def test_reductions_that_meet_in_shared_memory_are_counted(name: str, device: str, capacity_bytes: int) -> None:
    profile, pruning = little_shared(device, capacity_bytes), Pruning()
    found = construct(parsed(EVERY[name]), profile, pruning)
    for candidate in found:
        lower(candidate.computation, candidate.schedule.steps, profile)
    assert found and (pruning.dropped["shared"] > 0 or capacity_bytes > 0)


def test_lanes_that_exchange_registers_need_no_shared_memory() -> None:
    none = little_shared("volta", 0)
    assert any("tile j=1 -> thread" in str(c.schedule) for c in construct(parsed(COMPUTATIONS["row sum"]), none))
    without = dataclasses.replace(none, capabilities=())
    assert not any("tile j=1 -> thread" in str(c.schedule) for c in construct(parsed(COMPUTATIONS["row sum"]), without))
