"""What campaigns ran, over all runs and commits: `benchmarks/results/campaign.json`.

A run is a range of seeds of one kind, for one profile or for all (empty), on one commit, with what was drawn, accepted, new and wrong.
A case is known by six bytes of the digest of its text without names; `simulated` and `native` hold those that ran so, sorted,
compressed and in base 64. So the figures count cases that differ, whichever run met them first.

    python -m benchmarks.foreign --kind steered --resume    # goes on after the last seed that is recorded for this profile
    python -m benchmarks.foreign.record                     # the figures
    python -m benchmarks.foreign.record OTHER.json ...      # takes over what other machines recorded

Campaigns for different profiles may run at once: each adds to what the file holds when it writes.
"""

import argparse
import base64
import contextlib
import hashlib
import json
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # on Windows one campaign at a time
    fcntl = None  # type: ignore[assignment]

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "benchmarks" / "results" / "campaign.json"
BYTES = 6  # of a digest: among 60,000 cases two meet by chance once in 150,000 campaigns
HOW = ("simulated", "native")
COUNTS = ("drawn", "accepted", *HOW)


class Record:
    """The file, as it was and with what is added to it. runs: in the order of their seeds."""

    def __init__(self, path: Path = RECORD):
        self.path = path
        held = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"runs": []}
        self.runs: list[dict[str, Any]] = held["runs"]
        self.known: dict[str, set[bytes]] = {how: _unpacked(held.get(how, "")) for how in HOW}

    def following(self, kind: str, profile: str = "") -> int:
        """The seed after the last one of a kind and profile."""
        return max((run["last"] for run in self.runs if (run["kind"], run["profile"]) == (kind, profile)), default=-1) + 1

    def done(self, digest: str, native: bool) -> bool:
        """Whether a case was simulated, and run natively if it can be."""
        short = bytes.fromhex(digest)[:BYTES]
        return short in self.known["simulated"] and (not native or short in self.known["native"])

    def add(self, report: dict[str, Any], profile: str, commit: str) -> None:
        """Adds a case. Of the same kind, profile and commit, seeds that follow one another are one run."""
        kind, seed = report["kind"], report["seed"]
        where = {"kind": kind, "profile": profile, "commit": commit}
        run = next((r for r in self.runs if r["last"] == seed - 1 and where.items() <= r.items()), None)
        if run is None:
            run = {**where, "first": seed, "last": seed, **dict.fromkeys(COUNTS, 0), "findings": []}
            self.runs.append(run)
        run["last"] = seed
        run["drawn"] += report.get("tried", 1) if kind == "steered" else 1
        for how, digests in (("simulated", report.get("digests", ())), ("native", report.get("native_digests", ()))):
            shortened = {bytes.fromhex(digest)[:BYTES] for digest in digests}
            run[how] += len(shortened - self.known[how])
            self.known[how] |= shortened
        run["accepted"] += len(report.get("digests", ())) if kind == "steered" else bool(report.get("ran"))
        if report["faults"]:
            run["findings"].append(seed)

    def merge(self, other: "Record") -> None:
        """Takes over what another file has. Of a run that both have, the longer one stays."""
        own = {_name(run): run for run in self.runs}
        for run in other.runs:
            if _name(run) not in own or own[_name(run)]["last"] < run["last"]:
                own[_name(run)] = run
        self.runs = list(own.values())
        for how in HOW:
            self.known[how] |= other.known[how]

    def write(self) -> None:
        """Writes the file, with what others have added to it."""
        with _alone(self.path):
            self.merge(Record(self.path))
            self._write()

    def _write(self) -> None:
        self.runs.sort(key=lambda run: (*_name(run)[:2], run["first"], run["commit"]))
        runs = ",\n".join("  " + json.dumps(run) for run in self.runs)
        hashes = "".join(f',\n "{how}": "{_packed(self.known[how])}"' for how in HOW)
        written = self.path.with_suffix(".new")
        written.write_text(f'{{"runs": [\n{runs}\n ]{hashes}\n}}\n', encoding="utf-8")
        written.replace(self.path)

    def summary(self) -> str:
        """The figures by kind, then the seeds with findings."""
        lines = []
        for kind in dict.fromkeys(run["kind"] for run in self.runs):
            mine = [run for run in self.runs if run["kind"] == kind]
            total = {c: sum(run[c] for run in mine) for c in COUNTS}
            lines.append(
                f"{kind}: {sum(run['last'] - run['first'] + 1 for run in mine)} seeds, "
                + ", ".join(f"{c} {n}" for c, n in total.items())
            )
            lines += [f"  seed {seed} ({r['commit']}): a finding" for r in mine for seed in r["findings"]]
        lines.append("distinct: " + ", ".join(f"{how} {len(self.known[how])}" for how in HOW))
        return "\n".join(lines)


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """No other process that asks for the same path is inside."""
    lock = Path(tempfile.gettempdir()) / f"tilelang-{hashlib.sha256(str(path).encode()).hexdigest()[:16]}.lock"
    with lock.open("a") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _name(run: dict[str, Any]) -> tuple[Any, ...]:
    return run["kind"], run["profile"], run["commit"], run["first"]


def _packed(digests: Iterable[bytes]) -> str:
    return base64.b64encode(zlib.compress(b"".join(sorted(digests)), 9)).decode()


def _unpacked(text: str) -> set[bytes]:
    raw = zlib.decompress(base64.b64decode(text)) if text else b""
    return {raw[n : n + BYTES] for n in range(0, len(raw), BYTES)}


def main() -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.foreign.record", description="The figures of all campaigns.")
    parser.add_argument("files", nargs="*", type=Path, help="records of other machines, which are taken over")
    chosen = parser.parse_args()
    record = Record()
    for path in chosen.files:
        record.merge(Record(path))
    if chosen.files:
        record.write()
    print(record.summary())
    return 0


if __name__ == "__main__":
    sys.exit(main())
