"""Barriers: each one needed, none missing, in control that all threads share."""

import itertools
from collections.abc import Callable, Iterator

import pytest

from tilelang.core import dtype as dt
from tilelang.core.expr import INDEX, Axis, Const, Expr, Var, index
from tilelang.core.simplify import simplify
from tilelang.errors import Refusal, Span
from tilelang.instructions.fragment import fragment
from tilelang.instructions.instruction import instruction, moves
from tilelang.instructions.operand import operand
from tilelang.lowering import ir
from tilelang.lowering.passes.barriers import insert_barriers, missing_barrier
from tilelang.lowering.passes.dependence_test import Access, Prover

T = Var("thread", INDEX, 0, 63)
S = ir.Buffer("S", dt.float32, (64,), "shared")
A = ir.Buffer("A", dt.float32, (4096,), "global", "input")
C = ir.Buffer("C", dt.float32, (4096,), "global", "output")
RING2 = ir.Buffer("R", dt.float32, (2, 64), "shared", ring=2)
RING3 = ir.Buffer("R", dt.float32, (3, 64), "shared", ring=3)
ZERO = Const(0.0, dt.float32)


def kernel(*body: ir.Stmt, threads: int = 64, buffers: tuple[ir.Buffer, ...] = (A, C, S)) -> ir.Kernel:
    return ir.Kernel("k", (2, 1, 1), threads, buffers, ir.Seq(body))


def var(name: str, extent: int) -> Var:
    return Var(name, INDEX, 0, extent - 1)


def put(buffer: ir.Buffer, *at: Expr | int, value: Expr = ZERO, line: int = 1) -> ir.Store:
    indices = tuple(i if isinstance(i, Expr) else index(i) for i in at)
    return ir.Store(buffer, indices, value, span=Span("s.py", line))


def get(buffer: ir.Buffer, *at: Expr | int, line: int = 2) -> ir.Store:
    """A read of shared memory into the output."""
    indices = tuple(i if isinstance(i, Expr) else index(i) for i in at)
    return ir.Store(C, (T,), ir.Load(buffer, indices), span=Span("s.py", line))


def shape(stmt: ir.Stmt) -> str:
    """The order of things: w, r for shared accesses, | for a barrier, brackets for control."""
    match stmt:
        case ir.Seq(body=body):
            return "".join(shape(s) for s in body)
        case ir.For(body=inner):
            return f"[{shape(inner)}]"
        case ir.If(then=then, otherwise=otherwise):
            return f"<{shape(then)}{':' + shape(otherwise) if otherwise is not None else ''}>"
        case ir.Barrier():
            return "|"
        case ir.Store(buffer=buffer):
            return "r" if buffer.memory == "global" else "w"
        case ir.Copy():
            return "c"
        case ir.Wait():
            return "."
        case _:
            return ""


def barriers(stmt: ir.Stmt) -> Iterator[ir.Barrier]:
    return (s for s in ir.statements(stmt) if isinstance(s, ir.Barrier))


def without(stmt: ir.Stmt, dropped: ir.Barrier) -> ir.Stmt:
    """The tree without one barrier (the object, not its equals)."""
    if isinstance(stmt, ir.Seq):
        return ir.Seq(tuple(without(s, dropped) for s in stmt.body if s is not dropped))
    return stmt.map_children(lambda c: without(c, dropped) if isinstance(c, ir.Stmt) else c)


def inserted(k: ir.Kernel) -> str:
    """The shape after insertion; checks that nothing is missing, and that each barrier is needed."""
    done = insert_barriers(k)
    assert not missing_barrier(done)
    for barrier in barriers(done.body):
        assert barrier.reasons
        assert missing_barrier(done.replace(body=without(done.body, barrier)))
    return shape(done.body)


def test_the_threads_of_one_warp_meet_like_any_others() -> None:
    """Warps may go apart between two statements: no order inside one is relied on."""
    lane = Var("thread", INDEX, 0, 31)
    exchanged = kernel(put(S, lane), get(S, 31 - lane), threads=32)
    assert missing_barrier(exchanged) and inserted(exchanged) == "w|r"
    assert inserted(kernel(put(S, lane), get(S, lane), threads=32)) == "wr"


def test_blocks_that_both_rounds_add_are_not_enumerated() -> None:
    """Too many blocks to try each, and none of them decides whether two rounds meet."""
    block, r = Var("block_x", INDEX, 0, 1023), var("r", 128)
    large = ir.Buffer("D", dt.float32, (1 << 24,), "global", "output")
    place = block // 8 % 32 * 8192 + block // 256 * (1 << 20)
    assert inserted(kernel(ir.For(r, index(128), put(large, place + r * 64 + T)), buffers=(large,))) == "[r]"
    assert "|" in inserted(kernel(ir.For(r, index(128), put(large, place + r * 32 + T)), buffers=(large,)))


@pytest.mark.parametrize(("factor", "columns"), [(1, 42), (4, 42), (4, 20)])
def test_digits_of_one_number_are_told_apart_as_the_number(factor: int, columns: int) -> None:
    """Rows of a fused axis: each round writes other ones, though each digit alone comes again. factor: of what no digit but the last
    sees."""
    block, r, v = Var("block_x", INDEX, 0, 8191), var("r", 64), var("v", factor)
    rows = ir.Buffer("D", dt.float32, (1 << 14, 38, columns, 4), "global", "output")
    for step, barriers_needed in ((64, False), (32, True)):
        low = block * 4096 + r * step + T
        number = simplify(low * factor + v)
        place = (low // (38 * columns // factor), number // columns % 38, number % columns)
        stores = ir.For(v, index(factor), ir.For(r, index(64), put(rows, *map(simplify, place), 0)), "unroll")
        assert ("[|" in inserted(kernel(stores, buffers=(rows,)))) == barriers_needed


@pytest.mark.parametrize("place", [(T // 6 % 2, T // 2 % 3, T % 2), (T // 12, T // 2 % 3, T % 2), (T // 6, T // 3 % 3, T % 2)])
def test_what_is_not_all_digits_of_one_number_still_meets(place: tuple[Expr, ...]) -> None:
    rows = ir.Buffer("D", dt.float32, (64, 3, 2), "global", "output")
    r = var("r", 4)
    assert "|" in inserted(kernel(ir.For(r, index(4), put(rows, *place)), buffers=(rows,)))


@pytest.mark.parametrize("count", [2, 4, 6])
def test_lanes_of_digits_meet_where_their_elements_do(count: int) -> None:
    """Some threads touch several neighbours in a row, others one each: against all elements of either, by thread."""
    rows, t = ir.Buffer("D", dt.float32, (12, 6), "shared"), Var("thread", INDEX, 0, 11)

    def access(lanes: int, shift: int, few: int, writes: bool) -> tuple[Access, set[tuple[int, int, int]]]:
        guard, number = t < few, t * lanes + shift
        places = (
            (i, (i * lanes + shift) // count, (i * lanes + shift) % count + lane) for i in range(few) for lane in range(lanes)
        )
        return Access(rows, (number // count, number % count), lanes, writes, (guard,)), set(places)

    for sizes in itertools.product((1, 2), (0, 1), (1, 3, 12), (1, 2), (0, 2), (1, 12)):
        (a, older), (b, newer) = access(*sizes[:3], True), access(*sizes[3:], False)
        meet = any(x[0] != y[0] and x[1:] == y[1:] for x in older for y in newer)
        ends_in_row = not any(n[0] > 1 and (n[1] or count % n[0]) for n in (sizes[:3], sizes[3:]))
        found = Prover(12).conflict(a, b)
        assert found == meet if ends_in_row else found >= meet


def test_rounds_beyond_all_counting_are_not_written_out() -> None:
    """Whether two rounds meet is left open where the first is one of so many that no memory holds their numbers."""
    r = var("r", 1 << 50)
    large = ir.Buffer("D", dt.float32, (1 << 56,), "global", "output")
    assert "|" in inserted(
        kernel(ir.For(r, index(1 << 50), put(large, r * r % 7 + T, value=ir.Load(large, (r + T,)))), buffers=(large,))
    )


def test_one_thread_needs_none() -> None:
    k = kernel(put(S, T), get(S, 63 - T), threads=1)
    assert insert_barriers(k) is k


def test_exchange_between_threads() -> None:
    assert inserted(kernel(put(S, T), get(S, 63 - T))) == "w|r"


def test_a_loop_without_rounds_needs_none() -> None:
    assert inserted(kernel(put(S, T), ir.For(var("i", 1), index(0), get(S, 63 - T)))) == "w[r]"


def test_own_elements_need_none() -> None:
    assert inserted(kernel(put(S, T), get(S, T))) == "wr"
    wide = ir.Buffer("S", dt.float32, (256,), "shared")
    i, j = var("i", 4), var("j", 4)
    body = ir.For(i, index(4), put(wide, T * 4 + i)), ir.For(j, index(4), get(wide, T * 4 + 3 - j))
    assert inserted(kernel(*body, buffers=(A, C, wide))) == "[w][r]"


def test_barrier_stands_before_a_loop_that_only_reads() -> None:
    j = var("j", 8)
    assert inserted(kernel(put(S, T), ir.For(j, index(8), get(S, (T + j) % 64)))) == "w|[r]"


def test_both_edges_of_a_round() -> None:
    k = var("k", 10)
    body = ir.For(k, index(10), ir.Seq((put(S, T), get(S, 63 - T))))
    assert inserted(kernel(body)) == "[|w|r]"


def test_inner_loops_of_a_round() -> None:
    k, i, j = var("k", 10), var("i", 4), var("j", 64)
    wide = ir.Buffer("S", dt.float32, (4, 64), "shared")
    round_ = ir.Seq((ir.For(i, index(4), put(wide, i, T)), ir.For(j, index(64), get(wide, 0, j))))
    assert inserted(kernel(ir.For(k, index(10), round_), buffers=(A, C, wide))) == "[|[w]|[r]]"


def test_double_buffer_takes_one_barrier_a_round() -> None:
    k = var("k", 10)
    for order in (
        (get(RING2, k % 2, 63 - T), put(RING2, (k + 1) % 2, T)),
        (put(RING2, (k + 1) % 2, T), get(RING2, k % 2, 63 - T)),
    ):
        body = put(RING2, 0, T), ir.For(k, index(10), ir.Seq(order))
        assert inserted(kernel(*body, buffers=(A, C, RING2))).count("|") == 1


def test_a_slot_refilled_after_its_read_needs_the_barrier_between() -> None:
    k = var("k", 10)
    body = put(RING2, 0, T), ir.For(k, index(10), ir.Seq((get(RING2, k % 2, 63 - T), put(RING2, k % 2, T))))
    assert inserted(kernel(*body, buffers=(A, C, RING2))) == "w|[r|w]"


def test_rings_through_a_name() -> None:
    k, slot = var("k", 10), Var("slot", INDEX)
    body = (
        put(RING3, 0, T),
        ir.For(k, index(10), ir.Seq((ir.Let(slot, (k + 1) % 3), get(RING3, k % 3, 63 - T), put(RING3, slot, T)))),
    )
    assert inserted(kernel(*body, buffers=(A, C, RING3))) == "w[|rw]"


def test_tails_skip_the_access_not_the_barrier() -> None:
    guarded = ir.If(T < 40, put(S, T)), ir.If(T < 50, get(S, 63 - T))
    assert inserted(kernel(*guarded)) == "<w>|<r>"


@pytest.mark.parametrize(
    ("control", "where"),
    [
        (lambda both: ir.If(T < 40, both, span=Span("s.py", 7)), "a branch"),
        (lambda both: ir.If(ir.Load(S, (T,)) < 0.5, both), "a branch"),
        (lambda both: ir.If(index(1) < 0, get(S, T), ir.If(T < 40, both)), "a branch"),
        (lambda both: ir.For(Var("i", INDEX), T % 3 + 1, both), "a loop whose number of iterations depends on the thread"),
    ],
    ids=["thread", "registers and memory", "else", "rounds"],
)
def test_no_barrier_is_put_where_not_all_threads_come(control: Callable[[ir.Stmt], ir.Stmt], where: str) -> None:
    with pytest.raises(Refusal, match=where) as caught:
        insert_barriers(kernel(control(ir.Seq((put(S, T), get(S, 39 - T))))))
    assert caught.value.code == "barrier-in-divergent-control"


def test_divergent_parts_that_need_none_stay_whole() -> None:
    i = Var("i", INDEX)
    body = ir.For(i, T % 3, put(S, T)), ir.If(T < 3, ir.Seq((put(S, T), get(S, T))))
    assert inserted(kernel(*body)) == "[w]<wr>"


def test_else_branches_of_disjoint_threads() -> None:
    assert inserted(kernel(ir.If(T < 32, put(S, T), put(S, T)))) == "<w:w>"
    with pytest.raises(Refusal, match="a branch"):
        insert_barriers(kernel(ir.If(T < 32, put(S, T), get(S, T - 32))))


def test_uniform_branches_hold_their_own_barrier() -> None:
    k = var("k", 10)
    body = ir.For(k, index(10), ir.If(k < 5, ir.Seq((put(S, T), get(S, 63 - T)))))
    assert inserted(kernel(body)) == "[|<w|r>]"  # what comes from the round before is met in front of the branch


def test_a_barrier_in_the_last_round_orders_all_before_it() -> None:
    """Whoever leaves the inner loop has taken the branch with the barrier, so what follows needs none."""
    k, j = var("k", 10), var("j", 4)
    barrier = ir.Barrier(("shared",))

    def counted(crossing: ir.Stmt) -> int:
        inner = ir.For(j, index(4), ir.If(j < 3, get(S, 63 - T), crossing))
        done = insert_barriers(kernel(ir.For(k, index(10), ir.Seq((put(S, T), barrier, inner)))))
        assert not missing_barrier(done)
        return shape(done.body).count("|")

    assert counted(barrier) == 2
    assert counted(ir.If(k < 9, barrier)) == 2  # after the last round of k there is no other
    assert counted(ir.If(k < 5, barrier)) == 3


def test_vector_loops_cannot_be_split() -> None:
    i = var("i", 4)
    wide = ir.Buffer("S", dt.float32, (256,), "shared")
    vector = ir.For(i, index(4), ir.Seq((put(wide, T * 4 + i), get(wide, (T * 4 + i + 4) % 256))), "vector")
    with pytest.raises(Refusal) as caught:
        insert_barriers(kernel(vector, buffers=(A, C, wide)))
    assert caught.value.code == "barrier-in-divergent-control"


def test_vector_accesses() -> None:
    wide = ir.Buffer("S", dt.float32, (256,), "shared")
    write = ir.Store(wide, (T * 4,), ir.Load(A, (T * 4,), 4))
    read_own = ir.Store(C, (T * 4,), ir.Load(wide, (T * 4,), 4))
    read_next = ir.Store(C, (T * 4,), ir.Load(wide, (T * 4 + 1,), 4))
    assert inserted(kernel(write, read_own, buffers=(A, C, wide))) == "wr"
    assert inserted(kernel(write, read_next, buffers=(A, C, wide))) == "w|r"


def test_unknown_indices_count_as_conflicts() -> None:
    ids = ir.Buffer("ids", dt.int64, (64,), "global", "input")
    gather = get(S, ir.Load(ids, (T,)))
    assert inserted(kernel(put(S, T), gather, buffers=(A, C, S, ids))) == "w|r"
    rows = ir.Buffer("S", dt.float32, (8, 64), "shared")
    own_column = get(rows, ir.Load(ids, (T,)), T)
    assert inserted(kernel(put(rows, 0, T), own_column, buffers=(A, C, rows, ids))) == "wr"


def test_workspace_within_a_block() -> None:
    block = Var("block_x", INDEX, 0, 1)
    workspace = ir.Buffer("W", dt.float32, (128,), "global", "workspace")
    body = put(workspace, block * 64 + T), ir.Store(C, (T,), ir.Load(workspace, (block * 64 + 63 - T,)))
    done = insert_barriers(kernel(*body, buffers=(A, C, workspace)))
    assert [b.memory for b in barriers(done.body)] == [("global",)]


def test_shared_bytes_are_one_memory() -> None:
    first, second = (ir.Buffer(n, dt.float32, (64,), "shared", offset=0) for n in "PQ")
    apart = ir.Buffer("Q", dt.float32, (64,), "shared", offset=256)
    assert inserted(kernel(put(first, T), get(first, T), put(second, T), buffers=(A, C, first, second))) == "wr|w"
    assert inserted(kernel(put(first, T), get(first, T), put(apart, T), buffers=(A, C, first, apart))) == "wrw"


def test_asynchronous_copies_complete_at_their_wait() -> None:
    k = var("k", 10)

    def copy(slot: Expr | int, source: Expr) -> ir.Seq:
        slot = index(slot) if isinstance(slot, int) else slot
        return ir.Seq((ir.Copy(RING3, (slot, T), A, (source,), 1, span=Span("s.py", 3)), ir.Commit()))

    body = (
        copy(0, T),
        copy(1, T + 64),
        ir.For(k, index(10), ir.Seq((ir.Wait(1), get(RING3, k % 3, 63 - T), *copy((k + 2) % 3, T + k * 64).body))),
    )
    assert inserted(kernel(*body, buffers=(A, C, RING3))) == "cc[.|rc]"


@pytest.mark.parametrize("pending", [3, 7, 13, 40])
def test_copies_may_be_in_flight_for_any_number_of_rounds(pending: int) -> None:
    k = var("k", 50)
    ring = ir.Buffer("R", dt.float32, (50, 64), "shared", ring=50)
    copied = ir.Seq((ir.Copy(ring, (k, T), A, (T + k * 64,), 1), ir.Commit(), ir.Wait(pending)))
    body = ir.For(k, index(50), copied), ir.Wait(0), get(ring, 0, 63 - T)
    assert inserted(kernel(*body, buffers=(A, C, ring))) == "[c.].|r"


def test_all_rounds_copies_are_in_flight_where_the_loop_does_not_wait() -> None:
    k = var("k", 2)
    copies = ir.For(k, index(2), ir.Seq((ir.Copy(RING3, (k, T), A, (T + k * 64,), 1), ir.Commit())))
    assert inserted(kernel(copies, ir.Wait(0), get(RING3, 0, 63 - T), buffers=(A, C, RING3))) == "[c].|r"


def test_a_copy_of_the_round_before_is_in_flight_where_the_loop_waits() -> None:
    k = var("k", 10)
    copied = ir.Seq((ir.Copy(RING2, (k % 2, T), A, (T + k * 64,), 1), ir.Commit()))
    rounds = ir.For(k, index(10), ir.Seq((ir.Wait(0), get(RING2, (k + 1) % 2, 63 - T), *copied.body)))
    assert inserted(kernel(rounds, buffers=(A, C, RING2))) == "[.|rc]"


def test_what_was_waited_for_needs_one_barrier() -> None:
    other = ir.Buffer("other", dt.float32, (64,), "shared")
    first, second = (ir.seq(ir.Copy(b, (T,), A, (T,), 1), ir.Commit(), ir.Wait(0)) for b in (S, other))
    assert inserted(kernel(first, get(S, 63 - T), second, get(S, 62 - T), buffers=(A, C, S, other))) == "c.|rc.r"


def test_a_loop_of_any_number_of_rounds() -> None:
    body = ir.Seq((put(S, T), get(S, 63 - T)))
    assert inserted(kernel(ir.For(Var("i", INDEX, 0, None), Var("n", INDEX, 0, None), body))) == "[|w|r]"
    assert inserted(kernel(put(S, T), ir.For(var("i", 1), index(0), get(S, 63 - T)), put(S, T))) == "w[r]w"


def test_prologue_and_epilogue() -> None:
    k = var("k", 10)
    round_ = ir.Seq((get(RING2, k % 2, 63 - T), put(RING2, (k + 1) % 2, T)))
    body = put(RING2, 0, T), ir.For(k, index(10), round_), get(RING2, 0, 62 - T % 2)
    assert inserted(kernel(*body, buffers=(A, C, RING2))) == "w[|rw]|r"


def test_loops_that_may_not_run() -> None:
    n = Var("n", INDEX, 0, 5)
    k = Var("k", INDEX)
    body = put(S, T), ir.For(k, n, put(RING2, 0, T)), get(S, 63 - T)
    assert inserted(kernel(*body, buffers=(A, C, S, RING2))) == "w[w]|r"


def test_reasons_name_both_accesses() -> None:
    done = insert_barriers(kernel(ir.For(var("k", 4), index(4), ir.Seq((put(S, T, line=7), get(S, 63 - T, line=9))))))
    reasons = [b.reasons for b in barriers(done.body)]
    assert reasons == [
        ("read of S[63 - thread] at s.py:9, one iteration of `k` earlier, then write of S[thread] at s.py:7",),
        ("write of S[thread] at s.py:7, then read of S[63 - thread] at s.py:9",),
    ]


def test_tree_reduction_between_threads() -> None:
    """The classic: half of the threads add, a barrier a step."""
    step = var("step", 6)
    half = index(32) >> step
    add = ir.Store(S, (T,), ir.Load(S, (T,)) + ir.Load(S, (T + half,)), span=Span("s.py", 5))
    body = put(S, T), ir.For(step, index(6), ir.If(T < half, add)), get(S, 0)
    assert inserted(kernel(*body)) == "w[|<w>]|r"


@pytest.mark.parametrize("completes, expected", [("at once", "w[|w]"), ("in-order group", "w[|w]")])
def test_an_instruction_reads_the_slot_it_is_given(completes: str, expected: str) -> None:
    """What an instruction reads of a ring does not meet the write of another slot."""
    m = Axis("m", 64)
    x, y = operand("X", dt.float32, "shared", m), operand("Y", dt.float32, "shared", m)
    semantics = instruction(f"copy_{completes[:2]}", means=moves(y[m], x[m]), operands=(x, y), level="warp", completes=completes)
    k, of, to = var("k", 10), var("X_m", 64), var("Y_m", 64)
    regions = ir.Region("X", (of,)), ir.Region("Y", (to,))
    read = ir.Instruction(semantics, (("X", RING2, (k % 2, of)), ("Y", S, (to,))), 32, Span("s.py", 8), regions)
    body = put(RING2, 0, T), ir.For(k, index(10), ir.Seq((read, put(RING2, (k + 1) % 2, T))))
    assert shape(insert_barriers(kernel(*body, buffers=(A, C, RING2, S))).body) == expected


@pytest.mark.parametrize("ring", [0, 2])
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_an_instruction_goes_on_in_the_next_row(columns: int, ring: int) -> None:
    """Each of eight threads stores two elements that follow each other, the first one at the end of a row."""
    m, t = Axis("m", 2), Var("thread", INDEX, 0, 7)
    run = fragment(1, 2, lambda _, slot: slot)
    x, y = operand("X", dt.float32, "register", m), operand("Y", dt.float32, "shared", m, fragment=run)
    semantics = instruction("store_two", means=moves(y[m], x[m]), operands=(x, y), level="thread", replace=True)
    held, rows = (
        ir.Buffer("X", dt.float32, (2,), "register"),
        ir.Buffer("R", dt.float32, (*[2][:ring], 24, columns), "shared", ring=ring),
    )

    def at(number: Expr, slot: int = 1) -> tuple[Expr, ...]:
        return (*[index(slot)][:ring], number // columns, number % columns)

    def shape_with(*read: Expr, slot: int = 1) -> str:
        store = ir.Instruction(semantics, (("X", held, (index(0),)), ("Y", rows, at(first(t)))))
        body = put(held, 0), put(held, 1), store, *(get(rows, *at(number, slot)) for number in read)
        return inserted(kernel(*body, threads=8, buffers=(C, held, rows)))

    def first(thread: Expr) -> Expr:
        return thread * max(columns, 2) + columns - 1

    assert shape_with(first(t), first(t) + 1) == "wwrr"
    assert shape_with(first(7 - t)) == shape_with(first(7 - t) + 1) == "ww|r"
    assert shape_with(first(7 - t) + 1, slot=0) == ("wwr" if ring else "ww|r")


def test_a_loop_variable_is_named_as_it_was_written() -> None:
    j = var("j", 8)
    done = insert_barriers(kernel(put(S, T), ir.For(j, index(8), get(S, (T + j) % 64))))
    (barrier,) = barriers(done.body)
    assert barrier.reasons == ("write of S[thread] at s.py:1, then read of S[(thread + j) % 64] at s.py:2",)


def test_loops_that_never_run_touch_nothing() -> None:
    i = Var("i", INDEX, 0, 0)
    assert inserted(kernel(put(S, T), ir.If(T < 3, ir.For(i, index(0), put(S, 63 - T))))) == "w<[w]>"


def test_many_blocks_are_no_reason_for_a_barrier() -> None:
    """What the block adds to both indices is the same: its millions of values are not enumerated."""
    block, group = Var("block_x", INDEX, 0, (1 << 30) - 1), Var("group", INDEX, 0, 7)
    apart, together = (Access(A, (block // 8 % 65536 * 512 + group * 64 + i,), 1, True) for i in (T, T // 2))
    assert not Prover(64).conflict(apart, apart)
    assert Prover(64).conflict(apart, together) and Prover(64).conflict(together, together)
    own = Access(A, apart.indices, 1, True, bound=frozenset((block,)))  # of a loop that is over: another value on either side
    assert Prover(64).conflict(own, own)


def test_barriers_of_a_loop_that_may_have_no_round_serve_nothing_behind_it() -> None:
    """The read of S in the branch needs one for the round before, which goes before the branch."""
    other, block = ir.Buffer("R", dt.float32, (64,), "shared"), Var("block_x", INDEX, 0, 1)
    maybe = ir.For(var("k", 2), block, ir.Seq((put(other, T), get(other, 63 - T))))
    branch = ir.If(block < 1, ir.Seq((maybe, get(S, 63 - T))))
    rounds = ir.For(var("o", 3), index(3), ir.Seq((branch, put(S, T))))
    assert shape(insert_barriers(kernel(rounds, buffers=(A, C, S, other))).body) == "[|<[w|r]r>|w]"
