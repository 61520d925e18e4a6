"""Compiles candidates and uses the compiler's report to decide which of them are worth running.

If the compiler needs no device (`lowering/compilers`) and the profile names an architecture, the report is used before candidates
are timed or, without timing, before one is chosen. Compiled candidates are cached on disk.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Sequence

from tilelang.autoschedule.common.prune import Pruning
from tilelang.autoschedule.tune.recall import OnDevice
from tilelang.autoschedule.tune.worker import Program
from tilelang.errors import DeviceError, TileLangError
from tilelang.lowering import ir
from tilelang.lowering.compilers import interface as compilers
from tilelang.lowering.compilers.compiled import CompiledKernel
from tilelang.lowering.drivers.cache import BinaryCache
from tilelang.lowering.launches import launches_of
from tilelang.lowering.pipeline import lower
from tilelang.lowering.targets.c.emitter import emit
from tilelang.lowering.targets.dialects import DIALECTS, needs
from tilelang.options import Options
from tilelang.schedules.schedule import Schedule

MOST_COMPILED = 4  # candidates among which the reports decide if nothing is timed
FEW_SPILLED = 1 / 8  # the share of a thread's registers that a compiler may spill, outside the innermost loops
REGISTER_BYTES = 4


def program_of(schedule: Schedule, target: OnDevice, options: Options) -> Program | TileLangError:
    """A candidate in the form that the device's compiler takes, or the error that prevents it."""
    try:
        profile = dataclasses.replace(target.profile, dialects=(target.dialect,))
        passes = needs(target.dialect, target.device)
        return text_of(lower(schedule.computation, schedule.steps, profile, options, passes), target)
    except TileLangError as error:
        return error


def text_of(program: ir.Program, target: OnDevice) -> Program:
    """A lowered program in the form that the device's compiler takes. Raises DeviceError if the dialect lacks something."""
    dialect = DIALECTS[target.dialect]
    workspace = {b.name: b.bytes for b in program.buffers if b.role == "workspace"}
    return Program(emit(program, dialect), launches_of(program, dialect), workspace)


# ---------------------------------------------------------------- what the compiler reports


def reported(program: Program, target: OnDevice, options: Options) -> list[CompiledKernel]:
    """The compiler's report on each kernel; empty if no compiler provides one."""
    architecture = target.profile.architecture
    if target.dialect not in compilers.REPORTING or architecture is None:
        return []
    try:
        cache = BinaryCache(options.cache_dir)
        compiled = compilers.load(target.dialect).compile_source(program.source, architecture, (), cache)
    except DeviceError:  # no compiler, or the program is invalid: building it reports that
        return []
    known = {k.name: k for k in compiled.kernels}
    return [known[k.name] for k in program.launches] if known.keys() >= {k.name for k in program.launches} else []


def in_memory_bytes(kernel: CompiledKernel) -> int:
    """The bytes that a kernel spills or keeps on the stack: a thread's stack, and spill stores and loads."""
    return kernel.stack_bytes + kernel.spill_store_bytes + kernel.spill_load_bytes


def broken(program: Program, target: OnDevice, options: Options) -> tuple[bool, int]:
    """Whether the threads of a block need more registers than a core has; and the bytes spilled, 0 if they are few."""
    found = reported(program, target, options)
    room = dict(target.profile.rates).get("core_registers", math.inf)
    held = max((k.registers * launch.threads for k, launch in zip(found, program.launches, strict=False)), default=0)
    spilled = [in_memory_bytes(k) for k in found if in_memory_bytes(k) > FEW_SPILLED * REGISTER_BYTES * k.registers]
    return held > room, sum(spilled)


def pruned(programs: Sequence[Program], target: OnDevice, options: Options, pruning: Pruning) -> dict[str, str]:
    """For each candidate's source, the rule about compiler reports that drops it; "" if none does."""
    rules, spilled = dict[str, str](), dict[str, int]()
    for program in programs:
        too_many, spilled[program.source] = broken(program, target, options)
        rules[program.source] = "reported-registers" if pruning.drops("reported-registers", too_many) else ""
    others = any(not rules[source] and not count for source, count in spilled.items())
    for source, count in spilled.items():
        if not rules[source] and others and pruning.drops("reported-spills", count > 0):
            rules[source] = "reported-spills"
        if not rules[source]:
            pruning.keeps()
    return rules


def chosen(programs: Iterable[Program | TileLangError], target: OnDevice, options: Options) -> int:
    """The number of the first candidate that violates no rule about reports; if the first few all do, that of the one that spills
    least.

    programs: the most promising first, at least one; generated on demand.
    """
    off = Pruning.without(options.without_rules).off
    found: list[tuple[bool, float]] = []
    for program in itertools.islice(programs, MOST_COMPILED):
        if isinstance(program, TileLangError):
            found.append((True, math.inf))
            continue
        too_many, spilled = broken(program, target, options)
        found.append((too_many and "reported-registers" not in off, spilled if "reported-spills" not in off else 0))
        if not any(found[-1]):
            break
    return found.index(min(found))
