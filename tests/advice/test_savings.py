"""What ranks save without a cause: a replay of the profile against the same program without it."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tbsched as tb
from advice.account.activities import Records, records
from helpers import examples
from ranked import Gemm, Host, Load, Meet, Receive, Send, Step, Sync, documents, play, written
from tbsched.advice.account.account import account_of
from tbsched.advice.explain.event_graph import EventGraph
from tbsched.advice.explain.explanation import Explanation
from tbsched.advice.explain.roots import ALL, Root
from tbsched.advice.explain.savings import roots_with_savings

_STEPS = 4


def explained(programs: Sequence[Sequence[Step]]) -> Explanation:
    """What is found of the profiles of ranks that ran these programs."""
    with tempfile.TemporaryDirectory() as folder:
        files = written(Path(folder), documents(play(programs, waits=True)))
        return tb.explain(tb.load_program(files))


def saved(programs: Sequence[Sequence[Step]], others: Sequence[Sequence[Step]]) -> float:
    """The seconds that other programs take less than some, from first work to last."""
    return (explained(programs).span - explained(others).span) if others else 0.0


def without(program: Sequence[Step], name: str) -> list[Step]:
    return [step for step in program if not (isinstance(step, Host) and step.name == name)]


def root(found: Explanation, gpu: int, cause: str, by: str) -> Root:
    return next(each for each in found.roots if each[:3] == (gpu, cause, by))


def training(rank: int, slow: Sequence[Step]) -> list[Step]:
    """Steps of data parallel training; the ranks have something more each, or nothing."""
    found: list[Step] = []
    for _ in range(_STEPS):
        found += [Gemm(300), Meet(60), Sync(), *slow[rank : rank + 1], Gemm(300)]
        for _ in range(3):
            found += [Gemm(200), Meet(150, beside=True)]
        found += [Meet(40, elements=1), Gemm(80, "sgd"), Sync()]
    return found


def test_a_host_function_saves_what_the_program_without_it_takes_less() -> None:
    slow = [Gemm(10), Host("decode_images", 3000)]
    programs = [training(rank, slow) for rank in (0, 1)]
    found = explained(programs)
    truth = saved(programs, [without(each, "decode_images") for each in programs])
    first = found.roots[0]
    assert first.by == "decode_images"
    assert first.saves == pytest.approx(truth, rel=0.02)
    assert first.saves_on_all == first.saves


def test_a_function_of_all_ranks_saves_nothing_on_one_of_them() -> None:
    """Each rank would wait for the other one."""
    programs = [training(rank, [Host("tokenize", 2000)] * 2) for rank in (0, 1)]
    found = explained(programs)
    truth = saved(programs, [without(each, "tokenize") for each in programs])
    for gpu in (0, 1):
        each = root(found, gpu, "host", "tokenize")
        assert each.saves == pytest.approx(0.0, abs=20e-6)
        assert each.saves_on_all == pytest.approx(truth, rel=0.02)


def test_a_function_that_the_gpu_hides_saves_nothing() -> None:
    """The host is far ahead of the GPU until it waits."""
    programs: list[list[Step]] = [[], []]
    for rank in (0, 1):
        for _ in range(_STEPS):
            programs[rank] += [Gemm(5000), Host("log", 1000), Host("late", 1 + 900 * rank)]
            programs[rank] += [Gemm(100), Meet(100), Sync(), Host("read", 500 * rank + 1)]
    found = explained(programs)
    assert "log" not in {each.by for each in found.roots}
    read = root(found, 1, "host", "read")
    assert read.saves == pytest.approx((_STEPS - 1) * 500e-6, rel=0.05)


def test_a_kernel_that_only_one_rank_has_saves_its_time() -> None:
    programs = [training(rank, [Gemm(2500, "check")]) for rank in (0, 1)]
    found = explained(programs)
    other = [[s for s in each if s != Gemm(2500, "check")] for each in programs]
    each = root(found, 0, "kernel", "check")
    assert each.saves == pytest.approx(saved(programs, other), rel=0.03)


def test_a_copy_of_pageable_memory_saves_the_time_of_its_call_too() -> None:
    """The host copies the bytes itself, and launches nothing meanwhile."""
    load = Load(2500)
    programs = [training(rank, [load]) for rank in (0, 1)]
    found = explained(programs)
    truth = saved(programs, [[step for step in each if step != load] for each in programs])
    each = root(found, 0, "copy", "h2d pageable")
    assert each.saves == pytest.approx(truth, rel=0.03)


def test_uneven_work_saves_what_even_work_does() -> None:
    """As many kernels on each rank, longer on one: the work is divided evenly."""

    def experts(uss: tuple[int, int]) -> list[list[Step]]:
        return [[Gemm(50), Meet(60), *[Gemm(us, "expert"), Gemm(80), Meet(90)] * 4] for us in uss]

    found = explained(experts((850, 150)))
    truth = saved(experts((850, 150)), experts((500, 500)))
    assert root(found, 0, "kernel", "expert").saves == pytest.approx(truth, rel=0.02)


def test_bytes_save_no_more_than_they_take_and_other_causes_are_not_taken_out() -> None:
    found = explained([training(rank, []) for rank in (0, 1)])
    moved = [each for each in found.roots if each.gpu == ALL]
    assert moved
    for each in moved:
        assert each.saves is not None
        assert 0 < each.saves <= each.own
    assert all(each.saves is None for each in found.roots if each.cause in ("stream", "event"))


def test_a_stage_saves_what_the_stages_behind_it_waited() -> None:
    programs: list[list[Step]] = [[], []]
    for _ in range(_STEPS):
        programs[0] += [Host("load_adapter", 2000), Gemm(400), Send(30, 1), Sync()]
        programs[1] += [Receive(30, 0), Gemm(400), Sync()]
    found = explained(programs)
    truth = saved(programs, [without(each, "load_adapter") for each in programs])
    each = root(found, 0, "host", "load_adapter")
    assert each.saves == pytest.approx(truth, rel=0.02)


def test_of_one_gpu_nothing_is_replayed() -> None:
    with tempfile.TemporaryDirectory() as folder:
        played = play([training(rank, [Host("f", 3000)]) for rank in (0, 1)])
        found = tb.explain(tb.load_program(written(Path(folder), documents(played))[0]))
    assert {each.saves for each in found.roots} == {None}


def segments(rank: int) -> st.SearchStrategy[list[Step]]:
    """What a rank does between two collectives."""
    us = st.integers(1, 900)
    own: st.SearchStrategy[Step] = st.one_of(
        st.builds(Host, st.sampled_from(["decode", "log", f"only{rank}"]), us),
        st.builds(Gemm, us, st.sampled_from(["gemm", "norm"])),
        st.just(Sync()),
    )
    return st.lists(own, max_size=5)


@st.composite
def programs_of_ranks(draw: st.DrawFn, *, beside: bool) -> list[list[Step]]:
    """Programs of two or three ranks that meet in the same collectives.

    ``beside``: of some of them later kernels need not wait.
    """
    count = draw(st.integers(2, 3))
    programs: list[list[Step]] = [[Gemm(20)] for _ in range(count)]
    for _ in range(draw(st.integers(1, 5))):
        meeting = Meet(draw(st.integers(5, 300)), beside=beside and draw(st.booleans()))
        for rank, program in enumerate(programs):
            program += [*draw(segments(rank)), meeting]
    return programs


@settings(max_examples=examples(60), deadline=None)
@given(programs_of_ranks(beside=True))
def test_laws_of_replays(programs: list[list[Step]]) -> None:
    """Nothing changed, all times are those of the profile; without a cause nothing is later."""
    found = explained(programs)
    graph = EventGraph.of(found.accounted)
    replayed = graph.replayed(graph.delay_ns[:, np.newaxis], {})
    assert np.array_equal(replayed[:, 0], graph.at_ns)
    least = max(sum(s.us for s in each if isinstance(s, Gemm)) for each in programs) * 1e-6
    for each in found.roots:
        if each.saves is None or each.saves_on_all is None:
            continue
        assert 0 <= each.saves <= found.span
        if each.cause == "host":
            assert each.saves <= each.saves_on_all
            assert found.span - each.saves_on_all >= least - 1e-9


@settings(max_examples=examples(40), deadline=None)
@given(programs_of_ranks(beside=False))
def test_a_function_of_all_ranks_saves_what_programs_without_it_do(
    programs: list[list[Step]],
) -> None:
    found = explained(programs)
    truth = saved(programs, [without(each, "decode") for each in programs])
    for each in found.roots:
        if each[1:3] == ("host", "decode") and each.saves_on_all is not None:
            assert each.saves_on_all == pytest.approx(truth, rel=0.1, abs=50e-6)


@settings(max_examples=examples(400), deadline=None)
@given(records())
def test_any_records_are_replayed_as_they_were(given_records: Records) -> None:
    """Whatever lies beside, in or across anything else."""
    account = account_of(given_records.activity)
    graph = EventGraph.of(account)
    replayed = graph.replayed(graph.delay_ns[:, np.newaxis], {})
    assert np.array_equal(replayed[:, 0], graph.at_ns)
    waiting = np.array([bool(each) for each in graph.awaited], np.bool_)
    assert (graph.delay_ns[waiting] >= 0).all()
    assert all(before < k for k, each in enumerate(graph.awaited) for before, _ in each)
    for each in roots_with_savings(account)[0]:
        if each.saves is not None and each.saves_on_all is not None:
            assert 0 <= each.saves <= each.saves_on_all <= account.span_ns / 1e9
