"""Multistage buffers in registers, one per iteration ahead. Readers use the first; after each iteration, all values move on by one."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable

from tilelang.computations.computation import Tensor
from tilelang.core.expr import Expr, const
from tilelang.core.simplify import simplify
from tilelang.lowering import ir
from tilelang.lowering.build.distribution.layout_conversion import redistributed
from tilelang.lowering.build.frame import Build, Frame, Ring, nested
from tilelang.lowering.build.instruction.fragment_loads import share_of
from tilelang.lowering.build.movement.footprint import is_unread, region_of
from tilelang.schedules.steps import Place


def register_ring(build: Build, frame: Frame, i: int, step: Place, number: int) -> ir.Stmt:
    """The fetch of a load that runs ahead in registers, into buffer `number` of its ring."""
    region, uses = region_of(build, frame, i, step)
    share = share_of(build, frame, i, step, region, uses)
    buffer = ring_register(build, build.ring(frame.key(i)), share.tensor, share.buffer.shape, number)
    if is_unread(frame, uses):  # nothing to fetch, but the buffers rotate
        return _cleared(build, buffer, step)
    return redistributed(build, frame, step, region, dataclasses.replace(share, buffer=buffer))


def ring_register(build: Build, known: Ring, tensor: Tensor, shape: tuple[int, ...], number: int) -> ir.Buffer:
    """Buffer `number` of a ring in registers."""
    ring = known.buffers.setdefault(tensor.name, [])
    while len(ring) <= number:
        ring.append(build.buffer(f"{tensor.name}_ring", tensor.dtype, shape, "register"))
    assert ring[0].shape == (shape or (1,)), (
        f"the buffers of the ring of {tensor.name} have the shapes {ring[0].shape} and {shape}"
    )
    return ring[number]


def clear_ring(build: Build, ring: Ring, step: Place) -> ir.Stmt:
    """Zeroes every element of a register ring: a stage computes existing elements only, but its buffers rotate as a whole."""
    return ir.seq(*(_cleared(build, b, step) for buffers in ring.buffers.values() for b in buffers))


def _cleared(build: Build, buffer: ir.Buffer, step: Place) -> ir.Stmt:
    """Zeroes every element of a register buffer."""
    variables = [build.variable("r", n) for n in buffer.shape]
    return nested(variables, ir.Store(buffer, tuple(variables), const(0, buffer.dtype), None, False, step.span), "unroll")


def rotate_ring(build: Build, ring: Ring, step: Place, exists: Callable[[int], Expr | None]) -> ir.Stmt:
    """After an iteration: copies each buffer of a register ring to the one before it; readers always use the first."""
    out = []
    pairs = [(j, *p) for buffers in ring.buffers.values() for j, p in enumerate(itertools.pairwise(buffers))]
    for j, here, following in pairs:
        width = next(w for w in (16, 8, 4, 2, 1) if here.shape[-1] % w == 0)
        variables = [build.variable("r", n) for n in (*here.shape[:-1], here.shape[-1] // width)]
        lane = build.several("lane", width)
        at = (*variables[:-1], simplify(variables[-1] * width + lane))
        moved = ir.Store(here, at, ir.Load(following, at), None, False, step.span)
        body = nested(variables, nested([lane], moved, "vector"), "unroll")
        guard = exists(j + 1)
        out.append(body if guard is None else ir.If(guard, body, None, step.span))
    return ir.seq(*out)
