"""What cannot be written, and interruptions, are neither a disagreement nor a traceback."""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import tbsched as tb
from helpers import run_python
from importers.written import DEVICE, call, kernel, kineto
from tbsched.calibration import Calibration
from tbsched.campaigns import Workers
from tbsched.campaigns.oracles import ModelGpu
from tbsched.cli import app as command_line
from tbsched.cli.interrupts import ending_at_once
from tbsched.traces.growing_file import TraceFile

SEQUENCE = tb.Sequence([tb.Launch(132, 256, 32)])
Run = Callable[..., int]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command line with arguments; its exit status."""

    def status(*arguments: str | Path) -> int:
        monkeypatch.setattr(sys, "argv", ["tbsched", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            command_line.main()
        assert isinstance(ended.value.code, int)
        return ended.value.code

    return status


@pytest.fixture
def one(tmp_path: Path) -> Path:
    tb.save_traces(tmp_path / "one.jsonl", [tb.predict(SEQUENCE, "h200")])
    return tmp_path / "one.jsonl"


# -- what cannot be written or read ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("loop.jsonl", "cannot be written: Too many levels of symbolic links"),
        ("one.jsonl/out.jsonl", "cannot be written: Not a directory"),
        ("x" * 300, "cannot be written: File name too long"),
    ],
)
def test_output_at_no_place_cannot_be_written(
    capsys: pytest.CaptureFixture[str], run: Run, one: Path, name: str, words: str
) -> None:
    (one.parent / "loop.jsonl").symlink_to("loop.jsonl")
    assert run("predict", one, "--output", one.parent / name) == 2
    assert words in capsys.readouterr().err


def test_path_with_a_line_end_is_shown_on_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], run: Run, one: Path
) -> None:
    assert run("predict", one, "--output", tmp_path / "two\nlines.jsonl") == 0
    assert f"wrote {tmp_path}/two lines.jsonl: 1 trace\n" == capsys.readouterr().err
    (tmp_path / "no\ntraces.jsonl").write_text("")
    assert run("verify", tmp_path / "no\ntraces.jsonl") == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_closed_pipe_is_silent_and_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: Run, one: Path
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        assert run("predict", one) == 2
    assert capsys.readouterr().err == ""


def test_full_output_is_named_and_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: Run, one: Path
) -> None:
    for arguments in (["predict", one], ["--help"]):
        with open("/dev/full", "w") as full:
            monkeypatch.setattr(sys, "stdout", full)
            assert run(*arguments) == 2
        assert capsys.readouterr().err.count("No space left on device") == 1


@pytest.mark.parametrize("verb", ["fuzz", "record"])
def test_campaign_that_a_full_disk_ends_says_what_it_has_found(
    verb: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    run: Run,
) -> None:
    def full(self: TraceFile, trace: tb.Trace) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(TraceFile, "append", full)
    words = {
        "fuzz": ["--device", "xavier", "--policy", "first_fit", "--evidence"],
        "record": ["--device", "xavier", "-o"],
    }[verb]
    assert run(verb, "--oracle", "xavier", "--seed", "1", *words, tmp_path / "x.jsonl") == 2
    out, err = capsys.readouterr()
    assert "The campaign so far" in out
    assert err.count("No space left on device") == 1


def test_errors_that_cannot_be_written_keep_their_status(
    monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    for argument in ("no-such-verb", "verify"):
        with open("/dev/full", "w") as full:
            monkeypatch.setattr(sys, "stderr", full)
            assert run(argument) == 2


def test_no_output_at_all_is_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: Run, one: Path
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert run("predict", one) == 2
    assert "standard output is closed" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "ONE", "-o", "FOLDER"],
        ["predict", "ONE", "-o", "FOLDER/none/x.jsonl"],
        ["predict", "ONE", "-o", "/dev/full"],
        ["predict", "FOLDER"],
        ["predict", "x" * 10_000],
        ["compare", "FOLDER", "FOLDER"],
        ["verify", "FOLDER"],
        ["verify", "ONE", "FOLDER"],
        ["show", "FOLDER", "-o", "FOLDER/p.png"],
        ["show", "ONE", "-o", "FOLDER"],
        ["devices", "FOLDER/x.toml"],
        ["fuzz", "--oracle", "rtx3090", "--device", "rtx3090", "--evidence", "FOLDER"],
        ["record", "-o", "FOLDER", "--oracle", "rtx3090", "--device", "rtx3090"],
    ],
)
def test_what_is_no_file_is_2_and_named(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    run: Run,
    one: Path,
    arguments: list[str],
) -> None:
    (tmp_path / "folder").mkdir()
    names = {"ONE": str(one), "FOLDER": str(tmp_path / "folder")}
    given = [names.get(a, a.replace("FOLDER", names["FOLDER"])) for a in arguments]
    assert run(*given) == 2
    error = capsys.readouterr().err
    assert "tbsched: " in error
    assert "Traceback" not in error
    assert len(error) < 1000


def test_a_gpu_of_which_a_profile_says_little_is_accounted_for_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], run: Run
) -> None:
    slower = {**DEVICE, "name": "NVIDIA H100 PCIe", "numSms": 114}
    events = call(1, 0.0, 5.0), kernel(1, 10.0, 20.0)
    place = kineto(tmp_path / "trace.json", *events, deviceProperties=[slower])
    assert run("explain", place) == 0
    assert (
        "No change is proposed: device: the profile names NVIDIA H100 PCIe"
        in capsys.readouterr().out
    )
    assert run("explain", place, "--device", "h100") == 0


def test_what_nobody_expected_is_neither_silent_nor_a_disagreement(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: Run, one: Path
) -> None:
    def fail(place: Path) -> None:
        raise ZeroDivisionError("a mistake of ours")

    monkeypatch.setattr("tbsched.cli.files.load_traces", fail)
    assert run("verify", one) == 2
    assert "a mistake of ours" in capsys.readouterr().err


def test_scores_of_nothing_are_not_agreement(
    capsys: pytest.CaptureFixture[str], run: Run, tmp_path: Path
) -> None:
    """The older GPU has less shared memory than the launch asks for."""
    large = tb.predict(tb.Sequence([tb.Launch(1, 32, 16, 200 * 1024)]), "h200")
    written = tmp_path / "large.jsonl"
    tb.save_traces(written, [large])
    assert run("verify", written, "--device", "rtx3090") == 2
    assert "predicts no sequence" in capsys.readouterr().err


# -- interruptions --------------------------------------------------------------------------------


def test_ctrl_c_that_became_another_error_is_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: Run, one: Path
) -> None:
    def fail(place: Path) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            raise RuntimeError("Error calling __set_name__") from error

    monkeypatch.setattr("tbsched.cli.files.load_traces", fail)
    assert run("verify", one) == 130
    assert capsys.readouterr().err == "tbsched: interrupted\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_campaign_leaves_a_report_and_130(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    run: Run,
    number: signal.Signals,
) -> None:
    class Interrupting(ModelGpu):
        def observe(self, seq: tb.Sequence, /) -> tb.Trace:
            os.kill(os.getpid(), number)
            return super().observe(seq)

    monkeypatch.setattr("tbsched.campaigns.oracles.ModelGpu", Interrupting)
    before = signal.getsignal(signal.SIGTERM)
    assert run("fuzz", "--oracle", "rtx3090", "--device", "rtx3090", "--seed", "1") == 130
    assert "interrupted" in capsys.readouterr().out
    assert signal.getsignal(signal.SIGTERM) == before


def test_ctrl_c_that_python_drops_is_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: Run, one: Path
) -> None:
    class Presses:
        def __del__(self) -> None:  # an exception in here goes nowhere
            signal.raise_signal(signal.SIGINT)

    def fail(place: Path) -> None:
        Presses()
        for _ in range(1000):
            time.sleep(0.01)

    monkeypatch.setattr("tbsched.cli.files.load_traces", fail)
    before = sys.unraisablehook
    assert run("verify", one) == 130
    assert capsys.readouterr().err == "tbsched: interrupted\n"
    assert sys.unraisablehook == before


@pytest.mark.parametrize(
    ("library", "arguments"),
    [
        ("tbsched.cli.interrupts", ["devices"]),
        ("typer", ["devices"]),
        ("hypothesis", ["fuzz", "--oracle", "tx2", "--device", "tx2"]),
    ],
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interruption_during_imports_is_130(
    library: str, arguments: list[str], number: signal.Signals
) -> None:
    code = f"""if True:
        import os, signal, sys

        class Presses:
            def find_spec(self, name, *rest):
                if name == {library!r}:
                    os.kill(os.getpid(), {number.value})

        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.meta_path.insert(0, Presses())
        sys.argv = ["tbsched", *{arguments!r}]
        from tbsched.__main__ import main
        main()
    """
    found = run_python(code, check=False)
    assert (found.returncode, found.stderr) == (130, "tbsched: interrupted\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_handlers_are_as_they_were_after_imports(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with ending_at_once():
        assert signal.getsignal(number) != before
    assert signal.getsignal(number) == before


# -- files that are there already -----------------------------------------------------------------


def test_output_says_whether_it_replaced_something(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], run: Run, one: Path
) -> None:
    out = tmp_path / "out.jsonl"
    assert run("predict", one, "-o", out) == 0
    assert capsys.readouterr().err == f"wrote {out}: 1 trace\n"
    assert run("predict", one, "-o", out) == 0
    assert capsys.readouterr().err == f"wrote {out}: 1 trace, in place of what was there\n"


@pytest.mark.parametrize("verb", ["predict", "show"])
def test_what_is_read_is_not_overwritten(
    capsys: pytest.CaptureFixture[str], run: Run, one: Path, verb: str
) -> None:
    before = one.read_bytes()
    assert run(verb, one, "-o", one) == 2
    assert "is what is read" in capsys.readouterr().err
    assert one.read_bytes() == before


@pytest.mark.parametrize("option", ["--output", "--evidence"])
def test_report_does_not_take_the_place_of_what_a_calibration_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], run: Run, option: str
) -> None:
    written = {"--output": tmp_path / "mine.toml", "--evidence": tmp_path / "mine.jsonl"}
    given = [each for pair in written.items() for each in pair]
    assert run("calibrate", "--oracle", "tx2", *given, "--report", written[option]) == 2
    assert f"is what {option} writes" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_calibration_that_the_gpu_refuses_is_no_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    found = tb.calibrate("tx2", 600.0, sequences=0, progress=False)
    certificate = replace(found.certificate, refusal="no such threads here")
    asked: list[object] = []

    def calibrated(oracle: object, *_: object, **given: object) -> Calibration:
        asked.append(given["executor"])
        return replace(found, certificate=certificate)

    monkeypatch.setattr("tbsched.cli.calibrate.calibration_of", calibrated)
    out = tmp_path / "mine.toml"
    assert run("calibrate", "--oracle", "tx2", "--workers", "2", "-o", out) == 1
    assert "some value is wrong: no such threads here" in capsys.readouterr().out
    assert isinstance(asked[0], Workers)


def test_describe_takes_a_gpu_or_a_compute_capability(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], run: Run
) -> None:
    given = ["--gpu", "1", "--compute-capability", "8.9", "--sms", "4"]
    assert run("describe", "-o", tmp_path / "mine.toml", *given) == 2
    assert "gpu: does not go with compute_capability" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["calibrate", "--oracle", "tx2"],
        ["describe", "--compute-capability", "8.9", "--sms", "128"],
    ],
)
def test_device_files_that_no_device_option_would_find_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], run: Run, arguments: list[str]
) -> None:
    assert run(*arguments, "-o", tmp_path / "mine") == 2
    assert "a device file's name ends in .toml" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_record_says_that_it_appends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], run: Run
) -> None:
    out = tmp_path / "r.jsonl"
    arguments = [
        "record",
        "-o",
        out,
        "--oracle",
        "rtx3090",
        "--device",
        "rtx3090",
        "--sequences",
        "2",
    ]
    for words in ("appended to a new file", "appended to what is there"):
        assert run(*arguments, "--seed", "1") == 0
        assert words in capsys.readouterr().err
    assert len(tb.load_traces(out)) == 4


@pytest.mark.parametrize(("name", "begin"), [("p", b"\x89PNG"), ("p.svg", b"<?xml")])
def test_show_writes_the_file_that_it_names_and_no_other(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    run: Run,
    one: Path,
    name: str,
    begin: bytes,
) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "p.png").write_text("mine")
    assert run("show", one, "-o", tmp_path / name) == 0
    assert f"wrote {tmp_path / name}: a picture" in capsys.readouterr().err
    assert (tmp_path / name).read_bytes().startswith(begin)
    assert (tmp_path / "p.png").read_text() == "mine"


# -- letters and windows --------------------------------------------------------------------------


def test_titles_have_any_letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    file = tmp_path / "x.toml"
    row = '{ value = "Grafikkarte Ä ™", provenance = "assumed", source = "é" }'
    file.write_text(f'extends = "rtx3090"\n[device]\ntitle = {row}\n', "utf-8-sig")
    for encoding, shown in (("utf-8", "Grafikkarte Ä ™"), ("ascii", "Grafikkarte ? ?")):
        out = tmp_path / encoding
        with open(out, "w", encoding=encoding) as stdout:
            monkeypatch.setattr(sys, "stdout", stdout)
            assert run("devices", file) == 0
            assert run("devices", file, "--cpp") == 0
        assert shown in out.read_text(encoding)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["devices"], "NVIDIA DRIVE AGX Pegasus, discrete Turing GPU   44     ampere"),
        (["configs", "--help"], "--shared-memory-per-thread"),
        (["fuzz", "--help"], "--max-counterexamples"),
        (["--help"], "prediction agrees"),
    ],
)
def test_narrow_windows_cut_nothing(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    run: Run,
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert run(*arguments) == 0
    out = capsys.readouterr().out.replace("[ARGS]...", "")
    assert "…" not in out
    assert "..." not in out
    assert words in out


def test_profile_of_one_gpu_is_not_explained_on_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], run: Run
) -> None:
    kernel = tb.Launch(264, 1024, 64, duration=1e-3, name="gemm")
    place = tmp_path / "played.jsonl"
    tb.save_traces(place, [tb.predict(tb.Sequence([kernel]), "h200", host=0.0)])
    assert run("explain", str(place), "--device", "rtx3090") == 2
    error = capsys.readouterr().err
    assert "device: rtx3090, but the profile was recorded on NVIDIA H200" in error
    assert run("explain", str(place), "--device", "h200") == 0


@pytest.mark.parametrize("option", ["--html", "--perfetto"])
def test_profile_is_not_overwritten_by_what_explains_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], run: Run, option: str
) -> None:
    place = tmp_path / "played.jsonl"
    place.write_text("mine")
    assert run("explain", place, option, place) == 2
    assert capsys.readouterr().err == (
        f"tbsched: {option}: {place} is what is read; write another file\n"
    )
    assert place.read_text() == "mine"
