"""Moves arrays that are too large for a thread's stack from registers to shared memory, which a CPU's blocks have on the heap.

Needs: one thread per block (`threads_in_loops`) and no more buffers that become scalars (`scalar_replacement`). Guarantees: the
register arrays of a kernel take at most MOST_STACK_BYTES. One line before and after:

    register y_state: float32[3000000]
    shared y_state: float32[3000000] at 0
"""

from __future__ import annotations

from tilelang.lowering import ir
from tilelang.lowering.limits import MOST_SCRATCH_BYTES
from tilelang.lowering.passes.allocate_shared import ALIGNMENT, over_capacity, with_buffers

MOST_STACK_BYTES = 128 << 10  # threads that a program starts may have stacks of 512 KiB (macOS), or of 128 KiB with musl


def move_large_arrays(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with its largest register arrays in shared memory, so that the others fit a stack.

    Raises Refusal `memory-over-capacity` if they exceed what a block can have.
    """
    taken = sum(b.bytes for b in kernel.registers)
    moved, end = dict[str, ir.Buffer](), kernel.shared_bytes
    for b in sorted(kernel.registers, key=lambda b: -b.bytes):
        if taken <= MOST_STACK_BYTES:
            break
        offset = -(-end // ALIGNMENT) * ALIGNMENT
        moved[b.name] = b.replace(memory="shared", offset=offset)
        taken, end = taken - b.bytes, offset + b.bytes
    made = with_buffers(kernel, moved)
    if moved and made.shared_bytes > MOST_SCRATCH_BYTES:
        raise over_capacity(made, {b.name: b.offset or 0 for b in made.shared}, made.shared_bytes, MOST_SCRATCH_BYTES)
    return made
