"""A lower bound on the time of any schedule of a computation: the roofline of its arithmetic and its data movement.

It counts each needed element as computed once, and each input and output as moved once, from the nearest memory that holds them, while
the arithmetic runs. If a memory is too small, it may still hold as much as fits from the previous launch. Rates are the highest that
were measured (upper envelopes of curves, peaks). A value under a condition is not counted, because it may not be needed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from tilelang.autoschedule.common.accesses import span
from tilelang.autoschedule.common.matrix_units import needed_rates, rates_of
from tilelang.autoschedule.common.operations import multiplied_type
from tilelang.autoschedule.profile.fits import upper_envelope
from tilelang.computations.computation import Computation, Definition, Tensor
from tilelang.core.dtype import DType
from tilelang.core.expr import ARITHMETIC, Axis, Binary, Call, Expr, Pad, Read, Select
from tilelang.core.simplify import linear
from tilelang.profiles.profile import Curve, Profile

SIDES = {
    "read_bandwidth": 1,
    "write_bandwidth": 1,
    "copy_bandwidth": 2,
}  # for each curve, the number of arrays in the footprint that it was measured with

SPREAD = 1.03  # how much faster than the profile's samples a quieter machine may be
MOST_COUNTED = 1 << 16  # an index that may leave its tensor is enumerated over all axes but the longest, up to this many points

# The type of the arithmetic, the type of the factors if it is a sum of products, and the precision options that are allowed.
Types: TypeAlias = tuple[DType, DType | None, tuple[str, ...]]
Flops: TypeAlias = dict[Types, float]


def has_empty_axis(computation: Computation) -> bool:
    """Whether an axis has extent 0. The models do not estimate such computations, and no schedule is searched for.

    >>> import tilelang as tl
    >>> i = tl.axes(i=0)
    >>> has_empty_axis(tl.computation("none", tl.define("Y", tl.input("X", tl.float32, i)[i], i)))
    True
    """
    return any(axis.extent == 0 for axis in computation.axes)


def bound(computation: Computation, profile: Profile) -> float:
    """A lower bound on the seconds that any schedule of a computation takes; 0 if the profile lacks the rates, or an axis is empty.

    >>> import tilelang as tl
    >>> i, j, k = tl.axes(i=1024, j=1024, k=1024)
    >>> A, B = tl.input("A", tl.float32, i, k), tl.input("B", tl.float32, k, j)
    >>> C = tl.computation("c", (tl.define("C", tl.sum(A[i, k] * B[k, j], over=k), i, j),))
    >>> f"{bound(C, tl.load_profile('sapphire_rapids')) * 1e3:.2f} ms"
    '4.46 ms'
    """
    if has_empty_axis(computation):
        return 0.0
    elements, flops = needs(computation)
    read = sum(elements.get(t.name, 0.0) * t.dtype.bytes for t in computation.inputs)
    written = sum(elements.get(t.name, 0.0) * t.dtype.bytes for t in computation.outputs)
    times = list(moved(profile, read, written))
    times += [_seconds(count, peak(profile, *types)) for types, count in flops.items()]
    return max(times)


def moved(profile: Profile, read: float, written: float) -> tuple[float, ...]:
    """Lower bounds on the time, in seconds, to read and to write these numbers of bytes; a single one for both together if they
    share the bandwidth."""
    if any(_measured(profile, tuple(SIDES))):  # curves are of one side by itself, so reads and writes may overlap
        sides = [_moved(profile, read, ("read_bandwidth",)), _moved(profile, written, tuple(SIDES))]
    else:
        sides = [_moved(profile, read + written, ())]
    return tuple(seconds / SPREAD for seconds in sides)


def _moved(profile: Profile, count: float, curves: Sequence[str]) -> float:
    """A lower bound on the time, in seconds, to move `count` bytes: the largest cache that is smaller supplies as much as it
    holds, and the next memory the rest."""
    near = max((size for size, _ in _caches(profile) if size < count), default=0.0)
    beyond = _seconds(count - near, bandwidth(profile, count, curves))
    return beyond + (_moved(profile, near, curves) if near else 0.0)


def _seconds(count: float, giga_per_s: float | None) -> float:
    return count / giga_per_s * 1e-9 if giga_per_s else 0.0


# ---------------------------------------------------------------- rates


def bandwidth(profile: Profile, footprint_bytes: float, curves: Sequence[str]) -> float | None:
    """The highest rate, in GB/s, at which so many bytes can move; None if it is unknown or assumed.

    With curves, it is the highest rate measured for at least so many bytes. If the bytes fit in a cache, it is the highest rate for
    more bytes than the next smaller cache holds, since rates near the size of a cache are lowered by whatever else is in it. Without
    curves, it is the rate of the nearest memory that holds them.
    """
    cores, found, caches = profile.compute_units or 1, [], list(_caches(profile))
    cached = [rate for size, rate in caches if footprint_bytes <= size][:1]
    nearer = max((size for size, _ in caches if size < footprint_bytes), default=0.0)
    for curve in _measured(profile, curves):
        points = upper_envelope([(x * SIDES[curve.name] * cores, y) for x, y in curve.points])
        if cached:
            found.append(next((y for x, y in points if x > nearer), points[-1][1]))
        else:
            found.append(next((y for x, y in reversed(points) if x <= footprint_bytes), points[0][1]))
    if not found:
        return cached[0] if cached else profile.sure_rates.get("global_gb_per_s")
    return max([*found, *(rate or 0.0 for rate in cached)])


def _measured(profile: Profile, curves: Sequence[str]) -> Iterator[Curve]:
    """The curves with these names that were measured, not assumed."""
    found = (profile.curve(name) for name in curves)
    return (curve for curve in found if curve is not None and not profile.assumed(f"curves.{curve.name}.points"))


def _caches(profile: Profile) -> Iterator[tuple[float, float | None]]:
    """Bytes and GB/s of each cache, summed over all cores, the nearest first. A rate is None if it is unknown."""
    sizes, known, cores = dict(profile.rates), profile.sure_rates, profile.compute_units or 1
    for cache in sorted((m for m in profile.memories if m.cache and m.owner == "block"), key=lambda m: m.capacity_bytes or 0):
        rate, cycle = known.get(f"{cache.name}_bytes_per_cycle"), known.get("cycle_ns")
        yield (cache.capacity_bytes or 0) * cores, rate * cores / cycle if rate and cycle else None
    for name, count in (("l1", cores), ("l2", 1), ("l3", 1)):
        yield sizes.get(f"{name}_bytes", 0.0) * count, known.get(f"{name}_gb_per_s")


def peak(profile: Profile, computed: DType, multiplied: DType | None = None, licences: tuple[str, ...] = ()) -> float | None:
    """The peak GFLOP/s in a type; None if the rate of the vector units, or of a matrix instruction that the device has, is unknown.

    For sums of products, `multiplied` is the type of the factors, whose matrix instructions count, and those of the types that a
    precision option allows in its place. The rate of another type says nothing about this one: narrower types may be packed, or have
    instructions of their own.
    """
    known = profile.sure_rates
    names = [f"{computed.name}_gflops"]
    if multiplied is not None:
        if not needed_rates(profile, multiplied, licences) <= known.keys():
            return None
        names += rates_of(multiplied, licences)
    return max((known[name] for name in names if name in known), default=None)


# ---------------------------------------------------------------- what is needed


def needs(computation: Computation) -> tuple[dict[str, float], Flops]:
    """The number of needed elements of each tensor, by name, and of operations that compute them."""
    elements = {t.name: float(math.prod(t.shape)) for t in computation.outputs}
    flops: Flops = {}
    for definition in reversed(computation.definitions):
        share = max(elements.get(t.name, 0.0) / max(1, math.prod(t.shape)) for t in definition.tensors)
        if share:
            for tensor, count in _touched(definition):
                elements[tensor.name] = max(elements.get(tensor.name, 0.0), share * count)
            for types, count in _flops(definition):
                flops[types] = flops.get(types, 0.0) + share * count
    return elements, flops


def _touched(definition: Definition) -> Iterator[tuple[Tensor, float]]:
    """For each read of a definition that certainly happens, the tensor and a lower bound on the elements that it touches."""
    reduce = definition.reduction
    condition = reduce.condition if reduce is not None else None
    conditional = _axes(condition) if condition is not None else set()
    for e in _certain(reduce.values if reduce is not None else definition.values):
        read = e.read if isinstance(e, Pad) else e
        if isinstance(read, Read) and not _axes(read) & conditional:
            yield read.tensor, float(math.prod(values(i, n) for i, n in zip(read.indices, read.tensor.shape, strict=True)))


def _flops(definition: Definition) -> Iterator[tuple[Types, float]]:
    """The number of operations of a definition that certainly happen, by their types."""
    reduce, allow = definition.reduction, definition.allow
    if reduce is None:
        yield from (((e.dtype, None, allow), _points(e)) for e in _certain(definition.values) if _is_operation(e))
        return
    within = _holds(reduce.condition) if reduce.condition is not None else 1.0
    multiplied = multiplied_type(reduce)
    for e in _certain(reduce.values):
        if _is_operation(e):
            yield (e.dtype, multiplied if e.dtype == reduce.values[0].dtype else None, allow), within * _points(e)
    combined = _points(*reduce.values, *definition.axes, *reduce.axes) * within - math.prod(a.extent for a in definition.axes)
    for e in _certain(reduce.combiner.result):
        if _is_operation(e):
            yield (e.dtype, multiplied, allow), max(0.0, combined)


def _is_operation(e: Expr) -> bool:
    return isinstance(e, Call) or (isinstance(e, Binary) and e.op in ARITHMETIC)


def _certain(values: Sequence[Expr]) -> Iterator[Expr]:
    """The parts of expressions that are always evaluated, each once: no branches of a choice, no second operand of `and` or `or`."""
    seen, stack = set[Expr](), list(values)
    while stack:
        e = stack.pop()
        if e in seen:
            continue
        seen.add(e)
        yield e
        match e:
            case Read() | Pad():
                pass
            case Select(condition=condition):
                stack.append(condition)
            case Binary("and" | "or", left):
                stack.append(left)
            case _:
                stack += [c for c in e.children() if isinstance(c, Expr)]


def _axes(*exprs: Expr) -> set[Axis]:
    return {a for e in exprs for a in e.walk() if isinstance(a, Axis)}


def _points(*exprs: Expr) -> float:
    """A lower bound on the number of points of the expressions' axes at which all padded reads are inside their tensors."""
    pads = {p.read for e in exprs for p in e.walk() if isinstance(p, Pad)}
    shares = [_inside_share(i, n) for r in pads for i, n in zip(r.indices, r.tensor.shape, strict=True)]
    return math.prod(a.extent for a in _axes(*exprs)) * max(0.0, 1 - sum(1 - s for s in shares))


# ---------------------------------------------------------------- indices


def values(index: Expr, extent: int) -> int:
    """A lower bound on the number of values in [0, extent) that an index takes.

    >>> i, r = Axis("i", 28), Axis("r", 3)
    >>> values(i * 2 + r - 1, 56), values(i * 2, 56), values(i * 2 + r * 2 - 2, 60)
    (56, 28, 30)
    """
    axes = _axes(index)
    reach = span(index, {a.name: a.extent for a in axes})
    if reach is None:  # it depends on data
        return 1
    terms = linear(index)[0]
    steps = [abs(f) for _, f in terms]
    points = math.prod(a.extent for a in axes)
    inside = _inside(index, extent)
    return min(extent, -(-reach // math.gcd(*steps)) if steps else 1, points if inside is None else inside)


def _inside_share(index: Expr, extent: int) -> float:
    """The share of its points at which an index is inside its tensor; 0 if unknown."""
    return (_inside(index, extent) or 0) / max(1, math.prod(a.extent for a in _axes(index)))


def _inside(index: Expr, extent: int | None) -> int | None:
    """The number of points of its axes at which an index is in [0, extent) (extent None: not negative). None if it is not linear, or
    counting would take long."""
    terms, start = linear(index)
    if not all(isinstance(atom, Axis) for atom, _ in terms):
        return None
    ends = [(f * (a.extent - 1), a.extent, f) for a, f in terms if isinstance(a, Axis)]
    least, most = start + sum(min(0, e) for e, _, _ in ends), start + sum(max(0, e) for e, _, _ in ends)
    if least >= 0 and (extent is None or most < extent):
        return math.prod(n for _, n, _ in ends)
    last = most if extent is None else extent - 1
    if not ends or last < 0:
        return 0
    *others, (_, longest, step) = sorted(ends, key=lambda e: e[1])
    if math.prod(n for _, n, _ in others) > MOST_COUNTED:
        return None
    first, end = (start, step) if step > 0 else (start + step * (longest - 1), -step)  # the same values, ascending
    count = 0
    for at in itertools.product(*(range(n) for _, n, _ in others)):
        begin = first + sum(k * f for k, (_, _, f) in zip(at, others, strict=True))
        count += max(0, min(longest - 1, (last - begin) // end) - max(0, -(begin // end)) + 1)
    return count


def _holds(condition: Expr) -> float:
    """A lower bound on the share of points at which a condition on axes holds."""
    match condition:
        case Binary("and", left, right):
            return max(0.0, _holds(left) + _holds(right) - 1)
        case Binary("or", left, right):
            return max(_holds(left), _holds(right))
        case Binary("<=" | "<" as op, left, right):
            apart = right - left if op == "<=" else right - left - 1
        case _:
            return 0.0
    return (_inside(apart, None) or 0) / max(1, math.prod(a.extent for a in _axes(apart)))
