"""The numbers of the GPU model and the generation that are not in a profile, each with its source.

Rates of a device are in its profile, each with its source (`model.py` says which are read). "Chosen" means that a number was
neither derived nor fitted, and that no other source is recorded. Nearly all are chosen: no GPU model has been fitted to times of
schedules.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class Constants:
    """The numbers; a comment gives the source of each."""

    # ---- the model
    # Instructions that compilers emit for a function: of the special function unit, and plain ones. Estimated, not measured
    written: Mapping[str, tuple[int, int]] = dataclasses.field(default_factory=lambda: {
        "exp": (1, 1), "log": (1, 1), "sqrt": (1, 1), "rsqrt": (1, 0), "/": (1, 2), "sin": (1, 4), "cos": (1, 4), "tanh": (1, 4),
        "pow": (2, 4), "erf": (1, 12), "//": (1, 4), "%": (1, 4),
    })  # fmt: skip
    # Instructions for the address of a load from global memory: plain, or with bounds checks. Chosen.
    address: tuple[float, float] = (1.0, 4.0)
    # The same for a copy to shared memory, which has a second address; and for its load and store themselves. Chosen.
    copy_address: tuple[float, float] = (2.0, 8.0)
    copied: float = 2.0
    overhead_registers: int = 24  # per thread, for addresses and counters. Chosen
    latency_sums: float = 0.5  # hides latency: n independent sums reach n / (n + 0.5) of the peak. Chosen
    deep: int = 3  # prefetch distance beyond which nothing more overlaps. Chosen
    few_units: int = 16  # units numbered first along each axis; any number would do, since more follow if needed
    meeting_bytes: float = 16.0  # of shared memory per thread whose partial results are combined. Chosen
    no_room: float = 4.0  # assumed ratio of needed to available registers if a block fits no core. Chosen
    spilled: float = 2.0  # slowdown for spilling as many registers as there are, as a share of the time. Chosen

    # ---- tiles of threads
    kept: int = 64  # candidates that are passed on. Chosen
    in_panels: int = 16  # of these, tried also with blocks numbered in panels. Chosen
    visited: int = 400  # tiles visited when growing one level. Chosen
    register_tiles: int = 6  # kept after growth. Chosen
    blocks_of_each: int = 6  # block tiles for each of them. Chosen
    longest_side: int = 16  # of a register tile. Chosen
    # Half of what devices allow. Growing up to their limit leaves few tiles, and these are elongated: products of
    # 4096 x 4096 x 4096 were estimated at up to ten times as long.
    most_threads: int = 512
    unrolled: int = 16  # points of a reduction in an unrolled loop. Chosen
    square: int = 16  # threads along a row of a roughly square block. Chosen
    sharing_blocks: tuple[int, ...] = (1, 2, 4, 8)  # per core, when blocks share a reduction. Chosen
    block_threads: tuple[int, ...] = (128, 256, 512)  # per block of a streaming tile. Chosen
    rounds: tuple[int, ...] = (8, 16, 32)  # points of a reduction loaded in one iteration. Chosen

    # ---- instructions of warps
    longest: int = 4  # greatest ratio of the sides of a warp's tile, or of a block of warps. Chosen
    least_sums: int = 16  # a warp's results take at least 1/16 of a lane's registers. Chosen
    most_sums: int = 2  # and at most 1/2. Chosen
    scheduler_warps: int = 4  # most warps of a block per scheduler. Chosen
    round_bytes: tuple[int, ...] = (64, 128)  # of a row along the reduction: a cache line, or half of one
    parts: tuple[int, ...] = (2, 4, 8, 16, 32)  # blocks that share a reduction. Chosen
    shared_blocks: int = 3  # most blocks per core, when they share a reduction. Chosen
    part_rounds: int = 4  # fewest iterations of each block, then. Chosen

    # ---- loops shared by several reductions
    chunks: tuple[int, ...] = (32, 64, 128)  # points of one iteration. Chosen
    warp_rounds: tuple[int, ...] = (1, 2)  # instructions of a warp along its rows. Chosen
    loop_warps: tuple[int, ...] = (1, 2, 4, 8)  # of a block. Chosen

    # ---- roles
    consumers: tuple[int, ...] = (2, 1)  # roles that compute. Chosen
    team_rounds: tuple[int, ...] = (1, 2)  # instructions of a warp group along its rows. Chosen
    # Instruction widths that are tried besides those of whole swizzles: those that leave the fewest columns unused. Chosen.
    other_columns: int = 2
    loading_registers: int = 40  # of a thread that only copies: addresses, coordinates, phases. CUTLASS uses as many
    widest_swizzle: int = 128  # bytes; the widest of the PTX documentation
    barrier_bytes: int = 1024  # of shared memory, reserved for the barriers of a multistage buffer. Chosen
    most_stages: int = 8  # of a multistage buffer. Chosen
    team_parts: tuple[int, ...] = (1, 2, 4, 8, 16)  # blocks that share a reduction. Chosen

    # ---- rows of several tasks in one kernel
    row_warps: tuple[int, ...] = (1, 2, 4, 8, 16, 32)  # warps that share a row: powers of two up to the largest block
    block_rows: int = 4  # rows of a block if each warp has one. Chosen
    thread_rows: tuple[int, ...] = (64, 128)  # rows of a block if each thread has one. Chosen
    alone: int = 32  # most columns of a row that a single thread has. Chosen
    held: int = 64  # most elements of all rows that a thread keeps. Chosen


GPU = Constants()
