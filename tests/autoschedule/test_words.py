"""Constructed products of small integers: by dot products of words where a processor has them, right, estimated as they are read."""

import dataclasses

import pytest

import tilelang as tl
from tilelang.autoschedule.common.construct import construct
from tilelang.autoschedule.models import estimate_schedule
from tilelang.schedules.schedule import Schedule
from tilelang.schedules.steps import Place
from tilelang.semantics.reference import compare, integer_arrays

HEAD = {
    "product": "computation C(M = 13, N = 37, K = 29) { input A: uint8[m: M, k: K] input B: int8[k: K, n: N]"
    " output C[m, n] = sum[k] cast(A[m, k], int32) * cast(B[k, n], int32) }",
    "both transposed": "computation C(M = 10, N = 17, K = 20) { input A: uint8[k: K, m: M] input B: int8[n: N, k: K]"
    " output C[m, n] = sum[k] cast(B[n, k], int32) * cast(A[k, m], int32) }",
    "two reductions": "computation C(M = 12, N = 20, K = 3, Q = 10) { input A: uint8[m: M, k: K, q: Q] input B: int8[k: K, q: Q, n: N]"
    " output C[m, n] = sum[k, q] cast(A[m, k, q], int32) * cast(B[k, q, n], int32) }",
    "convolution": "computation Z(H = 5, C = 6, F = 24) { input X: uint8[h: H, w: H, c: C] input W: int8[r: 3, s: 3, c: C, f: F]"
    " axis p: H axis q: H output Z[p, q, f] ="
    " sum[r, s, c] cast(pad(X[p + r - 1, q + s - 1, c], 0), int32) * cast(W[r, s, c, f], int32) }",
    "scaled": "computation Y(M = 30, N = 33, K = 18) { input A: uint8[m: M, k: K] input B: int8[k: K, n: N] input s: float32[n: N]"
    " C[m, n] = sum[k] cast(A[m, k], int32) * cast(B[k, n], int32) output Y[m, n] = cast(C[m, n], float32) * s[n] }",
}
OTHERS = {
    "too short a reduction": HEAD["product"].replace("K = 29", "K = 3"),
    "conditions": HEAD["product"].replace("sum[k]", "sum[k: k <= m]"),
    "products of narrow integers": HEAD["product"].replace(
        "cast(A[m, k], int32) * cast(B[k, n], int32)", "cast(cast(A[m, k], int16) * cast(B[k, n], int16), int32)"
    ),
    "signed rows": HEAD["product"].replace("uint8", "int8"),
    "floating point": HEAD["product"].replace("uint8", "bfloat16").replace("int8", "bfloat16").replace("int32", "float32"),
}
KINDS = {
    "avx512_vnni": ("zen4", "x86_vpdpbusd"),
    "arm_dotprod": ("neon", "arm_sdot"),
}


def with_capability(capability: str) -> tl.Target:
    profile = dataclasses.replace(tl.load_profile(KINDS[capability][0]), capabilities=(capability,))
    return tl.target("cpu", profile=profile)


@pytest.mark.slow
@pytest.mark.parametrize("capability", KINDS)
@pytest.mark.parametrize("name", HEAD)
def test_they_are_right_and_estimated_as_they_are_read(name: str, capability: str) -> None:
    text = HEAD[name] if capability == "avx512_vnni" else HEAD[name].replace("uint8", "int8")
    computation, target = tl.parse(text).computation(), with_capability(capability)
    candidates = construct(computation, target.profile)
    by_words = [c for c in candidates if f"do {KINDS[capability][1]}" in str(c.schedule)]
    assert candidates[0] in by_words
    for candidate in by_words[:8]:
        read = estimate_schedule(candidate.schedule, target.profile)
        assert read.seconds == pytest.approx(candidate.estimate.seconds, rel=1e-6)
    kernel, given = tl.compile(candidates[0].schedule, target), integer_arrays(computation, 1)
    simulated = tl.simulate(kernel, **given)
    assert simulated.findings == () and compare(computation, given, simulated.outputs, exactly=True)


def test_both_operands_may_be_one_tensor() -> None:
    text = """
computation G {
  input A: int8[m: 17, k: 37]
  axis n: 17
  output G[m, n] = sum[k] cast(A[m, k], int32) * cast(A[n, k], int32)
}
"""
    computation, target = tl.parse(text).computation(), with_capability("arm_dotprod")
    best = construct(computation, target.profile)[0].schedule
    assert "do arm_sdot" in str(best)
    kernel, given = tl.compile(best, target), integer_arrays(computation, 1)
    simulated = tl.simulate(kernel, **given)
    assert simulated.findings == () and compare(computation, given, simulated.outputs, exactly=True)


@pytest.mark.parametrize("name", OTHERS)
def test_what_an_instruction_would_not_do_alike_is_multiplied_by_vectors(name: str) -> None:
    profile = dataclasses.replace(tl.load_profile("zen4"), capabilities=("avx512_vnni", "avx512_bf16"))
    assert all("do " not in str(c.schedule) for c in construct(tl.parse(OTHERS[name]).computation(), profile))


def test_narrow_rows_take_narrow_instructions() -> None:
    computation = tl.parse(HEAD["product"].replace("N = 37", "N = 8")).computation()
    assert "do x86_vpdpbusd_8 " in str(construct(computation, with_capability("avx512_vnni").profile)[0].schedule)


def test_another_layout_by_hand_is_estimated_as_it_stands() -> None:
    """Neighbours of a word apart in shared memory: the model counts elements, and does not take them for words."""
    computation, profile = tl.parse(HEAD["product"]).computation(), with_capability("avx512_vnni").profile
    best = construct(computation, profile)[0]
    apart = [
        s.replace(layout=s.layout.replace(terms=s.layout.terms[::-1])) if isinstance(s, Place) and s.layout is not None else s
        for s in best.steps
    ]
    assert apart != list(best.steps)
    assert estimate_schedule(Schedule(computation, tuple(apart)), profile).seconds > best.estimate.seconds
