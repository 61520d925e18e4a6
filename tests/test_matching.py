"""An instruction beside a leaf: what fits, and which field differs where it does not."""

from __future__ import annotations

from typing import Any

import pytest

from tilelang.computations import functions as F
from tilelang.computations.computation import Definition, as_computation, axes, input
from tilelang.computations.define import define
from tilelang.core.dtype import DType, float16, float32
from tilelang.core.expr import Read
from tilelang.core.layout import Layout, layout
from tilelang.errors import Refusal
from tilelang.instructions.instruction import known, use
from tilelang.instructions.matching import Leaf, Match, Residence, match, nearest, refuse
from tilelang.instructions.semantics import MOVE, UPDATE, Means

PRODUCTS = [i for i in known() if i.kind == "update"]


def product_leaf(
    extents: tuple[int, int, int],
    type: DType = float32,
    level: str = "warp",
    memory: str = "register",
    right: str = "kn",
    combine: str = "sum",
) -> Leaf:
    """The leaf of C[m, n] = sum[k] A[m, k] B[k, n] (or B[n, k]) with these extents left."""
    m, n, k = axes(m=128, n=128, k=128)
    A = input("A", type, m, k)
    B = input("B", type, *((k, n) if right == "kn" else (n, k)))
    terms = A[m, k] * (B[k, n] if right == "kn" else B[n, k])
    reduce = F.sum if combine == "sum" else F.max
    C = define("C", reduce(terms, over=k), m, n)
    definition = next(d for d in as_computation(C).definitions if d.reduction is not None)
    means = means_of(definition)
    left = dict(zip("mnk", extents, strict=True))
    residences = [Residence(name, memory, type, tuple((d, left[d]) for d in dims)) for name, dims in (("A", "mk"), ("B", right))]
    residences.append(Residence(definition.tensors[0].name, "register", float32, (("m", left["m"]), ("n", left["n"]))))
    return Leaf(means, tuple(left.items()), level, tuple(residences))


def means_of(definition: Definition) -> Means:
    """What a reduction of one value asks of an instruction."""
    assert definition.reduction is not None
    target = Read(definition.tensors[0], definition.axes)
    return Means(UPDATE, target, definition.reduction.values[0], definition.reduction.combiner.name)


def fields(found: Match) -> list[str]:
    return [m.field for m in found.mismatches]


def test_a_product_fits() -> None:
    found = match(use("simulated_mma_m16n8k8"), product_leaf((16, 8, 8)))
    assert found.fits, str(found)
    assert dict(found.binding) == {"m": "m", "n": "n", "k": "k"}
    assert {o: r.tensor.name for o, r in found.operands}.keys() == {"A", "B", "C"}


def test_larger_pieces_are_walked_down() -> None:
    assert match(use("simulated_mma_m16n8k8"), product_leaf((64, 32, 16))).fits


def test_sixteen_bit_operands_need_no_written_conversion() -> None:
    found = match(use("mma_m16n8k16"), product_leaf((16, 8, 16), float16))
    assert found.fits, str(found)


def test_the_order_of_factors_and_dimensions_does_not_matter() -> None:
    assert match(use("simulated_mma_m16n8k8"), product_leaf((16, 8, 8), right="nk")).fits
    # 8 x 16: only with m and n exchanged, A in the place of B.
    swapped = match(use("simulated_mma_m16n8k8"), product_leaf((8, 16, 8)))
    assert swapped.fits, str(swapped)
    assert dict(swapped.binding) == {"m": "n", "n": "m", "k": "k"}
    assert {o: r.tensor.name for o, r in swapped.operands}["A"] == "B"


def test_a_binding_is_kept() -> None:
    found = match(use("simulated_mma_m16n8k8"), product_leaf((8, 16, 8)), {"m": "m"})
    assert fields(found) == ["shape"]
    with pytest.raises(Refusal, match="has the axes m, n, k, and this step has m, n, k"):
        match(use("simulated_mma_m16n8k8"), product_leaf((8, 16, 8)), {"m": "q"})


def test_a_vector_operation_leaves_axes_to_walks() -> None:
    found = match(use("opencl_mad16"), product_leaf((1, 16, 1), level="thread"))
    assert found.fits, str(found)
    assert dict(found.binding) == {"n": "n"}
    assert {o: r.tensor.name for o, r in found.operands}["A"] == "A"


@pytest.mark.parametrize(
    "leaf, wrong, text",
    [
        (
            {"extents": (16, 8, 4)},
            ["shape"],
            "shape of k: the instruction has k = 8, but the step has k = 4, which is not a multiple of it",
        ),
        ({"level": "thread"}, ["level"], "level: the instruction has warp, but the step has thread"),
        ({"memory": "shared"}, ["memory", "memory"], "memory of A: the instruction has register, but the step has shared"),
        ({"type": float16}, ["dtype", "dtype"], "dtype of A: the instruction has float32, but the step has float16"),
        ({"combine": "max"}, ["means"], "means: the instruction has C[m, n] += sum[k] A[m, k] * B[k, n], but the step has"),
    ],
)
def test_what_differs_is_named(leaf: dict[str, Any], wrong: list[str], text: str) -> None:
    found = match(use("simulated_mma_m16n8k8"), product_leaf(**{"extents": (16, 8, 8), **leaf}))
    assert fields(found) == wrong
    assert text in str(found)


def test_another_meaning_is_not_a_product() -> None:
    m, n, k = axes(m=16, n=8, k=8)
    A, B = input("A", float32, m, k), input("B", float32, m, k, n)
    C = define("C", F.sum(A[m, k] * B[m, k, n], over=k), m, n)  # B moves along m too
    (definition,) = as_computation(C).definitions
    means = means_of(definition)
    leaf = Leaf(means, (("m", 16), ("n", 8), ("k", 8)), "warp", ())
    assert fields(match(use("simulated_mma_m16n8k8"), leaf)) == ["means"]


def test_a_batch_axis_stands_still() -> None:
    b, m, n, k = axes(b=4, m=16, n=8, k=8)
    A, B = input("A", float32, b, m, k), input("B", float32, b, k, n)
    C = define("C", F.sum(A[b, m, k] * B[b, k, n], over=k), b, m, n)
    (definition,) = as_computation(C).definitions
    means = means_of(definition)
    sizes = {"b": 1, "m": 16, "n": 8, "k": 8}
    residences = tuple(
        Residence(name, "register", float32, tuple((d, sizes[d]) for d in dims))
        for name, dims in (("A", "bmk"), ("B", "bkn"), ("C", "bmn"))
    )
    found = match(use("simulated_mma_m16n8k8"), Leaf(means, tuple(sizes.items()), "warp", residences))
    assert found.fits, str(found)


def test_the_nearest_are_explained() -> None:
    leaf = product_leaf((16, 8, 8), float16)
    found = nearest([use("mma_m16n8k16"), use("simulated_mma_m16n8k8"), use("opencl_dot4")], leaf, 3)
    assert [m.instruction.name for m in found][:1] == ["simulated_mma_m16n8k8"]
    assert [m.distance for m in found] == sorted(m.distance for m in found)
    error = refuse("do mma_m16n8k16", found)
    assert error.code == "instruction-mismatch"
    assert error.counterexample == "dtype of A: the instruction has float32, but the step has float16"
    assert "mma_m16n8k16" in error.render()


def test_a_fitting_instruction_is_nearest() -> None:
    assert nearest(PRODUCTS, product_leaf((64, 64, 16), float16), 1)[0].fits
    assert nearest(PRODUCTS, product_leaf((4, 4, 4)), 1)[0].fits is False


# ---------------------------------------------------------------- memory operands


def copy_leaf(
    extents: dict[str, int], source: Residence, target: Residence, level: str = "thread", type: DType = float16
) -> Leaf:
    """X moved as it is; both residences have the dimensions of X."""
    dims = axes(**dict(source.dims))
    X, Y = input("X", type, *dims), input("Y", type, *dims)
    means = Means(MOVE, Y[dims], X[dims])  # type: ignore[arg-type]
    return Leaf(means, tuple(extents.items()), level, (source, target))


def region(tensor: str, memory: str, dims: dict[str, int], placed: Layout | None = None, type: DType = float16) -> Residence:
    return Residence(tensor, memory, type, tuple(dims.items()), placed)


TILE = {"m": 32, "k": 32}
SWIZZLED = layout(lambda m, k: (m, (k // 8) ^ ((m // 2) % 4), k % 8))


@pytest.mark.parametrize(
    "placed, wrong",
    [
        (None, []),
        (SWIZZLED, []),
        (layout("m", "k").pad(8), []),
        (layout("m", "k").pad(4), ["alignment"]),
        (layout("k", "m"), ["layout"]),
        (layout().swizzle(64), []),
    ],
)
def test_matrix_loads_need_runs_of_sixteen_bytes(placed: Layout | None, wrong: list[str]) -> None:
    leaf = copy_leaf(TILE, region("X", "shared", TILE, placed), region("Y", "register", TILE), "warp")
    found = match(use("ldmatrix_x4"), leaf, {"r": "m", "c": "k"})
    assert fields(found) == wrong, str(found)


def test_a_layout_mismatch_shows_two_elements() -> None:
    leaf = copy_leaf(TILE, region("X", "shared", TILE, layout("k", "m")), region("Y", "register", TILE), "warp")
    (wrong,) = match(use("ldmatrix_x4"), leaf, {"r": "m", "c": "k"}).mismatches
    assert str(wrong) == (
        "layout of X: the instruction has runs of 8 consecutive elements, "
        "but the step has layout (k, m), where elements (0, 0) and (0, 1) are 32 apart"
    )


def test_asynchronous_copies_need_aligned_rows() -> None:
    piece = {"m": 1, "k": 8}
    good = copy_leaf(piece, region("X", "global", {"m": 100, "k": 1024}), region("Y", "shared", TILE, SWIZZLED))
    assert match(use("cp_async_16"), good).fits
    odd = copy_leaf(piece, region("X", "global", {"m": 100, "k": 1001}), region("Y", "shared", TILE, SWIZZLED))
    (wrong,) = match(use("cp_async_16"), odd).mismatches
    assert str(wrong) == "alignment of X: the instruction has 16 bytes, but the step has element (1, 0) at byte 2002"


def test_boxes_take_the_extents_left() -> None:
    whole = {"m": 128, "k": 64}
    leaf = copy_leaf(
        whole, region("X", "global", {"m": 512, "k": 512}), region("Y", "shared", whole, layout().swizzle(128)), "block"
    )
    found = match(use("tma_load_2d"), leaf)
    assert found.fits, str(found)
    assert found.instruction.shape == {"r": 128, "c": 64}
    padded = copy_leaf(whole, region("X", "global", {"m": 512, "k": 512}), region("Y", "shared", whole, layout().pad(8)), "block")
    assert fields(match(use("tma_load_2d"), padded)) == ["layout"]


def test_descriptors_accept_the_swizzles_they_name() -> None:
    for placed, wrong in ((layout().swizzle(128), []), (None, ["layout", "layout"])):
        base = product_leaf((64, 256, 16), level="warpgroup", memory="shared", right="nk", type=float16)
        residences = tuple(
            r if r.memory == "register" else r.replace(dtype=use("wgmma_m64n256k16").operand("A").dtype, layout=placed,
                                                       dims=tuple((d, 64 if d == "k" else n) for d, n in r.dims))
            for r in base.residences
        )  # fmt: skip
        found = match(use("wgmma_m64n256k16"), base.replace(residences=residences))
        assert fields(found) == wrong, str(found)
