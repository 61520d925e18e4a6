"""Work on a GPU that may never end, or take the device's context with it: told, and done in a process that can be left.

A kernel that waits for ever cannot be stopped from within, and after one that reads where nothing is the context does nothing more. So
a worker does the work, says of each stage when it begins, and exits with `LOST` where one took too long; its parent starts another.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

DEAD = ("kernel-failed", "launch-failed")  # the codes of errors after which a device's context does nothing more
LOST = 7  # the exit code of a worker whose device's context is lost; none of pytest's
LEAST_S = 30.0  # with less left no worker is started again
GRACE_S = 60.0  # for a worker to end by itself


class Watch:
    """Ends the process with LOST where a stage does not end in time; `late` is called with the stage's name before."""

    def __init__(self, limit_s: float, late: Callable[[str], object], leave: Callable[[int], object] = os._exit) -> None:
        self.limit_s, self.late, self.leave = limit_s, late, leave
        self._timer: threading.Timer | None = None
        self.stage = ""

    def begin(self, stage: str) -> None:
        """The stage before has ended, another one begins."""
        self.end()
        self.stage = stage
        self._timer = threading.Timer(self.limit_s, self._leave, (stage,))
        self._timer.daemon = True
        self._timer.start()

    def end(self) -> None:
        """Nothing is under way."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None

    def _leave(self, stage: str) -> None:
        self.late(stage)
        sys.stdout.flush()
        self.leave(LOST)


def supervise(
    command: Sequence[str], limit_s: float, environment: dict[str, str] | None = None, folder: Path | None = None
) -> int:
    """Runs a worker, with `--limit-s SECONDS` after its command, and another one whenever it is lost; the last one's exit code."""
    end = time.monotonic() + limit_s
    while True:
        left = end - time.monotonic()
        try:
            code = subprocess.call(
                [*command, "--limit-s", f"{max(left, 0):.0f}"], env=environment, timeout=max(left, 0) + GRACE_S
            )
        except subprocess.TimeoutExpired:
            print(f"The worker did not end {GRACE_S:g} s after its time and was stopped.", flush=True)
            return LOST
        if code != LOST:
            return code
        if end - time.monotonic() < LEAST_S:
            print("The device's context is lost and the time is over: run it again to go on.", flush=True)
            return LOST
        print("The device's context is lost: another process goes on.", flush=True)
