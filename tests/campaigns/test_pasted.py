"""Counterexamples are tests to paste, which fail until the predictor is right."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tbsched.campaigns import ModelGpu, Report, fuzz
from tbsched.campaigns.shrinking.pasted import _names_in, code_of, observing, predicting
from tbsched.comparison.compare import compare
from tbsched.hardware.catalogue import device
from tbsched.hardware.partitions import split_sms
from tbsched.prediction.predict import predict
from tbsched.program.duration import Drawn
from tbsched.program.partition import Partition, SmSplit
from tbsched.program.sequence import (
    Copy,
    Graph,
    Launch,
    Memset,
    RecordEvent,
    Sequence,
    WaitEvent,
)
from tbsched.strategies import programs
from tbsched.traces.placement import DeviceInfo, Placement
from tbsched.traces.trace import Trace

RIGHT = "rtx3090"
WRONG = ("rtx3090", "first_fit")


def campaign(oracle: Any = RIGHT, *predictor: Any, **arguments: Any) -> Report:
    settings = {"seed": 1, "max_examples": 200, "progress": False, **arguments}
    return fuzz(oracle, *(predictor or WRONG), **settings)


class Nameless:
    """The right model, which no code can name."""

    def observe(self, seq: Sequence) -> Trace:
        return predict(seq, RIGHT)


@pytest.mark.parametrize("oracle", [RIGHT, ModelGpu(RIGHT), (RIGHT, "ampere"), device(RIGHT)])
def test_the_code_of_a_counterexample_fails_as_it_should(oracle: object) -> None:
    check_code(campaign(oracle).counterexamples[0].code)


@pytest.mark.parametrize("level", ["occupancy", "exact"])
def test_the_code_holds_the_observation_of_an_oracle_that_has_no_name(level: str) -> None:
    code = campaign(Nameless(), level=level).counterexamples[0].code
    assert "seen = " in code
    check_code(code)


def check_code(code: str) -> None:
    def run(text: str) -> None:
        names: dict[str, object] = {}
        exec(text, names)
        (test,) = (value for name, value in names.items() if name.startswith("test_"))
        test()  # type: ignore[operator]

    with pytest.raises(AssertionError):
        run(code)
    run(code.replace(', policy="first_fit"', ""))


def test_the_code_names_a_device_as_it_was_given(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('extends = "rtx3090"\n')
    mine = dataclasses.replace(
        device(RIGHT),
        name="mine",
        warps_per_sm=32,
        mechanisms=dataclasses.replace(device(RIGHT).mechanisms, warp_skip=False),
    )
    code = campaign(path, path, "first_fit").counterexamples[0].code
    assert f'predict(seq, "{path}", policy="first_fit"), predict(seq, "{path}")' in code
    check_code(code)
    code = campaign(mine, mine, "first_fit").counterexamples[0].code
    check_code(code)
    assert "replace(device(\"rtx3090\"), name='mine', warps_per_sm=32, mechanisms=replace(" in code
    assert ".mechanisms, warp_skip=False))" in code


def test_the_code_names_the_latent_state() -> None:
    states = device("h200").initial_states()
    oracle = ModelGpu("h200", initial_state=states[7])
    (found,) = campaign(oracle, "h200", level="exact", initial_state=states[0]).counterexamples
    assert f"initial_state={states[0]!r}), predict(seq" in found.code
    assert f"initial_state={states[7]!r})).exact" in found.code
    names: dict[str, Any] = {}
    exec(found.code.replace(repr(states[0]), repr(states[7])), names)
    next(value for name, value in names.items() if name.startswith("test_"))()


def test_the_code_of_a_counterexample_on_a_gpu_observes() -> None:
    class Gpu(Nameless):
        pass

    assert "observe(seq)).occupancy" in campaign(Gpu()).counterexamples[0].code


def test_timed_programs_are_compared_and_shrink() -> None:
    report = campaign(strategy=programs(RIGHT), max_examples=50)
    (found,) = report.counterexamples
    assert found.shrunk
    (launch,) = found.sequence.launches
    assert (launch.stream, launch.duration) == (None, 1e-6)
    check_code(found.code)


def test_graphs_and_partitions_need_their_own_imports() -> None:
    node = Launch(1, 32, 32, duration=1e-6, partition=Partition((0,), split=SmSplit(1)))
    names = {"Graph", "Launch", "Partition", "SmSplit"}
    assert {*_names_in(Graph([node]).launch())} == names
    graph = Graph([node, Copy(8, "h2d"), Memset(8)])
    assert {*_names_in(graph.launch())} == {*names, "Copy", "Memset"}


def test_the_code_imports_what_the_sequence_is_made_of() -> None:
    drawn = Launch(133, 32, 32, stream=1, duration=Drawn("uniform", 1e-5))
    seq = Sequence([RecordEvent(0, 1), WaitEvent(0, 2), drawn])
    diff = compare(predict(seq, *WRONG), predict(seq, RIGHT))
    model = predicting(*WRONG, state=None)
    check_code(code_of(diff, "occupancy", model, observing(RIGHT), "rtx3090"))


def test_the_code_has_the_partition_as_a_driver_is_asked_for_it() -> None:
    group = split_sms("h200", 8)[0][3]
    seq = Sequence([Launch(16, 1024, 32, partition=group, cooperative=True)])
    diff = compare(predict(seq, "h200", "first_fit"), predict(seq, "h200"))
    model = predicting("h200", "first_fit", state=None)
    code = code_of(diff, "exact", model, observing("h200"), "h200")
    assert "from tbsched import Launch, Partition, Sequence, SmSplit, compare, predict" in code
    assert "split=SmSplit(min_sms=8), group=3)" in code
    check_code(code)


def test_the_code_has_graphs() -> None:
    node = Launch(1, 32, 32, duration=1e-6)
    seq = Sequence([Graph([node, node], [(0, 1)]).launch(stream=2)])
    placement = Placement(np.zeros(1, np.int32))
    trace = Trace(seq, DeviceInfo("one", 1), (placement,) * 2)
    diff = compare(trace, trace)
    code = code_of(diff, "exact", predicting("h200", None, None), None, "h200")
    assert "from tbsched import Graph, Launch, Sequence, predict" in code
    names: dict[str, Any] = {}
    exec("from tbsched import Graph, Launch, Sequence", names)
    assert eval(repr(seq), names) == seq
