"""Layout conversion: reloads a tensor from registers into registers with another distribution over the threads.

Elements that a thread already has cost nothing but a renaming of registers. Elements in other lanes of the same warp are fetched
by warp shuffles, if the device has an instruction for them (found by its meaning). All others go through shared memory: each
owner stores its elements once, and the load then continues as from any shared buffer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from tilelang.core.dtype import int32
from tilelang.core.expr import Binary, Cast, Expr, Select, Var, const, index, substitute
from tilelang.core.layout import Layout
from tilelang.core.simplify import conjunction, simplify
from tilelang.instructions.instruction import Instruction
from tilelang.lowering import ir
from tilelang.lowering.build.distribution.shuffle_plan import Held, fetches, held
from tilelang.lowering.build.frame import Build, Frame, nested, own_copy
from tilelang.lowering.build.innermost_body import guarded
from tilelang.lowering.build.instruction.fragment_loads import fetch_share
from tilelang.lowering.build.instruction.warp_shuffles import gather, warp_lanes
from tilelang.lowering.build.movement.footprint import Region
from tilelang.lowering.build.movement.storage import Box, Share, within
from tilelang.schedules.spec import Bound
from tilelang.schedules.steps import Do, Place


def redistributed(build: Build, frame: Frame, step: Place, region: Region, share: Share) -> ir.Stmt:
    """Statements that fill a share from the registers of its thread, from other lanes, or from memory."""
    source = region.source
    if not isinstance(source, Share) or source.owners is None or source.points != region.points:
        return fetch_share(build, frame, step, region, share)
    thread = build.thread
    if not isinstance(thread, Var):  # a single thread has every element
        return fetch_share(build, frame, step, region, share)
    has = held(source, thread)
    if has is None:  # the distribution is unknown, so readers must be owners
        return fetch_share(build, frame, step, region, share)
    by_instruction = step.steps and isinstance(step.steps[-1], Do)
    exchanged = None if by_instruction else _by_registers(build, step, region, source, has, share, thread)
    return exchanged if exchanged is not None else _through_shared(build, frame, step, region, source, has, share)


# ------------------------------------------------------------ from register to register


def _by_registers(
    build: Build, step: Place, region: Region, source: Share, has: Held, share: Share, thread: Var
) -> ir.Stmt | None:
    """Fills every register of a share from a register that has its element; None if some elements must go through memory."""
    assert source.owners is not None
    profile = build.profile
    never_made = source.fill is None and any(not b.is_certain(a.extent) for a in source.owners.leaf for b in a.bounds)
    shuffle = None if never_made else gather(profile, source.buffer.dtype)
    extents = [a.extent for a in region.spec.axes]
    found = fetches(source, has, share, extents, thread, warp_lanes(profile) if shuffle is not None else 0)
    if found is None:
        return None
    out: list[ir.Stmt] = []
    lanes: dict[Expr, ir.Buffer] = {}
    for fetch in found:
        fill: Expr = const(region.fill.value, source.buffer.dtype)
        values: list[Expr] = [ir.Load(source.buffer, at) for at in fetch.sources]
        if fetch.lane is not None:
            assert shuffle is not None
            if fetch.lane not in lanes:
                lanes[fetch.lane] = build.buffer("from_lane", int32, (1,), "register", "temporary")
                out.append(ir.Store(lanes[fetch.lane], (index(0),), Cast(fetch.lane, int32), None, False, step.span))
            moved = [_of_lane(build, *shuffle, source.buffer, at, lanes[fetch.lane], step) for at in fetch.sources]
            out += [instruction for instruction, _ in moved]
            values = [value for _, value in moved]
        value = values[-1] if values else fill
        for number in reversed(range(len(values) - 1)):
            value = Select(Binary("==", fetch.which, index(number)), values[number], value)
        exists = conjunction(_conditions(region, share.inside(fetch.at))) if values else None
        value = value if exists is None else Select(exists, value, fill)
        out.append(ir.Store(share.buffer, fetch.at, value, None, False, step.span))
    return ir.seq(*out)


def _of_lane(build: Build, shuffle: Instruction, named: str, buffer: ir.Buffer, at: tuple[Expr, ...], lane: ir.Buffer,
             step: Place) -> tuple[ir.Stmt, Expr]:  # fmt: skip
    """Fetches a register of another lane into a register of this one. lane: the buffer with the number of the other lane."""
    got = build.buffer(f"{buffer.name}_other", buffer.dtype, (1,), "register", "temporary")
    (source,) = (name for name in shuffle.reads if name != named)
    start = (index(0),)
    operands = ((shuffle.writes, got, start), (source, buffer, at), (named, lane, start))
    return ir.Instruction(shuffle, operands, shuffle.width, step.span), ir.Load(got, start)


# ------------------------------------------------------------ through shared memory


def _through_shared(build: Build, frame: Frame, step: Place, region: Region, source: Share, has: Held, share: Share) -> ir.Stmt:
    """Stores every element from its owner to shared memory, each unit to its own part of the buffer, and loads the share from there."""
    assert source.owners is not None
    placement = Layout().place(dict(zip(source.names, has.extents, strict=True)), source.buffer.dtype.bytes)
    count, unit = own_copy(source.owners.units, build.threads)
    buffer = build.buffer(f"{source.tensor.name}_exchanged", source.buffer.dtype, (*count, *placement.shape), "shared")
    box = Box(source.tensor, None, buffer, points=source.points, low=source.low, placement=placement, unit=unit)
    put = _handed_on(build, source, box, step)
    return ir.seq(put, fetch_share(build, frame, step, _within_box(region, box, has.extents), share))


def _handed_on(build: Build, source: Share, box: Box, step: Place) -> ir.Stmt:
    """Stores every element of a share to a shared buffer, by one thread each."""
    owners = source.owners
    assert owners is not None
    slots, at, inside = source.piece()
    loops = [(v, build.variable(_plain_name(v), 1 + (v.upper or 0))) for v in (*owners.walks, *slots)]
    names: dict[Expr, Expr] = dict(loops)

    def here(e: Expr) -> Expr:
        return simplify(substitute(e, names))

    element = tuple(here(a.base + e) for a, e in zip(owners.leaf, inside, strict=True))
    bounds = [here(b.holds(e)) for a, e in zip(owners.leaf, inside, strict=True) for b in a.bounds if not b.known]
    value = ir.Load(source.buffer, tuple(here(i) for i in at))
    body: ir.Stmt = ir.Store(box.buffer, box.at(element), value, None, False, step.span)
    body = guarded(body, [*owners.present, *owners.alone, *bounds], step.span)
    return nested([v for _, v in loops], body, "serial", step.span)


def _within_box(region: Region, box: Box, extents: Sequence[int]) -> Region:
    """A region that is loaded from a shared buffer, bounded by the elements stored there: large tiles and idle units reach
    beyond them."""
    axes = []
    for d, (a, low, n) in enumerate(zip(region.spec.axes, box.low, extents, strict=True)):
        begin = simplify(a.base - low)
        bounds = (Bound(f"exchanged:{d}<", begin, n), Bound(f"exchanged:{d}>", begin, 0, True))
        axes.append(a.replace(bounds=(*a.bounds, *(b for b in bounds if not b.is_certain(a.extent)))))
    return dataclasses.replace(region, spec=region.spec.replace(axes=tuple(axes)), source=box)


def _plain_name(v: Var) -> str:
    """The name of the axis that a look-ahead variable iterates over."""
    return v.name[1:].split()[0].rstrip("0123456789")


def _conditions(region: Region, inside: Sequence[Expr]) -> list[Expr]:
    """The conditions under which an element exists; `inside` counts it from the start of the region."""
    axes = region.spec.axes
    bounds = [b.holds(e) for a, e in zip(axes, inside, strict=True) for b in a.bounds]
    return [*within(inside, [a.extent for a in axes]), *bounds]
