"""Damaged files among the kernels that PoCL keeps on disk, found before it uses them.

PoCL trusts what it finds there: a program whose bitcode was cut short has no kernels, and a cut library aborts the process. An entry is
a directory: `program.bc`, a `last_accessed` that every build touches, and a library for each kernel and launch shape.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

_SLACK_S = 1.0  # the file system's clock and ours differ


def drop_damaged(directory: str, since: float, bitcode: bool = False) -> None:
    """Forgets the libraries that are not whole in the entries of programs built since a time; bitcode: and the bitcode that is not, or
    all of it where none is cut.

    Only what was written before that time: what others are writing now is theirs. A directory that cannot be read is left as it is.
    """
    entries = list(_touched(directory, since - _SLACK_S))
    for library in (file for entry in entries for file in entry.glob("*/*/*.so")):
        _dropped(library, since, is_whole)
    kept = [entry / "program.bc" for entry in entries] if bitcode else []
    cut = [file for file in kept if _dropped(file, since, is_whole)]
    for file in kept if not cut else []:
        _dropped(file, since, lambda _: False)


def _dropped(file: Path, since: float, is_kept: Callable[[Path], bool]) -> bool:
    """Whether a file was written before a time, is not kept, and so is gone now."""
    with contextlib.suppress(OSError):
        if file.stat().st_mtime < since and not is_kept(file):
            file.unlink()
            return True
    return False


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


def is_whole(file: Path) -> bool:
    """Whether a library or bitcode has all the bytes that it tells of; True for a library of another format than 64-bit ELF."""
    content = file.read_bytes()
    return _bitcode_is_whole(content) if file.suffix == ".bc" else _library_is_whole(content)


def _bitcode_is_whole(content: bytes) -> bool:
    """LLVM's bitcode is four bytes and blocks, each of which begins with its kind and its length in words."""
    at = 4
    while at + 8 <= len(content):
        (words,) = struct.unpack_from("<I", content, at + 4)
        at += 8 + 4 * words
    return content[:4] == b"BC\xc0\xde" and at == len(content)


def _library_is_whole(content: bytes) -> bool:
    head = content[:64]
    if len(head) == 64 and head[:5] != b"\x7fELF\x02":
        return bool(head.strip(b"\0"))
    if len(head) < 64:
        return False
    order = "<" if head[5] == 1 else ">"
    (sections,) = struct.unpack_from(order + "Q", head, 40)  # they stand at the end
    each, count = struct.unpack_from(order + "HH", head, 58)
    return bool(len(content) >= sections + each * count)
