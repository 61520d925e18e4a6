"""How the kernels of a lowered program are launched, for processes that run a program without its kernel IR."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from tilelang.lowering.drivers.tensor_maps import TensorMap

if TYPE_CHECKING:
    from tilelang.lowering import ir
    from tilelang.lowering.targets.c.dialect import Dialect


@dataclasses.dataclass(frozen=True)
class Launch:
    """How a kernel is launched. name: its name in the source; arguments: the names of its buffers, in order; maps: the tensor maps
    that follow them, each with the name of its buffer."""

    name: str
    grid: tuple[int, ...]
    threads: int
    shared_bytes: int
    arguments: tuple[str, ...]
    maps: tuple[tuple[str, TensorMap], ...] = ()


def launches_of(program: ir.Program, dialect: Dialect) -> tuple[Launch, ...]:
    """The launches of a program in order, for its source in a dialect."""
    from tilelang.lowering.descriptors import tensor_maps  # late: a process that only launches needs no kernel IR
    from tilelang.lowering.targets.c.emitter import kernel_names  # late: as above

    names = kernel_names(program, dialect)
    return tuple(
        Launch(names[k.name], k.grid, k.threads, k.shared_bytes, tuple(b.name for b in k.arguments), tensor_maps(k))
        for k in program.kernels
    )
