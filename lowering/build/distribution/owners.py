"""Which thread has which element: what a refusal of a reader that is not the owner shows, and whether a store fits its owners."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np

from tilelang.core.distribution import Distribution, Table, variables
from tilelang.core.expr import INDEX, Expr, Var, index, substitute
from tilelang.core.simplify import interval
from tilelang.errors import Refusal
from tilelang.lowering import ir
from tilelang.lowering.build.movement.storage import NotOwner, Share
from tilelang.schedules.spec import Bound, Spec
from tilelang.schedules.steps import Step

BLOCKS = frozenset(v.name for v in ir.BLOCK)


def of_threads(coordinates: Sequence[Expr], threads: int, where: Sequence[Expr] = ()) -> Distribution:
    """What every thread has in every round of the walks, in the first block."""
    thread, others = thread_among([*coordinates, *where])
    walks = ((v, (interval(v)[1] or 0) + 1 if _is_walked(v) else 1) for v in others)
    return Distribution(((thread, threads), *walks), tuple(coordinates), tuple(where))


def thread_among(expressions: Sequence[Expr]) -> tuple[Var, list[Var]]:
    """The thread's number in some expressions, and their other variables."""
    found = variables(expressions)
    return next((v for v in found if v.name == ir.THREAD.name), ir.THREAD), [v for v in found if v.name != ir.THREAD.name]


def existing_beyond(beyond: Sequence[tuple[int, Expr, Sequence[int]]], conditions: Sequence[Expr], threads: int) -> int | None:
    """The dimension along which a point that exists wants what its thread has not; None where there is no such point.

    beyond: (dimension, x, values), where the thread has an element only if x is one of the values. conditions: under which a point
    exists. Those that others than the thread and the walks in x decide are left out, as if they held; where there are too many points,
    one may exist.
    """
    for d, x, values in beyond:
        walks = set(variables([x]))
        told = [c for c in conditions if not (mine := set(variables([c]))) or mine & walks]
        told = [c for c in told if all(map(_is_walked, variables([c])))]
        points = of_threads([x], threads, told).table() if all(map(_is_walked, walks)) else None
        if points is None or not np.isin(points.coordinates[0], values).all():
            return d
    return None


def offsets_within(offset: Expr, bounds: Sequence[Bound], threads: int) -> tuple[tuple[int, ...], ...]:
    """The values of an offset that each thread has: over all rounds of the walks in it where the bounds hold."""
    found = of_threads([offset], threads, [b.holds(index(0)) for b in bounds]).shortened().table()
    assert found is not None, "a walk has numbers"
    return tuple(tuple(np.unique(found.coordinates[0][found.holder == t]).tolist()) for t in range(threads))


def _is_walked(v: Var) -> bool:
    """Whether a variable is the thread's number or runs from 0 to a known end inside a block."""
    low, high = interval(v)
    return v.name == ir.THREAD.name or low == 0 and high is not None and v.name not in BLOCKS


@contextlib.contextmanager
def readers_are_owners(step: Step | None, threads: int) -> Iterator[None]:
    """Refuses a read inside by a thread that has not the element, with the element and the two threads."""
    try:
        yield
    except NotOwner as error:
        raise _not_owner(error, step, threads) from None


def _not_owner(error: NotOwner, step: Step | None, threads: int) -> Refusal:
    share = error.share
    name, dims = share.tensor.name, share.names
    around = _taken_in_rounds(share)
    if around:
        which = " and ".join(around)
        return Refusal(
            "not-lowered-yet",
            f"threads process the tiles of {name} along {which} in iterations that do not begin at whole rows of tiles: in registers"
            " this is valid, but not supported yet for this target",
            span=getattr(step, "span", None),
            help="use more threads (units block = ...), or larger tiles in the braces of the load, so that each thread has at most one",
            proven=False,
        )
    example = _foreign_element(share, dims, error.offsets, threads)
    if example is None:
        return Refusal(
            "reader-is-not-owner",
            f"the register that a thread reads for an element of {name} is not known at compile time",
            span=getattr(step, "span", None),
            counterexample=f"along {dims[error.dim]}, the element {error.offsets[error.dim]} of its region",
            help=f"load {name} in register again for this reader, or use the same loops for it and the owner",
            proven=False,
        )
    return Refusal(
        "reader-is-not-owner",
        f"a thread reads an element of {name} that is in another thread's registers",
        span=getattr(step, "span", None),
        counterexample=example,
        help=f"load {name} in register again for this reader, or use the same tiles for it and the owner",
    )


def _taken_in_rounds(share: Share) -> list[str]:
    """The dimensions along which a round of the units goes on together, so that no dimension tells by itself what a thread has."""
    rounds = [{v for v in variables([d.unit]) if v.name != ir.THREAD.name and _is_walked(v)} for d in share.dims]
    return [n for n, mine in zip(share.names, rounds, strict=True) if any(sum(v in r for r in rounds) > 1 for v in mine)]


def _foreign_element(share: Share, dims: Sequence[str], offsets: Sequence[Expr], threads: int) -> str | None:
    """The first element that a thread reads and does not have, in words."""
    wanted, has = of_threads(offsets, threads).shortened().table(), _owned(share, threads)
    missing = None if wanted is None or has is None else wanted.foreign(has).first()
    if missing is None or has is None:
        return None
    reader, element = missing
    return f"{_element(share.tensor.name, dims, element)} is read by thread {reader} but is in {_registers(has.holders(element))}"


def _owned(share: Share, threads: int) -> Table | None:
    """What each thread has in its registers of a share, in the first round of the walks around it."""
    slots = tuple(Var(f"?slot{d}", INDEX, 0, dim.size - 1) for d, dim in enumerate(share.dims))
    inside = share.inside(tuple(slot for slot, dim in zip(slots, share.dims, strict=True) if dim.size > 1))
    first: dict[Expr, Expr] = {v: index(0) for v in variables(inside) if v.name != ir.THREAD.name and v not in slots}
    tests = [test for slot, dim in zip(slots, share.dims, strict=True) if dim.own is not None
             for test in dim.tests([(dim.offset(slot), 1)], 0)]  # fmt: skip
    found = of_threads([*(substitute(e, first) for e in inside), *(x for x, _ in tests)], threads).table()
    if found is None:
        return None
    offsets, among = found.coordinates[len(inside) :], [values for _, values in tests]
    own = [np.isin(x, values) for x, values in zip(offsets, among, strict=True)]
    return Table(found.parts, found.coordinates[: len(inside)]).only(np.all(own, axis=0) if own else slice(None))


def _element(name: str, dims: Sequence[str], element: Sequence[int]) -> str:
    places = ", ".join(map(str, element))
    at = f"{dims[0]} = {places}" if len(dims) == 1 else f"({', '.join(dims)}) = ({places})"
    return f"the element of {name} at {at}, relative to the start of its region,"


def _registers(owners: Sequence[int]) -> str:
    if not owners:
        return "no thread's registers"
    which = (
        f"thread {owners[0]}" if len(owners) == 1 else f"threads {', '.join(map(str, owners[:4]))}{', ...' * (len(owners) > 4)}"
    )
    return f"the registers of {which}"


def stored_by_another(name: str, whole: Spec, owner: Spec, store: Spec, threads: int) -> str | None:
    """The first element of a tile that is stored by a thread that does not hold it, in words; None where every one fits.

    whole: the spec of the tile; owner, store: its leaves by the steps that compute and by those that store.
    """
    axes = [a for a in whole.axes if not a.reduction]

    def by(leaf: Spec) -> Table:
        places = [leaf.axis(a.name).base - a.base for a in axes]
        inside = [e < max(1, a.extent) for a, e in zip(axes, places, strict=True)]
        found = of_threads(places, threads, inside).shortened().table()
        assert found is not None, "a walk has numbers"
        return found

    holds, stores = by(owner), by(store)
    missing = stores.foreign(holds).sorted().first()
    if missing is None:
        return None
    thread, element = missing
    what = _element(name, [a.name for a in axes], element)
    return f"{what} is stored by thread {thread} but is in {_registers(holds.holders(element))}"
