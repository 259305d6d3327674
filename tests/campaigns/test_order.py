"""Programs that a GPU has run are compared by the order of their launches."""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import strategies as st

from helpers import ROOT
from lab.timed.event_campaign import AsGpu, Drawn
from tbsched import views
from tbsched.campaigns import fuzz, order_differs
from tbsched.campaigns.judge import RUNS_IN_ORDER
from tbsched.hardware.catalogue import ablated, device
from tbsched.prediction.predict import predict
from tbsched.program.sequence import (
    HostFunction,
    Launch,
    Sequence,
    Synchronize,
    WaitValue,
    WriteValue,
)
from tbsched.traces.files import load_traces
from tbsched.traces.trace import Trace

HOSTS = ROOT / "tests" / "traces" / "hosts"
gpus = pytest.mark.parametrize("gpu", ["h100", "h200"])
FREE = ablated(device("h200"), "free-host-functions")


def kernel(stream: int, us: float = 100.0) -> Launch:
    return Launch(8, 128, 32, stream=stream, duration=us * 1e-6)


TWO_FUNCTIONS = Sequence(
    event
    for stream in range(2)
    for event in (kernel(stream), HostFunction(1e-4, stream=stream), kernel(stream))
)


@functools.cache
def recorded(gpu: str) -> list[tuple[Trace, Trace]]:
    traces = iter(load_traces(HOSTS / f"events-{gpu}.jsonl.xz"))
    return list(zip(traces, traces, strict=True))


@gpus
def test_the_model_explains_the_order_of_recorded_programs(gpu: str) -> None:
    """In both runs alike: of 200 programs each, none differs."""
    for first, again in recorded(gpu)[::4]:
        pairs = order_differs(first, gpu)
        assert not (pairs and {*pairs} & {*order_differs(again, gpu)})


def test_recorded_programs_contradict_functions_that_run_at_the_same_time() -> None:
    """Numbers of programs: found where the model without that rule differs in both runs."""
    for number in (7, 22, 87):
        first, again = recorded("h200")[number]
        assert {*order_differs(first, FREE)} & {*order_differs(again, FREE)}
        assert not {*order_differs(first, "h200")} & {*order_differs(again, "h200")}


def test_a_late_function_is_chance() -> None:
    for waking in (20_000, 53_000, 400_000):
        late = replace(device("h200"), host_function_latency_ns=waking)
        assert not order_differs(AsGpu(late).observe(TWO_FUNCTIONS), "h200")
    seen = AsGpu(FREE).observe(TWO_FUNCTIONS)
    assert order_differs(seen, "h200") == ((1, 3),)


def test_a_wait_for_a_value_that_holds_its_queue_shows_with_one_queue() -> None:
    spec = device("h200")
    no_wait = replace(spec, mechanisms=replace(spec.mechanisms, value_waits_hold_queues=False))
    one = replace(spec, hardware_queues=1)
    blind = replace(no_wait, hardware_queues=1)
    program = Sequence(
        [
            kernel(0),
            WriteValue("x", stream=0),
            WaitValue("x", stream=1),
            kernel(2),
            kernel(1),
        ]
    )
    seen = AsGpu(one).observe(program)
    assert not order_differs(seen, one)
    assert order_differs(seen, blind) == ((0, 1),)


class Counted(AsGpu):
    """Counts its runs."""

    runs = 0

    def observe(self, program: Sequence) -> Trace:
        self.runs += 1
        return super().observe(program)


def test_only_what_shows_in_all_runs_is_a_disagreement() -> None:
    oracle = Counted(FREE)
    report = fuzz(
        oracle, "h200", strategy=st.just(TWO_FUNCTIONS), max_examples=5, seed=1,
        shrink_seconds=5.0, progress=False,
    )  # fmt: skip
    (found,) = report.counterexamples
    assert found.pairs
    assert found.shrunk
    assert Counter(type(event) for event in found.sequence)[HostFunction] == 2
    assert 'assert not order_differs(observe(seq), "h200")' in found.code
    assert "predicted" in str(report)
    assert views.columns(report)["launch"]
    assert oracle.runs > RUNS_IN_ORDER


def test_a_campaign_of_programs_ends_without_disagreements() -> None:
    """The lab's programs, as if a GPU did what the model says."""
    drawn = st.integers(0, 10**6).map(lambda seed: Drawn(seed).program())
    report = fuzz(
        AsGpu(device("h200")), "h200", strategy=drawn, max_examples=60, seed=3, progress=False
    )
    assert (report.examples, report.disagreements, report.unstable) == (60, 0, ())


def test_a_held_sequence_has_no_order() -> None:
    with pytest.raises(ValueError, match="observation: launches with durations are needed"):
        order_differs(predict(Sequence([Launch(8, 64, 32)]), "h200"), "h200")
    nothing = Sequence([Launch(8, 64, 32, duration=1e-5), Synchronize()])
    assert order_differs(predict(nothing, "h200"), "h200") == ()
