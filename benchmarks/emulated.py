"""CUDA and HIP text on this processor, the large run: larger than the tests' sizes, more schedules, every barrier and wait left out.

    python benchmarks/emulated.py [--parts examples waits random] [--seconds 1200] [--json benchmarks/results/emulated.json]

Three parts: every example's schedules for threads, and those for matrix units, at sizes of many blocks, in three orders of turns and of
landing; random computations and schedules; every text of an example with one barrier, wait or end of a group left out,
which must be told or give a wrong result. Prints a table; exit status 1 where something is wrong or nobody missed a barrier. Needs the
compilers' wheels (`pip install 'tilelang-rtile[compilers]'`), no GPU. It says nothing of speed on one.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tilelang as tl
from tests.emulation.test_examples import HOW, WAITS, ampere, hopper, matrix_units
from tests.test_examples import NAMES, SIZES, for_threads, schedules_for
from tilelang import testing
from tilelang.errors import DeviceError, Refusal
from tilelang.runtime.kernel import Kernel
from tilelang.semantics.reference import compare, random_arrays
from tilelang.testing import emulation

PARTS = ("examples", "waits", "random")
PROFILES = (("cuda", "ampere"), ("cuda", "hopper"), ("hip", "cdna2"), ("hip", "rdna3"))
LARGE: dict[str, tuple[int, ...]] = {
    "01_matmul": (200, 170, 130),
    "02_batched_gelu": (3, 70, 90, 50),
    "03_implicit_gemm": (2, 14, 17, 19, 3, 1, 1),
    "04_direct_convolution": (2, 13, 14, 40),
    "05_depthwise": (3, 20, 60),
    "06_row_sum": (70, 900),
    "07_split_reduction": (20, 3000),
    "08_softmax": (40, 500),
    "09_layer_norm": (40, 500),
    "10_argmax": (40, 500),
    "11_transpose": (200, 170),
    "12_embedding_bag": (60, 100, 20, 9),
    "13_causal_product": (60, 90),
    "14_own_instruction": (40, 80, 30),
    "18_online_softmax": (40, 90, 20),
}
PRODUCTS = [(512, 384, 256), (264, 520, 200)]


def kernels(sizes: dict[str, tuple[int, ...]]) -> Iterator[tuple[str, Kernel]]:
    """Every example's kernels for threads on every profile that takes them, with a name."""
    for dialect, profile in PROFILES:
        target = tl.target(dialect, profile=profile)
        for name in sizes:
            for key, schedule in schedules_for(name, sizes[name], target.profile).items():
                if for_threads(schedule):
                    yield f"{name}.{key} {dialect} {profile}", tl.compile(schedule, target)
    for name, make in matrix_units().items():
        schedule, target = make()
        yield f"15_matrix_units.{name}", tl.compile(schedule, target)
    for size in PRODUCTS if sizes is LARGE else [(128, 128, 160)]:
        yield f"01_matmul.gemm_ampere {size}", ampere(*size)
        yield f"01_matmul.gemm_hopper {size}", hopper(size[0], 2 * size[1], 2 * size[2])


def run_examples(counts: Counter[str]) -> Iterator[str]:
    """The faults of the examples at large sizes."""
    for name, kernel in kernels(LARGE):
        for how in HOW:
            counts["runs of examples"] += 1
            try:
                report = emulation.check(kernel, **how)
            except emulation.EmulationFault as fault:
                yield f"{name} {how}: {fault}"
                continue
            if not report:
                yield f"{name} {how}: {report}"


def run_cases(count: int, seconds: float, counts: Counter[str]) -> Iterator[str]:
    """The faults of random schedules, until the time is over."""
    end = time.monotonic() + seconds
    for number in range(count):
        if time.monotonic() > end:
            return
        counts["random schedules drawn"] += 1
        try:
            case = testing.draw_case(testing.Seeded(number))
            program = testing.lowered(case.schedule)
        except Refusal:
            continue
        expected = testing.Expected(case.computation, case.arrays(), case.exact, case.schedule.error_ulps)
        for dialect in ("cuda", "hip"):
            counts["runs of random schedules"] += 1
            try:
                results = emulation.run_program(program, dialect, expected.arrays, turns=number, landing=number)
                yield from (f"case {number}: {fault}" for fault in expected.faults(results, dialect))
            except DeviceError as error:
                if error.code != "no-function":  # of 64-bit floats
                    yield f"case {number}, {dialect}: {error}"


def run_mutants(counts: Counter[str]) -> Iterator[str]:
    """What nobody misses, of the barriers, waits and ends of groups in the examples' texts."""
    for name, kernel in kernels({name: SIZES[name][0] for name in NAMES}):
        arrays = random_arrays(kernel.computation)
        for place in WAITS.finditer(kernel.source):
            counts["texts without a barrier or wait"] += 1
            noticed = _noticed(kernel, arrays, kernel.source[: place.start()] + kernel.source[place.end() :])
            if noticed is None:
                yield f"{name}: nobody misses {place[0].strip()[:60]}"
            else:
                counts[noticed] += 1


def _noticed(kernel: Kernel, arrays: dict[str, Any], source: str) -> str | None:
    """How a wrong text shows, in one order of turns or the other; None where it does not."""
    for turns in ("ascending", "descending"):
        try:
            found = emulation.run_kernel(kernel, arrays, source, turns=turns)
        except emulation.EmulationFault:
            return "  told"
        if not compare(kernel.computation, arrays, found, error_ulps=kernel.schedule.error_ulps):
            return "  wrong results"
    return None


def main(arguments: list[str] | None = None) -> int:
    """Runs all three parts and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=400, help="random schedules that are drawn")
    parser.add_argument("--seconds", type=float, default=1200, help="after which no more are drawn")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args(arguments)
    if emulation.absent() is not None:
        print(emulation.absent())
        return 1
    start, counts, faults = time.monotonic(), Counter[str](), list[str]()
    parts = {
        "examples": lambda: run_examples(counts),
        "waits": lambda: run_mutants(counts),
        "random": lambda: run_cases(chosen.cases, chosen.seconds, counts),
    }
    for part in chosen.parts:
        for fault in parts[part]():
            print(fault, flush=True)
            faults.append(fault)
    for what, count in counts.items():
        print(f"{what:40} {count:6}")
    print(f"{'faults':40} {len(faults):6}   in {time.monotonic() - start:.0f} s")
    if chosen.json is not None:
        about = {"date": time.strftime("%Y-%m-%d"), "python": platform.python_version(), "machine": platform.machine()}
        chosen.json.write_text(json.dumps({**about, "counts": counts, "faults": faults}, indent=1) + "\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
