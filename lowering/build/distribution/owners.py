"""Which thread holds which element: explains reads by a thread that is not the owner, and checks that stores match the owners."""

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
    """The coordinates that each thread of the first block has in each iteration of the loops."""
    thread, others = thread_among([*coordinates, *where])
    walks = ((v, (interval(v)[1] or 0) + 1 if _is_enumerable(v) else 1) for v in others)
    return Distribution(((thread, threads), *walks), tuple(coordinates), tuple(where))


def thread_among(expressions: Sequence[Expr]) -> tuple[Var, list[Var]]:
    """The thread index in some expressions, and their other variables."""
    found = variables(expressions)
    return next((v for v in found if v.name == ir.THREAD.name), ir.THREAD), [v for v in found if v.name != ir.THREAD.name]


def existing_beyond(beyond: Sequence[tuple[int, Expr, Sequence[int]]], conditions: Sequence[Expr], threads: int) -> int | None:
    """The first dimension along which a thread reads an existing point that it does not hold; None if there is none.

    beyond: (dimension, x, values): the thread holds an element only if x is one of the values. conditions: when a point exists.
    Conditions on anything but the thread and the loops in x are assumed to hold. If there are too many points to enumerate, the
    answer is that one may exist.
    """
    for d, x, values in beyond:
        walks = set(variables([x]))
        told = [c for c in conditions if not (mine := set(variables([c]))) or mine & walks]
        told = [c for c in told if all(map(_is_enumerable, variables([c])))]
        points = of_threads([x], threads, told).table() if all(map(_is_enumerable, walks)) else None
        if points is None or not np.isin(points.coordinates[0], values).all():
            return d
    return None


def offsets_within(offset: Expr, bounds: Sequence[Bound], threads: int) -> tuple[tuple[int, ...], ...]:
    """For each thread, the values that an offset takes over all iterations of the loops in it, where the bounds hold."""
    found = of_threads([offset], threads, [b.holds(index(0)) for b in bounds]).shortened().table()
    assert found is not None, "a walk has numbers"
    return tuple(tuple(np.unique(found.coordinates[0][found.holder == t]).tolist()) for t in range(threads))


def _is_enumerable(v: Var) -> bool:
    """Whether a variable is the thread index, or a loop variable inside a block that runs from 0 to a known end."""
    low, high = interval(v)
    return v.name == ir.THREAD.name or low == 0 and high is not None and v.name not in BLOCKS


@contextlib.contextmanager
def readers_are_owners(step: Step | None, threads: int) -> Iterator[None]:
    """Refuses a read, made inside the `with` block, by a thread that does not hold the element; names the element and both threads."""
    try:
        yield
    except NotOwner as error:
        raise _not_owner(error, step, threads) from None


def _not_owner(error: NotOwner, step: Step | None, threads: int) -> Refusal:
    share = error.share
    name, dims = share.tensor.name, share.names
    around = _taken_in_one_loop(share)
    if around:
        which = " and ".join(around)
        return Refusal(
            "not-lowered-yet",
            f"each thread has several tiles of {name} along {which}, and its iterations do not begin at whole rows of tiles: in"
            " registers this is valid, but not supported yet for this target",
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


def _taken_in_one_loop(share: Share) -> list[str]:
    """The dimensions whose tiles are advanced by one common loop, so that no single dimension tells which elements a thread has."""
    rounds = [{v for v in variables([d.unit]) if v.name != ir.THREAD.name and _is_enumerable(v)} for d in share.dims]
    return [n for n, mine in zip(share.names, rounds, strict=True) if any(sum(v in r for r in rounds) > 1 for v in mine)]


def _foreign_element(share: Share, dims: Sequence[str], offsets: Sequence[Expr], threads: int) -> str | None:
    """A text about the first element that a thread reads and does not hold."""
    wanted, has = of_threads(offsets, threads).shortened().table(), _owned(share, threads)
    missing = None if wanted is None or has is None else wanted.foreign(has).first()
    if missing is None or has is None:
        return None
    reader, element = missing
    return f"{_element(share.tensor.name, dims, element)} is read by thread {reader} but is in {_registers(has.holders(element))}"


def _owned(share: Share, threads: int) -> Table | None:
    """The elements that each thread has in its registers of a share, in the first iteration of the enclosing loops."""
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
    """A text about the first element of a tile that is stored by a thread that does not hold it; None if all stores match.

    whole: the spec of the tile. owner, store: the innermost specs by the steps that compute and by the steps that store.
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
