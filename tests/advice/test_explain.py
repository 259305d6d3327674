"""Why the kernels of a profile did not run sooner: each cause in the smallest program with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import tbsched as tb
from helpers import examples
from profiled import profile_of, profiled
from tbsched import _core, views
from tbsched.advice.change import Change
from tbsched.advice.explain.changes import predicted
from tbsched.advice.explain.changes.predicted import _distinct_proposals
from tbsched.advice.explain.changes.proposal import Proposal
from tbsched.advice.explain.changes.table import PROPOSERS
from tbsched.advice.explain.facts import Facts
from tbsched.strategies import programs
from tbsched.views.explanations import late_words

MS, US, KB = 1e-3, 1e-6, 1024


def kernel(stream: int | str | None, ms: float = 1.0, name: str = "k", **rest: Any) -> tb.Launch:
    given = {"blocks": 16, "threads": 256, "registers": 32, **rest}
    return tb.Launch(**given, stream=stream, duration=ms * MS, name=name)


def explained(*events: Any, host: float = US, **given: Any) -> tb.Explanation:
    return tb.explain(profiled(tb.Sequence(events), "h200", host), "h200", **given)


def causes(found: tb.Explanation, launch: int) -> list[str]:
    """Returns the causes of gaps before a launch that took at least a tenth of a millisecond."""
    gaps = [gap for gap in found.gaps if gap.launch == launch]
    return [cause.cause for gap in gaps for cause in gap.causes if cause.seconds > MS / 10]


def best(found: tb.Explanation, words: str) -> Change:
    by_themselves = (x for x in found.changes if not x.what.startswith("together: "))
    return next(change for change in by_themselves if words in change.what)


def check_cause(found: tb.Explanation, launch: int, cause: str, change: str) -> None:
    """A launch waited for that, and the change is predicted to save half a millisecond."""
    assert causes(found, launch) == [cause]
    assert best(found, change).makespan < found.prediction.makespan - MS / 2


def test_waits_that_are_copies_to_pageable_memory_say_what_replaces_them() -> None:
    """They always wait; and what is copied back to the GPU is used by the host's next call."""
    copied = [
        tb.Copy(1 << 20, "h2d", MS, stream=0), kernel(0),
        tb.Copy(1 << 20, "d2h", MS, stream=0, pinned=False),
    ]  # fmt: skip
    found = best(explained(*copied * 4, host=MS / 4), "without 4 synchronisations of the host")
    how = "4 of them copies, with pinned memory and non_blocking=True (cudaMemcpyAsync)"
    assert found.what.endswith(f", {how}")
    assert found.condition.endswith("nor copies it back to the GPU")


def test_who_is_late_is_told_where_nothing_helps() -> None:
    late = tb.HostCall("read_file", duration=20 * MS)
    found = explained(kernel(0), late, kernel(0), late, kernel(0))
    (told,) = late_words(found)
    assert told.startswith("No change that was tried saves a tenth of the idle time. Late was the")
    assert "read_file" in told
    assert views.explanations.late_words(explained(kernel(0, 20), kernel(0, 20))) == []


def test_a_host_that_does_not_call() -> None:
    found = explained(kernel(0), kernel(0), kernel(0), host=3 * MS)
    check_cause(found, 2, "host", "no time between the calls of the host")
    assert found.idle["host"] == pytest.approx(4 * MS, rel=0.02)


def test_each_change_is_predicted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    predictions: list[object] = []

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*given: Any) -> Any:
            predictions.append(function)
            return function(*given)

        return called

    def distinct(facts: Facts, gaps: Iterable[tb.Gap]) -> Iterator[Proposal]:
        for proposal in _distinct_proposals(facts, gaps):
            tried.append(proposal.what)
            yield proposal
        # From here on nothing but proposals is predicted, and before them the program as it is.
        for name in ("predict_timeline", "predict_launches", "shortest_order"):
            monkeypatch.setattr(_core, name, counted(getattr(_core, name)))

    monkeypatch.setattr(predicted, "_distinct_proposals", distinct)
    monkeypatch.setattr(predicted, "_combined", lambda *_: [])
    copy = tb.Copy(1 << 20, "h2d", MS, stream=0)
    found = explained(kernel(0), copy, kernel(0), kernel(1), tb.Synchronize(), kernel(0), kernel(0))
    assert len(found.changes) > 1
    assert len(predictions) == len(tried)


def test_a_host_that_waits_for_the_gpu() -> None:
    sequence = tb.Sequence([kernel(0), tb.Synchronize(), kernel(1), kernel(2)])
    gaps = [US, US, 2 * MS, US]
    found = tb.explain(profile_of(tb.predict(sequence, "h200", host=gaps), gaps), "h200")
    check_cause(found, 1, "host", "without the synchronisation before launch 1")
    (gap,) = (gap for gap in found.gaps if gap.launch == 1)
    assert gap.causes[0].by == "nothing recorded before k, after cudaDeviceSynchronize"
    assert best(found, "without the").condition.startswith("if the host does not use")


def _with_calls(tmp_path: Path, *calls: tb.HostCall) -> tb.Explanation:
    """Explains a recorded program with host calls between its two kernels."""
    first, second = kernel(0, 0.05, "p"), kernel(0, 0.01, "n")
    played = tb.predict(tb.Sequence([first, *calls, second]), "h200", host=0.0)
    tb.save_traces(tmp_path / "played.jsonl", [played])
    return tb.explain(tb.load_program(tmp_path / "played.jsonl"))


@pytest.mark.parametrize(
    "waits", [{"waits": "device"}, {"waits": "stream", "stream": 0}], ids=["device", "stream"]
)
@pytest.mark.parametrize("name", ["cudaFree", "cudaHostUnregister", "nvmlInit"])
def test_a_host_call_without_its_wait_still_takes_its_time(
    tmp_path: Path, name: str, waits: dict[str, Any]
) -> None:
    found = _with_calls(tmp_path, tb.HostCall(name, 1e-4, **waits))
    without = tb.Sequence([
        replace(event, waits=None, stream=None) if isinstance(event, tb.HostCall) else event
        for event in found.program.sequence
    ])  # fmt: skip
    expected = tb.predict(without, "h200", host=0.0).makespan
    change = best(found, "without the wait of")
    assert change.what == f"without the wait of {name} before launch 1 (n)"
    assert f"do the work of {name}" in change.condition
    assert change.makespan == pytest.approx(expected, rel=1e-6)
    assert best(found, "a bound").makespan == pytest.approx(expected, rel=1e-6)
    # What leaves the call out altogether names it, and says that its memory is kept.
    for each in found.changes:
        if not any(isinstance(event, tb.HostCall) for event in each.sequence):
            assert f"without 1 call of {name}: memory that is kept" in each.what
            assert "memory that they take and give back can be kept" in each.condition
            assert each.saves == pytest.approx(found.prediction.makespan - each.makespan)


def test_waits_of_host_calls_and_synchronisations_are_changes_of_their_own(tmp_path: Path) -> None:
    free = tb.HostCall("cudaFree", 1e-5, waits="device")
    found = _with_calls(tmp_path, free, kernel(1, 0.05, "q"), free, kernel(2, 0.05, "r"))
    change = best(found, "without the waits of 2 calls of cudaFree")
    assert [x.waits for x in change.sequence if isinstance(x, tb.HostCall)] == [None, None]
    mixed = _with_calls(tmp_path, free, kernel(1, 0.05, "q"), tb.Synchronize())
    assert best(mixed, "without the synchronisation").condition.endswith("has computed by then")
    assert not any("2 synchronisations" in change.what for change in mixed.changes)


def _recorded(tmp_path: Path, *events: Any, host: float | list[float] = 0.0) -> tb.Program:
    played = tb.predict(tb.Sequence(events), "h200", host=host)
    tb.save_traces(tmp_path / "played.jsonl", [played])
    return tb.load_program(tmp_path / "played.jsonl")


def _idle_rows(found: tb.Explanation) -> dict[tuple[str, str], float]:
    """Microseconds by cause and what it is by."""
    return {row[1:3]: 1e6 * row.seconds for row in found.account if row.cause != "kernel"}


def test_the_account_names_host_functions_and_for_how_long_they_ran(tmp_path: Path) -> None:
    first, second = kernel(0, 0.05, "p"), kernel(0, 0.01, "n")
    log, again = (
        tb.HostFunction(us * US, stream=0, name=name) for us, name in ((100, "log"), (500, None))
    )
    program = _recorded(tmp_path, first, log, again, second)
    found = tb.explain(program)
    rows = _idle_rows(found)
    assert rows.pop(("host_function", "log")) == pytest.approx(100)
    assert rows.pop(("host_function", "host function 1")) == pytest.approx(500)
    assert {*rows} == {("stream", "n")}  # the latencies
    assert sum(row.seconds for row in found.account) == pytest.approx(found.span)
    (gap,) = (gap for gap in found.gaps if gap.kind == "idle")
    assert [cause.by for cause in gap.causes[:2]] == ["host function 1", "log"]
    assert "for a host function: log" in str(found)
    assert "1 copy" not in str(program)
    assert "2 launches of 2 kernels, 2 host functions, " in str(program)


def test_a_host_function_of_another_stream_that_an_event_follows(tmp_path: Path) -> None:
    log = tb.HostFunction(20 * US, stream=1, name="log")
    waits = tb.RecordEvent(3, 1), tb.WaitEvent(3, 0)
    held = _recorded(tmp_path, kernel(0, 0.05), log, kernel(1, 0.02), *waits, kernel(0, 0.01, "n"))
    assert ("host_function", "log") not in _idle_rows(tb.explain(held))  # kernels ran all the time
    long = replace(log, duration=200 * US)
    found = tb.explain(_recorded(tmp_path, kernel(0, 0.05), long, *waits, kernel(0, 0.01, "n")))
    assert _idle_rows(found)["host_function", "log"] > 100


def test_nodes_of_a_graph_behind_a_host_function(tmp_path: Path) -> None:
    nodes = [kernel(None, 0.05, "p"), tb.HostFunction(20 * US, name="log"), kernel(None, 0.01, "n")]
    graph = tb.Graph(nodes, edges=[(0, 1), (1, 2)])
    rows = _idle_rows(tb.explain(_recorded(tmp_path, graph.launch(0))))
    assert rows["host_function", "log"] == pytest.approx(20)


@pytest.mark.parametrize("late", [0.0, 2 * MS], ids=["soon", "late"])
def test_the_account_names_waits_for_values(tmp_path: Path, late: float) -> None:
    events = [
        tb.WaitValue("f", stream=1), kernel(1, 0.01, "w"), kernel(0, 0.05, "p"),
        tb.WriteValue("f", stream=0), tb.HostCall("cudaFree", 1e-4, waits="device"),
        kernel(0, 0.01),
    ]  # fmt: skip
    rows = _idle_rows(tb.explain(_recorded(tmp_path, *events, host=[0, 0, 0, late, 0, 0])))
    assert rows["value", "w"] > (1000 if late else 1)
    assert "unexplained" not in {cause for cause, _ in rows}


def test_a_saved_prediction_waits_no_longer_than_it_did(tmp_path: Path) -> None:
    sequence = tb.Sequence([kernel(0), tb.Synchronize(), kernel(1), kernel(1)])
    played = tb.predict(sequence, "h200", host=10 * US)
    tb.save_traces(tmp_path / "played.jsonl", [played])
    found = tb.explain(tb.load_program(tmp_path / "played.jsonl"), "h200")
    assert found.prediction.makespan == pytest.approx(played.makespan, rel=1e-4)
    assert "unexplained" not in {cause.cause for gap in found.gaps for cause in gap.causes}


def test_a_kernel_before_it_in_its_stream_that_leaves_sms_idle() -> None:
    found = explained(kernel(0), kernel(0, name="late"))
    check_cause(found, 1, "stream", "launch 1 (late) in another stream")
    assert [gap.kind for gap in found.gaps] == ["order"]


def test_one_that_leaves_no_sm_idle_costs_nothing() -> None:
    found = explained(kernel(0, blocks=1056), kernel(0))
    assert not found.gaps


def test_all_launches_of_a_kernel_move_at_once() -> None:
    found = explained(*[kernel(0, name=name) for name in ("a", "b(int)") * 3])
    makespan = best(found, "each of 3 launches of b(int) in").makespan
    assert makespan == pytest.approx(found.changes[0].makespan, rel=0.01)
    assert best(found, "3 launches of b(int) by turns in 3 streams") is found.changes[0]


def test_an_event() -> None:
    found = explained(
        kernel(0), tb.RecordEvent(7, 0), tb.WaitEvent(7, 1), kernel(1, name="late"), kernel(2, 0.1)
    )
    check_cause(found, 1, "event", "without the wait of stream 1 for event 7")


def test_an_edge_of_a_graph() -> None:
    graph = tb.Graph([kernel(None), kernel(None)], edges=[(0, 1)])
    check_cause(explained(graph.launch(0)), 1, "node", "without the edge of the graph")


def test_a_stream_that_shares_a_hardware_queue() -> None:
    one = replace(tb.device("h200"), hardware_queues=1)
    program = profiled(tb.Sequence([kernel(0), kernel(0), kernel(1, 2)]), one)
    check_cause(tb.explain(program, one), 2, "hardware_queue", "CUDA_DEVICE_MAX_CONNECTIONS=16")


def test_a_configuration_of_the_sms() -> None:
    first = kernel(0, blocks=264, carveout=0)
    found = explained(first, kernel(1, blocks=132, shared_memory=100 * KB))
    assert causes(found, 1) == ["configuration"]
    assert best(found, "carveout 100 for every kernel").makespan < 1.2 * MS


def test_the_head_of_the_line() -> None:
    big = kernel(1, blocks=132, threads=1024, name="big", shared_memory=200 * KB)
    found = explained(kernel(0, blocks=132, shared_memory=200 * KB), big, kernel(2, 2))
    check_cause(found, 2, "queue", "launch 2 (k) issued before launch 1 (big)")


def test_registers_of_other_blocks() -> None:
    found = explained(
        kernel(0, blocks=132, threads=512, registers=64), kernel(1, threads=256, registers=255)
    )
    (gap,) = found.gaps
    assert causes(found, 1) == ["registers"]
    assert gap.cost == pytest.approx(
        (gap.end - gap.begin) / 2, rel=1e-2
    )  # so much the first one left


def test_an_idle_stream_beside_a_full_gpu_costs_nothing() -> None:
    full = kernel(0, blocks=132, threads=1024, registers=64)
    assert not explained(full, kernel(1, threads=256, registers=255)).gaps


def test_the_first_use_of_a_kernel() -> None:
    found = explained(kernel(0, name="a"), kernel(1, name="b", first_use=True))
    check_cause(found, 1, "first_use", "launch 1 (b) used once before")


def test_a_kernel_that_the_host_loads_before_its_launch() -> None:
    """Other calls than the launch load it, too, and all that is launched later comes late."""
    events = [kernel(0, name="a"), kernel(1, name="a"), kernel(0, name="b", first_use=True)]
    sequence = tb.Sequence([*events, kernel(1, name="b")])
    gaps = [US, US, 5 * MS, US]
    found = tb.explain(profile_of(tb.predict(sequence, "h200", host=gaps), gaps), "h200")
    assert causes(found, 2) == ["first_use"]
    (gap,) = (gap for gap in found.gaps if gap.launch == 2)
    assert gap.causes[0].by == "b"
    assert "kernels being loaded: b" in str(found)
    change = best(found, "launch 2 (b) used once before")
    assert change.makespan < found.prediction.makespan - 2.5 * MS
    assert change.condition.startswith("if the host only loads")


def test_a_first_call_that_took_long_may_have_loaded_its_kernel() -> None:
    sequence = tb.Sequence([kernel(0, name="a"), kernel(0, name="a"), kernel(0, name="b")])
    gaps = [US, US, 5 * MS]
    program = profile_of(tb.predict(sequence, "h200", host=gaps), gaps)
    rows = program.measured.copy()
    rows["call_ns"][2] -= 4_000_000
    found = tb.explain(replace(program, measured=rows, host=(US, US, MS)), "h200")
    assert "first_use" in causes(found, 2)
    change = best(found, "launch 2 (b) used once before")
    assert "first calls that took long suggest: launch 2 (b)" in change.condition


def test_a_kernel_that_went_first_and_left_no_room() -> None:
    """The model has two nodes go in one order, and the GPU in the other."""
    shape = {"blocks": 132, "threads": 512}
    graph = tb.Graph([kernel(None, registers=96, **shape), kernel(None, registers=64, **shape)])
    program = profiled(tb.Sequence([graph.launch(stream=0)]), "h200")
    rows = program.measured.copy()
    for key in ("start_ns", "end_ns"):
        rows[key] = rows[key][::-1]
    found = tb.explain(replace(program, measured=rows), "h200")
    (gap,) = (gap for gap in found.gaps if gap.launch == 0)
    assert (gap.causes[0].cause, gap.causes[0].behind) == ("registers", 1)
    assert gap.causes[0].seconds == pytest.approx(MS, rel=0.01)


def test_launches_wait_for_room_in_the_order_of_the_profile() -> None:
    shape = {"blocks": 132, "threads": 512}
    sequence = [kernel(0, registers=96, **shape), kernel(1, registers=64, **shape)]
    program = profiled(tb.Sequence(sequence), "h200")
    rows = program.measured.copy()
    for key in ("start_ns", "end_ns"):
        rows[key] = rows[key][::-1]
    found = tb.explain(replace(program, measured=rows), "h200")
    assert causes(found, 0) == ["registers"]


def test_a_copy() -> None:
    copy = tb.Copy(1 << 20, "h2d", duration=MS, stream=1)
    found = explained(kernel(0, 2), copy, kernel(1, 2))
    assert [cause.behind for gap in found.gaps for cause in gap.causes][:1] == [-2]


def test_a_launch_never_passes_a_copy_or_an_event() -> None:
    copy = tb.Copy(1 << 20, "h2d", duration=MS, stream=0)
    passed = explained(kernel(0), copy, kernel(0, name="late"))
    awaited = explained(
        kernel(0), kernel(0, name="late"), tb.RecordEvent(0, 0), tb.WaitEvent(0, 1), kernel(1)
    )
    for found in (passed, awaited):
        assert not any("in another stream" in change.what for change in found.changes)


NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


@pytest.mark.parametrize(
    "events",
    [
        [kernel(0), kernel(0), tb.Copy(1 << 20, "d2h", duration=MS, stream=0), tb.Synchronize()],
        [kernel(0), kernel(0, name=NCCL), kernel(0), kernel(0, name=NCCL)],
        [tb.Copy(1 << 20, "h2d", duration=MS, stream="legacy"), kernel("legacy"), kernel(1)],
        [kernel(1, 2), kernel(0, name=NCCL), kernel(2, name=f"{NCCL}_2")],
    ],
)
def test_what_a_program_may_not_do_is_not_proposed(events: list[Any]) -> None:
    """A copy back needs its kernel, a collective its order, and blocking streams the legacy one."""
    found = explained(*events)
    for words in ("another stream", "by turns", "issued before"):
        assert not any(words in change.what for change in found.changes)


def test_copies_that_wait_for_an_event_stay_where_they_are() -> None:
    step = [
        kernel(1), tb.RecordEvent(0, 1), tb.WaitEvent(0, 0),
        tb.Copy(1 << 20, "h2d", duration=MS, stream=0), kernel(0),
    ]  # fmt: skip
    found = explained(*step, *step, *step)
    assert not any("one group ahead" in change.what for change in found.changes)


def test_pinned_memory_says_that_the_host_waits_later() -> None:
    back = tb.Copy(1 << 20, "d2h", duration=4 * MS, stream=0, pinned=False)
    found = explained(kernel(0), back, kernel(0), back, kernel(0))
    assert "it waits for it later" in best(found, "pinned memory for 2 copies").condition


def test_a_program_that_lost_a_part_is_refused_by_name() -> None:
    program = profiled(tb.Sequence([kernel(0), kernel(1)]), "h200")
    with pytest.raises(ValueError, match=r"explain\.program\.measured: 2 are needed.*got 1"):
        tb.explain(replace(program, measured=program.measured[:1]), "h200")


def test_a_device_that_the_profile_contradicts_is_refused_as_a_spec_too(tmp_path: Path) -> None:
    tb.save_traces(tmp_path / "t.jsonl", [tb.predict(tb.Sequence([kernel(0)]), "h200", host=0.0)])
    program = tb.load_program(tmp_path / "t.jsonl")
    with pytest.raises(ValueError, match="device: h100, but the profile was recorded on NVIDIA H2"):
        tb.explain(program, tb.device("h100"))
    with pytest.raises(ValueError, match=r"predict\(p.sequence, 'h100', host=p.host\) says"):
        tb.explain(program, "h100")


def test_copies_one_group_ahead_of_the_kernels() -> None:
    step = [tb.Copy(1 << 20, "h2d", duration=MS, stream=0), kernel(0)]
    found = explained(*step, *step, *step, *step)
    change = best(found, "4 copies to the GPU in a stream of their own")
    # The first copy comes before the first kernel, and the last kernel after the last copy.
    assert change.makespan == pytest.approx(4 * MS, rel=0.02)
    assert found.prediction.makespan == pytest.approx(7 * MS, rel=0.02)
    assert change.saves == found.prediction.makespan - change.makespan


def test_pinned_memory_as_fast_as_other_copies_of_the_program() -> None:
    slow = tb.Copy(1 << 20, "h2d", duration=4 * MS, stream=0, pinned=False)
    fast = tb.Copy(1 << 20, "h2d", duration=MS, stream=0)
    found = explained(kernel(0), slow, kernel(0), fast, kernel(0), slow, kernel(0))
    change = best(found, "pinned memory for 2 copies")
    assert change.saves == pytest.approx(2 * MS, rel=0.02)  # the host was ahead for the rest
    assert {copy.duration for copy in change.sequence.transfers} == {MS}


def test_the_legacy_stream() -> None:
    found = explained(kernel(0), kernel("legacy"))
    check_cause(found, 1, "legacy_stream", "launch 1 (k) in another stream")


def test_a_kernel_that_left_room_explains_nothing() -> None:
    program = profiled(tb.Sequence([kernel(1, 4), kernel(0), kernel(0)]), "h200")
    rows = program.measured.copy()
    rows["start_ns"][2] += 500_000
    rows["end_ns"][2] += 500_000
    found = tb.explain(replace(program, measured=rows), "h200", threshold=1e-4)
    assert causes(found, 2) == ["unexplained"]


def test_what_the_model_would_have_run_is_not_explained() -> None:
    program = profiled(tb.Sequence([kernel(0), kernel(0)]), "h200")
    rows = program.measured.copy()
    rows["start_ns"][1] += 500_000
    rows["end_ns"][1] += 500_000
    found = tb.explain(replace(program, measured=rows), "h200", threshold=1e-4)
    (gap,) = [gap for gap in found.gaps if gap.kind == "idle"]
    cause = gap.causes[0]
    assert cause.cause == "unexplained"
    assert cause.seconds == pytest.approx(5e-4, rel=0.02)
    assert "nothing that is known kept it from running at 1" in str(found)


def test_what_a_profile_does_not_say_is_supposed_where_nothing_else_explains_it() -> None:
    one = replace(tb.device("h200"), hardware_queues=1)
    sequence = tb.Sequence([kernel(0), kernel(0), kernel(1), kernel(1)])
    program = profiled(sequence, one)
    found = tb.explain(program, "h200")
    assert "CUDA_DEVICE_MAX_CONNECTIONS was 1" in found.program.assumed[-1]
    assert found.prediction.makespan == pytest.approx(found.makespan, rel=0.01)
    assert best(found, "CUDA_DEVICE_MAX_CONNECTIONS=16").makespan < found.makespan - MS / 2
    told = tb.explain(replace(program, connections=1), "h200")
    # The durations are found before anything is supposed.
    makespans = {change.what: change.makespan for change in found.changes}
    assert {change.what: change.makespan for change in told.changes} == pytest.approx(
        makespans, rel=0.02
    )
    assert not any("Supposed" in line for line in told.program.assumed)
    loaded = profiled(tb.Sequence([kernel(0, name="a"), kernel(1, name="b", first_use=True)]), one)
    sequence = tb.Sequence([replace(x, first_use=False) for x in loaded.sequence.launches])
    found = tb.explain(replace(loaded, sequence=sequence, connections=8), "h200")
    assert "loaded at its first use" in found.program.assumed[-1]
    assert best(found, "2 kernels used once before").makespan < found.makespan - MS / 2


def test_a_program_without_gaps_says_so() -> None:
    found = explained(kernel(0))
    assert (found.gaps, found.changes, found.idle) == ((), (), {})
    assert "No gap of a kernel and a cause costs 10 us or more." in str(found)
    assert [row[:3] for row in found.account] == [(0, "kernel", "k")]


def test_views_name_the_kernels_and_the_changes() -> None:
    found = explained(kernel(0, name="<first>"), kernel(0, name="second"))
    text, page = str(found), views.html(found)
    assert "launch 1 (second)" in text
    assert "order" not in text.splitlines()[0]
    assert "for launch 0 (<first>), before it in its stream" in text
    assert "&lt;first&gt;" in page
    document = json.loads(json.dumps(views.data(found)))
    (gap,) = document["gaps"]
    assert gap["name"] == "second"
    assert "in another stream it would not wait" in gap["causes"][0]["words"]
    assert document["changes"][0]["makespan"] == found.changes[0].makespan


def test_durations_are_fitted_once() -> None:
    program = profiled(tb.Sequence([kernel(0), kernel(1)]), "h200")
    fitted = tb.fit_durations(program, "h200")
    assert tb.explain(fitted, "h200").program.sequence == fitted.sequence
    assert tb.explain(program, "h200").program.fitted == fitted.fitted


def test_kernels_that_never_overlap_need_no_fit() -> None:
    found = explained(kernel(0), kernel(0, 2))
    assert found.program.fitted == ()
    assert found.prediction.makespan == pytest.approx(found.makespan, rel=0.01)


def test_changes_have_the_makespan_that_is_predicted_for_them() -> None:
    found = explained(
        kernel(0), tb.Synchronize(), kernel(1), tb.RecordEvent(0, 1), tb.WaitEvent(0, 2),
        kernel(2), kernel(2), host=MS,
    )  # fmt: skip
    assert len(found.changes) > 1
    order = [(change.is_bound, change.makespan) for change in found.changes]
    assert order == sorted(order)
    for change in found.changes:
        trace = tb.predict(change.sequence, "h200", host=change.host)
        assert trace.makespan == change.makespan


def test_every_cause_of_the_model_is_known_to_the_table_or_has_no_change() -> None:
    no_change = {"none", "grids", "partition", "policy", "trigger", "value", "", "unexplained"}
    assert set(_core.CAUSES) - PROPOSERS.keys() <= no_change


@settings(max_examples=examples(50), deadline=None)
@given(programs("h200"))
def test_every_gap_of_a_random_program_has_causes(sequence: tb.Sequence) -> None:
    if not sequence.launches:
        return
    found = tb.explain(profiled(sequence, "h200", 5 * US), "h200")
    for gap in found.gaps:
        assert gap.causes
        assert 0 < gap.cost <= (gap.end - gap.begin) * (1 + 1e-9)
        assert sum(cause.seconds for cause in gap.causes) <= (gap.end - gap.begin) * (1 + 1e-9)


def test_what_cannot_be_explained_is_refused() -> None:
    program = profiled(tb.Sequence([kernel(0)]), "h200")
    with pytest.raises(TypeError, match=r"explain\.program: a Program is needed"):
        tb.explain(program.sequence, "h200")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"got 't2.json'; load_program\(path\) reads one"):
        tb.explain("t2.json")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"got 'a.json'; Sequence.from_json\(text\) reads one"):
        tb.predict("a.json", "h200")  # type: ignore[arg-type]
    assert "only the account was asked for" in str(tb.explain(program, predicted=False))
    with pytest.raises(ValueError, match=r"explain\.threshold: -1 is outside"):
        tb.explain(program, "h200", threshold=-1)
    empty = tb.Program(tb.Sequence([]), (), program.measured[:0], program.transfers)
    with pytest.raises(ValueError, match=r"explain\.program: it has no launches"):
        tb.explain(empty, "h200")


@pytest.mark.parametrize(("device", "tried"), [("h100", True), ("a100", False)])
def test_it_says_where_graphs_are_not_tried(device: str, *, tried: bool) -> None:
    many = tb.Sequence([kernel(0, 0.002) for _ in range(40)])
    found = tb.explain(profiled(many, device, host=1e-5), device)
    assert tried == any(change.what.startswith("CUDA graphs") for change in found.changes)
    assert tried != any("CUDA graphs were not tried" in said for said in found.program.assumed)
