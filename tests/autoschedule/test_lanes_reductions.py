"""Reductions on shipped devices: by a thread, by lanes, by a block, by several blocks; the device is full, and memory decides."""

import pytest

import tilelang as tl
from tilelang.autoschedule.common.construct import construct
from tilelang.autoschedule.common.loop_summary import loops_of
from tilelang.autoschedule.gpu.device import GpuDevice
from tilelang.computations.computation import Computation
from tilelang.testing import arrays, check_schedule

DEVICES = [n for n in tl.profiles.files.shipped_profiles() if any(f.lockstep for f in tl.load_profile(n).levels)]
SIMULATED = tl.load_profile("simulated")


def row_sum(rows: int, columns: int) -> Computation:
    i, j = tl.axes(i=rows, j=columns)
    X = tl.input("X", tl.float32, i, j)
    return tl.schedule(tl.define("Y", tl.sum(X[i, j], over=j), i)).computation


@pytest.mark.parametrize(("rows", "columns"), [(4096, 1024), (16, 1_000_000), (1, 10_000_000), (1_000_000, 8)])
@pytest.mark.parametrize("name", DEVICES)
def test_sums_fill_the_device_and_wait_for_memory(name: str, rows: int, columns: int) -> None:
    profile = tl.load_profile(name)
    best = construct(row_sum(rows, columns), profile)[0]
    loops = loops_of(best.schedule, profile)[-1]
    moving = sum(seconds for what, seconds in best.estimate.parts if what not in ("launch", "latency", "partial results"))
    assert loops.units("block") >= GpuDevice(profile).cores
    assert moving <= 2 * loops.nest.compulsory_bytes / GpuDevice(profile).global_rate


@pytest.mark.parametrize(("rows", "columns"), [(37, 8), (130, 16), (3, 40), (5, 1030)])
def test_every_form_of_a_sum_is_right(rows: int, columns: int) -> None:
    computation = row_sum(rows, columns)
    for candidate in construct(computation, SIMULATED):
        faults = check_schedule(candidate.schedule, arrays(computation), profile=SIMULATED)
        assert not faults, f"{candidate.schedule}\n" + "\n".join(faults)


def test_short_rows_are_read_in_vectors() -> None:
    computation = row_sum(1_000_000, 8)
    texts = [str(c.schedule) for c in construct(computation, tl.load_profile("volta"))]
    assert "vectorize j=4" in texts[0]
    assert any("tile i=1 j=4 -> thread" in t for t in texts)
    assert len(set(texts)) == len(texts)


def test_products_where_shared_memory_is_slow_keep_tiles_in_registers_and_square_blocks() -> None:
    """On such a device operands come through the first cache, so that as many results as may be share them."""
    m, n, k = tl.axes(m=512, n=512, k=512)
    A, B = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n)
    computation = tl.schedule(tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n)).computation
    profile = tl.load_profile("mali_g76")
    best = construct(computation, profile)[0]
    (loops,) = loops_of(best.schedule, profile)
    assert "shared" not in str(best.schedule)
    assert loops.tiles[-1]["n"] >= 4 and loops.tiles[2]["m"] >= 4
    assert loops.tiles[1]["m"] >= 16 and loops.tiles[1]["n"] >= 16
