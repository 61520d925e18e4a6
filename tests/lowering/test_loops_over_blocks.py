"""Loops shared by several reductions and by several blocks: each block has values of its own, which a second kernel combines."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tests.lowering.test_shared_loops import OF, attention, check, masked, threads, vectors
from tests.repair_families import DATA, FAMILIES, arrays, shared
from tilelang import testing

PARTS = (10, 16, 64)  # of 50 keys: of which the chunk is no divisor, of which it is one, and more than all


def start(computation: tl.Computation, part: int, rows: int = 4, piece: int = 8) -> tl.Schedule:
    return tl.schedule(computation).tile(i=rows, j=part).to(tl.block).split(j=piece, of=OF)


def statistics(rows: int, keys: int) -> tl.Computation:
    i, j = tl.axes(i=rows, j=keys)
    x = tl.input("X", tl.float32, i, j)
    peak = tl.define("peak", tl.max(x[i, j], over=j), i)
    total = tl.define("total", tl.sum(tl.exp(x[i, j] - peak[i]), over=j), i)
    return tl.computation("statistics", tl.define("L", peak[i] + tl.log(total[i]), i))


CORE: dict[str, Callable[[tl.Schedule], tl.Schedule]] = {
    "plain": lambda s: s.compute("S", tl.shared),
    "stages in shared": lambda s: s.compute("S", tl.shared).compute("peak", tl.shared).compute("P", tl.shared)
    .compute("total", tl.shared),
    "vectors": lambda s: s.load("K", tl.shared).compute("S", tl.shared, steps=vectors(j=8))
    .compute("peak", tl.shared, steps=tl.move().split(i=1).vectorize(j=8)).compute("P", tl.shared, steps=vectors(j=8))
    .compute("total", tl.register, steps=tl.move().split(i=1).vectorize(j=8)).split(i=4).split(j=1).vectorize(e=4),
    "lanes of a reduction": lambda s: s.compute("S", tl.shared).compute("peak", tl.register, steps=vectors(j=8)).vectorize(j=4),
}  # fmt: skip

GPU: dict[str, Callable[[tl.Schedule], tl.Schedule]] = {
    "a row a thread": lambda s: s.compute("S", tl.shared, steps=threads(i=1)).compute("peak", tl.register, steps=threads(i=1))
    .compute("total", tl.register, steps=threads(i=1)).tile(i=1).to(tl.thread),
    "chunks over threads": lambda s: s.load("K", tl.shared, ahead=1).compute("S", tl.shared, steps=threads(i=1, j=2))
    .compute("peak", tl.shared, steps=threads(i=1, j=2)).compute("P", tl.shared, steps=threads(i=1, j=2))
    .compute("total", tl.shared, steps=threads(i=1, j=2)).tile(i=1, e=3).to(tl.thread),
    "chunks over threads in registers": lambda s: s.compute("S", tl.shared, steps=threads(i=1, j=2))
    .compute("peak", tl.register, steps=threads(i=1, j=2)).compute("total", tl.register, steps=threads(i=1, j=2))
    .tile(i=1, e=3).to(tl.thread),
}  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", CORE)
def test_blocks_of_one_thread(name: str, causal: bool, part: int) -> None:
    """Causal rows need none of the later blocks' keys, and masked ones have only scores of -infinity in some blocks, or in all."""
    computation = attention(causal=causal)
    made = CORE[name](start(computation, part))
    for data in (dict(testing.arrays(computation)), masked(computation)):
        check(made, data, "sapphire_rapids")


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", GPU)
def test_blocks_of_threads(name: str, part: int) -> None:
    computation = attention()
    made = GPU[name](start(computation, part, 8))
    for data in (dict(testing.arrays(computation)), masked(computation)):
        check(made, data, "ampere")


@pytest.mark.parametrize("family", FAMILIES)
def test_every_repair_combines(family: str) -> None:
    computation = FAMILIES[family]()
    made = tl.schedule(computation).tile(i=4, j=5).to(tl.block).split(j=2, of=shared(computation))
    for kind in DATA:
        expected = testing.Expected(made.computation, arrays(made.computation, kind), loops=made.shared_loops)
        assert testing.check_simulated(tl.compile(made, tl.target("opencl", profile="simulated")).program, expected) == []


@pytest.mark.parametrize("type", [tl.float16, tl.bfloat16])
def test_narrow_types(type: Any) -> None:
    computation = attention(type=type)
    made = CORE["stages in shared"](start(computation, 16))
    check(made, dict(testing.arrays(computation)), "sapphire_rapids")


def test_rows_without_keys_in_a_block() -> None:
    """Masked in all blocks, a row is NaN, as in the plain graph; masked in some, these have no effect."""
    computation = attention()
    data = masked(computation)
    made = CORE["vectors"](start(computation, 10))
    assert testing.check_kernel(made, data, tl.target("cpu")) == []
    kernel = tl.compile(made, tl.target("cpu"))
    found, wanted = kernel(**data), computation.evaluate(**data)
    assert [np.isnan(found[k]).all() for k in (3, 5, 6, 7, 8, 9)] == [True, False, False, False, True, True]
    assert np.nanmax(np.abs(found - wanted)) < 1e-5 and kernel.check()


@pytest.mark.parametrize(("rows", "keys"), [(3, 1), (0, 5), (4, 0), (3, 17)])
def test_few_points(rows: int, keys: int) -> None:
    made = tl.schedule(statistics(rows, keys)).tile(i=2, j=4).to(tl.block).split(j=3, of=OF[:2])
    check(made, dict(testing.arrays(made.computation)), "sapphire_rapids")


def test_lengths_from_a_tensor() -> None:
    """Rows of several lengths: blocks beyond the end of a row have none of its keys, and those of a row of length 0 nothing at all."""
    i, j = tl.axes(i=6, j=40)
    x, n = tl.input("X", tl.float32, i, j), tl.input("N", tl.int32, i, range=(0, 41))
    peak = tl.define("peak", tl.max(x[i, j], over=j, where=j < n[i]), i)
    total = tl.define("total", tl.sum(tl.exp(x[i, j] - peak[i]), over=j, where=j < n[i]), i)
    made = tl.schedule(tl.define("L", peak[i] + tl.log(total[i]), i)).tile(i=1, j=12).to(tl.block).split(j=4, of=OF[:2])
    data = dict(testing.arrays(made.computation)) | {"N": np.array([0, 1, 12, 13, 30, 40], np.int32)}
    check(made, data, "sapphire_rapids")
    check(made, data, "ampere")


def test_other_axes_over_blocks_and_threads() -> None:
    """Several blocks, and threads, compute the same peak for their parts of a row of results: one of them stores it."""
    computation = attention()
    made = tl.schedule(computation).tile(i=4, e=6, j=16).to(tl.block).tile(e=3).to(tl.thread).split(j=8, of=OF)
    made = made.compute("S", tl.register)
    check(made, dict(testing.arrays(computation)), "ampere")


def test_blocks_that_take_several_parts() -> None:
    """Blocks are fewer than the parts, and begin again with each of them."""
    computation = attention()
    made = tl.schedule(computation).tile(i=8, j=10).to(tl.block, count=4).split(j=8, of=OF).compute("S", tl.shared)
    for data in (dict(testing.arrays(computation)), masked(computation)):
        check(made, data, "sapphire_rapids")


@pytest.mark.parametrize("outputs", ["peak L", "L peak total", "O L", "O peak"])
def test_several_outputs(outputs: str) -> None:
    i, j, e = tl.axes(i=6, j=30, e=6)
    x, v = tl.input("X", tl.float32, i, j), tl.input("V", tl.float32, j, e)
    peak = tl.define("peak", tl.max(x[i, j], over=j), i)
    total = tl.define("total", tl.sum(tl.exp(x[i, j] - peak[i]), over=j), i)
    mix = tl.define("mix", tl.sum(tl.exp(x[i, j] - peak[i]) * v[j, e], over=j), i, e)
    named = {"peak": peak, "total": total, "L": tl.define("L", peak[i] + tl.log(total[i]), i),
             "O": tl.define("O", mix[i, e] / total[i], i, e)}  # fmt: skip
    names = outputs.split()
    made = tl.schedule(tl.computation("several", outputs=tuple(named[n] for n in names))).tile(i=4, j=12).to(tl.block)
    check(made.split(j=8, of=OF if names[0] == "O" else OF[:2]), dict(testing.arrays(made.computation)), "sapphire_rapids")


def test_the_text_reads_back_and_is_explained() -> None:
    made = CORE["plain"](start(attention(), 16))
    again = tl.parse(f"{made.computation.text}\n{made.text}").schedule()
    assert again.text == made.text and "tile i=4 j=16 -> block" in made.text
    assert "each block has its own peak, total, mix, which a second kernel repairs and combines" in made.explain()


def drawn(seed: int) -> tl.Schedule:
    """Random sizes, parts, chunks, memories and tiles."""
    rng = random.Random(seed)
    rows, keys, depth, width = (rng.choice(sizes) for sizes in ((1, 5, 9), (1, 7, 33), (1, 3), (1, 5, 8)))
    whole = rng.random() < 0.7
    computation = attention(rows, keys, depth, width, causal=rng.random() < 0.3) if whole else statistics(rows, keys)
    gpu = rng.random() < 0.5
    made = tl.schedule(computation)
    made = made.units(block=tl.threads(rng.choice((4, 8)))) if gpu else made
    cut = {"i": rng.choice((1, 2, 4)), "j": rng.choice((1, 5, 8, 16))} | ({"e": 4} if whole and rng.random() < 0.3 else {})
    made = made.tile(**cut).to(tl.block)
    if whole and not gpu and rng.random() < 0.4:
        made = made.accumulate(tl.shared)
    summed = any(s.verb == "accumulate" for s in made.steps if hasattr(s, "verb"))
    made = made.split(j=rng.choice((1, 4, 8)), of=OF if whole else OF[:2], peel=rng.random() < 0.2)
    for name in ("K", "V") if whole else ("X",):
        if rng.random() < 0.4:
            made = made.load(name, tl.shared, ahead=rng.choice((0, 1)))

    def stage() -> Any:
        if gpu:
            return threads(i=rng.choice((1, 2)), **({"j": rng.choice((1, 2))} if rng.random() < 0.6 else {}))
        return None if rng.random() < 0.5 else tl.move().split(i=1).vectorize(j=rng.choice((2, 4)))

    memory = tl.shared if gpu else rng.choice((tl.shared, tl.register))
    for name in ("S", "peak", "P", "total") if whole else ("peak",):
        if gpu or name == "S" or rng.random() < 0.6:
            made = made.compute(name, memory, steps=stage())
    if summed:
        return made.accumulate(tl.register).split(j=1).vectorize(e=rng.choice((2, 4)))
    if gpu:
        return made.tile(i=1, **({"e": rng.choice((1, 4))} if whole else {})).to(tl.thread)
    return made.split(j=1).vectorize(e=4) if whole and rng.random() < 0.5 else made


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_schedules(first: int) -> None:
    """Every accepted one is right, in the simulator and by the steps; few are refused."""
    refused = 0
    for seed in range(first, first + 10):
        try:
            made = drawn(seed)
            assert testing.check_schedule(made, dict(testing.arrays(made.computation))) == [], (seed, made.text)
        except tl.Refusal:
            refused += 1
    assert refused <= 6


@pytest.mark.parametrize("keys", [96, 80])
def test_tensor_cores_take_parts_of_the_keys(keys: int) -> None:
    """Scores, weights and running values in the registers of their lanes, which store them for the second kernel."""
    lanes = tl.move().tile(i=16).to(tl.warp).split(i=8, j=8).tile(i=1, j=2).to(tl.thread)
    scores = tl.move().tile(i=16).to(tl.warp).split(d=16).load("Q", tl.register).load("K", tl.register)
    made = tl.schedule(attention(64, keys, 32, 32, tl.float16)).units(block=tl.warps(2)).tile(i=32, j=48).to(tl.block)
    made = made.load("Q", tl.shared).split(j=32, of=OF).load("K", tl.shared).load("V", tl.shared)
    made = made.compute("S", tl.register, steps=scores.do("mma_m16n8k16", m="i", n="j", k="d"))
    made = made.load("S", tl.register, steps=lanes)
    for name in ("peak", "P", "total"):
        made = made.compute(name, tl.register, steps=lanes)
    made = made.tile(i=16).to(tl.warp).load("P", tl.register).split(j=16).load("V", tl.register)
    made = made.do("mma_m16n8k16", m="i", n="e", k="j")
    assert testing.check_kernel(made, None, tl.target("cuda", profile="ampere")) == []
