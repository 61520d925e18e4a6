"""The base of every immutable tree in the package: expressions, steps, kernel statements.

`@node` makes a frozen, slotted dataclass whose children are derived from its fields, so that no tree enumerates its children by hand. A
field named `span` records the node's location in the user's text or program; equality and hashing ignore it. `@interned` values
(expressions, types, buffers) exist once: equality is identity, and results can be cached per value.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
import re
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, Self, TypeVar, dataclass_transform

T = TypeVar("T")


class Node:
    """A frozen value with named fields; some fields hold nodes or tuples of nodes, its children."""

    __slots__ = ()

    def children(self) -> Iterator[Node]:
        """The direct children, in field order."""
        return iter(self._below())

    def _below(self) -> list[Node]:
        shape = _SHAPES[type(self)]
        if shape.single:
            return list(shape.held(self))
        below: list[Node] = []
        if shape.holding:
            for value in shape.held(self):
                if type(value) is tuple:
                    below += [item for item in value if isinstance(item, Node)]
                elif isinstance(value, Node):
                    below.append(value)
        return below

    def map_children(self, function: Callable[[Any], Any]) -> Self:
        """The same node with `function(child)` for every child; the node itself if no child changes."""
        shape = _SHAPES[type(self)]
        if not shape.holding:
            return self
        if shape.single:
            held = shape.held(self)
            made = [function(child) for child in held]
            if not any(map(operator.is_not, made, held)):
                return self
            every = list(shape.values(self))
            for position, child in zip(shape.positions, made):  # noqa: B905
                every[position] = child
            return type(self)(*every)
        values: list[Any] | None = None
        for position, value in zip(shape.positions, shape.held(self)):  # noqa: B905
            if type(value) is tuple:
                new: Any = tuple([function(item) if isinstance(item, Node) else item for item in value])
                if not any(map(operator.is_not, new, value)):
                    continue
            elif isinstance(value, Node):
                new = function(value)
                if new is value:
                    continue
            else:
                continue
            if values is None:
                values = list(shape.values(self))
            values[position] = new
        return self if values is None else type(self)(*values)

    def replace(self, **changes: Any) -> Self:
        """A copy with changed fields."""
        shape = _SHAPES[type(self)]
        values = list(shape.values(self))
        for name, value in changes.items():
            values[shape.names.index(name)] = value
        return type(self)(*values)

    def walk(self) -> Iterator[Any]:
        """This node and all its descendants, parents first; shared ones only once."""
        seen: set[int] = set()
        stack: list[Node] = [self]
        while stack:
            current = stack.pop()
            if id(current) not in seen:
                seen.add(id(current))
                yield current
                stack += reversed(current._below())

    def upwards(self, leaves: tuple[type, ...] = ()) -> Iterator[Any]:
        """This node and all its descendants, children first; shared ones only once. leaves: classes whose children are skipped.

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


PLAIN = frozenset(("str", "int", "float", "bool", "None", "tuple", "Span", "DType"))  # words in annotations that denote no node


class _Shape:
    """What tree operations need to know about a class: its fields, those that may hold nodes, and a getter of their values.

    single: each of these holds one node, neither a tuple nor nothing.
    """

    __slots__ = ("names", "values", "holding", "held", "positions", "single")

    def __init__(self, cls: type) -> None:
        fields = [f for f in dataclasses.fields(cls) if f.init]
        self.names = tuple(f.name for f in fields)
        self.values = _getter(self.names)
        self.holding = tuple(f.name for f in fields if not PLAIN.issuperset(re.findall(r"\w+", str(f.type))))
        self.held = _getter(self.holding)
        self.positions = tuple(map(self.names.index, self.holding))
        types_ = [getattr(sys.modules[cls.__module__], str(f.type), None) for f in fields if f.name in self.holding]
        self.single = bool(types_) and all(isinstance(t, type) and issubclass(t, Node) for t in types_)


def _getter(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """A function that returns the tuple of these attributes of an object."""
    match names:
        case ():
            return lambda _: ()
        case (name,):
            return lambda item: (getattr(item, name),)
        case _:
            return operator.attrgetter(*names)


class _Shapes(dict[type, _Shape]):
    """The shape of each class, computed on first use."""

    def __missing__(self, cls: type) -> _Shape:
        self[cls] = _Shape(cls)
        return self[cls]


_SHAPES = _Shapes()


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def node(cls: type[T]) -> type[T]:
    """A frozen, slotted dataclass; a `span` field is ignored by equality, hashing and printing."""
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
def record(cls: type[T]) -> type[T]:
    """A frozen dataclass that is compared by identity and has the fast constructor of a `@node`: for values that are made by the
    thousand and are not trees. It has a `__dict__`, for `cached_property`, if a base class has one."""
    made, fields, setters = _slotted(cls)
    _add_methods(made, __init__=_named(_starting(len(fields)), made, fields, setters, {}))
    return made


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,), eq_default=False)
def interned(cls: type[T]) -> type[T]:
    """Like `@node`, but equal fields give the same object: equality and hash are identity, and copies are the object itself. There is
    no metaclass, because it would slow every `isinstance` of the class, including `match`."""
    made, fields, setters = _slotted(cls)
    floats = any({"float", "Any"} & set(re.findall(r"\w+", str(f.type))) for f in fields)
    table: dict[tuple[Any, ...], Any] = {}
    uses = {"known": table.get, "keep": table.setdefault, "create": object.__new__, "bits": _bits}
    new = _named(_finding(len(fields), floats), made, fields, setters, uses)
    _add_methods(made, __new__=new)
    return made


Fields = tuple[dataclasses.Field[Any], ...]


def _slotted(cls: type[T]) -> tuple[type[T], Fields, list[Callable[[Any, Any], None]]]:
    """The class with slots and without setters, its fields, and the functions that fill them.

    The standard library would compile five methods per class, which takes half a millisecond; a hundred classes are imported.
    """
    made = dataclasses.dataclass(slots=True, init=False, repr=False, eq=False)(cls)
    fields = dataclasses.fields(made)  # type: ignore[arg-type]
    assert all(f.init and f.default_factory is dataclasses.MISSING for f in fields), cls
    _add_methods(made, __setattr__=_refuse, __delattr__=_refuse, __repr__=_text, __reduce__=_remade)
    return made, fields, [getattr(made, f.name).__set__ for f in fields]


def _add_methods(cls: type, **methods: Callable[..., Any]) -> None:
    """Adds methods that the class does not define itself."""
    for name, method in methods.items():
        if name not in cls.__dict__:
            setattr(cls, name, method)


# The compiler creates these nodes so often that each class has a constructor with its fields as parameters. Its code is compiled once
# per number of fields and then copied with the class's names and defaults.


@functools.cache
def _starting(count: int) -> types.CodeType:
    """Code that sets the fields of a node with `count` fields."""
    given = [f"value{n}" for n in range(count)]
    fill = [f"set{n}(self, {value})" for n, value in enumerate(given)]
    return _compiled(f"def start({', '.join(['self', *given])}):\n    {'; '.join(fill) or 'pass'}\n")


@functools.cache
def _finding(count: int, floats: bool) -> types.CodeType:
    """Code that finds or makes the object with `count` fields. floats: some of them may be floats."""
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
    """A function from such code, with a class's fields as its parameters. uses: other names that the code refers to."""
    first, *rest = code.co_varnames
    names = (first, *(f.name for f in fields), *rest[len(fields) :])
    defaults = tuple(f.default for f in fields if f.default is not dataclasses.MISSING)
    assert all(f.default is not dataclasses.MISSING for f in fields[len(fields) - len(defaults) :]), cls
    uses |= {f"set{n}": setter for n, setter in enumerate(setters)}
    return types.FunctionType(code.replace(co_varnames=names, co_qualname=cls.__qualname__), uses, cls.__name__, defaults)


def _refuse(self: Any, name: str, value: Any = None) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"`{name}` cannot be set: a {type(self).__name__} does not change once it is made")


class Unchanging:
    """Objects whose public attributes are read-only. Constructors use `fill`; private attributes may be caches."""

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            _refuse(self, name)
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        _refuse(self, name)

    def __setstate__(self, state: Any) -> None:
        """For pickle and copy, which pass the attributes in `__dict__`, or a pair: these, and the attributes in slots."""
        for values in state if isinstance(state, tuple) else (state,):
            fill(self, **(values or {}))


def fill(made: Unchanging, **values: Any) -> None:
    """Sets attributes of an object under construction.

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
    """For pickle and copy: calls the class; an interned class returns the existing object."""
    return type(self), _SHAPES[type(self)].values(self)


def _bits(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """A key that distinguishes floats by their bits."""
    return tuple([_key(value) if type(value) is float else value for value in values])


def _key(value: float) -> tuple[str, str]:
    """The bits of a float: 0.0 and -0.0 differ, all NaNs are equal."""
    return ("float", "nan" if math.isnan(value) else value.hex())
