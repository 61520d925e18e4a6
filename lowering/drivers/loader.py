"""Shared libraries from bytes into this process.

On Linux the bytes are in a file in memory, which loads wherever the process may execute anything, also where all file systems that can
be written are mounted noexec. Elsewhere, and where that fails, they are in a file of a directory that is private to the user, which is
deleted as soon as the system allows. A loaded library stays until `Library.close`, after which its addresses must not be used.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tilelang.errors import DeviceError

_numbers = itertools.count()


class Library:
    """A loaded library. name: for debuggers and error messages."""

    def __init__(self, name: str, handle: Any, release: Callable[[], None] | None = None) -> None:
        self.name, self._handle, self._release = name, handle, release

    def address(self, symbol: str) -> int:
        """Where an exported symbol is. Raises DeviceError where the library has none of that name."""
        try:
            found = ctypes.cast(getattr(self._handle, symbol), ctypes.c_void_p).value
        except AttributeError:
            found = None
        if not found:
            raise DeviceError(
                "no-such-kernel", f"the library {self.name} exports no {symbol}", mend="use one of its kernels' names"
            )
        return found

    def close(self) -> None:
        """Unloads the library."""
        handle, self._handle = self._handle, None
        if handle is None:
            return
        import _ctypes

        unload = vars(_ctypes).get("dlclose") or vars(_ctypes)["FreeLibrary"]
        unload(handle._handle)
        if self._release is not None:
            self._release()


def load_library(code: bytes, name: str = "kernel") -> Library:
    """Loads a shared library from its bytes.

    Raises DeviceError where the system loads it from no place, with each reason: bytes of another architecture, or a process that may
    neither have executable files in memory nor executable temporary files.
    """
    reasons = []
    for load in (_from_memory, _from_file):
        try:
            found = load(code, name)
        except OSError as error:
            reasons.append(f"{'memory' if load is _from_memory else 'a temporary file'}: {error}")
            continue
        if found is not None:
            return found
    message = f"the compiled library {name} cannot be loaded from " + "; from ".join(reasons)
    raise DeviceError("cannot-load", message, mend="set TMPDIR to a directory on a file system that is not mounted noexec")


def _from_memory(code: bytes, name: str) -> Library | None:
    """Through a file in memory; None where the system has no such files. Raises OSError where it does not load."""
    create = getattr(os, "memfd_create", None)
    if create is None:
        return None
    file = create(name[:100], os.MFD_CLOEXEC)
    try:
        with open(file, "wb", closefd=False) as stream:
            stream.write(code)
        return Library(name, ctypes.CDLL(_unique_path(file)))
    finally:
        os.close(file)


def _unique_path(file: int) -> str:
    """A path to an open file that no other library was loaded by: the loader takes equal paths for the same library, and numbers of
    files are used again. Between the last two parts stands a number in which `/` is 0 and `./` is 1.

    >>> _unique_path(3) != _unique_path(3)
    True
    """
    digits = f"{next(_numbers):b}".replace("1", "./").replace("0", "/")
    return f"/proc/self/fd/{digits}{file}"


def _from_file(code: bytes, name: str) -> Library:
    """Through a file in a directory that others cannot enter. Raises OSError where it does not load."""
    folder = tempfile.mkdtemp(prefix="tilelang-")  # of mode 0700
    path = Path(folder) / {"win32": "kernel.dll", "darwin": "kernel.dylib"}.get(sys.platform, "kernel.so")
    try:
        path.write_bytes(code)
        handle = ctypes.CDLL(str(path))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    if sys.platform != "win32":
        shutil.rmtree(folder, ignore_errors=True)
        return Library(name, handle)
    return Library(name, handle, _removal(folder))


def _removal(folder: str) -> Callable[[], None]:
    """Removes a folder when called, or when the process ends: Windows does not delete a file that is loaded."""
    import atexit

    def remove() -> None:
        with contextlib.suppress(OSError):
            shutil.rmtree(folder)
        atexit.unregister(remove)

    atexit.register(remove)
    return remove
