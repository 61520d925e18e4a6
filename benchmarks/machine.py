"""The machine that figures are from, and NumPy's products at their best: which kernel OpenBLAS uses, chosen by itself.

`for_best_products` starts a benchmark anew without the two environment variables by which OpenBLAS can be told another kernel or cache.
"""

from __future__ import annotations

import dataclasses
import datetime
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tilelang.lowering.drivers import host
from tilelang.lowering.drivers.processor import processor

TELLS_OPENBLAS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
ROOT = Path(__file__).resolve().parent.parent


@dataclasses.dataclass(frozen=True)
class Machine:
    """model: of the processor; cores: how many threads kernels run on; vectors: its extensions for vectors; commit: as measured."""

    model: str
    cores: int
    vectors: tuple[str, ...]
    caches: tuple[str, ...]
    system: str
    commit: str
    date: str

    def __str__(self) -> str:
        vectors = " ".join(self.vectors) or "no extensions for vectors"
        return f"{self.model}, {self.cores} threads, {vectors}; {self.system}; commit {self.commit}, {self.date}"


def machine() -> Machine:
    """The machine here, now."""
    found, device = processor(), host.choose()
    wanted = ("avx", "fma", "amx", "neon", "asimd", "sve", "bf16", "i8mm")
    vectors = tuple(sorted(f for f in found.features if f.startswith(wanted)))
    numbers = f"{found.name} (family {found.family}, model {found.model})"
    date = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return Machine(numbers, device.compute_units, vectors, tuple(map(str, found.caches)), found.system, revision(), date)


def revision() -> str:
    """The commit that is measured, where this is a checkout: schedules change with it."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def for_best_products(arguments: Sequence[str]) -> None:
    """Replaces this process by the same one without what would tell OpenBLAS a kernel, where that is set: `sys.argv` is `arguments`.

    torch.compile then compiles in this process: others would be forked from it, which other libraries' threads do not survive.
    """
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    if any(name in os.environ for name in TELLS_OPENBLAS):
        kept = {name: value for name, value in os.environ.items() if name not in TELLS_OPENBLAS}
        print(f"started anew without {' and '.join(n for n in TELLS_OPENBLAS if n in os.environ)}", flush=True)
        sys.stdout.flush()
        os.execve(sys.executable, [sys.executable, *arguments], kept)


def openblas() -> str:
    """The kernel that NumPy's OpenBLAS uses and its threads; says so where they are unknown."""
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return "unknown: threadpoolctl is not installed"
    libraries = [found for found in threadpool_info() if found.get("internal_api") == "openblas"]
    if not libraries:
        return "NumPy has no OpenBLAS"
    said = [f"OpenBLAS {b.get('version')}, kernel {b.get('architecture')}, {b.get('num_threads')} threads" for b in libraries]
    return "; ".join(dict.fromkeys(said))
