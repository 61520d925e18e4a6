"""Libraries from bytes: from memory, from a file where that fails, and what is told where both do."""

from __future__ import annotations

import ctypes
import os
import stat
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.lowering.host_kernels import compile_source
from tilelang.errors import DeviceError
from tilelang.lowering.drivers import loader
from tilelang.lowering.drivers.loader import load_library

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="files in memory are Linux's")


def returns(number: int) -> bytes:
    """A library whose `answer` returns a number."""
    text = f'__attribute__((visibility("default"))) int answer(void) {{ return {number}; }}'
    return bytes(compile_source(text, "native").code)


def answer(library: loader.Library) -> int:
    return int(ctypes.CFUNCTYPE(ctypes.c_int)(library.address("answer"))())


@pytest.fixture
def no_memory(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A system without files in memory."""
    monkeypatch.delattr(os, "memfd_create", raising=False)
    return monkeypatch


def test_libraries_loaded_after_each_other_are_not_mistaken() -> None:
    """Numbers of files and paths of temporary files are used again; names are the same."""
    assert [answer(load_library(returns(n))) for n in range(5)] == list(range(5))


def test_no_file_stays_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, folder = returns(1), Path("/proc/self/fd")
    if not folder.exists():
        pytest.skip("this system does not show open files")
    before = len(os.listdir(folder))
    held = [load_library(code) for _ in range(5)]
    assert len(os.listdir(folder)) == before and len(held) == 5


def test_a_file_where_there_is_none_in_memory(tmp_path: Path, no_memory: pytest.MonkeyPatch) -> None:
    no_memory.setattr(tempfile, "tempdir", str(tmp_path))
    modes, real = list[int](), ctypes.CDLL

    def spy(path: str) -> Any:
        modes.append(stat.S_IMODE(os.stat(Path(path).parent).st_mode))
        return real(path)

    no_memory.setattr(ctypes, "CDLL", spy)
    assert answer(load_library(returns(7))) == 7 and answer(load_library(returns(8))) == 8
    assert modes == [0o700] * 2 and list(tmp_path.iterdir()) == []


@LINUX
def test_a_file_where_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with the setting vm.memfd_noexec=2."""

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "memfd_create", refuse)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert answer(load_library(returns(9))) == 9


@LINUX
def test_memory_where_temporary_files_cannot_be_executed_or_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = returns(10)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    assert answer(load_library(code)) == 10


def test_neither_is_told_with_both_reasons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def noexec(path: str) -> Any:
        raise OSError(f"{path}: failed to map segment from shared object")

    monkeypatch.setattr(ctypes, "CDLL", noexec)
    with pytest.raises(DeviceError, match="a temporary file: .*failed to map segment") as caught:
        load_library(b"", "a-name")
    assert caught.value.code == "cannot-load" and "TMPDIR" in str(caught.value.help) and "a-name" in caught.value.message
    assert list(tmp_path.iterdir()) == []


def test_bytes_that_are_no_library() -> None:
    for code in (b"", b"nothing of the kind", returns(1)[:100]):
        with pytest.raises(DeviceError) as caught:
            load_library(code)
        assert caught.value.code == "cannot-load"


def test_a_symbol_that_is_missing_and_a_library_that_is_closed() -> None:
    library = load_library(returns(3))
    with pytest.raises(DeviceError, match="exports no question") as caught:
        library.address("question")
    assert caught.value.code == "no-such-kernel"
    library.close()
    library.close()
    with pytest.raises(DeviceError):
        library.address("answer")
