"""What campaigns ran is recorded over many runs: ranges of seeds, and each case once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.foreign import __main__ as foreign
from benchmarks.foreign import worker
from benchmarks.foreign.record import BYTES, Record


def report(
    seed: int, digests: tuple[int, ...] = (), native: tuple[int, ...] = (), faults: tuple[str, ...] = ()
) -> dict[str, Any]:
    hashes = {"digests": [f"{n:016x}" for n in digests], "native_digests": [f"{n:016x}" for n in native]}
    return {"seed": seed, "kind": "steered", "faults": list(faults), "tried": 5, **hashes}


A, B, C = 1 << 40, 2 << 40, 3 << 40


def test_a_case_counts_once_over_all_runs(tmp_path: Path) -> None:
    record = Record(tmp_path / "campaign.json")
    assert record.following("steered") == 0
    record.add(report(0, (A, B, A), (A,)), "", "c1")
    record.add(report(1, (B, C), faults=("wrong",)), "", "c1")
    record.write()
    again = Record(record.path)
    assert again.following("steered") == 2 and again.following("cpu") == 0
    again.add(report(2, (C,)), "", "c2")
    assert [
        (r["commit"], r["first"], r["last"], r["drawn"], r["accepted"], r["simulated"], r["native"], r["findings"])
        for r in again.runs
    ] == [
        ("c1", 0, 1, 10, 5, 3, 1, [1]),
        ("c2", 2, 2, 5, 1, 0, 0, []),
    ]
    assert {how: len(known) for how, known in again.known.items()} == {"simulated": 3, "native": 1}
    assert "seed 1 (c1): a finding" in again.summary() and again.summary().endswith("distinct: simulated 3, native 1")


def test_records_of_two_machines_are_joined(tmp_path: Path) -> None:
    one, other = Record(tmp_path / "one.json"), Record(tmp_path / "other.json")
    one.add(report(0, (A,)), "", "c1")
    other.add(report(0, (A,)), "", "c1")
    other.add(report(1, (B,)), "", "c1")
    other.add(report(7, (), (C,)), "hopper", "c1")
    one.merge(other)
    assert [(r["profile"], r["first"], r["last"]) for r in one.runs] == [("", 0, 1), ("hopper", 7, 7)]
    assert {how: len(known) for how, known in one.known.items()} == {"simulated": 2, "native": 1}


def test_a_finding_is_settled_where_its_text_finds_nothing_any_more(tmp_path: Path) -> None:
    record = Record(tmp_path / "campaign.json")
    for seed, said in enumerate(("first", "second", "third")):
        record.add(
            report(seed, (seed,), faults=(f"{said}\nin line 3",)) | {"text": f"# cpu zen5: accepted\n{said} text\n"}, "zen5", "c1"
        )
    record.write()
    kept = record.text_of("zen5", 0)
    assert kept.read_text() == "# cpu zen5: accepted\n# first\n# in line 3\nfirst text\n"
    record.text_of("zen5", 2).unlink()
    found = {"first text": [], "second text": ["still wrong"]}
    told = list(record.again(lambda text, seed: found[text.splitlines()[-1]], "c2"))
    assert told == ["zen5_1.tile: still wrong"] and not kept.exists() and record.text_of("zen5", 1).exists()
    record.write()
    (run,) = Record(record.path).runs
    assert (run["findings"], run["settled"], run["lost"]) == ([0, 1, 2], {"0": "c2"}, [2])
    assert "seed 1 (c1): a finding" in record.summary() and "seed 0" not in record.summary()
    assert "1 findings are settled: their texts find nothing any more; 1 texts are lost" in record.summary()


def test_many_cases_stay_small(tmp_path: Path) -> None:
    record = Record(tmp_path / "campaign.json")
    digest = (n * 0x9E3779B97F4A7C15 % (1 << 64) for n in range(60_000))
    record.known["simulated"] = {n.to_bytes(8)[:BYTES] for n in digest}
    record.write()
    assert len(record.known["simulated"]) == 60_000 == len(Record(record.path).known["simulated"])
    assert record.path.stat().st_size < 1_000_000


def test_a_campaign_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(foreign, "Record", lambda: Record(tmp_path / "campaign.json"))
    for first in (0, 2):
        monkeypatch.setattr("sys.argv", ["foreign", "--kind", "constructed", "--resume", "--count", "2"])
        assert foreign.main() == 0
        assert f"constructed: {first + 2} seeds, drawn {first + 2}" in capsys.readouterr().out
    runs = json.loads((tmp_path / "campaign.json").read_text())["runs"]
    assert [(r["first"], r["last"], r["drawn"]) for r in runs] == [(0, 3, 4)]


def test_what_runs_natively_counts_as_native() -> None:
    found = worker.case("cpu", 1)
    assert found["ran"] and len(found["native_digests"]) == 1 and "digests" not in found


def test_two_campaigns_add_to_one_file(tmp_path: Path) -> None:
    one, other = Record(tmp_path / "campaign.json"), Record(tmp_path / "campaign.json")
    one.add(report(0, (A,)), "", "c1")
    other.add(report(0, (B,), (B,)), "zen5", "c1")
    one.write()
    other.write()
    one.add(report(1, (C,)), "", "c1")
    one.write()
    held = Record(one.path)
    assert {how: len(known) for how, known in held.known.items()} == {"simulated": 3, "native": 1}
    assert (held.following("steered"), held.following("steered", "zen5"), held.following("steered", "hopper")) == (2, 1, 0)
    assert held.done(f"{A:016x}", native=False) and not held.done(f"{A:016x}", native=True)
    assert held.done(f"{B:016x}", native=True)
