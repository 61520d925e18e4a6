"""The protocol of a ring between roles, proven over every interleaving, and what each of its parts is there for.

The protocol that the lowering follows. A ring of n slots has 2n barriers: `full` counts one arrival of the producer and the bytes of
the slot's copies, `empty` one arrival of each consumer. All roles count the rounds alike, through all tiles of a persistent block:
round r is in slot r % n. The producer awaits parity 1 - r // n % 2 of empty, which holds at once in the first n rounds; a consumer
awaits parity r // n % 2 of full, and arrives at empty when its read is over. Where its reads go on by themselves, one of them may: it
then ends, and its slot is given back, in the round after its own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from tests.lowering.ring_model import Arrive, Await, Begin, Copy, End, Event, Fault, Write, explore


@dataclasses.dataclass(frozen=True)
class Ring:
    """A protocol: of a ring of `slots`, over `tiles` of `rounds` rounds each; every other field is a part that may be got wrong."""

    slots: int
    rounds: int = 3
    tiles: int = 1
    consumers: int = 1
    tensors: int = 1
    awaits_empty: bool = True
    first_empty: int = 1  # the parity of empty that the producer awaits in the first rounds
    first_full: int = 0
    arrives_after_read: bool = True
    barriers: int | None = None  # how many of each kind there are, if not as many as slots
    empty_arrivals: int | None = None  # how many arrivals empty counts, if not one of each consumer
    expected: int | None = None  # how many bytes the producer announces, if not those of all its copies
    restarts: bool = False  # every tile counts its rounds from 0
    drains: bool = False  # the producer waits at the end of a tile until all is read
    copies: bool = True  # else the producer writes by itself
    in_flight: int = 0  # how many reads go on while a consumer begins the next

    def number(self, tile: int, round: int) -> int:
        return round if self.restarts else tile * self.rounds + round

    def place(self, number: int) -> tuple[int, int, int]:
        """The slot of a round, its pair of barriers, and how often that pair was used before."""
        pairs = self.slots if self.barriers is None else self.barriers
        return number % self.slots, number % pairs, number // pairs

    def producer(self) -> list[Event]:
        events: list[Event] = []
        for tile in range(self.tiles):
            for round in range(self.rounds):
                slot, pair, use = self.place(self.number(tile, round))
                value = tile * self.rounds + round
                if self.awaits_empty:
                    events.append(Await(f"empty{pair}", (self.first_empty + use) % 2))
                if self.copies:
                    events.append(Arrive(f"full{pair}", self.tensors if self.expected is None else self.expected))
                    events += [Copy(f"{t}[{slot}]", value, f"full{pair}") for t in "AB"[: self.tensors]]
                else:
                    events += [*(Write(f"{t}[{slot}]", value) for t in "AB"[: self.tensors]), Arrive(f"full{pair}")]
            if self.drains:
                last = {self.place(self.number(tile, r))[1]: self.place(self.number(tile, r))[2] for r in range(self.rounds)}
                events += [Await(f"empty{pair}", use % 2) for pair, use in last.items()]
        return events

    def consumer(self) -> list[Event]:
        events: list[Event] = []
        for tile in range(self.tiles):
            reads = [self.place(self.number(tile, round)) for round in range(self.rounds)]
            for round, (slot, pair, use) in enumerate(reads):
                events.append(Await(f"full{pair}", (self.first_full + use) % 2))
                events += [Begin(name, tile * self.rounds + round) for name in self.names(slot)]
                events += self.released(*reads[round - self.in_flight][:2]) if round >= self.in_flight else []
            for slot, pair, _ in reads[max(0, self.rounds - self.in_flight) :] if self.in_flight else ():
                events += self.released(slot, pair)
        return events

    def names(self, slot: int) -> list[str]:
        return [f"{t}[{slot}]" for t in "AB"[: self.tensors]]

    def released(self, slot: int, pair: int) -> list[Event]:
        """A read ends, and its slot is given back."""
        ends: list[Event] = [End(name) for name in self.names(slot)]
        arrival = [Arrive(f"empty{pair}")] if self.awaits_empty else []
        return [*ends, *arrival] if self.arrives_after_read else [*arrival, *ends]

    def explored(self) -> tuple[int, Fault | None]:
        pairs = self.slots if self.barriers is None else self.barriers
        arrivals = {f"full{n}": 1 for n in range(pairs)}
        arrivals |= {f"empty{n}": self.consumers if self.empty_arrivals is None else self.empty_arrivals for n in range(pairs)}
        roles = {"producer": self.producer()} | {f"consumer{n}": self.consumer() for n in range(self.consumers)}
        return explore(roles, arrivals)


@pytest.mark.parametrize("copies", [True, False], ids=["copies", "stores"])
@pytest.mark.parametrize("slots", [1, 2, 3, 4])
@pytest.mark.parametrize(("tiles", "rounds"), [(1, 3), (2, 3), (1, 5)])
def test_the_protocol_is_right_in_every_interleaving(slots: int, tiles: int, rounds: int, copies: bool) -> None:
    for consumers, tensors in ((1, 1), (2, 1), (1, 2)):
        states, fault = Ring(slots, rounds, tiles, consumers, tensors, copies=copies).explored()
        assert fault is None, str(fault)
        assert states > tiles * rounds


@pytest.mark.parametrize("slots", [2, 3, 4])
@pytest.mark.parametrize(("tiles", "rounds"), [(1, 3), (2, 3), (1, 5), (3, 1)])
def test_a_read_may_go_on_in_the_next_round_where_there_are_two_slots(slots: int, tiles: int, rounds: int) -> None:
    for consumers, tensors in ((1, 1), (2, 1), (1, 2)):
        _, fault = Ring(slots, rounds, tiles, consumers, tensors, in_flight=1).explored()
        assert fault is None, str(fault)


@pytest.mark.parametrize("in_flight", [1, 2, 3])
def test_as_many_reads_in_flight_as_slots_stop_both_roles(in_flight: int) -> None:
    _, fault = Ring(in_flight, rounds=in_flight + 1, in_flight=in_flight).explored()
    assert fault is not None and fault.kind == "deadlock", str(fault)
    assert Ring(in_flight + 1, rounds=in_flight + 1, in_flight=in_flight).explored()[1] is None


@pytest.mark.parametrize("slots", [2, 3, 4])
def test_a_ring_may_drain_between_tiles_where_the_count_goes_on(slots: int) -> None:
    _, fault = Ring(slots, tiles=2, consumers=2, drains=True).explored()
    assert fault is None, str(fault)


def test_a_ring_that_does_not_drain_reaches_more_states() -> None:
    """The next tile's copies are on their way while the last one is read."""
    assert Ring(2, tiles=2).explored()[0] > Ring(2, tiles=2, drains=True).explored()[0]


WRONG: dict[str, tuple[Callable[[int], Ring], str]] = {
    "no empty barrier": (lambda n: Ring(n, rounds=n + 1, awaits_empty=False), "overwritten"),
    "the producer awaits the wrong phase": (lambda n: Ring(n, first_empty=0), "deadlock"),
    "consumers await the wrong phase": (lambda n: Ring(n, first_full=1), "wrong value"),
    "an arrival before the read is over": (lambda n: Ring(n, rounds=n + 1, arrives_after_read=False), "overwritten"),
    "an arrival before a read in flight is over": (
        lambda n: Ring(n, rounds=n + 2, arrives_after_read=False, in_flight=1),
        "overwritten",
    ),
    "a ring of n with ahead n": (lambda n: Ring(n, rounds=n + 1, barriers=n + 1), "overwritten"),
    "an arrival of one consumer of two": (lambda n: Ring(n, rounds=n + 1, consumers=2, empty_arrivals=1), ""),
    "more arrivals than consumers": (lambda n: Ring(n, rounds=n + 1, empty_arrivals=2), "deadlock"),
    "bytes of one tensor of two": (lambda n: Ring(n, tensors=2, expected=1), "wrong value"),
    "more bytes than come": (lambda n: Ring(n, expected=2), "deadlock"),
    "tiles that count from 0": (lambda n: Ring(n, rounds=2 * n - 1, tiles=2, restarts=True), ""),
}


@pytest.mark.parametrize("slots", [2, 3, 4])
@pytest.mark.parametrize("what", WRONG)
def test_every_part_of_the_protocol_is_needed(what: str, slots: int) -> None:
    make, kind = WRONG[what]
    _, fault = make(slots).explored()
    assert fault is not None
    assert kind in ("", fault.kind), str(fault)


def test_a_fault_comes_with_a_shortest_way_to_it() -> None:
    _, fault = Ring(2, expected=0).explored()
    assert fault is not None
    assert str(fault).splitlines() == [
        "wrong value",
        "  producer: Await(barrier='empty0', parity=1)",
        "  producer: Arrive(barrier='full0', bytes=0)",
        "  consumer0: Await(barrier='full0', parity=0)",
        "  consumer0: Begin(slot='A[0]', value=0)",
    ]


def test_a_copy_that_nobody_awaits_is_found() -> None:
    assert explore({"producer": [Copy("A[0]", 0, "full0")]}, {"full0": 1})[1] == Fault(
        "not awaited", ("producer: Copy(slot='A[0]', value=0, barrier='full0')",)
    )
