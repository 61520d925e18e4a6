"""Launch plans: the parts of a lowered program that a process needs to run it, which are the source and the launch of each kernel.

A launch plan is kept in the cache of binaries, so that a later process with the same schedule, profile and installed package runs
the kernel without lowering it again, and without importing the lowering. The kernel IR is made again only when it is asked for.
"""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

from tilelang.core.version import source_stamp
from tilelang.instructions.instruction import own
from tilelang.lowering.drivers.cache import BinaryCache, key
from tilelang.lowering.launches import Launch, launches_of
from tilelang.options import Options
from tilelang.runtime.targets import DIALECTS, Target
from tilelang.schedules.schedule import Schedule

if TYPE_CHECKING:
    from tilelang.autoschedule.tune.entries import StoredSchedule
    from tilelang.lowering import ir

# The packages whose source determines the program that a schedule, or its text, is lowered to.
LOWERED_BY = (
    "tilelang.core", "tilelang.computations", "tilelang.semantics", "tilelang.instructions", "tilelang.profiles", "tilelang.schedules",
    "tilelang.grammar", "tilelang.lowering", "tilelang.runtime",
)  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True)
class LaunchPlan:
    """The source of a program, its launches in order, and the bytes of each intermediate result between them."""

    source: str
    launches: tuple[Launch, ...]
    workspace: tuple[tuple[str, int], ...] = ()

    @property
    def text(self) -> str:
        """As JSON, which `parsed` reads, without tensor maps."""
        launches = [{name: value for name, value in dataclasses.asdict(n).items() if name != "maps"} for n in self.launches]
        return json.dumps({"source": self.source, "launches": launches, "workspace": self.workspace})


def of_program(program: ir.Program, dialect: str, source: str) -> LaunchPlan:
    """The launch plan of a program, whose text in a dialect is `source`."""
    launches = launches_of(program, DIALECTS[dialect])
    return LaunchPlan(source, launches, tuple((b.name, b.bytes) for b in program.buffers if b.role == "workspace"))


def parsed(text: str) -> LaunchPlan | None:
    """The plan of a JSON text; None if the text is not one.

    >>> plan = LaunchPlan("void Y() {}", (Launch("Y", (4, 1, 1), 1, 0, ("X", "Y")),), (("T", 64),))
    >>> parsed(plan.text) == plan, parsed("[]")
    (True, None)
    """
    try:
        found: Any = json.loads(text)
        launches = tuple(
            Launch(str(n["name"]), tuple(map(int, n["grid"])), int(n["threads"]), int(n["shared_bytes"]),
                   tuple(map(str, n["arguments"]))) for n in found["launches"]
        )  # fmt: skip
        return LaunchPlan(str(found["source"]), launches, tuple((str(name), int(size)) for name, size in found["workspace"]))
    except (ValueError, TypeError, KeyError):
        return None


def recall(schedule: Schedule | StoredSchedule, target: Target, options: Options) -> LaunchPlan | None:
    """The plan that an earlier process kept for a schedule; None if there is none."""
    if not _kept(target, options):
        return None
    body = BinaryCache(options.cache_dir).get(_name(schedule, target))
    return None if body is None else parsed(body.decode(errors="replace"))


def remember(plan: LaunchPlan, schedule: Schedule, target: Target, options: Options) -> None:
    """Keeps the plan of a kernel that was compiled, unless its launches need tensor maps."""
    if _kept(target, options) and not any(launch.maps for launch in plan.launches):
        BinaryCache(options.cache_dir).put(_name(schedule, target), plan.text.encode())


def _kept(target: Target, options: Options) -> bool:
    """Whether plans are kept: not if passes are verified or printed, which only happens when a schedule is lowered."""
    return target.device is not None and options.cache_dir != "" and not (options.verify or options.dump or options.debug)


def _name(schedule: Schedule | StoredSchedule, target: Target) -> str:
    """The name of an entry: a hash of all that the lowering reads."""
    texts = (schedule.computation.text, schedule.text, *map(repr, own()))
    return key(("launch plan", *texts, target.dialect, repr(target.profile), *target.needs, source_stamp(*LOWERED_BY)))
