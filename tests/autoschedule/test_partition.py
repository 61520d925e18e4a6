"""Which definitions of a graph get a place in memory: chosen by the model, printed as steps, right wherever a cut goes."""

import math
from pathlib import Path

import pytest

import tilelang as tl
from benchmarks import graphs_random
from tilelang.autoschedule.common.complete import in_order
from tilelang.autoschedule.common.construct import Candidate
from tilelang.autoschedule.common.partition import Partition, choices, steps_of
from tilelang.autoschedule.models import estimate_schedule, model_of
from tilelang.computations.computation import Computation, as_computation

XEON, AMPERE = tl.load_profile("sapphire_rapids"), tl.load_profile("ampere")


def mlp(m: int, k: int, h: int, n: int) -> Computation:
    axes = tl.axes(m=m, k=k, h=h, n=n)
    m_, k_, h_, n_ = axes
    X, W1, W2 = tl.input("X", tl.float32, m_, k_), tl.input("W1", tl.float32, k_, h_), tl.input("W2", tl.float32, h_, n_)
    b = tl.input("b", tl.float32, h_)
    between = tl.define("between", tl.gelu(tl.sum(X[m_, k_] * W1[k_, h_], over=k_) + b[h_]), m_, h_)
    return as_computation(tl.define("Y", tl.sum(between[m_, h_] * W2[h_, n_], over=h_), m_, n_))


def attention(b: int, s: int, t: int, d: int) -> Computation:
    b_, s_, t_, d_, e_ = tl.axes(b=b, s=s, t=t, d=d, e=d)
    Q, K, V = (tl.input(n, tl.float32, *dims) for n, dims in (("Q", (b_, s_, d_)), ("K", (b_, t_, d_)), ("V", (b_, t_, e_))))
    P = tl.define("P", tl.sum(Q[b_, s_, d_] * K[b_, t_, d_], over=d_) * 0.125, b_, s_, t_)
    peak = tl.define("peak", tl.max(P[b_, s_, t_], over=t_), b_, s_)
    ex = tl.define("ex", tl.exp(P[b_, s_, t_] - peak[b_, s_]), b_, s_, t_)
    total = tl.define("total", tl.sum(ex[b_, s_, t_], over=t_), b_, s_)
    return as_computation(tl.define("O", tl.sum(ex[b_, s_, t_] / total[b_, s_] * V[b_, t_, e_], over=t_), b_, s_, e_))


def normalized_product(m: int, k: int, n: int) -> Computation:
    m_, k_, n_ = tl.axes(m=m, k=k, n=n)
    X, W = tl.input("X", tl.float32, m_, k_), tl.input("W", tl.float32, k_, n_)
    mean = tl.define("mean", tl.sum(X[m_, k_], over=k_) / float(k), m_)
    variance = tl.define("variance", tl.sum((X[m_, k_] - mean[m_]) * (X[m_, k_] - mean[m_]), over=k_) / float(k), m_)
    normal = tl.define("normal", (X[m_, k_] - mean[m_]) * tl.rsqrt(variance[m_] + 1e-5), m_, k_)
    return as_computation(tl.define("Y", tl.sum(normal[m_, k_] * W[k_, n_], over=k_), m_, n_))


def first(computation: Computation, profile: tl.Profile) -> Candidate:
    return next(in_order(computation, profile))


def in_memory(found: Candidate) -> list[str]:
    """What the schedule of a graph computes in memory, before its last kernel."""
    return [s.tensor_name for s in found.schedule.steps if isinstance(s, tl.schedules.steps.Place) and s.memory == "global"]


def test_an_activation_is_computed_by_the_kernel_of_its_product() -> None:
    found = first(mlp(256, 256, 512, 256), XEON)
    assert in_memory(found) == ["between"]
    assert found.estimate.seconds < 1.4 * found.estimate.bound


def test_attention_computes_its_weights_between_two_products() -> None:
    """Not in the second product, for each of its columns."""
    found = first(attention(8, 256, 256, 64), XEON)
    assert {"P", "O_factor"} <= set(in_memory(found))
    assert found.estimate.seconds < 1.8 * found.estimate.bound


def test_a_normalization_before_a_product_is_not_repeated_in_it() -> None:
    found = first(normalized_product(256, 512, 256), XEON)
    assert "normal" in in_memory(found)
    assert found.estimate.seconds < 1.6 * found.estimate.bound


SMALL = {"mlp": mlp(64, 64, 128, 64), "attention": attention(2, 32, 48, 16), "normalized": normalized_product(24, 64, 32)}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("profile", ["sapphire_rapids", "ampere", "cdna3", "mali_g76"])
def test_a_plan_reads_back_and_is_right(name: str, profile: str) -> None:
    device = tl.load_profile(profile)
    assert graphs_random.faults(first(SMALL[name], device).schedule, device) == []


@pytest.mark.parametrize("profile", [XEON, AMPERE], ids=lambda p: p.name)
def test_a_cut_costs_what_its_schedule_does(profile: tl.Profile) -> None:
    """The sum over kernels, which is memoised, is the estimate of the schedule, and no less than the kernels' lower bounds."""
    computation = attention(4, 128, 128, 64)
    partition = Partition(computation, profile, model_of(profile))
    names = {t.name: t for d in computation.definitions for t in d.tensors}
    for cut in ({"P", "O_factor"}, {"P_sum", "peak", "total"}, {"P", "peak", "ex", "total"}):
        parts = partition.parts(frozenset(names[n] for n in cut))
        bounds = [partition.bound(p) for p in parts]
        kernels = [k for p in parts if (k := partition.scheduled(p)) is not None]
        assert len(kernels) == len(parts)
        assert all(k.seconds >= 0.99 * b for k, b in zip(kernels, bounds, strict=True))
        whole = estimate_schedule(tl.schedules.schedule.Schedule(computation, steps_of(kernels)), profile).seconds
        assert math.isclose(partition.estimate(kernels).seconds, whole, rel_tol=1e-6)


def test_a_single_operator_has_no_choice() -> None:
    m, k, n = tl.axes(m=64, k=64, n=64)
    A, B = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n)
    product = tl.define("Y", tl.relu(tl.sum(A[m, k] * B[k, n], over=k)), m, n)
    assert choices(as_computation(product)) == []


def test_softmax_stays_one_kernel() -> None:
    """Nothing that takes two is clearly faster."""
    i, j = tl.axes(i=512, j=1024)
    X = tl.input("X", tl.float32, i, j)
    peak = tl.define("peak", tl.max(X[i, j], over=j), i)
    ex = tl.define("ex", tl.exp(X[i, j] - peak[i]), i, j)
    total = tl.define("total", tl.sum(ex[i, j], over=j), i)
    computation = as_computation(tl.define("Y", ex[i, j] / total[i], i, j))
    assert in_memory(first(computation, XEON)) == []
    partition = Partition(computation, XEON, model_of(XEON))
    assert partition.planned(choices(computation), first(computation, XEON).estimate.seconds) == []


def test_the_factors_of_a_product_are_not_printed() -> None:
    computation = attention(1, 8, 8, 4)
    assert "O_factor" in {t.name for d in computation.definitions for t in d.tensors}
    assert "O_factor" not in computation.text
    assert tl.parse(computation.text).computation().hash == computation.hash


@pytest.mark.parametrize("seed", range(24))
def test_random_graphs_are_right_however_they_are_cut(seed: int) -> None:
    computation = graphs_random.drawn(seed)
    if computation is None:
        pytest.skip("what was drawn is not a computation")
    for profile in (XEON, AMPERE):
        for schedule in graphs_random.schedules(computation, profile, seed, cuts=1):
            assert not graphs_random.faults(schedule, profile), schedule


def test_many_definitions_take_seconds() -> None:
    """A chain of 40 definitions, products and activations by turns."""
    i, j = tl.axes(i=64, j=64)
    k = tl.axes(k=64)
    u = tl.input("X", tl.float32, i, j)
    for number in range(20):
        W = tl.input(f"W{number}", tl.float32, j, k)
        v = tl.define(f"v{number}", tl.sum(u[i, j] * W[j, k], over=j), i, k)
        u = tl.define(f"u{number}", tl.gelu(v[i, j]) + u[i, j], i, j)
    found = first(as_computation(u), XEON)
    assert len(in_memory(found)) >= 19


@pytest.mark.parametrize("profile", [XEON, AMPERE, tl.load_profile("zen3")], ids=lambda p: p.name)
def test_where_the_last_kernel_has_no_rows_the_others_are_left_to_the_language(profile: tl.Profile) -> None:
    """Gradients: the last kernel of the default cut would keep a reduction on chip, and no device has such a kernel."""
    text = (Path(__file__).parent / "kernels_without_rows.tile").read_text(encoding="utf-8")
    assert first(tl.parse(text).computation(), profile).schedule


def test_small_definitions_share_kernels_for_each_launch_takes_time() -> None:
    """A kernel more is not counted as a gain, however little the others do: of 15 definitions, each normalization is one kernel."""
    i, j = tl.axes(i=64, j=128)
    x = tl.input("X", tl.float32, i, j)
    for n in range(5):
        x = tl.define(f"normal{n}", tl.layer_norm(x[i, j], over=j), i, j)
    assert len(in_memory(first(as_computation(x), tl.load_profile("zen3")))) < 5


@pytest.mark.parametrize("profile", [tl.load_profile("zen3"), AMPERE], ids=lambda p: p.name)
def test_outputs_that_no_kernel_computes_together_are_computed_apart(profile: tl.Profile) -> None:
    """Both outputs are over h and w, but one reduces backwards over all of what the other one's accumulator makes."""
    h, w, c, q = tl.axes(h=9, w=6, c=9, q=9)
    X = tl.input("X", tl.float64, h, w)
    sums = tl.define("sums", tl.sum(X[c, w], over=c, where=c <= h), h, w)
    between = tl.define("between", tl.exp(sums[h, w]) + sums[h, w], h, w)
    twice = tl.define("twice", sums[h, w] * 2, h, w)
    back = tl.define("back", tl.sum(between[q, w], over=q, where=h <= q), h, w)
    schedule = first(tl.computation("both", (twice, back)), profile).schedule
    assert not graphs_random.faults(schedule, profile), schedule
