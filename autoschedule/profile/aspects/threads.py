"""Threads of a block: how many run in lockstep, from how many on another one costs time, and how much more of them compute.

Threads in lockstep execute both sides of a branch on which they differ; different warps execute one side each.
"""

from __future__ import annotations

from tilelang.autoschedule.profile.aspects.arithmetic import PEAK
from tilelang.autoschedule.profile.aspects.shapes import several_threads
from tilelang.autoschedule.profile.bench import Bench
from tilelang.autoschedule.profile.findings import Findings
from tilelang.autoschedule.profile.steps import granularity, step

SIDES = """
KERNEL(probe, %(threads)d)(GLOBAL const int *rounds, GLOBAL float *out) {
  float a = 0.999f, b = 0.998f, x[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) x[k] = (float)(k + THREAD);
  if (THREAD / %(side)d %% 2) {
    for (int r = 0; r < rounds[0]; ++r) {
#pragma unroll
      for (int k = 0; k < %(steps)d; ++k) x[k %% 8] = x[k %% 8] * a + a;
    }
  } else {
    for (int r = 0; r < rounds[0]; ++r) {
#pragma unroll
      for (int k = 0; k < %(steps)d; ++k) x[k %% 8] = x[k %% 8] * b - a;
    }
  }
  for (int k = 1; k < 8; ++k) x[0] += x[k];
  out[BLOCK * %(threads)d + THREAD] = x[0];
}"""
STEPS = 64
BLOCKS_OF_A_CORE = 8
CHAINS, UNROLLED = 4, 16
MOST_THREADS = 128  # the largest count, tried with one more as well


def together(bench: Bench, found: Findings) -> None:
    """Groups of neighbours that take the same side of a branch, of growing size: once a group is a whole warp, the branch
    costs nothing extra."""
    several_threads(bench)
    threads = min(256, bench.profile.max_block_threads)
    blocks, points = bench.cores * (BLOCKS_OF_A_CORE if bench.lockstep else 1), []
    side = 1
    while side <= threads // 2:
        run = bench.of_text(SIDES % {"threads": threads, "side": side, "steps": STEPS}, blocks, threads, [4 * threads * blocks])
        points.append((float(side), found.time("sides", side, run, STEPS * blocks / bench.cores).seconds * 1e9))
        side *= 2
    how = f"a step of {threads} threads, of which groups of that many neighbours take the same side of a branch"
    found.curve("branches", "neighbours", "ns", points, how)
    split = step(points)
    lanes = int(split.first) if split is not None and split.after < split.before else 1
    found.rate("lockstep_lanes", lanes, "the smallest group of neighbours for which a branch costs only one side")
    if lanes > 1 and bench.profile.assumed("levels.warp.threads"):
        for level, field in (("warp", "threads"), ("thread", "max_count")):
            found.fact(level, field, lanes, "the smallest group of neighbours for which a branch costs only one side")
    _stairs(bench, found)


def _stairs(bench: Bench, found: Findings) -> None:
    """Blocks with growing numbers of threads: the time is a staircase, whose steps are the granularity of execution."""
    most = min(MOST_THREADS, bench.profile.max_block_threads - 1)
    counts = sorted({n for k in range(most.bit_length()) for n in (1 << k, (1 << k) + 1)})
    blocks, points = bench.cores * (BLOCKS_OF_A_CORE if bench.lockstep else 1), []
    for threads in counts:
        made = {"threads": threads, "chains": CHAINS, "unrolled": UNROLLED}
        run = bench.of_text(PEAK % made, blocks, threads, [4 * bench.text_lanes * threads * blocks])
        each = CHAINS * UNROLLED * blocks / bench.cores
        points.append((float(threads), found.time("threads", threads, run, each).seconds * 1e9))
    found.curve("threads_of_a_block", "threads", "ns", points, "a step of chains of multiply-adds by each thread of a block")
    if (paid := granularity(points)) is not None:
        found.rate("granularity_threads", paid, "the granularity of threads: one more than a multiple costs as much as many more")


def busy(bench: Bench, found: Findings) -> None:
    """One chain of multiply-adds per thread, with growing numbers of threads per core: how far other threads hide the latency of
    one.

    If the dialect has vectors, also chains of growing vectors.
    """
    points = []
    if bench.lockstep:
        least = max(1, bench.profile.warp_size)
        counts = [least << k for k in range(16) if least << k <= bench.profile.max_block_threads]
        for threads in counts:
            run = bench.of_text(PEAK % _made(threads, 1), bench.cores, threads, [4 * bench.text_lanes * threads * bench.cores])
            operations = 2.0 * UNROLLED * bench.text_lanes * threads * bench.cores
            points.append((float(threads), operations * 1e-9 / found.time("chains", threads, run).seconds))
        found.curve(
            "multiply_add_of_threads",
            "threads",
            "gflop_per_s",
            points,
            "one chain of multiply-adds per thread, one block per core",
        )
    if bench.has_vectors:
        _widths(bench, found)


def _widths(bench: Bench, found: Findings) -> None:
    """Vectors of the dialect with growing numbers of lanes: the rate falls, or stays, once the device splits them."""
    threads, points = bench.threads, []
    for lanes in (n for n in (1, 2, 4, 8, 16) if n <= bench.profile.max_vector_lanes):
        name = f"float{lanes}" if lanes > 1 else "float"
        text = f"#define VECTOR {name}\n" + PEAK.replace("WIDE_OF", "(VECTOR)").replace("WIDE", "VECTOR") % _made(threads, 8)
        run = bench.of_text(text, bench.cores * 4, threads, [4 * lanes * threads * bench.cores * 4])
        operations = 2.0 * 8 * UNROLLED * lanes * threads * bench.cores * 4
        points.append((float(lanes), operations * 1e-9 / found.time("vectors", lanes, run).seconds))
    found.curve(
        "multiply_add_of_width", "lanes", "gflop_per_s", points, "chains of multiply-adds of vectors with that many lanes"
    )


def _made(threads: int, chains: int) -> dict[str, int]:
    return {"threads": threads, "chains": chains, "unrolled": UNROLLED}
