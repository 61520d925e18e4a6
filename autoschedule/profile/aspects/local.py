"""Local memory: its bandwidth, whether that exceeds a buffer in the nearest cache, and its banks.

Every thread of a block reads words at a fixed distance from its neighbour's. The block's position changes from one iteration to
the next, so that no value is read once and kept.
"""

from __future__ import annotations

import statistics

from tilelang.autoschedule.profile.aspects.shapes import QUAD, count, several_threads
from tilelang.autoschedule.profile.bench import Bench
from tilelang.autoschedule.profile.findings import Findings, NotApplicable
from tilelang.autoschedule.profile.steps import Points, banks

READS = 16
ACCESSES = {1: ("float", ""), 2: ("PAIR", "SUM_2"), 4: ("QUAD", "SUM_4")}  # floats per access: type, and macro for their sum
LOCAL_READS = """
KERNEL(probe, %(threads)d)(GLOBAL const int *rounds, GLOBAL float *out, GLOBAL float *given) {
  %(room)s
  for (int i = THREAD; i < %(words)d; i += %(threads)d) room[i] = (float)i;
  BARRIER;
  const %(space)s %(type)s *from = (const %(space)s %(type)s *)room;
  float all = 0.0f, also = 0.0f;
  for (int r = 0; r < rounds[0]; ++r) {
    int at = (THREAD * %(stride)d + r) & (%(places)d - 1);
#pragma unroll
    for (int k = 0; k < %(reads)d; k += 2) {
      %(type)s one = from[at + k * %(apart)d], two = from[at + k * %(apart)d + %(apart)d];
      all += %(sum)s(one);
      also += %(sum)s(two);
    }
  }
  out[BLOCK * %(threads)d + THREAD] = all + also;
}"""
IN_LOCAL = "LOCAL_ARRAY(float, room, %d);"
IN_BUFFER = "GLOBAL float *room = given + (long)BLOCK * %d;"
STATIC_BYTES = 32768
STRIDES = (1, 2, 4, 8, 16, 32, 64, 128)
BLOCKS_OF_A_CORE = 4


def local(bench: Bench, found: Findings) -> None:
    """Reads of local memory and of an equally large buffer, over a block's footprint; then by width of access; then by stride,
    to find the banks."""
    several_threads(bench)
    room = min(bench.profile.memory("shared").capacity_bytes or STATIC_BYTES, bench.device.shared_bytes, STATIC_BYTES)
    if room < 4096:
        raise NotApplicable(f"a block has {room} bytes of local memory")
    own, cached = list[tuple[float, float]](), list[tuple[float, float]]()
    for size in (n for n in (2048, 4096, 8192, 16384, 32768) if n <= room):
        own.append((float(size), _read(bench, found, "local", size)))
        cached.append((float(size), _read(bench, found, "buffer", size)))
    found.curve("shared_bandwidth", "footprint_bytes", "gb_per_s", own, "reads of local memory by all blocks")
    found.curve("cached_bandwidth", "footprint_bytes", "gb_per_s", cached, "the same reads of each block's own buffer")
    found.rate(
        "shared_reads_ratio",
        gain(own, cached),
        "bandwidth of local memory relative to a buffer of the same size; 1 if it is no faster",
    )
    widths = [(4.0 * n, _read(bench, found, "width", room // 2, n)) for n in ACCESSES]
    found.curve("shared_bandwidth_of_width", "access_bytes", "gb_per_s", widths, "contiguous reads of local memory")
    if bench.lockstep:
        found.rate("shared_gb_per_s", max(y for _, y in (*own, *widths)), "the highest bandwidth of reads of local memory")
    _banks(bench, found, room)


def gain(own: Points, cached: Points) -> float:
    """How much faster local memory is than a buffer of the same size, as the median over all sizes; about 1 if it is ordinary
    memory.

    >>> gain([(1, 10.0), (2, 10.0), (4, 9.0)], [(1, 9.9), (2, 10.0), (4, 9.2)])
    1.0
    """
    buffers = dict(cached)
    return statistics.median(y / buffers[x] for x, y in own if x in buffers)


def _read(bench: Bench, found: Findings, series: str, size: int, floats: int = QUAD, stride: int = 1) -> float:
    """GB/s of all blocks."""
    threads = min(256, bench.profile.max_block_threads) if bench.lockstep else 1
    blocks = bench.cores * (BLOCKS_OF_A_CORE if bench.lockstep else 1)
    text = reads(threads, size, floats, stride, series != "buffer")
    shared = size if series != "buffer" else 0
    run = bench.of_text(text, blocks, threads, [4 * threads * blocks, blocks * size], shared)
    moved = READS * 4.0 * floats * threads * blocks
    return moved * 1e-9 / found.time(series, size if stride == 1 else stride, run).seconds


def reads(threads: int, size: int, floats: int, stride: int, in_local: bool) -> str:
    """The source text of such reads: an iteration begins in one half of the footprint, and its reads continue from there over
    the other half."""
    words = size // 4
    kind, added = ACCESSES[floats]
    places = words // floats // 2
    return LOCAL_READS % {
        "threads": threads, "words": words, "type": kind, "sum": added, "stride": stride, "places": places, "reads": READS,
        "apart": places // READS, "space": "LOCAL" if in_local else "GLOBAL", "room": (IN_LOCAL if in_local else IN_BUFFER) % words,
    }  # fmt: skip


def _banks(bench: Bench, found: Findings, room: int) -> None:
    """Strides that are powers of two: from the stride on at which a longer one costs no more, all lanes access one bank."""
    threads = min(256, bench.profile.max_block_threads)
    blocks, points = bench.cores * (BLOCKS_OF_A_CORE if bench.lockstep else 1), []
    for stride in STRIDES:
        run = bench.of_text(reads(threads, room, 1, stride, True), blocks, threads, [4 * threads * blocks, 4], room)
        each = found.time("stride", stride, run, READS * threads * blocks / bench.cores).seconds
        points.append((float(stride), each * 1e9))
    how = f"a read of local memory by each of {threads} threads of a block, that many words apart"
    found.curve("shared_strides", "stride_words", "ns", points, how)
    if bench.lockstep and (counted := banks(points)) is not None:
        how = "the stride in words beyond which longer strides cost no more"
        count(bench, found, "memories.shared.banks", counted, how)
