"""Fragments: which lane holds which coordinates of an operand in which of its slots.

A fragment map sends (lane, slot) to a coordinate tuple. For a register operand a slot is a register element; for an operand in an
addressed memory it is one of the consecutive elements from the address that the lane supplies. Several (lane, slot) pairs may hold
one coordinate (replication); where the operand is written, each coordinate has exactly one. Maps are expressions, so they print,
compare and enter index arithmetic; every check here is by enumeration.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tilelang.core.expr import INDEX, Expr, Var, as_expr, substitute, to_text
from tilelang.core.layout import evaluate
from tilelang.core.node import Node, node
from tilelang.core.simplify import simplify
from tilelang.errors import ComputationError, counted

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

LANE, SLOT = Var("lane", INDEX), Var("slot", INDEX)


@node
class Fragment(Node):
    """A map from `lanes` lanes of `slots` slots each to coordinates, one expression over LANE and SLOT per dimension."""

    lanes: int
    slots: int
    coordinates: tuple[Expr, ...]

    def at(self, lane: Expr, slot: Expr) -> tuple[Expr, ...]:
        """The coordinates held by a lane in a slot, both given as index expressions."""
        return tuple(simplify(substitute(c, {LANE: lane, SLOT: slot})) for c in self.coordinates)

    @property
    def table(self) -> npt.NDArray[np.int64]:
        """All coordinates, (lanes, slots, rank). Read-only."""
        return _table(self)

    def gather(self, values: Any, extents: tuple[int, ...], greatest: bool = False) -> Any:
        """A dense array (..., *extents) from what each lane has in each slot, (..., lanes, slots); of copies the last counts, or the
        greatest (of numbers above 0)."""
        import numpy as np

        dense = np.zeros((*values.shape[:-2], *(extents or (1,))), dtype=values.dtype)
        if greatest:
            np.maximum.at(dense, (..., *self._places), values)
        else:
            dense[(..., *self._places)] = values
        return dense.reshape((*values.shape[:-2], *extents))

    def scatter(self, dense: Any) -> Any:
        """What each lane has in each slot, (..., lanes, slots), of a dense array (..., *extents)."""
        return (dense if self.coordinates else dense[..., None])[(..., *self._places)]

    @property
    def _places(self) -> tuple[Any, ...]:
        """Index arrays (lanes, slots), one per dimension; a single element has one dimension of extent 1."""
        table = self.table
        return tuple(table[..., d] for d in range(table.shape[-1])) or (table.sum(axis=-1),)

    def check(self, name: str, extents: tuple[int, ...], written: bool) -> None:
        """Refuses a map that leaves the operand, misses a coordinate, or writes one twice; the message names the operand."""
        import numpy as np

        table = self.table
        if len(self.coordinates) != len(extents):
            found = counted(len(self.coordinates), "coordinate")
            raise ComputationError(
                "fragment-rank",
                f"the fragment of `{name}` has {found}, but the operand has {counted(len(extents), 'dimension')}",
                mend="give one expression for each dimension of the operand",
            )
        outside = np.argwhere(((table < 0) | (table >= np.array(extents, dtype=np.int64))).any(axis=-1))
        if outside.size:
            lane, slot = (int(x) for x in outside[0])
            raise ComputationError(
                "fragment-outside",
                f"the fragment of `{name}` leaves the operand of {_times(extents)}",
                counterexample=f"lane {lane}, slot {slot} holds {_tuple(table[lane, slot])}",
                mend="correct the map, or the operand's dimensions",
            )
        held = np.zeros(extents, dtype=np.int64)
        np.add.at(held, tuple(np.moveaxis(table, -1, 0)), 1)
        if (held == 0).any():
            raise ComputationError(
                "fragment-uncovered",
                f"the fragment of `{name}` does not cover it",
                counterexample=f"no lane holds {_tuple(np.argwhere(held == 0)[0])}",
                mend="correct the map, or give each lane more slots",
            )
        if written and (held > 1).any():
            coordinate = np.argwhere(held > 1)[0]
            (lane, slot), (other, place) = np.argwhere((table == coordinate).all(axis=-1))[:2].tolist()
            raise ComputationError(
                "fragment-written-twice",
                f"`{name}` is written, and its fragment holds one coordinate in two places",
                counterexample=f"{_tuple(coordinate)} is lane {lane}, slot {slot} and lane {other}, slot {place}",
                mend="hold each coordinate once: only operands that are read may be replicated",
            )

    def __str__(self) -> str:
        inner = ", ".join(to_text(c).replace("//", "/") for c in self.coordinates)
        return f"fragment {self.lanes} x {self.slots} ({inner})"


@functools.lru_cache(maxsize=256)
def _table(fragment: Fragment) -> npt.NDArray[np.int64]:
    import numpy as np

    lane, slot = np.meshgrid(np.arange(fragment.lanes), np.arange(fragment.slots), indexing="ij")
    values = {LANE: lane, SLOT: slot}
    out = np.zeros((fragment.lanes, fragment.slots, len(fragment.coordinates)), dtype=np.int64)
    for dimension, coordinate in enumerate(fragment.coordinates):
        out[..., dimension] = evaluate(coordinate, values)
    out.flags.writeable = False
    return out


def fragment(lanes: int, slots: int, map: Callable[[Expr, Expr], Any]) -> Fragment:
    """A fragment map from a Python function of (lane, slot) that returns one index expression per dimension.

    >>> print(fragment(4, 2, lambda lane, slot: (lane // 2, lane % 2 * 2 + slot)))
    fragment 4 x 2 (lane / 2, lane % 2 * 2 + slot)
    """
    made = map(LANE, SLOT)
    return Fragment(lanes, slots, tuple(as_expr(c) for c in (made if isinstance(made, tuple) else (made,))))


def row_major(extents: tuple[int, ...]) -> Fragment:
    """The fragment of one lane that holds everything, last dimension fastest."""
    coordinates: list[Expr] = []
    rest: Expr = SLOT
    total = 1
    for position, extent in enumerate(reversed(extents)):
        last = position == len(extents) - 1
        coordinates.append(rest if last else rest % extent)
        rest, total = rest // extent, total * extent
    return Fragment(1, total, tuple(reversed(coordinates)))


@node
class Disagreement(Node):
    """An element that `reader` needs and that only `owners` hold."""

    coordinate: tuple[int, ...]
    reader: int
    owners: tuple[int, ...]

    def __str__(self) -> str:
        owners = ", ".join(str(lane) for lane in self.owners[:4])
        return f"element {_tuple(self.coordinate)} is needed by lane {self.reader} and held by lane {owners}"


def disagreement(
    giver: Fragment, giver_tile: tuple[int, ...], taker: Fragment, taker_tile: tuple[int, ...]
) -> Disagreement | None:
    """The first element that a lane needs as `taker` holds it, and does not have as `giver` holds it; None where there is none.

    Both maps repeat over a common region, tile after tile, with the dimensions in the same order. None means that what one
    instruction leaves in registers is where the other wants it: no data moves.
    """
    import math

    import numpy as np

    region = tuple(math.lcm(a, b) for a, b in zip(giver_tile, taker_tile, strict=True))
    points = np.indices(region).reshape(len(region), -1).T
    has, needs = (_holders(f, tile, points) for f, tile in ((giver, giver_tile), (taker, taker_tile)))
    lanes = max(giver.lanes, taker.lanes)
    has, needs = (np.pad(x, ((0, 0), (0, lanes - x.shape[1]))) for x in (has, needs))
    wrong = np.argwhere(needs & ~has)
    if not wrong.size:
        return None
    point, reader = (int(x) for x in wrong[0])
    return Disagreement(tuple(points[point].tolist()), reader, tuple(np.nonzero(has[point])[0].tolist()))


def _holders(held: Fragment, tile: tuple[int, ...], points: Any) -> Any:
    """For every point, which lanes hold it: (points, lanes) of bool."""
    import numpy as np

    by_coordinate = np.zeros((*tile, held.lanes), dtype=bool)
    lanes = np.broadcast_to(np.arange(held.lanes)[:, None], (held.lanes, held.slots))
    by_coordinate[(*np.moveaxis(held.table, -1, 0), lanes)] = True
    return by_coordinate[tuple((points % np.array(tile, dtype=np.int64)).T)]


def _tuple(values: Any) -> str:
    return "(" + ", ".join(str(int(v)) for v in values) + ")"


def _times(extents: tuple[int, ...]) -> str:
    return " x ".join(str(e) for e in extents) or "one element"
