"""Repairs: what is derived, what is refused and why, and that loops with repairs keep their bound."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tilelang as tl
from benchmarks.repairs import campaign
from tests.repair_families import DATA, DERIVED, FAMILIES, REFUSED, arrays, schedule, shared
from tilelang import testing
from tilelang.core.expr import Binary, Call, Const, Expr, Var, binary, call, const
from tilelang.errors import Refusal
from tilelang.schedules.shared_loops import loop_of, running_of
from tilelang.schedules.steps import Split
from tilelang.semantics import reference
from tilelang.semantics.loop_members import SharedLoop
from tilelang.semantics.repair import NotDerived, proven


def loop(computation: Any) -> SharedLoop:
    return loop_of(computation, Split((("j", 4),), of=shared(computation)))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_loop_with_repairs_keeps_its_bound(family: str) -> None:
    """Simulated, with every kind of data: masked rows, infinities and scale 30 included."""
    made = schedule(FAMILIES[family]())
    program = testing.lowered(made)
    for seed, kind in enumerate(DATA):
        expected = testing.Expected(made.computation, arrays(made.computation, kind, seed), loops=made.shared_loops)
        assert testing.check_simulated(program, expected) == [], kind


@pytest.mark.parametrize("family", FAMILIES)
def test_repairs_leave_little_unclaimed(family: str) -> None:
    """Where the plain graph's bound claims something, the loop's does, but where infinities meet zeros."""
    computation = FAMILIES[family]()
    for kind in ("plain", "wide", "masked", "zeros"):
        data = arrays(computation, kind)
        _, plain = reference.evaluate_and_bound(computation, data)
        _, found = reference.evaluate_and_bound(computation, data, loops=(loop(computation),))
        for name, bound in plain.items():
            assert (np.isinf(found[name]) <= np.isinf(bound)).all(), (kind, name)


@pytest.mark.parametrize("name", REFUSED)
def test_a_term_that_cannot_be_repaired_is_refused(name: str) -> None:
    outcome, make = REFUSED[name]
    with pytest.raises(Refusal) as refused:
        loop(make())
    assert refused.value.code == f"repair-{outcome}"
    assert refused.value.counterexample or outcome != "refuted"


def edits(e: Any) -> Iterator[Any]:
    """Every expression that differs from one by one edit: another operator, function, constant, or value in time."""
    match e:
        case Var(name=name):
            other = name.replace("now(", "before(") if name.startswith("now(") else name.replace("before(", "now(")
            yield Var(other, e.dtype)
        case Const(value=v):
            yield const(v * 2 + 1, e.dtype)
        case Call(name, (argument,)):
            yield call({"exp": "exp2", "exp2": "exp", "sqrt": "tanh", "log": "log2"}.get(name, "sqrt"), argument)
            yield from (Call(name, (changed,)) for changed in edits(argument))
        case Binary(op, left, right):
            yield binary({"+": "-", "-": "+", "*": "/", "/": "*", "max": "min", "pow": "*"}[op], left, right)
            yield from (Binary(op, changed, right) for changed in edits(left))
            yield from (Binary(op, left, changed) for changed in edits(right))


@pytest.mark.parametrize("family", [*FAMILIES, *DERIVED])
def test_a_given_repair_is_proven_and_no_other(family: str) -> None:
    """The derived one is proven. With one edit, or as another kind of change, none is."""
    found = loop((FAMILIES | DERIVED)[family]())
    tried = 0
    for member in (m for m in found.members if m.repair is not None):
        repair, running = member.repair, running_of(found, member)
        assert repair is not None
        assert proven(member.reduce, running, repair.how, repair.change).change is repair.change
        wrong: list[tuple[str, Expr]] = [(repair.how, changed) for changed in edits(repair.change)]
        wrong.append(("plus" if repair.how != "plus" else "times", repair.change))
        for how, change in wrong:
            with pytest.raises(NotDerived) as refused:
                proven(member.reduce, running, how, change)
            assert refused.value.outcome in ("refuted", "not-proven")
            tried += 1
    assert tried >= 2


def test_what_no_rule_knows_is_not_proven() -> None:
    """A right repair of a term that no rule separates, and a right one in another form."""
    computation = REFUSED["half the peak"][1]()
    definition = computation.outputs[0].definition
    with pytest.raises(Refusal, match="no known repair"):
        loop(computation)
    assert definition is not None
    found = loop(FAMILIES["softmax's sum"]())
    member = found.members[1]
    (running,) = running_of(found, member)
    old, new = (Var(f"{when}(peak)", tl.float32) for when in ("before", "now"))
    with pytest.raises(NotDerived) as refused:
        proven(member.reduce, (running,), "times", tl.expm1(old - new) + 1)
    assert refused.value.outcome == "not-proven"
    assert member.repair is not None
    for same in (
        tl.exp(old) / tl.exp(new),
        1 / tl.exp(new - old),
        tl.exp((old - new) / 2) ** 2,
        tl.sqrt(tl.exp(2 * (old - new))),
    ):
        assert proven(member.reduce, (running,), "times", same).change is member.repair.change


def test_equal_values_change_nothing() -> None:
    """Where old and new value are equal, an accumulator stays as it is: a row of -infinities gives NaN as the plain graph does."""
    computation = FAMILIES["attention"]()
    data = arrays(computation, "masked")
    made = schedule(computation)
    report = tl.simulate(tl.compile(made, tl.target("opencl", profile="simulated")), **data)
    assert not report.findings
    out, want = report.outputs["out"], computation.evaluate(**data)
    assert np.isnan(out[0]).all() and np.isnan(want[0]).all()
    assert np.isfinite(out[1:4]).all() and np.abs(out[1:4] - want[1:4]).max() < 1e-5


def test_an_infinite_peak_stays_without_effect() -> None:
    """The peak is infinity from the first chunk on, at a point that the sum leaves out: infinity - infinity must not be taken."""
    made = schedule(FAMILIES["masked outside, the peak of all"]())
    data = arrays(made.computation, "plain")
    data["X"][:, 0], data["W"][:, 0] = np.inf, -1
    assert not made.computation.evaluate(**data).any()
    program = testing.lowered(made)
    assert testing.check_simulated(program, testing.Expected(made.computation, data, loops=made.shared_loops)) == []
    report = tl.simulate(tl.compile(made, tl.target("opencl", profile="simulated")), **data)
    assert not report.findings and not report.outputs["t"].any()


def test_random_terms_keep_their_bound() -> None:
    """A short run of the campaign: derived repairs hold, edited ones are not accepted."""
    tally = campaign(40)
    assert tally.faults == []
    assert tally.outcomes["derived"] > 10 and tally.outcomes["repair-refuted"] and tally.outcomes["repair-not-proven"]


def test_the_bound_counts_repairs() -> None:
    """A result that is wrong by as much as one repair rounds is within the loop's bound where chunks are many, not the plain one's."""
    computation = FAMILIES["weighted"]()
    data = arrays(computation, "wide")
    _, plain = reference.evaluate_and_bound(computation, data)
    many = loop_of(computation, Split((("j", 1),), of=shared(computation)))
    _, found = reference.evaluate_and_bound(computation, data, loops=(many,))
    assert (found["t"] >= plain["t"]).mean() > 0.5 and found["t"].sum() > plain["t"].sum()


def statistics(name: str = "peak") -> tuple[Any, Any, Any]:
    """The logarithm of a sum of exponentials, its peak and its total."""
    i, j = tl.axes(i=6, j=19)
    x = tl.input("X", tl.float32, i, j)
    peak = tl.define(name, tl.max(x[i, j], over=j), i)
    total = tl.define("total", tl.sum(tl.exp(x[i, j] - peak[i]), over=j), i)
    return tl.computation("statistics", tl.define("L", peak[i] + tl.log(total[i]), i)), peak, total


@pytest.mark.parametrize("name", ["peak", "order"])
def test_a_given_repair_is_checked_in_both_forms(name: str) -> None:
    """Equal to the derived one, it is computed like that; its text reads back, also where names are keywords."""
    computation, peak, total = statistics(name)
    old, new = tl.before(peak), tl.now(peak)
    for change in (tl.exp(old - new), tl.exp(old) / tl.exp(new), tl.exp(-(new - old)), tl.exp((old - new) * 0.5) ** 2):
        for given in (tl.before(total) * change, change * tl.before(total), tl.before(total) / (1 / change)):
            made = tl.schedule(computation).tile(i=4).to(tl.block)
            made = made.split(j=4, of=(name, "total"), repairs={"total": given})
            again = tl.parse(f"{computation.text}\n{made.text}").schedule()
            assert again.text == made.text and again.steps == made.steps
            plain = tl.schedule(computation).tile(i=4).to(tl.block).split(j=4, of=(name, "total"))
            assert made.shared_loops == plain.shared_loops
    expected = testing.Expected(again.computation, testing.arrays(again.computation), loops=again.shared_loops)
    assert testing.check_simulated(testing.lowered(again), expected) == []


def test_a_wrong_repair_is_refused_in_text() -> None:
    computation, *_ = statistics()
    for change, code in (
        ("* exp(now(peak) - before(peak))", "repair-refuted"),
        ("+ before(peak) - now(peak)", "repair-refuted"),
        ("* exp(before(peak) - now(peak)) * sqrt(before(peak) - now(peak)) / sqrt(now(peak) - before(peak))", "repair-refuted"),
        ("* (expm1(before(peak) - now(peak)) + 1.0)", "repair-not-proven"),
    ):
        text = (
            f"{computation.text}\nschedule for statistics {{ tile i=4 -> block; split j=4 of peak total=before(total) {change} }}"
        )
        with pytest.raises(Refusal) as refused:
            tl.parse(text).schedule()
        assert refused.value.code == code and (refused.value.counterexample is not None) == (code == "repair-refuted")


def test_a_repair_of_a_term_that_no_rule_separates_is_not_proven() -> None:
    """Right or wrong, what cannot be derived is not accepted; if it is wrong, with a counterexample."""
    computation = REFUSED["half the peak"][1]()
    peak, t = (computation.tensor(n) for n in ("peak", "t"))
    given = {"t": tl.before(t) * tl.exp(tl.before(peak) - tl.now(peak))}
    with pytest.raises(Refusal) as refused:
        tl.schedule(computation).tile(i=4).to(tl.block).split(j=4, of=("peak", "t"), repairs=given)
    assert refused.value.code == "repair-refuted" and refused.value.counterexample


def test_values_of_a_repair_exist_only_there() -> None:
    i, j = tl.axes(i=4, j=8)
    X = tl.input("X", tl.float32, i, j)
    peak = tl.define("peak", tl.max(X[i, j], over=j), i)
    with pytest.raises(tl.ComputationError, match="exists only in the repair"):
        tl.define("z", tl.before(peak) + X[i, j], i, j)
    best = tl.define("best", tl.argmax(X[i, j], over=j), i)
    for wrong, said in (
        (X, "the input `X` does not change in a loop"),
        (peak[i], "peak[i] is an element"),
        ("peak", "'peak' is not a tensor"),
        (best, "`best` is not a reduction itself, but computed from `best_argmax_1`"),
    ):
        with pytest.raises(tl.Refusal, match=re.escape(said)):
            tl.before(wrong)  # type: ignore[arg-type]
    with pytest.raises(tl.Refusal, match="names `peak` twice"):
        tl.schedule(peak).tile(i=2).to(tl.block).split(j=4, of=("peak", "peak"))
