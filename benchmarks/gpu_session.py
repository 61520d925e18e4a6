"""Times on a GPU, by its own events: what `benchmarks/gpu.py` measures with.

A contestant is a list of calls, one for each set of arrays; the sets together are larger than the second-level cache and take turns,
so that no call finds its inputs there. Contestants are sampled round after round, and a sample is a batch of calls between two events,
behind a pause on the device in which the host enqueues them: what is timed is the device, not the host. Medians. Nothing is timed
before its result was found right.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import math
import os
import statistics
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import tilelang as tl
from benchmarks import gpu_peers
from benchmarks.gpu_cases import Case, by_fours, moved_bytes, part
from benchmarks.gpu_watch import DEAD
from tilelang.computations.arguments import as_array
from tilelang.computations.computation import as_computation
from tilelang.errors import Refusal, TileLangError
from tilelang.lowering.drivers import interface as drivers
from tilelang.semantics.reference import compare

CACHE_BYTES = 64 << 20
MOST_SETS = 64
SAMPLES, CHOOSING_SAMPLES = 11, 3
BATCH_S, MOST_CALLS = 2e-3, 40
HOST_S = 40e-6  # what enqueuing one call may take; measured, over ENQUEUED calls, where the device takes less than SHORT_S
ENQUEUED, SHORT_S = 8, 1e-3
PAUSE_CLOCKS = 1 << 21  # of the pause that is measured
MOST_PAUSE_S = 0.2
COPY_BYTES = 1 << 30
ROWS = 4  # compared with the reference where no library gives the same bits
Call = Callable[[], object]
Stage = Callable[[str], object]


class Lost(Exception):
    """The device's context does nothing more; what did it, and what was said."""


@dataclasses.dataclass(frozen=True)
class Contestant:
    """One side of a comparison: a call for each set of arrays."""

    name: str
    calls: tuple[Call, ...]


class Session:
    """A GPU and, where PyTorch is installed and sees it, PyTorch.

    device: PyTorch's name of it, "cpu" to try the peers without one. stage: is told what begins.
    """

    def __init__(self, target: tl.Target, device: str | None, stage: Stage) -> None:
        assert target.device is not None
        self.target, self.device, self.stage = target, target.device, stage
        self.connection: Any = drivers.load(target.dialect).connect(target.device)
        self.torch = _torch(device)
        self.on_gpu = device is None
        self.torch_device = device or f"cuda:{target.device.handle}"
        if self.torch is not None and self.on_gpu:
            self.torch.cuda.set_device(target.device.handle)
        self._clocks_per_s = 0.0

    def facts(self) -> dict[str, Any]:
        """What of PyTorch a result must be read with."""
        if self.torch is None:
            return {}
        return {"torch_cuda": self.torch.version.cuda, "torch_hip": self.torch.version.hip}

    # ------------------------------------------------------------ times

    def pause(self, seconds: float) -> None:
        """Keeps the device busy for so long; nothing happens where there is no PyTorch to do it."""
        if self.torch is None or not self.on_gpu:
            return
        if not self._clocks_per_s:
            self.torch.cuda._sleep(PAUSE_CLOCKS)
            taken = self._between_events(lambda: self.torch.cuda._sleep(PAUSE_CLOCKS))
            self._clocks_per_s = PAUSE_CLOCKS / max(taken, 1e-6)
        self.torch.cuda._sleep(int(min(seconds, MOST_PAUSE_S) * self._clocks_per_s))

    def _between_events(self, work: Callable[[], object]) -> float:
        connection = self.connection
        with connection.current():
            start, end = connection.take_event(), connection.take_event()
            connection.record(start, None)
        work()
        with connection.current("kernel-failed"):
            connection.record(end, None)
            seconds = connection.elapsed_ms(start, end) * 1e-3
        connection.keep_event(start)
        connection.keep_event(end)
        return float(seconds)

    def sample_s(self, calls: Sequence[Call], count: int, host_s: float) -> float:
        """Seconds of one call, in a batch of `count` that the device does without a break. host_s: what enqueuing one takes."""

        def batch() -> None:
            for n in range(count):
                calls[n % len(calls)]()

        self.pause(2 * host_s * count)
        return self._between_events(batch) / count

    def medians_s(self, contestants: Sequence[Contestant], samples: int | None = None) -> dict[str, float]:
        """Median seconds of a call of each contestant, which take turns. samples: of each; SAMPLES if None."""
        samples = SAMPLES if samples is None else samples
        plans: dict[str, tuple[int, float]] = {}
        for c in contestants:
            self.stage(c.name)
            for call in c.calls:  # warm: built, autotuned
                call()
            self.connection.finish()
            once_s, host_s = self.sample_s(c.calls, 2, HOST_S), HOST_S
            if once_s < SHORT_S:
                start = time.perf_counter()
                for n in range(ENQUEUED):
                    c.calls[n % len(c.calls)]()
                host_s = (time.perf_counter() - start) / ENQUEUED
                self.connection.finish()
            count = int(BATCH_S / max(once_s, 1e-7))
            plans[c.name] = max(1, min(MOST_CALLS, count)), host_s
        found: dict[str, list[float]] = {c.name: [] for c in contestants}
        for _ in range(samples):
            for c in contestants:
                self.stage(c.name)
                found[c.name].append(self.sample_s(c.calls, *plans[c.name]))
        return {name: statistics.median(times) for name, times in found.items()}

    def copy_gb_per_s(self, size_bytes: int = 0) -> tuple[float, str]:
        """Bandwidth of a copy on the device, bytes read and written, by whoever copies fastest here; and who that is.

        size_bytes: of what is copied; less where that does not fit. 0: COPY_BYTES.
        """
        size_bytes = size_bytes or COPY_BYTES
        i = tl.axes(i=size_bytes // 4)
        y = tl.define("Y", tl.input("X", tl.float32, i)[i], i)
        arrays: dict[str, Any] = {}
        try:
            arrays = self.arrays(y, whole=False)
        except Exception as error:
            if not is_out_of_memory(error) or size_bytes < 1 << 20:
                raise
        if not arrays:  # outside the handler, which holds what was allocated
            return self.copy_gb_per_s(size_bytes // 4)
        contestants = []
        for name, build in by_fours(y, self.target.profile).items():
            self.stage(name)
            kernel, addresses = tl.compile(build(), self.target), self.addresses(arrays)
            contestants.append(Contestant(name, (functools.partial(kernel._enqueue, addresses, None),)))
        if self.torch is not None:
            contestants.append(Contestant("PyTorch", (lambda: arrays["Y"].copy_(arrays["X"]),)))
        times = self.medians_s(contestants)
        best = min(times, key=lambda name: times[name])
        return 2e-9 * 4 * (size_bytes // 4) / times[best], best

    # ------------------------------------------------------------ arrays

    @staticmethod
    def sets(bytes_each: int) -> int:
        """How many sets of arrays there are: so many that their bytes are several times the cache."""
        return max(1, min(MOST_SETS, math.ceil(4 * CACHE_BYTES / max(1, bytes_each))))

    def random(self, shape: tuple[int, ...], type: Any, whole: bool) -> Any:
        """A device array of random numbers: normal, or small whole ones."""
        if self.torch is None:
            generator = np.random.default_rng(math.prod(shape))
            count = min(math.prod(shape), 1 << 20)  # which are repeated: the host would take minutes
            values = generator.integers(-2, 3, count) if whole else generator.standard_normal(count, np.float32)
            return self.connection.upload(np.resize(values.astype(type.numpy), shape))
        torch, kind = self.torch, getattr(self.torch, type.name)
        if whole:
            return torch.randint(-2, 3, shape, device=self.torch_device, dtype=kind)
        return torch.randn(shape, device=self.torch_device, dtype=kind)

    def arrays(self, y: tl.Tensor, whole: bool) -> dict[str, Any]:
        """A set of arrays for a computation: its inputs, and its outputs to be written."""
        computation = as_computation(y)
        made = {t.name: self.random(t.shape, t.dtype, whole) for t in computation.inputs}
        return made | {t.name: self.poisoned(t) for t in computation.outputs}

    def poisoned(self, t: tl.Tensor) -> Any:
        """A device array of what no result holds."""
        if self.torch is None:
            return self.connection.upload(np.full(t.shape, np.nan, t.dtype.numpy))
        return self.torch.full(t.shape, math.nan, dtype=getattr(self.torch, t.dtype.name), device=self.torch_device)

    @staticmethod
    def addresses(arrays: Mapping[str, Any]) -> dict[str, Any]:
        """What a launch takes of a set of arrays."""
        return {name: a.data_ptr() if hasattr(a, "data_ptr") else a for name, a in arrays.items()}

    def forget(self) -> None:
        """Gives memory back that nobody holds any more."""
        gc.collect()
        self.connection.trim()
        if self.torch is not None and self.on_gpu:
            self.torch.cuda.empty_cache()

    # ------------------------------------------------------------ a case

    def measure(self, case: Case, without: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Everything that is told of a case: which schedule, its time, those of its peers, whether it is right.

        without: what is left out, because it took the context with it. Raises Lost where something does so now.
        """
        self.forget()
        without = without or {}
        try:
            y = case.make(None)
            kernels, row = self._compiled(case, y, without)
            right = self._checked(case, y, kernels, row)
            self.forget()
            return row | self._timed(case, y, right, without)
        except TileLangError as error:
            if error.code in DEAD:
                raise Lost(error.message) from error
            if is_out_of_memory(error):
                return {"left_out": f"does not fit into the device's memory: {error.message}"}
            raise
        except Exception as error:
            if is_out_of_memory(error):
                return {"left_out": "does not fit into the device's memory"}
            raise Lost(f"{type(error).__name__}: {_first_line(error)}") from error

    def _compiled(self, case: Case, y: tl.Tensor, without: Mapping[str, str]) -> tuple[dict[str, tl.Kernel], dict[str, Any]]:
        """The schedules that are accepted, compiled; why the others are not, and the seconds that all of it took."""
        refused: dict[str, str] = dict(without)
        kernels: dict[str, tl.Kernel] = {}
        start = time.perf_counter()

        def attempt(name: str, work: Callable[[], object]) -> None:
            self.stage(name)
            try:
                work()
            except TileLangError as error:
                kernels.pop(name, None)
                refused[name] = error.code
                if not isinstance(error, Refusal):  # what only shows where it is compiled
                    print(f"    {name}: {error}", flush=True)

        def compiled(name: str, build: Callable[[], tl.Schedule | tl.Tensor]) -> None:
            kernels[name] = tl.compile(build(), self.target)

        for name, build in case.contestants(y, self.target.profile).items():
            if name not in without:
                attempt(name, functools.partial(compiled, name, build))
        self.stage("the compiler")
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:  # which fills the cache that the next line reads
            deque(pool.map(_compiled_or_not, kernels.values()))
        for name, kernel in tuple(kernels.items()):
            attempt(name, functools.partial(getattr, kernel, "_launches"))
        return kernels, {"compile_s": round(time.perf_counter() - start, 3), "refused": refused, "bytes": moved_bytes(y)}

    def _checked(self, case: Case, y: tl.Tensor, kernels: Mapping[str, tl.Kernel], row: dict[str, Any]) -> dict[str, tl.Kernel]:
        """The kernels whose results are right; the row tells of the others."""
        arrays = self.arrays(y, whole=case.exact)
        (output,) = as_computation(y).outputs
        wanted = None
        if case.exact and self.torch is not None:
            self.stage("the expected result")
            wanted = gpu_peers.expected(self.torch, case, arrays | {output.name: self.torch.empty_like(arrays[output.name])})
        wrong: dict[str, str] = {}
        for name, kernel in kernels.items():
            self.stage(name)
            arrays[output.name] = self.poisoned(output)
            kernel._enqueue(self.addresses(arrays), None)
            self.connection.finish()
            fault = self._fault(case, arrays, output, wanted, kernel.schedule.error_ulps)
            if fault:
                wrong[name] = fault
                print(f"    {name}: WRONG: {fault}", flush=True)
        row |= {"wrong": wrong, "right": not wrong, "checked": "every element" if wanted is not None else f"{ROWS} rows"}
        return {name: kernel for name, kernel in kernels.items() if name not in wrong}

    def _fault(self, case: Case, arrays: Mapping[str, Any], output: tl.Tensor, wanted: Any, error_ulps: Any) -> str:
        """What is wrong with a result; empty where it is right: to the bit, or some rows within the reference's bound."""
        result = arrays[output.name]
        if wanted is not None:
            if self.torch.equal(result, wanted):
                return ""
            off = (result != wanted).reshape(-1)
            at = int(off.to(self.torch.uint8).argmax())
            return f"{int(off.sum())} of {off.numel()} elements, the first at {at}: {float(result.reshape(-1)[at])}" + (
                f" for {float(wanted.reshape(-1)[at])}"
            )
        rows = ROWS if len(output.shape) > 1 else min(output.shape[0], 4096)
        on_host = arrays if self.torch is not None else self._fetched(case, arrays)
        small, known = part(case, min(rows, output.shape[0]), dict(on_host))
        known = {name: as_array(name, a.cpu()) if hasattr(a, "cpu") else a for name, a in known.items()}
        given = {t.name: known[t.name] for t in as_computation(small).inputs}
        report = compare(as_computation(small), given, {output.name: known[output.name]}, error_ulps=error_ulps)
        return "" if report else str(report)

    def _fetched(self, case: Case, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """Arrays of the device as NumPy's."""
        computation = as_computation(case.make(None))
        found = {}
        for t in (*computation.inputs, *computation.outputs):
            found[t.name] = np.empty(t.shape, t.dtype.numpy)
            with self.connection.current("kernel-failed"):
                self.connection.copy_out(found[t.name].reshape(-1).view(np.uint8), int(arrays[t.name]), None)
        return found

    def _timed(self, case: Case, y: tl.Tensor, kernels: Mapping[str, tl.Kernel], without: Mapping[str, str]) -> dict[str, Any]:
        """The times of the best kernel and of the peers."""
        sets = [self.arrays(y, whole=False) for _ in range(self.sets(moved_bytes(y)))]
        addresses = [self.addresses(arrays) for arrays in sets]
        ours = [Contestant(name, tuple(functools.partial(k._enqueue, a, None) for a in addresses)) for name, k in kernels.items()]
        found: dict[str, Any] = {"sets": len(sets)}
        if len(ours) > 1:
            times = self.medians_s(ours, CHOOSING_SAMPLES)
            found["candidates_us"] = {name: round(seconds * 1e6, 3) for name, seconds in times.items()}
            ours = [min(ours, key=lambda c: times[c.name])]
        others, left_out = ([], dict[str, str]()) if "peers" in without else self._peers(case, sets, without)
        medians = self.medians_s([*ours, *others])
        for c in ours:
            found |= {"schedule": c.name, "us": round(medians.pop(c.name) * 1e6, 3)}
        return found | {"peers_us": {n: round(s * 1e6, 3) for n, s in medians.items()}, "peers_left_out": left_out}

    def _peers(
        self, case: Case, sets: Sequence[dict[str, Any]], without: Mapping[str, str]
    ) -> tuple[list[Contestant], dict[str, str]]:
        """The peers that do run, and why the others do not: a compiler that is not there, say, or too little memory."""
        if self.torch is None:
            return [], {}
        found, left_out = [], {}
        for name, call in gpu_peers.peers(self.torch, case, self.on_gpu).items():
            if name in without:
                continue
            self.stage(name)
            try:
                call(sets[0])
                self.connection.finish()
            except TileLangError:
                raise
            except Exception as error:
                left_out[name] = f"{type(error).__name__}: {_first_line(error)}"
                print(f"    {name} is left out: {left_out[name]}", flush=True)
                self.connection.finish()  # raises where it took the context with it
                continue
            found.append(Contestant(name, tuple(functools.partial(call, a) for a in sets)))
        return found, left_out


def is_out_of_memory(error: BaseException) -> bool:
    """Whether too little memory is all that is wrong: the driver's word, or PyTorch's."""
    if isinstance(error, TileLangError):
        return error.code == "out-of-memory"
    return type(error).__name__ == "OutOfMemoryError"


def _compiled_or_not(kernel: tl.Kernel) -> None:
    """Compiles a kernel; whoever loads it is told why not."""
    with contextlib.suppress(TileLangError):
        kernel.compiled  # noqa: B018


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:160]


def _torch(device: str | None) -> Any:
    """PyTorch, where it is installed and sees a GPU (or is asked to work on the processor)."""
    try:
        import torch
    except ImportError:
        return None
    return torch if device == "cpu" or torch.cuda.is_available() else None
