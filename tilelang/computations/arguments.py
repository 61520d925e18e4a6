"""Checks of array arguments against their tensors: shape, type, range, separate memory.

Kernels, the reference and the simulator share them. There are two error codes: `arguments` for the wrong set of arrays (too many,
missing, unknown, duplicate), `argument` for an array that does not fit its tensor.
"""

from __future__ import annotations

import builtins
import math
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from tilelang.computations.computation import Computation, Tensor
from tilelang.core import dlpack
from tilelang.core.dtype import DType, bfloat16, float8_e4m3, float8_e5m2
from tilelang.errors import ComputationError, brief, counted

# PyTorch types that NumPy does not know, each with a PyTorch type of the same size.
_BY_BITS = {
    "torch.bfloat16": (bfloat16, "int16"), "torch.float8_e4m3fn": (float8_e4m3, "uint8"), "torch.float8_e5m2": (float8_e5m2, "uint8"),
}  # fmt: skip


def array_type(t: Tensor) -> Any:
    """The NumPy type of a tensor's arrays."""
    return t.dtype.numpy


# NumPy arrays of at least this size begin 16 bytes past a cache line: vectors straddle two lines, and streaming stores write partial
# lines.
_LARGE_BYTES, _LINE_BYTES = 1 << 20, 64


def new_array(t: Tensor, type: Any) -> Any:
    """An uninitialised array for a tensor, aligned to a cache line if large. Raises ComputationError if memory is insufficient."""
    import numpy as np  # late: NumPy takes long to import

    size = math.prod(t.shape) * np.dtype(type).itemsize
    try:
        if size < _LARGE_BYTES:
            return np.empty(t.shape, type)
        memory = np.empty(size + _LINE_BYTES, np.uint8)
        begin = -memory.__array_interface__["data"][0] % _LINE_BYTES
        return memory[begin : begin + size].view(type).reshape(t.shape)
    except MemoryError:
        raise _no_memory(f"the array for {t.name} takes {tensor_bytes(t):,} bytes, which are not free") from None


def contiguous(t: Tensor, array: Any) -> Any:
    """An array of a tensor in C order: itself, or a copy. Raises ComputationError if there is not enough memory for a copy."""
    import numpy as np  # late: NumPy takes long to import

    if array.flags.c_contiguous:
        return array
    copy = new_array(t, array.dtype)
    np.copyto(copy, array)
    return copy


def tensor_bytes(*tensors: Tensor) -> int:
    """The total size of the tensors' arrays."""
    return sum(math.prod(t.shape) * t.dtype.bytes for t in tensors)


def check_memory(computation: Computation, evaluated_bytes: int = 0) -> None:
    """Refuses a computation larger than memory before allocating anything. evaluated_bytes: additional memory for the reference."""
    try:
        most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):  # not available on this system
        return
    size = tensor_bytes(*computation.inputs, *computation.outputs)
    if size > most:
        raise _no_memory(f"the tensors of {computation.name} take {size:,} bytes, but this machine's memory has {most:,}")
    if size + evaluated_bytes > most:
        evaluated = f"the reference holds {evaluated_bytes:,} bytes"
        raise _no_memory(
            f"the tensors of {computation.name} take {size:,} bytes and {evaluated}, but this machine's memory has {most:,}"
        )


def _no_memory(message: str) -> ComputationError:
    return ComputationError("too-large-to-run", message, help="use smaller sizes")


def share_memory(a: Any, b: Any) -> bool:
    """Whether two NumPy arrays share bytes; the cheap test first."""
    import numpy as np  # late: NumPy takes long to import

    both = isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
    return both and np.may_share_memory(a, b) and np.shares_memory(a, b)


def first(out: Any) -> Any:
    """One of the arrays of an `out=` argument, whatever its form."""
    if isinstance(out, Mapping):
        return next(iter(out.values()), None)
    return out[0] if isinstance(out, (tuple, list)) and out else out


def wrong(name: str, what: str, help: str, counterexample: str | None = None) -> ComputationError:
    """The error for an array that does not fit."""
    return ComputationError("argument", f"the array for {name} {what}", help=help, counterexample=counterexample)


def inputs(computation: Computation, arrays: Sequence[Any], named: Mapping[str, Any]) -> dict[Tensor, Any]:
    """The inputs as checked NumPy arrays. Raises ComputationError if one does not fit."""
    found = {}
    for tensor, value in zip(computation.inputs, bind(computation, arrays, named), strict=True):
        array = found[tensor] = as_array(tensor.name, value, tensor.dtype)
        check_array(tensor, array_type(tensor), array, "input")
        check_range(tensor, array)
    return found


def as_array(name: str, value: Any, type: DType | None = None) -> Any:
    """An argument as a NumPy array. Arrays are used as they are; PyTorch tensors of types that NumPy lacks are reinterpreted by their
    bits; arrays that NumPy cannot convert are taken through DLPack. type: the element type for lists of Python numbers.

    Raises ComputationError if NumPy cannot make an array of it, if a number of a list does not fit the type, and for masked arrays,
    because a kernel would ignore their masks.
    """
    import numpy as np  # late: NumPy takes long to import

    masked = getattr(
        sys.modules.get("numpy.ma"), "MaskedArray", ()
    )  # an array is masked only if this module, slow to import, is there
    if isinstance(value, masked):
        raise wrong(name, "is masked, but kernels ignore masks", "pass value.filled(...)")
    if isinstance(value, np.ndarray):
        return value
    try:
        by_bits = _BY_BITS.get(str(getattr(value, "dtype", "")))
        if by_bits is not None:
            import torch  # late: an optional library

            return value.detach().view(getattr(torch, by_bits[1])).numpy().view(by_bits[0].numpy)
        if not hasattr(value, "__array__") and hasattr(value, "__dlpack__"):
            return dlpack.host_array(value)
        numbers = _numbers(value) if type is not None else None
        if type is not None and numbers is not None:
            _check_numbers(name, numbers, type)
        array = np.asarray(value, type.numpy if type is not None and numbers is not None else None)
        if array.dtype == object:
            raise TypeError(f"it is a {value.__class__.__name__}")
        return array
    except (BufferError, TypeError, ValueError, RuntimeError) as error:
        raise wrong(name, f"is not an array: {error}", "pass a NumPy array, or a PyTorch tensor on the host, detached") from None


def _check_numbers(name: str, numbers: list[bool | int | float], type: DType) -> None:
    """Raises ComputationError if a number does not fit a type. As in an expression, a float type accepts any number in its range,
    rounded; an integer type accepts whole numbers, and bool accepts True and False."""
    kinds: tuple[builtins.type, ...] = (bool,) if type.kind == "bool" else (int, float) if type.is_float else (int,)
    for number in numbers:
        if not isinstance(number, kinds) or not type.holds(number):
            raise wrong(
                name,
                f"contains {brief(number)}, which does not fit {type}",
                "pass numbers that fit, or declare another type",
            )


def _numbers(value: Any) -> list[bool | int | float] | None:
    """The Python numbers in nested lists; None if they contain anything else."""
    if isinstance(value, (list, tuple, range)):
        parts = [_numbers(v) for v in value]
        return None if None in parts else [n for part in parts if part is not None for n in part]
    return [value] if value.__class__ in (bool, int, float) else None


def bind(computation: Computation, arrays: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
    """The inputs in order, from positional and named arguments. Raises ComputationError if they do not match."""
    if not named and len(arrays) == len(computation.inputs):
        return list(arrays)
    names = [t.name for t in computation.inputs]
    if len(arrays) > len(names):
        takes = f"the computation {computation.name} takes {counted(len(names), 'input')} ({', '.join(names)})"
        raise ComputationError(
            "arguments", f"{takes}, got {len(arrays)}", help="pass one array for each input; the output goes to out="
        )
    found = dict(zip(names, arrays, strict=False))
    for name, value in named.items():
        if name not in names:
            raise ComputationError(
                "arguments",
                f"the computation {computation.name} has no input {name}",
                help="use one of its inputs " + ", ".join(names),
            )
        if name in found:
            raise ComputationError("arguments", f"{name} was given twice", help="pass it by position or by name, not both")
        found[name] = value
    missing = [n for n in names if n not in found]
    if missing:
        raise ComputationError(
            "arguments",
            f"the computation {computation.name} needs {', '.join(missing)} too",
            help="pass an array for each input",
        )
    return [found[n] for n in names]


def check_range(tensor: Tensor, array: Any) -> None:
    """Raises ComputationError if an integer input used as an index is out of its declared range."""
    if tensor.range is None or array.size == 0:
        return
    low, high = tensor.range
    least, most = int(array.min()), int(array.max())
    if least < low or most >= high:
        import numpy as np  # late: NumPy takes long to import

        at = tuple(int(i) for i in np.argwhere((array < low) | (array >= high))[0])
        raise wrong(
            tensor.name,
            f"holds values outside its range, {low} <= value < {high}",
            f"pass integers in that range, or declare another one: range=({min(low, least)}, {max(high, most + 1)})",
            f"{tensor.name}{list(at)} = {array[at]}",
        )


def check_array(tensor: Tensor, type: Any, array: Any, role: str) -> None:
    """Raises ComputationError if shape or type differ from the tensor's. role: input or output."""
    if tuple(array.shape) != tensor.shape:
        raise wrong(
            tensor.name, f"has shape {tuple(array.shape)}, but the {role} has {tensor.shape}", "pass an array of that shape"
        )
    if array.dtype != type:
        help = f"convert it: .astype({type.name!r})" if role == "input" else "pass an array of that type"
        raise wrong(tensor.name, f"has type {array.dtype}, but the {role} has {tensor.dtype}", help)
