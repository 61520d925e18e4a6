"""The libraries of an exported program: an archive and a shared library, from the objects of its kernels and its launcher.

The kernels are compiled as for running in this process. The launcher includes system headers of its target: those inside the `ziglang`
wheel. Its `zig cc` has headers for every system, but is only used to compile: linking an executable would make it build a C library
first. On Linux the shared library leaves C library symbols undefined, because the program that loads it has them.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Mapping
from pathlib import Path

from tilelang.errors import DeviceError
from tilelang.lowering.compilers import native
from tilelang.lowering.compilers.native import System
from tilelang.lowering.export.signature import Signature

# All Windows functions that the launcher calls.
_KERNEL32 = ("CloseHandle", "CreateThread", "GetProcessHeap", "HeapAlloc", "HeapFree", "WaitForSingleObject")
_PLAIN = ("-std=gnu99", "-O2", "-fno-stack-protector", "-fno-ident")


@dataclasses.dataclass(frozen=True, slots=True)
class Libraries:
    """The files by name. static, shared: those to link with."""

    files: Mapping[str, bytes]
    static: str
    shared: str


def definitions(made: Signature) -> tuple[str, ...]:
    """The compiler options that set the names of a text's kernels in the libraries."""
    return tuple(dict.fromkeys(f"-D{launch.function}={launch.symbol}" for launch in made.launches))


def libraries(made: Signature, source: str, header: str, launcher: str, architecture: str) -> Libraries:
    """Compiles and links the texts of an export.

    Raises DeviceError: those of `native.object_code`, and `export-toolchain` if only the wheel's compiler could do it.
    """
    system = native.system_of(architecture)
    if not native.toolchain().zig and not system.here:
        message = f"libraries for {system.name} on {system.machine} need headers that {native.version()} does not bring along"
        raise DeviceError("export-toolchain", message, help="pip install ziglang, or remove the target")
    kernels = native.object_code(source, system, definitions(made))
    with native.working_folder() as place:
        folder = Path(place)
        (folder / f"{made.name}.h").write_text(header)
        (folder / f"{made.name}_launch.c").write_text(launcher)
        objects = [folder / f"{made.name}.o", folder / f"{made.name}_launch.o"]
        objects[0].write_bytes(kernels)
        command = [*_compiler(system), *_PLAIN, *([] if system.name == "windows" else ["-fPIC"]), "-c"]
        native.invoke([*command, str(folder / f"{made.name}_launch.c"), "-o", str(objects[1])], system)
        static = _archive(folder, made.name, objects, system)
        shared = _shared(folder, made.name, objects, system)
        return Libraries({path.name: path.read_bytes() for path in (static, *shared)}, static.name, shared[0].name)


def _compiler(system: System) -> tuple[str, ...]:
    """The compiler for plain C, with headers."""
    found = native.toolchain()
    if not found.zig:
        return found.clang
    name = {"linux": "linux-gnu", "macos": "macos", "windows": "windows-gnu"}[system.name]
    return (found.linker[0], "cc", "-target", f"{system.machine}-{name}", "-fno-sanitize=all", "-g0")


def _archive(folder: Path, name: str, objects: list[Path], system: System) -> Path:
    found = native.toolchain()
    if found.zig:
        archiver: tuple[str, ...] = (found.linker[0], "ar")
    else:
        path = shutil.which("llvm-ar") or shutil.which("ar")
        if path is None:
            raise DeviceError(
                "export-toolchain", "a static library needs `ar`, which is not installed", help="pip install ziglang"
            )
        archiver = (path,)
    made = folder / f"lib{name}.a"
    native.invoke([*archiver, "rcsD" if found.zig or system.name == "linux" else "rcs", str(made), *map(str, objects)], system)
    return made


def _shared(folder: Path, name: str, objects: list[Path], system: System) -> tuple[Path, ...]:
    """The shared library, and the file to link programs with if that is a different one."""
    linker, given = native.toolchain(), [str(path) for path in objects]
    if system.name == "windows":
        made, beside = folder / f"{name}.dll", folder / f"{name}.lib"
        command = [*native.linker_command(system), "/brepro", *_kernel32(folder, system)]
        exported = [f"/export:{name}_{function}" for function in ("run", "run_threads", "memory_bytes")]
        native.invoke([*command, *exported, *given, f"/out:{made}", f"/implib:{beside}"], system)
        return made, beside
    made = folder / f"lib{name}.{'dylib' if system.name == 'macos' else 'so'}"
    if not linker.zig:
        command = [*linker.linker, "-shared"]
    elif system.name == "macos":
        command = [*linker.linker, "cc", "-target", f"{system.machine}-macos", "-shared", f"-Wl,-install_name,@rpath/{made.name}"]
    else:
        command = [*linker.linker, "ld.lld", "-shared", "--hash-style=gnu", f"-soname={made.name}"]
    native.invoke([*command, *given, "-o", str(made)], system)
    return (made,)


def _kernel32(folder: Path, system: System) -> list[str]:
    """An import library of the Windows functions that the launcher calls; no other is needed."""
    names, made = folder / "kernel32.def", folder / "kernel32.lib"
    names.write_text("\n".join(["LIBRARY kernel32.dll", "EXPORTS", *_KERNEL32]) + "\n")
    machine = {"x86_64": "i386:x86-64", "aarch64": "arm64"}[system.machine]
    native.invoke([native.toolchain().linker[0], "dlltool", "-m", machine, "-d", str(names), "-l", str(made)], system)
    return [str(made)]
