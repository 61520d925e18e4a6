"""The text of machine code: SASS of a cubin by NVIDIA's disassembler; the AMD compiler writes its text itself."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from tilelang.errors import DeviceError
from tilelang.lowering.compilers import wheels
from tilelang.lowering.compilers.compiled import Compiled

# Both print the same instructions; cuobjdump works only beside nvdisasm, and prints each one's bits as well.
_PROGRAMS = {"nvdisasm": ("-c",), "cuobjdump": ("-sass",)}


def disassembler() -> Path | None:
    """The program that disassembles cubins; None where there is none."""
    return next((path for path in map(wheels.program, _PROGRAMS) if path is not None), None)


def disassemble(compiled: Compiled) -> str:
    """The text of a compiled kernel. Raises DeviceError where no disassembler is installed, or it fails."""
    if compiled.assembly is not None:
        return compiled.assembly
    path = disassembler()
    if path is None:
        message = f"the text of machine code for {compiled.architecture} needs NVIDIA's disassembler, which is not installed"
        raise DeviceError("no-disassembler", message, mend=f"{wheels.INSTALL}, or nvidia-cuda-nvdisasm")
    with tempfile.TemporaryDirectory(prefix="tilelang-sass-") as folder:
        cubin = Path(folder) / "kernel.cubin"
        cubin.write_bytes(compiled.code)
        done = subprocess.run([str(path), *_PROGRAMS[path.name], str(cubin)], capture_output=True, text=True, check=False)
    if done.returncode or not done.stdout:
        message = f"{path.name} does not disassemble the kernel for {compiled.architecture}: {done.stderr.strip()}"
        raise DeviceError("no-assembly", message, mend="a newer nvidia-cuda-nvdisasm")
    return done.stdout
