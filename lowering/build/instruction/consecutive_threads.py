"""Checks that consecutive threads access consecutive addresses, starting from the first thread's, as some instructions require."""

from __future__ import annotations

import numpy as np

from tilelang.core.distribution import Distribution, parts
from tilelang.core.expr import Expr
from tilelang.core.simplify import linear, simplify
from tilelang.errors import Refusal
from tilelang.instructions.operand import Operand
from tilelang.lowering import ir
from tilelang.lowering.build.distribution.owners import thread_among
from tilelang.lowering.build.movement.storage import is_thread_part
from tilelang.lowering.build.refusals import refuse
from tilelang.schedules.steps import Do


def check_neighbours(
    step: Do, operand: Operand, buffer: ir.Buffer, at: tuple[Expr, ...], count: int, guards: list[Expr], threads: int
) -> None:
    """Refuses a `do` if its operand needs the addresses of `operand.neighbours` threads to be consecutive and they are not.

    at: where each thread's `count` elements begin. guards: which threads issue the instruction.
    """
    total = ir.flat(buffer, at)
    for term, factor in linear(total)[0]:
        if not is_thread_part(term):
            total = simplify(total - term * factor)  # this term is the same for all threads
    told = tuple(g for g in guards if is_thread_part(g))
    thread, others = thread_among([total, *told])
    walks = parts(others)
    grid = None if walks is None else Distribution(((thread, threads), *walks), (total,), told).grid()
    if grid is None:
        raise _refusal(step, operand, buffer, "the elements that they write cannot be enumerated", proven=False)
    (address,), present = grid
    lane = np.arange(threads) % operand.neighbours
    rows = np.where(present.reshape(threads, -1), address.reshape(threads, -1) - lane[:, None] * count, -1)
    for begin in range(0, threads, operand.neighbours):
        wave = rows[begin : begin + operand.neighbours]
        highest = wave.max(axis=0)
        wrong = np.argwhere((wave != highest) & (wave >= 0))
        if wrong.size:
            lane_of, walk = wrong[0]
            other = int(np.argmax(wave[:, walk] == highest[walk]))
            ahead = 1 if other > lane_of else -1
            apart = ahead * (int(wave[other, walk] - wave[lane_of, walk]) + (other - int(lane_of)) * count)
            seen = f"threads {begin + int(lane_of)} and {begin + other} write {apart} elements apart, not"
            raise _refusal(step, operand, buffer, f"{seen} {abs(other - int(lane_of)) * count}")


def _refusal(step: Do, operand: Operand, buffer: ir.Buffer, example: str, proven: bool = True) -> Refusal:
    message = f"`{step}`: {operand.neighbours} neighbouring threads must write consecutive elements of {buffer.name}"
    help = "number the threads in the order of the layout's elements: `-> thread order` with the layout's terms, in units of the tile"
    return refuse(step, "lanes-not-in-a-row", message, help, example, proven)
