"""Addresses of an instruction's operands, and the conditions under which it runs.

An instruction cannot be guarded per element. Either the fill values of its operands make nonexistent points contribute nothing,
or a condition that is uniform across the issuing threads guards the whole tile.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from tilelang.core.distribution import Distribution
from tilelang.core.expr import INDEX, Binary, Const, Expr, Pad, Read, Unary, Var, index, substitute
from tilelang.core.simplify import linear, simplify
from tilelang.errors import Refusal
from tilelang.instructions.fragment import Fragment
from tilelang.lowering import ir
from tilelang.lowering.build.accesses import accesses_of, depends, facts, settled
from tilelang.lowering.build.conditions import inside_piece
from tilelang.lowering.build.distribution.owners import thread_among
from tilelang.lowering.build.frame import Build, Frame
from tilelang.lowering.build.instruction.fragments import FragmentShare, open_bounds, unguardable
from tilelang.lowering.build.instruction.register_runs import Run
from tilelang.lowering.build.movement.storage import Residence, Share
from tilelang.lowering.build.reads import residence_of, stored_at, value_at
from tilelang.lowering.build.reductions.accumulators import kept_beyond
from tilelang.lowering.build.refusals import refuse
from tilelang.lowering.guards import Effect, fills, fold
from tilelang.schedules.spec import AxisState, Bound
from tilelang.schedules.steps import Do
from tilelang.schedules.task import Task, reads


def operand_at(build: Build, frame: Frame, step: Do, name: str, whole: Read | Pad) -> tuple[ir.Buffer, tuple[Expr, ...]]:
    """The address of an operand's first element, from the thread's view."""
    found = frame.match
    held = found.instruction.fragment(name)
    assert held is not None
    residence = residence_of(frame, whole)
    read = whole.read if isinstance(whole, Pad) else whole
    points = first_points(frame, step, name) if found.instruction.operand(name).memory != "register" else _bases(frame)
    indices = tuple(index_value(build, frame, i, points) for i in read.indices)
    indices = residence.element(indices, frame.coordinates(points))
    if isinstance(residence, FragmentShare):
        _check_map(step, name, held, residence)
        return residence.buffer, residence.first(indices, step)
    if isinstance(residence, Share) and held.lanes * held.slots > 1:

        def there(points: dict[str, Expr]) -> tuple[Expr, ...]:
            element = tuple(index_value(build, frame, i, points) for i in read.indices)
            return residence.at(residence.element(element, frame.coordinates(points)))

        return residence.buffer, run_of(build, frame, step, name, residence, there)
    return residence.buffer, residence.at(indices)


def _check_map(step: Do, name: str, held: Fragment, residence: FragmentShare) -> None:
    if residence.map != held:
        raise refuse(step, "reader-is-not-owner", f"`{step}`: {residence.tensor.name} is in registers in the fragment layout of"
                     f" operand {residence.operand}, but operand {name} has"
                     " another", "load it again for this operand, or load it in shared",
                     f"{residence.map} is not {held}")  # fmt: skip


# ------------------------------------------------------------ tails


def instruction_guards(build: Build, frame: Frame, step: Do, width: int) -> list[Expr]:
    """The conditions around the instruction, uniform across its threads. Raises Refusal if points inside it would need their own."""
    bounds = {b.holds(inside_piece(a.name, a.extent)): (a, b) for a in frame.spec.axes for b in open_bounds(a)
              if b.key not in frame.fill_keys}  # fmt: skip
    kept = _unsettled(build, frame, {c: a for c, (a, _) in bounds.items()}) if frame.task.states else bounds.keys()
    roomless = _roomless(frame)
    found = [*frame.spec.present]
    for condition, (a, b) in bounds.items():
        if condition in kept or b.key in roomless:
            if not (_whole_pieces(a, b) and _shared_by(build, b.offset, width)):
                raise _unguardable(build, frame, step, a, b, b.key in roomless)
            found.append(b.holds(index(0)))
    in_shared = frame.state is not None and frame.state.box is not None
    if in_shared and width == 1 and frame.spec.units is not None and frame.spec.units > 1:
        found.append(Binary("==", frame.spec.lane, index(0)))  # one thread updates an accumulator that all threads share
    return found


def _unsettled(build: Build, frame: Frame, bounds: dict[Expr, AxisState]) -> Collection[Expr]:
    """The conditions, over all points of the instruction, that are needed to keep it from changing an accumulator wrongly."""
    points = {a.name: simplify(a.base + inside_piece(a.name, a.extent)) for a in frame.spec.axes}
    exists = tuple(b.holds(inside_piece(a.name, a.extent)) for a in frame.spec.axes if not a.reduction for b in a.bounds)
    reduce = frame.task.states[0].reduce
    effect = Effect(exists, reduce.values[0], reduce.combiner.identity[0])
    return settled(build, frame, bounds, (), points, reduce.values, effect)


def _shared_by(build: Build, e: Expr, width: int) -> bool:
    """Whether an index is the same for all threads that issue one instruction together."""
    if width == 1:
        return True
    thread, others = thread_among([e])
    grid = Distribution(((thread, build.threads), *((v, 1) for v in others)), (e,)).grid()
    assert grid is not None, "an offset is made of variables"
    at = grid[0][0].reshape(-1, width)
    return bool((at == at[:, :1]).all())


def _unguardable(build: Build, frame: Frame, step: Do, a: AxisState, b: Bound, roomless: bool) -> Refusal:
    if not frame.task.states:
        return unguardable(step, f"`{step}` cannot be guarded, but its last tile along {a.name} extends past the end:"
                           f" it would store {frame.task.name} there", f"use whole tiles of {a.extent} along {a.name}, or remove"
                           " the `do` to use plain loops", a, b)  # fmt: skip
    if roomless:
        return unguardable(step, f"`{step}` cannot be guarded, but its last tile along {a.name} extends past the end:"
                           " the accumulator in shared has no elements there",
                           f"use tile sizes that are multiples of {a.extent} along {a.name} above the accumulator, or remove the"
                           " `do` to use plain loops", a, b)  # fmt: skip
    points = {x.name: simplify(x.base + inside_piece(x.name, x.extent)) for x in frame.spec.axes}
    value = _value(frame.task)
    accesses = accesses_of(build, frame, [value], points)
    mapping = fills(accesses, [*facts(build, frame, points), Unary("not", b.holds(inside_piece(a.name, a.extent)))])
    bare = [(w.read if isinstance(w, Pad) else w).tensor.name for w in reads(value) if w not in mapping and depends(frame, w, a)]
    what = fold(substitute(value, mapping))
    reason = f"nothing fills {', '.join(dict.fromkeys(bare))} there"
    if not bare:
        fill = what.value if isinstance(what, Const) else what
        identity = frame.task.states[0].reduce.combiner.identity[0].value
        reason = f"its operands give {fill} there, not the identity {identity}"
    return unguardable(step, f"`{step}` cannot be guarded, but its last tile along {a.name} extends past the end:"
                       f" {reason}", "load the operands, so that their padding contributes the identity, or remove the `do` to use"
                       " plain loops", a, b)  # fmt: skip


def _value(task: Task) -> Expr:
    """The expression that the innermost statement combines or stores."""
    return task.states[0].reduce.values[0] if task.states else task.values[0]


def _roomless(frame: Frame) -> Collection[str]:
    """The keys of the bounds beyond which a shared accumulator has no elements."""
    if frame.state is None or frame.state.box is None:
        return ()
    roomy = kept_beyond(frame, frame.state).spec
    return {b.key for a in roomy.axes if not a.reduction for b in open_bounds(a) if not b.known}


def _whole_pieces(a: AxisState, b: Bound) -> bool:
    """Whether a bound holds for either all points of a tile or none, wherever the tile begins."""
    terms, constant = linear(b.offset)
    return all(n % max(1, a.extent) == 0 for n in (*(c for _, c in terms), constant - b.limit))


def _bases(frame: Frame) -> dict[str, Expr]:
    return {a.name: a.base for a in frame.spec.axes}


# ------------------------------------------------------------ operands


def first_points(frame: Frame, step: Do, name: str) -> dict[str, Expr]:
    """The coordinates of the element whose address the thread supplies for an operand in memory: the first one that it holds."""
    held = frame.match.instruction.fragment(name)
    assert held is not None
    return points_at(frame, name, held.at(frame.spec.lane, index(0)))


def points_at(frame: Frame, name: str, inside: Sequence[Expr]) -> dict[str, Expr]:
    """The coordinates of an operand's element, given by its indices along the operand's dimensions."""
    binding, points = dict(frame.match.binding), _bases(frame)
    for dim, e in zip(frame.match.instruction.operand(name).dims, inside, strict=True):
        points[binding[dim.name]] = simplify(points[binding[dim.name]] + e)
    return points


def index_value(build: Build, frame: Frame, e: Expr, points: dict[str, Expr]) -> Expr:
    """An index expression of the task, evaluated at a point."""
    return simplify(value_at(build, frame, e, points))


def first_written(build: Build, frame: Frame, step: Do, place: Residence) -> tuple[Expr, ...]:
    """The first element that the thread writes."""
    name = frame.match.instruction.writes
    if not isinstance(place, Share):
        return stored_at(frame, 0, place, first_points(frame, step, name))
    return run_of(build, frame, step, name, place, lambda points: stored_at(frame, 0, place, points))


# ------------------------------------------------------------ registers distributed by tiles


def run_of(build: Build, frame: Frame, step: Do, name: str, share: Share,
           at: Callable[[dict[str, Expr]], tuple[Expr, ...]]) -> tuple[Expr, ...]:  # fmt: skip
    """Where an operand's first element is in a thread's share; checks that the others follow it, register by register.

    at: maps the coordinates of an element to its registers. Raises NotOwner, Refusal.
    """
    held = frame.match.instruction.fragment(name)
    if held is None or held.lanes > 1:
        raise refuse(step, "reader-is-not-owner", f"`{step}`: the steps of its load map {share.tensor.name} to threads, but operand"
                     f" {name} has a fragment layout of its own",
                     f"load {share.tensor.name} in register without `tile ... ->` steps: it then follows the fragment"
                     " layout", f"{held}")  # fmt: skip
    slot = Var("?slot", INDEX, 0, held.slots - 1)
    found_at = at(points_at(frame, name, held.at(index(0), slot)))
    places = tuple(tuple(simplify(substitute(i, {slot: index(n)})) for i in found_at) for n in range(held.slots))
    run = Run(step, name, share.tensor.name, share.buffer, places)
    run.check(share.buffer)
    build.runs.append(run)
    return places[0]
