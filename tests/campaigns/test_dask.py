"""Campaigns on Dask Distributed, here with a cluster of processes on this host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from campaigns.dying import RIGHT, Dying
from tbsched.campaigns import Lost, Report, fuzz, record
from tbsched.traces.files import load_traces

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")
WRONG = "rtx3090-pooled-shared-memory"


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    # As a user's cluster is: a process per GPU, with one thread. A task counts as deadly once two
    # workers have died of it; by default four have to. All processes are forks of one that has
    # imported Dask.
    options = {
        "distributed.scheduler.allowed-failures": 1,
        "distributed.worker.multiprocessing-method": "forkserver",
    }
    with (
        dask.config.set(options),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def campaign(client: Any, oracle: object, wrong: str = WRONG, **arguments: object) -> Report:
    executor = None if client is None else client.get_executor()
    settings: dict[str, object] = {
        "max_examples": 768,
        "max_counterexamples": None,
        "shrink_seconds": 300.0,
    }
    return fuzz(
        oracle, wrong, seed=3, draw="native", executor=executor, progress=False,
        **{**settings, **arguments},
    )  # type: ignore[arg-type] # fmt: skip


def test_a_cluster_whose_worker_is_killed_finds_the_same(client: Any, tmp_path: Path) -> None:
    known = campaign(None, RIGHT, corpus=tmp_path / "known.jsonl")
    assert len(known.counterexamples) == 3
    found = campaign(client, Dying(tmp_path / "died"), corpus=tmp_path / "c.jsonl")
    assert (tmp_path / "died").exists()
    sequences = [[each.sequence for each in report.counterexamples] for report in (known, found)]
    assert sequences[0] == sequences[1]
    assert (found.examples, found.launches, found.lost) == (768, known.launches, ())
    assert (tmp_path / "c.jsonl").read_bytes() == (tmp_path / "known.jsonl").read_bytes()


def test_what_kills_every_worker_of_a_cluster_is_reported(client: Any, tmp_path: Path) -> None:
    record(RIGHT, tmp_path / "r.jsonl", 1, predictor=RIGHT, seed=3, begin=10, progress=False)
    (deadly,) = load_traces(tmp_path / "r.jsonl")
    report = campaign(client, Dying(None, at=deadly.sequence), RIGHT, max_examples=512)
    (lost,) = report.lost
    assert isinstance(lost, Lost)
    assert (lost.begin, lost.count, report.examples) == (0, 256, 256)
