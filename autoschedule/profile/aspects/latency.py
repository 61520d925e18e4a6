"""The latency of dependent accesses: a pointer chase through memory in unpredictable order.

One thread follows a chain of indices: each element holds the position of the next one. Lines in random order
measure the latency of each cache; lines that are a page apart measure the associativity of a cache, and the number of pages that the
TLB holds.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from tilelang.autoschedule.profile.aspects.shapes import cycle_ns
from tilelang.autoschedule.profile.bench import Bench
from tilelang.autoschedule.profile.findings import Findings
from tilelang.autoschedule.profile.fits import plateaus
from tilelang.autoschedule.profile.sampling import Run

STEPS = 1024
CHASE = """
KERNEL(probe, 1)(GLOBAL const int *rounds, GLOBAL const int *next, GLOBAL int *out) {
  int at = out[0];
  for (int r = 0; r < rounds[0]; ++r)
    for (int k = 0; k < %d; ++k) at = next[at];
  out[0] = at;
}"""
LARGEST_BYTES = 128 << 20
PAGE_BYTES = 4096
NOTICED_NS = 3.0  # the least extra time that counts as a TLB miss


def walk(places: Any, elements: int) -> Any:
    """Indices that lead from element 0 through all places, in random order, and back."""
    import numpy as np  # late: NumPy takes long to import

    order = np.random.default_rng(0).permutation(np.asarray(places)[1:])
    next = np.zeros(elements, np.int32)
    path = np.concatenate([[0], order])
    next[path] = np.roll(path, -1)
    return next


def chase(bench: Bench, places: Any) -> Run:
    """A pointer chase through some places, the first of them 0, as a run of STEPS accesses per iteration.

    Each iteration continues where the last one stopped. All places have been visited once beforehand.
    """
    import numpy as np  # late: NumPy takes long to import

    run = bench.of_text(CHASE % STEPS, 1, 1, [walk(places, int(max(places)) + 1), np.zeros(1, np.int32)])
    run(-(-len(places) // STEPS))
    return run


def line_elements(bench: Bench) -> int:
    """The number of 4-byte indices in a cache line."""
    return (bench.profile.memory("global").line_bytes or 64) // 4


def footprints(bench: Bench, found: Findings) -> None:
    """Lines in random order over growing footprints: every cache is a plateau, and TLB misses are a ramp."""
    import numpy as np  # late: NumPy takes long to import

    step, points = line_elements(bench), []
    least = 64 * step * 4
    most = min(LARGEST_BYTES, (bench.device.global_bytes or LARGEST_BYTES) // 8)
    for k in range(2 * (most // least).bit_length() - 1):
        size = int(least * 2 ** (k / 2))
        run = chase(bench, np.arange(0, size // 4, step))
        points.append((float(size), found.time("chase", size, run, STEPS).seconds * 1e9))
    found.curve("latency", "footprint_bytes", "ns", points, "pointer chase through lines in random order, by one thread")
    steps = plateaus(points, falling=False, tolerance=0.08)
    cycle = cycle_ns(bench, found)
    caches = sorted((m for m in bench.profile.memories if m.cache and m.owner == "block"), key=lambda m: m.capacity_bytes or 0)
    for cache, level in zip(caches, steps, strict=False):
        if cycle is not None:
            found.rate(f"{cache.name}_latency_cycles", level.level / cycle, "plateau of the pointer chase")
    found.rate("latency_ns", points[-1][1], f"pointer chase over {points[-1][0] / 2**20:.0f} MB")


def conflicts(bench: Bench, found: Findings) -> None:
    """Lines a page apart, which share the sets of a small cache; then one line of every page, each in a set of its own."""
    import numpy as np  # late: NumPy takes long to import

    page, step = PAGE_BYTES // 4, line_elements(bench)
    counts = [*range(2, 33), 40, 48]
    points = [(float(n), found.time("ways", n, chase(bench, np.arange(n) * page), STEPS).seconds * 1e9) for n in counts]
    found.curve("latency_of_aligned_lines", "lines", "ns", points, "pointer chase through lines that are a page apart")
    steps = plateaus(points, falling=False, tolerance=0.08)
    caches = sorted((m for m in bench.profile.memories if m.cache and m.owner == "block"), key=lambda m: m.capacity_bytes or 0)
    if caches and len(steps) > 1 and (caches[0].capacity_bytes or 0) >= steps[0].last * PAGE_BYTES:
        found.fact(
            caches[0].name, "ways", int(steps[0].last), "the maximum number of lines a page apart that do not evict each other"
        )
    counts = [int(16 * 2 ** (k / 3)) for k in range(31)]
    points = []
    for n in counts:
        apart = found.time("pages", n, chase(bench, np.arange(n) * page + np.arange(n) % (page // step) * step), STEPS)
        close = found.time("lines", n, chase(bench, np.arange(n) * step), STEPS)
        points.append((float(n), max(apart.best - close.best, 0.0) * 1e9))
    how = f"pointer chase through one line of each page of {PAGE_BYTES} bytes, minus that through as many adjacent lines"
    found.curve("latency_of_pages", "pages", "ns", points, how)
    pages_found(found, points)


def pages_found(found: Findings, points: Sequence[tuple[float, float]]) -> None:
    """The number of pages that the TLB holds: up to the point where one more page costs half of a TLB miss."""
    search = statistics.median(ns for _, ns in points[-len(points) // 3 :])
    before = [n for n, ns in points if ns < search / 2]
    if search > 2 * points[0][1] + NOTICED_NS and before:
        found.rate("found_pages", max(before), f"pages of {PAGE_BYTES} bytes that the TLB holds")
        found.rate("page_search_ns", search, "the additional time of a TLB miss")
