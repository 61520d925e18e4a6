"""Faults that tests plant in the compiler."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tilelang.expr import Var, index, rewrite
from tilelang.lowering import ir


def leave_out_barriers(monkeypatch: pytest.MonkeyPatch, module: ModuleType, function: str) -> None:
    """The programs that a function of a module returns have no barriers."""
    change(monkeypatch, module, function, lambda kernel: kernel.replace(body=_bare(kernel.body)))


def exchange_blocks(monkeypatch: pytest.MonkeyPatch, module: ModuleType, function: str) -> None:
    """In the programs that a function of a module returns the last block does the work of the first, and so on: results are right."""
    change(monkeypatch, module, function, with_blocks_exchanged)


def change(monkeypatch: pytest.MonkeyPatch, module: ModuleType, function: str, of: Callable[[ir.Kernel], ir.Kernel]) -> None:
    """Other kernels in the programs that a function of a module returns."""
    made = getattr(module, function)

    def changed(*given: Any) -> ir.Program:
        program: ir.Program = made(*given)
        return program.replace(kernels=tuple(map(of, program.kernels)))

    monkeypatch.setattr(module, function, changed)


def with_blocks_exchanged(kernel: ir.Kernel) -> ir.Kernel:
    last = index(kernel.grid[0] - 1)
    return kernel.replace(
        body=rewrite(kernel.body, lambda e: last - e if isinstance(e, Var) and e.name == ir.BLOCK[0].name else e)
    )


def _bare(s: ir.Stmt) -> ir.Stmt:
    return ir.Seq(()) if isinstance(s, ir.Barrier) else s.map_children(lambda c: _bare(c) if isinstance(c, ir.Stmt) else c)
