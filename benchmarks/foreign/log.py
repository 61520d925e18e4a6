"""Where steered campaigns note what they run: what is kept is in the corpus."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LOG = Path(__file__).resolve().parents[2] / "build" / "foreign"
CASES = "cases.jsonl"


def note(report: dict[str, Any], log: Path = LOG) -> None:
    """Adds a case to the log."""
    log.mkdir(parents=True, exist_ok=True)
    with (log / CASES).open("a", encoding="utf-8") as file:
        file.write(json.dumps(report, default=str) + "\n")


def noted(log: Path = LOG) -> Iterator[dict[str, Any]]:
    """The cases so far."""
    if (log / CASES).exists():
        with (log / CASES).open(encoding="utf-8") as file:
            yield from map(json.loads, file)


def following(log: Path = LOG) -> int:
    """The seed after the last one."""
    return max((r["seed"] for r in noted(log)), default=-1) + 1


def running_file(profile: str, log: Path = LOG) -> Path:
    """Where a campaign for a profile, or for all, notes the text that it tries."""
    return log / f"running{profile and '_'}{profile}.tile"


def running(profile: str = "", log: Path = LOG) -> str:
    """The text that a case tried last."""
    path = running_file(profile, log)
    return path.read_text(encoding="utf-8") if path.exists() else ""
