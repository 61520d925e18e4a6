"""A plugin of pytest: the numeric suite on a GPU in parts, `pytest -p tests.gpu.progress --limit-s SECONDS --progress FILE`.

The file has a line of JSON for each test that has ended; they are not run again. A test after which the device's context does nothing
more, or that does not end, ends the process with LOST; when the time is over it ends with OVER, also in the midst of a test, which the
next run begins with.
"""

from __future__ import annotations

import json
import math
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu_watch import DEAD, LOST, Watch
from tilelang.errors import TileLangError

OVER = 8
STAGE_S = 90.0
OVERTIME_S = 20.0  # for the last test: with pytest's own end less than benchmarks.gpu_watch.GRACE_S
WORDS = ("CUDA error", "HIP error", "illegal memory access", "unspecified launch failure", "an error of the context")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--limit-s", type=float, default=math.inf)
    parser.addoption("--progress", type=Path)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Progress(config.getoption("--progress"), config.getoption("--limit-s")), "gpu-progress")


def outcomes(path: Path) -> dict[str, dict[str, Any]]:
    """The tests that have ended, by name."""
    if not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {line["test"]: line for line in lines if "test" in line}


def unfinished(path: Path) -> str | None:
    """What the last run was left in the midst of."""
    name: str | None = json.loads(path.read_text(encoding="utf-8").splitlines()[-1]).get("unfinished")
    return name


def is_lost(error: BaseException) -> bool:
    """Whether an error says that the device's context does nothing more."""
    if isinstance(error, TileLangError):
        return error.code in DEAD
    return isinstance(error, RuntimeError) and any(word in str(error) for word in WORDS)


class Progress:
    """One process's part of the suite."""

    def __init__(self, path: Path, limit_s: float, stage_s: float = STAGE_S) -> None:
        self.path, self.end = path, time.monotonic() + limit_s
        self.watch = Watch(stage_s, lambda test: self.note(test, "failed", f"it did not end in {stage_s:g} s"))
        self.lost = ""
        if limit_s < math.inf:
            self.over = threading.Timer(limit_s + OVERTIME_S, self.leave)
            self.over.daemon = True
            self.over.start()

    def leave(self) -> None:
        """Ends the process, whatever it does."""
        self.write({"unfinished": self.watch.stage or "the collection"})
        os._exit(OVER)

    def note(self, test: str, outcome: str, said: str = "") -> None:
        """Keeps what became of a test."""
        self.write({"test": test, "outcome": outcome, "said": said})

    def write(self, line: dict[str, str]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        done = outcomes(self.path)
        left = [item for item in items if item.nodeid not in done]
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in done])
        items[:] = left

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        if time.monotonic() > self.end:
            pytest.exit("the time is over", returncode=OVER)
        self.watch.begin(nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Any:
        report = yield
        if call.excinfo is not None and is_lost(call.excinfo.value):
            self.lost = report.nodeid
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed or report.skipped:
            self.note(report.nodeid, report.outcome, report.longreprtext[-3000:])
        elif report.when == "call":
            self.note(report.nodeid, "passed")

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.watch.end()
        if self.lost:
            pytest.exit(f"{self.lost}: the device's context is lost", returncode=LOST)
