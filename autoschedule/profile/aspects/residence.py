"""How much a core holds at once (occupancy): blocks, threads, shared memory, registers; and how much a thread keeps before it
spills.

Blocks that wait for memory take no longer when more of them wait at the same time, until a core has no room for one more: then
the last ones run after the others, and the time doubles.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tilelang.autoschedule.profile.aspects.latency import line_elements, walk
from tilelang.autoschedule.profile.aspects.shapes import count, several_threads
from tilelang.autoschedule.profile.bench import Bench
from tilelang.autoschedule.profile.findings import Findings
from tilelang.autoschedule.profile.steps import at_once, end_of_floor

WALKED_BYTES = 1 << 20  # larger than a first-level cache, smaller than the last cache
STEPS = 64
# Each block chases pointers; meanwhile it keeps values, which it uses now and then, and shared memory.
WAITING = """
KERNEL(probe, %(threads)d)(GLOBAL const int *rounds, GLOBAL const int *next, GLOBAL float *out) {
  LOCAL_ARRAY(int, room, %(words)d);
  float x[%(values)d];
#pragma unroll
  for (int k = 0; k < %(values)d; ++k) x[k] = (float)(k + THREAD);
  int at = BLOCK %% %(places)d * %(line)d;
  if (THREAD == 0) room[0] = at;
  for (int r = 0; r < rounds[0]; ++r) {
    for (int k = 0; k < %(steps)d; ++k) at = next[at];
    if (r %% 16 == 15) {
#pragma unroll
      for (int k = 0; k < %(values)d; ++k) x[k] = x[k] * 0.999f + (float)at;
    }
  }
  for (int k = 1; k < %(values)d; ++k) x[0] += x[k];
  if (THREAD == 0) x[0] += (float)room[0];
  out[BLOCK * %(threads)d + THREAD] = x[0];
}"""
MOST_BLOCKS = 64  # per core
BLOCK_THREADS = 256
HELD = (32, 48, 64, 96, 128, 192)  # values per thread, for which the threads of a core are counted
SHARES = (0.25, 0.4, 0.5, 0.65, 0.75, 0.85, 0.95, 1.05, 1.2, 1.4, 1.6)  # of the registers per thread in the profile
UNIT_BYTES = 1024  # the precision to which the shared memory of a core is found
RING = """
KERNEL(probe, %(threads)d)(GLOBAL const int *rounds, GLOBAL WIDE *out) {
  WIDE a = WIDE_OF(0.999f), x[%(values)d];
#pragma unroll
  for (int k = 0; k < %(values)d; ++k) x[k] = WIDE_OF((float)(k + THREAD));
  for (int r = 0; r < rounds[0]; ++r) {
    WIDE first = x[0];
#pragma unroll
    for (int k = 0; k < %(values)d - 1; ++k) x[k] = x[k] * a + x[k + 1];
    x[%(values)d - 1] = x[%(values)d - 1] * a + first;
  }
  WIDE all = x[0];
#pragma unroll
  for (int k = 1; k < %(values)d; ++k) all += x[k];
  out[BLOCK * %(threads)d + THREAD] = all;
}"""


def residents(bench: Bench, found: Findings) -> None:
    """The number of blocks that a core holds at once: of few threads, of many threads, and with little or much shared memory."""
    several_threads(bench)
    if not bench.lockstep:
        count(
            bench, found, "rates.core_blocks", _blocks(bench, found, 1), "the most blocks of a core that wait no longer than one"
        )
        return
    few = _blocks(bench, found, bench.profile.warp_size)
    count(
        bench, found, "rates.core_blocks", few, "the maximum number of blocks of one warp per core that wait no longer than one"
    )
    threads = min(BLOCK_THREADS, bench.profile.max_block_threads)
    many = _blocks(bench, found, threads)
    if many < min(few, MOST_BLOCKS):
        how = f"the maximum number of blocks of {threads} threads per core that wait no longer than one"
        count(bench, found, "rates.core_threads", many * threads, how)
    room = bench.profile.memory("shared").capacity_bytes
    if room is not None:
        how = "the maximum shared memory of the blocks of a core that wait no longer than one"
        count(bench, found, "rates.core_shared_bytes", _shared(bench, found, room, few), how)


def _blocks(bench: Bench, found: Findings, threads: int, values: int = 1, shared_bytes: int = 0) -> int:
    """The greatest number of blocks that a core holds at once."""
    return at_once(_waits(bench, found, threads, values, shared_bytes), MOST_BLOCKS)


def _waits(bench: Bench, found: Findings, threads: int, values: int = 1, shared_bytes: int = 0) -> Callable[[int], float]:
    """The time as a function of the number of blocks per core."""
    import numpy as np  # late: NumPy takes long to import

    line = line_elements(bench)
    places = np.arange(0, WALKED_BYTES // 4, line)
    made = {"threads": threads, "values": values, "words": max(1, shared_bytes // 4), "places": len(places), "line": line}
    path = walk(places, WALKED_BYTES // 4)
    known: dict[int, float] = {}

    def seconds(each: int) -> float:
        if each not in known:
            blocks, room = each * bench.cores, max(4, shared_bytes)
            run = bench.of_text(WAITING % (made | {"steps": STEPS}), blocks, threads, [path, 4 * blocks * threads], room)
            series = f"blocks of {threads} threads, {values} values, {shared_bytes} bytes"
            known[each] = found.time(series, each, run, STEPS, rounds=16).seconds
        return known[each]

    return seconds


def _shared(bench: Bench, found: Findings, room: int, most: int) -> int:
    """The shared memory of a core. If n blocks of the largest size fit, finds the largest size at which n + 1 blocks fit."""
    threads = bench.profile.warp_size
    whole = _blocks(bench, found, threads, 1, room)
    if whole >= most:
        return whole * room
    alone = _waits(bench, found, threads)(1)
    low, high = whole * room // (whole + 1) // UNIT_BYTES, -(-room // UNIT_BYTES)
    while high - low > 1:
        middle = (low + high) // 2
        fits = _waits(bench, found, threads, 1, middle * UNIT_BYTES)(whole + 1) < 1.5 * alone
        low, high = (middle, high) if fits else (low, middle)
    return max(whole * room, (whole + 1) * low * UNIT_BYTES)


def registers(bench: Bench, found: Findings) -> None:
    """Updates a growing number of values per thread, one after another: an update takes longer once a value has no register.

    On a GPU, then also counts the threads that a core holds with this many values each.
    """
    lanes, threads = (1, bench.profile.warp_size) if bench.lockstep else (bench.text_lanes, 1)
    ring = RING.replace("WIDE_OF", "(float)").replace("WIDE", "float") if bench.lockstep else RING
    known = bench.profile.registers_per_thread // lanes
    counts = sorted({max(4, round(known * share)) for share in SHARES})
    points = []
    for values in counts:
        run = bench.of_text(
            ring % {"threads": threads, "values": values}, bench.cores, threads, [4 * lanes * threads * bench.cores]
        )
        points.append((float(values), found.time("values", values, run, values).seconds * 1e9))
    found.curve("values_of_a_thread", "values", "ns", points, "per update, if a thread updates that many values in turn")
    kept = end_of_floor(points)
    if kept is not None:
        how = f"the maximum number of values of {lanes} lanes that a thread keeps without slower updates"
        found.rate("unspilled_registers", kept * lanes, how)
    if bench.lockstep:
        _pool(bench, found, kept or math.inf)


def _pool(bench: Bench, found: Findings, kept: float) -> None:
    """The threads of a core that keep growing numbers of values: fewer threads if all take registers from one pool."""
    threads, points = min(BLOCK_THREADS, bench.profile.max_block_threads), []
    for values in (n for n in HELD if n <= kept):
        points.append((float(values), float(threads * _blocks(bench, found, threads, values))))
    found.curve(
        "core_threads_of_values", "values", "threads", points, "resident threads of a core if each keeps that many values"
    )
    several = [x * y for x, y in points if y > threads]  # a single block does not show that it fits
    if pooled(points) and several:
        how = "the maximum number of values that the threads of a core keep, with several blocks"
        count(bench, found, "rates.core_registers", int(max(several)), how)


def pooled(points: list[tuple[float, float]]) -> bool:
    """Whether threads with more values are fewer: then they take registers from one pool; otherwise each has its own.

    >>> pooled([(32, 2048), (64, 1024), (128, 512)]), pooled([(32, 768), (64, 768)])
    (True, False)
    """
    return len(points) > 1 and points[-1][1] * 1.5 <= points[0][1]
