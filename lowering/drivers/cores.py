"""How many cores this process may use: by its affinity, and by the quotas of its control groups, as containers set them.

A thread beyond the quota does not help: the scheduler stops all threads of the group for the rest of a period once it is used up.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")  # where Linux shows control groups
OF_PROCESS = Path("/proc/self/cgroup")


def usable_cores(groups: Path = GROUPS, of_process: Path = OF_PROCESS) -> int:
    """Logical processors that this process may use, at least one: those of its affinity, at most its quota, rounded down."""
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, int(min([own, *quotas(groups, of_process)])))


def quotas(groups: Path = GROUPS, of_process: Path = OF_PROCESS) -> Iterator[float]:
    """The quota in cores of each control group that the process is in and that has one, of both versions.

    A container often sees its group at the top, under another path than the one that its process is told: each folder above that path
    is looked at as well, where it exists.
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
    """The quota that a group's folder states: `QUOTA PERIOD` in version 2, a file for each in version 1."""
    try:
        if (folder / "cpu.max").exists():
            granted, period = (folder / "cpu.max").read_text().split()
        else:
            granted, period = ((folder / f"cpu.cfs_{what}_us").read_text().strip() for what in ("quota", "period"))
        if granted != "max" and int(granted) > 0 and int(period) > 0:
            yield int(granted) / int(period)
    except (OSError, ValueError):  # no quota, or one of a form that is not known
        return
