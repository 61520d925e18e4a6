"""Loops shared by several reductions, lowered: attention by many schedules, simulated, within the loop's bound."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tilelang import testing
from tilelang.lowering import printer

ROWS, KEYS, DEPTH, WIDTH = 20, 50, 8, 12
OF = ("peak", "total", "mix")


def attention(
    rows: int = ROWS, keys: int = KEYS, depth: int = DEPTH, width: int = WIDTH, type: Any = tl.float32, causal: bool = False
) -> tl.Computation:
    """softmax(Q K^T + M) V; the weights P in the type of V."""
    i, j, d, e = tl.axes(i=rows, j=keys, d=depth, e=width)
    q, k, v = tl.input("Q", type, i, d), tl.input("K", type, j, d), tl.input("V", type, j, e)
    m, wide = tl.input("M", tl.float32, i, j), tl.float32
    where = {"where": j <= i} if causal else {}
    product = tl.sum(tl.cast(q[i, d], wide) * tl.cast(k[j, d], wide), over=d)
    s = tl.define("S", product if type != wide else product + m[i, j], i, j)
    peak = tl.define("peak", tl.max(s[i, j], over=j, **where), i)
    p = tl.define("P", tl.cast(tl.exp(s[i, j] - peak[i]), type), i, j)
    total = tl.define("total", tl.sum(tl.cast(p[i, j], wide), over=j, **where), i)
    mix = tl.define("mix", tl.sum(tl.cast(p[i, j], wide) * tl.cast(v[j, e], wide), over=j, **where), i, e)
    return tl.computation("attention", tl.define("O", tl.cast(mix[i, e] / total[i], type), i, e))


def masked(computation: tl.Computation) -> dict[str, Any]:
    """Scores of scale 30 with -infinities: for a whole row, the first and the last chunks of others, and all keys but one."""
    generator = np.random.default_rng(7)
    data = dict(testing.arrays(computation))
    data["Q"] = data["Q"] * 10
    if "M" in data:
        m = np.where(generator.random((ROWS, KEYS)) < 0.3, -np.inf, 0).astype(np.float32)
        m[3], m[5, :20], m[6, 30:], m[7, :-1], m[8, 4], m[9, 40] = -np.inf, -np.inf, -np.inf, -np.inf, np.inf, np.nan
        data["M"] = m
    return data


def threads(**sizes: int) -> tl.Move:
    return tl.move().tile(**sizes).to(tl.thread)


def vectors(**sizes: int) -> tl.Move:
    return tl.move().vectorize(**sizes)


def start(computation: tl.Computation, rows: int = 8, piece: int = 16) -> tl.Schedule:
    return tl.schedule(computation).tile(i=rows).to(tl.block).split(j=piece, of=OF)


CORE: dict[str, Callable[[tl.Schedule], tl.Schedule]] = {
    "scores": lambda s: s.compute("S", tl.shared),
    "scores in registers": lambda s: s.compute("S", tl.register),
    "weights": lambda s: s.compute("S", tl.shared).compute("P", tl.shared),
    "stages written": lambda s: s.compute("S", tl.shared).compute("peak", tl.register).compute("total", tl.register),
    "stages in shared": lambda s: s.compute("S", tl.shared).compute("peak", tl.shared).compute("P", tl.shared)
    .compute("total", tl.shared),
    "vectors": lambda s: s.compute("S", tl.shared, steps=vectors(j=16)).compute("P", tl.shared, steps=vectors(j=16)).vectorize(e=4),
    "lanes of a reduction": lambda s: s.compute("S", tl.shared).compute("peak", tl.register, steps=vectors(j=8)).vectorize(j=4),
    "rows in turn": lambda s: s.compute("S", tl.shared).split(i=2).split(j=4).split(e=6),
    "loads": lambda s: s.load("K", tl.shared).load("V", tl.shared, ahead=1).compute("S", tl.shared),
    "peeled": lambda s: s.compute("S", tl.shared).split(j=4, peel=True),
}  # fmt: skip


def sums_in_shared(computation: tl.Computation, rows: int = 8, piece: int = 16) -> tl.Schedule:
    """The sums of the result wait in shared memory, and are repaired as those of a chunk, made in registers, are added to them."""
    made = tl.schedule(computation).tile(i=rows).to(tl.block).accumulate(tl.shared)
    return made.split(j=piece, of=OF).compute("S", tl.shared, layout=tl.layout("j", "i"))


SUMS: dict[str, Callable[[tl.Schedule], tl.Schedule]] = {
    "one tile": lambda s: s.accumulate(tl.register).split(j=1).vectorize(e=4),
    "tiles": lambda s: s.compute("peak", tl.shared, steps=tl.move().split(j=1).vectorize(i=8))
    .compute("P", tl.shared, layout=tl.layout("j", "i"), steps=vectors(i=8)).compute("total", tl.shared)
    .split(e=8, i=3, peel=True).accumulate(tl.register).split(j=4).split(j=1, unroll=True).vectorize(e=4),
}  # fmt: skip

GPU: dict[str, Callable[[tl.Computation], tl.Schedule]] = {
    "a row a thread": lambda c: start(c, 16).compute("S", tl.shared, steps=threads(i=1))
    .compute("peak", tl.register, steps=threads(i=1)).compute("total", tl.register, steps=threads(i=1)).tile(i=1).to(tl.thread),
    "rows over threads": lambda c: start(c, 16).compute("S", tl.shared, steps=threads(i=1, j=2))
    .compute("peak", tl.shared, steps=threads(i=1)).compute("P", tl.shared, steps=threads(i=1, j=2))
    .compute("total", tl.shared, steps=threads(i=1)).tile(i=1, e=3).to(tl.thread),
    "chunks over threads": lambda c: tl.schedule(c).tile(i=16).to(tl.block).load("Q", tl.shared).split(j=16, of=OF)
    .load("K", tl.shared, ahead=1).load("V", tl.shared, ahead=1).compute("S", tl.shared, steps=threads(i=1, j=2))
    .compute("peak", tl.shared, steps=threads(i=1, j=2)).compute("P", tl.shared, steps=threads(i=1, j=2))
    .compute("total", tl.shared, steps=threads(i=1, j=2)).tile(i=1, e=3).to(tl.thread),
}  # fmt: skip


def check(made: tl.Schedule, data: dict[str, Any], profile: str) -> None:
    assert testing.check_schedule(made, data, profile=tl.load_profile(profile)) == []


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", CORE)
def test_attention_on_a_core(name: str, causal: bool) -> None:
    computation = attention(causal=causal)
    made = CORE[name](start(computation))
    for data in (dict(testing.arrays(computation)), masked(computation)):
        check(made, data, "sapphire_rapids")


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", SUMS)
def test_sums_in_shared_are_repaired(name: str, causal: bool) -> None:
    computation = attention(causal=causal)
    for piece in (16, 64):
        made = SUMS[name](sums_in_shared(computation, piece=piece))
        for data in (dict(testing.arrays(computation)), masked(computation)):
            check(made, data, "sapphire_rapids")


def test_a_change_is_computed_once_for_each_row() -> None:
    made = SUMS["tiles"](sums_in_shared(attention()))
    text = printer.to_text(tl.compile(made, tl.target("opencl", profile="simulated")).program)
    assert "exp(peak_before" in text and "* exp(" not in text


@pytest.mark.parametrize("name", GPU)
def test_attention_by_threads(name: str) -> None:
    computation = attention()
    made = GPU[name](computation)
    for data in (dict(testing.arrays(computation)), masked(computation)):
        check(made, data, "ampere")


def test_attention_runs_on_this_processor() -> None:
    computation = attention()
    made = CORE["vectors"](start(computation))
    data = masked(computation)
    assert testing.check_kernel(made, data, tl.target("cpu")) == []
    kernel = tl.compile(made, tl.target("cpu"))
    found, wanted = kernel(**data), computation.evaluate(**data)
    assert [np.isnan(found[k]).all() for k in (3, 5, 6, 7, 8, 9)] == [True, False, False, False, True, True]
    assert np.nanmax(np.abs(found - wanted)) < 1e-5 and kernel.check()


def test_causal_chunks_beyond_the_diagonal_are_left_out() -> None:
    made = CORE["scores"](start(attention(rows=64, keys=64, causal=True), rows=8, piece=16))
    text = printer.to_text(tl.compile(made, tl.target("opencl", profile="simulated")).program)
    assert "for j in 0..block_x // 2 + 1:" in text


def test_a_chunk_that_one_member_needs_is_taken() -> None:
    """The sum takes a part of the points only, the peak all of them: no round is left out."""
    i, j = tl.axes(i=16, j=64)
    x = tl.input("X", tl.float32, i, j)
    peak = tl.define("peak", tl.max(x[i, j], over=j), i)
    total = tl.define("total", tl.sum(tl.exp(x[i, j] - peak[i]), over=j, where=j <= i), i)
    made = tl.schedule(total).tile(i=4).to(tl.block).split(j=8, of=("peak", "total"))
    for seed in range(2):
        check(made, dict(testing.arrays(made.computation, seed=seed)), "sapphire_rapids")


def tensor_cores(computation: tl.Computation, unit: str = "mma_m16n8k16") -> tl.Schedule:
    """Both products of attention by matrix instructions, the scores and weights of a chunk in shared memory."""
    scores = tl.move().tile(i=16, j=16).to(tl.warp).split(d=16).load("Q", tl.register).load("K", tl.register)
    made = tl.schedule(computation).tile(i=32).to(tl.block).load("Q", tl.shared).split(j=32, of=OF)
    made = made.load("K", tl.shared).load("V", tl.shared).compute("S", tl.shared, steps=scores.do(unit, m="i", n="j", k="d"))
    made = made.compute("peak", tl.shared, steps=threads(i=1, j=8)).compute("P", tl.shared, steps=threads(i=1, j=8))
    made = made.compute("total", tl.shared, steps=threads(i=1, j=8)).tile(i=16, e=16).to(tl.warp).split(j=16)
    return made.load("P", tl.register).load("V", tl.register).do(unit, m="i", n="e", k="j")


def in_registers(computation: tl.Computation) -> tl.Schedule:
    """Scores and weights of a chunk in the registers of the lanes that own them: nothing but operands is in shared memory."""
    lanes = tl.move().tile(i=16).to(tl.warp).split(i=8, j=8).tile(i=1, j=2).to(tl.thread)
    scores = tl.move().tile(i=16).to(tl.warp).split(d=16).load("Q", tl.register).load("K", tl.register)
    made = tl.schedule(computation).units(block=tl.warps(2)).tile(i=32).to(tl.block).load("Q", tl.shared).split(j=32, of=OF)
    made = made.load("K", tl.shared).load("V", tl.shared)
    made = made.compute("S", tl.register, steps=scores.do("mma_m16n8k16", m="i", n="j", k="d")).load(
        "S", tl.register, steps=lanes
    )
    for name in ("peak", "P", "total"):
        made = made.compute(name, tl.register, steps=lanes)
    made = made.tile(i=16).to(tl.warp).load("P", tl.register).split(j=16).load("V", tl.register)
    return made.do("mma_m16n8k16", m="i", n="e", k="j")


@pytest.mark.parametrize("keys", [96, 80])
def test_flash_attention_in_registers(keys: int) -> None:
    made = in_registers(attention(64, keys, 32, 32, tl.float16))
    assert testing.check_kernel(made, None, tl.target("cuda", profile="ampere")) == []
    (kernel,) = tl.compile(made, tl.target("cuda", profile="ampere")).program.kernels
    assert {b.name for b in kernel.buffers if b.memory == "shared"} == {"Q_shared", "K_shared", "V_shared"}


@pytest.mark.parametrize("keys", [96, 80])
def test_both_products_by_tensor_cores(keys: int) -> None:
    computation = attention(64, keys, 32, 32, tl.float16)
    made = tensor_cores(computation)
    assert testing.check_kernel(made, None, tl.target("cuda", profile="ampere")) == []
    source = tl.compile(made, tl.target("cuda", profile="ampere")).source
    assert source.count("mma_m16n8k16(") >= 4 and "S[" not in source


def test_the_steps_are_explained() -> None:
    told = CORE["scores"](start(attention())).explain()
    assert "(compute peak in register)" in told and "(compute total in register)" in told
    assert "note: `split j=16 of peak total mix`: when peak changes, mix becomes mix * exp(before(peak) - now(peak))" in told


def test_the_text_reads_back() -> None:
    made = CORE["vectors"](start(attention()))
    again = tl.parse(f"{made.computation.text}\n{made.text}").schedule()
    assert "split j=16 of peak total mix" in made.text and again.text == made.text


def drawn(seed: int) -> tl.Schedule:
    """A random computation with a shared loop, and random steps for it: sizes, memories, tiles, loads, vectors and threads."""
    rng = random.Random(seed)
    rows, keys, depth, width = (rng.choice(sizes) for sizes in ((1, 5, 8, 17), (1, 7, 16, 33), (1, 3, 8), (1, 5, 8)))
    computation = attention(rows, keys, depth, width, causal=rng.random() < 0.3)
    if rng.random() < 0.3:
        i, j = tl.axes(i=rows, j=keys)
        x = tl.input("X", tl.float32, i, j)
        peak = tl.define("peak", tl.max(x[i, j], over=j), i)
        total = tl.define("total", tl.sum(tl.exp(x[i, j] - peak[i]), over=j), i)
        computation = tl.computation("statistics", tl.define("L", peak[i] + tl.log(total[i]), i))
    whole = computation.name == "attention"
    gpu = rng.random() < 0.5
    made = tl.schedule(computation).tile(i=rng.choice((1, 4, 8))).to(tl.block)
    if gpu:
        made = tl.schedule(computation).units(block=tl.threads(rng.choice((4, 8, 32)))).tile(i=rng.choice((2, 8))).to(tl.block)
    if whole and rng.random() < 0.4:
        made = made.load("Q", tl.shared)
    made = made.split(j=rng.choice((1, 4, 8, 16)), of=OF if whole else OF[:2], peel=rng.random() < 0.2)
    for name in ("K", "V") if whole else ("X",):
        if rng.random() < 0.5:
            made = made.load(name, tl.shared, ahead=rng.choice((0, 0, 1)))

    def stage(axes: str) -> Any:
        if gpu:
            sizes = {"i": rng.choice((1, 2))} | ({"j": rng.choice((1, 2, 4))} if "j" in axes and rng.random() < 0.6 else {})
            return tl.move().tile(**sizes).to(tl.thread)
        if rng.random() < 0.5:
            return None
        return tl.move().split(i=rng.choice((1, 2))).vectorize(j=rng.choice((2, 4)))

    memory = tl.shared if gpu else rng.choice((tl.shared, tl.register))
    if whole:
        made = made.compute("S", memory, steps=stage("ij"))
    for name in ("peak", "P", "total") if whole else ("peak",):
        if rng.random() < 0.7 or gpu:
            made = made.compute(name, memory, steps=stage("ij"))
    if gpu:
        return made.tile(i=rng.choice((1, 2)), **({"e": rng.choice((1, 4))} if whole else {})).to(tl.thread)
    made = made.split(i=rng.choice((1, 2)))
    if whole and rng.random() < 0.5:
        return made.split(j=1).vectorize(e=rng.choice((2, 4, 8)))
    return made.vectorize(j=rng.choice((2, 4))) if rng.random() < 0.5 else made


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_shared_loops(first: int) -> None:
    """Every accepted one is right, in the simulator and by the steps; few are refused."""
    refused = 0
    for seed in range(first, first + 10):
        try:
            made = drawn(seed)
            assert testing.check_schedule(made, dict(testing.arrays(made.computation))) == [], (seed, made.text)
        except tl.Refusal:
            refused += 1
    assert refused <= 6


@pytest.mark.parametrize("outputs", ["peak total", "peak L", "L peak total", "O L", "O peak"])
def test_several_outputs(outputs: str) -> None:
    """Values of the loop may be results themselves; those over other axes have kernels of their own."""
    i, j, e = tl.axes(i=10, j=50, e=6)
    x, v = tl.input("X", tl.float32, i, j), tl.input("V", tl.float32, j, e)
    peak = tl.define("peak", tl.max(x[i, j], over=j), i)
    total = tl.define("total", tl.sum(tl.exp(x[i, j] - peak[i]), over=j), i)
    mix = tl.define("mix", tl.sum(tl.exp(x[i, j] - peak[i]) * v[j, e], over=j), i, e)
    named = {
        "peak": peak, "total": total, "L": tl.define("L", peak[i] + tl.log(total[i]), i),
        "O": tl.define("O", mix[i, e] / total[i], i, e),
    }  # fmt: skip
    names = outputs.split()
    made = tl.schedule(tl.computation("several", outputs=tuple(named[n] for n in names))).tile(i=4).to(tl.block)
    made = made.split(j=8, of=OF if names[0] == "O" else OF[:2])
    check(made, dict(testing.arrays(made.computation)), "sapphire_rapids")


def test_an_output_that_is_another_reduction_has_a_kernel_of_its_own() -> None:
    """It is over the same axes as the loop's result, and cannot be a state beside it."""
    i, j, r = tl.axes(i=8, j=12, r=5)
    x, z = tl.input("X", tl.float32, i, j), tl.input("Z", tl.float32, i, r)
    peak = tl.define("peak", tl.max(x[i, j], over=j), i)
    total = tl.define("total", tl.sum(tl.exp(x[i, j] - peak[i]), over=j), i)
    least = tl.define("least", tl.min(z[i, r], over=r), i)
    made = tl.schedule(tl.computation("two", (tl.define("L", peak[i] + tl.log(total[i]), i), least)))
    made = made.tile(i=4).to(tl.block).split(j=5, of=OF[:2])
    check(made, dict(testing.arrays(made.computation)), "sapphire_rapids")


MEMBERS = """computation c { input B: float32[j: 5, k: 2] axis i: 5
  output d[j] = (sum[k] B[j, k]) + cast(argmax[i] pad(B[4 - j, i], 0.0), float32) }
schedule for c { tile j=3 -> block; split k=1 of d_sum }"""
ELSEWHERE = """computation c { input X: float32[i: 4, r: 3] axis j: 5
  output first[i] = sum[r] X[i, r]
  turned[i, j] = (sum[r] pad(first[3 - r], 0.0)) + first[i]
  output other[j] = max[i] turned[i, j] }
schedule for c { tile i=2 -> block; compute turned in shared; split r=1 of turned_sum }"""


def test_the_search_for_stages_ends() -> None:
    """A reduction of two members has axes of its own; a stage reads the result elsewhere than element by element."""
    made = tl.parse(MEMBERS).schedule()
    check(made, dict(testing.arrays(made.computation)), "sapphire_rapids")
    with pytest.raises(tl.Refusal, match="remove the `compute`"):
        tl.compile(tl.parse(ELSEWHERE).schedule(), tl.target("cpu", profile="sapphire_rapids"))


@pytest.mark.parametrize(("rows", "keys"), [(3, 1), (0, 5), (4, 0)])
def test_few_points(rows: int, keys: int) -> None:
    i, j = tl.axes(i=rows, j=keys)
    x = tl.input("X", tl.float32, i, j)
    peak = tl.define("peak", tl.max(x[i, j], over=j), i)
    total = tl.define("total", tl.sum(tl.exp(x[i, j] - peak[i]), over=j), i)
    made = tl.schedule(tl.define("L", peak[i] + tl.log(total[i]), i)).tile(i=2).to(tl.block).split(j=4, of=OF[:2])
    check(made, dict(testing.arrays(made.computation)), "sapphire_rapids")


def test_a_hole_is_filled() -> None:
    i, j = tl.axes(i=64, j=128)
    x = tl.input("X", tl.float32, i, j)
    peak = tl.define("peak", tl.max(x[i, j], over=j), i)
    total = tl.define("total", tl.sum(tl.exp(x[i, j] - peak[i]), over=j), i)
    made = tl.schedule(tl.define("L", peak[i] + tl.log(total[i]), i)).tile(i=4).to(tl.block).split(j=tl.hole, of=OF[:2])
    kernel = tl.compile(made, tl.target("cpu"))
    assert " of peak total" in kernel.schedule.text and kernel.check()


@pytest.mark.parametrize("first", ["shared", "register"])
@pytest.mark.parametrize("inside", [False, True])
def test_a_second_place_of_what_a_round_changes_is_refused(first: str, inside: bool) -> None:
    """Made twice in a round, a total would count the round's terms twice."""
    made = start(attention()).compute("S", tl.shared).compute("total", first)
    made = made.tile(i=2).to(tl.thread) if inside else made
    with pytest.raises(tl.Refusal) as caught:
        made.compute("total", tl.register).check("simulated")
    assert caught.value.code == "not-lowered-yet" and "second place of `total`" in caught.value.message


@pytest.mark.parametrize(
    ("step", "output", "code"),
    [
        ("compute peak in global", "", "stage-memory"),
        ("compute peak in global", "output", "not-lowered-yet"),
        ("compute peak in l1", "", "stage-memory"),
        ("compute total in l2", "output", "stage-memory"),
    ],
)
def test_running_values_are_kept_on_chip(step: str, output: str, code: str) -> None:
    text = f"""computation c {{ input X: float32[i: 8, j: 20]
      {output} peak[i] = max[j] X[i, j]  {output} total[i] = sum[j] exp(X[i, j] - peak[i])
      output L[i] = peak[i] + log(total[i])
    }} schedule for c {{ tile i=2 -> block; split j=4 of peak total; {step} }}"""
    with pytest.raises(tl.Refusal) as caught:
        tl.parse(text).schedule().check("avx512")
    assert caught.value.code == code and step in str(caught.value)


def test_a_place_for_the_accumulator_of_the_kernel_is_named_in_the_refusal() -> None:
    text = """computation c { input X: float32[i: 8, j: 20]
      peak[i] = max[j] X[i, j]  total[i] = sum[j] exp(X[i, j] - peak[i])  output L[i] = peak[i] + log(total[i])
    } schedule for c { tile i=2 -> block; split j=4 of peak total; compute total in shared }"""
    with pytest.raises(tl.Refusal) as caught:
        tl.parse(text).schedule()
    assert caught.value.code == "shared-axes" and "L has no accumulator over j left" in caught.value.message
    assert "remove the `compute`" in str(caught.value)
