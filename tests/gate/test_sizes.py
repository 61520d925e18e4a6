"""Schedules at sizes beyond those of the other tests: as many barriers whatever the size, and taken for what the benchmark measures."""

from __future__ import annotations

from typing import Any

import pytest

import tilelang as tl
from benchmarks import gpu_cases
from tests.test_examples import load
from tilelang.errors import Refusal
from tilelang.lowering import ir

MADE, UNITS = load("01_matmul"), load("15_matrix_units")
PRODUCTS: dict[str, tuple[str, str, Any]] = {
    "gemm_hopper": ("cuda", "hopper", lambda n: MADE.gemm_hopper(MADE.linear(n, n, n))),
    "gemm_simt": ("cuda", "ampere", lambda n: MADE.gemm_simt(MADE.matmul(n, n, n))),
    "gemm_ampere": ("cuda", "ampere", lambda n: UNITS.gemm_ampere(UNITS.matmul(n, n, n))),
    "gemm_cdna": ("hip", "cdna2", lambda n: UNITS.gemm_cdna(UNITS.matmul(n, n, n))),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_barriers_are_as_many_whatever_the_size(name: str) -> None:
    dialect, profile, make = PRODUCTS[name]
    target = tl.target(dialect, profile=profile)
    counts = set()
    for n in (4096, 8192, 65536):  # at each a block of gemm_hopper, of which there are 132, takes several tiles
        (kernel,) = tl.compile(make(n), target=target).program.kernels
        counts.add(sum(isinstance(s, ir.Barrier) for s in ir.statements(kernel.body)))
    assert len(counts) == 1 and counts != {0}


def largest() -> list[gpu_cases.Case]:
    """Of each operator of the benchmark, in each type, the case with the most work."""
    found: dict[tuple[str, str, str], gpu_cases.Case] = {}
    for case in (c for group in gpu_cases.GROUPS for c in gpu_cases.cases(group)):
        key = (case.group, case.operator, case.type.name)
        found[key] = max(found.get(key, case), case, key=lambda c: c.flops)
    return list(found.values())


@pytest.mark.parametrize("case", largest(), ids=lambda c: c.id)
def test_the_benchmark_has_a_schedule_for_its_largest_cases(case: gpu_cases.Case) -> None:
    """And where the device has the instructions for its type, the first of them is one that uses these."""
    target, refused = tl.target("cuda", profile="hopper"), list[str]()
    for name, build in case.schedules(case.make(None), target.profile).items():
        try:
            assert tl.compile(build(), target=target).source
        except Refusal as refusal:
            refused.append(f"{name}: {refusal.message}")
        else:
            assert case.type not in (tl.float16, tl.bfloat16) or name.startswith("warp"), refused
            return
    raise AssertionError("; ".join(refused))
