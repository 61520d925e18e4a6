"""The base of every immutable tree in the package: expressions, steps, kernel statements.

`@node` makes a frozen, slotted dataclass whose children are found from its fields, so that no tree walks its children by hand.
A field named `span` says where in the user's text or program a node comes from; equality and hashing never see it.
`@interned` nodes (expressions) exist once per value: equality is identity, and results can be cached per node.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any, Self, TypeVar, dataclass_transform

T = TypeVar("T")


class Node:
    """A frozen value with named fields; some fields hold nodes or tuples of nodes, its children."""

    __slots__ = ()

    def children(self) -> Iterator[Node]:
        """The nodes directly below this one, in field order."""
        for name in field_names(type(self)):
            value = getattr(self, name)
            if isinstance(value, Node):
                yield value
            elif type(value) is tuple:
                for item in value:
                    if isinstance(item, Node):
                        yield item

    def map_children(self, function: Callable[[Any], Any]) -> Self:
        """The same node over `function(child)` for every child; the node itself where no child changes."""
        changed = {}
        for name in field_names(type(self)):
            value = getattr(self, name)
            new: Any = value
            if isinstance(value, Node):
                new = function(value)
            elif type(value) is tuple and any(isinstance(item, Node) for item in value):
                new = tuple(function(item) if isinstance(item, Node) else item for item in value)
                if all(a is b for a, b in zip(new, value, strict=True)):
                    new = value
            if new is not value:
                changed[name] = new
        return self.replace(**changed) if changed else self

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        return type(self)(**{name: changes.get(name, getattr(self, name)) for name in field_names(type(self))})

    def walk(self) -> Iterator[Node]:
        """This node and all below it, parents first."""
        stack: list[Node] = [self]
        while stack:
            current = stack.pop()
            yield current
            stack.extend(reversed(list(current.children())))


_FIELD_NAMES: dict[type, tuple[str, ...]] = {}


def field_names(cls: type) -> tuple[str, ...]:
    names = _FIELD_NAMES.get(cls)
    if names is None:
        names = _FIELD_NAMES[cls] = tuple(f.name for f in dataclasses.fields(cls) if f.init)
    return names


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def node(cls: type[T]) -> type[T]:
    """A frozen, slotted dataclass; a `span` field takes no part in equality, hashing or printing."""
    if "span" in cls.__annotations__ and not isinstance(cls.__dict__.get("span"), dataclasses.Field):
        default = cls.__dict__.get("span", dataclasses.MISSING)
        setattr(cls, "span", dataclasses.field(default=default, compare=False, repr=False))
    return dataclasses.dataclass(frozen=True, slots=True)(cls)


class InternedMeta(type):
    """Calling a class twice with equal fields gives the same object."""

    _table: dict[tuple[Any, ...], Any] = {}

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) != len(field_names(cls)):
            made = super().__call__(*args, **kwargs)
            args = tuple(getattr(made, name) for name in field_names(cls))
        else:
            made = None
        key = (cls, *[_key(a) if type(a) is float else a for a in args])
        found = InternedMeta._table.get(key)
        if found is None:
            found = InternedMeta._table[key] = made if made is not None else super().__call__(*args)
        return found


def _key(value: float) -> tuple[str, str]:
    """Floats by their bits: 0.0 and -0.0 differ, every NaN is one NaN."""
    return ("float", "nan" if math.isnan(value) else value.hex())


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,), eq_default=False)
def interned(cls: type[T]) -> type[T]:
    """Like `@node`, for classes whose metaclass is `InternedMeta`: equality and hash are identity."""
    return dataclasses.dataclass(frozen=True, slots=True, eq=False)(cls)
