"""A lock for resources that a process has once, and a table that makes one object per key, such as the connections to devices."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Made = TypeVar("Made")


class ProcessLock:
    """A lock that its owner may take again, as in a signal handler, and that is free in a forked child."""

    def __init__(self) -> None:
        self._lock, self._process = threading.RLock(), os.getpid()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        if self._process != os.getpid():
            self._lock, self._process = threading.RLock(), os.getpid()
        with self._lock:
            yield


class OnceForEach(Generic[Key, Made]):
    """Makes one object per key, even if several threads ask for it at the same time."""

    def __init__(self, make: Callable[[Key], Made]) -> None:
        self._make, self._made, self._lock = make, dict[Key, Made](), ProcessLock()
        functools.update_wrapper(self, make)

    def __call__(self, key: Key) -> Made:
        if key not in self._made:
            with self._lock.held():
                if key not in self._made:
                    made = self._make(key)
                    self._made.setdefault(key, made)  # a signal handler may have made it in the meantime
        return self._made[key]

    def cache_clear(self) -> None:
        """Forgets the objects made so far."""
        self._made.clear()
