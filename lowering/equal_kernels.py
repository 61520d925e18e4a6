"""Kernels of a program that differ only in names, as those of a network's layers: one text serves all of them.

Each is launched with its own arguments.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping
from typing import Any

from tilelang.core.expr import Const, Var
from tilelang.core.node import Node
from tilelang.lowering import ir

_GIVEN = {*(v.name for v in ir.BLOCK), ir.THREAD.name}  # variables with a meaning by their name


def first_equal(program: ir.Program) -> Mapping[str, ir.Kernel]:
    """For each kernel of a program, by name: the first one that differs from it only in names.

    >>> import tilelang as tl
    >>> i = tl.axes(i=8)
    >>> X = tl.input("X", tl.float32, i)
    >>> Y = tl.define("Y", X[i] * 2, i)
    >>> Z = tl.define("Z", Y[i] * 2, i)
    >>> several = tl.schedule(tl.define("sum", Y[i] + Z[i], i)).compute("Y", tl.global_).compute("Z", tl.global_)
    >>> program = tl.compile(several, tl.target("opencl", profile="simulated")).program
    >>> [kernel.name for kernel in first_equal(program).values()][:2]
    ['Y', 'Y']
    """
    alike = collections.defaultdict[Any, list[ir.Kernel]](list)
    for kernel in program.kernels:
        alike[kernel.grid, kernel.threads, tuple((b.dtype, b.shape) for b in kernel.buffers)].append(kernel)
    found: dict[str, ir.Kernel] = {}
    for kernels in alike.values():
        firsts: dict[Any, ir.Kernel] = {}
        for kernel in kernels:
            found[kernel.name] = firsts.setdefault(_key(kernel), kernel) if len(kernels) > 1 else kernel
    return found


def _key(kernel: ir.Kernel) -> tuple[Any, ...]:
    """A description of a kernel in which numbers stand for its buffers, variables and expressions, in the order of appearance."""
    numbers: dict[int, int] = {}
    entries: list[Any] = []
    for item in (*kernel.buffers, *kernel.body.upwards()):
        if id(item) not in numbers:
            entries.append(_entry(item, numbers))
            numbers[id(item)] = len(numbers)
    facts = kernel.replace(name="", buffers=(), body=ir.Seq(()), notes=())
    return facts, len(kernel.buffers), tuple(entries)


def _entry(item: Node, numbers: Mapping[int, int]) -> Any:
    """A node with numbers in place of its parts, without its name and its place in the user's program."""
    match item:
        case ir.Buffer():
            return item.replace(name="", role="" if item.memory == "global" else item.role)
        case Var(name=name) if name not in _GIVEN:
            return item.replace(name="")
        case Const():
            return item  # not its value: 0.0 equals -0.0
    fields = (getattr(item, f.name) for f in dataclasses.fields(item) if f.name != "span")  # type: ignore[arg-type]
    return type(item), *(_field(value, numbers) for value in fields)


def _field(value: Any, numbers: Mapping[int, int]) -> Any:
    if isinstance(value, tuple):
        return tuple([_field(part, numbers) for part in value])
    number = numbers.get(id(value)) if isinstance(value, Node) else None
    return value if number is None else ("number", number)
