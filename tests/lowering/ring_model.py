"""An event model of asynchronous rings: every interleaving of a block's roles, with copies that land at any moment they may.

A role is a list of events. A barrier has phases: one ends when as many arrivals as it counts, and the bytes that arrivals announced,
have come; the next one begins at once, with the other parity. A copy lands at any moment after its start and then gives its bytes to
its barrier. What is named "0.full" is in the memory of block 0, which ends with its roles, all that are named "0.producer" and so on.
`explore` goes through all reachable states, breadth first, so that what it finds comes with a shortest way to it:

    deadlock     a role has events left and nothing can happen
    overwritten  a slot is written while it is read, or while another copy is on its way to it
    wrong value  a read begins on something else than the round that it is for
    not awaited  a copy is on its way when all roles have ended
    gone         something is done in the memory of a block that has ended
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterator, Mapping, Sequence


@dataclasses.dataclass(frozen=True, slots=True)
class Await:
    """Until the phase of this parity has ended: at the start that of parity 1 counts as ended."""

    barrier: str
    parity: int


@dataclasses.dataclass(frozen=True, slots=True)
class Arrive:
    """One arrival in the current phase, which then also waits for so many bytes more."""

    barrier: str
    bytes: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Copy:
    """Starts a copy of one byte, what round `value` needs, that tells a barrier when it lands."""

    slot: str
    value: int
    barrier: str


@dataclasses.dataclass(frozen=True, slots=True)
class Multicast:
    """Starts copies together, each of which lands by itself."""

    copies: tuple[Copy, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Write:
    """Writes what round `value` needs, at once."""

    slot: str
    value: int


@dataclasses.dataclass(frozen=True, slots=True)
class Begin:
    """A read of what round `value` needs begins; it lasts until its End."""

    slot: str
    value: int


@dataclasses.dataclass(frozen=True, slots=True)
class End:
    """The role's read of a slot ends."""

    slot: str


Event = Await | Arrive | Copy | Multicast | Write | Begin | End


@dataclasses.dataclass(frozen=True, slots=True)
class Phase:
    """A barrier: the parity of its current phase, and the arrivals and bytes that it still waits for."""

    parity: int
    arrivals: int
    bytes: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class State:
    """Where every role stands, every barrier and slot, the copies on their way (with how often each), and who reads what."""

    at: tuple[int, ...]
    barriers: tuple[tuple[str, Phase], ...]
    slots: tuple[tuple[str, int], ...] = ()
    flying: frozenset[Copy] = frozenset()
    reading: frozenset[tuple[int, str]] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong, and the events before it, the last one included."""

    kind: str
    trace: tuple[str, ...]

    def __str__(self) -> str:
        return "\n  ".join((self.kind, *self.trace))


def explore(roles: Mapping[str, Sequence[Event]], arrivals: Mapping[str, int]) -> tuple[int, Fault | None]:
    """How many states there are, and the first fault found (the search ends there). arrivals: of each barrier, in a phase."""
    names, programs = tuple(roles), tuple(tuple(events) for events in roles.values())
    start = State((0,) * len(names), tuple((name, Phase(0, count)) for name, count in sorted(arrivals.items())))
    before: dict[State, tuple[State, str] | None] = {start: None}
    queue = collections.deque([start])
    while queue:
        state = queue.popleft()
        moves = list(_moves(state, names, programs, arrivals))
        ended = all(at == len(events) for at, events in zip(state.at, programs, strict=True))
        if not moves and not ended:
            return len(before), Fault("deadlock", _trace(before, state))
        if ended and state.flying:
            return len(before), Fault("not awaited", _trace(before, state))
        for text, following in moves:
            if isinstance(following, str):
                return len(before), Fault(following, (*_trace(before, state), text))
            if following not in before:
                before[following] = state, text
                queue.append(following)
    return len(before), None


def _trace(before: Mapping[State, tuple[State, str] | None], state: State) -> tuple[str, ...]:
    out: list[str] = []
    while (found := before[state]) is not None:
        state, text = found
        out.append(text)
    return tuple(reversed(out))


def _moves(
    state: State, names: tuple[str, ...], programs: tuple[tuple[Event, ...], ...], arrivals: Mapping[str, int]
) -> Iterator[tuple[str, State | str]]:
    """What may happen next: its text, and the state after it or the fault that it is."""
    ended = _ended(state, names, programs)
    for copy in sorted(state.flying, key=str):
        yield f"{copy} lands", "gone" if ended & {_block(copy.slot), _block(copy.barrier)} else _landed(state, copy, arrivals)
    for role, (name, events) in enumerate(zip(names, programs, strict=True)):
        if state.at[role] == len(events):
            continue
        event = events[state.at[role]]
        if isinstance(event, Await) and dict(state.barriers)[event.barrier].parity == event.parity:
            continue
        after = "gone" if ended & _touched(event) else _happened(state, role, event, arrivals)
        if isinstance(after, State):
            at = tuple(n + (r == role) for r, n in enumerate(state.at))
            after = dataclasses.replace(after, at=at)
        yield f"{name}: {event}", after


def _block(name: str) -> str:
    """The block that a role, a slot or a barrier belongs to."""
    return name.rpartition(".")[0]


def _ended(state: State, names: tuple[str, ...], programs: tuple[tuple[Event, ...], ...]) -> set[str]:
    """The named blocks of which all roles have ended."""
    running = {_block(n) for n, at, events in zip(names, state.at, programs, strict=True) if at < len(events)}
    return {_block(n) for n in names} - running - {""}


def _touched(event: Event) -> set[str]:
    """The blocks in whose memory an event does something at once."""
    match event:
        case Await(barrier) | Arrive(barrier):
            return {_block(barrier)}
        case Copy(slot=slot) | Write(slot=slot) | Begin(slot=slot) | End(slot=slot):
            return {_block(slot)}
        case Multicast(copies):
            return {_block(c.slot) for c in copies}


def _happened(state: State, role: int, event: Event, arrivals: Mapping[str, int]) -> State | str:
    """The state after an event of a role, or the fault that it is."""
    match event:
        case Await():
            return state
        case Arrive(barrier, bytes):
            return _counted(state, barrier, 1, -bytes, arrivals)
        case Multicast(copies) if any(_in_use(state, c.slot) for c in copies):
            return "overwritten"
        case Multicast(copies):
            return dataclasses.replace(state, flying=state.flying | set(copies))
        case Copy(slot=slot) | Write(slot=slot) if _in_use(state, slot):
            return "overwritten"
        case Copy():
            return dataclasses.replace(state, flying=state.flying | {event})
        case Write(slot, value):
            return dataclasses.replace(state, slots=_with(state.slots, slot, value))
        case Begin(slot, value):
            if dict(state.slots).get(slot) != value or any(c.slot == slot for c in state.flying):
                return "wrong value"
            return dataclasses.replace(state, reading=state.reading | {(role, slot)})
        case End(slot):
            return dataclasses.replace(state, reading=state.reading - {(role, slot)})


def _in_use(state: State, slot: str) -> bool:
    return any(c.slot == slot for c in state.flying) or any(read == slot for _, read in state.reading)


def _landed(state: State, copy: Copy, arrivals: Mapping[str, int]) -> State:
    landed = dataclasses.replace(state, flying=state.flying - {copy}, slots=_with(state.slots, copy.slot, copy.value))
    return _counted(landed, copy.barrier, 0, 1, arrivals)


def _counted(state: State, name: str, arrived: int, bytes: int, arrivals: Mapping[str, int]) -> State:
    """The state after arrivals and bytes at a barrier; its phase ends where nothing is missing any more."""
    old = dict(state.barriers)[name]
    new = Phase(old.parity, old.arrivals - arrived, old.bytes - bytes)
    if new.arrivals == 0 and new.bytes == 0:
        new = Phase(1 - old.parity, arrivals[name])
    return dataclasses.replace(state, barriers=tuple((n, new if n == name else p) for n, p in state.barriers))


def _with(slots: tuple[tuple[str, int], ...], slot: str, value: int) -> tuple[tuple[str, int], ...]:
    return tuple(sorted({**dict(slots), slot: value}.items()))
