"""Overheads: a launch, a block of it, and a barrier."""

from __future__ import annotations

from tilelang.autoschedule.profile.aspects.shapes import across, in_blocks, lanes_of
from tilelang.autoschedule.profile.bench import Bench
from tilelang.autoschedule.profile.findings import Findings
from tilelang.autoschedule.profile.fits import line
from tilelang.computations.computation import axes, input
from tilelang.computations.define import define
from tilelang.core.dtype import float32
from tilelang.schedules.schedule import schedule

BARRIERS = 64
BARRIER = """
KERNEL(probe, %d)(GLOBAL const int *rounds, GLOBAL int *out) {
  for (int r = 0; r < rounds[0] * %d; ++r) BARRIER;
  out[THREAD] = rounds[0];
}"""


def launches(bench: Bench, found: Findings) -> None:
    """Kernels with growing numbers of nearly empty blocks: their time is that of a launch plus a constant per block of a core."""
    lanes, points, runs = lanes_of(bench, 1), [], []
    for blocks in (1, *(bench.cores * 4**k for k in range(7))):
        b, i = axes(b=blocks, i=lanes)
        X = input("X", float32, b, i)
        run = bench.of_schedule(across(bench, in_blocks(schedule(define("Y", 2 * X[b, i], b, i)), b=1), "i"))
        runs.append(run)
        points.append((float(blocks), found.time("launch", blocks, run).seconds))
    found.curve("launch", "blocks", "us", [(x, y * 1e6) for x, y in points], "time of kernels with one vector per lane")
    many = [(blocks / bench.cores, seconds) for blocks, seconds in points[3:]]
    slope, _ = line(many)
    found.rate("next_launch_us", points[0][1] * 1e6, "a kernel of one block that is queued behind another one")
    waited = found.time("launch and wait", bench.cores, bench.waited(runs[1])).seconds
    found.rate("launch_us", waited * 1e6, "a kernel with one block per core, until the caller sees its completion")
    found.rate("block_us", slope * 1e6, "slope of the time against the blocks per core")
    if not bench.meets:
        return
    threads = min(256, bench.profile.max_block_threads)
    run = bench.of_text(BARRIER % (threads, BARRIERS), bench.cores, threads, [4 * threads])
    sample = found.time("barrier", threads, run, BARRIERS)
    found.rate("barrier_ns", sample.seconds * 1e9, f"consecutive barriers of {threads} threads")
