"""The package's version, and versions of its source, which distinguish cached results from those of other versions."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
from collections.abc import Iterator

VERSION = "0.1.0"  # of the package: pyproject.toml reads it

SUFFIXES = (".py", ".toml", ".c", ".h")


@functools.cache
def source_digest(*packages: str, without: tuple[str, ...] = ()) -> str:
    """A digest of every source file of some packages, since a changed source may compute different results. without: excluded folders.

    >>> source_digest("tilelang.core") == source_digest("tilelang.core"), len(source_digest("tilelang.core"))
    (True, 12)
    """
    digest = hashlib.sha256()
    for file in _source_files(packages, without):
        with open(file.path, "rb") as opened:
            digest.update(file.name.encode() + opened.read())
    return digest.hexdigest()[:12]


@functools.cache
def source_stamp(*packages: str) -> str:
    """Like `source_digest`, but of the sizes and times of the files: faster, and different after each installation.

    >>> source_stamp("tilelang.core") != source_stamp("tilelang.semantics"), len(source_stamp("tilelang.core"))
    (True, 12)
    """
    digest = hashlib.sha256()
    for file in _source_files(packages, ()):
        facts = file.stat()
        digest.update(f"{file.path} {facts.st_size} {facts.st_mtime_ns} {facts.st_ctime_ns};".encode())
    return digest.hexdigest()[:12]


def _source_files(packages: tuple[str, ...], without: tuple[str, ...]) -> Iterator[os.DirEntry[str]]:
    """The source files of some packages and of the folders below them, in a fixed order."""
    folders = [folder for name in packages for folder in _folders(name)]
    for folder in folders:
        for entry in sorted(os.scandir(folder), key=lambda e: e.name):
            if entry.name.endswith(SUFFIXES):
                yield entry
            elif entry.is_dir() and entry.name not in ("__pycache__", *without):
                folders.append(entry.path)


def _folders(package: str) -> tuple[str, ...]:
    """The folders of a package, which is not imported."""
    found = importlib.util.find_spec(package)
    return tuple(found.submodule_search_locations or ()) if found is not None else ()
