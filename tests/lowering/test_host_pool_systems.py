"""The pool's C for every system and processor: it compiles, links, and needs no library. Only this machine's is run, elsewhere."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

from tilelang.lowering.compilers import clang
from tilelang.lowering.drivers import host_pool


def undefined(target: str, folder: Path) -> set[str]:
    """The symbols that the pool's object file for another system leaves undefined."""
    made = folder / f"{target}.o"
    position = [] if "windows" in target else ["-fPIC"]
    atomics = ["-mno-outline-atomics"] if target == "aarch64-linux-gnu" else []
    source = str(host_pool.SOURCE_FILE)
    arguments = ["clang", f"--target={target}", "-O2", "-Wall", "-Werror", *position, *atomics, "-c", source, "-o", str(made)]
    done = subprocess.run([str(clang.program()), *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    data = made.read_bytes()
    return {"linux": elf_undefined, "macos": macho_undefined, "windows": coff_undefined}[target.split("-")[1]](data)


def elf_undefined(data: bytes) -> set[str]:
    (sections,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    found = set()
    for n in range(count):
        kind, _, _, offset, length, link = struct.unpack_from("<IQQQQI", data, sections + n * size + 4)
        if kind != 2:  # the table of symbols
            continue
        (names,) = struct.unpack_from("<Q", data, sections + link * size + 24)
        for at in range(offset + 24, offset + length, 24):
            name, _, _, section = struct.unpack_from("<IBBH", data, at)
            if section == 0:
                found.add(text_at(data, names + name))
    return found


def macho_undefined(data: bytes) -> set[str]:
    (commands,) = struct.unpack_from("<I", data, 16)
    at, found = 32, set()
    for _ in range(commands):
        command, size = struct.unpack_from("<II", data, at)
        if command == 2:  # LC_SYMTAB
            symbols, count, names = struct.unpack_from("<III", data, at + 8)
            for n in range(count):
                name, kind = struct.unpack_from("<IB", data, symbols + 16 * n)
                if kind & 0x0E == 0 and kind & 0xE0 == 0:
                    found.add(text_at(data, names + name))
        at += size
    return found


def coff_undefined(data: bytes) -> set[str]:
    symbols, count = struct.unpack_from("<II", data, 8)
    names, found, n = symbols + 18 * count, set(), 0
    while n < count:
        short, (zero, place) = data[symbols + 18 * n :][:8], struct.unpack_from("<II", data, symbols + 18 * n)
        section, kind, more = struct.unpack_from("<hxxBB", data, symbols + 18 * n + 12)
        if section == 0 and kind == 2:
            found.add(short.rstrip(b"\0").decode() if zero else text_at(data, names + place))
        n += 1 + more
    return found


def text_at(data: bytes, begin: int) -> str:
    return data[begin : data.index(b"\0", begin)].decode()


@pytest.mark.parametrize(
    "target",
    ["x86_64-linux-gnu", "aarch64-linux-gnu", "aarch64-macos", "x86_64-macos", "x86_64-windows-gnu", "aarch64-windows-gnu"],
)
def test_the_pool_compiles_for_other_systems_and_needs_no_library(target: str, tmp_path: Path) -> None:
    """macOS and Windows give their functions by address; this test does not run what it compiles."""
    assert undefined(target, tmp_path) == set()


@pytest.mark.parametrize("target", ["x86_64-linux-gnu", "aarch64-macos", "x86_64-windows-gnu"])
def test_undefined_symbols_are_found(target: str, tmp_path: Path) -> None:
    """What the test above relies on."""
    source, made = tmp_path / "a.c", tmp_path / "a.o"
    source.write_text("extern int a_symbol_of_a_library(void);\nint f(void) { return a_symbol_of_a_library(); }")
    subprocess.run([str(clang.program()), "clang", f"--target={target}", "-c", str(source), "-o", str(made)], check=True)
    read = {"linux": elf_undefined, "macos": macho_undefined, "windows": coff_undefined}[target.split("-")[1]]
    assert {name.removeprefix("_") for name in read(made.read_bytes())} == {"a_symbol_of_a_library"}


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_pool_links_for_windows_and_linux_without_libraries(machine: str, tmp_path: Path) -> None:
    source, program = str(host_pool.SOURCE_FILE), str(clang.program())
    for system, link in (
        ("linux-gnu", ["ld.lld", "-shared", "--no-undefined"]),
        (
            "windows-gnu",
            ["lld-link", "/dll", "/noentry", "/nodefaultlib", f"/machine:{'x64' if machine == 'x86_64' else 'arm64'}"],
        ),
    ):
        made, library = str(tmp_path / f"{system}.o"), str(tmp_path / f"{system}.library")
        options = ["-O2"] + (["-fPIC"] if "linux" in system else [])
        options += ["-mno-outline-atomics"] if (machine, system) == ("aarch64", "linux-gnu") else []
        subprocess.run([program, "clang", f"--target={machine}-{system}", *options, "-c", source, "-o", made], check=True)
        out = f"/out:{library}" if "windows" in system else f"-o{library}"
        done = subprocess.run([program, *link, made, out], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert b"host_pool_launch" in Path(library).read_bytes()
