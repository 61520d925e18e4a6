"""What `benchmarks/gpu.py` measures: operators at sizes, each with the schedules that may compute it.

Three groups: `products` (matrix products), `convolutions` (with depthwise ones), `memory` (what a device does as fast as it copies).
roller.csv holds the 119 operators of ROLLER's evaluation (Zhu et al., OSDI 2022, Figure 10) with the times in milliseconds on a V100
that the paper's artifact gives; its Figures 12, 13 and 15 are the sets `scaling` and `tensor cores` below. Images lie channels last
here, for the peers too. Schedules are the examples'.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import importlib.util
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import tilelang as tl
from tilelang.computations.computation import as_computation
from tilelang.profiles.profile import Profile

ROOT = Path(__file__).resolve().parent.parent
GROUPS = ("products", "convolutions", "memory")
SQUARES = (8192, 4096, 2048, 1024, 16384)  # the most telling first
Candidates = dict[str, Callable[[], tl.Schedule]]
Contestants = dict[str, Callable[[], tl.Schedule | tl.Tensor]]  # a tensor: with the schedule that is constructed for it


@dataclasses.dataclass(frozen=True)
class Case:
    """One operator at one size. make: its computation, of so many rows or images if a number is given. schedules: what may compute it.

    facts: what its peers must know. exact: small integers give the same bits whatever the order of sums.
    """

    group: str
    operator: str
    size: str
    type: tl.DType
    make: Callable[[int | None], tl.Tensor]
    schedules: Callable[[tl.Tensor, Profile], Candidates]
    flops: float
    facts: tuple[int, ...] = ()
    exact: bool = True
    set: str = ""

    def contestants(self, y: tl.Tensor, profile: Profile) -> Contestants:
        """What may compute it: the schedule that is constructed, and those of the case."""
        return {"constructed": lambda: y, **self.schedules(y, profile)}

    @property
    def id(self) -> str:
        return f"{self.group}/{self.set or 'ours'}/{self.operator}/{self.type.name}/{self.size}"


@functools.cache
def example(name: str) -> ModuleType:
    """A module of examples/, by the name of its file."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", ROOT / "examples" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def roller() -> tuple[tuple[str, str, tuple[int, ...]], ...]:
    """The operators of roller.csv: name, kind, extents."""
    with (ROOT / "benchmarks" / "roller.csv").open(encoding="utf-8") as file:
        return tuple((row["id"], row["kind"], tuple(map(int, row["extents"].split()))) for row in csv.DictReader(file))


def cases(group: str) -> tuple[Case, ...]:
    """The cases of a group, the most telling first."""
    made: dict[str, Callable[[], Iterator[Case]]] = {"products": products, "convolutions": convolutions, "memory": memory}
    return tuple(made[group]())


# ---------------------------------------------------------------- matrix products


def products() -> Iterator[Case]:
    """Squares in every type, also with the second operand transposed and with an epilogue; rows at any byte; few rows; ROLLER's
    products, and its families: Figure 12 (rows 512 to 16384) and 15 (float16)."""
    for n in SQUARES:
        for type in (tl.float16, tl.bfloat16, tl.float32):
            yield product(n, n, n, type)
        yield product_by_tf32(n, n, n)
        for type in (tl.bfloat16, tl.float16):
            yield transposed(n, n, n, type)
        yield linear(n, n, n)
    for name, kind, extents in roller():
        if kind == "matmul":
            m, n, k = extents
            yield product(m, n, k, tl.float32, f"roller {name}")
    for m in (512, 1024, 2048, 4096, 8192, 16384):
        yield product(m, 1024, 4096, tl.float32, "roller scaling")
    for n, k in ((4096, 1024), (1024, 1024), (1024, 4096), (1024, 16384)):
        yield product(65536, n, k, tl.float16, "roller tensor cores")
    for type in (tl.float16, tl.bfloat16, tl.float32):
        yield product(4095, 4095, 4095, type, "odd")
    yield transposed(4095, 4095, 4095, tl.bfloat16, "odd")
    for m in (1, 16, 64, 128):
        yield product(m, 4096, 4096, tl.float16, "few rows")
        yield transposed(m, 4096, 4096, tl.bfloat16, "few rows")


def product(m: int, n: int, k: int, type: tl.DType, set: str = "") -> Case:
    """C = A B, of m x k by k x n."""
    return Case(
        "products", "matmul", f"{m}x{n}x{k}", type, lambda rows: example("01_matmul").matmul(rows or m, n, k, type),
        product_schedules, 2.0 * m * n * k, set=set,
    )  # fmt: skip


def product_by_tf32(m: int, n: int, k: int) -> Case:
    """The same of float32, with factors that may be rounded to tf32."""
    return Case(
        "products", "matmul tf32", f"{m}x{n}x{k}", tl.float32,
        lambda rows: example("16_matrix_types").matmul(rows or m, n, k), tf32_schedules, 2.0 * m * n * k,
    )  # fmt: skip


def transposed(m: int, n: int, k: int, type: tl.DType, set: str = "") -> Case:
    """C = A B^T, summed in float32."""
    return Case(
        "products", "matmul transposed", f"{m}x{n}x{k}", type,
        lambda rows: example("15_matrix_units").transposed(rows or m, n, k, type),
        product_schedules, 2.0 * m * n * k, set=set,
    )  # fmt: skip


def linear(m: int, n: int, k: int) -> Case:
    """A layer in bfloat16: gelu(A B^T + bias)."""

    def make(rows: int | None) -> tl.Tensor:  # some columns of some rows are enough to compare
        found: tl.Tensor = example("01_matmul").linear(rows or m, n if rows is None else min(n, 64), k)
        return found

    return Case("products", "linear gelu", f"{m}x{n}x{k}", tl.bfloat16, make, product_schedules, 2.0 * m * n * k, exact=False)


def product_schedules(c: tl.Tensor, profile: Profile) -> Candidates:
    """The product's schedules for a profile: those whose instructions it has, and those for threads alone."""
    made, units, warp = example("01_matmul"), example("15_matrix_units"), profile.warp_size
    a, b = (next(t for t in as_computation(c).inputs if t.name == name) for name in "AB")
    (m, k), n = a.shape, c.shape[-1]
    found: Candidates = {}
    if a.dtype in (tl.float16, tl.bfloat16):
        found |= {
            "warpgroups": lambda: made.gemm_hopper(c),
            "waves 32x32x8": lambda: units.gemm_cdna(c),
            "waves 16x16x16": lambda: units.gemm_cdna(c, "mfma_16x16x16"),
            "waves of 32": lambda: example("16_matrix_types").gemm_rdna(c),
        }
        if b.dims[0].name == "n":
            found |= {"warps": lambda: units.gemm_ampere_transposed(c), "waves, direct": lambda: units.gemm_direct(c)}
        else:
            found |= {"warps": lambda: units.gemm_ampere(c), "warps, one by one": lambda: product_one_by_one(c)}
    found |= {
        "simt 128x128x8": lambda: made.gemm_simt(c, columns=warp),
        "simt 64x64x16": lambda: made.gemm_simt(c, 64, 64, 16, warp),
        "simt 128x64x16": lambda: made.gemm_simt(c, 128, 64, 16, warp),
    }
    tiles = -(-m // 64) * -(-n // 64)
    if tiles < 2 * (profile.compute_units or 1):
        parts = min(-(-2 * (profile.compute_units or 1) // tiles), k // 128)
        if parts > 1:
            found[f"simt 64x64x16, k in {parts}"] = lambda: product_in_parts(c, -(-k // parts // 16) * 16, warp)
    return found


def tf32_schedules(c: tl.Tensor, profile: Profile) -> Candidates:
    """A licence need not be used: the schedules without it come too."""
    return {"warps": lambda: example("16_matrix_types").gemm_tf32(c)} | product_schedules(c, profile)


def product_one_by_one(c: tl.Tensor) -> tl.Schedule:
    """`gemm_ampere` for rows at any byte, which no copy of 16 bytes takes: elements are moved one by one."""
    of = "" if c.dtype == tl.float16 else f"_{c.dtype.name}"
    return (
        tl.schedule(c)
        .tile(m=128, n=128).to(tl.block, order=tl.layout(lambda m, n: (n // 8, m, n % 8)))
        .accumulate(tl.register)
        .split(k=32)
        .load("A", tl.shared, layout=tl.layout(lambda m, k: (m, (k // 8) ^ (m // 2 % 4), k % 8)), ahead=1,
              steps=tl.move().tile(m=1, k=1).to(tl.thread))
        .load("B", tl.shared, layout=tl.layout(lambda k, n: (k, (n // 8) ^ (k % 8), n % 8)), ahead=1,
              steps=tl.move().tile(k=1, n=1).to(tl.thread))
        .tile(m=64, n=32).to(tl.warp)
        .split(k=16)
        .load("A", tl.register, steps=tl.move().do("ldmatrix_x4"))
        .load("B", tl.register, steps=tl.move().do("ldmatrix_x4_trans"))
        .do(f"mma_m16n8k16{of}", m="m", n="n", k="k")
    )  # fmt: skip


def product_in_parts(c: tl.Tensor, part: int, columns: int) -> tl.Schedule:
    """`gemm_simt` whose blocks take `part` of k each, for products of few tiles; a second kernel adds."""
    return (
        tl.schedule(c)
        .tile(m=64, n=64, k=part).to(tl.block)
        .accumulate(tl.register)
        .split(k=16)
        .load("A", tl.shared, layout=tl.layout("k", "m").pad(4), ahead=1,
              steps=tl.move().tile(m=1, k=4).to(tl.thread).vectorize(k=4))
        .load("B", tl.shared, ahead=1, steps=tl.move().tile(k=1, n=4).to(tl.thread).vectorize(n=4))
        .tile(m=64, n=columns).to(tl.warp)
        .split(k=1)
        .load("A", tl.register, steps=tl.move().vectorize(m=4))
        .load("B", tl.register, steps=tl.move().vectorize(n=4))
        .split(m=32, n=columns // 2)
        .tile(m=4, n=4).to(tl.thread)
    )  # fmt: skip


# ---------------------------------------------------------------- convolutions


def convolutions() -> Iterator[Case]:
    """ROLLER's 44 convolutions and 23 depthwise ones, its Figure 13 (batches 128 to 8192), and a few of today's sizes."""
    for n, h, c, f in ((32, 56, 64, 64), (32, 28, 128, 128), (32, 14, 256, 256), (32, 7, 512, 512)):
        for type in (tl.float16, tl.float32):
            yield convolution((n, c, h, f, 3, 1, 1), type=type)
    for name, kind, extents in roller():
        if kind == "convolution":
            yield convolution(extents, f"roller {name}")
        elif kind == "depthwise":
            yield depthwise(extents, f"roller {name}")
    for n in (128, 256, 512, 1024, 2048, 4096, 8192):
        yield convolution((n, 1024, 14, 2048, 1, 2, 0), "roller batches")


def pixels(h: int, window: int, stride: int, padding: int) -> int:
    """Output pixels along a side."""
    return (h + 2 * padding - window) // stride + 1


def convolution(extents: tuple[int, ...], set: str = "", type: tl.DType = tl.float32) -> Case:
    """Images, channels, side, filters, window, stride, padding."""
    n, c, h, f, r, stride, padding = extents
    p = pixels(h, r, stride, padding)
    made = example("03_implicit_gemm" if type == tl.float32 else "15_matrix_units")
    return Case(
        "convolutions", "convolution", f"{n}x{h}x{h}x{c} -> {f}, {r}x{r} /{stride}", type,
        lambda rows: made.convolution(rows or n, h, c, f, r, stride, padding),
        convolution_schedules, 2.0 * n * p * p * f * c * r * r, (stride, padding), set=set,
    )  # fmt: skip


def convolution_schedules(z: tl.Tensor, profile: Profile) -> Candidates:
    made = example("03_implicit_gemm")
    warps: Candidates = {"warps": lambda: example("15_matrix_units").conv_ampere(z)} if z.dtype == tl.float16 else {}
    return warps | {
        "implicit 64x32x8": lambda: made.simt(z),
        "implicit 64x64x8": lambda: made.simt(z, 64, 64, 8, 4),
        "implicit 128x64x8": lambda: made.simt(z, 128, 64, 8, 8),
    }


def depthwise(extents: tuple[int, ...], set: str = "") -> Case:
    """Images, channels, side, channels again, window, stride, padding."""
    n, c, h, _, r, stride, padding = extents
    p = pixels(h, r, stride, padding)
    return Case(
        "convolutions", "depthwise", f"{n}x{h}x{h}x{c}, {r}x{r} /{stride}", tl.float32,
        lambda rows: depthwise_of(rows or n, c, h, r, stride, padding),
        depthwise_schedules, 2.0 * n * p * p * c * r * r, (stride, padding), set=set,
    )  # fmt: skip


def depthwise_of(n: int, c: int, h: int, r: int, stride: int, padding: int) -> tl.Tensor:
    """Every channel with its own window; 0 outside the image."""
    side = pixels(h, r, stride, padding)
    b, p, q, d, i, j = tl.axes(n=n, p=side, q=side, c=c, r=r, s=r)
    X, W = tl.input("X", tl.float32, n=n, h=h, w=h, c=c), tl.input("W", tl.float32, i, j, d)
    pixel = tl.pad(X[b, stride * p + i - padding, stride * q + j - padding, d], 0)
    return tl.define("Z", tl.sum(pixel * W[i, j, d], over=(i, j)), b, p, q, d)


def depthwise_schedules(z: tl.Tensor, profile: Profile) -> Candidates:
    made = example("05_depthwise")
    return {
        "patch 4x8x8": lambda: made.simt(z),
        "patch 8x8x32": lambda: made.simt(z, 8, 8, 32),
        "patch 4x8x32": lambda: made.simt(z, 4, 8, 32),
    }


# ---------------------------------------------------------------- memory


def memory() -> Iterator[Case]:
    """Softmax, layer normalization, transpose, sums and GELU of large arrays, then ROLLER's sums, poolings and ReLUs."""
    for m, n in ((65536, 1024), (16384, 4096), (8192, 8192), (32768, 1000)):
        yield by_rows("softmax", "08_softmax", "softmax", m, n, "softmax_rows", (128, 256))
        yield by_rows("layer norm", "09_layer_norm", "layer_norm", m, n, "simt", (128, 256))
        yield by_rows("row sum", "06_row_sum", "row_sum", m, n, "simt", (64, 128, 256), exact=True)
        yield by_rows("transpose", "11_transpose", "transpose", m, n, "simt", (), exact=True)
    yield pointwise("gelu", 1 << 26)
    for name, kind, extents in roller():
        if kind == "row_sum":
            m, n = extents
            yield by_rows("row sum", "06_row_sum", "row_sum", m, n, "simt", (64, 128), exact=True, set=f"roller {name}")
        elif kind == "relu":
            yield pointwise("relu", extents[0], f"roller {name}")
        elif kind == "average_pooling":
            yield pooling(extents, f"roller {name}")
    for power in range(20, 27):
        yield pointwise("relu", 1 << power, "roller relu")


def by_rows(operator: str, file: str, define: str, m: int, n: int, schedule: str, threads: tuple[int, ...], exact: bool = False,
            set: str = "") -> Case:  # fmt: skip
    """An operator of an example on m rows of n elements."""

    def schedules(y: tl.Tensor, profile: Profile) -> Candidates:
        build = getattr(example(file), schedule)
        if not threads:
            return {schedule: lambda: build(y)}
        return {f"{t} threads": functools.partial(build, y, threads=t) for t in threads}

    return Case("memory", operator, f"{m}x{n}", tl.float32, lambda rows: getattr(example(file), define)(rows or m, n),
                schedules, 4.0 * m * n, exact=exact, set=set)  # fmt: skip


def pointwise(operator: str, count: int, set: str = "") -> Case:
    """A function of each element; `rows` are elements here."""

    def make(rows: int | None) -> tl.Tensor:
        i = tl.axes(i=rows or count)
        x = tl.input("X", tl.float32, i)[i]
        return tl.define("Y", tl.gelu_tanh(x) if operator == "gelu" else tl.maximum(x, 0.0), i)

    return Case("memory", operator, str(count), tl.float32, make, by_fours, float(count), exact=operator == "relu", set=set)


def by_fours(y: tl.Tensor, profile: Profile) -> Candidates:
    """Schedules of a function of each element: four a thread."""

    def build(block: int) -> tl.Schedule:
        return tl.schedule(y).tile(i=block).to(tl.block).tile(i=4).to(tl.thread).vectorize(i=4)

    return {f"{block} a block": functools.partial(build, block) for block in (1024, 2048)}


def pooling(extents: tuple[int, ...], set: str = "") -> Case:
    """The mean over a window; outside the image counts as zero. Images, channels, side, channels, window, stride, padding."""
    n, c, h, _, r, stride, padding = extents
    side = pixels(h, r, stride, padding)

    def make(rows: int | None) -> tl.Tensor:
        b, p, q, d, i, j = tl.axes(n=rows or n, p=side, q=side, c=c, r=r, s=r)
        X = tl.input("X", tl.float32, n=rows or n, h=h, w=h, c=c)
        pixel = tl.pad(X[b, stride * p + i - padding, stride * q + j - padding, d], 0)
        return tl.define("Z", tl.sum(pixel, over=(i, j)) * (1.0 / (r * r)), b, p, q, d)

    def schedules(z: tl.Tensor, profile: Profile) -> Candidates:
        def build(q: int, c: int) -> tl.Schedule:
            return (
                tl.schedule(z)
                .tile(n=1, p=1, q=q, c=c)
                .to(tl.block)
                .tile(q=1, c=1)
                .to(tl.thread)
                .accumulate(tl.register)
                .split(r=1, s=1)
            )

        return {f"{q}x{c}": functools.partial(build, q, c) for q, c in ((4, 64), (8, 32))}

    return Case("memory", "average pooling", f"{n}x{h}x{h}x{c}, {r}x{r} /{stride}", tl.float32, make, schedules,
                1.0 * n * side * side * c * r * r, (r, stride, padding), exact=False, set=set)  # fmt: skip


def moved_bytes(y: tl.Tensor) -> int:
    """Bytes that every tensor of a computation has, each counted once: what must be moved at least."""
    computation = as_computation(y)
    return sum(math.prod(t.shape) * t.dtype.bytes for t in (*computation.inputs, *computation.outputs))


def part(case: Case, rows: int, arrays: dict[str, Any]) -> tuple[tl.Tensor, dict[str, Any]]:
    """The computation of some of a case's rows or images, and what of its arrays belongs to it: elements from the first to the last.

    arrays: NumPy's, or PyTorch's, by the names of the computation.
    """
    small = case.make(rows)
    wanted = {t.name: t.shape for t in (*as_computation(small).inputs, *as_computation(small).outputs)}
    found = {}
    for name, array in arrays.items():
        for d, (have, n) in enumerate(zip(array.shape, wanted[name], strict=True)):
            if n < have:  # the same places of every array
                array = array[(*(slice(None),) * d, [i * (have - 1) // max(1, n - 1) for i in range(n)])]
        found[name] = array
    return small, found
