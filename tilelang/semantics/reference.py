"""The reference: the value of a computation in NumPy, the maximum error of a correct result, and the comparison of results.

The definitions are evaluated as written (evaluator.py), floats in float64 (float64 itself in longdouble, if NumPy has a wider one),
integers exactly in their own type, and each tensor is rounded to its type by its definition. `bound` propagates errors through the same
nodes (error_bound.py). `check` runs a kernel on random data against the bound and, if every node is exact on integers (exactness.py),
on small integers, exactly: for long reductions the bound alone would miss a dropped term.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tilelang.computations.arguments import check_memory, inputs
from tilelang.computations.computation import Computation, Tensor
from tilelang.errors import ComputationError, brief, not_too_deep
from tilelang.semantics.error_bound import ULPS, rounding
from tilelang.semantics.evaluator import Evaluator, peak_bytes
from tilelang.semantics.exactness import amplitude, inexact
from tilelang.semantics.loop_members import SharedLoop

Arrays = dict[str, Any]


@not_too_deep
def evaluate(computation: Computation, arrays: Mapping[str, Any]) -> Arrays:
    """The outputs by name, in their types. arrays: the inputs by name, in theirs.

    Raises ComputationError if an array is missing, or if its shape, type or index range does not fit.

    >>> from tilelang.core import dtype as dt
    >>> from tilelang.computations.computation import as_computation, axes, input
    >>> from tilelang.computations.define import define
    >>> i = axes(i=3)
    >>> x = input("x", dt.float32, i)
    >>> evaluate(as_computation(define("y", x[i] * 2, i)), {"x": np.ones(3, np.float32)})["y"]
    array([2., 2., 2.], dtype=float32)
    """
    check_memory(computation, peak_bytes(computation, errors=False))
    values = Evaluator(computation, inputs(computation, (), arrays), errors=False).run(computation.outputs)
    return {t.name: np.asarray(_typed(values[t].value, t)) for t in computation.outputs}


def bound(computation: Computation, arrays: Mapping[str, Any]) -> Arrays:
    """For each output, by name, a float64 array: the maximum difference of a correct result from `evaluate`'s.

    0 if a correct result is identical; inf if nothing is claimed (an overflow on the way, a branch that depends on rounding).
    """
    return evaluate_and_bound(computation, arrays)[1]


@not_too_deep
def evaluate_and_bound(
    computation: Computation,
    arrays: Mapping[str, Any],
    error_ulps: float = 0,
    ulps: Mapping[str, float] = ULPS,
    loops: Sequence[SharedLoop] = (),
) -> tuple[Arrays, Arrays]:
    """`evaluate` and `bound` in one pass.

    error_ulps: additional error of every operation beyond one rounding (1 ulp = 2 units). ulps: the maximum error of each function, by
    default the maximum over all targets. loops: those of a schedule whose repairs add to the error.
    """
    check_memory(computation, peak_bytes(computation, errors=True))
    evaluator = Evaluator(
        computation, inputs(computation, (), arrays), errors=True, slack=1 + 2 * error_ulps, ulps=ulps, loops=loops
    )
    values = evaluator.run(computation.outputs)
    expected, bounds = {}, {}
    for t in computation.outputs:
        error = values[t].error
        expected[t.name] = np.asarray(_typed(values[t].value, t))
        if error is None:
            bounds[t.name] = np.zeros(t.shape)
        else:
            # The reference's own rounding, in its wide type, relative to what the bound counts.
            own = 16 * np.finfo(evaluator.wide).eps / rounding(t.dtype).unit if t.dtype.is_float else 0.0
            bounds[t.name] = np.asarray(error, np.float64) * (1 + 2.0**-20 + float(own))
    return expected, bounds


def _typed(value: Any, t: Tensor) -> Any:
    with np.errstate(all="ignore"):
        return value.astype(t.dtype.numpy)


# ---------------------------------------------------------------- data


def random_arrays(computation: Computation, seed: int = 0) -> Arrays:
    """Inputs by name: floats from the normal distribution, integers from the declared range, or small ones."""
    check_memory(computation)
    generator = _generator(seed)
    return {t.name: _random(t, generator, None) for t in computation.inputs}


def integer_arrays(computation: Computation, seed: int = 0) -> Arrays:
    """Inputs by name, all small integers, for which every partial result of an `exact` computation is representable in its type."""
    check_memory(computation)
    generator = _generator(seed)
    size = amplitude(computation) or 1
    return {t.name: _random(t, generator, size) for t in computation.inputs}


def _generator(seed: int) -> np.random.Generator:
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise ComputationError("seed", f"seed={seed!r} is not a valid seed", help="use a whole number, 0 or more") from None


def _random(t: Tensor, generator: np.random.Generator, size: int | None) -> Any:
    if t.dtype.kind == "bool":
        return generator.integers(0, 2, t.shape).astype(bool)
    if t.range is not None:
        low, high = t.range
        if low == high and 0 not in t.shape:
            raise ComputationError(
                "range", f"{t!r} has the empty range {t.range}", help="write range=(low, high) with low < high"
            )
        return generator.integers(low, max(high, low + 1), t.shape).astype(t.dtype.numpy)
    if t.dtype.is_float and size is None:
        return generator.standard_normal(t.shape).astype(t.dtype.numpy)
    size = 8 if size is None else size
    return generator.integers(0 if t.dtype.kind == "uint" else -size, size + 1, t.shape).astype(t.dtype.numpy)


def exact(computation: Computation) -> bool:
    """Whether every node is exact on the integers of `integer_arrays`, so that results can be compared bit for bit."""
    return amplitude(computation) is not None


# ---------------------------------------------------------------- comparing


@dataclasses.dataclass(frozen=True)
class Mismatch:
    """One wrong element."""

    tensor: str
    index: tuple[int, ...]
    got: Any
    expected: Any
    bound: float

    def __str__(self) -> str:
        text = f"{self.tensor}{list(self.index)} is {self.got}, expected {self.expected}"
        return text + (f" within {self.bound:.3g}" if self.bound > 0 else " exactly")


@dataclasses.dataclass(frozen=True)
class Run:
    """The comparison of one run. unclaimed: elements without a bound. worst: the greatest ratio of difference to bound."""

    data: str
    elements: int
    unclaimed: int
    wrong: int
    first: Mismatch | None
    worst: float

    def __str__(self) -> str:
        if self.first is not None:
            return f"{self.data}: {self.wrong} of {self.elements} elements wrong; the first: {self.first}"
        left_out = f" ({self.unclaimed} not claimed)" if self.unclaimed else ""
        return f"{self.data}: {self.elements} elements right{left_out}, at most {self.worst:.2g} of the bound"


@dataclasses.dataclass(frozen=True)
class Report:
    """The result of a check; true if everything is right. inexact: the reason why small integers were not compared exactly, if any."""

    computation: str
    runs: tuple[Run, ...]
    inexact: str | None = None

    @property
    def ok(self) -> bool:
        """Whether every element of every run is right."""
        return all(r.wrong == 0 for r in self.runs)

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        lines = [f"{self.computation}: {'right' if self.ok else 'WRONG'}", *(f"  {r}" for r in self.runs)]
        if self.inexact:
            lines.append(f"  small integers: not compared to the bit, as {self.inexact}")
        return "\n".join(lines)


def compare(
    computation: Computation,
    arrays: Mapping[str, Any],
    results: Mapping[str, Any],
    exactly: bool = False,
    data: str = "given data",
    error_ulps: float = 0,
    ulps: Mapping[str, float] = ULPS,
    loops: Sequence[SharedLoop] = (),
) -> Report:
    """Compares results (by output name) with the reference for these inputs: within the bound, or exactly.

    A NaN is right if the reference has one, an infinity if it has the same one. error_ulps, ulps, loops: see `evaluate_and_bound`.
    Raises ComputationError if a result is missing or has another shape.
    """
    return compared(computation, evaluate_and_bound(computation, arrays, error_ulps, ulps, loops), results, exactly, data)


def compared(
    computation: Computation, known: tuple[Arrays, Arrays], results: Mapping[str, Any], exactly: bool, data: str
) -> Report:
    """`compare` with a known result of `evaluate_and_bound`."""
    if not isinstance(results, Mapping):
        message = f"the results are {brief(results)}, not arrays by the names of the outputs"
        raise ComputationError("results", message, help=f"return a dict, such as {{{computation.outputs[0].name!r}: array}}")
    expected, bounds = known
    elements = unclaimed = wrong = 0
    worst, first = 0.0, None
    for t in computation.outputs:
        if t.name not in results:
            raise ComputationError("result-missing", f"there is no result for the output {t!r}", help="give every output by name")
        got = np.asarray(results[t.name])
        if got.shape != t.shape:
            raise ComputationError("result-shape", f"the result for {t!r} has shape {got.shape}", help=f"give shape {t.shape}")
        if got.dtype.kind in "OUSMmc":
            message = f"the result for {t!r} has elements of type {got.dtype}"
            raise ComputationError("result-type", message, help=f"give numbers, as of {t.dtype}")
        limit = np.zeros(t.shape) if exactly else bounds[t.name]
        over = _over(got, expected[t.name], limit)
        elements += got.size
        unclaimed += int(np.isinf(limit).sum())
        bad = np.argwhere(over > 1)
        wrong += len(bad)
        if len(bad) and first is None:
            at = tuple(int(i) for i in bad[0])
            first = Mismatch(t.name, at, got[at], expected[t.name][at], float(limit[at]))
        worst = max(worst, float(over.max(initial=0.0)))
    return Report(computation.name, (Run(data, elements, unclaimed, wrong, first, worst),))


def _over(got: Any, expected: Any, limit: Any) -> Any:
    """Each element's difference as a multiple of its limit; inf if the limit is 0 and the difference is not."""
    if got.dtype.kind in "iub" and expected.dtype.kind in "iub":
        # Differences of integers are computed exactly: float64 would lose them beyond 2**53.
        high, low = np.maximum(got, expected), np.minimum(got, expected)
        difference = high.astype(object) - low.astype(object) if got.dtype.itemsize == 8 else high.astype(np.int64) - low
        difference = np.asarray(difference, np.float64)
    else:
        wide = np.longdouble if expected.dtype == np.float64 else np.float64
        with np.errstate(all="ignore"):
            g, e = got.astype(wide), expected.astype(wide)
            same = (g == e) | (np.isnan(g) & np.isnan(e))
            difference = np.where(same, 0, np.where(np.isnan(g) | np.isnan(e), np.inf, np.abs(g - e))).astype(np.float64)
    with np.errstate(all="ignore"):
        ratio = difference / limit
    return np.where((difference == 0) | np.isinf(limit), 0.0, ratio)


def check(
    computation: Computation,
    run: Callable[[Arrays], Mapping[str, Any]],
    seed: int = 0,
    error_ulps: float = 0,
    ulps: Mapping[str, float] = ULPS,
    loops: Sequence[SharedLoop] = (),
) -> Report:
    """Runs a kernel (input arrays by name -> output arrays by name) on random data, and on integers if that is exact.

    error_ulps, ulps, loops: see `evaluate_and_bound`.
    """
    arrays = random_arrays(computation, seed)
    runs = compare(computation, arrays, run(arrays), data="random data", error_ulps=error_ulps, ulps=ulps, loops=loops).runs
    reason = inexact(computation) or next(("a repair multiplies" for loop in loops if loop.multiplies), None)
    if reason is None:
        arrays = integer_arrays(computation, seed)
        runs += compare(computation, arrays, run(arrays), exactly=True, data="small integers").runs
    return Report(computation.name, runs, reason)
