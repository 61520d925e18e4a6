"""Matches an instruction with the innermost body of a schedule, and reports the fields in which they differ.

The statement at a `do` has a meaning over tensors and axes, remaining extents, a level, and a place of each tensor. Meaning, shape,
level, memory, type and layout are compared separately, so that a near miss is explained completely. Axes that the instruction does not
bind become loops around it; operands of multiplication, addition, minimum and maximum commute.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tilelang.core import dtype as dt
from tilelang.core.dtype import DType
from tilelang.core.expr import Axis, Binary, Call, Cast, Const, Expr, Pad, Read, Select, Unary, rewrite
from tilelang.core.layout import Layout, Placement, evaluate
from tilelang.core.node import Node, node
from tilelang.core.simplify import linear
from tilelang.errors import Refusal
from tilelang.instructions.fragment import Fragment
from tilelang.instructions.instruction import Instruction
from tilelang.instructions.operand import Operand
from tilelang.instructions.semantics import POINTWISE, Means

FIELDS = ("means", "shape", "level", "memory", "dtype", "layout", "alignment")
_WEIGHT = {"means": 100, "shape": 10}  # of a difference, when the nearest instructions are sought; other fields have 1
_COMMUTES = ("+", "*", "min", "max", "and", "or", "&", "|", "^", "==", "!=")


@node
class Residence(Node):
    """The place of a tensor that the body reads: memory, type there, layout, and the region's dimensions, one for each index of the
    read.

    read: the read in the body that finds it there, if others find the same tensor elsewhere. None: all reads do.
    """

    tensor: str
    memory: str
    dtype: DType
    dims: tuple[tuple[str, int], ...]
    layout: Layout | None = None
    read: Read | None = None


@node
class Leaf(Node):
    """The innermost body at a `do`. means: over tensors (`.name`, `.dtype`) and axes; extents: the remaining extent of each axis, by
    name."""

    means: Means
    extents: tuple[tuple[str, int], ...]
    level: str
    residences: tuple[Residence, ...]


@node
class Mismatch(Node):
    """A field in which an instruction differs from the body: the values of both, and the operand."""

    field: str
    has: str
    asked: str
    where: str = ""

    def __str__(self) -> str:
        return f"{self.field}{f' of {self.where}' if self.where else ''}: the instruction has {self.has}, but the step has {self.asked}"


@node
class Match(Node):
    """An instruction compared with a body. binding: its axes to those of the body; operands: its operands to the reads of the body.

    It fits if `mismatches` is empty; `instruction` then has the matched extents (for axes with variable extents).
    """

    instruction: Instruction
    binding: tuple[tuple[str, str], ...]
    operands: tuple[tuple[str, Read], ...]
    mismatches: tuple[Mismatch, ...]

    @property
    def fits(self) -> bool:
        return not self.mismatches

    @property
    def distance(self) -> int:
        """A measure of the differences; 0 if it fits."""
        return sum(_WEIGHT.get(m.field, 1) for m in self.mismatches)

    def __str__(self) -> str:
        lines = [f"{self.instruction}" + (": fits" if self.fits else "")]
        return "\n".join(lines + [f"  {m}" for m in self.mismatches])


def match(instruction: Instruction, leaf: Leaf, binding: Mapping[str, str] | None = None) -> Match:
    """The instruction compared with the body, under the best pairing of axes and operands. binding: given pairs of axes, the
    instruction's first.

    Raises Refusal if the binding names an axis that does not exist.
    """
    binding = dict(binding or {})
    extents = dict(leaf.extents)
    for mine, theirs in binding.items():
        if mine not in instruction.shape or theirs not in extents:
            raise Refusal(
                "instruction-binding",
                f"`{mine}={theirs}`: {instruction.name} has the axes {', '.join(instruction.shape)}, and this step has"
                f" {', '.join(extents)}",
                help="write the instruction's axis on the left and the step's axis on the right",
            )
    tried: list[Match] = []
    for pairing in itertools.islice(_pairings(instruction.means, leaf.means, binding), 64):
        tried.append(_compare(instruction, leaf, pairing))
        if tried[-1].fits:
            break
    if tried:
        return min(tried, key=lambda m: m.distance)
    found = [Mismatch("means", str(instruction.means), str(leaf.means))]
    return Match(instruction, tuple(binding.items()), (), (*found, *_compare_level(instruction, leaf)))


def nearest(instructions: Iterable[Instruction], leaf: Leaf, n: int = 3, binding: Mapping[str, str] | None = None) -> list[Match]:
    """The n instructions that differ least from the body, fitting ones first; ties by name."""

    def beside(one: Instruction) -> Match:
        known = {mine: theirs for mine, theirs in (binding or {}).items() if mine in one.shape}
        return match(one, leaf, known)

    return sorted((beside(i) for i in instructions), key=lambda m: (m.distance, m.instruction.name))[:n]


def refuse(step: str, matches: list[Match], **where: Any) -> Refusal:
    """The refusal of a `do` that does not fit, with the nearest instructions and their differences."""
    first = matches[0]
    return Refusal(
        "instruction-mismatch",
        f"`{step}` does not match the innermost body",
        counterexample=str(first.mismatches[0]) if first.mismatches else None,
        notes=tuple(str(m) for m in matches),
        help="change the steps above until the innermost body matches the instruction, or use the nearest one that fits",
        **where,
    )


# ---------------------------------------------------------------- meaning: pairing axes and reads

_Pairing = tuple[dict[str, str], dict[str, Read]]  # the instruction's axes to the leaf's, its operands to the leaf's reads


def _pairings(mine: Means, theirs: Means, binding: Mapping[str, str]) -> Iterator[_Pairing]:
    """All pairings under which the body has the instruction's meaning, over the instruction's axes."""
    if mine.kind != theirs.kind or mine.combiner != theirs.combiner:
        return
    for after_target in _unify(mine.target, theirs.target, (dict(binding), {})):
        for axes, reads in _unify(_plain(_stored(mine)), _plain(_stored(theirs)), after_target):
            reduced = {a.name for a in mine.reduced}
            kept = {a.name for a in theirs.target_axes}
            crossed = any((a in reduced) == (b in kept) for a, b in axes.items())
            if not crossed and len(axes) == len(mine.axes) and _bound_once(mine, axes, reads):
                yield axes, reads


def _stored(means: Means) -> Expr:
    """The value without a conversion that storing it in the target performs anyway."""
    value = means.value
    return value.operand if isinstance(value, Cast) and value.type == means.target.dtype and means.kind == POINTWISE else value


def _plain(e: Expr) -> Expr:
    """The expression without conversions that the compute type implies, from 16-bit floats to float32."""

    def rule(found: Any) -> Any:
        if isinstance(found, Cast) and found.operand.dtype.is_float and dt.compute_type(found.operand.dtype) == found.type:
            return found.operand
        return found

    stripped: Expr = rewrite(e, rule)
    return stripped


def _unify(mine: Any, theirs: Any, so_far: _Pairing) -> Iterator[_Pairing]:
    match mine, theirs:
        case Read(), Read():
            yield from _unify_read(mine, theirs, so_far)
        case Const(value=a), Const(value=b):
            if a == b or (a != a and b != b):
                yield so_far
        case Binary(op, a, b), Binary(other, c, d) if op == other:
            yield from _unify_all((a, b), (c, d), so_far)
            if op in _COMMUTES:
                yield from _unify_all((a, b), (d, c), so_far)
        case Unary(op, a), Unary(other, c) if op == other:
            yield from _unify(a, c, so_far)
        case Call(name, args), Call(other, others) if name == other and len(args) == len(others):
            yield from _unify_all(args, others, so_far)
        case Select(a, b, c), Select(d, e, f):
            yield from _unify_all((a, b, c), (d, e, f), so_far)
        case Cast(a, t), Cast(b, u) if t == u:
            yield from _unify(a, b, so_far)
        case Pad(a, v), Pad(b, w) if v == w:
            yield from _unify(a, b, so_far)
        case _:
            return


def _unify_all(mine: tuple[Any, ...], theirs: tuple[Any, ...], so_far: _Pairing) -> Iterator[_Pairing]:
    if not mine:
        yield so_far
        return
    for state in _unify(mine[0], theirs[0], so_far):
        yield from _unify_all(mine[1:], theirs[1:], state)


def _unify_read(mine: Read, theirs: Read, so_far: _Pairing) -> Iterator[_Pairing]:
    axes, reads = so_far
    name = mine.tensor.name
    if reads.get(name, theirs) is not theirs:
        return
    if not all(isinstance(i, Axis) for i in mine.indices):
        return  # an operand at other than plain axes is not looked into
    wanted = [i.name for i in mine.indices if isinstance(i, Axis)]
    places = [_axes_of(i) for i in theirs.indices]
    for chosen in itertools.permutations(range(len(places)), len(wanted)):
        for names in itertools.product(*(places[p] for p in chosen)):
            merged = dict(axes)
            free = all(merged.setdefault(a, b) == b for a, b in zip(wanted, names, strict=True))
            if free and len(set(merged.values())) == len(merged):
                yield merged, {**reads, name: theirs}


def _axes_of(index: Expr) -> list[str]:
    """The axes with coefficient one in an index, along which neighbouring points are neighbouring elements."""
    terms, _ = linear(index)
    return [atom.name for atom, c in terms if isinstance(atom, Axis) and c == 1]


def _bound_once(mine: Means, axes: Mapping[str, str], reads: Mapping[str, Read]) -> bool:
    """Whether each read of the body uses the axes of its operand, each in one dimension, and no other bound axis."""
    bound = set(axes.values())
    for own in (mine.target, *mine.reads):
        wanted = sorted(axes[i.name] for i in own.indices if isinstance(i, Axis))
        moving = [a for index in reads[own.tensor.name].indices for a in sorted(_axes_in(index) & bound)]
        if sorted(moving) != wanted:
            return False
    return True


def _axes_in(index: Expr) -> set[str]:
    return {a.name for a in index.walk() if isinstance(a, Axis)}


# ---------------------------------------------------------------- the other fields


def _compare(instruction: Instruction, leaf: Leaf, pairing: _Pairing) -> Match:
    axes, reads = pairing
    extents = dict(leaf.extents)
    sizes = {
        mine: extents[theirs]
        for mine, theirs in axes.items()
        if mine in dict(instruction.limits) and 1 <= extents[theirs] <= dict(instruction.limits)[mine]
    }
    instruction = instruction.resized(**sizes)
    found = [*_compare_shape(instruction, axes, extents), *_compare_level(instruction, leaf)]
    residences = {r.tensor if r.read is None else r.read: r for r in leaf.residences}
    whole = not found
    types: set[DType] = set()
    for operand in instruction.operands:
        read = reads[operand.name]
        residence = residences.get(read, residences.get(read.tensor.name))
        if residence is None:
            found.append(Mismatch("memory", operand.memory, "a value that is not in memory", read.tensor.name))
            continue
        if residence.memory != operand.memory:
            found.append(Mismatch("memory", operand.memory, residence.memory, residence.tensor))
        if residence.dtype not in operand.dtypes:
            found.append(Mismatch("dtype", _either(operand.dtypes), str(residence.dtype), residence.tensor))
        if len(operand.dtypes) > 1:
            types.add(residence.dtype)
        if whole and residence.memory == operand.memory:
            found += _compare_layout(operand, instruction.fragment(operand.name), residence, read, axes)
    if len(types) > 1:
        found.append(Mismatch("dtype", "one type for all", _either(tuple(sorted(types, key=lambda t: t.name)))))
    return Match(instruction, tuple(axes.items()), tuple(reads.items()), tuple(found))


def _either(types: tuple[DType, ...]) -> str:
    return " or ".join(t.name for t in types)


def _compare_level(instruction: Instruction, leaf: Leaf) -> list[Mismatch]:
    return [] if instruction.level == leaf.level else [Mismatch("level", instruction.level, leaf.level)]


def _compare_shape(instruction: Instruction, axes: Mapping[str, str], extents: Mapping[str, int]) -> list[Mismatch]:
    found = []
    for mine, needed in instruction.shape.items():
        theirs = axes[mine]
        if extents[theirs] % needed or not extents[theirs]:
            has = (
                f"{mine} = {needed}" if mine not in dict(instruction.limits) else f"{mine} up to {dict(instruction.limits)[mine]}"
            )
            found.append(Mismatch("shape", has, f"{theirs} = {extents[theirs]}, which is not a multiple of it", theirs))
    return found


def _compare_layout(
    operand: Operand, held: Fragment | None, residence: Residence, read: Read, axes: Mapping[str, str]
) -> list[Mismatch]:
    """Compares the operand's layout with that of the region."""
    if operand.memory == "register":
        return []  # who has which element is compared where both sides are known
    region = dict(residence.dims)
    order = list(region)
    # The dimension of the region along which each dimension of the operand runs; dimensions that stand still are not among them.
    along = []
    for dim in operand.dims:
        (place,) = [p for p, i in enumerate(read.indices) if axes[dim.name] in _axes_in(i)]
        along.append(order[place])
    placement = (residence.layout or Layout()).place(region, residence.dtype.bytes)
    if held is not None:
        return _compare_runs(operand, held, residence, placement, along)
    accepted = operand.layouts or (Layout(),)
    moving = {name: region[name] for name in along}
    for candidate in accepted:
        try:
            theirs = candidate.place(moving, residence.dtype.bytes)
        except Refusal:
            continue  # a swizzle wider than the region
        if _same_places(theirs, placement, along, region):
            return []
    return [Mismatch("layout", " or ".join(str(a) or "row-major" for a in accepted), _laid(residence), residence.tensor)]


def _laid(residence: Residence) -> str:
    return str(residence.layout or "") or f"row-major ({', '.join(name for name, _ in residence.dims)})"


def _linear_places(placement: Placement, coordinates: Mapping[str, Any]) -> Any:
    values = {v: coordinates[d] for d, v in zip(placement.dims, placement.variables, strict=True)}
    total: Any = 0
    for term, extent in zip(placement.terms, placement.shape, strict=True):
        total = total * extent + evaluate(term, values)
    return total


def _same_places(theirs: Placement, ours: Placement, along: list[str], region: Mapping[str, int]) -> bool:
    import numpy as np  # late: NumPy takes long to import

    cut = [min(region[name], 256) for name in along]
    points = dict(zip(along, np.indices(cut).reshape(len(cut), math.prod(cut)), strict=True))
    still = {name: np.int64(0) for name in region if name not in points}
    return bool(np.array_equal(_linear_places(theirs, points), _linear_places(ours, {**still, **points})))


def _compare_runs(
    operand: Operand, held: Fragment, residence: Residence, placement: Placement, along: list[str]
) -> list[Mismatch]:
    """Checks that each lane's slots are consecutive elements, and the first one aligned, wherever in the region the tile begins."""
    import numpy as np  # late: NumPy takes long to import

    steps = dict(zip(along, (dim.extent for dim in operand.dims), strict=True))
    count = min(
        16, int(4096 ** (1 / max(1, len(residence.dims))))
    )  # beginnings tried per dimension: patterns repeat within these
    starts = [np.arange(0, n - steps.get(name, 1) + 1, steps.get(name, 1))[:count] for name, n in residence.dims]
    grids = [g.reshape(-1, 1, 1) for g in np.meshgrid(*starts, indexing="ij")]
    points: dict[str, Any] = dict(zip((name for name, _ in residence.dims), grids, strict=True))
    for position, name in enumerate(along):
        points[name] = points[name] + held.table[..., position]
    shape = (grids[0].shape[0] if grids else 1, held.lanes, held.slots)
    places = np.broadcast_to(_linear_places(placement, points), shape)

    def element(at: Any) -> str:
        return "(" + ", ".join(str(int(np.broadcast_to(p, shape)[tuple(at)])) for p in points.values()) + ")"

    apart = np.argwhere(np.diff(places, axis=2) != 1)
    if apart.size:
        at, after = apart[0], apart[0] + (0, 0, 1)
        distance = abs(int(places[tuple(after)] - places[tuple(at)]))
        asked = f"{_laid(residence)}, where elements {element(at)} and {element(after)} are {distance} apart"
        return [Mismatch("layout", f"runs of {held.slots} consecutive elements", asked, residence.tensor)]
    loose = np.argwhere(places[..., :1] * residence.dtype.bytes % max(1, operand.alignment_bytes))
    if loose.size:
        asked = f"element {element(loose[0])} at byte {int(places[tuple(loose[0])]) * residence.dtype.bytes}"
        return [Mismatch("alignment", f"{operand.alignment_bytes} bytes", asked, residence.tensor)]
    return []
