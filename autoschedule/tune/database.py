"""The best schedules found so far, remembered between processes: an SQLite file in the user's cache directory.

Schedules that were timed are stored under the key of their timing; merely generated schedules, which need not be generated again,
have their own keys.

The database only saves time. If the file cannot be read or written, a warning is issued and work continues without it. A damaged
file is renamed and a new one started; a file that the user named and that was never a database of schedules is left alone.
Schedules are stored as text, which is parsed and checked like any other: a file from a stranger can be slow, or nonsense, but it
cannot run code. A process opens the file for one operation at a time, under a shared lock of `<file>.lock`. To rename a damaged
file, it takes the lock exclusively, because SQLite must not lose a file that it has open.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import math
import os
import sqlite3
import time
import urllib.parse
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Self, TypeVar

from tilelang.autoschedule.tune.entries import KEY_FIELDS, VALUE_FIELDS, Entry, Key, Recalled, StoredSchedule, read_schedule
from tilelang.computations.computation import Computation
from tilelang.errors import TileLangError
from tilelang.options import Options, is_private, user_directory
from tilelang.profiles.profile import Profile

SCHEMA = 1
KEPT = 8  # schedules kept per key
MOST_CONSTRUCTED = 2048  # generated schedules kept; the oldest are dropped
NEAREST = 4  # similar shapes considered if there is none with the exact extents
BUSY_S, ATTEMPTS = 10.0, 5
HURRY_S = 0.1  # lock timeout if only a generation can be saved
FILE = "schedules.sqlite"
T = TypeVar("T")

_TABLES = """
CREATE TABLE IF NOT EXISTS entries (
    key TEXT NOT NULL, family TEXT NOT NULL, computation TEXT NOT NULL, given TEXT NOT NULL, device TEXT NOT NULL,
    profile TEXT NOT NULL, compiler TEXT NOT NULL, schedule TEXT NOT NULL, median_s REAL NOT NULL, iqr_s REAL NOT NULL,
    error_ratio REAL NOT NULL, bound_ratio REAL, trials INTEGER NOT NULL, date TEXT NOT NULL, PRIMARY KEY (key, schedule));
CREATE INDEX IF NOT EXISTS by_family ON entries (family);
"""
# SQLite's errors for a file that is not a database, or is damaged (ERROR: a table is missing).
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
_MARK = b"CREATE TABLE entries (\n    key TEXT NOT NULL, family TEXT"  # found near the beginning of our files
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class DatabaseWarning(UserWarning):
    """The file of remembered schedules cannot be used, or is damaged."""


class Database:
    """A file of entries.

    Problems with the file are not errors: they issue a DatabaseWarning, and the file counts as empty. patient: if not, a busy
    file is not waited for, and no warning is issued. named: the user named the file, so it may be something else.
    """

    def __init__(self, path: str | Path, patient: bool = True, named: bool = False) -> None:
        self.path, self.patient, self.named = Path(path), patient, named

    @classmethod
    def of(cls, options: Options, patient: bool = True) -> Self | None:
        """The database that the options name: `database`, else a file in `cache_dir`. None if they disable it, or if others can write
        to that directory."""
        if options.database is not None:
            return cls(options.database, patient, named=True) if options.database else None
        if options.cache_dir == "":
            return None
        if options.cache_dir is not None:
            return cls(Path(options.cache_dir) / FILE, patient) if is_private(options.cache_dir) else None
        return cls(Path(user_directory("cache")) / FILE, patient)

    # ------------------------------------------------------------ queries

    def recall(self, key: Key, computation: Computation, profile: Profile, within: float = math.inf) -> Recalled | None:
        """The best measured schedule for a key that can be lowered; else that of the most similar shape of the computation, no
        farther than `within`."""
        found = [e for e in self.of_family(key) if not e.constructed and (e.key == key or 0 < key.distance(e.key) <= within)]
        for entry in found:
            with contextlib.suppress(TileLangError):  # a schedule for another shape, or by another version, may not apply
                schedule = read_schedule(entry.schedule, computation, profile)
                trials = max(e.trials for e in found if e.key == entry.key)
                return Recalled(schedule, entry, key.distance(entry.key), trials)
        return None

    def constructed(self, key: Key, computation: Computation) -> StoredSchedule | None:
        """The schedule generated for a key; None if there is none."""
        found = self._read("WHERE key = ? AND trials = 0", (key.hash,))
        return StoredSchedule(computation, found[0].schedule) if found else None

    def of_family(self, key: Key) -> list[Entry]:
        """The entries of a key, then those of the most similar shapes; for each, fastest first."""
        found = [e for e in self._read("WHERE family = ?", (key.family,)) if e.key.family == key.family]
        distances = {e.key.hash: (key.distance(e.key), e.key.hash) for e in found}
        near = sorted(set(distances.values()))[: NEAREST + 1]
        return sorted(
            (e for e in found if distances[e.key.hash] in near), key=lambda e: (*distances[e.key.hash], e.median_s, e.schedule)
        )

    def entries(self) -> list[Entry]:
        """Every entry: ordered by computation, fastest first."""
        return self._read("ORDER BY computation, key, median_s, schedule", ())

    def record(self, entries: Iterable[Entry]) -> bool:
        """Stores entries, keeping the fastest of each key; whether it succeeded."""
        made = list(entries)

        def write(connection: sqlite3.Connection) -> bool:
            _insert(connection, made)
            for key in {e.key.hash for e in made}:
                _keep(connection, key, KEPT)
            return True

        return self._do(write, False, writes=True)

    def record_constructed(self, entry: Entry) -> bool:
        """Stores the generated schedule of a key; whether it succeeded."""

        def write(connection: sqlite3.Connection) -> bool:
            connection.execute("DELETE FROM entries WHERE key = ? AND trials = 0", (entry.key.hash,))
            _insert(connection, [entry])
            latest = "SELECT rowid FROM entries WHERE trials = 0 ORDER BY rowid DESC LIMIT ?"
            connection.execute(f"DELETE FROM entries WHERE trials = 0 AND rowid NOT IN ({latest})", (MOST_CONSTRUCTED,))
            return True

        return self._do(write, False, writes=True)

    def prune(self, keep: int = KEPT, before: str = "", unwanted: Callable[[Entry], bool] | None = None) -> int:
        """Drops all but the fastest `keep` of each key, those older than a date, and unwanted ones; returns how many."""
        dropped = [e for e in self.entries() if unwanted is not None and unwanted(e)]

        def write(connection: sqlite3.Connection) -> int:
            count = int(connection.execute("SELECT count(*) FROM entries").fetchone()[0])
            connection.execute("DELETE FROM entries WHERE date < ?", (before,))
            rows = [(e.key.hash, e.schedule) for e in dropped]
            connection.executemany("DELETE FROM entries WHERE key = ? AND schedule = ?", rows)
            for (key,) in connection.execute("SELECT DISTINCT key FROM entries").fetchall():
                _keep(connection, key, keep)
            return count - int(connection.execute("SELECT count(*) FROM entries").fetchone()[0])

        return self._do(write, 0, writes=True) if os.path.exists(self.path) else 0

    def _read(self, where: str, values: tuple[str, ...]) -> list[Entry]:
        """Entries; malformed ones are skipped, because damage may go unnoticed by SQLite."""

        def read(connection: sqlite3.Connection) -> list[Entry]:
            found = []
            for row in connection.execute(f"SELECT {', '.join((*KEY_FIELDS, *VALUE_FIELDS))} FROM entries {where}", values):
                with contextlib.suppress(TileLangError):
                    found.append(Entry.from_json(dict(zip((*KEY_FIELDS, *VALUE_FIELDS), row, strict=True))))
            return found

        return self._do(read, [], writes=False)

    # ------------------------------------------------------------ the file

    @property
    def _busy_s(self) -> float:
        return BUSY_S if self.patient else HURRY_S

    def _do(self, work: Callable[[sqlite3.Connection], T], otherwise: T, writes: bool) -> T:
        """Works with the file; a busy or damaged file is retried, any other problem is a warning."""
        why = ""
        for attempt in range(ATTEMPTS if self.patient else 1):
            if not writes and not os.path.exists(self.path):
                return otherwise
            try:
                if self.named and self._is_foreign():
                    why = "it is not a database of schedules, and is left as it is; TILELANG_DATABASE or `database=` names it"
                    break
                if writes:
                    self.path.parent.mkdir(parents=True, exist_ok=True)
                with self._lock(exclusive=False), contextlib.closing(self._open(writes)) as connection:
                    if not writes:
                        return work(connection)
                    with _transaction(connection):
                        return work(connection)
            except _Empty:
                return otherwise
            except _Newer as newer:
                why = str(newer)
                break
            except OSError as error:
                why = error.strerror or str(error)
                break
            except sqlite3.Error as error:
                why, code = str(error), getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
                if code in _DAMAGED:
                    with contextlib.suppress(OSError):
                        self._set_aside(why)
                elif code in _BUSY:
                    time.sleep(0.05 * 2**attempt)
                else:
                    break
        if self.patient:
            _warn(f"schedules are not {'remembered in' if writes else 'recalled from'} {self.path}: {why}")
        return otherwise

    def _open(self, writes: bool) -> sqlite3.Connection:
        """A connection; if the file cannot be written, a read-only connection that assumes nobody else writes."""
        try:
            return self._connect("rwc" if writes else "rw")
        except sqlite3.OperationalError as error:
            if writes or error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
                raise
            return self._connect("ro&immutable=1")

    def _connect(self, mode: str) -> sqlite3.Connection:
        name = f"file:{urllib.parse.quote(str(self.path.resolve()))}?mode={mode}"
        connection = sqlite3.connect(name, uri=True, timeout=self._busy_s, isolation_level=None)
        try:
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version > SCHEMA:
                raise _Newer(f"its schema is {version}, this version of tilelang reads {SCHEMA}")
            if version == 0 and mode != "rwc":
                raise _Empty
            if mode == "rwc":
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                if version == 0:
                    connection.executescript(f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version = {SCHEMA}; COMMIT;")
        except BaseException:
            connection.close()
            raise
        return connection

    @contextlib.contextmanager
    def _lock(self, exclusive: bool) -> Iterator[bool]:
        """Holds the lock file, shared or exclusive; yields whether it was obtained."""
        try:
            import fcntl  # late: exists on some systems only

            file = open(f"{self.path}.lock", "ab")
        except (ImportError, OSError):  # no such module on this system, or the folder is read-only
            yield False
            return
        with file:
            end = time.monotonic() + self._busy_s
            while True:
                try:
                    fcntl.flock(file, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
                    break
                except OSError:
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.01)
            yield True

    def _is_foreign(self) -> bool:
        """Whether the file is neither empty nor a (possibly damaged) database of schedules."""
        if not self.path.is_file():
            return False
        with open(self.path, "rb") as file:
            head = file.read(1 << 16)
        if not head or _MARK in head:
            return False
        try:  # SQLite may have started the file without having written our table yet
            name = f"file:{urllib.parse.quote(str(self.path.resolve()))}?mode=ro"
            with contextlib.closing(sqlite3.connect(name, uri=True, timeout=self._busy_s)) as connection:
                tables = [sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master")]
        except sqlite3.Error as error:
            return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED
        return bool(tables) and not any(str(sql).encode().startswith(_MARK) for sql in tables)

    def _set_aside(self, why: str) -> None:
        """Renames a damaged file, unless another process has just done so."""
        with self._lock(exclusive=True) as alone:
            if not alone or not os.path.exists(self.path) or self._whole():
                return
            stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%d-%H%M%S")
            kept = f"{self.path}.damaged-{stamp}-{os.getpid()}"
            for suffix in ("-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    os.replace(f"{self.path}{suffix}", f"{kept}{suffix}")
            os.replace(self.path, kept)
        _warn(f"{self.path} was damaged ({why}): it is kept as {kept}, another one is begun")

    def _whole(self) -> bool:
        """Whether SQLite finds the file intact and our table in it."""
        try:
            with contextlib.closing(self._connect("rw")) as connection:
                connection.execute(
                    f"SELECT {', '.join(('key', 'family', *KEY_FIELDS, *VALUE_FIELDS))} FROM entries LIMIT 1"
                ).fetchone()
                return bool(connection.execute("PRAGMA quick_check").fetchone()[0] == "ok")
        except _Newer:
            return True
        except (_Empty, sqlite3.DatabaseError):
            return False


class _Empty(Exception):
    """A file that has no tables yet, as after a full disk."""


class _Newer(Exception):
    """A file written by a later version of this package."""


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):  # SQLite has already rolled back
            connection.execute("ROLLBACK")
        raise


def _insert(connection: sqlite3.Connection, entries: Iterable[Entry]) -> None:
    rows = [(e.key.hash, e.key.family, *dataclasses.astuple(e.key), *(getattr(e, n) for n in VALUE_FIELDS)) for e in entries]
    columns = ("key", "family", *KEY_FIELDS, *VALUE_FIELDS)
    marks = ", ".join("?" * len(columns))
    connection.executemany(f"INSERT OR REPLACE INTO entries ({', '.join(columns)}) VALUES ({marks})", rows)


def _keep(connection: sqlite3.Connection, key: str, count: int) -> None:
    fastest = "SELECT schedule FROM entries WHERE key = ? ORDER BY trials = 0, median_s, schedule LIMIT ?"
    connection.execute(f"DELETE FROM entries WHERE key = ? AND schedule NOT IN ({fastest})", (key, key, count))


def _warn(message: str) -> None:
    warnings.warn(message, DatabaseWarning, stacklevel=2)
