"""Kernels written by hand in C, in the form in which the emitter's are called, and a connection that compiles them with zig's clang."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilelang.errors import DeviceError
from tilelang.lowering.compilers import clang
from tilelang.lowering.compilers.compiled import Compiled, kept
from tilelang.lowering.drivers import host
from tilelang.lowering.drivers.cache import BinaryCache, key
from tilelang.lowering.drivers.interface import Device

SOURCE = """
typedef long long L;
#define KERNEL(name) __attribute__((visibility("default"))) void name(void *const *arguments, char *scratch, L first, L last)
#define INTS(n) ((int *)arguments[n])
KERNEL(nothing) {}
KERNEL(advance) { for (L n = first; n < last; n++) INTS(0)[n] = 3 * INTS(0)[n] + 1; }
KERNEL(doubled) { for (L n = first; n < last; n++) ((float *)arguments[1])[n] = 2 * ((const float *)arguments[0])[n]; }
KERNEL(rounded) { for (L n = first; n < last; n++) ((float *)arguments[0])[n] += 1e-9f; }
// Which worker ran a block, by its scratch memory, and in which place of the order.
KERNEL(ordered) { for (L n = first; n < last; n++) INTS(1)[(*INTS(0))++] = (int)n; }
KERNEL(placed) { for (L n = first; n < last; n++) ((char **)arguments[0])[n] = scratch; }
// Fills `INTS(1)[0]` bytes of scratch with a block's number and tells whether they still hold it.
KERNEL(filled) {
  const int bytes = *INTS(1);
  for (L n = first; n < last; n++) {
    for (int i = 0; i < bytes; i++) scratch[i] = (char)n;
    int same = 1;
    for (int i = 0; i < bytes; i++) same &= ((volatile char *)scratch)[i] == (char)n;
    INTS(0)[n] += same;
  }
}
// Works for some time in every block.
KERNEL(slow) {
  for (L n = first; n < last; n++) {
    volatile int spin = 0;
    for (int i = 0; i < *INTS(1); i++) spin = spin + 1;
    INTS(0)[n] += 1;
  }
}
"""

asked: list[str] = []  # keys of what was not found in a cache


def compile_source(source: str, architecture: str, options: Sequence[str] = (), cache: BinaryCache | None = None) -> Compiled:
    """A shared library of a C text for this machine."""
    assert architecture == "native"
    name = key(["test", clang.version(), source, *options])
    found = kept(cache, name)
    if found is not None:
        return found
    made = _compiled(source, tuple(options))
    asked.append(name)
    if cache is not None:
        cache.put(name, made.to_bytes())
    return made


@functools.cache
def _compiled(source: str, options: tuple[str, ...]) -> Compiled:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "kernel.c").write_text(source)
        flags = ["-O2", "-march=native", "-fPIC", "-ffreestanding", *options]
        for arguments in (
            ["clang", *flags, "-c", "kernel.c", "-o", "kernel.o"],
            ["ld.lld", "-shared", "kernel.o", "-o", "kernel.so"],
        ):
            done = subprocess.run([str(clang.program()), *arguments], capture_output=True, text=True, cwd=path)
            if done.returncode:
                raise DeviceError("compile-failed", done.stderr, help="another text")
        return Compiled("native", clang.version(), (path / "kernel.so").read_bytes(), (), "")


class Connection(host.Connection):
    """A connection whose compiler is the one above."""

    def _compile(self, source: str, options: Sequence[str], cache: BinaryCache | None) -> Any:
        return compile_source(source, self.device.architecture, options, cache)


def connection(threads: int | None = None) -> Connection:
    """A connection of its own with a pool of so many threads."""
    (device,) = host.devices()
    return Connection(device if threads is None else of_threads(device, threads))


def of_threads(device: Device, threads: int) -> Device:
    import dataclasses

    return dataclasses.replace(device, compute_units=threads)
