"""`benchmarks/guards.py` counts conditions in innermost loops, and tells where there are more than before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import guards
from tilelang.core.dtype import float32
from tilelang.core.expr import INDEX, Select, Var, const, index
from tilelang.lowering import ir

ONLY = "examples/06_row_sum.tile simt @ ampere cuda"


def test_only_conditions_on_indices_of_innermost_loops_count_as_inside() -> None:
    i, k = Var("i", INDEX, 0, 9), Var("k", INDEX, 0, 9)
    x = ir.Buffer("X", float32, (10,), "global")
    value = Select(
        ir.Load(x, (k,)) < const(0.0, float32), const(0.0, float32), Select(k < 7, ir.Load(x, (k,)), const(1.0, float32))
    )
    inner = ir.For(k, index(10), ir.If((k < 8) & (k < i), ir.Store(x, (k,), value)))
    outer = ir.For(i, index(10), ir.If(i < 5, inner))
    kernel = ir.Kernel("K", (1, 1, 1), 1, (x,), outer)
    assert guards.counts(ir.Program((kernel,), (x,))) == {"innermost": 1, "guards inside": 3, "guards elsewhere": 1}


def test_more_guards_than_before_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "before.jsonl"
    assert guards.main(["--record", str(kept), "--only", ONLY]) == 0
    ((name, found),) = guards.read(kept).items()
    assert name == ONLY and found["innermost"] > 0
    kept.write_text(json.dumps([name, found | {"guards inside": found["guards inside"] - 1}]) + "\n")
    assert guards.main(["--against", str(kept), "--only", ONLY]) == 1
    assert f"{name}: {found['guards inside'] - 1} before, {found['guards inside']} after" in capsys.readouterr().out
