"""Software pipelining with circular buffers: filled before the loop; then each iteration loads the data of a later one.

A buffer continues across the end of its loop into the next iteration of an enclosing loop, if the region that is read then is
known in advance. It is filled once, before the outermost such loop, and its slot is the count of all their iterations modulo its
size. Otherwise it drains and is filled again; `explain` gives the reason.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping

from tilelang.core.expr import INDEX, Expr, Read, Var, index, substitute
from tilelang.core.simplify import simplify
from tilelang.lowering import ir
from tilelang.lowering.build.frame import Build, EnclosingLoop, Frame, Ring
from tilelang.lowering.build.instruction.fragment_loads import share_of
from tilelang.lowering.build.loops import inside_loops
from tilelang.lowering.build.movement.access_regions import Use
from tilelang.lowering.build.movement.asynchronous_copies import choose_copies
from tilelang.lowering.build.movement.footprint import Region, region_of
from tilelang.lowering.build.movement.materialize import make_resident, make_stage, ring_body, staged_move
from tilelang.lowering.build.movement.stages import stage_frame
from tilelang.lowering.build.pipelining.iteration_count import Arrival, Iterations, completes_later, in_iteration
from tilelang.lowering.build.pipelining.register_buffers import clear_ring, register_ring, rotate_ring
from tilelang.lowering.build.refusals import refuse
from tilelang.schedules.steps import Place, Split

At = Callable[[Mapping[Var, Expr]], Frame]  # the frame inside the loop in another iteration
MOST_AHEAD = 1024  # iterations; the moves before the loop are unrolled
UNKNOWN_BYTES = 1 << 24  # the capacity of a memory if the profile has none


def pipelined_loop(
    build: Build, frame: Frame, i: int, step: Split, sizes: dict[str, int], own: EnclosingLoop, ahead: list[Place]
) -> ir.Stmt:
    """A loop in which some loads and stages run ahead."""

    def at(where: Mapping[Var, Expr]) -> Frame:
        outer = {v: e for v, e in where.items() if v is not own.var}
        indices = {a: where.get(own.var, own.var) if a == own.axis else index(0) for a in sizes}
        return inside_loops(in_iteration(frame, outer), sizes, indices, [own])

    places = {place: frame.steps.index(place, i + 1) for place in ahead}
    rings = {place: build.ring(frame.key(k)) for place, k in places.items()}
    for place, k in places.items():
        _check_room(build, at({}), k, place)
    rounds = {place: _continuous_iterations(build, frame, at, k, place, own) for place, k in places.items()}
    for place, k in places.items():
        choose_copies(build, at(_variables(rounds[place], place, lambda stem: f"?{stem}")), k, place, index(0))
    awaited: list[tuple[Arrival, int]] = []
    _prologue(build, at, places, rounds, rings, awaited)
    fetches: dict[Place, ir.Stmt] = {}
    ends: list[ir.Stmt] = []  # at the end of the iteration: stores of what waited in registers
    rotations: list[ir.Stmt] = []
    groups = [p.ahead for p in ahead if completes_later(rings[p], p)]
    awaited.clear()
    for place, k in places.items():
        if (arrival := _arrival(build, at, k, place, rounds[place])) is not None:
            waits = _waits(build, at, k, place, rounds[place], awaited)
            fetches[place] = _crossing(build, at, k, place, rounds[place], arrival, waits)
        else:
            fetches[place], end = _load_ahead(build, at, k, place, rounds[place])
            ends += end
        if place.memory == "register":
            if place.verb == "compute":
                own.before.insert(0, clear_ring(build, rings[place], place))
            rotations.append(rotate_ring(build, rings[place], place, lambda j, r=rounds[place]: r.exists(r.number + j)))  # type: ignore[misc]
        elif place.verb == "load":
            pending = min(groups) - 1 if completes_later(rings[place], place) else None
            build.arrivals[rings[place].buffers[place.tensor_name][0].name] = Arrival(
                rounds[place], place.ahead > len(end), pending
            )
    slots = {p: simplify(rounds[p].number % (p.ahead + 1)) for p in ahead}
    body = ring_body(build, at({}).replace(nest=(*frame.nest, own)), i + 1, slots, fetches)
    return own.loop(ir.seq(body, ir.joined(*ends), ir.joined(*rotations)), "serial", step.span)


def _check_room(build: Build, frame: Frame, k: int, place: Place) -> None:
    """Refuses a multistage buffer that alone exceeds the memory, before its buffers are created."""
    count = place.ahead + 1
    each = _buffer_bytes(build, frame, k, place)
    profile = build.profile
    # On a CPU the capacity is a cache's, and ordinary memory may hold the excess if the target allows it.
    capacity = profile.memory(place.memory).capacity_bytes if profile.lockstep else None
    capacity = capacity or UNKNOWN_BYTES
    if count * each > capacity:
        message = f"`{place}`: the {count} stages of its buffer take {count * each} bytes of {place.memory}, which has {capacity}"
        most = min(MOST_AHEAD, max(0, capacity // each - 1))
        help = "use smaller tiles" if capacity < each else "remove `ahead`, or use smaller tiles"
        if most:
            help = f"use at most `ahead {most}`, or smaller tiles"
        raise refuse(place, "memory-over-capacity", message, help)
    if place.ahead > MOST_AHEAD:
        message = f"`{place}`: the loads of the first {place.ahead} iterations would each be unrolled before the loop"
        raise refuse(place, "ring-too-long", message, f"use at most `ahead {MOST_AHEAD}`")


def _buffer_bytes(build: Build, frame: Frame, k: int, place: Place) -> int:
    """A lower bound on the bytes of one buffer of the ring; for registers, those of one thread."""
    if place.verb == "compute":
        stage = stage_frame(build, frame, k, k, place)
        points = math.prod(max(1, a.extent) for a in stage.spec.axes if not a.reduction)
        points = points if place.memory == "shared" else max(1, points // build.threads)
        return points * sum(t.dtype.bytes for t in stage.task.outputs)
    region, uses = region_of(build, frame, k, place)
    (tensor,) = region.task.outputs
    if place.memory == "shared":
        return math.prod(max(1, a.extent) for a in region.spec.axes) * tensor.dtype.bytes
    with build.dropped():
        return share_of(build, frame, k, place, region, uses).buffer.bytes


def _prologue(build: Build, at: At, places: Mapping[Place, int], rounds: Mapping[Place, Iterations], rings: Mapping[Place, Ring],
          awaited: list[tuple[Arrival, int]]) -> None:  # fmt: skip
    """Puts the moves for the first iterations before the loops. The copies for one iteration form one group, as inside the loop."""
    for first in dict.fromkeys(r.walks[0] for r in rounds.values()):
        mine = {p: k for p, k in places.items() if rounds[p].walks[0] is first}
        for p, k in mine.items():
            first.before.extend(_waits(build, at, k, p, rounds[p], awaited))
        for j in range(max(p.ahead for p in mine)):
            now = {p: k for p, k in mine.items() if j < p.ahead}
            first.before.extend(_first_move(build, at, k, p, rounds[p], j) for p, k in now.items())
            if later := [p for p in now if completes_later(rings[p], p)]:
                first.before.append(ir.Commit(later[-1].span))


def _first_move(build: Build, at: At, k: int, place: Place, rounds: Iterations, j: int) -> ir.Stmt:
    """The move for iteration j."""
    number = simplify(rounds.first + j)
    where = _no_better_known(build, at, k, place, rounds, rounds.at(number))
    if place.verb == "compute":
        move, _ = make_stage(build, at(where), k, place, _slot(place, number, j))
    elif place.memory == "register":
        move = register_ring(build, at(where), k, place, j)
    else:
        move, _ = make_resident(build, at(where), k, place, _slot(place, number, j))
    lets = _named(where, rounds.at(number), place)
    move = ir.Seq((*lets, move), place.span) if lets else move
    guard = rounds.exists(number)
    return move if guard is None else ir.If(guard, move, None, place.span)


def _load_ahead(build: Build, at: At, k: int, place: Place, rounds: Iterations) -> tuple[ir.Stmt, list[ir.Stmt]]:
    """What an iteration loads for a later one: the part at its beginning, and the part that is left for its end."""
    n = place.ahead
    number = rounds.number + n
    following = _no_better_known(build, at, k, place, rounds, _variables(rounds, place, build.name))
    commit: ir.Stmt | None = None
    if place.verb == "compute":
        fetch, _ = make_stage(build, at(following), k, place, _slot(place, number, n))
    elif place.memory == "register":
        fetch = register_ring(build, at(following), k, place, n)
    else:
        fetch, commit = staged_move(build, at(following), k, place, _slot(place, number, n))
    lets = _named(following, rounds.at(number), place)
    guard = rounds.exists(number)

    def guarded(s: ir.Stmt) -> ir.Stmt:
        whole = ir.Seq((*lets, s), place.span)
        return whole if guard is None else ir.If(guard, whole, None, place.span)

    return guarded(fetch), [] if commit is None else [guarded(commit)]


# ------------------------------------------------------------ from the multistage buffer of an enclosing loop


def _arrival(build: Build, at: At, k: int, place: Place, rounds: Iterations) -> Arrival | None:
    """The multistage buffer of an enclosing loop from which a load reads, if it also reads that loop's next iteration."""
    if len(rounds.walks) == 1:
        return None
    here = at({})
    found = build.arrivals.get(region_of(build, here, k, place)[0].source.buffer.name)
    return found if found is not None and any(w is found.rounds.walks[-1] for w in rounds.walks) else None


def _waits(build: Build, at: At, k: int, place: Place, rounds: Iterations, awaited: list[tuple[Arrival, int]]) -> list[ir.Stmt]:
    """The wait before a load's move, unless an earlier load of the loop has already waited for it."""
    arrival = _arrival(build, at, k, place, rounds)
    if arrival is None or arrival.pending is None:
        return []
    outer = arrival.rounds.walks[-1]
    if any(a.rounds.walks[-1] is outer and n >= place.ahead for a, n in awaited):
        return []
    awaited.append((arrival, place.ahead))
    return [ir.Wait(arrival.pending, place.span)]


def _crossing(build: Build, at: At, k: int, place: Place, rounds: Iterations, arrival: Arrival, waits: list[ir.Stmt]) -> ir.Stmt:
    """The move for a later iteration of the inner loop: within the current iteration of the enclosing loop, or in its next
    one, whose data must have arrived."""
    split = next(d for d, w in enumerate(rounds.walks) if w is arrival.rounds.walks[-1]) + 1
    outer, inner = Iterations(rounds.walks[:split]), Iterations(rounds.walks[split:])
    number = inner.number + place.ahead

    def move(part: Iterations, values: Mapping[Var, Expr], waits: list[ir.Stmt], guard: Expr | None) -> ir.Stmt:
        where = _no_better_known(build, at, k, place, part, _variables(part, place, build.name))
        fetch = register_ring(build, at(where), k, place, place.ahead)
        arrival.awaited.extend(ir.statements(fetch))
        whole = ir.Seq((*_named(where, values, place), *waits, fetch), place.span)
        return whole if guard is None else ir.If(guard, whole, None, place.span)

    here = inner.at(simplify(number))
    stay = move(inner, here, [], None if all(w.whole for w in inner.walks) else inner.exists_at(here))
    there = {**outer.at(simplify(outer.number + 1)), **inner.at(simplify(number - inner.most))}
    cross = move(rounds, there, waits, rounds.exists_at(there))
    return ir.If(simplify(number) < inner.most, stay, cross, place.span)


def _no_better_known(
    build: Build, at: At, k: int, place: Place, rounds: Iterations, where: Mapping[Var, Expr]
) -> Mapping[Var, Expr]:
    """The iteration `where` with known loop variables, or with fresh ones if knowing them would give another region than the
    readers have.

    With quotients, an iteration that begins at a multiple of the divisor reads fewer elements than others, and they are
    distributed over the threads differently.
    """
    mine, readers = (_shape_of(build, at(x), k, place, x or where) for x in (where, {}))
    counted = rounds.first is index(0) or all(isinstance(e, Var) for e in where.values())  # otherwise its range is unknown
    if counted and mine == readers:
        return where
    begins = {w.first for w in rounds.walks}
    own = {v: e.name for v, e in where.items() if isinstance(e, Var) and e not in begins}
    names = {v: own[v] if v in own else build.name(f"{v.name}_first") for v in where}
    return {w.var: Var(names[w.var], INDEX, 0, w.rounds - 1) for w in rounds.walks}


def _shape_of(build: Build, frame: Frame, k: int, place: Place, where: Mapping[Var, Expr]) -> tuple[object, ...]:
    """The extents that an iteration loads or computes, and each thread's share of them."""
    if place.verb == "compute":
        return tuple(a.extent for a in stage_frame(build, frame, k, k, place).spec.axes)
    region, uses = region_of(build, frame, k, place)
    extents = tuple(a.extent for a in region.spec.axes)
    if place.memory != "register":
        return extents
    with build.dropped():
        share = share_of(build, frame, k, place, region, uses)
    dims = [dataclasses.replace(d, unit=simplify(substitute(d.unit, where))) for d in share.dims]
    return (*extents, *dims)


# ------------------------------------------------------------ where a multistage buffer drains


def _continuous_iterations(build: Build, frame: Frame, at: At, k: int, place: Place, own: EnclosingLoop) -> Iterations:
    """The iterations over which a multistage buffer continues without draining; for a stage, those of its own loop."""
    rounds = Iterations((own,))
    if not frame.nest or place.verb == "compute":
        return rounds
    here = at({})
    region, uses = region_of(build, here, k, place)
    for walk in reversed(frame.nest):
        reason = _why_it_drains(build, here, place, region, uses, rounds, walk)
        if reason is not None:
            build.note(f"`{place}`: the pipeline drains in every iteration over {walk.axis}, because {reason}")
            break
        rounds = Iterations((walk, *rounds.walks))
    return rounds


def _why_it_drains(
    build: Build, here: Frame, place: Place, region: Region, uses: list[Use], rounds: Iterations, walk: EnclosingLoop
) -> str | None:
    """Why the buffer must drain before the next iteration of an enclosing loop; None if it continues."""
    short = next((w for w in rounds.walks if not w.whole_until_the_end_of(walk)), None)
    if short is not None:
        return f"the loop over {short.axis} is shorter in some of them"
    if any(isinstance(e, Read) for u in uses for i in u.read.indices for e in i.walk()):
        return "the indices are read from a tensor"
    source = region.source
    if any(r is source for r in here.residences[: walk.residences]):
        return None
    arrival = build.arrivals.get(source.buffer.name)
    if arrival is None or not arrival.early or place.memory != "register" or all(w is not walk for w in arrival.rounds.walks):
        return f"its source is in {source.buffer.memory} memory only during that iteration"
    if walk is arrival.rounds.walks[-1] and place.ahead > rounds.most:
        return f"it is {place.ahead} iterations ahead, and the inner loop has only {rounds.most}"
    return None


def _slot(place: Place, number: Expr, ahead: int) -> Expr:
    """The buffer of the ring that the move for an iteration fills. In registers readers always use the first, so it is the
    distance ahead."""
    return index(ahead) if place.memory == "register" else simplify(number % (place.ahead + 1))


def _variables(rounds: Iterations, place: Place, name: Callable[[str], str]) -> dict[Var, Var]:
    """The loop variables of the iteration that a move is for."""
    if len(rounds.walks) == 1:
        (own,) = rounds.walks
        n = place.ahead
        return {own.var: Var(name(f"{own.var.name}_next"), INDEX, n, max(n, own.rounds - 1))}
    return {w.var: Var(name(f"{w.var.name}_next"), INDEX, 0, w.rounds - 1) for w in rounds.walks}


def _named(where: Mapping[Var, Expr], values: Mapping[Var, Expr], place: Place) -> tuple[ir.Stmt, ...]:
    """Lets that bind the loop variables of that iteration."""
    named = [(name, values[v]) for v, name in where.items() if isinstance(name, Var)]
    return tuple(ir.Let(name, value, place.span) for name, value in named if value is not name)
