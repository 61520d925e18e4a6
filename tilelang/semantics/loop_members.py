"""What a loop shared by several reductions consists of. Apart from its error (shared_loop.py), so that schedules do without NumPy."""

from __future__ import annotations

import dataclasses

from tilelang.computations.computation import Definition, Tensor
from tilelang.core.expr import Reduce
from tilelang.semantics.repair import Repair


@dataclasses.dataclass(frozen=True)
class Member:
    """A reduction of a shared loop. reduce: as it is computed there, over the definition's axes, with pointwise definitions written
    into its term. repair: None where it reads no running value."""

    definition: Definition
    reduce: Reduce
    repair: Repair | None = None


@dataclasses.dataclass(frozen=True)
class SharedLoop:
    """One loop over an axis in chunks of `piece` points, and the reductions that it makes, each after those that it reads."""

    axis: str
    piece: int
    members: tuple[Member, ...]

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return tuple(t for m in self.members for t in m.definition.tensors)

    @property
    def repaired(self) -> bool:
        """Whether any member is."""
        return any(m.repair is not None for m in self.members)

    @property
    def multiplies(self) -> bool:
        """Whether a repair rounds even where all values are whole numbers."""
        return any(m.repair is not None and m.repair.how != "plus" for m in self.members)
