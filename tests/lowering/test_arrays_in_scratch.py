"""Register arrays that are too large for a stack are on the heap; loops of more than 2^31 iterations count in 64 bits."""

from __future__ import annotations

import re
from typing import Any

import pytest

import tilelang as tl
from tilelang.core.dtype import DType
from tilelang.errors import Refusal
from tilelang.lowering.passes.arrays_in_scratch import MOST_STACK_BYTES

ROWS = 70_000


def reduced(dtype: DType, reduce: Any) -> tl.Tensor:
    i, j = tl.axes(i=ROWS, j=7)
    X = tl.input("X", dtype, i, j)
    return tl.define("Y", reduce(X[i, j], over=j), i)


@pytest.mark.parametrize("reduce", [tl.sum, tl.max, tl.argmax], ids=["sum", "max", "argmax"])
@pytest.mark.parametrize("dtype", [tl.float32, tl.float16, tl.bfloat16, tl.int8, tl.uint64], ids=str)
@pytest.mark.parametrize("threads", [1, 2])
def test_large_accumulators_are_on_the_heap(dtype: DType, reduce: Any, threads: int) -> None:
    tile = -(-ROWS // threads)
    plan = tl.schedule(reduced(dtype, reduce)).tile(i=ROWS).to(tl.block)
    plan = plan.tile(i=tile).to(tl.thread) if threads > 1 else plan
    kernel = tl.compile(plan.split(j=3), "cpu")
    (lowered,) = kernel.program.kernels
    assert sum(b.bytes for b in lowered.registers) <= MOST_STACK_BYTES < lowered.shared_bytes
    assert kernel.check(), str(kernel.check())


def test_small_ones_stay_in_registers() -> None:
    i, j = tl.axes(i=1000, j=7)
    y = tl.define("Y", tl.sum(tl.input("X", tl.float32, i, j)[i, j], over=j), i)
    kernel = tl.compile(tl.schedule(y).split(j=3), "cpu")
    assert kernel.program.kernels[0].shared_bytes == 0 and kernel.check()


@pytest.mark.parametrize("tile", [2**25, 2**31 - 1, 2**32, 2**32 + 4])
def test_what_no_block_can_have_is_refused(tile: int) -> None:
    i, j = tl.axes(i=20, j=7)
    y = tl.define("Y", tl.sum(tl.input("X", tl.float32, i, j)[i, j], over=j), i)
    with pytest.raises(Refusal) as refused:
        tl.compile(tl.schedule(y).tile(i=tile).to(tl.block).split(j=3), "cpu")
    assert refused.value.code == "memory-over-capacity" and "Y_state" in str(refused.value)


SCHEDULES = {
    "plain": lambda plan: plan,
    "split": lambda plan: plan.split(n=2**32 - 3),
    "small pieces": lambda plan: plan.split(n=2),
    "block": lambda plan: plan.tile(n=2**32 + 5).to(tl.block),
    "threads": lambda plan: plan.tile(n=2**33).to(tl.block).tile(n=2**31 + 3).to(tl.thread),
}


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_loops_over_more_than_31_bits_count_in_64(name: str, target: str) -> None:
    n = tl.axes(n=2**32 + 11)
    X = tl.input("X", tl.int64, x=5)
    plan = SCHEDULES[name](tl.schedule(tl.define("total", tl.sum(X[n % 5], over=n))))
    kernel = tl.compile(plan, tl.target(target, profile="avx2" if target == "cpu" else "ampere"))
    limits = [int(n) for n in re.findall(r"for \(int \w+ = 0; \w+ < (\d+)", kernel.source)]
    assert kernel.program.kernels[0].index_bits == 64 and "for (long " in kernel.source
    assert all(n < 2**31 for n in limits)  # of another kernel, which combines the results of blocks


def test_loops_over_less_count_in_32_bits() -> None:
    n = tl.axes(n=2**20)
    kernel = tl.compile(tl.schedule(tl.define("total", tl.sum(tl.input("X", tl.int64, x=5)[n % 5], over=n))), "cpu")
    assert all(k.index_bits == 32 for k in kernel.program.kernels)
