"""Kernels that differ only in names: the same definitions, types, extents and reads.

One of them is scheduled, and its steps are renamed for the others.

Steps name axes, dimensions and tensors. `Signature.key` has numbers in place of these names, in order of first appearance. Axes and
dimensions that share a name share a number, because a step may refer to either. The name that a `fuse` makes is replaced by a new one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from tilelang.autoschedule.common.axes import name_of_fused
from tilelang.autoschedule.common.device_model import Steps
from tilelang.autoschedule.common.kernel_part import Part
from tilelang.computations.computation import Definition, Tensor
from tilelang.computations.inlining import kept_in_memory
from tilelang.core.expr import Axis, Combiner, Read, Var, rewrite
from tilelang.core.layout import Layout
from tilelang.core.lazy import cached_property
from tilelang.core.node import Node
from tilelang.schedules.steps import Do, Fuse, Place, Sizes, Split, Step, Tile, Units, Vectorize


@dataclasses.dataclass(frozen=True, eq=False)
class Signature:
    """A part with its names abstracted away.

    names, axes, tensors: the names, axes and tensors in the order of their numbers; filled when the key is computed.

    >>> import tilelang as tl
    >>> i, j = tl.axes(i=4, j=8)
    >>> X, Z = tl.input("X", tl.float32, i), tl.input("Z", tl.float32, j)
    >>> twice, double = tl.define("twice", X[i] * 2, i), tl.define("double", X[i] * 2, i)
    >>> more = tl.define("more", Z[j] * 2, j)
    >>> whole = tl.computation("c", (twice, double, more))
    >>> first, second, third = (Signature(Part(whole, (t,))) for t in (twice, double, more))
    >>> first.key == second.key, first.key == third.key
    (True, False)
    """

    part: Part

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """Equal for parts that differ only in names."""
        part, kept = self.part, set(kept_in_memory(self.part.computation))
        for definition in part.definitions:
            self._add(definition)
        facts = [
            (t in part.outputs, t in part.kept, t in part.stored, t in part.computation.outputs, t.name in kept)
            for t in self.tensors
        ]
        return (*self._entries, *facts, tuple(self._numbers[t] for t in part.outputs))

    @cached_property
    def names(self) -> dict[str, int]:
        return {}

    @cached_property
    def axes(self) -> list[Axis]:
        return []

    @cached_property
    def tensors(self) -> list[Tensor]:
        return []

    @cached_property
    def _entries(self) -> list[Any]:
        return []

    @cached_property
    def _numbers(self) -> dict[Any, int]:
        return {}

    def _add(self, definition: Definition) -> None:
        of = [self._number(a) for a in definition.axes]
        values = [self._number(v) for v in definition.values]
        made = [self._number(t) for t in definition.tensors]
        self._entries.append((*of, None, *values, None, *made, definition.allow))

    def _number(self, whole: Node | Tensor) -> int:
        """The number of an expression, an axis or a tensor. Its parts are numbered before it."""
        for item in [whole] if isinstance(whole, Tensor) else whole.upwards(leaves=(Combiner,)):
            if item not in self._numbers:
                entry = self._entry(item)
                self._numbers[item] = len(self._numbers)
                self._entries.append(entry)
        return self._numbers[whole]

    def _entry(self, item: Any) -> tuple[Any, ...]:
        match item:
            case Tensor():
                self.tensors.append(item)
                dims = [(self._name(d.name), d.extent) for d in item.dims]
                return ("tensor", item.dtype, *dims, item.range, item.member, item.hidden)
            case Axis():
                self.axes.append(item)
                return ("axis", self._name(item.name), item.extent)
            case Var():
                return ("variable", self._name(item.name), item.type, item.lower, item.upper)
            case Combiner():
                return (item,)
            case Read():
                return ("read", self._number(item.tensor), *(self._numbers[i] for i in item.indices))
        fields = [getattr(item, f.name) for f in dataclasses.fields(item)]
        return (type(item), *(self._field(f) for f in fields))

    def _field(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(self._field, value))
        return ("number", self._numbers[value]) if isinstance(value, Node) else value

    def _name(self, name: str) -> int:
        return self.names.setdefault(name, len(self.names))


def renamed(steps: Steps, first: Signature, other: Signature) -> Steps | None:
    """The steps of a part, renamed for another one with the same key. None if a step uses a name that neither the part nor a `fuse`
    defines."""
    assert first.key == other.key
    renaming = _Renaming(
        dict(zip(first.names, other.names, strict=True)),
        dict(zip(first.axes, other.axes, strict=True)),
        dict(zip(first.tensors, other.tensors, strict=True)),
    )
    try:
        return renaming.steps(steps)
    except KeyError:
        return None


class _Renaming:
    """Steps with other names. Raises KeyError for names that are not known."""

    def __init__(self, names: Mapping[str, str], axes: Mapping[Axis, Axis], tensors: Mapping[Tensor, Tensor]) -> None:
        self.names, self.axes, self.tensors = dict(names), axes, tensors
        self.named = {t.name: other.name for t, other in tensors.items()}

    def steps(self, steps: Steps) -> Steps:
        return tuple(map(self.step, steps))

    def step(self, step: Step) -> Step:
        match step:
            case Fuse(name, parts):
                after = tuple(self.names[a] for a in parts)
                if name in self.names:
                    raise KeyError(name)
                self.names[name] = name_of_fused(after, self.names.values())
                return step.replace(name=self.names[name], axes=after)
            case Tile():
                return step.replace(sizes=self._sizes(step.sizes), order=self._layout(step.order))
            case Split():
                return step.replace(sizes=self._sizes(step.sizes), of=tuple(self.named[t] for t in step.of))
            case Vectorize():
                return step.replace(axis=self.names[step.axis])
            case Do():
                return step.replace(binding=tuple((own, self.names[a]) for own, a in step.binding))
            case Place():
                return self._place(step)
            case Units():
                return step
        raise KeyError(type(step).__name__)

    def _place(self, place: Place) -> Place:
        what = place.what
        if isinstance(what, Read):
            what = rewrite(what, self._expr)
        elif what is not None:
            what = self.named[what]
        steps = None if place.steps is None else self.steps(place.steps)
        return place.replace(what=what, layout=self._layout(place.layout), steps=steps)

    def _expr(self, e: Any) -> Any:
        if isinstance(e, Read):
            return e.replace(tensor=self.tensors[e.tensor])
        return self.axes[e] if isinstance(e, Axis) else e

    def _sizes(self, sizes: Sizes) -> Sizes:
        return tuple((self.names[a], n) for a, n in sizes)

    def _layout(self, layout: Layout | None) -> Layout | None:
        if layout is None:
            return None
        return layout.replace(terms=tuple(rewrite(t, self._variable) for t in layout.terms))

    def _variable(self, e: Any) -> Any:
        return e.replace(name=self.names[e.name]) if isinstance(e, Var) else e
