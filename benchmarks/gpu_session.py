"""Times on a GPU, by its own events: what `benchmarks/gpu.py` measures with.

A contestant is a list of calls, one for each set of arrays; the sets together are larger than the second-level cache and take turns,
so that no call finds its inputs there. Contestants are sampled round after round, and a sample is a batch of calls between two events,
behind a pause on the device in which the host enqueues them: what is timed is the device, not the host. Medians.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import tilelang as tl
from benchmarks.gpu_cases import Case, moved_bytes, part
from benchmarks.gpu_peers import peers
from tilelang.arguments import as_array
from tilelang.computation import as_computation
from tilelang.errors import Refusal, TileLangError
from tilelang.lowering.drivers import interface as drivers
from tilelang.reference import compare

CACHE_BYTES = 64 << 20
MOST_SETS = 8
SAMPLES, CHOOSING_SAMPLES = 11, 3
BATCH_S, MOST_CALLS = 2e-3, 40
HOST_S = 40e-6  # what enqueuing one call may take
CLOCKS_PER_S = 2e9
DEAD = ("kernel-failed", "launch-failed")  # after which a device's context does nothing more
Call = Callable[[], object]


@dataclasses.dataclass(frozen=True)
class Contestant:
    """One side of a comparison: a call for each set of arrays."""

    name: str
    calls: tuple[Call, ...]


class Session:
    """A GPU and, where PyTorch is installed and sees it, PyTorch. device: PyTorch's name of it, "cpu" to try the peers without one."""

    def __init__(self, target: tl.Target, device: str | None = None) -> None:
        assert target.device is not None
        self.target, self.device = target, target.device
        self.connection: Any = drivers.load(target.dialect).connect(target.device)
        self.torch = _torch(device)
        self.torch_device = device or "cuda"

    # ------------------------------------------------------------ times

    def sample_s(self, calls: Sequence[Call], count: int) -> float:
        """Seconds of one call, in a batch of `count` that the device does without a break."""
        connection = self.connection
        with connection.current():
            start, end = connection.take_event(), connection.take_event()
            if self.torch is not None and self.torch_device != "cpu":
                self.torch.cuda._sleep(int(CLOCKS_PER_S * HOST_S * count))
            connection.record(start, None)
        for n in range(count):
            calls[n % len(calls)]()
        with connection.current():
            connection.record(end, None)
            seconds = connection.elapsed_ms(start, end) * 1e-3 / count
        connection.keep_event(start)
        connection.keep_event(end)
        return float(seconds)

    def medians_s(self, contestants: Sequence[Contestant], samples: int = SAMPLES) -> dict[str, float]:
        """Median seconds of a call of each contestant, in turns."""
        counts = {}
        for c in contestants:
            for call in c.calls:  # warm: built, autotuned
                call()
            self.connection.finish()
            counts[c.name] = max(1, min(MOST_CALLS, int(BATCH_S / max(self.sample_s(c.calls, 2), 1e-7))))
        found: dict[str, list[float]] = {c.name: [] for c in contestants}
        for _ in range(samples):
            for c in contestants:
                found[c.name].append(self.sample_s(c.calls, counts[c.name]))
        return {name: statistics.median(times) for name, times in found.items()}

    def copy_gb_per_s(self, size_bytes: int = 1 << 30) -> float:
        """Bandwidth of a copy on the device, bytes read and written, by whoever copies fastest here; 0 where nobody does."""
        if self.torch is None:
            return 0.0
        source, target = (self.torch.zeros(size_bytes, dtype=self.torch.uint8, device=self.torch_device) for _ in range(2))
        seconds = self.medians_s([Contestant("copy", (lambda: target.copy_(source),))])["copy"]
        return 2e-9 * size_bytes / seconds

    # ------------------------------------------------------------ arrays

    @staticmethod
    def sets(bytes_each: int) -> int:
        """How many sets of arrays there are: so many that their bytes are several times the cache."""
        return max(1, min(MOST_SETS, math.ceil(4 * CACHE_BYTES / max(1, bytes_each))))

    def random(self, shape: tuple[int, ...], type: Any, whole: bool) -> Any:
        """A device array of random numbers: normal, or small whole ones."""
        if self.torch is None:
            generator = np.random.default_rng(math.prod(shape))
            values = generator.integers(-2, 3, shape) if whole else generator.standard_normal(shape, np.float32)
            return self.connection.upload(np.ascontiguousarray(values.astype(type.numpy)))
        torch, kind = self.torch, getattr(self.torch, type.name)
        if whole:
            return torch.randint(-2, 3, shape, device=self.torch_device).to(kind)
        return torch.randn(shape, device=self.torch_device).to(kind)

    def arrays(self, y: tl.Tensor, whole: bool) -> dict[str, Any]:
        """A set of arrays for a computation: its inputs, and its outputs to be written."""
        computation = as_computation(y)
        made = {t.name: self.random(t.shape, t.dtype, whole) for t in computation.inputs}
        for t in computation.outputs:
            if self.torch is None:
                made[t.name] = self.connection.allocate(math.prod(t.shape) * t.dtype.bytes)
            else:
                kind = getattr(self.torch, t.dtype.name)
                made[t.name] = self.torch.empty(t.shape, dtype=kind, device=self.torch_device)
        return made

    @staticmethod
    def addresses(arrays: Mapping[str, Any]) -> dict[str, int]:
        """Where a set of arrays lies."""
        return {name: a.data_ptr() if hasattr(a, "data_ptr") else int(a) for name, a in arrays.items()}

    # ------------------------------------------------------------ a case

    def measure(self, case: Case) -> dict[str, Any]:
        """Everything that is told of a case: which schedule, its time, those of its peers, whether it is right."""
        if self.torch is not None and self.torch_device != "cpu":
            self.torch.cuda.empty_cache()
        y = case.make(None)
        sets = [self.arrays(y, whole=False) for _ in range(self.sets(moved_bytes(y)))]
        ours, kernels, row = self._compiled(case, y, sets)
        row |= {"bytes": moved_bytes(y), "sets": len(sets)}
        if ours:
            chosen = self._best(ours)
            row |= {"schedule": chosen.name, "right": self._is_right(case, y, kernels[chosen.name])}
            ours = [dataclasses.replace(chosen, name="ours")]
        found = self.medians_s([*ours, *self._peers(case, y, sets)])
        if ours:
            row["us"] = round(found.pop("ours") * 1e6, 3)
        row["peers_us"] = {name: round(seconds * 1e6, 3) for name, seconds in found.items()}
        return row

    def _best(self, contestants: Sequence[Contestant]) -> Contestant:
        if len(contestants) == 1:
            return contestants[0]
        times = self.medians_s(contestants, CHOOSING_SAMPLES)
        return min(contestants, key=lambda c: times[c.name])

    def _compiled(
        self, case: Case, y: tl.Tensor, sets: Sequence[Mapping[str, Any]]
    ) -> tuple[list[Contestant], dict[str, tl.Kernel], dict[str, Any]]:
        """The schedules that are accepted, compiled; why the others are not, and the seconds that all of it took."""
        found: list[Contestant] = []
        refused: dict[str, str] = {}
        kernels: dict[str, tl.Kernel] = {}
        start = time.perf_counter()
        for name, build in case.schedules(y, self.target.profile).items():
            try:
                kernel = tl.compile(build(), self.target)
                addresses = [self.addresses(arrays) for arrays in sets]
                kernel._enqueue(addresses[0], None)
                self.connection.finish()
            except TileLangError as error:
                if error.code in DEAD:
                    raise
                refused[name] = error.code
                if not isinstance(error, Refusal):  # what only shows where it is compiled
                    print(f"    {name}: {error}", flush=True)
                continue
            kernels[name] = kernel
            found.append(Contestant(name, tuple(lambda k=kernel, a=a: k._enqueue(a, None) for a in addresses)))  # type: ignore[misc]
        return found, kernels, {"compile_s": round(time.perf_counter() - start, 3), "refused": refused}

    def _peers(self, case: Case, y: tl.Tensor, sets: Sequence[dict[str, Any]]) -> list[Contestant]:
        """The peers that do run: one that fails is left out, as a compiler that is not there."""
        if self.torch is None:
            return []
        (output,) = as_computation(y).outputs
        by_set = [peers(self.torch, case, arrays, arrays[output.name]) for arrays in sets]
        found = []
        for name in by_set[0]:
            try:
                by_set[0][name]()
                self.connection.finish()
            except Exception as error:
                print(f"    {name} is left out: {type(error).__name__}: {str(error).splitlines()[0][:100]}", flush=True)
                continue
            found.append(Contestant(name, tuple(calls[name] for calls in by_set)))
        return found

    def _is_right(self, case: Case, y: tl.Tensor, kernel: tl.Kernel) -> bool | None:
        """Whether a kernel's result is right: small whole numbers to the bit against a library, else rows against the reference.

        None where there is no PyTorch to compare with.
        """
        if self.torch is None:
            return None
        torch, (output,) = self.torch, as_computation(y).outputs
        arrays = self.arrays(y, whole=case.exact)
        arrays[output.name].fill_(math.nan)
        kernel._enqueue(self.addresses(arrays), None)
        self.connection.finish()
        result = arrays[output.name].clone()
        if case.exact:
            torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
            torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
            first = next(iter(peers(torch, case, arrays, arrays[output.name]).values()))
            return bool(torch.equal(result, first()))
        first_rows = {name: as_array(name, a.cpu()) for name, a in (arrays | {output.name: result}).items()}
        small, known = part(case, 4 if len(output.shape) > 1 else 4096, first_rows)
        given = {t.name: known[t.name] for t in as_computation(small).inputs}
        return bool(compare(as_computation(small), given, {output.name: known[output.name]}))


def _torch(device: str | None) -> Any:
    """PyTorch, where it is installed and sees a GPU (or is asked to work on the processor)."""
    try:
        import torch
    except ImportError:
        return None
    return torch if device == "cpu" or torch.cuda.is_available() else None
