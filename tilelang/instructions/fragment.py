"""Fragments: which lane holds which coordinates of an operand in which of its slots.

A fragment map takes (lane, slot) to a tuple of coordinates. For a register operand, a slot is a register element; for an operand in
addressed memory, it is one of the consecutive elements from the address that the lane supplies. Several (lane, slot) pairs may hold one
coordinate (replication); in an operand that is written, each coordinate has exactly one. Maps are expressions, so they can be printed,
compared and used in index arithmetic; every check here is by enumeration.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tilelang.core.expr import INDEX, Expr, Var, as_expr, index, substitute, to_text
from tilelang.core.node import Node, node
from tilelang.core.simplify import simplify
from tilelang.errors import ComputationError, counted

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from tilelang.core.distribution import Distribution

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
    def distribution(self) -> Distribution:
        """The coordinates as a distribution over the lane that holds them and the slot."""
        return self.along(tuple(range(len(self.coordinates))), len(self.coordinates))

    def along(self, dims: tuple[int, ...], rank: int) -> Distribution:
        """The same in a tensor with more dimensions. dims: the dimension of each coordinate; the other dimensions are constant."""
        from tilelang.core.distribution import Distribution  # late: imports NumPy

        counted = dict(zip(dims, self.coordinates, strict=True))
        return Distribution(((LANE, self.lanes), (SLOT, self.slots)), tuple(counted.get(d, index(0)) for d in range(rank)))

    @property
    def table(self) -> npt.NDArray[np.int64]:
        """All coordinates, (lanes, slots, rank). Read-only."""
        return _table(self)

    def gather(self, values: Any, extents: tuple[int, ...], greatest: bool = False) -> Any:
        """A dense array (..., *extents) from the value of each lane and slot, (..., lanes, slots). Of several copies, the last one
        counts, or the greatest (of numbers above 0)."""
        import numpy as np  # late: NumPy takes long to import

        dense = np.zeros((*values.shape[:-2], *(extents or (1,))), dtype=values.dtype)
        if greatest:
            np.maximum.at(dense, (..., *self._places), values)
        else:
            dense[(..., *self._places)] = values
        return dense.reshape((*values.shape[:-2], *extents))

    def scatter(self, dense: Any) -> Any:
        """The value of each lane and slot, (..., lanes, slots), from a dense array (..., *extents)."""
        return (dense if self.coordinates else dense[..., None])[(..., *self._places)]

    @property
    def _places(self) -> tuple[Any, ...]:
        """Index arrays (lanes, slots), one per dimension; a single element has one dimension of extent 1."""
        table = self.table
        return tuple(table[..., d] for d in range(table.shape[-1])) or (table.sum(axis=-1),)

    def check(self, name: str, extents: tuple[int, ...], written: bool) -> None:
        """Refuses a map that leaves the operand, misses a coordinate, or writes one twice; the error names the operand."""
        import numpy as np  # late: NumPy takes long to import

        table = self.table
        if len(self.coordinates) != len(extents):
            found = counted(len(self.coordinates), "coordinate")
            raise ComputationError(
                "fragment-rank",
                f"the fragment of `{name}` has {found}, but the operand has {counted(len(extents), 'dimension')}",
                help="give one expression for each dimension of the operand",
            )
        outside = np.argwhere(((table < 0) | (table >= np.array(extents, dtype=np.int64))).any(axis=-1))
        if outside.size:
            raise ComputationError(
                "fragment-outside",
                f"the fragment of `{name}` leaves the operand of {_times(extents)}",
                counterexample=f"{_place(*outside[0])} holds {_tuple(table[tuple(outside[0])])}",
                help="correct the map, or the operand's dimensions",
            )
        missing = np.argwhere(self.gather(np.ones(table.shape[:2]), extents) == 0)
        if missing.size:
            raise ComputationError(
                "fragment-uncovered",
                f"the fragment of `{name}` does not cover it",
                counterexample=f"no lane holds {_tuple(missing[0])}",
                help="correct the map, or give each lane more slots",
            )
        points = self.distribution.table()
        twice = points.shared() if written and points is not None else None
        if twice is not None:
            raise ComputationError(
                "fragment-written-twice",
                f"`{name}` is written, and its fragment holds one coordinate in two places",
                counterexample=f"{_tuple(table[twice[0]])} is {_place(*twice[0])} and {_place(*twice[1])}",
                help="hold each coordinate once: only operands that are read may be replicated",
            )

    def __str__(self) -> str:
        inner = ", ".join(to_text(c).replace("//", "/") for c in self.coordinates)
        return f"fragment {self.lanes} x {self.slots} ({inner})"


@functools.lru_cache(maxsize=256)
def _table(fragment: Fragment) -> npt.NDArray[np.int64]:
    import numpy as np  # late: NumPy takes long to import

    grid = fragment.distribution.grid()
    assert grid is not None, "only the lane and the slot decide a coordinate"
    out = np.stack(grid[0], axis=-1) if grid[0] else np.zeros((fragment.lanes, fragment.slots, 0), np.int64)
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
    """The fragment of a single lane that holds everything, with the last dimension varying fastest."""
    coordinates: list[Expr] = []
    rest: Expr = SLOT
    total = 1
    for position, extent in enumerate(reversed(extents)):
        last = position == len(extents) - 1
        coordinates.append(rest if last else rest % extent)
        rest, total = rest // extent, total * extent
    return Fragment(1, total, tuple(reversed(coordinates)))


def _place(lane: int, slot: int) -> str:
    return f"lane {lane}, slot {slot}"


def _tuple(values: Any) -> str:
    return "(" + ", ".join(str(int(v)) for v in values) + ")"


def _times(extents: tuple[int, ...]) -> str:
    return " x ".join(str(e) for e in extents) or "one element"
