"""A pool of device memory for reuse: the driver's own allocation waits for the device, and freeing requires a current context.

A block returns to the pool with the object that holds it, in any thread; the pool never calls the driver at that point.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any

_LEAST_BYTES = 256


class Memory:
    """Device memory, returned to its pool with this object. As a number it is its address."""

    __slots__ = ("_block", "_pool", "size_bytes")

    def __init__(self, pool: Pool, block: Any, size_bytes: int) -> None:
        self._pool, self._block, self.size_bytes = pool, block, size_bytes

    def __index__(self) -> int:
        return int(self._block)

    def __del__(self) -> None:
        self._pool.give_back(self._block, self.size_bytes)


class Pool:
    """Free blocks by size. allocate: gets new memory from the driver, or None. free: returns a block to the driver."""

    def __init__(self, allocate: Callable[[int], Any], free: Callable[[Any], object]) -> None:
        self._allocate, self._free = allocate, free
        self._blocks: dict[int, list[Any]] = defaultdict(list)
        self._lock = threading.RLock()  # a garbage collection may return a block while this thread takes one

    def take(self, size_bytes: int) -> Memory | None:
        """At least this much memory; None if there is not enough even after freeing all unused blocks."""
        size = rounded(size_bytes)
        with self._lock:
            blocks = self._blocks[size]
            if blocks:
                return Memory(self, blocks.pop(), size)
        block = self._allocate(size)
        if block is None:
            self.free_unused()
            block = self._allocate(size)
        return None if block is None else Memory(self, block, size)

    def give_back(self, block: Any, size_bytes: int) -> None:
        """Keeps a block for the next request of its size."""
        with self._lock:
            self._blocks[size_bytes].append(block)

    def free_unused(self) -> None:
        """Returns all unused blocks to the driver."""
        with self._lock:
            unused = [block for blocks in self._blocks.values() for block in blocks]
            self._blocks.clear()
        for block in unused:
            self._free(block)


def rounded(size_bytes: int) -> int:
    """Rounds up to one of eight sizes per power of two, so that sizes repeat and at most an eighth is wasted.

    >>> [rounded(n) for n in (1, 300, 1000, 1025)]
    [256, 320, 1024, 1152]
    """
    if size_bytes <= _LEAST_BYTES:
        return _LEAST_BYTES
    step = 1 << ((size_bytes - 1).bit_length() - 4)
    return -(-size_bytes // step) * step
