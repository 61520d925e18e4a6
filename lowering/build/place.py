"""Making tensors resident: loads by region and by access, in shared memory and in registers, and computed stages.

A load is a task with one pointwise output, so it is lowered by the same walk over steps as everything else. What lies outside is filled
with one constant per buffer; the residence remembers which bounds that covers.
"""

from __future__ import annotations

import dataclasses
import itertools
import math

from tilelang.expr import INDEX, Const, Expr, Pad, Read, Var, const, index, substitute
from tilelang.lowering import ir
from tilelang.lowering.build.base import Part, refuse
from tilelang.lowering.build.frame import (
    Box,
    ByAccess,
    DimShare,
    Fixed,
    Frame,
    Residence,
    Share,
    Staging,
    Target,
    is_thread_part,
)
from tilelang.lowering.build.leaf import fold
from tilelang.lowering.build.nest import level_threads, numbers
from tilelang.lowering.build.regions import NotABox, Range, Use, hull, is_plain_axis, uses_below
from tilelang.schedule import Place, Split, Step, Tile, Vectorize
from tilelang.simplify import conjunction, interval, simplify
from tilelang.spec import AxisState, Bound, Spec, complete, point
from tilelang.task import Task
from tilelang.tensor import Layout, split_terms, walk_order

STAGED_ELEMENTS = 64  # a move that runs ahead waits in registers where a thread holds at most this many elements


@dataclasses.dataclass(frozen=True)
class Region:
    """What a load brings: the move's task and spec, the fill, and what the residence will promise."""

    task: Task
    spec: Spec
    low: tuple[Expr, ...]
    fill: Const
    filled: frozenset[str]
    outside: bool
    read: Read | Pad | None
    points: tuple[Var, ...] = ()  # by access: the axes whose points are staged


class Places(Part):
    """load and compute."""

    # ------------------------------------------------------------ what a load covers

    def region(self, frame: Frame, i: int, step: Place) -> tuple[Region, list[Use]]:
        """The region of a load, by region or by access."""
        uses = [u for u in uses_below(self.build, frame, i + 1) if self._wanted(u, step)]
        if not uses:
            raise refuse(step, "load-unread", f"`{step}`: nothing below reads {step.tensor_name} here", "leave the load out")
        by_access = self._by_access(frame, step, uses)
        if by_access:
            return self._access_region(frame, step, uses), uses
        try:
            return self._box_region(frame, step, uses), uses
        except NotABox:
            return self._access_region(frame, step, uses), uses

    @staticmethod
    def _wanted(use: Use, step: Place) -> bool:
        if isinstance(step.what, Read):
            return use.read is step.what
        return bool(use.read.tensor.name == step.what)

    @staticmethod
    def _by_access(frame: Frame, step: Place, uses: list[Use]) -> bool:
        """Whether the buffer holds one element per point: the layout says so, or the read goes through a fused axis or a gather."""
        dims = {d.name for d in uses[0].read.tensor.dims}
        if step.layout is not None and step.layout.terms:
            return not set(step.layout.dims) <= dims
        if not uses[0].main:
            return False
        try:
            boxed = math.prod(n for _, n in hull(uses, step))
        except NotABox:
            return True
        axes = _axes_of(uses[0])
        pointwise = math.prod(frame.spec.axis(a).extent for a in axes)
        fused = any(not isinstance(e, Var) for _, e in frame.spec.coordinates)
        return fused and pointwise < boxed and len({u.whole for u in uses}) == 1

    def _box_region(self, frame: Frame, step: Place, uses: list[Use]) -> Region:
        tensor = uses[0].read.tensor
        ranges = hull(uses, step)
        pads = [u.whole.value.value for u in uses if isinstance(u.whole, Pad)]
        axes, filled = [], set()
        for d, (dim, (low, extent)) in enumerate(zip(tensor.dims, ranges, strict=True)):
            bounds = self._dim_bounds(frame, uses, d, dim.extent, low, extent)
            filled |= {b.key for b in bounds}
            axes.append(AxisState(dim.name, low, extent, tuple(b for b in bounds if not b.is_certain(extent))))
        task = Task(tensor.name, (tensor,), tensor.dims, (Read(tensor, tensor.dims),))
        spec = Spec(tensor.name, tuple(axes), tuple((d.name, point(d.name)) for d in tensor.dims), frame.spec.level,
                    frame.spec.units, frame.spec.lane)  # fmt: skip
        named = step.what if isinstance(step.what, Read) else None
        fill = self._fill(frame, uses, pads)
        return Region(task, spec, tuple(low for low, _ in ranges), fill, frozenset(filled), True, named)

    def _dim_bounds(self, frame: Frame, uses: list[Use], d: int, dim_extent: int, low: Expr, extent: int) -> list[Bound]:
        """Where elements of a region stop existing: at this spec's bounds along an axis, and at the tensor's ends."""
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
            bounds.append(Bound(f"tensor:{d}<", low, dim_extent))
        if low_end is None or low_end < 0:
            bounds.append(Bound(f"tensor:{d}>", low, 0, True))
        return bounds

    def _fill(self, frame: Frame, uses: list[Use], pads: list[object]) -> Const:
        """The constant for what is outside: the pad value; else one that folds the reader's body away; else zero."""
        type = uses[0].read.dtype
        if pads:
            return const(pads[0], type)  # type: ignore[arg-type]
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

    def _access_region(self, frame: Frame, step: Place, uses: list[Use]) -> Region:
        """One element per point of the axes that the read uses."""
        mains = [u for u in uses if u.main]
        if len({u.whole for u in mains}) != 1 or len(mains) != len(uses):
            raise refuse(step, "reads-differ", f"`{step}` stages one element per point, and {uses[0].read.tensor.name} is read in"
                         " several ways", "name the read")  # fmt: skip
        use = mains[0]
        axes = _axes_of(use)
        wide = tuple(a for a in axes if frame.spec.axis(a).extent > 1)
        if step.layout is not None and step.layout.terms:
            named = set(step.layout.dims)
            if not set(wide) <= named <= set(axes):
                raise refuse(step, "layout-dimension", f"`{step}`: the layout names {', '.join(step.layout.dims)}; by access the read uses"
                             f" {', '.join(axes)}", "name the axes of the read that are longer than 1, or the tensor's own dimensions")  # fmt: skip
            wide = tuple(a for a in axes if a in named)
        axes = wide
        states = tuple(frame.spec.axis(a) for a in axes)
        used = [a for a in (*frame.task.axes, *frame.task.reduction_axes)]
        task = Task(use.read.tensor.name, (use.read.tensor,), tuple(used), (use.whole,))
        fixed = {point(a.name): a.base for a in frame.spec.axes if a.name not in axes}
        coordinates = tuple((n, simplify(substitute(e, fixed))) for n, e in frame.spec.coordinates)
        kept = tuple(s.replace(reduction=False) for s in states)
        spec = frame.spec.replace(title=task.name, axes=kept, coordinates=coordinates)
        filled = frozenset(b.key for s in states for b in s.bounds)
        pads = [use.whole.value.value] if isinstance(use.whole, Pad) else []
        low = tuple(s.base for s in states)
        return Region(task, spec, low, self._fill(frame, uses, pads), filled, True, use.whole, tuple(point(a) for a in axes))

    # ------------------------------------------------------------ loads

    def load(self, frame: Frame, i: int, step: Place) -> ir.Stmt:
        """The move, then the rest with the tensor resident."""
        if step.memory not in ("shared", "register"):
            return self.prefetch(frame, i, step)
        move, residence = self.make_resident(frame, i, step, None)
        return ir.seq(move, self.chain(frame.but(residences=(*frame.residences, residence)), i + 1))

    def is_cache(self, step: Place) -> bool:
        """Whether a load is into a memory without addresses, and so a prefetch."""
        return self.build.profile.has_memory(step.memory) and self.build.profile.memory(step.memory).cache

    def prefetch(self, frame: Frame, i: int, step: Place) -> ir.Stmt:
        """A load into a cache: every line of the region, `ahead` rounds of the innermost walk from here; nothing waits for it."""
        facts = self.build.profile.memory(step.memory)
        if not facts.cache:
            raise refuse(step, "not-lowered-yet", f"`{step}`: a load in {step.memory} inside a block is accepted by the language,"
                         " not lowered yet for this target", "load in shared or register")  # fmt: skip
        axes = frame.spec.axes
        if step.ahead and frame.last_walk is not None:
            axis, size = frame.last_walk
            far = simplify(frame.spec.axis(axis).base + size * step.ahead)
            axes = tuple(a.replace(base=far) if a.name == axis else a for a in axes)
        unbounded = frame.spec.replace(axes=tuple(a.replace(bounds=()) for a in axes))
        region, _ = self.region(frame.but(spec=unbounded), i, step)
        if region.points:
            raise refuse(step, "prefetch-scattered", f"`{step}`: the elements are scattered, there are no lines to bring",
                         "leave the prefetch out")  # fmt: skip
        tensor = region.task.outputs[0]
        line = max(1, (facts.line_bytes or 64) // tensor.dtype.bytes)
        indices, loops = [], []
        for k, a in enumerate(region.spec.axes):
            each = line if k == len(region.spec.axes) - 1 else 1
            count = -(-a.extent // each)
            v = self.build.variable(f"{tensor.name}_line", count) if count > 1 else index(0)
            indices.append(simplify(a.base + v * each))
            loops.append((v, count))
        body: ir.Stmt = ir.Prefetch(self._source_of(frame, region).buffer, tuple(indices), step.span)
        for v, count in reversed(loops):
            if isinstance(v, Var):
                body = ir.For(v, index(count), body, "unroll" if count <= 8 else "serial", step.span)
        return ir.seq(body, self.chain(frame, i + 1))

    def make_resident(self, frame: Frame, i: int, step: Place, slot: Expr | None) -> tuple[ir.Stmt, Residence]:
        """The move of a load, and where its readers find it. slot: which buffer of a ring it fills."""
        if step.open:
            raise refuse(step, "hole", f"`{step}` has a hole, which the autoscheduler fills", "write the steps out")
        region, uses = self.region(frame, i, step)
        if step.memory == "register":
            return self._in_registers(frame, i, step, region, uses, slot)
        box = self._box_for(frame, step, region, slot)
        return self._move(frame, step, region, Target((box,), step.stream)), box

    def _box_for(self, frame: Frame, step: Place, region: Region, slot: Expr | None) -> Box:
        tensor = region.task.outputs[0]
        dims = {a.name: a.extent for a in region.spec.axes}
        placement = (step.layout or Layout()).place(dims, tensor.dtype.bytes)
        ring = step.ahead + 1 if slot is not None else 0  # without a walk around it there is nothing to run ahead of
        shape = (ring, *placement.shape) if ring else placement.shape
        buffer = (self._ring_buffer(step) if ring else None) or self.build.buffer(
            f"{tensor.name}_{step.memory}", tensor.dtype, shape, "shared", ring=ring
        )
        self._rings[id(step)] = buffer
        fields = (tensor, region.read, buffer, region.fill, region.filled, region.outside)
        if region.points:
            return ByAccess(*fields, low=region.low, placement=placement, slot=slot, points=region.points)
        return Box(*fields, low=region.low, placement=placement, slot=slot)

    _rings: dict[int, ir.Buffer]

    def _ring_buffer(self, step: Place) -> ir.Buffer | None:
        """The buffer that earlier moves of a ring fill: all of them share it."""
        return self._rings.get(id(step)) if step.ahead else None

    def _move(self, frame: Frame, step: Place, region: Region, target: Target) -> ir.Stmt:
        """The move; on blocks of one thread in two versions, so that whole regions move without a condition in their loops."""
        guard, whole = self.whole(region.spec)
        guarded = self.chain(self._move_frame(frame, step, region, target), 0)
        if guard is None:
            return guarded
        plain = self.chain(self._move_frame(frame, step, dataclasses.replace(region, spec=whole), target), 0)
        return ir.If(guard, plain, guarded, step.span)

    def whole(self, spec: Spec) -> tuple[Expr | None, Spec]:
        """The condition under which all points of a spec exist, and the spec without its bounds.

        None where nothing can be gained: no bounds, or threads, which each test for themselves anyway.
        """
        if self.build.threads > 1:
            return None, spec
        ends = [b.holds(index(0 if b.lower else a.extent - 1)) for a in spec.axes for b in a.bounds if not a.reduction]
        axes = tuple(a if a.reduction else a.replace(bounds=()) for a in spec.axes)
        return conjunction(ends), spec.replace(axes=axes)

    def _move_frame(self, frame: Frame, step: Place, region: Region, target: Target) -> Frame:
        keys = frozenset(b.key for a in region.spec.axes for b in a.bounds)
        inner = Frame(region.task, (), region.spec, target, frame.residences, fill=region.fill, fill_keys=keys)
        dims = tuple(a.name for a in region.spec.axes)
        if any(isinstance(s, Place) for s in step.steps or ()):
            raise refuse(step, "not-lowered-yet", f"`{step}`: a stop on the way of a load is accepted by the language, not lowered yet",
                         "load in two steps")  # fmt: skip
        steps = self.default_steps(inner, step.steps)
        self._check_move_axes(step, steps, dims)
        return inner.but(steps=complete(region.spec, steps, False, walk_order(step.layout, dims)))

    @staticmethod
    def _check_move_axes(step: Place, steps: tuple[Step, ...], dims: tuple[str, ...]) -> None:
        for s in steps:
            names = [a for a, _ in s.sizes] if isinstance(s, (Tile, Split)) else [s.axis] if isinstance(s, Vectorize) else []
            for name in names:
                if name not in dims:
                    raise refuse(s if getattr(s, "span", None) else step, "unknown-axis",
                                 f"`{s}`: a move of {step.tensor_name} has the dimensions {', '.join(dims)}",
                                 "name the tensor's own dimensions")  # fmt: skip

    def default_steps(self, frame: Frame, steps: tuple[Step, ...] | None) -> tuple[Step, ...]:
        """The steps of a move: as written, or single elements. Where they spread nothing, its pieces go to the frame's units."""
        given = steps or ()
        units = frame.spec.units or 1
        if units == 1 or any(isinstance(s, Tile) for s in given):
            return given
        leaf = given[-1] if given and isinstance(given[-1], Vectorize) else None
        sizes = {a.name: 1 for a in frame.spec.axes}
        if isinstance(leaf, Vectorize) and isinstance(leaf.lanes, int):
            sizes[leaf.axis] = leaf.lanes
        spread = Tile(tuple(sizes.items()), "thread")
        return (*given[:-1], spread, leaf) if leaf is not None else (*given, spread)

    # ------------------------------------------------------------ rings

    def staged_move(self, frame: Frame, i: int, step: Place, slot: Expr) -> tuple[ir.Stmt, ir.Stmt | None]:
        """A move that runs ahead: its fetch, and the store that waits in registers for the end of the round."""
        region, _ = self.region(frame, i, step)
        box = self._box_for(frame, step, region, slot)
        whole = self._move_frame(frame, step, region, Target((box,)))
        shape, axis, lanes = move_slots(whole, self.build)
        held = math.prod(shape) * lanes
        if (frame.spec.units or 1) == 1 or held > STAGED_ELEMENTS:
            return self._move(frame, step, region, Target((box,))), None
        tensor = region.task.outputs[0]
        buffer = self.build.buffer(
            f"{tensor.name}_staged", tensor.dtype, (*shape, lanes) if axis else (shape or (1,)), "register"
        )
        fetch = self.chain(whole.but(target=Target((Staging(tensor, None, buffer),)), staged=buffer), 0)
        commit = self.chain(whole.but(staged=buffer, residences=(*frame.residences,)), 0)
        return fetch, commit

    def register_ring(self, frame: Frame, i: int, step: Place, number: int) -> ir.Stmt:
        """The fetch of a load that runs ahead in registers, into buffer `number` of its ring."""
        if any(isinstance(s, (Tile, Split)) for s in step.steps or ()):
            raise refuse(step, "not-lowered-yet", f"`{step}`: a ring in registers whose owners are declared is accepted by the language,"
                         " not lowered yet", "leave the owners to the readers")  # fmt: skip
        region, uses = self.region(frame, i, step)
        if region.points:
            raise refuse(step, "not-lowered-yet", f"`{step}`: staging by access in registers is accepted by the language, not lowered"
                         " yet", "stage in shared")  # fmt: skip
        share = self._share(frame, i, step, region, uses)
        ring = self._register_rings.setdefault(id(step), [])
        while len(ring) <= number:
            b = share.buffer
            ring.append(self.build.buffer(f"{step.tensor_name}_ring", b.dtype, b.shape, "register"))
        return self._fetch_share(frame, step, region, dataclasses.replace(share, buffer=ring[number]))

    _register_rings: dict[int, list[ir.Buffer]]

    def rotate_ring(self, step: Place, v: Var, total: Expr) -> ir.Stmt:
        """After round v of `total`: every buffer of a register ring takes the next one's values; readers always use the first."""
        out = []
        for j, (here, following) in enumerate(itertools.pairwise(self._register_rings[id(step)])):
            width = next(w for w in (16, 8, 4, 2, 1) if here.shape[-1] % w == 0)
            variables = [self.build.variable("r", n) for n in (*here.shape[:-1], here.shape[-1] // width)]
            lane = self.build.variable("lane", width) if width > 1 else index(0)
            at = (*variables[:-1], simplify(variables[-1] * width + lane))
            body: ir.Stmt = ir.Store(here, at, ir.Load(following, at), None, False, step.span)
            if isinstance(lane, Var):
                body = ir.For(lane, index(width), body, "vector")
            for x, n in zip(reversed(variables), reversed((*here.shape[:-1], here.shape[-1] // width)), strict=True):
                body = ir.For(x, index(n), body, "unroll")
            guard = conjunction([v + (j + 1) < total])
            out.append(body if guard is None else ir.If(guard, body, None, step.span))
        return ir.seq(*out)

    def ring_body(self, frame: Frame, i: int, slots: dict[Place, Expr], moves: dict[Place, ir.Stmt]) -> ir.Stmt:
        """A walk's body in which some loads are moved ahead: their readers use `slots`."""
        out: list[ir.Stmt] = []
        while i < len(frame.steps):
            step = frame.steps[i]
            if not isinstance(step, Place) or step not in slots:
                break
            region, uses = self.region(frame, i, step)
            out.append(moves[step])
            if step.memory == "register":
                share = self._share(frame, i, step, region, uses)
                residence: Residence = dataclasses.replace(share, buffer=self._register_rings[id(step)][0])
            else:
                residence = self._box_for(frame, step, region, slots[step])
            frame = frame.but(residences=(*frame.residences, residence))
            i += 1
        return ir.seq(*out, self.chain(frame, i))

    # ------------------------------------------------------------ registers

    def _in_registers(
        self, frame: Frame, i: int, step: Place, region: Region, uses: list[Use], slot: Expr | None
    ) -> tuple[ir.Stmt, Residence]:
        if region.points:
            raise refuse(step, "not-lowered-yet", f"`{step}`: staging by access in registers is accepted by the language, not lowered"
                         " yet", "stage in shared")  # fmt: skip
        if any(isinstance(s, (Tile, Split)) for s in step.steps or ()):
            return self._declared(frame, step, region)
        share = self._share(frame, i, step, region, uses)
        return self._fetch_share(frame, step, region, share), share

    def _declared(self, frame: Frame, step: Place, region: Region) -> tuple[ir.Stmt, Residence]:
        """The move's own spreads say who owns which element."""
        inner = self._move_frame(frame, step, region, Target(()))
        leaf = self.leaf_spec(inner, 0)
        offsets = [simplify(leaf.axis(a.name).base - low) for a, low in zip(region.spec.axes, region.low, strict=True)]
        share = self._make_share(step.tensor_name, region, [[o] for o in offsets], step)
        share = dataclasses.replace(share, steps=tuple(s for s in step.steps or () if isinstance(s, Tile)))
        return self.chain(inner.but(target=Target((share,))), 0), share

    def _share(self, frame: Frame, i: int, step: Place, region: Region, uses: list[Use]) -> Share:
        """A silent load: each thread gets exactly what it reads below."""
        offsets: list[list[Expr]] = [[] for _ in region.low]
        for _, indices in self.reader_indices(frame, i, uses):
            for d, (e, low) in enumerate(zip(indices, region.low, strict=True)):
                offsets[d].append(simplify(e - low))
        return self._make_share(step.tensor_name, region, offsets, step)

    def _make_share(self, name: str, region: Region, offsets: list[list[Expr]], step: Place) -> Share:
        dims = tuple(dim_share(per_dim, step, name) for per_dim in offsets)
        tensor = region.task.outputs[0]
        buffer = self.build.buffer(f"{name}_register", tensor.dtype, tuple(d.size for d in dims if d.size > 1), "register")
        filled = frozenset(region.filled)
        return Share(tensor, region.read, buffer, region.fill, filled, region.outside, low=region.low, dims=dims)

    def reader_indices(self, frame: Frame, i: int, uses: list[Use]) -> list[tuple[Use, tuple[Expr, ...]]]:
        """The indices of each use at its leaf: of this chain, or of the stage that makes it."""
        out = []
        main_leaf = self.leaf_spec(frame, i + 1)
        for use in uses:
            if use.main:
                leaf = main_leaf
                named = dict(leaf.coordinates)
                axes: dict[Expr, Expr] = {a: named[a.name] for a in (*frame.task.axes, *frame.task.reduction_axes)}
            else:
                leaf, axes = self._stage_leaf(frame, i, use)
            points = {point(a.name): a.base for a in leaf.axes}
            values = tuple(simplify(substitute(substitute(x, axes), points)) for x in use.read.indices)
            out.append((use, values))
        return out

    def _stage_leaf(self, frame: Frame, i: int, use: Use) -> tuple[Spec, dict[Expr, Expr]]:
        """The leaf of the stage that makes a use, as its own steps cut it."""
        k, step = next((k, s) for k, s in enumerate(frame.steps) if k > i and isinstance(s, Place) and s.verb == "compute"
                       and any(t.name == s.tensor_name for t in use.task.outputs))  # fmt: skip
        stage = self.stage_frame(frame, i, k, step)
        leaf = self.leaf_spec(stage, 0)
        named = dict(leaf.coordinates)
        return leaf, {a: named[a.name] for a in (*stage.task.axes, *stage.task.reduction_axes)}

    def leaf_spec(self, frame: Frame, i: int) -> Spec:
        """The spec at the leaf, with fresh variables for every walk and the vector's lane; nothing is written."""
        spec = frame.spec
        for step in frame.steps[i:]:
            if isinstance(step, Split):
                sizes = numbers(step)
                found = {}
                for a, t in sizes.items():
                    rounds = -(-spec.axis(a).extent // t)
                    found[a] = Var(f"?{a}{len(self._probes)}", INDEX, 0, rounds - 1) if rounds > 1 else index(0)
                    self._probes.append(a)
                spec = spec.cut(sizes, found)
            elif isinstance(step, Tile) and step.level != "block":
                spec = self._probe_spread(spec, step)
            elif isinstance(step, Vectorize) and spec.axis(step.axis).extent > 1:
                extent = spec.axis(step.axis).extent
                spec = spec.cut({step.axis: 1}, {step.axis: Var("?lane", INDEX, 0, extent - 1)})
        return spec

    _probes: list[str]

    def _probe_spread(self, spec: Spec, step: Tile) -> Spec:
        from tilelang.lowering.build.nest import _digits

        sizes = numbers(step)
        per = level_threads(self.build.profile, step.level)
        units = spec.units or 1
        count = max(1, units // per)
        if isinstance(step.count, int):
            count = min(count, step.count)
        rounds = {a: max(1, -(-spec.axis(a).extent // t)) for a, t in sizes.items()}
        tiles = math.prod(rounds.values())
        digit = simplify(spec.lane // per)
        if tiles > count:
            again = Var(f"?round{len(self._probes)}", INDEX, 0, -(-tiles // count) - 1)
            self._probes.append("round")
            rest = math.prod(list(rounds.values())[1:])
            if len(sizes) > 1 and count % rest == 0:
                first = next(iter(rounds))
                found = _digits(digit, {**rounds, first: count // rest})
                found[first] = simplify(again * (count // rest) + found[first])
            else:
                found = _digits(simplify(again * count + digit), rounds)
        else:
            found = _digits(digit, rounds)
        return spec.cut(sizes, found).replace(units=per, lane=simplify(spec.lane % per), level=step.level)

    def _fetch_share(self, frame: Frame, step: Place, region: Region, share: Share) -> ir.Stmt:
        """Every slot of a share from where the tensor was; vectors along one dimension where asked and contiguous."""
        leaf = step.steps[-1] if step.steps and isinstance(step.steps[-1], Vectorize) else None
        names = [a.name for a in region.spec.axes]
        lanes, wide = 1, -1
        if isinstance(leaf, Vectorize) and isinstance(leaf.lanes, int):
            if leaf.axis not in names:
                raise refuse(leaf, "unknown-axis", f"`{leaf}`: a move of {step.tensor_name} has the dimensions {', '.join(names)}",
                             "name the tensor's own dimensions")  # fmt: skip
            wide = names.index(leaf.axis)
            lanes = _run(share.dims[wide], leaf.lanes)
        variables, loops = [], []
        for d, dim in enumerate(share.dims):
            width = lanes if d == wide else 1
            outer = self.build.variable(f"{share.tensor.name}_r", dim.size // width) if dim.size > width else None
            inner = self.build.variable("lane", width) if width > 1 else None
            value: Expr = index(0) if outer is None else outer * width
            variables.append(simplify(value + inner) if inner is not None else simplify(value))
            loops += [(outer, dim.size // width, "serial"), (inner, width, "vector")]
        body = self._fetch_one(frame, step, region, share, tuple(variables))
        for v, extent, kind in sorted(loops, key=lambda x: x[2] == "vector", reverse=True):
            if v is not None:
                body = ir.For(v, index(extent), body, kind, step.span)
        return body

    def _fetch_one(self, frame: Frame, step: Place, region: Region, share: Share, slots: tuple[Expr, ...]) -> ir.Stmt:
        axes = []
        for a, dim, slot in zip(region.spec.axes, share.dims, slots, strict=True):
            shift = simplify(dim.unit + dim.offset(slot))
            bounds = [b.replace(offset=simplify(b.offset + shift)) for b in a.bounds]
            bounds.append(Bound(f"region:{a.name}", shift, a.extent))  # a reader's last piece may reach over the region's end
            axes.append(AxisState(a.name, simplify(a.base + shift), 1, tuple(b for b in bounds if not b.is_certain(1))))
        spec = region.spec.replace(axes=tuple(axes), units=1)
        source = self._source_of(frame, region)
        kept = frozenset(b.key for a in axes for b in a.bounds if b.key not in source.filled)
        axes = [a.replace(bounds=tuple(b for b in a.bounds if b.key in kept)) for a in axes]
        wide = tuple(s for s, dim in zip(slots, share.dims, strict=True) if dim.size > 1)
        exact = Fixed(share.tensor, None, share.buffer, slots=wide or (index(0),))
        inner = Frame(
            region.task, (), spec.replace(axes=tuple(axes)), Target((exact,)), frame.residences, fill=region.fill, fill_keys=kept
        )
        return self.chain(inner, 0)

    def _source_of(self, frame: Frame, region: Region) -> Residence:
        whole = region.task.values[0]
        assert isinstance(whole, (Read, Pad))
        read = whole.read if isinstance(whole, Pad) else whole
        return next(r for r in reversed(frame.residences) if r.serves(read, region.read or read))

    # ------------------------------------------------------------ stages

    def stage_frame(self, frame: Frame, i: int, k: int, step: Place) -> Frame:
        """The spec of the stage of step k as it will stand, seen from the frame before step i."""
        task = self.build.task_of(step.tensor_name)
        uses = [u for u in uses_below(self.build, frame, k + 1) if u.read.tensor in task.outputs]
        if not uses:
            raise refuse(step, "stage-unread", f"`{step}`: nothing below reads {step.tensor_name}", "leave the stage out")
        ranges: list[Range] = hull(uses, step)
        axes = []
        for a, (low, extent) in zip(task.axes, ranges, strict=True):
            bounds = [Bound(f"{task.name}.{a.name}<", low, a.extent), Bound(f"{task.name}.{a.name}>", low, 0, True)]
            axes.append(AxisState(a.name, low, extent, tuple(b for b in bounds if not b.is_certain(extent))))
        axes += [AxisState(a.name, index(0), a.extent, (), True) for a in task.reduction_axes]
        names = [*task.axes, *task.reduction_axes]
        spec = Spec(task.name, tuple(axes), tuple((a.name, point(a.name)) for a in names), frame.spec.level, frame.spec.units,
                    frame.spec.lane)  # fmt: skip
        return Frame(task, self.stage_steps(frame, spec, task, step), spec, Target(()), frame.residences)

    def stage_steps(self, frame: Frame, spec: Spec, task: Task, step: Place) -> tuple[Step, ...]:
        """A stage's steps, written out; silent ones follow the owners of an operand in registers."""
        given = step.steps or ()
        if not any(isinstance(s, Tile) for s in given):
            for residence in reversed(frame.residences):
                names = {n for s in residence.steps if isinstance(s, Tile) for n, _ in s.sizes}
                if residence.steps and names <= set(spec.names) and any(residence.tensor is r.tensor for r in _task_reads(task)):
                    given = (*residence.steps, *given)
                    break
            else:
                if step.memory != "register" and not task.states:
                    given = self.default_steps(Frame(task, (), spec, Target(()), ()), given)
        return complete(spec, given, bool(task.states))

    def compute(self, frame: Frame, i: int, step: Place) -> ir.Stmt:
        """A stage: a tensor made here for this spec and later stages."""
        if step.ahead:
            raise refuse(step, "not-lowered-yet", f"`{step}`: `compute ... ahead` is accepted by the language, not lowered yet",
                         "leave out `ahead`")  # fmt: skip
        if step.memory not in ("shared", "register"):
            raise refuse(step, "stage-memory", f"`{step}` inside a block", "compute in shared or register; in global at the head")
        stage = self.stage_frame(frame, i, i, step)
        residences = tuple(self._stage_place(frame, stage, step, t) for t in stage.task.outputs)
        made = self.chain(stage.but(target=Target(residences, step.stream)), 0)
        return ir.seq(made, self.chain(frame.but(residences=(*frame.residences, *residences)), i + 1))

    def _stage_place(self, frame: Frame, stage: Frame, step: Place, tensor: object) -> Residence:
        spatial = [a for a in stage.spec.axes if not a.reduction]
        low = tuple(a.base for a in spatial)
        if step.memory == "register":
            leaf = self.leaf_spec(stage, 0)
            offsets = [simplify(leaf.axis(a.name).base - a.base) for a in spatial]
            dims = tuple(dim_share([o], step, step.tensor_name) for o in offsets)
            buffer = self.build.buffer(
                f"{tensor.name}_register", tensor.dtype, tuple(d.size for d in dims if d.size > 1), "register"
            )  # type: ignore[attr-defined]
            spreads = tuple(
                s for s in stage.steps if isinstance(s, Tile) and all(not stage.spec.axis(n).reduction for n, _ in s.sizes)
            )
            return Share(tensor, None, buffer, steps=spreads, low=low, dims=dims)  # type: ignore[arg-type]
        placement = (step.layout or Layout()).place({a.name: a.extent for a in spatial}, tensor.dtype.bytes)  # type: ignore[attr-defined]
        buffer = self.build.buffer(f"{tensor.name}_{step.memory}", tensor.dtype, placement.shape, "shared")  # type: ignore[attr-defined]
        return Box(tensor, None, buffer, low=low, placement=placement)  # type: ignore[arg-type]


def dim_share(offsets: list[Expr], step: Place, name: str) -> DimShare:
    """The share of one dimension from the offsets at which it is read, with walk variables and thread terms in them."""
    parts = [split_terms(o, is_thread_part) for o in offsets]
    units = {p[0] for p in parts}
    if len(units) > 1:
        return _everything(offsets)
    unit = units.pop()
    terms: dict[int, int] = {}
    overlapping = len({p[2] for p in parts}) > 1 or len({tuple(sorted((c, _extent(a)) for a, c in p[1])) for p in parts}) > 1
    low = high = 0
    for k, (_, rest, constant) in enumerate(parts):
        a = b = constant
        for atom, c in rest:
            first, last = interval(atom)
            if first is None or last is None:
                raise refuse(step, "register-slot", f"`{step}`: the slot of an element of {name} depends on {atom}, which has no bound",
                             "load it in shared")  # fmt: skip
            ends = sorted((c * first, c * last))
            a, b = a + ends[0], b + ends[1]
            overlapping |= c in terms or c < 0 or first != 0
            terms[c] = last - first + 1
        low, high = (a, b) if k == 0 else (min(low, a), max(high, b))
        if k + 1 < len(parts):
            terms = {}
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


def _everything(offsets: list[Expr]) -> DimShare:
    """Readers disagree about who reads what: every thread gets all of it."""
    ends = [interval(o) for o in offsets]
    low = min(a or 0 for a, _ in ends)
    high = max(b or 0 for _, b in ends)
    return DimShare(index(0), low, high - low + 1, None)


def _extent(atom: Expr) -> int:
    low, high = interval(atom)
    return 0 if low is None or high is None else high - low + 1


def _run(dim: DimShare, lanes: int) -> int:
    """The widest vector, up to `lanes`, whose slots hold neighbouring offsets."""
    run = dim.size if dim.strides is None else next((n for c, n, _ in reversed(dim.strides) if c == 1), 1)
    while lanes > 1 and run % lanes:
        lanes //= 2
    return lanes


def _axes_of(use: Use) -> tuple[str, ...]:
    """The axes of the spec that a read depends on, in the spec's order."""
    found: dict[str, None] = {}
    order = [v for v in use.ranges if isinstance(v, Var)]
    for v in order:
        if any(v in set(i.walk()) for i in use.indices):
            found[v.name[1:]] = None
    return tuple(found)


def _task_reads(task: Task) -> list[Read]:
    return [e for x in task.expressions() for e in x.walk() if isinstance(e, Read)]


def move_slots(frame: Frame, build: object) -> tuple[tuple[int, ...], str | None, int]:
    """The dimensions of what one thread moves: as of a register state."""
    from tilelang.lowering.build.state import slots_below

    return slots_below(frame, 0, build)
