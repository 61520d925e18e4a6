"""The numbers of the model and the construction for GPUs that no profile has, each with its source.

Rates of a device stand in its profile, each with its source (`model.py` says which are read). "Chosen" means that a number was neither
derived nor fitted, and that nothing else is recorded of it. Nearly all are: no model of a GPU was fitted to times of schedules.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class Constants:
    """The numbers; a comment gives the source of each."""

    # ---- the model
    # What compilers write for a function: instructions of the unit for special functions, and plain ones. Estimated, not measured
    written: Mapping[str, tuple[int, int]] = dataclasses.field(default_factory=lambda: {
        "exp": (1, 1), "log": (1, 1), "sqrt": (1, 1), "rsqrt": (1, 0), "/": (1, 2), "sin": (1, 4), "cos": (1, 4), "tanh": (1, 4),
        "pow": (2, 4), "erf": (1, 12), "//": (1, 4), "%": (1, 4),
    })  # fmt: skip
    # Instructions of a load straight from memory beside itself, for its address: plain, or with bounds to look at. Chosen.
    address: tuple[float, float] = (1.0, 4.0)
    # The same of a copy to shared memory, whose place there is an index, too; and the load and the store themselves. Chosen.
    copy_address: tuple[float, float] = (2.0, 8.0)
    copied: float = 2.0
    overhead_registers: int = 24  # of a thread, for addresses and counters. Chosen
    latency_sums: float = 0.5  # half the sums beside which latency is as long as work: n of them reach n / (n + 0.5). Chosen
    deep: int = 3  # rounds that a ring is ahead beyond which no more overlaps. Chosen
    few_units: int = 16  # of a cut along each axis that are numbered first: any, as more are if these do not suffice
    meeting_bytes: float = 16.0  # of shared memory for each thread whose partial results meet. Chosen
    no_room: float = 4.0  # times the registers that there are, where a block fits no core. Chosen
    spilled: float = 2.0  # the share of all the time that as many registers as there are take in memory. Chosen

    # ---- tiles of threads
    kept: int = 64  # candidates that are handed on. Chosen
    in_panels: int = 16  # of them, whose blocks may be numbered in panels: each is estimated twice. Chosen
    visited: int = 400  # tiles that growth of one level looks at. Chosen
    register_tiles: int = 6  # that growth hands on. Chosen
    blocks_of_each: int = 6  # for each of them. Chosen
    longest_side: int = 16  # of a register tile. Chosen
    # Half of what devices take. Growth up to the whole ends with fewer and longer tiles, and those it hands on are few: products of
    # 4096 x 4096 x 4096 were estimated at up to ten times as long.
    most_threads: int = 512
    unrolled: int = 16  # points of a reduction that are written out. Chosen
    square: int = 16  # threads along a row of a block that is about as high as wide. Chosen
    sharing_blocks: tuple[int, ...] = (1, 2, 4, 8)  # of a core, that share reductions. Chosen
    block_threads: tuple[int, ...] = (128, 256, 512)  # of a block that streams. Chosen
    rounds: tuple[int, ...] = (8, 16, 32)  # points of a reduction that are brought at once. Chosen

    # ---- instructions of warps
    longest: int = 4  # sides of the shorter that the longer side of a warp's tile, or of a block of warps, has. Chosen
    least_sums: int = 16  # results of a warp take no less than this part of a lane's registers. Chosen
    most_sums: int = 2  # and no more than this part. Chosen
    scheduler_warps: int = 4  # of one block. Chosen
    round_bytes: tuple[int, ...] = (64, 128)  # of a row along the reduction: a line of the caches, or half of one
    parts: tuple[int, ...] = (2, 4, 8, 16, 32)  # blocks that share a reduction. Chosen
    shared_blocks: int = 3  # of a core, at most, where they share reductions. Chosen
    part_rounds: int = 4  # of a part, at least. Chosen

    # ---- roles
    consumers: tuple[int, ...] = (2, 1)  # teams that compute. Chosen
    team_rounds: tuple[int, ...] = (1, 2)  # instructions of a team along its rows. Chosen
    # Widths of the instruction that are tried beside those of whole swizzles: what leaves least of the result's columns empty. Chosen.
    other_columns: int = 2
    loading_registers: int = 40  # of a thread that only copies: addresses, coordinates, phases. CUTLASS gives it as many
    widest_swizzle: int = 128  # bytes; the widest of the PTX documentation
    barrier_bytes: int = 1024  # what is left of shared memory for the barriers of a ring. Chosen
    most_stages: int = 8  # of a ring. Chosen
    team_parts: tuple[int, ...] = (1, 2, 4, 8, 16)  # blocks that share a reduction. Chosen

    # ---- rows of several tasks in one kernel
    row_warps: tuple[int, ...] = (1, 2, 4, 8, 16, 32)  # that share a row: powers of two up to the largest block
    block_rows: int = 4  # where a warp has a row. Chosen
    thread_rows: tuple[int, ...] = (64, 128)  # of a block, where a thread has one. Chosen
    alone: int = 32  # columns of a row that one thread has, at most. Chosen
    held: int = 64  # elements of all rows that a thread keeps, at most. Chosen


GPU = Constants()
