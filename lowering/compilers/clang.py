"""Compiles HIP C++ to an AMD code object with the clang inside the `ziglang` wheel: no ROCm, driver or device is needed.

A text may include <hip/hip_runtime.h> or nothing: the header of that name in include/ replaces ROCm's and is always read first. Three
programs run per kernel, each for milliseconds: the compiler to assembly, the assembler, the linker. The resources of each kernel are
read from the assembly's metadata, as the driver does.
"""

from __future__ import annotations

import functools
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tilelang.errors import DeviceError
from tilelang.lowering.compilers import disassembly, wheels
from tilelang.lowering.compilers.compiled import Compiled, CompiledKernel, compile_failed, kept
from tilelang.lowering.compilers.native import program as program
from tilelang.lowering.drivers.cache import BinaryCache, key

_INCLUDE = Path(__file__).parent / "include"
_HEADER = _INCLUDE / "hip" / "hip_runtime.h"
_OPTIONS = (
    *("-x", "hip", "--offload-device-only", "-nogpulib", "-nogpuinc", "-fdeclspec", "-O3", "-std=c++17", "-w"),
    "-fuse-cuid=none",  # otherwise names in the code contain a hash of the file's path
    "-mcode-object-version=5",  # loaded by ROCm 6 and 7
)

_METADATA = re.compile(r"\.amdgpu_metadata\n(.*?)\.end_amdgpu_metadata", re.DOTALL)
_FACT = re.compile(r"^  (?:- | {2})\.(\w+): +(\S+)$", re.MULTILINE)
_FOLDED = re.compile(r"; (\d+)-byte Folded (Spill|Reload)")
_VECTOR_REGISTERS = re.compile(r"^; NumVgprs: (\d+)$", re.MULTILINE)


@functools.cache
def version() -> str:
    """The compiler's name and version. Raises DeviceError `no-compiler` if it is not installed."""
    words = _run(["clang", "--version"]).stdout.split()
    return f"clang {words[words.index('version') + 1]}"


def _run(arguments: Sequence[str], folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    path = program()
    if path is None:
        help = wheels.CLANG
        raise DeviceError("no-compiler", "HIP kernels need clang with AMD's back end, which is not installed", help=help)
    return subprocess.run([str(path), *arguments], capture_output=True, text=True, check=False, cwd=folder)


def compile_source(source: str, architecture: str, options: Sequence[str] = (), cache: BinaryCache | None = None) -> Compiled:
    """The code object of a HIP C++ text for an architecture such as "gfx90a", taken from the cache if it is there.

    Raises DeviceError: `no-compiler`, or `compile-failed` with the compiler's message.
    """
    name = key(["clang", version(), _HEADER.read_text(), source, architecture, *options])
    known = kept(cache, name)
    if known is not None:
        return known
    with tempfile.TemporaryDirectory(prefix="tilelang-hip-") as folder:
        compiled = _compile(source, architecture, options, Path(folder))
    if cache is not None:
        cache.put(name, compiled.to_bytes())
    return compiled


def text_of_code(source: str, compiled: Compiled) -> str:
    """The assembly of compiled machine code. Raises DeviceError if no program can produce it."""
    return disassembly.disassemble(compiled)


def _compile(source: str, architecture: str, options: Sequence[str], folder: Path) -> Compiled:
    (folder / "kernel.hip").write_text(source)
    headers = [f"-I{_INCLUDE}", "-include", str(_HEADER)]
    target = ["-target", "amdgcn-amd-amdhsa", f"-mcpu={architecture}"]
    for arguments in (
        ["clang", *_OPTIONS, f"--offload-arch={architecture}", *headers, *options, "-S", "kernel.hip", "-o", "kernel.s"],
        ["clang", "-x", "assembler", *target, "-c", "kernel.s", "-o", "kernel.o"],
        ["ld.lld", "-shared", "--no-undefined", "kernel.o", "-o", "kernel.hsaco"],
    ):
        done = _run(arguments, folder)
        if done.returncode:
            raise compile_failed(version(), architecture, done.stderr or done.stdout)
    assembly = (folder / "kernel.s").read_text()
    return Compiled(architecture, version(), (folder / "kernel.hsaco").read_bytes(), resources(assembly), assembly)


def resources(assembly: str) -> tuple[CompiledKernel, ...]:
    """The resources of each kernel, from an assembly's metadata and its remarks on spilled registers."""
    metadata = _METADATA.search(assembly)
    if metadata is None:
        return ()
    _, *kernels = re.split(r"^  - (?=\.\w+:)", metadata[1], flags=re.MULTILINE)
    found = []
    for kernel in kernels:
        facts = dict(_FACT.findall("  - " + kernel))
        body = _body(assembly, facts["name"])
        moved = {"Spill": 0, "Reload": 0}
        for count, what in _FOLDED.findall(body):
            moved[what] += int(count)
        # If both kinds share one register file, `.vgpr_count` is their sum; the remark after the kernel counts vector registers alone.
        vector = _VECTOR_REGISTERS.search(body)
        found.append(
            CompiledKernel(
                name=facts["name"],
                registers=int(vector[1]) if vector else int(facts["vgpr_count"]),
                shared_bytes=int(facts["group_segment_fixed_size"]),
                stack_bytes=int(facts["private_segment_fixed_size"]),
                spill_store_bytes=moved["Spill"],
                spill_load_bytes=moved["Reload"],
                scalar_registers=int(facts["sgpr_count"]),
                accumulation_registers=int(facts.get("agpr_count", 0)),
            )
        )
    return tuple(found)


def _body(assembly: str, name: str) -> str:
    """A kernel's instructions and the remarks after them: the text from its label to the next kernel's."""
    start = assembly.index(f"\n{name}:")
    end = assembly.find("\n\t.protected\t", start)
    return assembly[start : end if end >= 0 else len(assembly)]
