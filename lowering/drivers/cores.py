"""The number of cores that this process may use, from its affinity and the quotas of its control groups, as set for containers.

Threads beyond the quota do not help: once it is used up, the scheduler stops all threads of the group for the rest of the period.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")  # where Linux mounts control groups
OF_PROCESS = Path("/proc/self/cgroup")


def usable_cores(groups: Path = GROUPS, of_process: Path = OF_PROCESS) -> int:
    """Logical processors that this process may use, at least one: those of its affinity, limited by its quota, rounded down."""
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, int(min([own, *quotas(groups, of_process)])))


def quotas(groups: Path = GROUPS, of_process: Path = OF_PROCESS) -> Iterator[float]:
    """The quota in cores of each control group of the process that has one, in both versions of control groups.

    A container often sees its group at the root, under another path than the one in /proc: every parent of that path is also tried.
    """
    try:
        lines = of_process.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return
    for line in lines:
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            tops = [groups, groups / "unified"]
        elif "cpu" in controllers.split(","):
            tops = [groups / controllers, groups / "cpu"]
        else:
            continue
        for top in tops:
            group = top / path.lstrip("/")
            for folder in (group, *group.parents):
                if folder == top or top in folder.parents:
                    yield from _quota(folder)


def _quota(folder: Path) -> Iterator[float]:
    """The quota in a group's folder: `QUOTA PERIOD` in version 2, a file for each in version 1."""
    try:
        if (folder / "cpu.max").exists():
            granted, period = (folder / "cpu.max").read_text().split()
        else:
            granted, period = ((folder / f"cpu.cfs_{what}_us").read_text().strip() for what in ("quota", "period"))
        if granted != "max" and int(granted) > 0 and int(period) > 0:
            yield int(granted) / int(period)
    except (OSError, ValueError):  # no quota, or an unknown format
        return
