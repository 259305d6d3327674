"""Sequences as rows of numbers: the same ones, predicted and explained the same."""

from __future__ import annotations

import numpy as np
import pytest

from tbsched import Launch, Release, Sequence, Trace, predict
from tbsched.campaigns import ModelGpu, SequenceOptions
from tbsched.campaigns.judge import Judge
from tbsched.campaigns.space.draws import DrawnTable, Draws
from tbsched.hardware.catalogue import device
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.tables import matching_states, predict_until_refused
from tbsched.program.arrays import Int32Array
from tbsched.program.event_table import FIELDS, LAUNCH, RELEASE, EventTable
from tbsched.program.partition import Partition

H200 = device("h200")
RICH = SequenceOptions(
    carveouts=(100, None, 0), local_memory=(0, 2048), clusters=(1, 2, 4), priorities=(0, -1)
)


def drawn(options: SequenceOptions = RICH, spec: DeviceSpec = H200, seed: int = 7) -> DrawnTable:
    return next(Draws(spec, options, seed).tables()).part(20, 84)


def events(table: EventTable, number: int) -> list[Launch | Release]:
    """Read by the documentation of the table alone."""
    found: list[Launch | Release] = []
    for kind, *cells in table.cells[table.bounds[number] : table.bounds[number + 1]].tolist():
        if kind == RELEASE:
            found.append(Release(cells[0]))
            continue
        assert kind == LAUNCH
        values = dict(zip(FIELDS, cells, strict=True))
        carveout, partition = values.pop("carveout"), values.pop("partition")
        values["cooperative"] = bool(values["cooperative"])
        if partition >= 0:
            values["partition"] = table.partitions[partition]
        found.append(Launch(**values, carveout=None if carveout < 0 else carveout))
    return found


def flat(trace: Trace, launches: int) -> Int32Array:
    return np.concatenate([placement.smid for placement in trace.placements[:launches]])


@pytest.mark.parametrize("options", [RICH, SequenceOptions(), SequenceOptions(releases=False)])
def test_a_table_has_the_sequences_that_are_built_one_by_one(options: SequenceOptions) -> None:
    table = drawn(options).event_table()
    assert len(table) == 64
    for number in range(len(table)):
        sequence = drawn(options).draw(number).sequence
        assert events(table, number) == list(sequence.events)
        assert table.launches[number] == len(sequence.launches)
    blocks = [
        launch.blocks for k in range(64) for launch in drawn(options).draw(k).sequence.launches
    ]
    assert table.launch_blocks.tolist() == blocks


def test_parts_of_a_table_keep_its_partitions() -> None:
    cooperative = (LAUNCH, 2, 32, 16, 0, 0, -1, 1, 0, 1, 1)
    cells = np.array([cooperative, (*cooperative[:-2], -1, 0)], np.int32)
    table = EventTable(cells, np.array([0, 1, 2]), (Partition((1,)), Partition((0, 5))))
    expected = Launch(2, 32, 16, partition=Partition((0, 5)), cooperative=True)
    state = H200.initial_states()[0]
    for part in (table.chosen(np.array([True, False])), table.first_events(np.array([1, 0]))):
        assert events(part, 0) == [expected]
        _, (smid, *_), _ = predict_until_refused(part, H200, "hopper", state, 1)
        assert sorted(smid.tolist()) == [0, 5]


def test_parts_of_a_table() -> None:
    table = drawn().event_table()
    sizes = np.diff(table.bounds)
    some = np.arange(64) % 3 == 0
    chosen = table.chosen(some)
    assert [events(chosen, k) for k in range(len(chosen))] == [
        events(table, k) for k in range(0, 64, 3)
    ]
    half = table.first_events((sizes + 1) // 2)
    for number, size in enumerate(sizes.tolist()):
        assert events(half, number) == events(table, number)[: (size + 1) // 2]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", ["h200", "rtx3090"])
def test_predictions_are_those_of_one_by_one_until_the_gpu_is_full(name: str, threads: int) -> None:
    spec = device(name)
    table = drawn(RICH if name == "h200" else SequenceOptions(), spec)
    judge = Judge(ModelGpu(spec), spec, None, None, "exact", False, False)
    short, smids, _ = predict_until_refused(
        table.event_table(), spec, spec.policy, judge.states[0], threads
    )
    cut = 0
    for number in range(len(table)):
        sequence = table.draw(number).sequence
        expected = judge.predict(sequence)
        assert events(short, number) == list(expected.sequence.events)
        assert (smids[number] == flat(expected, len(expected.placements))).all()
        cut += len(expected.sequence.events) < len(sequence.events)
    assert 10 < cut < 60


def test_states_that_explain_are_found_for_each() -> None:
    states = H200.initial_states()
    table = drawn(SequenceOptions(min_launches=6)).event_table()
    short, _, _ = predict_until_refused(table, H200, "hopper", states[0], 1)
    seen = []
    for number in range(len(short)):
        state = states[number % len(states)]
        sequence = Sequence(events(short, number))
        seen.append(flat(predict(sequence, H200, initial_state=state), len(sequence.launches)))
    seen[5] = np.zeros_like(seen[5])
    found = matching_states(short, seen, H200, "hopper", states, 2)
    assert found[5] is None
    for number, state in enumerate(found):
        if number == 5:
            continue
        assert state is not None
        assert states.index(state) <= number % len(states)
        sequence = Sequence(events(short, number))
        again = predict(sequence, H200, initial_state=state)
        assert (flat(again, len(sequence.launches)) == seen[number]).all()


def test_what_makes_no_sense_is_refused() -> None:
    table = drawn().event_table()
    state = H200.initial_states()[0]

    def refused(cells: object, bounds: object, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            predict_until_refused(EventTable(cells, bounds), H200, "hopper", state, 1)  # type: ignore[arg-type]

    refused(table.cells[:, :10].copy(), table.bounds, "11 columns")
    refused(table.cells, table.bounds[:0], "one bound more")
    refused(table.cells, table.bounds[::-1].copy(), "sequence 0: bounds: .* ascending")
    refused(table.cells, table.bounds + len(table.cells), "sequence 0: bounds")
    absent = table.cells.copy()
    absent[0, FIELDS.index("partition") + 1] = 0
    refused(absent, table.bounds, "sequence 0: cells: there is no partition 0")
    refused(table.cells + 2, table.bounds, "sequence 0: cells: 2 is no kind of event")
    wrong = table.cells.copy()
    wrong[0, 2] = 4096
    refused(wrong, table.bounds, "sequence 0: launch 0: threads")
    with pytest.raises(ValueError, match=r"an array for each of \d+ sequences is needed; got 0"):
        matching_states(table, [], H200, "hopper", [state], 1)
    clusters = drawn(SequenceOptions(clusters=(2,))).event_table()
    with pytest.raises(ValueError, match=r"sequence 0: .*places single blocks only"):
        predict_until_refused(clusters, H200, "most_room", state, 1)
