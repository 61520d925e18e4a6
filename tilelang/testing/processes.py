"""Ends a worker process together with the compilers that it has started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from typing import Any


def kill(child: subprocess.Popen[Any]) -> None:
    """Kills a process and, if it was started with `start_new_session=True`, its children; waits until it has ended."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
    child.kill()
    child.wait()
