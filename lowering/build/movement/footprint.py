"""The footprint of a load: the region of a tensor that a spec reads, or one element per point of its axes.

Elements outside the bounds of the spec are filled with one constant, which the guards of the readers take into account.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from tilelang.core.expr import Const, Expr, Pad, Read, Var, const, index, substitute
from tilelang.core.simplify import interval, simplify
from tilelang.errors import Refusal
from tilelang.lowering.build.frame import Build, Frame
from tilelang.lowering.build.movement.access_regions import Use, hull, is_plain_axis, uses_below
from tilelang.lowering.build.movement.storage import TENSOR_END, Box, Residence, Share
from tilelang.lowering.build.reads import residence_of
from tilelang.lowering.build.refusals import refuse
from tilelang.lowering.guards import fold
from tilelang.lowering.needs import NotABox
from tilelang.schedules.spec import AxisState, Bound, Spec, point
from tilelang.schedules.steps import Place, Split, Tile, Vectorize
from tilelang.schedules.task import Task, reads


@dataclasses.dataclass(frozen=True)
class Region:
    """The elements that a load copies and their source: the task and spec of the move, the fill value, and what readers may rely on."""

    task: Task
    spec: Spec
    low: tuple[Expr, ...]
    fill: Const
    outside: bool
    read: Read | Pad | None
    source: Residence
    points: tuple[Var, ...] = ()  # by access: the axes whose points are staged

    @property
    def ends(self) -> tuple[tuple[Bound, ...], ...]:
        """The bounds of each dimension, counted from its begin, beyond which the move fills."""
        return tuple(a.bounds for a in self.spec.axes)


def region_of(build: Build, frame: Frame, i: int, step: Place) -> tuple[Region, list[Use]]:
    """The region of a load, by region or by access."""
    uses = [u for u in uses_below(build, frame, i + 1) if _wanted(u, step)]
    if not uses:
        raise _unread(build, frame, step)
    for use in uses:
        if not any(r.serves(use.read, use.whole) for r in frame.residences):
            raise refuse(step, "stage-order", f"`{step}`: {step.tensor_name} is not computed yet; a later step computes it",
                         f"compute {step.tensor_name} first", f"{use.read} has no value yet")  # fmt: skip
    by_access = _by_access(frame, step, uses)
    try:
        region = _access_region(frame, step, uses) if by_access else _box_region(frame, step, uses)
    except NotABox:
        region = _access_region(frame, step, uses)
    return _staged_bounds(frame, region), uses


def _unread(build: Build, frame: Frame, step: Place) -> Refusal:
    """The refusal of a load whose tensor no step reads."""
    name = step.tensor_name
    tensor = build.tensors.get(name)
    if any(t is tensor for t in frame.task.outputs):
        return refuse(step, "load-unread", f"`{step}`: {name} is the output, which is written, not loaded",
                      "remove the load; `via shared` collects results before they are stored")  # fmt: skip
    if tensor is not None and tensor.definition is not None and not any(r.tensor is tensor for r in frame.residences):
        return refuse(step, "load-unread", f"`{step}`: {name} is not in memory; a definition without a `compute` is substituted"
                      " into its readers", f"write `compute {name} in {step.memory}` instead, or `compute {name} in global` at the"
                          " head")  # fmt: skip
    return refuse(step, "load-unread", f"`{step}`: no step below reads {name}", "remove the load")


def _staged_bounds(frame: Frame, region: Region) -> Region:
    """The region limited to what its source holds: large tiles and idle units reach beyond it."""
    source = region.source
    if not isinstance(source, Box | Share) or bool(region.points) != bool(source.points):
        return region  # of a region staged by points, the readers' bounds already exclude the rest
    names = [p.name[1:] for p in source.points] or [a.name for a in region.spec.axes]
    held = dict(zip(names, zip(source.low, _ends_of(source), strict=True), strict=True))
    axes = []
    for d, a in enumerate(region.spec.axes):
        low, ends = held.get(a.name, (a.base, ()))
        bounds = [b.replace(key=f"source:{d}:{k}", offset=simplify(b.offset + a.base - low)) for k, b in enumerate(ends)]
        axes.append(a.replace(bounds=(*a.bounds, *(b for b in bounds if not b.is_certain(a.extent)))))
    return dataclasses.replace(region, spec=region.spec.replace(axes=tuple(axes)))


def _wanted(use: Use, step: Place) -> bool:
    if use.stored:  # the store of a stage, which reads nothing
        return False
    if isinstance(step.what, Read):
        return use.read is step.what
    return bool(use.read.tensor.name == step.what)


def _by_access(frame: Frame, step: Place, uses: list[Use]) -> bool:
    """Whether the buffer holds one element per point of the axes instead of a region.

    That is so if the layout or a step of the load names axes, if the tensor is already staged by access, or if the read goes
    through a fused axis or a gather.
    """
    dims = {d.name for d in uses[0].read.tensor.dims}
    if step.layout is not None and step.layout.terms:
        return not set(step.layout.dims) <= dims
    if not uses[0].main:
        return False
    if _named(step) & (set(axes_of(uses[0])) - dims):
        return True
    if residence_of(frame, uses[0].whole).points:
        return True
    gathered = any(isinstance(e, Read) for i in uses[0].indices for e in i.walk())
    if gathered and step.memory == "register":  # only the points tell which rows a thread has
        return True
    try:
        boxed = math.prod(n for _, n in hull(uses, step))
    except NotABox:
        return True
    axes = axes_of(uses[0])
    pointwise = math.prod(frame.spec.axis(a).extent for a in axes)
    fused = any(not isinstance(e, Var) for _, e in frame.spec.coordinates)
    return fused and pointwise < boxed and len({u.whole for u in uses}) == 1 and all(u.main for u in uses)


def _box_region(frame: Frame, step: Place, uses: list[Use]) -> Region:
    tensor = uses[0].read.tensor
    ranges = hull(uses, step)
    pads = [u.whole.value.value for u in uses if isinstance(u.whole, Pad)]
    axes = []
    for d, (dim, (low, extent)) in enumerate(zip(tensor.dims, ranges, strict=True)):
        bounds = _dim_bounds(frame, uses, d, dim.extent, low, extent)
        axes.append(AxisState(dim.name, low, extent, tuple(b for b in bounds if not b.is_certain(extent))))
    task = Task(tensor.name, (tensor,), tensor.dims, (Read(tensor, tensor.dims),))
    spec = Spec(tensor.name, tuple(axes), tuple((d.name, point(d.name)) for d in tensor.dims), frame.spec.level,
                frame.spec.units, frame.spec.lane, frame.spec.present)  # fmt: skip
    named = step.what if isinstance(step.what, Read) else None
    fill = _fill(frame, uses, pads)
    return Region(task, spec, tuple(a.base for a in axes), fill, True, named, source_of(frame, uses))


def _dim_bounds(frame: Frame, uses: list[Use], d: int, dim_extent: int, low: Expr, extent: int) -> list[Bound]:
    """The bounds beyond which elements of a region do not exist: this spec's bounds along the axis, and the tensor's ends."""
    plain = {is_plain_axis(u.indices[d]) for u in uses} if all(u.main for u in uses) else set()
    bounds: list[Bound] = []
    only = plain.pop() if len(plain) == 1 else None
    certain = False
    if only is not None and only[1] == 0:
        axis = frame.spec.axis(only[0])
        bounds += axis.bounds
        root = next((b for b in axis.bounds if b.limit <= dim_extent and not b.lower), None)
        certain = root is not None and simplify(axis.base - root.offset) is index(0)
    low_end, high_end = interval(low)
    if not certain and (high_end is None or high_end + extent > dim_extent):
        bounds.append(Bound(f"{TENSOR_END}{d}<", low, dim_extent))
    if low_end is None or low_end < 0:
        bounds.append(Bound(f"{TENSOR_END}{d}>", low, 0, True))
    return bounds


def _fill(frame: Frame, uses: list[Use], pads: Sequence[int | float]) -> Const:
    """The fill value: the pad value; else a value that makes the reader contribute nothing to the reduction; else zero."""
    type = uses[0].read.dtype
    if pads:
        return const(pads[0], type)
    zero = const(0, type)
    for state in frame.task.states:
        identity = state.reduce.combiner.identity[0].value
        for candidate in (zero, const(identity, type) if type == state.reduce.combiner.left[0].dtype else zero):
            mapping = {u.whole: candidate for u in uses if u.main}
            if len(state.reduce.values) == 1:
                folded = fold(substitute(state.reduce.values[0], mapping))
                if isinstance(folded, Const) and folded.value == identity:
                    return candidate
    return zero


def _access_region(frame: Frame, step: Place, uses: list[Use]) -> Region:
    """One element per point of the axes that the read depends on."""
    tensor, elsewhere = uses[0].read.tensor, next((u for u in uses if not u.main), None)
    if elsewhere is not None:
        other = elsewhere.task.name
        raise refuse(step, "reads-differ", f"`{step}` stages one element per point of {frame.task.name}, but {tensor.name} is read"
                     f" at the points of {other}",
                     f"load {tensor.name} in the steps of `compute {other}`, or use the tensor's own dimensions in the layout"
                     f" ({', '.join(d.name for d in tensor.dims)})")  # fmt: skip
    if len({u.whole for u in uses}) != 1:
        raise refuse(step, "reads-differ", f"`{step}` stages one element per point, but {tensor.name} is read with several index"
                     f" expressions ({', '.join(sorted({str(u.read) for u in uses}))})",
                     f"name the read: load {uses[0].read} in {step.memory}, or use the tensor's own dimensions in the"
                     " layout")  # fmt: skip
    use = uses[0]
    axes = axes_of(use)
    wide = tuple(a for a in axes if frame.spec.axis(a).extent > 1)
    if step.layout is not None and step.layout.terms:
        named = set(step.layout.dims)
        if not set(wide) <= named <= set(axes):
            raise _layout_names(step, use, axes, wide)
        wide = tuple(a for a in axes if a in named)
    wholes = (use.whole, *(w for i in use.read.indices for w in reads(i)))
    staged = {p.name[1:] for w in wholes for p in residence_of(frame, w).points}
    axes = tuple(a for a in axes if a in wide or a in staged or frame.spec.axis(a).bounds) or axes[-1:] or _narrowest(frame)
    states = tuple(frame.spec.axis(a) for a in axes)
    used = (*frame.task.axes, *frame.task.reduction_axes)
    pads = [use.whole.value.value] if isinstance(use.whole, Pad) else []
    fill, points = _fill(frame, uses, pads), tuple(point(a) for a in axes)
    task = Task(use.read.tensor.name, (use.read.tensor,), used, (_inside(use.whole, fill),))
    fixed = {point(a.name): a.base for a in frame.spec.axes if a.name not in axes}
    coordinates = tuple((n, simplify(substitute(e, fixed))) for n, e in frame.spec.coordinates)
    kept = tuple(s.replace(reduction=False) for s in states)
    spec = frame.spec.replace(title=task.name, axes=kept, coordinates=coordinates)
    low = tuple(s.base for s in states)
    return Region(task, spec, low, fill, True, use.whole, source_of(frame, uses), points)


def _narrowest(frame: Frame) -> tuple[str, ...]:
    """An axis for a read that depends on none, such as `X[ids[0]]`: its single element is stored once per point of this axis."""
    return tuple(a.name for a in sorted(frame.spec.axes, key=lambda a: (a.reduction, a.extent))[:1])


def _layout_names(step: Place, use: Use, axes: tuple[str, ...], wide: tuple[str, ...]) -> Refusal:
    """The refusal of a layout whose names are neither the tensor's dimensions nor the axes of its read."""
    assert step.layout is not None
    dims = [d.name for d in use.read.tensor.dims]
    if set(step.layout.dims) <= set(dims):
        return refuse(step, "layout-dimension", f"`{step}`: {use.read} gathers scattered elements, one per point of the axes"
                      f" {', '.join(axes)}, but the layout names dimensions of {use.read.tensor.name}",
                      f"name the axes of the read: layout ({', '.join(wide or axes)})")  # fmt: skip
    strange = [n for n in step.layout.dims if n not in axes and n not in dims]
    missing = [a for a in wide if a not in step.layout.dims]
    said = f"names {', '.join(strange)}" if strange else f"leaves out {', '.join(missing)}"
    return refuse(step, "layout-dimension", f"`{step}`: the layout {said}, but {use.read.tensor.name} has the dimensions"
                  f" {', '.join(dims)}, and the read {use.read} has the axes {', '.join(axes)}",
                  "name all dimensions of the tensor, or all axes of the read that are longer than 1")  # fmt: skip


def _ends_of(source: Box | Share) -> list[tuple[Bound, ...]]:
    """The bounds of the elements of a residence, dimension by dimension, counted from its begin."""
    ends = source.ends or ((),) * len(source.low)
    if isinstance(source, Share) or source.placement is None:
        return list(ends)
    boxed = [(Bound("", index(0), (interval(v)[1] or 0) + 1), Bound("", index(0), 0, True)) for v in source.placement.variables]
    return [(*box, *of) for box, of in zip(boxed, ends, strict=True)]


def _inside(whole: Read | Pad, fill: Const) -> Read | Pad:
    """A read that is safe at every point: the load does not run under the conditions by which its reader stays inside the tensors."""
    read = whole.read if isinstance(whole, Pad) else whole
    read = read.map_children(lambda i: _reads_inside(i) if isinstance(i, Expr) else i)
    if isinstance(whole, Pad):
        return whole if read is whole.read else Pad(read, whole.value)
    for i, dim in zip(read.indices, read.tensor.dims, strict=True):
        low, high = interval(i)
        if low is None or high is None or low < 0 or high >= dim.extent:
            return Pad(read, fill)
    return read


def _reads_inside(e: Expr) -> Expr:
    """An index whose own reads, if they are outside their tensors, give a valid number."""
    if isinstance(e, Read | Pad):
        least = (e.read if isinstance(e, Pad) else e).tensor.range or (0,)
        return _inside(e, const(least[0], e.dtype))
    made: Expr = e.map_children(lambda c: _reads_inside(c) if isinstance(c, Expr) else c)
    return made


def source_of(frame: Frame, uses: Sequence[Use]) -> Residence:
    """Where a load reads its tensor: the innermost place from which each of its readers would read it without the load."""
    return next(r for r in reversed(frame.residences) if all(r.serves(u.read, u.whole) for u in uses))


def sources(frame: Frame, region: Region) -> tuple[Residence, ...]:
    """Where the move of a load finds its tensor, and the tensors that its indices read."""
    (value,) = region.task.values
    assert isinstance(value, (Read, Pad))
    return (*frame.residences, dataclasses.replace(region.source, read=value))


def _named(step: Place) -> set[str]:
    """The axes that the steps of a move name."""
    cut = {axis for s in step.steps or () if isinstance(s, Tile | Split) for axis, _ in s.sizes}
    return cut | {s.axis for s in step.steps or () if isinstance(s, Vectorize)}


def axes_of(use: Use) -> tuple[str, ...]:
    """The axes of the spec that a read depends on, in the spec's order."""
    found: dict[str, None] = {}
    order = [v for v in use.ranges if isinstance(v, Var)]
    for v in order:
        if any(v in set(i.walk()) for i in use.indices):
            found[v.name[1:]] = None
    return tuple(found)


def is_unread(frame: Frame, uses: list[Use]) -> bool:
    """Whether there is nothing to load, because no point reads it.

    Points that a cut created outside the tensor do not count: they may be read as well, if fill values make them contribute
    nothing.
    """
    axes = [[frame.spec.axis(a) for a in axes_of(u)] for u in uses if u.main]
    return len(axes) == len(uses) and all(any(a.extent == 0 for a in of) for of in axes)
