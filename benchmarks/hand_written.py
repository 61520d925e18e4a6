"""The best C we can write by hand for a processor, operator by operator: the yardstick for what a schedule compiles to.

Every kernel has a form that a schedule can say: blocks of one thread (`tile i=1 -> block`), loops over vectors of 16 floats,
named vector variables, rows and tiles in local memory, partial reductions in the lanes, non-temporal stores, a prefetch of the row
to come. Sizes are constants of the text. `python benchmarks/hand_written.py` checks each against PyTorch or NumPy in float64 and
prints its time beside theirs in float32 and beside a streaming copy and a pure read, which bound what memory allows. All sides
share their arrays. What was tried and lost is said at each function, measured on two cores with AVX-512 through PoCL 3.0, 4096 x 4096.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `python benchmarks/hand_written.py` from anywhere

from benchmarks.hand_written_matmul import MatmulTiles, best_tiles, matmul_source
from benchmarks.harness import Comparison, Contestant, FloatArray, HostBench, aligned_array, compare, record, table

LANES = 16

# No fast-math option may be used with these: `exponential` rounds by adding and subtracting a large number. Contraction of a * b + c
# needs no option. A comparison shared by two selects becomes a vector mask, so each select has its own.
PRELUDE = """\
typedef __SIZE_TYPE__ size_t;
typedef float vec __attribute__((ext_vector_type(16)));
typedef int ints __attribute__((ext_vector_type(16)));
typedef float float8 __attribute__((ext_vector_type(8)));
typedef float float4 __attribute__((ext_vector_type(4)));
typedef float float2 __attribute__((ext_vector_type(2)));
#define INFINITY __builtin_inff()
#define LOAD(p) (*(const vec*)(p))
#define LOCAL(p) (*(vec*)(p))
#define STORE(p, v) (*(vec*)(p) = (v))
#define STREAM(p, ...) __builtin_nontemporal_store((__VA_ARGS__), (vec*)(p))
#define PREFETCH(p) __builtin_prefetch((const void*)(size_t)(p), 0, 3)
#define PREFETCH_SECOND_LEVEL(p) __builtin_prefetch((const void*)(size_t)(p), 0, 2)
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#define KERNEL static inline __attribute__((always_inline)) void kernel_block
#define BLOCK float* restrict local, const long long* restrict block
static inline float lane_sum(vec v) { float8 a = v.lo + v.hi; float4 b = a.lo + a.hi; float2 c = b.lo + b.hi; return c.x + c.y; }
static inline float lane_max(vec v) {
  float8 a = LARGER(v.lo, v.hi); float4 b = LARGER(a.lo, a.hi); float2 c = LARGER(b.lo, b.hi); return LARGER(c.x, c.y);
}
"""

# exp: x = n ln 2 + r, |r| <= ln 2 / 2, a polynomial of degree 6 in r (minimax, first two coefficients 1), n added to the exponent bits.
# 0.87 units in the last place; below -87.3 zero, above 88.72 infinity, NaN stays. Degree 5 has 2.0 and is 3 % faster.
EXPONENTIAL = """\
static inline vec exponential(vec x) {
  vec t = x * 1.44269504f + 12582912.0f;
  vec n = t - 12582912.0f;
  vec r = n * -0.693359375f + x;
  r = n * 2.12194440e-4f + r;
  vec p = r * 0.0013814320554956794f + 0.008368851616978645f;
  p = p * r + 0.041668400168418884f;
  p = p * r + 0.1666651964187622f;
  p = p * r + 0.4999999403953552f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  vec e = __builtin_bit_cast(vec, __builtin_bit_cast(ints, p) + (__builtin_bit_cast(ints, t) << 23));
  e = x > 88.72283f ? (vec)(INFINITY) : e;
  return x < -87.3f ? (vec)(0.0f) : e;
}
"""

# tanh: the rational minimax function of degree 13 over 6, clamped where it reaches 1. 4.3 units in the last place. The builtin is three
# times slower; a quotient of exponentials with a polynomial near zero has 1.5 units and is 1.6 times slower.
HYPERBOLIC_TANGENT = """\
static inline vec hyperbolic_tangent(vec x) {
  vec c = x > 7.90531110763549805f ? (vec)(7.90531110763549805f) : x;
  c = c < -7.90531110763549805f ? (vec)(-7.90531110763549805f) : c;
  vec q = c * c;
  vec p = q * -2.76076847742355e-16f + 2.00018790482477e-13f;
  p = p * q - 8.60467152213735e-11f;
  p = p * q + 5.12229709037114e-08f;
  p = p * q + 1.48572235717979e-05f;
  p = p * q + 6.37261928875436e-04f;
  p = p * q + 4.89352455891786e-03f;
  vec d = q * 1.19825839466702e-06f + 1.18534705686654e-04f;
  d = d * q + 2.26843463243900e-03f;
  d = d * q + 4.89352518554385e-03f;
  return c * p / d;
}
"""


def each(count: int, text: str) -> str:
    """The text once for each of `count` vectors: @ becomes its number, # the number of its first element."""
    return " ".join(text.replace("@", str(v)).replace("#", str(LANES * v)) for v in range(count))


def combine(count: int, text: str) -> str:
    """The text for the vectors 1 .. count-1, as `each`: folds partial results into number 0."""
    return " ".join(text.replace("@", str(v)) for v in range(1, count))


def whole_vectors(columns: int, vectors: int) -> int:
    """Elements a round of `vectors` vectors; the yardsticks have no tails but the matrix product."""
    if columns % (LANES * vectors):
        raise ValueError(f"{columns} columns are not a multiple of {LANES * vectors}")
    return LANES * vectors


def copy_source(columns: int, rows: int = 8) -> str:
    """Streaming copy of `rows` rows a block: the bound for what reads and writes everything once.

    Without non-temporal stores 2.2 times slower; without the prefetch 1.1 times.
    """
    return f"""{PRELUDE}
KERNEL(const float* restrict X, float* restrict Y, BLOCK) {{
  const size_t first = block[0] * (size_t){rows * columns};
  #pragma unroll 4
  for (int j = 0; j < {rows * columns}; j += {LANES}) {{
    PREFETCH_SECOND_LEVEL(X + first + j + 4096);
    STREAM(Y + first + j, LOAD(X + first + j));
  }}
}}"""


def read_source(columns: int, rows: int = 8, vectors: int = 8) -> str:
    """Reads everything once and keeps one number a block: the bound for what only reads."""
    step = whole_vectors(columns, vectors)
    return f"""{PRELUDE}
KERNEL(const float* restrict X, float* restrict Y, BLOCK) {{
  const float* x = X + block[0] * (size_t){rows * columns};
  {each(vectors, "vec m@ = (vec)(-INFINITY);")}
  for (int j = 0; j < {rows * columns}; j += {step}) {{
    {each(vectors, "m@ = LARGER(LOAD(x + j + #), m@); PREFETCH(x + j + # + 1024);")}
  }}
  {combine(vectors, "m0 = LARGER(m@, m0);")}
  Y[block[0]] = lane_max(m0);
}}"""


def row_sum_source(columns: int, vectors: int = 4) -> str:
    """A row a block, four accumulators (one is latency-bound: 1.5 times slower cold), a prefetch 64 lines ahead."""
    step = whole_vectors(columns, vectors)
    return f"""{PRELUDE}
KERNEL(const float* restrict X, float* restrict Y, BLOCK) {{
  const float* x = X + block[0] * (size_t){columns};
  {each(vectors, "vec s@ = (vec)(0.0f);")}
  for (int j = 0; j < {columns}; j += {step}) {{ {each(vectors, "s@ += LOAD(x + j + #); PREFETCH(x + j + # + 1024);")} }}
  {combine(vectors, "s0 += s@;")}
  Y[block[0]] = lane_sum(s0);
}}"""


def softmax_source(columns: int, vectors: int = 4) -> str:
    """Three loops a row: peak; exp kept in local memory and its sum, meanwhile the next row is prefetched; scaled streaming store.

    Slower: exp recomputed instead of kept (1.15 times), a prefetch in another loop (1.2) or into the second level of cache (1.1) or
    none (1.3), cached stores (1.5), one accumulator (1.1). What remains above a copy is that streaming stores wait for memory while
    nothing is computed.
    """
    step = whole_vectors(columns, vectors)
    body = f"{{ vec e = exponential(LOAD(x + j + #) - peak); s@ += e; LOCAL(row + j + #) = e; PREFETCH(x + j + # + {columns}); }}"
    kept = each(vectors, body)
    return f"""{PRELUDE}{EXPONENTIAL}
KERNEL(const float* restrict X, float* restrict Y, BLOCK) {{
  float* restrict row = local;
  const float* x = X + block[0] * (size_t){columns};
  float* y = Y + block[0] * (size_t){columns};
  {each(vectors, "vec m@ = (vec)(-INFINITY), s@ = (vec)(0.0f);")}
  for (int j = 0; j < {columns}; j += {step}) {{ {each(vectors, "m@ = LARGER(LOAD(x + j + #), m@);")} }}
  {combine(vectors, "m0 = LARGER(m@, m0);")}
  const float peak = lane_max(m0);
  for (int j = 0; j < {columns}; j += {step}) {{
    {kept}
  }}
  {combine(vectors, "s0 += s@;")}
  const float scale = 1.0f / lane_sum(s0);
  for (int j = 0; j < {columns}; j += {step}) {{ {each(vectors, "STREAM(y + j + #, LOCAL(row + j + #) * scale);")} }}
}}"""


def softmax_overlapped_source(columns: int, rows: int = 16, vectors: int = 4) -> str:
    """`softmax_source` with the store of each row inside the exp loop of the next: streaming stores then cost no time of their own.

    1.3-1.4 times faster than `softmax_source`. A ring of two local rows instead of one updated in place: 1.1 times slower (it leaves
    the first level of cache); 8 or 32 rows a block: the same.
    """
    step = whole_vectors(columns, vectors)
    load = each(vectors, "vec e@ = exponential(LOAD(x + j + #) - peak); PREFETCH(x + j + # + {0});").replace("{0}", str(columns))
    keep = each(vectors, "LOCAL(row + j + #) = e@; s@ += e@;")
    store = each(vectors, f"STREAM(y + j + # - {columns}, LOCAL(row + j + #) * scale);")
    return f"""{PRELUDE}{EXPONENTIAL}
KERNEL(const float* restrict X, float* restrict Y, BLOCK) {{
  float* restrict row = local;
  const float* x = X + block[0] * (size_t){rows * columns};
  float* y = Y + block[0] * (size_t){rows * columns};
  float scale;
  for (int i = 0; i < {rows}; i++, x += {columns}, y += {columns}) {{
    {each(vectors, "vec m@ = (vec)(-INFINITY), s@ = (vec)(0.0f);")}
    for (int j = 0; j < {columns}; j += {step}) {{ {each(vectors, "m@ = LARGER(LOAD(x + j + #), m@);")} }}
    {combine(vectors, "m0 = LARGER(m@, m0);")}
    const float peak = lane_max(m0);
    if (i == 0) for (int j = 0; j < {columns}; j += {step}) {{
      {load} {keep}
    }} else for (int j = 0; j < {columns}; j += {step}) {{
      {load} {store} {keep}
    }}
    {combine(vectors, "s0 += s@;")}
    scale = 1.0f / lane_sum(s0);
  }}
  for (int j = 0; j < {columns}; j += {step}) {{ {store} }}
}}"""


def layer_normalization_source(columns: int, vectors: int = 8, epsilon: float = 1e-5) -> str:
    """Welford's means and squared deviations in every lane of eight accumulators, combined pairwise; then one streaming pass.

    The reciprocal of the count is one scalar division a round. The prefetch of the next row belongs into the last loop, which waits
    for memory (elsewhere 1.15 times slower), and into the second level of cache (into the first, which the row, gamma and beta fill,
    1.1-1.2 times slower). A sum and a sum of squares: 1.05 times faster; two passes: the same time.
    """
    step = whole_vectors(columns, vectors)
    if vectors & (vectors - 1):
        raise ValueError("accumulators are combined pairwise: their number must be a power of two")
    folds, count, width = [], vectors, vectors
    while width > 1:
        width //= 2
        folds += [
            f"{{ vec d = u{v + width} - u{v}; u{v} += d * 0.5f; q{v} += q{v + width} + d * d * (count * 0.5f); }}"
            for v in range(width)
        ]
        folds.append("count *= 2.0f;")
    mean, squares = "u0", "q0"
    for count in (8, 4, 2, 1):
        kind, low, high = (f"float{count}", "lo", "hi") if count > 1 else ("float", "x", "y")
        folds.append(
            f"{kind} d{count} = {mean}.{high} - {mean}.{low}, mean{count} = {mean}.{low} + d{count} * 0.5f,"
            f" squares{count} = {squares}.{low} + {squares}.{high} + d{count} * d{count} * (count * 0.5f); count *= 2.0f;"
        )
        mean, squares = f"mean{count}", f"squares{count}"
    new_line = "\n  "
    return f"""{PRELUDE}
KERNEL(const float* restrict X, const float* restrict gamma, const float* restrict beta,
       float* restrict Y, BLOCK) {{
  const float* x = X + block[0] * (size_t){columns};
  float* y = Y + block[0] * (size_t){columns};
  {each(vectors, "vec u@ = (vec)(0.0f), q@ = (vec)(0.0f);")}
  float count = 0.0f;
  for (int j = 0; j < {columns}; j += {step}) {{
    count += 1.0f;
    const float weight = 1.0f / count;
    {each(vectors, "{ vec v = LOAD(x + j + #), d = v - u@; u@ = d * weight + u@; q@ = d * (v - u@) + q@; }")}
  }}
  {new_line.join(folds)}
  const float scale = 1.0f / __builtin_sqrtf(squares1 * {1 / columns!r}f + {epsilon!r}f);
  for (int j = 0; j < {columns}; j += {LANES}) {{
    STREAM(y + j, (LOAD(x + j) - mean1) * scale * LOAD(gamma + j) + LOAD(beta + j));
    PREFETCH_SECOND_LEVEL(x + j + {columns});
  }}
}}"""


def gelu_source(columns: int) -> str:
    """0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), one pass, a prefetch 64 lines ahead."""
    return f"""{PRELUDE}{HYPERBOLIC_TANGENT}
KERNEL(const float* restrict X, float* restrict Y, BLOCK) {{
  const size_t first = block[0] * (size_t){columns};
  #pragma unroll 4
  for (int j = 0; j < {columns}; j += {LANES}) {{
    PREFETCH(X + first + j + 1024);
    vec v = LOAD(X + first + j), u = (v * v * v * 0.044715f + v) * 0.7978845608028654f;
    STREAM(Y + first + j, (hyperbolic_tangent(u) + 1.0f) * (v * 0.5f));
  }}
}}"""


def transpose_source(rows: int, columns: int, tile: int = 32) -> str:
    """A square tile through local memory: vector loads of its rows, columns gathered lane by lane, streaming vector stores.

    Tiles of 16 and 64 take the same time, 128 takes 1.6 times more (it leaves the first level of cache). Columns gathered from global
    memory, without a tile: 1.2; scattering lanes into the tile and reading vectors: 1.3; padded rows: 1.1-1.2; cached stores: 3. The
    16 x 16 transpose in registers by shuffles would take 0.7.
    """
    if rows % tile or columns % tile or tile % LANES:
        raise ValueError(f"{rows} x {columns} is not cut evenly by tiles of {tile}")
    gathered = ", ".join(f"t[(i + {lane}) * {tile} + j]" for lane in range(LANES))
    return f"""{PRELUDE}
KERNEL(const float* restrict X, float* restrict Y, BLOCK) {{
  float* restrict t = local;
  const size_t i0 = block[1] * {tile}, j0 = block[0] * {tile};
  for (int i = 0; i < {tile}; i++)
    for (int j = 0; j < {tile}; j += {LANES}) LOCAL(t + i * {tile} + j) = LOAD(X + (i0 + i) * {columns} + j0 + j);
  for (int j = 0; j < {tile}; j++)
    for (int i = 0; i < {tile}; i += {LANES}) STREAM(Y + (j0 + j) * {rows} + i0 + i, (vec){{{gathered}}});
}}"""


@dataclasses.dataclass(frozen=True)
class Row:
    """A line of the table: one operator at one size. `best` quotients are of shortest times, the others of medians."""

    operator: str
    size: str
    ms: float
    best_ms: float
    peer: str
    peer_ratio: float
    best_peer_ratio: float
    bound: str = ""
    bound_ratio: float | None = None
    best_bound_ratio: float | None = None
    processor_bound_ratio: float | None = None
    best_gflops: float | None = None


def check(name: str, got: FloatArray, expected: np.ndarray[tuple[int, ...], np.dtype[np.float64]], tolerance: float) -> None:
    """Stops where a yardstick computes something else: a wrong kernel's time says nothing. NaN fails too."""
    error = float(np.abs(got - expected).max())
    if not error <= tolerance:
        raise SystemExit(f"{name} is wrong: error {error:.2e}, allowed {tolerance:.2e}")


def measure_memory_bound(bench: HostBench, n: int, rounds: int) -> list[Row]:
    """Every memory-bound operator on one n x n matrix that all sides read, and one output that all sides write."""
    import torch

    torch.set_num_threads(bench.device.compute_units)
    rng = np.random.default_rng(0)
    x, y, sums, gamma, beta = (aligned_array(s) for s in ((n, n), (n, n), (n,), (n,), (n,)))
    x[...], gamma[...], beta[...] = rng.standard_normal((n, n)), rng.standard_normal(n), rng.standard_normal(n)
    tx, ty, tsums, tgamma, tbeta = (torch.from_numpy(a) for a in (x, y, sums, gamma, beta))
    wide = tx.double()
    gelu: Callable[..., torch.Tensor] = torch._C._nn.gelu
    softmax, expected_softmax = functools.partial(torch.softmax, tx, 1, out=ty), functools.partial(torch.softmax, wide, 1)
    every: list[tuple[str, str, tuple[int, ...], list[FloatArray], Callable[[], object], Callable[[], object], float]] = [
        ("row sum", row_sum_source(n), (n,), [x, sums], lambda: torch.sum(tx, 1, out=tsums), lambda: wide.sum(1), 1e-5 * n),
        ("softmax", softmax_source(n), (n,), [x, y], softmax, expected_softmax, 1e-6),
        ("softmax, overlapped", softmax_overlapped_source(n), (n // 16,), [x, y], softmax, expected_softmax, 1e-6),
        (
            "layer normalization",
            layer_normalization_source(n),
            (n,),
            [x, gamma, beta, y],
            lambda: torch.layer_norm(tx, (n,), tgamma, tbeta),
            lambda: torch.layer_norm(wide, (n,), tgamma.double(), tbeta.double()),
            3e-5,
        ),
        (
            "gelu (tanh)",
            gelu_source(n),
            (n,),
            [x, y],
            lambda: gelu(tx, approximate="tanh", out=ty),
            lambda: gelu(wide, approximate="tanh"),
            3e-6,
        ),
        ("transpose", transpose_source(n, n), (n // 32, n // 32), [x, y], lambda: ty.copy_(tx.T), lambda: wide.T, 0.0),
    ]
    copy = bench.launch(copy_source(n), (n // 8,), [x, y])
    read = bench.launch(read_source(n), (n // 8,), [x, sums])
    rows = []
    for name, source, grid, arrays, peer, reference, tolerance in every:
        ours = bench.launch(source, grid, arrays)
        arrays[-1][...] = np.nan
        ours()
        check(name, arrays[-1], np.asarray(reference()), tolerance)
        measured = compare(
            [
                Contestant("copy", "ours", copy),
                Contestant("read", "ours", read),
                Contestant("ours", "ours", ours),
                Contestant("peer", "torch", peer),
            ],
            rounds,
        )
        rows.append(memory_row(name, f"{n}x{n}", measured, "read" if name == "row sum" else "copy"))
        print(line(rows[-1]), flush=True)
    return rows


def memory_row(name: str, size: str, measured: Comparison, bound: str) -> Row:
    """The table's line for an operator that memory bounds: `bound` is the contestant that nothing can beat, copy or read."""
    return Row(
        name,
        size,
        measured.median_ms("ours"),
        measured.best_ms("ours"),
        "PyTorch",
        measured.ratio("ours", "peer"),
        measured.best_ratio("ours", "peer"),
        bound,
        measured.ratio("ours", bound),
        measured.best_ratio("ours", bound),
        measured.processor_ratio("ours", bound),
    )


def measure_matmul(bench: HostBench, m: int, n: int, k: int, rounds: int, tiles: MatmulTiles | None = None) -> Row:
    """The matrix product of one size beside NumPy's."""
    tiles = tiles or best_tiles(m, n, k)
    rng = np.random.default_rng(1)
    a, b, c, product = (aligned_array(s) for s in ((m, k), (k, n), (m, n), (m, n)))
    a[...], b[...] = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    ours = bench.launch(matmul_source(m, n, k, tiles), tiles.grid(m, n), [a, b, c])
    c[...] = np.nan
    ours()
    check("matmul", c, a.astype(np.float64) @ b.astype(np.float64), 1e-6 * k)
    measured = compare(
        [Contestant("ours", "ours", ours), Contestant("peer", "numpy", lambda: np.matmul(a, b, out=product))], rounds
    )
    best_ms = measured.best_ms("ours")
    ratios = measured.ratio("ours", "peer"), measured.best_ratio("ours", "peer")
    gflops = 2e-6 * m * n * k / best_ms
    row = Row("matmul", f"{m}x{n}x{k}", measured.median_ms("ours"), best_ms, "NumPy", *ratios, best_gflops=gflops)
    print(line(row), flush=True)
    return row


HEADING = (
    "operator",
    "size",
    "ms",
    "(best)",
    "x peer",
    "(best)",
    "peer",
    "x bound",
    "(best)",
    "(processor)",
    "bound",
    "best GFLOP/s",
)


def cells(row: Row) -> tuple[str, ...]:
    """A row as the table's texts."""
    bounds = [f"{v:.2f}" if v is not None else "" for v in (row.bound_ratio, row.best_bound_ratio, row.processor_bound_ratio)]
    return (
        row.operator,
        row.size,
        f"{row.ms:.2f}",
        f"{row.best_ms:.2f}",
        f"{row.peer_ratio:.2f}",
        f"{row.best_peer_ratio:.2f}",
        row.peer,
        *bounds,
        row.bound,
        f"{row.best_gflops:.0f}" if row.best_gflops is not None else "",
    )


def line(row: Row) -> str:
    """A row for someone who waits for the table."""
    return "  ".join(c for c in cells(row) if c)


def main() -> None:
    """Checks and measures every yardstick, prints the table, and appends it to a file where one is named."""
    parser = argparse.ArgumentParser(description="hand-written C beside PyTorch, NumPy and the memory's bandwidth")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", choices=("memory", "matmul"))
    parser.add_argument("--record", type=Path, help="a file of JSON lines to append to")
    options = parser.parse_args()
    bench = HostBench()
    rows: list[Row] = []
    if options.only != "matmul":
        rows += measure_memory_bound(bench, 4096, options.rounds)
    if options.only != "memory":
        for m, n, k in ((1024, 1024, 1024), (2048, 2048, 2048), (1000, 1111, 777)):
            rows.append(measure_matmul(bench, m, n, k, options.rounds))
    print()
    print(table([HEADING, *(cells(r) for r in rows)]))
    if options.record:
        record(options.record, [dataclasses.asdict(r) for r in rows], bench.device.name)


if __name__ == "__main__":
    main()
