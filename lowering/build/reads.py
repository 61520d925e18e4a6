"""Resolves the reads of innermost statements: rewrites expressions of the task at a point, with loads from buffers in place of
reads.
"""

from __future__ import annotations

from tilelang.core.expr import Axis, Const, Expr, Pad, Read, Select, const, index
from tilelang.core.simplify import FALSE, conjunction, conjuncts, interval, simplify
from tilelang.lowering import ir
from tilelang.lowering.build.distribution.owners import existing_beyond
from tilelang.lowering.build.frame import Build, Frame, StatePlace
from tilelang.lowering.build.movement.storage import Fixed, Residence, Share, Staging
from tilelang.lowering.build.reductions.combine import as_logical
from tilelang.lowering.build.refusals import refuse
from tilelang.schedules.steps import Place


def state_indices(frame: Frame, lane: Expr | None, points: dict[str, Expr]) -> tuple[Expr, ...]:
    """The indices of the accumulator's element that this point updates."""
    place = frame.state
    assert place is not None
    if place.memory == "register":
        if place.vector_axis:
            return (*frame.slots, lane if lane is not None else index(0))
        return frame.slots or (index(0),)
    return state_at(frame, place, points)


def state_at(frame: Frame, place: StatePlace, points: dict[str, Expr]) -> tuple[Expr, ...]:
    """The indices of an element in an accumulator that is indexed by coordinates."""
    assert place.box is not None
    axes = frame.coordinates(points)
    return place.box.at(tuple(axes[a] for a in place.box.points or frame.task.axes))


def stored_at(frame: Frame, k: int, place: Residence, points: dict[str, Expr]) -> tuple[Expr, ...]:
    """The indices of an element of output k in its place."""
    axes = frame.coordinates(points)
    output = frame.task.outputs[k]
    named = {a.name: v for a, v in axes.items() if isinstance(a, Axis)}
    if isinstance(place, (Fixed, Staging)):
        return place.at(())
    coordinates = () if place.points else tuple(named[a.name] for a in output.dims)
    return place.at(place.element(coordinates, axes))


# ------------------------------------------------------------ reads


def value_at(build: Build, frame: Frame, e: Expr, points: dict[str, Expr]) -> Expr:
    """An expression of the task at a point: axes replaced, reads resolved, stored bools converted to bool."""
    axes = frame.coordinates(points)
    memo: dict[Expr, Expr] = {}

    def go(x: Expr) -> Expr:
        found = memo.get(x)
        if found is None:
            found = memo[x] = resolve(x)
        return found

    def resolve(x: Expr) -> Expr:
        if isinstance(x, Axis):
            return axes[x]
        if isinstance(x, Pad):
            return _padded(build, frame, x, tuple(simplify(go(i)) for i in x.read.indices), axes)
        if isinstance(x, Read):
            return _loaded(build, frame, x, x, tuple(simplify(go(i)) for i in x.indices), axes)
        if isinstance(x, Select):
            if frame.known and frame.known.issuperset(conjuncts(x.condition)):
                return go(x.then)
            c = simplify(go(x.condition))
            if isinstance(c, Const):
                return go(x.then if c.value else x.otherwise)
            return Select(c, go(x.then), go(x.otherwise))
        return x.map_children(lambda child: go(child) if isinstance(child, Expr) else child)

    return go(e)


def residence_of(frame: Frame, whole: Read | Pad) -> Residence:
    """Where a read finds its tensor; raises Refusal if it is nowhere."""
    found = residence_here(frame, whole)
    if found is not None:
        return found
    tensor = (whole.read if isinstance(whole, Pad) else whole).tensor
    members = (tensor,) if tensor.definition is None else tensor.definition.tensors  # one step places all members
    step = next((s for s in frame.steps if isinstance(s, Place) and s.tensor_name in {m.name for m in members}), None)
    assert frame.finishing and step is not None, f"{whole} is nowhere"
    raise refuse(step, "stage-in-walk", f"`{step}` is inside the accumulator's reduction loop, but {tensor.name} is read after that"
                 " loop by the finished results", "write it above the reduction loop, or above the accumulator")  # fmt: skip


def residence_here(frame: Frame, whole: Read | Pad) -> Residence | None:
    """Where a read finds its tensor, or None if it is not resident yet: a step below may still place it."""
    read = whole.read if isinstance(whole, Pad) else whole
    return next((r for r in reversed(frame.residences) if r.serves(read, whole)), None)


def _loaded(build: Build, frame: Frame, read: Read, whole: Read | Pad, indices: tuple[Expr, ...], axes: dict[Expr, Expr]) -> Expr:
    source = residence_of(frame, whole)
    indices = source.element(indices, axes)
    at = source.at(indices)
    if isinstance(source, Share):
        _check_slots(build, frame, source, indices, at)
    return as_logical(source.buffer.dtype, read.dtype, ir.Load(source.buffer, at))


def _check_slots(build: Build, frame: Frame, share: Share, indices: tuple[Expr, ...], at: tuple[Expr, ...]) -> None:
    """Raises NotOwner if an existing element is in another thread's registers.

    A loop may run beyond a thread's last slot if no points exist there; the buffer is then enlarged.
    """
    beyond = share.beyond(indices)
    if not beyond:
        return
    axes = [a for a in frame.spec.axes if not (frame.finishing and a.reduction)]
    empty = [FALSE for a in axes if a.empty]
    bounds = [b.replace(known=False).holds(index(0)) for a in axes for b in a.bounds]
    dim = existing_beyond(beyond, [*empty, *bounds, *frame.within], build.threads)
    ends = [interval(i) for i in at]
    if dim is not None or any(first is None or first < 0 or last is None for first, last in ends):
        raise share.foreign(beyond[0][0] if dim is None else dim, indices)
    build.make_room(share.buffer, [(last or 0) + 1 for _, last in ends])


def _padded(build: Build, frame: Frame, pad: Pad, indices: tuple[Expr, ...], axes: dict[Expr, Expr]) -> Expr:
    source = residence_of(frame, pad)
    loaded = _loaded(build, frame, pad.read, pad, indices, axes)
    if source.points or (source.outside and source.fill is not None and source.fill.value == pad.value.value):
        return loaded
    shape = pad.read.tensor.shape
    inside = conjunction([c for i, n in zip(indices, shape, strict=True) for c in (index(0) <= i, i < n)])
    return loaded if inside is None else Select(inside, loaded, const(pad.value.value, loaded.dtype))
