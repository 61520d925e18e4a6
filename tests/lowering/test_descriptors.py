"""Tensor maps of a kernel: which it needs, and that a launch passes them behind its buffers."""

from __future__ import annotations

import types
from typing import Any

import pytest

import tilelang as tl
from tests.lowering.test_roles import by_boxes, linear
from tilelang.errors import DeviceError
from tilelang.lowering.descriptors import box_maps, described, tensor_maps
from tilelang.lowering.drivers import hip, opencl
from tilelang.lowering.drivers.tensor_maps import TensorMap


def compiled() -> Any:
    return tl.compile(by_boxes(linear(256, 512, 128), 256, 2), target=tl.target("cuda", profile="hopper"))


def test_a_kernel_knows_its_boxes() -> None:
    (kernel,) = compiled().program.kernels
    assert [(m.buffer.name, m.box, m.swizzle_bytes) for m in box_maps(kernel)] == [
        ("A", (128, 64), 128),
        ("B", (256, 64), 128),
        ("C", (128, 64), 128),
    ]
    assert described(kernel.body) == {"A_shared", "B_shared", "C_shared"}


def test_a_launch_passes_the_maps_behind_the_buffers() -> None:
    kernel, seen = compiled(), list[Any]()

    def function(*shape: Any) -> Any:
        return types.SimpleNamespace(timed=lambda buffers, queue: seen.append(buffers))

    def tensor_map(map: TensorMap, buffer: int) -> Any:
        return map.shape, map.strides_bytes, map.box, map.swizzle_bytes, buffer

    module = types.SimpleNamespace(function=function)
    kernel.__dict__["_connection"] = types.SimpleNamespace(build=lambda *_: module, tensor_map=tensor_map)
    kernel.launch({"A": 1, "B": 2, "bias": 3, "C": 4})
    assert seen == [[
        1, 2, 3, 4,
        ((256, 128), (256, 2), (128, 64), 128, 1),
        ((512, 128), (256, 2), (256, 64), 128, 2),
        ((256, 512), (1024, 2), (128, 64), 128, 4),
    ]]  # fmt: skip


@pytest.mark.parametrize(("size", "maps"), [((0, 512, 128), 0), ((256, 0, 128), 0), ((256, 512, 0), 3)])
def test_tensors_without_elements(size: tuple[int, int, int], maps: int) -> None:
    """No map where nothing is launched."""
    kernel = tl.compile(by_boxes(linear(*size), 256, 2), target=tl.target("cuda", profile="hopper"))
    (only,) = kernel.program.kernels
    found = dict(tensor_maps(only))
    assert len(found) == maps
    assert kernel.computation.check(lambda arrays: tl.simulate(kernel, **arrays).outputs)


@pytest.mark.parametrize("driver", [opencl, hip])
def test_other_drivers_have_no_tensor_maps(driver: Any) -> None:
    with pytest.raises(DeviceError) as caught:
        driver.Connection.tensor_map(None, TensorMap(tl.float16, (64, 64), (128, 2), (64, 64)), 0)
    assert caught.value.code == "tensor-map"


def test_rows_of_a_box_are_whole_pieces_of_memory() -> None:
    """Rows of 4 float16 are 8 bytes, of which a tensor map cannot make a box: told when it is compiled, not at the launch."""
    m, n, k = tl.axes(m=64, n=64, k=64)
    A, B = tl.input("A", tl.float16, m, k), tl.input("B", tl.float16, n, k)
    product = tl.define("C", tl.sum(tl.cast(A[m, k], tl.float32) * tl.cast(B[n, k], tl.float32), over=k), m, n)
    blocks = tl.schedule(product).units(block=tl.warps(1).as_role("p") + tl.warps(1).as_role("q")).tile(m=16, n=16).to(tl.block)
    chunks = blocks.accumulate(tl.register).split(k=4).load("A", tl.shared, ahead=1, on="p", steps=tl.move().do("tma_load_2d"))
    with pytest.raises(tl.Refusal) as caught:
        tl.compile(chunks.tile(m=16).to("q").tile(m=2, n=4).to(tl.thread), target=tl.target("cuda", profile="hopper"))
    assert caught.value.code == "instruction-mismatch" and caught.value.counterexample == "the rows of the tile are 8 bytes"
