"""A second, naive interpretation of a schedule: which threads make, move, read and store which element.

It knows steps, expressions and computations, but neither specs nor tasks nor the lowering. Every spec lists its points (see points.py);
every `load` and `compute` lists the region that the points below it read (see reach.py), and divides it by its own steps. The results
are claims: these threads may write, or read, these elements, there. Where the language does not specify which thread of a unit does
something, any of them may. What it cannot interpret, it reports (`NotRead`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tilelang.computations.computation import Computation, Tensor
from tilelang.core.expr import Axis, Binary, Expr, Read
from tilelang.schedules.steps import Fuse, Place, Split, Step, Tile, Vectorize
from tilelang.testing.kernels import (
    Claim,
    Indices,
    Kernel,
    Places,
    World,
    definition_of,
    made,
    over_blocks,
    reads_of,
    resolved,
    stages,
    states_of,
    together,
    together_with,
    unlike,
)
from tilelang.testing.points import Pieces, Table, block_of
from tilelang.testing.reach import NotRead, Points, Reach, among, distinct, filled, flat, ranked, reduces, regions

Array = Any
LINE_BYTES = 64  # of the caches of CPUs


def read(
    computation: Computation, steps: Sequence[Step], levels: Mapping[str, int], values: Mapping[Tensor, Array]
) -> list[Kernel]:
    """The kernels that a schedule gives steps for. Raises NotRead. values: of every tensor, for indices and conditions."""
    steps = resolved(computation, steps)
    blocks = next((k for k, s in enumerate(steps) if isinstance(s, Tile) and s.level in ("cluster", "block")), len(steps))
    repacked = tuple(s for s in steps[:blocks] if isinstance(s, Place) and (s.verb, s.memory) == ("load", "global"))
    own = {s.tensor_name: s.steps for s in steps[:blocks] if isinstance(s, Place) and (s.verb, s.memory) == ("compute", "global")}
    inside = next((s for s in steps[blocks:] if isinstance(s, Place) and s.memory == "global"), None)
    if inside is not None:
        raise NotRead(f"{inside.verb} in global below blocks")
    here = {t.name for name in stages(steps) for t in together_with(computation.tensor(name))}
    all_main = together(computation)
    early = set(made(computation, {*own, *(t.name for t in computation.outputs if t not in all_main)}))
    main = tuple(t for t in all_main if t.name not in early) or all_main[:1]
    reduced = [definition_of(t) for t in main if definition_of(t).reduction is not None]
    at: Places = {("", d.tensors[0].name): d.axes for d in reduced}
    for t in main:  # each may be written into the others
        early |= made(computation, {t.name}, here | early, at) - {m.name for m in together_with(t)} - here
    while True:
        main = tuple(t for t in all_main if t.name not in early) or all_main[:1]
        other = unlike(main, here | early)
        if other is None:
            break
        early |= made(computation, {other.name})
    roots = (main, *((computation.tensor(name),) for name in (*here, *own)))
    states = {t.name for root in roots for t in states_of(root, here | early)}
    left = {t.name for d in computation.definitions if d.reduction is not None for t in d.tensors} - here - states
    apart = over_blocks(states_of(main, here | early), steps)  # parts meet in a kernel without stages
    places: Places = {}
    for name, staged in (*((t.name, False) for t in main), *((name, True) for name in here)):
        group = {t.name for t in together_with(computation.tensor(name))}
        kept = () if apart and not staged else here | early
        left |= made(computation, group, kept, None if staged else places) - group - here
    if apart:  # a stage that would be one more of the states is whole: blocks make parts of theirs
        left |= {t.name for t in states_of(main, early)} - {t.name for t in states_of(main, here | early)}
    world = World(computation, values, levels, made(computation, early | left))
    main = tuple(t for t in main if t.name not in world.made) or all_main[:1]
    before, done = [], set[str]()
    for name in (t.name for d in computation.definitions for t in d.tensors if t.name in own):  # in the order of their kernels
        done |= {t.name for t in together_with(computation.tensor(name))}
        needed, inner = set(made(computation, done)), own[name] or ()
        for stage in stages(inner):
            group = {t.name for t in together_with(computation.tensor(stage))}
            needed |= made(computation, group, here | needed) - group - here
        if inner:
            at_that_time = dataclasses.replace(world, made=frozenset(needed))
            before.append(_kernel(at_that_time, together_with(computation.tensor(name)), (*repacked, *inner)))
    return [*before, _kernel(world, main, steps)]


def chains(computation: Computation, steps: Sequence[Step], levels: Mapping[str, int]) -> list[tuple[Table, tuple[Step, ...]]]:
    """The points of each kernel that steps are given for, before any is taken, and these steps. The last one has the outputs."""
    main = together(computation)
    own = [s for s in steps if isinstance(s, Place) and (s.verb, s.memory) == ("compute", "global") and s.steps]
    every = [(together_with(computation.tensor(s.tensor_name)), s.steps or ()) for s in own]
    return [(points(tensors, inner, levels, frozenset())[0], tuple(inner)) for tensors, inner in (*every, (main, tuple(steps)))]


def points(
    tensors: tuple[Tensor, ...], steps: Sequence[Step], levels: Mapping[str, int], made: Collection[str]
) -> tuple[Table, tuple[Tensor, ...], Sequence[Axis]]:
    """The points of a kernel before any step is taken, its reductions, and the axes of these. made: what other kernels make."""
    definition = definition_of(tensors[0])
    states = states_of(tensors, set(stages(steps)) | (set(made) - {t.name for t in tensors}))
    reduction = definition_of(states[0]).reduction if states else None
    over = () if reduction is None else reduction.axes
    extents = {a.name: a.extent for a in (*definition.axes, *over)}
    block = block_of(steps, extents, levels)
    zero = np.zeros(1, np.int64)
    whole = Pieces(dict.fromkeys(extents, zero), zero, zero + block.first, block.threads)
    return Table(extents, whole, steps, block, over), states, over


def _kernel(world: World, tensors: tuple[Tensor, ...], steps: Sequence[Step]) -> Kernel:
    table, states, over = points(tensors, steps, world.levels, world.made)
    kernel = Kernel(tensors, given=world.made - {t.name for t in tensors})
    spec = Spec(world, kernel, tensors, over, table, steps, {})
    spec.store(spec.run(), states)
    return kernel


# The regions of a tensor that a step places: the elements of each tensor that the readers reach; where each region begins; its shape;
# whether it is known exactly; its owners (first unit, last unit, threads of each); and the number of the piece it is for.
Region = tuple[dict[Tensor, Array], Array, tuple[int, ...], bool, tuple[Array, Array, int], Array]


class Spec:
    """A spec: the points of a definition in some regions, its steps, and where its readers find each tensor (`homes`)."""

    def __init__(
        self, world: World, kernel: Kernel, tensors: tuple[Tensor, ...], over: Sequence[Axis], table: Table, steps: Sequence[Step],
        homes: Mapping[str, tuple[str, ...]],
    ) -> None:  # fmt: skip
        self.world, self.kernel, self.tensors, self.table, self.steps = world, kernel, tensors, table, steps
        self.over = tuple(a.name for a in over)
        self.homes = dict(homes)
        self.stored: tuple[Table, Array, Array, int] | None = None
        self.homes_of_store = self.homes
        self.between = False  # whether any thread finishes results on their way from one place in shared memory to another
        self.silent: list[tuple[Tensor, Array, tuple[str, ...]]] = []
        self.needed: Array = np.ones(table.exists.size, bool)  # the points of a stage that its readers must read
        self.part: Array = np.int64(0)
        self.parts = False

    def run(self) -> Table:
        """Takes all steps, then says what the points read."""
        for k, step in enumerate(self.steps):
            match step:
                case Place(memory="l1" | "l2") | Place(verb="compute", memory="global"):
                    pass
                case Place(verb="load", memory="global"):
                    self.homes[step.tensor_name] = ("unread",)
                    self.kernel.unread.append("loads in global memory")
                    self.kernel.reads.setdefault(("unread", step.tensor_name), [])
                case Place(verb="load"):
                    self._load(k, step)
                case Place(verb="compute"):
                    self._compute(k, step)
                case Place():
                    self._stops(step)
                case Tile(level="block", sizes=sizes) if table_reduces(self.table, sizes):
                    self.kernel.parts = self.parts = True
                    for axis in (a for a, _ in sizes if a in self.table.reduced):
                        digit, n = self.table.digits[axis][0]
                        self.part = self.part * max(1, n) + digit
                    self.table.take(step)
                case _:
                    self.table.take(step)
        unit, parts = self._units()
        self._silently(unit, parts)
        for tensor, rows in self._reach(unit, self._placed(len(self.steps)), ()).items():
            self._find(tensor, rows, parts)
        # What the store reads, and where to fetch, is not sure to be read here.
        for tensor, rows in self._reach(unit, self._placed(len(self.steps)), (), must=True).items():
            if self.homes.get(tensor.name) == ("shared",) and tensor.range is None and not self._is_epilogue(tensor):
                self._claim(self.kernel.needs, tensor, rows, parts)
        return self.table

    def _is_epilogue(self, tensor: Tensor) -> bool:
        """Whether a value that is computed from a reduction reads a tensor beside it, itself or through what is written into it."""
        placed, seen = self._placed(len(self.steps)), set[Tensor]()
        waiting = [t for t in self.tensors if self.over and definition_of(t).reduction is None]
        while waiting:
            t = waiting.pop()
            found = {e.tensor for e in definition_of(t).values[t.member].walk() if isinstance(e, Read)} - seen
            seen |= found
            inner = (t for t in found if t.definition is not None and t.name not in placed)
            waiting += [t for t in inner if definition_of(t).reduction is None]
        return tensor in seen

    def needs(self) -> None:
        """What every block must read from other kernels and inputs."""
        for tensor, rows in self._reach(self.table.block, self._made(), (), must=True).items():
            block, element = flat(rows, tensor.shape)
            self.kernel.needs.setdefault(("global", tensor.name), []).append(Claim(element, block, block * 0, 1 << 16))

    # ------------------------------------------------------------ reading

    def _made(self) -> set[str]:
        """What other kernels made."""
        return set(self.world.made) - {t.name for t in self.tensors}

    def _placed(self, end: int) -> set[str]:
        """What is in memory for the steps from `end` on."""
        return (
            self._made()
            | _computed(self.world, self.steps[:end])
            | {n for n in self.homes if n not in {t.name for t in self.world.computation.inputs}}
        )

    def _units(self) -> tuple[Array, tuple[Array, Array, int]]:
        """A number for the unit that has each point, and block, first thread and width by that number."""
        t = self.table
        first, unit = ranked(t.block, t.first)
        return unit, (t.block[first], t.first[first], t.width)

    def _values(self) -> Iterator[Expr]:
        for t in self.tensors:
            v = definition_of(t).values[t.member]
            if not self.parts or definition_of(t).reduction is not None:
                yield v
                continue
            yield from self._reduced(t, definition_of(t).axes)

    def _reduced(self, tensor: Tensor, at: Indices) -> Iterator[Read]:
        """The reads of the kernel's reductions in a value, and in what is written into it."""
        for e, to in dict.fromkeys(reads_of(tensor, at)):
            if to is not None and reduces(e.tensor, to, self.over):
                yield Read(e.tensor, to)
            elif to is not None and definition_of(e.tensor).reduction is None and e.tensor.name not in self._made():
                yield from self._reduced(e.tensor, to)

    def _reach(
        self, unit: Array, stops: Any, later: Any, must: bool = False, within: Any = slice(None), only: Read | None = None
    ) -> dict[Tensor, Array]:  # fmt: skip
        """What the points read, by tensor: (unit, coordinates...). Where they only may, points that do not exist read too."""
        t = self.table

        def reached(points: Points) -> dict[Tensor, Array]:
            return Reach(self.world.values, stops, later, self.over, must, only).run(self._values(), points)

        if must:  # a region may reach beyond the end of what a stage makes
            ends = {a.name: a.extent for a in definition_of(self.tensors[0]).axes}
            chosen = np.logical_and.reduce([t.exists, self.needed, *((t.at[a] >= 0) & (t.at[a] < n) for a, n in ends.items())])
            return reached(Points(t.at, unit).where(chosen))
        found = reached(Points(t.at, unit).where(within))
        for points in (Points(t.again(), unit).where(~t.exists), self._onward(unit)) if t.vectors else ():
            for tensor, rows in reached(points).items():
                found[tensor] = distinct(np.concatenate([found[tensor], rows], axis=1)) if tensor in found else rows
        return found

    def _onward(self, unit: Array) -> Points:
        """The elements up to a cache line behind each point, which one thread may store: its vectors begin at cache lines."""
        t, (tensor, *others), axes = self.table, self.tensors, definition_of(self.tensors[0]).axes
        if len(axes) != 1 or t.block_of.threads > 1 or self.over or self.homes or others:
            return Points(t.at, unit).where(t.exists & False)
        behind = np.arange(1, LINE_BYTES // tensor.dtype.bytes)
        element = t.at[axes[0].name][:, None] + behind
        every = Points({axes[0].name: element.reshape(-1)}, np.repeat(unit, behind.size))
        return every.where(np.repeat(t.exists, behind.size))

    def _claim(self, claims: dict[tuple[str, str], list[Claim]], tensor: Tensor, rows: Array, units: tuple[Array, Array, int],
               homes: tuple[str, ...] = ()) -> None:  # fmt: skip
        """Adds (unit, coordinates...) of a tensor to claims. units: block, first thread and width of each."""
        unit, element = flat(rows, tensor.shape)
        for home in homes or self.homes.get(tensor.name, ("global",)):
            claims.setdefault((home, tensor.name), []).append(Claim(element, units[0][unit], units[1][unit], units[2]))

    def _find(self, tensor: Tensor, rows: Array, parts: tuple[Array, Array, int], homes: tuple[str, ...] = ()) -> None:
        """What units read."""
        self._claim(self.kernel.reads, tensor, rows, parts, homes)
        self._idle(self.kernel.reads, tensor, homes)

    def _idle(self, claims: dict[tuple[str, str], list[Claim]], tensor: Tensor, homes: tuple[str, ...] = ()) -> None:
        """Threads that a spread leaves without a unit may touch anything there: nothing comes of it."""
        size = math.prod(tensor.shape)
        for first, width in self.table.spare:
            blocks, firsts = np.unique(np.stack([self.table.block, first]), axis=1)
            every = Claim(np.tile(np.arange(size), blocks.size), np.repeat(blocks, size), np.repeat(firsts, size), width)
            for home in homes or self.homes.get(tensor.name, ("global",)):
                claims.setdefault((home, tensor.name), []).append(every)

    # ------------------------------------------------------------ places

    def _region(self, k: int, step: Place, tensor: Tensor) -> Region | None:
        """The regions of a tensor that is placed by step k, one for each piece that the spec has there."""
        t = self.table
        stops, later = self._followed(k, tensor)
        _, piece = ranked(t.number)
        only = step.what if isinstance(step.what, Read) else None
        inside = t.within()
        found = self._reach(piece, stops, later, within=inside, only=only)
        members = (tensor,) if step.verb == "load" else together_with(tensor)
        rows = [found[t] for t in members if t in found]
        if not rows:
            return None
        which, low, high = regions(distinct(np.concatenate(rows, axis=1)))
        blocks, firsts, width = self._anyone(step)
        shape = (high - low).max(axis=1, initial=0) + 1
        longer = self._quotients(tensor, "//")
        wraps = self._through(tensor, stops, lambda t: self._quotients(t, "%") | self._quotients(t, "//") & (t is not tensor))
        apart = self._through(
            tensor,
            stops,
            lambda t: self._apart(
                self._reads(t) if only is None or t is not tensor else [],
                t,
                lambda e: self._reach(piece, {*stops, t.name}, later, within=inside, only=e),
            ),
        )
        shape = shape + 2 * longer
        low = low - longer[:, None]  # how many quotients a piece has differs, and an index may go down
        # Reads at remainders, at others' quotients, or that move apart may begin anywhere, and be as long as the tensor.
        every = low.max(axis=1, initial=0) + tensor.shape
        shape, low = np.where(wraps | apart, every, shape), np.where((wraps | apart)[:, None], 0, low)
        sure = not (longer | wraps | apart).any()
        return found, low, tuple(int(n) for n in shape), sure, (blocks[which], firsts[which], width), which

    def _followed(self, k: int, tensor: Tensor) -> tuple[set[str], set[str]]:
        """What is not followed from the readers of what step k places, and what is computed later, as whole regions."""
        later = _computed(self.world, self.steps[k + 1 :]) - {tensor.name}
        return self._placed(k + 1) - later, later

    def _load(self, k: int, step: Place) -> None:
        tensor = self.world.computation.tensor(step.tensor_name)
        region = self._region(k, step, tensor)
        if region is None:
            return
        found, low, shape, sure, (block, first, width), _ = region
        for t in (t for t in found if t.range is not None and t is not tensor):  # where to fetch, if element by element
            self._claim(self.kernel.reads, t, found[t], self._anyone(step))
        if beside := (*self._beside(step), *(("global",) if step.on else ())):  # a role reads nothing that it loaded itself
            self.homes[tensor.name] = tuple(dict.fromkeys((*self.homes.get(tensor.name, ("global",)), *beside)))
        moves = [s for s in step.steps or () if not (isinstance(s, Place) and s.memory == "register")]  # the same threads do it
        stop = next((s for s in moves if isinstance(s, Place)), None)
        before, after = _around(moves)
        before = before or (stop.steps if stop is not None else None) or ()
        if stop is not None and (stop.memory != "shared" or any(isinstance(s, Place) for s in after)):
            raise NotRead(f"{step}")
        # Else nobody says what a thread's share is.
        several = self._through(tensor, self._followed(k, tensor)[0], lambda t: self._fetched(t) | (self._ways(t) > 1))
        alike = sure and not self.table.wraps and not several.any()
        if alike and stop is None and step.memory == "register" and not any(isinstance(s, Tile) for s in before):
            if not any(isinstance(s, Place) and s.verb == "compute" for s in self.steps[k + 1 :]):
                self.silent.append((tensor, self.table.number, self.homes.get(tensor.name, ("global",))))
                self._settle(tensor, step)
                return
        axes = {d.name: n for d, n in zip(tensor.dims, shape, strict=True)}
        pieces = Pieces({d.name: c for d, c in zip(tensor.dims, low, strict=True)}, block, first, width)
        for steps, memory in ((before, step.memory if stop is None else "shared"), (after, step.memory)):
            stopped = memory == "shared" and len(moves) < len(step.steps or ())
            self._move(tensor, axes, pieces, steps if sure else (), memory, stopped)
            self._settle(tensor, step, memory)
            if stop is None:
                break

    def _move(
        self, tensor: Tensor, axes: dict[str, int], pieces: Pieces, steps: Sequence[Step], memory: str, stopped: bool
    ) -> None:
        """Who moves a region. Where steps are of other axes (by access), or of other blocks of a cluster, any thread that is there.

        stopped: whether the move stops in registers; then all of a piece is read, also where the last piece is smaller.
        """
        own = _divided(steps, axes)
        table = Table(axes, pieces, own, dataclasses.replace(self.table.block_of, main=""))
        for s in own:
            table.take(s)
        if self.table.in_cluster is not None and not self.table.in_block:
            self.kernel.unread.append("loads above the blocks of a cluster")
            self.kernel.reads.setdefault(("unread", tensor.name), [])
            return
        every = np.arange(table.exists.size)
        for at, chosen in ((table.at, table.exists), (table.again(), ~table.exists))[: 1 + bool(table.vectors)]:
            rows = np.stack([every, *(at[d.name] for d in tensor.dims)])
            self._claim(self.kernel.reads, tensor, rows[:, chosen | stopped], (table.block, table.first, table.width))
            rows = rows[:, chosen]
            if memory == "shared":
                self._claim(self.kernel.writes, tensor, rows, (table.block, table.first, table.width), ("shared",))
        self._idle(self.kernel.reads, tensor)
        if memory == "shared":
            self._idle(self.kernel.writes, tensor, ("shared",))

    def _apart(self, reads: Sequence[Read], tensor: Tensor, reached: Callable[[Read], dict[Tensor, Array]]) -> Array:
        """The dimensions along which two reads of a tensor lie at another distance in some pieces, as in A[n] + A[2 * m] where pieces
        are of n: one region for all pieces then reaches beyond what each reads. The end of the tensor may cut one end of a read."""
        found = np.zeros(len(tensor.dims), bool)
        different = {e.indices: e for e in reads}.values()
        every = [reached(e).get(tensor) for e in different] if len(different) > 1 else []
        pieces = [regions(distinct(rows)) for rows in every if rows is not None]
        for which, low, high in pieces[1:]:
            _, a, b = np.intersect1d(which, pieces[0][0], return_indices=True)
            begins, ends = low[:, a] - pieces[0][1][:, b], high[:, a] - pieces[0][2][:, b]
            for d, (begin, end) in enumerate(zip(begins, ends, strict=True)):
                found[d] |= not any(((begin == n) | (end == n)).all() for n in (*begin[:1], *end[:1])) and begin.size > 0
        return found

    def _quotients(self, tensor: Tensor, op: str) -> Array:
        """The dimensions of a tensor that are read at quotients, or at remainders: how many, or which of them, one piece reads differs.

        The axes of a fused one are such: the first a quotient, the others remainders.
        """
        found: Array = np.zeros(len(tensor.shape), bool)
        fused = {a: "//" if k == 0 else "%" for s, _ in self.table.relabels if isinstance(s, Fuse) for k, a in enumerate(s.axes)}
        for e in self._reads(tensor):
            for k, i in enumerate(e.indices):
                nodes = list(i.walk())
                found[k] |= any(isinstance(n, Binary) and n.op == op for n in nodes)
                found[k] |= any(isinstance(n, Axis) and fused.get(n.name) == op for n in nodes)
        return found

    def _fetched(self, tensor: Tensor) -> Array:
        """The dimensions of a tensor that are read at what another tensor says."""
        found: Array = np.zeros(len(tensor.shape), bool)
        for e in self._reads(tensor):
            found |= np.array([any(isinstance(n, Read) for n in i.walk()) for i in e.indices], bool)
        return found

    def _ways(self, tensor: Tensor) -> int:
        """How many reads of a tensor differ."""
        return len({e.indices for e in self._reads(tensor)})

    def _through(self, tensor: Tensor, stops: Collection[str], own: Callable[[Tensor], Array]) -> Array:
        """The dimensions of a tensor with a property, or whose indices have it in a definition that is written into its readers: there
        an axis has the property of the dimension that it is."""
        found: dict[Tensor, Array] = {}
        inlined = [
            t for d in self.world.computation.definitions for t in d.tensors if t.name not in stops and self._written_in(t)
        ]
        leading = {tensor}  # what is written in, and reads the tensor at last
        for t in inlined:
            if any(e.tensor in leading for e in definition_of(t).values[t.member].walk() if isinstance(e, Read)):
                leading.add(t)
        for t in (*(t for t in reversed(inlined) if t in leading and t is not tensor), tensor):  # readers first
            found[t] = own(t)
            for reader in [r for r in found if r is not t and found[r].any()]:
                axes = {a for a, has in zip(definition_of(reader).axes, found[reader], strict=True) if has}
                for e in definition_of(reader).values[reader.member].walk():
                    if isinstance(e, Read) and e.tensor is t:
                        found[t] |= np.array([any(n in axes for n in i.walk() if isinstance(n, Axis)) for i in e.indices], bool)
        return found[tensor]

    def _written_in(self, tensor: Tensor) -> bool:
        """Whether a definition may be written into its readers: it is not of this kernel, or others of this kernel read it."""
        others = [t for t in self.tensors if t is not tensor]
        values = [definition_of(t).values[t.member] for t in others]
        return len(others) == len(self.tensors) or any(
            isinstance(e, Read) and e.tensor is tensor for v in values for e in v.walk()
        )

    def _reads(self, tensor: Tensor) -> list[Read]:
        definitions = self.world.computation.definitions
        return [e for d in definitions for v in d.values for e in v.walk() if isinstance(e, Read) and e.tensor is tensor]

    def _anyone(self, step: Place) -> tuple[Array, Array, int]:
        """Block, first thread and width of those who take a step, by the pieces that the spec has there."""
        t = self.table
        first, _ = ranked(t.number)
        if step.on in t.block_of.roles:
            begin, width = t.block_of.roles[str(step.on)]
            return t.block[first], t.first[first] * 0 + begin, width
        return t.block[first], t.first[first], t.width

    def _settle(self, tensor: Tensor, step: Place, memory: str = "") -> None:
        """Where a tensor is found from here on; what names one read of it leaves the others where they were, and values that are
        computed from a finished sum are computed outside of its walks."""
        some = isinstance(step.what, Read) or self._beside(step) or self._is_epilogue(tensor)
        other = self.homes.get(tensor.name, ("global",)) if some else ()
        self.homes[tensor.name] = tuple(dict.fromkeys((*other, memory or step.memory)))

    def _beside(self, step: Place) -> tuple[str, ...]:
        """Where else a tensor is loaded, if that runs ahead or this does: either may find it in the place of the other."""
        loads = [s for s in self.steps if isinstance(s, Place) and (s.verb, s.tensor_name) == ("load", step.tensor_name)]
        return tuple(s.memory for s in loads if s is not step and (s.ahead or step.ahead))

    def _silently(self, unit: Array, parts: tuple[Array, Array, int]) -> None:
        """What is loaded in registers without steps: each unit gets the region that it reads below, in each round."""
        for tensor, number, homes in self.silent:
            first, piece = ranked(number, unit)
            found = self._reach(piece, self._placed(len(self.steps)), ()).get(tensor)
            if found is not None:
                rows = filled(found, alike=True)
                rows[0] = unit[first][rows[0]]
                self._find(tensor, rows, parts, homes)

    def _compute(self, k: int, step: Place) -> None:
        tensor = self.world.computation.tensor(step.tensor_name)
        region = self._region(k, step, tensor)
        homes = {n: m for n, m in self.homes.items() if n not in {t.name for t in together_with(tensor)}}
        for t in together_with(tensor):
            self._settle(t, step)
        if region is None:
            return
        _, low, shape, sure, (block, first, width), which = region
        definition = definition_of(tensor)
        states = states_of((tensor,), self._placed(k + 1) - {tensor.name})
        reduction = definition_of(states[0]).reduction if states else None
        over = () if reduction is None else reduction.axes
        extents = {a.name: n for a, n in zip(definition.axes, shape, strict=True)} | {a.name: a.extent for a in over}
        lows = {a.name: c for a, c in zip(definition.axes, low, strict=True)} | {a.name: block * 0 for a in over}
        inner = (step.steps or ()) if sure else ()
        if any(isinstance(s, Place) and s.verb == "via" and s.memory == "shared" for s in step.steps or ()):
            # A stop has the name of a stage, also where the steps are not taken.
            self.kernel.partial |= {t.name for t in definition.tensors}
        table = Table(extents, Pieces(lows, block, first, width), inner, dataclasses.replace(self.table.block_of, main=""), over)
        _, piece = ranked(self.table.number)
        needed = self._reach(piece, *self._followed(k, tensor), must=True)
        rows = np.concatenate(
            [np.zeros((1 + len(shape), 0), np.int64), *(needed[t] for t in together_with(tensor) if t in needed)], axis=1
        )
        made_at = np.stack([which[table.number], *(table.at[a.name] for a in definition.axes)])
        stage = Spec(self.world, self.kernel, definition.tensors, over, table, inner, homes)
        stage.needed = among(made_at, rows)
        done = stage.run()
        ends = max((k for k, s in enumerate(inner) if isinstance(s, Place) and s.verb == "accumulate"), default=0)
        if any(table_reduces(done, s.sizes) for s in inner[:ends] if isinstance(s, (Tile, Split))):
            self.kernel.partial |= {t.name for t in definition.tensors}
        at = np.stack([np.arange(done.block.size), *(done.at[a.name] for a in definition.axes)])
        for t in definition.tensors:
            self._claim(self.kernel.writes, t, at, (done.block, done.first, done.width), (step.memory,))

    def _stops(self, step: Place) -> None:
        """Where results stop in shared memory, others may store them: whoever the steps say, else any thread of this unit."""
        before, after = _around(step.steps or ())
        stops = [s for s in step.steps or () if isinstance(s, Place)]
        if len(stops) > 1:
            raise NotRead(f"{step}")
        if self.stored is not None or all(s.memory != "shared" for s in (step, *stops)):
            return
        self.kernel.partial |= {t.name for t in self.tensors}  # a stop has the name of a stage
        t = self.table
        outer = {r: n for r, n in t.left.items() if r not in t.reduced}
        at, _ = ranked(t.number)
        whole = t.width == t.block_of.threads  # below its units, a block stores together what all of them made
        steps = _divided(after if stops else before, outer) if whole else ()
        first = t.first[at] if whole else t.first[at] * 0 + t.block_of.first
        pieces = Pieces({r: t.base[r][at] for r in outer}, t.block[at], first, t.block_of.threads)
        found = Table(outer, pieces, steps, t.block_of)
        for s in steps:
            found.take(s)
        self.stored = found, found.block, found.first, found.width
        self.homes_of_store = dict(self.homes)
        self.between = step.memory == "shared" and bool(stops)

    # ------------------------------------------------------------ storing

    def store(self, table: Table, states: tuple[Tensor, ...]) -> None:
        """Who stores the results, or the partial ones."""
        self.needs()
        at, exists = table.at, table.exists
        units: Any = table.block, table.first, table.width
        if self.stored is not None:
            other, *units = self.stored
            local = {**dict.fromkeys(table.roots, np.int64(0)), **other.at}
            at, exists = table.whole(local, dict.fromkeys(table.low, np.int64(0))), other.exists
            anyone = units[0], units[1] * 0 + table.block_of.first, table.block_of.threads
            self._epilogue(at, exists.size, states, anyone if self.between else units)
        for t in self.kernel.makes if not self.kernel.parts else ():
            self._write(self.kernel.writes, t, at, exists, units)
            if self.stored is None and table.vectors:
                self._write(self.kernel.again, t, table.again(), ~exists, units)
                onward = self._onward(np.arange(exists.size))
                self._write(
                    self.kernel.again, t, onward.at, onward.unit >= 0, tuple(u[onward.unit] for u in units[:2]) + units[2:]
                )
        for t in states if self.kernel.parts else ():
            self._partial(t, table)

    def _epilogue(self, at: Mapping[str, Array], count: int, states: tuple[Tensor, ...], units: Any) -> None:
        """Who stores may be who reads what is beside the reduction's state."""
        points = Points({a: np.broadcast_to(c, (count,)) for a, c in at.items()}, np.arange(count))
        stops = self._placed(len(self.steps)) | {t.name for t in states}
        values = [v for t in self.tensors if definition_of(t).reduction is None for v in (definition_of(t).values[t.member],)]
        for tensor, rows in Reach(self.world.values, stops, (), (), False).run(values, points).items():
            self._claim(self.kernel.reads, tensor, rows, units, self.homes_of_store.get(tensor.name, ("global",)))

    def _write(self, claims: Any, tensor: Tensor, at: Mapping[str, Array], chosen: Array, units: Any) -> None:
        points = np.arange(chosen.size)
        rows = np.stack([points, *(np.broadcast_to(at[a.name], points.shape) for a in definition_of(tensor).axes)])
        unit, element = flat(rows[:, chosen], tensor.shape)
        claims.setdefault(("global", tensor.name), []).append(Claim(element, units[0][unit], units[1][unit], units[2]))

    def _partial(self, tensor: Tensor, table: Table) -> None:
        """The blocks' parts of a reduction: in a workspace, one after the other. A block without points stores the identity."""
        every = (e for t in self.tensors for v in definition_of(t).values for e in v.walk())
        order = next((e.indices for e in every if isinstance(e, Read) and e.tensor is tensor), definition_of(tensor).axes)
        names = [e.name for e in order if isinstance(e, Axis)]
        rows = np.stack([np.arange(table.kept.size), *(table.at[a] for a in names)])[:, table.kept]
        unit, element = flat(rows, tensor.shape)
        element = element + np.broadcast_to(self.part, table.kept.shape)[unit] * math.prod(tensor.shape)
        width = table.width if self.stored is None else table.block_of.threads
        first = table.first[unit] if self.stored is None else table.first[unit] * 0 + table.block_of.first
        self.kernel.writes.setdefault(("global", f"{tensor.name}_partial"), []).append(
            Claim(element, table.block[unit], first, width)
        )


def _computed(world: World, steps: Sequence[Step]) -> set[str]:
    """What steps compute here, with all members of a reduction."""
    names = [s.tensor_name for s in steps if isinstance(s, Place) and s.verb == "compute" and s.memory != "global"]
    return {t.name for name in names for t in together_with(world.computation.tensor(name))}


def table_reduces(table: Table, sizes: Any) -> bool:
    """Whether a cut is one of a reduction's axes."""
    return bool(table.reduced & {a for a, _ in sizes})


def _around(steps: Sequence[Step]) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """The steps before the first stop, and those behind it."""
    k = next((k for k, s in enumerate(steps) if isinstance(s, Place)), len(steps))
    return tuple(steps[:k]), tuple(steps[k + 1 :])


def _divided(steps: Sequence[Step], axes: Mapping[str, int]) -> tuple[Step, ...]:
    """The steps of a move that cut its own dimensions; none where one cuts something else."""
    cuts = [s for s in steps if isinstance(s, (Tile, Split, Vectorize))]
    names = {a for s in cuts for a in ((s.axis,) if isinstance(s, Vectorize) else tuple(a for a, _ in s.sizes))}
    return tuple(cuts) if names <= axes.keys() and not any(isinstance(s, Tile) and s.level == "block" for s in cuts) else ()
