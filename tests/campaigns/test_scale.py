"""Campaigns that several processes run: the same is found, whoever runs what, and whoever dies."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from campaigns.dying import RIGHT, Dying, Slow
from tbsched.campaigns import Lost, Report, Workers, fuzz, merge_corpora, record
from tbsched.campaigns.scale import coordinator
from tbsched.campaigns.scale.workers import WorkerDied
from tbsched.errors import CudaError
from tbsched.traces.files import load_traces, save_traces

WRONG = "rtx3090-pooled-shared-memory"  # three of the first 768 sequences show it
SEEDED = 3
DIED = "its process ended by signal 9"


def campaign(
    executor: Executor | None, oracle: object = RIGHT, wrong: str = WRONG, **arguments: object
) -> Report:
    settings: dict[str, object] = {
        "seed": SEEDED,
        "max_examples": 768,
        "max_counterexamples": None,
        "shrink_seconds": 300.0,
        "draw": "native",
        "progress": False,
    }
    return fuzz(oracle, wrong, executor=executor, **{**settings, **arguments})  # type: ignore[arg-type]


def numbers(report: Report) -> tuple[object, ...]:
    """What must not depend on who ran the campaign."""
    return (
        [
            (found.sequence, found.code, found.shrunk, found.like)
            for found in report.counterexamples
        ],
        (report.examples, report.launches, report.blocks, report.occupancy, report.exact),
        (report.disagreements, report.unstable, report.lost, report.ended, report.seed),
        (report.coverage.ways, report.coverage.refused),
    )


@pytest.fixture(scope="module")
def two() -> Iterator[Workers]:
    with Workers(2) as workers:
        yield workers


@pytest.fixture(scope="module")
def alone(two: Workers, tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, bytes]:
    """What one worker finds, and its corpus."""
    corpus = tmp_path_factory.mktemp("alone") / "c.jsonl"
    with Workers(1) as one:
        report = campaign(one, corpus=corpus)
    return report, corpus.read_bytes()


# -- the number of workers ------------------------------------------------------------------------


def test_one_worker_finds_what_this_process_finds(alone: tuple[Report, bytes]) -> None:
    report = alone[0]
    assert len(report.counterexamples) == 3
    assert all(found.shrunk for found in report.counterexamples)
    assert numbers(campaign(None)) == numbers(report)


@pytest.mark.parametrize("count", [2, 3])
def test_the_number_of_workers_changes_nothing(
    count: int, alone: tuple[Report, bytes], two: Workers, tmp_path: Path
) -> None:
    corpus = tmp_path / "c.jsonl"
    if count == 2:
        report = campaign(two, corpus=corpus)
    else:
        with Workers(count) as workers:
            report = campaign(workers, corpus=corpus)
    assert numbers(report) == numbers(alone[0])
    assert corpus.read_bytes() == alone[1]


def test_a_campaign_that_ends_early_ends_at_the_same_sequence(two: Workers) -> None:
    report = campaign(two, max_counterexamples=1)
    same = campaign(None, max_counterexamples=1)
    # How much was predicted ahead, and counts as covered, depends on how fast it went.
    assert numbers(report)[:3] == numbers(same)[:3]
    assert report.ended == "counterexamples"
    assert report.examples < 768


def test_a_campaign_begins_with_what_its_corpus_holds(
    alone: tuple[Report, bytes], two: Workers, tmp_path: Path
) -> None:
    corpus = tmp_path / "c.jsonl"
    corpus.write_bytes(alone[1])
    report = campaign(two, corpus=corpus, max_counterexamples=3, seed=4)
    assert (report.replayed, report.examples) == (3, 0)
    assert [found.replayed for found in report.counterexamples] == [True] * 3
    assert corpus.read_bytes() == alone[1]


def test_recordings_are_equal_line_by_line(two: Workers, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("none.jsonl", "two.jsonl")]
    reports = [
        record(RIGHT, path, 600, predictor=RIGHT, seed=5, executor=executor, progress=False)
        for path, executor in zip(paths, (None, two), strict=True)
    ]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert numbers(reports[0]) == numbers(reports[1])
    assert load_traces(paths[1])[-1].id == "s5_600"


def test_a_campaign_goes_on_where_another_has_ended(tmp_path: Path) -> None:
    def recorded(name: str, begin: int, count: int) -> None:
        record(RIGHT, tmp_path / name, count, predictor=RIGHT, seed=5, begin=begin, progress=False)

    recorded("whole.jsonl", 0, 400)
    recorded("parts.jsonl", 0, 150)
    recorded("parts.jsonl", 150, 250)
    whole, parts = (load_traces(tmp_path / name) for name in ("whole.jsonl", "parts.jsonl"))
    assert [trace.sequence for trace in whole] == [trace.sequence for trace in parts]
    assert [trace.id for trace in whole] == [trace.id for trace in parts]


def test_hypothesis_draws_the_same_whoever_asks_it(two: Workers) -> None:
    # As drawn: what is shrunk is alike even if the draws are not.
    settings = {"draw": "hypothesis", "max_examples": 512, "shrink_seconds": 0.0}
    found = [campaign(each, Slow(0), max_counterexamples=1, **settings) for each in (two, two)]
    assert numbers(found[0]) == numbers(found[1])
    assert found[0].examples > 0


def test_threads_will_do(alone: tuple[Report, bytes]) -> None:
    with ThreadPoolExecutor(2) as threads:
        assert numbers(campaign(threads)) == numbers(alone[0])


def test_seconds_end_a_campaign(two: Workers) -> None:
    started = time.monotonic()
    report = campaign(two, Slow(), RIGHT, max_examples=10**7, max_seconds=1.0)
    assert report.ended == "seconds"
    assert report.examples > 0
    assert time.monotonic() - started < 60


class Silent(Executor):
    """Takes work, and never does any."""

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        return future


def test_executor_that_never_answers_does_not_outlive_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(coordinator, "GRACE", 0.0)
    report = campaign(Silent(), max_seconds=0.5, shrink_seconds=0.1, max_examples=10**6)
    assert (report.ended, report.examples) == ("seconds", 0)
    assert report.lost
    assert {each.reason for each in report.lost} == {
        "no answer within 0.1 s after the end of the time"
    }


# -- workers that die -----------------------------------------------------------------------------


def test_a_killed_worker_loses_nothing(alone: tuple[Report, bytes], tmp_path: Path) -> None:
    corpus, once = tmp_path / "c.jsonl", tmp_path / "died"
    with Workers(2) as workers:
        report = campaign(workers, Dying(once), corpus=corpus)
    assert once.exists()
    known = [found.sequence for found in alone[0].counterexamples]
    assert [found.sequence for found in report.counterexamples] == known
    assert (report.examples, report.ended, report.lost) == (768, "examples", ())
    assert corpus.read_bytes() == alone[1]


def test_what_kills_every_worker_is_reported_and_the_rest_goes_on(tmp_path: Path) -> None:
    record(RIGHT, tmp_path / "r.jsonl", 1, predictor=RIGHT, seed=SEEDED, begin=300, progress=False)
    (deadly,) = load_traces(tmp_path / "r.jsonl")
    with Workers(2) as workers:
        report = campaign(workers, Dying(None, at=deadly.sequence), RIGHT)
    assert report.lost == (Lost(256, 256, f"3 times its worker died; the last time {DIED}"),)
    assert (report.examples, report.ended) == (512, "examples")
    assert "lost: 256 sequences from number 256 on: 3 times" in str(report)


def test_an_error_of_a_gpu_is_tried_again(alone: tuple[Report, bytes], tmp_path: Path) -> None:
    with Workers(2) as workers:
        report = campaign(workers, Dying(tmp_path / "failed", error=True), shrink_seconds=0.0)
        assert (tmp_path / "failed").exists()
        assert len(report.counterexamples) == 3
        with pytest.raises(CudaError) as caught:
            campaign(workers, Dying(None, after=5, error=True), max_examples=100)
    assert any("The campaign so far" in note for note in caught.value.__notes__)


def test_a_pool_that_breaks_says_what_would_not(tmp_path: Path) -> None:
    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
        pytest.raises(BrokenProcessPool) as caught,
    ):
        campaign(pool, Dying(tmp_path / "died"))
    assert any("tbsched.campaigns.Workers" in note for note in caught.value.__notes__)


def test_other_errors_end_a_campaign_at_once(two: Workers) -> None:
    with pytest.raises(ValueError, match="sms"):
        campaign(two, RIGHT, "a100")
    with pytest.raises(pickle.PicklingError):  # no pickle takes it there
        campaign(two, type("Local", (Slow,), {})())


@pytest.mark.parametrize("count", [0, -1, True, 1.5])
def test_numbers_of_workers_are_checked(count: object) -> None:
    with pytest.raises((ValueError, TypeError), match="workers: "):
        Workers(count)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="executor: "):
        campaign(count)  # type: ignore[arg-type]


# -- processes ------------------------------------------------------------------------------------


def test_workers_are_an_executor(two: Workers) -> None:
    assert len(two) == 2
    assert list(two.map(pow, range(5), [2] * 5)) == [0, 1, 4, 9, 16]
    pids = {two.submit(os.getpid).result() for _ in range(8)}
    assert os.getpid() not in pids
    with pytest.raises(ValueError, match="not a number"):
        two.submit(int, "not a number").result()


def test_a_dead_process_fails_its_work_alone_and_is_replaced() -> None:
    with Workers(1) as one:
        with pytest.raises(WorkerDied, match="ended with status 7"):
            one.submit(os._exit, 7).result()
        assert one.submit(os.getpid).result() != os.getpid()
    with pytest.raises(RuntimeError, match="shut down"):
        one.submit(os.getpid)


def test_a_process_that_dies_while_it_has_nothing_to_do_fails_nothing() -> None:
    with Workers(1) as one:
        dead = one.submit(os.getpid).result()
        os.kill(dead, signal.SIGKILL)
        eventually(lambda: all(child.pid != dead for child in multiprocessing.active_children()))
        assert one.submit(os.getpid).result() != dead


def test_work_that_has_not_begun_can_be_dropped() -> None:
    workers = Workers(1)
    futures = [workers.submit(time.sleep, 0.5) for _ in range(10)]
    workers.shutdown(cancel_futures=True)
    assert any(future.cancelled() for future in futures)
    assert all(future.done() for future in futures)


def eventually(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 100
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.1)


SCRIPT = """
import os, sys
from campaigns.dying import Slow
from tbsched.campaigns import Workers, fuzz

if __name__ == "__main__":
    with Workers(2) as workers:
        print(*{workers.submit(os.getpid).result() for _ in range(8)}, flush=True)
        report = fuzz(Slow(file="drawn"), "rtx3090", seed=1, max_examples=10**6, draw="native",
                      executor=workers, progress=False)
    print(report.ended, report.examples > 0, flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_process_is_left_behind(number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT, "utf-8")
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    with subprocess.Popen(
        [sys.executable, tmp_path / "script.py"],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    ) as child:
        assert child.stdout is not None
        pids = [int(pid) for pid in child.stdout.readline().split()]
        eventually((tmp_path / "drawn").exists)
        child.send_signal(number)
        said = child.stdout.read()
    if number == signal.SIGINT:
        assert said.split() == ["interrupted", "True"]
    assert pids
    eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


RECORDING = """
from tbsched.campaigns import Workers, record

if __name__ == "__main__":
    with Workers(2) as workers:
        record("rtx3090", "r.jsonl", 4000, predictor="rtx3090", seed=5, executor=workers)
"""


def test_a_recording_goes_on_behind_a_crash_of_the_coordinator(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(RECORDING, "utf-8")
    path = tmp_path / "r.jsonl"
    with subprocess.Popen([sys.executable, "script.py"], cwd=tmp_path, stderr=-3) as child:
        eventually(lambda: path.exists() and path.stat().st_size > 200_000)
        child.kill()
    settings = {"predictor": RIGHT, "seed": 5, "progress": False}
    record(RIGHT, path, 1, **settings, begin=4000)  # type: ignore[arg-type] # mends the last line
    kept = load_traces(path)[:-1]
    last = int(kept[-1].id.removeprefix("s5_"))
    assert last == len(kept) < 4000
    record(RIGHT, tmp_path / "rest.jsonl", 20, **settings, begin=last)  # type: ignore[arg-type]
    record(RIGHT, tmp_path / "whole.jsonl", last + 20, **settings)  # type: ignore[arg-type]
    whole = load_traces(tmp_path / "whole.jsonl")
    found = [*kept, *load_traces(tmp_path / "rest.jsonl")]
    assert [(each.id, each.sequence) for each in found] == [(e.id, e.sequence) for e in whole]


def test_a_script_without_a_guard_is_told_so(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from tbsched.campaigns import Workers\nprint(Workers(1).submit(int).result())\n", "utf-8"
    )
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1
    assert 'a script that makes Workers needs if __name__ == "__main__":' in done.stderr


# -- corpora --------------------------------------------------------------------------------------


def test_corpora_merge_without_loss_or_duplicates(
    alone: tuple[Report, bytes], tmp_path: Path
) -> None:
    one, other, all_ = (tmp_path / name for name in ("1.jsonl", "2.jsonl", "all.jsonl"))
    one.write_bytes(alone[1])
    held = load_traces(one)
    campaign(None, wrong="rtx3090-highest-gap", corpus=other, max_counterexamples=1)
    more = load_traces(other)
    save_traces(other, [held[0], *more, held[-1]])
    assert merge_corpora(all_, one, other) == len(held) + len(more)
    assert [trace.id for trace in load_traces(all_)] == [trace.id for trace in (*held, *more)]
    assert merge_corpora(all_, other, one, all_) == 0
