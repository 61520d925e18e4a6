"""Options: each knob has a name in the environment, and a wrong name is an error."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tilelang.errors import TileLangError
from tilelang.options import Options, prepare_opencl

ROOT = Path(__file__).resolve().parent.parent


def test_defaults_and_environment() -> None:
    assert Options.from_environment({"PATH": "/bin"}) == Options()
    found = Options.from_environment(
        {"TILELANG_VERIFY": "1", "TILELANG_DUMP": "out", "TILELANG_CACHE_DIR": "", "TILELANG_PROFILE": ""}
    )
    assert (found.verify, found.dump, found.cache_dir, found.profile) == (True, "out", "", None)
    assert found.replace(verify=None, device="gpu") == Options(verify=True, dump="out", cache_dir="", device="gpu")


def test_unknown_names_are_refused() -> None:
    with pytest.raises(TileLangError) as caught:
        Options.from_environment({"TILELANG_VERFY": "1"})
    assert (caught.value.code, caught.value.help) == ("unknown-option", "did you mean TILELANG_VERIFY?")
    with pytest.raises(TileLangError) as caught:
        Options.from_environment({"TILELANG_VERIFY": "maybe"})
    assert caught.value.code == "option-value"


@pytest.mark.parametrize("debug", ["everything", "pass", True])
def test_values_of_another_kind_are_refused(debug: object) -> None:
    with pytest.raises(TileLangError) as caught:
        Options(debug=debug)  # type: ignore[arg-type]
    assert caught.value.code == "option-value"


@pytest.mark.parametrize("count", [0, 2**31, 10**20])
def test_counts_are_such_that_a_system_can_have(count: int) -> None:
    refusal = pytest.raises(TileLangError, match="a whole number from 1 to 2147483647")
    with refusal:
        Options(threads=count)
    with refusal:
        Options.from_environment({"TILELANG_THREADS": str(count)})


# ---------------------------------------------------------------- where compiled kernels are kept


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No variable set that says where; what the code sets is undone."""
    for name in ("POCL_CACHE_DIR", "POCL_KERNEL_CACHE", "PYOPENCL_NO_CACHE", "TILELANG_CACHE_DIR"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return monkeypatch


def test_pyopencl_keeps_nothing_and_pocl_where_the_user_says(tmp_path: Path, environment: pytest.MonkeyPatch) -> None:
    prepare_opencl()
    assert os.environ["PYOPENCL_NO_CACHE"] == "1" and not {"POCL_CACHE_DIR", "POCL_KERNEL_CACHE"} & set(os.environ)
    environment.setenv("TILELANG_CACHE_DIR", "")
    prepare_opencl()
    assert os.environ["POCL_KERNEL_CACHE"] == "0" and "POCL_CACHE_DIR" not in os.environ
    environment.setenv("TILELANG_CACHE_DIR", str(tmp_path))
    prepare_opencl()
    assert os.environ["POCL_CACHE_DIR"] == str(tmp_path / "pocl")


def test_the_users_own_choice_is_kept(environment: pytest.MonkeyPatch) -> None:
    chosen = {"PYOPENCL_NO_CACHE": "0", "POCL_CACHE_DIR": "/mine", "POCL_KERNEL_CACHE": "1"}
    for name, value in chosen.items():
        environment.setenv(name, value)
    for place in ("", "/ours"):
        environment.setenv("TILELANG_CACHE_DIR", place)
        prepare_opencl()
        assert {name: os.environ[name] for name in chosen} == chosen


CALL = """
import numpy as np, tilelang as tl
i = tl.axes(i=4)
try:
    print(tl.compile(tl.define("Y", tl.input("X", tl.float32, i)[i] * 2, i))(np.ones(4, np.float32)).sum())
except tl.DeviceError as error:
    print(error.code)
"""


def python(code: str, **environment: str) -> str:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("POCL_", "PYOPENCL_", "TILELANG_"))}
    given = {**clean, "PYTHONPATH": str(ROOT), **environment}
    done = subprocess.run(
        [sys.executable, "-c", code], env=given, capture_output=True, text=True, timeout=120, cwd=environment["HOME"]
    )
    return done.stdout.strip() if done.returncode == 0 else done.stderr


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def test_a_home_that_cannot_be_written_is_no_matter(home: Path, tmp_path: Path) -> None:
    (home / ".cache").write_text("")
    assert python(CALL, HOME=str(home), XDG_CACHE_HOME="", POCL_CACHE_DIR=str(tmp_path / "pocl")) == "8.0"


def test_a_user_whom_nobody_knows_needs_no_home(home: Path, tmp_path: Path) -> None:
    """A number without a name, as containers run with, and no HOME: nothing is kept, and nothing is left where the process stands."""
    nobody = "import os, pwd\ndel os.environ['HOME'], pwd.getpwuid\npwd.getpwuid = {}.__getitem__\n"
    nowhere = {"XDG_CACHE_HOME": "", "XDG_DATA_HOME": "", "POCL_CACHE_DIR": str(tmp_path / "pocl")}
    told = python(nobody + CALL + "print(os.listdir())", HOME=str(home), **nowhere)
    assert told.splitlines() == ["8.0", "[]"]
