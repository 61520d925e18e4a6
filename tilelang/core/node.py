"""The base of every immutable tree in the package: expressions, steps, kernel statements.

`@node` makes a frozen, slotted dataclass whose children are found from its fields, so that no tree walks its children by hand.
A field named `span` says where in the user's text or program a node comes from; equality and hashing never see it.
`@interned` values (expressions, and what they are keyed by: types, buffers) exist once: equality is identity, and results can be
cached per value.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
import re
import types
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, Self, TypeVar, dataclass_transform

T = TypeVar("T")


class Node:
    """A frozen value with named fields; some fields hold nodes or tuples of nodes, its children."""

    __slots__ = ()

    def children(self) -> Iterator[Node]:
        """The nodes directly below this one, in field order."""
        return iter(self._below())

    def _below(self) -> list[Node]:
        below: list[Node] = []
        shape = _SHAPES[type(self)]
        if shape.holding:
            for value in shape.held(self):
                if type(value) is tuple:
                    below += [item for item in value if isinstance(item, Node)]
                elif isinstance(value, Node):
                    below.append(value)
        return below

    def map_children(self, function: Callable[[Any], Any]) -> Self:
        """The same node over `function(child)` for every child; the node itself where no child changes."""
        shape = _SHAPES[type(self)]
        if not shape.holding:
            return self
        values: list[Any] = list(shape.values(self))
        changed = False
        for position in shape.positions:
            value = values[position]
            if type(value) is tuple:
                items = tuple([function(item) if isinstance(item, Node) else item for item in value])
                if any(map(operator.is_not, items, value)):
                    values[position], changed = items, True
            elif isinstance(value, Node):
                new = function(value)
                if new is not value:
                    values[position], changed = new, True
        return type(self)(*values) if changed else self

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        shape = _SHAPES[type(self)]
        values = list(shape.values(self))
        for name, value in changes.items():
            values[shape.names.index(name)] = value
        return type(self)(*values)

    def walk(self) -> Iterator[Any]:
        """This node and all below it, parents first; what several of them share, once."""
        seen: set[int] = set()
        stack: list[Node] = [self]
        while stack:
            current = stack.pop()
            if id(current) not in seen:
                seen.add(id(current))
                yield current
                stack += reversed(current._below())

    def upwards(self, leaves: tuple[type, ...] = ()) -> Iterator[Any]:
        """This node and all below it, children first; what several of them share, once. leaves: classes whose children are left out.

        It does not recurse, so nodes may be nested deeper than Python's stack.
        """
        seen: set[int] = set()
        stack: list[tuple[Node, bool]] = [(self, False)]
        while stack:
            current, ready = stack.pop()
            if ready:
                yield current
            elif id(current) not in seen:
                seen.add(id(current))
                stack.append((current, True))
                if not isinstance(current, leaves):
                    stack += [(child, False) for child in reversed(current._below())]


PLAIN = frozenset(("str", "int", "float", "bool", "None", "tuple", "Span", "DType"))  # words of annotations that hold no node


class _Shape:
    """What the tree operations need to know of a class: its fields, and which of them may hold nodes; their values at once."""

    __slots__ = ("names", "values", "holding", "held", "positions")

    def __init__(self, cls: type) -> None:
        fields = [f for f in dataclasses.fields(cls) if f.init]
        self.names = tuple(f.name for f in fields)
        self.values = _getter(self.names)
        self.holding = tuple(f.name for f in fields if not PLAIN.issuperset(re.findall(r"\w+", str(f.type))))
        self.held = _getter(self.holding)
        self.positions = tuple(map(self.names.index, self.holding))


def _getter(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """A function from an object to the tuple of these attributes."""
    match names:
        case ():
            return lambda _: ()
        case (name,):
            return lambda item: (getattr(item, name),)
        case _:
            return operator.attrgetter(*names)


class _Shapes(dict[type, _Shape]):
    """The shape of every class that was asked for."""

    def __missing__(self, cls: type) -> _Shape:
        self[cls] = _Shape(cls)
        return self[cls]


_SHAPES = _Shapes()


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def node(cls: type[T]) -> type[T]:
    """A frozen, slotted dataclass; a `span` field takes no part in equality, hashing or printing."""
    if "span" in cls.__annotations__ and not isinstance(cls.__dict__.get("span"), dataclasses.Field):
        default = cls.__dict__.get("span", dataclasses.MISSING)
        setattr(cls, "span", dataclasses.field(default=default, compare=False, repr=False))
    made, fields, setters = _slotted(cls)
    compared = _getter(tuple(f.name for f in fields if f.compare))
    start = _named(_starting(len(fields)), made, fields, setters, {})

    def equal(self: Any, other: Any) -> Any:
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    _add_methods(made, __init__=start, __eq__=equal, __hash__=lambda self: hash(compared(self)))
    return made


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,), eq_default=False)
def interned(cls: type[T]) -> type[T]:
    """Like `@node`, but calling the class twice with equal fields gives one object: equality and hash are identity, and copies are
    the object itself. Without a metaclass, because that would slow every `isinstance` of the class, `match` included."""
    made, fields, setters = _slotted(cls)
    floats = any({"float", "Any"} & set(re.findall(r"\w+", str(f.type))) for f in fields)
    table: dict[tuple[Any, ...], Any] = {}
    uses = {"known": table.get, "keep": table.setdefault, "create": object.__new__, "bits": _bits}
    new = _named(_finding(len(fields), floats), made, fields, setters, uses)
    _add_methods(made, __new__=new)
    return made


Fields = tuple[dataclasses.Field[Any], ...]


def _slotted(cls: type[T]) -> tuple[type[T], Fields, list[Callable[[Any, Any], None]]]:
    """The class with slots and nothing to change them, its fields and the functions that fill them.

    The standard library would compile five methods for each class, half a millisecond; a hundred classes are imported.
    """
    made = dataclasses.dataclass(slots=True, init=False, repr=False, eq=False)(cls)
    fields = dataclasses.fields(made)  # type: ignore[arg-type]
    assert all(f.init and f.default_factory is dataclasses.MISSING for f in fields), cls
    _add_methods(made, __setattr__=_refuse, __delattr__=_refuse, __repr__=_text, __reduce__=_remade)
    return made, fields, [getattr(made, f.name).__set__ for f in fields]


def _add_methods(cls: type, **methods: Callable[..., Any]) -> None:
    """Gives a class the methods that its own body does not define."""
    for name, method in methods.items():
        if name not in cls.__dict__:
            setattr(cls, name, method)


# A compiler calls these classes so often that each has a function with its fields as arguments. Their code is compiled once for each
# number of fields, and each class has it with the names and defaults of its own.


@functools.cache
def _starting(count: int) -> types.CodeType:
    """Fills the fields of a node, so many."""
    given = [f"value{n}" for n in range(count)]
    fill = [f"set{n}(self, {value})" for n, value in enumerate(given)]
    return _compiled(f"def start({', '.join(['self', *given])}):\n    {'; '.join(fill) or 'pass'}\n")


@functools.cache
def _finding(count: int, floats: bool) -> types.CodeType:
    """Finds the object of so many fields, or makes it. floats: some of them may be floats."""
    given = [f"value{n}" for n in range(count)]
    fill = [f"set{n}(found, {value})" for n, value in enumerate(given)]
    return _compiled(f"""\
def new({", ".join(["cls", *given])}):
    key = ({"".join(f"{value}, " for value in given)})
    {"if float in map(type, key): key = bits(key)" if floats else ""}
    found = known(key)
    if found is None:
        found = create(cls)
        {"; ".join(fill)}
        found = keep(key, found)
    return found
""")


def _compiled(text: str) -> types.CodeType:
    scope: dict[str, Any] = {}
    exec(text, scope)
    (function,) = (value for value in scope.values() if isinstance(value, types.FunctionType))
    return function.__code__


def _named(
    code: types.CodeType, cls: type, fields: Fields, setters: list[Callable[[Any, Any], None]], uses: dict[str, Any]
) -> Callable[..., Any]:
    """A function of such code that has a class's fields as its arguments. uses: what the code names besides."""
    first, *rest = code.co_varnames
    names = (first, *(f.name for f in fields), *rest[len(fields) :])
    defaults = tuple(f.default for f in fields if f.default is not dataclasses.MISSING)
    assert all(f.default is not dataclasses.MISSING for f in fields[len(fields) - len(defaults) :]), cls
    uses |= {f"set{n}": setter for n, setter in enumerate(setters)}
    return types.FunctionType(code.replace(co_varnames=names, co_qualname=cls.__qualname__), uses, cls.__name__, defaults)


def _refuse(self: Any, name: str, value: Any = None) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"`{name}` cannot be set: a {type(self).__name__} does not change once it is made")


class Unchanging:
    """Objects whose public attributes are for reading. What makes them uses `fill`; private ones may be caches."""

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            _refuse(self, name)
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        _refuse(self, name)

    def __setstate__(self, state: Any) -> None:
        """For pickle and copy, which hand over attributes of `__dict__` and, in a pair with them, those of slots."""
        for values in state if isinstance(state, tuple) else (state,):
            fill(self, **(values or {}))


def fill(made: Unchanging, **values: Any) -> None:
    """Sets attributes of an object that is being made.

    >>> class Point(Unchanging):
    ...     def __init__(self, x): fill(self, x=x)
    >>> Point(3).x
    3
    """
    for name, value in values.items():
        object.__setattr__(made, name, value)


def _text(self: Any) -> str:
    fields = dataclasses.fields(self)
    return f"{type(self).__qualname__}({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in fields if f.repr)})"


def _remade(self: Any) -> tuple[Any, ...]:
    """For pickle and copy: call the class; an interned one finds the object of this value."""
    return type(self), _SHAPES[type(self)].values(self)


def _bits(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """A key in which floats are told apart by their bits."""
    return tuple([_key(value) if type(value) is float else value for value in values])


def _key(value: float) -> tuple[str, str]:
    """Floats by their bits: 0.0 and -0.0 differ, every NaN is one NaN."""
    return ("float", "nan" if math.isnan(value) else value.hex())
