"""Damaged files among the kernels that PoCL keeps on disk, found before it uses them.

PoCL trusts what it finds there: a program whose bitcode was cut short has no kernels, and a cut library aborts the process. An entry is
a directory: `program.bc`, a `last_accessed` that every build touches, and a library for each kernel and launch shape.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Iterator
from pathlib import Path

_SLACK_S = 1.0  # the file system's clock and ours differ


def drop_damaged(directory: str, since: float, bitcode: bool = False) -> None:
    """Forgets the libraries that are not whole in the entries of programs built since a time; bitcode: their bitcode too.

    Only what was written before that time: what others are writing now is theirs. A directory that cannot be read is left as it is.
    """
    for entry in _touched(directory, since - _SLACK_S):
        files = [*entry.glob("*/*/*.so"), *([entry / "program.bc"] if bitcode else [])]
        for file in files:
            with contextlib.suppress(OSError):
                if file.stat().st_mtime < since and not (file.suffix == ".so" and is_whole(file)):
                    file.unlink()


def _touched(directory: str, since: float) -> Iterator[Path]:
    """The entries that were built, or found built, since a time."""
    try:
        groups = [g.path for g in os.scandir(directory) if g.is_dir()]
    except OSError:
        return
    for group in groups:
        with contextlib.suppress(OSError):
            for entry in os.scandir(group):
                with contextlib.suppress(OSError):
                    if os.stat(os.path.join(entry.path, "last_accessed")).st_mtime >= since:
                        yield Path(entry.path)


def is_whole(library: Path) -> bool:
    """Whether a library has all the bytes that its header tells of; True for one of another format than 64-bit ELF."""
    with library.open("rb") as file:
        head, size = file.read(64), os.fstat(file.fileno()).st_size
    if len(head) == 64 and head[:5] != b"\x7fELF\x02":
        return bool(head.strip(b"\0"))
    if len(head) < 64:
        return False
    order = "<" if head[5] == 1 else ">"
    (sections,) = struct.unpack_from(order + "Q", head, 40)  # they stand at the end
    each, count = struct.unpack_from(order + "HH", head, 58)
    return bool(size >= sections + each * count)
