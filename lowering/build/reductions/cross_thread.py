"""Combines the partial results of threads: by warp shuffles within a warp if the device has them, else through shared memory.

If a reduced axis is mapped to threads, the thread number has an index (a digit) along it; threads that differ in this digit alone
hold parts of one result. If flipping a bit of the digit flips one bit of the lane number, a shuffle (found by its meaning)
fetches the other part; log2(n) of them combine n parts without memory or barriers. Parts in different warps are combined in
shared memory, by halving. Afterwards, every thread has the result.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from tilelang.core.distribution import Distribution, Numbers
from tilelang.core.expr import Expr, Var, index
from tilelang.core.simplify import conjunction, simplify
from tilelang.instructions.instruction import Instruction
from tilelang.lowering import ir
from tilelang.lowering.build.frame import Build, Frame, StatePlace, nested
from tilelang.lowering.build.instruction.warp_shuffles import exchange, reduction, warp_lanes
from tilelang.lowering.build.lookahead import reduced_below, unit_mappings_below
from tilelang.lowering.build.reductions.combine import Combining, elements, stored
from tilelang.lowering.sets import implied
from tilelang.schedules.steps import Place
from tilelang.schedules.task import State

Each = Callable[[tuple[Expr, ...]], ir.Stmt]  # the statement for one element


@dataclasses.dataclass(frozen=True)
class Digit:
    """The index of a thread along one reduced axis: its value, the number of parts, the distance in threads between
    neighbours, and the conditions under which its unit is in use."""

    value: Expr
    count: int
    stride: int
    active: tuple[Expr, ...]


@dataclasses.dataclass(frozen=True)
class Exchanges:
    """The part of a reduction that shuffles do: the distances between threads, and the digits that remain for shared memory."""

    distances: tuple[int, ...]
    left: tuple[Digit, ...]

    @property
    def lanes(self) -> int:
        """How many lanes hold parts of one result."""
        return 1 << len(self.distances)


def exchanges(build: Build, digits: Sequence[Digit], members: Sequence[ir.Buffer]) -> Exchanges:
    """Which steps of combining an accumulator's members across threads the device can do with shuffles."""
    warp = warp_lanes(build.profile)
    if not build.profile.can("shuffle") or not warp or build.threads % warp:
        return Exchanges((), tuple(digits))
    distances: list[int] = []
    left = []
    for digit in digits:
        units, inner = _units(build, digit), 1
        while inner < min(units, _power_of_two(digit.count)) and _flips(build, digit, inner, warp):
            if any(exchange(build.profile, digit.stride * inner, b.dtype) is None for b in members):
                break
            distances.append(digit.stride * inner)
            inner *= 2
        if units > inner:  # more parts, or threads without a part that receive the result
            value, count = simplify(digit.value // inner), -(-digit.count // inner)
            left.append(Digit(value, count, digit.stride * inner, digit.active))
    return Exchanges(tuple(distances), tuple(left))


def _power_of_two(count: int) -> int:
    """The smallest power of two that is not less than a number."""
    return 1 << (count - 1).bit_length()


def _values(build: Build, digit: Digit) -> Numbers:
    """The digit of every thread."""
    assert isinstance(build.thread, Var)
    found = Distribution(((build.thread, build.threads),), (digit.value,)).grid()
    assert found is not None, "only the thread decides it"
    return found[0][0]


def _units(build: Build, digit: Digit) -> int:
    """The number of values of a digit, including those of idle units, whose parts are the identity."""
    return int(_values(build, digit).max()) + 1


def _flips(build: Build, digit: Digit, bit: int, warp: int) -> bool:
    """Whether flipping a bit of the digit flips one bit of the lane number, within a warp and for every thread."""
    distance = digit.stride * bit
    if distance >= warp or distance & (distance - 1):
        return False
    values = _values(build, digit)
    numbers = np.arange(build.threads)
    home = numbers - values * digit.stride
    others = numbers ^ distance
    return bool(np.all(values[others] == values ^ bit) and np.all(home == home[others]))


def each(build: Build, b: ir.Buffer, statement: Each, vector: bool, dims: int | None = None) -> ir.Stmt:
    """`statement(indices)` for every element; the last dimension is a vector if `vector`.

    With more elements than can be registers, the buffer is an array, and the loops are not unrolled.
    """
    n = len(b.shape) if dims is None else dims
    variables = [build.several("s", extent) for extent in b.shape[:n]]
    written_out = "unroll" if b.elements <= build.profile.unrolled_register_elements else "serial"
    body, outer = statement(tuple(variables)), len(b.shape) - 1 if vector else n
    return nested(variables[:outer], nested(variables[outer:], body, "vector"), written_out)


def combine_threads(build: Build, frame: Frame, i: int, place: StatePlace, step: Place) -> list[ir.Stmt]:
    """Combines the partial values of threads; every thread then has the result."""
    digits = reduced_digits(build, frame, i)
    out: list[ir.Stmt] = []
    for state, members in zip(frame.task.states, place.buffers, strict=True) if digits else ():
        within = exchanges(build, digits, members)
        out += _combine_in_warps(build, state, members, within, step)
        if within.left:
            out += _combine_in_shared(build, state, members, within.left, step, bool(within.distances))
    return out


def _combine_in_warps(
    build: Build, state: State, members: tuple[ir.Buffer, ...], within: Exchanges, step: Place
) -> list[ir.Stmt]:
    """Combines by shuffles, or by a single instruction if it combines the values of all lanes."""
    if not within.distances:
        return []
    others = tuple(build.buffer(f"{b.name}_other", b.dtype, (1,), "register", "temporary") for b in members)
    (first, *more), profile = members, build.profile
    at_once = reduction(profile, state.reduce.combiner.name, within.lanes, first.dtype) if not more else None
    if at_once is not None:
        return [each(build, first, _combined_by(at_once, state, first, others[0], step), False)]
    return [each(build, first, _exchanged(build, state, members, others, distance, step), False) for distance in within.distances]


def _exchanged(
    build: Build, state: State, members: tuple[ir.Buffer, ...], others: tuple[ir.Buffer, ...], distance: int, step: Place
) -> Each:
    """Combines every thread's element with that of the thread `distance` away. others: registers for the fetched values."""
    combiner, start = state.reduce.combiner, (index(0),)

    def combine(at: tuple[Expr, ...]) -> ir.Stmt:
        moves = [
            _issued(exchange(build.profile, distance, b.dtype), (other, start), (b, at), step)
            for b, other in zip(members, others, strict=True)
        ]
        made = Combining(build, combiner, members, at, index(0), 1, step.span)
        return ir.seq(*moves, made.statement(elements(combiner.left, members, at), elements(combiner.right, others, start)))

    return combine


def _combined_by(semantics: Instruction, state: State, member: ir.Buffer, all: ir.Buffer, step: Place) -> Each:
    """Replaces every thread's element by the combination of all lanes' elements, which one instruction computes."""
    start, identity = (index(0),), stored(state.reduce.combiner.identity[0], all)

    def combine(at: tuple[Expr, ...]) -> ir.Stmt:
        begin = ir.Store(all, start, identity, None, False, step.span)
        end = ir.Store(member, at, ir.Load(all, start), None, False, step.span)
        return ir.seq(begin, _issued(semantics, (all, start), (member, at), step), end)

    return combine


def _issued(
    semantics: Instruction | None,
    target: tuple[ir.Buffer, tuple[Expr, ...]],
    source: tuple[ir.Buffer, tuple[Expr, ...]],
    step: Place,
) -> ir.Stmt:
    assert semantics is not None, "it was there when the exchanges were chosen"
    (other,) = (o.name for o in semantics.operands if o.name != semantics.writes)
    return ir.Instruction(semantics, ((semantics.writes, *target), (other, *source)), semantics.width, step.span)


def _combine_in_shared(
    build: Build, state: State, members: tuple[ir.Buffer, ...], digits: tuple[Digit, ...], step: Place, few: bool
) -> list[ir.Stmt]:
    """Combines partial results through shared memory, where each thread has its own place.

    few: every thread combines the parts of all warps itself; otherwise they are combined by halving.
    """
    thread, count = build.thread, build.threads
    scratch = tuple(build.buffer(f"{b.name}_meet", b.dtype, (b.elements, count), "shared") for b in members)
    out = [each(build, b, _store_partial(b, sc, thread, step), False) for b, sc in zip(members, scratch, strict=True)]
    home: Expr = thread
    for digit in digits:
        n = digit.count
        while n > 1 and not (few and len(digits) == 1):
            half = (n + 1) // 2
            takes_part = conjunction([simplify(digit.value + half < n), *digit.active])
            out.append(_combine_halves(build, state, members, scratch, takes_part, half * digit.stride, step))
            n = half
        home = simplify(home - digit.value * digit.stride)
    out += [each(build, b, _load_result(b, sc, home, step), False) for b, sc in zip(members, scratch, strict=True)]
    if few and len(digits) == 1:
        (digit,) = digits
        for n in range(1, digit.count):
            out.append(_taken(build, state, members, scratch, simplify(home + n * digit.stride), step))
    return out


def _taken(
    build: Build, state: State, members: tuple[ir.Buffer, ...], scratch: tuple[ir.Buffer, ...], there: Expr, step: Place
) -> ir.Stmt:
    """Combines a part that another thread stored into every thread's own value, except for idle threads whose group is cut off
    by the block's end."""
    combiner, exists = state.reduce.combiner, there < build.threads

    def combine(at: tuple[Expr, ...]) -> ir.Stmt:
        made = Combining(build, combiner, members, at, index(0), 1, step.span)
        parts = elements(combiner.right, scratch, (ir.flat(members[0], at), there))
        return made.statement(elements(combiner.left, members, at), parts)

    body = each(build, members[0], combine, False)
    return body if implied(exists, ()) else ir.If(exists, body, None, step.span)


def _combine_halves(build: Build, state: State, members: tuple[ir.Buffer, ...], scratch: tuple[ir.Buffer, ...],
          takes_part: Expr | None, distance: int, step: Place) -> ir.Stmt:  # fmt: skip
    thread, combiner = build.thread, state.reduce.combiner

    def combine(at: tuple[Expr, ...]) -> ir.Stmt:
        row = ir.flat(members[0], at)
        left = elements(combiner.left, scratch, (row, thread))
        right = elements(combiner.right, scratch, (row, simplify(thread + distance)))
        return Combining(build, combiner, scratch, (row, thread), index(0), 1, step.span).statement(left, right)

    body = each(build, members[0], combine, False)
    return body if takes_part is None else ir.If(takes_part, body, None, step.span)


def _store_partial(b: ir.Buffer, scratch: ir.Buffer, thread: Expr, step: Place) -> Each:
    """Stores a thread's partial value where the others find it."""
    return lambda at: ir.Store(scratch, (ir.flat(b, at), thread), ir.Load(b, at), None, False, step.span)


def _load_result(b: ir.Buffer, scratch: ir.Buffer, home: Expr, step: Place) -> Each:
    """Loads the combined value."""
    return lambda at: ir.Store(b, at, ir.Load(scratch, (ir.flat(b, at), home)), None, False, step.span)


def reduced_digits(build: Build, frame: Frame, i: int) -> list[Digit]:
    """The thread's index along every reduced axis that a step below maps to threads.

    If there is a single tile, idle units receive the result only if it stays in registers, which they may read.
    """
    found = []
    told = frame.target.in_registers and frame.outer is None
    reduced, present = reduced_below(frame, i), frame.spec.present
    for lane, units, plan in unit_mappings_below(frame, i, build.profile).values():
        active = [*present, *plan.active(lane)]
        found += [
            Digit(d, tiles, stride, tuple(active))
            for d, tiles, _, stride in plan.reduced_digits(reduced, lane, units)
            if told or tiles > 1
        ]
        present = (*present, *plan.present(lane, units))
    return found
