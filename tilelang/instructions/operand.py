"""Operands of instructions, and the queues in which asynchronous copies complete."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from tilelang.core import dtype as dt
from tilelang.core.dtype import DType
from tilelang.core.expr import Axis, Expr, Read, as_expr, by_names
from tilelang.core.layout import Layout
from tilelang.core.node import Node, node
from tilelang.errors import ComputationError, brief
from tilelang.instructions.fragment import Fragment


@dataclasses.dataclass(frozen=True)
class Operand:
    """An operand. It can be indexed in the meaning, `A[m, k]`. It is not a Node, so traversals of an expression stop at its tensors.

    dtypes: the element types it accepts, all of one size; if there are several, all such operands have the same one. fragment: which
    lane holds which elements; in an addressed memory, they are consecutive from the address that the lane supplies. layouts: if
    `fragment` is None, the layouts of a region that the operand's descriptor can express; empty: row-major. alignment_bytes: of every
    address that a lane supplies. neighbours: how many consecutive threads must write to consecutive addresses (0: any address).
    """

    name: str
    dtypes: tuple[DType, ...]
    memory: str
    dims: tuple[Axis, ...]
    fragment: Fragment | None = None
    layouts: tuple[Layout, ...] = ()
    alignment_bytes: int = 0
    neighbours: int = 0

    @property
    def dtype(self) -> DType:
        return self.dtypes[0]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(a.extent for a in self.dims)

    def __getitem__(self, indices: Any) -> Expr:
        given = indices if isinstance(indices, tuple) else (indices,)
        return Read(self, tuple(as_expr(i) for i in given))


def operand(
    name: str,
    dtype: Any,
    memory: Any,
    *dims: Axis,
    fragment: Fragment | None = None,
    layouts: Iterable[Layout] = (),
    alignment_bytes: int = 0,
    neighbours: int = 0,
) -> Operand:
    """An operand of an instruction. dtype: one element type, or several of the same size; memory: a name or a Memory.

    Raises ComputationError: types of several sizes, no type.
    """
    dtypes = tuple(dt.dtype(t) for t in (dtype if isinstance(dtype, (tuple, list)) else (dtype,)))
    if len({t.bits for t in dtypes}) != 1:
        raise ComputationError(
            "operand-types", f"`{name}`: {dtypes} are not types of the same size", help="define one instruction for each size"
        )
    for d in dims:
        if not isinstance(d, Axis):
            raise ComputationError(
                "not-an-axis", f"{brief(d)} is not a dimension for {brief(name)}", help="use an axis, as in tl.axes(m=16)"
            )
    dims = tuple(map(by_names, dims))
    return Operand(name, dtypes, name_of(memory), dims, fragment, tuple(layouts), alignment_bytes, neighbours)


@node
class Queue(Node):
    """The queue in which a family of instructions completes, group by group and in order. The texts are statements, per dialect.

    begin: before a group, for this thread's registers; publish: a fence by the threads that wrote the shared memory that the
    instructions read. commit: closes a group; wait: until at most {pending} of the latest groups are unfinished.
    """

    name: str
    begin: tuple[tuple[str, str], ...] = ()
    publish: tuple[tuple[str, str], ...] = ()
    commit: tuple[tuple[str, str], ...] = ()
    wait: tuple[tuple[str, str], ...] = ()


def queue(
    name: str,
    begin: Mapping[str, str] | None = None,
    publish: Mapping[str, str] | None = None,
    commit: Mapping[str, str] | None = None,
    wait: Mapping[str, str] | None = None,
) -> Queue:
    """A family of instructions that complete in order; see Queue."""
    texts = (tuple(sorted((text or {}).items())) for text in (begin, publish, commit, wait))
    return Queue(name, *texts)


def name_of(value: Any) -> str:
    """The name of a memory or a level; a name is returned as it is."""
    name = getattr(value, "name", value)
    if not isinstance(name, str):
        raise ComputationError(
            "not-a-memory", f"{brief(value)} is not a memory or level", help="use tl.register, tl.thread, or such a name"
        )
    return name
