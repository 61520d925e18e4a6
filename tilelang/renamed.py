"""Names that have moved to another module: the old ones work for one release, with a DeprecationWarning."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def moved(module: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a module some of whose names have moved. homes: the module in which each of them is now.

    >>> from tilelang import machine
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     names = machine.shipped_profiles()
    >>> print(said[0].message)
    tilelang.machine.shipped_profiles is deprecated: use tilelang.profile_files.shipped_profiles
    """

    def attribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        message = f"{module}.{name} is deprecated: use {homes[name]}.{name}"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return getattr(importlib.import_module(homes[name]), name)

    return attribute
