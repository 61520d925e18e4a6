"""Lowers the steps: tiles mapped to units, loops, and the loads and stages that run ahead in them.

Each step wraps the statements of the remaining steps.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable
from typing import Any

from tilelang.core.expr import INDEX, Expr, Var, binary, index
from tilelang.core.simplify import conjunction, simplify
from tilelang.lowering import ir
from tilelang.lowering.build.clusters import rank_of
from tilelang.lowering.build.conditions import holding, stated
from tilelang.lowering.build.distribution.owners import readers_are_owners
from tilelang.lowering.build.distribution.parallel_mapping import (
    map_tiles,
    numbers,
    tile_numbered,
    units_numbered,
    whole_number,
)
from tilelang.lowering.build.frame import Build, EnclosingLoop, Frame, Trim, is_move
from tilelang.lowering.build.innermost_body import plain_leaf, written_at
from tilelang.lowering.build.instruction.emit import instruction
from tilelang.lowering.build.lookahead import ahead_in
from tilelang.lowering.build.loops import addresses_registers, enclosing_loop, inside_loops, named_ends, trim_of
from tilelang.lowering.build.movement.asynchronous_copies import copied_leaf
from tilelang.lowering.build.movement.cache_prefetch import fetched, is_cache
from tilelang.lowering.build.movement.materialize import compute
from tilelang.lowering.build.movement.storage import is_thread_part
from tilelang.lowering.build.pipelining.multistage_buffers import pipelined_loop
from tilelang.lowering.build.pipelining.producer_loads import role_accumulate, role_load
from tilelang.lowering.build.pipelining.warp_specialization import by_role, has_done, on_roles, only_loads
from tilelang.lowering.build.reductions.results import via
from tilelang.lowering.build.reductions.shared_loop import begin, finished, in_loading_role, parts_stored
from tilelang.lowering.build.refusals import refuse
from tilelang.lowering.passes.unroll import MOST_STATEMENTS
from tilelang.schedules.check import later
from tilelang.schedules.spec import Bound
from tilelang.schedules.steps import Do, Fuse, Inline, Place, Split, Step, Tile, Unfuse, Units, Vectorize
from tilelang.schedules.walk import count_pieces, walk_steps

WORTH_A_VERSION = 8  # from this many points per thread on, a tile gets a second version without a test per point


def chain(build: Build, frame: Frame, i: int) -> ir.Stmt:
    """The statements of steps i, i+1, ... down to the innermost statement."""
    if has_done(build, frame, i):
        return ir.seq()
    if frame.undecided and _decides(build, frame, i):
        return _versions(build, frame, i)
    build.reach(frame, i)
    if frame.fetches and not frame.finishing and i and (here := [f for f in frame.fetches if f.within is frame.steps[i - 1]]):
        rest = frame.replace(fetches=tuple(f for f in frame.fetches if f not in here))
        return ir.seq(*(fetched(build, frame, f) for f in here), chain(build, rest, i))
    if i == len(frame.steps):
        return leaf(build, frame, i, None)
    step = frame.steps[i]
    if isinstance(step, (Tile, Split, Fuse, Unfuse, Vectorize, Do)) and step.span is not None and step.span not in frame.cuts:
        frame = frame.replace(cuts=(*frame.cuts, step.span))
    if isinstance(step, Place) and (frame.finishing or only_loads(build) and step.verb in ("compute", "via")):
        return chain(build, frame, i + 1)
    verb = step.verb if isinstance(step, Place) else type(step)
    assert verb in VERBS, f"`{step}`: `check_lowered` refuses holes"
    return VERBS[verb](build, frame, i, step)


def leaf(build: Build, frame: Frame, i: int, step: Vectorize | Do | None) -> ir.Stmt:
    """The innermost statement of a chain."""
    if isinstance(step, Do):
        with readers_are_owners(step, build.threads):
            return written_at(instruction(build, frame, step), frame)
    return written_at(copied_leaf(build, frame, step) or plain_leaf(build, frame, step), frame)


def renamed(build: Build, frame: Frame, i: int, step: Fuse | Unfuse) -> ir.Stmt:
    """A `fuse` or `unfuse`: continues with the renamed axes."""
    return chain(build, frame.replace(spec=frame.spec.after(step)), i + 1)


def already_applied(build: Build, frame: Frame, i: int, step: Units | Inline) -> ir.Stmt:
    """`units` and `inline`, which took effect before the first step: continues with the remaining steps."""
    return chain(build, frame, i + 1)


# ------------------------------------------------------------ tiles


def tile(build: Build, frame: Frame, i: int, step: Tile) -> ir.Stmt:
    """Maps tiles to the blocks of the grid, or to units below the block or in a cluster."""
    within = frame.spec.level == "cluster" or frame.move is not None and frame.move.among_blocks
    below = within if step.level == "block" else step.level != "cluster"
    return (map_to_units if below else map_to_blocks)(build, frame, i, step)


def map_to_blocks(build: Build, frame: Frame, i: int, step: Tile) -> ir.Stmt:
    """Maps tiles to blocks, or to clusters of blocks: the grid.

    Up to three axes get a dimension of the grid each. If there is an order or a count, if there are more axes, or if the device
    limits a dimension to fewer blocks, all tiles are numbered along one dimension.
    """
    sizes = numbers(step)
    tiles = count_pieces(sizes, frame.spec.extents.sizes)
    empty = any(frame.spec.axis(a).extent == 0 and not frame.spec.axis(a).reduction for a in sizes)
    wide = [a for a in sizes if tiles[a] > 1]
    if build.grid:
        raise refuse(
            step, "blocks-twice", f"`{step}`: tiles were already mapped to blocks", "map all of them to blocks in one tile"
        )
    order = None if empty else step.order  # without tiles the order does not matter
    names = list(reversed(wide)) or list(sizes)[-1:]
    apart = build.profile.tells_apart([tiles[a] for a in wide])
    if step.count is None and order is None and apart:
        found = dict(zip(names, _grid_numbers(build, [tiles[a] for a in names], step, empty), strict=True))
        indices: dict[str, Expr] = {a: found.get(a, index(0)) for a in sizes}
        return chain(build, _entered(build, frame, sizes, indices, step.level), i + 1)
    total = units_numbered(order, tiles)
    count = total if step.count is None else min(int(whole_number(step, step.count)), total)
    (block,) = _grid_numbers(build, [count], step, empty)
    whole = count if step.level == "cluster" else -(-count // build.cluster) * build.cluster
    if count == total:
        return chain(build, _entered(build, frame, sizes, tile_numbered(order, tiles, block), step.level), i + 1)
    again = build.variable("round", -(-total // count))
    tile = Var(build.name("tile"), INDEX, 0, total - 1)
    # The loop's extent is computed instead of a condition in each iteration: PoCL miscompiles barriers under a condition.
    mine = simplify((index(total + whole - 1) - block) // whole)
    walk = EnclosingLoop("block", again, again, -(-total // count), Trim(index(0), mine), "", len(frame.residences))
    entered = _entered(build, frame, sizes, tile_numbered(order, tiles, tile), step.level)
    inner = chain(build, entered.replace(rounds=(*frame.rounds, walk)), i + 1)
    body = ir.Seq((ir.Let(tile, again * whole + block, step.span), inner), step.span)
    return ir.For(again, mine, body, "serial", step.span)


def _grid_numbers(build: Build, extents: list[int], step: Tile, empty: bool) -> list[Expr]:
    """The block's index along each dimension of the grid, which is rounded up to whole clusters: some blocks may have no tile.

    Raises Refusal if the device allows fewer blocks along the first dimension.
    """
    n, level, profile = build.cluster, step.level, build.profile
    first = extents[0] * n if level == "cluster" else -(-extents[0] // n) * n
    most = profile.most_blocks(build.threads)
    if first > most and not empty:
        help = (
            f"use larger tiles, or a fixed number of units that process several tiles each: `-> {level}"
            f" {profile.compute_units or 64}`"
        )
        message = f"`{step}` needs {first} blocks, but a grid of {profile.name} has at most {most}"
        raise refuse(step, "too-many-blocks", message, help)
    blocks = [
        Var(f"block_{'xyz'[d]}", INDEX, 0, count - 1) if count > 1 else index(0) for d, count in enumerate((first, *extents[1:]))
    ]
    build.grid = [first, *extents[1:]]
    return [simplify(blocks[0] // n) if level == "cluster" else blocks[0], *blocks[1:]]


def map_to_units(build: Build, frame: Frame, i: int, step: Tile) -> ir.Stmt:
    """Maps tiles to units below the block, or to blocks of a cluster: one each, or several in a loop if there are more tiles
    than units."""
    spec, among = frame.spec, step.level == "block"
    units, lane = (build.cluster, rank_of(build)) if among else (spec.units or 1, spec.lane)
    reduced = spec.extents.reduced
    plan = map_tiles(build.profile, step, spec.extents, units, is_move(frame))
    walked = [(a, n) for a, n in plan.walks if not (frame.finishing and a in reduced)]  # reduced axes: done
    again = {a: build.variable(f"{a}_round", n) for a, n in walked}
    current: dict[str, Expr] = {a: again.get(a, index(0)) for a, _ in plan.walks}
    inner = _entered(build, frame, dict(plan.sizes), plan.indices(lane, current), step.level)
    idle = [d for d, *_ in plan.reduced_digits(reduced, lane, units)] if frame.finishing else []
    stores = frame.finishing and not frame.repairs  # the owners store; idle threads own no results
    present = spec.present if stores else (*spec.present, *plan.present(lane, units))
    if not among:
        inner = inner.replace(spec=inner.spec.replace(units=plan.per, lane=simplify(lane % plan.per), present=present))
    inner = inner.replace(idle=(*frame.idle, *idle))
    if again:
        rounds = [
            EnclosingLoop(a, v, v, n, None, "", len(frame.residences)) for (a, n), v in zip(walked, again.values(), strict=True)
        ]
        inner = inner.replace(rounds=(*frame.rounds, *rounds)) if among else inner
        slots, walks = ([v for a, v in again.items() if (a in reduced) is kind] for kind in (False, True))
        inner = inner.replace(slots=(*frame.slots, *slots), walks=(*frame.walks, *walks), nest=())
    body = chain(build, inner, i + 1)
    for a, n in reversed(walked):
        body = ir.For(again[a], index(n), body, "serial", step.span)
    return body


def _entered(build: Build, frame: Frame, sizes: dict[str, int], indices: dict[str, Expr], level: str) -> Frame:
    spec = frame.spec.cut(sizes, indices)
    if level == "block" and frame.spec.units is None:
        spec = spec.replace(units=build.threads, lane=build.thread)
    return frame.replace(spec=spec.replace(level=level))


# ------------------------------------------------------------ conditions


def _decides(build: Build, frame: Frame, i: int) -> bool:
    """Whether to split into two versions here: in the innermost loop with enough work per thread, below all moves of its body."""
    if frame.finishing or frame.rare or not stated(frame):
        return False
    inside = frame.steps[i:]
    if any(isinstance(s, Place) and (s.verb != "load" or s.memory != "register" or s.ahead) for s in inside):
        return False
    lanes = next((s.lanes for s in inside if isinstance(s, Vectorize)), 1)
    units = frame.spec.units or build.threads
    enough = WORTH_A_VERSION * (lanes if isinstance(lanes, int) else 1) * units
    left = frame.spec.extents
    if math.prod(left.sizes.values()) < enough:
        return False
    for w in walk_steps(left, (s for s in inside if not isinstance(s, Tile))):
        larger = any(a in w.before.reduced and t > 1 for a, t in w.piece.items())
        if larger and math.prod(w.after.sizes.values()) >= enough:
            return False
    return True


def _versions(build: Build, frame: Frame, i: int) -> ir.Stmt:
    """The remaining steps in two versions: for tiles where the reduction's conditions hold at all points, and for the other tiles."""
    known, test = holding(frame)
    frame = frame.replace(undecided=False)
    whole = frame.replace(known=frame.known | known)
    if test is None:
        return chain(build, whole, i)
    plain, rest = chain(build, whole.replace(nest=()), i), chain(build, frame.replace(nest=()), i)
    return ir.If(test, plain, rest, getattr(frame.steps[i - 1], "span", None))


# ------------------------------------------------------------ loops


def split(build: Build, frame: Frame, i: int, step: Split) -> ir.Stmt:
    """A loop per cut axis, first axis outermost. Loads and stages that run ahead are executed before the iteration that uses them."""
    before: ir.Stmt = ir.seq()
    if step.of and frame.finishing and not frame.repairs:
        frame = finished(build, frame, i)
    elif step.of and not frame.finishing and only_loads(build):
        frame = in_loading_role(build, frame, i, step)
    elif step.of and not frame.finishing:
        before, frame = begin(build, frame, i, step)
        return ir.seq(before, _split(build, frame, i, step), parts_stored(build, frame, i, step))
    return ir.seq(before, _split(build, frame, i, step))


def _split(build: Build, frame: Frame, i: int, step: Split) -> ir.Stmt:
    sizes = numbers(step)
    left = frame.spec.extents
    done = left.reduced if frame.finishing else ()  # already reduced: cut, but without a loop
    pieces = {a: n for a, n in count_pieces(sizes, left.sizes).items() if n > 1 and a not in done}
    loops, variables = [*pieces], {a: build.variable(a, n) for a, n in pieces.items()}
    ahead = (
        [] if frame.finishing else [p for p in ahead_in(frame.steps, i + 1) if not is_cache(build, p) and not by_role(build, p)]
    )
    for place in ahead:
        _check_before(build, frame.steps[i + 1 :], place)
    if ahead and len(loops) > 1:
        return chain(build, frame.replace(steps=_by_axis(frame.steps, i, step, loops)), i)
    if ahead and not loops:
        frame = frame.replace(steps=tuple(s.replace(ahead=0) if any(s is p for p in ahead) else s for s in frame.steps))
        ahead = []
    if frame.finishing and frame.store_lanes and loops == [frame.store_lanes[0]] and sizes[loops[0]] == 1:
        return _vector_loop(build, frame, i, step, loops[0])
    return _loops(build, frame, i, step, sizes, variables, loops, ahead)


def _check_before(build: Build, steps: tuple[Step, ...], place: Place) -> None:
    """Refuses a step that runs ahead if a stage of the iteration makes its tensor or reads it elsewhere, because the move comes
    before the stages.

    A stage that runs ahead reads data from before the loop; tensors that an iteration loads before it belong to that iteration
    only.
    """
    needed = _read_by(build, place) if place.verb == "compute" else set()
    for step in itertools.takewhile(lambda s: s is not place, steps):
        if isinstance(step, Place) and step.verb == "compute":
            task = build.task_of(step.tensor_name)
            if place.tensor_name in {t.name for t in task.outputs} | _read_by(build, step):
                later(place, f"`ahead` below `{step}`, which computes or reads {place.tensor_name},")
            brought = {t.name for t in task.outputs}
        elif isinstance(step, Place) and step.verb == "load" and not is_cache(build, step):
            brought = {step.tensor_name}
        else:
            continue
        if brought & needed:
            later(place, f"`ahead` below `{step}`, which loads its source for one iteration only,")


def _read_by(build: Build, stage: Place) -> set[str]:
    """The tensors that a stage reads."""
    return {r.tensor.name for r in build.task_of(stage.tensor_name).reads()}


def _loops(build: Build, frame: Frame, i: int, step: Split, sizes: dict[str, int], variables: dict[str, Var], loops: list[str],
           ahead: list[Place]) -> ir.Stmt:  # fmt: skip
    indices: dict[str, Expr] = {a: variables.get(a, index(0)) for a in sizes}
    walks: list[EnclosingLoop] = []
    begins: dict[str, list[ir.Stmt]] = {}
    outside = frame
    for a in loops:  # an inner loop's conditions depend on the tile of the outer loops
        trim = trim_of(build, outside, i, step, a, sizes[a])
        begins[a], trim = named_ends(build, trim, a, step)
        walks.append(enclosing_loop(build, frame, a, sizes[a], variables[a], trim))
        outside = outside.replace(spec=outside.spec.cut({a: sizes[a]}, {a: variables[a]}))
    if ahead:
        return ir.seq(*begins[loops[0]], pipelined_loop(build, frame, i, step, sizes, walks[0], ahead))
    if (
        step.peel
        and len(loops) == 1
        and not on_roles(build, frame.steps[i + 1 :])
        and (peeled := _peel(build, frame, i, step, sizes, walks[0]))
    ):
        written = sum(not isinstance(s, ir.Seq) for s in ir.statements(peeled))
        if written > MOST_STATEMENTS:
            raise refuse(step, "unrolled-too-long", f"`{step}` generates its body twice; with the peeled loops inside it"
                         f" this makes {written:,} statements, and the limit is {MOST_STATEMENTS:,}",
                         "remove `peel` from some of these loops")  # fmt: skip
        return ir.seq(*begins[loops[0]], peeled)
    inner = inside_loops(frame, sizes, indices, walks)
    body = chain(build, inner.replace(nest=() if step.peel else (*inner.nest, *walks)), i + 1)
    for w in reversed(walks):
        kind = "unroll" if step.unroll and w.trim is None else "serial"
        body = ir.seq(*begins[w.axis], w.loop(body, kind, step.span))
    return body


def _vector_loop(build: Build, frame: Frame, i: int, step: Split, axis: str) -> ir.Stmt:
    """Finishing: the last loop along the stored axis becomes a vector."""
    assert frame.store_lanes is not None
    extent, lanes = frame.spec.axis(axis).extent, frame.store_lanes[1]
    if extent % lanes:
        place = next((s for s in frame.steps if isinstance(s, Place) and s.verb == "accumulate"), step)
        raise refuse(place, "store-width", f"`{place}`: a thread owns {extent} neighbours along {axis}, but the store writes"
                     f" {lanes} at a time", f"use a width that divides {extent}, or store `via shared`",
                     f"of the {lanes} elements that begin at {axis} = {extent // lanes * lanes}, the thread owns"
                     f" {extent % lanes}")  # fmt: skip
    lane = build.variable("lane", lanes)
    group: Expr = build.variable(axis, extent // lanes) if extent > lanes else index(0)
    value = simplify(group * lanes + lane)
    spec = frame.spec.cut({axis: 1}, {axis: value})
    body = chain(build, frame.replace(spec=spec, slots=(*frame.slots, value)), i + 1)
    vector = ir.For(lane, index(lanes), body, "vector", step.span)
    return ir.For(group, index(extent // lanes), vector, "serial", step.span) if isinstance(group, Var) else vector


def _peel(build: Build, frame: Frame, i: int, step: Split, sizes: dict[str, int], walk: EnclosingLoop) -> ir.Stmt | None:
    """A main loop over whole tiles without bounds checks, then the partial last tile; in a load, then also the tiles that are
    only filled."""
    axis, v, size = walk.axis, walk.var, sizes[walk.axis]
    a = frame.spec.axis(axis)
    bounds = [b for b in a.bounds if not (b.lower or b.known or is_thread_part(b.offset))]
    if a.extent % size:
        bounds.append(Bound("peel", index(0), a.extent))
    if not bounds or addresses_registers(frame, a.reduction):
        return None
    whole: Expr = index(a.extent // size)
    for b in bounds:
        whole = binary("min", whole, binary("max", (index(b.limit) - b.offset) // size, index(0)))
    whole = simplify(whole)
    keys = {*(b.key for b in bounds), walk.makes}
    piece = Var(v.name, INDEX, 0, max(0, a.extent // size - 1))  # whole tiles only
    indices: dict[str, Expr] = {n: piece if n == axis else index(0) for n in sizes}
    frame = frame.replace(nest=())  # the body exists in two versions
    trim = walk.trim
    needs: list[Expr] = []
    main = partial = Trim(index(0), whole, forced=True)
    if trim is not None and trim.conditioned:
        needs = [whole < trim.end, trim.first <= whole]
        main, partial = (Trim(trim.first, simplify(e), forced=True) for e in (binary("min", whole, trim.end), trim.end))
    pieces = dataclasses.replace(walk, var=piece, trip=piece if walk.trip is v else walk.trip, trim=main)
    inner = inside_loops(frame, sizes, indices, [pieces])
    kept = tuple(
        x.replace(bounds=tuple(b.replace(known=True) if b.key in keys else b for b in x.bounds)) if x.name == axis else x
        for x in inner.spec.axes
    )
    within = [simplify(b.offset + piece * size + (size - 1)) < b.limit for b in bounds]
    inner = inner.replace(spec=inner.spec.replace(axes=kept), within=(*frame.within, *within))
    most = pieces.loop(chain(build, inner, i + 1), "serial", step.span)
    last = Var(build.name(v.name), INDEX, 0, v.upper)
    remainder: Expr = index(a.extent)
    for b in bounds:
        if b.key not in frame.fill_keys:
            remainder = binary("min", remainder, index(b.limit) - b.offset)
    filled = not keys.isdisjoint(frame.fill_keys)
    trip = Var(build.name(v.name), INDEX, 0, v.upper) if filled else last
    if filled:
        partial = Trim(whole, simplify((remainder + (size - 1)) // size))
    end = dataclasses.replace(walk, var=last, trip=trip, trim=partial, before=[])
    rest = inside_loops(frame, sizes, {n: last if n == axis else index(0) for n in sizes}, [end])
    if filled:
        return ir.seq(most, end.loop(chain(build, rest.replace(rare=True), i + 1), "serial", step.span))
    guard, round = conjunction([whole * size < remainder, *needs]), whole
    if guard is not None and trim is not None and trim.forced:  # if no tile is whole, this is the one iteration that always runs
        guard, round = simplify(binary("or", guard, whole <= trim.first)), simplify(binary("max", whole, trim.first))
    tail = ir.Seq((ir.Let(last, round, step.span), chain(build, rest.replace(rare=True), i + 1)), step.span)
    return ir.seq(most, tail if guard is None else ir.If(guard, tail, None, step.span))


def _by_axis(steps: tuple[Step, ...], i: int, step: Split, loops: list[str]) -> tuple[Step, ...]:
    """The steps with a loop over several axes as nested loops, one per axis; the steps that run ahead do so in the innermost loop."""
    outer, sizes = loops[:-1], dict(step.sizes)
    rest = tuple((a, t) for a, t in step.sizes if a not in outer)
    nested = [step.replace(sizes=((a, sizes[a]),), peel=False) for a in outer]
    return (*steps[:i], *nested, step.replace(sizes=rest), *steps[i + 1 :])


VERBS: dict[str | type[Step], Callable[[Build, Frame, int, Any], ir.Stmt]] = {
    Tile: tile, Split: split, Fuse: renamed, Unfuse: renamed, Vectorize: leaf, Do: leaf,
    Units: already_applied, Inline: already_applied,
    "load": role_load, "compute": compute, "accumulate": role_accumulate, "via": via,
}  # fmt: skip
