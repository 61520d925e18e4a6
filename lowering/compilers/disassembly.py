"""Disassembles machine code: SASS of a cubin by NVIDIA's disassembler; the AMD compiler writes assembly itself."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from tilelang.errors import DeviceError
from tilelang.lowering.compilers import wheels
from tilelang.lowering.compilers.compiled import Compiled


def disassemblers() -> list[Path]:
    """The installed disassemblers for cubins: the wheel's, then that of a toolkit on the search path."""
    return wheels.programs("nvdisasm")


def disassemble(compiled: Compiled) -> str:
    """The assembly of a compiled kernel. Raises DeviceError if no disassembler is installed, or none knows the architecture."""
    if compiled.assembly is not None:
        return compiled.assembly
    if not disassemblers():
        message = f"the text of machine code for {compiled.architecture} needs NVIDIA's disassembler, which is not installed"
        raise DeviceError("no-disassembler", message, help=f"{wheels.INSTALL}, or nvidia-cuda-nvdisasm")
    said = []
    with tempfile.TemporaryDirectory(prefix="tilelang-sass-") as folder:
        (Path(folder) / "kernel.cubin").write_bytes(compiled.code)
        for path in disassemblers():
            command = [str(path), "-c", "kernel.cubin"]  # -c: code only
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode == 0 and done.stdout:
                return done.stdout
            said.append(f"{path}: {done.stderr.strip()}")
    message = f"no installed disassembler accepts the machine code for {compiled.architecture}\n" + "\n".join(said)
    help = "add the bin folder of a CUDA toolkit that supports the architecture to the search path: 13.0 or earlier for sm_70"
    raise DeviceError("no-assembly", message, help=help)
