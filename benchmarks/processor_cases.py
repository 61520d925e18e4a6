"""What `benchmarks/processor.py` measures besides the operators of operators_cpu.csv: computations, schedules by hand, arrays, peers.

A case is one computation at one size with all that may compute it. NumPy, PyTorch, torch.compile and Numba are here, the libraries with
models of their own in peers.py; a peer that lacks an operation has no call of it.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import shutil
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import tilelang as tl
from benchmarks import cpu_schedules, peers
from benchmarks.gpu_cases import example
from benchmarks.peers import Array, Call, Operation
from tilelang.semantics.reference import random_arrays

OLD_PEERS = ("NumPy", "PyTorch", "torch.compile", "Numba")
SIZES = ((512, 1024), (4096, 4096))  # in cache, and beyond
LINE_BYTES = 64  # of the caches
POINTWISE = ("exp", "gelu", "gelu_tanh", "tanh")


@dataclasses.dataclass(frozen=True)
class Case:
    """what: the row's name; operation: for the peers; made: the computation, for which a schedule is constructed, or a schedule;
    by_hand: schedules written by hand, beside it; copy: what only moves the data. relative: how far a peer may be from ours, by the
    largest element."""

    what: str
    operation: Operation
    made: Callable[[], tl.Tensor | tl.Schedule]
    by_hand: Callable[[], tl.Schedule] | None = None
    copy: Callable[[], tl.Tensor] | None = None
    relative: float = 2e-5


def pointwise(kind: str, rows: int, columns: int) -> tl.Tensor:
    """One function of every element, or a copy of them."""
    i, j = tl.axes(i=rows, j=columns)
    function = {"copy": lambda x: x, "exp": tl.exp, "gelu": tl.gelu, "gelu_tanh": tl.gelu_tanh, "tanh": tl.tanh}[kind]
    return tl.define("Y", function(tl.input("X", tl.float32, i, j)[i, j]), i, j)


def softmax(rows: int, columns: int, allow: tuple[str, ...] = ()) -> tl.Tensor:
    """Along rows, the largest element taken off."""
    i, j = tl.axes(i=rows, j=columns)
    X = tl.input("X", tl.float32, i, j)
    peak = tl.define("peak", tl.max(X[i, j], over=j), i)
    shifted = tl.define("shifted", tl.exp(X[i, j] - peak[i]), i, j, allow=allow)
    total = tl.define("total", tl.sum(shifted[i, j], over=j), i)
    return tl.define("Y", shifted[i, j] / total[i], i, j)


def of_schedule(make: Callable[[int, int], tl.Schedule], rows: int, columns: int) -> tl.Tensor:
    """What a schedule computes, without the schedule."""
    return make(rows, columns).computation.outputs[0]


def size_of(extents: tuple[int, ...]) -> str:
    """In a row's name.

    >>> size_of((4096, 4096)), size_of((2, 2, 2)), size_of((512, 1024))
    ('4096^2', '2^3', '512x1024')
    """
    return f"{extents[0]}^{len(extents)}" if len(set(extents)) == 1 else "x".join(map(str, extents))


def product_cases(sizes: Mapping[str, tuple[int, ...]]) -> list[Case]:
    """Matrix products of m, n and k."""
    return [
        Case(
            name, Operation("matmul"), functools.partial(example("01_matmul").matmul, *size, tl.float32),
            functools.partial(cpu_schedules.matmul_schedule, size[0], size[1], size[2]),
        )
        for name, size in sizes.items()
    ]  # fmt: skip


def pointwise_cases() -> list[Case]:
    """Functions of every element, in cache and beyond."""
    return [
        Case(
            f"{kind} {size_of(size)}", Operation(kind), functools.partial(pointwise, kind, *size),
            copy=functools.partial(pointwise, "copy", *size) if kind == "exp" else None,
        )
        for kind in POINTWISE
        for size in SIZES
    ]  # fmt: skip


def row_cases() -> list[Case]:
    """Softmax, with the licence in a row of its own, and layer normalization."""
    found = []
    for size in SIZES:
        hand = functools.partial(cpu_schedules.softmax, *size)
        found.append(Case(f"softmax {size_of(size)}", Operation("softmax"), functools.partial(softmax, *size), hand))
        quick = functools.partial(softmax, *size, allow=("fast_exp",))
        found.append(Case(f"softmax {size_of(size)}, quick exp", Operation("softmax"), quick))
    for size in SIZES:
        hand = functools.partial(cpu_schedules.layer_normalization, *size)
        made = functools.partial(of_schedule, cpu_schedules.layer_normalization, *size)
        found.append(Case(f"layer norm {size_of(size)}", Operation("layer_norm"), made, hand))
    return found


def transpose_case(side: int) -> Case:
    """A square matrix."""
    made = functools.partial(of_schedule, cpu_schedules.transpose, side, side)
    hand = functools.partial(cpu_schedules.transpose, side, side)
    return Case(f"transposition {size_of((side, side))}", Operation("transpose"), made, hand)


def arrays_of(computation: Any) -> dict[str, Array]:
    """Random inputs in order, the same for all."""
    return random_arrays(computation, 0)


def empty_like(out: Array) -> Array:
    """Memory for another contestant's result that begins as those of kernels' and PyTorch's own do: at a line of the caches."""
    memory = np.empty(out.nbytes + LINE_BYTES, np.uint8)
    begin = -memory.ctypes.data % LINE_BYTES
    return memory[begin : begin + out.nbytes].view(out.dtype).reshape(out.shape)


# ---------------------------------------------------------------- peers


def peers_of(operation: Operation, inputs: list[Array], out: Array, threads: int) -> dict[str, tuple[str, Call]]:
    """Each peer's thread pool and call. A call raises what its library raises that cannot do it; `out` gives shape and type alone."""
    found: dict[str, tuple[str, Call]] = {}
    if (numpy := by_numpy(operation.kind, inputs, empty_like(out))) is not None:
        found["NumPy"] = "NumPy", numpy
    if importlib.util.find_spec("torch") is not None:
        found |= {who: ("PyTorch", call) for who, call in by_torch(operation, inputs, threads).items()}
    if importlib.util.find_spec("numba") is not None and out.dtype == np.float32:
        from benchmarks import processor_numba

        if (loops := processor_numba.call(operation, inputs, empty_like(out), threads)) is not None:
            found["Numba"] = "Numba", loops
    for who in peers.MODULES.keys() - peers.absent().keys():
        found[who] = who, peers.when_called(who, operation, inputs, empty_like(out), threads)
    return dict(sorted(found.items()))


def absent() -> dict[str, str]:
    """The peers that are not installed, each with the reason."""
    found = {who: f"{who.lower()} is not installed" for who in ("Numba",) if importlib.util.find_spec(who.lower()) is None}
    if importlib.util.find_spec("torch") is None:
        found |= dict.fromkeys(("PyTorch", "torch.compile"), "torch is not installed")
    elif not compiler_for_torch():
        found["torch.compile"] = "no C++ compiler is installed, with which it compiles for processors"
    return found | peers.absent()


def compiler_for_torch() -> bool:
    """Whether torch.compile can compile for the processor."""
    return bool(shutil.which("g++") or shutil.which("clang++"))


def by_numpy(kind: str, inputs: list[Array], out: Array) -> Call | None:
    """NumPy's function, where it has one."""
    if out.dtype != np.float32:
        return None

    def transposed() -> Array:
        np.copyto(out, inputs[0].T)
        return out

    calls: dict[str, Call] = {
        "matmul": lambda: np.matmul(inputs[0], inputs[1], out=out),
        "exp": lambda: np.exp(inputs[0], out=out),
        "tanh": lambda: np.tanh(inputs[0], out=out),
        "transpose": transposed,
    }
    return calls.get(kind)


def to_torch(array: Array) -> Any:
    """A tensor over an array's memory."""
    import torch

    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def by_torch(operation: Operation, inputs: list[Array], threads: int) -> dict[str, Call]:
    """PyTorch's function into a result that was there before, where it takes one, and what torch.compile makes of it."""
    import torch

    torch.set_num_threads(threads)
    given = [to_torch(a) for a in inputs]
    torch_gelu: Any = torch._C._nn.gelu  # its type is not declared with `out`
    shape = (given[0].shape[0], given[-1].shape[1]) if operation.kind == "matmul" else given[0].shape
    out, into = (torch.empty(shape, dtype=given[0].dtype) for _ in range(2))
    columns = (given[0].shape[-1],)
    eager: dict[str, Call] = {
        "matmul": lambda: torch.mm(*given, out=out),
        "exp": lambda: torch.exp(given[0], out=out),
        "tanh": lambda: torch.tanh(given[0], out=out),
        "gelu": lambda: torch_gelu(given[0], out=out),
        "gelu_tanh": lambda: torch_gelu(given[0], approximate="tanh", out=out),
        "softmax": lambda: torch.softmax(given[0], 1, out=out),
        "layer_norm": lambda: torch.layer_norm(given[0], columns, given[1], given[2], operation.epsilon),
        "transpose": lambda: out.copy_(given[0].T),
    }
    functional = torch.nn.functional
    functions: dict[str, Callable[..., Any]] = {
        "exp": torch.exp,
        "tanh": torch.tanh,
        "gelu": functional.gelu,
        "gelu_tanh": functools.partial(functional.gelu, approximate="tanh"),
        "softmax": lambda x: torch.softmax(x, 1),
        "layer_norm": lambda x, gamma, beta: torch.layer_norm(x, columns, gamma, beta, operation.epsilon),
        "transpose": lambda x: x.T,
    }
    found = {"PyTorch": without_gradients(eager[operation.kind])}
    if operation.kind in functions and compiler_for_torch():
        function = functions[operation.kind]
        torch._dynamo.reset()  # which would compile functions of the same text only so many times
        made = torch.compile(lambda result, *arguments: result.copy_(function(*arguments)), dynamic=False)
        found["torch.compile"] = without_gradients(lambda: made(into, *given))
    return found


def without_gradients(call: Call) -> Call:
    """A call under inference mode."""
    import torch

    def run() -> Any:
        with torch.inference_mode():
            return call()

    return run


def as_float64(result: Any) -> Array:
    """A peer's result, whatever its type."""
    if type(result).__module__.startswith("torch"):
        return np.asarray(result.double())
    return np.asarray(result).astype(np.float64)
