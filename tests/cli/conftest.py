"""A file with schedules that are right, plain and wrong."""

from pathlib import Path

import pytest

from tests.cli.commands import GEMM


@pytest.fixture
def gemm(tmp_path: Path) -> str:
    path = tmp_path / "gemm.tile"
    path.write_text(GEMM)
    return str(path)
