"""What TVM makes of the operators of `benchmarks/operators.py` by its rules for processors, without tuning."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.operators_cases import Operator
from benchmarks.operators_peers import Array, Arrays

PROCESSORS = {"avx512f": "skylake-avx512", "avx2": "haswell"}  # LLVM's least processor with a feature


def target(threads: int) -> Any:
    """This machine, as TVM names it: a processor with the widest vectors that it has."""
    import tvm

    flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").split() if Path("/proc/cpuinfo").exists() else []
    found = next((name for flag, name in PROCESSORS.items() if flag in flags), "x86-64")
    return tvm.target.Target({"kind": "llvm", "mcpu": found, "num-cores": threads})


def function(operator: Operator) -> Any:
    """The operator as TVM's library of operators writes it."""
    from tvm import te, topi

    *names, _ = operator.shapes
    X, *others = (te.placeholder(shape, name=name, dtype="float32") for name, shape in given_shapes(operator, names).items())
    match operator.kind:
        case "matmul":
            result = topi.matmul(X, *others)
        case "row_sum":
            result = topi.sum(X, axis=1)
        case "relu":
            result = topi.nn.relu(X)
        case _:
            r, stride, padding, _ = operator.facts
            if operator.kind == "convolution":
                result = topi.nn.conv2d(X, *others, stride, padding, 1, "NCHW")
            elif operator.kind == "depthwise":
                result = topi.nn.depthwise_conv2d_nchw(X, *others, stride, padding, 1)
            else:
                result = topi.nn.pool2d(X, [r, r], [stride] * 2, [1, 1], [padding] * 4, "avg", False, "NCHW", True)
    return te.create_prim_func([X, *others, result])


def given_shapes(operator: Operator, names: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """The inputs' shapes; a filter of a depthwise convolution has a dimension more for TVM."""
    shapes = {name: operator.shapes[name] for name in names}
    return shapes | ({"W": (shapes["W"][0], 1, *shapes["W"][1:])} if operator.kind == "depthwise" else {})


def peer(operator: Operator, arrays: Arrays, threads: int) -> Callable[[], Any]:
    """A call of what TVM's rules for processors make: those for products with a vector and for reductions; what they do not take stays
    the loops of one thread, as in its default pipeline."""
    os.environ.setdefault("TVM_NUM_THREADS", str(threads))  # half as many as there are, else
    import tvm
    from tvm.s_tir import dlight

    machine = target(threads)
    module = tvm.IRModule({"main": function(operator).with_attr("target", machine)})
    with machine:
        module = dlight.ApplyDefaultSchedule(dlight.cpu.GEMV(), dlight.cpu.Reduction())(module)
    return called(operator, arrays, tvm.compile(module, machine))


def called(operator: Operator, arrays: Arrays, library: Any) -> Callable[[], Any]:
    """A call of a compiled function, over arrays of TVM's own: its code for long vectors wants them aligned."""
    import tvm

    *names, result = operator.shapes
    inputs = [tvm.runtime.tensor(arrays[name].reshape(shape)) for name, shape in given_shapes(operator, names).items()]
    out, main = tvm.runtime.tensor(np.empty(operator.shapes[result], np.float32)), library["main"]

    seen = np.from_dlpack(out)

    def call() -> Array:
        main(*inputs, out)
        return seen

    return call
