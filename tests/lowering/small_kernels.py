"""Small kernels for the tests of the simulator: one body, a few buffers."""

from __future__ import annotations

from tilelang.core import dtype as dt
from tilelang.core.expr import Var
from tilelang.lowering import ir
from tilelang.lowering.simulator.simulate import Report

THREAD = Var("thread", dt.int64, 0, None)
ORDERS: tuple[str | int, ...] = ("early", "late", 0, 1)


def program(body: ir.Stmt, *buffers: ir.Buffer, threads: int = 32, grid: tuple[int, int, int] = (1, 1, 1)) -> ir.Program:
    """One kernel."""
    kernel = ir.Kernel("kernel", grid, threads, buffers, body)
    return ir.Program((kernel,), tuple(b for b in buffers if b.memory == "global"))


def array(name: str, *shape: int, type: dt.DType = dt.float32, role: str = "input") -> ir.Buffer:
    return ir.Buffer(name, type, shape, "global", role)


def shared(name: str, *shape: int, type: dt.DType = dt.float32, offset: int | None = None) -> ir.Buffer:
    return ir.Buffer(name, type, shape, "shared", offset=offset)


def kinds(report: Report) -> set[str]:
    return set(report.counts)
