"""Tables of what `benchmarks/operators.py` measured: a line an operator, and by class the geometric means against the best peer."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from benchmarks import operators_cases
from benchmarks.harness import table
from benchmarks.operators_cases import CLASSES

Row = dict[str, Any]
OURS = ("ours", "called", "hand")
OLD_PEERS = ("NumPy", "PyTorch", "torch.compile", "Numba")
WORST = 10


def geometric_mean(values: Iterable[float]) -> float:
    """NaN of nothing.

    >>> round(geometric_mean([1.0, 4.0]), 6)
    2.0
    """
    logarithms = [math.log(v) for v in values]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else math.nan


def best_peer(row: Row, how: str, among: Collection[str] | None = None) -> tuple[str, float]:
    """Who else is fastest, and in how many microseconds. how: alone_us or row_us; among: these (None: all)."""
    found = {who: us for who, us in row[how].items() if who not in OURS and (among is None or who in among)}
    name = min(found, key=lambda who: found[who])
    return name, found[name]


def ratio(row: Row, how: str, among: Collection[str] | None = None) -> float:
    """How many times faster than the best peer, of all or of some. NaN where there is none of these."""
    if among is not None and not any(who in among for who in row[how]):
        return math.nan
    return float(best_peer(row, how, among)[1] / row[how]["ours"])


def number(value: float) -> str:
    """Nothing for NaN."""
    return "" if math.isnan(value) else f"{value:.2f}"


def of_limit(row: Row, us: float) -> float:
    """The machine's own least time by that measured: all bytes at the speed of a copy or all operations at the peak, what is longer."""
    return float(max(row["bytes"] * 1e-3 / row["copy_gb_per_s"], row["flops"] * 1e-3 / row["peak_gflops"]) / us)


def complete(row: Row) -> bool:
    """Whether a row has times of ours and of another."""
    return "ours" in row.get("row_us", {}) and any(who not in OURS for who in row["row_us"])


def line(row: Row) -> str:
    """One operator for someone who waits for the table."""
    if "ours" in row.get("failed", {}):
        return f"{row['operator']} FAILED: {row['failed']['ours']}"
    if "ranked_us" in row:
        found = ranked(row)
        return f"{row['operator']} top 1 by best of {len(found)}: {found[0] / min(found):.2f}" if found else row["operator"]
    said = [f"{who} WRONG: {why}" for who, why in row["wrong"].items()] + [f"{who} {why}" for who, why in row["failed"].items()]
    cells = [f"{who} {us:.0f}" for who, us in row["row_us"].items()]
    head = f"{row['operator']} {' '.join(map(str, row['extents']))}: {', '.join(cells)} us in a row"
    if complete(row):
        head += f"; {ratio(row, 'row_us'):.2f} of the best peer, {ratio(row, 'alone_us'):.2f} alone"
    return "; ".join([head, f"schedule {row['schedule_ms']:.0f} ms, kernel {row['kernel_ms']:.0f} ms", *said])


def ranked(row: Row) -> list[float]:
    """Measured times of candidates in the model's order; those that failed are left out."""
    return [us for _, us in sorted(row["ranked_us"].items(), key=lambda item: int(item[0]))]


def kendall(row: Row) -> float:
    """Kendall's tau between the estimates and the times of the candidates; ties of estimates count as neither."""
    pairs = [(row["ranked"][int(n)][0], us) for n, us in row["ranked_us"].items()]
    agree = disagree = 0
    for i, (estimate, us) in enumerate(pairs):
        for other, other_us in pairs[:i]:
            sign = (estimate - other) * (us - other_us)
            agree, disagree = agree + (sign > 0), disagree + (sign < 0)
    return (agree - disagree) / max(1, agree + disagree)


def by_class(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each class that has some, in the order of the set."""
    found = {name: [row for row in rows if row["class"] == name] for name in dict.fromkeys(CLASSES.values())}
    return {name: members for name, members in found.items() if members}


def operators(rows: Sequence[Row]) -> str:
    """Every operator measured."""
    header = (
        "operator", "extents", "us in a row", "alone", "called", "best peer", "its us", "x peer", "x old", "x alone", "x hand",
        "of limit",
    )  # fmt: skip
    lines = []
    for row in rows:
        name, us = best_peer(row, "row_us")
        ours = row["row_us"]["ours"]
        hand = f"{row['row_us']['hand'] / ours:.2f}" if "hand" in row["row_us"] else ""
        called = f"{row['alone_us']['called']:.1f}" if "called" in row["alone_us"] else ""
        lines.append(
            (row["operator"], " ".join(map(str, row["extents"])), f"{ours:.1f}", f"{row['alone_us']['ours']:.1f}", called, name,
             f"{us:.1f}", f"{ratio(row, 'row_us'):.2f}", number(ratio(row, "row_us", OLD_PEERS)),
             f"{ratio(row, 'alone_us'):.2f}", hand, f"{of_limit(row, ours):.2f}")
        )  # fmt: skip
    return table([header, *lines])


def classes(rows: Sequence[Row]) -> str:
    """Geometric means by class against the best peer of each operator, and in how many we are no slower."""
    header = ("class", "operators", "x peer in a row", ">= 1", "x peer alone", ">= 1", "x old", "called", "x hand", "of limit")
    lines = []
    for name, members in [*by_class(rows).items(), ("all", rows)]:
        cells = [name, str(len(members))]
        for how in ("row_us", "alone_us"):
            ratios = [ratio(r, how) for r in members]
            cells += [f"{geometric_mean(ratios):.2f}", f"{sum(v >= 1 for v in ratios) / len(ratios):.0%}"]
        called = geometric_mean(
            best_peer(r, "alone_us")[1] / r["alone_us"]["called"] for r in members if "called" in r["alone_us"]
        )
        hand = geometric_mean(r["row_us"]["hand"] / r["row_us"]["ours"] for r in members if "hand" in r["row_us"])
        old = geometric_mean(v for r in members if not math.isnan(v := ratio(r, "row_us", OLD_PEERS)))
        cells += [number(mean) for mean in (old, called, hand)]
        lines.append((*cells, f"{geometric_mean(of_limit(r, r['row_us']['ours']) for r in members):.2f}"))
    return table([header, *lines])


def slowest(rows: Sequence[Row]) -> str:
    """The operators of each class that are furthest behind the best peer in calls in a row, each with its ratio."""
    lines = []
    for name, members in by_class(rows).items():
        worst = sorted((ratio(row, "row_us"), row["operator"]) for row in members)[:WORST]
        lines.append(f"{name}: {', '.join(f'{operator} {found:.2f}' for found, operator in worst)}")
    return "\n".join(lines)


def compiling(rows: Sequence[Row]) -> str:
    """How long schedules and kernels took."""
    lines = []
    for name, key in (("formula to schedule", "schedule_ms"), ("formula to a kernel that has run", "kernel_ms")):
        worst = max(rows, key=lambda r: float(r[key]))
        middle = statistics.median(r[key] for r in rows)
        lines.append(f"{name}: median {middle:.0f} ms, worst {worst[key]:.0f} ms ({worst['operator']})")
    return "\n".join(lines)


def pruned(rows: Sequence[Row]) -> str:
    """Which share of what construction generated each rule dropped, by class."""
    rules = list(dict.fromkeys(rule for row in rows for rule in row["pruned"]))
    lines: list[tuple[str, ...]] = []
    for name, members in [*by_class(rows).items(), ("all", rows)]:
        generated = sum(r["generated"] for r in members)
        dropped = [sum(r["pruned"].get(rule, 0) for r in members) for rule in rules]
        lines.append((name, str(generated), *(f"{count / generated:.1%}" for count in (*dropped, sum(dropped)))))
    return table([("class", "generated", *rules, "all rules"), *lines])


def rankings(rows: Sequence[Row]) -> str:
    """The model's first schedule against the best of its first sixteen, and the best of its first eight."""
    header = ("class", "operators", "top 1 / best", "best of 8 / best", "Kendall's tau")
    lines: list[tuple[str, ...]] = []
    for name, members in [*by_class(rows).items(), ("all", rows)]:
        times = [ranked(r) for r in members]
        first = geometric_mean(t[0] / min(t) for t in times)
        eight = geometric_mean(min(t[:8]) / min(t) for t in times)
        tau = statistics.mean(map(kendall, members))
        lines.append((name, str(len(members)), f"{first:.3f}", f"{eight:.3f}", f"{tau:.2f}"))
    return table([header, *lines])


def section(title: str, text: Callable[[], str], rows: Sequence[Row]) -> list[str]:
    return [f"\n{title}\n", text()] if rows else []


def show(rows: Sequence[Row]) -> str:
    """All tables, then who was not measured and why."""
    timed = [row for row in rows if complete(row) and row["what"] == "times"]
    tried = [row for row in rows if complete(row) and row["what"] == "trials"]
    in_order = [row for row in rows if row["what"] == "ranking" and len(row.get("ranked_us", {})) > 1]
    swept = [row for row in rows if row["what"] == "sweep" and len(row.get("ranked_us", {})) > 1]
    out = section("Every operator", lambda: operators(timed), timed)
    worst = sorted(timed, key=lambda r: ratio(r, "row_us"))[:WORST]
    out += section(f"The worst {len(worst)}", lambda: operators(worst), worst)
    out += [f"{row['operator']}: {row['schedule']}\n  {parts(row)}" for row in worst]
    out += section("By class, geometric means against the best peer of each operator", lambda: classes(timed), timed)
    out += section(f"The worst of each class in a row, at most {WORST}", lambda: slowest(timed), timed)
    out += section("The same where candidates are timed on the device and the best is taken", lambda: classes(tried), tried)
    out += section("Time to compile", lambda: compiling(timed), timed)
    counted = [row for row in timed if "generated" in row]
    out += section("Shares of the candidates that were dropped, by rule", lambda: pruned(counted), counted)
    out += section("Ranking, of the model's first 16", lambda: rankings(in_order), in_order)
    out += section("Ranking, of schedules from all that construction looked at", lambda: rankings(swept), swept)
    for row in rows:
        out += [f"WRONG: {row['operator']} ({row['what']}): {who}: {why}" for who, why in row.get("wrong", {}).items()]
        out += [f"FAILED: {row['operator']} ({row['what']}): {who}: {why}" for who, why in row.get("failed", {}).items()]
        out += [f"FAILED: {row['operator']} ({row['what']}): begun {row['begun']} times, never ended"] if "begun" in row else []
    reasons = dict.fromkeys((who, why) for row in timed for who, why in row["absent"].items())
    if timed:
        copy, peak = (statistics.median(r[key] for r in timed) for key in ("copy_gb_per_s", "peak_gflops"))
        out.append(f"\nlimit: the longer of all bytes once at {copy:.0f} GB/s (a copy) and all operations at {peak:.0f} GFLOP/s")
        out.append(
            "called: microseconds of kernel(..., out=y) with NumPy's arrays; by class, the best peer's call by itself over it"
        )
        counts = Counter(row.get("revision", "unknown") for row in timed)
        out.append(f"x old: against the best of {', '.join(OLD_PEERS)} alone; x peer: against the best of all")
        out += not_measured(rows)
        out += measured_with(timed)
        out.append("measured at " + ", ".join(f"{name} ({count} operators)" for name, count in counts.most_common()))
    return "\n".join([*out, *(f"{who}: {why}" for who, why in reasons)] or ["nothing was measured"])


def not_measured(rows: Sequence[Row]) -> list[str]:
    """Why an operator of the set has no line above."""
    known = {row["operator"]: row for row in rows if row["what"] == "times"}
    same = [f"{o.id} = {o.duplicate_of}" for o in operators_cases.read() if o.duplicate_of]
    never = [o.id for o in operators_cases.read() if not o.duplicate_of and o.id not in known]
    failed = [name for name, row in known.items() if not complete(row)]
    reasons = (("the same as another", same), ("not measured yet", never), ("begun, without times", failed))
    return [f"{len(which)} {why}: {', '.join(which)}" for why, which in reasons if which]


def measured_with(rows: Sequence[Row]) -> list[str]:
    """The versions that each peer's times are of."""
    out = []
    for who in dict.fromkeys(who for row in rows for who in row["row_us"] if who not in OURS):
        counts = Counter(row.get("peer_versions", {}).get(who, "unknown") for row in rows if who in row["row_us"])
        out.append(f"version of {who}: " + ", ".join(f"{name} ({count} operators)" for name, count in counts.most_common()))
    return out


def parts(row: Row) -> str:
    """The model's breakdown beside the time measured."""
    said = ", ".join(f"{what} {us:.0f}" for what, us in row["parts_us"].items() if us >= 0.5)
    return f"{row['row_us']['ours']:.0f} us measured, {row['estimate_us']:.0f} estimated ({said}), no less than {row['bound_us']:.0f}"
