"""The time that a core waits for memory: lines from beyond its caches, page walks, rows that were not prefetched."""

from __future__ import annotations

from tilelang.autoschedule.common.loop_summary import Loops, Placed
from tilelang.autoschedule.cpu.bodies import stage_share, stages_inside
from tilelang.autoschedule.cpu.cache_traffic import Cache, Follow, Traffic, touched_bytes
from tilelang.autoschedule.cpu.device import Cores, divided


def waiting(loops: Loops, traffic: Traffic, share: float, device: Cores) -> list[tuple[str, float]]:
    """Cycles of all cores in which lines come from beyond each cache; stages bring theirs once. share: of all bytes, a core's.

    Between caches, lines of several rows in turn do not follow each other, as those of copies do, and take longer.
    """
    found, loose = [], device.rates.get("loose_lines", 1.0)
    apart = {s for s in traffic.streams if not s.packed and traffic.rows(s) > 1}
    inside = 0.0 if loops.shares else sum(_stage_bytes(p, loops) for p, _ in stages_inside(loops))
    for what, cache in zip([*(c.name for c in device.caches[1:]), "global"], device.caches, strict=False):
        if cache is device.caches[-1]:
            cycles, fetched = _from_afar(loops, traffic, inside, share, device), _fetched(traffic, cache)
            found.append(("prefetches", cycles * fetched))
            cycles *= 1.0 - fetched
        else:
            moved = sum(b * (loose if s in apart else 1.0) for s, b in traffic.missed(cache))
            cycles = divided(moved + inside, cache.beyond)
        found.append((what, cycles))
    return found


def _fetched(traffic: Traffic, cache: Cache) -> float:
    """The share of the lines from beyond a cache that are prefetched, and so arrive while something else is computed."""
    moved = traffic.missed(cache)
    return divided(sum(b * s.fetched for s, b in moved), sum(b for _, b in moved))


def _from_afar(loops: Loops, traffic: Traffic, inside: float, share: float, device: Cores) -> float:
    """Cycles of all cores in which lines come from beyond the caches of a core: each goes back some time, written or not.

    Lines that the core finds again in the cache that all cores share come from there. For the others: as launches go over their blocks
    from alternate ends, one begins with what the one before left in the caches, where two blocks of a core fit there; else it finds as
    much as a walk over all the bytes of a core again and again.
    """
    cache = device.caches[-1]
    past = sum(s.access.footprint_bytes(loops.nest.extents) for s in traffic.streams if s.past)
    moved = inside + _moved_bytes(traffic, cache)
    distant = moved if device.last_level is None else min(moved, inside + _moved_bytes(traffic, device.last_level))
    own = share * (touched_bytes(loops) - past)
    kept = device.rate("kept_share") * cache.bytes * (1.0 - cache.lost(2 * _block_bytes(loops)))
    found = min(distant, kept / share)
    near, far = device.far(cache.bytes / 2), device.far(max(own, 2.0 * cache.bytes))
    turned = divided(found, near) + divided(distant - found, far)
    walked = divided(distant, device.far(own))
    again = divided(moved - distant, device.far(min(max(own, cache.bytes), 2.0 * cache.bytes)))
    return again + min(turned, walked) + divided(past * device.rates.get("streamed_lines", 1.0), cache.beyond)


def _moved_bytes(traffic: Traffic, cache: Cache) -> float:
    """Bytes that come from beyond a cache, but for what is written past the caches."""
    return sum(b / s.weight for s, b in traffic.missed(cache) if not s.past)


def _block_bytes(loops: Loops) -> int:
    """Bytes that a block touches."""
    depth = max((n for n, loop in enumerate(loops.loops, 1) if loop.level == "block"), default=0)
    return sum(a.footprint_bytes(loops.tiles[depth]) for a in loops.nest.accesses)


def stalled(loops: Loops, traffic: Traffic, device: Cores) -> float:
    """Cycles of all cores that nothing runs beside: pages are looked for, and rows begin."""
    return sum(_searched(traffic, pages) * cycles for pages, cycles in device.pages) + _begin_cycles(loops, traffic, device)


def _searched(traffic: Traffic, pages: Cache) -> float:
    """How many pages are looked for beyond a table of them, before what lies there is read: stores wait aside."""
    return sum(b for s, b in traffic.missed(pages) if not s.packed and not s.access.store) / pages.line_bytes


def _begin_cycles(loops: Loops, traffic: Traffic, device: Cores) -> float:
    """Cycles in which the first lines of rows come from beyond the caches of a core: nothing fetched them before, so they take the
    latency of where they lie, as many at a time as a core waits for; and in which rows begin that are written past the caches.

    Rows that begin for the first time lie as far away as the whole kernel's data takes them; those that begin again, as far as what all
    cores touched in between does, which may be a cache that they share.
    """
    cycle, together = device.rates.get("cycle_ns"), device.rates.get("awaited_lines")
    if device.latency is None or not device.caches or not cycle or not together:
        return 0.0
    last, whole = device.caches[-1], float(loops.nest.compulsory_bytes)
    near = int(device.rates.get("page_bytes", 0)) // 2  # who follows a row sees all of its page
    follow = Follow(int(device.rates.get("followed_rows", 1)), device.rate("begun_lines"), near)
    waited, moving = 0.0, divided(last.line_bytes, last.beyond)
    for lines, since in traffic.begun(last, follow):
        waited += lines * max(0.0, device.latency.at(min(whole, since * device.cores)) / together / cycle - moving)
    written = device.rates.get("streamed_row_ns", 0.0) / cycle
    return waited + traffic.begun_past(last) * written


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
