"""Counts the conditions that guard innermost loops: of every schedule of the examples, and of the 119 operators.

    python benchmarks/guards.py --record before.jsonl       # then, with another version of the code:
    python benchmarks/guards.py --against before.jsonl

A loop is innermost if no loop is left in it after unrolling and vectorizing. A guard is a condition on indices: of an `if`, of a choice
between values, or the number of lanes of a masked vector. As in replay.py, REPLAY_CODE is the checkout whose compiler is counted;
nothing runs. Exit status 1: an innermost loop has more guards than before.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `python benchmarks/guards.py` from anywhere

from benchmarks import replay  # puts the checkout that is counted in front of the path

if TYPE_CHECKING:
    from tilelang.lowering import ir

OPERATORS = (("cpu", "zen5"), ("cuda", "ampere"))
Counts = dict[str, int]  # innermost loops, guards in them, guards elsewhere


def counts(program: ir.Program) -> Counts:
    """How many innermost loops and guards the final kernel IR of a program has."""
    found = {"innermost": 0, "guards inside": 0, "guards elsewhere": 0}
    for kernel in program.kernels:
        _count(kernel.body, False, found)
    return found


def _count(stmt: ir.Stmt, inside: bool, found: Counts) -> None:
    from tilelang.lowering import ir

    if isinstance(stmt, ir.For) and stmt.kind != "threads" and not any(isinstance(s, ir.For) for s in ir.statements(stmt.body)):
        found["innermost"] += 1
        inside = True
    found["guards inside" if inside else "guards elsewhere"] += guards(stmt)
    for part in ir.parts(stmt):
        _count(part, inside, found)


def guards(stmt: ir.Stmt) -> int:
    """The guards of one statement, without those of the statements inside it."""
    from tilelang.core.expr import Expr, Select
    from tilelang.lowering import ir

    count = int(getattr(stmt, "count", None) is not None)
    if isinstance(stmt, ir.If):
        count += _indices_compared(stmt.condition)
    for e in (e for root in ir.expressions(stmt) for e in root.walk() if isinstance(e, Expr)):
        if isinstance(e, Select):
            count += _indices_compared(e.condition)
        elif isinstance(e, ir.Load):
            count += int(e.count is not None)
    return count


def _indices_compared(condition: Any) -> int:
    from tilelang.core.expr import COMPARISONS, INDEX, Binary

    found = (e for e in condition.walk() if isinstance(e, Binary) and e.op in COMPARISONS)
    return sum(e.left.dtype is INDEX for e in found)


def programs() -> Iterator[tuple[str, Any, str, str]]:
    """(name, schedule or computation, dialect, profile) of all that is counted."""
    import tilelang as tl
    from benchmarks import operators_cases

    for program in replay.programs():
        if program.file.startswith("examples"):
            for dialect in tl.load_profile(program.profile).dialects:
                yield f"{program} {dialect}", program, dialect, program.profile
    for operator in operators_cases.read():
        for dialect, profile in OPERATORS:
            yield f"operator {operator.id} @ {profile} {dialect}", operator, dialect, profile


def counted(what: Any, dialect: str, profile: str) -> Counts | None:
    """The counts of one program; None where it is refused."""
    import tilelang as tl

    try:
        made = replay._read(what) if isinstance(what, replay.Program) else what.computation()
        return counts(tl.compile(made, tl.target(dialect, profile=profile)).program)
    except tl.TileLangError:
        return None


def report(before: dict[str, Counts], after: dict[str, Counts]) -> str:
    """The totals of both sides, and every program whose guards in innermost loops differ."""
    common = [n for n in after if n in before]
    lines = [f"{len(common)} programs on both sides"]
    for what in ("innermost", "guards inside", "guards elsewhere"):
        lines.append(f"{what}: {sum(before[n][what] for n in common)} before, {sum(after[n][what] for n in common)} after")
    for n in common:
        if before[n]["guards inside"] != after[n]["guards inside"]:
            lines.append(f"  {n}: {before[n]['guards inside']} before, {after[n]['guards inside']} after")
    return "\n".join(lines)


def read(file: Path) -> dict[str, Counts]:
    """What `--record` wrote."""
    return dict(json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())


def main(arguments: Sequence[str] | None = None) -> int:
    """Records or compares. 1: an innermost loop has more guards than before."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--record", metavar="FILE", type=Path, help="append the counts of programs that are not in it yet")
    parser.add_argument("--against", metavar="FILE", type=Path, help="compare with what was recorded")
    parser.add_argument("--only", default="", help="programs whose names contain this")
    given = parser.parse_args(arguments)
    known = read(given.record) if given.record is not None and given.record.is_file() else {}
    found = dict[str, Counts]()
    for name, what, dialect, profile in programs():
        if given.only in name:
            if name not in known and (made := counted(what, dialect, profile)) is not None:
                known[name] = made
                if given.record is not None:
                    with given.record.open("a", encoding="utf-8") as out:
                        out.write(json.dumps([name, made]) + "\n")
            found |= {name: known[name]} if name in known else {}
    before = read(given.against) if given.against is not None else found
    print(report(before, found))
    return int(any(found[n]["guards inside"] > before[n]["guards inside"] for n in found if n in before))


if __name__ == "__main__":
    sys.exit(main())
