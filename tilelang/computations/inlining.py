"""Limits the size of inlined values: decides which definitions to keep in memory instead of inlining them.

A pointwise definition that no step places is inlined at every read. If each of a chain of definitions reads the previous one several
times, as stencils do, the last one would become exponentially large; if the chain is long, its operations would be nested deeper than
Python's stack allows. Counts are of expression nodes, as trees.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from tilelang.computations.computation import Computation, Definition, Tensor
from tilelang.computations.elaborate import DEEPEST
from tilelang.core.expr import Expr, Read
from tilelang.errors import Refusal

MOST_OPERATIONS = 1 << 13  # of one value, fully inlined
# Generated schedules keep operands of a value in memory if the value, inlined, has more than KEPT_OPERATIONS operations and either
# KEPT_GROWTH times as many as its definitions have when each is counted once, or more than LONGEST.
KEPT_OPERATIONS = 256
KEPT_GROWTH = 4
LONGEST = 1 << 10
KEPT_DEEPEST = 160  # generated schedules keep the operands of deeper values


def check_written_out(computation: Computation, kept: Collection[str]) -> None:
    """Refuses a value that is too long or too deep once all definitions except `kept` are inlined."""
    known: dict[Tensor, Extent] = {}
    for definition in computation.definitions:
        own = _extents(definition, {})
        for tensor, found, alone in zip(definition.tensors, _extents(definition, known), own, strict=True):
            inlined = "once the definitions that it reads are substituted"
            if alone.size > MOST_OPERATIONS:
                message = f"a value of {tensor.name} has {alone.size:,} operations, but at most {MOST_OPERATIONS:,} are allowed"
                help = "use tl.define to name the parts that it uses several times"
                raise Refusal("value-too-large", message, span=tensor.span, help=help)
            if found.size > MOST_OPERATIONS:
                message = (
                    f"a value of {tensor.name} has {found.size:,} operations {inlined}; at most {MOST_OPERATIONS:,} are allowed"
                )
                help = f"compute a definition that is read several times, as in `compute {_dearest(definition, known).name} in global`"
                raise Refusal("value-too-large", message, span=tensor.span, help=help)
            if found.depth > max(DEEPEST, alone.depth):
                message = (
                    f"a value of {tensor.name} has {found.depth:,} nested operations {inlined}, but at most {DEEPEST} are allowed"
                )
                help = f"compute one of these in memory, as in `compute {_deepest(definition, known).name} in global`"
                raise Refusal("value-too-deep", message, span=tensor.span, help=help)
            if tensor.name not in kept and definition.reduction is None:
                known[tensor] = found


def kept_in_memory(computation: Computation) -> tuple[str, ...]:
    """The definitions that generated schedules compute to memory, so that no value grows exponentially or too deep; outputs are always
    in memory.

    >>> import tilelang as tl
    >>> i = tl.axes(i=64)
    >>> u = tl.input("X", tl.float32, i)
    >>> for step in range(6):
    ...     u = tl.define(f"u{step}", u[i] + tl.pad(u[i + 1], 0) + tl.pad(u[i - 1], 0), i)
    >>> kept_in_memory(tl.computation("c", u))
    ('u2',)
    """
    found: tuple[str, ...] | None = computation.__dict__.get("kept_in_memory")
    if found is None:
        found = computation.__dict__["kept_in_memory"] = _kept(computation)
    return found


def _kept(computation: Computation) -> tuple[str, ...]:
    known: dict[Tensor, Extent] = {}
    own: dict[Definition, int] = {}
    kept: list[str] = []
    reads = {d: _reads(d) for d in computation.definitions}
    for definition in computation.definitions:
        found, own[definition] = _extents(definition, known), sum(e.size for e in _extents(definition, {}))
        size = max(e.size for e in found)
        gone: list[Tensor] = []
        if size > KEPT_OPERATIONS and size > min(
            LONGEST, KEPT_GROWTH * sum(own[d] for d in _written_in(definition, known, reads))
        ):
            gone = _read_twice(definition, known)
        if max(e.depth for e in found) > KEPT_DEEPEST:
            gone += [
                t for t in dict.fromkeys(reads[definition]) if t in known and t not in gone and known[t].depth > KEPT_DEEPEST // 2
            ]
        for tensor in gone:
            if tensor not in computation.outputs:
                del known[tensor]
                kept.append(tensor.name)
        if gone:
            found = _extents(definition, known)
        if definition.reduction is None:
            known.update(zip(definition.tensors, found, strict=True))
    return tuple(kept)


class Extent(NamedTuple):
    """The number of operations of a value, and their nesting depth."""

    size: int
    depth: int


def _extents(definition: Definition, known: dict[Tensor, Extent]) -> list[Extent]:
    """The extent of each value, including inlined reads. known: the extents of inlined tensors."""
    memo: dict[Expr, Extent] = {}

    def extent(e: Expr) -> Extent:
        if e not in memo:
            below = [extent(c) for c in e.children() if isinstance(c, Expr)]
            size, depth = 1 + sum(b.size for b in below), 1 + max((b.depth for b in below), default=0)
            if isinstance(e, Read) and e.tensor in known:  # its indices replace axes in the inlined value
                size, depth = size + known[e.tensor].size, (depth if depth > 2 else 0) + known[e.tensor].depth
            memo[e] = Extent(size, depth)
        return memo[e]

    return [extent(v) for v in definition.values]


def _reads(definition: Definition) -> list[Tensor]:
    """The tensors that a definition reads, once per read."""
    return [e.tensor for v in definition.values for e in v.walk() if isinstance(e, Read)]


def _read_twice(definition: Definition, known: dict[Tensor, Extent]) -> list[Tensor]:
    found = [t for t in _reads(definition) if t in known]
    return [t for t in dict.fromkeys(found) if found.count(t) > 1 or known[t].size > KEPT_OPERATIONS]


def _dearest(definition: Definition, known: dict[Tensor, Extent]) -> Tensor:
    return max((t for t in _reads(definition) if t in known), key=lambda t: known[t].size, default=definition.tensors[0])


def _deepest(definition: Definition, known: dict[Tensor, Extent]) -> Tensor:
    return max((t for t in _reads(definition) if t in known), key=lambda t: known[t].depth, default=definition.tensors[0])


def _written_in(definition: Definition, known: dict[Tensor, Extent], reads: dict[Definition, list[Tensor]]) -> list[Definition]:
    """A definition and all definitions inlined in it, without duplicates. reads: a cache of `_reads`."""
    seen: dict[Definition, None] = {definition: None}
    waiting = [definition]
    while waiting:
        for tensor in reads[waiting.pop()]:
            if tensor in known and tensor.definition is not None and tensor.definition not in seen:
                seen[tensor.definition] = None
                waiting.append(tensor.definition)
    return list(seen)
