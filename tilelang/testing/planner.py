"""Random schedules for any computation. Most are valid; the rest are refused with a reason.

`draw_schedule` refines the root spec from the kernel down, as a person does: blocks, accumulators, loops, loads, warps, threads,
vectors. It knows the rules (which axes there are, what fills a warp, which loop needs an accumulator) well enough that most results are
accepted. It deliberately does not know all of them: a generator that is never refused would not test the limits of the language.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from tilelang.computations.computation import Computation, Tensor
from tilelang.core.expr import Pad, Read
from tilelang.core.layout import Layout
from tilelang.profiles.files import load_profile
from tilelang.profiles.profile import Profile
from tilelang.schedules.check import main_task
from tilelang.schedules.schedule import Move, Schedule, move, schedule, threads, warps
from tilelang.schedules.spec import Spec
from tilelang.schedules.steps import Split, Tile
from tilelang.schedules.task import reads
from tilelang.testing.choice import Source, subset
from tilelang.testing.moves import draw_layout, draw_move, draw_order

WARP = 8  # threads of a warp in the profile below: a whole one fits into a tiny block
BLOCK_THREADS = 64
BLOCKS = 48
CUTS = (2, 4, 1, 3, 8, 5, 16)


def tiny_profile() -> Profile:
    """The profile `sapphire_rapids` with warps of 8 threads, so that small blocks have several. The warps are only a numbering."""
    found = load_profile("sapphire_rapids")
    levels = tuple(dataclasses.replace(x, threads=WARP) if x.name == "warp" else x for x in found.levels)
    return dataclasses.replace(found, levels=levels)


def draw_schedule(source: Source, computation: Computation, profile: Profile | None = None) -> Schedule:
    """A random schedule for a computation, for blocks of at most 64 threads."""
    return _Planner(source, computation, profile or tiny_profile()).plan()


class _Planner:
    """Adds steps to a schedule, from the widest level to the innermost body."""

    def __init__(self, source: Source, computation: Computation, profile: Profile) -> None:
        self.source, self.computation, self.profile = source, computation, profile
        self.made = schedule(computation)
        self.accumulators: list[str] = []
        self.walked_reduction = False
        self.units = 1  # the product of the parallel tiles below the block
        self.stages: list[str] = []
        self.owner_tiles: dict[str, int] = {}  # the thread tiles of a stage in registers

    # ------------------------------------------------------------ what is left

    @property
    def spec(self) -> Spec:
        return self.made.specs[-1]

    def axes(self, reduction: bool) -> list[str]:
        return [a.name for a in self.spec.axes if a.reduction == reduction]

    def extent(self, axis: str) -> int:
        return self.spec.axis(axis).extent

    def tiles(self, sizes: dict[str, int]) -> int:
        """The number of tiles of these sizes."""
        return math.prod(max(1, -(-self.extent(a) // t)) for a, t in sizes.items())

    def cut(self, axis: str, least_size: int = 1) -> int:
        """A tile size along an axis: a small number, the extent itself, or more."""
        n = self.extent(axis)
        sizes = [c for c in CUTS if least_size <= c < max(2, n)] or [max(1, n)]
        if self.source.chance(18):
            return max(1, n) + self.source.pick((0, 3, 1))
        return self.source.pick(sizes)

    def plain_state(self) -> bool:
        """Whether the output can hold partial sums: it has the accumulator's type, and there is no epilogue."""
        task = main_task(self.computation, self.made.steps)
        if not task.states or sum(len(s.tensors) for s in task.states) != len(task.outputs):
            return False
        types = {t: v.dtype for s in task.states for t, v in zip(s.tensors, s.reduce.combiner.left, strict=True)}
        return all(t in types and types[t] == t.dtype for t in task.outputs)

    @property
    def in_thread(self) -> bool:
        """Whether a single thread executes the rest, so that its moves are not divided."""
        return self.spec.level == "thread"

    @property
    def has_reduction(self) -> bool:
        return bool(self.axes(True))

    # ------------------------------------------------------------ the plan

    def plan(self) -> Schedule:
        self.heads()
        self.relabel()
        inside = self.blocks()
        if inside:
            self.block_level()
            in_warp = self.warps()
            self.threads(in_warp)
        self.thread_level(inside)
        self.leaf()
        return self.with_units()

    def heads(self) -> None:
        """Stages that become separate kernels, or are inlined; the others may be placed below."""
        outputs = self.computation.outputs
        found = [
            (d, t)
            for d in self.computation.definitions
            for t in d.tensors
            if t not in outputs and not t.hidden and t is d.tensors[0]
        ]
        inlined = [t for d, t in found if d.reduction is None and self.source.chance(20)]
        for tensor in inlined:
            self.made = self.made.inline(tensor.name)
        for _, tensor in found:
            if tensor in inlined:
                continue
            if self.source.chance(20):
                self.made = self.made.compute(tensor.name, "global", steps=self.head_steps(tensor))
            else:
                self.stages.append(tensor.name)

    def head_steps(self, tensor: Tensor) -> Move | None:
        if not self.source.chance(50) or not tensor.dims:
            return None
        axis = self.source.pick(tensor.dims)
        steps = move().tile(**{axis.name: self.source.pick(CUTS[:5])}).to("block")
        return steps.vectorize(**{axis.name: 4}) if self.source.chance(40) else steps

    def relabel(self) -> None:
        """Draws fuse and unfuse, before any cut."""
        for reduction in (False, True):
            names = self.axes(reduction)
            if len(names) >= 2 and self.source.chance(15):
                start = self.source.integer(0, len(names) - 2)
                parts = names[start : start + self.source.pick((2, 2, 3))]
                self.made = self.made.fuse(**{"".join(parts): parts})
            elif names and self.source.chance(12):
                axis = self.source.pick(names)
                n = self.extent(axis)
                factors = [f for f in (2, 3, 4, 5, 1) if n and n % f == 0]
                if factors:
                    f = self.source.pick(factors)
                    self.made = self.made.unfuse(**{axis: {f"{axis}1": n // f, f"{axis}2": f}})

    def blocks(self) -> bool:
        """Tiles for blocks; False if the schedule stays above them."""
        spatial = self.axes(False)
        if self.source.chance(8):
            return False
        sizes: dict[str, int] = {}
        left = BLOCKS
        for axis in spatial:
            if self.source.chance(75) or self.extent(axis) > 8:
                size = self.cut(axis)
                while -(-self.extent(axis) // size) > left:
                    size *= 2
                sizes[axis] = size
                left = max(1, left // max(1, -(-self.extent(axis) // size)))
        split = False
        if self.has_reduction and self.source.chance(20):
            axis = self.axes(True)[0]
            size = max(1, self.cut(axis), -(-self.extent(axis) // 4))
            size = self.extent(axis) + 2 if self.source.chance(25) else size
            sizes[axis], split = size, True
        if not sizes:
            if not spatial:
                return False
            sizes = {spatial[0]: max(1, self.extent(spatial[0]))}
        names = list(sizes)
        if self.source.chance(20):
            names.reverse()
        tiles = math.prod(max(1, -(-self.extent(a) // sizes[a])) for a in names)
        count = self.source.pick((2, 3, 5)) if not split and tiles > 1 and self.source.chance(15) else None
        self.made = self.made.tile(**{a: sizes[a] for a in names}).to("block", count=count, order=self.order(names, 12))
        return True

    def order(self, names: list[str], percent: int) -> Layout | None:
        """Perhaps an order of units, if there are axes to number."""
        return draw_order(self.source, names) if len(names) > 1 and self.source.chance(percent) else None

    # ------------------------------------------------------------ inside a block

    def block_level(self) -> None:
        if self.has_reduction:
            if self.source.chance(15) and self.plain_state():  # partial sums of several iterations are combined in the output
                self.walk(True)
            if self.source.chance(22) and not self.split_over_blocks():
                self.accumulate("shared")
            elif self.source.chance(45):
                self.accumulate("register")
        elif self.source.chance(25):
            self.way_back()
        late = self.source.chance(40)  # inside the loop: computed in every iteration, perhaps some iterations ahead
        if not late:
            self.place_stages()
        if self.has_reduction and self.source.chance(60):
            self.walk(True)
        if late:
            if self.stages and self.source.chance(70):  # operands of stages, for several iterations
                self.loads(("shared", "shared", "register"), 60)
                self.walk(self.has_reduction and self.source.chance(40))
            self.place_stages()
        if self.source.chance(15):  # a loop over results: loads below it differ between its iterations, too
            self.walk(False)
        self.loads(("shared", "shared", "shared", "register"), 55)
        if self.source.chance(25):
            self.walk(False)

    def split_over_blocks(self) -> bool:
        reduced = {a.name for a in self.made.specs[0].axes if a.reduction}
        return any(isinstance(s, Tile) and s.level == "block" and reduced & {a for a, _ in s.sizes} for s in self.made.steps)

    def way_back(self) -> None:
        """The store of pointwise results; usually delayed if it is in a loop."""
        if self.source.chance(75):
            self.walk(False)
        self.made = self.made.via(self.source.pick(("register", "register", "shared")), **self.stored())

    def stored(self) -> dict[str, Any]:
        return {"stream": self.source.chance(15), "behind": int(self.source.chance(60))}

    def accumulate(self, memory: str) -> None:
        if memory in self.accumulators or "register" in self.accumulators:
            return
        steps: Move | None = None
        outputs = self.computation.outputs
        dims = [d.name for d in outputs[0].dims if d.name in self.spec.names]
        inside_state = bool(self.accumulators)
        if dims and memory == "register" and not inside_state and self.source.chance(40):
            steps = self.store_move(move().via("shared", layout=draw_layout(self.source, dims)), dims)
        elif dims and memory == "shared" and self.source.chance(50):
            steps = self.store_move(move(), dims)
        how = self.stored() if self.source.chance(12) else {}
        self.made = self.made.accumulate(memory, steps=steps, **how)
        self.accumulators.append(memory)

    def store_move(self, steps: Move, dims: list[str]) -> Move:
        """The store of an accumulator: by threads, in vectors."""
        if self.spec.level != "thread" and self.source.chance(60):
            axis = dims[-1]
            lanes = self.source.pick((2, 4))
            steps = steps.tile(**{d: lanes if d == axis else 1 for d in dims}).to("thread")
            return steps.vectorize(**{axis: lanes}) if self.source.chance(60) else steps
        return steps.vectorize(**{dims[-1]: 4}) if self.source.chance(50) else steps

    def walk(self, reduction: bool) -> None:
        """A split of one or two axes of a kind."""
        names = [a for a in self.axes(reduction) if self.extent(a) > 1]
        if not names:
            return
        if reduction and not self.accumulators and not self.plain_state() and self.source.chance(85):
            self.accumulate("register")
        chosen = subset(self.source, names, 60) or names[:1]
        if self.source.chance(60):
            chosen = chosen[:1]
        unroll, peel = self.source.chance(20), self.source.chance(25)
        sizes = {a: self.cut(a) for a in chosen}
        self.made = self.made._then(Split(tuple(sizes.items()), unroll, peel and not unroll))
        if reduction and not self.accumulators:
            self.walked_reduction = True

    def inputs_read(self) -> dict[Tensor, dict[Read, None]]:
        """The tensors in global memory that the task reads, with their reads, each once."""
        task = main_task(self.computation, self.made.steps)
        found: dict[Tensor, dict[Read, None]] = {}
        for e in task.expressions():
            for whole in reads(e):
                read = whole.read if isinstance(whole, Pad) else whole
                if read.tensor.name not in self.stages and task.state_member(read.tensor) is None:
                    found.setdefault(read.tensor, {})[read] = None
        return found

    def loads(self, memories: tuple[str, ...], percent: int) -> None:
        """Loads of some tensors, or of some of their reads."""
        chosen: list[tuple[Tensor, str | Read]] = []
        for tensor, own in self.inputs_read().items():
            by_name = len(own) > 1 and self.source.chance(70)
            chosen += [(tensor, what) for what in (own if by_name else (tensor.name,))]
        for tensor, what in chosen:
            if not self.source.chance(percent) or not tensor.dims or 0 in tensor.shape:
                continue
            memory = self.source.pick(memories)
            tiles = dict(self.owner_tiles)
            how = self.shared_load(tensor) if memory == "shared" else self.register_load(tensor)
            how["stream"] = self.source.chance(8)
            self.made = self.made.load(what, memory, **how)
            if self.owner_tiles != tiles and self.source.chance(40):
                self.redistribute(tensor, what, tiles)

    def shared_load(self, tensor: Tensor) -> dict[str, Any]:
        """The layout, the prefetch distance and the move of a load in shared memory."""
        dims = [d.name for d in tensor.dims]
        how: dict[str, Any] = {}
        if self.source.chance(50) and not self.by_access(tensor):
            how["layout"] = draw_layout(self.source, dims)
        if self.source.chance(25):
            how["ahead"] = self.source.pick((1, 1, 2))
        if not self.by_access(tensor):
            steps = draw_move(self.source, dims, self.in_thread)
            stops = self.source.chance(10)
            how["steps"] = Move((*move().via("register").steps, *(steps or move()).steps)) if stops else steps
        return how

    def register_load(self, tensor: Tensor) -> dict[str, Any]:
        """The prefetch distance and the move of a load in registers: vectors, owners of elements, or a stop."""
        dims = [d.name for d in tensor.dims]
        how: dict[str, Any] = {"ahead": self.source.pick((1, 1, 2)) if self.source.chance(30) else 0}
        if self.source.chance(50):
            how["steps"] = move().vectorize(**{dims[-1]: self.source.pick((4, 2))})
        elif self.source.chance(40) and not self.by_access(tensor) and not self.in_thread:
            how["steps"] = self.owners(dims)
        elif self.source.chance(20) and not self.by_access(tensor):
            layout = draw_layout(self.source, dims) if self.source.chance(50) else None
            ahead = self.source.pick((0, 0, 1)) if not how["ahead"] else 0
            how["steps"] = move().via("shared", ahead=ahead, layout=layout, steps=draw_move(self.source, dims, self.in_thread))
        return how

    def redistribute(self, tensor: Tensor, what: str | Read, tiles: dict[str, int]) -> None:
        """A second load in registers, for the readers below or for other owners. tiles: without the first one's."""
        self.owner_tiles = tiles
        steps = self.owners([d.name for d in tensor.dims]) if self.source.chance(30) and not self.by_access(tensor) else None
        self.made = self.made.load(what, "register", steps=steps)

    def owners(self, dims: list[str]) -> Move:
        """Parallel tiles that define owners. The threads below then have the same tiles, unless they are of a reduction."""
        axis = self.source.pick(dims)
        size = self.owner_tiles.get(axis, self.source.pick((2, 4, 1, 3)))
        level = "warp" if self.source.chance(25) else "thread"
        if level == "thread" and axis in self.axes(False) and self.spec.level == "block":
            self.owner_tiles[axis] = size
        steps = move().tile(**{axis: size}).to(level)
        return steps.vectorize(**{dims[-1]: self.source.pick((2, 4))}) if self.source.chance(25) else steps

    def by_access(self, tensor: Tensor) -> bool:
        """Whether a load may hold one element per point. Its move then has other dimensions, so the default is used."""
        fused = len(self.spec.coordinates) != len(self.spec.axes) or any(
            n not in self.spec.names for n, _ in self.spec.coordinates
        )
        return fused or any(t.range is not None for t in self.computation.inputs)

    # ------------------------------------------------------------ stages

    def place_stages(self) -> None:
        """compute ... in shared or register, for stages without a place."""
        for name in self.stages:
            definition = self.computation.tensor(name).definition
            assert definition is not None
            if not self.source.chance(65):
                continue
            memory = self.source.pick(("shared", "register"))
            reduced = definition.reduction.axes if definition.reduction is not None else ()
            names = [a.name for a in (*definition.axes, *reduced)]
            ahead = self.source.pick((1, 1, 2)) if self.source.chance(30) else 0
            if self.source.chance(3):  # refused: the tensor has no place yet
                self.made = self.made.load(name, memory)
            tiles = dict(self.owner_tiles)
            self.made = self.made.compute(name, memory, steps=self.stage_steps(names, memory, bool(reduced)), ahead=ahead)
            if memory == "register" and definition.axes and not self.in_thread and self.source.chance(25):
                self.redistribute(self.computation.tensor(name), name, tiles)
            if memory == "shared" and definition.axes and self.source.chance(12):
                self.made = self.made.load(name, self.source.pick(("register", "shared")))

    def stage_steps(self, names: list[str], memory: str, reduces: bool) -> Move | None:
        if not names or self.source.chance(25):
            return None
        steps = move()
        axis = names[-1]
        size = self.owner_tiles.get(axis, self.source.pick((2, 4, 1)))
        if memory == "register" or self.source.chance(50):
            self.owner_tiles[axis] = size
            steps = steps.tile(**{axis: size}).to("thread")
        elif reduces and self.source.chance(50):
            steps = steps._then(Split(((axis, self.source.pick((2, 4))),), self.source.chance(30)))
        return steps.vectorize(**{axis: self.source.pick((4, 2))}) if self.source.chance(40) else steps

    # ------------------------------------------------------------ warps and threads

    def warps(self) -> bool:
        """Tiles for warps; True if the threads must then fill a warp."""
        names = [a for a in self.axes(False) if self.extent(a) > 2]
        if not names or self.owner_tiles or not self.source.chance(30):
            return False
        sizes, left = {}, BLOCK_THREADS // WARP
        for axis in names[:2]:
            size = self.source.pick([c for c in (4, 8, 2, 16) if c < self.extent(axis)] or [self.extent(axis)])
            size = self.extent(axis) + 1 if self.source.chance(25) else size
            while -(-self.extent(axis) // size) > left:
                size *= 2
            sizes[axis] = size
            left //= max(1, -(-self.extent(axis) // size))
        self.units *= WARP * math.prod(-(-self.extent(a) // t) for a, t in sizes.items())
        self.made = self.made.tile(**sizes).to("warp", order=self.order(list(sizes), 15))
        if self.source.chance(40):
            self.walk(True)
        self.loads(("register", "shared"), 20)
        if self.source.chance(30):
            self.walk(False)
        return True

    def threads(self, in_warp: bool) -> None:
        """Tiles for threads: of outputs, of a reduction, or of both."""
        if in_warp:
            self.fill_warp()
            return
        if self.source.chance(15) and not self.owner_tiles:
            self.walk(False)
        if self.owner_tiles:
            sizes = {a: t for a, t in self.owner_tiles.items() if a in self.spec.names}
        elif not self.source.chance(75):
            return
        else:
            reduced = self.source.chance(40) and self.has_reduction
            names = self.axes(True) if reduced else self.axes(False)
            if reduced and self.source.chance(40):
                names = [*self.axes(False)[-1:], *names]
            names = [a for a in names if self.extent(a) > 1]
            sizes = {a: self.cut(a) for a in (subset(self.source, names, 70) or names[:1])}
            if reduced and names and self.source.chance(20):
                sizes[names[-1]] = self.extent(names[-1]) + 1
        if not sizes:
            return
        for axis in sizes:
            while sizes[axis] < self.extent(axis) and self.tiles(sizes) > BLOCK_THREADS:
                sizes[axis] *= 2
        tiles = self.tiles(sizes)
        count = None
        if tiles > 1 and self.source.chance(15):
            rest = math.prod([max(1, -(-self.extent(a) // t)) for a, t in sizes.items()][1:])
            count = rest * self.source.pick((1, 2)) if rest * 2 <= BLOCK_THREADS else rest
        self.units *= count or tiles
        order = None if set(sizes) & set(self.axes(True)) else self.order(list(sizes), 15)
        self.made = self.made.tile(**sizes).to("thread", count=count, order=order)

    def fill_warp(self) -> None:
        """Thread tiles that are exactly as many as a warp has threads, or a multiple."""
        names = [a for a in self.axes(False) if self.extent(a) > 1]
        shapes = [{a: t} for a in names for t in range(1, self.extent(a) + 1) if -(-self.extent(a) // t) == WARP]
        shapes += [
            {a: s, b: t}
            for a in names
            for b in names
            if a < b
            for s in range(1, self.extent(a) + 1)
            for t in range(1, self.extent(b) + 1)
            if -(-self.extent(a) // s) * -(-self.extent(b) // t) == WARP
        ]
        if shapes and self.source.chance(90):
            shape = self.source.pick(shapes)
            self.made = self.made.tile(**shape).to("thread", order=self.order(list(shape), 15))
        elif names or self.axes(True):
            axis = (names or self.axes(True))[0]
            self.made = self.made.tile(**{axis: 1}).to("thread", count=WARP)

    # ------------------------------------------------------------ in a thread, and the leaf

    def thread_level(self, inside: bool) -> None:
        if self.has_reduction and not self.accumulators and self.source.chance(40):
            self.accumulate("register")
        elif self.accumulators == ["shared"] and self.source.chance(60):
            self.accumulate("register")
        if self.has_reduction and self.source.chance(40):
            self.walk(True)
        if inside:
            self.loads(("register",), 25)
        if self.source.chance(30):
            self.walk(False)

    def leaf(self) -> None:
        if not self.source.chance(60):
            return
        names = self.axes(False)[-1:] if self.source.chance(60) else self.axes(True)[-1:]
        if names:
            tails = [n for n in (2, 4) if n < self.extent(names[0]) and self.extent(names[0]) % n]
            lanes = self.source.pick(tails) if tails and self.source.chance(40) else self.source.pick((4, 2, 8))
            self.made = self.made.vectorize(**{names[0]: lanes})

    def with_units(self) -> Schedule:
        """Perhaps an explicit size of the block: exact, larger, or less than a warp or than whole warps."""
        inside = any(isinstance(s, Tile) and s.level == "block" for s in self.made.steps)
        if not inside or not self.source.chance(12) or self.units > BLOCK_THREADS:
            return self.made
        more = self.units * self.source.pick((1, 1, 2))
        if self.source.chance(40):
            more = self.source.pick((1, 3, 4, WARP // 2, WARP + 4, 2 * WARP + 1))
        team = warps(more // WARP) if more % WARP == 0 else threads(more)
        first = schedule(self.computation).units(block=team).steps
        return Schedule(self.computation, (*first, *self.made.steps))
