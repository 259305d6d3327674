"""The claims of the RTAS 2020 paper, recorded on an H200 and an H100.

``cells-*``: Tables II to IV, and section III-C2: blocks held until all are placed.
``timed-*``: streams, hardware queues, priorities, the default stream: blocks that end by
themselves. Nobody chose what is in them: they are all that ran, or the first run of each.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools

import numpy as np
import pytest

from conformance.papers import hierarchy
from helpers import ROOT
from tbsched.comparison.times import compare_times
from tbsched.hardware.catalogue import device
from tbsched.papers.published_rules import (
    joins_on_equal_sms,
    joins_on_idle_sms,
    joins_on_last_idle_sm,
)
from tbsched.prediction.predict import predict_as_recorded, predict_many
from tbsched.traces.files import load_traces
from tbsched.traces.trace import Trace

GPUS = ("h200", "h100")
MODEL = device("h200")
WARPS = range(1, 33)
CELLS = tuple(itertools.product(WARPS, WARPS))


@functools.cache
def recorded(gpu: str, what: str) -> dict[str, Trace]:
    path = ROOT / "tests" / "traces" / "hierarchy" / f"{what}-{gpu}.jsonl.xz"
    return {trace.id: trace for trace in load_traces(path)}


def join(trace: Trace) -> bool:
    """Whether the last two blocks share an SM."""
    assert trace[-2].placed
    assert trace[-1].placed
    return int(trace[-2].smid[0]) == int(trace[-1].smid[0])


def test_recordings_are_of_the_sequences_that_the_script_makes() -> None:
    """But for those about bounds, which it takes longest to make."""
    made = hierarchy.cells(MODEL.sms)
    timed = {
        f"{name}-q{queues}-0": program
        for queues in (1, 2, 4, 8)
        for about, name, program in itertools.takewhile(
            lambda row: row[0] != "bounds", hierarchy.programs(MODEL.sms, queues)
        )
    }
    for gpu in GPUS:
        assert {name: trace.sequence for name, trace in recorded(gpu, "cells").items()} == made
        recordings = recorded(gpu, "timed")
        assert all(recordings[name].sequence == timed[name] for name in timed.keys() & recordings)
        assert len(timed.keys() & recordings) == 66


def test_all_cells_are_as_predicted_in_blocks_per_sm() -> None:
    one, other = (recorded(gpu, "cells") for gpu in GPUS)
    assert len(one) == 5 * 1024 + 2 * 200 + 270 + 11
    predicted = predict_many([trace.sequence for trace in one.values()], MODEL)
    for prediction, trace in zip(predicted, one.values(), strict=True):
        for placed, *seen in zip(prediction, trace, other[trace.id], strict=True):
            blocks = placed.occupancy(MODEL.sms)
            assert all((row.occupancy(MODEL.sms) == blocks).all() for row in seen)


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize(
    ("table", "warps_per_sm", "placed", "shaded"),
    [
        ("II", 64, 1024, 197),
        ("II_default", 64, 1024, 197),
        ("III", 32, 1024, 167),
        # Without a carveout blocks of less than 8 warps ask for more shared memory than the SMs are
        # configured to.
        ("III_default", 32, 625, 40),
    ],
)
def test_tables_2_and_3_are_shaded_on_hopper(
    gpu: str, table: str, warps_per_sm: int, placed: int, shaded: int
) -> None:
    """Table III is of SMs with 32 warps: on each SM of Hopper a block of 32 comes first."""
    traces = {(x, y): recorded(gpu, "cells")[f"{table}_{x}_{y}"] for x, y in CELLS}
    joined = {cell: join(trace) for cell, trace in traces.items() if trace[-1].placed}
    assert (len(joined), sum(joined.values())) == (placed, shaded)
    assert joined == {cell: joins_on_equal_sms(warps_per_sm, 0, *cell) for cell in joined}
    least = 8 if table == "III_default" else 1
    assert joined.keys() == {(x, y) for x, y in CELLS if min(x, y) >= least}


@pytest.mark.parametrize("gpu", GPUS)
def test_table_4_differs_on_hopper_where_it_does_on_the_model_of_xavier(gpu: str) -> None:
    traces = recorded(gpu, "cells")
    wrong, wrong_first, wrong_in_turn = [], 0, []
    for x, y in CELLS:
        trace = traces[f"IV_{x}_{y}"]
        idle = int(trace[1].smid[0]) not in trace[0].smid
        # The paper tries equation 3 first: here of the first block's SM alone.
        published = joins_on_equal_sms(64, 0 if idle else 6, x, y)
        if idle:
            published = published or joins_on_last_idle_sm(64, 6, x, y)
        wrong_first += published != join(trace)
        # And here of each SM in turn, as in its example of Figure 5.
        in_turn = joins_on_idle_sms(64, 6 + x, y)
        if idle:
            in_turn = published and not joins_on_idle_sms(64, 6, y)
        if in_turn != join(trace):
            wrong_in_turn.append((x, y))
        if idle and joins_on_last_idle_sm(64, 6, x, y) != join(trace):
            wrong.append((x, y))
    assert wrong == [(x, 1) for x in range(1, 6)]
    assert wrong_first == 193
    assert wrong_in_turn == wrong


@pytest.mark.parametrize("gpu", GPUS)
def test_shared_memory_of_a_first_block_never_moves_a_second_one_without(gpu: str) -> None:
    """The paper has it from 3 KB on, in steps of 256 bytes."""
    traces = recorded(gpu, "cells")
    moved: dict[tuple[str, ...], set[bool]] = {}
    for trace_id, trace in traces.items():
        if trace_id.startswith("shared"):
            moved.setdefault(tuple(trace_id.split("_")[:4]), set()).add(join(trace))
    assert sorted(map(len, moved.values())) == [1] * 10


@pytest.mark.parametrize("gpu", GPUS)
def test_registers_matter_from_33_on(gpu: str) -> None:
    traces = recorded(gpu, "cells")

    def joined(registers: int) -> list[bool]:
        return [join(t) for name, t in traces.items() if name.startswith(f"registers_{registers}_")]

    assert joined(16) == joined(24) == joined(32) != joined(33)


# -- streams, queues, priorities, the default stream -----------------------------------------------


def alike(gpu: str, about: str, **changes: object) -> tuple[float, float]:
    """Shares of pairs of launches that overlap as recorded, and of blocks that start so."""
    found = []
    for trace in recorded(gpu, "timed").values():
        if trace.extra["about"] != about:
            continue
        spec = dataclasses.replace(MODEL, **changes)  # type: ignore[arg-type]
        found.append(compare_times(predict_as_recorded(trace, spec), trace, tolerance=0.1))
    return (
        sum(diff.pairs_agreeing for diff in found) / sum(diff.pairs for diff in found),
        sum(diff.starts_agreeing for diff in found) / sum(diff.blocks for diff in found),
    )


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("about", ["priorities", "default_stream", "streams"])
def test_launches_overlap_as_predicted(gpu: str, about: str) -> None:
    pairs, _ = alike(gpu, about, hardware_queues=8)
    assert pairs > 0.9995


@pytest.mark.parametrize("gpu", GPUS)
def test_without_priorities_launches_start_at_other_times(gpu: str) -> None:
    assert alike(gpu, "priorities")[1] > 0.99
    assert alike(gpu, "priorities", launch_order="fifo")[1] < 0.7


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("queues", [1, 2, 4, 8])
def test_false_dependencies_are_those_of_as_many_queues_as_there_are(gpu: str, queues: int) -> None:
    """As many streams, one more, and twice as many."""
    about = f"queues{queues}"
    assert alike(gpu, about, hardware_queues=queues)[0] > 0.98
    assert alike(gpu, about, hardware_queues=4 * queues)[0] < 0.95


@pytest.mark.parametrize("gpu", GPUS)
def test_all_six_priorities_are_told_apart(gpu: str) -> None:
    """Six launches that each fill the GPU wait for a seventh, in an order of chance."""
    orders = [t for name, t in recorded(gpu, "timed").items() if name.startswith("six")]
    assert len(orders) == 4
    for trace in orders:
        starts = [int(placement.start_ns.min()) for placement in trace]  # type: ignore[union-attr]
        waiting = sorted(range(1, 7), key=starts.__getitem__)
        assert [trace.sequence.launches[k].priority for k in waiting] == [-5, -4, -3, -2, -1, 0]


@pytest.mark.parametrize("gpu", GPUS)
def test_a_more_urgent_launch_comes_where_blocks_end_and_not_sooner(gpu: str) -> None:
    """Blocks of 60 us fill the GPU, four after each other; a more urgent launch needs it all."""
    trace = recorded(gpu, "timed")["boundary-q8-0"]
    low, high = trace
    assert low.start_ns is not None
    assert low.end_ns is not None
    assert high.start_ns is not None
    begin = low.start_ns.min()
    first = low.start_ns < begin + 30_000
    assert first.sum() == 264
    assert high.start_ns.min() > low.end_ns[first].min()
    assert high.start_ns.max() < low.start_ns[~first].min()


@pytest.mark.parametrize("gpu", GPUS)
def test_128_launches_are_resident(gpu: str) -> None:
    trace = recorded(gpu, "timed")["grids-q8-0"]
    starts = np.array([placement.start_ns.min() for placement in trace])  # type: ignore[union-attr]
    ends = np.array([placement.end_ns.min() for placement in trace])  # type: ignore[union-attr]
    assert len(trace) == 132
    assert starts[127] < ends.min() < starts[128]
