"""Prefetching loads on devices with asynchronous copies from global to shared memory.

A copy moves a number of bytes that the profile lists, between consecutive elements, both aligned to its size; elements that do
not exist become zero. A load is copied if all of its innermost statements have this form. Otherwise its elements wait in
registers, as on a device without such copies. The decision is made once per load, for the move in a later iteration; `explain`
shows it with the reason.
"""

from __future__ import annotations

import math
import operator

from tilelang.core.expr import INDEX, Binary, Cast, Const, Expr, Select, Var, binary, index
from tilelang.core.simplify import conjunction, linear, simplify
from tilelang.errors import counted
from tilelang.lowering import ir
from tilelang.lowering.build.frame import Build, Frame, Ring, nested
from tilelang.lowering.build.innermost_body import guarded
from tilelang.lowering.build.instruction.fragments import open_bounds
from tilelang.lowering.build.movement.materialize import make_resident
from tilelang.lowering.build.movement.staging import by_registers
from tilelang.lowering.build.movement.storage import NotOwner
from tilelang.lowering.build.reads import stored_at, value_at
from tilelang.schedules.steps import Do, Place, Vectorize


class NotCopied(Exception):
    """The device cannot execute a statement as a copy; the message says why."""


def choose_copies(build: Build, frame: Frame, i: int, step: Place, slot: Expr) -> None:
    """Decides, once, whether a load is copied. frame: the load in a later iteration."""
    profile, ring = build.profile, build.ring(frame.key(i))
    if ring.refused is not None or step.verb != "load" or step.memory != "shared" or isinstance((step.steps or (None,))[-1], Do):
        return
    if not profile.async_copy:
        ring.refused = f"`{profile.name}` has none"
        return
    if by_registers(step):
        ring.refused = "`via register` is written"
        return
    ring.refused = ""
    with build.dropped():  # a trial, to see whether all statements are copies
        make_resident(build, frame, i, step, slot)
        ring.buffers.clear()
    ring.refused = "; ".join(ring.obstacles)
    if not ring.obstacles:
        sizes = " or ".join(str(n) for n in sorted(ring.sizes)) or "no"
        build.note(f"`{step}`: asynchronous copies of {sizes} bytes")


# ------------------------------------------------------------ the innermost statement


def copied_leaf(build: Build, frame: Frame, step: Vectorize | None) -> ir.Stmt | None:
    """The innermost statement of a load as an asynchronous copy; None if that is impossible.

    A statement that cannot be a copy stores its elements at once, as if a copy had completed early.
    """
    ring = frame.move.load if frame.move is not None and frame.staged is None else None
    if ring is None or not ring.copied:
        return None
    try:
        return _copy(build, frame, step, ring)
    except NotCopied as reason:
        ring.obstacles[str(reason)] = None
    except NotOwner:  # refused later, with a counterexample
        pass
    return None


def _copy(build: Build, frame: Frame, step: Vectorize | None, ring: Ring) -> ir.Stmt:
    """Copies the elements of an innermost statement in as few copies as the device and the addresses allow."""
    if frame.is_empty:
        return ir.seq()
    moving = step.axis if step is not None and frame.spec.axis(step.axis).extent != 1 else None
    elements = frame.spec.axis(moving).extent if moving is not None else 1
    of = frame.target.places[0].buffer.dtype.bytes
    sizes = [n for n in build.profile.async_copy_bytes if n % of == 0 and elements % (n // of) == 0]
    if not sizes:
        can = ", ".join(str(n) for n in build.profile.async_copy_bytes)
        raise NotCopied(f"the innermost body copies {counted(elements * of, 'byte')}, and the device copies {can} at a time")
    while True:
        size = max(sizes)
        try:
            found = _copy_by(build, frame, step, moving, elements, size // of)
        except _Misaligned as reason:
            sizes.remove(size)
            if not sizes:
                raise NotCopied(str(reason)) from None
        else:
            ring.sizes[size] = None
            return found


def _copy_by(build: Build, frame: Frame, step: Vectorize | None, moving: str | None, elements: int, lanes: int) -> ir.Stmt:
    """Copies the elements of an innermost statement, `lanes` at a time."""
    piece = build.several("piece", elements // lanes)
    if moving is not None:
        frame = frame.replace(spec=frame.spec.cut({moving: lanes}, {moving: piece}))
    place, span = frame.target.places[0], getattr(step, "span", None) or frame.origin
    points = {a.name: a.base for a in frame.spec.axes}
    load, inside = _source(build, frame, points)
    at, across = stored_at(frame, 0, place, points), False
    if lanes > 1 and moving is not None:
        lane = Var("?lane", INDEX, 0, lanes - 1)
        beside = {**points, moving: simplify(points[moving] + lane)}
        next_load, next_inside = _source(build, frame, beside)
        if next_inside is not None and any(v is lane for v in simplify(next_inside).walk()):
            raise NotCopied(f"only some of {lanes} neighbours along {moving} may be padding")
        sides = ((load.buffer, load.indices, next_load.indices), (place.buffer, at, stored_at(frame, 0, place, beside)))
        in_rows = [_in_a_row(*side, lane, moving) for side in sides]
        across = not all(in_rows)
    _check_aligned(load.buffer, load.indices, lanes)
    _check_aligned(place.buffer, at, lanes)
    count = existing(frame, moving, lanes, [inside] if inside is not None else [])
    if count is not None:
        if frame.fill is None or not _is_zero(frame.fill):
            raise NotCopied(f"the padding is {frame.fill}, and a copy can only pad with 0")
        if any(ir.loads(i) for i in load.indices):
            raise NotCopied("the indices are read from a tensor, which is not possible for points that do not exist")
    copy = ir.Copy(place.buffer, at, load.buffer, load.indices, lanes, count, span, across=across)
    return nested([piece], guarded(copy, _touching(frame, moving, lanes), span), "unroll", span)


def _source(build: Build, frame: Frame, points: dict[str, Expr]) -> tuple[ir.Load, Expr | None]:
    """The first element that a statement copies, in global memory, and the condition under which a padded read is inside its tensor."""
    value: Expr = value_at(build, frame, frame.task.values[0], points)
    condition: Expr | None = None
    if isinstance(value, Select) and isinstance(value.otherwise, Const) and _is_zero(value.otherwise):
        condition, value = value.condition, value.then
    if isinstance(value, Cast) and isinstance(value.operand, ir.Load):  # a bool, stored as a byte on both sides
        value = value.operand
    if not isinstance(value, ir.Load) or value.dtype != frame.target.places[0].buffer.dtype:
        raise NotCopied("the elements are computed or converted while they are copied")
    if value.buffer.memory != "global":
        raise NotCopied(f"the source is in {value.buffer.memory} memory")
    return value, condition


# ------------------------------------------------------------ which elements exist


def existing(frame: Frame, moving: str | None, lanes: int, conditions: list[Expr]) -> Expr | None:
    """How many leading elements along an axis exist in the source; None if all do. conditions: if one fails, none exists."""
    first, conditions = [], list(conditions)
    for a in frame.spec.axes:
        for b in (b for b in open_bounds(a) if b.key in frame.fill_keys):
            if a.name == moving and not b.lower:
                first.append(simplify(index(b.limit) - b.offset))
            elif a.name == moving and not _multiple(b.offset - b.limit, lanes):
                raise _Misaligned(f"the padding ends within {lanes} neighbours along {moving}")
            else:
                conditions.append(b.holds(index(0)))
    guard = conjunction(conditions)
    if not first and guard is None:
        return None
    count: Expr = index(lanes)
    for f in first:
        count = binary("min", count, f)
    count = simplify(binary("max", count, index(0)))
    return count if guard is None else Select(guard, count, index(0))


def _touching(frame: Frame, moving: str | None, lanes: int) -> list[Expr]:
    """The conditions under which the thread writes these elements at all."""
    found: list[Expr] = [*frame.spec.present]
    for a in frame.spec.axes:
        for b in (b for b in open_bounds(a) if b.key not in frame.fill_keys):
            if a.name == moving and not _multiple(b.offset - b.limit, lanes):
                raise _Misaligned(f"the last piece along {a.name} ends within {lanes} neighbours")
            found.append(b.holds(index(0)))
    if (frame.spec.units or 1) > 1:
        found.append(Binary("==", frame.spec.lane, index(0)))
    return found


class _Misaligned(NotCopied):
    """The copy is too large for the alignment; a smaller one may work."""


def _is_zero(e: Const) -> bool:
    return not e.value and math.copysign(1, e.value) > 0


def _multiple(e: Expr, of: int) -> bool:
    terms, constant = linear(simplify(e))
    return constant % of == 0 and all(c % of == 0 for _, c in terms)


def _in_a_row(buffer: ir.Buffer, first: tuple[Expr, ...], beside: tuple[Expr, ...], lane: Var, moving: str) -> bool:
    """Whether neighbours along an axis are neighbours in one row of a buffer; otherwise they continue in the next row.

    Raises NotCopied if they are not consecutive in memory.
    """
    distance = simplify(ir.flat(buffer, beside) - ir.flat(buffer, first))
    if distance is not lane:
        terms, _ = linear(distance)
        apart = f" are {terms[0][1]} elements apart" if len(terms) == 1 and terms[0][0] is lane else " are not contiguous"
        raise NotCopied(f"neighbours along {moving}{apart} in {buffer.name}")
    return bool(first) and simplify(beside[-1] - first[-1]) is lane and all(map(operator.is_, beside[:-1], first[:-1]))


def _check_aligned(buffer: ir.Buffer, at: tuple[Expr, ...], lanes: int) -> None:
    if not _multiple(ir.flat(buffer, at), lanes):
        raise _Misaligned(f"some pieces of {buffer.name} do not begin at a multiple of {lanes * buffer.dtype.bytes} bytes")
