"""Writes an export to a folder: all files are generated first, then written, and only files of an earlier export are replaced.

The folder holds one export. Its list of files with their hashes, `export.sha256` (readable by `sha256sum -c`), identifies the
unmodified files of an earlier export, which are replaced. Any other file of the same name is kept, and the export is refused.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from tilelang.computations.computation import Computation
from tilelang.errors import DeviceError, brief, is_path
from tilelang.lowering import ir
from tilelang.lowering.compilers import native
from tilelang.lowering.compilers.native import System
from tilelang.lowering.export import texts
from tilelang.lowering.export.libraries import Libraries, definitions, libraries
from tilelang.lowering.export.signature import Signature, signature

LIST = "export.sha256"


def export(
    computation: Computation, program: ir.Program, source: str, folder: str | os.PathLike[str], name: str, architecture: str
) -> tuple[Path, ...]:
    """Writes a program for C into a folder, which is created if necessary; returns the files in the order of the readme.

    source: the program's text in the dialect cpu. name: of files and functions. architecture: as in native.py.

    Raises DeviceError: `export-name`; `export-folder` if the folder cannot be written; `export-exists` if a file is in the way;
    `export-toolchain`, and compilation errors.
    """
    if not is_path(folder):
        raise DeviceError("export-folder", f"{brief(folder)} is not a folder", help="pass the path of a folder")
    made, place = signature(computation, program, name), Path(folder)
    system = native.system_of(architecture)
    processor = native.processor(architecture)
    words = f"{processor}, {_SYSTEMS[system.name]} on {system.machine}"
    files = {f"{name}.c": source.encode(), f"{name}.h": texts.header(made, words).encode()}
    files[f"{name}_launch.c"] = texts.launcher(made).encode()
    _check(place, [*files, "main.c", "README.txt"])
    built = libraries(made, source, files[f"{name}.h"].decode(), files[f"{name}_launch.c"].decode(), architecture)
    files |= {"main.c": texts.main(made).encode(), **built.files}
    files["README.txt"] = _readme(made, built, files, system, processor, words).encode()
    _check(place, files)
    listed = "".join(f"{hashlib.sha256(data).hexdigest()}  {file}\n" for file, data in files.items())
    _write(place, {**files, LIST: listed.encode()})
    return tuple(place / file for file in files)


_SYSTEMS = {"linux": "Linux", "macos": "macOS", "windows": "Windows"}


def _check(folder: Path, files: Mapping[str, bytes] | list[str]) -> None:
    """Raises DeviceError if a file is in the way of an export."""
    known = _known(folder)
    for file in files:
        try:
            found = hashlib.sha256((folder / file).read_bytes()).hexdigest()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise _unwritable(folder, error) from None
        if found != known.get(file):
            message = f"{folder / file} exists, but was not written by an export, or has changed since"
            raise DeviceError("export-exists", message, help="use another folder, or remove the file")


def _known(folder: Path) -> dict[str, str]:
    """The hashes of the files that the previous export into a folder wrote."""
    try:
        lines = (folder / LIST).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):  # no folder, no list, or another format
        return {}
    return {file: digest for digest, _, file in (line.partition("  ") for line in lines)}


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes the files, each completely; their list last."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, data in files.items():
            beside = folder / f".{file}.{os.getpid()}"
            try:
                beside.write_bytes(data)
                beside.replace(folder / file)
            finally:
                beside.unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(folder, error) from None


def _unwritable(folder: Path, error: OSError) -> DeviceError:
    return DeviceError(
        "export-folder", f"{folder} cannot be written: {error.strerror or error}", help="use a folder that can be written"
    )


# ---------------------------------------------------------------- readme


def _readme(made: Signature, built: Libraries, files: Mapping[str, bytes], system: System, processor: str, words: str) -> str:
    source = files[f"{made.name}.c"].decode()
    name, windows = made.name, system.name == "windows"
    about = {
        f"{name}.c": "the kernels", f"{name}.h": "the functions and their arguments",
        f"{name}_launch.c": "the functions, which run the kernels on one or several threads", "main.c": "a program that calls them",
        built.static: "static library", built.shared: "shared library", f"{name}.lib": "the import library of the .dll",
    }  # fmt: skip
    target = "" if system.here else f" --target={system.triple}"
    compiler, threads, program = ("cl", "", "main") if windows else ("cc", " -pthread", "./main")
    named = " ".join(definitions(made))
    picked = [
        flag
        for flag in (*native.FLAGS, *native.own_options(source), *system.flags)
        if flag != "-w" and not flag.startswith(("-march", "-mcpu", "--target"))
    ]
    own = f"{'-march' if system.machine == 'x86_64' else '-mcpu'}={processor}"
    if windows:
        static, shared = f"cl main.c {built.static}", f"cl main.c {name}.lib"
    else:
        rpath = " -Wl,-rpath,." if system.name == "linux" else " -Wl,-rpath,@loader_path"
        static = f"{compiler} -O2 main.c {built.static}{threads} -o main"
        shared = f"{compiler} -O2 main.c -L. -l{name}{rpath}{threads} -o main"
    fields = {
        "system": words,
        "compiler": native.version(),
        "oldest": str(native.OLDEST_CLANG),
        "static": static,
        "shared": shared,
        "program": program,
        "kernels": f"clang{target} {own} {' '.join(picked)} {named} -c {name}.c",
        "launcher": f"{compiler} -O2{' -fPIC' if not windows else ''} -c {name}_launch.c",
        "notes": _notes(made, system, name),
    }
    listed = [(file, about[file]) for file in [*files, "README.txt"] if file in about]
    return texts.readme(made, fields, listed)


def _notes(made: Signature, system: System, name: str) -> str:
    notes = [
        f"The libraries run only on processors with the instructions of the one named above; on others {name}_run ends with a signal."
    ]
    if made.scratch_bytes or made.workspace_bytes:
        notes.append(
            f"If you call often, pass {name}_memory_bytes(threads) bytes of memory; otherwise each call allocates and frees them."
        )
    if system.name == "linux":
        notes.append("The shared library uses malloc and the thread functions of the program that loads it.")
    return "\n".join(notes)
