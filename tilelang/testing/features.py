"""The features that a case exercises: verbs and options, reductions and their mapping, tails, memories, types, index forms.

Long runs count these, so that a generator that no longer draws something is noticed.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilelang.computations.computation import Computation
from tilelang.core.expr import Binary, Expr, Pad, Read, Reduce, Select
from tilelang.schedules.schedule import Schedule
from tilelang.schedules.spec import Spec
from tilelang.schedules.steps import Place, Split, Step, Tile, Units, Vectorize

Feature = tuple[str, str]  # (group, name)


def features(schedule: Schedule) -> set[Feature]:
    """All features that a schedule and its computation exercise, each once."""
    found = set(_of_computation(schedule.computation))
    held: set[str] = set()
    for spec, step in zip(schedule.specs, schedule.steps, strict=False):
        found.update(_of_step(step, spec))
        found.update(_tails(step, spec))
        if isinstance(step, Place) and step.verb in ("load", "compute") and step.memory == "register":
            if step.tensor_name in held:
                found.add(("move", "redistribution"))
            held.add(step.tensor_name)
    return found


def _of_computation(computation: Computation) -> Iterator[Feature]:
    for t in (*computation.inputs, *(t for d in computation.definitions for t in d.tensors)):
        yield "type", t.dtype.name
        if 0 in t.shape:
            yield "shape", "no elements"
        yield "shape", f"{len(t.shape)} dimensions"
    if len(computation.outputs) > 1:
        yield "shape", "several outputs"
    if sum(not t.hidden for d in computation.definitions for t in d.tensors) > len(computation.outputs):
        yield "shape", "several stages"
    for definition in computation.definitions:
        for value in definition.values:
            for e in value.walk():
                yield from _of_expression(e)


def _of_expression(e: Expr) -> Iterator[Feature]:
    match e:
        case Reduce():
            yield "reduction", e.combiner.name
            if e.condition is not None:
                yield "reduction", "under a condition"
            if len(e.axes) > 1:
                yield "reduction", "over several axes"
            if any(a.extent == 0 for a in e.axes):
                yield "reduction", "of nothing"
        case Pad():
            yield "index", "padded"
        case Select():
            yield "index", "chosen"
        case Read(_, indices):
            for i in indices:
                for part in i.walk():
                    if isinstance(part, Binary) and part.op in ("//", "%", "*"):
                        yield "index", {"//": "quotient", "%": "remainder", "*": "strided"}[part.op]
                    elif isinstance(part, Read):
                        yield "index", "gathered"
        case _:
            return


def _of_step(step: Step, spec: Spec) -> Iterator[Feature]:
    reduced = {a.name for a in spec.axes if a.reduction}
    match step:
        case Tile(sizes, level, count, order):
            yield "verb", f"tile -> {level}"
            if reduced & {a for a, _ in sizes}:
                yield "reduction", f"spread over {level}s"
            if count is not None:
                yield "form", "tile with a count"
            if order is not None:
                yield "form", f"order of {level}s"
        case Split(sizes, unroll, peel):
            yield "verb", "split"
            yield "form", "split of a reduction" if reduced & {a for a, _ in sizes} else "split of an output"
            if unroll or peel:
                yield "form", "split unroll" if unroll else "split peel"
        case Place():
            yield "verb", step.verb
            yield "memory", f"{step.verb} in {step.memory}"
            yield from _of_place(step)
        case Vectorize(axis, _):
            yield "verb", "vectorize"
            if axis in reduced:
                yield "reduction", "spread over lanes"
        case Units():
            yield "verb", "units"
        case _:
            yield "verb", type(step).__name__.lower()


def _of_place(step: Place) -> Iterator[Feature]:
    if step.layout is not None:
        yield "form", "layout"
        if step.layout.padding:
            yield "form", "layout with padding"
        operators = {e.op for t in step.layout.terms for e in t.walk() if isinstance(e, Binary)}
        if operators:
            yield "form", "layout with xor" if "^" in operators else "layout with quotients"
    if step.ahead:
        yield "form", f"{step.verb} ahead"
        if step.memory == "register":
            yield "form", f"{step.verb} ahead in register"
    if step.behind:
        yield "form", "behind"
    if step.stream:
        yield "form", "stream"
    if step.verb == "load" and step.memory == "register" and any(isinstance(s, Tile) for s in step.steps or ()):
        yield "move", "owners"
    for inner in step.steps or ():
        if isinstance(inner, Place):
            yield "form", f"{inner.verb} on the way of {step.verb}"
            yield "verb", inner.verb
            yield "memory", f"{inner.verb} in {inner.memory}"
        else:
            yield "move", type(inner).__name__.lower()
            if isinstance(inner, Tile):
                yield "move", f"tile -> {inner.level}"


def _tails(step: Step, spec: Spec) -> Iterator[Feature]:
    if isinstance(step, (Tile, Split)):
        sizes = [(a, t) for a, t in step.sizes if isinstance(t, int)]
        what = f"tile -> {step.level}" if isinstance(step, Tile) else "split"
    elif isinstance(step, Vectorize) and isinstance(step.lanes, int):
        sizes, what = [(step.axis, step.lanes)], "vectorize"
    else:
        return
    for axis, size in sizes:
        state = spec.axis(axis)
        kind = "a reduction" if state.reduction else "an output"
        if size > max(1, state.extent):
            yield "tail", f"{what} larger than {kind}"
        elif state.extent % size:
            yield "tail", f"{what} of {kind}"
