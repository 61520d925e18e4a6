"""TileLang: a scheduling language for fast kernels. `import tilelang as tl` gives the public names; heavy parts load on first use."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tilelang.computations.composed import clamp, layer_norm, log_softmax, mean, rms_norm, silu, softmax, softplus, var
from tilelang.computations.computation import Computation, Tensor, axes, computation, input, symbol
from tilelang.computations.define import define
from tilelang.computations.functions import (
    abs,
    all,
    any,
    argmax,
    argmin,
    cast,
    ceil,
    cos,
    equal,
    erf,
    exp,
    exp2,
    expm1,
    floor,
    gelu,
    gelu_tanh,
    isnan,
    log,
    log1p,
    log2,
    max,
    maximum,
    min,
    minimum,
    not_equal,
    pad,
    prod,
    reduce,
    relu,
    round,
    rsqrt,
    sigmoid,
    sin,
    sqrt,
    sum,
    tanh,
    where,
)
from tilelang.core import dtype as _dtype
from tilelang.core.dtype import (
    DType,
    bfloat16,
    float8_e4m3,
    float8_e5m2,
    float16,
    float32,
    float64,
    int4,
    int8,
    int16,
    int32,
    int64,
    uint4,
    uint8,
    uint16,
    uint32,
    uint64,
)
from tilelang.core.expr import Axis
from tilelang.core.layout import Layout, layout
from tilelang.errors import ComputationError, DeviceError, ParseError, Refusal, TileLangError
from tilelang.options import Options
from tilelang.profiles.files import load_profile
from tilelang.profiles.profile import (
    Level,
    Memory,
    Profile,
    block,
    cluster,
    global_,
    image,
    l1,
    l2,
    register,
    shared,
    thread,
    warp,
    warpgroup,
)
from tilelang.renamed import MODULES, MovedModules
from tilelang.schedules.running_values import before, now
from tilelang.schedules.schedule import Move, Schedule, blocks, can, extent, move, schedule, threads, warpgroups, warps
from tilelang.schedules.steps import hole

if TYPE_CHECKING:
    from tilelang.computations.gradient import grad
    from tilelang.grammar import parse, read
    from tilelang.instructions.instruction import computes, fragment, instruction, moves, updates, use
    from tilelang.instructions.operand import operand
    from tilelang.runtime.kernel import Kernel, Target, compile, devices, simulate, target
    from tilelang.runtime.kernel_function import kernel

bool = _dtype.bool_

_LAZY = {
    **dict.fromkeys(("Kernel", "Target", "compile", "devices", "simulate", "target"), "runtime.kernel"),
    "grad": "computations.gradient",
    "kernel": "runtime.kernel_function",
    **dict.fromkeys(("computes", "fragment", "instruction", "moves", "updates", "use"), "instructions.instruction"),
    "operand": "instructions.operand",
    **dict.fromkeys(("parse", "read"), "grammar"),
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY and (name == "testing" or f"tilelang.{name}" in MODULES):
        import importlib  # late: dir(tilelang) lists what is public only

        return importlib.import_module(f"tilelang.{name}")
    if name == "__version__":
        from tilelang.core.version import VERSION  # late: dir(tilelang) lists what is public only

        return VERSION
    if name in _LAZY:
        import importlib  # late: dir(tilelang) lists what is public only

        globals()[name] = getattr(importlib.import_module(f"tilelang.{_LAZY[name]}"), name)
        return globals()[name]
    raise AttributeError(f"module 'tilelang' has no attribute {name!r}", name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    """The public names, whether they are loaded yet or not."""
    return sorted([*__all__, "__version__", "testing"])


class _Package(ModuleType):
    """A submodule sets itself on its package when it is imported; a public name that is the same stays what it is."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in __all__ and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
sys.meta_path.append(MovedModules())

__all__ = [
    "Axis", "Computation", "ComputationError", "DType", "DeviceError", "Kernel", "Layout", "Level", "Memory", "Move", "Options",
    "ParseError", "Profile", "Refusal", "Schedule", "Target", "Tensor", "TileLangError", "abs", "all", "any", "argmax",
    "argmin", "axes", "before", "bfloat16", "block", "blocks", "bool", "can", "cast", "ceil", "clamp", "cluster", "compile",
    "computation", "computes", "cos", "define", "devices", "equal", "erf", "exp", "exp2", "expm1", "extent", "float16",
    "float32", "float64", "float8_e4m3", "float8_e5m2", "floor", "fragment", "gelu", "gelu_tanh", "global_", "grad", "hole",
    "image", "input", "instruction", "int16", "int32", "int4", "int64", "int8", "isnan", "kernel", "l1", "l2", "layer_norm",
    "layout", "load_profile", "log", "log1p", "log2", "log_softmax", "max", "maximum", "mean", "min", "minimum", "move",
    "moves", "not_equal", "now", "operand", "pad", "parse", "prod", "read", "reduce", "register", "relu", "rms_norm", "round", "rsqrt",
    "schedule", "shared", "sigmoid", "silu", "simulate", "sin", "softmax", "softplus", "sqrt", "sum", "symbol", "tanh",
    "target", "thread", "threads", "uint16", "uint32", "uint4", "uint64", "uint8", "updates", "use", "var", "warp", "warpgroup",
    "warpgroups", "warps", "where",
]  # fmt: skip
