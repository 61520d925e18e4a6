"""What the tests of `benchmarks/operators.py` share: a run without pauses and without peers that must be installed."""

from __future__ import annotations

import time

import numpy as np
import pytest

import tilelang as tl
from benchmarks import operators, operators_cases, operators_ours, operators_peers
from benchmarks.operators_cases import Operator


def stand_in(operator: Operator, arrays: operators_peers.Arrays, threads: int) -> dict[str, tuple[str, operators_peers.Peer]]:
    """NumPy under its own name and another, for machines without PyTorch, whose compiler would take a minute besides."""
    outs = [np.empty_like(list(arrays.values())[-1]) for _ in range(2)]
    return {
        "NumPy": ("NumPy", lambda: operators_peers.by_numpy(operator, arrays, outs[0])),
        "PyTorch": ("PyTorch", lambda: operators_peers.by_numpy(operator, arrays, outs[1])),
    }


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> tl.Target:
    """No pauses, few candidates, no peers but NumPy."""
    monkeypatch.setattr(operators_peers, "peers", stand_in)
    monkeypatch.setattr(operators, "BEST_OF", 3)
    monkeypatch.setattr(operators, "FIRST", 1)
    monkeypatch.setattr(operators, "SWEPT", 3)
    monkeypatch.setattr(operators_ours, "SAMPLE_S", 1e-5)
    monkeypatch.setattr(operators_ours, "WARM_S", 0)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    return tl.target("cpu")


@pytest.fixture
def small_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """One operator of each class, of tiny sizes, as the whole set."""
    known = operators_cases.read()
    chosen = [operators_cases.tiny(next(o for o in known if o.kind == kind)) for kind in operators_cases.CLASSES]
    monkeypatch.setattr(operators_cases, "read", lambda: tuple(chosen))
