"""The accesses that are not yet ordered at a point of a kernel, and how they change along branches, back-edges and loop exits."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from tilelang.core.expr import INDEX, Const, Expr, Var, binary, free, substitute
from tilelang.core.simplify import simplify
from tilelang.lowering import ir
from tilelang.lowering.passes.dependence_test import Access


@dataclasses.dataclass(frozen=True, slots=True)
class State:
    """The unordered accesses at a point: those after which no barrier came, and asynchronous writes after which no wait came.

    Each asynchronous write has the number of groups committed after it. Dictionaries keep the order.
    """

    pending: Mapping[Access, None] = dataclasses.field(default_factory=dict)
    inflight: Mapping[Access, int] = dataclasses.field(default_factory=dict)

    def adding(self, accesses: Iterable[Access]) -> State:
        return State({**self.pending, **dict.fromkeys(accesses)}, self.inflight)

    def union(self, other: State) -> State:
        ages = {a: min(age, other.inflight.get(a, age)) for a, age in {**other.inflight, **self.inflight}.items()}
        return State({**self.pending, **other.pending}, ages)

    def parted(self, condition: Expr, other: State) -> State:
        """The state after a branch: this one if the condition held, the other if it did not."""

        def only(mine: State, theirs: State, held: Expr) -> dict[Access, None]:
            return {
                a if a in theirs.pending else dataclasses.replace(a, survived=a.survived | {held}): None for a in mine.pending
            }

        pending = {**only(self, other, condition), **only(other, self, ~condition)}
        return State(pending, self.union(other).inflight)


def ordered(state: State, memory: Iterable[str]) -> State:
    """The state after a barrier for these memories."""
    kinds = frozenset(memory)
    return State({a: None for a in state.pending if a.buffer.memory not in kinds}, state.inflight)


def survivor(a: Access, var: Var, value: Expr) -> Access | None:
    """An access without the conditions on a loop's variable; None if those are false in this iteration, so that it is no
    longer pending."""
    mine = frozenset(c for c in a.survived if var in free(c))
    if not mine:
        return a
    for condition in mine:
        known = simplify(substitute(condition, {var: value}))
        if isinstance(known, Const) and not known.value:
            return None
    return dataclasses.replace(a, survived=a.survived - mine)


def outliving(state: State, var: Var, rounds_known: bool) -> State:
    """The accesses still pending after a loop: those that were still pending after its last iteration."""
    last = Const(var.upper, INDEX) if rounds_known and var.upper is not None else var
    alive = (survivor(a, var, last) for a in state.pending)
    return State({a: None for a in alive if a is not None}, state.inflight)


def crossing(var: Var) -> Expr:
    """The number of an iteration that is not the last."""
    return Var(f"{var.name}<", INDEX, 0, None if var.upper is None else var.upper - 1)


def one_iteration_back(a: Access, var: Var, loop: ir.For) -> Access:
    previous = binary("-", var, 1)
    moved = a.substituted({var: previous}, guards=(binary("<=", 0, previous),))
    return dataclasses.replace(moved, round=1, when=f", one iteration of `{loop.var.name}` earlier")


def any_iteration_back(a: Access, var: Var, loop: ir.For) -> Access:
    old = Var(f"{var.name}'", INDEX, 0, var.upper)
    moved = a.substituted({var: old}, (old,), (binary("<", old, var),))
    return dataclasses.replace(moved, round=2, when=f", an earlier iteration of `{loop.var.name}`")


def finished(state: State, before: State, var: Var, rounds_known: bool, waited: bool) -> State:
    """The state after a loop: accesses of the last iteration if the number of iterations is known, else of any iteration.

    before: copies that were in flight before the loop, and still are, do not belong to any of its iterations.
    """

    def closed(a: Access, last: bool) -> Access:
        a = dataclasses.replace(a, round=0)
        if last and var.upper is not None:
            return a.substituted({var: Const(var.upper, INDEX)})
        return dataclasses.replace(a, bound=a.bound | {var}) if var in a.variables() else a

    inflight = {a if a in before.inflight else closed(a, rounds_known and waited): age for a, age in state.inflight.items()}
    alive = outliving(state, var, rounds_known)
    return State({closed(a, rounds_known): None for a in alive.pending}, inflight)
