"""Which mechanisms decide anything in what a campaign draws, so that finding nothing means it."""

from __future__ import annotations

import collections
import functools
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace

import numpy as np

from tbsched.hardware.catalogue import ablated, ablations, shows_in
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.prediction.tables import predict_until_refused
from tbsched.program.arrays import Int32Array
from tbsched.program.event_table import FIELDS, LAUNCH, EventTable
from tbsched.program.events.graph import Conditional
from tbsched.program.events.transfers import Transfer, transfer_key
from tbsched.program.sequence import GraphLaunch, HostFunction, WaitValue
from tbsched.program.written import given_fields
from tbsched.traces.trace import Trace

# Sequences that a mechanism decided, after which it is not checked any more.
ENOUGH = 5
# Mechanisms are checked on the first tables, then on one table in a few: otherwise one that never
# decides would cost a second prediction of every sequence.
TABLES_AT_FIRST, LATER_EVERY = 64, 4
# Size of a table's first checked part, and growth of the next: few sequences decide most.
FIRST_PART, LARGER = 8, 4
# Features of launches, each of which few launches have.
_WAYS = (
    "partition", "cooperative", "cluster", "priority", "non_blocking", "programmatic", "trigger",
    "memory_wait", "completion_event", "first_use", "host",
)  # fmt: skip
_USUAL_CELLS = {"partition": -1, "cooperative": 0, "cluster": 1, "priority": 0}


@dataclass(frozen=True, slots=True)
class Coverage:
    """What the launches of a campaign were, and what bound them.

    Attributes:
        ways: number of launches with a field that few have, such as ``partition``, ``cooperative``
            and ``cluster``; of nodes of graphs, ``graph``; and of ``copy`` and ``memset`` in
            streams.
        refused: number of launches that were not placed whole, by what refused their blocks.
        decided: per ablation of the predictor, the number of sequences that it places otherwise,
            counted up to five. Where it is 0 the campaign could not tell a predictor without this
            mechanism.

    Example:
        >>> report = tb.fuzz("xavier", "xavier", max_examples=20, seed=1, progress=False)
        >>> report.coverage.decided["no-processing-blocks"] > 0
        True
    """

    ways: collections.Counter[str] = field(default_factory=collections.Counter)
    refused: collections.Counter[str] = field(default_factory=collections.Counter)
    decided: dict[str, int] = field(default_factory=dict)

    def add(self, other: Coverage) -> None:
        """Adds that of a part of the campaign."""
        self.ways.update(other.ways)
        self.refused.update(other.refused)
        for name, sequences in other.decided.items():
            self.decided[name] = min(ENOUGH, self.decided.get(name, 0) + sequences)


class Covering:
    """Counts the coverage of the sequences that a predictor predicts.

    Args:
        spec, policy, state: the predictor.
        threads: number of threads that work on tables.
        tables: number of earlier tables of the campaign.
    """

    def __init__(
        self, spec: DeviceSpec, policy: str, state: InitialState, threads: int, tables: int = 0
    ) -> None:
        self.found = Coverage()
        self._policy, self._state, self._threads = policy, state, threads
        self._tables = tables
        self._without, self._of_what_waits = _without(spec)
        self.found.decided.update(dict.fromkeys(self._without, 0))

    def look(
        self, table: EventTable, smids: list[Int32Array], limiters: Iterable[str | None]
    ) -> None:
        """Counts which features a table of predicted sequences has, why launches were refused, and
        how many sequences each ablation places differently.

        Args:
            table: the sequences, as :func:`predict_until_refused` returns them.
            smids: of each sequence the SM of every block.
            limiters: why a launch of each was refused; None: none was.
        """
        self.found.refused.update(limiter for limiter in limiters if limiter)
        rows = table.cells[table.cells[:, 0] == LAUNCH, 1:]
        unusual = {
            name: int(np.count_nonzero(rows[:, FIELDS.index(name)] != usual))
            for name, usual in _USUAL_CELLS.items()
        }
        ways = {name: launches for name, launches in unusual.items() if launches}
        self.found.ways.update(ways)
        self._tables += 1
        if self._tables > TABLES_AT_FIRST and self._tables % LATER_EVERY:
            return
        for name, variant in self._undecided(ways.keys()):
            if name in self._of_what_waits:  # a sequence of a table ends where a launch first waits
                continue
            self._count(
                name, self._decided(table, smids, variant, ENOUGH - self.found.decided[name])
            )

    def _decided(
        self, table: EventTable, smids: list[Int32Array], variant: DeviceSpec, max_count: int
    ) -> int:
        """Returns how many sequences a device variant places differently, counted up to
        ``max_count``."""
        differing, begin, end = 0, 0, FIRST_PART
        while begin < len(table) and differing < max_count:
            part = table.part(begin, end)
            try:
                _, variant_smids, _ = predict_until_refused(
                    part, variant, self._policy, self._state, self._threads
                )
            except ValueError:  # without the mechanism a launch can never run
                return differing + 1
            pairs = zip(smids[begin:end], variant_smids, strict=True)
            differing += sum(not np.array_equal(a, b) for a, b in pairs)
            begin, end = end, end * LARGER
        return differing

    def look_at(
        self,
        prediction: Trace,
        state: InitialState,
        *,
        asks_ablations: bool = True,
        counted: int = 0,
    ) -> None:
        """Counts the same for one prediction, in which launches behind one that waits count, too.

        Args:
            prediction: of the model.
            state: what it starts from.
            asks_ablations: whether it is also predicted by devices without a mechanism, which takes
                as long as some predictions.
            counted: how many of its first launches a table has counted already.
        """
        self.found.refused.update(
            item.limiter for item in prediction.placements[counted:] if item.limiter
        )
        ways = {"duration"} if prediction.sequence.timed else set()
        for number, launch in enumerate(prediction.sequence.launches):
            ways_of_launch = given_fields(launch).keys() & _WAYS
            ways |= ways_of_launch
            if number >= counted:
                self.found.ways.update(ways_of_launch)
        for event in prediction.sequence:
            if isinstance(event, GraphLaunch):
                self.found.ways["graph"] += len(event.launches)
                if any(isinstance(part, Conditional) for part in event.graph.parts):
                    ways.add("conditional")
            elif isinstance(event, Transfer):
                self.found.ways[transfer_key(event)] += 1
            elif isinstance(event, WaitValue):
                self.found.ways["value"] += 1
                ways.add("value")
        if not asks_ablations:
            return
        if any(isinstance(item, HostFunction) for item in prediction.sequence.transfers):
            ways.add("host_function")
        for name, variant in self._undecided(ways):
            try:
                trace = predict(prediction.sequence, variant, self._policy, state)
            except ValueError:
                self._count(name, 1)
                continue
            pairs = zip(prediction, trace, strict=True)
            self._count(name, any(not np.array_equal(a.smid, b.smid) for a, b in pairs))

    def _undecided(self, ways: Set[str]) -> list[tuple[str, DeviceSpec]]:
        """Returns the ablations, each with its device, that need more sequences and may show with
        these features."""
        decided = self.found.decided
        return [
            (name, variant)
            for name, variant in self._without.items()
            if decided[name] < ENOUGH and shows_in(name) <= ways
        ]

    def _count(self, name: str, sequences: int) -> None:
        self.found.decided[name] = min(ENOUGH, self.found.decided[name] + sequences)


@functools.lru_cache(maxsize=16)
def _without(spec: DeviceSpec) -> tuple[Mapping[str, DeviceSpec], frozenset[str]]:
    """Returns the ablations that change a device, by name; and the names of those that only change
    what waits."""
    without: dict[str, DeviceSpec] = {}
    of_what_waits: set[str] = set()
    for name in ablations():
        variant = ablated(spec, name)
        if replace(variant, name=spec.name) != spec:
            without[name] = variant
            if replace(variant, name=spec.name, launch_order=spec.launch_order) == spec:
                of_what_waits.add(name)
    return without, frozenset(of_what_waits)
