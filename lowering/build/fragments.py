"""Values that an instruction's operand maps spread over lanes: operands in registers, the state, and the way back of results.

A register buffer of fragments has one dimension per walk over tiles of the instruction, and a last one for the slots of a lane. Which
lane owns what is the operand's map, from element coordinates inside a tile; nothing else may read such a buffer. Elements that do not
exist hold the fill of their load, so that an instruction, which cannot be guarded, takes them in without effect.
"""

from __future__ import annotations

import dataclasses

from tilelang.computation import Tensor
from tilelang.dtype import DType
from tilelang.errors import Refusal
from tilelang.expr import INDEX, Axis, Expr, Read, Var, free, index
from tilelang.fragment import Fragment
from tilelang.instruction import use
from tilelang.lowering import ir
from tilelang.lowering.build.base import refuse
from tilelang.lowering.build.cover import Region, sources
from tilelang.lowering.build.frame import Box, Fixed, Frame, Residence, Share, Target
from tilelang.lowering.build.leaf import Leaf
from tilelang.lowering.build.lookahead import leaf_spec
from tilelang.lowering.build.pieces import slots_inside
from tilelang.lowering.build.place import Places
from tilelang.lowering.build.regions import Use
from tilelang.lowering.build.share import Shares, declares_owners, dim_share
from tilelang.lowering.build.state import States
from tilelang.matching import Match
from tilelang.simplify import interval, linear, simplify
from tilelang.spec import AxisState, Bound
from tilelang.steps import Do, Place, Step, Vectorize
from tilelang.tensor import evaluate

MOST_TILES = 1 << 16  # whose beginnings are enumerated for a counterexample
SLOTS = "slots of a fragment"  # the vector axis of a state whose last dimension is an instruction's slots


@dataclasses.dataclass(frozen=True)
class FragmentShare(Share):
    """Every lane has its slots of some tiles.

    dims: who has which tile, dimension by dimension, from `low` on. tile: the extents of one. along: for each coordinate of the map,
    the dimension of the tensor that it counts in. lane: the thread's number in the map; level: of the unit that shares a tile.
    """

    tile: tuple[int, ...] = ()
    along: tuple[int, ...] = ()
    map: Fragment | None = None
    operand: str = ""
    lane: Expr = index(0)
    level: str = ""

    def first(self, indices: tuple[Expr, ...], step: Step | None) -> tuple[Expr, ...]:
        """Where the slots of the tile that begins at an element are. Raises NotOwner."""
        tiles = tuple(_tile_number(simplify(i - low), n, step) for i, low, n in zip(indices, self.low, self.tile, strict=True))
        grid = Share(self.tensor, self.read, self.buffer, low=tuple(index(0) for _ in self.low), dims=self.dims)
        found = grid.at(tiles)
        return (*(found if any(d.size > 1 for d in self.dims) else ()), index(0))

    def inside(self, at: tuple[Expr, ...]) -> tuple[Expr, ...]:
        tiles = super().inside(at[:-1])
        return tuple(simplify(t * n + e) for t, n, e in zip(tiles, self.tile, self.inside_tile(at[-1]), strict=True))

    def piece(self) -> tuple[tuple[Var, ...], tuple[Expr, ...], tuple[Expr, ...]]:
        assert self.owners is not None and self.map is not None
        slot = Var("?slot", INDEX, 0, self.map.slots - 1)
        begins = tuple(a.base for a in self.owners.leaf)
        return (slot,), (*self.first(begins, None)[:-1], slot), self.inside_tile(slot)

    def inside_tile(self, slot: Expr) -> tuple[Expr, ...]:
        """The element of a tile that the thread holds in a slot, in the tensor's dimensions."""
        assert self.map is not None
        held = dict(zip(self.along, self.map.at(self.lane, slot), strict=True))
        return tuple(held.get(d, index(0)) for d in range(len(self.tile)))

    def there(self, element: tuple[Expr, ...]) -> list[Expr]:
        return []  # every slot of every tile holds an element or the fill

    def own(self, element: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return ()

    def at(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        assert self.map is not None
        name, owned = self.tensor.name, self.map.table[0]
        places = ", ".join(str(tuple(int(c) for c in coordinate)) for coordinate in owned[:4])
        more = ", ..." if len(owned) > 4 else ""
        raise refuse(None, "reader-is-not-owner", f"{name} is distributed over lanes as operand {self.operand} of an instruction, but"
                     " something else reads it", f"load {name} in register again for this reader, or load it in shared first",
                     f"of the tile's elements, lane 0 has {places}{more}")  # fmt: skip


class Fragments(Places, Shares, States, Leaf):
    """Operands and states in fragments."""

    # ------------------------------------------------------------ states and results

    def state_shape(self, frame: Frame, i: int) -> tuple[tuple[int, ...], str | None, int]:
        """As for other leaves; an instruction's slots are as the lanes of a vector."""
        shape, axis, lanes = super().state_shape(frame, i)
        step = frame.steps[-1] if frame.steps else None
        if not isinstance(step, Do):
            return shape, axis, lanes
        semantics = frame.match.instruction
        held = semantics.fragment(semantics.writes)
        assert held is not None, "a state is in registers"
        return shape, SLOTS, held.slots

    def state_type(self, frame: Frame, type: DType) -> DType:
        """As for other leaves; an instruction may sum in a narrower type, where the definition gives leave."""
        step = frame.steps[-1] if frame.steps else None
        return held_as(step, type) if isinstance(step, Do) else type

    def stage_share(self, stage: Frame, step: Place, tensor: Tensor, slot: Expr | None) -> Share:
        """As for other leaves; what the lanes of an instruction make stands where its map says."""
        last = stage.steps[-1] if stage.steps else None
        found = stage.match if isinstance(last, Do) and stage.task.states else None
        held = None if found is None else found.instruction.fragment(found.instruction.writes)
        made = None if found is None else found.instruction.operand(found.instruction.writes)
        if found is None or held is None or held.lanes == 1 or made is None or made.memory != "register":
            return super().stage_share(stage, step, tensor, slot)
        names = [d.name for d in tensor.dims]
        spatial = [stage.spec.axis(n) for n in names]
        leaf = leaf_spec(stage, 0, self.build.profile)
        along = tuple(names.index(dict(found.binding)[a.name]) for a in made.dims)
        extents = dict(zip(along, made.shape, strict=True))
        tile = tuple(extents.get(p, 1) for p in range(len(names)))
        begins = [simplify(leaf.axis(a.name).base - a.base) for a in spatial]
        dims = tuple(dim_share([_tile_number(b, n, step)], step, tensor.name) for b, n in zip(begins, tile, strict=True))
        buffer = self.stage_register(stage, tensor, (*[d.size for d in dims if d.size > 1], held.slots), slot)
        return FragmentShare(tensor, None, buffer, ends=tuple(a.bounds for a in spatial), low=tuple(a.base for a in spatial),
                             dims=dims, owners=self.owners_of(stage, leaf, names), tile=tile, along=along, map=held,
                             operand=found.instruction.writes, lane=leaf.lane, level=leaf.level)  # fmt: skip

    def fragments_back(self, frame: Frame, step: Do) -> ir.Stmt:
        """Each lane hands on its slots of one tile, at the coordinates of the map; neighbours along a dimension as a vector."""
        found = frame.match
        semantics = found.instruction
        target, held = semantics.operand(semantics.writes), semantics.fragment(semantics.writes)
        assert held is not None
        names = [dict(found.binding)[a.name] for a in target.dims]
        run, along = runs(held)
        width = self._store_width(frame, step, run, names[along] if run > 1 else None)
        while width not in self.build.profile.vector_lanes(frame.target.places[0].buffer.dtype):
            width //= 2
        groups = slots_inside(held, names, width, frame, step)
        group, lane, slot = self._slots(len(groups) * width, width, groups.start)
        axes = {a.name: a for a in frame.spec.axes}
        for name, inside in zip(names, held.at(frame.spec.lane, slot), strict=True):
            axes[name] = _moved(axes[name], inside)
        points: dict[str, Expr] = {a.name: a.base for a in axes.values()}
        spec = frame.spec.replace(axes=tuple(axes.values()), units=1)
        places = tuple(self._held_in(frame, p, slot, step) for p in frame.target.places)
        body = self._at(frame.but(spec=spec, target=dataclasses.replace(frame.target, places=places)), points, slot, step)
        if isinstance(lane, Var):
            body = ir.For(lane, index(width), body, "vector", step.span)
        return ir.For(group, index(len(groups)), body, "unroll", step.span) if isinstance(group, Var) else body

    @staticmethod
    def _held_in(frame: Frame, place: Residence, slot: Expr, step: Do) -> Residence:
        """Where a result goes: into the slot that it comes from, where lanes hold it by the instruction's map."""
        if not isinstance(place, FragmentShare):
            return place
        axes = frame.coordinates({a.name: a.base for a in frame.spec.axes})
        named = {a.name: e for a, e in axes.items() if isinstance(a, Axis)}
        tile = place.first(tuple(named[d.name] for d in place.tensor.dims), step)
        return Fixed(place.tensor, None, place.buffer, slots=(*tile[:-1], slot))

    @staticmethod
    def _store_width(frame: Frame, step: Do, run: int, axis: str | None) -> int:
        if frame.store_lanes is None:
            return run
        wanted, lanes = frame.store_lanes
        if wanted != axis or run % lanes:
            raise refuse(step, "store-width", f"a lane owns {run} neighbours along {axis or 'no axis'} after `{step}`, but the store"
                         f" writes {lanes} along {wanted} at a time",
                         f"vectorize {axis}={run}" if axis else "remove the vectorize, or store `via shared`")  # fmt: skip
        return lanes

    def _slots(self, slots: int, width: int, first: int = 0) -> tuple[Expr, Expr, Expr]:
        """(group, lane, slot): a lane's slots in groups of `width` neighbours, from the group `first` on."""
        group: Expr = self.build.variable("slots", slots // width) if slots > width else index(0)
        lane: Expr = self.build.variable("lane", width) if width > 1 else index(0)
        return group, lane, simplify((group + first) * width + lane)

    # ------------------------------------------------------------ operands

    def share_of(self, frame: Frame, i: int, step: Place, region: Region, uses: list[Use]) -> Share:
        """What an instruction reads is given out by its operand's map, anything else by who reads it."""
        wanted = None if declares_owners(frame, step) else self._operand_loaded(frame, uses)
        if wanted is None:
            return super().share_of(frame, i, step, region, uses)
        return self._fragments_of(frame, i, step, region, uses, *wanted)

    def fetch_share(self, frame: Frame, step: Place, region: Region, share: Share) -> ir.Stmt:
        """The move of a load in registers."""
        if not isinstance(share, FragmentShare):
            return super().fetch_share(frame, step, region, share)
        if step.steps and isinstance(step.steps[-1], Do):
            return self.fragment_move(frame, step, region, share)
        return self._fetch_fragments(frame, step, region, share)

    def _operand_loaded(self, frame: Frame, uses: list[Use]) -> tuple[str, Read] | None:
        """The operand for which a load brings a tensor, and the read that it stands for; None where no instruction reads it."""
        last = frame.steps[-1] if frame.steps else None
        if not isinstance(last, Do) or not all(u.main for u in uses) or len({u.whole for u in uses}) != 1:
            return None
        assert frame.matched is not None
        found = frame.matched.operand_of(uses[0].whole)
        return found if found is not None and frame.match.instruction.operand(found[0]).memory == "register" else None

    def _fragments_of(self, frame: Frame, i: int, step: Place, region: Region, uses: list[Use], name: str,
                      read: Read) -> FragmentShare:  # fmt: skip
        """The residence of an operand."""
        found = frame.match
        held = found.instruction.fragment(name)
        assert held is not None
        tensor = region.task.outputs[0]
        leaf = leaf_spec(frame, i + 1, self.build.profile)
        ((_, begins),) = self.reader_indices(frame, i, uses)
        if region.points:
            axes = tuple(Axis(a.name, a.extent) for a in region.spec.axes)
            read, begins = Read(read.tensor, axes), tuple(leaf.axis(a.name).base for a in axes)
        tile, along = self._tile_of(found, name, read, step)
        tiles = [_tile_number(simplify(e - low), n, step) for e, low, n in zip(begins, region.low, tile, strict=True)]
        dims = tuple(dim_share([t], step, tensor.name) for t in tiles)
        shape = (*[d.size for d in dims if d.size > 1], held.slots)
        buffer = self.build.buffer(f"{tensor.name}_register", tensor.dtype, shape, "register")
        moved = tuple((*ends, Bound("", index(0), a.extent)) for ends, a in zip(region.ends, region.spec.axes, strict=True))
        return FragmentShare(tensor, region.read, buffer, region.fill, region.outside, moved=moved, low=region.low, dims=dims,
                             tile=tile, along=along, map=held, operand=name, lane=leaf.lane, level=leaf.level,
                             points=region.points)  # fmt: skip

    @staticmethod
    def _tile_of(found: Match, name: str, read: Read, step: Place) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """How many elements of each dimension of a read an operand takes, and the dimension in which each of the operand's runs."""
        operand, binding = found.instruction.operand(name), dict(found.binding)
        mentioned = [{a.name for a in i.walk() if isinstance(a, Axis)} for i in read.indices]
        along = tuple(next((p for p, names in enumerate(mentioned) if binding[d.name] in names), -1) for d in operand.dims)
        if -1 in along:
            axis = binding[operand.dims[along.index(-1)].name]
            raise refuse(step, "not-lowered-yet", f"`{step}`: staging one element along {axis} for an instruction that takes several is"
                         " valid, but not supported yet", f"remove the `do` where {axis} has one element")  # fmt: skip
        extents = dict(zip(along, (d.extent for d in operand.dims), strict=True))
        return tuple(extents.get(p, 1) for p in range(len(read.indices))), along

    def _fetch_fragments(self, frame: Frame, step: Place, region: Region, share: FragmentShare) -> ir.Stmt:
        """Every slot of every tile from where the tensor was; vectors where the move asks for them and slots are neighbours."""
        assert share.map is not None
        width = self._load_width(step, region, share)
        group, inner, slot = self._slots(share.map.slots, width)
        walks, shifts, at = [], [], []
        for dim, extent, inside in zip(share.dims, share.tile, share.inside_tile(slot), strict=True):
            v: Expr = self.build.variable(f"{share.tensor.name}_r", dim.size) if dim.size > 1 else index(0)
            walks.append((v, dim.size))
            at += [v] if dim.size > 1 else []
            shifts.append(simplify((dim.unit + dim.offset(v)) * extent + inside))
        body = self._fetch_element(frame, region, share, tuple(shifts), (*at, slot))
        if isinstance(inner, Var):
            body = ir.For(inner, index(width), body, "vector", step.span)
        for v, extent in reversed([*walks, (group, share.map.slots // width)]):
            if isinstance(v, Var):
                body = ir.For(v, index(extent), body, "serial", step.span)
        return body

    @staticmethod
    def _load_width(step: Place, region: Region, share: FragmentShare) -> int:
        leaf = step.steps[-1] if step.steps else None
        if not isinstance(leaf, Vectorize) or not isinstance(leaf.lanes, int):
            return 1
        names = [a.name for a in region.spec.axes]
        if leaf.axis not in names:
            raise refuse(leaf, "unknown-axis", f"`{leaf}` names an axis that {step.tensor_name} does not have; its dimensions are"
                         f" {', '.join(names)}",
                         "use the tensor's own dimensions")  # fmt: skip
        assert share.map is not None
        run, along = runs(share.map)
        own = min(run, leaf.lanes) if run > 1 and names[share.along[along]] == leaf.axis else 1
        whole = share.map.slots % leaf.lanes == 0 and share.map.lanes == 1 and leaf.lanes in (2, 4, 8, 16)
        return leaf.lanes if whole and own < leaf.lanes and _packed(region, share, leaf.lanes) else own

    def _fetch_element(
        self, frame: Frame, region: Region, share: FragmentShare, shifts: tuple[Expr, ...], at: tuple[Expr, ...]
    ) -> ir.Stmt:
        """One element, or the fill where there is none."""
        axes = []
        for a, shift in zip(region.spec.axes, shifts, strict=True):
            axes.append(_moved(a.replace(bounds=(*a.bounds, Bound(f"region:{a.name}", index(0), a.extent))), shift))
        kept = frozenset(b.key for a in axes for b in a.bounds)
        exact = Fixed(share.tensor, None, share.buffer, slots=at)
        spec = region.spec.replace(axes=tuple(axes), units=1)
        return self.chain(
            Frame(
                region.task, (), spec, Target((exact,)), sources(frame, region), fill=share.fill, fill_keys=kept, cuts=frame.cuts
            ),
            0,
        )

    def fragment_move(self, frame: Frame, step: Place, region: Region, share: FragmentShare) -> ir.Stmt:
        """A load of fragments by an instruction of its own."""
        raise NotImplementedError


def _packed(region: Region, share: FragmentShare, count: int) -> bool:
    """Whether a layout has put what `count` neighbouring slots hold in a row, where the tile and every walk begin at 0."""
    import numpy as np

    source = region.source
    if not isinstance(source, Box):
        return False
    slot = Var("?slot", INDEX)
    places = source.at(tuple(simplify(low + e) for low, e in zip(region.low, share.inside_tile(slot), strict=True)))
    offset: Expr = index(0)
    for place, stride in zip(places, source.buffer.strides, strict=True):
        offset = offset + place * stride
    assert share.map is not None
    still = dict.fromkeys((v for v in free(offset) if v is not slot), np.int64(0))
    found = np.broadcast_to(evaluate(offset, {**still, slot: np.arange(share.map.slots)}), share.map.slots)
    return bool((np.diff(found.reshape(-1, count)) == 1).all())


def held_as(step: Do, type: DType) -> DType:
    """The type in which a state of some type is held between the rounds of an instruction: its own, where that takes a licence."""
    semantics = use(step.instruction)
    return semantics.operand(semantics.writes).dtype if "float16_accumulate" in semantics.licences else type


def runs(held: Fragment) -> tuple[int, int]:
    """(n, dimension): in how long runs, a power of two up to 16, a lane's slots are neighbours along one dimension of the tile."""
    import numpy as np

    table = held.table
    for n in (16, 8, 4, 2):
        if held.slots % n:
            continue
        grouped = table.reshape(held.lanes, held.slots // n, n, -1)
        steps = grouped - grouped[:, :, :1]
        for d in range(table.shape[-1]):
            wanted = np.zeros_like(steps)
            wanted[..., d] = np.arange(n)
            if (steps == wanted).all():
                return n, d
    return 1, 0


def _tile_number(offset: Expr, extent: int, step: Step | None) -> Expr:
    """Which tile begins at an offset."""
    terms, constant = linear(offset)
    loose = next((f"{_plain_name(atom)} = 1" for atom, c in terms if c % extent), "0")
    if constant % extent or loose != "0":
        first = constant + sum(c for _, c in terms if c % extent)
        raise refuse(step, "fragment-between-tiles", f"`{step}`: tiles of {extent} begin inside the tiles that lanes hold",
                     "keep the tensor in shared, load it for each tile, or use tile sizes that are multiples of the instruction's"
                     " shape",
                     f"at {loose}, a tile begins at element {first} of the region" if constant % extent == 0
                     else f"the first tile begins at element {constant} of the region")  # fmt: skip
    total: Expr = index(constant // extent)
    for atom, c in terms:
        total = total + atom * (c // extent)
    return simplify(total)


def open_bounds(a: AxisState) -> list[Bound]:
    """The bounds of an axis that some point may be beyond."""
    return [b for b in a.bounds if not b.is_certain(a.extent)]


def unguardable(step: Step, message: str, mend: str, a: AxisState, b: Bound) -> Refusal:
    """The refusal of an instruction whose last tile along an axis is divided by a bound, with that tile."""
    return refuse(step, "unguardable-do", message, mend, _partial_tile(a, b))


def _partial_tile(a: AxisState, b: Bound) -> str | None:
    """The first tile along an axis that a bound divides, with a point of it that does not exist, for a counterexample; None if the
    beginnings of the tiles are not known."""
    terms, constant = linear(b.offset)
    begins = {constant}
    for atom, factor in terms:
        low, high = interval(atom)
        if low is None or high is None or len(begins) * (high - low) > MOST_TILES:
            return None
        begins = {begin + factor * x for begin in begins for x in range(low, high + 1)}
    divided = sorted(begin for begin in begins if begin < b.limit < begin + a.extent)
    if not divided:
        return None
    outside, where = (b.limit - 1, "before the beginning") if b.lower else (b.limit, "past the end")
    return f"{a.name} = {outside} is {where}, but the tile of {a.extent} that begins at {a.name} = {divided[0]} includes it"


def _plain_name(atom: Expr) -> str:
    """A walk's variable of the look-ahead by its axis."""
    return str(atom).lstrip("?").rstrip("0123456789")


def _moved(a: AxisState, shift: Expr) -> AxisState:
    """One point of an axis, `shift` from where it begins."""
    bounds = tuple(b.replace(offset=simplify(b.offset + shift)) for b in a.bounds)
    return AxisState(a.name, simplify(a.base + shift), 1, tuple(b for b in bounds if not b.is_certain(1)), a.reduction)
