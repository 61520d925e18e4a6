"""Memory traffic per request: runs of bytes with gaps between them, rows that are read in turn, and the bandwidth of a single core from
the shared cache."""

from __future__ import annotations

from tilelang.autoschedule.profile.aspects.shapes import count, cycle_ns, in_blocks
from tilelang.autoschedule.profile.bench import Bench
from tilelang.autoschedule.profile.findings import Findings, NotApplicable
from tilelang.autoschedule.profile.steps import transaction
from tilelang.computations.computation import axes, input
from tilelang.computations.define import define
from tilelang.computations.functions import sum
from tilelang.core.dtype import float32
from tilelang.profiles.profile import register
from tilelang.schedules.schedule import schedule

GAP_BYTES = 256  # from the start of one run to the next
RUNS = (4, 8, 16, 32, 64, 128, 256)
SPAN_BYTES = 32 << 20  # of addresses per core
ROWS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)
ROW_BYTES = 16 << 10
READ_BYTES = 128 << 20  # of all cores
AS_FAST = 0.9  # the least share of the best bandwidth that counts as fast
APART = """
KERNEL(probe, %(threads)d)(GLOBAL const int *rounds, GLOBAL %(type)s *out, GLOBAL const %(type)s *in) {
  GLOBAL const %(type)s *mine = in + (long)BLOCK * %(words)d;
  %(type)s all[4] = {in[0], in[0], in[0], in[0]};
  for (int r = 0; r < rounds[0]; ++r)
    for (int i = THREAD; i < %(accesses)d; i += %(threads)d * 4) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        int n = i + k * %(threads)d;
        all[k] += mine[n / %(run)d * %(gap)d + n %% %(run)d];
      }
    }
  out[BLOCK * %(threads)d + THREAD] = all[0] + all[1] + all[2] + all[3];
}"""
NEAR = """
KERNEL(probe, %(threads)d)(GLOBAL const int *rounds, GLOBAL float *out, GLOBAL const QUAD *in) {
  float all[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  for (int r = 0; r < rounds[0]; ++r)
    for (int i = THREAD; i < %(quads)d; i += %(threads)d * 4) {
      QUAD one = in[i], two = in[i + %(threads)d], three = in[i + %(threads)d * 2], four = in[i + %(threads)d * 3];
      all[0] += SUM_4(one);
      all[1] += SUM_4(two);
      all[2] += SUM_4(three);
      all[3] += SUM_4(four);
    }
  out[THREAD] = all[0] + all[1] + all[2] + all[3];
}"""


def contiguity(bench: Bench, found: Findings) -> None:
    """Reads of runs of bytes at equal distances from memory: which share of each transaction is used."""
    threads = bench.threads
    blocks = bench.cores * (8 if bench.lockstep else 1)
    span = min(SPAN_BYTES, (bench.device.global_bytes or SPAN_BYTES * 16) // 4 // bench.cores) * bench.cores // blocks
    runs, points = max(1, span // GAP_BYTES // (threads * 4)) * threads * 4, []
    for size in RUNS:
        width = 1 if bench.lockstep else min(bench.lanes, size // 4)  # floats of one access
        made = {
            "threads": threads, "words": runs * GAP_BYTES // 4 // width, "accesses": runs * size // 4 // width,
            "run": size // 4 // width, "gap": GAP_BYTES // 4 // width, "type": f"float{width}" if width > 1 else "float",
        }  # fmt: skip
        run = bench.of_text(APART % made, blocks, threads, [4 * width * threads * blocks, runs * GAP_BYTES * blocks])
        points.append((float(size), size * runs * blocks * 1e-9 / found.time("runs", size, run).seconds))
    how = f"runs of that many bytes, {GAP_BYTES} bytes apart, by all blocks; only requested bytes count"
    found.curve("read_bandwidth_of_runs", "run_bytes", "gb_per_s", points, how)
    moved = transaction(points)
    if moved is not None:
        how = "bytes moved for the smallest request, from the bandwidth that short runs lose"
        found.rate("least_moved_bytes", moved, how)
        if bench.lockstep:
            count(bench, found, "memories.global.transaction_bytes", moved, how)


def rows(bench: Bench, found: Findings) -> None:
    """Reads of several rows in turn, four vectors of each at a time: how many rows the hardware prefetcher follows at once."""
    if bench.lockstep:
        raise NotApplicable("the threads of a warp read rows together")
    lanes = 4 * bench.lanes
    width = ROW_BYTES // 4 + lanes  # rows that begin in different sets of a cache
    height = max(1, READ_BYTES // (4 * width * bench.cores) // ROWS[-1]) * ROWS[-1]
    points = []
    for together in ROWS:
        b, i, j = axes(b=bench.cores, i=height // together * together, j=width)
        X = input("X", float32, b, i, j)
        plan = in_blocks(schedule(define("S", sum(X[b, i, j], over=i), b, j)), b=1)
        plan = plan.split(i=together).split(j=lanes).accumulate(register).split(i=1).vectorize(j=lanes)
        seconds = found.time("rows in turn", together, bench.of_schedule(plan), 4.0 * bench.cores * i.extent * width).seconds
        points.append((float(together), 1e-9 / seconds))
    found.curve("read_bandwidth_of_rows", "rows", "gb_per_s", points, "sums of rows that are read in turn, all cores")
    best = max(speed for _, speed in points)
    fast = max(int(together) for together, speed in points if speed >= AS_FAST * best)
    found.rate("followed_rows", fast, f"the most rows in turn whose reads reach {AS_FAST:.0%} of the best bandwidth")


def near(bench: Bench, found: Findings) -> None:
    """One block with as many threads as allowed reads data that fits in the shared cache but not in a first-level cache."""
    known = dict(found.known)
    cycle, shared = cycle_ns(bench, found), known.get("l2_bytes")
    if not bench.lockstep or shared is None:
        raise NotApplicable(
            "a core's own caches are measured by footprints" if not bench.lockstep else "no cache of all is known"
        )
    threads = bench.profile.max_block_threads
    size = int(max(min(shared / 2, 4 * known.get("l1_bytes", 1 << 17)), 1 << 17))
    quads = size // 16 // (4 * threads) * 4 * threads
    run = bench.of_text(NEAR % {"threads": threads, "quads": quads}, 1, threads, [4 * threads, 16 * quads])
    seconds = found.time("one block", quads * 16, run, 16.0 * quads).seconds
    found.rate(
        "l2_of_a_core_gb_per_s", 1e-9 / seconds, "reads by one block with the maximum number of threads, from the shared cache"
    )
    if cycle is not None:
        found.rate("l2_bytes_per_cycle", cycle * 1e-9 / seconds, "the same, per clock cycle")
