"""Loops shared by several reductions and by several blocks: each block has values of its own, which a second kernel combines."""

from __future__ import annotations

from collections.abc import Callable

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
