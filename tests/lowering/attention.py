"""Attention of a block of queries: both products by matrix instructions, and the softmax between them where the scores are."""

import tilelang as tl
from tilelang.schedules.schedule import Schedule


def attention(queries: int, keys: int, depth: int) -> tl.Tensor:
    """O[i, e] = sum over j of softmax over j of (Q K^T)[i, j] / 4 times V[j, e]."""
    i, j, d, e = tl.axes(i=queries, j=keys, d=depth, e=depth)
    Q, K = tl.input("Q", tl.float16, i, d), tl.input("K", tl.float16, j, d)
    V = tl.input("V", tl.float16, j, e)
    S = tl.define("S", tl.sum(tl.cast(Q[i, d], tl.float32) * tl.cast(K[j, d], tl.float32), over=d), i, j)
    peak = tl.define("peak", tl.max(S[i, j], over=j), i)
    P = tl.define("P", tl.cast(tl.exp((S[i, j] - peak[i]) * 0.25), tl.float16), i, j)
    total = tl.define("total", tl.sum(tl.cast(P[i, j], tl.float32), over=j), i)
    mix = tl.define("mix", tl.sum(tl.cast(P[i, j], tl.float32) * tl.cast(V[j, e], tl.float32), over=j), i, e)
    return tl.define("O", mix[i, e] / total[i], i, e)


def by_matrix_units(o: tl.Tensor, warps: int) -> Schedule:
    """A warp takes 16 queries. The owners of the scores are written as the tiles that `mma` gives its accumulator's lanes."""
    lanes = tl.move().tile(i=16).to(tl.warp).split(i=8, j=8).tile(i=1, j=2).to(tl.thread)
    scores = tl.move().tile(i=16).to(tl.warp).split(d=16).load("Q", tl.register).load("K", tl.register)
    return (
        tl.schedule(o)
        .units(block=tl.warps(warps))
        .tile(i=16 * warps).to(tl.block)
        .load("Q", tl.shared).load("K", tl.shared).load("V", tl.shared)
        .compute("S", tl.register, steps=scores.do("mma_m16n8k16", m="i", n="j", k="d"))
        .load("S", tl.register, steps=lanes)
        .compute("peak", tl.register, steps=lanes)
        .compute("P", tl.register, steps=lanes)
        .compute("total", tl.register, steps=lanes)
        .tile(i=16).to(tl.warp)
        .load("P", tl.register)
        .accumulate(tl.register)
        .split(j=16)
        .load("V", tl.register)
        .do("mma_m16n8k16", m="i", n="e", k="j")
    )  # fmt: skip
