"""Loads into a cache: prefetches each line of a region before its readers need it. A cache has no addresses, and nothing waits
for it.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence

from tilelang.core.expr import INDEX, Expr, Pad, Read, Var, free, index, substitute
from tilelang.core.simplify import conjunction, simplify, weighted_sum
from tilelang.errors import Span
from tilelang.lowering import ir
from tilelang.lowering.build.frame import Build, Fetch, Frame
from tilelang.lowering.build.movement.footprint import Region, region_of
from tilelang.lowering.build.refusals import refuse
from tilelang.schedules.spec import point
from tilelang.schedules.steps import Place, Split


def is_cache(build: Build, step: Place) -> bool:
    """Whether a load goes into a memory without addresses, so that it is a prefetch."""
    return build.profile.memory(step.memory).cache


def prefetch(build: Build, frame: Frame, i: int, step: Place) -> ir.Stmt:
    """Prefetches every cache line of the region that is read `ahead` iterations of the innermost loop from now."""
    facts = build.profile.memory(step.memory)
    if not facts.cache:
        raise refuse(step, "not-lowered-yet", f"`{step}`: a load in {step.memory} inside a block is valid, but not supported yet"
                     " for this target", "load in shared or register")  # fmt: skip
    axes = frame.spec.axes
    if step.ahead and frame.last_walk is not None:
        axis, size = frame.last_walk
        far = simplify(frame.spec.axis(axis).base + size * step.ahead)
        axes = tuple(a.replace(base=far) if a.name == axis else a for a in axes)
    unbounded = frame.spec.replace(axes=tuple(a.replace(bounds=()) for a in axes))
    region, _ = region_of(build, frame.replace(spec=unbounded), i, step)
    if region.source.buffer.memory != "global":
        raise refuse(step, "prefetch-resident", f"`{step}`: the data is already in {region.source.buffer.memory}",
                     "remove the prefetch, or write it above the step that loads the tensor")  # fmt: skip
    tensor, rows = region.task.outputs[0], _rows(region)
    if rows is None and (region.points or _location(region, [index(0)] * len(region.spec.axes)) is None):
        raise refuse(step, "prefetch-scattered", f"`{step}`: the elements are scattered, so there are no cache lines to prefetch",
                     "remove the prefetch")  # fmt: skip
    line = max(1, (facts.line_bytes or 64) // tensor.dtype.bytes)
    merged = rows.merged(line) if rows is not None else tuple((a.extent, 0) for a in region.spec.axes)
    counts = tuple(-(-n // line) if stride == 1 else n for n, stride in merged)

    def at(numbers: Sequence[Expr]) -> ir.Stmt:
        if rows is None:  # each element by itself, as in a swizzled layout
            return ir.Prefetch(region.source.buffer, _location(region, numbers) or (), step.span)
        indices = [*rows.first]
        for v, (_, stride) in zip(numbers, merged if indices else (), strict=False):
            strides = region.source.buffer.strides
            dim = strides.index(stride) if stride != 1 and stride in strides else len(indices) - 1
            indices[dim] += v * (line if stride == 1 else stride // strides[dim])
        return ir.Prefetch(region.source.buffer, tuple(map(simplify, indices)), step.span)

    loop = _loop_below(build, frame, i) if step.ahead else None
    if loop is not None:
        last = next((w for w in reversed(frame.rounds) if frame.last_walk and w.axis == frame.last_walk[0]), None)
        # If `ahead` exceeds the loop, each prefetch fetches what follows the loop's elements in memory, such as the next row.
        exists = simplify(last.var + step.ahead < last.rounds) if last is not None and step.ahead < last.rounds else None
        fetch = Fetch(loop, len(frame.rounds), counts, at, exists)
        return build.chain(frame.replace(fetches=(*frame.fetches, fetch)), i + 1)
    variables = [build.several(f"{tensor.name}_line", n) for n in counts]
    return ir.seq(_looped(at(variables), variables, step.span), build.chain(frame, i + 1))


def _loop_below(build: Build, frame: Frame, i: int) -> Split | None:
    """The innermost loop below a prefetch, outside unrolled loops, in whose iterations a single thread can fetch a few lines each."""
    if build.threads > 1:
        return None
    below = itertools.takewhile(lambda s: not (isinstance(s, Split) and s.unroll), frame.steps[i + 1 :])
    return next((s for s in reversed([*below]) if isinstance(s, Split)), None)


def fetched(build: Build, frame: Frame, fetch: Fetch) -> ir.Stmt:
    """The lines that one iteration of the loops below a prefetch fetches; consecutive iterations fetch consecutive lines."""
    number: Expr = index(0)
    iterations = 1
    for w in frame.rounds[fetch.depth :]:
        number, iterations = simplify(number * w.rounds + w.var), iterations * w.rounds
    total, span = math.prod(fetch.lines), fetch.within.span
    each = -(-total // iterations)
    more = build.several("line", each)
    number = simplify(number * each + more)
    exists = conjunction([e for e in (number < total if each * iterations > total else None, fetch.exists) if e is not None])
    numbers, inside = list[Expr](), total
    for n in fetch.lines:
        inside //= n
        numbers.append(simplify(number // inside % n) if inside * n < total else simplify(number // inside))
    body = fetch.line(numbers)
    return _looped(body if exists is None else ir.If(exists, body, None, span), [more], span)


def _looped(body: ir.Stmt, variables: Sequence[Expr], span: Span | None) -> ir.Stmt:
    """A statement in a loop over each variable, the first one outermost."""
    for v in reversed(variables):
        if isinstance(v, Var) and v.upper is not None:
            count = v.upper + 1
            body = ir.For(v, index(count), body, "unroll" if count <= 8 else "serial", span)
    return body


@dataclasses.dataclass(frozen=True)
class _Rows:
    """The elements of a region in the memory from which the tensor is read. first: the indices of the first one; extents: how many
    there are along each axis, with the distance of neighbours in memory."""

    first: tuple[Expr, ...]
    extents: tuple[tuple[int, int], ...]

    def merged(self, line: int) -> tuple[tuple[int, int], ...]:
        """The extents, with rows that begin within a line of each other, or are contiguous, as a single one, which is the last."""
        run, outer = 1, list[tuple[int, int]]()
        for n, stride in sorted(self.extents, key=lambda e: abs(e[1])):
            if 0 <= stride <= max(run, line) and not outer:
                run += (n - 1) * stride
            elif stride:
                outer.insert(0, (n, stride))
        return (*outer, (run, 1))


def _location(region: Region, numbers: Sequence[Expr]) -> tuple[Expr, ...] | None:
    """The indices in memory of the element with a number along each axis of a region; None if data decides where it is (a gather)."""
    placed: dict[Expr, Expr] = {point(a.name): simplify(a.base + n) for a, n in zip(region.spec.axes, numbers, strict=True)}
    (value,) = region.task.values
    read = value.read if isinstance(value, Pad) else value
    assert isinstance(read, Read)
    named = dict(region.spec.coordinates)
    there: dict[Expr, Expr] = {a: substitute(named[a.name], placed) for a in region.task.axes}
    indices = tuple(simplify(substitute(i, there)) for i in read.indices)
    if any(isinstance(e, Read) for i in indices for e in i.walk()):
        return None
    return region.source.at(region.source.element(indices, placed))


def _rows(region: Region) -> _Rows | None:
    """The rows of a region; None if its elements are not at regular distances."""
    points = {a.name: Var(f"{a.name} in lines", INDEX, 0, a.extent - 1) for a in region.spec.axes}  # no axis has such a name
    at = _location(region, [*points.values()])
    if at is None:
        return None
    terms = dict(weighted_sum(at, region.source.buffer.strides)[0])
    own = set(points.values())
    if any(not own.isdisjoint(free(e)) for e in terms if e not in own):
        return None
    start: dict[Expr, Expr] = dict.fromkeys(own, index(0))
    first = tuple(simplify(substitute(i, start)) for i in at)
    return _Rows(first, tuple((a.extent, terms.get(points[a.name], 0)) for a in region.spec.axes if a.extent > 1))
