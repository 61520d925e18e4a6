"""What campaigns ran, over all runs and commits: `benchmarks/results/campaign.json`.

A run is a range of seeds of one kind, for one profile or for all (empty), on one commit, with what was drawn, accepted, new and wrong.
The text of a finding is kept in `findings/` beside the file, for a seed draws another case when the corpus has changed. `--again` runs
these texts: where one finds nothing any more, the finding is settled, at this commit; where the text is lost, it counts as lost.
A case is known by six bytes of the digest of its text without names; `simulated` and `native` hold those that ran so, sorted,
compressed and in base 64. So the figures count cases that differ, whichever run met them first.

    python -m benchmarks.foreign --kind steered --resume    # goes on after the last seed that is recorded for this profile
    python -m benchmarks.foreign.record                     # the figures
    python -m benchmarks.foreign.record --again             # runs what had findings again
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
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.machine import revision

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
            self._keep(self.text_of(profile, seed), report)

    @staticmethod
    def _keep(path: Path, report: dict[str, Any]) -> None:
        """Keeps the text of a steered case, below its first line with what was wrong."""
        head, _, rest = report.get("text", "").partition("\n")
        said = "".join(f"# {line[:200]}\n" for fault in report["faults"] for line in fault.splitlines()[:2])
        if rest and report["kind"] == "steered":
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"{head}\n{said}{rest}", encoding="utf-8")

    def text_of(self, profile: str, seed: int) -> Path:
        """Where the text of a finding is kept."""
        return self.path.parent / "findings" / f"{profile or 'all'}_{seed}.tile"

    def again(self, faults: Callable[[str, int], list[str]], commit: str) -> Iterator[str]:
        """Settles each open finding whose text finds nothing any more, and says what the others find."""
        for run in (run for run in self.runs if run["kind"] == "steered"):
            for seed in open_findings(run):
                path = self.text_of(run["profile"], seed)
                if not path.exists():
                    run.setdefault("lost", []).append(seed)
                elif found := faults(path.read_text(encoding="utf-8"), seed):
                    yield f"{path.name}: {found[0].splitlines()[0]}"
                else:
                    run.setdefault("settled", {})[str(seed)] = commit
                    path.unlink()

    def merge(self, other: "Record") -> None:
        """Takes over what another file has. Of a run that both have, the longer one stays."""
        own = {_name(run): run for run in self.runs}
        for run in other.runs:
            mine = own.get(_name(run), run)
            longer = run if mine["last"] < run["last"] else mine
            settled, lost = mine.get("settled", {}) | run.get("settled", {}), {*mine.get("lost", ()), *run.get("lost", ())}
            said = {"settled": settled, "lost": sorted(n for n in lost if str(n) not in settled)}
            own[_name(run)] = {key: value for key, value in (longer | said).items() if value or key not in said}
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
        """The figures by kind, then the seeds with open findings."""
        lines = []
        for kind in dict.fromkeys(run["kind"] for run in self.runs):
            mine = [run for run in self.runs if run["kind"] == kind]
            total = {c: sum(run[c] for run in mine) for c in COUNTS}
            lines.append(
                f"{kind}: {sum(run['last'] - run['first'] + 1 for run in mine)} seeds, "
                + ", ".join(f"{c} {n}" for c, n in total.items())
            )
            lines += [f"  seed {seed} ({r['commit']}): a finding" for r in mine for seed in open_findings(r)]
            settled, lost = (sum(len(r.get(key, ())) for r in mine) for key in ("settled", "lost"))
            if settled or lost:
                lines.append(f"  {settled} findings are settled: their texts find nothing any more; {lost} texts are lost")
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


def open_findings(run: dict[str, Any]) -> list[int]:
    """The seeds of a run whose findings are neither settled nor lost."""
    return [n for n in run["findings"] if str(n) not in run.get("settled", {}) and n not in run.get("lost", ())]


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
    parser.add_argument(
        "--again", action="store_true", help="run the texts of open findings; those that find nothing are settled"
    )
    chosen = parser.parse_args()
    record = Record()
    for path in chosen.files:
        record.merge(Record(path))
    if chosen.again:
        from benchmarks.foreign.steer import faults_of_text  # needs coverage

        for line in record.again(faults_of_text, revision()):
            print(line, flush=True)
    if chosen.files or chosen.again:
        record.write()
    print(record.summary())
    return 0


if __name__ == "__main__":
    sys.exit(main())
