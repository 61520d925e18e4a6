"""Values in registers that their reader does not own, and results whose owners do not match their store."""

import tilelang as tl
from tests.errors._computations import linear, matmul, softmax


def reader_is_not_owner() -> None:
    """The move gives a thread two rows of four columns; the product reads four rows."""
    start = tl.schedule(matmul(16, 16, 8)).tile(m=16, n=16).to(tl.block).accumulate(tl.register)
    loaded = start.load("A", tl.register, steps=tl.move().tile(m=2, k=4).to(tl.thread))
    loaded.tile(m=4, n=4).to(tl.thread).check()


def fireiron_epilogue_in_registers() -> None:
    """The epilogue of Fireiron's paper: a warp's results are stored by rows of threads that do not hold those rows."""
    by_rows = tl.move().tile(m=1, n=64).to(tl.warp).tile(n=2).to(tl.thread)
    start = tl.schedule(matmul()).tile(m=64, n=64).to(tl.block).accumulate(tl.register, steps=by_rows)
    start.split(k=8).tile(m=16, n=32).to(tl.warp).tile(m=4, n=4).to(tl.thread).check()


def fireiron_epilogue_as_a_stage() -> None:
    """The same, with the product as a stage in registers: threads make 4 x 4 tiles and the epilogue takes 1 x 16."""
    start = tl.schedule(linear(16, 16, 16)).tile(m=16, n=16).to(tl.block)
    made = start.compute("C_sum", tl.register, steps=tl.move().tile(m=4, n=4).to(tl.thread))
    made.tile(m=1, n=16).to(tl.thread).check()


def stage_owners_differ() -> None:
    """A row's exponentials are made by fours and read by twos."""
    start = tl.schedule(softmax(4, 64)).tile(i=1).to(tl.block)
    made = start.compute("peak", tl.shared).compute("shifted", tl.register, steps=tl.move().tile(j=4).to(tl.thread))
    made.compute("total", tl.shared, steps=tl.move().tile(j=4).to(tl.thread)).tile(j=2).to(tl.thread).check()


def owners_store_in_wider_vectors_than_they_own() -> None:
    start = tl.schedule(matmul()).tile(m=16, n=16).to(tl.block)
    start.accumulate(tl.register, steps=tl.move().vectorize(n=8)).tile(m=4, n=4).to(tl.thread).check()


def via_of_a_reduction() -> None:
    tl.schedule(matmul()).tile(m=16, n=16).to(tl.block).via(tl.shared).check()


def store_of_an_instruction_by_other_tiles() -> None:
    start = tl.schedule(matmul(8, 8, 8)).tile(m=8, n=8).to(tl.block)
    state = start.accumulate(tl.register, steps=tl.move().tile(n=8).to(tl.thread)).split(m=1, k=1)
    state.load("A", tl.register).load("B", tl.register).do("opencl_mad4").check("sapphire_rapids")
