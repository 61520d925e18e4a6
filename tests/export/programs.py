"""C programs of the tests of exports: what the files of an export are compiled with, and what its `main` fills the inputs with."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from tilelang.lowering.export.texts import chosen, sample

STRICT = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror")


@functools.cache
def compiler() -> str:
    """A C compiler that links executables; skips where there is none."""
    for name in ("cc", "gcc", "clang"):
        if (found := shutil.which(name)) is not None:
            probe = subprocess.run([found, "-x", "c", "-", "-o", "/dev/null"], input=b"int main(void) { return 0; }")
            if probe.returncode == 0:
                return found
    pytest.skip("no C compiler that links an executable is installed (apt-get install gcc libc6-dev)")


def built(folder: Path, *arguments: str, by: Sequence[str] = ()) -> Path:
    """An executable of files in a folder, in which the compiler finds nothing to complain about. by: another compiler than this
    machine's."""
    command = [*(by or [compiler()]), *STRICT, *arguments, "-pthread", "-o", "program"]
    local = {"ZIG_LOCAL_CACHE_DIR": str(folder / "zig")}  # its global cache stays: to build a C library takes zig a minute
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env={**os.environ, **local})
    assert done.returncode == 0, done.stderr
    return folder / "program"


def outputs_of(program: Path, kernel: tl.Kernel, threads: int, starter: Sequence[str] = ()) -> tuple[str, Mapping[str, Any]]:
    """What the main of an export prints, and the outputs by name, from the file that it writes. starter: what the command line begins
    with."""
    command = [*starter, str(program), str(threads), "outputs"]
    done = subprocess.run(command, cwd=program.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    data, found, start = (program.parent / "outputs").read_bytes(), {}, 0
    for t in kernel.computation.outputs:
        count = int(np.prod(t.shape, dtype=np.int64))
        found[t.name] = np.frombuffer(data, t.dtype.numpy, count, start).reshape(t.shape)
        start += count * t.dtype.bytes
    assert start == len(data)
    return done.stdout, found


def inputs_of(kernel: tl.Kernel) -> Mapping[str, Any]:
    """The inputs by name, as the main fills them."""
    found = {}
    for number, t in enumerate(kernel.computation.inputs):
        elements = int(np.prod(t.shape, dtype=np.int64))
        found[t.name] = sample(t)[chosen(elements, number)].reshape(t.shape)
    return found
