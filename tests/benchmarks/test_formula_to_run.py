"""The benchmark of where the time from a formula to a run goes, without its times."""

from __future__ import annotations

import pytest

import tilelang as tl
from benchmarks import operators_cases
from benchmarks.formula_to_run import STAGES, measured


def test_every_stage_is_seen_once(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(tmp_path_factory.mktemp("empty")))
    monkeypatch.setenv("TILELANG_DATABASE", "")
    found = measured(operators_cases.tiny(operators_cases.read()[0]), tl.target("cpu"))
    assert all(found[stage] > 0 for stage in STAGES)
    assert found["all"] == pytest.approx(sum(found[stage] for stage in STAGES))
