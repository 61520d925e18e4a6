"""The race detector keeps little of the past; it must convict exactly the accesses that looking at all pairs convicts."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tilelang.lowering.simulator.shadow_memory import Access, Races, Shadow, Storage, poison

BLOCKS, THREADS, ELEMENTS = 3, 2, 2

barriers = st.tuples(st.just("barrier"), st.integers(0, BLOCKS - 1))
touches = st.tuples(st.integers(0, BLOCKS * THREADS - 1), st.integers(0, ELEMENTS - 1))
accesses = st.tuples(st.sampled_from(["read", "write"]), st.lists(touches, min_size=1, max_size=4, unique_by=lambda t: t[0]))


@given(st.lists(st.one_of(barriers, accesses), max_size=14))
def test_races_are_those_of_all_pairs(steps: list[tuple[str, Any]]) -> None:
    races, epochs = Races(ELEMENTS, THREADS), np.zeros(BLOCKS, np.int32)
    past: list[tuple[int, int, int, bool]] = []  # thread, element, epoch, wrote
    for site, (what, payload) in enumerate(steps):
        if what == "barrier":
            epochs[payload] += 1
            continue
        thread, element = (np.array(column) for column in zip(*payload, strict=True))
        epoch, writes = epochs[thread // THREADS], what == "write"
        now = [(int(t), int(e), int(p), writes) for t, e, p in zip(thread, element, epoch, strict=True)]
        expected = {a[:2] for a in now for b in [*past, *now] if _race(a, b)}
        found = (races.write if writes else races.read)(Access(element, thread, epoch, site))
        positions = [] if found is None else found.position.tolist()
        convicted = {now[p][:2] for p in positions}
        # Two threads that write one element in one access: the later of them is named, which is enough.
        assert convicted <= expected and {e for _, e in convicted} == {e for _, e in expected}
        past += now
        if found is not None:
            for position, other, wrote in zip(found.position, found.other, found.other_wrote, strict=True):
                partners = {(b[0], b[3]) for b in past if _race(now[position], b)}
                assert (int(other), bool(wrote)) in partners
            return  # after the first race the past may be forgotten: it has been reported


def _race(a: tuple[int, int, int, bool], b: tuple[int, int, int, bool]) -> bool:
    ordered = a[0] // THREADS == b[0] // THREADS and a[2] != b[2]
    return a[0] != b[0] and a[1] == b[1] and (a[3] or b[3]) and not ordered


def test_wide_elements_cover_several_granules() -> None:
    shadow = Shadow(4, 1, tracks_races=False)
    wide = Storage(poison(2, np.dtype(np.float32)), np.zeros(1, np.int64), 1, shadow, number=1, per_element=2)
    narrow = Storage(poison(4, np.dtype(np.float16)), np.zeros(1, np.int64), 1, shadow, number=2)
    wide.set_written(np.array([0, 1]))
    assert wide.unwritten(np.array([0, 1]), np.array([0, 0])) is None
    narrow.set_written(np.array([3]))
    unwritten = wide.unwritten(np.array([0, 1]), np.array([0, 0]))
    assert unwritten is not None and unwritten.tolist() == [1]
