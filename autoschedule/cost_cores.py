"""How long a schedule takes on a device whose blocks are tasks of cores with vectors: counted, not tried.

Every term is a count that `Loops` gives (instructions of the innermost body, elements moved, lines that miss a cache) times a rate of
the profile. What runs one after another on a core is summed; what waits for memory runs beside it, so the larger counts, and a share
of the smaller. A rate that a profile does not have takes no time.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping

from tilelang.autoschedule.cost import Estimate
from tilelang.autoschedule.loops import Loops, Placed
from tilelang.autoschedule.nest import Access, Nest, Tile
from tilelang.autoschedule.prune import Pruning
from tilelang.autoschedule.traffic import Cache, Traffic, staged_places, touched_bytes
from tilelang.expr import Axis, Binary, Const, Expr, Var
from tilelang.machine import Curve, Profile
from tilelang.simplify import linear

# The rates of one core that are read here, besides those that `cores_of` reads; cycles are of a whole vector unless they say "element".
#   stores_per_cycle, operations_per_cycle: all of them together; latency_cycles: from a multiply-add to one that needs it;
#   window_operations: so many run ahead of one that waits
#   exp_cycles, divide_cycles ...: one operation, by its name; fold_cycles: the lanes of a vector to one sum
#   vector_move_cycles, padded_vector_move_cycles, run_move_cycles (elements to where they lie side by side again), element_move_cycles
#   (elsewhere), padded_move_cycles (with conditions or remainders at each), ragged_move_cycles (these in rows of no whole vectors)
#   gathered_element_cycles: a lane of a read that is not side by side; edge_element_cycles: a lane of a read that may lie outside
#   guard_cycles: to look for the end of a reduction at one point; spill_cycles: a value that has no register; round_cycles: a round of
#   a loop; piece_cycles: to begin and to end results in registers
#   page_search_ns: to find a page whose place is not known
#   waiting_share: of the smaller of work and waiting, what does not run beside the larger
#   launch_us; next_launch_us: a kernel behind another; block_us: a block, on its core
OPERATIONS = {"+": "add", "-": "add", "*": "multiply", "/": "divide", "%": "remainder", "//": "divide"}


@dataclasses.dataclass(frozen=True)
class Cores:
    """A device as cores with vectors, in numbers of one core; from a profile's levels, memories and rates.

    lanes of 32 bits; registers: of vectors; shared_bytes: what a block may have of shared memory; pages: those whose places are known,
    as a cache. multiply_adds, loads: of vectors, in a cycle (None: they take no time). reads: GB/s of all cores over the bytes that
    each goes over. pruning: what drops candidates for it.
    """

    cores: int
    lanes: int
    registers: int
    shared_bytes: float
    caches: tuple[Cache, ...]
    pages: Cache | None
    multiply_adds: float | None
    loads: float | None
    rates: Mapping[str, float]
    reads: Curve | None = None
    pruning: Pruning = dataclasses.field(default_factory=Pruning, compare=False, repr=False)

    @property
    def cache_bytes(self) -> int:
        return self.caches[-1].bytes if self.caches else 1 << 20

    @property
    def fetches(self) -> bool:
        """Whether a schedule can bring lines near before they are used."""
        return any(cache.name == "l1" for cache in self.caches)

    def far(self, footprint_bytes: float) -> float | None:
        """Bytes of a core in a cycle from beyond its caches, while it goes over so many: by the curve, else by the one rate."""
        cycle = self.rates.get("cycle_ns")
        if self.reads is not None and cycle:
            return self.reads.at(footprint_bytes) * cycle / self.cores
        return self.caches[-1].beyond

    def rate(self, name: str) -> float:
        """A rate that is a time; none where it is unknown."""
        return self.rates.get(name, 0.0)

    def scale(self, what: str) -> float:
        """By how much a calibration found that something takes longer."""
        return self.rates.get(f"{what}_scale", 1.0)

    def per(self, count: float, name: str) -> float:
        """The time of so many by a rate that is a number in a time; none where it is unknown."""
        return divided(count, self.rates.get(name))


def divided(count: float, rate: float | None) -> float:
    """The time of so many at a rate; none where it is unknown."""
    return count / rate if rate else 0.0


def cores_of(profile: Profile, pruning: Pruning | None = None) -> Cores:
    """The cores of a profile."""
    rates = dict(profile.rates)
    cores, cycle = profile.compute_units or 1, rates.get("cycle_ns")
    lanes = max(1, max(profile.vector_bytes) // 4)
    inner = sorted((m for m in profile.memories if m.cache and m.owner == "block"), key=lambda m: m.capacity_bytes or 0)
    memory, peak, first = rates.get("global_gb_per_s"), rates.get("float32_gflops"), rates.get("l1_bytes_per_cycle")
    beyond = [rates.get(f"{m.name}_bytes_per_cycle") for m in inner[1:]]
    beyond.append(memory * cycle / cores if memory and cycle else None)
    caches = tuple(
        Cache(m.name, m.capacity_bytes or 0, m.ways, m.line_bytes or 64, b) for m, b in zip(inner, beyond, strict=False)
    )
    size, places = int(rates.get("page_bytes", 0)), int(rates.get("found_pages", 0))
    shared = profile.memory("shared").capacity_bytes
    return Cores(
        cores,
        min(lanes, profile.max_vector_lanes),
        profile.registers_per_thread // lanes,
        math.inf if shared is None else shared,
        caches,
        Cache("pages", places * size, None, size) if size and places else None,
        peak * cycle / (2 * lanes * cores) if peak and cycle else rates.get("multiply_adds_per_cycle"),
        first / (4 * lanes) if first else None,
        rates,
        profile.curve("read_bandwidth"),
        pruning or Pruning(),
    )


def estimate(kernels: tuple[Loops, ...], device: Cores) -> Estimate:
    """The time of a program's kernels, one after another."""
    kernels = tuple(every for loops in kernels for every in loops.kernels())
    parts = [p for loops in kernels for p in _kernel(loops, device)]
    launches = device.scale("launch") * device.rate("launch_us") + (len(kernels) - 1) * device.rate("next_launch_us")
    parts.append(("launch", launches * 1e-6))
    return Estimate.of(parts)


def _inside(loops: Loops) -> list[tuple[Placed, Loops]]:
    """The stages that run within a kernel, and have something to do."""
    return [(p, p.stage) for p in loops.places if p.stage is not None and p.memory != "global" and p.stage.nest.points]


def _kernel(loops: Loops, device: Cores) -> list[tuple[str, float]]:
    """What one kernel's time is made of, in seconds; where no axis has a point, of its results alone."""
    if not loops.nest.points:
        written = sum(w.footprint_bytes(loops.nest.extents) for w in loops.nest.writes)
        return [("results", device.per(written * 1e-9, "global_gb_per_s"))]
    share = busiest_share(loops, device) * device.rate("cycle_ns") * 1e-9
    parts = [(what, cycles * share) for what, cycles in work(loops, device)]
    busy = sum(s for _, s in parts)
    waits = [(what, cycles * share * device.scale("waiting")) for what, cycles in waiting(loops, device)]
    what, longest = max(waits, key=lambda w: w[1], default=("nothing", 0.0))
    exposed = max(0.0, longest - busy) + device.rate("waiting_share") * min(busy, longest)
    blocks = max(1, loops.units("block"))
    parts.append((f"waiting for {what}", exposed))
    parts.append(("blocks", blocks / min(blocks, device.cores) * device.rate("block_us") * 1e-6))
    return parts


def busiest_share(loops: Loops, device: Cores) -> float:
    """The share of all work that the core with the most of it has: blocks go out in order, half of what is left at a time, so that the
    first core begins with the first half, which has none of the smaller blocks at the ends of the axes."""
    sizes: list[tuple[int, int]] = []  # of each axis its extent and the block's
    for loop, outside, inside in zip(loops.loops, loops.tiles, loops.tiles[1:], strict=False):
        if loop.level == "block":
            sizes += [(outside[a], inside[a]) for a, _ in loop.rounds]
    blocks = math.prod(-(-extent // size) for extent, size in sizes)
    if blocks <= 1:
        return 1.0
    first = min(-(-blocks // device.cores), int(device.rates.get("dealt_blocks", blocks)))
    return max(1 / min(blocks, device.cores), _of_first(first, sizes) / math.prod(extent for extent, _ in sizes))


def _of_first(blocks: int, sizes: list[tuple[int, int]]) -> int:
    """The points of the first so many blocks; the last axis comes fastest."""
    if not sizes:
        return min(1, blocks)
    extent, size = sizes[0]
    inner = math.prod(-(-e // s) for e, s in sizes[1:])
    whole, rest = divmod(blocks, inner)
    begun = min(extent, whole * size)
    return begun * math.prod(e for e, _ in sizes[1:]) + min(size, extent - begun) * _of_first(rest, sizes[1:])


# ---------------------------------------------------------------- work


def work(loops: Loops, device: Cores) -> Iterator[tuple[str, float]]:
    """What runs one after another, in cycles of all cores together."""
    yield "operations", leaf_cycles(loops, device) * device.scale("operations")
    yield "results", result_cycles(loops, device) * device.scale("operations")
    for p, stage in _inside(loops):
        yield f"compute {_stage_name(stage)}", stage_share(p, loops) * sum(c for _, c in work(stage, device))
    for p in loops.places:
        if p.access is not None and p.verb == "load" and p.memory == "shared":
            yield f"move {p.access.name}", move_cycles(loops, p, device) * device.scale("moves")


def _stage_name(stage: Loops) -> str:
    return stage.nest.writes[0].name


def stage_share(place: Placed, loops: Loops) -> float:
    """How often a stage's whole loops run, all told: those of the place's box, each time that the place is come to."""
    assert place.stage is not None
    nest = place.stage.nest
    part = [min(a.extent, place.tile.get(a.name, a.extent)) / a.extent for a in nest.spatial]
    if place.access is not None:
        part = [n / whole for n, whole in zip(place.access.box(place.tile), place.access.tensor.shape, strict=True)]
    return passes(loops, place.depth) * math.prod(part)


def passes(loops: Loops, depth: int) -> int:
    """How often what stands inside the first `depth` loops runs: pieces outside of the tensors are passed over."""
    return math.prod(-(-n // loops.tiles[depth][a]) for a, n in loops.nest.extents.items())


@dataclasses.dataclass(frozen=True)
class Body:
    """What runs without a jump: its depth among the loops, how often it runs in all, the extents that are written out in it, and how
    many values of an axis one vector covers."""

    depth: int
    rounds: int
    tile: Tile
    axis: str
    lanes: int

    def vectors(self, axes: Iterator[str] | list[str] | frozenset[str]) -> int:
        """Vectors of the points along some axes."""
        return math.prod(-(-self.tile[a] // self.lanes) if a == self.axis else self.tile[a] for a in axes)


def piece_depth(loops: Loops) -> int:
    """Inside how many loops results are in registers: those of the innermost accumulator; where nothing is reduced, a body's."""
    if loops.nest.reduced:
        return max((p.depth for p in loops.places if p.verb == "accumulate" and p.memory == "register"), default=len(loops.loops))
    return body_depth(loops)


def piece_count(loops: Loops) -> int:
    """How many times results in registers begin: without an accumulator, for each vector, or element, by itself."""
    depth = piece_depth(loops)
    if any(p.verb == "accumulate" and p.memory == "register" for p in loops.places):
        return passes(loops, depth)
    axis, lanes = loops.vector if loops.vector is not None else ("", 1)
    tile = loops.tiles[depth]
    return passes(loops, depth) * math.prod(-(-tile[a.name] // (lanes if a.name == axis else 1)) for a in loops.nest.spatial)


def body_depth(loops: Loops) -> int:
    """Inside how many loops the innermost body stands: those that are not written out."""
    depth = len(loops.loops)
    while depth and loops.loops[depth - 1].unroll:
        depth -= 1
    return depth


def body_of(loops: Loops, device: Cores) -> Body:
    """The innermost body: rounds that are written out, and vectors; what a leaf leaves of other axes are rounds."""
    depth = body_depth(loops)
    tile, rounds = dict(loops.tiles[depth]), passes(loops, depth)
    axis, lanes = loops.vector if loops.vector is not None else ("", 1)
    for a, n in loops.tiles[-1].items():
        if a == axis:
            reduced = loops.nest.axis(a).reduction
            step = lanes if reduced or n > 16 * lanes else n
            rounds *= -(-n // step)
            tile[a] = step * -(-tile[a] // n)
        elif n > 1:
            rounds *= n
            tile[a] = -(-tile[a] // n)
    if loops.vector is None and not loops.nest.reduced:
        return _by_compiler(loops, Body(depth, rounds, tile, "", 1), int(device.rates.get("compiler_lanes", 1)))
    return Body(depth, rounds, tile, axis, min(lanes, device.lanes))


def _by_compiler(loops: Loops, body: Body, lanes: int) -> Body:
    """A body without vectors as the compiler makes it where rounds do not wait for each other: vectors along the innermost walk."""
    left = [(a, n) for a, n in loops.tiles[-1].items() if n > 1]
    if body.depth and not left:
        left = [r for r in loops.loops[body.depth - 1].rounds if r[1] > 1]
    if not left or left[-1][1] < lanes or body.tile[left[-1][0]] > 1:
        return body
    axis = left[-1][0]
    return Body(body.depth, -(-body.rounds // lanes), {**body.tile, axis: lanes}, axis, lanes)


def leaf_cycles(loops: Loops, device: Cores) -> float:
    """Cycles of the innermost bodies, all rounds of all blocks."""
    nest = loops.nest
    body = body_of(loops, device)
    points = body.vectors(list(body.tile))
    computed = sum(n * operation_cycles(op, device) for op, n in _fused(nest).items()) * points
    loads = sum(_loads(loops, a, body, device) for a in nest.reads)
    stores = 0.0 if nest.reduced else sum(_stored(a, body) for a in nest.writes)
    count = sum(_fused(nest).values()) * points + loads + stores
    cycles = max(
        computed,
        divided(loads, device.loads),
        device.per(stores, "stores_per_cycle"),
        device.per(count, "operations_per_cycle"),
    )
    cycles += _spilled(loops, body, device) * device.rate("spill_cycles")
    cycles += sum(_gathered(loops, a, body, device) for a in (nest.reads if nest.reduced else nest.accesses))
    if _guarded(loops):
        cycles += math.prod(body.tile[a.name] for a in nest.reduced if a.name != body.axis) * device.rate("guard_cycles")
    total = body.rounds * (cycles + device.rate("round_cycles"))
    if nest.reduced:
        total = max(total, _latency_cycles(loops, body, count, device))
    return total


def _guarded(loops: Loops) -> bool:
    """Whether a cut of a reduction leaves a shorter last round, whose end is looked for at every point."""
    reduced = {a.name for a in loops.nest.reduced} - ({loops.vector[0]} if loops.vector is not None else set())
    return any(loops.nest.extents[a] % tile[a] for tile in loops.tiles for a in reduced)


def _fused(nest: Nest) -> dict[str, int]:
    """The operations of one point as instructions: a multiply-add is one; a cast is by what it comes from or goes to."""
    found = dict(nest.inner)
    found["*"] = max(0, found.get("*", 0) - found.get("+", 0))
    if casts := found.pop("cast", 0):
        found["from_float16" if any(a.element_bytes == 2 for a in nest.accesses) else "from_int32"] = casts
    return found


def operation_cycles(op: str, device: Cores) -> float:
    """Cycles of one operation on a vector."""
    name = f"{OPERATIONS.get(op, op)}_cycles"
    return device.rates[name] if name in device.rates else divided(1.0, device.multiply_adds)


def _loads(loops: Loops, access: Access, body: Body, device: Cores) -> float:
    """Vectors that one operand needs in a body, each once."""
    tile = {a: (-(-n // body.lanes) if a == body.axis else n) for a, n in body.tile.items()}
    wide = access.element_bytes * body.lanes > 4 * device.lanes and body.axis in access.axes
    return min(math.prod(access.box(tile)), body.vectors(access.axes)) * (2.0 if wide else 1.0)


def _stored(access: Access, body: Body) -> float:
    return float(body.vectors(access.axes))


def _gathered(loops: Loops, access: Access, body: Body, device: Cores) -> float:
    """Cycles to assemble vectors from elements that do not lie side by side, or may lie outside of the tensor."""
    if body.axis not in access.axes or body.lanes == 1:
        return 0.0
    place = staged_places(loops).get(access.name) if not access.store else None
    vectors = float(body.vectors(access.axes))
    if not _beside(access, place, body.axis):
        return vectors * body.lanes * device.rate("gathered_element_cycles")
    if access.padded and place is None:
        rounds = -(-loops.nest.extents[body.axis] // max(1, body.tile[body.axis]))
        at_edges = min(1.0, 2 / rounds)
        return vectors * body.lanes * at_edges * device.rate("edge_element_cycles")
    return 0.0


def _beside(access: Access, place: Placed | None, axis: str) -> bool:
    """Whether the points of an axis lie one beside the other, in the tensor or where it is staged."""
    if place is None or place.layout is None or not place.layout.terms:
        return access.stride(axis) == 1
    last = {e.name.removeprefix("@") for e in place.layout.terms[-1].walk() if isinstance(e, Var)}
    along = {d.name for d, index in zip(access.tensor.dims, access.indices, strict=True) if step_of(index, axis) == 1}
    return axis in last or bool(last & along)


def step_of(index: Expr, axis: str) -> int:
    """By how much an index grows with an axis; 0 where it does not, or not evenly."""
    return sum(f for atom, f in linear(index)[0] if isinstance(atom, (Var, Axis)) and atom.name.removeprefix("@") == axis)


def _spilled(loops: Loops, body: Body, device: Cores) -> float:
    """Values that have no register: results, and the operands of one point that several of them share."""
    if not loops.nest.reduced:
        return 0.0
    tile = loops.tiles[piece_depth(loops)]
    held = body.vectors([a.name for a in loops.nest.spatial]) if body.tile.keys() == tile.keys() else 0
    shared = [
        body.vectors([a.name for a in loops.nest.spatial if a.name in r.axes]) for r in loops.nest.reads if body.axis in r.axes
    ]
    return max(0.0, held + min(shared, default=0) + 1 - device.registers)


def _latency_cycles(loops: Loops, body: Body, count: float, device: Cores) -> float:
    """Cycles that results wait for each other: one after another along a reduction, as many pieces beside each other as the window
    of instructions holds."""
    depth = piece_depth(loops)
    pieces = piece_count(loops)
    reduced = [a.name for a in loops.nest.reduced]
    steps = math.prod(loops.tiles[depth][a] for a in reduced)
    if body.axis in reduced:
        steps = -(-steps // body.tile[body.axis])
    chain = steps * device.rate("latency_cycles")
    bodies = max(1.0, body.rounds / pieces)
    window = device.rates.get("window_operations")
    return pieces * chain / max(1.0, window / (count * bodies) if window else 1.0)


def result_cycles(loops: Loops, device: Cores) -> float:
    """Cycles to begin and to hand on results: once for every time that the innermost accumulator begins."""
    nest = loops.nest
    if not nest.reduced:
        return 0.0
    depth = piece_depth(loops)
    axis, lanes = loops.vector if loops.vector is not None else ("", 1)
    lanes = min(lanes, device.lanes)
    vectors = math.prod(-(-loops.tiles[depth][a.name] // (lanes if a.name == axis else 1)) for a in nest.spatial)
    handed = 3.0 if any(p.verb == "accumulate" and p.memory == "shared" for p in loops.places) else 1.0
    each = handed * device.per(1.0, "stores_per_cycle")
    each += sum(n * operation_cycles(op, device) for op, n in nest.outer.items())
    if any(a.name == axis for a in nest.reduced):
        each += device.rate("fold_cycles")
    for write in nest.writes:
        if axis in write.axes and write.stride(axis) != 1:
            each += lanes * device.rate("gathered_element_cycles")
    return passes(loops, depth) * (vectors * each + device.rate("piece_cycles"))


# ---------------------------------------------------------------- moves


def move_cycles(loops: Loops, place: Placed, device: Cores) -> float:
    """Cycles of the moves of a place, all rounds: by vectors, or by elements, which cost more where each has its own index."""
    assert place.access is not None
    elements = passes(loops, place.depth) * place.box_bytes / place.access.element_bytes
    indexed = place.access.padded or _remainders(place)
    if place.vector is not None and place.vector[1] > 1:
        if indexed:  # lane by lane
            return elements / device.lanes * device.rate("padded_vector_move_cycles")
        return elements / min(place.vector[1], device.lanes) * device.rate("vector_move_cycles")
    if indexed:
        ragged = row_extent(place) % device.lanes or not _side_by_side(place)
        return elements * device.rate("ragged_move_cycles" if ragged else "padded_move_cycles")
    return elements * device.rate("run_move_cycles" if _side_by_side(place) else "element_move_cycles")


def row_extent(place: Placed) -> int:
    """How many elements of a place lie side by side and are moved one after another."""
    assert place.access is not None
    box = dict(zip((d.name for d in place.access.tensor.dims), place.access.box(place.tile), strict=True)) | dict(place.tile)
    if place.layout is None or not place.layout.terms:
        return box[place.access.tensor.dims[-1].name]
    match place.layout.terms[-1]:
        case Binary("%", _, Const(value=n)):
            return int(n)
        case Var(name=name):
            return box.get(name.removeprefix("@"), 1)
        case _:
            return 1


def _remainders(place: Placed) -> bool:
    """Whether the indices of a place's elements take divisions: fused axes that do not go on where a row ends."""
    access = place.access
    assert access is not None
    over_axes = place.layout is not None and bool(set(place.layout.dims) - {d.name for d in access.tensor.dims})
    return over_axes and any(access.regular(a, place.tile[a]) < place.tile[a] for a in access.axes)


def _side_by_side(place: Placed) -> bool:
    """Whether what lies side by side in a tensor does so in its place, too."""
    assert place.access is not None
    if place.layout is None or not place.layout.terms:
        return True
    last = {e.name.removeprefix("@") for e in place.layout.terms[-1].walk() if isinstance(e, Var)}
    innermost = {place.access.tensor.dims[-1].name} | {a for a in place.access.axes if place.access.stride(a) == 1}
    return bool(last & innermost)


# ---------------------------------------------------------------- waiting


def waiting(loops: Loops, device: Cores) -> list[tuple[str, float]]:
    """Cycles of all cores in which lines come from beyond each cache; stages bring theirs once."""
    traffic = Traffic(loops, body_depth(loops), piece_depth(loops))
    beyond = [c.name for c in device.caches[1:]] + ["global"]
    pages = 0.0
    if device.pages is not None:
        size = device.pages.line_bytes
        pages = sum(b for s, b in traffic.missed(device.pages) if not s.packed) / size
    searched = divided(device.rate("page_search_ns"), device.rates.get("cycle_ns")) / device.rates.get("page_searches", 1.0)
    found = []
    for what, cache in zip(beyond, device.caches, strict=False):
        moved = sum(b for s, b in traffic.missed(cache))
        moved += sum(_stage_bytes(p, loops) for p, _ in _inside(loops))
        last = cache is device.caches[-1]
        rate = device.far(busiest_share(loops, device) * touched_bytes(loops)) if last else cache.beyond
        found.append((what, divided(moved, rate) + pages * searched))
    return found


def _stage_bytes(place: Placed, loops: Loops) -> float:
    """Bytes that a stage reads and that no one else of the kernel does."""
    assert place.stage is not None
    known = {a.name for a in loops.nest.accesses} | {p.access.name for p in loops.places if p.access is not None}
    for other in loops.places:
        if other is place:
            break
        if other.stage is not None:
            known |= {a.name for a in other.stage.nest.accesses}
    nest = place.stage.nest
    return stage_share(place, loops) * sum(a.footprint_bytes(nest.extents) for a in nest.reads if a.name not in known)
