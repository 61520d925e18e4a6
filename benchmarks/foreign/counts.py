"""What steered campaigns ran so far, and what of the compiler nothing reached: `python -m benchmarks.foreign.counts`.

Every case is a line of `cases.jsonl` in the campaign's log folder; the corpus gives the branches.
"""

import argparse
import collections
import sys
from collections.abc import Iterable
from typing import Any

from benchmarks.foreign.branches import FOLDERS, every_source, unreachable
from benchmarks.foreign.log import noted
from benchmarks.foreign.steer import Campaign


def summary(found: Iterable[dict[str, Any]]) -> str:
    """How many texts were tried, accepted and distinct, by profile; what the accepted ones used."""
    total: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    distinct: dict[str, set[str]] = collections.defaultdict(set)
    used: collections.Counter[str] = collections.Counter()
    for r in found:
        profile = r["device"][1] if "device" in r else "?"
        own = total[profile]
        own.update({k: r.get(k, 0) for k in ("tried", "too_long", "native", "new", "took")})
        own.update(cases=1, simulated=len(r.get("digests", ())), faults=bool(r["faults"]))
        distinct[profile] |= set(r.get("digests", ()))
        used.update(r.get("verbs", {}))
    lines = []
    for profile, n in sorted(total.items()):
        accepted = n["simulated"] + n["too_long"]
        share = 100 * accepted / max(1, n["tried"])
        lines.append(
            f"{profile}: {n['cases']} cases, {n['tried']} texts tried, {accepted} accepted ({share:.0f} %),"
            f" {n['simulated']} simulated, {len(distinct[profile])} of them distinct, {n['too_long']} too long to simulate,"
            f" {n['native']} natively, {n['new']} branches new, {n['faults']} cases with faults,"
            f" {n['took'] / max(1, n['tried']):.2f} s a text"
        )
    return "\n".join([*lines, "used: " + ", ".join(f"{name} {n}" for name, n in sorted(used.items()))])


def missed(verbose: bool) -> str:
    """Of each measured file: branches that no accepted entry takes, apart from those that refuse."""
    reached = Campaign().reached
    accepted, refused = reached[False], reached[True]
    proven = unreachable()
    lines, sums = [], collections.Counter[str]()
    lines += [f"{b} is taken by an accepted case, although {proven[b]}" for b in sorted(proven.keys() & accepted)]
    for source in every_source():
        if not source.branches:
            continue
        may = source.branches - source.refusing
        left, unrefused = may - accepted, source.refusing - refused
        name = next(iter(source.branches)).file
        if name.startswith(FOLDERS):
            sums.update(may=len(may), left=len(left), refusing=len(source.refusing), unrefused=len(unrefused))
            sums.update(proven=len(left & proven.keys()), settled=len(unrefused & proven.keys()))
        lines.append(
            f"{name}: {len(may) - len(left)} of {len(may)} taken; of {len(source.refusing)} that refuse {len(unrefused)} not"
        )
        if verbose:
            lines += [f"  {b}" + (f" ({proven[b]})" if b in proven else "") for b in sorted(left)] + [
                f"  {b} (refuses{f'; {proven[b]}' if b in proven else ''})" for b in sorted(unrefused)
            ]
    share = 100 * (sums["may"] - sums["left"]) / max(1, sums["may"])
    lines.append(
        f"{' and '.join(FOLDERS)}: {sums['may'] - sums['left']} of {sums['may']} branches taken by accepted cases ({share:.1f} %);"
        f" {sums['proven']} of the others are shown not to be reachable;"
        f" of {sums['refusing']} that refuse {sums['refusing'] - sums['unrefused']} are taken,"
        f" and {sums['settled']} of the others are shown not to be reachable"
    )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.foreign.counts", description=__doc__)
    parser.add_argument("--branches", action="store_true", help="list every branch that is not taken")
    chosen = parser.parse_args()
    print(summary(noted()))
    print(missed(chosen.branches))
    return 0


if __name__ == "__main__":
    sys.exit(main())
