"""A spec in the naive interpretation: it enumerates its points, and the regions that they read; see naive.py."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tilelang.computations.computation import Tensor
from tilelang.core.expr import Axis, Expr, Read
from tilelang.schedules.steps import Place, Split, Step, Tile, Vectorize
from tilelang.testing.kernels import (
    Claim,
    Indices,
    Kernel,
    World,
    ancestors,
    blocks_at,
    computed,
    definition_of,
    parts_of,
    reads_of,
    states_of,
    stored_tensors,
    together_with,
)
from tilelang.testing.points import Pieces, Table
from tilelang.testing.reach import NotRead, Points, Reach, among, distinct, filled, flat, ranked, reduces, regions
from tilelang.testing.read_dimensions import Dimensions, uneven

Array = Any
LINE_BYTES = 64  # of the caches of CPUs

# The regions of a tensor that a step places: the elements of each tensor that the readers reach; where each region begins; its shape;
# whether it is known exactly; its owners (first unit, last unit, threads of each); and the number of the piece it is for.
Region = tuple[dict[Tensor, Array], Array, tuple[int, ...], bool, tuple[Array, Array, int], Array]


class Spec:
    """A spec: the points of a definition in some regions, its steps, and the places where its readers find each tensor (`homes`)."""

    def __init__(
        self, world: World, kernel: Kernel, tensors: tuple[Tensor, ...], over: Sequence[Axis], table: Table, steps: Sequence[Step],
        homes: Mapping[str, tuple[str, ...]],
    ) -> None:  # fmt: skip
        self.world, self.kernel, self.tensors, self.table, self.steps = world, kernel, tensors, table, steps
        self.over = tuple(a.name for a in over)
        self.homes = dict(homes)
        self.stored: tuple[Table, Array, Array, int] | None = None
        self.homes_of_store = self.homes
        self.between = False  # whether any thread computes results between one place in shared memory and another
        self.silent: list[tuple[Tensor, Array, tuple[str, ...]]] = []
        self.needed: Array = np.ones(table.exists.size, bool)  # the points of a stage that its readers must read
        self.part: Array = np.int64(0)
        self.parts = False

    @property
    def dimensions(self) -> Dimensions:
        """The form of the indices that read each tensor here."""
        return Dimensions(self.world, self.tensors, self.table.relabels)

    def run(self) -> Table:
        """Applies all steps, then records what the points read."""
        for k, step in enumerate(self.steps):
            match step:
                case Place(memory="l1" | "l2"):
                    pass
                case Place(verb="compute", memory="global") if k < blocks_at(self.steps):
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
        self._implicit_register_loads(unit, parts)
        for tensor, rows in self._reach(unit, self._placed(len(self.steps)), ()).items():
            self._find(tensor, rows, parts)
        # The operands of the epilogue, and indices read from memory, may be read elsewhere.
        for tensor, rows in self._reach(unit, self._placed(len(self.steps)), (), must=True).items():
            if self.homes.get(tensor.name) == ("shared",) and tensor.range is None and not self._is_epilogue(tensor):
                self._claim(self.kernel.needs, tensor, rows, parts)
        return self.table

    def _is_epilogue(self, tensor: Tensor) -> bool:
        """Whether a value computed from a reduction also reads another tensor, directly or through inlined definitions."""
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
        """The elements that every block must read from other kernels and inputs."""
        for tensor, rows in self._reach(self.table.block, self._made(), (), must=True).items():
            block, element = flat(rows, tensor.shape)
            self.kernel.needs.setdefault(("global", tensor.name), []).append(Claim(element, block, block * 0, 1 << 16))

    # ------------------------------------------------------------ reading

    def _made(self) -> set[str]:
        """The tensors that other kernels computed."""
        return set(self.world.made) - {t.name for t in self.tensors}

    def _placed(self, end: int) -> set[str]:
        """The tensors in memory for the steps from `end` on."""
        return (
            self._made()
            | computed(self.world, self.steps, 0, end)
            | {n for n in self.homes if n not in {t.name for t in self.world.computation.inputs}}
        )

    def _units(self) -> tuple[Array, tuple[Array, Array, int]]:
        """For each point, the number of its unit; and block, first thread and width by that number."""
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
        for t in map(self.world.computation.tensor, sorted(stored_tensors(self.world.computation, self.steps))):
            if not all(a.name in self.table.at for a in definition_of(t).axes):
                raise NotRead(f"{t.name} is stored along other axes than those of the kernel")
            yield Read(t, definition_of(t).axes)  # treated as a read at the place where it is stored

    def _reduced(self, tensor: Tensor, at: Indices) -> Iterator[Read]:
        """The reads of the kernel's reductions in a value, including inlined definitions."""
        for e, to in dict.fromkeys(reads_of(tensor, at)):
            if to is not None and reduces(e.tensor, to, self.over):
                yield Read(e.tensor, to)
            elif to is not None and definition_of(e.tensor).reduction is None and e.tensor.name not in self._made():
                yield from self._reduced(e.tensor, to)

    def _reach(
        self, unit: Array, stops: Any, later: Any, must: bool = False, within: Any = slice(None), only: Read | None = None
    ) -> dict[Tensor, Array]:  # fmt: skip
        """The elements that the points read, by tensor: (unit, coordinates...). If they only may read them, nonexistent points count,
        too."""
        t, shared = self.table, {name for s in self.steps if isinstance(s, Split) for name in s.of}

        def reached(points: Points) -> dict[Tensor, Array]:
            return Reach(self.world.values, stops, later, self.over, must, only, shared).run(self._values(), points)

        if must:  # a region may extend past the end of what a stage computes
            ends = {a.name: a.extent for a in definition_of(self.tensors[0]).axes}
            chosen = np.logical_and.reduce([t.exists, self.needed, *((t.at[a] >= 0) & (t.at[a] < n) for a, n in ends.items())])
            return reached(Points(t.at, unit).where(chosen))
        found = reached(Points(t.at, unit).where(within))
        for points in (Points(t.again(), unit).where(~t.exists), self._onward(unit)) if t.vectors else ():
            for tensor, rows in reached(points).items():
                found[tensor] = distinct(np.concatenate([found[tensor], rows], axis=1)) if tensor in found else rows
        return found

    def _onward(self, unit: Array) -> Points:
        """The elements up to a cache line after each point, which one thread may store, because its vectors are aligned to cache
        lines."""
        t, (tensor, *others), axes = self.table, self.tensors, definition_of(self.tensors[0]).axes
        if len(axes) != 1 or t.block_of.threads > 1 or self.over or set(self.homes.values()) - {("unread",)} or others:
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
        """The elements that units read."""
        self._claim(self.kernel.reads, tensor, rows, parts, homes)
        self._idle(self.kernel.reads, tensor, homes)

    def _idle(self, claims: dict[tuple[str, str], list[Claim]], tensor: Tensor, homes: tuple[str, ...] = ()) -> None:
        """Idle threads of a parallel step may access any element of that place, because their accesses have no effect."""
        size = math.prod(tensor.shape)
        for first, width in self.table.spare:
            blocks, firsts = np.unique(np.stack([self.table.block, first]), axis=1)
            every = Claim(np.tile(np.arange(size), blocks.size), np.repeat(blocks, size), np.repeat(firsts, size), width)
            for home in homes or self.homes.get(tensor.name, ("global",)):
                claims.setdefault((home, tensor.name), []).append(every)

    # ------------------------------------------------------------ places

    def _region(self, k: int, step: Place, tensor: Tensor) -> Region | None:
        """The regions of a tensor that step k places, one for each piece of the spec there."""
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
        read = self.dimensions
        longer = read.quotients(tensor, "//")
        wraps = read.through(tensor, stops, lambda t: read.quotients(t, "%") | read.quotients(t, "//") & (t is not tensor))
        apart = read.through(
            tensor,
            stops,
            lambda t: uneven(
                read.reads(t) if only is None or t is not tensor else [],
                t,
                lambda e: self._reach(piece, {*stops, t.name}, later, within=inside, only=e),
            ),
        )
        shape = shape + 2 * longer
        low = low - longer[:, None]  # pieces have different numbers of quotients, and an index may decrease
        # Reads at remainders, reads at quotients of other axes, and reads whose distance varies may begin anywhere and be as long as
        # the tensor.
        every = low.max(axis=1, initial=0) + tensor.shape
        shape, low = np.where(wraps | apart, every, shape), np.where((wraps | apart)[:, None], 0, low)
        sure = not (longer | wraps | apart).any()
        return found, low, tuple(int(n) for n in shape), sure, (blocks[which], firsts[which], width), which

    def _followed(self, k: int, tensor: Tensor) -> tuple[set[str], set[str]]:
        """The tensors that are not followed from the readers of what step k places; and those that are computed later, as whole
        regions."""
        later = computed(self.world, self.steps, k + 1) - {tensor.name}
        return self._placed(k + 1) - later, later

    def _load(self, k: int, step: Place) -> None:
        tensor = self.world.computation.tensor(step.tensor_name)
        region = self._region(k, step, tensor)
        if region is None:
            return
        found, low, shape, sure, (block, first, width), _ = region
        for t in (t for t in found if t.range is not None and t is not tensor):  # index tensors of a gather
            self._claim(self.kernel.reads, t, found[t], self._anyone(step))
        if beside := (*self._beside(step), *(("global",) if step.on else ())):  # a role does not read what it loaded
            self.homes[tensor.name] = tuple(dict.fromkeys((*self.homes.get(tensor.name, ("global",)), *beside)))
        moves = [s for s in step.steps or () if not (isinstance(s, Place) and s.memory == "register")]  # the same threads
        stop = next((s for s in moves if isinstance(s, Place)), None)
        before, after = _around(moves)
        before = before or (stop.steps if stop is not None else None) or ()
        if stop is not None and (stop.memory != "shared" or any(isinstance(s, Place) for s in after)):
            raise NotRead(f"{step}")
        # Otherwise nothing determines the share of each thread.
        read = self.dimensions
        several = read.through(tensor, self._followed(k, tensor)[0], lambda t: read.fetched(t) | (read.ways(t) > 1))
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
        """The threads that move a region: any thread there, if the steps are over other axes (by access), or other blocks of a cluster.

        stopped: whether the move is staged in registers; then a whole piece is read, even if the last piece is smaller.
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

    def _anyone(self, step: Place) -> tuple[Array, Array, int]:
        """Block, first thread and width of the units that execute a step, by the pieces of the spec there."""
        t = self.table
        first, _ = ranked(t.number)
        if step.on in t.block_of.roles:
            begin, width = t.block_of.roles[str(step.on)]
            return t.block[first], t.first[first] * 0 + begin, width
        return t.block[first], t.first[first], t.width

    def _settle(self, tensor: Tensor, step: Place, memory: str = "") -> None:
        """The place where a tensor is found from here on. A place of a single read does not affect other reads. Values computed from a
        finished sum are computed outside its loops."""
        some = isinstance(step.what, Read) or self._beside(step) or self._is_epilogue(tensor)
        other = self.homes.get(tensor.name, ("global",)) if some else ()
        self.homes[tensor.name] = tuple(dict.fromkeys((*other, memory or step.memory)))

    def _beside(self, step: Place) -> tuple[str, ...]:
        """Other places of the tensor, if one of the loads is prefetched: a reader may use either."""
        loads = [s for s in self.steps if isinstance(s, Place) and (s.verb, s.tensor_name) == ("load", step.tensor_name)]
        return tuple(s.memory for s in loads if s is not step and (s.ahead or step.ahead))

    def _implicit_register_loads(self, unit: Array, parts: tuple[Array, Array, int]) -> None:
        """Loads in registers without steps: in each iteration, each unit gets the region that it reads below."""
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
        shared = {name for s in self.steps[:k] if isinstance(s, Split) for name in s.of}
        names = {t.name for t in definition.tensors}
        if shared & names:  # a stage of a shared loop processes one chunk per iteration
            extents |= {a.name: self.table.left[a.name] for a in over}
            lows |= {a.name: self.table.base[a.name][ranked(self.table.number)[0]][which] for a in over}
        if shared & (names | ancestors(definition)):  # the values there are not final
            self.kernel.partial |= names
        inner = (step.steps or ()) if sure else ()
        if any(isinstance(s, Place) and s.verb == "via" and s.memory == "shared" for s in step.steps or ()):
            # A staging buffer has the name of the stage, even if its steps are not used.
            self.kernel.partial |= {t.name for t in definition.tensors}
        table = Table(extents, Pieces(lows, block, first, width), inner, dataclasses.replace(self.table.block_of, main=""), over)
        for axis, part in parts_of(self.steps).items() if shared & names else ():  # a chunk may reach beyond what a block has
            if axis in table.low and axis in table.reduced:
                table.exists &= table.at[axis] // part == table.low[axis] // part
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
        """If results stop in shared memory, other threads may store them: those of the steps, else any thread of the unit."""
        before, after = _around(step.steps or ())
        stops = [s for s in step.steps or () if isinstance(s, Place)]
        if len(stops) > 1:
            raise NotRead(f"{step}")
        if self.stored is not None or all(s.memory != "shared" for s in (step, *stops)):
            return
        self.kernel.partial |= {t.name for t in self.tensors}  # a staging buffer has the name of the stage
        t = self.table
        outer = {r: n for r, n in t.left.items() if r not in t.reduced}
        at, _ = ranked(t.number)
        whole = t.width == t.block_of.threads  # below its units, all threads of a block store the results of all units
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
        """The threads that store the results, or the partial ones."""
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
        looped = {name for s in self.steps if isinstance(s, Split) for name in s.of} - {t.name for t in states}
        staged = (t for name in sorted(looped) for t in together_with(self.world.computation.tensor(name)))
        for t in (*states, *staged) if self.kernel.parts else ():
            self._partial(t, table, t not in states)

    def _epilogue(self, at: Mapping[str, Array], count: int, states: tuple[Tensor, ...], units: Any) -> None:
        """The threads that store may be those that read the other tensors of the epilogue."""
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

    def _partial(self, tensor: Tensor, table: Table, stage: bool = False) -> None:
        """The partial results of blocks, one after the other in a workspace. A block without points stores the identity. stage: of a
        loop that blocks share; any thread may store it, of one block along other axes."""
        order: Sequence[Expr] = definition_of(tensor).axes
        if not stage:
            every = (e for t in self.tensors for v in definition_of(t).values for e in v.walk())
            order = next((e.indices for e in every if isinstance(e, Read) and e.tensor is tensor), order)
        names = [e.name for e in order if isinstance(e, Axis)]
        if not table.at.keys() >= set(names):
            raise NotRead(f"{tensor.name} is stored along other axes than those of the kernel")
        rows = np.stack([np.arange(table.kept.size), *(table.at[a] for a in names)])[:, table.kept]
        unit, element = flat(rows, tensor.shape)
        element = element + np.broadcast_to(self.part, table.kept.shape)[unit] * math.prod(tensor.shape)
        anyone = stage or self.stored is not None
        width, first = table.width, table.first[unit]
        if anyone:
            width, first = table.block_of.threads, first * 0 + table.block_of.first
        claim = Claim(element, table.block[unit], first, width)
        self.kernel.writes.setdefault(("global", f"{tensor.name}_partial"), []).append(claim)


def table_reduces(table: Table, sizes: Any) -> bool:
    """Whether a cut includes a reduction axis."""
    return bool(table.reduced & {a for a, _ in sizes})


def _around(steps: Sequence[Step]) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """The steps before the first stop, and those after it."""
    k = next((k for k, s in enumerate(steps) if isinstance(s, Place)), len(steps))
    return tuple(steps[:k]), tuple(steps[k + 1 :])


def _divided(steps: Sequence[Step], axes: Mapping[str, int]) -> tuple[Step, ...]:
    """The steps of a move that cut its own dimensions; none if one of them cuts something else."""
    cuts = [s for s in steps if isinstance(s, (Tile, Split, Vectorize))]
    names = {a for s in cuts for a in ((s.axis,) if isinstance(s, Vectorize) else tuple(a for a, _ in s.sizes))}
    return tuple(cuts) if names <= axes.keys() and not any(isinstance(s, Tile) and s.level == "block" for s in cuts) else ()
