"""Every knob of the package in one frozen value, and the environment names that set it.

This is the only module that reads `os.environ`; `tests/test_layers.py` keeps it so. An option given in Python wins over the
environment, the environment over the default. An unknown `TILELANG_...` name in the environment is an error, not silence.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from typing import Any, Self

from tilelang.errors import TileLangError

PREFIX = "TILELANG_"


def _truth(text: str) -> bool:
    value = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False, "": False}
    return value[text.strip().lower()]


def _knob(name: str, default: Any, read: Callable[[str], Any]) -> Any:
    return dataclasses.field(default=default, metadata={"environment": PREFIX + name, "read": read})


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """How to compile and run.

    verify: check the kernel IR after every pass. dump: a directory that receives every stage of a compilation, with times.
    debug: "pass:NAME" prints what one pass changed. cache_dir: where binaries are kept (None: the user's cache directory; "": no
    cache). platform, device: a part of the name of the OpenCL platform and device. profile: a shipped profile's name or a path.
    """

    verify: bool = _knob("VERIFY", False, _truth)
    dump: str | None = _knob("DUMP", None, str)
    debug: str | None = _knob("DEBUG", None, str)
    cache_dir: str | None = _knob("CACHE_DIR", None, str)
    platform: str | None = _knob("PLATFORM", None, str)
    device: str | None = _knob("DEVICE", None, str)
    profile: str | None = _knob("PROFILE", None, str)

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
                mend = f"did you mean {near[0]}?" if near else "one of " + ", ".join(sorted(by_name))
                raise TileLangError("unknown-option", f"the environment sets {name}, which is no option", mend=mend)
            field = by_name[name]
            try:
                found[field.name] = field.metadata["read"](source[name])
            except KeyError:
                raise TileLangError(
                    "option-value", f"{name}={source[name]!r} is neither 1 nor 0", mend=f"{name}=1 or {name}=0"
                ) from None
        return cls(**found)

    def replace(self, **changes: Any) -> Self:
        """A copy with some options changed; None leaves an option as it is."""
        return dataclasses.replace(self, **{k: v for k, v in changes.items() if v is not None})


def prepare_pocl() -> None:
    """A directory that PoCL can write: it finds no device where its own cache, under the home directory, cannot be made.

    Where POCL_CACHE_DIR is set, or the usual place can be written, nothing changes; else a temporary directory is taken.
    """
    if "POCL_CACHE_DIR" in os.environ:
        return
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    usual = os.path.join(base, "pocl", "kcache")
    try:
        os.makedirs(usual, exist_ok=True)
    except OSError:
        pass
    if not os.access(usual, os.W_OK):
        import tempfile

        os.environ["POCL_CACHE_DIR"] = tempfile.mkdtemp(prefix="tilelang-pocl-")
