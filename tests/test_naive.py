"""The naive reading of schedules agrees with what is simulated, knows nothing of the lowering, and finds planted faults."""

import ast
from pathlib import Path

import numpy as np
import pytest

import tilelang as tl
from tilelang import testing
from tilelang.errors import Refusal
from tilelang.expr import Var, index, rewrite, substitute
from tilelang.lowering import ir
from tilelang.schedule import Schedule
from tilelang.testing import checking, kernel_checks, kernels, naive, points, reach, tracing
from tilelang.testing.kernels import Claim, Kernel
from tilelang.testing.misplacing import misplacements
from tilelang.testing.reach import NotRead
from tilelang.testing.tracing import Reading, traced

PROFILE = testing.tiny_profile()


def faults(program: ir.Program, made: Schedule, profile: tl.Profile = PROFILE) -> list[str]:
    """What the naive reading of a schedule says of a program."""
    given = testing.arrays(made.computation)
    return Reading(made, profile, given).faults(traced(program, given))


def kernel(made: Schedule) -> Kernel:
    """What the reading says of the last kernel."""
    return Reading(made, PROFILE, testing.arrays(made.computation)).kernels[-1]


def who(claims: list[Claim], element: int) -> set[tuple[int, int, int]]:
    """(block, first thread, width) of those that claim an element."""
    return {
        (int(b), int(f), c.width) for c in claims for e, b, f in zip(c.element, c.block, c.first, strict=True) if e == element
    }


def test_the_reading_knows_steps_and_computations_only() -> None:
    found = set()
    for module in (kernels, naive, points, reach):
        tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
        found |= {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
        found |= {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    ours = {"tilelang.computation", "tilelang.expr", "tilelang.steps", "tilelang.testing.kernels"}
    ours |= {"tilelang.testing.points", "tilelang.testing.reach"}
    assert found == ours | {"__future__", "collections.abc", "dataclasses", "math", "numpy", "typing"}


def test_random_schedules_do_what_their_steps_say() -> None:
    count = 0
    for seed in range(600, 660):
        try:
            made = testing.draw_case(testing.Seeded(seed)).schedule
            assert not faults(testing.lowered(made), made), made
            count += 1
        except (Refusal, NotRead):
            continue
    assert count > 30


def product() -> Schedule:
    m, n, k = tl.axes(m=10, n=12, k=6)
    A, B = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n)
    made = tl.schedule(tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n))
    turned = tl.layout("n", "m")
    made = made.tile(m=4, n=8).to(tl.block).split(k=4)
    return made.load("A", tl.shared, steps=tl.move().tile(m=1).to(tl.thread)).tile(m=2, n=2).to(tl.thread, order=turned)


def test_who_has_what_is_what_the_steps_say() -> None:
    read = kernel(product())
    assert who(read.writes["global", "C"], 5 * 12 + 11) == {
        (3, 2, 1)
    }  # block (1, 1) of 3 x 2; rows 0 to 1, columns 2 to 3 of its tile
    assert who(read.reads["global", "A"], 5 * 6 + 3) == {(2, 1, 1), (3, 1, 1)}  # row 1 of the tiles of blocks 2 and 3
    assert (3, 2, 1) in who(read.reads["shared", "A"], 5 * 6 + 3) and not faults(testing.lowered(product()), product())


def test_what_is_not_read_is_said() -> None:
    i = tl.axes(i=8)
    made = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)).when(tl.can("async_copy"), tl.move())
    with pytest.raises(NotRead, match="when can"):
        kernel(made)
    before = tracing.tally.total()
    assert tracing.reading(made, PROFILE, testing.arrays(made.computation)) is None and tracing.tally.total() == before + 1


def test_results_that_stop_in_shared_memory_are_stored_by_whom_the_move_says() -> None:
    i, j = tl.axes(i=8, j=8)
    out = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i, j)[i, j] * 2, i, j)).tile(i=4).to(tl.block)
    made = out.via(tl.shared, steps=tl.move().tile(i=1, j=4).to(tl.thread)).tile(i=1, j=1).to(tl.thread)
    read = kernel(made)
    assert who(read.writes["global", "Y"], 5 * 8 + 7) == {(1, 3, 1)}  # row 1 of block 1, columns 4 to 7: the move's thread 3
    assert (1, 15, 1) in who(read.reads["global", "X"], 5 * 8 + 7) and not faults(testing.lowered(made), made)


def test_kernels_before_and_parts_of_a_reduction_are_read() -> None:
    i, j, k = tl.axes(i=4, j=8, k=4)
    X, W = tl.input("X", tl.float32, i, j), tl.input("W", tl.float32, i, k)
    P = tl.define("P", tl.sum(X[i, j], over=j), i)
    before = tl.move().tile(i=1).to(tl.block).tile(j=4).to(tl.thread)
    made = tl.schedule(tl.define("Y", P[i] * W[i, k], i, k)).compute("P", tl.global_, steps=before).tile(i=2).to(tl.block)
    assert len(Reading(made, PROFILE, testing.arrays(made.computation)).kernels) == 2 and not faults(testing.lowered(made), made)
    parts = tl.schedule(P).tile(j=2).to(tl.block)
    assert who(kernel(parts).writes["global", "P_partial"], 2 * 4 + 1) == {(2, 0, 1)}  # element 1 of the third part
    assert not faults(testing.lowered(parts), parts)


def test_a_block_that_reads_for_another_is_found() -> None:
    """Every block gives the right results where all rows are alike, whichever it reads."""
    i, j = tl.axes(i=4, j=8)
    made = tl.schedule(tl.define("Y", tl.sum(tl.input("X", tl.float32, i, j)[i, j], over=j), i)).tile(i=1).to(tl.block)
    program = testing.lowered(made)
    assert not faults(program, made)
    last = program.kernels[0]
    block = next(e for e in last.body.walk() if isinstance(e, Var) and e.name == "block_x")

    def other(e: tl.expr.Expr) -> tl.expr.Expr:
        return substitute(e, {block: index(3) - block}) if isinstance(e, ir.Load) and e.buffer.name == "X" else e

    wrong = program.replace(kernels=(last.replace(body=rewrite(last.body, other)),))
    found = faults(wrong, made)
    assert any("is read without need" in f for f in found) and any(
        "are not read by the blocks that need them" in f for f in found
    )


def test_a_slot_that_still_holds_the_round_before_is_found() -> None:
    """What a thread must find in shared memory and does not: each round reads the other slot of the ring."""
    i, j = tl.axes(i=4, j=8)
    made = tl.schedule(tl.define("Y", tl.sum(tl.input("X", tl.float32, i, j)[i, j], over=j), i)).tile(i=4).to(tl.block)
    made = made.accumulate(tl.register).split(j=4).load("X", tl.shared).tile(i=1).to(tl.thread)
    program = testing.lowered(made)
    assert not faults(program, made)
    last = program.kernels[0]

    def first(e: tl.expr.Expr) -> tl.expr.Expr:
        return e.replace(indices=(*e.indices[:-1], index(0))) if isinstance(e, ir.Load) and e.buffer.name == "X_shared" else e

    wrong = program.replace(kernels=(last.replace(body=rewrite(last.body, first)),))
    assert any("in shared memory" in f for f in faults(wrong, made))


def test_lanes_of_a_last_vector_may_be_stored_twice() -> None:
    """A last vector that is moved back stores elements of another block: only what that one stores."""
    i = tl.axes(i=10)
    made = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i)).tile(i=8).to(tl.block).vectorize(i=4)
    read = kernel(made)
    assert (1, 0, 1) in who(read.again["global", "Y"], 7) and who(read.writes["global", "Y"], 7) == {(0, 0, 1)}
    both, values = np.array([[*range(10), 6, 7], [0] * 8 + [1] * 4, [0] * 12]), np.arange(12.0)
    values[10:] = values[6:8]
    known = Reading(made, PROFILE, testing.arrays(made.computation))

    class Fixed(tracing.Trace):
        def written(self, kernel: str) -> set[str]:
            return {"Y"}

        def touched(self, kernel: str, memory: str, name: str, writes: bool) -> tuple[object, object]:
            return both, values

    assert not list(known._writes(read, "Y", Fixed()))
    values[11] += 1
    assert any("as its owner writes it" in f for f in known._writes(read, "Y", Fixed()))


@pytest.mark.parametrize(
    "text",
    [
        "input X: int8[i: 67] axis k: 64 output Y[k] = cast(X[k], uint32) & 3 | tile k=32 -> block; vectorize k=2",
        "axis k: 12 output Y[k] = 5 | tile k=8 -> block; vectorize k=16",
        "input X: float16[j: 80] output Y[j] = X[j] * 2.0 | unfuse j = (a: 5, b: 16); tile a=2 -> block; vectorize b=4",
    ],
)
def test_vectors_may_begin_at_the_lines_of_caches(text: str) -> None:
    """A block then stores elements behind its own: up to a line, and none beyond that."""
    computation, steps = text.split(" | ")
    made = tl.parse(f"computation f {{ {computation} }}\nschedule for f {{ {steps} }}").schedule()
    given, profile = testing.arrays(made.computation), tl.load_profile("zen5")
    program = testing.lowered(made, profile)
    known, trace = Reading(made, profile, given), traced(program, given)
    code, _ = trace.touched("Y", "global", "Y", True)
    (read,) = known.kernels
    assert not tracing.covered(read.writes["global", "Y"], code).all() and not known.faults(trace)
    own = max(e for c in read.writes["global", "Y"] for e, b in zip(c.element, c.block, strict=True) if b == 0)
    last = max(e for c in read.again["global", "Y"] for e, b in zip(c.element, c.block, strict=True) if b == 0)
    assert last == min(own + 64 // made.computation.outputs[0].dtype.bytes, made.computation.outputs[0].shape[0]) - 1


def test_a_read_that_has_no_effect_may_be_left_out() -> None:
    i = tl.axes(i=8)
    X, Z = tl.input("X", tl.int32, i), tl.input("Z", tl.int32, i)
    made = tl.schedule(tl.define("Y", X[i] + Z[i] * 0, i)).tile(i=2).to(tl.block)
    assert not faults(testing.lowered(made), made)


def test_what_padding_and_conditions_leave_out_is_not_needed() -> None:
    i, j = tl.axes(i=6, j=4)
    X = tl.input("X", tl.float32, t=6)
    window = tl.define("Y", tl.sum(tl.pad(X[i + j - 2], 0), over=j, where=j <= i), i)
    (needs,) = kernel(tl.schedule(window).tile(i=1).to(tl.block)).needs["global", "X"]
    assert [sorted(needs.element[needs.block == b].tolist()) for b in range(3)] == [[], [0], [0, 1, 2]]


def test_threads_of_a_role_lie_behind_those_before() -> None:
    i = tl.axes(i=8)
    made = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i))
    made = made.units(block=tl.warps(1).as_role("fetch") + tl.warps(2).as_role("work")).tile(i=8).to(tl.block)
    made = made.load("X", tl.shared, on="fetch").tile(i=4).to("work").tile(i=1).to(tl.thread)
    read, warp = kernel(made), PROFILE.warp_size
    assert who(read.writes["global", "Y"], 6) == {(0, 2 * warp + 2, 1)} and who(read.reads["global", "X"], 6) == {(0, 0, warp)}


def test_faults_in_who_does_what_are_found() -> None:
    table = misplacements(26, 0)
    print(table)
    assert table.total("found", "reported") >= 12 and table.total("missed") <= 2


def test_tiles_of_an_axis_that_unfuse_made_have_threads() -> None:
    i, j = tl.axes(i=4, j=4)
    made = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i, j)[i, j] * 2, i, j)).unfuse(i={"a": 4, "b": 1})
    made = made.tile(j=2).to(tl.block).tile(a=1).to(tl.thread)
    program = testing.lowered(made)
    assert program.kernels[0].threads == 4 and not faults(program, made)


CORRECT = {  # schedules that were judged wrong, though they do what their steps say
    "a sum read at [l, k] and at [k, l] is a kernel of its own": "input A: float32[p: 6, l: 5] input B: float32[k: 5, p: 6]"
    " C[l, k] = sum[p] A[p, l] * B[k, p] output D[l, k] = min(C[l, k], C[k, l] + 1.0) | tile l=4 -> block",
    "a sum without axes is read element for element": "input M: bool[i: 8] output G[] = not (any[i] M[i])"
    " | accumulate in register",
    "a stage that is an output, which another output reads": "input X: float32[i: 6, n: 8] output D[i, n] = X[i, n] * 2.0"
    " output Y[i, n] = D[i, 7 - n] | tile i=4 -> block; split n=4; compute D in shared; tile i=1 -> thread",
    "a stage of which only the second member is read": "input X: float32[m: 6, l: 4] combiner both(a: int64, p: float32;"
    " b: int64, q: float32) { a + b, min(p, q) identity 0, inf } A[l], B[l] = reduce both[m] (1, X[m, l])"
    " output Y[l] = B[l] + 1.0 | tile l=2 -> block; compute A in shared; tile l=1 -> thread",
    "a stage that a later stage reads which has a kernel of its own": "input X: float32[m: 6, n: 8] C[m] = sum[n] X[m, n]"
    " output E[m, n] = X[m, 0] + C[m] output G[n, m] = E[m, n] | compute E in global; tile m=1 -> thread 3;"
    " compute C in register; compute E in register",
    "a region of rows that only some blocks have": "input X: float32[i: 5, k: 7] input W: float32[k: 7, j: 6]"
    " S[i, j] = sum[k] X[i, k] * W[k, j] output Y[i, j] = max(S[i, j], 0.0) | tile i=4 -> block;"
    " compute S in shared { split k=2; load W in shared; tile i=1 j=2 -> thread }; tile i=1 j=2 -> thread",
    "a stage that is made a part of its sum at a time": "input X: float32[i: 5, k: 7] S[i] = sum[k] X[i, k]"
    " output Y[i] = S[i] * 2.0 | tile i=4 -> block; compute S in shared { split k=2; accumulate in shared }; tile i=1 -> thread",
    "a load that runs ahead of another": "input X: float32[i: 8, k: 12] output Y[i] = sum[k] X[i, k] | tile i=8 -> block;"
    " accumulate in register; split k=4; load X in shared { tile i=1 k=4 -> thread };"
    " load X in shared ahead 1 { tile i=2 k=2 -> thread }; tile i=1 -> thread",
    "two loads, the second running ahead, outside of any walk": "input X: float32[i: 8, k: 12] output Y[i] = sum[k] X[i, k]"
    " | tile i=8 -> block; accumulate in register; load X in shared { tile i=1 k=4 -> thread };"
    " load X in shared ahead 1 { tile i=2 k=2 -> thread }; tile i=1 -> thread",
    "a load of what another kernel made before it is computed again": "input X: float32[k: 4, i: 6] S[k] = sum[i] X[k, i]"
    " output Y[k] = S[k] * pad(S[k - 1], 0.0) output F[k, i] = S[k] + X[k, i] | tile k=4 -> block; load S in shared;"
    " compute S in register",
    "a stage that is read at remainders": "axis i: 8 input X: float32[n: 16] S[n] = X[n] * 2.0 output Y[n] = sum[i] S[(i + 5) % 16]"
    " | tile n=8 -> block; compute S in shared; tile n=1 -> thread",
    "registers for reads of several forms": "input X: float32[n: 48] output Y[n] = X[n * 4] + X[n + 16] axis n: 8"
    " | tile n=8 -> block; load X in register; tile n=2 -> thread",
    "walks over pieces longer than what they are in": "input X: int32[i: 8, k: 5] E[i, k] = X[i, k] * 2"
    " output Y[k, i] = E[k + 3, k] | tile k=1 i=5 -> thread; load X in shared; split k=8; split k=2; split k=1 i=2;"
    " compute E in shared",
    "a load in the walk of a sum, which a value of the whole sum reads": "input X: float32[m: 17, k: 8] input B: float32[m: 17]"
    " output Y[m] = (sum[k] X[m, k]) * B[m] | tile m=16 -> block; split k=4; load B in shared; tile m=3 -> thread",
    "a kernel before that of an output that it reads": "input V: float32[n: 4] input B: float32[p: 5] input X: float32[n: 4, p: 5]"
    " T[] = sum[n] V[n] output G[n] = V[n] + 1.0 output D[p] = T[] * B[p] output Z[n] = sum[p] D[p] * X[n, p]"
    " | compute Z in global { tile n=1 -> block }",
    "a stop of an output that is a stage, too": "input X: uint32[n: 8, l: 8] output A[l, n] = X[l, n] * 2"
    " output B[l, n] = pad(A[n - 1, n], 7) + X[n, l] output C[n, l] = B[3, n] | tile l=2 -> block; via shared;"
    " compute B in shared; tile n=4 l=1 -> thread",
    "a sum that joins no kernel, for the output pads it, too": "axis n: 5 axis k: 4 axis q: 3 axis j: 4 input X: float32[n: 6, q: 3]"
    " input B: float32[k: 4, j: 4] G[n, k] = sum[q] X[n, q] output Z[k, n] = pad(G[n, n + 1], 0.0) + G[n, k]"
    " output Y[k, n] = max[j] B[k, j] | tile k=1 n=5 -> block",
    "a stage at remainders that begins within its tensor": "axis n: 3 axis j: 8 input X: float32[a: 12, n: 3]"
    " S[j] = sum[n] pad(X[j + n - 1, n], 0.0) output Y[j] = S[j % 8] + S[j] | tile j=4 -> block;"
    " compute S in shared { tile j=8 n=4 -> thread; vectorize j=4 }; split j=1; tile j=4 -> thread",
    "an index that goes down along a fused axis": "input X: int32[p: 7] input Z: int32[q: 24] output Y[q, p] = Z[q] + X[6 - p]"
    " | fuse pq=(p, q); tile pq=3 -> block; tile pq=4 -> thread order (pq); load X in register",
    "a fused reduction that is empty": "input X: int32[i: 4, j: 0, k: 4] output Y[i] = max[j, k] X[i, j, k]"
    " | fuse jk=(j, k); tile i=3 jk=2 -> block order (jk, i); accumulate in shared; split jk=2; tile i=2 -> thread",
    "parts of a reduction that is computed where nothing reads it": "axis j: 4 axis n: 6 axis p: 17 input B: float32[d: 21, e: 7]"
    " S[j] = (sum[n] B[n, j]) + 1.0 output Y[j] = exp(max[p] min(S[j], B[p, 0])) | tile p=8 -> block; compute Y in register;"
    " compute S in register",
    "registers of threads that take tiles of two axes in rounds": "input X: float32[i: 1, j: 2] output Y[i, j] = pad(X[i, j - 1], 0.0)"
    " | tile i=2 j=8 -> block; load X in register; tile i=5 j=1 -> thread 5 order (j, i)",
    "a stage in a sum's walk, which a value beside the sum finds where a kernel made it": "axis i: 4 input X: int32[k: 6, i: 4]"
    " C[k] = max[i] X[k, i] output Y[k] = sum[i] (X[k, i] + C[k]) output Z[k] = abs(C[k]) output E[k, i] = X[k, i] * C[k]"
    " | compute E in global; tile k=4 -> block; accumulate in register; split i=2; compute C in register",
    "an output with steps of its own, which the last kernel makes again": "input X: int32[j: 5, k: 13] output Y[] = max[j, k] X[j, k]"
    " | accumulate in register; compute Y in global { tile k=1 j=8 -> thread; load X in register }",
    "a kernel of which one of two states is an output": "combiner both(a: int32, p: int32; b: int32, q: int32) { a + b, min(p, q)"
    " identity 0, 100 } axis p: 4 axis k: 4 axis j: 2 axis n: 6 axis m: 3 input B: int32[b: 8] input M: int32[m: 3]"
    " output D[p, k], E[p, k] = reduce both[j, n] (B[3 - p], cast(j, int32)) only E output F[k, p] = prod[m] M[m]"
    " output Z[k, p] = F[k, p] + D[p, k] | fuse jn=(j, n); tile p=2 k=4 -> block; load F in shared; accumulate in register; split jn=4",
    "reads of which one moves with the blocks and one does not": "input A: float32[a: 11, b: 8] axis n: 8 axis m: 2"
    " output F[n, m] = A[n, 0] + A[m * 2, 0] | tile n=4 -> block; split m=4; load A in shared; tile n=1 -> thread",
    "sums over several axes, of which others need some whole": "input X: float32[n: 6, q: 8] input Z: float32[l: 5, q: 8] axis i: 3"
    " output F[q] = cast(sum[n] X[n, q], float16) output Y[q] = min[i] (X[i, q] * F[q]) output G[q] = 0.0 - (max[l] Z[l, q])"
    " | tile i=2 -> block; accumulate in register",
    "what a warp without tiles puts in shared memory": "input A: float32[p: 5, l: 5] input B: float32[p: 5, n: 16]"
    " output C[l, n] = sum[p] A[p, l] * B[p, n] | units block = 4 warp; split n=12; tile l=4 n=5 -> warp 3; accumulate in register;"
    " split l=4 p=5 n=3; load B in shared; split l=4 p=5 n=3",
    "a block behind the end of a sum, whose part is the identity": "input A: float32[m: 2, k: 7] output Y[k] = sum[m] A[m, k]"
    " | split m=7; tile m=5 -> block; accumulate in register; tile k=1 -> thread",
    "a sum that another one needs whole, beside which the other has no need of a kernel": "axis p: 3 axis m: 12"
    " input B: uint16[m: 12, p: 3] D[] = sum[p, m] B[m, p] output C[] = D[] + 1 output E[] = min(argmax[m] D[], 2)"
    " | accumulate in register; split m=4",
    "registers for what is read at remainders through a definition": "input A: float32[m: 24] axis p: 32 Z[m] = abs(A[m])"
    " output C[p] = Z[p % 24] + pad(Z[p + 1], 0.0) | tile p=32 -> block; load A in register; tile p=1 -> thread",
    "registers for what is read at quotients through a definition": "input A: float32[m: 34] axis p: 32 Z[m] = abs(A[m])"
    " output C[p] = Z[p // 2] + Z[p + 1] | tile p=32 -> block; load A in register; tile p=4 -> thread",
    "registers for what another output reads at remainders through an output": "axis i: 16 axis p: 8 input T: int32[a: 8] in 0 .. 6"
    " input A: int32[b: 128, c: 8] output Y[i, p] = A[i * 8 + p, T[p] + 1] output Z[p, i] = Y[p, (p + 0) % 8] * Y[i, p]"
    " | tile i=4 p=2 -> block; split p=2 i=4; tile i=2 p=4 -> thread; load T in register",
    "a stop of a stage at remainders": "axis q: 17 axis j: 6 input A: int32[q: 17, j: 6] output G[q, j] = A[q, j] + 1"
    " output Z[q, j] = G[q, q % 6] + 2 | tile q=2 j=8 -> block; compute G in shared layout (j, q); split j=8;"
    " compute G in shared { tile j=8 q=32 -> thread; via shared; vectorize j=2 }; tile q=32 j=8 -> thread",
    "a stage for a cut that is longer than the piece it is in": "axis p: 17 input A: int32[d: 6] E[p] = A[p % 5]"
    " Y[p] = E[p] + where(p != 4, E[p], 2) output C[p] = Y[p] + 1 | tile p=32 -> block; split p=5; load A in shared; split p=16;"
    " compute Y in shared { tile p=4 -> thread }; tile p=5 -> thread",
    "registers for reads that move apart through a definition": "input A: float32[m: 90] axis p: 32 Z[m] = abs(A[m])"
    " output C[p] = Z[p * 2] + Z[p + 1] | tile p=32 -> block; load A in register; tile p=4 -> thread",
    "two sums over different axes, where all of the first is needed": "axis q: 5 axis n: 2 axis j: 7 input A: float32[a: 2]"
    " input B: float32[j: 7, q: 5] output F[q] = sum[n, j] A[n] output Z[q] = expm1(sum[j] min(F[q], B[j, q]))"
    " | tile q=2 j=4 -> block",
    "parts of a reduction that a definition written into the output reads": "input A: bfloat16[i: 1, l: 2]"
    " input B: bfloat16[p: 2, i: 1] C[l, p] = (sum[i] A[i, l] * B[p, i]) + 1.0 output D[l, p] = exp2(C[l, p])"
    " | tile l=4 i=8 -> block; vectorize l=16",
    "a stage that is computed again below a load for it": "axis n: 4 axis k: 1 axis l: 33 input A: int32[a: 4]"
    " Z[k, l] = A[k // 3] + l C[l] = where(l < 4, pad(Z[l, l], 1), 2) output E[n, k, l] = Z[k, l] * C[32 - k]"
    " | tile k=2 l=8 -> block 5; compute C in register; tile l=16 -> thread; load A in register; compute C in register",
    "registers for what is read where another tensor says": "axis m: 4 axis n: 17 input T: uint32[a: 17] in 0 .. 15"
    " input B: float32[b: 3, c: 15] output C[m, n] = pad(B[m - 1, T[n]], 0.0) | units block = 4 thread; tile n=1 m=8 -> block;"
    " load B in register; split n=1; tile n=16 -> thread",
    "a state of the output that a stage needs whole": "axis m: 4 axis k: 3 input B: float32[b: 3, m: 4] E[m] = min[k] B[k, m]"
    " G[m, k] = E[k] + 1.0 output C[m] = E[m] + pad(G[m, m], 0.0) | tile m=4 -> block; compute G in register",
}


CORRECT_ON_DEVICES = {  # the same, after the profile for which they are lowered
    "more blocks than a cluster has, for its tiles": "hopper | input B: float32[b: 10, a: 161] axis n: 33 axis q: 7"
    " output Y[n, q] = pad(B[q + 2, n * 5 - 1], -2.0) | units cluster = 4 block; tile q=3 -> cluster; tile q=2 n=8 -> block 6;"
    " split n=2; load B in shared ahead 2 { tile a=2 b=32 -> thread }; tile q=8 n=2 -> thread",
    "blocks that take the numbers of an order in rounds": "cdna3 | input X: int16[a: 5, b: 3, j: 5] axis t: 15"
    " output Y[t, j] = X[t // 3, t % 3, j] | units block = 1 thread; tile t=5 j=6 -> block 5 order (t, j / 2 ^ t % 4, j % 2);"
    " via shared; tile t=1 j=7 -> thread",
    "a stage cut wider than its piece, which holds more than is read": "zen5 | input X: int32[i: 1, j: 2]"
    " S[i, j] = where(j > i, X[i, j], 5) output Y[i, j] = S[i, j] + 1 | tile j=1 -> thread; split j=5; load X in shared ahead 1;"
    " compute S in shared",
    "a reduction read at the kernel's axes through one that is read at others": "zen5 | input B: float32[n: 9, m: 8] axis n: 9"
    " axis m: 8 E[n] = prod[m] B[n, m] C[m, n] = E[n] * B[n, m] output D[n] = E[n] + pad(C[n - 1, n], 1.0) | tile n=4 -> block",
    "an output that is a sum, which another reads turned": "zen5 | input A: float32[k: 5, j: 3, p: 3]"
    " output C[j, p] = sum[k] A[k, j, p] output D[j, p] = C[p, j] + 1.0 | tile j=2 -> block",
    "two loads of a role": "hopper | input B: float32[b: 16, a: 8] axis n: 16 axis m: 8 output D[n, m] = B[n, m] + 1.0"
    " | units block = 2 warp as producer + 2 warp as consumer; tile n=5 -> block;"
    " load B in shared on producer { tile b=4 -> thread }; load B in shared layout (a, b) on producer; tile n=1 -> consumer",
    "a load in global memory before a kernel of its own": "zen5 | input A: int32[k: 2, l: 2] input B: int32[q: 1, k: 2]"
    " output C[l, q] = sum[k] A[k, l] * B[q, k] | load A in global layout (l, k); compute C in global { tile q=3 -> warp }",
    "registers at quotients of quotients, through a definition": "ampere | input B: float32[b: 33, p: 8] axis l: 33 axis q: 1"
    " axis m: 8 Y[l, p] = abs(B[32 - l, p]) G[q] = sum[p] Y[q * 2, p] output Z[m] = G[m // 8] | tile m=3 -> block 2;"
    " load B in register { tile b=4 -> thread }; compute G in register",
    "a move whose vectors are wider than its tiles, by way of registers": "zen5 | input A: int32[i: 16, n: 8]"
    " input B: int32[k: 16, i: 16] output C[n, k] = sum[i] A[i, n] * B[k, i] | tile n=1 k=4 -> block; accumulate in register;"
    " split i=2; load B in shared { load B in register; tile k=2 i=8 -> thread; vectorize k=4 }; tile n=2 k=2 -> thread",
    "a stage that the last round of a sum needs less of": "cdna3 | input X: int8[i: 4, j: 13] P[i, j] = X[i, j]"
    " output Y[i] = sum[j] P[i, j] | tile j=4 -> block; accumulate in shared; split j=3;"
    " compute P in register { tile j=1 -> thread; load X in shared }",
    "threads beyond the tiles, in an order": "ampere | axis n: 13 axis i: 24 input A: int32[a: 14, b: 24] input M: int32[c: 24, d: 16]"
    " output Z[i, n] = A[n, i] + 1 output Y[n, i] = M[23 - i, n + 3] | units block = 1 warp; tile n=8 -> block;"
    " tile n=4 i=5 -> thread order (i, n); load M in register; load A in register",
    "a cluster's blocks that take tiles in rounds, the last of them none": "hopper | axis k: 40 axis q: 6 input B: float32[b: 6]"
    " output F[k, q] = B[q] + 1.0 | units cluster = 2 block; tile k=2 -> cluster; tile k=4 q=2 -> block; tile k=2 q=8 -> warp;"
    " load B in register { split b=1 }",
    "results between a state in shared memory and their stop": "hopper | axis n: 4 axis l: 16 input A: int16[a: 31, b: 4]"
    " output E[l] = min[n] A[l * 2, n] output Z[l] = A[(l + 11) % 31, l % 4] % 7 | tile l=8 -> block;"
    " accumulate in shared { via shared pad 1; tile l=2 -> thread; vectorize l=4 }; tile l=2 n=4 -> thread",
}


@pytest.mark.parametrize("what", CORRECT | CORRECT_ON_DEVICES)
def test_correct_kernels_are_not_judged_wrong(what: str) -> None:
    profile, computation, steps = ("", *CORRECT[what].split(" | ")) if what in CORRECT else CORRECT_ON_DEVICES[what].split(" | ")
    made = tl.parse(f"computation f {{ {computation} }}\nschedule for f {{ {steps} }}").schedule()
    on = tl.load_profile(profile) if profile else PROFILE
    assert not faults(testing.lowered(made, on), made, on)


def test_blocks_that_take_tiles_in_rounds_are_whole_clusters() -> None:
    profile = tl.load_profile("hopper")
    made = tl.parse(
        "computation f { input X: float32[m: 32] output Y[m] = X[m] * 2.0 }"
        " schedule for f { units cluster = 6 block; tile m=4 -> block 3 }"
    ).schedule()
    given = testing.arrays(made.computation)
    read = Reading(made, profile, given)
    assert who(read.kernels[0].writes["global", "Y"], 31) == {(1, 0, 1)}
    assert not read.faults(traced(testing.lowered(made, profile), given))


def test_a_grid_of_two_axes_has_whole_clusters_along_the_first() -> None:
    """Three tiles of m are four blocks, and the next tile of n begins behind them."""
    profile = tl.load_profile("hopper")
    made = tl.parse(
        "computation f { input X: float32[n: 8, m: 6] output Y[n, m] = X[n, m] * 2.0 }"
        " schedule for f { units cluster = 2 block; tile n=4 m=2 -> block }"
    ).schedule()
    given = testing.arrays(made.computation)
    read = Reading(made, profile, given)
    assert {block for block, *_ in who(read.kernels[0].writes["global", "Y"], 24)} == {4}
    assert not read.faults(traced(testing.lowered(made, profile), given))


@pytest.mark.parametrize("place", ["register", "shared"])
def test_a_block_that_only_makes_a_cluster_whole_may_read_anything(place: str) -> None:
    """It loads what the first block does, and stores nothing."""
    profile = tl.load_profile("hopper")
    made = tl.parse(
        "computation f { input A: float32[d: 4] axis q: 2 axis j: 16 output F[j, q] = cos(A[j % 4]) }"
        f" schedule for f {{ units cluster = 4 block; tile q=8 -> block; load A in {place}; tile j=5 -> thread }}"
    ).schedule()
    given = testing.arrays(made.computation)
    assert not Reading(made, profile, given).faults(traced(testing.lowered(made, profile), given))


def test_blocks_have_the_order_of_their_step_where_a_reduction_is_empty() -> None:
    """The grid had its own order then: right results, by other blocks."""
    made = tl.parse(
        "computation f { input A: float32[i: 4, j: 0] input B: float32[k: 6, j: 0] output C[k, i] = sum[j] (A[i, j] + B[k, j]) }"
        " schedule for f { tile j=12 k=3 i=1 -> block order (i, k) }"
    ).schedule()
    # Element 1 is (k, i) = (0, 1): the two tiles of k go before it.
    assert {block for block, *_ in who(kernel(made).writes["global", "C_partial"], 1)} == {2}
    assert not faults(testing.lowered(made), made)


def test_a_cluster_has_as_many_blocks_as_tiles() -> None:
    """Also where fewer of them take the tiles."""
    i, profile = tl.axes(i=17), tl.load_profile("hopper")
    made = (
        tl.schedule(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i))
        .tile(i=8)
        .to(tl.cluster)
        .tile(i=1)
        .to(tl.block, count=2)
    )
    given = testing.arrays(made.computation)
    read = Reading(made, profile, given)
    assert who(read.kernels[0].writes["global", "Y"], 8 + 3) == {(8 + 3 % 2, 0, 1)}
    assert not read.faults(traced(testing.lowered(made, profile), given))


def test_what_only_other_data_shows_is_needed() -> None:
    """A least sign of many hardly ever depends on one element; where all are ones it does."""
    i, j = tl.axes(i=2, j=9)
    least = tl.define("Y", tl.min(tl.where(tl.input("X", tl.int32, i, j)[i, j] > 0, 1, 0), over=j), i)
    made = tl.schedule(least).tile(i=1).to(tl.block)
    program = testing.lowered(made)
    assert not faults(program, made)

    def again(e: tl.expr.Expr) -> tl.expr.Expr:
        """Element 0 in place of the last one."""
        if not (isinstance(e, ir.Load) and e.buffer.name == "X"):
            return e
        return e.replace(indices=(e.indices[0], e.indices[1] % 8))

    (only,) = program.kernels
    wrong = program.replace(kernels=(only.replace(body=rewrite(only.body, again)),))
    given = testing.arrays(made.computation)
    given["X"][...] = -1
    read = Reading(made, PROFILE, given)
    assert any("are not read by the blocks that need them" in f for f in read.faults(traced(wrong, given)))


def test_a_kernel_by_other_steps_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """It gives the right results, but its blocks have other rows."""
    i = tl.axes(i=16)
    whole = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i))
    made, other = (tl.compile(whole.tile(i=n).to(tl.block), tl.target("cuda", profile="ampere")) for n in (4, 8))
    given = testing.arrays(made.computation)
    assert not kernel_checks.against_steps(made, given)
    monkeypatch.setattr(kernel_checks, "as_threads", lambda kernel: other.program)
    assert any("is written by" in f for f in kernel_checks.against_steps(made, given))


def test_check_schedule_holds_a_schedule_against_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    i = tl.axes(i=16)
    whole = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i))
    made, other = whole.tile(i=4).to(tl.block), testing.lowered(whole.tile(i=8).to(tl.block))
    given = testing.arrays(made.computation)
    assert not testing.check_schedule(made, given)
    monkeypatch.setattr(checking, "lowered", lambda schedule, profile: other)
    (fault,) = [f for f in testing.check_schedule(made, given) if "is written by" in f]
    assert fault.startswith("steps: Y: element 8 of Y")


def test_a_fill_is_known_as_its_type_holds_it() -> None:
    """0.24 is another number in float32."""
    text = """computation Z {
  input X: float32[h: 5, w: 5]
  axis p: 5
  axis q: 5
  axis r: 3
  output Z[p, q] = sum[r] pad(X[p + r - 1, q], 0.24)
}
schedule for Z {
  tile p=4 q=4 -> block
  load X in shared
  tile p=1 q=1 -> thread
}
"""
    schedule = tl.parse(text).schedule()
    assert (
        testing.check_schedule(
            schedule, testing.arrays(schedule.computation), profile=tl.target("cuda", profile="ampere").profile
        )
        == []
    )
