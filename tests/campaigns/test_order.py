"""Programs that a GPU has run are compared by the order of their launches."""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import strategies as st

from helpers import ROOT
from lab.timed.event_campaign import AsGpu, Drawn, OfAllKinds
from tbsched import views
from tbsched.campaigns import fuzz, order_differs
from tbsched.campaigns.judge import RUNS_IN_ORDER
from tbsched.campaigns.order import gaps_between
from tbsched.hardware.catalogue import ablated, device
from tbsched.prediction.predict import predict, predict_as_recorded
from tbsched.program.sequence import (
    LEGACY_STREAM,
    Conditional,
    Copy,
    Graph,
    GraphLaunch,
    HostCall,
    HostFunction,
    Launch,
    Memset,
    RecordEvent,
    Sequence,
    Synchronize,
    WaitValue,
    WriteValue,
)
from tbsched.traces.annotations import called, issued
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


def test_calls_of_a_thread_stay_in_their_order_however_late_each_is_handed_on() -> None:
    """They begin closer to each other than the time that each may be late."""
    seen = AsGpu(FREE).observe(TWO_FUNCTIONS)
    begin_ns = [500 * number for number in range(len(TWO_FUNCTIONS))]
    launches_ns = [
        ns for ns, event in zip(begin_ns, TWO_FUNCTIONS, strict=True) if isinstance(event, Launch)
    ]
    times = {**issued(launches_ns), **called([[ns, ns + 400] for ns in begin_ns])}
    tight = replace(seen, extra={**seen.extra, **times})
    assert order_differs(tight, "h200") == order_differs(seen, "h200") == ((1, 3),)


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


def kinds_in(program: Sequence) -> set[str]:
    """Which kinds are in a program, but for those that only its draws know."""
    kinds = {"threads"} if len({getattr(event, "host", 0) for event in program}) > 1 else set()
    for launch in program.launches:
        kinds |= {"cluster"} if launch.cluster > 1 else set()
        kinds |= {"cooperative"} if launch.cooperative else set()
        kinds |= {"dependent"} if launch.programmatic else set()
        kinds |= {"partition"} if launch.partition is not None else set()
        kinds |= {"priority"} if launch.priority else set()
        kinds |= {"legacy"} if launch.stream == LEGACY_STREAM else set()
        kinds |= {"completion_event"} if launch.completion_event is not None else set()
    for event in program:
        match event:
            case HostFunction():
                kinds.add("host_function")
            case HostCall():
                kinds.add("host_call")
            case Memset():
                kinds.add("memset")
            case Copy():
                kinds.add("host_copy" if event.blocking or not event.pinned else "copy")
            case Synchronize():
                kinds.add("synchronize")
            case WaitValue():
                kinds.add("value")
            case RecordEvent(timing=True):
                kinds.add("timed_event")
            case GraphLaunch():
                of = {type(node) for node in event.graph.nodes}
                kinds |= {"function_node"} if HostFunction in of else set()
                kinds |= {"transfer_node"} if Memset in of else set()
                parts = {type(part) for part in event.graph.parts}
                kinds |= {"child_graph"} if Graph in parts else set()
                kinds |= {"conditional"} if Conditional in parts else set()
    return kinds


def test_programs_of_all_kinds_have_what_they_say_and_end() -> None:
    spec = device("h200")
    seen: Counter[str] = Counter()
    for seed in range(150):
        drawn = OfAllKinds(seed, spec)
        program = drawn.program()
        of_draws = {"graph", "graph_again", "event"}
        # Programs of several threads may have only one that makes calls.
        assert drawn.kinds - of_draws - {"threads"} == kinds_in(program) - {"threads"}
        assert AsGpu(spec).observe(program).hang is None
        seen.update(drawn.kinds)
    assert len(seen) == 23
    assert min(seen.values()) > 20


def test_a_campaign_of_all_kinds_ends_without_disagreements() -> None:
    spec = device("h200")
    drawn = st.integers(0, 10**6).map(lambda seed: OfAllKinds(seed, spec).program())
    report = fuzz(AsGpu(spec), "h200", strategy=drawn, max_examples=60, seed=4, progress=False)
    assert (report.examples, report.disagreements, report.unstable) == (60, 0, ())


def test_calls_that_overlap_may_be_handed_on_in_either_order() -> None:
    """Thread 1 calls for the legacy stream, thread 0 launches a graph of three roots meanwhile."""
    node = Launch(8, 128, 32, duration=3e-5)
    program = Sequence(
        [
            Launch(1, 256, 32, stream=LEGACY_STREAM, duration=8e-5, host=1),
            Graph([node, node, node]).launch(),
            Launch(132, 256, 32, stream=1, duration=1.2e-4, non_blocking=True, host=1),
        ]
    )
    seen = AsGpu(device("h200")).observe(program)
    assert not order_differs(seen, "h200")
    played = predict_as_recorded(seen, "h200")  # as if handed on when the call began
    assert gaps_between(played)[0, 1] < 0 <= gaps_between(seen)[0, 1]


def test_when_a_call_is_handed_on_is_chance() -> None:
    """Programs of an H200: the model explains them if calls are handed on some us later."""
    recorded = load_traces(HOSTS / "late-calls-h200.jsonl.xz")
    assert [order_differs(trace, "h200") for trace in recorded] == [()]


def test_roots_behind_a_copy_are_issued_late() -> None:
    """Programs of an H200: 20 us pass within a call until the next root of a graph.

    In the first all of its roots are behind the copy. In the second a memset and the kernel that
    follows it are ahead of a host function and a copy.
    """
    recorded = load_traces(HOSTS / "late-roots-h200.jsonl.xz")
    assert [order_differs(trace, "h200") for trace in recorded] == [(), ()]


def test_the_driver_takes_the_function_that_was_issued_first() -> None:
    """A program of an H200: it overtakes one that could begin sooner."""
    recorded = load_traces(HOSTS / "functions-in-turn-h200.jsonl.xz")
    assert [order_differs(trace, "h200") for trace in recorded] == [()]


def test_a_held_sequence_has_no_order() -> None:
    with pytest.raises(ValueError, match="observation: launches with durations are needed"):
        order_differs(predict(Sequence([Launch(8, 64, 32)]), "h200"), "h200")
    nothing = Sequence([Launch(8, 64, 32, duration=1e-5), Synchronize()])
    assert order_differs(predict(nothing, "h200"), "h200") == ()
