"""`tilelang db`: what is remembered, listed, shown, carried elsewhere and forgotten."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

import tilelang as tl
from tests.autoschedule.test_database import entry, key
from tests.cli.commands import of_json, tilelang
from tilelang.autoschedule.tune.database import Database
from tilelang.autoschedule.tune.recall import constructed_by, place_of
from tilelang.cli.db import _device
from tilelang.cli.output import table


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Database:
    found = Database(tmp_path / "schedules.sqlite")
    found.record([entry(size=2, median_s=2e-3), entry(size=4), entry(key(80), size=8, bound_ratio=None)])
    monkeypatch.setenv("TILELANG_DATABASE", str(found.path))
    return found


def test_list(database: Database) -> None:
    told = tilelang("db", "list").stdout
    assert told.count("i=") == 2 and "i=40 j=24" in told and key().hash[:8] in told
    found = of_json(tilelang("db", "list", "--json"))
    assert found["database"] == str(database.path)
    assert [(k["computation"], k["sizes"], k["schedules"], k["median_s"]) for k in found["keys"]] == [
        ("doubled", {"i": 40, "j": 24}, 2, 1e-3),
        ("doubled", {"i": 80, "j": 24}, 1, 1e-3),
    ]
    assert "has no schedules" in tilelang("db", "list", "-d", str(database.path.with_name("none"))).stdout


@pytest.mark.parametrize(
    "name", ["Intel(R) Xeon(R) Processor (cpu, native)", "AMD EPYC (cpu, native)", "NVIDIA H200 (cuda)", "T4"]
)
def test_a_list_has_the_names_of_devices(name: str) -> None:
    assert _device(f"{name}, x86_64 GenuineIntel family 6, caches") == name


def test_a_list_fits_the_terminal(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long columns are cut; keys and dates stay whole."""
    long = dataclasses.replace(key(), device="Some Processor (cpu, native), x86_64 of a family, " + "caches, " * 50)
    database.record([dataclasses.replace(entry(), key=long)])
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    for columns in (80, 100, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        told = table(
            ("key", "name", "sizes", "device", "date"),
            [(long.hash[:8], "f", "i=4 " * 30, long.device, "2026-01-02")],
            cut=("sizes", "device"),
        )
        assert max(map(len, told.splitlines())) == columns and long.hash[:8] in told and "2026-01-02" in told and "..." in told
        whole = table(("sizes", "n"), [("i=4 " * 30, 1)])
        assert "i=4 " * 30 in whole
    monkeypatch.undo()
    assert "i=4 " * 30 in table(("sizes", "n"), [("i=4 " * 30, 1)])


def test_show_prints_a_file_of_the_language(database: Database) -> None:
    result = tilelang("db", "show", key().hash[:12])
    assert result.exit_code == 0, result.output
    document = tl.parse(result.stdout)
    assert [str(document.schedule(n).steps[0]) for n in ("s1", "s2")] == ["tile i=4 -> block", "tile i=2 -> block"]
    assert "# 1 ms, quartiles 0.01 ms apart, 1.5 times the lower bound; 2026-01-02" in result.stdout
    found = of_json(tilelang("db", "show", key().hash, "--json"))
    assert found["text"] == result.stdout and len(found["entries"]) == 2
    several = tilelang("db", "show", "doubled")
    assert several.exit_code == 2 and key(80).hash[:8] in several.stderr
    none = tilelang("db", "show", "nothing", "--json")
    assert none.exit_code == 2 and "the database has no key or computation" in of_json(none)["errors"][0]["message"]


def test_export_and_import_carry_everything(database: Database, tmp_path: Path) -> None:
    text = tilelang("db", "export").stdout
    elsewhere = ("-d", str(tmp_path / "elsewhere.sqlite"))
    assert tilelang("db", "import", "-", *elsewhere, input=text).exit_code == 0
    assert tilelang("db", "export", *elsewhere).stdout == text
    path = tmp_path / "some.json"
    assert of_json(tilelang("db", "export", key(80).hash, "-o", str(path), "--json"))["exported"] == 1
    assert of_json(tilelang("db", "import", str(path), "-d", str(tmp_path / "some.sqlite"), "--json")) == {
        "schema": 1, "imported": 1, "errors": []
    }  # fmt: skip


def test_a_large_export_is_imported(database: Database, tmp_path: Path) -> None:
    document = json.loads(tilelang("db", "export").stdout)
    document["entries"] *= 1 + 300_000 // len(json.dumps(document["entries"]))
    path = tmp_path / "many.json"
    path.write_text(json.dumps(document))
    assert path.stat().st_size > 1 << 18  # the limit of a file of the language
    assert tilelang("db", "import", str(path), "-d", str(tmp_path / "many.sqlite")).exit_code == 0


@pytest.mark.parametrize(
    ("changes", "part"),
    [({"schedule": "schedule for doubled { tile q=4 -> block }"}, "q"), ({"computation": "computation doubled {\n}"}, "doubled"),
     ({"median_s": -1}, "`median_s` is not a number"), ({"schedule": "import os"}, "import")],
)  # fmt: skip
def test_import_refuses_what_is_wrong_and_takes_the_rest(
    database: Database, tmp_path: Path, changes: dict[str, Any], part: str
) -> None:
    path = tmp_path / "some.json"
    path.write_text(json.dumps({"schema": 1, "entries": [{**entry().as_json(), **changes}, entry(key(160)).as_json()]}))
    result = tilelang("db", "import", str(path))
    assert result.exit_code == 1 and part in result.stderr and "imported: 1 schedule; refused: 1" in result.stdout
    assert entry(key(160)) in database.entries()
    found = of_json(tilelang("db", "import", str(path), "--json"))
    assert found["imported"] == 1 and len(found["errors"]) >= 1


@pytest.mark.parametrize("text", ["", "[]", '{"schema": 2, "entries": []}', '{"schema": 1}', "[" * 100_000])
def test_import_refuses_another_file(database: Database, tmp_path: Path, text: str) -> None:
    path = tmp_path / "some.json"
    path.write_text(text)
    result = tilelang("db", "import", str(path))
    assert result.exit_code == 1 and "error[database-file]" in result.stderr


def test_prune(database: Database) -> None:
    assert tilelang("db", "prune").exit_code == 2
    assert of_json(tilelang("db", "prune", "--keep", "1", "--json"))["forgotten"] == 1
    assert of_json(tilelang("db", "prune", "--older-than", "100000", "--json"))["forgotten"] == 0
    assert of_json(tilelang("db", "prune", "--older-than", "0", "--json"))["forgotten"] == 2
    database.record([entry()])
    assert "removed 1 schedule" in tilelang("db", "prune", "--all").stdout and database.entries() == []


def test_prune_what_is_stale(database: Database) -> None:
    device, profile, compiler = place_of(tl.target("cpu"))
    here = key(device=device, profile=profile)
    database.record([entry(dataclasses.replace(here, compiler=c)) for c in (compiler, "an older one")])
    for made in (constructed_by(compiler), f"{compiler}, scheduler before"):
        database.record_constructed(entry(dataclasses.replace(here, compiler=made), trials=0))
    assert of_json(tilelang("db", "prune", "--stale", "--json"))["forgotten"] == 2
    assert len(database.entries()) == 5


def test_what_was_constructed_is_shown_as_such_and_forgotten_by_itself(database: Database) -> None:
    database.record_constructed(entry(key(160), trials=0))
    (line,) = (line for line in tilelang("db", "list").stdout.splitlines() if "model" in line)
    assert "i=160" in line
    found = of_json(tilelang("db", "list", "--json"))
    assert {k["sizes"]["i"]: k["constructed"] for k in found["keys"]} == {40: False, 80: False, 160: True}
    assert "# 1 ms, predicted by the model, never timed, 1.5 times" in tilelang("db", "show", key(160).hash).stdout
    assert of_json(tilelang("db", "prune", "--constructed", "--json"))["forgotten"] == 1
    assert len(database.entries()) == 3


def test_no_database_and_a_damaged_one(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    database.path.write_bytes(b"nonsense" * 100)
    result = tilelang("db", "list", "--json")
    assert result.exit_code == 0 and of_json(result)["keys"] == [] and "warning: " in result.stderr
    monkeypatch.setenv("TILELANG_DATABASE", "")
    assert tilelang("db", "list").exit_code == 2
