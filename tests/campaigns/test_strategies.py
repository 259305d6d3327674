"""What the strategies draw can run, and shrinks to what a person would have written."""

from __future__ import annotations

import collections
import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from helpers import examples, gpu, run_python
from tbsched.campaigns.space.draws import Draws
from tbsched.campaigns.space.limits import most_at_once
from tbsched.hardware.catalogue import device, devices
from tbsched.hardware.partitions import split_sms
from tbsched.prediction.predict import predict
from tbsched.prediction.tables import predict_until_refused
from tbsched.program.duration import Drawn
from tbsched.program.event_table import FIELDS, LAUNCH, EventTable
from tbsched.program.events.cuda_events import RecordEvent, WaitEvent
from tbsched.program.sequence import (
    LEGACY_STREAM,
    Copy,
    Event,
    Graph,
    GraphLaunch,
    HostFunction,
    Launch,
    Memset,
    Release,
    Sequence,
    Synchronize,
    WaitValue,
)
from tbsched.strategies import SequenceOptions, launches, prefixes, programs, sequences

REPEATABLE = settings(deadline=None, derandomize=True, max_examples=examples(150))
# Looks for one sequence, and for no other once it is found.
ONCE = settings(deadline=None, database=None, derandomize=True, report_multiple_bugs=False)
EVERYTHING = SequenceOptions(
    carveouts=(100, None, 0, 50),
    local_memory=(0, 4096),
    clusters=(1, 2, 4, 8, 16),
    priorities=(0, -1),
    cooperative=(False, True),
    min_registers=1,
)
ON_AN_H200 = SequenceOptions.everything(device("h200"))
ODD = {
    "one-sm": gpu(1),
    "few-registers": gpu(2, registers_per_sm=4 * 512),
    "few-warps": gpu(3, warps_per_sm=4, threads_per_block=1024),
    "no-shared-memory": gpu(
        2,
        shared_memory_per_block=0,
        shared_memory_reserve=0,
        shared_memory_configurations=(0,),
    ),
}
SPECS = {name: device(name) for name in devices()} | ODD
SMALLEST = Launch(1, 32, 32, carveout=100)


@pytest.mark.parametrize("options", [SequenceOptions(), EVERYTHING], ids=["default", "everything"])
@pytest.mark.parametrize("name", SPECS)
def test_every_drawn_sequence_can_run(name: str, options: SequenceOptions) -> None:
    spec = SPECS[name]

    @REPEATABLE
    @given(sequences(spec, options), launches(spec, options))
    def holds(sequence: Sequence, launch: Launch) -> None:
        spec.check(sequence)
        spec.check(Sequence([launch]))
        assert 1 <= len(sequence.launches) <= options.max_launches

    holds()


def test_without_releases_none_is_drawn() -> None:
    @REPEATABLE
    @given(sequences("h200", SequenceOptions(releases=False)))
    def holds(sequence: Sequence) -> None:
        assert len(sequence) == len(sequence.launches)

    holds()


def test_the_number_of_launches_is_bounded_on_both_sides() -> None:
    @REPEATABLE
    @given(sequences("h200", SequenceOptions(min_launches=3, max_launches=4)))
    def holds(sequence: Sequence) -> None:
        assert 3 <= len(sequence.launches) <= 4

    holds()


@pytest.mark.parametrize("kind", ["blocks", "threads", "registers", "shared_memory"])
def test_boundaries_are_drawn_often(kind: str) -> None:
    spec = device("h200")
    wanted = {
        "blocks": lambda launch: launch.blocks % 132 in (0, 1, 131),
        "threads": lambda launch: launch.threads % 128 in (0, 1, 127),
        "registers": lambda launch: launch.registers % 8 == 0,
        "shared_memory": lambda launch: 228 * 1024 % (launch.shared_memory + 1024) < 33 * 128,
    }[kind]
    seen: list[bool] = []

    @settings(REPEATABLE, max_examples=500)
    @given(launches(spec))
    def draw(launch: Launch) -> None:
        seen.append(wanted(launch))

    draw()
    assert sum(seen) > 0.1 * len(seen)


def smallest(holds: object, options: SequenceOptions | None = None) -> Sequence:
    found: Sequence = find(
        sequences("h200", options),
        holds,  # type: ignore[arg-type]
        settings=settings(ONCE, max_examples=3000),
    )
    return found


def test_any_sequence_shrinks_to_one_block_of_one_warp() -> None:
    assert smallest(lambda sequence: True) == Sequence([SMALLEST])


def test_three_launches_shrink_to_three_smallest_ones_without_releases() -> None:
    assert smallest(lambda sequence: len(sequence.launches) >= 3) == Sequence([SMALLEST] * 3)


def test_a_release_shrinks_to_one_release_between_two_launches() -> None:
    found = smallest(lambda sequence: any(isinstance(event, Release) for event in sequence))
    assert found == Sequence([SMALLEST, Release(0), SMALLEST])


@pytest.mark.parametrize(
    ("field", "least", "expected"),
    [
        ("blocks", 132, 132),
        ("blocks", 133, 133),
        ("threads", 1024, 1024),
        ("threads", 129, 129),
        ("registers", 255, 255),
        ("shared_memory", 227 * 1024, 227 * 1024),
    ],
)
def test_one_large_number_shrinks_alone(field: str, least: int, expected: int) -> None:
    found = smallest(
        lambda sequence: any(getattr(launch, field) >= least for launch in sequence.launches)
    )
    (launch,) = found.launches
    others = {"blocks": 1, "threads": 32, "registers": 32, "shared_memory": 0}
    assert {name: getattr(launch, name) for name in others} == {**others, field: expected}


def test_options_shrink_to_their_first_value() -> None:
    (launch,) = smallest(
        lambda sequence: any(each.partition is not None for each in sequence.launches), ON_AN_H200
    ).launches
    assert launch.partition == min(filter(None, ON_AN_H200.partitions), key=len)
    (launch,) = smallest(
        lambda sequence: any(each.cooperative for each in sequence.launches), ON_AN_H200
    ).launches
    assert launch == replace(SMALLEST, cooperative=True)


@REPEATABLE
@given(st.data())
def test_clusters_divide_the_blocks_and_fit_the_device(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(("h200", "rtx3090")))
    launch = data.draw(launches(name, EVERYTHING))
    assert launch.blocks % launch.cluster == 0
    assert launch.cluster <= device(name).max_cluster


def test_what_is_drawn_in_partitions_and_cooperatively_fits_them() -> None:
    spec = device("h200")
    table = next(Draws(spec, ON_AN_H200, seed=1).tables()).event_table()
    # Refuses clusters that do not fit, and cooperative launches that never will.
    predict_until_refused(table, spec, spec.policy, spec.initial_states()[0], threads=1)
    rows = table.cells[table.cells[:, 0] == LAUNCH, 1:]
    alone = most_at_once([spec], rows, table.partitions)
    blocks, cluster, partition, together = (
        rows[:, FIELDS.index(name)] for name in ("blocks", "cluster", "partition", "cooperative")
    )
    first = np.flatnonzero(table.cells[:, 0] == LAUNCH)[together == 1]
    cells = table.cells[first]
    each = EventTable(cells, np.arange(len(cells) + 1), table.partitions)
    _, smids, _ = predict_until_refused(each, spec, spec.policy, spec.initial_states()[0], 1)
    assert all((smid >= 0).all() for smid in smids)
    assert (blocks[together == 1] == alone[together == 1]).mean() > 0.1
    inside = partition >= 0
    # A sixth of the launches, with every number of blocks and all that fits.
    assert 0.1 < inside.mean() < 0.25
    assert {*partition[inside]} == {*range(len(table.partitions))}
    assert {*cluster[inside]} >= {1, 2, 4, 8}
    assert (blocks[inside] > alone[inside]).any()


def test_partitions_overlap_and_are_those_that_a_driver_can_give() -> None:
    partitions = [each for each in ON_AN_H200.partitions if each is not None]
    assert ON_AN_H200.partitions.count(None) == len(partitions) > 10
    splits = {each.split for each in partitions if each.split is not None}
    assert {(split.ignore_coscheduling, split.max_cluster) for split in splits} == {
        (False, False), (True, False), (False, True),
    }  # fmt: skip
    assert any(each.group is None for each in partitions)
    a, b = partitions[-1], partitions[-2]
    assert {*a.sms} & {*b.sms} not in ({*a.sms}, {*b.sms}, set())
    assert SequenceOptions.everything(device("rtx3090")).partitions == (None,)


def test_clusters_of_one_size_are_left_out_of_partitions_that_do_not_take_it() -> None:
    small = split_sms("h200", 10, ignore_coscheduling=True)[0][0]
    options = SequenceOptions(clusters=(4, 8), partitions=(small,))
    flat = [
        launch
        for draw in itertools.islice(Draws(device("h200"), options, seed=1), 20)
        for launch in draw.sequence.launches
    ]
    assert {launch.cluster for launch in flat} == {1}


# -- timed programs -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SPECS)
def test_every_drawn_program_can_run(name: str) -> None:
    spec = SPECS[name]

    @settings(REPEATABLE, max_examples=40)
    @given(programs(spec, EVERYTHING))
    def holds(program: Sequence) -> None:
        spec.check(program)
        assert program.timed
        assert 1 <= len(program.launches) <= EVERYTHING.max_launches

    holds()


def test_programs_are_predicted() -> None:
    @settings(REPEATABLE, max_examples=40)
    @given(programs("rtx3090"))
    def holds(program: Sequence) -> None:
        assert (predict(program, "rtx3090").timeline["sm"] >= 0).all()

    holds()


def test_a_stream_of_a_program_has_one_priority_and_the_legacy_stream_the_usual_one() -> None:
    @REPEATABLE
    @given(programs("h200", EVERYTHING))
    def holds(program: Sequence) -> None:
        of_stream: dict[object, set[int]] = collections.defaultdict(set)
        for launch in program.launches:
            if launch.stream is not None:
                of_stream[launch.stream].add(launch.priority)
        assert of_stream.pop(LEGACY_STREAM, {0}) == {0}
        assert all(len(priorities) == 1 for priorities in of_stream.values())

    holds()


def test_a_stream_of_a_partition_is_non_blocking_and_graphs_are_on_the_whole_gpu() -> None:
    @REPEATABLE
    @given(programs("h200"))
    def holds(program: Sequence) -> None:
        for event in program:
            if isinstance(event, Launch) and event.partition is not None:
                assert event.non_blocking
                assert event.stream != LEGACY_STREAM
            if isinstance(event, GraphLaunch):
                assert all(
                    node.partition is None and not node.cooperative for node in event.launches
                )

    holds()


WANTED: dict[str, Callable[[Event], bool]] = {
    **{
        kind.__name__: lambda event, kind=kind: isinstance(event, kind)  # type: ignore[misc]
        for kind in get_args(Event)
        # Launches with durations end by themselves.
        if kind is not Release
    },
    "legacy launch": lambda e: isinstance(e, Launch) and e.stream == LEGACY_STREAM,
    "legacy record": lambda e: isinstance(e, RecordEvent) and e.stream == LEGACY_STREAM,
    "legacy wait": lambda e: isinstance(e, WaitEvent) and e.stream == LEGACY_STREAM,
    "numbered": lambda e: isinstance(e, Launch) and isinstance(e.stream, int),
    "own stream": lambda e: isinstance(e, Launch) and e.stream is None,
    "urgent": lambda e: isinstance(e, Launch) and e.priority < 0,
    "urgent, numbered": lambda e: (
        isinstance(e, Launch) and e.priority < 0 and isinstance(e.stream, int)
    ),
    "alike": lambda e: isinstance(e, Launch) and isinstance(e.duration, float),
    "each": lambda e: isinstance(e, Launch) and isinstance(e.duration, tuple),
    "drawn": lambda e: isinstance(e, Launch) and isinstance(e.duration, Drawn),
    "most urgent": lambda e: isinstance(e, Launch) and e.priority == -5,
    **{
        name: lambda e, name=name: isinstance(e, Launch) and getattr(e, name) not in (None, False)  # type: ignore[misc]
        for name in (
            "partition", "cooperative", "non_blocking", "programmatic", "trigger", "memory_wait",
            "completion_event",
        )
    },
    **{
        kind.__name__: lambda e, kind=kind: (  # type: ignore[misc]
            isinstance(e, GraphLaunch) and any(isinstance(node, kind) for node in e.graph.nodes)
        )
        for kind in (Copy, Memset, RecordEvent, WaitEvent)
    },
    "memory": lambda e: isinstance(e, GraphLaunch) and e.graph.memory,
    "function node": lambda e: (
        isinstance(e, GraphLaunch) and any(isinstance(n, HostFunction) for n in e.graph.nodes)
    ),
    "child graph": lambda e: isinstance(e, GraphLaunch) and e.graph.is_nested,
    "wait for more than 0": lambda e: isinstance(e, WaitValue) and e.value > 0,
    "copy first": lambda e: isinstance(e, GraphLaunch) and isinstance(e.graph.nodes[0], Copy),
    "edges": lambda e: isinstance(e, GraphLaunch) and e.graph.edges,
    "legacy graph": lambda e: isinstance(e, GraphLaunch) and e.stream == LEGACY_STREAM,
    "roots": lambda e: isinstance(e, GraphLaunch) and len(e.launches) > 1 and not e.graph.edges,
    "other host": lambda e: not isinstance(e, Release) and e.host > 0,
    "synchronize": lambda e: e == Synchronize(),
    "synchronize stream": lambda e: isinstance(e, Synchronize) and e.stream is not None,
    "synchronize event": lambda e: isinstance(e, Synchronize) and e.event is not None,
    "non-blocking graph": lambda e: isinstance(e, GraphLaunch) and e.non_blocking,
}  # fmt: skip


def test_programs_have_every_kind_of_event_and_of_launch() -> None:
    seen: collections.Counter[str] = collections.Counter()

    @settings(REPEATABLE, max_examples=300)
    @given(programs("h200"))
    def look(program: Sequence) -> None:
        for event in program:
            seen.update(name for name, holds in WANTED.items() if holds(event))
        graphs = [event.graph for event in program if isinstance(event, GraphLaunch)]
        seen["twice"] += len(graphs) - len({*graphs})

    look()
    assert all(seen[name] >= 10 for name in (*WANTED, "twice")), seen


def test_a_program_shrinks_to_one_launch_and_the_event_that_matters() -> None:
    def smallest_program(holds: Callable[[Sequence], bool]) -> Sequence:
        return find(programs("h200"), holds, settings=settings(ONCE, max_examples=2000))

    only = Launch(1, 32, 32, carveout=100, duration=1e-6)
    assert smallest_program(
        lambda program: any(isinstance(event, WaitEvent) for event in program)
    ) == Sequence([WaitEvent(0, 0), only])
    assert smallest_program(
        lambda program: any(isinstance(event, GraphLaunch) for event in program)
    ) == Sequence([Graph([only]).launch(stream=0)])
    dependent = smallest_program(
        lambda program: any(launch.programmatic for launch in program.launches)
    )
    assert dependent == Sequence([replace(only, stream=0, programmatic=True)])


# -- the rest of the public surface ---------------------------------------------------------------


def test_prefixes_shrink_towards_the_first_launch_of_the_first_sequence() -> None:
    one, two = Sequence([SMALLEST]), Sequence([SMALLEST, Release(0), Launch(2, 64, 32)])
    assert find(prefixes([two, one]), lambda _: True, settings=ONCE) == one
    assert find(prefixes([one, two]), lambda found: len(found) == 3, settings=ONCE) == two


@pytest.mark.parametrize("strategy", [launches, sequences, programs])
def test_options_of_another_type_are_refused(strategy: Callable[..., object]) -> None:
    with pytest.raises(TypeError, match="options: a SequenceOptions is needed, got 3"):
        strategy("h200", 3)
    with pytest.raises(ValueError, match="h2000"):
        strategy("h2000")


def test_without_hypothesis_the_words_say_what_to_install() -> None:
    code = "import sys; sys.modules['hypothesis'] = None; import tbsched.strategies"
    found = run_python(code, check=False)
    words = "ImportError: tbsched's strategies need Hypothesis: pip install hypothesis"
    assert words in found.stderr


def test_the_rest_of_campaigns_does_not_need_hypothesis() -> None:
    code = (
        "import sys; sys.modules['hypothesis'] = None;"
        "from tbsched.campaigns import *;"
        "import tbsched.campaigns.judge, tbsched.campaigns.space.draws"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
    )
