"""The threads that the simulator runs together: whole blocks of a kernel in lockstep, under masks."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tilelang.lowering import ir
from tilelang.lowering.simulator.scalar_semantics import Value
from tilelang.lowering.simulator.vector_clocks import Clocks

Array = npt.NDArray[Any]


class Mask:
    """The active threads of a batch. If `lanes` (threads, lanes) is given, it narrows them to single lanes.

    lasting: the same mask is likely to be used again, so that what depends on it is worth keeping.
    """

    __slots__ = ("_spread", "flags", "full", "lanes", "lasting", "threads")

    def __init__(self, flags: Array, lanes: Array | None = None, lasting: bool = False) -> None:
        self.flags, self.lanes, self.lasting = flags, lanes, lasting
        (self.threads,) = flags.nonzero()
        self.full = lanes is None and self.threads.size == flags.size
        self._spread: dict[int, tuple[Array, Array]] = {}

    def spread(self, lanes: int) -> tuple[Array, Array]:
        """The thread and the number of each lane of the active threads."""
        found = self._spread.get(lanes)
        if found is None:
            count = self.threads.size
            if lanes == 1:
                found = self.threads, np.zeros(count, np.int64)
            else:
                found = np.repeat(self.threads, lanes), np.broadcast_to(np.arange(lanes), (count, lanes)).reshape(-1)
            self._spread[lanes] = found
        return found

    def narrow(self, condition: Value) -> Mask:
        """The active threads and lanes for which a condition holds."""
        if condition.ndim == 2 and condition.shape[1] > 1:
            lanes = condition & (self.flags[:, None] if self.lanes is None else self.lanes)
            return Mask(lanes.any(axis=1), lanes)
        if condition.ndim == 0:
            return self if condition else Mask(np.zeros_like(self.flags))
        by_thread = condition if condition.ndim == 1 else condition[:, 0]
        return Mask(self.flags & by_thread, None if self.lanes is None else self.lanes & by_thread[:, None])

    @property
    def by_thread(self) -> Mask:
        """The same threads with all their lanes."""
        return self if self.lanes is None else Mask(self.flags)

    def lane(self, number: int) -> Mask:
        """The threads in which one lane is active."""
        return self if self.lanes is None else Mask(self.flags & self.lanes[:, number])


class Batch:
    """Blocks `first` to `first + blocks - 1` of a kernel. Threads are numbered across the batch and are the first axis of arrays."""

    def __init__(self, kernel: ir.Kernel, first: int, blocks: int, warp: int) -> None:
        self.kernel, self.first, self.blocks = kernel, first, blocks
        self.threads = blocks * kernel.threads
        number = np.arange(self.threads)
        self.thread = number % kernel.threads  # in its block
        self.local_block = number // kernel.threads
        self.block = first + self.local_block
        self.global_thread = first * kernel.threads + number
        self.lane = self.thread % warp
        self.warp = self.local_block * -(-kernel.threads // warp) + self.thread // warp
        self.epochs = {"shared": np.zeros(blocks, np.int32), "global": np.zeros(blocks, np.int32)}
        # Roles run concurrently; one cluster of blocks at a time.
        self.clocks = Clocks(self.threads) if kernel.roles else None
        self.all = Mask(np.ones(self.threads, bool), lasting=True)

    def block_index(self, block: Any) -> tuple[Any, Any, Any]:
        """(x, y, z) of a block's number in the launch, or of an array of such numbers."""
        x, y, _ = self.kernel.grid
        return block % x, block // x % y, block // (x * y)


class Touch(NamedTuple):
    """The elements that an access actually touches: thread of the batch, lane and element of the buffer for each.

    `whole`: the access covers every lane of every thread of the batch, in order.
    """

    thread: Array
    lane: Array
    element: Array
    address: Array
    whole: bool


def blocks_together(kernel: ir.Kernel) -> int:
    """Number of blocks to run at once: a few thousand threads within a memory limit. With roles, one cluster."""
    if kernel.roles:
        return kernel.cluster
    private = sum(b.elements * b.dtype.bytes for b in kernel.registers) * kernel.threads
    block_bytes = max(1, private + sum(b.bytes for b in kernel.shared))
    return max(1, min(math.prod(kernel.grid), 4096 // kernel.threads, 2**25 // block_bytes))
