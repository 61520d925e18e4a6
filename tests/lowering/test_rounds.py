"""Accumulators below walks over their reduction: the first round stores, later rounds combine, wherever the state lives."""

import pytest

import tilelang as tl
from tests.lowering.test_shares import faults
from tilelang import testing


def product() -> tl.Tensor:
    m, n, k = tl.axes(m=6, n=10, k=11)
    A, B = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n)
    return tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n)


def two_products() -> tl.Tensor:
    """Y = relu(S) V, S = X W."""
    i, j, d, e = tl.axes(i=6, j=11, d=10, e=3)
    X, W, V = tl.input("X", tl.float32, i, j), tl.input("W", tl.float32, j, d), tl.input("V", tl.float32, d, e)
    S = tl.define("S", tl.sum(X[i, j] * W[j, d], over=j), i, d)
    return tl.define("Y", tl.sum(tl.relu(S[i, d]) * V[d, e], over=d), i, e)


def spread(made: tl.Schedule) -> tl.Schedule:
    return made.tile(m=2, n=2).to("thread")


BACK = {"silent": tl.move(), "vectors": tl.move().tile(m=1, n=4).to("thread").vectorize(n=4)}
BY_SHARED = {
    "silent": tl.move().via("shared"),
    "vectors": tl.move().via("shared").tile(m=1, n=4).to("thread").vectorize(n=4),
}


@pytest.mark.parametrize("back", BACK)
@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize("inside", [(), ("accumulate",)])
def test_a_state_in_shared_is_combined_into_what_the_first_round_stored(
    back: str, threads: bool, inside: tuple[str, ...]
) -> None:
    made = tl.schedule(product()).tile(m=4, n=8).to("block").split(k=4).accumulate("shared", steps=BACK[back])
    if inside:
        made = made.split(k=2).accumulate("register")
    assert not faults(spread(made) if threads else made)


@pytest.mark.parametrize("back", BY_SHARED)
def test_results_go_by_shared_memory_in_every_round(back: str) -> None:
    made = tl.schedule(product()).tile(m=4, n=8).to("block").split(k=4).accumulate("register", steps=BY_SHARED[back])
    assert not faults(spread(made))
    (kernel,) = testing.lowered(spread(made)).kernels
    assert sum(b.name.startswith("C_shared") for b in kernel.shared) == 1


@pytest.mark.parametrize("how", ["shared", "via"])
@pytest.mark.parametrize("where", ["shared", "global"])
def test_stages_too(how: str, where: str) -> None:
    steps = tl.move() if where == "shared" else tl.move().tile(i=2).to("block")
    steps = steps.split(j=4)
    steps = steps.accumulate("shared") if how == "shared" else steps.accumulate("register", steps=tl.move().via("shared"))
    made = tl.schedule(two_products())
    steps = steps.tile(i=1, d=5).to("thread")
    if where == "global":
        made = made.compute("S", "global", steps=steps).tile(i=2).to("block")
    else:
        made = made.tile(i=2).to("block").compute("S", "shared", steps=steps)
    assert not faults(made.tile(i=1, e=1).to("thread"))


def test_members_of_a_tuple_find_their_own_outputs() -> None:
    i, j = tl.axes(i=5, j=9)
    X = tl.input("X", tl.float32, i, j)
    total, largest = tl.define("total", tl.sum(X[i, j], over=j), i), tl.define("largest", tl.max(X[i, j], over=j), i)
    for outputs in ((total, largest), (largest, total)):
        made = tl.schedule(tl.computation("both", outputs)).tile(i=4).to("block").split(j=2)
        assert not faults(made.accumulate("shared").tile(i=1).to("thread"))
        assert not faults(made.accumulate("register", steps=tl.move().via("shared")).tile(i=1).to("thread"))


@pytest.mark.parametrize("read", ["renamed", "transposed"])
@pytest.mark.parametrize("memory", ["register", "shared"])
def test_a_state_stands_over_the_axes_of_its_reader(read: str, memory: str) -> None:
    p, q, r, i, j = tl.axes(p=6, q=10, r=7, i=6, j=10)
    X = tl.input("X", tl.float32, p, q, r)
    s = tl.define("s", tl.sum(X[p, q, r], over=r), *((p, q) if read == "renamed" else (q, p)))
    y = tl.define("y", tl.relu(s[i, j]), i, j) if read == "renamed" else tl.define("y", tl.relu(s[q, p]), p, q)
    first, second = (a.name for a in y.dims)
    made = tl.schedule(y).tile(**{first: 4, second: 4}).to("block").accumulate(memory).split(r=2)
    assert not faults(made.tile(**{first: 1, second: 2}).to("thread"))


def test_a_single_sum_is_kept_in_shared_memory() -> None:
    """An output without axes has one place."""
    i, j = tl.axes(i=3, j=4)
    x = tl.input("X", tl.float32, i, j)
    schedule = tl.schedule(tl.define("Y", tl.sum(x[i, j], over=(i, j)))).accumulate(tl.shared).split(i=2).split(j=1)
    assert not faults(schedule)
