"""Lazily computed attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class Caching:
    """A base for classes with slots that have cached properties: gives them the `__dict__` in which these are kept."""


class cached_property(Generic[T]):
    """A cached property without a lock, like functools.cached_property since Python 3.12.

    Python 3.11's has one lock per class for all instances. A child forked while another thread holds it hangs, and threads that compile
    different kernels wait for each other. Here two threads that read a new value at the same time both compute it, and both get the one
    computed first.
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
