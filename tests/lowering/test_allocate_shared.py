"""Places in shared memory: disjoint while alive, shared otherwise, refused over capacity."""

import pytest

from tilelang.core import dtype as dt
from tilelang.core.expr import INDEX, Binary, Const, Var, index
from tilelang.errors import Refusal, Span
from tilelang.lowering import ir
from tilelang.lowering.passes.allocate_shared import allocate_shared
from tilelang.lowering.passes.barriers import insert_barriers, missing_barrier

T = Var("thread", INDEX, 0, 63)
ZERO = Const(0.0, dt.float32)
C = ir.Buffer("C", dt.float32, (64,), "global", "output")


def shared(name: str, elements: int = 64, ring: int = 0) -> ir.Buffer:
    return ir.Buffer(name, dt.float32, (elements,), "shared", ring=ring)


def put(buffer: ir.Buffer) -> ir.Store:
    return ir.Store(buffer, (T,), ZERO, span=Span("s.py", 4))


def get(buffer: ir.Buffer) -> ir.Store:
    return ir.Store(C, (T,), ir.Load(buffer, (63 - T,)))


def loop(*body: ir.Stmt) -> ir.For:
    return ir.For(Var("k", INDEX, 0, 9), index(10), ir.Seq(body))


def placed(*body: ir.Stmt, buffers: tuple[ir.Buffer, ...], capacity_bytes: int = 1 << 12) -> dict[str, int | None]:
    kernel = ir.Kernel("k", (1, 1, 1), 64, (C, *buffers), ir.Seq(body))
    done = allocate_shared(kernel, capacity_bytes)
    used = {n.name: n for n in done.body.walk() if isinstance(n, ir.Buffer) and n.memory == "shared"}
    assert {b.name: b for b in done.shared if b.name in used} == used, "the body uses the buffers of the list"
    assert all(b.offset is not None and b.offset % 64 == 0 for b in done.shared)
    assert not missing_barrier(insert_barriers(done))
    return {b.name: b.offset for b in done.shared}


def test_lives_one_after_the_other_share_bytes() -> None:
    a, b = shared("a"), shared("b")
    assert placed(put(a), get(a), put(b), get(b), buffers=(a, b)) == {"a": 0, "b": 0}
    assert placed(put(a), put(b), get(a), get(b), buffers=(a, b)) == {"a": 0, "b": 256}


def test_a_loop_keeps_alive_what_comes_from_outside() -> None:
    a, b, c = shared("a"), shared("b"), shared("c")
    assert placed(put(a), loop(get(a), put(b), get(b)), buffers=(a, b)) == {"a": 0, "b": 256}
    assert placed(loop(put(a), get(a), put(b), get(b)), put(c), get(c), buffers=(a, b, c)) == {"a": 0, "b": 0, "c": 0}
    assert placed(loop(put(a), put(b)), get(a), get(b), buffers=(a, b)) == {"a": 0, "b": 256}


def test_a_loop_keeps_alive_what_is_read_behind_it() -> None:
    a, b = shared("A"), shared("B")
    offsets = placed(loop(put(b), get(b), put(a)), get(a), buffers=(a, b))  # B would overwrite what A was given a round before
    assert offsets["A"] != offsets["B"]


def test_a_value_from_the_round_before_lives_all_round() -> None:
    a, b = shared("a"), shared("b")
    assert placed(loop(get(a), put(a), put(b), get(b)), buffers=(a, b)) == {"a": 0, "b": 256}
    k = Var("k", INDEX, 0, 9)
    first = ir.For(k, index(10), ir.Seq((ir.If(Binary("==", k, index(0)), put(a)), get(a), put(b), get(b))))
    assert placed(first, buffers=(a, b)) == {"a": 0, "b": 256}


def test_rings_and_copies_live_all_round() -> None:
    a, b = shared("a", ring=1), shared("b")
    assert placed(loop(put(a), get(a), put(b), get(b)), buffers=(a, b)) == {"a": 0, "b": 256}
    source = ir.Buffer("A", dt.float32, (64,), "global", "input")
    a = shared("a")
    copy = ir.Copy(a, (T,), source, (T,), 1)
    assert placed(copy, ir.Commit(), put(b), get(b), ir.Wait(0), get(a), buffers=(a, b)) == {"a": 0, "b": 256}


def test_small_buffers_fill_gaps_at_aligned_places() -> None:
    a, b, c = shared("a", 100), shared("b", 64), shared("c", 65)
    assert placed(put(a), put(b), put(c), get(a), get(b), get(c), buffers=(a, b, c)) == {"a": 0, "b": 768, "c": 448}


@pytest.mark.parametrize(("ring", "help"), [(0, "smaller"), (1, "smaller"), (2, "smaller, or its `ahead`")])
def test_over_capacity_names_what_can_shrink(ring: int, help: str) -> None:
    large = ir.Buffer("a", dt.float32, (max(ring, 1), 64), "shared", ring=ring)
    store = ir.Store(large, (index(0), T), ZERO, span=Span("s.py", 4))
    with pytest.raises(Refusal) as caught:
        placed(store, buffers=(large,), capacity_bytes=128)
    assert caught.value.help == f"make the tile that fills `a` {help}"


def test_over_capacity_shows_the_table() -> None:
    a, b = shared("tile_A", 8192, ring=2), shared("b")
    with pytest.raises(Refusal) as caught:
        placed(put(a), put(b), get(a), get(b), buffers=(a, b), capacity_bytes=32768)
    error = caught.value
    assert error.code == "memory-over-capacity"
    assert error.render().replace(f"  --> {error.span}\n", "") == (
        "error[memory-over-capacity]: the kernel `k` needs 33024 bytes of shared memory for a block, but the device has 32768\n"
        "  = counterexample:\n"
        "    buffer  shape  type     bytes     at\n"
        "    tile_A  8192   float32  32768      0\n"
        "    b       64     float32    256  32768\n"
        "  = help: make the tile that fills `tile_A` smaller, or its `ahead`"
    )
    assert error.span == Span("s.py", 4)


def test_what_exceeds_a_cache_is_a_note_where_memory_is_larger() -> None:
    kernel = ir.Kernel("k", (1, 1, 1), 1, (C, shared("a", 8192)), ir.Seq((put(shared("a", 8192)), get(shared("a", 8192)))))
    done = allocate_shared(kernel, 1 << 14, 1 << 20)
    assert done.notes == ("shared memory: 32768 bytes per block, more than the 16384 bytes of the cache that should hold it",)
    assert allocate_shared(kernel, 1 << 16, 1 << 20).notes == ()
    with pytest.raises(Refusal, match="the device has 20000"):
        allocate_shared(kernel, 1 << 14, 20000)


def test_no_shared_memory_is_no_work() -> None:
    kernel = ir.Kernel("k", (1, 1, 1), 64, (C,), ir.Store(C, (T,), ZERO))
    assert allocate_shared(kernel, 0) is kernel


@pytest.mark.parametrize("second, apart", [("never", True), ("sometimes", False)])
def test_lives_under_conditions_that_exclude_each_other_need_no_barrier_between_them(second: str, apart: bool) -> None:
    a, b = (shared(n).replace(offset=0) for n in ("a", "b"))
    k = Var("k", INDEX, 0, 9)
    first = k < 5
    other = index(5) <= k if second == "never" else index(4) <= k
    meet = ir.Barrier(("shared",))
    rounds = ir.Seq((ir.If(first, put(a)), meet, ir.If(first, get(a)), ir.If(other, put(b)), meet, ir.If(other, get(b)), meet))
    kernel = ir.Kernel("k", (1, 1, 1), 64, (C, a, b), ir.For(k, index(10), rounds))
    assert missing_barrier(kernel) is not apart


def copy(buffer: ir.Buffer) -> ir.Stmt:
    return ir.Copy(buffer, (T,), C, (T,), 1)


def test_a_copy_under_way_keeps_its_bytes_until_it_is_awaited() -> None:
    a, b = shared("a"), shared("b")
    waited = (copy(a), ir.Commit(), ir.Wait(0), get(a))
    assert placed(*waited, put(b), get(b), buffers=(a, b)) == {"a": 0, "b": 0}
    pending = (copy(a), ir.Commit(), ir.Wait(1), put(b), get(b), ir.Wait(0), get(a))
    assert placed(*pending, buffers=(a, b)) == {"a": 0, "b": 256}
    c = shared("c")
    unread = (copy(a), ir.Commit(), put(b), get(b), copy(c), ir.Commit(), ir.Wait(0), get(c))
    offsets = placed(*unread, buffers=(a, b, c))
    assert offsets["a"] != offsets["b"], "it may land as late as the wait"


def test_all_copies_are_awaited_before_their_bytes_are_used_again() -> None:
    ring, result = shared("ring", 128, ring=2), shared("result")
    round_trip = loop(ir.Wait(1), get(ring), copy(ring), ir.Commit())
    kernel = ir.Kernel(
        "k", (1, 1, 1), 64, (C, ring, result), ir.Seq((copy(ring), ir.Commit(), round_trip, put(result), get(result)))
    )
    done = allocate_shared(kernel, 1 << 12)
    assert {x.name: x.offset for x in done.shared} == {"ring": 0, "result": 0}
    assert isinstance(done.body, ir.Seq) and done.body.body[3] == ir.Wait(0)
    alone = kernel.replace(body=ir.Seq((copy(ring), ir.Commit(), round_trip)))
    assert not any(s == ir.Wait(0) for s in ir.statements(allocate_shared(alone, 1 << 12).body)), (
        "nothing is used after the copies"
    )


def test_a_few_bytes_are_not_shared_since_that_takes_barriers() -> None:
    a, b = shared("a"), shared("b")
    assert placed(put(a), get(a), put(b), get(b), buffers=(a, b), capacity_bytes=1 << 14) == {"a": 0, "b": 256}


def test_a_buffer_lies_in_a_gap_that_it_fills() -> None:
    """d begins when c has ended, which lay between a and b and is as large."""
    a, b, c, d = (shared(name) for name in "abcd")
    body = (put(a), put(c), put(b), get(c), put(d), get(a), get(b), get(d))
    assert placed(*body, buffers=(a, b, c, d), capacity_bytes=1 << 12) == {"a": 0, "c": 256, "b": 512, "d": 256}


def test_a_buffer_that_nothing_touches_has_a_place_too() -> None:
    a, unused = shared("a"), shared("unused", 512)
    assert placed(put(a), get(a), buffers=(a, unused)) == {"a": 0, "unused": 0}
