"""The protocol between the autoscheduler and a kind of device; `models.py` chooses the implementation."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol, TypeAlias

from tilelang.autoschedule.common.axes import Fusions
from tilelang.autoschedule.common.cost import Estimate
from tilelang.autoschedule.common.loop_summary import Loops
from tilelang.autoschedule.common.task_accesses import Nest
from tilelang.schedules.steps import Step

if TYPE_CHECKING:
    from tilelang.autoschedule.common.kernel_part import Part
    from tilelang.autoschedule.common.row_fusion import Rows

Steps: TypeAlias = tuple[Step, ...]
Likely: TypeAlias = Callable[[Steps], None]


@dataclasses.dataclass(frozen=True, eq=False)
class TaskCandidate:
    """The steps of one task and their estimate."""

    steps: Steps
    estimate: Estimate


class DeviceModel(Protocol):
    """A kind of device: its cost model, and the construction of schedules for it."""

    def estimate(self, kernels: tuple[Loops, ...]) -> Estimate:
        """The time of a program's kernels, which run one after another."""

    def construct(self, nest: Nest, likely: Likely | None = None) -> Iterator[TaskCandidate]:
        """Steps for a task, the best first; at least one. likely: called at most once, during a long search, with the steps that will
        probably be the first."""

    def continue_from(self, nest: Nest, fusions: Fusions, loops: Loops) -> Iterator[Steps]:
        """Steps for the part of a nest that remains inside some loops, which may already include part of these steps."""

    def fuse_rows(self, part: Part) -> Iterator[tuple[Rows, Steps]]:
        """All tasks of a part of a computation in one kernel, row by row; nothing if they have no rows in common."""

    def least(self, nest: Nest) -> float:
        """A lower bound on the seconds that the operations of a nest take."""

    def memory_bound_levels(self, nest: Nest) -> list[str]:
        """The levels at which even the largest tile that fits leaves the kernel bound by memory."""
