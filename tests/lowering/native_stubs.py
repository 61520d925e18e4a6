"""Libraries of drivers that are not here, compiled from native/*.c: they record their calls and work in the host's memory."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tilelang.lowering.compilers import clang

HERE = Path(__file__).resolve().parent / "native"
ROOT = HERE.parents[2]


def compiler() -> list[str]:
    """A C compiler; the test is skipped where there is none."""
    found = shutil.which("cc") or shutil.which("gcc")
    if found is not None:
        return [found]
    if clang.program() is None:
        pytest.skip("no C compiler here")
    return [str(clang.program()), "cc"]


def build(name: str, soname: str, folder: Path, symbols: Iterable[str]) -> Path:
    """The library of native/NAME.c; what else is named in `symbols` is there, and fails."""
    text = (HERE / f"{name}.c").read_text()
    defined = set(re.findall(r"^(?:int|void|const char\*) (\w+)\(", text, re.MULTILINE))
    text += "".join(f"int {symbol}(void) {{ return 801; }}\n" for symbol in sorted(set(symbols) - defined))
    source, library = folder / f"{name}.c", folder / soname
    source.write_text(text)
    command = [*compiler(), "-shared", "-fPIC", "-w", f"-I{HERE}", f"-Wl,-soname,{soname}", "-o", str(library), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    return library


def run(code: str, library: Path, *arguments: str) -> Any:
    """What a script prints last, as JSON, in a process of its own; `library` is loaded first and the script's `recorded()` reads it."""
    begin = f"""
import ctypes, json, sys
library = ctypes.CDLL({str(library)!r}, ctypes.RTLD_GLOBAL)
library.recorded.restype = ctypes.c_char_p
def recorded():
    return [line for line in library.recorded().decode().splitlines()]
def copies(count):
    ctypes.c_int.in_dll(library, "copied_bytes").value = count
"""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "TILELANG_CACHE_DIR": str(library.parent / "cache")}
    command = [sys.executable, "-c", begin + code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0 and "warning" not in done.stderr.lower(), done.stderr
    return json.loads(done.stdout.splitlines()[-1])
