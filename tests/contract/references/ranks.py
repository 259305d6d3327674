"""All interleavings of ranks, on GPUs of one SM with block slots, played literally.

Slow, and independent of the code: each host issues its next event at any time, and whatever can end
ends at any time. What has arrived is placed at once, in the order of arrival, and nothing passes a
launch that waits for a slot.
"""

from __future__ import annotations

from dataclasses import dataclass

from tbsched.program.sequence import Launch, RecordEvent, Sequence, Synchronize, WaitEvent

Ended = frozenset[int]


@dataclass(frozen=True)
class State:
    """Where everybody is.

    Attributes:
        issued: of each host how many of its events it has issued.
        arrived: of each GPU the launches there that have arrived and not ended, in order, with the
            numbers of their blocks that are resident and that have ended.
        ended: launches that have ended.
    """

    issued: tuple[int, ...]
    arrived: tuple[tuple[tuple[int, int, int], ...], ...]
    ended: Ended


@dataclass
class Play:
    """A program, and the states that it has been in."""

    sequence: Sequence
    slots: int
    gpus: int

    def can_hang(self) -> bool:
        """Returns whether some interleaving comes to a standstill."""
        events = list(self.sequence)
        self.launches = [event for event in events if isinstance(event, Launch)]
        self.hosts = sorted({event.host for event in events})
        self.calls = [[e for e in events if e.host == host] for host in self.hosts]
        self.number = {id(one): k for k, one in enumerate(self.launches)}
        first = State((0,) * len(self.hosts), ((),) * self.gpus, frozenset())
        seen, waiting = {first}, [first]
        while waiting:
            state = waiting.pop()
            following = [self.settled(each) for each in self.following(state)]
            if not following and len(state.ended) < len(self.launches):
                return True
            for each in following:
                if each not in seen:
                    seen.add(each)
                    waiting.append(each)
        return False

    def following(self, state: State) -> list[State]:
        found = []
        for at, calls in enumerate(self.calls):
            done = state.issued[at]
            if done < len(calls) and self.may_call(calls[:done], calls[done], state.ended):
                issued = (*state.issued[:at], done + 1, *state.issued[at + 1 :])
                found.append(State(issued, state.arrived, state.ended))
        for gpu, row in enumerate(state.arrived):
            for place, (number, resident, gone) in enumerate(row):
                one = self.launches[number]
                if one.meets is not None:
                    if resident == one.blocks and self.has_met(one.meets, state):
                        found.append(self.changed(state, gpu, place, None))
                elif resident > gone:
                    more = (number, resident, gone + 1)
                    over = gone + 1 == one.blocks
                    found.append(self.changed(state, gpu, place, None if over else more))
        return found

    def may_call(self, before: list[object], call: object, ended: Ended) -> bool:
        if not isinstance(call, Synchronize):
            return True
        own = [one for one in before if isinstance(one, Launch) and one.gpu == call.gpu]
        return all(self.number[id(one)] in ended for one in own)

    def has_met(self, name: str, state: State) -> bool:
        resident = {n: r for row in state.arrived for n, r, _ in row}
        return all(
            k in state.ended or resident.get(k, 0) == one.blocks
            for k, one in enumerate(self.launches)
            if one.meets == name
        )

    def changed(
        self, state: State, gpu: int, place: int, row: tuple[int, int, int] | None
    ) -> State:
        rows = list(state.arrived[gpu])
        number = rows[place][0]
        rows[place : place + 1] = [] if row is None else [row]
        arrived = (*state.arrived[:gpu], tuple(rows), *state.arrived[gpu + 1 :])
        ended = state.ended | {number} if row is None else state.ended
        return State(state.issued, arrived, ended)

    def settled(self, state: State) -> State:
        """Lets launches arrive, and places blocks."""
        rows = [list(row) for row in state.arrived]
        there = {number for row in rows for number, _, _ in row} | state.ended
        for at, calls in enumerate(self.calls):
            ready: dict[object, bool] = {}
            recorded: dict[int, bool] = {}
            for call in calls[: state.issued[at]]:
                if isinstance(call, Launch):
                    number = self.number[id(call)]
                    stream = (call.gpu, call.stream)
                    if ready.get(stream, True) and number not in there:
                        rows[call.gpu].append((number, 0, 0))
                        there.add(number)
                    ready[stream] = ready.get(stream, True) and number in state.ended
                elif isinstance(call, RecordEvent):
                    recorded[call.event] = ready.get((call.gpu, call.stream), True)
                elif isinstance(call, WaitEvent):
                    stream = (call.gpu, call.stream)
                    ready[stream] = ready.get(stream, True) and recorded.get(call.event, True)
        for row in rows:
            free = self.slots - sum(resident - gone for _, resident, gone in row)
            for place, (number, resident, gone) in enumerate(row):
                more = min(free, self.launches[number].blocks - resident)
                row[place] = (number, resident + more, gone)
                free -= more
                if resident + more < self.launches[number].blocks:
                    break
        return State(state.issued, tuple(map(tuple, rows)), state.ended)
