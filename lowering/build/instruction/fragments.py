"""Fragments: values that the operand map of an instruction distributes over lanes.

A register buffer of fragments has one dimension per loop over tiles of the instruction, and a last dimension for the slots of a
lane. The operand map gives the lane and slot of each element of a tile; only readers with the same map may read the buffer.
Elements that do not exist hold the fill value of their load, because an instruction cannot be guarded.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from tilelang.core.expr import INDEX, Expr, Var, index
from tilelang.core.simplify import interval, linear, simplify
from tilelang.errors import Refusal
from tilelang.instructions.fragment import Fragment
from tilelang.instructions.matching import Match
from tilelang.lowering.build.movement.storage import Share
from tilelang.lowering.build.refusals import refuse
from tilelang.schedules.spec import AxisState, Bound
from tilelang.schedules.steps import Step

MOST_TILES = 1 << 16  # the most tiles that are enumerated to find a counterexample
SLOTS = "slots of a fragment"  # the vector axis of an accumulator whose last dimension is an instruction's slots


@dataclasses.dataclass(frozen=True)
class FragmentShare(Share):
    """Registers in which every lane holds its slots of some tiles.

    dims: which thread has which tile along each dimension, from `low` on. tile: the extents of a tile. along: for each coordinate
    of the map, the dimension of the tensor that it counts. lane: the thread's index in the map. level: the unit that shares a
    tile.
    """

    tile: tuple[int, ...] = ()
    along: tuple[int, ...] = ()
    map: Fragment | None = None
    operand: str = ""
    lane: Expr = index(0)
    level: str = ""

    def first(self, indices: tuple[Expr, ...], step: Step | None) -> tuple[Expr, ...]:
        """The register of the first slot of the tile that begins at an element. Raises NotOwner."""
        tiles = tuple(tile_number(simplify(i - low), n, step) for i, low, n in zip(indices, self.low, self.tile, strict=True))
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
        """The element of a tile that the thread holds in a slot, as one index per dimension of the tensor."""
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


def taken(found: Match, name: str, dims: Sequence[str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """How many elements of each of a tensor's dimensions an operand takes, and for each dimension of the operand, the one it
    corresponds to."""
    operand, binding = found.instruction.operand(name), dict(found.binding)
    along = tuple(dims.index(binding[d.name]) for d in operand.dims)
    extents = dict(zip(along, operand.shape, strict=True))
    return tuple(extents.get(p, 1) for p in range(len(dims))), along


def runs(held: Fragment) -> tuple[int, int]:
    """(n, dimension): the longest n, a power of two up to 16, such that each group of n slots of a lane holds neighbours along
    this dimension."""
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


def tile_number(offset: Expr, extent: int, step: Step | None) -> Expr:
    """The number of the tile that begins at an offset."""
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
    """The bounds of an axis that some points may exceed."""
    return [b for b in a.bounds if not b.is_certain(a.extent)]


def unguardable(step: Step, message: str, help: str, a: AxisState, b: Bound) -> Refusal:
    """The refusal of an instruction whose last tile along an axis is cut by a bound; shows that tile."""
    return refuse(step, "unguardable-do", message, help, _partial_tile(a, b))


def _partial_tile(a: AxisState, b: Bound) -> str | None:
    """The first tile along an axis that a bound cuts, with a point outside the bound, as a counterexample; None if the
    positions of the tiles are not known."""
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
    """The axis name of a look-ahead loop variable."""
    return str(atom).lstrip("?").rstrip("0123456789")


def shifted(a: AxisState, shift: Expr) -> AxisState:
    """The single point of an axis at distance `shift` from its beginning."""
    bounds = tuple(b.replace(offset=simplify(b.offset + shift)) for b in a.bounds)
    return AxisState(a.name, simplify(a.base + shift), 1, tuple(b for b in bounds if not b.is_certain(1)), a.reduction)
