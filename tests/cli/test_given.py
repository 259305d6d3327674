"""No value is empty, and no file is for two things: in every verb."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from typer.models import OptionInfo
from typer.testing import CliRunner

import tbsched as tb
from cli.verbs import COMMANDS, FUNCTIONS
from tbsched.cli.app import app

OUTPUTS = {"output", "evidence", "html", "perfetto", "report"}
READ = {"against", "cubin"}  # options that name a file that is read


def refusal(*arguments: str | Path) -> str:
    """Runs the command line with arguments that it refuses; returns the message."""
    ran = CliRunner().invoke(app, [*map(str, arguments)], standalone_mode=False)
    assert isinstance(ran.exception, ValueError), (ran.exception, ran.output)
    return str(ran.exception)


def options(verb: str) -> Iterator[Any]:
    return (each for each in COMMANDS[verb].params if each.param_type_name == "option")


def paths(verb: Callable[..., object]) -> Iterator[str]:
    """The options of a verb that are paths."""
    for name, hint in get_type_hints(verb, include_extras=True).items():
        kind, *about = get_args(hint) or (hint,)
        if Path in (kind, *get_args(kind)) and isinstance(about[0], OptionInfo):
            yield name


# -- standard input --------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["predict", "show", "capacity", "coresident"])
def test_standard_input_is_json_with_a_list_of_events_alone(verb: str) -> None:
    trace, profile = '{"tbsched_trace":1}\n{"id":"a"}\n', '{"traceEvents": []}'
    for text in (trace, profile, ""):
        ran = CliRunner().invoke(app, [verb, "-"], input=text, standalone_mode=False)
        said = str(ran.exception)
        assert said.startswith("standard input: JSON with a list of events is needed; write a tr")
    events = '\ufeff [{"launch": {"blocks": 8, "threads": 64, "registers": 32}}]'
    ran = CliRunner().invoke(app, [verb, "-"], input=events, standalone_mode=False)
    assert ran.exception is None, ran.exception
    (given,) = (each for each in COMMANDS[verb].params if each.metavar == "SEQUENCES")
    assert "- reads such JSON, and nothing else, from standard input." in given.help


# -- empty values ----------------------------------------------------------------------------------

WITH_VALUES = [
    (verb, each.opts, each.nargs) for verb in COMMANDS for each in options(verb) if not each.is_flag
]


@pytest.mark.parametrize(("verb", "names", "values"), WITH_VALUES)
def test_empty_value_of_an_option_is_refused(verb: str, names: list[str], values: int) -> None:
    for name in names:
        others = ["h200"] * (values - 1)
        assert refusal(*verb.split(), name, *others, "").startswith(f"{names[0]}: '' is empty")
        if values == 1 and name.startswith("--"):
            assert refusal(*verb.split(), f"{name}=").startswith(f"{names[0]}: '' is empty")


@pytest.mark.parametrize(
    ("verb", "argument"),
    [
        (verb, each.metavar)
        for verb in COMMANDS
        for each in COMMANDS[verb].params
        if each.param_type_name == "argument" and verb != "capture"
    ],
)
def test_empty_argument_is_refused(verb: str, argument: str) -> None:
    others = [] if verb != "compare" else ["a.jsonl"]
    assert "'' is empty; give a value" in refusal(*verb.split(), *others, "")


def test_program_that_is_captured_may_have_an_empty_argument(tmp_path: Path) -> None:
    out = tmp_path / "a.jsonl"
    ran = CliRunner().invoke(
        app, ["capture", "-o", str(out), "--", "true", ""], standalone_mode=False
    )
    assert "is empty" not in f"{ran.exception} {ran.output}"


def test_number_of_differences_is_not_negative(tmp_path: Path) -> None:
    traces, _ = made(tmp_path)
    assert refusal("verify", traces, "--misses", "-1") == "--misses: -1 is less than 0"


# -- files -----------------------------------------------------------------------------------------


def test_every_option_that_names_a_file_is_known_as_read_or_written() -> None:
    assert set(paths(FUNCTIONS["explain"])) == {"html", "perfetto"}
    assert {name for verb in FUNCTIONS.values() for name in paths(verb)} == OUTPUTS | READ


@pytest.mark.parametrize(
    ("verb", "one", "other"),
    [
        (verb, *pair)
        for verb in COMMANDS
        for pair in itertools.combinations(
            [each.opts[0] for each in options(verb) if each.name in OUTPUTS], 2
        )
    ],
)
def test_two_outputs_with_one_path_are_refused(
    tmp_path: Path, verb: str, one: str, other: str
) -> None:
    first, second = tmp_path / "a.toml", tmp_path / "b" / ".." / "a.toml"
    (tmp_path / "b").mkdir()
    needed = {"explain": ["in.json"], "calibrate": ["-o", tmp_path / "c.toml"]}[verb]
    given = [*needed, one, first, other, second]
    assert f"is what {one} writes; write another file" in refusal(verb, *given)
    assert not first.exists()


SEQUENCE = tb.Sequence([tb.Launch(8, 64, 32)])


def made(folder: Path) -> tuple[Path, Path]:
    """A trace file, and a device file."""
    traces, device = folder / "in.jsonl", folder / "mine.toml"
    tb.save_traces(traces, [tb.predict(SEQUENCE, "h200")])
    tb.save_device(device, tb.device("h200"))
    return traces, device


@pytest.mark.parametrize(
    "arguments",
    [
        "predict TRACES -o TRACES",
        "predict TRACES -d DEVICE -o DEVICE",
        "observe TRACES -o TRACES",
        "observe --cases hopper -d DEVICE -o DEVICE",
        "show TRACES -o TRACES",
        "show TRACES -a TRACES -o TRACES",
        "explain TRACES --html TRACES",
        "explain TRACES -d DEVICE --perfetto DEVICE",
        "record --oracle TRACES -o TRACES",
        "record --oracle tx2 -d DEVICE -o DEVICE",
        "fuzz --oracle TRACES --evidence TRACES",
        "fuzz --oracle tx2 -d DEVICE --evidence DEVICE",
        "predict FOLDER -o TRACES",
        "show FOLDER -o TRACES",
        "calibrate --oracle DEVICE -o DEVICE",
        "calibrate --oracle DEVICE -o other.toml --report DEVICE",
    ],
)
def test_output_is_not_what_is_read(tmp_path: Path, arguments: str) -> None:
    traces, device = made(tmp_path)
    before = traces.read_bytes(), device.read_bytes()
    words = {"TRACES": str(traces), "DEVICE": str(device), "FOLDER": str(tmp_path)}
    assert "is what is read" in refusal(*(words.get(each, each) for each in arguments.split()))
    assert (traces.read_bytes(), device.read_bytes()) == before
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        "predict TRACES -o",
        "show TRACES -o",
        "explain TRACES --html",
        "explain TRACES --perfetto",
        "record --oracle tx2 -d tx2 -o",
        "fuzz --oracle tx2 -d tx2 --evidence",
        "calibrate --oracle tx2 -o",
        "describe --compute-capability 8.9 --sms 8 -o",
    ],
)
def test_output_at_links_in_a_circle_is_refused(tmp_path: Path, arguments: str) -> None:
    traces, _ = made(tmp_path)
    circle = tmp_path / "circle.toml"
    circle.symlink_to(circle)
    given = arguments.replace("TRACES", str(traces)).split()
    assert str(circle) in refusal(*given, circle)
