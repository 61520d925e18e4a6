"""Runs the CUDA or HIP text of kernels on NumPy arrays, in a separate process."""

from __future__ import annotations

import atexit
import dataclasses
import functools
import json
import platform
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tilelang.errors import ComputationError, DeviceError
from tilelang.lowering.compilers import clang, wheels
from tilelang.lowering.drivers.tensor_maps import TensorMap
from tilelang.testing.emulation import text

_HERE = Path(__file__).parent
_FAULT = 13
_TURNS = {"ascending": 0, "descending": 1}
_WHEN = {"early": 0, "late": 1}
_SHUFFLED, _BY_COIN = 2, 2
HEADERS = ("language.h", "copies.h", "warp_matrix.h", "warpgroup_matrix.h", "wave_matrix.h", "shuffle.h")
_INCLUDES = "".join(f'#include "{header}"\n' for header in HEADERS)
_OPTIONS = (
    "-std=c++20", "-O1", "-fPIC", "-nostdinc", "-nostdinc++", "-fno-exceptions", "-fno-rtti", "-fno-strict-aliasing",
    "-fno-threadsafe-statics", "-fsigned-char", "-fdeclspec", "-ffp-contract=on",
    "-ftrivial-auto-var-init=pattern", "-w", "-Werror=return-type",
    "-fsanitize=thread,alignment,bounds,integer-divide-by-zero",
)  # fmt: skip


_CPP, _HEADER = ("-x", "c++"), ("-x", "c++-header")


class EmulationFault(DeviceError):
    """A kernel did something that a device would not: an access out of bounds, a deadlock, lanes that do not converge."""


@dataclasses.dataclass(frozen=True)
class Mapped:
    """An array that is passed to a kernel as a tensor map."""

    array: str
    map: TensorMap

    def encoded(self) -> bytes:
        """The emulation's encoding (Map in copies.h), innermost dimension first. The process adds the address."""
        m = self.map
        rank, fill = len(m.shape), (0,) * (5 - len(m.shape))
        words = (*m.shape[::-1], *fill, *m.box[::-1], *fill)
        return struct.pack("<Q4I10I5Q", 0, rank, m.dtype.bytes, m.swizzle_bytes, 0, *words, *m.strides_bytes[::-1], *fill)


@dataclasses.dataclass(frozen=True)
class Launch:
    """One launch of a kernel. arguments: names of arrays, arrays by tensor maps, NumPy scalars, or bytes, in the kernel's order."""

    kernel: str
    grid: tuple[int, int, int]
    threads: int
    arguments: tuple[Any, ...]


def absent() -> str | None:
    """The reason why no kernel can be emulated here; None if kernels can be."""
    if sys.platform != "linux" or platform.libc_ver()[0] != "glibc":
        return "kernels are emulated on Linux with the GNU C library only"
    if clang.program() is None:
        return f"kernels are emulated by a compiler that is not installed: {wheels.INSTALL}, or ziglang"
    return None


def run(
    source: str,
    launches: Sequence[Launch],
    arrays: Mapping[str, np.ndarray[Any, Any]],
    *,
    warp: int = 32,
    shared_bytes: int = 0,
    turns: str | int = "ascending",
    landing: str | int = "late",
    emulations: str = "",
    timeout_s: float = 600,
) -> dict[str, np.ndarray[Any, Any]]:
    """Runs launches in order and returns the arrays after them; the given arrays are not changed.

    source: CUDA or HIP C++. warp: the number of threads of a warp. shared_bytes: the size of the dynamic shared memory of the launch.
    turns: the order in which the threads of a block run, "ascending", "descending" or shuffled by a seed. landing: when asynchronous
    operations complete: "early" (when issued), "late" (at the wait), or each at random by a seed. emulations: C++ functions for the
    caller's own wrappers. Raises EmulationFault, and DeviceError if the text does not compile or there is no compiler.
    """
    reason = absent()
    if reason is not None:
        raise DeviceError("no-emulation", reason, help="use the simulator, which needs none of this: tl.simulate(kernel)")
    names = sorted({launch.kernel for launch in launches})
    library = _compiled(translation_unit(source, names, shared_bytes, emulations))
    plan: dict[str, Any] = {"arrays": [], "launches": []}
    begin = 0
    for name, array in arrays.items():
        plan["arrays"].append({"name": name, "begin": begin, "bytes": array.nbytes})
        begin += -(-array.nbytes // 64) * 64
    seed = next((s for s in (turns, landing) if isinstance(s, int)), 0)
    how = {
        "warp": warp,
        "turns": _choice("turns", turns, _TURNS, _SHUFFLED),
        "when": _choice("landing", landing, _WHEN, _BY_COIN),
    }
    for launch in launches:
        arguments = [_argument(a) for a in launch.arguments]
        plan["launches"].append(
            {"symbol": f"emulated_call_{launch.kernel}", "grid": list(launch.grid), "threads": launch.threads, "seed": seed,
             "cluster": text.cluster_of(source, launch.kernel), "arguments": arguments, **how}
        )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="tilelang-emulation-") as folder:
        return _run_process(Path(folder), library, plan, arrays, begin, timeout_s)


def _choice(what: str, value: str | int, table: Mapping[str, int], seeded: int) -> int:
    if isinstance(value, int):
        return seeded
    if value not in table:
        raise ComputationError("emulation", f"{what}={value!r}", help=f"{' or '.join(map(repr, table))}, or a seed")
    return table[value]


def _argument(given: Any) -> dict[str, str]:
    if isinstance(given, str):
        return {"array": given}
    if isinstance(given, Mapped):
        return {"bytes": given.encoded().hex(), "address_of": given.array}
    return {"bytes": (given if isinstance(given, bytes) else given.tobytes()).hex()}


def _run_process(
    folder: Path,
    library: bytes,
    plan: dict[str, Any],
    arrays: Mapping[str, np.ndarray[Any, Any]],
    size: int,
    timeout_s: float,
) -> dict[str, np.ndarray[Any, Any]]:
    (folder / "kernel.so").write_bytes(library)
    (folder / "plan.json").write_text(json.dumps(plan))
    data = np.zeros(max(size, 1), np.uint8)
    for entry, array in zip(plan["arrays"], arrays.values(), strict=True):
        data[entry["begin"] :][: entry["bytes"]] = np.frombuffer(array.tobytes(), np.uint8)
    data.tofile(folder / "data")
    command = [sys.executable, "-I", "-S", str(_HERE / "worker.py"), str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        raise EmulationFault("emulation", f"the kernels did not end in {timeout_s:g} s", help="use smaller sizes") from None
    if done.returncode == _FAULT:
        raise EmulationFault("emulation", done.stderr.strip(), help="the text does what no device would do")
    if done.returncode:
        raise EmulationFault("emulation", f"the process ended with {done.returncode}\n{done.stderr}", help="report it")
    data = np.fromfile(folder / "data", np.uint8)
    return {
        name: data[entry["begin"] :][: entry["bytes"]].view(array.dtype).reshape(array.shape)
        for entry, (name, array) in zip(plan["arrays"], arrays.items(), strict=True)
    }


# ---------------------------------------------------------------- the library


@functools.cache
def wrappers() -> dict[str, str]:
    """The available emulations, by the name of the function that they replace."""
    found: dict[str, str] = {}
    for file in sorted((_HERE / "wrappers").glob("*.h")):
        found |= text.definitions_by_name(file.read_text())
    return found


def translation_unit(source: str, kernels: Sequence[str], shared_bytes: int = 0, emulations: str = "") -> str:
    """The C++ text to compile: the headers, the source without device-only text, and an entry point for each kernel.

    Raises DeviceError if a device-only function has no emulation.
    """
    known = wrappers() | text.definitions_by_name(emulations)
    defined = list(text.definitions(source))
    unknown = dict.fromkeys(d.name for d in defined if d.device_only and d.name not in known)
    if unknown:
        help = "give emulations= a C++ function of that name"
        raise DeviceError("no-emulation", f"nothing emulates {', '.join(unknown)}", help=help)
    lines = ['#include "shared.h"', '#line 1 "kernel"', text.with_sized_arrays(text.replaced(source, known), shared_bytes)]
    scopes = {d.name: d.scope for d in defined}
    for name in kernels:
        lines.append(
            f'extern "C" void emulated_call_{name}(void** values) {{ emulated::call({scopes.get(name, "")}{name}, values); }}'
        )
    return _INCLUDES + "\n".join(lines) + "\n"


@functools.lru_cache(maxsize=64)
def _compiled(unit: str) -> bytes:
    runtime = _runtime()
    with tempfile.TemporaryDirectory(prefix="tilelang-emulation-") as name:
        folder = Path(name)
        (folder / "kernel.cpp").write_text(unit.removeprefix(_INCLUDES))
        precompiled = ("-include-pch", str(runtime / "headers.pch"), "-fpch-codegen")
        _clang(folder, *_CPP, *precompiled, "-c", "kernel.cpp", "-o", "kernel.o")
        _tool(folder, "ld.lld", "-shared", "kernel.o", str(runtime / "headers.o"), "-o", "kernel.so")
        return (folder / "kernel.so").read_bytes()


@functools.cache
def _runtime() -> Path:
    """A folder with the precompiled headers and the code of their functions, which all kernels of this process share."""
    made = tempfile.TemporaryDirectory(prefix="tilelang-emulation-")
    atexit.register(made.cleanup)
    folder = Path(made.name)
    (folder / "headers.h").write_text(_INCLUDES)
    _clang(folder, *_HEADER, "-fpch-codegen", "headers.h", "-o", "headers.pch")
    _clang(folder, "-fpch-codegen", "-c", "headers.pch", "-o", "headers.o")
    return folder


def _clang(folder: Path, *arguments: str) -> None:
    native = "-march=native" if platform.machine() == "x86_64" else "-mcpu=native"
    target = f"--target={platform.machine()}-linux-gnu"
    _tool(folder, "clang", *_OPTIONS, target, native, f"-I{_HERE}", f"-I{_HERE / 'include'}", *arguments)


def _tool(folder: Path, *command: str) -> None:
    done = subprocess.run([str(clang.program()), *command], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DeviceError("compile-failed", f"the emulation's compiler refuses the kernel\n{done.stderr}", help="report it")
