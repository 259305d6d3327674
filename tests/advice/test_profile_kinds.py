"""Kinds of profiles that are easily explained wrongly: what must be found in each."""

from __future__ import annotations

import functools

import pytest

import tbsched as tb
from helpers import ROOT
from tbsched import views

KINDS = ROOT / "tests" / "profiles" / "kinds"
MS, US = 1e-3, 1e-6


@functools.cache
def explained(name: str) -> tb.Explanation:
    (place,) = KINDS.glob(f"{name}*")
    return tb.explain(tb.load_program(place, fit=False))


def seconds(found: tb.Explanation, cause: str, by: str = "") -> float:
    """Returns the account's rows of a cause whose names contain something."""
    return sum(row.seconds for row in found.account if row.cause == cause and by in row.by)


def saves(found: tb.Explanation, what: str) -> float:
    """What a change saves, as a share."""
    assert found.prediction is not None
    (change,) = (change for change in found.changes if change.what.startswith(what))
    return change.saves / found.prediction.makespan


@pytest.mark.parametrize("name", ["01", "02", "03", "04", "05", "06", "09", "11", "14", "16", "17"])
def test_the_account_adds_up_and_gaps_end_when_their_launches_start(name: str) -> None:
    found = explained(name)
    assert sum(row.seconds for row in found.account) == pytest.approx(found.span, abs=1e-9)
    starts = found.program.measured["start_ns"] / 1e9
    for gap in found.gaps:
        if gap.launch >= 0:
            assert gap.end <= starts[gap.launch] + 1e-9
    assert sum(gap.cost for gap in found.gaps) <= found.span * (1 + 1e-9)


def test_a_thousand_cuts_are_all_of_the_host_by_the_kernel() -> None:
    found = explained("01")
    assert found.idle == {"host": pytest.approx(1.592 * MS)}
    assert all(row.by.endswith("k") or "of k" in row.by or "k on" in row.by
               for row in found.account if row.cause == "host")  # fmt: skip
    assert found.gaps
    assert saves(found, "a bound: no time between the calls") > 0.5


@pytest.mark.parametrize("name", ["01", "04"])
def test_bounds_are_no_changes_and_say_what_may_beat_them(name: str) -> None:
    found = explained(name)
    (bound,) = (change for change in found.changes if change.is_bound)
    helping = [change for change in found.changes if not change.is_bound]
    assert f", {len(helping)} change{'s' if len(helping) > 1 else ''} would help" in str(found)
    assert "CUDA graphs and larger kernels need fewer calls, and may save more" in bound.what
    assert " 1 graphs" not in str(found)


def test_advice_is_whole_and_begins_with_what_can_be_done() -> None:
    found = explained("04")
    first = found.changes[0]
    assert first.what.startswith("record the profile again, with_stack=True or with NVTX ranges")
    for shown in (views.text(found), views.text(found, 80), views.html(found)):
        assert "…" not in shown
        words = " ".join(shown.split())
        assert "record it again with_stack=True (torch.profiler), or with NVTX" in words
    assert first.what in views.html(found)
    assert max(map(len, views.text(found, 100).splitlines())) <= 100
    for width in (None, 100):
        table = views.text(found, width).splitlines()
        begin = next(place for place, line in enumerate(table) if line.startswith("change "))
        end = table[begin].index("saves") - 4
        told = " ".join(line[:end].strip() for line in table[begin : begin + 12])
        assert first.what in told
    assert "record it again" not in str(explained("02"))


def test_gaps_are_told_on_the_clock_that_a_part_is_chosen_with() -> None:
    found = explained("04")
    work = found.accounted.activity.work
    assert found.begin == work["start_ns"].min() / 1e9 > 0
    told = views.data(found)
    assert told["begin"] == found.begin
    columns = views.columns(found)
    assert columns["at"] == [begin - found.begin for begin in columns["begin"]]
    longest = max(found.gaps, key=lambda gap: gap.cost)
    assert f"{1e3 * (longest.begin - found.begin):.4g} ms" in str(found)


def test_parts_of_a_cause_are_indented_in_the_page() -> None:
    page = views.html(explained("04"))
    assert '<td class="part">  nothing recorded before backward</td>' in page
    assert "td>the host had not launched what came next<" in page


def test_work_of_the_host_after_a_wait_is_named_and_is_no_waiting() -> None:
    found = explained("02")
    name = "image_processing.py(301): resize_on_the_cpu, after cudaStreamSynchronize"
    assert seconds(found, "host", name) == pytest.approx(358.5 * MS)
    assert seconds(found, "synchronize") == 0
    assert saves(found, "the work of image_processing.py(301): resize_on_the_cpu") > 0.85


def test_work_beside_a_collective_has_no_gap_that_cannot_be() -> None:
    found = explained("03")
    (gap,) = found.gaps
    assert (gap.launch, gap.causes[0].cause) == (14, "event")
    assert found.changes == ()  # what comes after a collective needs it


def test_no_time_between_calls_is_tried_for_all_threads() -> None:
    found = explained("04")
    assert any("2 threads which call by turns are one" in told for told in found.program.assumed)
    assert saves(found, "a bound: no time between the calls of the host") > 0.97


def test_work_of_an_unknown_call_was_called_before_what_comes_after_it() -> None:
    found = explained("05")
    assert not found.gaps
    assert not any(launch.programmatic for launch in found.program.sequence.launches)
    assert seconds(found, "unrecorded") == 0


def test_copies_of_weights_are_named_and_nothing_passes_them() -> None:
    found = explained("06")
    assert seconds(found, "copy", "h2d pinned") == pytest.approx(180 * MS)
    (longest, *_) = found.gaps
    assert (longest.kind, longest.causes[0].cause) == ("copies", "copy")
    assert longest.causes[0].seconds == pytest.approx(18 * MS, rel=0.01)
    assert not any("another stream" in change.what for change in found.changes)


def test_a_gpu_that_is_no_device_is_described_and_others_are_refused() -> None:
    found = explained("07")
    assert found.prediction is not None
    assert found.prediction.device.name == "NVIDIA GeForce RTX 4090"
    assert any("it is described by the profile" in told for told in found.program.assumed)
    with pytest.raises(ValueError, match="recorded on NVIDIA GeForce RTX 4090"):
        tb.explain(found.program, "tx2")
    with pytest.raises(ValueError, match="of a GPU of AMD"):
        explained("08")


def test_odd_events_are_kept_and_told() -> None:
    assert any("grid and the blocks of 1 kernels" in x for x in explained("09").program.assumed)
    twice = explained("10")
    assert len(twice.program.sequence.launches) == 50
    assert "50 records stand in the file more than once" in str(twice)
    clocks = explained("11")
    assert seconds(clocks, "host") == 0
    assert "The clocks of the host and of GPU 0 do not fit" in str(clocks)


@pytest.mark.parametrize(("rank", "alone"), [(0, 16.116 * MS), (1, 0.116 * MS)])
def test_a_rank_waits_in_its_collective_and_its_wait_stays(rank: int, alone: float) -> None:
    found = explained(f"13_rank{rank}")
    assert seconds(found, "collective") == pytest.approx(alone, rel=0.01)
    assert not any("without" in change.what for change in found.changes)


def test_the_time_from_the_first_copy_to_the_last_and_a_first_launch() -> None:
    found = explained("14")
    assert found.span == pytest.approx(2.612 * MS)
    assert seconds(found, "copy") == pytest.approx(2.28 * MS)
    (gap,) = found.gaps
    assert gap.causes[0].cause == "first_use"
    assert gap.causes[0].seconds == pytest.approx(1.78 * MS)


def test_copies_of_one_engine_take_turns() -> None:
    found = explained("16")
    assert found.prediction is not None
    assert found.prediction.makespan == pytest.approx(found.makespan, rel=0.02)
    assert saves(found, "all copies to the GPU issued before those from it") > 0


def test_migrations_of_unified_memory_are_what_they_are() -> None:
    found = explained("17")
    work = found.accounted.activity.work
    assert (work["kind"] == 5).sum() == 400
    assert not found.program.sequence.transfers
    assert any("cudaMemPrefetchAsync" in told for told in found.program.assumed)
