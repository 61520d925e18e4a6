"""Emulates programs on this CPU: their emitted text and launches, compared with the reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tilelang.lowering import ir
from tilelang.lowering.descriptors import tensor_maps
from tilelang.lowering.targets.c.emitter import emit, kernel_names
from tilelang.runtime.kernel import DIALECTS, Kernel
from tilelang.semantics import reference
from tilelang.testing.emulation.launch import Launch, Mapped, run


def run_program(
    program: ir.Program, dialect: str, arrays: Mapping[str, Any], source: str | None = None, **how: Any
) -> dict[str, Any]:
    """The outputs by name of a program's kernels, run as CUDA or HIP text on input arrays by name. how: as for `run`.

    source: another text of the same kernels. Outputs and workspace initially have all bits set, which is NaN for floats.
    """
    words = DIALECTS[dialect]
    names = kernel_names(program, words)
    found = run(
        emit(program, words) if source is None else source,
        [Launch(names[k.name], k.grid, k.threads, _arguments(k)) for k in program.kernels],
        {b.name: _memory(b, arrays) for b in program.buffers},
        shared_bytes=max((k.shared_bytes for k in program.kernels), default=0),
        **how,
    )
    return {b.name: found[b.name] for b in program.buffers if b.role == "output"}


def _arguments(kernel: ir.Kernel) -> tuple[Any, ...]:
    """The names of a kernel's buffers, and its tensor maps."""
    return (*(b.name for b in kernel.arguments), *(Mapped(name, map) for name, map in tensor_maps(kernel)))


def _memory(buffer: ir.Buffer, arrays: Mapping[str, Any]) -> Any:
    """An input unchanged; for other buffers, poison."""
    if buffer.role == "input":
        return np.ascontiguousarray(arrays[buffer.name], buffer.dtype.numpy).reshape(buffer.shape)
    return np.full(buffer.bytes, 0xFF, np.uint8).view(buffer.dtype.numpy).reshape(buffer.shape)


def run_kernel(kernel: Kernel, arrays: Mapping[str, Any], source: str | None = None, **how: Any) -> dict[str, Any]:
    """`run_program` for a compiled kernel, whose target determines the dialect and the warp width."""
    how = {"warp": max(1, kernel.target.profile.warp_size), **how}
    return run_program(kernel.program, kernel.target.dialect, arrays, kernel.source if source is None else source, **how)


def check(kernel: Kernel, seed: int = 0, **how: Any) -> reference.Report:
    """Compares with the reference: random data within the derived bound, and small integers exactly if that applies."""
    return reference.check(kernel.computation, lambda arrays: run_kernel(kernel, arrays, **how), seed, kernel.schedule.error_ulps)
