"""The results of `benchmarks/operators.py` on disk: lines of JSON that a run adds to, and that a later run goes on from.

A damaged line, of a disk that was full or a process that was ended half way, costs that line alone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks import harness
from benchmarks.machine import machine

Row = dict[str, Any]
Rows = dict[tuple[str, str], Row]
ASKED = ("what", "operator", "class", "extents")  # of every row


def read(path: Path, device: str | None = None) -> tuple[Rows, list[int]]:
    """The last row of each measurement and operator, and the numbers of the lines that are none.

    device: whose rows, on a processor such as this one (None: of what was measured last); times of two devices are not mixed, nor those
    of two processors that call themselves the same.
    """
    every: list[Row] = []
    rows: Rows = {}
    damaged: list[int] = []
    if not path.exists():
        return rows, damaged
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        row = parsed(line)
        if row is not None:
            every.append(row)
        elif line.strip():
            damaged.append(number)
    wanted: tuple[Any, Any] = device, machine().model
    if device is None and every:
        wanted = every[-1].get("device"), every[-1].get("processor")
    for row in every:
        if row.get("device") == wanted[0] and row.get("processor") in (None, wanted[1]):
            rows[row["what"], row["operator"]] = row
    return rows, damaged


def parsed(line: str) -> Row | None:
    """A line's row; None where it is none."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) and all(key in row for key in ASKED) else None


def begun(path: Path, what: str, operator: str) -> int:
    """How often a measurement was begun and not ended."""
    return int(read(path)[0].get((what, operator), {}).get("begun", 0))


def keep(path: Path, row: Row, device: str) -> None:
    """Adds a row. OSError: it could not be written; the file is as it was, and the row on the screen."""
    try:
        harness.record(path, [row], device)
    except OSError:
        print(json.dumps(row, sort_keys=True), flush=True)
        raise
