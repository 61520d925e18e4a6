"""Stops on the way of a load: in shared memory before registers, in registers before shared memory."""

import pytest

import tilelang as tl
from tests.lowering.test_shares import faults
from tilelang import testing
from tilelang.lowering import ir


def product(m: int = 9, n: int = 11, k: int = 14) -> tl.Schedule:
    i, j, r = tl.axes(m=m, n=n, k=k)
    A, B = tl.input("A", tl.float32, i, r), tl.input("B", tl.float32, r, j)
    made = tl.define("C", tl.sum(A[i, r] * B[r, j], over=r), i, j)
    return tl.schedule(made).tile(m=8, n=8).to("block").accumulate("register").split(k=4)


def kernel(made: tl.Schedule, profile: str = "sapphire_rapids") -> ir.Kernel:
    (found,) = testing.lowered(made, tl.load_profile(profile)).kernels
    return found


@pytest.mark.parametrize("ahead", [0, 1])
def test_in_shared_before_registers(ahead: int) -> None:
    braces = tl.move().via("shared", layout=tl.layout("k", "m").pad(1), ahead=ahead)
    made = product().load("A", "register", steps=braces).load("B", "shared").tile(m=2, n=2).to("thread")
    assert not faults(made)
    by_hand = (
        product().load("A", "shared", layout=tl.layout("k", "m").pad(1), ahead=ahead).load("A", "register").load("B", "shared")
    )
    assert str(kernel(made).replace(body=ir.seq(), notes=())) == str(
        kernel(by_hand.tile(m=2, n=2).to("thread")).replace(body=ir.seq(), notes=())
    )


def test_steps_before_and_after_a_stop_move_to_and_from_it() -> None:
    """Owners by rows, fetched by columns."""
    i, j = tl.axes(i=10, j=16)
    X = tl.input("X", tl.float32, i, j)
    made = tl.schedule(tl.define("Y", tl.sum(X[i, j], over=j), i)).tile(i=8).to("block").accumulate("register")
    braces = tl.move().tile(i=1, j=2).to("thread").via("shared", layout=tl.layout("i", "j").pad(1)).tile(i=1, j=8).to("thread")
    assert not faults(made.load("X", "register", steps=braces).tile(i=1, j=8).to("thread"))


@pytest.mark.parametrize("ahead", [0, 1, 2])
@pytest.mark.parametrize("threads", [False, True])
def test_in_registers_before_shared(ahead: int, threads: bool) -> None:
    braces = tl.move().via("register").split(m=2)
    if threads:
        braces = tl.move().via("register").tile(m=1, k=2).to("thread").vectorize(k=2)
    made = product().load("A", "shared", steps=braces, ahead=ahead).load("B", "shared")
    assert not faults(made.tile(m=2, n=2).to("thread") if threads else made)
    assert any(b.name.startswith("A_staged") for b in kernel(made.tile(m=2, n=2).to("thread")).registers)


def test_a_stop_in_registers_is_not_copied_by_the_device() -> None:
    def copies(braces: tl.Move | None) -> list[ir.Stmt]:
        made = product(16, 16, 16).load("A", "shared", ahead=1, steps=braces).tile(m=1, n=1).to("thread")
        return [s for s in ir.statements(kernel(made, "simulated").body) if isinstance(s, ir.Copy)]

    assert copies(None)
    assert not copies(tl.move().via("register"))


@pytest.mark.parametrize("ahead", [0, 1])
def test_one_thread_of_a_warp_stores_what_all_of_them_fetched(ahead: int) -> None:
    braces = tl.move().via("register").tile(m=4).to("warp")
    made = product(16, 16).load("A", "shared", ahead=ahead, steps=braces).tile(m=1, n=1).to("thread")
    assert not faults(made)


def test_through_both() -> None:
    braces = tl.move().via("register").via("shared")
    made = product().load("A", "register", steps=braces).tile(m=2, n=2).to("thread")
    assert not faults(made)
    names = [b.name for b in kernel(made).buffers]
    assert {"A_shared"} < set(names) and any(n.startswith("A_staged") for n in names)


def test_within_a_stage() -> None:
    i, j, k = tl.axes(i=5, j=6, k=7)
    X, W, V = tl.input("X", tl.float32, i, k), tl.input("W", tl.float32, k, j), tl.input("V", tl.float32, j)
    S = tl.define("S", tl.sum(X[i, k] * W[k, j], over=k), i, j)
    made = tl.schedule(tl.define("Y", tl.relu(S[i, j]) + V[j], i, j)).tile(i=4).to("block")
    inner = tl.move().split(k=2).load("W", "shared", steps=tl.move().via("register")).tile(i=1, j=2).to("thread")
    assert not faults(made.compute("S", "shared", steps=inner).tile(i=1, j=2).to("thread"))
