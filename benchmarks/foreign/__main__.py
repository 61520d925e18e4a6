"""Draws programs and runs them: `python -m benchmarks.foreign --kind cpu --first 0 --count 100 --seconds 100`.

`--kind steered --resume --seconds 3600` goes on where the last campaign ended and adds to `benchmarks/results/campaign.json`, which
`python -m benchmarks.foreign.record` sums up; what is recorded there is not run again. Two campaigns may run at once, one of them with
`--profile`.

Cases run in a child process, which is replaced when a case exceeds its time or takes the process down. Prints what the cases used, then
every fault with the program's text; the exit status is 1 where there are faults. `benchmarks/results/findings/` has the texts of faults
that are not settled yet, each with what was said of it.
"""

import argparse
import collections
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

from benchmarks.foreign import log
from benchmarks.foreign.devices import DEVICES
from benchmarks.foreign.record import Record
from benchmarks.machine import revision
from tilelang.testing.processes import kill

Reports = Generator[dict[str, Any], None, int | None]

KINDS = ("cpu", "simulated", "constructed", "steered")
WORKER = "benchmarks.foreign.worker"
WRITTEN = 30  # seconds after which what was run so far is recorded
PATIENCE = 10  # times the seconds of a case: how long one that computes little is waited for


def reports(
    kind: str, first: int, count: int, seconds: float, case_seconds: float, profile: str = "", resumed: bool = False
) -> Iterator[dict[str, Any]]:
    """The report of every case that began within `seconds`; one that ends without a report is a fault.

    profile: the only one of steered cases; empty for all. resumed: leaves out steered cases that are recorded.
    """
    seed, end = first, time.monotonic() + seconds
    while seed < first + count and (left := end - time.monotonic()) > 0:
        command = [sys.executable, "-m", WORKER, kind, profile, str(seed), str(first + count - seed), str(left)]
        command += ["resumed"] * resumed
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, process_group=None if os.name == "nt" else 0
        ) as child:
            ended = yield from _of_child(child, kind, seed, case_seconds, profile)
        if ended is None:
            return
        seed = ended + 1


def _of_child(child: "subprocess.Popen[str]", kind: str, seed: int, case_seconds: float, profile: str = "") -> Reports:
    """The reports of one child, whose first case is `seed`; returns the case at which it was given up, None where it ended well."""
    lines: queue.Queue[str] = queue.Queue()

    def read() -> None:
        assert child.stdout is not None
        for line in child.stdout:
            lines.put(line)
        lines.put("")

    def running_text() -> str:
        return log.running(profile) if kind == "steered" else ""

    threading.Thread(target=read, daemon=True).start()
    running, began, waited = True, _processor_seconds(child.pid), 0.0
    tick = min(1.0, case_seconds)  # a pause of both processes counts as one
    while True:
        try:
            line = lines.get(timeout=tick)
            began, waited = _processor_seconds(child.pid), 0.0
        except queue.Empty:
            waited += tick
            idle = _processor_seconds(child.pid) - began < case_seconds / 2  # others may have had the processor
            if child.poll() is None and waited < case_seconds * (PATIENCE if idle else 1):
                continue
            kill(child)
            yield {"seed": seed, "kind": kind, "faults": [f"no end within {case_seconds:g} s"], "text": running_text()}
            return seed
        if not line:
            status = child.wait()
            if status == 0 and not running:
                return None
            yield {
                "seed": seed,
                "kind": kind,
                "faults": [f"the process ended with status {status}"],
                "text": running_text(),
            }
            return seed
        report = json.loads(line)
        running = "begin" in report
        if running:
            seed = report["begin"]
        else:
            yield report


def _processor_seconds(pid: int) -> float:
    """What a process has computed; where the system does not tell, how long this one has been running."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return time.monotonic()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def summary(found: list[dict[str, Any]]) -> str:
    """How many cases there were, and what they used."""
    used: collections.Counter[str] = collections.Counter()
    for report in found:
        used.update(report.get("verbs", {}))
    groups = collections.defaultdict(list)
    for name, n in sorted(used.items()):
        word, _, rest = name.partition(" ")
        groups[word if rest else "forms"].append(f"{rest or word} {n}")
    ran, refused = (sum(key in r for r in found) for key in ("ran", "program_refused"))
    lines = [f"{len(found)} cases, {ran} ran, {refused} programs refused, {sum(bool(r['faults']) for r in found)} with faults"]
    steps = [sum(r.get(key, 0) for r in found) for key in ("tried", "accepted")]
    if steps[0]:
        lines.append(f"steps: {steps[0]} tried, {steps[1]} accepted")
    return "\n".join([*lines, *(f"{word}: {', '.join(names)}" for word, names in groups.items())])


def main() -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.foreign", description=__doc__)
    parser.add_argument(
        "--kind",
        choices=KINDS,
        default="cpu",
        help="drawn schedules on this processor or simulated, or none given; or cases steered by branches",
    )
    parser.add_argument(
        "--first", type=int, help="the first seed (default: 0; of steered cases the one after the last that was run)"
    )
    parser.add_argument("--profile", choices=[d[1] for d in DEVICES], help="steered cases for this one only (default: all)")
    parser.add_argument("--resume", action="store_true", help="go on after the last recorded seed, and record what is run")
    parser.add_argument("--count", type=int, help="how many seeds (default: 100; with --resume, as many as there is time for)")
    parser.add_argument("--seconds", type=float, default=100, help="no case begins after that long")
    parser.add_argument("--case-seconds", type=float, default=60, help="a case that takes longer is a fault")
    parser.add_argument("--shrink", type=float, default=0, metavar="SECONDS", help="make each fault's program smaller, so long")
    chosen = parser.parse_args()
    steered = chosen.kind == "steered"
    record, commit = (Record(), revision()) if chosen.resume else (None, "")
    if chosen.first is not None:
        first = chosen.first
    elif record is not None:
        first = record.following(chosen.kind, chosen.profile or "")
    else:
        first = log.following() if steered else 0
    count = chosen.count if chosen.count is not None else 100 if record is None else sys.maxsize - first
    found, written = [], time.monotonic()
    for report in reports(chosen.kind, first, count, chosen.seconds, chosen.case_seconds, chosen.profile or "", chosen.resume):
        found.append(report)
        if steered:
            log.note(report)
        if record is not None:
            record.add(report, chosen.profile or "", commit)
            if time.monotonic() > written + WRITTEN:
                record.write()
                written = time.monotonic()
    if record is not None:
        record.write()
        print(record.summary())
    if steered:
        from benchmarks.foreign import counts  # needs coverage

        print(counts.summary(found))
    else:
        print(summary(found))
    faulty = [r for r in found if r["faults"]]
    for report in faulty:
        print(
            f"\n{report['kind']} seed {report['seed']} {report.get('target') or ''}",
            *report["faults"],
            report.get("text", ""),
            sep="\n",
        )
        if chosen.shrink and not steered and not report["faults"][0].startswith(("no end", "the process")):
            command = ["shrink", report["kind"], str(report["seed"]), str(chosen.shrink)]
            done = subprocess.run([sys.executable, "-m", WORKER, *command], capture_output=True, text=True, check=False)
            print(f"made smaller:\n{done.stdout}{done.stderr[-2000:]}")
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())
