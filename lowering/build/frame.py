"""What the builder passes from step to step: the spec, where tensors are kept, where accumulators and results go.

A Residence (movement/storage.py) answers "where is element [i, j] of tensor X". A Target receives results. A StatePlace holds the
accumulators of reductions. A Frame describes one point between two steps and is immutable; a Build collects the buffers of one
kernel.
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

# ---------------------------------------------------------------- where results and accumulators go


@dataclasses.dataclass(frozen=True)
class Target:
    """Where the outputs of a task are stored: output k at the residence `places[k]`.

    again: accumulators whose results are combined into what an earlier iteration of an enclosing reduction loop stored. Empty in
    the first iteration, which only stores.
    """

    places: tuple[Residence, ...]
    stream: bool = False
    behind: int = 0
    again: tuple[State, ...] = ()

    @property
    def in_registers(self) -> bool:
        return self.places[0].buffer.memory == "register"

    def stored_as(self, step: Place) -> Target:
        """The same places, with the cache hints of a step."""
        return dataclasses.replace(self, stream=step.stream, behind=step.behind)


@dataclasses.dataclass(frozen=True)
class StatePlace:
    """The accumulators of a task's reductions: buffers[reduction][member].

    In registers they are indexed by the loops since the accumulator began; if `lanes` > 0, a last dimension holds one partial
    value per lane of a vectorized reduction. Elsewhere they are indexed by the coordinates of the task's axes, or by the points
    of `box` if it has any. outer: keys of the bounds of the spec that encloses the accumulator: no tile below has elements beyond
    them.
    """

    buffers: tuple[tuple[ir.Buffer, ...], ...]
    memory: str
    lanes: int = 0
    vector_axis: str | None = None
    box: Box | None = None
    outer: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True)
class Trim:
    """The iterations that remain of a trimmed loop: from `first` up to but not including `end`, the same for all threads.

    bounds: keys of the spec's bounds that remove iterations. conditioned: whether conditions of the reduction remove iterations.
    known: conditions that hold in all remaining iterations. forced: the loop runs at least once even if no iteration is needed,
    so its body must check everything.
    """

    first: Expr
    end: Expr
    bounds: frozenset[str] = frozenset()
    conditioned: bool = False
    known: frozenset[Expr] = frozenset()
    forced: bool = False


@dataclasses.dataclass(frozen=True)
class EnclosingLoop:
    """A loop over an axis, as the frames inside it see it.

    var: the number of the iteration. rounds: the greatest number of iterations. trim: the iterations that remain. trip: the
    iterations before this one; `var` itself if all loops start at 0. makes: the key of the bound that the last tile may exceed.
    residences: how many tensors were resident before the loop. before: statements that steps inside put in front of the loop.
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
        """The first iteration."""
        return index(0) if self.trim is None else self.trim.first

    @property
    def end(self) -> Expr:
        """The iteration after the last."""
        return index(self.rounds) if self.trim is None else self.trim.end

    @property
    def whole(self) -> bool:
        """Whether it always runs all its iterations."""
        return self.first is index(0) and isinstance(self.end, Const) and self.end.value == self.rounds

    def whole_until_the_end_of(self, outer: EnclosingLoop) -> bool:
        """Whether it runs all its iterations in every iteration of an enclosing loop, except perhaps in the last ones."""
        if self.whole or self.trim is None or self.trim.conditioned:
            return self.whole
        least = outer.trim.bounds if outer.trim is not None else frozenset[str]()
        return self.axis == outer.axis and self.trim.bounds <= least | {outer.makes}

    def loop(self, body: ir.Stmt, kind: str, span: Span | None) -> ir.Stmt:
        """The loop statement with its body."""
        if self.trip is self.var:
            return ir.seq(*self.before, ir.For(self.var, self.end, body, kind, span))
        body = ir.Seq((ir.Let(self.var, self.first + self.trip, span), body), span)
        return ir.seq(*self.before, ir.For(self.trip, simplify(self.end - self.first), body, kind, span))


@dataclasses.dataclass(frozen=True)
class Piece:
    """A chunk of results that is stored at a time: `size` elements along an axis, from `base` on."""

    axis: str
    base: Expr
    size: int


@dataclasses.dataclass(frozen=True)
class Parted:
    """The partial results that blocks store for the stages of a shared loop, in addition to the kernel's own partial results.

    first: the blocks' task. places: of each stage, where the partial values of blocks are. whole: the task whose results the combined
    values are, which reads the stages.
    """

    first: Task
    places: Mapping[Tensor, Residence]
    whole: Task


Key = tuple[Any, ...]  # identifies a step of a kernel, see `Frame.key`


@dataclasses.dataclass
class Ring:
    """The multistage buffer of a load or stage. All code versions around the step share it.

    buffers: for each tensor; in registers, one for each iteration ahead. refused: why the device does not copy the load
    asynchronously; empty if it does, None if not yet decided. obstacles: why some innermost statements of the load cannot be
    copies. sizes: of the other copies, in bytes.
    """

    buffers: dict[str, list[ir.Buffer]] = dataclasses.field(default_factory=dict)
    refused: str | None = None
    obstacles: dict[str, None] = dataclasses.field(default_factory=dict)
    sizes: dict[int, None] = dataclasses.field(default_factory=dict)

    @property
    def copied(self) -> bool:
        """Whether the device copies the load asynchronously."""
        return self.refused == ""


@dataclasses.dataclass(frozen=True)
class Move:
    """The load that a frame executes. signal: the barrier and slot that a copy signals on completion; among_blocks: whether
    the blocks of a cluster divide the load among them."""

    load: Ring
    signal: tuple[ir.Buffer, Expr] | None = None
    among_blocks: bool = False


@dataclasses.dataclass(frozen=True)
class Fetch:
    """A prefetch of many cache lines, a few in each iteration of the loops below it.

    within: the step of the innermost of these loops. depth: how many loops enclose the prefetch itself. lines: how many lines
    along each dimension. line: the prefetch of one line, given its numbers. exists: the condition under which there is anything
    to prefetch.
    """

    within: Split
    depth: int
    lines: tuple[int, ...]
    line: Callable[[Sequence[Expr]], ir.Stmt]
    exists: Expr | None


def own_copy(units: int, threads: int) -> tuple[tuple[int, ...], tuple[Expr, ...]]:
    """Leading dimensions and indices that give each unit of `units` threads its own part of a shared buffer.

    Both are empty if the whole block is one unit.
    """
    if units == threads:
        return (), ()
    thread = Var("thread", INDEX, 0, threads - 1)
    return (threads // units,), (simplify(thread // units),)


def nested(variables: Sequence[Expr], body: ir.Stmt, kind: str = "serial", span: Span | None = None) -> ir.Stmt:
    """A statement inside one loop per variable, the first outermost. A constant 0 in place of a variable needs no loop."""
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
    walks: tuple[Expr, ...] = ()  # iterations of the reduction loops since the current accumulator began
    idle: tuple[Expr, ...] = ()  # thread indices along reduced axes: the thread with all 0 stores the result
    fill: Const | None = None
    fill_keys: frozenset[str] = frozenset()
    store_lanes: tuple[str, int] | None = None  # finishing: vectorize this axis
    around: tuple[tuple[Expr, Expr], ...] = ()  # values that the enclosing specs give to axes that this task lacks
    last_walk: tuple[str, int] | None = None  # axis and tile of the innermost loop: the unit of `ahead` for a prefetch
    known: frozenset[Expr] = frozenset()  # conditions of the reduction that hold at all points here
    undecided: bool = False  # in a loop over conditioned points, before its two versions (with the test, without)
    rare: bool = False  # code for a few tiles only, not worth splitting into versions
    within: tuple[Expr, ...] = ()  # bounds that the enclosing loops already keep, dropped from the spec
    origin: Span | None = None  # source position of statements that belong to no written step
    cuts: tuple[Span, ...] = ()  # source positions of the steps that divided the work down to this point
    staged: ir.Buffer | None = None  # a load through registers: the registers that hold the fetched elements
    move: Move | None = None
    of: Key = ()  # the stage whose steps these are; empty: the kernel's own
    matched: Matched | None = None  # the match of the instruction at the end of the steps
    pieces: tuple[Piece, ...] = ()  # finishing: only these chunks of the results
    rounds: tuple[EnclosingLoop, ...] = ()  # all enclosing loops, outermost first, with a block's loop over its tiles
    nest: tuple[EnclosingLoop, ...] = ()  # the enclosing loops that are perfectly nested, outermost first
    shared: Shared | None = None  # the enclosing loop that several reductions share
    repairs: Mapping[int, Repair] = dataclasses.field(default_factory=dict)  # finishing: accumulators to repair, by number
    fetches: tuple[Fetch, ...] = ()  # prefetches that an inner loop executes, a few lines per iteration
    uses: list[Uses] = dataclasses.field(default_factory=list)  # the reads of this spec and these steps, found on demand
    specs: dict[int, Spec] = dataclasses.field(default_factory=dict)  # the first spec before each step, for `explain`

    def replace(self, **changes: Any) -> Frame:
        """The same point with some fields changed: `dataclasses.replace`, but several times faster."""
        assert changes.keys() <= self.__dict__.keys(), changes
        made = object.__new__(Frame)
        made.__dict__.update(self.__dict__, **changes)
        if "steps" in changes:
            made.__dict__.update(uses=[], specs={})
        elif "spec" in changes:
            made.__dict__.update(uses=[])
        return made

    def key(self, k: int) -> Key:
        """Identifies step k among all steps of the kernel: by its stage, the step itself, and how many equal steps follow."""
        return self.of, self.steps[k], self.steps[k + 1 :].count(self.steps[k])

    @property
    def match(self) -> Match:
        """The match of the instruction of the `do` at the end of the steps."""
        assert self.matched is not None, "a `do` is matched when its chain is completed"
        return self.matched.match

    @property
    def is_empty(self) -> bool:
        """Whether an axis without points leaves nothing to compute, store or move. A sum over no points still stores a result."""
        return any(a.extent == 0 and not (self.finishing and a.reduction) for a in self.spec.axes)

    @property
    def unrolled(self) -> frozenset[Expr]:
        """The loop variables that index registers; their loops are unrolled."""
        return frozenset(v for e in self.slots for v in free(e))

    def own_copy(self, threads: int) -> tuple[tuple[int, ...], tuple[Expr, ...]]:
        """(dimensions, indices) that give each unit of this spec's level its own part of a shared buffer; empty if a block is
        the unit."""
        return own_copy(self.spec.units or threads, threads)

    def coordinates(self, points: Mapping[str, Expr]) -> dict[Expr, Expr]:
        """Axis -> its value, for the task's axes; points: the value of each axis of the spec."""
        mapping = {point(name): value for name, value in points.items()}
        named = {n: simplify(substitute(e, mapping)) for n, e in self.spec.coordinates}
        axes: dict[Expr, Expr] = {a: named[a.name] for a in (*self.task.axes, *self.task.reduction_axes)}
        return {**axes, **dict(self.around), **{point(n): v for n, v in points.items()}}


Lower = Callable[["Build", Frame, int], ir.Stmt]


class Build:
    """One kernel under construction: its buffers, its names, and what all its steps share."""

    def __init__(self, lower: Lower, profile: Profile, threads: int, task_of: Callable[[str], Task], tensors: Mapping[str, Tensor],
                 cluster: int = 1, told: dict[str, None] | None = None,
                 loop_of: Callable[[Split], SharedLoop] | None = None,
                 outputs: Mapping[Tensor, Residence] | None = None, parted: Parted | None = None) -> None:  # fmt: skip
        self._lower = lower
        self.profile, self.threads, self.task_of, self.tensors = profile, threads, task_of, tensors
        self.outputs = outputs or {}  # where the computation's outputs are, which stages may store
        self.parted = parted  # if blocks share a loop of several reductions
        self.buffers: dict[str, ir.Buffer] = {}
        self.room: dict[str, ir.Buffer] = {}
        self.runs: list[Run] = []  # checked again when the rows of their buffers are final
        self.counters: dict[str, int] = {}
        self.grid: list[int] = []
        self.cluster = cluster  # blocks per cluster
        self.notes: dict[str, None] = {}
        self.chains: list[Chain] = []
        self.rings: dict[Key, Ring] = {}
        self.arrivals: dict[str, Arrival] = {}  # of multistage buffers, by the buffer's name
        self.roles: Roles | None = None  # None if the kernel has no roles
        self._loop_of = loop_of
        self.running: dict[Key, tuple[Residence, ...]] = {}  # the running values of the stages of each shared loop
        self.stages: dict[Key, Frame] = {}  # those of shared loops, as an iteration makes them
        self.told = told  # texts on why guards are kept or dropped; None: not collected
        self.thread = self.thread_of(threads)

    def chain(self, frame: Frame, i: int) -> ir.Stmt:
        """The statements of steps i, i+1, ... of a frame down to its innermost statement, with all moves and stages between them."""
        return self._lower(self, frame, i)

    @staticmethod
    def thread_of(threads: int) -> Expr:
        """The index of a thread in a block of `threads`."""
        return Var("thread", INDEX, 0, threads - 1) if threads > 1 else index(0)

    def name(self, stem: str) -> str:
        """A name not used before in this kernel; users may have given names that end in a number too."""
        n = self.counters.get(stem, 0)
        found = f"{stem}_{n}" if n else stem
        while n and found in self.counters:
            n += 1
            found = f"{stem}_{n}"
        self.counters[found] = 1
        self.counters[stem] = n + 1
        return found

    def note(self, text: str) -> None:
        """Records a decision that the schedule leaves open, for `explain`."""
        self.notes[text] = None

    def reach(self, frame: Frame, i: int) -> None:
        """Records the spec before step i when it is first lowered, for `explain`."""
        if not frame.specs:
            self.chains.append(Chain(tuple(t.name for t in frame.task.outputs), frame.steps, frame.specs))
        frame.specs.setdefault(i, frame.spec)

    def loop_of(self, step: Split) -> SharedLoop:
        """The reductions that share the loop of a step."""
        assert self._loop_of is not None, "checked when the step was written"
        return self._loop_of(step)

    def ring(self, key: Key) -> Ring:
        """The multistage buffer of the load or stage with a key."""
        return self.rings.setdefault(key, Ring())

    def variable(self, stem: str, count: int) -> Var:
        """A loop variable over 0 .. count-1."""
        return Var(self.name(stem), INDEX, 0, max(0, count - 1))

    def several(self, stem: str, count: int) -> Expr:
        """A loop variable over 0 .. count-1, or the constant 0 if count is 1."""
        return self.variable(stem, count) if count > 1 else index(0)

    def buffer(self, stem: str, type: DType, shape: tuple[int, ...], memory: str, role: str = "", ring: int = 0) -> ir.Buffer:
        """A new buffer; bool is stored as uint8."""
        stored = dt.uint8 if type.kind == "bool" else type
        made = ir.Buffer(self.name(stem), stored, tuple(max(1, n) for n in shape) or (1,), memory, role, ring=ring)
        self.buffers[made.name] = made
        return made

    @contextlib.contextmanager
    def dropped(self) -> Iterator[None]:
        """Discards the buffers and names that are made inside the `with` block: for trial lowering."""
        counters, buffers, room, runs = dict(self.counters), dict(self.buffers), dict(self.room), [*self.runs]
        yield
        self.counters, self.buffers, self.room, self.runs = counters, buffers, room, runs

    def make_room(self, buffer: ir.Buffer, shape: Sequence[int]) -> None:
        """Enlarges a register buffer for loops that run beyond a share's end, where no point exists. Applied when the kernel
        is finished."""
        known = self.room.get(buffer.name, buffer)
        self.room[buffer.name] = known.replace(shape=tuple(map(max, known.shape, shape)))


def is_move(frame: Frame) -> bool:
    """Whether a frame moves or stores elements; its tiles may then wrap around the units in any way."""
    return frame.fill is not None or not frame.task.states
