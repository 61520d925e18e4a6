"""Every example's schedules for GPUs as CUDA and HIP text on this processor: the reference, the simulator and the text agree."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tilelang as tl
from tests.lowering.test_clusters import PLANS, product
from tests.test_examples import NAMES, SIZES, for_threads, load, schedules_for
from tilelang.runtime.kernel import Kernel
from tilelang.semantics.reference import compare, random_arrays
from tilelang.testing import emulation

pytestmark = pytest.mark.skipif(emulation.absent() is not None, reason=str(emulation.absent()))

PROFILES = {"cuda": "ampere", "hip": "cdna2"}
CASES = [
    pytest.param(name, sizes, dialect, id=f"{name}-{dialect}-{'x'.join(map(str, sizes))}")
    for name in NAMES
    for dialect in PROFILES
    for sizes in SIZES[name]
]
HOW: list[dict[str, Any]] = [
    {},
    {"turns": "descending", "landing": "early"},
    {"turns": 1, "landing": 1},
]


def kernels(name: str, sizes: tuple[int, ...], dialect: str) -> Iterator[Kernel]:
    """The kernels of an example's schedules for threads."""
    target = tl.target(dialect, profile=PROFILES[dialect])
    for schedule in schedules_for(name, sizes, target.profile).values():
        if for_threads(schedule):
            yield tl.compile(schedule, target)


@pytest.mark.parametrize(("name", "sizes", "dialect"), CASES)
def test_the_text_of_an_example_is_right(name: str, sizes: tuple[int, ...], dialect: str) -> None:
    for kernel in kernels(name, sizes, dialect):
        report = emulation.check(kernel)
        assert report, report


@pytest.mark.parametrize("dialect", PROFILES)
@pytest.mark.parametrize("name", NAMES)
def test_the_simulator_agrees(name: str, dialect: str) -> None:
    for kernel in kernels(name, SIZES[name][1], dialect):
        arrays = random_arrays(kernel.computation, seed=1)
        report = tl.simulate(kernel, **arrays)
        assert report.findings == () and compare(kernel.computation, arrays, report.outputs)
        for how in HOW[1:]:
            assert compare(kernel.computation, arrays, emulation.run_kernel(kernel, arrays, **how))


def ampere(*sizes: int) -> Kernel:
    example = load("01_matmul")
    return tl.compile(example.gemm_ampere(example.matmul(*sizes, tl.float16)), tl.target("cuda", profile="ampere"))


@pytest.mark.parametrize("sizes", [(128, 256, 96), (200, 136, 72)], ids=str)
def test_the_product_by_matrix_instructions_is_right(sizes: tuple[int, ...]) -> None:
    kernel = ampere(*sizes)
    assert all(word in kernel.source for word in ("mma_m16n8k16(", "ldmatrix_x4_trans(", "async_copy_16("))
    for how in HOW:
        report = emulation.check(kernel, **how)
        assert report, report


def hopper(*sizes: int, type: tl.DType = tl.bfloat16) -> Kernel:
    product = load("15_matrix_units").transposed(*sizes, type)
    return tl.compile(load("01_matmul").gemm_hopper(product), tl.target("cuda", profile="hopper"))


@pytest.mark.parametrize(("sizes", "type"), [((128, 256, 320), tl.float16), ((200, 264, 136), tl.bfloat16)], ids=str)
def test_the_product_by_warpgroups_is_right(sizes: tuple[int, ...], type: tl.DType) -> None:
    kernel = hopper(*sizes, type=type)
    assert all(word in kernel.source for word in ("wgmma_m64n256k16", "tensor_load_2d(", "tensor_store_2d(", "role_meet("))
    for how in HOW:
        report = emulation.check(kernel, **how)
        assert report, report


@pytest.mark.parametrize("plan", ["rounds", "idle rounds", "an order of persistent clusters"])
def test_products_of_clusters_are_right(plan: str) -> None:
    kernel = tl.compile(product(**PLANS[plan]), tl.target("cuda", profile="hopper"))
    report = emulation.check(kernel)
    assert report, report


def matrix_units() -> dict[str, Callable[[], Any]]:
    """The schedules of the example on matrix units, at whole sizes and at odd ones, each with its target, made when it is called."""
    example = load("15_matrix_units")
    cuda, hip = tl.target("cuda", profile="ampere"), tl.target("hip", profile="cdna2")
    return {
        "gemm_ampere bfloat16": lambda: (example.gemm_ampere(example.matmul(100, 136, 72, tl.bfloat16)), cuda),
        "gemm_ampere_transposed, odd": lambda: (example.gemm_ampere_transposed(example.transposed(100, 136, 72)), cuda),
        "gemm_cdna": lambda: (example.gemm_cdna(example.matmul(128, 128, 64)), hip),
        "gemm_cdna bfloat16, odd": lambda: (example.gemm_cdna(example.matmul(75, 100, 41, tl.bfloat16)), hip),
        "gemm_mi300": lambda: (example.gemm_cdna(example.matmul(128, 128, 64), "mfma_16x16x16"), hip),
        "gemm_direct": lambda: (example.gemm_direct(example.transposed(128, 128, 96)), hip),
        "gemm_direct bfloat16, odd": lambda: (example.gemm_direct(example.transposed(75, 100, 42, tl.bfloat16)), hip),
        "conv_ampere": lambda: (example.conv_ampere(example.convolution(1, 10, 32, 64)), cuda),
        "conv_ampere, odd": lambda: (example.conv_ampere(example.convolution(2, 7, 24, 40, 3, 2, 1)), cuda),
    }


@pytest.mark.parametrize("name", matrix_units())
def test_matrix_units_are_right(name: str) -> None:
    kernel = tl.compile(*matrix_units()[name]())
    for how in HOW[:2]:
        report = emulation.check(kernel, **how)
        assert report, report


# What orders threads, copies and products; of the fences those whose lack can show.
WAITS = re.compile(
    r"^\s+(?:if \([^{;]*\) )?(?:__syncthreads|__syncwarp|shared_barrier|(?:async|wgmma|tensor_store)_(?:wait|wait_read)<\d+>|\w+_commit"
    r"|barrier_(?!init_fence)\w+|role_meet)\((?!.*tensor_).*$",
    re.MULTILINE,
)


@pytest.mark.parametrize(
    "kernel",
    [
        pytest.param(lambda: ampere(128, 128, 160), id="gemm_ampere"),
        *(
            pytest.param(lambda name=name: next(kernels(name, SIZES[name][0], "cuda")), id=name)
            for name in ("01_matmul", "08_softmax", "11_transpose", "12_embedding_bag")
        ),
    ],
)
def test_every_barrier_and_wait_of_a_text_is_missed(kernel: Any) -> None:
    """A text without one of them is told to race, or gives a wrong result; but for a wait behind the ring's last round, which awaits
    copies that the round's own conditions left out."""
    whole = kernel()
    arrays = random_arrays(whole.computation)
    places = [place for place in WAITS.finditer(whole.source) if place[0].strip("\n") != "    async_wait<0>();"]
    assert places
    for place in places:
        source = whole.source[: place.start()] + whole.source[place.end() :]
        try:
            found = emulation.run_kernel(whole, arrays, source)
        except emulation.EmulationFault as fault:
            assert "a race" in str(fault) or "out of bounds" in str(fault)
            continue
        right = compare(whole.computation, arrays, found, error_ulps=whole.schedule.error_ulps)
        assert not right, f"nobody misses {place[0].strip()}"
