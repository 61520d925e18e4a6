"""The time that a core waits for memory: cache misses, page walks, rows that were not prefetched."""

from __future__ import annotations

from tilelang.autoschedule.common.loop_summary import Loops, Placed
from tilelang.autoschedule.cpu.bodies import stage_share, stages_inside
from tilelang.autoschedule.cpu.cache_traffic import Cache, HardwarePrefetcher, Traffic, touched_bytes
from tilelang.autoschedule.cpu.device import CpuDevice, divided


def wait_cycles(loops: Loops, traffic: Traffic, share: float, device: CpuDevice) -> list[tuple[str, float]]:
    """For each cache, the cycles (of all cores) in which lines arrive from beyond it; stages count once. share: the share of all bytes
    that one core handles.

    Between caches, lines of several interleaved rows are not consecutive, as those of copies are, and take longer.
    """
    found, loose = [], device.rates.get("loose_lines", 1.0)
    apart = {s for s in traffic.streams if not s.packed and traffic.rows(s) > 1}
    inside = 0.0 if loops.shares else sum(_stage_bytes(p, loops) for p, _ in stages_inside(loops))
    for what, cache in zip([*(c.name for c in device.caches[1:]), "global"], device.caches, strict=False):
        if cache is device.caches[-1]:
            cycles, fetched = _outer_memory_cycles(loops, traffic, inside, share, device), _fetched(traffic, cache)
            found.append(("prefetches", cycles * fetched))
            cycles *= 1.0 - fetched
        else:
            moved = sum(b * (loose if s in apart else 1.0) for s, b in traffic.missed(cache))
            cycles = divided(moved + inside, cache.beyond)
        found.append((what, cycles))
    return found


def _fetched(traffic: Traffic, cache: Cache) -> float:
    """The share of the lines from memory that are prefetched, and so arrive during computation."""
    moved = traffic.missed(cache)
    return divided(sum(b * s.fetched for s, b in moved), sum(b for _, b in moved))


def _outer_memory_cycles(loops: Loops, traffic: Traffic, inside: float, share: float, device: CpuDevice) -> float:
    """The cycles (of all cores) in which lines arrive from beyond a core's own caches. A line is evicted later at the same cost,
    whether it was modified or not.

    Lines that are still in the core's share of the last-level cache come from there. For the others: launches traverse their blocks in
    alternating directions, so a launch begins with the data that the previous one left in the caches, if two blocks of a core fit
    there. Otherwise the bandwidth is that of repeated passes over all bytes of a core.
    """
    cache = device.caches[-1]
    past = sum(s.access.footprint_bytes(loops.nest.extents) for s in traffic.streams if s.past)
    moved = inside + _moved_bytes(traffic, cache)
    distant = moved if device.last_level is None else min(moved, inside + _moved_bytes(traffic, device.last_level))
    own = share * (touched_bytes(loops) - past)
    kept = device.rate("kept_share") * cache.bytes * (1.0 - cache.evicted_share(2 * _block_bytes(loops)))
    found = min(distant, kept / share)
    near, far = device.far(cache.bytes / 2), device.far(max(own, 2.0 * cache.bytes))
    turned = divided(found, near) + divided(distant - found, far)
    walked = divided(distant, device.far(own))
    again = divided(moved - distant, device.far(min(max(own, cache.bytes), 2.0 * cache.bytes)))
    return again + min(turned, walked) + divided(past * device.rates.get("streamed_lines", 1.0), cache.beyond)


def _moved_bytes(traffic: Traffic, cache: Cache) -> float:
    """Bytes that come from beyond a cache, without those of results that bypass the caches."""
    return sum(b / s.weight for s, b in traffic.missed(cache) if not s.past)


def _block_bytes(loops: Loops) -> int:
    """The bytes that a block touches."""
    depth = max((n for n, loop in enumerate(loops.loops, 1) if loop.level == "block"), default=0)
    return sum(a.footprint_bytes(loops.tiles[depth]) for a in loops.nest.accesses)


def stall_cycles(loops: Loops, traffic: Traffic, device: CpuDevice) -> float:
    """The cycles (of all cores) of stalls that overlap with nothing: TLB misses and the beginnings of rows."""
    return sum(_tlb_misses(traffic, pages) * cycles for pages, cycles in device.pages) + _row_start_cycles(loops, traffic, device)


def _tlb_misses(traffic: Traffic, pages: Cache) -> float:
    """The number of TLB misses of reads. Stores do not wait for them."""
    return sum(b for s, b in traffic.missed(pages) if not s.packed and not s.access.store) / pages.line_bytes


def _row_start_cycles(loops: Loops, traffic: Traffic, device: CpuDevice) -> float:
    """The cycles in which the first lines of rows arrive from beyond a core's caches, and rows that are written past the caches begin.
    Nothing prefetched these lines, so each takes the full latency; several are in flight at once.

    The latency of a row that begins for the first time is that of the whole kernel's footprint. For a row that begins again, it is that
    of the bytes that all cores have touched in between, which may be the latency of a shared cache.
    """
    cycle, together = device.rates.get("cycle_ns"), device.rates.get("awaited_lines")
    if device.latency is None or not device.caches or not cycle or not together:
        return 0.0
    last, whole = device.caches[-1], float(loops.nest.compulsory_bytes)
    near = int(device.rates.get("page_bytes", 0)) // 2  # the prefetcher follows a row within its page
    follow = HardwarePrefetcher(int(device.rates.get("followed_rows", 1)), device.rate("begun_lines"), near)
    waited, moving = 0.0, divided(last.line_bytes, last.beyond)
    for lines, since in traffic.row_starts(last, follow):
        waited += lines * max(0.0, device.latency.at(min(whole, since * device.cores)) / together / cycle - moving)
    written = device.rates.get("streamed_row_ns", 0.0) / cycle
    return waited + traffic.streamed_row_starts(last) * written


def _stage_bytes(place: Placed, loops: Loops) -> float:
    """The bytes that a stage reads and that nothing before it in the kernel has read, and those of outputs that it stores: unless they
    bypass the caches, a line is read before a part of it is written."""
    assert place.stage is not None
    known = {a.name for a in loops.nest.accesses} | {p.access.name for p in loops.places if p.access is not None}
    for other in loops.places:
        if other is place:
            break
        if other.stage is not None:
            known |= {a.name for a in other.stage.nest.accesses}
    nest = place.stage.nest
    moved = sum(a.footprint_bytes(nest.extents) for a in nest.reads if a.name not in known)
    if place.stored:
        moved += sum(a.footprint_bytes(nest.extents) for a in nest.writes) * (1 if place.stream else 2)
    return stage_share(place, loops) * moved
