"""Compiles the likely result of a search for a schedule while the search is still running.

The compiler is a separate process and takes about as long as the rest of the search. If the search ends with another schedule, the
compiler is killed and its work discarded.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilelang.computations.computation import Computation
from tilelang.errors import TileLangError
from tilelang.lowering import ir
from tilelang.lowering.compilers import interface as compilers
from tilelang.lowering.pipeline import lower
from tilelang.lowering.targets.c.emitter import emit
from tilelang.options import Options
from tilelang.profiles.profile import Profile
from tilelang.runtime.targets import DIALECTS, Target
from tilelang.schedules.schedule import Schedule
from tilelang.schedules.steps import Place, Step

if TYPE_CHECKING:
    from tilelang.lowering.compilers.processes import Early


class LikelyKernel:
    """A kernel for the steps passed to `guess`. program, source: None until then. profile: the target's, for its dialect."""

    def __init__(self, computation: Computation, target: Target, profile: Profile, options: Options) -> None:
        self.computation, self.target, self.profile, self.options = computation, target, profile, options
        self.program: ir.Program | None = None
        self.source: str | None = None
        self._steps: tuple[Step, ...] = ()
        self._early: Early | None = None

    @property
    def helps(self) -> bool:
        """Whether the target's compiler can run on another core meanwhile. If passes are verified or printed, nothing is lowered that
        may not be needed."""
        watched = self.options.verify or self.options.dump or self.options.debug
        device = self.target.device
        return device is not None and device.compute_units > 1 and self.target.dialect in compilers.PROGRAMS and not watched

    def guess(self, steps: tuple[Step, ...]) -> None:
        """Starts to compile the kernel of these steps, if they can be lowered."""
        device, dialect = self.target.device, self.target.dialect
        assert device is not None
        with contextlib.suppress(TileLangError), compilers.begun(dialect, device.architecture, options_of(dialect, steps)):
            plan = Schedule(self.computation, steps)
            self.program, self._steps = lower(plan.computation, plan.steps, self.profile, self.options, self.target.needs), steps
            self.source = emit(self.program, DIALECTS[dialect])
            self._early = compilers.compile_early(dialect, self.source, device.architecture)

    def program_of(self, plan: Schedule) -> ir.Program | None:
        """The program of a schedule, if it is this one's."""
        return self.program if plan.steps == self._steps and plan.computation is self.computation else None

    def source_of(self, program: ir.Program) -> str | None:
        """The text of a program, if it is this one's; otherwise its compiler is ended."""
        if program is self.program:
            return self.source
        if self._early is not None:
            self._early.end()
        return None


def options_of(dialect: str, steps: Sequence[Step]) -> tuple[str, ...]:
    """The compiler options that the text of a schedule's kernel will name."""
    return DIALECTS[dialect].summing if any(step.verb == "accumulate" for step in steps if isinstance(step, Place)) else ()
