"""Options: each knob has a name in the environment, and a wrong name is an error."""

import os
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from tilelang import options
from tilelang.errors import DeviceError, TileLangError
from tilelang.options import Options, check_pocl_cache, prepare_opencl, why_unusable

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
    assert (caught.value.code, caught.value.mend) == ("unknown-option", "did you mean TILELANG_VERIFY?")
    with pytest.raises(TileLangError) as caught:
        Options.from_environment({"TILELANG_VERIFY": "maybe"})
    assert caught.value.code == "option-value"


@pytest.mark.parametrize("debug", ["everything", "pass", True])
def test_values_of_another_kind_are_refused(debug: object) -> None:
    with pytest.raises(TileLangError) as caught:
        Options(debug=debug)  # type: ignore[arg-type]
    assert caught.value.code == "option-value"


# ---------------------------------------------------------------- where compiled kernels are kept


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No variable set that says where; what the code sets is undone."""
    for name in ("POCL_CACHE_DIR", "POCL_KERNEL_CACHE", "PYOPENCL_NO_CACHE", "TILELANG_CACHE_DIR"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return monkeypatch


def test_a_directory_is_made_and_others_say_why_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert why_unusable(str(tmp_path / "new" / "one")) is None and (tmp_path / "new" / "one").is_dir()
    (tmp_path / "file").write_text("")
    assert why_unusable(str(tmp_path / "file")) == f"{tmp_path / 'file'}: File exists"
    assert why_unusable(str(tmp_path / "file" / "below")) == f"{tmp_path / 'file' / 'below'}: Not a directory"
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1 << 40, 1 << 40, 3 << 10))
    assert why_unusable(str(tmp_path)) == f"{tmp_path}: 3 KiB are free"


def test_the_first_place_with_room_is_taken(tmp_path: Path, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("TILELANG_CACHE_DIR", str(tmp_path / "own"))
    environment.setenv("XDG_CACHE_HOME", str(tmp_path / "users"))
    prepare_opencl()
    assert os.environ["POCL_CACHE_DIR"] == str(tmp_path / "own" / "pocl")
    assert "POCL_KERNEL_CACHE" not in os.environ and "PYOPENCL_NO_CACHE" not in os.environ

    environment.delenv("POCL_CACHE_DIR")
    (tmp_path / "own" / "pocl").rmdir()
    (tmp_path / "own" / "pocl").write_text("")
    prepare_opencl()
    assert os.environ["POCL_CACHE_DIR"].startswith(str(tmp_path / "users"))
    check_pocl_cache()


def test_without_a_cache_directory_a_temporary_one_is_taken(tmp_path: Path, environment: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    environment.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    environment.setenv("TILELANG_CACHE_DIR", "")
    prepare_opencl()
    assert "tilelang-pocl-" in os.environ["POCL_CACHE_DIR"] and os.path.isdir(os.environ["POCL_CACHE_DIR"])
    assert os.environ["PYOPENCL_NO_CACHE"] == "1" and os.environ["POCL_KERNEL_CACHE"] == "0"
    check_pocl_cache()


def test_the_users_choice_is_kept_and_may_be_wrong(tmp_path: Path, environment: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    environment.setenv("POCL_CACHE_DIR", str(tmp_path / "file"))
    prepare_opencl()
    with pytest.raises(DeviceError, match="PoCL keeps compiled kernels on disk, and cannot: .*File exists") as caught:
        check_pocl_cache()
    assert caught.value.code == "no-room" and options.ROOM_BYTES >> 20 == 16 and "16 MiB" in str(caught.value.mend)


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


def test_a_home_that_cannot_be_written_is_no_matter(tmp_path: Path) -> None:
    (tmp_path / ".cache").write_text("")
    assert python(CALL, HOME=str(tmp_path), XDG_CACHE_HOME="") == "8.0"


def test_a_user_whom_nobody_knows_needs_no_home(tmp_path: Path) -> None:
    """A number without a name, as containers run with, and no HOME: nothing is kept, and nothing is left where the process stands."""
    nobody = "import os, pwd\ndel os.environ['HOME'], pwd.getpwuid\npwd.getpwuid = {}.__getitem__\n"
    told = python(nobody + CALL + "print(os.listdir())", HOME=str(tmp_path), XDG_CACHE_HOME="", XDG_DATA_HOME="")
    assert told.splitlines() == ["8.0", "[]"]


def test_no_room_is_an_error_and_no_abort(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert python(CALL, HOME=str(tmp_path), POCL_CACHE_DIR=str(tmp_path / "file")) == "no-room"
    limited = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))\n" + CALL
    assert python(limited, HOME=str(tmp_path)) == "no-room"
