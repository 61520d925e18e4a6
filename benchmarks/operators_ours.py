"""Our side of `benchmarks/operators.py`: schedules by construction, kernels over NumPy arrays in place, and what the machine can do."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tilelang as tl
from benchmarks.hand_written import copy_source
from benchmarks.harness import HostBench, aligned_array, launcher
from benchmarks.operators_cases import Operator
from benchmarks.operators_peers import Array, Arrays
from tilelang.autoschedule.common.complete import candidates as construction
from tilelang.autoschedule.common.construct import Candidate
from tilelang.autoschedule.common.prune import Pruning
from tilelang.autoschedule.common.task_accesses import nest_of
from tilelang.autoschedule.cpu.construct import cpu_candidates
from tilelang.autoschedule.cpu.device import cpu_device
from tilelang.computations.computation import as_computation
from tilelang.schedules.task import plan


@dataclasses.dataclass(frozen=True)
class Call:
    """Something to time. begin: starts the work once; finish: waits for all that was begun; side: whose threads do it."""

    name: str
    side: str
    begin: Callable[[], Any]
    finish: Callable[[], Any] = lambda: None


def candidates(operator: Operator, profile: tl.Profile) -> tuple[list[Candidate], Pruning, float]:
    """What construction finds for an operator, the best first, what it drops, and the seconds that it takes."""
    computation = as_computation(operator.computation())
    pruning = Pruning()
    start = time.perf_counter()
    found = construction(computation, profile, pruning)
    return found, pruning, time.perf_counter() - start


def estimated(operator: Operator, profile: tl.Profile) -> list[Candidate]:
    """All that construction looks at for an operator, the best by its estimate first."""
    computation = as_computation(operator.computation())
    (task,) = plan(computation, set())
    found = cpu_candidates(nest_of(task), cpu_device(profile))
    return [Candidate(computation, made.steps, made.estimate) for made in found]


def launched(kernel: tl.Kernel, arrays: Arrays, name: str, out: Array, who: str = "ours") -> Call:
    """A kernel over arrays, its result, named so in the computation, into `out`."""
    return Call(who, "ours", *launcher(kernel, arrays | {name: out}, (name,)))


def called(kernel: tl.Kernel, arrays: Arrays, out: Array) -> Call:
    """The same as its user writes it: NumPy's arrays in, the result in one, finished when the call returns."""
    inputs = [arrays[tensor.name] for tensor in kernel.computation.inputs]
    return Call("called", "ours", lambda: kernel(*inputs, out=out))


# ---------------------------------------------------------------- the machine

PEAK = """\
typedef float vec __attribute__((ext_vector_type({lanes})));
static inline __attribute__((always_inline)) void kernel_block(float* Y, float* local, const long long* block) {{
  const vec x = (vec)(Y[0]), y = (vec)(Y[1]);
  {begin}
  for (int i = 0; i < {rounds}; i++) {{ {step} }}
  vec s = {end};
  Y[2 + block[0]] = s.s0;
}}"""
ACCUMULATORS, ROUNDS = 10, 200_000


def limits(target: tl.Target, repeats: int = 5) -> dict[str, float]:
    """The machine's own limits, as C reaches them on all its threads: bytes of a streaming copy (both ways), multiply-adds."""
    bench = HostBench()
    cores, lanes = bench.device.compute_units, max(target.profile.vector_bytes) // 4
    x, y = aligned_array((2048, 4096)), aligned_array((2048, 4096))
    x[...] = 1  # else it is one page of zeros, seen many times
    copy = bench.launch(copy_source(4096), (x.shape[0] // 8,), [x, y])
    each = range(ACCUMULATORS)
    source = PEAK.format(
        lanes=lanes, rounds=ROUNDS, begin=" ".join(f"vec a{i} = (vec)({i}.0f);" for i in each),
        step=" ".join(f"a{i} = a{i} * x + y;" for i in each), end=" + ".join(f"a{i}" for i in each),
    )  # fmt: skip
    peak = bench.launch(source, (4 * cores,), [x])
    flops = 2.0 * 4 * cores * ROUNDS * ACCUMULATORS * lanes
    return {
        "copy_gb_per_s": round(2e-9 * x.nbytes / best(copy, repeats), 1),
        "peak_gflops": round(1e-9 * flops / best(peak, repeats), 1),
    }


def best(run: Callable[[], None], repeats: int) -> float:
    """The shortest of a kernel's times in seconds."""
    found = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return min(found[1:])


# ---------------------------------------------------------------- times

SAMPLE_S, MOST = 4e-3, 40  # of a turn, each way
WARM_S = 0.02  # of calls before those that are timed: after a pause the first ones take up to a sixth longer
SLOW_S = 1.0  # a call that takes longer is a turn by itself, and the contestant's only one


def turn(call: Call) -> tuple[float, float]:
    """One turn of a contestant after calls that are not timed: seconds of a call by itself (the median of some), and of one of as
    many that are begun without waiting for the one before."""
    begun, calls = time.perf_counter(), 0
    while calls < 2 or time.perf_counter() - begun < WARM_S:
        once, calls = clocked(call, 1), calls + 1
        if once >= SLOW_S:
            return once, once
    count = max(1, min(MOST, round(SAMPLE_S / once)))
    return statistics.median(clocked(call, 1) for _ in range(count)), clocked(call, count)


def clocked(call: Call, count: int) -> float:
    """Seconds of each of some calls in a row."""
    start = time.perf_counter()
    for _ in range(count):
        call.begin()
    call.finish()
    return (time.perf_counter() - start) / count


def compare(calls: list[Call], rounds: int, pause_s: float = 0.25) -> dict[str, tuple[float, float]]:
    """The medians of all contestants' turns, who take turns round after round, with a pause at each change of sides."""
    found: dict[str, list[tuple[float, float]]] = {call.name: [] for call in calls}
    side = ""
    for _ in range(rounds):
        for call in calls:
            if any(once >= SLOW_S for once, _ in found[call.name]):
                continue
            if call.side != side:
                time.sleep(pause_s)
                side = call.side
            found[call.name].append(turn(call))
    return {name: (float(np.median([a for a, _ in t])), float(np.median([b for _, b in t]))) for name, t in found.items()}
