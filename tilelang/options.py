"""Every knob of the package in one frozen value, and the environment names that set it.

This is the only module that reads `os.environ`; `tests/test_layers.py` keeps it so. An option given in Python wins over the
environment, the environment over the default. An unknown `TILELANG_...` name in the environment is an error, not silence.
"""

from __future__ import annotations

import dataclasses
import os
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


_VALUES = {  # of what a knob may be, by how it is read: a type, and in words how it is set in Python and in the environment
    _truth: (bool, "True or False", "1 or 0"),
    _count: (int, "a whole number from 1 to 2147483647, or None", "a whole number from 1 to 2147483647"),
    _text: (str, "a string, or None", "a string"),
    _check: (str, '"simulate", or None', "simulate"),
    str: (str, "a string, or None", "a string"),
}


@dataclasses.dataclass(frozen=True)
class Options:
    """How to compile and run.

    verify: check the kernel IR after every pass. dump: a directory that receives every stage of a compilation, with times. debug:
    "pass:NAME" prints what one pass changed, "guards" why each guard stands or not. cache_dir: where binaries are kept (None: the
    user's cache directory; "": no cache); PoCL's, from the environment alone. platform, device: a part of the name of the platform
    and device. target: the dialect that is lowered to. profile: a shipped profile's name or a path. check_ranges: before a launch,
    look whether the integers of NumPy arrays that may index keep the range that their input states. database: the file of the best
    schedules that were found (None: a file in cache_dir; "": none). without_rules: rules by which no candidate schedule is dropped,
    with commas between their names (docs/autoscheduler.md has them). active_wait: on the processor, threads look for the next
    launch for a short while before they sleep; from the environment alone. clang: the compiler of kernels for the processor (None:
    the wheel's), and threads: how many threads such a kernel uses (None: one for each core that the process may use); both from the
    environment alone. check: "simulate" runs each schedule that is compiled in the simulator, at small sizes, and refuses it where
    that finds a fault; check_seconds: how long that may take for one kernel, at most.
    """

    verify: bool = _knob("VERIFY", False, _truth)
    dump: str | None = _knob("DUMP", None, _text)
    debug: str | None = _knob("DEBUG", None, _text)
    cache_dir: str | None = _knob("CACHE_DIR", None, str)
    platform: str | None = _knob("PLATFORM", None, _text)
    device: str | None = _knob("DEVICE", None, _text)
    target: str | None = _knob("TARGET", None, _text)
    profile: str | None = _knob("PROFILE", None, _text)
    check_ranges: bool = _knob("CHECK_RANGES", True, _truth)
    database: str | None = _knob("DATABASE", None, str)
    without_rules: str | None = _knob("WITHOUT_RULES", None, _text)
    active_wait: bool = _knob("ACTIVE_WAIT", True, _truth)
    clang: str | None = _knob("CLANG", None, _text)
    threads: int | None = _knob("THREADS", None, _count)
    check: str | None = _knob("CHECK", None, _check)
    check_seconds: int | None = _knob("CHECK_SECONDS", 30, _count)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value, (kind, words, _) = getattr(self, field.name), _VALUES[field.metadata["read"]]
            number = kind is int and isinstance(value, int) and (isinstance(value, bool) or not 1 <= value <= MOST_COUNT)
            unknown = field.name == "check" and isinstance(value, str) and value not in CHECKS
            unheld = isinstance(value, str) and not is_path(value)
            if number or unknown or unheld or (not isinstance(value, kind) and value is not field.default):
                raise TileLangError("option-value", f"{field.name}={value!r} is not a valid value", mend=f"use {words}")
        if self.debug and self.debug != "guards" and not self.debug.startswith("pass:"):
            message = f"debug={self.debug!r} does not name a pass"
            raise TileLangError(
                "option-value", message, mend='use debug="pass:unroll" or TILELANG_DEBUG=pass:unroll, or "guards"'
            )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Self:
        """The options that the environment sets (default: this process's), defaults elsewhere.

        Raises TileLangError for a `TILELANG_...` name that does not exist, or a value that cannot be read.

        >>> Options.from_environment({"TILELANG_VERIFY": "1"}).verify
        True
        """
        source = os.environ if environment is None else environment
        by_name = {f.metadata["environment"]: f for f in dataclasses.fields(cls)}
        found: dict[str, Any] = {}
        for name in sorted(n for n in source if n.startswith(PREFIX)):
            if name not in by_name:
                import difflib

                near = difflib.get_close_matches(name, by_name, 1)
                mend = f"did you mean {near[0]}?" if near else "use one of " + ", ".join(sorted(by_name))
                raise TileLangError("unknown-option", f"the environment sets {name}, which is not an option", mend=mend)
            field = by_name[name]
            try:
                found[field.name] = field.metadata["read"](source[name])
            except (KeyError, ValueError):
                words = _VALUES[field.metadata["read"]][2]
                raise TileLangError("option-value", f"{name}={source[name]!r} is not {words}", mend=f"{name}={words}") from None
        return cls(**found)

    def replace(self, **changes: Any) -> Self:
        """A copy with some options changed; None leaves an option as it is."""
        return dataclasses.replace(self, **{k: v for k, v in changes.items() if v is not None})


def user_directory(kind: str, name: str | None = "tilelang-rtile") -> str:
    """The user's directory for "cache" or "data", of this package or, without a name, of all.

    Where nobody knows the user's home, as of a number without a name and without HOME, it is one in which nothing can be.
    """
    import platformdirs

    try:
        if kind == "cache":
            return platformdirs.user_cache_dir(name, appauthor=False)
        return platformdirs.user_data_dir(name, appauthor=False)
    except RuntimeError:
        return os.devnull


def prepare_opencl() -> None:
    """Sets, before pyopencl is imported, what is kept of compilations, unless the user's environment says so.

    pyopencl keeps nothing: its caches are pickles, which run code when they are read. PoCL's own cache goes where cache_dir says.
    """
    os.environ.setdefault("PYOPENCL_NO_CACHE", "1")
    own = Options.from_environment().cache_dir
    if own == "":
        os.environ.setdefault("POCL_KERNEL_CACHE", "0")
    elif own is not None:
        os.environ.setdefault("POCL_CACHE_DIR", os.path.join(own, "pocl"))
