"""`compute ... ahead`: stages made rounds before their readers, in rings in shared memory and in registers."""

import pytest

import tilelang as tl
from tests.lowering.test_shares import faults
from tilelang import testing
from tilelang.lowering import ir, printer
from tilelang.testing import family


def pointwise(m: int, n: int, k: int) -> tl.Schedule:
    i, j, r = tl.axes(m=m, n=n, k=k)
    A, B = tl.input("A", tl.float32, i, r), tl.input("B", tl.float32, r, j)
    S = tl.define("S", tl.exp(A[i, r] * 0.5), i, r)
    return tl.schedule(tl.define("C", tl.sum(S[i, r] * B[r, j], over=r), i, j)).tile(m=8, n=8).to("block").accumulate("register")


def reduced(m: int, n: int, k: int) -> tl.Schedule:
    i, j, r, d = tl.axes(m=m, n=n, k=k, d=5)
    A, K, B = tl.input("A", tl.float32, i, d), tl.input("K", tl.float32, r, d), tl.input("B", tl.float32, r, j)
    S = tl.define("S", tl.sum(A[i, d] * K[r, d], over=d), i, r)
    return tl.schedule(tl.define("C", tl.sum(S[i, r] * B[r, j], over=r), i, j)).tile(m=8, n=8).to("block").accumulate("register")


SIZES = [(37, 21, 19), (16, 16, 16), (5, 3, 1), (9, 8, 30)]


@pytest.mark.parametrize("ahead", [1, 2])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("make", [pointwise, reduced])
def test_in_shared(make: object, sizes: tuple[int, int, int], ahead: int) -> None:
    made = make(*sizes).split(k=4).compute("S", "shared", ahead=ahead).load("B", "shared", ahead=1)  # type: ignore[operator]
    assert not faults(made.tile(m=2, n=4).to("thread"))
    assert not faults(made)


@pytest.mark.parametrize("ahead", [1, 2])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("make", [pointwise, reduced])
def test_in_registers(make: object, sizes: tuple[int, int, int], ahead: int) -> None:
    rows = tl.move().tile(m=2).to("thread")
    made = make(*sizes).split(k=4).compute("S", "register", ahead=ahead, steps=rows)  # type: ignore[operator]
    assert not faults(made.tile(m=2).to("thread"))


def test_the_ring_has_a_buffer_for_every_round_between() -> None:
    made = pointwise(16, 16, 32).split(k=4).compute("S", "shared", ahead=2).tile(m=2, n=4).to("thread")
    (kernel,) = testing.lowered(made).kernels
    (ring,) = [b for b in kernel.buffers if b.name == "S_shared"]
    assert ring.shape[0] == ring.ring == 3
    loop = next(s for s in ir.statements(kernel.body) if isinstance(s, ir.For) and s.var.name.startswith("k"))
    text = printer.to_text(loop.body)
    assert text.index("exp(") < text.index("C_state")  # what is made for a later round, before what this round reads


def test_without_a_walk_there_is_nothing_to_run_ahead_of() -> None:
    assert not faults(pointwise(9, 8, 7).compute("S", "shared", ahead=1).tile(m=2, n=4).to("thread"))


def test_a_stage_of_two_tensors() -> None:
    """Every member of a tuple has a ring of its own."""
    i, j, k = tl.axes(i=9, j=6, k=13)
    X, W = tl.input("X", tl.float32, k, j), tl.input("W", tl.float32, i, k)
    state = tl.reduce(family.welford, (0.0, 0.0, 0.0), (1.0, X[k, j], 0.0), over=j)
    _, mean, squares = tl.define(("count", "mean", "squares"), state, k)
    y = tl.define("Y", tl.sum(W[i, k] * mean[k] + squares[k], over=k), i)
    plan = tl.schedule(y).tile(i=4).to("block").accumulate("register").split(k=4)
    for memory in ("shared", "register"):
        assert not faults(plan.compute("mean", memory, ahead=1))


def test_a_stage_reads_a_tensor_that_a_load_brings_for_its_round() -> None:
    made = pointwise(16, 16, 16).split(k=4).load("A", "shared").compute("S", "shared", ahead=1)
    with pytest.raises(tl.Refusal, match="loads its source for one iteration only"):
        testing.lowered(made)


def test_all_of_a_stage_counts_in_shared_memory_and_a_threads_part_in_registers() -> None:
    """8 x 8192 elements of 4 bytes, twice, for 8 threads."""
    start = pointwise(16, 16, 1 << 14).split(k=1 << 13)
    with pytest.raises(tl.Refusal) as refused:
        testing.lowered(start.compute("S", "shared", ahead=1).tile(m=2, n=4).to("thread"), tl.load_profile("ampere"))
    assert refused.value.code == "memory-over-capacity"
    assert "the 2 stages of its buffer take 524288 bytes of shared, which has 166912" in refused.value.message
    with pytest.raises(tl.Refusal) as refused:
        testing.lowered(start.compute("S", "register", ahead=1).tile(m=2, n=4).to("thread"), tl.load_profile("ampere"))
    assert "the 2 stages of its buffer take 65536 bytes of register, which has 1020" in refused.value.message


def test_a_stage_ends_once_where_its_readers_and_its_tensor_end() -> None:
    made = reduced(37, 21, 19).split(k=4).compute("S", "shared").tile(m=2, n=4).to("thread")
    text = printer.to_text(testing.lowered(made).kernels[0])
    assert "for m in 0..min(8, 37 - block_y * 8):" in text and "for k_1 in 0..min(4, 19 - k * 4):" in text
