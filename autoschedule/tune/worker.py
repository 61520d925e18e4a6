"""The process in which candidates run: reads sources, writes bytes of results and times.

`measure.py` starts it, and restarts it when a candidate crashes it. Requests are pickled on standard input, from the parent only;
answers are lines of JSON, so a process that a broken kernel has corrupted cannot run code in the parent. If a request exceeds its
time limit, an alarm ends the process, wherever it waits, even if the parent is gone.
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
from tilelang.lowering.launches import Launch

MOST_CALLS = 1 << 14  # per sample: an empty grid takes no time


@dataclasses.dataclass(frozen=True)
class Program:
    """A candidate in the form that the device's compiler takes, and the bytes of its workspaces by name."""

    source: str
    launches: tuple[Launch, ...]
    workspace: Mapping[str, int]


@dataclasses.dataclass(frozen=True)
class Setting:
    """What all candidates have in common: the device; for each run, a set of named files with the inputs; the bytes of the outputs."""

    device: drivers.Device
    cache_dir: str | None
    inputs: tuple[Mapping[str, Path], ...]
    outputs: Mapping[str, int]


class Bench:
    """The loaded candidates, and the device arrays on which they are timed."""

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
        """Runs a candidate once on a set of inputs and writes its outputs to files; filled with 0xFF first, so that missing
        stores show."""
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
        """Seconds per call, over as many calls as take `least_s` together; an untimed call precedes the first sample."""
        if number not in self.calls:
            self._taken_s(number, 1)
        while True:
            calls = self.calls.setdefault(number, 1)
            taken = self._taken_s(number, calls)
            if taken >= least_s or calls >= MOST_CALLS:
                return {"seconds": taken / calls}
            self.calls[number] = min(MOST_CALLS, max(2 * calls, math.ceil(1.25 * calls * least_s / max(taken, 1e-9))))

    def _taken_s(self, number: int, calls: int) -> float:
        """Seconds of some calls: by the clock if the device is the host's CPU, else by the device's own events."""
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
    """Answers requests until there are no more: each is a name, a time limit in seconds, and arguments."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output that libraries print must not mix with the answers
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
        except Exception as error:  # a driver's own error, or too little memory
            found = {"code": "failed", "why": f"{type(error).__name__}: {error}"}
        signal.setitimer(signal.ITIMER_REAL, 0)
        answers.write(json.dumps(found) + "\n")
        answers.flush()
    os._exit(0)  # a driver's shutdown may wait for a kernel that never ends


def _next(requests: BinaryIO) -> tuple[str, float, tuple[Any, ...]] | None:
    try:
        found: tuple[str, float, tuple[Any, ...]] = pickle.load(requests)
        return found
    except EOFError:
        return None


def _no_core_file() -> None:
    import resource  # late: exists on some systems only

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
