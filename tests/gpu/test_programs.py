"""Compares a GPU's results with the reference on generated programs: the corpus, and random programs without a schedule."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tilelang as tl
from benchmarks.foreign import corpus, data, steer
from benchmarks.foreign.corpus import Entry
from benchmarks.foreign.draw import Drawer
from benchmarks.foreign.program import program_text
from benchmarks.foreign.worker import compared
from tests.gpu.emulated import PROFILES
from tilelang.errors import DeviceError, Refusal

ACCEPTED = [entry for entry in corpus.entries() if not entry.refused and entry.device[0] in PROFILES]
POINTS = 1500  # of a drawn program
SEEDS = range(120)


@pytest.mark.parametrize("entry", ACCEPTED, ids=lambda entry: entry.name)
def test_the_corpus(entry: Entry) -> None:
    """Those of the device's dialect whose schedules its own profile accepts, with data of two kinds."""
    target = tl.target()
    if entry.device[0] != target.dialect:
        pytest.skip(f"for {entry.device[0]}")
    schedule = corpus.schedule_of(entry)
    try:
        report = tl.compile(schedule).check()
    except Refusal as refusal:
        pytest.skip(f"refused for {target.profile.name}: {refusal.code}")
    except DeviceError as error:
        if error.code != "no-template":  # of an instruction of another dialect, which simulations run
            raise
        pytest.skip(error.message)
    assert report, str(report)


@pytest.mark.parametrize("seed", SEEDS)
def test_drawn_programs(seed: int) -> None:
    """Under the schedules that are constructed for the device."""
    program = Drawer(seed, POINTS).program()
    try:
        computation = tl.parse(program_text(program), "drawn.tile").computation()
    except tl.TileLangError as error:
        pytest.skip(f"refused: {error.code}")
    kernel = tl.compile(computation)
    for kind in ("exact", "random", "special"):
        arrays = data.arrays(program, seed, kind)
        given = {t.name: np.array(arrays[t.name]) for t in computation.inputs}
        result = kernel(**given)
        got = result._asdict() if hasattr(result, "_asdict") else {program["outputs"][0]: result}
        assert compared(program, computation, given, got) == []


@pytest.mark.parametrize("of", ["accumulate in register", "tma_load_2d"])  # which takes a tensor map beside its buffers
def test_campaigns_run_texts_of_the_device_natively(of: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steer, "LONG", 1)  # however long the simulation takes
    target = tl.target()
    entry = next((e for e in ACCEPTED if e.device == (target.dialect, PROFILES.get(target.dialect)) and of in e.text), None)
    if entry is None:
        pytest.skip(f"there is none for {target}")
    campaign = steer.Campaign((entry.device,), tmp_path / "corpus", tmp_path / "log")
    report = campaign.report(0, entry.device)
    assert campaign.attempt(entry.device, entry.text, report)
    campaign.finish(report)
    assert report["faults"] == [] and report["native"] == 1
