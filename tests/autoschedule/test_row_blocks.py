"""Products of several rows at a time in one kernel, by construction: found from the definitions, and right."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilelang as tl
from tilelang import testing
from tilelang.autoschedule.common.construct import construct
from tilelang.autoschedule.common.kernel_part import Part
from tilelang.autoschedule.cpu.row_blocks import by_row_blocks, swept_by
from tilelang.autoschedule.models import estimate_schedule, model_of
from tilelang.schedules.steps import Split
from tilelang.schedules.task import is_stored, tasks_of

PROFILE = tl.load_profile("avx2")


def attention(heads: int, queries: int, keys: int, causal: bool = False, forward: bool = False) -> tl.Computation:
    """The gradients of attention, of heads of different widths for keys and values."""
    b, s, t, d, e = tl.axes(b=heads, s=queries, t=keys, d=12, e=9)
    Q, K, V = (tl.input(n, tl.float32, *dims) for n, dims in (("Q", (b, s, d)), ("K", (b, t, d)), ("V", (b, t, e))))
    score = tl.sum(Q[b, s, d] * K[b, t, d], over=d) * 0.3
    S = tl.define("S", tl.where(t <= s, score, float("-inf")) if causal else score, b, s, t)
    peak = tl.define("peak", tl.max(S[b, s, t], over=t), b, s)
    ex = tl.define("ex", tl.exp(S[b, s, t] - peak[b, s]), b, s, t)
    total = tl.define("total", tl.sum(ex[b, s, t], over=t), b, s)
    A = tl.define("A", ex[b, s, t] / total[b, s], b, s, t)
    output = tl.define("O", tl.sum(A[b, s, t] * V[b, t, e], over=t), b, s, e)
    gradients = tl.grad(output, (Q, K, V), tl.input("dO", tl.float32, b, s, e))
    return tl.computation("backward", (output, *gradients) if forward else gradients)


def classifier(rows: int, classes: int, bias: bool = False) -> tl.Computation:
    """The gradients of a cross entropy by the features and the weights, and by a bias."""
    i, k, v = tl.axes(i=rows, k=10, v=classes)
    X, W, T = tl.input("X", tl.float32, i, k), tl.input("W", tl.float32, k, v), tl.input("T", tl.int32, i, range=(0, classes))
    offset = tl.input("offset", tl.float32, v)
    logits = tl.define("logits", tl.sum(X[i, k] * W[k, v], over=k) + (offset[v] if bias else 0.0), i, v)
    scores = tl.define("scores", tl.log_softmax(logits[i, v], over=v), i, v)
    loss = tl.define("loss", tl.sum(-scores[i, T[i]], over=i))
    return tl.computation("step", tl.grad(loss, (X, W, offset) if bias else (X, W)))


def normalized(rows: int, columns: int) -> tl.Computation:
    """The gradients of rows of mean 0, times a matrix, by the rows and the matrix."""
    i, j, o = tl.axes(i=rows, j=columns, o=10)
    X, W = tl.input("X", tl.float32, i, j), tl.input("W", tl.float32, j, o)
    mean = tl.define("mean", tl.sum(X[i, j], over=j) / float(columns), i)
    N = tl.define("N", X[i, j] - mean[i], i, j)
    Y = tl.define("Y", tl.sum(N[i, j] * W[j, o], over=j), i, o)
    return tl.computation("rows", tl.grad(Y, (X, W), tl.input("dY", tl.float32, i, o)))


def made(computation: tl.Computation, profile: tl.Profile = PROFILE) -> list[tl.Schedule]:
    """The schedules of one kernel for all outputs."""
    device = model_of(profile).device  # type: ignore[attr-defined]
    parts = Part.with_all_outputs(computation)
    return [tl.Schedule(computation, steps) for part in parts for _, steps in by_row_blocks(part, device)]


CASES: dict[str, Callable[[], tl.Computation]] = {
    "attention": lambda: attention(2, 16, 24),
    "odd sizes": lambda: attention(3, 19, 13),
    "fewer queries than a vector": lambda: attention(2, 3, 40),
    "one key": lambda: attention(2, 9, 1),
    "causal": lambda: attention(2, 21, 21, causal=True),
    "more keys than queries": lambda: attention(2, 5, 21, causal=True),
    "forward, too": lambda: attention(2, 17, 11, forward=True),
    "classifier": lambda: classifier(21, 13),
    "few rows": lambda: classifier(3, 13),
    "normalized rows": lambda: normalized(21, 13),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_candidate_is_right(name: str) -> None:
    computation = CASES[name]()
    found = made(computation)
    assert found
    for schedule in found:
        assert len(tasks_of(computation, schedule.steps)) == 1
        assert testing.check_schedule(schedule, dict(testing.arrays(computation)), profile=PROFILE) == [], schedule.text


def test_the_text_reads_back() -> None:
    computation = attention(2, 16, 24)
    for schedule in made(computation):
        assert tl.parse(f"{computation.text}\n{schedule.text}").schedule().steps == schedule.steps


def test_reductions_over_the_rows_share_the_loop() -> None:
    parts = [swept_by(part) for part in Part.with_all_outputs(attention(2, 16, 24))]
    found = [p for p in parts if p is not None]
    assert {(p.axis, p.members) for p in found} == {("s", ("dO_dK", "dO_dV"))}
    for schedule in made(attention(2, 16, 24)):
        assert [s.of for s in schedule.steps if isinstance(s, Split) and s.of] == [("dO_dK", "dO_dV")]
        assert sum(map(is_stored, schedule.steps)) == 2


def test_sums_that_a_row_needs_are_not_swept() -> None:
    """The rows cannot be finished before all of them are summed."""
    i, j, o = tl.axes(i=16, j=24, o=8)
    X, W = tl.input("X", tl.float32, i, j), tl.input("W", tl.float32, j, o)
    mean = tl.define("mean", tl.sum(X[i, j], over=i) / 16.0, j)
    Y = tl.define("Y", tl.sum((X[i, j] - mean[j]) * W[j, o], over=j), i, o)
    assert made(tl.computation("f", (Y, tl.define("dW", tl.sum((X[i, j] - mean[j]) * Y[i, o], over=i), j, o)))) == []


def test_rows_without_products_are_not_blocks() -> None:
    i, j = tl.axes(i=16, j=24)
    X = tl.input("X", tl.float32, i, j)
    rows, columns = tl.define("rows", tl.sum(X[i, j], over=j), i), tl.define("columns", tl.sum(X[i, j], over=i), j)
    assert made(tl.computation("sums", (rows, columns))) == []


def test_several_sums_need_a_head_for_each_core() -> None:
    """Blocks that divide the rows cannot add to outputs that others add to."""
    here = tl.load_profile("zen3")
    assert (here.compute_units or 1) > 1
    assert made(attention(1, 16, 24), here) == [] and made(classifier(16, 24), here) != []


@pytest.mark.slow
def test_backward_attention_keeps_no_scores_in_memory() -> None:
    computation = attention(4, 512, 512)
    found = construct(computation, PROFILE)[0]
    assert len(tasks_of(computation, found.steps)) == 1
    assert estimate_schedule(found.schedule, PROFILE).seconds == pytest.approx(found.estimate.seconds)


@pytest.mark.parametrize("size", [(2, 40, 56), (3, 33, 17)])
def test_compiled_gradients_agree_with_differences(size: tuple[int, int, int]) -> None:
    """Against central differences of the output in float64."""
    computation = attention(*size, causal=size[1] == 33)
    kernel = tl.compile(made(computation)[0], "cpu")
    random = np.random.default_rng(3)
    arrays = {t.name: random.standard_normal(t.shape).astype(np.float32) for t in computation.inputs}
    result = kernel(**arrays)

    def value(given: dict[str, np.ndarray]) -> float:
        scores = np.einsum("bsd,btd->bst", given["Q"], given["K"]) * 0.3
        if size[1] == 33:
            scores = np.where(np.arange(size[2]) <= np.arange(size[1])[:, None], scores, -np.inf)
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return float(np.sum(powers / powers.sum(-1, keepdims=True) @ given["V"] * given["dO"]))

    wide = {n: a.astype(np.float64) for n, a in arrays.items()}
    for name in ("Q", "K", "V"):
        for at in (tuple(random.integers(0, n) for n in wide[name].shape) for _ in range(5)):
            sides = []
            for step in (1e-5, -1e-5):
                moved = wide[name].copy()
                moved[at] += step
                sides.append(value({**wide, name: moved}))
            assert getattr(result, f"dO_d{name}")[at] == pytest.approx((sides[0] - sides[1]) / 2e-5, rel=1e-3, abs=1e-4)
