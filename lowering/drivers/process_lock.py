"""A lock for what a process has once, and the connections to devices, which it has."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Hashable, Iterator
from typing import TypeVar

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


def once_for_each(make: Callable[[Key], Made]) -> Callable[[Key], Made]:
    """A function that makes one thing for each key, also when threads ask for it at the same time."""
    made: dict[Key, Made] = {}
    lock = ProcessLock()

    @functools.wraps(make)
    def found(key: Key) -> Made:
        if key not in made:
            with lock.held():
                if key not in made:
                    one = make(key)
                    made.setdefault(key, one)  # a signal handler may have been here meanwhile
        return made[key]

    return found
