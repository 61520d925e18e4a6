"""`do`: leaves that are one instruction, by a thread and by a warp, in the main chain and in moves; right, or refused with a reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tilelang as tl
from tilelang.errors import Refusal
from tilelang.instructions.fragment import fragment
from tilelang.instructions.instruction import Instruction, instruction, updates
from tilelang.instructions.operand import operand
from tilelang.lowering import ir
from tilelang.lowering.pipeline import lower
from tilelang.lowering.targets import opencl
from tilelang.lowering.targets.c.emitter import definitions, emit, kernel_names
from tilelang.profiles.profile import Profile
from tilelang.schedules.schedule import Schedule
from tilelang.testing.case import arrays
from tilelang.testing.checking import check_prefixes, check_schedule

SIMULATED, POCL = tl.load_profile("simulated"), tl.load_profile("sapphire_rapids")
MMA = "simulated_mma_m16n8k8"
SIZES = [(32, 32, 16), (64, 32, 32), (13, 37, 11), (3, 2, 1), (40, 33, 20), (5, 4, 0), (1, 1, 40)]


def matmul(m: int, n: int, k: int, type: Any = tl.float32) -> Any:
    i, j, r = tl.axes(m=m, n=n, k=k)
    A, B = tl.input("A", type, i, r), tl.input("B", type, r, j)
    return tl.define("C", tl.sum(A[i, r] * B[r, j], over=r), i, j)


def linear(m: int, n: int, k: int) -> Any:
    i, j, r = tl.axes(m=m, n=n, k=k)
    A, B, bias = tl.input("A", tl.float32, i, r), tl.input("B", tl.float32, j, r), tl.input("bias", tl.float32, j)
    return tl.define("C", tl.relu(tl.sum(A[i, r] * B[j, r], over=r) + bias[j]), i, j)


def check(plan: Schedule, profile: Profile, opencl: bool = False) -> None:
    """It is right on random numbers within the derived bound, and to the bit on small integers."""
    for data in ("random", "integers"):
        given = arrays(plan.computation, data)
        assert check_schedule(plan, given, profile=profile, opencl=opencl, exactly=data == "integers") == []


def issued(plan: Schedule, profile: Profile) -> list[ir.Instruction]:
    """The instructions of a schedule's final kernels."""
    program = lower(plan.computation, plan.steps, profile)
    return [s for kernel in program.kernels for s in ir.statements(kernel.body) if isinstance(s, ir.Instruction)]


def refused(plan: Callable[[], Schedule], profile: Profile = SIMULATED) -> Refusal:
    with pytest.raises(Refusal) as caught:
        plan().check(profile)
    assert caught.value.help and caught.value.span is not None
    return caught.value


# ---------------------------------------------------------------- by one thread, on the device


def by_vectors(c: tl.Tensor) -> Schedule:
    return (
        tl.schedule(c).tile(m=12, n=64).to(tl.block).split(k=8)
        .load("B", tl.shared, layout=tl.layout(lambda k, n: (n // 32, k, n % 32)), steps=tl.move().vectorize(n=16))
        .load("A", tl.shared, layout=tl.layout(lambda m, k: (m // 4, k, m % 4)))
        .split(n=32, m=4).accumulate(tl.register).split(k=4).split(k=1, unroll=True)
        .load("B", tl.register, steps=tl.move().vectorize(n=16))
        .split(m=1, unroll=True).load("A", tl.register).do("opencl_mad16", n="n")
    )  # fmt: skip


@pytest.mark.parametrize("size", [(12, 32, 8), (13, 37, 5), (5, 4, 0)], ids=str)
def test_vector_instruction_on_the_device(size: tuple[int, int, int]) -> None:
    check(by_vectors(matmul(*size)), POCL, opencl=True)


def test_vector_instruction_works_on_named_vectors() -> None:
    plan = by_vectors(matmul(24, 64, 16))
    assert {s.semantics.name for s in issued(plan, POCL)} == {"opencl_mad16"}
    source = emit(lower(plan.computation, plan.steps, POCL), opencl.DIALECT)
    assert "C_state_0_0 += A_register * B_register_0;" in source
    assert "[" not in source.split("+=")[1].split(";")[0]


def test_dot_product_of_a_row() -> None:
    i, j = tl.axes(i=5, j=22)
    A, B = tl.input("A", tl.float32, i, j), tl.input("B", tl.float32, i, j)
    c = tl.define("C", tl.sum(A[i, j] * B[i, j], over=j), i)
    plan = (
        tl.schedule(c).tile(i=1).to(tl.block).accumulate(tl.register).split(j=8)
        .load("A", tl.register, steps=tl.move().vectorize(j=4)).load("B", tl.register).do("opencl_dot4")
    )  # fmt: skip
    check(plan, POCL, opencl=True)


# ---------------------------------------------------------------- by a warp, in the simulator


def by_warps(c: tl.Tensor) -> Schedule:
    return (
        tl.schedule(c).tile(m=32, n=32).to(tl.block).accumulate(tl.register).split(k=16)
        .load("A", tl.shared).load("B", tl.shared).tile(m=32, n=16).to(tl.warp)
        .load("A", tl.register).load("B", tl.register).do(MMA, m="m", n="n", k="k")
    )  # fmt: skip


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_matrix_instruction(size: tuple[int, int, int]) -> None:
    check(by_warps(matmul(*size)), SIMULATED)


@pytest.mark.parametrize("first", [None, tl.shared])
def test_operands_that_read_one_tensor_are_told_apart(first: Any) -> None:
    """A A^T: each load is for the operand that reads what it names, from wherever the other one is."""
    i, j, k = tl.axes(i=40, j=24, k=16)
    A = tl.input("A", tl.float32, tl.axes(m=40), k)
    plan = tl.schedule(tl.define("C", tl.sum(A[i, k] * A[j, k], over=k), i, j)).tile(i=32, j=16).to(tl.block)
    plan = plan.accumulate(tl.register).split(k=8)
    plan = plan if first is None else plan.load(A[j, k], first)
    plan = plan.tile(i=16, j=16).to(tl.warp).load(A[i, k], tl.register).load(A[j, k], tl.register)
    check(plan.do(MMA, m="i", n="j", k="k"), SIMULATED)


def test_every_prefix_of_a_schedule_with_do_runs() -> None:
    plan = operands(
        tl.schedule(matmul(13, 9, 11)).tile(m=16, n=16).to(tl.block).accumulate(tl.register).split(k=8).tile(n=8).to(tl.warp)
    )
    assert check_prefixes(plan, arrays(plan.computation), SIMULATED) == []


def test_each_instruction_is_issued_once_per_tile() -> None:
    found = issued(by_warps(matmul(32, 32, 8)), SIMULATED)
    assert {s.width for s in found} == {32}
    assert len({s.operands[0] for s in found}) == 4 == len(found) // 2  # 32 x 16 of a warp in tiles of 16 x 8, k twice


def start(c: tl.Tensor, m: int = 32) -> Schedule:
    return tl.schedule(c).tile(m=m, n=32).to(tl.block)


def operands(plan: Schedule) -> Schedule:
    return plan.load("A", tl.register).load("B", tl.register).do(MMA, m="m", n="n", k="k")


FORMS: dict[str, Callable[[int, int, int], Schedule]] = {
    "epilogue": lambda *s: operands(start(linear(*s)).accumulate(tl.register).split(k=16).load("A", tl.shared).load("B", tl.shared)
                                    .tile(m=16, n=16).to(tl.warp)),
    "results through shared": lambda *s: operands(
        start(linear(*s))
        .accumulate(tl.register, steps=tl.move().via(tl.shared, layout=tl.layout("m", "n").pad(1)).tile(m=1, n=4).to(tl.thread)
                    .vectorize(n=4))
        .split(k=16).tile(m=16, n=16).to(tl.warp)),
    "state of the block in shared": lambda *s: operands(
        start(matmul(*s)).accumulate(tl.shared).split(k=16).tile(m=16, n=16).to(tl.warp).accumulate(tl.register)),
    "rounds outside the state": lambda *s: operands(start(matmul(*s)).split(k=8).tile(m=16, n=16).to(tl.warp).accumulate(tl.register)),
    "reduction over warps": lambda *s: operands(start(matmul(*s)).accumulate(tl.register).split(k=32).tile(k=8).to(tl.warp, 4)),
    "interleaved tiles": lambda *s: operands(
        start(matmul(*s), 64).accumulate(tl.register).split(k=16).split(m=32, n=16).tile(m=16, n=8).to(tl.warp)),
    "operands loaded above the warps": lambda *s: start(matmul(*s), 64).accumulate(tl.register).split(k=16).load("A", tl.register)
    .load("B", tl.register).split(m=32, n=16).tile(m=16, n=8).to(tl.warp).do(MMA, m="m", n="n", k="k"),
    "operands at their walks": lambda *s: start(matmul(*s)).accumulate(tl.register).split(k=16).tile(m=32, n=16).to(tl.warp)
    .split(m=16).load("A", tl.register).split(n=8).load("B", tl.register).do(MMA),
    "rings": lambda *s: start(matmul(*s)).accumulate(tl.register).split(k=16).load("A", tl.shared, ahead=2)
    .load("B", tl.shared, ahead=1).tile(m=16, n=16).to(tl.warp).split(k=8).load("A", tl.register, ahead=1)
    .load("B", tl.register).do(MMA),
    "stored in pairs": lambda *s: operands(
        start(matmul(*s)).accumulate(tl.register, steps=tl.move().vectorize(n=2)).split(k=16).tile(m=16, n=16).to(tl.warp)),
    "idle warps": lambda *s: operands(
        tl.schedule(matmul(*s)).units(block=tl.warps(8)).tile(m=32, n=32).to(tl.block).accumulate(tl.register).split(k=16)
        .tile(m=16, n=16).to(tl.warp)),
    "a block of one warp": lambda *s: operands(tl.schedule(matmul(*s)).units(block=tl.warps(1)).tile(m=16, n=8).to(tl.block)),
}  # fmt: skip


@pytest.mark.parametrize("size", [(32, 32, 16), (13, 37, 11)], ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str, size: tuple[int, int, int]) -> None:
    check(FORMS[form](*size), SIMULATED)


def test_an_axis_that_stands_still() -> None:
    b, m, n, k = tl.axes(b=3, m=20, n=12, k=9)
    A, B = tl.input("A", tl.float32, b, m, k), tl.input("B", tl.float32, b, k, n)
    c = tl.define("C", tl.sum(A[b, m, k] * B[b, k, n], over=k), b, m, n)
    plan = tl.schedule(c).tile(b=2, m=32, n=16).to(tl.block).accumulate(tl.register).split(k=8).tile(m=16, n=16).to(tl.warp)
    check(operands(plan), SIMULATED)


def windows(p: int, c: int, f: int) -> Any:
    """A convolution along one dimension: the product's rows overlap."""
    p_, f_, c_, r_ = tl.axes(p=p, f=f, c=c, r=3)
    X, W = tl.input("X", tl.float32, h=p + 2, c=c), tl.input("W", tl.float32, r=3, c=c, f=f)
    return tl.define("Z", tl.sum(X[p_ + r_, c_] * W[r_, c_, f_], over=(r_, c_)), p_, f_)


@pytest.mark.parametrize("size", [(32, 8, 8), (21, 10, 5)], ids=str)
def test_overlapping_rows(size: tuple[int, int, int]) -> None:
    plan = (
        tl.schedule(windows(*size)).tile(p=32, f=8).to(tl.block).accumulate(tl.register).load("X", tl.shared).split(r=1, c=8)
        .tile(p=16, f=8).to(tl.warp).load("X", tl.register).load("W", tl.register).do(MMA, m="p", n="f", k="c")
    )  # fmt: skip
    check(plan, SIMULATED)


def test_overlapping_rows_do_not_share_fragments() -> None:
    error = refused(lambda: tl.schedule(windows(32, 8, 8)).tile(p=32, f=8).to(tl.block).accumulate(tl.register).tile(p=16, f=8)
                    .to(tl.warp).load("X", tl.register).load("W", tl.register).split(r=1, c=8)
                    .do(MMA, m="p", n="f", k="c"))  # fmt: skip
    assert error.code == "fragment-between-tiles"
    assert error.counterexample == "at r = 1, a tile begins at element 1 of the region"


def convolution(batch: int, channels: int, side: int, filters: int, stride: int, pad: int) -> Any:
    out = (side + 2 * pad - 3) // stride + 1
    n, f, p, q, c, r, s = tl.axes(n=batch, f=filters, p=out, q=out, c=channels, r=3, s=3)
    X = tl.input("X", tl.float32, n=batch, h=side, w=side, c=channels)
    W = tl.input("W", tl.float32, f=filters, r=3, s=3, c=channels)
    terms = tl.pad(X[n, stride * p + r - pad, stride * q + s - pad, c], 0) * W[f, r, s, c]
    return tl.define("Z", tl.sum(terms, over=(r, s, c)), n, p, q, f)


@pytest.mark.parametrize("size", [(1, 8, 6, 8, 1, 1), (2, 9, 7, 5, 2, 1), (1, 1, 5, 3, 1, 0)], ids=str)
def test_points_staged_by_access(size: tuple[int, int, int, int, int, int]) -> None:
    """An implicit matrix product: rows are pixels, gathered with padding and stride."""
    plan = (
        tl.schedule(convolution(*size)).fuse(npq=("n", "p", "q")).tile(npq=32, f=8).to(tl.block).accumulate(tl.register)
        .split(r=1, s=1, c=8).load("X", tl.shared, layout=tl.layout("npq", "c")).load("W", tl.shared)
        .tile(npq=16, f=8).to(tl.warp).load("X", tl.register).load("W", tl.register).do(MMA, m="npq", n="f", k="c")
    )  # fmt: skip
    check(plan, SIMULATED)
    (kernel,) = lower(plan.computation, plan.steps, SIMULATED).kernels
    loads = [s for s in ir.statements(kernel.body) if isinstance(s, ir.Store) and s.buffer.name == "X_register"]
    assert loads and {load.buffer.name for s in loads for e in ir.expressions(s) for load in ir.loads(e)} == {"X_shared"}


def test_a_load_that_does_not_run_ahead_stands_between() -> None:
    plan = start(matmul(13, 37, 22)).accumulate(tl.register).split(k=8).load("A", tl.shared).load("B", tl.shared, ahead=1)
    check(plan.tile(m=4, n=4).to(tl.thread), SIMULATED)
    check(operands(plan.tile(m=16, n=16).to(tl.warp)), SIMULATED)


def test_a_user_s_instruction_reads_shared_memory() -> None:
    """Eight neighbours of a row of shared memory against one number; the address must be a multiple of 32 bytes."""
    j = tl.axes(j=8)
    a = operand("a", tl.float32, tl.register)
    b = operand("b", tl.float32, tl.shared, j, fragment=fragment(1, 8, lambda lane, slot: slot), alignment_bytes=32)
    c = operand("c", tl.float32, tl.register, j)
    row: Instruction = instruction("row_of_shared", means=updates(c[j], a[()] * b[j]), operands=(a, b, c),
                                   level=tl.thread, replace=True,
                                   template={"opencl": "{c} += {a} * vload8(0, {b.address});",
                                             "cpu": "{c} += {a} * *(const float8*){b.address};"})  # fmt: skip

    def plan(columns: int) -> Schedule:
        return (
            tl.schedule(matmul(7, 21, 9)).tile(m=8, n=columns).to(tl.block).accumulate(tl.register).split(k=4).load("B", tl.shared)
            .tile(m=1).to(tl.thread).split(k=1).load("A", tl.register).do(row, j="n")
        )  # fmt: skip

    check(plan(16), POCL, opencl=True)
    error = refused(lambda: plan(20), POCL)
    assert error.code == "instruction-mismatch" and "shape of n: the instruction has j = 8, but the step has n = 20" in str(error)
    error = refused(lambda: Schedule(plan(16).computation, tuple(
        s.replace(layout=tl.layout().pad(1)) if getattr(s, "memory", "") == "shared" else s
        for s in plan(16).steps)), POCL)  # fmt: skip
    assert "alignment of B: the instruction has 32 bytes, but the step has element (1, 0) at byte 68" in str(error)


TOGETHER = "static inline float together(float x, float y) { return x * y; }"


def scaled(name: str, *definitions: str) -> Instruction:
    """An update of one element, by wrappers."""
    a, b, c = (operand(x, tl.float32, tl.register) for x in "abc")
    return instruction(name, means=updates(c[()], a[()] * b[()]), operands=(a, b, c), level=tl.thread, replace=True,
                       template=dict.fromkeys(("cpu", "opencl"), f"{name}_of({{c}}, {{a}}, {{b}});"),
                       definitions=dict.fromkeys(("cpu", "opencl"), definitions))  # fmt: skip


def by(made: Instruction) -> Schedule:
    """A matrix-vector product; its vector has the name of a wrapper."""
    i, k = tl.axes(i=8, k=6)
    X, together = tl.input("X", tl.float32, i, k), tl.input("together", tl.float32, k)
    start = tl.schedule(tl.define("Y", tl.sum(X[i, k] * together[k], over=k), i)).tile(i=4).to(tl.block).accumulate(tl.register)
    return start.tile(i=1).to(tl.thread).split(k=1).load("X", tl.register).load("together", tl.register).do(made)


WRAPPER = "#define {0}_of(c, a, b) c += together(a, b)"


def test_wrappers_stand_at_the_head_and_keep_their_names() -> None:
    check(by(scaled("one", TOGETHER, WRAPPER.format("one"))), POCL, opencl=True)


def test_a_definition_that_instructions_share_stands_once() -> None:
    plans = [by(scaled(name, TOGETHER, WRAPPER.format(name))) for name in ("one", "two_of", "other")]
    kernels = [lower(p.computation, p.steps, POCL).kernels[0] for p in plans]
    named = [
        k.replace(name=f"{s.semantics.name}_of") for k in kernels for s in ir.statements(k.body) if isinstance(s, ir.Instruction)
    ]
    program = ir.Program(tuple(named), kernels[0].arguments)
    text = emit(program, opencl.DIALECT)
    assert text.startswith(TOGETHER) and text.count(TOGETHER) == 1
    assert definitions(program, opencl.DIALECT) == (TOGETHER, *(WRAPPER.format(n) for n in ("one", "two_of", "other")))
    assert kernel_names(program, opencl.DIALECT)["one_of"] != "one_of"


def test_one_function_has_one_definition() -> None:
    plans = [by(scaled(name, text, WRAPPER.format(name))) for name, text in (("one", TOGETHER), ("other", TOGETHER + " "))]
    kernels = [lower(p.computation, p.steps, POCL).kernels[0] for p in plans]
    program = ir.Program((kernels[0], kernels[1].replace(name="second")), kernels[0].arguments)
    with pytest.raises(tl.DeviceError, match="two instructions define the function together of opencl differently") as caught:
        emit(program, opencl.DIALECT)
    assert caught.value.code == "two-definitions"


# ---------------------------------------------------------------- moves


def ampere(c: tl.Tensor, ahead: int = 2, registers: int = 1, copy: str = "cp_async_16") -> Schedule:
    """The form of gemm_ampere, with smaller tiles."""
    return (
        tl.schedule(c).tile(m=64, n=32).to(tl.block, order=tl.layout(lambda m, n: (n // 8, m, n % 8)))
        .accumulate(tl.register, steps=tl.move().via(tl.shared, layout=tl.layout(lambda m, n: (m, (n // 8) ^ (m % 4), n % 8)))
                    .tile(m=1, n=8).to(tl.thread).vectorize(n=8))
        .split(k=32)
        .load("A", tl.shared, layout=tl.layout(lambda m, k: (m, (k // 8) ^ ((m // 2) % 4), k % 8)), ahead=ahead,
              steps=tl.move().tile(m=1, k=8).to(tl.thread).do(copy))
        .load("B", tl.shared, layout=tl.layout(lambda k, n: (k, (n // 8) ^ (k % 4), n % 8)), ahead=ahead,
              steps=tl.move().tile(k=1, n=8).to(tl.thread).do(copy))
        .tile(m=32, n=16).to(tl.warp).split(k=16)
        .load("A", tl.register, ahead=registers, steps=tl.move().do("ldmatrix_x4"))
        .load("B", tl.register, ahead=registers, steps=tl.move().do("ldmatrix_x4_trans"))
        .do("mma_m16n8k16", m="m", n="n", k="k")
    )  # fmt: skip


@pytest.mark.parametrize("ahead", [(0, 0), (1, 1), (2, 1), (3, 0)], ids=str)
@pytest.mark.parametrize("size", [(64, 32, 96), (72, 40, 40)], ids=str)
def test_copies_fragments_and_products_of_half_precision(size: tuple[int, int, int], ahead: tuple[int, int]) -> None:
    check(ampere(matmul(*size, tl.float16), *ahead), SIMULATED)


def test_an_asynchronous_copy_waits_no_longer_than_it_must() -> None:
    plan = ampere(matmul(64, 32, 256, tl.float16), 2, 0)
    (kernel,) = lower(plan.computation, plan.steps, SIMULATED).kernels
    waits = [s.pending for s in ir.statements(kernel.body) if isinstance(s, ir.Wait)]
    assert waits == [1, 0]  # in the loop; behind it, before the results go through the ring's bytes
    assert sum(isinstance(s, ir.Commit) for s in ir.statements(kernel.body)) == 3  # two rounds before the loop, and one in it


def test_a_copy_whose_rows_begin_between_16_bytes_is_refused() -> None:
    error = refused(lambda: ampere(matmul(64, 32, 36, tl.float16)))
    assert "alignment of A: the instruction has 16 bytes, but the step has element (1, 0) at byte 72" in str(error)


def test_a_copy_of_another_size_is_refused_with_the_one_that_fits() -> None:
    error = refused(lambda: ampere(matmul(64, 32, 32, tl.float16), copy="cp_async_16_of_4_bytes"))
    assert error.code == "instruction-mismatch"
    assert "dtype of A: the instruction has float32 or int32 or uint32, but the step has float16" in error.notes[0]
    assert error.notes[1].startswith("cp_async_16:") and error.notes[1].endswith(": fits")


def test_fragments_loaded_the_wrong_way_round_are_refused() -> None:
    plan = ampere(matmul(64, 32, 32, tl.float16), 1, 0)
    wrong = list(plan.steps)
    k = next(k for k, s in enumerate(wrong) if str(s) == "load B in register { do ldmatrix_x4_trans }")
    wrong[k] = wrong[k].replace(steps=tl.move().do("ldmatrix_x4").steps)
    error = refused(lambda: Schedule(plan.computation, tuple(wrong)))
    assert error.code == "reader-is-not-owner"
    assert error.counterexample == "(k, n) = (0, 1) of a tile ends up in lane 0, but lane 4 needs it"
