"""Versions of the package's own source, by which cached results are told from those of other versions."""

from __future__ import annotations

import functools
import hashlib
import importlib.resources

SUFFIXES = (".py", ".toml", ".c", ".h")


@functools.cache
def source_digest(*packages: str, without: tuple[str, ...] = ()) -> str:
    """A digest of every source file of some packages, since a changed source may compute different results. without: excluded folders.

    >>> source_digest("tilelang.core") == source_digest("tilelang.core"), len(source_digest("tilelang.core"))
    (True, 12)
    """
    digest = hashlib.sha256()
    folders = [importlib.resources.files(name) for name in packages]
    for folder in folders:
        for file in sorted(folder.iterdir(), key=lambda f: f.name):
            if file.name.endswith(SUFFIXES):
                digest.update(file.name.encode() + file.read_bytes())
            elif file.is_dir() and file.name not in ("__pycache__", *without):
                folders.append(file)
    return digest.hexdigest()[:12]
