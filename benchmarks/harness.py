"""Measuring several callables side by side, fairly: every benchmark of the project stands on this module.

Contestants take turns, round after round, so that a slow spell of the machine meets all of them. Each timed call follows an untimed one
of the same contestant (warm caches), and a pause separates the sides: thread pools of OpenBLAS and OpenMP spin for a while after their
work and take a core from whoever runs next. Absolute times of a shared machine mean little; `Comparison.ratio` is the median over the
rounds of a quotient whose two parts were measured in the same round, and that is what a table should show.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import importlib.metadata
import json
import os
import platform
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from tilelang.runtime.kernel import Kernel

# Whose versions a result is kept with.
PACKAGES = (
    "numpy", "torch", "numba", "llvmlite", "apache-tvm", "triton", "pyopencl", "pocl-binary-distribution", "pyhip-interface",
    "cuda-bindings", "cupy-cuda13x", "nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12", "nvidia-cublas", "nvidia-cudnn-cu13", "ziglang",
    "onnxruntime", "openvino", "jax",
)  # fmt: skip

FloatArray = npt.NDArray[np.float32]


@dataclasses.dataclass(frozen=True)
class Contestant:
    """Something to time. Contestants of one `side` share a thread pool and run without a pause between them."""

    name: str
    side: str
    call: Callable[[], object]


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What `compare` measured: for each contestant its seconds in every round, by the clock and of all its threads' processor time."""

    seconds: Mapping[str, tuple[float, ...]]
    processor_seconds: Mapping[str, tuple[float, ...]]

    def median_ms(self, name: str) -> float:
        """The median time of one contestant in milliseconds."""
        return float(np.median(self.seconds[name])) * 1e3

    def best_ms(self, name: str) -> float:
        """The shortest time of one contestant in milliseconds."""
        return min(self.seconds[name]) * 1e3

    def best_ratio(self, name: str, against: str) -> float:
        """The quotient of the shortest times: steadier than `ratio` where other processes take the cores now and then."""
        return min(self.seconds[against]) / min(self.seconds[name])

    def processor_ratio(self, name: str, against: str) -> float:
        """The quotient of median processor times, for two contestants of one side that both keep all cores busy.

        It holds on a machine whose cores others use too, where the clock tells little. Between sides it is meaningless: waiting
        threads of OpenMP spin.
        """
        return float(np.median(self.processor_seconds[against]) / np.median(self.processor_seconds[name]))

    def ratio(self, name: str, against: str) -> float:
        """How many times faster `name` is than `against`: the median of the rounds' quotients."""
        return float(np.median(np.array(self.seconds[against]) / np.array(self.seconds[name])))


def compare(contestants: Sequence[Contestant], rounds: int = 15, pause_s: float = 0.25) -> Comparison:
    """Times every contestant once in each of `rounds` rounds, with `pause_s` seconds at each change of sides.

    >>> compare([Contestant("nothing", "here", lambda: None)], rounds=3, pause_s=0).median_ms("nothing") < 1
    True
    """
    seconds: dict[str, list[float]] = {c.name: [] for c in contestants}
    processor_seconds: dict[str, list[float]] = {c.name: [] for c in contestants}
    side = ""
    for _ in range(rounds):
        for contestant in contestants:
            if contestant.side != side:
                time.sleep(pause_s)
                side = contestant.side
            contestant.call()
            start, processor_start = time.perf_counter(), time.process_time()
            contestant.call()
            seconds[contestant.name].append(time.perf_counter() - start)
            processor_seconds[contestant.name].append(time.process_time() - processor_start)
    return Comparison({n: tuple(v) for n, v in seconds.items()}, {n: tuple(v) for n, v in processor_seconds.items()})


def aligned_array(shape: tuple[int, ...], alignment_bytes: int = 4096, offset_bytes: int = 0) -> FloatArray:
    """A float32 array of zeros at a chosen address modulo `alignment_bytes`: NumPy's own large arrays start 16 bytes past a line."""
    count = int(np.prod(shape))
    memory = np.zeros(count * 4 + 2 * alignment_bytes, np.uint8)
    start = -memory.ctypes.data % alignment_bytes + offset_bytes
    return memory[start : start + count * 4].view(np.float32).reshape(shape)


ENTRY = """
__attribute__((visibility("default")))
void kernel_main(void* const* arguments, char* scratch, long long first, long long last) {{
  for (long long n = first; n < last; n++) {{
    const long long block[3] = {{n % {x}, n / {x} % {y}, n / {xy}}};
    kernel_block({arguments}(float*)scratch, block);
  }}
}}
"""


class HostBench:
    """Kernels in C over NumPy arrays in place, run by the threads that run the compiler's own kernels."""

    def __init__(self) -> None:
        from tilelang.lowering.drivers import host

        self.device = host.choose()
        self.connection = host.connect(self.device)

    def launch(self, source: str, grid: tuple[int, ...], arrays: Sequence[FloatArray]) -> Callable[[], None]:
        """Compiles a text that defines `kernel_block`, whose arguments are the arrays, aligned memory of a thread's own (as much as the
        device has for shared arrays), and a block's three numbers; the result runs it for every block of `grid`."""
        x, y, _ = (*grid, 1, 1, 1)[:3]
        each = "".join(f"arguments[{n}], " for n in range(len(arrays)))
        module = self.connection.build(source + ENTRY.format(x=x, y=y, xy=x * y, arguments=each))
        function = module.function("kernel_main", grid, 1, self.device.shared_bytes)
        held = [self.connection.host_array(a, "both", None) for a in arrays]
        buffers = [h.buffer for h in held]

        def run(held: object = held) -> None:  # which keeps the arrays
            function(buffers)

        return run


def launcher(
    kernel: Kernel, arrays: Mapping[str, npt.NDArray[Any]], outputs: Collection[str]
) -> tuple[Callable[[], object], Callable[[], None]]:
    """A compiled kernel over NumPy arrays by tensor name, on any target: what launches it, what waits for its results. Which arrays its
    launches take is looked up once, as a peer's binding is made once."""
    connection = kernel._connection
    held = {name: connection.host_array(a, "output" if name in outputs else "input", None) for name, a in arrays.items()}
    launches = kernel._with({**kernel._take_workspace(None), **{name: h.buffer for name, h in held.items()}})

    def begin() -> None:
        for function, given in launches:
            function(given)

    def finish() -> None:
        connection.finish()
        for name in outputs:
            held[name].land()

    return begin, finish


def environment(device: str) -> dict[str, object]:
    """What a result must be read with: device, processor, threads, versions, load, date."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "schema": 1,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "device": device,
        "processors": os.cpu_count(),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 2),
        "versions": versions,
    }


def recorded(path: Path) -> list[dict[str, Any]]:
    """The rows that a file holds, one JSON line each."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def record(path: Path, rows: Sequence[Mapping[str, object]], device: str) -> None:
    """Appends one JSON line a row, each with its environment; all of them, or none where the file cannot be written."""
    head = environment(device)
    text = "".join(json.dumps({**head, **row}, sort_keys=True) + "\n" for row in rows).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        if end:
            file.seek(end - 1)
            text = text if file.read(1) == b"\n" else b"\n" + text  # after a line that nobody ended
        try:
            while text:
                text = text[file.write(text) :]
        except OSError:
            with contextlib.suppress(OSError):
                file.truncate(end)
            raise


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of text in columns; the first row is the heading, the first column is flush left."""
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    lines = [
        "  ".join(t.ljust(w) if c == 0 else t.rjust(w) for c, (t, w) in enumerate(zip(row, widths, strict=True))) for row in rows
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])
