"""Programs that once were wrong or ended in a traceback, where no other file has them, with what they give."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tilelang.autoschedule.common.construct import construct
from tilelang.computations.computation import as_computation
from tilelang.semantics import reference
from tilelang.semantics.exactness import inexact
from tilelang.testing import arrays

SIMULATED = tl.target("cuda", profile="ampere")


def check_right(what: Any, target: tl.Target = SIMULATED) -> tl.Kernel:
    """A kernel that is right in the simulator, on small integers."""
    kernel = tl.compile(what, target)
    data = arrays(kernel.computation, "integers", 1)
    report = tl.simulate(kernel, **data)
    assert not report.findings
    assert reference.compare(kernel.computation, data, report.outputs, exactly=inexact(kernel.computation) is None)
    return kernel


TEXTS = {
    "stages under pad": """
        computation st(N = 16) {
          input X: float32[i: N]
          a[i] = X[i] + pad(X[i + 1], 0.0)
          b[i] = a[i] + pad(a[i + 1], 0.0)
          output c[i] = b[i] + pad(b[i + 1], 0.0)
        }
        schedule s for st { tile i=4 -> block; compute a in shared; compute b in shared; tile i=1 -> thread }""",
    "a stage that an epilogue reads, over blocks": """
        computation f { input X: float32[i: 6, r: 33] input U: float32[j: 6, r: 33] input V: float32[i: 6, j: 6]
          Z[i, j] = abs(V[i, j])
          output W[i, j] = (sum[r] X[i, r] * U[j, r] * Z[i, j]) + Z[i, j] }
        schedule s for f { tile r=8 -> block; compute Z in shared }""",
    "a stage that reads an output": """
        computation f { input X: float32[i: 8, j: 16]
          output E[i, j] = X[i, j] * 2.0
          T[i] = sum[j] E[i, j]
          output S[i, j] = E[i, j] - T[i] }
        schedule s for f { tile i=1 -> block; compute T in shared }""",
}


@pytest.mark.parametrize("name", TEXTS)
def test_as_text(name: str) -> None:
    check_right(tl.parse(TEXTS[name]).schedule("s"))


def test_what_is_computed_in_memory_of_its_own_may_be_an_output_too() -> None:
    i, j, r = tl.axes(i=9, j=7, r=34)
    X = tl.input("X", tl.float32, i, j, r)
    Y = tl.define("Y", tl.sum(X[i, j, r], over=r), i, j)
    Q = tl.define("Q", tl.sum(X[i, j, r] * Y[i, 6 - j], over=r), i, j)
    for outputs in ((Q, Y), (Y, Q), (Q,)):
        start = tl.schedule(tl.computation("c", outputs)).compute("Y", tl.global_)
        check_right(start.tile(i=5, j=6).to(tl.block).split(j=5, r=34))
        check_right(start.split(r=4))
        check_right(start.tile(r=4).to(tl.block))


@pytest.mark.parametrize("name", ["bool", "uint32", "uint64", "float8_e5m2", "float16", "bfloat16", "float32", "float64"])
def test_extremes_of_no_points_of_the_other_types(name: str) -> None:
    j, k = tl.axes(j=3, k=6)
    X = tl.input("X", getattr(tl, name), j, k)
    least, most = (0, 2**X.dtype.bits - 1) if X.dtype.is_integer else (-np.inf, np.inf)
    if name == "bool":
        least, most = np.iinfo("int32").min, np.iinfo("int32").max  # conditions are compared as int32, and give that
    x = np.full((3, 6), 1).astype(X.dtype.numpy)
    for reduction, end in ((tl.max, least), (tl.min, most)):
        computation = tl.computation("c", tl.define("Y", reduction(X[j, k], over=k, where=k < j - 1), j))
        kernel = tl.compile(tl.schedule(computation), tl.target("cpu"))
        for found in (computation.evaluate(X=x), kernel(x), tl.simulate(kernel, X=x).outputs["Y"]):
            assert found.dtype.kind == "f" and found.astype(float).tolist() == [end, end, 1] or found.tolist() == [end, end, 1]


def test_check_catches_an_error_in_every_element_of_one_in_ten_thousand() -> None:
    m, n, k = tl.axes(m=20, n=20, k=500)
    A, B, X = tl.input("A", tl.float32, m, k), tl.input("B", tl.float32, k, n), tl.input("X", tl.float32, m, k)
    product = tl.computation("C", tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n))
    assert product.check(lambda a: {"C": a["A"] @ a["B"]})
    assert not product.check(lambda a: {"C": (a["A"] @ a["B"] * np.float32(1.0001))})
    assert not product.check(lambda a: {"C": a["A"][:, :-1] @ a["B"][:-1]})
    exp = tl.computation("E", tl.define("E", tl.exp(X[m, k]), m, k))
    assert exp.check(lambda a: {"E": np.exp(a["X"])})
    assert not exp.check(lambda a: {"E": np.exp(a["X"]) * np.float32(1.0001)})


def test_exponential_chains_that_are_constructed() -> None:
    i = tl.axes(i=64)
    value = tl.input("X", tl.float32, i)
    value = tl.define("A0", value[i] * 2.0, i)
    for n in range(1, 16):
        value = tl.define(f"A{n}", tl.pad(value[i - 1], 0) + tl.pad(value[i + 1], 0), i)
    kernel = tl.compile(value, tl.target("cpu"))
    x = np.arange(64, dtype=np.float32) % 3
    assert np.array_equal(kernel(x), kernel.computation.evaluate(X=x))


def on_cpu(computation: str, steps: str) -> tl.Kernel:
    """A kernel of a computation `f` by the steps, as they are written."""
    return tl.compile(tl.parse(f"computation f {{ {computation} }} schedule s for f {{ {steps} }}").schedule(), tl.target("cpu"))


PACKED = "A_packed + block_x"


@pytest.mark.parametrize(
    "what, steps, lines",
    [
        ("i: 8", "load A in global layout (i / 3, i % 3); tile i=4 -> block; load A in l1", [f"{PACKED} * 4"]),
        ("i: 8", "load A in global layout (i % 4, i / 4); tile i=4 -> block; load A in l1",
         [PACKED]),
        ("i: 8", "load A in global layout ((i / 4) ^ (i % 4), i % 4); tile i=4 -> block; load A in l1",
         [f"{PACKED} * 4", *(f"A_packed + (block_x ^ {n}) * 4 + {n}" for n in (1, 2, 3))]),
        ("i: 32, j: 3", "load A in global layout (j, i); tile i=32 -> block; load A in l1",
         ["A_packed", *(f"A_packed + {n}" for n in (16, 32, 48, 64, 80))]),
    ],
)  # fmt: skip
def test_prefetch_follows_the_layout_of_what_it_brings(what: str, steps: str, lines: list[str]) -> None:
    """It brings the lines of numbers that lie close together, or each number where they are at no regular distances."""
    axes = ", ".join(re.findall("[a-z]", what))
    kernel = on_cpu(f"input A: float32[{what}] output Y[{axes}] = A[{axes}]", steps)
    (given,) = arrays(kernel.computation, "integers", 1).values()
    assert np.array_equal(kernel(given), given)
    assert sorted(re.findall(r"__builtin_prefetch\((.*)\);", kernel.source)) == sorted(lines)


def test_swizzled_layout_at_a_negative_index_under_pad() -> None:
    what = "input A: float32[i: 1, j: 3] output Y[i, j] = pad(A[-1, i], 0.0)"
    assert on_cpu(what, "load A in global layout (i, (j / 2) ^ (i % 4), j % 2)")(np.ones((1, 3), np.float32)).tolist() == [
        [0, 0, 0]
    ]


TWO = "input A: float32[j: 2, k: 3] output Y1[j] = A[j, 0] output Y2[j] = sum[k] A[j, k]"
FUSED = "accumulate in register { fuse lj=(l, j); split lj=1 }"
SUM = "input A: float32[l: 4, k: 8] axis j: 5 output Y[j, l] = sum[k] A[l, k] * j"
CHAIN = (
    "input A: float32[i: 4, j: 8] S[i] = sum[j] A[i, j] D[i, j] = A[i, j] - S[i]"
    " Q[i] = sum[j] D[i, j] * D[i, j] output Y[] = sum[i, j] D[i, j] * Q[i]"
)


@pytest.mark.parametrize(
    "what, steps, code",
    [
        (CHAIN, "tile j=2 -> block; compute S in shared { compute D in shared }", "not-lowered-yet"),
        (CHAIN, "tile j=2 -> block; compute S in shared; load A in shared; compute D in shared { compute S in shared }",
         "not-lowered-yet"),
        (TWO, "when j <= 4 { compute Y2 in global } accumulate in shared", "nothing-to-accumulate"),
        (TWO, "when j <= 4 { compute Y2 in global } accumulate in register", "nothing-to-accumulate"),
        (SUM, FUSED, "owners-store"),
        (SUM, f"load A in global {{ ... }} {FUSED}", "owners-store"),
        (SUM, f"split k=? {FUSED}", "owners-store"),
        (SUM, "split k=? accumulate in register { unfuse l=(a:2, b:2); split a=1 }", "owners-store"),
        ("input A: float32[i: 4, j: 6] output Y[i, j] = A[i, j]",
         "tile i=2 -> block; via register { tile j=1 -> thread; fuse ij=(i, j) }", "via-steps"),
        ("input A: float32[i: 4, j: 6] output Y[i] = sum[j] A[i, j]",
         "tile i=2 -> block; load A in register { load A in shared }; tile i=1 -> thread; accumulate in register",
         "not-lowered-yet"),
        ("input A: float32[i: 4, j: 6] output Y[i, j] = A[i, j]", "tile i=2 -> block; via register layout (j, i)", "via-steps"),
    ],
)  # fmt: skip
def test_refused(what: str, steps: str, code: str) -> None:
    with pytest.raises(tl.Refusal) as caught:
        on_cpu(what, steps)
    assert caught.value.code == code


ATTENTION = """
computation O {
  input Q: float16[i: 17, d: 17]
  input K: float16[j: 17, d: 17]
  input V: float16[j: 17, e: 17]
  S[i, j] = sum[d] cast(Q[i, d], float32) * cast(K[j, d], float32)
  peak[i] = max[j] S[i, j]
  P[i, j] = cast(exp((S[i, j] - peak[i]) * 0.25), float16)
  total[i] = sum[j] cast(P[i, j], float32)
  mix[i, e] = sum[j] cast(P[i, j], float32) * cast(V[j, e], float32)
  output O[i, e] = mix[i, e] / total[i]
}
schedule for O {
  units block = 2 warp
  tile i=32 -> block
  load Q in shared
  load K in shared
  load V in shared
  compute S in register { tile i=16 -> warp; split d=16; load Q in register; load K in register; do mma_m16n8k16 (m=i, n=j, k=d) }
  load S in register { tile i=16 -> warp; split i=8 j=8; tile i=1 j=2 -> thread }
  compute peak in register { tile i=16 -> warp; split i=8 j=8; tile i=1 j=2 -> thread }
  compute P in register { tile i=16 -> warp; split i=8 j=8; tile i=1 j=2 -> thread }
  compute total in register { tile i=16 -> warp; split i=8 j=8; tile i=1 j=2 -> thread }
  tile i=16 -> warp
  load V in register
  do mma_m16n8k16 (m=i, n=e, k=j)
}
"""


def test_an_operand_whose_owner_is_another_thread_is_refused() -> None:
    with pytest.raises(tl.Refusal) as caught:
        tl.compile(tl.parse(ATTENTION).schedule(), tl.target("cuda", profile="ampere"))
    assert caught.value.code == "reader-is-not-owner"
    assert "(i, j) = (0, 2)" in (caught.value.counterexample or "") and "read by thread 0" in (caught.value.counterexample or "")


def test_explanation_tells_what_a_condition_places() -> None:
    kernel = on_cpu(TWO, "when j <= 4 { compute Y2 in global } tile j=1 -> block")
    for text in (kernel.explain(), kernel.schedule.explain()):
        assert "compute Y2 in global" in text
        assert "a kernel of its own" not in text


LOADS: list[tuple[str, Callable[[tl.Schedule], tl.Schedule]]] = [
    ("shared", lambda s: s.load("X", tl.shared)),
    ("register", lambda s: s.split(i=1).load("X", tl.register)),
    ("l1", lambda s: s.load("X", tl.l1)),
    ("l2", lambda s: s.split(i=1).load("X", tl.l2, ahead=1)),
]


@pytest.mark.parametrize(("memory", "load"), LOADS, ids=[memory for memory, _ in LOADS])
def test_loads_of_an_element_that_varies_along_no_axis(memory: str, load: Callable[[tl.Schedule], tl.Schedule]) -> None:
    """Where `X[0, ids[0]]` lies is known at run time only, and all points share it."""
    i = tl.axes(i=13)
    X, ids = tl.input("X", tl.float32, p=5, q=22), tl.input("ids", tl.int32, n=13, range=(0, 22))
    schedule = load(tl.schedule(tl.define("Y", X[0, ids[0]] * tl.cast(i, tl.float32), i)).tile(i=4).to(tl.block))
    if memory in ("l1", "l2"):
        with pytest.raises(tl.Refusal, match="the elements are scattered"):
            tl.compile(schedule, tl.target("cpu"))
    else:
        check_right(schedule)


PADDED: list[Callable[[tl.Tensor, tl.Axis], Any]] = [
    lambda X, b: tl.pad(X[b, b + 2], 0.0),
    lambda X, b: tl.pad(X[b + 2, 0], 1.0),
    lambda X, b: tl.pad(X[b, b + 1], 0.0) * tl.pad(X[b + 1, b], 1.0),
]


@pytest.mark.parametrize("read", PADDED, ids=["diagonal", "column", "two"])
@pytest.mark.parametrize("profile", ["zen3", "avx512", "neon"])
def test_a_scalar_of_padded_reads_beside_another_output_is_constructed(profile: str, read: Callable[..., Any]) -> None:
    """One block computes it, and there is no step for that block whose shared memory could hold the operand."""
    i, b = tl.axes(i=13, b=33)
    y = tl.define("y", tl.max(read(tl.input("X", tl.float32, p=33, q=33), b), over=b))
    z = tl.define("z", y[()] * 2.0 + tl.cast(i, tl.float32), i)
    check_right(tl.computation("both", (y, z)), tl.target("cpu", profile=profile))


def test_a_generated_layout_over_axes_that_have_the_names_of_dimensions() -> None:
    """The axis that no dimension is named after has one point, and must be in the layout all the same."""
    b, c, d = tl.axes(b=1, c=5, d=3)
    Y = tl.input("Y", tl.float64, c=5, d=3, a=17)
    found = tl.define("found", tl.max(tl.pad(Y[b, d, 16 - c], 1.0), over=b), d, c)
    profile = tl.load_profile("zen3")
    first = construct(as_computation(found), profile)[0].schedule
    first.check(profile)
    assert "load Y in shared layout (b, d, c)" in str(first)
    check_right(first, tl.target("cpu", profile="zen3"))
