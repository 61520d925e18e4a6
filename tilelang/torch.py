"""PyTorch operators made of computations: `import tilelang.torch`, which needs PyTorch.

An operator is a custom operator of `torch.library`, so `torch.compile` and PyTorch's other tools treat it as a unit. Its gradient
is that of `tl.grad`, compiled as a separate operator at the first backward pass, which can be differentiated again. Tensors are
passed without copies.
"""

from __future__ import annotations

import itertools
from typing import Any

from tilelang.computations.arguments import as_array, bind
from tilelang.computations.computation import Computation, Tensor, as_computation
from tilelang.computations.computation import computation as make_computation
from tilelang.computations.computation import input as make_input
from tilelang.computations.gradient import grad
from tilelang.errors import ComputationError, brief
from tilelang.runtime.kernel import Kernel
from tilelang.runtime.kernel import compile as compile_kernel
from tilelang.schedules.schedule import Schedule

try:
    import torch
except ImportError as error:
    raise ImportError(
        "tilelang.torch needs PyTorch: pip install 'tilelang-rtile[torch]', or torch by itself", name="torch"
    ) from error

_DIALECTS = {"cpu": "cpu", "cuda": "hip" if torch.version.hip else "cuda"}
_numbers = itertools.count()


class Operator:
    """A computation as a PyTorch operator; see `operator`."""

    def __init__(self, what: Computation | Tensor | Schedule) -> None:
        self.what = what
        self.computation = what.computation if isinstance(what, Schedule) else as_computation(what)
        self.kernels: dict[str, Kernel] = {}
        self.gradients: dict[tuple[bool, ...], Operator] = {}
        self.__name__ = self.computation.name
        self.__doc__ = f"The computation\n\n{self.computation.text}\nas a PyTorch operator."
        count = len(self.computation.outputs)
        # a unique name for each operator, because PyTorch's registry keeps them all
        name = f"tilelang::{self.computation.name}_{next(_numbers)}"
        schema = f"({', '.join(f'Tensor x{n}' for n in range(len(self.computation.inputs)))})"
        schema += " -> " + ("Tensor" if count == 1 else f"({', '.join(['Tensor'] * count)})")
        self.op = torch.library.custom_op(name, self._run, mutates_args=(), schema=schema)
        self.op.register_fake(self._fake)
        self.op.register_autograd(self._backward, setup_context=_save)

    def __call__(self, *tensors: Any, **named: Any) -> Any:
        """The output, or a tuple of several. tensors, named: the inputs, in order or by name.

        Raises ComputationError for tensors of other types or shapes, and for a device without a kernel.
        """
        given = bind(self.computation, tensors, named)
        self._check(given)
        return self.op(*given)

    def __repr__(self) -> str:
        return f"<operator {self.computation.name}>"

    def kernel(self, device: Any = "cpu") -> Kernel:
        """The kernel for tensors of a device, compiled at its first use."""
        kind = torch.device(device).type
        if kind not in _DIALECTS:
            help = "move them to the CPU or to a CUDA device"
            raise ComputationError("torch-device", f"there are no kernels for tensors on {device}", help=help)
        if kind not in self.kernels:
            self.kernels[kind] = compile_kernel(self.what, target=_DIALECTS[kind])
        return self.kernels[kind]

    def _run(self, *tensors: Any) -> Any:
        device = tensors[0].device if tensors else torch.device("cpu")
        outs = self._fake(*tensors)
        several = outs if isinstance(outs, tuple) else (outs,)
        given = [t.detach().contiguous() for t in tensors]
        if device.type == "cpu":
            self.kernel(device)(*map(_array, given), out=tuple(map(_array, several)))
        else:
            self.kernel(device)(*given, out=several)
        return outs

    def _fake(self, *tensors: Any) -> Any:
        device = tensors[0].device if tensors else "cpu"
        outs = tuple(torch.empty(t.shape, dtype=_type(t), device=device) for t in self.computation.outputs)
        return outs if len(outs) > 1 else outs[0]

    def _check(self, tensors: Any) -> None:
        for t, given in zip(self.computation.inputs, tensors, strict=True):
            if not isinstance(given, torch.Tensor):
                raise ComputationError("argument", f"{brief(given)} for {t!r} is not a tensor", help="pass PyTorch tensors")
            if tuple(given.shape) != t.shape or given.dtype != _type(t):
                message = f"the tensor for {t!r} has the shape {tuple(given.shape)} and the type {given.dtype}"
                raise ComputationError("argument", message, help=f"pass one of shape {t.shape} and type {_type(t)}")

    # ------------------------------------------------------------ the gradient

    def _backward(self, ctx: Any, *seeds: Any) -> Any:
        needed = tuple(
            wanted and t.dtype.is_float for wanted, t in zip(ctx.needs_input_grad, self.computation.inputs, strict=True)
        )
        if not any(needed):
            return (None,) * len(needed) if len(needed) > 1 else None
        device = seeds[0].device
        floats = [
            torch.zeros(t.shape, dtype=_type(t), device=device) if s is None else s
            for s, t in zip(seeds, self.computation.outputs, strict=True)
            if t.dtype.is_float
        ]
        gradient = self.gradient(needed)
        known = dict(zip((t.name for t in self.computation.inputs), ctx.saved_tensors, strict=True))
        known |= dict(zip(_seed_names(self.computation), floats, strict=True))
        found = gradient(*(known[t.name] for t in gradient.computation.inputs)) if gradient.computation.inputs else gradient()
        values = iter(found if isinstance(found, tuple) else (found,))
        result = tuple(next(values) if n else None for n in needed)
        return result if len(result) > 1 else result[0]

    def gradient(self, needed: tuple[bool, ...]) -> Operator:
        """The operator of the gradients by some inputs: of those inputs and of seeds, as far as it depends on them."""
        if needed not in self.gradients:
            outputs = tuple(t for t in self.computation.outputs if t.dtype.is_float)
            names = _seed_names(self.computation)
            seeds = tuple(make_input(n, t.dtype, *t.dims) for n, t in zip(names, outputs, strict=True))
            wanted = tuple(t for t, n in zip(self.computation.inputs, needed, strict=True) if n)
            gradients = grad(outputs, wanted, seeds)
            self.gradients[needed] = Operator(make_computation(f"{self.computation.name}_gradient", gradients))
        return self.gradients[needed]


def operator(what: Computation | Tensor | Schedule) -> Operator:
    """A PyTorch operator that computes `what`: a function of tensors, one for each input of the computation.

    what: a computation, a tensor of one, or a schedule for one. Kernels are compiled at the first call, for the device of the tensors.
    The operator is differentiable by its inputs of floats, as often as wished, and works under `torch.compile`.

        i, j = tl.axes(i=64, j=100)
        X = tl.input("X", tl.float32, i, j)
        softmax = tilelang.torch.operator(tl.define("softmax", tl.softmax(X[i, j], over=j), i, j))
        softmax(torch.randn(64, 100, requires_grad=True)).square().sum().backward()
    """
    return Operator(what)


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs)


def _seed_names(computation: Computation) -> list[str]:
    """Names for the seeds of a computation's float outputs, different from those of its tensors."""
    taken = {t.name for t in (*computation.inputs, *(t for d in computation.definitions for t in d.tensors))}
    found = []
    for t in computation.outputs:
        if t.dtype.is_float:
            tried = itertools.chain((f"d{t.name}",), (f"d{t.name}_{n}" for n in itertools.count(2)))
            found.append(next(name for name in tried if name not in taken))
            taken.add(found[-1])
    return found


def _type(t: Tensor) -> Any:
    return getattr(torch, {"float8_e4m3": "float8_e4m3fn"}.get(t.dtype.name, t.dtype.name))


def _array(tensor: Any) -> Any:
    """A NumPy array over the memory of a tensor."""
    return as_array("tensor", tensor)


__all__ = ["Operator", "operator"]
