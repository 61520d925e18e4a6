"""Device memory that is used again: a driver's own allocation waits for the device, and may only be freed where its context is current.

A block is given back with the object that holds it, in whatever thread that happens; the pool never calls the driver then.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any

_LEAST_BYTES = 256


class Memory:
    """Device memory, which goes back to its pool with this object. As a number it is its address."""

    __slots__ = ("_block", "_pool", "size_bytes")

    def __init__(self, pool: Pool, block: Any, size_bytes: int) -> None:
        self._pool, self._block, self.size_bytes = pool, block, size_bytes

    def __index__(self) -> int:
        return int(self._block)

    def __del__(self) -> None:
        self._pool.give_back(self._block, self.size_bytes)


class Pool:
    """Blocks by their sizes. allocate: fresh memory from the driver, or None; free: gives a block back to the driver."""

    def __init__(self, allocate: Callable[[int], Any], free: Callable[[Any], object]) -> None:
        self._allocate, self._free = allocate, free
        self._blocks: dict[int, list[Any]] = defaultdict(list)
        self._lock = threading.RLock()  # a collection may give a block back while this thread takes one

    def take(self, size_bytes: int) -> Memory | None:
        """At least that many bytes; None where there are not enough even after all that is not used was freed."""
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
        """Keeps a block for the next who needs one of its size."""
        with self._lock:
            self._blocks[size_bytes].append(block)

    def free_unused(self) -> None:
        """Gives what nobody holds back to the driver."""
        with self._lock:
            unused = [block for blocks in self._blocks.values() for block in blocks]
            self._blocks.clear()
        for block in unused:
            self._free(block)


def rounded(size_bytes: int) -> int:
    """A size of which there are few: one of eight between two powers of two, so that at most an eighth is not used.

    >>> [rounded(n) for n in (1, 300, 1000, 1025)]
    [256, 320, 1024, 1152]
    """
    if size_bytes <= _LEAST_BYTES:
        return _LEAST_BYTES
    step = 1 << ((size_bytes - 1).bit_length() - 4)
    return -(-size_bytes // step) * step
