"""All options of the package in one frozen dataclass, and the environment variables that set them.

This is the only module that reads `os.environ`; `tests/test_layers.py` enforces that. An option given in Python takes precedence over
the environment, and the environment over the default. An unknown `TILELANG_...` variable is an error.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import stat
from collections.abc import Callable, Mapping
from typing import Any, Self

from tilelang.errors import TileLangError, is_path

PREFIX = "TILELANG_"
CHECKS = ("simulate",)
MOST_COUNT = 2**31 - 1


def _truth(text: str) -> bool:
    value = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False, "": False}
    return value[text.strip().lower()]


def _text(text: str) -> str | None:
    return text or None


def _count(text: str) -> int | None:
    count = int(text) if text.strip() else None
    if count is not None and not 1 <= count <= MOST_COUNT:
        raise ValueError(text)
    return count


def _check(text: str) -> str | None:
    if text not in ("", *CHECKS):
        raise ValueError(text)
    return text or None


def _knob(name: str, default: Any, read: Callable[[str], Any]) -> Any:
    return dataclasses.field(default=default, metadata={"environment": PREFIX + name, "read": read})


_VALUES = {  # by reader: the type of a value, and descriptions of how to set it in Python and in the environment
    _truth: (bool, "True or False", "1 or 0"),
    _count: (int, "a whole number from 1 to 2147483647, or None", "a whole number from 1 to 2147483647"),
    _text: (str, "a string, or None", "a string"),
    _check: (str, '"simulate", or None', "simulate"),
    str: (str, "a string, or None", "a string"),
}


@dataclasses.dataclass(frozen=True)
class Options:
    """How to compile and run."""

    verify: bool = _knob("VERIFY", False, _truth)  # check the kernel IR after every pass
    dump: str | None = _knob("DUMP", None, _text)  # a directory that receives every stage of a compilation, with times
    # "pass:NAME" prints the changes of one pass, "guards" why each guard is kept or dropped
    debug: str | None = _knob("DEBUG", None, _text)
    # for binaries (None: the user's cache directory; "": no cache); for PoCL's, only from the environment
    cache_dir: str | None = _knob("CACHE_DIR", None, str)
    platform: str | None = _knob("PLATFORM", None, _text)  # part of the platform's name, and of the device's
    device: str | None = _knob("DEVICE", None, _text)
    target: str | None = _knob("TARGET", None, _text)  # a dialect
    profile: str | None = _knob("PROFILE", None, _text)  # a shipped profile's name, or a path
    # before a launch, check that integers in NumPy arrays used as indices are in the declared range
    check_ranges: bool = _knob("CHECK_RANGES", True, _truth)
    # the file of the best schedules found (None: a file in cache_dir; "": none)
    database: str | None = _knob("DATABASE", None, str)
    # comma-separated rules that drop no candidate schedule (see docs/autoscheduler.md)
    without_rules: str | None = _knob("WITHOUT_RULES", None, _text)
    # on the CPU, threads spin briefly for the next launch before they sleep; only from the environment
    active_wait: bool = _knob("ACTIVE_WAIT", True, _truth)
    # the compiler for CPU kernels (None: the wheel's); only from the environment
    clang: str | None = _knob("CLANG", None, _text)
    # of a CPU kernel (None: one per core that the process may use); only from the environment
    threads: int | None = _knob("THREADS", None, _count)
    # "simulate": simulate each compiled schedule at small sizes and refuse it if that finds a fault
    check: str | None = _knob("CHECK", None, _check)
    check_seconds: int | None = _knob("CHECK_SECONDS", 30, _count)  # the time limit of that for one kernel

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value, (kind, words, _) = getattr(self, field.name), _VALUES[field.metadata["read"]]
            number = kind is int and isinstance(value, int) and (isinstance(value, bool) or not 1 <= value <= MOST_COUNT)
            unknown = field.name == "check" and isinstance(value, str) and value not in CHECKS
            unheld = isinstance(value, str) and not is_path(value)
            if number or unknown or unheld or (not isinstance(value, kind) and value is not field.default):
                raise TileLangError("option-value", f"{field.name}={value!r} is not a valid value", help=f"use {words}")
        if self.debug and self.debug != "guards" and not self.debug.startswith("pass:"):
            message = f"debug={self.debug!r} does not name a pass"
            raise TileLangError(
                "option-value", message, help='use debug="pass:unroll" or TILELANG_DEBUG=pass:unroll, or "guards"'
            )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Self:
        """The options from the environment (default: this process's), with defaults for the rest.

        Raises TileLangError for an unknown `TILELANG_...` variable, or a value that cannot be parsed.

        >>> Options.from_environment({"TILELANG_VERIFY": "1"}).verify
        True
        """
        source = os.environ if environment is None else environment
        by_name = {f.metadata["environment"]: f for f in dataclasses.fields(cls)}
        found: dict[str, Any] = {}
        for name in sorted(n for n in source if n.startswith(PREFIX)):
            if name not in by_name:
                import difflib  # late: only for the text of an error

                near = difflib.get_close_matches(name, by_name, 1)
                help = f"did you mean {near[0]}?" if near else "use one of " + ", ".join(sorted(by_name))
                raise TileLangError("unknown-option", f"the environment sets {name}, which is not an option", help=help)
            field = by_name[name]
            try:
                found[field.name] = field.metadata["read"](source[name])
            except (KeyError, ValueError):
                words = _VALUES[field.metadata["read"]][2]
                raise TileLangError("option-value", f"{name}={source[name]!r} is not {words}", help=f"{name}={words}") from None
        return cls(**found)

    def replace(self, **changes: Any) -> Self:
        """A copy with changed options; None keeps an option."""
        return dataclasses.replace(self, **{k: v for k, v in changes.items() if v is not None})


def user_directory(kind: str, name: str | None = "tilelang-rtile") -> str:
    """The user's directory for "cache" or "data", of this package or, without a name, of all programs.

    If the home directory is unknown (a numeric user without a name and without HOME), returns a directory in which nothing can exist.
    """
    import platformdirs  # late: slow to import, seldom needed

    try:
        if kind == "cache":
            return platformdirs.user_cache_dir(name, appauthor=False)
        return platformdirs.user_data_dir(name, appauthor=False)
    except RuntimeError:
        return os.devnull


def why_unsafe(status: os.stat_result) -> str | None:
    """The reason why other users may have written a directory or file, judged by its status. None if they cannot, and on Windows, where
    a user's folders are not open to others. A sticky directory such as /tmp counts as writable by others."""
    if os.name != "posix":
        return None
    if status.st_uid not in (os.geteuid(), 0):  # root can write anywhere
        return f"it belongs to the user with the number {status.st_uid}"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others may write to it (its mode is {stat.S_IMODE(status.st_mode):o})"
    return None


_told: set[str] = set()  # directories that have been logged


def is_private(directory: str | os.PathLike[str]) -> bool:
    """Whether only the user can write to a directory in which things are kept, or it cannot be read; if not, logs it once."""
    try:
        why = why_unsafe(os.stat(directory))
    except OSError:
        return True
    if why is not None and str(directory) not in _told:
        _told.add(str(directory))
        message = (
            "nothing is kept in %s: %s, and could have others' code run; chmod go-w it, or delete it, or set TILELANG_CACHE_DIR"
        )
        logging.getLogger("tilelang").warning(message + " to a directory of your own", directory, why)
    return why is None


def prepare_opencl() -> None:
    """Configures the caches of pyopencl and PoCL before pyopencl is imported, unless the user's environment does so.

    pyopencl caches nothing, because its caches are pickles, which run code when they are read. PoCL's own cache is placed in cache_dir.
    """
    os.environ.setdefault("PYOPENCL_NO_CACHE", "1")
    own = Options.from_environment().cache_dir
    if own == "":
        os.environ.setdefault("POCL_KERNEL_CACHE", "0")
    elif own is not None:
        os.environ.setdefault("POCL_CACHE_DIR", os.path.join(own, "pocl"))
