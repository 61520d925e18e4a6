"""The tensor-core products of the language's description: built and printed as they stand there, refused where a device lacks them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tilelang import testing
from tilelang.errors import Refusal
from tilelang.instructions.instruction import use
from tilelang.lowering.pipeline import lower
from tilelang.profiles.files import load_profile
from tilelang.schedules.schedule import Schedule
from tilelang.semantics import reference


def matmul(m: int, n: int, k: int, type: Any) -> Any:
    i, j, r = tl.axes(m=m, n=n, k=k)
    A, B = tl.input("A", type, i, r), tl.input("B", type, r, j)
    return tl.define("C", tl.sum(A[i, r] * B[r, j], over=r), i, j)


def linear(m: int, n: int, k: int) -> Any:
    i, j, r = tl.axes(m=m, n=n, k=k)
    A, B, bias = tl.input("A", tl.bfloat16, i, r), tl.input("B", tl.bfloat16, j, r), tl.input("bias", tl.float32, j)
    acc = tl.define("acc", tl.sum(A[i, r] * B[j, r], over=r), i, j)
    return tl.define("C", tl.cast(tl.gelu(acc[i, j] + bias[j]), tl.bfloat16), i, j)


def gemm_ampere(c: tl.Tensor) -> Schedule:
    return (
        tl.schedule(c)
        .tile(m=128, n=128).to(tl.block, order=tl.layout(lambda m, n: (n // 8, m, n % 8)))
        .accumulate(tl.register, steps=tl.move().via(tl.shared, layout=tl.layout(lambda m, n: (m, (n // 8) ^ (m % 8), n % 8)))
                    .tile(m=1, n=8).to(tl.thread).vectorize(n=8))
        .split(k=32)
        .load("A", tl.shared, layout=tl.layout(lambda m, k: (m, (k // 8) ^ ((m // 2) % 4), k % 8)), ahead=3,
              steps=tl.move().tile(m=1, k=8).to(tl.thread).do("cp_async_16"))
        .load("B", tl.shared, layout=tl.layout(lambda k, n: (k, (n // 8) ^ (k % 8), n % 8)), ahead=3,
              steps=tl.move().tile(k=1, n=8).to(tl.thread).do("cp_async_16"))
        .tile(m=64, n=64).to(tl.warp)
        .split(k=16)
        .load("A", tl.register, ahead=1, steps=tl.move().do("ldmatrix_x4"))
        .load("B", tl.register, ahead=1, steps=tl.move().do("ldmatrix_x4_trans"))
        .do("mma_m16n8k16", m="m", n="n", k="k")
    )  # fmt: skip


def gemm_hopper(c: tl.Tensor) -> Schedule:
    roles = tl.warpgroups(1).as_role("producer", 40) + tl.warpgroups(2).as_role("consumer", 232)
    swizzled = tl.layout().swizzle(128)
    return (
        tl.schedule(c)
        .units(block=roles)
        .tile(m=128, n=256).to(tl.block, 132, order=tl.layout(lambda m, n: (n // 8, m, n % 8)))
        .accumulate(tl.register, steps=tl.move().split(n=64).via(tl.shared, layout=swizzled).do("tma_store_2d"))
        .split(k=64)
        .load("A", tl.shared, layout=swizzled, ahead=3, on="producer", steps=tl.move().do("tma_load_2d"))
        .load("B", tl.shared, layout=swizzled, ahead=3, on="producer", steps=tl.move().do("tma_load_2d"))
        .tile(m=64).to("consumer")
        .do("wgmma_m64n256k16", m="m", n="n", k="k")
    )  # fmt: skip


AMPERE = gemm_ampere(matmul(1024, 1024, 512, tl.float16))
HOPPER = gemm_hopper(linear(1024, 1024, 512))


def refusal(plan: Schedule, profile: str) -> str:
    with pytest.raises(Refusal) as caught:
        plan.check(profile)
    assert caught.value.span is not None and caught.value.span.file == __file__
    lines = caught.value.render().splitlines()
    return "\n".join(line for line in lines if not line.startswith("  -->") and "|" not in line)


def test_they_print_as_they_are_described() -> None:
    assert AMPERE.text.splitlines()[-3:] == [
        "  load B in register ahead 1 { do ldmatrix_x4_trans }",
        "  do mma_m16n8k16 (m=m, n=n, k=k)",
        "}",
    ]
    assert HOPPER.text.splitlines()[1:3] == [
        "  units block = 1 warpgroup as producer (40 registers) + 2 warpgroup as consumer (232 registers)",
        "  tile m=128 n=256 -> block 132 order (n / 8, m, n % 8)",
    ]
    assert "  load A in shared swizzle 128 ahead 3 on producer { do tma_load_2d }" in HOPPER.text.splitlines()


@pytest.mark.parametrize(
    ("plan", "last"),
    [(AMPERE, "C  m:64 n:64 | k:16  on warp"), (HOPPER, "C  m:64 n:256 | k:64  on consumer")],
    ids=["ampere", "hopper"],
)
def test_their_specs_print(plan: Schedule, last: str) -> None:
    assert len(plan.specs) == len(plan.steps) + 1
    assert str(plan.specs[-1]).startswith(last)
    assert last in plan.explain()


@pytest.mark.usefixtures("only_shipped_instructions")
def test_ampere_is_refused_where_nothing_copies_by_itself() -> None:
    assert refusal(AMPERE, "sapphire_rapids") == (
        "error[instruction-not-here]: `do cp_async_16`: profile sapphire_rapids does not have cp_async\n"
        "  = help: remove the `do` to use plain loops"
    )


def test_ampere_is_lowered_for_its_own_device() -> None:
    AMPERE.check("ampere")
    (kernel,) = lower(AMPERE.computation, AMPERE.steps, load_profile("ampere")).kernels
    assert (kernel.grid, kernel.threads, kernel.shared_bytes) == (
        (64, 1, 1),
        128,
        64 * 1024,
    )  # four buffers of A and B, of 8 KiB each


def test_hopper_is_refused_for_its_roles_where_no_barrier_has_phases() -> None:
    assert refusal(HOPPER, "sapphire_rapids") == (
        "error[not-lowered-yet]: `units block = 1 warpgroup as producer (40 registers) + 2 warpgroup as consumer (232 registers)`:"
        " roles and register budgets are valid, but not supported yet for this target\n"
        "  = help: units block = N warp"
    )


def test_hopper_is_lowered_for_its_own_device() -> None:
    HOPPER.check("hopper")
    (kernel,) = lower(HOPPER.computation, HOPPER.steps, load_profile("hopper")).kernels
    assert [(r.name, r.first, r.threads, r.registers) for r in kernel.roles] == [
        ("producer", 0, 128, 40),
        ("consumer", 128, 256, 232),
    ]
    assert kernel.shared_bytes <= 208 * 1024 + 128, "4 x 48 KiB of ring, 16 KiB of store staging, and the barriers"


def test_without_roles_hopper_s_next_contradiction_is_named() -> None:
    plain = Schedule(HOPPER.computation, HOPPER.steps[1:])
    assert "`units` has no role producer" in refusal(plain, "hopper")


def test_an_instructions_error_widens_the_bound() -> None:
    """Of every operation: twice its ulps of the unit roundoff more."""
    i, k = tl.axes(i=8, k=64)
    A, x = tl.input("A", tl.float32, i, k), tl.input("x", tl.float32, k)
    y = tl.define("y", tl.sum(A[i, k] * x[k], over=k), i)
    arrays = testing.arrays(tl.computation("y", y), "random", 3)
    (_, plain), (_, wide) = (reference.evaluate_and_bound(tl.computation("y", y), arrays, ulps) for ulps in (0, 4))
    assert np.allclose(wide["y"], 9 * plain["y"], rtol=0.02)
    off = {"y": reference.evaluate(tl.computation("y", y), arrays)["y"] + 5 * plain["y"]}
    assert not reference.compare(tl.computation("y", y), arrays, off)
    assert reference.compare(tl.computation("y", y), arrays, off, error_ulps=4)


def test_a_schedule_knows_the_error_of_its_instructions() -> None:
    made = gemm_ampere(matmul(64, 64, 64, tl.float16))
    assert made.error_ulps == use("mma_m16n8k16").error_ulps == 1
    assert made.prefix(2).error_ulps == 0
