"""The members of a loop that several reductions share. Its error bound is in shared_loop.py, because schedules must not import
NumPy."""

from __future__ import annotations

import dataclasses

from tilelang.computations.computation import Definition, Tensor
from tilelang.core.expr import Reduce
from tilelang.semantics.repair import Repair


@dataclasses.dataclass(frozen=True)
class Member:
    """A reduction of a shared loop. reduce: the reduction over the definition's axes, with pointwise definitions inlined into its term.
    repair: None if it reads no running value."""

    definition: Definition
    reduce: Reduce
    repair: Repair | None = None


@dataclasses.dataclass(frozen=True)
class SharedLoop:
    """A loop over an axis in chunks of `piece` points, and the reductions that it computes, each after those that it reads.

    part: the points of the axis that each block takes, if blocks share the loop; their partial values are combined by the same repairs.
    """

    axis: str
    piece: int
    members: tuple[Member, ...]
    part: int | None = None

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return tuple(t for m in self.members for t in m.definition.tensors)

    @property
    def repaired(self) -> bool:
        """Whether any member has a repair."""
        return any(m.repair is not None for m in self.members)

    @property
    def multiplies(self) -> bool:
        """Whether a repair rounds even where all values are whole numbers."""
        return any(m.repair is not None and m.repair.how != "plus" for m in self.members)
