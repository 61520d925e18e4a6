"""Whether neighbouring threads write where an instruction can: one behind the other, from where the first of them writes.

Everything here enumerates threads and walks in NumPy; only instructions with such an operand ask.
"""

from __future__ import annotations

import math

import numpy as np

from tilelang.core.expr import Expr, Var
from tilelang.core.layout import evaluate
from tilelang.core.simplify import conjunction, interval, linear, simplify
from tilelang.errors import Refusal
from tilelang.instructions.operand import Operand
from tilelang.lowering import ir
from tilelang.lowering.build.refusals import refuse
from tilelang.schedules.steps import Do

MOST_POINTS = 1 << 20


def check_neighbours(
    step: Do, operand: Operand, buffer: ir.Buffer, at: tuple[Expr, ...], count: int, guards: list[Expr], threads: int
) -> None:
    """Refuses a `do` whose operand wants the addresses of `operand.neighbours` threads one behind the other where they are not.

    at: where each thread's `count` elements begin. guards: which threads issue it.
    """
    total = ir.flat(buffer, at)
    for term, factor in linear(total)[0]:
        if not any(_is_thread(v) for v in term.walk()):
            total = simplify(total - term * factor)  # the same for all of them
    guard = conjunction([g for g in guards if any(_is_thread(v) for v in g.walk())])
    points = _points([total, *([guard] if guard is not None else [])], threads)
    if points is None:
        raise _refusal(step, operand, buffer, "the elements that they write cannot be enumerated")
    thread, address, present = points[0], points[1], points[2] if guard is not None else np.array(True)
    lane = thread % operand.neighbours
    first = np.broadcast_to(address - lane * count, np.broadcast_shapes(address.shape, thread.shape, present.shape))
    rows = np.where(np.broadcast_to(present, first.shape), first, -1).reshape(threads, -1)
    for begin in range(0, threads, operand.neighbours):
        wave = rows[begin : begin + operand.neighbours]
        highest = wave.max(axis=0)
        wrong = np.argwhere((wave != highest) & (wave >= 0))
        if wrong.size:
            lane_of, walk = wrong[0]
            other = int(np.argmax(wave[:, walk] == highest[walk]))
            apart = abs(int(wave[other, walk] - wave[lane_of, walk]) + (other - int(lane_of)) * count)
            seen = f"threads {begin + int(lane_of)} and {begin + other} write {apart} elements apart, not"
            raise _refusal(step, operand, buffer, f"{seen} {abs(other - int(lane_of)) * count}")


def _points(expressions: list[Expr], threads: int) -> list[np.ndarray[tuple[int, ...], np.dtype[np.int64]]] | None:
    """The thread along the first axis, then each expression over threads and walks; None where they are too many."""
    variables = sorted({v for e in expressions for v in e.walk() if isinstance(v, Var)}, key=lambda v: str(v.name))
    walks = [v for v in variables if not _is_thread(v)]
    extents = [(interval(v)[1] or 0) + 1 if interval(v)[1] is not None else None for v in walks]
    if any(n is None for n in extents) or threads * math.prod(n for n in extents if n is not None) > MOST_POINTS:
        return None
    axes = np.ix_(np.arange(threads), *(np.arange(n) for n in extents if n is not None))
    values: dict[Expr, np.ndarray[tuple[int, ...], np.dtype[np.int64]]] = dict(zip(walks, axes[1:], strict=True))
    values |= {v: axes[0] for v in variables if _is_thread(v)}
    return [axes[0], *(np.asarray(evaluate(e, values)) for e in expressions)]


def _is_thread(v: object) -> bool:
    return isinstance(v, Var) and v.name == ir.THREAD.name


def _refusal(step: Do, operand: Operand, buffer: ir.Buffer, example: str) -> Refusal:
    message = f"`{step}`: {operand.neighbours} neighbouring threads must write consecutive elements of {buffer.name}"
    mend = "number the threads in the order of the layout's elements: `-> thread order` with the layout's terms, in units of the tile"
    return refuse(step, "lanes-not-in-a-row", message, mend, example)
