"""The package map and the links say the same, and nothing on disk is left out of an install."""

import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import tilelang as tl

ROOT = Path(__file__).resolve().parent.parent


def setuptools_table() -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    return table


def test_every_package_on_disk_is_listed() -> None:
    table = setuptools_table()
    on_disk = set()
    for name, folder in table["package-dir"].items():
        for init in (ROOT / folder).rglob("__init__.py"):
            inside = init.parent.relative_to(ROOT / folder).parts
            on_disk.add(".".join((name, *inside)))
    assert on_disk == set(table["packages"])


def test_links_lead_where_the_map_says() -> None:
    for name, folder in setuptools_table()["package-dir"].items():
        if "." in name:
            link = ROOT / "tilelang" / name.split(".")[1]
            assert link.is_symlink(), f"{link} is not a link (a checkout without links: type checking sees nothing of {folder})"
            assert link.readlink() == Path("..") / folder
            assert link.resolve() == (ROOT / folder).resolve()


def test_data_files_are_shipped() -> None:
    table = setuptools_table()
    shipped = set()
    for name, patterns in table["package-data"].items():
        base = ROOT / table["package-dir"][name]
        shipped |= {path.resolve() for pattern in patterns for path in base.glob(pattern)}
    data = {
        path.resolve()
        for folder in table["package-dir"].values()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc") and "__pycache__" not in path.parts
    }
    assert data - shipped == set()


@pytest.mark.parametrize("folder", ["grammar", "lowering", "autoschedule"])
def test_the_root_folders_refuse_a_second_name(folder: str) -> None:
    run = subprocess.run([sys.executable, "-c", f"import {folder}"], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 1
    assert f"ImportError: import tilelang.{folder}" in run.stderr


def test_readme_has_one_command_to_run_and_one_to_test() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for kind, must in (("demo", "python -m tilelang.demo"), ("test", "python -m pytest")):
        commands = re.findall(rf"<!-- {kind} command -->\n```sh\n(.*?)\n```", readme, re.S)
        assert len(commands) == 1
        assert must in commands[0]
        assert "\n" not in commands[0]


def test_readme_lists_every_environment_name() -> None:
    import dataclasses

    from tilelang.options import Options

    named = set(re.findall(r"`(TILELANG_[A-Z_]+)", (ROOT / "README.md").read_text(encoding="utf-8")))
    assert named == {field.metadata["environment"] for field in dataclasses.fields(Options)}


def test_the_package_says_its_version() -> None:
    """The version of the source is the one that pip installs."""
    assert tl.__version__ == importlib.metadata.version("tilelang-rtile")


def test_import_is_fast_and_light() -> None:
    """`import tilelang` loads neither NumPy nor OpenCL: heavy parts load on first use."""
    code = "import sys, tilelang; print(*sorted({'numpy', 'pyopencl', 'ml_dtypes', 'torch'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""
