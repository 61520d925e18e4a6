"""The numbers of the model and the search for CPUs that no profile has, each with its source.

Rates of a device, such as cycles and bandwidths, are not constants: they stand in its profile, each with its source (`device.py` says
which are read). "Chosen" means that a number was neither derived nor fitted, and that nothing else is recorded of it. The operators
that others were found with are those of `benchmarks/operators_cpu.csv`.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Constants:
    """The numbers; a comment gives the source of each."""

    # ---- the model
    # The share of a cache's lines that are lost, over the share of it that is used in between. Measured on a Xeon (Sapphire Rapids):
    # sums over more and more of the second-level cache. Pages share places, so it loses lines before it is full.
    lost: tuple[tuple[float, float], ...] = ((0.5, 0.0), (0.85, 0.13), (1.0, 0.29), (1.2, 0.54), (1.7, 1.0))
    # Blocks of a core beyond which the end of the last one is counted by shares alone: one block more or less changes an eighth. Chosen
    many_blocks: int = 8
    unrolled_vectors: int = 16  # along an axis, beyond which a leaf is a loop over them. Chosen
    # By the time of a store, to hand on a vector of results; and where it is added to sums of other chunks: a load and an addition more
    handed_on: tuple[float, float] = (1.0, 3.0)

    # ---- register tiles
    reserved_registers: int = 4  # vectors that hold operands and constants, not results. Chosen
    columns: tuple[int, ...] = (1, 2, 3, 4)  # vectors along the axis of the vectors. Chosen
    rows: tuple[int, int] = (16, 3)  # points along the two axes that save most loads. Chosen
    kept_pieces: int = 6  # register tiles that growth goes on with. Chosen
    kept_cycles: float = 1.08  # times the cycles of the best one, at most. Chosen
    few_results: int = 8  # vectors of results that leave registers for operands that several of them read. Chosen
    unrolled: int = 8  # points of a reduction that are written out at once, at most. Chosen

    # ---- blocks
    blocks_of_a_core: tuple[int, ...] = (1, 4, 16, 64)  # of data that passes through once. Chosen
    several_blocks: int = 4  # of a core, where one number is enough. Chosen
    # Parts of the last cache that a block's operands fill: beyond half of it lines are lost (`lost`); a quarter is chosen
    cache_shares: tuple[int, ...] = (2, 4)
    halvings: int = 14  # of the logarithm of the number that sizes a tile, which lies between 1 and all points. Chosen
    largest_divisor: int = 1 << 16  # that is looked for: looking for it takes as many steps. Chosen
    # Times all caches: results of kernels that touch no more are mostly found there by who reads them next. Introduced as kernels that
    # exceed one cache, but not all, were slower with results that go past them; the number itself is chosen.
    kept_share: float = 1.3
    # Sides of large blocks that are turned, along rows that are read and rows that are stored, by those of a square of a quarter of the
    # last cache: long rows are fetched ahead while they are read; those stored past the caches begin slowly. With them a transposition
    # of 4096 x 4096 fell from 13.1 to 4.3 ms on a Xeon with AMX.
    large_sides: tuple[tuple[float, float], ...] = ((4, 0.25), (2, 1))
    # Squares before their use that lines are fetched: they take as long as memory needs to answer. Chosen on Zen 5.
    squares_ahead: int = 4

    # ---- rows of several tasks in one kernel
    rows_of_a_core: tuple[int, ...] = (4, 16, 64)  # blocks of rows that a core is given. Chosen, as `blocks_of_a_core`
    # Rounds of a block at least where a core gets more blocks than the fewest: a block's first rows are not prefetched. Chosen on Zen 5
    # for kernels of several stages over rows of 1024.
    least_rounds: int = 8
    row_vectors: int = 8  # of the device, that a stage's vector is made of. Chosen

    # ---- loops that several reductions share
    shared_rows: tuple[int, ...] = (64, 32, 48, 96, 128)  # rows of a block. Chosen
    chunks: tuple[int, ...] = (32, 64, 128, 256)  # points of a round. Chosen

    # ---- the search
    visits: int = 500  # estimates for one task. Chosen with the goal of 100 ms for a schedule
    beam: int = 5  # seeds of a nest that the search starts from. Chosen
    others: int = 2  # of them that differ in more than their extents. Chosen
    # Times the estimate of the best seed: no search starts from a seed whose work alone exceeds it. The best schedules of 108 operators
    # and 760 other computations worked for 1.08 times that estimate at most.
    hopeless: float = 1.25
    better: float = 0.999  # of an estimate counts as better than it; less may be rounding


CPU = Constants()
