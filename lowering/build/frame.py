"""The state that the builder passes from step to step: the spec, where tensors are kept, where accumulators and results go.

A Residence (movement/storage.py) answers "where is element [i, j] of tensor X"; a Target takes results; a StatePlace holds the
accumulators of reductions. A Frame is the immutable view of one point between two steps; a Build collects the buffers of one kernel.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilelang.computations.computation import Tensor
from tilelang.core import dtype as dt
from tilelang.core.dtype import DType
from tilelang.core.expr import INDEX, Const, Expr, Var, free, index, substitute
from tilelang.core.simplify import simplify
from tilelang.errors import Span
from tilelang.lowering import ir
from tilelang.lowering.build.movement.storage import Box, Residence
from tilelang.profiles.profile import Profile
from tilelang.schedules.explain import Chain
from tilelang.schedules.spec import Spec, point
from tilelang.schedules.steps import Place, Split, Step
from tilelang.schedules.task import State, Task

if TYPE_CHECKING:
    from tilelang.instructions.matching import Match
    from tilelang.lowering.build.instruction.leaf_description import Matched
    from tilelang.lowering.build.instruction.register_runs import Run
    from tilelang.lowering.build.movement.access_regions import Uses
    from tilelang.lowering.build.pipelining.iteration_count import Arrival
    from tilelang.lowering.build.pipelining.warp_specialization import Roles
    from tilelang.lowering.build.reductions.shared_loop import Shared
    from tilelang.semantics.loop_members import SharedLoop
    from tilelang.semantics.repair import Repair

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
    states of a reduction's vector lanes. Elsewhere by the coordinates of the task's axes, or of the points of `box`, where it says.
    outer: keys of the bounds of the spec that the accumulator is in: what lies beyond them belongs to no tile below it.
    """

    buffers: tuple[tuple[ir.Buffer, ...], ...]
    memory: str
    lanes: int = 0
    vector_axis: str | None = None
    box: Box | None = None
    outer: frozenset[str] = frozenset()


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


Key = tuple[Any, ...]  # of a step of a kernel, as `Frame.key` gives it


@dataclasses.dataclass
class Ring:
    """What is known of a load or a stage wherever it is lowered, so that two versions of what is around it share its buffers.

    buffers: of each tensor, in registers one for every round ahead. refused: why the device does not copy the load asynchronously;
    empty if it does, None if that is not decided yet. obstacles: why some of its leaves cannot be copied; sizes: in bytes, of the
    copies of the others.
    """

    buffers: dict[str, list[ir.Buffer]] = dataclasses.field(default_factory=dict)
    refused: str | None = None
    obstacles: dict[str, None] = dataclasses.field(default_factory=dict)
    sizes: dict[int, None] = dataclasses.field(default_factory=dict)

    @property
    def copied(self) -> bool:
        """Whether the device brings it by itself."""
        return self.refused == ""


@dataclasses.dataclass(frozen=True)
class Move:
    """The load whose move a frame is. signal: what a copy that completes by its bytes tells; among_blocks: whether the blocks of a
    cluster divide it among them."""

    load: Ring
    signal: tuple[ir.Buffer, Expr] | None = None
    among_blocks: bool = False


@dataclasses.dataclass(frozen=True)
class Fetch:
    """A prefetch of many lines that the loops below it share. within: the step of the innermost of them; depth: how many loops are
    around the prefetch itself; lines: how many along each dimension; line: one of them by its numbers; exists: whether there are
    any."""

    within: Split
    depth: int
    lines: tuple[int, ...]
    line: Callable[[Sequence[Expr]], ir.Stmt]
    exists: Expr | None


def own_copy(units: int, threads: int) -> tuple[tuple[int, ...], tuple[Expr, ...]]:
    """The leading dimensions and indices by which each unit of `units` threads has its own part of a shared buffer.

    Both are empty where the whole block is the unit.
    """
    if units == threads:
        return (), ()
    thread = Var("thread", INDEX, 0, threads - 1)
    return (threads // units,), (simplify(thread // units),)


def nested(variables: Sequence[Expr], body: ir.Stmt, kind: str = "serial", span: Span | None = None) -> ir.Stmt:
    """A statement in a loop over each variable, the first one outermost; 0 needs none."""
    for v in reversed(variables):
        if isinstance(v, Var):
            assert v.upper is not None, "a loop has an end"
            body = ir.For(v, index(v.upper + 1), body, kind, span)
    return body


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
    move: Move | None = None
    of: Key = ()  # the stage whose steps these are; empty: the kernel's own
    matched: Matched | None = None  # how the instruction at the end of the steps matched
    pieces: tuple[Piece, ...] = ()  # finishing: only these results
    rounds: tuple[Walk, ...] = ()  # all walks around this point, outermost first, that of a block over its tiles included
    nest: tuple[Walk, ...] = ()  # the walks around this point with nothing but steps between them, outermost first
    shared: Shared | None = None  # the loop around that several reductions share
    repairs: Mapping[int, Repair] = dataclasses.field(default_factory=dict)  # finishing: these states, by number, are repaired
    fetches: tuple[Fetch, ...] = ()  # prefetches whose lines an inner loop brings, some in every iteration
    uses: list[Uses] = dataclasses.field(default_factory=list)  # the reads of this spec and these steps, once they were asked for
    specs: dict[int, Spec] = dataclasses.field(default_factory=dict)  # before each of the steps, as it was first, for `explain`

    def but(self, **changes: Any) -> Frame:
        """The same point with some fields changed, as `dataclasses.replace` makes it in several times the time."""
        assert changes.keys() <= self.__dict__.keys(), changes
        made = object.__new__(Frame)
        made.__dict__.update(self.__dict__, **changes)
        if "steps" in changes:
            made.__dict__.update(uses=[], specs={})
        elif "spec" in changes:
            made.__dict__.update(uses=[])
        return made

    def key(self, k: int) -> Key:
        """Step k, told from all others of the kernel: whose steps these are, the step, and how many that are equal follow it."""
        return self.of, self.steps[k], self.steps[k + 1 :].count(self.steps[k])

    @property
    def match(self) -> Match:
        """How the `do` at the end of the steps matched."""
        assert self.matched is not None, "a `do` is matched when its chain is completed"
        return self.matched.match

    @property
    def is_empty(self) -> bool:
        """Whether an axis without points leaves nothing to compute, store or move. A sum over no points still stores a result."""
        return any(a.extent == 0 and not (self.finishing and a.reduction) for a in self.spec.axes)

    @property
    def unrolled(self) -> frozenset[Expr]:
        """The variables that number registers, so that their loops are unrolled."""
        return frozenset(v for e in self.slots for v in free(e))

    def own_copy(self, threads: int) -> tuple[tuple[int, ...], tuple[Expr, ...]]:
        """(dimensions, indices) that give each unit of this spec's level a shared buffer of its own; none where a block is the unit."""
        return own_copy(self.spec.units or threads, threads)

    def coordinates(self, points: Mapping[str, Expr]) -> dict[Expr, Expr]:
        """Axis -> its value, for the task's axes; points: the value of each axis of the spec."""
        mapping = {point(name): value for name, value in points.items()}
        named = {n: simplify(substitute(e, mapping)) for n, e in self.spec.coordinates}
        axes: dict[Expr, Expr] = {a: named[a.name] for a in (*self.task.axes, *self.task.reduction_axes)}
        return {**axes, **dict(self.around), **{point(n): v for n, v in points.items()}}


Lower = Callable[["Build", Frame, int], ir.Stmt]


class Build:
    """One kernel under construction: its buffers and names, and what is known wherever its steps are lowered."""

    def __init__(self, lower: Lower, profile: Profile, threads: int, task_of: Callable[[str], Task], tensors: Mapping[str, Tensor],
                 cluster: int = 1, told: dict[str, None] | None = None,
                 loop_of: Callable[[Split], SharedLoop] | None = None,
                 outputs: Mapping[Tensor, Residence] | None = None) -> None:  # fmt: skip
        self._lower = lower
        self.profile, self.threads, self.task_of, self.tensors = profile, threads, task_of, tensors
        self.outputs = outputs or {}  # where the computation's outputs are, which stages may store
        self.buffers: dict[str, ir.Buffer] = {}
        self.room: dict[str, ir.Buffer] = {}
        self.runs: list[Run] = []  # to be checked again where there is room beyond their rows
        self.counters: dict[str, int] = {}
        self.grid: list[int] = []
        self.cluster = cluster  # how many blocks make one
        self.notes: dict[str, None] = {}
        self.chains: list[Chain] = []
        self.rings: dict[Key, Ring] = {}
        self.arrivals: dict[str, Arrival] = {}  # of rings, by buffer
        self.roles: Roles | None = None  # while they are built
        self._loop_of = loop_of
        self.running: dict[Key, tuple[Residence, ...]] = {}  # of shared loops: where the values so far of their stages are
        self.told = told  # why guards stand or not, each text once; None: nobody asks
        self.thread = self.thread_of(threads)

    def chain(self, frame: Frame, i: int) -> ir.Stmt:
        """The statements of steps i, i+1, ... of a frame and of its leaf: what a step stands around, and moves and stages."""
        return self._lower(self, frame, i)

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
        if not frame.specs:
            self.chains.append(Chain(tuple(t.name for t in frame.task.outputs), frame.steps, frame.specs))
        frame.specs.setdefault(i, frame.spec)

    def loop_of(self, step: Split) -> SharedLoop:
        """The reductions of a shared loop."""
        assert self._loop_of is not None, "checked when the step was written"
        return self._loop_of(step)

    def ring(self, key: Key) -> Ring:
        """What is known of the load or stage of a key."""
        return self.rings.setdefault(key, Ring())

    def variable(self, stem: str, count: int) -> Var:
        """A loop variable over 0 .. count-1."""
        return Var(self.name(stem), INDEX, 0, max(0, count - 1))

    def several(self, stem: str, count: int) -> Expr:
        """A loop variable over 0 .. count-1, or 0 where there is nothing else."""
        return self.variable(stem, count) if count > 1 else index(0)

    def buffer(self, stem: str, type: DType, shape: tuple[int, ...], memory: str, role: str = "", ring: int = 0) -> ir.Buffer:
        """A new buffer; bool is stored as uint8."""
        stored = dt.uint8 if type.kind == "bool" else type
        made = ir.Buffer(self.name(stem), stored, tuple(max(1, n) for n in shape) or (1,), memory, role, ring=ring)
        self.buffers[made.name] = made
        return made

    @contextlib.contextmanager
    def dropped(self) -> Iterator[None]:
        """What is made inside is not kept: only how it would be counts."""
        counters, buffers, room, runs = dict(self.counters), dict(self.buffers), dict(self.room), [*self.runs]
        yield
        self.counters, self.buffers, self.room, self.runs = counters, buffers, room, runs

    def make_room(self, buffer: ir.Buffer, shape: Sequence[int]) -> None:
        """Registers that walks reach beyond a share's end, where no point exists: the finished kernel's buffer holds them too."""
        known = self.room.get(buffer.name, buffer)
        self.room[buffer.name] = known.replace(shape=tuple(map(max, known.shape, shape)))


def is_move(frame: Frame) -> bool:
    """Whether a frame moves or stores elements, so that its tiles may wrap in any way."""
    return frame.fill is not None or not frame.task.states
