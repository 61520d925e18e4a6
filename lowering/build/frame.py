"""What the builder hands from step to step: the spec, where tensors live, where states and results go.

A Residence answers "where is element [i, j] of tensor X"; a Target takes results; a StatePlace holds the states of reductions. A Frame
is the immutable view of one point between two steps; a Build collects the buffers of one kernel.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tilelang import dtype as dt
from tilelang.computation import Tensor
from tilelang.dtype import DType
from tilelang.errors import Span
from tilelang.explain import Chain
from tilelang.expr import INDEX, Const, Expr, Pad, Read, Var, index
from tilelang.lowering import ir
from tilelang.machine import Profile
from tilelang.simplify import interval, simplify
from tilelang.spec import Bound, Spec
from tilelang.steps import Place, Step
from tilelang.task import State, Task
from tilelang.tensor import Placement, split_terms


def is_thread_part(atom: Expr) -> bool:
    """Whether a term of an index differs between the threads of a block."""
    return any(isinstance(e, Var) and e.name == "thread" for e in atom.walk())


# ---------------------------------------------------------------- where a tensor is resident

TENSOR_END = "tensor:"  # what the keys of bounds at a tensor's own ends begin with


@dataclasses.dataclass(frozen=True)
class Residence:
    """A tensor, or one read of it, in a buffer.

    fill: the value of every element that the move found outside (None: such elements hold nothing). filled: keys of the bounds
    beyond which it holds `fill`; outside: elements outside the tensor hold `fill` too. steps: how its owners were spread. points: by
    access, the axes that stand for the dimensions: one element per point of them. ends: bounds of each dimension, counted from where it
    begins, beyond which it holds nothing at all, though there is room.
    """

    tensor: Tensor
    read: Read | Pad | None
    buffer: ir.Buffer
    fill: Const | None = None
    filled: frozenset[str] = frozenset()
    outside: bool = False
    steps: tuple[Step, ...] = ()
    points: tuple[Var, ...] = ()
    ends: tuple[tuple[Bound, ...], ...] = ()

    def serves(self, read: Read, whole: Read | Pad) -> bool:
        """Whether it holds what a read wants. whole: the read as it stands, its padding included."""
        return read.tensor is self.tensor and (self.read is None or self.read is whole or self.read is read)

    def holds_fill(self, key: str) -> bool:
        """Whether elements beyond the bound of this key hold `fill`."""
        return key in self.filled or self.outside and key.startswith(TENSOR_END)

    def element(self, indices: tuple[Expr, ...], axes: Mapping[Expr, Expr]) -> tuple[Expr, ...]:
        """How an element is counted here. indices: in the tensor; axes: the coordinate of every axis at the reader."""
        return tuple(axes[p] for p in self.points) or indices

    def at(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Buffer indices of an element."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Whole(Residence):
    """The whole tensor, in global memory."""

    def at(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return indices


@dataclasses.dataclass(frozen=True)
class Box(Residence):
    """A region from `low` on, in a buffer with a layout. slot: the ring's current buffer; unit: whose copy, where each has one."""

    low: tuple[Expr, ...] = ()
    placement: Placement | None = None
    slot: Expr | None = None
    unit: tuple[Expr, ...] = ()

    def at(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        assert self.placement is not None
        local = tuple(simplify(i - low) for i, low in zip(indices, self.low, strict=True))
        ring = () if self.slot is None else (self.slot,)
        return (*ring, *self.unit, *self.placement.at(local))


@dataclasses.dataclass(frozen=True)
class DimShare:
    """Which coordinates of one dimension a thread has: unit + the offsets {least + sum c_k x_k}, 0 <= x_k < n_k.

    strides maps each c_k to the step of its slot numbers; None: slots are offsets (dense). own: the offsets of these that a thread has,
    where a walk or a vector goes beyond its tile; None: all.
    """

    unit: Expr
    least: int
    size: int
    strides: tuple[tuple[int, int, int], ...] | None  # (c_k, n_k, slot stride), largest c first
    own: tuple[int, ...] | None = None

    def slot(self, rest: list[tuple[Expr, int]], constant: int) -> Expr | None:
        """The slot of an offset given as terms; None where it has no constant-stride form."""
        if self.strides is None:
            return self.digits(rest, constant)[0][0]
        strides = {c: stride for c, _, stride in self.strides}
        if constant != self.least or any(c not in strides for _, c in rest):
            return None
        total: Expr = index(0)
        for atom, c in rest:
            total = total + atom * strides[c]
        return simplify(total)

    def tests(self, rest: list[tuple[Expr, int]], constant: int) -> list[tuple[Expr, Sequence[int]]]:
        """(x, values) for an offset that has a slot: the thread has the element where every x is one of its values."""
        if self.own is None:
            return [(x, range(n)) for x, n in self.digits(rest, constant)]
        total: Expr = index(constant)
        for atom, c in rest:
            total = total + atom * c
        return [(simplify(total), self.own)]

    def digits(self, rest: list[tuple[Expr, int]], constant: int) -> list[tuple[Expr, int]]:
        """(x, n) for an offset that has a slot, which lies in the share where every 0 <= x < n."""
        if self.strides is None:
            total: Expr = index(constant - self.least)
            for atom, c in rest:
                total = total + atom * c
            return [(simplify(total), self.size)]
        found = []
        for c, n, _ in self.strides:
            digit: Expr = index(0)
            for atom, d in rest:
                digit = digit + atom if d == c else digit
            found.append((simplify(digit), n))
        return found

    def offset(self, slot: Expr) -> Expr:
        """The offset that a slot holds."""
        if self.strides is None:
            return slot + self.least
        total: Expr = index(self.least)
        for c, n, stride in self.strides:
            total = total + ((slot // stride) % n) * c
        return simplify(total)


@dataclasses.dataclass(frozen=True)
class Share(Residence):
    """Every thread has some elements, in registers: its share, dimension by dimension."""

    low: tuple[Expr, ...] = ()
    dims: tuple[DimShare, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """What the elements are counted along."""
        return tuple(p.name[1:] for p in self.points) or tuple(d.name for d in self.tensor.dims)

    def at(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        found = []
        for d, (i, low, share) in enumerate(zip(indices, self.low, self.dims, strict=True)):
            terms = self._terms(share, i - low)
            slot = None if terms is None else share.slot(*terms)
            if slot is None:
                raise self.foreign(d, indices)
            if share.size > 1:  # the buffer has no dimension for what every thread has one of
                found.append(slot)
        return tuple(found) or (index(0),)

    @staticmethod
    def _terms(share: DimShare, offset: Expr) -> tuple[list[tuple[Expr, int]], int] | None:
        """An offset from where this thread's part begins, as terms; None where it is another part."""
        unit, rest, constant = split_terms(offset, is_thread_part)
        if simplify(unit - share.unit) is index(0):
            return rest, constant
        if share.unit is index(0) and share.strides is None:  # everybody has all of it
            return [(simplify(offset), 1)], 0
        return None

    def beyond(self, indices: tuple[Expr, ...]) -> list[tuple[int, Expr, Sequence[int]]]:
        """(dimension, x, values) for indices that have slots: the thread has the element only where x is one of the values, which is
        not certain."""
        found = []
        for d, (i, low, share) in enumerate(zip(indices, self.low, self.dims, strict=True)):
            terms = self._terms(share, i - low)
            for x, values in share.tests(*terms) if terms is not None else ():
                first, last = interval(x)
                if first is None or last is None or not all(v in values for v in range(first, last + 1)):
                    found.append((d, x, values))
        return found

    def foreign(self, d: int, indices: tuple[Expr, ...]) -> NotOwner:
        """That a reader wants an element that the thread has not; d: the dimension that tells."""
        return NotOwner(self, d, [simplify(i - low) for i, low in zip(indices, self.low, strict=True)])


@dataclasses.dataclass(frozen=True)
class Fixed(Residence):
    """One slot of a register buffer."""

    slots: tuple[Expr, ...] = ()

    def at(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return self.slots


@dataclasses.dataclass(frozen=True)
class Staging(Residence):
    """Where a fetched element waits; its slots come from the walks of the move."""

    def at(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return ()


class NotOwner(Exception):
    """A reader wants an element that it has not. offsets: the element, from where the share's region begins; dim: where it fails."""

    def __init__(self, share: Share, dim: int, offsets: Sequence[Expr]) -> None:
        super().__init__(share.tensor.name)
        self.share, self.dim, self.offsets = share, dim, offsets


# ---------------------------------------------------------------- where results and states go


@dataclasses.dataclass(frozen=True)
class Target:
    """Takes the outputs of a task. `places[k]` is the residence that output k is stored to.

    again: the states that a later round of a reduction walk outside combines into what the first round stored.
    """

    places: tuple[Residence, ...]
    stream: bool = False
    behind: int = 0
    again: tuple[State, ...] = ()

    @property
    def in_registers(self) -> bool:
        return self.places[0].buffer.memory == "register"

    def stored_as(self, step: Place) -> Target:
        """The same places, stored to as a step says."""
        return dataclasses.replace(self, stream=step.stream, behind=step.behind)


@dataclasses.dataclass(frozen=True)
class StatePlace:
    """The states of a task's reductions: buffers[state][member].

    In registers they are addressed by pieces (the walks since the accumulator began), `lanes` > 0 adds a last dimension for partial
    states of a reduction's vector lanes. Elsewhere by coordinates, through `low` and `placement`: of the task's axes, or of `points`.
    """

    buffers: tuple[tuple[ir.Buffer, ...], ...]
    memory: str
    lanes: int = 0
    vector_axis: str | None = None
    low: tuple[Expr, ...] = ()
    placement: Placement | None = None
    prefix: tuple[Expr, ...] = ()
    points: tuple[Var, ...] = ()


@dataclasses.dataclass(frozen=True)
class Trim:
    """The rounds of a walk that are left: from `first` on and before `end`, the same for all threads.

    bounds: keys of the spec's bounds that leave rounds out; conditioned: whether conditions of the reduction do. known: those that hold
    in all these rounds. forced: there is a round even where none exists, so nothing is sure inside it.
    """

    first: Expr
    end: Expr
    bounds: frozenset[str] = frozenset()
    conditioned: bool = False
    known: frozenset[Expr] = frozenset()
    forced: bool = False


@dataclasses.dataclass(frozen=True)
class Walk:
    """A loop over an axis, as the frames inside it know it.

    var: the round; rounds: as many as it can have; trim: what is left of them. trip: the rounds before this one, `var` itself where all
    begin at 0. makes: the key of the bound that its last piece may be beyond. residences: how many tensors were resident where it
    began. before: statements that steps inside it put in front of the loop.
    """

    axis: str
    var: Var
    trip: Var
    rounds: int
    trim: Trim | None
    makes: str
    residences: int
    before: list[ir.Stmt] = dataclasses.field(default_factory=list, compare=False)

    @property
    def first(self) -> Expr:
        """The first round."""
        return index(0) if self.trim is None else self.trim.first

    @property
    def end(self) -> Expr:
        """The round after the last."""
        return index(self.rounds) if self.trim is None else self.trim.end

    @property
    def whole(self) -> bool:
        """Whether it has all its rounds, always."""
        return self.first is index(0) and isinstance(self.end, Const) and self.end.value == self.rounds

    def whole_until_the_end_of(self, outer: Walk) -> bool:
        """Whether it has all its rounds in every round of a walk around it, or that one's last rounds are the only exception."""
        if self.whole or self.trim is None or self.trim.conditioned:
            return self.whole
        least = outer.trim.bounds if outer.trim is not None else frozenset[str]()
        return self.axis == outer.axis and self.trim.bounds <= least | {outer.makes}

    def loop(self, body: ir.Stmt, kind: str, span: Span | None) -> ir.Stmt:
        """The walk with its body."""
        if self.trip is self.var:
            return ir.seq(*self.before, ir.For(self.var, self.end, body, kind, span))
        body = ir.Seq((ir.Let(self.var, self.first + self.trip, span), body), span)
        return ir.seq(*self.before, ir.For(self.trip, simplify(self.end - self.first), body, kind, span))


@dataclasses.dataclass(frozen=True)
class Piece:
    """What of results goes back at a time: `size` elements along an axis, from `base` on."""

    axis: str
    base: Expr
    size: int


@dataclasses.dataclass(frozen=True)
class Frame:
    """One point between two steps of a task."""

    task: Task
    steps: tuple[Step, ...]
    spec: Spec
    target: Target
    residences: tuple[Residence, ...]
    state: StatePlace | None = None
    outer: StatePlace | None = None  # the place that the current accumulator is combined into
    finishing: bool = False
    slots: tuple[Expr, ...] = ()
    walks: tuple[Expr, ...] = ()  # indices of the reduction walks since the current place began
    idle: tuple[Expr, ...] = ()  # thread digits along spread reductions: results are stored where all are 0
    fill: Const | None = None
    fill_keys: frozenset[str] = frozenset()
    store_lanes: tuple[str, int] | None = None  # finishing: vectorize this axis
    around: tuple[tuple[Expr, Expr], ...] = ()  # where axes that this task has not are fixed by the specs around it
    last_walk: tuple[str, int] | None = None  # the innermost walk's axis and piece: what `ahead` counts in a cache
    known: frozenset[Expr] = frozenset()  # conditions of the reduction that hold at all points here
    undecided: bool = False  # inside a walk over conditioned points, not yet in versions with and without the test
    rare: bool = False  # a version for few pieces, of which there are no versions
    within: tuple[Expr, ...] = ()  # what the loops around keep by their extents: bounds that the spec has no more
    origin: Span | None = None  # the place whose steps these are: where statements come from that no written step stands for
    cuts: tuple[Span, ...] = ()  # where the steps are written that divided the work down to this point
    staged: ir.Buffer | None = None  # a move through registers: where the fetched elements wait
    moves: Place | None = None  # the load whose move this is
    pieces: tuple[Piece, ...] = ()  # finishing: only these results
    rounds: tuple[Walk, ...] = ()  # all walks around this point, outermost first, that of a block over its tiles included
    nest: tuple[Walk, ...] = ()  # the walks around this point with nothing but steps between them, outermost first

    def but(self, **changes: Any) -> Frame:
        return dataclasses.replace(self, **changes)

    def own_copy(self, threads: int) -> tuple[tuple[int, ...], tuple[Expr, ...]]:
        """(dimensions, indices) that give each unit of this spec's level a shared buffer of its own; none where a block is the unit."""
        units = self.spec.units or threads
        if units == threads:
            return (), ()
        thread = Var("thread", INDEX, 0, threads - 1)
        return (threads // units,), (simplify(thread // units),)

    def coordinates(self, points: Mapping[str, Expr]) -> dict[Expr, Expr]:
        """Axis -> its value, for the task's axes; points: the value of each axis of the spec."""
        from tilelang.expr import substitute
        from tilelang.spec import point

        mapping = {point(name): value for name, value in points.items()}
        named = {n: simplify(substitute(e, mapping)) for n, e in self.spec.coordinates}
        axes: dict[Expr, Expr] = {a: named[a.name] for a in (*self.task.axes, *self.task.reduction_axes)}
        return {**axes, **dict(self.around), **{point(n): v for n, v in points.items()}}


class Build:
    """The buffers and names of one kernel under construction."""

    def __init__(self, profile: Profile, threads: int, task_of: Callable[[str], Task], tensors: Mapping[str, Tensor],
                 cluster: int = 1) -> None:  # fmt: skip
        self.profile, self.threads, self.task_of, self.tensors = profile, threads, task_of, tensors
        self.buffers: dict[str, ir.Buffer] = {}
        self.room: dict[str, ir.Buffer] = {}
        self.counters: dict[str, int] = {}
        self.grid: list[int] = []
        self.cluster = cluster  # how many blocks make one
        self.notes: dict[str, None] = {}
        self.chains: dict[int, Chain] = {}  # by the id of the steps
        self.thread = self.thread_of(threads)

    @staticmethod
    def thread_of(threads: int) -> Expr:
        """The number of a thread among so many."""
        return Var("thread", INDEX, 0, threads - 1) if threads > 1 else index(0)

    def name(self, stem: str) -> str:
        """A name not used before in this kernel; a person may have given one that ends in a number too."""
        n = self.counters.get(stem, 0)
        found = f"{stem}_{n}" if n else stem
        while n and found in self.counters:
            n += 1
            found = f"{stem}_{n}"
        self.counters[found] = 1
        self.counters[stem] = n + 1
        return found

    def note(self, text: str) -> None:
        """Something the schedule left to the device, for `explain`."""
        self.notes[text] = None

    def reach(self, frame: Frame, i: int) -> None:
        """Keeps the spec before step i, as it was first, for `explain`."""
        made = Chain(tuple(t.name for t in frame.task.outputs), frame.steps)
        self.chains.setdefault(id(frame.steps), made).specs.setdefault(i, frame.spec)

    def variable(self, stem: str, count: int) -> Var:
        """A loop variable over 0 .. count-1."""
        return Var(self.name(stem), INDEX, 0, max(0, count - 1))

    def buffer(self, stem: str, type: DType, shape: tuple[int, ...], memory: str, role: str = "", ring: int = 0) -> ir.Buffer:
        """A new buffer; bool is stored as uint8."""
        stored = dt.uint8 if type.kind == "bool" else type
        made = ir.Buffer(self.name(stem), stored, tuple(max(1, n) for n in shape) or (1,), memory, role, ring=ring)
        self.buffers[made.name] = made
        return made

    @contextlib.contextmanager
    def dropped(self) -> Iterator[None]:
        """What is made inside is not kept: only how it would be counts."""
        counters, buffers = dict(self.counters), dict(self.buffers)
        yield
        self.counters, self.buffers = counters, buffers

    def make_room(self, buffer: ir.Buffer, shape: Sequence[int]) -> None:
        """Registers that walks reach beyond a share's end, where no point exists: the finished kernel's buffer holds them too."""
        known = self.room.get(buffer.name, buffer)
        self.room[buffer.name] = known.replace(shape=tuple(map(max, known.shape, shape)))


def is_move(frame: Frame) -> bool:
    """Whether a frame moves or stores elements, so that its tiles may wrap in any way."""
    return frame.fill is not None or not frame.task.states
