"""Compiled kernels of ours on this processor: their own text, their own launches, compared with the reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tilelang import reference
from tilelang.lowering import ir
from tilelang.lowering.targets.c_family import kernel_names
from tilelang.runtime import DIALECTS, Kernel
from tilelang.testing.emulation.launch import Launch, run


def run_kernel(kernel: Kernel, arrays: Mapping[str, Any], source: str | None = None, **how: Any) -> dict[str, Any]:
    """The outputs of a CUDA or HIP kernel, by name, for input arrays by name; how: as for `run`.

    source: another text of the same kernels. Outputs and workspace begin as bytes of ones, which are no numbers.
    """
    program = kernel.program
    names = kernel_names(program, DIALECTS[kernel.target.dialect])
    memory = {b.name: _memory(b, arrays) for b in program.buffers}
    launches = [Launch(names[k.name], k.grid, k.threads, tuple(b.name for b in k.arguments)) for k in program.kernels]
    found = run(
        kernel.source if source is None else source,
        launches,
        memory,
        warp=max(1, kernel.target.profile.warp_size),
        shared_bytes=max((k.shared_bytes for k in program.kernels), default=0),
        **how,
    )
    return {b.name: found[b.name] for b in program.buffers if b.role == "output"}


def _memory(buffer: ir.Buffer, arrays: Mapping[str, Any]) -> Any:
    """An input as it is, another buffer as poison."""
    if buffer.role == "input":
        return np.ascontiguousarray(np.asarray(arrays[buffer.name]).astype(buffer.dtype.numpy, copy=False))
    return np.full(buffer.elements * buffer.dtype.bytes, 0xFF, np.uint8).view(buffer.dtype.numpy).reshape(buffer.shape)


def check(kernel: Kernel, seed: int = 0, **how: Any) -> reference.Report:
    """Compares with the reference: random data within the derived bound, and small integers exactly where that applies."""
    return reference.check(kernel.computation, lambda arrays: run_kernel(kernel, arrays, **how), seed, kernel.schedule.error_ulps)
