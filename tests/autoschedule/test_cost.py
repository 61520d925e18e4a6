"""Estimates: one rule for every schedule, parts that add up, the bound beside them."""

import dataclasses
import itertools
import math
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tilelang as tl
from tilelang.autoschedule.common.construct import construct
from tilelang.autoschedule.common.cost import Estimate
from tilelang.autoschedule.common.loop_summary import loops_of
from tilelang.autoschedule.common.task_accesses import nest_of
from tilelang.autoschedule.cpu.bodies import stage_share
from tilelang.autoschedule.cpu.cache_traffic import Cache, Traffic
from tilelang.autoschedule.cpu.constants import CPU
from tilelang.autoschedule.cpu.device import cpu_device
from tilelang.autoschedule.cpu.growth import seeds
from tilelang.autoschedule.cpu.memory_stalls import stall_cycles, wait_cycles
from tilelang.autoschedule.cpu.model import _last_block_end, body_cycles, exposed, last_block_end, least_seconds
from tilelang.autoschedule.models import estimate_schedule
from tilelang.profiles.profile import Curve, Profile
from tilelang.schedules.task import plan
from tilelang.testing import Recipe, recipes

POCL = tl.load_profile("sapphire_rapids")


def test_a_breakdown_lists_the_longest_part_first() -> None:
    found = Estimate(4e-6, (("launch", 1e-6), ("leaf", 3e-6)), 2e-6)
    lines = [line.split() for line in found.breakdown.splitlines()]
    assert lines == [
        ["4.0", "us,", "no", "less", "than", "2.0", "us"],
        ["3.0", "us", "75%", "leaf"],
        ["1.0", "us", "25%", "launch"],
    ]
    assert found.bottleneck == "leaf" and str(found) == found.breakdown


def test_schedules_written_by_hand_are_estimated() -> None:
    m, n, k = tl.axes(m=64, n=96, k=256)
    A, B = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n)
    C = tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n)
    whole = tl.schedule(C).tile(m=64, n=96).to(tl.block)
    wide = estimate_schedule(
        whole.split(m=8, n=48).accumulate(tl.register).split(k=1).split(m=1, unroll=True).vectorize(n=16), POCL
    )
    narrow = estimate_schedule(whole.split(m=1, n=16).accumulate(tl.register).split(k=1).vectorize(n=16), POCL)
    assert narrow.seconds > wide.seconds >= wide.bound > 0
    for found in (wide, narrow):
        assert found.seconds == pytest.approx(sum(seconds for _, seconds in found.parts))


def product(m: int = 64, n: int = 96, k: int = 256) -> tl.Schedule:
    i, j, r = tl.axes(m=m, n=n, k=k)
    A, B = tl.input("A", tl.float32, i, r), tl.input("B", tl.float32, r, j)
    return tl.schedule(tl.define("C", tl.sum(A[i, r] * B[r, j], over=r), i, j))


def tiled(whole: tl.Schedule, m: int = 32, n: int = 48, rows: int = 8, columns: int = 48) -> tl.Schedule:
    piece = whole.tile(m=m, n=n).to(tl.block).split(m=rows, n=columns).accumulate(tl.register)
    return piece.split(k=4).split(k=1, unroll=True).split(m=1, unroll=True).vectorize(n=16)


def with_rates(**rates: float) -> Profile:
    return dataclasses.replace(POCL, rates=tuple(rates.items()), curves=())


def test_a_rate_that_is_not_known_takes_no_time() -> None:
    schedule = tiled(product())
    assert estimate_schedule(schedule, with_rates()).seconds == 0
    only = estimate_schedule(schedule, with_rates(launch_us=50))
    assert only.seconds == pytest.approx(50e-6) and only.bottleneck == "launch" and only.bound == 0


@pytest.mark.slow
@pytest.mark.parametrize("device", ["sapphire_rapids", "volta"])
@given(recipe=recipes("softmax", "normalised"))
def test_candidates_of_several_tasks_are_estimated_as_their_schedules(device: str, recipe: Recipe) -> None:
    computation, profile = recipe.build(), tl.load_profile(device)
    found = construct(computation, profile)
    assert [c.estimate.seconds for c in found] == sorted(c.estimate.seconds for c in found)
    for candidate in (found[0], found[-1]):
        again = estimate_schedule(candidate.schedule, profile)
        assert again.seconds == pytest.approx(candidate.estimate.seconds) and again.bound == candidate.estimate.bound
        assert dict(again.parts) == pytest.approx(dict(candidate.estimate.parts))


@pytest.mark.parametrize("device", ["sapphire_rapids", "volta"])
def test_every_kernel_of_a_schedule_takes_its_time(device: str) -> None:
    i, j = tl.axes(i=4096, j=1024)
    X, profile = tl.input("X", tl.float32, i, j), tl.load_profile(device)
    S = tl.define("S", tl.sum(X[i, j], over=j), i)
    both = construct(tl.schedule(tl.define("Y", X[i, j] / S[i], i, j)).computation, profile)
    apart = next(c for c in both if "in global" in str(c.schedule))
    only = construct(tl.schedule(tl.define("Y", X[i, j] / tl.input("S", tl.float32, i)[i], i, j)).computation, profile)[0]
    caches = sum(m.capacity_bytes or 0 for m in profile.memories if m.cache and m.owner == "block") * (profile.compute_units or 1)
    least = (4 * 4096 * 1024 - caches) / (dict(profile.rates)["global_gb_per_s"] * 1e9)
    assert apart.estimate.seconds > only.estimate.seconds + 0.9 * least


def test_memory_is_as_fast_as_it_was_over_as_many_bytes() -> None:
    """What was read near comes faster than the one rate of a device says, what lies far slower."""
    by_rate = dataclasses.replace(POCL, curves=())
    for elements, faster in ((1 << 17, True), (1 << 26, False)):
        i = tl.axes(i=elements)
        whole = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i))
        (loops,) = loops_of(whole.tile(i=elements // 64).to(tl.block).split(i=64).vectorize(i=16), POCL)
        traffic = Traffic(loops, 2, 2)
        measured, nominal = (dict(wait_cycles(loops, traffic, 0.5, cpu_device(p)))["global"] for p in (POCL, by_rate))
        assert (measured < nominal / 3) == faster and (measured > nominal) != faster


def relu_waits(elements: int, blocks: int, stream: bool) -> float:
    """How long all cores wait for memory, in cycles, in an element-wise kernel."""
    i = tl.axes(i=elements)
    start = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)).tile(i=elements // blocks).to(tl.block)
    (loops,) = loops_of((start.via(tl.register, stream=True) if stream else start).split(i=64).vectorize(i=64), POCL)
    return dict(wait_cycles(loops, Traffic(loops, 2, 2), 0.5, cpu_device(POCL)))["global"]


def test_what_a_launch_leaves_in_the_caches_is_not_fetched_by_the_next_one() -> None:
    """Where two blocks of a core fit its cache, which each launch goes over from the other end."""
    assert relu_waits(1 << 21, 64, False) < 0.9 * relu_waits(1 << 21, 2, False)
    assert relu_waits(1 << 14, 64, False) == pytest.approx(relu_waits(1 << 14, 2, False))


def test_results_go_past_the_caches_where_memory_that_is_near_has_no_room() -> None:
    for elements, better in ((1 << 19, False), (1 << 21, False), (1 << 26, True)):
        assert (relu_waits(elements, 512, True) < relu_waits(elements, 512, False)) == better


def test_a_kernel_with_nothing_to_do_is_its_launch() -> None:
    i, j = tl.axes(i=5, j=0)
    X = tl.input("X", tl.float32, i, j)
    for Y in (tl.define("Y", X[i, j] * 2, j, i), tl.define("Y", tl.sum(X[i, j], over=j), i)):
        found = estimate_schedule(tl.schedule(Y).tile(i=2).to(tl.block), POCL)
        assert found.bottleneck == "launch" and {what for what, s in found.parts if s} <= {"launch", "results"}
        assert found.seconds >= found.bound


def test_blocks_of_unequal_size_are_as_slow_as_the_first_half_of_them() -> None:
    cores = cpu_device(dataclasses.replace(POCL, compute_units=2))
    (even,) = loops_of(tiled(product(m=64, n=96), m=32, n=48))
    (uneven,) = loops_of(tiled(product(m=64, n=96), m=48, n=96))
    (one,) = loops_of(tiled(product(m=64, n=96), m=64, n=96))
    assert [last_block_end(loops, cores) for loops in (even, uneven, one)] == [0.5, 0.75, 1.0]


def test_a_core_that_is_done_takes_of_anothers_share() -> None:
    """Of 52 rows in blocks of 8 the first of three cores has two, the others two and three, of which the last is half a block; of many
    blocks a share more or less makes no difference."""
    cores = cpu_device(dataclasses.replace(POCL, compute_units=3))
    (loops,) = loops_of(tiled(product(m=52, n=96), m=8, n=96))
    assert last_block_end(loops, cores) == pytest.approx((8 + 8 + 4) / 52)
    (many,) = loops_of(tiled(product(m=1000, n=96), m=4, n=96))
    assert last_block_end(many, cores) == pytest.approx(336 / 1000)


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(1, 20)), min_size=1, max_size=3), st.integers(1, 40))
def test_the_last_block_ends_as_when_each_core_looks_at_all_shares(sizes: list[tuple[int, int]], cores: int) -> None:
    starts = [[(i, min(size, extent - i)) for i in range(0, extent, size)] for extent, size in sizes]
    points = [math.prod(n for _, n in block) for block in itertools.product(*starts)]
    assume(len(points) <= CPU.many_blocks * cores)
    shares = [points[len(points) * c // cores : len(points) * (c + 1) // cores] for c in range(cores)]
    clocks = [0] * cores
    while any(shares):
        core = min(range(cores), key=lambda c: (clocks[c], c))
        clocks[core] += next(share for n in range(cores) if (share := shares[(core + n) % cores])).pop(0)
    if all(extent % size == 0 for extent, size in sizes):  # all blocks are alike: so many rounds of them
        assert _last_block_end(tuple(sizes), cores) * len(points) == pytest.approx(-(-len(points) // cores))
    else:
        assert _last_block_end(tuple(sizes), cores) == pytest.approx(max(clocks) / sum(points))


def test_more_cores_than_blocks_take_no_longer_to_be_counted() -> None:
    assert _last_block_end(((1001, 10),), 10**9) == 10 / 1001


@pytest.mark.parametrize("waits", [(3.0, 2.0), (2.0, 3.0), (2.0, 2.0), (0.0, 1.0)])
def test_more_work_beside_waits_takes_no_less_time(waits: tuple[float, float]) -> None:
    """Work hides the longest wait alone, and only once."""
    cores, times = cpu_device(POCL), []
    for busy in (0.0, 0.5, 1.0, 2.0, 2.5, 4.0, 40.0):
        parts = exposed(list(zip(("l2", "global"), waits, strict=True)), busy, cores)
        times.append(busy + sum(s for _, s in parts))
    assert times == sorted(times) and times[0] == max(waits)


@pytest.mark.parametrize("l2", [0.0, 1.0, 6.0])
def test_more_waiting_for_memory_takes_no_less_time(l2: float) -> None:
    times = [
        sum(s for _, s in exposed([("l2", l2), ("global", far)], 1.0, cpu_device(POCL))) for far in (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
    ]
    assert times == sorted(times)


def test_rows_a_power_of_two_apart_do_not_stay_in_a_cache() -> None:
    misses = {}
    for n in (1000, 1024):
        (loops,) = loops_of(tiled(product(m=1024, n=n, k=1024), m=64, n=192))
        traffic = Traffic(loops, 2, 2)
        small = Cache("l2", 1 << 21, 16, 64)
        misses[n] = sum(size for stream, size in traffic.missed(small) if stream.access.name == "B")
    assert misses[1024] > 4 * misses[1000]


def test_what_a_round_leaves_in_a_cache_is_not_fetched_again() -> None:
    (loops,) = loops_of(tiled(product(m=256, n=96, k=256), m=256, n=96))
    traffic = Traffic(loops, 2, 2)
    whole = {a.name: a.footprint_bytes(loops.nest.extents) for a in loops.nest.accesses}
    large = {s.access.name: size / s.weight for s, size in traffic.missed(Cache("large", 1 << 30, None, 64))}
    none = {s.access.name: size for s, size in traffic.missed(Cache("none", 0, None, 64))}
    assert large == {name: float(size) for name, size in whole.items()}
    assert none["B"] == 32 * whole["B"] and none["A"] == 2 * whole["A"]


def test_copies_lie_where_those_before_them_lay() -> None:
    """One after another in the same bytes of a cache, with the border of their windows, unless others drive them out."""
    c, q, s = tl.axes(c=64, q=30, s=3)
    X, W = tl.input("X", tl.float32, c, q), tl.input("W", tl.float32, c, s)
    Y = tl.define("Y", tl.sum(tl.pad(X[c, q + s - 1], 0.0) * W[c, s], over=s), c, q)
    made = tl.schedule(Y).tile(c=4, q=30).to(tl.block).load("X", tl.shared).split(c=1).accumulate(tl.register)
    (loops,) = loops_of(made.split(s=1).vectorize(q=16), POCL)
    traffic, copy = Traffic(loops, 3, 2), 4 * (30 + 2) * 4
    found = {size: next(n for s, n in traffic.missed(Cache(str(size), size, None, 64)) if s.packed) for size in (1 << 30, 0)}
    blocks, read, made_anew = 16, 3, 1
    assert found[1 << 30] == copy and found[0] == blocks * (read + made_anew) * copy


def test_a_stage_runs_as_often_as_its_place_is_come_to() -> None:
    i, j = tl.axes(i=64, j=256)
    X = tl.input("X", tl.float32, i, j)
    peak = tl.define("peak", tl.max(X[i, j], over=j), i)
    Y = tl.define("Y", X[i, j] - peak[i], i, j)
    made = tl.schedule(Y).tile(i=16).to(tl.block).split(i=1).compute("peak", tl.register, steps=tl.move().vectorize(j=64))
    (loops,) = loops_of(made.split(j=64).vectorize(j=64), POCL)
    (place,) = [p for p in loops.places if p.stage is not None]
    assert stage_share(place, loops) == 1.0


def test_pages_are_as_large_as_the_profile_says() -> None:
    """Rows a way apart find half of its places for certain where pages are smaller; and a row is fetched a page before its use."""
    cache = cpu_device(POCL).caches[-1]
    assert cache.ways
    way = cache.bytes // cache.ways
    i, j = tl.axes(i=64, j=way // 4)
    row_sum = tl.define("Y", tl.sum(tl.input("X", tl.float32, i, j)[i, j], over=j), i)
    nest = nest_of(plan(tl.schedule(row_sum).computation, set())[-1])
    found = []
    for page in (4096, 8192, way, 0):
        rates = {**dict(POCL.rates), "page_bytes": float(page)}
        device = cpu_device(dataclasses.replace(POCL, rates=tuple((n, r) for n, r in rates.items() if r)))
        held = max(n for n in range(1, 1 + cache.ways) if device.caches[-1].holds(nest.reads[0], (n, 1)))
        ahead = {t.ahead * t.vector[1] * 4 for t in seeds(nest, (), device) if t.vector is not None} - {0}
        found.append((held, ahead))
    assert found == [(cache.ways // 2, {4096}), (cache.ways // 2, {8192}), (cache.ways, {way}), (cache.ways, set())]


def test_vectors_of_windows_that_begin_at_other_elements_are_loaded_each() -> None:
    q, s, w = tl.axes(q=4096, s=3, w=4098)
    X, W = tl.input("X", tl.float32, w), tl.input("W", tl.float32, s)
    whole = tl.schedule(tl.define("Y", tl.sum(X[q + s] * W[s], over=s), q)).tile(q=4096).to(tl.block)
    made = whole.split(q=64).accumulate(tl.register).split(s=1, unroll=True).vectorize(q=16)
    (loops,) = loops_of(made, POCL)
    device, crossing = (cpu_device(with_rates(l1_bytes_per_cycle=64.0, crossing_cycles=n)) for n in (0.0, 1.0))
    assert body_cycles(loops, device) == 64 * (4 * 3 + 3)
    assert body_cycles(loops, crossing) == 64 * (4 * 3 + 3 + 4 * 3)


@pytest.mark.parametrize(("offset", "crossing"), [(0.0, 0), (16.0, 1), (64.0, 0)])
def test_vectors_of_an_array_that_begins_within_a_line_lie_on_two(offset: float, crossing: int) -> None:
    """Those of panels do not, which begin where a line does."""
    device = cpu_device(with_rates(crossing_cycles=1.0, array_offset_bytes=offset))
    whole = product(m=8, n=64, k=32).tile(m=8, n=64).to(tl.block)
    packed = whole.load("B", tl.shared, layout=tl.layout(lambda k, n: (n // 64, k, n % 64)))
    found = []
    for made in (whole, packed):
        leaf = made.split(m=8, n=64).accumulate(tl.register).split(k=1).split(m=1, unroll=True).vectorize(n=16)
        (loops,) = loops_of(leaf, POCL)
        found.append(body_cycles(loops, device))
    assert found == [crossing * 32 * 4, 0.0]


def test_ends_of_rows_are_stored_beside_what_comes_after_them() -> None:
    """They take time only where they take longer than all the work, and as much as they take longer."""
    made, rows = tiled(product(m=32, n=91, k=64), n=91, columns=96), 32
    stored, others = {}, set()
    for cycles in (0.0, 1.0, 1000.0, 2000.0):
        parts = dict(estimate_schedule(made, with_rates(cycle_ns=1.0, piece_cycles=500.0, masked_store_cycles=cycles)).parts)
        stored[cycles] = parts.pop("waiting for stores")
        others.add(sum(parts.values()))
    assert len(others) == 1 and stored[0.0] == stored[1.0] == 0 < stored[1000.0]
    assert stored[2000.0] - stored[1000.0] == pytest.approx(rows * 1000 * 1e-9)


def turned(columns: int, m: int = 2048) -> tl.Schedule:
    """A product whose vectors go along its rows, and whose results change places with columns in shared memory on their way."""
    found: tl.Schedule = tl.parse(
        f"{product(m=m, n=1408, k=64).computation.text}\nschedule it for C {{ tile m=32 n=176 -> block; split m=32 n={columns}; "
        "accumulate in register { via shared layout (n, m) }; split k=1; split n=1 unroll; vectorize m=16 }\n"
    ).schedule("it")
    return found


def test_rows_that_changed_places_are_stored_in_parts_where_they_fill_no_vector() -> None:
    """Each part of a row goes to a line from afar; rows of whole vectors, and those that stay in a core's cache, take no longer."""
    stored = {}
    for columns, m in ((11, 2048), (16, 2048), (11, 64)):
        for cycles in (0.0, 1000.0, 2000.0):
            rates = dict(POCL.rates) | {"cycle_ns": 1.0, "turned_store_cycles": cycles}
            profile = dataclasses.replace(POCL, rates=tuple(rates.items()))
            parts = dict(estimate_schedule(turned(columns, m), profile).parts)
            stored[columns, m, cycles] = parts["waiting for stores"]
    assert stored[11, 2048, 0.0] == 0
    cores = cpu_device(POCL).cores
    assert stored[11, 2048, 2000.0] - stored[11, 2048, 1000.0] == pytest.approx(2048 * 128 * 1000 * 1e-9 / cores)
    assert stored[16, 2048, 2000.0] == stored[11, 64, 2000.0] == 0


def test_a_copy_by_points_of_fused_axes_is_as_large_as_its_points() -> None:
    c, p, q, f = tl.axes(c=64, p=56, q=56, f=64)
    X, W = tl.input("X", tl.float32, c, p, q), tl.input("W", tl.float32, f, c)
    Z = tl.define("Z", tl.sum(X[c, p, q] * W[f, c], over=c), f, p, q)
    panels = tl.layout(lambda pq, c: (pq // 48, c, pq % 48))
    whole = tl.schedule(Z).fuse(pq=("p", "q")).tile(f=64, pq=48).to(tl.block).load("X", tl.shared, layout=panels)
    (loops,) = loops_of(whole.split(f=8).accumulate(tl.register).split(c=4).vectorize(pq=16), POCL)
    traffic = Traffic(loops, 3, 2)
    (copy,) = (s for s in traffic.streams if s.packed)
    blocks = -(-56 * 56 // 48)
    assert dict(traffic.missed(Cache("all", 1 << 30, None, 64)))[copy] <= blocks * 64 * 48 * 4


def test_rows_that_begin_again_in_a_shared_cache_take_its_latency() -> None:
    """Panel by panel, and one part of the reduction after another, the rows of a product's operands and results begin anew beyond the
    cache of a core: no further away than what was touched since they began last."""
    whole = product(m=2048, n=8192, k=2048).tile(m=2048, n=512).to(tl.block).split(k=256).split(n=64).split(m=8)
    (loops,) = loops_of(whole.accumulate(tl.register).split(k=1).split(m=1, unroll=True).vectorize(n=16), POCL)
    traffic = Traffic(loops, loops.body_depth, loops.piece_depth)
    device, again = dataclasses.replace(cpu_device(POCL), pages=()), 64 << 20
    assert loops.nest.compulsory_bytes > again

    def stalls(near_ns: float) -> float:
        curve = Curve("latency", "footprint_bytes", "ns", ((again - 1.0, near_ns), (float(again), 150.0)))
        return stall_cycles(loops, traffic, dataclasses.replace(device, latency=curve))

    first = stalls(0.0)  # what begins for the first time comes from memory
    assert 0 < first < stalls(100.0) < stalls(150.0) and first < 0.2 * stalls(150.0)


def test_a_panel_that_the_shared_cache_keeps_is_not_read_from_memory_again() -> None:
    profile = tl.load_profile("zen3")
    forgetful = dataclasses.replace(
        profile, rates=tuple(r for r in profile.rates if r[0] not in ("l3_bytes", "near_global_bytes"))
    )
    packed = product(3072, 3072, 3072).tile(m=1026, n=1024).to(tl.block).split(k=256).load("B", tl.shared).split(m=6, n=16)
    by_vectors = packed.accumulate(tl.register).split(k=1).split(m=1, unroll=True).vectorize(n=8)

    def from_memory(known: Profile) -> float:
        return dict(estimate_schedule(by_vectors, known).parts)["waiting for global"]

    assert cpu_device(forgetful).last_level is None and cpu_device(profile).last_level is not None
    assert from_memory(forgetful) > 5 * from_memory(profile) > 0  # the panel of 1 MB exceeds the second cache, not the third


def test_an_axis_of_one_point_does_not_change_a_lower_bound() -> None:
    """The product and its addition are one multiply-add, whether or not the product varies along the axis."""
    b, k, n = tl.axes(b=1, k=512, n=512)
    W, X, x = tl.input("W", tl.float32, k, n), tl.input("X", tl.float32, b, k), tl.input("x", tl.float32, k)
    read = [tl.define("Y", tl.sum(value * W[k, n], over=k), b, n) for value in (X[b, k], x[k])]
    found = [least_seconds(nest_of(plan(tl.computation("c", y), set())[-1]), cpu_device(POCL)) for y in read]
    assert found[0] == found[1] > 0


def test_what_does_not_vary_along_a_loop_is_computed_before_it() -> None:
    i, j = tl.axes(i=64, j=1024)
    X, x = tl.input("X", tl.float32, i, j), tl.input("x", tl.float32, i)

    def operations(value: Any) -> float:
        made = tl.schedule(tl.define("Y", value, i, j)).tile(i=16).to(tl.block).split(i=1).split(j=64).vectorize(j=16)
        return dict(estimate_schedule(made, POCL).parts)["operations"]

    plain, scaled, each = (operations(v) for v in (X[i, j] * x[i], X[i, j] * tl.sqrt(x[i]), tl.sqrt(X[i, j] * x[i])))
    assert plain <= scaled < 1.1 * plain < each


def test_rows_of_an_unrolled_body_come_in_turn() -> None:
    """A body of eight rows reads lines of all of them, which do not follow each other."""
    (loops,) = loops_of(
        product(1024, 1024, 1024).tile(m=64, n=96).to(tl.block).split(m=8, n=48).accumulate(tl.register)
        .split(k=4).split(k=1, unroll=True).split(m=1, unroll=True).vectorize(n=16), POCL
    )  # fmt: skip
    traffic = Traffic(loops, len(loops.loops), loops.piece_depth)
    assert {s.access.name: traffic.rows(s) for s in traffic.streams if s.access.name in "AC"} == {"A": 8, "C": 8}
