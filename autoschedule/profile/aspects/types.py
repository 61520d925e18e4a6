"""Multiply-adds of other types than float32, and the number of them that takes as long as one instruction of the special
function unit.
"""

from __future__ import annotations

from tilelang.autoschedule.profile.aspects.arithmetic import ACCUMULATORS, PEAK, UNROLLED
from tilelang.autoschedule.profile.aspects.shapes import count
from tilelang.autoschedule.profile.bench import Bench
from tilelang.autoschedule.profile.findings import Findings, NotApplicable

# By type: its name in each dialect, its bytes, the OpenCL C extension that provides it, and the CPU features that do:
# CPUs without one convert such numbers to floats and back. No features: every CPU has it.
TYPES: dict[str, tuple[dict[str, str], int, str, frozenset[str]]] = {
    "float64": ({"opencl": "double", "cuda": "double", "hip": "double", "cpu": "double"}, 8, "cl_khr_fp64", frozenset()),
    "float16": (
        {"opencl": "half", "hip": "_Float16", "cpu": "half"},
        2,
        "cl_khr_fp16",
        frozenset({"avx512_fp16", "asimdhp", "FEAT_FP16"}),
    ),
}
SPECIALS = PEAK.replace("x[k] = x[k] * a + a", "x[k] = SPECIAL(x[k])")
SAMPLES = 3  # a peak is the best of several


def types(bench: Bench, found: Findings) -> None:
    """Chains in registers, as for float32: doubles, and halves if the dialect has a name for them; then special functions."""
    for name, (words, size, extension, features) in TYPES.items():
        if (word := words.get(bench.device.driver)) is not None and _has(bench, extension, features):
            rate = _rate(bench, found, name, word, size, extension)
            found.rate(f"{name}_gflops", rate, f"chains of multiply-adds of {name}, the fastest repeat")
    if bench.lockstep:
        plain, special = (_seconds(bench, found, name, text) for name, text in (("plain", PEAK), ("special", SPECIALS)))
        how = "time of an inverse square root relative to a multiply-add"
        count(bench, found, "rates.special_instructions", max(1.0, special / plain), how)
    if not found.rows:
        raise NotApplicable("the dialect has no other type of floats here")


def _has(bench: Bench, extension: str, features: frozenset[str]) -> bool:
    """Whether the device computes in a type."""
    if bench.device.driver == "opencl":
        return extension in bench.extensions
    return bench.device.driver != "cpu" or not features or bool(features & bench.extensions)


def _rate(bench: Bench, found: Findings, name: str, word: str, size: int, extension: str) -> float:
    """The greatest GFLOP/s of multiply-adds of a type."""
    lanes = min(4 * bench.text_lanes // size, bench.profile.max_vector_lanes) if bench.text_lanes > 1 else 1
    wide = f"{word}{lanes}" if lanes > 1 else word
    text = PEAK.replace("WIDE_OF", "VECTOR_OF").replace("WIDE", wide).replace("VECTOR_OF((float)", f"VECTOR_OF(({word})")
    head = f"#define VECTOR_OF(value) (({wide})(value))\n"
    if bench.device.driver == "opencl":
        head += f"#pragma OPENCL EXTENSION {extension} : enable\n"
    if word == "half" and bench.device.driver == "cpu":
        head += f"typedef _Float16 half;\ntypedef half {wide} __attribute__((ext_vector_type({lanes})));\n"
    return 2.0e-9 * lanes / min(_seconds(bench, found, name, head + text, size * lanes) for _ in range(SAMPLES))


def _seconds(bench: Bench, found: Findings, name: str, text: str, size: int | None = None) -> float:
    """The best time per operation, over all threads of all cores. size: bytes of a thread's result."""
    threads, blocks = bench.threads, bench.cores * (8 if bench.lockstep else 1)
    made = {"threads": threads, "chains": ACCUMULATORS, "unrolled": UNROLLED}
    run = bench.of_text(text % made, blocks, threads, [(size or 4 * bench.text_lanes) * threads * blocks])
    return found.time(name, 1, run, UNROLLED * ACCUMULATORS * threads * blocks).best
