"""Faults that tests plant in the compiler."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from tilelang.lowering import ir


def leave_out_barriers(monkeypatch: pytest.MonkeyPatch, module: ModuleType, function: str) -> None:
    """The programs that a function of a module returns have no barriers."""
    made = getattr(module, function)

    def without_barriers(*given: Any) -> ir.Program:
        program: ir.Program = made(*given)
        return program.replace(kernels=tuple(k.replace(body=_bare(k.body)) for k in program.kernels))

    monkeypatch.setattr(module, function, without_barriers)


def _bare(s: ir.Stmt) -> ir.Stmt:
    return ir.Seq(()) if isinstance(s, ir.Barrier) else s.map_children(lambda c: _bare(c) if isinstance(c, ir.Stmt) else c)
