"""Loads shared libraries from bytes into this process.

On Linux the bytes are put in a memory file, which works wherever the process may execute code at all, even if all writable file systems
are mounted noexec. On other systems, and if that fails, they are put in a file in a directory private to the user and deleted as soon
as the system allows. A library stays loaded until `Library.close`, after which its addresses must not be used.
"""

from __future__ import annotations

import atexit
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
        """The address of an exported symbol. Raises DeviceError if the library does not have it."""
        try:
            found = ctypes.cast(getattr(self._handle, symbol), ctypes.c_void_p).value
        except AttributeError:
            found = None
        if not found:
            raise DeviceError(
                "no-such-kernel", f"the library {self.name} exports no {symbol}", help="use one of its kernels' names"
            )
        return found

    def close(self) -> None:
        """Unloads the library."""
        handle, self._handle = self._handle, None
        if handle is None:
            return
        import _ctypes  # late: exists on some systems only

        unload = vars(_ctypes).get("dlclose") or vars(_ctypes)["FreeLibrary"]
        unload(handle._handle)
        if self._release is not None:
            self._release()


def load_library(code: bytes, name: str = "kernel") -> Library:
    """Loads a shared library from its bytes.

    Raises DeviceError, with all reasons, if no way of loading works: the bytes are for another architecture, or the process may have
    neither executable memory files nor executable temporary files.
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
    raise DeviceError("cannot-load", message, help="set TMPDIR to a directory on a file system that is not mounted noexec")


def _from_memory(code: bytes, name: str) -> Library | None:
    """Loads through a memory file; None if the system has none. Raises OSError if loading fails."""
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
    """A path to an open file under which no other library was loaded. The loader identifies libraries by their paths, and file numbers
    are reused, so a counter is encoded before the last part, with `/` as 0 and `./` as 1.

    >>> _unique_path(3) != _unique_path(3)
    True
    """
    digits = f"{next(_numbers):b}".replace("1", "./").replace("0", "/")
    return f"/proc/self/fd/{digits}{file}"


def _from_file(code: bytes, name: str) -> Library:
    """Loads through a file in a directory closed to others. Raises OSError if loading fails."""
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
    """Removes a folder when called, or at the end of the process, because Windows does not delete a loaded file."""

    def remove() -> None:
        with contextlib.suppress(OSError):
            shutil.rmtree(folder)
        atexit.unregister(remove)

    atexit.register(remove)
    return remove
