"""What an array must be to stand for a tensor: shape, type, range, memory of its own.

The same for kernels, the reference and the simulator. Two codes: `arguments` where the arrays are not the right ones (too many,
missing, unknown, given twice), `argument` where one array does not fit its tensor.
"""

from __future__ import annotations

import builtins
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from tilelang.computations.computation import Computation, Tensor
from tilelang.core import dlpack
from tilelang.core.dtype import DType, bfloat16, float8_e4m3, float8_e5m2
from tilelang.errors import ComputationError, brief, counted

# Types of PyTorch's that NumPy does not know, with the type of PyTorch's that has as many bits.
_BY_BITS = {
    "torch.bfloat16": (bfloat16, "int16"), "torch.float8_e4m3fn": (float8_e4m3, "uint8"), "torch.float8_e5m2": (float8_e5m2, "uint8"),
}  # fmt: skip


def array_type(t: Tensor) -> Any:
    """The NumPy type of a tensor's arrays."""
    return t.dtype.numpy


# NumPy's own arrays of so many bytes begin 16 bytes past a line of the caches: vectors touch two lines, and stores past the caches
# write parts of lines.
_LARGE_BYTES, _LINE_BYTES = 1 << 20, 64


def new_array(t: Tensor, type: Any) -> Any:
    """An array for a tensor, its values left open; a large one begins at a line of the caches. Raises ComputationError where there is
    not so much memory."""
    import numpy as np

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
    """An array of a tensor in C order: itself, or a copy. Raises ComputationError where there is no memory for one."""
    import numpy as np

    if array.flags.c_contiguous:
        return array
    copy = new_array(t, array.dtype)
    np.copyto(copy, array)
    return copy


def tensor_bytes(*tensors: Tensor) -> int:
    """What the arrays of tensors take together."""
    return sum(math.prod(t.shape) * t.dtype.bytes for t in tensors)


def check_memory(computation: Computation, evaluated_bytes: int = 0) -> None:
    """Refuses a computation whose tensors take more than all memory here, before anything is made for it. evaluated_bytes: what the
    reference holds beside them."""
    try:
        most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):  # not on this system
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
    return ComputationError("too-large-to-run", message, mend="use smaller sizes")


def share_memory(a: Any, b: Any) -> bool:
    """Whether two NumPy arrays have bytes in common; the quick answer first."""
    import numpy as np

    both = isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
    return both and np.may_share_memory(a, b) and np.shares_memory(a, b)


def first(out: Any) -> Any:
    """One of the arrays of an `out=`, whatever its form."""
    if isinstance(out, Mapping):
        return next(iter(out.values()), None)
    return out[0] if isinstance(out, (tuple, list)) and out else out


def wrong(name: str, what: str, mend: str, counterexample: str | None = None) -> ComputationError:
    """The error of an array that does not fit."""
    return ComputationError("argument", f"the array for {name} {what}", mend=mend, counterexample=counterexample)


def inputs(computation: Computation, arrays: Sequence[Any], named: Mapping[str, Any]) -> dict[Tensor, Any]:
    """The inputs with their NumPy arrays, checked. Raises ComputationError where one does not fit."""
    found = {}
    for tensor, value in zip(computation.inputs, bind(computation, arrays, named), strict=True):
        array = found[tensor] = as_array(tensor.name, value, tensor.dtype)
        check_array(tensor, array_type(tensor), array, "input")
        check_range(tensor, array)
    return found


def as_array(name: str, value: Any, type: DType | None = None) -> Any:
    """An argument as a NumPy array: arrays as they are, anything else by NumPy, tensors of PyTorch's types that it lacks by their bits,
    arrays of libraries that NumPy cannot ask by DLPack. type: the element type that lists of Python numbers take.

    Raises ComputationError if NumPy cannot make an array of it, if a number of a list does not fit the type, and for masked arrays,
    whose masks a kernel would not see.
    """
    import numpy as np

    if isinstance(value, np.ma.MaskedArray):
        raise wrong(name, "is masked, but kernels ignore masks", "pass value.filled(...)")
    if isinstance(value, np.ndarray):
        return value
    try:
        by_bits = _BY_BITS.get(str(getattr(value, "dtype", "")))
        if by_bits is not None:
            import torch

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
    """Raises ComputationError if a number does not fit a type. As in an expression, a float type holds any number in its range,
    rounded; an integer type holds whole numbers, and bool holds True and False."""
    kinds: tuple[builtins.type, ...] = (bool,) if type.kind == "bool" else (int, float) if type.is_float else (int,)
    for number in numbers:
        if not isinstance(number, kinds) or not type.holds(number):
            raise wrong(
                name,
                f"contains {brief(number)}, which does not fit {type}",
                "pass numbers that fit, or declare another type",
            )


def _numbers(value: Any) -> list[bool | int | float] | None:
    """The Python numbers in nested lists; None if there is anything else in them."""
    if isinstance(value, (list, tuple, range)):
        parts = [_numbers(v) for v in value]
        return None if None in parts else [n for part in parts if part is not None for n in part]
    return [value] if value.__class__ in (bool, int, float) else None


def bind(computation: Computation, arrays: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
    """The inputs in order, from arguments by position and by name. Raises ComputationError where they do not fit."""
    if not named and len(arrays) == len(computation.inputs):
        return list(arrays)
    names = [t.name for t in computation.inputs]
    if len(arrays) > len(names):
        takes = f"the computation {computation.name} takes {counted(len(names), 'input')} ({', '.join(names)})"
        raise ComputationError(
            "arguments", f"{takes}, got {len(arrays)}", mend="pass one array for each input; the output goes to out="
        )
    found = dict(zip(names, arrays, strict=False))
    for name, value in named.items():
        if name not in names:
            raise ComputationError(
                "arguments",
                f"the computation {computation.name} has no input {name}",
                mend="use one of its inputs " + ", ".join(names),
            )
        if name in found:
            raise ComputationError("arguments", f"{name} was given twice", mend="pass it by position or by name, not both")
        found[name] = value
    missing = [n for n in names if n not in found]
    if missing:
        raise ComputationError(
            "arguments",
            f"the computation {computation.name} needs {', '.join(missing)} too",
            mend="pass an array for each input",
        )
    return [found[n] for n in names]


def check_range(tensor: Tensor, array: Any) -> None:
    """Raises ComputationError where an integer that may index lies outside the range that its input states."""
    if tensor.range is None or array.size == 0:
        return
    low, high = tensor.range
    least, most = int(array.min()), int(array.max())
    if least < low or most >= high:
        import numpy as np

        at = tuple(int(i) for i in np.argwhere((array < low) | (array >= high))[0])
        raise wrong(
            tensor.name,
            f"holds values outside its range, {low} <= value < {high}",
            f"pass integers in that range, or declare another one: range=({min(low, least)}, {max(high, most + 1)})",
            f"{tensor.name}{list(at)} = {array[at]}",
        )


def check_array(tensor: Tensor, type: Any, array: Any, role: str) -> None:
    """Raises ComputationError where shape or type are not the tensor's. role: input or output."""
    if tuple(array.shape) != tensor.shape:
        raise wrong(
            tensor.name, f"has shape {tuple(array.shape)}, but the {role} has {tensor.shape}", "pass an array of that shape"
        )
    if array.dtype != type:
        mend = f"convert it: .astype({type.name!r})" if role == "input" else "pass an array of that type"
        raise wrong(tensor.name, f"has type {array.dtype}, but the {role} has {tensor.dtype}", mend)
