"""Dimensions of a tensor by the form of the indices that read them: quotients, remainders, values of another tensor."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from tilelang.computations.computation import Tensor
from tilelang.core.expr import Axis, Binary, Read
from tilelang.schedules.steps import Fuse
from tilelang.testing.kernels import World, definition_of
from tilelang.testing.reach import distinct, regions

Array = Any


@dataclasses.dataclass(frozen=True)
class Dimensions:
    """The reads of a computation's tensors in a kernel.

    tensors: the tensors that it computes. relabels: the `fuse` and `unfuse` steps of its spec.
    """

    world: World
    tensors: tuple[Tensor, ...]
    relabels: Sequence[Any]

    def quotients(self, tensor: Tensor, op: str) -> Array:
        """The dimensions of a tensor that are read at quotients (op "//"), or at remainders ("%"), so that pieces read different
        numbers of elements.

        The axes that a `fuse` combines count, too: the first as a quotient of the fused axis, the others as remainders.
        """
        found: Array = np.zeros(len(tensor.shape), bool)
        fused = {a: "//" if k == 0 else "%" for s, _ in self.relabels if isinstance(s, Fuse) for k, a in enumerate(s.axes)}
        for e in self.reads(tensor):
            for k, i in enumerate(e.indices):
                nodes = list(i.walk())
                found[k] |= any(isinstance(n, Binary) and n.op == op for n in nodes)
                found[k] |= any(isinstance(n, Axis) and fused.get(n.name) == op for n in nodes)
        return found

    def fetched(self, tensor: Tensor) -> Array:
        """The dimensions of a tensor that are read at values of another tensor."""
        found: Array = np.zeros(len(tensor.shape), bool)
        for e in self.reads(tensor):
            found |= np.array([any(isinstance(n, Read) for n in i.walk()) for i in e.indices], bool)
        return found

    def ways(self, tensor: Tensor) -> int:
        """The number of different reads of a tensor."""
        return len({e.indices for e in self.reads(tensor)})

    def through(self, tensor: Tensor, stops: Collection[str], own: Callable[[Tensor], Array]) -> Array:
        """The dimensions of a tensor with a property (`own`), directly or through inlined definitions: if an inlined definition is read
        at a dimension with the property, the indices in its expression that depend on that axis have it, too."""
        found: dict[Tensor, Array] = {}
        inlined = [
            t for d in self.world.computation.definitions for t in d.tensors if t.name not in stops and self._written_in(t)
        ]
        leading = {tensor}  # inlined definitions that read the tensor, directly or through others
        for t in inlined:
            if any(e.tensor in leading for e in definition_of(t).values[t.member].walk() if isinstance(e, Read)):
                leading.add(t)
        for t in (*(t for t in reversed(inlined) if t in leading and t is not tensor), tensor):  # readers first
            found[t] = own(t)
            for reader in [r for r in found if r is not t and found[r].any()]:
                axes = {a for a, has in zip(definition_of(reader).axes, found[reader], strict=True) if has}
                for e in definition_of(reader).values[reader.member].walk():
                    if isinstance(e, Read) and e.tensor is t:
                        found[t] |= np.array([any(n in axes for n in i.walk() if isinstance(n, Axis)) for i in e.indices], bool)
        return found[tensor]

    def _written_in(self, tensor: Tensor) -> bool:
        """Whether a definition may be inlined: this kernel does not compute it, or other tensors of this kernel read it."""
        others = [t for t in self.tensors if t is not tensor]
        values = [definition_of(t).values[t.member] for t in others]
        return len(others) == len(self.tensors) or any(
            isinstance(e, Read) and e.tensor is tensor for v in values for e in v.walk()
        )

    def reads(self, tensor: Tensor) -> list[Read]:
        """All reads of a tensor."""
        definitions = self.world.computation.definitions
        return [e for d in definitions for v in d.values for e in v.walk() if isinstance(e, Read) and e.tensor is tensor]


def uneven(reads: Sequence[Read], tensor: Tensor, reached: Callable[[Read], dict[Tensor, Array]]) -> Array:
    """The dimensions along which the distance between two reads of a tensor differs from piece to piece, as in A[n] + A[2 * m] with
    pieces of n. A region of one size for all pieces then contains elements that some pieces do not read. The end of the tensor may cut
    off one end of a read."""
    found = np.zeros(len(tensor.dims), bool)
    different = {e.indices: e for e in reads}.values()
    every = [reached(e).get(tensor) for e in different] if len(different) > 1 else []
    pieces = [regions(distinct(rows)) for rows in every if rows is not None]
    for which, low, high in pieces[1:]:
        _, a, b = np.intersect1d(which, pieces[0][0], return_indices=True)
        begins, ends = low[:, a] - pieces[0][1][:, b], high[:, a] - pieces[0][2][:, b]
        for d, (begin, end) in enumerate(zip(begins, ends, strict=True)):
            found[d] |= not any(((begin == n) | (end == n)).all() for n in (*begin[:1], *end[:1])) and begin.size > 0
    return found
