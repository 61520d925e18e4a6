"""Kernels that differ only in names are one function of the source; any other difference keeps them apart."""

from collections.abc import Callable

import numpy as np
import pytest

import tilelang as tl
from tilelang.core.expr import Expr
from tilelang.lowering.equal_kernels import first_equal

I, J = tl.axes(i=8, j=12)
Function = Callable[[Expr], Expr]


def chain(*functions: Function) -> tl.Kernel:
    """A function after another one, each a kernel of its own; a sum of all is the output."""
    tensors = [tl.input("X", tl.float32, I, J)]
    for n, function in enumerate(functions):
        tensors.append(tl.define(f"Y{n}", function(tensors[-1][I, J]), I, J))
    total = tl.define("total", sum((t[I, J] for t in tensors[1:]), tl.cast(0, tl.float32)), I, J)
    schedule = tl.schedule(total)
    for t in tensors[1:]:
        schedule = schedule.compute(t.name, tl.global_, steps=tl.move().tile(i=1).to(tl.block).vectorize(j=4))
    return tl.compile(schedule, "cpu")


def functions_of(kernel: tl.Kernel) -> int:
    return len({first.name for first in first_equal(kernel.program).values()})


def test_equal_layers_are_one_function() -> None:
    kernel = chain(*[lambda x: tl.exp(x * 0.25)] * 4)
    assert len(kernel.program.kernels) == 5 and functions_of(kernel) == 2
    assert kernel.source.count("EXPORT void") == 2
    assert kernel.check()


OTHERS: dict[str, Function] = {
    "constant": lambda x: tl.exp(x * 0.5),
    "function": lambda x: tl.sin(x * 0.25),
    "operator": lambda x: tl.exp(0.25 - x),
    "operation": lambda x: tl.exp(x * 0.25) * x,
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_other_layers_are_not(other: Function) -> None:
    kernel = chain(lambda x: tl.exp(x * 0.25), other)
    assert functions_of(kernel) == 3
    assert kernel.check()


def test_zeros_of_different_signs_are_different() -> None:
    i = tl.axes(i=16)
    X = tl.input("X", tl.float32, i)
    Y, Z = (tl.define(n, tl.where(X[i] > 1, 1.0, zero), i) for n, zero in (("Y", 0.0), ("Z", -0.0)))
    plan = tl.schedule(tl.define("W", 1 / Y[i] - 1 / Z[i], i))
    for name in "YZ":
        plan = plan.compute(name, tl.global_, steps=tl.move().tile(i=8).to(tl.block))
    assert (tl.compile(plan, "cpu")(np.full(16, -1, np.float32)) == np.inf).all()
