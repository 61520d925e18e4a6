"""These tests are of a GPU: they are collected where TILELANG_TARGET, or --emulated, names one."""

import os
from pathlib import Path


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leaves the tests of this folder out elsewhere."""
    wanted = os.environ.get("TILELANG_TARGET") in ("cuda", "hip")
    return None if wanted or not collection_path.name.startswith("test_") else True
