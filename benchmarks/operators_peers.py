"""Who else computes the operators of `benchmarks/operators.py`, and what a right result is.

NumPy, PyTorch's operators one by one, torch.compile, Numba, TVM, and the libraries of peers.py, where they are installed. Arrays are
the same for all, images channels first, filters as PyTorch has them; where a peer takes an array for its result it gets one.
Convolutions of PyTorch make their results themselves, and what torch.compile hands to a library would be copied; TVM's arrays are its
own, since it wants them aligned.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import importlib.util
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import peers as peers_with_models
from benchmarks.operators_cases import Operator

Array = npt.NDArray[Any]
Arrays = dict[str, Array]
Peer = Callable[[], Any]  # computes once; gives its result

DISTRIBUTIONS = {"NumPy": "numpy", "PyTorch": "torch", "torch.compile": "torch", "Numba": "numba", "TVM": "apache-tvm"}
DISTRIBUTIONS |= peers_with_models.DISTRIBUTIONS
NAMES = tuple(DISTRIBUTIONS)
PACKAGES = {"Numba": "numba", "TVM": "tvm"}
NOT_RUN = {
    "loopy": "a scheduling language without default schedules: there would be nothing to compare but schedules written here",
}


LONG_FLOPS = 4e9  # which the loops of one thread, that TVM leaves products as, take minutes for


def absent(operator: Operator | None = None) -> dict[str, str]:
    """The peers that are not measured here, or not of an operator, each with the reason."""
    found = dict(NOT_RUN)
    if importlib.util.find_spec("torch") is None:
        found |= dict.fromkeys(("PyTorch", "torch.compile"), "torch is not installed")
    elif not (shutil.which("g++") or shutil.which("clang++")):
        found["torch.compile"] = "no C++ compiler is installed, with which it compiles for processors"
    found |= {
        who: f"{package} is not installed" for who, package in PACKAGES.items() if importlib.util.find_spec(package) is None
    }
    found |= peers_with_models.absent()
    if operator is not None and operator.kind == "matmul" and operator.flops > LONG_FLOPS:
        found["TVM"] = "its rules leave large products the loops of one thread, which take minutes"
    return found


def versions() -> dict[str, str]:
    """The version of each peer that is installed from a package."""
    found = {}
    for who, distribution in DISTRIBUTIONS.items():
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[who] = importlib.metadata.version(distribution)
    return found


def peers(operator: Operator, arrays: Arrays, threads: int) -> dict[str, tuple[str, Peer]]:
    """Each peer's thread pool and call by its name. arrays: the inputs, and memory for the result; threads: for each."""
    missing, name = absent(operator), list(operator.shapes)[-1]
    out = {who: np.empty_like(arrays[name]) for who in ("NumPy", "PyTorch", "Numba")}
    found: dict[str, tuple[str, Peer]] = {"NumPy": ("NumPy", lambda: by_numpy(operator, arrays, out["NumPy"]))}
    if "PyTorch" not in missing:
        found |= {who: ("PyTorch", call) for who, call in by_torch(operator, arrays, out["PyTorch"], threads).items()}
    if "torch.compile" in missing:
        found.pop("torch.compile", None)
    if "Numba" not in missing:
        from benchmarks import operators_numba

        found["Numba"] = "Numba", operators_numba.peer(operator, arrays, out["Numba"], threads)
    if "TVM" not in missing:
        from benchmarks import operators_tvm

        built = functools.cache(lambda: operators_tvm.peer(operator, arrays, threads))  # when it is called, if it is
        found["TVM"] = "TVM", lambda: built()()
    inputs = [arrays[n] for n in list(operator.shapes)[:-1]]
    for who in peers_with_models.MODULES:
        if who not in missing:
            result = np.empty_like(arrays[name])
            found[who] = who, peers_with_models.when_called(who, operation(operator), inputs, result, threads)
    return found


def operation(operator: Operator) -> peers_with_models.Operation:
    """The operator as the libraries of peers.py know it."""
    windows = dict(zip(("window", "stride", "padding"), operator.extents[4:], strict=False)) if len(operator.extents) > 3 else {}
    return peers_with_models.Operation(operator.kind, **windows)


# ---------------------------------------------------------------- NumPy


def by_numpy(operator: Operator, arrays: Arrays, out: Array) -> Array:
    """The operator in NumPy, in the type of its arrays."""
    match operator.kind:
        case "matmul":
            return np.matmul(arrays["A"], arrays["B"], out=out)
        case "row_sum":
            return np.asarray(np.sum(arrays["X"], axis=1, out=out))
        case "relu":
            return np.asarray(np.maximum(arrays["X"], 0, out=out))
    r = operator.facts[0]
    first, *others = windows(operator, arrays["X"])
    part_by_numpy(operator, arrays, *first, out)
    more = np.empty_like(out) if others else out
    for place in others:
        part_by_numpy(operator, arrays, *place, more)
        out += more
    if operator.kind == "average_pooling":
        out *= 1.0 / (r * r)
    return out


def part_by_numpy(operator: Operator, arrays: Arrays, i: int, j: int, seen: Array, into: Array) -> None:
    """What one place of the windows adds."""
    match operator.kind:
        case "convolution":
            n, f, p, q = into.shape
            np.matmul(arrays["W"][:, :, i, j], seen.reshape(n, -1, p * q), out=into.reshape(n, f, p * q))
        case "depthwise":
            np.multiply(seen, arrays["W"][:, i, j, None, None], out=into)
        case _:
            into[...] = seen


def windows(operator: Operator, images: Array) -> Iterator[tuple[int, int, Array]]:
    """For each place of a window, what stands there for every pixel of the result."""
    r, stride, padding, side = operator.facts
    if padding:
        images = np.pad(images, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    last = stride * (side - 1) + 1
    for i in range(r):
        for j in range(r):
            yield i, j, images[:, :, i : i + last : stride, j : j + last : stride]


# ---------------------------------------------------------------- PyTorch


def by_torch(operator: Operator, arrays: Arrays, out: Array, threads: int) -> dict[str, Peer]:
    """PyTorch's operators, and the same compiled by torch.compile, into a given result unless a library computes it."""
    import torch

    torch.set_num_threads(threads)
    given = [torch.from_numpy(arrays[name]) for name in list(operator.shapes)[:-1]]
    result, into = torch.from_numpy(out), torch.from_numpy(np.empty_like(out))
    eager, compiled = torch_functions(torch, operator)
    library = operator.kind in ("matmul", "convolution")
    torch._dynamo.reset()  # which would compile functions of the same text only so many times, and then no more

    def copied(given_result: Any, *arguments: Any) -> Any:
        return given_result.copy_(compiled(*arguments))  # the compiler writes there at once

    made = torch.compile(compiled if library else copied, dynamic=False)

    def call(function: Callable[..., Any], *arguments: Any) -> Any:
        with torch.inference_mode():
            return function(*arguments)

    return {
        "PyTorch": lambda: call(eager, *given, result),
        "torch.compile": lambda: call(made, *given) if library else call(made, into, *given),
    }


def torch_functions(torch: Any, operator: Operator) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The operator as PyTorch has it, into a given result where it takes one; and as a function to compile."""
    functional = torch.nn.functional
    match operator.kind:
        case "matmul":
            return (lambda a, b, c: torch.mm(a, b, out=c)), torch.mm
        case "row_sum":
            return (lambda x, y: torch.sum(x, 1, out=y)), lambda x: torch.sum(x, 1)
        case "relu":
            return (lambda x, y: torch.clamp_min(x, 0, out=y)), torch.relu
    r, stride, padding, _ = operator.facts
    if operator.kind == "average_pooling":
        pool = torch._C._nn.avg_pool2d
        return (lambda x, z: pool(x, r, stride, padding, out=z)), lambda x: functional.avg_pool2d(x, r, stride, padding)
    groups = operator.extents[1] if operator.kind == "depthwise" else 1

    def convolution(x: Any, w: Any, z: Any = None) -> Any:
        filters = w.unsqueeze(1) if groups > 1 or w.dim() == 3 else w
        return functional.conv2d(x, filters, None, stride, padding, 1, groups)

    return convolution, lambda x, w: convolution(x, w)


# ---------------------------------------------------------------- what is right


def random_arrays(operator: Operator, seed: int = 0) -> Arrays:
    """Inputs of a normal distribution, and memory for the result."""
    generator = np.random.default_rng(seed)
    *inputs, result = operator.shapes.items()
    return {name: generator.standard_normal(shape, np.float32) for name, shape in inputs} | {
        result[0]: np.empty(result[1], np.float32)
    }


def expected_and_bound(operator: Operator, arrays: Arrays) -> tuple[Array, Array]:
    """The result in float64, and how far one in float32 may be from it: each of its terms is rounded at most once for itself, once
    for each addition, and once at the end. Source: N. J. Higham, Accuracy and Stability of Numerical Algorithms, section 3.1."""
    *inputs, result = operator.shapes
    wide = {name: arrays[name].astype(np.float64) for name in inputs}
    value = by_numpy(operator, wide, np.empty(operator.shapes[result], np.float64))
    if operator.terms == 1:
        return value, np.spacing(np.abs(value).astype(np.float32)).astype(np.float64)
    sizes = by_numpy(operator, {name: np.abs(array) for name, array in wide.items()}, np.empty_like(value))
    steps = (operator.terms + 2) * 2.0**-24
    return value, sizes * (steps / (1 - steps))


def wrong(result: Array, expected: Array, bound: Array) -> str:
    """What is wrong with a result; empty where it is right."""
    over = ~(np.abs(result - expected) <= bound)  # NaN is wrong, too
    if not over.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(over)[0])
    return f"{int(over.sum())} of {over.size} elements, the first at {at}: {result[at]:g} for {expected[at]:g} +- {bound[at]:.1g}"
