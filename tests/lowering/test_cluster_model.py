"""The protocol of rings of a cluster, whose slots are filled from several blocks, proven over every interleaving.

Every block has a ring with its own barriers, and brings its part of what all of them read: one copy, which lands in the slot of every
block and gives its bytes to the `full` barrier of that slot there. So a producer announces the bytes of all parts, its own and the
others', which may come before it says so; and it fills a slot when the consumers of all blocks have left theirs: they arrive at the
`empty` barriers of every block. The blocks meet when all barriers are made, before anything is done in another block, and when all is
done, before one of them ends.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from tests.lowering.ring_model import Arrive, Await, Begin, Copy, End, Event, Fault, Multicast, Write, explore


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Blocks with rings of `slots`, over `rounds`; every other field is a part of the protocol that may be got wrong."""

    slots: int
    rounds: int = 3
    blocks: int = 2
    consumers: int = 1
    own: bool = False  # every block has a tensor of its own beside the common one
    arrives_at: str = "all"  # or at the empty barriers of the consumer's "own" block
    expected: int | None = None  # the bytes that a producer announces, if not those of all parts
    meets_first: bool = True
    meets_last: bool = True

    def slot(self, part: int | str, block: int, round: int) -> str:
        return f"{block}.{part}[{round % self.slots}]"

    def parts(self) -> list[int | str]:
        return [*range(self.blocks), *(["A"] if self.own else [])]

    def meeting(self, which: str) -> list[Event]:
        return [Arrive(which), Await(which, 0)]

    def begin(self, block: int) -> list[Event]:
        """The barriers of all blocks are there before anything is done to them."""
        others = [b for b in range(self.blocks) if b != block]
        seen: list[Event] = [e for b in others for e in (Begin(f"{b}.made", 0), End(f"{b}.made"))]
        return [*(self.meeting("first") if self.meets_first else []), *seen]

    def producer(self, block: int) -> list[Event]:
        events: list[Event] = [Write(f"{block}.made", 0), *self.begin(block)]
        for r in range(self.rounds):
            full = f"full[{r % self.slots}]"
            events.append(Await(f"{block}.empty[{r % self.slots}]", (1 + r // self.slots) % 2))
            events.append(Arrive(f"{block}.{full}", len(self.parts()) if self.expected is None else self.expected))
            events.append(Multicast(tuple(Copy(self.slot(block, b, r), r, f"{b}.{full}") for b in range(self.blocks))))
            events += [Copy(self.slot("A", block, r), r, f"{block}.{full}")] * self.own
        return [*events, *(self.meeting("last") if self.meets_last else [])]

    def consumer(self, block: int) -> list[Event]:
        events = self.begin(block)
        for r in range(self.rounds):
            events.append(Await(f"{block}.full[{r % self.slots}]", r // self.slots % 2))
            events += [Begin(self.slot(part, block, r), r) for part in self.parts()]
            events += [End(self.slot(part, block, r)) for part in self.parts()]
            told = range(self.blocks) if self.arrives_at == "all" else [block]
            events += [Arrive(f"{b}.empty[{r % self.slots}]") for b in told]
        return [*events, *(self.meeting("last") if self.meets_last else [])]

    def explored(self) -> tuple[int, Fault | None]:
        blocks, pairs = range(self.blocks), range(self.slots)
        left = self.consumers * (self.blocks if self.arrives_at == "all" else 1)
        arrivals = {f"{b}.full[{n}]": 1 for b in blocks for n in pairs} | {f"{b}.empty[{n}]": left for b in blocks for n in pairs}
        arrivals |= dict.fromkeys(("first", "last"), self.blocks * (1 + self.consumers))
        roles = {f"{b}.producer": self.producer(b) for b in blocks}
        roles |= {f"{b}.consumer{n}": self.consumer(b) for b in blocks for n in range(self.consumers)}
        return explore(roles, arrivals)


@pytest.mark.parametrize("cluster", [Cluster(1), Cluster(2), Cluster(1, rounds=2, own=True)], ids=str)
def test_the_protocol_is_right_in_every_interleaving(cluster: Cluster) -> None:
    states, fault = cluster.explored()
    assert fault is None, str(fault)
    assert states > cluster.rounds


WRONG: dict[str, tuple[Callable[[int], Cluster], tuple[str, ...]]] = {
    "arrivals in the own block alone": (lambda n: Cluster(n, n + 1, arrives_at="own"), ("overwritten",)),
    "bytes of the own part alone": (lambda n: Cluster(n, n + 1, expected=1), ("wrong value", "deadlock")),
    "no meeting before": (lambda n: Cluster(n, n + 1, meets_first=False), ("wrong value",)),
    "no meeting behind": (lambda n: Cluster(n, n + 1, meets_last=False), ("gone",)),
}


@pytest.mark.parametrize("slots", [1, 2])
@pytest.mark.parametrize("what", WRONG)
def test_every_part_of_the_protocol_is_needed(what: str, slots: int) -> None:
    make, kinds = WRONG[what]
    _, fault = make(slots).explored()
    assert fault is not None
    assert fault.kind in kinds, str(fault)
