"""Frames inside loops, and the trimming of loops to the iterations that are needed.

Invariant: a loop whose variable indexes registers keeps its full, constant extent. Every other loop is trimmed to the bounds and
to the conditions of the reduction, as far as these are uniform across threads.
"""

from __future__ import annotations

import dataclasses

from tilelang.core.expr import INDEX, Const, Expr, Var, binary, index, substitute
from tilelang.core.simplify import interval, simplify
from tilelang.lowering import ir
from tilelang.lowering.build.accesses import depends, folds
from tilelang.lowering.build.conditions import loop_limits, needed, needed_by
from tilelang.lowering.build.frame import Build, EnclosingLoop, Frame, Trim
from tilelang.lowering.build.movement.storage import is_thread_part
from tilelang.lowering.build.reads import residence_here
from tilelang.schedules.spec import Bound
from tilelang.schedules.steps import Place, Split
from tilelang.schedules.task import is_stored, reads

FOLDED_ROUNDS = 32  # a short reduction loop that fill values make harmless keeps its constant extent: the compiler can unroll it


def named_ends(build: Build, trim: Trim | None, axis: str, step: Split) -> tuple[list[ir.Stmt], Trim | None]:
    """Binds the first iteration to a variable unless it is constant, and the end too if it depends on data, which is then read once."""
    named: list[ir.Stmt] = []
    if trim is None:
        return named, trim
    if not isinstance(trim.first, Const):
        low, high = interval(trim.first)
        first = Var(build.name(f"{axis}_first"), INDEX, low, high)
        named.append(ir.Let(first, trim.first, step.span))
        trim = dataclasses.replace(trim, first=first, end=simplify(substitute(trim.end, {trim.first: first})))
    if ir.loads(trim.end):
        low, high = interval(trim.end)
        end = Var(build.name(f"{axis}_end"), INDEX, low, high)
        named.append(ir.Let(end, trim.end, step.span))
        trim = dataclasses.replace(trim, end=end)
    return named, trim


def enclosing_loop(build: Build, frame: Frame, axis: str, size: int, v: Var, trim: Trim | None) -> EnclosingLoop:
    a = frame.spec.axis(axis)
    rounds = -(-a.extent // size)
    if trim is None:
        return EnclosingLoop(axis, v, v, rounds, None, a.cut_key, len(frame.residences))
    trip = v if trim.first is index(0) else build.variable(f"{axis}_trip", rounds)
    return EnclosingLoop(axis, v, trip, rounds, trim, a.cut_key, len(frame.residences))


def inside_loops(frame: Frame, sizes: dict[str, int], indices: dict[str, Expr], walks: list[EnclosingLoop]) -> Frame:
    """The frame inside loops. indices: the number of the tile along each cut axis."""
    trims = [(w.axis, w.trim) for w in walks if w.trim is not None]
    kept = [(a, b) for a, trim in trims for b in _trimming(frame, a) if not trim.forced]
    spec = frame.spec.cut(sizes, indices, [b.key for _, b in kept])
    within = [simplify(b.offset + indices[a] * sizes[a]) < b.limit for a, b in kept]
    slots, trips = list(frame.slots), list(frame.walks)
    for w in walks:
        reduced = frame.spec.axis(w.axis).reduction
        (trips if reduced else slots).append(simplify(indices[w.axis] - w.first) if w.trip is w.var else w.trip)
    last = next(((w.axis, sizes[w.axis]) for w in reversed(walks)), frame.last_walk)
    undecided = frame.undecided or any(frame.spec.axis(w.axis).reduction and sizes[w.axis] > 1 for w in walks)
    known = frame.known.union(*(trim.known for _, trim in trims))
    return frame.replace(spec=spec, slots=tuple(slots), walks=tuple(trips), last_walk=last, within=(*frame.within, *within),
                     known=known, undecided=undecided, rounds=(*frame.rounds, *walks))  # fmt: skip


def trim_of(build: Build, frame: Frame, i: int, step: Split, axis: str, size: int) -> Trim | None:
    """The iterations that a loop must run, or None if it keeps its full extent.

    A loop is trimmed only if the result is uniform across the threads and the loop does not index registers. A reduction loop
    that encloses an accumulator always runs at least once, so that an empty sum still stores the identity.
    """
    a = frame.spec.axis(axis)
    count = -(-a.extent // size)
    if addresses_registers(frame, a.reduction):
        return None
    bounds = _trimming(frame, axis)
    begins, ends, known = _conditioned(build, frame, i, step, axis, size)
    if not bounds and not begins and not ends:
        return None
    if a.reduction and count <= FOLDED_ROUNDS and not (begins or ends) and folds(build, frame, axis):
        return None
    first: Expr = index(0)
    end: Expr = index(count)
    for e in begins:
        first = simplify(binary("max", first, e))
    for e in [_iterations_within(b, size) for b in bounds] + ends:
        end = simplify(binary("min", end, e))
    if ir.loads(first):  # data may hold any value: clamp it, so that the number of iterations cannot wrap
        first = simplify(binary("min", first, index(count)))
    if ir.loads(end):
        end = simplify(binary("max", end, index(0)))
    forced = False
    if a.reduction and any(isinstance(s, Place) and s.verb == "accumulate" for s in frame.steps[i + 1 :]):
        low, _ = interval(simplify(end - first))
        forced = low is None or low < 1
    if forced:
        first = simplify(binary("min", first, index(count - 1)))
        end = simplify(binary("max", end, first + 1))
    keys = frozenset(b.key for b in bounds)
    return Trim(first, end, keys, bool(begins or ends), frozenset(() if forced else known), forced)


def _conditioned(
    build: Build, frame: Frame, i: int, step: Split, axis: str, size: int
) -> tuple[list[Expr], list[Expr], list[Expr]]:
    """The iterations that the conditions of the reductions leave of a loop, in the form of `conditions.loop_limits`; nothing for an
    unrolled loop.

    The roles of a block, and the blocks of a cluster, count each other's iterations; the counts must therefore not depend on
    data.
    """
    below = frame.steps[i + 1 :]
    inside = frame.state is not None and not any(isinstance(s, Place) and s.verb == "accumulate" for s in below)
    updates = frame.spec.axis(axis).reduction or inside  # an iteration that updates no accumulator has no effect
    if not updates or frame.finishing or step.unroll or any(x.extent == 0 for x in frame.spec.axes):
        return [], [], []
    stored = [s.tensor_name for s in below if isinstance(s, Place) and is_stored(s)]
    if any(frame.shared is None or frame.shared.member(name) is None for name in stored):
        return [], [], []  # every iteration stores a part of an output
    moves = any(isinstance(s, Place) and s.memory == "shared" for s in below)
    conditions = needed(frame, moves or frame.spec.axis(axis).extent > FOLDED_ROUNDS * size)
    if build.roles is not None or build.cluster > 1:
        conditions = [c for c in conditions if not reads(c)]
    if step.of and frame.shared is not None:  # an iteration is skipped only if no stage needs it either
        stages = [build.task_of(name) for name in frame.shared.stages]
        conditions = [c for c in conditions if all(c in needed_by(s, False) for task in stages for s in task.states)]
    return loop_limits(frame, axis, size, conditions) if conditions and not _reads_registers(frame, axis) else ([], [], [])


def _reads_registers(frame: Frame, axis: str) -> bool:
    """Whether a loop indexes registers that hold an operand of a reduction."""
    operands = [w for s in frame.task.states for v in s.reduce.values for w in reads(v)]
    found = [r for w in operands if depends(frame, w, frame.spec.axis(axis)) and (r := residence_here(frame, w))]
    return any(r.buffer.memory == "register" for r in found)


def _trimming(frame: Frame, axis: str) -> list[Bound]:
    """The bounds that a loop over an axis can keep by ending early: the same for all threads, and with nothing to fill beyond them."""
    bounds = frame.spec.axis(axis).bounds
    return [b for b in bounds if not (b.lower or b.known or is_thread_part(b.offset) or b.key in frame.fill_keys)]


def addresses_registers(frame: Frame, reduction: bool) -> bool:
    in_state = frame.state is not None and frame.state.memory == "register"
    if frame.staged is not None or frame.target.in_registers:
        return not reduction
    return in_state and not reduction


def _iterations_within(b: Bound, size: int) -> Expr:
    return simplify((index(b.limit) - b.offset + (size - 1)) // size)
