"""The constants of the CPU model and search that no profile has, each with its source.

Rates of a device, such as cycles and bandwidths, are not constants: they are in its profile, each with its source (`device.py` lists
those that are read). "Chosen" means that a number was neither derived nor fitted, and that no other origin is recorded. "Operators" are
those of `benchmarks/operators_cpu.csv`.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Constants:
    """The constants; a comment gives the source of each."""

    # ---- the model
    # The share of a cache's lines that are evicted before reuse, over the working set as a share of the cache. Measured on a Xeon
    # (Sapphire Rapids): sums over growing parts of the second-level cache. Pages compete for sets, so it evicts before it is full.
    evicted_share: tuple[tuple[float, float], ...] = ((0.5, 0.0), (0.85, 0.13), (1.0, 0.29), (1.2, 0.54), (1.7, 1.0))
    # Blocks per core beyond which work stealing is not modelled: one block more or less changes the time by at most an eighth. Chosen
    many_blocks: int = 8
    unrolled_vectors: int = 16  # along an axis; a longer innermost body is a loop over vectors. Chosen
    # The cost of storing a vector of results, in stores; and of adding it to the sums of other chunks, with a load and an addition
    handed_on: tuple[float, float] = (1.0, 3.0)
    # Cycles to load and store a vector of sums that the innermost loop updates in memory. Chosen: a store each cycle, and a load beside
    # those of the operands. On one core of a Zen 3, column sums of 2048 x 2048 that are updated beside row sums take 0.97 ms; the two
    # sums one after another take 1.74 ms.
    updated_cycles: float = 1.5
    # Cycles of one lane of a vector that a condition divides: a test, scalar loads, an update, and its place in the vector. On Zen 3,
    # sums of products with such a condition on every vector took 2.6 cycles for each multiply-add.
    lane_update_cycles: float = 2.5

    # ---- register tiles
    reserved_registers: int = 4  # vectors that hold operands and constants, not results. Chosen
    columns: tuple[int, ...] = (1, 2, 3, 4)  # vectors along the axis of the vectors. Chosen
    rows: tuple[int, int] = (16, 3)  # points along the two axes that save the most loads. Chosen
    kept_pieces: int = 6  # the number of register tiles that growth continues with. Chosen
    kept_cycles: float = 1.08  # the limit of their cycles, relative to the best one. Chosen
    few_results: int = 8  # result vectors that leave enough registers for operands that several of them read. Chosen
    unrolled: int = 8  # the maximum number of unrolled points of a reduction. Chosen

    # ---- blocks
    blocks_of_a_core: tuple[int, ...] = (1, 4, 16, 64)  # for data that is used once. Chosen
    # For data that is used once: the number of reduction points in one pass over a row of results, whose sums stay in the nearest
    # cache between passes. A pass reads this many rows of a matrix at the same time, each from end to end. On Zen 3, a row vector
    # times a matrix of 4096 x 4096 took 3.8 ms in this way; with blocks of 32 columns, read from top to bottom, it took 9.6 ms.
    rows_at_once: tuple[int, ...] = (4, 8)
    # Reductions along rows read several rows at a time if there are at least this many. A core that reads them one after another waits
    # longer for memory: on Zen 3, sums of 16 rows of 4 MB took 4.7 ms with prefetches one page ahead, 4.2 ms without them, and 3.0 ms
    # with four rows at a time. The number itself is chosen.
    rows_in_turn: int = 4
    several_blocks: int = 4  # per core, if a single number is enough. Chosen
    # The last cache is divided by these for a block's operands: above a half, lines are evicted (`evicted_share`); a quarter is chosen
    cache_shares: tuple[int, ...] = (2, 4)
    halvings: int = 14  # of the interval of the number that sizes a tile, on a logarithmic scale. Chosen
    largest_divisor: int = 1 << 16  # to search for; the search takes as many steps. Chosen
    # Relative to all caches: if a kernel touches no more, the next kernel mostly finds its results there, so it does not stream them.
    # Introduced because streaming was slower in kernels that exceed one cache, but not all; the number itself is chosen.
    kept_share: float = 1.3
    # The extents of large transposed blocks along the rows that are read and those that are stored, relative to a square that fills a
    # quarter of the last cache: long rows are prefetched while they are read, and rows streamed past the caches start slowly. They
    # reduced a transposition of 4096 x 4096 from 13.1 to 4.3 ms on a Xeon with AMX.
    large_sides: tuple[tuple[float, float], ...] = ((4, 0.25), (2, 1))
    # The prefetch distance in squares, which should cover the latency of memory. Chosen on Zen 5.
    squares_ahead: int = 4

    # ---- rows of several tasks in one kernel
    rows_of_a_core: tuple[int, ...] = (4, 16, 64)  # blocks of rows per core. Chosen, as `blocks_of_a_core`
    # The minimum number of iterations of a block, if a core gets more than the fewest blocks: a block's first rows are not prefetched.
    # Chosen on Zen 5 for kernels of several stages over rows of 1024.
    least_rounds: int = 8
    row_vectors: int = 8  # device vectors in one vector of a stage. Chosen

    # ---- tiles of several definitions that read neighbours
    tile_widths: tuple[int, ...] = (128, 256, 512, 1024, 1 << 20)  # along the vectors; the last is a whole row. Chosen

    # ---- loops that several reductions share
    shared_rows: tuple[int, ...] = (64, 32, 48, 96, 128)  # rows of a block. Chosen
    chunks: tuple[int, ...] = (32, 64, 128, 256)  # points of an iteration. Chosen

    # ---- products of several rows at a time
    # Rows of a chunk. On one core of a Zen 3, the backward pass of weighted means with 2048 keys and heads of 64 took 57, 51 and 51 ms
    # for chunks of 16, 32 and 64 rows, and with 4096 keys 245, 234 and 275 ms; other processes were running.
    row_blocks: tuple[int, ...] = (32, 16, 8)
    # The values of a chunk, relative to the core's last cache: each is used in whole products, so that the next cache is fast enough.
    # With 2048 keys, chunks of 32 rows are 1.5 times that cache.
    row_block_share: float = 2.0
    # What every chunk reads again, relative to the core's share of the last cache. On one core of a Zen 3 that others kept busy,
    # that pass with 2048 keys ran at 0.97 of the rate of a product with heads of 64 (a fifth of that share); with heads of 128 (two
    # fifths), it took twice as long as separate kernels.
    row_block_reread_share: float = 0.25
    fitting_row_blocks: int = 2  # the candidates that are tried, the largest first. Chosen

    # ---- the search
    visits: int = 500  # estimates for one task. Chosen to generate a schedule in 100 ms
    beam: int = 5  # seeds of a nest that the search starts from. Chosen
    others: int = 2  # of them, those that must differ in more than extents. Chosen
    # Relative to the estimate of the best seed: the search skips seeds whose work alone exceeds it. For 108 operators and 760 other
    # computations, the work of the best schedule was at most 1.08 times that estimate.
    hopeless: float = 1.25
    # Relative to the best tile so far: how slow a tile may be from which the search starts again. Chosen. With 1.05 and `best_sizes`, a
    # schedule takes half as many estimates as before; of 108 operators, the slowest one became 1.02 times as slow by the model.
    near: float = 1.05
    best_sizes: int = 2  # the number of best seeds whose blocks and chunks the other register tiles are tried with. Chosen
    better: float = 0.999  # a smaller improvement may be rounding


CPU = Constants()
