"""Simulates kernel IR in NumPy for every thread of every block, with a device's types, and reports faults that a device would hide.

It needs neither a device nor a particular pass: a vector or unroll loop runs as a loop, lanes run as lanes. The threads of a
batch of blocks run in lockstep. A value is a scalar (equal in all threads), an array over threads, or one over (threads, lanes).
Control flow uses masks, per lane if a condition has lanes: no memory is touched in a branch that is not taken, except that a load
of several lanes must be in bounds for all of them if one is taken.

findings.KINDS lists the faults. A correct program has none, in whatever order its asynchronous copies complete.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tilelang.core.simplify import interval
from tilelang.errors import ComputationError
from tilelang.instructions.instruction import AT_ONCE
from tilelang.lowering import ir
from tilelang.lowering.simulator.batch import Batch, blocks_together
from tilelang.lowering.simulator.findings import AccessCount, Finding, Recorder, Site, summary
from tilelang.lowering.simulator.lifetimes import lifetimes
from tilelang.lowering.simulator.memory_model import Device, Memory, Watched
from tilelang.lowering.simulator.role_threads import RoleThreads
from tilelang.lowering.simulator.shadow_memory import Shadow, poison
from tilelang.lowering.simulator.threads import Threads
from tilelang.lowering.simulator.vector_clocks import ClockedRaces, Clocks
from tilelang.profiles.profile import Profile

Array = npt.NDArray[Any]
MOST_EXECUTIONS = 2_000_000  # default limit: statements, counted once per batch of blocks


@dataclasses.dataclass(frozen=True)
class Report:
    """The result of a run. `counts` counts all findings by kind; `findings` has the first few.

    transactions: per global access, the warps that issued it and the transactions they caused. conflicts: per shared access, the
    warps that issued it and the bank-conflict replays.
    """

    outputs: dict[str, Array]
    findings: tuple[Finding, ...]
    counts: dict[str, int]
    transactions: tuple[AccessCount, ...]
    conflicts: tuple[AccessCount, ...]

    def __str__(self) -> str:
        return summary(self.counts, self.findings)


def run(
    program: ir.Program,
    arrays: Mapping[str, Array],
    *,
    warp: int = 32,
    banks: int = 32,
    bank_bytes: int = 4,
    transaction_bytes: int = 128,
    wide_read_lanes: tuple[int, ...] = (),
    order: str | int = "early",
    watch: Callable[[Watched], None] | None = None,
    costs: bool = True,
    tick: Callable[[], None] | None = None,
) -> Report:
    """Runs the kernels of a program in order on the input arrays (by buffer name).

    order: when asynchronous copies complete: all "early" (at the issue), all "late" (at the wait), or each at random with this seed.
    watch: called for each access to global and shared memory, per statement and batch of blocks; it may raise an exception of its
    own to end the run. costs: count transactions and bank conflicts. tick: called before each iteration of a loop; it may raise, too.
    Raises ComputationError if an input is missing or its shape differs from the buffer's.
    """
    if not isinstance(order, int) and not (isinstance(order, str) and order in ("early", "late")):
        raise ComputationError(
            "order", f"order={order!r} is not a valid order of copies", help='use order="early", "late", or a seed'
        )
    device = Device(warp, banks, bank_bytes, transaction_bytes, wide_read_lanes)
    recorder = Recorder(watch, costs, tick)
    memory = {b.name: _global_data(b, arrays) for b in program.buffers}
    owners = {b.name: np.full(b.elements, int(b.role == "input"), np.int32) for b in program.buffers}
    with np.errstate(all="ignore"):
        for kernel in program.kernels:
            _launch(kernel, memory, owners, device, recorder, order)
    outputs = [b for b in program.buffers if b.role == "output"]
    for b in outputs:
        _report_unwritten(b, owners[b.name], recorder)
    return Report(
        {b.name: memory[b.name].reshape(b.shape) for b in outputs},
        tuple(recorder.findings.kept),
        dict(recorder.findings.counts),
        recorder.transactions.result(),
        recorder.conflicts.result(),
    )


def orders(program: ir.Program) -> tuple[str, ...]:
    """The orders of `run` that can differ: one if nothing in the program completes later than it is issued."""
    every = (s for k in program.kernels for s in ir.statements(k.body))
    later = any(
        isinstance(s, ir.Copy | ir.Roles) or (isinstance(s, ir.Instruction) and s.semantics.completes != AT_ONCE) for s in every
    )
    return ("early", "late") if later else ("early",)


def device_numbers(profile: Profile) -> dict[str, Any]:
    """The arguments of `run` that a device's profile determines."""
    shared, memory = profile.memory("shared"), profile.memory("global")
    return {
        "warp": max(1, profile.warp_size),
        "banks": shared.banks or 32,
        "bank_bytes": shared.bank_bytes,
        "transaction_bytes": memory.transaction_bytes or 128,
        "wide_read_lanes": shared.wide_read_lanes,
    }


def executions(program: ir.Program, watched: int | None = None) -> int:
    """Upper bound on the statements that `run` executes, each counted once per batch of blocks, where loop bounds are known.

    watched: loops that touch global or shared memory count at most this many iterations, for a watcher that ends the run.
    """
    return sum(_executed(k.body, watched) * -(-math.prod(k.grid) // blocks_together(k)) for k in program.kernels)


def _executed(stmt: ir.Stmt, watched: int | None) -> int:
    rounds = max(0, interval(stmt.extent)[1] or 1) if isinstance(stmt, ir.For) else 1
    if watched is not None and rounds > watched:
        seen = any(b.memory in ("global", "shared") for s in ir.statements(stmt) for b, _ in ir.touched(s))
        rounds = watched if seen else rounds
    return 1 + int(rounds) * sum(_executed(part, watched) for part in ir.parts(stmt))


def check_work(
    program: ir.Program, limit: float | None = None, watched: int | None = None, help: str = "smaller sizes: --size NAME=VALUE"
) -> None:
    """Raises an error before running if `run` would execute more statements than the limit. watched: as for `executions`."""
    count, most = executions(program, watched), MOST_EXECUTIONS if limit is None else limit
    if count > most:
        message = f"{count:,} statements would be simulated, each for some thousand threads, but at most {most:,} are allowed"
        raise ComputationError("too-much-to-simulate", message, help=help)


def _global_data(buffer: ir.Buffer, arrays: Mapping[str, Array]) -> Array:
    if buffer.role != "input":
        return poison(buffer.elements, buffer.dtype.numpy)
    if buffer.name not in arrays:
        raise ComputationError("arguments", f"there is no array for {buffer.name}", help=f"pass {buffer.name}=")
    array = np.atleast_1d(arrays[buffer.name])  # a tensor of rank 0 is a buffer of one element
    if array.shape != buffer.shape:
        raise ComputationError(
            "argument", f"{buffer.name} has shape {array.shape}", help=f"pass an array of shape {buffer.shape}"
        )
    return array.astype(buffer.dtype.numpy).reshape(-1)  # a copy: a faulty kernel may write to its inputs


def _report_unwritten(buffer: ir.Buffer, owner: Array, recorder: Recorder) -> None:
    missing = np.flatnonzero(owner == 0)
    if not missing.size:
        return
    site = recorder.site("", buffer.name, "store", lambda: buffer.name, None)
    for flat in missing[: recorder.findings.room("unwritten-output", site.number, missing.size)]:
        element = tuple(int(i) for i in np.unravel_index(int(flat), buffer.shape)) if buffer.shape else ()
        message = f"no thread wrote {buffer.name}{list(element)}"
        recorder.findings.add(Finding("unwritten-output", buffer.name, element, (), (0, 0, 0), None, message))


def _launch(
    kernel: ir.Kernel, memory: dict[str, Array], owners: dict[str, Array], device: Device, recorder: Recorder, order: str | int
) -> None:
    """One kernel, batch by batch."""
    written, lasting = _written(kernel), lifetimes(kernel)
    shadows: dict[str, Shadow] = {}
    for b in kernel.arguments:
        # A buffer that is only read cannot race.
        races = b.name in written and kernel.threads * math.prod(kernel.grid) > 1
        shadows[b.name] = Shadow(b.elements, kernel.threads, tracks_races=races)
        shadows[b.name].owner = owners[b.name]
        shadows[b.name].complete = b.name not in written and bool((owners[b.name] == 1).all())
        if races and kernel.roles:
            shadows[b.name].races = ClockedRaces(b.elements, Clocks(kernel.threads * kernel.cluster), device.warp)
    blocks, together = math.prod(kernel.grid), blocks_together(kernel)
    sites: dict[tuple[int, Any], Site] = {}
    recorder.patterns.clear()
    coin = random.Random(order) if isinstance(order, int) else None

    def early() -> bool:
        return order == "early" if coin is None else coin.random() < 0.5

    for first in range(0, blocks, together):
        batch = Batch(kernel, first, min(together, blocks - first), device.warp)
        seen = Memory(batch, memory, shadows, device, recorder)
        threads = RoleThreads(seen, sites, early, order) if kernel.roles else Threads(seen, sites, early)
        threads.lifetimes = lasting
        threads.execute(kernel.body, batch.all)
        threads.finish()


def _written(kernel: ir.Kernel) -> set[str]:
    names = set()
    for stmt in ir.statements(kernel.body):
        match stmt:
            case ir.Store(buffer=buffer) | ir.Copy(target=buffer):
                names.add(buffer.name)
            case ir.Instruction(operands=operands):
                names.update(buffer.name for _, buffer, _ in operands)
    return names
