"""Programs run on a processor of another kind: all of a batch in one executable without a C library, which an emulator runs once.

The executable gets an image of memory that holds every array between strips of bytes that nobody may touch, and gives it back after
the kernels. Its linker and compiler are those of the kernels themselves.
"""

from __future__ import annotations

import dataclasses
import math
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilelang.lowering import ir
from tilelang.lowering.compilers import native
from tilelang.lowering.targets import cpu
from tilelang.lowering.targets.c.emitter import emit, kernel_names
from tilelang.testing.checking import DeviceRun, joined, stored

FREESTANDING = Path(__file__).parent / "freestanding.c"
SECONDS = 300  # for one run under an emulator
STRIP, UNTOUCHED, UNWRITTEN = 256, 0xA5, 0xFF

# How an executable for a kind of machine is started, and for want of what it is not.
EMULATORS = {"aarch64": ("qemu-aarch64-static", "qemu-aarch64"), "x86_64": ("qemu-x86_64-static", "qemu-x86_64")}


def starter(architecture: str) -> list[str]:
    """What an executable's command line begins with; skips where no emulator for its machine is installed."""
    system = native.system_of(architecture)
    if system.here:
        return []
    for name in EMULATORS[system.machine]:
        if (found := shutil.which(name)) is not None:
            return [found, "-cpu", "max"]
    pytest.skip(f"{EMULATORS[system.machine][1]} is not installed (apt-get install qemu-user-static)")


def linked(objects: Sequence[bytes], architecture: str, folder: Path) -> Path:
    """A static executable of objects that need no library."""
    made, system = folder / "program", native.system_of(architecture)
    for number, code in enumerate(objects):
        (folder / f"{number}.o").write_bytes(code)
    linker = [*native.toolchain().linker, "ld.lld"] if native.toolchain().zig else [shutil.which("ld.lld") or "ld.lld"]
    native.invoke([*linker, "-static", *(str(folder / f"{n}.o") for n in range(len(objects))), "-o", str(made)], system)
    made.chmod(0o755)
    return made


@dataclasses.dataclass
class _Image:
    """Memory as bytes: arrays with their offsets, between strips."""

    parts: list[tuple[int, np.ndarray[Any, Any] | None, int]] = dataclasses.field(default_factory=list)
    end: int = STRIP

    def add(self, bytes: int, content: np.ndarray[Any, Any] | None = None) -> int:
        """A place of that many bytes; content: what it holds at first, else what no kernel expects."""
        offset = self.end
        self.parts.append((offset, content, bytes))
        self.end = -(-(offset + bytes + STRIP) // 64) * 64
        return offset

    def data(self) -> np.ndarray[Any, Any]:
        """All of it."""
        found = np.full(self.end, UNTOUCHED, np.uint8)
        for offset, content, bytes in self.parts:
            found[offset : offset + bytes] = UNWRITTEN if content is None else content.reshape(-1).view(np.uint8)
        return found

    def touched(self, after: np.ndarray[Any, Any]) -> list[int]:
        """The offsets of the arrays next to strips that changed."""
        found, offsets = [], [*(offset for offset, _, _ in self.parts), self.end]
        for (offset, _, bytes), following in zip(self.parts, offsets[1:], strict=True):
            before, behind = after[offset - STRIP : offset], after[offset + bytes : following]
            found += [offset] if (before != UNTOUCHED).any() or (behind != UNTOUCHED).any() else []
        return found


def run(items: Sequence[tuple[ir.Program, Mapping[str, Any]]], architecture: str) -> list[DeviceRun]:
    """The outputs of each program for its inputs on a machine of that architecture; skips where it can be neither run nor emulated."""
    start = starter(architecture)
    whole = joined([program for program, _ in items])
    names = kernel_names(whole, cpu.DIALECT)
    image, launches, placed = _Image(), list[str](), list[dict[str, int]]()
    scratch = image.add(max((k.shared_bytes for k in whole.kernels), default=0))
    for i, (program, arrays) in enumerate(items):
        places = {b.name: image.add(b.bytes, stored(arrays[b.name], b) if b.role == "input" else None) for b in program.buffers}
        placed.append(places)
        for j, k in enumerate(program.kernels):
            offsets = ", ".join(str(places[b.name]) for b in k.arguments)
            function = names[f"p{i}_{j}_{k.name}"]
            launches.append(f"    {{{function}, {math.prod(k.grid)}, {scratch}, {len(k.arguments)}, {{{offsets}}}}},")
    text = _table(sorted(names.values()), launches, image.end) + FREESTANDING.read_text(encoding="utf-8")
    system = native.system_of(architecture)
    with tempfile.TemporaryDirectory() as folder:
        objects = [native.object_code(emit(whole, cpu.DIALECT), system), native.object_code(text, system)]
        program_file = linked(objects, architecture, Path(folder))
        done = subprocess.run([*start, str(program_file)], input=image.data().tobytes(), capture_output=True, timeout=SECONDS)
    count = done.stderr.count(b".")
    assert done.returncode == 0, f"ended with {done.returncode} in launch {launches[count - 1] if count else 'none'}"
    after = np.frombuffer(done.stdout, np.uint8)
    touched = set(image.touched(after))
    return [
        DeviceRun(
            {b.name: _array(after, places[b.name], b) for b in program.buffers if b.role == "output"},
            [*(name for name, offset in places.items() if offset in touched), *(["scratch"] if scratch in touched else [])],
        )
        for (program, _), places in zip(items, placed, strict=True)
    ]


def _table(functions: Sequence[str], launches: Sequence[str], bytes: int) -> str:
    declared = [f"void {name}(void *const *, char *, long long, long long);" for name in functions]
    struct = (
        "static const struct { void (*run)(void *const *, char *, long long, long long); long long blocks, scratch; int count;"
    )
    head = [f"#define IMAGE_BYTES {bytes}", f"#define COUNT {len(launches)}", *declared]
    return "\n".join([*head, f"{struct} long long offsets[64]; }} launches[] = {{", *launches, "};", ""])


def _array(memory: np.ndarray[Any, Any], offset: int, buffer: ir.Buffer) -> Any:
    return memory[offset : offset + buffer.bytes].copy().view(buffer.dtype.numpy).reshape(buffer.shape)
