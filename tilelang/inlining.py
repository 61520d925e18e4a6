"""How long values become when the definitions that they read are written out in them, and which of these to keep in memory instead.

A pointwise definition that no step places is substituted wherever it is read. Where each of a chain of definitions reads the one before
several times, as stencils do, the last one would be written out exponentially often. Counts are of the nodes of expressions, as trees.
"""

from __future__ import annotations

from collections.abc import Collection

from tilelang.computation import Computation, Definition, Tensor
from tilelang.errors import Refusal
from tilelang.expr import Expr, Read

MOST_OPERATIONS = 1 << 13  # of one value, as it is written out
# Construction keeps operands of a value in memory where the value, written out, has more than KEPT_OPERATIONS operations and either
# KEPT_GROWTH times as many as the definitions in it have, each counted once, or more than LONGEST.
KEPT_OPERATIONS = 256
KEPT_GROWTH = 4
LONGEST = 1 << 10


def check_written_out(computation: Computation, kept: Collection[str]) -> None:
    """Refuses a value that is too long once all definitions but `kept` are written out in it."""
    known: dict[Tensor, int] = {}
    for definition in computation.definitions:
        for tensor, size in zip(definition.tensors, _sizes(definition, known), strict=True):
            if size > MOST_OPERATIONS:
                inlined = "once the definitions that it reads are substituted"
                message = f"a value of {tensor.name} has {size:,} operations {inlined}, at most {MOST_OPERATIONS:,}"
                mend = f"compute one that is read several times, as in `compute {_dearest(definition, known).name} in global`"
                raise Refusal("value-too-large", message, span=tensor.span, mend=mend)
            if tensor.name not in kept and definition.reduction is None:
                known[tensor] = size


def kept_in_memory(computation: Computation) -> tuple[str, ...]:
    """The definitions that construction computes in memory of their own, so that no value grows exponentially; outputs stay.

    >>> import tilelang as tl
    >>> i = tl.axes(i=64)
    >>> u = tl.input("X", tl.float32, i)
    >>> for step in range(6):
    ...     u = tl.define(f"u{step}", u[i] + tl.pad(u[i + 1], 0) + tl.pad(u[i - 1], 0), i)
    >>> kept_in_memory(tl.computation("c", u))
    ('u2',)
    """
    known: dict[Tensor, int] = {}
    own: dict[Definition, int] = {}
    kept: list[str] = []
    reads = {d: _reads(d) for d in computation.definitions}
    for definition in computation.definitions:
        sizes, own[definition] = _sizes(definition, known), sum(_sizes(definition, {}))
        if max(sizes) > KEPT_OPERATIONS and max(sizes) > min(
            LONGEST, KEPT_GROWTH * sum(own[d] for d in _written_in(definition, known, reads))
        ):
            for tensor in _read_twice(definition, known):
                if tensor not in computation.outputs:
                    del known[tensor]
                    kept.append(tensor.name)
            sizes = _sizes(definition, known)
        if definition.reduction is None:
            known.update(zip(definition.tensors, sizes, strict=True))
    return tuple(kept)


def _sizes(definition: Definition, known: dict[Tensor, int]) -> list[int]:
    """The operations of each value, with those of what it reads. known: the sizes of tensors that are written out."""
    memo: dict[Expr, int] = {}

    def size(e: Expr) -> int:
        if e not in memo:
            below = sum(size(c) for c in e.children() if isinstance(c, Expr))
            memo[e] = 1 + below + (known.get(e.tensor, 0) if isinstance(e, Read) else 0)
        return memo[e]

    return [size(v) for v in definition.values]


def _reads(definition: Definition) -> list[Tensor]:
    """The tensors that a definition reads, each as often as it does."""
    return [e.tensor for v in definition.values for e in v.walk() if isinstance(e, Read)]


def _read_twice(definition: Definition, known: dict[Tensor, int]) -> list[Tensor]:
    found = [t for t in _reads(definition) if t in known]
    return [t for t in dict.fromkeys(found) if found.count(t) > 1 or known[t] > KEPT_OPERATIONS]


def _dearest(definition: Definition, known: dict[Tensor, int]) -> Tensor:
    return max((t for t in _reads(definition) if t in known), key=lambda t: known[t], default=definition.tensors[0])


def _written_in(definition: Definition, known: dict[Tensor, int], reads: dict[Definition, list[Tensor]]) -> list[Definition]:
    """A definition and all that are written out in it, each once. reads: what `_reads` gives."""
    seen: dict[Definition, None] = {definition: None}
    waiting = [definition]
    while waiting:
        for tensor in reads[waiting.pop()]:
            if tensor in known and tensor.definition is not None and tensor.definition not in seen:
                seen[tensor.definition] = None
                waiting.append(tensor.definition)
    return list(seen)
