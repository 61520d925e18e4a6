"""The time of copies between memories on one core with vectors."""

from __future__ import annotations

import functools
import math

from tilelang.autoschedule.common.loop_summary import Loops, Placed
from tilelang.autoschedule.cpu.device import CpuDevice
from tilelang.core.expr import Binary, Const, Expr, Var
from tilelang.core.layout import variable_names


def move_cycles(loops: Loops, place: Placed, device: CpuDevice) -> float:
    """The cycles of all copies of a staged region: in vectors, as its steps or the lowering make them, or element by element if each
    has an index of its own."""
    assert place.access is not None
    elements = loops.passes(place.depth) * place.box_bytes / place.access.element_bytes
    if place.vector is not None and place.vector[1] > 1:
        lanes = min(place.vector[1], device.lanes)
        if place.turned:
            return elements / lanes * turned_vector_cycles(place.vector[1], device)
        if place.access.padded or _remainders(place):  # lane by lane
            return elements / device.lanes * device.rate("padded_vector_move_cycles")
        return elements / lanes * device.rate("vector_move_cycles")
    if _remainders(place):  # it was measured where there are two
        return elements * device.rate("padded_move_cycles") * max(1.0, place.access.divisions / 2)
    return loops.passes(place.depth) * _vectors_moved(place, device)


def turned_vector_cycles(lanes: int, device: CpuDevice) -> float:
    """The cycles per vector of a transposition of squares in registers, which takes log2(lanes) shuffles."""
    measured = device.rates.get("turned_vector_cycles")
    return device.rate("vector_move_cycles") + math.log2(lanes) if measured is None else measured


def _vectors_moved(place: Placed, device: CpuDevice) -> float:
    """The cycles of one copy that the lowering vectorizes: rows, rows of every second element, or transposed squares."""
    assert place.access is not None
    row, last = max(1, row_extent(place)), place.layout.terms[-1] if place.layout is not None and place.layout.terms else None
    elements = math.prod(place.spans) if not place.by_points else place.box_bytes / place.access.element_bytes
    vector, element = device.rate("vector_move_cycles"), device.rate("gathered_element_cycles")
    if isinstance(last, Binary) and last.op == "//":
        if not _side_by_side(place):
            return elements * element
        return elements / row * (row // device.lanes * vector + row % device.lanes * element)  # the compiler vectorizes these
    if _side_by_side(place):
        return elements / row * -(-row // device.lanes) * vector
    across = max(1, _read_together(place))
    if min(row, across) < 4:
        return elements * element
    lanes = next((n for n in (4, 8, 16, 32, 64) if n >= min(row, across, device.lanes)), device.lanes)
    squares = elements / (row * across) * -(-row // lanes) * -(-across // lanes)
    return squares * lanes * turned_vector_cycles(lanes, device)


def _read_together(place: Placed) -> int:
    """The number of contiguous elements of the tensor that a copy reads, whole rows together."""
    access = place.access
    assert access is not None
    if place.by_points:
        return max((place.tile[a] for a in access.beside), default=1)
    found = 1
    for dim, extent in zip(reversed(access.tensor.dims), reversed(place.spans), strict=True):
        found *= extent
        if extent != dim.extent or access.padded:
            break
    return found


def row_extent(place: Placed) -> int:
    """The number of contiguous elements of a staged region that are copied one after another."""
    assert place.access is not None
    dims, tile = place.access.tensor.dims, place.cut or place.tile

    def extent(name: str) -> int:
        return tile[name] if name in tile else next((n for d, n in zip(dims, place.spans, strict=True) if d.name == name), 1)

    if place.layout is None or not place.layout.terms:
        return extent(dims[-1].name) if dims else 1
    match place.layout.terms[-1]:
        case Binary("%", _, Const(value=n)):
            return int(n)
        case Binary("//", Var(name=name), Const(value=n)):
            return -(-extent(name.removeprefix("@")) // int(n))
        case Var(name=name):
            return extent(name.removeprefix("@"))
        case _:
            return 1


def _remainders(place: Placed) -> bool:
    """Whether the index computation of a copy needs divisions: a fused axis that is not contiguous at the end of a row."""
    access, tile = place.access, place.tile
    assert access is not None
    return place.by_points and any(access.regular(a, tile[a]) < tile[a] for a in access.axes)


def _side_by_side(place: Placed) -> bool:
    """Whether elements that are contiguous in the tensor are contiguous in the copy, too."""
    assert place.access is not None
    if place.layout is None or not place.layout.terms:
        return True
    last = axis_names(place.layout.terms[-1])
    return place.access.tensor.dims[-1].name in last or not last.isdisjoint(place.access.beside)


@functools.lru_cache(maxsize=1 << 10)
def axis_names(term: Expr) -> frozenset[str]:
    """The dimensions in a term of a layout."""
    return frozenset(name.removeprefix("@") for name in variable_names((term,)))
