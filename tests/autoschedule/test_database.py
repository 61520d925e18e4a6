"""The database of schedules: what it keeps and finds, and that nothing which happens to its file is fatal."""

import contextlib
import dataclasses
import functools
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tilelang as tl
from tilelang.autoschedule.tune import database as module
from tilelang.autoschedule.tune import entries
from tilelang.autoschedule.tune.database import KEPT, Database, DatabaseWarning
from tilelang.autoschedule.tune.entries import Entry, Key, read_schedule
from tilelang.computations.computation import Computation
from tilelang.errors import TileLangError
from tilelang.options import Options

POCL = tl.load_profile("sapphire_rapids")


def doubled(rows: int, columns: int = 24) -> Computation:
    i, j = tl.axes(i=rows, j=columns)
    return tl.computation("doubled", tl.define("Y", tl.input("X", tl.float32, i, j)[i, j] * 2.0, i, j))


def key(rows: int = 40, **changes: str) -> Key:
    return dataclasses.replace(Key(doubled(rows).text, "", "device", "profile 1", "compiler 1"), **changes)


def entry(of: Key | None = None, size: int = 4, median_s: float = 1e-3, **changes: Any) -> Entry:
    schedule = tl.schedule(doubled(40)).tile(i=size).to(tl.block).text
    made = Entry(of or key(), schedule, median_s, 1e-5, 0.1, 1.5, 8, "2026-01-02T03:04:05+00:00")
    return dataclasses.replace(made, **changes)


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "cache" / "schedules.sqlite")


@contextlib.contextmanager
def warned() -> Iterator[None]:
    with pytest.warns(DatabaseWarning):
        yield


# ---------------------------------------------------------------- what it keeps and finds


def test_the_fastest_of_each_key_are_kept(database: Database) -> None:
    assert database.entries() == [] and not database.path.exists()
    entries = [entry(size=n, median_s=n * 1e-3) for n in range(1, KEPT + 4)]
    assert database.record(reversed(entries)) and database.entries() == entries[:KEPT]
    assert database.record([entry(size=2, median_s=1e-6)])
    assert database.entries()[0] == entry(size=2, median_s=1e-6) and len(database.entries()) == KEPT
    assert database.record([entry(key(80))]) and len(database.entries()) == KEPT + 1


def test_recall_gives_the_fastest_that_fits(database: Database) -> None:
    impossible = entry(median_s=1e-6, schedule="schedule for doubled {\n  tile i=4 -> warpgroup\n}")
    unreadable = entry(median_s=1e-7, schedule="schedule for doubled {\n  tile\n}")
    database.record([entry(size=8), entry(size=4, median_s=2e-3), impossible, unreadable])
    found = database.recall(key(), doubled(40), POCL)
    assert found is not None and found.entry == entry(size=8) and found.distance == 0
    assert found.schedule.text == entry(size=8).schedule and found.schedule.computation.hash == doubled(40).hash


def test_what_was_constructed_hides_nothing_that_was_measured(database: Database) -> None:
    first, second = (entry(size=n, median_s=1e-9, trials=0) for n in (2, 8))
    assert database.constructed(key(), doubled(40)) is None
    assert database.record_constructed(first) and database.record_constructed(second)
    assert database.entries() == [second] and database.recall(key(), doubled(40), POCL) is None
    made = database.constructed(key(), doubled(40))
    assert made is not None and made.text == second.schedule
    database.record(entry(size=n, median_s=n * 1e-3) for n in range(1, KEPT + 2) if n != 8)
    found = database.recall(key(), doubled(40), POCL)
    assert found is not None and found.entry == entry(size=1) and sum(not e.constructed for e in database.entries()) == KEPT


def test_the_latest_of_what_was_constructed_are_kept(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CONSTRUCTED", 2)
    database.record([entry(key(20))])
    for rows in (30, 40, 50):
        database.record_constructed(entry(key(rows), trials=0))
    assert {e.key for e in database.entries()} == {key(20), key(40), key(50)}


def test_recall_gives_the_nearest_shape_where_there_is_none_of_the_very_extents(database: Database) -> None:
    database.record([entry(key(20), size=5), entry(key(100), size=6), entry(key(1000), size=7)])
    found = database.recall(key(50), doubled(50), POCL)
    assert found is not None and found.distance == 1 and found.entry == entry(key(100), size=6)
    assert database.recall(key(50), doubled(50), POCL, within=0) is None
    assert database.recall(key(50, device="another"), doubled(50), POCL) is None
    assert database.recall(key(50, compiler="another"), doubled(50), POCL) is None
    assert database.recall(key(50, given="tile"), doubled(50), POCL) is None


def test_a_family_is_the_text_without_extents() -> None:
    one, other = key(40), key(80)
    assert one.family == other.family and one.hash != other.hash and one.distance(other) == 1
    assert key(0).distance(key(1)) == 0
    scaled = doubled(40).text.replace("2.0", "3.0")
    assert one.family != dataclasses.replace(one, computation=scaled).family
    text = "computation c {\n  input A: int32[i: 7] in 0 .. 9\n  axis j: 12\n  output Y[i, j] = A[i] + 12\n}\n"
    shape, extents = entries._shape(text)
    assert extents == (7, 12) and "[i: _] in 0 .. 9" in shape and "axis j: _" in shape and "+ 12" in shape


def test_the_options_say_where_it_is(tmp_path: Path) -> None:
    def path(**given: Any) -> Path | None:
        found = Database.of(Options(**given))
        return None if found is None else found.path

    assert path(database="x.sqlite", cache_dir="") == Path("x.sqlite") and path(database="", cache_dir="c") is None
    assert path(cache_dir="") is None and path(cache_dir="c") == Path("c") / "schedules.sqlite"
    standard = path()
    assert standard is not None and "tilelang-rtile" in standard.parts
    if os.name == "posix":
        tmp_path.chmod(0o777)
        assert path(cache_dir=str(tmp_path)) is None  # as for binaries
        assert path(cache_dir=str(tmp_path), database="x.sqlite") == Path("x.sqlite")
    assert Options.from_environment({"TILELANG_DATABASE": ""}).database == ""


def test_prune(database: Database) -> None:
    assert database.prune(keep=1) == 0 and not database.path.exists()
    database.record([entry(size=n, median_s=n * 1e-3) for n in (1, 2, 3)])
    database.record([entry(key(80), date="2025-01-01T00:00:00+00:00"), entry(key(160, device="old"))])
    assert database.prune(unwanted=lambda e: e.key.device == "old") == 1
    assert database.prune(before="2026") == 1
    assert database.prune(keep=2) == 1 and database.entries() == [entry(size=n, median_s=n * 1e-3) for n in (1, 2)]


# ---------------------------------------------------------------- what comes from others


def test_entries_are_the_same_from_their_json() -> None:
    for made in (entry(), entry(bound_ratio=None)):
        assert Entry.from_json(made.as_json()) == made


@pytest.mark.parametrize(
    "changes",
    [{"schedule": None}, {"schedule": b"x"}, {"median_s": "1"}, {"median_s": float("nan")}, {"iqr_s": -1.0}, {"error_ratio": True},
     {"error_ratio": None}, {"median_s": 10**400}, {"date": 5}, {"trials": 1.0}, {"trials": -1}, {"device": "\ud800"}],
)  # fmt: skip
def test_what_is_no_entry_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(TileLangError) as caught:
        Entry.from_json({**entry().as_json(), **changes})
    assert caught.value.code == "database-entry"
    with pytest.raises(TileLangError):
        Entry.from_json([])


@pytest.mark.parametrize(
    "text",
    ["", "schedule for other { }", "schedule for doubled { } schedule b for doubled { }", "computation x { output y = 1.0 }",
     "import os", "schedule for doubled { tile q=4 -> block }", "use os schedule for doubled { }", "(" * 5000],
)  # fmt: skip
def test_a_text_that_is_no_schedule_of_it_is_refused(text: str) -> None:
    with pytest.raises(TileLangError):
        read_schedule(text, doubled(40), POCL)


# ---------------------------------------------------------------- what happens to the file


def python(code: str, *arguments: object, **more: Any) -> "subprocess.Popen[str]":
    """Another process, with this module's entries at hand."""
    start = f"import sys; sys.path[:] = {sys.path!r}\nfrom tests.autoschedule.test_database import *\n"
    command = [sys.executable, "-W", "error", "-c", start + textwrap.dedent(code), *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def done(process: "subprocess.Popen[str]") -> str:
    out, err = process.communicate()
    assert process.returncode == 0, err
    return out


@pytest.mark.slow
def test_four_writers_at_once(database: Database) -> None:
    code = """
        database, number = Database(sys.argv[1]), int(sys.argv[2])
        for n in range(10):
            assert database.record([entry(key(40 + 10 * number + n)), entry(key(7), size=1 + 10 * number + n, median_s=1 + number)])
            assert len(database.of_family(key(7))) >= 1
    """
    for process in [python(code, database.path, number) for number in range(4)]:
        done(process)
    found = database.entries()
    assert len({e.key for e in found}) == 41
    assert [e.median_s for e in found if e.key == key(7)] == [1.0] * KEPT


def test_a_writer_that_dies_half_way_leaves_all_or_nothing(database: Database) -> None:
    database.record([entry()])
    code = """
        connection = Database(sys.argv[1])._open(writes=True)
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("PRAGMA cache_spill = 1")
        connection.execute("UPDATE entries SET schedule = hex(zeroblob(1000000))")
        print("half way", flush=True)
        sys.stdin.read()
    """
    writer = python(code, database.path)
    assert writer.stdout is not None and writer.stdout.readline() == "half way\n"
    assert database.entries() == [entry()]
    os.kill(writer.pid, signal.SIGKILL)
    writer.communicate()
    assert database.entries() == [entry()] and database.record([entry(key(80))]) and len(database.entries()) == 2


@functools.cache
def written() -> list[Entry]:
    return [entry(key(n), size=s) for n in range(40, 70) for s in (2, 4)]


def filled(database: Database) -> bytes:
    """A database of many entries, and its bytes."""
    database.record(written())
    return database.path.read_bytes()


def after_damage(database: Database) -> list[Entry]:
    """What is read of a file, whatever it is, once something was asked of it and written to it, if need be after warnings."""
    with contextlib.suppress(DatabaseWarning):
        database.recall(key(41), doubled(41), POCL)
    for _ in range(2):  # where the damage shows only with the first
        with contextlib.suppress(DatabaseWarning):
            database.record([entry(key(500))])
    return database.entries()


@pytest.mark.parametrize("part", [0.0, 0.001, 0.01, 0.3, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_survived(database: Database, part: float) -> None:
    whole = filled(database)
    database.path.write_bytes(whole[: int(len(whole) * part)])
    found = after_damage(database)
    assert entry(key(500)) in found and all(e in written() for e in found if e != entry(key(500)))


@pytest.mark.parametrize("seed", range(8))
def test_garbage_in_the_file_is_survived(database: Database, seed: int) -> None:
    whole, generator = bytearray(filled(database)), random.Random(seed)
    for _ in range(generator.choice((1, 30))):
        size, start = generator.choice((1, 16, 4096)), generator.randrange(len(whole))
        whole[start : start + size] = generator.randbytes(size)
    database.path.write_bytes(whole)
    assert entry(key(500)) in after_damage(database)


def test_a_damaged_file_is_kept_and_another_one_begun(database: Database) -> None:
    filled(database)
    database.path.write_bytes(b"nonsense" * 1000)
    with pytest.warns(DatabaseWarning, match="it is kept as"):
        assert database.entries() == []
    (kept,) = database.path.parent.glob("*.damaged-*")
    assert kept.read_bytes() == b"nonsense" * 1000
    assert database.record([entry()]) and database.entries() == [entry()]


def foreign_file(kind: str, path: Path) -> None:
    """Writes what is not a database of schedules."""
    if kind == "notes":
        path.write_text("what I must not lose\n" * 1000)
        return
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
        connection.execute("INSERT INTO bookmarks VALUES ('example.org')")
        connection.execute(f"PRAGMA user_version = {module.SCHEMA if kind == 'the same version' else 0}")
        if kind == "a table of that name":
            connection.execute("CREATE TABLE entries (title TEXT)")
        connection.commit()


@pytest.mark.parametrize("kind", ["notes", "another database", "the same version", "a table of that name"])
def test_a_file_that_a_person_named_and_that_is_something_else_is_left_as_it_is(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "mine"
    foreign_file(kind, path)
    before = path.read_bytes()
    named = Database.of(Options(database=str(path)))
    assert named is not None
    with pytest.warns(DatabaseWarning, match="not a database of schedules, and is left as it is; TILELANG_DATABASE"):
        assert named.entries() == []
    with pytest.warns(DatabaseWarning, match="are not remembered in .*mine: it is not a database of schedules"):
        assert not named.record([entry()])
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("damage", ["cut", "garbage behind"])
def test_a_damaged_database_that_a_person_named_is_set_aside(damage: str, tmp_path: Path) -> None:
    named = Database.of(Options(database=str(tmp_path / "mine")))
    assert named is not None and named.record(written())
    whole = named.path.read_bytes()
    damaged = whole[: len(whole) // 2] if damage == "cut" else whole[:8192] + bytes(len(whole) - 8192)
    named.path.write_bytes(damaged)
    assert entry(key(500)) in after_damage(named)
    (kept,) = tmp_path.glob("mine.damaged-*")
    assert kept.read_bytes() == damaged


def test_a_file_that_was_only_begun_is_an_empty_one(database: Database) -> None:
    database.path.parent.mkdir()
    database.path.write_bytes(b"")
    assert database.entries() == [] and database.record([entry()]) and database.entries() == [entry()]


def test_another_table_is_damage(database: Database) -> None:
    database.record([entry()])
    with contextlib.closing(sqlite3.connect(database.path)) as connection:
        connection.execute("ALTER TABLE entries RENAME COLUMN schedule TO something")
    with warned():
        assert database.entries() == []
    assert database.record([entry()]) and database.entries() == [entry()]


def test_a_file_of_a_later_version_is_left_alone(database: Database) -> None:
    database.record([entry()])
    with contextlib.closing(sqlite3.connect(database.path)) as connection:
        connection.execute(f"PRAGMA user_version = {module.SCHEMA + 1}")
    before = database.path.read_bytes()
    with pytest.warns(DatabaseWarning, match="its schema is 2"):
        assert database.entries() == []
    with warned():
        assert not database.record([entry(key(80))])
    assert database.path.read_bytes() == before and not list(database.path.parent.glob("*.damaged-*"))


@pytest.mark.slow
def test_a_full_disk_is_a_warning(database: Database) -> None:
    database.record([entry()])
    code = """
        import resource, warnings
        database = Database(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), -1))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            kept = database.record(entry(key(100 + n), schedule="x" * 5000) for n in range(100))
            print(kept, len(told), *[w.category.__name__ for w in told], len(database.entries()) > 0)
    """
    for limit in (0, 1000, 20_000, 100_000):
        assert done(python(code, database.path, limit)).split()[:3] == ["False", "1", "DatabaseWarning"], limit
        assert database.entries() == [entry()]
    assert database.record([entry(key(80))])


def test_where_nothing_can_be_written_it_is_read_all_the_same() -> None:
    """As a user who may not write there."""
    code = """
        import warnings
        database = Database(sys.argv[1])
        first, second = entry(), entry(key(80))
        assert database.entries() == [first]  # all is imported: the other user may not even read the package
        if os.getuid() == 0:
            os.setuid(65534)
        assert database.entries() == [first], database.entries()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            assert not database.record([second])
            assert not Database(database.path, patient=False).record_constructed(second)  # about which nothing is said
        print(len(told))
    """
    with tempfile.TemporaryDirectory() as folder:
        database = Database(Path(folder) / "schedules.sqlite")
        database.record([entry()])
        try:
            os.chmod(folder, 0o555)
            assert done(python(code, database.path)) == "1\n"
        finally:
            os.chmod(folder, 0o755)


def test_a_place_that_cannot_be_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    below = Database(tmp_path / "file" / "schedules.sqlite")
    assert below.entries() == [] and below.prune() == 0
    with warned():
        assert not below.record([entry()])
    folder = Database(tmp_path)
    with warned():
        assert folder.entries() == []


def test_a_busy_file_is_waited_for_and_then_left(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    database.record([entry()])
    monkeypatch.setattr(module, "BUSY_S", 0.05)
    monkeypatch.setattr(module, "ATTEMPTS", 2)
    with contextlib.closing(sqlite3.connect(database.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.warns(DatabaseWarning, match="locked"):
            assert not database.record([entry(key(80))])
        assert database.entries() == [entry()]
        assert not Database(database.path, patient=False).record_constructed(entry(key(80), trials=0))  # and nothing is said
        other.execute("ROLLBACK")
    assert database.record([entry(key(80))])
