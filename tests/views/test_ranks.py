"""What is found of several ranks, as text, page, JSON and a file for Perfetto."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tbsched as tb
from ranked import Gemm, Host, Meet, Step, Sync, documents, play, written
from tbsched.cli.app import app
from tbsched.views import data, short


def steps(rank: int) -> list[Step]:
    return [
        step
        for _ in range(3)
        for step in (Host("decode", 3000 * rank + 10), Gemm(500), Meet(100), Gemm(50), Sync())
    ]


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    return written(tmp_path, documents(play([steps(0), steps(1)])))


def run(*words: object) -> str:
    done = CliRunner().invoke(app, [str(word) for word in words], standalone_mode=False)
    assert done.exception is None, done.output
    return done.output


def test_the_command_line_takes_files_of_ranks_and_says_who_waited(files: list[Path]) -> None:
    told = run("explain", *files)
    first = told.splitlines()
    row = next(line for line in first if line.endswith("decode"))
    assert "rank 1" in row
    assert "2 GPUs idle or waiting for a peer" in first[0]
    headings = next(line for line in first if line.lstrip().startswith("lost"))
    assert "of it peers waited     saves  on all ranks  because of" in headings
    for heading in ("Rank 0 of 2:", "Rank 1 of 2:", "Collectives:"):
        assert heading in told
    assert "rank 1: host, decode" in told
    assert run("explain", files[0].parent) == told


def test_json_has_roots_collectives_and_exposed_communication(files: list[Path]) -> None:
    found = json.loads(run("explain", *files, "--json"))
    assert found["roots"][0]["who"] == "rank 1"
    assert found["roots"][0]["by"] == "decode"
    assert found["roots"][0]["saves"] == pytest.approx(3 * 2.998e-3)
    assert found["roots"][0]["saves_on_all"] == pytest.approx(3 * 3.0046e-3, rel=1e-3)
    (kind,) = found["collectives"]
    assert kind["count"] == 3
    assert kind["waiting"] == pytest.approx(8.98e-3, rel=0.02)
    assert kind["moving"] == pytest.approx(6 * 100e-6)
    assert {row["cause"] for row in found["exposed"]} == {"needs"}
    assert [rank["rank"] for rank in found["ranks"]] == [0, 1]
    assert found["changes"] == []


def test_page_has_a_lane_per_rank_and_its_causes(files: list[Path], tmp_path: Path) -> None:
    run("explain", *files, "--html", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "Each GPU, as measured" in page
    assert ">rank 0<" in page.replace("\n", "")
    assert "waiting in collectives for a peer: rank 1: host, decode" in page


def test_perfetto_has_a_process_per_rank_and_flows_to_the_late_one(
    files: list[Path], tmp_path: Path
) -> None:
    pytest.importorskip("perfetto")
    from views.test_perfetto import read

    run("explain", *files, "--perfetto", tmp_path / "out.pftrace")
    found = read(tmp_path / "out.pftrace")
    titles = set(found.paths.values())
    for rank in (0, 1):
        assert any(f"rank {rank}" in title for title in titles)
    begun = [each for each in found.slices if each.flows]
    ended = [each for each in found.slices if each.ended_flows]
    assert len(begun) == len(ended) == 3
    assert all("rank 0" in found.paths[each.track] for each in begun)
    assert all("rank 1" in found.paths[each.track] for each in ended)
    assert all(each.name.startswith("nccl") for each in begun + ended)
    waits = [each for each in found.slices if each.name == "waiting in collectives for a peer"]
    assert {each.arguments["why"] for each in waits} >= {"rank 1: host, decode"}


def test_the_program_shows_its_ranks(files: list[Path]) -> None:
    program = tb.load_program(files)
    assert "of 2 ranks in" in short(program)
    text = str(program)
    assert "rank1.json.gz" in text
    assert "What the profile does not say:" in text
    assert "rank1.json.gz" in tb.show.to_html(program)
    assert [rank["file"] for rank in data(program)["ranks"]] == ["rank0.json.gz", "rank1.json.gz"]


def test_a_refusal_is_one_line(files: list[Path]) -> None:
    done = CliRunner().invoke(app, ["explain", str(files[0]), str(files[0])])
    assert isinstance(done.exception, ValueError)
    assert "of rank 0, and so is" in str(done.exception)


def test_ranks_have_no_launches_to_draw(files: list[Path]) -> None:
    with pytest.raises(ValueError, match="gantt: trace: the profile has no launch that can be dr"):
        tb.show.gantt(tb.load_program(files))
