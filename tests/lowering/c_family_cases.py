"""Small kernels built by hand, run on the device here or emulated as CUDA and HIP text: what the tests of the emitter share."""

import contextlib
import contextvars
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tilelang.core import dtype as dt
from tilelang.core.dtype import DType
from tilelang.core.expr import Expr, Var, index
from tilelang.lowering import ir
from tilelang.lowering.ir import Buffer, For, Kernel, Load, Program, Store
from tilelang.lowering.pipeline import NEEDED
from tilelang.lowering.targets.c import emitter
from tilelang.lowering.targets.c.dialect import Dialect
from tilelang.lowering.targets.dialects import needs
from tilelang.testing import emulation
from tilelang.testing.checking import connect

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]


_emulated = contextvars.ContextVar[Dialect | None]("emulated", default=None)


@contextlib.contextmanager
def emulating(dialect: Dialect | None) -> Iterator[None]:
    """Within it, kernels run as text of a dialect on this processor; None: on the device here."""
    token = _emulated.set(dialect)
    yield
    _emulated.reset(token)


def run(kernel: Kernel, arrays: Arrays, options: Sequence[str] = ()) -> str:
    """Runs a kernel on arrays by buffer name, in place, on the best device here unless emulating; gives the source.

    options: of the compiler, after its own.
    """
    arguments = kernel.arguments
    program = Program((kernel,), arguments)
    if (emulated := _emulated.get()) is not None:
        return _emulate(program, arrays, emulated)
    connection, dialect = connect()
    for needed in needs(dialect.name, connection.device):
        kernel = NEEDED[needed](kernel)
    program = Program((kernel,), arguments)
    source = emitter.emit(program, dialect)
    name = emitter.kernel_names(program, dialect)[kernel.name]
    function = connection.build(source, options).function(name, kernel.grid, kernel.threads, kernel.shared_bytes)
    held = [connection.host_array(arrays[b.name], "both", None) for b in kernel.arguments]
    function([h.buffer for h in held])
    for h in held:
        h.land()
    return source


def _emulate(program: Program, arrays: Arrays, dialect: Dialect) -> str:
    source = emitter.emit(program, dialect)
    (kernel,) = program.kernels
    name = emitter.kernel_names(program, dialect)[kernel.name]
    launch = emulation.Launch(name, kernel.grid, kernel.threads, tuple(b.name for b in kernel.arguments))
    found = emulation.run(source, [launch], {b.name: arrays[b.name] for b in kernel.arguments})
    for b in kernel.arguments:
        if arrays[b.name].flags.writeable:
            arrays[b.name][...] = found[b.name]
    return source


def elementwise(body: Any, inputs: Arrays, result: DType, lanes: int, index_bits: int = 32) -> Array:
    """result[i] = body(*inputs at i), `lanes` elements at a time, over flat arrays of equal length."""
    return together({"result": body(*loads(inputs, lanes))}, inputs, lanes, index_bits)["result"].astype(result.numpy, copy=False)


def places(size: int, lanes: int) -> Var:
    """The loop variable of `together`."""
    return Var("i", dt.int64, 0, size // lanes - 1)


def loads(inputs: Arrays, lanes: int) -> list[Expr]:
    """The inputs' elements in one round of `together`."""
    size = len(next(iter(inputs.values())))
    buffers = [Buffer(n, dt.dtype(a.dtype.name), (size,), "global", "input") for n, a in inputs.items()]
    return [Load(b, (places(size, lanes) * lanes,), lanes) for b in buffers]


def together(values: dict[str, Expr], inputs: Arrays, lanes: int, index_bits: int = 32) -> Arrays:
    """Several expressions over `loads(inputs)`, each into an array of its own type, in one kernel: building is what takes time."""
    size = len(next(iter(inputs.values())))
    i = places(size, lanes)
    sources = [Buffer(n, dt.dtype(a.dtype.name), (size,), "global", "input") for n, a in inputs.items()]
    targets = {n: Buffer(n, e.dtype, (size,), "global", "output") for n, e in values.items()}
    stores = (Store(targets[n], (i * lanes,), e if ir.lanes(e) == lanes else splat(e, lanes)) for n, e in values.items())
    body = ir.seq(*(For(i, index(size // lanes), store) for store in stores))
    kernel = Kernel("elementwise", (1, 1, 1), 1, (*sources, *targets.values()), body, index_bits)
    results = {n: np.zeros(size, b.dtype.numpy) for n, b in targets.items()}
    run(kernel, {**inputs, **results})
    return results


def splat(value: Expr, lanes: int) -> Expr:
    """A scalar in every lane."""
    return value if lanes == 1 else ir.Pack((value,) * lanes)


def assert_same(a: Array, b: Array, name: str = "") -> None:
    """Equal element by element, NaN to NaN."""
    with np.errstate(invalid="ignore"):  # signalling NaN
        a, b = (x if x.dtype.kind in "iub" else x.astype(np.float64) for x in (a, b))
    np.testing.assert_array_equal(a, b, err_msg=name)


def floats(seed: int, size: int = 1024, type: str = "float32") -> Array:
    """Normal numbers, and in front the special ones."""
    special = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 0.5, 2.5, -2.5, 1e-40, 3e38]
    x = np.random.default_rng(seed).normal(0, 3, size)
    x[: len(special)] = np.random.default_rng(seed).permutation(special)
    with np.errstate(over="ignore"):
        return x.astype(dt.dtype(type).numpy)


def near_ties(t: DType) -> Array:
    """Floats half-way between neighbouring numbers of a narrower type (of many, where it has very many), and the two beside each."""
    with np.errstate(invalid="ignore"):  # signalling NaN
        codes = np.arange(1 << (t.bits - 1), dtype=f"uint{t.bits}").view(t.numpy).astype(np.float64)
    numbers = codes[np.isfinite(codes)]
    numbers = np.append(numbers, 2 * numbers[-1] - numbers[-2])  # from there on it is infinite, or NaN
    chosen = np.unique(np.append(np.arange(0, len(numbers) - 1, max(1, len(numbers) // 2048)), len(numbers) - 2))
    middle = ((numbers[chosen] + numbers[chosen + 1]) / 2).astype(np.float32)
    around = np.concatenate([np.nextafter(middle, np.float32(-np.inf)), middle, np.nextafter(middle, np.float32(np.inf))])
    return np.resize(np.concatenate([around, -around]), -(-len(around) // 8) * 16)


def integers(seed: int, type: str, size: int = 1024) -> Array:
    """Numbers of the whole range, small ones, and the ends."""
    t = dt.dtype(type)
    rng = np.random.default_rng(seed)
    wide = rng.integers(int(t.lowest), int(t.highest), size, dtype=t.numpy, endpoint=True)
    small = rng.integers(-5 if t.kind == "int" else 0, 6, size).astype(t.numpy)
    x = np.where(rng.random(size) < 0.5, wide, small)
    x[:4] = [t.lowest, t.highest, 0, t.highest]
    return x
