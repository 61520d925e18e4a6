"""The hand-written matrix product for a CPU with vectors of 16 floats: `gemm_cpu` of the language's guide as one would type it.

A block makes an mt x nt block of C. It walks K in panels of kc; for each it packs B into local memory in the order in which the
innermost loop reads it, and lets a 6 x 64 tile of C grow in 24 named vector variables. Six rows of A stay in the first level of
cache while they meet every panel of B, so A is read where it lies: packing it too (`pack_a`) costs 5-8 % more than it saves. Tails:
panels are cut, the last columns of C get a narrower register tile whose missing lanes are packed as zeros and never stored. Any size.
"""

from __future__ import annotations

import dataclasses

LANES = 16


def ceil_div(a: int, b: int) -> int:
    """a / b rounded up."""
    return -(-a // b)


@dataclasses.dataclass(frozen=True)
class MatmulTiles:
    """Block (mt, nt), panel depth kc, register tile (mr, 16 nv), unrolling of k."""

    mt: int
    nt: int
    kc: int
    mr: int = 8
    nv: int = 3
    unroll: int = 4
    pack_a: bool = False
    rows_outer: bool = True  # rows of A outside, panels of B inside

    @property
    def nr(self) -> int:
        """Columns of the register tile."""
        return LANES * self.nv

    @property
    def local_bytes(self) -> int:
        """Local memory of the packed panels."""
        rows = ceil_div(self.mt, self.mr) * self.mr if self.pack_a else 0
        return 4 * self.kc * (rows + ceil_div(self.nt, self.nr) * self.nr)

    def grid(self, m: int, n: int) -> tuple[int, int]:
        """Blocks along n and along m."""
        return ceil_div(n, self.nt), ceil_div(m, self.mt)


def best_tiles(m: int, n: int, k: int) -> MatmulTiles:
    """All rows of some columns, an even number of such blocks for two cores, and panels of equal depth of at most 512."""
    columns = ceil_div(n, 2 * ceil_div(n, 512))
    return MatmulTiles(ceil_div(m, 6) * 6, ceil_div(columns, 64) * 64, ceil_div(k, ceil_div(k, 512)), mr=6, nv=4)


PRELUDE = """\
typedef __SIZE_TYPE__ size_t;
typedef float vec __attribute__((ext_vector_type(16)));
typedef float loose __attribute__((ext_vector_type(16), aligned(4)));
#define LOAD(p) (*(const loose*)(p))
#define LOCAL(p) (*(vec*)(p))
#define AT(p) (*(loose*)(p))
#define LEAST(a, b) ((a) < (b) ? (a) : (b))
#define KERNEL static inline __attribute__((always_inline)) void kernel_block
#define BLOCK float* restrict local, const long long* restrict block
"""


def pack_b(n: int, tiles: MatmulTiles) -> list[str]:
    """Panels of nr columns, row after row; the missing columns of the last panel up to a whole vector are zeros."""
    kc, nr = tiles.kc, tiles.nr
    source = f"B + (size_t)(k0 + k) * {n} + n0 + p * {nr}"
    target = f"packed_b + p * {kc * nr} + k * {nr}"
    out = [f"for (int p = 0; p < nb / {nr}; p++) for (int k = 0; k < kb; k++) {{"]
    out += [f"LOCAL({target} + {LANES * v}) = LOAD({source} + {LANES * v});" for v in range(tiles.nv)]
    out += ["}"]
    whole, left = divmod(n % nr, LANES)
    if whole or left:
        out += [f"if (nb % {nr}) {{ const int p = nb / {nr}; for (int k = 0; k < kb; k++) {{ const float* b = {source};"]
        out += [f"LOCAL({target} + {LANES * v}) = LOAD(b + {LANES * v});" for v in range(whole)]
        if left:
            lanes = ", ".join(f"b[{LANES * whole + i}]" if i < left else "0.0f" for i in range(LANES))
            out += [f"LOCAL({target} + {LANES * whole}) = (vec){{{lanes}}};"]
        out += ["}}"]
    return out


def pack_a(m: int, k: int, tiles: MatmulTiles) -> list[str]:
    """Panels of mr rows, column after column."""

    def panel(rows: int) -> list[str]:
        target = f"packed_a[q * {tiles.kc * tiles.mr} + k * {tiles.mr} + "
        return [f"{target}{i}] = A[(size_t)(m0 + q * {tiles.mr} + {i}) * {k} + k0 + k];" for i in range(rows)]

    out = [f"for (int q = 0; q < mb / {tiles.mr}; q++) for (int k = 0; k < kb; k++) {{", *panel(tiles.mr), "}"]
    if m % tiles.mr:
        out += [
            f"if (mb % {tiles.mr}) {{ const int q = mb / {tiles.mr}; for (int k = 0; k < kb; k++) {{",
            *panel(m % tiles.mr),
            "}}",
        ]
    return out


def register_tile(n: int, k: int, tiles: MatmulTiles, rows: int, columns: int) -> list[str]:
    """The innermost loop for panels p, q and the update of `rows` x `columns` elements of C."""
    vectors = ceil_div(columns, LANES)
    pairs = [(i, v) for i in range(rows) for v in range(vectors)]
    packed, in_place = f"packed_a + q * {tiles.kc * tiles.mr}", f"A + (size_t)(m0 + q * {tiles.mr}) * {k} + k0"
    between_rows, between_columns = (1, tiles.mr) if tiles.pack_a else (k, 1)
    out = [
        f"{{ float* c = C + (size_t)(m0 + q * {tiles.mr}) * {n} + n0 + p * {tiles.nr};",
        f"float* b = packed_b + p * {tiles.kc * tiles.nr};",
        f"const float* a = {packed};" if tiles.pack_a else f"const float* a = {in_place};",
    ]
    out += [f"vec c{i}_{v} = (vec)(0.0f);" for i, v in pairs]
    out += [f"#pragma unroll {tiles.unroll}", "for (int k = 0; k < kb; k++) {"]
    out += [f"const vec b{v} = LOCAL(b + {LANES * v});" for v in range(vectors)]
    for i in range(rows):
        out += [
            f"{{ const vec x = (vec)(a[{i * between_rows}]);",
            *(f"c{i}_{v} = x * b{v} + c{i}_{v};" for v in range(vectors)),
            "}",
        ]
    out += [f"b += {tiles.nr}; a += {between_columns}; }}"]
    for head, sign in (("if (k0 == 0) {", "="), ("} else {", "+=")):
        out.append(head)
        for i, v in pairs:
            left = columns - LANES * v
            if left >= LANES:
                out += [f"AT(c + (size_t){i} * {n} + {LANES * v}) {sign} c{i}_{v};"]
            else:
                out += [f"c[(size_t){i} * {n} + {LANES * v + lane}] {sign} c{i}_{v}.s{lane:x};" for lane in range(left)]
    return [*out, "}}"]


def leaf_source(depth: int, rounds: int, tiles: MatmulTiles) -> str:
    """The innermost loop alone: one panel of A and one of B, near enough to the core, meet again and again."""
    rows, vectors = range(tiles.mr), range(tiles.nv)
    pairs = [(i, v) for i in rows for v in vectors]
    out = [
        PRELUDE + "KERNEL(const float* restrict A, const float* restrict B, float* restrict C, BLOCK) {",
        f"C += (int)block[0] * {tiles.mr * tiles.nr};",
        f"for (int round = 0; round < {rounds}; round++) {{ const float *a = A, *b = B;",
        *(f"vec c{i}_{v} = (vec)(0.0f);" for i, v in pairs),
        f"#pragma unroll {tiles.unroll}",
        f"for (int k = 0; k < {depth}; k++) {{",
        *(f"const vec b{v} = LOAD(b + {LANES * v});" for v in vectors),
    ]
    for i in rows:
        out += [f"{{ const vec x = (vec)(a[{i}]);", *(f"c{i}_{v} = x * b{v} + c{i}_{v};" for v in vectors), "}"]
    out += [f"b += {tiles.nr}; a += {tiles.mr}; }}"]
    out += [f"AT(C + {LANES * (i * tiles.nv + v)}) = c{i}_{v};" for i, v in pairs]
    return "\n".join([*out, "}}"])


def matmul_source(m: int, n: int, k: int, tiles: MatmulTiles) -> str:
    """C[m, n] = A[m, k] B[k, n] in float32; the grid is `tiles.grid(m, n)`."""
    mr, nr = tiles.mr, tiles.nr
    out = [
        PRELUDE + "KERNEL(const float* restrict A, const float* restrict B, float* restrict C, BLOCK) {",
        f"const int m0 = (int)block[1] * {tiles.mt}, n0 = (int)block[0] * {tiles.nt};",
        f"const int mb = LEAST({tiles.mt}, {m} - m0), nb = LEAST({tiles.nt}, {n} - n0);",
        "float* restrict packed_b = local;",
    ]
    if tiles.pack_a:
        out += [f"float* restrict packed_a = local + {ceil_div(tiles.nt, nr) * nr * tiles.kc};"]
    out += [f"for (int k0 = 0; k0 < {k}; k0 += {tiles.kc}) {{ const int kb = LEAST({tiles.kc}, {k} - k0);", *pack_b(n, tiles)]
    if tiles.pack_a:
        out += pack_a(m, k, tiles)
    panels, rows = f"for (int p = 0; p < nb / {nr}; p++)", f"for (int q = 0; q < mb / {mr}; q++)"
    out += [f"{rows} {panels}" if tiles.rows_outer else f"{panels} {rows}", *register_tile(n, k, tiles, mr, nr)]
    m_tail, n_tail = m % mr, n % nr
    last_p, last_q = f"const int p = nb / {nr};", f"const int q = mb / {mr};"
    if n_tail:
        out += [f"if (nb % {nr}) {{ {last_p} {rows}", *register_tile(n, k, tiles, mr, n_tail), "}"]
    if m_tail:
        out += [f"if (mb % {mr}) {{ {last_q} {panels}", *register_tile(n, k, tiles, m_tail, nr), "}"]
    if m_tail and n_tail:
        out += [f"if (mb % {mr} && nb % {nr}) {{ {last_p} {last_q}", *register_tile(n, k, tiles, m_tail, n_tail), "}"]
    return "\n".join([*out, "}}"])
