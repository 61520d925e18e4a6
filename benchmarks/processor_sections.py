"""The sections of `benchmarks/processor.py`: each a function that measures and gives rows, one after the other."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tilelang as tl
from benchmarks import (
    call_overhead,
    cold_start,
    hand_written,
    operators_cases,
    operators_results,
    operators_table,
    peers,
    processor_cases,
    processor_products,
)
from benchmarks.gpu_cases import example
from benchmarks.harness import HostBench, aligned_array
from benchmarks.operators import threads
from benchmarks.operators_ours import Call, compare, launched
from benchmarks.peers import Array, Operation
from benchmarks.processor_cases import Case, as_float64, size_of
from benchmarks.processor_rows import Asked, Row
from tilelang.instructions.instruction import use
from tilelang.lowering.targets.c.emitter import error_bounds
from tilelang.lowering.targets.dialects import DIALECTS
from tilelang.semantics.reference import compare as compare_with_reference

OPERATORS = Path(__file__).parent / "results" / "operators.jsonl"
SIZES = {size_of(s): s for s in ((1024,) * 3, (2048,) * 3, (3072,) * 3, (1000, 1111, 777))}
HARDER = {"M1": 0.95, "M2": 0.95}
BFLOAT16, BFLOAT16_SIZES = ("x86_tdpbf16ps_m32n32k128", "x86_vdpbf16ps"), (1024, 2048)  # the first that the processor has
INT8_SIZES = (512, 1024, 2048)
SHORT = 12  # operators below the best peer that are named
OURS = ("ours", "hand", "copy", "constructed")


def products(asked: Asked) -> Iterator[Row]:
    """Matrix products of float32 beside every peer."""
    known = {o.id: o.extents for o in operators_cases.read() if o.kind == "matmul" and not o.duplicate_of}
    for case in processor_cases.product_cases({f"product {n}": s for n, s in {**SIZES, **known}.items()}):
        if asked.case in case.what:
            yield beside_peers(case, asked, HARDER.get(case.what.split()[1], 1.0))


def pointwise(asked: Asked) -> Iterator[Row]:
    """Functions of every element; what moving their data takes, measured beside exp."""
    for case in processor_cases.pointwise_cases():
        if asked.case in case.what:
            yield (row := beside_peers(case, asked, 1.8 if "512x1024" in case.what else 1.2))
            if "copy" in (found := dict(row.others)):
                yield Row(f"copy beside {case.what}", found["copy"])


def rows(asked: Asked) -> Iterator[Row]:
    """Softmax beside onnxruntime, layer normalization beside the best peer."""
    wanted = {"softmax 512x1024": 1.05, "softmax 512x1024, quick exp": 1.2, "softmax 4096^2": 1.0}
    for case in processor_cases.row_cases():
        if asked.case not in case.what:
            continue
        if case.what.startswith("softmax"):
            yield beside_peers(case, asked, wanted.get(case.what), "onnxruntime")
        else:
            yield beside_peers(case, asked, 1.1)


def transpose(asked: Asked, side: int = 4096) -> Iterator[Row]:
    """A square matrix, beside a copy by non-temporal stores through the same driver, and beside the peers."""
    case = processor_cases.transpose_case(side)
    if asked.case not in case.what:
        return
    x, y = aligned_array((side, side)), aligned_array((side, side))
    x[...] = 1  # else it is one page of zeros, seen many times
    copy = HostBench().launch(hand_written.copy_source(side), (side // 8,), [x, y])
    found = times(case, asked, [Call("copy", "ours", copy)])
    us, copied = found.pop("ours"), found["copy"]
    others = tuple({"ours": us, **found}.items())
    note = "ratio: our time by the copy's"
    yield Row(case.what, us, "us", "copy", copied, us / copied, 1.5, False, others, note)


# ---------------------------------------------------------------- ours beside peers


def beside_peers(case: Case, asked: Asked, wanted: float | None, against: str = "") -> Row:
    """A case's row. against: a peer's name, where it is not the best."""
    found = times(case, asked)
    us, theirs = found["ours"], {who: t for who, t in found.items() if who not in OURS}
    if not theirs:
        return Row(case.what, us, wanted=wanted, peer="none", others=tuple(found.items()))
    best = min(theirs, key=lambda who: theirs[who])
    peer = against if against in theirs else best
    note = f"the best peer, {best}, {theirs[best] / us:.2f}" if peer != best else ""
    return Row(case.what, us, "us", peer, theirs[peer], theirs[peer] / us, wanted, True, tuple(found.items()), note)


def times(case: Case, asked: Asked, more: list[Call] | None = None) -> dict[str, float]:
    """Microseconds of a call in a row for each contestant that is right, ours first. SystemExit: ours is wrong."""
    target = tl.target("cpu")
    kernel = tl.compile(case.made(), target)
    arrays, out = ready(kernel)
    calls = [checked(kernel, arrays, out, "ours")]
    if case.by_hand is not None:
        calls.append(checked(tl.compile(case.by_hand(), target), arrays, processor_cases.empty_like(out), "hand"))
    if case.copy is not None:
        calls.append(checked(tl.compile(case.copy(), target), arrays, out, "copy"))
        calls[0].begin()  # its result, for the peers' check
        calls[0].finish()
    inputs = [arrays[t.name] for t in kernel.computation.inputs]
    calls += right(case, inputs, out, out, processor_cases.peers_of(case.operation, inputs, out, threads(target)))
    return in_turns([*calls, *(more or [])], asked.rounds)


def in_turns(calls: list[Call], rounds: int) -> dict[str, float]:
    """Microseconds of calls in a row, contestants taking turns."""
    return {who: row * 1e6 for who, (_, row) in compare(calls, rounds).items()}


def ready(kernel: tl.Kernel) -> tuple[dict[str, Array], Array]:
    """Random inputs, and memory for the result."""
    (output,) = kernel.computation.outputs
    return processor_cases.arrays_of(kernel.computation), processor_cases.empty_like(np.empty(output.shape, output.dtype.numpy))


def checked(kernel: tl.Kernel, arrays: dict[str, Array], out: Array, who: str) -> Call:
    """A launch of ours, after a check against the reference's bound. SystemExit: it is wrong."""
    (output,) = kernel.computation.outputs
    given = {t.name: arrays[t.name] for t in kernel.computation.inputs}
    out.fill(np.nan if out.dtype.kind == "f" else -1)
    call = launched(kernel, given, output.name, out, who)
    call.begin()
    call.finish()
    bounds = error_bounds(DIALECTS[kernel.target.dialect])
    report = compare_with_reference(
        kernel.computation, given, {output.name: out}, error_ulps=kernel.schedule.error_ulps, ulps=bounds
    )
    if not report:
        raise SystemExit(f"{who} of {kernel.computation.name} is wrong: {report}")
    return call


def right(
    case: Case, inputs: list[Array], expected: Array, like: Array, found: dict[str, tuple[str, peers.Call]]
) -> Iterator[Call]:
    """The peers that give what ours gave, which was checked; the others are named. like: an array of their result's type."""
    largest = float(np.abs(expected).max())
    for who, (side, call) in found.items():
        try:
            result = as_float64(call())
        except Exception as error:  # a peer may raise anything; the others are measured
            why = (str(error).splitlines() or [""])[0][:120]
            print(f"  {case.what}: {who} is left out, {type(error).__name__}: {why}", file=sys.stderr, flush=True)
            continue
        off = float(np.abs(result - expected).max()) / largest if result.shape == expected.shape else float("inf")
        if not off <= case.relative:
            print(f"  {case.what}: {who} is left out, its result is off by {off:.1e}", file=sys.stderr, flush=True)
            continue
        yield Call(who, side, call)


def bfloat16(asked: Asked) -> Iterator[Row]:
    """Products of bfloat16 by the processor's own instruction, where it has one."""
    target = processor_products.here()
    missing = {name: use(name).unavailable(target.profile, "cpu") for name in BFLOAT16}
    by = next((name for name, why in missing.items() if why is None), None)
    if by is None:
        print(f"  bfloat16 products are left out: {'; '.join(map(str, missing.values()))}", file=sys.stderr, flush=True)
        return
    for edge in BFLOAT16_SIZES:
        name = f"product bfloat16 {size_of((edge,) * 3)}"
        if asked.case not in name:
            continue
        kernel = tl.compile(processor_products.by_instruction((edge, edge, edge), by), target)
        note = f"a schedule by hand, {by}; ours writes sums of float32, peers write bfloat16"
        yield narrow_product(name, kernel, tl.bfloat16, asked, 0.95, 2.0**-7, note)


def int8(asked: Asked) -> Iterator[Row]:
    """Products of uint8 and int8 summed in int32, by generated schedules."""
    for edge in INT8_SIZES:
        name = f"product uint8 x int8 {size_of((edge,) * 3)}"
        if asked.case not in name:
            continue
        kernel = tl.compile(processor_products.product((edge,) * 3, "x86_vpdpbusd"), tl.target("cpu"))
        used = next((line for line in str(kernel.schedule).splitlines() if "do " in line), "no instruction").split(" (")[0]
        yield narrow_product(name, kernel, tl.int32, asked, 1.0, 0.0, f"a generated schedule, {used.strip()}")


def narrow_product(
    name: str, kernel: tl.Kernel, result: tl.DType, asked: Asked, wanted: float, relative: float, note: str
) -> Row:
    """A product of narrow types beside every peer that has it. result: the type that peers write; relative: how far it may be off."""
    arrays, out = ready(kernel)
    calls = [checked(kernel, arrays, out, "ours")]
    case = Case(name, Operation("matmul"), lambda: kernel.schedule, relative=relative)
    like, inputs = np.empty(out.shape, result.numpy), [arrays["A"], arrays["B"]]
    calls += right(case, inputs, out, like, processor_cases.peers_of(case.operation, inputs, like, threads(kernel.target)))
    found = in_turns(calls, asked.rounds)
    us, theirs = found["ours"], {who: t for who, t in found.items() if who != "ours"}
    best = min(theirs, key=lambda who: theirs[who], default="")
    if not best:
        return Row(name, us, wanted=wanted, peer="none", note=note)
    return Row(name, us, "us", best, theirs[best], theirs[best] / us, wanted, True, tuple(found.items()), note)


def simt(asked: Asked, side: int = 1024) -> Iterator[Row]:
    """The product by blocks of 256 threads with barriers, on the cpu target and by an OpenCL device, where there is one."""
    module = example("01_matmul")
    schedule = module.gemm_simt(module.matmul(side, side, side, tl.float32))
    kernel = tl.compile(schedule, "cpu")
    arrays, out = ready(kernel)
    calls, device, why = [checked(kernel, arrays, out, "ours")], "", "on no OpenCL device"
    try:
        other = tl.target("opencl")
        device = str(other.device)
        calls.append(by_opencl(tl.compile(schedule, other), arrays, out))
    except (tl.TileLangError, ImportError) as error:
        why = str(error).splitlines()[0]
    found = in_turns(calls, asked.rounds)
    us, name = found["ours"], f"gemm_simt {size_of((side,) * 3)}"
    if "OpenCL" not in found:
        yield Row(name, us, wanted=1.5, peer="none", note=why)
    else:
        yield Row(name, us, "us", "OpenCL", found["OpenCL"], found["OpenCL"] / us, 1.5, True, tuple(found.items()), device)


def by_opencl(kernel: tl.Kernel, arrays: dict[str, Array], out: Array) -> Call:
    """The OpenCL device's launch, checked."""
    call = checked(kernel, arrays, processor_cases.empty_like(out), "OpenCL")
    return Call("OpenCL", "OpenCL", call.begin, call.finish)


# ---------------------------------------------------------------- times that have no peers


def calls(asked: Asked) -> Iterator[Row]:
    """A bare launch, and what the whole call takes over it."""
    yield Row("bare launch, awake", call_overhead.empty_launch_us(), wanted=1.0, at_least=False)
    for row in call_overhead.rows():
        for name, over in row["over_us"].items():
            note = f"launch {row['median_us'][call_overhead.BARE]:.1f} us, call {row['median_us'][name]:.1f} us"
            limit = row["limits_us"][name]
            yield Row(f"call of {row['kernel']}, {name}, over it", over, wanted=limit, at_least=False, note=note)


def cold(asked: Asked) -> Iterator[Row]:
    """A second process that imports, compiles from the disk cache and runs."""
    for name, found in cold_start.measured().items():
        parts = ", ".join(f"{what} {1e3 * s:.0f} ms" for what, s in found.parts.items())
        yield Row(f"cold start, {name}", found.seconds, "s", wanted=0.5, at_least=False, note=parts)


# ---------------------------------------------------------------- what benchmarks/operators.py measured


def operators(asked: Asked) -> Iterator[Row]:
    """Geometric means over the operators of operators_cpu.csv, from the results that stand there."""
    timed = measured_operators()
    if not timed:
        return
    note = f"{len(timed)} operators, {said_of(timed)}"
    for name, who, wanted in (("four old peers", operators_table.OLD_PEERS, 1.4), ("all peers", None, 1.2)):
        mean = operators_table.geometric_mean(operators_table.ratio(r, "row_us", who) for r in timed)
        yield Row(f"all operators x best of {name}", mean, "", wanted=wanted, note=note)
    for group, members in operators_table.by_class(timed).items():
        ratios = {r["operator"]: operators_table.ratio(r, "row_us") for r in members}
        short = ", ".join(f"{o} {v:.2f}" for o, v in sorted(ratios.items(), key=lambda p: p[1])[:SHORT] if v < 1)
        note = f"below 1: {short}" if short else ""
        yield Row(f"{group} x best of all peers", operators_table.geometric_mean(ratios.values()), "", wanted=1.0, note=note)


def compiling(asked: Asked) -> Iterator[Row]:
    """From a formula to a kernel that has run, over the same operators."""
    timed = measured_operators()
    if not timed:
        return
    worst = max(timed, key=lambda r: float(r["kernel_ms"]))
    median = statistics.median(float(r["kernel_ms"]) for r in timed)
    note = f"{len(timed)} operators, {said_of(timed)}"
    yield Row("formula to a kernel that has run, median", median * 1e-3, "s", wanted=0.15, at_least=False, note=note)
    worst_s = float(worst["kernel_ms"]) * 1e-3
    yield Row("formula to a kernel that has run, worst", worst_s, "s", wanted=1.0, at_least=False, note=worst["operator"])


def measured_operators() -> list[dict[str, Any]]:
    """The rows of operators that have times of the cpu target on the machine here."""
    device = str(tl.target("cpu").device)
    known, _ = operators_results.read(OPERATORS, device)
    timed = [r for (what, _), r in known.items() if what == "times" and operators_table.complete(r)]
    if not timed:
        print(f"  nothing is measured on {device}: python benchmarks/operators.py", file=sys.stderr, flush=True)
    return timed


def said_of(timed: list[dict[str, Any]]) -> str:
    """The commits at which rows were measured."""
    return "measured at " + json.dumps(sorted({r.get("revision", "unknown") for r in timed})).strip("[]").replace('"', "")
