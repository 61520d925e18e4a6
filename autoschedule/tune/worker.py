"""The process in which candidates run: reads texts, writes bytes of results and times.

`measure.py` starts it, and restarts it when a candidate crashes it. Requests are pickled on standard input, from the parent alone;
answers are lines of JSON, so a process that a broken kernel has corrupted cannot run code in the parent. A request that exceeds its
time limit ends the process by an alarm, wherever it waits, even if the parent is gone.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import pickle
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from tilelang.errors import TileLangError
from tilelang.lowering.drivers import interface as drivers
from tilelang.lowering.drivers.cache import BinaryCache

MOST_CALLS = 1 << 14  # of one sample: a grid without blocks takes no time


@dataclasses.dataclass(frozen=True)
class Launch:
    """One kernel of a candidate. arguments: tensors by name; maps: of boxes of tensors, each with the tensor's name."""

    name: str
    grid: tuple[int, int, int]
    threads: int
    shared_bytes: int
    arguments: tuple[str, ...]
    maps: tuple[tuple[str, Any], ...]


@dataclasses.dataclass(frozen=True)
class Program:
    """A candidate as the device's compiler gets it, and the bytes of its workspace by name."""

    source: str
    launches: tuple[Launch, ...]
    workspace: Mapping[str, int]


@dataclasses.dataclass(frozen=True)
class Setting:
    """What all candidates have in common: the device; files with the inputs, a set by name for each run; bytes of the outputs."""

    device: drivers.Device
    cache_dir: str | None
    inputs: tuple[Mapping[str, Path], ...]
    outputs: Mapping[str, int]


class Bench:
    """The candidates that are loaded, and the arrays on the device that they are timed on."""

    def __init__(self, setting: Setting) -> None:
        self.setting, self.driver = setting, drivers.load(setting.device.driver)
        self.connection = self.driver.connect(setting.device)
        self.buffers = {name: self.connection.upload(_bytes_of(path)) for name, path in setting.inputs[0].items()}
        self.buffers |= {name: self.connection.allocate(size) for name, size in setting.outputs.items()}
        self.loaded: dict[int, tuple[list[tuple[Any, Launch]], dict[str, Any]]] = {}
        self.calls: dict[int, int] = {}

    def load(self, number: int, program: Program) -> dict[str, Any]:
        """Builds a candidate."""
        module = self.connection.build(program.source, (), BinaryCache(self.setting.cache_dir))
        functions = [(module.function(k.name, k.grid, k.threads, k.shared_bytes), k) for k in program.launches]
        self.loaded[number] = functions, {n: self.connection.allocate(size) for n, size in program.workspace.items()}
        return {}

    def run(self, number: int, data: int, files: Mapping[str, Path]) -> dict[str, Any]:
        """Runs a candidate once on a set of inputs; its outputs, whose bytes were no result before, go to files."""
        import numpy as np  # late: NumPy takes long to import

        arrays = {name: _bytes_of(path) for name, path in self.setting.inputs[data].items()}
        outputs = {name: np.full(size, 0xFF, np.uint8) for name, size in self.setting.outputs.items()}
        held = {name: self.connection.host_array(a, "input", None) for name, a in arrays.items()}
        held |= {name: self.connection.host_array(a, "output", None) for name, a in outputs.items()}
        self._launch(number, {name: h.buffer for name, h in held.items()})
        for name, array in outputs.items():
            held[name].land(None)
            array.tofile(files[name])
        self.connection.finish()
        return {}

    def sample(self, number: int, least_s: float) -> dict[str, Any]:
        """Seconds of one call, over as many as take `least_s` together; the first sample comes after a call that is not timed."""
        if number not in self.calls:
            self._taken_s(number, 1)
        while True:
            calls = self.calls.setdefault(number, 1)
            taken = self._taken_s(number, calls)
            if taken >= least_s or calls >= MOST_CALLS:
                return {"seconds": taken / calls}
            self.calls[number] = min(MOST_CALLS, max(2 * calls, math.ceil(1.25 * calls * least_s / max(taken, 1e-9))))

    def _taken_s(self, number: int, calls: int) -> float:
        """Seconds of some calls: by the clock where the host's cores are the device, else by the device's own events."""
        start = time.perf_counter()
        events = [e for _ in range(calls) for e in self._launch(number, self.buffers) if e is not None]
        self.connection.finish()
        taken = time.perf_counter() - start
        return taken if self.setting.device.host_memory else sum(self.driver.seconds(e) for e in events)

    def _launch(self, number: int, buffers: Mapping[str, Any]) -> list[Any]:
        functions, workspace = self.loaded[number]
        every = {**workspace, **buffers}
        maps = [[self.connection.tensor_map(m, every[name]) for name, m in k.maps] for _, k in functions]
        return [
            function.timed([every[name] for name in k.arguments] + of_boxes, None)
            for (function, k), of_boxes in zip(functions, maps, strict=True)
        ]


def _bytes_of(path: Path) -> Any:
    import numpy as np  # late: NumPy takes long to import

    return np.fromfile(path, np.uint8)


def main() -> None:
    """Answers requests until there are no more: a name, a limit in seconds, arguments."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no answer
    _no_core_file()
    bench: Bench | None = None
    while (request := _next(requests)) is not None:
        name, limit_s, arguments = request
        signal.setitimer(signal.ITIMER_REAL, limit_s)
        try:
            if bench is None:
                bench, found = Bench(*arguments), dict[str, Any]()
            else:
                found = getattr(bench, name)(*arguments)
        except TileLangError as error:
            found = {"code": error.code, "why": error.message}
        except Exception as error:  # a driver's own, or too little memory
            found = {"code": "failed", "why": f"{type(error).__name__}: {error}"}
        signal.setitimer(signal.ITIMER_REAL, 0)
        answers.write(json.dumps(found) + "\n")
        answers.flush()
    os._exit(0)  # a driver's end may wait for a kernel that has none


def _next(requests: BinaryIO) -> tuple[str, float, tuple[Any, ...]] | None:
    try:
        found: tuple[str, float, tuple[Any, ...]] = pickle.load(requests)
        return found
    except EOFError:
        return None


def _no_core_file() -> None:
    import resource  # late: exists on some systems only

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
