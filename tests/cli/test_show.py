"""``tbsched show``: what a file holds, as text, pictures and files of other kinds."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tbsched as tb
from helpers import ROOT
from tbsched.cli.app import app

TIMED = tb.Sequence([tb.Launch(132, 1024, 32, stream=0, duration=1e-3, name="gemm")] * 2)
HELD = tb.Sequence([tb.Launch(41, 512, 32), tb.Launch(300, 256, 32, name="gemm")])
Show = Callable[..., str]


@pytest.fixture
def show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Show:
    """Runs the verb in a folder of its own, and returns what it says."""
    monkeypatch.chdir(tmp_path)
    Path("timed.json").write_text(TIMED.to_json(), "utf-8")
    Path("held.json").write_text(HELD.to_json(), "utf-8")
    recorded = [tb.predict(seq, "h200") for seq in (HELD, HELD[:1], TIMED)]
    tb.save_traces("recorded.jsonl", recorded)
    tb.save_traces("weaker.jsonl", [tb.predict(HELD, "h200", "first_fit")])

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["show", *arguments], catch_exceptions=True)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            return f"{type(result.exception).__name__}: {result.exception}"
        return result.output

    return run


def test_without_an_output_the_text_is_printed_with_the_waits(show: Show) -> None:
    assert show("recorded.jsonl") == f"{tb.load_traces('recorded.jsonl')[0]}\n"
    assert "Launch 1 (gemm) waited 1.002 ms: 1.002 ms for launch 0 (gemm), before" in show(
        "timed.json"
    )
    assert "NVIDIA GeForce RTX 3090, 82 SMs" in show("recorded.jsonl", "-d", "rtx3090")
    assert "41 blocks" not in show("recorded.jsonl", "--number", "1", "--policy", "first_fit")


def test_profile_is_shown_as_it_is_but_for_pictures(show: Show) -> None:
    profile = str(ROOT / "tests" / "profiles" / "h200" / "copies_pipeline.json.gz")
    program = tb.load_program(profile, fit=False)
    assert show(profile) == f"{program}\n"
    assert "a table" in show(profile, "-o", "x.csv")
    assert Path("x.csv").read_text("utf-8").count("\n") == len(program.measured) + 1
    assert "start_ns" in Path("x.csv").read_text("utf-8").partition("\n")[0]
    assert "a page" in show(profile, "-o", "x.html")
    assert "What the profile does not say" in Path("x.html").read_text("utf-8")
    assert "--number: 1 is outside 0..0" in show(profile, "-n", "1")
    assert "--number: 1 is outside 0..0" in show(profile, "-n", "1", "-d", "h200")
    assert "ladder scores recordings, and" in show(profile, "-o", "x.png", "-v", "ladder")


def test_two_are_compared(show: Show) -> None:
    assert "agree on every block of 2 launches" in show("recorded.jsonl", "--view", "compared")
    weaker = show("recorded.jsonl", "--against", "weaker.jsonl")
    assert "model h200/hopper (a) and model h200/first_fit (b) agree in 0 of 2" in weaker
    assert "of 1 launches" in show(
        "recorded.jsonl", "-n", "1", "-v", "compared", "-p", "algorithm1"
    )


@pytest.mark.parametrize(
    ("arguments", "begin"),
    [
        (["timed.json", "-o", "x.png", "--by", "stream"], b"\x89PNG"),
        (["held.json", "-o", "x"], b"\x89PNG"),
        (["held.json", "-o", "x.svg", "--view", "sm_map", "--at", "1"], b"<?xml"),
        (["recorded.jsonl", "-o", "x.pdf", "--view", "resources", "--sm", "5"], b"%PDF"),
        (["recorded.jsonl", "-o", "x.png", "--view", "ladder", "-p", "hopper"], b"\x89PNG"),
        (["recorded.jsonl", "-n", "2", "-o", "x.png", "--view", "compared"], b"\x89PNG"),
        (["recorded.jsonl", "-o", "x.html", "--against", "weaker.jsonl"], b"<!DOCTYPE html>"),
    ],
)
def test_the_ending_of_the_output_decides(show: Show, arguments: list[str], begin: bytes) -> None:
    pytest.importorskip("matplotlib")
    output = arguments[arguments.index("-o") + 1]
    assert f"wrote {output}: a p" in show(*arguments)
    assert Path(output).read_bytes().startswith(begin)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "x.gif"], "--output: x.gif: no file of this ending can be written; there are .png"),
        (["-o", "x.htm"], "did you mean '.html'?"),
        (["--view", "gantt"], "--view: gantt is a picture; give -o picture.png"),
        (["--view", "gantt", "-o", "x.html"], "--view: gantt is a picture; give -o picture.png"),
        (["-o", "x.png", "--view", "blocks", "--by", "sm"], "--by: it goes with --view gantt"),
        (["-o", "x.png", "--sm", "1"], "--sm: it goes with --view resources"),
        (["-o", "x.png", "--view", "resources"], "--sm: --view resources is of one SM"),
        (["-o", "x.png", "--view", "sm_map", "--at", "0.5"], "sm_map.at: an integer is needed"),
        (["--number", "3"], "--number: 3 is outside 0..2 of recorded.jsonl"),
        (["-o", "x.png", "--by", "stream"], "nobody recorded when the blocks of launch 0 ran"),
    ],
)
def test_what_makes_no_sense_is_refused_by_option(
    show: Show, arguments: list[str], words: str
) -> None:
    pytest.importorskip("matplotlib")
    assert words in show("recorded.jsonl", *arguments)
    assert not Path("x.png").exists()


def test_a_profile_can_be_drawn_as_it_was_measured(show: Show) -> None:
    pytest.importorskip("matplotlib")
    profile = str(next((ROOT / "tests" / "profiles" / "kinds").glob("04*")))
    measured = [profile, "--view", "measured", "-o", "x.svg"]
    assert "--device: --view measured predicts nothing" in show(*measured, "--device", "h100")
    assert "measured is for profiles, and timed.json is none" in show("timed.json", *measured[1:])
    assert not Path("x.svg").exists()
    assert "wrote x.svg" in show(*measured)


def test_nothing_to_compare_with_is_refused(show: Show) -> None:
    assert "held.json has no placements to compare with; give --against" in show(
        "held.json", "--view", "compared"
    )


def test_streams_of_a_profile_have_the_numbers_that_the_option_takes(show: Show) -> None:
    """Whatever is shown: the file, its prediction, or an explanation of it."""
    profile = str(ROOT / "tests" / "profiles" / "h200" / "copies_pipeline.json.gz")
    program = tb.load_program(profile, fit=False)
    known = set(map(int, program.streams))
    assert known == {13, 17, 21}
    predicted = CliRunner().invoke(app, ["predict", profile]).output
    explained = tb.show.to_html(tb.explain(tb.load_program(profile)))
    for shown in (show(profile, "--device", "h200"), predicted, explained):
        numbers = {int(number) for number in re.findall(r"\bstream (\d+)", shown)}
        assert numbers
        assert numbers <= {7, *known}  # 7 is the default stream
    for number in known:
        part = tb.load_program(profile, fit=False, streams=[number])
        assert show(profile, "--stream", str(number)) == f"{part}\n"
    part = CliRunner().invoke(app, ["predict", profile, "--stream", "17"])
    assert "stream 17" in part.output
    assert "stream 13" not in part.output


def test_hardware_queues_of_a_prediction_can_be_set(tmp_path: Path) -> None:
    kernel = tb.Launch(1, 32, 16, stream=0, duration=1e-3)
    place = tmp_path / "queues.json"
    place.write_text(tb.Sequence([kernel, kernel, replace(kernel, stream=1)]).to_json(), "utf-8")
    for connections, word in (("1", "hardware queue"), ("8", "in its stream")):
        found = CliRunner().invoke(app, ["predict", str(place), "--connections", connections])
        assert word in found.output
    assert "hardware queue" not in found.output
