"""A schedule as a nest of loops: how often each loop runs, and which region of which tensor is staged inside it.

The cost models read these loops, and the search builds them. `loops_of` interprets steps as the checks do, so every schedule, written
by hand or generated, is estimated by the same rules. The loops of a stage (`compute`) are inside its `Placed`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TypeAlias

from tilelang.autoschedule.common.accesses import Access, Operand, Tile
from tilelang.autoschedule.common.task_accesses import Nest, nest_of
from tilelang.computations.computation import Computation, Tensor
from tilelang.core.expr import INDEX, Expr, Read, Var, substitute
from tilelang.core.layout import Layout
from tilelang.core.lazy import Caching, cached_property
from tilelang.core.node import record
from tilelang.core.simplify import interval, simplify
from tilelang.profiles.profile import Profile, l1, l2
from tilelang.schedules.check import advance, axis_extents, resolve_when, tensor_kinds
from tilelang.schedules.schedule import Schedule
from tilelang.schedules.steps import Do, Fuse, Place, Split, Step, Team, Unfuse, Units, Vectorize
from tilelang.schedules.steps import Tile as Spread
from tilelang.schedules.task import Task, placed_names, prefix_of, stored_names, task_of, tasks_of
from tilelang.schedules.walk import Extents, piece_of, refine, walk_steps

SEQUENTIAL = "loop"
NONE = frozenset[str]()
PREFETCHED = frozenset((l1.name, l2.name))  # a load into one of these is a prefetch

# Gives the task that makes the tensor of a `compute` step, and the StageTask for the steps in its braces.
StageTask: TypeAlias = "Callable[[Place], tuple[Task, StageTask]]"


@record
class Loop(Caching):
    """The loops of one `split` or `tile`."""

    rounds: tuple[tuple[str, int], ...]  # the number of iterations along each axis
    level: str = SEQUENTIAL  # the units that the iterations are mapped to, or `SEQUENTIAL` for a loop
    unroll: bool = False
    count: int | None = None  # the number of units, if each takes several iterations (None: one each)
    order: Layout | None = None  # how the units are numbered (None: row-major)
    peel: bool = False  # whether a partial last iteration is peeled
    selected: frozenset[str] = NONE  # the axes along which data chooses the only iteration that runs, as in `ids[i] == v`
    of: tuple[str, ...] = ()  # the reductions that share the loop

    @cached_property
    def total(self) -> int:
        return math.prod(n for _, n in self.rounds)

    @cached_property
    def units(self) -> int:
        """How many units work at the same time; 1 for a sequential loop."""
        return 1 if self.level == SEQUENTIAL else self.total if self.count is None else min(self.total, self.count)

    def __str__(self) -> str:
        count = f" over {self.count}" if self.count is not None else ""
        return f"{self.level} " + " ".join(f"{a}:{n}" for a, n in self.rounds) + count + " unroll" * self.unroll


@record
class Placed(Caching):
    """A region of a tensor (with access None, the accumulators) in a memory, inside the first `depth` loops; tile: the extents there.

    source: the memory that it is copied from, or to which an accumulator's results go. vector: the axis or dimension along which it is
    copied in vectors, and their lanes (None: element by element). stage: for `compute`, the loops that make it. stop_bytes: shared
    memory that results pass through (`via`). cut: the tile sizes as written, which may exceed the rest of the axes. named: whether the
    step names one read of the tensor (`load A[j, k]`), not the tensor (`load A`).
    """

    verb: str
    access: Access | None
    memory: str
    depth: int
    tile: Tile
    source: str
    layout: Layout | None = None
    vector: tuple[str, int] | None = None
    instruction: str | None = None
    ahead: int = 0
    stream: bool = False
    stage: Loops | None = None
    stop_bytes: int = 0
    cut: Tile | None = None
    part: float = 1.0
    named: bool = False

    @property
    def operand(self) -> Operand | None:
        """What it stages: a tensor, or one read of it; None for accumulators."""
        return None if self.access is None else self.access.operand if self.named else self.access.name

    def serves(self, access: Access) -> bool:
        """Whether it stages what an access reads."""
        return self.operand in (access.operand, access.name)

    @property
    def apart(self) -> bool:
        """Whether a kernel of its own makes it, before this one."""
        return self.stage is not None and self.memory == "global" and self.depth == 0

    @property
    def stored(self) -> bool:
        """Whether it is a stage of this kernel that stores an output."""
        return self.stage is not None and self.memory == "global" and self.depth > 0

    @cached_property
    def by_points(self) -> bool:
        """Whether its layout is over axes, so that it has an element for each point of these axes."""
        if self.layout is None or self.access is None:
            return False
        return not self.access.dims.issuperset(self.layout.dims)

    @cached_property
    def turned(self) -> bool:
        """Whether it is copied in vectors although elements that are contiguous in the tensor are not contiguous here."""
        if self.vector is None or self.layout is None or not self.layout.terms:
            return False
        last = self.layout.terms[-1]
        return isinstance(last, Var) and last.name.removeprefix("@") != self.vector[0]

    @cached_property
    def box_bytes(self) -> int:
        """The bytes of one copy of the region, or of an element for each point if its layout is over axes; 0 for accumulators."""
        if self.access is None:
            return 0
        if self.by_points:
            return math.prod(self.tile[a] for a in self.access.axes) * self.access.element_bytes
        return math.prod(self.access.region(self.tile)) * self.access.element_bytes

    @cached_property
    def spans(self) -> tuple[int, ...]:
        """The extents of the region as written, including what is outside the tensor."""
        assert self.access is not None
        return self.access.spans(self.cut or self.tile)

    @cached_property
    def ring_bytes(self) -> int:
        """The bytes of all stages of its multistage buffer, including the padding of rows."""
        held, padding = self.box_bytes, self.layout.padding if self.layout is not None else 0
        if padding and self.access is not None and self.layout is not None:
            last = self.layout.terms[-1] if self.layout.terms else Var(self.access.tensor.dims[-1].name, INDEX)
            box = dict(zip((d.name for d in self.access.tensor.dims), self.access.region(self.tile), strict=True)) | dict(
                self.tile
            )
            named = {Var(n, INDEX): Var(n, INDEX, 0, max(0, extent - 1)) for n, extent in box.items()}
            _, most = interval(simplify(substitute(last, named)))
            held += held // ((most or 0) + 1) * padding
        return held * (self.ahead + 1)

    def __str__(self) -> str:
        what = self.access.name if self.access is not None else "state"
        by = f" by {self.vector[1]}" if self.vector else ""
        return f"{self.verb} {what} in {self.memory} from {self.source}, {self.box_bytes} bytes{by}"


@record
class Loops(Caching):
    """The loops of one task, outermost first, the tensors that are staged inside them, and the innermost body: a vector, an
    instruction, or a point.

    tiles: the extents outside the first loop, then inside each loop. binding: pairs of an axis of the instruction and one of the nest.
    teams: the units of a block, if the schedule declares them. around: for a stage, the regions that its kernel has in
    shared memory, its own results included.
    """

    nest: Nest
    loops: tuple[Loop, ...]
    tiles: tuple[Tile, ...]
    places: tuple[Placed, ...]
    vector: tuple[str, int] | None = None
    instruction: str | None = None
    teams: tuple[Team, ...] = ()
    binding: tuple[tuple[str, str], ...] = ()
    around: tuple[Placed, ...] = ()

    @cached_property
    def _staged(self) -> dict[Operand, Placed]:
        """The regions in shared memory, by operand."""
        inside = (p for p in (*self.around, *self.places) if p.memory == "shared" and p.verb in ("load", "compute"))
        return {p.operand: p for p in inside if p.operand is not None}

    def staged(self, access: Access) -> Placed | None:
        """The region in shared memory that serves an access; None if there is none."""
        found = self._staged.get(access.operand)
        return self._staged.get(access.name) if found is None and access.read is not None else found

    @cached_property
    def body_depth(self) -> int:
        """The number of loops around the innermost body, without the unrolled ones inside it."""
        return next((n for n in range(len(self.loops), 0, -1) if not self.loops[n - 1].unroll), 0)

    @cached_property
    def register_depth(self) -> int | None:
        """The number of loops around the innermost accumulator in registers; None if there is none."""
        depths = [p.depth for p in self.places if p.verb == "accumulate" and p.memory == "register"]
        return max(depths, default=None)

    @cached_property
    def piece_depth(self) -> int:
        """The number of loops around the register tile: around the innermost accumulator or, without a reduction, around the
        innermost body."""
        if not self.nest.reduced:
            return self.body_depth
        return len(self.loops) if self.register_depth is None else self.register_depth

    @property
    def shares(self) -> bool:
        """Whether several reductions share one of the loops."""
        return any(loop.of for loop in self.loops)

    def passes(self, depth: int) -> int:
        """How often the body of the first `depth` loops runs, without iterations outside the tensors or skipped because of data."""
        found = self._passes.get(depth)
        if found is None:
            tile = self.tiles[depth]
            if self.nest.decided:
                for loop, outside in zip(self.loops[:depth], self.tiles, strict=False):
                    tile = {**tile, **{a: outside[a] for a in loop.selected}}
            found = self._passes[depth] = math.prod([-(-n // tile[a]) for a, n in self.nest.extents.items()])
        return found

    @cached_property
    def _passes(self) -> dict[int, int]:
        return {}

    def rounds(self, depth: int | None = None) -> int:
        """How often the body of the first `depth` loops (None: of all) runs on the whole device."""
        return math.prod(loop.total for loop in self.loops[:depth])

    def units(self, level: str) -> int:
        """The number of units of a level that the schedule uses: blocks of a kernel, threads of a block."""
        return math.prod(loop.units for loop in self.loops if loop.level == level)

    def held_bytes(self, memory: str) -> int:
        """The bytes that a block needs in shared memory, or a thread in registers: staged regions and accumulators. Results that pass
        through shared memory reuse the bytes of the operands, unless these are still in use (`operands_stay_live`)."""
        held = 0
        for place in self.places:
            if place.memory == memory and place.verb != "via":
                owners = math.prod(loop.units for loop in self.loops[place.depth :]) if memory == "register" else 1
                held += (place.ring_bytes if place.access is not None else self._state_bytes(place)) // max(1, owners)
        passing = sum(place.stop_bytes for place in self.places) if memory == "shared" else 0
        return held + passing if self.operands_stay_live else max(held, passing)

    @property
    def operands_stay_live(self) -> bool:
        """Whether a block still needs the memory of its operands while it stores results: its teams run independently, or it computes
        several tiles."""
        return bool(self.teams) or any(loop.level == "block" and loop.units < loop.total for loop in self.loops)

    def _state_bytes(self, place: Placed) -> int:
        if place.verb != "accumulate":
            return 0
        results = math.prod(place.tile[a.name] for a in self.nest.spatial)
        return results * self.nest.state_bytes

    def kernels(self) -> Iterator[Loops]:
        """The loops of the kernels that make its stages in global memory, then its own."""
        for p in self.places:
            if p.stage is not None and p.apart:
                yield from p.stage.kernels()
        yield self

    def __str__(self) -> str:
        lines = []
        for depth, tile in enumerate(self.tiles):
            lines += [str(self.loops[depth - 1])] if depth else []
            lines += [f"  {p}" for p in self.places if p.depth == depth]
            lines.append("  " + " ".join(f"{a}:{n}" for a, n in tile.items()))
        return "\n".join(lines + ([f"vector {self.vector[0]}:{self.vector[1]}"] if self.vector else []))


def loops_of(schedule: Schedule, profile: Profile | None = None) -> tuple[Loops, ...]:
    """The loops of each kernel of a schedule in launch order; tasks that no step refines have none.

    >>> import tilelang as tl
    >>> i, j = tl.axes(i=64, j=100)
    >>> Y = tl.define("Y", tl.sum(tl.input("X", tl.float32, i, j)[i, j], over=j), i)
    >>> print(loops_of(tl.schedule(Y).tile(i=8).to(tl.block).split(j=16).vectorize(j=16))[0])
      i:64 j:100
    block i:8
      i:8 j:100
    loop j:7
      i:8 j:16
    vector j:16
    """
    computation = schedule.computation
    steps = resolve_when(schedule.steps, axis_extents(computation), profile)
    tasks = tasks_of(computation, steps)
    caches = _caches(profile)
    prefix = prefix_of(steps)
    own = placed_names(computation, tuple(s.replace(steps=None) for s in prefix))  # made by kernels that have steps
    here = placed_names(computation, tuple(s for s in steps if s not in prefix))
    made = {t for task in tasks[:-1] for t in task.outputs}
    made |= {computation.tensor(name) for s in prefix for name in stored_names(computation, s.steps or ())}
    kernels = {t.name: task for task in tasks[:-1] for t in task.outputs if t.name in own}

    def stages(placed: Collection[str], kept: Collection[Tensor] = made) -> StageTask:
        def stage(step: Place) -> tuple[Task, StageTask]:
            """The task of a placed definition: that of its own kernel, or one with all that its readers' kernel has not made."""
            if step in prefix:
                return kernels[step.tensor_name], stages(placed_names(computation, step.steps or ()))
            return task_of(computation.tensor(step.tensor_name), lambda t: t.name in placed or t in kept), stage

        return stage

    return tuple(
        _Reading(task, computation, stages(here), caches).read(steps if task is tasks[-1] else ())
        for task in tasks
        if task is tasks[-1] or task.name not in own
    )


def kernel_loops(
    computation: Computation, task: Task, stage: Callable[[Place], Task], steps: tuple[Step, ...], profile: Profile
) -> Loops:
    """The loops of the steps of one kernel of a computation. stage: gives the task that makes the tensor of a `compute` step."""

    def inside(step: Place) -> tuple[Task, StageTask]:
        return stage(step), inside

    return _Reading(task, computation, inside, _caches(profile)).read(steps)


def _caches(profile: Profile | None) -> Collection[str]:
    """The memories in which a load is a prefetch."""
    return {m.name for m in profile.memories if m.cache} if profile is not None else PREFETCHED


def read_steps(nest: Nest, steps: tuple[Step, ...]) -> Loops:
    """The loops of steps that only cut and place, for a nest whose axes are fused already."""
    return _Reading(nest.task, None, None, PREFETCHED, nest).read(steps)


class _Reading:
    """Reads the steps of one task in order and collects its loops and places."""

    def __init__(
        self,
        task: Task,
        computation: Computation | None,
        stage: StageTask | None,
        caches: Collection[str],
        nest: Nest | None = None,
    ) -> None:
        self.task, self.computation, self.stage_task, self.caches = task, computation, stage, caches
        self.kinds: Mapping[str, str] = tensor_kinds(computation) if computation is not None else {}
        self.nest = nest if nest is not None else nest_of(task)
        self.spec = self.nest.spec
        self.loops: list[Loop] = []
        self.left = Extents(self.nest.extents, frozenset(a.name for a in self.nest.reduced))
        self.tiles: list[Tile] = [self.left.most]
        self.places: list[Placed] = []
        self.memory_of: dict[tuple[str, tuple[Expr, ...]], str] = {}  # by read; accumulators have no name
        self.vector: tuple[str, int] | None = None
        self.instruction: str | None = None
        self.binding: tuple[tuple[str, str], ...] = ()
        self.teams: tuple[Team, ...] = ()
        self.around: tuple[Placed, ...] = ()
        self.shared: Split | None = None
        self.near: list[Placed] = []  # the results of a shared loop's stages, in the layout that they write
        self.unread: dict[str, int] = {}  # loads whose tensor only stages read: the load's number, by tensor

    def read(self, steps: tuple[Step, ...]) -> Loops:
        for step in steps:
            self.add(step)
        whole = tuple(self.loops), tuple(self.tiles), tuple(self.places)
        return Loops(self.nest, *whole, self.vector, self.instruction, self.teams, self.binding, self.around)

    def add(self, step: Step) -> None:
        match step:  # the most frequent first
            case Split():
                selected = self.selected(step) if self.nest.decided else NONE
                self.loops.append(Loop(self.cut(step), SEQUENTIAL, step.unroll, None, None, step.peel, selected, step.of))
                self.shared = step if step.of else self.shared
            case Place():
                self.place(step)
            case Spread(_, level, count, order):
                self.loops.append(Loop(self.cut(step), level, False, count if isinstance(count, int) else None, order))
            case Vectorize(axis, lanes) if isinstance(lanes, int) and axis in self.left.sizes:
                self.vector = (axis, lanes)
            case Fuse() | Unfuse():
                self.spec = advance(self.spec, step, self.task, self.kinds)
                self.nest = nest_of(self.task, self.spec)
                # Only axes that are not cut can be fused or divided: every tile above has all of them.
                whole = {a.name: a.extent for a in self.nest.axes}
                self.left = refine(self.left, step).in_order(whole)
                self.tiles = [{a: tile.get(a, n) for a, n in whole.items()} for tile in self.tiles]
                self.places = [dataclasses.replace(p, tile=whole | dict(p.tile)) for p in self.places]  # reads use the old axes
                self.loops = [dataclasses.replace(x, rounds=tuple(r for r in x.rounds if r[0] in whole)) for x in self.loops]
            case Do(instruction, binding):
                self.instruction, self.binding = instruction, binding
            case Units("block", teams):
                self.teams = teams
            case _:
                pass  # `inline` cuts nothing, and nothing is known of a hole

    def cut(self, step: Spread | Split) -> tuple[tuple[str, int], ...]:
        """Cuts the tile and returns the iterations. A stage may lack an axis if nothing reads it; lowering then skips or refuses it."""
        most, piece = self.left.most, piece_of(step)
        self.left = self.left.cut(piece)
        self.tiles.append(self.left.most)
        return tuple([(a, -(-most[a] // n)) for a, n in piece.items() if a in most])

    def selected(self, step: Split) -> frozenset[str]:
        """The axes of a sequential loop along which only one iteration runs, because the data that chooses it can be read before the
        loop. Empty if accumulators are in registers, which cannot be indexed by a value."""
        if self.memory_of.get(("", ()), "register") == "register":
            return NONE
        most, decided = self.left.most, self.nest.decided
        return frozenset(a for a, _ in step.sizes if a in decided and all(most[d] == 1 for d in decided[a]))

    def place(self, step: Place) -> None:
        access, vector, instruction, stop_bytes = self.placed_access(step), None, None, 0
        if step.steps:
            vector = next(((s.axis, s.lanes) for s in step.steps if isinstance(s, Vectorize) and isinstance(s.lanes, int)), None)
            instruction = next((s.instruction for s in step.steps if isinstance(s, Do)), None)
            stop_bytes = self.stop_bytes(step.steps) if step.verb == "accumulate" else 0
        key = (access.name, access.written) if access is not None else ("", ())
        source = self.memory_of.get(key, "global") if step.verb != "via" else "global"
        placed = Placed(
            step.verb, access, step.memory, len(self.loops), self.tiles[-1], source, step.layout, vector, instruction,
            step.ahead, step.stream, None, stop_bytes, self.left.sizes, named=isinstance(step.what, Read),
        )  # fmt: skip
        if step.verb == "compute":
            placed = self.made(step, placed)
        elif step.verb == "load" and access is None:
            self.unread[step.tensor_name] = len(self.places)
        self.places.append(placed)
        if step.verb != "via" and step.memory not in self.caches:
            self.memory_of[key] = step.memory

    def stop_bytes(self, inner: tuple[Step, ...]) -> int:
        """The bytes of the results that are in shared memory at a time, if they pass through it."""
        left = Extents({a.name: self.tiles[-1][a.name] for a in self.nest.spatial})
        for w in walk_steps(left, (s for s in inner if not isinstance(s, Spread))):  # all threads of a block together hold it
            if isinstance(w.step, Place) and (w.step.verb, w.step.memory) == ("via", "shared"):
                return math.prod(w.before.most.values()) * self.nest.writes[0].element_bytes
        return 0

    def placed_access(self, step: Place) -> Access | None:
        """The read that a `load` or `compute` stages: the one that it names, or the first of its tensor."""
        if step.verb in ("accumulate", "via"):
            return None
        written, name = step.what.indices if isinstance(step.what, Read) else None, step.tensor_name
        return next((a for a in self.nest.reads if a.name == name and written in (None, a.written)), None)

    def made(self, step: Place, placed: Placed) -> Placed:
        """A place with the loops that compute it. For a reduction that shares a loop, these are the loops of all iterations."""
        assert self.stage_task is not None
        task, inside = self.stage_task(step)
        reading = _Reading(task, self.computation, inside, self.caches)
        part, nest = 1.0, reading.nest
        self.find_read(nest)
        if self.shared is not None:
            if step.tensor_name in self.shared.of:
                ((axis, piece),) = piece_of(self.shared).items()
                part = min(piece, nest.extents[axis]) / max(1, nest.extents[axis])
                reading.add(Split(((axis, piece),)))
            self.near += [dataclasses.replace(placed, access=w) for w in nest.writes]
            loaded = [p for p in self.places if p.verb == "load" and p.memory == "shared" and p.access is not None]
            reading.around = (*loaded, *(p for p in self.near if p.memory == "shared"))
        return dataclasses.replace(placed, stage=reading.read(step.steps or ()), part=part)

    def find_read(self, nest: Nest) -> None:
        """The read that a load stages. If only stages read the tensor, it is the first of their reads."""
        for access in nest.reads:
            number = self.unread.pop(access.name, None)
            if number is not None:
                p = self.places[number]
                self.places[number] = dataclasses.replace(
                    p, access=access, tile={**nest.extents, **p.tile}, cut={**nest.extents, **(p.cut or p.tile)}
                )
