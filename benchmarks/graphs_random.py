"""Random graphs, cut into kernels in random ways and as the planner cuts them, for every profile: simulated against the reference.

    python benchmarks/graphs_random.py [--seeds 0-300] [--profiles sapphire_rapids,ampere] [--cuts 2]

A graph has 3 to 10 definitions of `tilelang.testing.networks`. For each profile it gets the schedule that is constructed for it, and
one for each of some random sets of definitions in memory, which need not be good. Each is printed and read back, lowered, and
simulated; what its threads write and read must be what its steps say, and the results what the reference gives. Prints what is wrong,
with the seed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `python benchmarks/graphs_random.py` from anywhere

import tilelang as tl
from tilelang import testing
from tilelang.autoschedule.common.complete import in_order
from tilelang.autoschedule.common.partition import Partition, choices, steps_of
from tilelang.autoschedule.models import model_of
from tilelang.computations.computation import Computation, as_computation
from tilelang.profiles.files import shipped_profiles
from tilelang.schedules.schedule import Schedule
from tilelang.testing.choice import Seeded
from tilelang.testing.networks import draw_network, network

STAGES = (3, 10)


def drawn(seed: int) -> Computation | None:
    """A random graph; None where what was drawn is not a valid computation."""
    try:
        return as_computation(network(**draw_network(Seeded(seed), STAGES)))
    except tl.TileLangError:
        return None


def schedules(computation: Computation, profile: tl.Profile, seed: int, cuts: int) -> Iterator[Schedule]:
    """The constructed schedule of a graph, and one for each of some random cuts that the device has kernels for."""
    first = next(in_order(computation, profile), None)
    if first is None:
        return
    yield first.schedule
    source, among = Seeded(seed), choices(computation)
    for _ in range(cuts if among else 0):
        partition = Partition(computation, profile, model_of(profile))
        cut = partition.always | {t for t in among if source.chance(50)}
        kernels = [k for part in partition.parts(frozenset(cut)) if (k := partition.scheduled(part)) is not None]
        if len(kernels) == len(partition.parts(frozenset(cut))):
            yield Schedule(computation, steps_of(kernels))


def faults(schedule: Schedule, profile: tl.Profile) -> list[str] | None:
    """What is wrong with a schedule; None where the device refuses it."""
    read = tl.parse(f"{schedule.computation.text}\n{schedule}").schedule()
    if [*map(repr, read.steps)] != [*map(repr, schedule.steps)]:  # reads in them are of the computation that was read
        return [f"read back it has other steps: {read}"]
    try:
        testing.lowered(schedule, profile)
    except tl.Refusal:
        return None
    return testing.check_schedule(schedule, testing.arrays(schedule.computation), profile=profile)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the campaign. 1: something is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", default="0-300", help="the first and the one after the last")
    parser.add_argument("--profiles", default=",".join(shipped_profiles()))
    parser.add_argument("--cuts", type=int, default=2, help="random cuts of each graph and profile")
    given = parser.parse_args(arguments)
    begin, end = map(int, given.seeds.split("-"))
    counts = {"graphs": 0, "schedules": 0, "refused": 0, "wrong": 0}
    for seed in range(begin, end):
        computation = drawn(seed)
        if computation is None:
            continue
        counts["graphs"] += 1
        for name in given.profiles.split(","):
            profile = tl.load_profile(name)
            for schedule in schedules(computation, profile, seed, given.cuts):
                counts["schedules"] += 1
                found = faults(schedule, profile)
                counts["refused"] += found is None
                if found:
                    counts["wrong"] += 1
                    print(f"seed {seed}, {name}:\n{schedule.computation.text}\n{schedule}\n" + "\n".join(found), flush=True)
        if seed % 20 == 19:
            print(f"up to seed {seed}: {counts}", flush=True)
    print(counts)
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
