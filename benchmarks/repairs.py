"""A campaign of random terms: which repairs are derived, and whether loops with them keep their bound.

Each case is a random term over inputs and one or two running values. If its repair is derived, the loop runs in float32 in NumPy, chunk
by chunk, on adversarial data (scale 30, masked rows, infinities, zeros), and the result must be within the bound of the loop around the
float64 reference. With one edit, a repair must not be accepted as proven.
Run: `python -m benchmarks.repairs --count 10000`.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import tilelang as tl
from tilelang.core import numeric
from tilelang.core.expr import Axis, Expr, Pad, Read, Var
from tilelang.errors import ComputationError, Refusal
from tilelang.schedules.shared_loops import loop_of, running_of
from tilelang.schedules.steps import Split
from tilelang.semantics import reference
from tilelang.semantics.loop_members import Member, SharedLoop
from tilelang.semantics.repair import NotDerived, before, now, proven

ROWS, COLUMNS = 4, 13
DATA = ("plain", "wide", "masked", "special", "zeros")
Draw = Callable[[np.random.Generator], Any]


@dataclasses.dataclass
class Tally:
    """What became of the cases: by outcome, and the faults in words."""

    outcomes: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    faults: list[str] = dataclasses.field(default_factory=list)
    unclaimed: int = 0
    elements: int = 0
    worst: float = 0.0

    def __str__(self) -> str:
        counts = ", ".join(f"{name}: {n}" for name, n in sorted(self.outcomes.items()))
        share = self.unclaimed / max(1, self.elements)
        lines = [f"{counts}; {self.elements} elements, {share:.1%} not claimed, at most {self.worst:.2g} of the bound"]
        return "\n".join([*lines, f"{len(self.faults)} faults", *self.faults[:20]])


def computation(generator: np.random.Generator) -> tl.Computation:
    """A random reduction `t` whose term reads the running value `peak`, or `peak` and `other`."""
    i, j = tl.axes(i=ROWS, j=COLUMNS)
    x, w = (tl.input(name, tl.float32, i, j)[i, j] for name in "XW")

    def pick(*choices: Any) -> Any:
        return choices[generator.integers(len(choices))]

    of = pick(x, x, x, abs(x), abs(x), x * x, x + w, x * 0.5 + w, tl.exp(x), tl.where(w > 0, x, -np.inf))
    by = pick("max", "max", "max", "min", "sum")
    where = {"where": j <= i * 4} if generator.random() < 0.2 else {}
    peak = tl.define("peak", getattr(tl, by)(of, over=j, **where), i)
    running = [peak[i]]
    if generator.random() < 0.2:
        running.append(tl.define("other", tl.max(w, over=j, **where), i)[i])

    def shifted() -> Any:
        m = pick(*running)
        e = pick(of, of, x, w) - m if generator.random() < 0.8 else m - pick(of, x)
        return pick(e, e, e / 4, 2 * e, e + pick(w, 0.5))

    def factor(depth: int) -> Any:
        m = pick(*running)
        match generator.integers(12):
            case 0 | 1 | 2:
                return tl.exp(shifted())
            case 3:
                return pick(x, w, of) / m
            case 4:
                return pick(x, w, of) / (m + 1)
            case 5:
                return tl.exp(-m) * x
            case 6 if depth:
                return tl.where(w > 0, factor(depth - 1), pick(0.0, w))
            case 7 if depth:
                return factor(depth - 1) * pick(w, x, 0.5, tl.sigmoid(w))
            case 8 if depth:
                return factor(depth - 1) + factor(depth - 1)
            case 9 if depth:
                return pick(lambda e: -e, abs, lambda e: tl.cast(tl.cast(e, tl.bfloat16), tl.float32))(factor(depth - 1))
            case 10 if depth:
                return factor(depth - 1) * factor(depth - 1)
        return tl.exp2(shifted())

    kind = pick("sum", "sum", "sum", "max", "min")
    term = factor(2) if kind == "sum" or generator.random() < 0.5 else shifted()
    return tl.computation("case", tl.define("t", getattr(tl, kind)(term, over=j, **where), i))


def arrays(made: tl.Computation, kind: str, generator: np.random.Generator) -> dict[str, Any]:
    """Inputs by name."""
    found = {}
    for t in made.inputs:
        x = generator.standard_normal(t.shape).astype(np.float32) * np.float32(30 if kind == "wide" else 1)
        end = {"masked": -np.inf, "zeros": 0.0}.get(kind)
        if end is not None:
            x[generator.random(t.shape) < 0.3] = end
            x[0], x[1, :6], x[2, 6:] = end, end, end
        if kind == "special":
            at = generator.random(t.shape)
            x[at < 0.03], x[(at > 0.03) & (at < 0.06)], x[(at > 0.06) & (at < 0.08)] = np.inf, -np.inf, np.nan
        found[t.name] = x
    return found


def online(loop: SharedLoop, data: Mapping[str, Any]) -> Any:
    """The last member of a loop in float32, chunk by chunk."""
    running: dict[str, Any] = {}
    for m in loop.members:
        (identity,) = m.reduce.combiner.identity
        running[m.definition.tensors[0].name] = np.full(ROWS, identity.value, np.float32)
    for begin in range(0, COLUMNS, loop.piece):
        columns = np.arange(begin, min(begin + loop.piece, COLUMNS))
        old = {name: value.copy() for name, value in running.items()}
        for member in loop.members:
            name = member.definition.tensors[0].name
            held = _repaired(member, running[name], old, running)
            running[name] = _taken(member, held, running, data, columns)
    return running[loop.members[-1].definition.tensors[0].name]


def _repaired(member: Member, held: Any, old: Mapping[str, Any], new: Mapping[str, Any]) -> Any:
    if member.repair is None:
        return held
    accumulator = Var("accumulator", tl.float32)
    known: dict[Expr, Any] = {accumulator: held}
    for r in member.repair.reads:
        known |= {before(r): old[r.tensor.name], now(r): new[r.tensor.name]}
    return numeric.evaluate(member.repair.apply(accumulator), known, np.float32).astype(np.float32)


def _taken(member: Member, held: Any, running: Mapping[str, Any], data: Mapping[str, Any], columns: Any) -> Any:
    reduce = member.reduce
    known: dict[Expr, Any] = {}
    for e in (e for x in (*reduce.values, reduce.condition) if x is not None for e in x.walk()):
        if isinstance(e, Axis):
            known[e] = np.arange(ROWS)[:, None] if e.name == "i" else columns[None, :]
        elif isinstance(e, Read) and not isinstance(e, Pad):
            name = e.tensor.name
            known[e] = running[name][:, None] if name in running else np.asarray(data[name])[:, columns]
    term = np.broadcast_to(numeric.evaluate(reduce.values[0], known, np.float32), (ROWS, columns.size)).astype(np.float32)
    if reduce.condition is not None:
        term = np.where(
            numeric.evaluate(reduce.condition, known, np.float32), term, np.float32(reduce.combiner.identity[0].value)
        )
    with np.errstate(all="ignore"):
        part = {"sum": np.sum, "max": np.max, "min": np.min}[reduce.combiner.name](term, axis=1)  # type: ignore[operator]
        return {"sum": np.add, "max": np.maximum, "min": np.minimum}[reduce.combiner.name](held, part)


def edited(change: Any, generator: np.random.Generator) -> Expr:
    """The change of a repair with one edit: the values in time exchanged at one place, or a constant factor."""
    times = [e for e in change.walk() if isinstance(e, Var)]
    if generator.random() < 0.3 or not times:
        found: Expr = change * 1.5
        return found
    one = times[generator.integers(len(times))]
    name = one.name.replace("now(", "before(") if one.name.startswith("now(") else one.name.replace("before(", "now(")

    def swapped(e: Any) -> Any:
        return Var(name, e.dtype) if e is one else e.map_children(lambda c: swapped(c) if isinstance(c, Expr) else c)

    other: Expr = swapped(change)
    return other


def case(seed: int, tally: Tally) -> None:
    """One random term."""
    generator = np.random.default_rng(seed)
    try:
        made = computation(generator)
        names = tuple(d.tensors[0].name for d in made.definitions if d.reduction is not None)
        loop = loop_of(made, Split((("j", int(generator.integers(1, 6))),), of=names))
    except Refusal as refused:
        tally.outcomes[refused.code] += 1
        return
    except ComputationError as error:
        tally.outcomes[f"not a computation: {error.code}"] += 1
        return
    member = loop.members[-1]
    if member.repair is None:
        tally.outcomes["without running values"] += 1
        return
    tally.outcomes["derived"] += 1
    with np.errstate(all="ignore"):
        for kind in DATA:
            data = arrays(made, kind, generator)
            report = reference.compare(made, data, {"t": online(loop, data)}, loops=(loop,))
            (run,) = report.runs
            tally.elements, tally.unclaimed = tally.elements + run.elements, tally.unclaimed + run.unclaimed
            tally.worst = max(tally.worst, run.worst)
            if run.wrong:
                tally.faults.append(f"seed {seed}, {kind}: {member.reduce.values[0]}: {run.first}")
    try:
        change = edited(member.repair.change, generator)
        proven(member.reduce, running_of(loop, member), member.repair.how, change)
        tally.faults.append(f"seed {seed}: `{change}` is accepted for {member.reduce.values[0]}")
    except NotDerived as refused:
        tally.outcomes[f"edited: {refused.outcome}"] += 1


def campaign(count: int, first: int = 0) -> Tally:
    """Many random terms."""
    tally = Tally()
    for seed in range(first, first + count):
        case(seed, tally)
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    start = time.perf_counter()
    tally = campaign(given.count, given.first)
    print(tally)
    print(f"{time.perf_counter() - start:.0f} s")
    raise SystemExit(bool(tally.faults))


if __name__ == "__main__":
    main()
