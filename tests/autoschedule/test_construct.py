"""Constructed schedules: accepted, within the device, right; what they are made of follows from the computation alone."""

import pytest

import tilelang as tl
from tilelang.autoschedule.construct import construct
from tilelang.autoschedule.cost_cores import cores_of

POCL = tl.load_profile("pocl")
COMPUTATIONS = {
    "product": "computation C(M = 37, N = 53, K = 29) { input A: float32[m: M, k: K] input B: float32[k: K, n: N]"
    " output C[m, n] = sum[k] A[m, k] * B[k, n] }",
    "transposed product": "computation C(M = 20, N = 17, K = 40) { input A: float32[k: K, m: M] input B: float32[n: N, k: K]"
    " output C[m, n] = max(sum[k] A[k, m] * B[n, k], 0.0) }",
    "convolution": "computation Z(N = 2, C = 5, H = 9, F = 6) { input X: float32[n: N, c: C, h: H, w: H]"
    " input W: float32[f: F, c: C, r: 3, s: 3] axis p: H axis q: H"
    " output Z[n, f, p, q] = sum[c, r, s] pad(X[n, c, p + r - 1, q + s - 1], 0.0) * W[f, c, r, s] }",
    "strided convolution": "computation Z(N = 2, C = 5, H = 9, F = 6) { input X: float32[n: N, c: C, h: H, w: H]"
    " input W: float32[f: F, c: C] axis p: (H + 1) / 2 axis q: (H + 1) / 2"
    " output Z[n, f, p, q] = sum[c] X[n, c, 2 * p, 2 * q] * W[f, c] }",
    "depthwise": "computation Z(N = 2, C = 5, H = 19) { input X: float32[n: N, c: C, h: H, w: H] input W: float32[c: C, r: 5, s: 5]"
    " axis p: H axis q: H output Z[n, c, p, q] = sum[r, s] pad(X[n, c, p + r - 2, q + s - 2], 0.0) * W[c, r, s] }",
    "row sum": "computation Y(M = 33, N = 121) { input X: float32[i: M, j: N] output Y[i] = sum[j] X[i, j] }",
    "pointwise": "computation Y(M = 7, N = 311) { input X: float32[i: M, j: N] output Y[i, j] = max(X[i, j], 0.0) }",
}


@pytest.mark.parametrize("name", COMPUTATIONS)
def test_the_first_candidates_are_right(name: str) -> None:
    computation = tl.parse(COMPUTATIONS[name]).computation()
    candidates = construct(computation, cores_of(POCL))
    times = [c.estimate.seconds for c in candidates]
    assert candidates and times == sorted(times)
    for candidate in candidates[:3]:
        report = tl.compile(candidate.schedule).check()
        assert report, f"{candidate.schedule}\n{report}"


def test_every_estimate_adds_up_and_is_above_its_bound() -> None:
    for text in COMPUTATIONS.values():
        for candidate in construct(tl.parse(text).computation(), cores_of(POCL)):
            found = candidate.estimate
            assert found.seconds == pytest.approx(sum(s for _, s in found.parts)) and found.seconds >= found.bound > 0


def test_windows_are_fused_only_where_operands_share_them() -> None:
    texts = [str(c.schedule) for c in construct(tl.parse(COMPUTATIONS["convolution"]).computation(), cores_of(POCL))]
    assert any("fuse p_q=(p, q)" in t for t in texts) and not any("f_p" in t for t in texts)
