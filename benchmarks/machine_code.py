"""What the schedules for matrix units become: registers, spills, shared memory, the instructions of the main loop. Needs no GPU.

`python benchmarks/machine_code.py [--size 4096]` compiles the shipped products and convolutions for the devices that have their
instructions (by the extra `[compilers]`), and simulates a small one of each for bank conflicts. It says nothing of time.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `python benchmarks/machine_code.py` from anywhere

import tilelang as tl
from benchmarks.gpu_cases import example
from benchmarks.harness import table
from tilelang.lowering.compilers.listing import Listing, listings

Case = tuple[str, str, str, Callable[[int], tl.Schedule], tuple[str, ...]]

HEADING = ("schedule", "device", "registers", "spilled", "shared", "main loop", "conflicts")
# Multiply-adds outside matrix units; constants are written by an HFMA2 of zeros, which is none.
SCALAR = ("FFMA", "FMUL", "HMUL2", "DFMA", "v_fma", "v_mac", "v_mad_f", "v_mul_f", "v_pk_fma", "v_pk_mul_f", "v_dot2")


def of(schedule: Callable[..., tl.Schedule], product: Callable[..., tl.Tensor], *type: tl.DType) -> Callable[[int], tl.Schedule]:
    """A schedule of the square product of a size."""
    return lambda n: schedule(product(n, n, n, *type))


def cases() -> Iterator[Case]:
    """(name, dialect, profile, the schedule of a size, the prefixes of what its main loop is made of)."""
    first, units, types = example("01_matmul"), example("15_matrix_units"), example("16_matrix_types")
    mma, mfma = ("HMMA", "LDSM", "LDGSTS"), ("v_mfma", "ds_read", "global_load")
    for dtype in (tl.float16, tl.bfloat16):
        yield f"gemm_ampere {dtype}", "cuda", "ampere", of(units.gemm_ampere, units.matmul, dtype), mma
        yield f"gemm_hopper {dtype}", "cuda", "hopper", of(first.gemm_hopper, first.linear, dtype), ("HGMMA",)
        yield f"gemm_cdna {dtype}", "hip", "cdna2", of(units.gemm_cdna, units.matmul, dtype), mfma
        yield f"gemm_rdna {dtype}", "hip", "rdna3", of(types.gemm_rdna, types.matmul, dtype), ("v_wmma", "ds_load")
    yield "gemm_ampere_transposed", "cuda", "ampere", of(units.gemm_ampere_transposed, units.transposed), mma
    yield "gemm_tf32", "cuda", "ampere", of(types.gemm_tf32, types.matmul), (*mma, "LDS ", "LDS.")
    yield "gemm_int8", "cuda", "ampere", of(types.gemm_bytes, types.linear), ("IMMA", *mma[1:])
    float8 = tl.float8_e4m3
    yield "gemm_float8", "cuda", "ada", of(lambda c: types.gemm_bytes(c, float8), types.linear, float8), ("QMMA", *mma[1:])
    yield "gemm_mi300", "hip", "cdna3", of(lambda c: units.gemm_cdna(c, "mfma_16x16x16"), units.matmul), mfma
    yield "gemm_direct", "hip", "cdna3", of(units.gemm_direct, units.transposed), mfma
    yield "conv_ampere", "cuda", "ampere", lambda n: units.conv_ampere(units.convolution(max(1, n // 512), 56, 64, 64)), mma
    yield "gemm_simt", "cuda", "ampere", of(first.gemm_simt, first.matmul), ("FFMA", "LDS")
    yield "gemm_simt, waves", "hip", "cdna2", of(lambda c: first.gemm_simt(c, columns=64), first.matmul), ("v_pk_fma", "ds_read")


def row(case: Case, size: int) -> tuple[str, ...]:
    """One schedule's line of the table."""
    name, dialect, profile, make, prefixes = case
    target = tl.target(dialect, profile=profile)
    kernel = tl.compile(make(size), target=target)
    (used,), (listing,) = kernel.resources, listings(kernel.assembly)
    registers = f"{used.registers}" + (f"+{used.accumulation_registers}" if used.accumulation_registers else "")
    spilled = (used.spill_store_bytes or 0) + (used.spill_load_bytes or 0) + (used.stack_bytes or 0)
    loop = listing.main_loop(prefixes[0])
    found = ", ".join(f"{loop.count(p)} {p.strip('.')}" for p in prefixes if loop.count(p))
    conflicts = sum(
        count.total for count in tl.simulate(tl.compile(make(256), target=target), limit_statements=float("inf")).conflicts
    )
    return (name, str(target.profile.architecture), registers, f"{spilled}", f"{used.shared_bytes}",
            f"{found} of {len(loop.instructions)}{scalar(loop, prefixes)}", f"{conflicts}")  # fmt: skip


def scalar(loop: Listing, prefixes: tuple[str, ...]) -> str:
    """What is said of multiply-adds beside matrix instructions; nothing where there are none, or where they are the product."""
    count = loop.count(*SCALAR)
    return "" if prefixes[0] in SCALAR or not count else f", {count} SCALAR multiply-adds"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--size", type=int, default=4096, help="rows, columns and depth of the products (default %(default)s)")
    size = parser.parse_args().size
    rows: list[tuple[str, ...]] = [HEADING]
    for case in cases():
        print(f"  {case[0]}", file=sys.stderr, flush=True)
        rows.append(row(case, size))
    print(table(rows))


if __name__ == "__main__":
    main()
