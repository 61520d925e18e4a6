"""Products over fused axes on lanes: results in vectors beside rows of any length, blocks in panels, on odd sizes."""

import dataclasses

import pytest

import tilelang as tl
from benchmarks import gpu_cases
from benchmarks.constructed import operator
from tilelang import testing
from tilelang.autoschedule.common.construct import construct
from tilelang.autoschedule.gpu.tile import panels
from tilelang.computations.computation import Computation
from tilelang.lowering import ir
from tilelang.lowering.pipeline import lower
from tilelang.schedules.schedule import Schedule
from tilelang.schedules.steps import Tile
from tilelang.testing.checking import Expected, check_device

VOLTA = dataclasses.replace(tl.load_profile("volta"), dialects=("opencl",))


def windows(rows: int, columns: int, channels: int) -> Computation:
    return tl.parse(
        f"computation Z(N = 3, H = {rows}, W = {columns}, C = 5, F = {channels}) {{ input X: float32[n: N, h: H, w: W, c: C]"
        " input G: float32[r: 3, s: 3, c: C, f: F] axis p: H axis q: W"
        " output Z[n, p, q, f] = sum[r, s, c] pad(X[n, p + r - 1, q + s - 1, c], 0.0) * G[r, s, c, f] }"
    ).computation()


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(5, 7, 36), (5, 12, 20)], ids=str)
def test_results_leave_in_vectors(sizes: tuple[int, int, int]) -> None:
    """Beside fused rows, whatever their length: what a warp stores is told apart by the fused axis, not digit by digit."""
    computation = windows(*sizes)
    texts = {str(c.schedule): c for c in construct(computation, VOLTA)}
    found = [c for text, c in texts.items() if "fuse n_p_q" in text and "accumulate in register { vectorize f=4 }" in text]
    assert found
    turned = []
    for candidate in found[:1]:
        order = panels(("n_p_q", "f"), 2)
        steps = tuple(
            dataclasses.replace(s, order=order) if isinstance(s, Tile) and s.level == "block" else s for s in candidate.steps
        )
        turned += [candidate.schedule, Schedule(computation, steps)]
    expected = Expected(computation, testing.arrays(computation))
    for schedule in turned:
        assert not testing.check_schedule(schedule, expected.arrays, profile=VOLTA), schedule
    programs = [(testing.lowered_here(s, VOLTA), expected) for s in turned]
    assert not any(check_device(programs))


@pytest.mark.parametrize("name", ["C7", "C28"])
def test_large_products_store_vectors_without_barriers(name: str) -> None:
    kind, extents = next((k, e) for n, k, e in gpu_cases.roller() if n == name)
    computation = operator(kind, extents)
    best = construct(computation, VOLTA)[0]
    assert "fuse n_p_q" in str(best.schedule) and "accumulate in register { vectorize f=4 }" in str(best.schedule)
    (kernel,) = lower(computation, best.steps, VOLTA).kernels
    assert sum(isinstance(s, ir.Barrier) for s in ir.statements(kernel.body)) == 1  # between the rounds of a ring
