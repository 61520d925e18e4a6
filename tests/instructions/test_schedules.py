"""Products, loads of their operands and copies together: in the simulator, and their CUDA or HIP text on this processor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tilelang as tl
from tests.lowering import test_instruct
from tests.lowering.test_instruct import refused
from tests.test_examples import load
from tilelang.lowering import ir
from tilelang.lowering.pipeline import lower
from tilelang.profiles.profile import Profile
from tilelang.schedules.schedule import Schedule
from tilelang.testing import emulation

HOPPER, CDNA, RDNA, ADA = (tl.load_profile(name) for name in ("hopper", "cdna2", "rdna3", "ada"))
SIZES = [(32, 16, 64), (40, 24, 48)]
Check = Callable[[Schedule, Profile], None]


def emulated(plan: Schedule, profile: Profile) -> None:
    """Its text is right on this processor, when copies land late."""
    report = emulation.check(tl.compile(plan, tl.target(profile.dialects[0], profile=profile)))
    assert report, report


@pytest.fixture(params=[test_instruct.check, emulated], ids=["simulated", "emulated"])
def check(request: pytest.FixtureRequest) -> Check:
    if request.param is emulated and emulation.absent() is not None:
        pytest.skip(str(emulation.absent()))
    found: Check = request.param
    return found


def product(
    size: tuple[int, int, int],
    type: Any,
    sums: Any = tl.float32,
    left: str = "mk",
    right: str = "kn",
    allow: tuple[str, ...] = (),
) -> Any:
    """C[m, n] = sum[k] A B, with the factors stored as the letters say."""
    m, n, k = tl.axes(m=size[0], n=size[1], k=size[2])
    axes = {"m": m, "n": n, "k": k}
    at = {name: tuple(axes[letter] for letter in letters) for name, letters in (("A", left), ("B", right))}
    A, B = (tl.input(name, type, *at[name]) for name in "AB")
    return tl.define("C", tl.sum(tl.cast(A[at["A"]], sums) * tl.cast(B[at["B"]], sums), over=k), m, n, allow=allow)


def plan(c: Any, made: str, k: int, loads: tuple[str | None, str | None] = (None, None)) -> Schedule:
    """A block of 32 x 32 by tiles of shared memory, a unit for 32 x 16; the operands are loaded by the instructions named."""
    start = tl.schedule(c).tile(m=32, n=32).to(tl.block).accumulate(tl.register).split(k=2 * k)
    start = start.load("A", tl.shared).load("B", tl.shared).tile(m=32, n=16).to(tl.warp).split(k=k)
    for name, made_by in zip("AB", loads, strict=True):
        start = start.load(name, tl.register, steps=None if made_by is None else tl.move().do(made_by))
    return start.do(made, m="m", n="n", k="k")


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize(
    ("made", "k", "type", "left", "right", "loads"),
    [
        ("mma_m16n8k16", 16, tl.float16, "mk", "kn", ("ldmatrix_x4", "ldmatrix_x2_trans")),
        ("mma_m16n8k16", 16, tl.float16, "km", "nk", ("ldmatrix_x4_left_trans", "ldmatrix_x4_right")),
        ("mma_m16n8k16_bfloat16", 16, tl.bfloat16, "mk", "nk", ("ldmatrix_x4", "ldmatrix_x2_right")),
        ("mma_m16n8k8", 8, tl.float16, "mk", "kn", ("ldmatrix_x2", "ldmatrix_x1_trans")),
        ("mma_m16n8k8_bfloat16", 8, tl.bfloat16, "km", "nk", ("ldmatrix_x2_left_trans", "ldmatrix_x1_right")),
    ],
)
def test_products_of_16_bit_floats(
    check: Check, made: str, k: int, type: Any, left: str, right: str, loads: tuple[str, str], size: tuple[int, int, int]
) -> None:
    check(plan(product(size, type, left=left, right=right), made, k, loads), HOPPER)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_products_under_the_licence_tf32(check: Check, size: tuple[int, int, int]) -> None:
    licensed = product(size, tl.float32, right="nk", allow=("tf32",))
    check(plan(licensed, "mma_m16n8k8_tf32", 8, ("ldmatrix_x4_of_4_bytes", "ldmatrix_x4_right_of_4_bytes")), HOPPER)
    check(plan(product(size, tl.float32, allow=("tf32",)), "mma_m16n8k4_tf32", 4), HOPPER)
    error = refused(lambda: plan(product(size, tl.float32), "mma_m16n8k8_tf32", 8), HOPPER)
    assert error.code == "licence" and "tf32" in str(error)


@pytest.mark.parametrize("type", [tl.int8, tl.uint8], ids=str)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_products_of_bytes(check: Check, type: Any, size: tuple[int, int, int]) -> None:
    c = product(size, type, tl.int32, right="nk")
    check(plan(c, f"mma_m16n8k32_{type}", 32, ("ldmatrix_x4_of_1_byte", "ldmatrix_x4_right_of_1_byte")), HOPPER)
    check(plan(c, f"mma_m16n8k16_{type}", 16), HOPPER)


@pytest.mark.parametrize("type", [tl.float8_e4m3, tl.float8_e5m2], ids=str)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_products_of_8_bit_floats(check: Check, type: Any, size: tuple[int, int, int]) -> None:
    c = product(size, type, right="nk")
    check(plan(c, f"mma_m16n8k32_{type}", 32, ("ldmatrix_x4_of_1_byte", "ldmatrix_x4_right_of_1_byte")), ADA)


@pytest.mark.parametrize(
    ("type", "made", "k", "load", "padding"),
    [
        (tl.int8, "mma_m16n8k32_int8", 32, "ldmatrix_x4_of_1_byte", 8),
        (tl.float32, "mma_m16n8k8_tf32", 8, "ldmatrix_x4_of_4_bytes", 2),
    ],
)
def test_rows_that_are_handed_out_begin_at_multiples_of_16_bytes(type: Any, made: str, k: int, load: str, padding: int) -> None:
    """In bytes: a padding of 8 elements is none for rows of bytes, and one of 16 is; of four-byte elements 2 is none, and 4 is."""
    c = product((32, 16, 64), type, tl.int32 if type == tl.int8 else tl.float32, right="nk", allow=("tf32",) if k == 8 else ())

    def padded(elements: int) -> Schedule:
        start = tl.schedule(c).tile(m=32, n=32).to(tl.block).accumulate(tl.register).split(k=2 * k)
        start = start.load("A", tl.shared, layout=tl.layout("m", "k").pad(elements)).load("B", tl.shared)
        start = start.tile(m=32, n=16).to(tl.warp).split(k=k).load("A", tl.register, steps=tl.move().do(load))
        return start.load("B", tl.register).do(made, m="m", n="n", k="k")

    test_instruct.check(padded(2 * padding), HOPPER)
    error = refused(lambda: padded(padding), HOPPER)
    assert "has 16 bytes, but the step has" in str(error)


@pytest.mark.parametrize(
    ("made", "k", "type", "profile"),
    [
        ("mfma_32x32x8", 8, tl.float16, CDNA),
        ("mfma_16x16x16", 16, tl.float16, CDNA),
        ("mfma_32x32x8_bfloat16", 8, tl.bfloat16, CDNA),
        ("mfma_16x16x16_bfloat16", 16, tl.bfloat16, CDNA),
        ("wmma_16x16x16", 16, tl.float16, RDNA),
        ("wmma_16x16x16_bfloat16", 16, tl.bfloat16, RDNA),
    ],
)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_products_of_a_wave(check: Check, made: str, k: int, type: Any, profile: Profile, size: tuple[int, int, int]) -> None:
    c = product(size, type)
    start = tl.schedule(c).tile(m=32, n=32).to(tl.block).accumulate(tl.register).split(k=2 * k).load("A", tl.shared)
    start = start.load("B", tl.shared, layout=tl.layout("n", "k")).tile(m=32, n=32).to(tl.warp).split(k=k)
    check(start.load("A", tl.register).load("B", tl.register).do(made, m="m", n="n", k="k"), profile)


@pytest.mark.parametrize("type", [tl.int8, tl.uint8], ids=str)
def test_dot_products_of_four_bytes(check: Check, type: Any) -> None:
    sums = tl.int32 if type == tl.int8 else tl.uint32
    c = product((20, 12, 40), type, sums, right="nk")
    start = (
        tl.schedule(c).tile(m=16, n=16).to(tl.block).accumulate(tl.register).split(k=16).load("A", tl.shared).load("B", tl.shared)
    )
    start = start.tile(m=2, n=2).to(tl.thread).split(k=4).load("A", tl.register).load("B", tl.register)
    check(start.do("dp4a" if type == tl.int8 else "dp4a_uint8", k="k"), ADA)


@pytest.mark.parametrize(
    ("type", "copy"),
    [(tl.float16, "cp_async_16"), (tl.float16, "cp_async_8"), (tl.float16, "cp_async_4")]
    + [(tl.float32, f"cp_async_{n}_of_4_bytes") for n in (16, 8, 4)]
    + [(tl.int8, f"cp_async_{n}_of_1_byte") for n in (16, 8, 4)],
)
def test_copies_of_every_size(check: Check, type: Any, copy: str) -> None:
    c = product((24, 48, 48), type, tl.int32 if type == tl.int8 else tl.float32)
    start = tl.schedule(c).tile(m=16, n=32).to(tl.block).accumulate(tl.register).split(k=16)
    start = start.load("A", tl.shared, ahead=2, steps=tl.move().do(copy)).load("B", tl.shared, ahead=2, steps=tl.move().do(copy))
    check(start.tile(m=2, n=4).to(tl.thread), HOPPER)


@pytest.mark.parametrize("channels", [32, 40, 35])
def test_operands_of_a_convolution_staged_by_access(channels: int, check: Check) -> None:
    """Padded pixels are copied eight channels at a time where these are whole pieces, and loaded by `ldmatrix` from there."""
    example = load("15_matrix_units")
    plan = example.conv_ampere(example.convolution(1, 6, channels, 16))
    profile = tl.load_profile("ampere")
    check(plan, profile)
    (kernel,) = lower(plan.computation, plan.steps, profile).kernels
    copied = {s.lanes for s in ir.statements(kernel.body) if isinstance(s, ir.Copy) and s.source.name == "X"}
    assert copied == ({8} if channels % 32 == 0 else set())


def test_copies_in_vectors_want_padding_that_does_not_cut_them(check: Check) -> None:
    """Along the padded axis itself, neighbours may be inside and outside: no copy of several."""
    i, k = tl.axes(i=64, k=3)
    X, W = tl.input("X", tl.float32, x=64), tl.input("W", tl.float32, k)
    y = tl.define("Y", tl.sum(tl.pad(X[i + k - 1], 0) * W[k], over=k), i)
    plan = tl.schedule(y).tile(i=32).to(tl.block).split(k=1)
    plan = plan.load("X", tl.shared, layout=tl.layout("i"), ahead=1, steps=tl.move().vectorize(i=4)).tile(i=1).to(tl.thread)
    check(plan, tl.load_profile("ampere"))


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_sums_in_float16_under_the_licence(size: tuple[int, int, int], check: Check) -> None:
    licensed = product(size, tl.float16, allow=("float16_accumulate",))
    check(plan(licensed, "mma_m16n8k16_float16_sum", 16, ("ldmatrix_x4", "ldmatrix_x2_trans")), HOPPER)
    check(plan(licensed, "mma_m16n8k8_float16_sum", 8), HOPPER)
    error = refused(lambda: plan(product(size, tl.float16), "mma_m16n8k16_float16_sum", 16), HOPPER)
    assert error.code == "licence" and "float16_accumulate" in str(error)


def test_sums_in_float16_go_into_an_outer_state_of_float32(check: Check) -> None:
    c = product((32, 32, 128), tl.float16, allow=("float16_accumulate",))
    start = tl.schedule(c).tile(m=32, n=32).to(tl.block).accumulate(tl.shared).split(k=64).accumulate(tl.register)
    start = start.load("A", tl.shared).load("B", tl.shared).tile(m=32, n=16).to(tl.warp).split(k=16)
    check(start.load("A", tl.register).load("B", tl.register).do("mma_m16n8k16_float16_sum", m="m", n="n", k="k"), HOPPER)


@pytest.mark.parametrize(
    ("type", "copy"),
    [(tl.bfloat16, "global_load_lds_4"), (tl.float32, "global_load_lds_4_of_4_bytes"), (tl.int8, "global_load_lds_4_of_1_byte")],
)
@pytest.mark.parametrize("size", [(24, 32, 48), (24, 30, 44)], ids=str)
def test_copies_straight_into_shared_memory(check: Check, type: Any, copy: str, size: tuple[int, int, int]) -> None:
    c = product(size, type, tl.int32 if type == tl.int8 else tl.float32, right="nk")
    start = tl.schedule(c).tile(m=16, n=32).to(tl.block).accumulate(tl.register).split(k=16)
    start = start.load("A", tl.shared, ahead=1, steps=tl.move().do(copy)).load("B", tl.shared, ahead=2, steps=tl.move().do(copy))
    check(start.tile(m=2, n=4).to(tl.thread), CDNA)


def test_copies_of_a_wave_stand_one_behind_the_other() -> None:
    c = product((64, 64, 64), tl.float16, right="nk")
    start = tl.schedule(c).tile(m=64, n=64).to(tl.block).accumulate(tl.register).split(k=32)
    padded = start.load("A", tl.shared, layout=tl.layout("m", "k").pad(2), steps=tl.move().do("global_load_lds_4"))
    error = refused(lambda: padded.load("B", tl.shared).tile(m=4, n=4).to(tl.thread), CDNA)
    assert error.code == "lanes-not-in-a-row"
    assert error.counterexample == "threads 0 and 48 write 102 elements apart, not 96"
    assert "`-> thread order`" in str(error)
