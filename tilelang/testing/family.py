"""Building blocks of the families: recipes, chains of functions, reductions by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from tilelang.computations import functions as F
from tilelang.computations.computation import Computation, Tensor, as_computation, axes
from tilelang.computations.define import define
from tilelang.core import dtype as dt
from tilelang.core.expr import Axis, Expr
from tilelang.testing.choice import Source

FLOATS = ("float32", "float64", "float16", "bfloat16", "float8_e4m3", "float8_e5m2")
TYPES = (*FLOATS, "float32", "int32", "int8", "int64", "uint8", "int16", "uint32")
EXTENTS = (4, 8, 16, 5, 7, 13, 3, 2, 1, 11, 17, 0)


@dataclasses.dataclass(frozen=True)
class Recipe:
    """A family and its arguments: a computation that prints as the line that builds it."""

    family: str
    arguments: tuple[tuple[str, Any], ...]

    def build(self) -> Computation:
        """Builds a new computation."""
        return as_computation(FAMILIES[self.family].make(**dict(self.arguments)))

    def __str__(self) -> str:
        return f"families.{self.family}({', '.join(f'{name}={value!r}' for name, value in self.arguments)})"


@dataclasses.dataclass(frozen=True)
class Family:
    """How a kind of computation is built from arguments, and how the arguments are drawn."""

    make: Callable[..., Any]
    draw: Callable[[Source], dict[str, Any]]


FAMILIES: dict[str, Family] = {}
# How often each family is drawn, relative to 1 for the others.
WEIGHTS = {"product": 3, "reduction": 10, "convolution": 2, "softmax": 2, "staged": 2, "divided": 3, "gather": 2}


def family(draw: Callable[[Source], dict[str, Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a family by its name. `draw` draws its arguments."""

    def register(make: Callable[..., Any]) -> Callable[..., Any]:
        FAMILIES[make.__name__] = Family(make, draw)
        return make

    return register


def draw_recipe(source: Source, names: tuple[str, ...] = ()) -> Recipe:
    """A recipe of one of the named families (none named: of any)."""
    name = source.pick(names or tuple(n for n in FAMILIES for _ in range(WEIGHTS.get(n, 1))))
    return Recipe(name, tuple(FAMILIES[name].draw(source).items()))


def extent(source: Source, most: int = 24) -> int:
    """The extent of an axis."""
    return source.pick([n for n in EXTENTS if n <= most])


def type_name(source: Source, names: tuple[str, ...] = TYPES) -> str:
    """The name of an element type."""
    return source.pick(names)


# ---------------------------------------------------------------- functions, one after another

_FLOAT_STEPS: dict[str, Callable[[Expr], Expr]] = {
    "relu": F.relu, "exp": lambda x: F.exp(F.minimum(x, 4)), "tanh": F.tanh, "square": lambda x: x * x, "sigmoid": F.sigmoid,
    "gelu": F.gelu, "erf": F.erf, "halve": lambda x: x * 0.5, "shift": lambda x: x + 1, "root": lambda x: F.sqrt(F.abs(x)),
    "floor": F.floor, "negate": lambda x: -x, "choose": lambda x: F.where(x < 0, x * 0.25, x), "log": lambda x: F.log(F.abs(x) + 1),
}  # fmt: skip
_ANY_STEPS: dict[str, Callable[[Expr], Expr]] = {
    "double": lambda x: x + x, "clip": lambda x: F.minimum(F.maximum(x, 0), 3), "offset": lambda x: x + 3,
    "pick": lambda x: F.where(x < 2, x, x * 2),
}  # fmt: skip


def chain(x: Expr, steps: tuple[str, ...]) -> Expr:
    """Several pointwise functions, one after the other; for integers without the floating-point ones."""
    for name in steps:
        if name in _ANY_STEPS:
            x = _ANY_STEPS[name](x)
        elif x.dtype.is_float:
            x = _FLOAT_STEPS[name](x)
    return x


def draw_chain(source: Source, most: int = 3) -> tuple[str, ...]:
    names = (*_ANY_STEPS, *_FLOAT_STEPS)
    return tuple(source.pick(names) for _ in range(source.integer(0, most)))


def small(value: Expr, to: str) -> Expr:
    """A value that fits an integer type, because conversions of others depend on the device."""
    target = dt.dtype(to)
    if target.is_integer and value.dtype.is_float:
        low = 0 if target.kind == "uint" else -50
        value = F.where(F.isnan(value), 0, F.minimum(F.maximum(value, low), 50))
    return value


# ---------------------------------------------------------------- reductions

REDUCTIONS = ("sum", "max", "min", "prod", "argmax", "argmin", "any", "all", "welford", "user")


def reduce_by(kind: str, value: Expr, over: tuple[Axis, ...], where: Expr | None) -> Any:
    """A reduction of the given kind; a tuple of expressions for `welford`."""
    match kind:
        case "any" | "all":
            return getattr(F, kind)(0 < value, over=over, where=where)
        case "welford":
            one = F.cast(1, value.dtype)
            return F.reduce(welford, (0, 0, 0), (one, value, value * 0), over=over, where=where, name="welford")
        case "user":
            return F.reduce(_larger_magnitude, 0, F.abs(value), over=over, where=where, name="larger_magnitude")
        case _:
            return getattr(F, kind)(value, over=over, where=where)


def welford(left: tuple[Expr, ...], right: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Combines (count, mean, sum of squared differences) of two sets."""
    (n, mean, squares), (m, other, more) = left, right
    total = n + m
    share = m / F.where(F.equal(total, 0), 1, total)
    gap = other - mean
    return total, mean + gap * share, squares + more + gap * gap * n * share


def _larger_magnitude(a: Expr, b: Expr) -> Expr:
    return F.maximum(a, b)


# ---------------------------------------------------------------- definitions


def named_axes(names: str, extents: tuple[int, ...]) -> tuple[Axis, ...]:
    found = axes(**dict(zip(names, extents, strict=False))) if extents else ()
    return found if isinstance(found, tuple) else (found,)


def defined(name: str, value: Expr, *dims: Axis) -> Tensor:
    made: Tensor = define(name, value, *dims)
    return made
