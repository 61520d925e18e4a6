"""`python -m tilelang.demo`: a matrix product and a softmax in one kernel on the device found here, beside NumPy.

The product is only a formula, whose schedule is generated for the device; the softmax has a hand-written schedule. Both kernels
are compiled, checked against the reference within the derived bound, and timed in turns with NumPy. The times are medians, with
preallocated outputs for both and a pause at each change, because idle thread pools keep spinning.

Exit codes: 0 right, 1 wrong, 2 usage error or invalid setting, 3 no device.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import tilelang as tl

PAUSE_S = 0.25


def matmul(M: int, N: int, K: int) -> tl.Tensor:
    """C[m, n] = sum over k of A[m, k] B[k, n]: its schedule is generated for the device."""
    m, n, k = tl.axes(m=M, n=N, k=K)
    A = tl.input("A", tl.float32, m, k)
    B = tl.input("B", tl.float32, k, n)
    return tl.define("C", tl.sum(A[m, k] * B[k, n], over=k), m, n)


def softmax(M: int, N: int) -> tl.Schedule:
    """Y[i, j] = exp(X[i, j] - peak[i]) / total[i]: one row per core at a time, with the exponentials kept on chip and the next
    row prefetched."""
    i, j = tl.axes(i=M, j=N)
    X = tl.input("X", tl.float32, i, j)
    peak = tl.define("peak", tl.max(X[i, j], over=j), i)
    shifted = tl.define("shifted", tl.exp(X[i, j] - peak[i]), i, j)
    total = tl.define("total", tl.sum(shifted[i, j], over=j), i)
    scale = tl.define("scale", 1.0 / total[i], i)
    Y = tl.define("Y", shifted[i, j] * scale[i], i, j)
    wide = tl.move().vectorize(j=64)
    next_row = tl.move().split(j=64).load("X", tl.l1, ahead=-(-N // 64)).vectorize(j=64)
    return (
        tl.schedule(Y)
        .tile(i=1).to(tl.block)
        .via(tl.register, stream=True)
        .compute("peak", tl.register, steps=wide)
        .compute("shifted", tl.shared, steps=next_row)
        .compute("total", tl.register, steps=wide)
        .compute("scale", tl.register)
        .split(j=64)
        .vectorize(j=64)
    )  # fmt: skip


def numpy_softmax(x: Any, out: Any) -> None:
    """The same by NumPy, in place."""
    import numpy as np  # late: NumPy takes long to import

    np.subtract(x, x.max(axis=1, keepdims=True), out=out)
    np.exp(out, out=out)
    np.divide(out, out.sum(axis=1, keepdims=True), out=out)


@dataclasses.dataclass(frozen=True)
class Line:
    """One line of the table: times in seconds; share: the greatest difference from the reference over its bound."""

    name: str
    right: bool
    share: float
    kernel_s: float
    numpy_s: float

    @property
    def cells(self) -> tuple[str, ...]:
        agreement = f"right, {self.share:.2g} of the bound" if self.right else "WRONG"
        return (
            self.name,
            agreement,
            f"{self.kernel_s * 1e3:.2f}",
            f"{self.numpy_s * 1e3:.2f}",
            f"{self.numpy_s / self.kernel_s:.2f}",
        )


def measure(name: str, what: tl.Tensor | tl.Schedule, by_numpy: Callable[..., object], rounds: int) -> Line:
    """Compile, check, and time in turns with NumPy on the same arrays."""
    import numpy as np  # late: NumPy takes long to import

    from tilelang.semantics.reference import compare, random_arrays  # late: only checks need it

    kernel = tl.compile(what)
    (output,) = kernel.computation.outputs
    arrays = random_arrays(kernel.computation)
    ours, theirs = (np.empty(output.shape, np.float32) for _ in range(2))
    kernel(**arrays, out=ours)
    report = compare(kernel.computation, arrays, {output.name: ours})
    runs: tuple[Callable[[], object], ...] = (lambda: kernel(**arrays, out=ours), lambda: by_numpy(*arrays.values(), out=theirs))
    times: list[list[float]] = [[], []]
    for _ in range(rounds):
        for found, run in zip(times, runs, strict=True):
            time.sleep(PAUSE_S)
            run()  # warms the caches
            start = time.perf_counter()
            run()
            found.append(time.perf_counter() - start)
    kernel_s, numpy_s = (statistics.median(found) for found in times)
    return Line(name, report.ok, report.runs[0].worst, kernel_s, numpy_s)


def table(lines: Sequence[Sequence[str]]) -> str:
    """Rows of cells in columns, the first two to the left, numbers to the right."""
    widths = [max(len(line[c]) for line in lines) for c in range(len(lines[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(w) if c < 2 else cell.rjust(w) for c, (cell, w) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def main(matmul_size: int = 1024, softmax_size: int = 2048, rounds: int = 5) -> int:
    """The demo; its exit code."""
    try:
        return _run(matmul_size, softmax_size, rounds)
    except tl.TileLangError as error:
        print(error, file=sys.stderr)
        return 3 if isinstance(error, tl.DeviceError) else 2


def _run(matmul_size: int, softmax_size: int, rounds: int) -> int:
    import numpy as np  # late: NumPy takes long to import

    target = tl.target()
    n, s = matmul_size, softmax_size
    print(f"tilelang on {target.device}, NumPy {np.__version__}\n")
    lines = [
        measure(f"matrix product, {n} x {n} x {n}", matmul(n, n, n), np.matmul, rounds),
        measure(f"softmax in one kernel, {s} x {s}", softmax(s, s), numpy_softmax, rounds),
    ]
    print(table([("", "agreement", "ms", "NumPy ms", "x NumPy"), *(line.cells for line in lines)]))
    return 0 if all(line.right for line in lines) else 1


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is below 1")
    return number


def command(words: Sequence[str] | None = None) -> int:
    """The command line; returns its exit code. Raises SystemExit for invalid arguments."""
    parser = argparse.ArgumentParser(
        "python -m tilelang.demo", description="a matrix product and a softmax on the device found here, beside NumPy"
    )
    parser.add_argument("--matmul-size", type=_positive, default=1024, help="rows and columns of the matrices (1024)")
    parser.add_argument("--softmax-size", type=_positive, default=2048, help="rows and columns of the softmax (2048)")
    parser.add_argument("--rounds", type=_positive, default=5, help="how often each side is timed (5)")
    return main(**vars(parser.parse_args(words)))


if __name__ == "__main__":
    sys.exit(command())
