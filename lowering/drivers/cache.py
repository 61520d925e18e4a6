"""Compiled binaries on disk, by a hash of everything that went into them.

A cache only saves time: a damaged entry is as good as none, and a directory that cannot be read or written is silently no cache.
Entries are written whole, under another name, and renamed, so that a reader never sees half of one; they carry a checksum. PoCL keeps
what it compiles itself: pocl_cache.py.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tilelang.options import user_directory

_MAGIC = b"tilelang binary 1\n"
_MOST_ENTRIES = 4096


def key(parts: Iterable[str]) -> str:
    """The name of an entry: a hash of texts, with their borders."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(f"{len(data)}:".encode() + data)
    return digest.hexdigest()


class BinaryCache:
    """A directory of entries. `directory` None: the user's cache directory; "": no cache."""

    def __init__(self, directory: str | None = None) -> None:
        if directory is None:
            directory = os.path.join(user_directory("cache"), "binaries")
        self.directory = Path(directory) if directory else None

    def _path(self, name: str) -> Path | None:
        return None if self.directory is None else self.directory / name[:2] / name

    def get(self, name: str) -> bytes | None:
        """The entry's bytes; None where there is none that is whole."""
        path = self._path(name)
        if path is None:
            return None
        try:
            data = path.read_bytes()
        except OSError:
            return None
        checksum, body = data[len(_MAGIC) : len(_MAGIC) + 32], data[len(_MAGIC) + 32 :]
        if not data.startswith(_MAGIC) or hashlib.sha256(body).digest() != checksum:
            self.drop(name)
            return None
        return body

    def put(self, name: str, body: bytes) -> bool:
        """Keeps an entry; tells whether it could."""
        path = self._path(name)
        if path is None:
            return False
        temporary = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(body).digest() + body)
            os.replace(temporary, path)
        except OSError:
            if temporary is not None:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
            return False
        self._prune()
        return True

    def drop(self, name: str) -> None:
        """Forgets an entry."""
        path = self._path(name)
        if path is not None:
            with contextlib.suppress(OSError):
                path.unlink()

    def _prune(self) -> None:
        """Drops the older half of the entries when there are too many."""
        if self.directory is None:
            return
        try:
            entries = [e for folder in os.scandir(self.directory) if folder.is_dir() for e in os.scandir(folder.path)]
            if len(entries) <= _MOST_ENTRIES:
                return
            entries.sort(key=lambda e: e.stat().st_mtime)
        except OSError:
            return
        for entry in entries[: len(entries) // 2]:
            with contextlib.suppress(OSError):
                os.unlink(entry.path)
