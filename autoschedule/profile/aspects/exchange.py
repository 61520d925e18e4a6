"""Communication between threads: atomic additions, and warp shuffles."""

from __future__ import annotations

from tilelang.autoschedule.profile.aspects.shapes import cycle_ns, several_threads
from tilelang.autoschedule.profile.bench import Bench
from tilelang.autoschedule.profile.findings import Findings, NotApplicable
from tilelang.instructions.instruction import known

TIMES = 16
ATOMICS = """
KERNEL(probe, %(threads)d)(GLOBAL const int *rounds, GLOBAL int *out) {
  %(room)s
  int at = %(place)s;
  for (int r = 0; r < rounds[0]; ++r)
    for (int k = 0; k < %(times)d; ++k) ATOMIC_ADD(&room[at], r + k);
%(end)s
}"""
IN_GLOBAL = {"room": "GLOBAL int *room = out;", "end": ""}
IN_LOCAL = {
    "room": "LOCAL_ARRAY(int, room, %(places)d);\n  for (int i = THREAD; i < %(places)d; i += %(threads)d) room[i] = 0;\n  BARRIER;",
    "end": "  BARRIER;\n  if (THREAD == 0) out[BLOCK] = room[0];",
}
SHUFFLES = """
KERNEL(probe, %(threads)d)(GLOBAL const int *rounds, GLOBAL float *out) {
  float x[%(chains)d];
#pragma unroll
  for (int k = 0; k < %(chains)d; ++k) x[k] = (float)(THREAD + k);
  for (int r = 0; r < rounds[0]; ++r)
#pragma unroll
    for (int u = 0; u < %(times)d; ++u) {
#pragma unroll
      for (int k = 0; k < %(chains)d; ++k) x[k] = shuffle_xor<%(distance)d>(x[k]);
    }
  for (int k = 1; k < %(chains)d; ++k) x[0] += x[k];
  out[BLOCK * %(threads)d + THREAD] = x[0];
}"""
CHAINS = 4


def atomics(bench: Bench, found: Findings) -> None:
    """Atomic additions in global memory to one address by all threads, to separate addresses, and to addresses that a few
    threads share; then in local memory."""
    several_threads(bench)
    threads = min(64, bench.profile.max_block_threads)
    blocks = bench.cores * (8 if bench.lockstep else 1)
    every, points = threads * blocks, []
    for places in sorted({1, 4, 32, every}):
        place = f"(BLOCK * {threads} + THREAD) % {places}" + (" * 16" if places <= 32 else "")  # a line each
        text = ATOMICS % {"threads": threads, "times": TIMES, "place": place, **IN_GLOBAL}
        run = bench.of_text(text, blocks, threads, [4 * max(every, 16 * 32)])
        points.append((float(places), found.time("atomics", places, run, TIMES * every).seconds * 1e9))
    found.curve(
        "atomics", "places", "ns", points, "an atomic addition, if the threads of all blocks add to that many places in turn"
    )
    found.rate("atomic_ns", points[-1][1], "an atomic addition, if every thread adds to its own place")
    found.rate("contended_atomic_ns", points[0][1], "an atomic addition, if all threads add to one place")
    for name, places in (("local_atomic_ns", threads), ("contended_local_atomic_ns", 1)):
        made = {"threads": threads, "places": places}
        parts = {key: text % made for key, text in IN_LOCAL.items()}
        text = ATOMICS % (made | parts | {"times": TIMES, "place": f"THREAD % {places}"})
        run = bench.of_text(text, blocks, threads, [4 * blocks], 4 * places)
        seconds = found.time("local atomics", places, run, TIMES * threads * blocks / bench.cores).seconds
        found.rate(name, seconds * 1e9, f"an atomic addition on one core, to {places} places per block in local memory")


def shuffles(bench: Bench, found: Findings) -> None:
    """Shuffles between neighbouring lanes, and across a warp: dependent ones, and as many independent ones as possible."""
    dialect, warp = bench.device.driver, bench.profile.warp_size
    every = {
        i.name: i for i in known() if i.definitions_in(dialect) and i.lanes == warp and not i.unavailable(bench.profile, dialect)
    }
    near, far = (every.get(_name(distance, warp)) for distance in (1, warp // 2))
    if near is None or far is None:
        raise NotApplicable(f"{dialect} has no words here for values from lane to lane of {warp}")
    threads, cycle = min(1024, bench.profile.max_block_threads), cycle_ns(bench, found)
    for name, made, distance in (("neighbours", near, 1), ("lanes", far, warp // 2)):
        words = "".join(made.definitions_in(dialect))
        alone = _shuffled(bench, found, words, distance, warp, 1)
        many = _shuffled(bench, found, words, distance, threads, CHAINS)
        found.rate(f"{name}_shuffle_latency_ns", alone * 1e9, f"a shuffle across {distance} lanes that depends on the one before")
        found.rate(
            f"{name}_shuffle_ns",
            many * 1e9,
            f"a shuffle across {distance} lanes, on an otherwise idle core",
        )
        if cycle is not None:
            found.rate(f"{name}_shuffle_cycles", many * 1e9 / cycle, "the same, in cycles of the clock")


def _name(distance: int, lanes: int) -> str:
    return f"shuffle_xor_{distance}" + ("" if lanes == 32 else f"_of_{lanes}_lanes")


def _shuffled(bench: Bench, found: Findings, words: str, distance: int, threads: int, chains: int) -> float:
    """Seconds per shuffle of a warp, on its core."""
    made = {"threads": threads, "chains": chains, "times": TIMES, "distance": distance}
    run = bench.of_text(words + SHUFFLES % made, bench.cores, threads, [4 * threads * bench.cores])
    return found.time(f"shuffles by {distance}", threads, run, TIMES * chains * threads / bench.profile.warp_size).seconds
