"""What a tile touches, by intervals, against all points of it."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilelang as tl
from tilelang.autoschedule.common.accesses import Access
from tilelang.autoschedule.common.task_accesses import Nest, nest_of
from tilelang.core.expr import Axis, Expr
from tilelang.core.numeric import evaluate
from tilelang.schedules.task import plan

CONVOLUTION = """
computation Z(N = 2, C = 6, H = 11, F = 5, R = 3, stride = 2, padding = 1) {
  input X: float32[n: N, c: C, h: H, w: H]
  input W: float32[f: F, c: C, r: R, s: R]
  axis p: (H + 2 * padding - R) / stride + 1
  axis q: (H + 2 * padding - R) / stride + 1
  output Z[n, f, p, q] = max(sum[c, r, s] pad(X[n, c, stride * p + r - padding, stride * q + s - padding], 0.0) * W[f, c, r, s], 0.0)
}
"""


def convolution(**sizes: Any) -> Nest:
    return nest_of(plan(tl.parse(CONVOLUTION).computation(**sizes), set())[-1])


def touched(access: Access, tile: dict[str, int]) -> tuple[int, ...]:
    """The box of all points of an aligned tile at the origin, point by point."""
    names = list(tile)
    points = np.array(list(itertools.product(*(range(n) for n in tile.values())))).reshape(-1, len(names))
    found = []
    for index, extent in zip(access.written, access.tensor.shape, strict=True):
        known: dict[Expr, Any] = {a: points[:, names.index(a.name)] for a in index.walk() if isinstance(a, Axis)}
        values = np.broadcast_to(evaluate(index, known), len(points))
        found.append(min(int(values.max() - values.min()) + 1, extent))
    return tuple(found)


@given(st.data())
def test_a_box_is_that_of_all_points(data: st.DataObject) -> None:
    nest = convolution(stride=data.draw(st.integers(1, 3)), padding=data.draw(st.integers(0, 1)), R=data.draw(st.integers(1, 3)))
    tile = {a.name: data.draw(st.integers(1, min(a.extent, 4))) for a in nest.axes}
    for access in nest.accesses:
        assert access.box(tile) == touched(access, tile)


@given(st.integers(1, 72))
def test_the_box_of_fused_axes_holds_every_aligned_tile(size: int) -> None:
    image, _, result = convolution().fuse("npq", ("n", "p", "q")).accesses
    rows, columns = result.tensor.shape[2:]
    tile = {"npq": size, "c": 1, "r": 1, "s": 1}
    for start in range(0, 2 * rows * columns, size):
        points = np.arange(start, min(start + size, 2 * rows * columns))
        places = (points // (rows * columns), points // columns % rows, points % columns)
        boxes = zip(places, (1, 2, 2), np.delete(image.box(tile), 1), np.delete(image.tensor.shape, 1), strict=True)
        for values, stride, box, extent in boxes:
            assert stride * (len(np.unique(values)) - 1) + 1 <= box <= extent


def test_strides_runs_and_operations() -> None:
    nest = convolution(stride=1)
    x, w, z = nest.accesses
    assert (x.name, w.name, z.name, z.store, x.padded, w.padded) == ("X", "W", "Z", True, True, False)
    assert [x.stride(a) for a in "ncpqrsf"] == [726, 121, 11, 1, 11, 1, 0]
    assert [w.run(a, 3) for a in "scf"] == [3, 1, 1] and w.stride("f") == 54
    fused = nest.fuse("pq", ("p", "q")).fuse("k", ("c", "r", "s"))
    x, w, z = fused.accesses
    assert (w.run("k", 54), x.run("pq", 121), x.regular("k", 54)) == (54, 121, 3)
    assert fused.inner == {"*": 1, "+": 1} and fused.outer == {"max": 1}
    assert fused.flops == fused.points * 2 + fused.outputs and fused.points == nest.points
    assert fused.compulsory_bytes == 4 * sum(math.prod(a.tensor.shape) for a in nest.accesses)


def test_what_memory_decides_is_an_element_for_each_point_of_the_whole_dimension() -> None:
    b, d = tl.axes(b=8, d=16)
    ids = tl.input("ids", tl.int32, b, range=(0, 100))
    table = tl.input("table", tl.float32, v=100, d=16)
    nest = nest_of(plan(tl.computation("Y", tl.define("Y", table[ids[b], d], b, d)), set())[-1])
    boxes = {a.name: a.box({"b": 2, "d": 4}) for a in nest.accesses}
    assert boxes == {"table": (2, 4), "ids": (2,), "Y": (2, 4)}  # touched
    assert {a.name: a.region({"b": 2, "d": 4}) for a in nest.accesses} == boxes | {"table": (100, 4)}  # copied, if it is staged
    assert nest.accesses[0].box({"b": 8, "d": 16}) == (8, 16) and nest.accesses[0].footprint_bytes({"b": 200}) == 400
    assert {a.name: a.stride("b") for a in nest.accesses} == {"table": None, "ids": 1, "Y": 16}


@pytest.mark.parametrize("size", [1, 5, 12])
def test_an_empty_axis_has_no_points(size: int) -> None:
    i, j = tl.axes(i=0, j=size)
    nest = nest_of(plan(tl.computation("Y", tl.define("Y", tl.input("X", tl.float32, i, j)[i, j] + 1, i, j)), set())[-1])
    assert (nest.points, nest.flops, nest.compulsory_bytes) == (0, 0, 0)


def test_dimensions_that_a_fused_axis_goes_through_are_one() -> None:
    c, p, q = tl.axes(c=8, p=6, q=10)
    X = tl.input("X", tl.float32, c, p, q)
    (task,) = plan(tl.computation("Y", tl.define("Y", X[c, p, q] * 2, c, p, q)), set())
    read = nest_of(task).fuse("pq", ("p", "q")).reads[0]
    assert read.box({"c": 4, "pq": 12}) == (4, 3, 10)
    assert read.flat.box({"c": 4, "pq": 12}) == (4, 12) and read.flat.strides == (60, 1)
    apart = nest_of(task).reads[0]
    assert apart.flat is apart
