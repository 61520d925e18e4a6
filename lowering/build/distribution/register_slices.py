"""Tensors in registers: each thread has a slice, given by the reads below or by the tiles that the load itself maps to threads.

For each dimension, a slice has a start that depends on the thread, and the offsets that the loops below iterate over.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from tilelang.core.distribution import variables
from tilelang.core.expr import Expr, Var, index, substitute
from tilelang.core.layout import split_terms
from tilelang.core.simplify import interval, simplify
from tilelang.errors import Span
from tilelang.lowering import ir
from tilelang.lowering.build.distribution.owners import offsets_within, thread_among
from tilelang.lowering.build.frame import Build, Frame, Target, nested
from tilelang.lowering.build.instruction.fragments import shifted
from tilelang.lowering.build.lookahead import is_lookahead_variable, leaf_points, leaf_spec, owners_of
from tilelang.lowering.build.movement.access_regions import Use
from tilelang.lowering.build.movement.footprint import Region, sources
from tilelang.lowering.build.movement.shared_loads import move_frame
from tilelang.lowering.build.movement.stages import stage_frame
from tilelang.lowering.build.movement.storage import DimShare, Fixed, Share, is_thread_part
from tilelang.lowering.build.refusals import refuse
from tilelang.lowering.sets import extremes
from tilelang.schedules.spec import AxisState, Bound, Spec, point
from tilelang.schedules.steps import Do, Fuse, Place, Split, Step, Tile, Unfuse, Vectorize


def _declared(build: Build, frame: Frame, step: Place, region: Region) -> Share:
    """The share of a load whose own tiles say which thread holds which element."""
    move, name = move_frame(build, frame, step, region, Target(())), step.tensor_name
    leaf = leaf_points(move, build.profile)  # a thread holds what its own instruction loads
    share = _make_share(build, name, region, declared_shares(region.spec.axes, leaf, step, move.steps))
    owners = None if any(a.extent > 1 for a in leaf.axes) else owners_of(build, move, leaf, region.spec.names)
    return dataclasses.replace(share, owners=owners, steps=tuple(s for s in step.steps or () if isinstance(s, Tile)))


def plain_share(build: Build, frame: Frame, i: int, step: Place, region: Region, uses: list[Use]) -> Share:
    """The elements of each thread: as the load's own tiles say; without any, exactly those that the thread reads below."""
    if declares_owners(frame, step):
        return _declared(build, frame, step, region)
    if region.points:
        leaf = leaf_spec(frame, i + 1, build.profile)
        readers = [tuple(leaf.axis(a.name).base for a in region.spec.axes)]
    else:
        readers = [indices for _, indices in reader_indices(build, frame, i, uses)]
    offsets = [[simplify(indices[d] - low) for indices in readers] for d, low in enumerate(region.low)]
    name = step.tensor_name
    return _make_share(build, name, region, [_everything(o) if _mixed(o) else dim_share(o, step, name) for o in offsets])


def _make_share(build: Build, name: str, region: Region, shares: Sequence[DimShare]) -> Share:
    dims = tuple(shares)
    tensor = region.task.outputs[0]
    buffer = build.buffer(f"{name}_register", tensor.dtype, tuple(d.size for d in dims if d.size > 1), "register")
    fields = (tensor, region.read, buffer, region.fill, region.outside)
    return Share(*fields, low=region.low, dims=dims, points=region.points, moved=region.ends)


def reader_indices(build: Build, frame: Frame, i: int, uses: list[Use]) -> list[tuple[Use, tuple[Expr, ...]]]:
    """The indices of each use at the innermost statement that reads it: of this chain, or of the stage that the use belongs to."""
    out = []
    main_leaf = leaf_spec(frame, i + 1, build.profile)
    for use in uses:
        if use.main:
            leaf = main_leaf
            named = dict(leaf.coordinates)
            axes: dict[Expr, Expr] = {a: named[a.name] for a in (*frame.task.axes, *frame.task.reduction_axes)}
        else:
            leaf, axes = _stage_leaf(build, frame, i, use)
        points = {point(a.name): a.base for a in leaf.axes}
        values = tuple(simplify(substitute(substitute(x, axes), points)) for x in use.read.indices)
        out.append((use, values))
    return out


def _stage_leaf(build: Build, frame: Frame, i: int, use: Use) -> tuple[Spec, dict[Expr, Expr]]:
    """The innermost spec of the stage that makes a use, and the values of the stage's axes there."""
    k, step = next((k, s) for k, s in enumerate(frame.steps) if k > i and isinstance(s, Place) and s.verb == "compute"
                   and any(t.name == s.tensor_name for t in use.task.outputs))  # fmt: skip
    stage = stage_frame(build, frame, i, k, step)
    leaf = leaf_points(stage, build.profile)
    named = dict(leaf.coordinates)
    return leaf, {a: named[a.name] for a in (*stage.task.axes, *stage.task.reduction_axes)}


def fetch_slots(build: Build, frame: Frame, step: Place, region: Region, share: Share) -> ir.Stmt:
    """Loads every register of a share from where the tensor was; as vectors along a dimension if the load asks for them and
    the registers are contiguous."""
    if declares_owners(frame, step):
        return build.chain(move_frame(build, frame, step, region, Target((share,))), 0)
    leaf = step.steps[-1] if step.steps else None
    if isinstance(leaf, Do):
        raise refuse(leaf, "not-lowered-yet", f"`{leaf}` in the braces of a load in registers that map no tiles to threads is"
                     " valid, but not supported yet",
                     "map tiles to threads above it, as in tile ... -> thread")  # fmt: skip
    axis, lanes = vector_asked(step, region)
    wide = [a.name for a in region.spec.axes].index(axis) if axis is not None else -1
    lanes = _run(share.dims[wide], lanes) if axis is not None else 1
    outer, inner, at = list[Expr](), list[Expr](), list[Expr]()
    for d, dim in enumerate(share.dims):
        width = lanes if d == wide else 1
        outer.append(build.several(f"{share.tensor.name}_r", dim.size // width))
        inner.append(build.several("lane", width))
        at += [simplify(outer[d] * width + inner[d])] if dim.size > 1 else []
    body = fetch_element(build, frame, region, share, tuple(at) or (index(0),), step.span)
    return nested(outer[::-1], nested(inner, body, "vector", step.span), "serial", step.span)


def vector_asked(step: Place, region: Region) -> tuple[str | None, int]:
    """The axis and width of the vectors that a load asks for; (None, 1) if it asks for none."""
    leaf = step.steps[-1] if step.steps else None
    if not isinstance(leaf, Vectorize) or not isinstance(leaf.lanes, int):
        return None, 1
    names = [a.name for a in region.spec.axes]
    if leaf.axis not in names:
        raise refuse(leaf, "unknown-axis", f"`{leaf}` names an axis that {step.tensor_name} does not have; its dimensions are"
                     f" {', '.join(names)}",
                     "use the tensor's own dimensions")  # fmt: skip
    return leaf.axis, leaf.lanes


def fetch_element(
    build: Build, frame: Frame, region: Region, share: Share, at: tuple[Expr, ...], origin: Span | None = None
) -> ir.Stmt:
    """Loads one register of a share, or sets it to the fill value if there is no such element."""
    axes = []
    for a, shift in zip(region.spec.axes, share.inside(at), strict=True):
        end = Bound(f"region:{a.name}<", index(0), a.extent)  # a reader's last tile may reach beyond the region
        begin = Bound(f"region:{a.name}>", index(0), 0, True)  # bounds on offsets are loose if the offsets contain quotients
        axes.append(shifted(a.replace(bounds=(*a.bounds, end, begin)), shift))
    inner = Frame(
        region.task,
        (),
        region.spec.replace(axes=tuple(axes), units=1),
        Target((Fixed(share.tensor, None, share.buffer, slots=at),)),
        sources(frame, region),
        fill=region.fill,
        fill_keys=frozenset(b.key for a in axes for b in a.bounds),
        origin=origin,
        cuts=frame.cuts,
    )
    return build.chain(inner, 0)


def declares_owners(frame: Frame, step: Place) -> bool:
    """Whether a load's own steps decide which thread holds which element: its tiles, or its loops if there is only one thread."""
    alone = (frame.spec.units or 1) == 1
    return any(isinstance(s, Tile) or alone and isinstance(s, Split) for s in step.steps or ())


def declared_shares(whole: Sequence[AxisState], leaf: Spec, step: Place, steps: Iterable[Step]) -> tuple[DimShare, ...]:
    """The share of each dimension, from the axes before the steps that divide it and the spec below those steps.

    Raises Refusal `not-lowered-yet` if the steps fuse or unfuse the dimensions.
    """
    dims = {a.name for a in whole}
    for s in steps:
        if isinstance(s, (Fuse, Unfuse)) and dims & set(s.axes if isinstance(s, Fuse) else (s.axis,)):
            raise refuse(s, "not-lowered-yet", f"`{s}` in the braces of a tensor in registers is valid, but not supported"
                         " yet", "tile the tensor's own dimensions, or keep it in shared")  # fmt: skip
    return tuple(declared_share(a, leaf.axis(a.name), step, step.tensor_name) for a in whole)


def declared_share(whole: AxisState, leaf: AxisState, step: Place, name: str) -> DimShare:
    """The share of one dimension, from the steps that divide it, without points that a loop or vector reaches beyond the thread's
    tile.

    whole, leaf: the axis before these steps and below them.
    """
    offset = simplify(leaf.base - whole.base)
    share = dim_share([offset], step, name)
    outside = {b.key for b in whole.bounds}
    cuts = [b for b in leaf.bounds if b.key not in outside and b.limit < whole.extent and not b.is_certain(1)]
    told = [b for b in cuts if all(is_lookahead_variable(v) or v.name == ir.THREAD.name for v in variables([b.offset]))]
    if not told:
        return share
    thread, _ = thread_among([b.offset for b in told])
    threads = (interval(thread)[1] or 0) + 1
    by_thread = offsets_within(simplify(offset - share.unit), told, threads)
    own = tuple(sorted({o for offsets in by_thread for o in offsets}))
    if len(set(by_thread)) == 1:
        return dataclasses.replace(share, own=own)
    return dataclasses.replace(share, own=own, by_thread=by_thread, thread=thread)


def dim_share(offsets: list[Expr], step: Place, name: str) -> DimShare:
    """The share of one dimension, from the offsets at which it is read; they contain loop variables and terms of the thread index."""
    parts = [split_terms(o, _is_fixed) for o in offsets]
    if len({p[0] for p in parts}) > 1:
        parts = [split_terms(o, is_thread_part) for o in offsets]
    (unit,) = {p[0] for p in parts}
    overlapping = len({p[2] for p in parts}) > 1
    lows, highs, every = list[int](), list[int](), list[dict[int, int]]()
    for _, rest, constant in parts:
        terms: dict[int, int] = {}
        every.append(terms)
        a = b = constant
        for atom, c in rest:
            first, last = interval(atom)
            if first is None or last is None:
                raise refuse(step, "register-slot", f"`{step}`: the register of an element of {name} depends on {atom}, which has no"
                             " bound",
                             "load it in shared")  # fmt: skip
            ends = sorted((c * first, c * last))
            a, b = a + ends[0], b + ends[1]
            overlapping |= c in terms or c < 0 or first != 0
            terms[c] = last - first + 1
        lows.append(a)
        highs.append(b)
    low, high = min(lows), max(highs)
    overlapping |= any(other != terms for other in every)
    strides, stride, span = [], 1, 1
    for c in sorted(terms):
        overlapping |= c < span
        strides.append((c, terms[c], stride))
        stride *= terms[c]
        span += c * (terms[c] - 1)
    if overlapping or not terms:
        return DimShare(unit, low, high - low + 1, None)
    if stride == high - low + 1:
        return DimShare(unit, low, stride, None)
    return DimShare(unit, low, stride, tuple(reversed(strides)))


def _is_fixed(atom: Expr) -> bool:
    """Whether a term is the same for all elements of a share of a thread: no loop below changes it."""
    return is_thread_part(atom) or not any(isinstance(v, Var) and is_lookahead_variable(v) for v in atom.walk())


def _mixed(offsets: list[Expr]) -> bool:
    """Whether no single term separates the threads: readers use different ones, or a loop variable is inside it too (through a
    quotient)."""
    units = {split_terms(o, is_thread_part)[0] for o in offsets}
    return len(units) > 1 or any(isinstance(v, Var) and is_lookahead_variable(v) for unit in units for v in unit.walk())


def _everything(offsets: list[Expr]) -> DimShare:
    """The share that gives every thread all elements that any thread reads."""
    ends = [extremes(o, ()) for o in offsets]
    low = min(a or 0 for a, _ in ends)
    high = max(b or 0 for _, b in ends)
    return DimShare(index(0), low, high - low + 1, None)


def _run(dim: DimShare, lanes: int) -> int:
    """The widest vector, up to `lanes`, whose registers hold neighbouring offsets."""
    run = dim.size if dim.strides is None else next((n for c, n, _ in reversed(dim.strides) if c == 1), 1)
    while lanes > 1 and run % lanes:
        lanes //= 2
    return lanes
