"""Clusters of blocks: how tiles fall on them, what stands above a cluster's blocks, and that whatever sizes there are it is right."""

from __future__ import annotations

from typing import Any

import pytest

import tilelang as tl
from tests.lowering.test_roles import by_hand, check, lowered, matmul
from tilelang.errors import Refusal
from tilelang.schedules.schedule import Schedule

BY_EIGHT = tl.layout(lambda m, n: (n // 8, m, n % 8))
BACKWARDS = tl.layout(lambda m, n: (n, m))


def product(
    size: tuple[int, int, int] = (40, 50, 24), blocks: int | None = 2, clusters: int | None = None, order: Any = None,
    inner: dict[str, int] | None = None, inner_order: Any = None,
) -> Schedule:  # fmt: skip
    """Tiles of 32 x 16 for a cluster, of 16 x 16 for a block; the walk over k stands above the blocks."""
    start = tl.schedule(matmul(*size))
    start = start.units(cluster=tl.blocks(blocks)) if blocks else start
    walked = start.tile(m=32, n=16).to(tl.cluster, clusters, order=order).accumulate(tl.register).split(k=8)
    given = walked.tile(**(inner or {"m": 16})).to(tl.block, order=inner_order)
    return given.load("A", tl.shared).load("B", tl.shared).tile(m=4, n=2).to(tl.thread)


def kernel_of(plan: Schedule, profile: str = "simulated") -> Any:
    (kernel,) = lowered(plan, profile).kernels
    return kernel


# ---------------------------------------------------------------- what they are lowered to


def test_a_cluster_is_neighbours_along_the_grid() -> None:
    kernel = kernel_of(product())
    assert (kernel.grid, kernel.cluster, kernel.threads) == ((8, 2, 1), 2, 32)
    kernel = kernel_of(product(clusters=3, order=BACKWARDS))
    assert (kernel.grid, kernel.cluster) == ((6, 1, 1), 2)


def test_without_units_a_cluster_has_as_many_blocks_as_tiles() -> None:
    assert kernel_of(product(blocks=None)).cluster == 2
    assert kernel_of(product(blocks=None, inner={"m": 8, "n": 8})).cluster == 8


def test_blocks_that_make_clusters_come_in_whole_ones() -> None:
    start = tl.schedule(matmul(40, 50, 24)).units(cluster=tl.blocks(4))
    assert kernel_of(start.tile(m=16, n=8).to(tl.block)).grid == (8, 3, 1)
    assert kernel_of(start.tile(m=16, n=16).to(tl.block, 6)).grid == (8, 1, 1)
    assert kernel_of(start.tile(m=64, n=64).to(tl.block)).grid == (4, 1, 1)


def test_the_text_says_how_many_blocks_make_a_cluster() -> None:
    cuda = tl.compile(product(), tl.target("cuda", profile="hopper"))
    assert 'extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(32)\n' in cuda.source
    assert "__cluster_dims__" not in tl.compile(by_hand(matmul(32, 32, 32)), tl.target("cuda", profile="hopper")).source


# ---------------------------------------------------------------- what they compute

SIZES = [(40, 34, 16), (17, 3, 9), (33, 16, 0)]
PLANS: dict[str, Any] = {
    "one each": {},
    "derived": {"blocks": None},
    "idle blocks": {"blocks": 4},
    "rounds": {"blocks": 2, "inner": {"m": 8, "n": 8}},
    "idle rounds": {"blocks": 3, "inner": {"m": 8}},
    "persistent": {"clusters": 3},
    "more clusters than tiles": {"clusters": 100},
    "an order of clusters": {"order": BY_EIGHT},
    "an order of persistent clusters": {"order": BY_EIGHT, "clusters": 3},
    "an order of blocks": {"blocks": 4, "inner": {"m": 16, "n": 8}, "inner_order": BACKWARDS},
    "one block": {"blocks": 1},
}


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_products_of_clusters(plan: str, size: tuple[int, int, int]) -> None:
    check(product(size, **PLANS[plan]), "simulated", "early")


@pytest.mark.parametrize("count", [None, 3])
@pytest.mark.parametrize("order", [None, BY_EIGHT], ids=["plain", "order"])
@pytest.mark.parametrize("blocks", [2, 3, 8])
def test_blocks_beyond_the_last_tile_do_nothing(blocks: int, order: Any, count: int | None) -> None:
    for size in SIZES:
        start = tl.schedule(matmul(*size)).units(cluster=tl.blocks(blocks)).tile(m=16, n=8).to(tl.block, count, order=order)
        check(start.accumulate(tl.register).split(k=8).load("A", tl.shared).tile(m=4, n=2).to(tl.thread), "simulated", "early")


def test_every_prefix_runs() -> None:
    whole = product()
    for count in range(len(whole.steps) + 1):
        check(Schedule(whole.computation, whole.steps[:count]), "simulated", "early")


@pytest.mark.parametrize("order", ["early", "late", 3])
@pytest.mark.parametrize("clusters", [None, 2])
def test_roles_in_the_blocks_of_clusters(clusters: int | None, order: str | int) -> None:
    plan = by_hand(matmul(72, 70, 29))
    units, _, *rest = plan.steps
    start = (
        tl.schedule(plan.computation)
        .units(cluster=tl.blocks(2))
        .tile(m=64, n=32)
        .to(tl.cluster, clusters)
        .tile(m=16)
        .to(tl.block)
    )
    cluster, *tiles = start.steps
    check(Schedule(plan.computation, (cluster, units, *tiles, *rest)), "simulated", order)


# ---------------------------------------------------------------- refusals


def refused(plan: Schedule, profile: str = "simulated") -> Refusal:
    with pytest.raises(Refusal) as found:
        plan.check(profile)
    return found.value


def test_a_device_without_clusters() -> None:
    for plan in (
        product(),
        product(blocks=None),
        tl.schedule(matmul(8, 8, 8)).units(cluster=tl.blocks(2)).tile(m=4).to(tl.block),
    ):
        error = refused(plan, "ampere")
        assert error.code == "level-not-here" and "the profile `ampere` has no level `cluster`" in error.message


def test_too_many_blocks() -> None:
    assert refused(product(blocks=9)).code == "too-many-units"
    assert "a cluster has 32 blocks" in refused(product(blocks=None, inner={"m": 4, "n": 4})).message


def test_what_all_blocks_of_a_cluster_would_do_together() -> None:
    start = tl.schedule(matmul(40, 50, 24)).tile(m=32, n=16).to(tl.cluster)
    walked = start.accumulate(tl.register).split(k=8)
    inner = tl.move().tile(k=4).to(tl.block)
    for plan in (
        start.accumulate(tl.shared).split(k=8).tile(m=16).to(tl.block),
        walked.load("A", tl.register).tile(m=16).to(tl.block),
        walked.split(m=16).tile(m=8).to(tl.block),
        walked.tile(m=4, n=4).to(tl.thread),
        walked.tile(k=4).to(tl.block),
        walked.tile(m=16).to(tl.block).load("A", tl.shared, steps=inner),
        start.tile(m=16).to(tl.cluster),
        tl.schedule(matmul(40, 50, 24)).units(cluster=tl.blocks(2)).tile(k=8).to(tl.block),
        tl.schedule(matmul(40, 50, 24)).units(cluster=tl.warps(2)).tile(m=8).to(tl.block),
    ):
        assert refused(plan).code in ("not-lowered-yet", "blocks-twice", "clusters-twice")


@pytest.mark.parametrize("said", [False, True])
@pytest.mark.parametrize("walked", [False, True])
def test_the_second_step_to_clusters_is_named(said: bool, walked: bool) -> None:
    start = tl.schedule(matmul(40, 50, 24))
    start = (start.units(cluster=tl.blocks(2)) if said else start).tile(m=32, n=16).to(tl.cluster)
    error = refused((start.split(k=8) if walked else start).tile(m=16).to(tl.cluster))
    assert error.code == "clusters-twice" and error.message.startswith("`tile m=16 -> cluster` is the second step")


def test_without_clusters_the_first_step_to_them_is_refused() -> None:
    start = tl.schedule(matmul(40, 50, 24)).tile(m=32, n=16).to(tl.cluster).tile(m=16).to(tl.cluster)
    error = refused(start, "ampere")
    assert error.code == "level-not-here" and error.message.startswith("`tile m=32 n=16 -> cluster`")
