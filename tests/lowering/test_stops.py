"""Stops on the way of a load: in shared memory before registers, in registers before shared memory."""

import pytest

import tilelang as tl
from tests.lowering.test_shares import faults
from tilelang import testing
from tilelang.errors import Refusal
from tilelang.lowering import ir, printer
from tilelang.testing.tracing import traced


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


def way_back(memory: str, braces: tl.Move) -> tl.Schedule:
    i, j, k = tl.axes(i=16, j=4, k=8)
    A, B = tl.input("A", tl.float32, i, k), tl.input("B", tl.float32, k, j)
    made = tl.schedule(tl.define("C", tl.sum(A[i, k] * B[k, j], over=k), i, j)).tile(i=16).to("block")
    return made.accumulate(memory, steps=braces).tile(i=4, j=2).to("thread")


@pytest.mark.parametrize("memory", ["register", "shared"])
def test_steps_after_a_stop_of_results_move_them_on(memory: str) -> None:
    """States in shared memory went to the stop by them, and from there on by the default steps."""
    made = way_back(memory, tl.move().via("shared").tile(i=2, j=2).to("thread"))
    given = testing.arrays(made.computation)
    code, _ = traced(testing.lowered(made), given).touched("C", "global", "C", True)
    thread = {int(e): int(t) for e, _, t in code.T}  # 8 x 2 tiles for 8 threads, in rounds
    assert [thread[e] for e in (0, 1, 2, 4, 8, 32)] == [0, 0, 1, 0, 2, 0] and not faults(made)


def test_steps_before_a_stop_or_its_own_move_states_in_shared_memory_there() -> None:
    by_rows, on = tl.move().tile(i=2, j=4).to("thread"), tl.move().tile(i=2, j=2).to("thread")
    before = way_back("shared", by_rows.via("shared").tile(i=2, j=2).to("thread"))
    inside = way_back("shared", tl.move().via("shared", steps=by_rows).tile(i=2, j=2).to("thread"))
    plain = way_back("shared", tl.move().via("shared").tile(i=2, j=2).to("thread"))
    one, other, default = (printer.to_text(testing.lowered(made)) for made in (before, inside, plain))
    assert one == other != default and not faults(before)
    with pytest.raises(Refusal, match="two sets of steps") as refused:
        testing.lowered(way_back("shared", by_rows.via("shared", steps=on)))
    assert refused.value.code == "via-steps"
    with pytest.raises(Refusal, match="takes no steps here") as refused:
        testing.lowered(way_back("register", tl.move().via("shared", steps=on)))
    assert refused.value.code == "via-steps"


@pytest.mark.parametrize(("memory", "stops"), [("register", 1), ("shared", 2)])
def test_registers_are_a_stop_on_the_way_to_shared_memory_alone(memory: str, stops: int) -> None:
    braces = tl.move()
    for _ in range(stops):
        braces = braces.via("register")
    with pytest.raises(tl.Refusal, match="only possible in a load in shared, and once") as caught:
        product().load("A", memory, steps=braces).check()
    assert caught.value.code == "via-memory"
