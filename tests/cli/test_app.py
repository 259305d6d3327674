"""The verbs, and the statuses with which the command line exits."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tbsched as tb
from tbsched.cli import app as command_line

ONE = tb.Sequence([tb.Launch(132, 256, 32)])


@pytest.fixture
def one(tmp_path: Path) -> Path:
    tb.save_traces(tmp_path / "one.jsonl", [tb.predict(ONE, "h200")])
    return tmp_path / "one.jsonl"


@pytest.fixture
def other(tmp_path: Path) -> Path:
    full = tb.predict(ONE, "h200", "first_fit")
    tb.save_traces(tmp_path / "other.jsonl", [full])
    return tmp_path / "other.jsonl"


def status(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    monkeypatch.setattr(sys, "argv", ["tbsched", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        command_line.main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_help_lists_the_verbs_in_their_order() -> None:
    text = CliRunner().invoke(command_line.app, ["--help"]).stdout
    rows = re.findall(r"^\W*(\w+) {2,}\w", text, re.MULTILINE)
    verbs = list(command_line.VERBS)
    assert rows[-len(verbs) :] == verbs


def test_agreement_is_0(monkeypatch: pytest.MonkeyPatch, one: Path) -> None:
    assert status(monkeypatch, "compare", one, one) == 0
    assert status(monkeypatch, "verify", one) == 0


def test_disagreement_is_1(monkeypatch: pytest.MonkeyPatch, one: Path, other: Path) -> None:
    assert status(monkeypatch, "compare", one, other) == 1
    assert status(monkeypatch, "verify", other) == 1


EVENTS = '[{"launch":{"blocks":132,"threads":256,"registers":32}}]'


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("predict k.json --gpu h100", "--gpu (Possible options: --device)"),
        ("explain k.json -o page.html", "-o (Possible options: --html)"),
        ("capture python -c pass", "tbsched capture -o FILE -- python program.py"),
        ("simulate IIX", "did you mean tbsched sm simulate?"),
        ("gantt k.json", "did you mean tbsched show FILE -o picture.png?"),
        ("devices h100 a100", "tbsched devices --diff A B"),
        (
            "explain k.json",
            "a list of events, not the record of a program: predict it with tbsched predict",
        ),
        ("coresident k.json --groups 5", "tbsched: --groups[0]: 5 is outside 0..0"),
        ("coresident k.json --after 0,7", "tbsched: --after[0]: "),
        ("explain one.jsonl --from 1 --to 0", "--to: 0.0 is not after --from: 1.0"),
        ("fuzz --oracle tx2 --seconds nan", "tbsched: --seconds: nan is less than 0"),
        ("fuzz --oracle tx2 --sequences 0", "tbsched: --sequences: 0 is less than 1"),
        ("fuzz --oracle tx2 --workers 0", "tbsched: --workers: 0 is outside 1..1024"),
        ("fuzz --oracle tx2 --workers 100000", "tbsched: --workers: 100000 is outside 1..1024"),
        ("fuzz --oracle tx2 --device h20", "tbsched: --device: 'h20' is unknown"),
        ("record --oracle tx2 -o r.jsonl --sequences 0", "tbsched: --sequences: 0 is less than 1"),
        ("record --oracle tx2 -o r.jsonl --seed -1", "tbsched: --seed: -1 is less than 0"),
    ],
)
def test_a_refusal_says_what_is_meant(
    monkeypatch: pytest.MonkeyPatch, one: Path, line: str, words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(one.parent)
    Path("k.json").write_text(EVENTS, "utf-8")
    assert status(monkeypatch, *line.split()) == 2
    assert words in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["predict", "no-such-file.json"], "no-such-file.json"),
        (["devices", "no-such-gpu"], "no-such-gpu"),
        (["observe"], "SEQUENCES or --cases is needed"),
        (["configs", "x"], "Invalid value"),
        (["no-such-verb"], "No such command"),
    ],
)
def test_bad_input_is_2_and_named(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    assert status(monkeypatch, *arguments) == 2
    assert words in capsys.readouterr().err


def test_no_gpu_is_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], one: Path
) -> None:
    def refuse(index: int) -> None:
        raise tb.NoGpuError(f"no GPU {index}")

    monkeypatch.setattr("tbsched.cli.run.Gpu", refuse)
    assert status(monkeypatch, "observe", one, "--gpu", "5") == 3
    first, advice = capsys.readouterr().err.splitlines()
    assert first == "tbsched: no GPU 5"
    assert advice.startswith("Without a GPU: predict, explain, show and coresident need none")
    assert "--oracle rtx3090" in advice


def test_interruption_is_130(monkeypatch: pytest.MonkeyPatch, one: Path) -> None:
    def interrupt(path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tbsched.cli.files.load_traces", interrupt)
    assert status(monkeypatch, "compare", one, one) == 130


def test_version_names_what_is_built(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(monkeypatch, "--version") == 0
    words = rf"tbsched {re.escape(tb.__version__)}, with(out)? the CUDA launcher, Python 3\.\S+\n"
    assert re.fullmatch(words, capsys.readouterr().out)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("tbsched pred", {"predict"}),
        ("tbsched predict --device h2", {"h200"}),
        ("tbsched predict -d h200-no-warp", {"h200-no-warp-skip"}),
        ("tbsched verify --policy first", {"first_fit"}),
        ("tbsched fuzz --level ex", {"exact"}),
        ("tbsched fuzz --oracle g", {"gpu"}),
        ("tbsched devices xav", {"xavier"}),
    ],
)
def test_shell_completes_verbs_and_names(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: str,
    offered: set[str],
) -> None:
    monkeypatch.setenv("_TBSCHED_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    assert status(monkeypatch) == 0
    assert set(capsys.readouterr().out.split()) == offered


def test_completion_can_be_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    assert status(monkeypatch, "--show-completion", "bash") == 0
    assert "_TBSCHED_COMPLETE=complete_bash" in capsys.readouterr().out
