"""Schedules written by hand, some sixteen of each operator, good and bad ones: what the model has to rank.

Every operator is a text of the language and a list of schedules for it, most of them made of one text and a table of its parameters.
Blocks are tasks of a core with vectors of 16 floats.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

PRODUCT = """computation C(M = {0}, N = {1}, K = {2}) {{
  input A: float32[m: M, k: K]
  input B: float32[k: K, n: N]
  output C[m, n] = sum[k] A[m, k] * B[k, n]
}}"""
TRANSPOSED = """computation C(M = 512, N = 384, K = 320) {
  input A: float32[k: K, m: M]
  input B: float32[n: N, k: K]
  output C[m, n] = sum[k] A[k, m] * B[n, k]
}"""
POINTWISE_CONVOLUTION = """computation Z(N = 1, C = 256, H = 28, F = 512) {
  input X: float32[n: N, c: C, h: H, w: H]
  input W: float32[f: F, c: C]
  output Z[n, f, h, w] = sum[c] X[n, c, h, w] * W[f, c]
}"""
CONVOLUTION = """computation Z(N = 1, C = 64, H = 56, F = 64) {
  input X: float32[n: N, c: C, h: H, w: H]
  input W: float32[f: F, c: C, r: 3, s: 3]
  axis p: H
  axis q: H
  output Z[n, f, p, q] = sum[c, r, s] pad(X[n, c, p + r - 1, q + s - 1], 0.0) * W[f, c, r, s]
}"""
DEPTHWISE = """computation Z(N = 1, C = 84, H = 42, R = 5) {
  input X: float32[n: N, c: C, h: H, w: H]
  input W: float32[c: C, r: R, s: R]
  axis p: H
  axis q: H
  output Z[n, c, p, q] = sum[r, s] pad(X[n, c, p + r - 2, q + s - 2], 0.0) * W[c, r, s]
}"""
POOLING = """computation Z(N = 4, C = 168, H = 42, R = 3) {
  input X: float32[n: N, c: C, h: H, w: H]
  axis r: R
  axis s: R
  axis p: H
  axis q: H
  output Z[n, c, p, q] = (sum[r, s] pad(X[n, c, p + r - 1, q + s - 1], 0.0)) * 0.11111
}"""
ROW_SUM = """computation Y(M = {0}, N = {1}) {{
  input X: float32[i: M, j: N]
  output Y[i] = sum[j] X[i, j]
}}"""
RECTIFIED = """computation Y(N = 6422528) {
  input X: float32[i: N]
  output Y[i] = max(X[i], 0.0)
}"""
EXPONENTIAL = """computation Y(N = 2000000) {
  input X: float32[i: N]
  output Y[i] = exp(X[i]) / (X[i] * X[i] + 1.0)
}"""
TRANSPOSITION = """computation Y(M = 1024, N = 1500) {
  input X: float32[i: M, j: N]
  output Y[j, i] = X[i, j]
}"""
SOFTMAX = """computation Y(M = 500, N = 1023) {
  input X: float32[i: M, j: N]
  peak[i] = max[j] X[i, j]
  shifted[i, j] = exp(X[i, j] - peak[i])
  total[i] = sum[j] shifted[i, j]
  output Y[i, j] = shifted[i, j] / total[i]
}"""
NORMALIZATION = """computation Y(M = 1500, N = 768) {
  input X: float32[i: M, j: N]
  input gamma: float32[j: N]
  mean[i] = (sum[j] X[i, j]) / 768.0
  spread[i] = (sum[j] (X[i, j] - mean[i]) * (X[i, j] - mean[i])) / 768.0
  output Y[i, j] = (X[i, j] - mean[i]) * rsqrt(spread[i] + 0.00001) * gamma[j]
}"""
HALVES = """computation Y(M = 1000, N = 2000) {
  input X: float16[i: M, j: N]
  input b: float32[j: N]
  output Y[i, j] = cast(cast(X[i, j], float32) * b[j], float16)
}"""
VECTOR_PRODUCT = """computation y(M = 1500, K = 1000) {
  input A: float32[m: M, k: K]
  input x: float32[k: K]
  output y[m] = sum[k] A[m, k] * x[k]
}"""

PACKED = """{fuse}tile {tile} -> block; {whole}split {k}={chunk};
  load {right} in shared layout ({n} / {columns}, {k}, {n} % {columns}) {moved};
  load {left} in shared layout ({m} / {rows}, {k}, {m} % {rows}); split {n}={columns} {m}={rows}; accumulate in register; split {k}=4;
  split {k}=1 unroll; load {right} in register {{ vectorize {n}=16 }}; split {m}=1 unroll; vectorize {n}=16"""
UNPACKED = """tile m={0} n={1} -> block; {2}split n={3} m={4}; accumulate in register; split k=4; split k=1 unroll;
  load B in register {{ vectorize n=16 }}; split m=1 unroll; vectorize n=16"""
PACK_A, PACK_B = "load A in shared layout (m / 8, k, m % 8); ", "load B in shared layout (n / 48, k, n % 48) { vectorize n=16 }; "
TURN_B = "load B in shared layout (n / 48, k, n % 48); "


def packed(names: str, fuse: str, tile: str, moved: str, tiles: Sequence[tuple[int, ...]]) -> Iterator[str]:
    """Both operands packed: block rows and columns, chunk of the reduction, register rows and columns, and whether one chunk is all."""
    m, n, k, left, right = names.split()
    for block_m, block_n, chunk, rows, columns, one_chunk in tiles:
        sizes = tile.format(block_m, block_n)
        whole = "" if one_chunk else f"accumulate in shared {{ vectorize {n}=16 }}; "
        yield PACKED.format(fuse=fuse, tile=sizes, whole=whole, k=k, m=m, n=n, chunk=chunk, left=left, right=right, rows=rows,
                            columns=columns, moved=moved)  # fmt: skip


def unpacked(columns: int, loads: Sequence[str] = ("", PACK_A, PACK_B, PACK_B + PACK_A)) -> Iterator[str]:
    """A product with none, one or both of its operands packed, in blocks of several sizes, and with other register tiles."""
    for load in loads:
        for m, n in ((64, 192), (128, columns), (32, 96)):
            yield UNPACKED.format(m, n, load, 48, 8)
    for rows, width in ((4, 64), (12, 32), (14, 16), (4, 16)):
        yield UNPACKED.format(rows * 8, width * 4, "", width, rows)


PRODUCT_TILES = [
    (336, 384, 256, 8, 48, 0), (128, 1008, 256, 8, 48, 0), (64, 192, 1024, 8, 48, 1), (168, 192, 128, 8, 48, 0),
    (512, 512, 128, 8, 32, 0),
    (256, 256, 256, 8, 32, 0), (256, 256, 256, 4, 64, 0), (256, 256, 64, 4, 32, 0), (128, 128, 128, 16, 16, 0),
    (256, 256, 512, 8, 16, 0),
    (32, 48, 64, 8, 48, 0), (1024, 48, 256, 8, 48, 0), (16, 1008, 128, 8, 48, 0), (256, 240, 256, 4, 48, 0),
    (256, 256, 256, 12, 32, 0), (512, 96, 32, 8, 48, 0),
]  # fmt: skip
FLAT_TILES = [
    (64, 336, 128, 8, 48, 0), (64, 192, 256, 8, 48, 1), (128, 392, 128, 8, 48, 0), (512, 96, 256, 8, 48, 1), (512, 48, 256, 8, 48, 1),
    (128, 784, 64, 8, 48, 0), (64, 784, 256, 8, 48, 1), (64, 784, 256, 8, 32, 1), (64, 784, 256, 16, 16, 1), (64, 784, 256, 4, 64, 1),
    (256, 784, 256, 8, 48, 1), (512, 784, 256, 8, 48, 1),
]  # fmt: skip
FLAT_UNPACKED = """fuse pq=(h, w); tile n=1 f={0} pq={1} -> block; split pq=48 f=8; accumulate in register; split c=4; split c=1 unroll;
  load X in register {{ vectorize pq=16 }}; split f=1 unroll; vectorize pq=16"""
WINDOW_TILES = [
    (64, 336, 144, 8, 48, 0), (64, 192, 576, 8, 48, 1), (64, 96, 576, 8, 48, 1), (64, 784, 144, 8, 32, 0), (64, 384, 96, 4, 64, 0),
    (64, 784, 144, 16, 16, 0), (64, 48, 576, 8, 48, 1), (8, 3136, 72, 8, 48, 0), (64, 1584, 64, 8, 48, 0),
]  # fmt: skip
DIRECT = """tile n=1 f={block} p=4 -> block; load X in shared; load W in shared layout (f / {rows}, c, r, s, f % {rows}); split {split};
  accumulate in register; split c=1; split r=1 s=1{unroll}; {inside}vectorize q={lanes}"""
DIRECT_TILES = [
    {"block": 64, "rows": 8, "split": "f=8 p=1", "unroll": "", "inside": "split f=1 unroll; split q=56; ", "lanes": 8},
    {"block": 64, "rows": 8, "split": "f=8 p=1 q=48", "unroll": "", "inside": "split f=1 unroll; ", "lanes": 16},
    {"block": 64, "rows": 8, "split": "f=8 p=1 q=16", "unroll": " unroll", "inside": "split f=1 unroll; ", "lanes": 16},
    {"block": 64, "rows": 16, "split": "f=16 p=1 q=16", "unroll": " unroll", "inside": "split f=1 unroll; ", "lanes": 16},
    {"block": 64, "rows": 8, "split": "f=8 p=2 q=16", "unroll": " unroll", "inside": "split p=1 f=1 unroll; ", "lanes": 16},
    {"block": 32, "rows": 8, "split": "f=8 p=4 q=16", "unroll": "", "inside": "split p=1 f=1 unroll; ", "lanes": 16},
    {"block": 16, "rows": 4, "split": "f=4 p=4 q=16", "unroll": " unroll", "inside": "split p=1 f=1 unroll; ", "lanes": 16},
]
WINDOWS = "tile n=1 c={0} -> block; {1}split {2}; accumulate in register; split r=1{3}; split s=1 unroll; {4}vectorize q={5}"
DEPTHWISE_TILES = [
    (1, "load X in shared; load W in register; ", "p=1; split q=16", " unroll", "", 16),
    (1, "load X in shared; load W in register; ", "p=1 q=42", "", "", 16),
    (1, "load X in shared; ", "p=2; split q=16", " unroll", "split p=1 unroll; ", 16),
    (1, "load X in shared; ", "p=3; split q=48", "", "split p=1 unroll; ", 16),
    (1, "load X in shared { vectorize w=2 }; ", "p=6; split q=16", " unroll", "split p=1 unroll; ", 16),
    (1, "", "p=1; split q=16", " unroll", "", 16),
    (1, "", "p=6; split q=48", "", "split p=1 unroll; ", 16),
    (1, "load X in shared; ", "p=7; split q=16", "", "split p=1 unroll; ", 16),
    (4, "split c=1; load X in shared; ", "p=3; split q=48", "", "split p=1 unroll; ", 16),
    (1, "load X in shared; ", "p=3; split q=42", "", "split p=1 unroll; ", 2),
    (1, "load X in shared; ", "p=14; split q=16", "", "split p=1 unroll; ", 16),
    (42, "split c=1; load X in shared; ", "p=6; split q=16", "", "split p=1 unroll; ", 16),
    (12, "split c=1; load X in shared; ", "p=1; split q=16", "", "", 16),
    (1, "load X in shared; ", "p=4; split q=8", "", "split p=1 unroll; ", 8),
]
POOLING_TILES = [
    (1, "load X in shared; ", "p=1; split q=16", " unroll", "", 16),
    (4, "split c=1; load X in shared; ", "p=3; split q=16", " unroll", "split p=1 unroll; ", 16),
    (8, "split c=1; load X in shared; ", "p=1; split q=48", " unroll", "", 16),
    (8, "", "c=1 p=1; split q=16", " unroll", "", 16),
    (8, "split c=1; load X in shared; ", "p=6; split q=16", "", "split p=1 unroll; ", 16),
    (8, "split c=1; load X in shared; ", "p=14; split q=16", "", "split p=1 unroll; ", 16),
    (84, "split c=1; load X in shared; ", "p=6; split q=48", "", "split p=1 unroll; ", 16),
    (2, "split c=1; load X in shared { vectorize w=2 }; ", "p=6; split q=16", "", "split p=1 unroll; ", 16),
    (8, "split c=1; ", "p=6; split q=16", "", "split p=1 unroll; ", 16),
    (8, "split c=1; load X in shared; ", "p=2; split q=8", "", "split p=1 unroll; ", 8),
    (8, "split c=1; load X in shared; ", "p=7; split q=42", "", "split p=1 unroll; ", 2),
    (8, "load X in shared; split c=1; ", "p=6; split q=16", "", "split p=1 unroll; ", 16),
    (21, "split c=1; load X in shared; ", "p=3; split q=48", " unroll", "split p=1 unroll; ", 16),
]
ROWS = [
    "tile i=1 -> block; accumulate in register; split j=64; load X in l1 ahead 16; vectorize j=64",
    "tile i=16 -> block; split i=1; accumulate in register; split j=64; load X in l1 ahead 16; vectorize j=64",
    "tile i=16 -> block; split i=1; accumulate in register; split j=64; vectorize j=64",
    "tile i=64 -> block; split i=1; accumulate in register; split j=64; vectorize j=64",
    "tile i=64 -> block; split i=1; accumulate in register; split j=16; vectorize j=16",
    "tile i=64 -> block; split i=1; accumulate in register; split j=32; vectorize j=32",
    "tile i=64 -> block; split i=1; accumulate in register; split j=128; load X in l1 ahead 8; vectorize j=128",
    "tile i=16 -> block; split i=4; accumulate in register; split j=16; split i=1 unroll; vectorize j=16",
    "tile i=64 -> block; split i=16; accumulate in register; split j=1; vectorize i=16",
    "tile i=64 -> block; split i=1; accumulate in register; split j=1",
    "tile i=2048 -> block; split i=1; accumulate in register; split j=64; vectorize j=64",
    "tile i=64 -> block; split i=16; load X in shared layout (j, i); accumulate in register; split j=1; vectorize i=16",
    "tile i=64 -> block; split i=1; accumulate in register; split j=4; vectorize j=4",
]
SHORT_ROWS = [
    "tile i=64 -> block; split i=1; accumulate in register; split j=16; vectorize j=16",
    "tile i=256 -> block; split i=1; accumulate in register; split j=64; vectorize j=64",
    "tile i=256 -> block; split i=16; accumulate in register; split j=1; vectorize i=16",
    "tile i=256 -> block; split i=16; load X in shared layout (j, i); accumulate in register; split j=1; vectorize i=16",
    "tile i=256 -> block; split i=16; load X in shared layout (i, j) pad 1 {vectorize j=16}; accumulate in register; split j=1;"
    " vectorize i=16",
    "tile i=256 -> block; split i=1; accumulate in register; split j=49; split j=1 unroll",
    "tile i=256 -> block; split i=16; accumulate in register; split j=49; split j=1 unroll; vectorize i=16",
    "tile i=1 -> block; accumulate in register; split j=16; vectorize j=16",
    "tile i=1024 -> block; split i=1; accumulate in register; split j=16; vectorize j=16",
    "tile i=1024 -> block; split i=4; accumulate in register; split j=16; split i=1 unroll; vectorize j=16",
    "tile i=1024 -> block; split i=1; accumulate in register; split j=8; vectorize j=8",
    "tile i=256 -> block; split i=64; accumulate in register; split j=1; split i=16 unroll; vectorize i=16",
]
STREAMS = [
    "tile i=65536 -> block; split i=16; vectorize i=16",
    "tile i=65536 -> block; via register stream; split i=16; vectorize i=16",
    "tile i=65536 -> block; via register stream; split i=64; vectorize i=64",
    "tile i=4096 -> block; via register stream; split i=64; vectorize i=64",
    "tile i=65536 -> block; via register stream; split i=64; load X in l1 ahead 16; vectorize i=64",
    "tile i=524288 -> block; via register stream; split i=64; load X in l1 ahead 16; vectorize i=64",
    "tile i=65536 -> block; via register stream; split i=64; load X in l2 ahead 64; vectorize i=64",
    "tile i=65536 -> block; split i=64; vectorize i=64",
    "tile i=65536 -> block; split i=1",
    "tile i=64 -> block; vectorize i=64",
    "tile i=512 -> block; split i=64; vectorize i=64",
    "tile i=65536 -> block; split i=4; vectorize i=4",
    "tile i=4194304 -> block; split i=64; vectorize i=64",
]
EXPONENTIALS = [
    "tile i=65536 -> block; split i=16; vectorize i=16",
    "tile i=65536 -> block; via register stream; split i=64; vectorize i=64",
    "tile i=65536 -> block; split i=64; vectorize i=64",
    "tile i=65536 -> block; split i=8; vectorize i=8",
    "tile i=65536 -> block; split i=4; vectorize i=4",
    "tile i=65536 -> block; split i=1",
    "tile i=64 -> block; vectorize i=64",
    "tile i=1024 -> block; split i=32; vectorize i=32",
    "tile i=1000000 -> block; split i=64; load X in l1 ahead 16; vectorize i=64",
    "tile i=700000 -> block; split i=64; vectorize i=64",
]
TRANSPOSITIONS = [
    "tile i=32 j=32 -> block; via register stream; load X in shared { vectorize j=16 }; split j=1; vectorize i=16",
    "tile i=32 j=32 -> block; load X in shared { vectorize j=16 }; split j=1; vectorize i=16",
    "tile i=64 j=64 -> block; load X in shared { vectorize j=16 }; split j=1; vectorize i=16",
    "tile i=64 j=64 -> block; load X in shared pad 1 { vectorize j=16 }; split j=1; vectorize i=16",
    "tile i=64 j=64 -> block; load X in shared layout (j, i); split j=1; vectorize i=16",
    "tile i=32 j=32 -> block; split j=1; vectorize i=16",
    "tile i=16 j=256 -> block; split j=1; vectorize i=16",
    "tile i=256 j=16 -> block; split j=1; vectorize i=16",
    "tile i=32 j=32 -> block; split i=1; vectorize j=16",
    "tile i=1024 j=4 -> block; split j=1; vectorize i=16",
    "tile i=1024 j=64 -> block; split i=16 j=16; load X in shared { vectorize j=16 }; split j=1; vectorize i=16",
    "tile i=128 j=128 -> block; split j=1; split i=1",
]
STAGES = [
    "tile i={0} -> block; split i=1; {1}compute peak in register {{ vectorize j={2} }};"
    " compute shifted in shared {{ split j={2}; vectorize j={2} }}; compute total in register {{ vectorize j={2} }}; split j={2};"
    " vectorize j={2}".format(*given)
    for given in [(16, "via register stream behind 1; ", 64), (16, "via register stream; ", 64), (16, "", 64), (1, "", 64),
                  (125, "", 64), (16, "", 16), (16, "", 32), (16, "", 128), (16, "", 8), (4, "via register stream; ", 32)]
] + [
    "tile i=16 -> block; split i=1; compute peak in register { vectorize j=64 }; compute shifted in shared"
    " { split j=64; load X in l1 ahead (N + 63) / 64; vectorize j=64 }; compute total in register { vectorize j=64 }; split j=64;"
    " vectorize j=64",
    "tile i=16 -> block; split i=1; compute peak in register { vectorize j=64 }; compute total in register { vectorize j=64 };"
    " split j=64; vectorize j=64",
    "tile i=16 j=1023 -> block; split i=1; split j=64; vectorize j=64",
    "tile i=16 -> block; split i=1; compute peak in register; compute shifted in shared; compute total in register; split j=64;"
    " vectorize j=64",
]  # fmt: skip
NORMALIZATIONS = [
    "tile i={0} -> block; split i=1; {1}compute mean in register {{ vectorize j={2} }}; compute spread in register"
    " {{ vectorize j={2} }}; split j={3}; vectorize j={3}".format(*given)
    for given in [(1, "", 64, 64), (16, "", 64, 64), (16, "via register stream; ", 64, 64), (100, "", 64, 64), (16, "", 16, 16),
                  (16, "", 32, 32), (16, "", 128, 128), (16, "", 8, 8), (16, "", 64, 16), (16, "", 16, 64), (750, "", 64, 64),
                  (16, "load X in shared { vectorize j=16 }; ", 64, 64)]
]  # fmt: skip
CONVERSIONS = [
    "tile i={0} -> block; split i=1; {1}split j={2}; vectorize j={2}".format(*given)
    for given in [(10, "", 16), (10, "", 64), (100, "", 64), (1, "", 64), (10, "via register stream; ", 64), (10, "", 8), (10, "", 4),
                  (10, "", 32), (500, "", 64)]
] + [
    "tile i=10 -> block; split i=1; split j=1",
    "tile i=10 -> block; split i=10 j=16; split i=1 unroll; vectorize j=16",
    "tile i=10 -> block; split j=64; split i=1; vectorize j=64",
]  # fmt: skip
VECTOR_PRODUCTS = [
    "tile m={0} -> block; split m=1; accumulate in register; split k={1}; {2}vectorize k={1}".format(*given)
    for given in [(1, 64, ""), (10, 64, ""), (100, 64, ""), (100, 16, ""), (100, 128, ""), (100, 32, ""), (750, 64, ""),
                  (50, 64, "load A in l1 ahead 16; "), (100, 8, ""), (25, 128, "load A in l1 ahead 8; ")]
] + [
    "tile m=100 -> block; split m=4; accumulate in register; split k=16; split m=1 unroll; vectorize k=16",
    "tile m=100 -> block; split m=2; accumulate in register; split k=64; split m=1 unroll; vectorize k=64",
    "tile m=100 -> block; split m=16; accumulate in register; split k=1; vectorize m=16",
    "tile m=100 -> block; split m=1; accumulate in register; split k=1",
]  # fmt: skip
STRIDED_OPERANDS = [
    UNPACKED.format(m, n, load, width, rows).replace("load B in register { vectorize n=16 };", register)
    for m, n, load, width, rows, register in [
        (64, 192, "", 48, 8, ""), (64, 192, TURN_B, 48, 8, "load B in register { vectorize n=16 };"),
        (64, 192, TURN_B + PACK_A, 48, 8, "load B in register { vectorize n=16 };"),
        (64, 192, TURN_B + PACK_A[:-2] + " { vectorize m=8 }; ", 48, 8, "load B in register { vectorize n=16 };"),
        (128, 384, TURN_B, 48, 8, "load B in register { vectorize n=16 };"),
        (32, 96, TURN_B, 48, 8, "load B in register { vectorize n=16 };"),
        (64, 192, PACK_A, 48, 8, ""), (64, 64, "", 16, 16, ""), (256, 48, TURN_B, 48, 8, "load B in register { vectorize n=16 };"),
        (128, 192, TURN_B.replace("48", "32"), 32, 12, "load B in register { vectorize n=16 };"),
        (64, 192, TURN_B.replace("48", "16"), 16, 14, "load B in register { vectorize n=16 };"),
    ]
] + [
    "tile m=64 n=64 -> block; split n=1 m=64; accumulate in register; split k=1; load A in register { vectorize m=16 }; vectorize m=16",
    "tile m=64 n=64 -> block; split n=8 m=48; accumulate in register; split k=1; load A in register { vectorize m=16 }; split n=1"
    " unroll; vectorize m=16",
    "tile m=64 n=64 -> block; split n=8 m=8; accumulate in register; split k=16; split n=1 m=1 unroll; vectorize k=16",
]  # fmt: skip

OPERATORS: dict[str, tuple[str, list[str]]] = {
    "product packed": (PRODUCT.format(1024, 1000, 1024),
                       list(packed("m n k A B", "", "m={} n={}", "{ vectorize n=16 }", PRODUCT_TILES))),
    "product": (PRODUCT.format(1024, 1000, 1024), list(unpacked(1008))),
    "product, rows of a page": (PRODUCT.format(1024, 1024, 1024), list(unpacked(1024))),
    "product, deep": (PRODUCT.format(128, 1000, 4032), list(unpacked(1008))),
    "product, flat": (PRODUCT.format(4096, 1024, 2), list(unpacked(1024))),
    "product, small": (PRODUCT.format(256, 256, 256), list(unpacked(256))),
    "product, transposed": (TRANSPOSED, STRIDED_OPERANDS),
    "vector product": (VECTOR_PRODUCT, VECTOR_PRODUCTS),
    "pointwise convolution": (POINTWISE_CONVOLUTION,
                              list(packed("f pq c W X", "fuse pq=(h, w); ", "n=1 f={} pq={}", "", FLAT_TILES))
                              + [FLAT_UNPACKED.format(*t) for t in ((64, 192), (64, 784), (512, 48), (128, 392))]),
    "convolution": (CONVOLUTION,
                    list(packed("f pq k W X", "fuse pq=(p, q); fuse k=(c, r, s); ", "n=1 f={} pq={}", "", WINDOW_TILES))
                    + [DIRECT.format(**t) for t in DIRECT_TILES]),
    "depthwise": (DEPTHWISE, [WINDOWS.format(*t) for t in DEPTHWISE_TILES] + [
        "tile n=1 c=1 p=21 -> block; load X in shared; split p=3; split q=16; accumulate in register; split r=1; split s=1 unroll;"
        " split p=1 unroll; vectorize q=16",
        "tile n=1 c=16 -> block; load X in shared layout (h, w, c); load W in shared layout (r, s, c); split p=1 q=4;"
        " accumulate in register; split r=1; split s=1 unroll; split q=1 unroll; vectorize c=16"]),
    "pooling": (POOLING, [WINDOWS.format(*t) for t in POOLING_TILES]),
    "row sums": (ROW_SUM.format(4096, 1024), ROWS),
    "short row sums": (ROW_SUM.format(16384, 49), SHORT_ROWS),
    "rectified": (RECTIFIED, STREAMS),
    "exponential": (EXPONENTIAL, EXPONENTIALS),
    "transposition": (TRANSPOSITION, TRANSPOSITIONS),
    "softmax": (SOFTMAX, STAGES),
    "normalization": (NORMALIZATION, NORMALIZATIONS),
    "halves": (HALVES, CONVERSIONS),
}  # fmt: skip
