"""Compiles C for CPUs to a shared library with clang and lld: those inside the `ziglang` wheel, or a system clang (17 or newer).

Two programs run per text: `clang -c`, for some tens of milliseconds, and the linker, which starts at the same time. Clang may be
started while the text is still being generated (`begun`), or compile a text before its code is needed (`compile_early`). On Linux both
use pipes and memory files, so that no writable folder is needed. An architecture is LLVM's name of a CPU, followed by `@` and the
system if that is not this one: `native`, `znver4`, `neoverse-v2@aarch64-linux`, `x86-64-v3@x86_64-windows`, `apple-m1@aarch64-macos`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from tilelang.errors import DeviceError
from tilelang.lowering.compilers import processes, wheels
from tilelang.lowering.compilers.compiled import Compiled, compile_failed, kept
from tilelang.lowering.compilers.processes import Early
from tilelang.lowering.drivers.cache import BinaryCache, key
from tilelang.lowering.drivers.processor import processor as processor_here
from tilelang.options import Options

NATIVE = "native"
OLDEST_CLANG = 17

# No library is linked: -ffreestanding keeps the compiler from turning loops into calls to memset and memcpy, -fno-math-errno from
# calling sqrt. Contraction of a*b+c within a statement is clang's default, stated explicitly.
FLAGS = (
    *("-std=gnu17", "-O2", "-ffreestanding", "-ffp-contract=on", "-fno-math-errno", "-fno-stack-protector", "-fno-ident"),
    *("-fno-asynchronous-unwind-tables", "-fvisibility=hidden", "-fno-strict-aliasing", "-fsigned-char", "-w"),
)


@dataclasses.dataclass(frozen=True, slots=True)
class Toolchain:
    """The compiler and linker. clang, linker: the beginnings of their command lines. version: as clang reports it."""

    clang: tuple[str, ...]
    linker: tuple[str, ...]
    version: str
    zig: bool


@dataclasses.dataclass(frozen=True, slots=True)
class System:
    """A compilation target. name: linux, macos or windows. machine: x86_64 or aarch64. cpu: LLVM's name of the CPU."""

    cpu: str
    machine: str
    name: str

    @property
    def here(self) -> bool:
        """Whether this process runs on such a system."""
        return (self.machine, self.name) == _this_system()

    @property
    def triple(self) -> str:
        """The target triple."""
        vendor = {"linux": "unknown-linux-gnu", "macos": "apple-macosx11.0", "windows": "pc-windows-msvc"}[self.name]
        return f"{'arm64' if self.name == 'macos' and self.machine == 'aarch64' else self.machine}-{vendor}"

    @property
    def flags(self) -> tuple[str, ...]:
        """The compiler's options for this target."""
        x86 = self.machine == "x86_64"
        found = ["-march=" + self.cpu if x86 else "-mcpu=" + self.cpu]
        found += ["-mprefer-vector-width=512"] if x86 else []
        found += [] if self.name == "windows" else ["-fPIC"]
        found += ["-mno-stack-arg-probe"] if self.name == "windows" and x86 else []
        return (*found, *(() if self.here and self.cpu == NATIVE else ("--target=" + self.triple,)))


def _this_system() -> tuple[str, str]:
    machine = platform.machine().lower()
    name = {"darwin": "macos", "win32": "windows"}.get(sys.platform, "linux")
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine), name


def system_of(architecture: str) -> System:
    """The system and CPU of an architecture name. Raises DeviceError `unknown-architecture`."""
    cpu, _, system = architecture.partition("@")
    if not system:
        return System(cpu, *_this_system())
    machine, _, name = system.partition("-")
    if machine not in ("x86_64", "aarch64") or name not in ("linux", "macos", "windows") or not re.fullmatch(r"[\w.+-]+", cpu):
        help = "use a CPU, or one with its system: neoverse-v2@aarch64-linux, apple-m1@aarch64-macos, x86-64-v3@x86_64-windows"
        raise DeviceError("unknown-architecture", f"`{architecture}` does not name a CPU and a system", help=help)
    return System(cpu, machine, name)


# ---------------------------------------------------------------- the programs


@functools.cache
def toolchain() -> Toolchain:
    """The compiler in use: TILELANG_CLANG, else the wheel's, else the system's. Raises DeviceError `no-compiler`."""
    named = Options.from_environment().clang
    if named is not None:
        return _system_clang(named)
    zig = program()
    if zig is not None:
        return Toolchain((str(zig), "clang"), (str(zig),), _version((str(zig), "clang")), True)
    for name in ("clang", *(f"clang-{n}" for n in range(30, OLDEST_CLANG - 1, -1))):
        if (path := shutil.which(name)) is not None and _major(_version((path,))) >= OLDEST_CLANG:
            return _system_clang(path)
    raise DeviceError("no-compiler", "CPU kernels need clang, which is not installed", help=processes.INSTALL)


@functools.cache
def program() -> Path | None:
    """The wheel's program, which contains clang and the linkers; None if it is not installed."""
    names = (folder / name for folder in wheels.folders("ziglang") for name in ("zig", "zig.exe"))
    return next((path for path in names if path.exists()), None)


def _system_clang(named: str) -> Toolchain:
    path = shutil.which(named)
    if path is None:
        raise DeviceError("no-compiler", f"TILELANG_CLANG={named} is not a program that can be run", help=processes.INSTALL)
    version = _version((path,))
    if _major(version) < OLDEST_CLANG:
        message = f"{path} is {version}; kernels need version {OLDEST_CLANG} or newer"
        raise DeviceError("no-compiler", message, help=processes.INSTALL)
    return Toolchain((path,), (path,), version, False)


def _version(clang: tuple[str, ...]) -> str:
    words = _report((*clang, "--version"))[1]
    found = re.search(r"clang version ([\w.+~-]+)", words)
    if found is None:
        message = f"{' '.join(clang)} does not tell its version: {words.strip()[:200] or 'it printed nothing'}"
        raise DeviceError("no-compiler", message, help=processes.INSTALL)
    return f"clang {found[1]}"


def _major(version: str) -> int:
    return int(version.split()[1].split(".")[0])


def version() -> str:
    """The compiler's name and version. Raises DeviceError `no-compiler` if none is installed."""
    return toolchain().version


# ---------------------------------------------------------------- compiling


def compile_source(source: str, architecture: str, options: Sequence[str] = (), cache: BinaryCache | None = None) -> Compiled:
    """The shared library of a C text for an architecture, taken from the cache if it is there.

    Raises DeviceError: `no-compiler`, `unknown-architecture`, `compile-timeout`, or `compile-failed` with the compiler's message.
    """
    system = system_of(architecture)
    name = key(["native", *resolved(architecture), source, *FLAGS, *system.flags, *options])
    known = kept(cache, name)
    if known is not None:
        processes.abandon(source)
        return known
    with Linker(system) as linker:
        code = linker.link(object_code(source, system, options))
    compiled = Compiled(architecture, version(), code, ())
    if cache is not None:
        cache.put(name, compiled.to_bytes())
    return compiled


@functools.cache
def resolved(architecture: str) -> tuple[str, ...]:
    """The compiler's interpretation of an architecture: its version, the CPU and its features, never the word `native`."""
    command = (*toolchain().clang, *system_of(architecture).flags, "-###", "-c", "-x", "c", os.devnull)
    status, _, printed = _report(command)
    words = [word.strip('"') for word in printed.split()]
    found = [
        after for word, after in zip(words, words[1:], strict=False) if word in ("-target-cpu", "-target-feature", "-triple")
    ]
    if status or not found:
        raise _unknown(architecture, printed)
    return version(), *found


def _report(command: tuple[str, ...]) -> tuple[int, str, str]:
    """The exit status, output and error output of a command that only describes its program.

    Those of the wheel's program are kept in the cache of binaries, for its file and this CPU, because starting clang takes longer than
    loading a kernel. Any other `clang` may be a script that starts a different program tomorrow.
    """
    cache, name = BinaryCache(Options.from_environment().cache_dir), None
    if command[0] == str(program()) and processor_here().features:
        with contextlib.suppress(OSError):  # starting the program will report the error
            file = os.stat(command[0])
            name = key(["report", *command, str(file.st_size), str(file.st_mtime_ns), processor_here().details])
    with contextlib.suppress(ValueError, TypeError):
        status, output, errors = json.loads((name and cache.get(name)) or b"")
        return status, output, errors
    done = processes.run(command)
    output, errors = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    if name is not None and not done.returncode:
        cache.put(name, json.dumps([0, output, errors]).encode())
    return done.returncode, output, errors


def _unknown(architecture: str, words: str) -> DeviceError:
    said = next((line for line in words.splitlines() if "error" in line), words.strip())
    return DeviceError("unknown-architecture", f"{version()} has no `{architecture}`: {said}", help="use a CPU that LLVM names")


def processor(architecture: str) -> str:
    """LLVM's name of an architecture's CPU; for `native`, of this machine's CPU."""
    cpu = system_of(architecture).cpu
    return cpu if cpu != NATIVE else resolved(architecture)[2]


@functools.cache
def macros(architecture: str) -> frozenset[str]:
    """The feature macros of an architecture, such as `__AVX512F__`. Raises DeviceError if it is unknown."""
    system = system_of(architecture)
    words = invoke([*toolchain().clang, *system.flags, "-dM", "-E", "-x", "c", os.devnull], system).decode(errors="replace")
    return frozenset(line.split()[1] for line in words.splitlines() if line.startswith("#define "))


def own_options(source: str) -> tuple[str, ...]:
    """The compiler options named in a text."""
    return tuple(word for line in re.findall(r"^// clang: (.*)$", source, re.M) for word in line.split())


def object_code(source: str, system: System, options: Sequence[str] = (), as_text: bool = False) -> bytes:
    """An object file, or assembly. Raises DeviceError with the compiler's message."""
    command = _command(system, (*own_options(source), *options), as_text)
    early = processes.taken_up(source, command)
    done = early.result() if early is not None else None
    if done is not None and not done.returncode:  # otherwise it may have been interrupted: compile again
        return done.stdout
    return _output(processes.ended(processes.waiting(command), source.encode()), system)


def _command(system: System, options: Sequence[str], as_text: bool = False) -> list[str]:
    """The command that compiles a text from a pipe."""
    return [*toolchain().clang, *FLAGS, *system.flags, *options, "-S" if as_text else "-c", "-x", "c", "-", "-o", "-"]


def begun(architecture: str, options: Sequence[str]) -> contextlib.AbstractContextManager[None]:
    """In the `with` block a text is generated and compiled. The compiler is started now, because it takes some milliseconds to start.

    options: those that the text will name; if it names others, the compiler is started again.
    """
    try:
        return processes.begun(_command(system_of(architecture), options))
    except DeviceError:  # the compilation itself will report it
        return contextlib.nullcontext()


def compile_early(source: str, architecture: str) -> Early | None:
    """Starts to compile a text whose code is likely to be needed soon; `object_code` then waits for this compiler. None if no
    compiler starts, or if the text does not fit a pipe."""
    try:
        return processes.compile_early(source, _command(system_of(architecture), own_options(source)))
    except DeviceError:
        return None


def invoke(command: Sequence[str], system: System, given: bytes | None = None, files: Sequence[int] = ()) -> bytes:
    """Runs a program and returns its output. Raises DeviceError with its message if it fails."""
    return _output(processes.run(command, given, files), system)


def _output(done: subprocess.CompletedProcess[bytes], system: System) -> bytes:
    if done.returncode:
        words = done.stderr.decode(errors="replace")
        if "unknown target CPU" in words or "unsupported argument" in words:
            raise _unknown(system.cpu, words)
        ended = f"it ended by signal {-done.returncode}" if done.returncode < 0 else f"exit status {done.returncode}"
        raise compile_failed(version(), system.cpu, words.strip() or ended)
    return done.stdout


def assembly(source: str, architecture: str, options: Sequence[str] = ()) -> str:
    """The assembly of a C text for an architecture."""
    return object_code(source, system_of(architecture), options, as_text=True).decode(errors="replace")


def text_of_code(source: str, compiled: Compiled) -> str:
    """The assembly of the machine code that a C text was compiled to."""
    return assembly(source, compiled.architecture)


def link(code: bytes, system: System) -> bytes:
    """Links one object file to a shared library. Raises DeviceError: `no-compiler` if the linker does not run, or its message."""
    with Linker(system) as linker:
        return linker.link(code)


class Linker:
    """Links one object file to a shared library.

    The wheel's linker reads a pipe: its process starts with the `with` block and is ready when the compiler is done. Other
    linkers read a file and start when it exists.
    """

    def __init__(self, system: System) -> None:
        self.system = system
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        if toolchain().zig and _in_memory(self.system):
            self._process = processes.started([*linker_command(self.system), "/dev/stdin", "-o", "/dev/stdout"], reads=True)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.returncode is None:  # nothing was compiled
            processes.end(self._process)

    def link(self, code: bytes) -> bytes:
        """The library of an object file; call once. Raises DeviceError: `no-compiler` if the linker does not run, or its message."""
        try:
            made = (
                _linked(code, self.system)
                if self._process is None
                else _output(processes.ended(self._process, code), self.system)
            )
            if not made:
                message = f"{linker_command(self.system)[0]} reports no error, but has linked nothing"
                raise DeviceError("no-compiler", message, help=processes.INSTALL)
            return made
        except DeviceError as error:
            if error.code == "compile-failed":
                _probe_linker(self.system)
            raise


def _in_memory(system: System) -> bool:
    """Whether the linker supports pipes and memory files, as lld does. GNU ld deletes an output that it cannot seek in: /dev/stdout."""
    return sys.platform == "linux" and system.name == "linux" and (toolchain().zig or _beside("ld.lld") is not None)


def _probe_linker(system: System) -> None:
    """Raises DeviceError if the linker cannot even report its version."""
    probe = (*linker_command(system)[: 2 if toolchain().zig else 1], "--version")
    done = processes.run(probe)
    if done.returncode:
        words = (done.stderr or done.stdout).decode(errors="replace").strip()[:200]
        message = f"{' '.join(probe)} ends with exit status {done.returncode}: {words or 'it printed nothing'}"
        raise DeviceError("no-compiler", message, help=processes.INSTALL)


def _linked(code: bytes, system: System) -> bytes:
    if _in_memory(system):
        file = os.memfd_create("kernel.o")
        try:
            os.write(file, code)
            return invoke([*linker_command(system), f"/proc/self/fd/{file}", "-o", "/dev/stdout"], system, files=[file])
        finally:
            os.close(file)
    with working_folder() as folder:
        path, made = Path(folder) / "kernel.o", Path(folder) / "kernel.bin"
        path.write_bytes(code)
        output = [f"/out:{made}"] if system.name == "windows" else ["-o", str(made)]
        invoke([*linker_command(system), str(path), *output], system)
        return made.read_bytes()


def working_folder() -> tempfile.TemporaryDirectory[str]:
    """A temporary folder for linking, to be used in a `with`. Raises DeviceError `no-room` if none can be created."""
    try:
        return tempfile.TemporaryDirectory(prefix="tilelang-")
    except OSError as error:
        message = f"a kernel is linked in a temporary folder, and none can be made: {error.strerror}"
        raise DeviceError("no-room", message, help="set TMPDIR to a folder that can be written") from None


def linker_command(system: System) -> tuple[str, ...]:
    """The command that links a shared library for a system, without its objects and its output."""
    found = toolchain()
    if not found.zig:
        return _system_linker(system, found)
    if system.name == "windows":
        # code with floats references it, and a C library would define it; its value is irrelevant
        return (*found.linker, "lld-link", "/dll", "/noentry", "/nodefaultlib", "/nologo", "/alternatename:_fltused=__ImageBase")
    if system.name == "macos":  # the wheel has no stand-alone linker for it
        return (*found.linker, "cc", "-target", f"{system.machine}-macos", "-shared")
    return (*found.linker, "ld.lld", "-shared", "-z", "defs", "--hash-style=gnu", "--threads=1")  # one thread, for one object


def _beside(name: str) -> str | None:
    """A program of the same version as a system's clang, else one without a version in its name."""
    return shutil.which(f"{name}-{_major(toolchain().version)}") or shutil.which(name)


def _system_linker(system: System, found: Toolchain) -> tuple[str, ...]:
    """The linker that comes with a system's clang. Raises DeviceError `no-compiler` if it has none for the system."""
    if system.name == "windows":
        lld = _beside("lld-link")
        if lld is None:
            raise DeviceError("no-compiler", f"{found.version} has no lld-link beside it, to link for Windows", help=wheels.CLANG)
        return (lld, "/dll", "/noentry", "/nodefaultlib", "/nologo", "/alternatename:_fltused=__ImageBase")
    lld = _beside("ld.lld")
    chosen = (f"-fuse-ld={lld}",) if lld is not None else ()
    defined = ("-Wl,-z,defs",) if system.name == "linux" else ()
    return (*found.linker, "-shared", "-nostdlib", "-Wno-unused-command-line-argument", *chosen, *defined, *_target(system))


def _target(system: System) -> Sequence[str]:
    return () if system.here else ("--target=" + system.triple,)
