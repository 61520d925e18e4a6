"""`@tl.kernel`: a kernel as a Python function of tensors, compiled for the shapes and types of the arrays passed to it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

from tilelang.computations.arguments import as_array
from tilelang.computations.computation import Computation, Tensor, as_computation, computation, input
from tilelang.core.dtype import DType
from tilelang.errors import ComputationError, brief, counted
from tilelang.lowering.drivers import interface as drivers
from tilelang.runtime.kernel import Kernel, check_trials, compile
from tilelang.runtime.launch_arguments import Direct
from tilelang.schedules.schedule import Schedule


class KernelFunction:
    """The result of `@tl.kernel`: call it with arrays, or inspect the kernels that it compiles.

    It keeps one Kernel per combination of shapes, types and constants.
    """

    __name__: str
    __qualname__: str

    def __init__(self, function: Callable[..., Any], trials: int = 0) -> None:
        check_trials(trials)
        if not callable(function) or not hasattr(function, "__qualname__") or isinstance(function, KernelFunction):
            raise ComputationError("not-a-function", f"{brief(function)} is not a function", help="write @tl.kernel above a def")
        functools.update_wrapper(self, function)
        self._taken = _signature(function)
        self._function, self._trials = function, trials
        self._kernels: dict[Any, Kernel] = {}
        self._called: dict[Any, Kernel] = {}  # by a key of the arrays' properties: the lookup of every call but the first
        self._latest: Direct | None = None  # the fast path of the kernel that ran last: it takes only arrays like those

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels compiled so far, in order of first use."""
        return tuple(self._kernels.values())

    def compile(self, *arrays: Any, **named: Any) -> Kernel:
        """The kernel for arrays of these shapes and types, compiled but not run: for its `source`, `schedule` or `explain`.

        Takes the arguments of a call, without `out`, and raises the same errors.
        """
        return self._found(arrays, named)[0]

    def __call__(self, *arrays: Any, out: Any = None, **named: Any) -> Any:
        """Runs the kernel for these arrays; the first call for their shapes and types compiles it. Returns the outputs."""
        latest = self._latest  # once: another thread may replace it
        if latest is not None and not named:
            result = latest.run(arrays, out)
            if result is not None:
                return result
        alike = _key_of(arrays) if not named and not self._takes_constants(arrays) else None
        try:
            found = self._called.get(alike)
        except TypeError:  # an unhashable value
            alike = found = None
        given: Sequence[Any] = arrays
        if found is None:
            found, given = self._found(arrays, named)
        results = found(*given, out=out)
        if alike is not None and len(arrays) == len(given):  # otherwise constants or defaults, too, decide which kernel it is
            self._called[alike], self._latest = found, found._direct
        return results

    def _takes_constants(self, arrays: Sequence[Any]) -> bool:
        """Whether one of the positional arguments of a call is a constant."""
        return any(map(_is_constant, self._taken.parameters.values(), arrays))

    def _found(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> tuple[Kernel, list[Any]]:
        """The kernel for the arguments of a call, and the arrays among them."""
        taken, function = self._taken, self._function
        bound = _bound(taken, function.__name__, arrays, named)
        constants = {n: v for n, v in bound.arguments.items() if _is_constant(taken.parameters[n], v)}
        names = [n for n in bound.arguments if n not in constants]
        where = [drivers.of_array(bound.arguments[n]) for n in names]
        given = [
            as_array(n, bound.arguments[n]) if on is None else bound.arguments[n] for n, on in zip(names, where, strict=True)
        ]
        facts = [(a.shape, a.dtype) if on is None else drivers.load(on).describe(a) for a, on in zip(given, where, strict=True)]
        dialect = next((on for on in where if on is not None), None)
        key = (dialect, *((n, type(v), repr(v)) for n, v in constants.items()), *((shape, str(type)) for shape, type in facts))
        found = self._kernels.get(key)
        if found is None:
            for n, (shape, dtype) in zip(names, facts, strict=True):
                dims: dict[str, Any] = {f"{n}_{d}": int(e) for d, e in enumerate(shape)}
                bound.arguments[n] = input(n, dtype, **dims)
            made = function(*bound.args, **bound.kwargs)
            if not isinstance(made, (Schedule, Tensor, Computation)):
                made = computation(function.__name__.strip("<>"), made)
            _check_read(function.__name__, names, made)
            found = self._kernels[key] = compile(made, dialect, trials=self._trials)
        return found, given

    def __getattr__(self, name: str) -> Any:
        """Raises an error for attributes of a single kernel, because there may be several."""
        if name.startswith("_") or name not in {*dir(Kernel), *Kernel.__annotations__}:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        called, taken = self._function.__name__, ", ".join(self._taken.parameters)
        message = (
            f"{called} has a kernel for each kind of arguments: {called}.compile({taken}).{name}, or {called}.kernels[0].{name}"
        )
        raise AttributeError(message, name=name, obj=self)

    def __reduce__(self) -> str:
        return self.__qualname__  # like a function: by its name

    def __repr__(self) -> str:
        return f"<kernel function {self.__qualname__}{self._taken}: {counted(len(self._kernels), 'kernel')}>"


@overload
def kernel(function: Callable[..., Any], *, trials: int = 0) -> KernelFunction: ...
@overload
def kernel(function: None = None, *, trials: int = 0) -> Callable[[Callable[..., Any]], KernelFunction]: ...
def kernel(
    function: Callable[..., Any] | None = None, *, trials: int = 0
) -> KernelFunction | Callable[[Callable[..., Any]], KernelFunction]:
    """Turns a Python function of tensors into a kernel; shapes and types come from the arguments, with one compiled kernel for each.

    The function gets input Tensors (named like its parameters, with dimensions `x_0`, `x_1`, ...) and returns a defined Tensor, a tuple
    of them, or a Schedule. A parameter with a default may be a constant: the default, or the number, type or tuple that is passed, is
    then part of the kernel.
    trials: as for `compile`, `@kernel(trials=8)`; autotuning runs in the first call for each combination of shapes and types.

    >>> import numpy as np, tilelang as tl
    >>> @kernel
    ... def doubled(x):
    ...     i = tl.axes(i=x.shape[0])
    ...     return tl.define("y", 2 * x[i], i)
    >>> doubled(np.arange(3, dtype=np.int32)).tolist()
    [0, 2, 4]
    >>> doubled.compile(np.arange(3, dtype=np.int32)).computation.name
    'y'
    """
    if function is None:
        check_trials(trials)
        return functools.partial(KernelFunction, trials=trials)
    return KernelFunction(function, trials)


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function. Raises ComputationError unless it has one parameter per array."""
    taken = inspect.signature(function)
    for name, p in taken.parameters.items():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            stars = "*" if p.kind == p.VAR_POSITIONAL else "**"
            message = f"{function.__name__} takes {stars}{name}, but each array of a kernel needs a name"
            raise ComputationError("not-a-function", message, help="use one parameter for each array, and defaults for constants")
    inside = getattr(function, "__qualname__", "").rpartition(".")[0]
    if inside and not inside.endswith("<locals>") and next(iter(taken.parameters), "") in ("self", "cls"):
        help = "use a function outside the class, or write @staticmethod above @tl.kernel"
        raise ComputationError(
            "not-a-function", f"{function.__qualname__} is a method, whose first parameter is not an array", help=help
        )
    return taken


def _bound(taken: inspect.Signature, name: str, arrays: Sequence[Any], named: Mapping[str, Any]) -> inspect.BoundArguments:
    """The arguments of a call bound to parameters, with defaults. Raises ComputationError if one is missing or superfluous."""
    try:
        bound = taken.bind(*arrays, **named)
    except TypeError:
        every = [n if p.default is p.empty else f"{n}={brief(p.default)}" for n, p in taken.parameters.items()]
        got = counted(len(arrays), "array") + (f" and {', '.join(named)}" if named else "")
        help = "pass one array for each parameter" + (" without a default" if any("=" in text for text in every) else "")
        raise ComputationError("arguments", f"{name} takes {', '.join(every)}, got {got}", help=help) from None
    bound.apply_defaults()
    return bound


def _check_read(name: str, parameters: Sequence[str], made: Schedule | Tensor | Computation) -> None:
    """Raises ComputationError if a function's result does not read one of the tensors that it gets."""
    what = made.computation if isinstance(made, Schedule) else as_computation(made)
    unread = [p for p in parameters if p not in {t.name for t in what.inputs}]
    if unread:
        message = f"{name} does not use its parameter{'s' * (len(unread) > 1)} {', '.join(unread)}"
        raise ComputationError("unread-parameter", message, help="remove it, or read it in the definition that is returned")


def _is_constant(parameter: inspect.Parameter, value: Any) -> bool:
    """Whether a function gets a value unchanged instead of a tensor: a non-array passed to a parameter with a default."""
    return parameter.default is not parameter.empty and _is_written_down(value)


def _is_written_down(value: Any) -> bool:
    """Whether a value is not an array and its `repr` is complete: a number, a string, a type, None, or tuples and lists of these."""
    import numpy as np  # late: NumPy takes long to import

    if isinstance(value, (tuple, list)):
        return all(_is_written_down(v) for v in value)
    return isinstance(value, (bool, int, float, str, np.generic, DType, type(None)))


def _key_of(arrays: tuple[Any, ...]) -> Any:
    """A key that is equal for arrays of the same kind, shape, type and device; None if one of them does not expose these."""
    try:
        return tuple([(type(a), a.shape, a.dtype, getattr(a, "device", None)) for a in arrays])
    except AttributeError:
        return None
