"""Bandwidth: against the footprint, the width of an access, and the number of concurrent blocks.

Every block has its own footprint, so that no two request the same line. Reads are sums over a tensor by a schedule. Writes and
copies repeat to the same place, which no schedule can express, so they are written as source text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilelang.autoschedule.profile.aspects.shapes import QUAD, in_blocks, lanes_of
from tilelang.autoschedule.profile.bench import Bench
from tilelang.autoschedule.profile.findings import Findings
from tilelang.autoschedule.profile.fits import Plateau, capacity, plateaus
from tilelang.autoschedule.profile.sampling import Run
from tilelang.computations.computation import axes, input
from tilelang.computations.define import define
from tilelang.computations.functions import sum
from tilelang.core.dtype import float32
from tilelang.profiles.profile import register, thread
from tilelang.schedules.schedule import schedule

LARGEST_BYTES = 512 << 20  # of all blocks together
STREAM_BYTES = 8 << 20  # a block's footprint when only the width or the number of blocks varies
NOMINAL_BYTES_PER_S = 60e9  # of a core: sets the repetitions of a kernel before it has been timed

WRITES = """
KERNEL(probe, %(threads)d)(GLOBAL const int *rounds, GLOBAL QUAD *out, GLOBAL const QUAD *in) {
  GLOBAL QUAD *mine = out + (long)BLOCK * %(quads)d;
  GLOBAL const QUAD *from = in + (long)BLOCK * %(quads)d;
  for (int r = 0; r < rounds[0]; ++r)
    for (int i = THREAD; i < %(quads)d; i += %(threads)d) %(do)s;
}"""
DOING = {"write": "mine[i] = QUAD_OF((float)r)", "copy": "mine[i] = from[i]"}


def sizes(bench: Bench, per_octave: int) -> Sequence[int]:
    """Footprints of a block: from the bytes that all its lanes read in a few iterations to a share of the device's memory."""
    least = 32 * lanes_of(bench, 8) * 4 if not bench.lockstep else 4 * lanes_of(bench, 1) * 4
    known = bench.device.global_bytes or LARGEST_BYTES
    most = min(known // 16, LARGEST_BYTES) / bench.cores
    steps = math.floor(math.log2(most / least) * per_octave)
    return [int(least * 2 ** (k / per_octave)) for k in range(steps + 1)]


def reading(bench: Bench, footprint: int, blocks: int, lanes: int | None = None) -> tuple[Run, float]:
    """A kernel whose blocks each read a footprint repeatedly, and the bytes that it reads.

    lanes: of one access of a thread; None: as many as are fast, which on CPUs is eight vectors at once.
    """
    lanes = lanes or (QUAD if bench.lockstep else 8 * bench.lanes)
    width = lanes * bench.threads
    rows = max(1, footprint // 4 // width)
    rounds = max(1, int(2e-3 * NOMINAL_BYTES_PER_S / footprint))
    b, r, i, j = axes(b=blocks, r=rounds, i=rows, j=width)
    X = input("X", float32, b, i, j)
    start = in_blocks(schedule(define("S", sum(X[b, i, j], over=i), b, r, j)), b=1).split(r=1).accumulate(register).split(i=1)
    owned = start.tile(j=lanes).to(thread) if bench.lockstep else start
    return bench.of_schedule(owned.vectorize(j=lanes) if lanes > 1 else owned), 4.0 * blocks * rounds * rows * width


def footprints(bench: Bench, found: Findings) -> None:
    """Reads, writes and copies by all cores at once, over growing footprints: every cache shows as a plateau."""
    points = []
    for size in sizes(bench, 4):
        run, read = reading(bench, size, bench.cores)
        points.append((float(size), read / found.time("read", size, run).seconds * 1e-9))
    found.curve("read_bandwidth", "footprint_bytes", "gb_per_s", points, "sums on all cores, each over its own footprint")
    for what, doing in DOING.items():
        moved = []
        for size in sizes(bench, 1)[1:]:
            quads = size // 16 // bench.threads * bench.threads
            text = WRITES % {"threads": bench.threads, "quads": quads, "do": doing}
            run = bench.of_text(text, bench.cores, bench.threads, [quads * 16 * bench.cores] * 2)
            seconds = found.time(what, size, run, quads * 16.0 * bench.cores * (2 if what == "copy" else 1)).seconds
            moved.append((float(size), 1e-9 / seconds))
        found.curve(
            f"{what}_bandwidth",
            "footprint_bytes",
            "gb_per_s",
            moved,
            "16 bytes per access, all cores; bytes read and written are added",
        )
    levels(bench, found, points)
    if (shared := found.known.get("global_gb_per_s")) and not bench.lockstep:
        run, written = streaming(bench)
        seconds = found.time("stream", int(written), run).seconds
        lines = seconds * shared * 1e9 / written
        found.rate("streamed_lines", lines, "lines read at global_gb_per_s in the time of one streaming store of a line")
        run, written = streaming(bench, by_columns=True)
        each = 4.0 * bench.lanes * bench.cores / written  # one vector of a core
        begun = (found.time("stream by columns", int(written), run).seconds - seconds) * each * 1e9
        found.rate("streamed_row_ns", max(0.0, begun), "time to start a row of streaming stores")


def streaming(bench: Bench, by_columns: bool = False) -> tuple[Run, float]:
    """A kernel that writes more than any cache holds, by streaming stores, and the bytes that it writes.

    by_columns: each vector goes to another row than the one before it, and most of them cross a cache line, as with rows of NumPy
    arrays.
    """
    width = 64 * bench.lanes + (bench.lanes // 4 if by_columns else 0)
    rows = LARGEST_BYTES // 8 // (4 * width * bench.cores)
    b, i, j = axes(b=bench.cores, i=rows, j=width)
    X = input("X", float32, j)
    block = in_blocks(schedule(define("Y", X[j] + 1.0, b, i, j)), b=1).via(register, stream=True)
    lanes = bench.lanes if by_columns else 4 * bench.lanes
    walks = block.split(j=lanes).split(i=1) if by_columns else block.split(i=1).split(j=lanes)
    return bench.of_schedule(walks.vectorize(j=lanes)), 4.0 * bench.cores * rows * width


def levels(bench: Bench, found: Findings, points: Sequence[tuple[float, float]]) -> None:
    """Names the plateaus of reads, nearest first: the caches of a core, then those shared by all cores."""
    steps = plateaus(points, tolerance=0.06)
    if bench.lockstep:
        shared_levels(bench, found, points, steps)
        return
    caches = [m for m in bench.profile.memories if m.cache and m.owner == "block"]
    caches.sort(key=lambda m: m.capacity_bytes or 0)
    own = steps[: len(caches)]
    for cache, step, after in zip(caches, own, steps[1:], strict=False):
        found.fact(
            cache.name,
            "capacity_bytes",
            rounded(capacity(step, after, points)),
            "footprint at which reads drop to the next plateau",
        )
    cycles = found.known["cycle_ns"] / bench.cores
    for cache, step in zip(caches, own, strict=False):
        found.rate(
            f"{cache.name}_bytes_per_cycle", step.level * cycles, "reads per core that hit in this cache, all cores at once"
        )
    shared = steps[len(caches) :]
    if shared:
        found.rate("global_gb_per_s", shared[0].level, "reads by all cores from beyond each core's own caches")
        found.rate("distant_gb_per_s", shared[-1].level, "the same for the largest footprints")
    if len(shared) > 1:
        near = capacity(shared[0], shared[1], points) * bench.cores
        found.rate(
            "near_global_bytes", near, "footprint up to which global memory is read at global_gb_per_s; larger ones are slower"
        )


def shared_levels(bench: Bench, found: Findings, points: Sequence[tuple[float, float]], steps: Sequence[Plateau]) -> None:
    """Names the plateaus of a GPU: the last is memory, the one before it the shared cache, the first one a block's own cache."""
    if steps:
        found.rate("global_gb_per_s", steps[-1].level, "reads of all blocks over the largest footprints")
    if len(steps) > 1:
        found.rate("l2_gb_per_s", steps[-2].level, "reads by all blocks that hit in this cache")
        held = capacity(steps[-2], steps[-1], points) * bench.cores
        found.rate("l2_bytes", rounded(held), "footprint of all blocks at which reads drop to the speed of memory")
    if len(steps) > 2:
        found.rate("l1_gb_per_s", steps[0].level, "reads by all blocks that hit in this cache")
        found.rate(
            "l1_bytes",
            rounded(capacity(steps[0], steps[1], points)),
            "footprint at which reads of a block drop to the next plateau",
        )


def rounded(size: float) -> int:
    """A capacity rounded as caches have it: to a quarter of a power of two."""
    unit = 1 << (math.floor(math.log2(size)) - 2)
    return round(size / unit) * unit


def widths(bench: Bench, found: Findings) -> None:
    """Reads of the same bytes by accesses of 4 bytes, 8, and so on, up to the widest access of a thread."""
    points = []
    for lanes in (n for n in (1, 2, 4, 8, 16) if n <= (QUAD if bench.lockstep else bench.lanes)):
        run, read = reading(bench, STREAM_BYTES // (8 if bench.lockstep else 1), bench.cores, lanes=lanes)
        points.append((4.0 * lanes, read / found.time("width", 4 * lanes, run).seconds * 1e-9))
    found.curve("read_bandwidth_of_width", "access_bytes", "gb_per_s", points, "sums over several megabytes per core")


def blocks(bench: Bench, found: Findings) -> None:
    """Reads by one block, two, and so on, each reading the same number of bytes."""
    most = bench.cores * (16 if bench.lockstep else 4)
    counts = sorted({1, *(n for n in (2**k for k in range(1, 14)) if n <= most), bench.cores})
    points = []
    for count in counts:
        run, read = reading(bench, STREAM_BYTES if not bench.lockstep else STREAM_BYTES // 8, count)
        points.append((float(count), read / found.time("blocks", count, run).seconds * 1e-9))
    found.curve("read_bandwidth_of_blocks", "blocks", "gb_per_s", points, "sums, each block over its own footprint")
