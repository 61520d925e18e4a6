"""Test cases: a computation, a schedule for it, and data, drawn at random and printed as a script that reproduces them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilelang.computations.combiners import SHIPPED
from tilelang.computations.computation import Computation
from tilelang.profiles.profile import Profile
from tilelang.schedules.schedule import Schedule
from tilelang.semantics import reference
from tilelang.semantics.error_bound import rounding
from tilelang.testing.choice import Source
from tilelang.testing.family import Recipe, draw_recipe
from tilelang.testing.planner import draw_schedule
from tilelang.testing.script import schedule_text
from tilelang.testing.special import special_values

DATA = ("random", "random", "random", "special", "infinite", "denormal", "zero", "integers")
Arrays = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Case:
    """A computation, a schedule, and the contents of the inputs: `data` is one of DATA, drawn with `seed`."""

    recipe: Recipe
    schedule: Schedule
    data: str = "random"
    seed: int = 0

    @property
    def computation(self) -> Computation:
        return self.schedule.computation

    @property
    def exact(self) -> bool:
        """Whether results must be bitwise equal: the data are small integers, on which every node is exact."""
        return self.data == "integers" and reference.exact(self.computation)

    def arrays(self) -> Arrays:
        """The inputs by name."""
        return arrays(self.computation, self.data, self.seed)

    def script(self) -> str:
        """Python code that builds and checks the computation and the schedule, for a bug report."""
        return "\n".join(
            [
                "from tilelang import testing",
                "import tilelang as tl",
                "from tilelang.testing import families",
                f"c = tl.schedule({self.recipe}).computation",
                f"s = {schedule_text(self.schedule)}",
                f"print(testing.check_schedule(s, testing.arrays(c, {self.data!r}, {self.seed}), opencl=True))",
            ]
        )

    def __str__(self) -> str:
        return self.script()


def draw_case(source: Source, names: tuple[str, ...] = (), profile: Profile | None = None) -> Case:
    """A random case. names: the families of computations to choose from, none for all."""
    recipe = draw_recipe(source, names)
    made = draw_schedule(source, recipe.build(), profile)
    data = source.pick(DATA)
    if data == "infinite" and any(c not in SHIPPED for c in _combiners(made.computation)):
        data = "random"  # a user's combiner only has to be valid on finite accumulators: inf * 0 is not 0
    return Case(recipe, made, data, source.integer(0, 999))


def _combiners(computation: Computation) -> set[str]:
    return {d.reduction.combiner.name for d in computation.definitions if d.reduction is not None}


def arrays(computation: Computation, data: str = "random", seed: int = 0) -> Arrays:
    """Inputs by name.

    data: "random"; "integers" (small ones, for which an exact computation gives exact results); "zero"; random with some "special"
    (NaN), "infinite" or "denormal" floats; or random with some "extreme" values: the ends of the type or of the declared range.
    """
    if data == "integers":
        return reference.integer_arrays(computation, seed)
    found = reference.random_arrays(computation, seed)
    generator = np.random.default_rng(seed + 1)
    for t in computation.inputs:
        array = found[t.name]
        if data == "zero" and t.range is None:
            array[...] = 0
        elif data == "extreme" and array.size and (values := special_values(t)[-4:]):
            _scatter(array, values, generator)
        elif t.dtype.is_float and data in ("special", "infinite", "denormal") and array.size:
            tiny = rounding(t.dtype).tiny
            values = {"special": [np.nan], "infinite": [np.inf, -np.inf], "denormal": [tiny, -3 * tiny, 0.0]}[data]
            _scatter(array, values, generator)
    return found


def _scatter(array: Any, values: Sequence[Any], generator: np.random.Generator) -> None:
    """Writes one of the values at about one position in nine."""
    flat = array.reshape(-1)
    for position in generator.choice(flat.size, min(flat.size, 1 + flat.size // 9), replace=False):
        flat[position] = generator.choice(values)
