"""Operands that instructions name by descriptors: shared buffers, and tensor maps, which a launch passes after its buffers."""

from __future__ import annotations

import dataclasses

from tilelang.lowering import ir
from tilelang.lowering.drivers.tensor_maps import TensorMap

ALIGNMENT_BYTES = 1024  # alignment of a shared buffer that a descriptor names: eight rows of the widest swizzle


@dataclasses.dataclass(frozen=True, slots=True)
class BoxMap:
    """A tensor map: a tensor in global memory, and the extents of the TMA tiles of it that one instruction moves."""

    buffer: ir.Buffer
    box: tuple[int, ...]  # the extents of a TMA tile
    swizzle_bytes: int  # swizzle of the rows in shared memory (0: none)


def described(body: ir.Stmt) -> set[str]:
    """The shared buffers that instructions name by descriptors."""
    instructions = (s for s in ir.statements(body) if isinstance(s, ir.Instruction))
    return {b.name for s in instructions for name, b, _ in s.operands if b.memory == "shared" and s.region(name) is not None}


def box_map(stmt: ir.Instruction) -> BoxMap | None:
    """The map that an instruction needs, or None."""
    swizzle = max((region.swizzle_bytes for region in stmt.regions), default=0)
    for name, buffer, _ in stmt.operands:
        if buffer.memory == "global" and stmt.region(name) is not None:
            return BoxMap(buffer, stmt.semantics.operand(name).shape, swizzle)
    return None


def box_maps(kernel: ir.Kernel) -> tuple[BoxMap, ...]:
    """The maps of a kernel, in the order of its arguments after the buffers."""
    found = (box_map(s) for s in ir.statements(kernel.body) if isinstance(s, ir.Instruction))
    return tuple(dict.fromkeys(map for map in found if map is not None))


def tensor_maps(kernel: ir.Kernel) -> tuple[tuple[str, TensorMap], ...]:
    """The tensor maps that a launch passes after a kernel's buffers, each with the name of the tensor's buffer.

    An empty grid needs none.
    """
    found = []
    for map in box_maps(kernel) if 0 not in kernel.grid else ():
        strides = tuple(stride * map.buffer.dtype.bytes for stride in map.buffer.strides)
        found.append((map.buffer.name, TensorMap(map.buffer.dtype, map.buffer.shape, strides, map.box, map.swizzle_bytes)))
    return tuple(found)
