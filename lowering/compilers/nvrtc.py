"""Compiles CUDA C++ to a cubin with NVRTC from NVIDIA's wheels, through ctypes: no driver or device is needed.

It always compiles to machine code (sm_80), never to PTX alone, because only the assembler checks inline assembly. The resources of each
kernel are read from the assembler's report in NVRTC's log. Two versions may be installed; version 12 is preferred, since it supports
every architecture from sm_50 to sm_121.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilelang.errors import DeviceError
from tilelang.lowering.compilers import disassembly, wheels
from tilelang.lowering.compilers.compiled import Compiled, CompiledKernel, compile_failed, kept
from tilelang.lowering.drivers.cache import BinaryCache, key

_INSTALL = f"{wheels.INSTALL}, or nvidia-cuda-nvrtc-cu12 and nvidia-cuda-runtime-cu12"

_ENTRY = re.compile(r"Compiling entry function '(\w+)' for '\w+'")
_PROPERTIES = re.compile(r"Function properties for (\w+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


@dataclasses.dataclass(frozen=True, slots=True)
class Library:
    """An installed NVRTC. architectures: the numbers it compiles for (80 for sm_80). include: the folder of its headers."""

    version: tuple[int, int]
    architectures: tuple[int, ...]
    include: Path
    handle: Any = dataclasses.field(compare=False, repr=False)

    def __str__(self) -> str:
        return f"NVRTC {self.version[0]}.{self.version[1]}"

    def compiles_for(self, architecture: str) -> bool:
        """Whether an architecture's number is supported, ignoring a letter suffix: sm_90a is 90."""
        number = re.fullmatch(r"sm_(\d+)[af]?", architecture)
        return number is not None and int(number[1]) in self.architectures


@functools.cache
def libraries() -> tuple[Library, ...]:
    """The installed versions of NVRTC that have their headers, the preferred one first."""
    found = [_open(path) for path in wheels.nvidia("*/lib/libnvrtc.so.1*")]
    return tuple(sorted((one for one in found if one is not None), key=lambda one: one.version))


def _open(path: Path) -> Library | None:
    """Opens a library; None if its headers are not installed. Each version has its own folders."""
    own = path.parent.parent
    headers = [own / "include", own.parent / "cuda_runtime" / "include"]
    include = next((folder for folder in headers if (folder / "cuda_fp16.h").exists()), None)
    if include is None:
        return None
    for builtins in path.parent.glob("libnvrtc-builtins.so*"):  # version 13 opens it by its bare name
        ctypes.CDLL(str(builtins))
    handle = ctypes.CDLL(str(path))
    handle.nvrtcGetErrorString.restype = ctypes.c_char_p
    major, minor, count = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    handle.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    handle.nvrtcGetNumSupportedArchs(ctypes.byref(count))
    numbers = (ctypes.c_int * count.value)()
    handle.nvrtcGetSupportedArchs(numbers)
    return Library((major.value, minor.value), tuple(numbers), include, handle)


def version() -> str:
    """The compiler's name and version. Raises DeviceError `no-compiler` if it is not installed."""
    return str(_installed()[0])


def _installed() -> tuple[Library, ...]:
    if not libraries():
        raise DeviceError("no-compiler", "CUDA kernels need NVRTC and CUDA's headers, which are not installed", help=_INSTALL)
    return libraries()


def library_for(architecture: str) -> Library:
    """The NVRTC for an architecture. Raises DeviceError if there is none, or none that supports the architecture."""
    for library in _installed():
        if library.compiles_for(architecture):
            return library
    known = " ".join(f"sm_{n}" for n in sorted({n for one in libraries() for n in one.architectures}))
    names = " and ".join(map(str, libraries()))
    help = f"use one of {known}; {wheels.INSTALL} installs NVRTC 12, which knows sm_50 to sm_121"
    raise DeviceError("unknown-architecture", f"{names} has no `{architecture}`", help=help)


def compile_source(source: str, architecture: str, options: Sequence[str] = (), cache: BinaryCache | None = None) -> Compiled:
    """The machine code of a CUDA C++ text for an architecture such as "sm_80", taken from the cache if it is there.

    Raises DeviceError: `no-compiler`, `unknown-architecture`, or `compile-failed` with the compiler's message.
    """
    library = library_for(architecture)
    every = [f"-arch={architecture}", "--std=c++17", "--ptxas-options=-v", f"-I{library.include}", *options]
    name = key(["nvrtc", str(library), source, architecture, *options])
    known = kept(cache, name)
    if known is not None:
        return known
    code, words = _compile(library, source, architecture, every)
    log = "\n".join(line for line in words.splitlines() if "Compile time" not in line)
    compiled = Compiled(architecture, str(library), code, resources(log), log=log)
    if cache is not None:
        cache.put(name, compiled.to_bytes())
    return compiled


def text_of_code(source: str, compiled: Compiled) -> str:
    """The assembly of compiled machine code. Raises DeviceError if no program can produce it."""
    return disassembly.disassemble(compiled)


def _compile(library: Library, source: str, architecture: str, options: Sequence[str]) -> tuple[bytes, str]:
    """The cubin and the log."""
    nvrtc, program = library.handle, ctypes.c_void_p()
    given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
    try:
        status = nvrtc.nvrtcCompileProgram(program, len(options), given)
        log = _read(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program).rstrip(b"\0").decode(errors="replace")
        if status:
            words = log.strip() or nvrtc.nvrtcGetErrorString(status).decode()
            raise compile_failed(str(library), architecture, words)
        return _read(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program), log
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _read(size: Any, get: Any, program: ctypes.c_void_p) -> bytes:
    count = ctypes.c_size_t()
    size(program, ctypes.byref(count))
    data = ctypes.create_string_buffer(count.value)
    get(program, data)
    return data.raw


def resources(log: str) -> tuple[CompiledKernel, ...]:
    """The resources that each kernel uses, from the assembler's report.

    >>> resources('''ptxas info    : Compiling entry function 'add' for 'sm_80'
    ... ptxas info    : Function properties for add
    ... ptxas         .     8 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads
    ... ptxas info    : Used 12 registers, used 1 barriers, 512 bytes smem, 360 bytes cmem[0]''')
    (CompiledKernel(name='add', registers=12, shared_bytes=512, stack_bytes=8, spill_store_bytes=16, spill_load_bytes=24, \
scalar_registers=None, accumulation_registers=None),)
    """
    found = []
    entry, stack = "", (0, 0, 0)
    of_entry = False
    for line in log.splitlines():
        if match := _ENTRY.search(line):
            entry, stack = match[1], (0, 0, 0)
        elif match := _PROPERTIES.search(line):
            of_entry = match[1] == entry
        elif (match := _STACK.search(line)) and of_entry:
            stack = (int(match[1]), int(match[2]), int(match[3]))
        elif (match := _USED.search(line)) and entry:
            shared = _SHARED.search(line)
            found.append(CompiledKernel(entry, int(match[1]), int(shared[1]) if shared else 0, *stack))
            entry = ""
    return tuple(found)
