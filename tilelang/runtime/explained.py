"""What `kernel.explain()` prints: the steps with their specs, the plan of the values in between, each kernel with its barriers."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilelang.autoschedule.common.next_choices import INLINED, MEMORY, REGISTERS, SHARED, described, kept, next_choices
from tilelang.lowering import ir
from tilelang.lowering.compilers import interface as compilers
from tilelang.schedules.explain import explain

if TYPE_CHECKING:
    from tilelang.runtime.kernel import Kernel

EACH = {"shared": "a block", "register": "a thread"}


@dataclasses.dataclass(frozen=True)
class Between:
    """A value that definitions hand to each other. places: by the kernel that reads it; sizes: its bytes there, in words; next_choice:
    where the search would keep it otherwise, and the estimate of that plan; empty if the profile has no rates to compare by."""

    name: str
    places: dict[str, str]
    sizes: tuple[str, ...]
    next_choice: str

    def __str__(self) -> str:
        sizes = "".join(f", {size}" for size in self.sizes)
        other = f"; next choice: {self.next_choice}" if self.next_choice else ""
        return f"{self.name}: {described(self.places)}{sizes}{other}"


def values_between(kernel: Kernel) -> tuple[Between, ...]:
    """Where the plan of a kernel keeps the values between its definitions, with their bytes. Runs the search for its computation."""
    found = kept(kernel.computation, kernel.schedule.steps)
    profile = dataclasses.replace(kernel.target.profile, dialects=(kernel.target.dialect,))
    others = next_choices(kernel.schedule, profile) if found and profile.rates else {}
    return tuple(
        Between(name, dict(places), _sizes(kernel, name, {*places.values()}), str(others.get(name, "")))
        for name, places in found.items()
    )


def _sizes(kernel: Kernel, name: str, places: set[str]) -> tuple[str, ...]:
    """The bytes of the buffers that hold a value in some places. Lowering names them after the value."""
    if places == {INLINED}:
        return ("0 bytes",)
    tensor, own = kernel.computation.tensor(name), re.compile(re.escape(name) + r"(_(shared|register|state))?(_\d+)?")
    others = {t.name for d in kernel.computation.definitions for t in d.tensors if t.name != name}
    buffers = (b for k in kernel.program.kernels for b in (*k.shared, *k.registers))
    bytes_of = dict[str, int]()
    for buffer in (b for b in buffers if own.fullmatch(b.name) and b.name not in others):
        bytes_of[EACH[buffer.memory]] = bytes_of.get(EACH[buffer.memory], 0) + buffer.bytes
    whole = (f"{math.prod(tensor.shape) * tensor.dtype.bytes} bytes",) if MEMORY in places else ()
    wanted = {EACH[memory] for memory, place in (("shared", SHARED), ("register", REGISTERS)) if place in places}
    return (*whole, *(f"{n} bytes {each}" for each, n in bytes_of.items() if each in wanted))


def explained(kernel: Kernel) -> str:
    """The spec after each step of a kernel's schedule, with notes; the values between its definitions; and each kernel's resources,
    notes and barriers."""
    lines = [explain(kernel.schedule, kernel.refinements, kernel.target.profile), *plan_lines(kernel, values_between(kernel))]
    for k, used in zip(kernel.program.kernels, kernel.resources, strict=True):
        grid = " x ".join(str(n) for n in used.grid if n != 1) or "1"
        lines.append(f"kernel {k.name}: blocks {grid}, threads {used.threads}, shared memory {used.shared_bytes} bytes")
        lines += [f"  {used}"] if kernel.target.dialect in compilers.REPORTING else []
        lines += [f"  {note}" for note in k.notes]
        for barrier in (s for s in ir.statements(k.body) if isinstance(s, ir.Barrier)):
            lines += ["  barrier", *(f"    {reason}" for reason in barrier.reasons)]
    return "\n".join(lines)


def plan_lines(kernel: Kernel, values: Sequence[Between]) -> list[str]:
    """The plan in words: a line for each value, below one for the whole; nothing without values."""
    if not values:
        return []
    several = "a kernel" if len(kernel.program.kernels) == 1 else f"{len(kernel.program.kernels)} kernels"
    time = f", {kernel.estimate.seconds * 1e6:.1f} us by the model" if kernel.target.profile.rates else ""
    return [f"plan: {several}{time}", *(f"  {value}" for value in values)]
