"""An on-disk cache of compiled binaries, keyed by a hash of all inputs of the compilation.

The cache only saves time: a damaged entry counts as missing, and without access to the directory nothing is cached, silently.
Entries are written completely under another name and then renamed, so that readers never see half of one; a checksum covers their bytes
and their name. Their bytes are executed, so nothing is read from a directory or file that another user can write; a log message says
what to do about it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tilelang.options import is_private, user_directory, why_unsafe

_MAGIC = b"tilelang binary 2\n"
_MOST_ENTRIES = 4096
_FOLDERS = 256  # named by the first two hexadecimal digits of their entries


def key(parts: Iterable[str]) -> str:
    """The name of an entry: a hash of texts and of the boundaries between them."""
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
        """The entry's bytes, or None if there is no intact one."""
        path = self._path(name)
        if path is None or not self._is_safe(path.parent):
            return None
        try:
            with path.open("rb") as file:
                if why_unsafe(os.fstat(file.fileno())) is not None:
                    return None
                data = file.read()
        except OSError:
            return None
        checksum, body = data[len(_MAGIC) : len(_MAGIC) + 32], data[len(_MAGIC) + 32 :]
        if not data.startswith(_MAGIC) or _checksum(name, body) != checksum:
            self.drop(name)
            return None
        return body

    def _is_safe(self, folder: Path) -> bool:
        """Whether only the user can write to the cache and this folder; if not, logs it once."""
        return all(is_private(one) for one in (self.directory, folder) if one is not None)

    def put(self, name: str, body: bytes) -> bool:
        """Stores an entry; returns whether that succeeded."""
        path = self._path(name)
        if path is None or self.directory is None:
            return False
        temporary = None
        try:
            self.directory.parent.mkdir(parents=True, exist_ok=True)
            for folder in (self.directory, path.parent):
                folder.mkdir(mode=0o700, exist_ok=True)
            if not self._is_safe(path.parent):
                return False
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + _checksum(name, body) + body)
            os.replace(temporary, path)
        except OSError:
            if temporary is not None:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
            return False
        self._prune(path.parent)
        return True

    def drop(self, name: str) -> None:
        """Removes an entry."""
        path = self._path(name)
        if path is not None:
            with contextlib.suppress(OSError):
                path.unlink()

    def _prune(self, folder: Path) -> None:
        """Removes the older half of the entries if there are too many. They are counted when one folder exceeds its share."""
        try:
            if self.directory is None or len(os.listdir(folder)) <= _MOST_ENTRIES // _FOLDERS:
                return
            entries = [e for folder in os.scandir(self.directory) if _is_ours(folder) for e in os.scandir(folder.path)]
            if len(entries) <= _MOST_ENTRIES:
                return
            entries.sort(key=lambda e: e.stat().st_mtime)
        except OSError:
            return
        for entry in entries[: len(entries) // 2]:
            with contextlib.suppress(OSError):
                os.unlink(entry.path)


def _checksum(name: str, body: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\n" + body).digest()


def _is_ours(folder: os.DirEntry[str]) -> bool:
    """Whether a folder holds entries; the directory may contain other folders."""
    return folder.is_dir() and len(folder.name) == 2
