"""Attributes that are computed when they are first read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):
    """A property that keeps its value, as functools.cached_property does from Python 3.12 on: without a lock.

    That of Python 3.11 has one lock for all instances of a class. A child that is forked while another thread holds it hangs, and
    threads that compile different kernels wait for each other. Here two threads that read a new value at once both compute it, and both
    get the one that was computed first.
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        self.function, self.__doc__ = function, function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T:
        if instance is None:
            return self
        value: T = instance.__dict__.setdefault(self.name, self.function(instance))
        return value
