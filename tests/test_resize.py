"""A computation at other extents is the same computation: pads still pad, readers stay inside, schedules still hold."""

import numpy as np
import pytest

import tilelang as tl
from tilelang.computations import functions as F
from tilelang.errors import ComputationError
from tilelang.schedules.resize import resize, resize_schedule, small_extents, with_short_loops


def stencils() -> tl.Computation:
    """Three stencils in a row: one padded, one inside of what is padded, one over both ends."""
    i, j, r, s = tl.axes(i=500, j=498, r=3, s=5)
    X = tl.input("X", tl.float32, n=500)
    first = tl.define("first", tl.sum(tl.pad(X[i + r - 1]), over=r), i)
    second = tl.define("second", tl.max(first[j + r], over=r), j)
    third = tl.define("third", second[j] + tl.sum(tl.pad(first[j + s - 2]), over=s), j)
    return tl.computation("stencils", (third, second))


def test_extents_keep_their_distance_from_readers() -> None:
    small = resize(stencils(), {"i": 12, "j": 10})
    assert {t.name: t.shape for t in (*small.inputs, *small.outputs)} == {"X": (12,), "third": (10,), "second": (10,)}
    assert small.tensor("first").shape == (12,)
    whole = stencils()
    assert resize(whole, {}).text == whole.text


def test_what_is_read_is_made_long_enough() -> None:
    small = resize(stencils(), {"i": 3, "j": 10})
    assert small.tensor("first").shape == (12,) and small.inputs[0].shape == (12,)


def test_a_resized_computation_computes_the_same() -> None:
    """Elements far from both ends are those of the whole computation."""
    whole, small = stencils(), resize(stencils(), {"i": 40, "j": 38})
    x = np.random.default_rng(0).standard_normal(500).astype(np.float32)
    all_, some = whole.evaluate(X=x), small.evaluate(X=x[:40])
    for name, array in some.items():
        assert np.array_equal(array[:34], all_[name][:34]), name
        assert array.shape == (38,)


def test_gathers_types_members_and_licences_stay() -> None:
    i, k = tl.axes(i=300, k=400)
    table, ids = tl.input("table", tl.float16, v=1000, k=400), tl.input("ids", tl.int32, i, range=(0, 1000))
    x = tl.cast(table[ids[i], k], tl.float32)
    both = tl.reduce(lambda p, q: (p[0] + q[0], F.maximum(p[1], q[1])), (0.0, float("-inf")), (x, x), k)
    best, where = tl.define(("best", "where"), both, i)
    total = tl.define("total", tl.sum(table[ids[i], k], over=k, where=k < 7), i, allow="reorder")
    small = resize(tl.computation("lookup", (where, total, best)), {"i": 5, "k": 9})
    assert [t.name for t in small.outputs] == ["where", "total", "best"]
    assert {t.name: (t.shape, t.range) for t in small.inputs} == {"table": ((1000, 9), None), "ids": ((5,), (0, 1000))}
    assert small.tensor("total").definition.allow == ("reorder",)  # type: ignore[union-attr]
    arrays = {"table": np.ones((1000, 9), np.float16), "ids": np.arange(5, dtype=np.int32)}
    assert small.evaluate(**arrays)["total"].tolist() == [7.0] * 5


def test_a_condition_that_names_an_extent_keeps_the_read_inside() -> None:
    i = tl.axes(i=1000)
    X = tl.input("X", tl.float32, n=900)
    y = tl.define("Y", F.where(i < 900, X[F.minimum(i, 899)], 0.0), i)
    guarded = tl.define("Z", F.where(i < 900, X[i], 0.0), i)
    for tensor in (y, guarded):
        (x,) = resize(tl.computation("f", tensor), {"i": 50}).inputs
        assert x.shape == (50,) or x.shape == (900,)


def test_what_cannot_be_resized_is_an_error() -> None:
    i, j = tl.axes(i=64, j=64)
    X = tl.input("X", tl.float32, n=64)
    y = tl.define("Y", X[63 - i] * j, i, j)
    with pytest.raises(ComputationError) as caught:
        resize(tl.computation("f", y), {"i": 100})
    assert caught.value.code == "read-outside"


# ---------------------------------------------------------------- schedules


def product(m: int = 4096, n: int = 4096, k: int = 4096) -> tl.Computation:
    m_, n_, k_ = tl.axes(m=m, n=n, k=k)
    A, B = tl.input("A", tl.float32, m_, k_), tl.input("B", tl.float32, k_, n_)
    return tl.computation("product", tl.define("C", tl.sum(A[m_, k_] * B[k_, n_], over=k_), m_, n_))


def tiled() -> tl.Schedule:
    return (
        tl.schedule(product())
        .tile(m=64, n=64).to(tl.block)
        .accumulate(tl.register)
        .split(k=16)
        .load("A", tl.shared, ahead=2)
        .load("B", tl.shared)
        .tile(m=8, n=4).to(tl.thread)
    )  # fmt: skip


def test_small_extents_have_whole_and_partial_tiles_and_rounds_enough() -> None:
    ragged = small_extents(tiled())
    assert ragged == {"m": 64 + 8 + 1, "n": 64 + 4 + 1, "k": 16 * 4 + 1}
    assert small_extents(tiled(), ragged=False) == {"m": 128, "n": 128, "k": 64}
    odd = tl.Schedule(product(1000, 1001, 70), tiled().steps)
    assert small_extents(odd, ragged=False) == {"m": 64 + 1000 % 64, "n": 64 + 1001 % 64}


@pytest.mark.parametrize("sizes", [(16, 2, 1), (32, 4, 3), (32, 4, 1), (9, 7, 5), (64, 6, 4, 2)], ids=str)
def test_every_tile_is_whole_in_one_place_and_partial_in_another(sizes: tuple[int, ...]) -> None:
    i = tl.axes(i=1000)
    plan = tl.schedule(tl.define("Y", tl.input("X", tl.float32, i)[i] + 1, i)).tile(i=sizes[0]).to(tl.block)
    for n in sizes[1:]:
        plan = plan.split(i=n)
    pieces = {small_extents(plan)["i"]}
    for n in sizes:
        cut = {min(n, piece - at) for piece in pieces for at in range(0, piece, n)}
        assert n in cut and (n == 1 or len(cut) > 1)
        pieces = cut


def test_axes_without_cuts_are_short() -> None:
    rows = tl.schedule(product()).tile(m=4).to(tl.block)
    assert small_extents(rows) == {"m": 5, "n": 14, "k": 14}
    assert small_extents(rows, uncut=False) == {"m": 5}


def test_fused_axes_are_long_enough_together() -> None:
    fused = tl.schedule(product()).fuse(f=("m", "n")).tile(f=32).to(tl.block)
    extents = small_extents(fused)
    assert 32 < extents["m"] * extents["n"] < 4 * 32


def test_a_resized_schedule_takes_the_same_steps() -> None:
    small = resize_schedule(tiled(), small_extents(tiled()))
    assert [str(s) for s in small.steps] == [str(s) for s in tiled().steps]
    kernel = tl.compile(small, tl.target("opencl", profile="simulated"))
    report = tl.simulate(kernel)
    assert not report.counts


def test_conditions_are_decided_by_the_extents_of_the_schedule() -> None:
    choice = tl.parse(
        "computation f { input X: float32[i: 4096] output Y[i] = X[i] }\n"
        "schedule s for f { when i > 1000 { tile i=64 -> block } else { tile i=2 -> block } }"
    ).schedule()
    (step,) = resize_schedule(choice, {"i": 70}).steps
    assert str(step) == "tile i=64 -> block"


def test_long_loops_become_short_and_keep_their_pieces() -> None:
    nested = (
        tl.schedule(product()).tile(m=512, n=500).to(tl.block).split(k=256).split(m=8, n=50).accumulate(tl.register).split(k=4)
    )
    shorter = with_short_loops(nested)
    assert [str(s) for s in shorter.steps][:3] == ["tile m=16 n=10 -> block", "split k=8", "split m=8 n=5"]
    leaf = with_short_loops(tl.schedule(product()).tile(m=8, n=64).to(tl.block).split(k=512).vectorize(n=8))
    assert [str(s) for s in leaf.steps] == ["tile m=8 n=64 -> block", "split k=5", "vectorize n=8"]
    assert with_short_loops(tiled()).steps == tiled().steps
