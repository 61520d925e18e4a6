"""Hypothesis strategies: the generators of this package, and property tests that skip refusals.

Hypothesis is imported when a strategy is made, not with this module.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from tilelang.computations.computation import Computation, Tensor, as_computation
from tilelang.errors import Refusal, TileLangError, brief, each
from tilelang.instructions.instruction import Instruction, use
from tilelang.profiles.profile import Profile
from tilelang.runtime.kernel import Kernel
from tilelang.runtime.targets import Target
from tilelang.runtime.targets import target as best_target
from tilelang.schedules.schedule import Schedule
from tilelang.schedules.steps import Step
from tilelang.testing import accepted, instruction_schedules
from tilelang.testing.case import Case, draw_case
from tilelang.testing.choice import Drawn, Source
from tilelang.testing.devices import DeviceRecipe, draw_device
from tilelang.testing.extents import draw_sizes
from tilelang.testing.family import Recipe, draw_recipe
from tilelang.testing.roles import draw_roles, roles_profile
from tilelang.testing.special import draw_inputs

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

R = TypeVar("R")
Where = Target | Profile | str | None
SHRINK_SECONDS = 60.0
FAULTS = ("simulated-wrong",)  # refusals that report a fault of the kernel, not of the schedule


# ---------------------------------------------------------------- for a computation of one's own


def schedules(
    computation: Computation | Tensor, target: Where = None, most: int = accepted.MOST_STEPS
) -> SearchStrategy[Schedule]:
    """Schedules for a computation, all of which `tl.compile` accepts for the target.

    Steps are drawn from all verbs, one by one; a step that is refused is left out. A failing schedule shrinks to few steps. target: a
    Target, a dialect's name or a profile (default: the target that `tl.compile` uses). most: the maximum number of steps.
    """
    made, chosen = as_computation(computation), where(target)
    kept: dict[tuple[Step, ...], Schedule] = {}  # by the drawn steps, because many draws repeat

    def draw(draw: Any) -> Schedule:
        from hypothesis import strategies  # late: an optional library

        plan = Schedule(made)
        for _ in range(draw(strategies.integers(0, most))):
            plan = draw(_one(functools.partial(accepted.with_step, made=plan, target=chosen)))
        if plan.steps not in kept:
            kept[plan.steps] = accepted.keep_accepted(made, plan.steps, chosen)
        return kept[plan.steps]

    return _strategy(draw)


def sizes(what: Computation | Tensor | Schedule, target: Where = None) -> SearchStrategy[dict[str, int]]:
    """Extents by axis for which the computation exists and, for a schedule, the target accepts its steps.

    Extents are 0, 1, small, odd, prime, or the tile sizes of the schedule, plus or minus one. Pass the result to `testing.resized`.
    """
    chosen = where(target) if isinstance(what, Schedule) else None
    made = what if isinstance(what, Schedule) else as_computation(what)
    return _one(lambda source: draw_sizes(source, made, chosen))


def inputs(what: Computation | Tensor | Schedule | Kernel, special: bool = True) -> SearchStrategy[dict[str, Any]]:
    """Arrays for the inputs of a computation or a kernel, by name: zeros, small integers or random numbers.

    special: a few elements are NaN, an infinity, a subnormal number, a zero of either sign, or an end of the range.
    """
    made = what.computation if isinstance(what, (Schedule, Kernel)) else as_computation(what)
    return _one(lambda source: draw_inputs(source, made, special))


def instructions(instruction: Instruction | str, target: Where = None) -> SearchStrategy[Schedule]:
    """Schedules that use an instruction, for computations derived from it, at sizes of one or more pieces.

    `testing.check_kernel` runs such a schedule and compares its results with the reference, which evaluates the instruction's meaning
    (`means`) by plain loops. Raises Refusal if the target accepts no schedule with the instruction.
    """
    made, chosen = instruction if isinstance(instruction, Instruction) else use(instruction), where(target)
    return _one(instruction_schedules.Schedules(made, chosen).draw)


def where(target: Where) -> Target:
    """The target for an argument: a target itself, or the target of a dialect or profile; by default the one that `tl.compile` uses."""
    if isinstance(target, Target):
        return target
    if isinstance(target, Profile):
        return best_target(profile=target)
    return best_target(target)


# ---------------------------------------------------------------- refusals in property tests


@contextlib.contextmanager
def refusals_set_aside() -> Iterator[None]:
    """Skips the case of a property test in which a `tl.Refusal` is raised, as `hypothesis.assume` does.

    The code of the refusal is counted (`pytest --hypothesis-show-statistics` prints it). Other errors are not caught, nor is the
    refusal `simulated-wrong`, which reports a wrong kernel. A test in which all cases are refused fails.
    """
    try:
        yield
    except TileLangError as error:
        found = each(error)
        if not all(isinstance(e, Refusal) and e.code not in FAULTS for e in found):
            raise
        from hypothesis import event, reject  # late: an optional library

        for code in sorted({e.code for e in found}):
            event(f"refused: {code}")
        reject()


def kernel_test(test: Any = None, *, shrink_seconds: float = SHRINK_SECONDS) -> Any:
    """Decorates a Hypothesis test of kernels, above `@given`: refusals are skipped, and shrinking ends after a minute.

    Refusals are handled as by `refusals_set_aside`. shrink_seconds: how long Hypothesis shrinks after the first failure before it
    reports the smallest failing case so far. A case that passed is not run again if it is drawn a second time. Cases are compared by
    their arguments. If an argument cannot be compared, because it is not a schedule, array, number, text, or a container of these (for
    example `st.data()`), neither the time limit nor this memory applies. Raises TypeError if `test` is not a Hypothesis test.

        @testing.kernel_test
        @given(testing.schedules(C))
        def test_every_schedule_is_right(schedule): ...
    """
    if test is None:
        return functools.partial(kernel_test, shrink_seconds=shrink_seconds)
    if not hasattr(test, "hypothesis"):
        raise TypeError(f"kernel_test decorates what @given gives, not {brief(test)}: put it above @given")
    test.hypothesis = _Handle(test.hypothesis, shrink_seconds)
    return test


class _Handle:
    """The object that Hypothesis asks for the function inside a test, once for each run: the same function without its memory."""

    def __init__(self, handle: Any, shrink_seconds: float) -> None:
        self._handle, self._watched = handle, _watched(handle.inner_test, shrink_seconds)

    @property
    def inner_test(self) -> Any:
        self._watched.forget()
        return self._watched

    @inner_test.setter
    def inner_test(self, test: Any) -> None:
        self._watched = test

    def __getattr__(self, name: str) -> Any:
        return getattr(self._handle, name)


def _watched(test: Callable[..., Any], shrink_seconds: float) -> Any:
    """The function inside a test, which skips refusals and runs no more cases after the time limit for shrinking."""
    right, wrong = set[Any](), set[Any]()
    first: list[float] = []  # the time of the first failure

    @functools.wraps(test)
    def watched(*arguments: Any, **named: Any) -> Any:
        from hypothesis import reject  # late: an optional library

        case = key((arguments, named))
        if case in right:
            return None
        if first and case is not None and case not in wrong and time.monotonic() - first[0] > shrink_seconds:
            reject()
        try:
            with refusals_set_aside():
                test(*arguments, **named)
        except Exception as error:
            if type(error).__module__.partition(".")[0] != "hypothesis":  # its control-flow exceptions are not failures
                first[:] = first or [time.monotonic()]
                wrong.add(case)
            raise
        if case is not None:
            right.add(case)
        return None

    def forget() -> None:
        for known in (right, wrong, first):
            known.clear()

    watched.forget = forget  # type: ignore[attr-defined]
    return watched


def key(value: Any) -> Any:
    """A key that distinguishes cases; None if there is none."""
    match value:
        case None | bool() | int() | float() | str() | bytes():
            return type(value).__name__, repr(value)
        case Schedule() | Computation():
            return type(value).__name__, value.hash
        case dict():
            value = tuple(value.items())
    if isinstance(value, (list, tuple)):
        parts = tuple(map(key, value))
        return None if None in parts else parts
    if hasattr(value, "tobytes") and hasattr(value, "shape"):
        return str(value.dtype), value.shape, value.tobytes()
    return None


# ---------------------------------------------------------------- for the compiler itself


def recipes(*families: str) -> SearchStrategy[Recipe]:
    """Computations as recipes: `recipe.build()`. families: names in `testing.families`, none for all."""
    return _one(lambda source: draw_recipe(source, families))


def device_recipes(*names: str) -> SearchStrategy[DeviceRecipe]:
    """Devices as recipes: `recipe.build()` is a profile. names: of the shipped profiles to start from, none for all."""
    return _one(lambda source: draw_device(source, names))


def cases(*families: str, profile: Profile | None = None) -> SearchStrategy[Case]:
    """A computation, a schedule and data. Some of the schedules are refused during lowering."""
    return _one(lambda source: draw_case(source, families, profile))


def role_cases(*families: str) -> SearchStrategy[Case]:
    """Cases with loads on a role, if the schedule allows one, for the profile `roles_profile()`."""

    def draw(source: Source) -> Case:
        case = draw_case(source, families, roles_profile())
        return dataclasses.replace(case, schedule=draw_roles(source, case.schedule))

    return _one(draw)


def _one(make: Callable[[Source], R]) -> SearchStrategy[R]:
    """The result of a generator. If it raises a Refusal, for example for a contradictory step, the case is skipped."""

    def draw(draw: Any) -> R:
        from hypothesis import reject  # late: an optional library

        try:
            return make(Drawn(draw))
        except Refusal:
            reject()

    return _strategy(draw)


def _strategy(draw: Callable[[Any], R]) -> SearchStrategy[R]:
    from hypothesis import strategies  # late: an optional library

    return strategies.composite(draw)()
