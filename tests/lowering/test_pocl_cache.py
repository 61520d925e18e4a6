"""What PoCL keeps on disk: a damaged file is as good as none, with several processes at once too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tilelang as tl
from tilelang.lowering.drivers import opencl as driver
from tilelang.lowering.drivers.pocl_cache import drop_damaged, is_whole

ROOT = Path(__file__).parents[2]
RUN = """
import numpy as np, tilelang as tl
i = tl.axes(i=8)
Y = tl.define("Y", 2 * tl.input("X", tl.float32, i)[i], i)
print(tl.compile(tl.schedule(Y).tile(i=4).to(tl.block))(np.ones(8, np.float32)).sum())
"""

pytestmark = pytest.mark.skipif(driver.POCL not in {d.platform for d in tl.devices()}, reason="no PoCL here")


def start(directory: Path) -> subprocess.Popen[str]:
    environment = {k: v for k, v in os.environ.items() if k != "POCL_KERNEL_CACHE"}
    environment |= {"POCL_CACHE_DIR": str(directory), "TILELANG_PLATFORM": driver.POCL}
    command = [sys.executable, "-c", RUN]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("part", [0.0, 0.5])
@pytest.mark.parametrize("name", ["program.bc", "*.so"])
def test_a_cut_file_is_made_anew(name: str, part: float, tmp_path: Path) -> None:
    start(tmp_path).communicate(timeout=100)
    sizes = {file: file.stat().st_size for file in tmp_path.rglob(name)}
    assert len(sizes) == 2  # of the kernel, and of the threads that it runs on
    for file, size in sizes.items():
        os.truncate(file, int(part * size))
    started = [start(tmp_path) for _ in range(2)]
    for said in [process.communicate(timeout=100) for process in started]:
        assert said[0] == "16.0\n", said[1]
    assert [process.returncode for process in started] == [0, 0]
    assert all(file.stat().st_size > 0.9 * size for file, size in sizes.items())


def test_only_what_was_built_and_is_damaged_goes(tmp_path: Path) -> None:
    library = Path(sys.executable).resolve()
    assert is_whole(library)
    whole = library.read_bytes()
    for name, content in {"cut": whole[:4096], "empty": b"", "zeros": bytes(4096), "whole": whole}.items():
        entry = tmp_path / name[:2] / name
        (entry / "add" / "1-1-1").mkdir(parents=True)
        (entry / "add" / "1-1-1" / "add.so").write_bytes(content)
        (entry / "last_accessed").touch()
        for file in entry.rglob("*.so"):
            os.utime(file, (1000, 1000))
    os.utime(tmp_path / "em" / "empty" / "last_accessed", (1000, 1000))
    drop_damaged(str(tmp_path), since=(tmp_path / "cu" / "cut" / "last_accessed").stat().st_mtime)
    assert sorted(file.parts[-4] for file in tmp_path.rglob("*.so")) == ["empty", "whole"]
    drop_damaged(str(tmp_path / "nowhere"), since=0)


def test_bitcode_has_all_its_blocks(tmp_path: Path) -> None:
    file, whole = (
        tmp_path / "program.bc",
        b"BC\xc0\xde" + b"".join(bytes([53, 0, 0, 0, n, 0, 0, 0]) + bytes(4 * n) for n in (5, 0, 7)),
    )
    for content, expected in ((whole, True), (whole[:-4], False), (whole[:36], False), (b"", False), (bytes(len(whole)), False)):
        file.write_bytes(content)
        assert is_whole(file) == expected


def test_bitcode_that_gave_no_kernels_goes_where_none_is_cut(tmp_path: Path) -> None:
    """What is wrong with it cannot be told from outside; but where another file is cut, it was that one."""
    for name in ("one", "two"):
        (tmp_path / "AB" / name).mkdir(parents=True)
        (tmp_path / "AB" / name / "program.bc").write_bytes(b"BC\xc0\xde" + bytes(8))
        os.utime(tmp_path / "AB" / name / "program.bc", (1000, 1000))
        (tmp_path / "AB" / name / "last_accessed").touch()
    os.truncate(tmp_path / "AB" / "one" / "program.bc", 5)
    os.utime(tmp_path / "AB" / "one" / "program.bc", (1000, 1000))
    since = (tmp_path / "AB" / "one" / "last_accessed").stat().st_mtime
    for left in (["two"], []):
        drop_damaged(str(tmp_path), since, bitcode=True)
        assert [file.parent.name for file in tmp_path.rglob("program.bc")] == left
