"""Repairs: how the accumulator of a reduction is corrected when the running value of another reduction changes (as in online softmax).

In a loop that several reductions share, a term g(u, x) reads the running value x of another reduction; u stands for everything else.
When x changes to x', the accumulator must become what it would be if every term had been g(u, x'). `derive` finds a correction that
does not recompute the terms:

    sum           g = a(u) * b(x)   multiply the accumulator by b(x') / b(x)
    prod          g = a(u) * b(x)   multiply it by (b(x') / b(x))**n after n terms
    max, min      g = a(u) + b(x)   add b(x') - b(x)
                  g = a(u) * b(x)   as for a sum, if the quotient is proven to be positive
    argmax, argmin                  as max and min; the index stays as it is

The separation (separation.py) is the proof; a numeric test guards its implementation. The quotient is undefined where b(x) is 0 or
infinite, as exp(-x) is while every term of a maximum was -infinity. A `Reset` gives the accumulator there. Its value follows from what
x implies about the terms so far (running_facts.py): if they were all -infinity, exp of them is 0. An accumulator does not change if the
old and the new value of x are equal.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tilelang.core.expr import (
    Axis,
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Pad,
    Read,
    Reduce,
    Select,
    Unary,
    Var,
    binary,
    const,
    rewrite,
    substitute,
)
from tilelang.semantics.normal_form import equal_forms
from tilelang.semantics.running_facts import Facts
from tilelang.semantics.separation import Running, Separation, before, difference, now, quotient

__all__ = ["NotDerived", "Repair", "Reset", "Running", "before", "derive", "now", "proven"]

EXTREMES = {"max": -math.inf, "min": math.inf}
_OUTCOMES = ("refused", "refuted", "not-proven")


class NotDerived(Exception):
    """No repair was derived. outcome: "refused" if no rule applies, "refuted" if `counterexample` shows that none exists, and
    "not-proven" if the conditions of a rule could not be proven."""

    def __init__(self, outcome: str, reason: str, counterexample: str | None = None) -> None:
        super().__init__(reason)
        assert outcome in _OUTCOMES
        self.outcome, self.reason, self.counterexample = outcome, reason, counterexample


@dataclasses.dataclass(frozen=True)
class Reset:
    """If the running value of `read` was `at`, the accumulator becomes `to`, whatever the new running value is."""

    read: Read
    at: Const
    to: Const


@dataclasses.dataclass(frozen=True)
class Repair:
    """A correction of an accumulator. how: "times", "plus" or "power" (a factor for each term). change: the factor or the summand, an
    expression over `before` and `now` of `reads`. separated: the parts a(u) and b(x) of the term."""

    how: str
    change: Expr
    resets: tuple[Reset, ...]
    reads: tuple[Read, ...]
    separated: tuple[Expr, Expr]
    kept: Const | None = (
        None  # an accumulator with this value has no terms, and does not change: the factor may round to 0 or infinity
    )

    def apply(self, accumulator: Expr, count: Expr | None = None) -> Expr:
        """The corrected accumulator, an expression over `before` and `now`. count: the number of terms so far, for a product."""
        change = self.change if self.change.dtype == accumulator.dtype else Cast(self.change, accumulator.dtype)
        if self.how == "power":
            assert count is not None, "a product's repair counts its terms"
            change = binary("pow", change, count)
        found = binary("+" if self.how == "plus" else "*", accumulator, change)
        if self.kept is not None:
            found = Select(Binary("==", accumulator, const(self.kept.value, accumulator.dtype)), accumulator, found)
        for reset in self.resets:
            to = const(reset.to.value, accumulator.dtype)
            found = Select(Binary("==", before(reset.read), reset.at), to, found)
        same: Expr | None = None
        for read in self.reads:
            equal = Binary("==", before(read), now(read))
            same = equal if same is None else Binary("and", same, equal)
        return found if same is None else Select(same, accumulator, found)

    def __str__(self) -> str:
        sign = {"times": "*", "plus": "+", "power": "* each"}[self.how]
        return f"{sign} {self.change}"


def derive(reduce: Reduce, running: Sequence[Running]) -> Repair | None:
    """The repair of a reduction whose terms read running values; None if they read none. Raises NotDerived.

    >>> import tilelang as tl
    >>> i, j = tl.axes(i=4, j=8)
    >>> X = tl.input("X", tl.float32, i, j)
    >>> peak = tl.define("peak", tl.max(X[i, j], over=j), i)
    >>> total = tl.define("total", tl.sum(tl.exp(X[i, j] - peak[i]), over=j), i)
    >>> reduce = total.definition.reduction
    >>> repair = derive(reduce, [Running(reduce.values[0].args[0].right, "max", reduce.values[0].args[0].left)])
    >>> print(repair, "|", *(f"{r.read} = {r.at}: {r.to}" for r in repair.resets))
    * exp(before(peak) - now(peak)) | peak[i] = -inf: 0.0
    """
    read_by = [r for r in running if any(e is r.read for v in reduce.values for e in v.walk())]
    if reduce.condition is not None and any(e is r.read for r in running for e in reduce.condition.walk()):
        raise NotDerived("refused", f"its condition `{reduce.condition}` reads a value that is not final")
    if not read_by:
        return None
    made = _Derivation(reduce, read_by)
    _check_kinds(reduce, read_by)
    repair = made.repair()
    made.guard(repair)
    return repair


def proven(reduce: Reduce, running: Sequence[Running], how: str, change: Expr) -> Repair:
    """Checks a given repair, an expression over `before` and `now`; returns the derived one if they are equal as real numbers.

    Raises NotDerived: "refuted" with values for which it is wrong, "not-proven" if none are found.

    >>> import tilelang as tl
    >>> i, j = tl.axes(i=4, j=8)
    >>> X = tl.input("X", tl.float32, i, j)
    >>> peak = tl.define("peak", tl.max(X[i, j], over=j), i)
    >>> reduce = tl.define("total", tl.sum(tl.exp(X[i, j] - peak[i]), over=j), i).definition.reduction
    >>> of = [Running(reduce.values[0].args[0].right, "max", reduce.values[0].args[0].left)]
    >>> print(proven(reduce, of, "times", tl.exp(before(of[0].read) - now(of[0].read))))
    * exp(before(peak) - now(peak))
    >>> proven(reduce, of, "times", tl.exp(now(of[0].read) - before(of[0].read)))
    Traceback (most recent call last):
    tilelang.semantics.repair.NotDerived: `exp(now(peak) - before(peak))` does not repair `exp(X[i, j] - peak[i])`
    """
    read_by = [r for r in running if any(e is r.read for v in reduce.values for e in v.walk())]
    _check_kinds(reduce, read_by)
    made = _Derivation(reduce, read_by)
    given = Repair(how, change, (), tuple(r.read for r in read_by), (reduce.values[0], const(1, reduce.values[0].dtype)))
    wrong = made.wrong(given)
    if wrong is not None:
        raise NotDerived("refuted", f"`{change}` does not repair `{reduce.values[0]}`", wrong)
    try:
        derived = made.repair()
    except NotDerived as unknown:
        raise NotDerived("not-proven", unknown.reason, unknown.counterexample) from None
    at_least_0 = [when(r.read) for r in read_by if made.separation.is_at_least_0(r.read) for when in (before, now)]
    if derived.how != how or not equal_forms(derived.change, change, at_least_0):
        raise NotDerived("not-proven", f"`{change}` could not be proven to be equal to `{derived.change}`, which is a repair")
    return derived


def _check_kinds(reduce: Reduce, running: Sequence[Running]) -> None:
    """Refuses reductions, and reads in them, that no rule covers."""
    name, term = reduce.combiner.name, reduce.values[0]
    if name not in ("sum", "prod", "max", "min", "argmax", "argmin"):
        raise NotDerived("refused", f"`{name}` is a user-defined combiner, and repairs are known only for sums, products"
                         " and extremes")  # fmt: skip
    if any(e is r.read for r in running for v in reduce.values[1:] for e in v.walk()):
        raise NotDerived("refused", f"the index of an {name} reads a value that is not final")
    for r in running:
        if not r.read.dtype.is_float or not term.dtype.is_float:
            raise NotDerived("refused", f"`{r.read}` is {r.read.dtype}, and repairs are derived for floats only")
        if r.combiner not in ("max", "min", "sum"):
            raise NotDerived(
                "refused",
                f"`{r.read}` is a {r.combiner}, and repairs are known only for terms that read a maximum, a minimum or a sum",
            )


# ---------------------------------------------------------------- the derivation


def _turned(direction: int | None) -> int | None:
    return None if direction is None else -direction


def _common(a: int | None, b: int | None) -> int | None:
    """The direction of the sum of two expressions with these directions."""
    if a is None or b is None or a * b < 0:
        return None
    return a or b


class _Derivation:
    def __init__(self, reduce: Reduce, running: Sequence[Running]) -> None:
        self.reduce, self.running = reduce, running
        self.name, self.term = reduce.combiner.name.removeprefix("arg"), reduce.values[0]
        self.separation = Separation(running)

    def repair(self) -> Repair:
        parts = self.separation.plus(self.term) if self.name in ("max", "min") else None
        if parts is not None:
            how, change = "plus", difference(parts[1], self._moves)
            zeros = self._argument(parts[1])
        else:
            parts = self.separation.times(self.term)
            if parts is None:
                raise self._inseparable()
            if self.name in ("max", "min") and not self.separation.is_at_least_0(parts[1]):
                raise NotDerived(
                    "not-proven", f"`{parts[1]}` may change its sign, and the {self.name} would then be that of another term"
                )
            how, change = "power" if self.name == "prod" else "times", quotient(parts[1], self._moves)
            zeros = self._factor(parts[1])
        assert change is not None, "the part that reads running values depends on them"
        used = tuple(r for r in self.running if any(e is r.read for e in parts[1].walk()))
        if self.name == "prod" and zeros:
            raise NotDerived("not-proven", f"`{zeros[0]}` may be 0, and a product of 0 does not show how many factors were 0")
        resets = [reset for r in used for reset in self._resets(r, parts[0], how, r.read in zeros)]
        if how == "times" and not (self.separation.is_at_least_0(parts[1]) and self._direction(parts[1]) in (0, -1)):
            raise NotDerived(
                "not-proven",
                f"`{change}` could not be proven to be at most 1: the accumulator may have rounded to 0, or be infinite, before a"
                " greater factor is applied",
            )
        seen = {r.read for r in used if r.combiner in EXTREMES}  # a reset covers their value before the first term
        sure = how == "power" or len(seen) == len(used) and (how == "plus" or self.name == "sum")
        kept = None if sure else self.reduce.combiner.identity[0]
        return Repair(how, change, tuple(resets), tuple(r.read for r in used), parts, kept)

    def _moves(self, e: Expr) -> bool:
        return self.separation.depends(e)[1]

    def _direction(self, e: Expr) -> int | None:
        """How an expression changes as running values take more terms: 1 if it never decreases, -1 if it never increases, 0 if it reads
        none; None if unknown."""
        if not self._moves(e):
            return 0
        match e:
            case Read() if e in self.separation.running:
                r = self.separation.running[e]
                grows = r.combiner == "max" or r.combiner == "sum" and not self._moves(r.term) and self._never_negative(r.term)
                return 1 if grows else -1 if r.combiner == "min" else None
            case Cast(operand, t) if t.is_float:
                return self._direction(operand)
            case Unary("-", operand):
                return _turned(self._direction(operand))
            case Call("exp" | "exp2" | "log" | "log2" | "sqrt" | "tanh" | "sigmoid", (argument,)):
                return self._direction(argument)
            case Call("rsqrt", (argument,)):
                return _turned(self._direction(argument))
            case Call("abs", (argument,)) if self._never_negative(argument):
                return self._direction(argument)
            case Binary("+" | "min" | "max", left, right):
                return _common(self._direction(left), self._direction(right))
            case Binary("-", left, right):
                return _common(self._direction(left), _turned(self._direction(right)))
            case Binary("*" | "/" as op, left, right):
                return self._of_product(left, right, op == "/")
            case Binary("pow", base, Const(value=n)) if self._never_negative(base):
                return self._direction(base) if n >= 0 else _turned(self._direction(base))
            case Select(condition, then, otherwise) if not self._moves(condition):
                return _common(self._direction(then), self._direction(otherwise))
        return None

    def _of_product(self, left: Expr, right: Expr, inverse: bool) -> int | None:
        """The direction of a product or quotient of a constant and anything, or of two values that are never negative."""
        first, second = self._direction(left), self._direction(right)
        second = _turned(second) if inverse and self._never_negative(right) else None if inverse and second else second
        for constant, other, moves in ((left, right, second), (right, left, first)):
            if isinstance(constant, Const) and not (inverse and other is right and not self._never_negative(right)):
                return moves if constant.value >= 0 else _turned(moves)
        return _common(first, second) if self._never_negative(left) and self._never_negative(right) else None

    def _never_negative(self, e: Expr) -> bool:
        return self.separation.is_at_least_0(e)

    def _factor(self, e: Expr) -> list[Read]:
        """The running values whose zeros make a factor 0 or infinite. Raises NotDerived if anything else might."""
        match e:
            case Read() if e in self.separation.running:
                return [e]
            case _ if not self._moves(e):
                return []
            case Binary("*" | "/", left, right):
                return [*self._factor(left), *self._factor(right)]
            case Binary("pow", operand, _) | Unary("-", operand) | Cast(operand, _) | Call("abs", (operand,)):
                return self._factor(operand)
            case Call("sqrt" | "rsqrt", (operand,)) if self.separation.is_at_least_0(operand):
                return self._factor(operand)
            case Call("exp" | "exp2", (argument,)):
                return self._argument(argument)
        if not self.separation.is_positive(e):
            raise NotDerived(
                "not-proven", f"`{e}` may be 0 at first, and an accumulator of terms multiplied by 0 cannot be repaired"
            )
        return self._argument(e)

    def _argument(self, e: Expr) -> list[Read]:
        """The running values whose zeros make a value infinite. Raises NotDerived if anything else might."""
        if not self._moves(e) or e in self.separation.running:
            return []
        match e:
            case Binary("/", left, right):
                return [*self._argument(left), *self._factor(right)]
            case Binary("+" | "-" | "*" | "max" | "min", left, right):
                return [*self._argument(left), *self._argument(right)]
            case Unary("-", operand) | Cast(operand, _):
                return self._argument(operand)
            case Call("exp" | "exp2" | "abs" | "tanh" | "sigmoid" | "sin" | "cos", (argument,)):
                return self._argument(argument)
            case Call("sqrt", (argument,)) if self.separation.is_at_least_0(argument):
                return self._argument(argument)
            case Call("log" | "log2", (argument,)) if self.separation.is_positive(argument):
                return self._argument(argument)
            case Binary("pow", base, Const(value=n)) if n >= 0:
                return self._argument(base)
        raise NotDerived("not-proven", f"`{e}` could not be proven to be finite for every value so far")

    def _resets(self, r: Running, part: Expr, how: str, zero: bool) -> Iterator[Reset]:
        """The resets for values of a running value at which the quotient is undefined. Raises NotDerived."""
        t = self.term.dtype
        identity = self.reduce.combiner.identity[0]
        if r.condition is not None and r.condition is not self.reduce.condition:
            raise NotDerived("not-proven", f"`{r.read.tensor.name}` reduces only points where `{r.condition}`, but the term that reads"
                             " it is summed at other points, too: its value says nothing about the terms there")  # fmt: skip
        if r.combiner in EXTREMES:
            end, sign = EXTREMES[r.combiner], -1 if r.combiner == "max" else 1
            facts = Facts(low=frozenset((r.term,))) if sign < 0 else Facts(high=frozenset((r.term,)))
            at = const(end, r.read.dtype)
            bounded = sign < 0 and self.separation.is_at_least_0(r.term)
            if not bounded:  # if the terms are bounded, only an empty maximum is -infinity
                if how == "plus":
                    proven = facts.closed().is_infinite(part, -1 if self.name == "max" else 1)
                else:
                    proven = self.name == "sum" and facts.closed().is_zero(part)
                if not proven:
                    what = identity.value if how == "plus" or self.name != "sum" else 0
                    raise NotDerived("refuted" if not self._related(r, part) else "not-proven",
                                     f"while `{r.read.tensor.name}` is {end}, no factor or summand repairs the accumulator, and it is"
                                     f" not proven that `{part}` then keeps it at {what}",
                                     f"`{r.term}` is {end} at all points of the first chunk, and not later")  # fmt: skip
            yield Reset(r.read, at, const(identity.value, t))
        if zero and not (r.combiner == "min" and self.separation.is_at_least_0(r.term)):  # such a minimum stays 0 once it is 0
            if not self.separation.is_at_least_0(r.term):
                raise NotDerived("refuted", f"`{r.read.tensor.name}` may be 0 at first, and then `{self.term}` is infinite or 0",
                                 self._zero_example(r))  # fmt: skip
            facts = Facts(zero=frozenset((r.term,)))
            if r.combiner == "sum":
                facts = self._without_running(facts)
            if not facts.closed().is_zero(part) or r.combiner == "sum" and self.name != "sum":
                raise NotDerived("not-proven", f"while `{r.read.tensor.name}` is 0, `{part}` could not be proven to be 0")
            yield Reset(r.read, const(0, r.read.dtype), const(0, t))

    def _without_running(self, facts: Facts) -> Facts:
        """The facts without the finite running values in them: if x + y is -infinity and y is finite, x is -infinity."""
        low = set[Expr]()
        for e in facts.closed().low:
            parts = self.separation.plus(e)
            low.update({e} if parts is None else {parts[0]})
        return Facts(frozenset(low), facts.high, facts.zero)

    def _related(self, r: Running, part: Expr) -> bool:
        """Whether a part reads anything that the term of the running value reads."""
        own = {e for e in r.term.walk() if isinstance(e, (Read, Pad))}
        return any(e in own for e in part.walk())

    def _zero_example(self, r: Running) -> str:
        ends = {"max": "-1, then 0, then 1", "min": "1, then 0, then -1", "sum": "1, then -1, then 1"}
        return f"the values of `{r.term}` are {ends[r.combiner]}"

    # ------------------------------------------------------------ numbers

    def _inseparable(self) -> NotDerived:
        """The reason why a term cannot be separated, with a counterexample if random values show that no repair exists."""
        form = {"max": "a(u) + b(x) or a(u) * b(x)", "min": "a(u) + b(x) or a(u) * b(x)"}.get(self.name, "a(u) * b(x)")
        names = ", ".join(f"`{r.read}`" for r in self.running)
        reason = f"the term `{self.term}` is not of the form {form} with x for {names}"
        trial = Trial(self.term, self.running, 2)
        for _ in range(64):
            old, new = trial.draw()
            if self.name in ("max", "min"):  # then the order of two terms must not change
                turned = (old[0] - old[1]) * (new[0] - new[1]) < 0
                shown = (
                    f"of two terms {old[0]:.3g} and {old[1]:.3g} the {self.name} is the other one afterwards: {new[0]:.3g} and"
                )
                shown += f" {new[1]:.3g}"
            else:
                with_old = old[0] * new[1] - old[1] * new[0]
                turned = abs(with_old) > 1e-6 * (abs(old[0] * new[1]) + abs(old[1] * new[0]))
                shown = f"one term changes from {old[0]:.3g} to {new[0]:.3g}, another one from {old[1]:.3g} to {new[1]:.3g}"
            if math.isfinite(sum(old) + sum(new)) and turned:
                return NotDerived("refuted", reason, f"{trial.changes()}: {shown}")
        return NotDerived("refused", reason)

    def guard(self, repair: Repair) -> None:
        """Tests a derived repair numerically, against faults in the implementation of the rules."""
        wrong = self.wrong(repair)
        assert wrong is None, f"{repair} of {self.term}: {wrong}"

    def wrong(self, repair: Repair) -> str | None:
        """Describes random values for which a repair is wrong; None if none are found."""
        import numpy as np  # late: NumPy takes long to import

        from tilelang.core.numeric import evaluate  # late: it imports NumPy

        trial = Trial(self.term, self.running, 5)
        kinds: dict[str, Any] = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}
        reduced = kinds[self.name]
        accumulator = Var("accumulator", self.term.dtype)
        coarsest = min(self.term.dtype.bits, *(r.read.dtype.bits for r in self.running))
        for _ in range(16):
            old, new = (np.asarray(x) for x in trial.draw())
            with np.errstate(all="ignore"):
                known: dict[Expr, Any] = {accumulator: np.asarray(reduced(old))} | trial.known()
                applied = rewrite(repair.apply(accumulator, const(5, self.term.dtype)), _unrounded)  # as the term is
                got = float(evaluate(applied, known))
                wanted = float(reduced(new))
            size = float(np.prod(np.abs(new)) if self.name == "prod" else np.sum(np.abs(new)))
            finite = math.isfinite(wanted) and math.isfinite(size)
            if finite and not abs(got - wanted) <= (1e-5 if coarsest >= 32 else 0.1) * (size + abs(got)):  # NaN is wrong, too
                return f"{trial.changes()}: the accumulator {float(reduced(old)):.4g} becomes {got:.4g}, but must be {wanted:.4g}"
        return None


def _unrounded(e: Expr) -> Expr:
    """An expression without a conversion between floats at its root, which only rounds."""
    return e.operand if isinstance(e, Cast) and e.operand.dtype.is_float and e.type.is_float else e


class Trial:
    """Random values for all reads of a term, at several points, and for its running values before and after a change."""

    def __init__(self, term: Expr, running: Sequence[Running], points: int) -> None:
        import numpy as np  # late: NumPy takes long to import

        self.generator = np.random.default_rng(0)
        self.reads, self.points = [r.read for r in running], points
        self.extremes = {r.read: r.combiner for r in running if r.combiner in EXTREMES}
        own = {r.read for r in running}
        self.leaves: dict[Expr, Var] = {}
        mapping: dict[Expr, Expr] = {r: r for r in own}  # a read stays whole, with its indices

        def visit(e: Expr) -> None:
            if e in mapping:
                return
            if isinstance(e, (Read, Pad, Axis, Var)):
                mapping[e] = self.leaves[e] = Var(f"leaf{len(self.leaves)}", e.dtype)
                return
            for child in e.children():
                if isinstance(child, Expr):
                    visit(child)

        visit(term)
        self.term = rewrite(substitute(term, mapping), _unrounded)
        self.values: dict[str, Mapping[Expr, Any]] = {}

    def draw(self) -> tuple[list[float], list[float]]:
        """The terms at all points before and after a change."""
        import numpy as np  # late: NumPy takes long to import

        from tilelang.core.numeric import evaluate  # late: it imports NumPy

        generator, given = self.generator, dict[Expr, Any]()
        for v in self.leaves.values():
            x = generator.uniform(0.1, 2, self.points) * generator.choice((-1, 1), self.points)
            given[v] = x if v.dtype.is_float else generator.integers(0, 4, self.points).astype(v.dtype.numpy)
        drawn: list[dict[Expr, Any]] = [{r: np.asarray(generator.uniform(0.5, 2)) for r in self.reads} for _ in range(2)]
        for r, combiner in self.extremes.items():  # a maximum only grows
            ends = sorted((x[r] for x in drawn), key=float, reverse=combiner == "min")
            drawn[0][r], drawn[1][r] = ends
        self.values = {"before": drawn[0], "now": drawn[1]}
        found = [np.broadcast_to(evaluate(self.term, {**given, **x}), (self.points,)) for x in drawn]
        return [float(x) for x in found[0]], [float(x) for x in found[1]]

    def known(self) -> dict[Expr, Any]:
        """The values of `before` and `now`."""
        return {
            **{before(r): self.values["before"][r] for r in self.reads},
            **{now(r): self.values["now"][r] for r in self.reads},
        }

    def changes(self) -> str:
        """The change of the running values, in words."""
        old, new = self.values["before"], self.values["now"]
        return ", ".join(f"{r} = {float(old[r]):.3g} becomes {float(new[r]):.3g}" for r in self.reads)
